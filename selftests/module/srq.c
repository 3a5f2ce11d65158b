// SPDX-License-Identifier: GPL-2.0
/*
 * Shared receive queues: several endpoints that take from one ring.
 */
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "harness/cm.h"
#include "harness/dice.h"
#include "harness/machine.h"
#include "harness/srq.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 300

#define PAIRS 4
#define DEPTH 16
#define TARGET (128 * 1024)

FIXTURE(srq)
{
	struct host a;
	struct host b;
	struct srq srq;			/* of b */
	struct ep ea[PAIRS];
	struct ep eb[PAIRS];
};

FIXTURE_VARIANT(srq)
{
	__u32 first_index;
};

FIXTURE_VARIANT_ADD(srq, from_zero)
{
	.first_index = 0,
};

FIXTURE_VARIANT_ADD(srq, wrapping)
{
	.first_index = 0xfffffffa,
};

static int ep_of_srq(struct host *host, const struct srq *srq, struct ep *ep)
{
	struct dapx_ep_create cmd;

	ep_usual(host, &cmd);
	cmd.srq = srq->handle;
	cmd.attr.recv_depth = 0;
	cmd.attr.max_recv_sge = 0;
	cmd.user_data = 0x5500 + dice() % 256;
	return ep_make(host, &cmd, ep);
}

FIXTURE_SETUP(srq)
{
	int i;

	OK(host_set_up(&self->a, 0));
	OK(host_set_up(&self->b, 1));
	if (!(self->b.limits.out_caps & DAPX_DEVICE_SRQ))
		SKIP(return, "%s has no SRQs", self->b.device);
	OK(set_module_parameter("initial_index", variant->first_index));
	OK(srq_make(&self->b, DEPTH, 4, &self->srq));
	OK(set_module_parameter("initial_index", 0));
	EXPECT_EQ(variant->first_index, *self->srq.ring.tail);
	EXPECT_EQ(DEPTH, self->srq.ring.depth);
	for (i = 0; i < PAIRS; i++) {
		OK(ep_create(&self->a, &self->ea[i]));
		OK(ep_of_srq(&self->b, &self->srq, &self->eb[i]));
		EXPECT_EQ(0, self->eb[i].recv.depth);
		OK(connect_cm(&self->ea[i], &self->eb[i]));
	}
}

FIXTURE_TEARDOWN(srq)
{
	set_module_parameter("initial_index", 0);
	host_close(&self->a);
	host_close(&self->b);
}

TEST_F(srq, shared)
{
	unsigned int n = count(100, 5000), i;
	struct dapx_event event;

	TH_LOG("%u messages over %u endpoints", n, PAIRS);
	for (i = 0; i < DEPTH / 2; i++)
		OK(srq_recv(&self->srq, i, TARGET + 64 * i, 64));
	for (i = 0; i < n; i++) {
		unsigned int from = dice() % PAIRS;

		memset(self->a.mem, i, 64);
		OK(ep_send(&self->ea[from], i, 0, 64));
		OK(expect_completion(&self->a.done, i, DAPX_STATUS_SUCCESS,
				     NULL));
		OK(evd_next(&self->b.recv, &event, PATIENCE_MS));
		ASSERT_EQ(DAPX_EVENT_COMPLETION, event.type);
		ASSERT_EQ(DAPX_STATUS_SUCCESS, event.completion.status);
		/* Taken in order, whoever takes. */
		ASSERT_EQ(i, event.completion.wr_id);
		EXPECT_EQ(self->eb[from].handle, event.handle);
		EXPECT_EQ(0x55, event.user_data >> 8);
		EXPECT_EQ(DAPX_COMPLETION_SRQ, event.completion.flags);
		EXPECT_EQ(self->srq.handle, event.completion.srq);
		EXPECT_EQ(DAPX_OP_RECV, event.completion.opcode);
		EXPECT_EQ(64, event.completion.byte_len);
		EXPECT_EQ((__u8)i,
			  self->b.mem[TARGET + 64 * (i % (DEPTH / 2)) + 63]);
		OK(srq_recv(&self->srq, i + DEPTH / 2,
			    TARGET + 64 * (i % (DEPTH / 2)), 64));
	}
}

