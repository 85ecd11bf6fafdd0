//! Answers of other processors that the running core checks.

use forebay_crypto::Job;

/// What marks the job of a check, in place of a slot's number.
pub const CHECK: u32 = u32::MAX;

/// An answer that is believed once the running core has come to the same.
#[derive(Debug)]
pub struct Check {
    pub processor: usize,
    pub answer: Job,
    /// The job for the running core, until it is given that.
    pub check: Option<Job>,
}
