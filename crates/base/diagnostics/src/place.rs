//! Places in the texts that a file is read from.

use std::ops::Range;

/// Where something stands: in the file (0) or in the n-th `--set`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// 0: the file; n: the n-th `--set`.
    pub source: usize,
    /// Bytes of it.
    pub span: Range<usize>,
}

/// A problem and its place, before the name of the text is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located<P> {
    /// What is wrong.
    pub problem: P,
    /// Where.
    pub place: Place,
}
