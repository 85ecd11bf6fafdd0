//! The best fixed split of the packets: a search over the share that the other processors get.

/// Steps of the first grid over the shares from 0 to 1.
const GRID: u32 = 8;
/// Steps around the best share of the grid, each half of the one before.
const REFINEMENTS: u32 = 2;
/// What the weights of all processors come to, about.
const WEIGHTS: f64 = 1_000.0;

/// How often [`best_share`] measures, at most.
pub const MEASUREMENTS: usize = (GRID + 1 + 1 + 2 * REFINEMENTS) as usize;

/// Finds the share between 0 and 1 for which `measure` is the largest: on a grid, at `guess`, and then on finer and
/// finer steps on both sides of the best one. Throughput over the share rises and then falls, so the best one of the
/// grid is beside the best of all.
///
/// # Errors
/// Those of `measure`.
pub fn best_share<E>(guess: f64, mut measure: impl FnMut(f64) -> Result<f64, E>) -> Result<f64, E> {
    let mut best = (guess, measure(guess)?);
    for step in 0..=GRID {
        let share = f64::from(step) / f64::from(GRID);
        let rate = measure(share)?;
        if rate > best.1 {
            best = (share, rate);
        }
    }
    let mut step = 1.0 / f64::from(GRID);
    for _ in 0..REFINEMENTS {
        step /= 2.0;
        let middle = best.0;
        for share in [middle - step, middle + step] {
            if !(0.0..=1.0).contains(&share) {
                continue;
            }
            let rate = measure(share)?;
            if rate > best.1 {
                best = (share, rate);
            }
        }
    }
    Ok(best.0)
}

/// The weights that give the first processor that does anything alone all but `share` of the packets, and the others
/// theirs in proportion to what each does alone.
pub fn weights(share: f64, alone: &[f64]) -> [u16; 8] {
    let mut weights = [0; 8];
    let first = first(alone);
    let others: f64 = alone[first + 1..].iter().sum();
    for (place, (weight, rate)) in weights.iter_mut().zip(alone).enumerate().skip(first) {
        let part = if place == first { 1.0 - share } else { share * rate / others.max(f64::MIN_POSITIVE) };
        *weight = (WEIGHTS * part).round() as u16;
    }
    weights
}

/// The first processor that does anything alone: a running core that only moves packets does not.
pub fn first(alone: &[f64]) -> usize {
    alone.iter().position(|&rate| rate > 0.0).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_share_of_two_processors_is_found() {
        // The slower of the two ends the run: 1 for the core, `speed` for the other.
        for speed in [0.05f64, 0.3, 1.0, 2.5, 20.0] {
            let best = speed / (1.0 + speed);
            let rate = |share: f64| (1.0 / (1.0 - share)).min(speed / share);
            let mut measured = 0;
            let found = best_share::<()>(0.5, |share| {
                measured += 1;
                Ok(rate(share))
            });
            let found = found.unwrap();
            assert!((found - best).abs() <= 1.0 / 16.0, "{found} for {best}");
            assert!(measured <= MEASUREMENTS);
        }
        assert_eq!(best_share(0.2, |_| Err("broken off")), Err("broken off"));
    }

    #[test]
    fn others_share_in_proportion_to_what_they_do_alone() {
        assert_eq!(weights(0.25, &[9.0, 3.0, 1.0])[..4], [750, 188, 63, 0]);
        assert_eq!(weights(0.0, &[1.0, 1.0])[..2], [1000, 0]);
        assert_eq!(weights(1.0, &[1.0, 1.0])[..2], [0, 1000]);
        assert_eq!(weights(0.0, &[1.0])[..1], [1000]);
        assert_eq!(weights(0.25, &[0.0, 9.0, 3.0])[..3], [0, 750, 250]);
    }
}
