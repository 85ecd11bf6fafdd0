// What crypto-dpdk needs of DPDK's crypto devices: much of that API is inline functions and macros.
//
// A queue owns its operations for as long as it lives, each at a fixed number, its slot. A software device works on packets
// where they are. For any other the slot has a buffer, into which what is to be worked on is copied, and out of which what
// has changed is copied back after the device has given the operation back.

#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_bus_vdev.h>
#include <rte_cryptodev.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <rte_version.h>

#define AAD_MAX 1024
#define SEQ_HI_LEN 4

// Behind each operation: what it points at. The slot and the IV are in the operation's own cache lines.
struct room {
	uint32_t slot;
	uint8_t iv[16];
	uint8_t digest[64];
	uint8_t aad[AAD_MAX + SEQ_HI_LEN];
};
#define ROOM (sizeof(struct rte_crypto_op) + sizeof(struct rte_crypto_sym_op))

struct fb_queue {
	uint8_t device;
	// Packets are copied.
	uint8_t copies;
	uint16_t pair;
	uint32_t slots;
	struct rte_mempool *op_pool;
	struct rte_mempool *mbuf_pool;
	struct rte_crypto_op **ops;
	struct rte_crypto_op **burst;
};

// The fields of `fb_keys` in lib.rs.
struct fb_keys {
	int32_t aead, cipher, auth;
	const uint8_t *cipher_key, *auth_key;
	uint16_t cipher_key_len, auth_key_len;
	uint16_t iv_len, icv_len, aad_len;
	uint8_t decrypt;
};

// The fields of `Job` in lib.rs. All positions are in `buffer`.
struct fb_job {
	void *session;
	uint8_t *buffer;
	uint32_t start, len;
	uint32_t cipher_start, cipher_len;
	uint32_t auth_start, auth_len;
	uint32_t icv_start;
	uint8_t iv[16];
	uint8_t seq_hi[SEQ_HI_LEN];
	uint8_t behind[SEQ_HI_LEN];
	uint8_t icv_len, flags, is_held;
};
enum { AEAD = 1, SEALS = 2, HAS_SEQ_HI = 4, HAS_TEXT = 8 };

// The fields of `Done` in lib.rs.
struct fb_done {
	uint32_t slot;
	uint32_t status;
};
enum { DONE, AUTH_FAILED, FAILED, NOT_HELD };

const char *fb_dpdk_version(void) { return rte_version(); }

// Starts DPDK, once for a process; the thread may run where it could before.
int fb_dpdk_start(int argc, char **argv)
{
	cpu_set_t before;
	int kept = pthread_getaffinity_np(pthread_self(), sizeof before, &before) == 0;
	int result = rte_eal_init(argc, argv);
	if (kept)
		pthread_setaffinity_np(pthread_self(), sizeof before, &before);
	return result < 0 ? -rte_errno : 0;
}

// The number of the device of this name, or at this place on a bus: those are named by it and their driver.
static int numbered(const char *name)
{
	const size_t len = strlen(name);
	for (uint8_t device = 0; device < RTE_CRYPTO_MAX_DEVS; device++) {
		if (!rte_cryptodev_is_valid_dev(device))
			continue;
		const char *found = rte_cryptodev_name_get(device);
		if (strncmp(found, name, len) == 0 && (found[len] == 0 || (strchr(name, ':') != NULL && found[len] == '_')))
			return device;
	}
	return -1;
}

// The number of a device by its name; one on a bus is looked for, and a virtual one is made, if there is none. Negative:
// there is none.
int fb_dpdk_find(const char *name, const char *arguments)
{
	int device = numbered(name);
	if (device >= 0)
		return device;
	int result = strchr(name, ':') != NULL ? rte_dev_probe(name) : rte_vdev_init(name, arguments);
	return result == 0 ? numbered(name) : -1;
}

// Writes the names of all devices, one a line.
void fb_dpdk_names(char *out, size_t size)
{
	size_t used = 0;
	out[0] = 0;
	for (uint8_t device = 0; device < RTE_CRYPTO_MAX_DEVS; device++)
		if (rte_cryptodev_is_valid_dev(device) && used < size)
			used += (size_t)snprintf(out + used, size - used, "%s\n", rte_cryptodev_name_get(device));
}

// Writes the names of all drivers for crypto devices that are loaded, one a line.
void fb_dpdk_drivers(char *out, size_t size)
{
	size_t used = 0;
	const char *name;
	out[0] = 0;
	for (uint8_t driver = 0; driver < UINT8_MAX && (name = rte_cryptodev_driver_name_get(driver)) != NULL; driver++)
		if (used < size)
			used += (size_t)snprintf(out + used, size - used, "%s\n", name);
}

