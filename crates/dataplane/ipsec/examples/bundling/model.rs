//! One accelerator in virtual time, fed packet by packet, through the scheduler's sliding window, or with
//! payloads of IP-TFS. The scheduler and the aggregator are the ones that the gateway uses.

use std::collections::VecDeque;

use forebay_crypto::Packet;
use forebay_ipsec::Iptfs;
use forebay_ipsec::iptfs::Aggregator;
use forebay_scheduler::{Config, Cost, Decision, Item, ProcessorConfig, Scheduler};
use forebay_time::{Duration, PS_PER_S, Time};

/// What stands around an ESP payload: IPv4 (20), ESP (8), the IV (8) and the ICV (16) of AES-GCM.
const AROUND: usize = 20 + 8 + 8 + 16;
/// Payload of an outer packet of 1500 bytes, two bytes of trailer counted out.
const PAYLOAD: usize = 1_500 - AROUND - 2;

/// How packets share work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bundling {
    /// Not at all.
    None,
    /// Up to so many packets of one SA are one job (\[S\]).
    Window { packets: usize, timeout: Duration },
    /// Packets of one SA share ESP packets of 1500 bytes (RFC 9347), load-following.
    Iptfs { max_delay: Duration },
}

impl Bundling {
    pub fn name(&self) -> String {
        match self {
            Bundling::None => "none".into(),
            Bundling::Window { packets, .. } => format!("window {packets}"),
            Bundling::Iptfs { .. } => "IP-TFS".into(),
        }
    }
}

/// Packets back to back at a rate.
#[derive(Clone, Debug)]
pub struct Traffic {
    /// Length of each inner IP packet in bytes, and its SA.
    pub packets: Vec<(u32, u32)>,
    /// Bit/s of inner packets.
    pub rate: u64,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    pub packets: usize,
    pub jobs: usize,
    /// Time the accelerator worked.
    pub crypto: Duration,
    pub inner_bytes: u64,
    /// Bytes of outer IP packets.
    pub wire_bytes: u64,
    /// Bit/s of inner packets, from the first arrival to the last completion.
    pub throughput: f64,
    /// From a packet's arrival until it is enciphered, the whole of it.
    pub mean_latency: Duration,
    pub p99_latency: Duration,
}

/// What the crypto works on, and the outer packet, for an ESP payload: padding and trailer to four bytes.
fn esp(payload: usize) -> (u32, u64) {
    let text = (payload + 2).next_multiple_of(4);
    (text as u32, (text + AROUND) as u64)
}

struct Run {
    scheduler: Scheduler,
    cost: Cost,
    /// Jobs that wait for the accelerator: how long they take, and what is in them.
    queue: VecDeque<(Duration, Vec<u64>)>,
    serving: Option<(Time, Vec<u64>)>,
    /// By item: its SA, and up to which byte of that SA's stream it carries.
    items: Vec<(u32, u64)>,
    /// By SA: bytes that have come, and the packets that are not done, each with its last byte's place.
    streams: Vec<(u64, VecDeque<(u64, Time)>)>,
    latencies: Vec<Duration>,
    jobs: usize,
    crypto: Duration,
    wire_bytes: u64,
}

