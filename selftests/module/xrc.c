// SPDX-License-Identifier: GPL-2.0
/*
 * XRC: messages to shared receive queues of many processes, by one connection.
 *
 * a sends; b, c and d are three contexts of the other host that share a domain.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "harness/cm.h"
#include "harness/dice.h"
#include "harness/fabric.h"
#include "harness/machine.h"
#include "harness/xrc.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 600

#define RECEIVERS 3
#define NO_SRQ 0xabcdef

FIXTURE(xrc)
{
	struct host a;
	struct host r[RECEIVERS];
	struct xrc_srq srq[RECEIVERS];
	struct ep ep;
	__u32 qp_num;
	int file_a;
	int file;
};

FIXTURE_SETUP(xrc)
{
	unsigned int i;

	self->file_a = memfd_create("a", 0);
	self->file = memfd_create("b", 0);
	ASSERT_LE(0, self->file_a);
	ASSERT_LE(0, self->file);
	OK(host_set_up(&self->a, 0));
	OK(host_xrc(&self->a, self->file_a));
	for (i = 0; i < RECEIVERS; i++) {
		OK(host_set_up(&self->r[i], 1));
		OK(host_xrc(&self->r[i], self->file));
		OK(xrc_srq_make(&self->r[i], 64, &self->srq[i]));
	}
	OK(xrc_ep_create(&self->a, &self->ep));
	OK(xrc_qp_make(&self->r[0], &self->qp_num));
	OK(xrc_connect(&self->ep, &self->r[0], self->qp_num));
}

FIXTURE_TEARDOWN(xrc)
{
	unsigned int i;

	ep_forget(&self->ep);
	for (i = 0; i < RECEIVERS; i++) {
		ring_unmap(&self->srq[i].srq.ring);
		host_close(&self->r[i]);
	}
	host_close(&self->a);
	close(self->file);
	close(self->file_a);
}

static void fill(__u8 *at, __u32 length, __u32 seed)
{
	__u32 i;

	for (i = 0; i < length; i++)
		at[i] = (seed * 31 + i) * 7 + (i >> 8);
}

/* Both ends have the same bytes. */
static bool same(const struct host *a, __u32 at_a, const struct host *b,
		 __u32 at_b, __u32 length)
{
	return !memcmp(a->mem + at_a, b->mem + at_b, length);
}

#define TAKE 0x20000	/* where receives are */

/* A message to each of the queues. */
TEST_F(xrc, each_queue)
{
	struct dapx_event event;
	unsigned int i;

	for (i = 0; i < RECEIVERS; i++) {
		OK(srq_recv(&self->srq[i].srq, 100 + i, TAKE, 4096));
		fill(self->a.mem + i * 4096, 4096, i);
		OK(xrc_send(&self->ep, self->srq[i].number, i, i * 4096,
			    1000 + i));
	}
	for (i = 0; i < RECEIVERS; i++) {
		OK(expect_completion(&self->a.done, i, DAPX_STATUS_SUCCESS,
				     NULL));
		/* Its data were there before. */
		ASSERT_TRUE(evd_poll(&self->r[i].recv, &event));
		EXPECT_EQ(DAPX_EVENT_COMPLETION, event.type);
		EXPECT_EQ(100 + i, event.completion.wr_id);
		EXPECT_EQ(DAPX_STATUS_SUCCESS, event.completion.status);
		EXPECT_EQ(DAPX_OP_RECV, event.completion.opcode);
		EXPECT_EQ(1000 + i, event.completion.byte_len);
		EXPECT_EQ(DAPX_COMPLETION_SRQ | DAPX_COMPLETION_XRC,
			  event.completion.flags);
		EXPECT_EQ(self->srq[i].srq.handle, event.completion.srq);
		EXPECT_EQ(self->srq[i].srq.handle, event.handle);
		EXPECT_EQ(self->qp_num, event.completion.qp_num);
		EXPECT_TRUE(same(&self->a, i * 4096, &self->r[i], TAKE,
				 1000 + i));
	}
}

/* Every size around those of the segments. */
TEST_F(xrc, sizes)
{
	static const __u32 sizes[] = {
		0, 1, 7, 8, 4039, 4040, 4041, 4096, 8079, 8080, 8081, 65536,
		100000,
	};
	struct dapx_event event;
	unsigned int i;

	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		fill(self->a.mem, sizes[i], i);
		memset(self->r[1].mem, 0xee, HOST_MEMORY);
		OK(srq_recv(&self->srq[1].srq, i, TAKE, 100000));
		OK(xrc_send(&self->ep, self->srq[1].number, i, 0, sizes[i]));
		OK(expect_completion(&self->a.done, i, DAPX_STATUS_SUCCESS,
				     NULL));
		OK(expect_completion(&self->r[1].recv, i, DAPX_STATUS_SUCCESS,
				     &event));
		EXPECT_EQ(sizes[i], event.completion.byte_len);
		EXPECT_TRUE(same(&self->a, 0, &self->r[1], TAKE, sizes[i]))
			TH_LOG("%u bytes", sizes[i]);
		EXPECT_EQ(0xee, self->r[1].mem[TAKE + sizes[i]]);
	}
}

/* ---- operations ---- */

static int post(struct ep *ep, __u32 srq_num, struct dapx_send_wr wr,
		const struct dapx_sge *sge)
{
	wr.remote_srqn = srq_num;
	wr.flags |= DAPX_SEND_SIGNALED;
	wr.num_sge = sge ? 1 : 0;
	return ep_post_send(ep, &wr, sge);
}

/* One segment of @ep's memory and the same length of @to's. */
static int rdma(struct ep *ep, const struct xrc_srq *by, __u8 opcode,
		__u64 wr_id, __u32 offset, __u32 length, const struct host *to,
		__u32 at)
{
	struct dapx_sge sge = host_sge(ep->host, offset, length);

	return post(ep, by->number, (struct dapx_send_wr) {
		.wr_id = wr_id,
		.opcode = opcode,
		.remote_addr = (uintptr_t)to->mem + at,
		.rkey = to->rkey,
		.imm_data = opcode == DAPX_OP_RDMA_WRITE_IMM ? 0x1234 : 0,
	}, &sge);
}

TEST_F(xrc, immediate_data)
{
	struct dapx_sge sge = host_sge(&self->a, 0, 5000);
	struct dapx_event event;

	fill(self->a.mem, 5000, 1);
	OK(srq_recv(&self->srq[2].srq, 7, TAKE, 5000));
	OK(post(&self->ep, self->srq[2].number, (struct dapx_send_wr) {
		.wr_id = 1, .opcode = DAPX_OP_SEND_IMM, .imm_data = 0xfeed,
	}, &sge));
	OK(expect_completion(&self->a.done, 1, DAPX_STATUS_SUCCESS, NULL));
	OK(expect_completion(&self->r[2].recv, 7, DAPX_STATUS_SUCCESS, &event));
	EXPECT_EQ(DAPX_OP_RECV, event.completion.opcode);
	EXPECT_EQ(DAPX_COMPLETION_SRQ | DAPX_COMPLETION_XRC |
		  DAPX_COMPLETION_IMM, event.completion.flags);
	EXPECT_EQ(0xfeed, event.completion.imm_data);
	EXPECT_EQ(5000, event.completion.byte_len);
	EXPECT_TRUE(same(&self->a, 0, &self->r[2], TAKE, 5000));
}

