//! A card with AWS-LC inside is a processor like any other: the same vectors, delivered later.

use forebay_crypto::{Fallback, Processor, Suite};
use forebay_crypto_aws_lc::AwsLc;
use forebay_crypto_card::{Bus, BusConfig, Card, CardConfig};
use forebay_crypto_vectors::{check_all, check_random};

fn card(suites: Option<Vec<Suite>>) -> Box<dyn Processor> {
    let config = CardConfig { suites, ..CardConfig::paper_230_mbit() };
    Box::new(Card::new(config, &Bus::new(BusConfig::pci_66()), Box::new(AwsLc::new())))
}

#[test]
fn published_vectors_come_out_as_published() {
    let report = check_all(&mut || card(None));
    assert!(report.run("") >= 10_000, "{report}");
}

#[test]
fn random_jobs_are_done_right() {
    check_random(&mut || card(None), 1, 2_000);
}

#[test]
fn a_card_of_few_suites_refuses_all_others() {
    let few = ["aes128gcm16", "3des-md5", "aes256gmac"].map(|word| word.parse().expect("a suite"));
    let report = check_random(&mut || card(Some(few.to_vec())), 2, 200);
    assert_eq!(report.run("suites refused"), Suite::all().count() - few.len());
}

/// Two processors behind one face, one of them late: which does a job must not show.
#[test]
fn what_a_card_lacks_a_fallback_does() {
    let few = ["aes128gcm16", "3des-md5", "aes256gmac"].map(|word| word.parse().expect("a suite"));
    let both = || Box::new(Fallback::new(card(Some(few.to_vec())), AwsLc::new())) as Box<dyn Processor>;
    assert_eq!(both().capabilities().suites.len(), Suite::all().count());
    let report = check_random(&mut || both(), 3, 2_000);
    assert_eq!(report.run("suites refused"), 0);
}
