//! A stand-in for `shim.c` and the library, for Miri, which runs no C.
//!
//! Each function reads and writes the memory that the C side reads and writes, by pointers alone, so that Miri checks
//! what the callers promise of them. The ciphers are toys: they protect nothing, but what one direction does
//! the other undoes, and tags depend on every byte that they cover.

use std::ffi::c_int;

use super::*;

/// Folds bytes into one that depends on each of them and on their order.
fn fold(seed: u8, bytes: impl IntoIterator<Item = u8>) -> u8 {
    bytes.into_iter().fold(seed, |sum, byte| sum.rotate_left(3).wrapping_mul(5) ^ byte)
}

/// # Safety
/// `start` must be valid for reads of `len` bytes.
unsafe fn read(start: *const u8, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    // SAFETY: the caller's promise; no reference to the caller's memory is made, as C makes none.
    unsafe { start.copy_to_nonoverlapping(bytes.as_mut_ptr(), len) };
    bytes
}

/// As [`read`], of which only the begin counts: what is behind it repeats it.
///
/// # Safety
/// As [`read`].
unsafe fn read_key(start: *const u8, len: usize) -> u8 {
    // SAFETY: the caller's promise.
    fold(0, unsafe { read(start, len) }.into_iter().take(4))
}

/// # Safety
/// `start` must be valid for writes of as many bytes as there are.
unsafe fn write(start: *mut u8, bytes: &[u8]) {
    // SAFETY: the caller's promise.
    unsafe { start.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) }
}

fn tag_of(seed: u8, len: usize) -> Vec<u8> {
    (0..len).map(|at| fold(seed, [at as u8])).collect()
}

/// See `shim.c`.
///
/// # Safety
/// None is asked for.
pub unsafe fn fb_mgr_new(instructions: u32) -> *mut Manager {
    match instructions {
        INSTRUCTIONS_BEST => Box::into_raw(Box::new(0_u8)).cast(),
        _ => std::ptr::null_mut(),
    }
}

/// See `shim.c`.
///
/// # Safety
/// `manager` must be of [`fb_mgr_new`] and is not used afterwards.
pub unsafe fn fb_mgr_free(manager: *mut Manager) {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(manager.cast::<u8>()) });
}

/// See `shim.c`.
///
/// # Safety
/// None is asked for.
pub unsafe fn fb_gcm_key_size() -> usize {
    size_of::<GcmKey>()
}

/// See `shim.c`.
///
/// # Safety
/// None is asked for.
pub unsafe fn fb_gcm_context_size() -> usize {
    size_of::<GcmContext>()
}

/// See `shim.c`.
///
/// # Safety
/// `key` must be valid for `key_len` bytes, `out` for writes.
pub unsafe fn fb_gcm_expand(_: *const Manager, key: *const u8, key_len: u32, out: *mut GcmKey) {
    // SAFETY: the caller's promise.
    unsafe { write(out.cast(), &[fold(0, read(key, key_len as usize)); size_of::<GcmKey>()]) }
}

/// See `shim.c`.
///
/// # Safety
/// None is asked for.
pub unsafe fn fb_gcm(_: *const Manager, _: u32, decrypt: c_int) -> GcmFn {
    if decrypt == 0 { gcm::<false> } else { gcm::<true> }
}

unsafe extern "C" fn gcm<const OPEN: bool>(
    key: *const GcmKey,
    context: *mut GcmContext,
    out: *mut u8,
    text: *const u8,
    len: u64,
    iv: *const u8,
    aad: *const u8,
    aad_len: u64,
    tag: *mut u8,
    tag_len: u64,
) {
    // SAFETY: the promises of the library's caller, as in `GcmFn`.
    unsafe {
        write(context.cast(), &[1; size_of::<GcmContext>()]);
        let key = read_key(key.cast(), size_of::<GcmKey>());
        let (iv, aad, before) = (read(iv, 12), read(aad, aad_len as usize), read(text, len as usize));
        let after: Vec<u8> = before.iter().zip(iv.iter().cycle()).map(|(b, iv)| b ^ iv ^ key).collect();
        write(out, &after);
        let sealed = if OPEN { before } else { after };
        let sum = fold(key, iv.into_iter().chain(aad).chain(sealed));
        write(tag, &tag_of(sum, tag_len as usize));
    }
}

