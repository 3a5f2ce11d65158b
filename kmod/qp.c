// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: the steps of a queue pair that processes connect by exchange of its number
 */
#include <rdma/ib_cache.h>

#include "dapx_private.h"

/*
 * @port: of the queue pair, unless this is the step that sets it. Rights are the
 * caller's to add.
 */
int dapx_qp_attr_build(struct dapx_device *dev, u8 port, const struct dapx_qp_attr *step,
		       struct ib_qp_attr *attr, int *mask)
{
	struct ib_device *ibdev = dev->ibdev;
	union ib_gid dgid;

	*attr = (struct ib_qp_attr) {};
	switch (step->state) {
	case DAPX_QP_INIT:
		if (!rdma_is_port_valid(ibdev, step->port) ||
		    step->pkey_index >= ibdev->port_data[step->port].immutable.pkey_tbl_len)
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
		/* Not before INIT. */
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
