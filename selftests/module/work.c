// SPDX-License-Identifier: GPL-2.0
/*
 * Work requests: every operation with its data compared, every way to get one
 * wrong, and the rings that carry them.
 */
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "harness/cm.h"
#include "harness/dice.h"
#include "harness/machine.h"
#include "harness/qp.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 600

#define KIB 1024u
/* Where in the hosts' memory which data lie. */
#define SOURCE 0u
#define TARGET (128 * KIB)

FIXTURE(work)
{
	struct host a;
	struct host b;
	struct ep ea;
	struct ep eb;
};

enum how {
	BY_CM,
	BY_QP_NUMBERS,
};

FIXTURE_VARIANT(work)
{
	enum how how;
	__u32 first_index;
};

FIXTURE_VARIANT_ADD(work, by_cm)
{
	.how = BY_CM,
};

FIXTURE_VARIANT_ADD(work, by_qp_numbers)
{
	.how = BY_QP_NUMBERS,
};

/* Every ring goes over 2^32 at its third entry. */
FIXTURE_VARIANT_ADD(work, wrapping)
{
	.how = BY_CM,
	.first_index = 0xfffffffe,
};

static int join(struct ep *a, struct ep *b, enum how how)
{
	return how == BY_CM ? connect_cm(a, b) : connect_qp(a, b, NULL);
}

FIXTURE_SETUP(work)
{
	OK(host_set_up(&self->a, 0));
	OK(host_set_up(&self->b, 1));
	if (variant->how == BY_QP_NUMBERS &&
	    !(self->a.limits.out_caps & DAPX_DEVICE_QP_EXCHANGE))
		SKIP(return, "%s has no exchange of QP numbers", self->a.device);
	OK(set_module_parameter("initial_index", variant->first_index));
	OK(ep_create(&self->a, &self->ea));
	OK(ep_create(&self->b, &self->eb));
	OK(set_module_parameter("initial_index", 0));
	OK(join(&self->ea, &self->eb, variant->how));
}

FIXTURE_TEARDOWN(work)
{
	set_module_parameter("initial_index", 0);
	host_close(&self->a);
	host_close(&self->b);
}

#define NEEDS(cap)							\
	do {								\
		if (!(self->a.limits.out_caps & DAPX_DEVICE_##cap))	\
			SKIP(return, "%s has no " #cap, self->a.device);\
	} while (0)

/* ---- data ---- */

static void fill(__u8 *at, __u32 length, __u32 seed)
{
	__u32 i;

	for (i = 0; i < length; i++) {
		seed = seed * 1103515245 + 12345;
		at[i] = seed >> 16;
	}
}

/* -1 if all is as filled, else the place of the first wrong byte. */
static long differs(const __u8 *at, __u32 length, __u32 seed)
{
	__u32 i;

	for (i = 0; i < length; i++) {
		seed = seed * 1103515245 + 12345;
		if (at[i] != (__u8)(seed >> 16))
			return i;
	}
	return -1;
}

#define EXPECT_FILLED(at, length, seed)					\
	({								\
		long __place = differs(at, length, seed);		\
									\
		EXPECT_EQ(-1, __place)					\
			TH_LOG("byte %ld of %u is wrong", __place,	\
			       (__u32)(length));			\
	})

/* Nothing of the old 0x5c is overwritten. */
static bool untouched(const __u8 *at, __u32 length)
{
	while (length--)
		if (*at++ != 0x5c)
			return false;
	return true;
}

static struct dapx_send_wr request(const struct host *peer, __u8 opcode,
				   __u64 wr_id)
{
	struct dapx_send_wr wr = {
		.wr_id = wr_id,
		.opcode = opcode,
		.num_sge = 1,
		.flags = DAPX_SEND_SIGNALED,
	};

	/* Not looked at by sends. */
	wr.remote_addr = (uintptr_t)peer->mem + TARGET;
	wr.rkey = peer->rkey;
	return wr;
}

/* What a completion of an endpoint always tells. */
#define EXPECT_OF(event, ep, opcode_, bytes)				\
	({								\
		EXPECT_EQ((ep)->handle, (event).handle);		\
		EXPECT_EQ(DAPX_OP_##opcode_, (event).completion.opcode);\
		if ((int)(bytes) >= 0)					\
			EXPECT_EQ(bytes, (event).completion.byte_len);	\
		EXPECT_EQ(0, (event).completion.srq);			\
	})

static const __u32 sizes[] = {
	1, 8, 63, 64, 65, 1023, 1024, 1025, 4096, 4097, 65536,
};

/* ---- each operation ---- */

TEST_F(work, send)
{
	struct dapx_event event;
	int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		fill(self->a.mem, sizes[i], i);
		memset(self->b.mem + TARGET, 0x5c, sizes[i] + 64);
		OK(ep_recv(&self->eb, 100 + i, TARGET, sizes[i] + 32));
		OK(ep_send(&self->ea, i, SOURCE, sizes[i]));
		OK(expect_completion(&self->a.done, i, DAPX_STATUS_SUCCESS,
				     &event));
		EXPECT_OF(event, &self->ea, SEND, -1);
		OK(expect_completion(&self->b.recv, 100 + i,
				     DAPX_STATUS_SUCCESS, &event));
		EXPECT_OF(event, &self->eb, RECV, sizes[i]);
		EXPECT_EQ(0, event.completion.flags);
		EXPECT_FILLED(self->b.mem + TARGET, sizes[i], i);
		EXPECT_TRUE(untouched(self->b.mem + TARGET + sizes[i], 64));
	}
}

/* What was asked for, and how much of it: programs keep no book of their own. */
TEST_F(work, completions_tell_requests)
{
	static const struct {
		__u8 opcode;
		__u32 needs;
		__u32 length;
	} ops[] = {
		{ DAPX_OP_SEND, 0, 100 },
		{ DAPX_OP_SEND_IMM, DAPX_DEVICE_IMM, 101 },
		{ DAPX_OP_RDMA_WRITE, 0, 102 },
		{ DAPX_OP_RDMA_WRITE_IMM, DAPX_DEVICE_IMM, 103 },
		{ DAPX_OP_RDMA_READ, 0, 104 },
		{ DAPX_OP_COMPARE_SWAP, DAPX_DEVICE_ATOMICS, 8 },
		{ DAPX_OP_FETCH_ADD, DAPX_DEVICE_ATOMICS, 8 },
	};
	__u8 inline_data[] = "seven b";
	struct dapx_event event;
	int i;

	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		struct dapx_sge sge = host_sge(&self->a, SOURCE, ops[i].length);
		struct dapx_send_wr wr = request(&self->b, ops[i].opcode, i);

		if (ops[i].needs & ~self->a.limits.out_caps)
			continue;
		OK(ep_recv(&self->eb, 100, TARGET, 128));
		OK(ep_post_send(&self->ea, &wr, &sge));
		OK(expect_completion(&self->a.done, i, DAPX_STATUS_SUCCESS,
				     &event));
		EXPECT_EQ(ops[i].opcode, event.completion.opcode);
		EXPECT_EQ(ops[i].length, event.completion.byte_len);
	}
	{
		struct dapx_send_wr wr = request(&self->b, DAPX_OP_RDMA_WRITE, 77);

		wr.num_sge = 0;
		wr.flags |= DAPX_SEND_INLINE;
		wr.inline_len = sizeof(inline_data);
		OK(ep_post_send(&self->ea, &wr, inline_data));
		OK(expect_completion(&self->a.done, 77, DAPX_STATUS_SUCCESS,
				     &event));
		EXPECT_EQ(DAPX_OP_RDMA_WRITE, event.completion.opcode);
		EXPECT_EQ(sizeof(inline_data), event.completion.byte_len);
	}
	/* One that fails, and those that are flushed after it. */
	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		__u32 length = ops[i].length;
		struct dapx_sge sge = host_sge(&self->a, SOURCE, length);
		struct dapx_send_wr wr = request(&self->b, ops[i].opcode, i);

		if (ops[i].needs & ~self->a.limits.out_caps)
			continue;
		if (!i)
			sge.mr = 0;
		OK(ep_post_send(&self->ea, &wr, &sge));
		OK(expect_completion(&self->a.done, i, i ? DAPX_STATUS_FLUSHED :
				     DAPX_STATUS_LOCAL_PROTECTION, &event));
		EXPECT_EQ(ops[i].opcode, event.completion.opcode);
	}
}

TEST_F(work, send_imm)
{
	struct dapx_sge sge = host_sge(&self->a, SOURCE, 100);
	struct dapx_send_wr wr = request(&self->b, DAPX_OP_SEND_IMM, 1);
	struct dapx_event event;

	NEEDS(IMM);
	wr.imm_data = 0xa1b2c3d4;
	fill(self->a.mem, 100, 1);
	OK(ep_recv(&self->eb, 2, TARGET, 128));
	OK(ep_post_send(&self->ea, &wr, &sge));
	OK(expect_completion(&self->a.done, 1, DAPX_STATUS_SUCCESS, &event));
	EXPECT_OF(event, &self->ea, SEND_IMM, -1);
	OK(expect_completion(&self->b.recv, 2, DAPX_STATUS_SUCCESS, &event));
	EXPECT_OF(event, &self->eb, RECV, 100);
	EXPECT_EQ(DAPX_COMPLETION_IMM, event.completion.flags);
	EXPECT_EQ(0xa1b2c3d4, event.completion.imm_data);
	EXPECT_FILLED(self->b.mem + TARGET, 100, 1);
}

TEST_F(work, rdma_write)
{
	struct dapx_event event;
	int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct dapx_sge sge = host_sge(&self->a, SOURCE, sizes[i]);
		struct dapx_send_wr wr = request(&self->b, DAPX_OP_RDMA_WRITE,
						 i);

		fill(self->a.mem, sizes[i], i);
		memset(self->b.mem + TARGET, 0x5c, sizes[i] + 64);
		OK(ep_post_send(&self->ea, &wr, &sge));
		OK(expect_completion(&self->a.done, i, DAPX_STATUS_SUCCESS,
				     &event));
		EXPECT_OF(event, &self->ea, RDMA_WRITE, -1);
		EXPECT_FILLED(self->b.mem + TARGET, sizes[i], i);
		EXPECT_TRUE(untouched(self->b.mem + TARGET + sizes[i], 64));
	}
	/* The peer is not told. */
	OK(evd_quiet(&self->b.recv));
}

