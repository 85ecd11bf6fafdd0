//! What instructions compute, as text: assignments, parted by `;` or line ends.
//!
//! ```text
//! let x = word[0] ^ s[1]          a name for a value
//! s[i] = rol32(x, 7)              a custom register, cut to its bits
//! rd = sbox[byte(x, 2)]           the result
//! ```
//!
//! Values have 64 bits and no sign. Operators bind as in C: `?:`, `|`, `^`, `&`, `== !=`, `< <= > >=`, `<< >>`,
//! `+ -`, `*`, and before a value `~ -`. Names: `rs1`, `rs2`, `i` (funct7), `word[n]`, registers, tables, and
//! what `let` has named. An index beyond the end of an array or table begins again at its start. Functions:
//! `rol32(x, n)`, `ror32(x, n)`, `byte(x, n)`, `swap32(x)`, `low32(x)`.
//!
//! A text is checked and made into a list of operations once; executing it runs through the list.

use forebay_diagnostics::{Located, Place, Problem};
use forebay_riscv::{CustomCall, Semantics};

/// Most operations of an instruction.
const OPERATIONS_MAX: usize = 256;

/// A custom register, or an array of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Register {
    /// Its name.
    pub name: String,
    /// The number of the first.
    pub first: usize,
    /// How many.
    pub count: usize,
    /// Bits.
    pub bits: u32,
}

/// A table of constants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Its values.
    pub values: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Constant(u64),
    Rs1,
    Rs2,
    Selector,
    /// Of array (first, count).
    Word(u16),
    Load(u16, u16),
    /// Sets register (first, count) `a` to `b`, in so many bits.
    Store(u16, u16, u8),
    SetRd,
    Table(u16),
    Or,
    Xor,
    And,
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Left,
    Right,
    Add,
    Subtract,
    Multiply,
    Not,
    Negate,
    /// `a` is the condition, `b` and the next operation's `a` the values.
    Choose(u16),
    RotateLeft,
    RotateRight,
    Byte,
    Swap,
    Low,
}

#[derive(Clone, Copy, Debug)]
struct Operation {
    kind: Kind,
    a: u16,
    b: u16,
}

/// A text that has been checked.
#[derive(Clone, Debug)]
pub struct Program {
    operations: Vec<Operation>,
    tables: Vec<Vec<u64>>,
}

impl Program {
    /// Checks a text and makes it ready. `words` is how many words the instruction loads.
    ///
    /// # Errors
    /// The first mistake.
    pub fn new(
        text: &str,
        registers: &[Register],
        tables: &[Table],
        words: u32,
    ) -> Result<Program, Located<Problem>> {
        let mut compiler = Compiler {
            text,
            tokens: tokens(text)?,
            at: 0,
            registers,
            tables,
            words,
            names: Vec::new(),
            operations: Vec::new(),
        };
        compiler.statements()?;
        let tables = tables.iter().map(|one| one.values.clone()).collect();
        Ok(Program { operations: compiler.operations, tables })
    }
}

