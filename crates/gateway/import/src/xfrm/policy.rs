//! One policy of the kernel.

use std::net::IpAddr;

use forebay_crypto::{Direction, SessionId};
use forebay_ipsec::{Action, Mode, NEST_MAX, Policy, PortRange, Protocol, TrafficSelector};
use ipnet::IpNet;

use super::state::{RawState, Route, number, optional};
use super::{Imported, Line, Placed};

/// Source and destination of what is meant, as it is printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    src: IpNet,
    dst: IpNet,
    protocol: u8,
    sport: Option<u16>,
    dport: Option<u16>,
    /// ICMP's, instead of ports.
    kind: Option<u8>,
    code: Option<u8>,
}

/// An SA that a policy wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    src: IpAddr,
    dst: IpAddr,
    protocol: Option<Protocol>,
    mode: Option<Mode>,
    spi: u32,
    reqid: u32,
    optional: bool,
}

/// A policy as it is printed.
#[derive(Clone, Debug)]
pub struct RawPolicy {
    line: usize,
    text: String,
    pub direction: Direction,
    /// Of packets that are forwarded, which the kernel has policies of their own for.
    forward: bool,
    block: bool,
    /// The smaller goes first.
    priority: u32,
    selector: Selector,
    pub templates: Vec<Template>,
    pub route: Route,
}

impl Selector {
    /// Reads `src NET dst NET ...`.
    pub fn read(words: &[&str]) -> Result<Selector, String> {
        let (mut src, mut dst) = (None, None);
        let (mut protocol, mut sport, mut dport, mut kind, mut code) = (0, None, None, None, None);
        let mut rest = words.iter();
        while let Some(&word) = rest.next() {
            let value = rest.next().copied().ok_or_else(|| format!("`{word}` has no value"))?;
            let wrong = || format!("cannot parse `{word} {value}`");
            match word {
                "src" => src = Some(value.parse::<IpNet>().map_err(|_| wrong())?),
                "dst" => dst = Some(value.parse::<IpNet>().map_err(|_| wrong())?),
                "proto" => protocol = protocol_number(value).ok_or_else(wrong)?,
                "sport" => sport = Some(value.parse().map_err(|_| wrong())?),
                "dport" => dport = Some(value.parse().map_err(|_| wrong())?),
                "type" => kind = Some(value.parse().map_err(|_| wrong())?),
                "code" => code = Some(value.parse().map_err(|_| wrong())?),
                "uid" if value == "0" => {}
                "uid" | "dev" | "key" => return Err(format!("a selector by `{word}` is not supported")),
                _ => return Err(wrong()),
            }
        }
        let (src, dst) = src.zip(dst).ok_or("a selector without source and destination")?;
        Ok(Selector { src: src.trunc(), dst: dst.trunc(), protocol, sport, dport, kind, code })
    }

    /// Whether it is for all packets of its version.
    pub fn is_any(&self) -> bool {
        let ports = [self.sport, self.dport].iter().any(Option::is_some);
        let types = [self.kind, self.code].iter().any(Option::is_some);
        let addresses = self.src.prefix_len() == 0 && self.dst.prefix_len() == 0;
        addresses && self.protocol == 0 && !ports && !types
    }

    /// Everything of the version of `like`.
    pub fn any(like: IpAddr) -> Result<Selector, String> {
        let net = IpNet::new(like, 0).map_err(|error| error.to_string())?.trunc();
        Selector::read(&["src", &net.to_string(), "dst", &net.to_string()])
    }

    /// Whether a packet may be of both; said of too many rather than too few.
    fn meets(&self, other: &Selector) -> bool {
        let nets = |one: &IpNet, other: &IpNet| one.contains(other) || other.contains(one);
        let protocols = self.protocol == 0 || other.protocol == 0 || self.protocol == other.protocol;
        let ports = |one: Option<u16>, other: Option<u16>| one.is_none() || other.is_none() || one == other;
        nets(&self.src, &other.src)
            && nets(&self.dst, &other.dst)
            && protocols
            && ports(self.sport, other.sport)
            && ports(self.dport, other.dport)
    }

