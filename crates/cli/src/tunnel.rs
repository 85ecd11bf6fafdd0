//! `forebay tunnel`: the files of both gateways of a tunnel, and the next keys of gateways that stay up.

use std::fs::DirBuilder;
use std::io::{BufRead, IsTerminal, Write};
use std::net::IpAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use forebay_config as config;
use forebay_crypto::Suite;
use forebay_crypto_aws_lc::random;
use forebay_provision::{Authentication, Folder, ProvisionError, STEPS, Side, Tunnel};
use forebay_terminal::Answer;
use miette::{Context, IntoDiagnostic, miette};

use crate::keygen::{create, refuse_existing, suite};

/// What is done about tunnels.
#[derive(Subcommand)]
pub enum TunnelCommand {
    /// Write the configurations of both gateways of a new tunnel, with keys, each into a folder of its own.
    #[command(
        after_help = "Example: forebay tunnel new --side west=192.0.2.1,10.1.0.0/16 --side east=192.0.2.2,10.2.0.0/16"
    )]
    New(NewArgs),
    /// Make the next keys for gateways that stay up: the configurations of the steps in which no packet is lost.
    #[command(after_help = "Example: forebay tunnel roll west/gateway.toml east/gateway.toml --out next")]
    Roll(RollArgs),
}

/// Arguments of `forebay tunnel new`.
#[derive(Args)]
pub struct NewArgs {
    /// A side: its name, the address or host name at which its peer reaches it, and the networks behind it. Give it twice. On a
    /// terminal, the command asks for sides that are not given.
    #[arg(long = "side", value_name = "NAME=ADDRESS,NETWORK[,NETWORK...]")]
    sides: Vec<String>,
    /// The address of a side on its own interface, if a NAT translates it to the address of `--side` (as public clouds do), or
    /// if `--side` has a host name. Requires `--link udp`.
    #[arg(long, value_name = "NAME=ADDRESS")]
    behind_nat: Vec<String>,
    /// The suite of both SAs [default: aes256-sha256 for keys in files, aes256gcm16 with --ike].
    #[arg(long, visible_alias = "suite", value_parser = suite)]
    proposal: Option<Suite>,
    /// The link between the gateways: ESP in UDP on port 4500, or ESP in IP without UDP.
    #[arg(long, value_enum, default_value = "udp")]
    link: Link,
    /// Have strongSwan negotiate the keys; the sides authenticate by a pre-shared secret or by certificates.
    #[arg(long, value_enum)]
    ike: Option<Ike>,
    /// The directory in which to create one folder for each side.
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
}

/// A kind of link.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Link {
    /// ESP in UDP, port 4500.
    Udp,
    /// ESP in IP, without UDP.
    Raw,
}

/// How the sides authenticate to each other.
#[derive(Clone, Copy, ValueEnum)]
enum Ike {
    /// A pre-shared secret.
    Psk,
    /// Certificates.
    Cert,
}

/// Arguments of `forebay tunnel roll`.
#[derive(Args)]
pub struct RollArgs {
    /// The configurations of all gateways that share the SAs, each with its key files beside it.
    #[arg(required = true, num_args = 2.., value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The directory in which a folder is made for each gateway.
    #[arg(long, value_name = "DIR", default_value = "next")]
    out: PathBuf,
}

impl TunnelCommand {
    /// Runs the command.
    pub fn run(&self) -> miette::Result<Answer> {
        match self {
            TunnelCommand::New(args) => new(args),
            TunnelCommand::Roll(args) => roll(args),
        }
    }
}

fn report(error: ProvisionError) -> miette::Report {
    miette!(help = error.hint(), "{error}")
}

