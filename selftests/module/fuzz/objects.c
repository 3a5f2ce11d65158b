// SPDX-License-Identifier: GPL-2.0
/*
 * What the bytes of an operation stand for: objects and values, right ones and wrong ones.
 */
#include <string.h>

#include "ops.h"

__u64 odd_value(__u8 byte)
{
	static const __u64 values[] = {
		0, 1, 2, 3, 7, 8, 63, 64, 255, 4096, 0x7fffffff, 0x80000000, 0xffffffff,
		NO_HANDLE, 1ULL << 32, 1ULL << 63, ~0ULL, 0x7fffffffffffffffULL,
	};

	/* Handles are small numbers. */
	return byte & 0x80 ? byte & 0x7f : values[byte % ARRAY_SIZE(values)];
}

__u32 odd_handle(const struct actor *me, __u8 byte)
{
	const struct side *side = byte & 8 ? me->other : me->side;

	switch (byte % 8) {
	case 0:
		return 0;
	case 1:
		return NO_HANDLE;
	case 2:
		return side->evd[byte / 16 % EVDS].handle;
	case 3:
		return side->srq[byte / 16 % SRQS].handle;
	case 4:
		return side->ep[byte / 16 % EPS].handle;
	case 5:
		return side->cm[byte / 16 % CMS];
	case 6:
		return side->host.mr;
	default:
		return byte;
	}
}

__u32 some_evd(const struct actor *me, __u8 byte)
{
	if (byte >= ODD_HANDLE)
		return odd_handle(me, byte);
	return me->side->evd[byte % EVDS].handle ?: me->side->host.conn.handle;
}

__u32 some_mr(const struct actor *me, __u8 byte)
{
	return byte >= ODD_HANDLE ? odd_handle(me, byte) : me->side->host.mr;
}

struct ep *some_ep(const struct actor *me, __u8 byte)
{
	return &me->side->ep[byte % EPS];
}

struct ring *some_queue(const struct actor *me, __u8 byte, __u32 *handle)
{
	unsigned int n = byte % QUEUES;

	/* In turn, as the first ones are used most. */
	if (n % 2) {
		*handle = me->side->srq[n / 2].handle;
		return &me->side->srq[n / 2].ring;
	}
	*handle = me->side->ep[n / 2].handle;
	return &me->side->ep[n / 2].recv;
}

/*
 * In what state an operation finds the objects of its number. The same code runs in many states,
 * and is wrong in few of them.
 */
__u32 state_of(const struct side *side, unsigned int kind, __u8 number)
{
	const struct ep *ep = &side->ep[number % EPS];
	__u32 flags = 0;
	unsigned int i;

	for (i = 0; i < EVDS; i++)
		if (side->evd[i].ring.flags)
			flags |= ring_flags(&side->evd[i].ring);
	return kind << 16 | (flags & 7) << 8 |
	       (ep->recv.flags ? ring_flags(&ep->recv) & 7 : 0) << 5 |
	       (ep->state ? ep_state(ep) & 31 : 31);
}

static void note_gone(struct side *side, __u32 handle)
{
	unsigned int n = __atomic_fetch_add(&side->num_gone, 1, __ATOMIC_RELAXED), i;
	struct gone *gone;

	if (n >= ARRAY_SIZE(side->gone))
		return;
	gone = &side->gone[n];
	for (i = 0; i < EVDS; i++) {
		/* Another thread may be about to replace it. */
		const struct ring ring = side->evd[i].ring;

		if (!ring.map)
			continue;
		gone->evd[i].map = ring.map;
		gone->evd[i].tail = __atomic_load_n(ring.tail, __ATOMIC_ACQUIRE);
	}
	gone->handle = handle;
}

bool is_of_gone(const struct side *side, const struct evd *evd, __u32 index,
		const struct dapx_event *event)
{
	unsigned int i, n = evd - side->evd;

	if (side->scribbled || !event->handle)
		return false;
	for (i = 0; i < side->num_gone && i < ARRAY_SIZE(side->gone); i++)
		if (side->gone[i].handle == event->handle &&
		    side->gone[i].evd[n].map == evd->ring.map)
			return (__s32)(index - side->gone[i].evd[n].tail) >= 0;
	return false;
}

void free_handle(const struct actor *me, __u32 handle, __u32 flags)
{
	struct dapx_free cmd = { .handle = handle, .flags = flags };

	if (handle && !_test_cmd_free(me->side->host.fd, &cmd))
		note_gone(me->side, handle);
}

void ep_step(const struct side *side, __u32 ep, __u32 state, const struct side *to, __u32 qp_num)
{
	struct dapx_ep_modify cmd = {
		.ep = ep,
		.mask = DAPX_EP_MODIFY_QP,
		.qp = {
			.state = state, .port = 1, .dest_qp_num = qp_num, .hop_limit = 64,
			.path_mtu = 3, .min_rnr_timer = 1, .max_dest_rd_atomic = 8,
			.max_rd_atomic = 8, .timeout = 8, .retry_count = 2, .rnr_retry = 2,
			.sgid_index = side->gid_index,
		},
	};

	memcpy(cmd.qp.dgid, to->gid, sizeof(cmd.qp.dgid));
	_test_cmd_ep_modify(side->host.fd, &cmd);
}

__u32 qp_number_of(const struct side *side, const struct ep *ep)
{
	struct dapx_ep_query query = { .ep = ep->handle };

	return _test_cmd_ep_query(side->host.fd, &query) ? 0 : query.out_qp_num;
}