TEST_F(work, rdma_write_imm)
{
	struct dapx_sge sge = host_sge(&self->a, SOURCE, 3000);
	struct dapx_send_wr wr = request(&self->b, DAPX_OP_RDMA_WRITE_IMM, 1);
	struct dapx_event event;

	NEEDS(IMM);
	wr.imm_data = 0x01020304;
	fill(self->a.mem, 3000, 1);
	memset(self->b.mem, 0x5c, 64);
	/* Takes a receive, but nothing is put there. */
	OK(ep_recv(&self->eb, 2, SOURCE, 64));
	OK(ep_post_send(&self->ea, &wr, &sge));
	OK(expect_completion(&self->a.done, 1, DAPX_STATUS_SUCCESS, &event));
	EXPECT_OF(event, &self->ea, RDMA_WRITE_IMM, -1);
	OK(expect_completion(&self->b.recv, 2, DAPX_STATUS_SUCCESS, &event));
	EXPECT_OF(event, &self->eb, RECV_RDMA_IMM, 3000);
	EXPECT_EQ(DAPX_COMPLETION_IMM, event.completion.flags);
	EXPECT_EQ(0x01020304, event.completion.imm_data);
	EXPECT_FILLED(self->b.mem + TARGET, 3000, 1);
	EXPECT_TRUE(untouched(self->b.mem, 64));
}

TEST_F(work, rdma_read)
{
	struct dapx_event event;
	int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct dapx_sge sge = host_sge(&self->a, SOURCE, sizes[i]);
		struct dapx_send_wr wr = request(&self->b, DAPX_OP_RDMA_READ, i);

		fill(self->b.mem + TARGET, sizes[i], i);
		memset(self->a.mem, 0x5c, sizes[i] + 64);
		OK(ep_post_send(&self->ea, &wr, &sge));
		OK(expect_completion(&self->a.done, i, DAPX_STATUS_SUCCESS,
				     &event));
		EXPECT_OF(event, &self->ea, RDMA_READ, sizes[i]);
		EXPECT_FILLED(self->a.mem, sizes[i], i);
		EXPECT_TRUE(untouched(self->a.mem + sizes[i], 64));
	}
	OK(evd_quiet(&self->b.recv));
}

static __u64 *word(struct host *host, __u32 offset)
{
	return (__u64 *)(host->mem + offset);
}

TEST_F(work, compare_swap)
{
	struct dapx_sge sge = host_sge(&self->a, SOURCE, 8);
	struct dapx_send_wr wr = request(&self->b, DAPX_OP_COMPARE_SWAP, 1);
	struct dapx_event event;

	NEEDS(ATOMICS);
	*word(&self->b, TARGET) = 0x1122334455667788;
	*word(&self->b, TARGET + 8) = 0x5c5c5c5c5c5c5c5c;
	wr.compare_add = 0x1122334455667788;
	wr.swap = 0x99aabbccddeeff00;
	OK(ep_post_send(&self->ea, &wr, &sge));
	OK(expect_completion(&self->a.done, 1, DAPX_STATUS_SUCCESS, &event));
	EXPECT_OF(event, &self->ea, COMPARE_SWAP, -1);
	EXPECT_EQ(0x1122334455667788, *word(&self->a, SOURCE));
	EXPECT_EQ(0x99aabbccddeeff00, *word(&self->b, TARGET));

	/* Now it is another value: nothing is swapped, the value comes back. */
	wr.wr_id = 2;
	wr.swap = 7;
	OK(ep_post_send(&self->ea, &wr, &sge));
	OK(expect_completion(&self->a.done, 2, DAPX_STATUS_SUCCESS, &event));
	EXPECT_EQ(0x99aabbccddeeff00, *word(&self->a, SOURCE));
	EXPECT_EQ(0x99aabbccddeeff00, *word(&self->b, TARGET));
	EXPECT_EQ(0x5c5c5c5c5c5c5c5c, *word(&self->b, TARGET + 8));
}

TEST_F(work, fetch_add)
{
	struct dapx_sge sge = host_sge(&self->a, SOURCE, 8);
	struct dapx_send_wr wr = request(&self->b, DAPX_OP_FETCH_ADD, 0);
	struct dapx_event event;
	__u64 i;

	NEEDS(ATOMICS);
	*word(&self->b, TARGET) = 0xfffffffffffffff0;
	*word(&self->b, TARGET + 8) = 0x5c5c5c5c5c5c5c5c;
	for (i = 0; i < 8; i++) {
		wr.wr_id = i;
		wr.compare_add = 5;
		OK(ep_post_send(&self->ea, &wr, &sge));
		OK(expect_completion(&self->a.done, i, DAPX_STATUS_SUCCESS,
				     &event));
		EXPECT_OF(event, &self->ea, FETCH_ADD, -1);
		EXPECT_EQ(0xfffffffffffffff0 + 5 * i, *word(&self->a, SOURCE));
	}
	EXPECT_EQ(0xfffffffffffffff0 + 40, *word(&self->b, TARGET));
	EXPECT_EQ(0x5c5c5c5c5c5c5c5c, *word(&self->b, TARGET + 8));
}

/* What siw has not is refused, not passed on. */
TEST_F(work, not_on_iwarp)
{
	struct {
		__u8 opcode;
		__u64 cap;
	} ops[] = {
		{ DAPX_OP_SEND_IMM, DAPX_DEVICE_IMM },
		{ DAPX_OP_RDMA_WRITE_IMM, DAPX_DEVICE_IMM },
		{ DAPX_OP_COMPARE_SWAP, DAPX_DEVICE_ATOMICS },
		{ DAPX_OP_FETCH_ADD, DAPX_DEVICE_ATOMICS },
	};
	struct dapx_sge sge = host_sge(&self->a, SOURCE, 8);
	unsigned int tried = 0;
	int i;

	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		struct dapx_send_wr wr = request(&self->b, ops[i].opcode, 1);

		if (self->a.limits.out_caps & ops[i].cap)
			continue;
		tried++;
		OK(ep_recv(&self->eb, 2, TARGET, 64));
		OK(ep_post_send(&self->ea, &wr, &sge));
		OK(expect_completion(&self->a.done, 1,
				     DAPX_STATUS_LOCAL_OPERATION, NULL));
		OK(disconnect_reset(&self->ea, &self->eb));
		OK(join(&self->ea, &self->eb, variant->how));
	}
	if (!tried)
		SKIP(return, "%s has them all", self->a.device);
}

/* ---- segments, inline data, nothing at all ---- */

TEST_F(work, scatter_gather)
{
	/* Odd pieces, in no order, with gaps. */
	static const __u32 out[EP_SGE] = { 1, 700, 64, 4097, 33, 2, 512, 1031 };
	static const __u32 in[EP_SGE] = { 900, 5, 1, 1024, 77, 3000, 13, 2000 };
	struct dapx_sge gather[EP_SGE], scatter[EP_SGE];
	struct dapx_send_wr wr = request(&self->b, DAPX_OP_SEND, 1);
	struct dapx_recv_wr recv = { .wr_id = 2, .num_sge = self->b.sge };
	__u8 sent[16 * KIB], got[16 * KIB];
	__u32 total = 0, room = 0, left, n = self->a.sge, i;
	struct dapx_event event;

	for (i = 0; i < n; i++) {
		gather[i] = host_sge(&self->a, (n - i) * 8 * KIB, out[i]);
		fill(self->a.mem + (n - i) * 8 * KIB, out[i], i);
		memcpy(sent + total, self->a.mem + (n - i) * 8 * KIB,
		       out[i]);
		total += out[i];
		scatter[i] = host_sge(&self->b, TARGET + i * 8 * KIB, in[i]);
		room += in[i];
	}
	ASSERT_LE(total, room);
	memset(self->b.mem + TARGET, 0x5c, n * 8 * KIB);
	wr.num_sge = n;
	OK(ep_post_recv(&self->eb, &recv, scatter));
	OK(ep_post_send(&self->ea, &wr, gather));
	OK(expect_completion(&self->a.done, 1, DAPX_STATUS_SUCCESS, NULL));
	OK(expect_completion(&self->b.recv, 2, DAPX_STATUS_SUCCESS, &event));
	EXPECT_EQ(total, event.completion.byte_len);
	left = total;
	for (i = 0; i < n; i++) {
		__u8 *piece = self->b.mem + TARGET + i * 8 * KIB;
		__u32 here = left < in[i] ? left : in[i];

		memcpy(got + total - left, piece, here);
		EXPECT_TRUE(untouched(piece + here, 8 * KIB - here))
			TH_LOG("behind segment %u", i);
		left -= here;
	}
	EXPECT_EQ(0, memcmp(sent, got, total));

	/* Gathered by a write, scattered by a read, of one segment there. */
	wr = request(&self->b, DAPX_OP_RDMA_WRITE, 3);
	wr.num_sge = n;
	OK(ep_post_send(&self->ea, &wr, gather));
	OK(expect_completion(&self->a.done, 3, DAPX_STATUS_SUCCESS, NULL));
	EXPECT_EQ(0, memcmp(sent, self->b.mem + TARGET, total));
	memset(self->a.mem, 0, 80 * KIB);
	wr = request(&self->b, DAPX_OP_RDMA_READ, 4);
	wr.num_sge = on_siw() ? 1 : n;
	OK(ep_post_send(&self->ea, &wr, gather));
	OK(expect_completion(&self->a.done, 4, DAPX_STATUS_SUCCESS, &event));
	for (i = 0; i < wr.num_sge; i++)
		EXPECT_FILLED(self->a.mem + (n - i) * 8 * KIB, out[i], i);
}

