// SPDX-License-Identifier: GPL-2.0
/*
 * What a process must not get: keys, other processes' memory, the kernel's
 * memory, more than its share.
 */
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "harness/cm.h"
#include "harness/machine.h"
#include "harness/process.h"
#include "harness/srq.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 300

#define PAGE 4096u

FIXTURE(security)
{
	struct host a;
	struct host b;
	struct ep ea;
	struct ep eb;
};

FIXTURE_SETUP(security)
{
	OK(host_set_up(&self->a, 0));
	OK(host_set_up(&self->b, 1));
	OK(ep_create(&self->a, &self->ea));
	OK(ep_create(&self->b, &self->eb));
}

FIXTURE_TEARDOWN(security)
{
	cgroup_leave(self->a.device);
	host_close(&self->a);
	host_close(&self->b);
}

/* ---- the node ---- */

TEST_F(security, node)
{
	struct stat node;
	pid_t pid;

	ASSERT_EQ(0, stat(DAPX_NODE, &node));
	EXPECT_TRUE(S_ISCHR(node.st_mode));
	EXPECT_EQ(0, node.st_uid);
	/* Nothing for those who are neither root nor of its group. */
	EXPECT_EQ(0660, node.st_mode & 07777);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		if (become(NOBODY))
			_exit(1);
		_exit(open(DAPX_NODE, O_RDWR) == -1 && errno == EACCES ? 0 : 2);
	}
	EXPECT_EQ(0, wait_for(pid));
}

/* ---- keys ---- */

/* Numbers that are keys, or other things than a region of this PD. */
TEST_F(security, no_forged_keys)
{
	struct {
		const char *what;
		__u32 number;
	} forged[] = {
		{ "own remote key", self->a.rkey },
		{ "the peer's remote key", self->b.rkey },
		{ "index part of a key", self->a.rkey >> 8 },
		{ "0", 0 },
		{ "a key of local memory", 0xffffffff },
		{ "a PD", self->a.pd },
		{ "an EVD", self->a.done.handle },
		{ "an endpoint", self->ea.handle },
		{ "a number out of the sky", 0x12345678 },
		{ "a region with a bit of the sign", self->a.mr | 1U << 31 },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(forged); i++) {
		struct dapx_sge sge = host_sge(&self->a, 0, 8);
		struct dapx_send_wr wr = {
			.wr_id = i, .opcode = DAPX_OP_RDMA_WRITE, .num_sge = 1,
			.flags = DAPX_SEND_SIGNALED,
			.remote_addr = (uintptr_t)self->b.mem,
			.rkey = self->b.rkey,
		};

		if (forged[i].number == self->a.mr)
			continue;
		self->b.mem[0] = 0x5c;
		self->a.mem[0] = 0x11;
		OK(connect_cm(&self->ea, &self->eb));
		sge.mr = forged[i].number;
		OK(ep_post_send(&self->ea, &wr, &sge));
		OK(expect_completion(&self->a.done, i,
				     DAPX_STATUS_LOCAL_PROTECTION, NULL));
		EXPECT_EQ(0x5c, self->b.mem[0]) TH_LOG("%s", forged[i].what);
		OK(disconnect_reset(&self->ea, &self->eb));
	}
}

/* The kernel's own addresses, through a region of one's own. */
TEST_F(security, no_kernel_addresses)
{
	static const __u64 addresses[] = {
		0xffff888000000000, 0xffffffff81000000, 0xffffc90000000000,
		0, 0x7ffffffff000,
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(addresses); i++) {
		struct dapx_sge sge = host_sge(&self->a, 0, 8);
		struct dapx_send_wr wr = {
			.wr_id = i, .opcode = DAPX_OP_SEND, .num_sge = 1,
			.flags = DAPX_SEND_SIGNALED,
		};

		OK(connect_cm(&self->ea, &self->eb));
		OK(ep_recv(&self->eb, 1, 0, 64));
		sge.addr = addresses[i];
		OK(ep_post_send(&self->ea, &wr, &sge));
		OK(expect_completion(&self->a.done, i,
				     DAPX_STATUS_LOCAL_PROTECTION, NULL));
		OK(disconnect_reset(&self->ea, &self->eb));
	}
}

