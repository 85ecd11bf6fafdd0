//! Checks that SAs with `cpu` belong to worker threads that exist.

use forebay_crypto::Direction;
use forebay_sas::mask;

use super::Config;
use super::reader::Context;

/// Notes SAs whose worker thread does not exist.
pub(super) fn check(config: &Config, text: &str, context: &Context<'_>) {
    if config.cards().any(|card| card.queues.is_none()) {
        return;
    }
    let workers = config.workers(|_| 1);
    for entry in &config.sas.entries {
        let Some(cpu) = entry.config.cpu else { continue };
        let name = mask::shown(&entry.config.name);
        if (cpu as usize) < workers {
            continue;
        }
        let what = match entry.direction {
            Direction::Seal => format!("SA `{name}` is unused"),
            Direction::Open => format!("`cpu` of SA `{name}` has no effect"),
        };
        let help = format!("raise `queues` to {}, or set `cpu` to at most {}", cpu + 1, workers - 1);
        let message = format!("{what}: there is no worker thread {cpu}, the last one is {}", workers - 1);
        context.advise(message, &help, &super::place_of_sa(config, text, entry));
    }
}
