//! Traces from files.

use std::path::{Path, PathBuf};

use forebay_sim::{Arrivals, Options, Scenario, Stream, read_trace, run};
use forebay_time::Time;

fn file(directory: &Path, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn csv_has_its_columns_in_any_order() {
    let directory = tempfile::tempdir().unwrap();
    let text = "sa,size,time\neast,100,10.5\nwest,0,10.5000000000015\n# note\neast, 1460 ,11\n";
    let trace = read_trace(&file(directory.path(), "t.csv", text)).unwrap();
    assert_eq!(trace.sizes, [100, 0, 1_460]);
    assert_eq!(trace.times, [0, 2, 500_000_000_000]); // 1.5 ps: halves up
    assert_eq!(trace.sas, [0, 1, 0]);
    assert!(!trace.clone().sort());
    let sizes = read_trace(&file(directory.path(), "s.csv", "size\n1\n2\n")).unwrap();
    assert!(sizes.times.is_empty() && sizes.sas.is_empty());
}

#[test]
fn csv_may_have_quotation_marks_and_numbers_of_rows_as_r_and_pandas_write_them() {
    let directory = tempfile::tempdir().unwrap();
    let read = |text: &str| read_trace(&file(directory.path(), "t.csv", text));
    let plain = read("size,time,sa\n100,0,a\n1460,0.5,b c\n").unwrap();
    for text in [
        "\"size\",\"time\",\"sa\"\n100,0,\"a\"\n\"1460\",\"0.5\",\"b c\"\n",
        "\"\",\"size\",\"time\",\"sa\"\n\"1\",100,0,\"a\"\n\"2\",1460,0.5,\"b c\"\n",
        ",size,time,sa\n0,100,0.0,a\n1,1460,0.5,b c\n",
        "size , \"time\", sa\n 100 ,0,\"a, with a comma\"\n1460,0.5,b\n",
    ] {
        assert_eq!(read(text).unwrap(), plain, "{text}");
    }
    let unclosed = read("size,sa\n1,\"a\n").unwrap_err();
    assert_eq!(unclosed.line(), Some(2));
    assert!(unclosed.to_string().contains("quotation mark is not closed"), "{unclosed}");
    assert!(read("size,time,\n1,0,\n").unwrap_err().to_string().contains("the column ``"));
}

#[test]
fn csv_and_parquet_have_the_same_rules_for_other_columns_and_whole_numbers() {
    let directory = tempfile::tempdir().unwrap();
    let read = |text: &str| read_trace(&file(directory.path(), "t.csv", text));
    let plain = read("size,time,class\n100,0,1\n1460,0.5,0\n").unwrap();
    // Columns of other names are left alone; pandas writes whole numbers with a fraction where one was missing once.
    assert_eq!(
        read("proto,size,a,b,c,d,e,f,time,class\n6,100.0,,,,,,,0,1.0\n17,1460.00,,,,,,,0.5,0\n").unwrap(),
        plain
    );
    for (text, wrong) in [
        ("size,time_us\n1,0\n", "no column `time`, but a column `time_us`"),
        ("size,Time\n1,0\n", "no column `time`, but a column `Time`"),
        ("size\n1.5\n", "the size is `1.5`"),
        ("size\n1.\n", "the size is `1.`"),
        ("bytes,time\n1,0\n", "the header is `bytes,time`, expected a column named `size`"),
    ] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains(wrong), "{error}");
    }
}

#[test]
fn packets_further_apart_than_times_can_say_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let text = format!("size,time\n1,0\n2,{}\n", 300 * 86_400);
    let error = read_trace(&file(directory.path(), "t.csv", text)).unwrap_err();
    let message = "the time from the first packet to the last is `300 d`, expected at most 213 d";
    assert!(error.to_string().ends_with(message), "{error}");
    let mut capture =
        vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 0, 0, 101, 0, 0, 0];
    for second in [0_u32, 300 * 86_400] {
        for word in [second, 0, 20, 20] {
            capture.extend(word.to_le_bytes());
        }
        capture.extend([0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    }
    let error = read_trace(&file(directory.path(), "t.pcap", capture)).unwrap_err();
    assert!(error.to_string().ends_with(message), "{error}");
}

#[test]
fn the_archive_s_lines_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let text = "0.010445 2 1 2436 23 2\n0.023775 1 2 23 2436 2\n0.026558 2 1 2436 23 1\n";
    let trace = read_trace(&file(directory.path(), "dec-pkt.tcp", text)).unwrap();
    assert_eq!((trace.sizes, trace.sas), (vec![2, 2, 1], vec![0, 1, 0]));
    assert_eq!(trace.times, [0, 13_330_000_000, 16_113_000_000]);
    let mut short = read_trace(&file(directory.path(), "short", "890822.5 64\n890822.25 1518\n")).unwrap();
    assert_eq!((&short.sizes[..], &short.times[..]), (&[64, 1_518][..], &[250_000_000_000, 0][..]));
    assert!(short.sort());
    assert_eq!((short.sizes, short.times), (vec![1_518, 64], vec![0, 250_000_000_000]));
}

