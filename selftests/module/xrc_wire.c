// SPDX-License-Identifier: GPL-2.0
/*
 * XRC's wire: peers that do not keep to the protocol.
 *
 * a has a plain endpoint, connected with a receive queue pair of b, and makes segments by
 * hand. What a peer sends ends its own connection at the worst.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "harness/cm.h"
#include "harness/dice.h"
#include "harness/machine.h"
#include "harness/xrc.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 600

#define HELLO 1
#define WELCOME 2
#define REQUEST 3
#define ANSWER 4
#define ASK 1
#define MAGIC 0x43525864
#define SEGMENT_SIZE 8192

/* As Documentation/xrc-protocol.rst has it. */
struct hello {
	__u8 type;
	__u8 version;
	__le16 segment_size;
	__le32 magic;
	__le32 limit;
};

struct request {
	__u8 type;
	__u8 opcode;
	__le16 flags;
	__le32 seq;
	__le32 demand;
	__le32 srqn;
	__le32 total;
	__le32 length;
	__le32 rkey;
	__le32 imm;
	__le64 addr;
	__le64 compare_add;
	__le64 swap;
};

struct answer {
	__u8 type;
	__u8 status;
	__u8 flags;
	__u8 rnr_timer;
	__le32 expected;
	__le32 limit;
	__le32 reserved;
};

/* Before the private data of a request and its answer. */
struct cm_header {
	__le32 magic;
	__le32 version;
};

#define ANSWERS 0x20000	/* where they come in; what goes out is at 0 */
#define TAKE 0x20000

struct wire {
	struct host a;
	struct host b;
	struct xrc_srq srq;
	struct ep ep;
	__u32 qp_num;
	int file;
	unsigned int sent;
	unsigned int heard;
};

FIXTURE(xrc_wire)
{
	struct wire wire;
};

/* Connects self->ep with a new receive queue pair; it has receives for @answers. */
static int connect_by_hand(struct wire *self, unsigned int answers)
{
	/* rxe takes 7 retries for no limit. */
	static const struct qp_options bounded = {
		.timeout = 14, .retry_count = 6, .rnr_retry = 7, .path_mtu = 3,
	};
	struct dapx_ep_modify rtr = {
		.mask = DAPX_EP_MODIFY_QP,
		.qp = {
			.state = DAPX_QP_RTR, .hop_limit = 64, .path_mtu = 3,
			.min_rnr_timer = 1,
		},
	};
	struct dapx_xrc_qp_modify init = {
		.xrcd = self->b.xrcd,
		.qp = { .state = DAPX_QP_INIT, .port = 1 },
	};
	struct dapx_xrc_qp_modify ready = {
		.xrcd = self->b.xrcd,
		.qp = {
			.state = DAPX_QP_RTR, .hop_limit = 64, .path_mtu = 3,
			.min_rnr_timer = 12,
		},
	};
	struct ep *ep = &self->ep;
	unsigned int i;
	__u8 gid[16];
	int index;

	if (ep_create(&self->a, ep) || xrc_qp_make(&self->b, &self->qp_num))
		return -1;
	index = host_gid_index(&self->b, rtr.qp.dgid);
	ready.qp.sgid_index = index;
	init.qp_num = self->qp_num;
	ready.qp_num = self->qp_num;
	ready.qp.dest_qp_num = ep->qp_num;
	rtr.ep = ep->handle;
	rtr.qp.dest_qp_num = self->qp_num;
	/* Of answers; the module's choice. */
	rtr.qp.rq_psn = (self->qp_num + ep->qp_num) & 0xffffff;
	rtr.qp.sgid_index = host_gid_index(&self->a, ready.qp.dgid);
	(void)gid;
	if (_test_cmd_xrc_qp_modify(self->b.fd, &init) ||
	    _test_cmd_xrc_qp_modify(self->b.fd, &ready))
		return because("DAPX_XRC_QP_MODIFY: %m");
	if (qp_init(ep))
		return -1;
	for (i = 0; i < answers; i++)
		if (ep_recv(ep, i, ANSWERS + i * SEGMENT_SIZE, SEGMENT_SIZE))
			return -1;
	if (_test_cmd_ep_modify(self->a.fd, &rtr))
		return because("DAPX_EP_MODIFY to RTR: %m");
	self->sent = 0;
	self->heard = 0;
	return qp_rts(ep, &bounded);
}

