// SPDX-License-Identifier: GPL-2.0
/*
 * Operations on shared receive queues and endpoints, and connections by numbers.
 */
#include "../harness/machine.h"
#include "../harness/xrc.h"
#include "ops.h"

/* ---- shared receive queues ---- */

void op_srq_make(struct actor *me, const __u8 *arg)
{
	struct srq *srq = &me->side->srq[arg[0] % SRQS];
	bool xrc = arg[2] % 2;
	struct dapx_srq_create cmd = {
		.pd = me->side->host.pd, .depth = 1 << arg[1] % 11, .max_sge = 1 + arg[5] % 2,
		.evd = xrc ? some_evd(me, arg[3]) : 0,
		.async_evd = arg[4] % 4 == 3 ? 0 : some_evd(me, arg[4]),
		.xrcd = xrc ? me->side->host.xrcd : 0,
	};

	free_handle(me, srq->handle, 0);
	if (_test_cmd_srq_create(me->side->host.fd, &cmd))
		return;
	srq->host = &me->side->host;
	srq->handle = cmd.out_srq;
	me->side->srq_num[arg[0] % SRQS] = cmd.out_srq_num;
	ring_map(me->side->host.fd, &cmd.out_ring, &srq->ring);
}

void op_srq_free(struct actor *me, const __u8 *arg)
{
	free_handle(me, me->side->srq[arg[0] % SRQS].handle, 0);
}

void op_srq_limit(struct actor *me, const __u8 *arg)
{
	struct dapx_srq_modify cmd = {
		.srq = me->side->srq[arg[0] % SRQS].handle, .limit = arg[1],
	};

	_test_cmd_srq_modify(me->side->host.fd, &cmd);
}

void op_srq_resize(struct actor *me, const __u8 *arg)
{
	struct srq *srq = &me->side->srq[arg[0] % SRQS];
	struct dapx_srq_resize cmd = { .srq = srq->handle, .depth = 1 << arg[1] % 8 };
	struct ring ring;

	if (!_test_cmd_srq_resize(me->side->host.fd, &cmd) &&
	    !ring_map(me->side->host.fd, &cmd.out_ring, &ring))
		srq->ring = ring;
}

/* ---- endpoints ---- */

void op_ep_make(struct actor *me, const __u8 *arg)
{
	struct ep *ep = some_ep(me, arg[0]);
	bool xrc = arg[5] % 4 == 3;
	struct dapx_ep_create cmd;
	struct ep made = {};

	free_handle(me, ep->handle, 0);
	if (xrc) {
		xrc_usual(&me->side->host, &cmd);
	} else {
		ep_usual(&me->side->host, &cmd);
		cmd.recv_evd = some_evd(me, arg[2]);
	}
	cmd.request_evd = some_evd(me, arg[1]);
	cmd.connect_evd = some_evd(me, arg[3]);
	cmd.attr.send_depth = 1 << arg[5] / 4 % 6;
	if (!on_siw() && arg[3] / 64 % 2)
		cmd.attr.flags |= DAPX_EP_TIMEWAIT_EXIT;
	if (!xrc) {
		cmd.attr.recv_depth = 1 << arg[4] % 8;
		if (arg[5] % 4 == 1)
			cmd.attr.flags |= DAPX_EP_SOLICITED;
		if (arg[5] % 4 == 2) {
			cmd.srq = me->side->srq[arg[4] % SRQS].handle;
			cmd.attr.recv_depth = 0;
		}
	}
	if (!ep_make(&me->side->host, &cmd, &made))
		*ep = made;
}

void op_ep_free(struct actor *me, const __u8 *arg)
{
	free_handle(me, some_ep(me, arg[0])->handle, 0);
}

void op_ep_modify(struct actor *me, const __u8 *arg)
{
	struct dapx_ep_modify cmd = {
		.ep = some_ep(me, arg[0])->handle,
		.mask = arg[1] % 4 == 3 ? arg[5] : DAPX_EP_MODIFY_REQUEST_EVD << arg[1] % 3,
		.pd = me->side->host.pd,
		.request_evd = some_evd(me, arg[2]),
		.recv_evd = some_evd(me, arg[3]),
		.connect_evd = some_evd(me, arg[4]),
	};

	_test_cmd_ep_modify(me->side->host.fd, &cmd);
}

void op_ep_resize(struct actor *me, const __u8 *arg)
{
	struct ep *ep = some_ep(me, arg[0]), resized;
	struct dapx_ep_resize cmd = { .ep = ep->handle };
	struct dapx_ep_create usual;

	ep_usual(&me->side->host, &usual);
	cmd.attr = usual.attr;
	cmd.attr.send_depth = 1 << arg[1] % 6;
	cmd.attr.recv_depth = 1 << arg[2] % 8;
	if (arg[3] % 4 == 3) {
		cmd.srq = me->side->srq[arg[3] / 4 % SRQS].handle;
		cmd.attr.recv_depth = 0;
	}
	if (arg[4] % 2)
		cmd.attr.flags |= DAPX_EP_SOLICITED;
	if (!_test_cmd_ep_resize(me->side->host.fd, &cmd) &&
	    !ep_adopt(&me->side->host, cmd.ep, &resized))
		*ep = resized;
}

void op_ep_step(struct actor *me, const __u8 *arg)
{
	const struct side *to = arg[2] % 2 ? me->side : me->other;

	ep_step(me->side, some_ep(me, arg[0])->handle, 1 + arg[1] % 3, to,
		to->ep[arg[3] % EPS].qp_num);
}

/* Both ends of a connection, of this side or of both. */
void op_ep_join(struct actor *me, const __u8 *arg)
{
	const struct side *to = arg[2] % 2 ? me->side : me->other;
	const struct ep *ep = some_ep(me, arg[0]), *peer = &to->ep[arg[1] % EPS];
	__u32 number = qp_number_of(me->side, ep), peer_number = qp_number_of(to, peer);
	unsigned int state;

	for (state = DAPX_QP_INIT; state <= DAPX_QP_RTS; state++) {
		ep_step(me->side, ep->handle, state, to, peer_number);
		ep_step(to, peer->handle, state, me->side, number);
	}
}

void op_ep_disconnect(struct actor *me, const __u8 *arg)
{
	struct dapx_ep_disconnect cmd = {
		.ep = some_ep(me, arg[0])->handle,
		.flags = arg[1] % 2 ? DAPX_DISCONNECT_ABRUPT : 0,
	};

	_test_cmd_ep_disconnect(me->side->host.fd, &cmd);
}

void op_ep_reset(struct actor *me, const __u8 *arg)
{
	struct dapx_ep_reset cmd = { .ep = some_ep(me, arg[0])->handle };

	_test_cmd_ep_reset(me->side->host.fd, &cmd);
}
