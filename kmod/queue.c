// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: rings of work, which a process fills and the module empties
 *
 * The module copies each entry once, into memory that the process cannot reach, and uses only
 * the copy. An entry needs a slot, which it keeps until its completion is in an EVD's ring.
 *
 * Doorbells: while so much is in flight that the device has enough to do, the ring is marked
 * BUSY, and the process need not ring after it publishes. Each completion then makes the module
 * read the ring again, and the one that ends BUSY makes it read the ring once more after the
 * mark is cleared. A single request, or a few, never wait.
 *
 * Small requests may complete before the process publishes the next one, so that little is ever
 * in flight. But a process with unread events is not waiting for these requests: then a single
 * request in flight is enough for BUSY. If many events are unread, BUSY stays set after the
 * last completion for as long as the device was busy, but no longer than DAPX_BUSY_DEFER_MAX.
 * Then a timer reads the ring, and the device gets in one go what was published meanwhile. If
 * few are unread, these may be all requests that the process had in flight, and it would wait
 * for the timer.
 */
#include <linux/hrtimer.h>
#include <linux/slab.h>

#include "ep.h"
#include "trace.h"

/* In one run, entries are taken up to this multiple of the ring's depth. A work takes the rest. */
#define DAPX_RUN_ROUNDS 2
/* Entries that are taken at a time, as softirqs are off meanwhile. */
#define DAPX_RUN_BATCH 64

/* Unread events from which on a process is considered to lag behind. */
#define DAPX_LAG 4
#define DAPX_FAR_LAG 8

#define DAPX_BUSY_DEFER_MAX (100 * NSEC_PER_USEC)

static enum hrtimer_restart dapx_queue_busy_deferred(struct hrtimer *timer);

u32 dapx_send_stride(u32 max_sge, u32 max_inline)
{
	u32 payload = max_t(u32, max_sge * sizeof(struct dapx_sge), max_inline);

	return ALIGN(sizeof(struct dapx_send_wr) + payload, 64);
}

enum dapx_status dapx_wc_status(enum ib_wc_status status)
{
	switch (status) {
	case IB_WC_SUCCESS:
		return DAPX_STATUS_SUCCESS;
	case IB_WC_WR_FLUSH_ERR:
		return DAPX_STATUS_FLUSHED;
	case IB_WC_LOC_LEN_ERR:
		return DAPX_STATUS_LOCAL_LENGTH;
	case IB_WC_LOC_QP_OP_ERR:
	case IB_WC_LOC_EEC_OP_ERR:
		return DAPX_STATUS_LOCAL_OPERATION;
	case IB_WC_LOC_PROT_ERR:
	case IB_WC_LOC_ACCESS_ERR:
	case IB_WC_MW_BIND_ERR:
		return DAPX_STATUS_LOCAL_PROTECTION;
	case IB_WC_BAD_RESP_ERR:
		return DAPX_STATUS_BAD_RESPONSE;
	case IB_WC_REM_ACCESS_ERR:
		return DAPX_STATUS_REMOTE_ACCESS;
	case IB_WC_REM_INV_REQ_ERR:
	case IB_WC_REM_INV_RD_REQ_ERR:
		return DAPX_STATUS_REMOTE_INVALID;
	case IB_WC_REM_OP_ERR:
		return DAPX_STATUS_REMOTE_OPERATION;
	case IB_WC_RETRY_EXC_ERR:
	case IB_WC_RESP_TIMEOUT_ERR:
	case IB_WC_REM_ABORT_ERR:
		return DAPX_STATUS_TRANSPORT;
	case IB_WC_RNR_RETRY_EXC_ERR:
		return DAPX_STATUS_RECEIVER_NOT_READY;
	default:
		return DAPX_STATUS_GENERAL;
	}
}

/* The device refused what was found valid. */
enum dapx_status dapx_post_status(int error)
{
	/* Any other error means that the queue pair is not in service. */
	return error == -EINVAL ? DAPX_STATUS_LOCAL_OPERATION : DAPX_STATUS_FLUSHED;
}

static void dapx_slot_free(struct dapx_slot *slot)
{
	struct dapx_queue *q = dapx_slot_queue(slot);

	atomic_inc(&q->slots_freed);
	/*
	 * llist_add() is a full barrier: either this sees that the queue is stalled, or
	 * dapx_slot_get() sees the slot.
	 */
	llist_add(&slot->free, &q->free);
	if (READ_ONCE(q->stalled))
		q->ops->kick(q);
}

static void dapx_slot_gone(struct dapx_event_node *node)
{
	dapx_slot_free(container_of(node, struct dapx_slot, node));
}

static struct dapx_slot *dapx_slot_get(struct dapx_queue *q)
{
	struct llist_node *node = llist_del_first(&q->free);

