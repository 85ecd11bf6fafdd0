//! SAs that are bound to worker threads, beside the number of worker threads that there are.

use forebay_crypto::Direction;
use forebay_sas::mask;

use super::Config;
use super::reader::Context;

/// Notes SAs whose worker thread does not exist, and inbound ones whose packets arrive at another.
pub(super) fn check(config: &Config, text: &str, context: &Context<'_>) {
    let has_card = config.cards().next().is_some();
    if config.cards().any(|card| card.queues.is_none()) {
        return;
    }
    let workers = config.workers(|_| 1);
    for entry in &config.sas.entries {
        let Some(cpu) = entry.config.cpu else { continue };
        let name = mask::shown(&entry.config.name);
        // As sockets distribute what they receive; the queues of a card are steered by its own rules.
        let steered = entry.config.spi.get() as usize % workers;
        let (message, help) = if cpu as usize >= workers {
            let what = match entry.direction {
                Direction::Seal => format!("SA `{name}` is unused"),
                Direction::Open => format!("`cpu` of SA `{name}` has no effect"),
            };
            let help = format!("raise `queues` to {}, or set `cpu` to at most {}", cpu + 1, workers - 1);
            (format!("{what}: there is no worker thread {cpu}, the last one is {}", workers - 1), help)
        } else if entry.direction == Direction::Open && steered != cpu as usize && !has_card {
            let message = format!(
                "packets of SA `{name}` arrive at worker thread {steered} and are handed off to worker thread {cpu}"
            );
            (
                message,
                format!("choose an SPI that leaves {cpu} when divided by {workers}, or leave out `cpu`"),
            )
        } else {
            continue;
        };
        context.advise(message, &help, &super::place_of_sa(config, text, entry));
    }
}
