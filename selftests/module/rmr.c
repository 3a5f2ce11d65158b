// SPDX-License-Identifier: GPL-2.0
/*
 * Remote memory regions: what a window lets a peer do, its place in a request
 * queue, and that its end is final: by unbind, rebind or free, whatever the peer
 * and the endpoint do.
 *
 * Host b owns the windows; host a is the peer that uses them.
 */
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "harness/cm.h"
#include "harness/dice.h"
#include "harness/fabric.h"
#include "harness/machine.h"
#include "harness/resources.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 600

#define PAGE 4096u
#define LOCAL_WRITE DAPX_ACCESS_LOCAL_WRITE
#define REMOTE_WRITE DAPX_ACCESS_REMOTE_WRITE
#define REMOTE_READ DAPX_ACCESS_REMOTE_READ
#define REMOTE_ATOMIC DAPX_ACCESS_REMOTE_ATOMIC
/*
 * What an end of a window may take. The emulated CPU also does the device's work meanwhile, in
 * softirqs, which on the debug kernel take ten times as long: 42 us in the median and 13 ms at
 * the most became 500 us and 33 ms.
 */
#define REVOKE_NS (on_debug_kernel() ? 80000000ULL : 20000000ULL)
#define EXPECT_NOT_SLOW(ns)						\
	({								\
		__u64 __ns = (ns);					\
									\
		if (in_virtual_time()) {				\
			EXPECT_GT(REVOKE_NS, __ns);			\
		} else if (__ns >= REVOKE_NS) {				\
			TH_LOG("the end took %llu ns",			\
			       (unsigned long long)__ns);		\
		}							\
	})

FIXTURE(rmr)
{
	struct host a;
	struct host b;
	struct ep ea;
	struct ep eb;
	__u32 rmr;			/* of b, not bound */
};

FIXTURE_SETUP(rmr)
{
	OK(host_set_up(&self->a, 0));
	OK(host_set_up(&self->b, 1));
	OK(ep_create(&self->a, &self->ea));
	OK(ep_create(&self->b, &self->eb));
	self->rmr = test_cmd(rmr_create, self->b.fd, .pd = self->b.pd).out_rmr;
}

FIXTURE_TEARDOWN(rmr)
{
	host_close(&self->a);
	host_close(&self->b);
}

/* A bind in the queue of @ep; @at NULL: unbind. Its key in @rkey. */
static int bind_post(struct ep *ep, __u32 rmr, __u32 mr, const __u8 *at,
		     __u64 length, __u32 access, __u64 wr_id, __u32 *rkey)
{
	struct dapx_rmr_bind cmd = {
		.flags = DAPX_BIND_SIGNALED, .rmr = rmr, .ep = ep->handle,
		.mr = mr, .addr = (uintptr_t)at, .length = length,
		.access = access, .wr_id = wr_id,
	};

	if (_test_cmd_rmr_bind(ep->host->fd, &cmd))
		return because("DAPX_RMR_BIND: %m");
	if (rkey)
		*rkey = cmd.out_rkey;
	return 0;
}

static int expect_bound(struct ep *ep, __u64 wr_id, __u32 status)
{
	struct dapx_event event;

	if (expect_completion(&ep->host->done, wr_id, status, &event))
		return -1;
	if (event.completion.opcode != DAPX_OP_RMR_BIND ||
	    event.handle != ep->handle || event.completion.byte_len)
		return because("opcode %u of handle %u",
			       event.completion.opcode, event.handle);
	return 0;
}

static int bind_done(struct ep *ep, __u32 rmr, __u32 mr, const __u8 *at,
		     __u64 length, __u32 access, __u32 *rkey)
{
	if (bind_post(ep, rmr, mr, at, length, access, 0xb1, rkey))
		return -1;
	return expect_bound(ep, 0xb1, DAPX_STATUS_SUCCESS);
}

static int unbind_done(struct ep *ep, __u32 rmr)
{
	return bind_done(ep, rmr, 0, NULL, 0, 0, NULL);
}

#define BIND(at, length, access)					\
	({								\
		__u32 __rkey;						\
									\
		OK(bind_done(&self->eb, self->rmr, self->b.mr, at, length,\
			     access, &__rkey));				\
		__rkey;							\
	})
#define QUERY()								\
	test_cmd(rmr_query, self->b.fd, .rmr = self->rmr, .mask = RMR_FIELDS)
#define DISCONNECT_ABRUPT(ep_)						\
	test_cmd(ep_disconnect, (ep_)->host->fd, .ep = (ep_)->handle,	\
		 .flags = DAPX_DISCONNECT_ABRUPT)
#define FREE(handle_)							\
	test_cmd(free, self->b.fd, .handle = (handle_))

/* The peer's request on the window is done, or refused; then all is as new. */
#define PEER_MAY(opcode, at, length, rkey)				\
	({								\
		OK(ep_rdma(&self->ea, 0x77, opcode, self->a.mr,		\
			   self->a.mem, length, at, rkey));		\
		OK(expect_completion(&self->a.done, 0x77,		\
				     DAPX_STATUS_SUCCESS, NULL));	\
	})
#define PEER_MAY_NOT(opcode, at, length, rkey)				\
	({								\
		OK(ep_rdma(&self->ea, 0x77, opcode, self->a.mr,		\
			   self->a.mem, length, at, rkey));		\
		OK(expect_refusal(&self->ea, 0x77));			\
		OK(ep_await_state(&self->eb, DAPX_EP_DISCONNECTED));	\
		RECONNECT();						\
	})
