//! No output takes the place of an input, in any command, by whatever name the input is called.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const KEY: &str = "000102030405060708090a0b0c0d0e0fdeadbeef";
const XFRM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../gateway/import/tests/data/xfrm.txt");
const SCENARIO: &str = "model = \"host\"\n[traffic]\nsource = \"file\"\npath = \"packets.csv\"\n[[processor]]\n\
                        name = \"cpu\"\nkind = \"cpu\"\ninit = \"1 us\"\nblock = \"1 us\"\n";

/// A folder with an input of each kind.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        let sas = "[[sa]]\nname = \"a\"\ndirection = \"out\"\nspi = 0x1001\nprotocol = \"esp\"\nmode = \"tunnel\"\n\
             proposal = \"aes128gcm16\"\nkey_file = \"key\"\nlocal = \"192.0.2.1\"\nremote = \"192.0.2.2\"\n";
        folder.write("sas.toml", sas);
        folder.write("key", KEY);
        let mut pcap =
            vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 101, 0, 0, 0];
        pcap.extend([0, 0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0, 20, 0, 0, 0]);
        pcap.extend([0x45, 0, 0, 20, 0, 0, 0, 0, 64, 59, 0xf7, 0xa3, 10, 1, 0, 1, 10, 2, 0, 1]);
        fs::write(folder.path("a.pcap"), pcap).unwrap();
        folder.write("scenario.toml", SCENARIO);
        folder.write("packets.csv", "size,time\n100,0.0\n200,0.1\n");
        fs::copy(XFRM, folder.path("xfrm.txt")).unwrap();
        fs::create_dir(folder.path("sub")).unwrap();
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn run(&self, args: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
        command.args(args.split_whitespace()).current_dir(self.0.path());
        command.env("FOREBAY_STATE", self.path("state")).env("NO_COLOR", "1").output().unwrap()
    }
}

/// Every file of a folder with what is in it.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| (path.display().to_string(), fs::read(&path).unwrap()))
        .collect();
    all.sort();
    all
}

#[test]
fn an_output_in_the_place_of_an_input_is_refused_and_nothing_is_touched() {
    let folder = Folder::new();
    std::os::unix::fs::symlink("a.pcap", folder.path("link.pcap")).unwrap();
    fs::hard_link(folder.path("a.pcap"), folder.path("hard.pcap")).unwrap();
    fs::create_dir(folder.path("state")).unwrap();
    let before = contents(folder.0.path());
    for args in [
        "seal --sas sas.toml a.pcap -o sas.toml",
        "seal --sas sas.toml a.pcap -o key",
        "seal --sas sas.toml a.pcap -o a.pcap",
        "seal --sas sas.toml a.pcap -o sub/../a.pcap",
        "seal --sas sas.toml a.pcap -o link.pcap",
        "seal --sas sas.toml link.pcap -o hard.pcap",
        "open --sas sas.toml a.pcap -o hard.pcap",
        "seal --sas sas.toml a.pcap -o state/records.log",
        "seal --sas sas.toml a.pcap -o new.pcap --icmp state/manifest.json --address 10.1.0.1",
        "seal --sas sas.toml --state sub a.pcap -o sub/../sub/lock",
        "seal --sas sas.toml a.pcap -o new.pcap --icmp a.pcap --address 10.1.0.1",
        "seal --sas sas.toml a.pcap -o new.pcap --icmp ./new.pcap --address 10.1.0.1",
        "simulate scenario.toml --out .",
        "simulate ./sub/../scenario.toml --out sub/..",
        "simulate scenario.toml --sweep processor.cpu.count=1,2 --out .",
        "import xfrm xfrm.txt -o xfrm.txt --force",
        "import xfrm xfrm.txt -o ./sub/../xfrm.txt --force --inline-keys",
        "bench processors --save new.json --scenario new.json",
        "bench crossover --save new.json --config new.json",
        "bench scheduler --size packets.csv --out .",
        "demo --capture packets.csv --costs packets.csv --out sub/nowhere/../..",
    ] {
        if args.starts_with("demo") {
            fs::copy(folder.path("a.pcap"), folder.path("sub/sealed.pcapng")).unwrap();
            let output = folder.run("demo --capture sub/sealed.pcapng --out sub");
            assert_eq!(output.status.code(), Some(2), "{args}");
            assert!(String::from_utf8_lossy(&output.stderr).contains("sealed.pcapng"));
            continue;
        }
        let output = folder.run(args);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args}: {said}");
        assert!(said.contains("input") || said.contains("output"), "{args}: {said}");
        assert!(said.contains("another name"), "{args}: {said}");
        assert!(contents(folder.0.path()) == before, "{args} changed a file");
    }
}

