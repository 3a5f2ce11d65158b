// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: connection manager ids: those of consumers, and those that the module makes for
 * endpoints
 */
#include <linux/kthread.h>
#include <linux/nsproxy.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <net/netlink.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cm.h>

#include "ep.h"

/*
 * An iWARP driver gets this time to establish its stream before it is interrupted: if a stream
 * is reset before its first message, the peer's siw may use freed memory. A peer that takes
 * longer is probably not siw.
 */
#define DAPX_STREAM_TIME HZ

/* The time in which a peer's connection manager has certainly handled a message. */
#define DAPX_REJECT_DELAY (HZ / 10)

static int dapx_cm_handler(struct rdma_cm_id *id, struct rdma_cm_event *event);
static void dapx_cm_destroy_work(struct work_struct *work);

bool dapx_addr_valid(const struct __kernel_sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET || addr->ss_family == AF_INET6;
}

/*
 * Returns at least 1, so that a deadline which has already passed is reported by an event, like
 * others.
 */
int dapx_cm_timeout_ms(u64 deadline)
{
	u64 now = ktime_get_ns();

	if (deadline <= now)
		return 1;
	if (deadline == DAPX_NO_DEADLINE)
		return DAPX_RESOLVE_TIMEOUT_MS;
	return min_t(u64, DIV_ROUND_UP_ULL(deadline - now, NSEC_PER_MSEC), INT_MAX);
}

/* Some routes fail when they are looked up, others only later. To the process both are an event. */
bool dapx_cm_no_route(int error)
{
	return error == -EHOSTUNREACH || error == -ENETUNREACH;
}

