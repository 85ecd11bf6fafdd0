//! Two gateways on a simulated network: messages are late, lost in one direction or both, and processes are suspended or
//! killed, as a seed draws it.

use std::collections::VecDeque;

use forebay_random::Random;

use super::*;

const SILENCE: Duration = Duration::from_millis(500);
const START_TIMEOUT: Duration = Duration::from_millis(2_000);

fn settings(number: u8) -> Settings {
    Settings { number, preferred: number == 0, silence: SILENCE, start_timeout: START_TIMEOUT }
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn heard(role: Role, term: u64) -> Heard {
    Heard { role, term, preferred: false, resigned: false }
}

/// Lets time pass in small steps, the peer saying `says` if it says anything; the first step taken.
fn pass(one: &mut Election, from: u64, to: u64, says: Option<Heard>) -> Option<(u64, Step)> {
    (from..to).step_by(10).find_map(|at| {
        let step = says.and_then(|says| one.hear(ms(at), says)).or_else(|| one.tick(ms(at), Complete::YES));
        step.map(|step| (at, step))
    })
}

#[test]
fn a_gateway_without_a_peer_waits_for_it_and_becomes_active() {
    let mut one = Election::new(settings(1), 6, ms(0));
    assert_eq!(pass(&mut one, 0, 2_000, None), None);
    assert!(matches!(pass(&mut one, 2_000, 2_020, None), Some((_, Step::TakeOver(_)))));
    assert_eq!((one.role(), one.term()), (Role::Active, 7));
}

#[test]
fn of_two_active_gateways_only_the_one_that_took_over_goes_on_announcing() {
    let [mut old, mut new] = [0, 1].map(|number| Election::new(settings(number), 0, ms(0)));
    assert!(pass(&mut old, 0, 1_000, Some(heard(Role::Standby, 0))).is_some());
    assert_eq!(pass(&mut old, 600, 1_000, Some(heard(Role::Standby, 1))), None);
    assert_eq!(old.claim(ms(1_000)), Claim::Undisputed);
    assert_eq!(pass(&mut new, 0, 1_000, Some(heard(Role::Active, 1))), None);
    // Both links are cut.
    assert_eq!(pass(&mut old, 1_000, 3_000, None), None);
    let (at, _) = pass(&mut new, 1_000, 3_000, None).unwrap();
    assert_eq!(pass(&mut new, at, 3_000, None), None);
    assert_eq!([&old, &new].map(Election::role), [Role::Active; 2]);
    assert_eq!([&old, &new].map(|one| one.claim(ms(3_000))), [Claim::Doubtful, Claim::TakenOver]);
    // The old one stands down when it hears of the other's term.
    assert!(pass(&mut old, 3_000, 3_020, Some(heard(Role::Active, 2))).is_some());
    assert_eq!(pass(&mut new, 3_000, 3_100, Some(heard(Role::Standby, 2))), None);
    assert_eq!(new.claim(ms(3_100)), Claim::Undisputed);
}

#[test]
fn a_standby_takes_over_when_the_active_gateway_is_silent_closes_or_resigns() {
    let active = heard(Role::Active, 4);
    let mut one = Election::new(settings(1), 0, ms(0));
    assert_eq!(pass(&mut one, 0, 1_000, Some(active)), None);
    let (at, step) = pass(&mut one, 1_000, 2_000, None).unwrap();
    assert!((1_490..=1_510).contains(&at) && step == Step::TakeOver("the peer is silent"), "{at}");
    assert_eq!(one.term(), 5);

    let mut one = Election::new(settings(1), 0, ms(0));
    assert_eq!(pass(&mut one, 0, 1_000, Some(active)), None);
    one.closed(ms(1_000));
    assert!(pass(&mut one, 1_000, 2_000, None).unwrap().0 <= 1_150);

    let mut one = Election::new(settings(1), 0, ms(0));
    assert_eq!(pass(&mut one, 0, 1_000, Some(active)), None);
    let resigned = Heard { resigned: true, role: Role::Standby, ..active };
    assert_eq!(one.hear(ms(1_000), resigned), None);
    assert_eq!(one.tick(ms(1_000), Complete::YES), Some(Step::TakeOver("the peer resigned")));
}

#[test]
fn of_two_active_gateways_the_higher_term_stays_and_of_equal_ones_gateway_0() {
    for (number, other, stays) in [(0, 7, true), (1, 7, false), (0, 8, false), (1, 6, true)] {
        let mut one = Election::new(settings(number), 6, ms(0));
        assert!(pass(&mut one, 0, 2_500, None).is_some());
        assert_eq!(one.term(), 7);
        assert_eq!(one.hear(ms(2_500), heard(Role::Active, other)).is_none(), stays, "{number} {other}");
        assert_eq!(one.role() == Role::Active, stays);
    }
}

#[test]
fn a_process_that_was_suspended_stands_down_and_does_not_take_over_for_silence_it_slept_through() {
    let mut active = Election::new(settings(0), 0, ms(0));
    let standby = Some(heard(Role::Standby, 0));
    let (at, _) = pass(&mut active, 0, 2_500, standby).unwrap();
    assert_eq!(pass(&mut active, at + 10, 2_510, standby), None);
    assert_eq!(active.hear(ms(2_510), heard(Role::Standby, 1)), None);
    assert_eq!(active.tick(ms(2_510), Complete::YES), None);
    assert_eq!(active.tick(ms(4_000), Complete::YES), Some(Step::StandDown("the process was suspended")));

    let mut standby = Election::new(settings(1), 0, ms(0));
    assert_eq!(pass(&mut standby, 0, 1_000, Some(heard(Role::Active, 3))), None);
    assert_eq!(standby.tick(ms(4_000), Complete::YES), None);
    assert_eq!(pass(&mut standby, 4_010, 4_400, None), None);
}

/// One gateway of the simulation.
struct Node {
    election: Election,
    /// What has been sent to it, with the time of arrival.
    inbox: VecDeque<(u64, Heard)>,
    suspended_until: u64,
    /// The terms in which it was active.
    terms: Vec<u64>,
}

#[test]
fn whatever_happens_two_gateways_end_with_one_that_is_active_and_no_term_twice() {
    let mut take_overs = 0;
    for seed in 0..400 {
        let mut random = Random::seeded(seed);
        let mut nodes = [0, 1].map(|number| Node {
            election: Election::new(settings(number), 0, ms(0)),
            inbox: VecDeque::new(),
            suspended_until: 0,
            terms: vec![],
        });
        // Whether messages of gateway 0 and 1 arrive.
        let mut arrive = [true; 2];
        const FAULTS: u64 = 20_000;
        for at in (0..FAULTS + 10_000).step_by(10) {
            if at < FAULTS && random.below(50) == 0 {
                match random.below(4) {
                    0 => arrive = [random.below(2) == 0, random.below(2) == 0],
                    1 => arrive = [true; 2],
                    2 => nodes[random.below(2) as usize].suspended_until = at + random.below(3_000),
                    _ => {
                        // Killed and started again: what is remembered is the term.
                        let number = random.below(2) as u8;
                        let node = &mut nodes[usize::from(number)];
                        node.election = Election::new(settings(number), node.election.term(), ms(at));
                        node.inbox.clear();
                    }
                }
            }
            if at == FAULTS {
                arrive = [true; 2];
            }
            for number in 0..2 {
                let node = &mut nodes[number];
                if at < node.suspended_until {
                    continue;
                }
                let mut steps = vec![];
                // As in the program, the time is looked at before what has come meanwhile.
                steps.extend(node.election.tick(ms(at), Complete::YES));
                while node.inbox.front().is_some_and(|(when, _)| *when <= at) {
                    let (_, heard) = node.inbox.pop_front().unwrap();
                    steps.extend(node.election.hear(ms(at), heard));
                }
                for step in steps {
                    if let Step::TakeOver(_) = step {
                        node.terms.push(node.election.term());
                        take_overs += 1;
                    }
                }
                if at % 100 == 0 && arrive[number] {
                    let Election { role, term, settings, .. } = node.election;
                    let said = Heard { role, term, preferred: settings.preferred, resigned: false };
                    let when = at + random.below(40);
                    nodes[1 - number].inbox.push_back((when, said));
                }
            }
        }
        let active = nodes.iter().filter(|node| node.election.role() == Role::Active).count();
        assert_eq!(active, 1, "seed {seed}");
        for node in &nodes {
            assert!(
                node.terms.is_sorted() && node.terms.windows(2).all(|two| two[0] < two[1]),
                "seed {seed}"
            );
        }
    }
    assert!(take_overs > 1_000, "{take_overs} take-overs: the faults are too few to say anything");
}
