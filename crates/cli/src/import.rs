//! `forebay import`: other systems' SAs and policies into a gateway's file.

use std::cell::RefCell;
use std::fs::{DirBuilder, File};
use std::io::{Read, Write};
use std::net::IpAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use forebay_config as config;
use forebay_import::{
    self as import, Imported, ImportedIke, ImportedWireguard, Include, Remark, Text, Written,
};
use forebay_links::output::Output;
use miette::{Context, IntoDiagnostic, miette};
use serde::Serialize;
use zeroize::Zeroizing;

use forebay_terminal::{Answer, refuse_inputs};

/// Longest text that is read, in bytes.
const MAX_LEN: u64 = 64 << 20;

/// What is taken over.
#[derive(Subcommand)]
pub enum ImportCommand {
    /// Import the output of `ip xfrm state` followed by that of `ip xfrm policy`.
    #[command(
        after_help = "Example: (ip xfrm state; ip xfrm policy) | forebay import xfrm - -o gateway.toml"
    )]
    Xfrm {
        /// The text to import; `-` is standard input.
        #[arg(default_value = "-")]
        file: PathBuf,
        /// An address of the machine that printed the text. Required where outbound and inbound SAs cannot be told apart.
        #[arg(long, value_name = "ADDRESS")]
        local: Vec<IpAddr>,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Write a gateway configuration for the connections of strongSwan's swanctl.conf. charon continues to negotiate; the gateway
    /// processes the packets.
    #[command(after_help = "Example: forebay import swanctl /etc/swanctl/swanctl.conf -o gateway.toml")]
    Swanctl {
        /// The configuration; `-` is standard input.
        file: PathBuf,
        #[command(flatten)]
        output: FileArgs,
    },
    /// Write a gateway configuration for the connections of an ipsec.conf, of strongSwan's starter or of libreswan. The daemon
    /// continues to negotiate.
    #[command(after_help = "Example: forebay import ipsec-conf /etc/ipsec.conf -o gateway.toml")]
    IpsecConf {
        /// The configuration; `-` is standard input.
        file: PathBuf,
        #[command(flatten)]
        output: FileArgs,
    },
    /// Import addresses and networks of a WireGuard interface (`wg showconf`, wg-quick). Values that its file lacks are marked `FILL
    /// IN`.
    #[command(after_help = "Example: forebay import wireguard /etc/wireguard/wg0.conf -o gateway.toml")]
    Wireguard {
        /// The configuration; `-` is standard input.
        file: PathBuf,
        #[command(flatten)]
        output: FileArgs,
    },
    /// Import the configuration of DPDK's ipsec-secgw.
    #[command(after_help = "Example: forebay import secgw ep0.cfg -o gateway.toml")]
    Secgw {
        /// The configuration (.cfg); `-` is standard input.
        file: PathBuf,
        #[command(flatten)]
        output: OutputArgs,
    },
}

/// Where a file without keys goes.
#[derive(Args)]
pub struct FileArgs {
    /// The gateway configuration to write [default: standard output].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace an existing file; requires `--output`.
    #[arg(long, requires = "output")]
    force: bool,
    /// Print a summary as JSON; requires `--output`.
    #[arg(long, requires = "output")]
    json: bool,
}

/// Where what is taken over goes.
#[derive(Args)]
pub struct OutputArgs {
    /// The gateway configuration to write [default: standard output].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Directory for the keys, relative to that of the gateway configuration. Each key gets its own file, readable by
    /// its owner only.
    #[arg(long, value_name = "DIR", default_value = "keys", conflicts_with = "inline_keys")]
    keys: String,
    /// Write the keys into the gateway configuration itself.
    #[arg(long)]
    inline_keys: bool,
    /// Replace existing files.
    #[arg(long)]
    force: bool,
    /// Print a summary as JSON; requires `--output`.
    #[arg(long, requires = "output")]
    json: bool,
}

#[derive(Serialize)]
struct Document {
    schema: u32,
    sas: usize,
    policies: usize,
    /// What was not taken over.
    lost: Vec<Entry>,
    /// What is done otherwise, or has no meaning.
    notes: Vec<Entry>,
    files: Vec<String>,
}

#[derive(Serialize)]
struct Entry {
    /// The file, if it is one that the given one includes.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    line: usize,
    text: String,
    reason: String,
}

