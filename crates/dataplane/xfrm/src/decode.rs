//! From bytes to [`Message`]; offsets are those of `linux/xfrm.h`, the same on every 64-bit machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use forebay_crypto::{Direction, SecretBytes};

use crate::abi::{attribute, family, flag, len, message};
use crate::kernel::{
    Algorithm, Encap, KernelPolicy, KernelSa, KernelTemplate, LifetimeConfig, Mark, Message, SaId, Selector,
    Sequence, Usage, Way,
};
use forebay_netlink::{
    Attributes, DONE, DUMP_INTERRUPTED, ERROR, Frame, Malformed, bytes_at, u16_at, u32_at, u64_at,
};

/// The longest key that is believed, in bytes: twice the longest there is.
const MAX_KEY: usize = 256;
/// `XFRM_MAX_DEPTH`.
const MAX_TEMPLATES: usize = 6;

/// Reads one message.
pub fn decode(frame: &Frame<'_>) -> Result<Message, Malformed> {
    let body = frame.body;
    Ok(match frame.kind {
        DONE => Message::DumpEnd { sequence: frame.sequence, again: frame.flags & DUMP_INTERRUPTED != 0 },
        ERROR => match u32_at(body, 0).ok_or(Malformed("an error without a number"))? as i32 {
            0 => Message::Other,
            errno => Message::Refused { sequence: frame.sequence, errno: errno.saturating_neg() },
        },
        message::NEW_SA => Message::SaAdded(Box::new(sa(body, Attributes::behind(body, len::SA_INFO))?)),
        message::UPDATE_SA => Message::SaUpdated(Box::new(sa(body, Attributes::behind(body, len::SA_INFO))?)),
        message::DELETE_SA => deleted_sa(body)?,
        message::EXPIRE => {
            let attributes = Attributes::behind(body, len::EXPIRE);
            let id = sa_id_in_info(body, mark_of(attributes)?)?;
            Message::SaExpired { id, hard: byte(body, len::SA_INFO)? != 0 }
        }
        message::FLUSH_SA => Message::SasFlushed(byte(body, 0)?),
        message::NEW_POLICY | message::UPDATE_POLICY => policy(body)?,
        message::POLICY_EXPIRE if byte(body, len::POLICY_INFO)? != 0 => {
            Message::PolicyDeleted(word(body, 156)?)
        }
        message::DELETE_POLICY => deleted_policy(body)?,
        message::FLUSH_POLICY => {
            let kind = find(Attributes::behind(body, 0), attribute::POLICY_TYPE)?;
            Message::PoliciesFlushed(kind.and_then(|kind| kind.first().copied()).unwrap_or(0))
        }
        message::MIGRATE | message::MIGRATE_STATE => Message::Migrated,
        _ => Message::Other,
    })
}

const SHORT: Malformed = Malformed("shorter than its fixed part");

fn byte(body: &[u8], at: usize) -> Result<u8, Malformed> {
    body.get(at).copied().ok_or(SHORT)
}

fn half(body: &[u8], at: usize) -> Result<u16, Malformed> {
    u16_at(body, at).ok_or(SHORT)
}

fn word(body: &[u8], at: usize) -> Result<u32, Malformed> {
    u32_at(body, at).ok_or(SHORT)
}

fn long(body: &[u8], at: usize) -> Result<u64, Malformed> {
    u64_at(body, at).ok_or(SHORT)
}

fn half_be(body: &[u8], at: usize) -> Result<u16, Malformed> {
    bytes_at(body, at).map(u16::from_be_bytes).ok_or(SHORT)
}

fn word_be(body: &[u8], at: usize) -> Result<u32, Malformed> {
    bytes_at(body, at).map(u32::from_be_bytes).ok_or(SHORT)
}

/// `xfrm_address_t`.
fn address(body: &[u8], at: usize, of: u16) -> Result<IpAddr, Malformed> {
    let octets: [u8; 16] = bytes_at(body, at).ok_or(SHORT)?;
    match of {
        family::INET => Ok(Ipv4Addr::new(octets[0], octets[1], octets[2], octets[3]).into()),
        family::INET6 => Ok(Ipv6Addr::from(octets).into()),
        _ => Err(Malformed("an address of an unknown family")),
    }
}

fn find<'a>(attributes: Attributes<'a>, wanted: u16) -> Result<Option<&'a [u8]>, Malformed> {
    for found in attributes {
        let (kind, content) = found?;
        if kind == wanted {
            return Ok(Some(content));
        }
    }
    Ok(None)
}

fn mark(content: &[u8]) -> Result<Mark, Malformed> {
    Ok(Mark { value: word(content, 0)?, mask: word(content, 4)? })
}

