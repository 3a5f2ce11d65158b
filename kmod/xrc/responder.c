// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: the receiving half of the XRC engine
 *
 * Nothing that arrives is trusted. It is checked once, in memory that the peer cannot change
 * any more, and has to be a valid next step of this connection.
 */
#include <linux/kernel.h>
#include <linux/string.h>

#include "xrc/engine.h"

void dapx_xrc_responder_init(struct dapx_xrc_responder *resp,
			     const struct dapx_xrc_responder_ops *ops)
{
	*resp = (struct dapx_xrc_responder) { .ops = ops };
}

/* Ends the current message with @status, and completes the receive that it has taken, if any. */
static void dapx_xrc_finish(struct dapx_xrc_responder *resp, enum dapx_status status)
{
	struct dapx_xrc_arrival arrival = {
		.status = status,
		.opcode = resp->opcode,
		.length = resp->total,
		.imm = resp->imm,
		.solicited = resp->solicited,
	};

	if (resp->receive)
		resp->ops->complete(resp, resp->queue, resp->receive, &arrival);
	resp->receive = NULL;
	resp->open = false;
}

/* Accepts no more messages. A receive of an incomplete message is flushed. */
void dapx_xrc_responder_end(struct dapx_xrc_responder *resp)
{
	dapx_xrc_finish(resp, DAPX_STATUS_FLUSHED);
	resp->failed = true;
}

/* @queue is being destroyed, with all its receives. */
void dapx_xrc_queue_gone(struct dapx_xrc_responder *resp, void *queue)
{
	if (resp->queue != queue)
		return;
	resp->queue = NULL;
	resp->receive = NULL;
}

static bool dapx_xrc_known(u8 opcode)
{
	return opcode <= DAPX_OP_FETCH_ADD;
}

static bool dapx_xrc_takes_receive(u8 opcode)
{
	return opcode == DAPX_OP_SEND || opcode == DAPX_OP_SEND_IMM;
}

/* Begins a message with its first request. */
static enum dapx_status dapx_xrc_open(struct dapx_xrc_responder *resp,
				      const struct dapx_xrc_request *in)
{
	enum dapx_status status;
	u64 size;

	resp->opcode = in->opcode;
	resp->solicited = le16_to_cpu(in->flags) & DAPX_XRC_SOLICITED;
	resp->srqn = le32_to_cpu(in->srqn);
	resp->total = le32_to_cpu(in->total);
	resp->rkey = le32_to_cpu(in->rkey);
	resp->imm = le32_to_cpu(in->imm);
	resp->addr = le64_to_cpu(in->addr);
	resp->done = 0;
	if (!dapx_xrc_known(resp->opcode))
		return DAPX_STATUS_REMOTE_INVALID;
	if (dapx_xrc_is_atomic(resp->opcode) &&
	    (resp->total != sizeof(u64) || resp->addr % sizeof(u64)))
		return DAPX_STATUS_REMOTE_INVALID;
	resp->queue = resp->ops->find(resp, resp->srqn);
	if (!resp->queue)
		return DAPX_STATUS_REMOTE_QUEUE;
	if (dapx_xrc_takes_receive(resp->opcode)) {
		status = resp->ops->take(resp, resp->queue, &resp->receive, &size);
		if (status != DAPX_STATUS_SUCCESS) {
			resp->receive = NULL;
			return status;
		}
		if (resp->total > size) {
			dapx_xrc_finish(resp, DAPX_STATUS_LOCAL_LENGTH);
			return DAPX_STATUS_REMOTE_INVALID;
		}
	}
	resp->open = true;
	return DAPX_STATUS_SUCCESS;
}

static bool dapx_xrc_continues(const struct dapx_xrc_responder *resp,
			       const struct dapx_xrc_request *in)
{
	return resp->opcode == in->opcode && resp->srqn == le32_to_cpu(in->srqn) &&
	       resp->total == le32_to_cpu(in->total) && resp->rkey == le32_to_cpu(in->rkey) &&
	       resp->addr == le64_to_cpu(in->addr);
}

static u8 dapx_xrc_right_for(u8 opcode)
{
	switch (opcode) {
	case DAPX_OP_SEND:
	case DAPX_OP_SEND_IMM:
		return 0;
	case DAPX_OP_RDMA_WRITE:
	case DAPX_OP_RDMA_WRITE_IMM:
		return DAPX_ACCESS_REMOTE_WRITE;
	case DAPX_OP_RDMA_READ:
		return DAPX_ACCESS_REMOTE_READ;
	default:
		return DAPX_ACCESS_REMOTE_ATOMIC;
	}
}

/*
 * Carries out a request: copies its part of the message from @from to the destination, or
 * fetches the data that it asks for into @buffer.
 */