#[test]
fn what_is_wrong_with_a_trace_has_its_line() {
    let directory = tempfile::tempdir().unwrap();
    let error = |text: &str| read_trace(&file(directory.path(), "t.csv", text)).unwrap_err();
    assert_eq!(error("size,time\n1,0\nx,1\n").line(), Some(3));
    assert!(
        error("size,time\n1,0\nx,1\n")
            .to_string()
            .ends_with("t.csv:3: the size is `x`, expected a whole number of bytes")
    );
    assert!(error("size,when\n").to_string().contains("no column `time`, but the column `when`"));
    assert!(error("size,time\n1\n").to_string().contains("1 fields, expected 2"));
    assert!(error("size,time\n1,-1\n").to_string().contains("the time is `-1`"));
    let wrong = error("size,class\n1,256\n");
    assert_eq!((wrong.line(), wrong.found(), wrong.expected()), (Some(2), Some("256"), Some("0 to 255")));
    assert!(wrong.help().contains("Parquet"));
    assert!(error("size\n").to_string().contains("no packets"));
    assert!(error("").to_string().contains("no packets"));
    let text = "model = \"host\"\n[traffic]\nsource = \"file\"\npath = \"t.csv\"\nrate = 1\n[[processor]]\nkind = \"accelerator\"\n";
    let errors = Scenario::load(&file(directory.path(), "s.toml", text), &[]).unwrap_err();
    assert_eq!((errors.findings().len(), errors.findings()[0].line()), (1, Some(4)));
}

#[test]
fn files_of_the_archive_without_sizes_and_compressed_ones_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let flags = "0.010445 2 1 2436 23 S 1 0\n";
    let error = read_trace(&file(directory.path(), "lbl-pkt-4.sf", flags)).unwrap_err();
    assert!(error.to_string().ends_with(":1: the number of fields is `8`, expected 6, or 2"), "{error}");
    assert!(error.help().contains("sanitize-syn-fin"));
    let error = read_trace(&file(directory.path(), "BC-pAug89.TL.gz", [0x1f, 0x8b, 8, 8])).unwrap_err();
    assert!(error.to_string().contains("compressed by gzip") && error.help().contains("gzip -d"));
}

#[cfg(feature = "parquet")]
mod parquet_files {
    use std::fs::File;
    use std::sync::Arc;

    use parquet::basic::{Compression, ZstdLevel};
    use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    use super::*;

