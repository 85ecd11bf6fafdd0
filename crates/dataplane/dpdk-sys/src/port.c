// What links-dpdk needs of DPDK's network devices (ethdev): much of that API is inline functions and macros.
//
// A port has a pool of buffers (mbufs), and each of its queues is used by one thread at a time. Frames are received in
// bursts of at most BURST and are read where they are. They go back to the pool before the next burst, unless they are lent:
// then whoever has the packet owns the mbuf, works in it, and has it sent by any port or gives it back. Other frames to be
// sent are copied into buffers of the pool.
//
//	| mbuf | before | headroom | Ethernet | IP packet ... | room |
//	       ^ start  ^ buf_addr ^ the driver's data_off
//
// Packets want more room in front of them than drivers leave. `before` is that: the private area of an mbuf, which stands right
// in front of its buffer and which no driver touches. So an mbuf is never taken apart: it has its own buffer, with the
// addresses that its pool has given it, and goes where DPDK's own programs send it.

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_bus_vdev.h>
#include <rte_cycles.h>
#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

#define BURST 64
#define ETHERNET 14
// Longest frame that is put together of several buffers.
#define LINEAR 16384

// The fields of `Limits` in port.rs.
struct fb_limits {
	uint16_t rx_queues, tx_queues;
	uint32_t longest;
	uint8_t mac[6];
};

// The fields of `Counts` in port.rs.
struct fb_counts {
	uint64_t missed, no_buffers;
};

// The fields of `Received` in port.rs.
struct fb_received {
	const uint8_t *data;
	uint32_t len;
	uint32_t flags;
	// Its mbuf's memory, where it may be lent: `before`, headroom and buffer.
	uint8_t *start;
	uint32_t room;
};
enum { CHECKSUM_GOOD = 1, CHECKSUM_BAD = 2, TOO_LONG = 4, WAS_CHAINED = 8 };

// The fields of `Frame` in port.rs.
struct fb_frame {
	const uint8_t *packet;
	uint32_t len;
	// The memory of a lent mbuf in which the packet stands; without one, it is copied.
	uint8_t *start;
	uint8_t header[ETHERNET];
	// The caller's.
	void *lent;
};

// The fields of `Lent` in port.rs.
struct fb_lent {
	// Room that packets are to have in front of them and behind them.
	uint32_t headroom, tailroom;
	// Buffers that stay for devices: with fewer in the pool none is lent.
	uint32_t reserve;
};

// Room between an mbuf and its buffer, so that a packet behind an Ethernet header has so much in front of it.
static uint16_t before(const struct fb_lent *lent)
{
	const uint32_t has = RTE_PKTMBUF_HEADROOM + ETHERNET;
	return lent->headroom > has ? RTE_ALIGN_CEIL(lent->headroom - has, RTE_CACHE_LINE_SIZE) : 0;
}

struct fb_port {
	uint16_t number;
	struct rte_device *device;
	struct rte_mempool *pool;
	struct fb_lent lent;
};

struct fb_port_queue {
	struct rte_mempool *pool;
	struct fb_lent lent;
	uint16_t port, queue;
	uint16_t received;
	// Frames that the device did not take, sent before others.
	uint16_t left;
	struct rte_mbuf *rx[BURST];
	struct rte_mbuf *tx[BURST];
	// Where frames of several buffers are put together; made at the first.
	uint8_t *linear;
};

// A thread that DPDK does not know has no cache of buffers, and each buffer then costs several atomic operations. The
// thread is told to DPDK at its first burst, and forgotten at its end.
static pthread_key_t known;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static __thread int is_known;
static void forget(void *unused)
{
	(void)unused;
	rte_thread_unregister();
}
static void make_key(void) { pthread_key_create(&known, forget); }
static void __attribute__((noinline, cold)) introduce(void)
{
	is_known = 1;
	pthread_once(&once, make_key);
	// Without a number left for it, the thread works without a cache.
	if (rte_lcore_id() == LCORE_ID_ANY && rte_thread_register() == 0)
		pthread_setspecific(known, &is_known);
}

