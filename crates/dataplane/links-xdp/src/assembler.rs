//! The few instructions of eBPF that the program needs (RFC 9669), with labels for jumps forward.

/// A register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reg(u8);

/// The result, and the argument in the first register of a call.
pub(crate) const R0: Reg = Reg(0);
pub(crate) const R1: Reg = Reg(1);
pub(crate) const R2: Reg = Reg(2);
pub(crate) const R3: Reg = Reg(3);
pub(crate) const R4: Reg = Reg(4);
pub(crate) const R5: Reg = Reg(5);
/// Survives calls.
pub(crate) const R6: Reg = Reg(6);

/// Bytes that a load takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    Byte,
    Half,
    Word,
}

/// A comparison of a register's low 32 bits with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Is {
    Equal,
    NotEqual,
    Below,
}

/// A place further on in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label(usize);

/// A program in the making.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    code: Vec<u64>,
    /// Where each label is, once it is known.
    labels: Vec<Option<usize>>,
    /// Jumps by the place of the instruction.
    jumps: Vec<(usize, Label)>,
}

impl Assembler {
    /// A label that is not placed yet.
    pub(crate) fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Places a label here.
    pub(crate) fn here(&mut self, label: Label) {
        self.labels[label.0] = Some(self.code.len());
    }

    /// `to = from`.
    pub(crate) fn copy(&mut self, to: Reg, from: Reg) {
        self.put(0xbf, to, from, 0, 0);
    }

    /// `to = number`.
    pub(crate) fn set(&mut self, to: Reg, number: i32) {
        self.put(0xb7, to, R0, 0, number);
    }

    /// `to += number`.
    pub(crate) fn add(&mut self, to: Reg, number: i32) {
        self.put(0x07, to, R0, 0, number);
    }

    /// `to &= number`, of the low 32 bits.
    pub(crate) fn and(&mut self, to: Reg, number: u32) {
        self.put(0x54, to, R0, 0, number as i32);
    }

    /// Half-word `to` from network to host byte order.
    pub(crate) fn host_half(&mut self, to: Reg) {
        self.put(0xdc, to, R0, 0, 16);
    }

    /// `to = *(from + offset)`.
    pub(crate) fn load(&mut self, to: Reg, width: Width, from: Reg, offset: i16) {
        let code = match width {
            Width::Byte => 0x71,
            Width::Half => 0x69,
            Width::Word => 0x61,
        };
        self.put(code, to, from, offset, 0);
    }

    /// Goes to `label`.
    pub(crate) fn jump(&mut self, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.put(0x05, R0, R0, 0, 0);
    }

    /// Goes to `label` if a register compares so with a number.
    pub(crate) fn jump_if(&mut self, register: Reg, is: Is, number: u32, label: Label) {
        let code = match is {
            Is::Equal => 0x16,
            Is::NotEqual => 0x56,
            Is::Below => 0xa6,
        };
        self.jumps.push((self.code.len(), label));
        self.put(code, register, R0, 0, number as i32);
    }

    /// Goes to `label` if pointer `a` is above `b`.
    pub(crate) fn jump_if_above(&mut self, a: Reg, b: Reg, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.put(0x2d, a, b, 0, 0);
    }

    /// `to` = the map with this descriptor.
    pub(crate) fn map(&mut self, to: Reg, descriptor: i32) {
        const PSEUDO_MAP_FD: Reg = Reg(1);
        self.put(0x18, to, PSEUDO_MAP_FD, 0, descriptor);
        self.code.push(0);
    }

    /// Calls a function of the kernel.
    pub(crate) fn call(&mut self, function: i32) {
        self.put(0x85, R0, R0, 0, function);
    }

    /// Ends the program.
    pub(crate) fn exit(&mut self) {
        self.put(0x95, R0, R0, 0, 0);
    }

    /// The instructions, each of eight bytes as the kernel has them.
    ///
    /// # Panics
    /// If a label has no place, or is out of a jump's reach.
    pub(crate) fn finish(mut self) -> Vec<u64> {
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
