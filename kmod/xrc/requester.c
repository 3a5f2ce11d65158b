// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: the sending half of the XRC engine
 */
#include <linux/kernel.h>
#include <linux/string.h>

#include "xrc/engine.h"

/*
 * The second hello makes some devices deliver the first, see xrc/engine.h. Times are in
 * microseconds.
 */
#define DAPX_XRC_HELLOS 2
#define DAPX_XRC_HELLO_AGAIN (50 * 1000)
#define DAPX_XRC_HELLO_LIMIT (10 * 1000 * 1000)

/* Far more than any responder grants. */
#define DAPX_XRC_MAX_CREDITS 65536
/*
 * An answer may end all requests that were sent, and must not take long. The credits of a
 * responder of this module do not suffice for so many.
 */
#define DAPX_XRC_MAX_UNANSWERED 1024
/* Messages that are ended at a time when the requester has failed. */
#define DAPX_XRC_FLUSH_BATCH 64

/* The InfiniBand specification's table of receiver-not-ready timers, in microseconds. */
static const u32 dapx_xrc_rnr_usecs[32] = {
	655360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1280, 1920,
	2560, 3840, 5120, 7680, 10240, 15360, 20480, 30720, 40960, 61440, 81920, 122880,
	163840, 245760, 327680, 491520,
};

void dapx_xrc_requester_init(struct dapx_xrc_requester *req,
			     const struct dapx_xrc_requester_ops *ops, u32 room, u8 retry_limit)
{
	*req = (struct dapx_xrc_requester) {
		.ops = ops,
		/* Enough for the hellos; the welcome raises it. */
		.limit = DAPX_XRC_HELLOS,
		.room = room,
		.retry_limit = retry_limit,
	};
	INIT_LIST_HEAD(&req->messages);
}

static struct dapx_xrc_message *dapx_xrc_first(struct dapx_xrc_requester *req)
{
	return list_first_entry_or_null(&req->messages, struct dapx_xrc_message, entry);
}

static u32 dapx_xrc_requests(const struct dapx_xrc_requester *req,
			     const struct dapx_xrc_message *msg)
{
	if (dapx_xrc_is_atomic(msg->opcode) || !msg->total)
		return 1;
	/* Not DIV_ROUND_UP(): a message may have up to 2^32 - 1 bytes. */
	return (msg->total - 1) / req->payload + 1;
}

/* Returns the length of the message's part that the request at @offset is about. */
static u32 dapx_xrc_part(const struct dapx_xrc_requester *req, const struct dapx_xrc_message *msg,
			 u32 offset)
{
	return min(msg->total - offset, req->payload);
}

static void dapx_xrc_end(struct dapx_xrc_requester *req, struct dapx_xrc_message *msg,
			 enum dapx_status status)
{
	list_del_init(&msg->entry);
	req->num_messages--;
	/* Afterwards, the memory may be reused for another message. */
	req->ops->done(req, msg, status);
}

/* The requester has failed: ends a batch of messages, and the rest later. */
static void dapx_xrc_flush(struct dapx_xrc_requester *req)
{
	struct dapx_xrc_message *msg;
	u32 left = DAPX_XRC_FLUSH_BATCH;

	for (; left && (msg = dapx_xrc_first(req)); left--)
		dapx_xrc_end(req, msg, msg->outcome);
	if (!list_empty(&req->messages))
		req->ops->wait(req, 0);
}

/*
 * Ends all messages. @msg, or the first one if it is NULL, gets @status; the others are
 * flushed. Requests that the peer carried out but did not answer are flushed as well, since the
 * requester cannot know about them.
 */
static void dapx_xrc_fail(struct dapx_xrc_requester *req, struct dapx_xrc_message *msg,
			  enum dapx_status status)
{
	if (!msg)
		msg = dapx_xrc_first(req);
	if (msg && !req->failed)
		msg->outcome = status;
	req->failed = true;
	req->next = NULL;
	req->queued = 0;
	dapx_xrc_flush(req);
}

/*
 * The connection has failed: the first message ends with @status, all others are flushed. May
 * be called again, for the next batch.
 */
void dapx_xrc_requester_fail(struct dapx_xrc_requester *req, enum dapx_status status)
{
	dapx_xrc_fail(req, NULL, status);
}

