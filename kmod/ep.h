/* SPDX-License-Identifier: GPL-2.0 */
/*
 * dapx: endpoints: their queue pairs, requests and receives, and what connects them
 */
#ifndef _DAPX_EP_H
#define _DAPX_EP_H

#include <linux/irq_work.h>
#include <rdma/rdma_cm.h>

#include "memory.h"
#include "queue.h"
#include "srq.h"

struct dapx_xrc_sender;
struct dapx_xrcd;

/* ------------------------------------------------------------------ qp.c */

/*
 * An interrupt's exit runs softirqs at once. But a software device completes requests in a
 * kernel thread, where a softirq is left to ksoftirqd, which has to be scheduled against that
 * thread and against processes that poll. So the poll goes through irq_work.
 *
 * Called with the device's lock on the CQ, so nothing is polled here: @work does
 * irq_poll_sched(). Returns whether @work was used.
 */
static inline bool dapx_cq_notify(struct ib_cq *cq, struct irq_work *work)
{
	if (in_interrupt()) {
		irq_poll_sched(&cq->iop);
		return false;
	}
	irq_work_queue(work);
	return true;
}

/* A queue pair with its CQs. */
struct dapx_qp {
	struct ib_qp *qp;
	struct ib_cq *cq;		/* of sends, and of receives unless @recv_cq */
	struct ib_cq *recv_cq;		/* fetched on demand; NULL: none */
};

struct dapx_qp_params {
	struct ib_pd *pd;
	struct ib_srq *srq;		/* or NULL */
	const char *owner;		/* for 'rdma resource show' */
	void *context;			/* of the handlers */
	void (*event_handler)(struct ib_event *event, void *context);
	ib_comp_handler cq_handler;
	ib_comp_handler recv_cq_handler;	/* NULL: no CQ of their own for receives */
	u32 send_depth;
	u32 recv_depth;			/* of the SRQ, if there is one */
	u32 max_send_sge;
	u32 max_recv_sge;
};

int dapx_qp_create(struct dapx_device *dev, const struct dapx_qp_params *params,
		   struct dapx_qp *out);
void dapx_qp_discard(const struct dapx_qp *new);
void dapx_qp_destroy(struct dapx_device *dev, struct ib_qp *qp, unsigned long silence,
		     struct ib_cq *cq, struct irq_work *irq_work);
int dapx_qp_attr_build(struct dapx_device *dev, u8 port, const struct dapx_qp_attr *step,
		       struct ib_qp_attr *attr, int *mask);
void dapx_qp_attr_add_step(struct dapx_device *dev, struct dapx_qp_attr *steps,
			   const struct ib_qp_attr *attr);
int dapx_qp_modify(struct ib_qp *qp, struct ib_qp_attr *attr, int mask);

/* 0.64 ms. The CM leaves the timer at 0, which means 655 ms until a sender tries again. */
#define DAPX_MIN_RNR_TIMER 12

/* ---------------------------------------------------------------- transports */

/*
 * How an endpoint's requests travel: as requests of its queue pair (RC), or as messages of the
 * module, which the queue pair carries (XRC). An operation may be NULL if there is nothing to
 * do.
 */
struct dapx_transport_ops {
	const struct dapx_queue_ops *send_ops;
	bool maps_inline;		/* the device reads inline data from the queue's memory */
	bool accepts;			/* can accept requests; else another class of object does */
	u32 cm_header_size;		/* at most DAPX_CM_HEADER_MAX, before the private data */
	/* when the request queue exists, and the queue pair does not */
	int (*create)(struct dapx_ep *ep);
	void (*destroy)(struct dapx_ep *ep);
	/* describes the queue pair to create; @srq: NULL for none; params->pd is set */
	void (*qp_params)(const struct dapx_ep *ep, const struct dapx_ep_attr *attr,
			  const struct dapx_srq *srq, struct dapx_qp_params *params);
	int (*access_flags)(const struct dapx_ep *ep);
	/* the queue pair takes receives from now on; with qp_mutex */
	int (*start)(struct dapx_ep *ep);
	/* flushes what is not done; may be called again; with qp_mutex */
	void (*stop)(struct dapx_ep *ep);
	/* restores the state after create(); without a queue pair */
	void (*reset)(struct dapx_ep *ep);
	/* changes the attributes of a transition that the process asked for */
	void (*adjust_step)(struct dapx_ep *ep, const struct dapx_qp_attr *step,
			    struct ib_qp_attr *attr, int mask);
	/* before connecting: writes the header, and may change the retry count */
	void (*prepare_connect)(struct dapx_ep *ep, void *header, u8 *rnr_retry);
	bool (*is_header)(const void *private_data, u32 length);
};