TEST_F(work, inline_data)
{
	static const __u8 opcodes[] = {
		DAPX_OP_SEND, DAPX_OP_RDMA_WRITE, DAPX_OP_SEND_IMM,
		DAPX_OP_RDMA_WRITE_IMM,
	};
	struct dapx_event event;
	__u8 data[EP_INLINE];
	__u32 length, op;
	__u64 id = 0;

	ASSERT_LE(EP_INLINE, self->ea.attr.max_inline);
	for (op = 0; op < ARRAY_SIZE(opcodes); op++) {
		bool imm = opcodes[op] == DAPX_OP_SEND_IMM ||
			   opcodes[op] == DAPX_OP_RDMA_WRITE_IMM;
		bool receives = opcodes[op] != DAPX_OP_RDMA_WRITE;

		if (imm && !(self->a.limits.out_caps & DAPX_DEVICE_IMM))
			continue;
		for (length = 0; length <= EP_INLINE; length += 16) {
			struct dapx_send_wr wr = request(&self->b, opcodes[op],
							 ++id);

			fill(data, length, id);
			memset(self->b.mem + TARGET, 0x5c, 2 * EP_INLINE);
			wr.num_sge = 0;
			wr.flags |= DAPX_SEND_INLINE;
			wr.inline_len = length;
			wr.imm_data = imm ? id : 0;
			if (receives)
				OK(ep_recv(&self->eb, id, TARGET, EP_INLINE));
			OK(ep_post_send(&self->ea, &wr, data));
			OK(expect_completion(&self->a.done, id,
					     DAPX_STATUS_SUCCESS, NULL));
			if (receives) {
				OK(expect_completion(&self->b.recv, id,
						     DAPX_STATUS_SUCCESS,
						     &event));
				EXPECT_EQ(length, event.completion.byte_len);
			}
			EXPECT_FILLED(self->b.mem + TARGET, length, id);
			EXPECT_TRUE(untouched(self->b.mem + TARGET + length,
					      EP_INLINE));
		}
	}
}

/* Many at once: each has its own copy, whatever the ring holds by then. */
TEST_F(work, inline_data_of_many)
{
	unsigned int n = EP_DEPTH, i;
	__u8 data[EP_INLINE];

	for (i = 0; i < n; i++) {
		struct dapx_send_wr wr = request(&self->b, DAPX_OP_RDMA_WRITE,
						 i);

		fill(data, sizeof(data), i);
		wr.num_sge = 0;
		wr.flags |= DAPX_SEND_INLINE;
		wr.inline_len = sizeof(data);
		wr.remote_addr += i * EP_INLINE;
		OK(ep_post_send(&self->ea, &wr, data));
		/* As soon as it was taken, its entry may be overwritten. */
		if (!ring_used(&self->ea.send))
			memset(self->ea.send.entries, 0xee,
			       self->ea.send.stride * self->ea.send.depth);
	}
	for (i = 0; i < n; i++)
		OK(expect_completion(&self->a.done, i, DAPX_STATUS_SUCCESS,
				     NULL));
	for (i = 0; i < n; i++)
		EXPECT_FILLED(self->b.mem + TARGET + i * EP_INLINE, EP_INLINE,
			      i);
}

TEST_F(work, zero_length)
{
	struct dapx_sge empty = host_sge(&self->a, SOURCE, 0);
	struct dapx_sge mixed[4];
	struct dapx_recv_wr recv = { .wr_id = 100 };
	struct dapx_event event;
	__u64 id = 0;
	int i;

	/* No segment, then one of no length; receives likewise. */
	for (i = 0; i < 4; i++) {
		struct dapx_send_wr wr = request(&self->b, DAPX_OP_SEND, ++id);
		struct dapx_sge into = host_sge(&self->b, TARGET, 0);

		wr.num_sge = i & 1;
		recv.num_sge = i >> 1;
		OK(ep_post_recv(&self->eb, &recv, &into));
		OK(ep_post_send(&self->ea, &wr, &empty));
		OK(expect_completion(&self->a.done, id, DAPX_STATUS_SUCCESS,
				     NULL));
		OK(expect_completion(&self->b.recv, 100, DAPX_STATUS_SUCCESS,
				     &event));
		EXPECT_EQ(0, event.completion.byte_len);
	}

	/* Empty segments among others. */
	for (i = 0; i < 4; i++)
		mixed[i] = host_sge(&self->a, SOURCE + 64 * i, i & 1 ? 10 : 0);
	fill(self->a.mem + 64, 10, 1);
	fill(self->a.mem + 192, 10, 3);
	for (i = 0; i < 2; i++) {
		struct dapx_send_wr wr = request(&self->b, i ? DAPX_OP_SEND :
						 DAPX_OP_RDMA_WRITE, ++id);

		memset(self->b.mem + TARGET, 0x5c, 64);
		wr.num_sge = 4;
		if (i)
			OK(ep_recv(&self->eb, 200, TARGET, 64));
		OK(ep_post_send(&self->ea, &wr, mixed));
		OK(expect_completion(&self->a.done, id, DAPX_STATUS_SUCCESS,
				     NULL));
		if (i) {
			OK(expect_completion(&self->b.recv, 200,
					     DAPX_STATUS_SUCCESS, &event));
			EXPECT_EQ(20, event.completion.byte_len);
		}
		EXPECT_FILLED(self->b.mem + TARGET, 10, 1);
		EXPECT_FILLED(self->b.mem + TARGET + 10, 10, 3);
		EXPECT_TRUE(untouched(self->b.mem + TARGET + 20, 44));
	}

	/* One-sided ones of no length; iWARP reads something or fails. */
	for (i = 0; i < (on_siw() ? 1 : 2); i++) {
		struct dapx_send_wr wr = request(&self->b, i ?
						 DAPX_OP_RDMA_READ :
						 DAPX_OP_RDMA_WRITE, ++id);

		wr.num_sge = i;
		OK(ep_post_send(&self->ea, &wr, &empty));
		OK(expect_completion(&self->a.done, id, DAPX_STATUS_SUCCESS,
				     NULL));
	}
	OK(ep_exchange(&self->ea, &self->eb));
}

/* ---- flags ---- */

TEST_F(work, unsignalled)
{
	struct dapx_sge sge = host_sge(&self->a, SOURCE, 8);
	struct dapx_send_wr wr = request(&self->b, DAPX_OP_RDMA_WRITE, 0);
	struct dapx_event event;
	int i;

	/* Of several times the ring's depth, every tenth speaks. */
	for (i = 0; i < 4 * EP_DEPTH; i++) {
		wr.wr_id = i;
		wr.flags = i % 10 == 9 ? DAPX_SEND_SIGNALED : 0;
		while (ep_push_send(&self->ea, &wr, &sge)) {
			ASSERT_EQ(EAGAIN, errno);
			give_way();
		}
		OK(ring_bell(self->a.fd, self->ea.handle, DAPX_DOORBELL_SEND,
			     &self->ea.send));
	}
	for (i = 9; i < 4 * EP_DEPTH; i += 10) {
		OK(expect_completion(&self->a.done, i, DAPX_STATUS_SUCCESS,
				     &event));
		EXPECT_OF(event, &self->ea, RDMA_WRITE, -1);
	}
	OK(evd_quiet(&self->a.done));

	/* One that fails is always told of. */
	wr.flags = 0;
	wr.wr_id = 0x1000;
	wr.rkey = ~wr.rkey;
	OK(ep_post_send(&self->ea, &wr, &sge));
	if (on_siw()) {
		/* It does not fail here; the next one will. */
		OK(ep_await_state(&self->eb, DAPX_EP_DISCONNECTED));
		OK(ep_await_state(&self->ea, DAPX_EP_DISCONNECTED));
	} else {
		OK(expect_refusal(&self->ea, 0x1000));
	}
	/* So is one that is flushed. */
	wr.wr_id = 0x1001;
	OK(ep_post_send(&self->ea, &wr, &sge));
	OK(expect_completion(&self->a.done, 0x1001, DAPX_STATUS_FLUSHED, NULL));
}