// Whether DPDK has a driver for virtual devices of this name, or a bus with such a place; nothing is made or touched.
int fb_port_is_possible(const char *name)
{
	struct rte_devargs arguments;
	memset(&arguments, 0, sizeof arguments);
	if (rte_devargs_parse(&arguments, name) != 0)
		return 0;
	rte_devargs_reset(&arguments);
	return 1;
}

// Makes or finds a device; its number, or a negative error number.
int fb_port_find(const char *name, const char *arguments)
{
	char place[512];
	uint16_t number;
	int result;
	if (rte_eth_dev_get_port_by_name(name, &number) == 0)
		return number;
	if (strchr(name, ':') != NULL) {
		snprintf(place, sizeof place, "%s%s%s", name, arguments[0] ? "," : "", arguments);
		result = rte_dev_probe(place);
	} else {
		result = rte_vdev_init(name, arguments);
	}
	if (result != 0)
		return result < 0 ? result : -ENODEV;
	if (rte_eth_dev_get_port_by_name(name, &number) == 0)
		return number;
	return -ENODEV;
}

// What a device can do, and its own Ethernet address.
int fb_port_limits(uint16_t number, struct fb_limits *limits)
{
	struct rte_eth_dev_info info;
	struct rte_ether_addr mac;
	int result = rte_eth_dev_info_get(number, &info);
	if (result == 0)
		result = rte_eth_macaddr_get(number, &mac);
	if (result != 0)
		return result;
	limits->rx_queues = info.max_rx_queues;
	limits->tx_queues = info.max_tx_queues;
	limits->longest = info.max_rx_pktlen;
	memcpy(limits->mac, mac.addr_bytes, sizeof limits->mac);
	return 0;
}

static int configure(uint16_t number, const struct rte_eth_dev_info *info, uint16_t queues, uint16_t mtu)
{
	const uint64_t spread = RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_ESP;
	struct rte_eth_conf config;
	memset(&config, 0, sizeof config);
	config.rxmode.mtu = mtu;
	config.rxmode.offloads = info->rx_offload_capa & (RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_SCATTER);
	// Not MBUF_FAST_FREE: a queue also sends what was lent from another port's pool.
	// A device that spreads packets in its own way has no such offload.
	if (queues > 1 && (info->flow_type_rss_offloads & spread) != 0) {
		config.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		config.rx_adv_conf.rss_conf.rss_hf = info->flow_type_rss_offloads & spread;
	}
	return rte_eth_dev_configure(number, queues, queues, &config);
}

// Pools without a device: packets in their buffers are still on their way, or the other end of a ring has some. They are freed when
// all buffers are back, and a while after: who gives the last one back may be at it still. What finds no place stays for ever.
#define RETIRED 64
#define AT_IT_US 1000
static pthread_mutex_t retiring = PTHREAD_MUTEX_INITIALIZER;
static struct retired {
	struct rte_mempool *pool;
	// When it was first seen whole; 0: it has not been.
	uint64_t whole;
} retired[RETIRED];

static void sweep(void)
{
	const uint64_t now = rte_get_timer_cycles(), wait = rte_get_timer_hz() / 1000000 * AT_IT_US;
	pthread_mutex_lock(&retiring);
	for (unsigned at = 0; at < RETIRED; at++) {
		struct retired *one = &retired[at];
		if (one->pool == NULL || !rte_mempool_full(one->pool))
			continue;
		if (one->whole == 0) {
			one->whole = now;
		} else if (now - one->whole >= wait) {
			rte_mempool_free(one->pool);
			one->pool = NULL;
		}
	}
	pthread_mutex_unlock(&retiring);
}

static void retire(struct rte_mempool *pool)
{
	pthread_mutex_lock(&retiring);
	for (unsigned at = 0; at < RETIRED; at++) {
		if (retired[at].pool == NULL) {
			retired[at] = (struct retired){.pool = pool, .whole = 0};
			break;
		}
	}
	pthread_mutex_unlock(&retiring);
	sweep();
	rte_delay_us_sleep(2 * AT_IT_US);
	sweep();
}