/* Returns whether the next message has to wait for data of earlier ones. */
static bool dapx_xrc_is_fenced(const struct dapx_xrc_requester *req)
{
	return req->next->fence && req->next_seq == req->next->first && req->data_pending;
}

/* Returns whether nothing more can be sent before the peer answers. */
static bool dapx_xrc_needs_answer(const struct dapx_xrc_requester *req)
{
	return !req->next || req->sent == req->limit ||
	       req->next_seq - req->acked >= DAPX_XRC_MAX_UNANSWERED ||
	       (req->payload ? dapx_xrc_is_fenced(req) : req->greeted);
}

static bool dapx_xrc_can_send(struct dapx_xrc_requester *req)
{
	if (req->failed || req->waiting || dapx_xrc_needs_answer(req))
		return false;
	if (!req->room && req->ops->make_room)
		req->ops->make_room(req);
	return req->room;
}

static void dapx_xrc_send(struct dapx_xrc_requester *req, void *buffer, u32 length)
{
	req->sent++;
	req->room--;
	req->ops->send(req, buffer, length);
}

static void dapx_xrc_send_hello(struct dapx_xrc_requester *req)
{
	struct dapx_xrc_hello *hello = req->ops->buffer(req);

	*hello = (struct dapx_xrc_hello) {
		.type = DAPX_XRC_HELLO,
		.version = DAPX_XRC_VERSION,
		.segment_size = cpu_to_le16(DAPX_XRC_SEGMENT_SIZE),
		.magic = cpu_to_le32(DAPX_XRC_MAGIC),
	};
	req->greeted = true;
	req->hellos++;
	dapx_xrc_send(req, hello, sizeof(*hello));
	req->ops->wait(req, req->hellos < DAPX_XRC_HELLOS ? DAPX_XRC_HELLO_AGAIN :
			    DAPX_XRC_HELLO_LIMIT);
}

/* Returns how many bytes of data the next request contains. */
static u32 dapx_xrc_next_length(const struct dapx_xrc_requester *req)
{
	const struct dapx_xrc_message *msg = req->next;

	if (dapx_xrc_returns_data(msg->opcode))
		return 0;
	return dapx_xrc_part(req, msg, (req->next_seq - msg->first) * req->payload);
}

/* Writes the next request to @out. False: access to its data is denied. */
static bool dapx_xrc_add_request(struct dapx_xrc_requester *req, struct dapx_xrc_request *out,
				 u32 length)
{
	struct dapx_xrc_message *msg = req->next;
	u32 index = req->next_seq - msg->first;

	*out = (struct dapx_xrc_request) {
		.type = DAPX_XRC_REQUEST,
		.opcode = msg->opcode,
		.flags = cpu_to_le16(msg->solicited ? DAPX_XRC_SOLICITED : 0),
		.seq = cpu_to_le32(req->next_seq),
		.srqn = cpu_to_le32(msg->srqn),
		.total = cpu_to_le32(msg->total),
		.length = cpu_to_le32(length),
		.rkey = cpu_to_le32(msg->rkey),
		.imm = cpu_to_le32(msg->imm),
		.addr = cpu_to_le64(msg->addr),
		.compare_add = cpu_to_le64(msg->compare_add),
		.swap = cpu_to_le64(msg->swap),
	};
	if (length && !req->ops->gather(req, msg, index * req->payload, out + 1, length))
		return false;
	req->next_seq++;
	if (index + 1 == dapx_xrc_requests(req, msg)) {
		req->queued--;
		if (dapx_xrc_returns_data(msg->opcode))
			req->data_pending++;
		req->next = list_is_last(&msg->entry, &req->messages) ?
			    NULL : list_next_entry(msg, entry);
		if (req->next)
			req->next->first = req->next_seq;
	}
	return true;
}

/* Returns whether the next request can be added to a segment that has @used bytes of requests. */
static bool dapx_xrc_shares_segment(const struct dapx_xrc_requester *req, u32 used)
{
	u32 size = sizeof(struct dapx_xrc_request);

	return req->next && !dapx_xrc_returns_data(req->next->opcode) &&
	       used + size + dapx_xrc_next_length(req) <= req->payload + size &&
	       !dapx_xrc_is_fenced(req);
}

