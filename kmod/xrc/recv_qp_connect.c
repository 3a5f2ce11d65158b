// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: connecting XRC receive queue pairs, by exchange of QP numbers or by the RDMA CM
 */
#include <rdma/ib_cm.h>

#include "xrc/recv_qp.h"

/*
 * The process sets no timeout and no retry count for answers. The module's own are 67 ms and 6
 * retries, as rxe takes 7 for no limit.
 */
#define DAPX_XRC_TIMEOUT 14
#define DAPX_XRC_RETRIES 6

/* Called with qp->mutex held. */
static int dapx_xrc_qp_step(struct dapx_xrc_qp *qp, struct ib_qp_attr *attr, int mask)
{
	struct dapx_xrc_buffer *buffer, *next;
	int ret;

	/* The peer probes with writes of no bytes. No memory of the PD has a remote key. */
	if (mask & IB_QP_ACCESS_FLAGS)
		attr->qp_access_flags = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE;
	/*
	 * The peer issues no reads. If rxe cannot allocate what they would need, it reports
	 * that too late.
	 */
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		attr->max_dest_rd_atomic = 0;
	ret = dapx_qp_modify(qp->qp, attr, mask);
	if (ret)
		return ret == -ENODATA ? -EINVAL : ret;
	if (attr->qp_state != IB_QPS_INIT)
		return 0;
	spin_lock_bh(&qp->lock);
	list_for_each_entry_safe(buffer, next, &qp->buffers, entry)
		dapx_xrc_qp_post(qp, buffer);
	spin_unlock_bh(&qp->lock);
	return 0;
}

/*
 * Prepares for sending answers. Programs set no attributes for that, as the queue pair does not
 * send from their point of view.
 */
static int dapx_xrc_qp_ready_to_answer(struct dapx_xrc_qp *qp)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTS,
		.sq_psn = dapx_xrc_answer_psn(qp->qp_num, qp->attr.dest_qp_num),
		.timeout = DAPX_XRC_TIMEOUT,
		.retry_cnt = DAPX_XRC_RETRIES,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};

	return dapx_xrc_qp_step(qp, &attr, IB_QP_STATE | IB_QP_SQ_PSN | IB_QP_TIMEOUT |
				IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC);
}

static int dapx_xrc_qp_modify(struct dapx_xrc_qp *qp, const struct dapx_qp_attr *step)
{
	struct ib_qp_attr attr;
	int mask, ret;

	if (qp->domain->dev->iwarp)
		return -EOPNOTSUPP;
	ret = dapx_qp_attr_build(qp->domain->dev, qp->attr.port, step, &attr, &mask);
	if (ret)
		return ret;
	if (qp->cm_id || step->state != dapx_xrc_qp_state(qp) + 1)
		return -EBADFD;
	switch (step->state) {
	case DAPX_QP_INIT:
		ret = dapx_xrc_qp_step(qp, &attr, mask);
		if (ret)
			return ret;
		qp->attr.port = step->port;
		qp->attr.pkey_index = step->pkey_index;
		qp->attr.refused = step->refused;
		/* Nothing arrives before the next step. */
		qp->resp.refused = step->refused;
		break;
	case DAPX_QP_RTR:
		ret = dapx_xrc_qp_step(qp, &attr, mask);
		if (ret)
			return ret;
		qp->attr = (struct dapx_qp_attr) {
			.dest_qp_num = step->dest_qp_num,
			.rq_psn = step->rq_psn,
			.pkey_index = qp->attr.pkey_index,
			.dlid = step->dlid,
			.max_dest_rd_atomic = step->max_dest_rd_atomic,
			.port = qp->attr.port,
			.sgid_index = step->sgid_index,
			.hop_limit = step->hop_limit,
			.traffic_class = step->traffic_class,
			.flow_label = step->flow_label,
			.sl = step->sl,
			.path_mtu = step->path_mtu,
			.min_rnr_timer = step->min_rnr_timer,
			.refused = qp->attr.refused,
		};
		memcpy(qp->attr.dgid, step->dgid, sizeof(qp->attr.dgid));
		spin_lock_bh(&qp->lock);
		qp->resp.rnr_timer = step->min_rnr_timer;
		spin_unlock_bh(&qp->lock);
		ret = dapx_xrc_qp_ready_to_answer(qp);
		if (ret) {
			dapx_xrc_qp_stop(qp);
			return ret;
		}
		break;
	default:
		qp->attr.sq_psn = step->sq_psn;
		qp->attr.max_rd_atomic = step->max_rd_atomic;
		qp->attr.timeout = step->timeout;
		qp->attr.retry_count = step->retry_count;
		qp->attr.rnr_retry = step->rnr_retry;
		break;
	}
	WRITE_ONCE(qp->attr.state, step->state);
	return 0;
}