// Buffers of ports that are closed which have not come back.
uint32_t fb_port_away(void)
{
	uint32_t away = 0;
	pthread_mutex_lock(&retiring);
	for (unsigned at = 0; at < RETIRED; at++)
		if (retired[at].pool != NULL)
			away += rte_mempool_in_use_count(retired[at].pool);
	pthread_mutex_unlock(&retiring);
	return away;
}

void fb_port_close(struct fb_port *port)
{
	rte_eth_dev_stop(port->number);
	rte_eth_dev_close(port->number);
	rte_dev_remove(port->device);
	if (port->pool != NULL)
		retire(port->pool);
	free(port);
}

// Starts a device with so many queues of so many descriptors, and a pool of so many buffers with so much room for a frame.
// Where a device is not started, `error` has the error number.
struct fb_port *fb_port_start(uint16_t number, uint16_t queues, uint16_t descriptors, uint16_t mtu, uint32_t buffers,
			      uint16_t room, const struct fb_lent *lent, int *error)
{
	static unsigned pools;
	struct rte_eth_dev_info info;
	char name[32];
	uint16_t rx = descriptors, tx = descriptors;
	struct fb_port *port = calloc(1, sizeof *port);
	int result = port == NULL ? -ENOMEM : rte_eth_dev_info_get(number, &info);
	if (result != 0)
		goto refused;
	port->number = number;
	port->device = info.device;
	port->lent = *lent;
	sweep();
	snprintf(name, sizeof name, "forebay_port_%u", __atomic_fetch_add(&pools, 1, __ATOMIC_RELAXED));
	port->pool = rte_pktmbuf_pool_create(name, buffers, 256, before(lent), RTE_PKTMBUF_HEADROOM + room,
					     rte_eth_dev_socket_id(number));
	if (port->pool == NULL) {
		result = rte_errno != 0 ? -rte_errno : -ENOMEM;
		goto refused;
	}
	// Several virtual devices state the longest frame of an Ethernet without jumbo frames, and pass longer ones.
	const int is_understated = strchr(rte_dev_name(info.device), ':') == NULL &&
				   (uint32_t)mtu + RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN > info.max_rx_pktlen;
	result = configure(number, &info, queues, is_understated ? 0 : mtu);
	if (result == 0 && rte_eth_dev_adjust_nb_rx_tx_desc(number, &rx, &tx) != 0)
		rx = tx = descriptors;
	for (uint16_t queue = 0; result == 0 && queue < queues; queue++) {
		result = rte_eth_rx_queue_setup(number, queue, rx, rte_eth_dev_socket_id(number), NULL, port->pool);
		if (result == 0)
			result = rte_eth_tx_queue_setup(number, queue, tx, rte_eth_dev_socket_id(number), NULL);
	}
	if (result == 0)
		result = rte_eth_dev_start(number);
	if (result == 0) {
		// Neighbour Discovery comes by multicast. A device that cannot switch it on has it on.
		rte_eth_allmulticast_enable(number);
		return port;
	}
refused:
	*error = result;
	if (port != NULL) {
		if (port->device != NULL)
			fb_port_close(port);
		else
			free(port);
	}
	return NULL;
}

struct fb_port_queue *fb_port_queue(const struct fb_port *port, uint16_t queue)
{
	struct fb_port_queue *made = calloc(1, sizeof *made);
	if (made != NULL) {
		made->pool = port->pool;
		made->lent = port->lent;
		made->port = port->number;
		made->queue = queue;
	}
	return made;
}

// Frees a queue; how many frames it had that the device had not taken.
uint32_t fb_port_queue_free(struct fb_port_queue *queue)
{
	const uint32_t left = queue->left;
	rte_pktmbuf_free_bulk(queue->rx, queue->received);
	rte_pktmbuf_free_bulk(queue->tx, queue->left);
	free(queue->linear);
	free(queue);
	return left;
}