static void dapx_xrc_send_segment(struct dapx_xrc_requester *req)
{
	bool alone = dapx_xrc_returns_data(req->next->opcode);
	struct dapx_xrc_request *first = req->ops->buffer(req);
	void *buffer = first;
	u32 used = 0, end = 0, length;

	do {
		/* The padding must not disclose old contents of the buffer to the peer. */
		memset(buffer + end, 0, used - end);
		length = dapx_xrc_next_length(req);
		if (!dapx_xrc_add_request(req, buffer + used, length)) {
			req->ops->discard(req, buffer);
			dapx_xrc_fail(req, req->next, DAPX_STATUS_LOCAL_PROTECTION);
			return;
		}
		end = used + sizeof(*first) + length;
		used = ALIGN(end, DAPX_XRC_ALIGN);
	} while (!alone && dapx_xrc_shares_segment(req, used));

	first->demand = cpu_to_le32(req->next_seq - req->acked + req->queued);
	/* Whether to ask depends on what is left when this segment has been sent. */
	req->sent++;
	if (dapx_xrc_needs_answer(req))
		first->flags |= cpu_to_le16(DAPX_XRC_ASK);
	req->sent--;
	dapx_xrc_send(req, buffer, end);
}

/* Sends what can be sent. Called after messages were submitted and after @room was incremented. */
void dapx_xrc_transmit(struct dapx_xrc_requester *req)
{
	while (dapx_xrc_can_send(req)) {
		if (req->payload)
			dapx_xrc_send_segment(req);
		else
			dapx_xrc_send_hello(req);
	}
}

/* Queues a message, which dapx_xrc_transmit() sends. */
void dapx_xrc_submit(struct dapx_xrc_requester *req, struct dapx_xrc_message *msg)
{
	if (req->failed && list_empty(&req->messages)) {
		req->ops->done(req, msg, DAPX_STATUS_FLUSHED);
		return;
	}
	msg->outcome = DAPX_STATUS_FLUSHED;
	list_add_tail(&msg->entry, &req->messages);
	req->num_messages++;
	/* done() has submitted it while dapx_xrc_fail() flushes: it is flushed after the others. */
	if (req->failed)
		return;
	req->queued++;
	if (!req->next) {
		msg->first = req->next_seq;
		req->next = msg;
	}
}

/* The time that was given to wait() has passed. */
void dapx_xrc_waited(struct dapx_xrc_requester *req)
{
	if (req->failed) {
		dapx_xrc_flush(req);
		return;
	}
	if (!req->payload) {
		if (req->hellos == DAPX_XRC_HELLOS) {
			dapx_xrc_fail(req, NULL, DAPX_STATUS_TRANSPORT);
			return;
		}
		req->greeted = false;
	}
	req->waiting = false;
	dapx_xrc_transmit(req);
}

/* ------------------------------------------------------------------- answers */

static bool dapx_xrc_take_limit(struct dapx_xrc_requester *req, u32 limit)
{
	/* It must not decrease, nor be absurdly large. */
	if (limit - req->limit > DAPX_XRC_MAX_CREDITS ||
	    limit - req->sent > DAPX_XRC_MAX_CREDITS)
		return false;
	req->limit = limit;
	return true;
}

static bool dapx_xrc_welcomed(struct dapx_xrc_requester *req, const void *data, u32 length)
{
	const struct dapx_xrc_hello *in = data;
	u32 size;

	if (length != sizeof(*in) || in->version != DAPX_XRC_VERSION || !req->hellos ||
	    le32_to_cpu(in->magic) != DAPX_XRC_MAGIC)
		return false;
	size = le16_to_cpu(in->segment_size);
	if (size < 2 * sizeof(struct dapx_xrc_request))
		return false;
	if (!dapx_xrc_take_limit(req, le32_to_cpu(in->limit)))
		return false;
	/* A second welcome only brings credits. */
	if (!req->payload)
		req->payload = min_t(u32, size, DAPX_XRC_SEGMENT_SIZE) -
			       sizeof(struct dapx_xrc_request);
	return true;
}

