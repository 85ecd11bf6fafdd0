// One text for OpenCL C 1.2 and CUDA C: all that differs between the two stands here.
//
// Nothing below looks anything up by secret data or branches on it. What steers loops and addresses are lengths, counts and
// algorithms, which anybody sees on the wire. Table look-ups are of constants, by the number of a round.

#ifdef __OPENCL_VERSION__
#define KERNEL __kernel
#define GLOBAL __global
#define CONSTANT __constant
#define FN static inline
#define INDEX ((u32)get_global_id(0))
typedef ulong u64;
typedef uint u32;
#else
#define KERNEL extern "C" __global__
#define GLOBAL
#define CONSTANT __constant__
#define FN static __device__ __forceinline__
#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)
typedef unsigned long long u64;
typedef unsigned int u32;
#endif

// Words of 32 bits are little-endian in all buffers, as on all devices that there are.

// Of a job, in words. `src/pack.rs` writes them.
#define JOB_WORDS 16
#define JOB_RECORD 0    // its key record
#define JOB_KIND 1      // ALGORITHM_*, FLAG_*
#define JOB_TEXT 2      // where its text is in `in`, in bytes, a multiple of 16
#define JOB_TEXT_LEN 3  // in bytes
#define JOB_AUTH 4      // where its AAD is, a multiple of 16, or what HMAC covers, at any byte
#define JOB_AUTH_LEN 5  // in bytes
#define JOB_IV 6        // two words, or for CBC four
#define JOB_HIGH 10     // what HMAC covers behind it where FLAG_HIGH is set: the number's high half, as in the packet
#define JOB_CHUNK 11    // the first of its chunks
#define JOB_CHUNKS 12   // how many it has
#define JOB_OUT 13      // where its text is in `out`, a multiple of 16

#define ALGORITHM_MASK 15u
#define ALGORITHM_GCM 1u
#define ALGORITHM_CTR 2u
#define ALGORITHM_CBC 3u
#define ALGORITHM_CHACHA 4u
#define FLAG_SEAL 16u
#define FLAG_HMAC 32u
#define FLAG_HIGH 64u

// A chunk is a job's number and which of its chunks it is: 256 bytes of text, the first of GCM 16 less (see `cipher_ctr`).
#define CHUNK_WORDS 2
#define CHUNK_BYTES 256u
#define CHUNK_BLOCKS 16u

// Of a key record, in words. `src/keys.rs` writes them.
#define RECORD_WORDS 128u
#define RECORD_KEY 0u      // bit planes of AES's round keys, four words each, or ChaCha20's key
#define RECORD_SALT 60u
#define RECORD_ROUNDS 61u
#define RECORD_POWERS 64u  // GHASH's H, H^2 ... H^16, each as two numbers of 64 bits, the high one first
#define RECORD_INNER 64u   // SHA-256 after HMAC's inner pad
#define RECORD_OUTER 72u   // and after its outer pad

// What `cipher_ctr` leaves for `tag_gcm`, of each chunk, in words: its share of GHASH, and of the first the mask of the tag.
#define SHARE_WORDS 8u

FN u32 swap32(u32 x)
{
    return x << 24 | (x & 0xff00u) << 8 | (x >> 8 & 0xff00u) | x >> 24;
}

FN u32 rotl32(u32 x, u32 n)
{
    return x << n | x >> (32u - n);
}

// All bits of the first `n` bytes of a word, for any n.
FN u32 first_bytes(u32 n)
{
    return n >= 4u ? 0xffffffffu : (1u << 8u * n) - 1u;
}
