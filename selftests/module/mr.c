// SPDX-License-Identifier: GPL-2.0
/*
 * Memory regions: what may be registered, with which rights, and that a freed
 * one is dead for both sides.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "harness/cm.h"
#include "harness/dice.h"
#include "harness/machine.h"
#include "harness/process.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 300

#define PAGE ((unsigned int)sysconf(_SC_PAGESIZE))
#define LOCAL_WRITE DAPX_ACCESS_LOCAL_WRITE
#define REMOTE_WRITE DAPX_ACCESS_REMOTE_WRITE
#define REMOTE_READ DAPX_ACCESS_REMOTE_READ
#define REMOTE_ATOMIC DAPX_ACCESS_REMOTE_ATOMIC

FIXTURE(mr)
{
	struct host a;
	struct host b;
	struct ep ea;
	struct ep eb;
};

FIXTURE_SETUP(mr)
{
	OK(host_set_up(&self->a, 0));
	OK(host_set_up(&self->b, 1));
	OK(ep_create(&self->a, &self->ea));
	OK(ep_create(&self->b, &self->eb));
}

FIXTURE_TEARDOWN(mr)
{
	host_close(&self->a);
	host_close(&self->b);
}

static void *map_pages(unsigned int pages, int protection)
{
	return mmap(NULL, pages * PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
}

TEST_F(mr, rights)
{
	bool atomics = self->a.limits.out_caps & DAPX_DEVICE_ATOMICS;
	__u32 access;

	for (access = 0; access < 16; access++) {
		struct dapx_mr_create cmd = {
			.pd = self->a.pd,
			.access = access,
			.addr = (uintptr_t)self->a.mem,
			.length = PAGE,
		};
		int ret = _test_cmd_mr_create(self->a.fd, &cmd) ? errno : 0;

		if ((access & (REMOTE_WRITE | REMOTE_ATOMIC)) &&
		    !(access & LOCAL_WRITE)) {
			EXPECT_EQ(EINVAL, ret);
		} else if (access & REMOTE_ATOMIC && !atomics) {
			EXPECT_EQ(EOPNOTSUPP, ret);
		} else {
			EXPECT_EQ(0, ret);
			EXPECT_EQ(!!(access & ~LOCAL_WRITE), !!cmd.out_rkey)
				TH_LOG("rights %u, rkey 0x%x", access,
				       cmd.out_rkey);
		}
	}
}

/* Any start and length will do; no page granularity. */
TEST_F(mr, odd_ranges)
{
	const struct {
		unsigned int offset;
		unsigned int length;
	} ranges[] = {
		{ 0, 1 }, { 1, 1 }, { PAGE - 1, 1 }, { PAGE - 1, 2 },
		{ 17, PAGE }, { 0, HOST_MEMORY }, { HOST_MEMORY - 1, 1 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ranges); i++)
		test_cmd(mr_create, self->a.fd, .pd = self->a.pd,
			 .addr = (uintptr_t)self->a.mem + ranges[i].offset,
			 .length = ranges[i].length, .access = LOCAL_WRITE);
}

TEST_F(mr, unmapped)
{
	__u8 *pages = map_pages(4, PROT_READ | PROT_WRITE);

	ASSERT_NE(MAP_FAILED, pages);
	ASSERT_EQ(0, munmap(pages + 2 * PAGE, PAGE));
	test_err(EFAULT, mr_create, self->a.fd, .pd = self->a.pd,
		 .addr = (uintptr_t)pages + 2 * PAGE, .length = 1);
	/* A hole at the end, in the middle. */
	test_err(EFAULT, mr_create, self->a.fd, .pd = self->a.pd,
		 .addr = (uintptr_t)pages, .length = 2 * PAGE + 1,
		 .access = LOCAL_WRITE);
	test_err(EFAULT, mr_create, self->a.fd, .pd = self->a.pd,
		 .addr = (uintptr_t)pages, .length = 4 * PAGE,
		 .access = LOCAL_WRITE);
	test_err(EFAULT, mr_create, self->a.fd, .pd = self->a.pd,
		 .addr = 0, .length = PAGE);
	/* The kernel's half is not the caller's. */
	test_err(EFAULT, mr_create, self->a.fd, .pd = self->a.pd,
		 .addr = 0xffff888000000000ULL, .length = PAGE);
	test_cmd(mr_create, self->a.fd, .pd = self->a.pd,
		 .addr = (uintptr_t)pages, .length = 2 * PAGE);
}

