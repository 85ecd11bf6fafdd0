//! Published vectors and random jobs, as for every backend, on the GPUs of this machine, or on pocl.

use forebay_crypto::Processor;
use forebay_crypto_gpu::{Config, Runtime, open};
use forebay_crypto_vectors::{check_all, check_random};

/// The runtime of these tests: `GPU_RUNTIME`, such as `opencl` where CUDA has the device too.
fn runtime() -> Runtime {
    std::env::var("GPU_RUNTIME").ok().and_then(|word| Runtime::named(&word)).unwrap_or_default()
}

fn is_there() -> bool {
    let opened = open(&Config { runtime: runtime(), ..Config::default() });
    if let Err(why) = &opened {
        println!("skipped: {why}");
    }
    opened.is_ok()
}

fn processor() -> Box<dyn Processor> {
    open(&Config { runtime: runtime(), sessions: 256, ..Config::default() }).expect("as a moment ago")
}

#[test]
fn published_vectors_come_out_as_published() {
    if is_there() {
        let report = check_all(&mut processor);
        println!("{report}");
        assert!(report.run("") > 100, "{report}");
    }
}

#[test]
fn random_jobs_come_out_as_the_second_opinion_has_them() {
    if is_there() {
        let report = check_random(&mut processor, 1, 5_000);
        println!("{report}");
        for kind in ["seals", "opens", "flipped bits", "bad jobs", "unknown sessions"] {
            assert!(report.run(kind) > 100, "{report}");
        }
    }
}
