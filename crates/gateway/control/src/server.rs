//! Answering over a Unix socket, and metrics over HTTP, each connection in a thread of its own.
//!
//! A client has a deadline for a whole request and for taking the answer. Where all places are taken, a client that asks nothing gives
//! way to one that comes.

use std::fs::{self, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration as StdDuration, Instant};

use forebay_admission::{Place, Places, Source, Within};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

use zeroize::Zeroizing;

use super::token::Token;
use super::{REQUEST_MAX, Request, Response, metrics};
use forebay_config::{Control, Metrics};
use forebay_links_sys::option;
use forebay_privileges as privileges;

/// Longest silence of a client before its connection is closed.
const IDLE: StdDuration = StdDuration::from_secs(60);
/// Longest time in which a request comes, and in which an answer is taken.
const REQUEST: StdDuration = StdDuration::from_secs(5);
const TAKEN: StdDuration = StdDuration::from_secs(20);
/// How long figures are given again: what they cost the loops that move packets does not grow with those who ask.
const FRESH: StdDuration = StdDuration::from_secs(1);
/// Longest head of an HTTP request, in bytes.
const HTTP_MAX: u64 = 8_192;

/// Answers requests; it is called from several threads at a time, and may block.
pub type Answer = dyn Fn(Request) -> Response + Send + Sync;

/// A server that runs until it is dropped.
pub struct Server {
    end: Arc<AtomicBool>,
    /// Wakes the thread, so that it sees the end.
    bell: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
    /// The socket, to be removed.
    path: Option<PathBuf>,
    address: Option<SocketAddr>,
}

impl Server {
    /// Answers requests at the control socket, at most `limit` clients at a time. A stale socket, at which no process
    /// listens any more, is replaced; the directory is created if it does not exist.
    ///
    /// # Errors
    /// If another gateway listens there, the group is unknown, or the system refuses.
    pub fn control(control: &Control, limit: usize, answer: Arc<Answer>) -> io::Result<Server> {
        let listener = bind(control)?;
        let path = control.socket.clone();
        listener.set_nonblocking(true)?;
        let accept = |listener: &UnixListener| {
            let (stream, _) = listener.accept()?;
            Ok((Source::of_user(&stream)?, stream))
        };
        let serve = move |stream, place: &Place| converse(stream, place, &*answer);
        // The system's own user, and the gateway's.
        let expected = [0, rustix::process::geteuid().as_raw()].map(Source::User);
        let places = Places::new(limit, expected);
        let mut server = Server::start("forebay-control", places, listener, accept, serve)?;
        server.path = Some(path);
        Ok(server)
    }

    /// Gives `/metrics` over HTTP, to at most `limit` clients at a time; where a token is set, only to those that show it.
    ///
    /// # Errors
    /// If the system refuses the address, or the file of the token is not as it has to be.
    pub fn metrics(settings: &Metrics, limit: usize, answer: Arc<Answer>) -> io::Result<Server> {
        let token = settings.token_file.as_deref().map(Token::read).transpose()?;
        let listener = TcpListener::bind(settings.listen)?;
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let accept = |listener: &TcpListener| {
            let (stream, address) = listener.accept()?;
            Ok((Source::from(address.ip()), stream))
        };
        let figures = Figures { answer, token, last: Mutex::default(), exporter: Mutex::default() };
        let serve = move |stream, place: &Place| scrape(stream, place, &figures);
        let mut server = Server::start("forebay-metrics", Places::new(limit, []), listener, accept, serve)?;
        server.address = Some(address);
        Ok(server)
    }

