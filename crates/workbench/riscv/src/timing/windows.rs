//! Register windows, as \[E\]'s core has them: what this program's calls would cost there. RISC-V has none, so this is
//! counted and costs no cycles.

use crate::call::Way;

/// Registers that a call moves the window by (`call8`, what Xtensa's compilers use).
const FRAME: u32 = 8;

/// Calls that found no free window, and returns whose window had been put on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Registers of the file.
    pub registers: u32,
    /// Calls that put the oldest window on the stack.
    pub overflows: u64,
    /// Returns that brought a window back.
    pub underflows: u64,
    /// Windows in the file.
    held: u32,
}

impl Windows {
    /// A file of so many registers, with one window in use.
    pub fn new(registers: u32) -> Windows {
        Windows { registers, overflows: 0, underflows: 0, held: 1 }
    }

    pub(super) fn follow(&mut self, way: Way) {
        match way {
            // The window in use sees the registers of the next one, for arguments.
            Way::Call if self.held + 1 < self.registers / FRAME => self.held += 1,
            Way::Call => self.overflows += 1,
            Way::Return if self.held > 1 => self.held -= 1,
            Way::Return => self.underflows += 1,
            Way::Jump => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_windows_hold_three_frames() {
        let mut file = Windows::new(32);
        let mut go = |way, times| (0..times).for_each(|_| file.follow(way));
        go(Way::Call, 2);
        go(Way::Return, 2);
        go(Way::Call, 5);
        go(Way::Return, 5);
        // Three of five calls put a window away, which as many returns bring back.
        assert_eq!((file.overflows, file.underflows), (3, 3));
    }
}
