//! The ESP trailer: every padding there is.

use forebay_wire::Malformed;
use forebay_wire::esp::Trailer;

/// Text that ends with this padding and a trailer that says `pad_len`.
fn text(payload: usize, padding: &[u8], pad_len: u8) -> Vec<u8> {
    let mut text = vec![0xaa; payload];
    text.extend(padding);
    text.extend([pad_len, 4]);
    text
}

#[test]
fn every_pad_length_is_accepted_and_every_wrong_byte_found() {
    for payload in [0, 1, 7, 16, 40] {
        for pad_len in 0..=255u8 {
            let padding: Vec<u8> = (1..=pad_len).collect();
            let good = text(payload, &padding, pad_len);
            let trailer = Trailer::parse(&good).expect("padding no longer than the text");
            assert_eq!((trailer.pad_len, trailer.next_header), (pad_len, 4));
            assert!(trailer.is_padded_in_order(&good), "{pad_len} behind {payload} bytes");
            for at in 0..padding.len() {
                let mut wrong = good.clone();
                wrong[payload + at] ^= 1 << (at % 8);
                assert!(!trailer.is_padded_in_order(&wrong), "{pad_len} behind {payload} bytes");
            }
        }
    }
}

#[test]
fn a_pad_length_beyond_the_text_is_refused() {
    for len in 0..40 {
        let padding = vec![1; len];
        for pad_len in 0..=255u8 {
            let parsed = Trailer::parse(&text(0, &padding, pad_len));
            assert_eq!(parsed.is_ok(), usize::from(pad_len) <= len);
        }
    }
    assert_eq!(Trailer::parse(&[]), Err(Malformed::Truncated));
    assert_eq!(Trailer::parse(&[4]), Err(Malformed::Truncated));
}
