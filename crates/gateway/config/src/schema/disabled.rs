//! Keys that another key of their section disables.

/// Keys that have no effect while another key of the section has a value: the file says something that does not become so.
pub struct Disabled {
    /// The section.
    pub section: &'static str,
    /// Its keys without effect.
    pub keys: &'static [&'static str],
    /// The key that disables them.
    pub by: &'static str,
    /// The values, as TOML has them, with which it does.
    pub values: &'static [&'static str],
}

const fn disabled(
    section: &'static str,
    keys: &'static [&'static str],
    by: &'static str,
    values: &'static [&'static str],
) -> Disabled {
    Disabled { section, keys, by, values }
}

/// All of them, but for those of `[scheduler]`, which its policies say themselves.
pub const DISABLED: &[Disabled] = &[
    disabled("inside", &["blackhole"], "routes", &["[]"]),
    disabled("outside", &["gso", "gro"], "beside_ike", &["true"]),
    disabled("guard", &["interfaces", "local_interfaces", "except"], "mode", &["\"off\""]),
    disabled("guard", &["remove"], "mode", &["\"off\"", "\"print\""]),
    disabled("offloads", &["inside"], "mode", &["\"keep\""]),
    disabled("cluster", &["addresses"], "share_by", &["\"remote\"", "\"spi\""]),
    disabled("log", &["audit_rate", "audit_burst"], "audit", &["false"]),
];

#[cfg(test)]
mod tests {
    use super::super::parts;
    use super::*;

    #[test]
    fn rows_name_keys_of_their_section() {
        for row in DISABLED {
            let known =
                |key: &str| parts(row.section).any(|part| part.keys.iter().any(|one| one.name == key));
            for key in row.keys.iter().chain([&row.by]) {
                assert!(known(key), "`{key}` of `{}`", row.section);
            }
        }
    }
}
