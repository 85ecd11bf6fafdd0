//! Fields of either byte order.

/// The byte order of a file or section: that of the machine that wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Endian {
    Little,
    Big,
}

impl Endian {
    #[inline]
    pub(super) fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Endian::Little => u16::from_le_bytes(bytes),
            Endian::Big => u16::from_be_bytes(bytes),
        }
    }

    #[inline]
    pub(super) fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Endian::Little => u32::from_le_bytes(bytes),
            Endian::Big => u32::from_be_bytes(bytes),
        }
    }

    pub(super) fn i64(self, bytes: [u8; 8]) -> i64 {
        match self {
            Endian::Little => i64::from_le_bytes(bytes),
            Endian::Big => i64::from_be_bytes(bytes),
        }
    }

    /// The 32-bit words of a header; four times `N` bytes are read, no length can fail.
    #[inline]
    pub(super) fn words<const BYTES: usize, const N: usize>(self, header: &[u8; BYTES]) -> [u32; N] {
        const { assert!(BYTES == 4 * N) };
        std::array::from_fn(|i| {
            self.u32([header[4 * i], header[4 * i + 1], header[4 * i + 2], header[4 * i + 3]])
        })
    }
}
