//! All 49 152 compressed encodings, of RV32 and of RV64, against binutils' disassembler: what [`forebay_riscv::expand`] makes of one is
//! disassembled as well, and has to be what the specification's table says it stands for. Skipped with a message where
//! there is no disassembler.

use std::process::Command;

use forebay_riscv::{Xlen, expand};

const TOOL: &str = "riscv64-unknown-elf-objdump";

/// Mnemonic and operands of each instruction, of `size` bytes.
fn disassembled(bytes: &[u8], size: usize, name: &str, xlen: Xlen) -> Option<Vec<(String, Vec<String>)>> {
    let machine = format!("riscv:rv{}", xlen.bits());
    let path =
        std::env::temp_dir().join(format!("forebay-{name}-{}-{}.bin", xlen.bits(), std::process::id()));
    std::fs::write(&path, bytes).unwrap();
    let output = Command::new(TOOL)
        .args(["-D", "-z", "-b", "binary", "-m", &machine, "-M", "no-aliases,numeric"])
        .arg(&path)
        .output();
    std::fs::remove_file(&path).unwrap();
    let text = String::from_utf8(output.ok()?.stdout).unwrap();
    let mut found = vec![(String::new(), Vec::new()); bytes.len() / size];
    for line in text.lines() {
        let mut columns = line.split('\t');
        let Some(address) = columns.next().and_then(|one| one.trim().strip_suffix(':')) else { continue };
        let Ok(address) = usize::from_str_radix(address, 16) else { continue };
        let name = columns.nth(1).unwrap_or_default().trim().to_owned();
        let operands = columns.next().unwrap_or_default();
        let operands = operands.split(['#', '<']).next().unwrap_or_default().trim();
        let jumps = ["c.j", "c.jal", "c.beqz", "c.bnez", "jal", "beq", "bne"].contains(&name.as_str());
        let mut operands: Vec<String> = operands.split(',').map(str::to_owned).collect();
        if let Some(last) = operands.last_mut().filter(|_| jumps) {
            // A place, which is to be a distance.
            let place = i64::from_str_radix(last.trim_start_matches("0x"), 16).unwrap() as i32;
            *last = place.wrapping_sub(address as i32).to_string();
        }
        found[address / size] = (name, operands);
    }
    Some(found)
}

/// What a compressed instruction stands for (unprivileged ISA, tables of the chapter "C").
fn meaning(name: &str, operands: &[String], xlen: Xlen) -> Option<String> {
    let wide = xlen == Xlen::Rv64;
    let o = |at: usize| operands.get(at).map_or("", String::as_str);
    Some(match name {
        // Reserved.
        "c.addi4spn" if o(2) == "0" => return None,
        "c.addi16sp" if o(1) == "0" => return None,
        "c.addi4spn" => format!("addi {},{},{}", o(0), o(1), o(2)),
        "c.addi16sp" => format!("addi {0},{0},{1}", o(0), o(1)),
        "c.lw" | "c.lwsp" => format!("lw {},{}", o(0), o(1)),
        "c.sw" | "c.swsp" => format!("sw {},{}", o(0), o(1)),
        "c.nop" => format!("addi x0,x0,{}", if o(0).is_empty() { "0" } else { o(0) }),
        "c.addi" => format!("addi {0},{0},{1}", o(0), o(1)),
        "c.li" => format!("addi {},x0,{}", o(0), o(1)),
        "c.lui" => format!("lui {},{}", o(0), o(1)),
        "c.jal" => format!("jal x1,{}", o(0)),
        "c.j" => format!("jal x0,{}", o(0)),
        "c.beqz" => format!("beq {},x0,{}", o(0), o(1)),
        "c.bnez" => format!("bne {},x0,{}", o(0), o(1)),
        "c.jr" => format!("jalr x0,0({})", o(0)),
        "c.jalr" => format!("jalr x1,0({})", o(0)),
        "c.mv" => format!("add {},x0,{}", o(0), o(1)),
        "c.ebreak" => "ebreak ".to_owned(),
        "c.ld" | "c.ldsp" if wide => format!("ld {},{}", o(0), o(1)),
        "c.sd" | "c.sdsp" if wide => format!("sd {},{}", o(0), o(1)),
        // Reserved.
        "c.addiw" if o(0) == "x0" => return None,
        "c.addiw" if wide => format!("addiw {0},{0},{1}", o(0), o(1)),
        "c.subw" | "c.addw" if wide => format!("{} {1},{1},{2}", &name[2..], o(0), o(1)),
        // Not for RV32, whatever the disassembler says.
        "c.srli" | "c.srai" | "c.slli" if shift(o(1)) >= xlen.bits() => return None,
        "c.srli" | "c.srai" | "c.andi" | "c.slli" => format!("{} {1},{1},{2}", &name[2..], o(0), o(1)),
        // Shifts by nothing: hints on RV32.
        "c.slli64" | "c.srli64" | "c.srai64" => format!("{} {1},{1},0x0", &name[2..6], o(0)),
        "c.sub" | "c.xor" | "c.or" | "c.and" | "c.add" => format!("{} {1},{1},{2}", &name[2..], o(0), o(1)),
        _ => return None,
    })
}

fn shift(text: &str) -> u32 {
    u32::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
}

#[test]
fn every_compressed_instruction_stands_for_what_the_specification_says() {
    for xlen in [Xlen::Rv32, Xlen::Rv64] {
        let halves: Vec<u16> = (0..=u16::MAX).filter(|half| half & 3 != 3).collect();
        let bytes: Vec<u8> = halves.iter().flat_map(|half| half.to_le_bytes()).collect();
        let Some(short) = disassembled(&bytes, 2, "short", xlen) else {
            eprintln!("skipped: {TOOL} is not installed (Debian: binutils-riscv64-unknown-elf)");
            return;
        };
        // A word of zeros is disassembled as none.
        let bytes: Vec<u8> =
            halves.iter().flat_map(|&half| expand(half, xlen).unwrap_or_default().to_le_bytes()).collect();
        let long = disassembled(&bytes, 4, "long", xlen).unwrap();
        let mut same = 0;
        for ((half, short), long) in halves.iter().zip(&short).zip(&long) {
            let made = expand(*half, xlen).map(|_| format!("{} {}", long.0, long.1.join(",")));
            let place = format!("{xlen:?} {half:#06x} {} {:?}", short.0, short.1);
            match meaning(&short.0, &short.1, xlen) {
                Some(meaning) => {
                    assert_eq!(made.as_deref(), Some(meaning.as_str()), "{place}");
                    same += 1;
                }
                None => assert_eq!(made, None, "{place}"),
            }
        }
        assert!(same > 28_000, "{same}");
    }
}
