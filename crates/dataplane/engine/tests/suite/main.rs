//! One program for all of these tests: each program of its own would be linked by itself.

mod ah_vectors;
mod audits;
mod cores;
mod databases;
mod doorbell;
mod drops;
mod edges;
mod esp_vectors;
mod lacking;
mod limits;
mod matrix;
mod nested;
mod nested_pieces;
mod no_alloc;
#[allow(dead_code)]
#[path = "../pair/mod.rs"]
mod pair;
mod rekeying;
mod support;
