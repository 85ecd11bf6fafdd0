//! The gateways of a run as their operator sees them: addresses, tunnels, keys, and the file of each.

use std::fmt::Write;

use forebay_cluster::Shares;
use forebay_config::ShareBy;
use forebay_crypto::{SaKeys, SecretBytes, Suite};
use forebay_random::Random;

use crate::network::Network;

/// Addresses of a gateway of which one serves several shares.
pub const HOMES: u8 = 3;

/// Proposals that tunnels are drawn from.
const PROPOSALS: [&str; 4] = ["aes128gcm16", "chacha20poly1305", "aes256gcm16", "aes128-sha256"];

/// The tunnel between two gateways.
#[derive(Clone, Debug)]
pub struct Tunnel {
    /// The gateways' numbers.
    pub ends: [usize; 2],
    /// The proposal of its SAs.
    pub proposal: &'static str,
    /// Whether its sequence numbers have 64 bits.
    pub esn: bool,
    /// Its replay window, in packets.
    pub window: u32,
    /// ESP in UDP.
    pub udp: bool,
    /// Inner packets beside those of the networks are let through: toggled by reloads.
    pub wide: bool,
    /// Generations of keys whose inbound SAs are there.
    pub inbound: Vec<u32>,
    /// The generation whose outbound SA is there.
    pub outbound: u32,
    /// By generation: the addresses of the two ends, as numbers among those of each gateway.
    pub homes: Vec<[u8; 2]>,
}

impl Tunnel {
    /// The address of one of its gateways, as a number among that gateway's.
    pub fn home(&self, gateway: usize, generation: u32) -> u8 {
        self.homes[generation as usize][usize::from(self.ends[1] == gateway)]
    }
}

/// How a gateway is set up.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The scheduler's policy.
    pub policy: &'static str,
    /// How many cores there are, and whether there is a card.
    pub cores: u64,
    pub card: bool,
    /// IVs that are reserved at a time.
    pub iv_reserve: u64,
    /// Whether the file has policies beside the SAs.
    pub policies: bool,
}

/// All gateways and tunnels of a run.
#[derive(Clone, Debug)]
pub struct Site {
    /// Makes the keys.
    pub seed: u64,
    /// By gateway.
    pub layouts: Vec<Layout>,
    /// One for each two gateways.
    pub tunnels: Vec<Tunnel>,
    /// The gateway that two machines are, if one is, and by what they are.
    pub pair: Option<usize>,
    pub by: By,
    /// How many machines that gateway is.
    pub members: usize,
    /// Into how many shares its SAs are divided, and by what.
    pub shares: u16,
    pub share_by: ShareBy,
    /// Whether machines that the store does not answer serve nothing (`alone = "stop"`).
    pub stops_alone: bool,
    /// The machine that is the gateway by itself, while the pair is dissolved.
    pub alone: Option<usize>,
    /// An SA was moved to another share with the keys that it has: a machine may refuse that.
    pub moved_with_keys: bool,
}

/// By what two machines are one gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Connections between the two (`[pair]`).
    Links,
    /// A store like etcd (`[cluster]`).
    Store,
}

impl Site {
    /// Draws one.
    pub fn draw(seed: u64, random: &mut Random) -> Site {
        // Mostly few: more gateways find little that three do not.
        let count = [2, 2, 2, 3, 3, 4, 5][random.below(7) as usize];
        let layouts = (0..count).map(|_| Layout {
            policy: ["finish-time", "round-robin", "shortest-queue"][random.below(3) as usize],
            cores: 1 + random.below(3),
            card: random.below(3) == 0,
            iv_reserve: [48, 200, 5_000][random.below(3) as usize],
            policies: random.below(2) == 0,
        });
        let layouts = layouts.collect();
        let mut tunnels = Vec::new();
        for one in 0..count {
            for two in one + 1..count {
                tunnels.push(Tunnel {
                    ends: [one, two],
                    proposal: PROPOSALS[random.below(4) as usize],
                    esn: random.below(2) == 0,
                    window: [64, 128, 1024][random.below(3) as usize],
                    udp: random.below(2) == 0,
                    wide: false,
                    inbound: vec![0],
                    outbound: 0,
                    homes: vec![[0; 2]],
                });
            }
        }
        Site {
            seed,
            layouts,
            tunnels,
            pair: None,
            by: By::Links,
            members: 2,
            shares: 1,
            share_by: ShareBy::Local,
            stops_alone: false,
            alone: None,
            moved_with_keys: false,
        }
    }

    /// Machines: one for each gateway, with its number, and behind them the others of the gateway that several are.
    pub fn machines(&self) -> usize {
        self.layouts.len() + if self.pair.is_some() { self.members - 1 } else { 0 }
    }

