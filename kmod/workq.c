// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: rings of work, which a process fills and the module empties
 *
 * An entry is copied once, into memory that the process cannot reach, and all
 * that is done is done with the copy. It needs a slot, which it keeps until its
 * completion is in an EVD's ring.
 *
 * Doorbells: when so much is in flight that the device has enough to do, the ring
 * says BUSY until it has nearly nothing left. Whoever publishes work then may go
 * on: each completion looks at the ring again, and the one after which BUSY ends
 * looks once more after it said so. A single request, or a few, never wait.
 *
 * Small requests may be done before the process publishes the next one, so that
 * little is ever in flight. But a process with unread events is not waiting for
 * these requests: then a single one is enough for BUSY. With many of them unread, BUSY
 * outlasts the last completion by as long as the device was busy, DAPX_LINGER_MAX at the
 * most. A timer then looks at what was published meanwhile, and the device gets it in
 * one go. With few, these may be all that the process had under way: it would wait for
 * the timer.
 */
#include <linux/hrtimer.h>
#include <linux/slab.h>

#include "dapx_private.h"
#include "trace.h"

/* So many times the ring's depth is taken in a row; more is left to another context. */
#define DAPX_RUN_ROUNDS 2
/* So many entries are taken at a time: softirqs are off meanwhile. */
#define DAPX_RUN_BATCH 64

/* Events that a process leaves unread while it goes on publishing. */
#define DAPX_BEHIND 4
#define DAPX_FAR_BEHIND 16

#define DAPX_LINGER_MAX (100 * NSEC_PER_USEC)

static enum hrtimer_restart dapx_workq_linger_over(struct hrtimer *timer);

u32 dapx_send_stride(u32 max_sge, u32 max_inline)
{
	u32 payload = max_t(u32, max_sge * sizeof(struct dapx_sge), max_inline);

	return ALIGN(sizeof(struct dapx_send_wr) + payload, 64);
}

u32 dapx_recv_stride(u32 max_sge)
{
	return ALIGN(sizeof(struct dapx_recv_wr) + max_sge * sizeof(struct dapx_sge), 32);
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
	/* Anything else than EINVAL is a queue pair that is not in service. */
	return error == -EINVAL ? DAPX_STATUS_LOCAL_OPERATION : DAPX_STATUS_FLUSHED;
}

static void dapx_slot_free(struct dapx_slot *slot)
{
	struct dapx_workq *wq = slot->wq;

	atomic_inc(&wq->slots_freed);
	/* A full barrier: either we see that the queue is stalled, or it sees the slot. */
	llist_add(&slot->free, &wq->free);
	if (READ_ONCE(wq->stalled))
		wq->ops->kick(wq);
}

static void dapx_slot_gone(struct dapx_event_node *node)
{
	dapx_slot_free(container_of(node, struct dapx_slot, node));
}

static struct dapx_slot *dapx_slot_get(struct dapx_workq *wq)
{
	struct llist_node *node = llist_del_first(&wq->free);

	if (!node) {
		WRITE_ONCE(wq->stalled, true);
		/* As in dapx_slot_free(). */
		smp_mb();
		node = llist_del_first(&wq->free);
	}
	if (!node)
		return NULL;
	WRITE_ONCE(wq->stalled, false);
	wq->slots_taken++;
	return llist_entry(node, struct dapx_slot, free);
}

/*
 * A completion of a slot that the device does not have. siw makes such: when a
 * connection breaks among reads, it completes some of them twice.
 */
static void dapx_slot_stray(struct ib_cq *cq, struct ib_wc *wc)
{
}

/* Before it is posted: the completion may come before the post returns. */
void dapx_slot_give(struct dapx_slot *slot)
{
	WRITE_ONCE(slot->cqe.done, slot->wq->ops->done);
	atomic_inc(&slot->wq->outstanding);
}

/* The post failed. */
void dapx_slot_keep(struct dapx_slot *slot)
{
	WRITE_ONCE(slot->cqe.done, dapx_slot_stray);
	atomic_dec(&slot->wq->outstanding);
}

