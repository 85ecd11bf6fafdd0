//! Custom instructions: the built-in ones against the file that says the same, published values, mistakes.

use forebay_embedded::instructions::{IPSEC_FILE, Instructions, ipsec};
use forebay_riscv::{Custom, CustomCall};
use proptest::prelude::*;

fn call(custom: &Custom, name: &str, selector: u32, rs: [u32; 2], words: &[u32], state: &mut [u64]) -> u32 {
    let one = custom.definitions().iter().find(|one| one.name == name).unwrap();
    one.semantics.execute(&mut CustomCall { rs1: rs[0], rs2: rs[1], selector, words, registers: state })
}

proptest! {
    #[test]
    fn the_file_says_what_the_built_in_ones_do(
        state in prop::array::uniform9(any::<u32>()),
        acc in any::<u64>(),
        rs in any::<[u32; 2]>(),
        words in any::<[u32; 4]>(),
        selector in 0_u32..64,
    ) {
        let (rust, file) = (ipsec(), Instructions::parse(IPSEC_FILE, "ipsec.toml").unwrap());
        prop_assert_eq!(rust.custom.registers(), file.custom.registers());
        for (one, other) in rust.custom.definitions().iter().zip(file.custom.definitions()) {
            let encoding = |d: &forebay_riscv::Definition| {
                (d.name.clone(), d.opcode, d.funct3, d.funct7, d.latency, d.words)
            };
            prop_assert_eq!(encoding(one), encoding(other));
            let selector = one.funct7.0 + selector % (one.funct7.1 - one.funct7.0 + 1);
            let mut states = [0; 2].map(|_: i32| state.map(u64::from));
            let results: Vec<u32> = [&rust, &file].into_iter().zip(&mut states).map(|(set, state)| {
                // A sum that no packet makes: four billion halves.
                state[0] = acc >> 8;
                let words = &words[..one.words as usize];
                call(&set.custom, &one.name, selector, rs, words, state)
            }).collect();
            prop_assert_eq!(results[0], results[1], "{}", one.name);
            prop_assert_eq!(states[0], states[1], "{}", one.name);
        }
    }
}

/// FIPS 197 appendix B: round 1 turns the state after the first AddRoundKey into that before round 2.
#[test]
fn a_round_of_aes_is_that_of_fips_197() {
    let column = |hex: [u8; 4]| u32::from_le_bytes(hex);
    let start = [
        [0x19, 0x3d, 0xe3, 0xbe],
        [0xa0, 0xf4, 0xe2, 0x2b],
        [0x9a, 0xc6, 0x8d, 0x2a],
        [0xe9, 0xf8, 0x48, 0x08],
    ];
    let key = [
        [0xa0, 0xfa, 0xfe, 0x17],
        [0x88, 0x54, 0x2c, 0xb1],
        [0x23, 0xa3, 0x39, 0x39],
        [0x2a, 0x6c, 0x76, 0x05],
    ];
    let end = [
        [0xa4, 0x9c, 0x7f, 0xf2],
        [0x68, 0x9f, 0x35, 0x2b],
        [0x6b, 0x5b, 0xea, 0x43],
        [0x02, 0x6a, 0x50, 0x49],
    ];
    let mut state = [0; 9];
    (0..4).for_each(|at| state[1 + at] = column(start[at]).into());
    call(&ipsec().custom, "enc_round", 0, [0; 2], &key.map(column), &mut state);
    assert_eq!(&state[1..5], end.map(|one| u64::from(column(one))));
}

/// RFC 1321 appendix A.5: MD5 of "abc" by 64 steps.
#[test]
fn md5_of_abc_is_that_of_rfc_1321() {
    let custom = ipsec().custom;
    let mut block = [0_u32; 16];
    (block[0], block[14]) = (0x8063_6261, 24);
    let start = [0x6745_2301_u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    let mut state = [0; 9];
    (0..4).for_each(|at| _ = call(&custom, "md5_put", at, [start[at as usize], 0], &[], &mut state));
    for step in 0..64_u32 {
        let word = match step / 16 {
            0 => step,
            1 => 5 * step + 1,
            2 => 3 * step + 5,
            _ => 7 * step,
        } % 16;
        let constant = ((f64::from(step) + 1.0).sin().abs() * 4_294_967_296.0) as u32;
        call(&custom, "md5_iteration", step, [block[word as usize], constant], &[], &mut state);
    }
    let digest: Vec<u8> = (0..4)
        .flat_map(|at| {
            let word = call(&custom, "md5_get", at, [0; 2], &[], &mut state);
            word.wrapping_add(start[at as usize]).to_le_bytes()
        })
        .collect();
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, "900150983cd24fb0d6963f7d28e17f72");
}