/* A read, and behind a fence what sends on what was read. */
TEST_F(work, fence)
{
	unsigned int n = count(30, 1000), i;

	TH_LOG("%u rounds", n);
	for (i = 0; i < n; i++) {
		struct dapx_sge here = host_sge(&self->a, SOURCE, 2048);
		struct dapx_send_wr read = request(&self->b, DAPX_OP_RDMA_READ,
						   1);
		struct dapx_send_wr send = request(&self->b, DAPX_OP_SEND, 2);

		fill(self->b.mem + TARGET, 2048, i);
		memset(self->a.mem, 0, 2048);
		memset(self->b.mem, 0, 2048);
		send.flags |= DAPX_SEND_FENCE;
		OK(ep_recv(&self->eb, 3, SOURCE, 2048));
		OK(ep_push_send(&self->ea, &read, &here));
		OK(ep_push_send(&self->ea, &send, &here));
		OK(ring_bell(self->a.fd, self->ea.handle, DAPX_DOORBELL_SEND,
			     &self->ea.send));
		OK(expect_completion(&self->a.done, 1, DAPX_STATUS_SUCCESS,
				     NULL));
		OK(expect_completion(&self->a.done, 2, DAPX_STATUS_SUCCESS,
				     NULL));
		OK(expect_completion(&self->b.recv, 3, DAPX_STATUS_SUCCESS,
				     NULL));
		EXPECT_FILLED(self->b.mem, 2048, i);
	}
}

/* ---- everything that can be wrong with an entry ---- */

enum which_struct { SEND_WR, RECV_WR, SGE };

struct bad {
	const char *member;
	enum which_struct in;
	size_t offset;
	size_t size;
	__u64 value;
	__u8 opcode;
	__u32 status;
	__u64 cap;			/* only on devices that have this */
};