static int dapx_cm_create_id(struct dapx_cm *cm)
{
	struct net *net = cm->obj.ctx->net;
	struct rdma_cm_id *id;

	/*
	 * Made as an id of user space, so 'rdma resource show' lists it under the process. A
	 * name of the module's own would have to outlive the requests that inherit it from a
	 * freed listener.
	 */
	if (net_eq(net, current->nsproxy->net_ns))
		id = rdma_create_user_id(dapx_cm_handler, cm, RDMA_PS_TCP, IB_QPT_RC);
	else
		id = rdma_create_id(net, dapx_cm_handler, cm, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	mutex_lock(&cm->id_mutex);
	cm->id = id;
	mutex_unlock(&cm->id_mutex);
	return 0;
}

/*
 * Destroys an id that came to belong to another device, as it would keep that device from being
 * removed. This cannot be done in the callback that notices it: the command that caused it may
 * still be using the id.
 */
void dapx_cm_destroy_async(struct dapx_cm *cm)
{
	kref_get(&cm->obj.kref);
	if (!dapx_object_queue_work(&cm->obj, &cm->destroy_work))
		dapx_object_put(&cm->obj);
}

static void dapx_cm_destroy_work(struct work_struct *work)
{
	struct dapx_cm *cm = container_of(work, struct dapx_cm, destroy_work);

	mutex_lock(&cm->obj.mutex);
	dapx_cm_shutdown(cm);
	mutex_unlock(&cm->obj.mutex);
	dapx_object_put(&cm->obj);
}

/* The work may have taken the id first, and still be waiting for a callback. */
void dapx_cm_cancel_destroy(struct dapx_cm *cm)
{
	if (cancel_work_sync(&cm->destroy_work))
		dapx_object_put(&cm->obj);
}

struct dapx_cm *dapx_cm_alloc(struct dapx_context *ctx)
{
	struct dapx_object *obj;
	struct dapx_cm *cm;

	obj = dapx_object_alloc(ctx, &dapx_cm_class);
	if (IS_ERR(obj))
		return ERR_CAST(obj);
	cm = to_dapx_cm(obj);
	mutex_init(&cm->id_mutex);
	spin_lock_init(&cm->lock);
	INIT_LIST_HEAD(&cm->requests);
	INIT_LIST_HEAD(&cm->entry);
	init_completion(&cm->connected);
	init_waitqueue_head(&cm->acked);
	INIT_WORK(&cm->destroy_work, dapx_cm_destroy_work);
	INIT_WORK(&cm->make_ep_work, dapx_cm_make_endpoint);
	dapx_event_source_init(&cm->events, obj, NULL);
	cm->addr_event.node.source = &cm->events;
	cm->route_event.node.source = &cm->events;
	cm->request_event.node.source = &cm->events;
	cm->gone_event.node.source = &cm->events;
	return cm;
}

/* Makes an id that has no handle, and is destroyed with its endpoint. */
struct dapx_cm *dapx_cm_for_ep(struct dapx_ep *ep)
{
	struct dapx_cm *cm;
	int ret;

	cm = dapx_cm_alloc(ep->obj.ctx);
	if (IS_ERR(cm))
		return cm;
	dapx_object_make_internal(&cm->obj);
	cm->state = DAPX_CM_ATTACHED;
	cm->ep = ep;
	ret = dapx_cm_create_id(cm);
	if (ret) {
		dapx_object_put(&cm->obj);
		return ERR_PTR(ret);
	}
	return cm;
}

/* A request, or an answer to one, is about to be sent. */
void dapx_cm_mark_sent(struct dapx_cm *cm)
{
	/* Odd, as 0 means that nothing was sent. */
	WRITE_ONCE(cm->sent_at, jiffies | 1);
}

/*
 * A peer's CM handles messages in several threads. If a reject that withdraws a request or an
 * answer overtakes it, the reject is lost. Then a peer that accepts the request waits a minute
 * until its CM gives up, and one whose request was accepted has a connection to nobody. This
 * waits for a time because nothing else tells that a message was handled: a CM acknowledges
 * none, and the answer to a request comes when the peer's consumer gives it.
 */
void dapx_cm_delay_reject(unsigned long sent_at)
{
	unsigned long now = jiffies;

	if (sent_at && time_before(now, sent_at + DAPX_REJECT_DELAY))
		schedule_timeout_uninterruptible(sent_at + DAPX_REJECT_DELAY - now);
}

/*
 * rdma_destroy_id() leaves an address search on ib_core's list if its callback has run. The
 * next id at the same address would cancel that search instead of its own, which would then
 * outlive it.
 */
static void dapx_cm_destroy_id(struct rdma_cm_id *id)
{
	rdma_addr_cancel(&id->route.addr.dev_addr);
	rdma_destroy_id(id);
}

/*
 * An iWARP driver may connect its stream before rdma_connect() returns. siw does, and waits two
 * minutes if the peer does not answer. The callback that has to connect runs in a queue that
 * the whole machine's RDMA CM shares. So a thread connects, and dapx_cm_shutdown() interrupts
 * it.
 */
static int dapx_cm_connector(void *data)
{
	struct dapx_cm *cm = data;
	struct rdma_cm_id *id;

	/* Before the look at the id: dapx_cm_shutdown() takes the id before it sends the signal. */
	allow_kernel_signal(SIGKILL);
	mutex_lock(&cm->id_mutex);
	id = cm->id;
	mutex_unlock(&cm->id_mutex);
	if (id)
		dapx_ep_connect_now(cm->ep, id);
	dapx_user_end_connect(cm->obj.ctx->user);
	mutex_lock(&cm->id_mutex);
	cm->connector = NULL;
	mutex_unlock(&cm->id_mutex);
	kthread_complete_and_exit(&cm->connected, 0);
}

/* Called by the callback that reports the resolved route. */
int dapx_cm_connect_aside(struct dapx_cm *cm)
{
	struct dapx_user *user = cm->obj.ctx->user;
	struct task_struct *task;
	int ret = 0;

	if (!dapx_user_begin_connect(user))
		return -EAGAIN;
	mutex_lock(&cm->id_mutex);
	task = cm->id ? kthread_run(dapx_cm_connector, cm, "dapx_connect") :
			ERR_PTR(-ECANCELED);
	if (IS_ERR(task)) {
		ret = PTR_ERR(task);
		dapx_user_end_connect(user);
	} else {
		cm->connector = task;
		cm->connects = true;
	}
	mutex_unlock(&cm->id_mutex);
	return ret;
}

/*
 * dapx_cm_shutdown() follows. This starts the time that an iWARP driver gets, so that it passes
 * for all endpoints of a context at once.
 */
void dapx_cm_begin_shutdown(struct dapx_cm *cm)
{
	if (!READ_ONCE(cm->connect_until))
		WRITE_ONCE(cm->connect_until, (jiffies + DAPX_STREAM_TIME) | 1);
}

/* Returns whether the connector has ended by itself. */
static bool dapx_cm_wait_connected(struct dapx_cm *cm)
{
	unsigned long now = jiffies;

	return wait_for_completion_timeout(&cm->connected, time_before(now, cm->connect_until) ?
					   cm->connect_until - now : 0);
}

/*
 * Cancels all pending operations, and waits for callbacks. The peer of a set-up gets a reject,
 * that of a connection a disconnect.
 */
void dapx_cm_shutdown(struct dapx_cm *cm)
{
	struct rdma_cm_id *id;

	mutex_lock(&cm->id_mutex);
	id = cm->id;
	cm->id = NULL;
	mutex_unlock(&cm->id_mutex);
	if (!id)
		return;
	dapx_cm_begin_shutdown(cm);
	if (cm->connects && !dapx_cm_wait_connected(cm)) {
		mutex_lock(&cm->id_mutex);
		if (cm->connector)
			send_sig(SIGKILL, cm->connector, 1);
		mutex_unlock(&cm->id_mutex);
		wait_for_completion(&cm->connected);
	}
	dapx_cm_delay_reject(READ_ONCE(cm->sent_at));
	dapx_cm_destroy_id(id);
}

/*
 * Starts, or answers, a disconnect. Without effect until the CM has the last message of the
 * handshake, which a message of the peer may have overtaken: then dapx_ep_late_established()
 * disconnects.
 *
 * rdma_notify() would tell the CM earlier. But it leaves the answer to the peer's request pending,
 * to be cancelled later, and if the connection ends before that, the answer is repeated for a
 * minute, in which rdma_destroy_id() waits.
 */
void dapx_cm_disconnect(struct dapx_cm *cm)
{
	if (!cm)
		return;
	mutex_lock(&cm->id_mutex);
	if (cm->id)
		rdma_disconnect(cm->id);
	mutex_unlock(&cm->id_mutex);
}

/*
 * Answers the peer that accepted. With the mutex of the endpoint, whose commands end the id; all
 * else that ends it has the id's.
 */
int dapx_cm_establish(struct dapx_cm *cm)
{
	int ret = -ECONNABORTED;

	mutex_lock_nested(&cm->obj.mutex, SINGLE_DEPTH_NESTING);
	if (cm->id) {
		rdma_lock_handler(cm->id);
		ret = rdma_accept(cm->id, NULL);
		rdma_unlock_handler(cm->id);
	}
	mutex_unlock(&cm->obj.mutex);
	return ret;
}

void dapx_cm_addresses(struct dapx_cm *cm, struct __kernel_sockaddr_storage *local,
		       struct __kernel_sockaddr_storage *remote)
{
	mutex_lock(&cm->id_mutex);
	/* A failed bind leaves its address in the id. */
	if (cm->id && READ_ONCE(cm->state) != DAPX_CM_IDLE) {
		*local = cm->id->route.addr.src_addr;
		*remote = cm->id->route.addr.dst_addr;
	}
	mutex_unlock(&cm->id_mutex);
}

/* This does not wait: while a command changes the id, there are no addresses. */
int dapx_cm_put_addresses(struct dapx_cm *cm, struct sk_buff *skb)
{
	const struct rdma_addr *addr;
	int ret = 0;

	if (!mutex_trylock(&cm->id_mutex))
		return nla_put_flag(skb, DAPX_OBJECT_ATTR_BUSY);
	if (cm->id && READ_ONCE(cm->state) != DAPX_CM_IDLE) {
		addr = &cm->id->route.addr;
		if (addr->src_addr.ss_family)
			ret = nla_put(skb, DAPX_OBJECT_ATTR_LOCAL, sizeof(addr->src_addr),
				      &addr->src_addr);
		if (!ret && addr->dst_addr.ss_family)
			ret = nla_put(skb, DAPX_OBJECT_ATTR_REMOTE, sizeof(addr->dst_addr),
				      &addr->dst_addr);
	}
	mutex_unlock(&cm->id_mutex);
	return ret;
}

void dapx_cm_set_state(struct dapx_cm *cm, enum dapx_cm_state state)
{
	spin_lock_irq(&cm->lock);
	WRITE_ONCE(cm->state, state);
	spin_unlock_irq(&cm->lock);
}

/* With the id's handler mutex, which callbacks hold; queries take the lock. */
void dapx_cm_set_ep(struct dapx_cm *cm, struct dapx_ep *ep)
{
	spin_lock_irq(&cm->lock);
	cm->ep = ep;
	spin_unlock_irq(&cm->lock);
}

/*
 * Keeps what the RDMA CM knows of the steps up to @last, for processes that take them. In
 * callbacks, since there the id's state is known.
 */
void dapx_cm_note_steps(struct dapx_cm *cm, struct rdma_cm_id *id, enum ib_qp_state last)
{
	struct dapx_device *dev = cm->obj.ctx->dev;
	struct dapx_qp_attr steps = {};
	struct ib_qp_attr attr = {};
	int mask;

	/* An iWARP driver takes them itself. */
	if (dev->iwarp)
		return;
	for (attr.qp_state = IB_QPS_INIT; attr.qp_state <= last; attr.qp_state++) {
		if (rdma_init_qp_attr(id, &attr, &mask))
			return;
		dapx_qp_attr_add_step(dev, &steps, &attr);
	}
	spin_lock_irq(&cm->lock);
	cm->steps = steps;
	spin_unlock_irq(&cm->lock);
}

/* Releases the id, which is shut down, from its endpoint. */
void dapx_cm_release_ep(struct dapx_cm *cm)
{
	spin_lock_irq(&cm->lock);
	cm->ep = NULL;
	WRITE_ONCE(cm->state, DAPX_CM_ENDED);
	spin_unlock_irq(&cm->lock);
	if (cm->obj.handle)
		dapx_object_unuse(&cm->obj);
	else
		dapx_object_put(&cm->obj);
}

/* The id posts no more events. */
static void dapx_cm_leave_evd(struct dapx_cm *cm)
{
	struct dapx_evd *evd;

	/* First, queries must not find the EVD any more. */
	spin_lock_irq(&cm->lock);
	WRITE_ONCE(cm->closing, true);
	evd = cm->evd;
	cm->evd = NULL;
	spin_unlock_irq(&cm->lock);
	if (evd) {
		dapx_evd_drop(evd, &cm->events);
		dapx_object_unuse(&evd->obj);
	}
	/* A thread that waits to free the id comes too late. */
	wake_up_all(&cm->acked);
}

/* A request, taken or not, has been answered, or ends. */
void dapx_cm_leave(struct dapx_cm *cm)
{
	dapx_cm_leave_listener(cm);
	dapx_cm_leave_evd(cm);
}

void dapx_cm_event_locked(struct dapx_cm *cm, struct dapx_stored_event *stored,
			  enum dapx_cm_state state, u32 what, int error)
{
	lockdep_assert_held(&cm->lock);
	if (cm->closing)
		return;
	WRITE_ONCE(cm->state, state);
	WRITE_ONCE(cm->unacked, cm->unacked + 1);
	stored->node.notify = DAPX_NOTIFY_ALL;
	stored->event = (struct dapx_event) {
		.type = DAPX_EVENT_CM,
		.handle = cm->obj.handle,
		.user_data = cm->obj.user_data,
		.cm = { .what = what, .error = error },
	};
	dapx_evd_post(cm->evd, &stored->node);
}

/* ----------------------------------------------------------------- callbacks */

static void dapx_cm_event(struct dapx_cm *cm, struct dapx_stored_event *stored,
			  enum dapx_cm_state state, u32 what, int error)
{
	unsigned long flags;

	spin_lock_irqsave(&cm->lock, flags);
	dapx_cm_event_locked(cm, stored, state, what, error);
	spin_unlock_irqrestore(&cm->lock, flags);
}

static void dapx_cm_wrong_device(struct dapx_cm *cm)
{
	if (READ_ONCE(cm->state) == DAPX_CM_RESOLVING)
		dapx_cm_event(cm, &cm->addr_event, DAPX_CM_ENDED, DAPX_CM_ADDR_ERROR,
			      -EADDRNOTAVAIL);
	dapx_cm_destroy_async(cm);
}

static int dapx_cm_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct dapx_cm *cm = id->context;

	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		return dapx_cm_request(cm, id, event);
	/* These events are the answer, or the end; earlier ones are intermediate. */
	if (event->event >= RDMA_CM_EVENT_CONNECT_RESPONSE)
		WRITE_ONCE(cm->sent_at, 0);
	if (cm->ep)
		return dapx_ep_cm_event(cm->ep, id, event);

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (id->device != cm->obj.ctx->dev->ibdev) {
			dapx_cm_wrong_device(cm);
			break;
		}
		dapx_cm_note_steps(cm, id, IB_QPS_INIT);
		dapx_cm_event(cm, &cm->addr_event, DAPX_CM_ADDR_READY, DAPX_CM_ADDR_RESOLVED, 0);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		/*
		 * It is not the context's own device: at the removal of that, callbacks would
		 * no longer come.
		 */
		dapx_cm_wrong_device(cm);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
		dapx_cm_event(cm, &cm->addr_event, DAPX_CM_BOUND, DAPX_CM_ADDR_ERROR,
			      event->status);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		dapx_cm_event(cm, &cm->route_event, DAPX_CM_ROUTE_READY,
			      DAPX_CM_ROUTE_RESOLVED, 0);
		break;
	case RDMA_CM_EVENT_ROUTE_ERROR:
		dapx_cm_event(cm, &cm->route_event, DAPX_CM_ADDR_READY, DAPX_CM_ROUTE_ERROR,
			      event->status);
		break;
	case RDMA_CM_EVENT_REJECTED:
		dapx_cm_request_gone(cm, -ECONNREFUSED);
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
		dapx_cm_request_gone(cm, -ETIMEDOUT);
		break;
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_DISCONNECTED:
		dapx_cm_request_gone(cm, -ECONNABORTED);
		break;
	default:
		break;
	}
	return 0;
}

