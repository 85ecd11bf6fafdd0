//! `forebay status`, `show`, `reload` and `top` beside a gateway that is made up.

use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use forebay_config::Control;
use forebay_gateway::control::{
    FindingDoc, LinkDoc, PolicyDoc, ProcessorDoc, ReloadDoc, Request, Response, SaDoc, Server, StatusDoc,
};
use serde_json::Value;

/// A gateway with one SA and one core; each look finds it a second older.
struct Gateway {
    folder: tempfile::TempDir,
    _server: Server,
}

impl Gateway {
    fn new(reload: ReloadDoc) -> Gateway {
        let folder = tempfile::tempdir().unwrap();
        let control = Control { socket: folder.path().join("control.sock"), mode: 0o600, group: None };
        let age = AtomicU64::new(10);
        let answer = move |request| match request {
            Request::Reload => Response::Reload(reload.clone()),
            other => Response::of(other, status(age.fetch_add(1, Ordering::Relaxed))).unwrap(),
        };
        let server = Server::control(&control, 4, Arc::new(answer)).unwrap();
        Gateway { folder, _server: server }
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
        command.args(args).arg("--socket").arg("control.sock").current_dir(self.folder.path());
        command.env("NO_COLOR", "1").output().unwrap()
    }

    fn said(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

fn status(age: u64) -> StatusDoc {
    let sa = SaDoc {
        name: "east-out".to_owned(),
        spi: "0x00001001".to_owned(),
        direction: "out".to_owned(),
        proposal: "aes128gcm16".to_owned(),
        remote: "192.0.2.2".to_owned(),
        packets: 1_000 * age,
        bytes: 1_000_000 * age,
        replays: 3,
        ..SaDoc::default()
    };
    let core = ProcessorDoc {
        name: "core".to_owned(),
        kind: "core".to_owned(),
        jobs: 1_000 * age,
        packets: 1_000 * age,
        bytes: 1_000_000 * age,
        busy_s: 0.5 * age as f64,
        load: 0.5,
        alpha: 1.0,
        predicted_response_s: 0.002 * age as f64,
        response_s: 0.003 * age as f64,
        response_error_s: 0.001 * age as f64,
        ..ProcessorDoc::default()
    };
    let policy = PolicyDoc {
        name: "to the east".to_owned(),
        direction: "out".to_owned(),
        action: "protect".to_owned(),
        sas: vec!["east-out".to_owned()],
        remote_ts: vec!["10.2.0.0/16".to_owned()],
        ..PolicyDoc::default()
    };
    let link = LinkDoc { name: "forebay0".to_owned(), side: "inside".to_owned(), ..LinkDoc::default() };
    StatusDoc {
        schema: 1,
        version: "0.1.0".to_owned(),
        uptime_s: age as f64,
        config: "gateway.toml".to_owned(),
        config_file: "/etc/forebay/gateway.toml".to_owned(),
        sas: vec![sa],
        policies: vec![policy],
        processors: vec![core],
        links: vec![link],
        drops: [("in_no_states".to_owned(), 9)].into(),
        ..StatusDoc::default()
    }
}

#[test]
fn status_and_show_say_what_is_counted() {
    let gateway = Gateway::new(ReloadDoc::default());
    let said = gateway.said(&["status"]);
    for part in [
        "forebay 0.1.0, configuration gateway.toml",
        "SAs: 1 (1 outbound), policies: 1",
        "core",
        "50%",
        "2.0us",
        "3.0us",
    ] {
        assert!(said.contains(part), "no `{part}` in\n{said}");
    }
    assert!(said.contains("in_no_states") && said.contains("no SA has this SPI and destination"));
    assert!(gateway.said(&["show", "sas"]).contains("east-out  out  0x00001001  aes128gcm16"));
    assert!(
        gateway
            .said(&["show", "policies"])
            .contains("to the east  out  protect  any    10.2.0.0/16  east-out")
    );
    assert!(gateway.said(&["show", "processors"]).contains("core"));
    assert!(gateway.said(&["show", "drops"]).contains("in_no_states"));
    for (args, key) in [
        (vec!["status", "--json"], "uptime_s"),
        (vec!["show", "sas", "--json"], "sas"),
        (vec!["show", "policies", "--json"], "policies"),
        (vec!["show", "processors", "--json"], "processors"),
        (vec!["show", "drops", "--json"], "drops"),
    ] {
        let document: Value = serde_json::from_str(&gateway.said(&args)).unwrap();
        assert_eq!(document["schema"], 1);
        assert!(!document[key].is_null(), "{args:?}");
    }
}

#[test]
fn a_reload_says_what_it_did() {
    let done = ReloadDoc {
        schema: 1,
        ok: true,
        added: 2,
        removed: 1,
        kept: 7,
        restart: vec!["[inside] mtu: 1400 -> 1300".to_owned()],
        ..ReloadDoc::default()
    };
    let said = Gateway::new(done).said(&["reload"]);
    assert!(
        said.contains("7 SAs kept, 2 added, 1 removed") && said.contains("restart required: [inside] mtu"),
        "{said}"
    );
    let error = FindingDoc {
        file: "gateway.toml".to_owned(),
        line: Some(3),
        message: "wrong".to_owned(),
        help: "right".to_owned(),
    };
    let refused = Gateway::new(ReloadDoc { schema: 1, errors: vec![error], ..ReloadDoc::default() });
    let output = refused.run(&["reload"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("error: gateway.toml:3: wrong") && said.contains("the running gateway is unchanged"),
        "{said}"
    );
    let document: Value = serde_json::from_slice(&refused.run(&["reload", "--json"]).stdout).unwrap();
    assert_eq!((document["ok"].as_bool(), document["errors"][0]["line"].as_u64()), (Some(false), Some(3)));
}

#[test]
fn top_shows_rates() {
    let gateway = Gateway::new(ReloadDoc::default());
    let said = gateway.said(&["top", "--print", "2", "-d", "0.1", "--size", "100x20"]);
    assert_eq!(said.lines().count(), 40);
    for part in
        ["forebay 0.1.0 gateway.toml", "50%    50%", "1 SA ", "1000", "8.00M", "2.0us", "3.0us", "east-out"]
    {
        assert!(said.contains(part), "no `{part}` in\n{said}");
    }
    // Without a terminal `top` needs an option that asks for text.
    assert_eq!(gateway.run(&["top"]).status.code(), Some(2));
}

#[test]
fn nobody_answers_is_exit_code_2_with_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("none.sock");
    for args in [vec!["status"], vec!["show", "sas"], vec!["reload"], vec!["top"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
        let output = command.args(&args).arg("--socket").arg(&socket).env("NO_COLOR", "1").output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            said.contains("cannot connect to a gateway at") && said.contains("start the gateway"),
            "{said}"
        );
    }
}

/// Two gateways with the default socket: the one that has it does not answer for the other.
#[test]
fn the_figures_of_another_file_are_refused_with_a_hint() {
    let gateway = Gateway::new(ReloadDoc::default());
    let file =
        "[[outside]]\nkind = \"udp\"\n[keys]\nsource = \"xfrm\"\n[control]\nsocket = \"control.sock\"\n";
    std::fs::write(gateway.folder.path().join("b.toml"), file).unwrap();
    for args in [&["status"][..], &["show", "sas"], &["reload"], &["top", "--print", "1"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
        command.args(args).args(["--config", "b.toml"]).current_dir(gateway.folder.path());
        let output = command.env("NO_COLOR", "1").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).replace('\n', " ");
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains("runs by /etc/forebay/gateway.toml") && said.contains("--socket"), "{said}");
    }
}
