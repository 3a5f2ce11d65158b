// SPDX-License-Identifier: GPL-2.0
/*
 * Endpoints from their creation to their end: sizes, connecting by either way,
 * disconnecting by either way, reset, and what becomes of their work.
 */
#include <infiniband/verbs.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "harness/cm.h"
#include "harness/dice.h"
#include "harness/fabric.h"
#include "harness/machine.h"
#include "harness/qp.h"
#include "harness/srq.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 600

#define TARGET (128 * 1024)

FIXTURE(ep)
{
	struct host a;
	struct host b;
	struct ep ea;
	struct ep eb;
};

FIXTURE_SETUP(ep)
{
	OK(host_set_up(&self->a, 0));
	OK(host_set_up(&self->b, 1));
	OK(ep_create(&self->a, &self->ea));
	OK(ep_create(&self->b, &self->eb));
}

FIXTURE_TEARDOWN(ep)
{
	host_close(&self->a);
	host_close(&self->b);
}

/* iWARP. */
#define NO_QP_NUMBERS							\
	(!(self->a.limits.out_caps & DAPX_DEVICE_QP_EXCHANGE))
#define QUERY(ep_)							\
	test_cmd(ep_query, (ep_)->host->fd, .ep = (ep_)->handle)
#define DISCONNECT(ep_, flags_)						\
	test_cmd(ep_disconnect, (ep_)->host->fd, .ep = (ep_)->handle,	\
		 .flags = (flags_))

/* ---- what it is made of ---- */

TEST_F(ep, sizes)
{
	struct dapx_ep_create cmd;
	struct dapx_ep_query query;
	struct ep ep;

	ep_usual(&self->a, &cmd);
	cmd.attr.send_depth = 5;
	cmd.attr.recv_depth = 3;
	cmd.attr.max_send_sge = 3;
	cmd.attr.max_recv_sge = 1;
	cmd.attr.max_inline = 0;
	cmd.attr.max_rd_atomic = 1;
	cmd.attr.max_dest_rd_atomic = 2;
	cmd.user_data = 0x123456789;
	OK(ep_make(&self->a, &cmd, &ep));
	query = QUERY(&ep);
	EXPECT_EQ(8, query.out_attr.send_depth);
	EXPECT_EQ(4, query.out_attr.recv_depth);
	EXPECT_EQ(8, ep.send.depth);
	EXPECT_EQ(4, ep.recv.depth);
	EXPECT_LE(3, query.out_attr.max_send_sge);
	EXPECT_LE(1, query.out_attr.max_recv_sge);
	EXPECT_EQ(1, query.out_attr.max_rd_atomic);
	EXPECT_EQ(2, query.out_attr.max_dest_rd_atomic);
	EXPECT_LE(sizeof(struct dapx_send_wr) + 3 * sizeof(struct dapx_sge),
		  ep.send.stride);
	EXPECT_LE(sizeof(struct dapx_recv_wr) + sizeof(struct dapx_sge),
		  ep.recv.stride);

	/* Each limit itself is allowed. */
	ep_usual(&self->a, &cmd);
	cmd.attr.max_send_sge = self->a.limits.out_max_send_sge;
	cmd.attr.max_recv_sge = self->a.limits.out_max_recv_sge;
	cmd.attr.max_inline = self->a.limits.out_max_inline;
	cmd.attr.max_rd_atomic = self->a.limits.out_max_rd_atomic;
	cmd.attr.max_dest_rd_atomic = self->a.limits.out_max_dest_rd_atomic;
	cmd.attr.send_depth = 16;
	cmd.attr.recv_depth = 16;
	OK(ep_make(&self->a, &cmd, &ep));
	EXPECT_LE(sizeof(struct dapx_send_wr) + self->a.limits.out_max_inline,
		  ep.send.stride);
}

TEST_F(ep, deepest)
{
	struct dapx_ep_create cmd;
	struct ep ep;

	ep_usual(&self->a, &cmd);
	cmd.attr.max_send_sge = 1;
	cmd.attr.max_recv_sge = 1;
	cmd.attr.max_inline = 0;
	cmd.attr.send_depth = self->a.limits.out_max_send_depth;
	cmd.attr.recv_depth = self->a.limits.out_max_recv_depth;
	OK(ep_make(&self->a, &cmd, &ep));
	EXPECT_LE(self->a.limits.out_max_send_depth, ep.send.depth);
	EXPECT_LE(self->a.limits.out_max_recv_depth, ep.recv.depth);
	OK(ep_destroy(&ep));
}

/* Until it is connected, receives wait in the ring, and later at the device. */
TEST_F(ep, posted_and_not_completed)
{
	OK(ep_recv(&self->ea, 1, TARGET, 8));
	OK(ep_recv(&self->ea, 2, TARGET, 8));
	EXPECT_EQ(2, QUERY(&self->ea).out_receives);
	OK(connect_cm(&self->ea, &self->eb));
	EXPECT_EQ(2, QUERY(&self->ea).out_receives);
	EXPECT_EQ(0, QUERY(&self->eb).out_requests);
	OK(ep_send(&self->eb, 3, 0, 8));
	OK(expect_completion(&self->a.recv, 1, DAPX_STATUS_SUCCESS, NULL));
	OK(expect_completion(&self->b.done, 3, DAPX_STATUS_SUCCESS, NULL));
	EXPECT_EQ(1, QUERY(&self->ea).out_receives);
	EXPECT_EQ(0, QUERY(&self->eb).out_requests);
}

/* Nobody receives it: it waits at the device. */
TEST_F(ep, request_not_completed)
{
	if (on_siw())
		SKIP(return, "a request cannot be held up on iWARP");
	OK(connect_cm(&self->ea, &self->eb));
	OK(ep_send(&self->ea, 1, 0, 8));
	EXPECT_EQ(1, QUERY(&self->ea).out_requests);
}

TEST_F(ep, fresh)
{
	struct dapx_ep_create cmd;
	struct dapx_ep_query query;
	struct ep ep;

	ep_usual(&self->a, &cmd);
	cmd.user_data = 0x123456789;
	OK(ep_make(&self->a, &cmd, &ep));
	query = QUERY(&ep);
	EXPECT_EQ(DAPX_EP_UNCONNECTED, query.out_state);
	EXPECT_EQ(DAPX_EP_UNCONNECTED, ep_shown_state(&ep));
	EXPECT_EQ(self->a.pd, query.out_pd);
	EXPECT_EQ(0, query.out_srq);
	EXPECT_EQ(self->a.done.handle, query.out_request_evd);
	EXPECT_EQ(self->a.recv.handle, query.out_recv_evd);
	EXPECT_EQ(self->a.conn.handle, query.out_connect_evd);
	EXPECT_EQ(0, query.out_cm);
	EXPECT_EQ(0x123456789, query.out_user_data);
	EXPECT_EQ(cmd.out_qp_num, query.out_qp_num);
	EXPECT_EQ(0, query.out_remote_qp_num);
	EXPECT_EQ(0, query.out_requests);
	EXPECT_EQ(0, query.out_receives);
	EXPECT_EQ(0, query.out_private_data_len);
	EXPECT_EQ(0, query.out_local.ss_family);
	EXPECT_EQ(0, query.out_remote.ss_family);
	EXPECT_EQ(cmd.out_state_off, query.out_state_off);
	EXPECT_EQ(0, memcmp(&cmd.out_send_ring, &query.out_send_ring,
			    sizeof(cmd.out_send_ring)));
	EXPECT_EQ(0, memcmp(&cmd.out_recv_ring, &query.out_recv_ring,
			    sizeof(cmd.out_recv_ring)));
}

TEST_F(ep, without_receives)
{
	struct dapx_ep_create cmd;
	struct ep ep;

	ep_usual(&self->a, &cmd);
	cmd.attr.recv_depth = 0;
	cmd.attr.max_recv_sge = 0;
	cmd.recv_evd = 0;
	OK(ep_make(&self->a, &cmd, &ep));
	EXPECT_EQ(0, cmd.out_recv_ring.depth);
	EXPECT_EQ(0, QUERY(&ep).out_recv_evd);
	test_err(EINVAL, doorbell, self->a.fd, .handle = ep.handle,
		 .flags = DAPX_DOORBELL_RECV);
	OK(connect_cm(&ep, &self->eb));
	OK(ep_recv(&self->eb, 1, TARGET, 8));
	OK(ep_send(&ep, 2, 0, 8));
	OK(expect_completion(&self->a.done, 2, DAPX_STATUS_SUCCESS, NULL));
	OK(expect_completion(&self->b.recv, 1, DAPX_STATUS_SUCCESS, NULL));
}

/* One EVD may be all three. */
TEST_F(ep, one_evd)
{
	struct dapx_ep_create cmd;
	struct dapx_event event;
	struct ep ep;
	int i;

	ep_usual(&self->a, &cmd);
	cmd.request_evd = self->a.conn.handle;
	cmd.recv_evd = self->a.conn.handle;
	OK(ep_make(&self->a, &cmd, &ep));
	EXPECT_EQ(4, users_of(&self->a, self->a.conn.handle));
	OK(connect_cm(&ep, &self->eb));
	OK(ep_recv(&ep, 1, TARGET, 8));
	OK(ep_recv(&self->eb, 2, TARGET, 8));
	OK(ep_send(&self->eb, 3, 0, 8));
	OK(ep_send(&ep, 4, 0, 8));
	for (i = 0; i < 2; i++) {
		OK(evd_next(&self->a.conn, &event, PATIENCE_MS));
		EXPECT_EQ(DAPX_EVENT_COMPLETION, event.type);
		EXPECT_EQ(event.completion.opcode == DAPX_OP_RECV ? 1 : 4,
			  event.completion.wr_id);
	}
	OK(ep_destroy(&ep));
	EXPECT_EQ(1, users_of(&self->a, self->a.conn.handle));
}

