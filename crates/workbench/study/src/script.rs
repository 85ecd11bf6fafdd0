//! The script of a study, and what it may call: [`FUNCTIONS`](crate::functions::FUNCTIONS) describes them all.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;

use forebay_page::units;
use forebay_sim::Limits;
use forebay_workbench::Way;
use miette::NamedSource;
use rhai::{Array, Dynamic, Engine, EvalAltResult, Map, Position};

use crate::error::StudyError;
use crate::findings::{Block, Claim, Findings, Heat, Plot, Series, Table, Xs};
use crate::model::{self, Setup};
use crate::runs::{Failure, Record, Runner};
use crate::study::Study;
use crate::values::{figure, number, numbers, shown, to_toml};

/// How a study is run.
pub struct Options {
    /// Runs a fiftieth of the packets: to see that a study works, not what it finds.
    pub quick: bool,
    /// Runs at a time.
    pub threads: usize,
    /// Is told runs done and runs asked for; may break the study off, which keeps what is done.
    pub watch: Box<dyn FnMut(usize, usize) -> ControlFlow<()>>,
}

type Fallible<T> = Result<T, Box<EvalAltResult>>;

/// What the functions of a script share.
struct Bench {
    runner: Runner,
    findings: Findings,
    watch: Box<dyn FnMut(usize, usize) -> ControlFlow<()>>,
}

type Shared = Rc<RefCell<Bench>>;

/// Runs a study's script.
pub fn run(study: &Study, options: Options) -> Result<Findings, StudyError> {
    let findings = Findings {
        name: study.name.clone(),
        about: study.about().map(str::to_owned).collect(),
        quick: options.quick,
        complete: true,
        ..Findings::default()
    };
    let runner = Runner::new(study, options.quick, options.threads);
    let bench = Rc::new(RefCell::new(Bench { runner, findings, watch: options.watch }));
    let engine = engine(&bench);
    let ended = engine.run(study.script());
    drop(engine);
    let mut bench = bench.borrow_mut();
    bench.findings.runs = bench.runner.records.iter().map(|record| Record::clone(record)).collect();
    match ended {
        Ok(()) => {}
        Err(error) if matches!(root(&error), EvalAltResult::ErrorTerminated(..)) => {
            bench.findings.complete = false;
        }
        Err(error) => return Err(wrong(study, &error)),
    }
    Ok(std::mem::take(&mut bench.findings))
}

/// The error inside those of the functions that were being called.
fn root(error: &EvalAltResult) -> &EvalAltResult {
    match error {
        EvalAltResult::ErrorInFunctionCall(.., inner, _) => root(inner),
        error => error,
    }
}

fn wrong(study: &Study, error: &EvalAltResult) -> StudyError {
    let error = root(error);
    let place = error.position();
    let (line, column) = (place.line().unwrap_or(1), place.position().unwrap_or(1));
    let message = match error {
        EvalAltResult::ErrorRuntime(message, _) => message.to_string(),
        error => {
            let text = error.to_string();
            text.rsplit_once(" (line ").map_or(text.clone(), |(text, _)| text.to_owned())
        }
    };
    let text = study.script();
    let before: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let at = (before + column - 1).min(text.len());
    let source = NamedSource::new(study.script_name(), text.to_owned());
    StudyError::Script { source, line, column, at, message }
}

fn error(message: impl Into<String>) -> Box<EvalAltResult> {
    Box::new(EvalAltResult::ErrorRuntime(message.into().into(), Position::NONE))
}

fn engine(bench: &Shared) -> Engine {
    let mut engine = Engine::new();
    engine.set_max_expr_depths(256, 256);
    engine.on_print(|text| eprintln!("{text}"));
    running(&mut engine, bench);
    numbering(&mut engine);
    showing(&mut engine, bench);
    engine
}

