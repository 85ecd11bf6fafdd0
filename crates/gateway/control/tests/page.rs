//! The live page: who may ask gets it, what is shown has no secrets, and clients that are odd cost nothing.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use forebay_config::{Control, Listen, LivePage};
use forebay_control::{
    Answer, EngineDoc, LinkDoc, PolicyDoc, ProcessorDoc, Request, Response, SaDoc, Server, StatusDoc,
};
use serde_json::Value;

fn settings() -> LivePage {
    let listen = Listen::Tcp("127.0.0.1:0".parse().unwrap());
    LivePage { listen, token_file: None, hosts: vec![], clients: 3, addresses: false }
}

/// A gateway that does the same each second; what it was asked for is counted.
fn gateway() -> (Arc<Answer>, Arc<AtomicU64>) {
    let asked = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&asked);
    let answer = move |request| {
        let n = count.fetch_add(1, Ordering::Relaxed);
        let link = LinkDoc {
            name: "udp-1".to_owned(),
            side: "outside".to_owned(),
            packets_in: 100 * n,
            drops: [("too_big".to_owned(), n)].into(),
            ..LinkDoc::default()
        };
        let card = ProcessorDoc { name: "card".to_owned(), out: n > 3, ..ProcessorDoc::default() };
        let policy = PolicyDoc {
            name: "east".to_owned(),
            local_ts: vec!["10.1.0.0/16".to_owned()],
            remote_ts: vec!["10.2.0.0/16".to_owned()],
            ..PolicyDoc::default()
        };
        let status = StatusDoc {
            uptime_s: n as f64,
            sas: vec![SaDoc {
                name: "east-out".to_owned(),
                spi: "0x00001001".to_owned(),
                ..SaDoc::default()
            }],
            policies: vec![policy],
            links: vec![link],
            processors: vec![card],
            engines: vec![EngineDoc::default()],
            ..StatusDoc::default()
        };
        Response::of(request, status).unwrap_or_else(|| Response::error("not now"))
    };
    (Arc::new(answer), asked)
}

fn page(settings: &LivePage) -> (Server, SocketAddr) {
    let server = Server::page(settings, gateway().0).unwrap();
    let address = server.address().unwrap();
    (server, address)
}

fn get(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    // A refused client may be reset.
    let _ = stream.read_to_string(&mut text);
    text
}

/// A browser that watches, behind the head of the answer.
fn watch(address: SocketAddr) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    assert!(line.starts_with("HTTP/1.1 200"), "{line}");
    while line != "\r\n" {
        line.clear();
        stream.read_line(&mut line).unwrap();
    }
    stream
}

/// The next message of a kind.
fn next(stream: &mut BufReader<TcpStream>, kind: &str) -> Value {
    let wanted = format!("event: {kind}\n");
    loop {
        let [mut event, mut data, mut empty] = [String::new(), String::new(), String::new()];
        for line in [&mut event, &mut data, &mut empty] {
            assert!(stream.read_line(line).unwrap() > 0, "the stream has ended");
        }
        assert_eq!(empty, "\n");
        if event == wanted {
            return serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        }
    }
}

