//! Firmware on simulated cores (`spec/models.md` section 4).

pub mod elf;
