//! Published vectors and random jobs, as for every backend, on DPDK's software devices.

use forebay_crypto::Processor;
use forebay_crypto_dpdk::{Config, Unavailable, look, open};
use forebay_crypto_vectors::{check_all, check_random};

/// DPDK's software devices; a machine may have the driver of some.
const DEVICES: [&str; 3] = ["crypto_aesni_mb0", "crypto_aesni_gcm0", "crypto_openssl0"];

fn devices() -> Vec<&'static str> {
    let has = |device: &&str| match open(&Config::new(device)) {
        Ok(_) => true,
        Err(why) => {
            println!("skipped: {device}: {why}");
            false
        }
    };
    DEVICES.into_iter().filter(has).collect()
}

/// On packets where they are, or on copies.
fn processor(device: &str, copies: bool) -> Box<dyn Processor> {
    open(&Config { copies, ..Config::new(device) }).expect("as a moment ago")
}

#[test]
fn published_vectors_come_out_as_published() {
    for device in devices() {
        for copies in [false, true] {
            let report = check_all(&mut || processor(device, copies));
            println!("{device}\n{report}");
            assert!(report.run("") > 100, "{device}:\n{report}");
        }
    }
}

#[test]
fn random_jobs_come_out_as_the_second_opinion_has_them() {
    for device in devices() {
        for copies in [false, true] {
            let report = check_random(&mut || processor(device, copies), 1, 5_000);
            println!("{device}\n{report}");
            for kind in ["seals", "opens", "flipped bits", "bad jobs", "unknown sessions"] {
                assert!(report.run(kind) > 100, "{device}\n{report}");
            }
        }
    }
}

#[test]
fn what_is_not_there_is_said() {
    match open(&Config::new("crypto_of_nobody0")).map(drop) {
        Err(Unavailable::NotBuilt) => return println!("skipped: built without DPDK"),
        Err(Unavailable::NoDriver { device, drivers }) => {
            assert_eq!(device, "crypto_of_nobody0");
            assert!(!drivers.contains(&"crypto_of_nobody".to_owned()));
        }
        other => panic!("{other:?}"),
    }
    let place = "ffff:ff:1f.7";
    assert_eq!(open(&Config::new(place)).err(), Some(Unavailable::NotOnBus { device: place.to_owned() }));
    assert_eq!(look(&Config::new(place)), Err(Unavailable::NotOnBus { device: place.to_owned() }));
}
