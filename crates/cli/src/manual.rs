//! `forebay man` and `forebay completions`, for packagers: pages and completions are generated from the command's own
//! definition.

mod configuration;

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, roman};
use miette::{Context, IntoDiagnostic};

use forebay_terminal::Answer;

/// What stands below every page of commands.
const MANUAL: &str = "Forebay Manual";

/// Arguments of `forebay man`.
#[derive(Args)]
pub struct ManArgs {
    /// Directory for the pages; it is created if it does not exist.
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,
    /// Date in the pages' footers, such as 2026-05-20.
    #[arg(long, default_value = "")]
    date: String,
}

/// Arguments of `forebay completions`.
#[derive(Args)]
pub struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

/// Writes a page for each command, and one for the gateway's file.
pub fn pages(args: &ManArgs, command: Command) -> miette::Result<Answer> {
    let directory = &args.directory;
    fs::create_dir_all(directory).into_diagnostic().wrap_err_with(|| directory.display().to_string())?;
    let mut command = command.disable_help_subcommand(true);
    command.build();
    write_commands(args, &command)?;
    write(&directory.join("forebay.toml.5"), &configuration::page(&args.date))?;
    Ok(Answer::Yes)
}

/// Prints the completions of a shell.
pub fn completions(args: &CompletionsArgs, command: &Command) -> miette::Result<Answer> {
    // bash would be offered hidden commands as well.
    let shown = command.get_subcommands().filter(|below| !below.is_hide_set()).cloned();
    let mut command = Command::new("forebay").version(env!("CARGO_PKG_VERSION")).subcommands(shown);
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command, "forebay", &mut text);
    print!("{}", String::from_utf8_lossy(&text));
    Ok(Answer::Yes)
}

fn write(path: &Path, text: &str) -> miette::Result<()> {
    forebay_links::output::write(path, text).into_diagnostic().wrap_err_with(|| path.display().to_string())
}

/// The page of a command, and those of the commands below it.
fn write_commands(args: &ManArgs, command: &Command) -> miette::Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        write_commands(args, below)?;
    }
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    write(&args.directory.join(format!("{name}.1")), &page(command, &args.date).into_diagnostic()?)
}

fn page(command: &Command, date: &str) -> std::io::Result<String> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let man = Man::new(command.clone());
    let mut text = title(&name, "1", date).into_bytes();
    man.render_name_section(&mut text)?;
    text.extend(synopsis(command).render().into_bytes());
    man.render_description_section(&mut text)?;
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        man.render_options_section(&mut text)?;
    }
    if command.get_subcommands().any(|below| !below.is_hide_set()) {
        man.render_subcommands_section(&mut text)?;
    }
    let mut rest = Roff::new();
    exit_status(&mut rest);
    if let Some(example) = command.get_after_help() {
        rest.control("SH", ["EXAMPLES"]);
        let example = example.to_string();
        verbatim(&mut rest, example.strip_prefix("Example: ").unwrap_or(&example));
    }
    see_also(&mut rest, &name);
    text.extend(rest.render().into_bytes());
    Ok(tidy(&String::from_utf8_lossy(&text)))
}

/// As `--help` says it.
fn synopsis(command: &Command) -> Roff {
    let usage = command.clone().render_usage().to_string();
    let mut page = Roff::new();
    page.control("SH", ["SYNOPSIS"]);
    for (place, line) in usage.trim_start_matches("Usage:").lines().map(str::trim).enumerate() {
        if place > 0 {
            page.control("br", []);
        }
        page.text([bold(line)]);
    }
    page
}

fn exit_status(page: &mut Roff) {
    page.control("SH", ["EXIT STATUS"]);
    for (code, meaning) in [
        ("0", "Success."),
        ("1", "Negative result: packets were dropped, or a claim did not hold."),
        ("2", "Usage error, invalid input file, or a failed system call. Standard error has the reason."),
        ("130", "Interrupted by a signal."),
    ] {
        page.control("TP", []).text([bold(code)]).text([roman(meaning)]);
    }
}

