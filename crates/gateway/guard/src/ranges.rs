//! Sets of addresses of one IP version, as ranges.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use forebay_ipsec::TrafficSelector;
use ipnet::IpNet;

/// Prefixes shorter than these cannot be the networks of a peer alone.
const WIDE_V4: u32 = 8;
const WIDE_V6: u32 = 16;
/// Addresses that no tunnel carries: this host, this link, groups.
const NEVER: [&str; 7] = [
    "0.0.0.0/8",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "224.0.0.0/4",
    "255.255.255.255/32",
    "::/127",
    "fe80::/10",
];
const GROUPS_V6: &str = "ff00::/8";

/// From a first address to a last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Range {
    first: u128,
    last: u128,
}

impl Range {
    /// As addresses.
    pub fn addresses(self, v6: bool) -> (IpAddr, IpAddr) {
        (address(self.first, v6), address(self.last, v6))
    }

    /// Whether it is wider than the networks of one peer.
    pub fn is_wide(self, v6: bool) -> bool {
        let most = if v6 { 1 << (128 - WIDE_V6) } else { 1 << (32 - WIDE_V4) };
        self.last - self.first >= most
    }

    /// Whether it is every address.
    pub fn is_all(self, v6: bool) -> bool {
        self == all(v6)
    }
}

/// Ranges; after [`Ranges::settle`] sorted and disjoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges(Vec<Range>);

impl From<Range> for Ranges {
    fn from(range: Range) -> Ranges {
        Ranges(vec![range])
    }
}

impl Ranges {
    /// The ranges of one IP version in selectors; without selectors, any address.
    pub fn of(selectors: &[TrafficSelector], v6: bool) -> Ranges {
        let range = |selector: &TrafficSelector| match selector.addresses() {
            None => Some(all(v6)),
            Some((first, last)) => {
                (first.is_ipv6() == v6).then(|| Range { first: number(first), last: number(last) })
            }
        };
        let mut ranges = Ranges(if selectors.is_empty() {
            vec![all(v6)]
        } else {
            selectors.iter().filter_map(range).collect()
        });
        ranges.settle();
        ranges
    }

    /// The ranges of single addresses of one IP version.
    pub fn alone(addresses: &[IpAddr], v6: bool) -> Ranges {
        let addresses = addresses.iter().filter(|address| address.is_ipv6() == v6);
        Ranges(addresses.map(|&one| Range { first: number(one), last: number(one) }).collect())
    }

    /// Addresses that are never guarded: those that no tunnel carries, and `except`.
    pub fn spared(v6: bool, except: &[IpNet]) -> Ranges {
        let never = NEVER.into_iter().chain([GROUPS_V6]).filter_map(|text| text.parse::<IpNet>().ok());
        let nets = never.chain(except.iter().copied()).filter(|net| net.network().is_ipv6() == v6);
        let mut ranges = Ranges(
            nets.map(|net| Range { first: number(net.network()), last: number(net.broadcast()) }).collect(),
        );
        ranges.settle();
        ranges
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = Range> {
        self.0.iter().copied()
    }

    /// Adds others.
    pub fn add(&mut self, others: &Ranges) {
        self.0.extend(&others.0);
    }

    /// Sorts the ranges and merges those that overlap or touch.
    pub fn settle(&mut self) {
        if self.0.is_sorted_by(|a, b| a.last < b.first && a.last + 1 < b.first) {
            return;
        }
        self.0.sort_unstable();
        let mut merged: Vec<Range> = Vec::with_capacity(self.0.len());
        for range in self.0.drain(..) {
            match merged.last_mut() {
                Some(last) if range.first <= last.last.saturating_add(1) => {
                    last.last = last.last.max(range.last)
                }
                _ => merged.push(range),
            }
        }
        self.0 = merged;
    }

    /// The ranges that are not wider than `range`.
    pub fn not_wider_than(&self, range: Range) -> Ranges {
        let width = |one: &Range| one.last - one.first;
        Ranges(self.0.iter().filter(|one| width(one) <= width(&range)).copied().collect())
    }

    /// The addresses that are in none of the others; both are settled.
    pub fn without(&self, others: &Ranges) -> Ranges {
        let mut left = Vec::new();
        for range in &self.0 {
            let mut first = Some(range.first);
            let from = others.0.partition_point(|other| other.last < range.first);
            for other in others.0[from..].iter().take_while(|other| other.first <= range.last) {
                if let Some(first) = first.filter(|first| *first < other.first) {
                    left.push(Range { first, last: other.first - 1 });
                }
                first = other.last.checked_add(1).filter(|first| *first <= range.last);
            }
            left.extend(first.map(|first| Range { first, last: range.last }));
        }
        Ranges(left)
    }

    /// As addresses.
    pub fn addresses(&self, v6: bool) -> Vec<(IpAddr, IpAddr)> {
        self.0.iter().map(|range| range.addresses(v6)).collect()
    }
}

fn all(v6: bool) -> Range {
    Range { first: 0, last: if v6 { u128::MAX } else { u32::MAX.into() } }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u32::from(address).into(),
        IpAddr::V6(address) => address.into(),
    }
}

fn address(number: u128, v6: bool) -> IpAddr {
    if v6 { Ipv6Addr::from(number).into() } else { Ipv4Addr::from(number as u32).into() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ranges(of: &[(u8, u8)]) -> Ranges {
        let range = |&(a, b): &(u8, u8)| Range { first: a.min(b).into(), last: a.max(b).into() };
        let mut ranges = Ranges(of.iter().map(range).collect());
        ranges.settle();
        ranges
    }

    fn has(ranges: &Ranges, number: u8) -> bool {
        ranges.iter().any(|range| range.first <= number.into() && u128::from(number) <= range.last)
    }

    proptest! {
        #[test]
        fn each_number_is_where_it_belongs(
            a in prop::collection::vec(any::<(u8, u8)>(), 0..8),
            b in prop::collection::vec(any::<(u8, u8)>(), 0..8),
        ) {
            let (first, second) = (ranges(&a), ranges(&b));
            let without = first.without(&second);
            for number in 0..=u8::MAX {
                let is_in = |pairs: &[(u8, u8)]| pairs.iter().any(|&(a, b)| a.min(b) <= number && number <= a.max(b));
                prop_assert_eq!(has(&first, number), is_in(&a));
                prop_assert_eq!(has(&without, number), is_in(&a) && !is_in(&b));
            }
            for pair in first.0.windows(2).chain(without.0.windows(2)) {
                prop_assert!(pair[0].last < pair[1].first);
            }
            prop_assert!(first.0.windows(2).all(|pair| pair[0].last + 1 < pair[1].first));
        }
    }

    #[test]
    fn the_last_address_has_none_behind_it() {
        let all = Ranges::from(all(true));
        let half = Ranges::of(&["8000::/1".parse().unwrap()], true);
        assert_eq!(
            all.without(&half).addresses(true)[0].1.to_string(),
            "7fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"
        );
        assert!(half.without(&all).is_empty());
        let mut both = half.clone();
        both.add(&all);
        both.settle();
        assert_eq!(both, all);
    }
}
