// SPDX-License-Identifier: GPL-2.0
/*
 * XRC receive queue pairs: whose they are, and how they end.
 *
 * a sends; the others are contexts, or processes, of the other host that share a domain.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "harness/cm.h"
#include "harness/dice.h"
#include "harness/fabric.h"
#include "harness/machine.h"
#include "harness/resources.h"
#include "harness/xrc.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 600

#define TAKE 0x20000	/* where receives are */
#define NO_QP 0xfffffe

FIXTURE(xrc_qp)
{
	struct host a;
	struct host b;
	struct host c;
	struct xrc_srq srq;	/* b's */
	struct xrc_srq other;	/* c's */
	struct ep ep;
	__u32 qp_num;		/* b's, not connected */
	int file;
	int file_a;
	char before[512];
};

FIXTURE_SETUP(xrc_qp)
{
	self->file_a = memfd_create("a", 0);
	self->file = memfd_create("b", 0);
	ASSERT_LE(0, self->file_a);
	ASSERT_LE(0, self->file);
	OK(rdma_resources(self->before));
	OK(host_set_up(&self->a, 0));
	OK(host_xrc(&self->a, self->file_a));
	OK(host_set_up(&self->b, 1));
	OK(host_xrc(&self->b, self->file));
	OK(host_set_up(&self->c, 1));
	OK(host_xrc(&self->c, self->file));
	OK(xrc_srq_make(&self->b, 64, &self->srq));
	OK(xrc_srq_make(&self->c, 64, &self->other));
	OK(xrc_ep_create(&self->a, &self->ep));
	OK(xrc_qp_make(&self->b, &self->qp_num));
}

FIXTURE_TEARDOWN(xrc_qp)
{
	ep_forget(&self->ep);
	ring_unmap(&self->srq.srq.ring);
	ring_unmap(&self->other.srq.ring);
	host_close(&self->a);
	host_close(&self->b);
	host_close(&self->c);
	close(self->file);
	close(self->file_a);
	/* Nothing is left, whatever the test did. */
	OK(await_resources(self->before));
}

/* 0 or an errno. */
static int enroll(const struct host *host, __u32 qp_num, __u32 *handle)
{
	struct dapx_xrc_qp_register cmd = {
		.xrcd = host->xrcd, .qp_num = qp_num,
		.evd = host->conn.handle,
	};

	if (_test_cmd_xrc_qp_register(host->fd, &cmd))
		return errno;
	if (handle)
		*handle = cmd.out_xrc_qp;
	return 0;
}

static int leave(const struct host *host, __u32 qp_num)
{
	struct dapx_xrc_qp_unregister cmd = {
		.xrcd = host->xrcd, .qp_num = qp_num,
	};

	return _test_cmd_xrc_qp_unregister(host->fd, &cmd) ? errno : 0;
}

static int query(const struct host *host, __u32 qp_num,
		 struct dapx_xrc_qp_query *cmd)
{
	*cmd = (struct dapx_xrc_qp_query) {
		.xrcd = host->xrcd, .qp_num = qp_num,
	};
	return _test_cmd_xrc_qp_query(host->fd, cmd) ? errno : 0;
}

static int step(const struct host *host, __u32 qp_num, __u32 state)
{
	struct dapx_xrc_qp_modify cmd = {
		.xrcd = host->xrcd, .qp_num = qp_num,
		.qp = { .state = state, .port = 1 },
	};

	return _test_cmd_xrc_qp_modify(host->fd, &cmd) ? errno : 0;
}

static int close_domain(const struct host *host)
{
	struct dapx_free cmd = { .handle = host->xrcd };

	return _test_cmd_free(host->fd, &cmd) ? errno : 0;
}

