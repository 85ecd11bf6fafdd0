//! The files of one side: so many of such a size, the oldest replaced.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use forebay_links::capture::blocks;

use forebay_config as config;

/// `20261121T194014.123Z`
const STAMP: usize = 20;
const SUFFIX: &str = ".pcapng";

/// The files of a side, one of which is open.
pub(super) struct Files {
    directory: PathBuf,
    /// What names begin with: `inside-`.
    prefix: String,
    size: u64,
    most: usize,
    /// What each begins with.
    header: Vec<u8>,
    file: File,
    path: PathBuf,
    /// The millisecond in its name.
    named: u64,
    /// Its length, of whole blocks.
    written: u64,
}

impl Files {
    /// Begins the first file; makes the directory if only that is missing.
    ///
    /// # Errors
    /// If a file cannot be made or written; with what was to be done.
    pub(super) fn begin(
        settings: &config::Taps,
        side: &str,
        header: Vec<u8>,
        now: Duration,
    ) -> Result<Files, String> {
        let directory = settings.directory.clone();
        match fs::DirBuilder::new().mode(0o700).create(&directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(failed(&directory)(error));
            }
            _ => {}
        }
        let (prefix, most) = (format!("{side}-"), settings.files as usize);
        remove_oldest(&directory, &prefix, most).map_err(failed(&directory))?;
        let created = create(&directory, &prefix, now.as_millis() as u64);
        let (file, path, named) = created.map_err(failed(&directory))?;
        let size = settings.file_size;
        let mut files = Files { directory, prefix, size, most, header, file, path, named, written: 0 };
        let header = files.header.clone();
        files.write(&header)?;
        Ok(files)
    }

    /// The file that is written now.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes that the file still takes.
    pub(super) fn room(&self) -> u64 {
        self.size.saturating_sub(self.written)
    }

    /// Appends whole blocks. Where they do not all find room, the file ends behind the last that did.
    pub(super) fn write(&mut self, blocks: &[u8]) -> Result<(), String> {
        match write_blocks(&mut self.file, blocks) {
            Ok(()) => {
                self.written += blocks.len() as u64;
                Ok(())
            }
            Err((whole, error)) => {
                self.written += whole as u64;
                // What readers would call cut short; a disk that is full lets files become shorter.
                let _ = self.file.set_len(self.written);
                Err(failed(&self.path)(error))
            }
        }
    }

    /// Ends the file with `last` blocks and begins the next one.
    pub(super) fn next(&mut self, last: &[u8], now: Duration) -> Result<(), String> {
        self.write(last)?;
        remove_oldest(&self.directory, &self.prefix, self.most).map_err(failed(&self.directory))?;
        // Behind this one, also where the name of an older one has become free.
        let from = (now.as_millis() as u64).max(self.named + 1);
        let created = create(&self.directory, &self.prefix, from);
        (self.file, self.path, self.named) = created.map_err(failed(&self.directory))?;
        self.written = 0;
        let header = self.header.clone();
        self.write(&header)
    }

    /// Whether the file that is written is still found by its name: others may have moved it, or its directory.
    pub(super) fn is_there(&self) -> bool {
        let identity = |found: fs::Metadata| (found.dev(), found.ino());
        match (fs::metadata(&self.path), self.file.metadata()) {
            (Ok(named), Ok(open)) => identity(named) == identity(open),
            _ => false,
        }
    }
}

fn failed(path: &Path) -> impl Fn(io::Error) -> String {
    let path = path.display().to_string();
    move |error| format!("{path}: {error}")
}

/// Writes all of `blocks`, or says how many bytes of it are whole blocks.
fn write_blocks(file: &mut impl Write, blocks: &[u8]) -> Result<(), (usize, io::Error)> {
    let mut done = 0;
    while done < blocks.len() {
        match file.write(&blocks[done..]) {
            Ok(0) => return Err((whole(blocks, done), io::ErrorKind::WriteZero.into())),
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err((whole(blocks, done), error)),
        }
    }
    Ok(())
}

/// Bytes of the blocks that end within `len` bytes.
fn whole(all: &[u8], len: usize) -> usize {
    let mut at = 0;
    while let Some(block) = blocks::block_len(&all[at..]) {
        if at + block > len {
            break;
        }
        at += block;
    }
    at
}

/// Removes those of our files that are too many once there is one more.
fn remove_oldest(directory: &Path, prefix: &str, most: usize) -> io::Result<()> {
    let mut ours = Vec::new();
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        let stamp = name.to_str().and_then(|name| name.strip_prefix(prefix)?.strip_suffix(SUFFIX));
        if stamp.is_some_and(is_stamp) {
            ours.push(name);
        }
    }
    // Names sort by time.
    ours.sort();
    let many = (ours.len() + 1).saturating_sub(most);
    for name in &ours[..many.min(ours.len())] {
        match fs::remove_file(directory.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn is_stamp(text: &str) -> bool {
    text.len() == STAMP
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 => byte == b'T',
            15 => byte == b'.',
            19 => byte == b'Z',
            _ => byte.is_ascii_digit(),
        })
}

