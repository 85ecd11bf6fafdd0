//! In step with qemu-riscv32 and qemu-riscv64 (Debian's qemu-user): random instructions, and the firmware, every register after every
//! instruction. Skipped with a message where it is not installed.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use forebay_embedded::elf::Executable;
use forebay_embedded::image;
use forebay_embedded::machine::{INPUT, MEMORY};
use forebay_riscv::{Core, Instruction, Isa, Memory, Op, Program, Silent, Stop, Word, Xlen, decode, expand};

const CPU: &str = "zbb=true,zbkb=true,zbkc=true,zbkx=true,zkne=true,zknd=true,zknh=true";

fn is_there(xlen: Xlen) -> bool {
    let qemu = format!("qemu-riscv{}", xlen.bits());
    let found = Command::new(&qemu).arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: {qemu} is not installed (Debian: qemu-user)");
    }
    found
}

/// What qemu says before each instruction: pc, x0 to x31.
fn next_state<W: Word>(lines: &mut impl Iterator<Item = String>) -> Option<(u32, [W; 32])> {
    let hex = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let pc = lines.find_map(|line| line.trim_start().strip_prefix("pc ").map(|rest| hex(rest.trim())))?;
    let mut registers = [W::default(); 32];
    let mut at = 0;
    while at < 32 {
        let line = lines.next()?;
        let words: Vec<&str> = line.split_whitespace().collect();
        for pair in words.chunks(2) {
            registers[at] = W::truncated(hex(pair[1]));
            at += 1;
        }
    }
    Some((pc as u32, registers))
}

/// Runs an executable on both, one instruction after the other, until it leaves or `limit` is reached. Returns how
/// many instructions there were.
fn in_step<W: Word>(path: &Path, core: &mut Core<W>, stdin: &[u8], limit: u64) -> u64 {
    let input = path.with_extension("in");
    std::fs::write(&input, stdin).unwrap();
    let mut qemu = Command::new(format!("qemu-riscv{}", W::XLEN.bits()))
        .args(["-cpu", &format!("rv{},{CPU}", W::XLEN.bits()), "-singlestep", "-d", "nochain,cpu"])
        .arg(path)
        .stdin(std::fs::File::open(&input).unwrap())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(qemu.stderr.take().unwrap()).lines().map_while(Result::ok);
    let (pc, registers) = next_state::<W>(&mut lines).expect("qemu starts");
    assert_eq!(pc, core.pc());
    (1..32).for_each(|at| core.set_register(at, registers[at]));
    let mut read = 0;
    let mut count = 0;
    while count < limit {
        let before = core.pc();
        let stop = core.run(&mut Silent, &mut (), 1).unwrap();
        count += 1;
        if stop == Stop::Call {
            let [number, address, length] = [17, 11, 12].map(|at| core.registers()[at].low());
            match number {
                93 => break,
                63 => {
                    let some = (length as usize).min(stdin.len() - read);
                    let place = core.memory.slice_mut(address, some).unwrap();
                    place.copy_from_slice(&stdin[read..read + some]);
                    read += some;
                    core.set_register(10, W::truncated(some as u64));
                }
                64 => core.set_register(10, W::truncated(length.into())),
                _ => panic!("ecall {number}"),
            }
        }
        let (pc, registers) = next_state::<W>(&mut lines).expect("qemu goes on");
        assert_eq!(core.registers(), registers, "after {before:#x}, instruction {count}");
        assert_eq!(core.pc(), pc, "after {before:#x}, instruction {count}");
    }
    let _ = qemu.kill();
    let _ = qemu.wait();
    count
}

/// An executable of one segment.
fn elf(code: &[u8]) -> Vec<u8> {
    let size = 0x1_0000_u32;
    let mut out = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    let half = |out: &mut Vec<u8>, value: u16| out.extend(value.to_le_bytes());
    let word = |out: &mut Vec<u8>, value: u32| out.extend(value.to_le_bytes());
    half(&mut out, 2);
    half(&mut out, 243);
    [1, MEMORY, 52, 0, 1].into_iter().for_each(|one| word(&mut out, one));
    [52, 32, 1, 40, 0, 0].into_iter().for_each(|one| half(&mut out, one));
    [1, 0x1000, MEMORY, MEMORY, code.len() as u32, size, 7, 0x1000]
        .into_iter()
        .for_each(|one| word(&mut out, one));
    out.resize(0x1000, 0);
    out.extend(code);
    out
}

/// SplitMix64.
struct Draws(u64);

impl Draws {
    fn next_u32(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) >> 32) as u32
    }
}

/// Registers that programs keep for memory: x30, and x2 for what has only that.
fn spares(one: Instruction) -> bool {
    one.rd != 30 && one.rd != 2
}

