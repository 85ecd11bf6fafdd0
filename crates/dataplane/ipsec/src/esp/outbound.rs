//! ESP outbound: everything around the crypto job when sealing (RFC 4303 3.3).

use forebay_crypto::{JobSpec, Packet, SessionId, Span};
use forebay_wire::esp::Trailer;
use forebay_wire::udp;
use forebay_wire::{Family, Ip, Malformed, esp, ipv4, ipv6, protocol};

use super::front::{self, Front};
use crate::iv::IvRange;
use crate::outbound_numbers::OutboundNumbers;
use crate::path_limit::{PathLimit, is_divisible};
use crate::sa::{Encapsulation, Mode, SaConfig, Tfc};
use crate::watch::Watch;
use forebay_drops::DropReason;
use forebay_tunnel::{Encapsulator, Inner};

/// Room for the longest IV.
const IV_ROOM: usize = 16;
/// Room for the longest padding that alignment asks for, and the trailer.
const TAIL_ROOM: usize = 32;

/// An outbound SA: its settings, its counters of sequence numbers and IVs, and its header template. In few
/// bytes: with very many SAs a packet's cost is the cache lines that it has to wait for.
#[derive(Debug)]
#[repr(C)]
pub struct OutboundSa {
    // What every packet changes, on the lines of the counters of its entry.
    pub(crate) numbers: OutboundNumbers,
    // What packets only read.
    pub(crate) template: Front,
    pub(crate) encapsulator: Encapsulator,
    pub(crate) limit: PathLimit,
    /// Folded sum over the template's IPv4 header with zeros in the fields that change.
    pub(crate) base_sum: u16,
    pub(crate) mode: Mode,
    pub(crate) encapsulation: Encapsulation,
    pub(crate) family: Family,
    pub(crate) aead: bool,
    pub(crate) cbc: bool,
    /// Lengths in bytes.
    pub(crate) iv_len: u8,
    pub(crate) icv_len: u8,
    pub(crate) align_mask: u8,
    /// Whether the encapsulator is a plain one, there is no TFC padding, and the suite is an AEAD with
    /// an IV of eight bytes.
    pub(crate) plain: bool,
    /// Whether inner packets share its packets (RFC 9347).
    pub(crate) aggregates: bool,
}

impl OutboundSa {
    pub fn new(config: &SaConfig, session: SessionId, iv: IvRange, watch: &mut Watch) -> OutboundSa {
        let suite = config.suite;
        let (aead, iv_len) = (!suite.covers_text(), suite.iv_len());
        let is_plain = Encapsulator::new(&config.tunnel, 0).is_plain() && config.tfc == Tfc::None;
        let mut sa = OutboundSa {
            mode: config.mode,
            encapsulation: config.encapsulation,
            family: Family::of(config.local),
            iv_len: iv_len as u8,
            icv_len: suite.icv_len() as u8,
            align_mask: (suite.align() - 1) as u8,
            aead,
            cbc: suite.is_chained(),
            numbers: OutboundNumbers::new(config, session, iv, watch),
            encapsulator: Encapsulator::new(&config.tunnel, config.spi.get().into()),
            plain: is_plain && aead && iv_len == 8,
            limit: PathLimit::of(config),
            template: [0; front::LEN],
            base_sum: 0,
            aggregates: config.iptfs.is_some(),
        };
        sa.lay_out_template(config);
        sa
    }

    /// Loads what preparing a packet reads beyond the first cache line of the entry.
    #[inline]
    pub fn touch(&self) {
        std::hint::black_box((self.numbers.iv.peek().0, self.template[0], self.base_sum));
    }

    /// Lays down what all packets have in common: at first, and when the peer has another address.
    pub(crate) fn lay_out_template(&mut self, config: &SaConfig) {
        (self.template, self.base_sum) = front::template(config, self.encapsulator.fixed_ttl());
    }

    #[inline]
    pub(crate) fn iv_len(&self) -> usize {
        self.iv_len.into()
    }

    #[inline]
    pub(crate) fn icv_len(&self) -> usize {
        self.icv_len.into()
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
        watch: &mut Watch,
    ) -> Result<(), DropReason> {
        match self.mode {
            // RFC 9347 2.3: nothing else may be sent over it.
            Mode::Tunnel if self.aggregates => Err(DropReason::OutStateModeError),
            Mode::Tunnel => self.prepare_tunnel(packet, inner, spec, watch),
            Mode::Transport => self.prepare_transport(packet, spec, watch),
        }
    }

