//! What the file says of processing reaches what engines, schedulers and devices are made with; what those do with it is for their own tests,
//! which crates/cli/tests/keys/gateway.toml names.

use std::path::Path;
use std::sync::Arc;

use forebay_config::{Config, ProcessorKind, parse};
use forebay_engine::Order;
use forebay_processors::{Backend, Device, EmulatedCard};
use forebay_scheduler::{Policy, Service, Windowing};
use forebay_time::Duration;

fn read(text: &str) -> Config {
    let text = format!("[[outside]]\nkind = \"udp\"\n[keys]\nsource = \"xfrm\"\n{text}");
    parse(&text, "gateway.toml", Path::new("/etc/forebay"))
        .unwrap_or_else(|errors| panic!("{:?}", errors.findings()))
}

#[test]
fn limits_are_the_engine_s() {
    let config = read(
        "[limits]\nin_flight = 128\npacket_size = 4096\nburst = 7\nhold = \"30 ms\"\npatience = 9\nslack = \"8 ms\"\n\
         audit_every = 5\nfragment_datagrams = 11\nfragment_bytes = 1_000_000\nfragment_bytes_per_source = 50_000\n\
         fragments = 13\nfragment_timeout = \"3 s\"\nsas = 17\npolicies = 19\ncontrol_connections = 3\n",
    );
    let limits = &config.limits;
    let engine = &limits.engine;
    assert_eq!((engine.in_flight, engine.packet_capacity, engine.burst), (128, 4096, 7));
    assert_eq!((engine.hold, engine.patience), (Duration::from_millis(30), 9));
    assert_eq!((engine.slack, engine.audit_every), (Duration::from_millis(8), 5));
    let reassembly = &engine.reassembly;
    assert_eq!(
        (reassembly.datagrams, reassembly.bytes, reassembly.bytes_per_source),
        (11, 1_000_000, 50_000)
    );
    assert_eq!((reassembly.fragments, reassembly.timeout), (13, Duration::from_millis(3_000)));
    assert_eq!((limits.sas, limits.policies, limits.control_connections), (17, 19, 3));
}

#[test]
fn the_scheduler_and_its_classes_are_as_the_file_has_them() {
    let config = read(
        "[scheduler]\npolicy = \"adaptive-alpha\"\nalpha_upper = 80\nalpha_lower = 60\nalpha_most = 50\nalpha_period = \"5 ms\"\n\
         window = 4\nbatch = 6\ntimeout = \"7 us\"\nmax_bytes = 3000\norder = \"total\"\ncosts = \"costs.json\"\nlateness = false\n\
         [[class]]\nname = \"a\"\nweight = 3\nwindow = 8\nwindowing = \"adaptive-window\"\ntimeout = \"9 us\"\nmax_bytes = 2000\n\
         limit = 40\nqueue = 5\nlatency_bound = \"200 us\"\ndscp = [\"ef\"]\n[[class]]\nname = \"b\"\nweight = 1\n",
    );
    let scheduler = &config.scheduler;
    let scheduling = &scheduler.scheduling;
    let Policy::AdaptiveAlpha(alpha) = &scheduling.policy else { panic!("{:?}", scheduling.policy) };
    assert_eq!((alpha.upper, alpha.lower, alpha.most, alpha.period), (80, 60, 50, Duration::from_millis(5)));
    assert_eq!((scheduling.window, scheduling.batch), (4, 6));
    assert_eq!((scheduling.timeout, scheduling.max_bytes), (Some(Duration::from_micros(7)), Some(3_000)));
    assert_eq!((scheduler.order, scheduling.lateness), (Order::Total, false));
    assert_eq!(scheduler.costs.as_deref(), Some(Path::new("/etc/forebay/costs.json")));
    let class = &scheduling.classes[0];
    assert_eq!(
        (class.service, class.window, class.windowing),
        (Service::Weighted { weight: 3 }, 8, Windowing::Adaptive)
    );
    assert_eq!((class.timeout, class.max_bytes), (Some(Duration::from_micros(9)), Some(2_000)));
    assert_eq!((class.input, class.queue, class.latency_bound), (40, 5, Some(Duration::from_micros(200))));
    assert_eq!([46, 0].map(|point| scheduling.dscp.class(point)), [0, 1]);
}