TEST_F(xrc, write)
{
	fill(self->a.mem, 70000, 2);
	OK(rdma(&self->ep, &self->srq[1], DAPX_OP_RDMA_WRITE, 1, 0, 70000,
		&self->r[1], TAKE));
	OK(expect_completion(&self->a.done, 1, DAPX_STATUS_SUCCESS, NULL));
	EXPECT_TRUE(same(&self->a, 0, &self->r[1], TAKE, 70000));
	/* The owner hears nothing of it. */
	OK(evd_quiet(&self->r[1].recv));
}

TEST_F(xrc, write_with_immediate)
{
	struct dapx_event event;

	fill(self->a.mem, 9000, 3);
	OK(srq_recv(&self->srq[0].srq, 3, 0, 16));
	OK(rdma(&self->ep, &self->srq[0], DAPX_OP_RDMA_WRITE_IMM, 1, 0, 9000,
		&self->r[0], TAKE));
	OK(expect_completion(&self->a.done, 1, DAPX_STATUS_SUCCESS, NULL));
	OK(expect_completion(&self->r[0].recv, 3, DAPX_STATUS_SUCCESS, &event));
	EXPECT_EQ(DAPX_OP_RECV_RDMA_IMM, event.completion.opcode);
	EXPECT_EQ(9000, event.completion.byte_len);
	EXPECT_EQ(0x1234, event.completion.imm_data);
	EXPECT_TRUE(same(&self->a, 0, &self->r[0], TAKE, 9000));
}

TEST_F(xrc, read)
{
	static const __u32 sizes[] = { 0, 1, 4040, 4041, 100000 };
	unsigned int i;

	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		memset(self->a.mem, 0, HOST_MEMORY);
		fill(self->r[1].mem, sizes[i], i);
		OK(rdma(&self->ep, &self->srq[1], DAPX_OP_RDMA_READ, i, TAKE,
			sizes[i], &self->r[1], 0));
		OK(expect_completion(&self->a.done, i, DAPX_STATUS_SUCCESS,
				     NULL));
		EXPECT_TRUE(same(&self->a, TAKE, &self->r[1], 0, sizes[i]));
		EXPECT_EQ(0, self->a.mem[TAKE + sizes[i]]);
	}
}

static int atomic(struct ep *ep, const struct xrc_srq *by, __u8 opcode,
		  __u64 wr_id, __u32 offset, const struct host *to, __u32 at,
		  __u64 compare_add, __u64 swap)
{
	struct dapx_sge sge = host_sge(ep->host, offset, 8);

	return post(ep, by->number, (struct dapx_send_wr) {
		.wr_id = wr_id,
		.opcode = opcode,
		.remote_addr = (uintptr_t)to->mem + at,
		.rkey = to->rkey,
		.compare_add = compare_add,
		.swap = swap,
	}, &sge);
}

TEST_F(xrc, atomics)
{
	__u64 *here = (__u64 *)self->a.mem;
	__u64 *there = (__u64 *)(self->r[2].mem + 64);

	*there = 40;
	OK(atomic(&self->ep, &self->srq[2], DAPX_OP_FETCH_ADD, 1, 0,
		  &self->r[2], 64, 2, 0));
	OK(expect_completion(&self->a.done, 1, DAPX_STATUS_SUCCESS, NULL));
	EXPECT_EQ(40, *here);
	EXPECT_EQ(42, *there);
	OK(atomic(&self->ep, &self->srq[2], DAPX_OP_COMPARE_SWAP, 2, 0,
		  &self->r[2], 64, 42, 1ULL << 40));
	OK(expect_completion(&self->a.done, 2, DAPX_STATUS_SUCCESS, NULL));
	EXPECT_EQ(42, *here);
	EXPECT_EQ(1ULL << 40, *there);
	OK(atomic(&self->ep, &self->srq[2], DAPX_OP_COMPARE_SWAP, 3, 0,
		  &self->r[2], 64, 42, 7));
	OK(expect_completion(&self->a.done, 3, DAPX_STATUS_SUCCESS, NULL));
	EXPECT_EQ(1ULL << 40, *here);
	EXPECT_EQ(1ULL << 40, *there);
}

TEST_F(xrc, inline_data)
{
	struct dapx_send_wr wr = {
		.wr_id = 1,
		.opcode = DAPX_OP_SEND,
		.flags = DAPX_SEND_SIGNALED | DAPX_SEND_INLINE,
		.remote_srqn = self->srq[0].number,
		.inline_len = 13,
	};

	OK(srq_recv(&self->srq[0].srq, 1, TAKE, 64));
	OK(ep_post_send(&self->ep, &wr, "hello, world"));
	OK(expect_completion(&self->a.done, 1, DAPX_STATUS_SUCCESS, NULL));
	OK(expect_completion(&self->r[0].recv, 1, DAPX_STATUS_SUCCESS, NULL));
	EXPECT_STREQ("hello, world", (char *)self->r[0].mem + TAKE);
}

/* Segments of both sides meet anywhere. */
TEST_F(xrc, segments)
{
	struct {
		struct dapx_send_wr wr;
		struct dapx_sge sge[3];
	} send = {
		.wr = {
			.wr_id = 1, .opcode = DAPX_OP_SEND, .num_sge = 3,
			.flags = DAPX_SEND_SIGNALED,
			.remote_srqn = self->srq[1].number,
		},
		.sge = {
			host_sge(&self->a, 1, 3000), host_sge(&self->a, 3001, 0),
			host_sge(&self->a, 3001, 7000),
		},
	};
	struct {
		struct dapx_recv_wr wr;
		struct dapx_sge sge[4];
	} recv = {
		.wr = { .wr_id = 2, .num_sge = 4 },
		.sge = {
			host_sge(&self->r[1], TAKE, 1),
			host_sge(&self->r[1], TAKE + 1, 5000),
			host_sge(&self->r[1], TAKE + 5001, 0),
			host_sge(&self->r[1], TAKE + 5001, 6000),
		},
	};

	if (self->a.sge < 3)
		SKIP(return, "the device takes fewer segments");
	fill(self->a.mem, 10001, 5);
	OK(ring_push(&self->srq[1].srq.ring, &recv, sizeof(recv)));
	OK(ep_post_send(&self->ep, &send.wr, send.sge));
	OK(expect_completion(&self->a.done, 1, DAPX_STATUS_SUCCESS, NULL));
	OK(expect_completion(&self->r[1].recv, 2, DAPX_STATUS_SUCCESS, NULL));
	EXPECT_TRUE(same(&self->a, 1, &self->r[1], TAKE, 10000));
}

/* ---- order, and many at once ---- */

/*
 * Messages of any size to any queue, as many in flight as the rings hold: each queue
 * gets its own in order, the sender hears of all in order.
 */
