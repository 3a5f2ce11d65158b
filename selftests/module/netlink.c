// SPDX-License-Identifier: GPL-2.0
/*
 * What generic netlink tells of XRC domains, to whom, and that it may all change
 * meanwhile.
 */
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "harness/dice.h"
#include "harness/fabric.h"
#include "harness/machine.h"
#include "harness/netlink.h"
#include "harness/process.h"
#include "harness/xrc.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 600

#define CREATE DAPX_XRCD_CREATE
#define SOMEBODY 65533

/* ---- what a dump tells ---- */

#define MOST 4096
#define DOMAINS 8

struct domain {
	__u32 id;
	char device[DAPX_DEVICE_NAME_MAX];
	bool has_path;
	char path[PATH_MAX];
	bool partial;
	__u32 opens, srqs, qps;		/* as told */
	unsigned int num_open, num_srq, num_qp;
	struct {
		__u32 pid;
		char name[16];
	} open[MOST];
	struct {
		__u32 number, pid;
	} srq[MOST];
	struct {
		__u32 number, state, registrations;
		__u64 messages, not_ready;
	} qp[MOST];
};

struct list {
	unsigned int messages;
	bool interrupted;
	unsigned int num;
	struct domain domain[DOMAINS];
};

static void take_open(struct domain *d, const struct nlattr *in)
{
	const void *end = (const void *)in + in->nla_len;
	unsigned int i = d->num_open++;
	const struct nlattr *attr;

	if (i >= MOST)
		return;
	d->open[i].name[0] = '\0';
	for_each_attr(attr, value(in), end) {
		if (attr->nla_type == DAPX_XRCD_OPEN_PID)
			d->open[i].pid = number(attr);
		if (attr->nla_type == DAPX_XRCD_OPEN_NAME)
			snprintf(d->open[i].name, sizeof(d->open[i].name), "%s",
				 (const char *)value(attr));
	}
}

static void take_srq(struct domain *d, const struct nlattr *in)
{
	const void *end = (const void *)in + in->nla_len;
	unsigned int i = d->num_srq++;
	const struct nlattr *attr;

	if (i >= MOST)
		return;
	for_each_attr(attr, value(in), end) {
		if (attr->nla_type == DAPX_XRCD_SRQ_NUMBER)
			d->srq[i].number = number(attr);
		if (attr->nla_type == DAPX_XRCD_SRQ_PID)
			d->srq[i].pid = number(attr);
	}
}

static void take_qp(struct domain *d, const struct nlattr *in)
{
	const void *end = (const void *)in + in->nla_len;
	unsigned int i = d->num_qp++;
	const struct nlattr *attr;

	if (i >= MOST)
		return;
	for_each_attr(attr, value(in), end) {
		if (attr->nla_type == DAPX_XRCD_QP_NUMBER)
			d->qp[i].number = number(attr);
		if (attr->nla_type == DAPX_XRCD_QP_STATE)
			d->qp[i].state = number(attr);
		if (attr->nla_type == DAPX_XRCD_QP_REGISTRATIONS)
			d->qp[i].registrations = number(attr);
		if (attr->nla_type == DAPX_XRCD_QP_MESSAGES)
			d->qp[i].messages = large(attr);
		if (attr->nla_type == DAPX_XRCD_QP_NOT_READY)
			d->qp[i].not_ready = large(attr);
	}
}

static struct domain *domain_of(struct list *list, __u32 id)
{
	struct domain *d;
	unsigned int i;

	for (i = 0; i < list->num; i++)
		if (list->domain[i].id == id)
			return &list->domain[i];
	if (list->num == DOMAINS)
		return NULL;
	d = &list->domain[list->num++];
	d->id = id;
	return d;
}

