//! AH outbound: everything around the crypto job when sealing (RFC 4302 3.3).

use std::net::IpAddr;

use forebay_crypto::{Direction, JobSpec, Packet, SessionId};
use forebay_wire::ipv4::DONT_FRAGMENT;
use forebay_wire::{Family, Ip, Malformed, ah, ipv4, ipv6, protocol};

use super::layout::{HEADERS_MAX, Headers, Sizes};
use crate::iv::IvRange;
use crate::outbound_numbers::OutboundNumbers;
use crate::overhead::Overhead;
use crate::path_limit::{PathLimit, is_divisible};
use crate::sa::{Mode, SaConfig, Spi};
use crate::watch::Watch;
use forebay_drops::DropReason;
use forebay_tunnel::{Encapsulator, Inner};

/// An outbound SA of AH.
#[derive(Debug)]
pub struct OutboundAh {
    sizes: Sizes,
    mode: Mode,
    spi: Spi,
    local: IpAddr,
    pub(crate) remote: IpAddr,
    pub(crate) numbers: OutboundNumbers,
    encapsulator: Encapsulator,
    overhead: Overhead,
    pub(crate) limit: PathLimit,
}

/// What goes where in the packet to be.
struct Plan {
    family: Family,
    /// With everything but their lengths.
    headers: Headers,
    next_header: u8,
    /// What AH protects beside the headers, as offsets in the packet.
    payload_at: usize,
    payload_end: usize,
    /// Length of all of it with AH.
    total: usize,
}

impl OutboundAh {
    pub fn new(config: &SaConfig, session: SessionId, iv: IvRange, watch: &mut Watch) -> OutboundAh {
        let suite = config.suite;
        OutboundAh {
            sizes: Sizes { session, iv_len: suite.iv_len(), icv_len: suite.icv_len(), esn: config.esn },
            mode: config.mode,
            spi: config.spi,
            local: config.local,
            remote: config.remote,
            numbers: OutboundNumbers::new(config, session, iv, watch),
            encapsulator: Encapsulator::new(&config.tunnel, config.spi.get().into()),
            overhead: Overhead::of(config),
            limit: PathLimit::of(config),
        }
    }

    /// Turns a plain packet into the image of an AH packet. A packet that cannot be prepared stays as
    /// it was, but for what is behind its own length.
    pub fn prepare(
        &mut self,
        packet: &mut Packet,
        inner: &Inner,
        spec: &mut JobSpec,
        watch: &mut Watch,
    ) -> Result<(), DropReason> {
        let plan = match self.mode {
            Mode::Tunnel => self.plan_tunnel(packet, inner)?,
            Mode::Transport => self.plan_transport(packet)?,
        };
        let Plan { family, mut headers, next_header, payload_at, payload_end, total } = plan;
        let ah_len = self.ah_len(family);
        headers.set_length(family, total, protocol::AH);
        let image = headers.image(Direction::Seal).ok_or(DropReason::OutHdrError)?;
        let payload = packet.offset() + payload_at;
        let ah_at = payload.checked_sub(ah_len).ok_or(DropReason::TooLong)?;
        let places = self.sizes.places(packet, headers.len, ah_at, packet.offset() + payload_end);
        let places = places.ok_or(DropReason::TooLong)?;
        let sequence = self.advance(total, watch)?;
        let header = ah::Header { next_header, spi: self.spi.get(), sequence: sequence as u32 };
        let ah = &mut packet.buffer_mut()[ah_at..payload];
        header.write(ah);
        if self.sizes.iv_len > 0 {
            let number = self.numbers.take_iv()?;
            ah[ah::FIXED..][..self.sizes.iv_len].copy_from_slice(&number.to_be_bytes());
        }
        self.sizes.lay_out(packet, &places, &headers, &image, sequence, spec);
        Ok(())
    }

    fn ah_len(&self, family: Family) -> usize {
        ah::Header::len(family, self.sizes.iv_len + self.sizes.icv_len)
    }

