//! Closed forms: M/M/1, M/M/1/K, M/M/c, tandems of M/M/1 (Kleinrock, Queueing Systems I, ch. 3) and open Jackson networks.

use serde::{Deserialize, Serialize};

use crate::{Discipline, Error, Network};

/// Stationary figures of one queue; rates in 1/s, times in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Queue {
    /// Packets a second that pass.
    pub throughput_pps: f64,
    /// Share of the offered packets that is lost.
    pub loss_probability: f64,
    /// Share of the servers' time that is spent serving.
    pub utilisation: f64,
    /// Mean number of packets in the queue, those in service counted.
    pub mean_occupancy: f64,
    /// Mean number of packets waiting.
    pub mean_queue: f64,
    /// Mean time from arrival to departure of a packet that is not lost.
    pub mean_delay_s: f64,
}

/// One server, unlimited room. `arrivals` and `service` are rates in 1/s.
///
/// # Errors
/// [`Error::Unstable`] if more is offered than can be served.
pub fn mm1(arrivals: f64, service: f64) -> Result<Queue, Error> {
    mmc(arrivals, service, 1)
}

/// One server, room for `room` packets, the one in service counted; the rest is lost.
pub fn mm1k(arrivals: f64, service: f64, room: u32) -> Queue {
    // Weights from the likelier end downwards, so that none overflows.
    let ratio = arrivals / service;
    let up = ratio <= 1.0;
    let base = if up { ratio } else { 1.0 / ratio };
    let (mut total, mut occupancy, mut weight) = (0.0, 0.0, 1.0);
    let mut full = 0.0;
    for step in 0..=room {
        let packets = if up { step } else { room - step };
        total += weight;
        occupancy += weight * f64::from(packets);
        if packets == room {
            full = weight;
        }
        weight *= base;
    }
    let throughput_pps = arrivals * (1.0 - full / total);
    let utilisation = throughput_pps / service;
    let mean_occupancy = occupancy / total;
    Queue {
        throughput_pps,
        loss_probability: full / total,
        utilisation,
        mean_occupancy,
        mean_queue: mean_occupancy - utilisation,
        mean_delay_s: mean_occupancy / throughput_pps,
    }
}

/// `servers` servers, unlimited room (Erlang C).
///
/// # Errors
/// [`Error::Unstable`] if more is offered than can be served.
pub fn mmc(arrivals: f64, service: f64, servers: u32) -> Result<Queue, Error> {
    let offered = arrivals / service;
    let utilisation = offered / f64::from(servers);
    if utilisation.is_nan() || utilisation >= 1.0 {
        return Err(Error::Unstable { utilisation });
    }
    // Erlang B by its recursion, which neither overflows nor cancels; Erlang C from it.
    let blocking = (1..=servers).fold(1.0, |b, n| offered * b / (f64::from(n) + offered * b));
    let waits = blocking / (1.0 - utilisation * (1.0 - blocking));
    let mean_queue = waits * utilisation / (1.0 - utilisation);
    Ok(unlimited(arrivals, utilisation, mean_queue, mean_queue + offered))
}

/// A queue that loses nothing, with the mean delay by Little's law.
fn unlimited(arrivals: f64, utilisation: f64, mean_queue: f64, mean_occupancy: f64) -> Queue {
    Queue {
        throughput_pps: arrivals,
        loss_probability: 0.0,
        utilisation,
        mean_occupancy,
        mean_queue,
        mean_delay_s: mean_occupancy / arrivals,
    }
}

/// One server, unlimited room, service times of any law with this mean and variance (Pollaczek and Khinchine; Kleinrock,
/// Queueing Systems I, equation 5.63).
///
/// # Errors
/// [`Error::Unstable`] if more is offered than can be served.
pub fn mg1(arrivals: f64, mean_s: f64, variance: f64) -> Result<Queue, Error> {
    let utilisation = arrivals * mean_s;
    if utilisation.is_nan() || utilisation >= 1.0 {
        return Err(Error::Unstable { utilisation });
    }
    let mean_queue = arrivals * arrivals * (variance + mean_s * mean_s) / (2.0 * (1.0 - utilisation));
    Ok(unlimited(arrivals, utilisation, mean_queue, mean_queue + utilisation))
}

/// Breakdowns of a server, also while it has no work; times between them are exponential.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Breakdowns {
    /// Mean time between failures: from a repair to the next breakdown, in seconds.
    pub mtbf_s: f64,
    /// Mean time to repair, in seconds.
    pub mttr_s: f64,
    /// Whether repairs all take that long; otherwise they are exponential.
    pub constant: bool,
}