static int take_message(struct list *list, const struct nlmsghdr *header)
{
	const void *end = (const void *)header + header->nlmsg_len;
	const struct nlattr *attr, *first = NLMSG_DATA(header) + GENL_HDRLEN;
	struct domain *d;

	list->messages++;
	if (header->nlmsg_flags & NLM_F_DUMP_INTR)
		list->interrupted = true;
	if (first->nla_type != DAPX_XRCD_ATTR_ID)
		return because("a message without a domain");
	d = domain_of(list, number(first));
	if (!d)
		return because("too many domains");
	for_each_attr(attr, first, end) {
		switch (attr->nla_type & NLA_TYPE_MASK) {
		case DAPX_XRCD_ATTR_DEVICE:
			if (d->device[0])
				return because("two heads of one domain");
			snprintf(d->device, sizeof(d->device), "%s",
				 (const char *)value(attr));
			break;
		case DAPX_XRCD_ATTR_PATH:
			d->has_path = true;
			snprintf(d->path, sizeof(d->path), "%s",
				 (const char *)value(attr));
			break;
		case DAPX_XRCD_ATTR_PARTIAL:
			d->partial = true;
			break;
		case DAPX_XRCD_ATTR_OPENS:
			d->opens = number(attr);
			break;
		case DAPX_XRCD_ATTR_SRQS:
			d->srqs = number(attr);
			break;
		case DAPX_XRCD_ATTR_QPS:
			d->qps = number(attr);
			break;
		case DAPX_XRCD_ATTR_OPEN:
			take_open(d, attr);
			break;
		case DAPX_XRCD_ATTR_SRQ:
			take_srq(d, attr);
			break;
		case DAPX_XRCD_ATTR_QP:
			take_qp(d, attr);
			break;
		}
	}
	return 0;
}

static int dump_begin(int fd)
{
	int family = family_of(fd);

	if (family < 0)
		return -1;
	return ask(fd, family, NLM_F_DUMP, DAPX_GENL_CMD_XRCD_GET, NULL);
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
	left = length;
	for (header = (void *)buffer; NLMSG_OK(header, left);
	     header = NLMSG_NEXT(header, left)) {
		if (header->nlmsg_type == NLMSG_DONE) {
			if (header->nlmsg_flags & NLM_F_DUMP_INTR)
				list->interrupted = true;
			return 1;
		}
		if (header->nlmsg_type == NLMSG_ERROR) {
			errno = -*(const int *)NLMSG_DATA(header);
			return because("an error: %m");
		}
		if (take_message(list, header))
			return -1;
	}
	return 0;
}

static int dump_finish(int fd, struct list *list)
{
	int ret;

	do {
		ret = dump_go_on(fd, list);
	} while (!ret);
	return ret < 0 ? -1 : 0;
}

static int dump(struct list *list)
{
	int fd = nl_socket(), ret;

	memset(list, 0, sizeof(*list));
	ret = dump_begin(fd) ?: dump_finish(fd, list);
	close(fd);
	return ret;
}

static struct domain *by_path(struct list *list, const char *path)
{
	unsigned int i;

	for (i = 0; i < list->num; i++)
		if (list->domain[i].has_path &&
		    !strcmp(list->domain[i].path, path))
			return &list->domain[i];
	return NULL;
}

/* ---- who asks ---- */

static int dumps(void *list)
{
	return dump(list);
}

/* What somebody else gets to see; @list is shared memory. */
static int dump_as(struct list *list, uid_t user, int (*prepare)(void))
{
	return do_as(user, prepare, dumps, list);
}

/* ---- the scene ---- */

FIXTURE(netlink)
{
	struct host a;
	char folder[32];
	char name[64];
	int file;
	int mode;		/* of the node */
	struct list *list;
};

FIXTURE_SETUP(netlink)
{
	self->mode = node_chmod(0666);
	ASSERT_LE(0, self->mode);
	self->list = mmap(NULL, sizeof(*self->list), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->list);
	OK(host_set_up(&self->a, 0));
	snprintf(self->folder, sizeof(self->folder), "/tmp/netlink.XXXXXX");
	ASSERT_NE(NULL, mkdtemp(self->folder));
	ASSERT_EQ(0, chmod(self->folder, 0755));
	snprintf(self->name, sizeof(self->name), "%s/job", self->folder);
	self->file = open(self->name, O_RDWR | O_CREAT, 0600);
	ASSERT_LE(0, self->file);
	ASSERT_EQ(0, fchmod(self->file, 0666));
}

FIXTURE_TEARDOWN(netlink)
{
	close(self->file);
	host_close(&self->a);
	node_chmod(self->mode);
	run("rm -rf %s", self->folder);
	munmap(self->list, sizeof(*self->list));
}

