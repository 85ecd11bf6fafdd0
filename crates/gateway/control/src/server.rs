//! The server of the control socket, and of HTTP for metrics and the live page; each connection has a thread of its own.
//!
//! A client has a deadline for a whole request and for reading the answer. If all places are in use, a client that has sent no request is
//! closed in favour of a new one.

use std::fs::{self, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration as StdDuration;

use forebay_admission::{Place, Places, Source, Within};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

use super::http::{self, Door, REQUEST, Site, TAKEN};
use super::metrics::Figures;
use super::page::{self, PageSite};
use super::token::Token;
use super::{REQUEST_MAX, Request, Response};
use forebay_config::{Control, Listen, LivePage, Metrics};
use forebay_links_sys::option;
use forebay_privileges as privileges;

/// Longest silence of a client before its connection is closed.
const IDLE: StdDuration = StdDuration::from_secs(60);
/// Connections of the live page beside those that watch: a browser fetches its files by several at a time.
const FILES: usize = 16;

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
    /// What ends with the server.
    site: Option<Arc<dyn Site>>,
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
        let serve = move |stream, place: &Place| converse(stream, place, &*answer);
        // The system's own user, and the gateway's.
        let expected = [0, rustix::process::geteuid().as_raw()].map(Source::User);
        let places = Places::new(limit, expected);
        let mut server = Server::start("forebay-control", places, listener, accept_local, serve)?;
        server.path = Some(path);
        Ok(server)
    }

    /// Gives `/metrics` over HTTP, to at most `limit` clients at a time; where a token is set, only to those that show it.
    ///
    /// # Errors
    /// If the system refuses the address, or the file of the token is not as it has to be.
    pub fn metrics(settings: &Metrics, limit: usize, answer: Arc<Answer>) -> io::Result<Server> {
        let token = settings.token_file.as_deref().map(Token::read).transpose()?;
        // Of metrics no names are asked for: a scraper has the one that its configuration says.
        let door =
            Door { token, unauthorized: "401 Unauthorized\r\nWWW-Authenticate: Bearer", ..Door::default() };
        Server::http("forebay-metrics", &Listen::Tcp(settings.listen), limit, door, Figures::new(answer))
    }

    /// Gives the live page, to as many watchers as its settings say.
    ///
    /// # Errors
    /// As [`Server::metrics`], and as [`Server::control`] for a Unix socket.
    pub fn page(settings: &LivePage, answer: Arc<Answer>) -> io::Result<Server> {
        let token = settings.token_file.as_deref().map(Token::read).transpose()?;
        let door = Door {
            token,
            unauthorized: "401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"Forebay\", charset=\"UTF-8\"",
            hosts: Some(settings.hosts.clone()),
            fields: page::FIELDS,
        };
        let page = PageSite::start(answer, settings)?;
        Server::http("forebay-page", &settings.listen, settings.clients + FILES, door, page)
    }

    /// Serves a site, to at most `limit` clients at a time.
    fn http(name: &str, listen: &Listen, limit: usize, door: Door, site: impl Site) -> io::Result<Server> {
        let places = Places::new(limit, []);
        let site = Arc::new(site);
        let ends: Arc<dyn Site> = site.clone();
        let mut server = match listen {
            Listen::Tcp(address) => {
                let named = |error: io::Error| io::Error::new(error.kind(), format!("{address}: {error}"));
                let listener = TcpListener::bind(address).map_err(named)?;
                let address = listener.local_addr()?;
                listener.set_nonblocking(true)?;
                let serve = move |stream, place: &Place| http::serve(stream, place, &door, &*site);
                let mut server = Server::start(name, places, listener, accept, serve)?;
                server.address = Some(address);
                server
            }
            Listen::Unix(control) => {
                let listener = bind(control)?;
                let serve = move |stream, place: &Place| http::serve(stream, place, &door, &*site);
                let mut server = Server::start(name, places, listener, accept_local, serve)?;
                server.path = Some(control.socket.clone());
                server
            }
        };
        server.site = Some(ends);
        Ok(server)
    }

    /// The address of metrics or of the page, with the port that the system chose where 0 was wanted.
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
            crate::give_way();
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
        Ok(Server { end, bell, thread: Some(thread), path: None, address: None, site: None })
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
        if let Some(site) = &self.site {
            site.end();
        }
    }
}

// Of accepted sockets some systems make nonblocking ones.
fn accept(listener: &TcpListener) -> io::Result<(Source, TcpStream)> {
    let (stream, address) = listener.accept()?;
    stream.set_nonblocking(false)?;
    Ok((Source::from(address.ip()), stream))
}

fn accept_local(listener: &UnixListener) -> io::Result<(Source, UnixStream)> {
    let (stream, _) = listener.accept()?;
    stream.set_nonblocking(false)?;
    Ok((Source::of_user(&stream)?, stream))
}

/// The listener, with owner and permissions from the moment on that it can be found.
fn bind(control: &Control) -> io::Result<UnixListener> {
    let path = &control.socket;
    if UnixStream::connect(path).is_ok() {
        let message = format!("another gateway is listening on {}", path.display());
        return Err(io::Error::new(io::ErrorKind::AddrInUse, message));
    }
    // One of an earlier run is replaced; a file with something in it is not.
    if fs::metadata(path).is_ok_and(|found| !found.file_type().is_socket()) {
        let message = format!("{} exists and is not a socket; give the socket another name", path.display());
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(directory) = directory {
        fs::create_dir_all(directory)?;
    }
    // The socket is created in a directory that only this user can read until its permissions are set. The directory has a name of
    // its own, which no number of a process is: gateways in containers that share a directory may have the same.
    let hidden =
        tempfile::Builder::new().prefix(".forebay-").tempdir_in(directory.unwrap_or(Path::new(".")))?;
    let listener = bind_in(&hidden.path().join("s"), control)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
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
