//! The second opinion: what sealing must give, by RustCrypto, as slow and plain as can be.

use aes::cipher::generic_array::GenericArray;
use aes::cipher::{BlockCipher, BlockDecrypt, BlockEncrypt, KeyInit, KeyIvInit, StreamCipher};
use aes::{Aes128, Aes192, Aes256};
use aes_gcm::aead::AeadInPlace;
use aes_gcm::aead::consts::{U8, U11, U12, U16};
use aes_gcm::{Aes128Gcm, Aes256Gcm, AesGcm};
use cbc::cipher::BlockEncryptMut;
use cbc::cipher::block_padding::NoPadding;
use ccm::Ccm;
use chacha20poly1305::ChaCha20Poly1305;
use cmac::Cmac;
use des::TdesEde3;
use hmac::{Hmac, Mac};

use forebay_crypto::{Cipher, Integrity, JobSpec, SaKeys};

/// Does the sealing job `spec` to `packet`, from whose begin the spans count.
pub fn seal(keys: &SaKeys, spec: &JobSpec, packet: &mut [u8]) {
    let suite = keys.suite();
    let iv = packet[spec.iv as usize..][..suite.iv_len()].to_vec();
    let nonce = [keys.salt(), &iv].concat();
    let text = spec.cipher.range();
    let combined_icv = match suite.cipher() {
        Cipher::AesCbc(_) | Cipher::TripleDesCbc => {
            cbc(suite.cipher(), keys.cipher(), &mut packet[text]);
            None
        }
        Cipher::AesCtr(_) => {
            ctr(keys.cipher(), &[&nonce[..], &[0, 0, 0, 1]].concat(), &mut packet[text]);
            None
        }
        Cipher::Null => None,
        // Nothing but AAD (RFC 4543 3).
        Cipher::AesGmac(_) => Some(combined(keys, &nonce, &aad(spec, packet), &mut [])),
        _ => {
            let aad = aad(spec, packet);
            Some(combined(keys, &nonce, &aad, &mut packet[text]))
        }
    };
    let icv = combined_icv.unwrap_or_else(|| icv(keys, &separate_input(spec, packet)));
    let len = suite.icv_len();
    packet[spec.icv as usize..][..len].copy_from_slice(&icv[..len]);
}

/// The ICV of `message` alone, at the suite's length, for a suite with separate integrity.
pub fn icv(keys: &SaKeys, message: &[u8]) -> Vec<u8> {
    let mut digest = mac(keys, message);
    digest.truncate(keys.suite().icv_len());
    digest
}

/// The block that `cipher` with `key` turns into `block`.
pub fn decrypt_block(cipher: Cipher, key: &[u8], block: &[u8]) -> Vec<u8> {
    fn run<C: BlockDecrypt + KeyInit>(key: &[u8], block: &[u8]) -> Vec<u8> {
        let mut block = GenericArray::clone_from_slice(block);
        C::new_from_slice(key).expect("a key of the suite's length").decrypt_block(&mut block);
        block.to_vec()
    }
    match (cipher, key.len()) {
        (Cipher::TripleDesCbc, _) => run::<TdesEde3>(key, block),
        (_, 16) => run::<Aes128>(key, block),
        (_, 24) => run::<Aes192>(key, block),
        (_, n) => {
            assert_eq!(n, 32, "an AES key");
            run::<Aes256>(key, block)
        }
    }
}

/// SPI, high half, low half (RFC 4106 5); without ESN the bytes as they are.
fn aad(spec: &JobSpec, packet: &[u8]) -> Vec<u8> {
    let auth = &packet[spec.auth.range()];
    match spec.seq_hi {
        None => auth.to_vec(),
        Some(high) => [&auth[..4], &high.to_be_bytes(), &auth[4..]].concat(),
    }
}

/// All that is covered, then the high half (RFC 4303 2.2.1).
fn separate_input(spec: &JobSpec, packet: &[u8]) -> Vec<u8> {
    let mut input = packet[spec.auth.range()].to_vec();
    input.extend(spec.seq_hi.iter().flat_map(|high| high.to_be_bytes()));
    input
}

fn combined(keys: &SaKeys, nonce: &[u8], aad: &[u8], text: &mut [u8]) -> Vec<u8> {
    fn run<A: KeyInit + AeadInPlace>(key: &[u8], nonce: &[u8], aad: &[u8], text: &mut [u8]) -> Vec<u8> {
        let aead = A::new_from_slice(key).expect("a key of the suite's length");
        let tag = aead.encrypt_in_place_detached(nonce.into(), aad, text);
        tag.expect("short text").to_vec()
    }
    match keys.suite().cipher() {
        Cipher::AesCcm(16) => ccm::<Aes128>(keys, nonce, aad, text),
        Cipher::AesCcm(24) => ccm::<Aes192>(keys, nonce, aad, text),
        Cipher::AesCcm(32) => ccm::<Aes256>(keys, nonce, aad, text),
        Cipher::AesGcm(16) | Cipher::AesGmac(16) => run::<Aes128Gcm>(keys.cipher(), nonce, aad, text),
        Cipher::AesGcm(24) | Cipher::AesGmac(24) => {
            run::<AesGcm<Aes192, U12>>(keys.cipher(), nonce, aad, text)
        }
        Cipher::AesGcm(32) | Cipher::AesGmac(32) => run::<Aes256Gcm>(keys.cipher(), nonce, aad, text),
        Cipher::ChaCha20Poly1305 => run::<ChaCha20Poly1305>(keys.cipher(), nonce, aad, text),
        other => unreachable!("{other:?} is no AEAD"),
    }
}