static int xrcd_open(const struct host *host, int fd, __u32 *xrcd)
{
	struct dapx_xrcd_open cmd = { .fd = fd, .flags = CREATE };

	if (_test_cmd_xrcd_open(host->fd, &cmd))
		return because("XRCD_OPEN: %s", strerror(errno));
	if (xrcd)
		*xrcd = cmd.out_xrcd;
	return 0;
}

static int qp_new(const struct host *host, __u32 xrcd, __u32 *qp_num)
{
	struct dapx_xrc_qp_create cmd = { .xrcd = xrcd };

	if (_test_cmd_xrc_qp_create(host->fd, &cmd))
		return because("XRC_QP_CREATE: %s", strerror(errno));
	if (qp_num)
		*qp_num = cmd.out_qp_num;
	return 0;
}

/* ---- what is told ---- */

TEST_F(netlink, nothing)
{
	OK(dump(self->list));
	EXPECT_EQ(0, self->list->num);
	EXPECT_FALSE(self->list->interrupted);
}

TEST_F(netlink, opens)
{
	char path[80];
	struct domain *d;
	unsigned int i;
	__u32 xrcd;
	int fd;

	ASSERT_EQ(0, prctl(PR_SET_NAME, "a \"name\"\n"));
	OK(xrcd_open(&self->a, self->file, NULL));
	OK(xrcd_open(&self->a, self->file, NULL));
	OK(xrcd_open(&self->a, -1, NULL));
	fd = memfd_create("job", 0);
	OK(xrcd_open(&self->a, fd, &xrcd));
	OK(dump(self->list));
	ASSERT_EQ(3, self->list->num);
	for (i = 0; i < 3; i++) {
		d = &self->list->domain[i];
		EXPECT_STREQ(self->a.device, d->device);
		EXPECT_FALSE(d->partial);
		EXPECT_EQ(d->opens, d->num_open);
		EXPECT_EQ(getpid(), d->open[0].pid);
		EXPECT_STREQ("a \"name\"\n", d->open[0].name);
		EXPECT_EQ(0, d->srqs + d->num_srq + d->qps + d->num_qp);
	}
	d = by_path(self->list, self->name);
	ASSERT_NE(NULL, d);
	EXPECT_EQ(2, d->num_open);
	d = by_path(self->list, "/memfd:job (deleted)");
	ASSERT_NE(NULL, d);
	EXPECT_EQ(1, d->num_open);
	EXPECT_EQ(1, !self->list->domain[0].has_path +
		     !self->list->domain[1].has_path +
		     !self->list->domain[2].has_path);

	snprintf(path, sizeof(path), "%s/renamed", self->folder);
	ASSERT_EQ(0, rename(self->name, path));
	OK(dump(self->list));
	EXPECT_NE(NULL, by_path(self->list, path));
	ASSERT_EQ(0, unlink(path));
	strcat(path, " (deleted)");
	test_cmd(free, self->a.fd, .handle = xrcd, .type = DAPX_OBJECT_XRCD);
	OK(dump(self->list));
	EXPECT_NE(NULL, by_path(self->list, path));
	EXPECT_EQ(2, self->list->num);
	EXPECT_FALSE(self->list->interrupted);
	close(fd);
}