    /// The selectors of this side and of the peer's.
    pub fn sides(&self, direction: Direction) -> Result<(TrafficSelector, TrafficSelector), String> {
        let ports = |port: Option<u16>| port.map_or(PortRange::ANY, PortRange::one);
        let (mut from, mut to) = (ports(self.sport), ports(self.dport));
        if let Some(kind) = self.kind {
            // Type and code are one field, that of the side that the packet comes from (RFC 4301 4.4.1.3).
            from = match self.code {
                Some(code) => PortRange::one(u16::from(kind) << 8 | u16::from(code)),
                None => PortRange::icmp_types(kind, kind).ok_or("no type")?,
            };
            to = PortRange::ANY;
        } else if self.code.is_some() {
            return Err("an ICMP code without a type".to_owned());
        }
        let side = |net: IpNet, ports| {
            let range = TrafficSelector::range(net.network(), net.broadcast()).ok_or("no addresses")?;
            Ok::<_, String>(range.with(self.protocol, ports))
        };
        let (from, to) = (side(self.src, from)?, side(self.dst, to)?);
        Ok(if direction == Direction::Seal { (from, to) } else { (to, from) })
    }
}

fn protocol_number(word: &str) -> Option<u8> {
    let known = [
        ("icmp", 1),
        ("igmp", 2),
        ("ipv4", 4),
        ("ipencap", 4),
        ("tcp", 6),
        ("udp", 17),
        ("ipv6", 41),
        ("gre", 47),
        ("esp", 50),
        ("ah", 51),
        ("ipv6-icmp", 58),
        ("ospf", 89),
        ("sctp", 132),
        ("mobility-header", 135),
        ("dccp", 33),
    ];
    let found = known.iter().find(|(name, _)| *name == word).map(|&(_, number)| number);
    found.or_else(|| word.parse().ok()).filter(|_| word != "mobility-header")
}

impl Template {
    /// Whether this state is one that the template asks for.
    pub fn is_of(&self, state: &RawState, route: &Route) -> bool {
        let fits = |wanted: IpAddr, found: IpAddr| wanted.is_unspecified() || wanted == found;
        // Where the template says nothing else, a transport state is one of the packet's own addresses.
        self.protocol == Some(state.protocol)
            && route.if_id == state.route.if_id
            && (state.route.mark.is_none() || route.mark == state.route.mark)
            && self.mode == Some(state.mode)
            && fits(self.src, state.src)
            && fits(self.dst, state.dst)
            && (self.spi == 0 || self.spi == state.spi.get())
            && (self.reqid == 0 || self.reqid == state.reqid)
    }
}

/// Reads a block; what cannot be a policy here leaves a remark.
pub fn read(block: &[Line<'_>], imported: &mut Imported) -> Option<RawPolicy> {
    match policy(block, imported) {
        Ok(policy) => Some(policy),
        Err((line, reason)) => {
            let text = block.iter().find(|(at, _)| *at == line).map_or(block[0].1, |(_, text)| text);
            imported.lose(line, text, format!("the policy of line {} is skipped: {reason}", block[0].0));
            None
        }
    }
}

fn after<'a>(words: &[&'a str], key: &str) -> Option<&'a str> {
    let at = words.iter().position(|word| *word == key)?;
    words.get(at + 1).copied()
}

