//! The control socket and metrics ([`forebay_control`]), and the parts of the running gateway that answer them.

pub mod gather;

pub use forebay_control::*;