TEST_F(netlink, queues)
{
	struct host sender, second;
	struct xrc_srq srq, other;
	struct domain *d;
	struct ep ep;
	__u32 qp_num, idle;
	unsigned int i;

	OK(host_set_up(&second, 0));
	OK(host_xrc(&self->a, self->file));
	OK(host_xrc(&second, self->file));
	OK(xrc_srq_make(&self->a, 16, &srq));
	OK(xrc_srq_make(&second, 16, &other));
	OK(xrc_qp_make(&self->a, &qp_num));
	OK(qp_new(&second, second.xrcd, &idle));
	test_cmd(xrc_qp_register, second.fd, .xrcd = second.xrcd,
		 .qp_num = qp_num);
	OK(host_set_up(&sender, 1));
	OK(host_xrc(&sender, -1));
	OK(xrc_ep_create(&sender, &ep));
	OK(xrc_connect(&ep, &self->a, qp_num));
	for (i = 0; i < 3; i++) {
		OK(srq_recv(&srq.srq, i, 0, 64));
		OK(xrc_send(&ep, srq.number, i, 0, 64));
		OK(expect_completion(&sender.done, i, DAPX_STATUS_SUCCESS,
				     NULL));
	}

	OK(dump(self->list));
	d = by_path(self->list, self->name);
	ASSERT_NE(NULL, d);
	EXPECT_EQ(2, self->list->num);
	EXPECT_EQ(2, d->num_open);
	EXPECT_EQ(2, d->srqs);
	ASSERT_EQ(2, d->num_srq);
	EXPECT_EQ(srq.number, d->srq[0].number);
	EXPECT_EQ(other.number, d->srq[1].number);
	EXPECT_EQ(getpid(), d->srq[1].pid);
	EXPECT_EQ(2, d->qps);
	ASSERT_EQ(2, d->num_qp);
	EXPECT_EQ(qp_num, d->qp[0].number);
	EXPECT_EQ(2, d->qp[0].registrations);
	EXPECT_LE(DAPX_QP_RTR, d->qp[0].state);
	EXPECT_GE(DAPX_QP_RTS, d->qp[0].state);
	EXPECT_EQ(3, d->qp[0].messages);
	EXPECT_EQ(0, d->qp[0].not_ready);
	EXPECT_EQ(idle, d->qp[1].number);
	EXPECT_EQ(DAPX_QP_RESET, d->qp[1].state);
	EXPECT_EQ(1, d->qp[1].registrations);

	/* What goes is not told any more. */
	ring_unmap(&other.srq.ring);
	host_close(&second);
	OK(dump(self->list));
	d = by_path(self->list, self->name);
	ASSERT_NE(NULL, d);
	EXPECT_EQ(1, d->num_open);
	EXPECT_EQ(1, d->num_srq);
	ASSERT_EQ(1, d->num_qp);
	EXPECT_EQ(1, d->qp[0].registrations);
	ring_unmap(&srq.srq.ring);
	ep_forget(&ep);
	host_close(&sender);
}

/* As long as a path may be, and longer. */
TEST_F(netlink, long_paths)
{
	char name[NAME_MAX + 1], path[PATH_MAX];
	int home = open(".", O_RDONLY), fd;
	unsigned int i, empty = 0;
	size_t longest = 0;

	memset(name, 'n', sizeof(name) - 1);
	name[NAME_MAX] = '\0';
	ASSERT_EQ(0, chdir(self->folder));
	for (i = 0; i < 16; i++) {
		ASSERT_EQ(0, mkdir(name, 0755));
		ASSERT_EQ(0, chdir(name));
		if (i < 14)
			continue;
		fd = open("job", O_RDWR | O_CREAT, 0600);
		ASSERT_LE(0, fd);
		OK(xrcd_open(&self->a, fd, NULL));
		close(fd);
	}
	/* In the folder of fifteen: as long as is just possible. */
	ASSERT_EQ(0, chdir(".."));
	memset(path, 'p', sizeof(path));
	path[PATH_MAX - 2 - strlen(self->folder) - 15 * (NAME_MAX + 1)] = '\0';
	fd = open(path, O_RDWR | O_CREAT, 0600);
	ASSERT_LE(0, fd);
	OK(xrcd_open(&self->a, fd, NULL));
	close(fd);
	ASSERT_EQ(0, fchdir(home));
	close(home);
	OK(dump(self->list));
	ASSERT_EQ(3, self->list->num);
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(1, self->list->domain[i].num_open);
		EXPECT_TRUE(self->list->domain[i].has_path);
		empty += !self->list->domain[i].path[0];
		if (strlen(self->list->domain[i].path) > longest)
			longest = strlen(self->list->domain[i].path);
	}
	EXPECT_EQ(1, empty);
	EXPECT_EQ(PATH_MAX - 1, longest);
}