#define RECONNECT()							\
	({								\
		OK(disconnect_reset(&self->ea, &self->eb));		\
		OK(connect_cm(&self->ea, &self->eb));			\
	})

/* ---- what it is ---- */

TEST_F(rmr, unbound)
{
	struct dapx_query_object object;
	struct dapx_rmr_query query;
	__u32 rmr;

	rmr = test_cmd(rmr_create, self->b.fd, .pd = self->b.pd,
		       .user_data = 0x123456789).out_rmr;
	query = test_cmd(rmr_query, self->b.fd, .rmr = rmr, .mask = RMR_FIELDS);
	EXPECT_EQ(self->b.pd, query.out_pd);
	EXPECT_EQ(0, query.out_mr);
	EXPECT_EQ(0, query.out_addr);
	EXPECT_EQ(0, query.out_length);
	EXPECT_EQ(0, query.out_access);
	EXPECT_EQ(0, query.out_rkey);
	object = test_cmd(query_object, self->b.fd, .handle = rmr,
			  .type = DAPX_OBJECT_RMR);
	EXPECT_EQ(0x123456789, object.out_user_data);
	EXPECT_EQ(0, object.out_state);
	/* It uses its PD. */
	test_err(EBUSY, free, self->b.fd, .handle = self->b.pd);
	FREE(rmr);
}

TEST_F(rmr, query)
{
	const __u8 *at = self->b.mem + 1234;
	struct dapx_rmr_query query;
	__u32 rkey, bit;

	OK(connect_cm(&self->ea, &self->eb));
	rkey = BIND(at, 4321, REMOTE_WRITE | REMOTE_READ);
	query = QUERY();
	EXPECT_EQ(self->b.pd, query.out_pd);
	EXPECT_EQ(self->b.mr, query.out_mr);
	EXPECT_EQ((uintptr_t)at, query.out_addr);
	EXPECT_EQ(4321, query.out_length);
	EXPECT_EQ(REMOTE_WRITE | REMOTE_READ, query.out_access);
	EXPECT_EQ(rkey, query.out_rkey);
	EXPECT_EQ(1, test_cmd(query_object, self->b.fd, .handle = self->rmr)
			     .out_state);
	/* Only what is asked for. */
	for (bit = 1; bit <= DAPX_RMR_FIELD_RKEY; bit <<= 1) {
		query = test_cmd(rmr_query, self->b.fd, .rmr = self->rmr,
				 .mask = bit);
		EXPECT_EQ(bit == DAPX_RMR_FIELD_PD, !!query.out_pd);
		EXPECT_EQ(bit == DAPX_RMR_FIELD_MR, !!query.out_mr);
		EXPECT_EQ(bit == DAPX_RMR_FIELD_RANGE, !!query.out_addr);
		EXPECT_EQ(bit == DAPX_RMR_FIELD_RANGE, !!query.out_length);
		EXPECT_EQ(bit == DAPX_RMR_FIELD_ACCESS, !!query.out_access);
		EXPECT_EQ(bit == DAPX_RMR_FIELD_RKEY, !!query.out_rkey);
	}
	OK(unbind_done(&self->eb, self->rmr));
	query = QUERY();
	EXPECT_EQ(self->b.pd, query.out_pd);
	EXPECT_EQ(0, query.out_mr);
	EXPECT_EQ(0, query.out_rkey);
}

/* Of any size, at any byte; not one byte more. */
TEST_F(rmr, bytes)
{
	static const struct {
		unsigned int at;
		unsigned int length;
	} windows[] = {
		{ 1, 1 }, { PAGE - 1, 2 }, { 17, PAGE }, { PAGE, 3 * PAGE },
		{ 5, 65537 }, { 0, HOST_MEMORY },
	};
	unsigned int i;

	OK(connect_cm(&self->ea, &self->eb));
	for (i = 0; i < ARRAY_SIZE(windows); i++) {
		__u8 *at = self->b.mem + windows[i].at;
		unsigned int length = windows[i].length;
		__u32 rkey = BIND(at, length, REMOTE_WRITE);

		memset(self->b.mem, 0x22, HOST_MEMORY);
		memset(self->a.mem, 0x11, HOST_MEMORY);
		PEER_MAY(DAPX_OP_RDMA_WRITE, at, length, rkey);
		EXPECT_EQ(0, memcmp(self->a.mem, at, length));
		if (length == HOST_MEMORY)
			break;
		EXPECT_EQ(at + length, memchr(at, 0x22, HOST_MEMORY -
					      windows[i].at));
		memset(self->b.mem, 0x22, HOST_MEMORY);
		PEER_MAY_NOT(DAPX_OP_RDMA_WRITE, at, length + 1, rkey);
		EXPECT_EQ(NULL, memchr(at + length, 0x11, HOST_MEMORY -
				       windows[i].at - length));
		if (windows[i].at)
			PEER_MAY_NOT(DAPX_OP_RDMA_WRITE, at - 1, 1, rkey);
		PEER_MAY_NOT(DAPX_OP_RDMA_WRITE, at + length, 1, rkey);
		EXPECT_EQ(NULL, memchr(self->b.mem, 0x11, windows[i].at));
	}
}