TEST_F(srq, full)
{
	unsigned int posted = 0, i;
	struct dapx_event event;

	while (posted < 8 * DEPTH && !srq_recv(&self->srq, posted, TARGET, 8))
		posted++;
	EXPECT_EQ(EAGAIN, errno);
	EXPECT_LE(DEPTH, posted);
	EXPECT_GE(2 * DEPTH, posted);
	for (i = 0; i < posted; i++) {
		OK(ep_send(&self->ea[i % PAIRS], i, 0, 8));
		OK(evd_next(&self->a.done, &event, PATIENCE_MS));
		EXPECT_EQ(DAPX_STATUS_SUCCESS, event.completion.status);
		OK(expect_completion(&self->b.recv, i, DAPX_STATUS_SUCCESS,
				     NULL));
	}
	OK(evd_quiet(&self->b.recv));
	OK(srq_recv(&self->srq, 1000, TARGET, 8));
	OK(ep_send(&self->ea[0], 1000, 0, 8));
	OK(expect_completion(&self->b.recv, 1000, DAPX_STATUS_SUCCESS, NULL));
}

/* An empty SRQ: the sender waits, and goes on. */
TEST_F(srq, empty)
{
	if (on_siw())
		SKIP(return, "iWARP has no receiver-not-ready");
	OK(ep_send(&self->ea[0], 1, 0, 8));
	OK(evd_quiet(&self->a.done));
	OK(srq_recv(&self->srq, 2, TARGET, 8));
	OK(expect_completion(&self->a.done, 1, DAPX_STATUS_SUCCESS, NULL));
	OK(expect_completion(&self->b.recv, 2, DAPX_STATUS_SUCCESS, NULL));
}

/* The end of one endpoint is not the others', nor the receives'. */
TEST_F(srq, one_endpoint_goes)
{
	unsigned int i;

	for (i = 0; i < 4; i++)
		OK(srq_recv(&self->srq, i, TARGET, 8));
	OK(ep_destroy(&self->eb[0]));
	OK(expect_connection(&self->a.conn, self->ea[0].handle,
			     DAPX_CONNECTION_DISCONNECTED, NULL));
	test_cmd(ep_disconnect, self->b.fd, .ep = self->eb[1].handle,
		 .flags = DAPX_DISCONNECT_ABRUPT);
	OK(expect_connection(&self->b.conn, self->eb[1].handle,
			     DAPX_CONNECTION_DISCONNECTED, NULL));
	/* What was not taken is still for all; nothing is flushed. */
	OK(evd_quiet(&self->b.recv));
	for (i = 0; i < 4; i++) {
		OK(ep_send(&self->ea[2 + i % 2], i, 0, 8));
		OK(expect_completion(&self->a.done, i, DAPX_STATUS_SUCCESS,
				     NULL));
		OK(expect_completion(&self->b.recv, i, DAPX_STATUS_SUCCESS,
				     NULL));
	}
}

TEST_F(srq, freed_last)
{
	unsigned int i;

	OK(srq_recv(&self->srq, 1, TARGET, 8));
	test_err(EBUSY, free, self->b.fd, .handle = self->srq.handle);
	for (i = 0; i < PAIRS; i++) {
		test_err(EBUSY, free, self->b.fd, .handle = self->srq.handle);
		OK(ep_destroy(&self->eb[i]));
	}
	test_cmd(free, self->b.fd, .handle = self->srq.handle,
		 .type = DAPX_OBJECT_SRQ);
	EXPECT_TRUE(ring_flags(&self->srq.ring) & DAPX_RING_DEAD);
	test_err(ENOENT, doorbell, self->b.fd, .handle = self->srq.handle,
		 .flags = DAPX_DOORBELL_RECV);
}

/* An endpoint with an SRQ has no receives of its own. */
TEST_F(srq, no_own_receives)
{
	struct dapx_ep_query query = { .ep = self->eb[0].handle };

	test_err(EINVAL, doorbell, self->b.fd, .handle = self->eb[0].handle,
		 .flags = DAPX_DOORBELL_RECV);
	ASSERT_EQ(0, _test_cmd_ep_query(self->b.fd, &query));
	EXPECT_EQ(self->srq.handle, query.out_srq);
	EXPECT_EQ(0, query.out_attr.recv_depth);
	EXPECT_EQ(0, query.out_recv_ring.depth);
}

