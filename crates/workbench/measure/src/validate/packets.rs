//! The packets that both are given.

use std::path::Path;

use forebay_sim::{Scenario, Stream};
use forebay_time::Time;

use super::settings::Settings;
use crate::Error;

/// Shortest and longest plain packet in bytes: a tunnel's overhead still fits an Ethernet frame.
pub const LENGTHS: (u32, u32) = (40, 1_400);

/// A plain packet and when it arrives.
#[derive(Clone, Copy, Debug)]
pub struct Plain {
    /// When, from the start.
    pub at: Time,
    /// Length of the IP packet in bytes.
    pub len: u32,
    /// Which SA is to take it.
    pub sa: u32,
}

/// Draws packets back to back at a rate, as a scenario would have them.
pub fn draw(settings: &Settings, rate: &str) -> Result<Vec<Plain>, Error> {
    let (min, max) = LENGTHS;
    let text = format!(
        "model = \"host\"\nseed = {}\n[traffic]\nsource = \"exponential\"\nmean = {}\nmin = {min}\nmax = {max}\n\
         packets = {}\nsas = {}\noverhead = 0\nrate = {rate:?}\n[[processor]]\nname = \"cpu\"\nkind = \"cpu\"\n\
         init = \"0 s\"\nblock = \"1 ns\"\n",
        settings.seed, settings.mean, settings.packets, settings.sas
    );
    let scenario = Scenario::parse(&text, "the packets", &[], Path::new("."))?;
    let stream = Stream::new(&scenario.traffic, scenario.seed);
    Ok(stream.map(|one| Plain { at: one.at, len: one.bytes, sa: one.sa }).collect())
}

/// Fills `buffer` with an IPv4 packet of `len` bytes for an SA.
pub fn write(buffer: &mut [u8], plain: &Plain) {
    let len = plain.len as u16;
    buffer[..20].copy_from_slice(&[
        0x45,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        64,
        17,
        0,
        0,
        10,
        250,
        0,
        1,
        10,
        plain.sa as u8,
        0,
        1,
    ]);
    forebay_wire::ipv4::rewrite(buffer, 20, len, 17);
}
