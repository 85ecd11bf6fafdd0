//! A tunnel between two gateways, and the files that make it.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};

use forebay_crypto::Suite;
use ipnet::IpNet;
use zeroize::Zeroizing;

use crate::keys::keys;
use crate::side::unreachable;
use crate::{Folder, NewFile, ProvisionError, Random, Side, ike};

/// Smallest SPI that is given: 1 to 255 are reserved (RFC 4303 2.1), and small ones are what people type.
const SPI_MIN: u32 = 0x1_0000;

/// Where the keys of a tunnel come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authentication {
    /// From files that both sides have.
    Keys,
    /// From an IKE daemon; the sides authenticate by a secret that both have.
    IkeSecret,
    /// From an IKE daemon; the sides authenticate by certificates.
    IkeCertificates,
}

/// A tunnel between two sides.
#[derive(Clone, Debug)]
pub struct Tunnel {
    sides: [Side; 2],
    suite: Suite,
    udp: bool,
    authentication: Authentication,
}

impl Tunnel {
    /// A tunnel with ESP in UDP (`udp`) or straight in IP.
    ///
    /// # Errors
    /// [`ProvisionError::Sides`] and [`ProvisionError::Suite`].
    pub fn new(
        sides: [Side; 2],
        suite: Suite,
        udp: bool,
        authentication: Authentication,
    ) -> Result<Tunnel, ProvisionError> {
        check_sides(&sides, udp)?;
        if suite.is_weak() {
            return Err(ProvisionError::Suite { suite, reason: "RFC 8221 says MUST NOT" });
        }
        Ok(Tunnel { sides, suite, udp, authentication })
    }

    /// Both gateways' files, with new keys; in the order of the sides.
    pub fn folders(&self, random: Random<'_>) -> [Folder; 2] {
        match self.authentication {
            Authentication::Keys => self.with_keys(random),
            _ => ike::folders(self, random),
        }
    }

    /// The sides.
    pub fn sides(&self) -> &[Side; 2] {
        &self.sides
    }

    /// The suite of both SAs.
    pub fn suite(&self) -> Suite {
        self.suite
    }

    /// Whether ESP is in UDP.
    pub fn udp(&self) -> bool {
        self.udp
    }

    /// Where the keys come from.
    pub fn authentication(&self) -> Authentication {
        self.authentication
    }

    fn with_keys(&self, random: Random<'_>) -> [Folder; 2] {
        // The way from each side to the other: its SPI and key files.
        let mut spis = vec![];
        let ways = [0, 1].map(|from| {
            let name = format!("{}-to-{}", self.sides[from].name, self.sides[1 - from].name);
            Way::new(name, self.suite, new_spi(&mut spis, random), random)
        });
        [0, 1].map(|own| {
            let (side, peer) = (&self.sides[own], &self.sides[1 - own]);
            let mut text = self.head(own, "");
            ways[own].push_sa(&mut text, self, own, "out");
            ways[1 - own].push_sa(&mut text, self, own, "in");
            let mut files = vec![NewFile { name: "gateway.toml".to_owned(), text: Zeroizing::new(text) }];
            files.extend(ways.iter().flat_map(|way| way.files.iter().cloned()));
            let mut commands =
                vec![format!("install -m 0640 -g forebay {}/keys/* /etc/forebay/keys/", side.name)];
            commands.extend(self.commands(side, peer));
            Folder { name: side.name.clone(), files, commands }
        })
    }

    /// The begin of a gateway's file: what it is for, and its links.
    pub(crate) fn head(&self, own: usize, link: &str) -> String {
        let (side, peer) = (&self.sides[own], &self.sides[1 - own]);
        let (here, there) = (list(&side.networks), list(&peer.networks));
        let (kind, what) =
            if self.udp { ("udp", "ESP in UDP, port 4500") } else { ("raw", "ESP straight in IP") };
        let listen = if self.udp && side.local().is_some_and(|local| local.is_ipv6()) {
            "listen = \"[::]:4500\"\n"
        } else {
            ""
        };
        format!(
            "# The gateway {}: {here} here, {there} behind {} ({}).\n# Made by `forebay tunnel new`; the other side has the \
             mirror image of it.\n\n[inside]                        # the interface to the protected network\n\
             name = \"forebay0\"\n\n[[outside]]                     # the link to the peer: {what}\nkind = \"{kind}\"\n\
             {listen}{link}",
            side.name, peer.outer, peer.name
        )
    }

