//! The client of the control socket.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration as StdDuration;

use super::{REQUEST_MAX, RESPONSE_MAX, Request, Response};

/// Longest wait for an answer; a reload with thousands of SAs takes seconds.
const PATIENCE: StdDuration = StdDuration::from_secs(30);

/// Why a request to the gateway failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum ControlError {
    /// No process listens at the socket.
    NotRunning {
        /// Where.
        socket: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// The connection broke.
    Broken(io::Error),
    /// The answer is no answer.
    NotUnderstood(serde_json::Error),
    /// The gateway says that it cannot.
    Refused(String),
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ControlError::NotRunning { socket, error } => {
                write!(f, "cannot connect to a gateway at {}: {error}", socket.display())
            }
            ControlError::Broken(error) => write!(f, "the connection to the gateway failed: {error}"),
            ControlError::NotUnderstood(error) => {
                write!(f, "cannot parse the gateway's reply: {error}")
            }
            ControlError::Refused(why) => write!(f, "the gateway: {why}"),
        }
    }
}

impl std::error::Error for ControlError {}

impl ControlError {
    /// A hint for the user.
    pub fn help(&self) -> Option<&'static str> {
        match self {
            ControlError::NotRunning { error, .. } if error.kind() == io::ErrorKind::PermissionDenied => {
                Some("`mode` and `group` in [control] set who can connect")
            }
            ControlError::NotRunning { .. } => {
                Some("start the gateway, or give its socket with `--socket` or `--config`")
            }
            ControlError::NotUnderstood(_) => Some("use the same version of forebay as the gateway"),
            ControlError::Broken(_) | ControlError::Refused(_) => None,
        }
    }
}

/// A connection to a gateway.
pub struct Client {
    stream: BufReader<UnixStream>,
}

impl Client {
    /// Connects to the socket of a gateway.
    ///
    /// # Errors
    /// [`ControlError::NotRunning`].
    pub fn connect(socket: &Path) -> Result<Client, ControlError> {
        let connected = UnixStream::connect(socket).and_then(|stream| {
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            Ok(stream)
        });
        let stream =
            connected.map_err(|error| ControlError::NotRunning { socket: socket.to_owned(), error })?;
        Ok(Client { stream: BufReader::new(stream) })
    }

    /// Asks, and waits for the answer; one after the other, as often as is wanted.
    ///
    /// # Errors
    /// If there is none, or it is [`Response::Error`].
    pub fn ask(&mut self, request: Request) -> Result<Response, ControlError> {
        let mut line = serde_json::to_vec(&request).map_err(ControlError::NotUnderstood)?;
        line.push(b'\n');
        debug_assert!(line.len() <= REQUEST_MAX);
        self.stream.get_mut().write_all(&line).map_err(ControlError::Broken)?;
        let mut answer = Vec::new();
        let taken = (&mut self.stream).take(RESPONSE_MAX).read_until(b'\n', &mut answer);
        taken.map_err(ControlError::Broken)?;
        if answer.last() != Some(&b'\n') {
            return Err(ControlError::Broken(io::ErrorKind::UnexpectedEof.into()));
        }
        match serde_json::from_slice(&answer).map_err(ControlError::NotUnderstood)? {
            Response::Error(error) => Err(ControlError::Refused(error.message)),
            response => Ok(response),
        }
    }
}
