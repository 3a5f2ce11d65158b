// SPDX-License-Identifier: GPL-2.0
/*
 * Operations on rings of work.
 */
#include <stdint.h>

#include "ops.h"

/* So many, of which all or the last are malformed. */
void op_recv(struct actor *me, const __u8 *arg)
{
	unsigned int n = 1 << arg[1] % 11, bad = arg[2] % 12, i;
	struct {
		struct dapx_recv_wr wr;
		struct dapx_sge sge;
	} entry;
	struct ring *ring;
	__u32 handle;

	ring = some_queue(me, arg[0], &handle);
	if (!ring->depth)
		return;
	for (i = 1; i <= n; i++) {
		bool wrong = i == n || bad & 4;

		entry.wr = (struct dapx_recv_wr) {
			.wr_id = arg[5],
			.flags = arg[3] & 0x80 ? DAPX_RECV_QUIET : 0,
			.num_sge = 1,
		};
		entry.sge = host_sge(&me->side->host, 4096 + arg[5] * 16, 1 << arg[4] % 12);
		if (wrong && bad % 4 == 1)
			entry.sge.mr = odd_handle(me, arg[5]);
		if (wrong && bad % 4 == 2)
			entry.wr.num_sge = arg[5];
		if (wrong && bad % 4 == 3)
			entry.wr.flags = 1U << 31;
		if (ring_push(ring, &entry, sizeof(entry)))
			break;
	}
	if (arg[3] % 4)
		ring_bell(me->side->host.fd, handle, DAPX_DOORBELL_RECV, ring);
}

void op_send(struct actor *me, const __u8 *arg)
{
	unsigned int n = 1 << (arg[1] & 7), bad = arg[3] % 8, i;
	const struct side *to = arg[4] & 0x80 ? me->side : me->other;
	struct ep *ep = some_ep(me, arg[0]);
	bool xrc = ep->attr.flags & DAPX_EP_XRC;
	struct dapx_send_wr wr = {
		.wr_id = arg[5],
		.opcode = arg[2] % 8,
		.flags = (arg[1] >> 4 & 7) | (arg[1] >> 7) * DAPX_SEND_QUIET,
		.num_sge = 1,
		.remote_srqn = xrc ? to->srq_num[arg[4] % SRQS] : 0,
		.remote_addr = (uintptr_t)to->host.mem + 8192 + arg[5] * 8,
		.rkey = arg[4] & 0x40 ? to->window_key : to->host.rkey,
	};
	struct dapx_sge sge = host_sge(&me->side->host, arg[5] * 16, 8);

	if (!ep->send.depth)
		return;
	if (wr.opcode < DAPX_OP_RDMA_READ)
		sge.length = 1 << arg[4] % 16;
	switch (bad) {
	case 4:
		sge.mr = odd_handle(me, arg[5]);
		break;
	case 5:
		wr.num_sge = arg[5] % 16;
		break;
	case 6:
		wr.remote_addr = odd_value(arg[5]);
		wr.remote_srqn = odd_value(arg[5]);
		break;
	case 7:
		wr.rkey = odd_value(arg[5]);
		break;
	}
	for (i = 0; i < n && !ep_push_send(ep, &wr, &sge); i++)
		;
	ring_bell(me->side->host.fd, ep->handle, DAPX_DOORBELL_SEND, &ep->send);
}

void op_bell(struct actor *me, const __u8 *arg)
{
	struct dapx_doorbell cmd = { .flags = arg[1] % 8 };

	if (arg[1] % 8 == DAPX_DOORBELL_RECV)
		some_queue(me, arg[0], &cmd.handle);
	else if (arg[1] % 8 == DAPX_DOORBELL_EVENTS)
		cmd.handle = some_evd(me, arg[0]);
	else
		cmd.handle = some_ep(me, arg[0])->handle;
	_test_cmd_doorbell(me->side->host.fd, &cmd);
}

/* What the process may write at any time, and the kernel reads. */
void op_scribble(struct actor *me, const __u8 *arg)
{
	struct side *side = me->side;
	struct ring *rings[EVDS + SRQS + 2 * EPS], *ring;
	__u32 *words[5], *word, old;
	unsigned int n = 0, i;

	for (i = 0; i < EVDS; i++)
		rings[n++] = &side->evd[i].ring;
	for (i = 0; i < SRQS; i++)
		rings[n++] = &side->srq[i].ring;
	for (i = 0; i < EPS; i++) {
		rings[n++] = &side->ep[i].send;
		rings[n++] = &side->ep[i].recv;
	}
	ring = rings[arg[0] % n];
	if (!ring->depth)
		return;
	side->scribbled |= arg[0] % n < EVDS;
	words[0] = ring->head;
	words[1] = ring->tail;
	words[2] = ring->flags;
	words[3] = ring->armed ?: ring->tail;
	words[4] = (__u32 *)ring->entries + arg[4] * 4 % (ring->stride * ring->depth / 4);
	word = words[arg[1] % ARRAY_SIZE(words)];
	old = __atomic_load_n(word, __ATOMIC_RELAXED);
	__atomic_store_n(word, arg[2] % 4 ? old + arg[3] : (__u32)odd_value(arg[3]),
			 __ATOMIC_RELAXED);
	if (arg[5] % 4 == 3) {
		spin(arg[4]);
		__atomic_store_n(word, old, __ATOMIC_RELAXED);
	}
}
