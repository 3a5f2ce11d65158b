/* SPDX-License-Identifier: GPL-2.0 */
/*
 * dapx: what the files of the module share
 *
 * Lifetime
 * --------
 * A context (struct dapx_context) is one open file. It is kept by the file, by
 * its device's list and by the work that ends it. An object is kept by its entry in
 * the context's xarray, by commands in flight, and by the objects that point to
 * it. Pointing to an object also counts in its @users, which makes freeing it
 * fail with EBUSY; the pointers of a connection request do not (its endpoint
 * and listener are taken down with it), until it is taken: then that to its EVD does.
 *
 * The device's resources of an object end in its class' destroy(), its memory
 * with the last reference. destroy() is called once, by whoever took the handle
 * out of the xarray.
 *
 * Lock order, outermost first
 * ---------------------------
 *	mmap_lock (mmap: takes none of the following but rings' xa_lock)
 *	context->sem		read: a command; write: teardown
 *	  mr->obj.mutex		an MR becomes one of XRC
 *	  mmap_lock (page faults of user copies and registration)
 *	  ep->obj.mutex		commands on one endpoint
 *	    rmr->obj.mutex	what an RMR is bound to
 *	    rdma_cm's handler_mutex (held in all CM callbacks)
 *	      ep->qp_mutex	changes of the queue pair's state
 *	      cm->id_mutex	cm->id is there
 *	domain->lock (mutex)	the receive queue pairs of an XRC domain
 *	  xrc_qp->mutex		its steps, its CM id
 *	    rdma_cm's handler_mutex
 *	dev->xrc_lock (mutex)	domains of files, dev->xrc_pd, dev->xrc_pool; above none of
 *				these
 *	evd->resize (mutex)	one resize at a time
 *	ep->recv_cq_lock	(bh) fetching receives; above the following
 *	ep->lock		(irq) endpoint state, ep->cm
 *	cm->lock		(irq) CM id state, lists of requests; a request's above its
 *				listener's
 *	xrc_qp->lock		(bh) the responder of a receive queue pair
 *	  xrc_qp->events_lock	(irq) whom to tell
 *	srq->async_lock		(irq) where an SRQ's asynchronous events go
 *	q->lock		(bh) picking up work from a ring; which EVD its completions go to
 *	  sender->lock		(bh) the requester of an XRC endpoint
 *	pool->lock		(bh) buffers of XRC that are lent; below the two
 *	  evd->lock		(irq) an event ring; below each of the above
 *	keys->lock		windows' keys
 *	dapx_notices_lock	(irq) what listeners are told; below each of the above
 *	dapx_devices_lock	(mutex) devices and their contexts; above objects' xa_lock
 *	objects' xa_lock
 *
 * ep->lock, cm->lock and q->lock are never held together, but for the locks of an XRC
 * endpoint: q->lock, sender->lock, ep->lock in this order. q->lock of an XRC SRQ is
 * taken below xrc_qp->lock. A CM callback never takes ep->obj.mutex, and nobody waits for
 * callbacks (rdma_destroy_id) with anything that they take.
 *
 * Contexts
 * --------
 *	function		context		locks it may find held
 *	ioctl handlers		process		context->sem (read)
 *	dapx_cm_handler()	process (work)	handler_mutex
 *	dapx_send_done(), dapx_recv_done(), dapx_srq_done(), dapx_xrc_*_done(),
 *	dapx_xrc_segment_arrived()
 *				softirq		none
 *	dapx_xrc_requester_ops	process, softirq	sender->lock, q->lock
 *	dapx_xrc_responder_ops	softirq, process	xrc_qp->lock
 *	dapx_xrc_timer()	softirq		none
 *	dapx_qp_event(), dapx_xrc_qp_event()
 *				any, irqs off	driver's
 *	dapx_device_event()	process (work)	none
 *	dapx_evd_post()		any		ep->lock, cm->lock, q->lock
 *	dapx_queue_run()	process, softirq	context->sem, recv_cq_lock
 *	dapx_queue_busy_deferred()	softirq		none
 *	dapx_cm_connector()	process (thread)	none
 *	ep->work, ep->deadline, cm->make_ep_work, xrc_qp->work
 *				process (work)	none
 *	dapx_context_teardown()	process (work)	none
 *	mmu_notifier release	process		SRCU read side
 *	dapx_netlink_*_dump()	process		the socket's cb_mutex
 *	dapx_netlink_notify()	any		any
 */
#ifndef _DAPX_PRIVATE_H
#define _DAPX_PRIVATE_H

#include <linux/hashtable.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mmu_notifier.h>
#include <linux/mutex.h>
#include <linux/path.h>
#include <linux/sched.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "dapx.h"
#include "kcompat.h"

#define DAPX_MAX_SGE 32
#define DAPX_MAX_INLINE 512
/* What the RDMA CM takes of the private data of a connection request. */
#define DAPX_CM_IP_HEADER_SIZE 36
/* What goes before the private data of an XRC connection's set-up. */
#define DAPX_CM_HEADER_MAX 8
/* After the peer's disconnect, for what it had received. */
#define DAPX_ACKNOWLEDGE_TIME (HZ / 4)
/* A device that acknowledges late may not have done so for that long; and then gets that. */
#define DAPX_ACKNOWLEDGE_LATEST (HZ / 10)
#define DAPX_ACKNOWLEDGE_DELAY (HZ / 50)

/* The module's own work, which waits for nobody; a user's is in the user's queues. */
extern struct workqueue_struct *dapx_wq;
extern unsigned int dapx_max_ring_depth;
extern unsigned int dapx_max_backlog;
extern unsigned int dapx_initial_index;

/* ------------------------------------------------------------------ device.c */

/* An RDMA device that dapx may use. */
struct dapx_device {
	struct kref kref;
	struct ib_device *ibdev;	/* valid until @contexts is empty for good */
	char name[IB_DEVICE_NAME_MAX];	/* dapx_devices_lock; without, for people */
	struct list_head entry;		/* dapx_devices */
	struct list_head contexts;	/* dapx_devices_lock */
	struct ib_event_handler event_handler;
	bool removed;			/* dapx_devices_lock */
	bool iwarp;
	bool acknowledges_late;		/* after it completed the receive */
	bool silent_errors;		/* of queue pairs: no event tells */
	struct dapx_keys *keys;		/* of windows; set once, with the first */
	struct mutex xrc_lock;
	DECLARE_HASHTABLE(xrc_domains, 6);	/* xrc_lock: those of files, by inode */
	struct ib_pd *xrc_pd;		/* of the module's own queue pairs, without a key */
	struct dapx_xrc_pool *xrc_pool;	/* with it: for sending endpoints that are busy */
	unsigned int xrc_users;		/* xrc_lock */
	struct xarray xrc_srqs;		/* by number; read under RCU */
	u32 xrc_next_srq;
	struct xarray xrc_keys;		/* MRs for XRC, by remote key; read under RCU */
	u32 max_msg_size;
};

