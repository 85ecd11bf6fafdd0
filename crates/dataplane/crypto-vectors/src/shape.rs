//! Where the parts of a job are put in a packet.

use forebay_crypto::{JobSpec, SessionId, Span, Suite};

/// What a sealing job looks like: how long its parts are, and how they are arranged.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Length in bytes of what only integrity covers.
    pub auth: usize,
    /// Length of the plaintext in bytes.
    pub text: usize,
    /// Whether integrity that covers the text by itself covers IV and ciphertext too, as in ESP;
    /// otherwise it covers bytes of its own.
    pub nested: bool,
    /// High half of the sequence number.
    pub seq_hi: Option<u32>,
    /// In which order the parts stand: any number, folded into a permutation.
    pub order: usize,
    /// Bytes before each part and behind the last that belong to no part.
    pub gaps: [usize; 5],
}

/// A shape laid out: spans from the packet's begin, for both directions.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The sealing job.
    pub seal: JobSpec,
    /// The opening job for what was sealed: the same, but that a chained cipher text is without the IV.
    pub open: JobSpec,
    /// Length of the packet in bytes.
    pub len: usize,
}

impl Shape {
    /// As ESP has it, without extended sequence number: `auth` bytes of header, IV, text, ICV.
    pub fn esp(auth: usize, text: usize) -> Shape {
        Shape { auth, text, nested: true, seq_hi: None, order: 0, gaps: [0; 5] }
    }

    /// Lays the parts out for `suite`.
    pub fn plan(self, suite: Suite, session: SessionId) -> Plan {
        let chained = suite.is_chained();
        let nested = self.nested && suite.covers_text();
        // What must touch is one part: the IV that starts a chain, and what a nested ICV covers.
        let lens = match (nested, chained) {
            (true, _) => vec![self.auth + suite.iv_len() + self.text, suite.icv_len()],
            (false, true) => vec![self.auth, suite.iv_len() + self.text, suite.icv_len()],
            (false, false) => vec![self.auth, suite.iv_len(), self.text, suite.icv_len()],
        };
        // A high half that is not in the packet stands behind what the separate algorithm covers.
        let behind = match !suite.is_aead() && !nested && self.seq_hi.is_some() {
            true => JobSpec::SEQ_HI_LEN,
            false => 0,
        };
        let (starts, len) = self.place(&lens, behind);
        let (auth, iv, text, icv) = match starts[..] {
            [body, icv] => (body, body + self.auth, body + self.auth + suite.iv_len(), icv),
            [auth, iv, icv] => (auth, iv, iv + suite.iv_len(), icv),
            [auth, iv, text, icv] => (auth, iv, text, icv),
            _ => unreachable!("two to four parts"),
        };
        let span = |start: usize, len: usize| Span { start: start as u32, len: len as u32 };
        let open = JobSpec {
            session,
            cipher: span(text, self.text),
            iv: iv as u32,
            auth: span(auth, lens[0] * usize::from(nested) + self.auth * usize::from(!nested)),
            icv: icv as u32,
            seq_hi: self.seq_hi,
        };
        // A chain without text needs no IV: integrity alone.
        let cipher = match chained && self.text > 0 {
            true => span(iv, suite.iv_len() + self.text),
            false => open.cipher,
        };
        Plan { seal: JobSpec { cipher, ..open }, open, len }
    }

    /// Where parts of the lengths `lens` start, and where the packet ends. Unless the last part, the ICV, follows the
    /// first directly, the first has at least `behind` bytes behind it that belong to no part.
    fn place(&self, lens: &[usize], behind: usize) -> (Vec<usize>, usize) {
        let (mut left, mut order): (Vec<usize>, usize) = ((0..lens.len()).collect(), self.order);
        let (mut starts, mut at, mut room) = (vec![0; lens.len()], 0, 0);
        for gap in &self.gaps[..lens.len()] {
            let part = left.remove(order % left.len());
            order /= left.len() + 1;
            starts[part] = at + if part + 1 == lens.len() { *gap } else { room.max(*gap) };
            at = starts[part] + lens[part];
            room = if part == 0 { behind } else { 0 };
        }
        (starts, at + self.gaps[lens.len()])
    }
}

impl Plan {
    /// Fills the bytes of a part in; `packet` has the plan's length.
    pub fn put(packet: &mut [u8], start: u32, bytes: &[u8]) {
        packet[start as usize..start as usize + bytes.len()].copy_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_of_the_parts_comes_up() {
        let suite: Suite = "aes128gcm16".parse().expect("a proposal");
        let mut seen = std::collections::BTreeSet::new();
        for order in 0..24 {
            let shape = Shape { order, gaps: [1, 2, 3, 4, 5], ..Shape::esp(8, 32) };
            let Plan { seal, len, .. } = shape.plan(suite, SessionId(0));
            seen.insert((seal.auth.start, seal.iv, seal.cipher.start, seal.icv));
            assert_eq!(len, 8 + 8 + 32 + 16 + 15);
        }
        assert_eq!(seen.len(), 24);
    }

    #[test]
    fn a_high_half_outside_the_packet_has_room_behind_what_is_covered() {
        let suite: Suite = "aes128ctr-sha1".parse().expect("a proposal");
        let mut on_the_icv = 0;
        for order in 0..24 {
            let shape = Shape { order, nested: false, seq_hi: Some(1), ..Shape::esp(8, 32) };
            let Plan { seal, .. } = shape.plan(suite, SessionId(0));
            let distance = |start: u32| (start as usize).wrapping_sub(seal.auth.end());
            assert!(distance(seal.iv) >= 4 && distance(seal.cipher.start) >= 4, "{seal:?}");
            on_the_icv += usize::from(distance(seal.icv) == 0);
        }
        assert_eq!(on_the_icv, 6);
    }

    #[test]
    fn a_chain_is_sealed_with_its_iv_and_opened_without() {
        let suite: Suite = "aes128-sha1".parse().expect("a proposal");
        let Plan { seal, open, len } = Shape::esp(8, 32).plan(suite, SessionId(0));
        assert_eq!((seal.cipher, seal.auth), (Span { start: 8, len: 48 }, Span { start: 0, len: 56 }));
        assert_eq!((open.cipher, open.iv, open.icv, len), (Span { start: 24, len: 32 }, 8, 56, 68));
    }
}
