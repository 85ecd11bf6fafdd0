//! Breakdowns of a stage's units, or of a server's cores.

use forebay_scenario::{Section, Unit};
use forebay_time::Duration;
use serde_json::{Map, Value as Json};

use crate::description::Breakdowns;
use crate::law::Law;

/// How what the section describes breaks down, if it does.
pub(super) fn read(section: &Section<'_>, map: &mut Map<String, Json>) -> Option<Breakdowns> {
    let word = section.word("breakdowns", &["exponential", "constant"]).unwrap_or("exponential");
    if !["mtbf", "mttr", "breakdowns"].iter().any(|key| section.has(key)) {
        return None;
    }
    for (key, example) in [("mtbf", "mtbf = \"10 s\""), ("mttr", "mttr = \"200 ms\"")] {
        if !section.has(key) {
            section.missing(key, example);
        }
    }
    let time = |key: &str| {
        let least = Duration(1);
        section.positive(key, Unit::Time).and_then(|_| section.time(key)).map(|time| time.max(least))
    };
    let (mtbf, mttr) = (time("mtbf"), time("mttr"));
    let (mtbf, mttr) = (mtbf?, mttr?);
    map.insert("mtbf".to_owned(), mtbf.as_secs().into());
    map.insert("mttr".to_owned(), mttr.as_secs().into());
    map.insert("breakdowns".to_owned(), word.into());
    Some(match word {
        "constant" => Breakdowns { up: Law::Constant(mtbf), repair: Law::Constant(mttr) },
        _ => Breakdowns::exponential(mtbf, mttr),
    })
}
