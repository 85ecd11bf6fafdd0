//! The states of a network and the transitions between them, immediate ones eliminated.
//!
//! A state is a row of digits: the occupancy of each station, the phase of a packet that holds a
//! busy-waiting server, and where each interrupt-driven server is. A state in which a server
//! switches at once is *vanishing*: no time is spent in it, so whatever leads into it leads on to
//! where the switch leads. Immediate switches have one outcome each, so that elimination is exact
//! and needs no algebra.

use crate::network::{Discipline, Network};
use crate::{Error, Stage};

/// Digits a state can have.
pub(crate) const DIGITS: usize = 24;

/// The digits of one state.
pub(crate) type State = [u16; DIGITS];

/// One digit of the state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Digit {
    /// Values it takes.
    pub size: u32,
    /// Whether it counts packets; neighbours of a count are alike and may be lumped.
    pub count: bool,
    /// How often it changes, at most and where it can: in 1/s.
    pub rate: f64,
}

/// One queue: a stage, or the whole span that a busy-waiting server holds a packet for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Station {
    pub first: usize,
    pub last: usize,
    pub count: usize,
    pub phase: Option<usize>,
}

/// What a stage does in a state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Doing {
    /// It has no packet.
    Nothing,
    /// It has packets and the next stage has no room.
    Blocked,
    /// It has a packet and room for it; the server is elsewhere.
    Waiting,
    /// So many of its units work; a share of a server may be less than one.
    Working(f64),
}

/// The state space of one network.
#[derive(Debug)]
pub(crate) struct Space<'a> {
    pub network: &'a Network,
    pub stations: Vec<Station>,
    pub digits: Vec<Digit>,
    /// The stages of each server, in order.
    pub shared: Vec<Vec<usize>>,
    /// The digit that says where an interrupt-driven server is: `j` at its j-th stage, `m + j`
    /// switching to it.
    pub place: Vec<Option<usize>>,
    /// The station of each stage.
    pub station_of: Vec<usize>,
    strides: Vec<u64>,
}

impl<'a> Space<'a> {
    /// The space of a network that makes sense.
    pub fn new(network: &'a Network) -> Result<Space<'a>, Error> {
        network.check()?;
        let shared: Vec<Vec<usize>> = (0..network.servers.len()).map(|s| network.stages_of(s)).collect();
        let mut space = Space {
            network,
            stations: Vec::new(),
            digits: Vec::new(),
            shared,
            place: vec![None; network.servers.len()],
            station_of: Vec::new(),
            strides: Vec::new(),
        };
        space.lay_stations();
        for (server, stages) in space.shared.iter().enumerate() {
            let turns = matches!(network.servers[server].discipline, Discipline::InterruptDriven { .. });
            if turns && stages.len() > 1 {
                space.place[server] = Some(space.digits.len());
                let rates = (0..stages.len()).map(|j| space.turn_rates(server, j));
                let rate = rates
                    .flat_map(|(run, switch)| [run, switch])
                    .filter(|r| r.is_finite())
                    .fold(0.0, f64::max);
                space.digits.push(Digit { size: 2 * stages.len() as u32, count: false, rate });
            }
        }
        if space.digits.len() > DIGITS {
            return Err(Error::Invalid(format!("more than {DIGITS} stages and servers")));
        }
        let states = space.states();
        if states >= u32::MAX.into() {
            return Err(Error::TooLarge { states, bytes: states * 100, limit: u64::from(u32::MAX) });
        }
        space.strides = vec![1; space.digits.len()];
        for digit in (1..space.digits.len()).rev() {
            space.strides[digit - 1] = space.strides[digit] * u64::from(space.digits[digit].size);
        }
        Ok(space)
    }

    fn lay_stations(&mut self) {
        let stages = &self.network.stages;
        for (first, last) in self.network.stations() {
            let count = self.digits.len();
            let rate = |stage: &Stage| f64::from(stage.units) / stage.time_s;
            let span: f64 = stages[first..=last].iter().map(|stage| stage.time_s).sum();
            let passes = if last > first { 1.0 / span } else { rate(&stages[first]) };
            let passes = if first == 0 { passes.max(self.network.arrival_rate) } else { passes };
            self.digits.push(Digit { size: stages[first].buffer + 1, count: true, rate: passes });
            let phase = (last > first).then(|| {
                let rate = stages[first..=last].iter().map(rate).fold(0.0, f64::max);
                self.digits.push(Digit { size: (last - first + 1) as u32, count: false, rate });
                count + 1
            });
            self.station_of.extend(std::iter::repeat_n(self.stations.len(), last - first + 1));
            self.stations.push(Station { first, last, count, phase });
        }
    }

    /// States of the whole space, vanishing and unreachable ones counted.
    pub fn states(&self) -> u128 {
        self.digits.iter().map(|d| u128::from(d.size)).product()
    }

    /// The number of a state in the whole space.
    pub fn index(&self, state: &State) -> usize {
        self.strides.iter().zip(state).map(|(stride, &digit)| stride * u64::from(digit)).sum::<u64>() as usize
    }

    /// The state with that number.
    pub fn state(&self, index: usize) -> State {
        let mut rest = index as u64;
        let mut state = [0; DIGITS];
        for (digit, stride) in state.iter_mut().zip(&self.strides) {
            *digit = (rest / stride) as u16;
            rest %= stride;
        }
        state
    }

    fn stage(&self, stage: usize) -> &'a Stage {
        &self.network.stages[stage]
    }

