//! `[keys]`: where SAs and policies come from.

use std::path::PathBuf;

use forebay_scenario::{Decimal, Table, Value};
use forebay_time::Duration;

use super::reader::{Context, Reader, tables};

/// Where SAs and policies come from, and how their IVs are kept apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    /// Files, or the kernel.
    pub source: KeySource,
    /// Where the IVs that may have been used are noted; `None`: the user's state directory.
    pub state: Option<PathBuf>,
    /// IVs reserved per outbound SA at a time.
    pub iv_reserve: u64,
}

/// Where SAs and policies come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// This file, or the one that it names.
    Static {
        /// The file of SAs and policies, if it is another.
        sas: Option<PathBuf>,
        /// Whether what RFC 8221 3 says against such keys is known and accepted.
        accepted: bool,
    },
    /// The kernel.
    Xfrm(Xfrm),
}

/// What is taken over from the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Xfrm {
    /// Only with this mark; `None` for those that have none.
    pub mark: Option<Mark>,
    /// Only with this interface ID; `None` for those that have none.
    pub if_id: Option<u32>,
    /// Policies too.
    pub policies: bool,
    /// Whether peers that have moved are followed.
    pub follow_peer: bool,
    /// How often counters go back to the kernel; `None` for never.
    pub report: Option<Duration>,
    /// Room in the kernel for events, in bytes.
    pub netlink_buffer: usize,
}

/// A mark with the bits of it that count (`XFRMA_MARK`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The mark.
    pub value: u32,
    /// The bits that are compared.
    pub mask: u32,
}

/// Reads `[keys]`; absent, keys are static.
pub(super) fn read(top: &Table, context: &Context<'_>) -> Option<Keys> {
    let none = Table::default();
    let tables = tables(top, "keys", context);
    let (table, place) = tables.into_iter().next().unwrap_or((&none, super::whole()));
    let (section, source) = Reader::of_kind("keys", "source", table, place, context);
    let state = section.path("state");
    let iv_reserve = section.whole("iv_reserve");
    let source = match source? {
        "xfrm" => KeySource::Xfrm(xfrm(&section)?),
        _ => {
            let accepted = section.word("manual_keying")? == "accepted";
            KeySource::Static { sas: section.path("sas"), accepted }
        }
    };
    Some(Keys { source, state, iv_reserve: iv_reserve? })
}

fn xfrm(section: &Reader<'_>) -> Option<Xfrm> {
    let mark = match section.has("mark") {
        true => mark(section).map(Some),
        false => Some(None),
    };
    let if_id = section.whole("if_id").map(|id| id as u32);
    let policies = section.flag("policies");
    let follow_peer = section.flag("follow_peer");
    let report = section.time("report");
    let netlink_buffer = section.count("netlink_buffer");
    Some(Xfrm {
        mark: mark?,
        if_id,
        policies: policies?,
        follow_peer: follow_peer?,
        report: report.map(|time| (time > Duration::ZERO).then_some(time))?,
        netlink_buffer: netlink_buffer?,
    })
}

/// A number, or number and mask, as `ip xfrm` writes them.
fn mark(section: &Reader<'_>) -> Option<Mark> {
    const KEY: &str = "mark";
    let values = section.values();
    let node = values.node(KEY)?;
    let number = |text: &str| match text.trim().strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.trim().parse().ok(),
    };
    let (found, read) = match &node.value {
        Value::Number(digits) => {
            let value =
                Decimal::parse(digits).and_then(Decimal::as_whole).and_then(|n| u32::try_from(n).ok());
            (digits, value.map(|value| Mark { value, mask: u32::MAX }))
        }
        Value::Text(text) => {
            let (value, mask) = text.split_once('/').unwrap_or((text, "0xffffffff"));
            (text, number(value).zip(number(mask)).map(|(value, mask)| Mark { value, mask }))
        }
        _ => {
            section.conflict(KEY, "`mark` is not a mark", "expected a number, or \"0x42/0xff\"");
            return None;
        }
    };
    if read.is_none() {
        section.bad(KEY, found, "expected a number of 32 bits, or \"0x42/0xff\"", node.place.clone());
    }
    if let Some(mark) = read.filter(|mark| mark.value & !mark.mask != 0) {
        let message = format!("the mark {:#x} has bits outside its mask {:#x}", mark.value, mark.mask);
        section.conflict(
            KEY,
            message,
            "nothing can match: set these bits in the mask, or clear them in the mark",
        );
    }
    read
}
