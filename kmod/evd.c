// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: event dispatchers: rings of events that the kernel fills
 */
#include <linux/eventfd.h>
#include <linux/hrtimer.h>
#include <linux/log2.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <net/netlink.h>

#include "queue.h"

/* The word with which the process arms the eventfd has a cache line of its own. */
#define DAPX_EVD_ARM_OFF DAPX_RING_CONTROL_SIZE
#define DAPX_EVD_ENTRIES_OFF (DAPX_EVD_ARM_OFF + DAPX_RING_LINE)

/* Events that are moved or dropped at a time, as interrupts are off meanwhile. */
#define DAPX_EVD_BATCH 64

void dapx_event_source_init(struct dapx_event_source *source, struct dapx_object *owner,
			    void (*gone)(struct dapx_event_node *node))
{
	source->owner = owner;
	source->build = NULL;
	source->gone = gone;
	source->first = NULL;
	source->last = &source->first;
}

/*
 * Returns the number of events that the process has not consumed. It exceeds the depth if the
 * process wrote nonsense to the indices.
 */
static u32 dapx_evd_count(struct dapx_evd *evd)
{
	/* Acquire: the process has read the entries before they are overwritten. */
	return evd->tail - smp_load_acquire(evd->view.head);
}

static void dapx_evd_update_flags(struct dapx_evd *evd)
{
	u32 flags = 0;

	if (!list_empty(&evd->backlog) || atomic_read(&evd->lazy_sources))
		flags |= DAPX_RING_BACKLOG;
	if (evd->dead || evd->corrupt)
		flags |= DAPX_RING_DEAD;
	WRITE_ONCE(*evd->view.flags, flags);
}

static void dapx_evd_node_gone(struct dapx_event_node *node)
{
	WRITE_ONCE(node->pending, false);
	if (node->source->gone)
		node->source->gone(node);
}

/*
 * Returns whether the indices, which the process can write, are possible. If not, the EVD goes
 * out of service.
 */
static bool dapx_evd_sane(struct dapx_evd *evd)
{
	if (!evd->corrupt && dapx_evd_count(evd) > evd->view.depth) {
		evd->corrupt = true;
		dapx_evd_update_flags(evd);
	}
	return !evd->corrupt;
}

static bool dapx_evd_has_room(struct dapx_evd *evd)
{
	return !evd->frozen && dapx_evd_sane(evd) && dapx_evd_count(evd) != evd->view.depth;
}

/* The event before the tail, or one that waits for room after it, ends waits. */
static void dapx_evd_mark(struct dapx_evd *evd, enum dapx_notify notify)
{
	if (notify >= DAPX_NOTIFY_ANY)
		evd->notify_tail = evd->tail;
	if (notify >= DAPX_NOTIFY_WAITERS)
		evd->solicited_tail = evd->tail;
}

/* The node waits for room, after all other nodes of the EVD, and so after those of its source. */
static void dapx_evd_enlist(struct dapx_evd *evd, struct dapx_event_node *node)
{
	list_add_tail(&node->entry, &evd->backlog);
	node->next = NULL;
	*node->source->last = node;
	node->source->last = &node->next;
	/* Those that wait have to make room. */
	dapx_evd_mark(evd, node->notify);
}

/*
 * The node must be the first of its source. It is: nodes are removed from the front of the
 * EVD's list, or of a source's.
 */
static void dapx_evd_delist(struct dapx_event_node *node)
{
	struct dapx_event_source *source = node->source;

	list_del(&node->entry);
	source->first = node->next;
	if (!source->first)
		source->last = &source->first;
}

static void dapx_evd_put(struct dapx_evd *evd, struct dapx_event_node *node)
{
	struct dapx_event *event = dapx_ring_entry(&evd->view, evd->tail);
	struct dapx_stored_event *stored = NULL;

	if (node->source->build) {
		node->source->build(node, event);
	} else {
		stored = container_of(node, struct dapx_stored_event, node);
		*event = stored->event;
	}
	evd->tail++;
	dapx_evd_mark(evd, node->notify);
	/* Release: the entry is there before the index says so. */
	smp_store_release(evd->view.tail, evd->tail);
	if (stored && stored->again) {
		stored->again--;
		dapx_evd_enlist(evd, node);
	} else {
		dapx_evd_node_gone(node);
	}
}

/*
 * Moves waiting events into the ring while there is room, up to a batch. Returns whether more
 * could be moved.
 */
