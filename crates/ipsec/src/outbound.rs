//! ESP outbound: everything around the crypto job when sealing (RFC 4303 3.3).

use forebay_crypto::{JobSpec, Packet, SessionId, Span};
use forebay_wire::checksum::Sum;
use forebay_wire::esp::Trailer;
use forebay_wire::ipv4::DONT_FRAGMENT;
use forebay_wire::udp::{self, NAT_T_PORT};
use forebay_wire::{Family, Ip, Malformed, esp, ipv4, protocol};

use crate::{DropReason, Encapsulation, IvRange, Mode, SaConfig};

/// Outer headers, UDP, SPI and sequence number of every packet of an SA end at the end of this many
/// bytes, so that they are laid down by one copy of fixed size; the IV stands right behind.
pub const TEMPLATE: usize = 64;
/// Room for the longest IV.
const IV_ROOM: usize = 16;
/// Room for the longest padding that alignment asks for, and the trailer.
const TAIL_ROOM: usize = 32;

/// Time to live and hop limit of tunnel headers (RFC 1700's default).
const TTL: u8 = 64;

/// An outbound SA: its settings, its counters of sequence numbers and IVs, and its header template.
#[derive(Debug)]
pub struct OutboundSa {
    pub(crate) session: SessionId,
    pub(crate) mode: Mode,
    pub(crate) encapsulation: Encapsulation,
    pub(crate) family: Family,
    pub(crate) esn: bool,
    pub(crate) aead: bool,
    pub(crate) cbc: bool,
    pub(crate) iv_len: usize,
    pub(crate) icv_len: usize,
    pub(crate) align_mask: usize,
    /// The last sequence number sent, and the last that may be.
    pub(crate) sequence: u64,
    pub(crate) sequence_limit: u64,
    pub(crate) iv: IvRange,
    pub(crate) template: [u8; TEMPLATE],
    /// Sum over the template's IPv4 header with zeros in the fields that change.
    base_sum: Sum,
}

/// What a tunnel header takes from the inner packet.
#[derive(Clone, Copy, Debug)]
pub struct Inner {
    pub len: usize,
    pub next_header: u8,
    pub traffic_class: u8,
    pub dont_fragment: bool,
}

impl Inner {
    #[inline]
    pub fn of(ip: &Ip<'_>) -> Inner {
        let (next_header, dont_fragment) = match ip {
            Ip::V4(ip) => (protocol::IPV4, ip.dont_fragment()),
            // IPv6 is never fragmented on its way, so neither may be what carries it.
            Ip::V6(_) => (protocol::IPV6, true),
        };
        Inner { len: ip.bytes().len(), next_header, traffic_class: ip.traffic_class(), dont_fragment }
    }
}

impl OutboundSa {
    pub fn new(config: &SaConfig, session: SessionId, iv: IvRange) -> OutboundSa {
        let suite = config.suite;
        let mut sa = OutboundSa {
            session,
            mode: config.mode,
            encapsulation: config.encapsulation,
            family: Family::of(config.local),
            esn: config.esn,
            iv_len: suite.iv_len(),
            icv_len: suite.icv_len(),
            align_mask: suite.align() - 1,
            aead: !suite.covers_text(),
            cbc: suite.is_chained(),
            sequence: 0,
            // Both kinds of number fail closed at their end (RFC 4303 3.3.3).
            sequence_limit: if config.esn { u64::MAX } else { u64::from(u32::MAX) },
            iv,
            template: [0; TEMPLATE],
            base_sum: Sum::default(),
        };
        sa.lay_out_template(config);
        sa
    }

    /// Loads what preparing a packet reads, which is on several cache lines.
    #[inline]
    pub fn touch(&self) {
        std::hint::black_box((self.sequence, self.template[0], self.template[TEMPLATE - 1], self.iv_len));
    }

    /// Continues behind `sequence`: for tests of the end of the number space.
    pub fn continue_after(&mut self, sequence: u64) {
        self.sequence = sequence;
    }