/* ----------------------------------------------------------------- lifetime */

static bool dapx_cm_is_listener(struct dapx_object *obj)
{
	return READ_ONCE(to_dapx_cm(obj)->state) == DAPX_CM_LISTENING;
}

static void dapx_cm_destroy(struct dapx_object *obj)
{
	struct dapx_cm *cm = to_dapx_cm(obj);
	bool listener = dapx_cm_is_listener(obj);

	spin_lock_irq(&cm->lock);
	WRITE_ONCE(cm->closing, true);
	spin_unlock_irq(&cm->lock);
	dapx_cm_shutdown(cm);
	/* The id's callbacks use the context, and the context does not wait for that work. */
	dapx_cm_cancel_destroy(cm);
	if (listener)
		dapx_cm_destroy_listener(cm);
	/* Nothing changes the id any more: there are no callbacks, and the handle is gone. */
	dapx_cm_leave(cm);
	dapx_cm_return_candidate(cm);
}

/* Returns 0 if the caller must destroy the id, or 1 if events have to be acknowledged first. */
static int dapx_cm_try_free(struct dapx_cm *cm, u32 flags)
{
	int ret = 0;

	spin_lock_irq(&cm->lock);
	if (cm->closing)
		ret = -ENOENT;	/* a request, which was answered while this thread waited */
	else if (cm->state == DAPX_CM_ATTACHED)
		ret = -EBUSY;
	else if (cm->unacked && !(flags & DAPX_FREE_DISCARD))
		ret = 1;
	else
		ret = dapx_object_erase(&cm->obj, false);
	/* With the lock, so that from here on there are no events, and an id in use loses none. */
	if (!ret)
		WRITE_ONCE(cm->closing, true);
	spin_unlock_irq(&cm->lock);
	if (!ret)
		dapx_object_uncharge(&cm->obj);
	return ret;
}