/* More than a message holds: each is told once. */
TEST_F(netlink, many)
{
	unsigned int qps = count(150, 1500), srqs = count(100, 500), i, k;
	const unsigned int opens = 3000;
	struct xrc_srq srq;
	struct domain *d;

	OK(host_xrc(&self->a, self->file));
	for (i = 1; i < opens; i++)
		OK(xrcd_open(&self->a, self->file, NULL));
	for (i = 0; i < srqs; i++) {
		OK(xrc_srq_make(&self->a, 1, &srq));
		ring_unmap(&srq.srq.ring);
	}
	for (i = 0; i < qps; i++)
		OK(qp_new(&self->a, self->a.xrcd, NULL));
	OK(dump(self->list));
	ASSERT_EQ(1, self->list->num);
	d = self->list->domain;
	TH_LOG("%u opens, %u SRQs, %u queue pairs in %u messages", opens, srqs,
	       qps, self->list->messages);
	EXPECT_LT(1, self->list->messages);
	EXPECT_EQ(opens, d->opens);
	EXPECT_EQ(opens, d->num_open);
	EXPECT_EQ(srqs, d->srqs);
	EXPECT_EQ(srqs, d->num_srq);
	EXPECT_EQ(qps, d->qps);
	EXPECT_EQ(qps, d->num_qp);
	EXPECT_FALSE(self->list->interrupted);
	for (i = 0; i < srqs; i++)
		for (k = 0; k < i; k++)
			ASSERT_NE(d->srq[i].number, d->srq[k].number);
	for (i = 0; i < qps; i++)
		for (k = 0; k < i; k++)
			ASSERT_NE(d->qp[i].number, d->qp[k].number);
}

/* ---- to whom ---- */

/*
 * Or they are not. Before all that make a namespace while devices are shared: ib_core
 * uses its copy of a device after its end if it stops to share just then.
 */
TEST_F(netlink, network_namespaces)
{
	OK(xrcd_open(&self->a, self->file, NULL));
	if (run("rdma system set netns exclusive"))
		SKIP(return, "devices cannot be kept to their namespace");
	OK(dump_as(self->list, 0, own_network));
	EXPECT_EQ(0, self->list->num);
	OK(dump(self->list));
	EXPECT_EQ(1, self->list->num);
	while (run("rdma system set netns shared"))
		sleep_ms(20);
}

/* In memory that is shared with the neighbour. */
struct shared {
	int file;
	struct xrc_srq srq;
	__u32 qp_num;
};

static int join_domain(void *arg)
{
	struct shared *theirs = arg;
	struct host own;

	return become(NOBODY) || host_set_up(&own, 0) || host_xrc(&own, theirs->file) ||
	       xrc_srq_make(&own, 16, &theirs->srq) || qp_new(&own, own.xrcd, &theirs->qp_num);
}

/* A process of nobody's, with one of each in the domain of @file, until killed. */
static pid_t neighbour(int file, struct shared *theirs)
{
	theirs->file = file;
	return keeper(join_domain, theirs);
}

static int own_mounts(void)
{
	return unshare(CLONE_NEWUSER | CLONE_NEWNS);
}

static int mounts_of_root(void)
{
	return unshare(CLONE_NEWNS);
}

/* A name that means something else, or nothing, where the reader is. */
TEST_F(netlink, path_in_another_mount_namespace)
{
	struct shared *theirs;
	pid_t pid;

	theirs = mmap(NULL, sizeof(*theirs), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, theirs);
	pid = neighbour(self->file, theirs);
	ASSERT_LT(0, pid) TH_LOG("%s", why());
	OK(dump_as(self->list, NOBODY, NULL));
	ASSERT_EQ(1, self->list->num);
	EXPECT_STREQ(self->name, self->list->domain[0].path);
	OK(dump_as(self->list, NOBODY, own_mounts));
	ASSERT_EQ(1, self->list->num);
	EXPECT_TRUE(self->list->domain[0].has_path);
	EXPECT_STREQ("", self->list->domain[0].path);
	/* Who may, sees all. */
	OK(dump_as(self->list, 0, mounts_of_root));
	EXPECT_STREQ(self->name, self->list->domain[0].path);
	kill_and_wait(pid);
}

