// SPDX-License-Identifier: GPL-2.0
/*
 * A program of an older library on this module: built with dapx.h of this folder, and
 * with nothing else of dapx.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "dapx.h"

#define PATIENCE_NS (20 * 1000000000ULL)
#define SIZE 4096

struct ring {
	char *map;
	struct dapx_ring_layout layout;
};

struct side {
	int fd;
	__u32 pd, mr, evd, ep;
	char *memory;
	struct ring events, sends, receives;
};

static __u32 *word(const struct ring *ring, __u32 offset)
{
	return (__u32 *)(ring->map + offset);
}

static void *entry(const struct ring *ring, __u32 index)
{
	return ring->map + ring->layout.entries_off +
	       (size_t)(index & (ring->layout.depth - 1)) * ring->layout.stride;
}

static int ring_map(int fd, struct ring *ring, const struct dapx_ring_layout *layout)
{
	ring->layout = *layout;
	ring->map = mmap(NULL, layout->mmap_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			 layout->mmap_offset);
	return ring->map == MAP_FAILED ? -1 : 0;
}

#define CALL(_fd, _COMMAND, ...)						\
	({									\
		struct _COMMAND _c = { .size = sizeof(_c), __VA_ARGS__ };	\
		ASSERT_EQ(0, ioctl(_fd, COMMAND_##_COMMAND, &_c))		\
			TH_LOG(#_COMMAND ": %s", strerror(errno));		\
		_c;								\
	})
#define COMMAND_dapx_attach DAPX_ATTACH
#define COMMAND_dapx_pd_create DAPX_PD_CREATE
#define COMMAND_dapx_mr_create DAPX_MR_CREATE
#define COMMAND_dapx_evd_create DAPX_EVD_CREATE
#define COMMAND_dapx_ep_create DAPX_EP_CREATE
#define COMMAND_dapx_ep_query DAPX_EP_QUERY
#define COMMAND_dapx_ep_connect DAPX_EP_CONNECT
#define COMMAND_dapx_ep_accept DAPX_EP_ACCEPT
#define COMMAND_dapx_ep_disconnect DAPX_EP_DISCONNECT
#define COMMAND_dapx_cm_create DAPX_CM_CREATE
#define COMMAND_dapx_cm_bind DAPX_CM_BIND
#define COMMAND_dapx_cm_listen DAPX_CM_LISTEN
#define COMMAND_dapx_doorbell DAPX_DOORBELL
#define COMMAND_dapx_rmr_create DAPX_RMR_CREATE
#define COMMAND_dapx_rmr_bind DAPX_RMR_BIND
#define COMMAND_dapx_free DAPX_FREE
#define COMMAND_dapx_xrcd_open DAPX_XRCD_OPEN
#define COMMAND_dapx_srq_create DAPX_SRQ_CREATE
#define COMMAND_dapx_srq_query DAPX_SRQ_QUERY
#define COMMAND_dapx_query_device DAPX_QUERY_DEVICE

static struct __kernel_sockaddr_storage address(const char *variable)
{
	struct __kernel_sockaddr_storage out = {};
	struct sockaddr_in *in = (void *)&out;

	in->sin_family = AF_INET;
	in->sin_port = htons(7799);
	inet_pton(AF_INET, getenv(variable), &in->sin_addr);
	return out;
}

static void publish(const struct ring *ring, const void *wr, size_t size,
		    const struct dapx_sge *sge)
{
	__u32 tail = *word(ring, ring->layout.tail_off);
	char *to = entry(ring, tail);

	memcpy(to, wr, size);
	memcpy(to + size, sge, sizeof(*sge));
	__atomic_store_n(word(ring, ring->layout.tail_off), tail + 1, __ATOMIC_RELEASE);
}

FIXTURE(older) {
	struct side a, b;
};

static void set_up(struct __test_metadata *_metadata, struct side *side, const char *device)
{
	struct dapx_attach attach = { .size = sizeof(attach) };
	struct dapx_evd_create evd;
	struct dapx_ep_create ep;

	side->fd = open("/dev/dapx", O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, side->fd);
	snprintf(attach.device, sizeof(attach.device), "%s", device);
	ASSERT_EQ(0, ioctl(side->fd, DAPX_ATTACH, &attach));
	side->pd = CALL(side->fd, dapx_pd_create).out_pd;
	side->memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, side->memory);
	side->mr = CALL(side->fd, dapx_mr_create, .pd = side->pd, .addr = (uintptr_t)side->memory,
			.length = SIZE, .access = DAPX_ACCESS_LOCAL_WRITE |
			DAPX_ACCESS_REMOTE_WRITE).out_mr;
	evd = CALL(side->fd, dapx_evd_create, .depth = 64);
	side->evd = evd.out_evd;
	ASSERT_EQ(0, ring_map(side->fd, &side->events, &evd.out_ring));
	ep = CALL(side->fd, dapx_ep_create, .pd = side->pd, .request_evd = side->evd,
		  .recv_evd = side->evd, .connect_evd = side->evd,
		  .attr = { .send_depth = 16, .recv_depth = 16, .max_send_sge = 1,
			    .max_recv_sge = 1 });
	side->ep = ep.out_ep;
	ASSERT_EQ(0, ring_map(side->fd, &side->sends, &ep.out_send_ring));
	ASSERT_EQ(0, ring_map(side->fd, &side->receives, &ep.out_recv_ring));
}

FIXTURE_SETUP(older)
{
	set_up(_metadata, &self->a, getenv("DAPX_DEV"));
	set_up(_metadata, &self->b, getenv("DAPX_PEER_DEV"));
}

FIXTURE_TEARDOWN(older)
{
	close(self->a.fd);
	close(self->b.fd);
}

/* The next event, which must be of this type. */
static struct dapx_event next(struct __test_metadata *_metadata, const struct side *side,
			      __u32 type)
{
	struct dapx_evd_wait wait = { .size = sizeof(wait), .evd = side->evd, .threshold = 1 };
	const struct ring *ring = &side->events;
	struct dapx_event event;
	struct timespec now;
	__u32 head;

	clock_gettime(CLOCK_MONOTONIC, &now);
	wait.deadline = now.tv_sec * 1000000000ULL + now.tv_nsec + PATIENCE_NS;
	ASSERT_EQ(0, ioctl(side->fd, DAPX_EVD_WAIT, &wait)) TH_LOG("wait: %s", strerror(errno));
	head = *word(ring, ring->layout.head_off);
	ASSERT_NE(head, __atomic_load_n(word(ring, ring->layout.tail_off), __ATOMIC_ACQUIRE));
	memcpy(&event, entry(ring, head), sizeof(event));
	__atomic_store_n(word(ring, ring->layout.head_off), head + 1, __ATOMIC_RELEASE);
	ASSERT_EQ(type, event.type);
	return event;
}

