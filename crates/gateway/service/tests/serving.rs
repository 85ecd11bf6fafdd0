//! The serving loop of a gateway alone, stepped by a program.

use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::time::Duration;

use forebay_config::Config;
use forebay_crypto_aws_lc::AwsLc;
use forebay_engine::{Clock, ProcessorSetup};
use forebay_gateway::service::{Caretaker, Host, InProcess, StartError};
use forebay_gateway::serving::{Event, Process, Serving, Step};
use forebay_sas::SasErrors;
use forebay_scheduler::{Cost, Kind};

/// A program with a gateway in it, and the text of its file.
struct Program {
    host: InProcess,
    directory: PathBuf,
    clock: Clock,
    text: String,
}

impl Process for Program {
    fn read(&mut self) -> Result<Config, SasErrors> {
        forebay_config::parse(&self.text, "gateway.toml", &self.directory)
    }

    fn clock(&self) -> Clock {
        self.clock
    }

    fn unix_time(&self) -> fn() -> Duration {
        || Duration::from_secs(1_800_000_000)
    }

    fn seed(&mut self) -> u64 {
        1
    }

    fn host(&self) -> &dyn Host {
        &self.host
    }

    fn open_processors(&mut self, _config: &Config) -> miette::Result<Vec<Vec<ProcessorSetup>>> {
        Ok(vec![vec![ProcessorSetup::new(Box::new(AwsLc::new()), Kind::Cpu, Cost::default())]])
    }
}

/// A file with an outbound SA for each SPI.
fn file(spis: &[u32]) -> String {
    let text = "[guard]\nmode = \"off\"\n[keys]\nstate = \"state\"\n[inside]\n[[outside]]\nkind = \"raw\"\n\
                addresses = [\"192.0.2.1\"]\nprotocols = [\"esp\"]\n";
    let sa = |spi: &u32| {
        format!(
            "[[sa]]\nname = \"out-{spi}\"\ndirection = \"out\"\nspi = {spi}\nproposal = \"aes128gcm16\"\nkey = \"{}\"\n\
             local = \"192.0.2.1\"\nremote = \"192.0.2.2\"\nremote_ts = [\"10.2.{}.0/24\"]\n",
            format!("{:02x}", spi % 256).repeat(20),
            spi % 256
        )
    };
    text.to_owned() + &spis.iter().map(sa).collect::<String>()
}

fn names(serving: &Serving) -> Vec<String> {
    let config = serving.config().expect("a configuration");
    config.sas.entries.iter().map(|sa| sa.config.name.clone()).collect()
}

/// A gateway with the SA of SPI 4097, and what has to outlive it: its directory and the other ends of its links.
fn started() -> (Program, Serving, (tempfile::TempDir, [UnixDatagram; 2])) {
    let directory = tempfile::tempdir().unwrap();
    let ((inside, program_end), (outside, network_end)) =
        (UnixDatagram::pair().unwrap(), UnixDatagram::pair().unwrap());
    let host = InProcess::new(inside).with_outside(outside);
    let path = directory.path().to_owned();
    let mut program = Program { host, directory: path, clock: Clock::start(), text: file(&[4097]) };
    let config = program.read().unwrap();
    let caretaker = Caretaker::open(&config, program.host(), None).unwrap();
    let serving = Serving::start(&mut program, config, caretaker).unwrap();
    (program, serving, (directory, [program_end, network_end]))
}

#[test]
fn a_gateway_alone_serves_until_its_end_and_a_file_with_errors_changes_nothing() {
    let (mut program, mut serving, _ends) = started();
    assert!(serving.service().is_some() && serving.others().is_none());
    assert!(matches!(serving.step(&mut program).unwrap(), Step { event: None, refused: None, .. }));

    program.text = file(&[4097, 4098]).replace("esp", "nonsense");
    let refused = serving.reload(&mut program).unwrap_err();
    assert!(refused.downcast_ref::<SasErrors>().is_some(), "{refused:?}");
    assert_eq!(names(&serving), ["out-4097"]);

    program.text = file(&[4098]);
    let (changes, _) = serving.reload(&mut program).unwrap();
    assert_eq!((changes.kept.as_slice(), changes.removed.as_slice()), (&[None][..], &[0][..]));
    assert_eq!(names(&serving), ["out-4098"]);

    serving.end(program.clock.now());
    assert!(matches!(serving.step(&mut program).unwrap().event, Some(Event::Ended)));
    assert!(serving.service().is_none());
}

/// SAs are in use, whatever fails behind them, and the answer says so.
#[test]
fn a_reload_that_fails_in_part_says_what_is_in_use() {
    let (mut program, mut serving, _ends) = started();
    program.text = format!("esp_sa_export = \"nowhere/keys\"\n{}", file(&[4098, 4099]));
    let failed = serving.reload(&mut program).unwrap_err();
    let Some(StartError::InPart { changes, .. }) = failed.downcast_ref() else { panic!("{failed:?}") };
    assert_eq!((changes.kept.len(), changes.removed.len()), (2, 1));
    assert_eq!(names(&serving), ["out-4098", "out-4099"]);
    let help = failed.help().unwrap().to_string();
    assert!(failed.to_string().contains("nowhere/keys") && help.contains("directory"), "{failed:?}");
    program.text = file(&[4098, 4099]);
    let (changes, _) = serving.reload(&mut program).unwrap();
    assert_eq!(changes.kept, [Some(0), Some(1)]);
}

/// What takes a restart is said at each reload until then, and nothing goes by it before.
#[test]
fn what_waits_for_a_restart_is_said_again_and_not_done_in_part() {
    let (mut program, mut serving, _ends) = started();
    let mut reload = |text: String| {
        program.text = text;
        let (changes, _) = serving.reload(&mut program).unwrap();
        let said: Vec<_> = changes.restart.iter().map(ToString::to_string).collect();
        let running = serving.service().unwrap().config().clone();
        (said, changes.kept.len(), running.guard_host().table, running.routes().len())
    };
    let renamed = file(&[4097])
        .replace("[inside]\n", "[inside]\nname = \"other0\"\nroutes = [\"10.9.0.0/24\", \"10.8.0.0/24\"]\n");
    for spis in 1..3 {
        // SAs take effect all the same.
        let text = renamed.clone() + &file(&[4098])[file(&[]).len()..].repeat(spis - 1);
        let (said, sas, table, routes) = reload(text);
        assert_eq!(
            said,
            [
                "[inside] name: \"forebay0\" -> \"other0\"",
                "[inside] routes: \"auto\" -> [\"10.9.0.0/24\", \"10.8.0.0/24\"]"
            ]
        );
        assert_eq!((sas, table.as_str(), routes), (spis, "forebay_forebay0", spis));
    }
    // With SAs of the kernel none of the file's would be left.
    let kernel = file(&[]).replace("[keys]\n", "[keys]\nsource = \"xfrm\"\n");
    let (said, sas, ..) = reload(kernel);
    assert_eq!(sas, 2);
    assert!(said.iter().any(|one| one == "[keys] source: \"static\" -> \"xfrm\""), "{said:?}");
    // Nor is anything else of it in use.
    let more = file(&[]).replace("[keys]\n", "[taps]\ndirectory = \"/tmp\"\n[keys]\nsource = \"xfrm\"\n");
    let (said, ..) = reload(more);
    assert!(said.iter().any(|one| one.starts_with("[taps] directory: ")), "{said:?}");
    // Back to what it runs by.
    let (said, sas, ..) = reload(file(&[4097]));
    assert_eq!((said.len(), sas), (0, 1), "{said:?}");
}
