// SPDX-License-Identifier: GPL-2.0
/*
 * Death: a process that connects, posts, binds windows and frees as fast as it can
 * is killed at random moments, also while its device is removed or its link goes
 * down. Peers watch: each connection that they saw begin ends for them, in bounded
 * time. In the kernel nothing is left: objects, pinned pages and memory return to
 * what they were.
 *
 * Host a is the one that dies, host b watches.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "harness/cm.h"
#include "harness/dice.h"
#include "harness/fabric.h"
#include "harness/machine.h"
#include "harness/resources.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 3000

/* It lives this long at most, or from its first connection on. */
#define LIFE_MS (on_debug_kernel() ? 600 : 150)
#define PEERS 12
#define RECEIVES 8
/* Few, so that a peer that asks somebody who is gone hears of it soon. */
#define RETRIES 1
/* Batches, and what RCU has not freed yet; a connection takes some 50 kB. */
#define MEMORY_SLACK (1024 * 1024)

/* ---- the process that is to die ---- */

enum survivor { NOBODY, CHILD, FRIEND };

struct life {
	const struct listener *to;
	__u8 retries;
	bool stays;			/* with its first connection */
	enum survivor survivor;
	int release;			/* read: EOF when survivors may go */
	int alive;			/* written, and open as long as one lives */
	int passing;			/* SCM_RIGHTS to the friend */
};

static bool gone(int fd)
{
	return _test_cmd(info, fd, 0) && errno == EIO;
}

static int bind_window(const struct ep *ep, __u32 rmr, const __u8 *at,
		       __u64 length)
{
	struct dapx_rmr_bind cmd = {
		.rmr = rmr, .ep = ep->handle, .addr = (uintptr_t)at,
		.length = length, .flags = DAPX_BIND_SIGNALED,
	};

	if (length) {
		cmd.mr = ep->host->mr;
		cmd.access = DAPX_ACCESS_REMOTE_WRITE | DAPX_ACCESS_REMOTE_READ;
	}
	return _test_cmd_rmr_bind(ep->host->fd, &cmd);
}

static int connect_with(struct ep *ep, const struct life *life)
{
	struct dapx_ep_connect cmd;

	connect_usual(ep, life->to, &cmd);
	cmd.retry_count = life->retries;
	return _test_cmd_ep_connect(ep->host->fd, &cmd);
}

static bool drain_until_connected(struct host *host, const struct ep *ep)
{
	struct dapx_event event;

	while (!evd_next(&host->conn, &event, PATIENCE_MS))
		if (event.type == DAPX_EVENT_CONNECTION &&
		    event.handle == ep->handle)
			return event.connection.what ==
			       DAPX_CONNECTION_ESTABLISHED;
	return false;
}

/* Until its device goes: connections, each with work and a window. */
static void live(struct host *host, const struct life *life)
{
	struct dapx_rmr_create create = { .pd = host->pd };
	struct dapx_ep_disconnect disconnect = {};
	struct dapx_ep_reset reset = {};
	struct dapx_free gone_rmr = {};
	struct ep ep;
	unsigned int i;

	while (!gone(host->fd)) {
		if (ep_create(host, &ep))
			continue;
		disconnect.ep = ep.handle;
		reset.ep = ep.handle;
		if (_test_cmd_rmr_create(host->fd, &create) ||
		    connect_with(&ep, life))
			goto end;
		gone_rmr.handle = create.out_rmr;
		/* Now and then it does not wait; on iWARP that takes long. */
		if ((!on_siw() && dice() % 8 == 0) ||
		    !drain_until_connected(host, &ep))
			goto end;
		for (i = dice() % 8; i || life->stays; i -= !!i) {
			if (ep_shown_state(&ep) != DAPX_EP_CONNECTED)
				break;
			ep_recv(&ep, i, 4096, 64);
			ep_send(&ep, i, 0, 64);
			bind_window(&ep, create.out_rmr, host->mem, 8192);
			ep_send(&ep, i, 0, 64);
			if (dice() % 2)
				bind_window(&ep, create.out_rmr, NULL, 0);
			evd_drain(&host->done);
			evd_drain(&host->recv);
		}
		disconnect.flags = dice() % 2 ? DAPX_DISCONNECT_ABRUPT : 0;
		if (dice() % 3 == 0)
			_test_cmd_ep_disconnect(host->fd, &disconnect);
		if (dice() % 3 == 0)
			_test_cmd_ep_reset(host->fd, &reset);
		/* The window before its endpoint, or after it. */
		if (dice() % 2)
			_test_cmd_free(host->fd, &gone_rmr);
end:
		if (ep_destroy(&ep))
			ep_forget(&ep);
		_test_cmd_free(host->fd, &gone_rmr);
		evd_drain(&host->done);
		evd_drain(&host->recv);
		evd_drain(&host->conn);
	}
}