/* A message to @srq, of @host, arrives. */
static int works(struct ep *ep, struct xrc_srq *srq)
{
	struct host *host = srq->srq.host;

	memset(ep->host->mem, dice(), 100);
	if (srq_recv(&srq->srq, 1, TAKE, 100) ||
	    xrc_send(ep, srq->number, 2, 0, 100) ||
	    expect_completion(&ep->host->done, 2, DAPX_STATUS_SUCCESS, NULL) ||
	    expect_completion(&host->recv, 1, DAPX_STATUS_SUCCESS, NULL))
		return -1;
	if (memcmp(ep->host->mem, host->mem + TAKE, 100))
		return because("the data differ");
	return 0;
}

/* ---- registration ---- */

TEST_F(xrc_qp, who_makes_it_is_registered)
{
	struct dapx_xrc_qp_query q;

	ASSERT_EQ(0, query(&self->b, self->qp_num, &q));
	EXPECT_NE(0, q.out_xrc_qp);
	EXPECT_EQ(1, q.out_registrations);
	EXPECT_EQ(DAPX_QP_RESET, q.out_qp.state);
	EXPECT_EQ(0, q.out_messages);
	/* Whoever has the domain open may look. */
	ASSERT_EQ(0, query(&self->c, self->qp_num, &q));
	EXPECT_EQ(0, q.out_xrc_qp);
	EXPECT_EQ(1, q.out_registrations);
}

TEST_F(xrc_qp, registering_twice_is_registering_once)
{
	struct dapx_xrc_qp_query q;
	__u32 first, second;

	ASSERT_EQ(0, enroll(&self->c, self->qp_num, &first));
	ASSERT_EQ(0, enroll(&self->c, self->qp_num, &second));
	EXPECT_EQ(first, second);
	ASSERT_EQ(0, query(&self->c, self->qp_num, &q));
	EXPECT_EQ(first, q.out_xrc_qp);
	EXPECT_EQ(2, q.out_registrations);
	/* Who wants one of his own hears that there is one. */
	test_err(EEXIST, xrc_qp_register, self->c.fd, .xrcd = self->c.xrcd,
		 .qp_num = self->qp_num, .flags = DAPX_XRC_QP_REGISTER_EXCL);
	EXPECT_EQ(0, leave(&self->c, self->qp_num));
	EXPECT_EQ(EINVAL, leave(&self->c, self->qp_num));
	ASSERT_EQ(0, query(&self->b, self->qp_num, &q));
	EXPECT_EQ(1, q.out_registrations);
	test_cmd(xrc_qp_register, self->c.fd, .xrcd = self->c.xrcd,
		 .qp_num = self->qp_num, .flags = DAPX_XRC_QP_REGISTER_EXCL);
	EXPECT_EQ(0, leave(&self->c, self->qp_num));
}

/* A registration is an object, too. */
TEST_F(xrc_qp, freed_as_an_object)
{
	struct dapx_xrc_qp_query q;
	__u32 handle;

	ASSERT_EQ(0, enroll(&self->c, self->qp_num, &handle));
	test_cmd(free, self->c.fd, .handle = handle,
		 .type = DAPX_OBJECT_XRC_QP);
	EXPECT_EQ(EINVAL, leave(&self->c, self->qp_num));
	ASSERT_EQ(0, query(&self->b, self->qp_num, &q));
	EXPECT_EQ(1, q.out_registrations);
}

TEST_F(xrc_qp, numbers_that_are_none)
{
	struct dapx_xrc_qp_query q;

	EXPECT_EQ(EINVAL, enroll(&self->c, NO_QP, NULL));
	EXPECT_EQ(EINVAL, leave(&self->b, NO_QP));
	EXPECT_EQ(EINVAL, query(&self->b, NO_QP, &q));
	EXPECT_EQ(EINVAL, step(&self->b, NO_QP, DAPX_QP_INIT));
	/* A queue pair, but no receive queue pair. */
	EXPECT_EQ(EINVAL, enroll(&self->a, self->ep.qp_num, NULL));
	/* A receive queue pair of another domain. */
	EXPECT_EQ(EINVAL, enroll(&self->a, self->qp_num, NULL));
	EXPECT_EQ(EINVAL, leave(&self->c, self->qp_num));
}

