//! Other sections that a file with SAs may contain.

/// The keys beside those of SAs and policies: a gateway's file has sections of its own.
#[derive(Clone, Copy, Debug)]
pub struct OtherKeys {
    /// Whether a section, or a key at the top of the file, has this name.
    pub is_section: fn(&str) -> bool,
    /// Whether any section has this key, written with its section in front or without. Errors may show its value.
    pub is_known: fn(&str) -> bool,
    /// Whether a line that begins so is the header of a section.
    pub is_header: fn(&str) -> bool,
    /// Whether a peer may have a host name: something resolves it before packets are moved.
    pub takes_names: bool,
}

impl OtherKeys {
    /// A file of SAs and policies alone.
    pub const NONE: OtherKeys =
        OtherKeys { is_section: |_| false, is_known: |_| false, is_header: |_| false, takes_names: false };
    /// The same in a file of its own that a gateway's file names.
    pub const OF_GATEWAY: OtherKeys = OtherKeys { takes_names: true, ..OtherKeys::NONE };
}