int dapx_cmd_xrc_qp_modify(struct dapx_ucmd *ucmd)
{
	const struct dapx_xrc_qp_modify *cmd = ucmd->cmd;
	struct dapx_xrcd *xrcd;
	struct dapx_xrc_qp *qp;
	int ret;

	if (cmd->flags)
		return -EOPNOTSUPP;
	if (cmd->qp.__reserved)
		return -EINVAL;
	qp = dapx_xrc_qp_lock(ucmd->ctx, cmd->xrcd, cmd->qp_num, true, &xrcd);
	if (IS_ERR(qp))
		return PTR_ERR(qp);
	mutex_lock(&qp->mutex);
	ret = dapx_xrc_qp_modify(qp, &cmd->qp);
	mutex_unlock(&qp->mutex);
	dapx_xrc_qp_unlock(xrcd);
	return ret;
}

static int dapx_xrc_qp_cm_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct dapx_xrc_qp *qp = id->context;

	WRITE_ONCE(qp->answered_at, 0);
	switch (event->event) {
	case RDMA_CM_EVENT_ESTABLISHED:
		/* It may have ended before the CM was able to tell the peer. */
		if (READ_ONCE(qp->attr.state) == DAPX_QP_ERROR)
			dapx_xrc_qp_queue_break(qp);
		break;
	case RDMA_CM_EVENT_ADDR_CHANGE:
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		dapx_xrc_qp_end(qp, DAPX_ASYNC_XRC_QP_DISCONNECTED);
		break;
	default:
		/* The connection was not established. */
		dapx_xrc_qp_fail(qp);
		break;
	}
	return 0;
}

static int dapx_xrc_qp_cm_step(struct dapx_xrc_qp *qp, struct rdma_cm_id *id,
			       enum ib_qp_state state)
{
	struct ib_qp_attr attr = { .qp_state = state };
	int mask, ret;

	ret = rdma_init_qp_attr(id, &attr, &mask);
	if (ret)
		return ret;
	if (mask & IB_QP_DEST_QPN)
		qp->attr.dest_qp_num = attr.dest_qp_num;
	if (mask & IB_QP_MIN_RNR_TIMER)
		attr.min_rnr_timer = DAPX_XRC_RNR_TIMER;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		attr.max_rd_atomic = 1;
	return dapx_xrc_qp_step(qp, &attr, mask);
}

/* Called with qp->mutex and the id's handler mutex held. */
static int dapx_xrc_qp_accept(struct dapx_xrc_qp *qp, struct rdma_cm_id *id,
			      const struct dapx_xrc_qp_accept *cmd)
{
	u8 private_data[DAPX_CM_HEADER_MAX + DAPX_PRIVATE_DATA_MAX];
	struct rdma_conn_param param = {
		.private_data = private_data,
		.private_data_len = sizeof(struct dapx_xrc_cm_header) + cmd->private_data_len,
		.responder_resources = 1,
		.initiator_depth = 1,
		.flow_control = 1,
		.rnr_retry_count = 7,
		.qp_num = qp->qp_num,
	};
	bool iwarp = qp->domain->dev->iwarp;
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RTR };
	int mask, ret;

	dapx_xrc_cm_header_write(private_data);
	memcpy(private_data + sizeof(struct dapx_xrc_cm_header), cmd->private_data,
	       cmd->private_data_len);
	/* Fails if the peer has given up. Nothing has changed yet. */
	ret = iwarp ? 0 : rdma_init_qp_attr(id, &attr, &mask);
	if (!ret)
		ret = dapx_xrc_qp_cm_step(qp, id, IB_QPS_INIT);
	if (ret)
		return ret == -EINVAL ? -EBADFD : ret;

	/* From here on a failure ends the connection instead of the command. */
	id->event_handler = dapx_xrc_qp_cm_handler;
	id->context = qp;
	qp->cm_id = id;
	WRITE_ONCE(qp->attr.state, DAPX_QP_RTS);
	/* Set bit 0, as 0 means none. */
	WRITE_ONCE(qp->answered_at, jiffies | 1);
	if (!iwarp)
		ret = dapx_xrc_qp_cm_step(qp, id, IB_QPS_RTR) ?:
		      dapx_xrc_qp_cm_step(qp, id, IB_QPS_RTS);
	if (ret)
		rdma_reject(id, NULL, 0, IB_CM_REJ_CONSUMER_DEFINED);
	else
		ret = rdma_accept(id, &param);
	if (ret)
		dapx_xrc_qp_fail(qp);
	return 0;
}

/* The caller has claimed @cm. */
static int dapx_xrc_qp_take_request(struct dapx_xrc_qp *qp, struct dapx_cm *cm,
				    const struct dapx_xrc_qp_accept *cmd)
{
	struct rdma_cm_id *id;
	int ret = -EBADFD;

	mutex_lock(&qp->mutex);
	id = cm->id;
	if (dapx_xrc_qp_state(qp) == DAPX_QP_RESET && !qp->cm_id) {
		rdma_lock_handler(id);
		ret = dapx_xrc_qp_accept(qp, id, cmd);
		rdma_unlock_handler(id);
	}
	mutex_unlock(&qp->mutex);
	if (!ret) {
		mutex_lock(&cm->id_mutex);
		cm->id = NULL;
		mutex_unlock(&cm->id_mutex);
	}
	return ret;
}

