//! Random jobs of every shape, mixed in bursts, against the second opinion.

use forebay_crypto::{
    Cipher, Direction, Integrity, JobSpec, Layout, Processor, SaKeys, SecretBytes, SessionId, Span, Suite,
};

use crate::case::{Case, Expect};
use crate::reference;
use crate::report::Report;
use crate::rig::Rig;
use crate::shape::{Plan, Shape};

/// Longest text and longest separately covered part, in bytes.
const LEN_MAX: u64 = 2_000;
/// Longest AAD in bytes: far beyond the 8 of ESP, and the longest that takes an ESN.
const AAD_MAX: u64 = Layout::ESN_AAD_MAX as u64;
/// Longest burst, the longest the gateway gives.
const BURST_MAX: u64 = 64;
/// Ids no session has: one between those that are open, the first above 16 bits, and the last.
const UNKNOWN: [SessionId; 3] = [SessionId(1), SessionId(65_536), SessionId(u32::MAX)];

/// Runs at least `n` random jobs of the suites that the processor declares, in bursts of 1 to 64
/// that mix sessions, suites, directions, damaged packets and bad jobs, and every single-bit flip
/// of a small packet of each suite; suites that it does not declare must be refused. The same `seed` makes the same jobs. Panics at the first that
/// comes out wrong.
pub fn check_random(make: &mut dyn FnMut() -> Box<dyn Processor>, seed: u64, n: usize) -> Report {
    let mut report = Report::default();
    let mut rig = Rig::new(make());
    let mut dice = Dice(seed);
    let sas: Vec<Sa> =
        rig.suites().iter().enumerate().map(|(i, &suite)| Sa::new(i, suite, &mut dice)).collect();
    assert!(!sas.is_empty(), "a processor declares at least one suite");
    sas.iter().for_each(|sa| sa.open(&mut rig));
    // Over a session that is open and must stay so.
    for suite in Suite::all().filter(|suite| !sas.iter().any(|sa| sa.keys.suite() == *suite)) {
        rig.refuse(sas[0].seal, &dice.keys(suite));
        report.add_run("suites refused", 1);
    }

    let mut run = 0;
    while run < n {
        let burst: Vec<Case> = (0..dice.between(1, BURST_MAX))
            .map(|_| {
                let (kind, mut case) = random_case(dice.pick(&sas), &mut dice);
                report.add_run(kind, 1);
                case.name = format!("seed {seed}, {}", case.name);
                case
            })
            .collect();
        run += burst.len();
        rig.check(&burst);
        // The same again in other company must give the same bytes.
        rig.check(&burst.into_iter().rev().collect::<Vec<_>>());
    }
    for sa in &sas {
        let flips = every_bit(sa, &mut dice);
        report.add_run("every bit of a packet", flips.len());
        flips.chunks(BURST_MAX as usize).for_each(|burst| rig.check(burst));
    }
    report.add_run("sessions replaced and closed", sas.len());
    for sa in &sas {
        replace_and_close(sa, &mut rig, &mut dice);
    }
    report
}

/// An SA with a session for each direction.
struct Sa {
    keys: SaKeys,
    seal: SessionId,
    open: SessionId,
}

impl Sa {
    /// Random keys, and ids that leave gaps.
    fn new(index: usize, suite: Suite, dice: &mut Dice) -> Sa {
        let id = 3 * index as u32;
        Sa { keys: dice.keys(suite), seal: SessionId(id + 2), open: SessionId(id + 3) }
    }

    fn open(&self, rig: &mut Rig) {
        rig.open(self.seal, &self.keys, Direction::Seal);
        rig.open(self.open, &self.keys, Direction::Open);
    }
}

/// A packet before sealing, sealed, and opened again.
struct Packet {
    plan: Plan,
    plain: Vec<u8>,
    sealed: Vec<u8>,
    opened: Vec<u8>,
}

impl Packet {
    fn new(sa: &Sa, shape: Shape, dice: &mut Dice) -> Packet {
        let mut plan = shape.plan(sa.keys.suite(), sa.seal);
        plan.open.session = sa.open;
        let plain = dice.bytes(plan.len);
        let mut sealed = plain.clone();
        reference::seal(&sa.keys, &plan.seal, &mut sealed);
        let mut opened = sealed.clone();
        Plan::put(&mut opened, plan.open.cipher.start, &plain[plan.open.cipher.range()]);
        Packet { plan, plain, sealed, opened }
    }
}

