//! The gateway's file: what is wrong is all said at once, what is right means what it says, and what changed is
//! found.

use std::net::SocketAddr;
use std::path::Path;

use forebay_config::{
    Config, Control, InsideLink, KeySource, Listen, MssClamp, OutsideLink, ProcessorKind, Routes, load, parse,
};
use forebay_engine::Order;
use forebay_processors::{Backend, EmulatedCard};
use forebay_sas::SasErrors;
use forebay_scheduler::{Policy, Service};
use forebay_time::Duration;

const KEY: &str = "000102030405060708090a0b0c0d0e0fdeadbeef";

fn read(text: &str) -> Result<Config, SasErrors> {
    parse(text, "gateway.toml", Path::new("/etc/forebay"))
}

/// An outbound SA and a link for it.
fn with_sa(rest: &str) -> String {
    format!("[[outside]]\nkind = \"raw\"\n{}{rest}", sa("east", 0x1001, ""))
}

fn sa(name: &str, spi: u32, rest: &str) -> String {
    // Each has a cipher key of its own.
    let key = format!("{}{spi:08x}{}", &KEY[..8], &KEY[16..]);
    format!(
        "[[sa]]\nname = \"{name}\"\ndirection = \"out\"\nspi = {spi}\nproposal = \"aes128gcm16\"\nkey = \"{key}\"\n\
         local = \"192.0.2.1\"\nremote = \"192.0.2.2\"\nremote_ts = [\"10.2.0.0/16\"]\n{rest}\n"
    )
}

/// Line and message of each finding.
fn errors(text: &str) -> Vec<(usize, String, String)> {
    let errors = read(text).expect_err("it is wrong");
    let one = |finding: &forebay_sas::Finding| {
        let problem = finding.problem();
        (finding.line().unwrap_or(0), problem.to_string(), problem.help().into_owned())
    };
    errors.findings().iter().map(one).collect()
}

#[test]
fn what_is_left_out_has_its_default() {
    let config = read(&with_sa("")).unwrap();
    let InsideLink::Tun(tun) = &config.inside.link else { panic!("a TUN interface") };
    assert_eq!((tun.name.as_str(), tun.mtu, tun.queues, &tun.routes), ("forebay0", 1400, 1, &Routes::Auto));
    assert_eq!(config.inside.mss_clamp, MssClamp::Auto);
    assert_eq!(config.routes(), ["10.2.0.0/16".parse().unwrap()]);
    assert_eq!(config.processors.len(), 1);
    assert_eq!(config.processors[0].kind, ProcessorKind::Core { cpus: vec![] });
    assert_eq!(config.scheduler.order, Order::PerSa);
    assert_eq!(config.scheduler.scheduling.policy, Policy::FinishTime);
    assert_eq!(config.limits.engine, forebay_engine::Limits::default());
    assert_eq!(
        (config.control.mode, config.control.socket.to_str()),
        (0o600, Some("/run/forebay/control.sock"))
    );
    assert!(config.metrics.is_none() && config.taps.is_none() && config.esp_sa_export.is_none());
    assert_eq!(config.sas.entries.len(), 1);
    let of_manual_keys = |one: &forebay_sas::Finding| one.problem().to_string().contains("RFC 8221");
    assert!(config.warnings.iter().all(of_manual_keys), "{:?}", config.warnings);
}

#[test]
fn what_is_given_means_what_it_says() {
    let text = with_sa(
        "[inside]\nmss_clamp = false\naddresses = [\"10.9.0.1/24\", \"2001:db8::1/64\"]\nroutes = []\n\
         [[outside]]\nkind = \"udp\"\nlisten = \"[::]:4501\"\nkeepalive = 0\nbuffer = \"1 MiB\"\nmark = 0x10\n\
         [[processor]]\nkind = \"core\"\ncount = 2\npin = [3, 1]\nbackend = \"aws-lc\"\n\
         [[processor]]\nkind = \"card\"\nblock = \"40 ns\"\nsuites = \"aes128gcm16\"\nbus = \"fast\"\nalpha = 2\n\
         [[bus]]\nname = \"slow\"\n[[bus]]\nname = \"fast\"\nclock = \"133 MHz\"\n\
         [scheduler]\npolicy = \"size-threshold\"\nlarge = \"card\"\nsmall = \"core.1\"\nwindow = 8\ntimeout = \"5 us\"\n\
         [[class]]\nname = \"voice\"\ndscp = [\"ef\", 40]\nwindow = 1\nlimit = 16\n\
         [[class]]\nname = \"rest\"\nweight = 3\n\
         [taps]\ndirectory = \"taps\"\nsides = \"outside\"\n",
    );
    let config = read(&text).unwrap_or_else(|errors| panic!("{:?}", errors.findings()));
    assert_eq!(config.inside.mss_clamp, MssClamp::Off);
    assert!(
        config.inside.answer.v4.is_some() && config.inside.answer.v6.is_some() && config.routes().is_empty()
    );
    let OutsideLink::Udp(udp) = &config.outside[1].link else { panic!("UDP") };
    assert_eq!(udp.listen, ["[::]:4501".parse::<SocketAddr>().unwrap()]);
    assert_eq!((udp.keepalive, udp.buffer, udp.mark), (None, 1 << 20, Some(16)));
    assert_eq!(config.outside[1].name, "udp-2");
    let names: Vec<_> = config.processors.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["core.0", "core.1", "card"]);
    assert_eq!(config.processors[1].kind, ProcessorKind::Core { cpus: vec![1] });
    assert_eq!((config.processors[0].backend, config.processors[2].alpha), (Backend::AwsLc, 2.0));
    let ProcessorKind::Device(device) = &config.processors[2].kind else { panic!("a device") };
    let EmulatedCard { card, bus } = device.as_any().downcast_ref().unwrap();
    assert_eq!((card.block, *bus, card.queue), (Duration::from_nanos(40), 1, 1_000));
    assert_eq!(card.suites, Some(vec!["aes128gcm16".parse().unwrap()]));
    assert_eq!(config.buses[1].config.clock_hz.get(), 133_000_000);
    let scheduling = &config.scheduler.scheduling;
    assert_eq!(scheduling.policy, Policy::SizeThreshold { bytes: 256, small: 1, large: 2 });
    assert_eq!(config.scheduler.classes, ["voice", "rest"]);
    let (voice, rest) = (&scheduling.classes[0], &scheduling.classes[1]);
    assert_eq!((voice.service, voice.window, voice.input), (Service::Strict, 1, 16));
    assert_eq!((rest.service, rest.window), (Service::Weighted { weight: 3 }, 8));
    assert_eq!(rest.timeout, Some(Duration::from_micros(5)));
    assert_eq!([46, 40, 0].map(|point| scheduling.dscp.class(point)), [0, 0, 1]);
    let taps = config.taps.unwrap();
    assert_eq!(taps.directory, Path::new("/etc/forebay/taps"));
    assert!(taps.outside && !taps.inside);
}

