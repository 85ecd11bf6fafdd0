//! What a stationary distribution says about throughput, loss, occupancy, use and delay.

use serde::Serialize;

use crate::space::{Doing, Space};

/// Stationary figures of a network.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Solution {
    /// States of the whole space: all occupancies times all places of the servers.
    pub states: u64,
    /// Number of states solved for: recurrent states in which time passes.
    pub tangible_states: u64,
    /// Packets a second that leave the last stage.
    pub throughput_pps: f64,
    /// Share of the arriving packets that find the first stage full.
    pub loss_probability: f64,
    /// Mean time from arrival to departure of a packet that is not lost (Little's law), in seconds.
    pub mean_delay_s: f64,
    /// Each stage, in order.
    pub stages: Vec<StageFigures>,
    /// Each server, in order.
    pub servers: Vec<ServerFigures>,
    /// How exact the figures are; its fields stand beside them in JSON.
    #[serde(flatten)]
    pub accuracy: Accuracy,
}

/// Stationary figures of a stage.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StageFigures {
    /// Its name.
    pub name: String,
    /// Mean number of packets in it, the one in service counted.
    pub mean_occupancy: f64,
    /// Mean number of packets that wait for others in it; those in service, cut off or blocked
    /// after their turn has come are not counted.
    pub mean_queue: f64,
    /// Share of the time (of its units' time) that it works.
    pub utilisation: f64,
    /// Share of the time that it has a packet and the next stage has no room.
    pub blocked: f64,
    /// Share of the time that it is full.
    pub full: f64,
    /// Mean time a packet spends in it, in seconds.
    pub mean_delay_s: f64,
}

/// Stationary figures of a shared server.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ServerFigures {
    /// Its name.
    pub name: String,
    /// Share of the time that it works itself.
    pub utilisation: f64,
    /// Share of the time that it changes from one stage to another.
    pub switching: f64,
    /// Share of the time that it is held by a packet, while another unit works or there is no room.
    pub waiting: f64,
}

/// How exact a solution is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Accuracy {
    /// Flow into states that does not equal the flow out, summed over all states, over all flow.
    pub residual: f64,
    /// Largest relative difference between the rate of packets accepted and that of packets
    /// leaving any stage.
    pub imbalance: f64,
    /// Whether that is as exact as was asked for; figures of a solution that is not are not to be
    /// relied on.
    pub converged: bool,
    /// How it was solved.
    pub method: Method,
    /// Multilevel cycles done; 0 for a direct solution.
    pub cycles: u32,
}

/// How a chain was solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Method {
    /// Elimination without subtractions (Grassmann, Taksar, Heyman).
    Direct,
    /// The same within a band, states in the order of Cuthill and McKee.
    Band,
    /// Gauss-Seidel with corrections by lumped chains (Horton, Leutenegger).
    Multilevel,
}

/// Sums the figures up; `raw` are the states' numbers in the space, `x` their probabilities.
pub(crate) fn figures(space: &Space, raw: &[u32], x: &[f64], accuracy: Accuracy) -> Solution {
    let network = space.network;
    let named = |stage: &crate::Stage| StageFigures { name: stage.name.clone(), ..Default::default() };
    let mut stages: Vec<StageFigures> = network.stages.iter().map(named).collect();
    let named = |server: &crate::Server| ServerFigures { name: server.name.clone(), ..Default::default() };
    let mut servers: Vec<ServerFigures> = network.servers.iter().map(named).collect();
    for (&index, &p) in raw.iter().zip(x) {
        let state = space.state(index as usize);
        for (number, station) in space.stations.iter().enumerate() {
            let packets = u32::from(state[station.count]);
            let (at, doing) = space.doing(number, &state);
            let head = network.stages[station.first].units.min(packets);
            // Behind the packet that holds a busy-waiting server, all wait for the first stage.
            stages[station.first].mean_occupancy += p * f64::from(packets - packets.min(1));
            stages[at].mean_occupancy += p * f64::from(packets.min(1));
            stages[station.first].mean_queue += p * f64::from(packets - head);
            if packets == network.stages[station.first].buffer {
                stages[station.first].full += p;
            }
            let holder =
                (station.last > station.first).then(|| network.stages[station.first].server).flatten();
            match doing {
                Doing::Working(units) => {
                    stages[at].utilisation += p * units / f64::from(network.stages[at].units);
                    match (network.stages[at].server, holder) {
                        (Some(server), _) => servers[server].utilisation += p * units,
                        (None, Some(server)) => servers[server].waiting += p,
                        (None, None) => {}
                    }
                }
                Doing::Blocked => {
                    stages[at].blocked += p;
                    holder.inspect(|&server| servers[server].waiting += p);
                }
                Doing::Waiting | Doing::Nothing => {}
            }
        }
        for (server, digit) in space.place.iter().enumerate() {
            if digit.is_some_and(|digit| usize::from(state[digit]) >= space.shared[server].len()) {
                servers[server].switching += p;
            }
        }
    }
    let mut solution = Solution {
        states: space.states() as u64,
        tangible_states: raw.len() as u64,
        throughput_pps: 0.0,
        loss_probability: stages[0].full,
        mean_delay_s: 0.0,
        stages,
        servers,
        accuracy,
    };
    rates(space, &mut solution);
    solution
}

/// Throughput, delays by Little's law, and whether all stages pass the same.
fn rates(space: &Space, solution: &mut Solution) {
    let network = space.network;
    let passes: Vec<f64> = (network.stages.iter().zip(&solution.stages))
        .map(|(stage, figures)| figures.utilisation * f64::from(stage.units) / stage.time_s)
        .collect();
    let accepted = network.arrival_rate * (1.0 - solution.loss_probability);
    solution.throughput_pps = *passes.last().expect("there is a stage");
    let off = |passed: &f64| (passed - accepted).abs() / passed.max(accepted);
    solution.accuracy.imbalance = passes.iter().map(off).fold(0.0, f64::max);
    for stage in &mut solution.stages {
        stage.mean_delay_s = stage.mean_occupancy / solution.throughput_pps;
        solution.mean_delay_s += stage.mean_delay_s;
    }
}
