//! Images worked out by hand from the tables of RFC 4302 appendix A.

use forebay_crypto::Direction::{self, Open, Seal};
use forebay_wire::protocol::{AH, DESTINATION, HOP_BY_HOP, ROUTING};

use super::mask;

/// The image of `headers`.
fn image(headers: &[u8], direction: Direction) -> Option<Vec<u8>> {
    let mut image = headers.to_vec();
    mask(&mut image, direction).map(|()| image)
}

/// An IPv4 header to 192.0.2.9, every mutable field other than zero, with `options`.
fn ipv4(options: &[u8]) -> Vec<u8> {
    assert!(options.len().is_multiple_of(4));
    let words = 0x45 + (options.len() / 4) as u8;
    let fixed = [words, 0xb9, 1, 2, 3, 4, 0x40, 0, 63, 51, 0xab, 0xcd, 192, 0, 2, 1, 192, 0, 2, 9];
    [&fixed[..], options].concat()
}

/// The image of that header, for a destination and options.
fn ipv4_image(destination: u8, options: &[u8]) -> Option<Vec<u8>> {
    let words = 0x45 + (options.len() / 4) as u8;
    let fixed = [words, 0, 1, 2, 3, 4, 0, 0, 0, 51, 0, 0, 192, 0, 2, 1, 192, 0, 2, destination];
    Some([&fixed[..], options].concat())
}

#[test]
fn ipv4_without_options() {
    for direction in [Seal, Open] {
        assert_eq!(image(&ipv4(&[]), direction), ipv4_image(9, &[]));
    }
}

#[test]
fn each_option_of_the_table() {
    // Number 2 is 130, and so on: copy flag and class are in the type byte.
    let immutable = [130, 133, 134, 148, 149];
    // Time Stamp, Record Route, Traceroute, and the superseded ones; the last number is not assigned.
    let mutable = [68, 7, 82, 136, 11, 12, 145, 10, 205, 142, 15, 144, 147, 222];
    for kind in immutable {
        let option = [kind, 4, 0x12, 0x34];
        assert_eq!(image(&ipv4(&option), Seal), ipv4_image(9, &option), "{kind}");
    }
    for kind in mutable {
        assert_eq!(image(&ipv4(&[kind, 4, 0x12, 0x34]), Seal), ipv4_image(9, &[0; 4]), "{kind}");
    }
}

#[test]
fn options_in_a_row_are_units() {
    // No Operation, Record Route of 7, Router Alert, End, and what is behind the end.
    let options = [1, 7, 7, 4, 1, 2, 3, 4, 148, 4, 0, 5, 0, 7, 8, 9];
    let expected = [1, 0, 0, 0, 0, 0, 0, 0, 148, 4, 0, 5, 0, 7, 8, 9];
    assert_eq!(image(&ipv4(&options), Seal), ipv4_image(9, &expected));
}

#[test]
fn options_that_cannot_be() {
    for options in [[7, 0, 4, 0], [7, 1, 4, 0], [7, 5, 4, 0], [1, 1, 1, 7]] {
        assert_eq!(image(&ipv4(&options), Seal), None, "{options:?}");
    }
    // A source route that is not whole addresses, or has no pointer.
    assert_eq!(image(&ipv4(&[131, 6, 4, 192, 0, 2, 0, 0]), Seal), None);
    assert_eq!(image(&ipv4(&[137, 2, 1, 1]), Seal), None);
}

#[test]
fn a_source_route_ends_where_it_leads() {
    for kind in [131, 137] {
        let route = |pointer| [kind, 11, pointer, 192, 0, 2, 5, 192, 0, 2, 7, 0];
        for pointer in [4, 8] {
            assert_eq!(image(&ipv4(&route(pointer)), Seal), ipv4_image(7, &[0; 12]), "at {pointer}");
        }
        // At its end the destination is what stands there.
        assert_eq!(image(&ipv4(&route(12)), Seal), ipv4_image(9, &[0; 12]));
        // The receiver takes what it got: the route is not covered and must not decide anything.
        assert_eq!(image(&ipv4(&route(4)), Open), ipv4_image(9, &[0; 12]));
    }
}

/// An IPv6 header to node 9 in front of `extensions`, the first of them a `next`.
fn ipv6(next: u8, destination: u8, extensions: &[u8]) -> Vec<u8> {
    let fixed = [0x6b, 0x93, 0x45, 0x67, 1, 2, next, 63];
    [&fixed[..], &node(1), &node(destination), extensions].concat()
}

fn ipv6_image(next: u8, destination: u8, extensions: &[u8]) -> Option<Vec<u8>> {
    let fixed = [0x60, 0, 0, 0, 1, 2, next, 0];
    Some([&fixed[..], &node(1), &node(destination), extensions].concat())
}