    /// Whether the machines of a gateway serve parts of its SAs.
    pub fn has_shares(&self) -> bool {
        self.shares > 1
    }

    /// Whether a tunnel of gateway 0 belongs to one share by these addresses of its ends, and to another one by others.
    pub fn are_of_two_shares(&self, tunnel: usize, one: [u8; 2], other: [u8; 2]) -> bool {
        let end = match self.share_by {
            ShareBy::Local => 0,
            ShareBy::Remote => 1,
            ShareBy::Spi => return false,
        };
        let (shares, gateway) =
            (Shares { count: self.shares, by: self.share_by }, self.tunnels[tunnel].ends[end]);
        let share = |homes: [u8; 2]| shares.of_address(Network::address_at(gateway, homes[end]).into());
        share(one) != share(other)
    }

    /// Whether a machine has nothing to do, because another one is the gateway by itself.
    pub fn is_off(&self, machine: usize) -> bool {
        self.side_of(machine).is_some() && self.alone.is_some_and(|alone| alone != machine)
    }

    /// The address of an end of a tunnel.
    fn address(tunnel: &Tunnel, gateway: usize, generation: u32) -> String {
        let [a, b, c, d] = Network::address_at(gateway, tunnel.home(gateway, generation));
        format!("{a}.{b}.{c}.{d}")
    }

    /// The gateway that a machine is or belongs to.
    pub fn gateway_of(&self, machine: usize) -> usize {
        if machine < self.layouts.len() { machine } else { self.pair.unwrap_or(0) }
    }

    /// The machine's number in the pair or the cluster; `None` if it is none of it.
    pub fn side_of(&self, machine: usize) -> Option<usize> {
        let further = (machine + 1).saturating_sub(self.layouts.len());
        (further > 0 || self.pair == Some(machine)).then_some(further)
    }

    /// The machines of a gateway.
    pub fn machines_of(&self, gateway: usize) -> Vec<usize> {
        (0..self.machines()).filter(|&machine| self.gateway_of(machine) == gateway).collect()
    }

    /// The number of the tunnel between two gateways.
    pub fn tunnel(&self, one: usize, two: usize) -> usize {
        let ends = [one.min(two), one.max(two)];
        self.tunnels.iter().position(|tunnel| tunnel.ends == ends).unwrap_or(0)
    }

    /// The SPI of the SA from one gateway to another; it also names its keys.
    pub fn spi(from: usize, to: usize, generation: u32) -> u32 {
        0x1_0000 + ((from as u32) << 12) + ((to as u32) << 8) + (generation << 16)
    }

    /// The gateway that receives by the SA with this SPI.
    pub fn receiver(spi: u32) -> usize {
        (spi >> 8 & 0xf) as usize
    }

    /// The keys of the SA with this SPI.
    pub fn keys(&self, proposal: &str, spi: u32) -> (Vec<u8>, Vec<u8>) {
        let suite: Suite = proposal.parse().expect("a proposal of the list");
        let mut random = Random::seeded(self.seed ^ u64::from(spi) << 20 ^ 0x6b65_7973);
        let mut bytes = |len: usize| -> Vec<u8> { (0..len).map(|_| random.bits() as u8).collect() };
        (bytes(suite.cipher_key_len() + suite.salt_len()), bytes(suite.integrity_key_len()))
    }

    /// The same for a processor.
    pub fn sa_keys(&self, proposal: &str, spi: u32) -> SaKeys {
        let (key, auth) = self.keys(proposal, spi);
        let suite = proposal.parse().expect("a proposal of the list");
        SaKeys::new(suite, &SecretBytes::new(key), &SecretBytes::new(auth)).expect("keys of the right length")
    }

