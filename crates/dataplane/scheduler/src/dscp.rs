//! From the DS field of a packet to its service class (RFC 2474, RFC 4594).

/// Class of what must not wait: voice, video conferences, signalling, routing.
pub const REAL_TIME: u8 = 0;
/// Class of what a person or a program waits for: transactions, streams, management.
pub const INTERACTIVE: u8 = 1;
/// Class of everything else: best effort, file transfers, backups.
pub const BULK: u8 = 2;

/// A table from DSCP to service class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DscpMap {
    classes: [u8; 64],
}

impl DscpMap {
    /// Three classes after RFC 4594's service classes (its figure 3), grouped as RFC 5127 does:
    ///
    /// | class | service classes of RFC 4594 | code points |
    /// |---|---|---|
    /// | [`REAL_TIME`] | network control; telephony, with RFC 5865's admitted one; signalling; multimedia conferencing; real-time interactive; broadcast video | CS7, CS6; EF, VA; CS5; AF41-43; CS4; CS3 |
    /// | [`INTERACTIVE`] | multimedia streaming; low-latency data; operations and management | AF31-33; AF21-23; CS2 |
    /// | [`BULK`] | high-throughput data; standard; low-priority data; lower effort (RFC 8622); code points without a meaning | AF11-13; DF; CS1; LE; the rest |
    ///
    /// It differs from RFC 5127 in one place: high-throughput data, which RFC 4594 says are stored and
    /// forwarded, go with the bulk.
    pub const fn rfc4594() -> DscpMap {
        const URGENT: [u8; 10] = [56, 48, 46, 44, 40, 38, 36, 34, 32, 24];
        const PROMPT: [u8; 7] = [30, 28, 26, 22, 20, 18, 16];
        let mut classes = [BULK; 64];
        let mut at = 0;
        while at < URGENT.len() {
            classes[URGENT[at] as usize] = REAL_TIME;
            at += 1;
        }
        at = 0;
        while at < PROMPT.len() {
            classes[PROMPT[at] as usize] = INTERACTIVE;
            at += 1;
        }
        DscpMap { classes }
    }

    /// A code point by its name in RFC 2474, 2597, 3246, 5865 or 8622, in upper or lower case: `EF`, `VA`, `LE`,
    /// `DF`, `CS0` to `CS7`, `AF11` to `AF43`.
    pub fn code_point(name: &str) -> Option<u8> {
        let name = name.to_ascii_uppercase();
        let digit = |text: &str, most: u8| text.parse::<u8>().ok().filter(|digit| *digit <= most);
        match name.as_str() {
            "EF" => Some(46),
            "VA" => Some(44),
            "LE" => Some(1),
            "DF" => Some(0),
            _ => match name.split_at_checked(2)? {
                ("CS", class) if class.len() == 1 => Some(digit(class, 7)? << 3),
                ("AF", rest) if rest.len() == 2 => {
                    let (class, precedence) = rest.split_at_checked(1)?;
                    let (class, precedence) = (digit(class, 4)?, digit(precedence, 3)?);
                    (class > 0 && precedence > 0).then_some(class << 3 | precedence << 1)
                }
                _ => None,
            },
        }
    }

    /// Everything in one class.
    pub const fn one_class(class: u8) -> DscpMap {
        DscpMap { classes: [class; 64] }
    }

    /// The class of a code point; bits above the sixth are not looked at.
    #[inline]
    pub const fn class(&self, dscp: u8) -> u8 {
        self.classes[(dscp & 63) as usize]
    }

    /// The class by a whole octet of an IP header, the DS field and ECN's two bits: IPv4's second
    /// octet, IPv6's traffic class.
    #[inline]
    pub const fn class_of_octet(&self, octet: u8) -> u8 {
        self.class(octet >> 2)
    }

    /// Puts a code point into another class; bits above the sixth are not looked at.
    pub const fn set(&mut self, dscp: u8, class: u8) {
        self.classes[(dscp & 63) as usize] = class;
    }

    /// How many classes it takes: one more than the highest number.
    pub fn classes(&self) -> usize {
        usize::from(self.classes.into_iter().max().unwrap_or(0)) + 1
    }
}

impl Default for DscpMap {
    /// [`DscpMap::rfc4594`].
    fn default() -> DscpMap {
        DscpMap::rfc4594()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figure 3 of RFC 4594, with the code points in binary as they are printed there.
    #[test]
    fn the_code_points_of_rfc_4594_are_where_they_belong() {
        let map = DscpMap::default();
        let figure: [(&str, u8, &[u8]); 12] = [
            ("network control", REAL_TIME, &[0b110000]),
            ("telephony", REAL_TIME, &[0b101110]),
            ("signaling", REAL_TIME, &[0b101000]),
            ("multimedia conferencing", REAL_TIME, &[0b100010, 0b100100, 0b100110]),
            ("real-time interactive", REAL_TIME, &[0b100000]),
            ("multimedia streaming", INTERACTIVE, &[0b011010, 0b011100, 0b011110]),
            ("broadcast video", REAL_TIME, &[0b011000]),
            ("low-latency data", INTERACTIVE, &[0b010010, 0b010100, 0b010110]),
            ("OAM", INTERACTIVE, &[0b010000]),
            ("high-throughput data", BULK, &[0b001010, 0b001100, 0b001110]),
            ("standard", BULK, &[0b000000]),
            ("low-priority data", BULK, &[0b001000]),
        ];
        let mut named = vec![];
        for (name, class, points) in figure {
            for &point in points {
                assert_eq!(map.class(point), class, "{name} {point:06b}");
                named.push(point);
            }
        }
        // Later RFCs: voice-admit (5865) and lower effort (8622); CS7 is network control's too.
        for (point, class) in [(0b101100, REAL_TIME), (0b000001, BULK), (0b111000, REAL_TIME)] {
            assert_eq!(map.class(point), class);
            named.push(point);
        }
        assert!((0..64).filter(|point| !named.contains(point)).all(|point| map.class(point) == BULK));
        assert_eq!(map.classes(), 3);
    }

    #[test]
    fn names_are_those_of_the_rfcs() {
        let named = [("EF", 46), ("va", 44), ("LE", 1), ("DF", 0), ("CS0", 0), ("CS6", 48), ("CS7", 56)];
        // RFC 2597 6: AF11 is 001010, AF23 is 010110, AF42 is 100100.
        for (name, point) in
            named.into_iter().chain([("AF11", 0b001010), ("AF23", 0b010110), ("af42", 0b100100)])
        {
            assert_eq!(DscpMap::code_point(name), Some(point), "{name}");
        }
        for wrong in ["", "E", "CS8", "CS", "AF10", "AF51", "AF111", "AF-1", "46", "CS\u{e9}", "\u{e9}\u{e9}"]
        {
            assert_eq!(DscpMap::code_point(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn ecn_is_not_part_of_the_code_point() {
        let mut map = DscpMap::default();
        for ecn in 0..4 {
            assert_eq!(map.class_of_octet(0xb8 | ecn), REAL_TIME);
        }
        map.set(46, 7);
        assert_eq!((map.class(46), map.classes()), (7, 8));
        assert_eq!(DscpMap::one_class(0).classes(), 1);
    }
}
