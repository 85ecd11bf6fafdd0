//! What the reader of SAs files says about each thing that can be wrong.

mod common;

use common::*;
use forebay_sas::{Problem, load, parse};

#[test]
fn the_sample_is_right() {
    let file = outcome(sample().as_bytes(), &[]).unwrap();
    assert_eq!(file.entries.len(), 2);
    assert!(file.warnings.is_empty());
}

#[test]
fn unknown_key() {
    let text = rejected("direction = \"out\"", "directoin = \"out\"");
    assert_says(&text, &["unknown key `directoin`", "SAS.toml:3:1", "help: did you mean `direction`?"]);
    let text = rejected("[[sa]]", "version = 1\n[[sa]]");
    assert_says(&text, &["unknown key `version`", "SAS.toml:1:1"]);
    let text = rejected("[[sa]]", "spi = 1\n[[sa]]");
    assert_says(&text, &["unknown key `spi`", "SAS.toml:1:1", "put `[[sa]]` on a line above it"]);
}

#[test]
fn toml_syntax() {
    let text = rejected("\"out\"", "\"out");
    assert_says(&text, &["not TOML: invalid basic string", "SAS.toml:3:", "help: start each SA with"]);
    let text = rejected("spi = 0x1001", "spi 0x1001\nname");
    assert_says(&text, &["has 2 errors", "SAS.toml:4:", "SAS.toml:5:"]);
    let text = rejected("spi = 0x1001", "spi = 0x1001\nspi = 0x1001");
    assert_says(&text, &["not TOML: duplicate key", "SAS.toml:5:1"]);
    // A key without quotes, and one without its closing quote.
    rejected(&format!("\"{KEY}\""), KEY);
    rejected(&format!("\"{KEY}\""), &format!("\"{KEY}"));
}

#[test]
fn no_sas() {
    for text in ["", "# nothing\n", "sa = []\n"] {
        assert_says(
            &outcome(text.as_bytes(), &[]).unwrap_err(),
            &["no security associations, expected at least one `[[sa]]`", "SAS.toml", "help: start an SA"],
        );
    }
    for text in ["[sa]\nspi = 1\n", "sa = 5\n", "sa = [5]\n"] {
        let text = outcome(text.as_bytes(), &[]).unwrap_err();
        assert_says(&text, &["expected `[[sa]]` tables", "SAS.toml:1:", "double brackets"]);
    }
}

#[test]
fn files_that_are_no_text() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("nowhere.toml");
    let text = rendered(&load(&missing).unwrap_err());
    assert_says(&text, &["nowhere.toml", "cannot read", "No such file", "help: check the path"]);
    let text = rendered(&load(directory.path()).unwrap_err());
    assert_says(&text, &[directory.path().to_str().unwrap(), "cannot read", "Is a directory"]);
    let text = outcome(b"[[sa]]\nname = \"\xff\"\n", &[]).unwrap_err();
    assert_says(&text, &["SAS.toml", "line 2 is not UTF-8"]);
}

#[test]
fn missing_keys() {
    for (line, key) in [
        ("direction = \"out\"\n", "direction"),
        ("spi = 0x1001\n", "spi"),
        ("proposal = \"aes128gcm16\"\n", "proposal"),
        (&*format!("key = \"{KEY}\"\n"), "key"),
        ("local = \"192.0.2.1\"\n", "local"),
        ("remote = \"192.0.2.2\"\n", "remote"),
    ] {
        let text = rejected(line, "");
        let missing = format!("SA `east-out` has no `{key}`");
        assert_says(
            &text,
            &[
                &missing,
                "SAS.toml:1:1",
                "this SA",
                &format!("help: {key} = \"").replace("spi = \"", "spi = 0x"),
            ],
        );
    }
    let text = rejected("direction = \"in\"\n", "");
    assert_says(&text, &["SA `sa-2` has no `direction`", "SAS.toml:9:1"]);
}