/// A wrong line, what is said of it, and a word of the hint; the lines stand one below the other in one file.
const WRONG: &[(&str, &str, &str)] = &[
    ("esp_sa_exprt = \"x\"", "unknown key `esp_sa_exprt`", "`esp_sa_export`"),
    ("mtu = 1500", "unknown key `mtu`", "in [inside]"),
    ("replay_window = 64", "unknown key `replay_window`", "in [[sa]]"),
    ("[inside]", "", ""),
    ("name = \"a name that is too long\"", "is not a valid interface name", "15 characters"),
    ("addresses = [\"10.9.0.1/24\", \"10.9\"]", "`addresses` is `10.9`", "10.9.0.1/24"),
    ("mtuu = 1400", "unknown key `mtuu`", "`mtu`"),
    ("mtu = 12", "`mtu` is 12", "576 to 65535"),
    ("interface = \"eth0\"", "`interface` does not apply to [inside] of kind `tun`", "kind to `xdp`"),
    ("routes = [\"10.0.0.1/8\"]", "10.0.0.1/8 has host bits set", "10.0.0.0/8"),
    ("mss_clamp = \"never\"", "`mss_clamp` is `never`", "\"auto\""),
    ("answer = [\"10.0.0.1\", \"10.0.0.2\"]", "several addresses of one IP version", "at most"),
    ("[[outside]]", "", ""),
    ("kind = \"udp\"", "", ""),
    ("listen = \"4500\"", "`listen` is `4500`", "192.0.2.1:4500"),
    ("keepalive = \"2 h\"", "`keepalive` is 7200 s", "0 s to 1 h"),
    ("gso = 1", "`gso` is a number", "`true`"),
    ("[[outside]]", "", ""),
    ("kind = \"rwa\"", "unknown kind `rwa`", "`raw`"),
    ("[[outside]]", "[[outside]] has no `kind`", "add `kind = "),
    ("[keys]", "", ""),
    ("source = \"static\"", "", ""),
    ("if_id = 3", "`if_id` does not apply to [keys] of source `static`", "source to `xfrm`"),
    ("[[sa]]", "SA `sa-1` has no `direction`", "direction = "),
    ("spi = 0", "0 is not an SPI", "RFC 4303"),
    ("proposal = \"aes128gmc16\"", "unknown proposal", "`aes128gcm16`"),
    ("local = \"192.0.2.1\"", "", ""),
    ("remote = \"192.0.2.2\"", "", ""),
    ("key = \"000102030405060708090a0b0c0d0e0fdeadbeef\"", "", ""),
    ("[[processor]]", "", ""),
    ("kind = \"card\"", "the first processor must not be a card", "kind `core`"),
    ("init = \"1 parsec\"", "`init` is `1 parsec`", "ns"),
    ("bus = \"pci9\"", "unknown bus `pci9`", "`pci0`"),
    ("[[processor]]", "", ""),
    ("kind = \"core\"", "", ""),
    ("count = 2", "", ""),
    ("pin = [1]", "`pin` has 1 CPUs, `count` is 2", "each core"),
    ("alpha = 0.5", "`alpha` is 0.5", "1 to "),
    ("[[bus]]", "", ""),
    ("name = \"pci0\"", "", ""),
    ("[[class]]", "", ""),
    ("name = \"a\"", "", ""),
    ("dscp = [\"ef\", \"xx\"]", "`dscp` is `xx`", "cs0"),
    ("weight = 1", "", ""),
];

#[test]
fn all_that_is_wrong_is_said_at_once() {
    let text: String = WRONG.iter().map(|(line, ..)| format!("{line}\n")).collect();
    let found = errors(&text);
    let expected: Vec<_> =
        WRONG.iter().enumerate().filter(|(_, (_, message, _))| !message.is_empty()).collect();
    for (at, (line, message, hint)) in &expected {
        let fits = |(number, said, help): &&(usize, String, String)| {
            *number == at + 1 && said.contains(message) && help.contains(hint)
        };
        assert_eq!(found.iter().filter(fits).count(), 1, "line {} `{line}`: {found:#?}", at + 1);
    }
    assert_eq!(found.len(), expected.len(), "{found:#?}");
}

#[test]
fn answers_come_from_addresses_that_packets_can_have() {
    for address in ["224.0.0.1", "255.255.255.255", "0.0.0.0", "::", "ff02::1"] {
        let found = errors(&with_sa(&format!("[inside]\nanswer = [\"{address}\"]\n")));
        assert!(
            found.len() == 1 && found[0].1.contains("from which no packet can come"),
            "{address}: {found:?}"
        );
        assert!(found[0].2.contains("an address of this gateway"), "{found:?}");
    }
    assert!(read(&with_sa("[inside]\nanswer = [\"10.9.0.1\", \"fd09::1\"]\n")).is_ok());
}

#[test]
fn older_section_names_are_refused_with_the_new_ones_as_hints() {
    let text = with_sa("[plain]\nmtu = 1400\n").replace("[[outside]]", "[[protected]]");
    let line_of = |wanted: &str| 1 + text.lines().position(|line| line == wanted).unwrap();
    let mut found = errors(&text);
    found.sort();
    let mut expected = [("[plain]", "[inside]"), ("[[protected]]", "[[outside]]")].map(|(old, new)| {
        (line_of(old), format!("unknown section `{old}`"), format!("write `{new}` instead"))
    });
    expected.sort();
    assert_eq!(found, expected);
}

#[test]
fn keys_are_never_shown() {
    for text in [
        format!("[inside]\nkey = \"{KEY}\"\n"),
        format!("{}[inside]\nmtu = 3\n", sa("x", 1, "")),
        format!("{}[inside\nmtu = 3\n", sa("x", 1, "")),
        format!("[inside]\nname = \"{KEY}\"\n"),
        format!("[keys]\nmark = \"{KEY}\"\nsource = \"xfrm\"\n[[sa]]\nkey = \"{KEY}\""),
        format!("key = \"\"\"{KEY}\n{KEY}\"\"\"\n[inside]\nmtu = 1\n"),
    ] {
        let errors = read(&text).expect_err("it is wrong");
        let shown = format!("{:?}", miette::Report::new(errors));
        assert!(!shown.contains("00010203") && !shown.contains("deadbeef"), "{shown}");
    }
}