/* In the same context: objects that come and go. */
static void *makes(void *arg)
{
	struct host *host = arg;
	__u8 *memory = mmap(NULL, 65536, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	while (!gone(host->fd)) {
		struct dapx_mr_create mr = {
			.pd = host->pd, .addr = (uintptr_t)memory,
			.length = 65536,
			.access = DAPX_ACCESS_LOCAL_WRITE |
				  DAPX_ACCESS_REMOTE_WRITE,
		};
		struct dapx_srq_create srq = {
			.pd = host->pd, .depth = 64, .max_sge = 1,
		};
		struct dapx_free gone[4] = {};
		struct dapx_cm_create cm = {};
		struct evd evd = {};

		if (!_test_cmd_mr_create(host->fd, &mr))
			gone[0].handle = mr.out_mr;
		if (!_test_cmd_srq_create(host->fd, &srq))
			gone[1].handle = srq.out_srq;
		if (!evd_make(host->fd, 16, 0, &evd)) {
			cm.evd = evd.handle;
			gone[3].handle = evd.handle;
			if (!_test_cmd_cm_create(host->fd, &cm))
				gone[2].handle = cm.out_cm;
			/* Somebody, or nobody. */
			cm_resolve_addr(host, cm.out_cm, dice() % 2 ?
					"10.0.0.2" : "10.0.0.77", 7,
					host->addr, PATIENCE_MS);
			gone[2].flags = DAPX_FREE_NOWAIT;
		}
		_test_cmd_free(host->fd, &gone[0]);
		_test_cmd_free(host->fd, &gone[1]);
		while (_test_cmd_free(host->fd, &gone[2]) && errno == EBUSY)
			_test_cmd(cm_ack, host->fd, .cm = cm.out_cm,
				  .events = 1);
		_test_cmd_free(host->fd, &gone[3]);
		ring_unmap(&evd.ring);
	}
	munmap(memory, 65536);
	return NULL;
}

/* A context for each connection, which is closed with all that is in it. */
static void *opens(void *arg)
{
	const struct life *life = arg;

	for (;;) {
		struct host host;
		struct ep ep = {};

		if (!host_set_up(&host, 0) && !ep_create(&host, &ep) &&
		    !connect_with(&ep, life) &&
		    (on_siw() || dice() % 4) &&
		    drain_until_connected(&host, &ep)) {
			ep_recv(&ep, 1, 4096, 64);
			ep_send(&ep, 1, 0, 64);
		}
		ep_forget(&ep);
		host_close(&host);
	}
	return NULL;
}

/* Has the descriptor, and lives until it is told. */
static void survive(const struct life *life)
{
	char byte;

	if (write(life->alive, "s", 1) == 1)
		while (read(life->release, &byte, 1) > 0)
			;
	_exit(0);
}

union rights {
	struct cmsghdr header;
	char space[CMSG_SPACE(sizeof(int))];
};

static int pass(int socket, int fd)
{
	char byte = 'f';
	struct iovec data = { &byte, 1 };
	union rights rights = {
		.header = {
			.cmsg_len = CMSG_LEN(sizeof(int)),
			.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
		},
	};
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1,
		.msg_control = &rights, .msg_controllen = sizeof(rights),
	};

	memcpy(CMSG_DATA(&rights.header), &fd, sizeof(fd));
	return sendmsg(socket, &message, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

/* Takes the descriptor, if it comes. */
static void befriend(const struct life *life, int socket)
{
	char byte;
	struct iovec data = { &byte, 1 };
	union rights rights;
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1,
		.msg_control = &rights, .msg_controllen = sizeof(rights),
	};

	if (recvmsg(socket, &message, 0) == 1)
		survive(life);
	_exit(0);
}

static void be(const struct life *life)
{
	static struct host host;
	pthread_t thread;
	bool passed = false;

	if (cgroup_enter("+memory +rdma") ||
	    pthread_create(&thread, NULL, opens, (void *)life))
		_exit(1);
	for (;;) {
		if (host_set_up(&host, 0)) {
			host_close(&host);
			continue;
		}
		if (!passed && life->survivor == FRIEND)
			pass(life->passing, host.fd);
		if (pthread_create(&thread, NULL, makes, &host))
			_exit(2);
		if (!passed && life->survivor == CHILD && !fork())
			survive(life);
		passed = true;
		live(&host, life);
		pthread_join(thread, NULL);
		host_close(&host);
	}
}

/* ---- those who watch ---- */

enum phase { FREE, ACCEPTED, CONNECTED };

struct peer {
	struct ep ep;
	enum phase phase;
	bool asked;
};

/* FIXTURE_DATA(death), which checkpatch does not take for a type, is struct _test_data_death. */
FIXTURE(death)
{
	struct host a;			/* its names only */
	struct host b;
	struct listener listener;
	struct peer peers[PEERS];
	char before[512];
	char watching[512];
	long pinned;
	long memory;
	struct life life;
	pid_t pid;
	int release;
	int alive;
	/* What was seen. */
	unsigned int established;
	unsigned int ended;
	unsigned int given_up;
	unsigned int survivors;
};

/* What the kernel holds for those who died. */
static long kernel_memory(void)
{
	static const char * const names[] = {
		"slab_unreclaimable", "percpu", "vmalloc", "pagetables",
		"kernel_stack",
	};
	unsigned long sum = 0, value;
	char line[128], name[64];
	FILE *file;
	int i;

	file = fopen(CGROUP "/dapx/memory.stat", "r");
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%63s %lu", name, &value) != 2)
			continue;
		for (i = 0; i < ARRAY_SIZE(names); i++)
			if (!strcmp(name, names[i]))
				sum += value;
	}
	if (file)
		fclose(file);
	return sum;
}

