/* SPDX-License-Identifier: GPL-2.0 */
/*
 * dapx: XRC's protocol, and the engine that speaks it
 *
 * The engine knows messages, queues and keys, but no device, no connection and no
 * memory: what it needs of them are the operations below. It takes no locks and waits
 * for nothing; all calls for one requester, or one responder, come one at a time. It is
 * also compiled for user space, where it is tested without a kernel.
 *
 * On the wire
 * -----------
 * A requester cuts messages into requests, numbered from 0, and sends segments of one or
 * more of them over something that loses none and keeps their order; a responder answers.
 * An answer says which requests are done (all before @expected), how many segments may be
 * sent in all (@limit: credits), and what is wrong.
 *
 * A responder whose queue has no receive answers "not ready", and drops all until that
 * request comes again, which the requester sends after a while, with all behind it.
 * Any other fault ends the connection.
 *
 * A message is done for its sender when its last request is: when the data are where they
 * belong. Requests of reads and atomics have a segment each, and are answered one by one,
 * with data. Others share one if they are waiting to be sent anyway.
 *
 * First of all comes a hello. It may come twice, since some devices leave what comes
 * first lying until more comes.
 */
#ifndef _DAPX_XRC_ENGINE_H
#define _DAPX_XRC_ENGINE_H

#include <linux/list.h>
#include <linux/types.h>

#include "dapx.h"

#define DAPX_XRC_MAGIC 0x43525864	/* "dXRC" */
#define DAPX_XRC_VERSION 1
/* The size of all buffers. */
#define DAPX_XRC_SEGMENT_SIZE 8192
/* Requests of a segment begin at multiples of it; what is between them is 0. */
#define DAPX_XRC_ALIGN 8
#define DAPX_XRC_MAX_SRQN 0xffffffu

enum dapx_xrc_type {
	DAPX_XRC_HELLO = 1,
	DAPX_XRC_WELCOME = 2,
	DAPX_XRC_REQUEST = 3,
	DAPX_XRC_ANSWER = 4,
};

/* The requester's first segment, and the answer to it. */
struct dapx_xrc_hello {
	__u8 type;
	__u8 version;
	__le16 segment_size;
	__le32 magic;
	__le32 limit;			/* welcome: as in an answer */
};

enum dapx_xrc_request_flags {
	DAPX_XRC_ASK = 1 << 0,		/* of a segment's first: an answer is wanted now */
	DAPX_XRC_SOLICITED = 1 << 1,
};

struct dapx_xrc_request {
	__u8 type;
	__u8 opcode;			/* enum dapx_opcode */
	__le16 flags;
	__le32 seq;
	__le32 demand;			/* of a segment's first: requests that are not done */
	__le32 srqn;
	__le32 total;			/* bytes of the message */
	__le32 length;			/* of them, behind this header */
	__le32 rkey;
	__le32 imm;
	__le64 addr;
	__le64 compare_add;
	__le64 swap;
};

#define DAPX_XRC_PAYLOAD (DAPX_XRC_SEGMENT_SIZE - (u32)sizeof(struct dapx_xrc_request))

enum dapx_xrc_answer_flags {
	DAPX_XRC_DATA = 1 << 0,		/* what the request before @expected asked for follows */
};

struct dapx_xrc_answer {
	__u8 type;
	__u8 status;			/* enum dapx_status */
	__u8 flags;
	__u8 rnr_timer;			/* as in a queue pair's attributes */
	__le32 expected;
	__le32 limit;
	__le32 reserved;
};

static inline bool dapx_xrc_returns_data(u8 opcode)
{
	return opcode == DAPX_OP_RDMA_READ || opcode == DAPX_OP_COMPARE_SWAP ||
	       opcode == DAPX_OP_FETCH_ADD;
}

static inline bool dapx_xrc_is_atomic(u8 opcode)
{
	return opcode == DAPX_OP_COMPARE_SWAP || opcode == DAPX_OP_FETCH_ADD;
}

/* -------------------------------------------------------------- xrc_requester.c */

struct dapx_xrc_message {
	struct list_head entry;
	u8 opcode;
	bool fence;
	bool solicited;
	u32 srqn;
	u32 total;
	u32 rkey;
	u32 imm;
	u64 addr;
	u64 compare_add;
	u64 swap;
	u32 first;			/* request, once it is its turn */
};

struct dapx_xrc_requester;

struct dapx_xrc_requester_ops {
	/* memory for a segment; there is some as long as @room says so */
	void *(*buffer)(struct dapx_xrc_requester *req);
	/* takes the buffer */
	void (*send)(struct dapx_xrc_requester *req, void *buffer, u32 length);
	/* gives it back */
	void (*discard)(struct dapx_xrc_requester *req, void *buffer);
	/* from a message's memory, to it; false: it does not give the rights */
	bool (*gather)(struct dapx_xrc_requester *req, struct dapx_xrc_message *msg,
		       u32 offset, void *to, u32 length);
	bool (*scatter)(struct dapx_xrc_requester *req, struct dapx_xrc_message *msg,
			u32 offset, const void *from, u32 length);
	/* in the order in which they were submitted, each once */
	void (*done)(struct dapx_xrc_requester *req, struct dapx_xrc_message *msg,
		     enum dapx_status status);
	/* dapx_xrc_waited() after so many microseconds; takes the place of one before */
	void (*wait)(struct dapx_xrc_requester *req, u32 usecs);
	/* for one more segment, if there can be: counts @room up; may be NULL */
	void (*make_room)(struct dapx_xrc_requester *req);
};

