//! Where a job's parts are, checked once, before any byte is touched.

use std::ops::Range;

use crate::{Cipher, Direction, Integrity, JobSpec, Span, Suite};

/// The spans of a [`JobSpec`] as ranges that lie inside the buffer and do not get in each other's
/// way: what every processor asks of a job before it does it, so that all refuse the same ones.
/// Empty parts are `0..0`: where nothing is does not matter, as long as it is inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// What the cipher works on.
    pub cipher: Range<usize>,
    /// What only integrity covers (AEAD), or all that integrity covers.
    pub auth: Range<usize>,
    /// The IV field; for a chained cipher when sealing it is the begin of `cipher`.
    pub iv: Range<usize>,
    /// The ICV.
    pub icv: Range<usize>,
}

impl Layout {
    /// Longest AAD that takes the high half of a sequence number where text is enciphered, in bytes;
    /// ESP's has 8. Backends put the two together on the stack, so there is a limit, one for all of them.
    pub const ESN_AAD_MAX: usize = 60;

    /// Longest AAD of AES-CCM, the high half of a sequence number included, in bytes: the three blocks
    /// of it that libipsec-mb lays out, less the length in front (RFC 3610 2.2). ESP's has 8 or 12.
    pub const CCM_AAD_MAX: usize = 46;

    /// Checks `spec` against a buffer of `size` bytes: `None` if it breaks one of the rules that
    /// stand at [`JobSpec`].
    #[inline]
    pub fn check(spec: &JobSpec, suite: Suite, direction: Direction, size: usize) -> Option<Layout> {
        let layout = Layout {
            cipher: inside(spec.cipher, size)?,
            auth: inside(spec.auth, size)?,
            iv: field(spec.iv, suite.iv_len(), size)?,
            icv: field(spec.icv, suite.icv_len(), size)?,
        };
        let Layout { cipher, auth, iv, icv } = &layout;
        let mut good = apart(icv, cipher) && apart(icv, auth) && apart(icv, iv);
        good &= match direction {
            Direction::Seal if suite.is_chained() => cipher.is_empty() || cipher.start == iv.start,
            _ => apart(iv, cipher),
        };
        if suite.is_chained() {
            good &= cipher.len().is_multiple_of(suite.iv_len());
        }
        good &= match (suite.integrity(), suite.cipher()) {
            (Integrity::None, _) => true,
            (Integrity::Combined, Cipher::AesGmac(_)) => spec.seq_hi.is_none() || auth.len() >= 4,
            (Integrity::Combined, Cipher::AesCcm(_)) => {
                let high = if spec.seq_hi.is_some() { JobSpec::SEQ_HI_LEN } else { 0 };
                apart(auth, cipher) && aad_takes_esn(spec) && auth.len() + high <= Layout::CCM_AAD_MAX
            }
            (Integrity::Combined, _) => apart(auth, cipher) && aad_takes_esn(spec),
            _ => !auth.is_empty() && layout.esn_has_room(spec, size),
        };
        good.then_some(layout)
    }

    /// Whether the job of an AEAD that enciphers, but not of AES-CCM, has its parts in the order of every
    /// ESP packet (AAD, IV, text, ICV), which is all that [`Layout::check`] asks of it: one quick look
    /// before that long one. The lengths are those of the suite, which a session knows better than a
    /// [`Suite`] does.
    #[inline]
    pub fn aead_in_esp_order(spec: &JobSpec, iv_len: usize, icv_len: usize, size: usize) -> bool {
        // The sign of each gap tells whether parts overlap; all values are far below 2^63.
        let gap = |from: u64, to: u64| to.wrapping_sub(from) as i64;
        let (iv, icv) = (u64::from(spec.iv), u64::from(spec.icv));
        let gaps = gap(end(spec.auth), iv)
            | gap(iv + iv_len as u64, u64::from(spec.cipher.start))
            | gap(end(spec.cipher), icv)
            | gap(icv + icv_len as u64, size as u64);
        gaps >= 0 && aad_takes_esn(spec)
    }

    /// Whether the sequence number's high half may stand behind what a separate algorithm covers.
    #[inline]
    fn esn_has_room(&self, spec: &JobSpec, size: usize) -> bool {
        let high = self.auth.end..self.auth.end + JobSpec::SEQ_HI_LEN;
        spec.seq_hi.is_none() || high.end <= size && apart(&high, &self.cipher) && apart(&high, &self.iv)
    }
}

