//! The direction of an SA, which the kernel does not report before Linux 6.10.
//!
//! The first of these sources that gives an answer decides:
//! 1. the SA itself (`XFRMA_SA_DIR`);
//! 2. a policy with a template for its protocol and both its addresses: the SA is outbound for a policy on outgoing
//!    packets and inbound for one on arriving packets; if there are both, this gives no answer;
//! 3. the addresses of this machine: packets to one of them are opened, packets from one of them are sealed; if both
//!    or neither are, this gives no answer.
//!
//! An SA whose direction is not known waits until a policy or an address arrives that decides it.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use forebay_crypto::Direction;

use crate::Way;
use crate::kernel::{KernelPolicy, KernelSa};

/// What tells directions.
#[derive(Debug, Default)]
pub struct Compass {
    /// Policies with a template of this protocol, source and destination: that seal, that open.
    templates: HashMap<(u8, IpAddr, IpAddr), [u32; 2]>,
    /// Interfaces with their addresses.
    addresses: HashSet<(u32, IpAddr)>,
    /// The addresses, and how many interfaces have each.
    own: HashMap<IpAddr, u32>,
}

impl Compass {
    /// Which way an SA goes.
    pub fn direction(&self, sa: &KernelSa) -> Option<Direction> {
        sa.direction.or_else(|| self.by_template(sa)).or_else(|| self.by_address(sa))
    }

    fn by_template(&self, sa: &KernelSa) -> Option<Direction> {
        match self.templates.get(&(sa.id.protocol, sa.source, sa.id.destination))? {
            [_, 0] => Some(Direction::Seal),
            [0, _] => Some(Direction::Open),
            _ => None,
        }
    }

    fn by_address(&self, sa: &KernelSa) -> Option<Direction> {
        let own = |address| self.own.contains_key(&address);
        match (own(sa.source), own(sa.id.destination)) {
            (true, false) => Some(Direction::Seal),
            (false, true) => Some(Direction::Open),
            _ => None,
        }
    }

    /// Takes a policy into account.
    pub fn add_policy(&mut self, policy: &KernelPolicy) {
        for key in keys(policy) {
            self.templates.entry(key).or_default()[usize::from(policy.way != Way::Out)] += 1;
        }
    }

    /// Forgets a policy that was taken into account.
    pub fn remove_policy(&mut self, policy: &KernelPolicy) {
        for key in keys(policy) {
            if let Some(counts) = self.templates.get_mut(&key) {
                let count = &mut counts[usize::from(policy.way != Way::Out)];
                *count = count.saturating_sub(1);
                if *counts == [0, 0] {
                    self.templates.remove(&key);
                }
            }
        }
    }

    /// An interface has an address, or has it no more.
    pub fn set_address(&mut self, interface: u32, address: IpAddr, present: bool) {
        if present && self.addresses.insert((interface, address)) {
            *self.own.entry(address).or_default() += 1;
        } else if !present && self.addresses.remove(&(interface, address)) {
            let count = self.own.entry(address).or_default();
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.own.remove(&address);
            }
        }
    }

    /// Forgets all addresses, before they are told anew.
    pub fn forget_addresses(&mut self) {
        self.addresses.clear();
        self.own.clear();
    }
}

fn keys(policy: &KernelPolicy) -> impl Iterator<Item = (u8, IpAddr, IpAddr)> {
    policy.templates.iter().map(|template| (template.protocol, template.source, template.destination))
}
