//! A turnstile: what several cores pass one at a time, each for a short moment.
//!
//! A core that finds it taken spins, because who is inside is out again in less time than a system call takes. Only if
//! that lasts, which means that the core inside has lost its CPU, it lets others have its own CPU.

use std::sync::{PoisonError, TryLockError};

use super::sync::{Mutex, MutexGuard, spin_loop, yield_now};

/// Attempts before the CPU is given away: some tens of microseconds.
const SPINS: u32 = 64;
/// The longest pause between two attempts, in turns of a spinning loop: who looks often takes the cache line from who is
/// inside.
const PAUSES: u32 = 16;

/// A value that one core at a time may use.
#[derive(Debug, Default)]
pub struct Turnstile<T>(Mutex<T>);

impl<T> Turnstile<T> {
    /// A turnstile that nobody is in.
    pub fn new(value: T) -> Turnstile<T> {
        Turnstile(Mutex::new(value))
    }

    /// Waits for its turn.
    #[inline]
    pub fn pass(&self) -> MutexGuard<'_, T> {
        self.try_pass().unwrap_or_else(|| self.wait())
    }

    /// Goes in if nobody is inside.
    #[inline]
    pub fn try_pass(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(inside) => Some(inside),
            // A core that has panicked ends its thread; what it left is as it was between two packets or is dropped.
            Err(TryLockError::Poisoned(inside)) => Some(inside.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    #[cold]
    fn wait(&self) -> MutexGuard<'_, T> {
        let mut tries = 0;
        loop {
            if let Some(inside) = self.try_pass() {
                return inside;
            }
            tries += 1;
            if tries < SPINS {
                (0..tries.min(PAUSES)).for_each(|_| spin_loop());
            } else {
                yield_now();
            }
        }
    }

    /// The value, when nobody can come any more.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value, for who has the turnstile for itself.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}
