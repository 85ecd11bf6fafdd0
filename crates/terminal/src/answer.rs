//! How a command ends.

/// How a command ended, short of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// All well: exit code 0.
    Yes,
    /// It worked, but the answer is no (packets failed, a claim did not hold): exit code 1.
    No,
    /// The input is broken, and that has been said: exit code 2.
    Broken,
    /// The user broke it off; what was done until then is kept where the command says so: exit code 130.
    Interrupted,
}