fn policy(block: &[Line<'_>], imported: &mut Imported) -> Result<RawPolicy, (usize, String)> {
    let (line, head) = block[0];
    let words: Vec<&str> = head.split_whitespace().collect();
    let selector = Selector::read(&words).map_err(|reason| (line, reason))?;
    let (second, text) = block[1];
    let words: Vec<&str> = text.split_whitespace().collect();
    let (direction, forward) = match after(&words, "dir") {
        Some("out") => (Direction::Seal, false),
        Some("in") => (Direction::Open, false),
        Some("fwd") => (Direction::Open, true),
        other => return Err((second, format!("unknown direction {}", other.unwrap_or("?")))),
    };
    let block_it = match after(&words, "action") {
        None | Some("allow") => false,
        Some("block") => true,
        Some(other) => return Err((second, format!("unknown action {other}"))),
    };
    if after(&words, "ptype").is_some_and(|kind| kind != "main") {
        return Err((second, "only policies of type main are supported".to_owned()));
    }
    let mut policy = RawPolicy {
        line,
        text: format!("{} {}", head.trim(), text.trim()),
        direction,
        forward,
        block: block_it,
        priority: optional(&words, "priority").map_err(|reason| (second, reason))?,
        selector,
        templates: vec![],
        route: Route::default(),
    };
    let mut lifetimes = false;
    for &(line, text) in &block[2..] {
        further(line, text, &mut policy, &mut lifetimes, imported)?;
    }
    Ok(policy)
}

/// A line below the first two of a policy; `lifetimes` is whether those before it began the list of lifetimes.
fn further(
    line: usize,
    text: &str,
    policy: &mut RawPolicy,
    lifetimes: &mut bool,
    imported: &mut Imported,
) -> Result<(), (usize, String)> {
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.as_slice() {
        ["tmpl", rest @ ..] => {
            let address = |key| after(rest, key).and_then(|word| word.parse().ok());
            let (src, dst) = (address("src"), address("dst"));
            let (Some(src), Some(dst)) = (src, dst) else {
                return Err((line, "a template without addresses".to_owned()));
            };
            let (protocol, mode) = (None, None);
            policy.templates.push(Template { src, dst, protocol, mode, spi: 0, reqid: 0, optional: false });
        }
        ["proto", protocol, rest @ ..] => {
            let template = policy.templates.last_mut().ok_or((line, "cannot parse this line".to_owned()))?;
            template.protocol = match *protocol {
                "esp" => Some(Protocol::Esp),
                "ah" => Some(Protocol::Ah),
                _ => None,
            };
            template.mode = match after(rest, "mode") {
                Some("tunnel") => Some(Mode::Tunnel),
                Some("transport") => Some(Mode::Transport),
                _ => None,
            };
            template.spi = optional(rest, "spi").map_err(|reason| (line, reason))?;
            template.reqid = optional(rest, "reqid").map_err(|reason| (line, reason))?;
        }
        ["level", level, ..] => {
            if let Some(template) = policy.templates.last_mut() {
                template.optional = *level == "use";
            }
        }
        ["enc-mask", ..] => {}
        ["if_id" | "mark", ..] => {
            if !policy.route.line(&words).map_err(|reason| (line, reason))? {
                return Err((line, "cannot parse this line".to_owned()));
            }
            imported.note(line, text, "the kernel selects the policy by this too; here selectors do alone");
        }
        ["crypto", "offload", ..] => {
            imported.note(line, text, "the scheduler chooses the processor: see [[processor]]");
        }
        ["lifetime", ..] => *lifetimes = true,
        ["limit:", "soft", soft, "hard", hard] if *lifetimes => {
            if [soft, hard].iter().any(|limit| !limit.contains("INF")) {
                imported.lose(line, text, "lifetimes of policies are not supported");
            }
        }
        ["expire", _, "soft", soft, "hard", hard] if *lifetimes => {
            if [soft, hard].iter().any(|limit| number(limit) != Some(0)) {
                imported.lose(line, text, "lifetimes of policies are not supported");
            }
        }
        [_, _] | ["add", ..] | ["lastused", ..] if *lifetimes => {}
        ["lastused", ..] => {}
        ["security", "context", ..] => {
            return Err((line, "security contexts are not supported".to_owned()));
        }
        // It may say to what the policy is restricted.
        _ => return Err((line, "cannot parse this line".to_owned())),
    }
    Ok(())
}

/// Adds the policies in their order.
pub fn add(mut policies: Vec<RawPolicy>, states: &[Placed], imported: &mut Imported) {
    policies.sort_by_key(|policy| policy.priority);
    let policies = without_rivals(policies, imported);
    let within: Vec<RawPolicy> =
        policies.iter().filter(|one| one.direction == Direction::Open && !one.forward).cloned().collect();
    for policy in policies {
        let same = |other: &RawPolicy| {
            other.selector == policy.selector
                && other.block == policy.block
                && other.templates == policy.templates
                && other.route == policy.route
        };
        // What is forwarded has come in here as well.
        if policy.forward && within.iter().any(same) {
            continue;
        }
        match resolve(&policy, states, imported) {
            Ok(policy) => imported.policies.push(policy),
            Err(reason) => imported.lose(policy.line, &policy.text, reason),
        }
    }
}

/// Without those that only an interface or a mark tells from others: the one that stands first would take the other's
/// packets.
fn without_rivals(policies: Vec<RawPolicy>, imported: &mut Imported) -> Vec<RawPolicy> {
    let rival = |one: &RawPolicy| {
        let rivals = |other: &&RawPolicy| {
            let together = one.direction == other.direction && one.forward == other.forward;
            together && one.route != other.route && one.selector.meets(&other.selector)
        };
        policies.iter().find(rivals).filter(|_| !one.route.is_any()).map(|other| other.line)
    };
    let rivals: Vec<Option<usize>> = policies.iter().map(rival).collect();
    let mut kept = Vec::new();
    for (policy, rival) in policies.into_iter().zip(rivals) {
        let Some(rival) = rival else {
            kept.push(policy);
            continue;
        };
        let reason = format!(
            "only its interface ID or mark tells it from the policy of line {rival}, and one of them would take the \
             other's traffic: give each tunnel selectors of its own"
        );
        imported.lose(policy.line, &policy.text, reason);
    }
    kept
}

fn resolve(raw: &RawPolicy, states: &[Placed], imported: &mut Imported) -> Result<Policy, String> {
    let action = match (raw.block, raw.templates.as_slice()) {
        (true, _) => Action::Discard,
        (false, []) => Action::Bypass,
        (false, templates) => Action::Protect(protecting(raw, templates, states, imported)?),
    };
    let (local, remote) = raw.selector.sides(raw.direction)?;
    let policy = Policy::new(&format!("line-{}", raw.line), raw.direction, action);
    Ok(Policy { local_ts: vec![local], remote_ts: vec![remote], ..policy })
}

/// The SAs of the innermost template; those of the others go around them.
fn protecting(
    raw: &RawPolicy,
    templates: &[Template],
    states: &[Placed],
    imported: &mut Imported,
) -> Result<Vec<SessionId>, String> {
    let mut levels: Vec<Vec<usize>> = Vec::new();
    for template in templates {
        if template.protocol.is_none() || template.mode.is_none() {
            if template.optional {
                imported.note(
                    raw.line,
                    &raw.text,
                    "an optional template of a protocol or mode that is not supported",
                );
                continue;
            }
            return Err("a template of a protocol or mode that is not supported".to_owned());
        }
        let of = |state: &&Placed| state.direction == raw.direction && template.is_of(&state.raw, &raw.route);
        let found: Vec<usize> = states.iter().filter(of).map(|state| state.place).collect();
        if found.is_empty() {
            return Err("no imported SA matches its template".to_owned());
        }
        if template.optional && raw.direction == Direction::Open {
            imported.lose(raw.line, &raw.text, "`level use`: packets that are not protected are dropped");
        }
        levels.push(found);
    }
    // The first template is applied first: the others go around it.
    for pair in levels.windows(2) {
        let outer = pair[1][0];
        for &inner in &pair[0] {
            if imported.sas[inner].outer.is_some_and(|other| other != outer) {
                return Err("its SA is nested in another SA for another policy".to_owned());
            }
            let around = std::iter::successors(Some(outer), |&place| imported.sas[place].outer);
            let around: Vec<usize> = around.take(NEST_MAX).collect();
            if around.contains(&inner) || around.len() == NEST_MAX {
                return Err("its nested SAs form a circle or exceed the maximum depth".to_owned());
            }
            imported.sas[inner].outer = Some(outer);
        }
    }
    let sas = levels.into_iter().next().ok_or("no template that is supported")?;
    // The newest state is that which the kernel takes: it prints it first.
    Ok(sas.into_iter().map(|place| SessionId(place as u32)).collect())
}