static void connect_both(struct __test_metadata *_metadata, struct side *a, struct side *b)
{
	__u32 listener;
	struct dapx_event event;

	listener = CALL(b->fd, dapx_cm_create, .evd = b->evd).out_cm;
	CALL(b->fd, dapx_cm_bind, .cm = listener, .addr = address("DAPX_PEER_IP"));
	CALL(b->fd, dapx_cm_listen, .cm = listener, .backlog = 4);
	CALL(a->fd, dapx_ep_connect, .ep = a->ep, .dst = address("DAPX_PEER_IP"),
	     .deadline = DAPX_NO_DEADLINE, .retry_count = 7, .rnr_retry_count = 7);
	event = next(_metadata, b, DAPX_EVENT_CONNECT_REQUEST);
	CALL(b->fd, dapx_ep_accept, .ep = b->ep, .cm = event.request.cm, .rnr_retry_count = 7);
	event = next(_metadata, a, DAPX_EVENT_CONNECTION);
	ASSERT_EQ(DAPX_CONNECTION_ESTABLISHED, event.connection.what);
	event = next(_metadata, b, DAPX_EVENT_CONNECTION);
	ASSERT_EQ(DAPX_CONNECTION_ESTABLISHED, event.connection.what);
}

static bool on_siw(void)
{
	const char *rdma = getenv("RDMA");

	return rdma && !strcmp(rdma, "siw");
}

TEST_F(older, message)
{
	struct dapx_recv_wr recv = { .wr_id = 7, .num_sge = 1 };
	struct dapx_send_wr send = { .wr_id = 8, .opcode = DAPX_OP_SEND, .num_sge = 1,
				     .flags = DAPX_SEND_SIGNALED };
	struct dapx_sge from = { .mr = self->a.mr, .length = 64,
				 .addr = (uintptr_t)self->a.memory };
	struct dapx_sge to = { .mr = self->b.mr, .length = 64, .addr = (uintptr_t)self->b.memory };
	struct dapx_event event;

	publish(&self->b.receives, &recv, sizeof(recv), &to);
	CALL(self->b.fd, dapx_doorbell, .handle = self->b.ep, .flags = DAPX_DOORBELL_RECV);
	connect_both(_metadata, &self->a, &self->b);
	memset(self->a.memory, 0x5a, 64);
	publish(&self->a.sends, &send, sizeof(send), &from);
	CALL(self->a.fd, dapx_doorbell, .handle = self->a.ep, .flags = DAPX_DOORBELL_SEND);
	event = next(_metadata, &self->b, DAPX_EVENT_COMPLETION);
	EXPECT_EQ(7, event.completion.wr_id);
	EXPECT_EQ(DAPX_STATUS_SUCCESS, event.completion.status);
	EXPECT_EQ(64, event.completion.byte_len);
	EXPECT_EQ(0, memcmp(self->a.memory, self->b.memory, 64));
	event = next(_metadata, &self->a, DAPX_EVENT_COMPLETION);
	EXPECT_EQ(8, event.completion.wr_id);
	CALL(self->a.fd, dapx_ep_disconnect, .ep = self->a.ep);
	EXPECT_EQ(DAPX_CONNECTION_DISCONNECTED,
		  next(_metadata, &self->b, DAPX_EVENT_CONNECTION).connection.what);
	EXPECT_EQ(DAPX_CONNECTION_DISCONNECTED,
		  next(_metadata, &self->a, DAPX_EVENT_CONNECTION).connection.what);
	EXPECT_EQ(DAPX_EP_DISCONNECTED,
		  CALL(self->a.fd, dapx_ep_query, .ep = self->a.ep).out_state);
}