fn mark_of(attributes: Attributes<'_>) -> Result<Mark, Malformed> {
    find(attributes, attribute::MARK)?.map_or(Ok(Mark::default()), mark)
}

fn selector(body: &[u8], outer: u16) -> Result<Selector, Malformed> {
    let said = half(body, 40)?;
    // Of both versions: the addresses are zero, and shown in that of the SA.
    let of = if said == family::UNSPEC { outer } else { said };
    let of = if of == family::UNSPEC { family::INET } else { of };
    Ok(Selector {
        destination: (address(body, 0, of)?, byte(body, 42)?),
        source: (address(body, 16, of)?, byte(body, 43)?),
        destination_port: (half_be(body, 32)?, half_be(body, 34)?),
        source_port: (half_be(body, 36)?, half_be(body, 38)?),
        any_family: said == family::UNSPEC,
        protocol: byte(body, 44)?,
        interface: word(body, 48)?,
        user: word(body, 52)?,
    })
}

fn lifetime(body: &[u8], at: usize) -> Result<LifetimeConfig, Malformed> {
    let pair = |index: usize| Ok((long(body, at + 16 * index)?, long(body, at + 16 * index + 8)?));
    Ok(LifetimeConfig { bytes: pair(0)?, packets: pair(1)?, added_s: pair(2)?, used_s: pair(3)? })
}

fn usage(body: &[u8], at: usize) -> Result<Usage, Malformed> {
    Ok(Usage {
        bytes: long(body, at)?,
        packets: long(body, at + 8)?,
        added_s: long(body, at + 16)?,
        used_s: long(body, at + 24)?,
    })
}

/// Of a `struct xfrm_usersa_info`.
fn sa_id_in_info(body: &[u8], mark: Mark) -> Result<SaId, Malformed> {
    let of = half(body, 212)?;
    Ok(SaId { destination: address(body, 56, of)?, spi: word_be(body, 72)?, protocol: byte(body, 76)?, mark })
}

fn sa(body: &[u8], attributes: Attributes<'_>) -> Result<KernelSa, Malformed> {
    let id = sa_id_in_info(body, mark_of(attributes.clone())?)?;
    let of = half(body, 212)?;
    let mut sa = KernelSa {
        id,
        source: address(body, 80, of)?,
        selector: selector(body, of)?,
        lifetime: lifetime(body, 96)?,
        usage: usage(body, 160)?,
        reqid: word(body, 208)?,
        mode: byte(body, 214)?,
        replay_window: byte(body, 215)?.into(),
        flags: byte(body, 216)?,
        extra_flags: 0,
        aead: None,
        integrity: None,
        cipher: None,
        compresses: false,
        encap: None,
        if_id: 0,
        tfc_padding: 0,
        sequence: Sequence::default(),
        direction: None,
        offloaded: false,
        cpu: None,
    };
    for found in attributes {
        let (kind, content) = found?;
        match kind {
            attribute::ALG_AEAD => sa.aead = Some(algorithm(content, true)?),
            attribute::ALG_AUTH_TRUNC => sa.integrity = Some(algorithm(content, true)?),
            // The older attribute comes beside the newer, which says more.
            attribute::ALG_AUTH if sa.integrity.is_none() => {
                sa.integrity = Some(algorithm(content, false)?);
            }
            attribute::ALG_CRYPT => sa.cipher = Some(algorithm(content, false)?),
            attribute::ALG_COMP => sa.compresses = true,
            attribute::ENCAP => {
                sa.encap = Some(Encap {
                    kind: half(content, 0)?,
                    source_port: half_be(content, 2)?,
                    destination_port: half_be(content, 4)?,
                });
            }
            attribute::IF_ID => sa.if_id = word(content, 0)?,
            attribute::TFC_PAD => sa.tfc_padding = word(content, 0)?,
            attribute::SA_EXTRA_FLAGS => sa.extra_flags = word(content, 0)?,
            attribute::REPLAY_VAL => {
                sa.sequence.sent = word(content, 0)?.into();
                sa.sequence.received = word(content, 4)?.into();
            }
            attribute::REPLAY_ESN_VAL => {
                sa.replay_window = word(content, 20)?;
                sa.sequence = Sequence {
                    sent: u64::from(word(content, 12)?) << 32 | u64::from(word(content, 4)?),
                    received: u64::from(word(content, 16)?) << 32 | u64::from(word(content, 8)?),
                    bitmap_words: Some(word(content, 0)?),
                };
            }
            attribute::SA_DIRECTION => {
                sa.direction = match byte(content, 0)? {
                    1 => Some(Direction::Open),
                    2 => Some(Direction::Seal),
                    _ => None,
                };
            }
            attribute::OFFLOAD_DEVICE => sa.offloaded = true,
            attribute::SA_CPU => sa.cpu = Some(word(content, 0)?),
            _ => {}
        }
    }
    Ok(sa)
}

