/* AES by itself, in CBC and in CTR mode, against published vectors. */
#include "aes.h"
#include "check.h"

/* FIPS 197 appendix C: key, ciphertext; the plaintext is always 00112233... */
static const char *const blocks[][2] = {
    { "000102030405060708090a0b0c0d0e0f", "69c4e0d86a7b0430d8cdb78070b4c55a" },
    { "000102030405060708090a0b0c0d0e0f1011121314151617", "dda97ca4864cdfe06eaf70a0ec0d7191" },
    { "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f", "8ea2b7ca516745bfeafc49904b496089" },
};

/* RFC 3602 4, cases 1 to 4: key, IV, plaintext, ciphertext. */
static const char *const cbc[][4] = {
    { "06a9214036b8a15b512e03d534120006", "3dafba429d9eb430b422da802c9fac41", "53696e676c6520626c6f636b206d7367",
      "e353779c1079aeb82708942dbe77181a" },
    { "c286696d887c9aa0611bbb3e2025a45a", "562e17996d093d28ddb3ba695a2e6f58",
      "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
      "d296cd94c2cccf8a3a863028b5e1dc0a7586602d253cfff91b8266bea6d61ab1" },
    { "6c3ea0477630ce21a2ce334aa746c2cd", "c782dc4c098c66cbd9cd27d825682c81",
      "5468697320697320612034382d62797465206d657373616765202865786163746c7920332041455320626c6f636b7329",
      "d0a02b3836451753d493665d33f0e8862dea54cdb293abc7506939276772f8d5021c19216bad525c8579695d83ba2684" },
    { "56e47a38c5598974bc46903dba290349", "8ce82eefbea0da3c44699ed7db51b7d9",
      "a0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebfc0c1c2c3c4c5c6c7c8c9cacbcccdcecf"
      "d0d1d2d3d4d5d6d7d8d9dadbdcdddedf",
      "c30e32ffedc0774e6aff6af0869f71aa0f3af07a9a31a9c684db207eb0ef8e4e35907aa632c3ffdf868bb7b29d3d46ad"
      "83ce9f9a102ee99d49a53e87f4c3da55" },
};

/* RFC 3686 6: key, first counter block, plaintext, ciphertext. */
static const char *const ctr[][4] = {
    { "ae6852f8121067cc4bf7a5765577f39e", "00000030000000000000000000000001", "53696e676c6520626c6f636b206d7367",
      "e4095d4fb7a7b3792d6175a3261311b8" },
    { "7e24067817fae0d743d6ce1f32539163", "006cb6dbc0543b59da48d90b00000001",
      "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
      "5104a106168a72d9790d41ee8edad388eb2e1efc46da57c8fce630df9141be28" },
    { "7691be035e5020a8ac6e618529f9a0dc", "00e0017b27777f3f4a1786f000000001",
      "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20212223",
      "c1cf48a89f2ffdd9cf4652e9efdb72d74540a42bde6d7836d59a5ceaaef3105325b2072f" },
    { "16af5b145fc9f579c175f93e3bfb0eed863d06ccfdb78515", "0000004836733c147d6d93cb00000001",
      "53696e676c6520626c6f636b206d7367", "4b55384fe259c9c84e7935a003cbe928" },
    { "7c5cb2401b3dc33c19e7340819e0f69c678c3db8e6f6a91a", "0096b03b020c6eadc2cb500d00000001",
      "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
      "453243fc609b23327edfaafa7131cd9f8490701c5ad4a79cfc1fe0ff42f4fb00" },
    { "02bf391ee8ecb159b959617b0965279bf59b60a786d3e0fe", "0007bdfd5cbd60278dcc091200000001",
      "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20212223",
      "96893fc55e5c722f540b7dd1ddf7e758d288bc95c69165884536c811662f2188abee0935" },
    { "776beff2851db06f4c8a0542c8696f6c6a81af1eec96b4d37fc1d689e6c1c104", "00000060db5672c97aa8f0b200000001",
      "53696e676c6520626c6f636b206d7367", "145ad01dbf824ec7560863dc71e3e0c0" },
    { "f6d66d6bd52d59bb0796365879eff886c66dd51a5b6a99744b50590c87a23884", "00faac24c1585ef15a43d87500000001",
      "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
      "f05e231b3894612c49ee000b804eb2a9b8306b508f839d6a5530831d9344af1c" },
    { "ff7a617ce69148e4f1726e2f43581de2aa62d9f805532edff1eed687fb54153d", "001cc5b751a51d70a1c1114800000001",
      "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20212223",
      "eb6c52821d0bbbf7ce7594462aca4faab407df866569fd07f48cc0b583d6071f1ec0e6b8" },
};

static void test_block(const char *key_hex, const char *sealed)
{
    uint8_t bytes[32];
    _Alignas(4) uint8_t data[16];
    uint32_t block[4];
    struct aes_key key, inverse;
    aes_key_expand(&key, bytes, unhex(bytes, sizeof bytes, key_hex));
    aes_key_invert(&inverse, &key);
    unhex(data, sizeof data, "00112233445566778899aabbccddeeff");
    load_block(block, data);
    aes_encrypt(&key, block);
    store_block(data, block);
    check_hex("FIPS 197, encrypt", data, sizeof data, sealed);
    aes_decrypt(&inverse, block);
    store_block(data, block);
    check_hex("FIPS 197, decrypt", data, sizeof data, "00112233445566778899aabbccddeeff");
}

static void test_cbc(const char *const vector[4])
{
    uint8_t bytes[32];
    _Alignas(4) uint8_t iv[16], data[64];
    struct aes_key key, inverse;
    aes_key_expand(&key, bytes, unhex(bytes, sizeof bytes, vector[0]));
    aes_key_invert(&inverse, &key);
    unhex(iv, sizeof iv, vector[1]);
    size_t len = unhex(data, sizeof data, vector[2]);
    aes_cbc_encrypt(&key, iv, data, len);
    check_hex("RFC 3602, encrypt", data, len, vector[3]);
    aes_cbc_decrypt(&inverse, iv, data, len);
    check_hex("RFC 3602, decrypt", data, len, vector[2]);
}

static void test_ctr(const char *const vector[4])
{
    uint8_t bytes[32];
    _Alignas(4) uint8_t counter[16], data[64];
    struct aes_key key;
    aes_key_expand(&key, bytes, unhex(bytes, sizeof bytes, vector[0]));
    unhex(counter, sizeof counter, vector[1]);
    size_t len = unhex(data, sizeof data, vector[2]);
    aes_ctr(&key, counter, data, len);
    check_hex("RFC 3686", data, len, vector[3]);
}

void test_aes(void)
{
    for (size_t i = 0; i < COUNT(blocks); i++)
        test_block(blocks[i][0], blocks[i][1]);
    for (size_t i = 0; i < COUNT(cbc); i++)
        test_cbc(cbc[i]);
    for (size_t i = 0; i < COUNT(ctr); i++)
        test_ctr(ctr[i]);
}