/* Ends all requests before @expected. @data, or NULL, are the data of the last of them. */
static enum dapx_status dapx_xrc_acknowledge(struct dapx_xrc_requester *req, u32 expected,
					     const void *data, u32 length)
{
	while (req->acked != expected) {
		struct dapx_xrc_message *msg = dapx_xrc_first(req);
		u32 end = msg->first + dapx_xrc_requests(req, msg);

		if (dapx_xrc_returns_data(msg->opcode)) {
			u32 offset = (req->acked - msg->first) * req->payload;

			if (!data || req->acked + 1 != expected ||
			    length != dapx_xrc_part(req, msg, offset))
				return DAPX_STATUS_BAD_RESPONSE;
			if (length && !req->ops->scatter(req, msg, offset, data, length))
				return DAPX_STATUS_LOCAL_PROTECTION;
			data = NULL;
			req->acked++;
		} else {
			req->acked = expected - msg->first < end - msg->first ? expected : end;
		}
		if (req->acked != end)
			continue;
		if (dapx_xrc_returns_data(msg->opcode))
			req->data_pending--;
		dapx_xrc_end(req, msg, DAPX_STATUS_SUCCESS);
	}
	return data ? DAPX_STATUS_BAD_RESPONSE : DAPX_STATUS_SUCCESS;
}

/* The peer had no receive for the first message that is not done: resume there after a while. */
static void dapx_xrc_go_back(struct dapx_xrc_requester *req, u8 rnr_timer, bool progress)
{
	if (progress)
		req->tries = 0;
	if (req->retry_limit < 7 && req->tries++ == req->retry_limit) {
		dapx_xrc_fail(req, NULL, DAPX_STATUS_RECEIVER_NOT_READY);
		return;
	}
	req->next_seq = req->acked;
	req->next = dapx_xrc_first(req);
	req->queued = req->num_messages;
	req->data_pending = 0;
	req->waiting = true;
	req->ops->wait(req, dapx_xrc_rnr_usecs[rnr_timer]);
}

static enum dapx_status dapx_xrc_take_answer(struct dapx_xrc_requester *req, const void *data,
					     u32 length)
{
	const struct dapx_xrc_answer *in = data;
	u32 acked = req->acked, expected;
	enum dapx_status status;
	bool has_data;

	if (length < sizeof(*in) || !req->payload || in->rnr_timer > 31)
		return DAPX_STATUS_BAD_RESPONSE;
	has_data = in->flags & DAPX_XRC_DATA;
	length -= sizeof(*in);
	expected = le32_to_cpu(in->expected);
	if (expected - req->acked > req->next_seq - req->acked || (length && !has_data) ||
	    !dapx_xrc_take_limit(req, le32_to_cpu(in->limit)))
		return DAPX_STATUS_BAD_RESPONSE;
	status = dapx_xrc_acknowledge(req, expected, has_data ? in + 1 : NULL, length);
	if (status != DAPX_STATUS_SUCCESS)
		return status;
	/* Only a request that was sent and is not done can have an error. */
	if (in->status != DAPX_STATUS_SUCCESS && req->acked == req->next_seq)
		return DAPX_STATUS_BAD_RESPONSE;

	switch (in->status) {
	case DAPX_STATUS_SUCCESS:
		if (req->acked != acked)
			req->tries = 0;
		return DAPX_STATUS_SUCCESS;
	case DAPX_STATUS_RECEIVER_NOT_READY:
		dapx_xrc_go_back(req, in->rnr_timer, req->acked != acked);
		return DAPX_STATUS_SUCCESS;
	case DAPX_STATUS_REMOTE_ACCESS:
	case DAPX_STATUS_REMOTE_INVALID:
	case DAPX_STATUS_REMOTE_OPERATION:
	case DAPX_STATUS_REMOTE_QUEUE:
		return in->status;
	default:
		return DAPX_STATUS_BAD_RESPONSE;
	}
}

/* Handles an answer of the peer, which is not trusted. */
void dapx_xrc_answered(struct dapx_xrc_requester *req, const void *data, u32 length)
{
	enum dapx_status status = DAPX_STATUS_BAD_RESPONSE;
	const u8 *type = data;

	if (req->failed)
		return;
	if (length && *type == DAPX_XRC_WELCOME) {
		if (dapx_xrc_welcomed(req, data, length))
			status = DAPX_STATUS_SUCCESS;
	} else if (length && *type == DAPX_XRC_ANSWER) {
		status = dapx_xrc_take_answer(req, data, length);
	}
	if (status != DAPX_STATUS_SUCCESS)
		dapx_xrc_fail(req, NULL, status);
	else
		dapx_xrc_transmit(req);
}
