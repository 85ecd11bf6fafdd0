//! What messages hold: attributes, and the expressions that rules are made of (`linux/netfilter/nf_tables.h`). Numbers are
//! big-endian; what packets are compared with stands as it does in them.

use std::net::IpAddr;

use forebay_netlink::{put_attribute, put_nested};

use super::table::{End, Match, Verdict};

/// `NFPROTO_IPV4`, `NFPROTO_IPV6`.
const V4: u8 = 2;
const V6: u8 = 10;
const REGISTER: u32 = 1;
/// Where a verdict goes.
const VERDICT: u32 = 0;
/// `NFT_PAYLOAD_`.
const NETWORK: u32 = 1;
const TRANSPORT: u32 = 2;

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// How a comparison is made.
#[derive(Clone, Copy)]
enum Op {
    Equal = 0,
    Other = 1,
    AtMost = 3,
    AtLeast = 5,
}

/// Attributes in the making.
pub(super) struct Attributes<'a>(pub(super) &'a mut Vec<u8>);

impl Attributes<'_> {
    pub fn attribute(&mut self, kind: u16, value: &[u8]) {
        put_attribute(self.0, kind, value);
    }

    pub fn text(&mut self, kind: u16, text: &str) {
        self.attribute(kind, &[text.as_bytes(), &[0]].concat());
    }

    pub fn number(&mut self, kind: u16, number: u32) {
        self.attribute(kind, &number.to_be_bytes());
    }

    pub fn nested(&mut self, kind: u16, write: impl FnOnce(&mut Attributes<'_>)) {
        put_nested(self.0, kind, |bytes| write(&mut Attributes(bytes)));
    }

    /// An element of a list of them.
    pub fn element(&mut self, address: IpAddr, is_end: bool) {
        self.nested(1, |element| {
            element.nested(1, |key| key.attribute(1, &octets(address)));
            const INTERVAL_END: u32 = 1;
            if is_end {
                element.number(3, INTERVAL_END);
            }
        });
    }

    /// An expression of a list of them.
    fn expression(&mut self, name: &str, write: impl FnOnce(&mut Attributes<'_>)) {
        self.nested(1, |expression| {
            expression.text(1, name);
            expression.nested(2, write);
        });
    }

    pub fn compare(&mut self, what: &Match, v6: bool) {
        match what {
            Match::ArrivesBy(name) => self.is_named(6, name),
            Match::LeavesBy(name) => self.is_named(7, name),
            Match::ArrivesByIndex(index) => self.has_number(4, *index),
            Match::LeavesByIndex(index) => self.has_number(5, *index),
            Match::V6(v6) => {
                self.meta(15);
                self.cmp(Op::Equal, &[if *v6 { V6 } else { V4 }]);
            }
            Match::InSet(end, set) => {
                self.address(*end, v6);
                self.expression("lookup", |lookup| {
                    lookup.text(1, set);
                    lookup.number(2, REGISTER);
                });
            }
            Match::InRange(end, first, last) => {
                self.address(*end, v6);
                self.between(&octets(*first), &octets(*last));
            }
            Match::IsLocal(end) => {
                const LOCAL: u32 = 2;
                self.has_type(if *end == End::Source { 1 } else { 2 }, LOCAL);
            }
            Match::IsBroadcast => {
                const BROADCAST: u32 = 3;
                const DESTINATION_BY_INTERFACE: u32 = 2 | 8;
                self.has_type(DESTINATION_BY_INTERFACE, BROADCAST);
            }
            Match::Protocol(protocol) => {
                self.meta(16);
                self.cmp(Op::Equal, &[*protocol]);
            }
            Match::Port(end, first, last) => {
                self.payload(TRANSPORT, if *end == End::Source { 0 } else { 2 }, 2);
                self.between(&first.to_be_bytes(), &last.to_be_bytes());
            }
            Match::Type(first, last) => {
                self.payload(TRANSPORT, 0, 1);
                self.between(&[*first], &[*last]);
            }
            Match::TypeAndCode(first, last) => {
                self.payload(TRANSPORT, 0, 2);
                self.between(&first.to_be_bytes(), &last.to_be_bytes());
            }
            Match::FromLink => {
                self.payload(NETWORK, 7, 1);
                self.cmp(Op::Equal, &[255]);
            }
            Match::LaterFragment { v6: false } => {
                self.payload(NETWORK, 6, 2);
                self.is_any_of(&[0x1f, 0xff]);
            }
            Match::LaterFragment { v6: true } => {
                self.expression("exthdr", |exthdr| {
                    exthdr.number(1, REGISTER);
                    exthdr.attribute(2, &[44]);
                    exthdr.number(3, 2);
                    exthdr.number(4, 2);
                });
                self.is_any_of(&[0xff, 0xf8]);
            }
        }
    }

    /// The routing table gives an address this type.
    fn has_type(&mut self, flags: u32, kind: u32) {
        const ADDRESS_TYPE: u32 = 3;
        self.expression("fib", |fib| {
            fib.number(1, REGISTER);
            fib.number(2, ADDRESS_TYPE);
            fib.number(3, flags);
        });
        self.cmp(Op::Equal, &kind.to_ne_bytes());
    }

    fn is_named(&mut self, key: u32, name: &str) {
        let mut padded = [0; 16];
        let len = name.len().min(15);
        padded[..len].copy_from_slice(&name.as_bytes()[..len]);
        self.meta(key);
        self.cmp(Op::Equal, &padded);
    }

    fn has_number(&mut self, key: u32, index: u32) {
        self.meta(key);
        self.cmp(Op::Equal, &index.to_ne_bytes());
    }

    fn meta(&mut self, key: u32) {
        self.expression("meta", |meta| {
            meta.number(1, REGISTER);
            meta.number(2, key);
        });
    }

    fn address(&mut self, end: End, v6: bool) {
        let (at, len) = match (v6, end) {
            (false, End::Source) => (12, 4),
            (false, End::Destination) => (16, 4),
            (true, End::Source) => (8, 16),
            (true, End::Destination) => (24, 16),
        };
        self.payload(NETWORK, at, len);
    }

    fn payload(&mut self, base: u32, at: u32, len: u32) {
        self.expression("payload", |payload| {
            payload.number(1, REGISTER);
            payload.number(2, base);
            payload.number(3, at);
            payload.number(4, len);
        });
    }

    fn cmp(&mut self, op: Op, value: &[u8]) {
        self.expression("cmp", |cmp| {
            cmp.number(1, REGISTER);
            cmp.number(2, op as u32);
            cmp.nested(3, |data| data.attribute(1, value));
        });
    }

    fn between(&mut self, first: &[u8], last: &[u8]) {
        if first == last {
            return self.cmp(Op::Equal, first);
        }
        self.cmp(Op::AtLeast, first);
        self.cmp(Op::AtMost, last);
    }

    /// One of these bits is set.
    fn is_any_of(&mut self, mask: &[u8; 2]) {
        self.expression("bitwise", |bitwise| {
            bitwise.number(1, REGISTER);
            bitwise.number(2, REGISTER);
            bitwise.number(3, 2);
            bitwise.nested(4, |data| data.attribute(1, mask));
            bitwise.nested(5, |data| data.attribute(1, &[0; 2]));
        });
        self.cmp(Op::Other, &[0; 2]);
    }

    pub fn verdict(&mut self, verdict: Verdict) {
        const DROP: i32 = 0;
        const ACCEPT: i32 = 1;
        const GOTO: i32 = -4;
        if let Verdict::Drop(counter) = verdict {
            self.expression("objref", |object| {
                object.number(1, 1);
                object.text(2, counter);
            });
        }
        self.expression("immediate", |immediate| {
            immediate.number(1, VERDICT);
            immediate.nested(2, |data| {
                data.nested(2, |code| match verdict {
                    Verdict::Accept => code.number(1, ACCEPT as u32),
                    Verdict::Drop(_) => code.number(1, DROP as u32),
                    Verdict::Goto(chain) => {
                        code.number(1, GOTO as u32);
                        code.text(2, chain);
                    }
                });
            });
        });
    }
}