    /// A file of three rows in two groups, with the size as `size`.
    fn table(path: &Path, schema: &str, compression: Compression, null: bool) {
        let properties = WriterProperties::builder().set_compression(compression).build();
        let schema = Arc::new(parse_message_type(schema).unwrap());
        let file = File::create(path).unwrap();
        let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties)).unwrap();
        for rows in [0..2, 2..3] {
            let mut group = writer.next_row_group().unwrap();
            let mut column = group.next_column().unwrap().unwrap();
            let sizes = &[40, 1_460, 0][rows.clone()];
            let levels: Vec<i16> = sizes.iter().map(|&size| i16::from(!null || size != 0)).collect();
            let sizes = if null && sizes == [0] { &[] } else { sizes };
            column.typed::<Int32Type>().write_batch(sizes, Some(&levels), None).unwrap();
            column.close().unwrap();
            let mut column = group.next_column().unwrap().unwrap();
            column.typed::<DoubleType>().write_batch(&[10.1, 10.2, 10.4][rows.clone()], None, None).unwrap();
            column.close().unwrap();
            let mut column = group.next_column().unwrap().unwrap();
            let sas = ["east", "west", "east"].map(ByteArray::from);
            column.typed::<ByteArrayType>().write_batch(&sas[rows.clone()], None, None).unwrap();
            column.close().unwrap();
            let mut column = group.next_column().unwrap().unwrap();
            column.typed::<Int64Type>().write_batch(&[1, 0, 7][rows], None, None).unwrap();
            column.close().unwrap();
            group.close().unwrap();
        }
        writer.close().unwrap();
    }

    const SCHEMA: &str = "message trace { optional int32 size; required double time; \
                          required binary sa (UTF8); required int64 class; }";

    #[test]
    fn columns_are_read_by_name_and_whatever_compresses_them() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace");
        for compression in
            [Compression::UNCOMPRESSED, Compression::SNAPPY, Compression::ZSTD(ZstdLevel::default())]
        {
            table(&path, SCHEMA, compression, false);
            let trace = read_trace(&path).unwrap();
            assert_eq!((trace.sizes, trace.sas), (vec![40, 1_460, 0], vec![0, 1, 0]));
            assert_eq!(trace.times, [0, 100_000_000_000, 300_000_000_000]);
            assert_eq!(trace.classes, [1, 0, 7]);
        }
    }

    #[test]
    fn numbers_of_every_type_are_those_that_are_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace");
        // DuckDB and Spark store a DECIMAL as a whole number of its smallest steps: 1460.00 is 146000.
        let write = |schema: &str, sizes: &[i32], sas: &[f64], texts: [&str; 2]| {
            let schema = Arc::new(parse_message_type(schema).unwrap());
            let mut writer =
                SerializedFileWriter::new(File::create(&path).unwrap(), schema, Arc::default()).unwrap();
            let mut group = writer.next_row_group().unwrap();
            let mut column = group.next_column().unwrap().unwrap();
            column.typed::<Int32Type>().write_batch(sizes, None, None).unwrap();
            column.close().unwrap();
            let mut column = group.next_column().unwrap().unwrap();
            column.typed::<DoubleType>().write_batch(sas, None, None).unwrap();
            column.close().unwrap();
            let mut column = group.next_column().unwrap().unwrap();
            column.typed::<ByteArrayType>().write_batch(&texts.map(ByteArray::from), None, None).unwrap();
            column.close().unwrap();
            group.close().unwrap();
            writer.close().unwrap();
            read_trace(&path)
        };
        let decimals = "message trace { required int32 size (DECIMAL(9, 2)); required double sa; \
                        required binary time (UTF8); }";
        let trace = write(decimals, &[146_000, 4_000], &[7.0, 3.0], ["0.5", "0.75"]).unwrap();
        assert_eq!(
            (trace.sizes, trace.sas, trace.times),
            (vec![1_460, 40], vec![0, 1], vec![0, 250_000_000_000])
        );
        let error = write(decimals, &[146_050, 4_000], &[7.0, 3.0], ["0.5", "0.75"]).unwrap_err();
        assert!(error.to_string().contains("row 1: the size is `1460.50`"), "{error}");
        let whole = "message trace { required int32 time (DECIMAL(9, 3)); required double size; \
                     required binary sa (UTF8); }";
        let trace = write(whole, &[1, 1_001], &[1_460.0, 40.0], ["a", "b"]).unwrap();
        assert_eq!((trace.sizes, trace.times), (vec![1_460, 40], vec![0, 1_000_000_000_000]));
        let error = write(whole, &[1, 1_001], &[0.5, 40.0], ["a", "b"]).unwrap_err();
        assert!(error.to_string().contains("row 1: the size is `0.5`"), "{error}");
    }

    #[test]
    fn what_is_wrong_with_a_table_has_its_row_and_column() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace");
        table(&path, SCHEMA, Compression::SNAPPY, true);
        let error = read_trace(&path).unwrap_err();
        assert!(error.to_string().ends_with("row 3: the size is `null`, expected a value"), "{error}");
        table(&path, &SCHEMA.replace("size", "length"), Compression::SNAPPY, false);
        let error = read_trace(&path).unwrap_err();
        assert_eq!(
            (error.found(), error.expected()),
            (Some("length, time, sa, class"), Some("one named `size`"))
        );
        table(
            &path,
            &SCHEMA.replace("sa (UTF8)", "class").replace("64 class", "64 sa"),
            Compression::SNAPPY,
            false,
        );
        let error = read_trace(&path).unwrap_err();
        assert!(
            error.to_string().contains("the type of the column `class` is `text`, expected whole numbers")
        );
        std::fs::write(&path, &std::fs::read(&path).unwrap()[..200]).unwrap();
        assert!(read_trace(&path).unwrap_err().help().contains("complete"));
    }
}