TEST_F(ep, modify)
{
	struct dapx_ep_query query;
	struct dapx_event event;
	struct evd request, recv, connect;
	__u32 pd, mr;

	pd = test_cmd(pd_create, self->a.fd, 0).out_pd;
	mr = test_cmd(mr_create, self->a.fd, .pd = pd, .length = HOST_MEMORY,
		      .addr = (uintptr_t)self->a.mem,
		      .access = DAPX_ACCESS_LOCAL_WRITE).out_mr;
	OK(evd_make(self->a.fd, 8, 0, &request));
	OK(evd_make(self->a.fd, 8, 0, &recv));
	OK(evd_make(self->a.fd, 8, 0, &connect));
	test_cmd(ep_modify, self->a.fd, .ep = self->ea.handle,
		 .mask = DAPX_EP_MODIFY_PD | DAPX_EP_MODIFY_REQUEST_EVD |
			 DAPX_EP_MODIFY_RECV_EVD | DAPX_EP_MODIFY_CONNECT_EVD |
			 DAPX_EP_MODIFY_RD_ATOMIC | DAPX_EP_MODIFY_USER_DATA,
		 .pd = pd, .request_evd = request.handle,
		 .recv_evd = recv.handle, .connect_evd = connect.handle,
		 .max_rd_atomic = 1, .max_dest_rd_atomic = 3,
		 .user_data = 0xfeed);
	query = QUERY(&self->ea);
	EXPECT_EQ(pd, query.out_pd);
	EXPECT_EQ(request.handle, query.out_request_evd);
	EXPECT_EQ(recv.handle, query.out_recv_evd);
	EXPECT_EQ(connect.handle, query.out_connect_evd);
	EXPECT_EQ(1, query.out_attr.max_rd_atomic);
	EXPECT_EQ(3, query.out_attr.max_dest_rd_atomic);
	EXPECT_EQ(0xfeed, query.out_user_data);
	/* The old ones are free. */
	test_cmd(free, self->a.fd, .handle = self->a.done.handle);
	test_cmd(free, self->a.fd, .handle = self->a.recv.handle);
	test_cmd(free, self->a.fd, .handle = self->a.conn.handle);
	test_err(EBUSY, free, self->a.fd, .handle = request.handle);
	test_err(EBUSY, free, self->a.fd, .handle = recv.handle);
	test_err(EBUSY, free, self->a.fd, .handle = connect.handle);
	EXPECT_EQ(2, users_of(&self->a, pd));
	EXPECT_EQ(1, users_of(&self->a, self->a.pd));

	/* And the new ones serve. */
	self->a.done = request;
	self->a.recv = recv;
	self->a.conn = connect;
	self->a.mr = mr;
	OK(connect_cm(&self->ea, &self->eb));
	OK(ep_recv(&self->eb, 2, TARGET, 8));
	OK(ep_send(&self->ea, 1, 0, 8));
	OK(expect_completion(&request, 1, DAPX_STATUS_SUCCESS, &event));
	EXPECT_EQ(0xfeed, event.user_data);
}

/* An endpoint whose @n receives fail as soon as they are rung for: n events in @evd. */
static int failing_receives(struct host *host, const struct evd *evd, __u32 n, struct ep *ep)
{
	struct dapx_recv_wr wr = { .num_sge = 1 };
	struct dapx_sge sge = host_sge(host, TARGET, 8);
	struct dapx_ep_create cmd;

	sge.mr = NO_HANDLE;
	ep_usual(host, &cmd);
	cmd.recv_evd = evd->handle;
	cmd.attr.recv_depth = n;
	if (ep_make(host, &cmd, ep) || qp_init(ep))
		return -1;
	for (; wr.wr_id < n; wr.wr_id++)
		if (ep_push_recv(ep, &wr, &sge))
			return -1;
	return ring_bell(host->fd, ep->handle, DAPX_DOORBELL_RECV, &ep->recv);
}

/* Events that wait for room keep the endpoint at their EVD. */
TEST_F(ep, modify_recv_evd_with_waiting_events)
{
	struct evd small, other;
	struct dapx_event event;
	struct ep ep;
	__u64 i;

	if (on_siw())
		SKIP(return, "%s has no exchange of QP numbers", self->a.device);
	OK(evd_make(self->a.fd, 1, 0, &small));
	OK(evd_make(self->a.fd, 8, 0, &other));
	/* One event fits, two wait. */
	OK(failing_receives(&self->a, &small, 3, &ep));
	EXPECT_TRUE(ring_flags(&small.ring) & DAPX_RING_BACKLOG);
	test_err(EBADFD, ep_modify, self->a.fd, .ep = ep.handle,
		 .mask = DAPX_EP_MODIFY_RECV_EVD, .recv_evd = other.handle);
	for (i = 0; i < 3; i++) {
		OK(evd_next(&small, &event, PATIENCE_MS));
		EXPECT_EQ(i, event.completion.wr_id);
	}
	test_cmd(ep_modify, self->a.fd, .ep = ep.handle,
		 .mask = DAPX_EP_MODIFY_RECV_EVD, .recv_evd = other.handle);
	test_cmd(free, self->a.fd, .handle = small.handle);
	OK(ep_destroy(&ep));
	test_cmd(free, self->a.fd, .handle = other.handle);
}

/* How long it takes to leave one EVD for the other, and come back: the least of several. */
static __u64 time_to_change(const struct ep *ep, const struct evd *evd, const struct evd *other)
{
	struct dapx_ep_modify away = {
		.ep = ep->handle, .mask = DAPX_EP_MODIFY_CONNECT_EVD, .connect_evd = other->handle,
	}, back = away;
	__u64 least = UINT64_MAX, start, took;
	int i;

	back.connect_evd = evd->handle;
	for (i = 0; i < 50; i++) {
		start = now_ns();
		if (_test_cmd_ep_modify(ep->host->fd, &away) ||
		    _test_cmd_ep_modify(ep->host->fd, &back))
			return UINT64_MAX;
		took = now_ns() - start;
		if (took < least)
			least = took;
	}
	return least;
}

/* What waits in an EVD is nothing to those who have no event there. */
TEST_F(ep, modify_connect_evd_past_events_of_others)
{
	const __u32 depth = 8192;
	struct evd small, other;
	__u64 before, after;
	struct ep ep;

	if (on_siw())
		SKIP(return, "%s has no exchange of QP numbers", self->a.device);
	OK(evd_make(self->a.fd, 1, 0, &small));
	OK(evd_make(self->a.fd, 1, 0, &other));
	before = time_to_change(&self->ea, &small, &other);
	ASSERT_NE(UINT64_MAX, before);

	OK(failing_receives(&self->a, &small, depth, &ep));
	EXPECT_TRUE(ring_flags(&small.ring) & DAPX_RING_BACKLOG);
	after = time_to_change(&self->ea, &small, &other);
	EXPECT_GT(3 * before, after)
		TH_LOG("%llu ns, %llu ns with %u events of another endpoint", before, after,
		       depth - 1);
	OK(ep_destroy(&ep));
}

/* Once receives were taken with the keys of one PD, it stays. */
TEST_F(ep, modify_pd_too_late)
{
	__u32 pd = test_cmd(pd_create, self->a.fd, 0).out_pd;

	OK(ep_recv(&self->ea, 1, TARGET, 8));
	test_cmd(doorbell, self->a.fd, .handle = self->ea.handle,
		 .flags = DAPX_DOORBELL_RECV);
	test_err(EBADFD, ep_modify, self->a.fd, .ep = self->ea.handle,
		 .mask = DAPX_EP_MODIFY_PD, .pd = pd);
	EXPECT_EQ(self->a.pd, QUERY(&self->ea).out_pd);
}

/* ---- other sizes ---- */

TEST_F(ep, other_sizes)
{
	struct dapx_ep_attr attr = self->ea.attr;
	__u32 qp_num = self->ea.qp_num, i;
	struct dapx_ep_query query;

	attr.send_depth = 2 * EP_DEPTH - 1;
	attr.recv_depth = 4 * EP_DEPTH;
	attr.max_inline = 2 * EP_INLINE;
	attr.max_send_sge = 2;
	test_cmd(ep_resize, self->a.fd, .ep = self->ea.handle, .attr = attr);
	EXPECT_TRUE(ring_flags(&self->ea.send) & DAPX_RING_DEAD);
	EXPECT_TRUE(ring_flags(&self->ea.recv) & DAPX_RING_DEAD);
	ep_forget(&self->ea);
	OK(ep_adopt(&self->a, self->ea.handle, &self->ea));
	EXPECT_EQ(2 * EP_DEPTH, self->ea.send.depth);
	EXPECT_EQ(4 * EP_DEPTH, self->ea.recv.depth);
	EXPECT_NE(qp_num, self->ea.qp_num);
	query = QUERY(&self->ea);
	EXPECT_EQ(2 * EP_DEPTH, query.out_attr.send_depth);
	EXPECT_EQ(4 * EP_DEPTH, query.out_attr.recv_depth);
	EXPECT_EQ(2 * EP_INLINE, query.out_attr.max_inline);
	EXPECT_EQ(2, query.out_attr.max_send_sge);
	EXPECT_EQ(self->ea.qp_num, query.out_qp_num);
	EXPECT_EQ(DAPX_EP_UNCONNECTED, ep_shown_state(&self->ea));

	OK(connect_cm(&self->ea, &self->eb));
	EXPECT_EQ(DAPX_EP_CONNECTED, ep_shown_state(&self->ea));
	for (i = 0; i < 4 * EP_DEPTH; i++)
		OK(ep_recv(&self->ea, i, TARGET, 8));
	for (i = 0; i < 4 * EP_DEPTH; i++) {
		OK(ep_send(&self->eb, i, 0, 8));
		OK(expect_completion(&self->b.done, i, DAPX_STATUS_SUCCESS, NULL));
		OK(expect_completion(&self->a.recv, i, DAPX_STATUS_SUCCESS, NULL));
	}
	OK(ep_exchange(&self->ea, &self->eb));
}

/* From a ring of its own to an SRQ, and back: with receives, and without any. */
TEST_F(ep, other_sizes_and_srq)
{
	struct dapx_ep_attr attr = self->ea.attr;
	struct srq srq;

	if (!(self->a.limits.out_caps & DAPX_DEVICE_SRQ))
		SKIP(return, "%s has no SRQs", self->a.device);
	OK(srq_make(&self->a, 8, 1, &srq));
	attr.recv_depth = 0;
	OK(ep_resize(&self->ea, &attr, srq.handle));
	EXPECT_EQ(0, self->ea.recv.depth);
	EXPECT_EQ(srq.handle, QUERY(&self->ea).out_srq);
	test_err(EBUSY, free, self->a.fd, .handle = srq.handle);
	test_err(EINVAL, doorbell, self->a.fd, .handle = self->ea.handle,
		 .flags = DAPX_DOORBELL_RECV);
	OK(ep_resize(&self->ea, &attr, 0));
	EXPECT_EQ(0, QUERY(&self->ea).out_srq);
	OK(ep_resize(&self->ea, &self->eb.attr, 0));
	EXPECT_EQ(EP_DEPTH, self->ea.recv.depth);
	attr.recv_depth = 0;
	OK(ep_resize(&self->ea, &attr, srq.handle));

	OK(connect_cm(&self->ea, &self->eb));
	OK(srq_recv(&srq, 5, TARGET, 8));
	OK(ep_send(&self->eb, 6, 0, 8));
	OK(expect_completion(&self->a.recv, 5, DAPX_STATUS_SUCCESS, NULL));
	OK(ep_destroy(&self->ea));
	test_cmd(free, self->a.fd, .handle = srq.handle);
}

TEST_F(ep, other_sizes_and_solicited)
{
	struct dapx_ep_attr attr = self->ea.attr;

	if (!(self->a.limits.out_caps & DAPX_DEVICE_SOLICITED))
		SKIP(return, "%s does not tell solicited messages", self->a.device);
	attr.flags = DAPX_EP_SOLICITED;
	OK(ep_resize(&self->ea, &attr, 0));
	EXPECT_TRUE(ring_flags(&self->a.recv.ring) & DAPX_RING_BACKLOG);
	attr.flags = 0;
	OK(ep_resize(&self->ea, &attr, 0));
	EXPECT_FALSE(ring_flags(&self->a.recv.ring) & DAPX_RING_BACKLOG);
	OK(connect_cm(&self->ea, &self->eb));
	OK(ep_exchange(&self->ea, &self->eb));
}