/* No object of dapx is charged to those who died. */
static int await_no_objects(void)
{
	__u64 deadline = in_ms(PATIENCE_MS);
	const char *line, *count;

	for (;;) {
		line = read_line(CGROUP "/dapx/rdma.current");
		if (!line)
			return because("rdma.current: %m");
		count = strstr(line, "hca_object=");
		if (!count || !strtoul(count + 11, NULL, 10))
			return 0;
		if (now_ns() > deadline)
			return because("objects are left: %s", line);
		sleep_ms(5);
	}
}

static int await_pins(long pinned)
{
	__u64 deadline = in_ms(PATIENCE_MS);
	long now;

	while ((now = pinned_pages()) != pinned) {
		if (now_ns() > deadline)
			return because("%ld pages are pinned, before %ld", now,
				       pinned);
		sleep_ms(20);
	}
	return 0;
}

static int await_memory(long memory)
{
	__u64 deadline = in_ms(PATIENCE_MS);
	long now;

	while ((now = kernel_memory()) > memory) {
		if (now_ns() > deadline)
			return because("the kernel holds %ld bytes for the dead",
				       now);
		sleep_ms(50);
	}
	return 0;
}

static void answer(struct _test_data_death *self, const struct dapx_event *event, bool take)
{
	struct dapx_cm_ack ack = { .cm = self->listener.cm, .events = 1 };
	struct dapx_cm_reject no = { .cm = event->request.cm };
	int i;

	_test_cmd_cm_ack(self->b.fd, &ack);
	for (i = 0; take && i < PEERS; i++)
		if (self->peers[i].phase == FREE)
			break;
	/* Refused when its sender is dead already. */
	if (!take || i == PEERS ||
	    ep_accept(&self->peers[i].ep, event->request.cm)) {
		_test_cmd_cm_reject(self->b.fd, &no);
		return;
	}
	self->peers[i].phase = ACCEPTED;
	self->peers[i].asked = false;
}

