// The kernels. A launch is those of `cipher_*` that its jobs need, one work-item for each chunk, and then those of `tag_*`, one
// for each job; work-items whose job is of another algorithm have nothing to do.
//
// `in` has the texts, jobs at `jobs_at` and chunks at `chunks_at` (both in words); `out` has texts, and at `tags_at` the jobs' tags
// of 16 bytes. Texts are read from `in` and written to `out`, so that chunks and tags may read ciphertext at any time; only HMAC, whose
// text can be anywhere in what it covers, has sealed text put back into `in` as well.
#define ARGUMENTS                                                                                                 \
    GLOBAL u32 *in, GLOBAL u32 *out, GLOBAL const u32 *keys, GLOBAL u32 *shares, u32 jobs_at, u32 chunks_at, u32 tags_at, \
        u32 count

// Words of text that belong to the block at byte `at` of a text of `len`.
FN u32 mask_word(u32 len, u32 at)
{
    return at >= len ? 0u : first_bytes(len - at);
}

KERNEL void cipher_ctr(ARGUMENTS)
{
    u32 index = INDEX;
    if (index >= count)
        return;
    GLOBAL const u32 *job = in + jobs_at + JOB_WORDS * in[chunks_at + CHUNK_WORDS * index];
    u32 number = in[chunks_at + CHUNK_WORDS * index + 1u], kind = job[JOB_KIND], algorithm = kind & ALGORITHM_MASK;
    if (algorithm != ALGORITHM_GCM && algorithm != ALGORITHM_CTR)
        return;
    GLOBAL const u32 *record = keys + RECORD_WORDS * job[JOB_RECORD];
    GLOBAL u32 *from = in + job[JOB_TEXT] / 4u, *to = out + job[JOB_OUT] / 4u;
    u32 len = job[JOB_TEXT_LEN], is_gcm = algorithm == ALGORITHM_GCM;
    // Counters begin with 1. In GCM that one masks the tag, and the text begins with the next (NIST SP 800-38D 7.1).
    u32 block = CHUNK_BLOCKS * number, blocks = (len + 15u) / 16u + is_gcm;
    u32 end = blocks - block < CHUNK_BLOCKS ? blocks : block + CHUNK_BLOCKS;
    Block share = {0, 0}, h = {0, 0};
    if (is_gcm)
        h = ghash_power(record, 1);
    u32 sealed = is_gcm && (kind & FLAG_SEAL), restored = (kind & FLAG_SEAL) && (kind & FLAG_HMAC);
    for (; block < end; block += 4u) {
        u32 stream[16];
        for (u32 i = 0; i < 4u; i++) {
            stream[4u * i] = record[RECORD_SALT];
            stream[4u * i + 1u] = job[JOB_IV];
            stream[4u * i + 2u] = job[JOB_IV + 1];
            stream[4u * i + 3u] = swap32(block + i + 1u);
        }
        aes_encipher(stream, record);
        for (u32 i = 0; i < 4u; i++) {
            if (block + i >= end)
                break;
            if (is_gcm && block + i == 0u) {
                for (u32 j = 0; j < 4u; j++)
                    shares[SHARE_WORDS * index + 4u + j] = stream[j];
                continue;
            }
            u32 at = 16u * (block + i - is_gcm), text[4];
            for (u32 j = 0; j < 4u; j++) {
                u32 given = from[at / 4u + j], word = given ^ (stream[4u * i + j] & mask_word(len, at + 4u * j));
                to[at / 4u + j] = word;
                if (restored)
                    from[at / 4u + j] = word;
                text[j] = sealed ? word : given;
            }
            if (is_gcm)
                share = ghash_add(share, text, h);
        }
    }
    if (is_gcm) {
        shares[SHARE_WORDS * index] = (u32)share.high;
        shares[SHARE_WORDS * index + 1u] = (u32)(share.high >> 32);
        shares[SHARE_WORDS * index + 2u] = (u32)share.low;
        shares[SHARE_WORDS * index + 3u] = (u32)(share.low >> 32);
    }
}