/* Whose keys count for a receive differs between devices, unless there is one PD. */
TEST_F(srq, one_pd)
{
	struct dapx_pd_create pd = {};
	struct ep ep;

	OK(ep_of_srq(&self->b, &self->srq, &ep));
	ASSERT_EQ(0, _test_cmd_pd_create(self->b.fd, &pd));
	test_err(EINVAL, ep_modify, self->b.fd, .ep = ep.handle,
		 .mask = DAPX_EP_MODIFY_PD, .pd = pd.out_pd);
	test_cmd(ep_modify, self->b.fd, .ep = ep.handle,
		 .mask = DAPX_EP_MODIFY_PD, .pd = self->b.pd);
	OK(ep_destroy(&ep));
}

/*
 * A faulty receive is nobody's connection's fault: the SRQ is out of service,
 * and the endpoints of others are not.
 */
TEST_F(srq, bad_receive)
{
	struct {
		struct dapx_recv_wr wr;
		struct dapx_sge sge;
	} entry = {
		.wr = { .wr_id = 1, .num_sge = 1 },
		.sge = host_sge(&self->b, TARGET, 8),
	};
	struct dapx_srq_create cmd = {
		.pd = self->b.pd, .depth = 4, .max_sge = 1, .async_evd = self->b.conn.handle,
	};
	struct dapx_event event;
	struct srq srq = { .host = &self->b };
	struct ep x, y;
	int i;

	OK(ep_create(&self->a, &x));
	OK(ep_create(&self->b, &y));
	OK(connect_cm(&x, &y));
	evd_drain(&self->b.conn);
	entry.sge.mr = NO_HANDLE;
	OK(ring_push(&self->srq.ring, &entry, sizeof(entry)));
	test_err(ENOTRECOVERABLE, doorbell, self->b.fd, .handle = self->srq.handle,
		 .flags = DAPX_DOORBELL_RECV);
	EXPECT_TRUE(ring_flags(&self->srq.ring) & DAPX_RING_DEAD);
	OK(ep_exchange(&x, &y));
	/* The event names the receive, and what is wrong with it. */
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, _test_cmd_srq_create(self->b.fd, &cmd));
		srq.handle = cmd.out_srq;
		OK(ring_map(self->b.fd, &cmd.out_ring, &srq.ring));
		OK(srq_recv(&srq, 1, TARGET, 8));
		entry.wr.wr_id = 77 + i;
		entry.wr.flags = i << 31;
		OK(ring_push(&srq.ring, &entry, sizeof(entry)));
		test_err(ENOTRECOVERABLE, doorbell, self->b.fd, .handle = srq.handle,
			 .flags = DAPX_DOORBELL_RECV);
		OK(expect_async(&self->b.conn, DAPX_ASYNC_SRQ_ERROR, &event));
		EXPECT_EQ(srq.handle, event.handle);
		EXPECT_EQ(77 + i, event.async.wr_id);
		EXPECT_EQ(i ? -EINVAL : -EACCES, event.async.error);
		ring_unmap(&srq.ring);
	}
	OK(evd_quiet(&self->b.conn));
	OK(ep_destroy(&self->eb[0]));
}

struct bell_ringer {
	pthread_t thread;
	int fd;
	__u32 srq;
};

/*
 * On the CPU of whoever frees the queue, and only when he does not want it. The ring is looked
 * at with softirqs off, so that he comes in between just when that is over.
 */
static void *rings_idly(void *arg)
{
	const struct sched_param param = {};
	struct bell_ringer *ringer = arg;
	struct dapx_doorbell bell = {
		.flags = DAPX_DOORBELL_RECV, .handle = ringer->srq,
	};

	sched_setscheduler(0, SCHED_IDLE, &param);
	_test_cmd_doorbell(ringer->fd, &bell);
	return NULL;
}

/*
 * A doorbell that is about to tell of a fault, and the end of the SRQ: once that is over, nothing
 * is told, whether the EVD ends as well or not.
 */
