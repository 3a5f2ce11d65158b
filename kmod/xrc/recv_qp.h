/* SPDX-License-Identifier: GPL-2.0 */
/*
 * dapx: XRC receive queue pairs, and the registrations with them
 */
#ifndef _DAPX_XRC_RECV_QP_H
#define _DAPX_XRC_RECV_QP_H

#include "ep.h"
#include "xrc/engine.h"
#include "xrc/xrc.h"

/* 0.64 ms */
#define DAPX_XRC_RNR_TIMER 12

struct dapx_xrc_qp {
	struct dapx_xrc_domain *domain;	/* kept open by the registrations */
	struct dapx_user *user;		/* of the process that created it */
	struct list_head entry;		/* domain->qps */
	u64 serial;
	struct list_head registrations;	/* changed under domain->lock and events_lock */
	unsigned int num_registrations;	/* domain->lock; 0: it is being destroyed */
	u32 qp_num;

	struct mutex mutex;		/* state of the queue pair, cm_id; above lock */
	struct ib_qp *qp;
	struct ib_cq *cq;
	struct irq_work cq_irq_work;
	struct dapx_qp_attr attr;	/* includes the state */
	struct rdma_cm_id *cm_id;
	unsigned long answered_at;
	unsigned long received_at;	/* jiffies | 1 of the last segment; 0: none */
	struct work_struct work;	/* queue pair to error, tell the peer */
	struct delayed_work close_work;

	spinlock_t events_lock;		/* (irq) registrations and their events; below lock */
	bool established;
	u32 ended;			/* the event that reported the end; 0: not ended */

	spinlock_t lock;		/* (bh) all below */
	struct dapx_xrc_responder resp;
	bool stopped;			/* no more posting */
	unsigned int own;		/* buffers that are not borrowed */
	unsigned int share;		/* all its buffers: posted, or being sent with data */
	unsigned int posted;
	u32 arrived;			/* segments */
	u32 advertised;			/* limit in the last answer */
	bool reply_pending;		/* an answer waits for @plain */
	enum dapx_status pending_status;
	u64 not_ready;
	struct list_head buffers;
	struct dapx_xrc_buffer plain;	/* for answers without data */
	bool plain_busy;
};

/* A context's registration. */
struct dapx_xrc_registration {
	struct dapx_object obj;
	struct dapx_xrcd *xrcd;
	struct dapx_xrc_qp *qp;
	u32 qp_num, domain_id;		/* valid when these are destroyed, too */
	struct dapx_evd *evd;		/* NULL: none */
	struct list_head entry;		/* qp->registrations */
	struct dapx_event_source events;
	struct dapx_stored_event established;
	struct dapx_stored_event disconnected;
	struct dapx_stored_event error;
	bool notified_end;
};

static inline struct dapx_xrc_registration *to_dapx_xrc_registration(struct dapx_object *obj)
{
	return container_of(obj, struct dapx_xrc_registration, obj);
}

/*
 * The state that commands see. After the event of the end it is ERROR, though the device's
 * queue pair remains in its state until the answer that says why has arrived.
 */
static inline u32 dapx_xrc_qp_state(const struct dapx_xrc_qp *qp)
{
	return READ_ONCE(qp->ended) ? DAPX_QP_ERROR : READ_ONCE(qp->attr.state);
}

/* -------------------------------------------------------------- recv_qp.c */

struct dapx_xrc_qp *dapx_xrc_qp_create(struct dapx_xrc_domain *domain, struct dapx_user *user);
void dapx_xrc_qp_destroy(struct dapx_xrc_qp *qp);
void dapx_xrc_qp_post(struct dapx_xrc_qp *qp, struct dapx_xrc_buffer *buffer);
void dapx_xrc_qp_stop(struct dapx_xrc_qp *qp);
void dapx_xrc_qp_notify_end(struct dapx_xrc_qp *qp, u32 what);
void dapx_xrc_qp_queue_break(struct dapx_xrc_qp *qp);
void dapx_xrc_qp_end(struct dapx_xrc_qp *qp, u32 what);
void dapx_xrc_qp_fail(struct dapx_xrc_qp *qp);

/* --------------------------------------------------------- registration.c */

void dapx_xrc_qp_notify(struct dapx_xrc_qp *qp, u32 what);
struct dapx_xrc_registration *dapx_xrc_qp_registration(struct dapx_xrc_qp *qp,
						       struct dapx_context *ctx);
struct dapx_xrc_qp *dapx_xrc_qp_lock(struct dapx_context *ctx, u32 xrcd_handle, u32 qp_num,
				     bool registered, struct dapx_xrcd **xrcd);
void dapx_xrc_qp_unlock(struct dapx_xrcd *xrcd);

#endif /* _DAPX_XRC_RECV_QP_H */