TEST_F(xrc, order)
{
	unsigned int n = count(2000, 100000), sent = 0, done = 0, i;
	unsigned int posted[RECEIVERS] = {}, taken[RECEIVERS] = {};
	unsigned int expected[RECEIVERS] = {};
	struct dapx_event event;
	__u32 *where;

	where = calloc(n, sizeof(*where));
	ASSERT_NE(NULL, where);
	for (i = 0; i < n; i++)
		where[i] = dice() % RECEIVERS;
	while (done < n) {
		for (i = 0; i < RECEIVERS; i++) {
			/* A receive has a place of its own until it is taken. */
			while (posted[i] < taken[i] + 32) {
				OK(srq_recv(&self->srq[i].srq, posted[i],
					    TAKE + posted[i] % 32 * 2048, 2048));
				posted[i]++;
			}
		}
		while (sent < n && sent < done + 32) {
			__u32 at = sent % 32 * 2048, size = 8 + dice() % 2040;

			memset(self->a.mem + at, sent, size);
			memcpy(self->a.mem + at, &sent, sizeof(sent));
			OK(xrc_send(&self->ep, self->srq[where[sent]].number,
				    sent, at, size));
			sent++;
		}
		OK(expect_completion(&self->a.done, done, DAPX_STATUS_SUCCESS,
				     NULL));
		/* What is done is there; others may be, too. */
		for (i = 0; i < RECEIVERS; i++) {
			while (evd_poll(&self->r[i].recv, &event)) {
				__u8 *at = self->r[i].mem + TAKE +
					   taken[i] % 32 * 2048;
				unsigned int which;

				while (where[expected[i]] != i)
					expected[i]++;
				ASSERT_EQ(taken[i], event.completion.wr_id);
				memcpy(&which, at, sizeof(which));
				ASSERT_EQ(expected[i], which);
				ASSERT_EQ((__u8)which,
					  at[event.completion.byte_len - 1]);
				expected[i]++;
				taken[i]++;
			}
		}
		done++;
	}
	EXPECT_EQ(n, taken[0] + taken[1] + taken[2]);
	free(where);
}

/* Later requests may take what earlier reads bring. */
TEST_F(xrc, fence)
{
	struct dapx_sge sge = host_sge(&self->a, TAKE, 20000);

	fill(self->r[0].mem, 20000, 9);
	OK(srq_recv(&self->srq[1].srq, 5, TAKE, 20000));
	OK(rdma(&self->ep, &self->srq[0], DAPX_OP_RDMA_READ, 1, TAKE, 20000,
		&self->r[0], 0));
	OK(post(&self->ep, self->srq[1].number, (struct dapx_send_wr) {
		.wr_id = 2, .opcode = DAPX_OP_SEND, .flags = DAPX_SEND_FENCE,
	}, &sge));
	OK(expect_completion(&self->a.done, 1, DAPX_STATUS_SUCCESS, NULL));
	OK(expect_completion(&self->a.done, 2, DAPX_STATUS_SUCCESS, NULL));
	OK(expect_completion(&self->r[1].recv, 5, DAPX_STATUS_SUCCESS, NULL));
	EXPECT_FALSE(memcmp(self->r[0].mem, self->r[1].mem + TAKE, 20000));
}

/* ---- receivers that are not ready ---- */

/* A message waits for its receive, and those behind it wait, too. */
TEST_F(xrc, waits_for_a_receive)
{
	fill(self->a.mem, 30000, 4);
	OK(srq_recv(&self->srq[1].srq, 9, TAKE, 100));
	OK(xrc_send(&self->ep, self->srq[0].number, 1, 0, 30000));
	OK(xrc_send(&self->ep, self->srq[1].number, 2, 0, 100));
	OK(evd_quiet(&self->a.done));
	OK(evd_quiet(&self->r[1].recv));
	OK(srq_recv(&self->srq[0].srq, 8, TAKE, 30000));
	OK(expect_completion(&self->a.done, 1, DAPX_STATUS_SUCCESS, NULL));
	OK(expect_completion(&self->a.done, 2, DAPX_STATUS_SUCCESS, NULL));
	OK(expect_completion(&self->r[0].recv, 8, DAPX_STATUS_SUCCESS, NULL));
	OK(expect_completion(&self->r[1].recv, 9, DAPX_STATUS_SUCCESS, NULL));
	EXPECT_TRUE(same(&self->a, 0, &self->r[0], TAKE, 30000));
}

/* For longer than it takes a sender to probe whether its peer is there. */
TEST_F(xrc, waits_long_for_a_receive)
{
	OK(xrc_send(&self->ep, self->srq[0].number, 1, 0, 100));
	sleep_ms(2500);
	OK(srq_recv(&self->srq[0].srq, 8, TAKE, 100));
	OK(expect_completion(&self->a.done, 1, DAPX_STATUS_SUCCESS, NULL));
	OK(expect_completion(&self->r[0].recv, 8, DAPX_STATUS_SUCCESS, NULL));
}

/* So does a write with immediate data, at its end. */
TEST_F(xrc, write_waits_for_a_receive)
{
	fill(self->a.mem, 30000, 4);
	OK(rdma(&self->ep, &self->srq[0], DAPX_OP_RDMA_WRITE_IMM, 1, 0, 30000,
		&self->r[0], TAKE));
	OK(evd_quiet(&self->a.done));
	OK(srq_recv(&self->srq[0].srq, 8, 0, 0));
	OK(expect_completion(&self->a.done, 1, DAPX_STATUS_SUCCESS, NULL));
	OK(expect_completion(&self->r[0].recv, 8, DAPX_STATUS_SUCCESS, NULL));
	EXPECT_TRUE(same(&self->a, 0, &self->r[0], TAKE, 30000));
}

/* A second connection into the domain, made by @host. */
static int connect_other(struct ep *ep, struct host *from, struct host *host,
			 __u32 *qp_num)
{
	return xrc_ep_create(from, ep) || xrc_qp_make(host, qp_num) ||
	       xrc_connect(ep, host, *qp_num) ? -1 : 0;
}

/* Tries are counted: those that found the queue not ready, one after the other. */
TEST_F(xrc, not_ready_to_the_last_try)
{
	static const struct qp_options options = {
		.timeout = 14, .retry_count = 7, .rnr_retry = 3, .path_mtu = 3,
	};
	struct dapx_xrc_qp_query query = { .xrcd = self->r[1].xrcd };
	struct ep other;

	if (on_siw())
		SKIP(return, "iWARP has no exchange of QP numbers");
	OK(xrc_ep_create(&self->a, &other));
	OK(xrc_qp_make(&self->r[1], &query.qp_num));
	OK(xrc_connect_qp(&other, &self->r[1], query.qp_num, &options));
	OK(srq_recv(&self->srq[0].srq, 1, TAKE, 100));
	OK(xrc_send(&other, self->srq[0].number, 1, 0, 100));
	OK(expect_completion(&self->a.done, 1, DAPX_STATUS_SUCCESS, NULL));
	OK(xrc_send(&other, self->srq[0].number, 2, 0, 100));
	OK(xrc_send(&other, self->srq[1].number, 3, 0, 100));
	OK(expect_completion(&self->a.done, 2, DAPX_STATUS_RECEIVER_NOT_READY,
			     NULL));
	OK(expect_completion(&self->a.done, 3, DAPX_STATUS_FLUSHED, NULL));
	OK(ep_await_state(&other, DAPX_EP_DISCONNECTED));
	/* The first try, and three more. */
	ASSERT_EQ(0, _test_cmd_xrc_qp_query(self->r[1].fd, &query));
	EXPECT_EQ(4, query.out_not_ready);
	EXPECT_EQ(1, query.out_messages);
	OK(ep_destroy(&other));
}