TEST_F(netlink, users)
{
	struct shared *theirs;
	struct xrc_srq srq;
	struct domain *d;
	unsigned int i;
	__u32 qp_num;
	pid_t pid;

	theirs = mmap(NULL, sizeof(*theirs), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, theirs);
	OK(host_xrc(&self->a, self->file));
	OK(xrc_srq_make(&self->a, 16, &srq));
	OK(qp_new(&self->a, self->a.xrcd, &qp_num));
	OK(xrcd_open(&self->a, -1, NULL));
	pid = neighbour(self->file, theirs);
	ASSERT_LT(0, pid)
		TH_LOG("%s", why());

	/* Who may, sees all. */
	OK(dump(self->list));
	EXPECT_EQ(2, self->list->num);
	d = by_path(self->list, self->name);
	ASSERT_NE(NULL, d);
	EXPECT_FALSE(d->partial);
	ASSERT_EQ(2, d->num_open);
	EXPECT_EQ(pid, d->open[1].pid);
	EXPECT_EQ(2, d->num_srq);
	EXPECT_EQ(pid, d->srq[1].pid);
	EXPECT_EQ(2, d->num_qp);

	/* Nobody sees what is nobody's, root in a namespace of its own too. */
	for (i = 0; i < 2; i++) {
		OK(dump_as(self->list, NOBODY, i ? own_namespaces : NULL));
		ASSERT_EQ(1, self->list->num);
		d = self->list->domain;
		EXPECT_TRUE(d->partial);
		EXPECT_STREQ(self->name, d->path);
		EXPECT_EQ(2, d->opens);
		ASSERT_EQ(1, d->num_open);
		EXPECT_EQ(pid, d->open[0].pid);
		EXPECT_EQ(2, d->srqs);
		ASSERT_EQ(1, d->num_srq);
		EXPECT_EQ(theirs->srq.number, d->srq[0].number);
		EXPECT_EQ(2, d->qps);
		ASSERT_EQ(1, d->num_qp);
		EXPECT_EQ(theirs->qp_num, d->qp[0].number);
	}

	/* So does root, without the capability. */
	OK(dump_as(self->list, 0, drop_net_admin));
	EXPECT_EQ(2, self->list->num);
	d = by_path(self->list, self->name);
	ASSERT_NE(NULL, d);
	EXPECT_TRUE(d->partial);
	ASSERT_EQ(1, d->num_open);
	EXPECT_EQ(getpid(), d->open[0].pid);
	ASSERT_EQ(1, d->num_srq);
	EXPECT_EQ(srq.number, d->srq[0].number);
	ASSERT_EQ(1, d->num_qp);
	EXPECT_EQ(qp_num, d->qp[0].number);

	/* Who is registered sees the queue pair. */
	test_cmd(xrc_qp_register, self->a.fd, .xrcd = self->a.xrcd,
		 .qp_num = theirs->qp_num);
	OK(dump_as(self->list, 0, drop_net_admin));
	d = by_path(self->list, self->name);
	ASSERT_NE(NULL, d);
	EXPECT_EQ(2, d->num_qp);

	OK(dump_as(self->list, SOMEBODY, NULL));
	EXPECT_EQ(0, self->list->num);

	kill_and_wait(pid);
	OK(dump_as(self->list, NOBODY, NULL));
	EXPECT_EQ(0, self->list->num);
	ring_unmap(&srq.srq.ring);
}

/* A socket gives nobody more rights than both who opened it and who asks have. */
TEST_F(netlink, borrowed_socket)
{
	int fd;

	OK(xrcd_open(&self->a, self->file, NULL));
	/* Of the real root's, used as nobody. */
	fd = nl_socket();
	ASSERT_EQ(0, seteuid(NOBODY));
	OK(dump_begin(fd));
	OK(dump_finish(fd, self->list));
	EXPECT_EQ(0, self->list->num);
	close(fd);
	/* Of nobody's, used as root. */
	fd = nl_socket();
	ASSERT_EQ(0, seteuid(0));
	OK(dump_begin(fd));
	OK(dump_finish(fd, self->list));
	EXPECT_EQ(0, self->list->num);
	/* Asked as root, and fetched as nobody. */
	close(fd);
	fd = nl_socket();
	OK(dump_begin(fd));
	ASSERT_EQ(0, seteuid(NOBODY));
	OK(dump_finish(fd, self->list));
	ASSERT_EQ(0, seteuid(0));
	EXPECT_GE(1, self->list->num);
	close(fd);
}