    /// Makes an ESP packet that only lacks encryption and ICV of a payload of inner packets, whose marks make `ecn`.
    pub fn prepare_payload(
        &mut self,
        packet: &mut Packet,
        ecn: u8,
        spec: &mut JobSpec,
        watch: &mut Watch,
    ) -> Result<(), DropReason> {
        // RFC 9347 2.2.5: nothing else of the inner headers shows outside. The size is set to fit the path, so
        // a path that is narrower is to say so.
        let inner = Inner {
            len: packet.len(),
            next_header: protocol::AGGFRAG,
            traffic_class: ecn,
            ttl: 64,
            dont_fragment: true,
        };
        self.prepare_tunnel(packet, &inner, spec, watch)
    }

    /// Makes `packet` a dummy packet with `len` bytes inside (RFC 4303 2.6), to be sealed and sent like any
    /// other; TFC padding applies.
    pub fn dummy(
        &mut self,
        packet: &mut Packet,
        len: usize,
        spec: &mut JobSpec,
        watch: &mut Watch,
    ) -> Result<(), DropReason> {
        packet.set_bounds(Packet::HEADROOM, Packet::HEADROOM);
        packet.grow(0, len).ok_or(DropReason::TooLong)?;
        packet.bytes_mut().fill(0);
        let inner =
            Inner { len, next_header: protocol::NONE, traffic_class: 0, ttl: 64, dont_fragment: true };
        self.prepare_tunnel(packet, &inner, spec, watch)
    }

    #[inline]
    fn prepare_tunnel(
        &mut self,
        packet: &mut Packet,
        inner: &Inner,
        spec: &mut JobSpec,
        watch: &mut Watch,
    ) -> Result<(), DropReason> {
        let outer_len = self.family.header_len();
        let head = outer_len + self.udp_len() + esp::HEADER + self.iv_len();
        let padded = inner.len.max(self.limit.pad_to as usize);
        let tail = self.tail_len(padded);
        let total = head + padded + tail;
        let mut outer = self.encapsulator.outer(inner);
        if self.family == Family::V6 {
            outer.flow_label = self.encapsulator.flow_label(packet.bytes());
        }
        if total > self.limit.longest as usize {
            self.limit.exceed(self.family, inner, total)?;
            outer.dont_fragment = false;
        }
        let esp_end = packet.offset().checked_sub(self.iv_len()).ok_or(DropReason::TooLong)?;
        let front_at = esp_end.checked_sub(front::LEN).ok_or(DropReason::TooLong)?;
        packet.truncate(inner.len);
        let growth = Growth { kept: 0, head, tfc: padded - inner.len, tail };
        let sequence = self.advance(packet, &growth, inner.next_header, watch)?;

        let front = packet.buffer_mut().get_mut(front_at..esp_end);
        let front = front.and_then(|front| front.first_chunk_mut()).ok_or(DropReason::TooLong)?;
        *front = self.template;
        match (self.family, self.encapsulation) {
            (Family::V4, Encapsulation::None) => {
                let sum = front::set_ipv4::<0>(front, self.base_sum, &outer, total);
                front::number_ipv4::<0>(front, sum, outer.dont_fragment, sequence);
            }
            (Family::V4, Encapsulation::Udp) => {
                let sum = front::set_ipv4::<8>(front, self.base_sum, &outer, total);
                front::number_ipv4::<8>(front, sum, outer.dont_fragment, sequence);
                front::set_udp_length(front, total - outer_len);
            }
            (Family::V6, Encapsulation::None) => front::set_ipv6::<0>(front, &outer, total),
            (Family::V6, Encapsulation::Udp) => {
                front::set_ipv6::<8>(front, &outer, total);
                front::set_udp_length(front, total - outer_len);
            }
        }
        front::set_sequence(front, sequence);
        self.state_job(packet, esp_end - esp::HEADER, sequence, spec);
        Ok(())
    }

    fn prepare_transport(
        &mut self,
        packet: &mut Packet,
        spec: &mut JobSpec,
        watch: &mut Watch,
    ) -> Result<(), DropReason> {
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
        let head = self.udp_len() + esp::HEADER + self.iv_len();
        let tail = self.tail_len(len - at);
        let total = head + len + tail;
        self.limit.admit_whole(family, total, is_divisible(&ip, at, next_header))?;
        packet.truncate(len);
        let growth = Growth { kept: at, head, tfc: 0, tail };
        let sequence = self.advance(packet, &growth, next_header, watch)?;
        let outer_protocol = self.outer_protocol();
        let mut front = self.template;
        if self.encapsulation == Encapsulation::Udp {
            front::set_udp_length(&mut front, total - at);
        }
        front::set_sequence(&mut front, sequence);
        let bytes = packet.bytes_mut();
        match family {
            Family::V4 => ipv4::rewrite(bytes, at, total as u16, outer_protocol),
            Family::V6 => ipv6::rewrite(bytes, named_at, total, outer_protocol),
        }
        // The IP header in the template is not used.
        let headers = front::transport(&front, self.encapsulation);
        bytes[at..at + headers.len()].copy_from_slice(headers);
        let esp_at = packet.offset() + at + self.udp_len();
        self.state_job(packet, esp_at, sequence, spec);
        Ok(())
    }

