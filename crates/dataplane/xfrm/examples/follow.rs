//! Prints what happens to the kernel's SAs and policies, without keys.
//!
//!     follow [--mark M[/MASK]] [--if-id N] [--seconds S] [--buffer BYTES] [--raw FILE]
//!
//! Commands come from standard input, one a line: `report SPI PACKETS BYTES SEQUENCE`, `expire SPI soft|hard`,
//! `acquire INDEX SOURCE DESTINATION`, `quit`. `--raw` records the kernel's messages, keys and all.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write, stdin};
use std::net::IpAddr;
use std::sync::{Mutex, OnceLock};

use forebay_crypto::Direction;
use forebay_xfrm::{Done, Event, Filter, Flow, Mark, Mirror, PolicyIndex, SaId};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

static RAW: OnceLock<Mutex<File>> = OnceLock::new();

fn main() -> Result<(), Box<dyn Error>> {
    let mut filter = Filter::default();
    let (mut seconds, mut buffer) = (3600u32, 4 << 20);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or("an option without its value")?;
        match word.as_str() {
            "--mark" => {
                let (mark, mask) = value.split_once('/').unwrap_or((&value, "0xffffffff"));
                filter.mark = Some(Mark { value: number(mark)?, mask: number(mask)? });
            }
            "--if-id" => filter.if_id = Some(number(&value)?),
            "--buffer" => buffer = number(&value)? as usize,
            "--seconds" => seconds = number(&value)?,
            "--raw" => {
                let file = OpenOptions::new().create(true).append(true).open(value)?;
                let _ = RAW.set(Mutex::new(file));
            }
            other => return Err(format!("unknown option {other}").into()),
        }
    }
    let mut mirror = Mirror::open(filter, buffer)?;
    if RAW.get().is_some() {
        mirror = mirror.observed_by(|datagram| {
            if let Some(Ok(mut file)) = RAW.get().map(Mutex::lock) {
                let _ = file.write_all(&(datagram.len() as u32).to_le_bytes());
                let _ = file.write_all(datagram);
            }
        });
    }
    let mut known: BTreeMap<u32, (SaId, Direction)> = BTreeMap::new();
    let mut events = Vec::new();
    let mut commands = BufReader::new(stdin()).lines();
    let mut listens = true;
    loop {
        while mirror.poll(&mut events)? {}
        for event in events.drain(..) {
            if let Event::SaAdded(sa) = &event {
                known.insert(sa.id.spi, (sa.id, sa.direction));
            }
            println!("{}", show(&event));
        }
        let stdin = stdin();
        let [xfrm, addresses] = mirror.fds();
        let mut fds = vec![
            PollFd::from_borrowed_fd(xfrm, PollFlags::IN),
            PollFd::from_borrowed_fd(addresses, PollFlags::IN),
        ];
        if listens {
            fds.push(PollFd::new(&stdin, PollFlags::IN));
        }
        let timeout = Timespec { tv_sec: seconds.into(), tv_nsec: 0 };
        if poll(&mut fds, Some(&timeout))? == 0 {
            break;
        }
        if listens && !fds[2].revents().is_empty() {
            match commands.next().transpose()? {
                Some(line) if line == "quit" => break,
                Some(line) => println!("{}", command(&line, &mut mirror, &known)?),
                None => listens = false,
            }
        }
    }
    println!("{:?}", mirror.counts());
    Ok(())
}

fn number(text: &str) -> Result<u32, Box<dyn Error>> {
    Ok(match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16)?,
        None => text.parse()?,
    })
}

fn command(
    line: &str,
    mirror: &mut Mirror,
    known: &BTreeMap<u32, (SaId, Direction)>,
) -> Result<String, Box<dyn Error>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let done = match words[..] {
        ["report", spi, packets, bytes, sequence] => {
            let (id, direction) = known.get(&number(spi)?).ok_or("no such SA")?;
            let sequence = Some(sequence.parse()?);
            let done = Done {
                packets: packets.parse()?,
                bytes: bytes.parse()?,
                first_use_s: Some(1_700_000_000),
                sequence,
            };
            mirror.report(id, *direction, &done)?
        }
        ["expire", spi, how] => {
            mirror.expire(&known.get(&number(spi)?).ok_or("no such SA")?.0, how == "hard")?
        }
        ["acquire", index, source, destination] => {
            let [source, destination]: [IpAddr; 2] = [source.parse()?, destination.parse()?];
            let flow = Flow { source, destination, protocol: 1, ports: (0, 0) };
            mirror.acquire(PolicyIndex(number(index)?), &flow, None)?
        }
        _ => return Err(format!("unknown command {line}").into()),
    };
    Ok(format!("said {} {done}", words[0]))
}

fn show(event: &Event) -> String {
    match event {
        Event::SaAdded(sa) | Event::SaUpdated(sa) => {
            let word = if matches!(event, Event::SaAdded(_)) { "added" } else { "updated" };
            let c = &sa.config;
            format!(
                "sa {word} {} {:?} {} {:?} {} -> {} reqid {} window {}{}{} sent {} received {} soft {:?} hard {:?}",
                sa.id,
                sa.direction,
                c.suite,
                c.mode,
                c.local,
                c.remote,
                sa.reqid,
                c.replay_window,
                if c.esn { " esn" } else { "" },
                sa.ports.map_or(String::new(), |ports| format!(" udp {}/{}", ports.0, ports.1)),
                sa.sequence.sent,
                sa.sequence.received,
                c.lifetime.soft,
                c.lifetime.hard,
            )
        }
        Event::SaDeleted(id) => format!("sa deleted {id}"),
        Event::SaExpired { id, hard } => format!("sa expired {} {id}", if *hard { "hard" } else { "soft" }),
        Event::SaRefused { id, reason } => format!("sa refused {id}: {reason}"),
        Event::PolicyAdded(policy) | Event::PolicyUpdated(policy) => {
            let word = if matches!(event, Event::PolicyAdded(_)) { "added" } else { "updated" };
            let side = |side: &[forebay_ipsec::TrafficSelector]| {
                side.first().map_or_else(|| "any".to_owned(), ToString::to_string)
            };
            format!(
                "policy {word} {} {:?} {} -> {} priority {} {:?}",
                policy.index.0,
                policy.way,
                side(&policy.local_ts),
                side(&policy.remote_ts),
                policy.priority,
                policy.action
            )
        }
        Event::PolicyDeleted(index) => format!("policy deleted {}", index.0),
        Event::PolicyRefused { policy, reason } => format!("policy refused {}: {reason}", policy.index.0),
        Event::SasFlushed => "sas flushed".to_owned(),
        Event::PoliciesFlushed => "policies flushed".to_owned(),
        Event::Synchronised => "synchronised".to_owned(),
        other => format!("{other:?}"),
    }
}
