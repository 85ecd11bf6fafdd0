//! Which SAs have IVs reserved for them before they are used.

use forebay_sas::parse;
use forebay_worker::installed::takes_ivs;

#[test]
fn an_sa_that_seals_with_ivs_takes_them_and_no_other() {
    let gcm = format!("proposal = \"aes128gcm16\"\nkey = \"{}\"\n", "1a".repeat(20));
    let null = format!("proposal = \"null-sha256\"\nauth_key = \"{}\"\n", "2b".repeat(32));
    for (direction, suite, takes) in
        [("out", &gcm, true), ("in", &gcm, false), ("out", &null, false), ("in", &null, false)]
    {
        let text = format!(
            "[[sa]]\nname = \"east\"\ndirection = \"{direction}\"\nspi = 0x1001\nmode = \"tunnel\"\n{suite}\
             local = \"192.0.2.1\"\nremote = \"192.0.2.2\"\n"
        );
        let file = parse(&text, "sas.toml").unwrap_or_else(|errors| panic!("{:?}", errors.findings()));
        assert_eq!(takes_ivs(&file.entries[0]), takes, "{direction} {suite}");
    }
}
