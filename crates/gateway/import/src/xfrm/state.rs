//! One state of the kernel.

use std::net::IpAddr;

use forebay_crypto::Direction;
use forebay_ipsec::{
    DontFragment, Dscp, Ecn, Encapsulation, InnerDscp, Lifetime, Limits, MAX_WINDOW, Mode, Protocol,
    SaConfig, Spi,
};
use forebay_time::Duration;

use super::algorithm::{self, Algorithm};
use super::policy::Selector;
use super::{Imported, Line};
use crate::{ImportedSa, check_keys, name};

/// A state as it is printed.
#[derive(Debug)]
pub struct RawState {
    pub line: usize,
    pub text: String,
    pub src: IpAddr,
    pub dst: IpAddr,
    pub protocol: Protocol,
    pub mode: Mode,
    pub spi: Spi,
    pub reqid: u32,
    /// Where it is printed.
    pub direction: Option<Direction>,
    /// Whether packets were counted in this direction.
    pub sent: bool,
    pub received: bool,
    /// What a packet's route must have chosen for the state to be taken.
    pub route: Route,
    aead: Option<Algorithm>,
    cipher: Option<Algorithm>,
    auth: Option<Algorithm>,
    udp: bool,
    window: u32,
    cpu: Option<u32>,
    flags: Vec<String>,
    selector: Option<Selector>,
    lifetime: Lifetime,
}

/// Reads a block; what cannot be an SA here leaves a remark.
pub fn read(block: &[Line<'_>], imported: &mut Imported) -> Option<RawState> {
    match Reading::of(block, imported) {
        Ok(state) => Some(state),
        Err((line, reason)) => {
            let text = block.iter().find(|(at, _)| *at == line).map_or(block[0].1, |(_, text)| text);
            imported.lose(line, text, format!("the SA of line {} is skipped: {reason}", block[0].0));
            None
        }
    }
}

/// The second of two equal words' values.
fn after<'a>(words: &[&'a str], key: &str) -> Option<&'a str> {
    let at = words.iter().position(|word| *word == key)?;
    words.get(at + 1).copied()
}