/// [`mg1`] of a server that breaks down and then goes on where it stopped. A packet with all repairs on its way through
/// is a service of its own (Avi-Itzhak and Naor, Some queuing problems with the service station subject to breakdown,
/// Operations Research 11, 1963); what comes during repairs that began without work adds to it as in queues with vacations
/// (Fuhrmann and Cooper, Operations Research 33, 1985).
///
/// # Errors
/// [`Error::Unstable`] if more is offered than can be served between repairs.
pub fn mg1_with_breakdowns(
    arrivals: f64,
    mean_s: f64,
    variance: f64,
    breakdowns: Breakdowns,
) -> Result<Queue, Error> {
    let Breakdowns { mtbf_s, mttr_s, constant } = breakdowns;
    let stretch = 1.0 + mttr_s / mtbf_s;
    let repair_square = if constant { mttr_s * mttr_s } else { 2.0 * mttr_s * mttr_s };
    let whole =
        mg1(arrivals, mean_s * stretch, variance * stretch * stretch + mean_s / mtbf_s * repair_square)?;
    // Of the time without any service begun: the share of repairs during which a packet has come, and how many have come.
    let alone = if constant {
        -libm::expm1(-arrivals * mttr_s) / arrivals
    } else {
        mttr_s / (1.0 + arrivals * mttr_s)
    };
    let awaited = (mttr_s - alone) / mtbf_s / stretch;
    let came = arrivals * repair_square / (2.0 * mtbf_s) / stretch;
    let mean_occupancy = whole.mean_occupancy + came;
    Ok(Queue {
        utilisation: arrivals * mean_s,
        mean_occupancy,
        // The packet in service, or that is the next when the repair ends, does not wait.
        mean_queue: mean_occupancy - whole.utilisation - (1.0 - whole.utilisation) * awaited,
        mean_delay_s: mean_occupancy / arrivals,
        ..whole
    })
}

/// Queues in a row, each M/M/1 because Poisson departures feed the next (Burke); `services` are
/// rates in 1/s. \[N\]'s closed form of busy-waiting is one with three of them: receive, the core
/// with all that it waits for, transmit.
///
/// # Errors
/// [`Error::Unstable`] if more is offered than one of them can serve.
pub fn tandem(arrivals: f64, services: &[f64]) -> Result<Vec<Queue>, Error> {
    services.iter().map(|&service| mm1(arrivals, service)).collect()
}

