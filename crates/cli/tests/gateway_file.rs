//! `forebay check` and `forebay import` as their users meet them.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const XFRM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../gateway/import/tests/data/xfrm.txt");
const SECGW: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../gateway/import/tests/data/secgw.cfg");

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, args: &[&str], input: &[u8]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
        command.args(args).current_dir(self.0.path()).env("NO_COLOR", "1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        child.wait_with_output().unwrap()
    }

    fn mode(&self, name: &str) -> u32 {
        std::fs::metadata(self.path(name)).unwrap().permissions().mode() & 0o777
    }
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_good_file_is_said_to_be_good() {
    let folder = Folder::new();
    let file = "[[outside]]\nkind = \"udp\"\n[keys]\nsource = \"xfrm\"\n[metrics]\nlisten = \"0.0.0.0:1\"\n";
    std::fs::write(folder.path("gateway.toml"), file).unwrap();
    let output = folder.run(&["check", "--offline", "--config", "gateway.toml"], b"");
    assert_eq!(output.status.code(), Some(0));
    let said = text(&output.stdout);
    assert!(said.contains("valid (SAs from the kernel, 1 link to peers, 1 processor; 1 warning)"), "{said}");
    assert!(text(&output.stderr).contains("can read the metrics"));
    let output = folder.run(&["check", "--offline", "--config", "gateway.toml", "--json"], b"");
    assert_eq!(output.status.code(), Some(0));
    let document = json(&output);
    assert_eq!((document["schema"].as_u64(), document["ok"].as_bool()), (Some(1), Some(true)));
    assert_eq!(document["warnings"][0]["line"], 6);
    let settings = document["settings"].as_array().unwrap();
    let mtu = settings.iter().find(|one| one["key"] == "mtu").unwrap();
    assert_eq!((mtu["section"].as_str(), mtu["value"].as_str()), (Some("[inside]"), Some("1400")));
    assert!(output.stderr.is_empty());
}

#[test]
fn a_bad_file_is_exit_code_2_and_everything_is_said() {
    let folder = Folder::new();
    let file = "[inside]\nmut = 3\n[[outside]]\nkind = \"udp\"\nlisten = 1\n[keys]\nsource = \"xfrm\"\n";
    std::fs::write(folder.path("gateway.toml"), file).unwrap();
    let output = folder.run(&["check", "--offline", "--config", "gateway.toml"], b"");
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("unknown key `mut`") && said.contains("did you mean `mtu`?"), "{said}");
    assert!(said.contains("`listen` is a number") && said.contains("gateway.toml:5:10"), "{said}");
    let output = folder.run(&["check", "--offline", "--config", "gateway.toml", "--json"], b"");
    assert_eq!(output.status.code(), Some(2));
    let document = json(&output);
    let lines: Vec<_> =
        document["errors"].as_array().unwrap().iter().map(|one| one["line"].as_u64()).collect();
    assert_eq!((document["ok"].as_bool(), lines), (Some(false), vec![Some(2), Some(5)]));
    assert_eq!(folder.run(&["check", "--config", "nothing.toml"], b"").status.code(), Some(2));
}

#[test]
fn what_is_taken_over_is_a_file_that_check_accepts() {
    let folder = Folder::new();
    for (args, sas, policies) in [
        (["import", "xfrm", XFRM, "-o", "gw/x.toml", "--keys", "x"], 5, 5),
        (["import", "secgw", SECGW, "-o", "gw/s.toml", "--keys", "s"], 3, 5),
    ] {
        std::fs::create_dir_all(folder.path("gw")).unwrap();
        let mut args = args.to_vec();
        args.push("--json");
        let output = folder.run(&args, b"");
        // Some lines could not be taken over.
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
        let document = json(&output);
        assert_eq!((document["sas"].as_u64(), document["policies"].as_u64()), (Some(sas), Some(policies)));
        assert!(!document["lost"].as_array().unwrap().is_empty());
        for file in document["files"].as_array().unwrap() {
            let file = file.as_str().unwrap();
            assert_eq!(folder.mode(file), 0o600, "{file}");
        }
        let checked = folder.run(&["check", "--offline", "--config", args[4]], b"");
        assert_eq!(checked.status.code(), Some(0), "{}", text(&checked.stderr));
        let again = folder.run(&args, b"");
        assert_eq!(again.status.code(), Some(2));
        assert!(text(&again.stderr).contains("is there already"));
        assert_eq!(folder.run(&[args.clone(), vec!["--force"]].concat(), b"").status.code(), Some(1));
    }
    assert_eq!(folder.mode("gw/x"), 0o700);
}