struct dapx_context;
struct dapx_ep;
struct dapx_object;
struct dapx_srq;
struct dapx_ucmd;
struct sk_buff;

int dapx_devices_init(void);
void dapx_devices_exit(void);
int dapx_device_attach(struct dapx_context *ctx, const char *name);
void dapx_device_detach(struct dapx_context *ctx);
struct ib_device *dapx_device_hold(const struct dapx_context *ctx);
void dapx_device_unhold(void);
void dapx_device_let_acknowledge(const struct dapx_device *dev, unsigned long received_at);
void dapx_device_silence_qp(const struct dapx_device *dev, struct ib_qp *qp);
u64 dapx_device_caps(const struct dapx_device *dev);
u32 dapx_device_max_depth(const struct dapx_device *dev);
u32 dapx_device_max_srq_depth(const struct dapx_device *dev);

/* -------------------------------------------------------------------- user.c */

/* Kept by its contexts, and by XRC receive queue pairs that they made. */
struct dapx_user {
	refcount_t refs;		/* dapx_users' xa_lock for the last */
	uid_t uid;
	atomic_t objects;		/* contexts included */
	atomic_t connecting;		/* threads that connect for the user */
	struct workqueue_struct *works;	/* of objects */
	struct workqueue_struct *ends;	/* of contexts: they wait for works */
	struct work_struct release;
};

struct dapx_user *dapx_user_get(uid_t uid);
void dapx_user_hold(struct dapx_user *user);
void dapx_user_put(struct dapx_user *user);
void dapx_users_exit(void);
int dapx_user_charge(struct dapx_user *user);
void dapx_user_uncharge(struct dapx_user *user);
bool dapx_user_begin_connect(struct dapx_user *user);
void dapx_user_end_connect(struct dapx_user *user);
extern unsigned int dapx_max_user_objects;

/* ----------------------------------------------------------------- context.c */

/* So 'rdma resource show' calls a process or a domain; it has room for 16 characters. */
#define DAPX_OWNER_SIZE sizeof("dapx:xrcd:2147483647")

/* One open file: one process' objects on one device. */
struct dapx_context {
	struct kref kref;
	u32 id;				/* in the list of all; not soon used again */
	struct rw_semaphore sem;
	struct mm_struct *mm;		/* who may use it */
	struct mmu_notifier notifier;
	struct pid *pid;		/* of the process, for people */
	struct net *net;
	struct dapx_user *user;
	struct dapx_device *dev;	/* set once; read after smp_load_acquire(@attached) */
	struct list_head device_entry;	/* dapx_devices_lock */
	struct xarray objects;
	u32 next_object;
	u32 vacant;			/* objects.xa_lock; see dapx_object_release_id() */
	struct xarray mrs;		/* by handle; read under RCU */
	struct xarray rings;		/* by mmap offset */
	u32 next_ring;
	atomic_t num_objects;
	bool attached;
	bool dead;			/* no new objects, commands or events' sources */
	u64 ending_since;		/* ns; 0: it lives */
	enum dapx_genl_cause cause;
	char comm[TASK_COMM_LEN];	/* of who opened it */
	char owner[DAPX_OWNER_SIZE];	/* of its resources */
	struct work_struct end_work;
	struct completion ended;
};

int dapx_context_open(struct dapx_context **out);
/* The first that has this id or a larger one, with a reference; NULL after the last. */
struct dapx_context *dapx_context_next(u32 id);
void dapx_context_close(struct dapx_context *ctx);
kuid_t dapx_context_owner(const struct dapx_context *ctx);
void dapx_context_get(struct dapx_context *ctx);
void dapx_context_put(struct dapx_context *ctx);
int dapx_context_enter(struct dapx_ucmd *ucmd);
void dapx_context_leave(struct dapx_ucmd *ucmd);
void dapx_context_end(struct dapx_context *ctx, enum dapx_genl_cause cause);
void dapx_context_wait_end(struct dapx_context *ctx);
int dapx_cgroup_charge(struct dapx_object *obj);
int dapx_context_charge(struct dapx_context *ctx, struct dapx_object *obj);
void dapx_context_uncharge(struct dapx_context *ctx, struct dapx_object *obj);
extern unsigned int dapx_max_objects;

/* ------------------------------------------------------------------ object.c */

/* The first member of every object. */
struct dapx_object {
	struct kref kref;
	struct rcu_head rcu;
	struct dapx_context *ctx;
	const struct dapx_object_class *class;
	u32 handle;			/* 0: none */
	unsigned int users;		/* ctx->objects' xa_lock */
	u64 user_data;
	struct mutex mutex;		/* commands that change it */
#ifdef CONFIG_CGROUP_RDMA
	struct rdma_cgroup *cg;		/* charged for it */
#endif
};

struct dapx_object_class {
	enum dapx_object_type type;
	size_t size;
	bool rcu;			/* freed after a grace period */
	/* NULL: refused while it has users, else destroy() */
	int (*free)(struct dapx_object *obj, struct dapx_ucmd *ucmd);
	void (*destroy)(struct dapx_object *obj);
	void (*release)(struct dapx_object *obj);	/* the last reference went */
	u32 (*state)(struct dapx_object *obj);
	/* put what it is like into a message of generic netlink; the second with obj->mutex */
	int (*fill)(struct dapx_object *obj, struct sk_buff *skb);
	int (*fill_locked)(struct dapx_object *obj, struct sk_buff *skb);
};

struct dapx_object *dapx_object_alloc(struct dapx_context *ctx,
				      const struct dapx_object_class *class);
void dapx_object_publish(struct dapx_object *obj);
void dapx_object_abort(struct dapx_object *obj);
void dapx_object_make_internal(struct dapx_object *obj);
struct dapx_object *dapx_object_get(struct dapx_context *ctx, u32 handle,
				    enum dapx_object_type type);
struct dapx_object *dapx_object_get_next(struct dapx_context *ctx, unsigned long *handle,
					 enum dapx_object_type type);
