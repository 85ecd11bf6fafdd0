//! Why there is no answer.

use std::fmt;

use crate::Solution;

/// Why a model was not solved.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// The description makes no sense; the text says where.
    Invalid(String),
    /// The chain would need more memory than allowed. Smaller buffers or simulation answer instead.
    TooLarge {
        /// States of the whole space.
        states: u128,
        /// Bytes the solution would need, estimated from above.
        bytes: u128,
        /// Bytes allowed.
        limit: u64,
    },
    /// Immediate transitions that lead back to where they began: a switch and a run that both take
    /// no time.
    ImmediateLoop,
    /// Some states cannot be reached again, so there is no single stationary distribution.
    Reducible,
    /// The iteration did not come to the tolerance.
    NotConverged {
        /// What it came to (see [`crate::Accuracy::residual`]).
        residual: f64,
        /// What was asked for.
        tolerance: f64,
        /// Cycles done.
        cycles: u32,
        /// As far as it came: [`Solution::accuracy`](crate::Solution) says how wrong it is.
        solution: Box<Solution>,
    },
    /// Simulations of so few packets cannot show that a loss ratio is as small as this.
    Unshowable {
        /// The bound on the loss ratio.
        bound: f64,
        /// Packets of all runs of a design.
        packets: u64,
    },
    /// A service waits for more packets than the largest buffer to try has room for.
    BatchAboveBuffers {
        /// Name of the stage.
        stage: String,
        /// Packets that its service waits for.
        batch_min: u32,
        /// Packets that the largest buffer to try can hold.
        most: u32,
    },
    /// The caller stopped the computation.
    Cancelled,
    /// A queue without limit is offered more than it can serve.
    Unstable {
        /// Offered over possible work.
        utilisation: f64,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Invalid(what) => f.write_str(what),
            Error::TooLarge { states, bytes, limit } => write!(
                f,
                "{states} states need about {:.1} MiB, more than the {:.1} MiB allowed: use smaller buffers, \
                 raise the limit, or simulate",
                *bytes as f64 / 1_048_576.0,
                *limit as f64 / 1_048_576.0
            ),
            Error::ImmediateLoop => {
                f.write_str("run length and switch delay are both zero: the server would switch for ever")
            }
            Error::Reducible => f.write_str("the chain has states that are left for ever"),
            Error::NotConverged { residual, tolerance, cycles, .. } => {
                write!(
                    f,
                    "not converged: residual {residual:.1e} after {cycles} cycles, {tolerance:.1e} wanted"
                )
            }
            Error::Unshowable { bound, packets } => write!(
                f,
                "runs of {packets} packets without any loss show a loss ratio below {:.1e} (3 / packets, with 95 % \
                 confidence), not one of {bound:e} or less",
                3.0 / (*packets).max(1) as f64
            ),
            Error::BatchAboveBuffers { stage, batch_min, most } => write!(
                f,
                "`{stage}` waits for {batch_min} packets, and the largest buffer to try has room for {most}"
            ),
            Error::Cancelled => f.write_str("broken off"),
            Error::Unstable { utilisation } => {
                write!(f, "the queue grows without limit: utilisation {utilisation:.3}")
            }
        }
    }
}

impl std::error::Error for Error {}