    /// The commands that install the configuration and start the gateway.
    pub(crate) fn commands(&self, side: &Side, peer: &Side) -> Vec<String> {
        let mut commands =
            vec![format!("install -m 0640 -g forebay {}/gateway.toml /etc/forebay/gateway.toml", side.name)];
        let any = |is: fn(&IpNet) -> bool| side.networks.iter().chain(&peer.networks).any(is);
        // In a file, because a reboot forgets what is only set; appended, because another tunnel may have other lines there.
        let mut settings = vec![];
        if any(|network| matches!(network, IpNet::V4(_))) {
            settings.push("net.ipv4.ip_forward=1");
        }
        if any(|network| matches!(network, IpNet::V6(_))) {
            settings.push("net.ipv6.conf.all.forwarding=1");
        }
        commands.push(format!("printf '%s\\n' {} >>/etc/sysctl.d/90-forebay.conf", settings.join(" ")));
        commands.push("sysctl -p /etc/sysctl.d/90-forebay.conf".to_owned());
        commands.push("forebay check --config /etc/forebay/gateway.toml".to_owned());
        commands.push("systemctl enable --now forebay".to_owned());
        commands
    }
}

/// One direction of a tunnel with static keys.
struct Way {
    spi: u32,
    /// Key files, with the keys of `[[sa]]` that name them.
    files: Vec<NewFile>,
    lines: String,
}

impl Way {
    fn new(name: String, suite: Suite, spi: u32, random: Random<'_>) -> Way {
        let made = keys(suite, random);
        let (mut files, mut lines) = (vec![], String::new());
        for (key, text, ending) in [("key_file", made.key, "key"), ("auth_key_file", made.auth_key, "auth")] {
            if let Some(text) = text {
                let name = format!("keys/{name}.{ending}");
                push(&mut lines, format_args!("{key} = \"{name}\"\n"));
                files.push(NewFile { name, text });
            }
        }
        Way { spi, files, lines }
    }

    fn push_sa(&self, text: &mut String, tunnel: &Tunnel, own: usize, direction: &str) {
        let (side, peer) = (&tunnel.sides[own], &tunnel.sides[1 - own]);
        let Way { spi, lines, .. } = self;
        let udp = if tunnel.udp { "encapsulation = \"udp\"\n" } else { "" };
        let window = if direction == "in" { "replay_window = 4096\n" } else { "" };
        push(
            text,
            format_args!(
                "\n[[sa]]\nname = \"{}-{direction}\"\ndirection = \"{direction}\"\nspi = {spi:#x}\nproposal = \
                 \"{}\"\n{lines}{udp}{window}esn = true\nlocal = \"{}\"\nremote = \"{}\"\nlocal_ts = [{}]\nremote_ts = [{}]\n",
                peer.name,
                tunnel.suite,
                local(side),
                peer.outer,
                quoted(&side.networks),
                quoted(&peer.networks),
            ),
        );
    }
}

/// An SPI that is not among `taken`, to which it is added.
pub(crate) fn new_spi(taken: &mut Vec<u32>, random: Random<'_>) -> u32 {
    loop {
        let mut bytes = [0; 4];
        random(&mut bytes);
        let spi = u32::from_be_bytes(bytes);
        if spi >= SPI_MIN && !taken.contains(&spi) {
            taken.push(spi);
            return spi;
        }
    }
}

