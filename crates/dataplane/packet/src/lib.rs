//! Packets, and the memory in which they stand.
//!
//! A [`Packet`] owns its memory: of the heap, or a buffer that a link has lent ([`Memory`], [`Lender`]). Who works on a packet
//! need not know which; a lent buffer goes back to its lender when the packet is dropped, or is sent by a link as it is.
//! All `unsafe` is in `memory.rs`.
#![deny(unsafe_code)]

#[allow(unsafe_code)]
mod memory;
mod packet;

pub use memory::{Lender, Memory};
pub use packet::Packet;