FIXTURE_SETUP(xrc_wire)
{
	if (on_siw())
		SKIP(return, "iWARP has no exchange of QP numbers");
	self->wire.file = memfd_create("b", 0);
	ASSERT_LE(0, self->wire.file);
	OK(host_set_up(&self->wire.a, 0));
	OK(host_set_up(&self->wire.b, 1));
	OK(host_xrc(&self->wire.b, self->wire.file));
	OK(xrc_srq_make(&self->wire.b, 64, &self->wire.srq));
	OK(connect_by_hand(&self->wire, 16));
}

FIXTURE_TEARDOWN(xrc_wire)
{
	if (on_siw())
		return;
	ep_forget(&self->wire.ep);
	ring_unmap(&self->wire.srq.srq.ring);
	host_close(&self->wire.a);
	host_close(&self->wire.b);
	close(self->wire.file);
}

/* A message of these bytes. */
static int utter(struct wire *self, const void *data, __u32 length)
{
	__u32 at = self->sent % 8 * SEGMENT_SIZE;

	memcpy(self->a.mem + at, data, length);
	return ep_send(&self->ep, 1000 + self->sent++, at, length);
}

/* The next message, of at least so many bytes. */
static int hear(struct wire *self, void *data, __u32 length)
{
	struct dapx_event event;

	if (expect_completion(&self->a.recv, self->heard, DAPX_STATUS_SUCCESS,
			      &event))
		return -1;
	if (event.completion.byte_len < length)
		return because("%u bytes instead of %u",
			       event.completion.byte_len, length);
	memcpy(data, self->a.mem + ANSWERS + self->heard++ * SEGMENT_SIZE, length);
	return 0;
}

static int greet(struct wire *self)
{
	struct hello hello = {
		.type = HELLO, .version = 1,
		.segment_size = htole16(SEGMENT_SIZE), .magic = htole32(MAGIC),
	};
	struct hello welcome;

	if (utter(self, &hello, sizeof(hello)) ||
	    hear(self, &welcome, sizeof(welcome)))
		return -1;
	if (welcome.type != WELCOME || welcome.version != 1 ||
	    le32toh(welcome.magic) != MAGIC || le32toh(welcome.limit) < 2 ||
	    le16toh(welcome.segment_size) != SEGMENT_SIZE)
		return because("no welcome");
	return 0;
}

/* With the first @length of a message's @total bytes behind it. */
static void request_init(const struct wire *self, struct request *r, __u32 total,
			 __u32 length)
{
	*r = (struct request) {
		.type = REQUEST, .opcode = DAPX_OP_SEND, .flags = htole16(ASK),
		.srqn = htole32(self->srq.number), .demand = htole32(1),
		.total = htole32(total), .length = htole32(length),
	};
}

static int is_told_of_the_error(struct wire *self)
{
	struct dapx_event event;

	do {
		if (evd_next(&self->b.conn, &event, PATIENCE_MS))
			return -1;
	} while (event.async.what != DAPX_ASYNC_XRC_QP_ERROR);
	return 0;
}

static int take_apart(struct wire *self)
{
	struct dapx_xrc_qp_unregister leave = {
		.xrcd = self->b.xrcd, .qp_num = self->qp_num,
	};

	if (ep_destroy(&self->ep) || _test_cmd_xrc_qp_unregister(self->b.fd, &leave))
		return because("cannot take it apart: %m");
	evd_drain(&self->a.done);
	evd_drain(&self->a.recv);
	evd_drain(&self->a.conn);
	evd_drain(&self->b.conn);
	return 0;
}

/* It is refused, and the connection is over; the domain is not. */
static int refused(struct wire *self, __u8 status)
{
	struct answer answer;

	if (hear(self, &answer, sizeof(answer)))
		return -1;
	if (answer.type != ANSWER || answer.status != status)
		return because("answer %u with status %u instead of %u",
			       answer.type, answer.status, status);
	if (is_told_of_the_error(self) || take_apart(self))
		return -1;
	return connect_by_hand(self, 16);
}

