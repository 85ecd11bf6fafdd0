//! Values of keys, of which every combination is a point.

/// The keys of a sweep with their values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grid {
    /// Each key with its values, as they would be written in a scenario.
    pub axes: Vec<Axis>,
}

/// A key and its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The key, such as `processor.card.count`.
    pub key: String,
    /// Its values.
    pub values: Vec<String>,
}

impl Axis {
    /// Reads `key=v1,v2,...`; commas within brackets or quotes are part of a value. `None` if the text has no key, no
    /// value, or an empty one.
    pub fn parse(text: &str) -> Option<Axis> {
        let (key, list) =
            text.split_once('=').filter(|(key, list)| !key.trim().is_empty() && !list.trim().is_empty())?;
        let (mut depth, mut quoted, mut begin) = (0_i32, None, 0);
        let mut values = Vec::new();
        for (at, c) in list.char_indices() {
            match (quoted, c) {
                (Some(quote), _) if c == quote => quoted = None,
                (Some(_), _) => {}
                (None, '"' | '\'') => quoted = Some(c),
                (None, '[' | '{') => depth += 1,
                (None, ']' | '}') => depth -= 1,
                (None, ',') if depth == 0 => {
                    values.push(list[begin..at].trim().to_owned());
                    begin = at + 1;
                }
                _ => {}
            }
        }
        values.push(list[begin..].trim().to_owned());
        // A point without a value would remove the key there.
        values.iter().all(|value| !value.is_empty()).then(|| Axis { key: key.trim().to_owned(), values })
    }
}

impl Grid {
    /// The keys, in their order.
    pub fn keys(&self) -> Vec<String> {
        self.axes.iter().map(|axis| axis.key.clone()).collect()
    }

    /// The number of points; one if there are no keys.
    pub fn count(&self) -> usize {
        self.axes.iter().fold(1, |count, axis| count.saturating_mul(axis.values.len()))
    }

    /// The values of a point, in the order of the keys; the last key changes fastest.
    pub fn point(&self, number: usize) -> Vec<String> {
        let mut rest = number;
        let mut values: Vec<String> = Vec::new();
        for axis in self.axes.iter().rev() {
            values.push(axis.values[rest % axis.values.len()].clone());
            rest /= axis.values.len();
        }
        values.reverse();
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_parted_by_commas_outside_quotes_and_brackets() {
        let cases = [
            ("a.b=1,2, 4", vec!["1", "2", "4"]),
            ("traffic.rate=200 Mbit/s,1 Gbit/s", vec!["200 Mbit/s", "1 Gbit/s"]),
            ("a=[1,2],[3]", vec!["[1,2]", "[3]"]),
            ("a=\"x,y\",z", vec!["\"x,y\"", "z"]),
        ];
        for (text, expected) in cases {
            assert_eq!(Axis::parse(text).unwrap().values, expected, "{text}");
        }
        assert!(["a", "=1", "a=", "a=1,,2", "a=1,"].into_iter().all(|text| Axis::parse(text).is_none()));
    }

    #[test]
    fn the_last_key_changes_fastest() {
        let axes = ["a=1,2", "b=x,y,z"].iter().filter_map(|text| Axis::parse(text)).collect();
        let grid = Grid { axes };
        assert_eq!((grid.count(), grid.keys()), (6, vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(grid.point(1), ["1", "y"]);
        assert_eq!(grid.point(3), ["2", "x"]);
        assert_eq!(Grid::default().count(), 1);
    }
}
