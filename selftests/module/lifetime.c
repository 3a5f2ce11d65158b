// SPDX-License-Identifier: GPL-2.0
/*
 * Ends that nobody asked for: killed processes, forked and passed descriptors,
 * objects freed under other threads, devices that go away. After each the RDMA
 * subsystem must count what it counted before.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "harness/cm.h"
#include "harness/dice.h"
#include "harness/fabric.h"
#include "harness/process.h"
#include "harness/resources.h"
#include "harness/srq.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 600

FIXTURE(life)
{
	struct host a;
	struct host b;
	struct ep ea;
	struct ep eb;
	char before[512];
};

FIXTURE_SETUP(life)
{
	OK(rdma_resources(self->before));
	OK(host_set_up(&self->a, 0));
	OK(host_set_up(&self->b, 1));
	OK(ep_create(&self->a, &self->ea));
	OK(ep_create(&self->b, &self->eb));
}

FIXTURE_TEARDOWN(life)
{
	ep_forget(&self->ea);
	ep_forget(&self->eb);
	host_close(&self->a);
	host_close(&self->b);
	EXPECT_EQ(0, await_resources(self->before)) TH_LOG("%s", why());
}

/* Takes and acknowledges what came for a listener. */
static void drain_requests(struct listener *listener)
{
	struct dapx_cm_ack ack = { .cm = listener->cm, .events = 1 };
	struct dapx_event event;

	while (evd_poll(&listener->host->conn, &event))
		if (event.type == DAPX_EVENT_CONNECT_REQUEST)
			_test_cmd_cm_ack(listener->host->fd, &ack);
}

/* ---- processes that die ---- */

static int post_what_fits(struct ep *ep)
{
	unsigned int i;

	for (i = 0; i < EP_DEPTH / 2; i++)
		if (ep_recv(ep, i, 4096, 4096))
			break;
	return 0;
}

/* A process of its own that connects, and sends for as long as it lives. */
static void sender(const struct listener *to)
{
	struct host host;
	struct ep ep;

	if (host_set_up(&host, 0) || ep_create(&host, &ep) ||
	    ep_connect(&ep, to))
		_exit(1);
	if (expect_connection(&host.conn, ep.handle,
			      DAPX_CONNECTION_ESTABLISHED, NULL))
		_exit(2);
	for (;;) {
		ep_send(&ep, 0, 0, 4096);
		post_what_fits(&ep);
		evd_drain(&host.done);
		evd_drain(&host.recv);
	}
}

static pid_t spawn(void (*what)(const struct listener *), const struct listener *to)
{
	pid_t pid = fork();

	if (!pid) {
		what(to);
		_exit(99);
	}
	return pid;
}

TEST_F(life, killed_while_sending)
{
	unsigned int n = count(10, 500), round;
	struct dapx_event event;
	struct listener listener;
	pid_t pid;

	TH_LOG("%u rounds", n);
	OK(listener_open(&self->b, &listener));
	for (round = 0; round < n; round++) {
		pid = spawn(sender, &listener);
		ASSERT_LT(0, pid);
		OK(listener_request(&listener, &event));
		OK(post_what_fits(&self->eb));
		OK(ep_accept(&self->eb, event.request.cm));
		/* From the middle of the set-up to a busy connection. */
		if (round % 3)
			sleep_ms(dice() % 20);
		ASSERT_EQ(0, kill(pid, SIGKILL));
		EXPECT_EQ(256 + SIGKILL, wait_for(pid));
		OK(ep_await_state(&self->eb, DAPX_EP_DISCONNECTED));
		test_cmd(ep_reset, self->b.fd, .ep = self->eb.handle);
		evd_drain(&self->b.conn);
		evd_drain(&self->b.recv);
		evd_drain(&self->b.done);
	}
	OK(listener_close(&listener));
}

/* At any moment: being opened, making objects, connecting. */
TEST_F(life, killed_at_any_moment)
{
	unsigned int n = count(15, 1000), round;
	struct listener listener;
	pid_t pid;

	TH_LOG("%u rounds", n);
	OK(listener_open(&self->b, &listener));
	for (round = 0; round < n; round++) {
		pid = spawn(sender, &listener);
		ASSERT_LT(0, pid);
		sleep_ms(dice() % 40);
		ASSERT_EQ(0, kill(pid, SIGKILL));
		EXPECT_EQ(256 + SIGKILL, wait_for(pid));
		drain_requests(&listener);
	}
	sleep_ms(GLANCE_MS);
	drain_requests(&listener);
	OK(listener_close(&listener));
	OK(connect_cm(&self->ea, &self->eb));
	OK(ep_exchange(&self->ea, &self->eb));
}

/* With all kinds of objects, and threads that wait. */
static struct host crowded;

static void *waits_for_ever(void *arg)
{
	struct dapx_evd_wait wait = {
		.evd = crowded.recv.handle, .threshold = 100,
		.deadline = DAPX_NO_DEADLINE,
	};

	_test_cmd_evd_wait(crowded.fd, &wait);
	return NULL;
}

static void *frees_for_ever(void *arg)
{
	struct dapx_free gone = { .handle = *(__u32 *)arg };

	_test_cmd_free(crowded.fd, &gone);
	return NULL;
}

static void crowd(const struct listener *to)
{
	struct dapx_cm_listen reserve = { .mode = DAPX_LISTEN_RESERVED };
	struct dapx_cm_resolve resolve = {
		.what = DAPX_RESOLVE_ADDR, .deadline = DAPX_NO_DEADLINE,
	};
	struct dapx_cm_create create = {};
	struct listener listener, reserved;
	struct ep connected, reserved_ep, caller[2], own[2];
	static __u32 cm;
	pthread_t thread;
	struct srq srq;
	int i;

	if (host_set_up(&crowded, 0) || srq_make(&crowded, 16, 1, &srq))
		_exit(1);
	for (i = 0; i < 8; i++)
		srq_recv(&srq, i, 0, 64);
	/* Connected to itself, with work under way. */
	if (listener_open(&crowded, &listener) ||
	    ep_create(&crowded, &own[0]) || ep_create(&crowded, &own[1]) ||
	    ep_connect(&own[0], &listener) || ep_create(&crowded, &caller[0]) ||
	    ep_connect(&caller[0], &listener))
		_exit(2);
	if (ep_create(&crowded, &reserved_ep))
		_exit(3);
	reserve.ep = reserved_ep.handle;
	if (listener_open_as(&crowded, &reserve, &reserved) ||
	    ep_create(&crowded, &caller[1]) ||
	    ep_connect(&caller[1], &reserved))
		_exit(4);
	if (ep_create(&crowded, &connected) || ep_connect(&connected, to))
		_exit(5);
	/* An id that resolves for ever, one whose free waits. */
	create.evd = crowded.conn.handle;
	if (_test_cmd_cm_create(crowded.fd, &create))
		_exit(6);
	resolve.cm = create.out_cm;
	set_addr(&resolve.dst, "10.0.0.77", 7);
	set_addr(&resolve.src, crowded.addr, 0);
	_test_cmd_cm_resolve(crowded.fd, &resolve);
	cm = listener.cm;
	pthread_create(&thread, NULL, frees_for_ever, &cm);
	pthread_create(&thread, NULL, waits_for_ever, NULL);
	pthread_create(&thread, NULL, waits_for_ever, NULL);
	for (;;)
		pause();
}

