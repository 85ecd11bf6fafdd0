//! Messages of a transaction (`linux/netfilter/nf_tables.h`).

use std::net::IpAddr;

use forebay_netlink::{ACK, DUMP, HEADER, put_message};

use super::expression::Attributes;
use super::table::{Chain, Hook, Match, Rule, Set, Table};

pub(super) const SUBSYSTEM: u16 = 10 << 8;
pub(super) const GET_COUNTER: u16 = SUBSYSTEM | 19;
pub(super) const GET_ELEMENTS: u16 = SUBSYSTEM | 13;
pub(super) const NEW_SET: u16 = SUBSYSTEM | 9;
pub(super) const NEW_OBJECT: u16 = SUBSYSTEM | 18;
pub(super) const NEW_GENERATION: u16 = SUBSYSTEM | 15;
const NEW_TABLE: u16 = SUBSYSTEM;
const DELETE_TABLE: u16 = SUBSYSTEM | 2;
const NEW_CHAIN: u16 = SUBSYSTEM | 3;
const NEW_RULE: u16 = SUBSYSTEM | 6;
const DELETE_RULE: u16 = SUBSYSTEM | 8;
const NEW_ELEMENTS: u16 = SUBSYSTEM | 12;
const DELETE_ELEMENTS: u16 = SUBSYSTEM | 14;
const GET_GENERATION: u16 = SUBSYSTEM | 16;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const CREATE: u16 = 0x400;
const APPEND: u16 = 0x800;
/// `NFPROTO_INET`.
const INET: u8 = 1;
/// Elements of a set in one message: an attribute is at most 64 KiB long.
const ELEMENTS: usize = 1_000;
/// `NF_IP_PRI_RAW`.
const PRIORITY: i32 = -300;

/// What decides about packets, but for elements of sets: how it is asked for, what comes, and the attributes that matter;
/// handles, counts of users and the like differ between tables that do the same.
pub(super) const CONTENT: [(u16, u16, &[u16]); 4] = [
    // Flags: a dormant table does nothing.
    (SUBSYSTEM | 1, NEW_TABLE, &[2]),
    // Name, hook and priority, policy, type, flags.
    (SUBSYSTEM | 4, NEW_CHAIN, &[3, 4, 5, 7, 10]),
    // Name, flags, type and length of keys.
    (SUBSYSTEM | 10, NEW_SET, &[2, 3, 4, 5]),
    // Chain and expressions.
    (SUBSYSTEM | 7, NEW_RULE, &[2, 4]),
];

/// Where a table's name stands in all its messages, and its own name in that of a chain, rule, set, object.
pub(super) const TABLE: u16 = 1;
pub(super) const NAME: u16 = 2;

/// Messages one after the other.
pub(super) struct Messages {
    bytes: Vec<u8>,
    sequence: u32,
}

impl Messages {
    /// A transaction with the first number behind `sequence`, that is refused if the kernel's rules are of another
    /// generation.
    pub fn batch(sequence: u32, generation: Option<u32>) -> Messages {
        let mut messages = Messages { bytes: vec![], sequence };
        messages.bound(BATCH_BEGIN, generation);
        messages
    }

    /// How long they are.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// One that asks for all objects or rules of a table, or the elements of a set.
    pub fn dump(sequence: u32, kind: u16, table: &str, set: Option<&str>) -> Messages {
        let mut messages = Messages { bytes: vec![], sequence };
        messages.message(kind, DUMP, |message| {
            message.text(TABLE, table);
            set.into_iter().for_each(|set| message.text(NAME, set));
        });
        messages
    }

    /// One that asks for the generation of the kernel's rules.
    pub fn generation(sequence: u32) -> Messages {
        let mut messages = Messages { bytes: vec![], sequence };
        messages.message(GET_GENERATION, 0, |_| {});
        messages
    }

    /// Puts a table in the place of what has its name.
    pub fn replace(&mut self, table: &Table) {
        self.delete(&table.name);
        self.renew(table);
    }

    /// Has the table of the name have these sets and rules: in its chains, if they are there. Chains and sets that are there and
    /// not in `table` stay.
    pub fn renew(&mut self, table: &Table) {
        self.message(NEW_TABLE, CREATE, |message| {
            message.text(TABLE, &table.name);
            const FLAGS: u16 = 2;
            message.number(FLAGS, 0);
        });
        for counter in &table.counters {
            self.message(NEW_OBJECT, CREATE, |message| {
                message.text(TABLE, &table.name);
                message.text(NAME, counter);
                message.number(3, 1);
                message.nested(4, |_| {});
            });
        }
        for set in &table.sets {
            self.set(&table.name, set);
            // All of them.
            self.message(DELETE_ELEMENTS, 0, |message| {
                message.text(TABLE, &table.name);
                message.text(2, set.name);
            });
            self.add(&table.name, set, &set.ranges);
        }
        table.chains.iter().for_each(|chain| self.chain(&table.name, chain));
        for chain in &table.chains {
            self.message(DELETE_RULE, 0, |message| {
                message.text(TABLE, &table.name);
                message.text(2, chain.name);
            });
            chain.rules.iter().for_each(|rule| self.rule(&table.name, chain.name, rule));
        }
    }