#[test]
fn other_sources_of_keys_exclude_those_of_the_file() {
    let found = errors(&with_sa("[keys]\nsource = \"xfrm\"\n"));
    assert!(
        found[0].1.contains("`[[sa]]` conflicts with the configured source") && found[0].0 == 3,
        "{found:?}"
    );
    let found = errors("[[outside]]\nkind = \"raw\"\n");
    assert!(found[0].1.contains("no security associations"), "{found:?}");
    let found = errors("[keys]\nsource = \"xfrm\"\nmark = \"0x1ff/0xff\"\n[[outside]]\nkind = \"raw\"\n");
    assert!(found[0].1.contains("bits outside its mask"), "{found:?}");
    let xfrm =
        read("[keys]\nsource = \"xfrm\"\nmark = \"0x42/0xff\"\n[[outside]]\nkind = \"raw\"\n").unwrap();
    let KeySource::Xfrm(xfrm) = xfrm.keys.source else { panic!("from the kernel") };
    assert_eq!(xfrm.mark.map(|mark| (mark.value, mark.mask)), Some((0x42, 0xff)));
}

#[test]
fn errors_of_both_files_are_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gateway.toml");
    let text = "[keys]\nsas = \"sas.toml\"\n[[outside]]\nkind = \"raw\"\nkid = 1\n";
    std::fs::write(&path, text).unwrap();
    std::fs::write(folder.path().join("sas.toml"), sa("x", 0, "")).unwrap();
    let errors = load(&path).expect_err("both are wrong");
    let lines: Vec<_> =
        errors.findings().iter().map(|one| (one.file().rsplit('/').next().unwrap(), one.line())).collect();
    assert_eq!(lines, [("gateway.toml", Some(5)), ("sas.toml", Some(4))]);
    std::fs::write(&path, text.replace("kid = 1\n", "")).unwrap();
    std::fs::write(folder.path().join("sas.toml"), sa("x", 7, "")).unwrap();
    assert_eq!(load(&path).unwrap().sas.entries[0].config.spi.get(), 7);
}

#[test]
fn what_cannot_work_is_a_warning() {
    let warnings = |text: &str| {
        let config = read(text).unwrap_or_else(|errors| panic!("{:?}", errors.findings()));
        let all = config.warnings.iter().map(|one| one.problem().to_string());
        all.filter(|one| !one.contains("RFC 8221") && !one.contains("reserved by IANA")).collect::<Vec<_>>()
    };
    let udp = with_sa("").replace("raw", "udp");
    assert!(warnings(&udp)[0].contains("no link carries ESP without UDP encapsulation, which SA `east`"));
    assert!(warnings(&with_sa("encapsulation = \"udp\""))[0].contains("no link carries ESP in UDP"));
    // Of both IP versions where nothing is said; a link elsewhere does not reach the SA's address.
    let other = |more: &str, address: &str, sa: &str| {
        let sa = with_sa(sa).replace("raw\"", &more.replace("; ", "\n")).replace("192.0.2.", address);
        warnings(&sa).into_iter().filter(|one| one.contains("which no link does")).collect::<Vec<_>>()
    };
    const IN_UDP: &str = "encapsulation = \"udp\"";
    for address in ["192.0.2.", "2001:db8::"] {
        assert!(other("udp\"", address, IN_UDP).is_empty(), "{address}");
        assert!(other("raw\"", address, "").is_empty(), "{address}");
    }
    let found = other("udp\"; listen = \"0.0.0.0:4500\"", "2001:db8::", IN_UDP);
    assert_eq!(found, ["SA `east` has packets of 2001:db8::1, which no link does (IPv6)"]);
    assert_eq!(other("udp\"; listen = \"192.0.2.7:4500\"", "192.0.2.", IN_UDP).len(), 1);
    assert_eq!(other("raw\"; addresses = [\"::\"]", "192.0.2.", "").len(), 1);
    // Of three nested SAs only the outermost is on the wire.
    let nest = [
        sa("inner", 1, "outer = \"middle\""),
        sa("middle", 2, "outer = \"outer\"\nencapsulation = \"udp\""),
        sa("outer", 3, ""),
    ];
    let nested = format!("[[outside]]\nkind = \"raw\"\n{}", nest.concat());
    assert!(!warnings(&nested).iter().any(|one| one.contains("no link carries")), "{:?}", warnings(&nested));
    let all = with_sa("").replace("10.2.0.0/16", "0.0.0.0/0");
    assert!(warnings(&all)[0].contains("also captures packets to the peer 192.0.2.2"));
    // Traffic from any to any address cannot be guarded, which is a warning unless the guard is off.
    let marked = all.replace("\"raw\"", "\"raw\"\nmark = 5");
    let found = warnings(&marked);
    assert!(
        matches!(&found[..], [one] if one.contains("1 of the policies or SAs protect any address from any")),
        "{found:?}"
    );
    assert!(warnings(&format!("{marked}\n[guard]\nmode = \"off\"\n")).is_empty());
    assert!(warnings(&format!("{marked}\nlocal_ts = [\"10.1.0.0/16\"]\n")).is_empty());
    // The TUN interface is not the way to the protected hosts; the gateway's own address there is fine.
    let own = |addresses: &str, ts: &str| {
        let text = format!("[inside]\naddresses = [{addresses}]\n{}", with_sa(&format!("local_ts = [{ts}]")));
        let found = warnings(&text);
        found.into_iter().filter(|one| one.contains("overlaps `local_ts`")).collect::<Vec<_>>()
    };
    let found = own("\"10.1.0.1/24\", \"2001:db8:1::1/64\"", "\"10.1.0.0/16\", \"2001:db8:1::/48\"");
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("the network 10.1.0.0/24 of `addresses` overlaps `local_ts`"), "{found:?}");
    assert!(own("\"10.1.0.1/32\", \"2001:db8:1::1/128\"", "\"10.1.0.0/16\", \"2001:db8:1::/48\"").is_empty());
    assert!(own("\"10.9.0.1/24\", \"2001:db8:9::1/64\"", "\"10.1.0.0/16\", \"2001:db8:1::/48\"").is_empty());
    assert!(own("\"10.9.0.1/24\"", "\"any\"").is_empty(), "any address says nothing of where hosts are");
    assert!(warnings(&with_sa("[metrics]\nlisten = \"0.0.0.0:80\""))[0].contains("can read the metrics"));
    assert!(warnings(&with_sa("[control]\nmode = \"0666\""))[0].contains("open to all users"));
}

