//! The head of a request to metrics and the live page.

use std::io::{BufRead, BufReader};

use forebay_control::Token;
use forebay_control::http::{HEAD_MAX, Head, Refusal};

/// Reads `data` as the head of a request, in one piece and byte by byte, and with two tokens of which it shows one at most.
pub fn http_head(data: &[u8]) {
    let [token, other] = [b"0123456789abcdef", b"0123456789abcdeF"].map(|token| Token::of(token));
    let mut rest = data;
    let whole = read(&mut rest, token.as_ref());
    let taken = data.len() - rest.len();
    assert!(taken as u64 <= HEAD_MAX);
    let bytewise = read(&mut BufReader::with_capacity(1, data), token.as_ref());
    assert_eq!(whole, bytewise);
    let head = match whole {
        Ok(head) => head,
        Err(Refusal::TooLong) => return assert_eq!(taken as u64, HEAD_MAX),
        Err(_) => return,
    };
    assert!(head.method.bytes().all(|byte| byte.is_ascii_alphabetic()) && !head.method.is_empty());
    assert!(head.path.starts_with('/') && !head.path.contains(['?', ' ', '\r', '\n']));
    assert!(data[..taken].ends_with(b"\n") && data[..taken].trim_ascii_end().len() + 2 <= taken);
    let shows_other = read(&mut &*data, other.as_ref()).is_ok_and(|head| head.shows_token);
    let lines = data[..taken].split(|byte| *byte == b'\n');
    let shown = lines.filter(|line| line.to_ascii_lowercase().starts_with(b"authorization:")).count();
    assert!(usize::from(head.shows_token) + usize::from(shows_other) <= shown);
    assert!(read(&mut &*data, None).is_ok_and(|head| !head.shows_token), "without a token none is shown");
}

fn read(from: &mut impl BufRead, token: Option<&Token>) -> Result<Head, Refusal> {
    Head::read(from, token).expect("memory has no errors")
}
