//! Pipelines worked by hand. F fetch, D decode, X execute, M memory, W write back, - a cycle lost.
//!
//! The caches are the base's, but a line of 64 bytes comes in 4 cycles (128 bits, no latency), and a store is
//! done in one: what is left to count is the pipeline. Every program ends with a store to the device that ends
//! it, which is one more instruction.

mod support;

use forebay_riscv::{Account, Branches, CacheConfig, Cause, Config, VectorConfig};
use support::*;

fn config() -> Config {
    let base = Config::base();
    let cache = CacheConfig { line: 64, ..base.icache };
    Config { icache: cache, dcache: cache, width: 16, latency: 0, write_latency: 0, ..base }
}

const LINE: u64 = 4;

/// Cycles by cause, without those that are zero.
fn causes(words: &[u32], config: Config) -> Vec<(Cause, u64)> {
    let mut words = words.to_vec();
    words.push(sw(0, 31, 0));
    by_cause(&timed(&words, config).1)
}

/// The same on RV64.
fn causes64(words: &[u32], config: Config) -> Vec<(Cause, u64)> {
    let mut words = words.to_vec();
    words.push(sw(0, 31, 0));
    by_cause(&timed64(&words, config))
}

fn by_cause(account: &Account) -> Vec<(Cause, u64)> {
    let of = |cause| account.cells.iter().filter(|cell| cell.cause == cause).map(|cell| cell.cycles).sum();
    Cause::ALL.into_iter().map(|cause| (cause, of(cause))).filter(|(_, cycles)| *cycles > 0).collect()
}

/// ```text
/// addi x1, x0, 1    F D X M W
/// addi x2, x1, 1      F D X M W          forwarded from X to X
/// add  x3, x1, x2       F D X M W
/// sw   x0, 0(x31)         F D X M W
/// ```
#[test]
fn arithmetic_is_forwarded() {
    let words = [addi(1, 0, 1), addi(2, 1, 1), add(3, 1, 2)];
    assert_eq!(causes(&words, config()), [(Cause::Issue, 4), (Cause::Fetch, LINE)]);
}

/// ```text
/// lw   x1, 0(x30)   F D X M W            its line comes in 4 cycles
/// add  x2, x1, x1     F D - X M W        x1 is there after M
/// lw   x3, 4(x30)       F - D X M W
/// addi x4, x0, 1            F D X M W
/// add  x5, x3, x3             F D X M W  one between is enough
/// lw   x6, 8(x30)               F D X M W
/// sw   x6, 12(x30)                F D X M W   data are needed in M: no wait
/// lw   x7, 16(x30)                  F D X M W
/// lw   x8, 0(x7)                      F D - X M W   an address is needed in X
/// ```
#[test]
fn a_load_s_value_is_a_cycle_late() {
    let words = [
        addi(9, 30, 0),
        sw(9, 30, 16),
        lw(1, 30, 0),
        add(2, 1, 1),
        lw(3, 30, 4),
        addi(4, 0, 1),
        add(5, 3, 3),
        lw(6, 30, 8),
        sw(6, 30, 12),
        lw(7, 30, 16),
        lw(8, 7, 0),
    ];
    let expected = [(Cause::Issue, 12), (Cause::Fetch, LINE), (Cause::Load, LINE), (Cause::LoadUse, 2)];
    // The first load's line has a write that waits: it goes first, and takes a cycle.
    let mut found = causes(&words, config());
    found.retain(|(cause, _)| *cause != Cause::WriteBuffer);
    assert_eq!(found, expected);
    assert_eq!(
        causes(&words, Config { load_use: 0, ..config() })
            .iter()
            .filter(|(c, _)| *c == Cause::LoadUse)
            .count(),
        0
    );
}

/// ```text
/// beq  x0, x1, +8   F D X M W            not taken: x1 is 1
/// beq  x0, x0, +8     F D X M W          taken: the two fetched behind it go
/// addi x2, x0, 1        F D
/// addi x3, x0, 1          F
/// target                    F D X M W
/// ```
#[test]
fn a_taken_branch_costs_two_and_a_jump_one() {
    let words = [addi(1, 0, 1), branch(0, 0, 1, 8), branch(0, 0, 0, 8), addi(2, 0, 1), addi(3, 0, 1)];
    let expected = [(Cause::Issue, 5), (Cause::Fetch, LINE), (Cause::Branch, 2)];
    assert_eq!(causes(&words, config()), expected);
    // jal is decided in decode.
    let words = [jal(0, 8), addi(2, 0, 1), addi(3, 0, 1)];
    assert_eq!(causes(&words, config()), [(Cause::Issue, 3), (Cause::Fetch, LINE), (Cause::Branch, 1)]);
    // jal to a function, whose jalr comes back: 1 + 2; then over the function: 1.
    let words = [jal(1, 12), addi(2, 0, 1), jal(0, 12), addi(3, 0, 1), jalr(0, 1, 0)];
    assert_eq!(causes(&words, config()), [(Cause::Issue, 6), (Cause::Fetch, LINE), (Cause::Branch, 4)]);
}

