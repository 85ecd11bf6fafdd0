/// Maximum number of jobs per call of `fb_run`. This file is included by `lib.rs` and by `build.rs`, which passes the
/// number to `shim.c`.
pub const MAX_BURST: usize = 64;
