// SPDX-License-Identifier: GPL-2.0
/*
 * Handles and contexts: what names what, who may use it, how many there may be.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "harness/dice.h"
#include "harness/ep.h"
#include "harness/machine.h"
#include "harness/process.h"
#include "harness/snapshot.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 300

#define ALL_CLASSES 6

FIXTURE(object)
{
	struct host a;
	struct host b;
	long max_objects;
	long max_user_objects;
};

FIXTURE_SETUP(object)
{
	OK(host_set_up(&self->a, 0));
	OK(host_set_up(&self->b, 1));
	self->max_objects = module_parameter("max_objects");
	self->max_user_objects = module_parameter("max_user_objects");
}

FIXTURE_TEARDOWN(object)
{
	if (self->max_objects > 0)
		set_module_parameter("max_objects", self->max_objects);
	if (self->max_user_objects > 0)
		set_module_parameter("max_user_objects", self->max_user_objects);
	host_close(&self->a);
	host_close(&self->b);
}

/* One object of each class, by class, with the class in its cookie. */
static int make_all(struct host *host, __u32 handles[ALL_CLASSES + 1])
{
	struct dapx_pd_create pd = { .user_data = 0x100 + DAPX_OBJECT_PD };
	struct dapx_mr_create mr = {
		.user_data = 0x100 + DAPX_OBJECT_MR,
		.addr = (uintptr_t)host->mem, .length = 4096,
	};
	struct dapx_evd_create evd = {
		.user_data = 0x100 + DAPX_OBJECT_EVD, .depth = 4,
	};
	struct dapx_srq_create srq = {
		.user_data = 0x100 + DAPX_OBJECT_SRQ, .depth = 4, .max_sge = 1,
	};
	struct dapx_cm_create cm = { .user_data = 0x100 + DAPX_OBJECT_CM };
	struct dapx_ep_create ep;

	if (_test_cmd_pd_create(host->fd, &pd))
		return because("DAPX_PD_CREATE: %m");
	mr.pd = pd.out_pd;
	srq.pd = pd.out_pd;
	if (_test_cmd_mr_create(host->fd, &mr) ||
	    _test_cmd_evd_create(host->fd, &evd) ||
	    _test_cmd_srq_create(host->fd, &srq))
		return because("MR, EVD or SRQ: %m");
	ep_usual(host, &ep);
	ep.user_data = 0x100 + DAPX_OBJECT_EP;
	ep.pd = pd.out_pd;
	ep.srq = srq.out_srq;
	ep.attr.recv_depth = 0;
	ep.attr.max_recv_sge = 0;
	ep.request_evd = evd.out_evd;
	ep.recv_evd = evd.out_evd;
	ep.connect_evd = evd.out_evd;
	if (_test_cmd_ep_create(host->fd, &ep))
		return because("DAPX_EP_CREATE: %m");
	cm.evd = evd.out_evd;
	if (_test_cmd_cm_create(host->fd, &cm))
		return because("DAPX_CM_CREATE: %m");
	handles[DAPX_OBJECT_PD] = pd.out_pd;
	handles[DAPX_OBJECT_MR] = mr.out_mr;
	handles[DAPX_OBJECT_EVD] = evd.out_evd;
	handles[DAPX_OBJECT_SRQ] = srq.out_srq;
	handles[DAPX_OBJECT_EP] = ep.out_ep;
	handles[DAPX_OBJECT_CM] = cm.out_cm;
	return 0;
}

TEST_F(object, info)
{
	struct dapx_info info;
	int fd;

	fd = open(DAPX_NODE, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, fd);
	info = test_cmd(info, fd, 0);
	EXPECT_EQ(DAPX_FEATURE_RC | DAPX_FEATURE_SRQ | DAPX_FEATURE_RMR | DAPX_FEATURE_XRC |
		  DAPX_FEATURE_QUIET, info.out_features);
	EXPECT_EQ(self->max_objects, info.out_max_objects);
	EXPECT_EQ(self->max_user_objects, info.out_max_user_objects);
	EXPECT_LE(4096, info.out_max_ring_depth);
	EXPECT_LE(8, info.out_max_sge);
	EXPECT_LE(64, info.out_max_inline);
	EXPECT_LE(1, info.out_max_backlog);
	close(fd);
}