TEST_F(xrc_wire, message_by_hand)
{
	struct {
		struct request request;
		char data[8];
	} segment[2] = {};
	struct answer answer;
	unsigned int i;

	OK(greet(&self->wire));
	for (i = 0; i < 2; i++) {
		request_init(&self->wire, &segment[i].request, 6, 6);
		segment[i].request.seq = htole32(i);
		memcpy(segment[i].data, i ? "again" : "hello", 6);
		OK(srq_recv(&self->wire.srq.srq, i, TAKE + i * 64, 64));
	}
	OK(utter(&self->wire, segment, sizeof(segment) - 2));
	OK(hear(&self->wire, &answer, sizeof(answer)));
	EXPECT_EQ(ANSWER, answer.type);
	EXPECT_EQ(DAPX_STATUS_SUCCESS, answer.status);
	EXPECT_EQ(2, le32toh(answer.expected));
	for (i = 0; i < 2; i++)
		OK(expect_completion(&self->wire.b.recv, i, DAPX_STATUS_SUCCESS, NULL));
	EXPECT_STREQ("hello", (char *)self->wire.b.mem + TAKE);
	EXPECT_STREQ("again", (char *)self->wire.b.mem + TAKE + 64);
}

/* What does not begin with a hello of ours is no peer. */
TEST_F(xrc_wire, no_hello)
{
	struct hello hello = {
		.type = HELLO, .version = 1,
		.segment_size = htole16(SEGMENT_SIZE), .magic = htole32(MAGIC),
	}, wrong;
	struct request request;

	OK(utter(&self->wire, "GET / HTTP/1.0\r\n\r\n", 18));
	OK(refused(&self->wire, DAPX_STATUS_REMOTE_INVALID));
	OK(utter(&self->wire, "", 0));
	OK(refused(&self->wire, DAPX_STATUS_REMOTE_INVALID));
	wrong = hello;
	wrong.version = 2;
	OK(utter(&self->wire, &wrong, sizeof(wrong)));
	OK(refused(&self->wire, DAPX_STATUS_REMOTE_INVALID));
	wrong = hello;
	wrong.magic++;
	OK(utter(&self->wire, &wrong, sizeof(wrong)));
	OK(refused(&self->wire, DAPX_STATUS_REMOTE_INVALID));
	OK(utter(&self->wire, &hello, sizeof(hello) - 1));
	OK(refused(&self->wire, DAPX_STATUS_REMOTE_INVALID));
	request_init(&self->wire, &request, 0, 0);
	OK(utter(&self->wire, &request, sizeof(request)));
	OK(refused(&self->wire, DAPX_STATUS_REMOTE_INVALID));
}

/* Whose refusal has arrived has nothing more to say: its device acknowledges nothing more. */
TEST_F(xrc_wire, ends_when_its_refusal_is_heard)
{
	struct wire *wire = &self->wire;
	__u64 heard, sent, deadline;
	struct dapx_event event;
	struct answer answer;

	OK(utter(wire, "", 0));
	OK(expect_completion(&wire->a.done, 1000, DAPX_STATUS_SUCCESS, NULL));
	OK(hear(wire, &answer, sizeof(answer)));
	EXPECT_EQ(DAPX_STATUS_REMOTE_INVALID, answer.status);
	heard = now_ns();
	deadline = in_ms(PATIENCE_MS);
	do {
		sleep_ms(1);
		sent = now_ns();
		ASSERT_GT(deadline, sent);
		OK(utter(wire, "", 0));
		OK(evd_next(&wire->a.done, &event, PATIENCE_MS));
	} while (event.completion.status == DAPX_STATUS_SUCCESS);
	EXPECT_EQ(DAPX_STATUS_TRANSPORT, event.completion.status);
	TH_LOG("after %llu us", (unsigned long long)(sent - heard) / 1000);
	if (in_virtual_time())
		EXPECT_GT(500000000, sent - heard);
}

/* Its refusal finds no receive, so the device's queue pair is not in error yet. */
TEST_F(xrc_wire, error_is_the_state_at_once)
{
	struct dapx_xrc_qp_query q = { .xrcd = self->wire.b.xrcd };

	OK(take_apart(&self->wire));
	OK(connect_by_hand(&self->wire, 0));
	OK(utter(&self->wire, "", 0));
	OK(is_told_of_the_error(&self->wire));
	q.qp_num = self->wire.qp_num;
	ASSERT_EQ(0, _test_cmd_xrc_qp_query(self->wire.b.fd, &q));
	EXPECT_EQ(DAPX_QP_ERROR, q.out_qp.state);
	test_err(EBADFD, xrc_qp_disconnect, self->wire.b.fd, .xrcd = self->wire.b.xrcd,
		 .qp_num = self->wire.qp_num);
}