// A sealed chain is one chunk, one block after the other from a zero IV (`JobSpec::cipher`); opened, all blocks are free.
KERNEL void cipher_cbc(ARGUMENTS)
{
    u32 index = INDEX;
    if (index >= count)
        return;
    GLOBAL const u32 *job = in + jobs_at + JOB_WORDS * in[chunks_at + CHUNK_WORDS * index];
    u32 number = in[chunks_at + CHUNK_WORDS * index + 1u], kind = job[JOB_KIND];
    if ((kind & ALGORITHM_MASK) != ALGORITHM_CBC)
        return;
    GLOBAL const u32 *record = keys + RECORD_WORDS * job[JOB_RECORD];
    GLOBAL u32 *from = in + job[JOB_TEXT] / 4u, *to = out + job[JOB_OUT] / 4u;
    u32 len = job[JOB_TEXT_LEN], text[16];
    if (kind & FLAG_SEAL) {
        for (u32 j = 0; j < 16u; j++)
            text[j] = 0;
        for (u32 at = 0; at < len; at += 16u) {
            for (u32 j = 0; j < 4u; j++)
                text[j] ^= from[at / 4u + j];
            aes_encipher(text, record);
            for (u32 j = 0; j < 4u; j++)
                to[at / 4u + j] = from[at / 4u + j] = text[j];
        }
        return;
    }
    u32 end = len - CHUNK_BYTES * number < CHUNK_BYTES ? len : CHUNK_BYTES * (number + 1u);
    for (u32 at = CHUNK_BYTES * number; at < end; at += 64u) {
        for (u32 j = 0; j < 16u; j++)
            text[j] = at + 4u * j < end ? from[at / 4u + j] : 0u;
        aes_decipher(text, record);
        for (u32 j = 0; j < 16u; j++) {
            if (at + 4u * j < end)
                to[at / 4u + j] = text[j] ^ (at == 0u && j < 4u ? job[JOB_IV + j] : from[at / 4u + j - 4u]);
        }
    }
}

KERNEL void cipher_chacha(ARGUMENTS)
{
    u32 index = INDEX;
    if (index >= count)
        return;
    GLOBAL const u32 *job = in + jobs_at + JOB_WORDS * in[chunks_at + CHUNK_WORDS * index];
    u32 number = in[chunks_at + CHUNK_WORDS * index + 1u];
    if ((job[JOB_KIND] & ALGORITHM_MASK) != ALGORITHM_CHACHA)
        return;
    GLOBAL const u32 *record = keys + RECORD_WORDS * job[JOB_RECORD];
    GLOBAL u32 *from = in + job[JOB_TEXT] / 4u, *to = out + job[JOB_OUT] / 4u;
    u32 len = job[JOB_TEXT_LEN], iv0 = job[JOB_IV], iv1 = job[JOB_IV + 1];
    u32 end = len - CHUNK_BYTES * number < CHUNK_BYTES ? len : CHUNK_BYTES * (number + 1u);
    for (u32 at = CHUNK_BYTES * number; at < end; at += 64u) {
        u32 stream[16];
        // Block 0 makes Poly1305's key (RFC 8439 2.8).
        chacha_block(stream, record, at / 64u + 1u, iv0, iv1);
        // The text has room for whole blocks of 16 bytes.
        for (u32 j = 0; j < 16u; j++) {
            if (at + (j & ~3u) * 4u < end)
                to[at / 4u + j] = from[at / 4u + j] ^ (stream[j] & mask_word(len, at + 4u * j));
        }
    }
}