fn random_shape(suite: Suite, dice: &mut Dice) -> Shape {
    let nested = dice.chance(2);
    let seq_hi = dice.chance(2).then(|| dice.next() as u32);
    // Mostly ESP's headers. Beyond them an AEAD has seldom much AAD, and an ESN needs an SPI.
    let auth = match dice.below(4) {
        0 => dice.between(4, aad_max(suite)),
        1 if suite.covers_text() => dice.between(if suite.is_aead() { 4 } else { 1 }, LEN_MAX),
        1 if seq_hi.is_none() => dice.between(0, 4),
        _ => 8,
    };
    let mut text = if dice.chance(4) { dice.between(0, 64) } else { dice.between(0, LEN_MAX) };
    if suite.is_chained() {
        text -= text % suite.iv_len() as u64;
    }
    let gaps = [(); 5].map(|()| dice.below(20) as usize);
    Shape { auth: auth as usize, text: text as usize, nested, seq_hi, order: dice.below(24) as usize, gaps }
}

/// The most AAD of which any suite like `suite` takes an ESN, or in AES-CCM anything.
fn aad_max(suite: Suite) -> u64 {
    match suite.cipher() {
        Cipher::AesCcm(_) => (Layout::CCM_AAD_MAX - JobSpec::SEQ_HI_LEN) as u64,
        _ => AAD_MAX,
    }
}

/// A case of any kind, with the kind's name.
fn random_case(sa: &Sa, dice: &mut Dice) -> (&'static str, Case) {
    let suite = sa.keys.suite();
    let shape = random_shape(suite, dice);
    let packet = Packet::new(sa, shape, dice);
    let shift = dice.below(16) as usize;
    let case = |word: &str, spec: JobSpec, before: &[u8], expect| {
        let name = format!("{word}, {suite}, {shape:?}");
        Case { name, spec, shift, before: before.to_vec(), expect }
    };
    let Plan { mut seal, mut open, .. } = packet.plan;
    if shape.nested && suite.suits_ah() && dice.chance(2) {
        // As in AH, the text is covered by the ICV and the job does not say where it is.
        let nothing = Span { start: dice.below(packet.plain.len() as u64) as u32, len: 0 };
        (seal.cipher, open.cipher) = (nothing, nothing);
    }
    match dice.below(20) {
        0..7 => ("seals", case("seal", seal, &packet.plain, Expect::Done(packet.sealed.clone()))),
        7..14 => ("opens", case("open", open, &packet.sealed, Expect::Done(packet.opened.clone()))),
        14..17 if suite.icv_len() > 0 => {
            let mut damaged = packet.sealed.clone();
            let bit = *dice.pick(&covered_bits(suite, &open));
            damaged[bit / 8] ^= 1 << (bit % 8);
            ("flipped bits", case(&format!("bit {bit} flipped"), open, &damaged, Expect::AuthFailed))
        }
        14..19 => {
            let (good, before, word) = match dice.chance(2) {
                true => (seal, &packet.plain, "seal"),
                false => (open, &packet.sealed, "open"),
            };
            let end = Case::buffer_end(before.len());
            let (why, bad) = *dice.pick(&bad_specs(suite, good, end));
            ("bad jobs", case(&format!("{word}, {why}"), bad, before, Expect::Failed))
        }
        _ => {
            let stray = JobSpec { session: *dice.pick(&UNKNOWN), ..seal };
            ("unknown sessions", case("unknown session", stray, &packet.plain, Expect::Failed))
        }
    }
}

/// The bits of a sealed packet that the ICV vouches for, and the ICV's own.
fn covered_bits(suite: Suite, open: &JobSpec) -> Vec<usize> {
    let field = |start: u32, len: usize| start as usize..start as usize + len;
    let mut bytes: Vec<usize> = field(open.icv, suite.icv_len()).collect();
    if suite.integrity() != Integrity::None {
        bytes.extend(open.auth.range());
    }
    // Nothing covers IV and text of a separate cipher but the auth span.
    if suite.is_aead() {
        bytes.extend(field(open.iv, suite.iv_len()));
    }
    if !suite.covers_text() {
        bytes.extend(open.cipher.range());
    }
    bytes.sort();
    bytes.dedup();
    bytes.into_iter().flat_map(|byte| 8 * byte..8 * byte + 8).collect()
}

