// SPDX-License-Identifier: GPL-2.0
/*
 * What listeners of generic netlink are told, in which order, and who is not.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "harness/cm.h"
#include "harness/dice.h"
#include "harness/fabric.h"
#include "harness/netlink.h"
#include "harness/process.h"
#include "harness/xrc.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 300

#define EVENT(what) DAPX_GENL_EVENT_##what

/* ---- listening ---- */

/* The number of the group; -1 if there is none. */
static int group_of(int fd)
{
	const struct nlattr *attr, *group, *member;
	char answer[8192];
	struct nlmsghdr *header = (void *)answer;
	bool found;
	ssize_t length;
	int id;

	if (ask(fd, GENL_ID_CTRL, 0, CTRL_CMD_GETFAMILY, DAPX_GENL_NAME))
		return -1;
	length = recv(fd, answer, sizeof(answer), 0);
	if (length < 0 || header->nlmsg_type == NLMSG_ERROR)
		return because("no such family");
	for_each_attr(attr, NLMSG_DATA(header) + GENL_HDRLEN, answer + length) {
		if ((attr->nla_type & NLA_TYPE_MASK) != CTRL_ATTR_MCAST_GROUPS)
			continue;
		for_each_attr(group, value(attr), next_attr(attr)) {
			found = false;
			id = -1;
			for_each_attr(member, value(group), (const void *)group + group->nla_len) {
				if (member->nla_type == CTRL_ATTR_MCAST_GRP_ID)
					id = number(member);
				if (member->nla_type == CTRL_ATTR_MCAST_GRP_NAME)
					found = !strcmp(value(member), DAPX_GENL_GROUP_EVENTS);
			}
			if (found)
				return id;
		}
	}
	return because("no such group");
}

/* A socket that is told; -1 with errno. */
static int listen_to_events(void)
{
	int fd = nl_socket(), group = group_of(fd), room = 8 << 20;

	if (group < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
	if (setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group))) {
		because("NETLINK_ADD_MEMBERSHIP: %s", strerror(errno));
		close(fd);
		return -1;
	}
	return fd;
}

/* The next event within @ms; 1: none came. */
static int next_within(int fd, struct thing *thing, unsigned int ms)
{
	struct pollfd waiting = { .fd = fd, .events = POLLIN };
	char buffer[8192];
	const struct nlmsghdr *header = (void *)buffer;

	if (poll(&waiting, 1, ms) != 1)
		return 1;
	if (recv(fd, buffer, sizeof(buffer), 0) < 0)
		return because("recv: %s", strerror(errno));
	if (thing_read(thing, header))
		return -1;
	return thing->has[DAPX_OBJECT_ATTR_EVENT] ? 0 : because("no event");
}

static int next(int fd, struct thing *thing)
{
	return next_within(fd, thing, PATIENCE_MS) == 1 ? because("nothing is told") : 0;
}

static bool silent(int fd)
{
	struct thing thing;

	return next_within(fd, &thing, GLANCE_MS) == 1;
}

/* ---- the scene ---- */

FIXTURE(events)
{
	int fd;
	int mode;		/* of the node */
};

FIXTURE_SETUP(events)
{
	self->mode = node_chmod(0666);
	ASSERT_LE(0, self->mode);
	self->fd = listen_to_events();
	ASSERT_LE(0, self->fd)
		TH_LOG("%s", why());
}

FIXTURE_TEARDOWN(events)
{
	close(self->fd);
	node_chmod(self->mode);
}

#define NEXT(what, thing)						\
	({								\
		OK(next(self->fd, thing));				\
		ASSERT_EQ(EVENT(what), (thing)->is[DAPX_OBJECT_ATTR_EVENT]); \
		EXPECT_TRUE((thing)->has[DAPX_OBJECT_ATTR_TIME]);	\
		EXPECT_FALSE((thing)->has[DAPX_OBJECT_ATTR_LOST]);	\
	})

/* ---- what is told ---- */

TEST_F(events, a_context)
{
	struct thing thing;
	struct host a, bare;
	__u64 began = now_ns(), time;

	/* Of what is attached to no device nothing is told. */
	OK(host_open(&bare, 0));
	close(bare.fd);
	OK(host_set_up(&a, 0));
	NEXT(CONTEXT_NEW, &thing);
	EXPECT_STREQ(a.device, thing.device);
	EXPECT_IS(getpid(), &thing, PID);
	EXPECT_STREQ("netlink_events", thing.name);
	time = thing.is[DAPX_OBJECT_ATTR_TIME];
	EXPECT_LE(began, time);
	EXPECT_GE(now_ns(), time);
	host_close(&a);
	NEXT(CONTEXT_ENDING, &thing);
	EXPECT_IS(DAPX_GENL_CAUSE_CLOSED, &thing, CAUSE);
	EXPECT_IS(5, &thing, OBJECTS);
	EXPECT_LE(time, thing.is[DAPX_OBJECT_ATTR_TIME]);
	NEXT(CONTEXT_ENDED, &thing);
	EXPECT_NE(0, thing.is[DAPX_OBJECT_ATTR_DURATION]);
	EXPECT_TRUE(silent(self->fd));
}