/* A key is good for connections of its own PD only, whoever knows it. */
TEST_F(security, key_of_another_process)
{
	struct dapx_send_wr wr = {
		.wr_id = 1, .opcode = DAPX_OP_RDMA_READ, .num_sge = 1,
		.flags = DAPX_SEND_SIGNALED,
	};
	struct dapx_sge sge = host_sge(&self->a, 0, 8);
	struct host victim;

	/* Another context on the same device as the one connected to. */
	OK(host_set_up(&victim, 1));
	memset(victim.mem, 0x77, 8);
	memset(self->a.mem, 0, 8);
	OK(connect_cm(&self->ea, &self->eb));
	wr.remote_addr = (uintptr_t)victim.mem;
	wr.rkey = victim.rkey;
	OK(ep_post_send(&self->ea, &wr, &sge));
	OK(expect_refusal(&self->ea, 1));
	EXPECT_EQ(0, self->a.mem[0]);
	host_close(&victim);
}

/* ---- mappings ---- */

#define NO_MAP(expected, fd, size, flags, offset)			\
	({								\
		void *__map = mmap(NULL, size, PROT_READ | PROT_WRITE,	\
				   flags, fd, offset);			\
									\
		EXPECT_EQ(MAP_FAILED, __map);				\
		EXPECT_EQ(expected, errno);				\
	})

TEST_F(security, mappings)
{
	struct dapx_ring_layout ring;
	struct dapx_ep_create ep;
	struct host bare;
	__u64 foreign;
	void *map;
	int i;

	ring = test_cmd(evd_create, self->a.fd, .depth = 256).out_ring;
	ASSERT_LE(2 * PAGE, ring.mmap_size);
	NO_MAP(EINVAL, self->a.fd, ring.mmap_size, MAP_PRIVATE,
	       ring.mmap_offset);
	NO_MAP(EINVAL, self->a.fd, PAGE, MAP_SHARED, 0);
	/* An offset names a ring: there is no other ring of this number. */
	NO_MAP(EINVAL, self->a.fd, PAGE, MAP_SHARED, ring.mmap_offset + 1000 * PAGE);
	NO_MAP(EINVAL, self->a.fd, PAGE, MAP_SHARED, 0x7ffffffffffff000);
	NO_MAP(EINVAL, self->a.fd, ring.mmap_size + PAGE, MAP_SHARED,
	       ring.mmap_offset);
	NO_MAP(EINVAL, self->a.fd, 1 << 30, MAP_SHARED, ring.mmap_offset);

	/* Another context's: make sure that its number is not one of ours. */
	for (i = 0; i < 64; i++)
		foreign = test_cmd(evd_create, self->b.fd,
				   .depth = 1).out_ring.mmap_offset;
	NO_MAP(EINVAL, self->a.fd, PAGE, MAP_SHARED, foreign);
	OK(host_open(&bare, 0));
	NO_MAP(EINVAL, bare.fd, PAGE, MAP_SHARED, ring.mmap_offset);
	host_close(&bare);

	/* Less of it is allowed, but it does not grow. */
	map = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, self->a.fd,
		   ring.mmap_offset);
	ASSERT_NE(MAP_FAILED, map);
	EXPECT_EQ(MAP_FAILED, mremap(map, PAGE, ring.mmap_size + 4 * PAGE,
				     MREMAP_MAYMOVE));
	/* When its object is gone there is nothing to map, only what was. */
	ep_usual(&self->a, &ep);
	ASSERT_EQ(0, _test_cmd_ep_create(self->a.fd, &ep));
	map = mmap(NULL, ep.out_send_ring.mmap_size, PROT_READ | PROT_WRITE,
		   MAP_SHARED, self->a.fd, ep.out_send_ring.mmap_offset);
	ASSERT_NE(MAP_FAILED, map);
	test_cmd(free, self->a.fd, .handle = ep.out_ep);
	NO_MAP(EINVAL, self->a.fd, PAGE, MAP_SHARED,
	       ep.out_send_ring.mmap_offset);
	memset(map, 0xff, ep.out_send_ring.mmap_size);
	/* Even when the file is closed. */
	host_close(&self->a);
	memset(map, 0xee, ep.out_send_ring.mmap_size);
}