fn node(number: u8) -> [u8; 16] {
    [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, number]
}

#[test]
fn ipv6_without_extensions() {
    for direction in [Seal, Open] {
        assert_eq!(image(&ipv6(AH, 9, &[]), direction), ipv6_image(AH, 9, &[]));
    }
}

#[test]
fn ipv6_options_go_by_their_bit() {
    for next in [HOP_BY_HOP, DESTINATION] {
        // Router Alert (5) may not change, 0x3e and 0x20 may; Pad1, PadN.
        let options = [AH, 1, 5, 2, 0xaa, 0xbb, 0x3e, 3, 1, 2, 3, 0, 0x20, 0, 1, 0];
        let expected = [AH, 1, 5, 2, 0xaa, 0xbb, 0x3e, 3, 0, 0, 0, 0, 0x20, 0, 1, 0];
        assert_eq!(image(&ipv6(next, 9, &options), Seal), ipv6_image(next, 9, &expected));
        // An option that ends behind its header, and one without a length.
        assert_eq!(image(&ipv6(next, 9, &[AH, 0, 5, 5, 1, 2, 3, 4]), Seal), None);
        assert_eq!(image(&ipv6(next, 9, &[AH, 0, 5, 3, 1, 2, 3, 5]), Seal), None);
    }
}

/// A routing header with these nodes.
fn routing(kind: u8, left: u8, nodes: &[u8]) -> Vec<u8> {
    let head = [AH, 2 * nodes.len() as u8, kind, left, 0, 0, 0, 0];
    [&head[..], &nodes.iter().flat_map(|&number| node(number)).collect::<Vec<u8>>()].concat()
}

#[test]
fn routing_headers_are_as_they_arrive() {
    // RFC 2460 4.4: from S to I1 with I2, I3, D ahead; at D with I1, I2, I3 behind.
    let sent = ipv6(ROUTING, 11, &routing(0, 3, &[12, 13, 9]));
    let arrived = routing(0, 0, &[11, 12, 13]);
    assert_eq!(image(&sent, Seal), ipv6_image(ROUTING, 9, &arrived));
    assert_eq!(image(&ipv6(ROUTING, 9, &arrived), Open), ipv6_image(ROUTING, 9, &arrived));
    // From I1 on: the first address is behind it.
    let sent = ipv6(ROUTING, 12, &routing(0, 2, &[11, 13, 9]));
    assert_eq!(image(&sent, Seal), ipv6_image(ROUTING, 9, &arrived));
    // Mobile IPv6: the home address.
    let sent = ipv6(ROUTING, 11, &routing(2, 1, &[9]));
    assert_eq!(image(&sent, Seal), ipv6_image(ROUTING, 9, &routing(2, 0, &[11])));
}

#[test]
fn routes_that_cannot_be_told_are_refused() {
    for (kind, left, nodes) in [(0, 3, &[12, 13][..]), (4, 1, &[12, 13]), (3, 1, &[12]), (253, 1, &[12])] {
        assert_eq!(image(&ipv6(ROUTING, 9, &routing(kind, left, nodes)), Seal), None, "type {kind}");
        // At its destination any is as it is.
        let done = routing(kind, 0, nodes);
        assert_eq!(image(&ipv6(ROUTING, 9, &done), Seal), ipv6_image(ROUTING, 9, &done));
    }
    // Half an address.
    let mut odd = routing(0, 1, &[12]);
    odd[1] = 3;
    odd.extend([0; 8]);
    assert_eq!(image(&ipv6(ROUTING, 9, &odd), Seal), None);
    // Received, but not for us to open yet.
    assert_eq!(image(&ipv6(ROUTING, 9, &routing(0, 1, &[12])), Open), None);
}

#[test]
fn a_chain_of_extensions() {
    let hop_by_hop = [ROUTING, 0, 0x3e, 2, 1, 2, 1, 0];
    let mut route = routing(0, 1, &[9]);
    route[0] = DESTINATION;
    let destination = [AH, 0, 1, 4, 0, 0, 0, 0];
    let sent = ipv6(HOP_BY_HOP, 11, &[&hop_by_hop[..], &route, &destination].concat());
    let mut arrived = routing(0, 0, &[11]);
    arrived[0] = DESTINATION;
    let zeroed = [ROUTING, 0, 0x3e, 2, 0, 0, 1, 0];
    let expected = [&zeroed[..], &arrived, &destination].concat();
    assert_eq!(image(&sent, Seal), ipv6_image(HOP_BY_HOP, 9, &expected));
}