#define FIELD(name, m)							\
	.member = #name "." #m,						\
	.offset = offsetof(struct dapx_##name, m),			\
	.size = sizeof_member(struct dapx_##name, m)
#define BAD(name, m, in_, opcode_, value_, status_)			\
	{ FIELD(name, m), .in = (in_), .opcode = DAPX_OP_##opcode_,	\
	  .value = (value_), .status = DAPX_STATUS_##status_ }
#define BAD_WITH(name, m, in_, opcode_, value_, status_, cap_)		\
	{ FIELD(name, m), .in = (in_), .opcode = DAPX_OP_##opcode_,	\
	  .value = (value_), .status = DAPX_STATUS_##status_,		\
	  .cap = DAPX_DEVICE_##cap_ }
/* Anything will do. */
#define ANY(name, m, in_, opcode_)					\
	{ FIELD(name, m), .in = (in_), .opcode = DAPX_OP_##opcode_,	\
	  .value = ~0ULL, .status = DAPX_STATUS_SUCCESS }

static const struct bad bads[] = {
	BAD(send_wr, opcode, SEND_WR, SEND, 7, LOCAL_OPERATION),
	BAD(send_wr, opcode, SEND_WR, SEND, DAPX_OP_RECV, LOCAL_OPERATION),
	BAD(send_wr, opcode, SEND_WR, SEND, 255, LOCAL_OPERATION),
	BAD(send_wr, num_sge, SEND_WR, SEND, EP_SGE + 1, LOCAL_OPERATION),
	BAD(send_wr, num_sge, SEND_WR, RDMA_WRITE, 255, LOCAL_OPERATION),
	BAD(send_wr, flags, SEND_WR, SEND, 1 << 5, LOCAL_OPERATION),
	BAD(send_wr, flags, SEND_WR, RDMA_READ, 1 << 15, LOCAL_OPERATION),
	BAD(send_wr, flags, SEND_WR, SEND, DAPX_SEND_INLINE, LOCAL_OPERATION),
	BAD(send_wr, remote_srqn, SEND_WR, SEND, 1, LOCAL_OPERATION),
	BAD(send_wr, remote_srqn, SEND_WR, RDMA_WRITE, 1 << 31, LOCAL_OPERATION),
	BAD(send_wr, remote_addr, SEND_WR, RDMA_WRITE, 0, REMOTE_ACCESS),
	BAD(send_wr, remote_addr, SEND_WR, RDMA_READ, ~7ULL, REMOTE_ACCESS),
	BAD(send_wr, rkey, SEND_WR, RDMA_WRITE, 0, REMOTE_ACCESS),
	BAD(send_wr, rkey, SEND_WR, RDMA_READ, 0xdeadbeef, REMOTE_ACCESS),
	BAD_WITH(send_wr, rkey, SEND_WR, FETCH_ADD, 0xdeadbeef, REMOTE_ACCESS,
		 ATOMICS),
	BAD(send_wr, inline_len, SEND_WR, SEND, 8, LOCAL_OPERATION),
	BAD_WITH(send_wr, __reserved, SEND_WR, SEND_IMM, 1, LOCAL_OPERATION,
		 IMM),
	ANY(send_wr, wr_id, SEND_WR, SEND),
	ANY(send_wr, compare_add, SEND_WR, SEND),
	ANY(send_wr, swap, SEND_WR, SEND),
	ANY(send_wr, imm_data, SEND_WR, SEND),
	ANY(send_wr, rkey, SEND_WR, SEND),
	ANY(send_wr, remote_addr, SEND_WR, SEND),
	BAD(sge, mr, SGE, SEND, 0, LOCAL_PROTECTION),
	BAD(sge, mr, SGE, SEND, NO_HANDLE, LOCAL_PROTECTION),
	BAD(sge, mr, SGE, RDMA_READ, ~0U, LOCAL_PROTECTION),
	BAD(sge, length, SGE, SEND, HOST_MEMORY + 1, LOCAL_PROTECTION),
	BAD(sge, length, SGE, RDMA_WRITE, ~0U, LOCAL_PROTECTION),
	BAD(sge, addr, SGE, SEND, 0, LOCAL_PROTECTION),
	BAD(sge, addr, SGE, RDMA_READ, ~0ULL, LOCAL_PROTECTION),
	BAD_WITH(sge, length, SGE, FETCH_ADD, 16, LOCAL_LENGTH, ATOMICS),
	BAD_WITH(sge, length, SGE, COMPARE_SWAP, 4, LOCAL_LENGTH, ATOMICS),
	ANY(recv_wr, wr_id, RECV_WR, RECV),
	BAD(recv_wr, num_sge, RECV_WR, RECV, EP_SGE + 1, LOCAL_OPERATION),
	BAD(recv_wr, num_sge, RECV_WR, RECV, ~0U, LOCAL_OPERATION),
	BAD(recv_wr, flags, RECV_WR, RECV, 1 << 1, LOCAL_OPERATION),
	BAD(recv_wr, flags, RECV_WR, RECV, 1 << 31, LOCAL_OPERATION),
	BAD(sge, mr, SGE, RECV, NO_HANDLE, LOCAL_PROTECTION),
	BAD(sge, addr, SGE, RECV, 0, LOCAL_PROTECTION),
	BAD(sge, length, SGE, RECV, ~0U, LOCAL_PROTECTION),
};

static void spoil(const struct bad *bad, void *wr, void *sge)
{
	__u8 *at = bad->in == SGE ? sge : wr;

	memcpy(at + bad->offset, &bad->value, bad->size);
}

/*
 * The peer refuses the second of three. Its disconnect may overtake its answers.
 * On iWARP a write, or a send, is done when it is sent, a read is overtaken.
 */
static int broken_by_peer(struct evd *evd, __u64 wr_id, __u32 status)
{
	__u64 ids[] = { 0, wr_id, 2 };
	struct dapx_event event;
	int i, at;

	for (i = 0; i < 3; i++) {
		if (evd_next(evd, &event, PATIENCE_MS))
			return -1;
		for (at = on_siw() ? 0 : i; at < 3; at++)
			if (event.completion.wr_id == ids[at])
				break;
		if (at == 3 || (at != i && !on_siw()))
			goto err;
		/* No two of one. */
		ids[at] = ~0ULL;
		if (on_siw() || event.completion.status == DAPX_STATUS_FLUSHED ||
		    (i == 0 && event.completion.status == DAPX_STATUS_SUCCESS) ||
		    (i == 1 && event.completion.status == status))
			continue;
err:
		return because("0x%llx ended with %u", event.completion.wr_id,
			       event.completion.status);
	}
	return 0;
}

/*
 * A good one, the bad one, a good one, published at once: the first is done,
 * the second says what is wrong, the third is flushed, the connection is broken.
 */
TEST_F(work, bad_request)
{
	const struct bad *bad;
	__u64 wr_id = 1;
	int i;

	for (bad = bads; bad < bads + ARRAY_SIZE(bads); bad++) {
		if (bad->opcode == DAPX_OP_RECV ||
		    (bad->cap && !(self->a.limits.out_caps & bad->cap)))
			continue;
		TH_LOG("%s of 0x%llx, opcode %u", bad->member, bad->value,
		       bad->opcode);
		memset(self->b.mem, 0x5c, 64);
		memset(self->b.mem + TARGET, 0x5c, 64);
		for (i = 0; i < 3; i++)
			OK(ep_recv(&self->eb, 10 + i, SOURCE, 64));
		for (i = 0; i < 3; i++) {
			struct {
				struct dapx_send_wr wr;
				struct dapx_sge sge;
			} entry = {};

			entry.wr = request(&self->b, i == 1 ? bad->opcode :
					   DAPX_OP_SEND, i);
			entry.sge = host_sge(&self->a, SOURCE, 8);
			if (i == 1) {
				spoil(bad, &entry.wr, &entry.sge);
				wr_id = entry.wr.wr_id;
			}
			OK(ring_push(&self->ea.send, &entry, sizeof(entry)));
		}
		memset(self->a.mem, 0x11, 8);
		OK(ring_bell(self->a.fd, self->ea.handle, DAPX_DOORBELL_SEND,
			     &self->ea.send));
		if (bad->status == DAPX_STATUS_REMOTE_ACCESS &&
		    variant->how == BY_CM) {
			OK(broken_by_peer(&self->a.done, wr_id, bad->status));
		} else {
			OK(expect_completion(&self->a.done, 0,
					     DAPX_STATUS_SUCCESS, NULL));
			OK(expect_completion(&self->a.done, wr_id, bad->status,
					     NULL));
			OK(expect_completion(&self->a.done, 2,
					     bad->status ? DAPX_STATUS_FLUSHED :
					     DAPX_STATUS_SUCCESS, NULL));
		}
		if (bad->status == DAPX_STATUS_SUCCESS) {
			for (i = 0; i < 3; i++)
				OK(expect_completion(&self->b.recv, 10 + i,
						     DAPX_STATUS_SUCCESS,
						     NULL));
			continue;
		}
		if (bad->status != DAPX_STATUS_REMOTE_ACCESS ||
		    variant->how != BY_CM)
			OK(expect_connection(&self->a.conn, self->ea.handle,
					     DAPX_CONNECTION_BROKEN, NULL));
		OK(ep_await_state(&self->ea, DAPX_EP_DISCONNECTED));
		OK(expect_completion(&self->b.recv, 10, DAPX_STATUS_SUCCESS,
				     NULL));
		/* Nothing came of it. */
		EXPECT_EQ(0x11, self->b.mem[7]);
		EXPECT_TRUE(untouched(self->b.mem + 8, 56));
		EXPECT_TRUE(untouched(self->b.mem + TARGET, 64));
		OK(disconnect_reset(&self->ea, &self->eb));
		OK(join(&self->ea, &self->eb, variant->how));
	}
	OK(ep_exchange(&self->ea, &self->eb));
}

TEST_F(work, bad_receive)
{
	const struct bad *bad;
	__u64 wr_id = 1;
	int i;

	for (bad = bads; bad < bads + ARRAY_SIZE(bads); bad++) {
		if (bad->opcode != DAPX_OP_RECV)
			continue;
		TH_LOG("%s of 0x%llx", bad->member, bad->value);
		for (i = 0; i < 3; i++) {
			struct {
				struct dapx_recv_wr wr;
				struct dapx_sge sge;
			} entry = {};

			entry.wr.wr_id = i;
			entry.wr.num_sge = 1;
			entry.sge = host_sge(&self->b, SOURCE, 64);
			if (i == 1) {
				spoil(bad, &entry.wr, &entry.sge);
				wr_id = entry.wr.wr_id;
			}
			OK(ring_push(&self->eb.recv, &entry, sizeof(entry)));
		}
		OK(ring_bell(self->b.fd, self->eb.handle, DAPX_DOORBELL_RECV,
			     &self->eb.recv));
		if (bad->status == DAPX_STATUS_SUCCESS) {
			for (i = 0; i < 3; i++) {
				OK(ep_send(&self->ea, i, SOURCE, 8));
				OK(expect_completion(&self->a.done, i,
						     DAPX_STATUS_SUCCESS,
						     NULL));
				OK(expect_completion(&self->b.recv,
						     i == 1 ? wr_id : i,
						     DAPX_STATUS_SUCCESS,
						     NULL));
			}
			continue;
		}
		OK(expect_connection(&self->b.conn, self->eb.handle,
				     DAPX_CONNECTION_BROKEN, NULL));
		OK(expect_completion(&self->b.recv, 0, DAPX_STATUS_FLUSHED,
				     NULL));
		OK(expect_completion(&self->b.recv, wr_id, bad->status, NULL));
		OK(expect_completion(&self->b.recv, 2, DAPX_STATUS_FLUSHED,
				     NULL));
		OK(disconnect_reset(&self->ea, &self->eb));
		OK(join(&self->ea, &self->eb, variant->how));
	}
	OK(ep_exchange(&self->ea, &self->eb));
}

/* Inline where it may not be, or of more than there is room for. */
TEST_F(work, bad_inline)
{
	struct {
		__u8 opcode;
		__u8 num_sge;
		__u32 length;
		__u64 cap;
	} cases[] = {
		{ DAPX_OP_SEND, 0, self->ea.attr.max_inline + 1, 0 },
		{ DAPX_OP_RDMA_WRITE, 0, ~0U, 0 },
		{ DAPX_OP_SEND, 1, 8, 0 },
		{ DAPX_OP_RDMA_READ, 0, 8, 0 },
		{ DAPX_OP_FETCH_ADD, 0, 8, DAPX_DEVICE_ATOMICS },
		{ DAPX_OP_COMPARE_SWAP, 0, 8, DAPX_DEVICE_ATOMICS },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct {
			struct dapx_send_wr wr;
			struct dapx_sge sge;
		} entry = {};

		if (cases[i].cap && !(self->a.limits.out_caps & cases[i].cap))
			continue;
		entry.wr = request(&self->b, cases[i].opcode, 1);
		entry.wr.flags |= DAPX_SEND_INLINE;
		entry.wr.num_sge = cases[i].num_sge;
		entry.wr.inline_len = cases[i].length;
		entry.sge = host_sge(&self->a, SOURCE, 8);
		OK(ep_recv(&self->eb, 2, TARGET, 64));
		OK(ring_push(&self->ea.send, &entry, sizeof(entry)));
		OK(ring_bell(self->a.fd, self->ea.handle, DAPX_DOORBELL_SEND,
			     &self->ea.send));
		OK(expect_completion(&self->a.done, 1,
				     DAPX_STATUS_LOCAL_OPERATION, NULL));
		OK(disconnect_reset(&self->ea, &self->eb));
		OK(join(&self->ea, &self->eb, variant->how));
	}
}

/* One byte more than the device carries. */
TEST_F(work, message_too_long)
{
	__u32 n = self->a.sge, i;
	__u64 most = self->a.limits.out_max_msg_size, size = most / n + 4096;
	struct dapx_send_wr wr = request(&self->b, DAPX_OP_SEND, 1);
	struct dapx_sge sge[EP_SGE];
	struct dapx_mr_create mr;
	void *mem;

	if (size > 512 << 20)
		SKIP(return, "%s carries %llu bytes", self->a.device, most);
	mem = mmap(NULL, size, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, mem);
	mr = test_cmd(mr_create, self->a.fd, .pd = self->a.pd,
		      .addr = (uintptr_t)mem, .length = size);
	for (i = 0; i < n; i++) {
		sge[i].mr = mr.out_mr;
		sge[i].addr = (uintptr_t)mem;
		sge[i].length = most / n;
	}
	sge[0].length += most % n + 1;
	wr.num_sge = n;
	OK(ep_recv(&self->eb, 2, TARGET, 64));
	OK(ep_post_send(&self->ea, &wr, sge));
	OK(expect_completion(&self->a.done, 1, DAPX_STATUS_LOCAL_LENGTH, NULL));
	OK(expect_connection(&self->a.conn, self->ea.handle,
			     DAPX_CONNECTION_BROKEN, NULL));
}

/* Each driver calls it by another name; it ends, and the rest is flushed. */
TEST_F(work, receive_too_short)
{
	struct dapx_event event;

	memset(self->b.mem + TARGET, 0x5c, 256);
	OK(ep_recv(&self->eb, 1, TARGET, 100));
	OK(ep_recv(&self->eb, 2, TARGET, 100));
	OK(ep_send(&self->ea, 3, SOURCE, 101));
	OK(evd_next(&self->b.recv, &event, PATIENCE_MS));
	EXPECT_EQ(DAPX_EVENT_COMPLETION, event.type);
	EXPECT_EQ(1, event.completion.wr_id);
	TH_LOG("receiver: status %u", event.completion.status);
	EXPECT_TRUE(event.completion.status == DAPX_STATUS_LOCAL_LENGTH ||
		    event.completion.status == DAPX_STATUS_LOCAL_OPERATION ||
		    event.completion.status == DAPX_STATUS_REMOTE_INVALID);
	OK(expect_completion(&self->b.recv, 2, DAPX_STATUS_FLUSHED, NULL));
	if (on_siw())
		/* Which calls it the end of the stream. */
		OK(ep_await_state(&self->eb, DAPX_EP_DISCONNECTED));
	else
		OK(expect_connection(&self->b.conn, self->eb.handle,
				     DAPX_CONNECTION_BROKEN, NULL));
	EXPECT_TRUE(untouched(self->b.mem + TARGET + 100, 156));
	/*
	 * A queue pair in error may not say so to its peer. Without a CM that finds
	 * out by its own retries only, and rxe takes 7 of them for no end.
	 */
	if (variant->how == BY_QP_NUMBERS)
		return;
	OK(evd_next(&self->a.done, &event, PATIENCE_MS));
	EXPECT_EQ(DAPX_EVENT_COMPLETION, event.type);
	TH_LOG("sender: status %u", event.completion.status);
	/* On iWARP it is done when it is sent. */
	if (!on_siw())
		EXPECT_NE(DAPX_STATUS_SUCCESS, event.completion.status);
	OK(ep_await_state(&self->ea, DAPX_EP_DISCONNECTED));
}

TEST_F(work, misaligned_atomic)
{
	struct dapx_sge sge = host_sge(&self->a, SOURCE, 8);
	struct dapx_send_wr wr = request(&self->b, DAPX_OP_FETCH_ADD, 1);
	struct dapx_event event;

	NEEDS(ATOMICS);
	memset(self->b.mem + TARGET, 0x5c, 64);
	wr.remote_addr += 4;
	wr.compare_add = 1;
	OK(ep_post_send(&self->ea, &wr, &sge));
	/* The driver's choice who finds out. */
	OK(evd_next(&self->a.done, &event, PATIENCE_MS));
	EXPECT_EQ(DAPX_EVENT_COMPLETION, event.type);
	EXPECT_TRUE(event.completion.status == DAPX_STATUS_REMOTE_INVALID ||
		    event.completion.status == DAPX_STATUS_LOCAL_OPERATION)
		TH_LOG("status %u", event.completion.status);
	EXPECT_TRUE(untouched(self->b.mem + TARGET, 64));
}

/* ---- no receive there ---- */

TEST_F(work, late_receive)
{
	/* A ring is sent to before it is filled; the sender tries again. */
	if (on_siw())
		SKIP(return, "iWARP has no receiver-not-ready");
	fill(self->a.mem, 64, 1);
	OK(ep_send(&self->ea, 1, SOURCE, 64));
	OK(evd_quiet(&self->a.done));
	OK(ep_recv(&self->eb, 2, TARGET, 64));
	OK(expect_completion(&self->a.done, 1, DAPX_STATUS_SUCCESS, NULL));
	OK(expect_completion(&self->b.recv, 2, DAPX_STATUS_SUCCESS, NULL));
	EXPECT_FILLED(self->b.mem + TARGET, 64, 1);
}

TEST_F(work, receiver_not_ready)
{
	const struct qp_options never_again = {
		.timeout = 14, .retry_count = 7, .rnr_retry = 0, .path_mtu = 3,
	};
	struct dapx_ep_connect cmd;
	struct listener listener;
	struct dapx_event event;

	if (on_siw())
		SKIP(return, "iWARP has no receiver-not-ready");
	OK(disconnect_reset(&self->ea, &self->eb));
	if (variant->how == BY_QP_NUMBERS) {
		OK(connect_qp(&self->ea, &self->eb, &never_again));
		OK(ep_send(&self->ea, 1, SOURCE, 64));
	} else {
		/* What it says counts for what the peer sends to it. */
		OK(listener_open(&self->b, &listener));
		connect_usual(&self->ea, &listener, &cmd);
		cmd.rnr_retry_count = 0;
		ASSERT_EQ(0, _test_cmd_ep_connect(self->a.fd, &cmd));
		OK(listener_request(&listener, &event));
		test_cmd(ep_accept, self->b.fd, .ep = self->eb.handle,
			 .cm = event.request.cm, .rnr_retry_count = 0);
		OK(expect_connection(&self->a.conn, self->ea.handle,
				     DAPX_CONNECTION_ESTABLISHED, NULL));
		OK(ep_send(&self->ea, 1, SOURCE, 64));
	}
	OK(expect_completion(&self->a.done, 1,
			     DAPX_STATUS_RECEIVER_NOT_READY, NULL));
	OK(expect_connection(&self->a.conn, self->ea.handle,
			     DAPX_CONNECTION_BROKEN, NULL));
}

/* Nobody answers any more. */
TEST_F(work, no_answer)
{
	const struct qp_options soon = {
		.timeout = 10, .retry_count = 1, .rnr_retry = 0, .path_mtu = 3,
	};

	if (variant->how != BY_QP_NUMBERS)
		SKIP(return, "a CM tells the peer");
	OK(disconnect_reset(&self->ea, &self->eb));
	OK(connect_qp(&self->ea, &self->eb, &soon));
	OK(ep_destroy(&self->eb));
	OK(ep_send(&self->ea, 1, SOURCE, 64));
	OK(expect_completion(&self->a.done, 1, DAPX_STATUS_TRANSPORT, NULL));
	OK(expect_connection(&self->a.conn, self->ea.handle,
			     DAPX_CONNECTION_BROKEN, NULL));
}

/* ---- rings ---- */

static int push_write(struct ep *ep, const struct host *peer, __u64 wr_id)
{
	struct dapx_sge sge = host_sge(ep->host, SOURCE, 8);
	struct dapx_send_wr wr = request(peer, DAPX_OP_RDMA_WRITE, wr_id);

	return ep_push_send(ep, &wr, &sge);
}

/* Filled to the last entry, and published at once. */
TEST_F(work, full_rings)
{
	unsigned int i, round;

	ASSERT_EQ(EP_DEPTH, self->ea.send.depth);
	ASSERT_EQ(EP_DEPTH, self->eb.recv.depth);
	for (round = 0; round < 3; round++) {
		for (i = 0; i < EP_DEPTH; i++) {
			struct dapx_sge sge = host_sge(&self->b, TARGET + 8 * i,
						       8);
			struct dapx_recv_wr wr = { .wr_id = i, .num_sge = 1 };

			OK(ep_push_recv(&self->eb, &wr, &sge));
		}
		/*
		 * The module may still look at a ring after the last
		 * event of the round before, and take what is new: only
		 * what was never rung for is sure to stay full.
		 */
		if (!round) {
			EXPECT_EQ(-1, ep_recv(&self->eb, 99, 0, 8));
			EXPECT_EQ(EAGAIN, errno);
		}
		OK(ring_bell(self->b.fd, self->eb.handle, DAPX_DOORBELL_RECV,
			     &self->eb.recv));
		for (i = 0; i < EP_DEPTH; i++) {
			struct dapx_sge sge = host_sge(&self->a, 8 * i, 8);
			struct dapx_send_wr wr = request(&self->b,
							 DAPX_OP_SEND, i);

			fill(self->a.mem + 8 * i, 8, round + i);
			OK(ep_push_send(&self->ea, &wr, &sge));
		}
		if (!round) {
			EXPECT_EQ(-1, push_write(&self->ea, &self->b, 99));
			EXPECT_EQ(EAGAIN, errno);
		}
		OK(ring_bell(self->a.fd, self->ea.handle, DAPX_DOORBELL_SEND,
			     &self->ea.send));
		for (i = 0; i < EP_DEPTH; i++) {
			OK(expect_completion(&self->a.done, i,
					     DAPX_STATUS_SUCCESS, NULL));
			OK(expect_completion(&self->b.recv, i,
					     DAPX_STATUS_SUCCESS, NULL));
			EXPECT_FILLED(self->b.mem + TARGET + 8 * i, 8,
				      round + i);
		}
		EXPECT_EQ(0, ring_used(&self->ea.send));
		EXPECT_EQ(0, ring_used(&self->eb.recv));
	}
}

/* More receives in flight than the ring holds: taken ones leave their entry. */
TEST_F(work, receives_beyond_the_ring)
{
	struct dapx_ep_query query = { .ep = self->eb.handle };
	unsigned int posted = 0, i;

	while (!ep_recv(&self->eb, posted, 0, 8) && posted < 4 * EP_DEPTH)
		posted++;
	EXPECT_LE(EP_DEPTH, posted);
	/* What the device has, it has not more of than was asked for. */
	EXPECT_GE(2 * EP_DEPTH, posted);
	ASSERT_EQ(0, _test_cmd_ep_query(self->b.fd, &query));
	EXPECT_EQ(posted, query.out_receives);
	for (i = 0; i < posted; i++) {
		OK(ep_send(&self->ea, i, SOURCE, 8));
		OK(expect_completion(&self->a.done, i, DAPX_STATUS_SUCCESS,
				     NULL));
		OK(expect_completion(&self->b.recv, i, DAPX_STATUS_SUCCESS,
				     NULL));
	}
	OK(evd_quiet(&self->b.recv));
}

/* Who has nothing to do does not say for ever that it is busy. */
static int await_idle(const struct ep *ep)
{
	__u64 deadline = in_ms(PATIENCE_MS);

	while (ring_flags(&ep->send) & DAPX_RING_BUSY) {
		if (now_ns() > deadline)
			return because("BUSY stays");
		sleep_ms(1);
	}
	return 0;
}

/*
 * With BUSY set nobody rings, and still all is done: with pauses of any length
 * between the posts, so that BUSY goes at each moment that it may.
 */
TEST_F(work, doorbell_suppression)
{
	unsigned int n = count(4000, 200000), sent = 0, got = 0, rung = 0;
	unsigned int pause, left = 0;
	struct dapx_event event;

	TH_LOG("%u requests", n);
	while (got < n) {
		unsigned int burst = 1 + dice() % 12;

		while (burst-- && sent < n && sent - got < 200) {
			if (push_write(&self->ea, &self->b, sent))
				break;
			sent++;
			/* Full: the tail is out before the flag is read. */
			__atomic_thread_fence(__ATOMIC_SEQ_CST);
			if (ring_flags(&self->ea.send) & DAPX_RING_BUSY) {
				left++;
				continue;
			}
			rung++;
			test_cmd(doorbell, self->a.fd,
				 .handle = self->ea.handle,
				 .flags = DAPX_DOORBELL_SEND);
		}
		for (pause = dice() % 2000; pause; pause--)
			__asm__ volatile("");
		while (evd_poll(&self->a.done, &event)) {
			ASSERT_EQ(got, event.completion.wr_id);
			ASSERT_EQ(DAPX_STATUS_SUCCESS, event.completion.status);
			got++;
		}
		/* All the way to idle now and then. */
		while (dice() % 32 == 0 && got < sent) {
			OK(evd_next(&self->a.done, &event, PATIENCE_MS));
			ASSERT_EQ(got, event.completion.wr_id);
			got++;
		}
		if (got < sent && sent - got >= 200) {
			OK(evd_next(&self->a.done, &event, PATIENCE_MS));
			ASSERT_EQ(got, event.completion.wr_id);
			got++;
		}
		if (sent == n && got < n) {
			OK(evd_next(&self->a.done, &event, PATIENCE_MS));
			ASSERT_EQ(got, event.completion.wr_id);
			got++;
		}
	}
	/* How many depends on how the device's driver runs. */
	TH_LOG("%u doorbells rung, %u left out", rung, left);
	OK(await_idle(&self->ea));
	OK(evd_quiet(&self->a.done));
}

/* What BUSY promises: what is published now is taken without a doorbell. */
TEST_F(work, busy_needs_no_doorbell)
{
	unsigned int n = count(10, 500), round, i;
	__u64 deadline;

	if (on_siw())
		SKIP(return, "a request cannot be held up on iWARP");
	for (round = 0; round < n; round++) {
		/* Held up, since nobody receives. */
		deadline = in_ms(PATIENCE_MS);
		for (i = 0; !(ring_flags(&self->ea.send) & DAPX_RING_BUSY); i++) {
			ASSERT_GT(deadline, now_ns());
			ASSERT_GT(EP_DEPTH, i) TH_LOG("never busy");
			OK(ep_send(&self->ea, i, SOURCE, 8));
		}
		for (; i < EP_DEPTH; i++) {
			struct dapx_sge sge = host_sge(&self->a, SOURCE, 8);
			struct dapx_send_wr wr = request(&self->b, DAPX_OP_SEND,
							 i);

			OK(ep_push_send(&self->ea, &wr, &sge));
		}
		EXPECT_TRUE(ring_flags(&self->ea.send) & DAPX_RING_BUSY);
		for (i = 0; i < EP_DEPTH; i++)
			OK(ep_recv(&self->eb, i, TARGET, 8));
		for (i = 0; i < EP_DEPTH; i++) {
			OK(expect_completion(&self->a.done, i,
					     DAPX_STATUS_SUCCESS, NULL));
			OK(expect_completion(&self->b.recv, i,
					     DAPX_STATUS_SUCCESS, NULL));
		}
		sleep_ms(1);
	}
}

/* What is where, for a message. */
static const char *under_way(struct ep *from, struct ep *to)
{
	struct dapx_ep_query sender = { .ep = from->handle };
	struct dapx_ep_query receiver = { .ep = to->handle };
	static char text[256];

	_test_cmd_ep_query(from->host->fd, &sender);
	_test_cmd_ep_query(to->host->fd, &receiver);
	snprintf(text, sizeof(text),
		 "%u requests and %u receives under way, %u and %u in the rings, flags %x and %x, %u events",
		 sender.out_requests, receiver.out_receives,
		 ring_used(&from->send), ring_used(&to->recv),
		 ring_flags(&from->send), ring_flags(&to->recv),
		 ring_used(&from->host->done.ring));
	return text;
}

/*
 * With many events unread, BUSY outlasts the last completion, and what is published
 * before it ends is taken all the same.
 */
TEST_F(work, busy_lingers)
{
	unsigned int n = count(500, 20000), round, i, batch = 20, left = 0;
	struct dapx_event event;

	for (round = 0; round < n; round++) {
		__u64 deadline = in_ms(PATIENCE_MS);

		for (i = 0; i <= batch; i++)
			OK(ep_recv(&self->eb, i, TARGET, 8));
		/* The timer runs where the requests came from; we must not wait for it. */
		run_on(0);
		for (i = 0; i < batch; i++)
			OK(ep_send(&self->ea, i, SOURCE, 8));
		run_on(1);
		while (ring_used(&self->a.done.ring) < batch) {
			ASSERT_GT(deadline, now_ns())
				TH_LOG("round %u: %s", round,
				       under_way(&self->ea, &self->eb));
			relax();
		}
		/* Now, or a little later. */
		deadline = now_ns() + dice() % 150 * 1000;
		while (round % 2 && now_ns() < deadline)
			relax();
		if (ring_flags(&self->ea.send) & DAPX_RING_BUSY)
			left++;
		OK(ep_send(&self->ea, batch, SOURCE, 8));
		for (i = 0; i <= batch; i++) {
			OK(expect_completion(&self->a.done, i,
					     DAPX_STATUS_SUCCESS, NULL));
			OK(evd_next(&self->b.recv, &event, PATIENCE_MS));
		}
	}
	TH_LOG("%u of %u doorbells left out", left, n);
	OK(await_idle(&self->ea));
}

/* The same for receives: few doorbells while enough are posted, none lost. */
TEST_F(work, receive_doorbells)
{
	unsigned int n = count(1000, 50000), posted = 0, sent = 0, got = 0;
	unsigned int rung = 0;
	struct dapx_event event;

	TH_LOG("%u messages", n);
	while (got < n) {
		while (posted < n && posted - got < EP_DEPTH) {
			struct dapx_sge sge = host_sge(&self->b, TARGET, 8);
			struct dapx_recv_wr wr = { .wr_id = posted,
						   .num_sge = 1 };

			if (ep_push_recv(&self->eb, &wr, &sge))
				break;
			posted++;
			/* Full: the tail is out before the flag is read. */
			__atomic_thread_fence(__ATOMIC_SEQ_CST);
			if (ring_flags(&self->eb.recv) & DAPX_RING_BUSY)
				continue;
			rung++;
			test_cmd(doorbell, self->b.fd,
				 .handle = self->eb.handle,
				 .flags = DAPX_DOORBELL_RECV);
		}
		while (sent < posted && sent - got < 16) {
			struct dapx_send_wr wr = request(&self->b,
							 DAPX_OP_SEND, sent);
			struct dapx_sge sge = host_sge(&self->a, SOURCE, 8);

			wr.flags = 0;
			if (ep_post_send(&self->ea, &wr, &sge))
				break;
			sent++;
		}
		OK(evd_next(&self->b.recv, &event, PATIENCE_MS));
		ASSERT_EQ(got, event.completion.wr_id);
		ASSERT_EQ(DAPX_STATUS_SUCCESS, event.completion.status);
		got++;
	}
	TH_LOG("%u receives, %u doorbells", n, rung);
	EXPECT_GT(n, rung);
}

/* An index that cannot be breaks this endpoint; no other notices. */
#define NEIGHBOURS(x, y)						\
	struct ep x, y;							\
	OK(ep_create(&self->a, &x));					\
	OK(ep_create(&self->b, &y));					\
	OK(join(&x, &y, variant->how))

TEST_F(work, send_tail_too_far)
{
	NEIGHBOURS(x, y);

	*self->ea.send.tail += EP_DEPTH + 1;
	test_err(EBADMSG, doorbell, self->a.fd, .handle = self->ea.handle,
		 .flags = DAPX_DOORBELL_SEND);
	EXPECT_TRUE(ring_flags(&self->ea.send) & DAPX_RING_DEAD);
	OK(expect_connection(&self->a.conn, self->ea.handle,
			     DAPX_CONNECTION_BROKEN, NULL));
	EXPECT_EQ(DAPX_EP_DISCONNECTED, ep_state(&self->ea));
	if (variant->how == BY_CM)
		OK(ep_await_state(&self->eb, DAPX_EP_DISCONNECTED));
	test_err(EBADMSG, doorbell, self->a.fd, .handle = self->ea.handle,
		 .flags = DAPX_DOORBELL_SEND);
	OK(ep_exchange(&x, &y));
	/* A reset mends it. */
	OK(disconnect_reset(&self->ea, &self->eb));
	EXPECT_EQ(0, ring_flags(&self->ea.send) & DAPX_RING_DEAD);
	OK(join(&self->ea, &self->eb, variant->how));
	OK(ep_exchange(&self->ea, &self->eb));
}

TEST_F(work, send_tail_put_back)
{
	NEIGHBOURS(x, y);

	OK(push_write(&self->ea, &self->b, 1));
	OK(ring_bell(self->a.fd, self->ea.handle, DAPX_DOORBELL_SEND,
		     &self->ea.send));
	OK(expect_completion(&self->a.done, 1, DAPX_STATUS_SUCCESS, NULL));
	*self->ea.send.tail -= 1;
	test_err(EBADMSG, doorbell, self->a.fd, .handle = self->ea.handle,
		 .flags = DAPX_DOORBELL_SEND);
	OK(expect_connection(&self->a.conn, self->ea.handle,
			     DAPX_CONNECTION_BROKEN, NULL));
	OK(ep_exchange(&x, &y));
}

TEST_F(work, recv_tail_too_far)
{
	NEIGHBOURS(x, y);

	*self->eb.recv.tail += EP_DEPTH + 1;
	test_err(EBADMSG, doorbell, self->b.fd, .handle = self->eb.handle,
		 .flags = DAPX_DOORBELL_RECV);
	EXPECT_TRUE(ring_flags(&self->eb.recv) & DAPX_RING_DEAD);
	OK(expect_connection(&self->b.conn, self->eb.handle,
			     DAPX_CONNECTION_BROKEN, NULL));
	if (variant->how == BY_CM)
		OK(ep_await_state(&self->ea, DAPX_EP_DISCONNECTED));
	OK(ep_exchange(&x, &y));
}

/* What the kernel writes it does not read back. */
TEST_F(work, kernel_words_overwritten)
{
	unsigned int i;

	for (i = 0; i < 3 * EP_DEPTH; i++) {
		*(__u32 *)self->ea.state = dice();
		OK(ep_recv(&self->eb, i, TARGET, 8));
		OK(ep_send(&self->ea, i, SOURCE, 8));
		OK(expect_completion(&self->a.done, i, DAPX_STATUS_SUCCESS,
				     NULL));
		OK(expect_completion(&self->b.recv, i, DAPX_STATUS_SUCCESS,
				     NULL));
	}
	*self->ea.send.head += 1000;
	test_cmd(doorbell, self->a.fd, .handle = self->ea.handle,
		 .flags = DAPX_DOORBELL_SEND);
	*self->ea.send.head = *self->ea.send.tail;
	OK(ep_recv(&self->eb, 1000, TARGET, 8));
	OK(ep_send(&self->ea, 1000, SOURCE, 8));
	OK(expect_completion(&self->a.done, 1000, DAPX_STATUS_SUCCESS, NULL));
	EXPECT_EQ(*self->ea.send.tail, *self->ea.send.head);
	EXPECT_EQ(DAPX_EP_CONNECTED, ep_state(&self->ea));
}

/* ---- an entry is read once ---- */

struct flipper {
	void *word;			/* 4 bytes that are flipped */
	__u32 values[2];
	__u32 flips;
	bool stop;
};

/* Each on its own processor: the one must run while the other does. */
static void *flips(void *arg)
{
	struct flipper *flipper = arg;
	unsigned int i = 0;

	run_on(1);
	while (!__atomic_load_n(&flipper->stop, __ATOMIC_RELAXED)) {
		__u32 *word = __atomic_load_n(&flipper->word, __ATOMIC_ACQUIRE);

		if (!word || i % 256 == 0)
			relax();
		if (!word)
			continue;
		__atomic_store_n(word, flipper->values[++i & 1],
				 __ATOMIC_RELAXED);
		__atomic_store_n(&flipper->flips, i, __ATOMIC_RELEASE);
	}
	return NULL;
}

/*
 * While the kernel takes an entry, another thread makes it good and bad in
 * turn. It is one or the other: never checked as the one and used as the other.
 */
TEST_F(work, entry_read_once)
{
	const size_t sge_at = sizeof(struct dapx_send_wr);
	struct {
		const char *what;
		size_t offset;
		__u32 good;
		__u32 bad;
		__u32 status;
	} cases[] = {
		/*
		 * The kernel's memcpy() may go byte by byte: a mixture of good and bad
		 * must be one of the two, or as bad.
		 */
		{ "segment's length", sge_at + offsetof(struct dapx_sge, length),
		  8, HOST_MEMORY * 2 | 8, DAPX_STATUS_LOCAL_PROTECTION },
		{ "segment's MR", sge_at + offsetof(struct dapx_sge, mr),
		  self->a.mr, NO_HANDLE, DAPX_STATUS_LOCAL_PROTECTION },
		{ "segment's address", sge_at + 4 +
		  offsetof(struct dapx_sge, addr),
		  (uintptr_t)self->a.mem >> 32, 0x12345678,
		  DAPX_STATUS_LOCAL_PROTECTION },
		/* opcode, num_sge and flags are one word */
		{ "number of segments", offsetof(struct dapx_send_wr, opcode),
		  DAPX_OP_SEND | 1 << 8 | DAPX_SEND_SIGNALED << 16,
		  DAPX_OP_SEND | 255 << 8 | DAPX_SEND_SIGNALED << 16,
		  DAPX_STATUS_LOCAL_OPERATION },
		{ "opcode", offsetof(struct dapx_send_wr, opcode),
		  DAPX_OP_SEND | 1 << 8 | DAPX_SEND_SIGNALED << 16,
		  250 | 1 << 8 | DAPX_SEND_SIGNALED << 16,
		  DAPX_STATUS_LOCAL_OPERATION },
		{ "inline length", offsetof(struct dapx_send_wr, inline_len),
		  8, 0x7fff0008, DAPX_STATUS_LOCAL_OPERATION },
	};
	unsigned int n = count(40, 2000), i, c, good, bad, until;
	struct flipper flipper;
	struct dapx_event event;
	pthread_t thread;

	if (variant->first_index)
		SKIP(return, "once is enough");
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "needs two processors");
	run_on(0);
	TH_LOG("%u requests for each of %zu members", n, ARRAY_SIZE(cases));
	for (c = 0; c < ARRAY_SIZE(cases); c++) {
		struct {
			struct dapx_send_wr wr;
			struct dapx_sge sge;
		} entry = {};

		good = 0;
		bad = 0;
		memset(&flipper, 0, sizeof(flipper));
		flipper.values[0] = cases[c].good;
		flipper.values[1] = cases[c].bad;
		ASSERT_EQ(0, pthread_create(&thread, NULL, flips, &flipper));
		for (i = 0; i < n; i++) {
			__u8 *at = ring_entry(&self->ea.send,
					      *self->ea.send.tail);

			entry.wr = request(&self->b, DAPX_OP_SEND, i);
			entry.sge = host_sge(&self->a, SOURCE, 8);
			if (cases[c].offset ==
			    offsetof(struct dapx_send_wr, inline_len)) {
				entry.wr.flags |= DAPX_SEND_INLINE;
				entry.wr.num_sge = 0;
				entry.wr.inline_len = 8;
			}
			memset(self->b.mem + TARGET, 0x5c, 4096);
			OK(ep_recv(&self->eb, i, TARGET, 4096));
			/* Flipped already when it is published. */
			memcpy(at, &entry, sizeof(entry));
			__atomic_store_n(&flipper.word, at + cases[c].offset,
					 __ATOMIC_RELEASE);
			until = __atomic_load_n(&flipper.flips,
						__ATOMIC_ACQUIRE) +
				1 + dice() % 20;
			while ((__s32)(__atomic_load_n(&flipper.flips,
						       __ATOMIC_ACQUIRE) -
				       until) < 0)
				relax();
			__atomic_fetch_add(self->ea.send.tail, 1,
					   __ATOMIC_RELEASE);
			OK(ring_bell(self->a.fd, self->ea.handle,
				     DAPX_DOORBELL_SEND, &self->ea.send));
			OK(evd_next(&self->a.done, &event, PATIENCE_MS));
			__atomic_store_n(&flipper.word, NULL, __ATOMIC_RELEASE);
			ASSERT_EQ(i, event.completion.wr_id);
			if (event.completion.status == DAPX_STATUS_SUCCESS) {
				OK(expect_completion(&self->b.recv, i,
						     DAPX_STATUS_SUCCESS,
						     &event));
				ASSERT_EQ(8, event.completion.byte_len)
					TH_LOG("%s", cases[c].what);
				ASSERT_TRUE(untouched(self->b.mem + TARGET + 8,
						      4088));
				good++;
				continue;
			}
			ASSERT_EQ(cases[c].status, event.completion.status)
				TH_LOG("%s", cases[c].what);
			bad++;
			OK(disconnect_reset(&self->ea, &self->eb));
			OK(join(&self->ea, &self->eb, variant->how));
		}
		__atomic_store_n(&flipper.stop, true, __ATOMIC_RELAXED);
		ASSERT_EQ(0, pthread_join(thread, NULL));
		TH_LOG("%s: taken as good %u times, as bad %u times",
		       cases[c].what, good, bad);
	}
}

/* ---- both ways at once, until something is wrong ---- */

struct talker {
	struct ep *ep;
	struct ep *peer;
	unsigned int messages;
	int failed;
};

static void *talks(void *arg)
{
	struct talker *talker = arg;
	struct ep *ep = talker->ep;
	struct host *host = ep->host;
	unsigned int sent = 0, done = 0, posted = 0, got = 0;
	struct dapx_event event;
	__u64 deadline = in_ms(4 * PATIENCE_MS);

	while (!talker->failed && (done < talker->messages ||
				   got < talker->messages)) {
		if (posted < talker->messages && posted - got < EP_DEPTH &&
		    !ep_recv(ep, posted, TARGET + 64 * (posted % EP_DEPTH), 64))
			posted++;
		if (sent < talker->messages && sent - done < EP_DEPTH / 2) {
			__u32 at = 64 * (sent % EP_DEPTH);

			fill(host->mem + at, 64, sent);
			if (!ep_send(ep, sent, at, 64))
				sent++;
		}
		if (evd_poll(&host->done, &event)) {
			if (event.completion.wr_id != done ||
			    event.completion.status)
				talker->failed = __LINE__;
			done++;
		}
		if (evd_poll(&host->recv, &event)) {
			if (event.completion.wr_id != got ||
			    event.completion.status ||
			    event.completion.byte_len != 64 ||
			    differs(host->mem + TARGET + 64 * (got % EP_DEPTH),
				    64, got) >= 0)
				talker->failed = __LINE__;
			got++;
		}
		if (now_ns() > deadline)
			talker->failed = __LINE__;
		relax();
	}
	return NULL;
}

TEST_F(work, both_ways)
{
	struct talker talkers[2] = {
		{ &self->ea, &self->eb, count(2000, 200000), 0 },
		{ &self->eb, &self->ea, count(2000, 200000), 0 },
	};
	pthread_t threads[2];
	int i;

	TH_LOG("%u messages each way", talkers[0].messages);
	if (on_siw())
		SKIP(return, "iWARP has no receiver-not-ready");
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, talks,
					    &talkers[i]));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, pthread_join(threads[i], NULL));
		EXPECT_EQ(0, talkers[i].failed);
	}
}

TEST_HARNESS_MAIN