struct dapx_object *dapx_object_use(struct dapx_context *ctx, u32 handle,
				    enum dapx_object_type type);
void dapx_object_unuse(struct dapx_object *obj);
int dapx_object_unpublish(struct dapx_object *obj, bool force);
bool dapx_object_queue_work(struct dapx_object *obj, struct work_struct *work);
bool dapx_object_queue_delayed(struct dapx_object *obj, struct delayed_work *work,
			       unsigned long delay);
void dapx_object_put(struct dapx_object *obj);
void dapx_objects_destroy(struct dapx_context *ctx, enum dapx_object_type type);

/* -------------------------------------------------------------------- main.c */

union dapx_ucmd_buffer {
	struct dapx_info info;
	struct dapx_attach attach;
	struct dapx_query_device query_device;
	struct dapx_query_object query_object;
	struct dapx_free free;
	struct dapx_doorbell doorbell;
	struct dapx_pd_create pd_create;
	struct dapx_mr_create mr_create;
	struct dapx_mr_modify mr_modify;
	struct dapx_evd_create evd_create;
	struct dapx_evd_wait evd_wait;
	struct dapx_evd_resize evd_resize;
	struct dapx_evd_eventfd evd_eventfd;
	struct dapx_evd_post evd_post;
	struct dapx_srq_create srq_create;
	struct dapx_ep_create ep_create;
	struct dapx_ep_query ep_query;
	struct dapx_ep_modify ep_modify;
	struct dapx_ep_connect ep_connect;
	struct dapx_ep_accept ep_accept;
	struct dapx_ep_disconnect ep_disconnect;
	struct dapx_ep_reset ep_reset;
	struct dapx_cm_create cm_create;
	struct dapx_cm_bind cm_bind;
	struct dapx_cm_listen cm_listen;
	struct dapx_cm_resolve cm_resolve;
	struct dapx_cm_query cm_query;
	struct dapx_cm_reject cm_reject;
	struct dapx_cm_ack cm_ack;
	struct dapx_cm_take cm_take;
	struct dapx_rmr_create rmr_create;
	struct dapx_rmr_bind rmr_bind;
	struct dapx_rmr_query rmr_query;
	struct dapx_xrcd_open xrcd_open;
	struct dapx_srq_modify srq_modify;
	struct dapx_srq_query srq_query;
	struct dapx_xrc_qp_create xrc_qp_create;
	struct dapx_xrc_qp_register xrc_qp_register;
	struct dapx_xrc_qp_unregister xrc_qp_unregister;
	struct dapx_xrc_qp_modify xrc_qp_modify;
	struct dapx_xrc_qp_accept xrc_qp_accept;
	struct dapx_xrc_qp_query xrc_qp_query;
};

/* A command in flight. @cmd is the kernel's copy, zero where the caller's ended. */
struct dapx_ucmd {
	struct dapx_context *ctx;
	void __user *ubuffer;
	u32 user_size;
	u32 cmd_size;
	void *cmd;
	bool entered;			/* dapx_context_enter() */
	bool unanswered;		/* for lack of memory at @ubuffer */
};

int dapx_respond(struct dapx_ucmd *ucmd);

int dapx_cmd_info(struct dapx_ucmd *ucmd);
int dapx_cmd_attach(struct dapx_ucmd *ucmd);
int dapx_cmd_query_device(struct dapx_ucmd *ucmd);
int dapx_cmd_query_object(struct dapx_ucmd *ucmd);
int dapx_cmd_free(struct dapx_ucmd *ucmd);
int dapx_cmd_doorbell(struct dapx_ucmd *ucmd);
int dapx_cmd_pd_create(struct dapx_ucmd *ucmd);
int dapx_cmd_mr_create(struct dapx_ucmd *ucmd);
int dapx_cmd_mr_modify(struct dapx_ucmd *ucmd);
int dapx_cmd_evd_create(struct dapx_ucmd *ucmd);
int dapx_cmd_evd_wait(struct dapx_ucmd *ucmd);
int dapx_cmd_evd_resize(struct dapx_ucmd *ucmd);
int dapx_cmd_evd_eventfd(struct dapx_ucmd *ucmd);
int dapx_cmd_evd_post(struct dapx_ucmd *ucmd);
int dapx_cmd_srq_create(struct dapx_ucmd *ucmd);
int dapx_cmd_ep_create(struct dapx_ucmd *ucmd);
int dapx_cmd_ep_query(struct dapx_ucmd *ucmd);
int dapx_cmd_ep_modify(struct dapx_ucmd *ucmd);
int dapx_cmd_ep_connect(struct dapx_ucmd *ucmd);
int dapx_cmd_ep_accept(struct dapx_ucmd *ucmd);
int dapx_cmd_ep_disconnect(struct dapx_ucmd *ucmd);
int dapx_cmd_ep_reset(struct dapx_ucmd *ucmd);
int dapx_cmd_cm_create(struct dapx_ucmd *ucmd);
int dapx_cmd_cm_bind(struct dapx_ucmd *ucmd);
int dapx_cmd_cm_listen(struct dapx_ucmd *ucmd);
int dapx_cmd_cm_resolve(struct dapx_ucmd *ucmd);
int dapx_cmd_cm_query(struct dapx_ucmd *ucmd);
int dapx_cmd_cm_reject(struct dapx_ucmd *ucmd);
int dapx_cmd_cm_ack(struct dapx_ucmd *ucmd);
int dapx_cmd_cm_take(struct dapx_ucmd *ucmd);
int dapx_cmd_rmr_create(struct dapx_ucmd *ucmd);
int dapx_cmd_rmr_bind(struct dapx_ucmd *ucmd);
int dapx_cmd_rmr_query(struct dapx_ucmd *ucmd);
int dapx_cmd_xrcd_open(struct dapx_ucmd *ucmd);
int dapx_cmd_srq_modify(struct dapx_ucmd *ucmd);
int dapx_cmd_srq_query(struct dapx_ucmd *ucmd);
int dapx_cmd_xrc_qp_create(struct dapx_ucmd *ucmd);
int dapx_cmd_xrc_qp_register(struct dapx_ucmd *ucmd);
int dapx_cmd_xrc_qp_unregister(struct dapx_ucmd *ucmd);
int dapx_cmd_xrc_qp_modify(struct dapx_ucmd *ucmd);
int dapx_cmd_xrc_qp_accept(struct dapx_ucmd *ucmd);
int dapx_cmd_xrc_qp_query(struct dapx_ucmd *ucmd);

