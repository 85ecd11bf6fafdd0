//! Programs on the machine: how they end, and that one execution timed for many is each timed alone.

use forebay_embedded::elf::{Executable, Segment};
use forebay_embedded::machine::{self, Job, MEMORY, RunError};
use forebay_riscv::{CacheConfig, Config, Function, Isa, Policy, Replacement};

fn job(words: &[u32]) -> Job {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let size = bytes.len() as u32;
    let function = |name: &str, start, end| Function { name: name.to_owned(), start, end };
    Job {
        executable: Executable {
            xlen: forebay_riscv::Xlen::Rv32,
            entry: MEMORY,
            segments: vec![Segment { address: MEMORY, bytes, size }],
            functions: vec![function("main", MEMORY, MEMORY + size)],
            labels: Vec::new(),
        },
        isa: Isa::imc(),
        input: Vec::new(),
        limit: 1_000_000,
    }
}

/// addi rd, rs1, imm
fn addi(rd: u32, rs1: u32, imm: u32) -> u32 {
    imm << 20 | rs1 << 15 | rd << 7 | 0x13
}

fn lui(rd: u32, upper: u32) -> u32 {
    upper << 12 | rd << 7 | 0x37
}

/// Stores x0 to the device that ends programs, by x31.
const EXIT: [u32; 2] = [0x1000_0fb7, 0x000f_a023];

fn error(words: &[u32]) -> (String, String) {
    let error = machine::run(&job(words), &[Config::base()], &mut |_| true).unwrap_err();
    (error.to_string(), error.help())
}

#[test]
fn faults_have_their_place_and_a_hint() {
    let cases: [(&[u32], &str, &str); 12] = [
        (
            &[addi(1, 0, 1), 0xffff_ffff],
            "in `main` + 0x4, at pc 0x80000004: illegal instruction 0xffffffff",
            "extensions",
        ),
        // sha256sig0, which the core lacks.
        (&[0x1020_9093], "illegal instruction 0x10209093", "zknh"),
        (&[0x0000_000b], "illegal instruction 0x0000000b", "core.instructions"),
        // vsetivli x0, 4, e32; vle32.v v8, (x5); flw f8, 0(x5), which is of no vector.
        (&[0xcd02_7057], "illegal instruction 0xcd027057", "`zve64x`"),
        (&[0x0202_e407], "illegal instruction 0x0202e407", "`zve64x`"),
        (&[0x0002_a407], "illegal instruction 0x0002a407", "for example zbb"),
        (
            &[lui(1, 0x80000), 0x0010_a103],
            "at pc 0x80000004: misaligned access of 4 bytes at 0x80000001",
            "multiples of 4",
        ),
        (&[0x0000_2103], "load at 0x00000000, where nothing is", "null pointer"),
        (&[0x0000_2023], "store at 0x00000000", "memory is 0x80000000 to 0x80ffffff"),
        (&[0x0000_0067], "at pc 0x00000000: no memory to fetch instructions from", "wrong pointer"),
        (&[0x0010_0073], "ebreak", "assertion"),
        (&[0x7c00_2073], "no control and status register 0x7c0", "instret"),
    ];
    for (words, message, help) in cases {
        let (found, hint) = error(words);
        assert!(found.contains(message), "{found}");
        assert!(hint.contains(help), "{hint}");
    }
    assert!(error(&[addi(17, 0, 64), 0x73]).0.contains("ecall 64"));
    assert!(error(&[0x6f]).0.contains("not ended after 1000000 instructions"));
    let mut job = job(&EXIT);
    job.input = vec![0; machine::IMAGE_MAX + 1];
    assert!(matches!(machine::run(&job, &[], &mut |_| true), Err(RunError::Input(_))));
    job.input.clear();
    job.executable.segments[0].address = 0x1000;
    assert!(matches!(machine::run(&job, &[], &mut |_| true), Err(RunError::Elf(_))));
}

#[test]
fn a_run_can_be_stopped() {
    let mut job = job(&[0x6f]);
    job.limit = u64::MAX;
    assert!(matches!(machine::run(&job, &[Config::base()], &mut |_| false), Err(RunError::Cancelled)));
}

