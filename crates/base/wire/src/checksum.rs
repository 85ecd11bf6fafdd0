//! The Internet checksum (RFC 1071).

/// A one's complement sum in progress: 16-bit words added up, not yet folded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum(u64);

impl Sum {
    /// Over nothing.
    pub const ZERO: Sum = Sum(0);

    /// Adds bytes as big-endian 16-bit words; an odd last byte counts as the high half of a word
    /// (RFC 1071 4.1), so only the last call may have an odd length.
    #[inline]
    #[must_use]
    pub fn bytes(self, bytes: &[u8]) -> Sum {
        let (words, rest) = bytes.as_chunks::<4>();
        // 32 bits at a time: one's complement addition does not care where carries are folded.
        let sum = words.iter().fold(self.0, |sum, word| sum + u64::from(u32::from_be_bytes(*word)));
        let mut tail = [0; 4];
        tail[..rest.len()].copy_from_slice(rest);
        Sum(sum + u64::from(u32::from_be_bytes(tail)))
    }

    /// The checksum of a folded sum and a few words, under a hundred: one fold less than [`Sum::finish`].
    #[inline]
    pub fn finish_with<const N: usize>(self, words: [u16; N]) -> u16 {
        let sum = words.iter().fold(self.0 as u32, |sum, &word| sum + u32::from(word));
        let sum = (sum & 0xffff) + (sum >> 16);
        !((sum & 0xffff) + (sum >> 16)) as u16
    }

    /// Adds one 16-bit word.
    #[inline]
    #[must_use]
    pub fn word(self, word: u16) -> Sum {
        Sum(self.0 + u64::from(word))
    }

    /// The checksum: the complement of the folded sum.
    #[inline]
    pub fn finish(self) -> u16 {
        let sum = (self.0 & 0xffff_ffff) + (self.0 >> 32);
        let sum = (sum & 0xffff) + ((sum >> 16) & 0xffff) + (sum >> 32);
        let sum = (sum & 0xffff) + (sum >> 16);
        !((sum & 0xffff) + (sum >> 16)) as u16
    }
}

/// The checksum of what had `checksum` when one of its words changes from `old` to `new` (RFC 1624,
/// equation 3).
#[inline]
pub fn update(checksum: u16, old: u16, new: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_1071() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Sum::default().bytes(&bytes).finish(), !0xddf2);
    }

    #[test]
    fn words_added_at_the_end_count_like_any_others() {
        for words in [[0; 4], [0xffff; 4], [1, 0x8000, 0xfffe, 7]] {
            let base = Sum::default().bytes(&[0x45, 0x12, 0xff, 0xfe, 0x80]);
            let slow = words.iter().fold(base, |sum, &word| sum.word(word));
            assert_eq!(Sum::ZERO.word(!base.finish()).finish_with(words), slow.finish());
        }
    }

    #[test]
    fn the_example_of_rfc_1624() {
        assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn an_updated_checksum_is_one_computed_anew() {
        let mut header = [0x45, 0, 0, 84, 0x12, 0x34, 0x40, 0, 64, 1, 0, 0, 10, 1, 0, 1, 10, 2, 0, 1];
        for before in 0..=255 {
            for after in (0..=255).step_by(5) {
                header[1] = before;
                let old = Sum::default().bytes(&header).finish();
                header[1] = after;
                let new = Sum::default().bytes(&header).finish();
                assert_eq!(update(old, 0x4500 | u16::from(before), 0x4500 | u16::from(after)), new);
            }
        }
    }

    #[test]
    fn agrees_with_sixteen_bits_at_a_time() {
        let mut bytes = [0u8; 97];
        for (i, b) in bytes.iter_mut().enumerate() {
            *b = (i * 151 % 256) as u8;
        }
        for len in 0..bytes.len() {
            let mut slow = 0u32;
            for pair in bytes[..len].chunks(2) {
                slow += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
                slow = (slow & 0xffff) + (slow >> 16);
            }
            assert_eq!(Sum::default().bytes(&bytes[..len]).finish(), !(slow as u16), "{len} bytes");
        }
    }
}