TEST_F(life, killed_in_a_crowd)
{
	unsigned int n = count(5, 100), round;
	struct listener listener;
	pid_t pid;

	TH_LOG("%u rounds", n);
	OK(listener_open(&self->b, &listener));
	for (round = 0; round < n; round++) {
		pid = spawn(crowd, &listener);
		ASSERT_LT(0, pid);
		OK(expect_request(&self->b.conn, listener.cm, NULL));
		test_cmd(cm_ack, self->b.fd, .cm = listener.cm, .events = 1);
		sleep_ms(dice() % 100);
		EXPECT_EQ(0, waitpid(pid, NULL, WNOHANG));
		ASSERT_EQ(0, kill(pid, SIGKILL));
		EXPECT_EQ(256 + SIGKILL, wait_for(pid));
		drain_requests(&listener);
	}
	OK(listener_close(&listener));
}

/* Nor does a normal end leave anything behind. */
static void leaves(const struct listener *to)
{
	struct host host;
	struct ep ep;

	if (host_set_up(&host, 0) || ep_create(&host, &ep) ||
	    ep_connect(&ep, to) ||
	    expect_connection(&host.conn, ep.handle,
			      DAPX_CONNECTION_ESTABLISHED, NULL))
		_exit(1);
	_exit(0);
}

TEST_F(life, exited)
{
	struct dapx_event event;
	struct listener listener;
	pid_t pid;

	OK(listener_open(&self->b, &listener));
	pid = spawn(leaves, &listener);
	ASSERT_LT(0, pid);
	OK(listener_request(&listener, &event));
	OK(ep_accept(&self->eb, event.request.cm));
	EXPECT_EQ(0, wait_for(pid));
	OK(expect_connection(&self->b.conn, self->eb.handle,
			     DAPX_CONNECTION_ESTABLISHED, NULL));
	OK(expect_connection(&self->b.conn, self->eb.handle,
			     DAPX_CONNECTION_DISCONNECTED, NULL));
	OK(listener_close(&listener));
}

static int pipe_to_parent[2];
static int pipe_to_child[2];

/* Listens, takes two requests of three, frees its listener, and waits to be killed. */
static void takes(const struct listener *to)
{
	struct listener listener;
	struct dapx_event event;
	struct host host;
	int i;

	if (host_set_up(&host, 1) || listener_open(&host, &listener) ||
	    write(pipe_to_parent[1], &listener.port, 2) != 2)
		_exit(1);
	for (i = 0; i < 3; i++) {
		struct dapx_cm_take take = { .evd = host.conn.handle };

		if (listener_request(&listener, &event))
			_exit(2);
		take.cm = event.request.cm;
		if (i && _test_cmd_cm_take(host.fd, &take))
			_exit(3);
	}
	if (listener_close(&listener))
		_exit(4);
	if (write(pipe_to_parent[1], "t", 1) != 1)
		_exit(5);
	for (;;)
		pause();
}

/* Their peers are told. */
TEST_F(life, killed_with_requests)
{
	struct listener there = { .host = &self->b };
	struct dapx_event event;
	struct ep ep[3];
	char byte;
	pid_t pid;
	int i;

	ASSERT_EQ(0, pipe(pipe_to_parent));
	pid = spawn(takes, NULL);
	ASSERT_LT(0, pid);
	ASSERT_EQ(2, read(pipe_to_parent[0], &there.port, 2));
	for (i = 0; i < 3; i++) {
		OK(ep_create(&self->a, &ep[i]));
		OK(ep_connect(&ep[i], &there));
	}
	ASSERT_EQ(1, read(pipe_to_parent[0], &byte, 1));
	/* One was not taken. */
	OK(evd_next(&self->a.conn, &event, PATIENCE_MS));
	OK(evd_quiet(&self->a.conn));
	ASSERT_EQ(0, kill(pid, SIGKILL));
	EXPECT_EQ(256 + SIGKILL, wait_for(pid));
	for (i = 0; i < 2; i++)
		OK(evd_next(&self->a.conn, &event, PATIENCE_MS));
	for (i = 0; i < 3; i++) {
		OK(ep_await_state(&ep[i], DAPX_EP_DISCONNECTED));
		OK(ep_destroy(&ep[i]));
	}
	close(pipe_to_parent[0]);
	close(pipe_to_parent[1]);
}

/* ---- descriptors that outlive their process ---- */