/* What was posted is not lost: then the rings stay as they are. */
TEST_F(ep, other_sizes_too_late)
{
	struct dapx_ep_attr attr = self->ea.attr;

	attr.send_depth = 2 * EP_DEPTH;
	OK(ep_recv(&self->ea, 1, TARGET, 8));
	EXPECT_EQ(-1, ep_resize(&self->ea, &attr, 0));
	EXPECT_EQ(EBADFD, errno);
	OK(ep_recv(&self->eb, 2, TARGET, 8));
	OK(connect_cm(&self->ea, &self->eb));
	EXPECT_EQ(EP_DEPTH, QUERY(&self->ea).out_attr.send_depth);
	OK(ep_send(&self->eb, 3, 0, 8));
	OK(expect_completion(&self->a.recv, 1, DAPX_STATUS_SUCCESS, NULL));
}

TEST_F(ep, other_sizes_after_init)
{
	if (NO_QP_NUMBERS)
		SKIP(return, "iWARP has no exchange of QP numbers");
	OK(qp_init(&self->ea));
	EXPECT_EQ(-1, ep_resize(&self->ea, &self->ea.attr, 0));
	EXPECT_EQ(EBADFD, errno);
}

TEST_F(ep, other_sizes_without_recv_evd)
{
	struct dapx_ep_create cmd;
	struct ep ep;

	ep_usual(&self->a, &cmd);
	cmd.recv_evd = 0;
	cmd.attr.recv_depth = 0;
	OK(ep_make(&self->a, &cmd, &ep));
	EXPECT_EQ(-1, ep_resize(&ep, &self->ea.attr, 0));
	EXPECT_EQ(EINVAL, errno);
	test_cmd(ep_modify, self->a.fd, .ep = ep.handle, .mask = DAPX_EP_MODIFY_RECV_EVD,
		 .recv_evd = self->a.recv.handle);
	OK(ep_resize(&ep, &self->ea.attr, 0));
	OK(connect_cm(&ep, &self->eb));
	OK(ep_exchange(&ep, &self->eb));
}

/* ---- connecting ---- */

static bool same_addr(const struct __kernel_sockaddr_storage *addr,
		      const char *ip)
{
	struct __kernel_sockaddr_storage wanted;

	set_addr(&wanted, ip, get_port(addr));
	return !memcmp(addr, &wanted, 8);
}

TEST_F(ep, connected_by_cm)
{
	struct dapx_ep_query qa, qb;
	struct listener listener;
	struct dapx_event event;

	OK(listener_open(&self->b, &listener));
	OK(ep_connect(&self->ea, &listener));
	OK(listener_request(&listener, &event));
	EXPECT_EQ(0, event.request.ep);
	EXPECT_EQ(DAPX_EP_ACTIVE_PENDING, ep_state(&self->ea));
	EXPECT_EQ(DAPX_EP_ACTIVE_PENDING, ep_shown_state(&self->ea));
	EXPECT_EQ(DAPX_EP_UNCONNECTED, ep_state(&self->eb));
	OK(ep_accept(&self->eb, event.request.cm));
	/* The request's handle went with it. */
	test_err(ENOENT, cm_query, self->b.fd, .cm = event.request.cm);
	OK(expect_connection(&self->a.conn, self->ea.handle,
			     DAPX_CONNECTION_ESTABLISHED, &event));
	EXPECT_EQ(0, event.connection.error);
	/* First the state, then the event. */
	EXPECT_EQ(DAPX_EP_CONNECTED, ep_shown_state(&self->ea));
	OK(expect_connection(&self->b.conn, self->eb.handle,
			     DAPX_CONNECTION_ESTABLISHED, NULL));
	EXPECT_EQ(DAPX_EP_CONNECTED, ep_shown_state(&self->eb));

	qa = QUERY(&self->ea);
	qb = QUERY(&self->eb);
	EXPECT_EQ(DAPX_EP_CONNECTED, qa.out_state);
	EXPECT_EQ(DAPX_EP_CONNECTED, qb.out_state);
	if (!on_siw()) {
		EXPECT_EQ(qa.out_qp_num, qb.out_remote_qp_num);
		EXPECT_EQ(qb.out_qp_num, qa.out_remote_qp_num);
	}
	EXPECT_TRUE(same_addr(&qa.out_local, self->a.addr));
	EXPECT_TRUE(same_addr(&qa.out_remote, self->b.addr));
	EXPECT_TRUE(same_addr(&qb.out_local, self->b.addr));
	EXPECT_TRUE(same_addr(&qb.out_remote, self->a.addr));
	EXPECT_EQ(listener.port, get_port(&qa.out_remote));
	EXPECT_EQ(listener.port, get_port(&qb.out_local));
	EXPECT_EQ(get_port(&qa.out_local), get_port(&qb.out_remote));
	EXPECT_EQ(0, qa.out_cm);
	OK(listener_close(&listener));
	OK(ep_exchange(&self->ea, &self->eb));
	OK(evd_quiet(&self->a.conn));
	OK(evd_quiet(&self->b.conn));
}

TEST_F(ep, connected_by_qp_numbers)
{
	__u8 gid_a[16], gid_b[16];
	struct dapx_ep_query query;

	if (NO_QP_NUMBERS)
		SKIP(return, "%s has no exchange of QP numbers", self->a.device);
	ASSERT_LE(0, host_gid_index(&self->a, gid_a));
	ASSERT_LE(0, host_gid_index(&self->b, gid_b));
	/* One step at a time. */
	EXPECT_EQ(-1, qp_rts(&self->ea, NULL));
	EXPECT_EQ(EBADFD, errno);
	EXPECT_EQ(-1, qp_rtr(&self->ea, self->eb.qp_num, gid_b, NULL));
	EXPECT_EQ(EBADFD, errno);
	OK(qp_init(&self->ea));
	EXPECT_EQ(DAPX_EP_UNCONNECTED, ep_state(&self->ea));
	EXPECT_EQ(-1, qp_rts(&self->ea, NULL));
	EXPECT_EQ(EBADFD, errno);
	OK(qp_rtr(&self->ea, self->eb.qp_num, gid_b, NULL));
	EXPECT_EQ(DAPX_EP_COMPLETION_PENDING, ep_state(&self->ea));
	EXPECT_EQ(DAPX_EP_COMPLETION_PENDING, ep_shown_state(&self->ea));
	EXPECT_EQ(-1, qp_init(&self->ea));
	EXPECT_EQ(EBADFD, errno);
	OK(qp_rts(&self->ea, NULL));
	EXPECT_EQ(DAPX_EP_CONNECTED, ep_state(&self->ea));
	EXPECT_EQ(DAPX_EP_CONNECTED, ep_shown_state(&self->ea));
	EXPECT_EQ(-1, qp_rts(&self->ea, NULL));
	EXPECT_EQ(EBADFD, errno);
	query = QUERY(&self->ea);
	EXPECT_EQ(self->eb.qp_num, query.out_remote_qp_num);

	OK(qp_init(&self->eb));
	OK(qp_rtr(&self->eb, self->ea.qp_num, gid_a, NULL));
	OK(qp_rts(&self->eb, NULL));
	OK(ep_exchange(&self->ea, &self->eb));
	/* There is no event of it. */
	OK(evd_quiet(&self->a.conn));
	OK(evd_quiet(&self->b.conn));
}

/* From INIT on the queue pair has receives, and before RTR no connection. */
TEST_F(ep, ended_before_its_connection)
{
	struct dapx_event event;
	int i;

	if (NO_QP_NUMBERS)
		SKIP(return, "no QP numbers on iWARP");
	test_err(EBADFD, ep_disconnect, self->a.fd, .ep = self->ea.handle,
		 .flags = DAPX_DISCONNECT_ABRUPT);
	OK(qp_init(&self->ea));
	test_err(EBADFD, ep_disconnect, self->a.fd, .ep = self->ea.handle);
	for (i = 0; i < EP_DEPTH; i++)
		OK(ep_recv(&self->ea, i, TARGET, 8));
	test_cmd(ep_disconnect, self->a.fd, .ep = self->ea.handle,
		 .flags = DAPX_DISCONNECT_ABRUPT);
	for (i = 0; i < EP_DEPTH; i++)
		OK(expect_completion(&self->a.recv, i, DAPX_STATUS_FLUSHED,
				     NULL));
	OK(expect_connection(&self->a.conn, self->ea.handle,
			     DAPX_CONNECTION_DISCONNECTED, &event));
	EXPECT_EQ(DAPX_EP_DISCONNECTED, ep_state(&self->ea));
	EXPECT_EQ(DAPX_EP_DISCONNECTED, ep_shown_state(&self->ea));
	/* From here on as after a connection. */
	test_cmd(ep_reset, self->a.fd, .ep = self->ea.handle);
	OK(connect_cm(&self->ea, &self->eb));
	OK(ep_exchange(&self->ea, &self->eb));
}

TEST_F(ep, no_qp_numbers_on_iwarp)
{
	if (!NO_QP_NUMBERS)
		SKIP(return, "%s has them", self->a.device);
	test_err(EOPNOTSUPP, ep_modify, self->a.fd, .ep = self->ea.handle,
		 .mask = DAPX_EP_MODIFY_QP, .qp.state = DAPX_QP_INIT,
		 .qp.port = 1);
	EXPECT_EQ(DAPX_EP_UNCONNECTED, ep_state(&self->ea));
}

TEST_F(ep, receives_before_the_connection)
{
	int i;

	for (i = 0; i < EP_DEPTH; i++)
		OK(ep_recv(&self->eb, i, TARGET + 8 * i, 8));
	OK(connect_cm(&self->ea, &self->eb));
	for (i = 0; i < EP_DEPTH; i++) {
		OK(ep_send(&self->ea, i, 0, 8));
		OK(expect_completion(&self->a.done, i, DAPX_STATUS_SUCCESS,
				     NULL));
		OK(expect_completion(&self->b.recv, i, DAPX_STATUS_SUCCESS,
				     NULL));
	}
}

/* Requests that came too early stay in the ring, for when it is time. */
TEST_F(ep, requests_before_the_connection)
{
	struct dapx_sge sge = host_sge(&self->a, 0, 8);
	struct dapx_send_wr wr = {
		.wr_id = 1, .opcode = DAPX_OP_SEND, .num_sge = 1,
		.flags = DAPX_SEND_SIGNALED,
	};

	OK(ep_push_send(&self->ea, &wr, &sge));
	test_err(EBADFD, doorbell, self->a.fd, .handle = self->ea.handle,
		 .flags = DAPX_DOORBELL_SEND);
	EXPECT_EQ(1, ring_used(&self->ea.send));
	OK(ep_recv(&self->eb, 2, TARGET, 8));
	OK(ep_recv(&self->eb, 3, TARGET, 8));
	OK(connect_cm(&self->ea, &self->eb));
	test_cmd(doorbell, self->a.fd, .handle = self->ea.handle,
		 .flags = DAPX_DOORBELL_SEND);
	OK(expect_completion(&self->a.done, 1, DAPX_STATUS_SUCCESS, NULL));
	/* So early a message siw may leave unread until there is another. */
	if (on_siw())
		OK(ep_send(&self->ea, 4, 0, 8));
	OK(expect_completion(&self->b.recv, 2, DAPX_STATUS_SUCCESS, NULL));
	EXPECT_EQ(0, ring_used(&self->ea.send));
}

