// SPDX-License-Identifier: GPL-2.0
#include <stdint.h>

#include "cm.h"
#include "machine.h"
#include "xrc.h"

int host_xrc(struct host *host, int file)
{
	struct dapx_xrcd_open xrcd = { .fd = file, .flags = DAPX_XRCD_CREATE };
	struct dapx_mr_create mr = {
		.flags = DAPX_MR_XRC,
		.pd = host->pd,
		.addr = (uintptr_t)host->mem,
		.length = HOST_MEMORY,
		.access = DAPX_ACCESS_LOCAL_WRITE | DAPX_ACCESS_REMOTE_WRITE |
			  DAPX_ACCESS_REMOTE_READ | DAPX_ACCESS_REMOTE_ATOMIC,
	};
	struct dapx_free plain = { .handle = host->mr };

	if (_test_cmd_xrcd_open(host->fd, &xrcd))
		return because("DAPX_XRCD_OPEN: %m");
	host->xrcd = xrcd.out_xrcd;
	if (_test_cmd_mr_create(host->fd, &mr))
		return because("DAPX_MR_CREATE for XRC: %m");
	if (_test_cmd_free(host->fd, &plain))
		return because("DAPX_FREE: %m");
	host->mr = mr.out_mr;
	host->rkey = mr.out_rkey;
	return 0;
}

int xrc_srq_make(struct host *host, __u32 depth, struct xrc_srq *srq)
{
	return xrc_srq_make_with(host, depth, 0, srq);
}

int xrc_srq_make_with(struct host *host, __u32 depth, __u32 async_evd,
		      struct xrc_srq *srq)
{
	struct dapx_srq_create cmd = {
		.pd = host->pd, .depth = depth, .max_sge = 4,
		.xrcd = host->xrcd, .evd = host->recv.handle,
		.async_evd = async_evd,
	};

	if (_test_cmd_srq_create(host->fd, &cmd))
		return because("DAPX_SRQ_CREATE: %m");
	srq->srq.host = host;
	srq->srq.handle = cmd.out_srq;
	srq->number = cmd.out_srq_num;
	return ring_map(host->fd, &cmd.out_ring, &srq->srq.ring);
}

void xrc_usual(const struct host *host, struct dapx_ep_create *cmd)
{
	ep_usual(host, cmd);
	cmd->recv_evd = 0;
	cmd->xrcd = host->xrcd;
	cmd->attr.flags = DAPX_EP_XRC;
	cmd->attr.recv_depth = 0;
}

int xrc_ep_create(struct host *host, struct ep *ep)
{
	struct dapx_ep_create cmd;

	xrc_usual(host, &cmd);
	return ep_make(host, &cmd, ep);
}

int xrc_qp_make(struct host *host, __u32 *qp_num)
{
	struct dapx_xrc_qp_create cmd = {
		.xrcd = host->xrcd, .evd = host->conn.handle,
	};

	if (_test_cmd_xrc_qp_create(host->fd, &cmd))
		return because("DAPX_XRC_QP_CREATE: %m");
	*qp_num = cmd.out_qp_num;
	return 0;
}

int xrc_connect_qp(struct ep *ep, struct host *host, __u32 qp_num,
		   const struct qp_options *options)
{
	struct dapx_xrc_qp_modify init = {
		.xrcd = host->xrcd, .qp_num = qp_num,
		.qp = { .state = DAPX_QP_INIT, .port = 1 },
	};
	struct dapx_xrc_qp_modify rtr = {
		.xrcd = host->xrcd, .qp_num = qp_num,
		.qp = {
			.state = DAPX_QP_RTR,
			.dest_qp_num = qp_number(ep),
			.hop_limit = 64,
			.path_mtu = qp_usual.path_mtu,
			.min_rnr_timer = 12,
			.max_dest_rd_atomic = 8,
		},
	};
	__u8 gid[16];
	int index;

	if (!options)
		options = &qp_usual;
	init.qp.refused = options->refused;
	index = host_gid_index(host, gid);
	if (index < 0 || host_gid_index(ep->host, rtr.qp.dgid) < 0)
		return -1;
	rtr.qp.sgid_index = index;
	if (_test_cmd_xrc_qp_modify(host->fd, &init))
		return because("DAPX_XRC_QP_MODIFY to INIT: %m");
	if (_test_cmd_xrc_qp_modify(host->fd, &rtr))
		return because("DAPX_XRC_QP_MODIFY to RTR: %m");
	if (qp_init(ep) || qp_rtr(ep, qp_num, gid, options) ||
	    qp_rts(ep, options))
		return -1;
	return 0;
}

int xrc_connect_cm(struct ep *ep, struct host *host, __u32 qp_num)
{
	struct dapx_xrc_qp_accept cmd = {
		.xrcd = host->xrcd, .qp_num = qp_num,
	};
	struct listener listener;
	struct dapx_event event;

	if (listener_open(host, &listener) || ep_connect(ep, &listener) ||
	    listener_request(&listener, &event))
		return -1;
	cmd.cm = event.request.cm;
	if (_test_cmd_xrc_qp_accept(host->fd, &cmd))
		return because("DAPX_XRC_QP_ACCEPT: %m");
	if (expect_connection(&ep->host->conn, ep->handle,
			      DAPX_CONNECTION_ESTABLISHED, NULL))
		return -1;
	return listener_close(&listener);
}

int xrc_connect(struct ep *ep, struct host *host, __u32 qp_num)
{
	return on_siw() ? xrc_connect_cm(ep, host, qp_num) :
			  xrc_connect_qp(ep, host, qp_num, NULL);
}

int xrc_send(struct ep *ep, __u32 srq_num, __u64 wr_id, __u32 offset,
	     __u32 length)
{
	struct dapx_send_wr wr = {
		.wr_id = wr_id,
		.opcode = DAPX_OP_SEND,
		.num_sge = 1,
		.flags = DAPX_SEND_SIGNALED,
		.remote_srqn = srq_num,
	};
	struct dapx_sge sge = host_sge(ep->host, offset, length);

	return ep_post_send(ep, &wr, &sge);
}