    /// The next sequence number for a packet of `total` bytes, if there is one, and an IV to go with it.
    fn advance(&mut self, total: usize, watch: &mut Watch) -> Result<u64, DropReason> {
        self.numbers.look(self.sizes.iv_len > 0, watch)?;
        let covered = total + self.sizes.behind();
        self.numbers.admit(covered, watch)?;
        Ok(self.numbers.take(covered))
    }

    fn plan_tunnel(&self, packet: &Packet, inner: &Inner) -> Result<Plan, DropReason> {
        let mut headers = Headers { bytes: [0; HEADERS_MAX], len: 0 };
        let mut outer = self.encapsulator.outer(inner);
        let total = self.overhead.sealed_len(inner.len);
        if total > self.limit.longest as usize {
            self.limit.exceed(Family::of(self.local), inner, total)?;
            outer.dont_fragment = false;
        }
        let (class, ttl) = (outer.traffic_class, self.encapsulator.fixed_ttl() | outer.copied_ttl);
        let family = match (self.local, self.remote) {
            (IpAddr::V4(local), IpAddr::V4(remote)) => {
                // An atomic datagram needs no identification (RFC 6864 4.1); others get the sequence's
                // low bits, which the ICV covers.
                let (fragment_word, identification) = match outer.dont_fragment {
                    true => (DONT_FRAGMENT, 0),
                    false => (0, self.numbers.sequence.wrapping_add(1) as u16),
                };
                let header = ipv4::Header {
                    traffic_class: class,
                    identification,
                    fragment_word,
                    ttl,
                    ..ipv4::Header::between(local, remote)
                };
                headers.bytes[..ipv4::MIN_HEADER].copy_from_slice(&header.bytes());
                Family::V4
            }
            (IpAddr::V6(local), IpAddr::V6(remote)) => {
                let header = ipv6::Header {
                    traffic_class: class,
                    flow_label: self.encapsulator.flow_label(packet.bytes()),
                    next_header: protocol::AH,
                    hop_limit: ttl,
                    ..ipv6::Header::between(local, remote)
                };
                headers.bytes[..ipv6::HEADER].copy_from_slice(&header.bytes());
                Family::V6
            }
            // `SaConfig::check` has refused mixed families.
            (local, _) => Family::of(local),
        };
        headers.len = family.header_len();
        let (next_header, payload_end) = (inner.next_header, inner.len);
        Ok(Plan { family, headers, next_header, payload_at: 0, payload_end, total })
    }

    fn plan_transport(&self, packet: &Packet) -> Result<Plan, DropReason> {
        let ip = Ip::parse(packet.bytes()).map_err(out_hdr_error)?;
        let (at, next_header, named_at, fragment) = match ip {
            Ip::V4(ip) => (ip.header_len(), ip.protocol(), 9, ip.is_fragment()),
            Ip::V6(ip) => {
                let place = ip.transport_place().map_err(out_hdr_error)?;
                (place.at, place.protocol, place.named_at, place.is_fragment)
            }
        };
        if fragment {
            return Err(DropReason::OutFragment);
        }
        let mut headers = Headers::of(&ip.bytes()[..at]).ok_or(DropReason::TooLong)?;
        headers.bytes[named_at] = protocol::AH;
        if ip.family() == Family::V6 {
            headers.unfragment();
        }
        let (family, payload_end) = (ip.family(), ip.bytes().len());
        let total = headers.len + self.ah_len(family) + (payload_end - at);
        self.limit.admit_whole(family, total, is_divisible(&ip, at, next_header))?;
        Ok(Plan { family, headers, next_header, payload_at: at, payload_end, total })
    }

    /// Finishes a packet once its ICV has been written.
    #[inline]
    pub fn complete(&self, packet: &mut Packet, spec: &JobSpec) {
        let places = self.sizes.places_of(packet, spec);
        let icv_at = places.ah + ah::FIXED + self.sizes.iv_len;
        packet.buffer_mut().copy_within(places.icv..places.icv + self.sizes.icv_len, icv_at);
        places.restore(packet);
    }
}

fn out_hdr_error(_: Malformed) -> DropReason {
    DropReason::OutHdrError
}