#[test]
fn a_capture_gives_lengths_times_and_destinations() {
    // Ethernet frames of two UDP packets over IPv4 and an ARP request, nanosecond pcap.
    let mut bytes = [0xa1b2_3c4du32, 0x0004_0002, 0, 0, 65_535, 1]
        .iter()
        .flat_map(|n| n.to_le_bytes())
        .collect::<Vec<_>>();
    for (ns, ethertype, destination, len) in
        [(5u32, 0x0800u16, 9u8, 100u16), (7, 0x0806, 0, 46), (1_005, 0x0800, 8, 28)]
    {
        let mut frame = vec![0; 12];
        frame.extend(ethertype.to_be_bytes());
        let mut packet = vec![0; len as usize];
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&len.to_be_bytes());
        packet[19] = destination;
        frame.extend(packet);
        for word in [1_700_000_000, ns, frame.len() as u32, frame.len() as u32] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(frame);
    }
    let directory = tempfile::tempdir().unwrap();
    let trace = read_trace(&file(directory.path(), "t.pcap", bytes)).unwrap();
    assert_eq!((trace.sizes, trace.times, trace.sas), (vec![100, 28], vec![0, 1_000_000], vec![0, 1]));
    assert_eq!(trace.skipped, 1);
}

#[test]
fn a_rate_takes_the_place_of_the_trace_s_times() {
    let directory = tempfile::tempdir().unwrap();
    file(directory.path(), "t.csv", "size,time\n100,0\n60,1\n0,2\n");
    let text = "model = \"host\"\n[traffic]\nsource = \"file\"\npath = \"t.csv\"\n[[processor]]\nkind = \"accelerator\"\n";
    let path = file(directory.path(), "s.toml", text);
    let stamps = |sets: &[String]| {
        let scenario = Scenario::load(&path, sets).unwrap();
        let times: Vec<u64> = Stream::new(&scenario.traffic, 1).map(|packet| packet.at.0).collect();
        (scenario.traffic.arrivals, times)
    };
    assert_eq!(stamps(&[]), (Arrivals::Stamps, vec![0, 1_000_000_000_000, 2_000_000_000_000]));
    // Packets are 140, 100 and 40 bytes: 1120 and 800 bits.
    let (_, times) = stamps(&["traffic.rate=\"1 Gbit/s\"".to_owned()]);
    assert_eq!(times, [0, 1_120_000, 1_920_000]);
    let scenario = Scenario::load(&path, &["traffic.packets=2".to_owned()]).unwrap();
    assert_eq!(Stream::new(&scenario.traffic, 1).map(|one| one.at).last(), Some(Time(1_000_000_000_000)));
}

#[test]
fn an_exponential_with_a_maximum_offers_the_rate_that_was_asked_for() {
    let text = |mean: u32, arrivals: &str| {
        format!(
            "model = \"host\"\n[traffic]\nsource = \"exponential\"\nmean = {mean}\nmax = 1460\noverhead = 0\n\
             packets = 200_000\nrate = \"100 Mbit/s\"\narrivals = \"{arrivals}\"\n{}\n[[processor]]\nkind = \"cpu\"\n\
             init = \"0 s\"\nblock = \"1 ns\"\n",
            if arrivals == "gaps" { "gaps = [[\"1 us\", \"9 us\", 1]]" } else { "" }
        )
    };
    for arrivals in ["back-to-back", "poisson", "gaps"] {
        let scenario = Scenario::parse(&text(600, arrivals), "expo.toml", &[], Path::new(".")).unwrap();
        let figures = run(&scenario, Options::default()).unwrap().figures;
        let bytes: u64 = figures.processors.iter().map(|one| one.bytes).sum();
        let mean = bytes as f64 / figures.packets as f64;
        assert!((mean - 600.0).abs() < 5.0, "{arrivals}: {mean}");
        assert!((figures.throughput_bps / 1e8 - 1.0).abs() < 0.01, "{arrivals}: {}", figures.throughput_bps);
    }
    let errors = Scenario::parse(&text(1_000, "poisson"), "expo.toml", &[], Path::new(".")).unwrap_err();
    let said = errors.findings()[0].to_string();
    assert!(said.contains("a mean of 1000") && said.contains("leaves 558.5"), "{said}");
}