/// A loop of ten rounds: nine branches go back, one does not.
#[test]
fn a_loop_pays_for_each_round_or_is_predicted() {
    let words = [addi(1, 0, 10), addi(1, 1, -1), branch(1, 1, 0, -4)];
    let issue = (Cause::Issue, 1 + 2 * 10 + 1);
    assert_eq!(causes(&words, config()), [issue, (Cause::Fetch, LINE), (Cause::Branch, 9 * 2)]);
    // Expected to go back: one cycle until the target is known, and two when it does not.
    let config = Config { branches: Branches::Backward, ..config() };
    assert_eq!(causes(&words, config), [issue, (Cause::Fetch, LINE), (Cause::Branch, 9 + 2)]);
}

/// ```text
/// mul  x2, x1, x1   F D X X X M W
/// add  x3, x2, x2     F D - - X M W
/// divu x4, x3, x1       F - - D X ... (37)
/// ```
#[test]
fn multiplications_and_divisions_hold_execute() {
    let words = [addi(1, 0, 3), mul(2, 1, 1), add(3, 2, 2), divu(4, 3, 1)];
    let expected = [(Cause::Issue, 5), (Cause::Fetch, LINE), (Cause::MultiCycle, 2 + 36)];
    assert_eq!(causes(&words, config()), expected);
}

/// Code of 20 instructions is 80 bytes: two lines of 64, five of 16, and one that straddles both is fetched twice.
#[test]
fn every_line_of_code_comes_once() {
    let words: Vec<u32> = (0..19).map(|n| addi(1, 1, n)).collect();
    assert_eq!(causes(&words, config()), [(Cause::Issue, 20), (Cause::Fetch, 2 * LINE)]);
    let base = Config { latency: 8, width: 4, ..config() };
    let lines = Config { icache: Config::base().icache, ..base };
    // 8 cycles until the first of 4 words.
    assert_eq!(causes(&words, lines), [(Cause::Issue, 20), (Cause::Fetch, 5 * 12)]);
}

/// Ten stores in a row, a write takes 5 cycles, 4 slots. The first begins in the cycle behind its own store's and
/// frees its slot at 5; the fifth comes at 4 and waits till 5, each later one for 5 cycles less its own.
#[test]
fn stores_fill_the_buffer() {
    let config = Config { write_latency: 4, ..config() };
    let words: Vec<u32> = (0..10).map(|n| sw(0, 30, 4 * n)).collect();
    let cycles = |slots: u32, words: &[u32]| {
        let (_, account) = timed(&[words, &[sw(0, 31, 0)]].concat(), Config { write_slots: slots, ..config });
        let of = |wanted: Cause| {
            account.cells.iter().filter(|cell| cell.cause == wanted).map(|cell| cell.cycles).sum::<u64>()
        };
        of(Cause::WriteBuffer)
    };
    // Time without waiting: store n at n. With 4 slots, store n >= 4 goes on when write n - 4 has ended, at
    // begin + 5 (n - 3). The eleventh (the device's) is number 10: it goes on at 35 instead of 10: 25 lost.
    assert_eq!(cycles(4, &words), 25);
    assert_eq!(cycles(16, &words), 0);
    // Without slots each store is waited for.
    assert_eq!(cycles(0, &words), 11 * 5);
    // A read waits for the write in progress, which began a cycle before it and ends 4 later, but not for the others.
    let words = [sw(0, 30, 0), sw(0, 30, 4), lw(1, 30, 512)];
    assert_eq!(cycles(4, &words), 3);
    // The same for a line with a write that waits: both writes go first, till 10; the read came at 2.
    let words = [sw(0, 30, 0), sw(0, 30, 512), lw(1, 30, 516)];
    assert_eq!(cycles(4, &words), 8);
}

/// The core takes 64 instructions for a block at most: a load at a block's end is needed all the same.
#[test]
fn a_load_before_a_cut_is_needed_behind_it() {
    let mut words = vec![addi(1, 0, 1)];
    (0..40).for_each(|_| words.extend([lw(1, 30, 0), add(2, 1, 1)]));
    let found = causes(&words, config());
    assert!(found.contains(&(Cause::LoadUse, 40)), "{found:?}");
}

/// vsetivli x0, elements, e32, of a group of 2^lmul registers.
fn vsetivli(elements: u32, lmul: u32) -> u32 {
    3 << 30 | (2 << 3 | lmul) << 20 | elements << 15 | 7 << 12 | 0x57
}

fn vadd(vd: u32, vs2: u32, vs1: u32) -> u32 {
    1 << 25 | vs2 << 20 | vs1 << 15 | vd << 7 | 0x57
}

