//! A card with AWS-LC inside is a processor like any other: the same vectors, delivered later.

use forebay_crypto_aws_lc::AwsLc;
use forebay_crypto_card::{Bus, BusConfig, Card, CardConfig};

#[test]
fn random_jobs_are_done_right() {
    let card =
        || Card::new(CardConfig::paper_230_mbit(), &Bus::new(BusConfig::pci_66()), Box::new(AwsLc::new()));
    forebay_crypto_vectors::check_random(&mut || Box::new(card()), 1, 2_000);
}