/* Who waits for a queue holds up nobody else, as long as it takes. */
TEST_F(xrc, empty_queue_holds_up_no_other)
{
	unsigned int n = count(200, 20000), i;
	struct ep other;
	__u32 qp_num;

	OK(connect_other(&other, &self->a, &self->r[1], &qp_num));
	/* More than it has credits for. */
	for (i = 0; i < 40; i++)
		OK(xrc_send(&self->ep, self->srq[0].number, i, 0, 4096));
	for (i = 0; i < n; i++) {
		OK(srq_recv(&self->srq[2].srq, i, TAKE, 5000));
		OK(xrc_send(&other, self->srq[2].number, 1000 + i, 0, 5000));
		OK(expect_completion(&self->a.done, 1000 + i,
				     DAPX_STATUS_SUCCESS, NULL));
		OK(expect_completion(&self->r[2].recv, i, DAPX_STATUS_SUCCESS,
				     NULL));
	}
	for (i = 0; i < 40; i++)
		OK(srq_recv(&self->srq[0].srq, i, TAKE, 4096));
	for (i = 0; i < 40; i++)
		OK(expect_completion(&self->a.done, i, DAPX_STATUS_SUCCESS,
				     NULL));
	OK(ep_destroy(&other));
}

/* Without room for its completion, a receive is as good as none. */
TEST_F(xrc, full_evd)
{
	struct dapx_srq_create cmd = {
		.pd = self->r[0].pd, .depth = 4, .max_sge = 1,
		.xrcd = self->r[0].xrcd,
	};
	struct srq srq = { .host = &self->r[0] };
	unsigned int i;
	struct evd evd;

	OK(evd_make(self->r[0].fd, 4, 0, &evd));
	cmd.evd = evd.handle;
	ASSERT_EQ(0, _test_cmd_srq_create(self->r[0].fd, &cmd));
	srq.handle = cmd.out_srq;
	OK(ring_map(self->r[0].fd, &cmd.out_ring, &srq.ring));
	/* Four in the ring, four that wait for room in it. */
	for (i = 0; i < 8; i++) {
		OK(srq_recv(&srq, i, TAKE, 8));
		OK(xrc_send(&self->ep, cmd.out_srq_num, i, 0, 8));
		OK(expect_completion(&self->a.done, i, DAPX_STATUS_SUCCESS,
				     NULL));
	}
	OK(srq_recv(&srq, 8, TAKE, 8));
	OK(xrc_send(&self->ep, cmd.out_srq_num, 8, 0, 8));
	OK(evd_quiet(&self->a.done));
	for (i = 0; i < 9; i++)
		OK(expect_completion(&evd, i, DAPX_STATUS_SUCCESS, NULL));
	OK(expect_completion(&self->a.done, 8, DAPX_STATUS_SUCCESS, NULL));
	ring_unmap(&srq.ring);
	test_cmd(free, self->r[0].fd, .handle = srq.handle);
	ring_unmap(&evd.ring);
	test_cmd(free, self->r[0].fd, .handle = evd.handle);
}

/* ---- the end of what a message is for is final ---- */

/* When the free of memory has returned, not one byte of it changes. */
TEST_F(xrc, memory_freed_under_writes)
{
	unsigned int n = count(20, 300), i, j, refused = 0;
	struct moment moment = { .longest_us = 10000 };
	static __u8 copy[65536];
	struct dapx_event event;

	/* A few more, if none of them happened to be refused in the middle. */
	for (i = 0; i < n || (!refused && i < n + 30); i++) {
		unsigned int before = refused;
		struct dapx_mr_create mr = {
			.flags = DAPX_MR_XRC, .pd = self->r[1].pd,
			.addr = (uintptr_t)self->r[1].mem, .length = 65536,
			.access = DAPX_ACCESS_LOCAL_WRITE |
				  DAPX_ACCESS_REMOTE_WRITE,
		};
		struct dapx_sge sge = host_sge(&self->a, 0, 65536);
		struct ep ep;
		__u32 qp_num;

		ASSERT_EQ(0, _test_cmd_mr_create(self->r[1].fd, &mr));
		OK(connect_other(&ep, &self->a, &self->r[1], &qp_num));
		for (j = 0; j < 8; j++) {
			memset(self->a.mem, 16 * i + j, 65536);
			OK(post(&ep, self->srq[1].number, (struct dapx_send_wr) {
				.wr_id = j, .opcode = DAPX_OP_RDMA_WRITE,
				.remote_addr = mr.addr, .rkey = mr.out_rkey,
			}, &sge));
		}
		usleep(dice() % moment.longest_us);
		test_cmd(free, self->r[1].fd, .handle = mr.out_mr);
		memcpy(copy, self->r[1].mem, sizeof(copy));
		for (j = 0; j < 8; j++) {
			OK(evd_next(&self->a.done, &event, PATIENCE_MS));
			if (event.completion.status == DAPX_STATUS_REMOTE_ACCESS)
				refused++;
		}
		moment_fell(&moment, refused == before);
		EXPECT_FALSE(memcmp(copy, self->r[1].mem, sizeof(copy)));
		OK(ep_destroy(&ep));
		test_cmd(xrc_qp_unregister, self->r[1].fd,
			 .xrcd = self->r[1].xrcd, .qp_num = qp_num);
		evd_drain(&self->a.conn);
		evd_drain(&self->r[1].conn);
	}
	TH_LOG("%u of %u were refused in the middle", refused, i);
	EXPECT_LT(0, refused);
}

/* A queue that goes among messages for it: each is there, or is not. */
TEST_F(xrc, queue_freed_among_messages)
{
	unsigned int n = count(20, 300), i, j;
	struct dapx_event event;

	for (i = 0; i < n; i++) {
		struct xrc_srq srq;
		struct ep ep;
		__u32 qp_num;

		OK(xrc_srq_make(&self->r[1], 64, &srq));
		OK(connect_other(&ep, &self->a, &self->r[2], &qp_num));
		for (j = 0; j < 16; j++)
			OK(srq_recv(&srq.srq, j, TAKE, 20000));
		for (j = 0; j < 16; j++)
			OK(xrc_send(&ep, srq.number, j, 0, 20000));
		usleep(dice() % 10000);
		ring_unmap(&srq.srq.ring);
		test_cmd(free, self->r[1].fd, .handle = srq.srq.handle);
		/* As many as were told are done, and no more is told. */
		evd_drain(&self->r[1].recv);
		for (j = 0; j < 16; j++) {
			OK(evd_next(&self->a.done, &event, PATIENCE_MS));
			EXPECT_EQ(j, event.completion.wr_id);
		}
		EXPECT_EQ(0, evd_drain(&self->r[1].recv));
		OK(ep_destroy(&ep));
		test_cmd(xrc_qp_unregister, self->r[2].fd,
			 .xrcd = self->r[2].xrcd, .qp_num = qp_num);
		evd_drain(&self->a.conn);
		evd_drain(&self->r[2].conn);
	}
}

/* ---- refusals: the sender hears why, and only this connection is broken ---- */

/*
 * A second connection into the same domain still works. FIXTURE_DATA(xrc), which
 * checkpatch does not take for a type, is struct _test_data_xrc.
 */