/// Random code, every kind of instruction that the core has, with forward branches and calls, and memory around
/// the middle of the segment.
fn random_code(rng: &mut Draws, length: usize) -> Vec<u8> {
    const FUNCT7: [u32; 16] =
        [0, 1, 0x20, 0x30, 5, 4, 0x14, 0x34, 8, 0x28, 0x29, 0x2a, 0x2b, 0x2e, 0x2f, 0x11];
    const UNARY: [(u32, u32); 15] = [
        (0x600, 1),
        (0x601, 1),
        (0x602, 1),
        (0x604, 1),
        (0x605, 1),
        (0x287, 5),
        (0x698, 5),
        (0x687, 5),
        (0x08f, 1),
        (0x08f, 5),
        (0x100, 1),
        (0x101, 1),
        (0x102, 1),
        (0x103, 1),
        (0x5, 5),
    ];
    let isa = Isa::full();
    let mut out: Vec<u8> = Vec::new();
    let push = |out: &mut Vec<u8>, word: u32| out.extend(word.to_le_bytes());
    let middle = MEMORY + 0xc000;
    for register in 1..32_u32 {
        let value = if register == 30 || register == 2 { middle } else { rng.next_u32() };
        let low = (value as i32) << 20 >> 20;
        push(&mut out, value.wrapping_sub(low as u32) & 0xffff_f000 | register << 7 | 0x37);
        push(&mut out, (low as u32) << 20 | register << 15 | register << 7 | 0x13);
    }
    while out.len() < 4 * length {
        let any = rng.next_u32();
        let pc = MEMORY + out.len() as u32;
        match rng.next_u32() % 16 {
            // Compressed: all but jumps and what has any register for an address.
            0..=4 => {
                let half = any as u16;
                let Some(one) = expand(half, isa.xlen()).and_then(|word| decode(word, pc, &isa)) else {
                    continue;
                };
                let class = one.op.class().name();
                let by_stack = matches!(class, "load" | "store") && one.rs1 == 2;
                if spares(one) && (class == "alu" || by_stack) {
                    out.extend(half.to_le_bytes());
                }
            }
            5..=10 => {
                let opcode = [0x13, 0x33, 0x33, 0x33, 0x37, 0x17][(any >> 7) as usize % 6];
                let funct7 = FUNCT7[rng.next_u32() as usize % 16];
                let chosen = rng.next_u32() % 4;
                let word = match (opcode, any >> 12 & 7) {
                    (0x13, _) if chosen == 0 => {
                        // Of one source: all of imm and funct3 are given.
                        let (imm, funct3) = UNARY[rng.next_u32() as usize % UNARY.len()];
                        imm << 20 | any & 0x000f_8f80 | funct3 << 12
                    }
                    (0x33, 0) if chosen == 0 => {
                        // AES: which of four instructions, and which byte.
                        let kind = [0x11, 0x13, 0x15, 0x17][rng.next_u32() as usize % 4];
                        any & 0x01ff_ff80 | (rng.next_u32() % 4) << 30 | kind << 25
                    }
                    (0x33, _) | (0x13, 1 | 5) => any & 0x01ff_ff80 | funct7 << 25,
                    _ => any & !0x7f,
                } | opcode;
                if decode(word, pc, &isa).is_some_and(spares) {
                    push(&mut out, word);
                }
            }
            11 => {
                let funct3 = [0, 1, 2, 4, 5][(any >> 3) as usize % 5];
                let align = [1, 2, 4, 0, 1, 2][funct3 as usize].max(1);
                let offset = ((any >> 20) as i32 - 2_048) & -align;
                let rd = [1, 3, 7, 9, 20, 31][any as usize % 6];
                push(&mut out, (offset as u32) << 20 | 30 << 15 | funct3 << 12 | rd << 7 | 0x03);
            }
            12 | 13 => {
                let funct3 = any % 3;
                let offset = (((any >> 20) as i32 - 2_048) & -(1 << funct3)) as u32;
                let (high, low) = (offset >> 5 & 0x7f, offset & 31);
                push(
                    &mut out,
                    high << 25 | (any >> 8 & 31) << 20 | 30 << 15 | funct3 << 12 | low << 7 | 0x23,
                );
            }
            14 => {
                // Over the next instruction, of four bytes.
                let funct3 = [0, 1, 4, 5, 6, 7][any as usize % 6];
                push(
                    &mut out,
                    (any >> 20 & 31) << 20 | (any >> 15 & 31) << 15 | funct3 << 12 | 8 << 7 | 0x63,
                );
                push(&mut out, 0x0010_8093);
            }
            _ => {
                // auipc x5, 0; jalr x1, 12(x5): to what follows.
                push(&mut out, 0x0000_0297);
                push(&mut out, 0x00c2_80e7);
                push(&mut out, 0x0010_8093);
            }
        }
    }
    push(&mut out, 0x05d0_0893);
    push(&mut out, 0x0000_0513);
    push(&mut out, 0x0000_0073);
    out
}

