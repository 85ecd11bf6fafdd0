//! The official tests of the base set and of multiplication (data/README.md says where from).

use std::path::Path;

use forebay_embedded::elf::Executable;
use forebay_riscv::{Core, Isa, Memory, Program, Silent, Stop};

#[test]
fn official_tests_pass() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/riscv-tests");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|end| end != "elf") {
            continue;
        }
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let executable = Executable::read(&std::fs::read(&path).unwrap()).unwrap();
        // Their addresses lie between 0 and 0x800_0000.
        let mut memory = Memory::new(0, 0x800_0000);
        executable.load(&mut memory).unwrap();
        let program = Program::new(Isa::imc(), executable.functions.clone());
        let mut core = Core::new(program, memory, executable.entry);
        // They end with `ecall`, or fail with an instruction that is none; t6 is the number of the test.
        let stop = core.run(&mut Silent, &mut (), 1_000_000);
        assert_eq!(stop, Ok(Stop::Call), "{name}: test {}", core.registers()[31]);
        assert_eq!(core.registers()[10], 0, "{name}");
        count += 1;
    }
    assert_eq!(count, 46);
}