/// A number as iproute2 prints it: decimal, hex, or one with the other in brackets behind.
pub fn number(text: &str) -> Option<u64> {
    let text = text.split('(').next()?.trim_end_matches(',');
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn is_bitmap_word(word: &str) -> bool {
    word.len() == 8 && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The number behind `key`, 0 where the key is not printed.
pub fn optional(words: &[&str], key: &str) -> Result<u32, String> {
    let Some(at) = words.iter().position(|word| *word == key) else { return Ok(0) };
    let value = words.get(at + 1).and_then(|word| number(word)).and_then(|value| u32::try_from(value).ok());
    value.ok_or_else(|| format!("`{key}` has no number of 32 bits"))
}

/// What the kernel has beside selectors to choose by: an interface's ID and a mark.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    pub if_id: u32,
    pub mark: Option<String>,
}

impl Route {
    pub fn is_any(&self) -> bool {
        *self == Route::default()
    }

    /// Takes `if_id` and `mark`; says whether it is such a line.
    pub fn line(&mut self, words: &[&str]) -> Result<bool, String> {
        match words {
            ["if_id", id] => {
                let id = number(id).and_then(|id| u32::try_from(id).ok());
                self.if_id = id.ok_or("cannot parse the interface ID")?;
            }
            ["mark", mark] => self.mark = Some((*mark).to_owned()),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

struct Reading;

type Fault = (usize, String);

impl Reading {
    fn of(block: &[Line<'_>], imported: &mut Imported) -> Result<RawState, Fault> {
        let (line, head) = block[0];
        let fault = |reason: &str| (line, reason.to_owned());
        let words: Vec<&str> = head.split_whitespace().collect();
        let address = |key| after(&words, key).and_then(|word| word.parse().ok());
        let (src, dst) = (address("src"), address("dst"));
        let (src, dst) =
            (src.ok_or_else(|| fault("no source"))?, dst.ok_or_else(|| fault("no destination"))?);
        let (second, id) = block[1];
        let words: Vec<&str> = id.split_whitespace().collect();
        let protocol = match after(&words, "proto") {
            Some("esp") => Protocol::Esp,
            Some("ah") => Protocol::Ah,
            other => return Err((second, format!("protocol {} is not supported", other.unwrap_or("?")))),
        };
        let mode = match after(&words, "mode") {
            Some("tunnel") => Mode::Tunnel,
            Some("transport") => Mode::Transport,
            Some("iptfs") => {
                return Err((second, "mode iptfs: write `[sa.iptfs]` by hand (docs/sas.md)".to_owned()));
            }
            other => return Err((second, format!("mode {} is not supported", other.unwrap_or("?")))),
        };
        let spi = after(&words, "spi").and_then(number).and_then(|spi| Spi::new(u32::try_from(spi).ok()?));
        let spi = spi.ok_or((second, "an SPI of zero: the key exchange is in progress".to_owned()))?;
        let reqid = optional(&words, "reqid").map_err(|reason| (second, reason))?;
        let mut state = RawState {
            line,
            text: format!("{} {}", head.trim(), id.trim()),
            src,
            dst,
            protocol,
            mode,
            spi,
            reqid,
            direction: None,
            sent: false,
            received: false,
            route: Route::default(),
            aead: None,
            cipher: None,
            auth: None,
            udp: false,
            window: 0,
            cpu: None,
            flags: vec![],
            selector: None,
            lifetime: Lifetime::default(),
        };
        // Words of the bitmap that are still to come; how many stand on a line depends on the version of iproute2.
        let mut bitmap = 0;
        let mut current = false;
        for &(line, text) in &block[2..] {
            let words: Vec<&str> = text.split_whitespace().collect();
            if bitmap > 0 {
                if words.len() > bitmap || !words.iter().copied().all(is_bitmap_word) {
                    return Err((
                        line,
                        format!("expected {bitmap} more words of the replay window's bitmap"),
                    ));
                }
                bitmap -= words.len();
                continue;
            }
            if let Some(words) = state.line(line, text, &words, &mut current, imported)? {
                bitmap = words;
            }
        }
        match bitmap {
            0 => Ok(state),
            _ => Err(fault("the state ends within the replay window's bitmap")),
        }
    }
}

impl RawState {
    /// Takes one line; says how many words of a bitmap follow, which mean nothing here.
    fn line(
        &mut self,
        line: usize,
        text: &str,
        words: &[&str],
        current: &mut bool,
        imported: &mut Imported,
    ) -> Result<Option<usize>, Fault> {
        let fault = |reason: String| (line, reason);
        match words {
            // Counted, as stats.
            ["replay-window", _, "replay", ..] => {}
            ["replay-window", ..] => {
                self.window = optional(words, "replay-window").map_err(fault)?;
                self.flags(words);
            }
            ["flag", ..] | ["extra_flag", ..] => self.flags(words),
            ["aead", rest @ ..] => self.aead = Some(algorithm::read(rest).map_err(fault)?),
            ["enc", rest @ ..] => self.cipher = Some(algorithm::read(rest).map_err(fault)?),
            ["auth" | "auth-trunc", rest @ ..] => self.auth = Some(algorithm::read(rest).map_err(fault)?),
            ["comp", ..] => return Err(fault("IPComp is not supported".to_owned())),
            ["encap", "type", "espinudp", rest @ ..] => {
                self.udp = true;
                let (sport, dport) = (after(rest, "sport"), after(rest, "dport"));
                if (sport, dport) != (Some("4500"), Some("4500")) {
                    let reason = "ports other than 4500: the peer's is learned from its packets (NAT)";
                    imported.note(line, text, reason);
                }
            }
            ["encap", "type", other, ..] => {
                return Err(fault(format!("encapsulation {other} is not supported")));
            }
            ["encap", ..] => return Err(fault("an encapsulation without a type".to_owned())),
            ["sel", rest @ ..] => self.selector = Some(Selector::read(rest).map_err(fault)?),
            ["output-mark", ..] => imported.lose(line, text, "write `mark` of [[outside]] by hand"),
            ["if_id" | "mark", ..] => {
                if !self.route.line(words).map_err(fault)? {
                    return Err(fault("cannot parse this line".to_owned()));
                }
                imported.note(
                    line,
                    text,
                    "the kernel chooses the SA by this too: here selectors choose alone",
                );
            }
            ["tfcpad", bytes] => {
                if number(bytes) != Some(0) {
                    imported.lose(line, text, "write `tfc_padding` by hand (docs/sas.md)");
                }
            }
            ["dir", "out", ..] => self.direction = Some(Direction::Seal),
            ["dir", "in", ..] => self.direction = Some(Direction::Open),
            ["crypto", "offload", ..] => {
                self.direction = match after(words, "dir") {
                    Some("out") => Some(Direction::Seal),
                    Some("in") => Some(Direction::Open),
                    _ => self.direction,
                };
                imported.note(line, text, "offloading is the scheduler's to choose: see [[processor]]");
            }
            ["anti-replay", "context:", rest @ ..] => self.counted(rest),
            ["anti-replay", "esn", "context:", rest @ ..] => self.counted(rest),
            ["seq-hi", ..] | ["seq", ..] | ["oseq-hi", ..] => self.counted(words),
            ["replay_window", _, "bitmap-length", _] => {
                self.window = optional(words, "replay_window").map_err(fault)?;
                return Ok(Some(optional(words, "bitmap-length").map_err(fault)? as usize));
            }
            ["lifetime", "config:"] => *current = false,
            ["lifetime", "current:"] => *current = true,
            ["limit:", "soft", soft, "hard", hard] => self.limit(soft, hard),
            ["expire", what, "soft", soft, "hard", hard] => self.expire(what, soft, hard),
            // What was counted so far.
            [_, _] | ["add", ..] if *current => {}
            ["stats:"] | ["lastused", ..] => {}
            ["security", "context", ..] => {
                return Err(fault("security contexts are not supported".to_owned()));
            }
            ["coa", ..] => return Err(fault("care-of addresses are not supported".to_owned())),
            ["iptfs-opts", ..] => {}
            ["pcpu-num", cpu, ..] => match number(cpu).and_then(|cpu| u8::try_from(cpu).ok()) {
                Some(cpu) => self.cpu = Some(cpu.into()),
                None => imported.note(line, text, "no worker thread has this number: it sends for all CPUs"),
            },
            // It may say to whom the state is restricted.
            _ => return Err(fault("cannot parse this line".to_owned())),
        }
        Ok(None)
    }

    fn flags(&mut self, words: &[&str]) {
        let behind = words.iter().skip_while(|word| !matches!(**word, "flag" | "extra_flag")).skip(1);
        self.flags.extend(behind.filter(|word| !word.starts_with('(')).map(|word| (*word).to_owned()));
    }

    /// Which of the two numbers has been counted.
    fn counted(&mut self, words: &[&str]) {
        let above = |key| after(words, key).and_then(number).is_some_and(|number| number > 0);
        self.sent |= above("oseq") || above("oseq-hi");
        self.received |= above("seq") || above("seq-hi");
    }

    fn limit(&mut self, soft: &str, hard: &str) {
        let is = |unit| hard.contains(unit);
        let value = |text: &str| if text.contains("INF") { None } else { number(text).filter(|&n| n > 0) };
        let set = |limits: &mut Limits, value: Option<u64>| match is("(bytes)") {
            true => limits.bytes = value,
            false => limits.packets = value,
        };
        set(&mut self.lifetime.soft, value(soft));
        set(&mut self.lifetime.hard, value(hard));
    }

    fn expire(&mut self, what: &str, soft: &str, hard: &str) {
        let value = |text: &str| {
            let seconds = number(text).filter(|&seconds| seconds > 0)?;
            seconds.checked_mul(1_000_000_000_000).map(Duration)
        };
        let set = |limits: &mut Limits, value: Option<Duration>| match what {
            "add:" => limits.time = value,
            _ => limits.use_time = value,
        };
        set(&mut self.lifetime.soft, value(soft));
        set(&mut self.lifetime.hard, value(hard));
    }

    /// The SA, as one of `direction`.
    pub fn sa(&self, direction: Direction, imported: &mut Imported) -> Result<ImportedSa, String> {
        let suite = algorithm::suite(self.aead.as_ref(), self.cipher.as_ref(), self.auth.as_ref())?;
        let hex = |algorithm: Option<&Algorithm>| {
            algorithm.and_then(|algorithm| algorithm.key.clone()).unwrap_or_default()
        };
        let key = hex(self.aead.as_ref().or(self.cipher.as_ref()));
        let auth_key = hex(self.auth.as_ref());
        check_keys(suite, &key, &auth_key)?;
        let (local, remote) = match direction {
            Direction::Seal => (self.src, self.dst),
            Direction::Open => (self.dst, self.src),
        };
        let plain = SaConfig::new(&name(direction, self.spi.get()), self.spi, suite, local, remote);
        let (local_ts, remote_ts) = match self.selector()? {
            Some(selector) => {
                let (local, remote) = selector.sides(direction)?;
                (vec![local], vec![remote])
            }
            None => (vec![], vec![]),
        };
        let mut config = SaConfig {
            protocol: self.protocol,
            mode: self.mode,
            encapsulation: if self.udp { Encapsulation::Udp } else { Encapsulation::None },
            replay_window: self.window(direction, imported),
            // Inbound SAs are owned by their SPIs, which the kernel has chosen.
            cpu: self.cpu.filter(|_| direction == Direction::Seal),
            lifetime: self.lifetime(imported),
            local_ts,
            remote_ts,
            ..plain
        };
        self.apply_flags(&mut config, imported);
        if match direction {
            Direction::Seal => self.sent,
            Direction::Open => self.received,
        } {
            imported.lose(self.line, &self.text, match direction {
                Direction::Seal => {
                    "packets were sent already: sequence numbers would begin with 1 again, which the peer drops, and IVs \
                     may repeat; negotiate new keys before this SA is used"
                }
                Direction::Open => {
                    "packets were received already: the replay window begins empty, so that they would be taken again; \
                     negotiate new keys before this SA is used"
                }
            });
        }
        config.check().map_err(|error| error.to_string())?;
        Ok(ImportedSa { config, direction, key, auth_key, outer: None, line: self.line })
    }

    /// Whether no selector restricts it to some packets of a family.
    pub fn takes_all(&self) -> bool {
        self.selector.as_ref().is_none_or(Selector::is_any)
    }

    /// The selector where it is narrower than any to any. In tunnel mode the kernel takes inner packets of the outer
    /// family alone unless the state has the flag `af-unspec`.
    fn selector(&self) -> Result<Option<Selector>, String> {
        let both = self.mode == Mode::Transport || self.flags.iter().any(|flag| flag == "af-unspec");
        match &self.selector {
            Some(selector) if !selector.is_any() => Ok(Some(selector.clone())),
            _ if both => Ok(None),
            _ => Selector::any(self.src).map(Some),
        }
    }

    /// The window, which means nothing outbound.
    fn window(&self, direction: Direction, imported: &mut Imported) -> u32 {
        if direction == Direction::Seal {
            return 64;
        }
        if self.window == 0 {
            imported.note(
                self.line,
                &self.text,
                "without a replay window, as in the kernel: replay_window = 64 is usual",
            );
        }
        if self.window > MAX_WINDOW {
            imported.note(self.line, &self.text, format!("a replay window of {MAX_WINDOW} is the widest"));
        }
        self.window.min(MAX_WINDOW)
    }

    /// The lifetime without soft limits that are never reached, which the kernel allows.
    fn lifetime(&self, imported: &mut Imported) -> Lifetime {
        fn within<T: PartialOrd>(soft: Option<T>, hard: &Option<T>) -> Option<T> {
            soft.filter(|soft| hard.as_ref().is_none_or(|hard| soft <= hard))
        }
        let (soft, hard) = (&self.lifetime.soft, &self.lifetime.hard);
        let kept = Limits {
            packets: within(soft.packets, &hard.packets),
            bytes: within(soft.bytes, &hard.bytes),
            time: within(soft.time, &hard.time),
            use_time: within(soft.use_time, &hard.use_time),
        };
        if kept != *soft {
            imported.note(
                self.line,
                &self.text,
                "a soft limit above the hard limit is never reached; it is skipped",
            );
        }
        Lifetime { soft: kept, hard: *hard }
    }

    fn apply_flags(&self, config: &mut SaConfig, imported: &mut Imported) {
        for flag in &self.flags {
            match flag.as_str() {
                "esn" => config.esn = true,
                "noecn" => config.tunnel.ecn = Ecn::Compatibility,
                "decap-dscp" => config.tunnel.inner_dscp = InnerDscp::FromOuter,
                "dont-encap-dscp" => config.tunnel.dscp = Dscp::Set(0),
                "nopmtudisc" => config.tunnel.dont_fragment = DontFragment::Clear,
                // Always so here: inner packets of either version, ICMP errors by the packet that they quote (RFC 4301 6.2, which
                // the kernel does only where `icmp` is set), and alignment.
                "af-unspec" | "icmp" | "align4" => {}
                "wildrecv" => {
                    imported.lose(self.line, &self.text, "wildrecv is not supported: an SA has one peer")
                }
                "oseq-may-wrap" => {
                    imported.lose(
                        self.line,
                        &self.text,
                        "oseq-may-wrap is not supported: sequence numbers never wrap (RFC 4303 3.3.3)",
                    );
                }
                other => imported.lose(self.line, &self.text, format!("unknown flag `{other}`")),
            }
        }
    }
}