#[test]
fn a_live_page_beyond_loopback_requires_a_token() {
    let page = |lines: &str| with_sa(&format!("[page]\n{lines}\n"));
    let read_page = |lines: &str| read(&page(lines)).unwrap().page.unwrap();
    let usual = read_page("listen = \"127.0.0.1:9465\"");
    assert_eq!(usual.listen, Listen::Tcp("127.0.0.1:9465".parse().unwrap()));
    assert_eq!((usual.clients, usual.addresses, usual.hosts.len()), (20, false, 0));
    assert!(read(&with_sa("")).unwrap().page.is_none());
    // A path has the permissions of the control socket.
    let text = page("listen = \"run/page.sock\"") + "[control]\nmode = \"0660\"\ngroup = \"adm\"\n";
    let socket = "/etc/forebay/run/page.sock".into();
    let control = Control { socket, mode: 0o660, group: Some("adm".to_owned()) };
    assert_eq!(read(&text).unwrap().page.unwrap().listen, Listen::Unix(control));
    let open = read_page(
        "listen = \"0.0.0.0:9465\"\ntoken_file = \"page.token\"\nhosts = [\"gw.example\"]\nclients = 5",
    );
    assert_eq!(open.token_file.as_deref(), Some(Path::new("/etc/forebay/page.token")));
    assert_eq!((open.hosts, open.clients), (vec!["gw.example".to_owned()], 5));
    // Each has a port of its own then.
    read_page("listen = \"127.0.0.1:0\"\n[metrics]\nlisten = \"127.0.0.1:0\"");
    for (lines, message, hint) in [
        (
            "listen = \"192.0.2.1:9465\"",
            "every host that can reach 192.0.2.1:9465 could read the live page",
            "set `token_file`",
        ),
        ("listen = \"[::]:9465\"", "every host that can reach [::]:9465", "ssh -L"),
        ("listen = \"localhost\"", "`listen`", "the path of a Unix socket"),
        (
            "listen = \"127.0.0.1:9464\"\n[metrics]\nlisten = \"127.0.0.1:9464\"",
            "where [metrics] listens",
            "a port of its own",
        ),
        (
            "listen = \"127.0.0.1:9464\"\n[metrics]\nlisten = \"[::]:9464\"\ntoken_file = \"t\"",
            "where [metrics] listens",
            "a port of its own",
        ),
        (
            "listen = \"127.0.0.1:9464\"\n[metrics]\nlisten = \"0.0.0.0:9464\"\ntoken_file = \"t\"",
            "where [metrics] listens",
            "a port of its own",
        ),
        ("listen = \"/run/forebay/control.sock\"", "`listen` is the control socket", "a path of its own"),
        ("clients = 5", "[page] has no `listen`", "add `listen"),
        ("listen = \"127.0.0.1:1\"\nhosts = [\"gw.example:80\"]", "gw.example:80", "without port"),
        ("listen = \"127.0.0.1:1\"\nclients = 0", "`clients`", "1"),
        ("listen = \"127.0.0.1:1\"\nlisten_on = \"x\"", "listen_on", "listen"),
    ] {
        let found = errors(&page(lines));
        assert_eq!(found.len(), 1, "{found:?}");
        let (line, said, help) = &found[0];
        assert!(
            *line > 10 && said.contains(message) && (help.contains(hint) || said.contains(hint)),
            "{found:?}"
        );
    }
    let long = format!("listen = \"/{}\"", "x".repeat(107));
    assert!(errors(&page(&long))[0].1.contains("longer than 107 bytes"));
}

#[test]
fn an_sa_of_a_worker_thread_that_is_not_there_is_a_warning() {
    let warnings = |queues: u32, sas: &[(&str, u32, &str)]| {
        let sas = sas.iter().map(|(direction, spi, more)| {
            let sa = sa(&format!("sa-{spi}"), *spi, more);
            if *direction == "in" { sa.replace("\"out\"", "\"in\"") } else { sa }
        });
        let text = format!("[inside]\nqueues = {queues}\n[[outside]]\nkind = \"raw\"\n");
        let text = text + &sas.collect::<String>();
        let config = read(&text).unwrap_or_else(|errors| panic!("{:?}", errors.findings()));
        let said = config.warnings.iter().map(|one| one.problem().to_string());
        said.filter(|message| message.contains("worker thread")).collect::<Vec<_>>()
    };
    let set = [("out", 256, ""), ("out", 257, "cpu = 0"), ("out", 258, "cpu = 2"), ("in", 300, "cpu = 1")];
    assert_eq!(warnings(2, &set), ["SA `sa-258` is unused: there is no worker thread 2, the last one is 1"]);
    assert!(warnings(3, &set).is_empty());
    assert_eq!(
        warnings(1, &set[3..]),
        ["`cpu` of SA `sa-300` has no effect: there is no worker thread 1, the last one is 0"]
    );
    assert!(warnings(2, &[("in", 301, "cpu = 1")]).is_empty());
}

#[test]
fn a_reload_keeps_what_did_not_change() {
    let policy = |sa: &str| format!("[[policy]]\ndirection = \"out\"\naction = \"protect\"\nsa = \"{sa}\"\n");
    let links = "[[outside]]\nkind = \"raw\"\n";
    let file = |sas: &[String], rest: &str| read(&format!("{links}{}{rest}", sas.concat())).unwrap();
    let (a, b, c) = (sa("a", 1, ""), sa("b", 2, ""), sa("c", 3, ""));
    let old = file(&[a.clone(), b.clone()], &policy("b"));
    let same = Config::diff(&old, &file(&[a.clone(), b.clone()], &policy("b")));
    assert_eq!((same.kept, same.removed, same.policies), (vec![Some(0), Some(1)], vec![], false));
    assert!(same.restart.is_empty() && same.biases.is_empty() && !same.log);
    // Another order and one more; the policy still means the same SA.
    let moved = Config::diff(&old, &file(&[c.clone(), b.clone(), a.clone()], &policy("b")));
    assert_eq!((moved.kept, moved.removed, moved.policies), (vec![None, Some(1), Some(0)], vec![], false));
    let gone = Config::diff(&old, &file(&[c, b.clone()], &policy("c")));
    assert_eq!((gone.kept, gone.removed, gone.policies), (vec![None, Some(1)], vec![0], true));
    // Another key or setting under the same SPI is another SA, and the policy has to name it anew.
    let rekeyed = Config::diff(&old, &file(&[a.clone(), b.replace(&KEY[..8], "01010101")], &policy("b")));
    assert_eq!((rekeyed.kept, rekeyed.removed, rekeyed.policies), (vec![Some(0), None], vec![1], true));
    // What is inside of an SA that changed goes with it.
    let inner = sa("b", 2, "outer = \"a\"");
    let nested = file(&[a.clone(), inner.clone()], "");
    let outer = Config::diff(&nested, &file(&[a.replace("\"a\"", "\"a\"\nttl = 9"), inner], ""));
    assert_eq!((outer.kept, outer.removed), (vec![None, None], vec![0, 1]));
}