static int other_connection_works(struct _test_data_xrc *self)
{
	/* A sender to whose events those of the broken connection do not come. */
	struct host host;
	struct ep other;
	__u32 qp_num;
	int ret;

	if (host_set_up(&host, 0) || host_xrc(&host, self->file_a))
		return -1;
	ret = connect_other(&other, &host, &self->r[1], &qp_num) ||
	      srq_recv(&self->srq[2].srq, 77, TAKE, 100) ||
	      xrc_send(&other, self->srq[2].number, 78, 0, 100) ||
	      expect_completion(&host.done, 78, DAPX_STATUS_SUCCESS, NULL) ||
	      expect_completion(&self->r[2].recv, 77, DAPX_STATUS_SUCCESS, NULL);
	if (!ret)
		ep_forget(&other);
	host_close(&host);
	return ret ? -1 : 0;
}

#define EXPECT_REFUSED(wr, wanted)					\
	do {								\
		OK(expect_completion(&self->a.done, wr, wanted, NULL));	\
		OK(expect_connection(&self->a.conn, self->ep.handle,	\
				     DAPX_CONNECTION_BROKEN, NULL));	\
		OK(expect_async(&self->r[0].conn,			\
				DAPX_ASYNC_XRC_QP_ESTABLISHED, NULL));	\
		OK(expect_async(&self->r[0].conn,			\
				DAPX_ASYNC_XRC_QP_ERROR, NULL));	\
		OK(other_connection_works(self));			\
	} while (0)

TEST_F(xrc, unknown_queue)
{
	OK(xrc_send(&self->ep, NO_SRQ, 1, 0, 100));
	EXPECT_REFUSED(1, DAPX_STATUS_REMOTE_QUEUE);
}

TEST_F(xrc, queue_of_another_domain)
{
	struct host stranger;
	struct xrc_srq srq;
	int file = memfd_create("c", 0);

	OK(host_set_up(&stranger, 1));
	OK(host_xrc(&stranger, file));
	OK(xrc_srq_make(&stranger, 16, &srq));
	OK(srq_recv(&srq.srq, 1, 0, 100));
	OK(xrc_send(&self->ep, srq.number, 1, 0, 100));
	EXPECT_REFUSED(1, DAPX_STATUS_REMOTE_QUEUE);
	OK(evd_quiet(&stranger.recv));
	ring_unmap(&srq.srq.ring);
	host_close(&stranger);
	close(file);
}

TEST_F(xrc, queue_that_was_freed)
{
	test_cmd(free, self->r[1].fd, .handle = self->srq[1].srq.handle);
	OK(xrc_send(&self->ep, self->srq[1].number, 1, 0, 100));
	EXPECT_REFUSED(1, DAPX_STATUS_REMOTE_QUEUE);
}

TEST_F(xrc, message_too_long)
{
	struct dapx_event event;

	memset(self->r[0].mem, 0xee, HOST_MEMORY);
	OK(srq_recv(&self->srq[0].srq, 5, TAKE, 9999));
	OK(xrc_send(&self->ep, self->srq[0].number, 1, 0, 10000));
	OK(expect_completion(&self->r[0].recv, 5, DAPX_STATUS_LOCAL_LENGTH,
			     &event));
	EXPECT_REFUSED(1, DAPX_STATUS_REMOTE_INVALID);
	EXPECT_EQ(0xee, self->r[0].mem[TAKE]);
}

/* The memory of a receive went between posting and the message. */
TEST_F(xrc, receive_without_memory)
{
	struct dapx_event event;

	OK(srq_recv(&self->srq[1].srq, 5, TAKE, 100));
	test_cmd(free, self->r[1].fd, .handle = self->r[1].mr);
	OK(xrc_send(&self->ep, self->srq[1].number, 1, 0, 100));
	EXPECT_REFUSED(1, DAPX_STATUS_REMOTE_OPERATION);
	OK(expect_async(&self->r[1].recv, DAPX_ASYNC_SRQ_ERROR, &event));
	EXPECT_EQ(self->srq[1].srq.handle, event.handle);
	EXPECT_EQ(5, event.async.wr_id);
	EXPECT_EQ(-EACCES, event.async.error);
	test_err(ENOTRECOVERABLE, doorbell, self->r[1].fd,
		 .handle = self->srq[1].srq.handle, .flags = DAPX_DOORBELL_RECV);
}

/* Keys are those of the owner of the queue that the message names. */
TEST_F(xrc, key_of_another_owner)
{
	memset(self->r[2].mem, 0xee, HOST_MEMORY);
	OK(rdma(&self->ep, &self->srq[1], DAPX_OP_RDMA_WRITE, 1, 0, 100,
		&self->r[2], 2 * TAKE - 4096));
	EXPECT_REFUSED(1, DAPX_STATUS_REMOTE_ACCESS);
	EXPECT_EQ(0xee, self->r[2].mem[2 * TAKE - 4096]);
}

/* Whatever rights the memory has. */
TEST_F(xrc, rights_of_a_queue_pair)
{
	static const struct {
		__u8 right;
		__u8 opcode;
	} uses[] = {
		{ DAPX_ACCESS_REMOTE_WRITE, DAPX_OP_RDMA_WRITE },
		{ DAPX_ACCESS_REMOTE_READ, DAPX_OP_RDMA_READ },
		{ DAPX_ACCESS_REMOTE_ATOMIC, DAPX_OP_FETCH_ADD },
	};
	struct qp_options options = qp_usual;
	unsigned int i, refused;
	struct ep other;
	__u32 qp_num;
	__u8 opcode;

	if (on_siw())
		SKIP(return, "iWARP has no exchange of QP numbers");
	for (refused = 0; refused < ARRAY_SIZE(uses); refused++) {
		options.refused = uses[refused].right;
		OK(xrc_ep_create(&self->a, &other));
		OK(xrc_qp_make(&self->r[1], &qp_num));
		OK(xrc_connect_qp(&other, &self->r[1], qp_num, &options));
		for (i = 1; i <= ARRAY_SIZE(uses); i++) {
			opcode = uses[(refused + i) % ARRAY_SIZE(uses)].opcode;
			OK(rdma(&other, &self->srq[1], opcode, i, 0, 8,
				&self->r[1], 0));
			OK(expect_completion(&self->a.done, i,
					     i < ARRAY_SIZE(uses) ?
					     DAPX_STATUS_SUCCESS :
					     DAPX_STATUS_REMOTE_INVALID, NULL));
		}
		OK(expect_connection(&self->a.conn, other.handle,
				     DAPX_CONNECTION_BROKEN, NULL));
		OK(ep_destroy(&other));
		OK(expect_async(&self->r[1].conn,
				DAPX_ASYNC_XRC_QP_ESTABLISHED, NULL));
		OK(expect_async(&self->r[1].conn, DAPX_ASYNC_XRC_QP_ERROR, NULL));
	}
}

TEST_F(xrc, read_by_another_owner)
{
	memset(self->a.mem, 0, HOST_MEMORY);
	fill(self->r[2].mem, 100, 6);
	OK(rdma(&self->ep, &self->srq[1], DAPX_OP_RDMA_READ, 1, TAKE, 100,
		&self->r[2], 0));
	EXPECT_REFUSED(1, DAPX_STATUS_REMOTE_ACCESS);
	EXPECT_EQ(0, self->a.mem[TAKE]);
}

TEST_F(xrc, atomic_by_another_owner)
{
	__u64 *there = (__u64 *)self->r[2].mem;

	*there = 5;
	OK(atomic(&self->ep, &self->srq[1], DAPX_OP_FETCH_ADD, 1, 0,
		  &self->r[2], 0, 1, 0));
	EXPECT_REFUSED(1, DAPX_STATUS_REMOTE_ACCESS);
	EXPECT_EQ(5, *there);
}