/* One thing wrong at a time, of what is well otherwise. */
TEST_F(xrc_wire, malformed)
{
	static const struct {
		const char *what;
		size_t offset;
		__u8 value;
	} wrong[] = {
		{ "type", offsetof(struct request, type), WELCOME },
		{ "opcode", offsetof(struct request, opcode), 7 },
		{ "opcode", offsetof(struct request, opcode), DAPX_OP_RECV },
		{ "sequence number", offsetof(struct request, seq), 1 },
		{ "length of the message", offsetof(struct request, total), 65 },
		{ "length of the message", offsetof(struct request, total), 63 },
		{ "length of the request", offsetof(struct request, length), 65 },
		{ "length of the request", offsetof(struct request, length), 63 },
		{ "atomic of 64 bytes", offsetof(struct request, opcode),
		  DAPX_OP_FETCH_ADD },
		{ "read with data", offsetof(struct request, opcode),
		  DAPX_OP_RDMA_READ },
	};
	struct {
		struct request request;
		__u8 data[64];
	} segment = {};
	unsigned int i;

	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		OK(greet(&self->wire));
		OK(srq_recv(&self->wire.srq.srq, i, TAKE, 128));
		request_init(&self->wire, &segment.request, 64, 64);
		((__u8 *)&segment)[wrong[i].offset] = wrong[i].value;
		OK(utter(&self->wire, &segment, sizeof(segment)));
		ASSERT_EQ(0, refused(&self->wire, DAPX_STATUS_REMOTE_INVALID))
			TH_LOG("%s: %s", wrong[i].what, why());
	}
	/* Cut off. */
	OK(greet(&self->wire));
	request_init(&self->wire, &segment.request, 0, 0);
	OK(utter(&self->wire, &segment, sizeof(segment.request) - 1));
	OK(refused(&self->wire, DAPX_STATUS_REMOTE_INVALID));
}

/* A message that goes on as another one, and one whose queue goes. */
TEST_F(xrc_wire, half_a_message)
{
	static __u8 segment[SEGMENT_SIZE];
	struct request *request = (struct request *)segment;
	struct dapx_event event;

	OK(greet(&self->wire));
	OK(srq_recv(&self->wire.srq.srq, 5, TAKE, 20000));
	request_init(&self->wire, request, 20000, SEGMENT_SIZE - sizeof(*request));
	OK(utter(&self->wire, segment, sizeof(segment)));
	OK(hear(&self->wire, &(struct answer) {}, sizeof(struct answer)));
	request->seq = htole32(1);
	request->srqn = htole32(self->wire.srq.number + 1);
	OK(utter(&self->wire, segment, sizeof(segment)));
	OK(refused(&self->wire, DAPX_STATUS_REMOTE_INVALID));
	/* The receive that it had is given back. */
	OK(expect_completion(&self->wire.b.recv, 5, DAPX_STATUS_FLUSHED, &event));

	OK(greet(&self->wire));
	OK(srq_recv(&self->wire.srq.srq, 6, TAKE, 20000));
	request_init(&self->wire, request, 20000, SEGMENT_SIZE - sizeof(*request));
	OK(utter(&self->wire, segment, sizeof(segment)));
	OK(hear(&self->wire, &(struct answer) {}, sizeof(struct answer)));
	/* Its queue goes in the middle. */
	ring_unmap(&self->wire.srq.srq.ring);
	test_cmd(free, self->wire.b.fd, .handle = self->wire.srq.srq.handle);
	request->seq = htole32(1);
	OK(utter(&self->wire, segment, sizeof(segment)));
	OK(refused(&self->wire, DAPX_STATUS_REMOTE_QUEUE));
	OK(xrc_srq_make(&self->wire.b, 64, &self->wire.srq));
}

