// SPDX-License-Identifier: GPL-2.0
/*
 * Operations on CM ids, and connections by the CM.
 */
#include "../harness/cm.h"
#include "ops.h"

void op_listen(struct actor *me, const __u8 *arg)
{
	struct side *side = me->side;
	__u32 *cm = &side->cm[arg[0] % CMS];
	struct dapx_cm_create create = { .evd = side->host.conn.handle };
	struct dapx_cm_listen listen = { .mode = arg[1] % 3, .backlog = arg[2] % 4 };

	free_handle(me, *cm, DAPX_FREE_DISCARD);
	if (arg[3] % 2)
		create.evd = some_evd(me, arg[3]);
	if (_test_cmd_cm_create(side->host.fd, &create))
		return;
	*cm = create.out_cm;
	listen.cm = create.out_cm;
	if (listen.mode == DAPX_LISTEN_RESERVED)
		listen.ep = some_ep(me, arg[4])->handle;
	if (listen.mode == DAPX_LISTEN_TENTATIVE) {
		struct dapx_ep_create usual;

		ep_usual(&side->host, &usual);
		listen.attr = usual.attr;
	}
	if (!cm_bind_to(&side->host, *cm, side->host.addr, 0) &&
	    !_test_cmd_cm_listen(side->host.fd, &listen))
		side->port = cm_local_port(&side->host, *cm);
}

void op_cm(struct actor *me, const __u8 *arg)
{
	struct host *host = &me->side->host;
	__u32 *cm = &me->side->cm[arg[0] % CMS];
	struct dapx_cm_create create = { .evd = some_evd(me, arg[2]) };
	struct dapx_cm_query query = { .cm = *cm };
	struct dapx_cm_ack ack = { .cm = *cm, .events = 1 + arg[3] % 2 };

	switch (arg[1] % 8) {
	case 0:
		if (!_test_cmd_cm_create(host->fd, &create))
			*cm = create.out_cm;
		break;
	case 1:
		cm_bind_to(host, *cm, host->addr, arg[2] < 128 ? 0 : 2000 + arg[2]);
		break;
	case 2:
		cm_resolve_addr(host, *cm, me->other->host.addr, me->other->port,
				arg[2] % 2 ? host->addr : NULL, 1 + arg[3]);
		break;
	case 3:
		cm_resolve_route(host, *cm);
		break;
	case 4:
		_test_cmd_cm_query(host->fd, &query);
		break;
	case 5:
		_test_cmd_cm_ack(host->fd, &ack);
		break;
	case 6:
		free_handle(me, *cm, DAPX_FREE_NOWAIT);
		break;
	default:
		free_handle(me, *cm, DAPX_FREE_DISCARD);
		break;
	}
}

void op_ep_connect(struct actor *me, const __u8 *arg)
{
	const struct side *to = arg[1] % 4 == 3 ? me->side : me->other;
	struct dapx_ep_connect cmd = {
		.ep = some_ep(me, arg[0])->handle,
		.retry_count = arg[4] % 8, .rnr_retry_count = arg[4] % 8,
		.private_data_len = arg[3] % 57,
		.deadline = arg[5] % 4 ? in_ms(100 + arg[5]) : in_ms(arg[5] / 4),
	};

	if (arg[2] % 4 == 3) {
		cmd.cm = me->side->cm[arg[3] % CMS];
	} else {
		set_addr(&cmd.dst, to->host.addr, to->port);
		set_addr(&cmd.src, me->side->host.addr, 0);
	}
	memset(cmd.private_data, arg[5], cmd.private_data_len);
	_test_cmd_ep_connect(me->side->host.fd, &cmd);
}

/* A connection by steps: what the CM knows of one, and what goes before and after them. */
void op_ep_by_steps(struct actor *me, const __u8 *arg)
{
	const int fd = me->side->host.fd;
	const __u32 ep = some_ep(me, arg[0])->handle;
	const __u32 cm = me->side->cm[arg[2] % CMS];
	const __u32 request = me->side->request[arg[2] % REQUESTS];
	struct dapx_cm_query query = { .cm = arg[3] / 4 % 2 ? cm : request };
	struct dapx_ep_modify step = { .ep = ep, .mask = DAPX_EP_MODIFY_QP };
	struct dapx_ep_connect connect = {
		.ep = ep, .cm = cm, .flags = DAPX_CONNECT_STEPS, .deadline = in_ms(200),
	};
	struct dapx_ep_accept accept = {
		.ep = ep, .cm = request, .flags = DAPX_CONNECT_STEPS,
	};
	struct dapx_ep_establish establish = { .ep = ep };

	switch (arg[1] % 4) {
	case 0:
		_test_cmd_cm_query(fd, &query);
		step.qp = query.out_qp;
		step.qp.state = 1 + arg[3] % 3;
		_test_cmd_ep_modify(fd, &step);
		break;
	case 1:
		_test_cmd_ep_connect(fd, &connect);
		break;
	case 2:
		_test_cmd_ep_accept(fd, &accept);
		break;
	default:
		_test_cmd_ep_establish(fd, &establish);
		break;
	}
}

void op_answer(struct actor *me, const __u8 *arg)
{
	struct host *host = &me->side->host;
	__u32 request = me->side->request[arg[0] % REQUESTS];
	struct dapx_ep_accept accept = {
		.ep = some_ep(me, arg[2])->handle, .cm = request, .rnr_retry_count = arg[4] % 8,
		.private_data_len = arg[3] % 197,
	};
	struct dapx_xrc_qp_accept xrc = {
		.xrcd = host->xrcd, .qp_num = me->side->recv_qp[arg[2] % RECV_QPS],
		.cm = request, .private_data_len = arg[3] % 189,
	};
	struct dapx_cm_reject reject = { .cm = request, .private_data_len = arg[3] % 149 };
	struct dapx_cm_take take = { .cm = request, .evd = some_evd(me, arg[4]) };

	switch (arg[1] % 8) {
	case 0:
	case 1:
	case 2:
		_test_cmd_ep_accept(host->fd, &accept);
		break;
	case 3:
	case 4:
		_test_cmd_xrc_qp_accept(host->fd, &xrc);
		break;
	case 5:
		_test_cmd_cm_reject(host->fd, &reject);
		break;
	case 6:
		_test_cmd_cm_take(host->fd, &take);
		break;
	default:
		free_handle(me, request, arg[3] % 2 ? DAPX_FREE_DISCARD : DAPX_FREE_NOWAIT);
		break;
	}
}
