#![allow(clippy::disallowed_methods)] // a test that waits has an end

use std::sync::mpsc;
use std::thread;

use super::*;

fn record(last: u64) -> Record {
    Record::Numbers { id: "0f".repeat(16).try_into().unwrap(), last }
}

/// One with its directory, which goes with it.
fn outbox(timeout: Duration) -> (tempfile::TempDir, Outbox) {
    let directory = tempfile::tempdir().unwrap();
    let memory = Memory::open(forebay_state::IvStore::new(directory.path()), 0).unwrap();
    (directory, Outbox::new(Arc::new(memory), timeout, || Duration::ZERO, None))
}

#[test]
fn a_record_waits_for_its_acknowledgement() {
    let (_directory, outbox) = outbox(Duration::from_secs(60));
    let (sender, sent) = mpsc::channel();
    let session = outbox.open(Arc::new(move |message| sender.send(message.clone()).is_ok()));
    assert_eq!((outbox.session(), outbox.ahead().time), (Some(session), AHEAD_MIN));
    let (done, is_done) = mpsc::channel();
    let waiter = outbox.clone();
    thread::spawn(move || {
        waiter.begin(&[record(7)]).unwrap().wait();
        done.send(()).unwrap();
    });
    assert_eq!(sent.recv().unwrap(), Message::Note { at: 1, records: vec![record(7)] });
    assert!(is_done.recv_timeout(Duration::from_millis(20)).is_err());
    assert_eq!(outbox.counts(), (1, 0));
    outbox.acknowledge(1);
    is_done.recv().unwrap();
    assert_eq!(outbox.counts(), (0, 1));
}

#[test]
fn without_a_peer_and_when_it_is_lost_nothing_waits() {
    let (_directory, outbox) = outbox(Duration::from_secs(60));
    let is_alone = || outbox.memory.note().unmerged;
    assert!(!is_alone());
    outbox.begin(&[record(1)]).unwrap().wait();
    assert!(is_alone());
    let session = outbox.open(Arc::new(|_| true));
    let noting = outbox.begin(&[record(2)]).unwrap();
    outbox.merged(session);
    assert!(!is_alone(), "the peer has everything, or is to note it");
    outbox.close(session);
    noting.wait();
    assert!(is_alone(), "a record was used that the peer did not acknowledge");
    outbox.merged(session);
    assert!(is_alone(), "the session has ended");
    assert_eq!((outbox.session(), outbox.ahead()), (None, Ahead::DISK));
    outbox.open(Arc::new(|_| false));
    outbox.begin(&[record(3)]).unwrap().wait();
    assert_eq!(outbox.session(), None);
}

#[test]
fn a_peer_that_does_not_answer_counts_as_lost() {
    let (_directory, outbox) = outbox(Duration::from_millis(10));
    outbox.open(Arc::new(|_| true));
    outbox.begin(&[record(1)]).unwrap().wait();
    assert_eq!(outbox.session(), None);
}

#[test]
fn everything_is_read_only_when_nothing_is_written_that_the_session_does_not_have() {
    let (_directory, outbox) = outbox(Duration::from_secs(60));
    let noting = outbox.begin(&[record(1)]).unwrap();
    outbox.open(Arc::new(|_| true));
    let (done, is_done) = mpsc::channel();
    let reader = outbox.clone();
    thread::spawn(move || {
        reader.settled();
        done.send(()).unwrap();
    });
    assert!(is_done.recv_timeout(Duration::from_millis(20)).is_err());
    noting.wait();
    is_done.recv().unwrap();
}

/// As on a full disk: after a crash it would not know that it went on alone.
#[test]
fn nothing_is_used_alone_that_cannot_be_remembered() {
    let (directory, outbox) = outbox(Duration::from_secs(60));
    let in_the_way = directory.path().join("manifest.tmp");
    std::fs::create_dir(&in_the_way).unwrap();
    assert!(outbox.begin(&[record(1)]).is_err());
    // Nothing is being written.
    outbox.open(Arc::new(|_| false));
    outbox.settled();
    std::fs::remove_dir(&in_the_way).unwrap();
    outbox.begin(&[record(1)]).unwrap().wait();
    assert!(outbox.memory.note().unmerged);
}

/// The peer's disk was slow: it acknowledges what was sent in a session that this side has given up.
#[test]
fn an_acknowledgement_of_an_older_session_counts_for_nothing_of_a_newer_one() {
    let (_directory, outbox) = outbox(Duration::ZERO);
    outbox.open(Arc::new(|_| true));
    for number in 1..=5 {
        outbox.begin(&[record(number)]).unwrap().wait();
        outbox.open(Arc::new(|_| true));
    }
    let _noting = outbox.begin(&[record(6)]).unwrap();
    outbox.acknowledge(5);
    assert_eq!(outbox.counts().0, 1, "that one may still be on its way");
    outbox.acknowledge(u64::MAX);
    let _noting = outbox.begin(&[record(7)]).unwrap();
    assert_eq!(outbox.counts().0, 1, "nothing is acknowledged before it is sent");
}
