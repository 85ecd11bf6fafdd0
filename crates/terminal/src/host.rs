//! What a command takes from the machine that it runs on.

use std::hash::{BuildHasher, RandomState};
use std::time::SystemTime;

use miette::{IntoDiagnostic, WrapErr};

/// A number that nobody else can know, for the hashes of a database.
pub fn seed() -> u64 {
    RandomState::new().hash_one(0)
}

/// Nanoseconds since 1970.
#[allow(clippy::disallowed_methods)] // the command line is where time comes from
pub fn unix_ns() -> miette::Result<u64> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let ns = since.into_diagnostic().wrap_err("the clock stands before 1970")?.as_nanos();
    u64::try_from(ns).into_diagnostic().wrap_err("the clock stands after 2554")
}
