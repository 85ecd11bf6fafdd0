//! Durations in Parquet files. Parquet has no type for them: pandas, polars and Arrow write whole numbers, and say their
//! unit in the Arrow schema beside (the key `ARROW:schema`), an Arrow IPC message (Schema.fbs, Message.fbs) in base64.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use parquet::file::metadata::FileMetaData;

/// `Duration` among the types of Arrow (Schema.fbs, `union Type`).
const DURATION: u8 = 18;
/// The default of its unit, milliseconds.
const MILLISECONDS: i16 = 1;

/// Units in a second of the column `name`, if it is one of durations.
pub(super) fn duration(file: &FileMetaData, name: &str) -> Option<u64> {
    let entry = file.key_value_metadata()?.iter().find(|entry| entry.key == "ARROW:schema")?;
    of_schema(&BASE64_STANDARD.decode(entry.value.as_ref()?).ok()?, name)
}

fn of_schema(bytes: &[u8], name: &str) -> Option<u64> {
    // A mark of four bytes that older writers lack, and the length.
    let begin = if bytes.get(..4)? == [0xff; 4] { 8 } else { 4 };
    let message = Table::at(bytes.get(begin..)?, 0)?;
    let fields = message.inside(2)?.field(1)?;
    let list = message.follow(fields)?;
    let count = message.number(list)? as usize;
    let columns = (0..count.min(1 << 16)).map_while(|at| Table::at(message.bytes, list + 4 + 4 * at));
    let column = columns.into_iter().find(|column| column.text(0) == Some(name.as_bytes()))?;
    if column.bytes.get(column.field(2)?) != Some(&DURATION) {
        return None;
    }
    let kind = column.inside(3)?;
    let unit = match kind.field(0) {
        Some(at) => i16::from_le_bytes(kind.bytes.get(at..at + 2)?.try_into().ok()?),
        None => MILLISECONDS,
    };
    [1, 1_000, 1_000_000, 1_000_000_000].get(usize::try_from(unit).ok()?).copied()
}

/// A table of FlatBuffers: at its place stands how far before it its list of fields is.
#[derive(Clone, Copy)]
struct Table<'a> {
    bytes: &'a [u8],
    place: usize,
}

impl<'a> Table<'a> {
    /// The table to which the offset at `at` leads.
    fn at(bytes: &'a [u8], at: usize) -> Option<Table<'a>> {
        let here = Table { bytes, place: 0 };
        Some(Table { bytes, place: here.follow(at)? })
    }

    fn number(&self, at: usize) -> Option<u32> {
        Some(u32::from_le_bytes(self.bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
    }

    fn follow(&self, at: usize) -> Option<usize> {
        at.checked_add(self.number(at)? as usize)
    }

    /// Where a field is, unless it has its default.
    fn field(&self, number: usize) -> Option<usize> {
        let short = |at: usize| Some(u16::from_le_bytes(self.bytes.get(at..at + 2)?.try_into().ok()?));
        let fields = self.place.checked_add_signed(-(self.number(self.place)? as i32 as isize))?;
        let at = 4 + 2 * number;
        let offset = if at < usize::from(short(fields)?) { short(fields + at)? } else { 0 };
        (offset > 0).then(|| self.place + usize::from(offset))
    }

    fn inside(&self, number: usize) -> Option<Table<'a>> {
        Table::at(self.bytes, self.field(number)?)
    }

    fn text(&self, number: usize) -> Option<&'a [u8]> {
        let at = self.follow(self.field(number)?)?;
        self.bytes.get(at + 4..at + 4 + self.number(at)? as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `pyarrow.schema([("size", int64), ("time", duration("us"))]).serialize()`.
    const SCHEMA: &str = "/////7AAAAAQAAAAAAAKAAwABgAFAAgACgAAAAABBAAMAAAACAAIAAAABAAIAAAABAAAAAIAAABIAAAABAAAAND///8AAAESEAAAABwAAAAEAAAAAAAAAAQAAAB0aW1lAAAGAAgABgAGAAAAAAACABAAFAAIAAYABwAMAAAAEAAQAAAAAAABAhAAAAAgAAAABAAAAAAAAAAEAAAAc2l6ZQAAAAAIAAwACAAHAAgAAAAAAAABQAAAAA==";

    #[test]
    fn the_unit_of_a_duration_is_that_of_arrows_schema() {
        let bytes = BASE64_STANDARD.decode(SCHEMA).unwrap();
        assert_eq!((of_schema(&bytes, "time"), of_schema(&bytes, "size")), (Some(1_000_000), None));
        // Whatever is cut or changed is no duration, and nothing worse.
        for at in 0..bytes.len() {
            of_schema(&bytes[..at], "time");
            for bit in 0..8 {
                let mut wrong = bytes.clone();
                wrong[at] ^= 1 << bit;
                of_schema(&wrong, "time");
            }
        }
    }
}
