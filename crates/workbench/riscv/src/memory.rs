//! Memory, and the devices beside it.

use crate::fault::FaultKind;

/// Bytes of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// One.
    Byte,
    /// Two.
    Half,
    /// Four.
    Word,
}

impl Width {
    /// How many bytes.
    pub fn bytes(self) -> u32 {
        match self {
            Width::Byte => 1,
            Width::Half => 2,
            Width::Word => 4,
        }
    }
}

/// What a device says to a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortAnswer {
    /// It is done.
    Done,
    /// The program ends here, with a code.
    Exit(u32),
    /// There is no device.
    Nothing,
}

/// Devices: whatever lies outside memory.
pub trait Ports {
    /// A store outside memory.
    fn store(&mut self, address: u32, value: u32, width: Width) -> PortAnswer;

    /// A load from outside memory; `None`: there is no device.
    fn load(&mut self, address: u32, width: Width) -> Option<u32> {
        let _ = (address, width);
        None
    }
}

/// No devices.
pub struct Silent;

impl Ports for Silent {
    fn store(&mut self, _: u32, _: u32, _: Width) -> PortAnswer {
        PortAnswer::Nothing
    }
}

/// One stretch of memory, little-endian.
#[derive(Clone, Debug)]
pub struct Memory {
    base: u32,
    bytes: Vec<u8>,
    /// Whether words may lie anywhere. Their time is then counted as if they did not cross a line.
    pub misaligned: bool,
}

impl Memory {
    /// `size` bytes of zeros from `base` on.
    pub fn new(base: u32, size: usize) -> Memory {
        Memory { base, bytes: vec![0; size], misaligned: false }
    }

    /// Its first address.
    pub fn base(&self) -> u32 {
        self.base
    }

    /// Bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Whether an address is in it.
    #[inline]
    pub fn contains(&self, address: u32) -> bool {
        (address.wrapping_sub(self.base) as usize) < self.bytes.len()
    }

    /// `size` bytes from an address on, if they are all in memory.
    pub fn slice(&self, address: u32, size: usize) -> Option<&[u8]> {
        let from = address.wrapping_sub(self.base) as usize;
        self.bytes.get(from..from.checked_add(size)?)
    }

    /// The same to be written.
    pub fn slice_mut(&mut self, address: u32, size: usize) -> Option<&mut [u8]> {
        let from = address.wrapping_sub(self.base) as usize;
        self.bytes.get_mut(from..from.checked_add(size)?)
    }

    #[inline(always)]
    fn at<const N: usize>(&self, address: u32) -> Option<[u8; N]> {
        self.bytes.get(address.wrapping_sub(self.base) as usize..)?.first_chunk::<N>().copied()
    }

    /// Two bytes of code.
    #[inline]
    pub fn half(&self, address: u32) -> Option<u16> {
        self.at(address).map(u16::from_le_bytes)
    }

    /// A word.
    #[inline]
    pub fn word(&self, address: u32) -> Option<u32> {
        self.at(address).map(u32::from_le_bytes)
    }

    /// Loads, without sign.
    #[inline(always)]
    pub(crate) fn load(&self, address: u32, width: Width, ports: &mut impl Ports) -> Result<u32, FaultKind> {
        self.aligned(address, width.bytes())?;
        let value = match width {
            Width::Byte => self.at(address).map(|[byte]| u32::from(byte)),
            Width::Half => self.at(address).map(|bytes| u32::from(u16::from_le_bytes(bytes))),
            Width::Word => self.at(address).map(u32::from_le_bytes),
        };
        match value {
            Some(value) => Ok(value),
            None => ports.load(address, width).ok_or(unmapped(address, false)),
        }
    }

    /// Stores; says whether a device ends the program.
    #[inline(always)]
    pub(crate) fn store(
        &mut self,
        address: u32,
        value: u32,
        width: Width,
        ports: &mut impl Ports,
    ) -> Result<Option<u32>, FaultKind> {
        let size = width.bytes();
        self.aligned(address, size)?;
        let from = address.wrapping_sub(self.base) as usize;
        if let Some(place) = self.bytes.get_mut(from..from.saturating_add(size as usize)) {
            place.copy_from_slice(&value.to_le_bytes()[..size as usize]);
            return Ok(None);
        }
        match ports.store(address, value, width) {
            PortAnswer::Done => Ok(None),
            PortAnswer::Exit(code) => Ok(Some(code)),
            PortAnswer::Nothing => Err(unmapped(address, true)),
        }
    }

    /// Loads a doubleword; devices have none.
    #[inline(always)]
    pub(crate) fn load_double(&self, address: u32) -> Result<u64, FaultKind> {
        self.aligned(address, 8)?;
        self.at(address).map(u64::from_le_bytes).ok_or(unmapped(address, false))
    }

    /// Stores a doubleword; devices have none.
    #[inline(always)]
    pub(crate) fn store_double(&mut self, address: u32, value: u64) -> Result<(), FaultKind> {
        self.aligned(address, 8)?;
        let place = self.slice_mut(address, 8).ok_or(unmapped(address, true))?;
        place.copy_from_slice(&value.to_le_bytes());
        Ok(())
    }

    /// That an access of so many bytes may be at an address.
    #[inline(always)]
    pub(crate) fn aligned(&self, address: u32, size: u32) -> Result<(), FaultKind> {
        match address & (size - 1) != 0 && !self.misaligned {
            true => Err(FaultKind::Misaligned { address: address.into(), size }),
            false => Ok(()),
        }
    }
}

/// That there is nothing at an address.
pub(crate) fn unmapped(address: impl Into<u64>, store: bool) -> FaultKind {
    FaultKind::Unmapped { address: address.into(), store }
}
