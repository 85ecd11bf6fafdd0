//! The published vectors: read, laid out as jobs, run in both directions.

use forebay_crypto::{Cipher, Direction, Integrity, Processor, SaKeys, SecretBytes, SessionId, Suite};

use crate::case::{Case, Expect};
use crate::reference;
use crate::report::Report;
use crate::rig::Rig;
use crate::shape::{Plan, Shape};

/// How many jobs go to the processor at a time, each with a session of its own, so that backends
/// that work on several at once have unlike ones side by side.
const BURST: usize = 64;

/// What stands where a processor has to write.
const JUNK: u8 = 0xa5;

type Build = fn(&mut Builder<'_>, &[&str]) -> Result<(), Skip>;

/// Why a vector makes no job.
type Skip = &'static str;

const UNDECLARED: Skip = "the processor does not declare the suite";

const FILES: [(&str, &str, Build); 9] = [
    ("gcm.txt", include_str!("../data/gcm.txt"), |builder, fields| builder.gcm(fields)),
    ("chacha20poly1305.txt", include_str!("../data/chacha20poly1305.txt"), |builder, fields| {
        builder.chacha(fields)
    }),
    ("ccm.txt", include_str!("../data/ccm.txt"), |builder, fields| builder.ccm(fields)),
    ("gmac.txt", include_str!("../data/gmac.txt"), |builder, fields| builder.gmac(fields)),
    ("cbc.txt", include_str!("../data/cbc.txt"), |builder, fields| builder.cbc(fields)),
    ("3des.txt", include_str!("../data/3des.txt"), |builder, fields| builder.triple_des(fields)),
    ("ctr.txt", include_str!("../data/ctr.txt"), |builder, fields| builder.ctr(fields)),
    ("hmac.txt", include_str!("../data/hmac.txt"), |builder, fields| builder.mac(fields)),
    ("mac.txt", include_str!("../data/mac.txt"), |builder, fields| builder.mac(fields)),
];

/// Runs every published vector of the suites that the processor declares, a fresh processor for
/// each file of vectors. Panics at the first that comes out wrong, naming file and line.
pub fn check_all(make: &mut dyn FnMut() -> Box<dyn Processor>) -> Report {
    let mut report = Report::default();
    for (file, text, build) in FILES {
        let mut rig = Rig::new(make());
        let suites = rig.suites().to_vec();
        let (mut source, mut jobs) = ("", Vec::new());
        for (number, line) in text.lines().enumerate() {
            let (mark, rest) = line.split_once(' ').unwrap_or((line, ""));
            match mark {
                "@" => source = rest,
                "!" => {
                    let (n, why) = rest.split_once(' ').expect("a number and a reason");
                    report.add_skipped(source, n.parse().expect("a number"), why);
                }
                _ => {
                    let name = format!("data/{file}:{} ({source})", number + 1);
                    let fields: Vec<&str> = line.split(' ').collect();
                    let mut builder = Builder { name, number, suites: &suites, jobs: &mut jobs };
                    match build(&mut builder, &fields) {
                        Ok(()) => report.add_run(source, 1),
                        Err(why) => report.add_skipped(source, 1, why),
                    }
                }
            }
            if jobs.len() + 2 > BURST {
                flush(&mut rig, &mut jobs);
            }
        }
        flush(&mut rig, &mut jobs);
    }
    report
}

/// Runs the jobs collected so far, each in a session of its own.
fn flush(rig: &mut Rig, jobs: &mut Vec<(SaKeys, Direction, Case)>) {
    let mut cases = Vec::with_capacity(jobs.len());
    for (index, (keys, direction, mut case)) in jobs.drain(..).enumerate() {
        case.spec.session = SessionId(index as u32);
        rig.open(case.spec.session, &keys, direction);
        cases.push(case);
    }
    rig.check(&cases);
    for case in &cases {
        rig.close(case.spec.session);
    }
}

/// Makes jobs of one line's fields.
struct Builder<'a> {
    name: String,
    number: usize,
    suites: &'a [Suite],
    jobs: &'a mut Vec<(SaKeys, Direction, Case)>,
}