#[test]
fn what_needs_a_restart_is_named() {
    let old =
        read(&with_sa("[inside]\nmtu = 1400\n[log]\nlevel = \"info\"\n[[processor]]\nkind = \"core\"\n"))
            .unwrap();
    let new = "[inside]\nmtu = 1300\n[log]\nlevel = \"debug\"\n[[processor]]\nkind = \"core\"\nalpha = 3\n";
    let changes = Config::diff(&old, &read(&with_sa(new)).unwrap());
    assert!(changes.log && !changes.taps && !changes.metrics);
    assert_eq!(changes.biases, [(0, 3.0, Duration::ZERO)]);
    let named: Vec<_> = changes.restart.iter().map(ToString::to_string).collect();
    assert_eq!(named, ["[inside] mtu: 1400 -> 1300"]);
    // The same value in other words is no change.
    let other = "[inside]\nmtu = \"1400 B\"\n[log]\nlevel = \"info\"\n[[processor]]\nkind = \"core\"\nname = \"core\"\n";
    assert!(Config::diff(&old, &read(&with_sa(other)).unwrap()).restart.is_empty());
    let link =
        Config::diff(&old, &read(&with_sa("[inside]\nmtu = 1400\n[[outside]]\nkind = \"udp\"\n")).unwrap());
    assert!(link.restart.iter().any(|one| one.to_string() == "[[outside]] 2 kind: nothing -> \"udp\""));
}

/// What a data plane goes by until its restart, and what a gateway goes by that stands by.
#[test]
fn what_waits_for_a_restart_stays_what_it_was() {
    let read = |text: &str| read(&with_sa(text)).unwrap_or_else(|errors| panic!("{:?}", errors.findings()));
    let card = "[[processor]]\nkind = \"core\"\n[[processor]]\nkind = \"card\"\n";
    let old = read(&format!("[control]\nmode = \"0600\"\n{card}"));
    let new = || {
        read(&format!(
            "[inside]\nmtu = 1300\n[control]\nmode = \"0660\"\n[limits]\nburst = 9\n[log]\nlevel = \"debug\"\n{card}\
             alpha = 3\nqueue = 7\n[keys]\nstate = \"elsewhere\"\niv_reserve = 7\n"
        ))
    };
    let (running, waiting) = new().until_restart(&old);
    let named = |waiting: &[forebay_config::Changed]| {
        waiting.iter().map(|one| format!("{} {}", one.section, one.key)).collect::<Vec<_>>()
    };
    let all = [
        "[inside] mtu",
        "[keys] state",
        "[keys] iv_reserve",
        "[[processor]] 2 queue",
        "[limits] burst",
        "[control] mode",
    ];
    let sorted = |mut names: Vec<String>| {
        names.sort();
        names
    };
    let wanted = |names: &[&str]| sorted(names.iter().map(ToString::to_string).collect());
    assert_eq!(sorted(named(&waiting)), wanted(&all));
    assert_eq!(
        (&running.inside, &running.limits, &running.keys, &running.control),
        (&old.inside, &old.limits, &old.keys, &old.control)
    );
    assert_ne!(running.log, old.log);
    assert_eq!((running.processors[1].alpha, running.processors[1].queue), (3.0, old.processors[1].queue));
    // The same file once more, and the one of before.
    assert_eq!(new().until_restart(&running).1, waiting);
    assert!(read(&format!("[control]\nmode = \"0600\"\n{card}")).until_restart(&running).1.is_empty());
    // A data plane that starts later does so by all but what the process goes by.
    let (next, waiting) = new().until_process_restarts(&old);
    assert_eq!(sorted(named(&waiting)), wanted(&["[keys] state", "[control] mode"]));
    assert_eq!((&next.control, &next.keys.state), (&old.control, &old.keys.state));
    assert_eq!((&next.inside, next.keys.iv_reserve), (&new().inside, 7));
    assert_eq!(new().until_process_restarts(&next).1, waiting);
}

/// A file with every key of the schema, kinds one behind the other as far as they can stand together.
fn everything() -> String {
    use forebay_config::schema::{PARTS, sections};
    let mut text = String::new();
    let top = PARTS.iter().filter(|part| part.section.is_empty());
    top.flat_map(|part| part.keys).for_each(|key| text += &format!("{}\n", key.line()));
    for section in sections() {
        let kinds: Vec<_> =
            PARTS.iter().filter(|part| part.section == section.section && !part.kind.is_empty()).collect();
        let word = if section.section == "keys" { "source" } else { "kind" };
        let shown = if section.several { kinds.len().max(1) } else { 1 };
        for place in 0..shown {
            text += &format!("{}\n", section.header());
            for key in section.keys {
                text += &match kinds.get(place).filter(|_| key.name == word) {
                    Some(kind) => format!("{word} = \"{}\"\n", kind.kind),
                    None if key.name == "name" => format!("name = \"{}-{place}\"\n", section.section),
                    None => format!("{}\n", key.line()),
                };
            }
            kinds.get(place).into_iter().flat_map(|kind| kind.keys).for_each(|key| {
                text += &format!("{}\n", key.line());
            });
        }
    }
    text
}

/// Whatever a value is, or whichever line is missing: there is a file, or errors with their lines.
#[test]
fn no_value_and_no_missing_line_goes_unnoticed() {
    let whole = everything();
    let lines: Vec<&str> = whole.lines().collect();
    assert!(lines.len() > 100);
    let look = |text: &str| {
        let Err(errors) = read(text) else { return };
        for finding in errors.findings() {
            let (message, help) = (finding.problem().to_string(), finding.problem().help());
            assert!(!message.is_empty() && !help.is_empty());
            assert!(!message.contains("a value was rejected without a reason"), "said of\n{text}");
        }
    };
    look(&whole);
    let values = [
        "\"\"",
        "\"x\"",
        "-1",
        "0",
        "1",
        "1e400",
        "nan",
        "-inf",
        "true",
        "false",
        "[]",
        "[[]]",
        "[1, 1]",
        "[\"x\", 2]",
        "{}",
        "{ a = 1 }",
        "1979-05-27",
        "99999999999999999999999999999999999999999",
        "0xffffffffffffffff",
        "\"18446744073709551616 GiB\"",
        "\"0x/0x\"",
        "\"1 fortnight\"",
        "\"\\u0000\\u001b[2J\"",
        "\"::/0\"",
    ];
    for (at, line) in lines.iter().enumerate() {
        let with = |line: &str| {
            let mut lines = lines.clone();
            lines[at] = line;
            lines.join("\n")
        };
        look(&with(""));
        if let Some((key, _)) = line.split_once(" = ") {
            values.iter().for_each(|value| look(&with(&format!("{key} = {value}"))));
        }
    }
    for cut in 0..whole.len() {
        if whole.is_char_boundary(cut) && cut % 17 == 0 {
            look(&whole[..cut]);
        }
    }
}