static int ended(struct _test_data_death *self, struct peer *peer)
{
	struct dapx_ep_reset reset = { .ep = peer->ep.handle };

	if (peer->phase == CONNECTED)
		self->ended++;
	peer->phase = FREE;
	if (_test_cmd_ep_reset(self->b.fd, &reset))
		return because("DAPX_EP_RESET: %m");
	return 0;
}

static int notice(struct _test_data_death *self, const struct dapx_event *event, bool take)
{
	int i, j;

	if (event->type == DAPX_EVENT_CONNECT_REQUEST)
		answer(self, event, take);
	if (event->type != DAPX_EVENT_CONNECTION)
		return 0;
	for (i = 0; i < PEERS; i++) {
		struct peer *peer = &self->peers[i];

		if (peer->ep.handle != event->handle)
			continue;
		if (peer->phase == FREE)
			return because("event %u of one that is not connected",
				       event->connection.what);
		if (event->connection.what != DAPX_CONNECTION_ESTABLISHED)
			return ended(self, peer);
		if (peer->phase == CONNECTED)
			return because("established twice");
		self->established++;
		peer->phase = CONNECTED;
		for (j = 0; j < RECEIVES; j++)
			ep_recv(&peer->ep, j, 4096, 64);
		return 0;
	}
	return because("event of an endpoint %u", event->handle);
}

static int look(struct _test_data_death *self, bool take)
{
	struct dapx_event event;

	while (evd_poll(&self->b.conn, &event))
		if (notice(self, &event, take))
			return -1;
	evd_drain(&self->b.done);
	evd_drain(&self->b.recv);
	return 0;
}

static int watch_for(struct _test_data_death *self, unsigned int ms)
{
	__u64 deadline = in_ms(ms);

	do {
		if (look(self, true))
			return -1;
		sleep_ms(1);
	} while (now_ns() < deadline);
	return 0;
}

static unsigned int count_in(const struct _test_data_death *self, enum phase phase)
{
	unsigned int n = 0, i;

	for (i = 0; i < PEERS; i++)
		n += self->peers[i].phase == phase;
	return n;
}

/*
 * Every connection ends, by itself or, with @ask, when its peer sends something.
 * A set-up may have been answered after the other's death, whose reject was lost: the
 * kernel's CM asks the dead for a minute. It is given up here, and then has its end as well.
 */
static int watch_the_end(struct _test_data_death *self, bool ask)
{
	__u64 deadline = in_ms(PATIENCE_MS), early = in_ms(PATIENCE_MS / 8);
	int i;

	while (count_in(self, ACCEPTED) || count_in(self, CONNECTED)) {
		if (look(self, false))
			return -1;
		if (now_ns() > deadline)
			return because("%u set-ups and %u connections with the dead go on",
				       count_in(self, ACCEPTED),
				       count_in(self, CONNECTED));
		for (i = 0; i < PEERS; i++) {
			struct peer *peer = &self->peers[i];
			struct dapx_ep_disconnect give_up = {
				.ep = peer->ep.handle,
				.flags = DAPX_DISCONNECT_ABRUPT,
			};

			if (ask && peer->phase == CONNECTED && !peer->asked) {
				ep_send(&peer->ep, 0xa5, 0, 64);
				peer->asked = true;
			}
			if (peer->phase == ACCEPTED && !peer->asked &&
			    now_ns() > early) {
				_test_cmd_ep_disconnect(self->b.fd, &give_up);
				peer->asked = true;
				self->given_up++;
			}
		}
		sleep_ms(1);
	}
	return 0;
}