/// Ways to spoil `good` so that it must fail, in a buffer that ends at `end`.
fn bad_specs(suite: Suite, good: JobSpec, end: u32) -> Vec<(&'static str, JobSpec)> {
    let (cipher, auth) = (good.cipher, good.auth);
    let wide = Span { start: u32::MAX, len: u32::MAX };
    let mut bad = vec![
        ("cipher starts behind the buffer", JobSpec { cipher: Span { start: end + 1, ..cipher }, ..good }),
        ("cipher ends behind the buffer", JobSpec { cipher: Span { len: end + 16, ..cipher }, ..good }),
        ("cipher wraps", JobSpec { cipher: Span { len: u32::MAX - 15, ..cipher }, ..good }),
        ("cipher is huge", JobSpec { cipher: wide, ..good }),
        ("auth starts behind the buffer", JobSpec { auth: Span { start: end + 1, ..auth }, ..good }),
        ("auth ends behind the buffer", JobSpec { auth: Span { len: end - auth.start + 1, ..auth }, ..good }),
        ("auth is huge", JobSpec { auth: wide, ..good }),
        ("IV reaches behind the buffer", JobSpec { iv: end - suite.iv_len() as u32 + 1, ..good }),
        ("IV far outside", JobSpec { iv: u32::MAX, ..good }),
        ("ICV reaches behind the buffer", JobSpec { icv: end - suite.icv_len() as u32 + 1, ..good }),
        ("ICV far outside", JobSpec { icv: u32::MAX, ..good }),
    ];
    // What has no length overlaps nothing.
    let (has_iv, has_icv) = (suite.iv_len() > 0, suite.icv_len() > 0);
    if cipher.len > 0 && has_icv {
        bad.push(("ICV in the text", JobSpec { icv: cipher.start + cipher.len - 1, ..good }));
    }
    if suite.is_chained() && cipher.len > 0 {
        bad.push(("no whole blocks", JobSpec { cipher: Span { len: cipher.len - 1, ..cipher }, ..good }));
    }
    if has_iv && has_icv {
        bad.push(("ICV on the IV", JobSpec { icv: good.iv, ..good }));
    }
    if auth.len > 0 && has_icv {
        bad.push(("ICV on what it covers", JobSpec { icv: auth.start, ..good }));
    }
    if cipher.len > 1 && has_iv {
        // A chain that is sealed starts at its IV, and all others are apart from it.
        bad.push(("IV amid the text", JobSpec { iv: cipher.start + 1, ..good }));
    }
    bad.extend(match (suite.integrity(), suite.cipher()) {
        (Integrity::None, _) => vec![],
        (Integrity::Combined, Cipher::AesGmac(_)) => bad_esn(good),
        (Integrity::Combined, _) => bad_aad(suite, good, end),
        _ => bad_cover(suite, good, end),
    });
    bad
}

/// Ways to have no room for an ESN in an AAD.
fn bad_esn(good: JobSpec) -> Vec<(&'static str, JobSpec)> {
    let esn = |auth| JobSpec { auth, seq_hi: Some(0), ..good };
    vec![("ESN without SPI", esn(Span { len: 3, ..good.auth })), ("ESN without AAD", esn(Span::default()))]
}

/// Ways to spoil the AAD of an AEAD that enciphers.
fn bad_aad(suite: Suite, good: JobSpec, end: u32) -> Vec<(&'static str, JobSpec)> {
    let mut bad = bad_esn(good);
    // Longer ones lie behind the packet, where nothing is in their way.
    let behind = |len| JobSpec { auth: Span { start: end - len, len }, ..good };
    let too_long = aad_max(suite) as u32 + 1;
    for (why, len) in [("ESN with too much AAD", too_long), ("ESN with far too much AAD", 4 * too_long)] {
        bad.push((why, JobSpec { seq_hi: Some(0), ..behind(len) }));
    }
    if let Cipher::AesCcm(_) = suite.cipher() {
        let len = Layout::CCM_AAD_MAX as u32 + 1;
        bad.push(("too much AAD", JobSpec { seq_hi: None, ..behind(len) }));
    }
    if good.cipher.len > 0 {
        let inside = Span { start: good.cipher.start, len: 4 };
        bad.push(("AAD in the text", JobSpec { auth: inside, ..good }));
    }
    bad
}