uint32_t fb_dpdk_queue_pairs(uint8_t device)
{
	struct rte_cryptodev_info info;
	rte_cryptodev_info_get(device, &info);
	return info.max_nb_queue_pairs;
}

// Whether the device is software that computes on this machine's cores, for which memory needs no more than an address.
// DPDK's scheduler of devices may have others below it.
int fb_dpdk_is_software(uint8_t device)
{
	const uint64_t by_core = RTE_CRYPTODEV_FF_CPU_SSE | RTE_CRYPTODEV_FF_CPU_AVX | RTE_CRYPTODEV_FF_CPU_AVX2 |
				 RTE_CRYPTODEV_FF_CPU_AVX512 | RTE_CRYPTODEV_FF_CPU_AESNI | RTE_CRYPTODEV_FF_CPU_NEON |
				 RTE_CRYPTODEV_FF_CPU_ARM_CE;
	struct rte_cryptodev_info info;
	rte_cryptodev_info_get(device, &info);
	return (info.feature_flags & by_core) != 0 && (info.feature_flags & RTE_CRYPTODEV_FF_HW_ACCELERATED) == 0 &&
	       strcmp(info.driver_name, "crypto_scheduler") != 0;
}

static int has_range(const struct rte_crypto_param_range *range, uint16_t value)
{
	if (value < range->min || value > range->max)
		return 0;
	return range->increment == 0 ? value == range->min || value == range->max
				     : (value - range->min) % range->increment == 0;
}

// Whether the device does this.
int fb_dpdk_has(uint8_t device, const struct fb_keys *keys)
{
	struct rte_cryptodev_sym_capability_idx index;
	const struct rte_cryptodev_symmetric_capability *found;
	memset(&index, 0, sizeof index);
	if (keys->aead >= 0) {
		index.type = RTE_CRYPTO_SYM_XFORM_AEAD;
		index.algo.aead = keys->aead;
		found = rte_cryptodev_sym_capability_get(device, &index);
		// Of AAD the length without and with the high half of the sequence number.
		return found != NULL && has_range(&found->aead.key_size, keys->cipher_key_len) &&
		       has_range(&found->aead.digest_size, keys->icv_len) &&
		       has_range(&found->aead.iv_size, keys->iv_len) && has_range(&found->aead.aad_size, 8) &&
		       has_range(&found->aead.aad_size, 12);
	}
	if (keys->cipher >= 0) {
		index.type = RTE_CRYPTO_SYM_XFORM_CIPHER;
		index.algo.cipher = keys->cipher;
		found = rte_cryptodev_sym_capability_get(device, &index);
		if (found == NULL || !has_range(&found->cipher.key_size, keys->cipher_key_len) ||
		    !has_range(&found->cipher.iv_size, keys->iv_len))
			return 0;
	}
	if (keys->auth >= 0) {
		index.type = RTE_CRYPTO_SYM_XFORM_AUTH;
		index.algo.auth = keys->auth;
		found = rte_cryptodev_sym_capability_get(device, &index);
		if (found == NULL || !has_range(&found->auth.key_size, keys->auth_key_len) ||
		    !has_range(&found->auth.digest_size, keys->icv_len))
			return 0;
	}
	return 1;
}

// Readies and starts a device with so many queue pairs and sessions; the pool of its sessions, or nothing.
void *fb_dpdk_ready(uint8_t device, uint16_t pairs, uint32_t descriptors, uint32_t sessions)
{
	char name[32];
	snprintf(name, sizeof name, "forebay_sessions_%u", device);
	int socket = rte_cryptodev_socket_id(device);
	struct rte_mempool *pool = rte_cryptodev_sym_session_pool_create(
		name, sessions, rte_cryptodev_sym_get_private_session_size(device), 0, 0, socket);
	struct rte_cryptodev_config config = {.socket_id = socket, .nb_queue_pairs = pairs};
	struct rte_cryptodev_qp_conf pair = {.nb_descriptors = descriptors, .mp_session = pool};
	if (pool == NULL || rte_cryptodev_configure(device, &config) != 0)
		return NULL;
	for (uint16_t at = 0; at < pairs; at++)
		if (rte_cryptodev_queue_pair_setup(device, at, &pair, socket) != 0)
			return NULL;
	return rte_cryptodev_start(device) == 0 ? pool : NULL;
}

