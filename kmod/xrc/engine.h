/* SPDX-License-Identifier: GPL-2.0 */
/*
 * dapx: the XRC protocol, and the engine that implements it
 *
 * The engine knows messages, queues and keys, but no device, no connection and no process'
 * memory; it reaches those through the operations below. It takes no locks and never sleeps.
 * The caller serialises all calls for a requester, and all calls for a responder. The engine is
 * also compiled for user space, where it is tested without a kernel.
 *
 * On the wire
 * -----------
 * A requester cuts messages into requests, which are numbered from 0, and sends segments of one
 * or more requests over a transport that is reliable and keeps their order. A responder
 * answers. An answer says which requests are done (all before @expected), how many segments the
 * requester may have sent in total (@limit: its credits), and whether there was an error.
 *
 * A responder whose queue has no receive answers "not ready" and drops every segment until that
 * request arrives again. The requester waits for the RNR timer and then sends that request and
 * all later ones again. Any other error ends the connection.
 *
 * A message is done for its sender when its last request is done, that is, when the data are at
 * their destination. Each request of a read or an atomic has a segment of its own, and an
 * answer of its own that contains the data. Other requests share segments if several are
 * pending.
 *
 * The first segment is a hello. It may be sent twice, since some devices do not deliver the
 * first segment before another one arrives.
 */
#ifndef _DAPX_XRC_ENGINE_H
#define _DAPX_XRC_ENGINE_H

#include <linux/list.h>
#include <linux/types.h>

#include "dapx.h"

#define DAPX_XRC_MAGIC 0x43525864	/* "dXRC" */
#define DAPX_XRC_VERSION 1
/* The size of a segment's buffer, in bytes. */
#define DAPX_XRC_SEGMENT_SIZE 8192
/* The requests in a segment are aligned to this; the padding between them is 0. */
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
	DAPX_XRC_ASK = 1 << 0,		/* in a segment's first request: answer now */
	DAPX_XRC_SOLICITED = 1 << 1,
};

struct dapx_xrc_request {
	__u8 type;
	__u8 opcode;			/* enum dapx_opcode */
	__le16 flags;
	__le32 seq;
	__le32 demand;			/* in a segment's first request: requests not done */
	__le32 srqn;
	__le32 total;			/* bytes of the message */
	__le32 length;			/* bytes of it that follow this header */
	__le32 rkey;
	__le32 imm;
	__le64 addr;
	__le64 compare_add;
	__le64 swap;
};

#define DAPX_XRC_PAYLOAD (DAPX_XRC_SEGMENT_SIZE - (u32)sizeof(struct dapx_xrc_request))

enum dapx_xrc_answer_flags {
	DAPX_XRC_DATA = 1 << 0,		/* data for the request before @expected follow */
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

/* ------------------------------------------------------------ requester.c */

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
	u32 first;			/* its first request; set when the message is @next */
	enum dapx_status outcome;	/* if the requester fails */
};

struct dapx_xrc_requester;

struct dapx_xrc_requester_ops {
	/* returns a buffer for a segment; called only while @room is not 0 */
	void *(*buffer)(struct dapx_xrc_requester *req);
	/* sends the buffer, and owns it from then on */
	void (*send)(struct dapx_xrc_requester *req, void *buffer, u32 length);
	/* takes back a buffer that will not be sent */
	void (*discard)(struct dapx_xrc_requester *req, void *buffer);
	/* copy from and to a message's memory; false: access denied */
	bool (*gather)(struct dapx_xrc_requester *req, struct dapx_xrc_message *msg,
		       u32 offset, void *to, u32 length);
	bool (*scatter)(struct dapx_xrc_requester *req, struct dapx_xrc_message *msg,
			u32 offset, const void *from, u32 length);
	/* called once for each message, in the order of submission */
	void (*done)(struct dapx_xrc_requester *req, struct dapx_xrc_message *msg,
		     enum dapx_status status);
	/*
	 * call dapx_xrc_waited() after @usecs microseconds, in a context of its own even if that
	 * is 0; replaces an earlier wait
	 */
	void (*wait)(struct dapx_xrc_requester *req, u32 usecs);
	/* get a buffer for one more segment, if possible, and increment @room; may be NULL */
	void (*make_room)(struct dapx_xrc_requester *req);
};

