//! What the tests of the SAs file share.
#![allow(dead_code)]

use std::convert::Infallible;
use std::os::unix::fs::PermissionsExt;

use forebay_crypto::SaKeys;
use forebay_ipsec::IvRange;
use forebay_sas::{SasFile, load};
use miette::{GraphicalReportHandler, GraphicalTheme};

/// Cipher key and salt of the sample.
pub const KEY: &str = "f1e2d3c4b5a697887766554433221100aabbccdd";
/// Cipher key of the sample's second SA.
pub const CBC_KEY: &str = "0a1b2c3d4e5f60718293a4b5c6d7e8f9";
/// Integrity key of the sample's second SA.
pub const AUTH_KEY: &str = "9f8e7d6c5b4a39281706f5e4d3c2b1a09f8e7d6c5b4a39281706f5e4d3c2b1a0";

/// Two SAs without fault; the first begins on line 1, the second on line 9.
pub fn sample() -> String {
    format!(
        r#"[[sa]]
name = "east-out"
direction = "out"
spi = 0x1001
proposal = "aes128gcm16"
key = "{KEY}"
local = "192.0.2.1"
remote = "192.0.2.2"
[[sa]]
direction = "in"
spi = "0x1002"
protocol = "esp"
mode = "transport"
proposal = "aes128-sha256"
key = "{CBC_KEY}"
auth_key = "{AUTH_KEY}"
local = "2001:db8::1"
remote = "2001:db8::2"
esn = true
replay_window = 0
encapsulation = "udp"
allow_weak = true
local_ts = ["10.1.0.0/16", "2001:db8:1::/48"]
remote_ts = ["10.2.0.7"]
"#
    )
}

/// Reads `text` from a file called SAS.toml, with `files` beside it, and renders what comes of it.
pub fn outcome(text: &[u8], files: &[(&str, &[u8])]) -> Result<SasFile, String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("SAS.toml");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    for (name, content) in files {
        std::fs::write(directory.path().join(name), content).unwrap();
    }
    load(&path).map_err(|errors| {
        let rendered = rendered(&errors);
        assert_secret(&[&rendered, &format!("{errors}"), &format!("{errors:?} {errors:#?}")], 8);
        rendered.replace(&format!("{}/", directory.path().display()), "")
    })
}

/// The sample with `from` replaced, once, must bring errors: returns them rendered.
pub fn rejected(from: &str, to: &str) -> String {
    let sample = sample();
    assert!(sample.contains(from), "{from}");
    match outcome(sample.replacen(from, to, 1).as_bytes(), &[]) {
        Ok(_) => panic!("accepted: {to}"),
        Err(rendered) => rendered,
    }
}

/// As a terminal without colours shows it.
pub fn rendered(diagnostic: &dyn miette::Diagnostic) -> String {
    let mut rendered = String::new();
    GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor())
        .with_width(200)
        .render_report(&mut rendered, diagnostic)
        .unwrap();
    rendered
}

/// IVs for keys that nothing else ever uses.
pub fn ivs(keys: Vec<&SaKeys>) -> Result<Vec<IvRange>, Infallible> {
    Ok(keys.iter().map(|_| IvRange::for_throwaway_key()).collect())
}

/// No text holds `run` consecutive digits of any key.
pub fn assert_secret(texts: &[&str], run: usize) {
    for text in texts {
        for key in [KEY, CBC_KEY, AUTH_KEY] {
            for window in key.as_bytes().windows(run) {
                let window = std::str::from_utf8(window).unwrap();
                assert!(!text.contains(window), "{window} of a key in:\n{text}");
                assert!(!text.contains(&window.to_uppercase()), "{window} of a key in:\n{text}");
            }
        }
    }
}

/// Every piece occurs.
#[track_caller]
pub fn assert_says(text: &str, pieces: &[&str]) {
    for piece in pieces {
        assert!(text.contains(piece), "missing: {piece}\nin:\n{text}");
    }
}

/// The first SA of the sample, outbound and in tunnel mode, with `more` from line 9 on.
pub fn one_with(more: &str) -> String {
    let sample = sample();
    let (one, _) = sample.split_once("[[sa]]\ndirection").unwrap();
    format!("{one}{more}\n")
}

/// The SA of [`one_with`] must bring errors: returns them rendered.
pub fn refused(more: &str) -> String {
    match outcome(one_with(more).as_bytes(), &[]) {
        Ok(file) => panic!("accepted: {more}\n{file:?}"),
        Err(rendered) => rendered,
    }
}

/// An SA of eight lines called `name` with a cipher key of its own, and with `more` behind it.
pub fn named(name: &str, direction: &str, spi: u32, more: &str) -> String {
    let key = format!("{}{spi:08x}", &KEY[..24]) + &KEY[32..];
    format!(
        "[[sa]]\nname = \"{name}\"\ndirection = \"{direction}\"\nspi = 0x1{spi:03x}\nproposal = \"aes128gcm16\"\n\
         key = \"{key}\"\nlocal = \"192.0.2.1\"\nremote = \"192.0.2.2\"\n{more}\n"
    )
}

/// A file without fault that has every setting.
pub fn full() -> String {
    let tunnel = r#"classes = ["ef", "af41-af43", 10]
outer = "around"
check_padding = true
follow_peer = true
copy_dscp = "in"
dscp = "ef"
copy_ecn = false
copy_df = false
df = "set"
flow_label = "hash"
ttl = 32
mtu = 1400
tfc_padding = "mtu"
life_time = "1h"
rekey_time = 3000
life_use_time = "30m"
rekey_use_time = "90s"
life_bytes = "10G"
rekey_bytes = 9000
life_packets = "4Mi"
rekey_packets = "1k"
[sa.iptfs]
packet_size = 1300
rate = 1000
max_delay = "1ms"
fragment = false
reorder_window = 8
lost_after = "20ms"
queue = 100000
congestion = true
ecn = true"#;
    let policies = r#"[[policy]]
name = "voice"
direction = "out"
action = "protect"
sa = ["inner"]
local_ts = ["10.1.0.0/16[udp]"]
remote_ts = ["10.2.0.0/16"]
classes = ["ef"]
[[policy]]
direction = "out"
action = "bypass"
[[policy]]
direction = "in"
action = "discard"
"#;
    named("inner", "out", 1, tunnel) + &named("around", "out", 2, "") + policies
}