struct dapx_xrc_requester {
	const struct dapx_xrc_requester_ops *ops;
	struct list_head messages;	/* not done, in order */
	struct dapx_xrc_message *next;	/* whose request is next; NULL: none */
	u32 next_seq;
	u32 acked;			/* all before are done */
	u32 queued;			/* messages from @next on */
	u32 sent;			/* segments, those sent again included */
	u32 limit;			/* of @sent */
	u32 payload;			/* of a request, at most; 0: not welcome yet */
	u32 room;			/* segments that can be sent now; the owner counts it up */
	u8 hellos;
	u8 tries;			/* that found the peer's queue not ready */
	u8 retry_limit;			/* of them; 7: none */
	bool greeted;
	bool waiting;
	bool failed;
};

void dapx_xrc_requester_init(struct dapx_xrc_requester *req,
			     const struct dapx_xrc_requester_ops *ops, u32 room, u8 retry_limit);
void dapx_xrc_submit(struct dapx_xrc_requester *req, struct dapx_xrc_message *msg);
void dapx_xrc_transmit(struct dapx_xrc_requester *req);
void dapx_xrc_answered(struct dapx_xrc_requester *req, const void *data, u32 length);
void dapx_xrc_waited(struct dapx_xrc_requester *req);
void dapx_xrc_requester_fail(struct dapx_xrc_requester *req, enum dapx_status status);

/* -------------------------------------------------------------- xrc_responder.c */

struct dapx_xrc_responder;

struct dapx_xrc_arrival {
	enum dapx_status status;
	u8 opcode;
	u32 length;
	u32 imm;
	bool solicited;
};

/*
 * A queue that was found stays valid for this responder until dapx_xrc_queue_gone();
 * a receive that was taken, until it is completed or its queue is gone.
 */
struct dapx_xrc_responder_ops {
	void *(*find)(struct dapx_xrc_responder *resp, u32 srqn);
	/* the next receive, and how much fits into it; SUCCESS, RECEIVER_NOT_READY or else */
	enum dapx_status (*take)(struct dapx_xrc_responder *resp, void *queue, void **receive,
				 u64 *size);
	bool (*place)(struct dapx_xrc_responder *resp, void *queue, void *receive, u32 offset,
		      const void *from, u32 length);
	void (*complete)(struct dapx_xrc_responder *resp, void *queue, void *receive,
			 const struct dapx_xrc_arrival *arrival);
	/*
	 * Memory of the queue's owner: [addr, addr + total) is what the message names, of
	 * which the part at @offset is copied. False: the key does not give the rights.
	 */
	bool (*write)(struct dapx_xrc_responder *resp, void *queue, u32 rkey, u64 addr, u32 total,
		      u32 offset, const void *from, u32 length);
	bool (*read)(struct dapx_xrc_responder *resp, void *queue, u32 rkey, u64 addr, u32 total,
		     u32 offset, void *to, u32 length);
	/* @old: as a number; it is made little-endian by the engine */
	bool (*atomic)(struct dapx_xrc_responder *resp, void *queue, u32 rkey, u64 addr,
		       u8 opcode, u64 compare_add, u64 swap, u64 *old);
};

struct dapx_xrc_responder {
	const struct dapx_xrc_responder_ops *ops;
	u32 expected;
	u32 demand;			/* as the requester last said */
	u64 messages;			/* that are done */
	u8 rnr_timer;
	bool greeted;
	bool dropping;			/* until @expected comes again */
	bool failed;

	/* the message whose requests are arriving */
	bool open;
	u8 opcode;
	bool solicited;
	u32 srqn;
	u32 total;
	u32 done;			/* bytes */
	u32 rkey;
	u32 imm;
	u64 addr;
	void *queue;			/* NULL: gone */
	void *receive;			/* NULL: none */
};

/* What a segment is answered with. */
struct dapx_xrc_reply {
	u8 type;			/* 0: nothing, not even later */
	enum dapx_status status;
	bool now;			/* else: when it suits */
	bool has_data;
	u32 length;			/* of data, which are in their place already */
};

void dapx_xrc_responder_init(struct dapx_xrc_responder *resp,
			     const struct dapx_xrc_responder_ops *ops);
void dapx_xrc_respond(struct dapx_xrc_responder *resp, void *buffer, u32 length,
		      struct dapx_xrc_reply *reply);
u32 dapx_xrc_reply_build(struct dapx_xrc_responder *resp, const struct dapx_xrc_reply *reply,
			 u32 limit, void *buffer);
void dapx_xrc_queue_gone(struct dapx_xrc_responder *resp, void *queue);
void dapx_xrc_responder_end(struct dapx_xrc_responder *resp);

#endif /* _DAPX_XRC_ENGINE_H */
