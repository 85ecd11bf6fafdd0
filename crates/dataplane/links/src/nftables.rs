//! A table of nftables: rules that accept or drop packets by interface, address and protocol, made and changed in single
//! transactions by netlink (nft(8), `linux/netfilter/nf_tables.h`).
//!
//! The `nft` program is not needed for it, because a process that has dropped all capabilities but `CAP_NET_ADMIN`
//! could not pass that one on to it. [`Table`] can also be written in the syntax that `nft` reads and lists, for
//! operators who load the table themselves.

mod encode;
mod expression;
mod socket;
mod table;
mod text;

pub use socket::{Counted, Nftables};
pub use table::{Chain, End, Hook, Match, Rule, Set, Table, Verdict};