    fn lay_out_template(&mut self, config: &SaConfig) {
        let spi_at = TEMPLATE - esp::HEADER;
        self.template[spi_at..spi_at + 4].copy_from_slice(&config.spi.get().to_be_bytes());
        let udp_at = spi_at - self.udp_len();
        if self.encapsulation == Encapsulation::Udp {
            self.template[udp_at..udp_at + 2].copy_from_slice(&NAT_T_PORT.to_be_bytes());
            self.template[udp_at + 2..udp_at + 4].copy_from_slice(&NAT_T_PORT.to_be_bytes());
        }
        let protocol = self.outer_protocol();
        let header = &mut self.template[udp_at - self.family.header_len()..udp_at];
        match (config.local, config.remote) {
            (std::net::IpAddr::V4(local), std::net::IpAddr::V4(remote)) => {
                header[0] = 0x45;
                header[8] = TTL;
                header[9] = protocol;
                header[12..16].copy_from_slice(&local.octets());
                header[16..20].copy_from_slice(&remote.octets());
                self.base_sum = Sum::default().bytes(header).folded();
            }
            (std::net::IpAddr::V6(local), std::net::IpAddr::V6(remote)) => {
                header[0] = 0x60;
                header[6] = protocol;
                header[7] = TTL;
                header[8..24].copy_from_slice(&local.octets());
                header[24..40].copy_from_slice(&remote.octets());
            }
            // `SaConfig::check` has refused mixed families.
            _ => {}
        }
    }

    #[inline]
    fn udp_len(&self) -> usize {
        match self.encapsulation {
            Encapsulation::None => 0,
            Encapsulation::Udp => udp::HEADER,
        }
    }

    #[inline]
    fn outer_protocol(&self) -> u8 {
        match self.encapsulation {
            Encapsulation::None => protocol::ESP,
            Encapsulation::Udp => protocol::UDP,
        }
    }

    /// Turns a plain packet into an ESP packet that only lacks encryption and ICV.
    #[inline]
    pub fn prepare(
        &mut self,
        packet: &mut Packet,
        inner: &Inner,
        spec: &mut JobSpec,
    ) -> Result<(), DropReason> {
        match self.mode {
            Mode::Tunnel => self.prepare_tunnel(packet, inner, spec),
            Mode::Transport => self.prepare_transport(packet, spec),
        }
    }

    #[inline]
    fn prepare_tunnel(
        &mut self,
        packet: &mut Packet,
        inner: &Inner,
        spec: &mut JobSpec,
    ) -> Result<(), DropReason> {
        let outer_len = self.family.header_len();
        let head = outer_len + self.udp_len() + esp::HEADER + self.iv_len;
        let tail = self.tail_len(inner.len);
        let total = head + inner.len + tail;
        // Total length counts the header in IPv4, payload length does not in IPv6.
        let limit = if self.family == Family::V4 { 65_535 } else { 65_535 + outer_len };
        if total > limit {
            return Err(DropReason::OutTooBig);
        }
        let esp_end = packet.offset().checked_sub(self.iv_len).ok_or(DropReason::TooLong)?;
        let front_at = esp_end.checked_sub(TEMPLATE).ok_or(DropReason::TooLong)?;
        packet.truncate(inner.len);
        let sequence = self.advance(packet, 0, head, tail, inner.next_header)?;

        let front = packet.buffer_mut().get_mut(front_at..esp_end);
        let front = front.and_then(|front| front.first_chunk_mut()).ok_or(DropReason::TooLong)?;
        *front = self.template;
        match (self.family, self.encapsulation) {
            (Family::V4, Encapsulation::None) => {
                self.fill_ipv4::<0>(front, inner, total, sequence);
            }
            (Family::V4, Encapsulation::Udp) => {
                self.fill_ipv4::<8>(front, inner, total, sequence);
                front[52..54].copy_from_slice(&((total - 20) as u16).to_be_bytes());
            }
            (Family::V6, Encapsulation::None) => fill_ipv6::<0>(front, inner, total),
            (Family::V6, Encapsulation::Udp) => {
                fill_ipv6::<8>(front, inner, total);
                front[52..54].copy_from_slice(&((total - 40) as u16).to_be_bytes());
            }
        }
        front[60..64].copy_from_slice(&(sequence as u32).to_be_bytes());
        self.state_job(packet, esp_end - esp::HEADER, sequence, spec);
        Ok(())
    }

