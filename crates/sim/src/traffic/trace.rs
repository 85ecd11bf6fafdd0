//! A file's packets in columns.

/// Packets of a trace, in order of time where there are times. A column that the file has not is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Payloads in bytes.
    pub sizes: Vec<u32>,
    /// Times in picoseconds after the first packet.
    pub times: Vec<u64>,
    /// Security associations, numbered in the order of their first packets.
    pub sas: Vec<u32>,
    /// Service classes.
    pub classes: Vec<u8>,
    /// Whether packets had to be put into the order of their times.
    pub sorted: bool,
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

    /// Puts the packets into the order of `stamps`, those of one instant left as they are, and counts
    /// times from the first.
    pub(crate) fn set_times(&mut self, stamps: &[u128]) {
        let mut order: Vec<usize> = (0..stamps.len()).collect();
        self.sorted = !stamps.is_sorted();
        if self.sorted {
            order.sort_by_key(|&at| stamps[at]);
            self.sizes = order.iter().map(|&at| self.sizes[at]).collect();
            self.sas = picked(&self.sas, &order);
            self.classes = picked(&self.classes, &order);
        }
        let first = order.first().map_or(0, |&at| stamps[at]);
        self.times = order.iter().map(|&at| u64::try_from(stamps[at] - first).unwrap_or(u64::MAX)).collect();
    }
}

fn picked<T: Copy>(column: &[T], order: &[usize]) -> Vec<T> {
    if column.is_empty() { Vec::new() } else { order.iter().map(|&at| column[at]).collect() }
}