TEST_F(rmr, rights)
{
	static const __u32 rights[] = {
		REMOTE_WRITE, REMOTE_READ, REMOTE_ATOMIC,
	};
	static const __u8 opcodes[] = {
		DAPX_OP_RDMA_WRITE, DAPX_OP_RDMA_READ, DAPX_OP_FETCH_ADD,
	};
	unsigned int n = self->b.limits.out_caps & DAPX_DEVICE_ATOMICS ? 3 : 2;
	unsigned int given, used;
	__u8 *at = self->b.mem + PAGE;

	OK(connect_cm(&self->ea, &self->eb));
	for (given = 0; given < 1U << n; given++) {
		__u32 access = 0, rkey;

		for (used = 0; used < n; used++)
			access |= given & 1U << used ? rights[used] : 0;
		rkey = BIND(at, 8, access);
		for (used = 0; used < n; used++) {
			memset(at, 0x22, 8);
			memset(self->a.mem, 0x11, 8);
			if (given & 1U << used) {
				PEER_MAY(opcodes[used], at, 8, rkey);
				continue;
			}
			/* Which does not check that right. */
			if (on_siw() && opcodes[used] == DAPX_OP_RDMA_READ)
				continue;
			PEER_MAY_NOT(opcodes[used], at, 8, rkey);
			EXPECT_EQ(0x22, at[0]);
			EXPECT_EQ(0x11, self->a.mem[0]);
		}
	}
}

/* A window may be written if its region may; remote rights of its own the region needs not. */
TEST_F(rmr, rights_of_the_region)
{
	static const __u32 remote[] = {
		REMOTE_READ, REMOTE_WRITE, REMOTE_ATOMIC,
	};
	static const __u32 regions[] = {
		0, REMOTE_READ, LOCAL_WRITE, LOCAL_WRITE | REMOTE_WRITE,
	};
	unsigned int n = self->b.limits.out_caps & DAPX_DEVICE_ATOMICS ? 3 : 2;
	unsigned int i, j;

	OK(connect_cm(&self->ea, &self->eb));
	for (i = 0; i < ARRAY_SIZE(regions); i++) {
		struct dapx_mr_create mr;

		mr = test_cmd(mr_create, self->b.fd, .pd = self->b.pd,
			      .addr = (uintptr_t)self->b.mem, .length = PAGE,
			      .access = regions[i]);
		for (j = 0; j < n; j++) {
			bool good = remote[j] == REMOTE_READ || regions[i] & LOCAL_WRITE;
			int ret;

			ret = _test_cmd(rmr_bind, self->b.fd, .mr = mr.out_mr,
					.rmr = self->rmr, .ep = self->eb.handle,
					.addr = (uintptr_t)self->b.mem,
					.length = 8, .access = remote[j]);
			EXPECT_EQ(good ? 0 : EACCES, ret ? errno : 0);
		}
	}
}

/* ---- its place in the request queue ---- */

TEST_F(rmr, takes_its_place)
{
	__u32 rkey, i;

	OK(connect_cm(&self->ea, &self->eb));
	for (i = 0; i < 8; i++)
		OK(ep_rdma(&self->eb, i, DAPX_OP_RDMA_WRITE, self->b.mr,
			   self->b.mem, 65536, self->a.mem, self->a.rkey));
	OK(bind_post(&self->eb, self->rmr, self->b.mr, self->b.mem, 100,
		     REMOTE_READ, 8, &rkey));
	OK(ep_recv(&self->ea, 1, 0, 64));
	OK(ep_send(&self->eb, 9, 0, 64));
	OK(bind_post(&self->eb, self->rmr, self->b.mr, self->b.mem, 200,
		     REMOTE_READ, 10, &rkey));
	OK(bind_post(&self->eb, self->rmr, 0, NULL, 0, 0, 11, NULL));
	for (i = 0; i < 12; i++) {
		struct dapx_event event;

		OK(expect_completion(&self->b.done, i, DAPX_STATUS_SUCCESS,
				     &event));
		EXPECT_EQ(i == 8 || i >= 10, event.completion.opcode ==
					     DAPX_OP_RMR_BIND);
	}
	EXPECT_EQ(0, QUERY().out_mr);
	OK(evd_quiet(&self->b.done));
}

/* A request that cannot be done holds it up, and what comes behind it. */
TEST_F(rmr, waits_for_what_is_before_it)
{
	__u32 before = 0, behind;

	if (on_siw())
		SKIP(return, "a send is done when TCP has it");
	OK(connect_cm(&self->ea, &self->eb));
	before = BIND(self->b.mem, 100, REMOTE_READ);
	/* There is no receive for this. */
	OK(ep_send(&self->eb, 1, 0, 64));
	OK(bind_post(&self->eb, self->rmr, self->b.mr, self->b.mem + 1000, 100,
		     REMOTE_READ, 2, &behind));
	OK(ep_send(&self->eb, 3, 0, 64));
	OK(evd_quiet(&self->b.done));
	/* So it is still bound as before. */
	EXPECT_EQ(before, QUERY().out_rkey);
	PEER_MAY(DAPX_OP_RDMA_READ, self->b.mem, 100, before);
	OK(ep_recv(&self->ea, 1, 0, 64));
	OK(expect_completion(&self->b.done, 1, DAPX_STATUS_SUCCESS, NULL));
	OK(expect_bound(&self->eb, 2, DAPX_STATUS_SUCCESS));
	EXPECT_EQ(behind, QUERY().out_rkey);
	OK(evd_quiet(&self->b.done));
	OK(ep_recv(&self->ea, 2, 0, 64));
	OK(expect_completion(&self->b.done, 3, DAPX_STATUS_SUCCESS, NULL));
	PEER_MAY(DAPX_OP_RDMA_READ, self->b.mem + 1000, 100, behind);
	PEER_MAY_NOT(DAPX_OP_RDMA_READ, self->b.mem, 100, before);
}

