//! The lists of keys say what the readers take: examples and words are accepted, what is out of range is not, and defaults
//! are those of the resolved scenario. The gateway's file and the SAs file have such tests in `forebay-config` and `forebay-sas`.

use std::path::Path;

use forebay_diagnostics::Problem;
use forebay_reference::{File, files};
use forebay_scenario::schema::{Absent, Key, Part, Takes};
use forebay_scenario::{Decimal, Unit};
use forebay_workbench::Model;
use serde_json::Value as Json;

const PROCESSORS: &str = "[[bus]]\nname = \"pci0\"\n[[bus]]\nname = \"link\"\nbandwidth = \"1 Gbit/s\"\n\
    [[processor]]\nname = \"card\"\nkind = \"accelerator\"\n\
    [[processor]]\nname = \"second\"\nkind = \"accelerator\"\n\
    [[processor]]\nname = \"cpu\"\nkind = \"cpu\"\nblock = \"1 us\"\n\
    [[processor]]\nname = \"ratio\"\nkind = \"cpu\"\nblock_ratio = 2\n\
    [[processor]]\nname = \"seen\"\nkind = \"cpu\"\nthroughput = \"110 Mbit/s\"\nthroughput_size = 640\n";
const CLASSES: &str = "[[class]]\nname = \"a\"\nshare = 1\nsource = \"fixed\"\nvalue = 5\n\
    [[class]]\nname = \"b\"\nservice = \"weighted\"\nshare = 1\nsource = \"exponential\"\nmean = 100\n\
    [[class]]\nname = \"c\"\nservice = \"weighted\"\nshare = 1\nsource = \"uniform\"\nmax = 2000\n\
    [[class]]\nname = \"d\"\nservice = \"weighted\"\nshare = 1\nsource = \"histogram\"\nbins = [[1, 1]]\n\
    [[class]]\nname = \"e\"\nservice = \"weighted\"\nshare = 1\nsource = \"imix\"\n";
const FIXED: &str = "source = \"fixed\"\nvalue = 100\n";

/// A scenario of the host model.
fn host(traffic: &str, rest: &str) -> String {
    format!("model = \"host\"\n[traffic]\n{traffic}{PROCESSORS}{rest}")
}

