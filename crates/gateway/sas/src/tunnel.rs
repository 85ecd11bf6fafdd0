//! How the outer headers of an SA are made, and how long its packets may be.

use std::net::IpAddr;

use forebay_ipsec::{
    DontFragment, Dscp, Ecn, FlowLabel, HopLimit, InnerDscp, MIN_PATH_MTU_V4, Mode, Tfc, TunnelRules,
};
use forebay_wire::ipv6;

use super::errors::Findings;
use super::problem::Problem;
use super::table::Table;

/// Keys about outer headers, which there are in tunnel mode only.
pub(super) const KEYS: &[&str] = &["copy_dscp", "dscp", "copy_ecn", "copy_df", "df", "flow_label", "ttl"];

/// Whether the DSCP is copied outwards, and back inwards.
const COPY_DSCP: &[(&str, (bool, bool))] =
    &[("out", (true, false)), ("in", (false, true)), ("yes", (true, true)), ("no", (false, false))];
const DF: &[(&str, DontFragment)] =
    &[("copy", DontFragment::Copy), ("set", DontFragment::Set), ("clear", DontFragment::Clear)];
const FLOW_LABELS: &[(&str, FlowLabel)] =
    &[("zero", FlowLabel::Zero), ("copy", FlowLabel::Copy), ("hash", FlowLabel::Hash)];

pub(super) fn read(sa: &Table<'_, '_>, findings: &mut Findings) -> Option<TunnelRules> {
    let defaults = TunnelRules::default();
    let dscp = dscp(sa, findings);
    let copy_ecn = sa.flag("copy_ecn", true, findings);
    let dont_fragment = dont_fragment(sa, defaults.dont_fragment, findings);
    let flow_label = sa.or("flow_label", defaults.flow_label, |key| {
        let fixed = |label| FlowLabel::Fixed(label as u32);
        sa.word_or_number(key, FLOW_LABELS, 0..=0xf_ffff, fixed, findings)
    });
    let hop_limit = sa.or("ttl", defaults.hop_limit, |key| {
        let fixed = |hops| HopLimit::Fixed(hops as u8);
        sa.word_or_number(key, &[("copy", HopLimit::Copy)], 1..=255, fixed, findings)
    });
    let (dscp, inner_dscp) = dscp?;
    Some(TunnelRules {
        dscp,
        ecn: if copy_ecn? { Ecn::Normal } else { Ecn::Compatibility },
        dont_fragment: dont_fragment?,
        flow_label: flow_label?,
        hop_limit: hop_limit?,
        inner_dscp,
    })
}

fn dscp(sa: &Table<'_, '_>, findings: &mut Findings) -> Option<(Dscp, InnerDscp)> {
    let copy = sa.word_or("copy_dscp", COPY_DSCP, (true, false), findings);
    let set = sa.or("dscp", None, |key| sa.class(key, findings).map(Some));
    let ((outwards, inwards), set) = (copy?, set?);
    if set.is_some() && outwards && sa.has("copy_dscp") {
        contradiction(sa, "dscp", "copy_dscp", findings);
        return None;
    }
    let dscp = match set {
        Some(point) => Dscp::Set(point),
        None if outwards => Dscp::Copy,
        None => Dscp::Set(0),
    };
    Some((dscp, if inwards { InnerDscp::FromOuter } else { InnerDscp::Keep }))
}

fn dont_fragment(sa: &Table<'_, '_>, default: DontFragment, findings: &mut Findings) -> Option<DontFragment> {
    let copy = sa.or("copy_df", None, |key| sa.flag(key, true, findings).map(Some));
    let df = sa.or("df", None, |key| sa.word(key, DF, findings).map(Some));
    match (copy?, df?) {
        (Some(copy), Some(df)) if copy != (df == DontFragment::Copy) => {
            contradiction(sa, "df", "copy_df", findings);
            None
        }
        (_, Some(df)) => Some(df),
        (Some(true), None) => Some(DontFragment::Copy),
        (Some(false), None) => Some(DontFragment::Clear),
        (None, None) => Some(default),
    }
}

fn contradiction(sa: &Table<'_, '_>, key: &'static str, other: &'static str, findings: &mut Findings) {
    let problem = Problem::Contradiction { key, other };
    findings.add_pair(problem, sa.span(key), "says one thing", sa.span(other), "says another");
}

/// The path MTU; what is below what every path of that IP version takes is none.
pub(super) fn mtu(sa: &Table<'_, '_>, local: Option<IpAddr>, findings: &mut Findings) -> Option<Option<u16>> {
    sa.or("mtu", None, |key| {
        let least = match local {
            Some(IpAddr::V6(_)) => ipv6::MIN_MTU,
            Some(IpAddr::V4(_)) | None => MIN_PATH_MTU_V4,
        };
        sa.ranged(key, least.into()..=u16::MAX.into(), "bytes", findings).map(|mtu| Some(mtu as u16))
    })
}

/// Padding against traffic analysis, as far as mode and MTU allow it.
pub(super) fn tfc(sa: &Table<'_, '_>, mode: Option<Mode>, findings: &mut Findings) -> Option<Tfc> {
    const KEY: &str = "tfc_padding";
    let tfc = sa.or(KEY, Tfc::None, |key| {
        let pad = |len| if len == 0 { Tfc::None } else { Tfc::PadTo(len as u16) };
        sa.word_or_number(key, &[("mtu", Tfc::Mtu)], 0..=u16::MAX.into(), pad, findings)
    })?;
    if tfc != Tfc::None && mode == Some(Mode::Transport) {
        let label = "expected 0 in transport mode";
        findings.add_pair(Problem::TfcInTransport, sa.span(KEY), label, sa.span("mode"), "given here");
        return None;
    }
    if tfc == Tfc::Mtu && !sa.has("mtu") {
        findings.add(Problem::TfcWithoutMtu, sa.span(KEY), "up to which MTU?");
        return None;
    }
    Some(tfc)
}