TEST_F(object, query_device)
{
	struct dapx_query_device *limits = &self->a.limits;
	char path[128];
	const char *guid;
	__u8 bytes[8];

	EXPECT_STREQ(self->a.device, limits->out_device);
	/* siw has no more. */
	EXPECT_LE(on_siw() ? 6 : 8, limits->out_max_send_sge);
	EXPECT_LE(on_siw() ? 6 : 8, limits->out_max_recv_sge);
	EXPECT_LE(64, limits->out_max_inline);
	EXPECT_LE(200, limits->out_max_ep);
	EXPECT_LE(64, limits->out_max_send_depth);
	EXPECT_LE(64, limits->out_max_recv_depth);
	EXPECT_LE(1 << 20, limits->out_max_mr_size);
	EXPECT_LE(1 << 20, limits->out_max_msg_size);
	EXPECT_EQ(1, limits->out_ports);
	/* Of a network interface with an MTU of 1500 bytes. */
	EXPECT_EQ(1024, limits->out_active_mtu);
	EXPECT_LE(64, limits->out_max_accept_data);
	EXPECT_LE(64, limits->out_max_reject_data);
	EXPECT_GE(DAPX_PRIVATE_DATA_MAX, limits->out_max_accept_data);
	EXPECT_GE(DAPX_PRIVATE_DATA_MAX, limits->out_max_reject_data);
	if (on_siw()) {
		EXPECT_EQ(DAPX_DEVICE_IWARP | DAPX_DEVICE_SRQ, limits->out_caps);
		EXPECT_LE(56, limits->out_max_connect_data);
	} else {
		EXPECT_EQ(DAPX_DEVICE_ATOMICS | DAPX_DEVICE_SRQ |
			  DAPX_DEVICE_IMM | DAPX_DEVICE_QP_EXCHANGE |
			  DAPX_DEVICE_SOLICITED | DAPX_DEVICE_TIMEWAIT_EXIT, limits->out_caps);
		/* What the RDMA CM's own header leaves. */
		EXPECT_EQ(56, limits->out_max_connect_data);
		EXPECT_LE(1, limits->out_max_rd_atomic);
		EXPECT_LE(1, limits->out_max_dest_rd_atomic);
	}

	/* 0011:2233:4455:6677 */
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/node_guid",
		 self->a.device);
	guid = read_line(path);
	ASSERT_NE(NULL, guid);
	memcpy(bytes, &limits->out_node_guid, sizeof(bytes));
	snprintf(path, sizeof(path), "%02x%02x:%02x%02x:%02x%02x:%02x%02x",
		 bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5],
		 bytes[6], bytes[7]);
	EXPECT_STREQ(guid, path);
}

TEST_F(object, attach)
{
	struct dapx_attach attach = {};
	int fd;

	fd = open(DAPX_NODE, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, fd);
	test_err(EBADFD, pd_create, fd, 0);
	test_err(ENODEV, attach, fd, .device = "no_such_device");
	test_err(EBADFD, pd_create, fd, 0);
	/* And still it can be attached. */
	snprintf(attach.device, sizeof(attach.device), "%s", self->a.device);
	EXPECT_EQ(0, _test_cmd_attach(fd, &attach));
	test_cmd(pd_create, fd, 0);
	close(fd);
}

