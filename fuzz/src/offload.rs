//! Super-packets.

use forebay_links::offload::merge::{BURST, MAX_HEAD, Merge, Merger};
use forebay_links::offload::split::{Split, complete_checksum};
use forebay_links::offload::{VNET_LEN, VnetHeader};

/// Takes `data` for a super-packet and what the kernel says of it; then for packets, each behind its length,
/// that are put together and taken apart again.
pub fn offload(data: &[u8]) {
    let Some((header, packet)) = data.split_first_chunk::<VNET_LEN>() else { return };
    let header = VnetHeader::parse(header);
    assert_eq!(VnetHeader::parse(&header.emit()), header);
    _ = split(&header, packet);
    let mut changed = packet.to_vec();
    _ = complete_checksum(&header, &mut changed);
    assert_eq!(changed.len(), packet.len());
    merge(packet);
}

/// The segments, if it is one or more.
fn split(header: &VnetHeader, packet: &[u8]) -> Option<Vec<Vec<u8>>> {
    let Some(kind) = header.kind().ok()? else { return Some(vec![packet.to_vec()]) };
    let mut split = Split::EMPTY;
    split.start(header, kind, packet).ok()?;
    let mut segments = Vec::new();
    let mut payload = 0;
    while let Some((head, body)) = split.next(packet) {
        assert!(!body.is_empty() && body.len() <= header.gso_size.into());
        payload += body.len();
        segments.push([head, body].concat());
    }
    assert!(split.is_empty());
    assert!(payload < packet.len(), "headers are no payload");
    Some(segments)
}

fn merge(mut data: &[u8]) {
    let mut packets = Vec::new();
    while let Some(([len], rest)) = data.split_first_chunk::<1>() {
        let (packet, rest) = rest.split_at(rest.len().min((*len).into()));
        packets.push(packet);
        data = rest;
    }
    packets.truncate(BURST);
    let mut merger = Merger::default();
    merger.group(&packets, Merge::TcpAndUdp);
    let mut seen = vec![false; packets.len()];
    for train in merger.trains() {
        let members: Vec<usize> = merger.members(train).collect();
        assert!(members.is_sorted());
        let mut head = [0; MAX_HEAD];
        let header = train.header(&packets, &mut head);
        let mut whole = head[..train.head_len()].to_vec();
        for &i in &members {
            assert!(!std::mem::replace(&mut seen[i], true), "a packet sent twice");
            whole.extend(&packets[i][train.head_len()..]);
        }
        let segments = split(&header, &whole).expect("what was merged can be split");
        assert_eq!(segments.len(), members.len());
        for (segment, i) in segments.iter().zip(members) {
            same(segment, packets[i]);
        }
    }
    assert!(seen.iter().all(|seen| *seen), "a packet lost");
}

/// Equal, but for an identification that means nothing and the checksum over it.
fn same(segment: &[u8], packet: &[u8]) {
    let mut copies = [segment.to_vec(), packet.to_vec()];
    for copy in &mut copies {
        if copy.len() >= 20 && copy[0] == 0x45 && copy[6] & 0x40 != 0 {
            copy[4..6].fill(0);
            copy[10..12].fill(0);
        }
    }
    assert_eq!(copies[0], copies[1]);
}
