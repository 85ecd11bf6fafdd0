//! dev
use forebay_crypto::{Direction, Job, JobSpec, Processor, SaKeys, SecretBytes, SessionId, Suite};
use forebay_crypto_aws_lc::AwsLc;
use forebay_engine::*;
use forebay_ipsec::{Ipsec, IvRange, SaConfig, Spi};
use forebay_scheduler::Kind;
use forebay_time::Duration;

fn lib(name: &str) -> Box<dyn Processor> {
    if name == "aws" { Box::new(AwsLc::new()) } else { forebay_crypto_ipsec_mb::new().unwrap() }
}
fn pin(cpu: usize) {
    if std::env::var("PIN").is_ok() {
        let mut set = rustix::thread::CpuSet::new();
        set.set(cpu);
        rustix::thread::sched_setaffinity(None, &set).unwrap();
    }
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let suite: Suite = a[1].parse().unwrap();
    let size: usize = a[2].parse().unwrap();
    let libs: Vec<&str> = a[3].split(',').collect();
    let secs: f64 = a[4].parse().unwrap();
    let burst_len: usize = a.get(5).map_or(64, |x| x.parse().unwrap());
    let clock = Clock::start();
    let mut setups = vec![];
    for (i, l) in libs.iter().enumerate() {
        let mut p: Box<dyn Processor> = lib(l);
        if i > 0 {
            let begin = move || {
                pin(i);
                Ok(())
            };
            p = Box::new(Lane::on_thread(p, format!("worker.{i}"), clock, begin).unwrap());
        } else {
            pin(0);
        }
        let c = calibrate(&mut *p, suite, clock).unwrap();
        println!("{i} calibrated {:?}", c.cost);
        setups.push(ProcessorSetup {
            processor: p,
            kind: Kind::Cpu,
            cost: c.cost,
            alpha: 1.0,
            beta: Duration::ZERO,
            queue: 256,
        });
    }
    let filler = |n: usize| SecretBytes::new((0..n).map(|k| k as u8).collect());
    let keys = SaKeys::new(
        suite,
        &filler(suite.cipher_key_len() + suite.salt_len()),
        &filler(suite.integrity_key_len()),
    )
    .unwrap();
    let mut sad = Ipsec::default();
    let c = SaConfig::new("m", Spi::MIN, suite, [192, 0, 2, 1].into(), [192, 0, 2, 2].into());
    sad.add_outbound(c, IvRange::for_throwaway_key()).unwrap();
    let limits = Limits { in_flight: 1024, ..Limits::default() };
    let mut e = Engine::new(sad, &[keys], setups, Settings { limits, ..Settings::default() }, clock).unwrap();
    let mut plain = vec![0x5a; size];
    plain[..20].copy_from_slice(&[0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 1, 0, 1, 10, 2, 0, 1]);
    plain[2..4].copy_from_slice(&(size as u16).to_be_bytes());
    let mut burst = Vec::new();
    let mut free = Vec::new();
    let start = clock.now();
    let (mut sent, mut out) = (0u64, 0u64);
    while clock.now().since(start).as_secs() < secs {
        if e.room() >= burst_len {
            for _ in 0..burst_len {
                let mut p = e.buffer();
                p.fill(&plain);
                burst.push(Job::new(p, JobSpec::default(), sent));
                sent += 1;
            }
            e.admit_burst(Direction::Seal, &mut burst);
        }
        e.turn();
        free.extend(e.outputs().map(|o| o.packet));
        out += free.len() as u64;
        free.drain(..).for_each(|p| e.recycle(p));
    }
    let t = clock.now().since(start).as_secs();
    println!("{:.3} Mpps {:.2} Gbit/s", out as f64 / t / 1e6, out as f64 * size as f64 * 8.0 / t / 1e9);
    println!("moving {} held {:?}", e.moving(), Duration(e.stats().held.0 / e.stats().released.max(1)));
    for (i, p) in e.processors().enumerate() {
        println!(
            "{} packets {} busy {:.3} subs {} predicted {:.3} resp {} pred {} cost {:?} feed {:?}",
            p.name,
            p.packets,
            p.busy.as_secs() / t,
            p.submissions,
            p.predicted.as_secs() / t,
            Duration(p.response.0 / p.jobs.max(1)),
            Duration(p.predicted_response.0 / p.jobs.max(1)),
            e.cost(i, SessionId(0)).unwrap(),
            e.feed(i)
        );
    }
}