#[test]
fn cores_and_cards_are_as_the_file_has_them() {
    let config = read(
        "[[processor]]\nkind = \"core\"\nbackend = \"aws-lc\"\nalpha = 2\nbeta = \"3 us\"\nqueue = 9\n\
         [[processor]]\nkind = \"card\"\nqueue = 10\nwrite_buffer = 4\nprefetch = 6\n",
    );
    let core = &config.processors[0];
    assert_eq!(
        (core.backend, core.alpha, core.beta, core.queue),
        (Backend::AwsLc, 2.0, Duration::from_micros(3), 9)
    );
    let device = device(&config);
    let EmulatedCard { card, .. } = device.as_any().downcast_ref().unwrap();
    assert_eq!((card.queue, card.write_buffer, card.prefetch), (10, 4, 6));
}

fn device(config: &Config) -> Arc<dyn Device> {
    let ProcessorKind::Device(device) = &config.processors[1].kind else { panic!("a device") };
    Arc::clone(device)
}

#[test]
fn a_packet_to_record_without_a_file_is_refused() {
    let text = "[[outside]]\nkind = \"udp\"\n[keys]\nsource = \"xfrm\"\n[[processor]]\nkind = \"core\"\n[[processor]]\n\
                kind = \"rtl\"\nrecord_packet = 7\n[[bus]]\nname = \"pci0\"\n";
    let Err(errors) = parse(text, "gateway.toml", Path::new("")) else { panic!("it is taken") };
    let findings = errors.findings();
    assert_eq!((findings.len(), findings[0].line()), (1, Some(9)), "{findings:#?}");
    assert!(findings[0].to_string().contains("`record_packet` means nothing without `record`"));
}

/// What a device is opened with are its own fields, which its kind compares.
#[test]
fn every_key_of_a_device_makes_another_device() {
    const BUSES: &str = "[[bus]]\nname = \"pci0\"\n[[bus]]\nname = \"pci1\"\n";
    let of = |kind: &str, lines: &str| {
        device(&read(&format!(
            "[[processor]]\nkind = \"core\"\n[[processor]]\nkind = \"{kind}\"\n{lines}\n{BUSES}"
        )))
    };
    for (kind, needed, lines) in [
        (
            "dpdk",
            "device = \"crypto_null0\"",
            &[
                "device = \"crypto_null1\"",
                "arguments = \"max_nb_queue_pairs=2\"",
                "queue = 1024",
                "sessions = 7",
            ][..],
        ),
        (
            "gpu",
            "",
            &[
                "runtime = \"opencl\"",
                "device = 1",
                "batch = 7",
                "queue = 77",
                "sessions = 7",
                "timeout = \"5 ms\"",
            ],
        ),
        (
            "rtl",
            "",
            &[
                "core = \"esp-ctr-sha1\"",
                "clock = \"50 MHz\"",
                "init = \"7 us\"",
                "doorbell = \"7 us\"",
                "queue = 77",
                "write_buffer = 7",
                "prefetch = 7",
                "bus = \"pci1\"",
                "record = \"a.fst\"",
                "record = \"a.fst\"\nrecord_packet = 7",
            ],
        ),
        (
            "card",
            "",
            &[
                "init = \"7 us\"",
                "block = \"7 ns\"",
                "doorbell = \"7 us\"",
                "suites = [\"aes128gcm16\"]",
                "bus = \"pci1\"",
            ],
        ),
    ] {
        let mut seen = vec![of(kind, needed)];
        for line in lines {
            let replaces = line.split('=').next() == needed.split('=').next();
            let one = of(kind, &if replaces { (*line).to_owned() } else { format!("{needed}\n{line}") });
            assert!(seen.iter().all(|other| !one.is_like(&**other)), "{kind}: {line}");
            seen.push(one);
        }
    }
}
