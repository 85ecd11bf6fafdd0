//! See Cargo.toml: empty on purpose.