/// An instruction of vector cryptography.
fn crypto(funct6: u32, vd: u32, vs2: u32, vs1: u32) -> u32 {
    funct6 << 26 | 1 << 25 | vs2 << 20 | vs1 << 15 | 2 << 12 | vd << 7 | 0x77
}

/// ```text
/// vadd  8 bytes a pass      X X               two passes of one register of 16 bytes
/// vaesem.vv                 X X X X X X X X   two of four cycles
/// vghsh.vv                  X X X X X X       two of three
/// vsha2ms.vv                X X X X           two of two
/// ```
#[test]
fn a_vector_instruction_takes_its_passes() {
    let vector = VectorConfig { datapath: 8, aes: 4, ghash: 3, sha2: 2 };
    let words = [
        vsetivli(4, 0),
        vadd(8, 16, 24),
        crypto(0x28, 8, 16, 2),
        crypto(0x2c, 8, 16, 24),
        crypto(0x2d, 8, 16, 24),
    ];
    let expected = |cycles| [(Cause::Issue, 6), (Cause::Fetch, LINE), (Cause::Vector, cycles)];
    assert_eq!(causes64(&words, Config { vector, ..config() }), expected(1 + 7 + 5 + 3));
    // The whole register at once.
    let vector = VectorConfig { datapath: 16, ..vector };
    assert_eq!(causes64(&words, Config { vector, ..config() }), expected(3 + 2 + 1));
    // Four registers.
    let words = [vsetivli(16, 2), vadd(8, 16, 24), crypto(0x28, 8, 16, 2), crypto(0x2c, 8, 16, 24)];
    let found = causes64(&words, Config { vector, ..config() });
    assert_eq!(found, [(Cause::Issue, 5), (Cause::Fetch, LINE), (Cause::Vector, 3 + 15 + 11)]);
}

/// 16 bytes from the last 4 of a line on are two accesses and two lines of 4 cycles; a store of them is as many writes
/// as the memory interface is narrow.
#[test]
fn a_vector_load_takes_every_line_and_a_store_every_word() {
    let (load, store) = (0x0200_6007 | 5 << 15 | 8 << 7, 0x0200_6027 | 5 << 15 | 8 << 7);
    let found = causes64(&[vsetivli(4, 0), addi(5, 30, 60), load], config());
    let expected = [(Cause::Issue, 4), (Cause::Fetch, LINE), (Cause::Load, 2 * LINE), (Cause::Vector, 1)];
    assert_eq!(found, expected);
    // Four writes of 5 cycles each in a buffer of one slot: the second to fourth wait, less what has passed.
    let narrow = Config { width: 4, write_latency: 4, write_slots: 1, ..config() };
    let waits = |words: &[u32]| {
        causes64(words, narrow)
            .into_iter()
            .find(|(cause, _)| *cause == Cause::WriteBuffer)
            .map(|(_, cycles)| cycles)
    };
    let four = [sw(1, 30, 0), sw(1, 30, 4), sw(1, 30, 8), sw(1, 30, 12)];
    let vector = waits(&[vsetivli(4, 0), addi(5, 30, 0), store]).unwrap();
    // What four stores of a word wait, and the three cycles in which these are issued.
    assert_eq!(vector, waits(&four).unwrap() + 3);
    // A doubleword is two.
    let sd = |imm: u32| (imm >> 5) << 25 | 1 << 20 | 30 << 15 | 3 << 12 | (imm & 31) << 7 | 0x23;
    assert_eq!(waits(&[sd(0), sd(8)]).unwrap(), waits(&four).unwrap() + 2);
}

/// Each line that is read and each beat that is written is counted; the store that ends the program is one more.
#[test]
fn accesses_are_counted_as_the_cache_and_memory_have_them() {
    let (load, store) = (0x0200_6007 | 5 << 15 | 8 << 7, 0x0200_6027 | 5 << 15 | 8 << 7);
    let sd = 1 << 20 | 30 << 15 | 3 << 12 | 0x23;
    let counted = |words: &[u32], width: u32| {
        let account = timed64(&[words, &[sw(0, 31, 0)]].concat(), Config { width, ..config() });
        (account.misses.loads, account.misses.stores - 1)
    };
    assert_eq!((counted(&[sd], 4), counted(&[sd], 8)), ((0, 2), (0, 1)));
    // 16 bytes: four beats of 4, or one; from the last 4 of a line on two lines.
    assert_eq!(counted(&[vsetivli(4, 0), addi(5, 30, 0), store], 4), (0, 4));
    assert_eq!(counted(&[vsetivli(4, 0), addi(5, 30, 0), store], 16), (0, 1));
    assert_eq!(counted(&[vsetivli(4, 0), addi(5, 30, 0), load], 4), (1, 0));
    assert_eq!(counted(&[vsetivli(4, 0), addi(5, 30, 60), load], 4), (2, 0));
}