static bool dapx_cm_is_acked(struct dapx_cm *cm)
{
	return !READ_ONCE(cm->unacked) || READ_ONCE(cm->closing);
}

static int dapx_cm_free(struct dapx_object *obj, struct dapx_ucmd *ucmd)
{
	const struct dapx_free *cmd = ucmd->cmd;
	struct dapx_cm *cm = to_dapx_cm(obj);
	int ret;

	if (READ_ONCE(cm->listener)) {
		/* Freeing a request rejects it. */
		if (!dapx_cm_claim_request(cm))
			return -EBUSY;
		dapx_cm_end_request(cm);
		return 0;
	}

	for (;;) {
		mutex_lock(&obj->mutex);
		ret = dapx_cm_try_free(cm, cmd->flags);
		if (!ret)
			dapx_cm_shutdown(cm);
		mutex_unlock(&obj->mutex);
		if (!ret) {
			/*
			 * This releases endpoints, whose mutexes come before the id's in the
			 * lock order.
			 */
			dapx_cm_destroy(obj);
			dapx_object_put(obj);
		}
		if (ret <= 0)
			return ret;
		if (cmd->flags & DAPX_FREE_NOWAIT)
			return -EBUSY;

		/* The thread waits outside of the context, which can be torn down meanwhile. */
		dapx_context_leave(ucmd);
		ret = wait_event_interruptible(cm->acked, dapx_cm_is_acked(cm));
		if (dapx_context_enter(ucmd))
			return -EIO;
		if (ret)
			return -EINTR;
	}
}