TEST_F(xrc, beyond_the_memory)
{
	OK(rdma(&self->ep, &self->srq[1], DAPX_OP_RDMA_WRITE, 1, 0, 8192,
		&self->r[1], HOST_MEMORY - 8191));
	EXPECT_REFUSED(1, DAPX_STATUS_REMOTE_ACCESS);
	EXPECT_EQ(0, self->r[1].mem[HOST_MEMORY - 8191]);
}

TEST_F(xrc, key_of_freed_memory)
{
	test_cmd(free, self->r[1].fd, .handle = self->r[1].mr);
	OK(rdma(&self->ep, &self->srq[1], DAPX_OP_RDMA_WRITE, 1, 0, 100,
		&self->r[1], 0));
	EXPECT_REFUSED(1, DAPX_STATUS_REMOTE_ACCESS);
	EXPECT_EQ(0, self->r[1].mem[0]);
}

/* It is told again until it is heard, for some tenths of a second. */
TEST_F(xrc, refusal_that_is_lost_at_first)
{
	if (on_siw())
		SKIP(return, "TCP tells it again by itself");
	OK(srq_recv(&self->srq[0].srq, 1, TAKE, 100));
	OK(xrc_send(&self->ep, self->srq[0].number, 1, 0, 100));
	OK(expect_completion(&self->a.done, 1, DAPX_STATUS_SUCCESS, NULL));
	OK(expect_async(&self->r[0].conn, DAPX_ASYNC_XRC_QP_ESTABLISHED, NULL));
	OK(cable_set(&self->r[0], &self->a, false));
	OK(xrc_send(&self->ep, NO_SRQ, 2, 0, 100));
	OK(expect_async(&self->r[0].conn, DAPX_ASYNC_XRC_QP_ERROR, NULL));
	sleep_ms(2 * GLANCE_MS);
	OK(cable_set(&self->r[0], &self->a, true));
	OK(expect_completion(&self->a.done, 2, DAPX_STATUS_REMOTE_QUEUE, NULL));
}

/* What is published behind a request that is refused is flushed, in order. */
TEST_F(xrc, flushes_the_rest)
{
	unsigned int i;

	OK(srq_recv(&self->srq[0].srq, 1, TAKE, 100));
	OK(xrc_send(&self->ep, self->srq[0].number, 0, 0, 100));
	OK(xrc_send(&self->ep, NO_SRQ, 1, 0, 100));
	for (i = 2; i < 40; i++)
		OK(xrc_send(&self->ep, self->srq[0].number, i, 0, 10000));
	OK(expect_completion(&self->a.done, 0, DAPX_STATUS_SUCCESS, NULL));
	OK(expect_completion(&self->a.done, 1, DAPX_STATUS_REMOTE_QUEUE, NULL));
	for (i = 2; i < 40; i++)
		OK(expect_completion(&self->a.done, i, DAPX_STATUS_FLUSHED,
				     NULL));
	OK(evd_quiet(&self->a.done));
}

/* ---- the sender's own faults ---- */

TEST_F(xrc, memory_that_is_not_for_xrc)
{
	struct dapx_mr_create mr = {
		.pd = self->a.pd, .addr = (uintptr_t)self->a.mem,
		.length = 4096, .access = DAPX_ACCESS_LOCAL_WRITE,
	};
	struct dapx_sge sge = { .addr = (uintptr_t)self->a.mem, .length = 8 };

	ASSERT_EQ(0, _test_cmd_mr_create(self->a.fd, &mr));
	sge.mr = mr.out_mr;
	OK(post(&self->ep, self->srq[0].number, (struct dapx_send_wr) {
		.wr_id = 1, .opcode = DAPX_OP_SEND,
	}, &sge));
	OK(expect_completion(&self->a.done, 1, DAPX_STATUS_LOCAL_PROTECTION,
			     NULL));
	OK(ep_await_state(&self->ep, DAPX_EP_DISCONNECTED));
}

/* Memory that was registered before somebody thought of XRC. */
TEST_F(xrc, memory_made_for_xrc)
{
	struct dapx_mr_create from = {
		.pd = self->a.pd, .addr = (uintptr_t)self->a.mem,
		.length = 4096, .access = DAPX_ACCESS_LOCAL_WRITE,
	};
	struct dapx_mr_create to = {
		.pd = self->r[1].pd, .addr = (uintptr_t)self->r[1].mem,
		.length = 8192, .access = DAPX_ACCESS_LOCAL_WRITE |
					  DAPX_ACCESS_REMOTE_WRITE,
	};
	struct dapx_sge sge = { .addr = (uintptr_t)self->a.mem, .length = 4096 };
	struct dapx_sge into = {
		.addr = (uintptr_t)self->r[1].mem + 4096, .length = 4096,
	};
	struct dapx_recv_wr recv = { .wr_id = 3, .num_sge = 1 };
	__u8 entry[sizeof(recv) + sizeof(into)];
	int i;

	ASSERT_EQ(0, _test_cmd_mr_create(self->a.fd, &from));
	ASSERT_EQ(0, _test_cmd_mr_create(self->r[1].fd, &to));
	/* Again it has no effect. */
	for (i = 0; i < 2; i++) {
		test_cmd(mr_modify, self->a.fd, .mr = from.out_mr,
			 .flags = DAPX_MR_XRC);
		test_cmd(mr_modify, self->r[1].fd, .mr = to.out_mr,
			 .flags = DAPX_MR_XRC);
	}
	sge.mr = from.out_mr;
	into.mr = to.out_mr;
	fill(self->a.mem, 4096, 5);
	memset(self->r[1].mem, 0, 8192);
	/* By its key, which is the one that it had. */
	OK(post(&self->ep, self->srq[1].number, (struct dapx_send_wr) {
		.wr_id = 1, .opcode = DAPX_OP_RDMA_WRITE,
		.remote_addr = to.addr, .rkey = to.out_rkey,
	}, &sge));
	OK(expect_completion(&self->a.done, 1, DAPX_STATUS_SUCCESS, NULL));
	EXPECT_FALSE(memcmp(self->a.mem, self->r[1].mem, 4096));
	/* And by a receive. */
	memcpy(entry, &recv, sizeof(recv));
	memcpy(entry + sizeof(recv), &into, sizeof(into));
	OK(ring_push(&self->srq[1].srq.ring, entry, sizeof(entry)));
	OK(post(&self->ep, self->srq[1].number, (struct dapx_send_wr) {
		.wr_id = 2, .opcode = DAPX_OP_SEND,
	}, &sge));
	OK(expect_completion(&self->a.done, 2, DAPX_STATUS_SUCCESS, NULL));
	OK(expect_completion(&self->r[1].recv, 3, DAPX_STATUS_SUCCESS, NULL));
	EXPECT_FALSE(memcmp(self->a.mem, self->r[1].mem + 4096, 4096));
	/* Freed it is gone for peers, too. */
	test_cmd(free, self->r[1].fd, .handle = to.out_mr);
	OK(post(&self->ep, self->srq[1].number, (struct dapx_send_wr) {
		.wr_id = 4, .opcode = DAPX_OP_RDMA_WRITE,
		.remote_addr = to.addr, .rkey = to.out_rkey,
	}, &sge));
	OK(expect_completion(&self->a.done, 4, DAPX_STATUS_REMOTE_ACCESS, NULL));
}

