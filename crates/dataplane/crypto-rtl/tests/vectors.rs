//! Published vectors and random jobs through the cores, as for every backend; the random ones with streams that stall.
#![cfg(rtl)]

use std::num::NonZeroU64;

use forebay_crypto::Processor;
use forebay_crypto_rtl::{Config, Core, Rtl};
use forebay_crypto_vectors::{check_all, check_random};

/// Random jobs of each core; `JOBS=10000` for more.
fn jobs() -> usize {
    std::env::var("JOBS").ok().and_then(|text| text.parse().ok()).unwrap_or(600)
}

fn processor(core: Core, stalls: u32) -> Box<dyn Processor> {
    let clock_hz = NonZeroU64::new(100_000_000).expect("not zero");
    let mut rtl = Rtl::new(Config { name: "rtl".to_owned(), core, clock_hz, record: None });
    rtl.stall(stalls, 1);
    Box::new(rtl)
}

#[test]
fn published_vectors_come_out_as_published() {
    for &(name, core) in Core::ALL {
        let report = check_all(&mut || processor(core, 0));
        println!("{name}\n{report}");
        assert!(report.run("") > 50, "{name}:\n{report}");
    }
}

#[test]
fn random_jobs_come_out_as_the_second_opinion_has_them() {
    for &(name, core) in Core::ALL {
        let report = check_random(&mut || processor(core, 30), 1, jobs());
        println!("{name}\n{report}");
        for kind in ["seals", "opens", "flipped bits", "bad jobs", "unknown sessions"] {
            assert!(report.run(kind) > 20, "{name}\n{report}");
        }
    }
}
