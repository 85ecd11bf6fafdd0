//! SAs that aggregate, from plain packets on one side to plain packets on the other. The cipher changes
//! nothing; the jobs of real suites lay the packets out.

use forebay_crypto::{Direction, Job, JobSpec, Packet, SessionId, Verdict};
use forebay_ipsec::iptfs::IptfsError;
use forebay_ipsec::{
    DropReason, Ecn, Encapsulation, Ipsec, Iptfs, IvRange, Mode, SaConfig, SaConfigError, Spi, Stop,
};
use forebay_time::{Duration, Time};
use forebay_wire::{Ip, protocol};

/// The settings of number `n` of sixteen: UDP, ESN, outer IPv6, and one of two suites.
fn sealing(n: usize, iptfs: Iptfs) -> SaConfig {
    let bit = |place: usize| n >> place & 1 == 1;
    let ends = if bit(2) { ["2001:db8::1", "2001:db8::2"] } else { ["192.0.2.1", "192.0.2.2"] };
    let [local, remote] = ends.map(|address| address.parse().unwrap());
    let suite = if bit(3) { "aes128gcm16" } else { "aes128-sha256" }.parse().unwrap();
    SaConfig {
        encapsulation: if bit(0) { Encapsulation::Udp } else { Encapsulation::None },
        esn: bit(1),
        remote_ts: vec!["10.1.0.0/16".parse().unwrap(), "2001:db8:1::/48".parse().unwrap()],
        iptfs: Some(iptfs),
        ..SaConfig::new("tunnel", Spi::new(0x1000 + n as u32).unwrap(), suite, local, remote)
    }
}

fn opening(n: usize, iptfs: Iptfs) -> SaConfig {
    let sealing = sealing(n, iptfs);
    let (local, remote) = (sealing.remote, sealing.local);
    SaConfig { local, remote, local_ts: sealing.remote_ts, remote_ts: sealing.local_ts, ..sealing }
}

fn pair(n: usize, iptfs: &Iptfs) -> (Ipsec, Ipsec) {
    let (mut near, mut far) = (Ipsec::default(), Ipsec::default());
    near.add_outbound(sealing(n, iptfs.clone()), IvRange::for_throwaway_key()).unwrap();
    far.add_inbound(opening(n, iptfs.clone())).unwrap();
    (near, far)
}

