//! Policies of others are known by their words, each of which there is once.

use forebay_scheduler::{Placement, PolicyKind, RegisterError, register, registered};

const fn kind(word: &'static str) -> PolicyKind {
    fn create(_: &[u64]) -> Box<dyn Placement> {
        panic!("no scheduler is made with it")
    }
    PolicyKind { word, meaning: "nothing", parameters: &[], create }
}

static MINE: PolicyKind = kind("mine");
static YOURS: PolicyKind = kind("yours");
static SHIPPED: PolicyKind = kind("single");

#[test]
fn a_word_is_given_once() {
    let is_taken = |found| matches!(found, Err(RegisterError::Taken { .. }));
    assert!(register(&MINE).is_ok() && register(&YOURS).is_ok());
    assert!(is_taken(register(&MINE)) && is_taken(register(&SHIPPED)));
    assert_eq!(registered().iter().map(|kind| kind.word).collect::<Vec<_>>(), ["mine", "yours"]);
}