fn check_sides(sides: &[Side; 2], udp: bool) -> Result<(), ProvisionError> {
    let wrong = |reason: String, hint: &str| Err(ProvisionError::Sides { reason, hint: hint.to_owned() });
    let [one, other] = sides;
    if one.name == other.name {
        return wrong(format!("both sides are called `{}`", one.name), "give each side a name of its own");
    }
    if one.outer == other.outer {
        return wrong(
            format!("both sides have the address {}", one.outer),
            "give each side an address of its own",
        );
    }
    for side in sides {
        let Some(local) = side.local() else {
            let reason =
                format!("{} has a host name, {}, and its own address is not known", side.name, side.outer);
            return wrong(reason, &format!("add `--behind-nat {}=ADDRESS`", side.name));
        };
        if side.address().is_some_and(|outer| outer.is_ipv4() != local.is_ipv4()) {
            let reason =
                format!("the own address of {} has another IP version than {}", side.name, side.outer);
            return wrong(reason, "a NAT translates addresses of one IP version");
        }
        if side.own.is_some() && !udp {
            let reason = format!("{} is behind a NAT, which ESP without UDP does not pass", side.name);
            return wrong(reason, "use `--link udp`");
        }
        if let Some(is) = side.own.and_then(|own| unreachable(&own)) {
            let reason = format!("the own address of {} is {local}, {is}", side.name);
            return wrong(reason, "give the address of the gateway's interface to the NAT");
        }
        if side.own.is_some() && side.own == side.address() {
            let reason =
                format!("the own address of {} is the one at which its peer reaches it, {local}", side.name);
            return wrong(
                reason,
                &format!("leave out `--behind-nat {}=...`: no NAT translates its address", side.name),
            );
        }
    }
    if local(one).is_ipv4() != local(other).is_ipv4() {
        let reason = format!("{} and {} are addresses of different IP versions", local(one), local(other));
        return wrong(reason, "give addresses of one IP version; the networks may have both");
    }
    for (network, peers) in
        one.networks.iter().flat_map(|network| other.networks.iter().map(move |peers| (network, peers)))
    {
        if network.contains(peers) || peers.contains(network) {
            let reason = format!("{network} of {} and {peers} of {} overlap", one.name, other.name);
            return wrong(reason, "the networks of the two sides must differ");
        }
    }
    for side in sides {
        for (at, network) in side.networks.iter().enumerate() {
            let mut others = side.networks.iter().enumerate().filter(|(other, _)| *other != at);
            if let Some((_, whole)) = others.find(|(_, other)| other.contains(network)) {
                let reason = format!("{network} of {} is in {whole} of the same side", side.name);
                return wrong(reason, "give each network once");
            }
        }
    }
    for (side, peer) in [(one, other), (other, one)] {
        let is_v4 = |network: &IpNet| matches!(network, IpNet::V4(_));
        let alone = |network: &&IpNet| !peer.networks.iter().any(|other| is_v4(other) == is_v4(network));
        if let Some(network) = side.networks.iter().find(alone) {
            let reason =
                format!("{network} of {}: no network of {} has its IP version", side.name, peer.name);
            return wrong(
                reason,
                "a packet's source and destination are of one IP version: add such a network, or leave this one out",
            );
        }
    }
    for (side, peer) in [(one, other), (other, one)] {
        if let Some(network) =
            peer.networks.iter().find(|network| peer.address().is_some_and(|outer| network.contains(&outer)))
        {
            let reason = format!("{network} contains {}, the outer address of {}", peer.outer, peer.name);
            let hint = format!(
                "the route of {} to it would send protected packets into the tunnel again; exclude the address from the \
                 networks",
                side.name
            );
            return wrong(reason, &hint);
        }
        let own = local(side);
        if let Some(network) = peer.networks.iter().find(|network| network.contains(&own)) {
            let reason =
                format!("{network} behind {} contains {own}, the own address of {}", peer.name, side.name);
            let hint = "the route to that network would send the gateway's own packets into the tunnel; exclude the address from the networks";
            return wrong(reason, hint);
        }
    }
    Ok(())
}

/// The address of a side that has been checked.
pub(crate) fn local(side: &Side) -> IpAddr {
    side.local().unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
}

pub(crate) fn push(text: &mut String, words: std::fmt::Arguments<'_>) {
    text.write_fmt(words).expect("a string takes everything");
}

pub(crate) fn list(networks: &[IpNet]) -> String {
    networks.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn quoted(networks: &[IpNet]) -> String {
    networks.iter().map(|network| format!("\"{network}\"")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is wrong with a tunnel between west, whose own address behind a NAT is `own`, and east.
    fn wrong(own: &str) -> (String, String) {
        let mut west: Side = "west=198.51.100.7,10.1.0.0/16".parse().unwrap();
        west.own = own.parse().ok();
        let east = "east=192.0.2.2,10.2.0.0/16".parse().unwrap();
        let error = Tunnel::new([west, east], "aes256-sha256".parse().unwrap(), true, Authentication::Keys)
            .expect_err(own);
        (error.to_string(), error.hint())
    }

    #[test]
    fn own_addresses_behind_a_nat_are_checked() {
        for (own, reason, hint) in [
            ("127.0.0.1", "the own address of west is 127.0.0.1, a loopback address", "interface to the NAT"),
            ("0.0.0.0", "no address", "interface to the NAT"),
            ("198.51.100.7", "the one at which its peer reaches it", "leave out `--behind-nat west=...`"),
            (
                "10.2.0.9",
                "10.2.0.0/16 behind east contains 10.2.0.9, the own address of west",
                "exclude the address",
            ),
            ("fd00::1", "another IP version", "one IP version"),
        ] {
            let (found, help) = wrong(own);
            assert!(found.contains(reason) && help.contains(hint), "{own}: {found}: {help}");
        }
    }
}