    /// The address of metrics, with the port that the system chose where 0 was wanted.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    fn start<L: AsFd + Send + 'static, S: AsFd + Send + 'static>(
        name: &str,
        places: Places,
        listener: L,
        accept: fn(&L) -> io::Result<(Source, S)>,
        serve: impl Fn(S, &Place) -> io::Result<()> + Send + Sync + 'static,
    ) -> io::Result<Server> {
        let end = Arc::new(AtomicBool::new(false));
        let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let (ended, rung) = (end.clone(), bell.clone());
        let serve = Arc::new(serve);
        let run = move || {
            // Also for the threads that it starts.
            privileges::give_up();
            while !ended.load(Ordering::Acquire) {
                let mut both =
                    [listener.as_fd(), rung.as_fd()].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
                // A signal that comes in between is no matter.
                let _ = poll(&mut both, None);
                let taken = accept(&listener)
                    .and_then(|(source, stream)| Ok((places.take(source, &stream)?, stream)));
                let (place, stream) = match taken {
                    Ok((Some(place), stream)) => (place, stream),
                    Ok((None, _)) => continue,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                    Err(_) => {
                        // No descriptors left, or the like: others may close theirs meanwhile.
                        thread::park_timeout(StdDuration::from_millis(100));
                        continue;
                    }
                };
                let serve = serve.clone();
                // A client that has gone, or a thread that cannot be started, affects only that client.
                let _ = thread::Builder::new().spawn(move || {
                    let _ = serve(stream, &place);
                });
            }
        };
        let thread = thread::Builder::new().name(name.to_owned()).spawn(run)?;
        Ok(Server { end, bell, thread: Some(thread), path: None, address: None })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Release);
        let _ = rustix::io::write(&*self.bell, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
    }
}

/// The listener, with owner and permissions from the moment on that it can be found.
fn bind(control: &Control) -> io::Result<UnixListener> {
    let path = &control.socket;
    if UnixStream::connect(path).is_ok() {
        let message = format!("another gateway is listening on {}", path.display());
        return Err(io::Error::new(io::ErrorKind::AddrInUse, message));
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(directory) = directory {
        fs::create_dir_all(directory)?;
    }
    // The socket is created in a directory that only this user can read until its permissions are set.
    let hidden = directory.unwrap_or(Path::new(".")).join(format!(".forebay-{}", std::process::id()));
    fs::create_dir_all(&hidden)?;
    fs::set_permissions(&hidden, Permissions::from_mode(0o700))?;
    let listening = bind_in(&hidden.join("s"), control);
    let _ = fs::remove_dir_all(&hidden);
    listening
}

fn bind_in(hidden: &Path, control: &Control) -> io::Result<UnixListener> {
    let listener = UnixListener::bind(hidden)?;
    if let Some(group) = &control.group {
        let unknown = || io::Error::new(io::ErrorKind::NotFound, format!("group `{group}` does not exist"));
        let gid = gid_of(group, &fs::read_to_string("/etc/group")?).ok_or_else(unknown)?;
        rustix::fs::chown(hidden, None, Some(rustix::fs::Gid::from_raw(gid)))?;
    }
    fs::set_permissions(hidden, Permissions::from_mode(control.mode))?;
    fs::rename(hidden, &control.socket)?;
    Ok(listener)
}

/// The number of a group, by its name or as a number (group(5)).
fn gid_of(name: &str, groups: &str) -> Option<u32> {
    let named = groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok()).flatten()
    });
    named.or_else(|| name.parse().ok())
}

/// Who asks; what the reload changes is logged when it is done.
fn log_reload(client: BorrowedFd<'_>) {
    // Of a process in another PID namespace there is no number, and no field.
    let client = option::peer(client).ok();
    let (uid, pid) = (client.map(|client| client.uid), client.and_then(|client| client.pid));
    tracing::info!(uid, pid = pid.map(u32::from), "reload requested at the control socket");
}

