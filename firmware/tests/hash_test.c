/* Hashes and HMAC against published vectors, and fed in pieces of all sizes. */
#include "check.h"
#include "hmac.h"

/* RFC 1321 A.5; FIPS 180-2 appendices A and B: message, digest. */
static const struct {
    const char *name;
    const struct hash_kind *kind;
    const char *message, *digest;
} plain[] = {
    { "MD5", &hash_md5, "", "d41d8cd98f00b204e9800998ecf8427e" },
    { "MD5", &hash_md5, "abc", "900150983cd24fb0d6963f7d28e17f72" },
    { "MD5", &hash_md5, "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
      "57edf4a22be3c955ac49da2e2107b67a" },
    { "SHA-1", &hash_sha1, "abc", "a9993e364706816aba3e25717850c26c9cd0d89d" },
    { "SHA-1", &hash_sha1, "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "84983e441c3bd26ebaae4aa1f95129e5e54670f1" },
    { "SHA-256", &hash_sha256, "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
    { "SHA-256", &hash_sha256, "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
};

/* RFC 2202 2 and 3, RFC 4231 4: key, message, tag (one is cut short there). */
static const struct {
    const char *name;
    const struct hash_kind *kind;
    const char *key, *message, *tag;
} keyed[] = {
    { "HMAC-MD5", &hash_md5, "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b", "4869205468657265",
      "9294727a3638bb1c13f48ef8158bfc9d" },
    { "HMAC-MD5", &hash_md5, "4a656665", "7768617420646f2079612077616e7420666f72206e6f7468696e673f",
      "750c783e6ab0b503eaa86e310a5db738" },
    { "HMAC-MD5", &hash_md5, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
      "dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd"
      "dddd",
      "56be34521d144c88dbb8c733f0e8b3f6" },
    { "HMAC-MD5", &hash_md5, "0102030405060708090a0b0c0d0e0f10111213141516171819",
      "cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd"
      "cdcd",
      "697eaf0aca3a3aea3a75164746ffaa79" },
    { "HMAC-MD5", &hash_md5, "0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c", "546573742057697468205472756e636174696f6e",
      "56461ef2342edc00f9bab995690efd4c" },
    { "HMAC-MD5", &hash_md5,
      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
      "54657374205573696e67204c6172676572205468616e20426c6f636b2d53697a65204b6579202d2048617368204b6579"
      "204669727374",
      "6b1ab7fe4bd7bf8f0b62e6ce61b9d0cd" },
    { "HMAC-MD5", &hash_md5,
      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
      "54657374205573696e67204c6172676572205468616e20426c6f636b2d53697a65204b657920616e64204c6172676572"
      "205468616e204f6e6520426c6f636b2d53697a652044617461",
      "6f630fad67cda0ee1fb1f562db3aa53e" },
    { "HMAC-SHA-1", &hash_sha1, "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b", "4869205468657265",
      "b617318655057264e28bc0b6fb378c8ef146be00" },
    { "HMAC-SHA-1", &hash_sha1, "4a656665", "7768617420646f2079612077616e7420666f72206e6f7468696e673f",
      "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79" },
    { "HMAC-SHA-1", &hash_sha1, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
      "dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd"
      "dddd",
      "125d7342b9ac11cd91a39af48aa17b4f63f175d3" },
    { "HMAC-SHA-1", &hash_sha1, "0102030405060708090a0b0c0d0e0f10111213141516171819",
      "cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd"
      "cdcd",
      "4c9007f4026250c6bc8414f9bf50c86c2d7235da" },
    { "HMAC-SHA-1", &hash_sha1, "0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c", "546573742057697468205472756e636174696f6e",
      "4c1a03424b55e07fe7f27be1d58bb9324a9a5a04" },
    { "HMAC-SHA-1", &hash_sha1,
      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
      "54657374205573696e67204c6172676572205468616e20426c6f636b2d53697a65204b6579202d2048617368204b6579"
      "204669727374",
      "aa4ae5e15272d00e95705637ce8a3b55ed402112" },
    { "HMAC-SHA-1", &hash_sha1,
      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
      "54657374205573696e67204c6172676572205468616e20426c6f636b2d53697a65204b657920616e64204c6172676572"
      "205468616e204f6e6520426c6f636b2d53697a652044617461",
      "e8e99d0f45237d786d6bbaa7965c7808bbff1a91" },
    { "HMAC-SHA-256", &hash_sha256, "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b", "4869205468657265",
      "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7" },
    { "HMAC-SHA-256", &hash_sha256, "4a656665", "7768617420646f2079612077616e7420666f72206e6f7468696e673f",
      "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843" },
    { "HMAC-SHA-256", &hash_sha256, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
      "dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd"
      "dddd",
      "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe" },
    { "HMAC-SHA-256", &hash_sha256, "0102030405060708090a0b0c0d0e0f10111213141516171819",
      "cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd"
      "cdcd",
      "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b" },
    { "HMAC-SHA-256", &hash_sha256,
      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
      "54657374205573696e67204c6172676572205468616e20426c6f636b2d53697a65204b6579202d2048617368204b6579"
      "204669727374",
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54" },
    { "HMAC-SHA-256", &hash_sha256,
      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
      "5468697320697320612074657374207573696e672061206c6172676572207468616e20626c6f636b2d73697a65206b65"
      "7920616e642061206c6172676572207468616e20626c6f636b2d73697a6520646174612e20546865206b6579206e6565"
      "647320746f20626520686173686564206265666f7265206265696e6720757365642062792074686520484d414320616c"
      "676f726974686d2e",
      "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2" },
};

/* A message of all lengths up to three blocks, at once and in pieces that leave the words' boundaries. */
static void test_pieces(const struct hash_kind *kind)
{
    _Alignas(4) uint8_t data[3 * HASH_BLOCK];
    uint8_t whole[HASH_DIGEST_MAX], pieces[HASH_DIGEST_MAX];
    bool same = true;
    struct hash hash;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(7 * i);
    for (size_t len = 0; len <= sizeof data; len++) {
        hash_start(&hash, kind);
        hash_update(&hash, data, len);
        hash_finish(&hash, whole);
        hash_start(&hash, kind);
        for (size_t at = 0, piece = len % 7 + 1; at < len; at += piece)
            hash_update(&hash, data + at, len - at < piece ? len - at : piece);
        hash_finish(&hash, pieces);
        same = same && memcmp(whole, pieces, 4U * kind->words) == 0;
    }
    check("a hash in pieces", same);
}

void test_hash(void)
{
    uint8_t key_bytes[160], message[160], digest[HASH_DIGEST_MAX];
    for (size_t i = 0; i < COUNT(plain); i++) {
        struct hash hash;
        hash_start(&hash, plain[i].kind);
        hash_update(&hash, (const uint8_t *)plain[i].message, strlen(plain[i].message));
        hash_finish(&hash, digest);
        check_hex(plain[i].name, digest, strlen(plain[i].digest) / 2, plain[i].digest);
    }
    for (size_t i = 0; i < COUNT(keyed); i++) {
        struct hmac_key key;
        hmac_key_init(&key, keyed[i].kind, key_bytes, unhex(key_bytes, sizeof key_bytes, keyed[i].key));
        size_t len = unhex(message, sizeof message, keyed[i].message);
        hmac(&key, message, len, NULL, 0, digest);
        check_hex(keyed[i].name, digest, strlen(keyed[i].tag) / 2, keyed[i].tag);
        hmac(&key, message, len / 2, message + len / 2, len - len / 2, digest);
        check_hex(keyed[i].name, digest, strlen(keyed[i].tag) / 2, keyed[i].tag);
    }
    test_pieces(&hash_md5);
    test_pieces(&hash_sha1);
    test_pieces(&hash_sha256);
}