TEST_F(xrc_qp, last_one_ends_it)
{
	struct dapx_xrc_qp_query q;

	ASSERT_EQ(0, enroll(&self->c, self->qp_num, NULL));
	EXPECT_EQ(0, leave(&self->b, self->qp_num));
	EXPECT_EQ(0, query(&self->b, self->qp_num, &q));
	EXPECT_EQ(0, leave(&self->c, self->qp_num));
	EXPECT_EQ(EINVAL, query(&self->b, self->qp_num, &q));
	EXPECT_EQ(EINVAL, enroll(&self->b, self->qp_num, NULL));
}

TEST_F(xrc_qp, modified_by_the_registered_only)
{
	if (on_siw())
		SKIP(return, "iWARP has no exchange of QP numbers");
	EXPECT_EQ(EACCES, step(&self->c, self->qp_num, DAPX_QP_INIT));
	EXPECT_EQ(EBADFD, step(&self->b, self->qp_num, DAPX_QP_RTS));
	ASSERT_EQ(0, enroll(&self->c, self->qp_num, NULL));
	EXPECT_EQ(0, step(&self->c, self->qp_num, DAPX_QP_INIT));
	EXPECT_EQ(EBADFD, step(&self->b, self->qp_num, DAPX_QP_INIT));
}

TEST_F(xrc_qp, domain_in_use_is_not_closed)
{
	struct dapx_xrc_qp_query q;

	EXPECT_EQ(EBUSY, close_domain(&self->b));
	test_cmd(free, self->b.fd, .handle = self->srq.srq.handle);
	EXPECT_EQ(EBUSY, close_domain(&self->b));
	/* Nothing has changed. */
	EXPECT_EQ(0, query(&self->b, self->qp_num, &q));
	EXPECT_EQ(0, leave(&self->b, self->qp_num));
	EXPECT_EQ(0, close_domain(&self->b));

	EXPECT_EQ(EBUSY, close_domain(&self->a));
	OK(ep_destroy(&self->ep));
	EXPECT_EQ(0, close_domain(&self->a));
}

/* ---- it belongs to all of them ---- */

TEST_F(xrc_qp, outlives_who_made_it)
{
	struct dapx_event event;

	OK(xrc_connect(&self->ep, &self->b, self->qp_num));
	OK(works(&self->ep, &self->srq));
	OK(works(&self->ep, &self->other));
	ASSERT_EQ(0, enroll(&self->c, self->qp_num, NULL));
	ring_unmap(&self->srq.srq.ring);
	host_close(&self->b);
	OK(works(&self->ep, &self->other));
	/* The queue of who left is gone. */
	OK(xrc_send(&self->ep, self->srq.number, 3, 0, 100));
	OK(expect_completion(&self->a.done, 3, DAPX_STATUS_REMOTE_QUEUE, NULL));
	OK(expect_async(&self->c.conn, DAPX_ASYNC_XRC_QP_ERROR, &event));
	EXPECT_EQ(self->qp_num, event.async.qp_num);
}

TEST_F(xrc_qp, events_go_to_all)
{
	struct dapx_event event;
	__u32 handle;

	ASSERT_EQ(0, enroll(&self->c, self->qp_num, &handle));
	OK(xrc_connect(&self->ep, &self->b, self->qp_num));
	OK(works(&self->ep, &self->other));
	OK(expect_async(&self->b.conn, DAPX_ASYNC_XRC_QP_ESTABLISHED, &event));
	EXPECT_EQ(self->qp_num, event.async.qp_num);
	OK(expect_async(&self->c.conn, DAPX_ASYNC_XRC_QP_ESTABLISHED, &event));
	EXPECT_EQ(self->qp_num, event.async.qp_num);
	EXPECT_EQ(handle, event.handle);
	OK(xrc_send(&self->ep, 0xabcdef, 3, 0, 100));
	OK(expect_completion(&self->a.done, 3, DAPX_STATUS_REMOTE_QUEUE, NULL));
	OK(expect_async(&self->b.conn, DAPX_ASYNC_XRC_QP_ERROR, &event));
	OK(expect_async(&self->c.conn, DAPX_ASYNC_XRC_QP_ERROR, &event));
	/* Once each. */
	OK(evd_quiet(&self->b.conn));
	OK(evd_quiet(&self->c.conn));
}