#[test]
fn devices_take_an_output_and_an_input_of_another_folder_is_left_alone() {
    let folder = Folder::new();
    for args in [
        "seal --sas sas.toml a.pcap -o /dev/null",
        "seal --sas sas.toml a.pcap -o /dev/stdout",
        "seal --sas sas.toml /dev/stdin -o /dev/stdout",
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
        command.args(args.split_whitespace()).current_dir(folder.0.path());
        command
            .env("FOREBAY_STATE", folder.path("state"))
            .stdin(fs::File::open(folder.path("a.pcap")).unwrap());
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{args}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.stdout.starts_with(&[0xd4, 0xc3, 0xb2, 0xa1]), args.ends_with("stdout"), "{args}");
    }
    let output = folder.run("import xfrm xfrm.txt -o /dev/stdout --force --inline-keys --local 192.0.2.1");
    assert!(String::from_utf8_lossy(&output.stdout).contains("[[sa]]"));
    assert_eq!(folder.run("simulate scenario.toml --out sub").status.code(), Some(0));
    assert!(folder.path("sub/report.html").exists());
    // Nothing is left of what was written aside.
    let parts = contents(&folder.path("sub")).into_iter().filter(|(name, _)| name.contains(".forebay-"));
    assert_eq!(parts.count(), 0);
}

#[test]
fn a_gateway_does_not_write_over_the_files_that_it_reads() {
    let folder = Folder::new();
    let sas = fs::read_to_string(folder.path("sas.toml")).unwrap();
    let rest = format!("[[outside]]\nkind = \"raw\"\n[keys]\nsource = \"static\"\n{sas}");
    fs::create_dir(folder.path("run")).unwrap();
    fs::create_dir(folder.path("st")).unwrap();
    folder.write("token", "0123456789abcdef");
    for (line, well) in [
        ("esp_sa_export = \"key\"", false),
        ("esp_sa_export = \"run/../g.toml\"", false),
        ("esp_sa_export = \"exported\"", true),
        ("control = { socket = \"sub/../key\" }", false),
        ("page = { listen = \"./key\" }", false),
        (
            "metrics = { listen = \"127.0.0.1:9464\", token_file = \"token\" }\nesp_sa_export = \"token\"",
            false,
        ),
        ("esp_sa_export = \"st/records.log\"", false),
        ("esp_sa_export = \"sub/../st/gateway.lock\"", false),
        ("control = { socket = \"st/manifest.json\" }", false),
        ("esp_sa_export = \"st/exported\"", true),
        ("processor = [{ kind = \"core\" }, { kind = \"rtl\", record = \"key\" }]", false),
        ("processor = [{ kind = \"core\" }, { kind = \"rtl\", record = \"./st/records.log\" }]", false),
    ] {
        folder.write("exported", "of an earlier run");
        let first = "source = \"static\"\n";
        let rest = rest.replace(first, &format!("{first}state = \"st\"\n"));
        folder.write("g.toml", &format!("{line}\n{rest}"));
        let output = folder.run("check --config g.toml");
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said.contains("names a file that the gateway uses"), !well, "{line}: {said}");
        assert_eq!(output.status.code(), Some(if well { 0 } else { 2 }), "{line}: {said}");
    }
}