extern const struct dapx_transport_ops dapx_rc_transport;
extern const struct dapx_transport_ops dapx_xrc_transport;

/* ---------------------------------------------------------------- send.c */

#define DAPX_SEND_FLAGS (DAPX_SEND_SIGNALED | DAPX_SEND_SOLICITED | DAPX_SEND_FENCE | \
			 DAPX_SEND_INLINE | DAPX_SEND_QUIET)

/* Operations that the request queues of XRC endpoints share. */
enum dapx_queue_mode dapx_send_mode(struct dapx_queue *q);
void dapx_send_prepare(struct dapx_queue *q, struct dapx_slot *slot);
void dapx_send_fault(struct dapx_queue *q);
void dapx_send_kick(struct dapx_queue *q);
void dapx_send_at_barrier(struct dapx_queue *q);
struct dapx_evd *dapx_send_evd(struct dapx_queue *q);

/* -------------------------------------------------------------------- recv.c */

#define DAPX_RECV_FLAGS DAPX_RECV_QUIET

u32 dapx_recv_stride(u32 max_sge);
void dapx_recv_prepare(struct dapx_queue *q, struct dapx_slot *slot);
enum dapx_status dapx_recv_build(struct dapx_queue *q, struct dapx_pd *pd,
				 struct dapx_slot *slot, struct ib_recv_wr *wr);
void dapx_recv_complete(struct dapx_ep *ep, struct dapx_slot *slot, const struct ib_wc *wc);
extern const struct dapx_queue_ops dapx_recv_ops;
void dapx_ep_fetch(struct dapx_ep *ep);
void dapx_ep_arm(struct dapx_ep *ep, struct dapx_evd *evd);
void dapx_ep_fetch_lazy(struct dapx_lazy_source *source, struct dapx_evd *evd);
void dapx_ep_recv_cq_work(struct work_struct *work);
void dapx_ep_recv_cq_handler(struct ib_cq *cq, void *context);

/* ------------------------------------------------------------------ ep.c */

/* What ep->work has to do. */
enum dapx_ep_todo {
	DAPX_EP_TODO_BREAK,		/* queue pair to error, tell the peer */
	DAPX_EP_TODO_DISCONNECT,	/* graceful: all requests are done */
	DAPX_EP_TODO_KICK,		/* slots came free */
	DAPX_EP_TODO_BIND,		/* a bind is next in the request queue */
};

struct dapx_cm;

struct dapx_ep {
	struct dapx_object obj;
	spinlock_t lock;		/* state, dead, cm, peer_data, user_data, ... */
	enum dapx_ep_state state;
	bool dead;			/* teardown has begun */
	bool settled;			/* for teardown: dapx_ep_settle() is done */
	bool tentative;			/* made by a listener, not accepted yet */
	struct dapx_pd *pd;
	struct dapx_pd_member pd_member;
	struct dapx_srq *srq;
	struct dapx_evd *request_evd;
	struct dapx_evd *recv_evd;
	struct dapx_evd *connect_evd;	/* or NULL */
	struct dapx_evd *async_evd;	/* NULL: connect_evd */
	struct dapx_ep_attr attr;
	struct dapx_ring *ring;
	u32 *state_word;
	struct dapx_ring_layout send_layout;
	struct dapx_ring_layout recv_layout;
	struct dapx_queue sq;
	struct dapx_queue rq;
	struct dapx_xrcd *xrcd;		/* XRC, or NULL */
	const struct dapx_transport_ops *transport;
	struct dapx_xrc_sender *xrc;	/* the transport's; NULL: RC */