/// Answers line by line until the client has nothing more to ask.
fn converse(stream: UnixStream, place: &Place, answer: &Answer) -> io::Result<()> {
    // Of accepted sockets some systems make nonblocking ones.
    stream.set_nonblocking(false)?;
    let mut reader = BufReader::new(Within::new(stream, IDLE));
    let mut line = Vec::new();
    loop {
        line.clear();
        reader.get_mut().again(IDLE);
        if reader.fill_buf()?.is_empty() {
            return Ok(());
        }
        reader.get_mut().again(REQUEST);
        (&mut reader).take(REQUEST_MAX as u64).read_until(b'\n', &mut line)?;
        let whole = line.last() == Some(&b'\n');
        if !whole && line.len() < REQUEST_MAX {
            return Ok(());
        }
        let response = match serde_json::from_slice(&line) {
            _ if !whole => Response::error(format!("the request is longer than {REQUEST_MAX} bytes")),
            Ok(request) => {
                if request == Request::Reload {
                    log_reload(reader.get_ref().as_fd());
                }
                place.busy(|| answer(request))
            }
            Err(error) => Response::error(format!("cannot parse the request: {error}")),
        };
        let mut text = serde_json::to_vec(&response)?;
        text.push(b'\n');
        reader.get_mut().again(TAKEN);
        reader.get_mut().write_all(&text)?;
        if !whole {
            return Ok(());
        }
    }
}

/// What metrics are made of.
struct Figures {
    answer: Arc<Answer>,
    /// What clients have to show.
    token: Option<Token>,
    /// The last text, and when it was made.
    last: Mutex<Option<(Instant, String)>>,
    exporter: Mutex<metrics::Exporter>,
}

impl Figures {
    /// The metrics as they were within the last second; those who ask at once have the same.
    #[allow(clippy::disallowed_methods)] // the age of an answer
    fn text(&self) -> Option<String> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, text)) = last.as_ref().filter(|(made, _)| made.elapsed() < FRESH) {
            return Some(text.clone());
        }
        let Response::Status(status) = (self.answer)(Request::Status) else { return None };
        let text = self.exporter.lock().unwrap_or_else(PoisonError::into_inner).text(&status);
        *last = Some((Instant::now(), text.clone()));
        Some(text)
    }
}

/// Answers one HTTP request, and closes.
fn scrape(stream: TcpStream, place: &Place, figures: &Figures) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    let mut reader = BufReader::new(Within::new(stream, REQUEST));
    let mut head = (&mut reader).take(HTTP_MAX);
    let mut first = String::new();
    head.read_line(&mut first)?;
    let mut line = Zeroizing::new(String::new());
    let mut may_read = figures.token.is_none();
    while head.read_line(&mut line)? > 0 && !line.trim_end().is_empty() {
        may_read = may_read || figures.token.as_ref().is_some_and(|token| token.is_shown_by(&line));
        line.clear();
    }
    let mut words = first.split_whitespace();
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = path.split('?').next().unwrap_or_default();
    let (status, kind, body) = match (method, path) {
        ("GET" | "HEAD", _) if !may_read => (
            "401 Unauthorized\r\nWWW-Authenticate: Bearer",
            "text/plain",
            "the token of the metrics is needed\n".to_owned(),
        ),
        ("GET" | "HEAD", "/metrics") => match place.busy(|| figures.text()) {
            Some(text) => ("200 OK", metrics::CONTENT_TYPE, text),
            None => ("503 Service Unavailable", "text/plain", "the gateway does not respond\n".to_owned()),
        },
        ("GET" | "HEAD", _) => ("404 Not Found", "text/plain", "see /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", "text/plain", "GET /metrics\n".to_owned()),
    };
    let length = body.len();
    let body = if method == "HEAD" { "" } else { &body };
    let stream = reader.get_mut();
    stream.again(TAKEN);
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )?;
    stream.write_all(body.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_found_by_name_and_number() {
        let groups = "root:x:0:\nadm:x:4:syslog,x\nodd\n";
        assert_eq!(
            (gid_of("adm", groups), gid_of("17", groups), gid_of("x", groups)),
            (Some(4), Some(17), None)
        );
    }
}