/* Nothing else would ever come of it. */
TEST_F(xrc_qp, end_is_told_to_who_comes_late)
{
	struct dapx_event event;
	__u32 handle;

	OK(xrc_connect(&self->ep, &self->b, self->qp_num));
	OK(xrc_send(&self->ep, 0xabcdef, 3, 0, 100));
	OK(expect_async(&self->b.conn, DAPX_ASYNC_XRC_QP_ESTABLISHED, NULL));
	OK(expect_async(&self->b.conn, DAPX_ASYNC_XRC_QP_ERROR, NULL));
	ASSERT_EQ(0, enroll(&self->c, self->qp_num, &handle));
	ASSERT_TRUE(evd_poll(&self->c.conn, &event));
	EXPECT_EQ(DAPX_EVENT_ASYNC, event.type);
	EXPECT_EQ(DAPX_ASYNC_XRC_QP_ERROR, event.async.what);
	EXPECT_EQ(self->qp_num, event.async.qp_num);
	EXPECT_EQ(handle, event.handle);
	/* Once: not to who registers twice, nor to who knew. */
	ASSERT_EQ(0, enroll(&self->c, self->qp_num, NULL));
	OK(evd_quiet(&self->c.conn));
	OK(evd_quiet(&self->b.conn));
}

/* An end by the CM. */
TEST_F(xrc_qp, disconnect_is_told_to_who_comes_late)
{
	struct dapx_event event;

	OK(xrc_connect_cm(&self->ep, &self->b, self->qp_num));
	OK(works(&self->ep, &self->srq));
	OK(ep_destroy(&self->ep));
	OK(expect_async(&self->b.conn, DAPX_ASYNC_XRC_QP_ESTABLISHED, NULL));
	OK(expect_async(&self->b.conn, DAPX_ASYNC_XRC_QP_DISCONNECTED, NULL));
	ASSERT_EQ(0, enroll(&self->c, self->qp_num, NULL));
	ASSERT_TRUE(evd_poll(&self->c.conn, &event));
	EXPECT_EQ(DAPX_ASYNC_XRC_QP_DISCONNECTED, event.async.what);
}

/* An end by one of those that are registered, for all of them. */
TEST_F(xrc_qp, disconnected_by_one_of_them)
{
	struct dapx_xrc_qp_disconnect cmd = { .xrcd = self->c.xrcd, .qp_num = self->qp_num };
	struct dapx_xrc_qp_query q;

	OK(xrc_connect_cm(&self->ep, &self->b, self->qp_num));
	OK(works(&self->ep, &self->other));
	EXPECT_EQ(-1, _test_cmd_xrc_qp_disconnect(self->c.fd, &cmd));
	EXPECT_EQ(EACCES, errno);
	ASSERT_EQ(0, enroll(&self->c, self->qp_num, NULL));
	test_cmd(xrc_qp_disconnect, self->c.fd, .xrcd = self->c.xrcd, .qp_num = self->qp_num);
	OK(expect_connection(&self->a.conn, self->ep.handle, DAPX_CONNECTION_DISCONNECTED,
			     NULL));
	OK(expect_async(&self->b.conn, DAPX_ASYNC_XRC_QP_ESTABLISHED, NULL));
	OK(expect_async(&self->b.conn, DAPX_ASYNC_XRC_QP_DISCONNECTED, NULL));
	OK(expect_async(&self->c.conn, DAPX_ASYNC_XRC_QP_DISCONNECTED, NULL));
	EXPECT_EQ(0, query(&self->b, self->qp_num, &q));
	EXPECT_EQ(DAPX_QP_ERROR, q.out_qp.state);
	EXPECT_EQ(2, q.out_registrations);
	test_err(EBADFD, xrc_qp_disconnect, self->b.fd, .xrcd = self->b.xrcd,
		 .qp_num = self->qp_num);
	/* Once each. */
	OK(evd_quiet(&self->b.conn));
	OK(evd_quiet(&self->c.conn));
}

