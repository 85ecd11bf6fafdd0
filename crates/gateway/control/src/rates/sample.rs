//! A status for tests of rates and of what shows them.

use super::{EngineDoc, LinkDoc, ProcessorDoc, SaDoc, StatusDoc};

/// A gateway with four processors, many SAs and drops, `seconds` after its start.
pub fn status(seconds: u64) -> StatusDoc {
    let n = seconds;
    let processor = |(place, name): (usize, &str)| ProcessorDoc {
        name: name.to_owned(),
        kind: if name.starts_with("card") { "card" } else { "core" }.to_owned(),
        out: place == 3,
        jobs: 1_000 * n,
        packets: 4_000 * n,
        bytes: 4_000_000 * n,
        busy_s: 0.25 * place as f64 * n as f64,
        queue: place as u64,
        alpha: 1.0,
        predicted_response_s: 2e-3 * n as f64,
        response_s: 3e-3 * n as f64,
        response_error_s: 1.5e-3 * n as f64,
        ..ProcessorDoc::default()
    };
    let sa = |number: u64| SaDoc {
        name: format!("tunnel-{number:03}-{}", if number.is_multiple_of(2) { "out" } else { "in" }),
        spi: format!("0x{:08x}", 0x1000 + number),
        direction: if number.is_multiple_of(2) { "out" } else { "in" }.to_owned(),
        proposal: "aes128gcm16".to_owned(),
        remote: "2001:db8::192:0:2:2".to_owned(),
        packets: number * n,
        bytes: 1_000 * number * n,
        auth_failures: if number == 5 { n } else { 0 },
        ..SaDoc::default()
    };
    let link = |name: &str, side: &str| LinkDoc {
        name: name.to_owned(),
        side: side.to_owned(),
        packets_in: 2_000 * n,
        bytes_in: 2_000_000 * n,
        packets_out: 1_000 * n,
        bytes_out: 1_000_000 * n,
        drops: [("too_big".to_owned(), 3 * n)].into(),
        ..LinkDoc::default()
    };
    StatusDoc {
        schema: 1,
        version: "0.1.0".to_owned(),
        uptime_s: n as f64,
        config: "/etc/forebay/gateway.toml".to_owned(),
        sas: (0..40).map(sa).collect(),
        processors: ["core", "helper", "card.0", "card.1"].into_iter().enumerate().map(processor).collect(),
        links: vec![link("forebay0", "inside"), link("udp-1", "outside")],
        drops: [("in_state_seq_error".to_owned(), 7 * n), ("out_no_states".to_owned(), 5)].into(),
        engines: vec![EngineDoc {
            in_flight: 12,
            room: 4_084,
            redone: 2 * n,
            cpu_s: 0.3 * n as f64,
            load: 0.3,
            ..EngineDoc::default()
        }],
        ..StatusDoc::default()
    }
}