/* Without an event, but in its place like any. */
#define BIND_SILENTLY(addr_, length_)					\
	test_cmd(rmr_bind, self->b.fd, .rmr = self->rmr,		\
		 .ep = self->eb.handle, .wr_id = 7,			\
		 .mr = (length_) ? self->b.mr : 0,			\
		 .addr = (length_) ? (uintptr_t)(addr_) : 0,		\
		 .length = (length_),					\
		 .access = (length_) ? REMOTE_READ : 0).out_rkey

/* It happens when what is before it is done, which may be a moment later. */
#define AWAIT_RKEY(rkey)						\
	({								\
		__u64 deadline = in_ms(PATIENCE_MS);			\
									\
		while (QUERY().out_rkey != (rkey)) {			\
			ASSERT_GT(deadline, now_ns());			\
			sleep_ms(1);					\
		}							\
	})

TEST_F(rmr, unsignalled)
{
	__u32 before, behind;

	OK(connect_cm(&self->ea, &self->eb));
	before = BIND_SILENTLY(self->b.mem, 100);
	AWAIT_RKEY(before);
	PEER_MAY(DAPX_OP_RDMA_READ, self->b.mem, 100, before);
	if (!on_siw()) {
		/* There is no receive for this. */
		OK(ep_send(&self->eb, 1, 0, 64));
		behind = BIND_SILENTLY(self->b.mem + 1000, 100);
		OK(evd_quiet(&self->b.done));
		EXPECT_EQ(before, QUERY().out_rkey);
		PEER_MAY(DAPX_OP_RDMA_READ, self->b.mem, 100, before);
		OK(ep_recv(&self->ea, 1, 0, 64));
		OK(expect_completion(&self->b.done, 1, DAPX_STATUS_SUCCESS,
				     NULL));
		AWAIT_RKEY(behind);
		PEER_MAY(DAPX_OP_RDMA_READ, self->b.mem + 1000, 100, behind);
	}
	EXPECT_EQ(0, BIND_SILENTLY(NULL, 0));
	AWAIT_RKEY(0);
	EXPECT_EQ(0, QUERY().out_mr);
	OK(evd_quiet(&self->b.done));
}

/* As many as the ring has entries, and not one more. */
TEST_F(rmr, many_wait)
{
	int i;

	if (on_siw())
		SKIP(return, "a send is done when TCP has it");
	OK(connect_cm(&self->ea, &self->eb));
	OK(ep_send(&self->eb, 1, 0, 64));
	for (i = 0; i < EP_DEPTH; i++)
		OK(bind_post(&self->eb, self->rmr, self->b.mr, self->b.mem, 100,
			     REMOTE_READ, 2 + i, NULL));
	test_err(EAGAIN, rmr_bind, self->b.fd, .rmr = self->rmr,
		 .ep = self->eb.handle, .mr = self->b.mr,
		 .addr = (uintptr_t)self->b.mem, .length = 100);
	OK(ep_recv(&self->ea, 1, 0, 64));
	for (i = 0; i <= EP_DEPTH; i++)
		OK(expect_completion(&self->b.done, 1 + i, DAPX_STATUS_SUCCESS,
				     NULL));
	OK(evd_quiet(&self->b.done));
}

/* What nobody takes is not without end: no more events wait than the ring has entries. */
TEST_F(rmr, many_unread)
{
	unsigned int room = self->b.done.ring.depth, i;

	OK(connect_cm(&self->ea, &self->eb));
	for (i = 0; i < room + EP_DEPTH; i++)
		OK(bind_post(&self->eb, self->rmr, 0, NULL, 0, 0, i, NULL));
	test_err(EAGAIN, rmr_bind, self->b.fd, .rmr = self->rmr,
		 .ep = self->eb.handle, .flags = DAPX_BIND_SIGNALED);
	for (i = 0; i < room + EP_DEPTH; i++)
		OK(expect_completion(&self->b.done, i, DAPX_STATUS_SUCCESS,
				     NULL));
	OK(bind_post(&self->eb, self->rmr, 0, NULL, 0, 0, i, NULL));
	OK(expect_completion(&self->b.done, i, DAPX_STATUS_SUCCESS, NULL));
}

TEST_F(rmr, disconnect_waits_for_binds)
{
	if (on_siw())
		SKIP(return, "a send is done when TCP has it");
	OK(connect_cm(&self->ea, &self->eb));
	OK(ep_send(&self->eb, 1, 0, 64));
	OK(bind_post(&self->eb, self->rmr, self->b.mr, self->b.mem, 100,
		     REMOTE_READ, 2, NULL));
	test_cmd(ep_disconnect, self->b.fd, .ep = self->eb.handle);
	EXPECT_EQ(DAPX_EP_DISCONNECT_PENDING, ep_state(&self->eb));
	test_err(EBADFD, rmr_bind, self->b.fd, .rmr = self->rmr,
		 .ep = self->eb.handle, .mr = self->b.mr,
		 .addr = (uintptr_t)self->b.mem, .length = 100);
	OK(ep_recv(&self->ea, 1, 0, 64));
	OK(expect_completion(&self->b.done, 1, DAPX_STATUS_SUCCESS, NULL));
	OK(expect_bound(&self->eb, 2, DAPX_STATUS_SUCCESS));
	OK(expect_connection(&self->b.conn, self->eb.handle,
			     DAPX_CONNECTION_DISCONNECTED, NULL));
}

