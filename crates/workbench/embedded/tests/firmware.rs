//! Our own firmware on the machine: published vectors in all builds, and one output from them all, which is
//! qemu's too.

use std::path::Path;
use std::process::{Command, Stdio};

use forebay_embedded::{Prepared, Setup, image};
use forebay_riscv::Config;

const RV64_ZK: &str = "core.extensions=m c zbb zbkc zkne zknd zknh";
const VECTOR: &str = "core.extensions=m c zve64x zvkb zvkned zvkg zvknha";
const BUILDS: [(&str, &[&str]); 9] = [
    ("plain", &[]),
    ("custom", &["core.instructions=ipsec"]),
    ("reference", &[]),
    ("reference-custom", &["core.instructions=ipsec-keys"]),
    ("zk", &["core.extensions=m c zbb zbkc zkne zknd zknh"]),
    ("rv64", &["core.xlen=64"]),
    ("rv64-zk", &["core.xlen=64", RV64_ZK]),
    ("rv64-vector", &["core.xlen=64", VECTOR]),
    ("rv64-vector", &["core.xlen=64", VECTOR, "vector.length=512", "vector.datapath=256"]),
];

fn setup(firmware: &str, sets: &[&str], input: &str) -> Setup {
    let text = format!("model = \"embedded\"\n[firmware]\npath = \"{firmware}\"\n[input]\n{input}");
    let sets: Vec<String> = sets.iter().map(|one| (*one).to_owned()).collect();
    Setup::parse(&text, "core.toml", Path::new(""), &sets).unwrap_or_else(|error| panic!("{error:?}"))
}

#[test]
fn published_vectors_pass_on_the_core() {
    for (build, sets) in BUILDS {
        let setup = setup(&format!("vectors-{build}"), sets, "");
        let prepared = Prepared::new(&setup).unwrap();
        let (done, _) = forebay_embedded::run(&prepared.job, &[], &mut |_| true).unwrap();
        assert_eq!(done.code, 0, "{build}: {}", done.printed);
        assert!(done.instructions > 100_000, "{build}: {} instructions", done.instructions);
    }
}

/// `sas` for each suite of the firmware.
fn input(proposal: &str, protocol: &str, keys: &str) -> String {
    format!(
        "capture = \"demo\"\npackets = 40\nsas = \"\"\"\n[[sa]]\nname = \"out\"\ndirection = \"out\"\nspi = 0x1001\n\
         protocol = \"{protocol}\"\nmode = \"tunnel\"\nproposal = \"{proposal}\"\n{keys}\nallow_weak = true\n\
         local = \"192.0.2.1\"\nremote = \"192.0.2.2\"\n\"\"\"\n"
    )
}

/// The order of linking changes where code lies, and so the cycles of a small cache; it changes no packet.
#[test]
fn ten_orders_of_linking_give_the_same_packets_in_other_cycles() {
    let keys = "key = \"000102030405060708090a0b0c0d0e0f\"";
    for (build, sets) in
        [("reference", &[] as &[&str]), ("reference-custom", &["core.instructions=ipsec-keys"])]
    {
        let input = input("aes128", "esp", keys);
        let ran = |name: &str| {
            let setup = setup(name, sets, &input);
            let prepared = Prepared::new(&setup).unwrap();
            let ran = forebay_embedded::run(&prepared.job, &[Config::base()], &mut |_| true);
            let (done, accounts) = ran.unwrap_or_else(|error| panic!("{:?}", prepared.report(&error)));
            let cycles = prepared.figures(&setup, &done, &accounts[0]).cycles;
            (done.output, cycles)
        };
        let (packets, cycles) = ran(&format!("ipsec-{build}"));
        let mut seen = vec![cycles];
        for order in 1..=10 {
            let (same, cycles) = ran(&format!("ipsec-{build}-order-{order}"));
            assert_eq!(same, packets, "{build}, order {order}");
            seen.push(cycles);
        }
        seen.sort_unstable();
        seen.dedup();
        assert!(seen.len() > 5, "{build}: {seen:?}");
    }
}

#[test]
fn all_builds_and_qemu_give_the_same_packets() {
    let hex = |bytes: usize| (0..bytes).map(|byte| format!("{byte:02x}")).collect::<String>();
    let suites = [
        ("aes128-sha256", "esp", format!("key = \"{}\"\nauth_key = \"{}\"", hex(16), hex(32))),
        ("aes256ctr-sha1", "esp", format!("key = \"{}\"\nauth_key = \"{}\"", hex(36), hex(20))),
        ("aes192gcm16", "esp", format!("key = \"{}\"", hex(28))),
        ("md5", "ah", format!("auth_key = \"{}\"", hex(16))),
    ];
    for (proposal, protocol, keys) in suites {
        let input = input(proposal, protocol, &keys);
        let mut first: Option<Vec<u8>> = None;
        for (build, sets) in BUILDS {
            let setup = setup(&format!("ipsec-{build}"), sets, &input);
            let prepared = Prepared::new(&setup).unwrap();
            let ran = forebay_embedded::run(&prepared.job, &[Config::base()], &mut |_| true);
            let (done, accounts) = ran.unwrap_or_else(|error| panic!("{:?}", prepared.report(&error)));
            assert_eq!((done.code, done.printed.as_str()), (0, ""), "{proposal} {build}");
            let passed = image::results(&done.output).unwrap();
            assert!(
                passed.len() == 40 && passed.iter().all(|(status, _)| *status == 0),
                "{proposal} {build}"
            );
            let figures = prepared.figures(&setup, &done, &accounts[0]);
            assert!(figures.side("crypto") > 0 && figures.side("protocol") > 0);
            match &first {
                None => {
                    if let Some(qemu) = by_qemu(&prepared.job.input) {
                        assert!(qemu == done.output, "{proposal}: qemu's packets are others");
                    }
                    first = Some(done.output);
                }
                Some(first) => assert!(*first == done.output, "{proposal} {build}"),
            }
        }
    }
}

/// What the plain firmware gives under qemu.
fn by_qemu(input: &[u8]) -> Option<Vec<u8>> {
    use std::io::Write;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../firmware/prebuilt/ipsec-plain.elf");
    let spawned = Command::new("qemu-riscv32").arg(path).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut qemu) = spawned else {
        eprintln!("skipped: qemu-riscv32 is not installed (Debian: qemu-user)");
        return None;
    };
    let mut stdin = qemu.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = qemu.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    Some(output.stdout)
}
