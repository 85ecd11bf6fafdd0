//! The kernel's algorithms by name.

use forebay_crypto::Suite;
use zeroize::Zeroizing;

/// An algorithm of a state, as it is printed.
#[derive(Clone, Debug)]
pub struct Algorithm {
    /// The kernel's name.
    pub name: String,
    /// The key in hex; `None` if it is hidden.
    pub key: Option<Zeroizing<String>>,
    /// Length of the ICV in bits, where it is printed.
    pub icv_bits: Option<u32>,
}

/// Reads `NAME KEY`, with `(n bits)` in between and the length of the ICV behind, where they are printed.
pub fn read(words: &[&str]) -> Result<Algorithm, String> {
    // A name may hold a space after a comma.
    let at = words.iter().position(|word| word.starts_with("0x") || word.starts_with("<<"));
    let at = at.ok_or("an algorithm without a key")?;
    let name = words[..at].concat();
    let hidden = words[at].starts_with("<<");
    let mut rest = &words[at + 1..];
    if hidden {
        // "<<Keys hidden>>", or several of its words.
        let end =
            words[at..].iter().position(|word| word.ends_with(">>")).map_or(words.len(), |end| at + end + 1);
        rest = &words[end.min(words.len())..];
    }
    if let [first, "bits)", behind @ ..] = rest
        && first.starts_with('(')
    {
        rest = behind;
    }
    let icv_bits = match rest {
        [] => None,
        [bits] => Some(bits.parse().map_err(|_| format!("`{bits}` is no length"))?),
        _ => return Err("an algorithm with more than a key and a length".to_owned()),
    };
    let key = (!hidden).then(|| Zeroizing::new(words[at].trim_start_matches("0x").to_owned()));
    Ok(Algorithm { name, key, icv_bits })
}

/// The suite of an AEAD, or of a cipher and an integrity algorithm, of which AH has none but the second.
pub fn suite(
    aead: Option<&Algorithm>,
    cipher: Option<&Algorithm>,
    auth: Option<&Algorithm>,
) -> Result<Suite, String> {
    let word = match (aead, cipher, auth) {
        (Some(aead), None, None) => combined(aead)?,
        (None, cipher, auth) => {
            let cipher = cipher.map_or(Ok("null".to_owned()), enciphering)?;
            match auth {
                Some(auth) => format!("{cipher}-{}", integrity(auth)?),
                None => cipher,
            }
        }
        _ => return Err("an AEAD beside other algorithms".to_owned()),
    };
    word.parse().map_err(|_| format!("`{word}` is not supported"))
}

/// Length of the key in bits, less that of the salt in bytes.
fn bits(algorithm: &Algorithm, salt: usize) -> Result<usize, String> {
    let hidden = || "the keys are hidden: print them as root, without `nokeys`".to_owned();
    let digits = algorithm.key.as_ref().ok_or_else(hidden)?.len();
    (4 * digits)
        .checked_sub(8 * salt)
        .filter(|&bits| bits > 0)
        .ok_or_else(|| "the key is too short".to_owned())
}

fn combined(aead: &Algorithm) -> Result<String, String> {
    let icv = aead.icv_bits.ok_or("the length of the ICV is missing")?;
    match aead.name.as_str() {
        "rfc4106(gcm(aes))" => Ok(format!("aes{}gcm{}", bits(aead, 4)?, icv / 8)),
        "rfc4309(ccm(aes))" => Ok(format!("aes{}ccm{}", bits(aead, 3)?, icv / 8)),
        "rfc4543(gcm(aes))" if icv == 128 => Ok(format!("aes{}gmac", bits(aead, 4)?)),
        "rfc7539esp(chacha20,poly1305)" if icv == 128 => Ok("chacha20poly1305".to_owned()),
        name => Err(format!("{name} with an ICV of {icv} bits is not supported")),
    }
}

fn enciphering(cipher: &Algorithm) -> Result<String, String> {
    match cipher.name.as_str() {
        "cbc(aes)" | "aes" => Ok(format!("aes{}", bits(cipher, 0)?)),
        "rfc3686(ctr(aes))" => Ok(format!("aes{}ctr", bits(cipher, 4)?)),
        "cbc(des3_ede)" | "des3_ede" => Ok("3des".to_owned()),
        "ecb(cipher_null)" | "cipher_null" => Ok("null".to_owned()),
        name => Err(format!("cipher {name} is not supported")),
    }
}

fn integrity(auth: &Algorithm) -> Result<&'static str, String> {
    // The kernel's lengths where none is printed; its 96 bits for SHA-256 are older than RFC 4868.
    const KNOWN: &[(&str, &str, &str, u32, u32)] = &[
        ("hmac(md5)", "md5", "md5", 96, 96),
        ("hmac(sha1)", "sha1", "sha1", 96, 96),
        ("hmac(sha256)", "sha256", "sha256", 128, 96),
        ("hmac(sha384)", "sha384", "sha384", 192, 192),
        ("hmac(sha512)", "sha512", "sha512", 256, 256),
        ("xcbc(aes)", "xcbc", "aesxcbc", 96, 96),
        ("cmac(aes)", "cmac", "aescmac", 96, 96),
    ];
    let name = auth.name.as_str();
    let row = KNOWN.iter().find(|row| row.0 == name || row.1 == name);
    let &(_, _, word, right, usual) =
        row.ok_or_else(|| format!("integrity algorithm {name} is not supported"))?;
    match auth.icv_bits.unwrap_or(usual) {
        bits if bits == right => Ok(word),
        bits => Err(format!("{name} with an ICV of {bits} bits is not supported, {right} are")),
    }
}
