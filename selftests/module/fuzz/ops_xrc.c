// SPDX-License-Identifier: GPL-2.0
/*
 * Operations on XRC receive queue pairs.
 */
#include "../harness/xrc.h"
#include "ops.h"

void op_recv_qp_make(struct actor *me, const __u8 *arg)
{
	__u32 *number = &me->side->recv_qp[arg[0] % RECV_QPS];
	struct dapx_xrc_qp_create cmd = {
		.xrcd = me->side->host.xrcd, .evd = arg[1] % 4 ? some_evd(me, arg[1]) : 0,
	};

	if (!_test_cmd_xrc_qp_create(me->side->host.fd, &cmd))
		*number = cmd.out_qp_num;
}

/* Of one that this side, or the other, has made. */
void op_recv_qp(struct actor *me, const __u8 *arg)
{
	const struct side *of = arg[2] % 4 == 3 ? me->other : me->side;
	__u32 number = of->recv_qp[arg[0] % RECV_QPS], xrcd = me->side->host.xrcd;
	struct dapx_xrc_qp_register enter = {
		.xrcd = xrcd, .qp_num = number, .evd = some_evd(me, arg[3]),
	};
	struct dapx_xrc_qp_unregister leave = { .xrcd = xrcd, .qp_num = number };
	struct dapx_xrc_qp_query query = { .xrcd = xrcd, .qp_num = number };

	struct dapx_xrc_qp_disconnect end = { .xrcd = xrcd, .qp_num = number };

	switch (arg[1] % 8) {
	case 0:
		_test_cmd_xrc_qp_register(me->side->host.fd, &enter);
		break;
	case 1:
		_test_cmd_xrc_qp_query(me->side->host.fd, &query);
		break;
	case 2:
		_test_cmd_xrc_qp_disconnect(me->side->host.fd, &end);
		break;
	default:
		_test_cmd_xrc_qp_unregister(me->side->host.fd, &leave);
		break;
	}
}

/* A sending endpoint of the other side, and a receive queue pair of this one. */
void op_recv_qp_join(struct actor *me, const __u8 *arg)
{
	const struct ep *ep = &me->other->ep[arg[1] % EPS];
	__u32 number = me->side->recv_qp[arg[0] % RECV_QPS];
	struct dapx_xrc_qp_modify cmd = {
		.xrcd = me->side->host.xrcd, .qp_num = number,
		.qp = {
			.port = 1, .dest_qp_num = qp_number_of(me->other, ep), .hop_limit = 64,
			.path_mtu = 3, .min_rnr_timer = 1, .max_dest_rd_atomic = 8,
			.sgid_index = me->side->gid_index,
		},
	};

	memcpy(cmd.qp.dgid, me->other->gid, sizeof(cmd.qp.dgid));
	for (cmd.qp.state = DAPX_QP_INIT; cmd.qp.state <= DAPX_QP_RTS; cmd.qp.state++) {
		_test_cmd_xrc_qp_modify(me->side->host.fd, &cmd);
		ep_step(me->other, ep->handle, cmd.qp.state, me->side, number);
	}
}