/* A request may arrive when its sender is gone, and has an id until it is answered. */
static int await_as_watched(struct _test_data_death *self)
{
	__u64 deadline = in_ms(PATIENCE_MS);
	char now[512];

	do {
		if (look(self, false) || rdma_resources(now))
			return -1;
		if (!strcmp(now, self->watching))
			return 0;
		sleep_ms(50);
	} while (now_ns() < deadline);
	return await_resources(self->watching);
}

/* ---- a life, and its end ---- */

static int start(struct _test_data_death *self, enum survivor survivor)
{
	int release[2], alive[2], passing[2];
	struct life *life = &self->life;
	pid_t pid = 0;

	if (pipe2(release, O_CLOEXEC) || pipe2(alive, O_CLOEXEC) ||
	    socketpair(AF_UNIX, SOCK_STREAM, 0, passing))
		return because("pipe: %m");
	life->to = &self->listener;
	life->survivor = survivor;
	life->release = release[0];
	life->alive = alive[1];
	life->passing = passing[0];
	self->release = release[1];
	self->alive = alive[0];
	if (survivor == FRIEND)
		pid = fork();
	if (!pid && survivor == FRIEND) {
		close(release[1]);
		close(passing[0]);
		befriend(life, passing[1]);
	}
	if (pid >= 0)
		self->pid = fork();
	if (!self->pid) {
		close(release[1]);
		close(passing[1]);
		be(life);
	}
	close(release[0]);
	close(alive[1]);
	close(passing[0]);
	close(passing[1]);
	if (pid < 0 || self->pid < 0)
		return because("fork: %m");
	return 0;
}

/* Dead in bounded time, whatever it is doing. */
static int reap(struct _test_data_death *self)
{
	__u64 deadline = in_ms(PATIENCE_MS);
	int status;

	while (!waitpid(self->pid, &status, WNOHANG)) {
		/* Who dies may have to wait for the peer's answer. */
		if (look(self, true))
			return -1;
		if (now_ns() > deadline)
			return because("a killed process goes on");
		sleep_ms(1);
	}
	self->pid = 0;
	if (!WIFSIGNALED(status))
		return because("it ended by itself: 0x%x", status);
	return 0;
}

static int kill_it(struct _test_data_death *self)
{
	if (kill(self->pid, SIGKILL))
		return because("kill: %m");
	return reap(self);
}

/* Survivors go as well. */
static int release(struct _test_data_death *self)
{
	struct pollfd ends = { .fd = self->alive, .events = POLLIN };
	int got, survivors = 0, ret = 0;
	char bytes[8];

	close(self->release);
	for (;;) {
		if (poll(&ends, 1, PATIENCE_MS) != 1) {
			ret = because("who was let go lives on");
			break;
		}
		got = read(self->alive, bytes, sizeof(bytes));
		if (got <= 0)
			break;
		survivors += got;
	}
	close(self->alive);
	self->survivors += survivors;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	return ret;
}

static int begin_watching(struct _test_data_death *self)
{
	int i;

	if (host_set_up(&self->b, 1) ||
	    listener_open(&self->b, &self->listener))
		return -1;
	for (i = 0; i < PEERS; i++) {
		self->peers[i].phase = FREE;
		if (ep_create(&self->b, &self->peers[i].ep))
			return -1;
	}
	return 0;
}

static void end_watching(struct _test_data_death *self)
{
	int i;

	for (i = 0; i < PEERS; i++)
		ep_forget(&self->peers[i].ep);
	host_close(&self->b);
}

FIXTURE_SETUP(death)
{
	OK(cgroup_make("+memory +rdma"));
	OK(rdma_resources(self->before));
	OK(host_open(&self->a, 0));
	OK(begin_watching(self));
	self->life.retries = RETRIES;
	OK(rdma_resources(self->watching));
	/* What its cgroup itself takes, and the first one of all things. */
	OK(start(self, NOBODY));
	OK(watch_for(self, LIFE_MS));
	OK(kill_it(self));
	OK(watch_the_end(self, false));
	OK(release(self));
	OK(await_as_watched(self));
	OK(await_no_objects());
	sleep_ms(GLANCE_MS);
	self->pinned = pinned_pages();
	self->memory = kernel_memory();
}

