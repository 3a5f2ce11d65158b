/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Event dispatchers, and the events that are expected.
 */
#ifndef DAPX_HARNESS_EVD_H
#define DAPX_HARNESS_EVD_H

#include <stdbool.h>

#include "clock.h"
#include "ring.h"

struct evd {
	int fd;
	__u32 handle;
	struct ring ring;
};

int evd_make(int fd, __u32 depth, __u32 flags, struct evd *evd);
/* One event, if there is one, without waiting. */
bool evd_poll(struct evd *evd, struct dapx_event *event);
int evd_next(struct evd *evd, struct dapx_event *event, unsigned int ms);
/* Of an eventfd with DAPX_EVENTFD_ONCE: by the next event. */
void evd_arm(struct evd *evd);
/* By the next one that @what, an enum dapx_arm, includes. */
void evd_arm_for(struct evd *evd, __u32 what);
bool evd_armed(const struct evd *evd);
/* Nothing comes for a while. */
int evd_quiet(struct evd *evd);
/* Takes out and counts what is there. */
unsigned int evd_drain(struct evd *evd);

/*
 * The next event of @ep's connection. siw also reports a fatal error of a queue
 * pair that was still sending when its stream ended: that one is skipped.
 */
int evd_next_connection(struct evd *evd, __u32 ep, struct dapx_event *event);

/* The next event must be this one; @event may be NULL. */
int expect_completion(struct evd *evd, __u64 wr_id, __u32 status,
		      struct dapx_event *event);
int expect_connection(struct evd *evd, __u32 ep, __u32 what,
		      struct dapx_event *event);
int expect_request(struct evd *evd, __u32 listener, struct dapx_event *event);
int expect_cm(struct evd *evd, __u32 cm, __u32 what, struct dapx_event *event);
int expect_async(struct evd *evd, __u32 what, struct dapx_event *event);

/* For a sentence. Static buffer of the thread. */
const char *event_text(const struct dapx_event *event);

#endif /* DAPX_HARNESS_EVD_H */
