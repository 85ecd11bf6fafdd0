//! Writes a gateway configuration with imported SAs and policies.

use std::fmt::Write;

use forebay_crypto::Direction;
use forebay_ipsec::{
    Action, DontFragment, Dscp, Ecn, Encapsulation, InnerDscp, Mode, Protocol, SaConfig, TrafficSelector,
};
use forebay_time::Duration;
use zeroize::Zeroizing;

use super::{Imported, ImportedSa};

/// A file with a key, for mode 0600.
pub struct KeyFile {
    /// Its name, relative to the directory of the gateway's file.
    pub name: String,
    /// What it holds: hex.
    pub text: Zeroizing<String>,
}

/// A gateway's file and the keys that it names.
pub struct Written {
    /// The file, with keys only if they were wanted inside.
    pub text: Zeroizing<String>,
    /// The files that it names.
    pub keys: Vec<KeyFile>,
}

/// Makes a gateway's file; `origin` is said in its first line. Keys go into files whose names begin with
/// `folder`, or with `None` into the file itself.
pub fn write(imported: &Imported, origin: &str, folder: Option<&str>) -> Written {
    // Of the right size at once: what grows leaves copies behind.
    let size = 4_096 + 1_024 * (imported.sas.len() + imported.policies.len()) + 256 * imported.remarks.len();
    let mut text = Zeroizing::new(String::with_capacity(size));
    let mut keys = Vec::new();
    push(&mut text, format_args!("# Taken over from {}\n", origin.replace(char::is_control, " ")));
    for remark in &imported.remarks {
        let what = if remark.lost { "NOT TAKEN OVER" } else { "note" };
        let (line, words, reason) = (remark.line, &remark.text, &remark.reason);
        push(&mut text, format_args!("# {what}, line {line}: {words}: {reason}\n"));
    }
    push(&mut text, format_args!("\n[inside]\nname = \"forebay0\"\n# addresses = [\"10.1.0.1/32\"]\n"));
    let any = |wanted: fn(&SaConfig) -> bool| imported.sas.iter().any(|sa| wanted(&sa.config));
    if any(|config| config.encapsulation == Encapsulation::Udp) {
        push(&mut text, format_args!("\n[[outside]]\nkind = \"udp\"\n"));
    }
    if any(|config| config.encapsulation == Encapsulation::None) || imported.sas.is_empty() {
        push(&mut text, format_args!("\n[[outside]]\nkind = \"raw\"\n"));
    }
    push(&mut text, format_args!("\n[keys]\nsource = \"static\"\n"));
    for sa in &imported.sas {
        push_sa(&mut text, sa, imported, folder, &mut keys);
    }
    for policy in &imported.policies {
        let (action, sas): (_, &[_]) = match &policy.action {
            Action::Protect(sas) => ("protect", sas),
            Action::Bypass => ("bypass", &[]),
            Action::Discard => ("discard", &[]),
        };
        push(&mut text, format_args!("\n[[policy]]\nname = {}\n", quoted(&policy.name)));
        push(&mut text, format_args!("direction = \"{}\"\naction = \"{action}\"\n", word(policy.direction)));
        let names = sas.iter().filter_map(|session| imported.sas.get(session.0 as usize));
        let names: Vec<String> = names.map(|sa| quoted(&sa.config.name)).collect();
        if !names.is_empty() {
            push(&mut text, format_args!("sa = [{}]\n", names.join(", ")));
        }
        push_selectors(&mut text, &policy.local_ts, &policy.remote_ts);
    }
    Written { text, keys }
}

fn push(text: &mut String, words: std::fmt::Arguments<'_>) {
    text.write_fmt(words).expect("a string takes everything");
}