#[test]
fn queues_make_cores_and_pins_go_with_them() {
    let with = |inside: &str, rest: &str| read(&with_sa(&format!("[inside]\n{inside}\n{rest}")));
    let of = |inside: &str, rest: &str| {
        let config = with(inside, rest).unwrap_or_else(|errors| panic!("{:?}", errors.findings()));
        (config.workers(|_| 8), config.processors.iter().map(|one| one.cpus().to_vec()).collect::<Vec<_>>())
    };
    assert_eq!(of("", ""), (1, vec![vec![]]));
    assert_eq!(of("queues = 3", "").0, 3);
    let udp = "[[outside]]\nkind = \"udp\"\nqueues = 4\n";
    assert_eq!(of("queues = 3", udp).0, 4);
    let core =
        |count: usize, pin: &str| format!("[[processor]]\nkind = \"core\"\ncount = {count}\npin = {pin}\n");
    assert_eq!(of("queues = 2", &core(1, "[4, 5]")), (2, vec![vec![4, 5]]));
    assert_eq!(of("queues = 2", &core(3, "[4, 5, 6, 7]")), (4, vec![vec![4, 5], vec![6], vec![7]]));
    assert_eq!(of("", &core(2, "[0, 1]")), (2, vec![vec![0], vec![1]]));
    let further = format!("{}{}", core(1, "[0, 1]"), core(2, "[2, 3]"));
    assert_eq!(of("queues = 2", &further), (4, vec![vec![0, 1], vec![2], vec![3]]));
    let card = |queues: &str| format!("kind = \"xdp\"\ninterface = \"eth1\"\n{queues}");
    assert_eq!(of(&card(""), "").0, 8);
    assert_eq!(of(&card("queues = [0, 1]"), "").0, 2);
    // More cores than the card has queues: some share one.
    assert_eq!(of(&card("queues = [0, 1]"), udp).0, 4);
    for (inside, rest, message) in [
        ("queues = 2", core(1, "[4]"), "`pin` names 1 CPUs for 2 worker threads"),
        ("queues = 2", core(1, "[4, 5, 6]"), "`pin` names 3 CPUs for 2 worker threads"),
        ("", format!("{}{}", core(1, "[0]"), core(1, "[2, 3]")), "`pin` has 2 CPUs, `count` is 1"),
    ] {
        let errors = with(inside, &rest).expect_err(message);
        let found: Vec<String> = errors.findings().iter().map(|one| one.problem().to_string()).collect();
        assert!(found.iter().any(|one| one.contains(message)), "{found:?}");
    }
}

/// RFC 8221 3: with manual keys no IV of these suites may repeat, and nothing but `state` sees to that.
#[test]
fn suites_that_manual_keys_must_not_have_are_warned_of_unless_that_is_accepted() {
    let warnings = |text: &str| {
        let config = read(text).unwrap_or_else(|errors| panic!("{:?}", errors.findings()));
        config.warnings.iter().map(|one| one.problem().to_string()).collect::<Vec<_>>().join("\n")
    };
    let two = format!("{}{}", with_sa(""), sa("west", 0x1002, "").replace("10.2", "10.3"));
    let said = warnings(&two);
    assert!(
        said.contains("SA `east` has aes128gcm16 with a key from a file, which RFC 8221 3 forbids"),
        "{said}"
    );
    assert!(said.contains("(1 other SA too)"), "{said}");
    let accepted = format!("[keys]\nmanual_keying = \"accepted\"\n{two}");
    assert_eq!(warnings(&accepted), "");
    assert!(warnings(&two.replace("remote_ts", "esn = true\nremote_ts")).contains("has no lifetime"));
    assert!(
        !warnings(&two.replace("remote_ts", "esn = true\nlife_time = \"1h\"\nremote_ts"))
            .contains("has no lifetime")
    );
    let inbound = accepted.replace("\"out\"", "\"in\"").replace("remote_ts", "replay_window = 0\nremote_ts");
    assert!(warnings(&inbound).contains("SA `east` has no replay window"));
    let wrong = errors(&accepted.replace("accepted", "acepted"));
    assert!(wrong[0].2.contains("accepted"), "{wrong:?}");
}

/// What a key says has its effect, or is refused.
#[test]
fn keys_that_would_do_nothing_are_refused() {
    let refused = |more: &str| {
        let text = format!(
            "[[outside]]\nkind = \"udp\"\n{more}\n[[outside]]\nkind = \"raw\"\n{}",
            sa("east", 1, "")
        );
        read(&text).err().map(|errors| errors.findings()[0].problem().to_string()).unwrap_or_default()
    };
    assert_eq!(refused("beside_ike = true"), "");
    assert_eq!(refused("beside_ike = true\ngso = false"), "`gso` has no effect with `beside_ike = true`");
    assert_eq!(refused("beside_ike = true\ngro = true"), "`gro` has no effect with `beside_ike = true`");
    assert_eq!(refused("gso = false"), "");
    let another = "[[outside]]\nkind = \"udp\"\nlisten = \"0.0.0.0:4501\"\nkeepalive";
    assert_eq!(refused(&format!("{another} = \"20 s\"")), "", "the default");
    let found = refused(&format!("{another} = 0"));
    assert_eq!(found, "the links udp-1 and udp-2 have different `keepalive`");
}

