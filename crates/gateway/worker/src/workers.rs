//! All workers of a gateway, and how the others reach them together.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
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

    /// Has the first worker, which carries out what changes SAs, do something between two rounds; `None` if it has ended.
    pub fn first<R: Send + 'static>(
        &self,
        order: impl FnOnce(&mut Worker) -> R + Send + 'static,
    ) -> Option<R> {
        self.handles.first()?.ask(order)
    }

    /// The same while no packet moves anywhere.
    pub fn change<R: Send + 'static>(
        &self,
        order: impl FnOnce(&mut Worker) -> R + Send + 'static,
    ) -> Option<R> {
        let _turn = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let (first, others) = self.handles.split_first()?;
        // Workers without threads run only when they are called, so no packets move meanwhile.
        if first.is_stepped() {
            return first.ask(order);
        }
        let stop = Arc::new(Standstill { workers: others.len(), ..Standstill::default() });
        let stand = |other: &Handle| {
            let seat = Seat(stop.clone());
            other.post(move |worker| seat.wait(worker))
        };
        let standing: Vec<_> = others.iter().map(stand).collect();
        let over = Over(stop);
        let done = first.ask(move |worker| {
            over.wait(worker);
            order(worker)
        });
        // A worker that has ended does not answer.
        standing.into_iter().for_each(|stood| _ = stood.recv());
        done
    }
}

/// Where the other workers wait while the first one changes something.
#[derive(Debug, Default)]
struct Standstill {
    workers: usize,
    arrived: AtomicUsize,
    is_over: AtomicBool,
}

/// One worker's place there. A worker that ends does not block the others: dropping its seat counts as arriving.
struct Seat(Arc<Standstill>);

impl Seat {
    fn wait(self, worker: &mut Worker) {
        let stop = self.0.clone();
        drop(self);
        while !stop.is_over.load(Ordering::Acquire) {
            // What it has in flight may be what the first one waits for.
            worker.poll();
            std::thread::yield_now();
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.arrived.fetch_add(1, Ordering::AcqRel);
    }
}

/// The end of a standstill: when this is dropped, whatever happens before.
struct Over(Arc<Standstill>);

impl Over {
    fn wait(&self, worker: &mut Worker) {
        while self.0.arrived.load(Ordering::Acquire) < self.0.workers {
            // The others are at their next round in some microseconds, if they have a core.
            worker.poll();
            std::thread::yield_now();
        }
    }
}

impl Drop for Over {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Release);
    }
}