/* The CM cannot tell the peer before that has confirmed the answer, so it tells it then. */
TEST_F(xrc_qp, disconnected_before_the_peer_confirms)
{
	struct listener listener;
	struct dapx_event event;

	if (on_siw())
		SKIP(return, "iWARP has no such confirmation");
	OK(listener_open(&self->b, &listener));
	OK(ep_connect(&self->ep, &listener));
	OK(listener_request(&listener, &event));
	OK(host_mute(&self->a, true));
	test_cmd(xrc_qp_accept, self->b.fd, .xrcd = self->b.xrcd, .cm = event.request.cm,
		 .qp_num = self->qp_num);
	OK(expect_connection(&self->a.conn, self->ep.handle, DAPX_CONNECTION_ESTABLISHED, NULL));
	test_cmd(xrc_qp_disconnect, self->b.fd, .xrcd = self->b.xrcd, .qp_num = self->qp_num);
	OK(evd_quiet(&self->a.conn));
	OK(host_mute(&self->a, false));
	OK(expect_connection(&self->a.conn, self->ep.handle, DAPX_CONNECTION_DISCONNECTED,
			     NULL));
	OK(listener_close(&listener));
}

/* Nobody tells the peer, who notices when it sends; half a message is given back. */
TEST_F(xrc_qp, disconnected_without_a_connection_manager)
{
	static const struct qp_options options = {
		.timeout = 12, .retry_count = 2, .rnr_retry = 7, .path_mtu = 3,
	};

	if (on_siw())
		SKIP(return, "iWARP has no exchange of QP numbers");
	test_err(EBADFD, xrc_qp_disconnect, self->b.fd, .xrcd = self->b.xrcd,
		 .qp_num = self->qp_num);
	OK(xrc_connect_qp(&self->ep, &self->b, self->qp_num, &options));
	OK(works(&self->ep, &self->srq));
	OK(srq_recv(&self->srq.srq, 5, TAKE, 100));
	test_cmd(xrc_qp_disconnect, self->b.fd, .xrcd = self->b.xrcd, .qp_num = self->qp_num);
	OK(expect_async(&self->b.conn, DAPX_ASYNC_XRC_QP_ESTABLISHED, NULL));
	OK(expect_async(&self->b.conn, DAPX_ASYNC_XRC_QP_DISCONNECTED, NULL));
	OK(xrc_send(&self->ep, self->srq.number, 3, 0, 100));
	OK(expect_completion(&self->a.done, 3, DAPX_STATUS_TRANSPORT, NULL));
	/* The receive is there for another connection. */
	OK(evd_quiet(&self->b.recv));
}

/* ---- the device ---- */

/* Of either end, in the middle of messages: all that is asked of it then is EIO. */
TEST_F(xrc_qp, goes_with_the_device)
{
	struct dapx_xrc_qp_query q;
	unsigned int i;

	ASSERT_EQ(0, enroll(&self->c, self->qp_num, NULL));
	OK(xrc_connect_cm(&self->ep, &self->b, self->qp_num));
	OK(works(&self->ep, &self->other));
	for (i = 0; i < 32; i++)
		OK(srq_recv(&self->other.srq, i, TAKE, 20000));
	for (i = 0; i < 32; i++)
		OK(xrc_send(&self->ep, self->other.number, i, 0, 20000));
	OK(device_remove(&self->b));
	EXPECT_EQ(EIO, query(&self->b, self->qp_num, &q));
	EXPECT_EQ(EIO, leave(&self->c, self->qp_num));
	EXPECT_EQ(EIO, close_domain(&self->c));
	/* Who sent hears of it. */
	OK(ep_await_state(&self->ep, DAPX_EP_DISCONNECTED));
	OK(device_add(&self->b));
}

