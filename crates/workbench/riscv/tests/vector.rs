//! What a vector instruction leaves behind when it faults.

mod support;

use forebay_riscv::{Core, FaultKind, Isa, Program};
use support::*;

/// Loads and stores of four elements of 32 bits, whose third one is behind the end of memory.
#[test]
fn a_fault_leaves_the_faulting_element_in_vstart_and_those_before_it_done() {
    let vsetivli = 3 << 30 | (2 << 3) << 20 | 4 << 15 | 7 << 12 | 0x57;
    let (load, store) = (0x0200_6007 | 5 << 15 | 8 << 7, 0x0200_6027 | 5 << 15 | 8 << 7);
    // vmv.x.s x7, v8; csrrs x6, vstart, x0
    let (first, vstart) = (0x4200_2057 | 8 << 20 | 7 << 7, i(0x73, 2, 6, 0, 0x008));
    for (access, stores) in [(load, false), (store, true)] {
        let words = [vsetivli, access, vstart, i(0x73, 5, 0, 0, 0x008), first, sw(0, 31, 0)];
        let mut core = Core::rv64(Program::new(Isa::full64(), Vec::new()), memory(&words), BASE);
        core.set_register(31, EXIT.into());
        let end = BASE + SIZE;
        core.memory.slice_mut(end - 8, 4).unwrap().copy_from_slice(&7_u32.to_le_bytes());
        core.set_register(5, (end - 8).into());
        let fault = core.run(&mut Exit, &mut (), 100).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Unmapped { address: end.into(), store: stores });
        assert_eq!(fault.pc, BASE + 4);
        core.set_pc(BASE + 8);
        core.run(&mut Exit, &mut (), 100).unwrap();
        assert_eq!((core.registers()[6], core.registers()[7]), (2, if stores { 0 } else { 7 }));
    }
}