/// See `shim.c`.
///
/// # Safety
/// `key` must be valid for `key_len` bytes, `enc` and `dec` for writes of 240.
pub unsafe fn fb_aes_expand(_: *const Manager, key: *const u8, key_len: u32, enc: *mut u8, dec: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe {
        let expanded = [fold(0, read(key, key_len as usize)); ROUND_KEYS];
        write(enc, &expanded);
        write(dec, &expanded);
    }
}

/// Length of the round keys of AES for the longest key, in bytes.
const ROUND_KEYS: usize = 15 * 16;

/// See `shim.c`.
///
/// # Safety
/// The pads must be valid for a block of the hash, the states for 64 bytes.
pub unsafe fn fb_hmac_states(
    _: *const Manager,
    hash: c_int,
    ipad: *const u8,
    opad: *const u8,
    istate: *mut u8,
    ostate: *mut u8,
) {
    let block = if matches!(hash as u8, HASH_HMAC_SHA384 | HASH_HMAC_SHA512) { 128 } else { 64 };
    // SAFETY: the caller's promise.
    unsafe {
        write(istate, &[fold(1, read(ipad, block)); 64]);
        write(ostate, &[fold(2, read(opad, block)); 64]);
    }
}

/// See `shim.c`.
///
/// # Safety
/// `key` must be valid for 16 bytes, `k1` for writes of 176, `k2` and `k3` of 16.
pub unsafe fn fb_xcbc_keys(_: *const Manager, key: *const u8, k1: *mut u8, k2: *mut u8, k3: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe {
        let key = fold(0, read(key, 16));
        write(k1, &[key; 176]);
        write(k2, &[fold(1, [key]); 16]);
        write(k3, &[fold(2, [key]); 16]);
    }
}

/// See `shim.c`.
///
/// # Safety
/// `expanded` must be valid for 176 bytes, `k1` and `k2` for writes of 16.
pub unsafe fn fb_cmac_keys(_: *const Manager, expanded: *const u8, k1: *mut u8, k2: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe {
        let key = read_key(expanded, 176);
        write(k1, &[fold(1, [key]); 16]);
        write(k2, &[fold(2, [key]); 16]);
    }
}

/// See `shim.c`.
///
/// # Safety
/// `key` must be valid for 24 bytes, `out` for writes of three schedules.
pub unsafe fn fb_3des_expand(_: *const Manager, key: *const u8, out: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { write(out, &[fold(0, read(key, 24)); 3 * DES_SCHEDULE]) }
}

/// See `shim.c`.
///
/// # Safety
/// Key, context, IV of 12 bytes and each of the `n` pieces must be valid, `tag` for writes of `tag_len` bytes.
#[expect(clippy::too_many_arguments, reason = "they are the shim's")]
pub unsafe fn fb_gmac(
    _: *const Manager,
    key: *const GcmKey,
    _: u32,
    context: *mut GcmContext,
    iv: *const u8,
    pieces: *const Piece,
    n: u32,
    tag: *mut u8,
    tag_len: u64,
) {
    // SAFETY: the caller's promise.
    unsafe {
        write(context.cast(), &[1; size_of::<GcmContext>()]);
        let key = read_key(key.cast(), size_of::<GcmKey>());
        let mut sum = fold(key, read(iv, 12));
        for piece in 0..n as usize {
            let Piece { start, len } = pieces.add(piece).read();
            sum = fold(sum, read(start, len as usize));
        }
        write(tag, &tag_of(sum, tag_len as usize));
    }
}

/// See `shim.c`.
///
/// # Safety
/// `jobs` must be valid for `n` jobs, and all their pointers for the lengths beside them.
pub unsafe fn fb_run(_: *mut Manager, jobs: *mut ChainedJob, n: u32) {
    assert!(n as usize <= MAX_BURST);
    // Twice around, as the library keeps pointers of all jobs before it does the first.
    for at in 0..n as usize {
        // SAFETY: the caller's promise.
        unsafe { (&raw mut (*jobs.add(at)).ok).write(0) }
    }
    for at in 0..n as usize {
        // SAFETY: the caller's promise.
        unsafe {
            let job = jobs.add(at).read();
            let is_long = job.cipher_len > 65_534 || job.auth_len > 65_534;
            if !is_long {
                run(&job);
            }
            (&raw mut (*jobs.add(at)).ok).write(u8::from(!is_long));
        }
    }
}