impl Semantics for Program {
    fn execute(&self, call: &mut CustomCall<'_>) -> u32 {
        let mut values = [0_u64; OPERATIONS_MAX];
        let mut rd = 0;
        for (at, operation) in self.operations.iter().enumerate() {
            let [a, b] = [operation.a, operation.b].map(|one| values[usize::from(one) % OPERATIONS_MAX]);
            let place = |first: u16, count: u16| usize::from(first) + a as usize % usize::from(count.max(1));
            values[at % OPERATIONS_MAX] = match operation.kind {
                Kind::Constant(value) => value,
                Kind::Rs1 => call.rs1.into(),
                Kind::Rs2 => call.rs2.into(),
                Kind::Selector => call.selector.into(),
                Kind::Word(count) => call.words[a as usize % usize::from(count)].into(),
                Kind::Load(first, count) => call.registers[place(first, count)],
                Kind::Store(first, count, bits) => {
                    call.registers[place(first, count)] = b & (u64::MAX >> (64 - bits));
                    0
                }
                Kind::SetRd => {
                    rd = a as u32;
                    0
                }
                Kind::Table(table) => {
                    let table = &self.tables[usize::from(table)];
                    table[a as usize % table.len()]
                }
                Kind::Or => a | b,
                Kind::Xor => a ^ b,
                Kind::And => a & b,
                Kind::Equal => (a == b).into(),
                Kind::Unequal => (a != b).into(),
                Kind::Less => (a < b).into(),
                Kind::LessOrEqual => (a <= b).into(),
                Kind::Left => {
                    if b < 64 {
                        a << b
                    } else {
                        0
                    }
                }
                Kind::Right => {
                    if b < 64 {
                        a >> b
                    } else {
                        0
                    }
                }
                Kind::Add => a.wrapping_add(b),
                Kind::Subtract => a.wrapping_sub(b),
                Kind::Multiply => a.wrapping_mul(b),
                Kind::Not => !a,
                Kind::Negate => a.wrapping_neg(),
                Kind::Choose(otherwise) => {
                    if a != 0 {
                        b
                    } else {
                        values[usize::from(otherwise)]
                    }
                }
                Kind::RotateLeft => (a as u32).rotate_left(b as u32 & 31).into(),
                Kind::RotateRight => (a as u32).rotate_right(b as u32 & 31).into(),
                Kind::Byte => (a >> (8 * (b & 7))) & 0xff,
                Kind::Swap => (a as u32).swap_bytes().into(),
                Kind::Low => a & 0xffff_ffff,
            };
        }
        rd
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Name(String),
    Number(u64),
    Sign(&'static str),
    End,
}

type Span = std::ops::Range<usize>;

/// What is wrong with the text, and from which byte to which.
fn wrong(message: String, span: Span) -> Located<Problem> {
    let help = "rs1, rs2, i, word[n], registers and tables are values".to_owned();
    Located { problem: Problem::Conflict { message, help }, place: Place { source: 0, span } }
}

/// Longer ones first.
const SIGNS: [&str; 26] = [
    "<<", ">>", "==", "!=", "<=", ">=", "(", ")", "[", "]", "+", "-", "*", "&", "|", "^", "~", "<", ">", "?",
    ":", ",", "=", ";", "\n", "!",
];

fn tokens(text: &str) -> Result<Vec<(Token, Span)>, Located<Problem>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = if first.is_ascii_alphabetic() || first == '_' {
            let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            found.push((Token::Name(rest[..length].to_owned()), at..at + length));
            length
        } else if first.is_ascii_digit() {
            let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            let digits = rest[..length].replace('_', "");
            let number = match digits.strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16),
                None => digits.parse(),
            };
            let number = number.map_err(|_| {
                wrong(format!("`{}` is no number of 64 bits", &rest[..length]), at..at + length)
            })?;
            found.push((Token::Number(number), at..at + length));
            length
        } else if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            found.push((Token::Sign(sign), at..at + sign.len()));
            sign.len()
        } else if first == '#' {
            rest.find('\n').unwrap_or(rest.len())
        } else if first.is_whitespace() {
            first.len_utf8()
        } else {
            let at = at..at + first.len_utf8();
            return Err(wrong(format!("`{first}` means nothing here"), at));
        };
        at += length;
    }
    found.push((Token::End, text.len()..text.len()));
    Ok(found)
}

struct Compiler<'a> {
    text: &'a str,
    tokens: Vec<(Token, Span)>,
    at: usize,
    registers: &'a [Register],
    tables: &'a [Table],
    words: u32,
    /// What `let` has named.
    names: Vec<(String, u16)>,
    operations: Vec<Operation>,
}

/// Operators by how they bind, the loosest first.
const LEVELS: [&[(&str, Kind)]; 8] = [
    &[("|", Kind::Or)],
    &[("^", Kind::Xor)],
    &[("&", Kind::And)],
    &[("==", Kind::Equal), ("!=", Kind::Unequal)],
    // a > b is b < a: the operands are turned round where this is read.
    &[("<", Kind::Less), ("<=", Kind::LessOrEqual), (">", Kind::Less), (">=", Kind::LessOrEqual)],
    &[("<<", Kind::Left), (">>", Kind::Right)],
    &[("+", Kind::Add), ("-", Kind::Subtract)],
    &[("*", Kind::Multiply)],
];

const FUNCTIONS: [(&str, Kind, usize); 5] = [
    ("rol32", Kind::RotateLeft, 2),
    ("ror32", Kind::RotateRight, 2),
    ("byte", Kind::Byte, 2),
    ("swap32", Kind::Swap, 1),
    ("low32", Kind::Low, 1),
];

