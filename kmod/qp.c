// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: queue pairs: they are created with their CQs, destroyed, and taken through their states
 * if processes connect them by exchange of QP numbers
 */
#include <linux/etherdevice.h>
#include <rdma/ib_cache.h>

#include "ep.h"

int dapx_qp_create(struct dapx_device *dev, const struct dapx_qp_params *params,
		   struct dapx_qp *out)
{
	bool lazy = params->recv_cq_handler;
	struct ib_cq_init_attr cq_attr = { .cqe = params->recv_depth };
	struct ib_qp_init_attr attr = {
		.event_handler = params->event_handler,
		.qp_context = params->context,
		.srq = params->srq,
		.cap = {
			.max_send_wr = params->send_depth,
			.max_recv_wr = params->srq ? 0 : params->recv_depth,
			.max_send_sge = params->max_send_sge,
			.max_recv_sge = params->max_recv_sge,
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};
	int ret;

	/*
	 * The CQ has room for all requests and receives of the queue pair, so it cannot
	 * overflow.
	 */
	out->cq = __ib_alloc_cq_any(dev->ibdev, params->context,
				    params->send_depth + (lazy ? 0 : params->recv_depth),
				    IB_POLL_SOFTIRQ, params->owner);
	if (IS_ERR(out->cq))
		return PTR_ERR(out->cq);
	out->cq->comp_handler = params->cq_handler;
	out->recv_cq = NULL;
	if (lazy) {
		out->recv_cq = __ib_create_cq(dev->ibdev, params->recv_cq_handler, NULL,
					      params->context, &cq_attr, params->owner);
		if (IS_ERR(out->recv_cq)) {
			ret = PTR_ERR(out->recv_cq);
			goto err_cq;
		}
		ib_req_notify_cq(out->recv_cq, IB_CQ_SOLICITED);
	}
	attr.send_cq = out->cq;
	attr.recv_cq = lazy ? out->recv_cq : out->cq;
	out->qp = ib_create_qp_kernel(params->pd, &attr, params->owner);
	if (IS_ERR(out->qp)) {
		ret = PTR_ERR(out->qp);
		goto err_recv_cq;
	}
	return 0;

err_recv_cq:
	if (out->recv_cq)
		ib_destroy_cq(out->recv_cq);
err_cq:
	ib_free_cq(out->cq);
	/* rxe creates a socket for each queue pair, which may fail with ENFILE. */
	return ret == -ENFILE ? -ENOMEM : ret;
}

/* Destroys a queue pair that was never used. */
void dapx_qp_discard(const struct dapx_qp *new)
{
	ib_destroy_qp(new->qp);
	if (new->recv_cq)
		ib_destroy_cq(new->recv_cq);
	ib_free_cq(new->cq);
}

/*
 * When this returns, no completion handler of @cq runs any more. @qp and @cq may be NULL.
 * @silence: what dapx_device_silence_qp() returned.
 */
void dapx_qp_destroy(struct dapx_device *dev, struct ib_qp *qp, unsigned long silence,
		     struct ib_cq *cq, struct irq_work *irq_work)
{
	if (qp) {
		dapx_device_wait_silent(dev, silence);
		ib_destroy_qp(qp);
	}
	if (!cq)
		return;
	irq_work_sync(irq_work);
	ib_process_cq_direct(cq, -1);
	ib_free_cq(cq);
}

/* @port is the queue pair's, unless this step sets it. The caller adds the access rights. */
int dapx_qp_attr_build(struct dapx_device *dev, u8 port, const struct dapx_qp_attr *step,
		       struct ib_qp_attr *attr, int *mask)
{
	struct ib_device *ibdev = dev->ibdev;
	union ib_gid dgid;