	if (!node) {
		WRITE_ONCE(q->stalled, true);
		/* As in dapx_slot_free(). */
		smp_mb();
		node = llist_del_first(&q->free);
	}
	if (!node)
		return NULL;
	WRITE_ONCE(q->stalled, false);
	q->slots_taken++;
	return llist_entry(node, struct dapx_slot, free);
}

/*
 * The handler of completions for slots that are not at the device. siw makes such completions:
 * when a connection breaks, it completes some reads twice.
 */
static void dapx_slot_stray(struct ib_cq *cq, struct ib_wc *wc)
{
}

/* Called before the request is posted, as its completion may come before the post returns. */
void dapx_slot_post(struct dapx_queue *q, struct dapx_slot *slot)
{
	WRITE_ONCE(slot->cqe.done, q->ops->done);
	atomic_inc(&q->outstanding);
}

/* The post failed. */
void dapx_slot_unpost(struct dapx_queue *q, struct dapx_slot *slot)
{
	WRITE_ONCE(slot->cqe.done, dapx_slot_stray);
	atomic_dec(&q->outstanding);
}

/* The first call of ops->done(). The completions of a queue pair are handled one by one. */
void dapx_slot_returned(struct dapx_slot *slot)
{
	WRITE_ONCE(slot->cqe.done, dapx_slot_stray);
}

/* Builds the event of a slot or a barrier. The process may write to @event meanwhile. */
static void dapx_completion_build(const struct dapx_event_node *node, struct dapx_event *event)
{
	const struct dapx_object *owner = node->source->owner;
	const struct dapx_srq_slot *slot = NULL;

	if (node->flags & DAPX_COMPLETION_SRQ)
		slot = container_of(node, struct dapx_srq_slot, slot.node);
	event->type = DAPX_EVENT_COMPLETION;
	event->handle = owner->handle;
	event->user_data = READ_ONCE(owner->user_data);
	event->completion.wr_id = node->wr_id;
	event->completion.status = node->status;
	event->completion.opcode = node->opcode;
	event->completion.byte_len = node->byte_len;
	event->completion.imm_data = node->imm_data;
	event->completion.flags = node->flags;
	event->completion.srq = slot ? slot->q->obj->handle : 0;
	event->completion.qp_num = slot ? slot->qp_num : 0;
	event->completion.__reserved0 = 0;
	/* What the union has beyond a completion. */
	event->__reserved[5] = 0;
}

static void dapx_barrier_gone(struct dapx_event_node *node)
{
	struct dapx_barrier *barrier = container_of(node, struct dapx_barrier, node);

	barrier->release(barrier);
}

/*
 * First thing, for every queue. One that gets no more than this, as its endpoint has no
 * receives of its own, has the events of those that it gets from an SRQ.
 */
void dapx_queue_init_events(struct dapx_queue *q, struct dapx_object *obj)
{
	q->obj = obj;
	spin_lock_init(&q->lock);
	INIT_LIST_HEAD(&q->barriers);
	hrtimer_setup(&q->busy_timer, dapx_queue_busy_deferred, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_SOFT);
	dapx_event_source_init(&q->events, obj, dapx_slot_gone);
	q->events.build = dapx_completion_build;
	dapx_event_source_init(&q->barrier_events, obj, dapx_barrier_gone);
	q->barrier_events.build = dapx_completion_build;
}

/* What waits for room in @evd, the queue's; NULL: it has none. */
void dapx_queue_drop_events(struct dapx_queue *q, struct dapx_evd *evd)
{
	if (!evd)
		return;
	dapx_evd_drop(evd, &q->events);
	dapx_evd_drop(evd, &q->barrier_events);
}

static struct dapx_slot *dapx_queue_slot(struct dapx_queue *q, u32 i)
{
	return q->ops->srq ? &q->srq_slots[i].slot : &q->slots[i];
}

