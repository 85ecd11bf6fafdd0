//! HTTP for metrics and the live page: one request per connection, bounded headers, no keep-alive.
//!
//! [`Head::read`] accepts any bytes; [`serve`] admits permitted clients ([`Door`]), and writes the answer. No request is
//! stored, and the connection of a client that does not read its answer in time is closed.

use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use forebay_admission::{Place, Within};
use rustix::net::sockopt::set_socket_send_buffer_size;
use zeroize::Zeroizing;

use super::token::Token;

/// Longest head of a request, in bytes.
pub const HEAD_MAX: u64 = 8_192;
/// Longest time in which a request comes.
pub const REQUEST: Duration = Duration::from_secs(5);
/// Longest time in which an answer or an event is taken.
pub const TAKEN: Duration = Duration::from_secs(20);
/// What the kernel keeps of a stream for a client that does not read, in bytes; it doubles the number (socket(7)).
const STREAM_BUFFER: usize = 128 << 10;
/// What is written at once.
const WRITTEN: usize = 16 << 10;

/// The head of a request (RFC 9112), as far as it is looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// `GET`, `HEAD` or another.
    pub method: String,
    /// The path without the query.
    pub path: String,
    /// The host and port that the client believes to talk to.
    pub host: Option<String>,
    /// What site of a browser asks (Fetch Metadata).
    pub site: Option<String>,
    /// Whether the token is shown.
    pub shows_token: bool,
}

/// Why a head is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is not HTTP/1.
    Malformed,
    /// It is longer than [`HEAD_MAX`].
    TooLong,
}

impl Head {
    /// Reads a head up to its empty line.
    ///
    /// # Errors
    /// Those of the reader; the inner one for what is no head.
    pub fn read(from: &mut impl BufRead, token: Option<&Token>) -> io::Result<Result<Head, Refusal>> {
        let mut from = from.take(HEAD_MAX);
        // The token may stand in any line.
        let mut line = Zeroizing::new(Vec::with_capacity(HEAD_MAX as usize));
        let mut head: Option<Head> = None;
        loop {
            line.clear();
            from.read_until(b'\n', &mut line)?;
            if line.last() != Some(&b'\n') {
                let refusal = if from.limit() == 0 { Refusal::TooLong } else { Refusal::Malformed };
                return Ok(Err(refusal));
            }
            let Ok(text) = std::str::from_utf8(line.trim_ascii_end()) else {
                return Ok(Err(Refusal::Malformed));
            };
            let taken = match head.as_mut() {
                Some(head) if text.is_empty() => return Ok(Ok(std::mem::take(head))),
                Some(head) => head.take(text, token),
                None => Head::first(text).map(|first| head = Some(first)),
            };
            if taken.is_none() {
                return Ok(Err(Refusal::Malformed));
            }
        }
    }

    /// The request line.
    fn first(line: &str) -> Option<Head> {
        let mut words = line.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        let path = target.split('?').next()?;
        let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_alphabetic());
        let is_target = target.starts_with('/') && target.bytes().all(|byte| byte.is_ascii_graphic());
        let is_whole = words.next().is_none() && is_method && is_target;
        let is_first = is_whole && matches!(version, "HTTP/1.0" | "HTTP/1.1");
        is_first.then(|| Head { method: method.to_owned(), path: path.to_owned(), ..Head::default() })
    }

    /// A line with a field; `None` for what is none, and for a second host (RFC 9112 3.2).
    fn take(&mut self, line: &str, token: Option<&Token>) -> Option<()> {
        let (name, value) = line.split_once(':')?;
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
            return None;
        }
        let value = value.trim();
        if name.eq_ignore_ascii_case("host") {
            return self.host.replace(value.to_owned()).is_none().then_some(());
        }
        if name.eq_ignore_ascii_case("sec-fetch-site") {
            self.site = Some(value.to_owned());
        }
        self.shows_token |= token.is_some_and(|token| token.is_shown_by(line));
        Some(())
    }
}