// Opens a session; nothing if the device refuses.
void *fb_dpdk_session(uint8_t device, void *pool, const struct fb_keys *keys)
{
	struct rte_crypto_sym_xform first, second, *begin = &first;
	const uint16_t iv_at = ROOM + offsetof(struct room, iv);
	memset(&first, 0, sizeof first);
	memset(&second, 0, sizeof second);
	if (keys->aead >= 0) {
		first.type = RTE_CRYPTO_SYM_XFORM_AEAD;
		first.aead.op = keys->decrypt ? RTE_CRYPTO_AEAD_OP_DECRYPT : RTE_CRYPTO_AEAD_OP_ENCRYPT;
		first.aead.algo = keys->aead;
		first.aead.key.data = keys->cipher_key;
		first.aead.key.length = keys->cipher_key_len;
		first.aead.iv.offset = iv_at;
		first.aead.iv.length = keys->iv_len;
		first.aead.digest_length = keys->icv_len;
		first.aead.aad_length = keys->aad_len;
	} else {
		struct rte_crypto_sym_xform cipher, auth;
		memset(&cipher, 0, sizeof cipher);
		memset(&auth, 0, sizeof auth);
		cipher.type = RTE_CRYPTO_SYM_XFORM_CIPHER;
		cipher.cipher.op = keys->decrypt ? RTE_CRYPTO_CIPHER_OP_DECRYPT : RTE_CRYPTO_CIPHER_OP_ENCRYPT;
		cipher.cipher.algo = keys->cipher;
		cipher.cipher.key.data = keys->cipher_key;
		cipher.cipher.key.length = keys->cipher_key_len;
		cipher.cipher.iv.offset = iv_at;
		cipher.cipher.iv.length = keys->iv_len;
		auth.type = RTE_CRYPTO_SYM_XFORM_AUTH;
		auth.auth.op = keys->decrypt ? RTE_CRYPTO_AUTH_OP_VERIFY : RTE_CRYPTO_AUTH_OP_GENERATE;
		auth.auth.algo = keys->auth;
		auth.auth.key.data = keys->auth_key;
		auth.auth.key.length = keys->auth_key_len;
		auth.auth.digest_length = keys->icv_len;
		if (keys->cipher < 0) {
			first = auth;
		} else if (keys->auth < 0) {
			first = cipher;
		} else {
			// Enciphered first, and verified first.
			first = keys->decrypt ? auth : cipher;
			second = keys->decrypt ? cipher : auth;
			first.next = &second;
		}
	}
	return rte_cryptodev_sym_session_create(device, begin, pool);
}

// Closes a session. Not every driver wipes it, so its place in the pool is wiped: the caller is alone with the pool.
void fb_dpdk_session_free(uint8_t device, void *pool, void *session)
{
	if (rte_cryptodev_sym_session_free(device, session) == 0)
		explicit_bzero(session, ((struct rte_mempool *)pool)->elt_size);
}

// How many sessions are open.
uint32_t fb_dpdk_in_use(const void *pool) { return rte_mempool_in_use_count(pool); }

void fb_dpdk_queue_free(struct fb_queue *queue)
{
	if (queue == NULL)
		return;
	rte_mempool_free(queue->op_pool);
	rte_mempool_free(queue->mbuf_pool);
	free(queue->ops);
	free(queue->burst);
	free(queue);
}