/* First thing in ops->done(). The completions of a queue pair come one by one. */
void dapx_slot_returned(struct dapx_slot *slot)
{
	WRITE_ONCE(slot->cqe.done, dapx_slot_stray);
}

/*
 * First thing, for every queue. One that gets no more than this, as its endpoint has no
 * receives of its own, has the events of those that it gets from an SRQ.
 */
void dapx_workq_init_events(struct dapx_workq *wq, struct dapx_object *obj,
			    void (*barrier_gone)(struct dapx_event_node *node))
{
	wq->obj = obj;
	spin_lock_init(&wq->lock);
	dapx_event_source_init(&wq->events, obj, dapx_slot_gone);
	dapx_event_source_init(&wq->barrier_events, obj, barrier_gone);
}

/* What waits for room in @evd, the queue's; NULL: it has none. */
void dapx_workq_drop_events(struct dapx_workq *wq, struct dapx_evd *evd)
{
	if (!evd)
		return;
	dapx_evd_drop(evd, &wq->events);
	dapx_evd_drop(evd, &wq->barrier_events);
}

/* @wq->view is set. */
int dapx_workq_init(struct dapx_workq *wq, const struct dapx_workq_ops *ops, void *owner,
		    u32 max_sge, u32 max_inline)
{
	u32 depth = wq->view.depth, i;

	/* Each power of two of them is a power of two of bytes, as the allocator has them. */
	BUILD_BUG_ON(sizeof(struct dapx_slot) > 128);
	wq->ops = ops;
	wq->owner = owner;
	init_llist_head(&wq->free);
	INIT_LIST_HEAD(&wq->barriers);
	hrtimer_setup(&wq->linger, dapx_workq_linger_over, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
	wq->busy_from = clamp(depth / 2, 1, ops->busy_from);
	wq->busy_until = clamp(depth / 4, 1, ops->busy_until);
	wq->max_sge = max_sge;
	wq->max_inline = max_inline;
	wq->slots = kvcalloc(depth, sizeof(*wq->slots), GFP_KERNEL_ACCOUNT);
	wq->sges = kcalloc(max_t(u32, max_sge, 1), sizeof(*wq->sges), GFP_KERNEL_ACCOUNT);
	wq->copy = kmalloc(wq->view.stride, GFP_KERNEL_ACCOUNT);
	if (!wq->slots || !wq->sges || !wq->copy)
		goto err;
	if (max_inline) {
		/* Physically contiguous, to be mapped for the device in one piece. */
		wq->inline_data = kmalloc_array(depth, max_inline,
						GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
		if (!wq->inline_data)
			goto err;
	}
	for (i = 0; i < depth; i++) {
		struct dapx_slot *slot = &wq->slots[i];

		slot->cqe.done = dapx_slot_stray;
		slot->wq = wq;
		slot->node.source = &wq->events;
		llist_add(&slot->free, &wq->free);
	}
	wq->head = dapx_initial_index;
	*wq->view.head = wq->head;
	*wq->view.tail = wq->head;
	return 0;

err:
	dapx_workq_exit(wq);
	return -ENOMEM;
}

void dapx_workq_exit(struct dapx_workq *wq)
{
	kfree(wq->inline_data);
	kfree(wq->copy);
	kfree(wq->sges);
	kvfree(wq->slots);
	wq->inline_data = NULL;
	wq->copy = NULL;
	wq->sges = NULL;
	wq->slots = NULL;
}

/* The device has nothing, and no event waits: the ring starts anew, empty. */
void dapx_workq_reset(struct dapx_workq *wq)
{
	u32 i;

	spin_lock_bh(&wq->lock);
	init_llist_head(&wq->free);
	for (i = 0; i < wq->view.depth; i++)
		llist_add(&wq->slots[i].free, &wq->free);
	wq->head = READ_ONCE(*wq->view.tail);
	/* Release, as in dapx_workq_take(). */
	smp_store_release(wq->view.head, wq->head);
	atomic_set(&wq->outstanding, 0);
	wq->slots_taken = 0;
	atomic_set(&wq->slots_freed, 0);
	wq->faulty = NULL;
	wq->faulted = false;
	wq->corrupt = false;
	wq->limited = false;
	wq->stalled = false;
	wq->lingering = false;
	spin_unlock_bh(&wq->lock);
}

/* With the lock. All that was taken from the ring has ended, and no event of it waits. */
bool dapx_workq_all_ended(struct dapx_workq *wq)
{
	lockdep_assert_held(&wq->lock);
	return wq->slots_taken == (u32)atomic_read(&wq->slots_freed);
}

static void dapx_workq_set_flags(struct dapx_workq *wq, bool busy)
{
	u32 flags = 0;

	if (busy)
		flags |= DAPX_RING_BUSY;
	if (wq->corrupt || wq->mode == DAPX_WORKQ_STOP)
		flags |= DAPX_RING_DEAD;
	wq->busy = busy;
	WRITE_ONCE(*wq->view.flags, flags);
}

/* The mode follows from the owner's state, which was changed before this call. */
void dapx_workq_update_mode(struct dapx_workq *wq)
{
	if (!wq->ops)
		return;
	spin_lock_bh(&wq->lock);
	wq->mode = wq->ops->mode(wq);
	if (wq->mode == DAPX_WORKQ_RUN && (wq->faulted || wq->corrupt))
		wq->mode = DAPX_WORKQ_FLUSH;
	if (wq->mode == DAPX_WORKQ_FLUSH)
		wq->limited = false;
	dapx_workq_set_flags(wq, wq->busy);
	spin_unlock_bh(&wq->lock);
}

/* Ends a request; without an EVD, or for success that nobody asked for, silently. */
void dapx_workq_complete(struct dapx_slot *slot, struct dapx_evd *evd, enum dapx_status status)
{
	slot->node.event.completion.status = status;
	trace_dapx_complete(slot->node.source->owner, &slot->node.event);
	if (evd && (slot->signaled || status != DAPX_STATUS_SUCCESS))
		dapx_evd_post(evd, &slot->node);
	else
		dapx_slot_free(slot);
}

/* Moves the head on; the owner has what it needs of the entry. */
static enum dapx_status dapx_workq_copy(struct dapx_workq *wq, struct dapx_slot *slot)
{
	enum dapx_status status = DAPX_STATUS_FLUSHED;

	/* Once, then only the copy is looked at: the process may write on. */
	memcpy(wq->copy, dapx_ring_entry(&wq->view, wq->head), wq->view.stride);
	barrier();
	wq->ops->prepare(wq, slot);
	if (wq->mode != DAPX_WORKQ_FLUSH)
		status = wq->ops->post(wq, slot);
	trace_dapx_post(wq->obj, wq->head, slot->node.event.completion.wr_id, status);
	wq->head++;
	WRITE_ONCE(wq->taken, wq->taken + 1);
	/* Release: the copy is made before the process may write the next entry here. */
	smp_store_release(wq->view.head, wq->head);
	return status;
}

static void dapx_workq_take(struct dapx_workq *wq, struct dapx_slot *slot)
{
	enum dapx_status status = dapx_workq_copy(wq, slot);

	if (status == DAPX_STATUS_SUCCESS)
		return;
	if (wq->mode == DAPX_WORKQ_FLUSH) {
		dapx_workq_complete(slot, wq->ops->evd(wq), status);
		return;
	}
	/* Its completion comes behind those of the requests before it. */
	slot->node.event.completion.status = status;
	wq->faulty = slot;
	wq->faulted = true;
	wq->mode = DAPX_WORKQ_FLUSH;
}

static struct dapx_barrier *dapx_workq_first_barrier(struct dapx_workq *wq)
{
	return list_first_entry_or_null(&wq->barriers, struct dapx_barrier, entry);
}

/* All that is before @index is done. */
static bool dapx_workq_at(struct dapx_workq *wq, u32 index)
{
	return wq->head == index && !wq->passing && !wq->faulty &&
	       (wq->mode == DAPX_WORKQ_RUN || wq->mode == DAPX_WORKQ_FLUSH) &&
	       !atomic_read(&wq->outstanding);
}

static bool dapx_workq_at_barrier(struct dapx_workq *wq)
{
	struct dapx_barrier *barrier = dapx_workq_first_barrier(wq);

	return barrier && dapx_workq_at(wq, barrier->index);
}

/* How a barrier ends here. What was before it may have failed a moment ago: the mode lags. */
static enum dapx_status dapx_workq_pass_status(struct dapx_workq *wq)
{
	return wq->mode == DAPX_WORKQ_RUN && wq->ops->mode(wq) == DAPX_WORKQ_RUN ?
	       DAPX_STATUS_SUCCESS : DAPX_STATUS_FLUSHED;
}

/* What is published, from the shadow head on, and may be taken. */
static u32 dapx_workq_tail(struct dapx_workq *wq)
{
	/* Acquire: the entries before it are read after it. */
	u32 tail = smp_load_acquire(wq->view.tail);
	struct dapx_barrier *barrier;

	if (tail - wq->head > wq->view.depth)
		wq->corrupt = true;
	else if (wq->limited && (s32)(tail - wq->limit) > 0)
		tail = wq->limit;
	barrier = dapx_workq_first_barrier(wq);
	if (barrier && (s32)(tail - barrier->index) > 0)
		tail = barrier->index;
	return tail;
}

/* The process has this many events to read of what it published. */
static bool dapx_workq_behind(struct dapx_workq *wq, u32 events)
{
	struct dapx_evd *evd = wq->ops->evd(wq);

	return evd && READ_ONCE(evd->unread) >= events;
}

/* Whether what is published from now on is looked at without a doorbell. */
static bool dapx_workq_has_next_look(struct dapx_workq *wq)
{
	u32 outstanding = atomic_read(&wq->outstanding);

	/* When an event finds room. */
	if (wq->stalled)
		return true;
	if (wq->mode == DAPX_WORKQ_HOLD)
		return wq->ops->hold_is_busy;
	if (wq->mode != DAPX_WORKQ_RUN)
		return false;
	/* When it is passed. */
	if (!list_empty(&wq->barriers))
		return true;
	if (outstanding >= (wq->busy ? wq->busy_until : wq->busy_from))
		return true;
	if (!wq->ops->lingers)
		return false;
	if (outstanding)
		return dapx_workq_behind(wq, DAPX_BEHIND);
	if (!wq->lingering && wq->busy && dapx_workq_behind(wq, DAPX_FAR_BEHIND) &&
	    hrtimer_resolution < DAPX_LINGER_MAX) {
		wq->lingering = true;
		hrtimer_start(&wq->linger,
			      min_t(ktime_t, ktime_get() - wq->busy_since, DAPX_LINGER_MAX),
			      HRTIMER_MODE_REL_SOFT);
	}
	return wq->lingering;
}

/* Returns whether a fault came to light. @more: to be called again. */
static bool dapx_workq_run_locked(struct dapx_workq *wq, bool *more)
{
	bool fault = false, busy;
	struct dapx_slot *slot;
	u32 tail, taken = 0;

	*more = false;
	for (;;) {
		if (wq->mode == DAPX_WORKQ_STOP || wq->corrupt)
			return fault;
		if (taken == DAPX_RUN_BATCH) {
			*more = true;
			return fault;
		}
		tail = dapx_workq_tail(wq);
		if (wq->corrupt) {
			dapx_workq_set_flags(wq, false);
			return true;
		}
		while (wq->mode != DAPX_WORKQ_HOLD) {
			if (wq->mode == DAPX_WORKQ_FLUSH) {
				if (atomic_read(&wq->outstanding))
					break;
				slot = wq->faulty;
				if (slot) {
					wq->faulty = NULL;
					fault = true;
					dapx_workq_complete(slot, wq->ops->evd(wq),
							    slot->node.event.completion.status);
				}
			}
			if (wq->head == tail || taken == DAPX_RUN_BATCH)
				break;
			slot = dapx_slot_get(wq);
			if (!slot)
				break;
			dapx_workq_take(wq, slot);
			taken++;
			if (wq->faulty && wq->ops->fault_at_once)
				fault = true;
		}
		if (wq->ops->posted)
			wq->ops->posted(wq);
		if (wq->corrupt) {
			dapx_workq_set_flags(wq, false);
			return true;
		}

		if (wq->head != tail && taken == DAPX_RUN_BATCH)
			continue;
		if (dapx_workq_at_barrier(wq))
			wq->ops->at_barrier(wq);
		busy = dapx_workq_has_next_look(wq);
		if (busy == wq->busy)
			return fault;
		if (busy && wq->ops->lingers)
			wq->busy_since = ktime_get();
		dapx_workq_set_flags(wq, busy);
		if (busy)
			return fault;
		/*
		 * The process publishes, then reads the flags; we wrote the flags, now
		 * read what is published. One of us sees the other.
		 */
		smp_mb();
	}
}

/* Looks at the ring. EBADMSG: its indices are impossible. */
int dapx_workq_run(struct dapx_workq *wq)
{
	bool fault = false, corrupt, more, may_stay;
	u32 batches = 0;

	if (!wq->ops)
		return 0;
	may_stay = !in_softirq() && !irqs_disabled();
	do {
		spin_lock_bh(&wq->lock);
		fault |= dapx_workq_run_locked(wq, &more);
		/* A process that publishes as fast as we take must not hold us here. */
		if (more && (!may_stay || ++batches > DAPX_RUN_ROUNDS *
			     DIV_ROUND_UP(wq->view.depth, DAPX_RUN_BATCH))) {
			dapx_workq_set_flags(wq, true);
			wq->ops->kick(wq);
			more = false;
		}
		corrupt = wq->corrupt;
		spin_unlock_bh(&wq->lock);
	} while (more);
	if (fault && wq->ops->fault)
		wq->ops->fault(wq);
	return corrupt ? -EBADMSG : 0;
}

/*
 * For owners that take one entry when they need it, and keep the queue in mode HOLD.
 * NULL: there is none, or no room for its completion. @left: how many are behind it.
 */
struct dapx_slot *dapx_workq_pull(struct dapx_workq *wq, enum dapx_status *status, u32 *left)
{
	struct dapx_slot *slot = NULL;
	u32 tail;

	*status = DAPX_STATUS_RECEIVER_NOT_READY;
	spin_lock_bh(&wq->lock);
	if (wq->mode != DAPX_WORKQ_HOLD || wq->corrupt)
		goto out;
	tail = dapx_workq_tail(wq);
	if (!wq->corrupt && tail != wq->head)
		slot = dapx_slot_get(wq);
	if (slot) {
		*status = dapx_workq_copy(wq, slot);
		*left = tail - wq->head;
	}
	if (wq->corrupt)
		dapx_workq_set_flags(wq, false);
out:
	if (wq->corrupt)
		*status = DAPX_STATUS_LOCAL_OPERATION;
	spin_unlock_bh(&wq->lock);
	return slot;
}

static enum hrtimer_restart dapx_workq_linger_over(struct hrtimer *timer)
{
	struct dapx_workq *wq = container_of(timer, struct dapx_workq, linger);

	spin_lock_bh(&wq->lock);
	wq->lingering = false;
	wq->busy_since = ktime_get();
	/* In vain: not again before the process has rung. */
	if (READ_ONCE(*wq->view.tail) == wq->head && !atomic_read(&wq->outstanding)) {
		dapx_workq_set_flags(wq, false);
		/* As in dapx_workq_run_locked(). */
		smp_mb();
	}
	spin_unlock_bh(&wq->lock);
	dapx_workq_run(wq);
	return HRTIMER_NORESTART;
}

/* In mode STOP: when this returns, no timer looks at the ring any more. */
void dapx_workq_quiesce(struct dapx_workq *wq)
{
	hrtimer_cancel(&wq->linger);
}

/* From now on nothing more is taken than what is published now; or as before. */
void dapx_workq_limit(struct dapx_workq *wq, bool limited)
{
	u32 tail;

	spin_lock_bh(&wq->lock);
	tail = READ_ONCE(*wq->view.tail);
	/* Impossible indices are for dapx_workq_run() to find. */
	wq->limit = tail - wq->head > wq->view.depth ? wq->head : tail;
	wq->limited = limited;
	spin_unlock_bh(&wq->lock);
}

/* A barrier would be passed at once, and well: nothing that is published now is before it. */
bool dapx_workq_is_clear(struct dapx_workq *wq)
{
	bool clear;

	spin_lock_bh(&wq->lock);
	clear = list_empty(&wq->barriers) && dapx_workq_at(wq, READ_ONCE(*wq->view.tail)) &&
		dapx_workq_pass_status(wq) == DAPX_STATUS_SUCCESS;
	spin_unlock_bh(&wq->lock);
	return clear;
}

/*
 * It stands behind what is published now. Who called looks whether it can be passed
 * at once, and runs the queue if not.
 */
void dapx_workq_add_barrier(struct dapx_workq *wq, struct dapx_barrier *barrier)
{
	u32 tail, from;

	spin_lock_bh(&wq->lock);
	tail = READ_ONCE(*wq->view.tail);
	from = list_empty(&wq->barriers) ? wq->head :
	       list_last_entry(&wq->barriers, struct dapx_barrier, entry)->index;
	/* Impossible indices are for dapx_workq_run() to find. */
	barrier->index = tail - wq->head > wq->view.depth || (s32)(tail - from) < 0 ? from : tail;
	list_add_tail(&barrier->entry, &wq->barriers);
	wq->num_barriers++;
	spin_unlock_bh(&wq->lock);
}

/* The barrier that is to be passed now, for one caller; @status: how it ends. */
struct dapx_barrier *dapx_workq_claim_barrier(struct dapx_workq *wq, enum dapx_status *status)
{
	struct dapx_barrier *barrier = NULL;

	spin_lock_bh(&wq->lock);
	if (dapx_workq_at_barrier(wq)) {
		barrier = dapx_workq_first_barrier(wq);
		wq->passing = true;
		*status = dapx_workq_pass_status(wq);
	}
	spin_unlock_bh(&wq->lock);
	return barrier;
}

/* What it stood for is done. Its event comes before any of what was behind it. */
void dapx_workq_pass_barrier(struct dapx_workq *wq, struct dapx_barrier *barrier,
			     enum dapx_status status)
{
	struct dapx_evd *evd;

	spin_lock_bh(&wq->lock);
	list_del(&barrier->entry);
	wq->num_barriers--;
	wq->passing = false;
	barrier->node.event.completion.status = status;
	trace_dapx_complete(wq->obj, &barrier->node.event);
	evd = wq->ops->evd(wq);
	if (evd && (barrier->signaled || status != DAPX_STATUS_SUCCESS))
		dapx_evd_post(evd, &barrier->node);
	else
		barrier->node.source->gone(&barrier->node);
	spin_unlock_bh(&wq->lock);
	dapx_workq_run(wq);
}

/* In mode STOP, and nobody passes one: the next that never will be; NULL: there is none. */
struct dapx_barrier *dapx_workq_drop_barrier(struct dapx_workq *wq)
{
	struct dapx_barrier *barrier;

	spin_lock_bh(&wq->lock);
	barrier = dapx_workq_first_barrier(wq);
	if (barrier) {
		list_del(&barrier->entry);
		wq->num_barriers--;
	}
	spin_unlock_bh(&wq->lock);
	return barrier;
}

/* All that was to be taken is taken, and the device has done it. */
bool dapx_workq_idle(struct dapx_workq *wq)
{
	bool idle;

	spin_lock_bh(&wq->lock);
	idle = !atomic_read(&wq->outstanding) && !wq->faulty && list_empty(&wq->barriers) &&
	       (!wq->limited || wq->head == wq->limit);
	spin_unlock_bh(&wq->lock);
	return idle;
}

/* The device is done with one request. In softirq, after its completion. */
void dapx_workq_retire(struct dapx_workq *wq)
{
	u32 left = atomic_dec_return(&wq->outstanding);

	/*
	 * Without BUSY the process rings the doorbell; with it, and more in flight, a
	 * later completion comes here. The last one also ends a flush or a stall.
	 */
	if (!left || (READ_ONCE(wq->busy) &&
		      (left < wq->busy_until ||
		       READ_ONCE(*wq->view.tail) != READ_ONCE(wq->head))))
		dapx_workq_run(wq);
}

void dapx_recv_prepare(struct dapx_workq *wq, struct dapx_slot *slot)
{
	const struct dapx_recv_wr *in = wq->copy;

	slot->signaled = true;
	slot->node.solicited = true;
	slot->node.source = &wq->events;
	slot->node.event = (struct dapx_event) {
		.type = DAPX_EVENT_COMPLETION,
		.handle = wq->obj->handle,
		.user_data = wq->obj->user_data,
		.completion = { .wr_id = in->wr_id, .opcode = DAPX_OP_RECV },
	};
}

/*
 * Puts keys to segments, in wq->sges. Empty ones are checked and left out: to some
 * devices a length of 0 means 2 GiB.
 */
enum dapx_status dapx_segments_build(struct dapx_workq *wq, struct dapx_pd *pd, u32 num_sge,
				     const struct dapx_sge *sge, bool write, u32 *num_out,
				     u64 *length)
{
	u32 i, n = 0;

	*length = 0;
	if (num_sge > wq->max_sge)
		return DAPX_STATUS_LOCAL_OPERATION;
	for (i = 0; i < num_sge; i++) {
		if (dapx_mr_to_sge(wq->obj->ctx, pd, &sge[i], write, &wq->sges[n]))
			return DAPX_STATUS_LOCAL_PROTECTION;
		*length += sge[i].length;
		if (sge[i].length)
			n++;
	}
	*num_out = n;
	return *length > wq->obj->ctx->dev->max_msg_size ? DAPX_STATUS_LOCAL_LENGTH :
							   DAPX_STATUS_SUCCESS;
}

/* Makes a receive for the device out of the entry's copy. */
enum dapx_status dapx_recv_build(struct dapx_workq *wq, struct dapx_pd *pd,
				 struct dapx_slot *slot, struct ib_recv_wr *wr)
{
	const struct dapx_recv_wr *in = wq->copy;
	enum dapx_status status;
	u64 length;
	u32 num_sge;

	if (in->flags)
		return DAPX_STATUS_LOCAL_OPERATION;
	status = dapx_segments_build(wq, pd, in->num_sge, (const void *)(in + 1), true, &num_sge,
				     &length);
	if (status != DAPX_STATUS_SUCCESS)
		return status;
	*wr = (struct ib_recv_wr) {
		.wr_cqe = &slot->cqe,
		.sg_list = wq->sges,
		.num_sge = num_sge,
	};
	return DAPX_STATUS_SUCCESS;
}

/* A receive of @ep ended; the slot is the endpoint's or its SRQ's. */
void dapx_recv_complete(struct dapx_ep *ep, struct dapx_slot *slot, const struct ib_wc *wc)
{
	enum dapx_status status = dapx_wc_status(wc->status);
	struct dapx_event *event = &slot->node.event;

	if (status == DAPX_STATUS_SUCCESS) {
		WRITE_ONCE(ep->received_at, jiffies | 1);
		WRITE_ONCE(ep->received, ep->received + 1);
		event->completion.byte_len = wc->byte_len;
		if (wc->wc_flags & IB_WC_WITH_IMM) {
			event->completion.flags |= DAPX_COMPLETION_IMM;
			event->completion.imm_data = (__force u32)wc->ex.imm_data;
		}
		if (wc->opcode == IB_WC_RECV_RDMA_WITH_IMM)
			event->completion.opcode = DAPX_OP_RECV_RDMA_IMM;
		/* Who cares is told by dapx_ep_fetch(). */
		slot->node.solicited = !ep->recv_cq;
		/* Acquire, as in dapx_ep_connected(). */
		if (unlikely(!smp_load_acquire(&ep->established)))
			dapx_ep_message_arrived(ep);
	}
	dapx_workq_complete(slot, READ_ONCE(ep->dead) ? NULL : ep->recv_evd, status);
	dapx_ep_failed(ep, status);
}