impl ImportCommand {
    /// Runs the command.
    pub fn run(&self) -> miette::Result<Answer> {
        match self {
            ImportCommand::Swanctl { file, output } => {
                finish_ike(import::swanctl::read, "swanctl.conf", file, output)
            }
            ImportCommand::IpsecConf { file, output } => {
                finish_ike(import::ipsec_conf::read, "ipsec.conf", file, output)
            }
            ImportCommand::Wireguard { file, output } => {
                finish_wireguard(&import::wireguard::read(&read(file)?), file, output)
            }
            ImportCommand::Xfrm { file, local, output } => finish(
                &import::xfrm::read(&read(file)?, local),
                &format!("ip xfrm ({})", file.display()),
                file,
                output,
            ),
            ImportCommand::Secgw { file, output } => finish(
                &import::secgw::read(&read(file)?),
                &format!("ipsec-secgw ({})", file.display()),
                file,
                output,
            ),
        }
    }
}

/// The files of a path with shell wildcards. That none has it is an error only where it has no wildcard.
fn included(pattern: &Path) -> Result<Vec<Text>, String> {
    let text = pattern.to_str().ok_or("its name is not UTF-8")?;
    let found = glob::glob(text).map_err(|error| format!("not a pattern of file names: {}", error.msg))?;
    let mut paths: Vec<PathBuf> = found.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    paths.sort();
    if paths.is_empty() && !text.contains(['*', '?', '[']) {
        return Err(format!("file not found: {text}"));
    }
    let read = |path: PathBuf| match read(&path) {
        Ok(text) => Ok(Text { path, text }),
        Err(error) => Err(format!("{error}: {}", error.root_cause())),
    };
    paths.into_iter().map(read).collect()
}

fn read(path: &Path) -> miette::Result<Zeroizing<String>> {
    let name = path.display();
    let mut text = Zeroizing::new(String::new());
    let taken = if path == Path::new("-") {
        std::io::stdin().lock().take(MAX_LEN + 1).read_to_string(&mut text)
    } else {
        File::open(path).and_then(|file| file.take(MAX_LEN + 1).read_to_string(&mut text))
    };
    let len = taken.into_diagnostic().wrap_err_with(|| format!("cannot read {name}"))?;
    if len as u64 > MAX_LEN {
        return Err(miette!("{name} is longer than {MAX_LEN} bytes"));
    }
    Ok(text)
}

