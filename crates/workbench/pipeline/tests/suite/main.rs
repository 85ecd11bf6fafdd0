//! One program for all of these tests: each program of its own would be linked by itself.

mod batches;
mod blocking;
mod branches;
mod breakdowns;
mod by_hand;
mod card;
mod chain;
mod claims;
mod files;
mod laws;
mod limits;
mod memory;
mod power;
mod scenario;
mod sizes;
mod stopped;
