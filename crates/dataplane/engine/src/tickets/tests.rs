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