/* -------------------------------------------------------------------- ring.c */

/* Memory that the process may map; lives until the last of object and mapping. */
struct dapx_ring {
	struct kref kref;
	struct dapx_context *ctx;
	u32 id;				/* in ctx->rings; 0: withdrawn */
	unsigned int num_pages;
	void *va;
	struct page *pages[];
};

struct dapx_ring *dapx_ring_create(struct dapx_context *ctx, size_t size);
void dapx_ring_destroy(struct dapx_ring *ring);
u64 dapx_ring_mmap_offset(const struct dapx_ring *ring);
int dapx_ring_mmap(struct dapx_context *ctx, struct vm_area_struct *vma);

/* The kernel's side of one index pair and its entries. */
struct dapx_ring_view {
	u32 *head;
	u32 *tail;
	u32 *flags;
	void *entries;
	u32 depth;
	u32 stride;
};

/* Where the control words of up to two rings lie, each on its own cache line. */
#define DAPX_RING_LINE 64
#define DAPX_RING_CONTROL_SIZE (3 * DAPX_RING_LINE)

void dapx_ring_view_init(struct dapx_ring_view *view, struct dapx_ring *ring,
			 u32 control_off, u32 entries_off, u32 depth, u32 stride,
			 struct dapx_ring_layout *layout);

static inline void *dapx_ring_entry(const struct dapx_ring_view *view, u32 index)
{
	return view->entries + (size_t)(index & (view->depth - 1)) * view->stride;
}

/* -------------------------------------------------------------------- evd.c */

struct dapx_event_node;

/* Whose events they are. All that wait for room do so at one EVD at a time, whose lock it is. */
struct dapx_event_source {
	struct dapx_object *owner;
	/* NULL; called under evd->lock when a node went into the ring, or was dropped */
	void (*gone)(struct dapx_event_node *node);
	struct dapx_event_node *first, **last;	/* that wait, as in the EVD's backlog */
};

/*
 * An event with the memory to wait for room in: whatever can be told has a node of its own,
 * so that no event is ever lost.
 */
struct dapx_event_node {
	struct list_head entry;		/* evd->backlog */
	struct dapx_event_node *next;	/* of its source */
	struct dapx_event_source *source;
	struct dapx_event event;
	bool pending;			/* evd->lock; READ_ONCE to see whether it is reusable */
	bool solicited;
};

struct dapx_evd {
	struct dapx_object obj;
	struct mutex resize;		/* one at a time */
	spinlock_t lock;		/* all below but the wait queue */
	struct dapx_ring *ring;
	struct dapx_ring_view view;
	u32 tail;
	u32 unread;			/* when the last event came; read without the lock */
	u64 events;			/* that came; read without the lock */
	u32 solicited_tail;		/* index behind the last event that wakes WAIT_SOLICITED */
	struct list_head backlog;
	bool dead;
	bool corrupt;			/* the indices were impossible */
	bool frozen;			/* a resize is about to switch the ring */
	bool want_async;
	atomic_t lazy_sources;		/* endpoints whose receives are fetched on demand */
	atomic_t any_waiters;		/* who wait for any event, not only solicited ones */
	wait_queue_head_t wait;
	struct eventfd_ctx *eventfd;
	bool eventfd_once;		/* when the ring is armed; else for each event */
	struct dapx_event_source own;
	struct dapx_event_node removed;
	struct dapx_event_node port;
};

extern const struct dapx_object_class dapx_evd_class;
void dapx_event_source_init(struct dapx_event_source *source, struct dapx_object *owner,
			    void (*gone)(struct dapx_event_node *node));
void dapx_evd_post(struct dapx_evd *evd, struct dapx_event_node *node);
void dapx_evd_post_async(struct dapx_evd *evd, struct dapx_event_node *node,
			 const struct dapx_event *event);
void dapx_evd_expect(struct dapx_evd *evd);
void dapx_evd_drop(struct dapx_evd *evd, struct dapx_event_source *source);
int dapx_evd_doorbell(struct dapx_evd *evd);
void dapx_evd_lazy(struct dapx_evd *evd, int change);
void dapx_evd_wake_solicited(struct dapx_evd *evd);
bool dapx_evd_wants_any(struct dapx_evd *evd);
void dapx_evd_device_removed(struct dapx_evd *evd);
void dapx_evd_port_event(struct dapx_evd *evd, u32 what, u32 port);

/* --------------------------------------------------------------------- pd.c */

struct dapx_pd {
	struct dapx_object obj;
	struct ib_pd *ibpd;
	struct delayed_work check_work;	/* for queue pairs in error */
	unsigned int checks_left;		/* that are left */
};

extern const struct dapx_object_class dapx_pd_class;
void dapx_pd_key_revoked(struct dapx_pd *pd);

/* --------------------------------------------------------------------- mr.c */

struct dapx_mr {
	struct dapx_object obj;
	struct dapx_pd *pd;
	struct ib_mr *ibmr;
	struct dapx_pinned __rcu *pinned; /* XRC; else NULL; set once, under obj.mutex */
	bool dead;			/* obj.mutex: it stays as it is */
	u64 addr;
	u64 length;
	u32 access;
	u32 lkey;
	u32 rkey;			/* 0: no remote rights */
};

extern const struct dapx_object_class dapx_mr_class;
struct ib_mr *dapx_mr_register(struct dapx_pd *pd, u64 addr, u64 length, u32 access, bool window);
int dapx_mr_to_sge(struct dapx_context *ctx, struct dapx_pd *pd,
		   const struct dapx_sge *sge, bool write, struct ib_sge *out);

bool dapx_mr_copyable(struct dapx_context *ctx, struct dapx_pd *pd, const struct dapx_sge *sge,
		      bool write);
bool dapx_mr_copy(struct dapx_context *ctx, struct dapx_pd *pd, const struct dapx_sge *sge,
		  void *buffer, bool write);
bool dapx_mr_copy_by_key(struct dapx_pd *pd, u32 rkey, u64 addr, u64 total, u32 offset,
			 void *buffer, u32 length, bool write);
bool dapx_mr_atomic_by_key(struct dapx_pd *pd, u32 rkey, u64 addr, bool add, u64 compare_add,
			   u64 swap, u64 *old);

/* ---------------------------------------------------------------- pinned.c */

struct dapx_pinned;

