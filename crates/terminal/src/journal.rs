//! Standard error as systemd's journal: it takes the priority of a line from `<N>` in front of it (sd-daemon(3)), and has the
//! time itself.

use std::fs;
use std::os::unix::fs::MetadataExt;

/// Priorities of syslog(3).
pub const ERROR: u8 = 3;
/// See [`ERROR`].
pub const WARNING: u8 = 4;
/// See [`ERROR`].
pub const INFO: u8 = 6;
/// See [`ERROR`].
pub const DEBUG: u8 = 7;

/// Whether standard error goes to the journal itself: `JOURNAL_STREAM` names the device and inode of the journal's
/// stream (systemd.exec(5)), which a program passes on to those that it starts with another standard error.
pub fn is_stderr() -> bool {
    let found = std::env::var("JOURNAL_STREAM").ok().zip(fs::metadata("/proc/self/fd/2").ok());
    found.is_some_and(|(named, stderr)| is(&named, (stderr.dev(), stderr.ino())))
}

fn is(named: &str, (device, inode): (u64, u64)) -> bool {
    let parsed = named.split_once(':').and_then(|(dev, ino)| Some((dev.parse().ok()?, ino.parse().ok()?)));
    parsed == Some((device, inode))
}

/// A text with a priority in front of each of its lines.
pub fn with_priority(priority: u8, text: &str) -> String {
    text.lines().map(|line| format!("<{priority}>{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_journal_is_known_by_device_and_inode() {
        assert!(is("8:42", (8, 42)));
        for other in ["8:43", "9:42", "", "8", "8:x", "8:42:1"] {
            assert!(!is(other, (8, 42)), "{other}");
        }
        assert_eq!(with_priority(WARNING, "one\ntwo\n"), "<4>one\n<4>two\n");
    }
}