	struct mutex qp_mutex;		/* changes of @qp, @cq and qp_state */
	struct ib_qp *qp;
	struct ib_cq *cq;		/* sends, and receives unless @recv_cq */
	struct ib_cq *recv_cq;		/* DAPX_EP_SOLICITED */
	struct irq_work cq_irq_work;
	enum ib_qp_state qp_state;
	unsigned long silence;		/* of @qp; of a stopped endpoint, or of a settled one */
	bool silent_error;		/* qp_mutex; dapx_ep_check_qp_error() found it in error */
	spinlock_t recv_cq_lock;	/* polling it */
	struct dapx_lazy_source lazy;	/* of recv_evd */
	struct work_struct recv_cq_work;
	wait_queue_head_t drained;

	struct dapx_cm *cm;		/* connects it, or asks for it */
	struct rdma_conn_param conn_param;
	u8 private_data[DAPX_CM_HEADER_MAX + DAPX_PRIVATE_DATA_MAX];	/* ours, until it is sent */
	u8 peer_data[DAPX_PRIVATE_DATA_MAX];
	u32 peer_data_len;
	u32 reject_reason;		/* ep->lock; of the peer's CM */
	u8 agreed_rd_atomic;		/* qp_mutex; 0: nothing is agreed */
	u8 agreed_dest_rd_atomic;	/* qp_mutex */
	u32 remote_qp_num;
	bool answered;			/* ep->lock; it may become CONNECTED: peer_data is there */
	bool by_steps;			/* ep->lock; DAPX_CONNECT_STEPS; of the attempt with @cm */
	bool responded;			/* ep->lock; the peer accepted, with @by_steps */
	bool established;		/* ep->lock; by the CM, and that event is posted */
	bool peer_left;			/* ep->lock; it ends when all is acknowledged */
	bool timewait_over;		/* ep->lock; @timewait_exit waits for @end */
	bool end_pending;		/* ep->lock; @end waits for the last completion ... */
	unsigned long end_by;		/* ... until then, in jiffies */
	unsigned long received_at;	/* jiffies, and bit 0; the last message; 0: none */
	u64 received;			/* messages; written by the thread that fetches them */
	atomic_t binds;			/* that wait in @sq, or whose events wait for room */
	u8 port;			/* QP number exchange */
	u64 connect_deadline;
	u8 min_rnr_timer;		/* of connections through the CM */

	unsigned long todo;
	struct work_struct work;
	struct delayed_work deadline;
	struct dapx_event_source connection_events;
	struct dapx_event_source async_events;
	struct dapx_stored_event response;	/* the peer's, with @by_steps */
	struct dapx_stored_event outcome;	/* of the set-up */
	struct dapx_stored_event end;	/* of the connection */
	struct dapx_stored_event timewait_exit;
	struct dapx_stored_event async;
};

/* The rings of an endpoint, with the queues that read them. */
struct dapx_ep_rings {
	struct dapx_ep_attr attr;	/* the depths are those of the rings */
	struct dapx_ring *ring;
	struct dapx_ring_layout send_layout;
	struct dapx_ring_layout recv_layout;
	struct dapx_queue sq;
	struct dapx_queue rq;
};

/* The offset of the state in the mapping of the rings. */
#define DAPX_EP_STATE_OFF 0

extern const struct dapx_object_class dapx_ep_class;
int dapx_ep_attr_check(struct dapx_context *ctx, const struct dapx_ep_attr *attr, bool srq);
size_t dapx_ep_memory(const struct dapx_ep_attr *attr);
struct dapx_ep *dapx_ep_alloc(struct dapx_context *ctx, const struct dapx_ep_attr *attr,
			      bool srq);
