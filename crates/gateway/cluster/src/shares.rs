//! The share of an SA, and the gateway that should serve a share.
//!
//! All gateways of all versions have to agree about both, so neither may depend on a library's hash.

use std::net::IpAddr;

use forebay_config::ShareBy;
use forebay_sas::{SaEntry, SasFile};

/// How SAs are divided into shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// Number of shares.
    pub count: u16,
    /// The property of an SA that selects its share.
    pub by: ShareBy,
}

impl Shares {
    /// The share of each SA of a file. A nested SA has the share of its outer SA.
    pub fn of_file(self, file: &SasFile) -> Vec<u16> {
        let share = |entry: &SaEntry| {
            let mut outermost = entry;
            // The reader refuses circles, and allows less nesting than a hundred.
            for _ in 0..100 {
                match outermost.outer.and_then(|outer| file.entries.get(outer)) {
                    Some(outer) => outermost = outer,
                    None => break,
                }
            }
            self.of(outermost)
        };
        file.entries.iter().map(share).collect()
    }

    /// The share of an outer address of the gateways, or of peers: see [`ShareBy`].
    pub fn of_address(self, address: IpAddr) -> u16 {
        match address {
            IpAddr::V4(address) => self.of_bytes(&address.octets()),
            IpAddr::V6(address) => self.of_bytes(&address.octets()),
        }
    }

    fn of(self, entry: &SaEntry) -> u16 {
        match self.by {
            ShareBy::Local => self.of_address(entry.config.local),
            ShareBy::Remote => self.of_address(entry.config.remote),
            ShareBy::Spi => self.of_bytes(&entry.config.spi.get().to_be_bytes()),
        }
    }

    fn of_bytes(self, bytes: &[u8]) -> u16 {
        (hash(bytes, 0) % u64::from(self.count)) as u16
    }
}

/// The gateway of these that should serve a share: the one with the highest hash of its name and the share. A gateway that
/// joins or leaves moves no shares between others (rendezvous hashing, Thaler and Ravishankar 1998). `None` without any.
pub fn target<'a>(share: u16, gateways: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    gateways.into_iter().max_by_key(|name| (hash(name.as_bytes(), u64::from(share) + 1), *name))
}

/// FNV-1a, and the finalizer of SplitMix64, without which the values of similar texts are alike.
fn hash(bytes: &[u8], seed: u64) -> u64 {
    let mut value = bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    value = value.wrapping_add(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gateways with these names.
    fn names(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("gw-{number}")).collect()
    }

    #[test]
    fn the_hash_is_the_same_for_good() {
        assert_eq!(hash(b"", 0), 0xf52a_15e9_a9b5_e89b);
        assert_eq!(target(7, ["a", "b", "c"]), target(7, ["c", "a", "b"]));
    }

    #[test]
    fn one_that_leaves_moves_its_own_shares_only_and_the_rest_take_like_parts() {
        let names = names(5);
        let of = |gateways: &[String]| -> Vec<&str> {
            (0..4_096)
                .filter_map(|share| {
                    target(share, names.iter().filter(|name| gateways.contains(name)).map(String::as_str))
                })
                .collect()
        };
        let all = of(&names);
        let left = of(&names[..4]);
        let mut taken = [0_u32; 4];
        for (before, after) in all.iter().zip(&left) {
            if *before == "gw-4" {
                taken[names.iter().position(|name| name == after).unwrap()] += 1;
            } else {
                assert_eq!(before, after);
            }
        }
        // 4,096 / 5 / 4, give or take four standard deviations.
        assert!(taken.iter().all(|&count| (150..260).contains(&count)), "{taken:?}");
    }

    #[test]
    fn addresses_that_follow_each_other_are_spread() {
        let shares = Shares { count: 256, by: ShareBy::Remote };
        let mut counts = [0_u32; 256];
        for number in 0..65_536_u32 {
            counts[usize::from(shares.of_address(IpAddr::V4((0x0a00_0000 + number).into())))] += 1;
        }
        assert!(counts.iter().all(|&count| (180..340).contains(&count)), "{counts:?}");
    }
}
