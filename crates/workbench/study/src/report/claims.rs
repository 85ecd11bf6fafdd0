//! The tables of claims and of observations.

use forebay_page::document;
use forebay_page::element::{Element, element};
use forebay_page::units;
use serde_json::Value;

use crate::findings::{Basis, Claim, Findings, Interval, Kind, Parameter, Verdict, Whose};

/// A section with a table for each basis that claims or observations have: tests first, and apart what is none.
pub(super) fn sections(kind: Kind, findings: &Findings) -> Vec<Element> {
    let sections = Basis::ALL.into_iter().filter_map(|basis| section(kind, basis, findings));
    sections.collect()
}

/// Heading and explanation.
fn about(kind: Kind, basis: Basis) -> (&'static str, &'static str) {
    match (kind, basis) {
        (Kind::Claim, Basis::Test) => (
            "Claims",
            "Each is a sentence of a paper. It holds if every measured value lies in its band, if the interval over \
             the repetitions does too, and if it fails under its control, a wrong rule. It is not decided if it holds \
             under its control too or if the interval meets the end of the band.",
        ),
        (Kind::Observation, Basis::Test) => {
            ("Observations", "These are no sentences of a paper, and they are counted apart.")
        }
        (Kind::Claim, Basis::Arithmetic) => (
            "Arithmetic of the paper",
            "Numbers that the paper prints decide these sentences. No run could have come out otherwise.",
        ),
        (Kind::Claim, Basis::Fitted) => (
            "Claims with a fitted parameter",
            "A parameter that the paper does not print was chosen by these sentences, so that they are no tests.",
        ),
        (Kind::Claim, Basis::Consistency) => (
            "Consistency of the paper",
            "These compare numbers of the paper with each other. They reproduce nothing.",
        ),
        (Kind::Claim, Basis::Input) => ("Inputs", "What goes in comes out."),
        (Kind::Observation, _) => (
            "Observations that are inputs",
            "A number that was put in, or chosen by the observation, decides these.",
        ),
    }
}

fn section(kind: Kind, basis: Basis, findings: &Findings) -> Option<Element> {
    let claims: Vec<&Claim> = findings.of(kind, basis).collect();
    let (title, about) = about(kind, basis);
    if claims.is_empty() {
        return None;
    }
    let head = ["statement", "band", "found"];
    let head = element("thead").child(element("tr").children(head.map(|name| element("th").text(name))));
    let rows = claims.iter().flat_map(|claim| [Some(row(claim)), parameters(&claim.parameters)]);
    let body = element("tbody").children(rows.flatten());
    let table = element("table").class("claims").child(head).child(body);
    let links = [Verdict::Fails, Verdict::NotDecided].map(|verdict| links(&claims, verdict));
    let mut section = element("section")
        .child(element("h2").text(title))
        .child(element("p").text(format!("{}. {about}", counts(&claims))))
        .children(links.into_iter().flatten());
    if kind == Kind::Claim && basis == Basis::Test {
        section = section.children(without_control(&claims)).children(readings(findings));
    }
    Some(section.child(document::scroll(title, table)))
}

fn counts(claims: &[&Claim]) -> String {
    let count = |verdict| claims.iter().filter(|claim| claim.verdict == verdict).count();
    let (held, failed, open) = (count(Verdict::Holds), count(Verdict::Fails), count(Verdict::NotDecided));
    format!("Of {}, {held} hold, {failed} do not hold, and {open} are not decided", claims.len())
}

/// How many have no control, where others have one.
fn without_control(claims: &[&Claim]) -> Option<Element> {
    let count = claims.iter().filter(|claim| claim.control.is_none()).count();
    let words =
        format!("{count} of them have no control: they are about no rule, or the runs were left out.");
    (count > 0).then(|| element("p").text(words))
}

/// Counts with other readings of the paper.
fn readings(findings: &Findings) -> Vec<Element> {
    let sentences = findings.readings.iter().map(|one| {
        let words = format!(
            "Other reading: {} With it, {} of {} claims, those with fitted parameters included, have their values in \
             their bands.",
            one.says, one.held, one.claims
        );
        element("p").prose(&units::micro(&words))
    });
    sentences.collect()
}

fn sign(verdict: Verdict) -> (&'static str, &'static str, &'static str) {
    match verdict {
        Verdict::Holds => ("verdict good", "\u{2713}", "holds"),
        Verdict::Fails => ("verdict bad", "\u{2717}", "does not hold"),
        Verdict::NotDecided => ("verdict open", "?", "not decided"),
    }
}

/// Links to those with this verdict.
fn links(claims: &[&Claim], verdict: Verdict) -> Option<Element> {
    let (_, _, word) = sign(verdict);
    let mut line = element("p").text(format!("{}{}: ", word[..1].to_uppercase(), &word[1..]));
    let mut count = 0;
    for claim in claims.iter().filter(|claim| claim.verdict == verdict) {
        let link = element("a").at("href", format!("#{}", claim.id)).text(claim.id.as_str());
        line = if count == 0 { line } else { line.text(", ") }.child(link);
        count += 1;
    }
    (count > 0).then_some(line)
}