struct dapx_xrc_requester {
	const struct dapx_xrc_requester_ops *ops;
	struct list_head messages;	/* not done, in order */
	struct dapx_xrc_message *next;	/* message of the next request; NULL: none */
	u32 next_seq;
	u32 acked;			/* all requests before it are done */
	u32 num_messages;
	u32 queued;			/* of them, from @next on */
	u32 data_pending;		/* of them, those before @next that return data */
	u32 sent;			/* segments, including those sent again */
	u32 limit;			/* of @sent, as granted by the peer */
	u32 payload;			/* most bytes of a request; 0: no welcome yet */
	u32 room;			/* free buffers; the owner increments it */
	u8 hellos;
	u8 tries;			/* that the peer answered "not ready" */
	u8 retry_limit;			/* of @tries; 7: no limit */
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

/* ------------------------------------------------------------ responder.c */

struct dapx_xrc_responder;

struct dapx_xrc_arrival {
	enum dapx_status status;
	u8 opcode;
	u32 length;
	u32 imm;
	bool solicited;
};

/*
 * A queue that find() returned stays valid for this responder until dapx_xrc_queue_gone(). A
 * receive that take() returned stays valid until it is completed or its queue is gone.
 */
struct dapx_xrc_responder_ops {
	void *(*find)(struct dapx_xrc_responder *resp, u32 srqn);
	/* gets the next receive and its size; RECEIVER_NOT_READY: there is none */
	enum dapx_status (*take)(struct dapx_xrc_responder *resp, void *queue, void **receive,
				 u64 *size);
	bool (*place)(struct dapx_xrc_responder *resp, void *queue, void *receive, u32 offset,
		      const void *from, u32 length);
	void (*complete)(struct dapx_xrc_responder *resp, void *queue, void *receive,
			 const struct dapx_xrc_arrival *arrival);
	/*
	 * Access memory of the queue's owner. The message names the range [addr, addr + total),
	 * of which the part at @offset is copied. False: the key does not give access to the
	 * range.
	 */
	bool (*write)(struct dapx_xrc_responder *resp, void *queue, u32 rkey, u64 addr, u32 total,
		      u32 offset, const void *from, u32 length);
	bool (*read)(struct dapx_xrc_responder *resp, void *queue, u32 rkey, u64 addr, u32 total,
		     u32 offset, void *to, u32 length);
	/* @old has the CPU's byte order; the engine makes it little-endian */
	bool (*atomic)(struct dapx_xrc_responder *resp, void *queue, u32 rkey, u64 addr,
		       u8 opcode, u64 compare_add, u64 swap, u64 *old);
};

struct dapx_xrc_responder {
	const struct dapx_xrc_responder_ops *ops;
	u32 expected;
	u32 demand;			/* as the requester last reported it */
	u64 messages;			/* that are done */
	u8 rnr_timer;
	u8 refused;			/* enum dapx_access */
	bool greeted;
	bool dropping;			/* segments, until @expected arrives again */
	bool failed;

	/* the message that is being received */
	bool open;
	u8 opcode;
	bool solicited;
	u32 srqn;
	u32 total;
	u32 done;			/* bytes that are done */
	u32 rkey;
	u32 imm;
	u64 addr;
	void *queue;			/* NULL: gone */
	void *receive;			/* NULL: none */
};

/* The reply to a segment. */
struct dapx_xrc_reply {
	u8 type;			/* 0: no reply */
	enum dapx_status status;
	bool now;			/* else the caller may delay it */
	bool has_data;
	u32 length;			/* of the data, which are in the buffer already */
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