/* Connects, leaves its descriptor with a child, and waits to be killed. */
static void leaves_child(const struct listener *to)
{
	struct host host;
	struct ep ep;
	pid_t pid;

	if (host_set_up(&host, 0) || ep_create(&host, &ep) ||
	    ep_connect(&ep, to) ||
	    expect_connection(&host.conn, ep.handle,
			      DAPX_CONNECTION_ESTABLISHED, NULL))
		_exit(1);
	pid = fork();
	if (!pid) {
		char byte;
		int fd = host.fd;

		setsid();
		/* Told when the other is dead; still has the descriptor. */
		if (read(pipe_to_child[0], &byte, 1) != 1)
			_exit(1);
		byte = _test_cmd(info, fd, 0) && errno == EPERM ? 'y' : 'n';
		if (write(pipe_to_parent[1], &byte, 1) != 1)
			_exit(1);
		if (read(pipe_to_child[0], &byte, 1) != 1)
			_exit(1);
		_exit(0);
	}
	if (write(pipe_to_parent[1], "c", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

TEST_F(life, forked_child_lives_on)
{
	struct dapx_event event;
	struct listener listener;
	pid_t pid;
	char byte;

	ASSERT_EQ(0, pipe(pipe_to_parent));
	ASSERT_EQ(0, pipe(pipe_to_child));
	OK(listener_open(&self->b, &listener));
	pid = spawn(leaves_child, &listener);
	ASSERT_LT(0, pid);
	OK(listener_request(&listener, &event));
	OK(ep_accept(&self->eb, event.request.cm));
	OK(expect_connection(&self->b.conn, self->eb.handle,
			     DAPX_CONNECTION_ESTABLISHED, NULL));
	ASSERT_EQ(1, read(pipe_to_parent[0], &byte, 1));
	ASSERT_EQ(0, kill(pid, SIGKILL));
	EXPECT_EQ(256 + SIGKILL, wait_for(pid));
	/* It is the death of the address space that counts, not the file's. */
	OK(expect_connection(&self->b.conn, self->eb.handle,
			     DAPX_CONNECTION_DISCONNECTED, NULL));
	ASSERT_EQ(1, write(pipe_to_child[1], "d", 1));
	ASSERT_EQ(1, read(pipe_to_parent[0], &byte, 1));
	EXPECT_EQ('y', byte);
	ASSERT_EQ(1, write(pipe_to_child[1], "e", 1));
	OK(listener_close(&listener));
}

/* Connects, and becomes another program that has the descriptor. */
static void becomes_another(const struct listener *to)
{
	struct host host;
	struct ep ep;

	if (host_set_up(&host, 0) || ep_create(&host, &ep) ||
	    ep_connect(&ep, to) ||
	    expect_connection(&host.conn, ep.handle,
			      DAPX_CONNECTION_ESTABLISHED, NULL) ||
	    fcntl(host.fd, F_SETFD, 0))
		_exit(1);
	execl("/bin/sleep", "sleep", "300", NULL);
	_exit(2);
}

TEST_F(life, exec)
{
	struct dapx_event event;
	struct listener listener;
	pid_t pid;

	OK(listener_open(&self->b, &listener));
	pid = spawn(becomes_another, &listener);
	ASSERT_LT(0, pid);
	OK(listener_request(&listener, &event));
	OK(ep_accept(&self->eb, event.request.cm));
	OK(expect_connection(&self->b.conn, self->eb.handle,
			     DAPX_CONNECTION_ESTABLISHED, NULL));
	OK(expect_connection(&self->b.conn, self->eb.handle,
			     DAPX_CONNECTION_DISCONNECTED, NULL));
	/* The program is alive and well. */
	EXPECT_EQ(0, waitpid(pid, NULL, WNOHANG));
	ASSERT_EQ(0, kill(pid, SIGKILL));
	EXPECT_EQ(256 + SIGKILL, wait_for(pid));
	OK(listener_close(&listener));
}

/* A child that forks from a process in full swing disturbs nothing. */
TEST_F(life, fork_under_load)
{
	unsigned int n = count(10, 200), round, i;
	pid_t pid;

	TH_LOG("%u forks", n);
	OK(connect_cm(&self->ea, &self->eb));
	for (round = 0; round < n; round++) {
		for (i = 0; i < 32; i++) {
			OK(ep_recv(&self->eb, i, 4096, 64));
			OK(ep_send(&self->ea, i, 0, 64));
		}
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid)
			_exit(7);
		for (i = 0; i < 32; i++) {
			OK(expect_completion(&self->a.done, i,
					     DAPX_STATUS_SUCCESS, NULL));
			OK(expect_completion(&self->b.recv, i,
					     DAPX_STATUS_SUCCESS, NULL));
		}
		EXPECT_EQ(7, wait_for(pid));
	}
	OK(ep_exchange(&self->ea, &self->eb));
}

/* ---- freed under load ---- */

struct poster {
	struct ep *ep;
	bool stop;
	int error;
};

static void *posts(void *arg)
{
	struct poster *poster = arg;
	struct ep *ep = poster->ep;
	struct dapx_doorbell bell = {
		.handle = ep->handle,
		.flags = DAPX_DOORBELL_SEND | DAPX_DOORBELL_RECV,
	};

	while (!__atomic_load_n(&poster->stop, __ATOMIC_RELAXED)) {
		struct dapx_sge sge = host_sge(ep->host, 0, 4096);
		struct dapx_send_wr wr = {
			.opcode = DAPX_OP_SEND, .num_sge = 1,
			.flags = DAPX_SEND_SIGNALED,
		};
		struct dapx_recv_wr recv = { .num_sge = 1 };

		ep_push_send(ep, &wr, &sge);
		ep_push_recv(ep, &recv, &sge);
		if (_test_cmd_doorbell(ep->host->fd, &bell)) {
			poster->error = errno;
			if (errno == ENOENT)
				return NULL;
		}
	}
	return NULL;
}

TEST_F(life, freed_under_another_thread)
{
	unsigned int n = count(20, 2000), round;
	struct dapx_free gone = { .type = DAPX_OBJECT_EP };
	pthread_t thread;

	TH_LOG("%u rounds", n);
	for (round = 0; round < n; round++) {
		struct poster poster = {};
		struct ep ea, eb;

		OK(ep_create(&self->a, &ea));
		OK(ep_create(&self->b, &eb));
		OK(connect_cm(&ea, &eb));
		OK(post_what_fits(&eb));
		poster.ep = &ea;
		ASSERT_EQ(0, pthread_create(&thread, NULL, posts, &poster));
		sleep_ms(dice() % 5);
		gone.handle = ea.handle;
		ASSERT_EQ(0, _test_cmd_free(self->a.fd, &gone));
		ASSERT_EQ(0, pthread_join(thread, NULL));
		EXPECT_EQ(ENOENT, poster.error);
		/* Both rings say that nobody looks any more. */
		EXPECT_TRUE(ring_flags(&ea.send) & DAPX_RING_DEAD);
		EXPECT_TRUE(ring_flags(&ea.recv) & DAPX_RING_DEAD);
		ep_forget(&ea);
		OK(ep_await_state(&eb, DAPX_EP_DISCONNECTED));
		OK(ep_destroy(&eb));
		evd_drain(&self->a.done);
		evd_drain(&self->a.recv);
		evd_drain(&self->a.conn);
		evd_drain(&self->b.recv);
		evd_drain(&self->b.conn);
		evd_drain(&self->b.done);
	}
}

TEST_F(life, freed_with_full_rings)
{
	unsigned int n = count(10, 500), round, i;

	TH_LOG("%u rounds", n);
	for (round = 0; round < n; round++) {
		struct ep ea, eb;

		OK(ep_create(&self->a, &ea));
		OK(ep_create(&self->b, &eb));
		OK(connect_cm(&ea, &eb));
		/* Nobody receives: the rings fill up. */
		for (i = 0; i < 4 * EP_DEPTH; i++) {
			if (ep_send(&ea, i, 0, 4096))
				break;
		}
		for (i = 0; i < 4 * EP_DEPTH; i++) {
			if (ep_recv(&ea, i, 4096, 4096))
				break;
		}
		if (round % 2)
			OK(ep_recv(&eb, 0, 4096, 4096));
		OK(ep_destroy(&ea));
		OK(ep_await_state(&eb, DAPX_EP_DISCONNECTED));
		OK(ep_destroy(&eb));
		evd_drain(&self->a.done);
		evd_drain(&self->a.recv);
		evd_drain(&self->b.conn);
		evd_drain(&self->b.recv);
	}
}

struct disconnecter {
	struct ep *ep;
	pthread_barrier_t *start;
	int what;
	int error;
};

static void *ends(void *arg)
{
	struct disconnecter *d = arg;
	struct dapx_ep_disconnect disconnect = {
		.ep = d->ep->handle, .flags = DAPX_DISCONNECT_ABRUPT,
	};
	struct dapx_ep_reset reset = { .ep = d->ep->handle };
	struct dapx_free gone = { .handle = d->ep->handle };
	int fd = d->ep->host->fd, ret;

	pthread_barrier_wait(d->start);
	if (d->what == 0)
		ret = _test_cmd_ep_disconnect(fd, &disconnect);
	else if (d->what == 1)
		ret = _test_cmd_ep_reset(fd, &reset);
	else
		ret = _test_cmd_free(fd, &gone);
	d->error = ret ? errno : 0;
	return NULL;
}

/* Disconnect, reset and free at once, in any order. */
TEST_F(life, ended_by_several_at_once)
{
	unsigned int n = count(20, 2000), round, i;
	struct disconnecter d[4];
	pthread_barrier_t start;
	pthread_t threads[4];

	TH_LOG("%u rounds", n);
	ASSERT_EQ(0, pthread_barrier_init(&start, NULL, 4));
	for (round = 0; round < n; round++) {
		struct ep ea, eb;

		OK(ep_create(&self->a, &ea));
		OK(ep_create(&self->b, &eb));
		OK(connect_cm(&ea, &eb));
		OK(post_what_fits(&eb));
		OK(post_what_fits(&ea));
		for (i = 0; i < 16; i++)
			OK(ep_send(&ea, i, 0, 64));
		for (i = 0; i < 4; i++) {
			d[i].ep = &ea;
			d[i].start = &start;
			d[i].what = i;
			ASSERT_EQ(0, pthread_create(&threads[i], NULL, ends,
						    &d[i]));
		}
		for (i = 0; i < 4; i++)
			ASSERT_EQ(0, pthread_join(threads[i], NULL));
		EXPECT_TRUE(!d[0].error || d[0].error == ENOENT ||
			    d[0].error == EBADFD);
		EXPECT_TRUE(!d[1].error || d[1].error == ENOENT ||
			    d[1].error == EBADFD);
		/* One of the two frees it. */
		EXPECT_EQ(ENOENT, d[2].error + d[3].error);
		ep_forget(&ea);
		OK(ep_await_state(&eb, DAPX_EP_DISCONNECTED));
		OK(ep_destroy(&eb));
		evd_drain(&self->a.done);
		evd_drain(&self->a.recv);
		evd_drain(&self->a.conn);
		evd_drain(&self->b.conn);
		evd_drain(&self->b.recv);
	}
}

/* ---- the module ---- */

TEST_F(life, unload_is_refused)
{
	struct host bare;

	/* Connected, and with nothing but an open file. */
	OK(connect_cm(&self->ea, &self->eb));
	EXPECT_EQ(-1, syscall(SYS_delete_module, "dapx", O_NONBLOCK));
	EXPECT_EQ(EAGAIN, errno);
	OK(ep_exchange(&self->ea, &self->eb));
	ep_forget(&self->ea);
	ep_forget(&self->eb);
	OK(host_open(&bare, 0));
	host_close(&self->a);
	host_close(&self->b);
	EXPECT_EQ(-1, syscall(SYS_delete_module, "dapx", O_NONBLOCK));
	EXPECT_EQ(EAGAIN, errno);
	test_cmd(info, bare.fd, 0);
	host_close(&bare);
}

/* ---- the device goes away ---- */

/* Every command, on a context whose device is gone. */
static int all_eio(int fd)
{
#define DAPX_COMMAND(lower, upper, ...)					\
	{								\
		struct dapx_##lower cmd = { .size = sizeof(cmd) };	\
									\
		if (ioctl(fd, DAPX_##upper, &cmd) != -1 ||		\
		    errno != EIO)					\
			return because("DAPX_" #upper ": %m");		\
	}
#include "harness/commands.h"
#undef DAPX_COMMAND
	return 0;
}

struct waiter {
	struct evd *evd;
	int error;
	pid_t tid;
};

static void *waits(void *arg)
{
	struct waiter *waiter = arg;
	struct dapx_evd_wait wait = {
		.evd = waiter->evd->handle,
		.threshold = 200,
		.deadline = DAPX_NO_DEADLINE,
	};

	__atomic_store_n(&waiter->tid, gettid(), __ATOMIC_RELEASE);
	waiter->error = _test_cmd_evd_wait(waiter->evd->fd, &wait) ? errno : 0;
	return NULL;
}

/* Its last event says why there are no more; then it is silent. */
static int last_event_is_removal(struct evd *evd)
{
	struct dapx_event event = {};
	bool any = false;

	while (evd_poll(evd, &event))
		any = true;
	errno = EPROTO;
	if (!any || event.type != DAPX_EVENT_ASYNC ||
	    event.async.what != DAPX_ASYNC_DEVICE_REMOVED)
		return because("the last event is of type %u", event.type);
	return 0;
}

static void *keeps_sending(void *arg)
{
	struct poster *poster = arg;
	struct ep *ep = poster->ep;
	struct dapx_event event;

	while (!__atomic_load_n(&poster->stop, __ATOMIC_RELAXED)) {
		struct dapx_sge sge = host_sge(ep->host, 0, 4096);
		struct dapx_send_wr wr = {
			.opcode = DAPX_OP_SEND, .num_sge = 1,
			.flags = DAPX_SEND_SIGNALED,
		};
		__u32 head = *ep->send.head;

		/* What counts is that the device is busy. */
		if (ep_post_send(ep, &wr, &sge) && errno == EIO)
			return NULL;
		if (ring_used(&ep->host->done.ring) > 64)
			while (evd_poll(&ep->host->done, &event))
				;
		if (head == *ep->send.head)
			give_way();
	}
	return NULL;
}

FIXTURE(removal)
{
	struct host a;
	struct host b;
	struct ep ea;
	struct ep eb;
	char before[512];
	bool removed;
};

FIXTURE_SETUP(removal)
{
	OK(rdma_resources(self->before));
	OK(host_set_up(&self->a, 0));
	OK(host_set_up(&self->b, 1));
	OK(ep_create(&self->a, &self->ea));
	OK(ep_create(&self->b, &self->eb));
}

FIXTURE_TEARDOWN(removal)
{
	ep_forget(&self->ea);
	ep_forget(&self->eb);
	host_close(&self->b);
	if (self->removed)
		EXPECT_EQ(0, device_add(&self->a)) TH_LOG("%s", why());
	host_close(&self->a);
	EXPECT_EQ(0, await_resources(self->before)) TH_LOG("%s", why());
}

#define REMOVE()							\
	({								\
		self->removed = true;					\
		OK(device_remove(&self->a));				\
	})

TEST_F(removal, idle)
{
	struct host late;

	REMOVE();
	OK(all_eio(self->a.fd));
	OK(last_event_is_removal(&self->a.done));
	OK(last_event_is_removal(&self->a.recv));
	OK(last_event_is_removal(&self->a.conn));
	/* Another context does not find it, the other device is as it was. */
	OK(host_open(&late, 0));
	EXPECT_EQ(-1, host_attach(&late));
	EXPECT_EQ(ENODEV, errno);
	test_cmd(pd_create, self->b.fd, 0);
	/* It comes back, for those who come then. */
	OK(device_add(&self->a));
	self->removed = false;
	OK(all_eio(self->a.fd));
	OK(host_attach(&late));
	OK(host_furnish(&late));
	OK(ep_create(&late, &self->ea));
	OK(connect_cm(&self->ea, &self->eb));
	OK(ep_exchange(&self->ea, &self->eb));
	ep_forget(&self->ea);
	host_close(&late);
}

/* A request that was taken ends as all else. */
TEST_F(removal, with_a_request)
{
	struct listener listener;
	struct dapx_event event;

	OK(listener_open(&self->a, &listener));
	OK(ep_connect(&self->eb, &listener));
	OK(listener_request(&listener, &event));
	test_cmd(cm_take, self->a.fd, .cm = event.request.cm,
		 .evd = self->a.done.handle);
	OK(listener_close(&listener));
	REMOVE();
	OK(all_eio(self->a.fd));
	test_err(EIO, cm_query, self->a.fd, .cm = event.request.cm);
	OK(last_event_is_removal(&self->a.done));
	OK(last_event_is_removal(&self->a.conn));
}

TEST_F(removal, under_traffic)
{
	struct waiter waiters[3] = {
		{ .evd = &self->a.recv }, { .evd = &self->a.conn }, { .evd = &self->a.done },
	};
	struct poster poster = { .ep = &self->ea };
	pthread_t sending, waiting[3];
	struct dapx_mr_create mr = {
		.pd = self->a.pd, .length = 4096,
	};
	int signalled, i;
	__u64 value;

	signalled = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	test_cmd(evd_eventfd, self->a.fd, .evd = self->a.conn.handle,
		 .fd = signalled);
	OK(connect_cm(&self->ea, &self->eb));
	evd_drain(&self->a.conn);
	EXPECT_EQ(8, read(signalled, &value, sizeof(value)));
	for (i = 0; i < 32; i++)
		OK(ep_recv(&self->eb, i, 4096, 4096));
	OK(post_what_fits(&self->ea));
	/* This EVD is drained by the sender; the others have waiters. */
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, pthread_create(&waiting[i], NULL, waits,
					    &waiters[i]));
	ASSERT_EQ(0, pthread_create(&sending, NULL, keeps_sending, &poster));
	for (i = 0; i < 3; i++)
		OK(await_asleep(&waiters[i].tid, DAPX_EVD_WAIT));
	OK(expect_completion(&self->b.recv, 0, DAPX_STATUS_SUCCESS, NULL));

	REMOVE();
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, pthread_join(waiting[i], NULL));
		EXPECT_EQ(EIO, waiters[i].error);
	}
	__atomic_store_n(&poster.stop, true, __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(sending, NULL));
	OK(all_eio(self->a.fd));
	mr.addr = (uintptr_t)self->a.mem;
	EXPECT_ERRNO(EIO, _test_cmd_mr_create(self->a.fd, &mr));
	OK(last_event_is_removal(&self->a.recv));
	OK(last_event_is_removal(&self->a.conn));
	EXPECT_EQ(8, read(signalled, &value, sizeof(value)));
	/* The rings can be read, and say that they are dead. */
	EXPECT_TRUE(ring_flags(&self->ea.send) & DAPX_RING_DEAD);
	EXPECT_TRUE(ring_flags(&self->ea.recv) & DAPX_RING_DEAD);
	EXPECT_TRUE(ring_flags(&self->a.done.ring) & DAPX_RING_DEAD);
	close(signalled);
	/* The peer notices when it asks. */
	ep_send(&self->eb, 1, 0, 8);
	OK(ep_await_state(&self->eb, DAPX_EP_DISCONNECTED));
	test_cmd(pd_create, self->b.fd, 0);
}

/* Full EVDs: the last event finds its place when there is room. */
TEST_F(removal, with_full_evds)
{
	struct dapx_event event;
	unsigned int i;
	struct evd evd;

	OK(evd_make(self->a.fd, 4, 0, &evd));
	for (i = 0; i < 4; i++)
		test_cmd(evd_post, self->a.fd, .evd = evd.handle,
			 .data = { i, i });
	REMOVE();
	for (i = 0; i < 4; i++) {
		ASSERT_TRUE(evd_poll(&evd, &event));
		EXPECT_EQ(DAPX_EVENT_SOFTWARE, event.type);
		EXPECT_EQ(i, event.software.data[0]);
	}
	EXPECT_TRUE(ring_flags(&evd.ring) & DAPX_RING_DEAD);
}

/* Everything of a context at once, and several contexts. */
TEST_F(removal, crowded)
{
	struct dapx_cm_listen reserve = { .mode = DAPX_LISTEN_RESERVED };
	struct listener listener, reserved;
	struct ep caller[3], idle;
	struct host others[3];
	struct srq srq;
	int i;

	OK(srq_make(&self->a, 16, 1, &srq));
	for (i = 0; i < 8; i++)
		OK(srq_recv(&srq, i, 0, 64));
	OK(listener_open(&self->a, &listener));
	OK(ep_create(&self->a, &idle));
	reserve.ep = idle.handle;
	OK(listener_open_as(&self->a, &reserve, &reserved));
	for (i = 0; i < 3; i++) {
		OK(ep_create(&self->b, &caller[i]));
		OK(ep_connect(&caller[i], i ? &listener : &reserved));
	}
	for (i = 0; i < 3; i++)
		OK(host_set_up(&others[i], 0));
	REMOVE();
	OK(all_eio(self->a.fd));
	for (i = 0; i < 3; i++) {
		OK(all_eio(others[i].fd));
		OK(last_event_is_removal(&others[i].done));
		host_close(&others[i]);
	}
	/* The other side was told, or finds out. */
	for (i = 0; i < 3; i++)
		OK(ep_destroy(&caller[i]));
}

/* A page that whoever touches it, or writes to it, waits for until it is let go. */
struct kept_page {
	void *addr;
	int fd;
};

static int page_keep(struct kept_page *page, bool readable)
{
	size_t size = sysconf(_SC_PAGESIZE);
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = readable ? UFFD_FEATURE_PAGEFAULT_FLAG_WP : 0,
	};
	struct uffdio_register range = {
		.range.len = size,
		.mode = readable ? UFFDIO_REGISTER_MODE_WP : UFFDIO_REGISTER_MODE_MISSING,
	};

	page->fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (page->fd < 0 || ioctl(page->fd, UFFDIO_API, &api))
		return because("userfaultfd: %m");
	page->addr = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page->addr == MAP_FAILED)
		return because("mmap: %m");
	if (readable)
		memset(page->addr, 0, size);
	range.range.start = (uintptr_t)page->addr;
	if (ioctl(page->fd, UFFDIO_REGISTER, &range))
		return because("UFFDIO_REGISTER: %m");
	return 0;
}