TEST_F(object, attach_once)
{
	struct dapx_attach attach = {};
	int fd;

	fd = open(DAPX_NODE, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, fd);
	snprintf(attach.device, sizeof(attach.device), "%s", self->a.device);
	ASSERT_EQ(0, _test_cmd_attach(fd, &attach));
	/* Not even to the same one. */
	EXPECT_ERRNO(EBUSY, _test_cmd_attach(fd, &attach));
	snprintf(attach.device, sizeof(attach.device), "%s", self->b.device);
	EXPECT_ERRNO(EBUSY, _test_cmd_attach(fd, &attach));
	test_cmd(pd_create, fd, 0);
	EXPECT_STREQ(self->a.device, test_cmd(query_device, fd, 0).out_device);
	close(fd);
}

TEST_F(object, query)
{
	__u32 handles[ALL_CLASSES + 1];
	struct dapx_query_object query;
	__u32 class, other;

	OK(make_all(&self->a, handles));
	for (class = DAPX_OBJECT_PD; class <= ALL_CLASSES; class++) {
		query = test_cmd(query_object, self->a.fd,
				 .handle = handles[class]);
		EXPECT_EQ(handles[class], query.out_handle);
		EXPECT_EQ(class, query.out_type);
		EXPECT_EQ(0x100 + class, query.out_user_data);
		EXPECT_EQ(0, query.out_state);
		for (other = DAPX_OBJECT_PD; other <= ALL_CLASSES; other++) {
			if (other == class)
				test_cmd(query_object, self->a.fd, .type = other,
					 .handle = handles[class]);
			else
				test_err(ENOENT, query_object, self->a.fd,
					 .type = other,
					 .handle = handles[class]);
		}
	}
}

TEST_F(object, listing)
{
	__u32 handles[ALL_CLASSES + 1], class, last = 0;
	unsigned int found = 0, before = 0, of_class[ALL_CLASSES + 1] = {};
	struct dapx_query_object query = { .flags = DAPX_QUERY_NEXT };
	struct dapx_free gone = {};

	while (!_test_cmd_query_object(self->a.fd, &query)) {
		query.handle = query.out_handle;
		before++;
	}
	EXPECT_EQ(ENOENT, errno);
	/* PD, three EVDs, MR */
	EXPECT_EQ(5, before);

	OK(make_all(&self->a, handles));
	query.handle = 0;
	while (!_test_cmd_query_object(self->a.fd, &query)) {
		EXPECT_LT(last, query.out_handle);
		ASSERT_LE(DAPX_OBJECT_PD, query.out_type);
		ASSERT_GE(ALL_CLASSES, query.out_type);
		of_class[query.out_type]++;
		last = query.out_handle;
		query.handle = last;
		found++;
	}
	EXPECT_EQ(ENOENT, errno);
	EXPECT_EQ(before + ALL_CLASSES, found);
	for (class = DAPX_OBJECT_PD; class <= ALL_CLASSES; class++)
		EXPECT_LE(1, of_class[class]);

	/* Of one class only; one more is gone. */
	gone.handle = handles[DAPX_OBJECT_CM];
	ASSERT_EQ(0, _test_cmd_free(self->a.fd, &gone));
	for (class = DAPX_OBJECT_PD; class <= ALL_CLASSES; class++) {
		query.handle = 0;
		query.type = class;
		found = 0;
		while (!_test_cmd_query_object(self->a.fd, &query)) {
			EXPECT_EQ(class, query.out_type);
			query.handle = query.out_handle;
			found++;
		}
		EXPECT_EQ(ENOENT, errno);
		EXPECT_EQ(of_class[class] - (class == DAPX_OBJECT_CM), found);
	}
	/* The largest number has no next. */
	test_err(ENOENT, query_object, self->a.fd, .flags = DAPX_QUERY_NEXT,
		 .handle = ~0U);
}

