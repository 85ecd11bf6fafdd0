//! Whose turn it is: strict classes by number, the weighted ones by deficit round robin.
//!
//! The variant of Linux's `fq_codel`: a class is served while it has credit, pays after its job is
//! known, and goes to the end of the line with a new quantum once its credit is spent. So a job need
//! not be formed before its class's turn, and a window goes on filling until then.
//!
//! A class whose job waits for a full queue is passed over but keeps its place in the line and its
//! credit: others may go on, each by at most one quantum and one job, and then stand behind it. That
//! bounds what can overtake a blocked job on its way to the very queue that it waits for.

use crate::{ClassConfig, Service};

/// The line of the weighted classes, and their credits.
#[derive(Debug)]
pub(crate) struct Turns {
    /// Classes below this number are strict.
    strict: usize,
    /// The weighted ones, the one that is looked at first in front.
    line: Box<[usize]>,
    /// How many classes have been looked at, strict ones first.
    place: usize,
    /// By class; those of strict ones are not used.
    accounts: Box<[Credit]>,
}

/// Bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Credit {
    /// At least 1.
    quantum: i64,
    /// At most `quantum`, and above minus the largest job.
    credit: i64,
}

impl Turns {
    pub(crate) fn new(classes: &[ClassConfig]) -> Turns {
        let strict = classes.iter().take_while(|class| class.service == Service::Strict).count();
        let account = |class: &ClassConfig| match class.service {
            Service::Strict => Credit::default(),
            Service::Weighted { weight } => {
                Credit { quantum: i64::from(weight) * i64::from(Service::QUANTUM), credit: 0 }
            }
        };
        Turns {
            strict,
            place: 0,
            line: (strict..classes.len()).collect(),
            accounts: classes.iter().map(account).collect(),
        }
    }

    /// Begins to look at the classes in their order.
    pub(crate) fn begin(&mut self) {
        self.place = 0;
    }

    /// Goes on to the class behind.
    pub(crate) fn pass(&mut self) {
        self.place += 1;
    }

    /// The class that is looked at; `None` after the last. Of the weighted ones it is the next that has
    /// credit or is not ready: a ready one that has spent it ends its turn, and gets a quantum at the
    /// end of the line.
    pub(crate) fn class(&mut self, is_ready: impl Fn(usize) -> bool) -> Option<usize> {
        if self.place < self.strict {
            return Some(self.place);
        }
        let rest = self.line.get_mut(self.place - self.strict..)?;
        loop {
            let class = *rest.first()?;
            let account = &mut self.accounts[class];
            if account.credit > 0 || !is_ready(class) {
                return Some(class);
            }
            account.credit += account.quantum;
            rest.rotate_left(1);
        }
    }

    /// A job of the class leaves.
    pub(crate) fn charge(&mut self, class: usize, bytes: u64) {
        let account = &mut self.accounts[class];
        account.credit = account.credit.saturating_sub(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    /// The class has nothing to send: credit is not saved up, a debt stays.
    pub(crate) fn forfeit(&mut self, class: usize) {
        let account = &mut self.accounts[class];
        account.credit = account.credit.min(0);
    }

    #[cfg(test)]
    pub(crate) fn credit(&self, class: usize) -> i64 {
        self.accounts[class].credit
    }
}