static int page_protect(struct kept_page *page)
{
	struct uffdio_writeprotect protect = {
		.range = { .start = (uintptr_t)page->addr, .len = sysconf(_SC_PAGESIZE) },
		.mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};

	return ioctl(page->fd, UFFDIO_WRITEPROTECT, &protect);
}

/* Somebody waits for it. */
static bool page_is_asked_for(struct kept_page *page, unsigned int ms)
{
	struct pollfd asked = { .fd = page->fd, .events = POLLIN };

	return poll(&asked, 1, ms) == 1 && asked.revents == POLLIN;
}

static void page_let_go(struct kept_page *page)
{
	close(page->fd);
	page->fd = -1;
}

struct registration {
	struct host *host;
	struct kept_page page;
	__u32 mr;
	bool done;
};

static void *registers(void *arg)
{
	struct registration *reg = arg;
	struct dapx_mr_create mr = {
		.pd = reg->host->pd, .addr = (uintptr_t)reg->page.addr, .length = 4096,
	};

	if (!_test_cmd_mr_create(reg->host->fd, &mr))
		reg->mr = mr.out_mr;
	__atomic_store_n(&reg->done, true, __ATOMIC_RELEASE);
	return NULL;
}

static void *removes(void *arg)
{
	return device_remove(arg) ? arg : NULL;
}

