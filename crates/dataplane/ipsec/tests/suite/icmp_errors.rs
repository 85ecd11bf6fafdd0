//! ICMP errors in transit (RFC 4301 6.2): sealed by the SA of the return traffic of what they quote, and opened only if they
//! quote traffic of their SA.

use crate::traffic::{Flow, Upper, add_in, add_out, receive_bytes, sa, send_bytes, ts};
use forebay_crypto::{Direction, SessionId};
use forebay_ipsec::{Action, DropReason, Ipsec, Policy, PolicyPlace};

/// An ICMP error from `source` to `destination` that quotes `bytes` of a packet.
fn error(source: &str, destination: &str, kind: u8, quoted: &Flow, bytes: usize) -> Vec<u8> {
    let mut quote = quoted.bytes();
    quote.truncate(bytes);
    let v6 = source.contains(':');
    let body = [&[kind, 0, 0, 0, 0, 0, 0, 0][..], &quote].concat();
    let header = Flow::new(source, destination, Upper::Other(if v6 { 58 } else { 1 })).bytes();
    if v6 {
        let mut packet = header[..40].to_vec();
        packet[4..6].copy_from_slice(&(body.len() as u16).to_be_bytes());
        packet[6] = 58;
        return [packet, body].concat();
    }
    let mut packet = header[..20].to_vec();
    packet[2..4].copy_from_slice(&(20 + body.len() as u16).to_be_bytes());
    [packet, body].concat()
}