/// A vector in the contract's terms. Texts are without IV.
struct Vector<'a> {
    keys: SaKeys,
    auth: &'a [u8],
    /// What stands in the IV field before sealing, and after.
    iv: [&'a [u8]; 2],
    /// `None` if the ICV must be refused.
    plain: Option<&'a [u8]>,
    cipher: &'a [u8],
    /// `None` for that of the second opinion: the vector has none.
    icv: Option<&'a [u8]>,
}

impl Builder<'_> {
    fn gcm(&mut self, fields: &[&str]) -> Result<(), Skip> {
        let (key, tag) = (bytes(fields[0]), bytes(fields[5]));
        let cipher = Cipher::AesGcm(key.len() as u8);
        let suite = self.pick(|suite| suite.cipher() == cipher && suite.icv_len() == tag.len())?;
        self.aead(suite, fields)
    }

    fn ccm(&mut self, fields: &[&str]) -> Result<(), Skip> {
        let (key, tag) = (bytes(fields[0]), bytes(fields[5]));
        let cipher = Cipher::AesCcm(key.len() as u8);
        let suite = self.pick(|suite| suite.cipher() == cipher && suite.icv_len() == tag.len())?;
        self.aead(suite, fields)
    }

    fn gmac(&mut self, fields: &[&str]) -> Result<(), Skip> {
        let cipher = Cipher::AesGmac(bytes(fields[0]).len() as u8);
        let suite = self.pick(|suite| suite.cipher() == cipher)?;
        self.aead(suite, fields)
    }

    fn chacha(&mut self, fields: &[&str]) -> Result<(), Skip> {
        let suite = self.pick(|suite| suite.cipher() == Cipher::ChaCha20Poly1305)?;
        self.aead(suite, fields)
    }

    fn aead(&mut self, suite: Suite, fields: &[&str]) -> Result<(), Skip> {
        let [key, nonce, aad] = [0, 1, 2].map(|i| bytes(fields[i]));
        let (salt, iv) = nonce.split_at(suite.salt_len());
        let plain = (fields[3] != "x").then(|| bytes(fields[3]));
        self.add(Vector {
            keys: sa_keys(suite, &key, salt, &[]),
            auth: &aad,
            iv: [iv; 2],
            plain: plain.as_deref(),
            cipher: &bytes(fields[4]),
            icv: Some(&bytes(fields[5])),
        });
        Ok(())
    }

    fn cbc(&mut self, fields: &[&str]) -> Result<(), Skip> {
        let cipher = Cipher::AesCbc(bytes(fields[0]).len() as u8);
        self.chain(cipher, fields)
    }

    fn triple_des(&mut self, fields: &[&str]) -> Result<(), Skip> {
        self.chain(Cipher::TripleDesCbc, fields)
    }

    fn chain(&mut self, chained: Cipher, fields: &[&str]) -> Result<(), Skip> {
        let [key, iv, plain, cipher] = [0, 1, 2, 3].map(|i| bytes(fields[i]));
        let suite = self.pick(|suite| suite.cipher() == chained)?;
        let seed = reference::decrypt_block(chained, &key, &iv);
        self.add(Vector {
            keys: sa_keys(suite, &key, &[], &counting(suite.integrity_key_len())),
            auth: &counting(8),
            iv: [&seed, &iv],
            plain: Some(&plain),
            cipher: &cipher,
            icv: None,
        });
        Ok(())
    }

    fn ctr(&mut self, fields: &[&str]) -> Result<(), Skip> {
        let [key, nonce, plain, cipher] = [0, 1, 2, 3].map(|i| bytes(fields[i]));
        let suite = self.pick(|suite| suite.cipher() == Cipher::AesCtr(key.len() as u8))?;
        let (salt, iv) = nonce.split_at(suite.salt_len());
        self.add(Vector {
            keys: sa_keys(suite, &key, salt, &counting(suite.integrity_key_len())),
            auth: &counting(8),
            iv: [iv; 2],
            plain: Some(&plain),
            cipher: &cipher,
            icv: None,
        });
        Ok(())
    }

    fn mac(&mut self, fields: &[&str]) -> Result<(), Skip> {
        let integrity = match fields[0] {
            "md5" => Integrity::HmacMd5,
            "aesxcbc" => Integrity::AesXcbc,
            "aescmac" => Integrity::AesCmac,
            "sha1" => Integrity::HmacSha1,
            "sha256" => Integrity::HmacSha256,
            "sha384" => Integrity::HmacSha384,
            "sha512" => Integrity::HmacSha512,
            other => panic!("{}: no MAC of ours: {other}", self.name),
        };
        let suite = self.pick(|suite| suite.integrity() == integrity)?;
        let message = bytes(fields[2]);
        if message.is_empty() {
            return Err("message empty, which no packet is");
        }
        let (refused, tag) = match fields[3].strip_prefix('x') {
            Some(tag) => (true, tag),
            None => (false, fields[3]),
        };
        let [key, salt] = [suite.cipher_key_len(), suite.salt_len()].map(counting);
        let iv = counting(suite.iv_len());
        self.add(Vector {
            keys: sa_keys(suite, &key, &salt, &bytes(fields[1])),
            auth: &message,
            iv: [&iv; 2],
            plain: (!refused).then_some(&[]),
            cipher: &[],
            icv: Some(&bytes(tag)[..suite.icv_len()]),
        });
        Ok(())
    }

    /// One of the declared suites that fit, each in its turn.
    fn pick(&self, fits: impl Fn(&Suite) -> bool) -> Result<Suite, Skip> {
        let fitting: Vec<Suite> = self.suites.iter().copied().filter(fits).collect();
        let turn = self.number.checked_rem(fitting.len()).ok_or(UNDECLARED)?;
        Ok(fitting[turn])
    }

    /// The jobs of a vector: sealing and opening, or only opening if it must be refused.
    fn add(&mut self, vector: Vector<'_>) {
        let suite = vector.keys.suite();
        let n = self.number;
        let shape = Shape {
            // ICVs that the vector has cover the message alone; others cover what ESP's cover.
            nested: vector.icv.is_none(),
            gaps: [n % 3, n % 5, n % 2, n % 7, n % 4],
            ..Shape::esp(vector.auth.len(), vector.cipher.len())
        };
        let Plan { seal, open, len } = shape.plan(suite, SessionId(0));
        let mut sealed = vec![JUNK; len];
        Plan::put(&mut sealed, open.auth.start, vector.auth);
        Plan::put(&mut sealed, open.iv, vector.iv[1]);
        Plan::put(&mut sealed, open.cipher.start, vector.cipher);
        let icv = match vector.icv {
            Some(icv) => icv.to_vec(),
            None => reference::icv(&vector.keys, &sealed[open.auth.range()]),
        };
        Plan::put(&mut sealed, open.icv, &icv);
        let case = |word, spec, before, expect| {
            let name = format!("{}, {word} with {suite}", self.name);
            Case { name, spec, shift: n % 16, before, expect }
        };
        let Some(plain) = vector.plain else {
            let refused = case("refusing", open, sealed, Expect::AuthFailed);
            return self.jobs.push((vector.keys, Direction::Open, refused));
        };
        let mut opened = sealed.clone();
        Plan::put(&mut opened, open.cipher.start, plain);
        let mut unsealed = opened.clone();
        Plan::put(&mut unsealed, open.iv, vector.iv[0]);
        unsealed[open.icv as usize..][..icv.len()].fill(JUNK);
        let sealing = case("sealing", seal, unsealed, Expect::Done(sealed.clone()));
        let opening = case("opening", open, sealed, Expect::Done(opened));
        self.jobs.push((vector.keys.clone(), Direction::Seal, sealing));
        self.jobs.push((vector.keys, Direction::Open, opening));
    }
}

fn sa_keys(suite: Suite, key: &[u8], salt: &[u8], integrity: &[u8]) -> SaKeys {
    let key = SecretBytes::new([key, salt].concat());
    SaKeys::new(suite, &key, &SecretBytes::new(integrity.to_vec())).expect("keys of the suite's lengths")
}

/// Bytes that count from one, where a vector says nothing.
fn counting(len: usize) -> Vec<u8> {
    (1..=len as u8).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = if hex == "-" { "" } else { hex };
    assert!(digits.len().is_multiple_of(2), "whole bytes: {hex}");
    (0..digits.len() / 2)
        .map(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).expect("hex digits"))
        .collect()
}