TEST_F(xrc, no_queue_named)
{
	OK(xrc_send(&self->ep, 0, 1, 0, 100));
	OK(expect_completion(&self->a.done, 1, DAPX_STATUS_LOCAL_OPERATION,
			     NULL));
	OK(ep_await_state(&self->ep, DAPX_EP_DISCONNECTED));
}

TEST_F(xrc, number_too_large)
{
	OK(xrc_send(&self->ep, 1 << 24, 1, 0, 100));
	OK(expect_completion(&self->a.done, 1, DAPX_STATUS_LOCAL_OPERATION,
			     NULL));
	OK(ep_await_state(&self->ep, DAPX_EP_DISCONNECTED));
}

/* ---- ends ---- */

/* An endpoint that ends and begins anew. */
TEST_F(xrc, again_after_reset)
{
	struct dapx_ep_disconnect disconnect = {
		.ep = self->ep.handle, .flags = DAPX_DISCONNECT_ABRUPT,
	};
	struct dapx_ep_reset reset = { .ep = self->ep.handle };
	unsigned int i;
	__u32 qp_num;

	for (i = 0; i < 3; i++) {
		OK(srq_recv(&self->srq[0].srq, i, TAKE, 100));
		OK(xrc_send(&self->ep, self->srq[0].number, i, 0, 100));
		OK(expect_completion(&self->a.done, i, DAPX_STATUS_SUCCESS,
				     NULL));
		OK(expect_completion(&self->r[0].recv, i, DAPX_STATUS_SUCCESS,
				     NULL));
		OK(expect_async(&self->r[0].conn,
				DAPX_ASYNC_XRC_QP_ESTABLISHED, NULL));
		ASSERT_EQ(0, _test_cmd_ep_disconnect(self->a.fd, &disconnect));
		OK(ep_await_state(&self->ep, DAPX_EP_DISCONNECTED));
		if (on_siw())
			OK(expect_async(&self->r[0].conn,
					DAPX_ASYNC_XRC_QP_DISCONNECTED, NULL));
		ASSERT_EQ(0, _test_cmd_ep_reset(self->a.fd, &reset));
		evd_drain(&self->a.conn);
		self->ep.qp_num = reset.out_qp_num;
		OK(xrc_qp_make(&self->r[0], &qp_num));
		OK(xrc_connect(&self->ep, &self->r[0], qp_num));
	}
}

static int carries_a_message(struct ep *from, struct xrc_srq *to)
{
	if (srq_recv(&to->srq, 1, TAKE, 100) || xrc_send(from, to->number, 2, 0, 100) ||
	    expect_completion(&from->host->done, 2, DAPX_STATUS_SUCCESS, NULL) ||
	    expect_completion(&to->srq.host->recv, 1, DAPX_STATUS_SUCCESS, NULL))
		return -1;
	return 0;
}

/* By the CM also where numbers could be exchanged. */
TEST_F(xrc, by_the_cm)
{
	struct ep other;
	__u32 qp_num;

	OK(xrc_ep_create(&self->a, &other));
	OK(xrc_qp_make(&self->r[1], &qp_num));
	OK(xrc_connect_cm(&other, &self->r[1], qp_num));
	OK(carries_a_message(&other, &self->srq[2]));
	OK(expect_async(&self->r[1].conn, DAPX_ASYNC_XRC_QP_ESTABLISHED, NULL));
	/* Its end is told, too. */
	OK(ep_destroy(&other));
	OK(expect_async(&self->r[1].conn, DAPX_ASYNC_XRC_QP_DISCONNECTED, NULL));
}

/* A queue pair that its consumer stepped to INIT, as receives before a connection want it. */
TEST_F(xrc, by_the_cm_from_init)
{
	struct ep other;
	__u32 qp_num;

	if (on_siw())
		SKIP(return, "the states of iWARP's queue pairs are the CM's");
	OK(xrc_ep_create(&self->a, &other));
	OK(qp_init(&other));
	OK(xrc_qp_make(&self->r[1], &qp_num));
	OK(xrc_connect_cm(&other, &self->r[1], qp_num));
	OK(carries_a_message(&other, &self->srq[2]));
	OK(ep_destroy(&other));
}

/* The request is an id of its own, and its listener gone. */
TEST_F(xrc, by_the_cm_taken)
{
	struct dapx_cm_query query;
	struct listener listener;
	struct dapx_event event;
	struct ep other;
	__u32 qp_num;

	OK(xrc_ep_create(&self->a, &other));
	OK(xrc_qp_make(&self->r[1], &qp_num));
	OK(listener_open(&self->r[1], &listener));
	OK(ep_connect(&other, &listener));
	OK(listener_request(&listener, &event));
	test_cmd(cm_take, self->r[1].fd, .cm = event.request.cm,
		 .evd = self->r[1].done.handle);
	OK(listener_close(&listener));
	query = CM_QUERY(&self->r[1], event.request.cm);
	EXPECT_EQ(1, query.out_xrc);
	EXPECT_EQ(0, query.out_listener);
	test_cmd(xrc_qp_accept, self->r[1].fd, .xrcd = self->r[1].xrcd,
		 .qp_num = qp_num, .cm = event.request.cm);
	test_err(ENOENT, cm_query, self->r[1].fd, .cm = event.request.cm);
	EXPECT_EQ(0, users_of(&self->r[1], self->r[1].done.handle));
	OK(expect_connection(&self->a.conn, other.handle,
			     DAPX_CONNECTION_ESTABLISHED, NULL));
	OK(carries_a_message(&other, &self->srq[2]));
	OK(ep_destroy(&other));
}

/* A connection by the CM, which gives up after so many tries that found a queue not ready. */
static int connect_tries(struct ep *ep, struct host *from, struct host *host, __u8 tries,
			 __u32 *qp_num)
{
	struct dapx_xrc_qp_accept accept = { .xrcd = host->xrcd };
	struct dapx_ep_connect connect;
	struct listener listener;
	struct dapx_event event;

	if (xrc_ep_create(from, ep) || xrc_qp_make(host, qp_num) ||
	    listener_open(host, &listener))
		return -1;
	connect_usual(ep, &listener, &connect);
	connect.rnr_retry_count = tries;
	if (_test_cmd_ep_connect(from->fd, &connect) ||
	    listener_request(&listener, &event))
		return because("no request");
	accept.qp_num = *qp_num;
	accept.cm = event.request.cm;
	if (_test_cmd_xrc_qp_accept(host->fd, &accept))
		return because("DAPX_XRC_QP_ACCEPT: %m");
	return expect_connection(&from->conn, ep->handle,
				 DAPX_CONNECTION_ESTABLISHED, NULL) ||
	       listener_close(&listener) ? -1 : 0;
}