KERNEL void tag_gcm(ARGUMENTS)
{
    u32 index = INDEX;
    if (index >= count)
        return;
    GLOBAL const u32 *job = in + jobs_at + JOB_WORDS * index;
    if ((job[JOB_KIND] & ALGORITHM_MASK) != ALGORITHM_GCM)
        return;
    GLOBAL const u32 *record = keys + RECORD_WORDS * job[JOB_RECORD];
    GLOBAL const u32 *share = shares + SHARE_WORDS * job[JOB_CHUNK], *aad = in + job[JOB_AUTH] / 4u;
    u32 len = job[JOB_TEXT_LEN], aad_len = job[JOB_AUTH_LEN], w[4];
    Block y = {0, 0}, h = ghash_power(record, 1);
    for (u32 at = 0; at < aad_len; at += 16u) {
        for (u32 j = 0; j < 4u; j++)
            w[j] = aad[at / 4u + j];
        y = ghash_add(y, w, h);
    }
    // Each share is the sum of its chunk's n blocks, times H; what came before is n blocks further away.
    u32 left = (len + 15u) / 16u, room = CHUNK_BLOCKS - 1u;
    for (u32 i = 0; i < job[JOB_CHUNKS] && left > 0u; i++) {
        u32 n = left < room ? left : room;
        y = ghash_multiply(y, ghash_power(record, n));
        y.high ^= (u64)share[SHARE_WORDS * i + 1u] << 32 | share[SHARE_WORDS * i];
        y.low ^= (u64)share[SHARE_WORDS * i + 3u] << 32 | share[SHARE_WORDS * i + 2u];
        left -= n;
        room = CHUNK_BLOCKS;
    }
    y.high ^= (u64)aad_len * 8u;
    y.low ^= (u64)len * 8u;
    y = ghash_multiply(y, h);
    out[tags_at + 4u * index] = swap32((u32)(y.high >> 32)) ^ share[4];
    out[tags_at + 4u * index + 1u] = swap32((u32)y.high) ^ share[5];
    out[tags_at + 4u * index + 2u] = swap32((u32)(y.low >> 32)) ^ share[6];
    out[tags_at + 4u * index + 3u] = swap32((u32)y.low) ^ share[7];
}

KERNEL void tag_poly(ARGUMENTS)
{
    u32 index = INDEX;
    if (index >= count)
        return;
    GLOBAL const u32 *job = in + jobs_at + JOB_WORDS * index;
    u32 kind = job[JOB_KIND];
    if ((kind & ALGORITHM_MASK) != ALGORITHM_CHACHA)
        return;
    GLOBAL const u32 *record = keys + RECORD_WORDS * job[JOB_RECORD], *aad = in + job[JOB_AUTH] / 4u;
    GLOBAL const u32 *text = kind & FLAG_SEAL ? out + job[JOB_OUT] / 4u : in + job[JOB_TEXT] / 4u;
    u32 len = job[JOB_TEXT_LEN], aad_len = job[JOB_AUTH_LEN], key[16], tag[4];
    chacha_block(key, record, 0, job[JOB_IV], job[JOB_IV + 1]);
    Poly p = poly_new(key);
    for (u32 at = 0; at < (aad_len + 15u) / 16u * 4u; at += 4u)
        poly_add(&p, aad[at], aad[at + 1u], aad[at + 2u], aad[at + 3u]);
    for (u32 at = 0; at < (len + 15u) / 16u * 4u; at += 4u)
        poly_add(&p, text[at], text[at + 1u], text[at + 2u], text[at + 3u]);
    poly_add(&p, aad_len, 0, len, 0);
    poly_tag(&p, key + 4, tag);
    for (u32 j = 0; j < 4u; j++)
        out[tags_at + 4u * index + j] = tag[j];
}

KERNEL void tag_hmac(ARGUMENTS)
{
    u32 index = INDEX;
    if (index >= count)
        return;
    GLOBAL const u32 *job = in + jobs_at + JOB_WORDS * index;
    if (!(job[JOB_KIND] & FLAG_HMAC))
        return;
    GLOBAL const u32 *record = keys + RECORD_WORDS * job[JOB_RECORD];
    // The high half is part of the message, and the pad of 64 bytes before it was hashed with the key.
    u32 len = job[JOB_AUTH_LEN] + (job[JOB_KIND] & FLAG_HIGH ? 4u : 0u), s[8], w[16], inner[8];
    for (u32 j = 0; j < 8u; j++)
        s[j] = record[RECORD_INNER + j];
    u32 blocks = (len + 1u + 8u + 63u) / 64u;
    for (u32 i = 0; i < blocks; i++) {
        for (u32 j = 0; j < 16u; j++)
            w[j] = swap32(message_word(in, job, 64u * i + 4u * j));
        if (i + 1u == blocks)
            w[15] = 8u * (64u + len);
        sha256_block(s, w);
    }
    for (u32 j = 0; j < 8u; j++) {
        inner[j] = s[j];
        s[j] = record[RECORD_OUTER + j];
        w[j] = inner[j];
        w[8u + j] = 0;
    }
    w[8] = 0x80000000u;
    w[15] = 8u * (64u + 32u);
    sha256_block(s, w);
    for (u32 j = 0; j < 4u; j++)
        out[tags_at + 4u * index + j] = swap32(s[j]);
}