TEST_F(srq, freed_while_a_fault_is_told)
{
	unsigned int rounds = count(200, 2000), i, j;
	struct {
		struct dapx_recv_wr wr;
		struct dapx_sge sge;
	} entry = {
		.wr = { .wr_id = 1, .num_sge = 1 },
		.sge = host_sge(&self->b, TARGET, 8),
	};

	run_on(0);
	for (i = 0; i < rounds; i++) {
		struct bell_ringer ringer = { .fd = self->b.fd };
		struct dapx_srq_create cmd = {
			.pd = self->b.pd, .depth = 64, .max_sge = 1,
		};
		struct dapx_event event;
		bool stays = i % 2;
		struct ring ring;
		struct evd evd;

		OK(evd_make(self->b.fd, 4, 0, &evd));
		cmd.async_evd = evd.handle;
		ASSERT_EQ(0, _test_cmd_srq_create(self->b.fd, &cmd));
		OK(ring_map(self->b.fd, &cmd.out_ring, &ring));
		/* So many are taken in one go. */
		for (j = 0; j < 60; j++) {
			entry.sge.mr = j == 59 ? NO_HANDLE : self->b.mr;
			OK(ring_push(&ring, &entry, sizeof(entry)));
		}
		ringer.srq = cmd.out_srq;
		ASSERT_EQ(0, pthread_create(&ringer.thread, NULL, rings_idly, &ringer));
		while (!__atomic_load_n(ring.head, __ATOMIC_ACQUIRE))
			usleep(10);
		test_cmd(free, self->b.fd, .handle = cmd.out_srq);
		if (!stays)
			test_cmd(free, self->b.fd, .handle = evd.handle);
		/* It may have been told in time. */
		evd_poll(&evd, &event);
		ASSERT_EQ(0, pthread_join(ringer.thread, NULL));
		EXPECT_FALSE(evd_poll(&evd, &event));
		if (stays)
			test_cmd(free, self->b.fd, .handle = evd.handle);
		ring_unmap(&ring);
		ring_unmap(&evd.ring);
	}
	run_anywhere();
}

/* Each limit that was reached has its event, also if an earlier one waits for room. */
TEST_F(srq, limits_while_an_event_waits)
{
	struct dapx_srq_create cmd = { .pd = self->b.pd, .depth = 16, .max_sge = 1 };
	struct dapx_srq_query query = {};
	struct dapx_event event;
	struct evd small;
	struct ep ea, eb;
	struct srq srq = { .host = &self->b };
	__u64 i;

	OK(evd_make(self->b.fd, 1, 0, &small));
	cmd.async_evd = small.handle;
	ASSERT_EQ(0, _test_cmd_srq_create(self->b.fd, &cmd));
	srq.handle = cmd.out_srq;
	query.srq = cmd.out_srq;
	OK(ring_map(self->b.fd, &cmd.out_ring, &srq.ring));
	OK(ep_create(&self->a, &ea));
	OK(ep_of_srq(&self->b, &srq, &eb));
	OK(connect_cm(&ea, &eb));
	/* The first two events find no room. */
	test_cmd(evd_post, self->b.fd, .evd = small.handle);
	for (i = 0; i < 4; i++)
		OK(srq_recv(&srq, i, TARGET, 64));
	for (i = 0; i < 3; i++) {
		test_cmd(srq_modify, self->b.fd, .srq = srq.handle, .limit = 4 - i);
		OK(ep_send(&ea, i, 0, 64));
		OK(expect_completion(&self->b.recv, i, DAPX_STATUS_SUCCESS, NULL));
		ASSERT_EQ(0, _test_cmd_srq_query(self->b.fd, &query));
		EXPECT_EQ(0, query.out_limit);
	}
	EXPECT_TRUE(ring_flags(&small.ring) & DAPX_RING_BACKLOG);
	OK(evd_next(&small, &event, PATIENCE_MS));
	EXPECT_EQ(DAPX_EVENT_SOFTWARE, event.type);
	for (i = 0; i < 3; i++) {
		OK(expect_async(&small, DAPX_ASYNC_SRQ_LIMIT, &event));
		EXPECT_EQ(srq.handle, event.handle);
	}
	OK(evd_quiet(&small));
	EXPECT_FALSE(ring_flags(&small.ring) & DAPX_RING_BACKLOG);
}