/* Flushed at once, and nothing is bound; also those that waited. */
TEST_F(rmr, flushed)
{
	__u32 before, rkey, now;

	OK(connect_cm(&self->ea, &self->eb));
	before = BIND(self->b.mem, 100, REMOTE_READ);
	if (!on_siw()) {
		OK(ep_send(&self->eb, 1, 0, 64));
		OK(bind_post(&self->eb, self->rmr, self->b.mr, self->b.mem, 100,
			     REMOTE_READ, 2, &rkey));
		OK(ep_send(&self->eb, 3, 0, 64));
		DISCONNECT_ABRUPT(&self->eb);
		OK(expect_completion(&self->b.done, 1, DAPX_STATUS_FLUSHED, NULL));
		OK(expect_bound(&self->eb, 2, DAPX_STATUS_FLUSHED));
		OK(expect_completion(&self->b.done, 3, DAPX_STATUS_FLUSHED, NULL));
	} else {
		DISCONNECT_ABRUPT(&self->eb);
	}
	OK(ep_await_state(&self->eb, DAPX_EP_DISCONNECTED));
	OK(bind_post(&self->eb, self->rmr, self->b.mr, self->b.mem, 100,
		     REMOTE_READ, 4, &now));
	OK(expect_bound(&self->eb, 4, DAPX_STATUS_FLUSHED));
	EXPECT_EQ(before, QUERY().out_rkey);
	/* What was flushed was never a window. */
	OK(ep_await_state(&self->ea, DAPX_EP_DISCONNECTED));
	RECONNECT();
	PEER_MAY(DAPX_OP_RDMA_READ, self->b.mem, 100, before);
	if (!on_siw())
		PEER_MAY_NOT(DAPX_OP_RDMA_READ, self->b.mem, 100, rkey);
	PEER_MAY_NOT(DAPX_OP_RDMA_READ, self->b.mem, 100, now);
}

/* ---- its end ---- */

TEST_F(rmr, freed_twice)
{
	__u32 rkey;

	FREE(self->rmr);
	test_err(ENOENT, free, self->b.fd, .handle = self->rmr);
	OK(connect_cm(&self->ea, &self->eb));
	self->rmr = test_cmd(rmr_create, self->b.fd, .pd = self->b.pd).out_rmr;
	rkey = BIND(self->b.mem, 100, REMOTE_READ);
	FREE(self->rmr);
	test_err(ENOENT, free, self->b.fd, .handle = self->rmr);
	test_err(ENOENT, rmr_query, self->b.fd, .rmr = self->rmr);
	test_err(ENOENT, rmr_bind, self->b.fd, .rmr = self->rmr,
		 .ep = self->eb.handle);
	PEER_MAY_NOT(DAPX_OP_RDMA_READ, self->b.mem, 100, rkey);
}

/* It belongs to the PD: it outlives the endpoint through which it was bound. */
TEST_F(rmr, needs_no_endpoint)
{
	struct ep other;
	__u32 rkey;

	OK(connect_cm(&self->ea, &self->eb));
	rkey = BIND(self->b.mem, 100, REMOTE_READ);
	OK(ep_destroy(&self->eb));
	OK(ep_await_state(&self->ea, DAPX_EP_DISCONNECTED));
	test_cmd(ep_reset, self->a.fd, .ep = self->ea.handle);
	evd_drain(&self->a.conn);
	OK(ep_create(&self->b, &other));
	OK(connect_cm(&self->ea, &other));
	PEER_MAY(DAPX_OP_RDMA_READ, self->b.mem, 100, rkey);
	FREE(self->rmr);
	OK(ep_rdma(&self->ea, 0x77, DAPX_OP_RDMA_READ, self->a.mr, self->a.mem,
		   100, self->b.mem, rkey));
	OK(expect_refusal(&self->ea, 0x77));
	OK(ep_await_state(&other, DAPX_EP_DISCONNECTED));
}

TEST_F(rmr, region_is_in_use)
{
	__u32 mr, rkey;

	mr = test_cmd(mr_create, self->b.fd, .pd = self->b.pd,
		      .addr = (uintptr_t)self->b.mem, .length = PAGE,
		      .access = LOCAL_WRITE | REMOTE_READ).out_mr;
	OK(connect_cm(&self->ea, &self->eb));
	OK(bind_done(&self->eb, self->rmr, mr, self->b.mem, 8, REMOTE_READ,
		     &rkey));
	test_err(EBUSY, free, self->b.fd, .handle = mr);
	PEER_MAY(DAPX_OP_RDMA_READ, self->b.mem, 8, rkey);
	OK(unbind_done(&self->eb, self->rmr));
	if (!on_siw()) {
		/* Also while a bind waits. */
		OK(ep_send(&self->eb, 1, 0, 64));
		OK(bind_post(&self->eb, self->rmr, mr, self->b.mem, 8,
			     REMOTE_READ, 2, NULL));
		test_err(EBUSY, free, self->b.fd, .handle = mr);
	} else {
		OK(bind_done(&self->eb, self->rmr, mr, self->b.mem, 8,
			     REMOTE_READ, NULL));
	}
	FREE(self->rmr);
	FREE(mr);
}