/* An end by the receiving side is an error; one by the sending side is none. */
TEST_F(xrc, which_end_is_told)
{
	enum { REFUSED, NOT_READY, OWN_FAULT, DISCONNECTED, NUM_ENDS } end;
	static const __u32 statuses[] = {
		[REFUSED] = DAPX_STATUS_REMOTE_QUEUE,
		[NOT_READY] = DAPX_STATUS_RECEIVER_NOT_READY,
		[OWN_FAULT] = DAPX_STATUS_LOCAL_PROTECTION,
	};
	struct dapx_sge nowhere = { .mr = NO_HANDLE, .length = 8 };
	struct dapx_event event;
	struct ep ep;
	__u32 qp_num;

	for (end = REFUSED; end < NUM_ENDS; end++) {
		OK(connect_tries(&ep, &self->a, &self->r[1], 2, &qp_num));
		OK(carries_a_message(&ep, &self->srq[2]));
		if (end == REFUSED)
			OK(xrc_send(&ep, NO_SRQ, 1, 0, 8));
		else if (end == NOT_READY)
			OK(xrc_send(&ep, self->srq[2].number, 1, 0, 8));
		else if (end == OWN_FAULT)
			OK(post(&ep, self->srq[2].number, (struct dapx_send_wr) {
				.wr_id = 1, .opcode = DAPX_OP_SEND,
			}, &nowhere));
		else
			test_cmd(ep_disconnect, self->a.fd, .ep = ep.handle);
		if (end != DISCONNECTED)
			OK(expect_completion(&self->a.done, 1, statuses[end], NULL));
		OK(ep_await_state(&ep, DAPX_EP_DISCONNECTED));
		OK(expect_async(&self->r[1].conn, DAPX_ASYNC_XRC_QP_ESTABLISHED, NULL));
		OK(evd_next(&self->r[1].conn, &event, PATIENCE_MS));
		EXPECT_EQ(DAPX_EVENT_ASYNC, event.type);
		EXPECT_EQ(qp_num, event.async.qp_num);
		EXPECT_EQ(end == REFUSED ? DAPX_ASYNC_XRC_QP_ERROR :
					   DAPX_ASYNC_XRC_QP_DISCONNECTED, event.async.what)
			TH_LOG("end %d", end);
		OK(ep_destroy(&ep));
		test_cmd(xrc_qp_unregister, self->r[1].fd,
			 .xrcd = self->r[1].xrcd, .qp_num = qp_num);
		evd_drain(&self->a.conn);
	}
}

/* ---- limits of queues ---- */

TEST_F(xrc, limit)
{
	struct dapx_srq_modify modify = {
		.srq = self->srq[0].srq.handle, .limit = 2,
	};
	struct dapx_srq_query query = { .srq = self->srq[0].srq.handle };
	struct dapx_event event;
	unsigned int i;

	ASSERT_EQ(0, _test_cmd_srq_query(self->r[0].fd, &query));
	EXPECT_EQ(self->srq[0].number, query.out_srq_num);
	EXPECT_EQ(64, query.out_depth);
	EXPECT_EQ(0, query.out_limit);
	EXPECT_EQ(self->r[0].xrcd, query.out_xrcd);
	EXPECT_EQ(self->r[0].recv.handle, query.out_evd);
	ASSERT_EQ(0, _test_cmd_srq_modify(self->r[0].fd, &modify));
	for (i = 0; i < 4; i++)
		OK(srq_recv(&self->srq[0].srq, i, TAKE, 100));
	for (i = 0; i < 2; i++) {
		OK(xrc_send(&self->ep, self->srq[0].number, i, 0, 100));
		OK(expect_completion(&self->r[0].recv, i, DAPX_STATUS_SUCCESS,
				     NULL));
	}
	OK(evd_quiet(&self->r[0].recv));
	OK(xrc_send(&self->ep, self->srq[0].number, 2, 0, 100));
	OK(expect_async(&self->r[0].recv, DAPX_ASYNC_SRQ_LIMIT, &event));
	EXPECT_EQ(self->srq[0].srq.handle, event.handle);
	OK(expect_completion(&self->r[0].recv, 2, DAPX_STATUS_SUCCESS, NULL));
	/* Once. */
	OK(xrc_send(&self->ep, self->srq[0].number, 3, 0, 100));
	OK(expect_completion(&self->r[0].recv, 3, DAPX_STATUS_SUCCESS, NULL));
	ASSERT_EQ(0, _test_cmd_srq_query(self->r[0].fd, &query));
	EXPECT_EQ(0, query.out_limit);
}

/* What waits in the ring is found in the new one, also by messages that arrive meanwhile. */
TEST_F(xrc, ring_of_a_queue_replaced)
{
	unsigned int n = count(100, 2000), i;
	__u64 posted = 0;

	for (i = 0; i < n; i++) {
		OK(srq_recv(&self->srq[0].srq, posted++, TAKE, 100));
		OK(srq_recv(&self->srq[0].srq, posted++, TAKE, 100));
		OK(xrc_send(&self->ep, self->srq[0].number, 2 * i, 0, 100));
		OK(xrc_send(&self->ep, self->srq[0].number, 2 * i + 1, 0, 100));
		OK(srq_resize(&self->srq[0].srq, 2 << dice() % 6));
		OK(expect_completion(&self->a.done, 2 * i, DAPX_STATUS_SUCCESS, NULL));
		OK(expect_completion(&self->a.done, 2 * i + 1, DAPX_STATUS_SUCCESS, NULL));
		OK(expect_completion(&self->r[0].recv, 2 * i, DAPX_STATUS_SUCCESS, NULL));
		OK(expect_completion(&self->r[0].recv, 2 * i + 1, DAPX_STATUS_SUCCESS, NULL));
	}
}

/* A peer that has its number must not reach another queue by it. */
TEST_F(xrc, number_not_soon_used_again)
{
	struct host *host = &self->r[0];
	struct xrc_srq first, next;
	int i;

	OK(xrc_srq_make(host, 4, &first));
	test_cmd(free, host->fd, .handle = first.srq.handle);
	for (i = 0; i < 16; i++) {
		OK(xrc_srq_make(host, 4, &next));
		EXPECT_NE(first.number, next.number);
		test_cmd(free, host->fd, .handle = next.srq.handle);
	}
}

/* Asynchronous events may go elsewhere than completions. */
TEST_F(xrc, limit_told_elsewhere)
{
	struct host *host = &self->r[0];
	struct dapx_srq_query query = {};
	struct xrc_srq srq;
	struct dapx_event event;

	OK(xrc_srq_make_with(host, 16, host->done.handle, &srq));
	query.srq = srq.srq.handle;
	ASSERT_EQ(0, _test_cmd_srq_query(host->fd, &query));
	EXPECT_EQ(host->recv.handle, query.out_evd);
	EXPECT_EQ(host->done.handle, query.out_async_evd);
	EXPECT_EQ(1, users_of(host, host->done.handle));
	test_err(EBUSY, free, host->fd, .handle = host->done.handle);
	test_cmd(srq_modify, host->fd, .srq = srq.srq.handle, .limit = 1);
	OK(srq_recv(&srq.srq, 1, TAKE, 100));
	OK(xrc_send(&self->ep, srq.number, 1, 0, 100));
	OK(expect_async(&host->done, DAPX_ASYNC_SRQ_LIMIT, &event));
	EXPECT_EQ(srq.srq.handle, event.handle);
	OK(expect_completion(&host->recv, 1, DAPX_STATUS_SUCCESS, NULL));
	OK(evd_quiet(&host->recv));
	test_cmd(free, host->fd, .handle = srq.srq.handle);
	EXPECT_EQ(0, users_of(host, host->done.handle));
}

TEST_HARNESS_MAIN