#[test]
fn wrong_types() {
    for (from, to, place, key, expected) in [
        ("name = \"east-out\"", "name = 5", "2:8", "name", "expected a string in quotes"),
        ("direction = \"out\"", "direction = true", "3:13", "direction", "expected a string in quotes"),
        ("spi = 0x1001", "spi = 1.5", "4:7", "spi", "expected a number"),
        ("esn = true", "esn = \"yes\"", "19:7", "esn", "expected `true` or `false`"),
        ("allow_weak = true", "allow_weak = 1", "22:14", "allow_weak", "expected `true` or `false`"),
        ("replay_window = 0", "replay_window = []", "20:17", "replay_window", "expected a number"),
        (
            "remote_ts = [\"10.2.0.7\"]",
            "remote_ts = \"10.2.0.7\"",
            "24:13",
            "remote_ts",
            "selectors in brackets",
        ),
        ("[\"10.2.0.7\"]", "[\"10.2.0.7\", 7]", "24:26", "remote_ts", "expected a selector in quotes"),
        (&*format!("\"{KEY}\""), "112233", "6:7", "key", "expected a string in quotes"),
    ] {
        let text = rejected(from, to);
        let wrong = format!("`{key}` is of the wrong type");
        assert_says(&text, &[&wrong, &format!("SAS.toml:{place}"), expected, "help: "]);
    }
}

#[test]
fn unknown_words() {
    for (from, to, what, place, help) in [
        (
            "\"out\"",
            "\"outbound\"",
            "unknown direction `outbound`",
            "3:13",
            "`out` or `in`; did you mean `out`?",
        ),
        ("\"esp\"", "\"esq\"", "unknown protocol `esq`", "12:12", "`esp` or `ah`; did you mean `esp`?"),
        ("\"transport\"", "\"trans\"", "unknown mode `trans`", "13:8", "did you mean `transport`?"),
        ("\"udp\"", "\"UDP\"", "unknown encapsulation `UDP`", "21:17", "`none` or `udp`"),
        (
            "aes128gcm16",
            "aes128gmc16",
            "unknown proposal `aes128gmc16`",
            "5:12",
            "did you mean `aes128gcm16`?",
        ),
    ] {
        assert_says(&rejected(from, to), &[what, &format!("SAS.toml:{place}"), help]);
    }
}

#[test]
fn what_ah_cannot_have() {
    let text = rejected("\"esp\"", "\"ah\"");
    assert_says(
        &text,
        &[
            "AH does not encrypt, but aes128-sha256 does",
            "SAS.toml:14:12",
            "expected an integrity algorithm alone",
            "help: proposal = \"sha256\"",
        ],
    );
    assert_says(&text, &["AH cannot be encapsulated in UDP", "SAS.toml:21:17", "or use ESP"]);
    let text = rejected(
        "\"esp\"\nmode = \"transport\"\nproposal = \"aes128-sha256\"",
        "\"ah\"\nproposal = \"sha256\"",
    );
    assert!(!text.contains("AH does not encrypt"), "{text}");
}

/// An SA of `proposal`, the same key bytes over and over, and `more` lines; on line 4 the proposal.
fn sa(proposal: &str, key: usize, auth_key: usize, more: &str) -> String {
    let line = |name: &str, len: usize| match len {
        0 => String::new(),
        len => format!("{name} = \"{}\"\n", "5c".repeat(len)),
    };
    format!(
        "[[sa]]\ndirection = \"in\"\nspi = 7\nproposal = \"{proposal}\"\nlocal = \"::1\"\nremote = \"::2\"\n{}{}{more}",
        line("key", key),
        line("auth_key", auth_key)
    )
}

#[test]
fn weak_suites_have_to_be_allowed() {
    for (proposal, key, auth_key, why) in [
        ("aes128-md5", 16, 16, "MD5 is broken (RFC 8221 6)"),
        ("md5", 0, 16, "MD5 is broken (RFC 8221 6)"),
        ("aes256ctr", 36, 0, "forged packets would not be detected (RFC 8221 4)"),
        ("3des", 24, 0, "forged packets would not be detected (RFC 8221 4)"),
    ] {
        let text = outcome(sa(proposal, key, auth_key, "").as_bytes(), &[]).unwrap_err();
        assert_says(
            &text,
            &["is weak: RFC 8221 says MUST NOT", "SAS.toml:4:12", why, "help: ", "set `allow_weak = true`"],
        );
        outcome(sa(proposal, key, auth_key, "allow_weak = true\n").as_bytes(), &[]).unwrap();
        let text = outcome(sa(proposal, key, auth_key, "allow_weak = false\n").as_bytes(), &[]).unwrap_err();
        assert_says(&text, &["is weak"]);
    }
    for (proposal, key, auth_key) in
        [("aes192ccm8", 27, 0), ("aes256gmac", 36, 0), ("3des-aesxcbc", 24, 16), ("aescmac", 0, 16)]
    {
        outcome(sa(proposal, key, auth_key, "").as_bytes(), &[]).unwrap();
    }
}