// A queue pair with its slots, and if it copies with buffers for packets of up to so many bytes; nothing if there is no
// memory.
struct fb_queue *fb_dpdk_queue(uint8_t device, uint16_t pair, uint32_t slots, uint32_t longest, int copies)
{
	char name[32];
	int socket = rte_cryptodev_socket_id(device);
	struct fb_queue *queue = calloc(1, sizeof *queue);
	if (queue == NULL)
		return NULL;
	queue->device = device;
	queue->pair = pair;
	queue->slots = slots;
	queue->copies = copies != 0;
	queue->ops = calloc(slots, sizeof *queue->ops);
	queue->burst = calloc(slots, sizeof *queue->burst);
	snprintf(name, sizeof name, "forebay_ops_%u_%u", device, pair);
	queue->op_pool = rte_crypto_op_pool_create(name, RTE_CRYPTO_OP_TYPE_SYMMETRIC, slots, 0, sizeof(struct room), socket);
	snprintf(name, sizeof name, "forebay_data_%u_%u", device, pair);
	queue->mbuf_pool = rte_pktmbuf_pool_create(name, slots, 0, 0, copies ? RTE_PKTMBUF_HEADROOM + longest + SEQ_HI_LEN : 0, socket);
	if (queue->ops == NULL || queue->burst == NULL || queue->op_pool == NULL || queue->mbuf_pool == NULL ||
	    rte_crypto_op_bulk_alloc(queue->op_pool, RTE_CRYPTO_OP_TYPE_SYMMETRIC, queue->ops, slots) != slots) {
		fb_dpdk_queue_free(queue);
		return NULL;
	}
	for (uint32_t slot = 0; slot < slots; slot++) {
		struct rte_mbuf *data = rte_pktmbuf_alloc(queue->mbuf_pool);
		if (data == NULL) {
			fb_dpdk_queue_free(queue);
			return NULL;
		}
		if (!copies)
			data->data_off = 0;
		struct rte_crypto_op *op = queue->ops[slot];
		op->sess_type = RTE_CRYPTO_OP_WITH_SESSION;
		op->sym->m_src = data;
		op->sym->m_dst = NULL;
		rte_crypto_op_ctod_offset(op, struct room *, ROOM)->slot = slot;
	}
	return queue;
}

// Whether a separate algorithm covers the high half of the sequence number, which stands behind everything else
// (RFC 4303 2.2.1). It may be put in the ICV's place, so the ICV is elsewhere meanwhile.
static inline int is_lengthened(const struct fb_job *job)
{
	return (job->flags & (AEAD | HAS_SEQ_HI)) == HAS_SEQ_HI;
}

// The AAD of ESP with the high half of its sequence number between the SPI and the low half (RFC 4106 5); or as it is.
static inline void copy_aad(uint8_t *to, const struct fb_job *job)
{
	const uint8_t *from = job->buffer + job->auth_start;
	const uint32_t front = job->flags & HAS_SEQ_HI ? 4 : 0;
	memcpy(to, from, front);
	memcpy(to + front, job->seq_hi, front);
	memcpy(to + 2 * front, from + front, job->auth_len - front);
}

static inline void prepare(struct rte_crypto_op *op, struct fb_job *job, const int copies)
{
	struct rte_crypto_sym_op *sym = op->sym;
	struct rte_mbuf *data = sym->m_src;
	struct room *room = rte_crypto_op_ctod_offset(op, struct room *, ROOM);
	const rte_iova_t room_at = rte_crypto_op_ctophys_offset(op, ROOM);
	uint8_t *bytes = job->buffer + job->start, *digest = job->buffer + job->icv_start;
	uint32_t len = job->len;

	if (copies) {
		bytes = rte_pktmbuf_mtod(data, uint8_t *);
		memcpy(bytes, job->buffer + job->start, len);
	} else {
		data->buf_addr = bytes;
	}
	if (copies || is_lengthened(job)) {
		digest = room->digest;
		if (!(job->flags & SEALS))
			memcpy(digest, job->buffer + job->icv_start, job->icv_len);
	}
	memcpy(room->iv, job->iv, sizeof room->iv);
	op->status = RTE_CRYPTO_OP_STATUS_NOT_PROCESSED;
	sym->session = job->session;
	if (job->flags & AEAD) {
		uint8_t *aad = job->buffer + job->auth_start;
		if (copies || job->flags & HAS_SEQ_HI) {
			aad = room->aad;
			copy_aad(aad, job);
		}
		sym->aead.data.offset = job->cipher_start - job->start;
		sym->aead.data.length = job->cipher_len;
		sym->aead.digest.data = digest;
		sym->aead.digest.phys_addr = room_at + offsetof(struct room, digest);
		sym->aead.aad.data = aad;
		sym->aead.aad.phys_addr = room_at + offsetof(struct room, aad);
	} else {
		const uint32_t end = job->auth_start + job->auth_len - job->start;
		const uint32_t more = is_lengthened(job) ? SEQ_HI_LEN : 0;
		if (more) {
			memcpy(job->behind, bytes + end, SEQ_HI_LEN);
			memcpy(bytes + end, job->seq_hi, SEQ_HI_LEN);
			if (end + SEQ_HI_LEN > len)
				len = end + SEQ_HI_LEN;
		}
		sym->cipher.data.offset = job->cipher_start - job->start;
		sym->cipher.data.length = job->cipher_len;
		sym->auth.data.offset = job->auth_start - job->start;
		sym->auth.data.length = job->auth_len + more;
		sym->auth.digest.data = digest;
		sym->auth.digest.phys_addr = room_at + offsetof(struct room, digest);
	}
	data->data_len = data->pkt_len = len;
	if (!copies)
		data->buf_len = len;
}

