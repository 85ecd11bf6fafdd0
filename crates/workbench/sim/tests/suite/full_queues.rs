//! What a job does whose chosen queue is full, against a slow simulation that is written for it.

use std::collections::VecDeque;
use std::path::Path;

use forebay_sim::{Options, Outcome, Scenario, run};

/// Three cores with few places, and their times of service in ps: odd ones, so that no end coincides with an arrival.
const TIMES: [u64; 3] = [700_001, 1_100_003, 4_300_017];
const QUEUE: usize = 2;
const GAP: u64 = 400_000;
const PACKETS: u64 = 600;

fn scenario(more: &str) -> Scenario {
    let processors: String = TIMES
        .iter()
        .enumerate()
        .map(|(at, ps)| {
            format!("[[processor]]\nname = \"p{at}\"\nkind = \"cpu\"\ninit = \"{ps} ps\"\nblock = \"0 s\"\nqueue = {QUEUE}\n")
        })
        .collect();
    // 40 bytes at 800 Mbit/s are one packet every 400 ns.
    let text = format!(
        "model = \"host\"\n[traffic]\nsource = \"fixed\"\nvalue = 40\noverhead = 0\nrate = \"800 Mbit/s\"\n\
         packets = {PACKETS}\n{processors}[scheduler]\n{more}\n"
    );
    Scenario::parse(&text, "full.toml", &[], Path::new(".")).unwrap()
}

fn simulated(more: &str) -> Outcome {
    run(&scenario(more), Options { columns: true, ..Options::default() }).unwrap()
}

/// Processor and completion of each packet, looking at everything whenever anything happens: the rule of \[H\] or that which passes full
/// queues by. `input`: places before the scheduler.
fn slow(pass: bool, input: usize) -> Vec<Option<(u16, u64)>> {
    let mut placed: Vec<Option<(u16, u64)>> = vec![None; PACKETS as usize];
    let mut queues: [VecDeque<usize>; 3] = Default::default();
    let mut ends = [0u64; 3];
    let mut waiting: VecDeque<usize> = VecDeque::new();
    let mut chosen: Option<usize> = None;
    let mut done = 0;
    let mut now = 0;
    loop {
        for at in 0..3 {
            if let (true, Some(&packet)) = (ends[at] <= now, queues[at].front()) {
                queues[at].pop_front();
                ends[at] = now + TIMES[at];
                placed[packet] = Some((at as u16, ends[at]));
                done += 1;
            }
        }
        let mut place = |waiting: &mut VecDeque<usize>, queues: &mut [VecDeque<usize>; 3], done: &mut u64| {
            while let Some(&packet) = waiting.front() {
                let finish =
                    |at: usize| ends[at].saturating_sub(now) + (queues[at].len() as u64 + 1) * TIMES[at];
                let best = |open: &dyn Fn(usize) -> bool| {
                    (0..3).filter(|&at| open(at)).min_by_key(|&at| (finish(at), TIMES[at]))
                };
                let mut to = chosen.or_else(|| best(&|_| true)).unwrap();
                if pass && queues[to].len() == QUEUE {
                    to = best(&|at| queues[at].len() < QUEUE).unwrap_or(to);
                }
                if queues[to].len() == QUEUE {
                    chosen = Some(to);
                    return;
                }
                chosen = None;
                waiting.pop_front();
                if ends[to] <= now && queues[to].is_empty() {
                    ends[to] = now + TIMES[to];
                    placed[packet] = Some((to as u16, ends[to]));
                    *done += 1;
                } else {
                    queues[to].push_back(packet);
                }
            }
        };
        place(&mut waiting, &mut queues, &mut done);
        if now % GAP == 0 && now / GAP < PACKETS {
            // The job at the head is in the hand, not in the input.
            if waiting.len() < input + usize::from(!waiting.is_empty()) {
                waiting.push_back((now / GAP) as usize);
            } else {
                done += 1;
            }
            place(&mut waiting, &mut queues, &mut done);
        }
        if done == PACKETS {
            break;
        }
        let arrival = Some((now / GAP + 1) * GAP).filter(|at| at / GAP < PACKETS);
        let taken = (0..3).filter(|&at| !queues[at].is_empty()).map(|at| ends[at]);
        now = taken.chain(arrival).min().unwrap();
    }
    placed
}

#[test]
fn both_rules_are_those_of_a_slow_simulation() {
    for (word, pass) in [("wait", false), ("pass", true)] {
        for input in [4, 1_000] {
            let outcome = simulated(&format!("full_queue = \"{word}\"\ninput = {input}"));
            let columns = outcome.columns.unwrap();
            let found: Vec<Option<(u16, u64)>> = (columns.processor.iter().zip(&columns.completed))
                .map(|(&processor, &ps)| (processor != u16::MAX).then_some((processor, ps)))
                .collect();
            let expected = slow(pass, input);
            let first = found.iter().zip(&expected).position(|(found, expected)| found != expected);
            let first = first.map(|at| (at, found[at], expected[at]));
            assert_eq!(first, None, "{word}, input of {input}: packet, found, expected");
        }
    }
}

#[test]
fn a_head_that_passes_full_queues_by_loses_less_and_leaves_nothing_idle() {
    let [waits, passes] =
        ["wait", "pass"].map(|word| simulated(&format!("full_queue = \"{word}\"\ninput = 4")));
    assert!(passes.figures.lost < waits.figures.lost, "{} {}", passes.figures.lost, waits.figures.lost);
    assert!(passes.figures.throughput_bps > waits.figures.throughput_bps);
    // Without a key the rule is that of the papers, as before.
    let default = simulated("input = 4");
    assert_eq!(default.figures, waits.figures);
    assert_eq!(default.columns, waits.columns);
}

#[test]
fn the_key_is_refused_where_it_has_no_effect() {
    for (more, why) in [
        ("full_queue = \"pass\"\nburst = 8", "jobs are placed together"),
        ("full_queue = \"pass\"\npolicy = \"round-robin\"", "policy `round-robin`"),
        ("full_queue = \"skip\"", "skip"),
    ] {
        let text = format!(
            "model = \"host\"\n[traffic]\nsource = \"imix\"\nrate = \"1 Gbit/s\"\npackets = 9\n[[processor]]\nkind = \"cpu\"\n\
             init = \"1 us\"\nblock = \"1 ns\"\n[scheduler]\n{more}\n"
        );
        let errors = Scenario::parse(&text, "full.toml", &[], Path::new(".")).unwrap_err();
        let said = errors.findings()[0].to_string();
        assert!(said.contains(why), "{said}");
    }
}