TEST_F(ep, counts_of_work)
{
	__u64 deadline;
	int i;

	OK(connect_cm(&self->ea, &self->eb));
	for (i = 0; i < 5; i++)
		OK(ep_recv(&self->ea, i, TARGET, 8));
	EXPECT_EQ(5, QUERY(&self->ea).out_receives);
	EXPECT_EQ(0, QUERY(&self->ea).out_requests);
	if (on_siw())
		return;
	/* These wait for receives. */
	for (i = 0; i < 3; i++)
		OK(ep_send(&self->ea, i, 0, 8));
	EXPECT_EQ(3, QUERY(&self->ea).out_requests);
	for (i = 0; i < 3; i++)
		OK(ep_recv(&self->eb, i, TARGET, 8));
	for (i = 0; i < 3; i++)
		OK(expect_completion(&self->a.done, i, DAPX_STATUS_SUCCESS,
				     NULL));
	deadline = in_ms(PATIENCE_MS);
	/* An event is there a little before its request counts as done. */
	while (QUERY(&self->ea).out_requests) {
		ASSERT_GT(deadline, now_ns());
		sleep_ms(1);
	}
	EXPECT_EQ(5, QUERY(&self->ea).out_receives);
}

/* ---- disconnecting ---- */

#define EXPECT_GONE(ep_, evd)						\
	({								\
		OK(expect_connection(evd, (ep_)->handle,		\
				     DAPX_CONNECTION_DISCONNECTED,	\
				     NULL));				\
		EXPECT_EQ(DAPX_EP_DISCONNECTED, ep_state(ep_));		\
		EXPECT_EQ(DAPX_EP_DISCONNECTED, ep_shown_state(ep_));	\
	})

TEST_F(ep, disconnect)
{
	int abrupt, i;

	for (abrupt = 0; abrupt < 2; abrupt++) {
		__u32 flags = abrupt ? DAPX_DISCONNECT_ABRUPT : 0;

		OK(connect_cm(&self->ea, &self->eb));
		for (i = 0; i < 3; i++) {
			OK(ep_recv(&self->ea, i, TARGET, 8));
			OK(ep_recv(&self->eb, i, TARGET, 8));
		}
		DISCONNECT(&self->ea, flags);
		EXPECT_GONE(&self->ea, &self->a.conn);
		EXPECT_GONE(&self->eb, &self->b.conn);
		for (i = 0; i < 3; i++) {
			OK(expect_completion(&self->a.recv, i,
					     DAPX_STATUS_FLUSHED, NULL));
			OK(expect_completion(&self->b.recv, i,
					     DAPX_STATUS_FLUSHED, NULL));
		}
		/* Again has no effect, and no event. */
		DISCONNECT(&self->ea, flags);
		DISCONNECT(&self->eb, flags);
		OK(evd_quiet(&self->a.conn));
		OK(evd_quiet(&self->b.conn));
		test_cmd(ep_reset, self->a.fd, .ep = self->ea.handle);
		test_cmd(ep_reset, self->b.fd, .ep = self->eb.handle);
	}
}

TEST_F(ep, disconnect_without_cm)
{
	if (NO_QP_NUMBERS)
		SKIP(return, "%s has no exchange of QP numbers", self->a.device);
	OK(connect_qp(&self->ea, &self->eb, NULL));
	OK(ep_recv(&self->ea, 1, TARGET, 8));
	DISCONNECT(&self->ea, 0);
	EXPECT_GONE(&self->ea, &self->a.conn);
	OK(expect_completion(&self->a.recv, 1, DAPX_STATUS_FLUSHED, NULL));
	/* The peer is not told. */
	OK(evd_quiet(&self->b.conn));
	EXPECT_EQ(DAPX_EP_CONNECTED, ep_state(&self->eb));
	DISCONNECT(&self->eb, DAPX_DISCONNECT_ABRUPT);
	EXPECT_GONE(&self->eb, &self->b.conn);
}

/* The way to it is within the device, which knows that by the Ethernet address. */
TEST_F(ep, exchange_with_itself)
{
	struct host here;
	struct ep other;

	if (NO_QP_NUMBERS)
		SKIP(return, "%s has no exchange of QP numbers", self->a.device);
	OK(host_set_up(&here, 0));
	OK(ep_create(&here, &other));
	OK(connect_qp(&self->ea, &other, NULL));
	OK(ep_exchange(&self->ea, &other));
	OK(ep_destroy(&other));
	host_close(&here);
}

/* The step to RTR resolves the peer's address, and can be tried again. */
TEST_F(ep, exchange_with_nobody)
{
	__u8 nobody[16] = { [10] = 0xff, 0xff, 10, 0, 0, 77 };
	__u8 gid[16];

	if (NO_QP_NUMBERS)
		SKIP(return, "%s has no exchange of QP numbers", self->a.device);
	ASSERT_LE(0, host_gid_index(&self->b, gid));
	OK(qp_init(&self->ea));
	EXPECT_EQ(-1, qp_rtr(&self->ea, 1, nobody, NULL));
	EXPECT_EQ(ETIMEDOUT, errno);
	EXPECT_EQ(DAPX_EP_UNCONNECTED, ep_state(&self->ea));
	OK(qp_init(&self->eb));
	OK(qp_rtr(&self->ea, qp_number(&self->eb), gid, NULL));
	EXPECT_EQ(DAPX_EP_COMPLETION_PENDING, ep_state(&self->ea));
}

/* Without an EVD for its connection. */
static int make_silent(struct host *host, struct ep *ep)
{
	struct dapx_ep_create cmd;

	ep_usual(host, &cmd);
	cmd.connect_evd = 0;
	return ep_make(host, &cmd, ep);
}

TEST_F(ep, silent)
{
	struct ep ea, eb;
	__u32 round;

	if (NO_QP_NUMBERS)
		SKIP(return, "%s has no exchange of QP numbers", self->a.device);
	OK(make_silent(&self->a, &ea));
	OK(make_silent(&self->b, &eb));
	EXPECT_EQ(0, QUERY(&ea).out_connect_evd);
	EXPECT_EQ(0, QUERY(&ea).out_async_evd);
	/* Ended by either side, gracefully or not, by an error, and while it is set up. */
	for (round = 0; round < 4; round++) {
		OK(connect_qp(&ea, &eb, NULL));
		OK(ep_exchange(&ea, &eb));
		OK(ep_recv(&eb, 7, TARGET, 8));
		if (round < 2) {
			DISCONNECT(&ea, round ? DAPX_DISCONNECT_ABRUPT : 0);
		} else if (round == 2) {
			OK(ep_rdma(&ea, 8, DAPX_OP_RDMA_WRITE, self->a.mr,
				   self->a.mem, 8, self->b.mem,
				   self->b.rkey ^ 0x100));
			OK(expect_completion(&self->a.done, 8,
					     DAPX_STATUS_REMOTE_ACCESS, NULL));
		} else {
			OK(ep_destroy(&ea));
			OK(make_silent(&self->a, &ea));
			OK(qp_init(&ea));
			DISCONNECT(&eb, DAPX_DISCONNECT_ABRUPT);
			break;
		}
		OK(ep_await_state(&ea, DAPX_EP_DISCONNECTED));
		DISCONNECT(&eb, DAPX_DISCONNECT_ABRUPT);
		OK(ep_await_state(&eb, DAPX_EP_DISCONNECTED));
		OK(expect_completion(&self->b.recv, 7, DAPX_STATUS_FLUSHED,
				     NULL));
		ea.qp_num = test_cmd(ep_reset, self->a.fd,
				     .ep = ea.handle).out_qp_num;
		eb.qp_num = test_cmd(ep_reset, self->b.fd,
				     .ep = eb.handle).out_qp_num;
	}
	OK(evd_quiet(&self->a.conn));
	OK(evd_quiet(&self->b.conn));
	OK(ep_destroy(&ea));
	OK(ep_destroy(&eb));
}

/* The CM's outcomes are events: it needs somewhere to tell them. */
TEST_F(ep, silent_by_the_cm)
{
	struct listener listener, other = { .host = &self->a };
	struct dapx_ep_connect connect;
	struct dapx_event event;
	struct ep ea, eb;

	OK(make_silent(&self->a, &ea));
	OK(make_silent(&self->b, &eb));
	OK(listener_open(&self->b, &listener));
	connect_usual(&ea, &listener, &connect);
	EXPECT_ERRNO(EBADFD, _test_cmd_ep_connect(self->a.fd, &connect));
	EXPECT_EQ(DAPX_EP_UNCONNECTED, ep_state(&ea));

	other.cm = CM_NEW(&self->a);
	ASSERT_EQ(0, cm_bind_to(&self->a, other.cm, self->a.addr, 0));
	test_err(EBADFD, cm_listen, self->a.fd, .cm = other.cm,
		 .mode = DAPX_LISTEN_RESERVED, .ep = ea.handle);
	EXPECT_EQ(DAPX_EP_UNCONNECTED, ep_state(&ea));

	OK(ep_connect(&self->ea, &listener));
	OK(listener_request(&listener, &event));
	test_err(EBADFD, ep_accept, self->b.fd, .ep = eb.handle,
		 .cm = event.request.cm);
	EXPECT_EQ(DAPX_EP_UNCONNECTED, ep_state(&eb));
	test_cmd(cm_reject, self->b.fd, .cm = event.request.cm);
	OK(expect_connection(&self->a.conn, self->ea.handle,
			     DAPX_CONNECTION_PEER_REJECTED, NULL));

	/* Given one, they are as others. */
	test_err(ENOENT, ep_modify, self->a.fd, .ep = ea.handle,
		 .mask = DAPX_EP_MODIFY_CONNECT_EVD);
	test_cmd(ep_modify, self->a.fd, .ep = ea.handle,
		 .mask = DAPX_EP_MODIFY_CONNECT_EVD,
		 .connect_evd = self->a.conn.handle);
	test_cmd(ep_modify, self->b.fd, .ep = eb.handle,
		 .mask = DAPX_EP_MODIFY_CONNECT_EVD,
		 .connect_evd = self->b.conn.handle);
	EXPECT_EQ(self->a.conn.handle, QUERY(&ea).out_connect_evd);
	OK(connect_through(&ea, &listener, &eb));
	OK(ep_exchange(&ea, &eb));
}

