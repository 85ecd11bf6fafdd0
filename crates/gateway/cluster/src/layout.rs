//! The keys and values in etcd. All begin with the cluster's prefix.
//!
//! | key | value | lease |
//! |---|---|---|
//! | `settings` | what all gateways must agree on, as JSON | |
//! | `members/NAME` | a gateway that lives, as JSON | its own |
//! | `owners/SHARE` | `PROCESS NAME` of the gateway that serves the share | its own |
//! | `claims/SHARE` | the same of the last one that did; its revision is compared by every record | |
//! | `places/i/KEY`, `places/s/SA` | the share that has the records of a cipher key or an SA, for good | |
//! | `records/SHARE/i/KEY` | IVs of a cipher key below this may have been used | |
//! | `records/SHARE/n/SA` | sequence numbers of an outbound SA up to this may have been used | |
//! | `records/SHARE/w/SA` | `TOP CERTAIN FIRST-LAST...` of an inbound SA: see [`Record::Window`] | |
//! | `records/SHARE/l/SA` | the life of an SA, as JSON | |
//!
//! Shares are four hex digits, keys and SAs the fingerprints of the state directory.

use serde::{Deserialize, Serialize};

use forebay_state::Record;

use crate::places::Id;

/// The version of the layout.
pub const SCHEMA: u32 = 1;

/// Settings that all gateways of a cluster must have in common.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct SettingsDoc {
    /// See [`SCHEMA`].
    pub schema: u32,
    /// Shares.
    pub shares: u16,
    /// The property of an SA that selects its share.
    pub share_by: String,
}

/// A live gateway.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct MemberDoc {
    /// A random name of its process.
    pub process: String,
    /// A random name of its state directory.
    pub instance: String,
    /// Its host, for messages.
    pub host: String,
    /// Its version, for messages.
    pub version: String,
    /// Whether it is about to leave: it should serve no share any more.
    #[serde(default)]
    pub leaves: bool,
}

/// The keys with a prefix.
#[derive(Clone, Debug)]
pub struct Layout(pub String);

impl Layout {
    /// The key of the common settings.
    pub fn settings(&self) -> String {
        format!("{}settings", self.0)
    }

    /// The prefix of gateways' keys.
    pub fn members(&self) -> String {
        format!("{}members/", self.0)
    }

    /// The keys that change when gateways join and leave: members and owners. Returns the first
    /// key, and the first one after them.
    pub fn comings_and_goings(&self) -> (String, String) {
        (self.members(), format!("{}owners0", self.0))
    }

    /// The key of a gateway.
    pub fn member(&self, name: &str) -> String {
        format!("{}members/{name}", self.0)
    }

    /// The prefix of owners' keys.
    pub fn owners(&self) -> String {
        format!("{}owners/", self.0)
    }

    /// The key of the owner of a share.
    pub fn owner(&self, share: u16) -> String {
        format!("{}owners/{share:04x}", self.0)
    }

    /// The prefix of claims' keys.
    pub fn claims(&self) -> String {
        format!("{}claims/", self.0)
    }

    /// The key of the last claim of a share.
    pub fn claim(&self, share: u16) -> String {
        format!("{}claims/{share:04x}", self.0)
    }

    /// The key of the place of a cipher key or an SA: the share that has its records.
    pub fn place(&self, id: Id) -> String {
        match id {
            Id::Key(key) => format!("{}places/i/{key}", self.0),
            Id::Sa(sa) => format!("{}places/s/{sa}", self.0),
        }
    }

    /// The prefix of a share's records.
    pub fn records(&self, share: u16) -> String {
        format!("{}records/{share:04x}/", self.0)
    }

    /// The key and the value of a record.
    pub fn record(&self, share: u16, record: &Record) -> (String, String) {
        (format!("{}{}", self.records(share), record.key()), record.value())
    }

    /// The record in a key and its value; `None` if they are not a record.
    pub fn parse(&self, share: u16, key: &str, value: &str) -> Option<Record> {
        Record::parse(key.strip_prefix(&self.records(share))?, value)
    }
}

/// The share at the end of an owner's key.
pub fn share_of(key: &str) -> Option<u16> {
    parse_share(key.rsplit('/').next()?)
}

/// A share as it is written.
pub fn parse_share(digits: &str) -> Option<u16> {
    let is_digit = |digit: char| digit.is_ascii_hexdigit();
    (digits.len() == 4 && digits.chars().all(is_digit))
        .then(|| u16::from_str_radix(digits, 16).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_of_one_share_and_lie_beside_comings_and_goings() {
        let layout = Layout("/forebay/".to_owned());
        let record = Record::Numbers { id: "0f".repeat(16).try_into().unwrap(), last: 7 };
        let (key, value) = layout.record(0x2a, &record);
        assert!(key.starts_with("/forebay/records/002a/n/0f0f"), "{key}");
        assert_eq!(layout.parse(0x2a, &key, &value), Some(record));
        assert_eq!(layout.parse(0x2b, &key, &value), None);
        let (first, end) = layout.comings_and_goings();
        let lies_between = |key: &str| first.as_str() <= key && key < end.as_str();
        assert!(lies_between(&layout.member("x")) && lies_between(&layout.owner(u16::MAX)));
        for other in [layout.claim(u16::MAX), layout.records(0), layout.settings()] {
            assert!(!lies_between(&other), "{other}");
        }
        assert_eq!((share_of("/forebay/owners/00ff"), share_of("/x/fff")), (Some(255), None));
    }
}
