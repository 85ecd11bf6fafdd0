//! Outbound SAs whose selectors are the policies are asked in the order of the file, also behind a reload.

use std::path::Path;

use forebay_config::Config;

fn sa(name: &str, spi: u32, remote_ts: &str) -> String {
    format!(
        "[[sa]]\nname = \"{name}\"\ndirection = \"out\"\nspi = {spi}\nproposal = \"aes128gcm16\"\nkey = \"{}\"\n\
         local = \"192.0.2.1\"\nremote = \"192.0.2.2\"\nremote_ts = [\"{remote_ts}\"]\n",
        format!("{spi:04x}").repeat(10)
    )
}

fn file(sas: &[&str], policies: &str) -> Config {
    let text = format!("[[outside]]\nkind = \"raw\"\n{}{policies}", sas.concat());
    forebay_config::parse(&text, "g.toml", Path::new("")).unwrap()
}

/// The places in the old file of the SAs that stay.
fn kept(old: &Config, new: &Config) -> Vec<Option<usize>> {
    Config::diff(old, new).kept
}

#[test]
fn sas_behind_a_new_one_with_packets_in_common_are_added_anew() {
    let (narrow, other) = (sa("narrow", 0x1001, "10.2.0.0/16"), sa("other", 0x1002, "192.168.0.0/16"));
    let wide = sa("wide", 0x1003, "10.0.0.0/8");
    let again = narrow.replace("1001", "1009").replace("4097", "4105");
    let old = file(&[&narrow, &other, &wide], "");
    assert_eq!(kept(&old, &file(&[&narrow, &other, &wide], "")), [Some(0), Some(1), Some(2)]);
    // Behind the wide one the new one would have no packets.
    assert_eq!(kept(&old, &file(&[&again, &other, &wide], "")), [None, Some(1), None]);
    assert_eq!(kept(&old, &file(&[&other, &wide, &again], "")), [Some(1), Some(2), None]);
    // Another order in the file.
    assert_eq!(kept(&old, &file(&[&wide, &other, &narrow], "")), [Some(2), Some(1), None]);
    assert_eq!(kept(&old, &file(&[&other, &narrow, &wide], "")), [Some(1), Some(0), Some(2)]);
    // Policies have an order of their own, and without them that of the SAs is to be that of the file again.
    let policy = "[[policy]]\ndirection = \"out\"\naction = \"protect\"\nsa = \"wide\"\n";
    let with_policy = file(&[&again, &other, &wide], policy);
    assert_eq!(kept(&old, &with_policy), [None, Some(1), Some(2)]);
    assert_eq!(kept(&with_policy, &file(&[&again, &other, &wide], "")), [None, None, None]);
}
