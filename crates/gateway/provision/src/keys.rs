//! Keys of the lengths that a suite requires, in hex.

use forebay_crypto::Suite;
use zeroize::Zeroizing;

use crate::Random;

/// The keys of one SA, in hex, as key files hold them.
pub struct Keys {
    /// The cipher key with the salt behind it; `None` for a suite without a cipher.
    pub key: Option<Zeroizing<String>>,
    /// The integrity key; `None` for a suite whose cipher authenticates.
    pub auth_key: Option<Zeroizing<String>>,
}

/// New keys for one SA with this suite.
pub fn keys(suite: Suite, random: Random<'_>) -> Keys {
    let key = hex(suite.cipher_key_len() + suite.salt_len(), random);
    Keys { key, auth_key: hex(suite.integrity_key_len(), random) }
}

/// `len` random bytes in hex, with a line end; `None` for no bytes.
pub(crate) fn hex(len: usize, random: Random<'_>) -> Option<Zeroizing<String>> {
    if len == 0 {
        return None;
    }
    let mut bytes = Zeroizing::new(vec![0; len]);
    random(&mut bytes);
    // Of the right size at once: a string that grows leaves copies behind.
    let mut text = Zeroizing::new(String::with_capacity(2 * len + 1));
    for byte in bytes.iter() {
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from(b"0123456789abcdef"[usize::from(digit)]));
        }
    }
    text.push('\n');
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_every_suite_have_its_lengths() {
        let mut next = 0_u8;
        let mut random = |bytes: &mut [u8]| {
            for byte in bytes {
                next = next.wrapping_add(77);
                *byte = next;
            }
        };
        for suite in Suite::all() {
            let made = keys(suite, &mut random);
            let len =
                |text: &Option<Zeroizing<String>>| text.as_ref().map_or(0, |text| text.trim_end().len() / 2);
            assert_eq!(len(&made.key), suite.cipher_key_len() + suite.salt_len(), "{suite}");
            assert_eq!(len(&made.auth_key), suite.integrity_key_len(), "{suite}");
        }
        assert_eq!(
            **hex(3, &mut |bytes| bytes.copy_from_slice(&[0, 0xfa, 0x5b])).as_ref().unwrap(),
            "00fa5b\n"
        );
    }
}
