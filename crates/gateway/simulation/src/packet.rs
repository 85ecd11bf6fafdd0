//! The packets of programs inside, and what can be read of packets outside.

use forebay_random::split_mix;

/// Flows between two networks.
const FLOWS: u64 = 3;

/// In front of the number of each packet of a program.
const MARK: &[u8; 8] = b"inside!!";
const HEADER: usize = 20;
/// Header, mark and number.
pub const LEN_MIN: usize = HEADER + 16;

/// A host behind a gateway; a far one is in the network that only wide tunnels have.
pub fn network(gateway: usize, far: bool) -> [u8; 4] {
    [10, gateway as u8 + if far { 101 } else { 1 }, 0, 9]
}

/// An inner packet of a program: its number says the rest of it.
pub fn inner(number: u64, from: usize, to: usize, len: usize, far: bool) -> Vec<u8> {
    let len = len.max(LEN_MIN);
    let source = [10, from as u8 + 1, 0, 9];
    let mut packet = ipv4(source, network(to, far), 253, len, true);
    packet.extend(MARK);
    packet.extend(number.to_be_bytes());
    let mut state = number;
    while packet.len() < len {
        let bytes = split_mix(&mut state).to_be_bytes();
        let more = bytes.len().min(len - packet.len());
        packet.extend(&bytes[..more]);
    }
    packet
}

/// The flow of a program's packet: a host may take the flows of one SA by several queues.
pub fn flow(number: u64) -> u32 {
    (number % FLOWS) as u32
}

/// The number of a program's packet.
pub fn number_of(packet: &[u8]) -> Option<u64> {
    let rest = packet.get(HEADER..)?.strip_prefix(MARK)?;
    Some(u64::from_be_bytes(*rest.first_chunk()?))
}

/// Whether a program's packet can be seen in these bytes.
pub fn shows_plaintext(bytes: &[u8]) -> bool {
    bytes.windows(MARK.len()).any(|window| window == MARK)
}

/// Whether two packets are the same but for fields that gateways may change: TTL, the rest of ECN, and the checksum.
pub fn is_same(one: &[u8], two: &[u8]) -> bool {
    one.len() == two.len() && one.len() >= HEADER && one[12..] == two[12..] && one[2..4] == two[2..4]
}

/// An IPv4 header for a packet of `len` bytes.
pub fn ipv4(source: [u8; 4], destination: [u8; 4], protocol: u8, len: usize, df: bool) -> Vec<u8> {
    let mut header =
        vec![0x45, 0, (len >> 8) as u8, len as u8, 0, 0, if df { 0x40 } else { 0 }, 0, 64, protocol];
    header.extend([0, 0]);
    header.extend(source);
    header.extend(destination);
    set_checksum(&mut header);
    header
}

/// Sets the checksum of an IPv4 header.
pub fn set_checksum(packet: &mut [u8]) {
    packet[10..12].fill(0);
    let sum = checksum(&packet[..HEADER]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// The Internet checksum.
pub fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let sum = words.sum::<u32>();
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

/// An ESP packet outside.
#[derive(Clone, Copy, Debug)]
pub struct EspSeen {
    /// Where the ESP header begins.
    pub at: usize,
    pub spi: u32,
    pub sequence: u32,
}

/// What kind of packet is seen outside.
#[derive(Clone, Copy, Debug)]
pub enum Seen {
    Esp(EspSeen),
    /// A NAT keepalive.
    Keepalive,
    /// Anything else, which should not be there.
    Other,
}

/// Looks at a packet outside.
pub fn see(packet: &[u8]) -> Seen {
    if packet.len() < HEADER || packet[0] != 0x45 {
        return Seen::Other;
    }
    let at = match packet[9] {
        50 => HEADER,
        17 if packet.len() == HEADER + 9 && packet[HEADER + 8] == 0xff => return Seen::Keepalive,
        17 => HEADER + 8,
        _ => return Seen::Other,
    };
    let word = |at: usize| packet.get(at..at + 4).map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]));
    match (word(at), word(at + 4)) {
        (Some(spi), Some(sequence)) if spi > 255 => Seen::Esp(EspSeen { at, spi, sequence }),
        _ => Seen::Other,
    }
}

/// Source and destination of an outer packet: addresses and, of UDP, ports.
pub type Place = ([u8; 4], u16);

/// The SPI, by which a host chooses the queue of a packet from outside.
pub fn spi(packet: &[u8]) -> Option<u32> {
    let at = if packet.get(9) == Some(&17) { 28 } else { 20 };
    packet.get(at..at + 4).map(|spi| u32::from_be_bytes([spi[0], spi[1], spi[2], spi[3]]))
}

/// Where a packet is from and where it goes.
pub fn places(packet: &[u8]) -> (Place, Place) {
    let port = |at: usize| match packet[9] {
        17 if packet.len() >= HEADER + 8 => u16::from_be_bytes([packet[at], packet[at + 1]]),
        _ => 0,
    };
    let address = |at: usize| [packet[at], packet[at + 1], packet[at + 2], packet[at + 3]];
    ((address(12), port(HEADER)), (address(16), port(HEADER + 2)))
}

/// Gives a packet another source, as NAT does.
pub fn set_source(packet: &mut [u8], (address, port): Place) {
    packet[12..16].copy_from_slice(&address);
    if packet[9] == 17 {
        packet[HEADER..HEADER + 2].copy_from_slice(&port.to_be_bytes());
        packet[HEADER + 6..HEADER + 8].fill(0);
    }
    set_checksum(packet);
}

/// Gives a packet another destination, as NAT does.
pub fn set_destination(packet: &mut [u8], (address, port): Place) {
    packet[16..20].copy_from_slice(&address);
    if packet[9] == 17 {
        packet[HEADER + 2..HEADER + 4].copy_from_slice(&port.to_be_bytes());
        packet[HEADER + 6..HEADER + 8].fill(0);
    }
    set_checksum(packet);
}

/// An ICMP message that says that `about` was too big for a path of `mtu` bytes.
pub fn too_big(about: &[u8], mtu: u16) -> Vec<u8> {
    let quoted = &about[..about.len().min(HEADER + 24)];
    let (from, _) = places(about);
    let mut message = ipv4([203, 0, 113, 1], from.0, 1, HEADER + 8 + quoted.len(), false);
    let mut icmp = vec![3, 4, 0, 0, 0, 0];
    icmp.extend(mtu.to_be_bytes());
    icmp.extend(quoted);
    let sum = checksum(&icmp);
    icmp[2..4].copy_from_slice(&sum.to_be_bytes());
    message.extend(icmp);
    message
}
