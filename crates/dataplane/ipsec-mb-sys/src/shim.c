/*
 * A thin C layer over intel-ipsec-mb.h: the library's manager and job structures change between
 * its versions, so C, which sees the installed header, fills them, and Rust sees only what
 * stands here. Callers have checked every length; see src/lib.rs.
 */
#include <string.h>
#include <intel-ipsec-mb.h>

/* The maximum number of jobs per call of fb_run: build.rs defines it, from src/max_burst.rs. */
#ifndef FB_MAX_BURST
#error "FB_MAX_BURST is not defined"
#endif

/* Codes of src/lib.rs and what they are called in the header at hand. */
static const IMB_CIPHER_MODE ciphers[] = { IMB_CIPHER_CBC,  IMB_CIPHER_CNTR, IMB_CIPHER_CHACHA20_POLY1305,
                                           IMB_CIPHER_DES3, IMB_CIPHER_CCM,  IMB_CIPHER_NULL };
static const IMB_HASH_ALG hashes[] = { IMB_AUTH_HMAC_SHA_1,   IMB_AUTH_HMAC_SHA_256,
                                       IMB_AUTH_HMAC_SHA_384, IMB_AUTH_HMAC_SHA_512,
                                       IMB_AUTH_CHACHA20_POLY1305, IMB_AUTH_MD5,
                                       IMB_AUTH_AES_XCBC,     IMB_AUTH_AES_CMAC,
                                       IMB_AUTH_NULL,         IMB_AUTH_AES_CCM };

/* One job of a cipher and a hash, or of an AEAD other than GCM; mirrored in src/lib.rs. */
struct fb_job {
        const void *enc_keys;   /* expanded keys, the plain key for ChaCha20, three schedules for 3DES */
        const void *dec_keys;
        const void *mac_keys[3]; /* HMAC: -, inner and outer state; XCBC and CMAC: expanded key, two keys
                                    for the last block */
        uint8_t *base;          /* the packet's buffer; offsets count from here */
        uint32_t cipher_start, cipher_len;
        uint32_t auth_start, auth_len;
        const uint8_t *iv;
        const uint8_t *aad;     /* AEADs only */
        uint32_t aad_len;
        uint8_t *tag;           /* where to put the computed tag */
        uint8_t tag_len;
        uint8_t key_len;
        uint8_t iv_len;
        uint8_t cipher;         /* index into ciphers */
        uint8_t hash;           /* index into hashes */
        uint8_t decrypt;
        uint8_t ok;             /* out */
};

/* Some bytes of a message. */
struct fb_piece {
        const uint8_t *start;
        uint64_t len;
};

/* Ways of the library that can be asked for, in the order of the codes of src/lib.rs; the code 0,
 * and no row, is the best. */
static const struct {
        IMB_ARCH arch;
        uint64_t features;      /* what the processor must have */
        void (*init)(IMB_MGR *);
} ways[] = {
        { IMB_ARCH_SSE, IMB_CPUFLAGS_SSE, init_mb_mgr_sse },
#if IMB_VERSION_NUM < IMB_VERSION(2, 0, 0)
        { IMB_ARCH_AVX, IMB_CPUFLAGS_AVX, init_mb_mgr_avx },
#else
        { IMB_ARCH_NONE, UINT64_MAX, NULL },
#endif
        { IMB_ARCH_AVX2, IMB_CPUFLAGS_AVX2, init_mb_mgr_avx2 },
        { IMB_ARCH_AVX512, IMB_CPUFLAGS_AVX512, init_mb_mgr_avx512 },
};

/* Whether the manager is what was asked for and passed its self test. */
static int usable(IMB_MGR *mgr, uint32_t instructions)
{
        if (imb_get_errno(mgr) != 0 ||
            ((mgr->features & IMB_FEATURE_SELF_TEST) && !(mgr->features & IMB_FEATURE_SELF_TEST_PASS)))
                return 0;
        /* NO_AESNI emulates AES in tables: slower than the portable backend and not constant-time. */
        return instructions == 0 ? mgr->used_arch > IMB_ARCH_NOAESNI
                                 : mgr->used_arch == (uint32_t)ways[instructions - 1].arch;
}

IMB_MGR *fb_mgr_new(uint32_t instructions)
{
        IMB_ARCH arch;
        IMB_MGR *mgr;

        if (instructions > sizeof(ways) / sizeof(ways[0]) || (mgr = alloc_mb_mgr(0)) == NULL)
                return NULL;
        if (instructions == 0) {
                init_mb_mgr_auto(mgr, &arch);
        } else if ((mgr->features & ways[instructions - 1].features) == ways[instructions - 1].features) {
                /* Asked for without the features, the library would run into illegal instructions. */
                ways[instructions - 1].init(mgr);
        } else {
                free_mb_mgr(mgr);
                return NULL;
        }
        if (!usable(mgr, instructions)) {
                free_mb_mgr(mgr);
                return NULL;
        }
        return mgr;
}

void fb_mgr_free(IMB_MGR *mgr) { free_mb_mgr(mgr); }