    /// The stage that a station's packet in service is in.
    fn current(&self, station: &Station, state: &State) -> usize {
        station.first + station.phase.map_or(0, |digit| usize::from(state[digit]))
    }

    /// Packets that can leave the station before the next one is full.
    fn room(&self, station: usize, state: &State) -> u32 {
        match self.stations.get(station + 1) {
            Some(next) => self.stage(next.first).buffer - u32::from(state[next.count]),
            None => u32::MAX,
        }
    }

    /// Whether a stage of a shared server has a packet and room for it.
    fn able(&self, stage: usize, state: &State) -> bool {
        let station = self.station_of[stage];
        state[self.stations[station].count] > 0 && self.room(station, state) > 0
    }

    /// What the stage in service at `station` is, and does.
    pub fn doing(&self, station: usize, state: &State) -> (usize, Doing) {
        let at = &self.stations[station];
        let packets = u32::from(state[at.count]);
        let stage = self.current(at, state);
        if packets == 0 {
            return (stage, Doing::Nothing);
        }
        let room = if stage == at.last { self.room(station, state) } else { u32::MAX };
        if room == 0 {
            return (stage, Doing::Blocked);
        }
        let share = match self.stage(stage).server {
            None => f64::from(packets.min(self.stage(stage).units).min(room)),
            Some(server) => self.share(server, stage, state),
        };
        (stage, if share > 0.0 { Doing::Working(share) } else { Doing::Waiting })
    }

    /// The share of its server that a stage which can work has.
    fn share(&self, server: usize, stage: usize, state: &State) -> f64 {
        let stages = &self.shared[server];
        let whole = |has: bool| f64::from(u8::from(has));
        match self.network.servers[server].discipline {
            Discipline::BusyWaiting => 1.0,
            Discipline::InterruptDriven { .. } => match self.place[server] {
                Some(digit) => whole(stages.get(usize::from(state[digit])) == Some(&stage)),
                None => 1.0,
            },
            Discipline::LastFirst => whole(!stages.iter().any(|&s| s > stage && self.able(s, state))),
            Discipline::FirstFirst => whole(!stages.iter().any(|&s| s < stage && self.able(s, state))),
            Discipline::ProcessorSharing => {
                1.0 / stages.iter().filter(|&&s| self.able(s, state)).count() as f64
            }
        }
    }