struct dapx_pinned *dapx_pinned_create(struct ib_device *ibdev, u64 addr, u64 length, bool write);
void dapx_pinned_destroy(struct dapx_pinned *pinned);
bool dapx_pinned_get(struct dapx_pinned *pinned);
void dapx_pinned_put(struct dapx_pinned *pinned);
void dapx_pinned_copy(struct dapx_pinned *pinned, u64 offset, void *buffer, u32 length,
		      bool to_process);
u64 dapx_pinned_atomic(struct dapx_pinned *pinned, u64 offset, bool add, u64 compare_add,
		       u64 swap);

/* ------------------------------------------------------------------- keys.c */

struct dapx_keys;

struct dapx_keys *dapx_keys_create(void);
void dapx_keys_destroy(struct dapx_keys *keys);
bool dapx_keys_take(struct dapx_keys *keys, u32 key);
bool dapx_keys_used(struct dapx_keys *keys, u32 key);

/* -------------------------------------------------------------------- rmr.c */

/* What an RMR is bound to, by one bind. */
struct dapx_window {
	struct dapx_mr *mr;
	struct ib_mr *ibmr;		/* NULL: none */
	u64 addr;
	u64 length;
	u32 access;
};

struct dapx_rmr {
	struct dapx_object obj;		/* its mutex: all below */
	struct dapx_pd *pd;
	struct dapx_window window;	/* none: not bound */
	struct list_head binds;		/* that wait in request queues */
	bool dead;
};

extern const struct dapx_object_class dapx_rmr_class;
void dapx_rmr_binds_pass(struct dapx_ep *ep);
void dapx_rmr_binds_drop(struct dapx_ep *ep);
void dapx_bind_gone(struct dapx_event_node *node);

/* -------------------------------------------------------------------- xrcd.c */

/*
 * What processes share: SRQs and receive queue pairs find each other in it. While
 * anything of it is there, a context has it open.
 */
struct dapx_xrc_domain {
	struct kref kref;		/* of this memory; all in it is kept by @opens */
	u32 id;				/* in the list of all */
	char owner[DAPX_OWNER_SIZE];	/* of its resources */
	struct dapx_device *dev;	/* while it is open, a context of that device is */
	struct path path;		/* mnt NULL: of no file */
	struct hlist_node node;		/* dev->xrc_domains */
	unsigned int opens;		/* dev->xrc_lock */
	struct mutex lock;		/* xrcds, srqs, qps, their registrations, pool */
	bool announced;			/* of its beginning; lock */
	struct list_head xrcds;		/* empty: it may be closed */
	struct list_head srqs;
	struct list_head qps;
	struct dapx_xrc_pool *pool;	/* NULL: it never had a receive queue pair */
};

/* One context's reference to a domain. */
struct dapx_xrcd {
	struct dapx_object obj;
	struct dapx_xrc_domain *domain;
	u32 domain_id;			/* also when it left */
	struct list_head entry;		/* domain->xrcds */
	u64 serial;
};

extern const struct dapx_object_class dapx_xrcd_class;
int dapx_xrcd_use(struct dapx_context *ctx, u32 handle, struct dapx_xrcd **xrcd);
/*
 * Counts what comes to a domain or goes. To what comes it is a serial number, by which
 * the lists of a domain are in order.
 */
u64 dapx_xrc_generation_inc(void);
u64 dapx_xrc_generation(void);
/* The first that has this id or a larger one, with its memory kept; NULL after the last. */
struct dapx_xrc_domain *dapx_xrc_domain_next(u32 id);
void dapx_xrc_domain_put(struct dapx_xrc_domain *domain);

/* ----------------------------------------------------------------- xrc_wire.c */

/* Segments of a process' memory that a message goes to, or comes from. */
bool dapx_xrc_segments_copy(struct dapx_context *ctx, struct dapx_pd *pd,
			    const struct dapx_sge *sge, u32 num_sge, u32 offset, void *buffer,
			    u32 length, bool write);

/* Memory for one segment, as the device sees it. */
struct dapx_xrc_buffer {
	struct ib_cqe cqe;
	struct list_head entry;
	void *va;
	u64 dma;
};

/* What each end of a connection may have on the way to it. */
#define DAPX_XRC_CREDITS 6
/* 0.06 ms: for answers that are too many at once. */
#define DAPX_XRC_ANSWER_TIMER 5

/* Buffers that are lent, whoever shares them. */
struct dapx_xrc_pool {
	spinlock_t lock;		/* (bh) the list */
	struct list_head buffers;
};

int dapx_xrc_get(struct dapx_device *dev);
void dapx_xrc_put(struct dapx_device *dev);
u32 dapx_xrc_min_credits(const struct dapx_device *dev);
u32 dapx_xrc_answers(const struct dapx_device *dev);
struct dapx_xrc_pool *dapx_xrc_pool_create(struct ib_device *ibdev);
void dapx_xrc_pool_destroy(struct ib_device *ibdev, struct dapx_xrc_pool *pool);
bool dapx_xrc_pool_take(struct dapx_xrc_pool *pool, struct list_head *to);
void dapx_xrc_pool_give(struct dapx_xrc_pool *pool, struct dapx_xrc_buffer *buffer);
int dapx_xrc_buffers_create(struct ib_device *ibdev, struct list_head *list, unsigned int count);
void dapx_xrc_buffers_destroy(struct ib_device *ibdev, struct list_head *list);
int dapx_xrc_post_recv(struct ib_qp *qp, struct dapx_xrc_buffer *buffer,
		       void (*done)(struct ib_cq *cq, struct ib_wc *wc));
int dapx_xrc_post_send(struct ib_qp *qp, struct dapx_xrc_buffer *buffer, u32 length,
		       void (*done)(struct ib_cq *cq, struct ib_wc *wc));
u32 dapx_xrc_answer_psn(u32 qp_num, u32 dest_qp_num);

/* In DAPX_CM_HEADER_MAX bytes. */
struct dapx_xrc_cm_header {
	__le32 magic;
	__le32 version;
};

void dapx_xrc_cm_header_write(void *private_data);
bool dapx_xrc_cm_header_is(const void *private_data, u32 length);

/* ----------------------------------------------------------------- xrc_send.c */

struct dapx_xrc_sender;

extern const struct dapx_queue_ops dapx_xrc_send_ops;
int dapx_xrc_sender_create(struct dapx_ep *ep);
void dapx_xrc_sender_destroy(struct dapx_ep *ep);
int dapx_xrc_sender_start(struct dapx_ep *ep);
void dapx_xrc_sender_stop(struct dapx_ep *ep);
void dapx_xrc_sender_reset(struct dapx_ep *ep);
void dapx_xrc_sender_set_retries(struct dapx_ep *ep, u8 rnr_retry);

