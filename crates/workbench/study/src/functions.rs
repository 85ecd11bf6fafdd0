//! What the functions of a study's script do: the list from which `docs/reference/study.md` is made.

/// One function, or one form of it.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// What it is about: functions of one group stand together.
    pub group: &'static str,
    /// Its name.
    pub name: &'static str,
    /// How it is called; `s` is a scenario, `run` a run, `runs` a list of them.
    pub call: &'static str,
    /// Types of the arguments, where the names do not say them.
    pub takes: &'static str,
    /// The type of its value; `()` for none.
    pub gives: &'static str,
    /// What it does, in one sentence.
    pub meaning: &'static str,
}

const RUNS: &str = "Scenarios and runs";
const FIGURES: &str = "Figures";
const TEXT: &str = "Numbers as text";
const PAGE: &str = "The report";

const fn of(
    group: &'static str,
    name: &'static str,
    call: &'static str,
    takes: &'static str,
    gives: &'static str,
    meaning: &'static str,
) -> Function {
    Function { group, name, call, takes, gives, meaning }
}

/// Every function that scripts have besides those of Rhai.
pub const FUNCTIONS: &[Function] = &[
    of(
        RUNS,
        "scenario",
        "scenario(file)",
        "string",
        "scenario",
        "reads a scenario file beside the script; of any model",
    ),
    of(
        RUNS,
        "set",
        "s.set(key, value)",
        "string; number, string, bool or list",
        "scenario",
        "a copy with another value; keys as for `forebay simulate --set`: `\"traffic.rate\"`, `\"processor.card.count\"`",
    ),
    of(
        RUNS,
        "solved",
        "s.solved()",
        "",
        "scenario",
        "a copy that is solved instead of simulated: a pipeline by its Markov chain, an inline card by its limits",
    ),
    of(
        RUNS,
        "closed",
        "s.closed()",
        "",
        "scenario",
        "a copy that is computed by closed forms, as though buffers had no limit; of pipelines",
    ),
    of(RUNS, "run", "run(s)", "scenario", "run", "runs a scenario; equal scenarios of a study are run once"),
    of(RUNS, "run", "run([s, ...])", "list of scenarios", "list of runs", "runs them in parallel"),
    of(
        RUNS,
        "sweep",
        "sweep(s, key, values)",
        "scenario; string; list",
        "list of runs",
        "a run for each value of the key, in parallel",
    ),
    of(
        RUNS,
        "grid",
        "grid(s, key, values, key2, values2)",
        "scenario; string; list; string; list",
        "list of lists of runs",
        "for each value of the first key, a list with a run for each value of the second",
    ),
    of(
        RUNS,
        "bound",
        "bound(s)",
        "scenario of the host model",
        "map",
        "limits that no placement can beat: `elapsed_s`, `throughput_bps`, `total_latency_mean_s`",
    ),
    of(
        RUNS,
        "optimum",
        "optimum(s)",
        "scenario of the host model",
        "map or `()`",
        "the same figures of the best placement, found by trying all; `()` if there are too many",
    ),
    of(
        FIGURES,
        "index",
        "run[path]",
        "string",
        "number",
        "a figure of a run: `\"throughput_bps\"`, `\"total_latency.p99_s\"`, and of a processor, class, stage, server or \
         resource by its name: `\"cpu.load\"`, `\"card.0.packets\"`, `\"receive.max_queue\"`; an unknown path is an error that \
         lists the known ones",
    ),
    of(
        FIGURES,
        "figure",
        "figure(runs, path)",
        "list of runs; string",
        "list of numbers",
        "the figure of each run",
    ),
    of(
        FIGURES,
        "figure",
        "figure(runs, path, factor)",
        "list of runs; string; float",
        "list of numbers",
        "the figure of each run times a factor, such as 1e-9 for Gbit/s",
    ),
    of(FIGURES, "least", "least(list)", "list of numbers", "number", "the smallest number"),
    of(FIGURES, "most", "most(list)", "list of numbers", "number", "the largest number"),
    of(FIGURES, "mean", "mean(list)", "list of numbers", "number", "the arithmetic mean"),
    of(
        FIGURES,
        "falls",
        "falls(list, slack)",
        "list of numbers; float",
        "bool",
        "whether no number exceeds the one before it by more than the share `slack`",
    ),
    of(TEXT, "digits", "digits(x)", "number", "string", "three significant digits: `\"1.23\"`"),
    of(TEXT, "percent", "percent(x)", "number", "string", "a share in percent: 0.25 is `\"25.0 %\"`"),
    of(TEXT, "bits", "bits(x)", "number", "string", "a rate in bit/s with a prefix: `\"1.2 Gbit/s\"`"),
    of(TEXT, "time", "time(x)", "number", "string", "a time in seconds with a prefix: `\"17.6 us\"`"),
    of(TEXT, "join", "join(list)", "list", "string", "the values as text, separated by commas"),
    of(PAGE, "section", "section(title)", "string", "()", "a heading of the report"),
    of(PAGE, "text", "text(words)", "string", "()", "a paragraph of the report"),
    of(
        PAGE,
        "series",
        "series(name, xs, ys)",
        "string; list of numbers or of strings; list of numbers",
        "series",
        "a line of a plot over numbers, or bars over names; `xs` and `ys` have the same length",
    ),
    of(
        PAGE,
        "plot",
        "plot(title, x, y, series)",
        "strings; list of series",
        "()",
        "a diagram; `x` and `y` are the titles of the axes",
    ),
    of(
        PAGE,
        "plot",
        "plot(title, x, y, series, #{log_x: true})",
        "strings; list of series; map",
        "()",
        "the same with options: `log_x` and `log_y` (bool) for logarithmic axes, `note` (string) below the diagram",
    ),
    of(
        PAGE,
        "table",
        "table(title, head, rows)",
        "string; list; list of lists",
        "()",
        "a table; each row has as many cells as the head",
    ),
    of(
        PAGE,
        "heat",
        "heat(title, x, y, columns, rows, values, note)",
        "strings; list; list; list of lists of numbers; string",
        "()",
        "a map of ratios, one list of values per row, with a line where the ratio passes 1",
    ),
    of(
        PAGE,
        "claim",
        "claim(id, words, figure, holds, why)",
        "strings; bool; string",
        "()",
        "a line of the table of claims: the claim in `words`, what was found in `figure`, whether it holds, and why or under \
         what condition; `id` is unique; with `--strict`, `forebay study run` exits with 1 if a claim does not hold",
    ),
    of(
        PAGE,
        "claim",
        "claim(id, words, quote, figure, holds, why)",
        "strings; bool; string",
        "()",
        "the same with the source's own wording in `quote`",
    ),
];

