//! The second opinion: what sealing must give, by RustCrypto, as slow and plain as can be.

use aes::cipher::generic_array::GenericArray;
use aes::cipher::{BlockCipher, BlockDecrypt, BlockEncrypt, KeyInit, KeyIvInit, StreamCipher};
use aes::{Aes128, Aes192, Aes256};
use aes_gcm::aead::AeadInPlace;
use aes_gcm::aead::consts::{U12, U16};
use aes_gcm::{Aes128Gcm, Aes256Gcm, AesGcm};
use cbc::cipher::BlockEncryptMut;
use cbc::cipher::block_padding::NoPadding;
use chacha20poly1305::ChaCha20Poly1305;
use hmac::{Hmac, Mac};

use forebay_crypto::{Cipher, Integrity, JobSpec, SaKeys};

/// Does the sealing job `spec` to `packet`, from whose begin the spans count.
pub fn seal(keys: &SaKeys, spec: &JobSpec, packet: &mut [u8]) {
    let iv = packet[spec.iv as usize..][..keys.suite().iv_len()].to_vec();
    let text = spec.cipher.range();
    let mut icv = match keys.suite().cipher() {
        Cipher::AesCbc(_) => {
            cbc(keys.cipher(), &mut packet[text]);
            hmac(keys, &separate_input(spec, packet))
        }
        Cipher::AesCtr(_) => {
            let counter = [keys.salt(), &iv, &[0, 0, 0, 1]].concat();
            ctr(keys.cipher(), &counter, &mut packet[text]);
            hmac(keys, &separate_input(spec, packet))
        }
        _ => {
            let aad = aad(spec, packet);
            combined(keys, &[keys.salt(), &iv].concat(), &aad, &mut packet[text])
        }
    };
    icv.truncate(keys.suite().icv_len());
    packet[spec.icv as usize..][..icv.len()].copy_from_slice(&icv);
}

/// The ICV of `message` alone, at the suite's length, for a suite with separate integrity.
pub fn icv(keys: &SaKeys, message: &[u8]) -> Vec<u8> {
    let mut digest = hmac(keys, message);
    digest.truncate(keys.suite().icv_len());
    digest
}

/// The block that AES with `key` turns into `block`.
pub fn decrypt_block(key: &[u8], block: &[u8]) -> Vec<u8> {
    let mut block = *GenericArray::from_slice(block);
    match key.len() {
        16 => Aes128::new(key.into()).decrypt_block(&mut block),
        24 => Aes192::new(key.into()).decrypt_block(&mut block),
        32 => Aes256::new(key.into()).decrypt_block(&mut block),
        n => unreachable!("an AES key of {n} bytes"),
    }
    block.to_vec()
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
        Cipher::AesGcm(16) => run::<Aes128Gcm>(keys.cipher(), nonce, aad, text),
        Cipher::AesGcm(24) => run::<AesGcm<Aes192, U12>>(keys.cipher(), nonce, aad, text),
        Cipher::AesGcm(32) => run::<Aes256Gcm>(keys.cipher(), nonce, aad, text),
        Cipher::ChaCha20Poly1305 => run::<ChaCha20Poly1305>(keys.cipher(), nonce, aad, text),
        other => unreachable!("{other:?} is no AEAD"),
    }
}

fn cbc(key: &[u8], text: &mut [u8]) {
    fn run<C: BlockEncryptMut + BlockCipher + KeyInit>(key: &[u8], text: &mut [u8])
    where
        cbc::Encryptor<C>: KeyIvInit + BlockEncryptMut,
    {
        let cipher =
            cbc::Encryptor::<C>::new_from_slices(key, &[0; 16]).expect("a key of the suite's length");
        let len = text.len();
        cipher.encrypt_padded_mut::<NoPadding>(text, len).expect("whole blocks");
    }
    match key.len() {
        16 => run::<Aes128>(key, text),
        24 => run::<Aes192>(key, text),
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

fn hmac(keys: &SaKeys, message: &[u8]) -> Vec<u8> {
    fn run<M: Mac + KeyInit>(key: &[u8], message: &[u8]) -> Vec<u8> {
        let mac = <M as KeyInit>::new_from_slice(key).expect("HMAC takes every key");
        mac.chain_update(message).finalize().into_bytes().to_vec()
    }
    match keys.suite().integrity() {
        Integrity::HmacSha1 => run::<Hmac<sha1::Sha1>>(keys.integrity(), message),
        Integrity::HmacSha256 => run::<Hmac<sha2::Sha256>>(keys.integrity(), message),
        Integrity::HmacSha384 => run::<Hmac<sha2::Sha384>>(keys.integrity(), message),
        Integrity::HmacSha512 => run::<Hmac<sha2::Sha512>>(keys.integrity(), message),
        other => unreachable!("{other:?} is no HMAC"),
    }
}