#[test]
fn the_connections_of_an_ike_daemon_are_a_file_that_check_accepts() {
    let folder = Folder::new();
    for (kind, name) in [("swanctl", "swanctl.conf"), ("ipsec-conf", "ipsec.conf")] {
        let from = Path::new(XFRM).with_file_name(name);
        let to = format!("{kind}.toml");
        let args = ["import", kind, from.to_str().unwrap(), "-o", &to, "--json"];
        let output = folder.run(&args, b"");
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
        let document = json(&output);
        assert!(!document["lost"].as_array().unwrap().is_empty() && document["files"][0] == to.as_str());
        let said = format!(
            "{document}{}{}",
            text(&output.stderr),
            std::fs::read_to_string(folder.path(&to)).unwrap()
        );
        assert!(!said.contains("staple") && !said.contains("f1e2d3"), "a secret: {said}");
        let checked = folder.run(&["check", "--offline", "--config", &to], b"");
        assert_eq!(checked.status.code(), Some(0), "{}", text(&checked.stderr));
        assert_eq!(folder.mode(&to), 0o600);
        let again = folder.run(&args, b"");
        assert!(again.status.code() == Some(2) && text(&again.stderr).contains("is there already"));
        assert_eq!(folder.run(&[&args[..], &["--force"]].concat(), b"").status.code(), Some(1));
    }
    let nothing = folder.run(&["import", "swanctl", "-"], b"connections { }");
    assert!(nothing.status.code() == Some(2) && nothing.stdout.is_empty());
    assert!(text(&nothing.stderr).contains("found no connection"), "{}", text(&nothing.stderr));
}

#[test]
fn files_that_a_daemon_s_includes_are_read_and_are_inputs() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("conf.d")).unwrap();
    std::fs::write(folder.path("swanctl.conf"), "include conf.d/*.conf\n").unwrap();
    let site = "connections { east : base { children { net { remote_ts = 10.2.0.0/16\n ipcomp = yes } \n ok { } } } }\n";
    std::fs::write(folder.path("conf.d/east.conf"), site).unwrap();
    std::fs::write(
        folder.path("conf.d/more.conf"),
        "base { remote_addrs = 192.0.2.2 }\ninclude /no/such/file\n",
    )
    .unwrap();
    let output = folder.run(&["import", "swanctl", "swanctl.conf", "-o", "g.toml", "--json"], b"");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let lost = json(&output)["lost"].clone();
    let places: Vec<_> =
        (lost.as_array().unwrap().iter()).map(|one| (one["file"].as_str(), one["line"].as_u64())).collect();
    assert_eq!(places, [(Some("conf.d/east.conf"), Some(2)), (Some("conf.d/more.conf"), Some(2))]);
    assert!(text(&output.stderr).contains("not imported: conf.d/more.conf line 2: include /no/such/file"));
    let written = std::fs::read_to_string(folder.path("g.toml")).unwrap();
    assert!(
        written.contains("# east/ok: what IKE negotiates here, what IKE negotiates behind 192.0.2.2\n"),
        "{written}"
    );
    let over = folder.run(&["import", "swanctl", "swanctl.conf", "-o", "conf.d/east.conf", "--force"], b"");
    assert_eq!(over.status.code(), Some(2), "{}", text(&over.stderr));
    assert_eq!(std::fs::read_to_string(folder.path("conf.d/east.conf")).unwrap(), site);
}