#[test]
fn keys_that_a_suite_has_no_use_for() {
    let text = outcome(sa("null-sha256", 16, 32, "").as_bytes(), &[]).unwrap_err();
    assert_says(
        &text,
        &[
            "null-sha256 has no use for `key`",
            "SAS.toml:7:7",
            "leave out `key`: null-sha256 enciphers nothing",
        ],
    );
    let text = outcome(sa("aes128", 16, 32, "allow_weak = true\n").as_bytes(), &[]).unwrap_err();
    assert_says(
        &text,
        &["aes128 has no use for `auth_key`", "SAS.toml:8:12", "aes128 authenticates nothing"],
    );
    let text = outcome(sa("aes128ccm16", 20, 0, "").as_bytes(), &[]).unwrap_err();
    assert_says(&text, &["takes 19 = 16 of key + 3 of salt", "(RFC 4309 7.1)"]);
}

#[test]
fn keys_of_wrong_length() {
    let text = rejected(KEY, &KEY[..32]);
    assert_says(
        &text,
        &[
            "`key` has 16 bytes, aes128gcm16 takes 20 = 16 of key + 4 of salt",
            "SAS.toml:6:7",
            "expected 40 hex digits",
            "which belongs to the key (RFC 4106 8.1)",
            "it is the salt that seems to be missing",
        ],
    );
    let text = rejected("aes128gcm16", "aes256gcm16");
    assert_says(&text, &["`key` has 20 bytes, aes256gcm16 takes 36", "20 bytes would fit aes128gcm16"]);
    let text = rejected(AUTH_KEY, &AUTH_KEY[..40]);
    assert_says(
        &text,
        &[
            "`auth_key` has 20 bytes, aes128-sha256 takes 32",
            "SAS.toml:16:12",
            "20 bytes would fit aes128-sha1",
        ],
    );
    assert_says(&rejected(KEY, ""), &["`key` has 0 bytes"]);
}

#[test]
fn keys_that_are_no_hex() {
    let text = rejected(KEY, &format!("0x{KEY}"));
    assert_says(
        &text,
        &["`key` is not hex: character 2 is not a hex digit", "SAS.toml:6:7", "no 0x in front"],
    );
    let text = rejected(&AUTH_KEY[10..], &format!(" {}", &AUTH_KEY[10..]));
    assert_says(&text, &["`auth_key` is not hex: character 11", "SAS.toml:16:12"]);
    let text = rejected(KEY, &KEY[1..]);
    assert_says(&text, &["`key` has 39 hex digits, an odd number", "SAS.toml:6:7", "two digits make a byte"]);
}

#[test]
fn keys_too_many_and_too_few() {
    let text = rejected("local =", "key_file = \"k\"\nlocal =");
    assert_says(&text, &["both `key` and `key_file` are given", "SAS.toml:7:12", "help: leave out `key` or"]);
    let text = rejected("local =", &format!("auth_key = \"{AUTH_KEY}\"\nlocal ="));
    assert_says(
        &text,
        &["aes128gcm16 has no use for `auth_key`", "SAS.toml:7:12", "help: leave out `auth_key`"],
    );
    let text = rejected(&format!("auth_key = \"{AUTH_KEY}\"\n"), "");
    assert_says(
        &text,
        &[
            "SA `sa-2` has no `auth_key`, aes128-sha256 needs one",
            "SAS.toml:14:12",
            "with 64 hex digits (32 bytes)",
        ],
    );
}

#[test]
fn spis() {
    for (spi, found) in [
        ("0", "0 is not an SPI"),
        ("0x1_0000_0000", "is not an SPI"),
        ("-5", "-5 is not an SPI"),
        ("\"0x\"", "\"0x\" is not an SPI"),
        ("\"east\"", "\"east\" is not an SPI"),
        ("99999999999999999999999", "is not an SPI"),
    ] {
        let text = rejected("0x1001", spi);
        assert_says(&text, &[found, "SAS.toml:4:7", "expected 1 to 4294967295", "(RFC 4303 2.1)"]);
    }
    for spi in ["0xffff_ffff", "\"4097\"", "\"0x1001\"", "1"] {
        outcome(sample().replace("0x1001", spi).as_bytes(), &[]).unwrap();
    }
}