static bool dapx_evd_flush_some(struct dapx_evd *evd)
{
	struct dapx_event_node *node;
	unsigned int n;

	lockdep_assert_held(&evd->lock);
	if (list_empty(&evd->backlog))
		return false;
	for (n = 0; n < DAPX_EVD_BATCH && dapx_evd_has_room(evd); n++) {
		node = list_first_entry_or_null(&evd->backlog, struct dapx_event_node, entry);
		if (!node)
			break;
		dapx_evd_delist(node);
		dapx_evd_put(evd, node);
	}
	dapx_evd_update_flags(evd);
	return n == DAPX_EVD_BATCH && !list_empty(&evd->backlog);
}

/*
 * Moves all waiting events for which there is room. For commands: the lock is dropped in
 * between.
 */
static void dapx_evd_flush(struct dapx_evd *evd, unsigned long *flags)
{
	while (dapx_evd_flush_some(evd) && !fatal_signal_pending(current)) {
		spin_unlock_irqrestore(&evd->lock, *flags);
		cond_resched();
		spin_lock_irqsave(&evd->lock, *flags);
	}
}

static void dapx_evd_wake(struct dapx_evd *evd)
{
	/* A waiter queues itself before it looks at the ring for the last time. */
	if (wq_has_sleeper(&evd->wait))
		wake_up_all(&evd->wait);
}

/*
 * A completion is about to be delivered. Waking a sleeping thread takes longer than that, so
 * the wake-up begins here. If the thread looks too early, it goes back to sleep. Any context.
 */
void dapx_evd_expect(struct dapx_evd *evd)
{
	dapx_evd_wake(evd);
}

static u32 *dapx_evd_arm_word(const struct dapx_ring *ring)
{
	return ring->va + DAPX_EVD_ARM_OFF;
}

/* Returns what the process has armed the ring for: enum dapx_arm, or 0. */
static u32 dapx_evd_armed(struct dapx_evd *evd)
{
	u32 armed;

	lockdep_assert_held(&evd->lock);
	/*
	 * The process arms, then looks for events; the module publishes the event, then looks
	 * whether the process armed. At least one of them sees the other's write.
	 */
	smp_mb();
	armed = READ_ONCE(*dapx_evd_arm_word(evd->ring));
	if (armed)
		evd->solicited_only = armed == DAPX_ARM_SOLICITED;
	return armed;
}

/*
 * Signals the eventfd for an event that is in the ring, or in the backlog, which the ring's
 * flags report.
 */
static void dapx_evd_signal(struct dapx_evd *evd, enum dapx_notify notify)
{
	u32 armed;

	lockdep_assert_held(&evd->lock);
	if (!evd->eventfd || notify == DAPX_NOTIFY_NONE)
		return;
	if (evd->eventfd_once) {
		armed = dapx_evd_armed(evd);
		if (!armed || (armed == DAPX_ARM_SOLICITED && notify != DAPX_NOTIFY_ALL))
			return;
		/* Before the signal, as a process that is signalled may arm again at once. */
		WRITE_ONCE(*dapx_evd_arm_word(evd->ring), 0);
	}
	eventfd_signal(evd->eventfd);
}

/* With evd->lock. A node that is already waiting for room keeps its place. */
static void dapx_evd_post_locked(struct dapx_evd *evd, struct dapx_event_node *node)
{
	/* Once the event is in the ring, the node may be in use again. */
	enum dapx_notify notify = node->notify;

	if (node->pending)
		return;
	if (evd->dead) {
		dapx_evd_node_gone(node);
		return;
	}
	WRITE_ONCE(node->pending, true);
	WRITE_ONCE(evd->events, evd->events + 1);
	if (list_empty(&evd->backlog) && dapx_evd_has_room(evd)) {
		dapx_evd_put(evd, node);
	} else {
		dapx_evd_enlist(evd, node);
		dapx_evd_update_flags(evd);
		/*
		 * The process moves the head, then reads the flags; the module writes the
		 * flags, then reads the head. At least one of them sees the other's write.
		 */
		smp_mb();
		dapx_evd_flush_some(evd);
	}
	WRITE_ONCE(evd->unread, dapx_evd_count(evd));
	dapx_evd_signal(evd, notify);
}

/*
 * Delivers an event, now or when there is room. The EVD owns the node until it calls the
 * source's gone().
 */