// Puts back what stood where the sequence number's high half was.
static inline void restore(struct fb_job *job)
{
	if (is_lengthened(job))
		memcpy(job->buffer + job->auth_start + job->auth_len, job->behind, SEQ_HI_LEN);
}

// Hands the jobs of these slots to the device, those that there is room for; how many.
uint32_t fb_dpdk_enqueue(struct fb_queue *queue, struct fb_job *jobs, const uint32_t *slots, uint32_t n)
{
	for (uint32_t at = 0; at < n; at++) {
		struct rte_crypto_op *op = queue->burst[at] = queue->ops[slots[at]];
		struct fb_job *job = &jobs[slots[at]];
		job->is_held = 1;
		if (queue->copies)
			prepare(op, job, 1);
		else
			prepare(op, job, 0);
	}
	const uint32_t taken = rte_cryptodev_enqueue_burst(queue->device, queue->pair, queue->burst, n);
	for (uint32_t at = taken; at < n; at++) {
		jobs[slots[at]].is_held = 0;
		if (!queue->copies)
			restore(&jobs[slots[at]]);
	}
	return taken;
}

// Brings what the device has changed to where the packet is.
static inline void take_back(struct rte_crypto_op *op, struct fb_job *job, uint32_t status, const int copies)
{
	const struct room *room = rte_crypto_op_ctod_offset(op, const struct room *, ROOM);
	if (!copies)
		restore(job);
	if (status != DONE)
		return;
	if (copies && job->flags & HAS_TEXT)
		memcpy(job->buffer + job->cipher_start,
		       rte_pktmbuf_mtod_offset(op->sym->m_src, const uint8_t *, job->cipher_start - job->start),
		       job->cipher_len);
	if ((copies || is_lengthened(job)) && job->flags & SEALS)
		memcpy(job->buffer + job->icv_start, room->digest, job->icv_len);
}

// Takes what the device has done; how many.
uint32_t fb_dpdk_dequeue(struct fb_queue *queue, struct fb_job *jobs, struct fb_done *done, uint32_t n)
{
	n = rte_cryptodev_dequeue_burst(queue->device, queue->pair, queue->burst, n);
	for (uint32_t at = 0; at < n; at++) {
		struct rte_crypto_op *op = queue->burst[at];
		const struct room *room = rte_crypto_op_ctod_offset(op, const struct room *, ROOM);
		const uint32_t slot = room->slot;
		// A device may lie: what is not its own, or was given back before, touches no packet.
		if (slot >= queue->slots || queue->ops[slot] != op || !jobs[slot].is_held) {
			done[at] = (struct fb_done){.slot = slot, .status = NOT_HELD};
			continue;
		}
		const uint32_t status = op->status == RTE_CRYPTO_OP_STATUS_SUCCESS	 ? DONE
					: op->status == RTE_CRYPTO_OP_STATUS_AUTH_FAILED ? AUTH_FAILED
											 : FAILED;
		jobs[slot].is_held = 0;
		done[at] = (struct fb_done){.slot = slot, .status = status};
		if (queue->copies)
			take_back(op, &jobs[slot], status, 1);
		else
			take_back(op, &jobs[slot], status, 0);
	}
	return n;
}

// The numbers of algorithms, which differ between versions.
int fb_dpdk_aead(int which)
{
	static const int numbers[] = {RTE_CRYPTO_AEAD_AES_GCM, RTE_CRYPTO_AEAD_CHACHA20_POLY1305};
	return numbers[which];
}
int fb_dpdk_cipher(int which)
{
	static const int numbers[] = {RTE_CRYPTO_CIPHER_AES_CBC, RTE_CRYPTO_CIPHER_AES_CTR, RTE_CRYPTO_CIPHER_3DES_CBC};
	return numbers[which];
}
int fb_dpdk_auth(int which)
{
	static const int numbers[] = {
		RTE_CRYPTO_AUTH_MD5_HMAC,	   RTE_CRYPTO_AUTH_SHA1_HMAC,	RTE_CRYPTO_AUTH_SHA256_HMAC,
		RTE_CRYPTO_AUTH_SHA384_HMAC, RTE_CRYPTO_AUTH_SHA512_HMAC, RTE_CRYPTO_AUTH_AES_XCBC_MAC,
		RTE_CRYPTO_AUTH_AES_CMAC,
	};
	return numbers[which];
}