fn see_also(page: &mut Roff, name: &str) {
    page.control("SH", ["SEE ALSO"]);
    // A command below a command refers to that one, too.
    let above = name.rsplit_once('-').map(|(above, _)| above).filter(|above| *above != "forebay");
    let gateway = (name == "forebay.toml").then_some("forebay-gateway");
    let below = above.or(gateway).map(|page| (page, "1"));
    let pages = [Some(("forebay", "1")), below, Some(("forebay.toml", "5"))];
    let pages: Vec<_> = pages.into_iter().flatten().filter(|(page, _)| *page != name).collect();
    for (place, (name, section)) in pages.iter().enumerate() {
        let end = if place + 1 < pages.len() { "," } else { "" };
        page.control("BR", [*name, &format!("({section}){end}")]);
    }
}

/// The line that every page begins with. (`Roff` leaves empty words out.)
fn title(name: &str, section: &str, date: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(".TH {} {section} \"{date}\" \"Forebay {version}\" \"{MANUAL}\"\n", name.to_uppercase())
}

/// Text as it stands.
fn verbatim(page: &mut Roff, text: &str) {
    page.control("RS", ["4"]).control("nf", []);
    for line in text.lines() {
        page.text([roman(line)]);
    }
    page.control("fi", []).control("RE", []);
}

/// Words of which those in backticks are what is typed.
fn typed(words: &str) -> Vec<Inline> {
    let parts = words.split('`').enumerate().filter(|(_, part)| !part.is_empty());
    parts.map(|(place, part)| if place % 2 == 1 { bold(part) } else { roman(part) }).collect()
}

/// As mandoc's lint wants it: no lines that are empty or end in spaces, no break twice, none of more than 80 bytes.
fn tidy(text: &str) -> String {
    let mut tidied = String::new();
    let (mut is_verbatim, mut before) = (false, "");
    for line in text.lines() {
        let line = if line.ends_with("\\ ") { line } else { line.trim_end() };
        is_verbatim = line == ".nf" || (is_verbatim && line != ".fi");
        if (line.is_empty() && !is_verbatim) || (line == ".br" && before == ".br") {
            continue;
        }
        before = line;
        if line.starts_with('.') || is_verbatim {
            tidied.push_str(line);
        } else {
            fold(line, &mut tidied);
        }
        tidied.push('\n');
    }
    tidied
}

/// Breaks text at spaces, behind which nothing looks like a request, and behind sentences.
fn fold(line: &str, folded: &mut String) {
    const WIDTH: usize = 78;
    let mut width = 0;
    for (place, word) in line.split(' ').enumerate() {
        let escaped = folded.ends_with('\\');
        let is_request = word.starts_with(['.', '\'']);
        let is_end = folded.ends_with(['.', '?']) && word.starts_with(|letter: char| letter.is_uppercase());
        if place > 0 {
            let breaks =
                !escaped && !is_request && !word.is_empty() && (width + word.len() >= WIDTH || is_end);
            folded.push(if breaks { '\n' } else { ' ' });
            width = if breaks { 0 } else { width + 1 };
        }
        folded.push_str(word);
        width += word.len();
    }
}

#[cfg(test)]
mod tests {
    use super::configuration::capital;
    use super::*;

    #[test]
    fn lines_are_folded_where_roff_takes_no_word_for_a_request() {
        let words = "A sentence. Another one, with .dots and 'quotes in places, ".repeat(20);
        let folded = tidy(&format!(".SH NAME\n{words}\n.br\n.br\n\n.nf\nas it  stands\n\n.fi\n"));
        let (text, rest) = folded.split_once(".br\n").unwrap();
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert!(
            lines.len() > 15 && lines.iter().all(|line| line.len() <= 90 && !line.starts_with(['.', '\'']))
        );
        assert_eq!(lines.join(" "), words.trim_end());
        assert_eq!(rest, ".nf\nas it  stands\n\n.fi\n");
    }

    #[test]
    fn what_is_typed_is_bold() {
        assert_eq!(typed("take `this`, not that"), [roman("take "), bold("this"), roman(", not that")]);
        assert_eq!(capital("a path"), "A path");
    }
}
