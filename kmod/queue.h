/* SPDX-License-Identifier: GPL-2.0 */
/*
 * dapx: rings that a process and the module share: events, and queues of work
 */
#ifndef _DAPX_QUEUE_H
#define _DAPX_QUEUE_H

#include <linux/hrtimer.h>
#include <linux/llist.h>
#include <linux/wait.h>

#include "dapx_private.h"

struct dapx_evd;
struct dapx_pd;

/* ---------------------------------------------------------------- ring.c */

/* Memory that the process may map. It lives until both the object and the last mapping are gone. */
struct dapx_ring {
	struct kref kref;
	struct dapx_context *ctx;
	u32 id;				/* in ctx->rings; 0: can no longer be mapped */
	unsigned int num_pages;
	bool mapped;			/* @va is a mapping of @pages */
	void *va;
	struct page *pages[];
};

extern unsigned int dapx_max_ring_depth;
extern unsigned int dapx_initial_index;

void dapx_rings_init(void);
struct dapx_ring *dapx_ring_create(struct dapx_context *ctx, size_t size);
void dapx_ring_destroy(struct dapx_ring *ring);
u64 dapx_ring_mmap_offset(const struct dapx_ring *ring);
int dapx_ring_mmap(struct dapx_context *ctx, struct vm_area_struct *vma);

/* The kernel's view of a ring: its indices, flags and entries. */
struct dapx_ring_view {
	u32 *head;
	u32 *tail;
	u32 *flags;
	void *entries;
	u32 depth;
	u32 stride;
};

/* Control words of a ring, each on its own cache line. */
#define DAPX_RING_LINE 64
#define DAPX_RING_CONTROL_SIZE (3 * DAPX_RING_LINE)

void dapx_ring_view_init(struct dapx_ring_view *view, struct dapx_ring *ring,
			 u32 control_off, u32 entries_off, u32 depth, u32 stride,
			 struct dapx_ring_layout *layout);

static inline void *dapx_ring_entry(const struct dapx_ring_view *view, u32 index)
{
	return view->entries + (size_t)(index & (view->depth - 1)) * view->stride;
}

/* ----------------------------------------------------------------- evd.c */

struct dapx_event_node;

/* Whom an event wakes and signals. Each level includes those before it. */
enum dapx_notify {
	DAPX_NOTIFY_NONE,	/* nobody: the process asked for that */
	DAPX_NOTIFY_ANY,	/* who waits for any event, or armed the ring for any */
	DAPX_NOTIFY_WAITERS,	/* also who waits for solicited events */
	DAPX_NOTIFY_ALL,	/* also who armed the ring for solicited events */
};

/* The owner of events. All its waiting events wait at one EVD, whose lock protects the list. */
struct dapx_event_source {
	struct dapx_object *owner;
	/* builds the event of a completion, in the ring; NULL: the source has stored events */
	void (*build)(const struct dapx_event_node *node, struct dapx_event *event);
	/* optional; called with evd->lock held when a node entered the ring, or was dropped */
	void (*gone)(struct dapx_event_node *node);
	struct dapx_event_node *first, **last;	/* waiting, in the order of the EVD's backlog */
};

/*
 * The memory in which an event waits for room. Everything that can be reported has a node of its
 * own, so no event is ever lost. As each entry of a ring has one, the node says of a completion
 * what is needed to build its event. Any other event is stored beside its node.
 */
struct dapx_event_node {
	struct list_head entry;		/* evd->backlog */
	struct dapx_event_node *next;	/* next waiting event of the source */
	struct dapx_event_source *source;
	bool pending;			/* evd->lock; false: reusable; may be read without it */
	u8 notify;			/* enum dapx_notify */

	/* Of a completion. */
	bool signaled;			/* its success is an event */
	u8 opcode;
	u8 status;
	u8 flags;			/* enum dapx_completion_flags */
	u32 byte_len;
	u32 imm_data;
	u64 wr_id;
};

/* Any event but a completion. */
struct dapx_stored_event {
	struct dapx_event_node node;
	struct dapx_event event;
	u32 again;			/* evd->lock; times that it happened while it waited */
};

/* A source that delivers events only when fetch() is called. */
struct dapx_lazy_source {
	struct list_head entry;		/* evd->lazy */
	void (*fetch)(struct dapx_lazy_source *source, struct dapx_evd *evd);
};

struct dapx_evd {
	struct dapx_object obj;
	spinlock_t lock;		/* all below but the wait queue */
	struct dapx_ring *ring;
	struct dapx_ring_view view;
	u32 tail;
	u32 unread;			/* when the last event was posted; read without the lock */
	u64 events;			/* posted so far; read without the lock */
	u32 notify_tail;		/* index after the last event that is not quiet */
	u32 solicited_tail;		/* index after the last event that wakes WAIT_SOLICITED */
	struct list_head backlog;
	bool dead;
	bool corrupt;			/* the indices were impossible */
	bool frozen;			/* a resize is copying the ring */
	struct mutex lazy_lock;		/* the list below */
	struct list_head lazy;		/* struct dapx_lazy_source */
	atomic_t lazy_sources;		/* their number */
	atomic_t any_waiters;		/* threads that wait for events of any kind */
	wait_queue_head_t wait;
	struct eventfd_ctx *eventfd;
	bool eventfd_once;		/* one signal for each arming; else for each event */
	bool solicited_only;		/* so it was when the process armed it last */
	struct dapx_event_source own;
	struct dapx_stored_event removed;
	struct dapx_stored_event *ports;	/* of each port; NULL without DAPX_EVD_ASYNC */
	struct list_head async_entry;	/* dev->async_evds, if it has @ports */
};