static enum dapx_status dapx_xrc_carry_out(struct dapx_xrc_responder *resp,
					   const struct dapx_xrc_request *in, const void *from,
					   u32 part, void *buffer, struct dapx_xrc_reply *reply)
{
	const struct dapx_xrc_responder_ops *ops = resp->ops;
	void *out = buffer + sizeof(struct dapx_xrc_answer);
	__le64 little_endian;
	u64 old;

	if (!resp->queue)
		return DAPX_STATUS_REMOTE_QUEUE;
	if (resp->refused & dapx_xrc_right_for(resp->opcode))
		return DAPX_STATUS_REMOTE_INVALID;
	switch (resp->opcode) {
	case DAPX_OP_SEND:
	case DAPX_OP_SEND_IMM:
		if (part && !ops->place(resp, resp->queue, resp->receive, resp->done, from, part)) {
			dapx_xrc_finish(resp, DAPX_STATUS_LOCAL_PROTECTION);
			return DAPX_STATUS_REMOTE_OPERATION;
		}
		break;
	case DAPX_OP_RDMA_WRITE:
	case DAPX_OP_RDMA_WRITE_IMM:
		if (part && !ops->write(resp, resp->queue, resp->rkey, resp->addr, resp->total,
					resp->done, from, part))
			return DAPX_STATUS_REMOTE_ACCESS;
		break;
	case DAPX_OP_RDMA_READ:
		if (part && !ops->read(resp, resp->queue, resp->rkey, resp->addr, resp->total,
				       resp->done, out, part))
			return DAPX_STATUS_REMOTE_ACCESS;
		reply->has_data = true;
		reply->length = part;
		break;
	default:
		if (!ops->atomic(resp, resp->queue, resp->rkey, resp->addr, resp->opcode,
				 le64_to_cpu(in->compare_add), le64_to_cpu(in->swap), &old))
			return DAPX_STATUS_REMOTE_ACCESS;
		little_endian = cpu_to_le64(old);
		memcpy(out, &little_endian, sizeof(little_endian));
		reply->has_data = true;
		reply->length = sizeof(little_endian);
		break;
	}
	return DAPX_STATUS_SUCCESS;
}

/* The last request of a write with immediate data takes a receive. */
static enum dapx_status dapx_xrc_take_last(struct dapx_xrc_responder *resp)
{
	enum dapx_status status;
	u64 size;

	if (resp->opcode != DAPX_OP_RDMA_WRITE_IMM)
		return DAPX_STATUS_SUCCESS;
	status = resp->ops->take(resp, resp->queue, &resp->receive, &size);
	if (status != DAPX_STATUS_SUCCESS)
		resp->receive = NULL;
	return status;
}

/* Handles the next request, whose data are at @from. @alone: it has a segment of its own. */
static enum dapx_status dapx_xrc_request(struct dapx_xrc_responder *resp,
					 const struct dapx_xrc_request *in, const void *from,
					 bool alone, void *buffer, struct dapx_xrc_reply *reply)
{
	bool returns_data = dapx_xrc_returns_data(in->opcode);
	enum dapx_status status;
	u32 part;

	/* The answer's data overwrite the segment. */
	if (returns_data && !alone)
		return DAPX_STATUS_REMOTE_INVALID;
	if (!resp->open) {
		status = dapx_xrc_open(resp, in);
		if (status != DAPX_STATUS_SUCCESS)
			return status;
	} else if (!dapx_xrc_continues(resp, in)) {
		return DAPX_STATUS_REMOTE_INVALID;
	}

	part = min(resp->total - resp->done, DAPX_XRC_PAYLOAD);
	if (le32_to_cpu(in->length) != (returns_data ? 0 : part))
		return DAPX_STATUS_REMOTE_INVALID;
	status = dapx_xrc_carry_out(resp, in, from, part, buffer, reply);
	if (status != DAPX_STATUS_SUCCESS)
		return status;
	if (resp->done + part == resp->total) {
		status = dapx_xrc_take_last(resp);
		if (status != DAPX_STATUS_SUCCESS)
			return status;
		dapx_xrc_finish(resp, DAPX_STATUS_SUCCESS);
		resp->messages++;
	}
	resp->done += part;
	resp->expected++;
	return DAPX_STATUS_SUCCESS;
}