void dapx_evd_post(struct dapx_evd *evd, struct dapx_event_node *node)
{
	enum dapx_notify notify = node->notify;
	unsigned long flags;

	spin_lock_irqsave(&evd->lock, flags);
	dapx_evd_post_locked(evd, node);
	spin_unlock_irqrestore(&evd->lock, flags);
	if (notify != DAPX_NOTIFY_NONE)
		dapx_evd_wake(evd);
}

/*
 * Delivers an asynchronous event. If it is still waiting for room, it is delivered as often as
 * it happened. Another event, which is a later state of the same thing, replaces those that
 * wait.
 */
void dapx_evd_post_async(struct dapx_evd *evd, struct dapx_stored_event *stored,
			 const struct dapx_event *event)
{
	unsigned long flags;

	spin_lock_irqsave(&evd->lock, flags);
	if (stored->node.pending && !memcmp(&stored->event, event, sizeof(*event))) {
		stored->again++;
		WRITE_ONCE(evd->events, evd->events + 1);
		dapx_evd_signal(evd, DAPX_NOTIFY_ALL);
	} else {
		stored->again = 0;
		stored->event = *event;
		stored->node.notify = DAPX_NOTIFY_ALL;
		dapx_evd_post_locked(evd, &stored->node);
	}
	spin_unlock_irqrestore(&evd->lock, flags);
	dapx_evd_wake(evd);
}

/* Drops a batch of waiting events. Returns whether some may be left. */
static bool dapx_evd_drop_some(struct dapx_evd *evd, struct dapx_event_source *source)
{
	struct dapx_event_node *node;
	unsigned int n;

	lockdep_assert_held(&evd->lock);
	for (n = 0; n < DAPX_EVD_BATCH; n++) {
		node = source ? source->first :
		       list_first_entry_or_null(&evd->backlog, struct dapx_event_node, entry);
		if (!node)
			break;
		dapx_evd_delist(node);
		dapx_evd_node_gone(node);
	}
	dapx_evd_update_flags(evd);
	return n == DAPX_EVD_BATCH;
}

/*
 * Drops the waiting events of a source that posts no more, or those of all sources (@source
 * NULL) if the EVD is dead.
 */
void dapx_evd_drop(struct dapx_evd *evd, struct dapx_event_source *source)
{
	unsigned long flags;
	bool more;

	do {
		spin_lock_irqsave(&evd->lock, flags);
		more = dapx_evd_drop_some(evd, source);
		spin_unlock_irqrestore(&evd->lock, flags);
	} while (more);
}

static void dapx_evd_fetch_lazy(struct dapx_evd *evd);

static int dapx_evd_doorbell(struct dapx_object *obj, u32 doorbells)
{
	struct dapx_evd *evd = to_dapx_evd(obj);
	unsigned long flags;
	int ret;

	if (atomic_read(&evd->lazy_sources))
		dapx_evd_fetch_lazy(evd);
	spin_lock_irqsave(&evd->lock, flags);
	dapx_evd_flush(evd, &flags);
	ret = dapx_evd_sane(evd) ? 0 : -EBADMSG;
	spin_unlock_irqrestore(&evd->lock, flags);
	/* Another thread may wait for the events that were moved into the ring. */
	dapx_evd_wake(evd);
	return ret;
}

static void dapx_evd_count_lazy(struct dapx_evd *evd, int change)
{
	unsigned long flags;

	spin_lock_irqsave(&evd->lock, flags);
	atomic_add(change, &evd->lazy_sources);
	dapx_evd_update_flags(evd);
	spin_unlock_irqrestore(&evd->lock, flags);
}

void dapx_evd_add_lazy(struct dapx_evd *evd, struct dapx_lazy_source *source)
{
	mutex_lock(&evd->lazy_lock);
	list_add_tail(&source->entry, &evd->lazy);
	dapx_evd_count_lazy(evd, 1);
	mutex_unlock(&evd->lazy_lock);
}

/* When this returns, fetch() is not running, and is not called again. */
void dapx_evd_del_lazy(struct dapx_evd *evd, struct dapx_lazy_source *source)
{
	mutex_lock(&evd->lazy_lock);
	list_del(&source->entry);
	dapx_evd_count_lazy(evd, -1);
	mutex_unlock(&evd->lazy_lock);
}

/*
 * Returns whether solicited events alone are not enough: a thread waits for any event, or the
 * eventfd is signalled for any. While the ring is not armed, what it was armed for last counts.
 */
