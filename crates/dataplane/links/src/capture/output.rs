//! How the bytes of a capture get to its target: on the caller's thread, or on one of their own.

use std::io::{self, BufWriter, Write};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};

use super::target::Target;

/// Bytes gathered before they are given to the system.
const BUFFER: usize = 256 * 1024;
/// Bytes gathered before they are given to the writing thread. Waking that thread costs tens of microseconds, which
/// so many bytes make small.
const CHUNK: usize = 1024 * 1024;
/// Chunks at most: one is filled while others are written.
const CHUNKS: usize = 4;

/// A buffered output.
pub(super) enum Output {
    /// Written by the caller.
    Here(BufWriter<Target>),
    /// Written by another thread.
    Elsewhere(Background),
}

impl Output {
    pub(super) fn here(target: Target) -> Output {
        Output::Here(BufWriter::with_capacity(BUFFER, target))
    }

    /// Fails if the system has no thread left.
    pub(super) fn elsewhere(target: Target) -> io::Result<Output> {
        Background::start(target).map(Output::Elsewhere)
    }

    #[inline]
    pub(super) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Output::Here(output) => output.write_all(bytes),
            Output::Elsewhere(output) => output.write_all(bytes),
        }
    }

    /// Writes what is left; the target is complete then.
    pub(super) fn into_target(self) -> io::Result<Target> {
        match self {
            Output::Here(output) => output.into_inner().map_err(|error| error.into_error()),
            Output::Elsewhere(output) => output.into_target(),
        }
    }
}

/// A target that a thread of its own writes.
pub(super) struct Background {
    filling: Vec<u8>,
    /// Full chunks on their way, and empty ones back.
    full: Option<SyncSender<Vec<u8>>>,
    empty: Receiver<Vec<u8>>,
    /// Chunks that may still be made.
    unmade: usize,
    thread: Option<JoinHandle<io::Result<Target>>>,
}

impl Background {
    fn start(target: Target) -> io::Result<Background> {
        let (full, to_write) = sync_channel(CHUNKS);
        let (written, empty) = channel();
        let write = move || write_chunks(target, &to_write, &written);
        let thread = Builder::new().name("capture-writer".into()).spawn(write)?;
        let filling = Vec::with_capacity(CHUNK);
        Ok(Background { filling, full: Some(full), empty, unmade: CHUNKS - 1, thread: Some(thread) })
    }

    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.filling.len() + bytes.len() > CHUNK {
            self.send()?;
        }
        self.filling.extend_from_slice(bytes);
        Ok(())
    }

    #[cold]
    fn send(&mut self) -> io::Result<()> {
        let next = match self.empty.try_recv() {
            Ok(chunk) => chunk,
            Err(_) if self.unmade > 0 => {
                self.unmade -= 1;
                Vec::with_capacity(CHUNK)
            }
            Err(_) => match self.empty.recv() {
                Ok(chunk) => chunk,
                Err(_) => return Err(self.fault()),
            },
        };
        let chunk = std::mem::replace(&mut self.filling, next);
        match self.full.as_ref().map(|full| full.send(chunk)) {
            Some(Ok(())) => Ok(()),
            _ => Err(self.fault()),
        }
    }

    /// Why the thread has ended too early.
    fn fault(&mut self) -> io::Error {
        match self.end() {
            Some(Err(error)) => error,
            _ => io::Error::other("the thread that writes the capture has ended"),
        }
    }

    fn into_target(mut self) -> io::Result<Target> {
        self.send()?;
        match self.end() {
            Some(written) => written,
            None => Err(self.fault()),
        }
    }

    /// Lets the thread write what it has been given, and waits for its end.
    fn end(&mut self) -> Option<io::Result<Target>> {
        self.full = None;
        self.thread.take().and_then(|thread| thread.join().ok())
    }
}

/// A temporary file is removed before the caller goes on, and perhaps ends the process.
impl Drop for Background {
    fn drop(&mut self) {
        drop(self.end());
    }
}

fn write_chunks(mut target: Target, full: &Receiver<Vec<u8>>, empty: &Sender<Vec<u8>>) -> io::Result<Target> {
    while let Ok(mut chunk) = full.recv() {
        target.write_all(&chunk)?;
        chunk.clear();
        // At the end the receiver of empty chunks may be gone.
        let _ = empty.send(chunk);
    }
    Ok(target)
}