fn plain(len: usize, mark: u8) -> Vec<u8> {
    if mark.is_multiple_of(3) {
        let payload = len.max(40) - 40;
        let mut packet = vec![0x60, 0, 0, mark, (payload >> 8) as u8, payload as u8, 253, 64];
        packet.extend_from_slice(&[0x20, 1, 0x0d, 0xb8, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        packet.extend_from_slice(&[0x20, 1, 0x0d, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        packet.resize(len.max(40), mark);
        return packet;
    }
    let mut packet = vec![0x45, 0, (len >> 8) as u8, len as u8, 0, mark, 0x40, 0, 64, 253, 0, 0];
    packet.extend_from_slice(&[10, 255, 0, 1, 10, 1, 0, 1]);
    packet.resize(len, mark);
    packet
}

fn buffer(bytes: &[u8]) -> Packet {
    let mut packet = Packet::with_capacity(2_048);
    assert!(packet.fill(bytes));
    packet
}

/// ESP packets that are due.
fn poll(sad: &mut Ipsec, now: Time) -> Vec<Vec<u8>> {
    let (mut packet, mut spec) = (buffer(&[]), JobSpec::default());
    let mut sealed = Vec::new();
    while let Some(result) = sad.poll_aggregate(now, &mut packet, &mut spec) {
        assert_eq!(result, Ok(spec.session));
        sad.complete(&mut packet, &spec, Verdict::Done).unwrap();
        sealed.push(packet.bytes().to_vec());
    }
    sealed
}

fn drain(sad: &mut Ipsec, session: SessionId, now: Time) -> (Vec<Vec<u8>>, Vec<DropReason>) {
    let (mut packet, mut packets, mut reasons) = (buffer(&[]), vec![], vec![]);
    while let Some(result) = sad.take_inner(now, session, &mut packet) {
        match result {
            Ok(()) => packets.push(packet.bytes().to_vec()),
            Err(reason) => reasons.push(reason),
        }
    }
    (packets, reasons)
}

fn open(sad: &mut Ipsec, sealed: &[u8], now: Time) -> Result<(Vec<Vec<u8>>, Vec<DropReason>), DropReason> {
    let (mut packet, mut spec) = (buffer(sealed), JobSpec::default());
    let _ = sad.prepare(Direction::Open, &mut packet, &mut spec)?;
    sad.complete(&mut packet, &spec, Verdict::Done)?;
    assert!(packet.is_empty());
    Ok(drain(sad, spec.session, now))
}

#[test]
fn mixed_traffic_through_every_kind_of_tunnel() {
    for (n, rate) in (0..16).flat_map(|n| [None, Some(10_000)].map(|rate| (n, rate))) {
        let iptfs = Iptfs { packet_size: 1_300 + n, rate, ..Iptfs::default() };
        let (mut near, mut far) = pair(n, &iptfs);
        let (mut sent, mut received, mut lengths) = (vec![], vec![], vec![]);
        for step in 0..400u64 {
            let now = Time::ZERO + Duration::from_micros(100 * step);
            let count = if step < 300 { step % 5 } else { 0 };
            for k in 0..count {
                let packet = plain(20 + (step as usize * 97 + k as usize * 331) % 600, (step + k) as u8);
                assert_eq!(near.aggregate(now, &buffer(&packet)), Ok(Some(SessionId(0))));
                sent.push(packet);
            }
            for sealed in poll(&mut near, now) {
                let ip = Ip::parse(&sealed).unwrap();
                assert_eq!(ip.bytes().len(), sealed.len());
                assert_eq!(ip.traffic_class(), 0);
                lengths.push(sealed.len());
                let (packets, reasons) = open(&mut far, &sealed, now).unwrap();
                assert!(reasons.is_empty(), "{reasons:?}");
                received.extend(packets);
            }
        }
        assert_eq!(received, sent, "tunnel {n}");
        let longest = *lengths.iter().max().unwrap();
        assert!(longest <= iptfs.packet_size && longest + 16 > iptfs.packet_size, "{longest}");
        if rate.is_some() {
            assert_eq!(lengths, vec![longest; 400]);
            assert!(near.next_due() <= Time::ZERO + Duration::from_micros(40_000));
        } else {
            assert!(lengths.len() < sent.len());
            assert_eq!(near.next_due(), Time::MAX);
        }
        let counters = far.iptfs_counters(SessionId(0)).unwrap();
        assert_eq!((counters.packets as usize, counters.payloads as usize), (sent.len(), lengths.len()));
    }
}

/// RFC 9347 2.3: nothing else goes over such an SA, singly or in a run.
#[test]
fn packets_do_not_pass_the_queue_by() {
    let (mut near, mut far) = pair(0, &Iptfs::default());
    let packet = plain(100, 1);
    let mut jobs: Vec<Job> = (0..3).map(|_| Job::new(buffer(&packet), JobSpec::default(), 0)).collect();
    for _ in 0..2 {
        let refused = near.prepare_burst(Direction::Seal, &mut jobs);
        assert_eq!(refused, Err((0, Stop::Drop(DropReason::OutStateModeError))));
    }
    assert_eq!(near.aggregate(Time::ZERO, &buffer(&packet)), Ok(Some(SessionId(0))));
    // A plain tunnel packet of the same SPI is not taken for a payload, nor a payload for a packet.
    let plain_config = SaConfig { iptfs: None, ..sealing(0, Iptfs::default()) };
    let mut other = Ipsec::default();
    other.add_outbound(plain_config.clone(), IvRange::for_throwaway_key()).unwrap();
    assert_eq!(other.aggregate(Time::ZERO, &buffer(&packet)), Ok(None));
    let (mut sealed, mut spec) = (buffer(&packet), JobSpec::default());
    let _ = other.prepare(Direction::Seal, &mut sealed, &mut spec).unwrap();
    assert_eq!(open(&mut far, sealed.bytes(), Time::ZERO), Err(DropReason::InStateModeError));
    let mut plain_far = Ipsec::default();
    plain_far.add_inbound(SaConfig { iptfs: None, ..opening(0, Iptfs::default()) }).unwrap();
    let payload = poll(&mut near, Time::ZERO + Iptfs::default().max_delay).remove(0);
    assert_eq!(open(&mut plain_far, &payload, Time::ZERO), Err(DropReason::InStateModeError));
}

/// Each inner packet has to fit the SA's selectors; one that does not takes no other with it.
#[test]
fn inner_packets_are_checked_one_by_one() {
    let (mut near, _) = pair(0, &Iptfs::default());
    let mut far = Ipsec::default();
    let narrow = vec!["10.1.0.0/24".parse().unwrap(), "2001:db8:1::/64".parse().unwrap()];
    far.add_inbound(SaConfig { local_ts: narrow, ..opening(0, Iptfs::default()) }).unwrap();
    let mut outside = plain(60, 1);
    outside[18] = 7;
    for packet in [plain(50, 1), outside, plain(70, 2), plain(80, 3)] {
        near.aggregate(Time::ZERO, &buffer(&packet)).unwrap();
    }
    let payload = poll(&mut near, Time::ZERO + Iptfs::default().max_delay).remove(0);
    let (packets, reasons) = open(&mut far, &payload, Time::ZERO).unwrap();
    assert_eq!(packets, [plain(50, 1), plain(70, 2), plain(80, 3)]);
    assert_eq!(reasons, [DropReason::InStateMismatch]);
    assert_eq!(open(&mut far, &payload, Time::ZERO), Err(DropReason::InStateSeqError));
}

#[test]
fn a_missing_payload_is_given_up_by_a_timer() {
    let (mut near, mut far) = pair(10, &Iptfs::default());
    let mut sealed = Vec::new();
    for mark in 0..3 {
        near.aggregate(Time::ZERO, &buffer(&plain(100, mark))).unwrap();
        sealed.extend(poll(&mut near, Time::ZERO + Iptfs::default().max_delay));
    }
    assert_eq!(open(&mut far, &sealed[0], Time(1)).unwrap().0, [plain(100, 0)]);
    assert_eq!(open(&mut far, &sealed[2], Time(2)).unwrap().0.len(), 0);
    let due = Time(2) + Iptfs::default().lost_after;
    assert_eq!((far.next_due(), far.poll_inner(Time(3))), (due, None));
    assert_eq!(far.poll_inner(due), Some(SessionId(0)));
    assert_eq!(drain(&mut far, SessionId(0), due), (vec![plain(100, 2)], vec![]));
    assert_eq!((far.next_due(), far.poll_inner(due)), (Time::MAX, None));
    assert_eq!(open(&mut far, &sealed[1], due), Err(DropReason::InIptfsLate));
    assert_eq!(far.iptfs_counters(SessionId(0)).unwrap().lost, 1);
}

/// What cannot be sent any more is not tried for ever, and other SAs go on.
#[test]
fn an_sa_at_the_end_of_its_numbers() {
    let iptfs = Iptfs { rate: Some(1_000), ..Iptfs::default() };
    let mut sad = Ipsec::default();
    for n in 0..2 {
        let config =
            SaConfig { remote: ["192.0.2.2", "192.0.2.3"][n].parse().unwrap(), ..sealing(0, iptfs.clone()) };
        sad.add_outbound(config, IvRange::for_throwaway_key()).unwrap();
    }
    sad.continue_after(SessionId(0), u32::MAX.into());
    let (mut packet, mut spec) = (buffer(&[]), JobSpec::default());
    let mut outcomes: Vec<_> =
        (0..3).map(|_| sad.poll_aggregate(Time::ZERO, &mut packet, &mut spec)).collect();
    outcomes.sort_by_key(|outcome| format!("{outcome:?}"));
    assert_eq!(outcomes, [None, Some(Err(DropReason::OutStateSeqError)), Some(Ok(SessionId(1)))]);
}

#[test]
fn settings_that_cannot_be() {
    let refused = |change: fn(&mut SaConfig, &mut Iptfs)| {
        let (mut config, mut iptfs) = (sealing(0, Iptfs::default()), Iptfs::default());
        change(&mut config, &mut iptfs);
        match (SaConfig { iptfs: Some(iptfs), ..config }).check() {
            Err(SaConfigError::Iptfs(error)) => Some(error),
            other => {
                assert_eq!(other, Ok(()));
                None
            }
        }
    };
    assert_eq!(refused(|_, _| {}), None);
    assert_eq!(refused(|sa, _| sa.mode = Mode::Transport), Some(IptfsError::TransportMode));
    // 20 + 8 + 16 + 16 around, blocks of 16, two bytes of trailer, four of header: 64 at least inside.
    assert_eq!(refused(|_, iptfs| iptfs.packet_size = 60 + 80), None);
    assert_eq!(refused(|_, iptfs| iptfs.packet_size = 139), Some(IptfsError::PacketSize(139)));
    assert_eq!(refused(|_, iptfs| iptfs.packet_size = 65_536), Some(IptfsError::PacketSize(65_536)));
    assert_eq!(refused(|_, iptfs| iptfs.rate = Some(0)), Some(IptfsError::Rate(0)));
    assert_eq!(refused(|_, iptfs| iptfs.reorder_window = 1_025), Some(IptfsError::ReorderWindow(1_025)));
    assert_eq!(refused(|_, iptfs| iptfs.queue = 1_000), Some(IptfsError::Queue(1_000)));
}

/// No memory is taken or given once the buffers have been as full as they get.
#[test]
fn the_steady_state_takes_no_memory() {
    let (mut near, mut far) = pair(8, &Iptfs::default());
    let packets: Vec<Packet> = (0..50).map(|n| buffer(&plain(40 + 20 * n, n as u8))).collect();
    let (mut packet, mut inner, mut spec) = (buffer(&[]), buffer(&[]), JobSpec::default());
    let mut round = |round: u64| {
        let mut received = 0;
        for (n, plain) in packets.iter().enumerate() {
            let now = Time::ZERO + Duration::from_micros(100 * (round * 50 + n as u64));
            near.aggregate(now, plain).unwrap();
            while let Some(result) = near.poll_aggregate(now, &mut packet, &mut spec) {
                result.unwrap();
                near.complete(&mut packet, &spec, Verdict::Done).unwrap();
                let _ = far.prepare(Direction::Open, &mut packet, &mut spec).unwrap();
                far.complete(&mut packet, &spec, Verdict::Done).unwrap();
                while let Some(Ok(())) = far.take_inner(now, SessionId(0), &mut inner) {
                    received += 1;
                }
            }
        }
        received
    };
    (0..4).for_each(|n| assert!(round(n) > 0));
    let taken = allocation_counter::measure(|| (4..40).for_each(|n| assert!(round(n) > 0)));
    assert_eq!(taken.count_total, 0);
}

#[test]
fn the_next_header_is_that_of_the_rfc() {
    assert_eq!(protocol::AGGFRAG, 144);
    let (mut near, _) = pair(8, &Iptfs::default());
    near.aggregate(Time::ZERO, &buffer(&plain(100, 1))).unwrap();
    // 20 + 8 + 8, header and packet of 104, then padding of 2: 1, 2, pad length, next header.
    let sealed = poll(&mut near, Time::ZERO + Iptfs::default().max_delay).remove(0);
    assert_eq!(sealed[36 + 104..36 + 108], [1, 2, 2, 144]);
    assert_eq!(sealed.len(), 36 + 108 + 16);
}

/// A whole burst of payloads may be completed before anyone asks for the inner packets.
#[test]
fn a_burst_of_payloads() {
    let (mut near, mut far) = pair(8, &Iptfs::default());
    let packets: Vec<_> = (0..120).map(|mark| plain(700, mark)).collect();
    packets.iter().for_each(|packet| assert!(near.aggregate(Time::ZERO, &buffer(packet)).is_ok()));
    let sealed = poll(&mut near, Time::ZERO + Iptfs::default().max_delay);
    let mut jobs: Vec<Job> =
        sealed.iter().map(|bytes| Job::new(buffer(bytes), JobSpec::default(), 0)).collect();
    assert!(jobs.len() > 50);
    far.prepare_burst(Direction::Open, &mut jobs).unwrap();
    jobs.iter_mut().for_each(|job| job.verdict = Verdict::Done);
    let (mut from, mut stops) = (0, 0);
    while let Err((place, stop)) = far.complete_burst(&mut jobs[from..]) {
        assert_eq!(stop, Stop::Unpack);
        (from, stops) = (from + place + 1, stops + 1);
    }
    assert_eq!(stops, jobs.len());
    assert!(jobs.iter().all(|job| job.packet.is_empty()));
    assert_eq!(drain(&mut far, SessionId(0), Time::ZERO), (packets, vec![]));
}

/// Rekeying for years takes no more memory than rekeying for a day.
#[test]
fn sas_that_come_and_go_leave_nothing_behind() {
    let mut sad = Ipsec::default();
    let mut round = |rounds: u32| {
        for n in 0..rounds {
            let rate = [None, Some(1_000)][n as usize % 2];
            let iptfs = Iptfs { rate, ..Iptfs::default() };
            let out = sad.add_outbound(sealing(0, iptfs.clone()), IvRange::for_throwaway_key()).unwrap();
            let into = sad.add_inbound(opening(0, iptfs)).unwrap();
            let due = if rate.is_some() { Time::ZERO } else { Time::MAX };
            assert_eq!(sad.next_due(), due, "that of the SA that is there");
            for session in [out, into] {
                sad.remove(session).unwrap();
            }
            assert_eq!(sad.next_due(), Time::MAX);
        }
    };
    round(10);
    let taken = allocation_counter::measure(|| round(1_000));
    assert_eq!(taken.bytes_current, 0);
}

/// The queue of a new SA that has the number of a removed one is counted once, whichever timer it has.
#[test]
fn waiting_counts_each_queue_once_after_removals() {
    let mut ipsec = Ipsec::default();
    let add = |ipsec: &mut Ipsec, n| {
        ipsec.add_outbound(sealing(n, Iptfs::default()), IvRange::for_throwaway_key()).expect("no fault")
    };
    let old = [0, 1].map(|n| add(&mut ipsec, n));
    for session in old {
        ipsec.remove(session).expect("it was added");
    }
    let new = add(&mut ipsec, 2);
    assert_eq!(new, old[0], "numbers are used again in the order in which they were given up");
    assert_eq!(ipsec.aggregate(Time::ZERO, &buffer(&plain(500, 1))), Ok(Some(new)));
    assert_eq!(ipsec.waiting(), 500);
}

/// An IPv4 packet with this traffic class and a right header checksum.
fn marked(class: u8, mark: u8) -> Vec<u8> {
    let mut packet = plain(100, mark);
    (packet[1], packet[10], packet[11]) = (class, 0, 0);
    let checksum = (!header_sum(&packet)).to_be_bytes();
    packet[10..12].copy_from_slice(&checksum);
    packet
}

fn header_sum(packet: &[u8]) -> u16 {
    let mut sum: u32 = packet[..20].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Marks on the path reach every inner packet that knows what they mean; one that does not is dropped, and takes no
/// other with it (RFC 9347 3.1, RFC 6040 4.2). Marks that are no congestion may be those of other inner packets.
#[test]
fn congestion_on_the_path_reaches_the_inner_packets() {
    const AF11: u8 = 10 << 2;
    let iptfs = Iptfs { ecn: true, ..Iptfs::default() };
    for n in [0, 4, 8, 12] {
        for (inner, outer_sent, outer_arrived, expected) in [
            ([2, 2], 2, 3, [Some(3), Some(3)]),
            ([2, 1], 2, 3, [Some(3), Some(3)]),
            ([2, 1], 2, 2, [Some(2), Some(1)]),
            ([3, 2], 3, 3, [Some(3), Some(3)]),
            ([2, 0], 0, 0, [Some(2), Some(0)]),
            // An attacker on the path, or a peer that marks more freely.
            ([2, 0], 0, 3, [Some(3), None]),
            ([2, 0], 0, 2, [Some(2), Some(0)]),
            ([0, 0], 0, 1, [Some(0), Some(0)]),
        ] {
            let (mut near, mut far) = pair(n, &iptfs);
            for (mark, ecn) in [1, 2].into_iter().zip(inner) {
                near.aggregate(Time::ZERO, &buffer(&marked(AF11 | ecn, mark))).unwrap();
            }
            let mut sealed = poll(&mut near, Time::ZERO + iptfs.max_delay).remove(0);
            assert_eq!(Ip::parse(&sealed).unwrap().traffic_class(), outer_sent, "{inner:?}");
            forebay_wire::ip::set_traffic_class(&mut sealed, outer_arrived);
            let (packets, reasons) = open(&mut far, &sealed, Time::ZERO).unwrap();
            let passed =
                [1, 2].into_iter().zip(expected).filter_map(|(mark, ecn)| Some(marked(AF11 | ecn?, mark)));
            assert_eq!(packets, passed.collect::<Vec<_>>(), "{inner:?} {outer_arrived}");
            assert_eq!(reasons, vec![DropReason::InEcn; 2 - packets.len()]);
            assert_eq!(far.ecn_odd(SessionId(0)), 0);
            assert!(packets.iter().all(|packet| header_sum(packet) == 0xffff));
        }
    }
}

/// Without `ecn`, and where the tunnel copies none (RFC 6040's compatibility mode), outer packets have no marks.
#[test]
fn marks_show_outside_only_where_they_are_asked_for() {
    for (ecn, rule, shown) in [(false, Ecn::Normal, 0), (true, Ecn::Compatibility, 0), (true, Ecn::Normal, 2)]
    {
        let iptfs = Iptfs { ecn, ..Iptfs::default() };
        let mut config = sealing(0, iptfs.clone());
        config.tunnel.ecn = rule;
        let mut near = Ipsec::default();
        near.add_outbound(config, IvRange::for_throwaway_key()).unwrap();
        near.aggregate(Time::ZERO, &buffer(&marked(2, 1))).unwrap();
        let sealed = poll(&mut near, Time::ZERO + iptfs.max_delay).remove(0);
        assert_eq!(Ip::parse(&sealed).unwrap().traffic_class(), shown);
    }
}

/// Two gateways with a tunnel in both directions, 20 ms apart, which lose payloads from near to far by their count. Near sends at a
/// fixed rate; far does too, or has a load to follow that never comes.
struct Course {
    gateways: [Ipsec; 2],
    now: Time,
    /// What is on its way from each.
    wires: [std::collections::VecDeque<(Time, Vec<u8>)>; 2],
    sent: u64,
}

impl Course {
    fn new(congestion: bool, far_rate: Option<u64>) -> Course {
        let iptfs = Iptfs { congestion, rate: Some(1_000), ..Iptfs::default() };
        let back = Iptfs { rate: far_rate, ..iptfs.clone() };
        let (mut near, mut far) = pair(0, &iptfs);
        // The same ends as those of the SA in the other direction.
        far.add_outbound(opening(0, back.clone()), IvRange::for_throwaway_key()).unwrap();
        near.add_inbound(sealing(0, back)).unwrap();
        Course { gateways: [near, far], now: Time::ZERO, wires: Default::default(), sent: 0 }
    }

    /// What each has sent in so many milliseconds.
    fn run(&mut self, ms: u64, lost: impl Fn(u64) -> bool) -> [usize; 2] {
        let mut sent = [0; 2];
        for _ in 0..2 * ms {
            for side in [0, 1] {
                let sad = &mut self.gateways[side];
                for payload in poll(sad, self.now) {
                    sent[side] += 1;
                    self.sent += u64::from(side == 0);
                    if side == 1 || !lost(self.sent) {
                        self.wires[side].push_back((self.now + Duration::from_millis(20), payload));
                    }
                }
                while self.wires[1 - side].front().is_some_and(|(due, _)| *due <= self.now) {
                    let (_, payload) = self.wires[1 - side].pop_front().unwrap();
                    open(sad, &payload, self.now).unwrap();
                }
                while let Some(session) = sad.poll_inner(self.now) {
                    drain(sad, session, self.now);
                }
            }
            self.now = self.now + Duration::from_micros(500);
        }
        sent
    }
}

/// RFC 9347 2.4.2: what one end finds about the path the other's rate follows, in each direction by itself.
#[test]
fn a_congested_path_slows_its_sender() {
    let one_in_50 = |count: u64| count.is_multiple_of(50);
    assert_eq!(Course::new(false, Some(1_000)).run(1_000, one_in_50), [1_000; 2]);
    let mut course = Course::new(true, Some(1_000));
    assert_eq!(course.run(1_000, |_| false), [1_000; 2]);
    course.run(10_000, one_in_50);
    // RFC 5348 3.1 with p = 1/50 and 40 ms: 183 a second.
    let [near, far] = course.run(2_000, one_in_50).map(|sent| sent / 2);
    assert!((140..230).contains(&near) && far == 1_000, "{near} and {far} a second");
    // New SAs of the same tunnel go on where the old ones were.
    let [near_sad, far_sad] = &mut course.gateways;
    let iptfs = Iptfs { congestion: true, rate: Some(1_000), ..Iptfs::default() };
    let newer = |config: SaConfig| SaConfig { spi: Spi::new(0x2000).unwrap(), ..config };
    far_sad.add_inbound(newer(opening(0, iptfs.clone()))).unwrap();
    near_sad.add_outbound(newer(sealing(0, iptfs)), IvRange::for_throwaway_key()).unwrap();
    near_sad.remove(SessionId(0)).unwrap();
    let [near, _] = course.run(1_000, one_in_50);
    assert!((120..250).contains(&near), "{near} a second");
    // When nothing is lost any more the rate grows.
    let [later, _] = course.run(12_000, |_| false);
    assert!(later > 12 * 300, "{later} in twelve seconds");
}

#[test]
fn a_path_that_takes_nothing_is_hardly_sent_to() {
    let mut course = Course::new(true, Some(1_000));
    assert_eq!(course.run(1_000, |_| false), [1_000; 2]);
    course.run(3_000, |_| true);
    // The least there is.
    assert!(course.run(2_000, |_| true)[0] <= 2);
    // An answer lifts it at once.
    course.run(3_000, |_| false);
    assert!(course.run(1_000, |_| false)[0] > 500);
}

/// An SA that follows a load answers once a round trip, and with nothing to answer not at all.
#[test]
fn an_idle_direction_carries_the_answers() {
    let mut course = Course::new(true, None);
    let [near, far] = course.run(2_000, |_| false);
    assert!(near == 2_000 && (30..=70).contains(&far), "{near} and {far}");
    course.run(10_000, |count| count.is_multiple_of(50));
    let [near, _] = course.run(1_000, |count| count.is_multiple_of(50));
    assert!((140..230).contains(&near), "{near} a second");
    let mut idle = Course::new(true, None);
    idle.gateways[0].remove(SessionId(0)).unwrap();
    assert_eq!(idle.run(1_000, |_| false), [0; 2]);
}

#[test]
fn an_sa_whose_peer_has_moved_is_still_of_its_tunnel() {
    let iptfs = Iptfs { congestion: true, rate: Some(1_000), ..Iptfs::default() };
    let mut sad = Ipsec::default();
    let config = SaConfig { follow_peer: true, ..sealing(1, iptfs) };
    let out = sad.add_outbound(config.clone(), IvRange::for_throwaway_key()).unwrap();
    assert!(sad.set_peer(out, "192.0.2.77:4500".parse().unwrap()).unwrap());
    let remote = "192.0.2.77".parse().unwrap();
    assert_eq!(sad.config(out).unwrap().ends(), SaConfig { remote, ..config }.ends());
}