    /// Mean rates 1/t of an interrupt-driven server: end of a run of its `j`-th stage, and of a switch.
    fn turn_rates(&self, server: usize, j: usize) -> (f64, f64) {
        match self.network.servers[server].discipline {
            Discipline::InterruptDriven { run_length_s, switch_delay_s } => {
                let own = self.stage(self.shared[server][j]).run_length_s;
                (1.0 / own.unwrap_or(run_length_s), 1.0 / switch_delay_s)
            }
            _ => (0.0, 0.0),
        }
    }

    /// The next of the server's stages, after its `j`-th in cyclic order, that can work.
    fn next_able(&self, server: usize, j: usize, state: &State) -> Option<usize> {
        let stages = &self.shared[server];
        let m = stages.len();
        (1..m).map(|step| (j + step) % m).find(|&k| self.able(stages[k], state))
    }

    /// What the server does next of itself: the new place and the rate, infinite for at once.
    ///
    /// For two stages these are \[N\] Table I's lines for PCS: never to a stage without packet or
    /// room, else at once from one that cannot work, else at the run length.
    fn turn(&self, server: usize, digit: usize, state: &State) -> Option<(u16, f64)> {
        let m = self.shared[server].len();
        let place = usize::from(state[digit]);
        if place >= m {
            let (_, switch) = self.turn_rates(server, place - m);
            return Some(((place - m) as u16, switch));
        }
        let next = self.next_able(server, place, state)?;
        let works = self.able(self.shared[server][place], state);
        let rate = if works { self.turn_rates(server, place).0 } else { f64::INFINITY };
        (rate > 0.0).then_some(((m + next) as u16, rate))
    }

    /// Follows immediate transitions from a state until time passes.
    pub fn settle(&self, mut state: State) -> Result<State, Error> {
        let turning = || self.place.iter().enumerate().filter_map(|(s, digit)| Some((s, (*digit)?)));
        let most: usize = self.shared.iter().map(|stages| 2 * stages.len() + 1).sum();
        for _ in 0..=most {
            let switch = turning().find_map(|(server, digit)| match self.turn(server, digit, &state) {
                Some((place, rate)) if rate == f64::INFINITY => Some((digit, place)),
                _ => None,
            });
            match switch {
                Some((digit, place)) => state[digit] = place,
                None => return Ok(state),
            }
        }
        Err(Error::ImmediateLoop)
    }

    /// Calls `each` with every transition out of a settled state: the settled target and the rate.
    pub fn transitions(&self, state: &State, mut each: impl FnMut(State, f64)) -> Result<(), Error> {
        if u32::from(state[0]) + 1 < self.digits[0].size {
            let mut to = *state;
            to[0] += 1;
            each(self.settle(to)?, self.network.arrival_rate);
        }
        for (index, station) in self.stations.iter().enumerate() {
            let (stage, Doing::Working(units)) = self.doing(index, state) else { continue };
            let mut to = *state;
            if stage < station.last {
                to[station.phase.expect("a span has a phase")] += 1;
            } else {
                to[station.count] -= 1;
                station.phase.inspect(|&digit| to[digit] = 0);
                self.stations.get(index + 1).inspect(|next| to[next.count] += 1);
            }
            each(self.settle(to)?, units / self.stage(stage).time_s);
        }
        for (server, digit) in self.place.iter().enumerate() {
            let Some(digit) = *digit else { continue };
            if let Some((place, rate)) = self.turn(server, digit, state) {
                let mut to = *state;
                to[digit] = place;
                each(self.settle(to)?, rate);
            }
        }
        Ok(())
    }

    /// A recurrent state of the chain: the empty one, after a packet has passed.
    pub fn home(&self) -> Result<State, Error> {
        let mut state = self.settle([0; DIGITS])?;
        state[0] += 1;
        state = self.settle(state)?;
        // Without arrivals and runs that end early, what is left of the packet's way is a path.
        for _ in 0..4 * DIGITS {
            let mut next = None;
            self.transitions(&state, |to, _| {
                if to[0] <= state[0] {
                    next.get_or_insert(to);
                }
            })?;
            match next {
                Some(to) => state = to,
                None => return Ok(state),
            }
        }
        Err(Error::Reducible)
    }
}