TEST_F(ep, async_evd)
{
	struct dapx_ep_create cmd;
	struct evd async, connect;
	struct ep ep;

	OK(evd_make(self->a.fd, 8, 0, &async));
	OK(evd_make(self->a.fd, 8, 0, &connect));
	ep_usual(&self->a, &cmd);
	cmd.connect_evd = connect.handle;
	cmd.async_evd = async.handle;
	OK(ep_make(&self->a, &cmd, &ep));
	EXPECT_EQ(async.handle, QUERY(&ep).out_async_evd);
	EXPECT_EQ(1, users_of(&self->a, async.handle));
	test_err(EBUSY, free, self->a.fd, .handle = async.handle);
	/* Another connect EVD changes nothing about it. */
	test_cmd(ep_modify, self->a.fd, .ep = ep.handle,
		 .mask = DAPX_EP_MODIFY_CONNECT_EVD, .connect_evd = async.handle);
	EXPECT_EQ(2, users_of(&self->a, async.handle));
	test_cmd(free, self->a.fd, .handle = connect.handle);
	test_cmd(ep_modify, self->a.fd, .ep = ep.handle,
		 .mask = DAPX_EP_MODIFY_CONNECT_EVD,
		 .connect_evd = self->a.conn.handle);
	EXPECT_EQ(1, users_of(&self->a, async.handle));
	EXPECT_EQ(async.handle, QUERY(&ep).out_async_evd);
	OK(connect_cm(&ep, &self->eb));
	OK(ep_exchange(&ep, &self->eb));
	OK(ep_destroy(&ep));
	EXPECT_EQ(0, users_of(&self->a, async.handle));
	test_cmd(free, self->a.fd, .handle = async.handle);
}

/*
 * siw gives up a queue pair that finds the memory of a request gone: one that waits for
 * a read, whose answer is on its way. rxe never does.
 */
TEST_F(ep, given_up)
{
	struct dapx_ep_create cmd;
	struct dapx_event event;
	struct evd async;
	struct ep ep;
	int own, i;

	if (!on_siw())
		SKIP(return, "%s gives up no queue pair", self->a.device);
	OK(evd_make(self->a.fd, 8, 0, &async));
	for (own = 0; own < 2; own++) {
		struct dapx_send_wr send = {
			.wr_id = 2, .opcode = DAPX_OP_SEND, .num_sge = 1,
			.flags = DAPX_SEND_SIGNALED | DAPX_SEND_FENCE,
		};
		struct dapx_sge sge = {
			.addr = (uintptr_t)self->a.mem, .length = 8,
		};
		int told = 0;

		sge.mr = test_cmd(mr_create, self->a.fd, .pd = self->a.pd,
				  .addr = sge.addr, .length = 8).out_mr;
		ep_usual(&self->a, &cmd);
		cmd.user_data = 0xdead;
		cmd.async_evd = own ? async.handle : 0;
		OK(ep_make(&self->a, &cmd, &ep));
		OK(connect_cm(&ep, &self->eb));
		OK(ep_recv(&self->eb, 3, TARGET, 8));
		OK(cable_set(&self->b, &self->a, false));
		OK(ep_rdma(&ep, 1, DAPX_OP_RDMA_READ, self->a.mr,
			   self->a.mem + TARGET, 8, self->b.mem, self->b.rkey));
		OK(ep_post_send(&ep, &send, &sge));
		sleep_ms(GLANCE_MS);
		test_cmd(free, self->a.fd, .handle = sge.mr);
		OK(cable_set(&self->b, &self->a, true));
		/* Before the connection's end or after it. */
		for (i = 0; i < 2; i++) {
			OK(evd_next(own && i ? &async : &self->a.conn, &event,
				    PATIENCE_MS));
			EXPECT_EQ(ep.handle, event.handle);
			EXPECT_EQ(0xdead, event.user_data);
			if (event.type == DAPX_EVENT_ASYNC) {
				EXPECT_EQ(DAPX_ASYNC_EP_ERROR, event.async.what);
				told = own ? i : 1;
			} else {
				EXPECT_EQ(DAPX_EVENT_CONNECTION, event.type);
				/* siw ends the stream itself as well. */
				EXPECT_TRUE(event.connection.what ==
					    DAPX_CONNECTION_BROKEN ||
					    event.connection.what ==
					    DAPX_CONNECTION_DISCONNECTED);
			}
		}
		EXPECT_EQ(1, told);
		OK(evd_quiet(&self->a.conn));
		OK(evd_quiet(&async));
		OK(ep_destroy(&ep));
		OK(ep_await_state(&self->eb, DAPX_EP_DISCONNECTED));
		test_cmd(ep_reset, self->b.fd, .ep = self->eb.handle);
		evd_drain(&self->a.done);
		evd_drain(&self->b.recv);
		evd_drain(&self->b.conn);
	}
}

/* Graceful: what is under way is done first; nothing new is taken. */
TEST_F(ep, graceful)
{
	int i;

	if (on_siw())
		SKIP(return, "a request cannot be held up on iWARP");
	OK(connect_cm(&self->ea, &self->eb));
	for (i = 0; i < 10; i++)
		OK(ep_send(&self->ea, i, 0, 8));
	DISCONNECT(&self->ea, 0);
	EXPECT_EQ(DAPX_EP_DISCONNECT_PENDING, ep_state(&self->ea));
	EXPECT_EQ(DAPX_EP_DISCONNECT_PENDING, ep_shown_state(&self->ea));
	OK(ep_push_send(&self->ea,
			&(struct dapx_send_wr){ .wr_id = 99 }, NULL));
	test_err(EBADFD, doorbell, self->a.fd, .handle = self->ea.handle,
		 .flags = DAPX_DOORBELL_SEND);
	/* Graceful once more: no effect. */
	DISCONNECT(&self->ea, 0);
	EXPECT_EQ(DAPX_EP_DISCONNECT_PENDING, ep_state(&self->ea));
	OK(evd_quiet(&self->a.conn));
	for (i = 0; i < 10; i++)
		OK(ep_recv(&self->eb, i, TARGET, 8));
	for (i = 0; i < 10; i++) {
		OK(expect_completion(&self->a.done, i, DAPX_STATUS_SUCCESS,
				     NULL));
		OK(expect_completion(&self->b.recv, i, DAPX_STATUS_SUCCESS,
				     NULL));
	}
	EXPECT_GONE(&self->ea, &self->a.conn);
	EXPECT_GONE(&self->eb, &self->b.conn);
	/* The late one ends as all do in this state. */
	test_cmd(doorbell, self->a.fd, .handle = self->ea.handle,
		 .flags = DAPX_DOORBELL_SEND);
	OK(expect_completion(&self->a.done, 99, DAPX_STATUS_FLUSHED, NULL));
}

TEST_F(ep, abrupt)
{
	int graceful_first, i;

	if (on_siw())
		SKIP(return, "a request cannot be held up on iWARP");
	for (graceful_first = 0; graceful_first < 2; graceful_first++) {
		OK(connect_cm(&self->ea, &self->eb));
		for (i = 0; i < 10; i++)
			OK(ep_send(&self->ea, i, 0, 8));
		if (graceful_first)
			DISCONNECT(&self->ea, 0);
		DISCONNECT(&self->ea, DAPX_DISCONNECT_ABRUPT);
		for (i = 0; i < 10; i++)
			OK(expect_completion(&self->a.done, i,
					     DAPX_STATUS_FLUSHED, NULL));
		EXPECT_GONE(&self->ea, &self->a.conn);
		EXPECT_GONE(&self->eb, &self->b.conn);
		test_cmd(ep_reset, self->a.fd, .ep = self->ea.handle);
		test_cmd(ep_reset, self->b.fd, .ep = self->eb.handle);
	}
}

/* With one EVD for all that it reports, in the order in which it reports it. */
static int make_with_one_evd(struct host *host, struct ep *ep)
{
	struct dapx_ep_create cmd;

	ep_usual(host, &cmd);
	cmd.request_evd = host->conn.handle;
	cmd.recv_evd = host->conn.handle;
	return ep_make(host, &cmd, ep);
}

/* @work completions of an endpoint, then the end of its connection, then nothing. */
static int expect_end_after_work(struct evd *evd, unsigned int work, __u32 what)
{
	struct dapx_event event;
	unsigned int i;

	for (i = 0; i < work; i++) {
		if (evd_next(evd, &event, PATIENCE_MS))
			return -1;
		if (event.type != DAPX_EVENT_COMPLETION)
			return because("event %u, type %u, what %u, after %u of %u completions",
				       event.handle, event.type,
				       event.connection.what, i, work);
	}
	if (evd_next(evd, &event, PATIENCE_MS))
		return -1;
	if (event.type != DAPX_EVENT_CONNECTION ||
	    event.connection.what != what)
		return because("event of type %u, what %u after all completions",
			       event.type, event.connection.what);
	return evd_quiet(evd);
}

/* However a connection ends, the event that says so is its last. */
TEST_F(ep, end_comes_last)
{
	enum { ABRUPT, GRACEFUL, BY_PEER, BROKEN, BY_RESET, WAYS };
	unsigned int way, i;
	struct ep ea;

	OK(make_with_one_evd(&self->a, &ea));
	for (way = 0; way < WAYS; way++) {
		__u32 what = DAPX_CONNECTION_DISCONNECTED;
		unsigned int work = 0;

		TH_LOG("way %u", way);
		OK(connect_cm(&ea, &self->eb));
		evd_drain(&self->a.conn);
		for (i = 0; i < EP_DEPTH / 2; i++, work++)
			OK(ep_recv(&ea, i, TARGET, 8));
		/* The peer has nothing to put these in. */
		for (i = 0; way != GRACEFUL && i < EP_DEPTH; i++, work++)
			OK(ep_send(&ea, EP_DEPTH + i, 0, 8));
		if (way == BY_PEER) {
			DISCONNECT(&self->eb, DAPX_DISCONNECT_ABRUPT);
		} else if (way == BROKEN) {
			OK(ep_push_recv(&ea, &(struct dapx_recv_wr){
					.flags = 1 << 31 }, NULL));
			work++;
			test_cmd(doorbell, self->a.fd, .handle = ea.handle,
				 .flags = DAPX_DOORBELL_RECV);
			what = DAPX_CONNECTION_BROKEN;
		} else {
			DISCONNECT(&ea, way == GRACEFUL ? 0 :
					DAPX_DISCONNECT_ABRUPT);
		}
		if (way == BY_RESET)
			test_cmd(ep_reset, self->a.fd, .ep = ea.handle);
		OK(expect_end_after_work(&self->a.conn, work, what));
		/* The last way has reset one of them. */
		if (way != BY_RESET)
			OK(disconnect_reset(&ea, &self->eb));
	}
}

/* Events that nobody reads do not hold up the one that the connection has ended. */
TEST_F(ep, end_with_a_full_evd)
{
	struct dapx_ep_create cmd;
	struct dapx_event event;
	struct evd small;
	unsigned int i;
	struct ep ea;

	OK(evd_make(self->a.fd, 1, 0, &small));
	ep_usual(&self->a, &cmd);
	cmd.request_evd = small.handle;
	cmd.attr.send_depth = 4;
	OK(ep_make(&self->a, &cmd, &ea));
	OK(connect_cm(&ea, &self->eb));
	/* Four slots: one event in the ring, four that wait, and three requests that wait. */
	for (i = 0; i < 4; i++)
		OK(ep_send(&ea, i, 0, 8));
	DISCONNECT(&ea, DAPX_DISCONNECT_ABRUPT);
	/* Some were in the ring, as the device had enough to do. */
	OK(ring_await_taken(&ea.send));
	for (i = 4; i < 8; i++)
		OK(ep_send(&ea, i, 0, 8));
	EXPECT_GONE(&ea, &self->a.conn);
	for (i = 0; i < 8; i++) {
		OK(evd_next(&small, &event, PATIENCE_MS));
		EXPECT_EQ(i, event.completion.wr_id);
		/* On iWARP a send needs no receive of the peer to succeed. */
		if (!on_siw() || i >= 4 || event.completion.status != DAPX_STATUS_SUCCESS)
			EXPECT_EQ(DAPX_STATUS_FLUSHED, event.completion.status);
	}
	OK(evd_quiet(&small));
}

