//! Threads that stay on their CPUs.

use std::io;

use rustix::thread::{CpuSet, sched_setaffinity};

/// Keeps the calling thread on a CPU, numbered from 0; wherever it likes for `None`.
///
/// # Errors
/// If the machine has no such CPU, or the process may not use it.
pub fn pin(cpu: Option<u32>) -> io::Result<()> {
    let Some(cpu) = cpu else { return Ok(()) };
    let unknown = |error: io::Error| {
        let what = format!("`pin`: cannot set the CPU affinity to CPU {cpu}: {error}");
        io::Error::new(error.kind(), what)
    };
    if cpu as usize >= CpuSet::MAX_CPU {
        return Err(unknown(io::ErrorKind::InvalidInput.into()));
    }
    let mut set = CpuSet::new();
    set.set(cpu as usize);
    sched_setaffinity(None, &set).map_err(|error| unknown(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::sched_getaffinity;

    #[test]
    fn a_thread_is_where_it_is_pinned_and_nowhere_that_there_is_not() {
        // On a thread of its own: others keep their CPUs.
        let pinned = std::thread::spawn(|| {
            let before = sched_getaffinity(None).unwrap();
            let cpu = (0..CpuSet::MAX_CPU).find(|&cpu| before.is_set(cpu)).unwrap();
            pin(Some(cpu as u32)).unwrap();
            let now = sched_getaffinity(None).unwrap();
            assert!(pin(Some(8_191)).unwrap_err().to_string().contains("CPU 8191"));
            pin(None).unwrap();
            (now.count(), now.is_set(cpu), sched_getaffinity(None).unwrap() == now)
        });
        assert_eq!(pinned.join().unwrap(), (1, true, true));
    }
}