TEST_F(xrc_qp, goes_with_the_senders_device)
{
	struct dapx_event event;
	unsigned int i;

	OK(xrc_connect_cm(&self->ep, &self->b, self->qp_num));
	OK(works(&self->ep, &self->other));
	for (i = 0; i < 32; i++)
		OK(xrc_send(&self->ep, self->other.number, i, 0, 20000));
	OK(device_remove(&self->a));
	EXPECT_EQ(EIO, close_domain(&self->a));
	OK(device_add(&self->a));
	OK(expect_async(&self->b.conn, DAPX_ASYNC_XRC_QP_ESTABLISHED, NULL));
	OK(evd_next(&self->b.conn, &event, PATIENCE_MS));
	EXPECT_EQ(DAPX_EVENT_ASYNC, event.type);
	/* siw may reset the stream, as messages are under way. */
	if (!on_siw() || event.async.what != DAPX_ASYNC_XRC_QP_ERROR)
		EXPECT_EQ(DAPX_ASYNC_XRC_QP_DISCONNECTED, event.async.what);
}

/* ---- processes ---- */

struct child {
	pid_t pid;
	int say;
	int hear;
};

/* A process of its own; it has fd 3 to hear, 4 to say. */
static int child_start(struct child *child, int (*what)(int file, int hear, int say),
		       int file)
{
	int to[2], from[2];

	if (pipe(to) || pipe(from))
		return because("pipe: %m");
	child->pid = fork();
	if (child->pid < 0)
		return because("fork: %m");
	if (!child->pid) {
		close(to[1]);
		close(from[0]);
		_exit(what(file, to[0], from[1]) ? 1 : 0);
	}
	close(to[0]);
	close(from[1]);
	child->say = to[1];
	child->hear = from[0];
	return 0;
}

static int child_hear(struct child *child, void *data, size_t size)
{
	if (read(child->hear, data, size) != size)
		return because("a child ended early");
	return 0;
}

static int child_end(struct child *child, int signal)
{
	int status;

	if (signal)
		kill(child->pid, signal);
	else if (write(child->say, "", 1) != 1)
		return because("write: %m");
	if (waitpid(child->pid, &status, 0) != child->pid)
		return because("waitpid: %m");
	close(child->say);
	close(child->hear);
	if (signal ? !WIFSIGNALED(status) : status)
		return because("a child ended with 0x%x", status);
	return 0;
}

#define CHILD_MESSAGES 8

/* What a child tells first. */
struct place {
	__u32 srq_num;
	__u32 qp_num;
	__u64 addr;
	__u32 rkey;
};

/* Has a queue, and a receive queue pair; says when a message came. */
static int receiver(int file, int hear, int say)
{
	struct dapx_event event;
	struct xrc_srq srq;
	struct place place;
	struct host host;
	unsigned int i;
	char c;

	if (host_set_up(&host, 1) || host_xrc(&host, file) ||
	    xrc_srq_make(&host, 64, &srq) || xrc_qp_make(&host, &place.qp_num))
		return -1;
	place.srq_num = srq.number;
	place.addr = (uintptr_t)host.mem;
	place.rkey = host.rkey;
	for (i = 0; i < CHILD_MESSAGES; i++)
		if (srq_recv(&srq.srq, i, i * 4096, 4096))
			return -1;
	if (write(say, &place, sizeof(place)) != sizeof(place))
		return -1;
	for (i = 0; i < CHILD_MESSAGES; i++) {
		if (evd_next(&host.recv, &event, PATIENCE_MS))
			return -1;
		if (write(say, host.mem + event.completion.wr_id * 4096, 4096) != 4096)
			return -1;
	}
	return read(hear, &c, 1) == 1 ? 0 : -1;
}

