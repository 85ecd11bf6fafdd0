//! Words of the configuration: selectors, classes of traffic, proposals.

use forebay_crypto::Suite;
use forebay_ipsec::{DscpSet, TrafficSelector};

/// Longest text that is tried.
const TEXT_MAX: usize = 512;

/// Reads `data` as each of them; what is read is written so that it reads the same, and a refusal quotes what it
/// refuses and says what was expected.
pub fn words(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if text.len() > TEXT_MAX {
        return;
    }
    match text.parse::<TrafficSelector>() {
        Ok(selector) => {
            let written = selector.to_string();
            assert_eq!(written.parse(), Ok(selector), "{text} as {written}");
            assert!(selector.addresses().is_none_or(|(first, last)| first <= last));
        }
        Err(error) => assert!(!error.expected().is_empty() && error.to_string().contains(error.expected())),
    }
    if let Err(error) = text.parse::<DscpSet>() {
        assert!(text.contains(&error.found), "{error}");
    }
    // The nearest of all proposals is looked for, which takes its time: one word in eight.
    let sum: usize = text.bytes().map(usize::from).sum();
    match (sum.is_multiple_of(8) && text.len() <= 24).then(|| text.parse::<Suite>()) {
        Some(Ok(suite)) => assert_eq!(suite.to_string().parse(), Ok(suite)),
        Some(Err(error)) => {
            assert_eq!(error.found, text);
            // Nothing, where none is near.
            assert!(error.nearest.is_empty() || error.nearest.parse::<Suite>().is_ok());
        }
        None => {}
    }
}
