// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: listeners and their connection requests
 */
#include <linux/memcontrol.h>
#include <linux/moduleparam.h>
#include <linux/sched/mm.h>
#include <rdma/ib_cm.h>

#include "ep.h"
#include "xrc/xrc.h"

unsigned int dapx_max_backlog = 1024;
module_param_named(max_backlog, dapx_max_backlog, uint, 0644);
MODULE_PARM_DESC(max_backlog,
		 "Most connection requests that may wait on one listener (default 1024)");

/*
 * The most memory that peers can make a listener allocate before the process sees their
 * requests.
 */
#define DAPX_MAX_TENTATIVE_MEMORY (16 * 1024 * 1024)

/*
 * Returns true to exactly one caller, which must then answer the request, or call
 * dapx_cm_unclaim_request().
 */
bool dapx_cm_claim_request(struct dapx_cm *cm)
{
	bool claimed = false;

	spin_lock_irq(&cm->lock);
	if (cm->state == DAPX_CM_REQUEST && !cm->closing) {
		WRITE_ONCE(cm->state, DAPX_CM_ATTACHED);
		claimed = true;
	}
	spin_unlock_irq(&cm->lock);
	return claimed;
}

/* Releases the endpoint that was reserved or created for a request which is not accepted. */
void dapx_cm_return_candidate(struct dapx_cm *cm)
{
	struct dapx_ep *ep;

	spin_lock_irq(&cm->lock);
	ep = cm->candidate;
	cm->candidate = NULL;
	spin_unlock_irq(&cm->lock);
	if (!ep)
		return;
	mutex_lock(&ep->obj.mutex);
	if (ep->tentative) {
		if (!dapx_object_unpublish(&ep->obj, false)) {
			ep->obj.class->destroy(&ep->obj);
			dapx_object_put(&ep->obj);
		}
	} else {
		spin_lock_irq(&ep->lock);
		if (!ep->dead && (ep->state == DAPX_EP_PASSIVE_PENDING ||
				  ep->state == DAPX_EP_RESERVED))
			dapx_ep_set_state(ep, DAPX_EP_UNCONNECTED);
		spin_unlock_irq(&ep->lock);
	}
	mutex_unlock(&ep->obj.mutex);
	dapx_object_put(&ep->obj);
}

/* Detaches a request that was not taken from its listener, and from the listener's EVD. */
void dapx_cm_leave_listener(struct dapx_cm *cm)
{
	struct dapx_cm *listener;
	struct dapx_evd *evd;

	spin_lock_irq(&cm->lock);
	listener = cm->listener;
	if (listener) {
		evd = cm->evd;
		WRITE_ONCE(cm->listener, NULL);
		cm->evd = NULL;
	}
	spin_unlock_irq(&cm->lock);
	if (!listener)
		return;
	spin_lock_irq(&listener->lock);
	if (!list_empty(&cm->entry)) {
		list_del_init(&cm->entry);
		WRITE_ONCE(listener->num_requests, listener->num_requests - 1);
	}
	spin_unlock_irq(&listener->lock);
	dapx_evd_drop(evd, &cm->events);
	dapx_object_put(&evd->obj);
	dapx_object_put(&listener->obj);
}

/* Ends a claimed request that is not accepted: rejects the peer and removes the handle. */
void dapx_cm_end_request(struct dapx_cm *cm)
{
	dapx_cm_shutdown(cm);
	dapx_cm_leave(cm);
	dapx_cm_return_candidate(cm);
	if (!dapx_object_unpublish(&cm->obj, true))
		dapx_object_put(&cm->obj);
}

/*
 * Notifies the process that took the request. If it is answering the request now, its command
 * fails.
 */
void dapx_cm_notify_gone(struct dapx_cm *cm)
{
	lockdep_assert_held(&cm->lock);
	if (cm->gone && cm->state == DAPX_CM_REQUEST && !cm->listener)
		dapx_cm_event_locked(cm, &cm->gone_event, DAPX_CM_ENDED,
				     DAPX_CM_REQUEST_ENDED, cm->gone);
}

/* An accept failed. If the listener was freed meanwhile, this has to end the request. */
void dapx_cm_unclaim_request(struct dapx_cm *cm)
{
	bool orphan;

	spin_lock_irq(&cm->lock);
	orphan = cm->orphan;
	if (!orphan) {
		WRITE_ONCE(cm->state, DAPX_CM_REQUEST);
		dapx_cm_notify_gone(cm);
	}
	spin_unlock_irq(&cm->lock);
	if (orphan)
		dapx_cm_end_request(cm);
}