#[test]
fn what_is_printed_is_kept() {
    let mut words = vec![lui(31, 0x10000)];
    // sb x1, 4(x31)
    "hello".bytes().for_each(|byte| words.extend([addi(1, 0, byte.into()), 0x001f_8223]));
    words.extend([addi(1, 0, 7), 0x001f_a023]);
    let (done, _) = machine::run(&job(&words), &[], &mut |_| true).unwrap();
    assert_eq!((done.code, done.printed.as_str(), done.instructions), (7, "hello", 13));
}

fn configs() -> Vec<Config> {
    let mut configs = vec![Config::base()];
    for (size, ways, width, slots) in [(1_024, 2, 8, 0), (4_096, 4, 16, 16), (32_768, 1, 4, 32)] {
        for replacement in [Replacement::Lru, Replacement::Fifo, Replacement::Random(7)] {
            let cache = CacheConfig { size, ways, line: 32, replacement };
            let policy = if slots == 16 { Policy::WriteBack } else { Policy::WriteThrough };
            configs.push(Config {
                icache: cache,
                dcache: cache,
                width,
                write_slots: slots,
                policy,
                ..Config::base()
            });
        }
    }
    configs
}

/// A loop that loads and stores all over 8 KiB.
fn busy(body: &[u32]) -> Vec<u32> {
    let mut words = vec![lui(30, 0x80100), addi(20, 0, 600), addi(8, 0, 1_237)];
    let start = words.len() as i32;
    // x5 = x30 + (x20 * x8 & 0x1ffc); lw x6, 0(x5); sw x6, 4(x5)
    words.extend([0x028a_04b3, 0x0134_9493, 0x0134_d493, 0xffc4_f493, 0x009f_02b3, 0x0002_a303, 0x0062_a223]);
    words.extend(body);
    words.push(addi(20, 20, 0xfff));
    // bne x20, x0, start
    let offset = (4 * (start - words.len() as i32)) as u32;
    words.push(
        (offset >> 12 & 1) << 31
            | (offset >> 5 & 63) << 25
            | 20 << 15
            | 1 << 12
            | (offset >> 1 & 15) << 8
            | (offset >> 11 & 1) << 7
            | 0x63,
    );
    words.extend(EXIT);
    words
}

#[test]
fn one_execution_timed_for_many_is_each_timed_alone() {
    let job = job(&busy(&[0x0263_0333]));
    let (done, together) = machine::run(&job, &configs(), &mut |_| true).unwrap();
    assert_eq!(together.len(), configs().len());
    for (config, account) in configs().into_iter().zip(&together) {
        let (alone, one) = machine::run(&job, &[config], &mut |_| true).unwrap();
        assert_eq!((&done, account), (&alone, &one[0]));
    }
    let cycles: std::collections::HashSet<u64> = together.iter().map(|one| one.cycles).collect();
    assert!(cycles.len() > 4, "the configurations differ: {cycles:?}");
}

/// A program that reads `cycle` gets the cycles that it took itself, even if other configurations are timed with it.
#[test]
fn a_program_that_reads_the_time_has_its_own() {
    // rdcycle x7; sw x7, 0(x5): the last value is left in memory, and its lowest bits end the program.
    let mut words = busy(&[0xc000_23f3, 0x0072_a023]);
    let exit = words.len() - 1;
    words[exit] = 0x007f_a023;
    let job = job(&words);
    let (_, together) = machine::run(&job, &configs(), &mut |_| true).unwrap();
    for (config, account) in configs().into_iter().zip(&together) {
        let (done, one) = machine::run(&job, &[config], &mut |_| true).unwrap();
        assert_eq!(account, &one[0]);
        let left = one[0].cycles - u64::from(done.code);
        assert!((4..200).contains(&left), "{left} cycles after the last look at the clock");
    }
}

/// A count that is kept: what a configuration takes changes with the model alone, on no machine and in no build.
#[test]
fn cycles_are_the_same_everywhere() {
    let (_, accounts) = machine::run(&job(&busy(&[0x0263_0333])), &configs(), &mut |_| true).unwrap();
    let cycles: Vec<u64> = accounts.iter().map(|one| one.cycles).collect();
    assert_eq!(cycles, FINGERPRINTS);
}

/// With the reason in the commit that changes them.
const FINGERPRINTS: [u64; 10] =
    [16_851, 18_404, 18_404, 18_836, 14_503, 14_503, 14_398, 13_731, 13_731, 13_731];
