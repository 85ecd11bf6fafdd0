//! Deliveries worked out by hand. With the toy figures a packet of 16 bytes is 50 ps on the bus
//! (address, 4 words) and computed in 150 ps (init, 1 block); one of 32 bytes: 90 ps and 250 ps.

mod support;

use forebay_crypto_card::{BusConfig, CardConfig};
use forebay_time::Duration;
use support::{Bench, toy_bus, toy_card};

fn bench(cards: usize, config: CardConfig) -> Bench {
    Bench::new(toy_bus(), &vec![config; cards])
}

#[test]
fn a_single_job_is_fetched_computed_and_written_back() {
    let mut bench = bench(1, toy_card());
    assert!(bench.submit(1_000, 0, &[16], 1));
    // 1000 +50 fetched +150 computed +50
    assert_eq!(bench.finish(), [[(1, 1_250)]]);
}

#[test]
fn a_single_job_with_the_papers_figures() {
    let mut bench = Bench::new(BusConfig::pci_66(), &[CardConfig::paper_230_mbit()]);
    assert!(bench.submit(0, 0, &[1_500], 1));
    // 376 cycles of 66 MHz: 5696969.7 ps; 1 us + 94 * 440 ns: 42360000 ps
    assert_eq!(bench.finish(), [[(1, 5_696_970 + 42_360_000 + 5_696_970)]]);
}

#[test]
fn without_buffers_a_card_is_blocked_until_the_write_back_ends() {
    let mut bench = bench(1, toy_card());
    (1..=3).for_each(|token| assert!(bench.submit(0, 0, &[16], token)));
    assert_eq!(bench.finish(), [[(1, 250), (2, 500), (3, 750)]]);
}

#[test]
fn a_doorbell_delays_a_submission_and_occupies_nothing() {
    let mut bench = bench(1, CardConfig { doorbell: Duration(70), ..toy_card() });
    assert!(bench.submit(0, 0, &[16], 1));
    assert!(bench.submit(10, 0, &[16], 2));
    assert_eq!(bench.finish(), [[(1, 320), (2, 570)]]);
}

#[test]
fn two_cards_take_turns_on_the_bus() {
    let mut bench = bench(2, toy_card());
    // A fetch 0-50, computes -200; B fetch 50-140, computes -390;
    // A write 200-250, A fetch 250-300, computes -450; B write 390-480; A write 480-530.
    assert!(bench.submit(0, 0, &[16], 1));
    assert!(bench.submit(0, 1, &[32], 2));
    assert!(bench.submit(0, 0, &[16], 3));
    assert_eq!(bench.finish(), [vec![(1, 250), (3, 530)], vec![(2, 480)]]);
}

#[test]
fn with_a_write_buffer_the_next_fetch_goes_before_the_write_back() {
    let mut bench = bench(1, CardConfig { write_buffer: 1, ..toy_card() });
    (1..=3).for_each(|token| assert!(bench.submit(0, 0, &[16], token)));
    // 1: fetch 0-50, computed 200. 2: fetch 200-250, computed 400. 1 written 250-300.
    // 3: fetch 400-450, computed 600. 2 written 450-500. 3 written 600-650.
    assert_eq!(bench.finish(), [[(1, 300), (2, 500), (3, 650)]]);
}

#[test]
fn a_full_write_buffer_blocks_the_card() {
    // Blocks take nothing here, so the bus is the limit: 16 bytes 50 ps on it, computed in 10.
    let config = CardConfig {
        init: Duration(10),
        block: Duration::ZERO,
        write_buffer: 1,
        ..CardConfig::paper_230_mbit()
    };
    let mut bench = bench(1, config);
    (1..=3).for_each(|token| assert!(bench.submit(0, 0, &[16], token)));
    // 1: fetch 0-50, computed 60. 2: fetch 60-110, 1 written 110-160, 2 computed 120, blocked until 160.
    // 3: fetch 160-210, 2 written 210-260, 3 computed 220, blocked until 260, written 260-310.
    assert_eq!(bench.finish(), [[(1, 160), (2, 260), (3, 310)]]);
}

#[test]
fn with_prefetch_the_next_job_is_fetched_while_one_computes() {
    let mut bench = bench(1, CardConfig { prefetch: 1, ..toy_card() });
    (1..=3).for_each(|token| assert!(bench.submit(0, 0, &[16], token)));
    // 1: fetch 0-50, computed 200, written -250. 2: fetched -100, computes 250-400, written -450.
    // 3: fetch 250-300, computes 450-600, written -650.
    assert_eq!(bench.finish(), [[(1, 250), (2, 450), (3, 650)]]);
}

#[test]
fn with_both_the_card_computes_without_a_pause() {
    let mut bench = bench(1, CardConfig { write_buffer: 1, prefetch: 1, ..toy_card() });
    (1..=4).for_each(|token| assert!(bench.submit(0, 0, &[16], token)));
    // Computed 200, 350, 500, 650. At 200 and 350 the fetch of the next but one is asked for first:
    // 1 written 250-300, 2 written 400-450; then nothing is left to fetch: 3 written 500-550, 4 650-700.
    assert_eq!(bench.finish(), [[(1, 300), (2, 450), (3, 550), (4, 700)]]);
}

#[test]
fn a_submission_of_several_packets_is_one_job() {
    let mut bench = bench(1, toy_card());
    assert!(bench.submit(0, 0, &[17, 1, 20], 1));
    assert!(bench.submit(0, 0, &[16], 9));
    // 38 bytes: address and 10 words, 110 ps. Blocks by packet, 2 + 1 + 2: 50 + 500 ps.
    assert_eq!(bench.finish(), [[(1, 770), (2, 770), (3, 770), (9, 1_020)]]);
}

#[test]
fn a_place_in_the_queue_is_free_when_the_next_job_has_been_taken() {
    let mut bench = bench(1, CardConfig { queue: 1, ..toy_card() });
    assert!(bench.submit(0, 0, &[16], 1));
    assert!(bench.submit(0, 0, &[16], 2));
    assert!(!bench.submit(0, 0, &[16], 3));
    assert!(!bench.submit(249, 0, &[16], 4));
    assert!(bench.submit(250, 0, &[16], 5));
    assert_eq!(bench.finish(), [[(1, 250), (2, 500), (5, 750)]]);
}

#[test]
fn without_a_queue_only_an_idle_card_takes_a_job() {
    let mut bench = bench(1, CardConfig { queue: 0, doorbell: Duration(5), ..toy_card() });
    assert!(bench.submit(0, 0, &[16], 1));
    assert!(!bench.submit(0, 0, &[16], 2));
    assert!(!bench.submit(254, 0, &[16], 3));
    assert!(bench.submit(255, 0, &[16], 4));
    assert_eq!(bench.finish(), [[(1, 255), (4, 510)]]);
}
