//! Classic BPF: the few instructions that steering needs (linux/filter.h, linux/bpf_common.h).

use forebay_links_sys::option::Instruction;

/// Loads the word at `k`.
pub(crate) fn load_word(k: u32) -> Instruction {
    plain(0x20, k)
}

/// Loads the half-word at `k`.
pub(crate) fn load_half(k: u32) -> Instruction {
    plain(0x28, k)
}

/// Loads the byte at `k`.
pub(crate) fn load_byte(k: u32) -> Instruction {
    plain(0x30, k)
}

/// Loads the word at `k` from the index register.
pub(crate) fn load_word_indexed(k: u32) -> Instruction {
    plain(0x40, k)
}

/// Loads the half-word at `k` from the index register.
pub(crate) fn load_half_indexed(k: u32) -> Instruction {
    plain(0x48, k)
}

/// Puts the length of the IPv4 header at the begin into the index register.
pub(crate) fn index_behind_ipv4() -> Instruction {
    index_behind_ipv4_at(0)
}

/// Puts the length of the IPv4 header at `k` into the index register.
pub(crate) fn index_behind_ipv4_at(k: u32) -> Instruction {
    plain(0xb1, k)
}

/// Puts zero into the index register.
pub(crate) fn index_at_start() -> Instruction {
    plain(0x01, 0)
}

/// The remainder by `k`.
pub(crate) fn modulo(k: u32) -> Instruction {
    plain(0x94, k)
}

/// Steps over as many instructions as said if the value is `k`, or is not.
pub(crate) fn jump_if_equal(k: u32, jump_true: u8, jump_false: u8) -> Instruction {
    Instruction { code: 0x15, jump_true, jump_false, k }
}

/// Steps over as many instructions as said if the value is `k` at least, or is not.
pub(crate) fn jump_if_at_least(k: u32, jump_true: u8, jump_false: u8) -> Instruction {
    Instruction { code: 0x35, jump_true, jump_false, k }
}

/// Steps over as many instructions as said if the value has any bit of `k`, or has none.
pub(crate) fn jump_if_any(k: u32, jump_true: u8, jump_false: u8) -> Instruction {
    Instruction { code: 0x45, jump_true, jump_false, k }
}

/// Ends with `k`: of a filter, the bytes that are kept.
pub(crate) fn end_with(k: u32) -> Instruction {
    plain(0x06, k)
}

/// Ends with the value.
pub(crate) fn end_with_value() -> Instruction {
    plain(0x16, 0)
}

fn plain(code: u16, k: u32) -> Instruction {
    Instruction { code, jump_true: 0, jump_false: 0, k }
}
