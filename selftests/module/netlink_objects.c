// SPDX-License-Identifier: GPL-2.0
/*
 * What generic netlink tells of contexts and their objects, to whom, and that it waits
 * for nobody.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
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
#define TEST_TIMEOUT_DEFAULT 600

/* ---- what a dump tells ---- */

#define MOST 8192

struct list {
	unsigned int datagrams;
	unsigned int num;
	struct thing thing[MOST];
};

static int take_thing(struct list *list, const struct nlmsghdr *header)
{
	if (list->num == MOST)
		return because("more than %u things", MOST);
	return thing_read(&list->thing[list->num++], header);
}

/* One datagram; 1: it was the last. */
static int dump_go_on(int fd, struct list *list)
{
	static char buffer[64 * 1024];
	const struct nlmsghdr *header;
	unsigned int left;
	ssize_t length;

	length = recv(fd, buffer, sizeof(buffer), 0);
	if (length < 0)
		return because("recv: %s", strerror(errno));
	list->datagrams++;
	left = length;
	for (header = (void *)buffer; NLMSG_OK(header, left);
	     header = NLMSG_NEXT(header, left)) {
		if (header->nlmsg_type == NLMSG_DONE)
			return 1;
		if (header->nlmsg_type == NLMSG_ERROR) {
			errno = -*(const int *)NLMSG_DATA(header);
			return because("an error: %m");
		}
		if (take_thing(list, header))
			return -1;
	}
	return 0;
}

static int dump(struct list *list, __u8 cmd)
{
	int fd = nl_socket(), family = family_of(fd), ret;

	list->num = 0;
	list->datagrams = 0;
	ret = family < 0 ? -1 : ask(fd, family, NLM_F_DUMP, cmd, NULL);
	while (!ret)
		ret = dump_go_on(fd, list);
	close(fd);
	return ret < 0 ? -1 : 0;
}

static int contexts(struct list *list)
{
	return dump(list, DAPX_GENL_CMD_CONTEXT_GET);
}

static int objects(struct list *list)
{
	return dump(list, DAPX_GENL_CMD_OBJECT_GET);
}

struct question {
	struct list *list;
	__u8 cmd;
};

static int asks(void *arg)
{
	const struct question *question = arg;

	return dump(question->list, question->cmd);
}

/* What somebody else gets to see; @list is shared memory. */
static int see_as(struct list *list, uid_t user, int (*prepare)(void), __u8 cmd)
{
	return do_as(user, prepare, asks, &(struct question){ .list = list, .cmd = cmd });
}

static struct thing *find(struct list *list, __u32 context, __u32 type, __u32 handle)
{
	unsigned int i;

	for (i = 0; i < list->num; i++)
		if (list->thing[i].is[DAPX_OBJECT_ATTR_CONTEXT] == context &&
		    list->thing[i].is[DAPX_OBJECT_ATTR_TYPE] == type &&
		    list->thing[i].is[DAPX_OBJECT_ATTR_HANDLE] == handle)
			return &list->thing[i];
	return NULL;
}

/* ---- the scene ---- */

FIXTURE(objects)
{
	struct host a;
	__u32 context;
	int mode;		/* of the node */
	struct list *list;
};

FIXTURE_SETUP(objects)
{
	self->mode = node_chmod(0666);
	ASSERT_LE(0, self->mode);
	self->list = mmap(NULL, sizeof(*self->list), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->list);
	OK(host_set_up(&self->a, 0));
	OK(contexts(self->list));
	ASSERT_EQ(1, self->list->num);
	self->context = self->list->thing[0].is[DAPX_OBJECT_ATTR_CONTEXT];
	ASSERT_NE(0, self->context);
}

FIXTURE_TEARDOWN(objects)
{
	host_close(&self->a);
	node_chmod(self->mode);
	munmap(self->list, sizeof(*self->list));
}

/* Of this process, on this device. */
#define EXPECT_OWN(thing)						\
	({								\
		EXPECT_IS(self->context, thing, CONTEXT);		\
		EXPECT_IS(getpid(), thing, PID);			\
		EXPECT_STREQ(self->a.device, (thing)->device);		\
	})