/*
 * Three processes with a queue each, and the queue pair of the first is the one that is
 * used: it dies, and all but its queue goes on.
 */
TEST_F(xrc_qp, three_processes)
{
	struct child child[3];
	struct place place[3];
	struct host *a = &self->a;
	unsigned int round, i;
	__u8 data[4096];

	for (i = 0; i < 3; i++) {
		OK(child_start(&child[i], receiver, self->file));
		OK(child_hear(&child[i], &place[i], sizeof(place[i])));
	}
	/* Of who lives and who dies: this test is the third that is registered. */
	ASSERT_EQ(0, enroll(&self->c, place[0].qp_num, NULL));
	OK(xrc_connect(&self->ep, &self->c, place[0].qp_num));
	for (round = 0; round < CHILD_MESSAGES; round++) {
		if (round == CHILD_MESSAGES / 2)
			OK(child_end(&child[0], SIGKILL));
		for (i = round < CHILD_MESSAGES / 2 ? 0 : 1; i < 3; i++) {
			memset(a->mem, 16 * round + i, 4096);
			OK(xrc_send(&self->ep, place[i].srq_num, round, 0, 4096));
			OK(expect_completion(&a->done, round,
					     DAPX_STATUS_SUCCESS, NULL));
			OK(child_hear(&child[i], data, sizeof(data)));
			EXPECT_FALSE(memcmp(data, a->mem, sizeof(data)));
		}
	}
	OK(child_end(&child[1], 0));
	OK(child_end(&child[2], 0));
}

/* Its last process dies: the sender hears of it. */
TEST_F(xrc_qp, goes_with_the_last)
{
	struct dapx_xrc_qp_query q;
	struct child child;
	struct place place;

	OK(child_start(&child, receiver, self->file));
	OK(child_hear(&child, &place, sizeof(place)));
	ASSERT_EQ(0, enroll(&self->c, place.qp_num, NULL));
	OK(xrc_connect_cm(&self->ep, &self->c, place.qp_num));
	OK(works(&self->ep, &self->other));
	EXPECT_EQ(0, leave(&self->c, place.qp_num));
	EXPECT_EQ(0, query(&self->c, place.qp_num, &q));
	OK(child_end(&child, SIGKILL));
	OK(expect_connection(&self->a.conn, self->ep.handle,
			     DAPX_CONNECTION_DISCONNECTED, NULL));
	EXPECT_EQ(EINVAL, query(&self->c, place.qp_num, &q));
}

/* Killed at any moment: what is left is what was there. */
TEST_F(xrc_qp, killed_at_any_moment)
{
	unsigned int n = count(30, 1000), i;
	struct child child;
	struct place place;
	struct ep ep;

	for (i = 0; i < n; i++) {
		OK(child_start(&child, receiver, self->file));
		if (i % 2) {
			OK(child_hear(&child, &place, sizeof(place)));
			OK(xrc_ep_create(&self->a, &ep));
			ASSERT_EQ(0, enroll(&self->c, place.qp_num, NULL));
			OK(xrc_connect(&ep, &self->c, place.qp_num));
			memset(self->a.mem, 0, HOST_MEMORY);
			OK(xrc_send(&ep, place.srq_num, i, 0, 4096));
			OK(xrc_send(&ep, place.srq_num, i, 0, 4096));
		}
		usleep(dice() % 20000);
		OK(child_end(&child, SIGKILL));
		if (i % 2) {
			EXPECT_EQ(0, leave(&self->c, place.qp_num));
			OK(ep_destroy(&ep));
			evd_drain(&self->a.done);
			evd_drain(&self->a.conn);
			evd_drain(&self->c.conn);
		}
	}
}

TEST_HARNESS_MAIN