/* ------------------------------------------------------------------- xrc_qp.c */

extern const struct dapx_object_class dapx_xrc_qp_class;
void dapx_xrc_srq_gone(struct dapx_xrc_domain *domain, struct dapx_srq *srq);

/* What is told of a receive queue pair. */
struct dapx_xrc_qp_info {
	u64 serial;
	u64 messages;
	u64 not_ready;
	u32 qp_num;
	u32 state;
	u32 registrations;
	bool own;			/* a context of @user is registered with it */
};

int dapx_xrc_qps_each(struct dapx_xrc_domain *domain, u64 after, kuid_t user,
		      int (*fn)(const struct dapx_xrc_qp_info *info, void *context),
		      void *context);
void dapx_xrc_domain_drain(struct dapx_xrc_domain *domain);

/* ------------------------------------------------------------------- queue.c */

enum dapx_queue_mode {
	DAPX_QUEUE_HOLD,	/* entries stay in the ring */
	DAPX_QUEUE_RUN,		/* entries go to the device */
	DAPX_QUEUE_FLUSH,	/* entries complete as flushed, behind what the device has */
	DAPX_QUEUE_STOP,	/* nobody looks any more */
};

struct dapx_queue;

/* A work request that the device, or an EVD's backlog, has. */
struct dapx_slot {
	struct ib_cqe cqe;
	struct dapx_event_node node;
	struct dapx_queue *q;
	union {
		struct llist_node free;		/* while nothing uses it */
		bool signaled;			/* while a request does */
	};
};

/* What send queues, receive queues and SRQs do differently. */
struct dapx_queue_ops {
	bool hold_is_busy;	/* what is held is looked at without a doorbell */
	bool fault_at_once;	/* not when what the device has is done: it may never be */
	bool defers_busy;		/* BUSY may outlast the last completion */
	u32 busy_from;		/* in flight: no doorbell needed from here on ... */
	u32 busy_until;		/* ... until fewer than this are; both less if the ring is small */
	enum dapx_queue_mode (*mode)(struct dapx_queue *q);
	/* fill in the event from the entry's copy */
	void (*prepare)(struct dapx_queue *q, struct dapx_slot *slot);
	/* validate the entry's copy and hand it to the device */
	enum dapx_status (*post)(struct dapx_queue *q, struct dapx_slot *slot);
	/* the device is done with it */
	void (*done)(struct ib_cq *cq, struct ib_wc *wc);
	/* a faulty entry, or impossible indices, came to light; no locks held */
	void (*fault)(struct dapx_queue *q);
	/* run the queue again, from a context of its own; from any context */
	void (*kick)(struct dapx_queue *q);
	/* a barrier can be claimed; as kick() */
	void (*at_barrier)(struct dapx_queue *q);
	/* several entries were posted, or one; with q->lock */
	void (*posted)(struct dapx_queue *q);
	/* where a software-made completion goes; NULL: nowhere */
	struct dapx_evd *(*evd)(struct dapx_queue *q);
};

/* What waits between two entries of a ring until all before it is done. */
struct dapx_barrier {
	struct list_head entry;		/* q->barriers */
	u32 index;			/* of the entry before which it stands */
	bool signaled;
	struct dapx_event_node node;	/* its source's gone() also if it has no event */
};

/* Posted receives: enough for what arrives until the ring is looked at again. */
#define DAPX_RECV_BUSY_FROM 32
#define DAPX_RECV_BUSY_UNTIL 16

/* A ring of work and its one consumer. */
struct dapx_queue {
	const struct dapx_queue_ops *ops;
	void *owner;			/* struct dapx_ep or dapx_srq */
	struct dapx_object *obj;	/* of the owner */
	struct dapx_event_source events;	/* of slots */
	struct dapx_event_source barrier_events;
	spinlock_t lock;		/* all below but @outstanding and @free */
	struct dapx_ring_view view;
	enum dapx_queue_mode mode;
	u32 head;			/* view.head is only written */
	u64 taken;			/* entries; read without the lock */
	u32 limit;
	bool limited;			/* take nothing from @limit on */
	bool corrupt;			/* the indices were impossible */
	bool faulted;			/* an entry was */
	bool stalled;			/* work waits for a free slot */
	bool busy;			/* view.flags is only written */
	bool busy_deferred;			/* @busy_timer will look at the ring */
	ktime_t busy_since;
	struct hrtimer busy_timer;
	u32 busy_from;
	u32 busy_until;
	atomic_t outstanding;		/* what the device has */
	u32 slots_taken;		/* since the start; the difference is in use */
	atomic_t slots_freed;
	struct dapx_slot *faulty;	/* completes when @outstanding is 0 */
	struct list_head barriers;
	u32 num_barriers;
	bool passing;			/* somebody has claimed the first barrier */
	struct llist_head free;
	struct dapx_slot *slots;
	u32 max_sge;
	u32 max_inline;
	struct ib_sge *sges;
	void *copy;			/* of the entry being looked at */
	u8 *inline_data;		/* max_inline bytes for each slot */
	u64 inline_dma;
};

void dapx_queue_init_events(struct dapx_queue *q, struct dapx_object *obj,
			    void (*barrier_gone)(struct dapx_event_node *node));
void dapx_queue_drop_events(struct dapx_queue *q, struct dapx_evd *evd);
int dapx_queue_init(struct dapx_queue *q, const struct dapx_queue_ops *ops, void *owner,
		    u32 max_sge, u32 max_inline);
void dapx_queue_exit(struct dapx_queue *q);
void dapx_queue_reset(struct dapx_queue *q);
void dapx_queue_update_mode(struct dapx_queue *q);
int dapx_queue_run(struct dapx_queue *q);
void dapx_queue_limit(struct dapx_queue *q, bool limited);
void dapx_queue_quiesce(struct dapx_queue *q);
bool dapx_queue_is_clear(struct dapx_queue *q);
bool dapx_queue_all_ended(struct dapx_queue *q);
void dapx_queue_add_barrier(struct dapx_queue *q, struct dapx_barrier *barrier);
struct dapx_barrier *dapx_queue_claim_barrier(struct dapx_queue *q, enum dapx_status *status);
void dapx_queue_pass_barrier(struct dapx_queue *q, struct dapx_barrier *barrier,
			     enum dapx_status status);
