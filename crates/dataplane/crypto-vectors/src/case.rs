//! One job and what must become of it.

use std::ops::Range;

use forebay_crypto::{Job, JobSpec, Packet, Span, Verdict};

/// What stands where a packet would if it were not shifted.
const SHIFTED: u8 = 0xee;

/// What must become of a job.
#[derive(Clone, Debug)]
pub enum Expect {
    /// Done, and the packet is this.
    Done(Vec<u8>),
    /// The ICV is refused; outside the cipher text nothing is changed.
    AuthFailed,
    /// Refused as it is, and nothing is changed.
    Failed,
}

/// One job and what must become of it.
#[derive(Clone, Debug)]
pub struct Case {
    /// For messages: which vector or which random job.
    pub name: String,
    /// What to do, its spans counted from the packet's begin and not from the buffer's.
    pub spec: JobSpec,
    /// How far the packet is shifted in its buffer, in bytes: alignment must not matter.
    pub shift: usize,
    /// The packet.
    pub before: Vec<u8>,
    /// What must become of it.
    pub expect: Expect,
}

impl Case {
    /// First place behind the buffer, counted like the spans of a [`Case`].
    pub fn buffer_end(packet_len: usize) -> u32 {
        (packet_len + Packet::TAILROOM) as u32
    }

    /// The job, in a buffer just large enough.
    pub fn job(&self, token: u64) -> Job {
        let mut packet = Packet::with_capacity(self.shift + self.before.len());
        assert!(packet.fill(&[&vec![SHIFTED; self.shift][..], &self.before].concat()), "room for the packet");
        packet.pull_front(self.shift).expect("as much as was filled in");
        // Spans that are meant to be outside must stay outside, so nothing wraps here.
        let place = |start: u32| start.saturating_add(packet.offset() as u32);
        let span = |span: Span| Span { start: place(span.start), ..span };
        let JobSpec { cipher, iv, auth, icv, .. } = self.spec;
        let spec =
            JobSpec { cipher: span(cipher), iv: place(iv), auth: span(auth), icv: place(icv), ..self.spec };
        Job::new(packet, spec, token)
    }

    /// Holds a finished job against what is expected.
    pub fn compare(&self, job: &Job) -> Result<(), String> {
        let verdict = match self.expect {
            Expect::Done(_) => Verdict::Done,
            Expect::AuthFailed => Verdict::AuthFailed,
            Expect::Failed => Verdict::Failed,
        };
        if job.verdict != verdict {
            return Err(format!("verdict {:?}, expected {verdict:?}", job.verdict));
        }
        self.check_surroundings(&job.packet)?;
        let found = job.packet.bytes();
        match &self.expect {
            Expect::Done(after) => same(found, after, 0..after.len()),
            Expect::AuthFailed => {
                let cipher = self.spec.cipher.range();
                same(found, &self.before, 0..cipher.start)?;
                same(found, &self.before, cipher.end..self.before.len())
            }
            Expect::Failed => same(found, &self.before, 0..self.before.len()),
        }
    }
}

impl Case {
    /// Nothing around the packet is changed, and what is borrowed there is given back.
    fn check_surroundings(&self, packet: &Packet) -> Result<(), String> {
        let (buffer, start) = (packet.buffer(), packet.offset());
        let around = [
            (0..Packet::HEADROOM, 0),
            (Packet::HEADROOM..start, SHIFTED),
            (start + packet.len()..buffer.len(), 0),
        ];
        for (range, byte) in around {
            if let Some(at) = range.clone().find(|&at| buffer[at] != byte) {
                return Err(format!("byte {at} of the buffer, around the packet, is {:02x}", buffer[at]));
            }
        }
        Ok(())
    }
}

/// The first difference between `found` and `expected` within `range`, in words.
fn same(found: &[u8], expected: &[u8], range: Range<usize>) -> Result<(), String> {
    if found.len() != expected.len() {
        return Err(format!("packet of {} bytes, expected {}", found.len(), expected.len()));
    }
    match range.clone().find(|&i| found[i] != expected[i]) {
        None => Ok(()),
        Some(i) => {
            let end = range.end.min(i + 16);
            Err(format!(
                "byte {i} of {} and on: {:02x?}, expected {:02x?}",
                found.len(),
                &found[i..end],
                &expected[i..end]
            ))
        }
    }
}
