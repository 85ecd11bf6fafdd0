//! The output of `ip xfrm state` and `ip xfrm policy` (iproute2), with or without `-s`, in one text.
//!
//! The kernel's states have no direction. It is that of the state where newer versions print it, otherwise that of the
//! policies' templates, of the addresses that are said to be local, or of the numbers that were counted.

mod algorithm;
mod policy;
mod state;

use std::net::IpAddr;

use forebay_crypto::Direction;
use forebay_ipsec::Action;

use super::Imported;
use policy::RawPolicy;
use state::RawState;

/// A line with its number, from 1.
type Line<'a> = (usize, &'a str);

/// Reads both lists in one text, in any order. `local` are addresses of the machine that printed them, where they are
/// known.
pub fn read(text: &str, local: &[IpAddr]) -> Imported {
    let mut imported = Imported::default();
    let (mut states, mut policies) = (Vec::new(), Vec::new());
    for block in blocks(text, &mut imported) {
        let second = block.get(1).map_or("", |(_, line)| line.trim());
        if second.starts_with("proto ") {
            states.extend(state::read(&block, &mut imported));
        } else if second.starts_with("dir ") {
            policies.extend(policy::read(&block, &mut imported));
        } else if second.starts_with("socket ") {
            imported.note(
                block[0].0,
                block[0].1,
                "a policy of a single socket, as IKE daemons have them for themselves",
            );
        } else {
            imported.lose(block[0].0, block[0].1, "neither a state nor a policy follows this line");
        }
    }
    let places = add_states(states, &policies, local, &mut imported);
    let given = !policies.is_empty();
    policy::add(policies, &places, &mut imported);
    leave_out(&places, given, &mut imported);
    imported.finish()
}

/// Lines that begin with `src` and what is indented below; of policies the first line holds the selector.
fn blocks<'a>(text: &'a str, imported: &mut Imported) -> Vec<Vec<Line<'a>>> {
    let mut blocks: Vec<Vec<Line<'a>>> = Vec::new();
    let mut stray = false;
    for (at, line) in text.lines().enumerate() {
        let begins = line.starts_with("src ");
        match blocks.last_mut() {
            _ if line.trim().is_empty() => {}
            _ if begins => {
                stray = false;
                blocks.push(vec![(at + 1, line)]);
            }
            Some(block) if !stray && line.starts_with([' ', '\t']) => block.push((at + 1, line)),
            _ => {
                // What is indented below belongs to something else than the block before.
                stray = true;
                imported.lose(at + 1, line, "not a line of `ip xfrm state` or `ip xfrm policy`");
            }
        }
    }
    blocks
}

/// Leaves out SAs that would take more here than in the kernel: without a policy or a selector of its own an SA is for
/// any packet.
fn leave_out(placed: &[Placed], policies: bool, imported: &mut Imported) {
    let mut used = vec![false; imported.sas.len()];
    for policy in &imported.policies {
        if let Action::Protect(sas) = &policy.action {
            for session in sas {
                let around = std::iter::successors(Some(session.0 as usize), |&at| imported.sas[at].outer);
                around.for_each(|at| used[at] = true);
            }
        }
    }
    let mut left_out = vec![];
    for one in placed.iter().filter(|one| !used[one.place] && one.raw.takes_all()) {
        let rival = |other: &&Placed| {
            other.direction == one.direction && other.raw.route != one.raw.route && other.raw.takes_all()
        };
        if policies && (imported.policies.is_empty() || !one.raw.route.is_any()) {
            left_out.push((one, "no imported policy says what it is for".to_owned()));
        } else if let Some(other) = placed.iter().find(rival) {
            let reason = format!(
                "only its interface ID or mark tells it from the SA of line {}: print the policies too",
                other.raw.line
            );
            left_out.push((one, reason));
        }
    }
    for (one, reason) in &left_out {
        imported.lose(one.raw.line, &one.raw.text, reason.as_str());
    }
    imported.keep_sas(|place| !left_out.iter().any(|(one, _)| one.place == place));
}

/// A state and the place that it got.
struct Placed {
    raw: RawState,
    direction: Direction,
    place: usize,
}

fn add_states(
    states: Vec<RawState>,
    policies: &[RawPolicy],
    local: &[IpAddr],
    imported: &mut Imported,
) -> Vec<Placed> {
    let mut placed = Vec::new();
    for raw in states {
        let Some(direction) = direction(&raw, policies, local) else {
            let reason =
                "cannot tell outbound from inbound: give the addresses of this machine with `--local`";
            imported.lose(raw.line, &raw.text, reason);
            continue;
        };
        match raw.sa(direction, imported) {
            Ok(sa) => {
                let same = |other: &super::ImportedSa| {
                    let peers = direction == Direction::Open || other.config.remote == sa.config.remote;
                    other.direction == direction && other.config.spi == sa.config.spi && peers
                };
                if let Some(first) = imported.sas.iter().find(|other| same(other)) {
                    let reason =
                        format!("line {} has this SPI already (another mark or interface?)", first.line);
                    imported.lose(raw.line, &raw.text, reason);
                    continue;
                }
                placed.push(Placed { raw, direction, place: imported.sas.len() });
                imported.sas.push(sa);
            }
            Err(reason) => imported.lose(raw.line, &raw.text, reason),
        }
    }
    placed
}

fn direction(state: &RawState, policies: &[RawPolicy], local: &[IpAddr]) -> Option<Direction> {
    if state.direction.is_some() {
        return state.direction;
    }
    let is_local = |address: &IpAddr| local.contains(address);
    match (is_local(&state.src), is_local(&state.dst)) {
        (true, false) => return Some(Direction::Seal),
        (false, true) => return Some(Direction::Open),
        _ => {}
    }
    let fits =
        |policy: &&RawPolicy| policy.templates.iter().any(|template| template.is_of(state, &policy.route));
    let (mut out, mut within) = (false, false);
    for policy in policies.iter().filter(fits) {
        match policy.direction {
            Direction::Seal => out = true,
            Direction::Open => within = true,
        }
    }
    match (out, within) {
        (true, false) => Some(Direction::Seal),
        (false, true) => Some(Direction::Open),
        _ => match (state.sent, state.received) {
            (true, false) => Some(Direction::Seal),
            (false, true) => Some(Direction::Open),
            _ => None,
        },
    }
}