/* When fewer receives are left than the limit, once. */
TEST_F(srq, limit)
{
	struct dapx_srq_create cmd = {
		.pd = self->b.pd, .depth = 16, .max_sge = 1, .async_evd = self->b.conn.handle,
	};
	struct dapx_srq_query query = {};
	struct dapx_event event;
	struct ep ea, eb;
	struct srq srq = { .host = &self->b };
	__u64 i;

	ASSERT_EQ(0, _test_cmd_srq_create(self->b.fd, &cmd));
	srq.handle = cmd.out_srq;
	query.srq = cmd.out_srq;
	OK(ring_map(self->b.fd, &cmd.out_ring, &srq.ring));
	OK(ep_create(&self->a, &ea));
	OK(ep_of_srq(&self->b, &srq, &eb));
	OK(connect_cm(&ea, &eb));
	evd_drain(&self->b.conn);
	for (i = 0; i < 4; i++)
		OK(srq_recv(&srq, i, TARGET, 64));
	test_cmd(srq_modify, self->b.fd, .srq = srq.handle, .limit = 2);
	for (i = 0; i < 2; i++) {
		OK(ep_send(&ea, i, 0, 64));
		OK(expect_completion(&self->b.recv, i, DAPX_STATUS_SUCCESS, NULL));
	}
	OK(evd_quiet(&self->b.conn));
	OK(ep_send(&ea, 2, 0, 64));
	OK(expect_async(&self->b.conn, DAPX_ASYNC_SRQ_LIMIT, &event));
	EXPECT_EQ(srq.handle, event.handle);
	ASSERT_EQ(0, _test_cmd_srq_query(self->b.fd, &query));
	EXPECT_EQ(0, query.out_limit);
	OK(ep_send(&ea, 3, 0, 64));
	OK(expect_completion(&self->b.recv, 2, DAPX_STATUS_SUCCESS, NULL));
	OK(expect_completion(&self->b.recv, 3, DAPX_STATUS_SUCCESS, NULL));
	OK(evd_quiet(&self->b.conn));
}

/* Posts @count receives from number @from on. */
static int post_receives(struct srq *srq, __u64 from, unsigned int count)
{
	__u64 i;

	for (i = from; i < from + count; i++)
		if (srq_recv(srq, i, TARGET, 8))
			return -1;
	return 0;
}

TEST_F(srq, larger_and_smaller)
{
	struct dapx_srq_query query = { .srq = self->srq.handle };
	struct ring old = self->srq.ring;
	struct dapx_srq_resize cmd;
	unsigned int posted, i;

	/* The device has as many as it takes, and the ring is full: not less than that. */
	OK(post_receives(&self->srq, 0, DEPTH));
	test_cmd(doorbell, self->b.fd, .handle = self->srq.handle, .flags = DAPX_DOORBELL_RECV);
	for (posted = DEPTH; posted < 2 * DEPTH; posted++)
		OK(srq_recv(&self->srq, posted, TARGET, 8));
	test_err(EBUSY, srq_resize, self->b.fd, .srq = self->srq.handle, .depth = DEPTH / 2);
	EXPECT_EQ(0, ring_flags(&old) & DAPX_RING_DEAD);

	cmd = test_cmd(srq_resize, self->b.fd, .srq = self->srq.handle, .depth = 3 * DEPTH);
	OK(ring_map(self->b.fd, &cmd.out_ring, &self->srq.ring));
	EXPECT_TRUE(ring_flags(&old) & DAPX_RING_DEAD);
	EXPECT_EQ(4 * DEPTH, self->srq.ring.depth);
	EXPECT_EQ(*old.head, *self->srq.ring.head);
	EXPECT_EQ(*old.tail, *self->srq.ring.tail);
	ring_unmap(&old);
	ASSERT_EQ(0, _test_cmd_srq_query(self->b.fd, &query));
	EXPECT_EQ(4 * DEPTH, query.out_depth);
	OK(post_receives(&self->srq, posted, 3 * DEPTH));
	posted += 3 * DEPTH;
	EXPECT_EQ(-1, srq_recv(&self->srq, posted, TARGET, 8));
	EXPECT_EQ(EAGAIN, errno);
	for (i = 0; i < posted; i++) {
		OK(ep_send(&self->ea[i % PAIRS], i, 0, 8));
		OK(expect_completion(&self->a.done, i, DAPX_STATUS_SUCCESS, NULL));
		OK(expect_completion(&self->b.recv, i, DAPX_STATUS_SUCCESS, NULL));
	}

	/* Smaller, to just what is needed: the device has taken the rest. */
	OK(post_receives(&self->srq, 0, DEPTH + 2));
	OK(srq_resize(&self->srq, 2));
	EXPECT_EQ(2, self->srq.ring.depth);
	for (i = 0; i < DEPTH + 2; i++) {
		OK(ep_send(&self->ea[i % PAIRS], i, 0, 8));
		OK(expect_completion(&self->a.done, i, DAPX_STATUS_SUCCESS, NULL));
		OK(expect_completion(&self->b.recv, i, DAPX_STATUS_SUCCESS, NULL));
		OK(srq_recv(&self->srq, DEPTH + 2 + i, TARGET, 8));
	}
}