/* The id now belongs to the endpoint, which takes over the handle's reference. */
void dapx_cm_request_accepted(struct dapx_cm *cm)
{
	struct dapx_ep *ep;

	dapx_cm_leave(cm);
	dapx_object_unpublish(&cm->obj, true);
	cm->obj.handle = 0;
	spin_lock_irq(&cm->lock);
	ep = cm->candidate;
	cm->candidate = NULL;
	spin_unlock_irq(&cm->lock);
	if (ep)
		dapx_object_put(&ep->obj);
}

/* The id now belongs to an XRC receive queue pair, which took it from @cm. */
void dapx_cm_request_handed_over(struct dapx_cm *cm)
{
	dapx_cm_leave(cm);
	if (!dapx_object_unpublish(&cm->obj, true))
		dapx_object_put(&cm->obj);
}

static struct dapx_ep *dapx_cm_reserved_endpoint(struct dapx_cm *listener)
{
	struct dapx_ep *ep;

	spin_lock_irq(&listener->lock);
	ep = listener->reserved;
	listener->reserved = NULL;
	spin_unlock_irq(&listener->lock);
	if (!ep)
		return NULL;
	spin_lock_irq(&ep->lock);
	dapx_ep_set_state(ep, DAPX_EP_PASSIVE_PENDING);
	spin_unlock_irq(&ep->lock);
	return ep;
}

static struct dapx_ep *dapx_cm_tentative_endpoint(struct dapx_cm *listener)
{
	struct dapx_ep *ep;

	ep = dapx_ep_alloc(listener->obj.ctx, &listener->attr, false);
	if (IS_ERR(ep))
		return ep;
	spin_lock_irq(&ep->lock);
	ep->tentative = true;
	dapx_ep_set_state(ep, DAPX_EP_TENTATIVE_PENDING);
	spin_unlock_irq(&ep->lock);
	kref_get(&ep->obj.kref);
	dapx_object_publish(&ep->obj);
	return ep;
}

/* Posts the event of a request, unless a thread has answered the request already. */
static void dapx_cm_announce_request(struct dapx_cm *cm)
{
	struct dapx_cm *listener;
	bool told;

	spin_lock_irq(&cm->lock);
	listener = cm->listener;
	if (cm->state != DAPX_CM_REQUEST || !listener)
		goto out;
	spin_lock_nested(&listener->lock, SINGLE_DEPTH_NESTING);
	/* If the listener is being freed, it gets no event, and this request ends with it. */
	told = !listener->closing;
	if (told)
		WRITE_ONCE(listener->unacked, listener->unacked + 1);
	spin_unlock(&listener->lock);
	if (!told)
		goto out;
	cm->request_event.node.notify = DAPX_NOTIFY_ALL;
	cm->request_event.event = (struct dapx_event) {
		.type = DAPX_EVENT_CONNECT_REQUEST,
		.handle = listener->obj.handle,
		.user_data = listener->obj.user_data,
		.request = {
			.cm = cm->obj.handle,
			.ep = cm->candidate ? cm->candidate->obj.handle : 0,
		},
	};
	dapx_evd_post(cm->evd, &cm->request_event.node);
out:
	spin_unlock_irq(&cm->lock);
}

/*
 * Memory that a kernel thread allocates for a process is charged to the process. Undone by
 * dapx_cm_charge_end().
 */
static struct mem_cgroup *dapx_cm_charge_begin(struct dapx_cm *cm, struct mem_cgroup **old)
{
	struct mem_cgroup *memcg = get_mem_cgroup_from_mm(cm->obj.ctx->mm);

	*old = set_active_memcg(memcg);
	return memcg;
}

static void dapx_cm_charge_end(struct mem_cgroup *memcg, struct mem_cgroup *old)
{
	set_active_memcg(old);
	mem_cgroup_put(memcg);
}

/* If this fails, the peer is rejected. */
void dapx_cm_make_endpoint(struct work_struct *work)
{
	struct dapx_cm *cm = container_of(work, struct dapx_cm, make_ep_work);
	struct mem_cgroup *memcg, *old;
	struct dapx_ep *ep;

	memcg = dapx_cm_charge_begin(cm, &old);
	ep = dapx_cm_tentative_endpoint(cm->listener);
	dapx_cm_charge_end(memcg, old);
	if (IS_ERR(ep)) {
		dapx_cm_end_request(cm);
	} else {
		spin_lock_irq(&cm->lock);
		cm->candidate = ep;
		spin_unlock_irq(&cm->lock);
		dapx_cm_unclaim_request(cm);
		dapx_cm_announce_request(cm);
	}
	dapx_object_put(&cm->obj);
}