/* After a fork only the parent has its rings. */
TEST_F(security, not_forked)
{
	struct ring *rings[] = {
		&self->a.done.ring, &self->a.conn.ring, &self->ea.send,
	};
	unsigned char resident[64];
	pid_t pid;
	int i;

	for (i = 0; i < ARRAY_SIZE(rings); i++)
		ASSERT_EQ(0, mincore(rings[i]->map, PAGE, resident));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		for (i = 0; i < ARRAY_SIZE(rings); i++)
			if (!mincore(rings[i]->map, PAGE, resident) ||
			    errno != ENOMEM)
				_exit(1 + i);
		_exit(0);
	}
	EXPECT_EQ(0, wait_for(pid));
	OK(connect_cm(&self->ea, &self->eb));
	OK(ep_exchange(&self->ea, &self->eb));
}

/* ---- memory of the kernel ---- */

/* Leaves pages behind that are anything but zero. */
static void dirty_memory(void)
{
	size_t size = 32 << 20;
	void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mem == MAP_FAILED)
		return;
	memset(mem, 0xa7, size);
	munmap(mem, size);
}

/* Only the words that a fresh ring has are not zero. */
static long dirty_byte(const struct ring *ring, const __u32 *also)
{
	const __u8 *map = ring->map;
	size_t i;

	for (i = 0; i < ring->map_size; i++) {
		const __u8 *at = map + i;
		const __u32 *word = (const __u32 *)(map + (i & ~3UL));

		if (!*at || word == ring->head || word == ring->tail ||
		    word == ring->flags || word == also)
			continue;
		return i;
	}
	return -1;
}

TEST_F(security, rings_are_zeroed)
{
	struct ep ep;
	struct evd evd;
	struct srq srq;
	int i;

	for (i = 0; i < 4; i++) {
		dirty_memory();
		OK(evd_make(self->a.fd, 1024, 0, &evd));
		EXPECT_EQ(-1, dirty_byte(&evd.ring, NULL));
		OK(srq_make(&self->a, 64, self->a.sge, &srq));
		EXPECT_EQ(-1, dirty_byte(&srq.ring, NULL));
		OK(ep_create(&self->a, &ep));
		/* The flags of its receive ring: not ready for them. */
		EXPECT_EQ(-1, dirty_byte(&ep.send, ep.recv.flags));
		ep_forget(&ep);
		ring_unmap(&evd.ring);
		ring_unmap(&srq.ring);
	}
}

static bool all_zero(const void *at, size_t size)
{
	const __u8 *byte = at;

	while (size--)
		if (*byte++)
			return false;
	return true;
}

