//! Sessions: an SA's keys with the device, and what of them each job needs.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

use dpdk_sys as sys;
use forebay_crypto::{Cipher, Direction, Integrity, Job, JobSpec, Layout, SaKeys, Suite, Verdict};
use zeroize::Zeroize;

use crate::device::Device;

/// AAD of ESP: SPI and sequence number, without and with its high half (RFC 4106 5).
const AAD_OF_ESP: [usize; 2] = [8, 12];

/// What a session of DPDK is made for besides suite and keys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// An AEAD with so many bytes of AAD.
    Aad(usize),
    /// Separate algorithms, or one.
    Separate,
    /// Of separate algorithms integrity alone, for a job without text: drivers refuse to encipher nothing.
    AuthOnly,
}

/// What DPDK takes for an IV.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Iv {
    /// Nothing.
    None,
    /// Zeros: sealing, the chain starts from zero and the IV field is the first block (see `JobSpec::cipher`).
    Zero,
    /// The IV field.
    Field,
    /// The salt, the IV field, and a block counter of one (RFC 3686 4), which AEADs have themselves.
    Salted,
}

/// One direction of an SA.
pub struct Session {
    device: Arc<Device>,
    pub suite: Suite,
    pub direction: Direction,
    pub is_aead: bool,
    pub iv: Iv,
    pub iv_len: usize,
    pub icv_len: usize,
    /// The shim's flags of all its jobs.
    pub flags: u8,
    salt: [u8; 4],
    keys: SaKeys,
    /// DPDK's sessions; the usual ones first.
    open: Vec<(Form, NonNull<c_void>)>,
}

// SAFETY: sessions belong to the device, and are used by one queue pair's thread.
unsafe impl Send for Session {}

impl Session {
    /// `None` if the device does not have the suite, or no room.
    pub fn open(device: &Arc<Device>, keys: &SaKeys, direction: Direction) -> Option<Session> {
        let mut salt = [0; 4];
        salt.iter_mut().zip(keys.salt()).for_each(|(to, from)| *to = *from);
        let (suite, is_aead) = (keys.suite(), keys.suite().is_aead());
        let iv = match (suite.cipher(), direction) {
            (Cipher::AesCbc(_) | Cipher::TripleDesCbc, Direction::Seal) => Iv::Zero,
            (Cipher::AesCbc(_) | Cipher::TripleDesCbc, Direction::Open) => Iv::Field,
            (Cipher::Null, _) => Iv::None,
            _ => Iv::Salted,
        };
        let seals = if direction == Direction::Seal { sys::SEALS } else { 0 };
        let mut session = Session {
            device: device.clone(),
            suite,
            direction,
            is_aead,
            iv,
            iv_len: suite.iv_len(),
            icv_len: suite.icv_len(),
            flags: seals | if is_aead { sys::AEAD } else { 0 },
            salt,
            keys: keys.clone(),
            open: Vec::new(),
        };
        let usual = if is_aead { &AAD_OF_ESP.map(Form::Aad)[..] } else { &[Form::Separate] };
        usual.iter().try_for_each(|&form| session.of(form).map(drop))?;
        Some(session)
    }

    /// DPDK's session for jobs of this form.
    #[inline]
    pub fn of(&mut self, form: Form) -> Option<NonNull<c_void>> {
        match self.open.iter().find(|(of, _)| *of == form) {
            Some((_, session)) => Some(*session),
            None => self.open_form(form),
        }
    }

    #[cold]
    fn open_form(&mut self, form: Form) -> Option<NonNull<c_void>> {
        let algorithms = Algorithms::of(self.suite)?;
        let session = self.device.open(&algorithms.keys(&self.keys, self.direction, form))?;
        self.open.push((form, session));
        Some(session)
    }

