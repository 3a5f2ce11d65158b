// SPDX-License-Identifier: GPL-2.0
/*
 * Operations on memory regions and windows.
 */
#include <stdint.h>

#include "ops.h"

void op_mr(struct actor *me, const __u8 *arg)
{
	struct host *host = &me->side->host;
	struct dapx_mr_create create = {
		.flags = arg[1] % 2 ? DAPX_MR_XRC : 0, .pd = host->pd,
		.access = 15, .addr = (uintptr_t)host->mem + arg[2] * 512,
		.length = HOST_MEMORY - arg[2] * 512,
	};
	struct dapx_mr_modify modify = { .flags = DAPX_MR_XRC, .mr = host->mr };

	switch (arg[0] % 4) {
	case 0:
		free_handle(me, host->mr, 0);
		break;
	case 1:
		_test_cmd_mr_modify(host->fd, &modify);
		break;
	default:
		if (_test_cmd_mr_create(host->fd, &create))
			return;
		host->mr = create.out_mr;
		host->rkey = create.out_rkey;
		break;
	}
}

void op_window(struct actor *me, const __u8 *arg)
{
	struct host *host = &me->side->host;
	__u32 *window = &me->side->window[arg[0] % WINDOWS];
	struct dapx_rmr_create create = { .pd = host->pd };
	struct dapx_rmr_query query = { .rmr = *window, .mask = RMR_FIELDS };
	struct dapx_rmr_bind bind = {
		.rmr = *window, .ep = some_ep(me, arg[2])->handle, .mr = some_mr(me, arg[3]),
		.addr = (uintptr_t)host->mem + arg[4] * 256, .length = 1 + arg[5] * 16,
		.access = DAPX_ACCESS_REMOTE_READ | (arg[4] & 1 ? DAPX_ACCESS_REMOTE_WRITE : 0),
		.flags = arg[5] & 1 ? DAPX_BIND_SIGNALED : 0,
	};

	switch (arg[1] % 8) {
	case 0:
	case 1:
		if (!_test_cmd_rmr_create(host->fd, &create))
			*window = create.out_rmr;
		break;
	case 2:
		free_handle(me, *window, 0);
		break;
	case 3:
		_test_cmd_rmr_query(host->fd, &query);
		break;
	case 4:
		bind.mr = 0;
		bind.addr = 0;
		bind.length = 0;
		bind.access = 0;
		_test_cmd_rmr_bind(host->fd, &bind);
		break;
	default:
		if (!_test_cmd_rmr_bind(host->fd, &bind))
			me->side->window_key = bind.out_rkey;
		break;
	}
}
