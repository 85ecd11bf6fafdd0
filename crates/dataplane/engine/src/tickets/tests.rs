use forebay_crypto::{JobSpec, Packet};

use super::*;

fn run(line: u32, ticket: u32, len: u32) -> Run {
    let (path, admitted) = (Path::default(), Time::ZERO);
    Run { line, ticket, len, class: 0, bypass: false, last: true, admitted, path }
}

/// Jobs that name their tickets.
fn jobs(first: u32, len: u32) -> Vec<Job> {
    let job = |n| Job::new(Packet::default(), JobSpec::default(), u64::from(first.wrapping_add(n)));
    (0..len).map(job).collect()
}

fn park(tickets: &mut Tickets, line: u32, ticket: u32, len: u32, now: u64) {
    tickets.park(run(line, ticket, len), &mut jobs(ticket, len), Time(now));
}

/// Completes what is parked and has its turn; the tickets in order.
fn take(tickets: &mut Tickets, line: u32) -> Vec<u64> {
    let mut all = vec![];
    while let Some((run, jobs, _)) = tickets.take_parked(line) {
        all.extend(jobs.iter().map(|job| job.token));
        tickets.advance(line, run.len);
        tickets.give_back(jobs);
    }
    all
}

#[test]
fn what_is_parked_in_any_order_leaves_by_its_tickets_and_lines_do_not_meet() {
    let mut tickets = Tickets::new(Order::PerSa);
    (0..3).for_each(|session| tickets.open(session));
    assert_eq!(
        [tickets.draw(1, 2), tickets.draw(1, 3), tickets.draw(2, 1), tickets.draw(1, 1)],
        [(1, 0), (1, 2), (2, 0), (1, 5)]
    );
    park(&mut tickets, 1, 5, 1, 0);
    park(&mut tickets, 1, 2, 3, 0);
    assert_eq!((tickets.parked(), take(&mut tickets, 1)), (4, vec![]));
    assert_eq!(tickets.compare(&run(2, 0, 1)), Ordering::Equal);
    assert_eq!(tickets.compare(&run(1, 0, 2)), Ordering::Equal);
    tickets.advance(1, 2);
    assert_eq!(take(&mut tickets, 1), [2, 3, 4, 5]);
    assert_eq!(tickets.parked(), 0);
    assert_eq!(tickets.draw(1, 1), (1, 6));
    assert_eq!(tickets.compare(&run(1, 6, 1)), Ordering::Equal);
}

#[test]
fn tickets_wrap_around() {
    let mut tickets = Tickets::new(Order::Total);
    tickets.open(7);
    tickets.lines[0].next = u32::MAX - 1;
    tickets.lines[0].turn = u32::MAX - 1;
    assert_eq!(tickets.draw(7, 4), (0, u32::MAX - 1));
    assert_eq!(tickets.draw(3, 4), (0, 2));
    park(&mut tickets, 0, 2, 4, 0);
    tickets.advance(0, 4);
    assert_eq!(take(&mut tickets, 0), [2, 3, 4, 5]);
}

#[test]
fn who_is_held_up_too_long_is_overtaken_and_comes_too_late() {
    let ms = Duration::from_millis;
    let limit = ms(100);
    let mut tickets = Tickets::new(Order::PerSa);
    tickets.open(0);
    for len in [2, 3, 1, 4] {
        tickets.draw(0, len);
    }
    assert_eq!(tickets.next_due(), Time::MAX);
    let mut now = Time::ZERO;
    let mut wait = |tickets: &mut Tickets, for_: Duration| {
        // With a look every few milliseconds, and then with none for an hour, which is no wait for anybody.
        for _ in 0..for_.0 / ms(5).0 {
            now = now + ms(5);
            tickets.look(now);
        }
    };
    park(&mut tickets, 0, 2, 3, 0);
    wait(&mut tickets, ms(50));
    park(&mut tickets, 0, 6, 4, 0);
    wait(&mut tickets, ms(45));
    assert_eq!(tickets.overtake(limit), None);
    wait(&mut tickets, ms(5));
    assert_eq!(tickets.overtake(limit), Some((0, 2)));
    assert_eq!(take(&mut tickets, 0), [2, 3, 4]);
    assert_eq!(tickets.compare(&run(0, 0, 2)), Ordering::Less);
    // The other has waited for the second one that is missing, and not as long.
    wait(&mut tickets, ms(45));
    assert_eq!(tickets.overtake(limit), None);
    wait(&mut tickets, ms(100));
    assert_eq!(tickets.overtake(limit), Some((0, 1)));
    assert_eq!(take(&mut tickets, 0), [6, 7, 8, 9]);
    assert_eq!((tickets.overtake(limit), tickets.parked()), (None, 0));
}

#[test]
fn a_time_in_which_nobody_looked_is_no_wait() {
    let mut tickets = Tickets::new(Order::PerSa);
    tickets.open(0);
    tickets.draw(0, 2);
    park(&mut tickets, 0, 1, 1, 0);
    tickets.look(Time::ZERO + Duration::from_millis(3_600_000));
    assert_eq!(tickets.overtake(Duration::from_millis(100)), None);
}

/// Five bursts of several cores that are done in every order, with a core overtaken behind every number of them: each packet
/// leaves once at most, in the order of the tickets, and is parked or dropped otherwise.
#[test]
fn in_every_order_of_five_cores_packets_leave_once_and_in_their_order() {
    const LENS: [u32; 5] = [2, 1, 3, 1, 2];
    for (number, order) in orders(LENS.len()).into_iter().enumerate() {
        for overtaken in 0..=LENS.len() + 1 {
            let mut tickets = Tickets::new(Order::PerSa);
            tickets.open(0);
            let firsts = LENS.map(|len| tickets.draw(0, len).1);
            let (mut left, mut dropped) = (vec![], 0);
            for (done, &core) in order.iter().enumerate() {
                let run = run(0, firsts[core], LENS[core]);
                match tickets.compare(&run) {
                    Ordering::Equal => {
                        left.extend(u64::from(run.ticket)..u64::from(run.ticket + run.len));
                        tickets.advance(0, run.len);
                        left.extend(take(&mut tickets, 0));
                    }
                    Ordering::Greater => park(&mut tickets, 0, run.ticket, run.len, 0),
                    Ordering::Less => dropped += run.len as usize,
                }
                if done + 1 == overtaken && tickets.overtake(Duration::ZERO).is_some() {
                    left.extend(take(&mut tickets, 0));
                }
            }
            assert!(left.is_sorted_by(|one, two| one < two), "{number}, {overtaken}: {left:?}");
            let all = LENS.iter().sum::<u32>() as usize;
            assert_eq!((left.len() + dropped, tickets.parked()), (all, 0), "{number}, {overtaken}");
            assert!(overtaken <= LENS.len() || dropped == 0);
        }
    }
}

/// All orders of so many.
fn orders(count: usize) -> Vec<Vec<usize>> {
    match count {
        0 => vec![vec![]],
        _ => orders(count - 1)
            .into_iter()
            .flat_map(|order| {
                (0..count).map(move |place| {
                    let mut order = order.clone();
                    order.insert(place, count - 1);
                    order
                })
            })
            .collect(),
    }
}