/* The bind still waits, and its endpoint's peer does not answer. */
TEST_F(rmr, freed_while_its_bind_waits)
{
	__u32 before, rkey;
	__u64 begin;

	if (on_siw())
		SKIP(return, "a send is done when TCP has it");
	OK(connect_cm(&self->ea, &self->eb));
	before = BIND(self->b.mem, 8, REMOTE_READ);
	OK(ep_send(&self->eb, 1, 0, 64));
	OK(bind_post(&self->eb, self->rmr, self->b.mr, self->b.mem, 8,
		     REMOTE_READ, 2, &rkey));
	begin = now_ns();
	FREE(self->rmr);
	EXPECT_NOT_SLOW(now_ns() - begin);
	OK(evd_quiet(&self->b.done));
	/* It was posted, so it completes, in its place. */
	OK(ep_recv(&self->ea, 1, 0, 64));
	OK(expect_completion(&self->b.done, 1, DAPX_STATUS_SUCCESS, NULL));
	OK(expect_bound(&self->eb, 2, DAPX_STATUS_SUCCESS));
	PEER_MAY_NOT(DAPX_OP_RDMA_READ, self->b.mem, 8, before);
	PEER_MAY_NOT(DAPX_OP_RDMA_READ, self->b.mem, 8, rkey);
}

/* The endpoint goes, and with it the bind: the RMR stays what it was. */
TEST_F(rmr, endpoint_freed_while_a_bind_waits)
{
	__u32 before, other;

	if (on_siw())
		SKIP(return, "a send is done when TCP has it");
	OK(connect_cm(&self->ea, &self->eb));
	before = BIND(self->b.mem, 8, REMOTE_READ);
	other = test_cmd(mr_create, self->b.fd, .pd = self->b.pd,
			 .addr = (uintptr_t)self->b.mem, .length = PAGE,
			 .access = LOCAL_WRITE | REMOTE_READ).out_mr;
	OK(ep_send(&self->eb, 1, 0, 64));
	OK(bind_post(&self->eb, self->rmr, other, self->b.mem + 8, 8,
		     REMOTE_READ, 2, NULL));
	test_err(EBUSY, free, self->b.fd, .handle = other);
	OK(ep_destroy(&self->eb));
	/* Of the bind nothing is left. */
	FREE(other);
	evd_drain(&self->b.done);
	OK(evd_quiet(&self->b.done));
	EXPECT_EQ(before, QUERY().out_rkey);
	EXPECT_EQ((uintptr_t)self->b.mem, QUERY().out_addr);
	FREE(self->rmr);
	FREE(self->b.mr);
	FREE(self->b.done.handle);
	FREE(self->b.recv.handle);
	FREE(self->b.conn.handle);
	FREE(self->b.pd);
}

/* Those of a context that ends, several at a time. */
TEST_F(rmr, closed_with_many_windows)
{
	enum { WINDOWS = 200 };
	unsigned int n = count(5, 200), round, i;
	char before[512], after[512];

	TH_LOG("%u rounds of %u windows", n, WINDOWS);
	OK(rdma_resources(before));
	for (round = 0; round < n; round++) {
		struct host c;
		struct ep ea, ec;

		OK(host_set_up(&c, 1));
		OK(ep_create(&self->a, &ea));
		OK(ep_create(&c, &ec));
		OK(connect_cm(&ea, &ec));
		for (i = 0; i < WINDOWS; i++) {
			__u32 rmr = test_cmd(rmr_create, c.fd, .pd = c.pd).out_rmr;

			OK(bind_done(&ec, rmr, c.mr, c.mem + i, 4096,
				     REMOTE_WRITE, NULL));
		}
		OK(ep_destroy(&ea));
		ep_forget(&ec);
		host_close(&c);
		OK(rdma_resources(after));
		ASSERT_STREQ(before, after);
	}
}

/* ---- an end is final ---- */

FIXTURE(final)
{
	struct host a;
	struct host b;
	struct ep ea;
	struct ep eb;			/* whose peer uses the window */
	struct ep ec;			/* through which it is bound */
	struct ep ed;			/* its peer */
	__u32 rmr;
};

enum end { END_FREE, END_UNBIND, END_REBIND };

FIXTURE_VARIANT(final)
{
	enum end end;
	__u8 opcode;
};

FIXTURE_VARIANT_ADD(final, free_under_writes)
	{ .end = END_FREE, .opcode = DAPX_OP_RDMA_WRITE };
FIXTURE_VARIANT_ADD(final, free_under_reads)
	{ .end = END_FREE, .opcode = DAPX_OP_RDMA_READ };
FIXTURE_VARIANT_ADD(final, unbind_under_writes)
	{ .end = END_UNBIND, .opcode = DAPX_OP_RDMA_WRITE };
FIXTURE_VARIANT_ADD(final, rebind_under_writes)
	{ .end = END_REBIND, .opcode = DAPX_OP_RDMA_WRITE };

