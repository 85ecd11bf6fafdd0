//! One program for all of these tests: each program of its own would be linked by itself.

#[path = "../support/build.rs"]
mod build;
mod corpora;
mod frame;
mod independent;
mod offload;
mod properties;
mod read_pcap;
mod read_pcapng;
#[path = "../support/mod.rs"]
mod support;
mod truncation;
mod write;