/// `struct xfrm_algo`, or with the ICV's length `xfrm_algo_auth` and `xfrm_algo_aead`.
fn algorithm(content: &[u8], has_icv: bool) -> Result<Algorithm, Malformed> {
    let name = content.get(..64).ok_or(SHORT)?;
    let end = name.iter().position(|&byte| byte == 0).ok_or(Malformed("a name without an end"))?;
    let name = std::str::from_utf8(&name[..end]).map_err(|_| Malformed("a name that is not text"))?;
    let key_len = word(content, 64)?.div_ceil(8) as usize;
    let (icv_bits, at) = if has_icv { (Some(word(content, 68)?), 72) } else { (None, 68) };
    let key = content.get(at..).and_then(|rest| rest.get(..key_len.min(MAX_KEY + 1)));
    let key = key.filter(|key| key.len() <= MAX_KEY).ok_or(Malformed("a key longer than its attribute"))?;
    Ok(Algorithm { name: name.to_owned(), key: SecretBytes::new(key.to_vec()), icv_bits })
}

/// `struct xfrm_usersa_id`, and what was deleted in an attribute.
fn deleted_sa(body: &[u8]) -> Result<Message, Malformed> {
    let of = half(body, 20)?;
    let mark = mark_of(Attributes::behind(body, len::SA_ID))?;
    let id =
        SaId { destination: address(body, 0, of)?, spi: word_be(body, 16)?, protocol: byte(body, 22)?, mark };
    Ok(Message::SaDeleted(id))
}

fn template(content: &[u8]) -> Result<KernelTemplate, Malformed> {
    let of = half(content, 24)?;
    Ok(KernelTemplate {
        destination: address(content, 0, of)?,
        source: address(content, 28, of)?,
        spi: word_be(content, 16)?,
        protocol: byte(content, 20)?,
        reqid: word(content, 44)?,
        mode: byte(content, 48)?,
        optional: byte(content, 50)? != 0,
    })
}

fn policy(body: &[u8]) -> Result<Message, Malformed> {
    let info = body.get(..len::POLICY_INFO).ok_or(SHORT)?;
    let way = match byte(info, 160)? {
        0 => Way::In,
        1 => Way::Out,
        2 => Way::Forward,
        // Of single sockets.
        _ => return Ok(Message::Other),
    };
    let mut clean = info.to_vec();
    clean[120..152].fill(0); // counters
    let mut policy = KernelPolicy {
        index: word(info, 156)?,
        way,
        selector: selector(info, family::UNSPEC)?,
        priority: word(info, 152)?,
        blocks: byte(info, 161)? != 0,
        per_cpu: byte(info, 162)? & flag::POLICY_CPU_ACQUIRE != 0,
        templates: Vec::new(),
        mark: Mark::default(),
        if_id: 0,
        info: clean.into(),
        raw_templates: Box::default(),
    };
    for found in Attributes::behind(body, len::POLICY_INFO) {
        let (kind, content) = found?;
        match kind {
            attribute::TEMPLATES => {
                let (templates, rest) = content.as_chunks::<{ len::TEMPLATE }>();
                if !rest.is_empty() || templates.len() > MAX_TEMPLATES {
                    return Err(Malformed("templates that are not whole, or too many"));
                }
                policy.templates = templates.iter().map(|one| template(one)).collect::<Result<_, _>>()?;
                policy.raw_templates = content.into();
            }
            attribute::MARK => policy.mark = mark(content)?,
            attribute::IF_ID => policy.if_id = word(content, 0)?,
            // Sub-policies (of Mobile IPv6) come on top of the usual ones: not ours.
            attribute::POLICY_TYPE if byte(content, 0)? != 0 => return Ok(Message::Other),
            _ => {}
        }
    }
    Ok(Message::Policy(Box::new(policy)))
}

/// `struct xfrm_userpolicy_id`, and what was deleted in an attribute.
fn deleted_policy(body: &[u8]) -> Result<Message, Malformed> {
    let whole = find(Attributes::behind(body, len::POLICY_ID), attribute::POLICY)?;
    Ok(Message::PolicyDeleted(match whole {
        Some(info) => word(info, 156)?,
        None => word(body, 56)?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `XFRM_MSG_MIGRATE` and `XFRM_MSG_MIGRATE_STATE` of linux/xfrm.h: the notice of a migration has no SA from which ours could be renewed.
    #[test]
    fn migrations_have_everything_read_again() {
        for kind in [0x21, 0x29] {
            let frame = Frame { kind, flags: 0, sequence: 0, body: &[0; 80] };
            assert!(matches!(decode(&frame), Ok(Message::Migrated)));
        }
    }
}