static u32 dapx_cm_object_state(struct dapx_object *obj)
{
	return READ_ONCE(to_dapx_cm(obj)->state);
}

static int dapx_cm_fill(struct dapx_object *obj, struct sk_buff *skb)
{
	struct dapx_cm *cm = to_dapx_cm(obj);

	if (READ_ONCE(cm->state) == DAPX_CM_LISTENING &&
	    nla_put_u32(skb, DAPX_OBJECT_ATTR_REQUESTS, READ_ONCE(cm->num_requests)))
		return -EMSGSIZE;
	return dapx_cm_put_addresses(cm, skb);
}

const struct dapx_object_class dapx_cm_class = {
	.type = DAPX_OBJECT_CM,
	.size = sizeof(struct dapx_cm),
	.free = dapx_cm_free,
	.destroy = dapx_cm_destroy,
	.state = dapx_cm_object_state,
	.fill = dapx_cm_fill,
};

/* ------------------------------------------------------------------ commands */

int dapx_cmd_cm_create(struct dapx_ucmd *ucmd)
{
	struct dapx_cm_create *cmd = ucmd->cmd;
	struct dapx_evd *evd;
	struct dapx_cm *cm;
	int ret;

	if (cmd->flags)
		return -EOPNOTSUPP;
	evd = dapx_use_evd(ucmd->ctx, cmd->evd);
	if (IS_ERR(evd))
		return PTR_ERR(evd);
	cm = dapx_cm_alloc(ucmd->ctx);
	if (IS_ERR(cm)) {
		dapx_object_unuse(&evd->obj);
		return PTR_ERR(cm);
	}
	cm->evd = evd;
	cm->obj.user_data = cmd->user_data;
	ret = dapx_cm_create_id(cm);
	if (!ret) {
		cmd->out_cm = cm->obj.handle;
		ret = dapx_respond(ucmd);
	}
	if (ret) {
		dapx_cm_destroy(&cm->obj);
		dapx_object_abort(&cm->obj);
		return ret;
	}
	dapx_object_publish(&cm->obj);
	return 0;
}