FIXTURE_SETUP(final)
{
	if (on_siw() && variant->opcode == DAPX_OP_RDMA_READ)
		SKIP(return, "siw may end reads twice when it refuses one of several");
	OK(host_set_up(&self->a, 0));
	OK(host_set_up(&self->b, 1));
	OK(ep_create(&self->a, &self->ea));
	OK(ep_create(&self->b, &self->eb));
	OK(ep_create(&self->b, &self->ec));
	OK(ep_create(&self->a, &self->ed));
	OK(connect_cm(&self->ed, &self->ec));
	self->rmr = test_cmd(rmr_create, self->b.fd, .pd = self->b.pd).out_rmr;
}

FIXTURE_TEARDOWN(final)
{
	host_close(&self->a);
	host_close(&self->b);
}

static bool is_kernel(const char *prefix)
{
	struct utsname name;

	return !uname(&name) && !strncmp(name.release, prefix, strlen(prefix));
}

static int end_window(struct host *host, struct ep *ep, __u32 *rmr,
		      enum end end)
{
	struct dapx_rmr_create again = { .pd = host->pd };
	struct dapx_free cmd = { .handle = *rmr };

	if (end == END_UNBIND)
		return unbind_done(ep, *rmr);
	if (end == END_REBIND)
		return bind_done(ep, *rmr, host->mr, host->mem, 1, REMOTE_READ,
				 NULL);
	if (_test_cmd_free(host->fd, &cmd))
		return because("DAPX_FREE: %m");
	if (_test_cmd_rmr_create(host->fd, &again))
		return because("DAPX_RMR_CREATE: %m");
	*rmr = again.out_rmr;
	return 0;
}

struct ending {
	struct host *host;
	struct ep *ep;
	__u32 *rmr;
	enum end end;
	__u8 *window;
	size_t length;
	__u64 took;
	int failed;
};

static void end_and_overwrite(void *arg)
{
	struct ending *ending = arg;
	__u64 begin = now_ns();

	ending->failed = end_window(ending->host, ending->ep, ending->rmr,
				    ending->end);
	ending->took = now_ns() - begin;
	memset(ending->window, 0xee, ending->length);
}

/*
 * In the middle of multi-packet requests: from the moment of the end on not one
 * byte changes, and the peer is refused.
 */
TEST_F(final, end)
{
	enum { LENGTH = 64 * 1024, REQUESTS = 16 };
	unsigned int n = count(10, 300), round, i;
	struct ending ending = {
		.host = &self->b, .ep = &self->ec, .rmr = &self->rmr,
		.end = variant->end, .window = self->b.mem + LENGTH,
		.length = LENGTH,
	};
	struct moment moment = { 8000, end_and_overwrite, &ending };
	unsigned int in_the_middle = 0;
	/* The refusal of half a read gets lost: its end is the connection's. */
	bool deaf = variant->opcode == DAPX_OP_RDMA_READ && is_kernel("6.1.");
	__u8 *window = ending.window;

	TH_LOG("%u rounds of %u requests of %u bytes", n, REQUESTS, LENGTH);
	/* A few more, if none of them happened to end in the middle. */
	for (round = 0; round < n || (!in_the_middle && round < n + 30); round++) {
		unsigned int done = 0, refused = 0, ended = 0;
		__u32 rkey;

		OK(bind_done(&self->ec, self->rmr, self->b.mr, window, LENGTH,
			     REMOTE_WRITE | REMOTE_READ, &rkey));
		OK(connect_cm(&self->ea, &self->eb));
		memset(self->a.mem, 0x11, LENGTH);
		OK(moment_start(&moment));
		/* Packets that overtake one another cost rxe on 6.1 the refusal. */
		run_on(0);
		for (i = 0; i < REQUESTS; i++)
			OK(ep_rdma(&self->ea, i, variant->opcode, self->a.mr,
				   self->a.mem, LENGTH, window, rkey));
		moment_await(&moment);
		run_anywhere();
		OK(ending.failed);
		EXPECT_NOT_SLOW(ending.took);

		for (i = 0; i < REQUESTS; i++) {
			struct dapx_event event;

			OK(evd_next(&self->a.done, &event, PATIENCE_MS));
			ASSERT_EQ(DAPX_EVENT_COMPLETION, event.type);
			ASSERT_GT(REQUESTS, event.completion.wr_id);
			EXPECT_FALSE(ended & 1U << event.completion.wr_id);
			ended |= 1U << event.completion.wr_id;
			/* What siw is given while it flushes, it flushes before what it had. */
			if (!on_siw() || !event.completion.status)
				EXPECT_EQ(i, event.completion.wr_id);
			if (!event.completion.status) {
				/* Successes, then one refusal, then flushes. */
				EXPECT_EQ(0, refused);
				done++;
			} else if (!refused++ && !on_siw()) {
				EXPECT_TRUE(event.completion.status ==
					    DAPX_STATUS_REMOTE_ACCESS ||
					    (event.completion.status ==
					     DAPX_STATUS_FLUSHED && deaf))
					TH_LOG("status %u", event.completion.status);
			}
		}
		if (done < REQUESTS)
			in_the_middle++;
		moment_fell(&moment, done == REQUESTS);
		for (i = 0; i < LENGTH; i++)
			if (window[i] != 0xee)
				break;
		EXPECT_EQ(LENGTH, i)
			TH_LOG("byte %u changed after the end", i);
		OK(disconnect_reset(&self->ea, &self->eb));
	}
	TH_LOG("%u of %u rounds ended in the middle", in_the_middle, round);
	EXPECT_LT(0, in_the_middle);
}

