//! Threads that durably record what workers ask for, and retry what failed.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use forebay_privileges as privileges;

/// The work of such a thread with the messages of workers.
pub trait Recorder: Sized + Send + 'static {
    /// A message of a worker.
    type Message: Send;
    /// Name of the thread.
    const THREAD: &'static str;
    /// Time between two passes over remaining work while no message arrives.
    const AGAIN: Duration;

    /// The current interval.
    fn again(&self) -> Duration {
        Self::AGAIN
    }

    /// The messages.
    fn messages(&self) -> &Receiver<Self::Message>;

    /// Whether there is work even if no message arrives.
    fn has_work(&self) -> bool;

    /// Handles a message.
    fn take(&mut self, message: Self::Message);

    /// Does the work that is due.
    fn work(&mut self);

    /// Handles the message for which the thread has waited.
    fn gather(&mut self, first: Self::Message) {
        self.take(first);
    }

    /// Starts the thread, which ends when all senders of messages are gone.
    ///
    /// # Errors
    /// If no thread can be started.
    fn start(self) -> io::Result<()> {
        std::thread::Builder::new().name(Self::THREAD.to_owned()).spawn(move || {
            privileges::keep_files();
            self.run();
        })?;
        Ok(())
    }

    /// The loop of the thread.
    fn run(mut self) {
        loop {
            let message = match self.has_work() {
                false => self.messages().recv().map_err(|_| RecvTimeoutError::Disconnected),
                true => self.messages().recv_timeout(self.again()),
            };
            match message {
                Ok(message) => self.gather(message),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.look(true);
        }
    }

    /// Handles the messages that have arrived, and does the work that is due; without `again` only if there were messages.
    fn look(&mut self, again: bool) {
        let mut any = again;
        while let Ok(message) = self.messages().try_recv() {
            self.take(message);
            any = true;
        }
        if any {
            self.work();
        }
    }
}