struct dapx_barrier *dapx_queue_drop_barrier(struct dapx_queue *q);
bool dapx_queue_idle(struct dapx_queue *q);
struct dapx_slot *dapx_queue_pull(struct dapx_queue *q, enum dapx_status *status, u32 *left);
void dapx_slot_post(struct dapx_slot *slot);
void dapx_slot_unpost(struct dapx_slot *slot);
void dapx_slot_returned(struct dapx_slot *slot);
void dapx_queue_complete(struct dapx_slot *slot, struct dapx_evd *evd, enum dapx_status status);
void dapx_queue_retire(struct dapx_queue *q);
u32 dapx_send_stride(u32 max_sge, u32 max_inline);
u32 dapx_recv_stride(u32 max_sge);
enum dapx_status dapx_wc_status(enum ib_wc_status status);
enum dapx_status dapx_post_status(int error);
void dapx_recv_prepare(struct dapx_queue *q, struct dapx_slot *slot);
enum dapx_status dapx_segments_build(struct dapx_queue *q, struct dapx_pd *pd, u32 num_sge,
				     const struct dapx_sge *sge, bool write, u32 *num_out,
				     u64 *length);
enum dapx_status dapx_recv_build(struct dapx_queue *q, struct dapx_pd *pd,
				 struct dapx_slot *slot, struct ib_recv_wr *wr);
void dapx_recv_complete(struct dapx_ep *ep, struct dapx_slot *slot, const struct ib_wc *wc);

/* ------------------------------------------------------------------- send.c */

#define DAPX_SEND_FLAGS (DAPX_SEND_SIGNALED | DAPX_SEND_SOLICITED | DAPX_SEND_FENCE | \
			 DAPX_SEND_INLINE)

extern const struct dapx_queue_ops dapx_send_ops;
/* What the request queues of XRC endpoints do alike. */
enum dapx_queue_mode dapx_send_mode(struct dapx_queue *q);
void dapx_send_prepare(struct dapx_queue *q, struct dapx_slot *slot);
void dapx_send_fault(struct dapx_queue *q);
void dapx_send_kick(struct dapx_queue *q);
void dapx_send_at_barrier(struct dapx_queue *q);
struct dapx_evd *dapx_send_evd(struct dapx_queue *q);

/* --------------------------------------------------------------------- srq.c */

struct dapx_srq {
	struct dapx_object obj;
	struct dapx_pd *pd;
	struct dapx_evd *evd;		/* XRC: completions; or NULL */
	spinlock_t async_lock;		/* async_evd */
	struct dapx_evd *async_evd;	/* asynchronous events; or NULL */
	struct ib_srq *ibsrq;		/* plain */
	struct dapx_ring *ring;
	struct dapx_queue rq;
	struct work_struct work;
	bool dead;
	int bad_receive;		/* rq.lock: a negative errno; 0: none */
	u64 bad_wr_id;
	u32 limit;			/* 0: none, or the event is on its way */
	struct dapx_event_source async_events;
	struct dapx_event_node limit_event;
	struct dapx_event_node error_event;

	/* XRC */
	struct dapx_xrcd *xrcd;		/* NULL: plain */
	struct dapx_xrc_domain *domain;	/* its own; not looked into under RCU */
	struct list_head entry;		/* domain->srqs */
	u64 serial;
	u32 number;
	void *copies;			/* of each slot's entry */
};

extern const struct dapx_object_class dapx_srq_class;
int dapx_srq_doorbell(struct dapx_srq *srq);
struct dapx_slot *dapx_srq_take(struct dapx_srq *srq, enum dapx_status *status, u64 *size);
bool dapx_srq_place(struct dapx_srq *srq, struct dapx_slot *slot, u32 offset, const void *from,
		    u32 length);
void dapx_srq_complete(struct dapx_srq *srq, struct dapx_slot *slot, enum dapx_status status);

/*
 * A software device makes completions in a kernel thread, from which a softirq is
 * left to ksoftirqd: it would have to be scheduled against that thread and the
 * processes that poll. On the way out of an interrupt it runs at once.
 *
 * Called with the device's lock on the CQ: nothing is polled here. @work does
 * irq_poll_sched() for it. Returns whether it goes that way round.
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

/* ---------------------------------------------------------------------- qp.c */

int dapx_qp_attr_build(struct dapx_device *dev, u8 port, const struct dapx_qp_attr *step,
		       struct ib_qp_attr *attr, int *mask);

/* ---------------------------------------------------------------------- ep.c */

/* What ep->work has to do. */
enum dapx_ep_todo {
	DAPX_EP_TODO_BREAK,		/* queue pair to error, tell the peer */
	DAPX_EP_TODO_DISCONNECT,	/* graceful: all requests are done */
	DAPX_EP_TODO_NOTIFY,		/* a message came before the CM's last one */
	DAPX_EP_TODO_KICK,		/* slots came free */
	DAPX_EP_TODO_BIND,		/* a bind is next in the request queue */
};

struct dapx_cm;

struct dapx_ep {
	struct dapx_object obj;
	spinlock_t lock;		/* state, dead, cm, peer_data, user_data, ... */
	enum dapx_ep_state state;
	bool dead;			/* teardown has begun */
	bool tentative;			/* made by a listener, not accepted yet */
	struct dapx_pd *pd;
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
	struct dapx_xrc_sender *xrc;	/* NULL: not DAPX_EP_XRC */

	struct mutex qp_mutex;		/* changes of qp_state */
	struct ib_qp *qp;
	struct ib_cq *cq;		/* sends, and receives unless @recv_cq */
	struct ib_cq *recv_cq;		/* DAPX_EP_SOLICITED */
	struct irq_work cq_irq_work;
	enum ib_qp_state qp_state;
	bool silent_error;		/* qp_mutex; dapx_ep_check_qp_error() found it in error */
	spinlock_t recv_cq_lock;	/* polling it */
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
	bool answered;			/* ep->lock; the peer accepted: its data are here */
	bool established;		/* ep->lock; by the CM, and that event is posted */
	bool peer_left;			/* ep->lock; it ends when all is acknowledged */
	unsigned long received_at;	/* jiffies, and bit 0; the last message; 0: none */
	u64 received;			/* messages; by the one who fetches them */
	atomic_t binds;			/* that wait in @sq, or whose events wait for room */
	u8 port;			/* QP number exchange */
	u64 connect_deadline;

	unsigned long todo;
	struct work_struct work;
	struct delayed_work deadline;
	struct dapx_event_source connection_events;
	struct dapx_event_source async_events;
	struct dapx_event_node outcome;	/* of the set-up */
	struct dapx_event_node end;	/* of the connection */
	struct dapx_event_node async;
};

