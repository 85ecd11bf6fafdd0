//! Keeps following the kernel after failures.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// After this many failures in a row, without a complete read of the kernel's state in between, the follower ends.
const FAILURES_MAX: u32 = 5;

/// A follower that keeps SAs synchronized with the kernel.
pub trait Following {
    /// Applies what has happened; returns whether the kernel's whole state is known now.
    fn step(&mut self) -> io::Result<bool>;

    /// Restarts after a failure: reads everything again and applies the differences.
    fn reopen(&mut self) -> io::Result<()>;
}

/// Follows until `stop`, and restarts after failures.
///
/// # Errors
/// The last failure, if there were too many: SAs that are not kept up to date must not be used.
pub fn follow(
    following: &mut impl Following,
    stop: &AtomicBool,
    pause: std::time::Duration,
) -> io::Result<()> {
    let mut failures = 0;
    let mut reopens = false;
    while !stop.load(Ordering::Relaxed) {
        let stepped = match std::mem::take(&mut reopens) {
            true => following.reopen().map(|()| false),
            false => following.step(),
        };
        match stepped {
            Ok(true) => failures = 0,
            Ok(false) => {}
            Err(error) => {
                failures += 1;
                if failures >= FAILURES_MAX {
                    return Err(error);
                }
                tracing::warn!(%error, failures, "XFRM synchronization failed; reading all SAs and policies again. If this repeats, raise net.core.rmem_max and look at CAP_NET_ADMIN");
                reopens = true;
                std::thread::park_timeout(pause);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Steps that are read from a list, and an end.
    struct Listed {
        steps: std::vec::IntoIter<Result<bool, &'static str>>,
        reopened: usize,
        stop: Arc<AtomicBool>,
    }

    impl Following for Listed {
        fn step(&mut self) -> io::Result<bool> {
            let step = self.steps.next();
            if step.is_none() {
                self.stop.store(true, Ordering::Relaxed);
            }
            step.unwrap_or(Ok(false)).map_err(io::Error::other)
        }

        fn reopen(&mut self) -> io::Result<()> {
            self.reopened += 1;
            Ok(())
        }
    }

    fn followed(steps: Vec<Result<bool, &'static str>>) -> (io::Result<()>, usize) {
        let stop = Arc::new(AtomicBool::new(false));
        let mut listed = Listed { steps: steps.into_iter(), reopened: 0, stop: stop.clone() };
        let ended = follow(&mut listed, &stop, std::time::Duration::ZERO);
        (ended, listed.reopened)
    }

    #[test]
    fn a_failure_reads_everything_again() {
        let (ended, reopened) = followed(vec![Ok(true), Err("a"), Ok(false), Ok(true), Err("b"), Ok(true)]);
        assert!(ended.is_ok());
        assert_eq!(reopened, 2);
        // Ever so many, as long as it gets there in between.
        let (ended, reopened) = followed([Err("a"), Ok(true)].repeat(100));
        assert!(ended.is_ok());
        assert_eq!(reopened, 100);
    }

    #[test]
    fn too_many_failures_end_the_follower_with_the_last() {
        let (ended, reopened) = followed([Err("gone"), Ok(false)].repeat(100));
        assert_eq!(ended.unwrap_err().to_string(), "gone");
        assert_eq!(reopened, 4);
    }
}