TEST_F(object, users)
{
	/* Each is freed when nothing points to it any more: in this order. */
	static const __u32 order[] = {
		DAPX_OBJECT_EP, DAPX_OBJECT_CM, DAPX_OBJECT_SRQ, DAPX_OBJECT_MR,
		DAPX_OBJECT_PD, DAPX_OBJECT_EVD,
	};
	__u32 handles[ALL_CLASSES + 1];
	struct snapshot before, after;
	unsigned int i;

	OK(make_all(&self->a, handles));
#define USERS(class)							\
	test_cmd(query_object, self->a.fd, .handle = handles[class]).out_users
	EXPECT_EQ(3, USERS(DAPX_OBJECT_PD));
	EXPECT_EQ(4, USERS(DAPX_OBJECT_EVD));
	EXPECT_EQ(1, USERS(DAPX_OBJECT_SRQ));
	EXPECT_EQ(0, USERS(DAPX_OBJECT_MR));
	EXPECT_EQ(0, USERS(DAPX_OBJECT_EP));
	EXPECT_EQ(0, USERS(DAPX_OBJECT_CM));

	OK(snapshot_take(self->a.fd, &before));
	test_err(EBUSY, free, self->a.fd, .handle = handles[DAPX_OBJECT_PD]);
	test_err(EBUSY, free, self->a.fd, .handle = handles[DAPX_OBJECT_SRQ]);
	test_err(EBUSY, free, self->a.fd, .handle = handles[DAPX_OBJECT_EVD]);
	OK(snapshot_take(self->a.fd, &after));
	EXPECT_TRUE(snapshot_same(&before, &after));

	test_cmd(free, self->a.fd, .handle = handles[DAPX_OBJECT_EP]);
	EXPECT_EQ(0, USERS(DAPX_OBJECT_SRQ));
	EXPECT_EQ(2, USERS(DAPX_OBJECT_PD));
	EXPECT_EQ(1, USERS(DAPX_OBJECT_EVD));
	test_err(EBUSY, free, self->a.fd, .handle = handles[DAPX_OBJECT_EVD]);
	for (i = 1; i < ALL_CLASSES; i++)
		test_cmd(free, self->a.fd, .handle = handles[order[i]],
			 .type = order[i]);
#undef USERS
}

TEST_F(object, freed_once)
{
	__u32 handles[ALL_CLASSES + 1], i;
	static const __u32 order[] = {
		DAPX_OBJECT_EP, DAPX_OBJECT_CM, DAPX_OBJECT_SRQ, DAPX_OBJECT_MR,
		DAPX_OBJECT_PD, DAPX_OBJECT_EVD,
	};

	OK(make_all(&self->a, handles));
	for (i = 0; i < ALL_CLASSES; i++) {
		__u32 handle = handles[order[i]], other = order[(i + 1) % 6];

		/* As another class it is not there. */
		test_err(ENOENT, free, self->a.fd, .handle = handle,
			 .type = other);
		test_cmd(free, self->a.fd, .handle = handle, .type = order[i]);
		test_err(ENOENT, free, self->a.fd, .handle = handle,
			 .type = order[i]);
		test_err(ENOENT, free, self->a.fd, .handle = handle);
		test_err(ENOENT, query_object, self->a.fd, .handle = handle);
	}
	test_err(ENOENT, free, self->a.fd, .handle = 0);
	test_err(ENOENT, free, self->a.fd, .handle = ~0U);
}