	*attr = (struct ib_qp_attr) {};
	switch (step->state) {
	case DAPX_QP_INIT:
		if (!rdma_is_port_valid(ibdev, step->port) ||
		    step->pkey_index >= ibdev->port_data[step->port].immutable.pkey_tbl_len ||
		    step->refused & ~DAPX_ACCESS_REMOTE)
			return -EINVAL;
		attr->qp_state = IB_QPS_INIT;
		attr->pkey_index = step->pkey_index;
		attr->port_num = step->port;
		*mask = IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS;
		return 0;
	case DAPX_QP_RTR:
		if (step->dest_qp_num >= BIT(24) || step->rq_psn >= BIT(24) ||
		    step->path_mtu < IB_MTU_256 || step->path_mtu > IB_MTU_4096 ||
		    step->min_rnr_timer > 31 || step->sl > 15 || step->flow_label >= BIT(20) ||
		    step->max_dest_rd_atomic > min(ibdev->attrs.max_qp_rd_atom, U8_MAX))
			return -EINVAL;
		/* The port is set by the step to INIT, which has to come first. */
		if (!rdma_is_port_valid(ibdev, port))
			return -EBADFD;
		if (step->sgid_index >= ibdev->port_data[port].immutable.gid_tbl_len ||
		    (step->dlid && rdma_protocol_roce(ibdev, port)))
			return -EINVAL;
		memcpy(dgid.raw, step->dgid, sizeof(dgid.raw));
		attr->qp_state = IB_QPS_RTR;
		attr->path_mtu = step->path_mtu;
		attr->dest_qp_num = step->dest_qp_num;
		attr->rq_psn = step->rq_psn;
		attr->max_dest_rd_atomic = step->max_dest_rd_atomic;
		attr->min_rnr_timer = step->min_rnr_timer;
		attr->ah_attr.type = rdma_ah_find_type(ibdev, port);
		rdma_ah_set_port_num(&attr->ah_attr, port);
		rdma_ah_set_sl(&attr->ah_attr, step->sl);
		rdma_ah_set_dlid(&attr->ah_attr, step->dlid);
		rdma_ah_set_grh(&attr->ah_attr, &dgid, step->flow_label, step->sgid_index,
				step->hop_limit, step->traffic_class);
		*mask = IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
			IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER;
		return 0;
	case DAPX_QP_RTS:
		if (step->sq_psn >= BIT(24) || step->timeout > 31 || step->retry_count > 7 ||
		    step->rnr_retry > 7 ||
		    step->max_rd_atomic > min(ibdev->attrs.max_qp_init_rd_atom, U8_MAX))
			return -EINVAL;
		attr->qp_state = IB_QPS_RTS;
		attr->sq_psn = step->sq_psn;
		attr->timeout = step->timeout;
		attr->retry_cnt = step->retry_count;
		attr->rnr_retry = step->rnr_retry;
		attr->max_rd_atomic = step->max_rd_atomic;
		*mask = IB_QP_STATE | IB_QP_SQ_PSN | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
			IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC;
		return 0;
	default:
		return -EINVAL;
	}
}

/* Adds a step of the RDMA CM to those before it, of which it uses no member. */
void dapx_qp_attr_add_step(struct dapx_device *dev, struct dapx_qp_attr *steps,
			   const struct ib_qp_attr *attr)
{
	const struct ib_device_attr *limits = &dev->ibdev->attrs;
	const struct ib_global_route *grh;

	switch (attr->qp_state) {
	case IB_QPS_INIT:
		steps->state = DAPX_QP_INIT;
		steps->pkey_index = attr->pkey_index;
		steps->port = attr->port_num;
		break;
	case IB_QPS_RTR:
		steps->state = DAPX_QP_RTR;
		steps->dest_qp_num = attr->dest_qp_num;
		steps->rq_psn = attr->rq_psn;
		steps->path_mtu = attr->path_mtu;
		/* The peer may ask for more than the device supports. */
		steps->max_dest_rd_atomic = min_t(int, attr->max_dest_rd_atomic,
						  limits->max_qp_rd_atom);
		steps->min_rnr_timer = DAPX_MIN_RNR_TIMER;
		steps->sl = rdma_ah_get_sl(&attr->ah_attr);
		if (attr->ah_attr.type == RDMA_AH_ATTR_TYPE_IB)
			steps->dlid = rdma_ah_get_dlid(&attr->ah_attr);
		grh = rdma_ah_read_grh(&attr->ah_attr);
		memcpy(steps->dgid, grh->dgid.raw, sizeof(steps->dgid));
		steps->sgid_index = grh->sgid_index;
		steps->hop_limit = grh->hop_limit;
		steps->traffic_class = grh->traffic_class;
		steps->flow_label = grh->flow_label;
		break;
	case IB_QPS_RTS:
		steps->state = DAPX_QP_RTS;
		steps->sq_psn = attr->sq_psn;
		steps->timeout = attr->timeout;
		steps->retry_count = attr->retry_cnt;
		steps->rnr_retry = attr->rnr_retry;
		steps->max_rd_atomic = min_t(int, attr->max_rd_atomic,
					     limits->max_qp_init_rd_atom);
		break;
	default:
		break;
	}
}

/*
 * The RDMA CM knows the Ethernet address of the peer; a process gives none. The RDMA core
 * resolves it, as it does for those who use verbs: that takes a second at most.
 */
int dapx_qp_modify(struct ib_qp *qp, struct ib_qp_attr *attr, int mask)
{
	struct ib_udata resolve = {};
	bool resolved = !(mask & IB_QP_AV) || attr->ah_attr.type != RDMA_AH_ATTR_TYPE_ROCE ||
			!is_zero_ether_addr(attr->ah_attr.roce.dmac);

	return ib_modify_qp_with_udata(qp, attr, mask, resolved ? NULL : &resolve);
}
