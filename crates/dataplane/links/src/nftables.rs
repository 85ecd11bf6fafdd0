//! A table of nftables: rules that accept or drop packets by interface, address and protocol, made and changed in single
//! transactions by netlink (nft(8), `linux/netfilter/nf_tables.h`).
//!
//! The `nft` program is not needed for it: whoever has given up privileges but `CAP_NET_ADMIN` could not start it with
//! that. [`Table`] is also written as that program reads and lists it, for those who load it themselves.

mod encode;
mod expression;
mod socket;
mod table;
mod text;

pub use socket::{Counted, Nftables};
pub use table::{Chain, End, Hook, Match, Rule, Set, Table, Verdict};