/* A handle of another context names nothing, whatever it names there. */
TEST_F(object, foreign_context)
{
	__u32 handles[ALL_CLASSES + 1], class, mine;
	struct snapshot before, after;
	struct dapx_ep_create ep;
	unsigned int i;

	/* Numbers that this context has never had. */
	for (i = 0; i < 64; i++)
		test_cmd(pd_create, self->b.fd, 0);
	OK(make_all(&self->b, handles));
	OK(snapshot_take(self->a.fd, &before));
	for (class = DAPX_OBJECT_PD; class <= ALL_CLASSES; class++) {
		mine = handles[class];
		test_err(ENOENT, query_object, self->a.fd, .handle = mine);
		test_err(ENOENT, free, self->a.fd, .handle = mine);
	}
	test_err(ENOENT, mr_create, self->a.fd, .pd = handles[DAPX_OBJECT_PD],
		 .addr = (uintptr_t)self->a.mem, .length = 4096);
	test_err(ENOENT, evd_post, self->a.fd, .evd = handles[DAPX_OBJECT_EVD]);
	test_err(ENOENT, doorbell, self->a.fd, .flags = DAPX_DOORBELL_RECV,
		 .handle = handles[DAPX_OBJECT_EP]);
	test_err(ENOENT, ep_query, self->a.fd, .ep = handles[DAPX_OBJECT_EP]);
	test_err(ENOENT, cm_query, self->a.fd, .cm = handles[DAPX_OBJECT_CM]);
	test_err(ENOENT, cm_create, self->a.fd,
		 .evd = handles[DAPX_OBJECT_EVD]);
	ep_usual(&self->a, &ep);
	ep.pd = handles[DAPX_OBJECT_PD];
	EXPECT_ERRNO(ENOENT, _test_cmd_ep_create(self->a.fd, &ep));
	ep_usual(&self->a, &ep);
	ep.request_evd = handles[DAPX_OBJECT_EVD];
	EXPECT_ERRNO(ENOENT, _test_cmd_ep_create(self->a.fd, &ep));
	OK(snapshot_take(self->a.fd, &after));
	EXPECT_TRUE(snapshot_same(&before, &after));
	/* There they are as they were. */
	for (class = DAPX_OBJECT_PD; class <= ALL_CLASSES; class++)
		EXPECT_EQ(class, test_cmd(query_object, self->b.fd,
					  .handle = handles[class]).out_type);
}

TEST_F(object, not_soon_used_again)
{
	unsigned int n = count(2000, 60000), i;
	__u32 handle, last = 0;

	TH_LOG("%u handles", n);
	for (i = 0; i < n; i++) {
		handle = test_cmd(pd_create, self->a.fd, 0).out_pd;
		EXPECT_NE(0, handle);
		/* Ever upwards; they do not go round in so few. */
		ASSERT_LT(last, handle);
		last = handle;
		test_cmd(free, self->a.fd, .handle = handle);
	}
}

TEST_F(object, limit_of_context)
{
	__u32 pd[16], i;

	ASSERT_LT(0, self->max_objects);
	/* Five there are already. */
	OK(set_module_parameter("max_objects", 5 + 3));
	for (i = 0; i < 3; i++)
		pd[i] = test_cmd(pd_create, self->a.fd, 0).out_pd;
	test_err(EDQUOT, pd_create, self->a.fd, 0);
	test_err(EDQUOT, evd_create, self->a.fd, .depth = 4);
	test_err(EDQUOT, cm_create, self->a.fd, .evd = self->a.conn.handle);
	test_cmd(free, self->a.fd, .handle = pd[0]);
	pd[0] = test_cmd(pd_create, self->a.fd, 0).out_pd;
	test_err(EDQUOT, pd_create, self->a.fd, 0);
	/* Another context has its own. */
	test_cmd(pd_create, self->b.fd, 0);
	EXPECT_EQ(8, test_cmd(info, self->a.fd, 0).out_max_objects);
	OK(set_module_parameter("max_objects", self->max_objects));
	test_cmd(pd_create, self->a.fd, 0);
}

TEST_F(object, limit_of_user)
{
	int mode;
	pid_t pid;

	ASSERT_LT(0, self->max_user_objects);
	/* The two contexts, five objects in each, and two more. */
	OK(set_module_parameter("max_user_objects", 2 + 10 + 2));
	test_cmd(pd_create, self->a.fd, 0);
	test_cmd(pd_create, self->b.fd, 0);
	test_err(EDQUOT, pd_create, self->a.fd, 0);
	test_err(EDQUOT, pd_create, self->b.fd, 0);

	/* Another user has his own. */
	mode = node_chmod(0666);
	ASSERT_LE(0, mode);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		struct dapx_pd_create pd = {};
		struct host own;

		if (become(NOBODY))
			_exit(1);
		if (host_open(&own, 0) || host_attach(&own))
			_exit(2);
		_exit(_test_cmd_pd_create(own.fd, &pd) ? 3 : 0);
	}
	EXPECT_EQ(0, wait_for(pid));
	node_chmod(mode);

	/* What a closed context held is given back. */
	host_close(&self->b);
	test_cmd(pd_create, self->a.fd, 0);
	OK(set_module_parameter("max_user_objects", self->max_user_objects));
}