    /// The job as the device is to have it into `to`, while it stays where it is; a verdict if it needs no device: there is nothing
    /// to do, or it is a bad one. Each field is written where it stays, because what was just written in pieces is slow to
    /// be moved as a whole.
    #[inline]
    pub fn prepare(&mut self, job: &mut Job, longest: usize, to: &mut sys::Job) -> Result<(), Verdict> {
        if !self.is_aead {
            return self.prepare_separate(job, longest, to);
        }
        let (spec, buffer) = (&job.spec, job.packet.buffer_mut());
        // ESP's order first: nearly every job has it.
        if !Layout::aead_in_esp_order(spec, self.iv_len, self.icv_len, buffer.len()) {
            Layout::check(spec, self.suite, self.direction, buffer.len()).ok_or(Verdict::Failed)?;
        }
        let high_len = if spec.seq_hi.is_some() { JobSpec::SEQ_HI_LEN } else { 0 };
        let aad_len = spec.auth.len as usize + high_len;
        if spec.cipher.len as usize > longest || aad_len > sys::AAD_MAX {
            return Err(Verdict::Failed);
        }
        to.session = self.of(Form::Aad(aad_len)).ok_or(Verdict::Failed)?.as_ptr();
        // Where nothing is does not matter, as long as it is inside.
        to.start = if spec.cipher.len == 0 { 0 } else { spec.cipher.start };
        (to.len, to.cipher_start, to.cipher_len) = (spec.cipher.len, to.start, spec.cipher.len);
        (to.auth_start, to.auth_len) = (if spec.auth.len == 0 { 0 } else { spec.auth.start }, spec.auth.len);
        to.icv_start = spec.icv;
        self.set_iv(&mut to.iv, &buffer[spec.iv as usize..][..self.iv_len]);
        to.seq_hi = spec.seq_hi.unwrap_or_default().to_be_bytes();
        to.icv_len = self.icv_len as u8;
        to.buffer = buffer.as_mut_ptr();
        to.flags = self.flags | sys::HAS_TEXT | if high_len > 0 { sys::HAS_SEQ_HI } else { 0 };
        Ok(())
    }

    /// Of a suite that is no AEAD.
    fn prepare_separate(&mut self, job: &mut Job, longest: usize, to: &mut sys::Job) -> Result<(), Verdict> {
        let (spec, buffer, suite) = (&job.spec, job.packet.buffer_mut(), self.suite);
        let at = Layout::check(spec, suite, self.direction, buffer.len()).ok_or(Verdict::Failed)?;
        if suite.integrity() == Integrity::None && at.cipher.is_empty() {
            return Err(Verdict::Done);
        }
        let is_covered = self.icv_len > 0;
        let (start, end) = match (at.cipher.is_empty(), is_covered) {
            (false, true) => (at.cipher.start.min(at.auth.start), at.cipher.end.max(at.auth.end)),
            (true, true) => (at.auth.start, at.auth.end),
            _ => (at.cipher.start, at.cipher.end),
        };
        if end - start > longest {
            return Err(Verdict::Failed);
        }
        // Without encryption nothing but the ICV changes.
        let has_text = self.iv != Iv::None && !at.cipher.is_empty();
        let form = if has_text || self.iv == Iv::None { Form::Separate } else { Form::AuthOnly };
        let high = spec.seq_hi.filter(|_| is_covered);
        let set = |is: bool, flag: u8| if is { flag } else { 0 };
        to.session = self.of(form).ok_or(Verdict::Failed)?.as_ptr();
        (to.start, to.len) = (start as u32, (end - start) as u32);
        to.cipher_start = if at.cipher.is_empty() { start } else { at.cipher.start } as u32;
        to.cipher_len = at.cipher.len() as u32;
        to.auth_start = if is_covered { at.auth.start } else { start } as u32;
        to.auth_len = if is_covered { at.auth.len() as u32 } else { 0 };
        to.icv_start = at.icv.start as u32;
        self.set_iv(&mut to.iv, &buffer[at.iv]);
        to.seq_hi = high.unwrap_or_default().to_be_bytes();
        to.icv_len = self.icv_len as u8;
        to.buffer = buffer.as_mut_ptr();
        to.flags = self.flags | set(has_text, sys::HAS_TEXT) | set(high.is_some(), sys::HAS_SEQ_HI);
        Ok(())
    }

