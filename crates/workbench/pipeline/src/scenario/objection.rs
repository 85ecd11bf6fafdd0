//! What is found wrong with a scenario after it was read, said with its line.

use forebay_diagnostics::{FileErrors, Place, Problem};
use forebay_models::Error;
use forebay_scenario::{Section, Table, Value, tables};

use super::{PARTS, Scenario, known};
use crate::solved::{Part, Solves, obstacle};

/// The text that a scenario was read from.
#[derive(Clone, Debug)]
pub(super) struct Source {
    text: String,
    name: String,
    sets: Vec<String>,
}

impl Source {
    pub fn new(text: &str, name: &str, sets: &[String]) -> Source {
        Source { text: text.to_owned(), name: name.to_owned(), sets: sets.to_vec() }
    }
}

impl Scenario {
    /// An error of a solution as one of the file: with the line that it is about, and what to do.
    ///
    /// ```
    /// # use forebay_pipeline::scenario::Scenario;
    /// let text = "model = \"pipeline\"\narrivals = { mean = \"70 us\" }\n\
    ///             [[stage]]\nname = \"a\"\ntime = \"80 us\"\nbuffer = 9\n";
    /// let scenario = Scenario::parse(text, "a.toml", &[], ".".as_ref()).unwrap();
    /// let errors = scenario.objection(&forebay_models::Error::Unstable { utilisation: 1.143 });
    /// assert_eq!(errors.findings()[0].line(), Some(2));
    /// ```
    pub fn objection(&self, error: &Error) -> FileErrors {
        let (part, keys, help): (Part, &[&str], &str) = match error {
            Error::Unstable { .. } => (
                Part::Arrivals,
                &["mean", "packet_rate"],
                "without a limit to its room no queue stands at or above 1: offer less, or solve the chain of \
                 limited buffers",
            ),
            Error::TooLarge { .. } => (
                self.largest(),
                &["buffer"],
                "smaller buffers, such as `--set stage.NAME.buffer=4`; more with `--memory`; the closed form with \
                 `--unlimited`; or simulate",
            ),
            Error::ImmediateLoop => (
                Part::Server(0),
                &["run_length"],
                "give the run length or the switch delay a time above zero",
            ),
            _ => {
                // What a closed form cannot be of, there is no chain of either.
                let found = [Solves::ClosedForm, Solves::Chain].map(|by| obstacle(&self.pipeline, by));
                let [closed, chain] = found.map(|found| found.map(|(part, _, help)| (part, help)));
                let (part, help) =
                    closed.or(chain).unwrap_or((Part::Stage(0), "`forebay simulate` takes it"));
                (part, &[], help)
            }
        };
        self.object(part, keys, &error.to_string(), help)
    }

    /// The stage with the largest buffer.
    fn largest(&self) -> Part {
        let buffers = self.pipeline.stages.iter().map(|stage| stage.buffer).enumerate();
        Part::Stage(
            buffers.max_by_key(|&(at, buffer)| (buffer, std::cmp::Reverse(at))).map_or(0, |(at, _)| at),
        )
    }

    fn object(&self, part: Part, keys: &[&str], message: &str, help: &str) -> FileErrors {
        let Source { text, name, sets } = &*self.source;
        let read = forebay_scenario::read(text, name, sets, |root, findings| {
            let whole = Place { source: 0, span: 0..0 };
            let top = Section::new(root, String::new(), whole, &known(PARTS, ""), findings);
            let (list, name) = match part {
                Part::Arrivals => ("arrivals", ""),
                Part::Stage(at) => ("stage", self.pipeline.stages.get(at).map_or("", |stage| &stage.name)),
                Part::Server(at) => {
                    ("server", self.pipeline.servers.get(at).map_or("", |server| &server.name))
                }
            };
            let is = |table: &Table| matches!(table.get("name").map(|node| &node.value), Some(Value::Text(text)) if text == name);
            let mut all = tables(&top, list);
            let at = all.iter().position(|(table, _)| is(table)).unwrap_or(0);
            if at < all.len() {
                let (table, place) = all.swap_remove(at);
                let place = keys.iter().find_map(|key| Some(table.get(key)?.place.clone())).unwrap_or(place);
                let problem = Problem::Conflict { message: message.into(), help: help.into() };
                top.report(problem, place);
            } else {
                top.conflict(list, message, help);
            }
            None::<()>
        });
        read.expect_err("an objection was left")
    }
}
