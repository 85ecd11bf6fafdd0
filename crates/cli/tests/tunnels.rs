//! `forebay keygen` and `forebay tunnel` as their users meet them: what they write is read by the gateway's reader, and both
//! sides open what the other one seals.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const SIDES: [&str; 4] = ["--side", "west=192.0.2.1,10.1.0.0/16", "--side", "east=192.0.2.2,10.2.0.0/16"];

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
        command
            .args(args)
            .current_dir(self.0.path())
            .env("NO_COLOR", "1")
            .env("FOREBAY_STATE", self.path("state"));
        command.stdin(std::process::Stdio::null()).output().unwrap()
    }

    fn good(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}\n{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn refused(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    fn new_tunnel(&self, more: &[&str]) -> String {
        self.good(&[&["tunnel", "new"], &SIDES[..], more].concat())
    }

    /// The SAs of a gateway's file, as a file of SAs beside it.
    fn sas(&self, gateway: &str) -> String {
        let text = self.text(gateway);
        let path = Path::new(gateway).with_extension("sas");
        fs::write(self.path(path.to_str().unwrap()), &text[text.find("[[sa]]").unwrap()..]).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// A capture of raw IP with packets of protocol 17 from 10.1.0.9 to 10.2.0.9.
fn capture(from: [u8; 4], to: [u8; 4]) -> Vec<u8> {
    let mut file = vec![];
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65535, 101] {
        file.extend(word.to_le_bytes());
    }
    for n in 0..20_u8 {
        let mut packet = vec![0x45, 0, 0, 40, 0, n, 0, 0, 64, 17, 0, 0];
        packet.extend(from);
        packet.extend(to);
        let sum: u32 = packet.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
        let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet.extend([0, 7, 0, 7, 0, 20, 0, 0]);
        packet.extend([n; 12]);
        for word in [u32::from(n), 0, packet.len() as u32, packet.len() as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend(packet);
    }
    file
}

/// Seals at one side and opens at the other; whether every packet came back.
fn passes(folder: &Folder, sealer: &str, opener: &str, westward: bool) -> bool {
    let (west, east) = ([10, 1, 0, 9], [10, 2, 0, 9]);
    let plain = if westward { capture(east, west) } else { capture(west, east) };
    fs::write(folder.path("plain.pcap"), &plain).unwrap();
    let seal = folder.run(&["seal", "--sas", &folder.sas(sealer), "plain.pcap", "-o", "sealed.pcap"]);
    assert_eq!(seal.status.code(), Some(0), "{}", String::from_utf8_lossy(&seal.stderr));
    let open = folder.run(&["open", "--sas", &folder.sas(opener), "sealed.pcap", "-o", "opened.pcap"]);
    let opened = fs::read(folder.path("opened.pcap")).unwrap();
    open.status.code() == Some(0) && opened.ends_with(&plain[24..])
}

#[test]
fn keys_have_their_lengths_and_are_never_shown_nor_replaced() {
    let folder = Folder::new();
    let said = folder.good(&["keygen", "--proposal", "aes128gcm16", "a.key", "b.key"]);
    let (a, b) = (folder.text("a.key"), folder.text("b.key"));
    assert!(a.trim().len() == 40 && b.trim().len() == 40 && a != b && !said.contains(a.trim()), "{said}");
    assert!(said.contains("a.key: 20 bytes (16 of key, 4 of salt)"), "{said}");
    assert_eq!(fs::metadata(folder.path("a.key")).unwrap().permissions().mode() & 0o777, 0o600);
    folder.good(&["keygen", "c.key"]);
    assert_eq!((folder.text("c.key").trim().len(), folder.text("c.auth").trim().len()), (64, 64));
    for (args, expected) in [
        (&["keygen", "d.key", "a.key"][..], "a.key exists, and keys are never overwritten"),
        (&["keygen", "--suite", "aes128gcm17", "d.key"], "did you mean `aes128gcm"),
        (&["keygen", "--suite", "aes128", "d.key"], "RFC 8221 says MUST NOT"),
        (&["keygen", "d.key", "d.key"], "would be written twice"),
        (&["keygen", "d.key", "./d.key"], "./d.key would be written twice"),
        (&["keygen", "d.auth"], "the ending `.auth` is that of the integrity key's file"),
        (&["keygen", "."], ". is not the name of a file"),
        (&["keygen", "-"], "- is not the name of a file"),
        (
            &["keygen", "--suite", "nonsense", "d.key"],
            "unknown proposal `nonsense`; there are aes{128,192,256}",
        ),
    ] {
        let said = folder.refused(args);
        assert!(said.contains(expected), "{said}");
    }
    assert_eq!(folder.text("a.key"), a);
    assert!(!folder.path("d.key").exists());
}

#[test]
fn both_sides_of_a_new_tunnel_read_each_other() {
    for proposal in ["aes256-sha256", "aes128gcm16", "chacha20poly1305"] {
        let folder = Folder::new();
        let said = folder.new_tunnel(&["--proposal", proposal]);
        assert!(said.contains("scp -rp ./west root@192.0.2.1:"), "{said}");
        for path in files(folder.0.path()) {
            assert_eq!(
                fs::metadata(&path).unwrap().permissions().mode() & 0o777,
                0o600,
                "{}",
                path.display()
            );
            let text = fs::read_to_string(&path).unwrap();
            assert!(path.ends_with("gateway.toml") || !said.contains(text.trim()), "a key was shown");
        }
        for side in ["west", "east"] {
            // Of manual keys there are warnings: nothing ends them, and RFC 8221 3 forbids AEADs with them.
            let said = folder.good(&["check", "--offline", "--config", &format!("{side}/gateway.toml")]);
            let expected = "valid (2 SAs, 0 policies, 1 link to peers, 1 processor; ";
            assert!(said.contains(expected), "{said}");
        }
        assert!(passes(&folder, "west/gateway.toml", "east/gateway.toml", false));
        assert!(passes(&folder, "east/gateway.toml", "west/gateway.toml", true));
        let said = folder.refused(&[&["tunnel", "new"], &SIDES[..]].concat());
        assert!(said.contains("west exists"), "{said}");
    }
}

#[test]
fn sides_that_do_not_go_together_are_refused() {
    let folder = Folder::new();
    for (sides, expected) in [
        (vec!["west=192.0.2.1,10.1.0.0/16"], "found 1 side, expected 2"),
        (vec!["a=192.0.2.1,10.1.0.0/16", "a=192.0.2.2,10.2.0.0/16"], "both sides are called `a`"),
        (vec!["a=192.0.2.1,10.1.0.0/16", "b=192.0.2.1,10.2.0.0/16"], "both sides have the address"),
        (vec!["a=192.0.2.1,10.1.0.0/16", "b=2001:db8::1,10.2.0.0/16"], "different IP versions"),
        (vec!["a=192.0.2.1,10.1.0.0/16", "b=192.0.2.2,10.1.2.0/24"], "overlap"),
        (
            vec!["a=192.0.2.1,10.1.0.0/16,10.1.2.0/24", "b=192.0.2.2,10.2.0.0/16"],
            "in 10.1.0.0/16 of the same",
        ),
        (vec!["a=192.0.2.1,10.1.0.0/16", "b=192.0.2.2,192.0.0.0/16"], "contains 192.0.2.2"),
        (vec!["a=192.0.2.1,10.1.0.0/16", "b=192.0.2.2,10.2.0.0/16,fd02::/48"], "has its IP version"),
    ] {
        let words: Vec<&str> = sides.iter().flat_map(|side| ["--side", side]).collect();
        let said = folder.refused(&[&["tunnel", "new"], &words[..]].concat());
        assert!(said.contains(expected), "{said}");
    }
    let twice = ["--behind-nat", "west=10.0.0.5", "--behind-nat", "west=10.0.0.6"];
    let said = folder.refused(&[&["tunnel", "new"], &SIDES[..], &twice].concat());
    assert!(said.contains("`--behind-nat west` is given twice"), "{said}");
    let raw = ["--link", "raw", "--behind-nat", "west=10.0.0.5"];
    let said = folder.refused(&[&["tunnel", "new"], &SIDES[..], &raw].concat());
    assert!(said.contains("use `--link udp`"), "{said}");
    assert_eq!(fs::read_dir(folder.0.path()).unwrap().count(), 0);
}

#[test]
fn printed_commands_work_as_they_are_and_outlast_a_reboot() {
    let folder = Folder::new();
    let said = folder.good(&[&["tunnel", "new", "--out", "my $dir"], &SIDES[..]].concat());
    assert!(said.contains("scp -rp 'my $dir/west' root@192.0.2.1:"), "{said}");
    assert!(said.contains("net.ipv4.ip_forward=1 >>/etc/sysctl.d/90-forebay.conf"), "{said}");
    assert!(said.contains("On a host that already has /etc/forebay/gateway.toml, add the [[sa]]"), "{said}");
}

#[test]
fn a_side_behind_a_nat_has_its_own_address_and_its_peer_the_translated_one() {
    let folder = Folder::new();
    folder.new_tunnel(&["--behind-nat", "west=172.31.0.5"]);
    assert!(folder.text("west/gateway.toml").contains("local = \"172.31.0.5\"\nremote = \"192.0.2.2\""));
    assert!(folder.text("east/gateway.toml").contains("local = \"192.0.2.2\"\nremote = \"192.0.2.1\""));
}

#[test]
fn a_side_with_a_host_name_has_its_own_address_and_its_peer_the_name() {
    let folder = Folder::new();
    let sides = ["--side", "west=west.example.org,10.1.0.0/16", "--side", "east=192.0.2.2,10.2.0.0/16"];
    let said = folder.refused(&[&["tunnel", "new"], &sides[..]].concat());
    assert!(said.contains("add `--behind-nat west=ADDRESS`"), "{said}");
    let own = ["--behind-nat", "west=192.168.1.2"];
    folder.good(&[&["tunnel", "new"], &sides[..], &own].concat());
    assert!(folder.text("west/gateway.toml").contains("local = \"192.168.1.2\"\nremote = \"192.0.2.2\""));
    assert!(
        folder.text("east/gateway.toml").contains("local = \"192.0.2.2\"\nremote = \"west.example.org\"")
    );
    folder.good(&["check", "--offline", "--config", "east/gateway.toml"]);
    folder.good(&[&["tunnel", "new", "--ike", "psk", "--out", "ike"], &sides[..], &own].concat());
    assert!(folder.text("ike/east/swanctl.conf").contains("remote_addrs = west.example.org"));
    assert!(folder.text("ike/west/swanctl.conf").contains("local_addrs = 192.168.1.2"));
}

#[test]
fn an_ike_daemon_gets_its_connection_and_the_gateway_takes_keys_from_the_kernel() {
    for (ike, link) in [("psk", "udp"), ("psk", "raw"), ("cert", "udp")] {
        let folder = Folder::new();
        let said = folder.new_tunnel(&["--ike", ike, "--link", link]);
        for side in ["west", "east"] {
            // A warning where this kernel has no ESP is another matter.
            let output = folder.run(&["check", "--config", &format!("{side}/gateway.toml"), "--json"]);
            assert!(String::from_utf8_lossy(&output.stdout).contains("\"schema\": 1"));
            let text = folder.text(&format!("{side}/gateway.toml"));
            assert!(text.contains("source = \"xfrm\"") && text.contains("mark = 0x4642"), "{text}");
            let connection = folder.text(&format!("{side}/swanctl.conf"));
            assert_eq!(connection.matches('{').count(), connection.matches('}').count(), "{connection}");
            assert!(
                connection.contains("esp_proposals = aes256gcm16")
                    && connection.contains("mark_out = 0x4642")
            );
            assert_eq!(text.contains("beside_ike = true"), link == "udp");
            assert_eq!(connection.contains("encap = yes"), link == "udp");
        }
        if ike == "psk" {
            let secret = |side: &str| {
                let text = folder.text(&format!("{side}/swanctl.conf"));
                let (_, rest) = text.split_once("secret = 0x").unwrap();
                rest.split_whitespace().next().unwrap().to_owned()
            };
            assert_eq!(secret("west"), secret("east"));
            assert!(secret("west").len() == 64 && !said.contains(&secret("west")));
            continue;
        }
        assert!(folder.text("certificates.sh").contains("for name in west east"));
        if Command::new("openssl").arg("version").output().is_err() {
            eprintln!("skipped: openssl is not installed");
            continue;
        }
        let made = Command::new("sh").arg("certificates.sh").current_dir(folder.0.path()).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        for side in ["west", "east"] {
            let verify = ["verify", "-CAfile", "west-east-ca.pem", &format!("{side}/x509/{side}.pem")]
                .map(str::to_owned);
            let verified =
                Command::new("openssl").args(verify).current_dir(folder.0.path()).status().unwrap();
            assert!(verified.success() && folder.path(&format!("{side}/x509ca/west-east-ca.pem")).exists());
        }
    }
}

#[test]
fn the_tutorial_shows_the_files_that_are_written() {
    let folder = Folder::new();
    let said = folder.new_tunnel(&["--ike", "psk"]);
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tutorial-strongswan.md"))
        .unwrap();
    for file in [
        "west/gateway.toml",
        "east/gateway.toml",
        "west/swanctl.conf",
        "east/swanctl.conf",
        "west/strongswan.conf",
    ] {
        let lines = folder.text(file);
        let lines: Vec<&str> = lines
            .lines()
            .map(|line| line.split_once("secret = 0x").map_or(line, |(before, _)| before))
            .collect();
        let shown =
            page.lines().map(|line| line.split_once("secret = 0x").map_or(line, |(before, _)| before));
        let shown: Vec<&str> = shown.collect();
        assert!(
            shown.windows(lines.len()).any(|some| some == lines),
            "docs/tutorial-strongswan.md does not show {file}"
        );
    }
    let commands = said
        .lines()
        .skip_while(|line| !line.starts_with("# west"))
        .skip(2)
        .take_while(|line| !line.is_empty());
    for command in commands {
        assert!(
            page.contains(&format!("\n{}\n", command.trim())),
            "docs/tutorial-strongswan.md lacks `{command}`"
        );
    }
}

#[test]
fn keys_are_rolled_over_in_three_steps_again_and_again() {
    let folder = Folder::new();
    folder.new_tunnel(&[]);
    let mut before = ["west/gateway.toml".to_owned(), "east/gateway.toml".to_owned()];
    for round in 2..5 {
        let out = format!("round-{round}");
        let said = folder.good(&["tunnel", "roll", &before[0], &before[1], "--out", &out]);
        assert!(said.contains("New keys for 2 SAs"), "{said}");
        let step = |side: &str, file: &str| format!("{out}/{side}/{file}");
        // The old keys are on the gateways already.
        for (side, old) in ["west", "east"].iter().zip(&before) {
            let keys = folder.path(old).parent().unwrap().join("keys");
            for path in files(&keys) {
                let copy = folder.path(&format!("{out}/{side}/keys")).join(path.file_name().unwrap());
                assert!(!copy.exists(), "a key has a name of before");
                fs::copy(path, copy).unwrap();
            }
        }
        let (receive, send, last) = ("gateway-1-receive.toml", "gateway-2-send.toml", "gateway.toml");
        for (sealer, opener, works) in [
            (&before[0], &step("east", receive), true),
            (&step("west", receive), &step("east", receive), true),
            (&step("west", send), &step("east", receive), true),
            (&step("west", send), &step("east", send), true),
            (&step("west", last), &step("east", last), true),
            // The wrong order.
            (&step("west", send), &before[1], false),
            (&before[0], &step("east", last), false),
        ] {
            assert_eq!(passes(&folder, sealer, opener, false), works, "{sealer} {opener}");
        }
        assert!(passes(&folder, &step("east", last), &step("west", last), true));
        let text = folder.text(&step("west", last));
        assert!(
            text.starts_with("# The gateway west") && text.contains(&format!("name = \"east-in-{round}\"")),
            "{text}"
        );
        assert!(
            text.contains(&format!("keys/west-to-east-{round}.key"))
                && !text.contains("keys/west-to-east.key")
        );
        before = [step("west", last), step("east", last)];
    }
}

#[test]
fn addresses_of_ipv6_and_both_gateways_of_a_pair() {
    let folder = Folder::new();
    let sides = ["--side", "west=2001:db8::1,fd01::/48", "--side", "east=2001:db8::2,fd02::/48"];
    let said = folder.good(&[&["tunnel", "new"], &sides[..]].concat());
    assert!(
        said.contains("root@[2001:db8::1]:") && said.contains("net.ipv6.conf.all.forwarding=1"),
        "{said}"
    );
    // The other gateway of a pair has the same SAs and keys.
    fs::create_dir_all(folder.path("west-b/keys")).unwrap();
    for file in files(&folder.path("west")) {
        fs::copy(&file, folder.path("west-b").join(file.strip_prefix(folder.path("west")).unwrap())).unwrap();
    }
    let said =
        folder.good(&["tunnel", "roll", "west/gateway.toml", "west-b/gateway.toml", "east/gateway.toml"]);
    assert!(said.contains("New keys for 2 SAs"), "{said}");
    assert_eq!(folder.text("next/west/gateway.toml"), folder.text("next/west-b/gateway.toml"));
    for side in ["west", "west-b", "east"] {
        folder.good(&["check", "--config", &format!("next/{side}/gateway.toml")]);
        assert_eq!(
            folder.text(&format!("next/{side}/keys/west-to-east-2.key")),
            folder.text("next/west/keys/west-to-east-2.key")
        );
    }
}

#[test]
fn policies_name_the_inbound_sa_of_each_step() {
    let folder = Folder::new();
    folder.new_tunnel(&["--proposal", "aes128gcm16"]);
    let policies = "\n# protected\n[[policy]]\nname = \"out\"\ndirection = \"out\"\naction = \"protect\"\nsa = [\"east-out\"]\n\
                    [[policy]]\nname = \"in\"\ndirection = \"in\"\naction = \"protect\"\nsa = [\"east-in\"]\n";
    let text = folder.text("west/gateway.toml") + policies;
    fs::write(folder.path("west/gateway.toml"), text).unwrap();
    folder.good(&["tunnel", "roll", "west/gateway.toml", "east/gateway.toml"]);
    for key in files(&folder.path("west/keys")) {
        fs::copy(&key, folder.path("next/west/keys").join(key.file_name().unwrap())).unwrap();
    }
    for (file, names) in [
        ("gateway-1-receive.toml", "sa = [\"east-in\", \"east-in-2\"]"),
        ("gateway-2-send.toml", "sa = [\"east-in\", \"east-in-2\"]"),
        ("gateway.toml", "sa = [\"east-in-2\"]"),
    ] {
        let file = format!("next/west/{file}");
        assert!(folder.text(&file).contains(names), "{}", folder.text(&file));
        folder.good(&["check", "--config", &file]);
    }
    assert!(folder.text("next/west/gateway.toml").contains("# protected"));
}

#[test]
fn policies_in_any_form_name_the_new_inbound_sa() {
    let folder = Folder::new();
    folder.new_tunnel(&["--proposal", "aes128gcm16"]);
    let policy = |list: &str| {
        format!("\n[[policy]]\nname = \"in\"\ndirection = \"in\"\naction = \"protect\"\n{list}\n")
    };
    let out =
        "\n[[policy]]\nname = \"out\"\ndirection = \"out\"\naction = \"protect\"\nsa = [\"east-out\"]\n";
    let before = folder.text("west/gateway.toml");
    for (list, expected) in [
        (
            "sa = [\n  # of the peer\n  \"east-in\", # east-in\n]",
            "sa = [\n  # of the peer\n  \"east-in\", \"east-in-2\", # east-in\n]",
        ),
        ("sa = ['east-in']", "sa = [\"east-in\", \"east-in-2\"]"),
        ("\"sa\" = [\"\\u0065ast-in\"]", "\"sa\" = [\"east-in\", \"east-in-2\"]"),
        ("sa = [\"\"\"\neast-in\"\"\"]", "sa = [\"east-in\", \"east-in-2\"\n]"),
    ] {
        // In front of the SAs too.
        for text in [
            before.clone() + &policy(list) + out,
            before.replacen("[[sa]]", &format!("{}{out}\n[[sa]]", policy(list)), 1),
        ] {
            fs::write(folder.path("west/gateway.toml"), text).unwrap();
            folder.good(&["tunnel", "roll", "west/gateway.toml", "east/gateway.toml"]);
            for key in files(&folder.path("west/keys")) {
                fs::copy(&key, folder.path("next/west/keys").join(key.file_name().unwrap())).unwrap();
            }
            for file in ["gateway-1-receive.toml", "gateway-2-send.toml", "gateway.toml"] {
                folder.good(&["check", "--config", &format!("next/west/{file}")]);
            }
            let receive = folder.text("next/west/gateway-1-receive.toml");
            assert!(receive.contains(expected) && receive.contains("sa = [\"east-out\"]"), "{receive}");
            let last = folder.text("next/west/gateway.toml");
            assert!(!last.contains("\"east-in\"") && last.contains("\"east-in-2\""), "{last}");
            fs::remove_dir_all(folder.path("next")).unwrap();
        }
    }
}

#[test]
fn new_names_and_key_files_are_no_other_sas() {
    let folder = Folder::new();
    folder.new_tunnel(&[]);
    // A second SA in each direction, whose names and files are those that the first ones would get.
    for (side, sealed, opened) in [("west", "east-out", "east-in"), ("east", "west-out", "west-in")] {
        let text = folder.text(&format!("{side}/gateway.toml"));
        let sas = text[text.find("[[sa]]").unwrap()..].to_owned();
        let second = ["east-out", "east-in", "west-out", "west-in"]
            .iter()
            .fold(sas, |sas, name| sas.replace(&format!("\"{name}\""), &format!("\"{name}-2\"")))
            .replace("west-to-east", "west-to-east-2")
            .replace("east-to-west", "east-to-west-2");
        let second: String = second
            .lines()
            .map(|line| match line.split_once("spi = ") {
                Some((_, spi)) => format!("spi = {:#x}\n", spi_of(spi) ^ 0x1000_0000),
                None => format!("{line}\n"),
            })
            .collect();
        assert!(second.contains(&format!("{sealed}-2")) && second.contains(&format!("{opened}-2")));
        fs::write(folder.path(&format!("{side}/gateway.toml")), format!("{text}\n{second}")).unwrap();
    }
    let keys = files(&folder.path("west/keys"));
    for (at, key) in keys.iter().enumerate() {
        let name = key.file_name().unwrap().to_str().unwrap().replace('.', "-2.");
        let bytes = fs::read_to_string(key).unwrap().trim().len() / 2;
        let other: String =
            (0..bytes).map(|byte| format!("{:02x}", (50 * at + 3 * byte + 1) % 256)).collect();
        fs::write(folder.path(&format!("west/keys/{name}")), other).unwrap();
        fs::copy(folder.path(&format!("west/keys/{name}")), folder.path(&format!("east/keys/{name}")))
            .unwrap();
    }
    let said = folder.good(&["tunnel", "roll", "west/gateway.toml", "east/gateway.toml"]);
    assert!(said.contains("New keys for 4 SAs"), "{said}");
    for side in ["west", "east"] {
        let old: Vec<_> = files(&folder.path(&format!("{side}/keys")));
        let new = files(&folder.path(&format!("next/{side}/keys")));
        assert_eq!(new.len(), old.len(), "every SA has files of its own");
        for key in &old {
            let copy = folder.path(&format!("next/{side}/keys")).join(key.file_name().unwrap());
            assert!(!copy.exists(), "{} is another SA's", copy.display());
            fs::copy(key, copy).unwrap();
        }
    }
    for file in ["gateway-1-receive.toml", "gateway-2-send.toml", "gateway.toml"] {
        let text = folder.text(&format!("next/west/{file}"));
        let names: Vec<&str> = text.lines().filter(|line| line.starts_with("name = ")).collect();
        // With that of the interface.
        let count = if file == "gateway.toml" { 5 } else { 7 };
        let different: std::collections::HashSet<&&str> = names.iter().collect();
        assert_eq!((names.len(), different.len()), (count, count), "{text}");
    }
}

fn spi_of(text: &str) -> u32 {
    let text = text.trim();
    text.strip_prefix("0x").map_or_else(|| text.parse(), |hex| u32::from_str_radix(hex, 16)).unwrap()
}

#[test]
fn what_cannot_be_rolled_over_is_refused() {
    let folder = Folder::new();
    folder.new_tunnel(&[]);
    folder.good(&[&["tunnel", "new", "--out", "ike", "--ike", "psk"], &SIDES[..]].concat());
    for (files, expected) in [
        (["west/gateway.toml", "west/gateway.toml"], "no SA is outbound in one"),
        (["ike/west/gateway.toml", "ike/east/gateway.toml"], "come from an IKE daemon"),
        (["west/gateway.toml", "nowhere.toml"], "nowhere.toml"),
    ] {
        let said = folder.refused(&["tunnel", "roll", files[0], files[1]]);
        assert!(said.contains(expected), "{said}");
    }
    // SAs that are no tables of their own.
    let text = folder.text("west/gateway.toml");
    let (head, sas) = text.split_once("[[sa]]\n").unwrap();
    let inline = |sa: &str| format!("{{ {} }}", sa.trim().replace('\n', ", "));
    let sas: Vec<String> = sas.split("[[sa]]\n").map(inline).collect();
    let text = format!("sa = [\n{}\n]\n{head}", sas.join(",\n"));
    fs::write(folder.path("west/gateway.toml"), text).unwrap();
    folder.good(&["check", "--config", "west/gateway.toml"]);
    let said = folder.refused(&["tunnel", "roll", "west/gateway.toml", "east/gateway.toml"]);
    assert!(
        said.contains("line 2: cannot edit an SA that is not a table of its own")
            && said.contains("runbooks.md"),
        "{said}"
    );
    assert!(!folder.path("next").exists());
}