TEST_F(older, window)
{
	struct dapx_send_wr write = { .opcode = DAPX_OP_RDMA_WRITE, .num_sge = 1,
				      .flags = DAPX_SEND_SIGNALED,
				      .remote_addr = (uintptr_t)self->b.memory + 128 };
	struct dapx_sge from = { .mr = self->a.mr, .length = 8, .addr = (uintptr_t)self->a.memory };
	struct dapx_event event;
	__u8 expected[8];
	__u32 rmr;

	connect_both(_metadata, &self->a, &self->b);
	rmr = CALL(self->b.fd, dapx_rmr_create, .pd = self->b.pd).out_rmr;
	write.rkey = CALL(self->b.fd, dapx_rmr_bind, .rmr = rmr, .ep = self->b.ep,
			  .mr = self->b.mr, .access = DAPX_ACCESS_REMOTE_WRITE,
			  .addr = (uintptr_t)self->b.memory + 128, .length = 8).out_rkey;
	memset(self->a.memory, 0x11, 8);
	publish(&self->a.sends, &write, sizeof(write), &from);
	CALL(self->a.fd, dapx_doorbell, .handle = self->a.ep, .flags = DAPX_DOORBELL_SEND);
	event = next(_metadata, &self->a, DAPX_EVENT_COMPLETION);
	EXPECT_EQ(DAPX_STATUS_SUCCESS, event.completion.status);
	/* Over iWARP a write is complete when it was sent. */
	while (on_siw() && memcmp(self->a.memory, self->b.memory + 128, 8))
		sched_yield();
	EXPECT_EQ(0, memcmp(self->a.memory, self->b.memory + 128, 8));
	CALL(self->b.fd, dapx_free, .handle = rmr, .type = DAPX_OBJECT_RMR);
	memset(self->a.memory, 0x22, 8);
	memset(expected, 0x11, 8);
	publish(&self->a.sends, &write, sizeof(write), &from);
	CALL(self->a.fd, dapx_doorbell, .handle = self->a.ep, .flags = DAPX_DOORBELL_SEND);
	event = next(_metadata, &self->a, DAPX_EVENT_COMPLETION);
	if (!on_siw())
		EXPECT_EQ(DAPX_STATUS_REMOTE_ACCESS, event.completion.status);
	/* The refusal ends the connection. */
	next(_metadata, &self->a, DAPX_EVENT_CONNECTION);
	EXPECT_EQ(0, memcmp(expected, self->b.memory + 128, 8));
}

/* An answer stays within the length that the caller knows of. */
TEST_F(older, nothing_behind_an_answer)
{
	struct {
		struct dapx_srq_query query;
		__u64 behind;
	} srq = { .query.size = sizeof(srq.query), .behind = ~0ULL };
	struct {
		struct dapx_ep_query query;
		__u64 behind;
	} ep = { .query.size = sizeof(ep.query), .query.ep = self->a.ep, .behind = ~0ULL };
	__u32 handle;

	handle = CALL(self->a.fd, dapx_srq_create, .pd = self->a.pd, .depth = 16, .max_sge = 1,
		      .evd = self->a.evd).out_srq;
	srq.query.srq = handle;
	ASSERT_EQ(0, ioctl(self->a.fd, DAPX_SRQ_QUERY, &srq.query));
	EXPECT_EQ(~0ULL, srq.behind);
	ASSERT_EQ(0, ioctl(self->a.fd, DAPX_EP_QUERY, &ep.query));
	EXPECT_EQ(self->a.evd, ep.query.out_recv_evd);
	EXPECT_EQ(~0ULL, ep.behind);
}

TEST_F(older, xrc_domain)
{
	char path[] = "/tmp/dapx-older-XXXXXX";
	int fd = mkstemp(path);
	__u32 xrcd;

	ASSERT_LE(0, fd);
	xrcd = CALL(self->a.fd, dapx_xrcd_open, .fd = fd, .flags = DAPX_XRCD_CREATE).out_xrcd;
	CALL(self->a.fd, dapx_free, .handle = xrcd, .type = DAPX_OBJECT_XRCD);
	close(fd);
	unlink(path);
}

TEST_HARNESS_MAIN