/* From @peer, a plain endpoint, which receives answers where others receive segments. */
static int connect_sender(struct ep *ep, struct ep *peer, unsigned int receives)
{
	static const struct qp_options options = {
		.timeout = 12, .retry_count = 2, .rnr_retry = 7, .path_mtu = 3,
	};
	struct dapx_ep_modify rts = {
		.ep = peer->handle,
		.mask = DAPX_EP_MODIFY_QP,
		.qp = {
			.state = DAPX_QP_RTS, .timeout = 12, .retry_count = 2, .rnr_retry = 7,
			.sq_psn = (ep->qp_num + peer->qp_num) & 0xffffff,
		},
	};
	__u8 gid[16], peer_gid[16];
	unsigned int i;

	if (host_gid_index(ep->host, gid) < 0 || host_gid_index(peer->host, peer_gid) < 0 ||
	    qp_init(ep) || qp_init(peer))
		return -1;
	for (i = 0; i < receives; i++)
		if (ep_recv(peer, i, i * SEGMENT_SIZE, SEGMENT_SIZE))
			return -1;
	if (qp_rtr(ep, peer->qp_num, peer_gid, &options) ||
	    qp_rtr(peer, ep->qp_num, gid, &options) || qp_rts(ep, &options))
		return -1;
	if (_test_cmd_ep_modify(peer->host->fd, &rts))
		return because("DAPX_EP_MODIFY to RTS: %m");
	return 0;
}

/* A message of @sender's has arrived at @peer, which has not answered. */
static int leave_unanswered(struct ep *sender, struct ep *peer)
{
	struct hello welcome = {
		.type = WELCOME, .version = 1, .segment_size = htole16(SEGMENT_SIZE),
		.magic = htole32(MAGIC), .limit = htole32(8),
	};
	struct host *host = peer->host;

	if (connect_sender(sender, peer, 8) || xrc_send(sender, 1, 5, 0, 100) ||
	    expect_completion(&host->recv, 0, DAPX_STATUS_SUCCESS, NULL))
		return -1;
	memcpy(host->mem + ANSWERS, &welcome, sizeof(welcome));
	if (ep_send(peer, 0, ANSWERS, sizeof(welcome)) ||
	    expect_completion(&host->done, 0, DAPX_STATUS_SUCCESS, NULL) ||
	    expect_completion(&host->recv, 1, DAPX_STATUS_SUCCESS, NULL))
		return -1;
	return *(__u8 *)(host->mem + SEGMENT_SIZE) == REQUEST ? 0 : because("no request");
}

/* The device has nothing to send that could fail; the sender notices all the same. */
TEST_F(xrc_wire, peer_that_ends_before_it_answers)
{
	struct wire *wire = &self->wire;
	struct ep sender, peer;

	OK(xrc_ep_create(&wire->b, &sender));
	OK(ep_create(&wire->a, &peer));
	OK(leave_unanswered(&sender, &peer));
	OK(ep_destroy(&peer));
	OK(expect_completion(&wire->b.done, 5, DAPX_STATUS_TRANSPORT, NULL));
	OK(ep_destroy(&sender));
}

/* It is probed several times, which takes nothing from it, and does it no harm. */
TEST_F(xrc_wire, peer_that_answers_late)
{
	struct answer answer = {
		.type = ANSWER, .expected = htole32(1), .limit = htole32(8),
	};
	struct wire *wire = &self->wire;
	struct ep sender, peer;

	OK(xrc_ep_create(&wire->b, &sender));
	OK(ep_create(&wire->a, &peer));
	OK(leave_unanswered(&sender, &peer));
	sleep_ms(3500);
	OK(evd_quiet(&wire->a.recv));
	memcpy(wire->a.mem + ANSWERS, &answer, sizeof(answer));
	OK(ep_send(&peer, 1, ANSWERS, sizeof(answer)));
	OK(expect_completion(&wire->b.done, 5, DAPX_STATUS_SUCCESS, NULL));
	OK(ep_destroy(&peer));
	OK(ep_destroy(&sender));
}