/* Every command, from a process that did not open the file. */
static int all_refused(int fd)
{
#define DAPX_COMMAND(lower, upper, ...)					\
	{								\
		struct dapx_##lower cmd = { .size = sizeof(cmd) };	\
									\
		if (ioctl(fd, DAPX_##upper, &cmd) != -1 ||		\
		    errno != EPERM)					\
			return DAPX_CMD_##upper;			\
		if (ioctl(fd, DAPX_##upper, NULL) != -1 ||		\
		    errno != EPERM)					\
			return DAPX_CMD_##upper;			\
	}
#include "harness/commands.h"
#undef DAPX_COMMAND
	return 0;
}

TEST_F(object, fork_child)
{
	pid_t pid;

	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(all_refused(self->a.fd));
	EXPECT_EQ(0, wait_for(pid))
		TH_LOG("a command worked in the child, or with another errno");
	/* Its parent's context is whole. */
	test_cmd(pd_create, self->a.fd, 0);
}

/* The child may not map a ring either, and its copy of the map is empty. */
TEST_F(object, fork_child_mmap)
{
	struct dapx_evd_create evd;
	pid_t pid;
	void *map;

	evd = test_cmd(evd_create, self->a.fd, .depth = 4);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		map = mmap(NULL, evd.out_ring.mmap_size, PROT_READ | PROT_WRITE,
			   MAP_SHARED, self->a.fd, evd.out_ring.mmap_offset);
		_exit(map == MAP_FAILED && errno == EPERM ? 0 : 1);
	}
	EXPECT_EQ(0, wait_for(pid));
	map = mmap(NULL, evd.out_ring.mmap_size, PROT_READ | PROT_WRITE,
		   MAP_SHARED, self->a.fd, evd.out_ring.mmap_offset);
	EXPECT_NE(MAP_FAILED, map);
}

/* mmap2() of a 32-bit program takes a page's number in 32 bits; there may be 2^31 rings. */
TEST_F(object, ring_offsets_of_32_bit_programs)
{
	__u64 first = test_cmd(evd_create, self->a.fd, .depth = 4).out_ring.mmap_offset;
	__u64 second = test_cmd(evd_create, self->a.fd, .depth = 4).out_ring.mmap_offset;

	ASSERT_LT(first, second);
	EXPECT_GE(1ULL << 32, ((second - first) << 31) / sysconf(_SC_PAGESIZE));
}

static int send_fd(int socket, int fd)
{
	char room[CMSG_SPACE(sizeof(int))] = {};
	struct iovec iov = { .iov_base = "x", .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = room, .msg_controllen = sizeof(room),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	return sendmsg(socket, &msg, 0) == 1 ? 0 : -1;
}

static int receive_fd(int socket)
{
	char room[CMSG_SPACE(sizeof(int))] = {}, byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = room, .msg_controllen = sizeof(room),
	};
	struct cmsghdr *cmsg;
	int fd;

	if (recvmsg(socket, &msg, 0) != 1)
		return -1;
	cmsg = CMSG_FIRSTHDR(&msg);
	if (!cmsg)
		return -1;
	memcpy(&fd, CMSG_DATA(cmsg), sizeof(fd));
	return fd;
}

TEST_F(object, passed_descriptor)
{
	int sockets[2], fd;
	pid_t pid;
	char byte;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		fd = receive_fd(sockets[1]);
		if (fd < 0)
			_exit(1);
		_exit(all_refused(fd));
	}
	/* Opened after the fork: the child has never had it otherwise. */
	fd = open(DAPX_NODE, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, fd);
	OK(send_fd(sockets[0], fd));
	EXPECT_EQ(0, wait_for(pid));
	test_cmd(info, fd, 0);
	close(fd);

	/* And the other way round: what a child opened is not the parent's. */
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		fd = open(DAPX_NODE, O_RDWR | O_CLOEXEC);
		if (send_fd(sockets[1], fd) ||
		    read(sockets[1], &byte, 1) != 1)
			_exit(1);
		_exit(0);
	}
	fd = receive_fd(sockets[0]);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, all_refused(fd));
	ASSERT_EQ(1, write(sockets[0], "x", 1));
	EXPECT_EQ(0, wait_for(pid));
	/* Nor when its process is dead. */
	EXPECT_EQ(0, all_refused(fd));
	close(fd);
}

