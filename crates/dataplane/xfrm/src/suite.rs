//! From the kernel's names of algorithms to suites and keys.

use forebay_crypto::{SaKeys, SecretBytes, Suite};

use crate::Refusal;
use crate::kernel::{Algorithm, KernelSa};

/// Suite and keys of an SA.
pub fn suite_and_keys(sa: &KernelSa) -> Result<(Suite, SaKeys), Refusal> {
    let none = SecretBytes::new(Vec::new());
    let (proposal, key, auth_key) = match (&sa.aead, &sa.cipher, &sa.integrity) {
        (Some(aead), _, _) => (combined(aead)?, &aead.key, &none),
        (None, cipher, integrity) => {
            let name = match cipher {
                Some(cipher) => self::cipher(cipher)?,
                None => "null".to_owned(),
            };
            let proposal = match integrity {
                Some(algorithm) if algorithm.name != "digest_null" => {
                    format!("{name}-{}", self::integrity(algorithm)?)
                }
                _ => name,
            };
            let key = cipher.as_ref().map_or(&none, |cipher| &cipher.key);
            (proposal, key, integrity.as_ref().map_or(&none, |integrity| &integrity.key))
        }
    };
    if [key, auth_key].iter().any(|key| is_hidden(key)) {
        return Err(Refusal::KeysHidden);
    }
    let suite: Suite = proposal.parse().map_err(|_| Refusal::Algorithm(proposal))?;
    let keys = SaKeys::new(suite, key, auth_key).map_err(Refusal::Key)?;
    Ok((suite, keys))
}

/// A kernel under lockdown shows keys as zeros.
fn is_hidden(key: &SecretBytes) -> bool {
    !key.expose().is_empty() && key.expose().iter().all(|&byte| byte == 0)
}

/// The word for a cipher that authenticates.
fn combined(algorithm: &Algorithm) -> Result<String, Refusal> {
    let unknown = || Refusal::Algorithm(shown(algorithm));
    // With its salt: 4 bytes, 3 for CCM.
    let len = algorithm.key.expose().len();
    let bits = |salt: usize| Some(8 * len.checked_sub(salt)?);
    let icv = match algorithm.icv_bits {
        Some(bits) if bits % 8 == 0 => bits / 8,
        _ => return Err(unknown()),
    };
    match (algorithm.name.as_str(), icv) {
        ("rfc4106(gcm(aes))", _) => bits(4).map(|bits| format!("aes{bits}gcm{icv}")),
        ("rfc4309(ccm(aes))", _) => bits(3).map(|bits| format!("aes{bits}ccm{icv}")),
        ("rfc4543(gcm(aes))", 16) => bits(4).map(|bits| format!("aes{bits}gmac")),
        ("rfc7539esp(chacha20,poly1305)", 16) => Some("chacha20poly1305".to_owned()),
        _ => None,
    }
    .ok_or_else(unknown)
}

/// The word for a cipher alone.
fn cipher(algorithm: &Algorithm) -> Result<String, Refusal> {
    let len = algorithm.key.expose().len();
    match algorithm.name.as_str() {
        "cbc(aes)" | "aes" => Some(format!("aes{}", 8 * len)),
        // With a nonce of 4 bytes.
        "rfc3686(ctr(aes))" => len.checked_sub(4).map(|len| format!("aes{}ctr", 8 * len)),
        "cbc(des3_ede)" | "des3_ede" => Some("3des".to_owned()),
        "ecb(cipher_null)" | "cipher_null" => Some("null".to_owned()),
        _ => None,
    }
    .ok_or_else(|| Refusal::Algorithm(shown(algorithm)))
}

/// The word for an integrity algorithm, if its ICV is as long as the RFC has it.
fn integrity(algorithm: &Algorithm) -> Result<&'static str, Refusal> {
    // Without a length the kernel's own holds, which for SHA-256 is a draft's.
    let (word, bits, own) = match algorithm.name.as_str() {
        "hmac(md5)" | "md5" => ("md5", 96, 96),
        "hmac(sha1)" | "sha1" => ("sha1", 96, 96),
        "hmac(sha256)" | "sha256" => ("sha256", 128, 96),
        "hmac(sha384)" => ("sha384", 192, 192),
        "hmac(sha512)" => ("sha512", 256, 256),
        "xcbc(aes)" => ("aesxcbc", 96, 96),
        "cmac(aes)" => ("aescmac", 96, 96),
        _ => return Err(Refusal::Algorithm(shown(algorithm))),
    };
    if algorithm.icv_bits.unwrap_or(own) != bits {
        return Err(Refusal::Algorithm(shown(algorithm)));
    }
    Ok(word)
}

fn shown(algorithm: &Algorithm) -> String {
    let bits = 8 * algorithm.key.expose().len();
    match algorithm.icv_bits {
        Some(icv) => format!("{} with a key of {bits} bits and an ICV of {icv}", algorithm.name),
        None => format!("{} with a key of {bits} bits", algorithm.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn algorithm(name: &str, key: usize, icv_bits: Option<u32>) -> Algorithm {
        Algorithm { name: name.to_owned(), key: SecretBytes::new(vec![7; key]), icv_bits }
    }

    #[test]
    fn names_of_the_kernel_are_words_of_proposals() {
        for (name, key, icv, word) in [
            ("rfc4106(gcm(aes))", 20, 128, "aes128gcm16"),
            ("rfc4106(gcm(aes))", 36, 64, "aes256gcm8"),
            ("rfc4309(ccm(aes))", 27, 96, "aes192ccm12"),
            ("rfc4543(gcm(aes))", 20, 128, "aes128gmac"),
            ("rfc7539esp(chacha20,poly1305)", 36, 128, "chacha20poly1305"),
        ] {
            let word_found = combined(&algorithm(name, key, Some(icv))).unwrap();
            assert_eq!(word_found, word);
            let suite: Suite = word.parse().unwrap();
            assert_eq!(suite.cipher_key_len() + suite.salt_len(), key);
        }
        for (name, key, word) in [
            ("cbc(aes)", 24, "aes192"),
            ("rfc3686(ctr(aes))", 36, "aes256ctr"),
            ("cbc(des3_ede)", 24, "3des"),
            ("ecb(cipher_null)", 0, "null"),
        ] {
            assert_eq!(cipher(&algorithm(name, key, None)).unwrap(), word);
        }
    }

    #[test]
    fn what_is_cut_otherwise_is_refused() {
        assert_eq!(integrity(&algorithm("hmac(sha256)", 32, Some(128))).unwrap(), "sha256");
        // What Linux does by itself (draft-ietf-ipsec-ciph-sha-256-00).
        for icv in [Some(96), None] {
            assert!(integrity(&algorithm("hmac(sha256)", 32, icv)).is_err());
        }
        assert_eq!(integrity(&algorithm("hmac(sha1)", 20, None)).unwrap(), "sha1");
        assert!(combined(&algorithm("rfc4543(gcm(aes))", 20, Some(64))).is_err());
        assert!(combined(&algorithm("rfc4106(gcm(aes))", 3, Some(128))).is_err());
    }
}