/// Scenarios and runs.
fn running(engine: &mut Engine, bench: &Shared) {
    engine.register_type_with_name::<Setup>("Scenario");
    engine.register_type_with_name::<Rc<Record>>("Run");
    let own = bench.clone();
    engine.register_fn("scenario", move |file: &str| -> Fallible<Setup> {
        let known = own.borrow().runner.knows(file);
        known.then(|| Setup { file: file.into(), sets: Vec::new(), way: Way::Simulation }).ok_or_else(|| {
            error(format!("the study has no file `{file}`; scenarios are the *.toml beside the script"))
        })
    });
    engine.register_fn("set", |setup: Setup, key: &str, value: Dynamic| with(&setup, key, &value));
    for (name, way) in [("solved", Way::Solution), ("closed", Way::ClosedForm)] {
        engine.register_fn(name, move |setup: Setup| Setup { way, ..setup });
    }
    let own = bench.clone();
    engine.register_fn("run", move |setup: Setup| -> Fallible<Rc<Record>> {
        Ok(perform(&own, &[setup])?.swap_remove(0))
    });
    let own = bench.clone();
    engine.register_fn("run", move |setups: Array| -> Fallible<Array> {
        let setups: Option<Vec<Setup>> = setups.into_iter().map(Dynamic::try_cast).collect();
        let setups = setups.ok_or_else(|| error("expected a list of scenarios"))?;
        Ok(listed(perform(&own, &setups)?))
    });
    let own = bench.clone();
    engine.register_fn("sweep", move |setup: Setup, key: &str, values: Array| -> Fallible<Array> {
        Ok(listed(perform(&own, &all(&setup, key, &values)?)?))
    });
    let own = bench.clone();
    engine.register_fn(
        "grid",
        move |setup: Setup, outer: &str, rows: Array, inner: &str, columns: Array| -> Fallible<Array> {
            let mut setups = Vec::new();
            for row in all(&setup, outer, &rows)? {
                setups.extend(all(&row, inner, &columns)?);
            }
            let runs = perform(&own, &setups)?;
            let rows = runs.chunks(columns.len().max(1));
            Ok(rows.map(|row| Dynamic::from_array(listed(row.to_vec()))).collect())
        },
    );
    let own = bench.clone();
    engine.register_fn("bound", move |setup: Setup| -> Fallible<Map> {
        let scenario = own.borrow().runner.scenario(&setup).map_err(error)?;
        let scenario = model::host(&scenario).map_err(error)?;
        Ok(limits(forebay_sim::bound(scenario, scenario.seed)))
    });
    let own = bench.clone();
    engine.register_fn("optimum", move |setup: Setup| -> Fallible<Dynamic> {
        let scenario = own.borrow().runner.scenario(&setup).map_err(error)?;
        let scenario = model::host(&scenario).map_err(error)?;
        let found = forebay_sim::optimum(scenario, scenario.seed);
        Ok(found.map_or(Dynamic::UNIT, |found| Dynamic::from_map(limits(found))))
    });
}

fn with(setup: &Setup, key: &str, value: &Dynamic) -> Fallible<Setup> {
    let mut setup = setup.clone();
    setup.sets.retain(|(known, _)| known != key);
    setup.sets.push((key.to_owned(), to_toml(value).map_err(error)?));
    Ok(setup)
}

fn all(setup: &Setup, key: &str, values: &Array) -> Fallible<Vec<Setup>> {
    values.iter().map(|value| with(setup, key, value)).collect()
}

fn listed(runs: Vec<Rc<Record>>) -> Array {
    runs.into_iter().map(Dynamic::from).collect()
}

fn perform(bench: &Shared, setups: &[Setup]) -> Fallible<Vec<Rc<Record>>> {
    let Bench { runner, watch, .. } = &mut *bench.borrow_mut();
    runner.run(setups, watch.as_mut()).map_err(|failure| match failure {
        Failure::Interrupted => Box::new(EvalAltResult::ErrorTerminated(Dynamic::UNIT, Position::NONE)),
        Failure::Wrong(message) => error(message),
    })
}

fn limits(limits: Limits) -> Map {
    let Limits { elapsed_s, throughput_bps, total_latency_mean_s } = limits;
    Map::from([
        ("elapsed_s".into(), elapsed_s.into()),
        ("throughput_bps".into(), throughput_bps.into()),
        ("total_latency_mean_s".into(), total_latency_mean_s.into()),
    ])
}

/// Numbers of runs, and numbers as text.
fn numbering(engine: &mut Engine) {
    engine.register_indexer_get(|run: &mut Rc<Record>, path: &str| -> Fallible<f64> {
        figure(&run.figures, path).map_err(error)
    });
    let scaled = |runs: &Array, path: &str, factor: f64| -> Fallible<Array> {
        let one = |run: &Dynamic| -> Fallible<Dynamic> {
            let run = run.read_lock::<Rc<Record>>().ok_or_else(|| error("expected a list of runs"))?;
            Ok((figure(&run.figures, path).map_err(error)? * factor).into())
        };
        runs.iter().map(one).collect()
    };
    engine.register_fn("figure", move |runs: Array, path: &str| scaled(&runs, path, 1.0));
    engine.register_fn("figure", move |runs: Array, path: &str, factor: f64| scaled(&runs, path, factor));
    let folded = |list: &Array, fold: fn(f64, f64) -> f64| -> Fallible<f64> {
        let all = numbers(list).map_err(error)?;
        all.into_iter().reduce(fold).ok_or_else(|| error("the list is empty"))
    };
    engine.register_fn("least", move |list: Array| folded(&list, f64::min));
    engine.register_fn("most", move |list: Array| folded(&list, f64::max));
    engine.register_fn("mean", move |list: Array| -> Fallible<f64> {
        Ok(folded(&list, |a, b| a + b)? / list.len() as f64)
    });
    engine.register_fn("falls", |list: Array, slack: f64| -> Fallible<bool> {
        Ok(numbers(&list).map_err(error)?.windows(2).all(|two| two[1] <= two[0] * (1.0 + slack)))
    });
    engine.register_fn("join", |list: Array| list.iter().map(shown).collect::<Vec<_>>().join(", "));
    for (name, write) in [
        ("digits", units::digits as fn(f64) -> String),
        ("percent", units::percent),
        ("bits", units::bits_per_second),
        ("time", units::seconds),
    ] {
        engine.register_fn(name, move |value: Dynamic| -> Fallible<String> {
            Ok(write(number(&value).map_err(error)?))
        });
    }
}

