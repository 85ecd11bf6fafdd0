//! Published vectors and random jobs, as for every backend, with all instructions of this machine.

use forebay_crypto::{Processor, Suite};
use forebay_crypto_ipsec_mb::Instructions::{Avx, Avx2, Avx512, Best, Sse};
use forebay_crypto_ipsec_mb::{Instructions, Unavailable, new, with_instructions};
use forebay_crypto_vectors::{check_all, check_random};

/// Those of the library's ways that this machine can go, and the best by its own name.
fn instructions() -> Vec<Instructions> {
    let (has, lacks): (Vec<_>, Vec<_>) =
        [Best, Sse, Avx, Avx2, Avx512].into_iter().partition(|&way| with_instructions(way).is_ok());
    for way in lacks {
        let why = with_instructions(way).err().expect("one of those that are lacking");
        println!("skipped: {way:?}: {why}");
    }
    has
}

fn processor(way: Instructions) -> Box<dyn Processor> {
    with_instructions(way).expect("as a moment ago")
}

#[test]
fn where_it_is_built_it_has_the_best_instructions_and_does_all_suites_but_ccm_192() {
    match new() {
        Ok(processor) => {
            assert!(instructions().len() > 1, "the best has a name of its own as well");
            let missing =
                ["aes192ccm8", "aes192ccm12", "aes192ccm16"].map(|word| word.parse().expect("a suite"));
            let expected: Vec<Suite> = Suite::all().filter(|suite| !missing.contains(suite)).collect();
            assert_eq!(processor.capabilities().suites, expected);
        }
        Err(why) => {
            assert_eq!(why == Unavailable::Architecture, cfg!(not(target_arch = "x86_64")));
            println!("skipped: {why}");
            assert!(instructions().is_empty());
        }
    }
}

#[test]
fn published_vectors_come_out_as_published() {
    let minima = [
        ("NIST CAVP gcm", 6_750),
        ("Wycheproof aes_gcm", 197),
        ("NIST CAVP CCM", 20),
        ("Wycheproof aes_ccm", 12),
        ("NIST CAVP gcmDecrypt128, no text", 75),
        ("NIST CAVP gcmEncryptExtIV256, no text", 75),
        ("Wycheproof aes_gmac", 207),
        ("NIST CAVP TCBC", 295),
        ("RFC 3566", 6),
        ("RFC 4494", 3),
        ("NIST SP 800-38B", 3),
        ("Wycheproof aes_cmac", 60),
        ("BoringSSL chacha20_poly1305", 66),
        ("OpenSSL evpciph chacha20", 5),
        ("Wycheproof chacha20_poly1305", 316),
        ("NIST CAVP CBC", 1_099),
        ("RFC 3602", 4),
        ("Wycheproof aes_cbc", 72),
        ("RFC 3686", 18),
        ("RFC 4868", 12),
        ("RFC 2202 md5", 6),
        ("RFC 2202 sha1", 6),
        ("RFC 4231", 18),
        ("Wycheproof hmac", 372),
    ];
    for way in instructions() {
        let report = check_all(&mut || processor(way));
        println!("{way:?}\n{report}");
        for (source, at_least) in minima {
            assert!(report.run(source) >= at_least, "{way:?}: {source}: fewer than {at_least}:\n{report}");
        }
    }
}

#[test]
fn random_jobs_come_out_as_the_second_opinion_has_them() {
    for (way, seed) in instructions().into_iter().zip(1..) {
        let report = check_random(&mut || processor(way), seed, 10_000);
        println!("{way:?}\n{report}");
        for kind in ["seals", "opens", "flipped bits", "bad jobs", "unknown sessions"] {
            assert!(report.run(kind) > 300, "{way:?}\n{report}");
        }
        assert!(report.run("every bit") > 82 * 400, "{way:?}\n{report}");
    }
}