    /// Length of padding, trailer and ICV behind `payload_len` bytes.
    #[inline]
    fn tail_len(&self, payload_len: usize) -> usize {
        let pad_len = (payload_len + esp::TRAILER).wrapping_neg() & usize::from(self.align_mask);
        pad_len + esp::TRAILER + self.icv_len()
    }

    /// Takes sequence number and IV, makes room, and writes TFC padding, trailer and IV. Nothing is
    /// taken unless there is room.
    #[inline]
    fn advance(
        &mut self,
        packet: &mut Packet,
        growth: &Growth,
        next_header: u8,
        watch: &mut Watch,
    ) -> Result<u64, DropReason> {
        let &Growth { kept, head, tfc, tail } = growth;
        // Whatever may be missing is looked for before anything is changed: a packet that cannot be
        // prepared stays as it was.
        self.numbers.look(true, watch)?;
        let text_at = packet.offset();
        let payload_end = text_at + packet.len();
        let text_end = payload_end + tfc;
        if packet.buffer().len() < text_end + TAIL_ROOM {
            return Err(DropReason::TooLong);
        }
        let enciphered = packet.len() - kept + tfc + tail - self.icv_len();
        self.numbers.admit(enciphered, watch)?;
        packet.grow(head, tfc + tail).ok_or(DropReason::TooLong)?;
        let buffer = packet.buffer_mut();
        buffer[payload_end..text_end].fill(0);
        let room = buffer.get_mut(text_end..text_end + TAIL_ROOM).and_then(|room| room.first_chunk_mut());
        let room: &mut [u8; TAIL_ROOM] = room.ok_or(DropReason::TooLong)?;
        let number = self.numbers.take_iv()?;
        let trailer = Trailer { pad_len: (tail - self.icv_len() - esp::TRAILER) as u8, next_header };
        trailer.write(room);
        if kept > 0 {
            buffer.copy_within(text_at..text_at + kept, text_at - head);
        }
        let iv_at = text_at + kept - self.iv_len();
        match self.iv_len {
            8 => buffer[iv_at..iv_at + 8].copy_from_slice(&number.to_be_bytes()),
            0 => {}
            _ => buffer[iv_at..iv_at + IV_ROOM].copy_from_slice(&u128::from(number).to_be_bytes()),
        }
        Ok(self.numbers.take(enciphered))
    }

    /// States the job that is left, for the ESP header at `esp_at` in the buffer.
    #[inline]
    fn state_job(&self, packet: &Packet, esp_at: usize, sequence: u64, spec: &mut JobSpec) {
        let iv_at = esp_at + esp::HEADER;
        let icv_at = packet.offset() + packet.len() - self.icv_len();
        let cipher_at = if self.cbc { iv_at } else { iv_at + self.iv_len() };
        let auth_end = if self.aead { iv_at } else { icv_at };
        *spec = JobSpec {
            session: self.numbers.session,
            cipher: span(cipher_at, icv_at),
            iv: iv_at as u32,
            auth: span(esp_at, auth_end),
            icv: icv_at as u32,
            seq_hi: self.numbers.esn.then_some((sequence >> 32) as u32),
        };
    }

    /// Finishes a packet once it has been sealed.
    #[inline]
    pub fn complete(&self, packet: &mut Packet, spec: &JobSpec) {
        if self.encapsulation == Encapsulation::Udp && packet.bytes()[0] >> 4 == 6 {
            // Over IPv6 UDP must have a checksum, which covers the ciphertext.
            let udp_at = spec.auth.start as usize - udp::HEADER - packet.offset();
            udp::fill_checksum_v6(packet.bytes_mut(), udp_at);
        }
    }
}

/// By what a packet grows, and where.
struct Growth {
    /// Bytes that stay in front: the IP header in transport mode.
    kept: usize,
    /// Bytes that come behind those.
    head: usize,
    /// Zeros behind the payload.
    tfc: usize,
    /// Padding, trailer and ICV.
    tail: usize,
}

#[inline]
fn span(start: usize, end: usize) -> Span {
    Span { start: start as u32, len: (end - start) as u32 }
}

fn out_hdr_error(_: Malformed) -> DropReason {
    DropReason::OutHdrError
}