/// What WireGuard's file lacks is a gap, which `check` names until it is filled in.
#[test]
fn the_gaps_of_a_wireguard_file_are_named_by_check() {
    let folder = Folder::new();
    let from = Path::new(XFRM).with_file_name("wg0.conf");
    let args = ["import", "wireguard", from.to_str().unwrap(), "-o", "wg.toml", "--json"];
    let output = folder.run(&args, b"");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let written = std::fs::read_to_string(folder.path("wg.toml")).unwrap();
    let said = format!("{}{}{written}", text(&output.stdout), text(&output.stderr));
    assert!(!said.contains("yAnz5TF") && !said.contains("FpCyhws") && !said.contains("hunter2"), "{said}");
    assert_eq!(folder.mode("wg.toml"), 0o600);
    let gaps = written.lines().filter(|line| !line.starts_with('#') && line.contains("FILL IN")).count();
    let checked = folder.run(&["check", "--offline", "--config", "wg.toml", "--json"], b"");
    assert_eq!(checked.status.code(), Some(2), "{}", text(&checked.stderr));
    let errors = json(&checked)["errors"].as_array().unwrap().len();
    assert!(gaps > 10 && errors >= gaps, "{gaps} {errors}");
    let nothing = folder.run(&["import", "wireguard", "-"], b"[Interface]\nPrivateKey = x\n");
    assert!(nothing.status.code() == Some(2) && nothing.stdout.is_empty());
}

#[test]
fn keys_never_reach_standard_output_unless_they_are_asked_for() {
    let folder = Folder::new();
    let input = std::fs::read(Path::new(XFRM)).unwrap();
    let output = folder.run(&["import", "xfrm"], &input);
    assert_eq!(output.status.code(), Some(1));
    let (said, complained) = (text(&output.stdout), text(&output.stderr));
    assert!(!said.contains("0001020304") && !complained.contains("0001020304"));
    assert!(said.contains("key_file = \"keys/out-c88b7652.key\""), "{said}");
    assert_eq!(folder.mode("keys/out-c88b7652.key"), 0o600);
    // What was printed is the file.
    std::fs::write(folder.path("gateway.toml"), &said).unwrap();
    assert_eq!(folder.run(&["check", "--offline", "--config", "gateway.toml"], b"").status.code(), Some(0));
    let inside = folder.run(&["import", "xfrm", "--inline-keys"], &input);
    assert!(text(&inside.stdout).contains("key = \"000102030405060708090a0b0c0d0e0f10111213\""));
    let nothing = folder.run(&["import", "xfrm"], b"hello\n");
    assert_eq!(nothing.status.code(), Some(2));
    assert!(nothing.stdout.is_empty());
}

/// Such a device would never be given a job. The emulated card stands for all: it says its suites without being opened.
#[test]
fn check_refuses_a_device_that_supports_the_proposal_of_no_sa() {
    let folder = Folder::new();
    let sas = "[[sa]]\ndirection = \"out\"\nspi = 0x1001\nproposal = \"aes128gcm16\"\n\
               key = \"0123456789abcdef0123456789abcdef01234567\"\nlocal = \"192.0.2.1\"\nremote = \"192.0.2.2\"\n\
               encapsulation = \"udp\"\nlocal_ts = [\"10.1.0.0/16\"]\nremote_ts = [\"10.2.0.0/16\"]\n";
    let file = |suites: &str| {
        format!(
            "[[outside]]\nkind = \"udp\"\n{sas}[[processor]]\nkind = \"core\"\n\
             [[bus]]\nname = \"pci\"\n[[processor]]\nkind = \"card\"\nname = \"card\"\nsuites = [{suites}]\n"
        )
    };
    let check = |suites: &str| {
        std::fs::write(folder.path("gateway.toml"), file(suites)).unwrap();
        let output = folder.run(&["check", "--config", "gateway.toml", "--json"], b"");
        (output.status.code(), json(&output))
    };
    let (code, document) = check("\"3des-sha1\", \"aes128gcm16\"");
    assert_eq!(code, Some(0), "{document}");
    let (code, document) = check("\"3des-sha1\"");
    assert_eq!(code, Some(2), "{document}");
    let error = &document["errors"][0];
    let says = |key: &str, words: &str| assert!(error[key].as_str().unwrap().contains(words), "{document}");
    says("message", "processor `card` supports the proposal of no SA (found `aes128gcm16`)");
    says("help", "give an SA a `proposal` that the device supports (`3des-sha1`)");
}