    /// The IV of a job with this IV field, as DPDK takes it.
    #[inline]
    fn set_iv(&self, to: &mut [u8; 16], field: &[u8]) {
        match (self.iv, field) {
            (Iv::Salted, &[a, b, c, d, e, f, g, h]) => {
                let [s, t, u, v] = self.salt;
                *to = [s, t, u, v, a, b, c, d, e, f, g, h, 0, 0, 0, 1];
            }
            (Iv::Field, _) => to[..field.len()].copy_from_slice(field),
            _ => *to = [0; 16],
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.salt.zeroize();
        for (_, session) in &self.open {
            // SAFETY: opened by `of`, and the table is not used again. No job has it: a processor keeps sessions
            // until the device has given back all that it was given before they were closed.
            unsafe { self.device.close(*session) };
        }
    }
}

/// DPDK's numbers of a suite's algorithms; -1: none.
pub struct Algorithms {
    suite: Suite,
    aead: i32,
    cipher: i32,
    auth: i32,
}

impl Algorithms {
    /// Those of a suite; `None` if DPDK has no algorithm for it, or not in IPsec's form.
    pub fn of(suite: Suite) -> Option<Algorithms> {
        let mut all = Algorithms { suite, aead: -1, cipher: -1, auth: -1 };
        // SAFETY: indices into tables of the shim, for this and the following calls.
        let [aead, cipher, auth] = [
            |which| unsafe { sys::fb_dpdk_aead(which) },
            |which| unsafe { sys::fb_dpdk_cipher(which) },
            |which| unsafe { sys::fb_dpdk_auth(which) },
        ];
        match suite.cipher() {
            Cipher::AesGcm(_) => all.aead = aead(sys::AEAD_AES_GCM),
            Cipher::ChaCha20Poly1305 => all.aead = aead(sys::AEAD_CHACHA20_POLY1305),
            Cipher::AesCbc(_) => all.cipher = cipher(sys::CIPHER_AES_CBC),
            Cipher::AesCtr(_) => all.cipher = cipher(sys::CIPHER_AES_CTR),
            Cipher::TripleDesCbc => all.cipher = cipher(sys::CIPHER_3DES_CBC),
            Cipher::Null => {}
            _ => return None,
        }
        match suite.integrity() {
            Integrity::Combined | Integrity::None => {}
            Integrity::HmacMd5 => all.auth = auth(sys::AUTH_MD5),
            Integrity::HmacSha1 => all.auth = auth(sys::AUTH_SHA1),
            Integrity::HmacSha256 => all.auth = auth(sys::AUTH_SHA256),
            Integrity::HmacSha384 => all.auth = auth(sys::AUTH_SHA384),
            Integrity::HmacSha512 => all.auth = auth(sys::AUTH_SHA512),
            Integrity::AesXcbc => all.auth = auth(sys::AUTH_XCBC),
            Integrity::AesCmac => all.auth = auth(sys::AUTH_CMAC),
            _ => return None,
        }
        Some(all)
    }

    /// Length of the IV as DPDK takes it, in bytes.
    fn iv_len(&self) -> u16 {
        match self.suite.cipher() {
            Cipher::AesCbc(_) | Cipher::AesCtr(_) => 16,
            Cipher::TripleDesCbc => 8,
            Cipher::Null => 0,
            _ => 12,
        }
    }

    fn lengths(&self) -> sys::Keys {
        sys::Keys {
            aead: self.aead,
            cipher: self.cipher,
            auth: self.auth,
            cipher_key: std::ptr::null(),
            auth_key: std::ptr::null(),
            cipher_key_len: self.suite.cipher_key_len() as u16,
            auth_key_len: self.suite.integrity_key_len() as u16,
            iv_len: self.iv_len(),
            icv_len: self.suite.icv_len() as u16,
            aad_len: 0,
            decrypt: 0,
        }
    }

    /// Whether a device does them.
    pub fn are_of(&self, device: &Device) -> bool {
        device.has(&self.lengths())
    }

    fn keys(&self, keys: &SaKeys, direction: Direction, form: Form) -> sys::Keys {
        let lengths = self.lengths();
        sys::Keys {
            cipher: if form == Form::AuthOnly { -1 } else { self.cipher },
            cipher_key: keys.cipher().as_ptr(),
            auth_key: keys.integrity().as_ptr(),
            aad_len: if let Form::Aad(len) = form { len as u16 } else { 0 },
            decrypt: u8::from(direction == Direction::Open),
            ..lengths
        }
    }
}