TEST_F(events, an_endpoint_and_a_window)
{
	struct thing thing;
	struct ep ep, peer;
	struct host a, b;
	unsigned int states = 0;
	__u32 rmr;

	OK(host_set_up(&a, 0));
	OK(host_set_up(&b, 1));
	NEXT(CONTEXT_NEW, &thing);
	NEXT(CONTEXT_NEW, &thing);
	OK(ep_create(&a, &ep));
	OK(ep_create(&b, &peer));
	OK(connect_cm(&ep, &peer));
	do {
		NEXT(EP_STATE, &thing);
		EXPECT_IS(DAPX_OBJECT_EP, &thing, TYPE);
		if (thing.is[DAPX_OBJECT_ATTR_STATE] == DAPX_EP_CONNECTED)
			states++;
	} while (states < 2);

	rmr = test_cmd(rmr_create, a.fd, .pd = a.pd).out_rmr;
	test_cmd(rmr_bind, a.fd, .rmr = rmr, .ep = ep.handle, .mr = a.mr,
		 .access = DAPX_ACCESS_REMOTE_READ, .addr = (uintptr_t)a.mem, .length = 8192,
		 .flags = DAPX_BIND_SIGNALED, .wr_id = 77);
	OK(expect_completion(&a.done, 77, DAPX_STATUS_SUCCESS, NULL));
	test_cmd(free, a.fd, .handle = rmr, .type = DAPX_OBJECT_RMR);
	NEXT(RMR_REVOKED, &thing);
	EXPECT_IS(rmr, &thing, HANDLE);
	EXPECT_IS(a.mr, &thing, MR);
	EXPECT_IS(8192, &thing, LENGTH);

	OK(ep_destroy(&ep));
	do
		OK(next(self->fd, &thing));
	while (thing.is[DAPX_OBJECT_ATTR_EVENT] == EVENT(EP_STATE));
	EXPECT_EQ(EVENT(EP_GONE), thing.is[DAPX_OBJECT_ATTR_EVENT]);
	EXPECT_IS(ep.handle, &thing, HANDLE);
	ep_forget(&peer);
	host_close(&b);
	host_close(&a);
}

TEST_F(events, a_domain)
{
	char name[] = "/tmp/events.XXXXXX";
	int file = mkstemp(name);
	struct thing thing;
	struct host a, b;
	__u32 domain;

	ASSERT_LE(0, file);
	OK(host_set_up(&a, 0));
	OK(host_set_up(&b, 0));
	NEXT(CONTEXT_NEW, &thing);
	NEXT(CONTEXT_NEW, &thing);
	OK(host_xrc(&a, file));
	NEXT(DOMAIN_NEW, &thing);
	domain = thing.is[DAPX_OBJECT_ATTR_DOMAIN];
	EXPECT_NE(0, domain);
	/* The second one only joins, and is the last. */
	OK(host_xrc(&b, file));
	EXPECT_TRUE(silent(self->fd));
	host_close(&a);
	NEXT(CONTEXT_ENDING, &thing);
	NEXT(CONTEXT_ENDED, &thing);
	host_close(&b);
	NEXT(CONTEXT_ENDING, &thing);
	NEXT(DOMAIN_GONE, &thing);
	EXPECT_IS(domain, &thing, DOMAIN);
	NEXT(CONTEXT_ENDED, &thing);
	unlink(name);
	close(file);
}

TEST_F(events, a_removed_device)
{
	struct thing thing;
	struct host a;

	OK(host_set_up(&a, 0));
	NEXT(CONTEXT_NEW, &thing);
	OK(device_remove(&a));
	NEXT(CONTEXT_ENDING, &thing);
	EXPECT_IS(DAPX_GENL_CAUSE_REMOVED, &thing, CAUSE);
	EXPECT_STREQ(a.device, thing.device);
	NEXT(CONTEXT_ENDED, &thing);
	OK(device_add(&a));
	/* There is nothing left to be told of. */
	host_close(&a);
	EXPECT_TRUE(silent(self->fd));
}

/* ---- a process that is killed ---- */

#define EPS 8

struct victim {
	uid_t user;
	unsigned int eps;
};