    /// Writes what changes from packet to packet into the template's IPv4 header.
    #[inline]
    pub(crate) fn fill_ipv4<const UDP: usize>(
        &self,
        front: &mut [u8; TEMPLATE],
        inner: &Inner,
        total: usize,
        sequence: u64,
    ) {
        let header = &mut front[TEMPLATE - esp::HEADER - UDP - 20..];
        // An atomic datagram needs no identification (RFC 6864 4.1); others get the sequence's low bits.
        let (flags, identification) =
            if inner.dont_fragment { (DONT_FRAGMENT, 0) } else { (0, sequence as u16) };
        let checksum =
            self.base_sum.finish_with([inner.traffic_class.into(), total as u16, identification, flags]);
        header[1] = inner.traffic_class;
        let words = u64::from(total as u16) << 32 | u64::from(identification) << 16 | u64::from(flags);
        header[2..8].copy_from_slice(&words.to_be_bytes()[2..]);
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
    }

    fn prepare_transport(&mut self, packet: &mut Packet, spec: &mut JobSpec) -> Result<(), DropReason> {
        let ip = Ip::parse(packet.bytes()).map_err(out_hdr_error)?;
        let len = ip.bytes().len();
        // Where ESP goes, what it names as next header, and where its own number is to be put.
        let (at, next_header, named_at, fragment) = match ip {
            Ip::V4(ip) => (ip.header_len(), ip.protocol(), 9, ip.is_fragment()),
            Ip::V6(ip) => {
                let place = ip.transport_place().map_err(out_hdr_error)?;
                (place.at, place.protocol, place.named_at, place.is_fragment)
            }
        };
        let family = ip.family();
        if fragment {
            return Err(DropReason::OutFragment);
        }
        let head = self.udp_len() + esp::HEADER + self.iv_len;
        let tail = self.tail_len(len - at);
        let total = head + len + tail;
        let limit = if family == Family::V4 { 65_535 } else { 65_535 + family.header_len() };
        if total > limit {
            return Err(DropReason::OutTooBig);
        }
        packet.truncate(len);
        let sequence = self.advance(packet, at, head, tail, next_header)?;
        let outer_protocol = self.outer_protocol();
        let bytes = packet.bytes_mut();
        match family {
            Family::V4 => ipv4::rewrite(bytes, at, total as u16, outer_protocol),
            Family::V6 => {
                bytes[named_at] = outer_protocol;
                bytes[4..6].copy_from_slice(&((total - 40) as u16).to_be_bytes());
            }
        }
        // SPI and UDP ports from the template; the IP header in it is not used.
        let fixed = self.udp_len() + esp::HEADER;
        bytes[at..at + fixed].copy_from_slice(&self.template[TEMPLATE - fixed..]);
        if self.encapsulation == Encapsulation::Udp {
            bytes[at + 4..at + 6].copy_from_slice(&((total - at) as u16).to_be_bytes());
        }
        let sequence_at = at + fixed - 4;
        bytes[sequence_at..sequence_at + 4].copy_from_slice(&(sequence as u32).to_be_bytes());
        let esp_at = packet.offset() + at + self.udp_len();
        self.state_job(packet, esp_at, sequence, spec);
        Ok(())
    }

    /// Length of padding, trailer and ICV behind `payload_len` bytes.
    #[inline]
    fn tail_len(&self, payload_len: usize) -> usize {
        let pad_len = (payload_len + esp::TRAILER).wrapping_neg() & self.align_mask;
        pad_len + esp::TRAILER + self.icv_len
    }