/* Receives are taken, and completed, while the ring is replaced. */
TEST_F(srq, resized_under_messages)
{
	unsigned int rounds = count(50, 2000), round, i;
	__u64 sent = 0, posted = 0, got = 0;
	struct dapx_event event;

	for (round = 0; round < rounds; round++) {
		while (posted - got < DEPTH)
			OK(srq_recv(&self->srq, posted++, TARGET, 8));
		while (sent < posted) {
			OK(ep_send(&self->ea[sent % PAIRS], sent, 0, 8));
			sent++;
		}
		OK(srq_resize(&self->srq, DEPTH << dice() % 4));
		for (i = 0; i < DEPTH / 2; i++) {
			OK(evd_next(&self->b.recv, &event, PATIENCE_MS));
			ASSERT_EQ(DAPX_STATUS_SUCCESS, event.completion.status);
			got++;
			OK(evd_next(&self->a.done, &event, PATIENCE_MS));
			ASSERT_EQ(DAPX_STATUS_SUCCESS, event.completion.status);
		}
	}
	for (; got < posted; got++)
		OK(evd_next(&self->b.recv, &event, PATIENCE_MS));
	OK(evd_quiet(&self->b.recv));
}

/* More than the device has ever had: what waits in the ring counts. */
TEST_F(srq, limit_beyond_the_device)
{
	struct dapx_srq_create cmd = {
		.pd = self->b.pd, .depth = 4, .max_sge = 1, .async_evd = self->b.conn.handle,
	};
	struct srq srq = { .host = &self->b };
	struct ep ea, eb;
	__u64 i;

	ASSERT_EQ(0, _test_cmd_srq_create(self->b.fd, &cmd));
	srq.handle = cmd.out_srq;
	OK(ring_map(self->b.fd, &cmd.out_ring, &srq.ring));
	test_err(EINVAL, srq_modify, self->b.fd, .srq = srq.handle, .limit = 8);
	OK(srq_resize(&srq, 16));
	OK(ep_create(&self->a, &ea));
	OK(ep_of_srq(&self->b, &srq, &eb));
	OK(connect_cm(&ea, &eb));
	evd_drain(&self->b.conn);
	OK(post_receives(&srq, 0, 10));
	test_cmd(srq_modify, self->b.fd, .srq = srq.handle, .limit = 8);
	/* Not so small that it could not be reached. */
	test_err(EBUSY, srq_resize, self->b.fd, .srq = srq.handle, .depth = 4);
	for (i = 0; i < 2; i++) {
		OK(ep_send(&ea, i, 0, 8));
		OK(expect_completion(&self->b.recv, i, DAPX_STATUS_SUCCESS, NULL));
	}
	OK(evd_quiet(&self->b.conn));
	OK(ep_send(&ea, 2, 0, 8));
	OK(expect_async(&self->b.conn, DAPX_ASYNC_SRQ_LIMIT, NULL));
	OK(expect_completion(&self->b.recv, 2, DAPX_STATUS_SUCCESS, NULL));
	OK(ep_send(&ea, 3, 0, 8));
	OK(expect_completion(&self->b.recv, 3, DAPX_STATUS_SUCCESS, NULL));
	OK(evd_quiet(&self->b.conn));
}

TEST_F(srq, impossible_indices)
{
	struct ep x, y;

	OK(ep_create(&self->a, &x));
	OK(ep_create(&self->b, &y));
	OK(connect_cm(&x, &y));
	*self->srq.ring.tail += DEPTH + 1;
	test_err(EBADMSG, doorbell, self->b.fd, .handle = self->srq.handle,
		 .flags = DAPX_DOORBELL_RECV);
	EXPECT_TRUE(ring_flags(&self->srq.ring) & DAPX_RING_DEAD);
	OK(ep_exchange(&x, &y));
}

TEST_HARNESS_MAIN
