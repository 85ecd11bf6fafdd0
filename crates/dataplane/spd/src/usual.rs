//! The usual SAs of recent pairs of addresses: where ports and the like make no difference, one look at the addresses is enough.

use forebay_crypto::SessionId;
use forebay_planted::{Fault, planted};

/// Pairs of addresses that are known at once: 64 KiB. It is a power of two.
const PLACES: usize = 4096;

/// The SAs that all outbound IPv4 packets between the same addresses go through, for a bounded number of pairs. A pair has one
/// place, which it shares with others: the last one stays.
#[derive(Clone, Debug, Default)]
pub struct UsualSas {
    /// Empty until something is known.
    places: Box<[Place]>,
    generation: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Place {
    addresses: [u8; 8],
    session: u32,
    /// Counts from one; zero for a place that was never used.
    generation: u32,
}

impl UsualSas {
    /// The SA of packets with these addresses, as [`forebay_wire::Ipv4::raw_addresses`] has them.
    #[inline]
    pub fn get(&self, addresses: [u8; 8]) -> Option<SessionId> {
        let place = self.places.get(place_of(addresses))?;
        let is_of_these = place.addresses == addresses || planted(Fault::FlowOfOthers);
        let is_known = is_of_these && place.generation == self.generation;
        is_known.then_some(SessionId(place.session))
    }

    /// Takes note of the SA of packets with these addresses.
    #[inline]
    pub fn put(&mut self, addresses: [u8; 8], session: SessionId) {
        if self.places.is_empty() {
            self.forget();
            self.places = vec![Place::default(); PLACES].into();
        }
        let generation = self.generation;
        if let Some(place) = self.places.get_mut(place_of(addresses)) {
            *place = Place { addresses, session: session.0, generation };
        }
    }

    /// Forgets all SAs, as is to be done when policies or SAs have changed.
    pub fn forget(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        if self.generation == 0 {
            // The numbers begin again, only over places that were never used.
            self.places.fill(Place::default());
            self.generation = 1;
        }
    }
}

#[inline]
fn place_of(addresses: [u8; 8]) -> usize {
    if planted(Fault::FlowOfOthers) {
        return 0;
    }
    // Fibonacci hashing, by the upper bits of the product.
    let mixed = u64::from_ne_bytes(addresses).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (u64::BITS - PLACES.trailing_zeros())) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(n: u32) -> [u8; 8] {
        (u64::from(n) << 16 | 7).to_be_bytes()
    }

    #[test]
    fn each_pair_has_its_own_sa_or_none() {
        let mut known = UsualSas::default();
        assert_eq!(known.get([0; 8]), None, "nothing is known");
        let pairs = 8 * PLACES as u32;
        (0..pairs).for_each(|n| known.put(addresses(n), SessionId(n)));
        let kept = (0..pairs).filter(|n| known.get(addresses(*n)).is_some()).count();
        assert!(kept > PLACES / 2 && kept <= PLACES, "{kept}");
        assert!((0..pairs).all(|n| known.get(addresses(n)).is_none_or(|session| session.0 == n)));
        known.forget();
        assert!((0..pairs).all(|n| known.get(addresses(n)).is_none()));
    }

    #[test]
    fn generations_that_begin_again_revive_nothing() {
        let mut known = UsualSas::default();
        known.put(addresses(1), SessionId(1));
        let first = known.generation;
        known.generation = u32::MAX - 1;
        for _ in 0..first + 2 {
            known.forget();
            assert_eq!(known.get(addresses(1)), None);
        }
        assert!(known.generation >= first);
    }
}