bool dapx_evd_wants_any(struct dapx_evd *evd)
{
	unsigned long flags;
	bool signals_any;

	spin_lock_irqsave(&evd->lock, flags);
	dapx_evd_armed(evd);
	signals_any = evd->eventfd && !(evd->eventfd_once && evd->solicited_only);
	spin_unlock_irqrestore(&evd->lock, flags);
	return signals_any || atomic_read(&evd->any_waiters);
}

/*
 * Events that were delivered so far wake threads that wait for solicited events, and signal if
 * the ring is armed for these. If the process has read all of them, it has seen those, too.
 */
void dapx_evd_wake_solicited(struct dapx_evd *evd)
{
	unsigned long flags;

	spin_lock_irqsave(&evd->lock, flags);
	evd->solicited_tail = evd->tail;
	if (dapx_evd_armed(evd) == DAPX_ARM_SOLICITED &&
	    (dapx_evd_count(evd) || !list_empty(&evd->backlog)))
		dapx_evd_signal(evd, DAPX_NOTIFY_ALL);
	spin_unlock_irqrestore(&evd->lock, flags);
	dapx_evd_wake(evd);
}

static void dapx_evd_fetch_lazy(struct dapx_evd *evd)
{
	struct dapx_lazy_source *source;

	mutex_lock(&evd->lazy_lock);
	list_for_each_entry(source, &evd->lazy, entry)
		source->fetch(source, evd);
	mutex_unlock(&evd->lazy_lock);
}

static void dapx_evd_device_removed(struct dapx_object *obj)
{
	struct dapx_evd *evd = to_dapx_evd(obj);
	struct dapx_event event = {
		.type = DAPX_EVENT_ASYNC,
		.async.what = DAPX_ASYNC_DEVICE_REMOVED,
	};

	dapx_evd_post_async(evd, &evd->removed, &event);
}

/* ib_core calls this in process context. */
void dapx_evds_port_event(struct dapx_device *dev, u32 what, u32 port)
{
	struct dapx_event event = {
		.type = DAPX_EVENT_ASYNC,
		.async = { .what = what, .port = port },
	};
	struct dapx_evd *evd;

	if (!rdma_is_port_valid(dev->ibdev, port))
		return;
	mutex_lock(&dev->async_lock);
	list_for_each_entry(evd, &dev->async_evds, async_entry)
		dapx_evd_post_async(evd, &evd->ports[port - 1], &event);
	mutex_unlock(&dev->async_lock);
}

static int dapx_evd_ring_create(struct dapx_context *ctx, u32 depth, struct dapx_ring **ring,
				struct dapx_ring_view *view, struct dapx_ring_layout *layout)
{
	struct dapx_ring *new;

	if (!depth || depth > dapx_max_ring_depth)
		return -EINVAL;
	depth = roundup_pow_of_two(depth);
	new = dapx_ring_create(ctx, DAPX_EVD_ENTRIES_OFF +
			       (size_t)depth * sizeof(struct dapx_event));
	if (IS_ERR(new))
		return PTR_ERR(new);
	*ring = new;
	dapx_ring_view_init(view, new, 0, DAPX_EVD_ENTRIES_OFF, depth,
			    sizeof(struct dapx_event), layout);
	layout->arm_off = DAPX_EVD_ARM_OFF;
	return 0;
}

static int dapx_evd_init_ports(struct dapx_evd *evd)
{
	u32 ports = rdma_end_port(evd->obj.ctx->dev->ibdev), i;

	evd->ports = kcalloc(ports, sizeof(*evd->ports), GFP_KERNEL_ACCOUNT);
	if (!evd->ports)
		return -ENOMEM;
	for (i = 0; i < ports; i++)
		evd->ports[i].node.source = &evd->own;
	return 0;
}