/* @q->view is set. */
int dapx_queue_init(struct dapx_queue *q, const struct dapx_queue_ops *ops, void *owner,
		    u32 max_sge, u32 max_inline)
{
	u32 depth = q->view.depth, i;

	/* Each power of two of them is a power of two of bytes, as the allocator has them. */
	BUILD_BUG_ON(sizeof(struct dapx_slot) > 64);
	q->ops = ops;
	q->owner = owner;
	init_llist_head(&q->free);
	q->num_slots = depth;
	q->device_depth = ops->device_depth ? ops->device_depth(depth) : depth;
	q->busy_from = clamp(depth / 2, 1, ops->busy_from);
	q->busy_until = clamp(depth / 4, 1, ops->busy_until);
	q->max_sge = max_sge;
	q->max_inline = max_inline;
	q->slots = kvcalloc(depth, ops->srq ? sizeof(*q->srq_slots) : sizeof(*q->slots),
			    GFP_KERNEL_ACCOUNT);
	q->sges = kcalloc(max_t(u32, max_sge, 1), sizeof(*q->sges), GFP_KERNEL_ACCOUNT);
	q->copy = kmalloc(q->view.stride, GFP_KERNEL_ACCOUNT);
	if (!q->slots || !q->sges || !q->copy)
		goto err;
	if (max_inline) {
		/* Physically contiguous, to be mapped for the device in one piece. */
		q->inline_data = kmalloc_array(depth, max_inline,
					       GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
		if (!q->inline_data)
			goto err;
	}
	for (i = 0; i < depth; i++) {
		struct dapx_slot *slot = dapx_queue_slot(q, i);

		slot->cqe.done = dapx_slot_stray;
		if (ops->srq)
			to_dapx_srq_slot(slot)->q = q;
		llist_add(&slot->free, &q->free);
	}
	q->head = dapx_initial_index;
	*q->view.head = q->head;
	*q->view.tail = q->head;
	return 0;

err:
	dapx_queue_exit(q);
	return -ENOMEM;
}

void dapx_queue_exit(struct dapx_queue *q)
{
	kfree(q->inline_data);
	kfree(q->copy);
	kfree(q->sges);
	kvfree(q->slots);
	q->inline_data = NULL;
	q->copy = NULL;
	q->sges = NULL;
	q->slots = NULL;
}

/* Restarts the ring, empty. Nothing is at the device, and no event waits. */
void dapx_queue_reset(struct dapx_queue *q)
{
	u32 i;

	spin_lock_bh(&q->lock);
	init_llist_head(&q->free);
	for (i = 0; i < q->num_slots; i++)
		llist_add(&dapx_queue_slot(q, i)->free, &q->free);
	WRITE_ONCE(q->head, READ_ONCE(*q->view.tail));
	/* Release, as in dapx_queue_take(). */
	smp_store_release(q->view.head, q->head);
	atomic_set(&q->outstanding, 0);
	q->slots_taken = 0;
	atomic_set(&q->slots_freed, 0);
	q->faulty = NULL;
	q->faulted = false;
	q->corrupt = false;
	q->limited = false;
	WRITE_ONCE(q->stalled, false);
	q->busy_deferred = false;
	spin_unlock_bh(&q->lock);
}

/*
 * With the lock. Returns whether all entries that were taken have completed, and no event of
 * them waits.
 */
bool dapx_queue_all_ended(struct dapx_queue *q)
{
	lockdep_assert_held(&q->lock);
	return q->slots_taken == (u32)atomic_read(&q->slots_freed);
}

/* Returns how many entries have not completed, or have an event that waits for room. */
u32 dapx_queue_posted(struct dapx_queue *q)
{
	u32 posted;

	spin_lock_bh(&q->lock);
	posted = READ_ONCE(*q->view.tail) - q->head + q->slots_taken -
		 (u32)atomic_read(&q->slots_freed);
	spin_unlock_bh(&q->lock);
	return posted;
}

static void dapx_queue_set_flags(struct dapx_queue *q, bool busy)
{
	u32 flags = 0;

	if (busy)
		flags |= DAPX_RING_BUSY;
	if (q->corrupt || q->mode == DAPX_QUEUE_STOP)
		flags |= DAPX_RING_DEAD;
	WRITE_ONCE(q->busy, busy);
	WRITE_ONCE(*q->view.flags, flags);
}

/* Derives the mode from the owner's state, which the caller has changed. */
void dapx_queue_update_mode(struct dapx_queue *q)
{
	enum dapx_queue_mode mode;

	spin_lock_bh(&q->lock);
	if (!q->ops)
		goto out;
	mode = q->ops->mode(q);
	if (mode == DAPX_QUEUE_RUN && (q->faulted || q->corrupt))
		mode = DAPX_QUEUE_FLUSH;
	WRITE_ONCE(q->mode, mode);
	if (mode == DAPX_QUEUE_FLUSH) {
		q->limited = false;
		q->flush_until = READ_ONCE(*q->view.tail);
	}
	dapx_queue_set_flags(q, q->busy);
out:
	spin_unlock_bh(&q->lock);
}

static bool dapx_queue_is_unused_locked(struct dapx_queue *q)
{
	return !q->ops || (!q->corrupt && !q->faulted && list_empty(&q->barriers) &&
			   q->head == READ_ONCE(*q->view.tail) && dapx_queue_all_ended(q));
}

/* Returns whether nothing that was posted is left, and nothing went wrong. */
bool dapx_queue_is_unused(struct dapx_queue *q)
{
	bool unused;

	spin_lock_bh(&q->lock);
	unused = dapx_queue_is_unused_locked(q);
	spin_unlock_bh(&q->lock);
	return unused;
}

/* dapx_queue_retire() reads the tail's place without the lock. */
static void dapx_queue_set_view(struct dapx_queue *q, const struct dapx_ring_view *view)
{
	q->view.head = view->head;
	WRITE_ONCE(q->view.tail, view->tail);
	q->view.flags = view->flags;
	q->view.entries = view->entries;
	q->view.depth = view->depth;
	q->view.stride = view->stride;
}

/* Exchanges a member of a queue that is also read without the lock with one that nobody finds. */
#define dapx_exchange_once(member, with)	\
do {						\
	typeof(member) old = (member);		\
						\
	WRITE_ONCE(member, with);		\
	(with) = old;				\
} while (0)

/*
 * Exchanges what depends on the sizes between @q, which other threads may use, and @with, which
 * they cannot find. Neither has work; EBADFD: @q has. The caller updates the mode of @q.
 */
int dapx_queue_exchange(struct dapx_queue *q, struct dapx_queue *with)
{
	struct dapx_ring_view view;

	spin_lock_bh(&q->lock);
	if (!dapx_queue_is_unused_locked(q)) {
		spin_unlock_bh(&q->lock);
		return -EBADFD;
	}
	view = q->view;
	dapx_queue_set_view(q, &with->view);
	with->view = view;
	dapx_exchange_once(q->ops, with->ops);
	dapx_exchange_once(q->head, with->head);
	dapx_exchange_once(q->busy_until, with->busy_until);
	swap(q->owner, with->owner);
	swap(q->busy_from, with->busy_from);
	swap(q->free, with->free);
	swap(q->slots, with->slots);
	swap(q->num_slots, with->num_slots);
	swap(q->device_depth, with->device_depth);
	swap(q->max_sge, with->max_sge);
	swap(q->max_inline, with->max_inline);
	swap(q->sges, with->sges);
	swap(q->copy, with->copy);
	swap(q->inline_data, with->inline_data);
	swap(q->inline_dma, with->inline_dma);
	if (q->ops)
		dapx_queue_set_flags(q, false);
	if (with->ops)
		WRITE_ONCE(*with->view.flags, DAPX_RING_DEAD);
	spin_unlock_bh(&q->lock);
	return 0;
}

/*
 * Copies the entries before @tail, which wait, to another ring. Nobody but the process writes to
 * them, so the lock is not held meanwhile; those that the module takes are copied in vain. EBUSY:
 * @to has no room for them.
 */
int dapx_queue_copy_ring(struct dapx_queue *q, const struct dapx_ring_view *to, u32 *tail)
{
	struct dapx_ring_view from;
	bool corrupt;
	u32 i;

	spin_lock_bh(&q->lock);
	from = q->view;
	i = q->head;
	*tail = READ_ONCE(*from.tail);
	corrupt = q->corrupt || *tail - i > from.depth;
	spin_unlock_bh(&q->lock);
	if (corrupt)
		return -EBADMSG;
	if (*tail - i > to->depth)
		return -EBUSY;
	for (; i != *tail; i++)
		memcpy(dapx_ring_entry(to, i), dapx_ring_entry(&from, i), from.stride);
	return 0;
}

/*
 * Goes on in the ring to which dapx_queue_copy_ring() has copied. EBUSY: the process has posted
 * since then. Who looks at the ring without the lock does so under RCU.
 */
int dapx_queue_switch_ring(struct dapx_queue *q, const struct dapx_ring_view *to, u32 tail)
{
	int ret = 0;

	spin_lock_bh(&q->lock);
	if (READ_ONCE(*q->view.tail) != tail) {
		ret = -EBUSY;
	} else {
		*to->head = q->head;
		*to->tail = tail;
		WRITE_ONCE(*q->view.flags, DAPX_RING_DEAD);
		dapx_queue_set_view(q, to);
		dapx_queue_set_flags(q, q->busy);
	}
	spin_unlock_bh(&q->lock);
	return ret;
}

/* Returns whom the success of a work request notifies; @usual unless the process asked for none. */
enum dapx_notify dapx_queue_notify(struct dapx_queue *q, bool quiet, enum dapx_notify usual)
{
	if (!quiet)
		return usual;
	WRITE_ONCE(q->quiet, true);
	return DAPX_NOTIFY_NONE;
}

/*
 * Completes a request. There is no event if there is no EVD, or if the request succeeded and
 * did not ask for one.
 */
void dapx_queue_complete(struct dapx_slot *slot, struct dapx_evd *evd, enum dapx_status status)
{
	slot->node.status = status;
	if (status != DAPX_STATUS_SUCCESS)
		slot->node.notify = DAPX_NOTIFY_ALL;
	trace_dapx_complete(&slot->node);
	if (evd && (slot->node.signaled || status != DAPX_STATUS_SUCCESS))
		dapx_evd_post(evd, &slot->node);
	else
		dapx_slot_free(slot);
}

/* Copies the entry at the head, hands it to the owner, and moves the head. */
static enum dapx_status dapx_queue_copy(struct dapx_queue *q, struct dapx_slot *slot)
{
	enum dapx_status status = DAPX_STATUS_FLUSHED;

	/*
	 * The entry is copied once, and only the copy is used: the process may still write to
	 * the entry.
	 */
	memcpy(q->copy, dapx_ring_entry(&q->view, q->head), q->view.stride);
	barrier();
	slot->node.source = &q->events;
	q->ops->prepare(q, slot);
	if (q->mode != DAPX_QUEUE_FLUSH)
		status = q->ops->post(q, slot);
	trace_dapx_post(q->obj, q->head, slot->node.wr_id, status);
	WRITE_ONCE(q->head, q->head + 1);
	WRITE_ONCE(q->taken, q->taken + 1);
	/* Release: the copy is complete before the process may reuse the entry. */
	smp_store_release(q->view.head, q->head);
	return status;
}

static void dapx_queue_take(struct dapx_queue *q, struct dapx_slot *slot)
{
	enum dapx_status status = dapx_queue_copy(q, slot);

	if (status == DAPX_STATUS_SUCCESS)
		return;
	if (q->mode == DAPX_QUEUE_FLUSH) {
		dapx_queue_complete(slot, q->ops->evd(q), status);
		return;
	}
	/* It completes after the requests before it. */
	slot->node.status = status;
	q->faulty = slot;
	q->faulted = true;
	WRITE_ONCE(q->mode, DAPX_QUEUE_FLUSH);
	q->flush_until = READ_ONCE(*q->view.tail);
}

static struct dapx_barrier *dapx_queue_first_barrier(struct dapx_queue *q)
{
	return list_first_entry_or_null(&q->barriers, struct dapx_barrier, entry);
}

/* Returns whether all entries before @index are done. */
static bool dapx_queue_at(struct dapx_queue *q, u32 index)
{
	return q->head == index && !q->passing && !q->faulty &&
	       (q->mode == DAPX_QUEUE_RUN || q->mode == DAPX_QUEUE_FLUSH) &&
	       !atomic_read(&q->outstanding);
}

static bool dapx_queue_at_barrier(struct dapx_queue *q)
{
	struct dapx_barrier *barrier = dapx_queue_first_barrier(q);

	return barrier && dapx_queue_at(q, barrier->index);
}

/*
 * The status with which a barrier completes now. The owner is asked as well, since an entry
 * before the barrier may just have failed, and q->mode follows later.
 */
static enum dapx_status dapx_queue_pass_status(struct dapx_queue *q)
{
	return q->mode == DAPX_QUEUE_RUN && q->ops->mode(q) == DAPX_QUEUE_RUN ?
	       DAPX_STATUS_SUCCESS : DAPX_STATUS_FLUSHED;
}

/* Returns up to which index published entries may be taken. */
static u32 dapx_queue_tail(struct dapx_queue *q)
{
	/* Acquire: the index is read before the entries. */
	u32 tail = smp_load_acquire(q->view.tail);
	struct dapx_barrier *barrier;

	if (tail - q->head > q->view.depth)
		q->corrupt = true;
	else if (q->limited && (s32)(tail - q->limit) > 0)
		tail = q->limit;
	barrier = dapx_queue_first_barrier(q);
	if (barrier && (s32)(tail - barrier->index) > 0)
		tail = barrier->index;
	return tail;
}

/* Returns whether the process has left this many events unread in the EVD of its completions. */
static bool dapx_queue_consumer_lags(struct dapx_queue *q, u32 events)
{
	struct dapx_evd *evd = q->ops->evd(q);

	return evd && READ_ONCE(evd->unread) >= events;
}

/* Returns whether the ring will be read again without a doorbell. */
static bool dapx_queue_will_rerun(struct dapx_queue *q)
{
	u32 outstanding = atomic_read(&q->outstanding);

	/* It will be when an event finds room. */
	if (q->stalled)
		return true;
	if (q->mode == DAPX_QUEUE_HOLD)
		return q->ops->hold_is_busy;
	if (q->mode != DAPX_QUEUE_RUN)
		return false;
	/* It will be when the barrier completes. */
	if (!list_empty(&q->barriers))
		return true;
	if (outstanding >= (q->busy ? q->busy_until : q->busy_from))
		return true;
	if (!q->ops->defers_busy)
		return false;
	if (outstanding)
		return dapx_queue_consumer_lags(q, DAPX_LAG);
	if (!q->busy_deferred && q->busy && dapx_queue_consumer_lags(q, DAPX_FAR_LAG) &&
	    hrtimer_resolution < DAPX_BUSY_DEFER_MAX) {
		q->busy_deferred = true;
		hrtimer_start(&q->busy_timer,
			      min_t(ktime_t, ktime_get() - q->busy_since, DAPX_BUSY_DEFER_MAX),
			      HRTIMER_MODE_REL_SOFT);
	}
	return q->busy_deferred;
}

/* In mode FLUSH. Returns whether the device has none of the requests before those in the ring. */
static bool dapx_queue_can_flush(struct dapx_queue *q)
{
	/*
	 * A completion counts, then reads the mode; the mode is written, and the count is read
	 * here. At least one of them sees the other's write.
	 */
	smp_mb();
	return !atomic_read(&q->outstanding);
}

/* Returns whether a fault was found. @more is set if the caller has to call again. */
static bool dapx_queue_run_locked(struct dapx_queue *q, bool *more)
{
	bool fault = false, busy;
	struct dapx_slot *slot;
	u32 tail, taken = 0;

	*more = false;
	for (;;) {
		/* Without operations it has become one without a ring. */
		if (!q->ops || q->mode == DAPX_QUEUE_STOP || q->corrupt)
			return fault;
		if (taken == DAPX_RUN_BATCH) {
			*more = true;
			return fault;
		}
		tail = dapx_queue_tail(q);
		if (q->corrupt) {
			dapx_queue_set_flags(q, false);
			return true;
		}
		while (q->mode != DAPX_QUEUE_HOLD) {
			if (q->mode == DAPX_QUEUE_FLUSH) {
				if (!dapx_queue_can_flush(q))
					break;
				slot = q->faulty;
				if (slot) {
					q->faulty = NULL;
					fault = true;
					dapx_queue_complete(slot, q->ops->evd(q),
							    slot->node.status);
				}
			}
			if (q->head == tail || taken == DAPX_RUN_BATCH ||
			    atomic_read(&q->outstanding) >= q->device_depth)
				break;
			slot = dapx_slot_get(q);
			if (!slot)
				break;
			dapx_queue_take(q, slot);
			taken++;
			if (q->faulty && q->ops->fault_at_once)
				fault = true;
		}
		if (q->ops->posted)
			q->ops->posted(q);
		if (q->corrupt) {
			dapx_queue_set_flags(q, false);
			return true;
		}

		if (q->head != tail && taken == DAPX_RUN_BATCH)
			continue;
		if (dapx_queue_at_barrier(q))
			q->ops->at_barrier(q);
		busy = dapx_queue_will_rerun(q);
		if (busy == q->busy)
			return fault;
		if (busy && q->ops->defers_busy)
			q->busy_since = ktime_get();
		dapx_queue_set_flags(q, busy);
		/*
		 * The process publishes, then reads the flags, and a completion counts, then reads
		 * q->busy; the module has written both, and now reads what is published, and the
		 * count. At least one of two sees the other's write.
		 */
		smp_mb();
	}
}

/* Reads the ring, and takes what was published. EBADMSG: the indices are impossible. */
int dapx_queue_run(struct dapx_queue *q)
{
	const struct dapx_queue_ops *ops = READ_ONCE(q->ops);
	bool fault = false, corrupt, more, may_stay;
	u32 batches = 0;

	if (!ops)
		return 0;
	may_stay = !in_softirq() && !irqs_disabled();
	do {
		spin_lock_bh(&q->lock);
		fault |= dapx_queue_run_locked(q, &more);
		/*
		 * A process that publishes as fast as the module takes must not keep this
		 * thread here.
		 */
		if (more && (!may_stay || ++batches > DAPX_RUN_ROUNDS *
			     DIV_ROUND_UP(q->view.depth, DAPX_RUN_BATCH))) {
			dapx_queue_set_flags(q, true);
			ops->kick(q);
			more = false;
		}
		corrupt = q->corrupt;
		spin_unlock_bh(&q->lock);
		if (more)
			cond_resched();
	} while (more);
	if (fault && ops->fault)
		ops->fault(q);
	return corrupt ? -EBADMSG : 0;
}

/*
 * Takes one entry, for owners that take entries when they need them and keep the queue in mode
 * HOLD. Returns NULL if there is none, or no slot for it. @left is the number of entries after
 * it.
 */
struct dapx_slot *dapx_queue_pull(struct dapx_queue *q, enum dapx_status *status, u32 *left)
{
	struct dapx_slot *slot = NULL;
	u32 tail;

	*status = DAPX_STATUS_RECEIVER_NOT_READY;
	spin_lock_bh(&q->lock);
	if (q->mode != DAPX_QUEUE_HOLD || q->corrupt)
		goto out;
	tail = dapx_queue_tail(q);
	if (!q->corrupt && tail != q->head)
		slot = dapx_slot_get(q);
	if (slot) {
		*status = dapx_queue_copy(q, slot);
		*left = tail - q->head;
	}
	if (q->corrupt)
		dapx_queue_set_flags(q, false);
out:
	if (q->corrupt)
		*status = DAPX_STATUS_LOCAL_OPERATION;
	spin_unlock_bh(&q->lock);
	return slot;
}

static enum hrtimer_restart dapx_queue_busy_deferred(struct hrtimer *timer)
{
	struct dapx_queue *q = container_of(timer, struct dapx_queue, busy_timer);

	spin_lock_bh(&q->lock);
	q->busy_deferred = false;
	q->busy_since = ktime_get();
	/* Nothing was published: the timer does not start again before the next doorbell. */
	if (READ_ONCE(*q->view.tail) == q->head && !atomic_read(&q->outstanding)) {
		dapx_queue_set_flags(q, false);
		/* As in dapx_queue_run_locked(). */
		smp_mb();
	}
	spin_unlock_bh(&q->lock);
	dapx_queue_run(q);
	return HRTIMER_NORESTART;
}

/* In mode STOP. When this returns, no timer reads the ring any more. */
void dapx_queue_quiesce(struct dapx_queue *q)
{
	hrtimer_cancel(&q->busy_timer);
}

/* If @limited, only entries that are published now will be taken. */
void dapx_queue_limit(struct dapx_queue *q, bool limited)
{
	u32 tail;

	spin_lock_bh(&q->lock);
	tail = READ_ONCE(*q->view.tail);
	/* dapx_queue_run() deals with impossible indices. */
	q->limit = tail - q->head > q->view.depth ? q->head : tail;
	q->limited = limited;
	spin_unlock_bh(&q->lock);
}

/*
 * Returns whether a barrier that is added now would complete at once and successfully: nothing
 * that is published is before it.
 */
bool dapx_queue_is_clear(struct dapx_queue *q)
{
	bool clear;

	spin_lock_bh(&q->lock);
	clear = list_empty(&q->barriers) && dapx_queue_at(q, READ_ONCE(*q->view.tail)) &&
		dapx_queue_pass_status(q) == DAPX_STATUS_SUCCESS;
	spin_unlock_bh(&q->lock);
	return clear;
}

/*
 * Adds a barrier after all entries that are published now. The caller checks whether it can
 * complete at once, and runs the queue if not.
 */
void dapx_queue_add_barrier(struct dapx_queue *q, struct dapx_barrier *barrier)
{
	u32 tail, from;

	spin_lock_bh(&q->lock);
	tail = READ_ONCE(*q->view.tail);
	from = list_empty(&q->barriers) ? q->head :
	       list_last_entry(&q->barriers, struct dapx_barrier, entry)->index;
	/* dapx_queue_run() deals with impossible indices. */
	barrier->index = tail - q->head > q->view.depth || (s32)(tail - from) < 0 ? from : tail;
	list_add_tail(&barrier->entry, &q->barriers);
	WRITE_ONCE(q->num_barriers, q->num_barriers + 1);
	spin_unlock_bh(&q->lock);
}

/*
 * Returns the barrier that can complete now, to one caller only, and the status with which it
 * completes.
 */
static struct dapx_barrier *dapx_queue_claim_barrier(struct dapx_queue *q, enum dapx_status *status)
{
	struct dapx_barrier *barrier = NULL;

	spin_lock_bh(&q->lock);
	if (dapx_queue_at_barrier(q)) {
		barrier = dapx_queue_first_barrier(q);
		q->passing = true;
		*status = dapx_queue_pass_status(q);
	}
	spin_unlock_bh(&q->lock);
	return barrier;
}

/* The barrier's operation is done. Its event is delivered before those of the entries after it. */
static void dapx_queue_pass_barrier(struct dapx_queue *q, struct dapx_barrier *barrier,
				    enum dapx_status status)
{
	struct dapx_evd *evd;

	spin_lock_bh(&q->lock);
	list_del(&barrier->entry);
	WRITE_ONCE(q->num_barriers, q->num_barriers - 1);
	q->passing = false;
	barrier->node.status = status;
	if (status != DAPX_STATUS_SUCCESS)
		barrier->node.notify = DAPX_NOTIFY_ALL;
	trace_dapx_complete(&barrier->node);
	evd = q->ops->evd(q);
	if (evd && (barrier->node.signaled || status != DAPX_STATUS_SUCCESS))
		dapx_evd_post(evd, &barrier->node);
	else
		barrier->release(barrier);
	spin_unlock_bh(&q->lock);
	dapx_queue_run(q);
}

/*
 * In mode STOP, while no thread completes a barrier. Returns the next barrier, whose turn will
 * never come, or NULL.
 */
static struct dapx_barrier *dapx_queue_drop_barrier(struct dapx_queue *q)
{
	struct dapx_barrier *barrier;

	spin_lock_bh(&q->lock);
	barrier = dapx_queue_first_barrier(q);
	if (barrier) {
		list_del(&barrier->entry);
		WRITE_ONCE(q->num_barriers, q->num_barriers - 1);
	}
	spin_unlock_bh(&q->lock);
	return barrier;
}

/*
 * Completes all barriers whose turn it is. In process context; any number of threads may call
 * it.
 */
void dapx_queue_pass_barriers(struct dapx_queue *q)
{
	struct dapx_barrier *barrier;
	enum dapx_status status;

	while ((barrier = dapx_queue_claim_barrier(q, &status))) {
		barrier->complete(barrier, status);
		dapx_queue_pass_barrier(q, barrier, status);
	}
}

/* The queue's owner is torn down: the turn of waiting barriers never comes. */
void dapx_queue_drop_barriers(struct dapx_queue *q)
{
	struct dapx_barrier *barrier;

	while ((barrier = dapx_queue_drop_barrier(q))) {
		barrier->complete(barrier, DAPX_STATUS_FLUSHED);
		barrier->release(barrier);
	}
}

/* Returns whether all entries that may be taken have been taken, and are done. */
bool dapx_queue_idle(struct dapx_queue *q)
{
	bool idle;

	spin_lock_bh(&q->lock);
	idle = !atomic_read(&q->outstanding) && !q->faulty && list_empty(&q->barriers) &&
	       (!q->limited || q->head == q->limit);
	spin_unlock_bh(&q->lock);
	return idle;
}

/*
 * Returns whether, in mode FLUSH, nothing is at the device and all entries that were published
 * before have completed. Entries without a slot do not count: they wait until the process reads
 * events.
 */
bool dapx_queue_is_flushed(struct dapx_queue *q)
{
	bool flushed;

	spin_lock_bh(&q->lock);
	flushed = !q->ops ||
		  (q->mode == DAPX_QUEUE_FLUSH && !atomic_read(&q->outstanding) &&
		   (q->corrupt || q->stalled ||
		    (!q->faulty && list_empty(&q->barriers) &&
		     (s32)(q->head - q->flush_until) >= 0)));
	spin_unlock_bh(&q->lock);
	return flushed;
}

/* The device has completed one request. In softirq, after its completion was delivered. */
void dapx_queue_retire(struct dapx_queue *q)
{
	/* A full barrier: see dapx_queue_run_locked() and dapx_queue_can_flush(). */
	u32 left = atomic_dec_return(&q->outstanding);
	bool run;

	/*
	 * Without BUSY the process rings the doorbell. With BUSY and more work in flight, a
	 * later completion comes here. The last one also ends a flush.
	 */
	if (READ_ONCE(q->busy)) {
		rcu_read_lock();
		run = left < READ_ONCE(q->busy_until) ||
		      READ_ONCE(*READ_ONCE(q->view.tail)) != READ_ONCE(q->head);
		rcu_read_unlock();
	} else {
		run = !left && READ_ONCE(q->mode) == DAPX_QUEUE_FLUSH;
	}
	if (run)
		dapx_queue_run(q);
}

/*
 * Fills q->sges with the keys of the segments. Empty segments are checked, but left out: some
 * devices take a length of 0 as 2 GiB.
 */
enum dapx_status dapx_segments_build(struct dapx_queue *q, struct dapx_pd *pd, u32 num_sge,
				     const struct dapx_sge *sge, bool write, u32 *num_out,
				     u64 *length)
{
	u32 i, n = 0;

	*length = 0;
	if (num_sge > q->max_sge)
		return DAPX_STATUS_LOCAL_OPERATION;
	for (i = 0; i < num_sge; i++) {
		if (dapx_mr_to_sge(q->obj->ctx, pd, &sge[i], write, &q->sges[n]))
			return DAPX_STATUS_LOCAL_PROTECTION;
		*length += sge[i].length;
		if (sge[i].length)
			n++;
	}
	*num_out = n;
	return *length > q->obj->ctx->dev->max_msg_size ? DAPX_STATUS_LOCAL_LENGTH :
							   DAPX_STATUS_SUCCESS;
}

