// Faults of a device, for tests: the two functions through which a driver takes and gives back operations are wrapped.
// Between them and the program is everything that Forebay has of DPDK, and below them a driver that works.

#include <stdint.h>
#include <string.h>

#include <rte_cryptodev.h>
#include <rte_mbuf.h>

// In the order of `Fault` in crypto-dpdk.
enum { NONE, STOPS, UNPLUGGED, SLOW, FAILS, FLIPS, STRANGER, TWICE, FEW, REVERSED };

static struct {
	enqueue_pkt_burst_t enqueue;
	dequeue_pkt_burst_t dequeue;
	int fault;
	uint32_t every;
	uint32_t counted;
	uint64_t struck;
} devices[RTE_CRYPTO_MAX_DEVS];

// Only the queue pair is given.
static int device_of(void *qp)
{
	for (int device = 0; device < RTE_CRYPTO_MAX_DEVS; device++)
		for (int pair = 0; devices[device].enqueue != NULL && pair < 8; pair++)
			if (rte_crypto_fp_ops[device].qp.data[pair] == qp)
				return device;
	return -1;
}

static int strikes(int device)
{
	const int is_struck = ++devices[device].counted % devices[device].every == 0;
	devices[device].struck += is_struck;
	return is_struck;
}

static uint16_t enqueue(void *qp, struct rte_crypto_op **ops, uint16_t n)
{
	const int device = device_of(qp);
	if (devices[device].fault == UNPLUGGED)
		return 0;
	if (devices[device].fault == FEW && n > 1)
		n /= 2;
	return devices[device].enqueue(qp, ops, n);
}

static uint16_t dequeue(void *qp, struct rte_crypto_op **ops, uint16_t n)
{
	static struct {
		struct rte_crypto_op op;
		uint8_t more[4096];
	} stranger;
	const int device = device_of(qp);
	const int fault = devices[device].fault;
	// Room for what is given besides.
	if ((fault == STRANGER || fault == TWICE) && n > 1)
		n /= 2;
	if (fault == STOPS || fault == UNPLUGGED || (fault == SLOW && !strikes(device)))
		return 0;
	uint16_t got = devices[device].dequeue(qp, ops, fault == SLOW && n > 1 ? 1 : n);
	const uint16_t from_driver = got;
	for (uint16_t at = 0; at < from_driver; at++) {
		if (fault == FAILS && strikes(device))
			ops[at]->status = RTE_CRYPTO_OP_STATUS_ERROR;
		if (fault == FLIPS && strikes(device))
			ops[at]->sym->aead.digest.data[0] ^= 1;
		if (fault == TWICE && strikes(device))
			ops[got++] = ops[at];
		// An operation that nobody gave, with the number of a slot that another one has.
		if (fault == STRANGER && strikes(device)) {
			memset(&stranger, (int)(devices[device].counted % 3), sizeof stranger);
			ops[got++] = &stranger.op;
		}
	}
	if (fault == REVERSED)
		for (uint16_t at = 0; at < got / 2; at++) {
			struct rte_crypto_op *first = ops[at];
			ops[at] = ops[got - 1 - at];
			ops[got - 1 - at] = first;
			devices[device].struck++;
		}
	return got;
}

// Arms a fault of the device, with which it goes on until another is armed: `every` so many operations or polls.
void fb_dpdk_fault(uint8_t device, int fault, uint32_t every)
{
	struct rte_crypto_fp_ops *ops = &rte_crypto_fp_ops[device];
	if (devices[device].enqueue == NULL) {
		devices[device].enqueue = ops->enqueue_burst;
		devices[device].dequeue = ops->dequeue_burst;
		ops->enqueue_burst = enqueue;
		ops->dequeue_burst = dequeue;
	}
	devices[device].every = every == 0 ? 1 : every;
	devices[device].counted = 0;
	devices[device].fault = fault;
}

// How many operations or polls faults have met.
uint64_t fb_dpdk_struck(uint8_t device) { return devices[device].struck; }
