//! Doubly linked lists over the places of an array.

/// No place.
pub const NONE: u32 = u32::MAX;

/// The links of every place; a place is in one list at a time.
#[derive(Debug)]
pub struct Chain(Vec<Links>);

#[derive(Clone, Copy, Debug)]
struct Links {
    before: u32,
    behind: u32,
}

/// A list's first and last place.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    pub first: u32,
    last: u32,
}

impl Default for Ends {
    fn default() -> Ends {
        Ends { first: NONE, last: NONE }
    }
}

impl Chain {
    pub fn new(places: usize) -> Chain {
        Chain(vec![Links { before: NONE, behind: NONE }; places])
    }

    pub fn push_back(&mut self, ends: &mut Ends, place: u32) {
        self.0[place as usize] = Links { before: ends.last, behind: NONE };
        match ends.last {
            NONE => ends.first = place,
            last => self.0[last as usize].behind = place,
        }
        ends.last = place;
    }

    /// Takes a place out of the list that it is in.
    pub fn remove(&mut self, ends: &mut Ends, place: u32) {
        let Links { before, behind } = self.0[place as usize];
        match before {
            NONE => ends.first = behind,
            before => self.0[before as usize].behind = behind,
        }
        match behind {
            NONE => ends.last = before,
            behind => self.0[behind as usize].before = before,
        }
    }
}