/* If rdma_cm refuses an address option because of the id's state, no other option is set. */
static int dapx_cm_set_options(struct dapx_cm *cm, const struct dapx_cm_options *options)
{
	if (options->set & DAPX_CM_MODIFY_REUSEADDR &&
	    rdma_set_reuseaddr(cm->id, options->reuseaddr))
		return -EBADFD;
	if (options->set & DAPX_CM_MODIFY_AFONLY && rdma_set_afonly(cm->id, options->afonly))
		return -EBADFD;
	/* These two succeed in any state. */
	if (options->set & DAPX_CM_MODIFY_TOS)
		rdma_set_service_type(cm->id, options->tos);
	if (options->set & DAPX_CM_MODIFY_ACK_TIMEOUT)
		rdma_set_ack_timeout(cm->id, options->ack_timeout);
	return 0;
}

static bool dapx_cm_takes_options(enum dapx_cm_state state, const struct dapx_cm_options *options)
{
	const u32 unbound = BIT(DAPX_CM_IDLE), bound = unbound | BIT(DAPX_CM_BOUND);
	const u32 without_route = bound | BIT(DAPX_CM_ADDR_READY);
	u32 states = ~0U;

	if (options->set & DAPX_CM_MODIFY_TOS)
		states &= without_route;
	if (options->set & DAPX_CM_MODIFY_ACK_TIMEOUT)
		states &= without_route | BIT(DAPX_CM_ROUTE_READY) | BIT(DAPX_CM_REQUEST);
	if (options->set & DAPX_CM_MODIFY_REUSEADDR)
		states &= options->reuseaddr ? bound : unbound;
	if (options->set & DAPX_CM_MODIFY_AFONLY)
		states &= bound;
	return states & BIT(state);
}

static int dapx_cm_modify(struct dapx_cm *cm, const struct dapx_cm_options *options)
{
	struct dapx_cm_options *mine = &cm->options;
	int ret = -EBADFD;

	/* The answer to a request may destroy the id; it does not take the object's mutex. */
	mutex_lock(&cm->id_mutex);
	if (cm->id && dapx_cm_takes_options(READ_ONCE(cm->state), options))
		ret = dapx_cm_set_options(cm, options);
	mutex_unlock(&cm->id_mutex);
	if (ret)
		return ret;
	if (options->set & DAPX_CM_MODIFY_TOS)
		mine->tos = options->tos;
	if (options->set & DAPX_CM_MODIFY_ACK_TIMEOUT)
		mine->ack_timeout = options->ack_timeout;
	if (options->set & DAPX_CM_MODIFY_REUSEADDR)
		mine->reuseaddr = options->reuseaddr;
	if (options->set & DAPX_CM_MODIFY_AFONLY)
		mine->afonly = options->afonly;
	mine->set |= options->set;
	return 0;
}