/// # Safety
/// As [`fb_run`].
unsafe fn run(job: &ChainedJob) {
    // SAFETY: the caller's promise.
    unsafe {
        let combined = matches!(job.hash, HASH_CHACHA20_POLY1305 | HASH_CCM);
        let tag = |job: &ChainedJob| {
            // Where the IV field belongs to the message it is in what is authenticated.
            let message = match combined {
                true => [
                    read(job.iv, job.iv_len as usize),
                    read(job.aad, job.aad_len as usize),
                    read(job.base.add(job.cipher_start as usize), job.cipher_len as usize),
                ]
                .concat(),
                false => read(job.base.add(job.auth_start as usize), job.auth_len as usize),
            };
            write(job.tag, &tag_of(fold(mac_key(job), message), job.tag_len as usize));
        };
        // The tag is that of the cipher text; that of CCM of the plain text.
        let tag_first = (job.decrypt != 0) != (job.cipher == CIPHER_CCM);
        if tag_first {
            tag(job);
        }
        cipher(job);
        if !tag_first {
            tag(job);
        }
    }
}

/// # Safety
/// As [`fb_run`].
unsafe fn mac_key(job: &ChainedJob) -> u8 {
    // SAFETY: the caller's promise.
    unsafe {
        let lens = match job.hash {
            HASH_NULL | HASH_CHACHA20_POLY1305 | HASH_CCM => [0, 0, 0],
            HASH_XCBC | HASH_CMAC => [176, 16, 16],
            _ => [0, 64, 64],
        };
        (0..3).fold(0, |sum, at| fold(sum, [read_key(job.mac_keys[at], lens[at])]))
    }
}

/// # Safety
/// As [`fb_run`].
unsafe fn cipher(job: &ChainedJob) {
    // SAFETY: the caller's promise.
    unsafe {
        let keys = if job.decrypt != 0 && job.cipher == CIPHER_CBC { job.dec_keys } else { job.enc_keys };
        let key = match job.cipher {
            CIPHER_NULL => return,
            CIPHER_CHACHA20_POLY1305 => fold(0, read(keys, usize::from(job.key_len))),
            CIPHER_3DES => read_key(keys, 3 * DES_SCHEDULE),
            _ => read_key(keys, ROUND_KEYS),
        };
        let start = job.base.add(job.cipher_start as usize);
        let mut text = read(start, job.cipher_len as usize);
        let mut chain = read(job.iv, usize::from(job.iv_len));
        let is_chained = matches!(job.cipher, CIPHER_CBC | CIPHER_3DES);
        for block in text.chunks_mut(chain.len().max(1)) {
            let before = block.to_vec();
            block.iter_mut().zip(&chain).for_each(|(byte, chain)| *byte ^= chain ^ key);
            if is_chained {
                chain = if job.decrypt == 0 { block.to_vec() } else { before };
            }
        }
        write(start, &text);
    }
}

/// See `shim.c`.
///
/// # Safety
/// `buffers` must be valid for `n` pointers, each for `len` bytes.
#[expect(clippy::too_many_arguments, reason = "they are the shim's")]
pub unsafe fn fb_bare_gcm(
    manager: *const Manager,
    key: *const GcmKey,
    key_len: u32,
    decrypt: c_int,
    buffers: *const *mut u8,
    n: u32,
    len: u64,
    tag_len: u32,
    rounds: u64,
) {
    let mut tag = [0; 64];
    let mut context = GcmContext([0; 128]);
    // SAFETY: the caller's promise; IV, AAD and tag are arrays of sufficient length.
    unsafe {
        let gcm = fb_gcm(manager, key_len, decrypt);
        for at in (0..rounds).flat_map(|_| 0..n as usize) {
            let buffer = buffers.add(at).read();
            let (iv, aad) = ([0; 16], [0; 8]);
            gcm(
                key,
                &mut context,
                buffer,
                buffer,
                len,
                iv.as_ptr(),
                aad.as_ptr(),
                8,
                tag.as_mut_ptr(),
                tag_len.into(),
            );
        }
    }
}