fn new(args: &NewArgs) -> miette::Result<Answer> {
    let mut sides = sides(args)?;
    for word in &args.behind_nat {
        behind_nat(word, &mut sides)?;
    }
    let authentication = match args.ike {
        None => Authentication::Keys,
        Some(Ike::Psk) => Authentication::IkeSecret,
        Some(Ike::Cert) => Authentication::IkeCertificates,
    };
    let usual = if args.ike.is_none() { "aes256-sha256" } else { "aes256gcm16" };
    let suite = args.proposal.map_or_else(|| suite(usual).map_err(|error| miette!("{error}")), Ok)?;
    let tunnel = Tunnel::new(sides, suite, args.link == Link::Udp, authentication).map_err(report)?;
    let folders = tunnel.folders(&mut random);
    if suite.cipher() == forebay_crypto::Cipher::TripleDesCbc {
        eprintln!(
            "warning: {suite} is slow and has blocks of 64 bits (RFC 8221 5: SHOULD NOT): use it only for a peer that supports \
             nothing else\n"
        );
    }
    if matches!(suite.cipher(), forebay_crypto::Cipher::Null | forebay_crypto::Cipher::AesGmac(_)) {
        eprintln!(
            "warning: {suite} authenticates packets and does not encrypt them: everyone on the path can read them. For \
             encryption give a suite with a cipher, such as aes256-sha256\n"
        );
    }
    let script = tunnel.certificates().map(|text| (args.out.join("certificates.sh"), text));
    let beside: Vec<PathBuf> = script.iter().map(|(path, _)| path.clone()).collect();
    write(&args.out, &folders, &beside)?;
    if let Some((path, text)) = script {
        create(&path, &text)?;
        println!(
            "\n# Create a CA and the certificates of both sides, with OpenSSL:\n(cd {} && sh certificates.sh)",
            word_of_shell(&args.out)
        );
    }
    for (folder, side) in folders.iter().zip(tunnel.sides()) {
        println!("\n# {}: copy the folder to its host, and run there as root:", folder.name);
        let host = match side.address() {
            Some(IpAddr::V6(outer)) => format!("[{outer}]"),
            _ => side.outer.to_string(),
        };
        println!("scp -rp {} root@{host}:", word_of_shell(&args.out.join(&folder.name)));
        folder.commands.iter().for_each(|command| println!("    {command}"));
    }
    let part = if args.ike.is_none() { "the [[sa]] sections" } else { "what it lacks" };
    println!(
        "\n# On a host that already has /etc/forebay/gateway.toml, add {part} to that file instead of replacing it."
    );
    if args.ike.is_none() && suite.iv_repeat_is_fatal() {
        eprintln!(
            "\nwarning: {suite} under keys from files is safe only as long as both gateways keep their `state` directories: a \
             repeated IV reveals traffic (RFC 8221 says to use AES-CBC with manual keys)"
        );
    }
    Ok(Answer::Yes)
}