int dapx_cmd_cm_modify(struct dapx_ucmd *ucmd)
{
	const struct dapx_cm_modify *cmd = ucmd->cmd;
	const struct dapx_cm_options options = {
		.set = cmd->mask,
		.tos = cmd->tos,
		.ack_timeout = cmd->ack_timeout,
		.reuseaddr = cmd->reuseaddr,
		.afonly = cmd->afonly,
	};
	struct dapx_cm *cm;
	int ret;

	if (cmd->flags || cmd->mask & ~(DAPX_CM_MODIFY_TOS | DAPX_CM_MODIFY_ACK_TIMEOUT |
					DAPX_CM_MODIFY_REUSEADDR | DAPX_CM_MODIFY_AFONLY))
		return -EOPNOTSUPP;
	if (cmd->__reserved)
		return -EINVAL;
	cm = dapx_get_cm(ucmd->ctx, cmd->cm);
	if (IS_ERR(cm))
		return PTR_ERR(cm);
	if ((cmd->mask & DAPX_CM_MODIFY_ACK_TIMEOUT && cmd->ack_timeout > 31) ||
	    (cmd->mask & DAPX_CM_MODIFY_REUSEADDR && cmd->reuseaddr > 1) ||
	    (cmd->mask & DAPX_CM_MODIFY_AFONLY && cmd->afonly > 1)) {
		ret = -EINVAL;
	} else if (cmd->mask & DAPX_CM_MODIFY_ACK_TIMEOUT && ucmd->ctx->dev->iwarp) {
		ret = -EOPNOTSUPP;
	} else {
		mutex_lock(&cm->obj.mutex);
		ret = dapx_cm_modify(cm, &options);
		mutex_unlock(&cm->obj.mutex);
	}
	dapx_object_put(&cm->obj);
	return ret;
}

/* What rdma_cm has bound, it keeps bound: a new id takes its place. */
static void dapx_cm_unbind(struct dapx_cm *cm)
{
	dapx_cm_shutdown(cm);
	cm->connect_until = 0;
	if (dapx_cm_create_id(cm) || dapx_cm_set_options(cm, &cm->options))
		dapx_cm_set_state(cm, DAPX_CM_ENDED);
}

int dapx_cmd_cm_bind(struct dapx_ucmd *ucmd)
{
	struct dapx_cm_bind *cmd = ucmd->cmd;
	struct dapx_cm *cm;
	int ret;

	if (cmd->flags)
		return -EOPNOTSUPP;
	if (cmd->__reserved)
		return -EINVAL;
	cm = dapx_get_cm(ucmd->ctx, cmd->cm);
	if (IS_ERR(cm))
		return PTR_ERR(cm);
	mutex_lock(&cm->obj.mutex);
	if (!dapx_addr_valid(&cmd->addr)) {
		ret = -EINVAL;
	} else if (READ_ONCE(cm->state) != DAPX_CM_IDLE || !cm->id) {
		ret = -EBADFD;
	} else {
		ret = rdma_bind_addr(cm->id, (struct sockaddr *)&cmd->addr);
		if (ret == -ENODEV)
			ret = -EADDRNOTAVAIL;
		if (!ret && cm->id->device && cm->id->device != cm->obj.ctx->dev->ibdev) {
			ret = -EADDRNOTAVAIL;
			dapx_cm_unbind(cm);
		}
		if (!ret)
			dapx_cm_set_state(cm, DAPX_CM_BOUND);
	}
	mutex_unlock(&cm->obj.mutex);
	dapx_object_put(&cm->obj);
	return ret;
}

/* Sets the state of the resolving step, and reports its event. */
static int dapx_cm_resolve_step(struct dapx_cm *cm, struct dapx_cm_resolve *cmd, int timeout_ms)
{
	struct sockaddr *src = cmd->src.ss_family ? (struct sockaddr *)&cmd->src : NULL;
	bool addr = cmd->what == DAPX_RESOLVE_ADDR;
	struct dapx_stored_event *stored = addr ? &cm->addr_event : &cm->route_event;
	enum dapx_cm_state from;
	int ret = -EBADFD;

	spin_lock_irq(&cm->lock);
	from = cm->state;
	if (!cm->id || cm->closing)
		;
	else if (READ_ONCE(stored->node.pending))
		ret = -EBUSY;	/* the event of an earlier step still waits for room */
	else if (addr ? from == DAPX_CM_IDLE || from == DAPX_CM_BOUND :
			from == DAPX_CM_ADDR_READY)
		ret = 0;
	if (!ret)
		WRITE_ONCE(cm->state, DAPX_CM_RESOLVING);
	spin_unlock_irq(&cm->lock);
	if (ret)
		return ret;

	if (addr)
		ret = rdma_resolve_addr(cm->id, src, (struct sockaddr *)&cmd->dst, timeout_ms);
	else
		ret = rdma_resolve_route(cm->id, timeout_ms);
	if (addr && dapx_cm_no_route(ret)) {
		dapx_cm_event(cm, stored, DAPX_CM_BOUND, DAPX_CM_ADDR_ERROR, ret);
		return 0;
	}
	if (ret) {
		dapx_cm_set_state(cm, from);
		/* rdma_resolve_addr() binds first. */
		if (from == DAPX_CM_IDLE)
			dapx_cm_unbind(cm);
	}
	return ret == -ENODEV ? -EADDRNOTAVAIL : ret;
}

