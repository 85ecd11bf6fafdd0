//! A RISC-V core (docs/models.md, "Embedded cores"): RV32IMC with scalar cryptography and custom instructions, or
//! RV64IMC with scalar and vector cryptography, computed exactly, and timed as an in-order five-stage pipeline with
//! caches, a write buffer and a memory interface.
//!
//! The specifications: The RISC-V Instruction Set Manual volume I (unprivileged ISA 20240411, with chapter 31, "V"
//! 1.0), RISC-V Cryptography Extensions volume I (scalar, 1.0.1) and volume II (vector, 1.0).
//!
//! What a program computes and how long it takes are apart. The [`Core`] executes and writes a [`Trace`]:
//! which blocks of code ran, the addresses of their loads and stores, and how long their vectors were. A [`Timing`] reads it and counts
//! cycles. Neither caches nor penalties change what is computed, so one execution serves any number of
//! configurations, and each counts what it would have counted alone. The exception, a program that reads
//! `cycle`, is noticed ([`Stop::NeedsClock`]).
//!
//! Pure: no I/O, no clock, no randomness that is not seeded. \[E\] is Potlapally et al., whom docs/models.md names.

mod call;
mod core;
mod csr;
mod custom;
mod decode;
mod execute;
mod expand;
mod fault;
mod instruction;
mod memory;
mod program;
mod scalar_crypto;
mod timing;
mod vector;
mod word;

pub use call::{Function, Node, ROOT};
pub use core::{Core, Sink, Stop};
pub use custom::{Clash, Custom, CustomCall, Definition, Semantics};
pub use decode::{Extension, Isa, VLEN, decode};
pub use expand::expand;
pub use fault::{Fault, FaultKind};
pub use instruction::{Class, Instruction, Op};
pub use memory::{Memory, PortAnswer, Ports, Silent, Width};
pub use program::{Code, End, Program, Trace};
pub use scalar_crypto::{INVERSE_SBOX, SBOX};
pub use timing::{
    Account, Branches, Cache, CacheConfig, Cause, Cell, Config, Event, Misses, Policy, Port, Replacement,
    Timing, VectorConfig, Windows, WriteBuffer,
};
pub use word::{Word, Xlen};