/*
 * Cancels the work, or waits for it. Returns true if it had not begun: then the caller has the
 * claim.
 */
static bool dapx_cm_cancel_make_endpoint(struct dapx_cm *cm)
{
	if (!cancel_work_sync(&cm->make_ep_work))
		return false;
	dapx_object_put(&cm->obj);
	return true;
}

/* If this fails, rdma_cm rejects the request and destroys @id. */
static int dapx_cm_new_request(struct dapx_cm *listener, struct rdma_cm_id *id,
			       struct rdma_cm_event *event)
{
	struct dapx_context *ctx = listener->obj.ctx;
	const struct rdma_conn_param *conn = &event->param.conn;
	const void *data = conn->private_data;
	struct dapx_ep *ep = NULL;
	struct dapx_cm *cm;
	int ret;

	/* A listener on the wildcard address is reached through other devices, too. */
	if (READ_ONCE(ctx->dead) || id->device != ctx->dev->ibdev)
		return -ENODEV;

	spin_lock_irq(&listener->lock);
	if (listener->closing || listener->state != DAPX_CM_LISTENING ||
	    listener->num_requests >= listener->backlog) {
		spin_unlock_irq(&listener->lock);
		return -EBUSY;
	}
	WRITE_ONCE(listener->num_requests, listener->num_requests + 1);
	spin_unlock_irq(&listener->lock);

	cm = dapx_cm_alloc(ctx);
	if (IS_ERR(cm)) {
		ret = PTR_ERR(cm);
		goto err_count;
	}
	if (listener->mode == DAPX_LISTEN_RESERVED) {
		ep = dapx_cm_reserved_endpoint(listener);
		if (!ep) {
			ret = -EBUSY;
			dapx_object_abort(&cm->obj);
			goto err_count;
		}
	}
	cm->candidate = ep;
	/* Until its endpoint is created, the request looks like one that is being answered. */
	cm->state = listener->mode == DAPX_LISTEN_TENTATIVE ? DAPX_CM_ATTACHED : DAPX_CM_REQUEST;
	cm->obj.user_data = listener->obj.user_data;
	cm->responder_resources = conn->responder_resources;
	cm->initiator_depth = conn->initiator_depth;
	cm->remote_qp_num = conn->qp_num;
	cm->retry_count = conn->retry_count;
	cm->rnr_retry_count = conn->rnr_retry_count;
	cm->srq = conn->srq;
	cm->private_data_len = min_t(u32, conn->private_data_len, sizeof(cm->private_data));
	cm->xrc = dapx_xrc_cm_header_is(data, cm->private_data_len);
	if (cm->xrc) {
		data += sizeof(struct dapx_xrc_cm_header);
		cm->private_data_len -= sizeof(struct dapx_xrc_cm_header);
	}
	if (cm->private_data_len)
		memcpy(cm->private_data, data, cm->private_data_len);
	cm->id = id;
	id->context = cm;
	dapx_cm_note_steps(cm, id, IB_QPS_RTS);

	kref_get(&listener->obj.kref);
	cm->listener = listener;
	kref_get(&listener->evd->obj.kref);
	cm->evd = listener->evd;
	spin_lock_irq(&listener->lock);
	list_add_tail(&cm->entry, &listener->requests);
	spin_unlock_irq(&listener->lock);
	dapx_object_publish(&cm->obj);

	if (listener->mode == DAPX_LISTEN_TENTATIVE) {
		/* Not in this callback, which delays the requests of all other listeners. */
		kref_get(&cm->obj.kref);
		dapx_object_queue_work(&cm->obj, &cm->make_ep_work);
	} else {
		dapx_cm_announce_request(cm);
	}
	return 0;

err_count:
	spin_lock_irq(&listener->lock);
	WRITE_ONCE(listener->num_requests, listener->num_requests - 1);
	spin_unlock_irq(&listener->lock);
	return ret;
}

int dapx_cm_request(struct dapx_cm *listener, struct rdma_cm_id *id,
		    struct rdma_cm_event *event)
{
	struct mem_cgroup *memcg, *old;
	int ret;

	memcg = dapx_cm_charge_begin(listener, &old);
	ret = dapx_cm_new_request(listener, id, event);
	dapx_cm_charge_end(memcg, old);
	return ret;
}

/* The peer of a request has given up. Accepting the request will fail. */
void dapx_cm_request_gone(struct dapx_cm *cm, int error)
{
	spin_lock_irq(&cm->lock);
	cm->gone = error;
	dapx_cm_notify_gone(cm);
	spin_unlock_irq(&cm->lock);
}

/* ------------------------------------------------------------- listeners */