/* ---- receiver not ready ---- */

/* Connected with it, or changed afterwards; 31 stands for 491.52 ms. */
TEST_F(ep, rnr_timer)
{
	struct dapx_ep_modify longest = {
		.ep = self->eb.handle, .mask = DAPX_EP_MODIFY_RNR_TIMER, .min_rnr_timer = 31,
	}, two = longest;
	struct dapx_ep_connect connect;
	struct listener listener;
	struct dapx_event event;
	bool connected;
	__u64 begin;

	if (on_siw())
		SKIP(return, "iWARP has no receiver-not-ready");
	two.mask |= DAPX_EP_MODIFY_USER_DATA;
	OK(listener_open(&self->b, &listener));
	connect_usual(&self->ea, &listener, &connect);
	for (connected = false;; connected = true) {
		if (!connected)
			ASSERT_EQ(0, _test_cmd_ep_modify(self->b.fd, &longest));
		ASSERT_EQ(0, _test_cmd_ep_connect(self->a.fd, &connect));
		OK(listener_request(&listener, &event));
		/* What a may try again. */
		test_cmd(ep_accept, self->b.fd, .ep = self->eb.handle,
			 .cm = event.request.cm, .rnr_retry_count = 1);
		OK(expect_connection(&self->a.conn, self->ea.handle,
				     DAPX_CONNECTION_ESTABLISHED, NULL));
		OK(expect_connection(&self->b.conn, self->eb.handle,
				     DAPX_CONNECTION_ESTABLISHED, NULL));
		if (connected) {
			ASSERT_EQ(0, _test_cmd_ep_modify(self->b.fd, &longest));
			EXPECT_EQ(-1, _test_cmd_ep_modify(self->b.fd, &two));
			EXPECT_EQ(EBADFD, errno);
		}
		begin = now_ns();
		OK(ep_send(&self->ea, 1, 0, 8));
		OK(expect_completion(&self->a.done, 1, DAPX_STATUS_RECEIVER_NOT_READY, NULL));
		EXPECT_LE(491520000, now_ns() - begin);
		if (connected)
			break;
		OK(disconnect_reset(&self->ea, &self->eb));
		test_cmd(ep_modify, self->b.fd, .ep = self->eb.handle,
			 .mask = DAPX_EP_MODIFY_RNR_TIMER, .min_rnr_timer = 12);
	}
}

TEST_F(ep, no_rnr_timer_on_iwarp)
{
	if (!on_siw())
		SKIP(return, "%s has it", self->a.device);
	test_err(EOPNOTSUPP, ep_modify, self->a.fd, .ep = self->ea.handle,
		 .mask = DAPX_EP_MODIFY_RNR_TIMER, .min_rnr_timer = 12);
}

/* ---- the timewait state ---- */

#define NO_TIMEWAIT_EXIT						\
	(!(self->a.limits.out_caps & DAPX_DEVICE_TIMEWAIT_EXIT))

#define EXPECT_TIMEWAIT_EXIT(ep_, evd)					\
	OK(expect_connection(evd, (ep_)->handle,			\
			     DAPX_CONNECTION_TIMEWAIT_EXIT, NULL))

static int make_with_timewait_exit(struct host *host, struct ep *ep)
{
	struct dapx_ep_create cmd;

	ep_usual(host, &cmd);
	cmd.attr.flags = DAPX_EP_TIMEWAIT_EXIT;
	return ep_make(host, &cmd, ep);
}

TEST_F(ep, timewait_exit)
{
	struct ep ea, eb;
	int i;

	if (NO_TIMEWAIT_EXIT)
		SKIP(return, "%s has no timewait state", self->a.device);
	OK(make_with_timewait_exit(&self->a, &ea));
	OK(make_with_timewait_exit(&self->b, &eb));
	for (i = 0; i < 2; i++) {
		OK(connect_cm(&ea, &eb));
		DISCONNECT(&ea, 0);
		EXPECT_GONE(&ea, &self->a.conn);
		EXPECT_GONE(&eb, &self->b.conn);
		EXPECT_TIMEWAIT_EXIT(&ea, &self->a.conn);
		EXPECT_TIMEWAIT_EXIT(&eb, &self->b.conn);
		test_cmd(ep_reset, self->a.fd, .ep = ea.handle);
		test_cmd(ep_reset, self->b.fd, .ep = eb.handle);
	}
}

TEST_F(ep, timewait_exit_of_a_broken_connection)
{
	struct ep ea;

	if (NO_TIMEWAIT_EXIT)
		SKIP(return, "%s has no timewait state", self->a.device);
	OK(make_with_timewait_exit(&self->a, &ea));
	OK(connect_cm(&ea, &self->eb));
	OK(ep_push_recv(&ea, &(struct dapx_recv_wr){ .flags = 1 << 31 }, NULL));
	test_cmd(doorbell, self->a.fd, .handle = ea.handle, .flags = DAPX_DOORBELL_RECV);
	OK(expect_connection(&self->a.conn, ea.handle, DAPX_CONNECTION_BROKEN, NULL));
	EXPECT_TIMEWAIT_EXIT(&ea, &self->a.conn);
}

/* Neither that of an endpoint that did not ask for it, nor that of a connection before a reset. */
TEST_F(ep, timewait_exit_of_others)
{
	struct ep ea, eb;

	if (NO_TIMEWAIT_EXIT)
		SKIP(return, "%s has no timewait state", self->a.device);
	OK(make_with_timewait_exit(&self->a, &ea));
	OK(make_with_timewait_exit(&self->b, &eb));
	OK(connect_cm(&ea, &self->eb));
	DISCONNECT(&ea, 0);
	EXPECT_GONE(&ea, &self->a.conn);
	EXPECT_GONE(&self->eb, &self->b.conn);
	test_cmd(ep_reset, self->a.fd, .ep = ea.handle);

	OK(connect_cm(&ea, &eb));
	DISCONNECT(&ea, 0);
	EXPECT_GONE(&ea, &self->a.conn);
	EXPECT_GONE(&eb, &self->b.conn);
	EXPECT_TIMEWAIT_EXIT(&ea, &self->a.conn);
	EXPECT_TIMEWAIT_EXIT(&eb, &self->b.conn);
	OK(evd_quiet(&self->a.conn));
	OK(evd_quiet(&self->b.conn));
}

TEST_F(ep, no_timewait_exit_on_iwarp)
{
	struct dapx_ep_create cmd;
	struct ep ep;

	if (!NO_TIMEWAIT_EXIT)
		SKIP(return, "%s has it", self->a.device);
	ep_usual(&self->a, &cmd);
	cmd.attr.flags = DAPX_EP_TIMEWAIT_EXIT;
	EXPECT_EQ(-1, ep_make(&self->a, &cmd, &ep));
	EXPECT_EQ(EOPNOTSUPP, errno);
}

/* ---- the last of the work ---- */

/* A peer that leaves may still acknowledge; on rxe even what it took before. */
TEST_F(ep, acknowledged_after_the_disconnect)
{
	struct dapx_event event;

	if (on_siw())
		SKIP(return, "a request cannot be held up on iWARP");
	OK(connect_cm(&self->ea, &self->eb));
	OK(ep_send(&self->ea, 1, 0, 8));
	DISCONNECT(&self->eb, 0);
	/* Until the other end has heard of it. */
	sleep_ms(50);
	OK(ep_recv(&self->eb, 1, TARGET, 8));
	OK(expect_completion(&self->a.done, 1, DAPX_STATUS_SUCCESS, NULL));
	OK(expect_completion(&self->b.recv, 1, DAPX_STATUS_SUCCESS, NULL));
	EXPECT_GONE(&self->ea, &self->a.conn);
	EXPECT_GONE(&self->eb, &self->b.conn);
	test_cmd(ep_reset, self->a.fd, .ep = self->ea.handle);
	test_cmd(ep_reset, self->b.fd, .ep = self->eb.handle);

	/* What it does not take does not keep the end from coming. */
	OK(connect_cm(&self->ea, &self->eb));
	OK(ep_send(&self->ea, 2, 0, 8));
	DISCONNECT(&self->eb, 0);
	OK(evd_next(&self->a.done, &event, PATIENCE_MS));
	EXPECT_EQ(DAPX_STATUS_FLUSHED, event.completion.status);
	EXPECT_GONE(&self->ea, &self->a.conn);
	EXPECT_GONE(&self->eb, &self->b.conn);
}

TEST_F(ep, work_when_disconnected)
{
	struct dapx_event event;
	int i;

	OK(connect_cm(&self->ea, &self->eb));
	DISCONNECT(&self->ea, DAPX_DISCONNECT_ABRUPT);
	EXPECT_GONE(&self->ea, &self->a.conn);
	for (i = 0; i < 2 * EP_DEPTH; i++) {
		OK(ep_send(&self->ea, i, 0, 8));
		OK(expect_completion(&self->a.done, i, DAPX_STATUS_FLUSHED,
				     &event));
		EXPECT_EQ(self->ea.handle, event.handle);
		OK(ep_recv(&self->ea, i, 0, 8));
		OK(expect_completion(&self->a.recv, i, DAPX_STATUS_FLUSHED,
				     &event));
		EXPECT_EQ(self->ea.handle, event.handle);
	}
}

/* What siw is given while it flushes, it flushes before what it had. */
static bool in_order(const struct dapx_event *event, __u64 wr_id)
{
	return event->completion.wr_id == wr_id ||
	       (on_siw() && event->completion.status == DAPX_STATUS_FLUSHED);
}

/*
 * Every request and every receive of an endpoint that lives ends once, whenever
 * the connection ends and however.
 */
