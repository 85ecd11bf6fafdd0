//! How fast an executable is simulated: `cargo run --release --example speed -- firmware.elf`.
#![allow(clippy::disallowed_methods)]
use std::time::Instant;

use forebay_embedded::elf::Executable;
use forebay_riscv::*;

struct Exit;
impl Ports for Exit {
    fn store(&mut self, address: u32, value: u32, _: Width) -> PortAnswer {
        if address == 0x1000_0000 { PortAnswer::Exit(value) } else { PortAnswer::Done }
    }
}

fn main() {
    let file = std::fs::read(std::env::args().nth(1).unwrap()).unwrap();
    let executable = Executable::read(&file).unwrap();
    for clocks in [0, 1, 8] {
        let mut memory = Memory::new(0x8000_0000, 16 << 20);
        executable.load(&mut memory).unwrap();
        let program = Program::new(Isa::full(), executable.functions.clone());
        let mut core = Core::new(program, memory, executable.entry);
        let timing = Timing::new(Config::base(), 0x8000_0000..0x8100_0000);
        let mut timings = vec![timing; clocks];
        let begin = Instant::now();
        let stop = core.run(&mut Exit, &mut timings, u64::MAX).unwrap();
        let s = begin.elapsed().as_secs_f64();
        let n = core.instructions() as f64;
        println!(
            "{clocks} clocks: {stop:?}, {:.1} million instructions, {:.1} million/s",
            n / 1e6,
            n / 1e6 / s
        );
        for one in timings.iter().take(1) {
            let account = one.account(core.program());
            println!("{} cycles, CPI {:.3}", account.cycles, account.cycles as f64 / n);
            assert_eq!(account.cells.iter().map(|cell| cell.cycles).sum::<u64>(), account.cycles);
            for cause in Cause::ALL {
                let c: u64 = account.cells.iter().filter(|x| x.cause == cause).map(|x| x.cycles).sum();
                println!("  {:14} {c}", cause.name());
            }
        }
    }
}