/// Built without DPDK the file may be for another program; with it the device is looked for.
#[test]
fn check_says_that_a_device_of_dpdk_is_lacking() {
    let folder = Folder::new();
    let file = "[[outside]]\nkind = \"udp\"\n[keys]\nsource = \"xfrm\"\n[[processor]]\nkind = \"core\"\n\
                [[processor]]\nkind = \"dpdk\"\nname = \"card\"\ndevice = \"ffff:ff:1f.7\"\n";
    std::fs::write(folder.path("gateway.toml"), file).unwrap();
    let output = folder.run(&["check", "--config", "gateway.toml", "--json"], b"");
    let (document, built) = (json(&output), cfg!(feature = "dpdk"));
    let list = if built { "errors" } else { "warnings" };
    let said = document[list].as_array().unwrap().iter().filter_map(|one| one["message"].as_str());
    let said: Vec<&str> = said.filter(|text| text.contains("`card`")).collect();
    // The kernel of the machine may lack ESP, which is another error.
    let others = document["errors"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["message"].as_str().unwrap().contains("this kernel has no ESP"));
    let well = !built && others.count() == 0;
    assert_eq!((said.len(), document["ok"].as_bool()), (1, Some(well)), "{document}");
    assert_eq!(output.status.code(), Some(if well { 0 } else { 2 }));
    if built && !said[0].contains("was built without DPDK") {
        assert!(said[0].contains("there is no device ffff:ff:1f.7 on the PCI bus"), "{said:?}");
    }
}

const SHADOWED: &str = "[[outside]]\nkind = \"raw\"\n[[sa]]\nname = \"wide\"\ndirection = \"out\"\nspi = 0x1001\n\
    proposal = \"aes128-sha256\"\nkey = \"000102030405060708090a0b0c0d0e0f\"\n\
    auth_key = \"000102030405060708090a0b0c0d0e0f000102030405060708090a0b0c0d0e0f\"\nlocal = \"192.0.2.1\"\n\
    remote = \"192.0.2.2\"\nremote_ts = [\"10.0.0.0/8\"]\n[[sa]]\nname = \"behind\"\ndirection = \"out\"\n\
    spi = 0x1002\nproposal = \"aes128-sha256\"\nkey = \"100102030405060708090a0b0c0d0e0f\"\n\
    auth_key = \"100102030405060708090a0b0c0d0e0f000102030405060708090a0b0c0d0e0f\"\nlocal = \"192.0.2.1\"\n\
    remote = \"192.0.2.3\"\nremote_ts = [\"10.2.0.0/16\"]\n";

