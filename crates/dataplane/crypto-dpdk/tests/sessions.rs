//! Sessions that are replaced while the device has jobs of them, and queues that are full.

mod support;

use forebay_crypto::{Direction, Job, Processor, SessionId, Verdict};
use forebay_crypto_dpdk::{Config, open};
use forebay_time::Time;
use support::{SEAL, TEXT, job, keys};

fn all(processor: &mut dyn Processor, count: usize) -> Vec<Job> {
    let mut done = Vec::new();
    for _ in 0..1_000_000 {
        processor.poll(Time::ZERO, &mut done);
        if done.len() == count {
            break;
        }
    }
    assert_eq!(done.len(), count);
    done.sort_by_key(|job| job.token);
    done
}

fn with_devices(test: impl Fn(&str, Box<dyn Processor>)) {
    for device in ["crypto_aesni_mb0", "crypto_openssl0"] {
        for copies in [false, true] {
            match open(&Config { queue: 64, copies, ..Config::new(device) }) {
                Ok(processor) => test(device, processor),
                Err(why) => println!("skipped: {device}: {why}"),
            }
        }
    }
}

#[test]
fn a_session_may_be_replaced_while_its_jobs_are_under_way() {
    with_devices(|device, mut processor| {
        for key in 0..20 {
            processor.open_session(SEAL, &keys(key), Direction::Seal).expect("room");
            let mut jobs = vec![job(SEAL, key.into())];
            processor.submit(Time::ZERO, &mut jobs);
            assert!(jobs.is_empty());
            if key % 5 == 4 {
                processor.close_session(SEAL);
            }
        }
        let mut sealed = all(&mut *processor, 20);
        for (key, job) in sealed.iter_mut().enumerate() {
            assert_eq!(job.verdict, Verdict::Done, "{device}");
            let opens = SessionId(key as u32);
            processor.open_session(opens, &keys(key as u8), Direction::Open).expect("room");
            (job.spec.session, job.verdict) = (opens, Verdict::Pending);
        }
        processor.submit(Time::ZERO, &mut sealed);
        for opened in all(&mut *processor, 20) {
            assert_eq!(opened.verdict, Verdict::Done, "{device}");
            assert_eq!(opened.packet.bytes()[16..16 + TEXT as usize], [opened.token as u8; TEXT as usize]);
        }
    });
}

#[test]
fn what_has_no_room_is_left_and_goes_later() {
    with_devices(|device, mut processor| {
        processor.open_session(SEAL, &keys(1), Direction::Seal).expect("room");
        let mut jobs: Vec<Job> = (0..200).map(|number| job(SEAL, number)).collect();
        // Unknown sessions in between are answered without the device.
        jobs.iter_mut().step_by(10).for_each(|job| job.spec.session = SessionId(8));
        let (mut done, mut rounds) = (Vec::new(), 0);
        while done.len() < 200 {
            assert!(rounds < 1_000_000, "{device}: {} of 200", done.len());
            processor.submit(Time::ZERO, &mut jobs);
            assert!(
                rounds > 0 || jobs.len() >= 200 - 64 - 20,
                "{device}: more than the queue holds was taken"
            );
            processor.poll(Time::ZERO, &mut done);
            rounds += 1;
        }
        done.sort_by_key(|job| job.token);
        for (number, job) in done.iter().enumerate() {
            let expected = if number % 10 == 0 { Verdict::Failed } else { Verdict::Done };
            assert_eq!((job.token, job.verdict), (number as u64, expected), "{device}");
        }
    });
}