/* Anything at all. */
TEST_F(xrc_wire, garbage)
{
	unsigned int n = count(100, 10000), i, j, length;
	static __u8 segment[SEGMENT_SIZE];
	struct request *request = (struct request *)segment;
	struct dapx_xrc_qp_unregister leave = { .xrcd = self->wire.b.xrcd };

	for (i = 0; i < n; i++) {
		for (j = 0; j < 16; j++)
			srq_recv(&self->wire.srq.srq, j, TAKE, dice() % 10000);
		OK(greet(&self->wire));
		for (j = 0; j < 4; j++) {
			for (length = 0; length < sizeof(segment); length += 4)
				*(__u32 *)(segment + length) = dice();
			length = dice() % (sizeof(segment) + 1);
			if (dice() % 4) {
				request_init(&self->wire, request, length - sizeof(*request) +
					     (dice() % 4 ? 0 : dice() % 8192),
					     length - sizeof(*request));
				request->seq = htole32(j);
				request->opcode = dice() % 8;
				request->rkey = htole32(self->wire.b.rkey);
				request->addr = htole64((uintptr_t)self->wire.b.mem +
							dice() % (2 * HOST_MEMORY));
				request->flags = htole16(dice());
			}
			OK(utter(&self->wire, segment, length));
		}
		usleep(dice() % 2000);
		leave.qp_num = self->wire.qp_num;
		OK(ep_destroy(&self->wire.ep));
		ASSERT_EQ(0, _test_cmd_xrc_qp_unregister(self->wire.b.fd, &leave));
		evd_drain(&self->wire.a.done);
		evd_drain(&self->wire.a.recv);
		evd_drain(&self->wire.a.conn);
		evd_drain(&self->wire.b.conn);
		evd_drain(&self->wire.b.recv);
		OK(connect_by_hand(&self->wire, 16));
	}
}

/* A message, and what a read of the same length may write to. */
#define READS 0x10000
#define READ 128

/* One that a peer could answer with data. */
static int ask_anything(struct ep *ep, __u32 srq_num, unsigned int i)
{
	static const __u8 opcodes[] = {
		DAPX_OP_SEND, DAPX_OP_RDMA_WRITE, DAPX_OP_RDMA_READ, DAPX_OP_FETCH_ADD,
	};
	struct dapx_send_wr wr = {
		.wr_id = i, .opcode = opcodes[dice() % 4], .num_sge = 1,
		.flags = DAPX_SEND_SIGNALED, .remote_srqn = srq_num,
		.remote_addr = READS, .rkey = dice(),
	};
	struct dapx_sge sge = host_sge(ep->host, READS + i * READ,
				       wr.opcode == DAPX_OP_FETCH_ADD ? 8 : READ);

	return ep_post_send(ep, &wr, &sge);
}

/* Often one that is well but for a member or two. Returns its length. */
static unsigned int answer_anything(__u8 *message, bool first)
{
	struct answer *answer = (struct answer *)message;
	struct hello *welcome = (struct hello *)message;
	unsigned int i, length = dice() % 512;

	for (i = 0; i < 512; i += 4)
		*(__u32 *)(message + i) = dice();
	if (dice() % 8 == 0)
		return length;
	if (first && dice() % 4) {
		*welcome = (struct hello) {
			.type = WELCOME, .version = 1,
			.segment_size = htole16(SEGMENT_SIZE), .magic = htole32(MAGIC),
			.limit = htole32(dice() % 4 ? 8 : dice()),
		};
		return sizeof(*welcome);
	}
	*answer = (struct answer) {
		.type = ANSWER, .status = dice() % 4 ? DAPX_STATUS_SUCCESS : dice(),
		.flags = dice() % 3, .rnr_timer = dice() % 40,
		.expected = htole32(dice() % 8 ? dice() % 5 : dice()),
		.limit = htole32(dice() % 8 ? 8 + dice() % 8 : dice()),
		.reserved = htole32(dice() % 8 ? 0 : dice()),
	};
	return sizeof(*answer) + (dice() % 2 ? READ : dice() % 256);
}

/* To a sender: anything at all. It writes nowhere but to what its own reads name. */
TEST_F(xrc_wire, garbage_in_answers)
{
	unsigned int n = count(100, 10000), i, j;
	struct wire *wire = &self->wire;
	struct ep sender, peer;

	memset(wire->b.mem, 0x5a, HOST_MEMORY);
	for (i = 0; i < n; i++) {
		OK(xrc_ep_create(&wire->b, &sender));
		OK(ep_create(&wire->a, &peer));
		OK(connect_sender(&sender, &peer, 8));
		for (j = 0; j < 4; j++)
			OK(ask_anything(&sender, wire->srq.number, j));
		OK(expect_completion(&wire->a.recv, 0, DAPX_STATUS_SUCCESS, NULL));
		for (j = 0; j < 6; j++) {
			__u32 at = ANSWERS + j * 512;

			OK(ep_send(&peer, j, at, answer_anything(wire->a.mem + at, !j)));
		}
		usleep(dice() % 2000);
		j = dice() % 2;
		OK(ep_destroy(j ? &peer : &sender));
		OK(ep_destroy(j ? &sender : &peer));
		evd_drain(&wire->a.done);
		evd_drain(&wire->a.recv);
		evd_drain(&wire->a.conn);
		evd_drain(&wire->b.done);
		evd_drain(&wire->b.conn);
	}
	for (i = 0; i < HOST_MEMORY; i++)
		if (wire->b.mem[i] != 0x5a && (i < READS || i >= READS + 4 * READ))
			break;
	EXPECT_EQ(HOST_MEMORY, i);
}

