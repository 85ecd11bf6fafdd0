//! AES-GMAC, one packet at a time, by the library's direct calls: they take the message in pieces, so
//! that ESN's high half needs no copy of what may be a whole packet.

use forebay_crypto::{Direction, Job, Layout, Verdict};

use crate::manager::Manager;
use crate::processor::same_tag;
use crate::session::Gmac;

/// Does one job.
pub fn run(manager: &mut Manager, session: &Gmac, job: &mut Job) -> Verdict {
    let spec = &job.spec;
    let buffer = job.packet.buffer_mut();
    let Some(at) = Layout::check(spec, session.suite, session.direction, buffer.len()) else {
        return Verdict::Failed;
    };
    let mut nonce = [0; 12];
    nonce[..4].copy_from_slice(&session.salt);
    nonce[4..].copy_from_slice(&buffer[at.iv.clone()]);
    let covered = &buffer[at.auth.clone()];
    let tag = match (spec.seq_hi, covered.split_at_checked(4)) {
        // The number's high half stands behind the SPI (RFC 4543 3.3).
        (Some(high), Some((spi, rest))) => {
            manager.gmac(&session.key, session.key_len, &nonce, [spi, &high.to_be_bytes(), rest])
        }
        _ => manager.gmac(&session.key, session.key_len, &nonce, [covered, &[], &[]]),
    };
    let icv = &mut buffer[at.icv];
    let tag = &tag[..icv.len()];
    match session.direction {
        Direction::Seal => {
            icv.copy_from_slice(tag);
            Verdict::Done
        }
        Direction::Open if same_tag(tag, icv) => Verdict::Done,
        Direction::Open => Verdict::AuthFailed,
    }
}