/// A path as one word of a command that a person copies into a shell.
fn word_of_shell(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |letter: char| letter.is_alphanumeric() || "/._-+@%:,=".contains(letter);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// The two sides, from the arguments or from answers at the terminal.
fn sides(args: &NewArgs) -> miette::Result<[Side; 2]> {
    let mut sides =
        args.sides.iter().map(|text| text.parse().map_err(report)).collect::<miette::Result<Vec<Side>>>()?;
    if sides.len() < 2 && std::io::stdin().is_terminal() {
        let (mut input, mut output) = (std::io::stdin().lock(), std::io::stderr());
        while sides.len() < 2 {
            let is_free = |name: &&&str| sides.iter().all(|side| side.name != **name);
            let name = ["west", "east"].iter().find(is_free).unwrap_or(&"east");
            sides.push(ask_side(name, &mut input, &mut output)?);
        }
    }
    let found = sides.len();
    sides.try_into().map_err(|_| {
        let help = "give `--side NAME=ADDRESS,NETWORK` twice, such as --side west=192.0.2.1,10.1.0.0/16";
        let sides = if found == 1 { "side" } else { "sides" };
        miette!(help = help, "found {found} {sides}, expected 2")
    })
}

/// Asks for a side until its parts are right.
fn ask_side(usual: &str, input: &mut impl BufRead, output: &mut impl Write) -> miette::Result<Side> {
    loop {
        let name = ask(&format!("Name of a side [{usual}]: "), input, output)?;
        let name = if name.is_empty() { usual.to_owned() } else { name };
        let outer = ask(&format!("Address or host name at which its peer reaches {name}: "), input, output)?;
        let networks = ask(&format!("Networks behind {name}, separated by commas: "), input, output)?;
        let networks: Vec<&str> =
            networks.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
        match Side::new(&name, &outer, &networks) {
            Ok(side) if side.address().is_some() => return Ok(side),
            Ok(mut side) => {
                let own = ask(&format!("Own address of {name}, behind its NAT: "), input, output)?;
                match own.parse() {
                    Ok(own) => {
                        side.own = Some(own);
                        return Ok(side);
                    }
                    Err(_) => writeln!(output, "`{own}` is not an IP address").into_diagnostic()?,
                }
            }
            Err(error) => writeln!(output, "{error}: {}", error.hint()).into_diagnostic()?,
        }
    }
}

fn ask(question: &str, input: &mut impl BufRead, output: &mut impl Write) -> miette::Result<String> {
    write!(output, "{question}").and_then(|()| output.flush()).into_diagnostic()?;
    let mut line = String::new();
    if input.read_line(&mut line).into_diagnostic()? == 0 {
        return Err(miette!(help = "give `--side` twice", "the input ended before both sides were given"));
    }
    Ok(line.trim().to_owned())
}

fn behind_nat(word: &str, sides: &mut [Side; 2]) -> miette::Result<()> {
    let names: Vec<&str> = sides.iter().map(|side| side.name.as_str()).collect();
    let help = format!(
        "write NAME=ADDRESS with the name of a side ({}), such as {}=172.31.5.9",
        names.join(", "),
        names[0]
    );
    let wrong = || {
        miette!(
            help = help.clone(),
            "`--behind-nat {word}`: expected a side and the address of its own interface"
        )
    };
    let (name, address) = word.split_once('=').ok_or_else(wrong)?;
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    let side = sides.iter_mut().find(|side| side.name == name).ok_or_else(wrong)?;
    if side.own.is_some() {
        return Err(miette!(help = "give it once for each side", "`--behind-nat {name}` is given twice"));
    }
    side.own = Some(address);
    Ok(())
}

fn roll(args: &RollArgs) -> miette::Result<Answer> {
    let mut read = vec![];
    for path in &args.files {
        let text = forebay_sas::read_text(path)
            .map_err(|problem| forebay_sas::of_file(&path.display().to_string(), problem))?;
        read.push((path.as_path(), text, config::load(path)?));
    }
    let files: Vec<(&Path, &str, &config::Config)> =
        read.iter().map(|(path, text, config)| (*path, text.as_str(), config)).collect();
    let rolled = forebay_provision::roll(&files, &mut random).map_err(report)?;
    write(&args.out, &rolled.folders, &[])?;
    for (name, file) in &rolled.kept {
        eprintln!("note: {file}: `{name}` keeps its keys: its other side is in none of the files");
    }
    let keys = if rolled.renewed == 1 { "1 SA".to_owned() } else { format!("{} SAs", rolled.renewed) };
    println!(
        "\n# New keys for {keys}. Copy each folder to its host. Do each step on all hosts before the next one, as root."
    );
    for (step, (file, what)) in STEPS
        .iter()
        .zip(["receive with the new keys", "send with the new keys", "remove the old keys"])
        .enumerate()
    {
        println!("\n# Step {}: {what}", step + 1);
        for folder in &rolled.folders {
            let name = &folder.name;
            println!("# {name}");
            folder.commands.iter().filter(|_| step == 0).for_each(|command| println!("    {command}"));
            println!(
                "    install -m 0640 -g forebay {name}/{file} /etc/forebay/gateway.toml && systemctl reload forebay"
            );
        }
    }
    println!(
        "\n# `forebay show sas` shows after step 2 which SAs count packets. Delete the old key files after step 3."
    );
    Ok(Answer::Yes)
}

/// Writes the folders; none if one of them, or a file of `beside`, is there.
fn write(out: &Path, folders: &[Folder], beside: &[PathBuf]) -> miette::Result<()> {
    let mut places: Vec<PathBuf> = folders.iter().map(|folder| out.join(&folder.name)).collect();
    places.extend_from_slice(beside);
    refuse_existing(&places)?;
    for folder in folders {
        for file in &folder.files {
            let path = out.join(&folder.name).join(&file.name);
            let above = path.parent().unwrap_or(out);
            let made = DirBuilder::new().recursive(true).mode(0o700).create(above);
            made.into_diagnostic().wrap_err_with(|| format!("cannot create {}", above.display()))?;
            create(&path, &file.text)?;
            println!("{}", path.display());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_single_words_of_a_shell() {
        assert_eq!(word_of_shell(Path::new("out/west")), "out/west");
        assert_eq!(word_of_shell(Path::new("my dir/$x")), "'my dir/$x'");
        assert_eq!(word_of_shell(Path::new("it's")), r"'it'\''s'");
    }

    #[test]
    fn a_side_is_asked_for_until_it_is_right() {
        let mut said = vec![];
        let input = "\n192.0.2.1\n10.1.0.1/16\nnorth\n192.0.2.1\n10.1.0.0/16, 10.9.0.0/16\n";
        let side = ask_side("west", &mut input.as_bytes(), &mut said).unwrap();
        assert_eq!((side.name.as_str(), side.networks.len()), ("north", 2));
        let said = String::from_utf8(said).unwrap();
        assert!(said.contains("[west]: ") && said.contains("host bits are set: write 10.1.0.0/16"), "{said}");
        assert!(ask_side("west", &mut "west\n".as_bytes(), &mut vec![]).is_err());
        let input = "\nwest.example.org\n10.1.0.0/16\nhere\n\nwest.example.org\n10.1.0.0/16\n192.168.1.2\n";
        let side = ask_side("west", &mut input.as_bytes(), &mut vec![]).unwrap();
        assert_eq!(
            (side.outer.to_string().as_str(), side.own),
            ("west.example.org", "192.168.1.2".parse().ok())
        );
    }
}