/* Returns the length of what begins, now and then, as an XRC endpoint's does. */
static __u32 private_anything(__u8 *data, __u32 max)
{
	struct cm_header header = {
		.magic = htole32(dice() % 4 ? MAGIC : dice()),
		.version = htole32(dice() % 4 ? 1 : dice()),
	};
	__u32 i;

	for (i = 0; i < max; i++)
		data[i] = dice();
	if (dice() % 4)
		memcpy(data, &header, sizeof(header));
	return dice() % (max + 1);
}

/* What is left of it on its way is filled up with zeroes. */
static bool begins_as_xrc(const __u8 *data, __u32 length)
{
	struct cm_header header = {};

	memcpy(&header, data, length < sizeof(header) ? length : sizeof(header));
	return header.magic == htole32(MAGIC) && header.version == htole32(1);
}

/* The request is what it says that it is, and can be rejected, accepted as that, and dropped. */
TEST_F(xrc_wire, garbage_in_connection_requests)
{
	unsigned int n = count(40, 4000), i;
	struct wire *wire = &self->wire;
	struct listener listener;

	OK(listener_open(&wire->b, &listener));
	for (i = 0; i < n; i++) {
		struct dapx_xrc_qp_accept accept = { .xrcd = wire->b.xrcd };
		struct dapx_xrc_qp_unregister leave = { .xrcd = wire->b.xrcd };
		struct dapx_cm_reject reject = {};
		struct dapx_free drop = { .flags = DAPX_FREE_NOWAIT };
		struct dapx_cm_query query = {};
		struct dapx_ep_connect cmd;
		struct dapx_event event;
		bool xrc, answered = false;
		struct ep ep;

		OK(ep_create(&wire->a, &ep));
		connect_usual(&ep, &listener, &cmd);
		cmd.private_data_len = private_anything(cmd.private_data,
							wire->a.limits.out_max_connect_data);
		xrc = begins_as_xrc(cmd.private_data, cmd.private_data_len);
		ASSERT_EQ(0, _test_cmd_ep_connect(wire->a.fd, &cmd));
		OK(listener_request(&listener, &event));
		query.cm = event.request.cm;
		ASSERT_EQ(0, _test_cmd_cm_query(wire->b.fd, &query));
		ASSERT_EQ(xrc, query.out_xrc);
		if (xrc && cmd.private_data_len > sizeof(struct cm_header))
			ASSERT_EQ(0, memcmp(query.out_private_data,
					    cmd.private_data + sizeof(struct cm_header),
					    cmd.private_data_len - sizeof(struct cm_header)));
		switch (dice() % 3) {
		case 0:
			reject.cm = query.cm;
			reject.private_data_len =
				private_anything(reject.private_data,
						 wire->b.limits.out_max_reject_data);
			ASSERT_EQ(0, _test_cmd_cm_reject(wire->b.fd, &reject));
			answered = true;
			break;
		case 1:
			OK(xrc_qp_make(&wire->b, &accept.qp_num));
			accept.cm = query.cm;
			leave.qp_num = accept.qp_num;
			if (xrc) {
				ASSERT_EQ(0, _test_cmd_xrc_qp_accept(wire->b.fd, &accept));
				OK(expect_connection(&wire->a.conn, ep.handle,
						     DAPX_CONNECTION_ESTABLISHED, NULL));
			} else {
				ASSERT_EQ(-1, _test_cmd_xrc_qp_accept(wire->b.fd, &accept));
				ASSERT_EQ(EPROTO, errno);
			}
			ASSERT_EQ(0, _test_cmd_xrc_qp_unregister(wire->b.fd, &leave));
			answered = xrc;
			break;
		default:
			break;
		}
		if (!answered) {
			drop.handle = query.cm;
			ASSERT_EQ(0, _test_cmd_free(wire->b.fd, &drop));
		}
		OK(ep_destroy(&ep));
		evd_drain(&wire->a.conn);
		evd_drain(&wire->b.conn);
	}
	OK(listener_close(&listener));
}