int dapx_cmd_cm_resolve(struct dapx_ucmd *ucmd)
{
	struct dapx_cm_resolve *cmd = ucmd->cmd;
	int timeout_ms = dapx_cm_timeout_ms(cmd->deadline);
	struct dapx_cm *cm;
	int ret;

	if (cmd->flags)
		return -EOPNOTSUPP;
	cm = dapx_get_cm(ucmd->ctx, cmd->cm);
	if (IS_ERR(cm))
		return PTR_ERR(cm);
	switch (cmd->what) {
	case DAPX_RESOLVE_ADDR:
		ret = dapx_addr_valid(&cmd->dst) &&
		      (!cmd->src.ss_family || cmd->src.ss_family == cmd->dst.ss_family) ?
		      0 : -EINVAL;
		break;
	case DAPX_RESOLVE_ROUTE:
		ret = 0;
		break;
	default:
		ret = -EINVAL;
		break;
	}
	if (!ret) {
		mutex_lock(&cm->obj.mutex);
		ret = dapx_cm_resolve_step(cm, cmd, timeout_ms);
		mutex_unlock(&cm->obj.mutex);
	}
	dapx_object_put(&cm->obj);
	return ret;
}

static u32 dapx_cm_port(struct dapx_cm *cm)
{
	u32 port = 0;

	mutex_lock(&cm->id_mutex);
	/* A listener on all addresses has no port. */
	if (cm->id && cm->id->device)
		port = cm->id->port_num;
	mutex_unlock(&cm->id_mutex);
	return port;
}

int dapx_cmd_cm_query(struct dapx_ucmd *ucmd)
{
	struct dapx_cm_query *cmd = ucmd->cmd;
	struct dapx_ep *ep;
	struct dapx_cm *cm;
	int ret;

	if (cmd->flags)
		return -EOPNOTSUPP;
	cm = dapx_get_cm(ucmd->ctx, cmd->cm);
	if (IS_ERR(cm))
		return PTR_ERR(cm);

	memset(&cmd->out_local, 0, sizeof(cmd->out_local));
	memset(&cmd->out_remote, 0, sizeof(cmd->out_remote));
	spin_lock_irq(&cm->lock);
	ep = cm->ep ? cm->ep : cm->candidate ? cm->candidate : cm->reserved;
	cmd->out_state = cm->state;
	cmd->out_ep = ep ? ep->obj.handle : 0;
	cmd->out_evd = cm->evd ? cm->evd->obj.handle : 0;
	cmd->out_requests = cm->num_requests;
	cmd->out_unacked = cm->unacked;
	cmd->out_user_data = cm->obj.user_data;
	cmd->out_listener = cm->listener ? cm->listener->obj.handle : 0;
	cmd->out_private_data_len = cm->private_data_len;
	memcpy(cmd->out_private_data, cm->private_data, sizeof(cm->private_data));
	cmd->out_xrc = cm->xrc;
	cmd->out_remote_qp_num = cm->remote_qp_num;
	cmd->out_srq = cm->srq;
	cmd->out_responder_resources = cm->responder_resources;
	cmd->out_initiator_depth = cm->initiator_depth;
	cmd->out_retry_count = cm->retry_count;
	cmd->out_rnr_retry_count = cm->rnr_retry_count;
	cmd->out_qp = cm->steps;
	spin_unlock_irq(&cm->lock);
	cmd->out_port = dapx_cm_port(cm);
	dapx_cm_addresses(cm, &cmd->out_local, &cmd->out_remote);
	ret = dapx_respond(ucmd);
	dapx_object_put(&cm->obj);
	return ret;
}

int dapx_cmd_cm_ack(struct dapx_ucmd *ucmd)
{
	struct dapx_cm_ack *cmd = ucmd->cmd;
	struct dapx_cm *cm;
	int ret = -EINVAL;

	if (cmd->flags)
		return -EOPNOTSUPP;
	cm = dapx_get_cm(ucmd->ctx, cmd->cm);
	if (IS_ERR(cm))
		return PTR_ERR(cm);
	spin_lock_irq(&cm->lock);
	if (cmd->events && cmd->events <= cm->unacked) {
		WRITE_ONCE(cm->unacked, cm->unacked - cmd->events);
		ret = 0;
	}
	spin_unlock_irq(&cm->lock);
	if (!ret)
		wake_up_all(&cm->acked);
	dapx_object_put(&cm->obj);
	return ret;
}
