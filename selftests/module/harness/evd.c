// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "evd.h"
#include "machine.h"
#include "why.h"

int evd_make(int fd, __u32 depth, __u32 flags, struct evd *evd)
{
	struct dapx_evd_create cmd = { .depth = depth, .flags = flags };

	if (_test_cmd_evd_create(fd, &cmd))
		return because("DAPX_EVD_CREATE: %m");
	evd->fd = fd;
	evd->handle = cmd.out_evd;
	return ring_map(fd, &cmd.out_ring, &evd->ring);
}

bool evd_poll(struct evd *evd, struct dapx_event *event)
{
	struct ring *ring = &evd->ring;
	__u32 head = __atomic_load_n(ring->head, __ATOMIC_RELAXED);

	if (head == __atomic_load_n(ring->tail, __ATOMIC_ACQUIRE)) {
		struct dapx_doorbell bell = {
			.flags = DAPX_DOORBELL_EVENTS, .handle = evd->handle,
		};

		/* Full: the head is out before the flag is read. */
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (!(ring_flags(ring) & DAPX_RING_BACKLOG) ||
		    _test_cmd_doorbell(evd->fd, &bell) ||
		    head == __atomic_load_n(ring->tail, __ATOMIC_ACQUIRE))
			return false;
	}
	memcpy(event, ring_entry(ring, head), sizeof(*event));
	/* Release: the entry has been read. */
	__atomic_store_n(ring->head, head + 1, __ATOMIC_RELEASE);
	return true;
}

int evd_next(struct evd *evd, struct dapx_event *event, unsigned int ms)
{
	struct dapx_evd_wait wait = {
		.evd = evd->handle, .threshold = 1, .deadline = in_ms(ms),
	};
	unsigned int tries;

	for (tries = 0; tries < 1000; tries++) {
		if (evd_poll(evd, event))
			return 0;
		if (_test_cmd_evd_wait(evd->fd, &wait))
			return because("DAPX_EVD_WAIT: %m");
	}
	errno = EPROTO;
	return because("DAPX_EVD_WAIT tells of %u events, the ring is empty",
		       wait.out_events);
}

void evd_arm_for(struct evd *evd, __u32 what)
{
	__atomic_store_n(evd->ring.armed, what, __ATOMIC_RELAXED);
	/* Full: it is armed before the ring is looked at. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void evd_arm(struct evd *evd)
{
	evd_arm_for(evd, DAPX_ARM_ANY);
}

bool evd_armed(const struct evd *evd)
{
	return __atomic_load_n(evd->ring.armed, __ATOMIC_RELAXED);
}

const char *event_text(const struct dapx_event *event)
{
	static __thread char text[160];

	switch (event->type) {
	case DAPX_EVENT_COMPLETION:
		snprintf(text, sizeof(text),
			 "completion of 0x%llx, status %u, opcode %u, %u bytes, ep %u",
			 event->completion.wr_id, event->completion.status,
			 event->completion.opcode, event->completion.byte_len,
			 event->handle);
		break;
	case DAPX_EVENT_CONNECTION:
	case DAPX_EVENT_CM:
		snprintf(text, sizeof(text), "%s event %u, error %d, handle %u",
			 event->type == DAPX_EVENT_CM ? "CM" : "connection",
			 event->connection.what, event->connection.error,
			 event->handle);
		break;
	default:
		snprintf(text, sizeof(text), "event of type %u, handle %u, %u",
			 event->type, event->handle, event->async.what);
	}
	return text;
}

int evd_quiet(struct evd *evd)
{
	struct dapx_event event;

	if (evd_next(evd, &event, GLANCE_MS))
		return errno == ETIMEDOUT ? 0 : -1;
	return because("unexpected %s", event_text(&event));
}

unsigned int evd_drain(struct evd *evd)
{
	struct dapx_event event;
	unsigned int drained = 0;

	while (evd_poll(evd, &event))
		drained++;
	return drained;
}

int evd_next_connection(struct evd *evd, __u32 ep, struct dapx_event *event)
{
	do {
		if (evd_next(evd, event, PATIENCE_MS))
			return -1;
	} while (on_siw() && event->type == DAPX_EVENT_ASYNC &&
		 event->handle == ep &&
		 event->async.what == DAPX_ASYNC_EP_ERROR);
	return 0;
}

static int expect(struct evd *evd, __u32 type, __u32 handle, __u32 what,
		  const char *text, struct dapx_event *event)
{
	struct dapx_event own;

	if (!event)
		event = &own;
	if (type == DAPX_EVENT_CONNECTION ?
	    evd_next_connection(evd, handle, event) :
	    evd_next(evd, event, PATIENCE_MS))
		return because("%s %u of handle %u did not come: %m", text,
			       what, handle);
	errno = EPROTO;
	if (event->type != type || (handle && event->handle != handle))
		return because("%s instead of %s %u of handle %u",
			       event_text(event), text, what, handle);
	/* Both unions begin with the same member. */
	if (type != DAPX_EVENT_COMPLETION &&
	    type != DAPX_EVENT_CONNECT_REQUEST && event->cm.what != what)
		return because("%s instead of %s %u", event_text(event), text,
			       what);
	return 0;
}

int expect_completion(struct evd *evd, __u64 wr_id, __u32 status,
		      struct dapx_event *event)
{
	struct dapx_event own;

	if (!event)
		event = &own;
	if (expect(evd, DAPX_EVENT_COMPLETION, 0, status, "completion", event))
		return -1;
	if (event->completion.wr_id != wr_id ||
	    event->completion.status != status)
		return because("%s instead of 0x%llx with status %u",
			       event_text(event), wr_id, status);
	return 0;
}

int expect_connection(struct evd *evd, __u32 ep, __u32 what,
		      struct dapx_event *event)
{
	return expect(evd, DAPX_EVENT_CONNECTION, ep, what, "connection event",
		      event);
}

int expect_request(struct evd *evd, __u32 listener, struct dapx_event *event)
{
	return expect(evd, DAPX_EVENT_CONNECT_REQUEST, listener, 0,
		      "connection request", event);
}

int expect_cm(struct evd *evd, __u32 cm, __u32 what, struct dapx_event *event)
{
	return expect(evd, DAPX_EVENT_CM, cm, what, "CM event", event);
}

int expect_async(struct evd *evd, __u32 what, struct dapx_event *event)
{
	return expect(evd, DAPX_EVENT_ASYNC, 0, what, "asynchronous event",
		      event);
}