/* Handles the requests of a segment, up to the first that fails. */
static enum dapx_status dapx_xrc_requests(struct dapx_xrc_responder *resp, void *buffer,
					  u32 length, struct dapx_xrc_reply *reply)
{
	enum dapx_status status;
	struct dapx_xrc_request in;
	u32 at = 0, end, part;

	do {
		if (at > length || length - at < sizeof(in))
			return DAPX_STATUS_REMOTE_INVALID;
		memcpy(&in, buffer + at, sizeof(in));
		end = at + sizeof(in);
		part = le32_to_cpu(in.length);
		if (in.type != DAPX_XRC_REQUEST || part > length - end ||
		    le32_to_cpu(in.seq) != resp->expected)
			return DAPX_STATUS_REMOTE_INVALID;
		status = dapx_xrc_request(resp, &in, buffer + end, !at && end == length, buffer,
					  reply);
		if (status != DAPX_STATUS_SUCCESS)
			return status;
		end += part;
		at = ALIGN(end, DAPX_XRC_ALIGN);
	} while (end < length);
	return DAPX_STATUS_SUCCESS;
}

static bool dapx_xrc_take_hello(struct dapx_xrc_responder *resp, const void *buffer, u32 length)
{
	const struct dapx_xrc_hello *in = buffer;

	/*
	 * The second hello may arrive after the first one's welcome, but before any request.
	 * Requests have a demand.
	 */
	if (resp->demand)
		return false;
	return length == sizeof(*in) && le32_to_cpu(in->magic) == DAPX_XRC_MAGIC &&
	       in->version == DAPX_XRC_VERSION &&
	       le16_to_cpu(in->segment_size) >= DAPX_XRC_SEGMENT_SIZE;
}

/*
 * Handles a segment, which is not trusted. @buffer has DAPX_XRC_SEGMENT_SIZE bytes, of which
 * @length arrived; the reply may be built in it.
 */
void dapx_xrc_respond(struct dapx_xrc_responder *resp, void *buffer, u32 length,
		      struct dapx_xrc_reply *reply)
{
	const u8 *type = buffer;
	struct dapx_xrc_request in;

	*reply = (struct dapx_xrc_reply) {};
	if (resp->failed)
		return;
	if (length && *type == DAPX_XRC_HELLO && dapx_xrc_take_hello(resp, buffer, length)) {
		resp->greeted = true;
		reply->type = DAPX_XRC_WELCOME;
		reply->now = true;
		return;
	}
	reply->type = DAPX_XRC_ANSWER;
	if (!resp->greeted || length < sizeof(in) || length > DAPX_XRC_SEGMENT_SIZE ||
	    *type != DAPX_XRC_REQUEST) {
		reply->status = DAPX_STATUS_REMOTE_INVALID;
		goto failed;
	}
	memcpy(&in, buffer, sizeof(in));
	resp->demand = le32_to_cpu(in.demand);
	reply->now = le16_to_cpu(in.flags) & DAPX_XRC_ASK;
	if (resp->dropping && le32_to_cpu(in.seq) != resp->expected) {
		/*
		 * This segment was in flight when the responder answered "not ready". If it
		 * asks for an answer, the requester may be out of credits: the answer returns
		 * those of the dropped segments.
		 */
		if (!reply->now)
			reply->type = 0;
		return;
	}
	resp->dropping = false;
	reply->status = dapx_xrc_requests(resp, buffer, length, reply);
	if (reply->status == DAPX_STATUS_SUCCESS) {
		reply->now |= reply->has_data;
		return;
	}
	reply->now = true;
	reply->has_data = false;
	reply->length = 0;
	if (reply->status == DAPX_STATUS_RECEIVER_NOT_READY) {
		resp->dropping = true;
		return;
	}
failed:
	reply->now = true;
	dapx_xrc_responder_end(resp);
}

/* Writes a reply's header before its data; returns the length of both. */
u32 dapx_xrc_reply_build(struct dapx_xrc_responder *resp, const struct dapx_xrc_reply *reply,
			 u32 limit, void *buffer)
{
	struct dapx_xrc_hello *welcome = buffer;
	struct dapx_xrc_answer *answer = buffer;

	if (reply->type == DAPX_XRC_WELCOME) {
		*welcome = (struct dapx_xrc_hello) {
			.type = DAPX_XRC_WELCOME,
			.version = DAPX_XRC_VERSION,
			.segment_size = cpu_to_le16(DAPX_XRC_SEGMENT_SIZE),
			.magic = cpu_to_le32(DAPX_XRC_MAGIC),
			.limit = cpu_to_le32(limit),
		};
		return sizeof(*welcome);
	}
	*answer = (struct dapx_xrc_answer) {
		.type = DAPX_XRC_ANSWER,
		.status = reply->status,
		.flags = reply->has_data ? DAPX_XRC_DATA : 0,
		.rnr_timer = resp->rnr_timer,
		.expected = cpu_to_le32(resp->expected),
		.limit = cpu_to_le32(limit),
	};
	return sizeof(*answer) + reply->length;
}