/// Scenarios without fault, among which each key has its place.
fn bases(file: &str) -> Vec<String> {
    let rate = "rate = \"1 Gbit/s\"\n";
    let policy = |word: &str| host(&format!("{FIXED}{rate}"), &format!("[scheduler]\npolicy = \"{word}\"\n"));
    match file {
        "host" => vec![
            host(&format!("{FIXED}{rate}"), "[scheduler]\n"),
            host(&format!("{FIXED}{rate}suites = [\"aes\", \"3des\"]\n"), ""),
            host(&format!("{FIXED}{rate}sas = 3\n"), CLASSES),
            host(
                &format!("{FIXED}{rate}passes = [\"aes\", \"sha1\"]\n"),
                "[[processor]]\nname = \"keyed\"\nkind = \"cpu\"\nblock = \"1 us\"\nkey_load = \"1 us\"\n[scheduler]\n",
            ),
            host(&format!("{FIXED}packet_rate = 1000\n"), ""),
            format!(
                "model = \"host\"\n[traffic]\n{FIXED}{rate}[bus]\nenergy_per_byte = 1\n[[processor]]\nname = \"card\"\n\
                 kind = \"accelerator\"\nactive_power = 1\nidle_power = 1\n"
            ),
            host(&format!("{FIXED}{rate}arrivals = \"on-off\"\non = 1\noff = 1\n"), ""),
            host(&format!("source = \"exponential\"\nmean = 256\n{rate}"), ""),
            host(&format!("source = \"uniform\"\nmax = 2000\n{rate}"), ""),
            host(&format!("source = \"histogram\"\nbins = [[1, 1]]\n{rate}"), ""),
            host(
                "source = \"histogram\"\nbins = [[1, 1], [2, 1]]\ntransitions = [[1, 1], [1, 1]]\nsas = 2\n\
                 gaps = [[1, 1, 1], [2, 2, 1]]\n",
                "",
            ),
            host(&format!("source = \"imix\"\n{rate}"), ""),
            host("source = \"file\"\npath = \"trace.csv\"\n", ""),
            policy("single"),
            policy("size-threshold"),
            policy("split"),
            policy("adaptive-alpha"),
            host(
                &format!("{FIXED}{rate}"),
                "[[processor]]\nname = \"running\"\nkind = \"cpu\"\nblock = \"1 us\"\nmove = \"1 us\"\n[scheduler]\npoll = true\n",
            ),
            format!(
                "model = \"host\"\n[traffic]\n{FIXED}{rate}[cores]\n[[processor]]\nname = \"cpu\"\nkind = \"cpu\"\nblock = \"1 us\"\n"
            ),
        ],
        "pipeline" => {
            let stages = "[[server]]\nname = \"core\"\ndiscipline = \"interrupt-driven\"\n\
                [[stage]]\nname = \"a\"\ntime = \"1 us\"\nbuffer = 10\nserver = \"core\"\n\
                [[stage]]\nname = \"b\"\nrate = \"1 Gbit/s\"\nbuffer = 10\n\
                [[stage]]\nname = \"c\"\ntimes = [\"1 us\"]\nbuffer = 10\n\
                [[stage]]\nname = \"d\"\ntime = \"1 us\"\nphases = 3\nbuffer = 10\n\
                [[stage]]\nname = \"transmit\"\ntime = \"1 us\"\nbuffer = 10\n";
            let law = |(at, (word, shape)): (usize, &(&str, &str))| {
                let scale = "scale = \"1 us\"\nbuffer = 10\n";
                format!("[[stage]]\nname = \"s{at}\"\ndistribution = \"{word}\"\n{shape}\n{scale}")
            };
            let shapes = [
                ("uniform", ""),
                ("gamma", "a = 2"),
                ("lognorm", "s = 1"),
                ("weibull_min", "c = 2"),
                ("pareto", "b = 4"),
                ("triang", "c = 0.5"),
            ];
            let laws = shapes.iter().enumerate().map(law).collect::<String>()
                + "[[stage]]\nname = \"of two\"\ntimes = [\"1 us\", \"2 us\"]\nshares = [0.5, 0.5]\nbuffer = 10\n";
            let down = "mtbf = \"1 s\"\nmttr = \"1 ms\"\n";
            let network = format!(
                "[[server]]\nname = \"core\"\ndiscipline = \"interrupt-driven\"\n{down}\
                 [[stage]]\nname = \"a\"\ntime = \"1 us\"\nbuffer = 10\nserver = \"core\"\n\
                 next = [{{ stage = \"crypto\", share = 0.3 }}]\n\
                 [[stage]]\nname = \"crypto\"\ntime = \"1 us\"\nbuffer = 10\n{down}"
            );
            let model = "model = \"pipeline\"\npacket_bytes = 1000\n";
            vec![
                format!("{model}[arrivals]\nmean = \"70 us\"\n{stages}"),
                format!("{model}[arrivals]\npacket_rate = 1000\n{stages}"),
                format!("model = \"pipeline\"\n[arrivals]\npath = \"trace.csv\"\n{stages}"),
                "model = \"pipeline\"\n[arrivals]\nmean = \"70 us\"\n[[stage]]\nname = \"a\"\ntime = \"1 us\"\nbuffer = 10\n"
                    .to_owned(),
                format!("{model}[arrivals]\nmean = \"70 us\"\n{laws}"),
                format!("{model}[arrivals]\nmean = \"70 us\"\n{network}"),
                format!(
                    "{model}[arrivals]\nmean = \"70 us\"\n[[stage]]\nname = \"a\"\ntime = \"1 us\"\nbuffer = 4294967295\n\
                     batch = 4294967295\n\
                     batch_min = 2\nbatch_timeout = \"1 ms\"\n"
                ),
            ]
        }
        "inline-card" => vec![
            "model = \"inline-card\"\npayload = 1000\noffered = \"1 Mbit/s\"\n[[resource]]\nname = \"memory\"\nrate = \"8 Gbit/s\"\n\
             [[resource]]\nname = \"io\"\nrate = \"1 Gbit/s\"\n[[resource]]\nname = \"cpu\"\nseen = \"1 Gbit/s\"\nbusy = 0.5\n"
                .to_owned(),
            "model = \"inline-card\"\npayload = 1000\noffered = \"1 Mbit/s\"\nbuffer = 4294967295\n[[resource]]\nname = \"core\"\nrate = \"8 Gbit/s\"\n\
             depth = 2\n[[resource]]\nname = \"cpu\"\nrate = \"1 Gbit/s\"\ninterrupt = \"5 us\"\n"
                .to_owned(),
        ],
        "embedded" => vec![
            "model = \"embedded\"\n[firmware]\npath = \"ipsec-plain\"\n[input]\ncapture = \"demo\"\nsas = \"sas.toml\"\n".to_owned(),
            "model = \"embedded\"\n[firmware]\npath = \"ipsec-plain\"\n".to_owned(),
            "model = \"embedded\"\n[firmware]\npath = \"ipsec-plain\"\n[icache]\nreplacement = \"random\"\n[dcache]\n\
             replacement = \"random\"\n"
                .to_owned(),
        ],
        _ => vec![],
    }
}

