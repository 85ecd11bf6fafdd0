//! Lifetimes of an SA.

use forebay_ipsec::{Lifetime, Limits};
use forebay_time::Duration;

use super::errors::Findings;
use super::problem::Problem;
use super::table::Table;

pub(super) fn read(sa: &Table<'_, '_>, findings: &mut Findings) -> Option<Lifetime> {
    // Zero is no limit to some and no life to others.
    let least = Duration(1);
    let time =
        pair(sa, ["rekey_time", "life_time"], findings, |key, findings| sa.duration(key, least, findings));
    let use_time = pair(sa, ["rekey_use_time", "life_use_time"], findings, |key, findings| {
        sa.duration(key, least, findings)
    });
    let bytes = pair(sa, ["rekey_bytes", "life_bytes"], findings, |key, findings| sa.amount(key, findings));
    let packets =
        pair(sa, ["rekey_packets", "life_packets"], findings, |key, findings| sa.amount(key, findings));
    let (time, use_time, bytes, packets) = (time?, use_time?, bytes?, packets?);
    Some(Lifetime {
        soft: Limits { packets: packets.0, bytes: bytes.0, time: time.0, use_time: use_time.0 },
        hard: Limits { packets: packets.1, bytes: bytes.1, time: time.1, use_time: use_time.1 },
    })
}

/// The soft and the hard limit of one kind.
fn pair<T: PartialOrd>(
    sa: &Table<'_, '_>,
    [soft_key, hard_key]: [&'static str; 2],
    findings: &mut Findings,
    read: impl Fn(&'static str, &mut Findings) -> Option<T>,
) -> Option<(Option<T>, Option<T>)> {
    let mut limit = |key| sa.or(key, None, |key| read(key, findings).map(Some));
    let (soft, hard) = (limit(soft_key), limit(hard_key));
    let (soft, hard) = (soft?, hard?);
    if let (Some(soft), Some(hard)) = (&soft, &hard)
        && soft > hard
    {
        let problem = Problem::SoftBeyondHard { soft: soft_key, hard: hard_key };
        findings.add_pair(problem, sa.span(soft_key), "never reached", sa.span(hard_key), "ends before");
        return None;
    }
    Some((soft, hard))
}