/* One context waits for memory of its process; the others hear of the removal all the same. */
TEST_F(removal, while_another_registers_memory_that_does_not_come)
{
	struct registration reg = {};
	pthread_t registering, removing;
	struct dapx_event event;
	struct host slow, late;
	void *failed;

	OK(host_set_up(&slow, 0));
	OK(host_set_up(&late, 0));
	reg.host = &slow;
	OK(page_keep(&reg.page, false));
	ASSERT_EQ(0, pthread_create(&registering, NULL, registers, &reg));
	while (!page_is_asked_for(&reg.page, 1)) {
		if (!__atomic_load_n(&reg.done, __ATOMIC_ACQUIRE))
			continue;
		pthread_join(registering, NULL);
		page_let_go(&reg.page);
		host_close(&slow);
		host_close(&late);
		SKIP(return, "this kernel refuses to pin what it would have to wait for");
	}
	self->removed = true;
	ASSERT_EQ(0, pthread_create(&removing, NULL, removes, &self->a));
	EXPECT_EQ(0, evd_next(&late.done, &event, PATIENCE_MS)) TH_LOG("%s", why());
	EXPECT_EQ(DAPX_EVENT_ASYNC, event.type);
	EXPECT_EQ(DAPX_ASYNC_DEVICE_REMOVED, event.async.what);
	page_let_go(&reg.page);
	ASSERT_EQ(0, pthread_join(registering, NULL));
	ASSERT_EQ(0, pthread_join(removing, &failed));
	EXPECT_EQ(NULL, failed) TH_LOG("%s", why());
	OK(all_eio(slow.fd));
	host_close(&slow);
	host_close(&late);
}