/* Rows that check-abi-coverage looks for: reserved members of what comes back. */
#define ZERO(name, m, object)						\
	EXPECT_TRUE(all_zero(&((const struct dapx_##name *)(object))->m, \
			     sizeof_member(struct dapx_##name, m)))

TEST_F(security, answers_are_zeroed)
{
	struct dapx_query_device device;
	struct dapx_evd_create evd;
	struct dapx_srq_create srq;
	struct dapx_ep_create ep;
	struct dapx_ep_query query;
	size_t length;

	evd = test_cmd(evd_create, self->a.fd, .depth = 8);
	EXPECT_NE(0, evd.out_ring.arm_off);
	evd.out_ring = test_cmd(evd_resize, self->a.fd, .evd = evd.out_evd,
				.depth = 16).out_ring;
	EXPECT_NE(0, evd.out_ring.arm_off);
	srq = test_cmd(srq_create, self->a.fd, .pd = self->a.pd, .depth = 4,
		       .max_sge = 1);
	ZERO(ring_layout, arm_off, &srq.out_ring);
	ep_usual(&self->a, &ep);
	ASSERT_EQ(0, _test_cmd_ep_create(self->a.fd, &ep));
	ZERO(ring_layout, arm_off, &ep.out_send_ring);
	ZERO(ring_layout, arm_off, &ep.out_recv_ring);
	query = test_cmd(ep_query, self->a.fd, .ep = ep.out_ep);
	EXPECT_TRUE(all_zero(query.out_private_data,
			     sizeof(query.out_private_data)));
	EXPECT_TRUE(all_zero(&query.out_local, sizeof(query.out_local)));
	EXPECT_TRUE(all_zero(&query.out_remote, sizeof(query.out_remote)));

	device = test_cmd(query_device, self->a.fd, 0);
	length = strlen(device.out_device);
	EXPECT_TRUE(all_zero(device.out_device + length,
			     sizeof(device.out_device) - length));

	OK(connect_cm(&self->ea, &self->eb));
	query = test_cmd(ep_query, self->a.fd, .ep = self->ea.handle);
	EXPECT_TRUE(all_zero((__u8 *)&query.out_local +
			     sizeof(struct sockaddr),
			     sizeof(query.out_local) -
			     sizeof(struct sockaddr)));
}

/* Behind what an event of each type has there is nothing. */
#define EXPECT_NOTHING_BEHIND(event, m)					\
	EXPECT_TRUE(all_zero((__u8 *)(event) +				\
			     offset_behind(struct dapx_event, m),	\
			     sizeof(*(event)) -				\
			     offset_behind(struct dapx_event, m)))

TEST_F(security, events_are_zeroed)
{
	struct listener listener;
	struct dapx_event event;
	__u32 cm;

	/* Each comes into a ring that has held other things before. */
	while (!_test_cmd(evd_post, self->b.fd, .evd = self->b.conn.handle,
			  .data = { ~0ULL, ~0ULL }))
		;
	memset(self->b.conn.ring.entries, 0xa7,
	       self->b.conn.ring.depth * self->b.conn.ring.stride);
	evd_drain(&self->b.conn);
	OK(listener_open(&self->b, &listener));
	OK(ep_connect(&self->ea, &listener));
	OK(listener_request(&listener, &event));
	EXPECT_NOTHING_BEHIND(&event, request);
	OK(ep_accept(&self->eb, event.request.cm));
	OK(expect_connection(&self->b.conn, self->eb.handle,
			     DAPX_CONNECTION_ESTABLISHED, &event));
	EXPECT_NOTHING_BEHIND(&event, connection);
	test_cmd(evd_post, self->b.fd, .evd = self->b.conn.handle,
		 .data = { 1, 2 });
	OK(evd_next(&self->b.conn, &event, PATIENCE_MS));
	EXPECT_NOTHING_BEHIND(&event, software);
	cm = test_cmd(cm_create, self->b.fd,
		      .evd = self->b.conn.handle).out_cm;
	{
		struct dapx_cm_resolve resolve = {
			.cm = cm, .what = DAPX_RESOLVE_ADDR,
			.deadline = in_ms(PATIENCE_MS),
		};

		set_addr(&resolve.dst, self->a.addr, 7);
		set_addr(&resolve.src, self->b.addr, 0);
		ASSERT_EQ(0, _test_cmd_cm_resolve(self->b.fd, &resolve));
	}
	OK(expect_cm(&self->b.conn, cm, DAPX_CM_ADDR_RESOLVED, &event));
	EXPECT_NOTHING_BEHIND(&event, cm);

	/* Completions: imm_data, flags and SRQ of a plain one. */
	memset(self->a.done.ring.entries, 0xa7,
	       self->a.done.ring.depth * self->a.done.ring.stride);
	OK(ep_await_state(&self->ea, DAPX_EP_CONNECTED));
	OK(ep_recv(&self->eb, 1, 0, 8));
	OK(ep_send(&self->ea, 2, 0, 8));
	OK(expect_completion(&self->a.done, 2, DAPX_STATUS_SUCCESS, &event));
	EXPECT_EQ(0, event.completion.imm_data);
	EXPECT_EQ(0, event.completion.flags);
	EXPECT_EQ(0, event.completion.srq);
	EXPECT_EQ(0, event.completion.qp_num);
	ZERO(event, completion.__reserved0, &event);
	EXPECT_NOTHING_BEHIND(&event, completion);
	/* Whole, for the record: no type uses all of it. */
	memset(&event, 0, sizeof(event));
	ZERO(event, __reserved, &event);
}

/* ---- more than one's share ---- */

static unsigned long charged(void)
{
	return strtoul(read_line(CGROUP "/dapx/memory.current") ?: "0", NULL,
		       10);
}

/*
 * What rings take is charged to who has them. Large ones are allocated page by
 * page, small ones in one piece.
 */
TEST_F(security, ring_memory_is_charged)
{
	const struct { unsigned int depth, n; } kinds[] = {
		{ .depth = 8192, .n = 8 },
		{ .depth = 128, .n = 512 },
	};
	unsigned long before, after, rings;
	unsigned int i, k;

	if (cgroup_enter("+memory"))
		SKIP(return, "%s", why());
	/* A batch of charges is taken in advance. */
	test_cmd(evd_create, self->a.fd, .depth = 4);
	for (k = 0; k < ARRAY_SIZE(kinds); k++) {
		rings = 0;
		before = charged();
		for (i = 0; i < kinds[k].n; i++)
			rings += test_cmd(evd_create, self->a.fd,
					  .depth = kinds[k].depth)
				 .out_ring.mmap_size;
		after = charged();
		TH_LOG("rings of %lu bytes, charged %lu", rings, after - before);
		EXPECT_LE(rings - rings / 8, after - before);
	}
}

/* Objects count for the RDMA controller, as those of other users of RDMA do. */
TEST_F(security, rdma_cgroup)
{
	char text[128];
	__u32 pd;

	if (cgroup_enter("+rdma"))
		SKIP(return, "%s", why());
	snprintf(text, sizeof(text), "%s hca_object=2", self->a.device);
	OK(write_line(CGROUP "/dapx/rdma.max", text));
	pd = test_cmd(pd_create, self->a.fd, 0).out_pd;
	test_cmd(evd_create, self->a.fd, .depth = 4);
	test_err(EDQUOT, pd_create, self->a.fd, 0);
	test_err(EDQUOT, cm_create, self->a.fd, .evd = self->a.conn.handle);
	test_cmd(free, self->a.fd, .handle = pd);
	test_cmd(pd_create, self->a.fd, 0);
	test_err(EDQUOT, pd_create, self->a.fd, 0);
}

/* Endpoints made for requests are charged when these are accepted: no callback is the process. */
TEST_F(security, rdma_cgroup_of_requests)
{
	struct dapx_cm_listen mode = { .mode = DAPX_LISTEN_TENTATIVE };
	struct dapx_ep_create usual;
	struct listener listener;
	struct ep ep[2], made[2];
	struct dapx_event event;
	char text[128];
	int i;

	if (cgroup_enter("+rdma"))
		SKIP(return, "%s", why());
	/* The listener, and one endpoint. */
	snprintf(text, sizeof(text), "%s hca_object=2", self->b.device);
	OK(write_line(CGROUP "/dapx/rdma.max", text));
	ep_usual(&self->b, &usual);
	mode.attr = usual.attr;
	OK(listener_open_as(&self->b, &mode, &listener));
	for (i = 0; i < 2; i++) {
		OK(ep_create(&self->a, &ep[i]));
		OK(ep_connect(&ep[i], &listener));
		OK(listener_request(&listener, &event));
		OK(ep_adopt(&self->b, event.request.ep, &made[i]));
		test_cmd(ep_modify, self->b.fd, .ep = made[i].handle,
			 .mask = DAPX_EP_MODIFY_PD | DAPX_EP_MODIFY_REQUEST_EVD |
				 DAPX_EP_MODIFY_RECV_EVD | DAPX_EP_MODIFY_CONNECT_EVD,
			 .pd = self->b.pd, .request_evd = self->b.done.handle,
			 .recv_evd = self->b.recv.handle, .connect_evd = self->b.conn.handle);
		test_err(i ? EDQUOT : 0, ep_accept, self->b.fd, .ep = made[i].handle,
			 .cm = event.request.cm);
		if (!i)
			OK(expect_connection(&self->b.conn, made[i].handle,
					     DAPX_CONNECTION_ESTABLISHED, NULL));
	}
	/* It is as it was: accepted as soon as there is room. */
	OK(ep_destroy(&made[0]));
	OK(ep_accept(&made[1], event.request.cm));
	OK(ep_destroy(&made[1]));
	cgroup_leave(self->b.device);
}

TEST_HARNESS_MAIN