#[test]
fn addresses_and_prefixes() {
    let text = rejected("192.0.2.1", "192.0.2.1/24");
    assert_says(
        &text,
        &["`local` is not an IP address: `192.0.2.1/24`", "SAS.toml:7:9", "without a prefix length"],
    );
    let text = rejected("192.0.2.2", "gateway.example");
    assert_says(&text, &["`remote` is not an IP address", "SAS.toml:8:10", "host names are not resolved"]);
    let text = rejected("192.0.2.2", "2001:db8::2");
    assert_says(&text, &["local 192.0.2.1 and remote 2001:db8::2 are of different", "SAS.toml:7:9", "IPv6"]);
    let text = rejected("10.1.0.0/16", "10.1.0.0/33");
    assert_says(
        &text,
        &["not a selector in `local_ts`: `10.1.0.0/33`", "SAS.toml:23:13", "like 10.1.0.0/16"],
    );
    let text = rejected("10.1.0.0/16", "10.1.0.0/16[tpc/80]");
    assert_says(
        &text,
        &["not a selector in `local_ts`", "SAS.toml:23:13", "`tpc` is wrong in it", "ipv6-icmp"],
    );
    let text = rejected("10.1.0.0/16", "10.1.2.3/16");
    assert_says(&text, &["prefix 10.1.2.3/16 in `local_ts`", "SAS.toml:23:13", "the network is 10.1.0.0/16"]);
}

#[test]
fn replay_windows() {
    for window in ["65537", "-1", "99999999999999999999"] {
        let text = rejected("replay_window = 0", &format!("replay_window = {window}"));
        assert_says(
            &text,
            &["is not a replay window", "SAS.toml:20:17", "expected 0 to 65536", "at most 65536"],
        );
    }
    outcome(sample().replace("replay_window = 0", "replay_window = 65536").as_bytes(), &[]).unwrap();
}

#[test]
fn overlapping_spis() {
    let one = &sample()[..sample().find("[[sa]]\ndirection").unwrap()];
    let other = one.replace("east-out", "second").replace("f1e2", "f1e3");
    let text = outcome(format!("{one}{other}").as_bytes(), &[]).unwrap_err();
    assert_says(
        &text,
        &[
            "outbound SPI 0x00001001 to 192.0.2.2 already belongs to SA `east-out`",
            "SAS.toml:12:7",
            "4 │ spi = 0x1001",
            "12 │ spi = 0x1001",
            "first used here",
            "used again here",
        ],
    );
    let to_another = other.replace("192.0.2.2", "192.0.2.3");
    outcome(format!("{one}{to_another}").as_bytes(), &[]).unwrap();
    // Inbound, the peer does not matter.
    let both = format!("{one}{to_another}").replace("\"out\"", "\"in\"");
    let text = outcome(both.as_bytes(), &[]).unwrap_err();
    assert_says(&text, &["inbound SPI 0x00001001 already belongs to SA `east-out`", "SAS.toml:12:7"]);
    // The other direction has SPIs of its own.
    outcome(format!("{one}{}", other.replace("\"out\"", "\"in\"")).as_bytes(), &[]).unwrap();
}

/// The same cipher key in two places lets nonces repeat: with another salt, suite or direction too.
#[test]
fn shared_cipher_keys() {
    let (one, two) = (named("one", "out", 1, ""), named("two", "in", 2, ""));
    let key = |sa: &str| sa.lines().find(|line| line.starts_with("key")).unwrap().to_owned();
    outcome(format!("{one}{two}").as_bytes(), &[]).unwrap();
    let opposite = two.replace(&key(&two), &key(&one));
    let text = outcome(format!("{one}{opposite}").as_bytes(), &[]).unwrap_err();
    assert_says(
        &text,
        &[
            "`key` of SA `two` is the cipher key of SA `one` in the other direction, expected a key of its own",
            "SAS.toml:15:7",
            "first used here",
            "the same cipher key again",
            "help: under a shared key IVs repeat",
            "give each SA and each direction its own key",
        ],
    );
    let other_salt = key(&one).replace(&KEY[32..], "01020304");
    let ctr = format!("{other_salt}\nauth_key = \"{AUTH_KEY}\"");
    let same_way = two.replace(&key(&two), &ctr).replace("gcm16", "ctr-sha256").replace("\"in\"", "\"out\"");
    let text = outcome(format!("{one}{same_way}").as_bytes(), &[]).unwrap_err();
    assert_says(&text, &["`key` of SA `two` is the cipher key of SA `one`, expected"]);
    // From files too, which are told apart by what is in them.
    let from_file = |sa: &str| sa.replace(&key(sa), &format!("key_file = \"{}.key\"", &sa[15..18]));
    let both = format!("{}{}", from_file(&one), from_file(&two));
    let files: [(&str, &[u8]); 2] = [("one.key", KEY.as_bytes()), ("two.key", KEY.as_bytes())];
    let text = outcome(both.as_bytes(), &files).unwrap_err();
    assert_says(&text, &["`key_file` of SA `two` is the cipher key of SA `one`", "SAS.toml:15:12"]);
    // SAs without a cipher share nothing that nonces are for.
    let null = |sa: &str| {
        sa.replace(&key(sa), &format!("auth_key = \"{AUTH_KEY}\"")).replace("aes128gcm16", "null-sha256")
    };
    outcome(format!("{}{}", null(&one), null(&two)).as_bytes(), &[]).unwrap();
}