fn word(direction: Direction) -> &'static str {
    if direction == Direction::Seal { "out" } else { "in" }
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn push_sa(
    text: &mut String,
    sa: &ImportedSa,
    imported: &Imported,
    folder: Option<&str>,
    keys: &mut Vec<KeyFile>,
) {
    let config = &sa.config;
    push(
        text,
        format_args!("\n[[sa]]\nname = {}\ndirection = \"{}\"\n", quoted(&config.name), word(sa.direction)),
    );
    push(text, format_args!("spi = {}\n", config.spi));
    if config.protocol == Protocol::Ah {
        push(text, format_args!("protocol = \"ah\"\n"));
    }
    if config.mode == Mode::Transport {
        push(text, format_args!("mode = \"transport\"\n"));
    }
    push(text, format_args!("proposal = \"{}\"\n", config.suite));
    if config.suite.is_weak() {
        push(text, format_args!("allow_weak = true\n"));
    }
    for (key, hex, ending) in [("key", &sa.key, "key"), ("auth_key", &sa.auth_key, "auth")] {
        match folder {
            _ if hex.is_empty() => {}
            None => push(text, format_args!("{key} = \"{}\"\n", **hex)),
            Some(folder) => {
                let name = format!("{folder}{}.{ending}", config.name);
                push(text, format_args!("{key}_file = {}\n", quoted(&name)));
                keys.push(KeyFile { name, text: hex.clone() });
            }
        }
    }
    push(text, format_args!("local = \"{}\"\nremote = \"{}\"\n", config.local, config.remote));
    if config.encapsulation == Encapsulation::Udp {
        push(text, format_args!("encapsulation = \"udp\"\n"));
    }
    if config.esn {
        push(text, format_args!("esn = true\n"));
    }
    if config.replay_window != 64 {
        push(text, format_args!("replay_window = {}\n", config.replay_window));
    }
    if let Some(cpu) = config.cpu {
        push(text, format_args!("cpu = {cpu}\n"));
    }
    if let Some(outer) = sa.outer.and_then(|place| imported.sas.get(place)) {
        push(text, format_args!("outer = {}\n", quoted(&outer.config.name)));
    }
    if config.mode == Mode::Tunnel {
        push_tunnel(text, config);
    }
    push_lifetime(text, config);
    push_selectors(text, &config.local_ts, &config.remote_ts);
}

fn push_tunnel(text: &mut String, config: &SaConfig) {
    let copy = match (config.tunnel.dscp, config.tunnel.inner_dscp) {
        (Dscp::Copy, InnerDscp::Keep) => None,
        (Dscp::Copy, InnerDscp::FromOuter) => Some("yes"),
        (Dscp::Set(_), InnerDscp::FromOuter) => Some("in"),
        (Dscp::Set(_), InnerDscp::Keep) => Some("no"),
    };
    if let Some(copy) = copy {
        push(text, format_args!("copy_dscp = \"{copy}\"\n"));
    }
    if config.tunnel.ecn == Ecn::Compatibility {
        push(text, format_args!("copy_ecn = false\n"));
    }
    match config.tunnel.dont_fragment {
        DontFragment::Copy => {}
        DontFragment::Set => push(text, format_args!("df = \"set\"\n")),
        DontFragment::Clear => push(text, format_args!("df = \"clear\"\n")),
    }
}

fn push_lifetime(text: &mut String, config: &SaConfig) {
    let (soft, hard) = (&config.lifetime.soft, &config.lifetime.hard);
    let time = |time: Option<Duration>| time.map(|time| format!("{}", time.as_secs() as u64));
    let count = |count: Option<u64>| count.map(|count| count.to_string());
    for (key, value) in [
        ("rekey_time", time(soft.time)),
        ("life_time", time(hard.time)),
        ("rekey_use_time", time(soft.use_time)),
        ("life_use_time", time(hard.use_time)),
        ("rekey_bytes", count(soft.bytes)),
        ("life_bytes", count(hard.bytes)),
        ("rekey_packets", count(soft.packets)),
        ("life_packets", count(hard.packets)),
    ] {
        if let Some(value) = value {
            push(text, format_args!("{key} = {value}\n"));
        }
    }
}

fn push_selectors(text: &mut String, local: &[TrafficSelector], remote: &[TrafficSelector]) {
    for (key, selectors) in [("local_ts", local), ("remote_ts", remote)] {
        if !selectors.is_empty() {
            let list: Vec<String> = selectors.iter().map(|selector| quoted(&selector.to_string())).collect();
            push(text, format_args!("{key} = [{}]\n", list.join(", ")));
        }
    }
}