FIXTURE_TEARDOWN(death)
{
	if (self->pid > 0) {
		kill(self->pid, SIGKILL);
		reap(self);
		release(self);
	}
	end_watching(self);
	host_close(&self->a);
	EXPECT_EQ(0, await_resources(self->before)) TH_LOG("%s", why());
	cgroup_leave(self->a.device);
}

#define ALL_IS_AS_BEFORE()						\
	({								\
		OK(await_as_watched(self));				\
		OK(await_no_objects());					\
		OK(await_pins(self->pinned));				\
		TH_LOG("kernel memory: %ld, before %ld",		\
		       kernel_memory(), self->memory);			\
		OK(await_memory(self->memory + MEMORY_SLACK));		\
	})

/* At least one connection is there. */
static int watch_until_connected(struct _test_data_death *self)
{
	__u64 deadline = in_ms(PATIENCE_MS);

	while (!count_in(self, CONNECTED)) {
		if (now_ns() > deadline)
			return because("nobody connects");
		if (watch_for(self, 1))
			return -1;
	}
	return 0;
}

/* ---- killed ---- */

static int kill_at_any_moment(struct _test_data_death *self, enum survivor survivor)
{
	unsigned int n = count(50, 1000), round;

	for (round = 0; round < n; round++) {
		if (start(self, survivor) ||
		    (round % 4 == 0 && watch_until_connected(self)) ||
		    watch_for(self, dice() % LIFE_MS) || kill_it(self))
			return -1;
		/* Before survivors go: they keep nothing but an open file. */
		if (watch_the_end(self, false) || await_no_objects())
			return -1;
		if ((round % 8 == 0 || round == n - 1) &&
		    await_as_watched(self))
			return -1;
		if (release(self))
			return -1;
	}
	printf("# %u killed: %u connections seen, %u ended, %u set-ups given up, %u survivors\n", n,
	       self->established, self->ended, self->given_up,
	       self->survivors);
	return 0;
}

#define KILL_AT_ANY_MOMENT(survivor)					\
	({								\
		OK(kill_at_any_moment(self, survivor));			\
		EXPECT_LT(0, self->established);			\
		EXPECT_EQ(self->established, self->ended);		\
		/* The odd one, whose reject got lost. */		\
		if (in_virtual_time())					\
			EXPECT_GE(self->established / 100 + 1,		\
				  self->given_up);			\
		ALL_IS_AS_BEFORE();					\
	})

TEST_F(death, killed)
{
	KILL_AT_ANY_MOMENT(NOBODY);
}

TEST_F(death, killed_and_its_child_lives_on)
{
	KILL_AT_ANY_MOMENT(CHILD);
	EXPECT_LT(0, self->survivors);
}

TEST_F(death, killed_and_a_friend_has_its_descriptor)
{
	KILL_AT_ANY_MOMENT(FRIEND);
	EXPECT_LT(0, self->survivors);
}

/* ---- and the device goes ---- */

static void *removes(void *arg)
{
	const struct host *host = arg;

	return device_remove(host) ? "device_remove" : NULL;
}

