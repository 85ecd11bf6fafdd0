//! Makes the answers anew that `tests/spike.rs` compares with: `cargo run --release -p forebay-riscv --example spike --
//! SPIKE`, with the program `spike` of https://github.com/riscv-software-src/riscv-isa-sim, and
//! `riscv64-unknown-elf-gcc`. Says where the simulated core differs.

#[path = "../tests/support/cases.rs"]
mod cases;

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use cases::{BASE, CASES, OUTPUT, POOL, SETS, SIZE, Set};

const ISA: &str =
    "rv64imc_zicsr_zifencei_zbb_zbkb_zbkc_zbkx_zkne_zknd_zknh_zve64x_zvkb_zvkned_zvkg_zvknha_zvknhb";
const CROSS: &str = "riscv64-unknown-elf-";

fn main() {
    let Some(spike) = std::env::args().nth(1) else {
        eprintln!("usage: spike SPIKE");
        std::process::exit(2);
    };
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/spike");
    let folder = std::env::temp_dir().join(format!("forebay-spike-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the programs");
    if driver(&data, &folder) {
        eprintln!("driver.bin is new: run this again");
        std::process::exit(1);
    }
    for set in &SETS {
        let theirs = run(&spike, set, &folder);
        let (cases, ours) = cases::answers(set);
        let mut differ = 0;
        for ((case, theirs), ours) in cases.iter().zip(&theirs).zip(&ours) {
            if theirs != ours {
                differ += 1;
                if differ <= 12 {
                    let word =
                        |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
                    let state = |bytes: &[u8]| [0, 8, 16, 24, 32].map(|at| word(bytes, at));
                    let first = theirs.iter().zip(ours).position(|(a, b)| a != b);
                    println!(
                        "{}: {case:x?}: spike {:x?}, core {:x?}, byte {first:?}",
                        set.name,
                        state(theirs),
                        state(ours)
                    );
                }
            }
        }
        let digests: Vec<u8> = theirs.iter().flat_map(|one| cases::digest(one).to_le_bytes()).collect();
        std::fs::write(data.join(format!("{}.fnv", set.name)), digests).expect("the answers are written");
        println!("{}: {} cases, {differ} differ", set.name, theirs.len());
    }
    let _ = std::fs::remove_dir_all(folder);
}

fn done(command: &mut Command) {
    let status = command.status().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?}: {status}");
}

/// Assembles the driver; says if it is another one than that which is built in.
fn driver(data: &Path, folder: &Path) -> bool {
    let (elf, new) = (folder.join("driver.elf"), folder.join("driver.bin"));
    done(
        Command::new(format!("{CROSS}gcc"))
            .args(["-march=rv64imac_zicsr_zifencei", "-mabi=lp64", "-nostdlib", "-static"])
            .arg(format!("-Wl,-Ttext={BASE:#x},--build-id=none,--no-relax"))
            .arg(data.join("driver.S"))
            .arg("-o")
            .arg(&elf),
    );
    done(Command::new(format!("{CROSS}objcopy")).args(["-O", "binary", "-j", ".text"]).arg(&elf).arg(&new));
    let (kept, new) = (data.join("driver.bin"), std::fs::read(new).expect("the driver"));
    let same = std::fs::read(&kept).is_ok_and(|old| old == new);
    if !same {
        std::fs::write(kept, new).expect("the driver is written");
    }
    !same
}

/// What Spike writes down, a piece for each case.
fn run(spike: &str, set: &Set, folder: &Path) -> Vec<Vec<u8>> {
    let (cases, parts) = cases::image(set);
    let size = cases::answer_size(set.vlen);
    let mut source = String::new();
    for (address, bytes) in &parts {
        let path = folder.join(format!("{address:x}.bin"));
        std::fs::write(&path, bytes).expect("a part is written");
        let name = match *address {
            BASE => ".text",
            CASES => ".cases",
            POOL => ".pool",
            _ => unreachable!("three parts"),
        };
        let flags = if name == ".text" { "ax" } else { "awx" };
        let _ = writeln!(source, ".section {name},\"{flags}\"\n.incbin \"{}\"", path.display());
    }
    let end = u64::from(OUTPUT) + (size * cases.len()) as u64;
    let _ = writeln!(source, ".globl tohost, begin_signature, end_signature, _start\n.set _start, {BASE:#x}");
    let _ = writeln!(
        source,
        ".set tohost, {:#x}\n.globl fromhost\n.set fromhost, tohost + 64\n.set begin_signature, {OUTPUT:#x}\n.set end_signature, {end:#x}",
        BASE + 0x8000
    );
    let (assembly, elf, signature) = (folder.join("set.s"), folder.join("set.elf"), folder.join("signature"));
    std::fs::write(&assembly, source).expect("the program is written");
    done(
        Command::new(format!("{CROSS}gcc"))
            .args(["-march=rv64imac", "-mabi=lp64", "-nostdlib", "-static"])
            .arg(format!(
                "-Wl,-Ttext={BASE:#x},--section-start=.cases={CASES:#x},--section-start=.pool={POOL:#x},--build-id=none,--nmagic,--no-warn-rwx-segments"
            ))
            .arg(&assembly)
            .arg("-o")
            .arg(&elf),
    );
    done(
        Command::new(spike)
            .arg(format!("--isa={ISA}_zvl{}b", set.vlen))
            .arg(format!("-m{BASE:#x}:{SIZE:#x}"))
            .arg(format!("+signature={}", signature.display()))
            .arg("+signature-granularity=8")
            .arg(&elf),
    );
    let text = std::fs::read_to_string(&signature).expect("the signature");
    let words = text.lines().map(|line| u64::from_str_radix(line.trim(), 16).expect("hexadecimal"));
    let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    bytes.chunks_exact(size).map(<[u8]>::to_vec).collect()
}
