//! The control socket and metrics: who asks is answered, who is odd does no harm.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use forebay_config::{Control, Metrics};
use forebay_control::{
    Answer, Client, ClusterDoc, ControlError, EngineDoc, IptfsDoc, LimitsDoc, LinkDoc, OffloadDoc,
    OffloadsDoc, PairDoc, ProcessorDoc, REQUEST_MAX, Request, Response, SaDoc, Server, StatusDoc, metrics,
};

fn status() -> StatusDoc {
    let sa = |name: &str, packets| SaDoc {
        name: name.to_owned(),
        spi: "0x00001001".to_owned(),
        direction: "out".to_owned(),
        remote: "192.0.2.2".to_owned(),
        packets,
        bytes: 100 * packets,
        ..SaDoc::default()
    };
    let core = ProcessorDoc {
        name: "core".to_owned(),
        kind: "core".to_owned(),
        busy_s: 0.25,
        alpha: 1.0,
        queue: 3,
        ..ProcessorDoc::default()
    };
    let mut link = LinkDoc { name: "forebay0".to_owned(), side: "inside".to_owned(), ..LinkDoc::default() };
    link.drops.insert("too_big".to_owned(), 4);
    // A raw link opens both IP versions under one name; each engine has a queue of every link.
    let raw = |engine, packets_in| LinkDoc {
        name: "raw".to_owned(),
        side: "outside".to_owned(),
        engine,
        packets_in,
        drops: [("too_big".to_owned(), 1)].into(),
        passed_over: [("other".to_owned(), 1)].into(),
        ..LinkDoc::default()
    };
    let left = LimitsDoc { time_s: Some(60.0), bytes: Some(5_000), ..LimitsDoc::default() };
    // The kernel's SAs are called by their SPIs.
    let kernel = |spi: &str, packets| SaDoc {
        name: format!("xfrm-{spi}"),
        spi: format!("0x{spi}"),
        left: left.clone(),
        ..sa("", packets)
    };
    let offload = OffloadDoc {
        interface: "lan0".to_owned(),
        offload: "rx-udp-gro-forwarding".to_owned(),
        state: "on".to_owned(),
        switched: true,
    };
    StatusDoc {
        schema: 1,
        version: "1.2.3".to_owned(),
        offloads: OffloadsDoc { restored: 2, offloads: vec![offload] },
        uptime_s: 12.5,
        sas: vec![sa("east", 7), sa("odd \"name\"\\\n", 1), kernel("c0000001", 5), kernel("c0000002", 6)],
        engines: vec![EngineDoc { cpu_s: 1.5, ..EngineDoc::default() }, EngineDoc::default()],
        processors: vec![core],
        links: vec![link, raw(0, 3), raw(0, 4), raw(1, 5), raw(1, 6)],
        drops: [("in_no_states".to_owned(), 9)].into(),
        pair: Some(PairDoc { role: "active".to_owned(), ..PairDoc::default() }),
        cluster: Some(ClusterDoc { name: "gw-1".to_owned(), ..ClusterDoc::default() }),
        ..StatusDoc::default()
    }
}

fn answer() -> Arc<Answer> {
    Arc::new(|request| Response::of(request, status()).unwrap_or_else(|| Response::error("not now")))
}

fn control(folder: &Path, name: &str) -> Control {
    Control { socket: folder.join(name), mode: 0o660, group: None }
}