TEST_F(death, killed_while_the_device_goes)
{
	unsigned int n = count(4, 100), round;
	pthread_t thread;
	void *failed;

	for (round = 0; round < n; round++) {
		OK(start(self, round % 3));
		OK(watch_for(self, dice() % LIFE_MS));
		if (round % 2)
			OK(watch_until_connected(self));
		ASSERT_EQ(0, pthread_create(&thread, NULL, removes, &self->a));
		/* Before, in the middle, or after. */
		OK(watch_for(self, dice() % (LIFE_MS / 2)));
		if (round % 2)
			OK(kill_it(self));
		ASSERT_EQ(0, pthread_join(thread, &failed));
		EXPECT_EQ(NULL, failed);
		/* Put back, to one who waits for it, or to nobody. */
		OK(device_add(&self->a));
		if (!(round % 2)) {
			OK(watch_until_connected(self));
			OK(kill_it(self));
		}
		OK(watch_the_end(self, true));
		OK(await_no_objects());
		OK(release(self));
	}
	TH_LOG("%u removals: %u connections were seen, %u ended, %u set-ups given up",
	       n, self->established, self->ended, self->given_up);
	EXPECT_EQ(self->established, self->ended);
	ALL_IS_AS_BEFORE();
}

/* ---- and the link goes ---- */

/*
 * A message of the CM that cannot be sent, because the link is down, puts rxe's queue
 * pair 1 into error, for good: to connect again, both devices must be made anew.
 */
static int renew_devices(struct _test_data_death *self)
{
	if (on_siw())
		return 0;
	end_watching(self);
	if (device_remove(&self->a) || device_remove(&self->b) ||
	    device_add(&self->a) || device_add(&self->b))
		return -1;
	return begin_watching(self);
}

TEST_F(death, killed_while_the_link_is_down)
{
	unsigned int n = count(3, 100), round;

	for (round = 0; round < n; round++) {
		self->life.stays = round % 2;
		OK(start(self, round % 2));
		OK(watch_until_connected(self));
		OK(watch_for(self, dice() % LIFE_MS));
		/* It dies while the link is down, when it is back, or before. */
		if (round % 3 == 2)
			OK(kill_it(self));
		OK(link_set(&self->a, &self->b, false));
		OK(watch_for(self, dice() % LIFE_MS));
		if (round % 3 == 0)
			OK(kill_it(self));
		OK(link_set(&self->a, &self->b, true));
		if (round % 3 == 1) {
			OK(watch_for(self, dice() % LIFE_MS));
			OK(kill_it(self));
		}
		/* A connection without traffic notices nothing by itself. */
		OK(watch_the_end(self, true));
		OK(await_no_objects());
		OK(release(self));
		OK(renew_devices(self));
	}
	TH_LOG("%u times: %u connections were seen, %u ended, %u set-ups given up",
	       n, self->established, self->ended, self->given_up);
	EXPECT_EQ(self->established, self->ended);
	ALL_IS_AS_BEFORE();
}

/*
 * A peer that told the device to retry for ever does so; but it can leave at any time,
 * and then it, too, sees the end.
 */
TEST_F(death, killed_and_peers_retry_without_end)
{
	unsigned int connected, i;

	if (on_siw())
		SKIP(return, "retries are TCP's own, and have an end");
	self->life.retries = 7;
	self->life.stays = true;
	OK(start(self, NOBODY));
	OK(watch_until_connected(self));
	OK(watch_for(self, LIFE_MS));
	OK(link_set(&self->a, &self->b, false));
	OK(kill_it(self));
	OK(link_set(&self->a, &self->b, true));
	OK(look(self, false));
	connected = count_in(self, CONNECTED);
	ASSERT_LT(0, connected);
	for (i = 0; i < PEERS; i++)
		if (self->peers[i].phase == CONNECTED)
			OK(ep_send(&self->peers[i].ep, 0xa5, 0, 64));
	OK(watch_for(self, 30 * GLANCE_MS));
	EXPECT_EQ(connected, count_in(self, CONNECTED));
	for (i = 0; i < PEERS; i++)
		if (self->peers[i].phase == CONNECTED)
			test_cmd(ep_disconnect, self->b.fd,
				 .ep = self->peers[i].ep.handle,
				 .flags = DAPX_DISCONNECT_ABRUPT);
	OK(watch_the_end(self, false));
	OK(await_no_objects());
	OK(release(self));
	OK(renew_devices(self));
	EXPECT_EQ(self->established, self->ended);
	ALL_IS_AS_BEFORE();
}

TEST_HARNESS_MAIN