/// What reads the configuration of a daemon, with the files that it includes.
type ReadIke = fn(&str, Option<&Path>, &Include<'_>) -> ImportedIke;

/// What a daemon's connections need of a gateway.
fn finish_ike(reader: ReadIke, kind: &str, from: &Path, args: &FileArgs) -> miette::Result<Answer> {
    // An output takes the place of none of them.
    let inputs = RefCell::new(vec![from.to_owned()]);
    let include = |pattern: &Path| {
        let texts = included(pattern)?;
        inputs.borrow_mut().extend(texts.iter().map(|one| one.path.clone()));
        Ok(texts)
    };
    let path = (from != Path::new("-")).then_some(from);
    let imported = reader(&read(from)?, path, &include);
    let origin = format!("{kind} ({})", from.display());
    show(&imported.remarks);
    if imported.children() == 0 {
        let help = "a gateway serves the children of connections, each with its networks; see docs/ike.md";
        return Err(miette!(help = help, "found no connection that the gateway can serve"));
    }
    let text = imported.write(&origin);
    // Nothing is written that would not be read.
    config::parse(&text, "the imported configuration", Path::new(""))?;
    let files = store_text(&text, &inputs.into_inner(), args)?;
    let what = format!("a configuration for {}", counted(imported.children(), "child SA", "child SAs"));
    report(&imported.remarks, (0, 0), &what, files, args.json)
}

/// What WireGuard's file says of a gateway, with what has to be filled in.
fn finish_wireguard(imported: &ImportedWireguard, from: &Path, args: &FileArgs) -> miette::Result<Answer> {
    show(&imported.remarks);
    if imported.peers() == 0 {
        let help =
            "give the file of wg-quick or what `wg showconf` prints: a peer has networks in `AllowedIPs`";
        return Err(miette!(help = help, "found no peer with a network to protect"));
    }
    let text = imported.write(&format!("WireGuard ({})", from.display()));
    let files = store_text(&text, &[from.to_owned()], args)?;
    let peers = imported.peers();
    report(
        &imported.remarks,
        (0, 0),
        &format!("networks of {}", counted(peers, "peer", "peers")),
        files,
        args.json,
    )
}

/// Writes a gateway's file without keys, or prints it; the names of what was written.
fn store_text(text: &str, from: &[PathBuf], args: &FileArgs) -> miette::Result<Vec<String>> {
    refuse_inputs(&args.output, from)?;
    match &args.output {
        Some(path) if path.exists() && !args.force => Err(there_already(path)),
        Some(path) => {
            create(path, &[text.as_bytes()])?;
            Ok(vec![path.display().to_string()])
        }
        None => {
            print!("{text}");
            Ok(Vec::new())
        }
    }
}

fn there_already(path: &Path) -> miette::Report {
    let help = "give another name, or use `--force` to replace it";
    miette!(help = help, "{} is there already", path.display())
}

fn show(remarks: &[Remark]) {
    for remark in remarks {
        let what = if remark.lost { "not imported:" } else { "note:" };
        eprintln!("{what} {}: {}\n    {}", remark.place(), remark.text, remark.reason);
    }
}

fn finish(imported: &Imported, origin: &str, from: &Path, args: &OutputArgs) -> miette::Result<Answer> {
    refuse_inputs(&args.output, [from])?;
    show(&imported.remarks);
    if imported.sas.is_empty() {
        return Err(miette!(
            help = "for ip xfrm, print state and policy as root; for ipsec-secgw, give the file of its option -f",
            "found no SA to import"
        ));
    }
    // Nothing is written that would not be read.
    let whole = import::write(imported, origin, None);
    let config = config::parse(&whole.text, "the imported configuration", Path::new(""))?;
    for warning in config.warnings {
        eprintln!("{:?}", miette::Report::new(warning));
    }
    let written = match args.inline_keys {
        true => whole,
        false => import::write(imported, origin, Some(&format!("{}/", args.keys.trim_end_matches('/')))),
    };
    let files = store(&written, from, args)?;
    let (sas, policies) = (imported.sas.len(), imported.policies.len());
    report(
        &imported.remarks,
        (sas, policies),
        &format!("{} and {}", counted(sas, "SA", "SAs"), counted(policies, "policy", "policies")),
        files,
        args.json,
    )
}

/// Writes keys, then the file that names them; the names of all.
fn store(written: &Written, from: &Path, args: &OutputArgs) -> miette::Result<Vec<String>> {
    let directory = args.output.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
    let mut files = Vec::new();
    let places: Vec<PathBuf> = written.keys.iter().map(|key| directory.join(&key.name)).collect();
    refuse_inputs(places.iter().chain(&args.output), [from])?;
    if !args.force {
        let taken = places.iter().chain(&args.output).find(|path| path.exists());
        if let Some(path) = taken {
            return Err(there_already(path));
        }
    }
    if let Some(folder) = places.first().and_then(|path| path.parent()) {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.into_diagnostic().wrap_err_with(|| format!("cannot create {}", folder.display()))?;
    }
    for (key, path) in written.keys.iter().zip(&places) {
        create(path, &[key.text.as_bytes(), b"\n"])?;
        files.push(path.display().to_string());
    }
    match &args.output {
        Some(path) => {
            create(path, &[written.text.as_bytes()])?;
            files.push(path.display().to_string());
        }
        None => print!("{}", *written.text),
    }
    Ok(files)
}

/// A whole file, in the place of one that is there, for its owner alone whatever that one's mode was.
fn create(path: &Path, parts: &[&[u8]]) -> miette::Result<()> {
    let write = || {
        let mut output = Output::create_with_mode(path, 0o600)?;
        parts.iter().try_for_each(|part| output.write_all(part))?;
        output.finish()
    };
    write().into_diagnostic().wrap_err_with(|| format!("cannot write {}", path.display()))
}

/// A number with its noun.
fn counted(count: usize, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

/// Says what was imported and what not, and whether that was all.
fn report(
    remarks: &[Remark],
    (sas, policies): (usize, usize),
    what: &str,
    files: Vec<String>,
    json: bool,
) -> miette::Result<Answer> {
    let lost = remarks.iter().filter(|remark| remark.lost).count();
    if json {
        let entries = |lost: bool| {
            let wanted = remarks.iter().filter(|remark| remark.lost == lost).cloned();
            wanted.map(|Remark { file, line, text, reason, .. }| Entry { file, line, text, reason }).collect()
        };
        let document =
            Document { schema: 1, sas, policies, lost: entries(true), notes: entries(false), files };
        println!("{}", serde_json::to_string_pretty(&document).into_diagnostic()?);
    } else {
        let (skipped, wrote) = (counted(lost, "item", "items"), counted(files.len(), "file", "files"));
        eprintln!("imported {what}, skipped {skipped}, wrote {wrote}");
    }
    Ok(if lost == 0 { Answer::Yes } else { Answer::No })
}