    /// Deletes a table, which may not be there.
    pub fn delete(&mut self, name: &str) {
        self.message(NEW_TABLE, CREATE, |message| message.text(TABLE, name));
        self.message(DELETE_TABLE, 0, |message| message.text(TABLE, name));
    }

    fn set(&mut self, table: &str, set: &Set) {
        self.message(NEW_SET, CREATE, |message| {
            message.text(TABLE, table);
            message.text(NAME, set.name);
            const INTERVAL: u32 = 4;
            message.number(3, INTERVAL);
            // What nft(8) calls the type, and its length.
            message.number(4, if set.v6 { 8 } else { 7 });
            message.number(5, if set.v6 { 16 } else { 4 });
            message.number(10, 1);
            // For nft(8): keys are big-endian.
            message.attribute(13, &[0, 4, 2, 0, 0, 0]);
        });
    }

    /// Adds ranges to a set.
    pub fn add(&mut self, table: &str, set: &Set, ranges: &[(IpAddr, IpAddr)]) {
        self.elements(NEW_ELEMENTS, CREATE, table, set, ranges);
    }

    /// Takes ranges out of a set, as they were added.
    pub fn take(&mut self, table: &str, set: &Set, ranges: &[(IpAddr, IpAddr)]) {
        self.elements(DELETE_ELEMENTS, 0, table, set, ranges);
    }

    fn elements(&mut self, kind: u16, flags: u16, table: &str, set: &Set, ranges: &[(IpAddr, IpAddr)]) {
        for ranges in ranges.chunks(ELEMENTS) {
            self.message(kind, flags, |message| {
                message.text(TABLE, table);
                message.text(2, set.name);
                message.nested(3, |list| {
                    for &(first, last) in ranges {
                        list.element(first, false);
                        // Behind the last address there is nothing to end it.
                        behind(last).into_iter().for_each(|end| list.element(end, true));
                    }
                });
            });
        }
    }

    fn chain(&mut self, table: &str, chain: &Chain) {
        self.message(NEW_CHAIN, CREATE, |message| {
            message.text(TABLE, table);
            message.text(3, chain.name);
            if let Some(hook) = chain.hook {
                message.nested(4, |nested| {
                    // `NF_INET_PRE_ROUTING` and so on.
                    nested.number(
                        1,
                        match hook {
                            Hook::Prerouting => 0,
                            Hook::Forward => 2,
                            Hook::Postrouting => 4,
                        },
                    );
                    nested.number(2, PRIORITY as u32);
                });
                const ACCEPT: u32 = 1;
                message.number(5, ACCEPT);
                message.text(7, "filter");
            }
        });
    }

    fn rule(&mut self, table: &str, chain: &str, rule: &Rule) {
        self.message(NEW_RULE, CREATE | APPEND, |message| {
            message.text(TABLE, table);
            message.text(2, chain);
            message.nested(4, |list| {
                let mut v6 = false;
                for one in &rule.matches {
                    if let Match::V6(is_v6) = one {
                        v6 = *is_v6;
                    }
                    list.compare(one, v6);
                }
                list.verdict(rule.verdict);
            });
        });
    }

    /// The bytes, and the number of the message that is acknowledged: the last one that does anything.
    pub fn end(mut self) -> (Vec<u8>, u32) {
        let last = self.sequence;
        let mut at = 0;
        while let Some(header) = self.bytes.get(at..at + HEADER) {
            let len = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]) as usize;
            if at + len.next_multiple_of(4) >= self.bytes.len() {
                let flags = u16::from_ne_bytes([header[6], header[7]]) | ACK;
                self.bytes[at + 6..at + 8].copy_from_slice(&flags.to_ne_bytes());
            }
            at += len.next_multiple_of(4);
        }
        self.bound(BATCH_END, None);
        (self.bytes, last)
    }

    /// The bytes without an end, of a question.
    pub fn question(self) -> (Vec<u8>, u32) {
        (self.bytes, self.sequence)
    }

    fn bound(&mut self, kind: u16, generation: Option<u32>) {
        // `nfgenmsg`: no family, version 0, the subsystem.
        self.raw(kind, 0, [0, 0, 0, 10], |message| {
            generation.into_iter().for_each(|generation| message.number(1, generation));
        });
    }

    fn message(&mut self, kind: u16, flags: u16, write: impl FnOnce(&mut Attributes<'_>)) {
        self.raw(kind, flags, [INET, 0, 0, 0], write);
    }

    fn raw(&mut self, kind: u16, flags: u16, general: [u8; 4], write: impl FnOnce(&mut Attributes<'_>)) {
        self.sequence = self.sequence.wrapping_add(1);
        put_message(&mut self.bytes, kind, flags, self.sequence, &general, |bytes| {
            write(&mut Attributes(bytes));
        });
    }
}

/// The address behind one, if there is one.
fn behind(address: IpAddr) -> Option<IpAddr> {
    Some(match address {
        IpAddr::V4(address) => IpAddr::V4(u32::from(address).checked_add(1)?.into()),
        IpAddr::V6(address) => IpAddr::V6(u128::from(address).checked_add(1)?.into()),
    })
}