struct cut {
	struct host *a;
	struct host *b;
	__u32 rmr;
	size_t length;
	__u8 last;
	bool ended;		/* before the cable was cut */
	__u64 took;
	int failed;
};

static void cut_and_free(void *arg)
{
	struct cut *cut = arg;
	struct dapx_free cmd = { .handle = cut->rmr };
	__u64 begin;

	cut->failed = cable_set(cut->a, cut->b, false);
	begin = now_ns();
	if (!cut->failed && _test_cmd_free(cut->b->fd, &cmd))
		cut->failed = because("DAPX_FREE: %m");
	cut->took = now_ns() - begin;
	cut->ended = cut->b->mem[cut->length - 1] == cut->last;
	memset(cut->b->mem, 0xee, cut->length);
}

/* The cable is cut in the middle of the peer's write: the end does not wait for it. */
TEST_F(rmr, freed_while_the_peer_stalls)
{
	enum { LENGTH = 128 * 1024, REQUESTS = 16, LAST = 0x22 };
	unsigned int n = count(3, 30), stalled = 0, rounds = 0, i;
	struct cut cut = {
		.a = &self->a, .b = &self->b, .length = LENGTH, .last = LAST,
	};
	struct moment moment = { 16 * 1000, cut_and_free, &cut };

	OK(connect_cm(&self->ea, &self->eb));
	while (stalled < n) {
		__u32 rkey = BIND(self->b.mem, LENGTH, REMOTE_WRITE);

		memset(self->a.mem, 0x11, LENGTH);
		self->a.mem[LENGTH] = LAST;
		cut.rmr = self->rmr;
		OK(moment_start(&moment));
		for (i = 0; i < REQUESTS; i++)
			OK(ep_rdma(&self->ea, i, DAPX_OP_RDMA_WRITE, self->a.mr,
				   self->a.mem + (i == REQUESTS - 1), LENGTH,
				   self->b.mem, rkey));
		moment_await(&moment);
		OK(cut.failed);
		EXPECT_NOT_SLOW(cut.took);
		OK(cable_set(&self->a, &self->b, true));
		if (!cut.ended) {
			OK(ep_await_state(&self->ea, DAPX_EP_DISCONNECTED));
			stalled++;
		}
		moment_fell(&moment, cut.ended);
		ASSERT_GT(10 * n, rounds++);
		for (i = 0; i < LENGTH; i++)
			if (self->b.mem[i] != 0xee)
				break;
		EXPECT_EQ(LENGTH, i)
			TH_LOG("byte %u changed after the free", i);
		self->rmr = test_cmd(rmr_create, self->b.fd,
				     .pd = self->b.pd).out_rmr;
		RECONNECT();
	}
}

/* ---- keys ---- */

static int compare_keys(const void *a, const void *b)
{
	const __u64 x = *(const __u64 *)a, y = *(const __u64 *)b;

	return x < y ? -1 : x > y;
}

/* None of the last 2^16 is handed out again. */
TEST_F(rmr, keys_do_not_come_back)
{
	unsigned int n = count(3000, 100000), i;
	__u64 *keys = calloc(n, sizeof(*keys));
	unsigned int nearest = ~0U;

	TH_LOG("%u binds and frees", n);
	ASSERT_NE(NULL, keys);
	OK(connect_cm(&self->ea, &self->eb));
	for (i = 0; i < n; i++) {
		struct dapx_rmr_bind bind;
		__u32 rmr;

		rmr = test_cmd(rmr_create, self->b.fd, .pd = self->b.pd).out_rmr;
		bind = test_cmd(rmr_bind, self->b.fd, .rmr = rmr,
				.ep = self->eb.handle, .mr = self->b.mr,
				.addr = (uintptr_t)self->b.mem, .length = 8,
				.access = REMOTE_READ);
		keys[i] = (__u64)bind.out_rkey << 32 | i;
		FREE(rmr);
	}
	qsort(keys, n, sizeof(*keys), compare_keys);
	for (i = 1; i < n; i++)
		if (keys[i] >> 32 == keys[i - 1] >> 32 &&
		    (__u32)keys[i] - (__u32)keys[i - 1] < nearest)
			nearest = (__u32)keys[i] - (__u32)keys[i - 1];
	EXPECT_LE(1U << 16, nearest)
		TH_LOG("a key came back after %u binds", nearest);
	free(keys);
}

/* The peer uses the last key each time, when the window has another one. */
TEST_F(rmr, stale_keys)
{
	unsigned int n = count(30, 300), round;
	__u32 stale;

	TH_LOG("%u lives of the window", n);
	OK(connect_cm(&self->ea, &self->eb));
	stale = BIND(self->b.mem, 64, REMOTE_WRITE);
	for (round = 0; round < n; round++) {
		__u32 rkey = BIND(self->b.mem, 64, REMOTE_WRITE);

		EXPECT_NE(stale, rkey);
		memset(self->b.mem, 0x22, 64);
		memset(self->a.mem, 0x11, 64);
		PEER_MAY_NOT(DAPX_OP_RDMA_WRITE, self->b.mem, 64, stale);
		EXPECT_EQ(NULL, memchr(self->b.mem, 0x11, 64));
		PEER_MAY(DAPX_OP_RDMA_WRITE, self->b.mem, 64, rkey);
		EXPECT_EQ(0x11, self->b.mem[63]);
		stale = rkey;
	}
}

TEST_HARNESS_MAIN