extern const struct dapx_object_class dapx_evd_class;
void dapx_event_source_init(struct dapx_event_source *source, struct dapx_object *owner,
			    void (*gone)(struct dapx_event_node *node));
void dapx_evd_post(struct dapx_evd *evd, struct dapx_event_node *node);
void dapx_evd_post_async(struct dapx_evd *evd, struct dapx_stored_event *stored,
			 const struct dapx_event *event);
void dapx_evd_expect(struct dapx_evd *evd);
void dapx_evd_drop(struct dapx_evd *evd, struct dapx_event_source *source);
void dapx_evd_add_lazy(struct dapx_evd *evd, struct dapx_lazy_source *source);
void dapx_evd_del_lazy(struct dapx_evd *evd, struct dapx_lazy_source *source);
void dapx_evd_wake_solicited(struct dapx_evd *evd);
bool dapx_evd_wants_any(struct dapx_evd *evd);
void dapx_evds_port_event(struct dapx_device *dev, u32 what, u32 port);

DAPX_OBJECT_ACCESSORS(evd, DAPX_OBJECT_EVD);

/* --------------------------------------------------------------- queue.c */

enum dapx_queue_mode {
	DAPX_QUEUE_HOLD,	/* entries stay in the ring */
	DAPX_QUEUE_RUN,		/* entries go to the device */
	DAPX_QUEUE_FLUSH,	/* entries complete as flushed, after those at the device */
	DAPX_QUEUE_STOP,	/* the ring is not read any more */
};

struct dapx_queue;

/* A work request that is at the device, or whose event waits in an EVD's backlog. */
struct dapx_slot {
	struct ib_cqe cqe;
	union {
		struct dapx_event_node node;
		struct llist_node free;
	};
};

/* The slot of an SRQ's receive, whose event may be an endpoint's. */
struct dapx_srq_slot {
	struct dapx_slot slot;
	struct dapx_queue *q;
	u32 qp_num;			/* XRC: from which the message came */
};

/* The operations in which send queues, receive queues and SRQs differ. */
struct dapx_queue_ops {
	bool srq;		/* slots are struct dapx_srq_slot */
	bool hold_is_busy;	/* in mode HOLD the ring needs no doorbell */
	bool fault_at_once;	/* report a fault before work at the device completes */
	bool defers_busy;		/* BUSY may stay set after the last completion */
	u32 busy_from;		/* in flight: no doorbell is needed from this number on ... */
	u32 busy_until;		/* ... until fewer than this are; both lower in a small ring */
	/* how many of a ring's requests the device has at most; NULL: all */
	u32 (*device_depth)(u32 depth);
	enum dapx_queue_mode (*mode)(struct dapx_queue *q);
	/* fill in the slot's node from the entry's copy */
	void (*prepare)(struct dapx_queue *q, struct dapx_slot *slot);
	/* validate the entry's copy and hand it to the device */
	enum dapx_status (*post)(struct dapx_queue *q, struct dapx_slot *slot);
	/* completion handler of the device */
	void (*done)(struct ib_cq *cq, struct ib_wc *wc);
	/* a faulty entry, or impossible indices, were found; no locks held */
	void (*fault)(struct dapx_queue *q);
	/* run the queue again, from a context of its own; from any context */
	void (*kick)(struct dapx_queue *q);
	/* a barrier can be claimed; as kick() */
	void (*at_barrier)(struct dapx_queue *q);
	/* one or several entries were posted; with q->lock */
	void (*posted)(struct dapx_queue *q);
	/* the EVD for completions that the module makes itself; NULL: none */
	struct dapx_evd *(*evd)(struct dapx_queue *q);
};

/*
 * An operation that stands between two entries of a ring, and waits until all entries before it
 * are done.
 */
struct dapx_barrier {
	/* its turn has come, or will never come; in process context, before its event */
	void (*complete)(struct dapx_barrier *barrier, enum dapx_status status);
	/* its event was delivered or dropped, or is not wanted; any context */
	void (*release)(struct dapx_barrier *barrier);
	struct list_head entry;		/* q->barriers */
	u32 index;			/* of the entry before which it stands */
	struct dapx_event_node node;
};

/* Receives at the device: enough for the messages that arrive until the ring is read again. */
#define DAPX_RECV_BUSY_FROM 32
#define DAPX_RECV_BUSY_UNTIL 16