TEST_F(mr, overflow)
{
	test_err(EOVERFLOW, mr_create, self->a.fd, .pd = self->a.pd,
		 .addr = ~0ULL, .length = 2);
	test_err(EOVERFLOW, mr_create, self->a.fd, .pd = self->a.pd,
		 .addr = (uintptr_t)self->a.mem, .length = ~0ULL);
	test_err(EOVERFLOW, mr_create, self->a.fd, .pd = self->a.pd,
		 .addr = (uintptr_t)self->a.mem,
		 .length = -(uintptr_t)self->a.mem);
}

/*
 * Memory that the process may not write. For reading it can be registered on
 * kernels since 6.4; those before pin with the intent to write.
 */
TEST_F(mr, read_only_mapping)
{
	__u8 *page = map_pages(1, PROT_READ);
	unsigned long major, minor = 0;
	struct dapx_mr_create cmd = {
		.pd = self->a.pd, .addr = (uintptr_t)page, .length = PAGE,
	};
	struct utsname name;
	char *end;
	int ret;

	ASSERT_NE(MAP_FAILED, page);
	test_err(EACCES, mr_create, self->a.fd, .pd = self->a.pd,
		 .addr = (uintptr_t)page, .length = PAGE,
		 .access = LOCAL_WRITE);
	test_err(EACCES, mr_create, self->a.fd, .pd = self->a.pd,
		 .addr = (uintptr_t)page, .length = PAGE,
		 .access = LOCAL_WRITE | REMOTE_WRITE);

	ASSERT_EQ(0, uname(&name));
	major = strtoul(name.release, &end, 10);
	if (*end == '.')
		minor = strtoul(end + 1, NULL, 10);
	ret = _test_cmd_mr_create(self->a.fd, &cmd) ? errno : 0;
	if (major > 6 || (major == 6 && minor >= 4)) {
		EXPECT_EQ(0, ret);
	} else {
		EXPECT_TRUE(!ret || ret == EACCES)
			TH_LOG("%s", strerror(ret));
	}

	/* Partly so. */
	page = map_pages(2, PROT_READ | PROT_WRITE);
	ASSERT_EQ(0, mprotect(page + PAGE, PAGE, PROT_READ));
	test_err(EACCES, mr_create, self->a.fd, .pd = self->a.pd,
		 .addr = (uintptr_t)page, .length = 2 * PAGE,
		 .access = LOCAL_WRITE);
	/* Mapped, but not even to be read. */
	ASSERT_EQ(0, mprotect(page, PAGE, PROT_NONE));
	ret = _test_cmd(mr_create, self->a.fd, .pd = self->a.pd,
			.addr = (uintptr_t)page, .length = PAGE) ? errno : 0;
	/* Up to 6.1 the kernel pins by force what is only read. */
	EXPECT_TRUE(ret == EACCES || ret == EFAULT ||
		    (!ret && major == 6 && minor < 2))
		TH_LOG("%s", strerror(ret));
}