#[test]
fn what_is_asked_is_answered_again_and_again() {
    let folder = tempfile::tempdir().unwrap();
    let control = control(folder.path(), "new/control.sock");
    let server = Server::control(&control, 4, answer()).unwrap();
    let mode = std::fs::metadata(&control.socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
    let mut client = Client::connect(&control.socket).unwrap();
    for _ in 0..3 {
        assert_eq!(client.ask(Request::Status).unwrap(), Response::Status(Box::new(status())));
        let Response::Drops(drops) = client.ask(Request::Drops).unwrap() else { panic!("drops") };
        assert_eq!((drops.schema, drops.drops["in_no_states"]), (1, 9));
    }
    assert!(matches!(client.ask(Request::Reload), Err(ControlError::Refused(why)) if why == "not now"));
    drop(server);
    assert!(!control.socket.exists());
    assert!(matches!(Client::connect(&control.socket), Err(ControlError::NotRunning { .. })));
}

#[test]
fn the_words_on_the_wire_are_these() {
    let folder = tempfile::tempdir().unwrap();
    let control = control(folder.path(), "s");
    let _server = Server::control(&control, 4, answer()).unwrap();
    let mut stream = BufReader::new(UnixStream::connect(&control.socket).unwrap());
    let mut ask = |line: &str| {
        stream.get_mut().write_all(line.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_line(&mut answer).unwrap();
        serde_json::from_str::<serde_json::Value>(&answer).unwrap()
    };
    let sas = ask("{\"request\":\"sas\"}\n");
    assert_eq!((sas["response"].as_str(), sas["schema"].as_u64()), (Some("sas"), Some(1)));
    assert_eq!(sas["sas"][0]["packets"], 7);
    for odd in ["{}\n", "status\n", "{\"request\":\"stop\"}\n", "\u{0}\n", "\n"] {
        let error = ask(odd);
        assert_eq!(error["response"], "error", "{odd}");
        assert!(error["message"].as_str().unwrap().contains("cannot parse"));
    }
    // A line without an end is answered once, and that is all.
    let error = ask(&"x".repeat(REQUEST_MAX));
    assert!(error["message"].as_str().unwrap().contains("longer than"));
    let mut rest = Vec::new();
    assert_eq!(stream.read_to_end(&mut rest).unwrap_or(0), 0);
}

#[test]
fn one_gateway_has_the_socket_and_a_dead_one_s_is_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let control = control(folder.path(), "s");
    let server = Server::control(&control, 4, answer()).unwrap();
    let Err(error) = Server::control(&control, 4, answer()) else { panic!("two gateways") };
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    drop(server);
    // Its file may be gone before it ends.
    let server = Server::control(&control, 4, answer()).unwrap();
    std::fs::remove_file(&control.socket).unwrap();
    drop(server);
    // Left behind by a process that was killed.
    drop(std::os::unix::net::UnixListener::bind(&control.socket).unwrap());
    let _server = Server::control(&control, 4, answer()).unwrap();
    assert!(Client::connect(&control.socket).unwrap().ask(Request::Sas).is_ok());
    let unknown = Control { group: Some("no such group".to_owned()), ..self::control(folder.path(), "t") };
    assert!(Server::control(&unknown, 4, answer()).is_err());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
}

/// As in containers that share a directory, where each gateway is the first process.
#[test]
fn gateways_with_the_same_number_of_a_process_start_at_once_in_one_directory() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..20 {
        std::thread::scope(|scope| {
            let start = |n: usize| {
                let control = control(folder.path(), &format!("{round}-{n}"));
                scope.spawn(move || Server::control(&control, 4, answer()).map(drop))
            };
            let all: Vec<_> = (0..8).map(start).collect();
            all.into_iter().for_each(|one| one.join().unwrap().unwrap());
        });
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
}

#[test]
fn too_many_at_a_time_are_turned_away_and_others_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let control = control(folder.path(), "s");
    let _server = Server::control(&control, 2, answer()).unwrap();
    let mut first = Client::connect(&control.socket).unwrap();
    let mut second = Client::connect(&control.socket).unwrap();
    assert!(first.ask(Request::Drops).is_ok() && second.ask(Request::Drops).is_ok());
    // The one that came first gives way.
    let mut third = Client::connect(&control.socket).unwrap();
    assert!(third.ask(Request::Drops).is_ok() && second.ask(Request::Drops).is_ok());
    assert!(matches!(first.ask(Request::Drops), Err(ControlError::Broken(_))));
}

