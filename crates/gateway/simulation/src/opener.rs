//! Decrypts protected packets for the oracle, with a crypto library but no code of the gateway.

use std::collections::BTreeMap;

use forebay_crypto::{Direction, Job, JobSpec, Packet, Processor, SessionId, Span, Suite, Verdict};
use forebay_crypto_aws_lc::AwsLc;
use forebay_time::Time;

use crate::packet::EspSeen;
use crate::site::{Site, Tunnel};

/// The largest packet that is opened, in bytes.
const CAPACITY: usize = 2_048;
/// SPI and sequence number.
const ESP_HEADER: usize = 8;

/// An SA whose packets are opened.
struct Sa {
    session: SessionId,
    suite: Suite,
    esn: bool,
}

/// What opens packets.
pub struct Opener {
    library: AwsLc,
    sas: BTreeMap<u32, Sa>,
    packet: Option<Packet>,
    jobs: Vec<Job>,
}

impl Default for Opener {
    fn default() -> Opener {
        let packet = Some(Packet::with_capacity(CAPACITY));
        Opener { library: AwsLc::new(), sas: BTreeMap::new(), packet, jobs: Vec::new() }
    }
}

impl Opener {
    /// Learns the keys of an SA.
    pub fn add(&mut self, site: &Site, tunnel: &Tunnel, spi: u32) {
        if self.sas.contains_key(&spi) {
            return;
        }
        let keys = site.sa_keys(tunnel.proposal, spi);
        let session = SessionId(self.sas.len() as u32);
        self.library.open_session(session, &keys, Direction::Open).expect("a suite of the library");
        self.sas.insert(spi, Sa { session, suite: keys.suite(), esn: tunnel.esn });
    }

    /// Whether an SA's sequence numbers have 64 bits; `None` if there is no such SA.
    pub fn esn(&self, spi: u32) -> Option<bool> {
        self.sas.get(&spi).map(|sa| sa.esn)
    }

    /// The IV field of a packet.
    pub fn iv<'a>(&self, seen: EspSeen, packet: &'a [u8]) -> Option<&'a [u8]> {
        let len = self.sas.get(&seen.spi)?.suite.iv_len();
        packet.get(seen.at + ESP_HEADER..seen.at + ESP_HEADER + len)
    }

    /// The inner packet, if it is genuine with this high half of the sequence number.
    pub fn open(&mut self, seen: EspSeen, packet: &[u8], high: u32) -> Option<Vec<u8>> {
        let sa = self.sas.get(&seen.spi)?;
        let (iv_len, icv_len) = (sa.suite.iv_len(), sa.suite.icv_len());
        let esp = packet.get(seen.at..)?;
        let text_at = ESP_HEADER + iv_len;
        let icv_at = esp.len().checked_sub(icv_len).filter(|at| *at >= text_at + 2)?;
        let mut buffer = self.packet.take()?;
        if !buffer.fill(esp) {
            self.packet = Some(buffer);
            return None;
        }
        let offset = buffer.offset();
        let span = |from: usize, to: usize| Span { start: (offset + from) as u32, len: (to - from) as u32 };
        let auth_end = if sa.suite.covers_text() { icv_at } else { ESP_HEADER };
        let spec = JobSpec {
            session: sa.session,
            cipher: span(text_at, icv_at),
            iv: (offset + ESP_HEADER) as u32,
            auth: span(0, auth_end),
            icv: (offset + icv_at) as u32,
            seq_hi: sa.esn.then_some(high),
        };
        self.jobs.push(Job::new(buffer, spec, 0));
        self.library.submit(Time::ZERO, &mut self.jobs);
        self.library.poll(Time::ZERO, &mut self.jobs);
        let job = self.jobs.pop()?;
        let text = &job.packet.bytes()[text_at..icv_at];
        let is_genuine = job.verdict == Verdict::Done;
        let inner = is_genuine.then(|| {
            let padding = usize::from(text[text.len() - 2]);
            text[..text.len().saturating_sub(2 + padding)].to_vec()
        });
        self.packet = Some(job.packet);
        inner
    }
}