/* Without privileges, 64 KiB may be locked. */
static int locked_memory(void)
{
	struct rlimit limit = { 16 * PAGE, 16 * PAGE };
	struct dapx_mr_modify modify = { .flags = DAPX_MR_XRC };
	struct dapx_mr_create mr = {};
	struct dapx_pd_create pd = {};
	struct dapx_free gone = {};
	struct host host;
	__u8 *mem;
	int i;

	if (host_open(&host, 0) || host_attach(&host) ||
	    _test_cmd_pd_create(host.fd, &pd))
		return 1;
	mem = map_pages(32, PROT_READ | PROT_WRITE);
	if (setrlimit(RLIMIT_MEMLOCK, &limit) || become(NOBODY))
		return 2;
	mr.pd = pd.out_pd;
	mr.addr = (uintptr_t)mem;
	mr.access = LOCAL_WRITE;
	mr.length = 32 * PAGE;
	if (!_test_cmd_mr_create(host.fd, &mr) || errno != ENOMEM)
		return 3;
	/* A part of it fits, once. */
	mr.length = 10 * PAGE;
	if (_test_cmd_mr_create(host.fd, &mr))
		return 4;
	gone.handle = mr.out_mr;
	if (!_test_cmd_mr_create(host.fd, &mr) || errno != ENOMEM)
		return 5;
	/* For XRC it counts twice. */
	modify.mr = gone.handle;
	if (!_test_cmd_mr_modify(host.fd, &modify) || errno != ENOMEM)
		return 8;
	/* What was freed is not locked any more; again and again. */
	for (i = 0; i < 20; i++) {
		if (_test_cmd_free(host.fd, &gone))
			return 6;
		if (_test_cmd_mr_create(host.fd, &mr))
			return 7;
		gone.handle = mr.out_mr;
	}
	mr.length = 6 * PAGE;
	for (i = 0; i < 20; i++) {
		if (_test_cmd_free(host.fd, &gone))
			return 9;
		if (_test_cmd_mr_create(host.fd, &mr))
			return 10;
		gone.handle = mr.out_mr;
		modify.mr = mr.out_mr;
		if (_test_cmd_mr_modify(host.fd, &modify) ||
		    _test_cmd_mr_modify(host.fd, &modify))
			return 11;
	}
	return 0;
}

#define FOR_XRC(handle)							\
	((struct dapx_mr_modify) { .mr = (handle), .flags = DAPX_MR_XRC })