    /// Takes sequence number and IV, makes room of `head` bytes behind the first `kept` bytes (the IP
    /// header in transport mode) and of `tail` bytes at the end, and writes trailer and IV. Nothing is
    /// taken unless there is room.
    #[inline]
    fn advance(
        &mut self,
        packet: &mut Packet,
        kept: usize,
        head: usize,
        tail: usize,
        next_header: u8,
    ) -> Result<u64, DropReason> {
        if self.sequence >= self.sequence_limit {
            return Err(DropReason::OutStateSeqError);
        }
        // Whatever may be missing is looked for before anything is changed: a packet that cannot be
        // prepared stays as it was.
        if self.iv.is_used_up() {
            return Err(DropReason::OutStateIvError);
        }
        let text_at = packet.offset();
        let text_end = text_at + packet.len();
        if packet.buffer().len() < text_end + TAIL_ROOM {
            return Err(DropReason::TooLong);
        }
        packet.grow(head, tail).ok_or(DropReason::TooLong)?;
        let buffer = packet.buffer_mut();
        let room = buffer.get_mut(text_end..text_end + TAIL_ROOM).and_then(|room| room.first_chunk_mut());
        let room: &mut [u8; TAIL_ROOM] = room.ok_or(DropReason::TooLong)?;
        let number = self.iv.take().ok_or(DropReason::OutStateIvError)?;
        let trailer = Trailer { pad_len: (tail - self.icv_len - esp::TRAILER) as u8, next_header };
        trailer.write(room);
        if kept > 0 {
            buffer.copy_within(text_at..text_at + kept, text_at - head);
        }
        let iv_at = text_at + kept - self.iv_len;
        if self.iv_len == 8 {
            buffer[iv_at..iv_at + 8].copy_from_slice(&number.to_be_bytes());
        } else {
            buffer[iv_at..iv_at + IV_ROOM].copy_from_slice(&u128::from(number).to_be_bytes());
        }
        self.sequence += 1;
        Ok(self.sequence)
    }

    /// States the job that is left, for the ESP header at `esp_at` in the buffer.
    #[inline]
    fn state_job(&self, packet: &Packet, esp_at: usize, sequence: u64, spec: &mut JobSpec) {
        let iv_at = esp_at + esp::HEADER;
        let icv_at = packet.offset() + packet.len() - self.icv_len;
        let cipher_at = if self.cbc { iv_at } else { iv_at + self.iv_len };
        let auth_end = if self.aead { iv_at } else { icv_at };
        *spec = JobSpec {
            session: self.session,
            cipher: span(cipher_at, icv_at),
            iv: iv_at as u32,
            auth: span(esp_at, auth_end),
            icv: icv_at as u32,
            seq_hi: self.esn.then_some((sequence >> 32) as u32),
        };
    }

    /// What is left to do once the packet is sealed.
    #[inline]
    pub fn complete(&self, packet: &mut Packet, spec: &JobSpec) {
        if self.encapsulation == Encapsulation::Udp && packet.bytes()[0] >> 4 == 6 {
            // Over IPv6 UDP must have a checksum, which covers the ciphertext.
            let udp_at = spec.auth.start as usize - udp::HEADER - packet.offset();
            udp::fill_checksum_v6(packet.bytes_mut(), udp_at);
        }
    }
}

/// Writes what changes from packet to packet into the template's IPv6 header.
#[inline]
pub(crate) fn fill_ipv6<const UDP: usize>(front: &mut [u8; TEMPLATE], inner: &Inner, total: usize) {
    let header = &mut front[TEMPLATE - esp::HEADER - UDP - 40..];
    header[0] = 0x60 | inner.traffic_class >> 4;
    header[1] = inner.traffic_class << 4;
    header[4..6].copy_from_slice(&((total - 40) as u16).to_be_bytes());
}

#[inline]
fn span(start: usize, end: usize) -> Span {
    Span { start: start as u32, len: (end - start) as u32 }
}

fn out_hdr_error(_: Malformed) -> DropReason {
    DropReason::OutHdrError
}
