//! What an outbound SA of either protocol counts: sequence numbers, IVs, and how far it has come in its life.

use forebay_crypto::SessionId;
use forebay_drops::DropReason;

use crate::iv::IvRange;
use crate::lifetime::{Life, Lived, Refused};
use crate::sa::SaConfig;
use crate::watch::Watch;

/// Sequence numbers, IVs and life of an outbound SA. Every packet changes it, so it stands together.
#[derive(Debug)]
#[repr(C)]
pub struct OutboundNumbers {
    /// The last sequence number sent.
    pub(crate) sequence: u64,
    pub(crate) life: Life,
    pub(crate) iv: IvRange,
    pub(crate) session: SessionId,
    pub(crate) esn: bool,
}

impl OutboundNumbers {
    /// Of an SA that has sent nothing.
    pub fn new(config: &SaConfig, session: SessionId, iv: IvRange, watch: &mut Watch) -> OutboundNumbers {
        let life = Life::new(config.lifetime, session, watch);
        let mut numbers = OutboundNumbers { sequence: 0, life, iv, session, esn: config.esn };
        numbers.continue_after(0);
        numbers
    }

    /// Continues behind `sequence`.
    pub fn continue_after(&mut self, sequence: u64) {
        self.sequence = sequence;
        self.life.number_from(sequence, self.end());
    }

    /// Goes on with a life that was lived before.
    pub fn resume_life(&mut self, lived: &Lived, watch: &mut Watch) {
        self.life.resume(lived, watch);
        self.life.number_from(self.sequence, self.end());
    }

    /// Allows sequence numbers up to `last`, and none beyond.
    pub fn grant(&mut self, last: u64) {
        self.life.grant(last);
        self.life.number_from(self.sequence, self.end());
    }

    /// The last sequence number that there is: both kinds fail closed at their end (RFC 4303 3.3.3, RFC 4302 3.3.2).
    #[inline]
    pub fn end(&self) -> u64 {
        if self.esn { u64::MAX } else { u64::from(u32::MAX) }
    }

    /// Whether there is a sequence number for one more packet, and an IV if it `has_iv`. Nothing is taken.
    ///
    /// # Errors
    /// What is missing.
    #[inline]
    pub fn look(&mut self, has_iv: bool, watch: &mut Watch) -> Result<(), DropReason> {
        if self.sequence >= self.end() {
            self.life.end_numbers(watch);
            return Err(DropReason::OutStateSeqError);
        }
        if has_iv && !self.iv.is_ready(self.session, watch) {
            return Err(DropReason::OutStateIvError);
        }
        Ok(())
    }

    /// Whether the life of the SA allows one more packet, of so many bytes.
    ///
    /// # Errors
    /// Why not.
    #[inline]
    pub fn admit(&mut self, bytes: usize, watch: &mut Watch) -> Result<(), DropReason> {
        self.life.admit(bytes, watch).map_err(Refused::reason)
    }

    /// Counts a packet of so many bytes, and gives it its sequence number.
    #[inline]
    pub fn take(&mut self, bytes: usize) -> u64 {
        self.sequence += 1;
        self.life.count(1, bytes as u64);
        self.sequence
    }

    /// The IV of the next packet.
    ///
    /// # Errors
    /// [`DropReason::OutStateIvError`] if there is none.
    #[inline]
    pub fn take_iv(&mut self) -> Result<u64, DropReason> {
        self.iv.take().ok_or(DropReason::OutStateIvError)
    }
}
