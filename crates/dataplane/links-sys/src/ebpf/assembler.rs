//! The few instructions of eBPF that programs here need (RFC 9669), with labels for jumps forward.

/// A register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reg(u8);

/// The result, of calls too.
pub const R0: Reg = Reg(0);
/// What the program is called with; the first argument of a call.
pub const R1: Reg = Reg(1);
/// The second argument.
pub const R2: Reg = Reg(2);
/// The third argument.
pub const R3: Reg = Reg(3);
/// The fourth argument.
pub const R4: Reg = Reg(4);
/// The fifth argument.
pub const R5: Reg = Reg(5);
/// Survives calls.
pub const R6: Reg = Reg(6);
/// Survives calls.
pub const R7: Reg = Reg(7);
/// Survives calls.
pub const R8: Reg = Reg(8);
/// The end of the program's stack, which grows down from there.
pub const STACK: Reg = Reg(10);

/// Bytes that a load takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// One.
    Byte,
    /// Two.
    Half,
    /// Four.
    Word,
    /// Eight.
    Double,
}

/// A comparison of a register's low 32 bits with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Is {
    /// It is the number.
    Equal,
    /// It is another one.
    NotEqual,
    /// It is lower, without signs.
    Below,
}

/// A place further on in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label(usize);

/// A program in the making.
#[derive(Debug, Default)]
pub struct Assembler {
    code: Vec<u64>,
    /// Where each label is, once it is known.
    labels: Vec<Option<usize>>,
    /// Jumps by the place of the instruction.
    jumps: Vec<(usize, Label)>,
}

impl Assembler {
    /// A label that is not placed yet.
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Places a label here.
    pub fn here(&mut self, label: Label) {
        self.labels[label.0] = Some(self.code.len());
    }

    /// `to = from`.
    pub fn copy(&mut self, to: Reg, from: Reg) {
        self.put(0xbf, to, from, 0, 0);
    }

    /// `to = number`.
    pub fn set(&mut self, to: Reg, number: i32) {
        self.put(0xb7, to, R0, 0, number);
    }

    /// `to += number`.
    pub fn add(&mut self, to: Reg, number: i32) {
        self.put(0x07, to, R0, 0, number);
    }

    /// `to &= number`, of the low 32 bits.
    pub fn and(&mut self, to: Reg, number: u32) {
        self.put(0x54, to, R0, 0, number as i32);
    }

    /// Half-word `to` from network to host byte order.
    pub fn host_half(&mut self, to: Reg) {
        self.put(0xdc, to, R0, 0, 16);
    }

    /// `to = *(from + offset)`.
    pub fn load(&mut self, to: Reg, width: Width, from: Reg, offset: i16) {
        let code = match width {
            Width::Byte => 0x71,
            Width::Half => 0x69,
            Width::Word => 0x61,
            Width::Double => 0x79,
        };
        self.put(code, to, from, offset, 0);
    }

    /// Word `*(to + offset) = from`.
    pub fn store_word(&mut self, to: Reg, offset: i16, from: Reg) {
        self.put(0x63, to, from, offset, 0);
    }

    /// Double word `*(to + offset) += from`, while others may do the same.
    pub fn add_to(&mut self, to: Reg, offset: i16, from: Reg) {
        self.put(0xdb, to, from, offset, 0);
    }

    /// `to -= from`.
    pub fn subtract(&mut self, to: Reg, from: Reg) {
        self.put(0x1f, to, from, 0, 0);
    }

    /// Goes to `label`.
    pub fn jump(&mut self, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.put(0x05, R0, R0, 0, 0);
    }

    /// Goes to `label` if a register compares so with a number.
    pub fn jump_if(&mut self, register: Reg, is: Is, number: u32, label: Label) {
        let code = match is {
            Is::Equal => 0x16,
            Is::NotEqual => 0x56,
            Is::Below => 0xa6,
        };
        self.jumps.push((self.code.len(), label));
        self.put(code, register, R0, 0, number as i32);
    }

    /// Goes to `label` if pointer `a` is above `b`.
    pub fn jump_if_above(&mut self, a: Reg, b: Reg, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.put(0x2d, a, b, 0, 0);
    }

    /// Goes to `label` if a register, all of it and with its sign, is not below a number.
    pub fn jump_if_not_below(&mut self, register: Reg, number: i32, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.put(0x75, register, R0, 0, number);
    }

    /// Goes to `label` if a register, all of it, is zero: a pointer is none.
    pub fn jump_if_none(&mut self, register: Reg, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.put(0x15, register, R0, 0, 0);
    }

    /// Goes to `label` if a register, all of it, is not zero.
    pub fn jump_if_some(&mut self, register: Reg, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.put(0x55, register, R0, 0, 0);
    }

    /// `to` = the map with this descriptor.
    pub fn map(&mut self, to: Reg, descriptor: i32) {
        const PSEUDO_MAP_FD: Reg = Reg(1);
        self.put(0x18, to, PSEUDO_MAP_FD, 0, descriptor);
        self.code.push(0);
    }

    /// Calls a function of the kernel.
    pub fn call(&mut self, function: i32) {
        self.put(0x85, R0, R0, 0, function);
    }

    /// Ends the program.
    pub fn exit(&mut self) {
        self.put(0x95, R0, R0, 0, 0);
    }

    /// The instructions, each of eight bytes as the kernel has them.
    ///
    /// # Panics
    /// If a label has no place, or is out of a jump's reach.
    pub fn finish(mut self) -> Vec<u64> {
        for (at, label) in self.jumps {
            let to = self.labels[label.0].expect("a placed label");
            let distance = i16::try_from(to - (at + 1)).expect("a jump within reach");
            self.code[at] |= u64::from(distance as u16) << 16;
        }
        self.code
    }

    fn put(&mut self, code: u8, to: Reg, from: Reg, offset: i16, number: i32) {
        let registers = to.0 | from.0 << 4;
        let bytes = [code, registers];
        let low = u64::from(u16::from_le_bytes(bytes)) | u64::from(offset as u16) << 16;
        self.code.push(low | u64::from(number as u32) << 32);
    }
}
