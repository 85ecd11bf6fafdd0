//! Packets between arrival and completion.

use forebay_time::Time;

use crate::traffic::Arrival;

/// Ends a list of packets.
const NONE: u32 = u32::MAX;

/// A packet between arrival and completion.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    pub(crate) arrived: Time,
    /// Its number, and in the lowest byte its class.
    number_and_class: u64,
    pub(crate) bytes: u32,
    /// The place of the next packet of its job; of a free one, that of the next free one.
    next: u32,
    /// Its SA, and its number there.
    pub(crate) sa: u32,
    pub(crate) in_sa: u32,
}

impl Flight {
    /// How many packets came before it.
    #[inline]
    pub(crate) fn number(&self) -> u64 {
        self.number_and_class >> 8
    }

    /// Its service class.
    #[inline]
    pub(crate) fn class(&self) -> u8 {
        self.number_and_class as u8
    }

    /// The place of the next packet of its job.
    #[inline]
    pub(crate) fn next(&self) -> Option<u32> {
        (self.next != NONE).then_some(self.next)
    }
}

/// The packets in flight, each in one place from arrival to completion; the place is its id in the scheduler.
#[derive(Debug)]
pub(crate) struct Flights {
    places: Vec<Flight>,
    free: u32,
}

impl Flights {
    pub(crate) fn new() -> Flights {
        Flights { places: Vec::new(), free: NONE }
    }

    /// How many packets came before the one of an id.
    pub(crate) fn number(&self, id: u64) -> u64 {
        self.places[id as usize].number()
    }

    /// The SA of a packet.
    pub(crate) fn sa(&self, id: u64) -> u32 {
        self.places[id as usize].sa
    }

    /// Takes a packet in; returns its id.
    #[inline]
    pub(crate) fn put(&mut self, arrival: &Arrival, number: u64, class: u8, in_sa: u32) -> u64 {
        let number_and_class = number << 8 | u64::from(class);
        let Arrival { at, bytes, sa, .. } = *arrival;
        let flight = Flight { arrived: at, number_and_class, bytes, next: NONE, sa, in_sa };
        let id = self.free;
        match self.places.get_mut(id as usize) {
            Some(place) => {
                self.free = place.next;
                *place = flight;
                id.into()
            }
            None => self.grow(flight),
        }
    }

    #[cold]
    fn grow(&mut self, flight: Flight) -> u64 {
        let id = self.places.len();
        assert!(id < NONE as usize, "more packets are in flight than have numbers");
        self.places.push(flight);
        id as u64
    }

    /// Ties the packets of a job, one at least, together; returns the first one's place.
    #[inline]
    pub(crate) fn tie(&mut self, ids: &[u64]) -> u32 {
        for pair in ids.windows(2) {
            self.places[pair[0] as usize].next = pair[1] as u32;
        }
        ids[0] as u32
    }

    /// Takes a packet out of its place.
    #[inline]
    pub(crate) fn take(&mut self, place: u32) -> Flight {
        let flight = &mut self.places[place as usize];
        let taken = *flight;
        flight.next = std::mem::replace(&mut self.free, place);
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_keep_their_packets_and_places_are_used_again() {
        let mut flights = Flights::new();
        let arrival = |at| Arrival { at: Time(at), bytes: 40, sa: 0, class: 0, suite: 0 };
        let ids: Vec<u64> =
            (0..6).map(|number| flights.put(&arrival(10 * number), number, number as u8, 0)).collect();
        let taken = |flights: &mut Flights, first: u32| {
            let (mut numbers, mut next) = (Vec::new(), Some(first));
            while let Some(place) = next {
                let flight = flights.take(place);
                numbers.push(flight.number());
                assert_eq!(u64::from(flight.class()), flight.number());
                next = flight.next();
            }
            numbers
        };
        let odd = flights.tie(&[ids[1], ids[3], ids[5]]);
        let even = flights.tie(&[ids[4], ids[0]]);
        let single = flights.tie(&ids[2..3]);
        assert_eq!(taken(&mut flights, even), [4, 0]);
        let again = flights.put(&arrival(99), 6, 6, 0);
        assert!(again == ids[0] || again == ids[4]);
        assert_eq!(taken(&mut flights, odd), [1, 3, 5]);
        assert_eq!(taken(&mut flights, single), [2]);
        assert_eq!(taken(&mut flights, again as u32), [6]);
        for number in 7..13 {
            flights.put(&arrival(0), number, 0, 0);
        }
        assert_eq!(flights.places.len(), 6);
    }
}