/// Who may ask.
#[derive(Default)]
pub struct Door {
    /// What clients have to show.
    pub token: Option<Token>,
    /// Status and field of the answer to those who do not, which says how to show it (RFC 9110 11.6.1).
    pub unauthorized: &'static str,
    /// Names by which a browser may ask, beside addresses and `localhost`; `None`: any.
    pub hosts: Option<Vec<String>>,
    /// Fields of every answer, each with its line end.
    pub fields: &'static str,
}

impl Door {
    /// The answer to a request that is not let in.
    fn refuses(&self, head: &Head) -> Option<Reply> {
        const OTHER_NAME: &str = "asked for by a name that is none of this page: use an address or localhost, or add the name to `hosts`";
        if !self.is_host(head.host.as_deref()) {
            return Some(Reply::text("421 Misdirected Request", OTHER_NAME));
        }
        if !matches!(&*head.method, "GET" | "HEAD") {
            return Some(Reply::text("405 Method Not Allowed\r\nAllow: GET, HEAD", "only GET and HEAD"));
        }
        let is_refused = self.token.is_some() && !head.shows_token;
        is_refused.then(|| Reply::text(self.unauthorized, "the token of `token_file` is required"))
    }

    /// Whether the host that a browser asks for is this one. A page of another site whose name is made to lead here (DNS
    /// rebinding) asks for that name; it cannot ask for an address.
    fn is_host(&self, host: Option<&str>) -> bool {
        let Some(names) = &self.hosts else { return true };
        let Some(host) = host else { return false };
        let bare = match host.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => host.split(':').next().unwrap_or_default(),
        };
        let is_name = |name: &str| name.eq_ignore_ascii_case(bare);
        bare.parse::<IpAddr>().is_ok() || is_name("localhost") || names.iter().any(|name| is_name(name))
    }
}

/// An answer.
pub struct Reply {
    /// Its status code and reason.
    pub status: &'static str,
    /// Its media type.
    pub kind: &'static str,
    /// What it has.
    pub body: Body,
}

/// What an answer has.
pub enum Body {
    /// All of it.
    Whole(Arc<str>),
    /// What comes, in pieces, until there is no more.
    Events(Box<dyn Iterator<Item = Vec<Arc<str>>>>),
}

impl Reply {
    /// A line of text.
    pub fn text(status: &'static str, text: &str) -> Reply {
        Reply { status, kind: "text/plain; charset=utf-8", body: Body::Whole(format!("{text}\n").into()) }
    }
}

impl From<Refusal> for Reply {
    fn from(refusal: Refusal) -> Reply {
        match refusal {
            Refusal::Malformed => Reply::text("400 Bad Request", "not an HTTP/1 request"),
            Refusal::TooLong => {
                Reply::text("431 Request Header Fields Too Large", "the head of the request is too long")
            }
        }
    }
}

/// What is found behind a door.
pub trait Site: Send + Sync + 'static {
    /// Answers a `GET`; of a `HEAD` the body is left out.
    fn get(&self, head: &Head, place: &Place) -> Reply;

    /// The server ends.
    fn end(&self) {}
}

/// Answers the request of a connection, and closes it.
///
/// # Errors
/// If the client goes away, or does not read.
pub fn serve<S: AsFd + Read + Write>(
    stream: S,
    place: &Place,
    door: &Door,
    site: &dyn Site,
) -> io::Result<()> {
    let mut reader = BufReader::new(Within::new(stream, REQUEST));
    let read = Head::read(&mut reader, door.token.as_ref())?;
    let without_body = matches!(&read, Ok(head) if head.method == "HEAD");
    let reply = match read {
        Ok(head) => door.refuses(&head).unwrap_or_else(|| site.get(&head, place)),
        Err(refusal) => refusal.into(),
    };
    let stream = reader.into_inner();
    match reply.body {
        // Who watches does not give way to others who come.
        Body::Events(_) => place.busy(|| write(stream, reply, door, without_body)),
        Body::Whole(_) => write(stream, reply, door, without_body),
    }
}