int dapx_cmd_evd_create(struct dapx_ucmd *ucmd)
{
	struct dapx_evd_create *cmd = ucmd->cmd;
	struct dapx_context *ctx = ucmd->ctx;
	struct dapx_object *obj;
	struct dapx_evd *evd;
	int ret;

	if (cmd->flags & ~DAPX_EVD_ASYNC)
		return -EOPNOTSUPP;
	if (cmd->__reserved || cmd->__reserved2)
		return -EINVAL;

	obj = dapx_object_alloc(ctx, &dapx_evd_class);
	if (IS_ERR(obj))
		return PTR_ERR(obj);
	evd = to_dapx_evd(obj);
	mutex_init(&evd->lazy_lock);
	INIT_LIST_HEAD(&evd->lazy);
	spin_lock_init(&evd->lock);
	INIT_LIST_HEAD(&evd->backlog);
	init_waitqueue_head(&evd->wait);
	dapx_event_source_init(&evd->own, obj, NULL);
	evd->removed.node.source = &evd->own;
	evd->obj.user_data = cmd->user_data;
	ret = cmd->flags & DAPX_EVD_ASYNC ? dapx_evd_init_ports(evd) : 0;
	if (ret)
		goto err_abort;
	ret = dapx_evd_ring_create(ctx, cmd->depth, &evd->ring, &evd->view, &cmd->out_ring);
	if (ret)
		goto err_abort;
	evd->tail = dapx_initial_index;
	evd->notify_tail = evd->tail;
	evd->solicited_tail = evd->tail;
	*evd->view.head = evd->tail;
	*evd->view.tail = evd->tail;

	cmd->out_evd = obj->handle;
	ret = dapx_respond(ucmd);
	if (ret)
		goto err_ring;
	if (evd->ports) {
		mutex_lock(&ctx->dev->async_lock);
		list_add_tail(&evd->async_entry, &ctx->dev->async_evds);
		mutex_unlock(&ctx->dev->async_lock);
	}
	dapx_object_publish(obj);
	return 0;

err_ring:
	dapx_ring_destroy(evd->ring);
	evd->ring = NULL;
err_abort:
	dapx_object_abort(obj);
	return ret;
}

static void dapx_evd_destroy(struct dapx_object *obj)
{
	struct dapx_evd *evd = to_dapx_evd(obj);
	struct dapx_device *dev = obj->ctx->dev;

	if (evd->ports) {
		mutex_lock(&dev->async_lock);
		list_del(&evd->async_entry);
		mutex_unlock(&dev->async_lock);
	}
	spin_lock_irq(&evd->lock);
	evd->dead = true;
	spin_unlock_irq(&evd->lock);
	dapx_evd_drop(evd, NULL);
	wake_up_all(&evd->wait);
}

static void dapx_evd_release(struct dapx_object *obj)
{
	struct dapx_evd *evd = to_dapx_evd(obj);

	if (evd->eventfd)
		eventfd_ctx_put(evd->eventfd);
	dapx_ring_destroy(evd->ring);
	kfree(evd->ports);
}

static int dapx_evd_fill(struct dapx_object *obj, struct sk_buff *skb)
{
	struct dapx_evd *evd = to_dapx_evd(obj);
	u32 depth, unread;
	bool waiting;

	/* A resize changes the ring. */
	spin_lock_irq(&evd->lock);
	depth = evd->view.depth;
	unread = min(dapx_evd_count(evd), depth);
	waiting = !list_empty(&evd->backlog);
	spin_unlock_irq(&evd->lock);
	if (nla_put_u32(skb, DAPX_OBJECT_ATTR_DEPTH, depth) ||
	    nla_put_u32(skb, DAPX_OBJECT_ATTR_UNREAD, unread) ||
	    (waiting && nla_put_flag(skb, DAPX_OBJECT_ATTR_FULL)) ||
	    nla_put_u64_64bit(skb, DAPX_OBJECT_ATTR_EVENTS, READ_ONCE(evd->events),
			      DAPX_OBJECT_ATTR_PAD))
		return -EMSGSIZE;
	return 0;
}

const struct dapx_object_class dapx_evd_class = {
	.type = DAPX_OBJECT_EVD,
	.size = sizeof(struct dapx_evd),
	.rcu = true,
	.doorbells = DAPX_DOORBELL_EVENTS,
	.doorbell = dapx_evd_doorbell,
	.device_removed = dapx_evd_device_removed,
	.destroy = dapx_evd_destroy,
	.release = dapx_evd_release,
	.fill = dapx_evd_fill,
};

/*
 * Returns 0 or an error if the wait is over, or 1 to go on waiting. @cmd->out_events is set in
 * any case.
 */