int fb_port_is_up(const struct fb_port *port)
{
	struct rte_eth_link link;
	memset(&link, 0, sizeof link);
	return rte_eth_link_get_nowait(port->number, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

void fb_port_counts(const struct fb_port *port, struct fb_counts *counts)
{
	struct rte_eth_stats stats;
	memset(&stats, 0, sizeof stats);
	rte_eth_stats_get(port->number, &stats);
	counts->missed = stats.imissed;
	counts->no_buffers = stats.rx_nombuf;
}

// Gives the buffers of the last burst back, but for those that are lent: a bit for each.
void fb_port_done(struct fb_port_queue *queue, uint64_t lent)
{
	uint16_t kept = 0;
	for (uint16_t at = 0; at < queue->received; at++)
		if ((lent >> at & 1) == 0)
			queue->rx[kept++] = queue->rx[at];
	rte_pktmbuf_free_bulk(queue->rx, kept);
	queue->received = 0;
}

// Takes a lent buffer back, from any thread.
void fb_port_give_back(uint8_t *start)
{
	rte_pktmbuf_free((struct rte_mbuf *)start - 1);
}

// Whether a frame may be lent: its mbuf has its own buffer, nobody else has it, and there is room around the packet.
static int is_fit(const struct fb_port_queue *queue, const struct rte_mbuf *mbuf, uint16_t in_front)
{
	return mbuf->nb_segs == 1 && RTE_MBUF_DIRECT(mbuf) && rte_mbuf_refcnt_read(mbuf) == 1 &&
	       (const uint8_t *)mbuf->buf_addr == (const uint8_t *)(mbuf + 1) + in_front &&
	       (uint32_t)in_front + mbuf->data_off + ETHERNET >= queue->lent.headroom &&
	       (uint32_t)mbuf->data_off + mbuf->data_len + queue->lent.tailroom <= mbuf->buf_len;
}

// Puts a frame of several buffers together at place `at` of the burst.
static void __attribute__((noinline, cold)) linearise(struct fb_port_queue *queue, const struct rte_mbuf *mbuf, unsigned at,
						       struct fb_received *out)
{
	out->flags |= WAS_CHAINED;
	if (queue->linear == NULL)
		queue->linear = malloc((size_t)BURST * LINEAR);
	if (queue->linear == NULL || mbuf->pkt_len > LINEAR) {
		out->flags |= TOO_LONG;
		return;
	}
	uint8_t *to = queue->linear + (size_t)at * LINEAR;
	// Written to `to` where the frame does not stand in one buffer.
	out->data = rte_pktmbuf_read(mbuf, 0, mbuf->pkt_len, to);
	out->len = mbuf->pkt_len;
	if (out->data == NULL)
		out->flags |= TOO_LONG;
}

// Receives a burst of at most `n` frames; those of the last one have been given back.
uint32_t fb_port_receive(struct fb_port_queue *queue, struct fb_received *out, uint32_t n)
{
	if (!is_known)
		introduce();
	const uint16_t got = rte_eth_rx_burst(queue->port, queue->queue, queue->rx, n < BURST ? n : BURST);
	const uint16_t in_front = before(&queue->lent);
	// Those in the caches of threads are not counted: too few rather than too many.
	const struct rte_mempool *pool = queue->pool;
	const int lends = got > 0 && rte_mempool_get_ops(pool->ops_index)->get_count(pool) >= queue->lent.reserve;
	queue->received = got;
	for (uint16_t at = 0; at < got; at++) {
		struct rte_mbuf *mbuf = queue->rx[at];
		out[at].start = NULL;
		out[at].room = 0;
		if (lends && is_fit(queue, mbuf, in_front)) {
			out[at].start = (uint8_t *)(mbuf + 1);
			out[at].room = in_front + mbuf->buf_len;
		}
		const uint64_t checksum = mbuf->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK;
		out[at].data = rte_pktmbuf_mtod(mbuf, const uint8_t *);
		out[at].len = mbuf->data_len;
		out[at].flags = checksum == RTE_MBUF_F_RX_IP_CKSUM_GOOD  ? CHECKSUM_GOOD
				: checksum == RTE_MBUF_F_RX_IP_CKSUM_BAD ? CHECKSUM_BAD
									 : 0;
		rte_prefetch0(out[at].data);
		if (mbuf->nb_segs > 1)
			linearise(queue, mbuf, at, &out[at]);
	}
	return got;
}

// Gives the device what it did not take before; how many frames it still does not take.
uint32_t fb_port_flush(struct fb_port_queue *queue)
{
	if (queue->left > 0) {
		const uint16_t sent = rte_eth_tx_burst(queue->port, queue->queue, queue->tx, queue->left);
		queue->left -= sent;
		memmove(queue->tx, queue->tx + sent, queue->left * sizeof queue->tx[0]);
	}
	return queue->left;
}

// Readies the mbuf in which a packet stands, with the header in front of it; NULL if there is no room for that in its buffer.
static struct rte_mbuf *in_place(const struct fb_frame *frame)
{
	struct rte_mbuf *mbuf = (struct rte_mbuf *)frame->start - 1;
	const uint8_t *buffer = mbuf->buf_addr;
	if (frame->packet < buffer + ETHERNET)
		return NULL;
	memcpy(frame->start + (frame->packet - frame->start) - ETHERNET, frame->header, ETHERNET);
	mbuf->data_off = frame->packet - buffer - ETHERNET;
	mbuf->data_len = mbuf->pkt_len = ETHERNET + frame->len;
	// What its reception has left.
	mbuf->ol_flags = 0;
	mbuf->tx_offload = 0;
	mbuf->vlan_tci = 0;
	return mbuf;
}

// Puts a burst of frames into queue->tx; 0 for the want of buffers. `start` is cleared of those that are copied.
static int ready(struct fb_port_queue *queue, struct fb_frame *frames, uint16_t n)
{
	struct rte_mbuf *copies[BURST];
	uint16_t copied = 0, next = 0;
	for (uint16_t at = 0; at < n; at++) {
		queue->tx[at] = frames[at].start != NULL ? in_place(&frames[at]) : NULL;
		copied += queue->tx[at] == NULL;
	}
	if (copied > 0 && rte_pktmbuf_alloc_bulk(queue->pool, copies, copied) != 0)
		return 0;
	for (uint16_t at = 0; next < copied; at++) {
		struct fb_frame *frame = &frames[at];
		if (queue->tx[at] != NULL)
			continue;
		struct rte_mbuf *mbuf = queue->tx[at] = copies[next++];
		uint8_t *to = rte_pktmbuf_mtod(mbuf, uint8_t *);
		memcpy(to, frame->header, ETHERNET);
		memcpy(to + ETHERNET, frame->packet, frame->len);
		mbuf->data_len = mbuf->pkt_len = ETHERNET + frame->len;
		frame->start = NULL;
	}
	return 1;
}

// Sends frames, of which it takes as many as there is room for, in order; how many it took. The mbufs of those whose `start` is
// not cleared are the device's then. `no_buffers` says whether it was for the want of buffers that it took no more, and `left`
// how many that it took the device has not taken yet. A frame that is copied must not be longer than a buffer.
uint32_t fb_port_send(struct fb_port_queue *queue, struct fb_frame *frames, uint32_t n, uint32_t *no_buffers, uint32_t *left)
{
	uint32_t taken = 0;
	*no_buffers = 0;
	if (!is_known)
		introduce();
	while (taken < n && fb_port_flush(queue) == 0) {
		const uint16_t now = n - taken < BURST ? n - taken : BURST;
		if (!ready(queue, frames + taken, now)) {
			*no_buffers = 1;
			break;
		}
		queue->left = now;
		taken += now;
	}
	*left = fb_port_flush(queue);
	return taken;
}
