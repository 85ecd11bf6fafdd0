//! The CPUs of the running core and of its workers.
//!
//! A worker that is woken may be put on the CPU of the thread that wakes it, and it can take the system a tenth of a
//! second to part the two. Until then the two take turns, and the engine learns that the worker is slow.

use std::io;

/// The CPUs that a process may use: one for its running core, and the others for workers.
#[derive(Clone, Copy, Debug)]
pub struct Cpus(#[cfg(target_os = "linux")] linux::Divided);

impl Cpus {
    /// Divides them: the calling thread's CPU is the running core. `None` if the process may use only one, or if the
    /// system does not tell.
    pub fn divide() -> Option<Cpus> {
        #[cfg(target_os = "linux")]
        return linux::divide().map(Cpus);
        #[cfg(not(target_os = "linux"))]
        None
    }

    /// Keeps the calling thread on the running core's CPU. Threads that it starts inherit that.
    ///
    /// # Errors
    /// If the process may not use that CPU any more.
    pub fn run_here(&self) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        linux::keep(&self.0.running)?;
        Ok(())
    }

    /// Lets the calling thread run on all of them again.
    ///
    /// # Errors
    /// If the process may not use them any more.
    pub fn run_anywhere(&self) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        linux::keep(&self.0.all)?;
        Ok(())
    }

    /// Keeps the calling thread off the running core's CPU.
    ///
    /// # Errors
    /// If the process may not use the other CPUs any more.
    pub fn run_beside(&self) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        linux::keep(&self.0.others)?;
        Ok(())
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;

    use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

    #[derive(Clone, Copy, Debug)]
    pub(super) struct Divided {
        pub(super) all: CpuSet,
        pub(super) running: CpuSet,
        pub(super) others: CpuSet,
    }

    pub(super) fn divide() -> Option<Divided> {
        let all = sched_getaffinity(None).ok()?;
        let (mut others, here) = (all, sched_getcpu());
        if others.count() < 2 || !others.is_set(here) {
            return None;
        }
        others.unset(here);
        let mut running = CpuSet::new();
        running.set(here);
        Some(Divided { all, running, others })
    }

    pub(super) fn keep(set: &CpuSet) -> io::Result<()> {
        Ok(sched_setaffinity(None, set)?)
    }
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;
    use rustix::thread::sched_getaffinity;

    #[test]
    fn the_running_core_and_its_workers_have_different_cpus() {
        let threads = std::thread::spawn(|| {
            let before = sched_getaffinity(None).unwrap();
            let Some(cpus) = Cpus::divide() else { return assert_eq!(before.count(), 1) };
            cpus.run_here().unwrap();
            let here = sched_getaffinity(None).unwrap();
            let worker = std::thread::spawn(move || {
                cpus.run_beside().unwrap();
                sched_getaffinity(None).unwrap()
            });
            let beside = worker.join().unwrap();
            assert_eq!((here.count(), beside.count()), (1, before.count() - 1));
            cpus.run_anywhere().unwrap();
            assert!(sched_getaffinity(None).unwrap() == before);
            assert!((0..1_024).all(|cpu| !(here.is_set(cpu) && beside.is_set(cpu))));
        });
        threads.join().unwrap();
    }
}