/// Ways to spoil what a separate algorithm covers.
fn bad_cover(suite: Suite, good: JobSpec, end: u32) -> Vec<(&'static str, JobSpec)> {
    let esn = |auth| JobSpec { auth, seq_hi: Some(0), ..good };
    let mut bad = vec![
        ("nothing covered", JobSpec { auth: Span { len: 0, ..good.auth }, ..good }),
        ("nothing covered but the ESN", esn(Span { len: 0, ..good.auth })),
        ("no room for the ESN", esn(Span { start: end - 8, len: 8 })),
        ("room for three bytes of the ESN", esn(Span { start: end - 8, len: 5 })),
    ];
    if suite.iv_len() > 0 {
        bad.push(("ESN in the IV", esn(Span { start: good.iv, len: 1 })));
    }
    if good.cipher.len > 1 {
        bad.push(("ESN in the text", esn(Span { start: good.cipher.start, len: 1 })));
    }
    bad
}

/// An ESP packet of `sa`, once as it is and once with each bit wrong that the ICV covers, the
/// bits of the number's high half, which is not in the packet, included.
fn every_bit(sa: &Sa, dice: &mut Dice) -> Vec<Case> {
    let (suite, high) = (sa.keys.suite(), dice.next() as u32);
    let shape = Shape { seq_hi: Some(high), ..Shape::esp(8, 32) };
    let packet = Packet::new(sa, shape, dice);
    let open = packet.plan.open;
    let case = |word: String, seq_hi, before: &[u8], expect| Case {
        name: format!("{word}, {suite}"),
        spec: JobSpec { seq_hi, ..open },
        shift: 0,
        before: before.to_vec(),
        expect,
    };
    let mut cases =
        vec![case("as it is".into(), Some(high), &packet.sealed, Expect::Done(packet.opened.clone()))];
    if suite.icv_len() == 0 {
        return cases;
    }
    for bit in covered_bits(suite, &open) {
        let mut damaged = packet.sealed.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        cases.push(case(format!("bit {bit} flipped"), Some(high), &damaged, Expect::AuthFailed));
    }
    for bit in 0..32 {
        let wrong = Some(high ^ 1 << bit);
        cases.push(case(format!("ESN bit {bit} flipped"), wrong, &packet.sealed, Expect::AuthFailed));
    }
    cases.push(case("without its ESN".into(), None, &packet.sealed, Expect::AuthFailed));
    cases
}

/// A session opened again has the new keys only, and a closed one is unknown.
fn replace_and_close(sa: &Sa, rig: &mut Rig, dice: &mut Dice) {
    let suite = sa.keys.suite();
    let new = Sa { keys: dice.keys(suite), ..*sa };
    let [old_packet, new_packet] = [sa, &new].map(|sa| Packet::new(sa, Shape::esp(8, 64), dice));
    let case = |word: &str, packet: &Packet, expect| Case {
        name: format!("{word}, {suite}"),
        spec: packet.plan.open,
        shift: 0,
        before: packet.sealed.clone(),
        expect,
    };
    let opened = |packet: &Packet| Expect::Done(packet.opened.clone());
    rig.check(&[case("before it is replaced", &old_packet, opened(&old_packet))]);
    rig.open(sa.open, &new.keys, Direction::Open);
    rig.check(&[case("new keys", &new_packet, opened(&new_packet))]);
    if suite.icv_len() > 0 {
        rig.check(&[case("old keys", &old_packet, Expect::AuthFailed)]);
    }
    rig.close(sa.open);
    UNKNOWN.iter().for_each(|&id| rig.close(id));
    rig.check(&[case("closed", &new_packet, Expect::Failed)]);
}

/// Random numbers from a seed: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    fn chance(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| (self.next() >> 32) as u8).collect()
    }

    fn keys(&mut self, suite: Suite) -> SaKeys {
        let key = SecretBytes::new(self.bytes(suite.cipher_key_len() + suite.salt_len()));
        let auth_key = SecretBytes::new(self.bytes(suite.integrity_key_len()));
        SaKeys::new(suite, &key, &auth_key).expect("keys of the suite's lengths")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is called good keeps to the contract's rules, and what is called bad breaks them.
    #[test]
    fn good_jobs_are_good_and_bad_ones_bad() {
        let mut dice = Dice(7);
        for suite in (0..100).flat_map(|_| Suite::all()) {
            let Plan { seal, open, len } = random_shape(suite, &mut dice).plan(suite, SessionId(0));
            let end = Case::buffer_end(len);
            for (good, direction) in [(seal, Direction::Seal), (open, Direction::Open)] {
                let check = |spec| Layout::check(&spec, suite, direction, end as usize);
                assert!(check(good).is_some(), "{suite} {good:?}");
                for (why, bad) in bad_specs(suite, good, end) {
                    assert!(check(bad).is_none(), "{suite}, {why}: {bad:?}");
                }
            }
        }
    }
}
