//! A real capture through policies, AH around ESP, and IP-TFS, by `forebay seal` and `forebay open` alone; and
//! ICMP messages about packets that are too big.

use std::path::Path;
use std::process::{Command, Output};

use forebay_links::capture::Reader;
use serde_json::Value;

const TRAFFIC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../demo/traffic.pcap");

/// SAs and policies of one direction: DNS in the clear, other UDP aggregated, the rest in ESP in AH.
fn sas(direction: &str, local: &str, remote: &str) -> String {
    let sa = |name: &str, spi: u32, proposal: &str, more: &str| {
        format!(
            "[[sa]]\nname = \"{name}\"\ndirection = \"{direction}\"\nspi = {spi}\nproposal = \"{proposal}\"\n\
             local = \"{local}\"\nremote = \"{remote}\"\n{more}\n"
        )
    };
    let policy = |more: &str| format!("[[policy]]\nname = \"p\"\ndirection = \"{direction}\"\n{more}\n");
    let key = |len: usize| "5c".repeat(len);
    [
        sa("esp", 0x1001, "aes128gcm16", &format!("key = \"{}\"\nouter = \"ah\"\nlife_packets = \"1M\"", key(20))),
        sa(
            "ah",
            0x1002,
            "sha256",
            &format!("auth_key = \"{}\"\nprotocol = \"ah\"\nmode = \"transport\"", key(32)),
        ),
        sa(
            "tfs",
            0x1003,
            "aes256gcm16",
            &format!(
                "key = \"{}\"\nesn = true\nreplay_window = 1024\niptfs = {{ packet_size = 1400, max_delay = \"2ms\" }}",
                key(36)
            ),
        ),
        policy("action = \"bypass\"\nremote_ts = [\"[udp/53]\"]"),
        policy("action = \"bypass\"\nlocal_ts = [\"[udp/53]\"]"),
        policy("action = \"protect\"\nremote_ts = [\"[udp]\"]\nsa = \"tfs\""),
        policy("action = \"protect\"\nsa = \"esp\""),
    ]
    .concat()
}

fn forebay(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
    command.args(args).current_dir(folder).env("FOREBAY_STATE", folder.join("state"));
    command.env("NO_COLOR", "1").output().unwrap()
}

fn json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn frames(path: &Path) -> Vec<Vec<u8>> {
    let mut reader = Reader::open(path).unwrap();
    let mut frames = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        frames.push(record.data.to_vec());
    }
    frames
}

#[test]
fn every_packet_of_a_real_capture_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("out.toml"), sas("out", "192.0.2.1", "192.0.2.2")).unwrap();
    std::fs::write(folder.join("in.toml"), sas("in", "192.0.2.2", "192.0.2.1")).unwrap();
    let plain = frames(Path::new(TRAFFIC));

    let args = ["seal", "--sas", "out.toml", TRAFFIC, "-o", "sealed.pcap", "--state", "st", "--json"];
    let sealed = json(&forebay(folder, &args));
    assert_eq!(sealed["packets_in"], plain.len());
    assert_eq!(sealed["drops"], Value::Object(Default::default()));
    assert!(sealed["packets_out"].as_u64() < sealed["packets_in"].as_u64(), "some share a payload");
    let wire = frames(&folder.join("sealed.pcap"));
    let protocol = |frame: &Vec<u8>| frame[23];
    let count =
        |wanted| wire.iter().filter(|frame| frame[12..14] == [8, 0] && protocol(frame) == wanted).count();
    assert!(count(51) > 1_000 && count(50) > 1_000, "{} of AH, {} of ESP alone", count(51), count(50));

    let opened =
        json(&forebay(folder, &["open", "--sas", "in.toml", "sealed.pcap", "-o", "open.pcap", "--json"]));
    assert_eq!(opened["drops"], Value::Object(Default::default()));
    assert_eq!(opened["packets_out"], plain.len());
    // Aggregated packets wait for others, so only what each flow had keeps its order; and they come out of a
    // frame whose Ethernet header may have been another's.
    let sorted = |frames: Vec<Vec<u8>>| {
        let mut packets: Vec<Vec<u8>> = frames.into_iter().map(|frame| frame[14..].to_vec()).collect();
        packets.sort();
        packets
    };
    assert!(sorted(frames(&folder.join("open.pcap"))) == sorted(plain), "the same packets, each once");
}

#[test]
fn sources_of_packets_too_big_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let text = sas("out", "192.0.2.1", "192.0.2.2").replace("outer = \"ah\"\n", "mtu = 600\n");
    std::fs::write(folder.join("out.toml"), text).unwrap();
    let args = ["seal", "--sas", "out.toml", TRAFFIC, "-o", "sealed.pcap", "--state", "st", "--json"];
    let more = ["--icmp", "icmp.pcap", "--address", "10.1.0.254"];
    let output = forebay(folder, &[&args[..], &more].concat());
    assert_eq!(output.status.code(), Some(1), "packets were left out");
    let figures = json(&output);
    let too_big = figures["drops"]["out_path_mtu"].as_u64().unwrap();
    let answers = figures["answers"].as_u64().unwrap();
    // At most so many at once and a second: RFC 1812 4.3.2.8.
    assert!(too_big > 0 && (1..=too_big).contains(&answers), "{answers} for {too_big}");
    let messages = frames(&folder.join("icmp.pcap"));
    assert_eq!(messages.len() as u64, answers);
    // Without an IPv6 address of the gateway, these are from where the packet was to go.
    let (v4, v6): (Vec<_>, Vec<_>) = messages.into_iter().partition(|message| message[0] >> 4 == 4);
    assert!(!v4.is_empty());
    for message in v6 {
        assert_eq!((message[6], &message[40..42]), (58, &[2, 0][..]), "packet too big (RFC 4443 3.2)");
    }
    for message in v4 {
        assert_eq!((message[9], &message[12..16]), (1, &[10, 1, 0, 254][..]));
        assert_eq!(&message[20..22], [3, 4]);
        // 600 - 20 - 8 - 8 - 16 = 548 bytes of text, less the trailer.
        assert_eq!(&message[26..28], 546u16.to_be_bytes());
    }
}