extern const struct dapx_object_class dapx_ep_class;
int dapx_ep_attr_check(struct dapx_context *ctx, const struct dapx_ep_attr *attr, bool srq);
size_t dapx_ep_memory(const struct dapx_ep_attr *attr);
struct dapx_ep *dapx_ep_alloc(struct dapx_context *ctx, const struct dapx_ep_attr *attr,
			      bool srq);
void dapx_ep_abort(struct dapx_ep *ep);
struct dapx_ep *dapx_ep_lock(struct dapx_context *ctx, u32 handle);
void dapx_ep_unlock(struct dapx_ep *ep);
void dapx_ep_set_state(struct dapx_ep *ep, enum dapx_ep_state state);
void dapx_ep_update_modes(struct dapx_ep *ep);
void dapx_ep_queue(struct dapx_ep *ep, enum dapx_ep_todo todo);
void dapx_ep_post_event(struct dapx_ep *ep, struct dapx_event_node *node, u32 what, int error);
void dapx_ep_fail(struct dapx_ep *ep);
void dapx_ep_check_status(struct dapx_ep *ep, enum dapx_status status);
void dapx_ep_stop(struct dapx_ep *ep);
void dapx_ep_completed(struct dapx_ep *ep);
void dapx_ep_arm(struct dapx_ep *ep, struct dapx_evd *evd);
int dapx_ep_qp_modify(struct dapx_ep *ep, struct ib_qp_attr *attr, int mask);
void dapx_ep_qp_to_error(struct dapx_ep *ep);
void dapx_ep_check_qp_error(struct dapx_ep *ep);
int dapx_ep_access_flags(struct dapx_ep *ep);

/* -------------------------------------------------------------- ep_connect.c */

int dapx_ep_cm_event(struct dapx_ep *ep, struct rdma_cm_id *id, struct rdma_cm_event *event);
void dapx_ep_connect_now(struct dapx_ep *ep, struct rdma_cm_id *id);
void dapx_ep_message_arrived(struct dapx_ep *ep);
void dapx_ep_deadline(struct work_struct *work);
void dapx_ep_disconnect_drained(struct dapx_ep *ep);

/* ---------------------------------------------------------------------- cm.c */

struct dapx_cm {
	struct dapx_object obj;
	struct mutex id_mutex;		/* id is there; connector */
	struct rdma_cm_id *id;		/* NULL: destroyed */
	struct task_struct *connector;	/* NULL: none, or it is done */
	bool connects;			/* by a connector */
	struct completion connected;	/* or not: the connector has ended */
	spinlock_t lock;		/* state, closing, requests, unacked */
	enum dapx_cm_state state;
	bool closing;			/* no more events */
	struct dapx_evd *evd;		/* NULL: made for an endpoint */
	/* Attached: who gets the events. Changed with handler_mutex held. */
	struct dapx_ep *ep;
	unsigned long sent_at;		/* jiffies: our request or answer went; 0: it is answered */

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
	struct dapx_event_node addr_event;
	struct dapx_event_node route_event;
	struct dapx_event_node request_event;
	struct dapx_event_node gone_event;
};

extern const struct dapx_object_class dapx_cm_class;
struct dapx_cm *dapx_cm_for_ep(struct dapx_ep *ep);
int dapx_cm_connect_aside(struct dapx_cm *cm);
void dapx_cm_shutdown(struct dapx_cm *cm);
void dapx_cm_disconnect(struct dapx_cm *cm);
void dapx_cm_mark_sent(struct dapx_cm *cm);
void dapx_cm_established(struct dapx_cm *cm);
void dapx_cm_addresses(struct dapx_cm *cm, struct __kernel_sockaddr_storage *local,
		       struct __kernel_sockaddr_storage *remote);
int dapx_cm_put_addresses(struct dapx_cm *cm, struct sk_buff *skb);
void dapx_cm_set_ep(struct dapx_cm *cm, struct dapx_ep *ep);
void dapx_cm_release_ep(struct dapx_cm *cm);
bool dapx_cm_claim_request(struct dapx_cm *cm);
void dapx_cm_unclaim_request(struct dapx_cm *cm);
void dapx_cm_request_accepted(struct dapx_cm *cm);
void dapx_cm_request_handed_over(struct dapx_cm *cm);
void dapx_cm_delay_reject(unsigned long sent_at);
bool dapx_cm_listener(struct dapx_cm *cm);
void dapx_cm_destroy_async(struct dapx_cm *cm);
void dapx_cm_cancel_destroy(struct dapx_cm *cm);
int dapx_cm_timeout_ms(u64 deadline);
bool dapx_cm_no_route(int error);
bool dapx_addr_valid(const struct __kernel_sockaddr_storage *addr);

static inline struct dapx_pd *to_dapx_pd(struct dapx_object *obj)
{
	return container_of(obj, struct dapx_pd, obj);
}

static inline struct dapx_mr *to_dapx_mr(struct dapx_object *obj)
{
	return container_of(obj, struct dapx_mr, obj);
}

static inline struct dapx_rmr *to_dapx_rmr(struct dapx_object *obj)
{
	return container_of(obj, struct dapx_rmr, obj);
}

static inline struct dapx_evd *to_dapx_evd(struct dapx_object *obj)
{
	return container_of(obj, struct dapx_evd, obj);
}

static inline struct dapx_srq *to_dapx_srq(struct dapx_object *obj)
{
	return container_of(obj, struct dapx_srq, obj);
}

static inline struct dapx_xrcd *to_dapx_xrcd(struct dapx_object *obj)
{
	return container_of(obj, struct dapx_xrcd, obj);
}

static inline struct dapx_ep *to_dapx_ep(struct dapx_object *obj)
{
	return container_of(obj, struct dapx_ep, obj);
}

static inline struct dapx_cm *to_dapx_cm(struct dapx_object *obj)
{
	return container_of(obj, struct dapx_cm, obj);
}

/* ----------------------------------------------------------------- netlink.c */

/* What a listener is told; the members that its event has. */
struct dapx_notification {
	enum dapx_genl_event event;
	u32 handle;
	u32 state;			/* or the cause */
	u32 number;
	u64 large;
};

void dapx_netlink_notify(struct dapx_context *ctx, const struct dapx_notification *what);
int dapx_netlink_init(void);
void dapx_netlink_exit(void);

#endif /* _DAPX_PRIVATE_H */