/* More than what a queue of the module works on at a time. */
#define MANY 300

struct waiting_context {
	struct kept_page *page;
	pthread_t thread;
	__u32 pd;
	int fd;
};

static void *registers_there(void *arg)
{
	struct waiting_context *context = arg;
	struct dapx_mr_create mr = {
		.pd = context->pd, .addr = (uintptr_t)context->page->addr, .length = 4096,
	};

	_test_cmd_mr_create(context->fd, &mr);
	return NULL;
}

static int begin_to_wait(struct waiting_context *context, struct kept_page *page)
{
	struct dapx_pd_create pd = {};
	struct host host;

	if (host_open(&host, 0) || host_attach(&host) || _test_cmd_pd_create(host.fd, &pd))
		return because("a context: %m");
	context->page = page;
	context->pd = pd.out_pd;
	context->fd = host.fd;
	if (pthread_create(&context->thread, NULL, registers_there, context))
		return because("pthread_create");
	return 0;
}

/* So many wait for it. */
static int page_await(struct kept_page *page, unsigned int threads)
{
	struct uffd_msg fault;

	while (threads) {
		if (!page_is_asked_for(page, PATIENCE_MS))
			return because("%u do not wait for the page", threads);
		while (threads && read(page->fd, &fault, sizeof(fault)) == sizeof(fault))
			threads--;
	}
	return 0;
}