/// A gateway would start without its metrics, or not at all.
#[test]
fn check_refuses_tokens_and_state_directories_that_cannot_be_used() {
    let folder = Folder::new();
    let file = "[[outside]]\nkind = \"raw\"\n[keys]\nsource = \"xfrm\"\nstate = \"state\"\n[metrics]\nlisten = \"127.0.0.1:1\"\n\
                token_file = \"token\"\n[page]\nlisten = \"127.0.0.1:2\"\ntoken_file = \"token\"\n";
    std::fs::write(folder.path("gateway.toml"), file).unwrap();
    std::fs::create_dir(folder.path("state")).unwrap();
    let set = |name: &str, mode| {
        std::fs::set_permissions(folder.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let said = |words: &[&str]| {
        let output = folder.run(&[&["check", "--config", "gateway.toml"], words].concat(), b"");
        (output.status.code(), text(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let about = |wanted: &str| {
        let (code, all) = said(&[]);
        assert!(code == Some(2) && all.contains(wanted), "{wanted}: {all}");
        // On the machine of the file it may be another one.
        assert_eq!(said(&["--offline"]).0, Some(0));
    };
    set("state", 0o700);
    about("`token_file` of [metrics]");
    std::fs::write(folder.path("token"), "short").unwrap();
    set("token", 0o640);
    about("`token_file` of [page]");
    std::fs::write(folder.path("token"), "0123456789abcdef\n").unwrap();
    set("token", 0o644);
    about("can be read by");
    set("token", 0o640);
    assert!(!said(&[]).1.contains("token_file"));
    set("state", 0o770);
    about("others can write to it");
    set("state", 0o755);
    assert!(!said(&[]).1.contains("others can write"));
}

/// Whatever can never work is an error, with the line.
#[test]
fn check_refuses_what_can_never_work() {
    let folder = Folder::new();
    let check = |text: &str| {
        std::fs::write(folder.path("g.toml"), text).unwrap();
        std::fs::set_permissions(folder.path("g.toml"), PermissionsExt::from_mode(0o600)).unwrap();
        let output = folder.run(&["check", "--config", "g.toml", "--offline"], b"");
        (output.status.code(), text_of(&output))
    };
    fn text_of(output: &Output) -> String {
        text(&output.stderr).replace('│', " ").split_whitespace().collect::<Vec<_>>().join(" ")
    }
    let policies = "[[policy]]\nname = \"all\"\ndirection = \"out\"\naction = \"protect\"\nsa = [\"wide\"]\n\
        [[policy]]\nname = \"late\"\ndirection = \"out\"\naction = \"bypass\"\nremote_ts = [\"10.9.0.0/16\"]\n";
    for (text, expected) in [
        (SHADOWED.to_owned(), "SA `behind` is never used: `wide` before it takes all of its packets"),
        (format!("{SHADOWED}{policies}"), "policy `late` is never used"),
        (
            SHADOWED.replace("[\"10.0.0.0/8\"]", "[\"fd02::/64\"]\nlocal_ts = [\"10.1.0.0/16\"]"),
            "no IP version in common",
        ),
        (SHADOWED.replace("192.0.2.3", "0.0.0.0"), "`remote` is 0.0.0.0"),
        (SHADOWED.replace("192.0.2.3", "239.1.1.1"), "a multicast address"),
        (SHADOWED.replace("192.0.2.3", "255.255.255.255"), "the broadcast address"),
        (format!("[inside]\nname = \"fb%d\"\n{SHADOWED}"), "`fb%d` is not a valid interface name"),
        (format!("[inside]\nname = \"lo\"\n{SHADOWED}"), "`lo` is not a valid interface name"),
        (format!("[inside]\nname = \"all\"\n{SHADOWED}"), "`all` is not a valid interface name"),
        (format!("[inside]\nname = \"sixteen-letters-\"\n{SHADOWED}"), "is not a valid interface name"),
    ] {
        let (code, said) = check(&text);
        assert_eq!(code, Some(2), "{expected}: {said}");
        assert!(said.contains(expected), "{expected}: {said}");
    }
    // By classes, by CPUs and in the other order each has packets of its own.
    let by_class = SHADOWED.replacen("remote_ts", "classes = [\"ef\"]\nremote_ts", 1);
    let other_order = SHADOWED.replace("10.0.0.0/8", "10.2.1.0/24");
    for well in [by_class, other_order] {
        let (code, said) = check(&well);
        assert_eq!(code, Some(0), "{said}");
    }
    let (code, said) = check(&SHADOWED.replace("10.0.0.0/8", "10.3.0.0/16").replace("0x1001", "200"));
    assert!(code == Some(0) && said.contains("SPI 0x000000c8 is one of those reserved by IANA"), "{said}");
    std::fs::set_permissions(folder.path("g.toml"), PermissionsExt::from_mode(0o644)).unwrap();
    let output = folder.run(&["check", "--config", "g.toml", "--offline"], b"");
    assert!(
        text_of(&output).contains("the file holds keys, and others than its owner"),
        "{}",
        text_of(&output)
    );
}
