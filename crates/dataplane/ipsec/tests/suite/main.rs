//! One program for all of these tests: each program of its own would be linked by itself.

mod ah;
mod ah_hostile;
mod ah_vectors;
mod bundling;
mod grants;
mod hostile;
mod icmp_errors;
mod iptfs_sad;
mod lifetime;
mod nat;
mod nest;
mod nest_path;
#[path = "../pair/mod.rs"]
mod pair;
mod path_mtu;
mod peer;
mod per_cpu;
mod policies;
#[path = "../reference/mod.rs"]
mod reference;
mod removal;
mod scenarios;
mod segment_run;
mod selection;
mod sequence;
#[path = "../support/mod.rs"]
mod support;
#[path = "../traffic/mod.rs"]
mod traffic;
mod tunnel_header;
mod windows;
