//! All workers of a gateway, and how the others reach them together.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::worker::{Handle, Worker};

/// The ways to all workers, by their numbers.
#[derive(Clone)]
pub struct Workers {
    handles: Arc<[Handle]>,
    /// Two changes at a time would wait for each other.
    changing: Arc<Mutex<()>>,
}

impl Workers {
    /// Those of these handles.
    pub fn new(handles: Vec<Handle>) -> Workers {
        Workers { handles: handles.into(), changing: Arc::default() }
    }

    /// The way to each.
    pub fn handles(&self) -> &[Handle] {
        &self.handles
    }

    /// The way to one of them.
    pub fn get(&self, worker: usize) -> Option<&Handle> {
        self.handles.get(worker)
    }

    /// Has each worker do something, one not knowing of the other, and waits for what comes of it; `None` if one has
    /// ended.
    pub fn ask<R: Send + 'static>(
        &self,
        order: impl Fn(&mut Worker) -> R + Send + Sync + 'static,
    ) -> Option<Vec<R>> {
        let order = Arc::new(order);
        let post = |handle: &Handle| {
            let order = order.clone();
            handle.post(move |worker| order(worker))
        };
        let answers: Vec<_> = self.handles.iter().map(post).collect();
        answers.into_iter().map(|answer| answer.recv().ok()).collect()
    }

    /// The same at one moment: no packet moves anywhere from before the first has begun until the last has done it.
    pub fn change<R: Send + 'static>(
        &self,
        order: impl Fn(&mut Worker) -> R + Send + Sync + 'static,
    ) -> Option<Vec<R>> {
        let _turn = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let order = Arc::new(order);
        // Workers without threads run only when they are called, so no packets move meanwhile.
        let stepped = self.handles.iter().any(Handle::is_stepped);
        let workers = if stepped { 0 } else { self.handles.len() };
        let stop = Arc::new(Standstill { workers, ..Standstill::default() });
        let post = |handle: &Handle| {
            let (order, mut seat) = (order.clone(), Seat { at: stop.clone(), arrived: 0 });
            handle.post(move |worker| {
                seat.arrive();
                let done = order(worker);
                seat.arrive();
                done
            })
        };
        let answers: Vec<_> = self.handles.iter().map(post).collect();
        answers.into_iter().map(|answer| answer.recv().ok()).collect()
    }
}

/// Where workers wait for each other, before a change and behind it.
#[derive(Debug, Default)]
struct Standstill {
    workers: usize,
    arrived: [AtomicUsize; 2],
}

/// One worker's place there. A worker that ends, before or during the change, does not block the others: dropping its
/// seat counts as arriving.
struct Seat {
    at: Arc<Standstill>,
    arrived: usize,
}

impl Seat {
    fn arrive(&mut self) {
        let arrived = &self.at.arrived[self.arrived];
        self.arrived += 1;
        arrived.fetch_add(1, Ordering::AcqRel);
        while arrived.load(Ordering::Acquire) < self.at.workers {
            // The others are at their next round in some microseconds, if they have a core.
            std::thread::yield_now();
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        for arrived in &self.at.arrived[self.arrived..] {
            arrived.fetch_add(1, Ordering::AcqRel);
        }
    }
}
