//! A capture cut at any byte is either whole up to there or said to be cut.

use crate::support;

use forebay_links::capture::CaptureErrorKind;
use support::{read_all, sample_pcap, sample_pcapng};

fn cut_everywhere(file: &[u8], boundaries: &[usize]) {
    let (whole, end) = read_all(file);
    end.unwrap();
    for cut in 0..=file.len() {
        let (records, end) = read_all(&file[..cut]);
        assert!(whole.starts_with(&records), "cut at {cut}");
        match end {
            Ok(()) => assert!(boundaries.contains(&cut), "cut at {cut} was not seen"),
            Err(error) => {
                assert!(!boundaries.contains(&cut), "cut at {cut}: {error}");
                // The part that is cut begins at the boundary before, and its bytes are counted from there.
                let begin = boundaries.iter().copied().filter(|&boundary| boundary < cut).max().unwrap_or(0);
                match error.kind {
                    CaptureErrorKind::Empty => assert_eq!(cut, 0),
                    CaptureErrorKind::Truncated { record, found, expected, .. } => {
                        assert_eq!(error.offset, begin as u64, "cut at {cut}");
                        assert_eq!(found, (cut - begin) as u64, "cut at {cut}");
                        assert!(found < expected);
                        assert_eq!(record, records.len() as u64 + 1);
                    }
                    other => panic!("cut at {cut}: {other:?}"),
                }
            }
        }
    }
}

#[test]
fn pcap_cut_at_every_byte() {
    for big in [false, true] {
        let (file, boundaries) = sample_pcap(big);
        cut_everywhere(&file, &boundaries);
    }
}

#[test]
fn pcapng_cut_at_every_byte() {
    for big in [false, true] {
        let (file, boundaries) = sample_pcapng(big);
        cut_everywhere(&file, &boundaries);
    }
}

#[test]
fn the_message_says_where_and_how_much() {
    let (file, _) = sample_pcap(false);
    let error = read_all(&file[..file.len() - 3]).1.unwrap_err();
    assert_eq!(
        error.to_string(),
        "capture: byte 73: the file ends in a record, at record 2: found 23 of 26 expected bytes"
    );
    assert!(error.hint().is_some());
}

#[test]
fn a_last_record_that_is_cut_ends_the_capture_where_that_is_allowed() {
    // Behind the last record of the second there is another block.
    for ((file, _), lost) in [(sample_pcap(false), 1), (sample_pcapng(false), 0)] {
        let whole = read_all(&file).0.len();
        let mut reader = forebay_links::capture::Reader::new(&file[..file.len() - 3], "x").unwrap();
        let mut records = 0;
        while reader.next_whole_record().unwrap().is_some() {
            records += 1;
        }
        assert_eq!(records, whole - lost);
        assert!(reader.cut().is_some_and(|cut| cut.to_string().contains("the file ends in")));
        let mut reader = forebay_links::capture::Reader::new(&file[..], "x").unwrap();
        while reader.next_whole_record().unwrap().is_some() {}
        assert!(reader.cut().is_none());
    }
}