/// Parentheses within parentheses.
const DEPTH_MAX: usize = 64;

impl Compiler<'_> {
    fn fail<T>(&self, message: impl Into<String>, at: Span) -> Result<T, Located<Problem>> {
        Err(wrong(message.into(), at))
    }

    fn push(&mut self, kind: Kind, a: u16, b: u16) -> Result<u16, Located<Problem>> {
        if self.operations.len() == OPERATIONS_MAX {
            let message = format!("more than {OPERATIONS_MAX} operations: make it several instructions");
            return self.fail(message, 0..self.text.len());
        }
        self.operations.push(Operation { kind, a, b });
        Ok(self.operations.len() as u16 - 1)
    }

    fn next(&mut self) -> (Token, Span) {
        let token = self.tokens[self.at].clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    fn takes(&mut self, sign: &str) -> bool {
        let taken = matches!(&self.tokens[self.at].0, Token::Sign(found) if *found == sign);
        if taken {
            self.at += 1;
        }
        taken
    }

    fn needs(&mut self, sign: &str) -> Result<(), Located<Problem>> {
        if self.takes(sign) {
            return Ok(());
        }
        let at = self.tokens[self.at].1.clone();
        self.fail(format!("expected `{sign}`"), at)
    }

    fn statements(&mut self) -> Result<(), Located<Problem>> {
        loop {
            while self.takes(";") || self.takes("\n") {}
            if self.tokens[self.at].0 == Token::End {
                return Ok(());
            }
            self.statement()?;
            if !self.takes(";") && !self.takes("\n") && self.tokens[self.at].0 != Token::End {
                let at = self.tokens[self.at].1.clone();
                return self.fail("expected an operator, or `;`", at);
            }
        }
    }

    fn statement(&mut self) -> Result<(), Located<Problem>> {
        let (token, at) = self.next();
        let Token::Name(name) = token else {
            return self.fail("expected `rd = ...`, a register, or `let`", at);
        };
        if name == "let" {
            let (token, at) = self.next();
            let Token::Name(name) = token else { return self.fail("expected a name", at) };
            if self.is_known(&name) {
                return self.fail(format!("`{name}` is the name of something else"), at);
            }
            self.needs("=")?;
            let value = self.value(0)?;
            self.names.push((name, value));
            return Ok(());
        }
        if name == "rd" {
            self.needs("=")?;
            let value = self.value(0)?;
            return self.push(Kind::SetRd, value, 0).map(|_| ());
        }
        let Some(register) = self.registers.iter().find(|one| one.name == name).cloned() else {
            let known = self.registers.iter().map(|one| one.name.as_str()).chain(["rd"]);
            return self.unknown(&name, known, at);
        };
        let index = self.index(&register, at)?;
        self.needs("=")?;
        let value = self.value(0)?;
        let kind = Kind::Store(register.first as u16, register.count as u16, register.bits as u8);
        self.push(kind, index, value).map(|_| ())
    }

    fn is_known(&self, name: &str) -> bool {
        ["rd", "rs1", "rs2", "i", "word", "let"].contains(&name)
            || self.registers.iter().any(|one| one.name == name)
            || self.tables.iter().any(|one| one.name == name)
            || FUNCTIONS.iter().any(|(known, ..)| *known == name)
    }

    fn unknown<'a, T>(
        &self,
        name: &str,
        known: impl Iterator<Item = &'a str>,
        at: Span,
    ) -> Result<T, Located<Problem>> {
        match forebay_diagnostics::nearest(name, known) {
            Some(near) => self.fail(format!("`{name}` is not known; did you mean `{near}`?"), at),
            None => self.fail(format!("`{name}` is not known"), at),
        }
    }

    /// The index behind a register's name; zero for one that is no array.
    fn index(&mut self, register: &Register, at: Span) -> Result<u16, Located<Problem>> {
        if register.count == 1 {
            return self.push(Kind::Constant(0), 0, 0);
        }
        if !self.takes("[") {
            let message = format!("`{}` is an array: write `{}[0]`", register.name, register.name);
            return self.fail(message, at);
        }
        let index = self.value(0)?;
        self.needs("]")?;
        Ok(index)
    }

    /// A value, with `?:`.
    fn value(&mut self, depth: usize) -> Result<u16, Located<Problem>> {
        if depth > DEPTH_MAX {
            let at = self.tokens[self.at].1.clone();
            return self.fail("too many parentheses", at);
        }
        let condition = self.binary(0, depth)?;
        if !self.takes("?") {
            return Ok(condition);
        }
        let yes = self.value(depth + 1)?;
        self.needs(":")?;
        let no = self.value(depth + 1)?;
        self.push(Kind::Choose(no), condition, yes)
    }

    fn binary(&mut self, level: usize, depth: usize) -> Result<u16, Located<Problem>> {
        let Some(operators) = LEVELS.get(level) else { return self.unary(depth) };
        let mut left = self.binary(level + 1, depth)?;
        loop {
            let Some(&(sign, kind)) = operators
                .iter()
                .find(|&&(sign, _)| matches!(&self.tokens[self.at].0, Token::Sign(found) if *found == sign))
            else {
                return Ok(left);
            };
            self.at += 1;
            let right = self.binary(level + 1, depth)?;
            let (a, b) = if sign.starts_with('>') && sign != ">>" { (right, left) } else { (left, right) };
            left = self.push(kind, a, b)?;
        }
    }

    fn unary(&mut self, depth: usize) -> Result<u16, Located<Problem>> {
        if depth > DEPTH_MAX {
            let at = self.tokens[self.at].1.clone();
            return self.fail("too many signs", at);
        }
        for (sign, kind) in [("~", Kind::Not), ("-", Kind::Negate)] {
            if self.takes(sign) {
                let value = self.unary(depth + 1)?;
                return self.push(kind, value, 0);
            }
        }
        let (token, at) = self.next();
        match token {
            Token::Number(number) => self.push(Kind::Constant(number), 0, 0),
            Token::Sign("(") => {
                let value = self.value(depth + 1)?;
                self.needs(")")?;
                Ok(value)
            }
            Token::Name(name) => self.named(&name, at, depth),
            _ => self.fail("expected a value", at),
        }
    }

    fn named(&mut self, name: &str, at: Span, depth: usize) -> Result<u16, Located<Problem>> {
        match name {
            "rs1" => return self.push(Kind::Rs1, 0, 0),
            "rs2" => return self.push(Kind::Rs2, 0, 0),
            "i" => return self.push(Kind::Selector, 0, 0),
            "word" if self.words == 0 => {
                return self.fail("the instruction loads no words: write `words = 4`", at);
            }
            "word" => {
                self.needs("[")?;
                let index = self.value(depth + 1)?;
                self.needs("]")?;
                return self.push(Kind::Word(self.words as u16), index, 0);
            }
            _ => {}
        }
        if let Some((_, value)) = self.names.iter().rev().find(|(known, _)| known == name) {
            return Ok(*value);
        }
        if let Some(register) = self.registers.iter().find(|one| one.name == name).cloned() {
            let index = self.index(&register, at)?;
            return self.push(Kind::Load(register.first as u16, register.count as u16), index, 0);
        }
        if let Some(table) = self.tables.iter().position(|one| one.name == name) {
            self.needs("[")?;
            let index = self.value(depth + 1)?;
            self.needs("]")?;
            return self.push(Kind::Table(table as u16), index, 0);
        }
        if let Some(&(_, kind, count)) = FUNCTIONS.iter().find(|(known, ..)| *known == name) {
            self.needs("(")?;
            let a = self.value(depth + 1)?;
            let b = if count == 2 {
                self.needs(",")?;
                self.value(depth + 1)?
            } else {
                a
            };
            self.needs(")")?;
            return self.push(kind, a, b);
        }
        let known = ["rs1", "rs2", "i", "word"].into_iter();
        let known = known.chain(self.registers.iter().map(|one| one.name.as_str()));
        let known = known.chain(self.tables.iter().map(|one| one.name.as_str()));
        let names: Vec<String> = self.names.iter().map(|(name, _)| name.clone()).collect();
        let known = known.chain(names.iter().map(String::as_str)).chain(FUNCTIONS.map(|(name, ..)| name));
        self.unknown(name, known, at)
    }
}