static void *in_thread(void *arg)
{
	struct dapx_pd_create pd = {};
	struct host *host = arg;

	return (void *)(long)(_test_cmd_pd_create(host->fd, &pd) ? errno : 0);
}

TEST_F(object, threads_share)
{
	pthread_t thread;
	void *error;

	ASSERT_EQ(0, pthread_create(&thread, NULL, in_thread, &self->a));
	ASSERT_EQ(0, pthread_join(thread, &error));
	EXPECT_EQ(0, (long)error);
}

struct rival {
	pthread_barrier_t *start;
	int fd;
	__u32 handle;
	int error;
};

static void *free_it(void *arg)
{
	struct rival *rival = arg;
	struct dapx_free gone = { .handle = rival->handle };

	pthread_barrier_wait(rival->start);
	rival->error = _test_cmd_free(rival->fd, &gone) ? errno : 0;
	return NULL;
}

/* Of two that free one object at once, one does. */
TEST_F(object, freed_twice_at_once)
{
	unsigned int n = count(100, 5000), i, j;
	pthread_barrier_t start;
	struct rival rivals[2];
	pthread_t threads[2];
	struct ep ep;

	TH_LOG("%u rounds", n);
	ASSERT_EQ(0, pthread_barrier_init(&start, NULL, 2));
	for (i = 0; i < n; i++) {
		__u32 handle;

		if (i % 4) {
			handle = test_cmd(pd_create, self->a.fd, 0).out_pd;
		} else {
			OK(ep_create(&self->a, &ep));
			handle = ep.handle;
		}
		for (j = 0; j < 2; j++) {
			rivals[j].start = &start;
			rivals[j].fd = self->a.fd;
			rivals[j].handle = handle;
			ASSERT_EQ(0, pthread_create(&threads[j], NULL, free_it,
						    &rivals[j]));
		}
		for (j = 0; j < 2; j++)
			ASSERT_EQ(0, pthread_join(threads[j], NULL));
		ASSERT_EQ(ENOENT, rivals[0].error + rivals[1].error);
		if (!(i % 4))
			ep_forget(&ep);
	}
}

/* A device of another network namespace is not there. */
TEST_F(object, foreign_network_namespace)
{
	struct dapx_attach attach = {};
	unsigned int tries;
	pid_t pid;
	int ret;

	if (run("rdma system set netns exclusive"))
		SKIP(return, "the RDMA subsystem stays shared by namespaces: %s",
		     why());
	pid = fork();
	if (!pid) {
		int fd;

		if (unshare(CLONE_NEWNET))
			_exit(1);
		fd = open(DAPX_NODE, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			_exit(2);
		snprintf(attach.device, sizeof(attach.device), "%s",
			 self->a.device);
		_exit(_test_cmd_attach(fd, &attach) && errno == ENODEV ? 0 : 3);
	}
	ret = wait_for(pid);
	/* A dead namespace takes a moment to go. */
	for (tries = 0; tries < 300; tries++) {
		if (!run("rdma system set netns shared"))
			break;
		sleep_ms(100);
	}
	EXPECT_EQ(0, ret);
	EXPECT_GT(300, tries);
	test_cmd(pd_create, self->a.fd, 0);
}

TEST_HARNESS_MAIN