const char *fb_version(void) { return imb_get_version_str(); }

uint32_t fb_arch(const IMB_MGR *mgr) { return mgr->used_arch; }

uint64_t fb_features(const IMB_MGR *mgr) { return mgr->features; }

size_t fb_gcm_key_size(void) { return sizeof(struct gcm_key_data); }

size_t fb_gcm_context_size(void) { return sizeof(struct gcm_context_data); }

void fb_gcm_expand(const IMB_MGR *mgr, const uint8_t *key, uint32_t key_len, struct gcm_key_data *out)
{
        switch (key_len) {
        case 16: mgr->gcm128_pre(key, out); break;
        case 24: mgr->gcm192_pre(key, out); break;
        default: mgr->gcm256_pre(key, out); break;
        }
}

aes_gcm_enc_dec_t fb_gcm(const IMB_MGR *mgr, uint32_t key_len, int decrypt)
{
        switch (key_len) {
        case 16: return decrypt ? mgr->gcm128_dec : mgr->gcm128_enc;
        case 24: return decrypt ? mgr->gcm192_dec : mgr->gcm192_enc;
        default: return decrypt ? mgr->gcm256_dec : mgr->gcm256_enc;
        }
}

void fb_aes_expand(const IMB_MGR *mgr, const uint8_t *key, uint32_t key_len, void *enc, void *dec)
{
        switch (key_len) {
        case 16: mgr->keyexp_128(key, enc, dec); break;
        case 24: mgr->keyexp_192(key, enc, dec); break;
        default: mgr->keyexp_256(key, enc, dec); break;
        }
}

/* The HMAC states after the first block of the key xor ipad and opad (RFC 2104); ipad and opad
 * hold one block of 64 or 128 bytes and are replaced by the states. */
void fb_hmac_states(const IMB_MGR *mgr, int hash, const uint8_t *ipad, const uint8_t *opad, void *istate, void *ostate)
{
        hash_one_block_t one_block;

        switch (hashes[hash]) {
        case IMB_AUTH_MD5: one_block = mgr->md5_one_block; break;
        case IMB_AUTH_HMAC_SHA_1: one_block = mgr->sha1_one_block; break;
        case IMB_AUTH_HMAC_SHA_256: one_block = mgr->sha256_one_block; break;
        case IMB_AUTH_HMAC_SHA_384: one_block = mgr->sha384_one_block; break;
        default: one_block = mgr->sha512_one_block; break;
        }
        one_block(ipad, istate);
        one_block(opad, ostate);
}

/* The keys of AES-XCBC-MAC (RFC 3566 4): the first one expanded, the others as they are. */
void fb_xcbc_keys(const IMB_MGR *mgr, const uint8_t *key, void *k1, void *k2, void *k3)
{
        mgr->xcbc_keyexp(key, k1, k2, k3);
}

/* The keys for the last block of AES-CMAC (RFC 4493 2.3), of an expanded key of 128 bits. */
void fb_cmac_keys(const IMB_MGR *mgr, const void *expanded, void *k1, void *k2)
{
        mgr->cmac_subkey_gen_128(expanded, k1, k2);
}

/* The three schedules of a Triple DES key of 24 bytes. */
void fb_3des_expand(const IMB_MGR *mgr, const uint8_t *key, uint8_t *out)
{
        for (int i = 0; i < 3; i++)
                mgr->des_key_sched((uint64_t *)(out + i * IMB_DES_KEY_SCHED_SIZE), key + i * 8);
}

/* The tag of n pieces as one message, by AES-GMAC with an IV of 12 bytes. */
void fb_gmac(const IMB_MGR *mgr, const struct gcm_key_data *key, uint32_t key_len, struct gcm_context_data *ctx,
             const uint8_t *iv, const struct fb_piece *pieces, uint32_t n, uint8_t *tag, uint64_t tag_len)
{
        aes_gmac_init_t init = mgr->gmac256_init;
        aes_gmac_update_t update = mgr->gmac256_update;
        aes_gmac_finalize_t finalize = mgr->gmac256_finalize;

        if (key_len == 16) {
                init = mgr->gmac128_init;
                update = mgr->gmac128_update;
                finalize = mgr->gmac128_finalize;
        } else if (key_len == 24) {
                init = mgr->gmac192_init;
                update = mgr->gmac192_update;
                finalize = mgr->gmac192_finalize;
        }
        init(key, ctx, iv, 12);
        for (uint32_t i = 0; i < n; i++)
                if (pieces[i].len > 0)
                        update(key, ctx, pieces[i].start, pieces[i].len);
        finalize(key, ctx, tag, tag_len);
}

static void finish(const IMB_JOB *done)
{
        ((struct fb_job *)done->user_data)->ok = done->status == IMB_STATUS_COMPLETED;
}

