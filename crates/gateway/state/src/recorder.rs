//! Threads that durably record what workers ask for, and retry what failed.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use forebay_privileges as privileges;

/// What such a thread does with the messages of workers.
pub trait Recorder: Sized + Send + 'static {
    /// A message of a worker.
    type Message: Send;
    /// Name of the thread.
    const THREAD: &'static str;
    /// Between two passes over work that is left, while no message comes.
    const AGAIN: Duration;

    /// The same as it is now.
    fn again(&self) -> Duration {
        Self::AGAIN
    }

    /// The messages.
    fn messages(&self) -> &Receiver<Self::Message>;

    /// Whether there is something to do even if no message comes.
    fn has_work(&self) -> bool;

    /// Takes a message.
    fn take(&mut self, message: Self::Message);

    /// Does what is to be done by now.
    fn work(&mut self);

    /// Takes the message that the thread has waited for.
    fn gather(&mut self, first: Self::Message) {
        self.take(first);
    }

    /// Starts the thread, which ends when all senders of messages are gone.
    ///
    /// # Errors
    /// If there is no thread left.
    fn start(self) -> io::Result<()> {
        std::thread::Builder::new().name(Self::THREAD.to_owned()).spawn(move || {
            privileges::keep_files();
            self.run();
        })?;
        Ok(())
    }

    /// What the thread does.
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

    /// Takes the messages that have come, and does what is to be done; without `again` only if there were any.
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
