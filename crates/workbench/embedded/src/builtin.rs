//! What comes with the program: our own firmware, and packets for it.

/// The capture of the demonstration, recorded from real programs by `demo/record.sh`.
pub const DEMO: &[u8] = include_bytes!("../data/traffic.pcap");

/// Its name in `[input]`.
pub const CAPTURE: &str = "demo";

/// UDP in IPv4 of so many bytes in all, for `capture = "udp:64"`: 28 to 9000.
pub fn datagrams(name: &str) -> Option<Vec<u8>> {
    let size: u16 = name.strip_prefix("udp:")?.parse().ok().filter(|size| (28..=9_000).contains(size))?;
    let mut packet = vec![0x45, 0, 0, 0, 0, 1, 0, 0, 64, 17, 0, 0, 10, 1, 0, 1, 10, 2, 0, 1];
    packet[2..4].copy_from_slice(&size.to_be_bytes());
    let sum: u32 = packet.chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1])).sum();
    packet[10..12].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
    // From and to port 4096, without a checksum: the firmware makes it if that is its work.
    packet.extend([0x10, 0, 0x10, 0]);
    packet.extend((size - 20).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend((28..size).map(|at| at as u8));
    Some(packet)
}

/// A firmware by its name in `[firmware]`; `firmware/README.md` says how it is built.
pub fn firmware(name: &str) -> Option<&'static [u8]> {
    Some(match name {
        "ipsec-plain" => include_bytes!("../data/prebuilt/ipsec-plain.elf"),
        "ipsec-custom" => include_bytes!("../data/prebuilt/ipsec-custom.elf"),
        "ipsec-zk" => include_bytes!("../data/prebuilt/ipsec-zk.elf"),
        "ipsec-rv64" => include_bytes!("../data/prebuilt/ipsec-rv64.elf"),
        "ipsec-rv64-zk" => include_bytes!("../data/prebuilt/ipsec-rv64-zk.elf"),
        "ipsec-rv64-vector" => include_bytes!("../data/prebuilt/ipsec-rv64-vector.elf"),
        "ipsec-reference" => include_bytes!("../data/prebuilt/ipsec-reference.elf"),
        "ipsec-reference-custom" => include_bytes!("../data/prebuilt/ipsec-reference-custom.elf"),
        "ipsec-reference-order-1" => include_bytes!("../data/prebuilt/ipsec-reference-order-1.elf"),
        "ipsec-reference-order-2" => include_bytes!("../data/prebuilt/ipsec-reference-order-2.elf"),
        "ipsec-reference-order-3" => include_bytes!("../data/prebuilt/ipsec-reference-order-3.elf"),
        "ipsec-reference-order-4" => include_bytes!("../data/prebuilt/ipsec-reference-order-4.elf"),
        "ipsec-reference-order-5" => include_bytes!("../data/prebuilt/ipsec-reference-order-5.elf"),
        "ipsec-reference-order-6" => include_bytes!("../data/prebuilt/ipsec-reference-order-6.elf"),
        "ipsec-reference-order-7" => include_bytes!("../data/prebuilt/ipsec-reference-order-7.elf"),
        "ipsec-reference-order-8" => include_bytes!("../data/prebuilt/ipsec-reference-order-8.elf"),
        "ipsec-reference-order-9" => include_bytes!("../data/prebuilt/ipsec-reference-order-9.elf"),
        "ipsec-reference-order-10" => include_bytes!("../data/prebuilt/ipsec-reference-order-10.elf"),
        "ipsec-reference-custom-order-1" => {
            include_bytes!("../data/prebuilt/ipsec-reference-custom-order-1.elf")
        }
        "ipsec-reference-custom-order-2" => {
            include_bytes!("../data/prebuilt/ipsec-reference-custom-order-2.elf")
        }
        "ipsec-reference-custom-order-3" => {
            include_bytes!("../data/prebuilt/ipsec-reference-custom-order-3.elf")
        }
        "ipsec-reference-custom-order-4" => {
            include_bytes!("../data/prebuilt/ipsec-reference-custom-order-4.elf")
        }
        "ipsec-reference-custom-order-5" => {
            include_bytes!("../data/prebuilt/ipsec-reference-custom-order-5.elf")
        }
        "ipsec-reference-custom-order-6" => {
            include_bytes!("../data/prebuilt/ipsec-reference-custom-order-6.elf")
        }
        "ipsec-reference-custom-order-7" => {
            include_bytes!("../data/prebuilt/ipsec-reference-custom-order-7.elf")
        }
        "ipsec-reference-custom-order-8" => {
            include_bytes!("../data/prebuilt/ipsec-reference-custom-order-8.elf")
        }
        "ipsec-reference-custom-order-9" => {
            include_bytes!("../data/prebuilt/ipsec-reference-custom-order-9.elf")
        }
        "ipsec-reference-custom-order-10" => {
            include_bytes!("../data/prebuilt/ipsec-reference-custom-order-10.elf")
        }
        "vectors-plain" => include_bytes!("../data/prebuilt/vectors-plain.elf"),
        "vectors-custom" => include_bytes!("../data/prebuilt/vectors-custom.elf"),
        "vectors-zk" => include_bytes!("../data/prebuilt/vectors-zk.elf"),
        "vectors-rv64" => include_bytes!("../data/prebuilt/vectors-rv64.elf"),
        "vectors-rv64-zk" => include_bytes!("../data/prebuilt/vectors-rv64-zk.elf"),
        "vectors-rv64-vector" => include_bytes!("../data/prebuilt/vectors-rv64-vector.elf"),
        "vectors-reference" => include_bytes!("../data/prebuilt/vectors-reference.elf"),
        "vectors-reference-custom" => include_bytes!("../data/prebuilt/vectors-reference-custom.elf"),
        _ => return None,
    })
}
