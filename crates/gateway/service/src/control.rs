//! The control socket and metrics ([`forebay_control`]), and what of the running gateway answers them.

pub mod gather;

pub use forebay_control::*;
