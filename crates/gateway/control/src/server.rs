//! Answering over a Unix socket, and metrics over HTTP, each connection in a thread of its own.

use std::fs::{self, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration as StdDuration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

use super::{REQUEST_MAX, Request, Response, metrics};
use forebay_config::{Control, Metrics};
use forebay_privileges as privileges;

/// Longest silence of a client before its connection is closed.
const IDLE: StdDuration = StdDuration::from_secs(60);
/// Longest time that writing may take no byte.
const STUCK: StdDuration = StdDuration::from_secs(5);
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
        let accept = |listener: &UnixListener| listener.accept().map(|(stream, _)| stream);
        let serve = move |stream| converse(stream, &*answer);
        let mut server = Server::start("forebay-control", limit, listener, accept, serve)?;
        server.path = Some(path);
        Ok(server)
    }

    /// Gives `/metrics` over HTTP, to at most `limit` clients at a time.
    ///
    /// # Errors
    /// If the system refuses the address.
    pub fn metrics(settings: &Metrics, limit: usize, answer: Arc<Answer>) -> io::Result<Server> {
        let listener = TcpListener::bind(settings.listen)?;
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let accept = |listener: &TcpListener| listener.accept().map(|(stream, _)| stream);
        let serve = move |stream| scrape(stream, &*answer);
        let mut server = Server::start("forebay-metrics", limit, listener, accept, serve)?;
        server.address = Some(address);
        Ok(server)
    }

    /// The address of metrics, with the port that the system chose where 0 was wanted.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    fn start<L: AsFd + Send + 'static, S: Send + 'static>(
        name: &str,
        limit: usize,
        listener: L,
        accept: fn(&L) -> io::Result<S>,
        serve: impl Fn(S) -> io::Result<()> + Send + Sync + 'static,
    ) -> io::Result<Server> {
        let end = Arc::new(AtomicBool::new(false));
        let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let (ended, rung) = (end.clone(), bell.clone());
        let (serve, open) = (Arc::new(serve), Arc::new(AtomicUsize::new(0)));
        let run = move || {
            // Also for the threads that it starts.
            privileges::give_up();
            while !ended.load(Ordering::Acquire) {
                let mut both =
                    [listener.as_fd(), rung.as_fd()].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
                // A signal that comes in between is no matter.
                let _ = poll(&mut both, None);
                let stream = match accept(&listener) {
                    Ok(stream) => stream,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                    Err(_) => {
                        // No descriptors left, or the like: others may close theirs meanwhile.
                        thread::park_timeout(StdDuration::from_millis(100));
                        continue;
                    }
                };
                let guard = Open::new(&open);
                if guard.count > limit {
                    continue;
                }
                let serve = serve.clone();
                // A client that has gone, or a thread that cannot be started, affects only that client.
                let _ = thread::Builder::new().spawn(move || {
                    let _open = guard;
                    let _ = serve(stream);
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

/// A connection that counts while it is open.
struct Open {
    open: Arc<AtomicUsize>,
    count: usize,
}

impl Open {
    fn new(open: &Arc<AtomicUsize>) -> Open {
        Open { open: open.clone(), count: 1 + open.fetch_add(1, Ordering::AcqRel) }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::AcqRel);
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

/// Answers line by line until the client has nothing more to ask.
fn converse(stream: UnixStream, answer: &Answer) -> io::Result<()> {
    stream.set_read_timeout(Some(IDLE))?;
    stream.set_write_timeout(Some(STUCK))?;
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        line.clear();
        (&mut reader).take(REQUEST_MAX as u64).read_until(b'\n', &mut line)?;
        let whole = line.last() == Some(&b'\n');
        if !whole && line.len() < REQUEST_MAX {
            return Ok(());
        }
        let response = match serde_json::from_slice(&line) {
            _ if !whole => Response::error(format!("the request is longer than {REQUEST_MAX} bytes")),
            Ok(request) => answer(request),
            Err(error) => Response::error(format!("cannot parse the request: {error}")),
        };
        let mut text = serde_json::to_vec(&response)?;
        text.push(b'\n');
        reader.get_mut().write_all(&text)?;
        if !whole {
            return Ok(());
        }
    }
}

/// Answers one HTTP request, and closes.
fn scrape(stream: TcpStream, answer: &Answer) -> io::Result<()> {
    stream.set_read_timeout(Some(STUCK))?;
    stream.set_write_timeout(Some(STUCK))?;
    let mut reader = BufReader::new(stream);
    let mut head = (&mut reader).take(HTTP_MAX);
    let mut first = String::new();
    head.read_line(&mut first)?;
    let mut line = String::new();
    while head.read_line(&mut line)? > 0 && !line.trim_end().is_empty() {
        line.clear();
    }
    let mut words = first.split_whitespace();
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = path.split('?').next().unwrap_or_default();
    let (status, kind, body) = match (method, path) {
        ("GET" | "HEAD", "/metrics") => match answer(Request::Status) {
            Response::Status(status) => ("200 OK", metrics::CONTENT_TYPE, metrics::text(&status)),
            _ => ("503 Service Unavailable", "text/plain", "the gateway does not respond\n".to_owned()),
        },
        ("GET" | "HEAD", _) => ("404 Not Found", "text/plain", "see /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", "text/plain", "GET /metrics\n".to_owned()),
    };
    let length = body.len();
    let body = if method == "HEAD" { "" } else { &body };
    let stream = reader.get_mut();
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