/// A scenario with a key set, wherever it can stand: the problems at each place, none where it is accepted.
fn tried(base: &str, part: &Part, key: &str, value: &str, folder: &Path) -> Vec<Vec<Problem>> {
    let table: toml::Table = toml::from_str(base).unwrap();
    // The first of the tables inside of others.
    let (section, inside) = part.section.split_once('.').unwrap_or((part.section, ""));
    let holds = |entry: &&toml::Value| matches!(entry.get(inside), Some(toml::Value::Array(_)));
    let paths: Vec<String> = match (section, table.get(section)) {
        ("", _) => vec![key.to_owned()],
        (section, Some(toml::Value::Array(entries))) if !inside.is_empty() => {
            let names = entries.iter().filter(holds).filter_map(|entry| entry.get("name")?.as_str());
            names.map(|name| format!("{section}.{name}.{inside}.0.{key}")).collect()
        }
        (section, Some(toml::Value::Array(entries))) => {
            let names = entries.iter().filter_map(|entry| entry.get("name")?.as_str());
            names.map(|name| format!("{section}.{name}.{key}")).collect()
        }
        (_, None) if part.several => vec![],
        (section, _) => vec![format!("{section}.{key}")],
    };
    let problems = |path: String| match Model::parse(base, "base.toml", &[format!("{path}={value}")], folder)
    {
        Ok(_) => vec![],
        Err(errors) => errors.findings().iter().map(|one| one.problem().clone()).collect(),
    };
    paths.into_iter().map(problems).collect()
}

struct Check {
    folder: tempfile::TempDir,
    wrong: Vec<String>,
}

impl Check {
    fn all(&self, file: &File, part: &Part, key: &Key, value: &str) -> Vec<Vec<Problem>> {
        bases(file.name)
            .iter()
            .flat_map(|base| tried(base, part, key.name, value, self.folder.path()))
            .collect()
    }

    fn accepts(&mut self, file: &File, part: &Part, key: &Key, value: &str) {
        let all = self.all(file, part, key, value);
        if !all.iter().any(Vec::is_empty) {
            let least = all.into_iter().min_by_key(Vec::len);
            self.wrong.push(format!(
                "{}: {} {} = {value} is refused: {least:?}",
                file.name,
                part.header(),
                key.name
            ));
        }
    }

    /// Whether the value is wrong at a place where the example is right; elsewhere keys may have no effect.
    fn refuses(&mut self, file: &File, part: &Part, key: &Key, value: &str) {
        let good = self.all(file, part, key, key.example);
        let all = self.all(file, part, key, value);
        let mut pairs = good.iter().zip(&all);
        if key.name != "dscp" && !pairs.any(|(good, value)| good.is_empty() && !value.is_empty()) {
            self.wrong.push(format!("{}: {} {} = {value} is accepted", file.name, part.header(), key.name));
        }
    }

    fn key(&mut self, file: &File, part: &Part, key: &Key) {
        // Code points want a capture.
        if key.name != "dscp" {
            self.accepts(file, part, key, key.example);
        }
        match key.takes {
            Takes::Flag => self.refuses(file, part, key, "1"),
            Takes::Text | Takes::Path => self.refuses(file, part, key, "true"),
            Takes::Word(words) => {
                for word in words {
                    let all = self.all(file, part, key, &format!("\"{word}\""));
                    let unknown = |one: &Problem| matches!(one, Problem::UnknownWord { key: name, .. } if name == key.name);
                    if all.iter().all(|problems| problems.iter().any(unknown)) {
                        self.wrong.push(format!(
                            "{}: {} {} does not know {word}",
                            file.name,
                            part.header(),
                            key.name
                        ));
                    }
                }
                self.refuses(file, part, key, "\"no-such-word\"");
            }
            Takes::Whole(_, least, most) => {
                self.refuses(file, part, key, &(i128::from(least) - 1).to_string());
                if most < u64::MAX {
                    self.refuses(file, part, key, &(most + 1).to_string());
                    // As large as may be contradicts other keys, or takes much memory.
                    if !["min", "alpha_lower", "sas", "count"].contains(&key.name) {
                        self.accepts(file, part, key, &most.to_string());
                    }
                }
            }
            Takes::Time(..) => {
                ["-1", "\"214 d\""].iter().for_each(|value| self.refuses(file, part, key, value))
            }
            Takes::Number(least, most) => {
                self.refuses(file, part, key, &(least - 0.001).to_string());
                if most < 1e9 {
                    self.refuses(file, part, key, &(most + 0.001).to_string());
                }
            }
            Takes::Positive(_) => ["0", "-1"].iter().for_each(|value| self.refuses(file, part, key, value)),
            Takes::Quantity(_) => self.refuses(file, part, key, "-1"),
            Takes::Amount | Takes::List(_) | Takes::Either(..) | Takes::Other(_) => {
                self.refuses(file, part, key, "{ no = 1 }");
            }
        }
    }