fn write<S: AsFd + Read + Write>(
    mut stream: Within<S>,
    Reply { status, kind, body }: Reply,
    door: &Door,
    without_body: bool,
) -> io::Result<()> {
    let length = match &body {
        Body::Whole(text) => format!("Content-Length: {}\r\n", text.len()),
        Body::Events(_) => {
            set_socket_send_buffer_size(&stream, STREAM_BUFFER)?;
            String::new()
        }
    };
    stream.again(TAKEN);
    let fields = door.fields;
    write!(stream, "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{length}{fields}Connection: close\r\n\r\n")?;
    match body {
        _ if without_body => Ok(()),
        Body::Whole(text) => stream.write_all(text.as_bytes()),
        Body::Events(events) => {
            let mut stream = BufWriter::with_capacity(WRITTEN, stream);
            for pieces in events {
                stream.get_mut().again(TAKEN);
                pieces.iter().try_for_each(|piece| stream.write_all(piece.as_bytes()))?;
                stream.flush()?;
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Head, Refusal> {
        Head::read(&mut text.as_bytes(), None).unwrap()
    }

    #[test]
    fn a_head_is_a_request_line_and_fields() {
        let head =
            read("GET /a/b?c=d HTTP/1.1\r\nHOST: localhost:80 \r\nSec-Fetch-Site:none\r\n\r\nmore").unwrap();
        assert_eq!((&*head.method, &*head.path), ("GET", "/a/b"));
        assert_eq!((head.host.as_deref(), head.site.as_deref()), (Some("localhost:80"), Some("none")));
        assert!(read("GET / HTTP/1.0\n\n").is_ok());
        for bad in [
            "",
            "\r\n\r\n",
            "GET /\r\n\r\n",
            "GET / HTTP/2\r\n\r\n",
            "GET / HTTP/1.1 x\r\n\r\n",
            "GET x HTTP/1.1\r\n\r\n",
            " / HTTP/1.1\r\n\r\n",
            "G(T / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\n",
            "GET / HTTP/1.1\r\nno field\r\n\r\n",
            "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
            "GET / HTTP/1.1\r\n: a\r\n\r\n",
        ] {
            assert_eq!(read(bad), Err(Refusal::Malformed), "{bad:?}");
        }
        assert_eq!(
            Head::read(&mut &b"GET /\xff HTTP/1.1\r\n\r\n"[..], None).unwrap(),
            Err(Refusal::Malformed)
        );
        let long = format!("GET / HTTP/1.1\r\na: {}\r\n\r\n", "x".repeat(HEAD_MAX as usize));
        assert_eq!(read(&long), Err(Refusal::TooLong));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(2_000));
        assert_eq!(read(&many), Err(Refusal::TooLong));
    }

    #[test]
    fn a_host_is_an_address_localhost_or_one_of_the_names() {
        let door = Door { hosts: Some(vec!["gw.example".to_owned()]), ..Door::default() };
        for good in
            ["localhost", "LOCALHOST:9465", "127.0.0.1:9465", "[::1]:9465", "192.0.2.1", "gw.EXAMPLE:80"]
        {
            assert!(door.is_host(Some(good)), "{good}");
        }
        for bad in [
            "",
            "evil.example",
            "localhost.evil.example:9465",
            "127.0.0.1.evil.example",
            "[::1",
            "gw.example.evil",
        ] {
            // An unfinished bracket still holds an address, which no site can have as its name.
            assert_eq!(door.is_host(Some(bad)), bad == "[::1", "{bad}");
        }
        assert!(!door.is_host(None));
        assert!(Door::default().is_host(None) && Door::default().is_host(Some("evil.example")));
    }
}
