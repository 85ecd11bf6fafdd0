//! SAs that cannot be in one database.

use std::fmt;

use forebay_crypto::SessionId;

use crate::sa::{SaConfigError, Spi};

/// SAs that cannot be in one database.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SadError {
    /// The settings of SA number `index` contradict each other.
    Config {
        /// Position of the SA.
        index: usize,
        /// What is wrong.
        error: SaConfigError,
    },
    /// Two SAs of one direction that packets could not distinguish.
    OverlappingSpi {
        /// The earlier one's position.
        first: usize,
        /// The later one's position.
        second: usize,
        /// The SPI of both.
        spi: Spi,
    },
    /// Two SAs that cannot be one inside the other.
    CannotNest {
        /// The SA whose packets were to go through the other.
        inner: SessionId,
        /// The other.
        outer: SessionId,
    },
}

impl fmt::Display for SadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SadError::Config { index, error } => write!(f, "SA number {}: {error}", index + 1),
            SadError::OverlappingSpi { first, second, spi } => {
                write!(f, "SAs number {} and {} both have SPI {spi}", first + 1, second + 1)
            }
            SadError::CannotNest { inner, outer } => {
                write!(f, "SA number {} cannot be inside number {}", inner.0 + 1, outer.0 + 1)
            }
        }
    }
}

impl std::error::Error for SadError {}
