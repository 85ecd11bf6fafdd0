//! Many runs on all cores, what comes of them in the order in which they were asked for.
//!
//! Not rayon's pool: results are passed on in order while others still run, each run can be stopped between two of its
//! steps, and the calling thread looks after progress and interrupts meanwhile.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// Maximum interval between two checks whether the run continues.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// Whether to go on; workers ask it between steps.
pub type GoOn<'a> = &'a (dyn Fn() -> ControlFlow<()> + Sync);

/// Does `work` for each item on up to `threads` threads, whose number affects only the time taken. `hear` gets each
/// result when it is ready, with its item's position, and `None` now and then between results. Once it has returned a
/// break, no item is begun; those in progress are notified by [`GoOn`], and their results are still passed to `hear`.
pub fn each<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    work: impl Fn(&T, GoOn<'_>) -> R + Sync,
    mut hear: impl FnMut(Option<(usize, R)>) -> ControlFlow<()>,
) {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (sender, results) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, items.len().max(1)) {
            let (sender, next, stop, work) = (sender.clone(), &next, &stop, &work);
            scope.spawn(move || {
                let go_on = || match stop.load(Ordering::Relaxed) {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                };
                while go_on().is_continue() {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(at) else { return };
                    if sender.send((at, work(item, &go_on))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        loop {
            let heard = match results.recv_timeout(ASK_EVERY) {
                Ok(result) => hear(Some(result)),
                Err(mpsc::RecvTimeoutError::Timeout) => hear(None),
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
            };
            if heard.is_break() {
                stop.store(true, Ordering::Relaxed);
            }
        }
    });
}

/// [`each`] where one item gives several results, each with a number of its own from 0 on, and `deliver` gets them in
/// the order of their numbers. `work` gives nothing for an item that was stopped. `look` is called with the number of
/// results. Returns how many were delivered: fewer than all if the run was stopped, and then some before the last may
/// be missing.
///
/// # Errors
/// The first of `work` that comes, or of `deliver`.
pub fn in_order<T: Sync, R: Send, E: Send>(
    items: &[T],
    threads: usize,
    work: impl Fn(&T, GoOn<'_>) -> Result<Vec<(usize, R)>, E> + Sync,
    mut look: impl FnMut(usize) -> ControlFlow<()>,
    mut deliver: impl FnMut(usize, R) -> Result<(), E>,
) -> Result<usize, E> {
    let mut early: BTreeMap<usize, R> = BTreeMap::new();
    let (mut done, mut delivered) = (0, 0);
    let mut failed: Option<E> = None;
    each(items, threads, work, |result| {
        if failed.is_some() {
            return ControlFlow::Break(());
        }
        match result.map(|(_, results)| results) {
            Some(Ok(results)) => {
                done += results.len();
                early.extend(results);
            }
            Some(Err(error)) => failed = Some(error),
            None => {}
        }
        while let (None, Some(result)) = (&failed, early.remove(&delivered)) {
            match deliver(delivered, result) {
                Ok(()) => delivered += 1,
                Err(error) => failed = Some(error),
            }
        }
        let asked = look(done);
        if failed.is_some() { ControlFlow::Break(()) } else { asked }
    });
    // What was done while a run before it was broken off.
    for (number, result) in early {
        if failed.is_none() {
            match deliver(number, result) {
                Ok(()) => delivered += 1,
                Err(error) => failed = Some(error),
            }
        }
    }
    failed.map_or(Ok(delivered), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(&item: &usize, _: GoOn<'_>) -> Result<Vec<(usize, usize)>, String> {
        Ok(vec![(2 * item, item), (2 * item + 1, 10 * item)])
    }

    #[test]
    fn results_of_any_number_of_threads_are_delivered_in_order() {
        let items: Vec<usize> = (0..50).collect();
        for threads in [0, 1, 3, 100] {
            let mut came = Vec::new();
            let look = |_| ControlFlow::Continue(());
            let delivered = in_order(&items, threads, numbered, look, |number, result| {
                came.push((number, result));
                Ok(())
            });
            assert_eq!(delivered, Ok(100));
            assert!(came.iter().enumerate().all(|(at, (number, _))| at == *number));
            assert_eq!(came[7], (7, 30));
        }
    }

    #[test]
    fn a_break_ends_what_is_under_way_and_keeps_what_is_done() {
        let items: Vec<usize> = (0..20).collect();
        // Every item but the first lasts until it is told to end.
        let work = |&item: &usize, go_on: GoOn<'_>| -> Result<Vec<(usize, usize)>, String> {
            if item == 0 {
                return Ok(vec![(0, 0)]);
            }
            while go_on().is_continue() {
                std::thread::yield_now();
            }
            Ok(Vec::new())
        };
        let mut came = Vec::new();
        let look = |done| if done > 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        let delivered = in_order(&items, 2, work, look, |number, _| {
            came.push(number);
            Ok(())
        });
        assert_eq!((delivered, came), (Ok(1), vec![0]));
    }

    #[test]
    fn an_error_of_work_or_of_delivery_is_the_answer() {
        let items = [0, 1, 2];
        let go = |_| ControlFlow::Continue(());
        let work = |&item: &usize, _: GoOn<'_>| match item {
            1 => Err("work".to_owned()),
            _ => Ok(vec![(item, item)]),
        };
        assert_eq!(in_order(&items, 1, work, go, |_, _| Ok(())), Err("work".to_owned()));
        let refused = in_order(&items, 1, numbered, go, |_, _| Err("delivery".to_owned()));
        assert_eq!(refused, Err("delivery".to_owned()));
    }
}