/* A ring of work requests and its only consumer. */
struct dapx_queue {
	const struct dapx_queue_ops *ops;
	void *owner;			/* struct dapx_ep or dapx_srq */
	struct dapx_object *obj;	/* of the owner */
	struct dapx_event_source events;	/* of slots */
	struct dapx_event_source barrier_events;
	spinlock_t lock;		/* all below except @outstanding and @free */
	struct dapx_ring_view view;
	enum dapx_queue_mode mode;	/* read without the lock */
	u32 head;			/* view.head is only written */
	u64 taken;			/* entries; read without the lock */
	u32 limit;
	bool limited;			/* take only entries before @limit */
	u32 flush_until;		/* what was published when mode FLUSH was entered */
	bool corrupt;			/* the indices were impossible */
	bool faulted;			/* an entry was faulty */
	bool stalled;			/* work waits for a free slot */
	bool busy;			/* the module never reads view.flags */
	bool busy_deferred;			/* @busy_timer will read the ring */
	bool quiet;			/* there was a quiet work request; read without the lock */
	ktime_t busy_since;
	struct hrtimer busy_timer;
	u32 busy_from;
	u32 busy_until;
	atomic_t outstanding;		/* work requests at the device */
	u32 slots_taken;		/* since the start; the difference is the number in use */
	atomic_t slots_freed;
	struct dapx_slot *faulty;	/* completes when @outstanding is 0 */
	struct list_head barriers;
	u32 num_barriers;
	bool passing;			/* a thread has claimed the first barrier */
	struct llist_head free;
	union {
		struct dapx_slot *slots;
		struct dapx_srq_slot *srq_slots;	/* ops->srq */
	};
	u32 num_slots;
	u32 device_depth;		/* so many requests are at the device at most */
	u32 max_sge;
	u32 max_inline;
	struct ib_sge *sges;
	void *copy;			/* of the entry being processed */
	u8 *inline_data;		/* max_inline bytes for each slot */
	u64 inline_dma;
};

static inline struct dapx_srq_slot *to_dapx_srq_slot(struct dapx_slot *slot)
{
	return container_of(slot, struct dapx_srq_slot, slot);
}

/* The queue of a slot that a request has. */
static inline struct dapx_queue *dapx_slot_queue(struct dapx_slot *slot)
{
	return slot->node.flags & DAPX_COMPLETION_SRQ ? to_dapx_srq_slot(slot)->q :
	       container_of(slot->node.source, struct dapx_queue, events);
}

void dapx_queue_init_events(struct dapx_queue *q, struct dapx_object *obj);
void dapx_queue_drop_events(struct dapx_queue *q, struct dapx_evd *evd);
int dapx_queue_init(struct dapx_queue *q, const struct dapx_queue_ops *ops, void *owner,
		    u32 max_sge, u32 max_inline);
void dapx_queue_exit(struct dapx_queue *q);
bool dapx_queue_is_unused(struct dapx_queue *q);
int dapx_queue_exchange(struct dapx_queue *q, struct dapx_queue *with);
int dapx_queue_copy_ring(struct dapx_queue *q, const struct dapx_ring_view *to, u32 *tail);
int dapx_queue_switch_ring(struct dapx_queue *q, const struct dapx_ring_view *to, u32 tail);
void dapx_queue_reset(struct dapx_queue *q);
void dapx_queue_update_mode(struct dapx_queue *q);
int dapx_queue_run(struct dapx_queue *q);
void dapx_queue_limit(struct dapx_queue *q, bool limited);
void dapx_queue_quiesce(struct dapx_queue *q);
bool dapx_queue_is_clear(struct dapx_queue *q);
bool dapx_queue_all_ended(struct dapx_queue *q);
u32 dapx_queue_posted(struct dapx_queue *q);
void dapx_queue_add_barrier(struct dapx_queue *q, struct dapx_barrier *barrier);
void dapx_queue_pass_barriers(struct dapx_queue *q);
void dapx_queue_drop_barriers(struct dapx_queue *q);
bool dapx_queue_idle(struct dapx_queue *q);
bool dapx_queue_is_flushed(struct dapx_queue *q);
struct dapx_slot *dapx_queue_pull(struct dapx_queue *q, enum dapx_status *status, u32 *left);
void dapx_slot_post(struct dapx_queue *q, struct dapx_slot *slot);
void dapx_slot_unpost(struct dapx_queue *q, struct dapx_slot *slot);
void dapx_slot_returned(struct dapx_slot *slot);
enum dapx_notify dapx_queue_notify(struct dapx_queue *q, bool quiet, enum dapx_notify usual);
void dapx_queue_complete(struct dapx_slot *slot, struct dapx_evd *evd, enum dapx_status status);
void dapx_queue_retire(struct dapx_queue *q);
u32 dapx_send_stride(u32 max_sge, u32 max_inline);
enum dapx_status dapx_wc_status(enum ib_wc_status status);
enum dapx_status dapx_post_status(int error);
enum dapx_status dapx_segments_build(struct dapx_queue *q, struct dapx_pd *pd, u32 num_sge,
				     const struct dapx_sge *sge, bool write, u32 *num_out,
				     u64 *length);

#endif /* _DAPX_QUEUE_H */
