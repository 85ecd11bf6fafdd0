//! IVs for the SAs of a file: what is left on disk.

use forebay_crypto::SaKeys;
use forebay_sas::parse;
use forebay_state::{IVS_PER_SA, IvStore};

const KEY: &str = "f1e2d3c4b5a697887766554433221100aabbccdd";

/// An outbound SA with IVs, and one without.
const WITH: &str = "[[sa]]\ndirection = \"out\"\nspi = 0x1001\nproposal = \"aes128gcm16\"\n\
                    key = \"f1e2d3c4b5a697887766554433221100aabbccdd\"\nlocal = \"192.0.2.1\"\nremote = \"192.0.2.2\"\n";
const WITHOUT: &str = "[[sa]]\ndirection = \"out\"\nspi = 7\nproposal = \"null-sha256\"\n\
                       auth_key = \"9f8e7d6c5b4a39281706f5e4d3c2b1a09f8e7d6c5b4a39281706f5e4d3c2b1a0\"\n\
                       local = \"::1\"\nremote = \"::2\"\n";

#[test]
fn an_outbound_sa_with_ivs_leaves_a_mark_that_does_not_tell_its_key() {
    let directory = tempfile::tempdir().unwrap();
    let store = IvStore::new(directory.path().join("state"));
    let reserve = |keys: Vec<&SaKeys>| store.ranges(keys, 1000, IVS_PER_SA);
    parse(WITHOUT, "SAS.toml").unwrap().into_sad(7, reserve).unwrap();
    assert!(!store.directory().exists());
    parse(&format!("{WITH}{WITHOUT}"), "SAS.toml").unwrap().into_sad(7, reserve).unwrap();
    // The marks, whose the directory is, and the lock.
    let names = store.directory().read_dir().unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(names.len(), 4, "{names:?}");
    for digits in KEY.as_bytes().windows(8) {
        let digits = std::str::from_utf8(digits).unwrap();
        assert!(
            names.iter().all(|name| !name.to_lowercase().contains(digits)),
            "{digits} of a key in {names:?}"
        );
    }
}