/// \[N\]'s closed form of busy-waiting: each station of the network ([`Network::stations`]) as an
/// M/M/1 or M/M/c of its mean service time, with unlimited room. An approximation where a station
/// is a span of several stages, which are not one exponential, and where buffers are small.
///
/// With branches it is an open Jackson network: in the mean each station sees its [visits](Network::visits) of every
/// packet, and its queue is as that of Poisson arrivals at that rate (the product form), although with feedback they are
/// none.
///
/// # Errors
/// [`Error::Unstable`] if a station is offered more than it can serve, [`Error::Invalid`] if stages
/// share a server otherwise, of which there is no closed form.
pub fn stations(network: &Network) -> Result<Vec<Queue>, Error> {
    network.check()?;
    let queue = |((first, last), visits): ((usize, usize), f64)| {
        let stage = &network.stages[first];
        if stage.server.is_some_and(|server| network.servers[server].discipline != Discipline::BusyWaiting) {
            return Err(Error::Invalid(format!(
                "stage {}: no closed form of how it shares its server",
                stage.name
            )));
        }
        let time: f64 = network.stages[first..=last].iter().map(|stage| stage.time_s).sum();
        let arrivals = network.arrival_rate * visits;
        match stage.breakdowns {
            Some(_) if stage.units > 1 => Err(Error::Invalid(format!(
                "stage {}: no closed form of several units that break down",
                stage.name
            ))),
            Some(breakdowns) => mg1_with_breakdowns(arrivals, time, time * time, breakdowns),
            None => mmc(arrivals, 1.0 / time, stage.units),
        }
    };
    network.stations().into_iter().zip(network.visits()?).map(queue).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-12 * b.abs().max(1.0), "{a} is not {b}");
    }

    #[test]
    fn one_server_half_loaded() {
        let queue = mm1(1.0, 2.0).unwrap();
        near(queue.mean_occupancy, 1.0);
        near(queue.mean_queue, 0.5);
        near(queue.mean_delay_s, 1.0);
        assert!(mm1(2.0, 2.0).is_err());
    }

    #[test]
    fn service_of_any_law() {
        let (exponential, general) = (mm1(1.0, 2.0).unwrap(), mg1(1.0, 0.5, 0.25).unwrap());
        near(general.mean_delay_s, exponential.mean_delay_s);
        near(general.mean_queue, exponential.mean_queue);
        // M/D/1 waits half as long.
        near(mg1(1.0, 0.5, 0.0).unwrap().mean_queue, 0.25);
        assert!(
            mg1(2.0, 0.5, 0.0).is_err() && mg1(1.0, 0.5, f64::INFINITY).unwrap().mean_delay_s.is_infinite()
        );
    }

    #[test]
    fn a_server_that_breaks_down() {
        // White and Christie, 1958: L of M/M/1 with breakdowns at rate f and repairs at rate r, all exponential.
        for (l, m, f, r) in [(1.0, 4.0, 1.0, 1.0), (0.5, 1.0, 0.01, 0.1), (2.0, 9.0, 3.0, 5.0)] {
            let exact = l * ((f + r) * (f + r) + f * m) / ((f + r) * (r * (m - l) - f * l));
            let breakdowns = Breakdowns { mtbf_s: 1.0 / f, mttr_s: 1.0 / r, constant: false };
            let found = mg1_with_breakdowns(l, 1.0 / m, 1.0 / m / m, breakdowns).unwrap();
            near(found.mean_occupancy, exact);
            near(found.utilisation, l / m);
        }
        let breakdowns = Breakdowns { mtbf_s: 1.0, mttr_s: 1.0, constant: true };
        assert!(mg1_with_breakdowns(1.0, 0.5, 0.25, breakdowns).is_err());
    }

    #[test]
    fn two_servers() {
        // Erlang C for a = 1, c = 2: C = 1/3; Lq = C rho / (1 - rho) = 1/3.
        let queue = mmc(1.0, 1.0, 2).unwrap();
        near(queue.mean_queue, 1.0 / 3.0);
        near(queue.mean_occupancy, 4.0 / 3.0);
    }

    #[test]
    fn busy_waiting() {
        // [N] equations 1 to 3: the logical core is used for 93.6 us a packet.
        let queues = stations(&Network::ixp425(5_000.0, 9, Discipline::BusyWaiting)).unwrap();
        near(queues[1].utilisation, 5e3 * 93.6e-6);
        near(queues[2].mean_delay_s, 1.0 / (1.0 / 27.3e-6 - 5e3));
        assert!(matches!(
            stations(&Network::ixp425(14_285.0, 9, Discipline::BusyWaiting)),
            Err(Error::Unstable { utilisation }) if utilisation > 1.33
        ));
        assert!(stations(&Network::ixp425(5_000.0, 9, Discipline::LastFirst)).is_err());
    }

    #[test]
    fn an_open_network_with_feedback() {
        // From a a half goes to b, a quarter to c and a quarter out; b goes back to a; a fifth of c comes again to c.
        let mut network = Network::ixp425(1.0, 9, Discipline::BusyWaiting);
        network.servers.clear();
        let stage = |name, time_s, next: &[(usize, f64)]| crate::Stage {
            next: Some(next.iter().map(|&(stage, share)| crate::Branch { stage, share }).collect()),
            ..crate::Stage::new(name, time_s, 9)
        };
        network.stages = vec![
            stage("a", 0.25, &[(1, 0.5), (2, 0.25)]),
            stage("b", 0.5, &[(0, 1.0)]),
            crate::Stage { units: 2, ..stage("c", 0.8, &[(2, 0.2)]) },
        ];
        // a = 1 + b, b = a / 2, c = a / 4 + c / 5.
        network.visits().unwrap().into_iter().zip([2.0, 1.0, 0.625]).for_each(|(a, b)| near(a, b));
        let queues = stations(&network).unwrap();
        near(queues[0].utilisation, 0.5);
        near(queues[0].mean_delay_s, 0.5);
        near(queues[1].mean_occupancy, 1.0);
        near(queues[2].mean_delay_s, mmc(0.625, 1.25, 2).unwrap().mean_delay_s);
        // What comes to b never leaves.
        network.stages[1].next = Some(vec![crate::Branch { stage: 1, share: 1.0 }]);
        assert!(matches!(stations(&network), Err(Error::Invalid(what)) if what.contains("never leave")));
        assert!(matches!(crate::solve(&network, &Default::default()), Err(Error::Invalid(_))));
        network.stages[1].next = Some(vec![crate::Branch { stage: 0, share: 1.5 }]);
        assert!(network.check().is_err());
    }

    #[test]
    fn limited_room() {
        // rho = 1/2, K = 2: 4/7, 2/7, 1/7.
        let queue = mm1k(1.0, 2.0, 2);
        near(queue.loss_probability, 1.0 / 7.0);
        near(queue.mean_occupancy, 4.0 / 7.0);
        near(queue.throughput_pps, 6.0 / 7.0);
        // Mirrored: full and empty change places.
        let queue = mm1k(2.0, 1.0, 2);
        near(queue.loss_probability, 4.0 / 7.0);
        near(queue.mean_occupancy, 10.0 / 7.0);
        // Equal rates: all states alike; and no overflow where powers would.
        near(mm1k(3.0, 3.0, 9).loss_probability, 0.1);
        near(mm1k(1e6, 1.0, 60_000).loss_probability, 1.0 - 1e-6);
    }
}
