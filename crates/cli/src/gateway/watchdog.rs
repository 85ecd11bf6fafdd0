//! The service manager's watchdog (`WatchdogSec=`), which is notified as long as all worker threads answer.

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration as StdDuration;

use forebay_gateway::privileges;
use forebay_gateway::service::Workers;
use sd_notify::NotifyState;

/// Ends its thread when it is dropped.
pub struct Watchdog {
    _end: Option<Sender<()>>,
}

impl Watchdog {
    /// Starts to poll the workers and to notify the service manager; does nothing where no watchdog is configured. A
    /// worker that hangs does not answer, no notification is sent, and the service manager restarts the gateway.
    ///
    /// # Errors
    /// If there is no thread left.
    pub fn start(workers: Workers) -> io::Result<Watchdog> {
        let mut patience_us = 0;
        if !sd_notify::watchdog_enabled(false, &mut patience_us) || patience_us == 0 {
            return Ok(Watchdog { _end: None });
        }
        // Twice as often as it is wanted, as sd_watchdog_enabled(3) advises.
        let every = StdDuration::from_micros(patience_us / 2);
        let (end, ended) = mpsc::channel();
        std::thread::Builder::new().name("forebay-watchdog".to_owned()).spawn(move || {
            privileges::give_up();
            while workers.ask(|_| ()).is_some() {
                let _ = sd_notify::notify(false, &[NotifyState::Watchdog]);
                if ended.recv_timeout(every) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        })?;
        Ok(Watchdog { _end: Some(end) })
    }
}