TEST_F(ep, each_ends_once)
{
	unsigned int n = count(20, 1000), round, i;
	bool ended_send[EP_DEPTH], ended_recv[EP_DEPTH];
	struct dapx_event event;

	TH_LOG("%u rounds", n);
	for (round = 0; round < n; round++) {
		bool failed = false;

		memset(ended_send, 0, sizeof(ended_send));
		memset(ended_recv, 0, sizeof(ended_recv));
		OK(connect_cm(&self->ea, &self->eb));
		for (i = 0; i < EP_DEPTH; i++)
			OK(ep_recv(&self->ea, i, TARGET, 8));
		for (i = 0; i < EP_DEPTH / 2; i++)
			OK(ep_recv(&self->eb, i, TARGET, 8));
		for (i = 0; i < EP_DEPTH / 2; i++)
			OK(ep_send(&self->eb, i, 0, 8));
		for (i = 0; i < EP_DEPTH; i++)
			OK(ep_send(&self->ea, i, 0, 8));
		if (round % 3)
			sleep_ms(dice() % 3);
		if (round % 2)
			DISCONNECT(&self->ea, DAPX_DISCONNECT_ABRUPT);
		else
			DISCONNECT(&self->eb, DAPX_DISCONNECT_ABRUPT);

		for (i = 0; i < EP_DEPTH; i++) {
			OK(evd_next(&self->a.done, &event, PATIENCE_MS));
			ASSERT_EQ(DAPX_EVENT_COMPLETION, event.type);
			ASSERT_GT(EP_DEPTH, event.completion.wr_id);
			ASSERT_FALSE(ended_send[event.completion.wr_id]);
			ended_send[event.completion.wr_id] = true;
			/* In order: once one failed, all fail. */
			ASSERT_TRUE(in_order(&event, i));
			if (event.completion.status)
				failed = true;
			else
				ASSERT_FALSE(failed);
		}
		for (i = 0; i < EP_DEPTH; i++) {
			OK(evd_next(&self->a.recv, &event, PATIENCE_MS));
			ASSERT_EQ(DAPX_EVENT_COMPLETION, event.type);
			ASSERT_GT(EP_DEPTH, event.completion.wr_id);
			ASSERT_FALSE(ended_recv[event.completion.wr_id]);
			ended_recv[event.completion.wr_id] = true;
			ASSERT_TRUE(in_order(&event, i));
		}
		OK(ep_await_state(&self->ea, DAPX_EP_DISCONNECTED));
		OK(ep_await_state(&self->eb, DAPX_EP_DISCONNECTED));
		sleep_ms(10);
		EXPECT_EQ(0, evd_drain(&self->a.done));
		EXPECT_EQ(0, evd_drain(&self->a.recv));
		OK(disconnect_reset(&self->ea, &self->eb));
	}
}

/* ---- reset ---- */

TEST_F(ep, reset)
{
	unsigned int n = count(10, 500), round;
	__u32 last = 0, tail;

	TH_LOG("%u rounds", n);
	for (round = 0; round < n; round++) {
		struct dapx_ep_reset reset = { .ep = self->ea.handle };

		if (round % 2 && !on_siw())
			OK(connect_qp(&self->ea, &self->eb, NULL));
		else
			OK(connect_cm(&self->ea, &self->eb));
		OK(ep_exchange(&self->ea, &self->eb));
		test_err(EBADFD, ep_reset, self->a.fd, .ep = self->ea.handle);
		OK(ep_recv(&self->ea, 1, TARGET, 8));
		DISCONNECT(&self->ea, DAPX_DISCONNECT_ABRUPT);
		DISCONNECT(&self->eb, DAPX_DISCONNECT_ABRUPT);
		OK(ep_await_state(&self->ea, DAPX_EP_DISCONNECTED));
		/* Published without a doorbell: looked at by chance, if at all. */
		OK(ep_push_send(&self->ea, &(struct dapx_send_wr){}, NULL));
		tail = *self->ea.send.tail;
		ASSERT_EQ(0, _test_cmd_ep_reset(self->a.fd, &reset));
		EXPECT_NE(0, reset.out_qp_num);
		EXPECT_NE(last, reset.out_qp_num);
		last = reset.out_qp_num;
		EXPECT_EQ(last, QUERY(&self->ea).out_qp_num);
		EXPECT_EQ(DAPX_EP_UNCONNECTED, ep_state(&self->ea));
		EXPECT_EQ(DAPX_EP_UNCONNECTED, ep_shown_state(&self->ea));
		EXPECT_EQ(tail, *self->ea.send.tail);
		EXPECT_EQ(tail, *self->ea.send.head);
		EXPECT_EQ(0, ring_used(&self->ea.recv));
		EXPECT_EQ(0, QUERY(&self->ea).out_remote_qp_num);
		EXPECT_EQ(0, QUERY(&self->ea).out_remote.ss_family);
		OK(ep_await_state(&self->eb, DAPX_EP_DISCONNECTED));
		test_cmd(ep_reset, self->b.fd, .ep = self->eb.handle);
		evd_drain(&self->a.done);
		evd_drain(&self->a.recv);
		evd_drain(&self->a.conn);
		evd_drain(&self->b.conn);
	}
	/* Unconnected already: no effect. */
	EXPECT_EQ(QUERY(&self->ea).out_qp_num,
		  test_cmd(ep_reset, self->a.fd,
			   .ep = self->ea.handle).out_qp_num);
}

/* ---- many ---- */

TEST_F(ep, many)
{
	unsigned int n = count(200, 1000), i;
	struct ep *ea, *eb;
	struct listener listener;
	struct dapx_event event;
	struct dapx_ep_create cmd;

	TH_LOG("%u endpoints on each side", n);
	ea = calloc(n, sizeof(*ea));
	eb = calloc(n, sizeof(*eb));
	ASSERT_NE(NULL, ea);
	ASSERT_NE(NULL, eb);
	OK(listener_open(&self->b, &listener));
	for (i = 0; i < n; i++) {
		ep_usual(&self->a, &cmd);
		cmd.user_data = i;
		OK(ep_make(&self->a, &cmd, &ea[i]));
		ep_usual(&self->b, &cmd);
		cmd.user_data = i;
		OK(ep_make(&self->b, &cmd, &eb[i]));
		OK(ep_recv(&eb[i], i, TARGET, 64));
	}
	for (i = 0; i < n; i++)
		OK(connect_through(&ea[i], &listener, &eb[i]));
	/* All of them at once, some more than the EVDs hold. */
	for (i = 0; i < n; i++)
		OK(ep_send(&ea[i], i, 0, 64));
	for (i = 0; i < n; i++) {
		OK(evd_next(&self->b.recv, &event, PATIENCE_MS));
		ASSERT_EQ(DAPX_EVENT_COMPLETION, event.type);
		ASSERT_EQ(DAPX_STATUS_SUCCESS, event.completion.status);
		ASSERT_GT(n, event.user_data);
		EXPECT_EQ(event.user_data, event.completion.wr_id);
		EXPECT_EQ(eb[event.user_data].handle, event.handle);
		/* Once each. */
		eb[event.user_data].handle |= 1U << 31;
	}
	for (i = 0; i < n; i++)
		eb[i].handle &= ~(1U << 31);
	for (i = 0; i < n; i++) {
		OK(evd_next(&self->a.done, &event, PATIENCE_MS));
		ASSERT_EQ(DAPX_STATUS_SUCCESS, event.completion.status);
		EXPECT_EQ(ea[event.user_data].handle, event.handle);
	}
	for (i = 0; i < n; i += 2)
		OK(ep_destroy(&ea[i]));
	for (i = 0; i < n; i += 2)
		OK(ep_await_state(&eb[i], DAPX_EP_DISCONNECTED));
	for (i = 1; i < n; i += 2)
		EXPECT_EQ(DAPX_EP_CONNECTED, ep_state(&eb[i]));
	/* The rest goes with the files. */
	free(ea);
	free(eb);
}

/* ---- a peer that is not dapx ---- */

struct verbs {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	__u8 mem[4096];
};