    /// Defaults beside those of the resolved scenario.
    fn defaults(&mut self, file: &File, base: &str) {
        let given: Json = serde_json::to_value(toml::from_str::<toml::Table>(base).unwrap()).unwrap();
        let model = Model::parse(base, "base.toml", &[], self.folder.path())
            .unwrap_or_else(|e| panic!("{e}\n{base}"));
        let resolved = match &model {
            Model::Host(one) => one.resolved.clone(),
            Model::Pipeline(one) => one.resolved.clone(),
            Model::Card(one) => one.resolved.clone(),
            Model::Embedded(one) => one.resolved.clone(),
        };
        for part in &file.parts {
            let (given, resolved) = (entries(&given, part), entries(&resolved, part));
            for key in part.keys {
                let Absent::Is(default) = key.absent else { continue };
                for (at, entry) in resolved.iter().enumerate() {
                    let is_given = given.get(at).is_some_and(|entry| entry.get(key.name).is_some());
                    let Some(found) = entry.get(key.name).filter(|_| !is_given) else { continue };
                    if !same(default, found) {
                        let (name, header) = (file.name, part.header());
                        self.wrong.push(format!("{name}: {header} {} is {found}, not {default}", key.name));
                    }
                }
            }
        }
    }
}

/// The tables of a section.
fn entries<'a>(document: &'a Json, part: &Part) -> Vec<&'a Json> {
    match (part.section, document.get(part.section)) {
        ("", _) => vec![document],
        (_, Some(Json::Array(list))) => list.iter().collect(),
        (_, one) => one.into_iter().collect(),
    }
}

/// Whether a default as it is written is this value in base units.
fn same(written: &str, found: &Json) -> bool {
    let table: toml::Table = toml::from_str(&format!("value = {written}")).unwrap();
    let value = serde_json::to_value(&table["value"]).unwrap();
    if value == *found {
        return true;
    }
    let number = match &value {
        Json::String(text) => [Unit::Time, Unit::Frequency, Unit::Rate, Unit::Bytes]
            .into_iter()
            .find_map(|unit| Decimal::parse_quantity(text, unit).ok())
            .map(Decimal::as_f64),
        other => other.as_f64(),
    };
    number.zip(found.as_f64()).is_some_and(|(one, other)| (one - other).abs() <= 1e-9 * other.abs())
}

#[test]
fn readers_take_what_the_reference_says() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("trace.csv"), "size,time\n100,0\n100,0.1\n100,0.2\n").unwrap();
    let mut check = Check { folder, wrong: vec![] };
    let mut keys = 0;
    for file in files() {
        for base in bases(file.name) {
            check.defaults(&file, &base);
        }
        if bases(file.name).is_empty() {
            continue;
        }
        for part in &file.parts {
            for key in part.keys {
                check.key(&file, part, key);
                keys += 1;
            }
        }
    }
    assert!(check.wrong.is_empty(), "{}", check.wrong.join("\n"));
    assert!(keys > 150, "{keys}");
}

#[test]
fn examples_of_instructions_are_known() {
    let file = files().into_iter().find(|file| file.name == "instructions").unwrap();
    for part in &file.parts {
        for key in part.keys {
            let text = format!("{}\n{}\n", part.header(), key.line());
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("mine.toml");
            std::fs::write(&path, text).unwrap();
            let Err(errors) = forebay_embedded::instructions::Instructions::load(&path) else { continue };
            for one in errors.findings() {
                let missing = matches!(one.problem(), Problem::MissingKey { .. });
                assert!(missing, "{} {}: {one}", part.header(), key.line());
            }
        }
    }
}