#[cfg(test)]
mod tests {
    use super::FUNCTIONS;
    use std::collections::BTreeSet;

    /// The names that the script's engine is given, as its source has them.
    fn registered() -> BTreeSet<&'static str> {
        let source = include_str!("script.rs");
        let mut names: BTreeSet<&str> = BTreeSet::new();
        for rest in source.split("register_fn(").skip(1) {
            let rest = rest.trim_start();
            if let Some(name) = rest.strip_prefix('"').and_then(|rest| rest.split('"').next()) {
                names.insert(name);
            }
        }
        // Those that are given in a loop: `("solved", ...)`.
        for list in source.split("for (name, ").skip(1) {
            let list = list.split("] {").next().unwrap_or_default();
            let words = list.split("(\"").skip(1).filter_map(|rest| rest.split('"').next());
            names.extend(words);
        }
        names
    }

    #[test]
    fn every_registered_function_is_described_and_no_other() {
        let described: BTreeSet<&str> =
            FUNCTIONS.iter().map(|one| one.name).filter(|name| *name != "index").collect();
        assert_eq!(described, registered());
    }

    #[test]
    fn a_call_names_its_function() {
        for one in FUNCTIONS.iter().filter(|one| one.name != "index") {
            assert!(one.call.contains(&format!("{}(", one.name)), "{}", one.call);
        }
    }
}