/// Messages that come back to be forwarded again never end, whatever the way leads over.
#[test]
fn an_ike_daemon_that_is_the_gateway_itself_is_refused() {
    let said = |links: &[&str]| {
        let links =
            links.iter().map(|link| format!("[[outside]]\nkind = \"udp\"\n{link}\n")).collect::<String>();
        let found = read(&format!("{links}{}", sa("east", 1, "encapsulation = \"udp\""))).err();
        found.map(|errors| errors.findings()[0].problem().to_string()).unwrap_or_default()
    };
    for own in ["127.0.0.1:4500", "192.0.2.1:4500", "0.0.0.0:4500", "[::1]:4500", "127.9.9.9:4500"] {
        let found = said(&[&format!("ike_forward = \"{own}\"")]);
        assert_eq!(
            found,
            format!("IKE messages of udp-1 would be forwarded to {own}, where this same link listens")
        );
    }
    for other in ["127.0.0.1:4501", "192.0.2.9:4500", "10.1.0.5:4500"] {
        assert_eq!(said(&[&format!("ike_forward = \"{other}\"")]), "", "{other}");
    }
    let by_another = said(&[
        "listen = \"192.0.2.1:4500\"\nike_forward = \"127.0.0.1:4501\"",
        "listen = \"0.0.0.0:4501\"\nike_forward = \"192.0.2.1:4500\"",
    ]);
    assert!(by_another.contains("forwarded to 127.0.0.1:4501, where the link udp-2 listens"), "{by_another}");
    assert_eq!(said(&["listen = \"192.0.2.1:4500\"\nike_forward = \"127.0.0.1:4500\""]), "");
}

#[test]
fn what_two_sections_cannot_both_have_is_refused() {
    let pair = "[pair]\nnumber = 0\nlisten = [\"10.9.0.1:7411\"]\nkey_file = \"pair.key\"\n";
    let xdp = |inside: &str, outside: &str| {
        format!(
            "[inside]\nkind = \"xdp\"\ninterface = \"{inside}\"\n[[outside]]\nkind = \"xdp\"\ninterface = \"{outside}\"\n{}",
            sa("east", 1, "")
        )
    };
    for (text, message) in [
        (with_sa(&format!("{pair}[metrics]\nlisten = \"10.9.0.1:7411\"\n")), "where [pair] listens"),
        (with_sa(&format!("{pair}[metrics]\nlisten = \"0.0.0.0:7411\"\n")), "where [pair] listens"),
        (with_sa(&format!("{pair}[metrics]\nlisten = \"10.9.0.1:7412\"\n")), ""),
        (with_sa(&format!("{pair}[metrics]\nlisten = \"10.9.0.2:7411\"\n")), ""),
        (xdp("eth0", "eth0"), "[inside] and the link xdp-1 both have the network card `eth0`"),
        (xdp("eth0", "eth1"), ""),
        (
            format!("esp_sa_export = \"/run/forebay/control.sock\"\n{}", with_sa("")),
            "`socket` and `esp_sa_export` name the same file",
        ),
        (
            format!("esp_sa_export = \"/run/a\"\n{}", with_sa("[control]\nsocket = \"/run/../run/a\"\n")),
            "`socket` and `esp_sa_export` name the same file",
        ),
        (
            format!("esp_sa_export = \"/run/a\"\n{}", with_sa("[page]\nlisten = \"/run/a\"\n")),
            "`listen` and `esp_sa_export` name the same file",
        ),
        (format!("esp_sa_export = \"/run/a\"\n{}", with_sa("[page]\nlisten = \"/run/b\"\n")), ""),
        (
            format!("esp_sa_export = \"/run/a\"\n{}", with_sa(&format!("{RTL}record = \"/run/a\"\n"))),
            "`record` and `esp_sa_export` name the same file",
        ),
        (
            with_sa(&format!("{RTL}record = \"/run/a\"\n{RTL}record = \"/run/./a\"\n")),
            "`record` and `record` name the same file",
        ),
        (with_sa(&format!("{RTL}record = \"/run/a\"\n{RTL}record = \"/run/b\"\n")), ""),
    ] {
        let found =
            read(&text).err().map(|errors| errors.findings()[0].problem().to_string()).unwrap_or_default();
        assert!(found.contains(message) && found.is_empty() == message.is_empty(), "{text}: {found}");
    }
}

const RTL: &str = "[[processor]]\nkind = \"core\"\n[[processor]]\nkind = \"rtl\"\n";

#[test]
fn keepalives_are_no_flood() {
    for (interval, is_well) in
        [("0", true), ("\"1 s\"", true), ("\"999 ms\"", false), ("\"1 ns\"", false), ("0.5", false)]
    {
        let text = format!("[[outside]]\nkind = \"udp\"\nkeepalive = {interval}\n{}", with_sa(""));
        assert_eq!(read(&text).is_ok(), is_well, "{interval}");
        if !is_well {
            assert!(errors(&text)[0].2.contains("set 1 s or more"));
        }
    }
}

/// A key that another one disables, with one that does not.
#[test]
fn keys_that_another_key_disables_are_refused() {
    const CLUSTER: &str = "[cluster]\nname = \"a\"\nendpoints = [\"http://127.0.0.1:2379\"]\n";
    let cluster = |more: &str| format!("{CLUSTER}{more}");
    for (text, with, found) in [
        (
            "[inside]\nblackhole = \"keep\"\n".to_owned(),
            "routes = []",
            "`blackhole` has no effect with `routes = []`",
        ),
        (
            "[guard]\ninterfaces = [\"fb1\"]\n".into(),
            "mode = \"off\"",
            "`interfaces` has no effect with `mode = \"off\"`",
        ),
        (
            "[guard]\nlocal_interfaces = [\"a\"]\n".into(),
            "mode = \"off\"",
            "`local_interfaces` has no effect with `mode = \"off\"`",
        ),
        (
            "[guard]\nexcept = [\"10.9.0.0/24\"]\n".into(),
            "mode = \"off\"",
            "`except` has no effect with `mode = \"off\"`",
        ),
        ("[guard]\nremove = true\n".into(), "mode = \"off\"", "`remove` has no effect with `mode = \"off\"`"),
        (
            "[guard]\nremove = true\n".into(),
            "mode = \"print\"",
            "`remove` has no effect with `mode = \"print\"`",
        ),
        (
            "[offloads]\ninside = [\"lan\"]\n".into(),
            "mode = \"keep\"",
            "`inside` has no effect with `mode = \"keep\"`",
        ),
        (
            "[log]\naudit_rate = 5\n".into(),
            "audit = false",
            "`audit_rate` has no effect with `audit = false`",
        ),
        (
            "[log]\naudit_burst = 5\n".into(),
            "audit = false",
            "`audit_burst` has no effect with `audit = false`",
        ),
        (
            cluster("addresses = [\"wan 192.0.2.101/24\"]\n"),
            "share_by = \"spi\"",
            "`addresses` has no effect with `share_by = \"spi\"`",
        ),
        (cluster(""), "ca_file = \"ca.pem\"", "`ca_file` has no effect without `https`"),
    ] {
        let read = |text: &str| {
            let read = read(&format!("{text}\n{}", with_sa("")));
            read.err().map(|errors| errors.findings()[0].problem().to_string()).unwrap_or_default()
        };
        assert_eq!(read(&text), "", "{text}");
        assert_eq!(read(&format!("{text}{with}\n")), found, "{text}{with}");
    }
}