#define FIND(type, handle)						\
	({								\
		struct thing *__thing = find(self->list, self->context,	\
					     DAPX_OBJECT_##type, handle); \
									\
		ASSERT_NE(NULL, __thing)				\
			TH_LOG("no " #type);				\
		EXPECT_OWN(__thing);					\
		__thing;						\
	})

/* ---- what is told ---- */

/* They may get a meaning; who sends one to this module must not take its silence for consent. */
TEST_F(objects, unknown_attribute)
{
	static const __u8 commands[] = {
		DAPX_GENL_CMD_XRCD_GET, DAPX_GENL_CMD_CONTEXT_GET, DAPX_GENL_CMD_OBJECT_GET,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		int fd = nl_socket(), family = family_of(fd);

		ASSERT_LT(0, family) TH_LOG("%s", why());
		OK(ask(fd, family, NLM_F_DUMP, commands[i], "nothing"));
		EXPECT_ERRNO(EINVAL, dump_go_on(fd, self->list));
		close(fd);
	}
}

TEST_F(objects, contexts)
{
	struct thing *thing = self->list->thing;
	struct host bare;

	EXPECT_OWN(thing);
	EXPECT_IS(0, thing, USER);
	/* A PD, three EVDs, a memory region. */
	EXPECT_IS(5, thing, OBJECTS);
	EXPECT_FALSE(thing->has[DAPX_OBJECT_ATTR_ENDING]);

	ASSERT_EQ(0, prctl(PR_SET_NAME, "a \"name\"\n"));
	OK(host_open(&bare, 0));
	OK(contexts(self->list));
	ASSERT_EQ(2, self->list->num);
	EXPECT_STREQ("a \"name\"\n", self->list->thing[0].name);
	thing = &self->list->thing[1];
	EXPECT_FALSE(thing->has[DAPX_OBJECT_ATTR_DEVICE]);
	EXPECT_IS(getpid(), thing, PID);
	EXPECT_IS(0, thing, OBJECTS);
	EXPECT_LT(self->context, thing->is[DAPX_OBJECT_ATTR_CONTEXT]);
	close(bare.fd);
	OK(contexts(self->list));
	EXPECT_EQ(1, self->list->num);
}

TEST_F(objects, what_a_host_has)
{
	struct thing *thing;
	struct srq srq;
	__u32 rmr;

	OK(srq_make(&self->a, 16, 1, &srq));
	rmr = test_cmd(rmr_create, self->a.fd, .pd = self->a.pd).out_rmr;
	OK(objects(self->list));
	EXPECT_EQ(7, self->list->num);

	thing = FIND(PD, self->a.pd);
	EXPECT_IS(3, thing, USERS);
	thing = FIND(MR, self->a.mr);
	EXPECT_IS(self->a.pd, thing, PD);
	EXPECT_IS(HOST_MEMORY, thing, LENGTH);
	EXPECT_TRUE(thing->is[DAPX_OBJECT_ATTR_ACCESS] & DAPX_ACCESS_REMOTE_WRITE);
	thing = FIND(EVD, self->a.done.handle);
	EXPECT_IS(self->a.done.ring.depth, thing, DEPTH);
	EXPECT_IS(0, thing, UNREAD);
	EXPECT_IS(0, thing, EVENTS);
	thing = FIND(SRQ, srq.handle);
	EXPECT_IS(self->a.pd, thing, PD);
	EXPECT_IS(16, thing, DEPTH);
	EXPECT_IS(0, thing, POSTED);
	EXPECT_FALSE(thing->has[DAPX_OBJECT_ATTR_NUMBER]);
	thing = FIND(RMR, rmr);
	EXPECT_IS(self->a.pd, thing, PD);
	EXPECT_IS(0, thing, STATE);
	EXPECT_FALSE(thing->has[DAPX_OBJECT_ATTR_MR]);
	ring_unmap(&srq.ring);
}

TEST_F(objects, a_connection)
{
	struct listener listener;
	struct thing *thing;
	struct ep ep, peer;
	struct host b;
	__u32 rmr;
	int i;

	OK(host_set_up(&b, 1));
	OK(listener_open(&b, &listener));
	OK(ep_create(&self->a, &ep));
	OK(ep_create(&b, &peer));
	OK(objects(self->list));
	thing = FIND(EP, ep.handle);
	EXPECT_IS(DAPX_EP_UNCONNECTED, thing, STATE);
	EXPECT_FALSE(thing->has[DAPX_OBJECT_ATTR_REMOTE]);

	OK(connect_through(&ep, &listener, &peer));
	for (i = 0; i < 5; i++)
		OK(ep_exchange(&ep, &peer));
	rmr = test_cmd(rmr_create, self->a.fd, .pd = self->a.pd).out_rmr;
	test_cmd(rmr_bind, self->a.fd, .rmr = rmr, .ep = ep.handle,
		 .mr = self->a.mr, .access = DAPX_ACCESS_REMOTE_READ,
		 .addr = (uintptr_t)self->a.mem + 4096, .length = 8192,
		 .flags = DAPX_BIND_SIGNALED, .wr_id = 77);
	OK(expect_completion(&self->a.done, 77, DAPX_STATUS_SUCCESS, NULL));

	OK(objects(self->list));
	thing = FIND(EP, ep.handle);
	EXPECT_IS(DAPX_EP_CONNECTED, thing, STATE);
	EXPECT_IS(self->a.pd, thing, PD);
	EXPECT_TRUE(thing->has[DAPX_OBJECT_ATTR_QP]);
	EXPECT_IS(0, thing, REQUESTS);
	EXPECT_LE(5, thing->is[DAPX_OBJECT_ATTR_POSTED]);
	EXPECT_IS(5, thing, RECEIVED);
	EXPECT_EQ(listener.port, get_port(&thing->remote));
	EXPECT_EQ(AF_INET, thing->local.ss_family);
	thing = FIND(RMR, rmr);
	EXPECT_IS(1, thing, STATE);
	EXPECT_IS(self->a.mr, thing, MR);
	EXPECT_IS(8192, thing, LENGTH);
	EXPECT_IS(DAPX_ACCESS_REMOTE_READ, thing, ACCESS);
	thing = FIND(EVD, self->a.recv.handle);
	EXPECT_IS(5, thing, EVENTS);

	/* The other context's are told, too, behind. */
	thing = find(self->list, self->context + 1, DAPX_OBJECT_CM, listener.cm);
	ASSERT_NE(NULL, thing);
	EXPECT_IS(DAPX_CM_LISTENING, thing, STATE);
	EXPECT_IS(0, thing, REQUESTS);
	EXPECT_EQ(listener.port, get_port(&thing->local));
	EXPECT_STREQ(b.device, thing->device);
	ep_forget(&ep);
	ep_forget(&peer);
	host_close(&b);
	OK(objects(self->list));
	EXPECT_EQ(NULL, find(self->list, self->context + 1, DAPX_OBJECT_CM, listener.cm));
}

TEST_F(objects, xrc)
{
	struct thing *thing, *domain;
	struct xrc_srq srq;
	__u32 qp_num;
	unsigned int i, qps = 0;

	OK(host_xrc(&self->a, -1));
	OK(xrc_srq_make(&self->a, 16, &srq));
	OK(xrc_qp_make(&self->a, &qp_num));
	OK(objects(self->list));
	domain = FIND(XRCD, self->a.xrcd);
	EXPECT_NE(0, domain->is[DAPX_OBJECT_ATTR_DOMAIN]);
	thing = FIND(SRQ, srq.srq.handle);
	EXPECT_IS(srq.number, thing, NUMBER);
	for (i = 0; i < self->list->num; i++) {
		thing = &self->list->thing[i];
		if (thing->is[DAPX_OBJECT_ATTR_TYPE] != DAPX_OBJECT_XRC_QP)
			continue;
		qps++;
		EXPECT_IS(qp_num, thing, QP);
		EXPECT_IS(domain->is[DAPX_OBJECT_ATTR_DOMAIN], thing, DOMAIN);
	}
	EXPECT_EQ(1, qps);
	ring_unmap(&srq.srq.ring);
}

/* More than a datagram holds: each is told once, in order. */
TEST_F(objects, many)
{
	const unsigned int pds = MOST - 5;
	unsigned int i;

	for (i = 0; i < pds; i++)
		test_cmd(pd_create, self->a.fd);
	OK(objects(self->list));
	EXPECT_EQ(pds + 5, self->list->num);
	EXPECT_LT(2, self->list->datagrams);
	for (i = 1; i < self->list->num; i++)
		ASSERT_LT(self->list->thing[i - 1].is[DAPX_OBJECT_ATTR_HANDLE],
			  self->list->thing[i].is[DAPX_OBJECT_ATTR_HANDLE]);
}

/* ---- to whom ---- */

static int open_context(void *unused)
{
	struct host own;

	return become(NOBODY) || host_set_up(&own, 0);
}

TEST_F(objects, users)
{
	const __u8 commands[] = { DAPX_GENL_CMD_CONTEXT_GET, DAPX_GENL_CMD_OBJECT_GET };
	unsigned int i, k, n;
	pid_t pid;

	/* A process of nobody's, with a context. */
	pid = keeper(open_context, NULL);
	ASSERT_LT(0, pid)
		TH_LOG("%s", why());
	OK(contexts(self->list));
	ASSERT_EQ(2, self->list->num);
	EXPECT_IS(pid, &self->list->thing[1], PID);
	EXPECT_IS(NOBODY, &self->list->thing[1], USER);
	OK(objects(self->list));
	EXPECT_EQ(10, self->list->num);

	/* Nobody sees what is nobody's, root in a namespace of its own too. */
	for (i = 0; i < 2; i++) {
		for (k = 0; k < 2; k++) {
			OK(see_as(self->list, NOBODY, k ? own_namespaces : NULL, commands[i]));
			EXPECT_EQ(i ? 5 : 1, self->list->num);
			for (n = 0; n < self->list->num; n++)
				EXPECT_IS(pid, &self->list->thing[n], PID);
		}
		/* Without the right root sees what is root's. */
		OK(see_as(self->list, 0, drop_net_admin, commands[i]));
		EXPECT_EQ(i ? 5 : 1, self->list->num);
		for (n = 0; n < self->list->num; n++)
			EXPECT_IS(getpid(), &self->list->thing[n], PID);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* What is not attached has a network namespace all the same. */
TEST_F(objects, network_namespaces)
{
	struct host bare;

	OK(host_open(&bare, 0));
	OK(see_as(self->list, 0, own_network, DAPX_GENL_CMD_CONTEXT_GET));
	/* Devices are shared by all namespaces, unless told otherwise. */
	ASSERT_EQ(1, self->list->num);
	EXPECT_STREQ(self->a.device, self->list->thing[0].device);
	close(bare.fd);
}

/* A device that was removed: its contexts are told, and that they are at their end. */
TEST_F(objects, of_a_removed_device)
{
	OK(device_remove(&self->a));
	OK(contexts(self->list));
	ASSERT_EQ(1, self->list->num);
	EXPECT_FALSE(self->list->thing[0].has[DAPX_OBJECT_ATTR_DEVICE]);
	EXPECT_TRUE(self->list->thing[0].has[DAPX_OBJECT_ATTR_ENDING]);
	EXPECT_IS(0, &self->list->thing[0], OBJECTS);
	OK(objects(self->list));
	EXPECT_EQ(0, self->list->num);
	OK(device_add(&self->a));
}

/* ---- meanwhile ---- */

struct crowd {
	atomic_bool stop;
	atomic_uint lives;
};

/* Contexts with some of each class, which come and go. */
static void *come_and_go(void *arg)
{
	struct crowd *crowd = arg;
	struct listener listener;
	struct ep ep, peer;
	struct host a, b;

	while (!crowd->stop) {
		if (host_set_up(&a, 0) || host_set_up(&b, 1) || listener_open(&b, &listener) ||
		    ep_create(&a, &ep) || ep_create(&b, &peer) ||
		    connect_through(&ep, &listener, &peer))
			return (void *)why();
		if (dice() % 2 && ep_destroy(&ep))
			return (void *)why();
		ep_forget(&peer);
		host_close(&a);
		host_close(&b);
		crowd->lives++;
	}
	return NULL;
}

TEST_F(objects, meanwhile)
{
	unsigned int lives = count(40, 1000), dumps = 0, seen = 0, i;
	struct crowd crowd = {};
	pthread_t thread[2];
	void *failure;

	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, come_and_go, &crowd));
	while (crowd.lives < lives) {
		OK(objects(self->list));
		seen += self->list->num;
		/* What was there all the time is always told. */
		EXPECT_NE(NULL, find(self->list, self->context, DAPX_OBJECT_MR, self->a.mr));
		OK(contexts(self->list));
		EXPECT_LE(1, self->list->num);
		dumps++;
		if (_metadata->exit_code == KSFT_FAIL)
			break;
	}
	crowd.stop = true;
	for (i = 0; i < 2; i++) {
		pthread_join(thread[i], &failure);
		EXPECT_EQ(NULL, failure)
			TH_LOG("%s", (const char *)failure);
	}
	TH_LOG("%u dumps of %u objects, %u lives", dumps, seen, crowd.lives);
	EXPECT_LT(5 * dumps, seen);
}

TEST_HARNESS_MAIN
