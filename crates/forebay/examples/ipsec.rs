//! Seals and opens packets in memory: the two ends of a tunnel, without sockets and threads.

use forebay::ipsec::{
    AwsLc, Clock, Cost, Direction, Engine, Ipsec, IvRange, Job, JobSpec, Kind, ProcessorSetup, SaConfig,
    SaKeys, SecretBytes, Settings, Spi, Suite,
};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// One end of the tunnel: an engine whose only processor is the calling thread.
fn end(clock: Clock) -> Result<Engine> {
    let core = ProcessorSetup::new(Box::new(AwsLc::new()), Kind::Cpu, Cost::default());
    // The seed keys the hash tables that unauthenticated packets reach: draw it at random.
    Ok(Engine::new(Ipsec::seeded(1), &[], vec![core], Settings::default(), clock)?)
}

/// Takes packets through an engine; those that it drops are printed.
fn pass(engine: &mut Engine, direction: Direction, packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut burst = Vec::new();
    for bytes in packets {
        let mut packet = engine.buffer();
        assert!(packet.fill(bytes), "a packet of at most 2048 bytes");
        burst.push(Job::new(packet, JobSpec::default(), 0));
    }
    engine.admit_burst(direction, &mut burst);
    engine.refusals().for_each(|refused| println!("refused: {}", refused.reason.name()));
    let mut passed = Vec::new();
    for output in engine.outputs() {
        match output.result {
            Ok(()) => passed.push(output.packet.bytes().to_vec()),
            Err(reason) => println!("dropped: {}", reason.name()),
        }
    }
    passed
}

fn main() -> Result<()> {
    let (suite, spi) = ("aes256gcm16".parse::<Suite>()?, Spi::new(0x1001).ok_or("zero")?);
    let (east, west) = ("192.0.2.1".parse()?, "192.0.2.2".parse()?);
    // From your key exchange: 32 bytes of key and 4 of salt. The IVs of a key must never be used twice.
    let keys = SaKeys::new(suite, &SecretBytes::new(vec![0x5a; 36]), &SecretBytes::new(vec![]))?;
    let (mut sealing, mut opening) = (end(Clock::start())?, end(Clock::start())?);
    let ivs = IvRange::for_throwaway_key();
    sealing.add_outbound(SaConfig::new("to west", spi, suite, east, west), ivs, &keys)?;
    opening.add_inbound(SaConfig::new("from east", spi, suite, west, east), &keys)?;

    let header = [0x45, 0, 0, 100, 0, 0, 0x40, 0, 64, 253, 0x24, 0x88, 10, 1, 0, 1, 10, 2, 0, 1];
    let plain: Vec<Vec<u8>> = (0..5).map(|number| [&header[..], &[number; 80]].concat()).collect();
    let sealed = pass(&mut sealing, Direction::Seal, &plain);
    println!("sealed {} packets of 100 bytes: {} bytes each", sealed.len(), sealed[0].len());
    let opened = pass(&mut opening, Direction::Open, &sealed);
    let equal = opened.iter().zip(&plain).filter(|(one, other)| one[20..] == other[20..]).count();
    println!("opened {}, {equal} with the payload that was sealed", opened.len());
    let replayed = pass(&mut opening, Direction::Open, &sealed[..1]);
    println!("opened {} when the first was sent again", replayed.len());
    Ok(())
}