fn row(claim: &Claim) -> Element {
    let (class, sign, word) = sign(claim.verdict);
    let reason = if claim.open.is_empty() { String::new() } else { format!(": {}", claim.open) };
    let verdict = element("span").class(class).text(format!("{sign}\u{a0}{word}{reason}"));
    let mut notes = vec![claim.why.clone(), claim.because.clone()];
    notes.extend(claim.interval.as_ref().map(|one| interval(one, &claim.band.unit)));
    notes.extend(claim.control.as_ref().map(|under| {
        let word = if under.holds { "it holds too" } else { "it fails" };
        format!("Control: {} Under it {word}: {}", under.says, under.figure)
    }));
    notes.extend(claim.readings.iter().map(|under| {
        let word = if under.holds { "inside" } else { "outside" };
        format!("Other reading: {} With it the values are {word} the band: {}", under.says, under.figure)
    }));
    let notes = notes.iter().filter(|note| !note.is_empty());
    let notes = notes.map(|note| element("p").class("why").prose(&units::micro(note)));
    let found = element("td").child(verdict).child(element("p").prose(&units::micro(&claim.figure)));
    let found = found.children(notes);
    element("tr").at("id", claim.id.as_str()).child(statement(claim)).child(band(claim)).child(found)
}

/// The interval in words.
fn interval(interval: &Interval, unit: &str) -> String {
    let number = |value: f64| units::round(units::digits(value));
    let unit = if unit.is_empty() { String::new() } else { format!("\u{a0}{unit}") };
    let over =
        format!("Over {} {} the values lie in the band in {}", interval.count, interval.over, interval.held);
    match (interval.margin, interval.half_width) {
        (Some(margin), Some(half)) => {
            let side = if margin < 0.0 { "outside" } else { "inside" };
            let (margin, half) = (number(margin.abs()), number(half));
            format!("{over}; the nearest value to its end is {margin}\u{a0}\u{b1}\u{a0}{half}{unit} {side}.")
        }
        _ => format!("{over}; some of them are no finite numbers."),
    }
}

/// The paper's words, then our reading and the place.
fn statement(claim: &Claim) -> Element {
    let mut cell = element("td");
    if !claim.quote.is_empty() {
        cell = cell.child(element("q").text(claim.quote.as_str()));
    }
    if !claim.place.is_empty() {
        cell = cell.child(element("cite").text(claim.place.as_str()));
    }
    let class = if claim.quote.is_empty() { "says alone" } else { "says" };
    cell.child(element("p").class(class).prose(&units::micro(&claim.claim)))
        .child(element("code").text(claim.id.as_str()))
}

/// A row below a claim with its parameters, if there are any.
fn parameters(parameters: &[Parameter]) -> Option<Element> {
    let item = |one: &Parameter| {
        let value = format!("{}\u{a0}= {}", one.key, value(&one.value));
        let source = match one.whose {
            Whose::Printed => format!(" (printed, {})", one.source),
            Whose::Assumed => format!(" (assumed: {})", one.source),
        };
        let source = element("span").prose(&units::micro(&source));
        element("li").child(element("b").text(value)).child(source)
    };
    let list = element("ul").class("parameters").children(parameters.iter().map(item));
    let cell = element("td").at("colspan", "3").child(list);
    (!parameters.is_empty()).then(|| element("tr").class("with").child(cell))
}

/// A value of a scenario as text.
fn value(value: &Value) -> String {
    match value {
        Value::String(text) => units::micro(text),
        Value::Number(number) => {
            number.as_f64().map_or_else(|| number.to_string(), |number| units::round(units::digits(number)))
        }
        Value::Array(list) => list.iter().map(self::value).collect::<Vec<_>>().join(", "),
        Value::Bool(flag) => if *flag { "yes" } else { "no" }.to_owned(),
        other => other.to_string(),
    }
}

fn band(claim: &Claim) -> Element {
    let band = &claim.band;
    let number = |value: f64| units::round(units::digits(value));
    let ends = match (band.low, band.high) {
        (Some(low), Some(high)) if low == high => format!("exactly {}", number(low)),
        (Some(low), Some(high)) => format!("{} to {}", number(low), number(high)),
        (Some(low), None) => format!("at least {}", number(low)),
        (None, Some(high)) => format!("at most {}", number(high)),
        (None, None) => units::NOTHING.to_owned(),
    };
    let ends = match band.unit.as_str() {
        "" => ends,
        unit => units::micro(&format!("{ends}\u{a0}{unit}")),
    };
    element("td")
        .child(element("b").text(ends))
        .child(element("p").class("why").prose(&units::micro(&band.source)))
        .children(claim.since.as_ref().map(|since| {
            let set = format!("Set on {} (commit {}).", since.date, since.commit);
            element("p").class("why").text(set)
        }))
}
