// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: the transport of plain endpoints: their requests are those of a queue pair
 */
#include "ep.h"

static void dapx_rc_qp_params(const struct dapx_ep *ep, const struct dapx_pd *pd,
			      struct dapx_qp_params *params)
{
	const struct dapx_ep_attr *attr = &ep->attr;

	params->pd = pd->ibpd;
	params->srq = ep->srq ? ep->srq->ibsrq : NULL;
	params->send_depth = attr->send_depth;
	params->recv_depth = ep->srq ? ep->srq->rq.view.depth : attr->recv_depth;
	params->max_send_sge = max_t(u32, attr->max_send_sge, 1);
	params->max_recv_sge = ep->srq ? 0 : attr->max_recv_sge;
	if (attr->flags & DAPX_EP_SOLICITED && params->recv_depth)
		params->recv_cq_handler = dapx_ep_recv_cq_handler;
}

static int dapx_rc_access_flags(const struct dapx_ep *ep)
{
	int flags = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ;

	if (ep->qp->device->attrs.atomic_cap != IB_ATOMIC_NONE)
		flags |= IB_ACCESS_REMOTE_ATOMIC;
	return flags;
}

const struct dapx_transport_ops dapx_rc_transport = {
	.send_ops = &dapx_send_ops,
	.maps_inline = true,
	.accepts = true,
	.qp_params = dapx_rc_qp_params,
	.access_flags = dapx_rc_access_flags,
};
