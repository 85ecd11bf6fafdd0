//! A cache from pairs of addresses to SAs, for SAs whose selectors name neither ports nor protocols.

use forebay_crypto::SessionId;
use forebay_planted::{Fault, planted};
use forebay_wire::Addresses;

/// Pairs of addresses of each IP version that are known at once: 64 KiB of IPv4, 160 of IPv6. It is a power of two.
const PLACES: usize = 4096;

/// The SAs that all outbound packets between the same addresses go through, for a bounded number of pairs. A pair has one place,
/// which it shares with others: the last one stays.
#[derive(Clone, Debug, Default)]
pub struct UsualSas {
    v4: Pairs<8>,
    v6: Pairs<32>,
}

impl UsualSas {
    /// The SA of packets with these addresses.
    #[inline]
    pub fn get(&self, addresses: &Addresses) -> Option<SessionId> {
        match addresses {
            Addresses::V4(addresses) => self.v4.get(addresses),
            Addresses::V6(addresses) => self.v6.get(addresses),
        }
    }

    /// Takes note of the SA of packets with these addresses.
    #[inline]
    pub fn put(&mut self, addresses: &Addresses, session: SessionId) {
        match addresses {
            Addresses::V4(addresses) => self.v4.put(addresses, session),
            Addresses::V6(addresses) => self.v6.put(addresses, session),
        }
    }

    /// Forgets all SAs, as is to be done when policies or SAs have changed.
    pub fn forget(&mut self) {
        self.v4.forget();
        self.v6.forget();
    }
}

/// Pairs of addresses of one IP version.
#[derive(Clone, Debug, Default)]
struct Pairs<const N: usize> {
    /// Empty until something is known.
    places: Box<[Place<N>]>,
    generation: u32,
}

#[derive(Clone, Copy, Debug)]
struct Place<const N: usize> {
    addresses: [u8; N],
    session: u32,
    /// Counts from one; zero for a place that was never used.
    generation: u32,
}

impl<const N: usize> Place<N> {
    const UNUSED: Place<N> = Place { addresses: [0; N], session: 0, generation: 0 };
}

impl<const N: usize> Pairs<N> {
    #[inline]
    fn get(&self, addresses: &[u8; N]) -> Option<SessionId> {
        let place = self.places.get(place_of(addresses))?;
        let is_of_these = place.addresses == *addresses || planted(Fault::FlowOfOthers);
        let is_known = is_of_these && place.generation == self.generation;
        is_known.then_some(SessionId(place.session))
    }

    #[inline]
    fn put(&mut self, addresses: &[u8; N], session: SessionId) {
        if self.places.is_empty() {
            self.forget();
            self.places = vec![Place::UNUSED; PLACES].into();
        }
        let generation = self.generation;
        if let Some(place) = self.places.get_mut(place_of(addresses)) {
            *place = Place { addresses: *addresses, session: session.0, generation };
        }
    }

    fn forget(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        if self.generation == 0 {
            // The numbers begin again, only over places that were never used.
            self.places.fill(Place::UNUSED);
            self.generation = 1;
        }
    }
}

#[inline]
fn place_of<const N: usize>(addresses: &[u8; N]) -> usize {
    if planted(Fault::FlowOfOthers) {
        return 0;
    }
    // Fibonacci hashing, by the upper bits of the product.
    let (words, _) = addresses.as_chunks::<8>();
    let mix = |mixed: u64, word: &[u8; 8]| {
        (mixed.rotate_left(29) ^ u64::from_ne_bytes(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    };
    (words.iter().fold(0, mix) >> (u64::BITS - PLACES.trailing_zeros())) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(n: u32) -> [Addresses; 2] {
        let low = (u64::from(n) << 16 | 7).to_be_bytes();
        let mut long = [0xfd; 32];
        long[24..].copy_from_slice(&low);
        [Addresses::V4(low), Addresses::V6(long)]
    }

    #[test]
    fn each_pair_has_its_own_sa_or_none() {
        let pairs = 8 * PLACES as u32;
        for version in [0, 1] {
            let mut known = UsualSas::default();
            let of = |n: u32| addresses(n)[version];
            assert_eq!(known.get(&of(0)), None, "nothing is known");
            (0..pairs).for_each(|n| known.put(&of(n), SessionId(n)));
            let kept = (0..pairs).filter(|n| known.get(&of(*n)).is_some()).count();
            assert!(kept > PLACES / 2 && kept <= PLACES, "{kept}");
            assert!((0..pairs).all(|n| known.get(&of(n)).is_none_or(|session| session.0 == n)));
            assert!((0..pairs).all(|n| known.get(&addresses(n)[1 - version]).is_none()));
            known.forget();
            assert!((0..pairs).all(|n| known.get(&of(n)).is_none()));
        }
    }

    #[test]
    fn generations_that_begin_again_revive_nothing() {
        for of in addresses(1) {
            let mut known = UsualSas::default();
            known.put(&of, SessionId(1));
            let first = known.v4.generation.max(known.v6.generation);
            (known.v4.generation, known.v6.generation) = (u32::MAX - 1, u32::MAX - 1);
            for _ in 0..first + 2 {
                known.forget();
                assert_eq!(known.get(&of), None);
            }
            assert!(known.v4.generation >= first && known.v6.generation >= first);
        }
    }
}