int dapx_cmd_xrc_qp_accept(struct dapx_ucmd *ucmd)
{
	const struct dapx_xrc_qp_accept *cmd = ucmd->cmd;
	struct dapx_xrcd *xrcd;
	struct dapx_xrc_qp *qp;
	struct dapx_cm *cm;
	bool claimed = false;
	int ret;

	if (cmd->flags)
		return -EOPNOTSUPP;
	if (cmd->__reserved || cmd->private_data_len >
	    IB_CM_REP_PRIVATE_DATA_SIZE - sizeof(struct dapx_xrc_cm_header))
		return -EINVAL;
	qp = dapx_xrc_qp_lock(ucmd->ctx, cmd->xrcd, cmd->qp_num, true, &xrcd);
	if (IS_ERR(qp))
		return PTR_ERR(qp);
	cm = dapx_get_cm(ucmd->ctx, cmd->cm);
	if (IS_ERR(cm)) {
		dapx_xrc_qp_unlock(xrcd);
		return PTR_ERR(cm);
	}

	ret = -EBADFD;
	if (READ_ONCE(cm->state) == DAPX_CM_REQUEST && !cm->xrc)
		ret = -EPROTO;
	else
		claimed = dapx_cm_claim_request(cm);
	/* A claimed request gets no candidate any more. */
	if (claimed && !cm->candidate)
		ret = dapx_xrc_qp_take_request(qp, cm, cmd);
	dapx_xrc_qp_unlock(xrcd);
	if (!ret)
		dapx_cm_request_handed_over(cm);
	else if (claimed)
		dapx_cm_unclaim_request(cm);
	dapx_object_put(&cm->obj);
	return ret;
}

/* Called with qp->mutex held. */
static int dapx_xrc_qp_disconnect(struct dapx_xrc_qp *qp)
{
	u32 state = dapx_xrc_qp_state(qp);

	if (state == DAPX_QP_RESET || state == DAPX_QP_ERROR)
		return -EBADFD;
	dapx_xrc_qp_notify_end(qp, DAPX_ASYNC_XRC_QP_DISCONNECTED);
	dapx_xrc_qp_stop(qp);
	if (qp->cm_id)
		rdma_disconnect(qp->cm_id);
	return 0;
}

int dapx_cmd_xrc_qp_disconnect(struct dapx_ucmd *ucmd)
{
	const struct dapx_xrc_qp_disconnect *cmd = ucmd->cmd;
	unsigned long received_at;
	struct dapx_xrcd *xrcd;
	struct dapx_xrc_qp *qp;
	int ret;

	if (cmd->flags)
		return -EOPNOTSUPP;
	qp = dapx_xrc_qp_lock(ucmd->ctx, cmd->xrcd, cmd->qp_num, true, &xrcd);
	if (IS_ERR(qp))
		return PTR_ERR(qp);
	received_at = READ_ONCE(qp->received_at);
	dapx_xrc_qp_unlock(xrcd);
	/* Not with the lock of the domain, which others share. */
	dapx_device_let_acknowledge(ucmd->ctx->dev, received_at);
	qp = dapx_xrc_qp_lock(ucmd->ctx, cmd->xrcd, cmd->qp_num, true, &xrcd);
	if (IS_ERR(qp))
		return PTR_ERR(qp);
	mutex_lock(&qp->mutex);
	ret = dapx_xrc_qp_disconnect(qp);
	mutex_unlock(&qp->mutex);
	dapx_xrc_qp_unlock(xrcd);
	return ret;
}

int dapx_cmd_xrc_qp_query(struct dapx_ucmd *ucmd)
{
	struct dapx_xrc_qp_query *cmd = ucmd->cmd;
	struct dapx_xrc_registration *reg;
	struct dapx_xrcd *xrcd;
	struct dapx_xrc_qp *qp;

	if (cmd->flags)
		return -EOPNOTSUPP;
	qp = dapx_xrc_qp_lock(ucmd->ctx, cmd->xrcd, cmd->qp_num, false, &xrcd);
	if (IS_ERR(qp))
		return PTR_ERR(qp);
	reg = dapx_xrc_qp_registration(qp, ucmd->ctx);
	cmd->out_xrc_qp = reg ? reg->obj.handle : 0;
	cmd->out_registrations = qp->num_registrations;
	spin_lock_bh(&qp->lock);
	cmd->out_messages = qp->resp.messages;
	cmd->out_not_ready = qp->not_ready;
	spin_unlock_bh(&qp->lock);
	mutex_lock(&qp->mutex);
	cmd->out_qp = qp->attr;
	cmd->out_qp.state = dapx_xrc_qp_state(qp);
	mutex_unlock(&qp->mutex);
	dapx_xrc_qp_unlock(xrcd);
	return dapx_respond(ucmd);
}