/// The page.
fn showing(engine: &mut Engine, bench: &Shared) {
    engine.register_type_with_name::<Series>("Series");
    let own = bench.clone();
    let put = move |block| own.borrow_mut().findings.blocks.push(block);
    let own = put.clone();
    engine.register_fn("section", move |title: &str| own(Block::Section(title.to_owned())));
    let own = put.clone();
    engine.register_fn("text", move |words: &str| own(Block::Text(words.to_owned())));
    engine.register_fn("series", |name: &str, xs: Array, ys: Array| -> Fallible<Series> {
        let ys = numbers(&ys).map_err(error)?;
        let named = xs.iter().any(Dynamic::is_string);
        let xs = if named {
            Xs::Names(xs.iter().map(shown).collect())
        } else {
            Xs::Numbers(numbers(&xs).map_err(error)?)
        };
        if xs.len() != ys.len() {
            return Err(error(format!("series `{name}` has {} places and {} values", xs.len(), ys.len())));
        }
        Ok(Series { name: name.to_owned(), xs, ys, ..Series::default() })
    });
    let own = put.clone();
    engine.register_fn("plot", move |title: &str, x: &str, y: &str, series: Array| -> Fallible<()> {
        plot(title, x, y, series, &Map::new()).map(|plot| own(Block::Plot(plot)))
    });
    let own = put.clone();
    engine.register_fn(
        "plot",
        move |title: &str, x: &str, y: &str, series: Array, more: Map| -> Fallible<()> {
            plot(title, x, y, series, &more).map(|plot| own(Block::Plot(plot)))
        },
    );
    let own = put.clone();
    engine.register_fn("table", move |title: &str, head: Array, rows: Array| -> Fallible<()> {
        let head: Vec<String> = head.iter().map(shown).collect();
        let rows = cells(&rows, |cell| Ok(shown(cell)), head.len())?;
        own(Block::Table(Table { title: title.to_owned(), head, rows }));
        Ok(())
    });
    let own = put;
    engine.register_fn(
        "heat",
        move |title: &str, x: &str, y: &str, columns: Array, rows: Array, values: Array, note: &str| {
            let (columns, rows): (Vec<String>, Vec<String>) =
                (columns.iter().map(shown).collect(), rows.iter().map(shown).collect());
            let values = cells(&values, number, columns.len())?;
            if values.len() != rows.len() {
                return Err(error(format!("{} rows of values for {} rows", values.len(), rows.len())));
            }
            let (title, x, y, note) = (title.to_owned(), x.to_owned(), y.to_owned(), note.to_owned());
            own(Block::Heat(Heat { title, x, y, columns, rows, values, note }));
            Fallible::Ok(())
        },
    );
    let own = bench.clone();
    let claim = move |id: &str, words: &str, quote: &str, figure: &str, holds: bool, why: &str| {
        let claims = &mut own.borrow_mut().findings.claims;
        if claims.iter().any(|claim| claim.id == id) {
            return Err(error(format!("claim `{id}` is there already")));
        }
        let [id, claim, quote, figure, why] = [id, words, quote, figure, why].map(str::to_owned);
        claims.push(Claim { id, claim, quote, figure, holds, why });
        Fallible::Ok(())
    };
    let own = claim.clone();
    engine.register_fn("claim", move |id: &str, words: &str, figure: &str, holds: bool, why: &str| {
        own(id, words, "", figure, holds, why)
    });
    engine.register_fn("claim", claim);
}

fn plot(title: &str, x: &str, y: &str, series: Array, more: &Map) -> Fallible<Plot> {
    let series: Option<Vec<Series>> = series.into_iter().map(Dynamic::try_cast).collect();
    let mut plot = Plot {
        title: title.to_owned(),
        x: x.to_owned(),
        y: y.to_owned(),
        series: series.ok_or_else(|| error("expected a list of series"))?,
        ..Plot::default()
    };
    for (key, value) in more {
        match key.as_str() {
            "log_x" => plot.log_x = value.as_bool().map_err(|_| error("`log_x` is true or false"))?,
            "log_y" => plot.log_y = value.as_bool().map_err(|_| error("`log_y` is true or false"))?,
            "note" => plot.note = value.to_string(),
            other => return Err(error(format!("unknown `{other}`; there are log_x, log_y, note"))),
        }
    }
    Ok(plot)
}

/// Rows of `width` cells each.
fn cells<T>(
    rows: &Array,
    cell: impl Fn(&Dynamic) -> Result<T, String>,
    width: usize,
) -> Fallible<Vec<Vec<T>>> {
    let row = |row: &Dynamic| -> Fallible<Vec<T>> {
        let list = row.as_array_ref().map_err(|_| error("expected a list of rows, each a list"))?;
        if list.len() != width {
            return Err(error(format!("a row has {} cells for {width} columns", list.len())));
        }
        list.iter().map(|one| cell(one).map_err(error)).collect()
    };
    rows.iter().map(row).collect()
}