void dapx_ep_abort(struct dapx_ep *ep);
struct dapx_ep_rings *dapx_ep_make_rings(struct dapx_ep *ep, const struct dapx_ep_attr *attr);
int dapx_ep_exchange_rings(struct dapx_ep *ep, struct dapx_ep_rings *rings);
void dapx_ep_free_rings(struct dapx_ep *ep, struct dapx_ep_rings *rings);
struct dapx_ep *dapx_ep_lock(struct dapx_context *ctx, u32 handle);
void dapx_ep_unlock(struct dapx_ep *ep);
void dapx_ep_set_state(struct dapx_ep *ep, enum dapx_ep_state state);
void dapx_ep_update_modes(struct dapx_ep *ep);
void dapx_ep_queue(struct dapx_ep *ep, enum dapx_ep_todo todo);
void dapx_ep_post_event(struct dapx_ep *ep, struct dapx_stored_event *stored, u32 what, int error);
void dapx_ep_end(struct dapx_ep *ep, u32 what, int error);
void dapx_ep_post_end(struct dapx_ep *ep);
void dapx_ep_timewait_exit(struct dapx_ep *ep);
void dapx_ep_fail(struct dapx_ep *ep);
void dapx_ep_check_status(struct dapx_ep *ep, enum dapx_status status);
void dapx_ep_completed(struct dapx_ep *ep);
void dapx_ep_use_recv_evd(struct dapx_ep *ep, struct dapx_evd *evd);
void dapx_ep_unuse_recv_evd(struct dapx_ep *ep, struct dapx_evd *evd);

/* ------------------------------------------------------------------- ep_qp.c */

void dapx_ep_cq_irq_work(struct irq_work *work);
int dapx_ep_make_qp(struct dapx_ep *ep, struct dapx_pd *pd, struct dapx_qp *new);
int dapx_ep_make_other_qp(struct dapx_ep *ep, struct dapx_ep_rings *rings, struct dapx_srq *srq,
			  struct dapx_qp *new);
void dapx_ep_install_qp(struct dapx_ep *ep, const struct dapx_qp *new);
void dapx_ep_destroy_qp(struct dapx_ep *ep);
void dapx_ep_unmap_inline(struct dapx_ep *ep, struct dapx_queue *sq);
int dapx_ep_qp_modify(struct dapx_ep *ep, struct ib_qp_attr *attr, int mask);
void dapx_ep_qp_to_error(struct dapx_ep *ep);
void dapx_ep_qp_stop(struct dapx_ep *ep);
void dapx_ep_check_qp_error(struct dapx_pd_member *member);

DAPX_OBJECT_ACCESSORS(ep, DAPX_OBJECT_EP);

/* ---------------------------------------------------------- ep_connect.c */

int dapx_ep_cm_event(struct dapx_ep *ep, struct rdma_cm_id *id, struct rdma_cm_event *event);
void dapx_ep_connect_now(struct dapx_ep *ep, struct rdma_cm_id *id);
void dapx_ep_message_arrived(struct dapx_ep *ep);
void dapx_ep_deadline(struct work_struct *work);
void dapx_ep_disconnect_drained(struct dapx_ep *ep);

/* ------------------------------------------------------------------ cm.c */

/* For resolving an address without a deadline. One that has no neighbour by then is unreachable. */
#define DAPX_RESOLVE_TIMEOUT_MS 4000

/* What the process has set of a CM id. */
struct dapx_cm_options {
	u32 set;			/* enum dapx_cm_modify_mask */
	u8 tos;
	u8 ack_timeout;
	bool reuseaddr;
	bool afonly;
};

struct dapx_cm {
	struct dapx_object obj;
	struct mutex id_mutex;		/* id is there; connector */
	struct rdma_cm_id *id;		/* NULL: destroyed */
	struct task_struct *connector;	/* NULL: none, or it is done */
	bool connects;			/* by a connector */
	struct completion connected;	/* or not: the connector has ended */
	unsigned long connect_until;	/* jiffies; then it is interrupted; 0: no end has begun */
	spinlock_t lock;		/* state, closing, requests, unacked */
	enum dapx_cm_state state;
	bool closing;			/* no more events */
	struct dapx_evd *evd;		/* NULL: made for an endpoint */
	/* attached: gets the events; changed with handler_mutex held */
	struct dapx_ep *ep;
	unsigned long sent_at;		/* jiffies: our request or answer went; 0: it is answered */
	struct dapx_cm_options options;	/* obj.mutex */
	struct dapx_qp_attr steps;	/* lock; those that are known, and the last of them */

