//! Published vectors and random jobs, as for every backend.

use forebay_crypto::{Capabilities, Processor, Suite};
use forebay_crypto_aws_lc::AwsLc;
use forebay_crypto_vectors::{check_all, check_random};

fn aws_lc() -> Box<dyn Processor> {
    Box::new(AwsLc::new())
}

#[test]
fn it_does_every_suite() {
    let Capabilities { suites, .. } = aws_lc().capabilities().clone();
    assert_eq!(suites, Suite::all().collect::<Vec<_>>());
}

#[test]
fn published_vectors_come_out_as_published() {
    let report = check_all(&mut aws_lc);
    println!("{report}");
    let minima = [
        ("NIST CAVP gcm", 6_750),
        ("Wycheproof aes_gcm", 197),
        ("NIST CAVP CCM", 30),
        ("Wycheproof aes_ccm", 18),
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
    for (source, at_least) in minima {
        assert!(report.run(source) >= at_least, "{source}: fewer than {at_least}:\n{report}");
    }
}

#[test]
fn random_jobs_come_out_as_the_second_opinion_has_them() {
    let report = check_random(&mut aws_lc, 1, 10_000);
    println!("{report}");
    for kind in ["seals", "opens", "flipped bits", "bad jobs", "unknown sessions"] {
        assert!(report.run(kind) > 300, "{report}");
    }
    assert!(report.run("every bit") > 85 * 400, "{report}");
}
