// SPDX-License-Identifier: GPL-2.0
#include <string.h>

#include "qp.h"

const struct qp_options qp_usual = {
	.timeout = 14,
	.retry_count = 7,
	.rnr_retry = 7,
	.path_mtu = 3,
};

int qp_init(struct ep *ep)
{
	struct dapx_ep_modify cmd = {
		.ep = ep->handle,
		.mask = DAPX_EP_MODIFY_QP,
		.qp.state = DAPX_QP_INIT,
		.qp.port = 1,
	};

	if (_test_cmd_ep_modify(ep->host->fd, &cmd))
		return because("DAPX_EP_MODIFY to INIT: %m");
	return 0;
}

int qp_rtr(struct ep *ep, __u32 dest_qp_num, const __u8 dgid[16],
	   const struct qp_options *options)
{
	struct dapx_ep_modify cmd = {
		.ep = ep->handle,
		.mask = DAPX_EP_MODIFY_QP,
		.qp.state = DAPX_QP_RTR,
		.qp.dest_qp_num = dest_qp_num,
		.qp.hop_limit = 64,
		.qp.min_rnr_timer = 1,
		.qp.max_dest_rd_atomic = 8,
	};
	__u8 sgid[16];
	int index;

	index = host_gid_index(ep->host, sgid);
	if (index < 0)
		return -1;
	cmd.qp.path_mtu = options ? options->path_mtu : qp_usual.path_mtu;
	cmd.qp.sgid_index = index;
	memcpy(cmd.qp.dgid, dgid, sizeof(cmd.qp.dgid));
	if (_test_cmd_ep_modify(ep->host->fd, &cmd))
		return because("DAPX_EP_MODIFY to RTR: %m");
	return 0;
}

int qp_rts(struct ep *ep, const struct qp_options *options)
{
	struct dapx_ep_modify cmd = {
		.ep = ep->handle,
		.mask = DAPX_EP_MODIFY_QP,
		.qp.state = DAPX_QP_RTS,
		.qp.max_rd_atomic = 8,
	};

	if (!options)
		options = &qp_usual;
	cmd.qp.timeout = options->timeout;
	cmd.qp.retry_count = options->retry_count;
	cmd.qp.rnr_retry = options->rnr_retry;
	if (_test_cmd_ep_modify(ep->host->fd, &cmd))
		return because("DAPX_EP_MODIFY to RTS: %m");
	return 0;
}

__u32 qp_number(const struct ep *ep)
{
	struct dapx_ep_query query = { .ep = ep->handle };

	if (_test_cmd_ep_query(ep->host->fd, &query))
		return 0;
	return query.out_qp_num;
}

int connect_qp(struct ep *a, struct ep *b, const struct qp_options *options)
{
	__u8 gid_a[16], gid_b[16];

	if (host_gid_index(a->host, gid_a) < 0 ||
	    host_gid_index(b->host, gid_b) < 0 ||
	    qp_init(a) || qp_init(b) ||
	    qp_rtr(a, qp_number(b), gid_b, options) ||
	    qp_rtr(b, qp_number(a), gid_a, options) ||
	    qp_rts(a, options) || qp_rts(b, options))
		return -1;
	return 0;
}
