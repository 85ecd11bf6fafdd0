//! References to SAs by name, and nesting.

use std::collections::HashMap;
use std::ops::Range;

use forebay_crypto::Direction;
use forebay_diagnostics::nearest;
use forebay_ipsec::NEST_MAX;

use super::errors::Findings;
use super::mask::shown;
use super::problem::Problem;
use super::table::Placed;

/// Names that are looked through for one that was meant.
const LOOKED_AT: usize = 1_000;

/// An SA that may be referred to.
pub(super) struct Named {
    pub(super) name: String,
    /// Unknown if something is wrong with it.
    pub(super) direction: Option<Direction>,
    pub(super) span: Range<usize>,
    /// The SA that it goes through.
    pub(super) outer: Option<Placed<String>>,
    /// Where it says which CPU it is bound to.
    pub(super) cpu: Option<Range<usize>>,
}

/// All SAs, by their position among the tables of the file.
#[derive(Default)]
pub(super) struct Names {
    sas: Vec<Named>,
    /// Positions in order.
    by_name: HashMap<String, Vec<usize>>,
}

impl Names {
    pub(super) fn add(&mut self, sa: Named) {
        self.by_name.entry(sa.name.clone()).or_default().push(self.sas.len());
        self.sas.push(sa);
    }

    /// The only SA of this name, and of this direction as far as that is known.
    pub(super) fn find(
        &self,
        name: &str,
        span: Range<usize>,
        direction: Option<Direction>,
        findings: &mut Findings,
    ) -> Option<usize> {
        let all = self.by_name.get(name).map_or(&[][..], Vec::as_slice);
        let suits = |&&place: &&usize| {
            direction.zip(self.sas[place].direction).is_none_or(|(wanted, found)| wanted == found)
        };
        let mut suitable = all.iter().filter(suits);
        let found = shown(name);
        match (suitable.next(), suitable.next(), all.first()) {
            (Some(&place), None, _) => return Some(place),
            (Some(&place), Some(&other), _) => {
                // Whose direction is unknown has its own finding.
                if [place, other].iter().all(|&place| self.sas[place].direction.is_some()) {
                    let problem = Problem::AmbiguousName { found };
                    findings.add_pair(
                        problem,
                        span,
                        "which one?",
                        self.sas[other].span.clone(),
                        "the second",
                    );
                }
            }
            (None, _, Some(&place)) => {
                let problem = Problem::WrongDirection { found, expected: direction.map(word) };
                let label = "of the other direction";
                findings.add_pair(problem, span, label, self.sas[place].span.clone(), "this SA");
            }
            (None, _, None) => {
                let most = if findings.is_crowded() { 0 } else { LOOKED_AT };
                let names: Vec<_> = self.sas.iter().take(most).map(|sa| shown(&sa.name)).collect();
                let nearest = nearest(&found, names.iter().map(String::as_str)).map(str::to_owned);
                findings.add(Problem::UnknownSa { found, nearest }, span, "expected the name of an SA");
            }
        }
        None
    }

    /// The SA that each goes through, by position. None goes through itself, nor through too many.
    pub(super) fn outers(&self, findings: &mut Findings) -> Vec<Option<usize>> {
        let outers: Vec<Option<usize>> = self
            .sas
            .iter()
            .map(|sa| {
                let (name, span) = sa.outer.as_ref()?;
                self.find(name, span.clone(), sa.direction, findings)
            })
            .collect();
        for place in circles(&outers) {
            let name = shown(&self.sas[place].name);
            findings.add(Problem::NestCircle { name }, self.outer_span(place), "leads back to this SA");
        }
        for place in 0..outers.len() {
            let chain = std::iter::successors(Some(place), |&place| outers[place]);
            // Those that are still deeper begin before one of these.
            if chain.take(NEST_MAX + 2).count() == NEST_MAX + 1 {
                let name = shown(&self.sas[place].name);
                let label = "one too many";
                findings.add(Problem::NestTooDeep { name }, self.outer_span(place), label);
            }
        }
        outers
    }

    /// Where an SA says its name.
    pub(super) fn span(&self, place: usize) -> Range<usize> {
        self.sas.get(place).map_or(0..0, |sa| sa.span.clone())
    }

    /// Where an SA says which CPU it is bound to.
    pub(super) fn cpu_span(&self, place: usize) -> Range<usize> {
        let sa = self.sas.get(place);
        sa.map_or(0..0, |sa| sa.cpu.clone().unwrap_or_else(|| sa.span.clone()))
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.sas.len()
    }

    fn outer_span(&self, place: usize) -> Range<usize> {
        let sa = &self.sas[place];
        sa.outer.as_ref().map_or_else(|| sa.span.clone(), |(_, span)| span.clone())
    }

    /// Notes SAs that no packet can go through, because there are policies and none names them.
    pub(super) fn report_unused(
        &self,
        direction: Direction,
        used: &[usize],
        outers: &[Option<usize>],
        findings: &mut Findings,
    ) {
        let mut is_used = vec![false; self.sas.len()];
        used.iter().chain(outers.iter().flatten()).for_each(|&place| is_used[place] = true);
        for (place, sa) in self.sas.iter().enumerate() {
            // What comes in through an SA that a policy names may have been in this one as well.
            let within = direction == Direction::Open && outers[place].is_some();
            if sa.direction == Some(direction) && !is_used[place] && !within {
                let problem = Problem::UnusedSa { name: shown(&sa.name) };
                findings.add(problem, sa.span.clone(), "no policy names it");
            }
        }
    }
}

/// The first of each circle.
fn circles(outers: &[Option<usize>]) -> Vec<usize> {
    // The walk that came by, from 1.
    let mut seen = vec![0; outers.len()];
    let mut circles = Vec::new();
    for start in 0..outers.len() {
        let mut place = Some(start);
        while let Some(at) = place.filter(|&at| seen[at] == 0) {
            seen[at] = start + 1;
            place = outers[at];
        }
        if let Some(met) = place.filter(|&at| seen[at] == start + 1) {
            let circle = std::iter::successors(outers[met], |&at| outers[at].filter(|_| at != met));
            circles.extend(circle.min());
        }
    }
    circles
}

/// The file's word for a direction.
pub(super) fn word(direction: Direction) -> &'static str {
    match direction {
        Direction::Seal => "out",
        Direction::Open => "in",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_circle_is_found_once() {
        assert!(circles(&[Some(1), Some(2), None]).is_empty());
        assert_eq!(circles(&[Some(0), None]), [0]);
        // One of three with a way into it, one of two.
        assert_eq!(circles(&[Some(2), Some(3), Some(1), Some(2), Some(5), Some(4)]), [1, 4]);
    }
}