static int dapx_evd_wait_done(struct dapx_evd *evd, struct dapx_evd_wait *cmd)
{
	unsigned long flags;
	u32 count, wanted, notified;
	bool dead, sane;

	spin_lock_irqsave(&evd->lock, flags);
	dapx_evd_flush(evd, &flags);
	sane = dapx_evd_sane(evd);
	count = dapx_evd_count(evd);
	notified = cmd->flags & DAPX_WAIT_SOLICITED ? evd->solicited_tail : evd->notify_tail;
	wanted = notified - (evd->tail - count);
	dead = evd->dead;
	spin_unlock_irqrestore(&evd->lock, flags);

	cmd->out_events = count;
	if (!sane)
		return -EBADMSG;
	/* More than @count: the last event that ends a wait has been consumed. */
	if (wanted >= cmd->threshold && wanted <= count)
		return 0;
	if (dead)
		return READ_ONCE(evd->obj.ctx->dead) ? -EIO : -ECANCELED;
	return 1;
}

int dapx_cmd_evd_wait(struct dapx_ucmd *ucmd)
{
	struct dapx_evd_wait *cmd = ucmd->cmd;
	struct dapx_context *ctx = ucmd->ctx;
	DEFINE_WAIT(wait);
	struct dapx_evd *evd;
	ktime_t deadline;
	int ret, err;

	if (cmd->flags & ~DAPX_WAIT_SOLICITED)
		return -EOPNOTSUPP;
	if (cmd->__reserved)
		return -EINVAL;
	evd = dapx_get_evd(ctx, cmd->evd);
	if (IS_ERR(evd))
		return PTR_ERR(evd);
	if (!cmd->threshold || cmd->threshold > READ_ONCE(evd->view.depth) ||
	    (cmd->flags & DAPX_WAIT_SOLICITED && cmd->threshold != 1)) {
		ret = -EINVAL;
		goto out;
	}
	if (!(cmd->flags & DAPX_WAIT_SOLICITED)) {
		atomic_inc(&evd->any_waiters);
		if (atomic_read(&evd->lazy_sources))
			dapx_evd_fetch_lazy(evd);
	}
	deadline = cmd->deadline > KTIME_MAX ? KTIME_MAX : ns_to_ktime(cmd->deadline);

	/*
	 * The thread sleeps outside of the context, so that the context can be torn down. The
	 * memory of the EVD stays, and its destruction wakes the thread.
	 */
	dapx_context_leave(ucmd);
	for (;;) {
		prepare_to_wait(&evd->wait, &wait, TASK_INTERRUPTIBLE);
		ret = dapx_evd_wait_done(evd, cmd);
		if (ret <= 0)
			break;
		if (signal_pending(current)) {
			ret = -EINTR;
			break;
		}
		if (!schedule_hrtimeout(deadline == KTIME_MAX ? NULL : &deadline,
					HRTIMER_MODE_ABS)) {
			ret = dapx_evd_wait_done(evd, cmd);
			if (ret > 0)
				ret = -ETIMEDOUT;
			break;
		}
	}
	finish_wait(&evd->wait, &wait);
	if (!(cmd->flags & DAPX_WAIT_SOLICITED))
		atomic_dec(&evd->any_waiters);
	if (!ret || ret == -ETIMEDOUT || ret == -EINTR) {
		err = dapx_respond(ucmd);
		if (err)
			ret = err;
	}
out:
	dapx_object_put(&evd->obj);
	return ret;
}