#[test]
fn silent_and_slow_connections_keep_nobody_from_metrics() {
    let listen = "127.0.0.1:0".parse().unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let answer = move |request| {
        count.fetch_add(1, Ordering::Relaxed);
        Response::of(request, status()).unwrap()
    };
    let server = Server::metrics(&Metrics { listen, token_file: None }, 4, Arc::new(answer)).unwrap();
    let connect = || TcpStream::connect(server.address().unwrap()).unwrap();
    let mut silent = Vec::new();
    for n in 0..50 {
        let mut stream = connect();
        // Every other one with a beginning.
        stream.write_all(if n % 2 == 0 { b"" } else { b"GET /metr" }).unwrap();
        silent.push(stream);
    }
    for _ in 0..3 {
        let mut stream = connect();
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    assert_eq!(asked.load(Ordering::Relaxed), 1, "what is asked for again within a second is given again");
    for mut stream in silent {
        assert!(!matches!(stream.read(&mut [0]), Ok(1..)), "and in the end they are closed");
    }
}

#[test]
fn metrics_are_given_over_http() {
    let listen = "127.0.0.1:0".parse().unwrap();
    let server = Server::metrics(&Metrics { listen, token_file: None }, 4, answer()).unwrap();
    let get = |request: &str| {
        let mut stream = TcpStream::connect(server.address().unwrap()).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let answer = get("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("text/plain; version=0.0.4"));
    assert!(head.contains(&format!("Content-Length: {}", body.len())));
    assert_eq!(body, metrics::text(&status()));
    assert!(get("HEAD /metrics HTTP/1.0\r\n\r\n").ends_with("\r\n\r\n"));
    assert!(get("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
    assert!(get("POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
    for bad in ["\r\n\r\n", "GET /metrics\r\n\r\n", "GET /metrics HTTP/1.1\r\nno field\r\n\r\n"] {
        assert!(get(bad).starts_with("HTTP/1.1 400"), "{bad}");
    }
}

#[test]
fn who_does_not_show_the_token_gets_no_metrics() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "0123456789abcdef\n").unwrap();
    let listen = "127.0.0.1:0".parse().unwrap();
    let metrics = Metrics { listen, token_file: Some(file.path().to_owned()) };
    let server = Server::metrics(&metrics, 4, answer()).unwrap();
    let get = |header: &str| {
        let mut stream = TcpStream::connect(server.address().unwrap()).unwrap();
        stream.write_all(format!("GET /metrics HTTP/1.1\r\n{header}\r\n").as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    for header in
        ["", "Authorization: Bearer 0123456789abcdee\r\n", "Authorization: Basic 0123456789abcdef\r\n"]
    {
        let answer = get(header);
        assert!(answer.starts_with("HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\n"), "{answer}");
        assert!(!answer.contains("forebay_"), "{answer}");
    }
    assert!(get("Host: x\r\nAuthorization: Bearer 0123456789abcdef\r\n").starts_with("HTTP/1.1 200 OK"));
    // A token that others can read protects nothing: then there are no metrics at all.
    std::fs::set_permissions(file.path(), PermissionsExt::from_mode(0o644)).unwrap();
    assert!(Server::metrics(&metrics, 4, answer()).is_err());
}

/// Prometheus's text format, read by its description: every sample has a family above it, names and labels are
/// words, values are numbers, nothing stands twice.
#[test]
fn metrics_keep_to_the_format() {
    let text = metrics::text(&status());
    read_strictly(&text);
    for sample in [
        "forebay_info{version=\"1.2.3\"} 1",
        "forebay_sa_packets_total{sa=\"east\",direction=\"out\",remote=\"192.0.2.2\"} 7",
        "forebay_sa_packets_total{sa=\"odd \\\"name\\\"\\\\\\n\",direction=\"out\",remote=\"192.0.2.2\"} 1",
        "forebay_sa_packets_total{sa=\"xfrm\",direction=\"out\",remote=\"192.0.2.2\"} 11",
        "forebay_sa_left_seconds{sa=\"xfrm\",direction=\"out\",remote=\"192.0.2.2\"} 60",
        "forebay_sa_left_bytes{sa=\"xfrm\",direction=\"out\",remote=\"192.0.2.2\"} 5000",
        "forebay_engine_cpu_seconds_total{engine=\"0\"} 1.5",
        "forebay_link_packets_total{link=\"raw\",side=\"outside\",engine=\"1\",direction=\"in\"} 11",
        "forebay_processor_queue{processor=\"core\",kind=\"core\",engine=\"0\"} 3",
        "forebay_processor_up{processor=\"core\",kind=\"core\",engine=\"0\"} 1",
        "forebay_link_drops_total{link=\"forebay0\",side=\"inside\",engine=\"0\",reason=\"too_big\"} 4",
        "forebay_drops_total{reason=\"in_no_states\"} 9",
        "forebay_drops_total{reason=\"queue_full\"} 0",
    ] {
        assert!(text.lines().any(|line| line == sample), "{sample}\n{text}");
    }
}

/// An SA takes the place of another: the series goes on, and none is new.
#[test]
fn a_rekey_makes_no_new_series_and_no_counter_falls() {
    let mut exporter = metrics::Exporter::default();
    let mut now = status();
    let series = |text: &str| -> Vec<String> {
        let samples = text.lines().filter(|line| line.starts_with("forebay_sa_"));
        samples.map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect()
    };
    let packets = |text: &str| -> u64 {
        let line =
            text.lines().find(|line| line.starts_with("forebay_sa_packets_total{sa=\"xfrm\"")).unwrap();
        line.rsplit_once(' ').unwrap().1.parse().unwrap()
    };
    let first = exporter.text(&now);
    assert_eq!(packets(&first), 11);
    for spi in 3..20 {
        let (old, replaced) = (now.sas[3].clone(), 100 * spi);
        now.sas[2] = old;
        now.sas[3].name = format!("xfrm-c{spi:07x}");
        now.sas[3].spi = format!("0xc{spi:07x}");
        now.sas[3].packets = replaced;
        let text = exporter.text(&now);
        read_strictly(&text);
        assert_eq!(series(&text), series(&first));
    }
    // All of the packets that ever were: 5 + 6 + 300 + 400 + ... + 1900.
    assert_eq!(packets(&exporter.text(&now)), 11 + (3..20).map(|spi| 100 * spi).sum::<u64>());
    // Without an SA the series ends.
    now.sas.truncate(2);
    assert!(!exporter.text(&now).contains("xfrm"));
}

/// Fails where Prometheus would drop a sample or the whole answer, or a reader could not tell what a sample is.
fn read_strictly(text: &str) {
    assert!(text.ends_with('\n') && !text.contains("\n\n"));
    let is_word = |word: &str| {
        !word.is_empty()
            && !word.starts_with(|char: char| char.is_ascii_digit())
            && word.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
    };
    let mut family = String::new();
    let mut seen = std::collections::HashSet::new();
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            family = help.split(' ').next().unwrap().to_owned();
            assert!(is_word(&family) && seen.insert(format!("family {family}")), "{line}");
            continue;
        }
        if let Some(typed) = line.strip_prefix("# TYPE ") {
            let kind = typed.strip_prefix(&format!("{family} ")).expect("the family of the line above");
            assert!(["counter", "gauge"].contains(&kind));
            assert_eq!(kind == "counter", family.ends_with("_total"), "{family}");
            continue;
        }
        let (sample, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok(), "{line}");
        assert!(seen.insert(sample.to_owned()), "{line}");
        let name = sample.split('{').next().unwrap();
        assert_eq!(name, family);
        let Some(labels) = sample.strip_prefix(name).filter(|rest| !rest.is_empty()) else { continue };
        let mut rest = labels.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap();
        while !rest.is_empty() {
            let (label, value) = rest.split_once("=\"").unwrap();
            assert!(is_word(label), "{line}");
            let mut escaped = false;
            let end = value.find(|char| {
                let ends = char == '"' && !escaped;
                escaped = char == '\\' && !escaped;
                ends
            });
            let end = end.unwrap();
            let escapes = value[..end].replace("\\\\", "").match_indices('\\').all(|(at, _)| {
                matches!(value[..end].replace("\\\\", "").as_bytes().get(at + 1), Some(b'"' | b'n'))
            });
            assert!(escapes, "{line}: only a backslash, a quote and a new line are escaped");
            assert_ne!(label, "spi", "a series for each SPI has no bound");
            rest = &value[end + 1..];
            rest = rest.strip_prefix(',').unwrap_or(rest);
        }
    }
}

/// The names of metrics in a text.
fn metrics_in(text: &str) -> impl Iterator<Item = String> {
    let is_part = |char: &char| char.is_ascii_alphanumeric() || *char == '_';
    text.match_indices("forebay_").map(move |(at, _)| text[at..].chars().take_while(is_part).collect())
}

#[test]
fn alerts_ask_for_metrics_and_reasons_that_there_are() {
    let alerts = include_str!("../../../../docs/alerts.yml");
    let text = metrics::text(&status());
    for name in metrics_in(alerts) {
        assert!(text.contains(&format!("# TYPE {name} ")), "{name}");
    }
    let mut reasons = 0;
    for (at, found) in alerts.match_indices("reason=") {
        let words = alerts[at + found.len()..].trim_start_matches('~').trim_start_matches('"');
        for reason in words.split('"').next().unwrap().split('|') {
            assert!(text.contains(&format!("forebay_drops_total{{reason=\"{reason}\"}}")), "{reason}");
            reasons += 1;
        }
    }
    assert!(reasons > 5);
}

#[test]
fn each_counter_of_an_sa_that_aggregates_has_its_metric() {
    let sa = |direction: &str, iptfs, iptfs_rate| SaDoc {
        name: "x".to_owned(),
        direction: direction.to_owned(),
        iptfs,
        iptfs_rate,
        ..SaDoc::default()
    };
    let counters = IptfsDoc { payloads: 11, all_pad: 12, lost: 13, packets: 14, reassembled: 15, marked: 16 };
    let sas = vec![sa("in", Some(counters), None), sa("out", None, Some(17)), sa("out", None, Some(20))];
    let text = metrics::text(&StatusDoc { sas, ..StatusDoc::default() });
    for (name, direction, value) in [
        ("iptfs_payloads_total", "in", 11),
        ("iptfs_all_pad_payloads_total", "in", 12),
        ("iptfs_lost_payloads_total", "in", 13),
        ("iptfs_packets_total", "in", 14),
        ("iptfs_reassembled_total", "in", 15),
        ("iptfs_marked_payloads_total", "in", 16),
        // Two SAs of one name while it is rekeyed.
        ("iptfs_payloads_per_second", "out", 37),
    ] {
        let labels = format!("{{sa=\"x\",direction=\"{direction}\",remote=\"\"}} {value}\n");
        assert_eq!(text.matches(&format!("forebay_sa_{name}{{")).count(), 1, "{name}");
        assert!(text.contains(&format!("forebay_sa_{name}{labels}")), "{name}: {text}");
    }
}

#[test]
fn the_dashboard_asks_for_metrics_that_there_are() {
    let dashboard = include_str!("../../../../docs/grafana.json");
    let document: serde_json::Value = serde_json::from_str(dashboard).unwrap();
    assert!(document["panels"].as_array().unwrap().len() > 10);
    let text = metrics::text(&status());
    let mut asked = 0;
    for name in metrics_in(dashboard) {
        assert!(text.contains(&format!("# TYPE {name} ")), "{name}");
        asked += 1;
    }
    // And every metric stands somewhere in it.
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let name = line.split(' ').next().unwrap();
        let elsewhere = ["forebay_processor_packets_total", "forebay_processor_predicted_work_seconds_total"];
        assert!(dashboard.contains(name) || elsewhere.contains(&name), "{name}");
    }
    assert!(asked > 20);
}
