// SPDX-License-Identifier: GPL-2.0
/*
 * Operations on event dispatchers.
 */
#include "../harness/cm.h"
#include "coverage.h"
#include "ops.h"

void op_evd_make(struct actor *me, const __u8 *arg)
{
	struct evd *evd = &me->side->evd[arg[0] % EVDS];
	struct evd made = {};

	free_handle(me, evd->handle, 0);
	if (!evd_make(me->side->host.fd, 1 << arg[1] % 4, arg[2] % 4 == 3 ? DAPX_EVD_ASYNC : 0,
		      &made))
		*evd = made;
}

void op_evd_free(struct actor *me, const __u8 *arg)
{
	free_handle(me, me->side->evd[arg[0] % EVDS].handle, 0);
}

static void take_event(struct actor *me, const struct dapx_event *event, const __u8 *arg)
{
	struct dapx_cm_ack ack = { .cm = event->handle, .events = 1 };
	/* What happened, or the status and the opcode of a completion; no state has this bit. */
	__u32 note = 1U << 31 | event->type << 24;

	if (event->type == DAPX_EVENT_COMPLETION)
		note |= event->completion.status << 16 | event->completion.opcode << 8 |
			event->completion.flags;
	else
		note |= event->connection.what << 16;
	coverage_note(note);
	if (event->type != DAPX_EVENT_CONNECT_REQUEST && event->type != DAPX_EVENT_CM)
		return;
	if (event->type == DAPX_EVENT_CONNECT_REQUEST) {
		me->side->request[arg[2] % REQUESTS] = event->request.cm;
		if (event->request.ep)
			ep_adopt(&me->side->host, event->request.ep,
				 &me->side->ep[arg[3] % EPS]);
	}
	if (arg[4] % 4)
		_test_cmd_cm_ack(me->side->host.fd, &ack);
}

void op_evd_read(struct actor *me, const __u8 *arg)
{
	struct side *side = me->side;
	struct evd *evd = arg[0] % (EVDS + 1) < EVDS ? &side->evd[arg[0] % (EVDS + 1)] :
						       &side->host.conn;
	unsigned int n = 1 + arg[1] % 16;
	struct dapx_event event;

	while (evd->ring.map && n-- && evd_poll(evd, &event))
		take_event(me, &event, arg);
}

void op_evd_wait(struct actor *me, const __u8 *arg)
{
	struct dapx_evd_wait cmd = {
		.evd = arg[0] == EVDS ? me->side->host.conn.handle : some_evd(me, arg[0]),
		.threshold = 1 + (arg[2] % 8 == 7),
		.flags = arg[1] % 2 ? DAPX_WAIT_SOLICITED : 0,
		.deadline = now_ns() + arg[3] % 64 * 200000ULL,
	};

	_test_cmd_evd_wait(me->side->host.fd, &cmd);
}

void op_evd_resize(struct actor *me, const __u8 *arg)
{
	struct evd *evd = &me->side->evd[arg[0] % EVDS];
	struct dapx_evd_resize cmd = { .evd = evd->handle, .depth = 1 << arg[1] % 6 };
	struct ring ring;

	if (!_test_cmd_evd_resize(me->side->host.fd, &cmd) &&
	    !ring_map(me->side->host.fd, &cmd.out_ring, &ring))
		evd->ring = ring;
}

void op_evd_post(struct actor *me, const __u8 *arg)
{
	struct dapx_evd_post cmd = { .evd = some_evd(me, arg[0]), .data = { arg[1], arg[2] } };

	_test_cmd_evd_post(me->side->host.fd, &cmd);
}

void op_evd_eventfd(struct actor *me, const __u8 *arg)
{
	struct dapx_evd_eventfd cmd = {
		.evd = some_evd(me, arg[0]), .fd = arg[1] % 4 ? eventfd_of_all : -1,
		.flags = arg[2] % 2 ? DAPX_EVENTFD_ONCE : 0,
	};
	struct evd *evd = &me->side->evd[arg[0] % EVDS];

	_test_cmd_evd_eventfd(me->side->host.fd, &cmd);
	if (evd->ring.map)
		evd_arm(evd);
}
