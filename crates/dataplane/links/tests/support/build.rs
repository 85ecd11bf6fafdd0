//! Packets made field by field, with checksums by the slow and obvious rule.
#![allow(dead_code)] // each test file uses its part

use forebay_wire::checksum::Sum;

/// A TCP segment or UDP datagram, and the IP header around it.
#[derive(Clone, Debug)]
pub struct Build {
    pub v6: bool,
    pub udp: bool,
    /// The last byte of both addresses, and the ports.
    pub hosts: (u8, u8),
    pub ports: (u16, u16),
    pub class: u8,
    pub ttl: u8,
    pub identification: u16,
    pub dont_fragment: bool,
    pub sequence: u32,
    pub acknowledgement: u32,
    pub flags: u8,
    pub window: u16,
    /// A multiple of four bytes.
    pub options: Vec<u8>,
    pub payload: Vec<u8>,
}

impl Default for Build {
    fn default() -> Build {
        Build {
            v6: false,
            udp: false,
            hosts: (1, 2),
            ports: (40_000, 5001),
            class: 0,
            ttl: 64,
            identification: 7,
            dont_fragment: true,
            sequence: 1000,
            acknowledgement: 77,
            flags: 0x10,
            window: 501,
            options: Vec::new(),
            payload: b"forebay".to_vec(),
        }
    }
}

impl Build {
    /// The whole packet.
    pub fn packet(&self) -> Vec<u8> {
        let l4 = self.l4();
        let mut ip = Vec::new();
        if self.v6 {
            ip.extend((0x6000_0000 | u32::from(self.class) << 20).to_be_bytes());
            ip.extend((l4.len() as u16).to_be_bytes());
            ip.extend([self.protocol(), self.ttl]);
            ip.extend(self.addresses());
        } else {
            ip.extend([0x45, self.class]);
            ip.extend((20 + l4.len() as u16).to_be_bytes());
            ip.extend(self.identification.to_be_bytes());
            ip.extend([if self.dont_fragment { 0x40 } else { 0 }, 0, self.ttl, self.protocol(), 0, 0]);
            ip.extend(self.addresses());
            let checksum = Sum::ZERO.bytes(&ip).finish();
            ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
        [ip, l4].concat()
    }

    fn protocol(&self) -> u8 {
        if self.udp { 17 } else { 6 }
    }

    fn addresses(&self) -> Vec<u8> {
        let address = |host: u8| match self.v6 {
            true => vec![0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, host],
            false => vec![10, 1, 0, host],
        };
        [address(self.hosts.0), address(self.hosts.1)].concat()
    }

    fn l4(&self) -> Vec<u8> {
        let mut l4 = [self.ports.0.to_be_bytes(), self.ports.1.to_be_bytes()].concat();
        let at = if self.udp { 6 } else { 16 };
        if self.udp {
            l4.extend((8 + self.payload.len() as u16).to_be_bytes());
            l4.extend([0, 0]);
        } else {
            l4.extend(self.sequence.to_be_bytes());
            l4.extend(self.acknowledgement.to_be_bytes());
            l4.extend([(20 + self.options.len() as u8) * 4, self.flags]);
            l4.extend(self.window.to_be_bytes());
            l4.extend([0; 4]);
            l4.extend(&self.options);
        }
        l4.extend(&self.payload);
        let sum = Sum::ZERO.bytes(&self.addresses()).word(self.protocol().into()).word(l4.len() as u16);
        let checksum = match sum.bytes(&l4).finish() {
            0 if self.udp => 0xffff,
            checksum => checksum,
        };
        l4[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
        l4
    }
}
