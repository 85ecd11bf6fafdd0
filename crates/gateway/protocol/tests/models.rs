//! The short form of the check: every invariant holds within small bounds, and every planted error is found.

use std::fmt;
use std::hash::Hash;

use forebay_protocol::check::{Bounds, Found, check};
use forebay_protocol::cluster::{self, Cluster};
use forebay_protocol::pair::{self, Pair};
use stateright::Model;

/// Steps of a run: some seconds on a busy machine.
const SHORT: Bounds = Bounds { steps_max: 200_000, threads: 1, is_loud: false };
/// Steps until a planted error has to be found.
const PLANTED: Bounds = Bounds { steps_max: 3_000_000, threads: 1, is_loud: false };

fn holds<M>(runs: Vec<(String, M)>)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + fmt::Debug + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + fmt::Debug + PartialEq + Send + Sync + 'static,
{
    for (name, model) in runs {
        let found = check(model, SHORT);
        println!("{name}: {found}");
        assert!(found.counterexample.is_none(), "{name}: {found}");
        assert!(found.states > 500, "{name}: a model in which nothing happens: {found}");
    }
}

fn are_found(runs: impl Iterator<Item = (String, Found)>) {
    let mut hidden = Vec::new();
    for (planted, found) in runs {
        println!("{planted}: {found}");
        hidden.extend(found.counterexample.is_none().then_some(planted));
    }
    assert!(hidden.is_empty(), "not found: {hidden:?}");
}

#[test]
fn a_pair_keeps_its_invariants_within_small_bounds() {
    holds(Pair::runs(false));
}

#[test]
fn a_cluster_keeps_its_invariants_within_small_bounds() {
    holds(Cluster::runs(false));
}

#[test]
fn every_error_planted_in_the_pair_is_found() {
    let run = |planted| (format!("{planted:?}"), check(Pair::with(planted), PLANTED));
    are_found(pair::Planted::ALL.into_iter().map(run));
}

#[test]
fn every_error_planted_in_the_cluster_is_found() {
    let run = |planted| (format!("{planted:?}"), check(Cluster::with(planted), PLANTED));
    are_found(cluster::Planted::ALL.into_iter().map(run));
}
