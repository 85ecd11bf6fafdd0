//! Keys that have no effect because another key of their section disables them, or because the rest of the file does not use
//! them.

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

/// What a file lacks, so that keys have nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Without {
    /// No processor is a device: every core does its packets itself.
    Devices,
    /// The same, and one core moves packets.
    DevicesAndCores,
    /// The policy predicts no time.
    Predictions,
    /// Jobs are placed one by one.
    Batches,
    /// No other class has a weight.
    Weights,
}

/// Keys without effect in such a file. They are noted, not refused: a device may be added to the file later.
pub struct Idle {
    /// The section.
    pub section: &'static str,
    /// Its keys.
    pub keys: &'static [&'static str],
    /// What the file lacks.
    pub without: Without,
}

const fn idle(section: &'static str, keys: &'static [&'static str], without: Without) -> Idle {
    Idle { section, keys, without }
}

/// Policies that predict no time.
pub const WITHOUT_TIMES: &[&str] = &["round-robin", "shortest-queue"];

/// Keys of `[scheduler]` that are parameters of a policy.
pub const POLICY_KEYS: &[&str] =
    &["processor", "threshold", "small", "large", "alpha_upper", "alpha_lower", "alpha_most", "alpha_period"];

/// All of them. A key has one note, the first.
pub const IDLE: &[Idle] = &[
    idle("limits", &["burst", "patience", "slack", "audit_every"], Without::Devices),
    idle("limits", &["hold"], Without::DevicesAndCores),
    idle("processor", &["alpha", "beta"], Without::Devices),
    idle("processor", &["alpha", "beta"], Without::Predictions),
    idle("scheduler", &["policy", "lateness"], Without::Devices),
    idle("scheduler", POLICY_KEYS, Without::Devices),
    idle("class", &["latency_bound"], Without::Devices),
    idle("class", &["latency_bound"], Without::Batches),
    idle("class", &["weight"], Without::Weights),
];

#[cfg(test)]
mod tests {
    use super::super::parts;
    use super::*;

    #[test]
    fn rows_name_keys_of_their_section() {
        let disabled = DISABLED.iter().map(|row| (row.section, row.keys.iter().chain([&row.by]).collect()));
        let rows: Vec<(_, Vec<_>)> =
            disabled.chain(IDLE.iter().map(|row| (row.section, row.keys.iter().collect()))).collect();
        for (section, keys) in rows {
            for key in keys {
                let known = parts(section).any(|part| part.keys.iter().any(|one| one.name == *key));
                assert!(known, "`{key}` of `{section}`");
            }
        }
    }
}