static int make_endpoints(void *arg)
{
	const struct victim *victim = arg;
	struct dapx_ep_create cmd;
	struct host own;
	unsigned int i;
	struct ep ep;

	if ((victim->user && become(victim->user)) || host_set_up(&own, 0))
		return -1;
	for (i = 0; i < victim->eps; i++) {
		ep_usual(&own, &cmd);
		if (ep_make(&own, &cmd, &ep))
			return -1;
	}
	return 0;
}

/* With @eps endpoints on @user's context, until killed. */
static pid_t victim(uid_t user, unsigned int eps)
{
	return keeper(make_endpoints, &(struct victim){ .user = user, .eps = eps });
}

TEST_F(events, a_killed_process)
{
	struct thing thing;
	unsigned int i;
	pid_t pid;

	pid = victim(0, EPS);
	ASSERT_LT(0, pid)
		TH_LOG("%s", why());
	NEXT(CONTEXT_NEW, &thing);
	EXPECT_IS(pid, &thing, PID);
	/* As it happens: before the process is waited for. */
	kill(pid, SIGKILL);
	NEXT(CONTEXT_ENDING, &thing);
	EXPECT_IS(pid, &thing, PID);
	EXPECT_IS(DAPX_GENL_CAUSE_EXITED, &thing, CAUSE);
	EXPECT_IS(5 + EPS, &thing, OBJECTS);
	for (i = 0; i < EPS; i++) {
		NEXT(EP_GONE, &thing);
		EXPECT_IS(pid, &thing, PID);
	}
	NEXT(CONTEXT_ENDED, &thing);
	EXPECT_TRUE(silent(self->fd));
	waitpid(pid, NULL, 0);
}

/* ---- to whom ---- */

/* What @user hears of a life of root's and one of nobody's: how many events, or 255. */
static int hears(uid_t user, int (*prepare)(void))
{
	int ready[2], done[2], status, fd;
	unsigned int heard = 0;
	struct thing thing;
	pid_t pid;
	char c;

	if (pipe(ready) || pipe(done))
		return because("pipe: %s", strerror(errno));
	pid = fork();
	if (!pid) {
		if ((prepare && prepare()) || (user && become(user)))
			_exit(254);
		fd = listen_to_events();
		if (fd < 0)
			_exit(errno == EPERM ? 255 : 254);
		if (write(ready[1], "", 1) != 1 || read(done[0], &c, 1) != 1)
			_exit(254);
		while (!next_within(fd, &thing, GLANCE_MS)) {
			heard++;
			if (user && thing.is[DAPX_OBJECT_ATTR_EVENT] == EVENT(CONTEXT_NEW) &&
			    strcmp(thing.name, "netlink_events"))
				_exit(253);
		}
		_exit(heard);
	}
	close(ready[1]);
	close(done[0]);
	if (read(ready[0], &c, 1) == 1) {
		kill_and_wait(victim(0, 1));
		kill_and_wait(victim(NOBODY, 1));
		kill_and_wait(victim(NOBODY, 1));
		/* What was told is in the socket when the last thing was. */
		sleep_ms(GLANCE_MS);
		if (write(done[1], "", 1) != 1)
			because("write: %s", strerror(errno));
	}
	close(ready[0]);
	close(done[1]);
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

TEST_F(events, users)
{
	/* A life: new, ending, an endpoint, ended. */
	EXPECT_EQ(3 * 4, hears(0, NULL));
	if (hears(NOBODY, NULL) == 255) {
		/* A kernel that cannot choose among listeners. */
		EXPECT_EQ(255, hears(0, drop_net_admin));
		return;
	}
	EXPECT_EQ(2 * 4, hears(NOBODY, NULL));
	EXPECT_EQ(1 * 4, hears(0, drop_net_admin));
}

/* ---- too many ---- */

/* Who does not read loses, and nobody else. */
TEST_F(events, a_slow_listener)
{
	int room = 4096, slow = listen_to_events(), i;
	const int lives = count(50, 500);
	char buffer[8192];
	struct thing thing;
	struct host a;

	ASSERT_LE(0, slow);
	ASSERT_EQ(0, setsockopt(slow, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)));
	for (i = 0; i < lives; i++) {
		OK(host_set_up(&a, 0));
		host_close(&a);
	}
	for (i = 0; i < lives; i++) {
		NEXT(CONTEXT_NEW, &thing);
		NEXT(CONTEXT_ENDING, &thing);
		NEXT(CONTEXT_ENDED, &thing);
	}
	for (i = 0; recv(slow, buffer, sizeof(buffer), MSG_DONTWAIT) > 0; i++)
		;
	EXPECT_EQ(ENOBUFS, errno);
	EXPECT_GT(3 * lives, i);
	close(slow);
}

TEST_HARNESS_MAIN
