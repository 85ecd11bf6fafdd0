//! SAs of every kind, by four bytes.

use std::net::IpAddr;

use forebay_crypto::Suite;
use forebay_ipsec::{
    DontFragment, Dscp, Ecn, Encapsulation, FlowLabel, HopLimit, Iptfs, Lifetime, Limits, Mode, Protocol,
    SaConfig, Spi, Tfc, TrafficSelector, TunnelRules,
};

/// What bytes say of an SA: its suite, its shape, how its tunnel headers are made, its numbers and limits.
#[derive(Clone, Copy, Debug)]
pub struct Kind(pub [u8; 4]);

thread_local! {
    static ALL: [Vec<Suite>; 2] = [Suite::all().collect(), Suite::all().filter(|suite| suite.suits_ah()).collect()];
    static NARROW: [Vec<TrafficSelector>; 3] = [&["10.0.0.0/8", "2001:db8::/32"][..], &["[tcp]", "[udp]"], &["[udp/opaque]"]]
        .map(|words| words.iter().map(|word| word.parse().expect("a selector")).collect());
}

impl Kind {
    /// Takes the kind off the begin of `data`.
    pub fn take(data: &[u8]) -> Option<(Kind, &[u8])> {
        data.split_first_chunk().map(|(kind, rest)| (Kind(*kind), rest))
    }

    pub fn bit(self, n: u8) -> bool {
        self.0[1] >> n & 1 == 1
    }

    /// An SA of ESP for sealing.
    pub fn esp(self, spi: u32) -> SaConfig {
        let [suite, _, _, numbers] = self.0;
        let config = self.common(Protocol::Esp, suite, spi);
        let mtu = self.bit(4).then_some([576, 1_280, 1_400, 1_500][usize::from(suite & 3)]);
        let mtu = mtu.map(|mtu: u16| if self.bit(2) { mtu.max(1_280) } else { mtu });
        let tfc = match (self.bit(5) && !self.bit(0), mtu) {
            (false, _) => Tfc::None,
            (true, Some(_)) => Tfc::Mtu,
            (true, None) => Tfc::PadTo(300),
        };
        let limit = (numbers >> 7 == 1).then_some(600);
        let lifetime = Lifetime {
            soft: Limits { packets: limit.map(|_| 1), ..Limits::default() },
            hard: Limits { bytes: limit, ..Limits::default() },
        };
        let encapsulation = if self.bit(1) { Encapsulation::Udp } else { Encapsulation::None };
        SaConfig { mtu, tfc, lifetime, encapsulation, ..config }
    }

    /// The same without anything but AH knows.
    pub fn ah(self, spi: u32) -> SaConfig {
        self.common(Protocol::Ah, self.0[0], spi)
    }

    /// The same as an ESP tunnel that aggregates.
    pub fn iptfs(self, spi: u32) -> SaConfig {
        let shape = Kind([self.0[0], self.0[1] & 0b1110, self.0[2], self.0[3]]);
        let window = [3, 0, 1, 64][usize::from(self.0[1] >> 4 & 3)];
        let iptfs = Iptfs { reorder_window: window, congestion: self.bit(6), ..Iptfs::default() };
        SaConfig { iptfs: Some(iptfs), ..shape.esp(spi) }
    }

    fn common(self, protocol: Protocol, suite: u8, spi: u32) -> SaConfig {
        let [_, _, rules, numbers] = self.0;
        let suite = ALL.with(|all| {
            let all = &all[usize::from(protocol == Protocol::Ah)];
            all[usize::from(suite) % all.len()]
        });
        let [local, remote]: [IpAddr; 2] = match self.bit(2) {
            false => [[192, 0, 2, 1].into(), [192, 0, 2, 2].into()],
            true => [1, 2].map(|last| [0x2001, 0xdb8, 0, 0, 0, 0, 0, last].into()),
        };
        let narrow = usize::from(numbers >> 4 & 3);
        let selectors = |_| match narrow {
            0 => vec![],
            n => NARROW.with(|narrow| narrow[n - 1].clone()),
        };
        SaConfig {
            protocol,
            mode: if self.bit(0) { Mode::Transport } else { Mode::Tunnel },
            esn: self.bit(3),
            replay_window: [64, 0, 1, 1_024][usize::from(numbers >> 2 & 3)],
            check_padding: numbers >> 6 & 1 == 0,
            tunnel: tunnel_rules(rules),
            local_ts: selectors(0),
            remote_ts: selectors(1),
            ..SaConfig::new("fuzzed", Spi::new(spi).expect("not zero"), suite, local, remote)
        }
    }

    /// The sequence number behind which both ends continue: the begin, and around every end there is.
    pub fn start(self) -> u64 {
        match (self.0[3] & 3, self.bit(3)) {
            (1, _) => u64::from(u32::MAX) - 1,
            (2, true) => u64::MAX - 1,
            (2, false) => u32::MAX.into(),
            (3, true) => 1 << 32 | 3,
            (3, false) => 100,
            _ => 0,
        }
    }
}

/// The same SA as its other end has it.
pub fn other_end(config: &SaConfig) -> SaConfig {
    let config = config.clone();
    SaConfig {
        local: config.remote,
        remote: config.local,
        local_ts: config.remote_ts,
        remote_ts: config.local_ts,
        ..config
    }
}

fn tunnel_rules(rules: u8) -> TunnelRules {
    TunnelRules {
        dscp: if rules % 3 == 1 { Dscp::Set(46) } else { Dscp::Copy },
        ecn: if rules / 3 % 2 == 1 { Ecn::Compatibility } else { Ecn::Normal },
        dont_fragment: [DontFragment::Copy, DontFragment::Set, DontFragment::Clear]
            [usize::from(rules / 6 % 3)],
        flow_label: [FlowLabel::Zero, FlowLabel::Hash, FlowLabel::Copy, FlowLabel::Fixed(0x12345)]
            [usize::from(rules / 18 % 4)],
        hop_limit: if rules / 72 % 2 == 1 { HopLimit::Copy } else { HopLimit::Fixed(64) },
        ..TunnelRules::default()
    }
}