/* What the hash needs besides the message. */
static void set_hash(IMB_JOB *job, const struct fb_job *in)
{
        job->hash_start_src_offset_in_bytes = in->auth_start;
        job->msg_len_to_hash_in_bytes = in->auth_len;
        switch (job->hash_alg) {
        case IMB_AUTH_CHACHA20_POLY1305:
                job->hash_start_src_offset_in_bytes = in->cipher_start;
                job->msg_len_to_hash_in_bytes = in->cipher_len;
                job->u.CHACHA20_POLY1305.aad = in->aad;
                job->u.CHACHA20_POLY1305.aad_len_in_bytes = in->aad_len;
                break;
        case IMB_AUTH_AES_CCM:
                job->hash_start_src_offset_in_bytes = in->cipher_start;
                job->msg_len_to_hash_in_bytes = in->cipher_len;
                job->u.CCM.aad = in->aad;
                job->u.CCM.aad_len_in_bytes = in->aad_len;
                break;
        case IMB_AUTH_AES_XCBC:
                job->u.XCBC._k1_expanded = in->mac_keys[0];
                job->u.XCBC._k2 = in->mac_keys[1];
                job->u.XCBC._k3 = in->mac_keys[2];
                break;
        case IMB_AUTH_AES_CMAC:
                job->u.CMAC._key_expanded = in->mac_keys[0];
                job->u.CMAC._skey1 = in->mac_keys[1];
                job->u.CMAC._skey2 = in->mac_keys[2];
                break;
        default:
                job->u.HMAC._hashed_auth_key_xor_ipad = in->mac_keys[1];
                job->u.HMAC._hashed_auth_key_xor_opad = in->mac_keys[2];
                break;
        }
}

/* Does all jobs before it returns; n is at most FB_MAX_BURST. */
void fb_run(IMB_MGR *mgr, struct fb_job *jobs, uint32_t n)
{
        const void *schedules[FB_MAX_BURST][3]; /* of 3DES, where the library follows pointers */
        IMB_JOB *done;

        for (uint32_t i = 0; i < n; i++) {
                struct fb_job *in = &jobs[i];
                const IMB_CIPHER_MODE cipher = ciphers[in->cipher];
                const int ccm = cipher == IMB_CIPHER_CCM;
                const int aead = ccm || cipher == IMB_CIPHER_CHACHA20_POLY1305;
                IMB_JOB *job = IMB_GET_NEXT_JOB(mgr);

                in->ok = 0;
                memset(job, 0, sizeof(*job));
                job->user_data = in;
                job->enc_keys = in->enc_keys;
                job->dec_keys = in->dec_keys;
                if (cipher == IMB_CIPHER_DES3) {
                        for (int k = 0; k < 3; k++)
                                schedules[i][k] = (const uint8_t *)in->enc_keys + k * IMB_DES_KEY_SCHED_SIZE;
                        job->enc_keys = job->dec_keys = schedules[i];
                }
                job->key_len_in_bytes = in->key_len;
                job->src = in->base;
                job->dst = in->base + in->cipher_start;
                job->cipher_start_src_offset_in_bytes = in->cipher_start;
                job->msg_len_to_cipher_in_bytes = in->cipher_len;
                job->iv = in->iv;
                job->iv_len_in_bytes = in->iv_len;
                job->auth_tag_output = in->tag;
                job->auth_tag_output_len_in_bytes = in->tag_len;
                job->cipher_mode = in->cipher_len == 0 && !aead ? IMB_CIPHER_NULL : cipher;
                job->hash_alg = hashes[in->hash];
                job->cipher_direction = in->decrypt ? IMB_DIR_DECRYPT : IMB_DIR_ENCRYPT;
                /* The tag of CCM is that of the plain text. */
                job->chain_order = in->decrypt != ccm ? IMB_ORDER_HASH_CIPHER : IMB_ORDER_CIPHER_HASH;
                set_hash(job, in);
                for (done = IMB_SUBMIT_JOB(mgr); done != NULL; done = IMB_GET_COMPLETED_JOB(mgr))
                        finish(done);
        }
        while ((done = IMB_FLUSH_JOB(mgr)) != NULL)
                finish(done);
}

/* The bare cipher, for benchmarks: seals or opens the same n buffers of len bytes, `rounds` times over. */
void fb_bare_gcm(const IMB_MGR *mgr, const struct gcm_key_data *key, uint32_t key_len, int decrypt,
                 uint8_t **buffers, uint32_t n, uint64_t len, uint32_t tag_len, uint64_t rounds)
{
        const aes_gcm_enc_dec_t gcm = fb_gcm(mgr, key_len, decrypt);
        struct gcm_context_data ctx;
        /* Lines of their own: the library reads sixteen bytes of IV, and would wait each time for the
         * tag just written if that stood among them. */
        _Alignas(64) uint8_t iv[64] = { 0 };
        _Alignas(64) uint8_t aad[64] = { 0 };
        _Alignas(64) uint8_t tag[64];

        for (uint64_t r = 0; r < rounds; r++)
                for (uint32_t i = 0; i < n; i++)
                        gcm(key, &ctx, buffers[i], buffers[i], len, iv, aad, 8, tag, tag_len);
}

_Static_assert(FB_MAX_BURST <= IMB_MAX_JOBS / 2, "a burst fits the library's ring of jobs");
