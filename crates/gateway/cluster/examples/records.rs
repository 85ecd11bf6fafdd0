//! How many records etcd takes: transactions of a hundred puts each, as the gateways of a cluster write them, from several
//! threads, for some seconds. For plans of how many SAs a cluster of etcd can serve (docs/many-gateways.md).
//!
//!     records SECONDS THREADS SAS ENDPOINT... [CA CERTIFICATE KEY]

#![allow(clippy::disallowed_methods)] // a measurement

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use forebay_cluster::Client;
use forebay_cluster::etcd::{Etcd, Operation, Transaction};

/// Records of a transaction.
const AT_ONCE: u64 = 100;

fn main() -> miette::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (endpoints, files): (Vec<_>, Vec<_>) =
        words.iter().skip(3).cloned().partition(|word| word.starts_with("http"));
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
    let (Some(seconds), Some(threads), Some(sas), false) =
        (number(0), number(1), number(2), endpoints.is_empty())
    else {
        miette::bail!("records SECONDS THREADS SAS ENDPOINT... [CA CERTIFICATE KEY]");
    };
    let file = |at: usize| files.get(at).map(PathBuf::from);
    let list = endpoints.iter().map(|url| format!("{url:?}")).collect::<Vec<_>>().join(", ");
    let text = format!(
        "[[outside]]\nkind = \"raw\"\n[cluster]\nname = \"bench\"\nendpoints = [{list}]\n{}\
         [[sa]]\ndirection = \"in\"\nspi = 1\nproposal = \"aes128gcm16\"\nkey = \"{}\"\nlocal = \"192.0.2.1\"\nremote = \"192.0.2.2\"\n",
        match (file(0), file(1), file(2)) {
            (Some(ca), Some(certificate), Some(key)) =>
                format!("ca_file = {ca:?}\ncertificate_file = {certificate:?}\nprivate_key_file = {key:?}\n"),
            _ => String::new(),
        },
        "0f".repeat(20)
    );
    let config = forebay_config::parse(&text, "records", &PathBuf::from("."))?;
    let Some(cluster) = config.cluster else { miette::bail!("no cluster") };
    let client = Client::open(&cluster)?;
    let (done, failed, slowest) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let began = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (client, done, failed, slowest) = (&client, &done, &failed, &slowest);
            scope.spawn(move || {
                for round in 0.. {
                    if began.elapsed() >= Duration::from_secs(seconds) {
                        break;
                    }
                    let first = (round * threads + thread) * AT_ONCE;
                    let put = |at: u64| Operation::Put {
                        key: format!("/forebay/records/{:04x}/w/{:032x}", at % 256, (first + at) % sas),
                        value: format!("{} {}", first + 1_000_000, first + 999_000),
                        lease: 0,
                    };
                    let transaction =
                        Transaction { then: (0..AT_ONCE).map(put).collect(), ..Transaction::default() };
                    let asked = Instant::now();
                    let outcome = client.transact(&transaction);
                    slowest.fetch_max(asked.elapsed().as_micros() as u64, Ordering::Relaxed);
                    let count = if outcome.is_ok() { done } else { failed };
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let (took, done) = (began.elapsed().as_secs_f64(), done.into_inner() as f64);
    println!(
        "{threads} threads: {:.0} transactions/s, {:.0} records/s, {:.1} ms each, slowest {:.0} ms, {} failed",
        done / took,
        done * AT_ONCE as f64 / took,
        took * threads as f64 / done.max(1.0) * 1e3,
        slowest.into_inner() as f64 / 1e3,
        failed.into_inner(),
    );
    Ok(())
}