#[test]
fn key_files_that_do_not_do() {
    let with_file = sample().replace(&format!("key = \"{KEY}\""), "key_file = \"east.key\"");
    let with = |content: &[u8]| outcome(with_file.as_bytes(), &[("east.key", content)]);
    let text = outcome(with_file.as_bytes(), &[]).unwrap_err();
    assert_says(
        &text,
        &["`key_file`: cannot read east.key", "No such file", "SAS.toml:6:12", "a relative path starts"],
    );
    let text = with(b"\x80\x81").unwrap_err();
    assert_says(
        &text,
        &["`key_file` east.key is not hex: character 1", "SAS.toml:6:12", "not the raw bytes"],
    );
    let text = with(&KEY.as_bytes()[1..]).unwrap_err();
    assert_says(&text, &["`key_file` east.key has 39 hex digits", "SAS.toml:6:12"]);
    let text = with(&KEY.as_bytes()[8..]).unwrap_err();
    assert_says(&text, &["`key_file` has 16 bytes, aes128gcm16 takes 20", "SAS.toml:6:12"]);
    assert_says(&with(&[b'0'; 5000]).unwrap_err(), &["cannot read", "too long for a key"]);
    let errors = parse(&with_file, "text").unwrap_err();
    assert!(matches!(errors.findings()[0].problem(), Problem::KeyFileUnreadable { .. }));
    // A key where a path belongs, or any other word.
    rejected("key = ", "key_file = ");
    rejected("aes128gcm16", KEY);
    rejected("\"192.0.2.1\"", &format!("\"{KEY}\""));
    rejected("\"10.1.0.0/16\"", &format!("\"{KEY}\""));
    rejected("direction = \"out\"", &format!("{KEY} = \"out\""));
    rejected("spi = 0x1001", &format!("spi = 0x{KEY}"));
}

#[test]
fn all_errors_come_at_once_in_the_order_of_the_file() {
    let text = sample()
        .replace("\"out\"", "\"up\"")
        .replace("0x1001", "0")
        .replace("esn = true", "esm = true")
        .replace("192.0.2.1", "here");
    let text = outcome(text.as_bytes(), &[]).unwrap_err();
    assert_says(&text, &["SAS.toml has 4 errors"]);
    let places =
        ["SAS.toml:3:13", "SAS.toml:4:7", "SAS.toml:7:9", "SAS.toml:19:1"].map(|place| text.find(place));
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}\n{text}");

    let many = "[[sa]]\nspi = 0\n".repeat(100);
    let errors = parse(&many, "SAS.toml").unwrap_err();
    assert_eq!(errors.findings().len(), 32);
    assert_eq!(errors.to_string(), "SAS.toml has 600 errors, the first 32 of which are");
    assert_eq!(errors.findings()[31].line(), Some(11));
}

#[test]
fn names_are_visible_and_own_addresses_are_those_of_a_host() {
    for name in ["", " ", "a\\nb", "a\\u0007"] {
        let text = rejected("name = \"east-out\"", &format!("name = \"{name}\""));
        assert_says(&text, &["the name is empty or contains a control character", "SAS.toml:2:8"]);
    }
    for (address, is) in [
        ("0.0.0.0", "no address"),
        ("224.0.0.5", "a multicast address"),
        ("255.255.255.255", "the broadcast address"),
    ] {
        let text = rejected("local = \"192.0.2.1\"", &format!("local = \"{address}\""));
        assert_says(&text, &[&format!("`local` is {address}, {is}"), "expected a unicast address"]);
    }
    let text = rejected("remote = \"2001:db8::2\"", "remote = \"::ffff:192.0.2.2\"");
    assert_says(&text, &["`remote` is ::ffff:192.0.2.2, an IPv4 address in the notation of IPv6"]);
}

#[test]
fn hints_on_selectors_are_whole() {
    let text = rejected("\"10.2.0.7\"", "\"FILL IN\"");
    assert_says(&text, &["help: write a selector such as 10.1.0.0/16"]);
    let text = rejected("\"10.2.0.7\"", "\"10.2.0.7[tpc/80]\"");
    assert_says(&text, &["`tpc` is wrong in it; write a selector such as"]);
}
