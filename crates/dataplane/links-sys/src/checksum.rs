//! The sum of the Internet checksum (RFC 1071) over long payloads, by vectors where the processor has them.

/// The sum of 16-bit words in the machine's byte order, not folded; an odd last byte is followed by zero. For
/// what is shorter than 16 GiB it does not overflow.
#[inline]
pub fn sum(bytes: &[u8]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if bytes.len() >= 128 && std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { sum_avx2(bytes) };
    }
    plain(bytes)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn sum_avx2(bytes: &[u8]) -> u64 {
    plain(bytes)
}

/// Adds 32-bit words in lanes of their own, of which compilers make vectors.
#[inline(always)]
fn plain(bytes: &[u8]) -> u64 {
    const LANES: usize = 16;
    let (blocks, rest) = bytes.as_chunks::<{ 4 * LANES }>();
    let mut lanes = [0u64; LANES];
    for block in blocks {
        for (i, lane) in lanes.iter_mut().enumerate() {
            let word = [block[4 * i], block[4 * i + 1], block[4 * i + 2], block[4 * i + 3]];
            *lane += u64::from(u32::from_ne_bytes(word));
        }
    }
    let mut sum = 0;
    for lane in lanes {
        sum += lane;
    }
    let (words, rest) = rest.as_chunks::<4>();
    for word in words {
        sum += u64::from(u32::from_ne_bytes(*word));
    }
    let tail = match *rest {
        [a] => [a, 0, 0, 0],
        [a, b] => [a, b, 0, 0],
        [a, b, c] => [a, b, c, 0],
        _ => return sum,
    };
    sum + u64::from(u32::from_ne_bytes(tail))
}

#[cfg(test)]
mod tests {
    fn slow(bytes: &[u8]) -> u32 {
        let mut sum = 0;
        for pair in bytes.chunks(2) {
            sum += u32::from(u16::from_ne_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum
    }

    #[test]
    fn agrees_with_sixteen_bits_at_a_time() {
        // Short under Miri, which takes a thousand times as long.
        let (all, longest) =
            if cfg!(miri) { (0..90, &[230][..]) } else { (0..700, &[1399, 1400, 65_535, 70_000][..]) };
        let bytes: Vec<u8> =
            (0..longest[longest.len() - 1] as u32).map(|i| (i.wrapping_mul(i) >> 3) as u8).collect();
        for len in all.chain(longest.iter().copied()) {
            for start in [0, 1, 3] {
                let bytes = &bytes[start..len.max(start)];
                let (mut sum, mut ones) = (super::sum(bytes), super::sum(&vec![0xff; len]));
                while sum >> 16 > 0 {
                    sum = (sum & 0xffff) + (sum >> 16);
                }
                while ones >> 16 > 0 {
                    ones = (ones & 0xffff) + (ones >> 16);
                }
                assert_eq!(sum, u64::from(slow(bytes)), "{len} bytes from {start}");
                assert_eq!(ones, u64::from(slow(&vec![0xff; len])), "{len} bytes of ones");
            }
        }
    }
}