#[test]
fn the_page_and_its_files_are_served_with_a_strict_policy() {
    let (_server, address) = page(&settings());
    for (path, kind) in [
        ("/", "text/html"),
        ("/page.css", "text/css"),
        ("/plot.js", "text/javascript"),
        ("/page.js?v=1", "text/javascript"),
    ] {
        let answer = get(address, &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n"));
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(
            head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains(&format!("Content-Type: {kind}")),
            "{head}"
        );
        assert!(
            head.contains("Cache-Control: no-store")
                && head.contains("default-src 'none'; script-src 'self'")
        );
        assert!(
            !head.contains("unsafe") && head.contains("nosniff") && head.contains("frame-ancestors 'none'")
        );
        assert!(body.len() > 1_000 && head.contains(&format!("Content-Length: {}", body.len())));
        // Nothing is fetched from elsewhere, and no script or style stands in the page.
        for outside in ["http://", "https://", "onclick", "<style", "javascript:"] {
            let body = body.replace("http://www.w3.org/", "");
            assert!(!body.contains(outside), "{path} has {outside}");
        }
    }
    let html = get(address, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(
        html.contains("in_state_proto_error") && html.contains("no_buffers") && !html.contains("{reasons}")
    );
    assert!(get(address, "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n").starts_with("HTTP/1.1 404"));
    assert!(get(address, "POST / HTTP/1.1\r\nHost: localhost\r\n\r\n").starts_with("HTTP/1.1 405"));
    assert!(get(address, "HEAD /events HTTP/1.1\r\nHost: localhost\r\n\r\n").ends_with("\r\n\r\n"));
}

#[test]
fn other_names_and_other_sites_are_refused() {
    let (_server, address) = page(&LivePage { hosts: vec!["gw.example".to_owned()], ..settings() });
    let ask = |path: &str, fields: &str| get(address, &format!("GET {path} HTTP/1.1\r\n{fields}\r\n"));
    for good in ["Host: localhost:1\r\n", "Host: [::1]\r\n", "Host: GW.example\r\n"] {
        assert!(ask("/", good).starts_with("HTTP/1.1 200"), "{good}");
    }
    for bad in ["", "Host: evil.example\r\n", "Host: evil.example:9465\r\n", "Host:\r\n"] {
        let answer = ask("/events", bad);
        assert!(answer.starts_with("HTTP/1.1 421") && !answer.contains("event:"), "{answer}");
    }
    for site in ["cross-site", "same-site"] {
        let answer = ask("/events", &format!("Host: localhost\r\nSec-Fetch-Site: {site}\r\n"));
        assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    }
    // A link to the page is no harm.
    assert!(ask("/", "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n").starts_with("HTTP/1.1 200"));
}

#[test]
fn without_the_token_nothing_is_given() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "0123456789abcdef\n").unwrap();
    let (_server, address) = page(&LivePage { token_file: Some(file.path().to_owned()), ..settings() });
    for path in ["/", "/page.js", "/events", "/nothing"] {
        for shown in ["", "Authorization: Bearer 0123456789abcdee\r\n", "Authorization: Basic Og==\r\n"] {
            let answer = get(address, &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{shown}\r\n"));
            assert!(
                answer.starts_with("HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm="),
                "{answer}"
            );
            assert!(answer.ends_with("\r\n\r\nthe token of `token_file` is required\n"), "{answer}");
        }
    }
    for shown in ["Bearer 0123456789abcdef", "Basic YW55OjAxMjM0NTY3ODlhYmNkZWY="] {
        let answer = get(address, &format!("GET / HTTP/1.1\r\nHost: x.y\r\nAuthorization: {shown}\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 421"), "the name is looked at all the same: {answer}");
        let answer =
            get(address, &format!("GET / HTTP/1.1\r\nHost: {address}\r\nAuthorization: {shown}\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    std::fs::set_permissions(file.path(), PermissionsExt::from_mode(0o644)).unwrap();
    let open = LivePage { token_file: Some(file.path().to_owned()), ..settings() };
    assert!(Server::page(&open, gateway().0).is_err());
}

#[test]
fn who_watches_gets_news_each_second_and_from_the_beginning() {
    let (_server, address) = page(&settings());
    let mut stream = watch(address);
    next(&mut stream, "now");
    let now = next(&mut stream, "now");
    assert_eq!((now["links"][0]["received"][0].as_f64(), &now["all_sas"]), (Some(100.0), &Value::from(1)));
    assert_eq!(now["sas"][0]["spi"], "0x00001001");
    let text = now.to_string();
    assert!(text.contains("east") && !text.contains("10.1.") && !text.contains("10.2."), "{text}");
    let happened = next(&mut stream, "happened");
    assert_eq!(happened["text"], "processor card is out: wrong or late results");
    // One who comes later gets the same of what was.
    let mut later = watch(address);
    assert_eq!(next(&mut later, "happened"), happened);
    assert_eq!(next(&mut later, "point"), next(&mut stream, "point"));
}

#[test]
fn addresses_of_inner_packets_are_shown_where_they_are_wanted() {
    let (_server, address) = page(&LivePage { addresses: true, ..settings() });
    let now = next(&mut watch(address), "now");
    assert_eq!(
        (&now["policies"][0]["local"][0], &now["policies"][0]["remote"][0]),
        (&"10.1.0.0/16".into(), &"10.2.0.0/16".into())
    );
}

#[test]
fn so_many_watch_and_one_more_is_refused_with_the_reason() {
    let (server, address) = page(&settings());
    let mut watching: Vec<_> = (0..3).map(|_| watch(address)).collect();
    let refused = || get(address, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let answer = refused();
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("3 browsers watch already"), "{answer}");
    // The page itself is still there, also behind many who say nothing.
    let silent: Vec<_> = (0..60).map(|_| TcpStream::connect(address).unwrap()).collect();
    assert!(get(address, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").starts_with("HTTP/1.1 200"));
    watching.iter_mut().for_each(|stream| assert!(next(stream, "now").is_object()));
    drop(silent);
    // A place is free when the end of a connection is seen: with the next event.
    drop(watching.pop());
    let is_free = || !refused_head(address).starts_with("HTTP/1.1 503");
    assert!((0..100).any(|_| is_free() || {
        std::thread::park_timeout(Duration::from_millis(100));
        false
    }));
    // With the server everything ends.
    drop(server);
    let mut rest = String::new();
    assert!(watching.pop().unwrap().read_to_string(&mut rest).is_ok());
}

fn refused_head(address: SocketAddr) -> String {
    get(address, "HEAD /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

#[test]
fn while_no_browser_watches_the_gateway_is_seldom_asked_and_never_for_its_sas() {
    let wanted = Arc::new(std::sync::Mutex::new(vec![]));
    let (inner, seen) = (gateway().0, Arc::clone(&wanted));
    let answer = move |request| {
        seen.lock().unwrap().push(request);
        inner(request)
    };
    let _server = Server::page(&settings(), Arc::new(answer)).unwrap();
    std::thread::park_timeout(Duration::from_millis(2_500));
    assert_eq!(*wanted.lock().unwrap(), [Request::Counts]);
}

#[test]
fn a_unix_socket_has_the_permissions_of_the_control_socket() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("page.sock");
    let listen = Listen::Unix(Control { socket: socket.clone(), mode: 0o640, group: None });
    let server = Server::page(&LivePage { listen, ..settings() }, gateway().0).unwrap();
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o640);
    let mut stream = UnixStream::connect(&socket).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200"));
    drop(server);
    assert!(!socket.exists());
}
