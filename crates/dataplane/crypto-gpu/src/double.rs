//! A device of the tests: it computes nothing real, and fails as it is told.
//!
//! Its cipher inverts each bit of the text, and every tag is [`TAG`]. Like a device it copies what it is given at the launch, and
//! delivers when it is done.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::keys::Record;
use crate::runtime::{Launch, Lost, Runtime, Sizes};

/// Every tag.
pub const TAG: [u8; 16] = [0x5a; 16];
/// Polls that a launch takes.
const USUAL: u32 = 3;

/// What is wrong with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    #[default]
    None,
    /// Each launch takes ten times as long.
    Slow,
    /// What comes back has wrong bits.
    Lies,
    /// Launches that are begun are refused.
    Refuses,
    /// Launches in flight end with an error, and so does every call.
    Lost,
    /// Launches never end; once it is told otherwise they do.
    Hangs,
}

/// What a test sees and says while a processor owns the device.
#[derive(Default)]
pub struct Seen {
    pub fault: Fault,
    /// Jobs of each launch.
    pub launches: Vec<u32>,
    /// Numbers of the records that were written, and whether they were zeros.
    pub written: Vec<(u32, bool)>,
    /// How often everything was wiped.
    pub wipes: u32,
    /// Whether the device was released.
    pub is_released: bool,
}

/// A handle on [`Seen`].
#[derive(Clone, Default)]
pub struct Handle(Arc<Mutex<Seen>>);

impl Handle {
    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set(&self, fault: Fault) {
        self.seen().fault = fault;
    }
}

/// The device.
pub struct Double {
    handle: Handle,
    slots: Vec<Slot>,
}

struct Slot {
    input: Vec<u8>,
    output: Vec<u8>,
    /// What it works on, and the polls that are left.
    flying: Option<(Vec<u8>, u32)>,
}

impl Double {
    pub fn new(sizes: &Sizes, handle: &Handle) -> Double {
        let slot = |_| Slot { input: vec![0; sizes.input], output: vec![0; sizes.output], flying: None };
        Double { handle: handle.clone(), slots: (0..sizes.slots).map(slot).collect() }
    }

    fn check(&self, when: Fault) -> Result<(), Lost> {
        let fault = self.handle.seen().fault;
        let failed = Lost { call: "a call", reason: "the device is lost".to_owned() };
        if fault == Fault::Lost || fault == when { Err(failed) } else { Ok(()) }
    }
}

fn word(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]) as usize
}

/// What comes back of a launch.
fn compute(input: &[u8], launch: &Launch) -> Vec<u8> {
    let mut output = vec![0; launch.output];
    for number in 0..launch.jobs as usize {
        let job = 4 * launch.jobs_at as usize + 64 * number;
        let field = |at: usize| word(input, job + 4 * at);
        let (text, len, out) = (field(2), field(3), field(13));
        for (to, from) in output[out..out + len].iter_mut().zip(&input[text..text + len]) {
            *to = !from;
        }
        let tag = 4 * launch.tags_at as usize + 16 * number;
        output[tag..tag + 16].copy_from_slice(&TAG);
    }
    output
}

impl Runtime for Double {
    fn input(&mut self, slot: usize) -> &mut [u8] {
        assert!(self.slots[slot].flying.is_none(), "in flight");
        &mut self.slots[slot].input
    }

    fn output(&self, slot: usize) -> &[u8] {
        assert!(self.slots[slot].flying.is_none(), "in flight");
        &self.slots[slot].output
    }

    fn launch(&mut self, index: usize, launch: &Launch) -> Result<(), Lost> {
        self.check(Fault::Refuses)?;
        self.handle.seen().launches.push(launch.jobs);
        let polls = if self.handle.seen().fault == Fault::Slow { 10 * USUAL } else { USUAL };
        let slot = &mut self.slots[index];
        assert!(
            slot.flying.is_none() && launch.input <= slot.input.len() && launch.output <= slot.output.len()
        );
        slot.flying = Some((compute(&slot.input, launch), polls));
        Ok(())
    }

    fn is_done(&mut self, index: usize) -> Result<bool, Lost> {
        self.check(Fault::Lost)?;
        let fault = self.handle.seen().fault;
        let slot = &mut self.slots[index];
        let Some((result, polls)) = &mut slot.flying else { return Ok(true) };
        if fault == Fault::Hangs || *polls > 0 {
            *polls = polls.saturating_sub(1);
            return Ok(false);
        }
        if fault == Fault::Lies {
            result.iter_mut().for_each(|byte| *byte ^= 1);
        }
        slot.output[..result.len()].copy_from_slice(result);
        slot.flying = None;
        Ok(true)
    }

    fn write_record(&mut self, number: u32, record: Record) -> Result<(), Lost> {
        self.check(Fault::Lost)?;
        let is_blank = record.iter().all(|&byte| byte == 0);
        self.handle.seen().written.push((number, is_blank));
        Ok(())
    }

    fn writing(&mut self) -> usize {
        0
    }

    fn wipe(&mut self) -> Result<(), Lost> {
        self.check(Fault::Lost)?;
        assert!(self.slots.iter().all(|slot| slot.flying.is_none()), "in flight");
        self.handle.seen().wipes += 1;
        Ok(())
    }
}

impl Drop for Double {
    fn drop(&mut self) {
        self.handle.seen().is_released = true;
    }
}