/// Whether there is no ESN, or an SPI in front of it and not too much behind (RFC 4106 5).
#[inline]
fn aad_takes_esn(spec: &JobSpec) -> bool {
    spec.seq_hi.is_none() || (4..=Layout::ESN_AAD_MAX).contains(&(spec.auth.len as usize))
}

/// In 64 bits, because begin and length may be such that their sum wraps in 32.
#[inline]
fn end(span: Span) -> u64 {
    u64::from(span.start) + u64::from(span.len)
}

/// `span` as a range if all of it is below `size`.
#[inline]
fn inside(span: Span, size: usize) -> Option<Range<usize>> {
    if end(span) > size as u64 {
        return None;
    }
    Some(if span.len == 0 { 0..0 } else { span.range() })
}

#[inline]
fn field(start: u32, len: usize, size: usize) -> Option<Range<usize>> {
    inside(Span { start, len: len as u32 }, size)
}

#[inline]
fn apart(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.end <= b.start || b.end <= a.start
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SessionId;
    use proptest::prelude::*;

    const SPEC: JobSpec = JobSpec {
        session: SessionId(0),
        cipher: Span { start: 16, len: 32 },
        iv: 8,
        auth: Span { start: 0, len: 8 },
        icv: 48,
        seq_hi: None,
    };

    fn suite(proposal: &str) -> Suite {
        proposal.parse().expect("a proposal")
    }

    fn gcm(spec: JobSpec) -> bool {
        Layout::check(&spec, suite("aes128gcm16"), Direction::Seal, 64).is_some()
    }

    /// Opens with a separate algorithm that covers `auth`, and an ESN.
    fn separate_esn(auth: Range<u32>, size: usize) -> bool {
        let auth = Span { start: auth.start, len: auth.end - auth.start };
        let spec = JobSpec { auth, seq_hi: Some(1), ..SPEC };
        Layout::check(&spec, suite("aes128ctr-sha1"), Direction::Open, size).is_some()
    }

    #[test]
    fn parts_reach_to_the_last_byte_and_no_further() {
        assert!(gcm(SPEC));
        assert!(!gcm(JobSpec { icv: 49, ..SPEC }));
        assert!(gcm(JobSpec { cipher: Span { start: 64, len: 0 }, ..SPEC }));
        assert!(!gcm(JobSpec { cipher: Span { start: 65, len: 0 }, ..SPEC }));
        assert!(!gcm(JobSpec { auth: Span { start: 8, len: u32::MAX }, ..SPEC }));
        assert!(!gcm(JobSpec { cipher: Span { start: u32::MAX, len: u32::MAX }, ..SPEC }));
        assert!(!gcm(JobSpec { iv: u32::MAX, ..SPEC }));
    }

    #[test]
    fn parts_do_not_overlap() {
        assert!(!gcm(JobSpec { icv: 47, ..SPEC }), "ICV in the cipher text");
        assert!(!gcm(JobSpec { auth: Span { start: 0, len: 17 }, ..SPEC }), "AAD in the cipher text");
        assert!(!gcm(JobSpec { iv: 9, ..SPEC }), "IV in the cipher text");
        assert!(gcm(JobSpec { iv: 4, ..SPEC }), "an IV that is authenticated as well (RFC 4543) is fine");
        assert!(gcm(JobSpec { auth: Span { start: 20, len: 0 }, ..SPEC }), "nothing overlaps nothing");
    }

    #[test]
    fn an_esn_needs_an_spi_in_front_and_not_too_much_behind() {
        let long = |len| JobSpec {
            seq_hi: Some(1),
            cipher: Span { start: 100, len: 32 },
            iv: 92,
            auth: Span { start: 0, len },
            icv: 132,
            ..SPEC
        };
        let lens: Vec<u32> = (0..92)
            .filter(|&len| Layout::check(&long(len), suite("aes128gcm16"), Direction::Seal, 148).is_some())
            .collect();
        assert_eq!(lens, (4..=60).collect::<Vec<u32>>());
    }

    #[test]
    fn a_separate_esn_may_stand_on_the_icv_but_not_on_iv_and_text() {
        assert!(separate_esn(0..48, 60), "on the ICV, as in ESP");
        assert!(!separate_esn(0..46, 60), "two bytes on the text");
        assert!(separate_esn(0..4, 60), "in front of the IV");
        assert!(!separate_esn(0..5, 60), "on the IV");
        assert!(separate_esn(60..61, 65), "the last four bytes of the buffer");
        assert!(!separate_esn(60..61, 64), "one of them outside");
    }

    #[test]
    fn a_separate_algorithm_covers_something() {
        let check = |proposal, len| {
            let spec = JobSpec { auth: Span { start: 0, len }, ..SPEC };
            Layout::check(&spec, suite(proposal), Direction::Seal, 64).is_some()
        };
        assert!(check("aes128gcm16", 0), "the cipher itself covers the text");
        assert!(check("aes128ctr-sha1", 1));
        assert!(!check("aes128ctr-sha1", 0));
    }

    fn check(proposal: &str, spec: JobSpec) -> bool {
        Layout::check(&spec, suite(proposal), Direction::Seal, 256).is_some()
    }

    #[test]
    fn gmac_covers_text_and_iv_however_long() {
        let esp = JobSpec { auth: Span { start: 0, len: 48 }, ..SPEC };
        assert!(check("aes128gmac", esp) && check("aes128gmac", JobSpec { seq_hi: Some(1), ..esp }));
        let ah = JobSpec { cipher: Span::default(), auth: Span { start: 16, len: 240 }, icv: 0, ..SPEC };
        assert!(check("aes256gmac", JobSpec { iv: 40, ..ah }), "the IV inside the image");
        assert!(!check("aes256gmac", JobSpec { icv: 1, ..ah }), "the ICV inside");
        assert!(check("aes256gmac", JobSpec { auth: Span::default(), ..SPEC }), "nothing but the IV");
        let short = JobSpec { auth: Span { start: 0, len: 3 }, ..SPEC };
        assert!(!check("aes256gmac", JobSpec { seq_hi: Some(1), ..short }), "no SPI in front of the ESN");
    }

    #[test]
    fn ccm_takes_no_more_aad_than_fits_three_blocks() {
        let spec = |len, seq_hi| JobSpec { auth: Span { start: 120, len }, seq_hi, ..SPEC };
        assert!(check("aes128ccm16", spec(46, None)) && !check("aes128ccm16", spec(47, None)));
        assert!(check("aes128ccm16", spec(42, Some(1))) && !check("aes128ccm16", spec(43, Some(1))));
    }

    #[test]
    fn a_chain_has_blocks_as_long_as_its_iv() {
        let spec =
            |start, len| JobSpec { cipher: Span { start, len }, auth: Span { start: 0, len: 8 }, ..SPEC };
        assert!(check("3des-sha1", spec(8, 40)) && check("3des-sha1", spec(8, 24)));
        assert!(!check("3des-sha1", spec(8, 36)), "half a block");
        assert!(!check("3des-sha1", spec(16, 32)), "not at the IV");
        assert!(!check("aes128-sha1", spec(8, 24)));
    }

    #[test]
    fn null_has_no_iv_and_what_nothing_covers_may_be_empty() {
        let spec = JobSpec { iv: 256, ..SPEC };
        assert!(check("null-sha1", spec) && !check("null-sha1", JobSpec { iv: 257, ..spec }));
        let bare = JobSpec { auth: Span::default(), seq_hi: Some(1), icv: 256, ..SPEC };
        assert!(check("aes128ctr", bare) && !check("aes128ctr", JobSpec { icv: 257, ..bare }));
        assert!(check("aes128ctr", JobSpec { auth: Span { start: 0, len: 256 }, ..bare }));
    }

    #[test]
    fn the_quick_look_takes_the_order_of_esp_and_no_other() {
        let quick = |spec: JobSpec| Layout::aead_in_esp_order(&spec, 8, 16, 64);
        assert!(quick(SPEC) && quick(JobSpec { seq_hi: Some(1), ..SPEC }));
        assert!(!quick(JobSpec { iv: 7, ..SPEC }) && !quick(JobSpec { iv: 9, ..SPEC }));
        assert!(!quick(JobSpec { icv: 47, ..SPEC }) && !quick(JobSpec { icv: 49, ..SPEC }));
        assert!(!quick(JobSpec { auth: Span { start: 8, len: u32::MAX - 7 }, ..SPEC }), "a sum that wraps");
        assert!(!quick(JobSpec { auth: Span { start: 0, len: 3 }, seq_hi: Some(1), ..SPEC }));
    }

    /// The rules of [`JobSpec`], each byte by byte.
    fn slow_and_obvious(spec: &JobSpec, suite: Suite, direction: Direction, size: u64) -> bool {
        let bytes = |start: u32, len: usize| u64::from(start)..u64::from(start) + len as u64;
        let part = |span: Span| bytes(span.start, span.len as usize);
        let share = |a: &Range<u64>, b: &Range<u64>| a.clone().any(|byte| b.contains(&byte));
        let (cipher, auth) = (part(spec.cipher), part(spec.auth));
        let (iv, icv) = (bytes(spec.iv, suite.iv_len()), bytes(spec.icv, suite.icv_len()));
        let high = auth.end..auth.end + 4 * u64::from(spec.seq_hi.is_some());
        let block = match suite.cipher() {
            Cipher::AesCbc(_) => 16,
            Cipher::TripleDesCbc => 8,
            _ => 1,
        };
        let sealed_chain = block > 1 && direction == Direction::Seal;
        let high_len = 4 * u32::from(spec.seq_hi.is_some());

        [&cipher, &auth, &iv, &icv].iter().all(|part| part.end <= size)
            && ![&cipher, &auth, &iv].iter().any(|part| share(part, &icv))
            && spec.cipher.len.is_multiple_of(block)
            && (sealed_chain || !share(&iv, &cipher))
            && (!sealed_chain || spec.cipher.len == 0 || cipher.start == iv.start)
            && match suite.to_string() {
                name if name.contains("gcm") || name.contains("ccm") || name.contains("poly") => {
                    !share(&auth, &cipher)
                        && (high_len == 0 || (4..=60).contains(&spec.auth.len))
                        && (!name.contains("ccm") || spec.auth.len + high_len <= 46)
                }
                name if name.contains("gmac") => high_len == 0 || spec.auth.len >= 4,
                name if name.contains('-') => {
                    spec.auth.len > 0 && high.end <= size && !share(&high, &cipher) && !share(&high, &iv)
                }
                _ => true,
            }
    }

    prop_compose! {
        /// Mostly near each other, and in about ESP's order; seldom anywhere.
        fn spec()(gaps in prop::array::uniform4(0u32..24), lens in prop::array::uniform2(0u32..70),
                  esn: bool, nested: bool, chain: bool, stray in 0u32..12, far: u32) -> JobSpec {
            let [before, iv_gap, text_gap, icv_gap] = gaps.map(|gap| gap.saturating_sub(12));
            let iv = before + lens[0] % 12 + iv_gap;
            let text = if chain { iv } else { iv + 8 + text_gap };
            let text_len = if chain { lens[1] & !7 } else { lens[1] };
            let auth_len = if nested { text + text_len - before } else { lens[0] };
            let mut spec = JobSpec {
                session: SessionId(0),
                cipher: Span { start: text, len: text_len },
                iv,
                auth: Span { start: before, len: auth_len },
                icv: text + text_len + icv_gap,
                seq_hi: esn.then_some(7),
            };
            match stray {
                0 => spec.cipher.start = far % 160,
                1 => spec.iv = far % 160,
                2 => spec.auth.start = far % 160,
                3 => spec.icv = far % 160,
                4 => spec.auth.len = far,
                5 => spec.icv = far,
                _ => {}
            }
            spec
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40_000))]

        #[test]
        fn the_check_is_what_the_rules_say(spec in spec(), size in 40usize..240, which in 0usize..85, seal: bool) {
            let suite = Suite::all().nth(which).expect("one of 85");
            let direction = if seal { Direction::Seal } else { Direction::Open };
            let found = Layout::check(&spec, suite, direction, size);
            prop_assert_eq!(found.is_some(), slow_and_obvious(&spec, suite, direction, size as u64));
        }

        #[test]
        fn the_quick_look_lets_nothing_through(spec in spec(), size in 40usize..240, which in 0usize..19) {
            let suite = Suite::all().nth(which).expect("the AEADs that encipher come first");
            let quick = !matches!(suite.cipher(), Cipher::AesCcm(_));
            if quick && Layout::aead_in_esp_order(&spec, suite.iv_len(), suite.icv_len(), size) {
                prop_assert!(Layout::check(&spec, suite, Direction::Open, size).is_some());
            }
        }
    }
}