static pid_t another_user(struct host *host)
{
	struct dapx_event event;
	struct host own;
	int ready[2];
	char byte;
	pid_t pid;

	if (pipe(ready))
		return -1;
	pid = fork();
	if (pid) {
		close(ready[1]);
		if (read(ready[0], &byte, 1) != 1)
			pid = because("the other user has no context");
		close(ready[0]);
		return pid;
	}
	if (become(NOBODY) || host_set_up(&own, host->number) ||
	    write(ready[1], "", 1) != 1 || evd_next(&own.done, &event, PATIENCE_MS) ||
	    event.type != DAPX_EVENT_ASYNC || event.async.what != DAPX_ASYNC_DEVICE_REMOVED)
		_exit(1);
	_exit(0);
}

/* What is left in a ring for lack of room for its events goes on, in a work, when there is room. */
static int works(struct host *host)
{
	struct sockaddr_in *to;
	struct dapx_ep_connect connect = {};
	struct dapx_ep_create create;
	unsigned int n = EP_DEPTH + 8, i;
	struct dapx_event event;
	struct evd small;
	struct ep ep;

	ep_usual(host, &create);
	if (evd_make(host->fd, 4, 0, &small))
		return -1;
	create.request_evd = small.handle;
	if (ep_make(host, &create, &ep))
		return -1;
	/* Too late to begin: disconnected, and what is posted is flushed. */
	connect.ep = ep.handle;
	connect.deadline = 1;
	to = (struct sockaddr_in *)&connect.dst;
	to->sin_family = AF_INET;
	if (_test_cmd_ep_connect(host->fd, &connect))
		return because("DAPX_EP_CONNECT: %m");
	for (i = 0; i < n; i++)
		if (ep_send(&ep, i, 0, 64))
			return -1;
	for (i = 0; i < n; i++) {
		if (evd_next(&small, &event, PATIENCE_MS))
			return -1;
		if (event.completion.wr_id != i ||
		    event.completion.status != DAPX_STATUS_FLUSHED)
			return because("event %u is of request %llu", i,
				       (unsigned long long)event.completion.wr_id);
	}
	ring_unmap(&small.ring);
	return ep_destroy(&ep);
}

/* The ends of one user's contexts wait: neither his other work does, nor anybody else's end. */
TEST_F(removal, while_many_contexts_of_a_user_wait_for_memory)
{
	struct waiting_context contexts[MANY];
	struct kept_page page;
	pthread_t removing;
	void *failed;
	pid_t other;
	int i, mode;

	OK(page_keep(&page, false));
	OK(begin_to_wait(&contexts[0], &page));
	if (!page_is_asked_for(&page, GLANCE_MS) && !pthread_tryjoin_np(contexts[0].thread, NULL)) {
		page_let_go(&page);
		close(contexts[0].fd);
		SKIP(return, "this kernel refuses to pin what it would have to wait for");
	}
	for (i = 1; i < MANY; i++)
		OK(begin_to_wait(&contexts[i], &page));
	OK(page_await(&page, MANY));
	/* Behind all these. */
	mode = node_chmod(0666);
	ASSERT_LE(0, mode);
	other = another_user(&self->a);
	node_chmod(mode);
	ASSERT_LT(0, other);
	self->removed = true;
	ASSERT_EQ(0, pthread_create(&removing, NULL, removes, &self->a));
	EXPECT_EQ(0, wait_for(other));
	EXPECT_EQ(0, works(&self->b)) TH_LOG("%s", why());
	page_let_go(&page);
	for (i = 0; i < MANY; i++)
		ASSERT_EQ(0, pthread_join(contexts[i].thread, NULL));
	ASSERT_EQ(0, pthread_join(removing, &failed));
	EXPECT_EQ(NULL, failed) TH_LOG("%s", why());
	for (i = 0; i < MANY; i++)
		close(contexts[i].fd);
}

/* An object that is not complete is not found by the handle that it is going to have. */
TEST_F(life, not_found_while_it_waits_for_memory)
{
	struct registration reg = { .host = &self->a };
	pthread_t registering;
	__u32 last, i;

	OK(page_keep(&reg.page, false));
	last = test_cmd(pd_create, self->a.fd).out_pd;
	ASSERT_EQ(0, pthread_create(&registering, NULL, registers, &reg));
	while (!page_is_asked_for(&reg.page, 1)) {
		if (!__atomic_load_n(&reg.done, __ATOMIC_ACQUIRE))
			continue;
		pthread_join(registering, NULL);
		page_let_go(&reg.page);
		SKIP(return, "this kernel refuses to pin what it would have to wait for");
	}
	for (i = 1; i <= 8; i++) {
		test_err(ENOENT, query_object, self->a.fd, .handle = last + i);
		test_err(ENOENT, free, self->a.fd, .handle = last + i);
	}
	page_let_go(&reg.page);
	ASSERT_EQ(0, pthread_join(registering, NULL));
	/* It was one of them. */
	EXPECT_TRUE(reg.mr > last && reg.mr <= last + 8);
	test_cmd(free, self->a.fd, .handle = reg.mr);
	test_cmd(free, self->a.fd, .handle = last);
}