/* A peer of librdmacm, which takes requests. */
struct acceptor {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;
	struct listener at;		/* for ep_connect() */
};

static int acceptor_open(struct host *host, struct acceptor *acceptor)
{
	struct __kernel_sockaddr_storage addr;

	acceptor->channel = rdma_create_event_channel();
	set_addr(&addr, host->addr, 0);
	if (!acceptor->channel ||
	    rdma_create_id(acceptor->channel, &acceptor->listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(acceptor->listener, (struct sockaddr *)&addr) ||
	    rdma_listen(acceptor->listener, 8))
		return because("no listener: %m");
	acceptor->at = (struct listener) {
		.host = host, .port = ntohs(rdma_get_src_port(acceptor->listener)),
	};
	return 0;
}

static void acceptor_close(struct acceptor *acceptor)
{
	rdma_destroy_id(acceptor->listener);
	rdma_destroy_event_channel(acceptor->channel);
}

/* The id of the next event, which must be this one. */
static int acceptor_event(struct acceptor *acceptor, enum rdma_cm_event_type wanted,
			  struct rdma_cm_id **id)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;

	if (rdma_get_cm_event(acceptor->channel, &event))
		return because("rdma_get_cm_event: %m");
	type = event->event;
	*id = event->id;
	rdma_ack_cm_event(event);
	return type == wanted ? 0 : because("%s instead of %s", rdma_event_str(type),
					    rdma_event_str(wanted));
}

/* Who does not answer as an XRC endpoint does is none, and the sender is told so. */
TEST_F(xrc_wire, garbage_in_connection_answers)
{
	unsigned int n = count(40, 4000), i;
	struct wire *wire = &self->wire;
	struct acceptor acceptor;

	OK(acceptor_open(&wire->a, &acceptor));
	for (i = 0; i < n; i++) {
		struct ibv_qp_init_attr init = {
			.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1,
				 .max_recv_sge = 1 },
			.qp_type = IBV_QPT_RC,
		};
		struct rdma_conn_param param = { .rnr_retry_count = 7 };
		__u8 data[DAPX_PRIVATE_DATA_MAX];
		struct rdma_cm_id *id, *again;
		struct ep sender;

		OK(xrc_ep_create(&wire->b, &sender));
		OK(ep_connect(&sender, &acceptor.at));
		OK(acceptor_event(&acceptor, RDMA_CM_EVENT_CONNECT_REQUEST, &id));
		if (dice() % 4) {
			ASSERT_EQ(0, rdma_create_qp(id, NULL, &init));
			param.private_data = data;
			param.private_data_len = private_anything(data, sizeof(data));
			ASSERT_EQ(0, rdma_accept(id, &param));
			if (begins_as_xrc(data, param.private_data_len)) {
				OK(expect_connection(&wire->b.conn, sender.handle,
						     DAPX_CONNECTION_ESTABLISHED, NULL));
				OK(acceptor_event(&acceptor, RDMA_CM_EVENT_ESTABLISHED,
						  &again));
			} else {
				OK(expect_connection(&wire->b.conn, sender.handle,
						     DAPX_CONNECTION_NON_PEER_REJECTED, NULL));
				OK(acceptor_event(&acceptor, RDMA_CM_EVENT_REJECTED, &again));
			}
			ASSERT_EQ(id, again);
			rdma_destroy_qp(id);
		} else {
			ASSERT_EQ(0, rdma_reject(id, data,
						 private_anything(data, 148)));
			OK(expect_connection(&wire->b.conn, sender.handle,
					     DAPX_CONNECTION_PEER_REJECTED, NULL));
		}
		rdma_destroy_id(id);
		OK(ep_destroy(&sender));
		evd_drain(&wire->b.conn);
	}
	acceptor_close(&acceptor);
}

TEST_HARNESS_MAIN