	/* a listener */
	enum dapx_listen_mode mode;
	struct dapx_ep_attr attr;
	struct dapx_ep *reserved;
	struct list_head requests;
	u32 num_requests;
	u32 backlog;

	/* a request */
	struct dapx_cm *listener;	/* NULL: it was taken */
	struct list_head entry;		/* listener->requests */
	struct work_struct make_ep_work;	/* makes the endpoint; until then it is claimed */
	bool orphan;			/* the listener went while it was being answered */
	int gone;			/* lock; why the peer gave up; 0: it did not */
	struct dapx_ep *candidate;	/* reserved or made for it */
	u8 responder_resources;
	u8 initiator_depth;
	u8 retry_count;
	u8 rnr_retry_count;
	u8 srq;
	u32 remote_qp_num;
	u8 private_data[DAPX_PRIVATE_DATA_MAX];
	u32 private_data_len;
	bool xrc;			/* of an XRC endpoint; private_data without the header */

	u32 unacked;
	wait_queue_head_t acked;
	struct work_struct destroy_work;
	struct dapx_event_source events;
	struct dapx_stored_event addr_event;
	struct dapx_stored_event route_event;
	struct dapx_stored_event request_event;
	struct dapx_stored_event gone_event;
};

extern const struct dapx_object_class dapx_cm_class;
struct dapx_cm *dapx_cm_alloc(struct dapx_context *ctx);
struct dapx_cm *dapx_cm_for_ep(struct dapx_ep *ep);
int dapx_cm_connect_aside(struct dapx_cm *cm);
void dapx_cm_begin_shutdown(struct dapx_cm *cm);
void dapx_cm_shutdown(struct dapx_cm *cm);
void dapx_cm_disconnect(struct dapx_cm *cm);
int dapx_cm_establish(struct dapx_cm *cm);
void dapx_cm_mark_sent(struct dapx_cm *cm);
void dapx_cm_addresses(struct dapx_cm *cm, struct __kernel_sockaddr_storage *local,
		       struct __kernel_sockaddr_storage *remote);
int dapx_cm_put_addresses(struct dapx_cm *cm, struct sk_buff *skb);
void dapx_cm_set_state(struct dapx_cm *cm, enum dapx_cm_state state);
void dapx_cm_set_ep(struct dapx_cm *cm, struct dapx_ep *ep);
void dapx_cm_note_steps(struct dapx_cm *cm, struct rdma_cm_id *id, enum ib_qp_state last);
void dapx_cm_release_ep(struct dapx_cm *cm);
void dapx_cm_delay_reject(unsigned long sent_at);
void dapx_cm_destroy_async(struct dapx_cm *cm);
void dapx_cm_cancel_destroy(struct dapx_cm *cm);
int dapx_cm_timeout_ms(u64 deadline);
bool dapx_cm_no_route(int error);
bool dapx_addr_valid(const struct __kernel_sockaddr_storage *addr);
void dapx_cm_event_locked(struct dapx_cm *cm, struct dapx_stored_event *stored,
			  enum dapx_cm_state state, u32 what, int error);
void dapx_cm_leave(struct dapx_cm *cm);

/* --------------------------------------------------------------- cm_listen.c */

extern unsigned int dapx_max_backlog;

void dapx_cm_destroy_listener(struct dapx_cm *listener);
int dapx_cm_request(struct dapx_cm *listener, struct rdma_cm_id *id,
		    struct rdma_cm_event *event);
void dapx_cm_make_endpoint(struct work_struct *work);
bool dapx_cm_claim_request(struct dapx_cm *cm);
void dapx_cm_unclaim_request(struct dapx_cm *cm);
void dapx_cm_request_accepted(struct dapx_cm *cm);
void dapx_cm_request_handed_over(struct dapx_cm *cm);
void dapx_cm_request_gone(struct dapx_cm *cm, int error);
void dapx_cm_notify_gone(struct dapx_cm *cm);
void dapx_cm_end_request(struct dapx_cm *cm);
void dapx_cm_return_candidate(struct dapx_cm *cm);
void dapx_cm_leave_listener(struct dapx_cm *cm);

DAPX_OBJECT_ACCESSORS(cm, DAPX_OBJECT_CM);

#endif /* _DAPX_EP_H */