void dapx_cm_destroy_listener(struct dapx_cm *listener)
{
	struct dapx_cm *cm;
	bool ours;

	/* There are no callbacks any more, so no new requests arrive. */
	for (;;) {
		spin_lock_irq(&listener->lock);
		cm = list_first_entry_or_null(&listener->requests, struct dapx_cm, entry);
		if (cm) {
			list_del_init(&cm->entry);
			WRITE_ONCE(listener->num_requests, listener->num_requests - 1);
			kref_get(&cm->obj.kref);
		}
		spin_unlock_irq(&listener->lock);
		if (!cm)
			break;
		ours = dapx_cm_cancel_make_endpoint(cm);
		spin_lock_irq(&cm->lock);
		/* If it has no listener, it was taken just now. */
		if (!ours && cm->listener) {
			ours = cm->state == DAPX_CM_REQUEST;
			if (ours)
				WRITE_ONCE(cm->state, DAPX_CM_ATTACHED);
			else
				cm->orphan = true;
		}
		spin_unlock_irq(&cm->lock);
		if (ours)
			dapx_cm_end_request(cm);
		dapx_object_put(&cm->obj);
	}
	/* The endpoint was reserved for a request that never arrived. */
	spin_lock_irq(&listener->lock);
	listener->candidate = listener->reserved;
	listener->reserved = NULL;
	spin_unlock_irq(&listener->lock);
	dapx_cm_return_candidate(listener);
}

/* Reserves an endpoint for a listener. cm->obj.mutex nests in the endpoint's mutex. */
static int dapx_cm_reserve(struct dapx_cm *cm, struct dapx_ep *ep)
{
	int ret = -EBADFD;

	spin_lock_irq(&ep->lock);
	if (!ep->dead && ep->state == DAPX_EP_UNCONNECTED && !ep->cm &&
	    READ_ONCE(ep->qp_state) == IB_QPS_RESET && ep->connect_evd) {
		dapx_ep_set_state(ep, DAPX_EP_RESERVED);
		ret = 0;
	}
	spin_unlock_irq(&ep->lock);
	if (ret)
		return ret;
	kref_get(&ep->obj.kref);
	spin_lock_irq(&cm->lock);
	cm->reserved = ep;
	spin_unlock_irq(&cm->lock);
	return 0;
}

static int dapx_cm_listen_on(struct dapx_cm *cm, const struct dapx_cm_listen *cmd,
			     struct dapx_ep *ep)
{
	int ret;

	if (ep && !ep->transport->accepts)
		return -EOPNOTSUPP;
	if (READ_ONCE(cm->state) != DAPX_CM_BOUND || !cm->id)
		return -EBADFD;
	if (ep) {
		ret = dapx_cm_reserve(cm, ep);
		if (ret)
			return ret;
	}
	cm->mode = cmd->mode;
	cm->attr = cmd->attr;
	cm->backlog = cmd->backlog ? cmd->backlog : dapx_max_backlog;
	if (cm->mode == DAPX_LISTEN_TENTATIVE)
		cm->backlog = min_t(u32, cm->backlog,
				    DAPX_MAX_TENTATIVE_MEMORY / dapx_ep_memory(&cm->attr) + 1);
	/*
	 * On all addresses, rdma_listen() may fail on one device after it has begun on others.
	 * Until it has succeeded on all of them, requests that arrive are rejected: if it fails,
	 * none may be left, or have taken the reserved endpoint.
	 */
	ret = rdma_listen(cm->id, min_t(u32, cm->backlog, INT_MAX));
	if (!ret) {
		dapx_cm_set_state(cm, DAPX_CM_LISTENING);
		dapx_object_make_source(&cm->obj);
		return 0;
	}

	if (ep) {
		spin_lock_irq(&cm->lock);
		cm->reserved = NULL;
		spin_unlock_irq(&cm->lock);
		spin_lock_irq(&ep->lock);
		dapx_ep_set_state(ep, DAPX_EP_UNCONNECTED);
		spin_unlock_irq(&ep->lock);
		dapx_object_put(&ep->obj);
	}
	return ret;
}