/// RFC 1071 3: the sum of 0001 f203 f4f5 f6f7 is ddf2.
#[test]
fn the_sum_is_that_of_rfc_1071() {
    let mut state = [0; 9];
    let custom = ipsec().custom;
    call(&custom, "add64", 0, [0xf203_0001, 0xf6f7_f4f5], &[], &mut state);
    assert_eq!(call(&custom, "fold64", 1, [0; 2], &[], &mut state), 0xddf2);
    assert_eq!(state[0], 0);
}

fn errors(text: &str) -> String {
    let errors = Instructions::parse(text, "mine.toml").unwrap_err();
    let lines: Vec<String> = errors
        .findings()
        .iter()
        .map(|one| {
            format!(
                "{}:{}: {} ({})",
                one.file(),
                one.line().unwrap_or(0),
                one.problem(),
                one.problem().help()
            )
        })
        .collect();
    lines.join("\n")
}

#[test]
fn mistakes_have_their_place_and_a_hint() {
    let one = |name: &str, funct7: &str, semantics: &str| {
        format!(
            "[[instruction]]\nname = \"{name}\"\nopcode = \"custom-0\"\nfunct3 = 0\nfunct7 = {funct7}\nsemantics = \"{semantics}\"\n"
        )
    };
    let clash = one("first", "[0, 7]", "rd = rs1") + &one("second", "7", "rd = rs2");
    let text = errors(&clash);
    assert!(
        text.contains("mine.toml:8: `second` has the encoding of `first`") && text.contains("funct7"),
        "{text}"
    );
    let text = errors(&(one("same", "0", "rd = rs1") + &one("same", "1", "rd = rs2")));
    assert!(text.contains("mine.toml:8: there are two instructions `same` (rename one)"), "{text}");
    let table = "[[table]]\nname = \"t\"\nvalues = [1]\n";
    let text = errors(&(table.repeat(2) + &one("a", "0", "rd = t[0]")));
    assert!(text.contains("mine.toml:5: there are two tables `t`"), "{text}");
    let text = errors(&(table.to_owned() + "made = \"aes-sbox\"\n" + &one("a", "0", "rd = t[0]")));
    assert!(text.contains("mine.toml:3: `values` has no effect beside `made`"), "{text}");
    let text = errors(&one("a", "0", "rd = sbx[1]"));
    assert!(text.contains("mine.toml:6") && text.contains("`sbx` is not known"), "{text}");
    let text = errors(&one("a", "0", "rd = word[0]"));
    assert!(text.contains("words = 4"), "{text}");
    let text = errors(&one("a", "200", "rd = 1"));
    assert!(text.contains("0 to 127"), "{text}");
    let text =
        errors("[[instruction]]\nname = \"a\"\nopcode = \"custom-9\"\nfunct3 = 0\nsemantics = \"rd = 1\"\n");
    assert!(text.contains("mine.toml:3") && text.contains("custom-3"), "{text}");
    for wrong in
        ["rd = ", "rd = (1", "rd = 1 2", "1 = rd", "let rs1 = 2", "rd = rol32(1)", "rd = 1 ? 2", "rd = @"]
    {
        assert!(!errors(&one("a", "0", wrong)).is_empty());
    }
    let deep = format!("rd = {}1{}", "(".repeat(500), ")".repeat(500));
    assert!(errors(&one("a", "0", &deep)).contains("too many"));
    let signs = format!("rd = {}1", "~".repeat(5_000));
    assert!(errors(&one("a", "0", &signs)).contains("too many"));
}