/// The ICV's length takes part in AES-CCM, so a short one is not the begin of a long one.
fn ccm<C>(keys: &SaKeys, nonce: &[u8], aad: &[u8], text: &mut [u8]) -> Vec<u8>
where
    C: BlockEncrypt + BlockCipher<BlockSize = U16> + KeyInit,
{
    fn run<A: KeyInit + AeadInPlace>(key: &[u8], nonce: &[u8], aad: &[u8], text: &mut [u8]) -> Vec<u8> {
        let aead = A::new_from_slice(key).expect("a key of the suite's length");
        let tag = aead.encrypt_in_place_detached(nonce.into(), aad, text);
        tag.expect("short text").to_vec()
    }
    match keys.suite().icv_len() {
        8 => run::<Ccm<C, U8, U11>>(keys.cipher(), nonce, aad, text),
        12 => run::<Ccm<C, U12, U11>>(keys.cipher(), nonce, aad, text),
        _ => run::<Ccm<C, U16, U11>>(keys.cipher(), nonce, aad, text),
    }
}

fn cbc(cipher: Cipher, key: &[u8], text: &mut [u8]) {
    fn run<C: BlockEncryptMut + BlockCipher + KeyInit>(key: &[u8], text: &mut [u8])
    where
        cbc::Encryptor<C>: KeyIvInit + BlockEncryptMut,
    {
        let zeros = vec![0; C::block_size()];
        let cipher = cbc::Encryptor::<C>::new_from_slices(key, &zeros).expect("a key of the suite's length");
        let len = text.len();
        cipher.encrypt_padded_mut::<NoPadding>(text, len).expect("whole blocks");
    }
    match (cipher, key.len()) {
        (Cipher::TripleDesCbc, _) => run::<TdesEde3>(key, text),
        (_, 16) => run::<Aes128>(key, text),
        (_, 24) => run::<Aes192>(key, text),
        _ => run::<Aes256>(key, text),
    }
}

fn ctr(key: &[u8], counter: &[u8], text: &mut [u8]) {
    fn run<C: BlockEncrypt + BlockCipher<BlockSize = U16> + KeyInit>(
        key: &[u8],
        counter: &[u8],
        text: &mut [u8],
    ) where
        ctr::Ctr32BE<C>: KeyIvInit + StreamCipher,
    {
        ctr::Ctr32BE::<C>::new_from_slices(key, counter)
            .expect("a key of the suite's length")
            .apply_keystream(text);
    }
    match key.len() {
        16 => run::<Aes128>(key, counter, text),
        24 => run::<Aes192>(key, counter, text),
        _ => run::<Aes256>(key, counter, text),
    }
}

fn mac(keys: &SaKeys, message: &[u8]) -> Vec<u8> {
    fn run<M: Mac + KeyInit>(key: &[u8], message: &[u8]) -> Vec<u8> {
        let mac = <M as KeyInit>::new_from_slice(key).expect("a key of the suite's length");
        mac.chain_update(message).finalize().into_bytes().to_vec()
    }
    match keys.suite().integrity() {
        Integrity::None => vec![],
        Integrity::HmacMd5 => run::<Hmac<md5::Md5>>(keys.integrity(), message),
        Integrity::HmacSha1 => run::<Hmac<sha1::Sha1>>(keys.integrity(), message),
        Integrity::HmacSha256 => run::<Hmac<sha2::Sha256>>(keys.integrity(), message),
        Integrity::HmacSha384 => run::<Hmac<sha2::Sha384>>(keys.integrity(), message),
        Integrity::HmacSha512 => run::<Hmac<sha2::Sha512>>(keys.integrity(), message),
        Integrity::AesCmac => run::<Cmac<Aes128>>(keys.integrity(), message),
        Integrity::AesXcbc => xcbc(keys.integrity(), message),
        other => unreachable!("{other:?} is no algorithm of its own"),
    }
}

/// RFC 3566 4, step by step, for a message that is not empty.
fn xcbc(key: &[u8], message: &[u8]) -> Vec<u8> {
    let encrypt = |key: &[u8], block: [u8; 16]| -> [u8; 16] {
        let mut block = GenericArray::from(block);
        Aes128::new(key.into()).encrypt_block(&mut block);
        block.into()
    };
    let (k1, k2, k3) = (encrypt(key, [1; 16]), encrypt(key, [2; 16]), encrypt(key, [3; 16]));
    let blocks: Vec<&[u8]> = message.chunks(16).collect();
    let (last, others) = blocks.split_last().expect("not empty");
    let xor = |a: [u8; 16], b: &[u8]| std::array::from_fn(|i| a[i] ^ b[i]);
    let chained = others.iter().fold([0; 16], |chain, block| encrypt(&k1, xor(chain, block)));
    let last = match last.len() {
        16 => xor(chained, &xor(k2, last)),
        _ => {
            let mut padded = [last, &[0x80][..]].concat();
            padded.resize(16, 0);
            xor(chained, &xor(k3, &padded))
        }
    };
    encrypt(&k1, last).to_vec()
}