pub fn run(traffic: &Traffic, bundling: Bundling, cost: Cost) -> Figures {
    let sas = traffic.packets.iter().map(|(_, sa)| *sa as usize + 1).max().unwrap_or(0);
    let mut config = Config::new(vec![ProcessorConfig::accelerator(cost)]);
    if let Bundling::Window { packets, timeout } = bundling {
        (config.window, config.timeout) = (packets, Some(timeout));
    }
    let mut aggregators: Vec<Aggregator> = match bundling {
        Bundling::Iptfs { max_delay } => {
            let iptfs = Iptfs { max_delay, queue: 1 << 17, ..Iptfs::default() };
            (0..sas).map(|_| Aggregator::new(&iptfs, PAYLOAD)).collect()
        }
        _ => Vec::new(),
    };
    let mut run = Run {
        scheduler: Scheduler::new(config).expect("a window of one packet and more"),
        cost,
        queue: VecDeque::new(),
        serving: None,
        items: Vec::new(),
        streams: vec![(0, VecDeque::new()); sas],
        latencies: Vec::new(),
        jobs: 0,
        crypto: Duration::ZERO,
        wire_bytes: 0,
    };
    let (mut next, mut sent, mut end) = (0, 0u64, Time::ZERO);
    let mut payload = Packet::with_capacity(2_048);
    let mut now = Time::ZERO;
    loop {
        run.finish(now, &mut end);
        while let Some(&(bytes, sa)) = traffic.packets.get(next)
            && arrival(sent, traffic.rate) <= now
        {
            (next, sent) = (next + 1, sent + u64::from(bytes));
            run.arrive(now, sa, bytes, aggregators.get_mut(sa as usize));
            if next == traffic.packets.len() {
                run.scheduler.end_of_input();
            }
        }
        let mut due = Time::MAX;
        for (sa, aggregator) in aggregators.iter_mut().enumerate() {
            while aggregator.due() <= now && aggregator.poll(now, &mut payload).expect("room for 1500 bytes")
            {
                let carried = run.streams[sa].0 - aggregator.waiting() as u64;
                run.offer(now, sa as u32, carried, payload.len());
            }
            due = due.min(aggregator.due());
        }
        let wait = run.dispatch(now);
        let arrives = if next < traffic.packets.len() { arrival(sent, traffic.rate) } else { Time::MAX };
        let done = run.serving.as_ref().map_or(Time::MAX, |(until, _)| *until);
        now = due.min(wait).min(arrives).min(done);
        if now == Time::MAX {
            break;
        }
    }
    run.figures(sent, end)
}

/// When the packet behind `sent` bytes arrives.
fn arrival(sent: u64, rate: u64) -> Time {
    Time((u128::from(8 * sent) * u128::from(PS_PER_S) / u128::from(rate)) as u64)
}

impl Run {
    fn arrive(&mut self, now: Time, sa: u32, bytes: u32, aggregator: Option<&mut Aggregator>) {
        let stream = &mut self.streams[sa as usize];
        stream.0 += u64::from(bytes);
        stream.1.push_back((stream.0, now));
        let carried = stream.0;
        match aggregator {
            None => self.offer(now, sa, carried, bytes as usize),
            Some(aggregator) => {
                // The content does not matter here.
                let packet = vec![0x45; bytes as usize];
                aggregator.push(now, &packet).expect("room in the queue");
            }
        }
    }

    /// Gives an ESP packet to the scheduler.
    fn offer(&mut self, now: Time, sa: u32, carried: u64, payload: usize) {
        let (bytes, wire) = esp(payload);
        self.wire_bytes += wire;
        let id = self.items.len() as u64;
        self.items.push((sa, carried));
        let item = Item { id, sa, class: 0, suite: 0, bytes };
        self.scheduler.push(now, item).expect("an input without limit");
    }

    /// Places and begins jobs; when the window is to be looked at again.
    fn dispatch(&mut self, now: Time) -> Time {
        loop {
            if self.serving.is_none()
                && let Some((time, items)) = self.queue.pop_front()
            {
                self.scheduler.taken(0, now);
                self.serving = Some((now + time, items));
            }
            match self.scheduler.next(now) {
                Decision::Dispatch { job, .. } => {
                    let time = self.cost.of(&job.head.work);
                    self.jobs += 1;
                    self.crypto += time;
                    self.queue.push_back((time, job.items().to_vec()));
                }
                Decision::Wait { until } => return until,
                _ => return Time::MAX,
            }
        }
    }

    fn finish(&mut self, now: Time, end: &mut Time) {
        let Some((_, items)) = self.serving.take_if(|(until, _)| *until <= now) else { return };
        self.scheduler.finished(0);
        *end = now;
        for item in items {
            let (sa, carried) = self.items[item as usize];
            let waiting = &mut self.streams[sa as usize].1;
            while let Some(&(last, arrived)) = waiting.front()
                && last <= carried
            {
                waiting.pop_front();
                self.latencies.push(now.since(arrived));
            }
        }
    }

    fn figures(mut self, inner_bytes: u64, end: Time) -> Figures {
        let packets = self.latencies.len();
        self.latencies.sort_unstable();
        let total: u128 = self.latencies.iter().map(|latency| u128::from(latency.0)).sum();
        Figures {
            packets,
            jobs: self.jobs,
            crypto: self.crypto,
            inner_bytes,
            wire_bytes: self.wire_bytes,
            throughput: 8.0 * inner_bytes as f64 / end.since(Time::ZERO).as_secs(),
            mean_latency: Duration((total / packets.max(1) as u128) as u64),
            p99_latency: self.latencies.get(packets * 99 / 100).copied().unwrap_or_default(),
        }
    }
}