/* The devices of the first network namespace are seen in all. */
TEST_F(netlink, shared_devices)
{
	OK(xrcd_open(&self->a, self->file, NULL));
	OK(dump_as(self->list, 0, own_network));
	ASSERT_EQ(1, self->list->num);
	EXPECT_FALSE(self->list->domain[0].partial);
	EXPECT_STREQ(self->name, self->list->domain[0].path);
}

/* ---- and meanwhile ---- */

/* Many opens of one domain: more than a datagram. */
static int fill(struct host *host, int file)
{
	unsigned int i;

	for (i = 0; i < 3000; i++)
		if (xrcd_open(host, file, NULL))
			return -1;
	return 0;
}

/* The first messages, not all; then what @change does; then the others. */
static int dump_around(struct list *list, int (*change)(struct host *host),
		       struct host *host)
{
	int fd = nl_socket(), ret;

	memset(list, 0, sizeof(*list));
	if (dump_begin(fd) || dump_go_on(fd, list)) {
		close(fd);
		return because("no dump of several datagrams");
	}
	ret = change(host) ?: dump_finish(fd, list);
	close(fd);
	return ret;
}

static int close_it(struct host *host)
{
	host_close(host);
	return 0;
}

static int remove_it(struct host *host)
{
	return device_remove(host);
}

static int add_to_it(struct host *host)
{
	return xrcd_open(host, -1, NULL);
}

TEST_F(netlink, more_meanwhile)
{
	OK(fill(&self->a, self->file));
	OK(dump_around(self->list, add_to_it, &self->a));
	EXPECT_TRUE(self->list->interrupted);
	/* What was there all the time is told, once. */
	EXPECT_EQ(3000, self->list->domain[0].num_open);
	EXPECT_EQ(2, self->list->num);
}

TEST_F(netlink, closed_meanwhile)
{
	OK(fill(&self->a, self->file));
	OK(dump_around(self->list, close_it, &self->a));
	EXPECT_GT(3000, self->list->domain[0].num_open);
	EXPECT_EQ(1, self->list->num);
	OK(dump(self->list));
	EXPECT_EQ(0, self->list->num);
}

TEST_F(netlink, removed_meanwhile)
{
	OK(fill(&self->a, self->file));
	OK(dump_around(self->list, remove_it, &self->a));
	EXPECT_GT(3000, self->list->domain[0].num_open);
	OK(dump(self->list));
	EXPECT_EQ(0, self->list->num);
	OK(device_add(&self->a));
}

/* A dump that is never fetched to its end keeps nothing. */
TEST_F(netlink, given_up)
{
	int fd = nl_socket();

	OK(fill(&self->a, self->file));
	OK(dump_begin(fd));
	OK(dump_go_on(fd, self->list));
	host_close(&self->a);
	OK(dump(self->list));
	EXPECT_EQ(0, self->list->num);
	close(fd);
}

static atomic_bool enough;

/* Comes and goes, in the middle of whatever others do. */
static void *come_and_go(void *arg)
{
	const int *file = arg;
	unsigned int round;
	struct host own;
	__u32 xrcd;

	for (round = 0; !enough; round++) {
		if (host_open(&own, 0) || host_attach(&own))
			return "no context";
		if (xrcd_open(&own, *file, &xrcd) ||
		    qp_new(&own, xrcd, NULL) || xrcd_open(&own, -1, NULL))
			return "no domain";
		if (round & 1)
			_test_cmd(free, own.fd, .handle = xrcd);
		host_close(&own);
	}
	return NULL;
}

TEST_F(netlink, at_once)
{
	unsigned int rounds = count(100, 5000), i;
	pthread_t threads[3];
	void *wrong;

	OK(xrcd_open(&self->a, self->file, NULL));
	enough = false;
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, come_and_go,
					    &self->file));
	for (i = 0; i < rounds; i++) {
		OK(dump(self->list));
		/* Ours is there all the time. */
		ASSERT_NE(NULL, by_path(self->list, self->name));
	}
	enough = true;
	for (i = 0; i < ARRAY_SIZE(threads); i++) {
		pthread_join(threads[i], &wrong);
		EXPECT_EQ(NULL, wrong)
			TH_LOG("%s", (char *)wrong);
	}
	OK(dump(self->list));
	EXPECT_EQ(1, self->list->num);
	EXPECT_EQ(1, self->list->domain[0].num_open);
}

TEST_HARNESS_MAIN