/* What is wrong with the memory now, not when it was registered. */
TEST_F(mr, made_for_xrc_too_late)
{
	__u8 *mem = map_pages(4, PROT_READ | PROT_WRITE);
	struct dapx_mr_modify modify;
	struct dapx_mr_create mr;

	mr = test_cmd(mr_create, self->a.fd, .pd = self->a.pd,
		      .addr = (uintptr_t)mem, .length = 4 * PAGE,
		      .access = LOCAL_WRITE | REMOTE_READ);
	modify = FOR_XRC(mr.out_mr);
	ASSERT_EQ(0, mprotect(mem + PAGE, PAGE, PROT_READ));
	EXPECT_ERRNO(EACCES, _test_cmd_mr_modify(self->a.fd, &modify));
	ASSERT_EQ(0, mprotect(mem + PAGE, PAGE, PROT_READ | PROT_WRITE));
	ASSERT_EQ(0, munmap(mem + 2 * PAGE, PAGE));
	EXPECT_ERRNO(EFAULT, _test_cmd_mr_modify(self->a.fd, &modify));
	EXPECT_ERRNO(EFAULT, _test_cmd_mr_modify(self->a.fd, &modify));
	ASSERT_EQ(mem + 2 * PAGE,
		  mmap(mem + 2 * PAGE, PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	EXPECT_EQ(0, _test_cmd_mr_modify(self->a.fd, &modify));
	/* From then on it is, whatever becomes of the mapping. */
	munmap(mem, 4 * PAGE);
	EXPECT_EQ(0, _test_cmd_mr_modify(self->a.fd, &modify));
	test_cmd(free, self->a.fd, .handle = mr.out_mr);
	EXPECT_ERRNO(ENOENT, _test_cmd_mr_modify(self->a.fd, &modify));
}

/* When what earlier tests had is gone, too. */
static long pinned(void)
{
	long before, now = -1;

	do {
		before = now;
		sleep_ms(200);
		now = pinned_pages();
	} while (now != before);
	return now;
}

struct maker {
	const struct host *host;
	bool interrupted;
	__u32 mr;
	__u32 next;			/* number of @mr */
	int error;
};

static void *makes_for_xrc(void *arg)
{
	const struct sched_param param = {};
	struct maker *maker = arg;
	__u32 seen = 0, next;

	if (maker->interrupted) {
		run_on(0);
		sched_setscheduler(0, SCHED_IDLE, &param);
	}
	while ((next = __atomic_load_n(&maker->next, __ATOMIC_ACQUIRE)) != ~0U) {
		struct dapx_mr_modify modify = FOR_XRC(maker->mr);

		/* The last one may be gone already, this one, too. */
		if (next == seen)
			give_way();
		else if (_test_cmd_mr_modify(maker->host->fd, &modify) &&
			 errno != ENOENT)
			maker->error = errno;
		seen = next;
	}
	return NULL;
}

/*
 * By several at once, while it is freed: nothing stays pinned, nobody trips over it. One of them
 * is interrupted by who frees it, anywhere: also when it has found the region, and no more.
 */
TEST_F(mr, made_for_xrc_while_freed)
{
	struct maker makers[2] = { { &self->a, .interrupted = true }, { &self->a } };
	unsigned int n = count(3000, 100000), i, j;
	long before = pinned();
	pthread_t threads[2];

	TH_LOG("%u rounds", n);
	run_on(0);
	ASSERT_EQ(0, prctl(PR_SET_TIMERSLACK, 1));
	for (j = 0; j < 2; j++)
		ASSERT_EQ(0, pthread_create(&threads[j], NULL, makes_for_xrc,
					    &makers[j]));
	for (i = 1; i <= n; i++) {
		struct dapx_mr_create mr;

		mr = test_cmd(mr_create, self->a.fd, .pd = self->a.pd,
			      .addr = (uintptr_t)self->a.mem, .length = PAGE,
			      .access = LOCAL_WRITE | REMOTE_READ);
		for (j = 0; j < 1 + i % 2; j++) {
			__atomic_store_n(&makers[j].mr, mr.out_mr,
					 __ATOMIC_RELAXED);
			__atomic_store_n(&makers[j].next, i, __ATOMIC_RELEASE);
		}
		if (i % 2)
			spin(dice() % 2000);
		else
			nanosleep(&(struct timespec){ .tv_nsec = dice() % 50000 }, NULL);
		test_cmd(free, self->a.fd, .handle = mr.out_mr);
	}
	for (j = 0; j < 2; j++) {
		__atomic_store_n(&makers[j].next, ~0U, __ATOMIC_RELEASE);
		ASSERT_EQ(0, pthread_join(threads[j], NULL));
		EXPECT_EQ(0, makers[j].error) TH_LOG("%s", strerror(makers[j].error));
	}
	EXPECT_EQ(before, pinned());
}

TEST_F(mr, locked_memory_limit)
{
	pid_t pid;

	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(locked_memory());
	EXPECT_EQ(0, wait_for(pid));
}

static __u32 new_mr(struct __test_metadata *_metadata, struct host *host,
		    __u8 *at, unsigned int length, __u32 access, __u32 *rkey)
{
	struct dapx_mr_create mr;

	mr = test_cmd(mr_create, host->fd, .pd = host->pd,
		      .addr = (uintptr_t)at, .length = length,
		      .access = access);
	if (rkey)
		*rkey = mr.out_rkey;
	return mr.out_mr;
}

/* The connection is down on both sides, and nothing else is in the EVDs. */
#define BROKEN_BOTH()							\
	({								\
		OK(expect_connection(&self->a.conn, self->ea.handle,	\
				     DAPX_CONNECTION_BROKEN, NULL));	\
		OK(ep_await_state(&self->ea, DAPX_EP_DISCONNECTED));	\
		OK(ep_await_state(&self->eb, DAPX_EP_DISCONNECTED));	\
	})

/* A local right that the MR has not: refused before the device sees it. */
TEST_F(mr, no_local_write)
{
	__u32 mr;

	mr = new_mr(_metadata, &self->a, self->a.mem, PAGE, 0, NULL);
	OK(connect_cm(&self->ea, &self->eb));
	self->a.mem[0] = 0x11;
	self->b.mem[0] = 0x22;
	/* To be read from, it is good. */
	OK(ep_rdma(&self->ea, 0x77, DAPX_OP_RDMA_WRITE, mr, self->a.mem, 1,
		   self->b.mem, self->b.rkey));
	OK(expect_completion(&self->a.done, 0x77, DAPX_STATUS_SUCCESS, NULL));
	EXPECT_EQ(0x11, self->b.mem[0]);
	self->b.mem[0] = 0x22;
	OK(ep_rdma(&self->ea, 0x77, DAPX_OP_RDMA_READ, mr, self->a.mem, 1,
		   self->b.mem, self->b.rkey));
	OK(expect_completion(&self->a.done, 0x77, DAPX_STATUS_LOCAL_PROTECTION,
			     NULL));
	EXPECT_EQ(0x11, self->a.mem[0]);
	BROKEN_BOTH();
}

TEST_F(mr, no_local_write_for_receive)
{
	struct dapx_sge sge = {};
	struct dapx_recv_wr wr = { .wr_id = 0x88, .num_sge = 1 };

	sge = host_sge(&self->b, 0, 64);
	sge.mr = new_mr(_metadata, &self->b, self->b.mem, PAGE, 0, NULL);
	OK(connect_cm(&self->ea, &self->eb));
	OK(ep_post_recv(&self->eb, &wr, &sge));
	OK(expect_completion(&self->b.recv, 0x88, DAPX_STATUS_LOCAL_PROTECTION,
			     NULL));
	OK(expect_connection(&self->b.conn, self->eb.handle,
			     DAPX_CONNECTION_BROKEN, NULL));
}

FIXTURE(remote)
{
	struct host a;
	struct host b;
	struct ep ea;
	struct ep eb;
};

/* What the peer may not do to a region with these rights. */
FIXTURE_VARIANT(remote)
{
	__u32 access;
	__u8 opcode;
	bool allowed;
};

#define RIGHTS(access_, opcode_, allowed_)				\
	{								\
		.access = access_,					\
		.opcode = DAPX_OP_##opcode_,				\
		.allowed = allowed_,					\
	}

FIXTURE_VARIANT_ADD(remote, write)
	RIGHTS(LOCAL_WRITE | REMOTE_WRITE, RDMA_WRITE, true);
FIXTURE_VARIANT_ADD(remote, write_to_readable)
	RIGHTS(LOCAL_WRITE | REMOTE_READ | REMOTE_ATOMIC, RDMA_WRITE, false);
FIXTURE_VARIANT_ADD(remote, read)
	RIGHTS(REMOTE_READ, RDMA_READ, true);
FIXTURE_VARIANT_ADD(remote, read_of_writable)
	RIGHTS(LOCAL_WRITE | REMOTE_WRITE | REMOTE_ATOMIC, RDMA_READ, false);
FIXTURE_VARIANT_ADD(remote, atomic)
	RIGHTS(LOCAL_WRITE | REMOTE_ATOMIC, FETCH_ADD, true);
FIXTURE_VARIANT_ADD(remote, atomic_on_writable)
	RIGHTS(LOCAL_WRITE | REMOTE_WRITE | REMOTE_READ, FETCH_ADD, false);

FIXTURE_SETUP(remote)
{
	OK(host_set_up(&self->a, 0));
	OK(host_set_up(&self->b, 1));
	if ((variant->opcode == DAPX_OP_FETCH_ADD ||
	     variant->access & REMOTE_ATOMIC) &&
	    !(self->a.limits.out_caps & DAPX_DEVICE_ATOMICS))
		SKIP(return, "%s has no atomics", self->a.device);
	OK(ep_create(&self->a, &self->ea));
	OK(ep_create(&self->b, &self->eb));
	OK(connect_cm(&self->ea, &self->eb));
}

FIXTURE_TEARDOWN(remote)
{
	host_close(&self->a);
	host_close(&self->b);
}

TEST_F(remote, access)
{
	__u8 *target = self->b.mem + PAGE;
	__u32 rkey;

	new_mr(_metadata, &self->b, target, PAGE, variant->access, &rkey);
	memset(target, 0x22, 8);
	memset(self->a.mem, 0x11, 8);
	OK(ep_rdma(&self->ea, 0x77, variant->opcode, self->a.mr, self->a.mem, 8,
		   target, rkey));
	if (variant->allowed) {
		OK(expect_completion(&self->a.done, 0x77, DAPX_STATUS_SUCCESS,
				     NULL));
		OK(ep_exchange(&self->ea, &self->eb));
		return;
	}
	OK(expect_refusal(&self->ea, 0x77));
	OK(ep_await_state(&self->eb, DAPX_EP_DISCONNECTED));
	EXPECT_EQ(0x22, target[0]);
	EXPECT_EQ(0x11, self->a.mem[0]);
}

/* One byte before, one behind, and a key that is none. */
TEST_F(mr, outside_the_range)
{
	__u8 *target = self->b.mem + PAGE;
	unsigned int wrong;
	__u32 rkey;

	new_mr(_metadata, &self->b, target, PAGE,
	       LOCAL_WRITE | REMOTE_WRITE | REMOTE_READ, &rkey);
	for (wrong = 0; wrong < 4; wrong++) {
		__u8 *at = wrong == 0 ? target - 1 : wrong == 1 ?
			target + PAGE - 7 : wrong == 2 ? target - 8 : target;

		memset(self->b.mem, 0x22, 3 * PAGE);
		memset(self->a.mem, 0x11, 8);
		OK(connect_cm(&self->ea, &self->eb));
		OK(ep_rdma(&self->ea, 0x77, DAPX_OP_RDMA_WRITE, self->a.mr,
			   self->a.mem, 8, at, wrong == 3 ? ~rkey : rkey));
		OK(expect_refusal(&self->ea, 0x77));
		EXPECT_EQ(NULL, memchr(self->b.mem, 0x11, 3 * PAGE));
		OK(disconnect_reset(&self->ea, &self->eb));
	}
}

/* A local segment must lie within its region, from end to end. */
TEST_F(mr, local_range)
{
	struct {
		__u8 *at;
		__u32 length;
	} wrong[] = {
		{ self->a.mem + PAGE - 1, 1 },
		{ self->a.mem + PAGE, PAGE + 1 },
		{ self->a.mem + 2 * PAGE, 1 },
		{ self->a.mem + 2 * PAGE - 1, 2 },
		{ self->a.mem, 3 * PAGE },
		{ self->a.mem + PAGE, ~0U },
		{ (__u8 *)~0UL, 1 },
		{ (__u8 *)~0UL, 16 },
	};
	unsigned int i;
	__u32 mr;

	mr = new_mr(_metadata, &self->a, self->a.mem + PAGE, PAGE, LOCAL_WRITE,
		    NULL);
	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		memset(self->b.mem, 0x22, 8);
		OK(connect_cm(&self->ea, &self->eb));
		OK(ep_rdma(&self->ea, 0x77, DAPX_OP_RDMA_WRITE, mr, wrong[i].at,
			   wrong[i].length, self->b.mem, self->b.rkey));
		OK(expect_completion(&self->a.done, 0x77,
				     DAPX_STATUS_LOCAL_PROTECTION, NULL));
		EXPECT_EQ(0x22, self->b.mem[0]);
		OK(disconnect_reset(&self->ea, &self->eb));
	}
	/* All of it. */
	OK(connect_cm(&self->ea, &self->eb));
	OK(ep_rdma(&self->ea, 0x77, DAPX_OP_RDMA_WRITE, mr, self->a.mem + PAGE,
		   PAGE, self->b.mem, self->b.rkey));
	OK(expect_completion(&self->a.done, 0x77, DAPX_STATUS_SUCCESS, NULL));
}

/* A region of another PD than the endpoint's. */
TEST_F(mr, other_pd)
{
	struct dapx_mr_create mr;
	__u32 pd;

	pd = test_cmd(pd_create, self->a.fd, 0).out_pd;
	mr = test_cmd(mr_create, self->a.fd, .pd = pd, .length = PAGE,
		      .addr = (uintptr_t)self->a.mem, .access = LOCAL_WRITE);
	OK(connect_cm(&self->ea, &self->eb));
	OK(ep_rdma(&self->ea, 0x77, DAPX_OP_RDMA_WRITE, mr.out_mr, self->a.mem,
		   8, self->b.mem, self->b.rkey));
	OK(expect_completion(&self->a.done, 0x77, DAPX_STATUS_LOCAL_PROTECTION,
			     NULL));
	BROKEN_BOTH();
}

TEST_F(mr, remote_key_of_other_pd)
{
	struct dapx_mr_create mr;
	__u32 pd;

	pd = test_cmd(pd_create, self->b.fd, 0).out_pd;
	mr = test_cmd(mr_create, self->b.fd, .pd = pd, .length = PAGE,
		      .addr = (uintptr_t)self->b.mem,
		      .access = LOCAL_WRITE | REMOTE_WRITE);
	OK(connect_cm(&self->ea, &self->eb));
	self->b.mem[0] = 0x22;
	self->a.mem[0] = 0x11;
	OK(ep_rdma(&self->ea, 0x77, DAPX_OP_RDMA_WRITE, self->a.mr, self->a.mem,
		   1, self->b.mem, mr.out_rkey));
	OK(expect_refusal(&self->ea, 0x77));
	OK(ep_await_state(&self->eb, DAPX_EP_DISCONNECTED));
	EXPECT_EQ(0x22, self->b.mem[0]);
}

TEST_F(mr, local_use_after_free)
{
	__u32 mr;

	mr = new_mr(_metadata, &self->a, self->a.mem, PAGE, LOCAL_WRITE, NULL);
	OK(connect_cm(&self->ea, &self->eb));
	test_cmd(free, self->a.fd, .handle = mr, .type = DAPX_OBJECT_MR);
	OK(ep_rdma(&self->ea, 0x77, DAPX_OP_RDMA_WRITE, mr, self->a.mem, 8,
		   self->b.mem, self->b.rkey));
	OK(expect_completion(&self->a.done, 0x77, DAPX_STATUS_LOCAL_PROTECTION,
			     NULL));
	BROKEN_BOTH();
}

TEST_F(mr, remote_use_after_free)
{
	__u32 mr, rkey;

	mr = new_mr(_metadata, &self->b, self->b.mem, PAGE,
		    LOCAL_WRITE | REMOTE_WRITE, &rkey);
	OK(connect_cm(&self->ea, &self->eb));
	memset(self->a.mem, 0x11, 8);
	OK(ep_rdma(&self->ea, 0x77, DAPX_OP_RDMA_WRITE, self->a.mr, self->a.mem,
		   8, self->b.mem, rkey));
	OK(expect_completion(&self->a.done, 0x77, DAPX_STATUS_SUCCESS, NULL));
	EXPECT_EQ(0x11, self->b.mem[7]);
	test_cmd(free, self->b.fd, .handle = mr, .type = DAPX_OBJECT_MR);
	memset(self->b.mem, 0x22, 8);
	OK(ep_rdma(&self->ea, 0x77, DAPX_OP_RDMA_WRITE, self->a.mr, self->a.mem,
		   8, self->b.mem, rkey));
	OK(expect_refusal(&self->ea, 0x77));
	OK(ep_await_state(&self->eb, DAPX_EP_DISCONNECTED));
	EXPECT_EQ(0x22, self->b.mem[0]);
}

struct ending {
	int fd;
	__u32 mr;
	__u8 *target;
	size_t length;
	int failed;
};

static void free_and_overwrite(void *arg)
{
	struct ending *ending = arg;
	struct dapx_free cmd = { .handle = ending->mr };

	ending->failed = _test_cmd_free(ending->fd, &cmd) ?
				 because("DAPX_FREE: %m") : 0;
	memset(ending->target, 0xee, ending->length);
}

/*
 * Freed under writes: when the call is back, not one byte changes any more, and
 * the memory can be unmapped.
 */
TEST_F(mr, free_under_writes)
{
	enum { LENGTH = 64 * 1024, WRITES = 16 };
	unsigned int n = count(10, 200), in_the_middle = 0, round, i;
	struct ending ending = { .fd = self->b.fd, .length = LENGTH };
	struct moment moment = { 8000, free_and_overwrite, &ending };
	struct dapx_event event;
	bool refused;
	__u8 *target;

	TH_LOG("%u rounds of %u writes of %u bytes", n, WRITES, LENGTH);
	target = map_pages(LENGTH / PAGE, PROT_READ | PROT_WRITE);
	ASSERT_NE(MAP_FAILED, target);
	ending.target = target;
	for (round = 0; round < n; round++) {
		__u32 rkey;

		ending.mr = new_mr(_metadata, &self->b, target, LENGTH,
				   LOCAL_WRITE | REMOTE_WRITE, &rkey);
		OK(connect_cm(&self->ea, &self->eb));
		OK(moment_start(&moment));
		for (i = 0; i < WRITES; i++) {
			memset(self->a.mem, 0x10 + i, 1);
			OK(ep_rdma(&self->ea, 0x77, DAPX_OP_RDMA_WRITE,
				   self->a.mr, self->a.mem, LENGTH, target,
				   rkey));
		}
		moment_await(&moment);
		OK(ending.failed);

		refused = false;
		for (i = 0; i < WRITES; i++) {
			OK(evd_next(&self->a.done, &event, PATIENCE_MS));
			ASSERT_EQ(DAPX_EVENT_COMPLETION, event.type);
			if (on_siw()) {
				/* Successes, then the stream's end. */
				if (event.completion.status)
					refused = true;
				else
					EXPECT_FALSE(refused);
				continue;
			}
			/* Successes, one refusal, flushed ones. */
			if (event.completion.status ==
			    DAPX_STATUS_REMOTE_ACCESS)
				refused = true;
			else
				EXPECT_EQ(refused ? DAPX_STATUS_FLUSHED :
					  DAPX_STATUS_SUCCESS,
					  event.completion.status);
		}
		for (i = 0; i < LENGTH; i++)
			if (target[i] != 0xee)
				break;
		EXPECT_EQ(LENGTH, i)
			TH_LOG("byte %u changed after the region was freed", i);
		in_the_middle += refused;
		moment_fell(&moment, !refused);
		OK(disconnect_reset(&self->ea, &self->eb));
	}
	TH_LOG("%u of %u rounds ended in the middle", in_the_middle, n);
	EXPECT_LT(0, in_the_middle);
	ASSERT_EQ(0, munmap(target, LENGTH));
}

/* The pages stay what they are while they are registered, whatever is mapped. */
TEST_F(mr, unmapped_afterwards)
{
	__u8 *page = map_pages(1, PROT_READ | PROT_WRITE);
	__u32 mr;

	page[0] = 0x5a;
	mr = new_mr(_metadata, &self->a, page, PAGE, LOCAL_WRITE, NULL);
	OK(connect_cm(&self->ea, &self->eb));
	ASSERT_EQ(0, munmap(page, PAGE));
	OK(ep_rdma(&self->ea, 0x77, DAPX_OP_RDMA_WRITE, mr, page, 1,
		   self->b.mem, self->b.rkey));
	OK(expect_completion(&self->a.done, 0x77, DAPX_STATUS_SUCCESS, NULL));
	EXPECT_EQ(0x5a, self->b.mem[0]);
	test_cmd(free, self->a.fd, .handle = mr);
}

/* Pages that fork would share: the peer's writes reach the parent, not the child. */
TEST_F(mr, not_copied_away_by_fork)
{
	int go[2];
	pid_t pid;
	char byte;

	ASSERT_EQ(0, pipe(go));
	self->b.mem[0] = 0x22;
	OK(connect_cm(&self->ea, &self->eb));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		if (read(go[0], &byte, 1) != 1)
			_exit(1);
		_exit(self->b.mem[0] == 0x22 ? 0 : 2);
	}
	/* A write of the parent's own may not move its page away. */
	self->b.mem[1] = 1;
	self->a.mem[0] = 0x11;
	OK(ep_rdma(&self->ea, 0x77, DAPX_OP_RDMA_WRITE, self->a.mr, self->a.mem,
		   1, self->b.mem, self->b.rkey));
	OK(expect_completion(&self->a.done, 0x77, DAPX_STATUS_SUCCESS, NULL));
	EXPECT_EQ(0x11, self->b.mem[0]);
	ASSERT_EQ(1, write(go[1], "x", 1));
	EXPECT_EQ(0, wait_for(pid));
}

TEST_HARNESS_MAIN
