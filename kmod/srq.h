/* SPDX-License-Identifier: GPL-2.0 */
/*
 * dapx: shared receive queues, plain and of XRC
 */
#ifndef _DAPX_SRQ_H
#define _DAPX_SRQ_H

#include "queue.h"

struct dapx_xrc_domain;
struct dapx_xrcd;

struct dapx_srq {
	struct dapx_object obj;
	struct dapx_pd *pd;
	struct dapx_evd *evd;		/* completions of an XRC SRQ, else NULL */
	spinlock_t async_lock;		/* async_evd */
	struct dapx_evd *async_evd;	/* asynchronous events, or NULL */
	struct ib_srq *ibsrq;		/* plain */
	struct dapx_ring *ring;
	struct dapx_queue rq;
	struct work_struct work;
	bool dead;
	int bad_receive;		/* rq.lock: a negative errno; 0: none */
	u64 bad_wr_id;
	u32 limit;			/* 0: none, or the event was raised */
	bool counts;			/* the module raises it, not the device */
	struct dapx_event_source async_events;
	struct dapx_stored_event limit_event;
	struct dapx_stored_event error_event;

	/* XRC */
	struct dapx_xrcd *xrcd;		/* NULL: plain */
	struct dapx_xrc_domain *domain;	/* own domain; only compared under RCU */
	struct list_head entry;		/* domain->srqs */
	u64 serial;
	u32 number;
	void *copies;			/* of each slot's entry */
};

extern const struct dapx_object_class dapx_srq_class;
void dapx_srq_async(struct dapx_srq *srq, struct dapx_stored_event *stored, u32 what, int error);
enum dapx_status dapx_srq_refuse(struct dapx_srq *srq, struct dapx_slot *slot,
				 enum dapx_status status);
void dapx_srq_fault(struct dapx_queue *q);
void dapx_srq_kick(struct dapx_queue *q);

/* ----------------------------------------------------------------- xrc/srq.c */

extern const struct dapx_queue_ops dapx_srq_xrc_ops;
int dapx_srq_init_xrc(struct dapx_srq *srq);
void dapx_srq_publish_xrc(struct dapx_srq *srq);
void dapx_srq_unpublish_xrc(struct dapx_srq *srq);
struct dapx_slot *dapx_srq_take(struct dapx_srq *srq, enum dapx_status *status, u64 *size);
bool dapx_srq_place(struct dapx_srq *srq, struct dapx_slot *slot, u32 offset, const void *from,
		    u32 length);
void dapx_srq_complete(struct dapx_srq *srq, struct dapx_slot *slot, enum dapx_status status);

DAPX_OBJECT_ACCESSORS(srq, DAPX_OBJECT_SRQ);

#endif /* _DAPX_SRQ_H */
