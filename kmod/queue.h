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

/* Memory that the process may map; lives until the last of object and mapping. */
struct dapx_ring {
	struct kref kref;
	struct dapx_context *ctx;
	u32 id;				/* in ctx->rings; 0: withdrawn */
	unsigned int num_pages;
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

/* The kernel's side of one index pair and its entries. */
struct dapx_ring_view {
	u32 *head;
	u32 *tail;
	u32 *flags;
	void *entries;
	u32 depth;
	u32 stride;
};

/* Where the control words of up to two rings lie, each on its own cache line. */
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

/* Whose events they are. All that wait for room do so at one EVD at a time, whose lock it is. */
struct dapx_event_source {
	struct dapx_object *owner;
	/* NULL; called under evd->lock when a node went into the ring, or was dropped */
	void (*gone)(struct dapx_event_node *node);
	struct dapx_event_node *first, **last;	/* that wait, as in the EVD's backlog */
};

/*
 * An event with the memory to wait for room in: whatever can be told has a node of its own,
 * so that no event is ever lost.
 */
struct dapx_event_node {
	struct list_head entry;		/* evd->backlog */
	struct dapx_event_node *next;	/* of its source */
	struct dapx_event_source *source;
	struct dapx_event event;
	bool pending;			/* evd->lock; READ_ONCE to see whether it is reusable */
	bool solicited;
};

/* What has events only when it is asked for them. */
struct dapx_lazy_source {
	struct list_head entry;		/* evd->lazy */
	void (*fetch)(struct dapx_lazy_source *source, struct dapx_evd *evd);
};

struct dapx_evd {
	struct dapx_object obj;
	struct mutex resize;		/* one at a time */
	spinlock_t lock;		/* all below but the wait queue */
	struct dapx_ring *ring;
	struct dapx_ring_view view;
	u32 tail;
	u32 unread;			/* when the last event came; read without the lock */
	u64 events;			/* that came; read without the lock */
	u32 solicited_tail;		/* index behind the last event that wakes WAIT_SOLICITED */
	struct list_head backlog;
	bool dead;
	bool corrupt;			/* the indices were impossible */
	bool frozen;			/* a resize is about to switch the ring */
	bool want_async;
	struct mutex lazy_lock;		/* the list */
	struct list_head lazy;		/* struct dapx_lazy_source */
	atomic_t lazy_sources;		/* so many */
	atomic_t any_waiters;		/* who wait for any event, not only solicited ones */
	wait_queue_head_t wait;
	struct eventfd_ctx *eventfd;
	bool eventfd_once;		/* when the ring is armed; else for each event */
	struct dapx_event_source own;
	struct dapx_event_node removed;
	struct dapx_event_node port;
};

extern const struct dapx_object_class dapx_evd_class;
void dapx_event_source_init(struct dapx_event_source *source, struct dapx_object *owner,
			    void (*gone)(struct dapx_event_node *node));
void dapx_evd_post(struct dapx_evd *evd, struct dapx_event_node *node);
void dapx_evd_post_async(struct dapx_evd *evd, struct dapx_event_node *node,
			 const struct dapx_event *event);
void dapx_evd_expect(struct dapx_evd *evd);
void dapx_evd_drop(struct dapx_evd *evd, struct dapx_event_source *source);
void dapx_evd_add_lazy(struct dapx_evd *evd, struct dapx_lazy_source *source);
void dapx_evd_del_lazy(struct dapx_evd *evd, struct dapx_lazy_source *source);
void dapx_evd_wake_solicited(struct dapx_evd *evd);
bool dapx_evd_wants_any(struct dapx_evd *evd);

DAPX_OBJECT_ACCESSORS(evd, DAPX_OBJECT_EVD);

/* --------------------------------------------------------------- queue.c */

enum dapx_queue_mode {
	DAPX_QUEUE_HOLD,	/* entries stay in the ring */
	DAPX_QUEUE_RUN,		/* entries go to the device */
	DAPX_QUEUE_FLUSH,	/* entries complete as flushed, behind what the device has */
	DAPX_QUEUE_STOP,	/* nobody looks any more */
};

struct dapx_queue;

/* A work request that the device, or an EVD's backlog, has. */
struct dapx_slot {
	struct ib_cqe cqe;
	struct dapx_event_node node;
	struct dapx_queue *q;
	union {
		struct llist_node free;		/* while nothing uses it */
		bool signaled;			/* while a request does */
	};
};

/* What send queues, receive queues and SRQs do differently. */
struct dapx_queue_ops {
	bool hold_is_busy;	/* what is held is looked at without a doorbell */
	bool fault_at_once;	/* not when what the device has is done: it may never be */
	bool defers_busy;		/* BUSY may outlast the last completion */
	u32 busy_from;		/* in flight: no doorbell needed from here on ... */
	u32 busy_until;		/* ... until fewer than this are; both less if the ring is small */
	enum dapx_queue_mode (*mode)(struct dapx_queue *q);
	/* fill in the event from the entry's copy */
	void (*prepare)(struct dapx_queue *q, struct dapx_slot *slot);
	/* validate the entry's copy and hand it to the device */
	enum dapx_status (*post)(struct dapx_queue *q, struct dapx_slot *slot);
	/* the device is done with it */
	void (*done)(struct ib_cq *cq, struct ib_wc *wc);
	/* a faulty entry, or impossible indices, came to light; no locks held */
	void (*fault)(struct dapx_queue *q);
	/* run the queue again, from a context of its own; from any context */
	void (*kick)(struct dapx_queue *q);
	/* a barrier can be claimed; as kick() */
	void (*at_barrier)(struct dapx_queue *q);
	/* several entries were posted, or one; with q->lock */
	void (*posted)(struct dapx_queue *q);
	/* where a software-made completion goes; NULL: nowhere */
	struct dapx_evd *(*evd)(struct dapx_queue *q);
};

/* What waits between two entries of a ring until all before it is done. */
struct dapx_barrier {
	/* its turn has come, or will not; in process context, before its event */
	void (*complete)(struct dapx_barrier *barrier, enum dapx_status status);
	/* its event was delivered, dropped, or not wanted; any context */
	void (*release)(struct dapx_barrier *barrier);
	struct list_head entry;		/* q->barriers */
	u32 index;			/* of the entry before which it stands */
	bool signaled;
	struct dapx_event_node node;
};

/* Posted receives: enough for what arrives until the ring is looked at again. */
#define DAPX_RECV_BUSY_FROM 32
#define DAPX_RECV_BUSY_UNTIL 16

/* A ring of work and its one consumer. */
struct dapx_queue {
	const struct dapx_queue_ops *ops;
	void *owner;			/* struct dapx_ep or dapx_srq */
	struct dapx_object *obj;	/* of the owner */
	struct dapx_event_source events;	/* of slots */
	struct dapx_event_source barrier_events;
	spinlock_t lock;		/* all below but @outstanding and @free */
	struct dapx_ring_view view;
	enum dapx_queue_mode mode;
	u32 head;			/* view.head is only written */
	u64 taken;			/* entries; read without the lock */
	u32 limit;
	bool limited;			/* take nothing from @limit on */
	u32 flush_until;		/* what was published when mode FLUSH was entered */
	bool corrupt;			/* the indices were impossible */
	bool faulted;			/* an entry was */
	bool stalled;			/* work waits for a free slot */
	bool busy;			/* view.flags is only written */
	bool busy_deferred;			/* @busy_timer will look at the ring */
	ktime_t busy_since;
	struct hrtimer busy_timer;
	u32 busy_from;
	u32 busy_until;
	atomic_t outstanding;		/* what the device has */
	u32 slots_taken;		/* since the start; the difference is in use */
	atomic_t slots_freed;
	struct dapx_slot *faulty;	/* completes when @outstanding is 0 */
	struct list_head barriers;
	u32 num_barriers;
	bool passing;			/* somebody has claimed the first barrier */
	struct llist_head free;
	struct dapx_slot *slots;
	u32 max_sge;
	u32 max_inline;
	struct ib_sge *sges;
	void *copy;			/* of the entry being looked at */
	u8 *inline_data;		/* max_inline bytes for each slot */
	u64 inline_dma;
};

void dapx_queue_init_events(struct dapx_queue *q, struct dapx_object *obj);
void dapx_queue_drop_events(struct dapx_queue *q, struct dapx_evd *evd);
int dapx_queue_init(struct dapx_queue *q, const struct dapx_queue_ops *ops, void *owner,
		    u32 max_sge, u32 max_inline);
void dapx_queue_exit(struct dapx_queue *q);
void dapx_queue_reset(struct dapx_queue *q);
void dapx_queue_update_mode(struct dapx_queue *q);
int dapx_queue_run(struct dapx_queue *q);
void dapx_queue_limit(struct dapx_queue *q, bool limited);
void dapx_queue_quiesce(struct dapx_queue *q);
bool dapx_queue_is_clear(struct dapx_queue *q);
bool dapx_queue_all_ended(struct dapx_queue *q);
void dapx_queue_add_barrier(struct dapx_queue *q, struct dapx_barrier *barrier);
void dapx_queue_pass_barriers(struct dapx_queue *q);
void dapx_queue_drop_barriers(struct dapx_queue *q);
bool dapx_queue_idle(struct dapx_queue *q);
bool dapx_queue_is_flushed(struct dapx_queue *q);
struct dapx_slot *dapx_queue_pull(struct dapx_queue *q, enum dapx_status *status, u32 *left);
void dapx_slot_post(struct dapx_slot *slot);
void dapx_slot_unpost(struct dapx_slot *slot);
void dapx_slot_returned(struct dapx_slot *slot);
void dapx_queue_complete(struct dapx_slot *slot, struct dapx_evd *evd, enum dapx_status status);
void dapx_queue_retire(struct dapx_queue *q);
u32 dapx_send_stride(u32 max_sge, u32 max_inline);
enum dapx_status dapx_wc_status(enum ib_wc_status status);
enum dapx_status dapx_post_status(int error);
enum dapx_status dapx_segments_build(struct dapx_queue *q, struct dapx_pd *pd, u32 num_sge,
				     const struct dapx_sge *sge, bool write, u32 *num_out,
				     u64 *length);

#endif /* _DAPX_QUEUE_H */
