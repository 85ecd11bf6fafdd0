//! Folders of results.

/// How many of the requested runs a folder has.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// Runs that it has.
    pub runs: usize,
    /// Runs that were requested.
    pub of: usize,
    /// Whether all of these runs are complete.
    pub complete: bool,
}