#[test]
fn random_instructions_do_what_qemu_does() {
    if !is_there(Xlen::Rv32) {
        return;
    }
    let folder = folder("random");
    let mut total = 0;
    let mut seen = std::collections::HashSet::new();
    for seed in 0..24_u64 {
        let mut rng = Draws(seed);
        let file = elf(&random_code(&mut rng, 1_500));
        let path = folder.join(format!("{seed}.elf"));
        write_executable(&path, &file);
        let executable = Executable::read(&file).unwrap();
        let mut memory = Memory::new(MEMORY, 0x1_0000);
        executable.load(&mut memory).unwrap();
        let program = Program::new(Isa::full(), Vec::new()).in_steps();
        let mut core = Core::new(program, memory, executable.entry);
        total += in_step(&path, &mut core, &[], u64::MAX);
        let program = core.program();
        seen.extend(program.codes().iter().flat_map(|code| program.instructions(code).0).map(|one| one.op));
    }
    let missed: Vec<Op> = ALL.into_iter().filter(|op| !seen.contains(op)).collect();
    assert!(missed.is_empty(), "never drawn: {missed:?}");
    eprintln!("{total} random instructions in step with qemu");
    let _ = std::fs::remove_dir_all(folder);
}

/// Everything that computes, loads, stores or branches.
#[rustfmt::skip]
const ALL: [Op; 82] = {
    use Op::*;
    [
        Lui, Addi, Slti, Sltiu, Xori, Ori, Andi, Slli, Srli, Srai, Add, Sub, Sll, Slt, Sltu, Xor, Srl, Sra, Or, And,
        Mul, Mulh, Mulhsu, Mulhu, Div, Divu, Rem, Remu, Lb, Lh, Lw, Lbu, Lhu, Sb, Sh, Sw, Andn, Orn, Xnor, Rol, Ror,
        Rori, Clz, Ctz, Cpop, Max, Maxu, Min, Minu, Sextb, Sexth, Orcb, Rev8, Brev8, Pack, Packh, Zip, Unzip, Clmul,
        Clmulh, Xperm4, Xperm8, Aes32esi, Aes32esmi, Aes32dsi, Aes32dsmi, Sha256sig0, Sha256sig1, Sha256sum0,
        Sha256sum1, Sha512sig0h, Sha512sig0l, Sha512sig1h, Sha512sig1l, Sha512sum0r, Sha512sum1r, Beq, Bne, Blt, Bge,
        Bltu, Bgeu,
    ]
};

/// The firmware without custom and vector instructions, which qemu has not.
#[test]
fn the_firmware_does_what_qemu_does() {
    for name in ["ipsec-plain", "ipsec-zk"] {
        firmware_in_step::<u32>(name, &Isa::full());
    }
    for name in ["ipsec-rv64", "ipsec-rv64-zk"] {
        firmware_in_step::<u64>(name, &Isa::full64());
    }
}

fn firmware_in_step<W: Word>(name: &str, isa: &Isa) {
    if !is_there(W::XLEN) {
        return;
    }
    let folder = folder(name);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../firmware/prebuilt");
    let file = std::fs::read(root.join(format!("{name}.elf"))).unwrap();
    let here = folder.join(name);
    write_executable(&here, &file);
    let executable = Executable::read(&file).unwrap();
    let input = packets();
    let mut memory = Memory::new(MEMORY, 16 << 20);
    executable.load(&mut memory).unwrap();
    let program = Program::new(isa.clone(), executable.functions.clone()).in_steps();
    let mut core = Core::<W>::reset(program, memory, executable.entry);
    // With a stack pointer the firmware takes itself to be under Linux: it reads its input.
    let count = in_step(&here, &mut core, &input, 150_000);
    assert!(core.memory.slice(INPUT, input.len()) == Some(&input[..]), "it has read all");
    eprintln!("{name}: {count} instructions in step with qemu");
    let _ = std::fs::remove_dir_all(folder);
}

/// Two packets for an ESP tunnel with AES-CBC and HMAC-SHA-256.
fn packets() -> Vec<u8> {
    let address = |last: u8| {
        let mut out = [0; 16];
        out[..4].copy_from_slice(&[192, 0, 2, last]);
        out
    };
    let sa = image::Sa {
        spi: 0x1001,
        protocol: 50,
        cipher: 1,
        auth: 3,
        icv_len: 16,
        family: 4,
        source: address(1),
        destination: address(2),
        key: (0..16).collect(),
        key_len: 16,
        auth_key: (0..32).collect(),
        ..image::Sa::default()
    };
    let policy = image::Policy {
        inbound: false,
        action: 2,
        family: 4,
        protocol: 0,
        sa: 0,
        prefixes: (0, 0),
        ports: [0, 65_535, 0, 65_535],
        source: [0; 16],
        destination: [0; 16],
    };
    let mut packet = vec![0x45, 0, 0, 100, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    let sum: u32 = packet.chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1])).sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend([0x10, 0x00, 0x10, 0x01, 0, 80, 0, 0]);
    packet.extend(0..72);
    image::input(false, &[sa], &[policy], &[(false, &packet), (false, &packet)])
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("forebay-qemu-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn write_executable(path: &Path, bytes: &[u8]) {
    use std::os::unix::fs::OpenOptionsExt;
    let mut file =
        std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o755).open(path).unwrap();
    file.write_all(bytes).unwrap();
}