/// Makes the file of this millisecond, or of the next that has none: for its owner's eyes only.
fn create(directory: &Path, prefix: &str, mut milliseconds: u64) -> io::Result<(File, PathBuf, u64)> {
    loop {
        let path = directory.join(format!("{prefix}{}{SUFFIX}", stamp(milliseconds)));
        match OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path) {
            Ok(file) => return Ok((file, path, milliseconds)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => milliseconds += 1,
            Err(error) => return Err(error),
        }
    }
}

/// A time since the Unix epoch in UTC.
fn stamp(milliseconds: u64) -> String {
    let (days, rest) = (milliseconds / 86_400_000, milliseconds % 86_400_000);
    let (seconds, rest) = (rest / 1_000, rest % 1_000);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let (year, month, day) = date(days);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}.{rest:03}Z")
}

/// Year, month and day of a day since 1970-01-01: years begin in March, so that the day of a leap year is the last;
/// an era has 400 years.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468; // since 0000-03-01
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (400 * era + year + later, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_links::LinkType;
    use forebay_links::capture::blocks::Way;

    /// Takes so many bytes, in bites of seven, and then no more.
    struct Full(Vec<u8>, usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let room = (self.1 - self.0.len()).min(bytes.len()).min(7);
            if room == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.0.extend_from_slice(&bytes[..room]);
            Ok(room)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn header() -> Vec<u8> {
        let mut header = Vec::new();
        blocks::section(&mut header, "a test");
        blocks::interface(&mut header, LinkType::Raw, "wan", 96);
        header
    }

    #[test]
    fn what_is_whole_is_known_wherever_a_disk_is_full() {
        let mut all = header();
        let mut ends = vec![0, blocks::block_len(&all).unwrap(), all.len()];
        for len in 0..9 {
            blocks::packet(&mut all, 0, 1, Way::Inbound, (&[1; 9][..len], &[]), 9);
            ends.push(all.len());
        }
        for room in 0..all.len() {
            let mut file = Full(vec![], room);
            let (whole, error) = write_blocks(&mut file, &all).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
            assert_eq!(whole, *ends.iter().filter(|&&end| end <= room).max().unwrap(), "{room}");
        }
        let mut file = Full(vec![], all.len());
        write_blocks(&mut file, &all).unwrap();
        assert_eq!(file.0, all);
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        // date -u -d @...
        assert_eq!(stamp(0), "19700101T000000.000Z");
        assert_eq!(stamp(951_782_399_999), "20000228T235959.999Z");
        assert_eq!(stamp(951_782_400_000), "20000229T000000.000Z");
        assert_eq!(stamp(1_709_251_199_001), "20240229T235959.001Z");
        assert_eq!(stamp(1_795_290_014_123), "20261121T194014.123Z");
        assert_eq!(stamp(4_107_542_400_000), "21000301T000000.000Z");
        assert!(is_stamp(&stamp(1_795_290_014_123)) && !is_stamp("20261121T194014.12Z"));
        // Against counting day by day.
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for days in 0..80_000 {
            assert_eq!(date(days), (year, month, day));
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let last = match month {
                2 => 28 + u64::from(leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            day += 1;
            if day > last {
                (day, month) = (1, month + 1);
            }
            if month > 12 {
                (month, year) = (1, year + 1);
            }
        }
    }

    #[test]
    fn the_oldest_goes_and_others_files_stay() {
        let directory = tempfile::tempdir().unwrap();
        let settings = config::Taps {
            directory: directory.path().join("new"),
            inside: true,
            outside: false,
            file_size: 65_536,
            files: 3,
            snap: 96,
        };
        let now = Duration::from_millis(1_795_290_014_123);
        let mut files = Files::begin(&settings, "inside", header(), now).unwrap();
        fs::write(settings.directory.join("inside-of-another-program.pcapng"), "").unwrap();
        fs::write(settings.directory.join("outside-20261121T194014.123Z.pcapng"), "").unwrap();
        let first = files.path().to_owned();
        assert_eq!(first.metadata().unwrap().mode() & 0o777, 0o600);
        for _ in 0..4 {
            files.next(&[], now).unwrap();
        }
        let mut names: Vec<String> = fs::read_dir(&settings.directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        let expected = [
            "inside-20261121T194014.125Z.pcapng",
            "inside-20261121T194014.126Z.pcapng",
            "inside-20261121T194014.127Z.pcapng",
            "inside-of-another-program.pcapng",
            "outside-20261121T194014.123Z.pcapng",
        ];
        assert_eq!(names, expected);
        assert!(files.is_there() && !first.exists());
        fs::rename(&settings.directory, directory.path().join("moved")).unwrap();
        assert!(!files.is_there());
        let error = files.next(&[], now).unwrap_err();
        assert!(error.contains("new: No such file"), "{error}");
    }
}