int dapx_cmd_evd_resize(struct dapx_ucmd *ucmd)
{
	struct dapx_evd_resize *cmd = ucmd->cmd;
	struct dapx_ring *ring, *old_ring;
	struct dapx_ring_view view, old;
	struct dapx_evd *evd;
	unsigned long flags;
	u32 tail, count, left, i;
	int ret;

	if (cmd->flags)
		return -EOPNOTSUPP;
	evd = dapx_get_evd(ucmd->ctx, cmd->evd);
	if (IS_ERR(evd))
		return PTR_ERR(evd);
	mutex_lock(&evd->obj.mutex);
	ret = dapx_evd_ring_create(ucmd->ctx, cmd->depth, &ring, &view, &cmd->out_ring);
	if (ret)
		goto out;

	/*
	 * From here until the switch no event enters the ring, so it can be copied without the
	 * lock. The response is written before the switch: if that fails, the process keeps the
	 * old ring.
	 */
	spin_lock_irqsave(&evd->lock, flags);
	old = evd->view;
	tail = evd->tail;
	count = dapx_evd_count(evd);
	if (evd->dead)
		ret = -ENOENT;
	else if (!dapx_evd_sane(evd) || count > old.depth)
		ret = -EBADMSG;
	else if (count > view.depth)
		ret = -EBUSY;
	else
		evd->frozen = true;
	spin_unlock_irqrestore(&evd->lock, flags);
	if (ret)
		goto out_ring;
	for (i = tail - count; i != tail; i++)
		memcpy(dapx_ring_entry(&view, i), dapx_ring_entry(&old, i),
		       sizeof(struct dapx_event));
	ret = dapx_respond(ucmd);

	spin_lock_irqsave(&evd->lock, flags);
	evd->frozen = false;
	/* The process may have read on, so fewer may be left. More would not be in the copy. */
	left = dapx_evd_count(evd);
	if (!ret && dapx_evd_sane(evd) && left <= count) {
		*view.head = tail - left;
		*view.tail = tail;
		*dapx_evd_arm_word(ring) = READ_ONCE(*dapx_evd_arm_word(evd->ring));
		WRITE_ONCE(*old.flags, DAPX_RING_DEAD);
		evd->view = view;
		old_ring = evd->ring;
		evd->ring = ring;
		ring = old_ring;
		dapx_evd_update_flags(evd);
	} else if (!ret) {
		ret = -EBADMSG;
	}
	dapx_evd_flush(evd, &flags);
	spin_unlock_irqrestore(&evd->lock, flags);
	dapx_evd_wake(evd);
out_ring:
	dapx_ring_destroy(ring);
out:
	mutex_unlock(&evd->obj.mutex);
	dapx_object_put(&evd->obj);
	return ret;
}

int dapx_cmd_evd_eventfd(struct dapx_ucmd *ucmd)
{
	struct dapx_evd_eventfd *cmd = ucmd->cmd;
	struct eventfd_ctx *eventfd = NULL;
	struct dapx_evd *evd;
	unsigned long flags;
	int ret = 0;

	if (cmd->flags & ~DAPX_EVENTFD_ONCE)
		return -EOPNOTSUPP;
	evd = dapx_get_evd(ucmd->ctx, cmd->evd);
	if (IS_ERR(evd))
		return PTR_ERR(evd);
	if (cmd->fd != -1) {
		eventfd = eventfd_ctx_fdget(cmd->fd);
		if (IS_ERR(eventfd)) {
			/* It is not a descriptor, or not one of an eventfd. */
			ret = -EINVAL;
			goto out;
		}
	}
	spin_lock_irqsave(&evd->lock, flags);
	swap(evd->eventfd, eventfd);
	evd->eventfd_once = cmd->flags & DAPX_EVENTFD_ONCE;
	spin_unlock_irqrestore(&evd->lock, flags);
	if (atomic_read(&evd->lazy_sources))
		dapx_evd_fetch_lazy(evd);
	if (eventfd)
		eventfd_ctx_put(eventfd);
out:
	dapx_object_put(&evd->obj);
	return ret;
}

int dapx_cmd_evd_post(struct dapx_ucmd *ucmd)
{
	struct dapx_evd_post *cmd = ucmd->cmd;
	struct dapx_stored_event stored = {
		.node = {
			.source = &(struct dapx_event_source) {},
			.notify = DAPX_NOTIFY_ALL,
		},
		.event = {
			.type = DAPX_EVENT_SOFTWARE,
			.software.data = { cmd->data[0], cmd->data[1] },
		},
	};
	struct dapx_evd *evd;
	unsigned long flags;
	int ret = 0;

	if (cmd->flags)
		return -EOPNOTSUPP;
	if (cmd->__reserved)
		return -EINVAL;
	evd = dapx_get_evd(ucmd->ctx, cmd->evd);
	if (IS_ERR(evd))
		return PTR_ERR(evd);
	stored.event.user_data = evd->obj.user_data;

	/* Waiting events come first. */
	spin_lock_irqsave(&evd->lock, flags);
	dapx_evd_flush(evd, &flags);
	if (evd->dead) {
		ret = -ENOENT;
	} else if (!dapx_evd_sane(evd)) {
		ret = -EBADMSG;
	} else if (!list_empty(&evd->backlog) || !dapx_evd_has_room(evd)) {
		ret = -EAGAIN;
	} else {
		dapx_evd_put(evd, &stored.node);
		dapx_evd_signal(evd, DAPX_NOTIFY_ALL);
	}
	spin_unlock_irqrestore(&evd->lock, flags);
	if (!ret)
		dapx_evd_wake(evd);
	dapx_object_put(&evd->obj);
	return ret;
}
