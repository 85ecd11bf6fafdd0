//! A file's packets in columns.

/// Packets of a trace in the order of the file. A column that the file has not is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Payloads in bytes.
    pub sizes: Vec<u32>,
    /// Times in picoseconds after the earliest packet.
    pub times: Vec<u64>,
    /// Security associations, numbered in the order of their first packets.
    pub sas: Vec<u32>,
    /// Service classes.
    pub classes: Vec<u8>,
    /// Code points of a capture's packets (RFC 2474), until the scenario's classes are known.
    pub dscps: Vec<u8>,
    /// Records of the file that are no packets, e.g. frames without IP.
    pub skipped: u64,
}

impl Trace {
    /// How many packets there are.
    pub fn len(&self) -> usize {
        self.sizes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.sizes.is_empty()
    }

    /// The mean payload in bytes.
    pub fn mean(&self) -> f64 {
        self.sizes.iter().map(|&size| u64::from(size)).sum::<u64>() as f64 / self.len().max(1) as f64
    }

    /// Sets the times, counted from the earliest.
    ///
    /// # Errors
    /// The time from the first to the last in picoseconds, if it is beyond 64 bits.
    pub(crate) fn set_times(&mut self, stamps: &[u128]) -> Result<(), u128> {
        let first = stamps.iter().min().copied().unwrap_or(0);
        let times = stamps.iter().map(|at| u64::try_from(at - first).map_err(|_| at - first));
        self.times = times.collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Puts the packets into the order of their times, those of one instant left as they are; whether
    /// they had not been.
    pub fn sort(&mut self) -> bool {
        if self.times.is_sorted() {
            return false;
        }
        let mut order: Vec<usize> = (0..self.times.len()).collect();
        order.sort_by_key(|&at| self.times[at]);
        self.sizes = picked(&self.sizes, &order);
        self.times = picked(&self.times, &order);
        self.sas = picked(&self.sas, &order);
        self.classes = picked(&self.classes, &order);
        self.dscps = picked(&self.dscps, &order);
        true
    }
}

fn picked<T: Copy>(column: &[T], order: &[usize]) -> Vec<T> {
    if column.is_empty() { Vec::new() } else { order.iter().map(|&at| column[at]).collect() }
}