static int verbs_open(struct verbs *verbs, const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	int i;

	for (i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			verbs->context = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	if (!verbs->context)
		return because("libibverbs has no %s: %m", name);
	verbs->pd = ibv_alloc_pd(verbs->context);
	verbs->cq = ibv_create_cq(verbs->context, 16, NULL, NULL, 0);
	verbs->mr = ibv_reg_mr(verbs->pd, verbs->mem, sizeof(verbs->mem),
			       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			       IBV_ACCESS_REMOTE_READ |
			       IBV_ACCESS_REMOTE_ATOMIC);
	init.send_cq = verbs->cq;
	init.recv_cq = verbs->cq;
	verbs->qp = ibv_create_qp(verbs->pd, &init);
	return verbs->qp && verbs->mr ? 0 : because("libibverbs: %m");
}

static void verbs_close(struct verbs *verbs)
{
	ibv_destroy_qp(verbs->qp);
	ibv_dereg_mr(verbs->mr);
	ibv_destroy_cq(verbs->cq);
	ibv_dealloc_pd(verbs->pd);
	ibv_close_device(verbs->context);
	free(verbs);
}

static int verbs_connect(struct verbs *verbs, __u32 dest_qp_num,
			 const __u8 dgid[16], int sgid_index)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC,
	};

	if (ibv_modify_qp(verbs->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
			  IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		return because("INIT: %m");
	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = IBV_MTU_1024;
	attr.dest_qp_num = dest_qp_num;
	attr.max_dest_rd_atomic = 8;
	attr.min_rnr_timer = 1;
	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = 1;
	memcpy(attr.ah_attr.grh.dgid.raw, dgid, 16);
	attr.ah_attr.grh.sgid_index = sgid_index;
	attr.ah_attr.grh.hop_limit = 64;
	if (ibv_modify_qp(verbs->qp, &attr, IBV_QP_STATE | IBV_QP_AV |
			  IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		return because("RTR: %m");
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 14;
	attr.retry_cnt = 7;
	attr.rnr_retry = 7;
	attr.max_rd_atomic = 8;
	if (ibv_modify_qp(verbs->qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT |
			  IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			  IBV_QP_MAX_QP_RD_ATOMIC))
		return because("RTS: %m");
	return 0;
}

/* How the request, which must be the next, ends. */
static int verbs_status(struct verbs *verbs, __u64 wr_id)
{
	__u64 deadline = in_ms(PATIENCE_MS);
	struct ibv_wc wc;

	while (!ibv_poll_cq(verbs->cq, 1, &wc))
		if (now_ns() > deadline)
			return because("no completion of the verbs peer");
	if (wc.wr_id != wr_id)
		return because("completion of %llu", (unsigned long long)wc.wr_id);
	return wc.status;
}

static int verbs_wait(struct verbs *verbs, __u64 wr_id)
{
	int status = verbs_status(verbs, wr_id);

	return status > 0 ? because("%s", ibv_wc_status_str(status)) : status;
}

TEST_F(ep, verbs_peer)
{
	struct dapx_send_wr wr = {
		.wr_id = 3, .opcode = DAPX_OP_RDMA_WRITE, .num_sge = 1,
		.flags = DAPX_SEND_SIGNALED,
	};
	struct dapx_sge mine;
	struct ibv_recv_wr recv = { .wr_id = 1, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = { .wr_id = 2, .num_sge = 1 }, *bad_send;
	struct verbs *verbs = calloc(1, sizeof(*verbs));
	struct dapx_event event;
	__u8 gid_a[16], gid_b[16];
	struct ibv_sge theirs;
	int index;

	if (NO_QP_NUMBERS)
		SKIP(return, "%s has no exchange of QP numbers", self->a.device);
	OK(verbs_open(verbs, self->b.device));
	ASSERT_LE(0, host_gid_index(&self->a, gid_a));
	index = host_gid_index(&self->b, gid_b);
	ASSERT_LE(0, index);
	OK(qp_init(&self->ea));
	OK(qp_rtr(&self->ea, verbs->qp->qp_num, gid_b, NULL));
	OK(qp_rts(&self->ea, NULL));
	OK(verbs_connect(verbs, self->ea.qp_num, gid_a, index));

	/* A message there, a message back. */
	theirs.addr = (uintptr_t)verbs->mem;
	theirs.length = 1000;
	theirs.lkey = verbs->mr->lkey;
	recv.sg_list = &theirs;
	send.sg_list = &theirs;
	memset(self->a.mem, 0x31, 1000);
	ASSERT_EQ(0, ibv_post_recv(verbs->qp, &recv, &bad_recv));
	OK(ep_send(&self->ea, 1, 0, 1000));
	OK(expect_completion(&self->a.done, 1, DAPX_STATUS_SUCCESS, NULL));
	OK(verbs_wait(verbs, 1));
	EXPECT_EQ(0, memcmp(self->a.mem, verbs->mem, 1000));
	memset(verbs->mem, 0x32, 1000);
	OK(ep_recv(&self->ea, 2, TARGET, 1000));
	send.opcode = IBV_WR_SEND_WITH_IMM;
	send.send_flags = IBV_SEND_SIGNALED;
	send.imm_data = 0x01020304;
	ASSERT_EQ(0, ibv_post_send(verbs->qp, &send, &bad_send));
	OK(verbs_wait(verbs, 2));
	OK(expect_completion(&self->a.recv, 2, DAPX_STATUS_SUCCESS, &event));
	EXPECT_EQ(1000, event.completion.byte_len);
	EXPECT_EQ(DAPX_COMPLETION_IMM, event.completion.flags);
	EXPECT_EQ(0x01020304, event.completion.imm_data);
	EXPECT_EQ(0, memcmp(self->a.mem + TARGET, verbs->mem, 1000));

	/* Writes, reads, atomics, each way. */
	memset(self->a.mem, 0x33, 1000);
	mine = host_sge(&self->a, 0, 1000);
	wr.remote_addr = (uintptr_t)verbs->mem + 2000;
	wr.rkey = verbs->mr->rkey;
	OK(ep_post_send(&self->ea, &wr, &mine));
	OK(expect_completion(&self->a.done, 3, DAPX_STATUS_SUCCESS, NULL));
	EXPECT_EQ(0, memcmp(self->a.mem, verbs->mem + 2000, 1000));
	send.opcode = IBV_WR_RDMA_WRITE;
	send.wr_id = 4;
	send.wr.rdma.remote_addr = (uintptr_t)self->a.mem + TARGET;
	send.wr.rdma.rkey = self->a.rkey;
	memset(verbs->mem, 0x34, 1000);
	ASSERT_EQ(0, ibv_post_send(verbs->qp, &send, &bad_send));
	OK(verbs_wait(verbs, 4));
	EXPECT_EQ(0, memcmp(self->a.mem + TARGET, verbs->mem, 1000));
	wr.wr_id = 5;
	wr.opcode = DAPX_OP_FETCH_ADD;
	wr.remote_addr = (uintptr_t)verbs->mem & ~7ULL;
	wr.compare_add = 1;
	mine.length = 8;
	wr.remote_addr += 1024;
	*(__u64 *)(uintptr_t)wr.remote_addr = 41;
	OK(ep_post_send(&self->ea, &wr, &mine));
	OK(expect_completion(&self->a.done, 5, DAPX_STATUS_SUCCESS, NULL));
	EXPECT_EQ(41, *(__u64 *)self->a.mem);
	EXPECT_EQ(42, *(__u64 *)(uintptr_t)wr.remote_addr);

	/* A key that is none of this endpoint's PD: the peer is refused. */
	send.wr_id = 6;
	send.wr.rdma.rkey = self->a.rkey ^ 0x5500;
	ASSERT_EQ(0, ibv_post_send(verbs->qp, &send, &bad_send));
	EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, verbs_status(verbs, 6));
	verbs_close(verbs);
}

/* What the RDMA CM says next, which must be this. */
static int cm_event(struct rdma_event_channel *channel,
		    enum rdma_cm_event_type wanted)
{
	struct pollfd pollfd = { .fd = channel->fd, .events = POLLIN };
	enum rdma_cm_event_type type;
	struct rdma_cm_event *event;

	if (poll(&pollfd, 1, PATIENCE_MS) != 1)
		return because("no %s", rdma_event_str(wanted));
	if (rdma_get_cm_event(channel, &event))
		return because("rdma_get_cm_event: %m");
	type = event->event;
	rdma_ack_cm_event(event);
	return type == wanted ? 0 : because("%s instead of %s",
					    rdma_event_str(type),
					    rdma_event_str(wanted));
}

/* As the CM has them. */
static int verbs_step(struct verbs *verbs, struct rdma_cm_id *id,
		      enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask;

	if (rdma_init_qp_attr(id, &attr, &mask) ||
	    ibv_modify_qp(verbs->qp, &attr, mask))
		return because("to state %d: %m", state);
	return 0;
}

/* A peer that sends before it says that it is ready. */
struct early {
	struct verbs *verbs;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ep ep;			/* of the other side */
};

static int early_connect(struct host *host, struct host *peer, struct early *early)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	struct __kernel_sockaddr_storage addr;
	struct listener listener;
	struct dapx_ep_create cmd;
	struct dapx_event event;

	early->verbs = calloc(1, sizeof(*early->verbs));
	early->channel = rdma_create_event_channel();
	ep_usual(host, &cmd);
	cmd.request_evd = host->conn.handle;
	cmd.recv_evd = host->conn.handle;
	if (ep_make(host, &cmd, &early->ep) || ep_recv(&early->ep, 2, TARGET, 100) ||
	    listener_open(host, &listener) || verbs_open(early->verbs, peer->device))
		return -1;
	set_addr(&addr, host->addr, listener.port);
	if (!early->channel ||
	    rdma_create_id(early->channel, &early->id, NULL, RDMA_PS_TCP) ||
	    rdma_resolve_addr(early->id, NULL, (struct sockaddr *)&addr, PATIENCE_MS))
		return because("rdma_cm: %m");
	if (cm_event(early->channel, RDMA_CM_EVENT_ADDR_RESOLVED))
		return -1;
	if (strcmp(peer->device, ibv_get_device_name(early->id->verbs->device)))
		return because("another device");
	if (rdma_resolve_route(early->id, PATIENCE_MS))
		return because("rdma_resolve_route: %m");
	if (cm_event(early->channel, RDMA_CM_EVENT_ROUTE_RESOLVED) ||
	    verbs_step(early->verbs, early->id, IBV_QPS_INIT))
		return -1;
	param.qp_num = early->verbs->qp->qp_num;
	if (rdma_connect(early->id, &param))
		return because("rdma_connect: %m");
	if (listener_request(&listener, &event) || ep_accept(&early->ep, event.request.cm) ||
	    cm_event(early->channel, RDMA_CM_EVENT_CONNECT_RESPONSE) ||
	    verbs_step(early->verbs, early->id, IBV_QPS_RTR) ||
	    verbs_step(early->verbs, early->id, IBV_QPS_RTS))
		return -1;
	if (ep_shown_state(&early->ep) != DAPX_EP_COMPLETION_PENDING)
		return because("it is connected before its peer has said anything");
	return evd_quiet(&host->conn);
}

/* Both ends post a receive, and the peer sends. */
static int early_message(struct early *early)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)early->verbs->mem, .length = 100,
		.lkey = early->verbs->mr->lkey,
	};
	struct ibv_recv_wr recv = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = {
		.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1,
	}, *bad_send;

	if (ibv_post_recv(early->verbs->qp, &recv, &bad_recv) ||
	    ibv_post_send(early->verbs->qp, &send, &bad_send))
		return because("a work request of verbs");
	return expect_connection(&early->ep.host->conn, early->ep.handle,
				 DAPX_CONNECTION_ESTABLISHED, NULL) ||
	       expect_completion(&early->ep.host->conn, 2, DAPX_STATUS_SUCCESS, NULL);
}

static void early_close(struct early *early)
{
	rdma_destroy_id(early->id);
	rdma_destroy_event_channel(early->channel);
	verbs_close(early->verbs);
}

/* An EVD for everything must not show a completion of a connection that it has not shown yet. */
TEST_F(ep, established_by_a_message)
{
	struct early early;

	if (NO_QP_NUMBERS)
		SKIP(return, "%s takes no queue pair apart from its CM id", self->a.device);
	OK(early_connect(&self->a, &self->b, &early));
	OK(early_message(&early));
	/* And can be answered at once. */
	OK(ep_send(&early.ep, 3, 0, 50));
	OK(expect_completion(&self->a.conn, 3, DAPX_STATUS_SUCCESS, NULL));
	OK(verbs_wait(early.verbs, 1));

	/* The word that comes too late is not news; the connection ends as any. */
	ASSERT_EQ(0, rdma_establish(early.id));
	OK(evd_quiet(&self->a.conn));
	test_cmd(ep_disconnect, self->a.fd, .ep = early.ep.handle);
	OK(cm_event(early.channel, RDMA_CM_EVENT_DISCONNECTED));
	rdma_disconnect(early.id);
	OK(expect_connection(&self->a.conn, early.ep.handle,
			     DAPX_CONNECTION_DISCONNECTED, NULL));
	early_close(&early);
}

/* Then it ends when the peer says that it is ready, and knows what it is told. */
TEST_F(ep, disconnected_before_the_peer_is_ready)
{
	struct early early;

	if (NO_QP_NUMBERS)
		SKIP(return, "%s takes no queue pair apart from its CM id", self->a.device);
	OK(early_connect(&self->a, &self->b, &early));
	OK(early_message(&early));
	test_cmd(ep_disconnect, self->a.fd, .ep = early.ep.handle);
	EXPECT_EQ(DAPX_EP_DISCONNECT_PENDING, ep_shown_state(&early.ep));
	ASSERT_EQ(0, rdma_establish(early.id));
	OK(cm_event(early.channel, RDMA_CM_EVENT_DISCONNECTED));
	rdma_disconnect(early.id);
	OK(expect_connection(&self->a.conn, early.ep.handle,
			     DAPX_CONNECTION_DISCONNECTED, NULL));
	early_close(&early);
}

/* The same, and nothing of this side is waited for. */
TEST_F(ep, broken_before_the_peer_is_ready)
{
	struct early early;

	if (NO_QP_NUMBERS)
		SKIP(return, "%s takes no queue pair apart from its CM id", self->a.device);
	OK(early_connect(&self->a, &self->b, &early));
	OK(early_message(&early));
	test_cmd(ep_disconnect, self->a.fd, .ep = early.ep.handle,
		 .flags = DAPX_DISCONNECT_ABRUPT);
	OK(expect_connection(&self->a.conn, early.ep.handle,
			     DAPX_CONNECTION_DISCONNECTED, NULL));
	ASSERT_EQ(0, rdma_establish(early.id));
	OK(cm_event(early.channel, RDMA_CM_EVENT_DISCONNECTED));
	rdma_disconnect(early.id);
	early_close(&early);
}

/* The answer to the peer's request is not repeated, which would take a minute. */
TEST_F(ep, freed_before_the_peer_is_ready)
{
	struct early early;
	__u64 start;

	if (NO_QP_NUMBERS)
		SKIP(return, "%s takes no queue pair apart from its CM id", self->a.device);
	OK(early_connect(&self->a, &self->b, &early));
	OK(early_message(&early));
	start = now_ns();
	OK(ep_destroy(&early.ep));
	if (in_virtual_time())
		EXPECT_GT(5000000000ULL, now_ns() - start);
	/* To a peer that was not ready, it was a set-up. */
	OK(cm_event(early.channel, RDMA_CM_EVENT_REJECTED));
	early_close(&early);
}

TEST_HARNESS_MAIN
