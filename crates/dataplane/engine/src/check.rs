//! Answers of other processors that the running core checks.

use forebay_crypto::Job;

/// Marks the job of a check, in the place of a slot's number.
pub const CHECK: u32 = u32::MAX;

/// An answer that is accepted once the running core has obtained the same result.
#[derive(Debug)]
pub struct Check {
    pub processor: usize,
    pub answer: Job,
    /// The job for the running core, until it is submitted.
    pub check: Option<Job>,
}