#[test]
fn keys_of_what_is_not_there_are_warnings() {
    let warned = |text: &str| {
        let config = read(&format!("{text}\n{}", with_sa(""))).unwrap();
        let of = |warning: &&String| {
            ["a window of 1", "`group` has no effect", "no card is on bus"]
                .iter()
                .any(|part| warning.contains(part))
        };
        let texts: Vec<String> = config.warnings.iter().map(ToString::to_string).collect();
        texts.iter().filter(of).count()
    };
    for (text, count) in [
        ("[scheduler]\ntimeout = \"5 us\"\nmax_bytes = 3000", 2),
        ("[scheduler]\ntimeout = \"5 us\"\nwindow = 4", 0),
        ("[scheduler]\ntimeout = \"5 us\"\n[[class]]\nname = \"a\"\nwindow = 4", 0),
        ("[[class]]\nname = \"a\"\nwindowing = \"adaptive-window\"\ntimeout = \"5 us\"\nmax_bytes = 64", 3),
        ("[control]\ngroup = \"adm\"", 1),
        ("[control]\ngroup = \"adm\"\nmode = \"0660\"", 0),
        ("[[processor]]\nkind = \"core\"\n[[processor]]\nkind = \"card\"\n[[bus]]\nname = \"a\"", 0),
        ("[[processor]]\nkind = \"core\"\n[[processor]]\nkind = \"card\"\n[[bus]]\n[[bus]]", 1),
        ("[scheduler]\nwindow = 4\n[[class]]\nname = \"a\"\nmax_bytes = 64", 0),
    ] {
        assert_eq!(warned(text), count, "{text}");
    }
}

/// Each key with a file in which it has nothing to do, and with one in which it has.
#[test]
fn keys_that_the_rest_of_the_file_leaves_idle_are_warnings() {
    let warned = |text: &str| {
        let config = read(&format!("{text}\n{}", with_sa(""))).unwrap();
        let texts = config.warnings.iter().map(ToString::to_string);
        texts.filter(|text| text.contains("has no effect w")).collect::<Vec<_>>()
    };
    let card = "[[processor]]\nkind = \"core\"\n[[processor]]\nkind = \"card\"\n";
    let one = "[[processor]]\nkind = \"core\"\n";
    for key in ["burst = 64", "patience = 8", "slack = \"20 ms\"", "audit_every = 0", "hold = \"100 ms\""] {
        let limits = format!("[limits]\n{key}");
        let name = key.split(' ').next().unwrap();
        let found = warned(&limits);
        assert!(
            found.len() == 1 && found[0].starts_with(&format!("`{name}` has no effect with")),
            "{found:?}"
        );
        assert_eq!(warned(&format!("{card}{limits}")), [""; 0], "{key}");
    }
    // A core that is held up is overtaken by others.
    assert_eq!(warned("[[processor]]\nkind = \"core\"\ncount = 2\n[limits]\nhold = \"1 s\""), [""; 0]);
    for key in ["policy = \"single\"", "policy = \"adaptive-alpha\"", "lateness = false"] {
        assert_eq!(warned(&format!("[scheduler]\n{key}")).len(), 1, "{key}");
        assert_eq!(warned(&format!("{card}[scheduler]\n{key}")), [""; 0], "{key}");
    }
    for key in ["alpha = 2", "beta = \"1 us\""] {
        assert_eq!(warned(&format!("{one}{key}")).len(), 1, "{key}");
        assert_eq!(warned(&format!("{card}{key}")), [""; 0], "{key}");
        for policy in ["round-robin", "shortest-queue"] {
            let found = warned(&format!("{card}{key}\n[scheduler]\npolicy = \"{policy}\""));
            assert!(found.len() == 1 && found[0].contains("predicts no time"), "{found:?}");
        }
    }
    let classes = |first: &str, second: &str, more: &str| {
        let class = |name: &str, keys: &str| format!("[[class]]\nname = \"{name}\"\n{keys}\n");
        warned(&format!("{more}{}{}", class("a", first), class("b", second)))
    };
    let bound = "dscp = \"ef\"\nlatency_bound = \"200 us\"";
    assert_eq!(classes(bound, "", "").len(), 1);
    assert_eq!(classes(bound, "", card), [""; 0]);
    let found = classes(bound, "", &format!("{card}[scheduler]\nbatch = 1\n"));
    assert!(found.len() == 1 && found[0].contains("a `batch` of 1"), "{found:?}");
    assert_eq!(classes("dscp = \"ef\"", "weight = 4", "").len(), 1);
    assert_eq!(classes("dscp = \"ef\"\nweight = 2", "weight = 4", ""), [""; 0]);
}

#[test]
fn a_link_without_listen_leaves_others_what_they_name() {
    let sockets = |others: &str| {
        let text = with_sa("").replace("kind = \"raw\"", &format!("kind = \"udp\"\n{others}"));
        let config = read(&text).map_err(|errors| errors.findings()[0].problem().to_string())?;
        let all = config.outside.iter().flat_map(|one| match &one.link {
            OutsideLink::Udp(udp) => udp.listen.clone(),
            _ => vec![],
        });
        Ok::<_, String>(all.map(|one| one.to_string()).collect::<Vec<_>>().join(" "))
    };
    let other = |listen: &str| sockets(&format!("[[outside]]\nkind = \"udp\"\nlisten = \"{listen}\"\n"));
    assert_eq!(sockets("").unwrap(), "0.0.0.0:4500 [::]:4500");
    assert_eq!(other("[::]:4500").unwrap(), "0.0.0.0:4500 [::]:4500");
    assert_eq!(other("192.0.2.1:4500").unwrap(), "[::]:4500 192.0.2.1:4500");
    assert_eq!(other("0.0.0.0:4501").unwrap(), "0.0.0.0:4500 [::]:4500 0.0.0.0:4501");
    let twice = sockets("[[outside]]\nkind = \"udp\"\n").unwrap_err();
    assert_eq!(twice, "other links have port 4500 of both IP versions, so that none is left for udp-2");
    let same = "listen = \"[::]:4501\"\n[[outside]]\nkind = \"udp\"\nlisten = \"[::]:4501\"\n";
    assert_eq!(sockets(same).unwrap_err(), "the links udp-1 and udp-2 both have [::]:4501");
}