    /// The file of a machine.
    pub fn file(&self, machine: usize) -> String {
        let gateway = self.gateway_of(machine);
        let layout = &self.layouts[gateway];
        let me = gateway + 1;
        // What listens at one address has no SAs with others.
        let listen = if self.has_shares() { "0.0.0.0".to_owned() } else { format!("192.0.2.{me}") };
        let homes = (0..if self.has_shares() { HOMES } else { 1 }).map(|home| {
            let [a, b, c, d] = Network::address_at(gateway, home);
            format!("{a}.{b}.{c}.{d}")
        });
        let homes: Vec<String> = homes.collect();
        let mut text = format!(
            "[guard]\nmode = \"nftables\"\n[inside]\nname = \"inside\"\nmtu = 1400\naddresses = [\"10.{me}.0.1/16\"]\noffload = false\n\
             [[outside]]\nkind = \"udp\"\nlisten = \"{listen}:4500\"\n\
             [[outside]]\nkind = \"raw\"\naddresses = [\"{}\"]\nprotocols = [\"esp\"]\n\
             [keys]\nstate = \"/state\"\niv_reserve = {}\n\
             [limits]\nin_flight = 512\n[scheduler]\npolicy = \"{}\"\n\
             [[processor]]\nkind = \"core\"\nbackend = \"aws-lc\"\n",
            homes.join("\", \""),
            layout.iv_reserve,
            layout.policy
        );
        for core in 1..layout.cores {
            let _ = write!(
                text,
                "[[processor]]\nkind = \"core\"\nname = \"core.{core}\"\nbackend = \"aws-lc\"\n"
            );
        }
        if layout.card {
            text +=
                "[[processor]]\nkind = \"card\"\nname = \"card\"\nblock = \"5 ns\"\nbackend = \"aws-lc\"\n";
        }
        match self.side_of(machine).filter(|_| self.alone.is_none()) {
            Some(side) if self.by == By::Store => {
                let shared = homes.iter().filter(|_| self.share_by == ShareBy::Local);
                let shared: Vec<String> = shared.map(|home| format!("\"outside {home}/24\"")).collect();
                let _ = write!(
                    text,
                    "[cluster]\nname = \"machine-{side}\"\nendpoints = [\"http://127.0.0.1:2379\"]\nshares = {}\n\
                     share_by = \"{}\"\nalone = \"{}\"\n",
                    self.shares,
                    self.share_by.word(),
                    if self.stops_alone { "stop" } else { "continue" }
                );
                if !shared.is_empty() {
                    let _ = writeln!(text, "addresses = [{}]", shared.join(", "));
                }
            }
            Some(side) => {
                let peer = if side == 0 { "listen" } else { "peers" };
                let _ = write!(
                    text,
                    "[pair]\nnumber = {side}\npreferred = {}\n{peer} = [\"10.200.0.1:7411\"]\n\
                     key_file = \"/never-read\"\naddresses = [\"outside 192.0.2.{me}/24\"]\n",
                    side == 0
                );
            }
            None => {}
        }
        for tunnel in self.tunnels.iter().filter(|tunnel| tunnel.ends.contains(&gateway)) {
            self.write_tunnel(&mut text, gateway, tunnel);
        }
        text
    }

    fn write_tunnel(&self, text: &mut String, gateway: usize, tunnel: &Tunnel) {
        let peer = if tunnel.ends[0] == gateway { tunnel.ends[1] } else { tunnel.ends[0] };
        let mut sa = |direction: &str, generation: u32, spi: u32| {
            let (key, auth) = self.keys(tunnel.proposal, spi);
            let more = |net: usize| match tunnel.wide {
                true => format!("\"10.{net}.0.0/16\", \"10.{}.0.0/16\"", 100 + net),
                false => format!("\"10.{net}.0.0/16\""),
            };
            let _ = write!(
                text,
                "[[sa]]\nname = \"{direction}-{peer}-{generation}\"\ndirection = \"{direction}\"\nspi = {spi}\n\
                 proposal = \"{}\"\nkey = \"{}\"\nlocal = \"{}\"\nremote = \"{}\"\nesn = {}\n\
                 local_ts = [{}]\nremote_ts = [{}]\nencapsulation = \"{}\"\nreplay_window = {}\n",
                tunnel.proposal,
                hex(&key),
                Site::address(tunnel, gateway, generation),
                Site::address(tunnel, peer, generation),
                tunnel.esn,
                more(gateway + 1),
                more(peer + 1),
                if tunnel.udp { "udp" } else { "none" },
                tunnel.window,
            );
            if !auth.is_empty() {
                let _ = writeln!(text, "auth_key = \"{}\"", hex(&auth));
            }
        };
        for &generation in &tunnel.inbound {
            sa("in", generation, Site::spi(peer, gateway, generation));
        }
        sa("out", tunnel.outbound, Site::spi(gateway, peer, tunnel.outbound));
        if self.layouts[gateway].policies {
            let inbound: Vec<String> =
                tunnel.inbound.iter().map(|generation| format!("\"in-{peer}-{generation}\"")).collect();
            let (mine, theirs) = (gateway + 1, peer + 1);
            let _ = write!(
                text,
                "[[policy]]\nname = \"to-{peer}\"\ndirection = \"out\"\naction = \"protect\"\n\
                 sa = \"out-{peer}-{}\"\nlocal_ts = [\"10.{mine}.0.0/16\"]\nremote_ts = [\"10.{theirs}.0.0/16\"]\n\
                 [[policy]]\nname = \"from-{peer}\"\ndirection = \"in\"\naction = \"protect\"\n\
                 sa = [{}]\nlocal_ts = [\"10.{mine}.0.0/16\"]\nremote_ts = [\"10.{theirs}.0.0/16\"]\n",
                tunnel.outbound,
                inbound.join(", "),
            );
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