int dapx_cmd_cm_listen(struct dapx_ucmd *ucmd)
{
	struct dapx_cm_listen *cmd = ucmd->cmd;
	struct dapx_ep *ep = NULL;
	struct dapx_cm *cm;
	int ret;

	if (cmd->flags)
		return -EOPNOTSUPP;
	if (cmd->__reserved || cmd->mode > DAPX_LISTEN_TENTATIVE ||
	    cmd->backlog > dapx_max_backlog)
		return -EINVAL;
	if (cmd->mode == DAPX_LISTEN_TENTATIVE) {
		/* XRC requests are accepted with receive queue pairs, not with endpoints. */
		if (cmd->attr.flags & DAPX_EP_XRC)
			return -EOPNOTSUPP;
		ret = dapx_ep_attr_check(ucmd->ctx, &cmd->attr, false);
		if (ret)
			return ret;
	} else if (memchr_inv(&cmd->attr, 0, sizeof(cmd->attr))) {
		return -EINVAL;
	}
	if (cmd->mode != DAPX_LISTEN_RESERVED && cmd->ep)
		return -EINVAL;

	cm = dapx_get_cm(ucmd->ctx, cmd->cm);
	if (IS_ERR(cm))
		return PTR_ERR(cm);
	if (cmd->mode == DAPX_LISTEN_RESERVED) {
		ep = dapx_get_ep(ucmd->ctx, cmd->ep);
		if (IS_ERR(ep)) {
			ret = PTR_ERR(ep);
			goto out;
		}
		mutex_lock(&ep->obj.mutex);
	}
	mutex_lock_nested(&cm->obj.mutex, SINGLE_DEPTH_NESTING);
	ret = dapx_cm_listen_on(cm, cmd, ep);
	mutex_unlock(&cm->obj.mutex);
	if (ep) {
		mutex_unlock(&ep->obj.mutex);
		dapx_object_put(&ep->obj);
	}
out:
	dapx_object_put(&cm->obj);
	return ret;
}

/* -------------------------------------------------- commands on requests */

int dapx_cmd_cm_reject(struct dapx_ucmd *ucmd)
{
	struct dapx_cm_reject *cmd = ucmd->cmd;
	struct dapx_cm *cm;
	int ret = 0;

	if (cmd->flags)
		return -EOPNOTSUPP;
	if (cmd->__reserved || cmd->private_data_len > IB_CM_REJ_PRIVATE_DATA_SIZE)
		return -EINVAL;
	cm = dapx_get_cm(ucmd->ctx, cmd->cm);
	if (IS_ERR(cm))
		return PTR_ERR(cm);
	if (!dapx_cm_claim_request(cm)) {
		ret = -EBADFD;
	} else {
		mutex_lock(&cm->id_mutex);
		if (cm->id)
			rdma_reject(cm->id, cmd->private_data, cmd->private_data_len,
				    IB_CM_REJ_CONSUMER_DEFINED);
		mutex_unlock(&cm->id_mutex);
		dapx_cm_end_request(cm);
	}
	dapx_object_put(&cm->obj);
	return ret;
}

/* On success @cm takes over the use of @evd. */
static int dapx_cm_take(struct dapx_cm *cm, struct dapx_evd *evd, u64 user_data)
{
	int ret = 0;

	spin_lock_irq(&cm->lock);
	if (cm->state != DAPX_CM_REQUEST || !cm->listener || cm->closing)
		ret = -EBADFD;
	else if (cm->candidate)
		ret = -EINVAL;
	else
		/* Claim the request, so that no other thread answers it. */
		WRITE_ONCE(cm->state, DAPX_CM_ATTACHED);
	spin_unlock_irq(&cm->lock);
	if (ret)
		return ret;
	ret = dapx_cgroup_charge(&cm->obj);
	if (ret) {
		dapx_cm_unclaim_request(cm);
		return ret;
	}

	dapx_cm_leave_listener(cm);

	spin_lock_irq(&cm->lock);
	cm->evd = evd;
	WRITE_ONCE(cm->obj.user_data, user_data);
	/* If its listener was freed meanwhile, the request outlives it. */
	cm->orphan = false;
	WRITE_ONCE(cm->state, DAPX_CM_REQUEST);
	dapx_cm_notify_gone(cm);
	spin_unlock_irq(&cm->lock);
	return 0;
}

int dapx_cmd_cm_take(struct dapx_ucmd *ucmd)
{
	const struct dapx_cm_take *cmd = ucmd->cmd;
	struct dapx_evd *evd;
	struct dapx_cm *cm;
	int ret;

	if (cmd->flags)
		return -EOPNOTSUPP;
	cm = dapx_get_cm(ucmd->ctx, cmd->cm);
	if (IS_ERR(cm))
		return PTR_ERR(cm);
	evd = dapx_use_evd(ucmd->ctx, cmd->evd);
	if (IS_ERR(evd)) {
		ret = PTR_ERR(evd);
	} else {
		ret = dapx_cm_take(cm, evd, cmd->user_data);
		if (ret)
			dapx_object_unuse(&evd->obj);
	}
	dapx_object_put(&cm->obj);
	return ret;
}
