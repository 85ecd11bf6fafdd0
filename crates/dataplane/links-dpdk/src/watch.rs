//! The state of a device's link, and its way back when its other end was away.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::thread::sleep;
use std::time::Duration;

use crate::link::Shared;
use crate::sockets::{Socket, add_argument};
use crate::{Change, Mac, Unavailable};

/// How often a device is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// When it is looked at after it was made: nothing is sent by one whose other end was not there.
const CONNECTS: Duration = Duration::from_millis(100);

/// Looks at a device from time to time, which the links of the device do not wait for.
///
/// DPDK's drivers of memif (as client) and virtio-user (unless it listens) connect to their other end when the device is made. When
/// that end is gone they have no way back, so the device is removed and made again. All others come back by themselves.
pub struct Watch {
    device: String,
    arguments: String,
    socket: Option<Socket>,
    shared: Weak<Shared>,
    /// How it was when it was last looked at.
    was_up: bool,
    /// Looks in a row at which its link was down.
    down: u32,
    /// Whether it has been made since it was last looked at.
    is_new: bool,
}

impl Watch {
    pub(crate) fn new(
        (device, arguments): (&str, &str),
        socket: Option<Socket>,
        mac: Mac,
        shared: &Arc<Shared>,
    ) -> Watch {
        let mut arguments = arguments.to_owned();
        // Otherwise it would get a random one each time.
        add_argument(&mut arguments, "mac", &mac.map(|byte| format!("{byte:02x}")).join(":"));
        let (was_up, shared) = (shared.port.is_up(), Arc::downgrade(shared));
        Watch { device: device.to_owned(), arguments, socket, shared, was_up, down: 0, is_new: true }
    }

    /// Sleeps until the device is to be looked at, and does [`Watch::look`].
    pub fn wait(&mut self) -> Option<Option<Change>> {
        sleep(if self.is_new { CONNECTS } else { LOOK });
        self.look()
    }

    /// Looks at the device, and makes it again where that is due: to be called about once a second. `None`: the links of the
    /// device are gone. Otherwise what has changed, if anything has.
    pub fn look(&mut self) -> Option<Option<Change>> {
        let shared = self.shared.upgrade()?;
        self.is_new = false;
        let is_up = shared.port.is_up();
        let socket = self.socket.as_ref().filter(|socket| socket.connects());
        shared.is_away.store(!is_up && socket.is_some(), Ordering::Relaxed);
        let changed = is_up != std::mem::replace(&mut self.was_up, is_up);
        if is_up {
            self.down = 0;
            return Some(changed.then_some(Change::Up));
        }
        self.down += 1;
        if changed {
            return Some(Some(Change::Down { is_made_again: socket.is_some() }));
        }
        // One that was made has the time between two looks to connect.
        if self.down < 2 || !socket.is_some_and(Socket::is_served) {
            return Some(None);
        }
        self.down = 0;
        Some(Some(match shared.port.make_again(&self.device, &self.arguments) {
            Ok(()) => {
                shared.made_again.fetch_add(1, Ordering::Relaxed);
                self.is_new = true;
                Change::MadeAgain
            }
            Err(errno) => Change::Failed(Unavailable::NotMade { device: self.device.clone(), errno }),
        }))
    }
}