/// Addresses of one IP version: a host here and one there, routers on both sides that no selector knows, another host there, and a
/// stranger; the kind of "unreachable", and how much of a packet is enough to quote.
struct Ends {
    here: &'static str,
    there: &'static str,
    router_here: &'static str,
    router_there: &'static str,
    stranger: &'static str,
    networks: [&'static str; 2],
    kind: u8,
    quoted: usize,
}

const V4: Ends = Ends {
    here: "10.1.0.10",
    there: "10.2.0.10",
    router_here: "172.16.1.1",
    router_there: "172.16.2.1",
    stranger: "198.51.100.7",
    networks: ["10.1.0.0/16", "10.2.0.0/16"],
    kind: 3,
    quoted: 28,
};
const V6: Ends = Ends {
    here: "2001:db8:1::10",
    there: "2001:db8:2::10",
    router_here: "2001:db8:f::1",
    router_there: "2001:db8:f::2",
    stranger: "2001:db8:9::7",
    networks: ["2001:db8:1::/48", "2001:db8:2::/48"],
    kind: 1,
    quoted: 60,
};

/// SAs of both directions, of this protocol only.
fn pair(ends: &Ends, protocol: &str) -> (Ipsec, SessionId) {
    let mut sad = Ipsec::default();
    let [here, there] = ends.networks.map(|network| format!("{network}{protocol}"));
    let out = add_out(&mut sad, sa(0, &[&here], &[&there]));
    add_in(&mut sad, sa(1, &[&here], &[&there]));
    (sad, out)
}

#[test]
fn an_error_of_a_router_here_leaves_by_the_sa_of_what_it_quotes() {
    for ends in [V4, V6] {
        for protocol in ["", "[tcp/80]"] {
            let (mut sad, out) = pair(&ends, protocol);
            // From there to here, port 80 on both sides as the selectors have it.
            let web = Flow::tcp(ends.there, ends.here, (80, 80));
            let unreachable =
                |quoted: &Flow, bytes| error(ends.router_here, ends.there, ends.kind, quoted, bytes);
            assert_eq!(send_bytes(&mut sad, &unreachable(&web, ends.quoted)), Ok(Some(out)));
            assert_eq!(send_bytes(&mut sad, &unreachable(&web, 1_000)), Ok(Some(out)));
            // Traffic that no SA returns, in the wrong direction, a quote of less than a header, and what is no error.
            let other = Flow::tcp(ends.stranger, ends.here, (80, 80));
            let refused = Err(DropReason::OutNoStates);
            assert_eq!(send_bytes(&mut sad, &unreachable(&other, ends.quoted)), refused);
            assert_eq!(send_bytes(&mut sad, &unreachable(&web.back(), ends.quoted)), refused);
            assert_eq!(send_bytes(&mut sad, &unreachable(&web, 19)), refused);
            let echo = error(ends.router_here, ends.there, if ends.kind == 3 { 8 } else { 128 }, &web, 1_000);
            assert_eq!(send_bytes(&mut sad, &echo), refused);
            // Addresses alone are remembered for what they stand for.
            assert_eq!(
                send_bytes(&mut sad, &Flow::udp(ends.router_here, ends.there, (80, 80)).bytes()),
                refused
            );
            assert_eq!(send_bytes(&mut sad, &unreachable(&web, ends.quoted)), Ok(Some(out)));
        }
    }
}

#[test]
fn an_error_of_a_router_there_arrives_if_it_quotes_the_sas_traffic() {
    for ends in [V4, V6] {
        for protocol in ["", "[tcp/80]"] {
            let (mut sad, _) = pair(&ends, protocol);
            let mut sequence = 0;
            let mut arrives = |source, quoted: &Flow, bytes| {
                sequence += 1;
                receive_bytes(&mut sad, 1, sequence, &error(source, ends.here, ends.kind, quoted, bytes))
            };
            let web = Flow::tcp(ends.here, ends.there, (80, 80));
            let foreign = Flow::tcp(ends.here, ends.stranger, (80, 80));
            for source in [ends.router_there, ends.there] {
                assert_eq!(arrives(source, &web, ends.quoted), Ok(()), "from {source}");
                assert_eq!(
                    arrives(source, &foreign, ends.quoted),
                    Err(DropReason::InIcmpQuote),
                    "from {source}"
                );
                assert_eq!(arrives(source, &web.back(), ends.quoted), Err(DropReason::InIcmpQuote));
            }
            assert_eq!(arrives(ends.router_there, &web, 19), Err(DropReason::InStateMismatch));
        }
    }
}

#[test]
fn what_passed_before_does_not_let_errors_pass_nor_they_others() {
    for ends in [V4, V6] {
        let (mut sad, _) = pair(&ends, "");
        let foreign =
            error(ends.there, ends.here, ends.kind, &Flow::tcp(ends.here, ends.stranger, (1, 2)), 100);
        let routers =
            error(ends.router_there, ends.here, ends.kind, &Flow::tcp(ends.here, ends.there, (1, 2)), 100);
        let data = Flow::udp(ends.there, ends.here, (5, 6)).bytes();
        let data_of_router = Flow::udp(ends.router_there, ends.here, (5, 6)).bytes();
        for round in 0..3 {
            let base = round * 10;
            assert_eq!(receive_bytes(&mut sad, 1, base + 1, &data), Ok(()));
            assert_eq!(receive_bytes(&mut sad, 1, base + 2, &data), Ok(()));
            assert_eq!(receive_bytes(&mut sad, 1, base + 3, &foreign), Err(DropReason::InIcmpQuote));
            assert_eq!(receive_bytes(&mut sad, 1, base + 4, &routers), Ok(()));
            assert_eq!(
                receive_bytes(&mut sad, 1, base + 5, &data_of_router),
                Err(DropReason::InStateMismatch)
            );
        }
    }
}

#[test]
fn selectors_that_name_icmp_let_any_quote_pass() {
    for ends in [V4, V6] {
        let icmp = if ends.kind == 3 { "[icmp]" } else { "[ipv6-icmp]" };
        let mut sad = Ipsec::default();
        let [here, there] = ends.networks;
        let named = format!("{there}{icmp}");
        add_in(&mut sad, sa(1, &[here], &[there, &named]));
        let foreign = Flow::tcp(ends.here, ends.stranger, (80, 80));
        let bytes = error(ends.there, ends.here, ends.kind, &foreign, ends.quoted);
        assert_eq!(receive_bytes(&mut sad, 1, 1, &bytes), Ok(()));
        // It names them of these addresses only.
        let bytes = error(ends.router_there, ends.here, ends.kind, &foreign, ends.quoted);
        assert_eq!(receive_bytes(&mut sad, 1, 2, &bytes), Err(DropReason::InIcmpQuote));
    }
}

#[test]
fn policies_judge_errors_by_what_they_quote_unless_they_discard_them() {
    for ends in [V4, V6] {
        let mut sad = Ipsec::default();
        let out = add_out(&mut sad, sa(0, &[], &[]));
        let inside = add_in(&mut sad, sa(1, &[], &[]));
        let [here, there] = ends.networks;
        let add = |sad: &mut Ipsec, direction, remote: &str, action| {
            let policy = Policy::new("p", direction, action);
            let policy = Policy { local_ts: ts(&[here]), remote_ts: ts(&[remote]), ..policy };
            sad.add_policy(policy, PolicyPlace::First).expect("a policy without fault")
        };
        add(&mut sad, Direction::Seal, there, Action::Protect(vec![out]));
        add(&mut sad, Direction::Open, there, Action::Protect(vec![inside]));
        let web = Flow::tcp(ends.here, ends.there, (40_000, 80));
        let foreign = Flow::tcp(ends.here, ends.stranger, (40_000, 80));
        let of_here = error(ends.router_here, ends.there, ends.kind, &web.back(), ends.quoted);
        assert_eq!(send_bytes(&mut sad, &of_here), Ok(Some(out)));
        let of_router = error(ends.router_there, ends.here, ends.kind, &web, ends.quoted);
        assert_eq!(receive_bytes(&mut sad, 1, 1, &of_router), Ok(()));
        for (sequence, source) in [(2, ends.router_there), (3, ends.there)] {
            let bytes = error(source, ends.here, ends.kind, &foreign, ends.quoted);
            assert_eq!(receive_bytes(&mut sad, 1, sequence, &bytes), Err(DropReason::InIcmpQuote));
        }
        // An administrator's word against the router.
        add(&mut sad, Direction::Open, ends.router_there, Action::Discard);
        assert_eq!(receive_bytes(&mut sad, 1, 4, &of_router), Err(DropReason::InPolBlock));
    }
}

/// A quote says whom the error is for; it opens no way to others, and none for redirects, which ask a host to send elsewhere. Nor
/// does it help to hide the quote in a later fragment.
#[test]
fn a_quote_lets_no_error_pass_to_others_nor_redirects_nor_in_pieces() {
    for ends in [V4, V6] {
        let (mut sad, _) = pair(&ends, "");
        let mut sequence = 0;
        let mut arrives = |bytes: &[u8]| {
            sequence += 1;
            receive_bytes(&mut sad, 1, sequence, bytes)
        };
        let web = Flow::tcp(ends.here, ends.there, (80, 80));
        let good = error(ends.router_there, ends.here, ends.kind, &web, ends.quoted);
        assert_eq!(arrives(&good), Ok(()));
        let refused = Err(DropReason::InIcmpQuote);
        assert_eq!(arrives(&error(ends.router_there, ends.stranger, ends.kind, &web, ends.quoted)), refused);
        let foreign = Flow::tcp(ends.here, ends.stranger, (80, 80));
        let whole = error(ends.there, ends.here, ends.kind, &foreign, ends.quoted);
        if ends.kind == 3 {
            for kind in [4, 5] {
                assert_eq!(arrives(&error(ends.router_there, ends.here, kind, &web, ends.quoted)), refused);
                assert_eq!(arrives(&error(ends.there, ends.here, kind, &web, ends.quoted)), Ok(()));
            }
            let mut first = whole[..28].to_vec();
            first[2..4].copy_from_slice(&28u16.to_be_bytes());
            first[6] = 0x20;
            assert_eq!(arrives(&first), refused, "more fragments");
        } else {
            let fragment = [58, 0, 0, 1, 0, 0, 0, 7];
            let mut first = [&whole[..40], &fragment, &whole[40..48]].concat();
            first[4..6].copy_from_slice(&16u16.to_be_bytes());
            first[6] = 44;
            assert_eq!(arrives(&first), refused, "more fragments");
        }
        let mut sad = pair(&ends, "").0;
        let back = Flow::tcp(ends.there, ends.here, (80, 80));
        let astray = error(ends.router_here, ends.stranger, ends.kind, &back, ends.quoted);
        assert_eq!(send_bytes(&mut sad, &astray), Err(DropReason::OutNoStates));
    }
}