/* Killed while somebody else has the memory that its registration waits for. */
TEST_F(life, killed_while_it_registers_memory_that_does_not_come)
{
	__u64 deadline = in_ms(PATIENCE_MS);
	struct kept_page page;
	int number[2], pidfd;
	pid_t pid, dead;

	ASSERT_EQ(0, pipe(number));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		struct registration reg = {};
		struct host own;

		reg.host = &own;
		if (host_set_up(&own, 0) || page_keep(&reg.page, false) ||
		    write(number[1], &reg.page.fd, sizeof(int)) != sizeof(int))
			_exit(1);
		registers(&reg);
		_exit(2);
	}
	close(number[1]);
	ASSERT_EQ(sizeof(int), read(number[0], &page.fd, sizeof(int)));
	close(number[0]);
	pidfd = syscall(SYS_pidfd_open, pid, 0);
	ASSERT_LE(0, pidfd);
	page.fd = syscall(SYS_pidfd_getfd, pidfd, page.fd, 0);
	close(pidfd);
	if (page.fd < 0 || !page_is_asked_for(&page, GLANCE_MS)) {
		ASSERT_EQ(2, wait_for(pid));
		SKIP(return, "this kernel refuses to pin what it would have to wait for");
	}
	ASSERT_EQ(0, kill(pid, SIGKILL));
	while (!(dead = waitpid(pid, NULL, WNOHANG)) && now_ns() < deadline)
		sleep_ms(1);
	EXPECT_EQ(pid, dead);
	page_let_go(&page);
	if (!dead)
		wait_for(pid);
}

struct bind {
	int fd;
	struct dapx_rmr_bind cmd;
	int error;
	bool done;
};

static void *binds(void *arg)
{
	struct bind *bind = arg;

	bind->error = _test_cmd_rmr_bind(bind->fd, &bind->cmd) ? errno : 0;
	__atomic_store_n(&bind->done, true, __ATOMIC_RELEASE);
	return NULL;
}

struct ended_ep {
	struct ep *ep;
	int error;
	bool done;
};

static void *frees(void *arg)
{
	struct ended_ep *ended = arg;
	struct dapx_free cmd = { .handle = ended->ep->handle };

	ended->error = _test_cmd_free(ended->ep->host->fd, &cmd) ? errno : 0;
	__atomic_store_n(&ended->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* A bind waits for the memory of its window: nothing that ends its endpoint waits for the bind. */
TEST_F(life, freed_while_a_bind_waits_for_memory)
{
	struct bind bind = { .fd = self->a.fd };
	struct ended_ep ended = { .ep = &self->ea };
	__u64 deadline = in_ms(PATIENCE_MS);
	pthread_t binding, freeing;
	struct kept_page page;

	OK(connect_cm(&self->ea, &self->eb));
	OK(page_keep(&page, true));
	bind.cmd.mr = test_cmd(mr_create, self->a.fd, .pd = self->a.pd,
			       .addr = (uintptr_t)page.addr, .length = 4096,
			       .access = DAPX_ACCESS_LOCAL_WRITE).out_mr;
	bind.cmd.rmr = test_cmd(rmr_create, self->a.fd, .pd = self->a.pd).out_rmr;
	bind.cmd.ep = self->ea.handle;
	bind.cmd.addr = (uintptr_t)page.addr;
	bind.cmd.length = 4096;
	bind.cmd.access = DAPX_ACCESS_REMOTE_WRITE;
	OK(page_protect(&page));
	ASSERT_EQ(0, pthread_create(&binding, NULL, binds, &bind));
	while (!page_is_asked_for(&page, 1)) {
		if (!__atomic_load_n(&bind.done, __ATOMIC_ACQUIRE))
			continue;
		pthread_join(binding, NULL);
		page_let_go(&page);
		SKIP(return, "this kernel refuses to pin what it would have to wait for");
	}
	ASSERT_EQ(0, pthread_create(&freeing, NULL, frees, &ended));
	while (!__atomic_load_n(&ended.done, __ATOMIC_ACQUIRE) && now_ns() < deadline)
		sleep_ms(1);
	EXPECT_TRUE(ended.done);
	page_let_go(&page);
	ASSERT_EQ(0, pthread_join(freeing, NULL));
	ASSERT_EQ(0, pthread_join(binding, NULL));
	EXPECT_EQ(0, ended.error);
	/* The endpoint is gone, and with it what was pinned for the bind. */
	EXPECT_EQ(ENOENT, bind.error);
	test_cmd(free, self->a.fd, .handle = bind.cmd.rmr);
	test_cmd(free, self->a.fd, .handle = bind.cmd.mr);
}

struct asker {
	int fd;
	struct dapx_query_device *cmd;
	int ret;
	int error;
};

static void *asks(void *arg)
{
	struct asker *asker = arg;

	asker->ret = ioctl(asker->fd, DAPX_QUERY_DEVICE, asker->cmd);
	asker->error = errno;
	return NULL;
}

/* An answer waits for memory outside of the context, which ends meanwhile. */
TEST_F(removal, while_an_answer_finds_no_memory)
{
	struct asker asker = { .fd = self->a.fd };
	struct kept_page page;
	pthread_t asking;

	OK(page_keep(&page, true));
	asker.cmd = page.addr;
	asker.cmd->size = sizeof(*asker.cmd);
	OK(page_protect(&page));
	ASSERT_EQ(0, pthread_create(&asking, NULL, asks, &asker));
	ASSERT_TRUE(page_is_asked_for(&page, PATIENCE_MS));
	REMOVE();
	page_let_go(&page);
	ASSERT_EQ(0, pthread_join(asking, NULL));
	EXPECT_EQ(-1, asker.ret);
	EXPECT_EQ(EIO, asker.error);
}

/* Again and again, with somebody connecting all the time. */
static void connects_all_the_time(const struct listener *to)
{
	for (;;) {
		struct host host;
		struct ep ep;

		if (host_set_up(&host, 0) || ep_create(&host, &ep) ||
		    ep_connect(&ep, to)) {
			host_close(&host);
			continue;
		}
		expect_connection(&host.conn, ep.handle,
				  DAPX_CONNECTION_ESTABLISHED, NULL);
		ep_forget(&ep);
		host_close(&host);
	}
}

TEST_F(removal, again_and_again)
{
	unsigned int n = count(3, 50), round;
	struct listener listener;
	pid_t pid;

	TH_LOG("%u removals", n);
	OK(listener_open(&self->b, &listener));
	pid = spawn(connects_all_the_time, &listener);
	ASSERT_LT(0, pid);
	for (round = 0; round < n; round++) {
		sleep_ms(50 + dice() % 100);
		REMOVE();
		sleep_ms(dice() % 20);
		OK(device_add(&self->a));
		self->removed = false;
		drain_requests(&listener);
	}
	ASSERT_EQ(0, kill(pid, SIGKILL));
	wait_for(pid);
	drain_requests(&listener);
	sleep_ms(GLANCE_MS);
	drain_requests(&listener);
	OK(listener_close(&listener));
}

TEST_HARNESS_MAIN
