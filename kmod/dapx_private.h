/* SPDX-License-Identifier: GPL-2.0 */
/*
 * dapx: what all files of the module share: lifetimes, lock order, contexts of execution;
 * devices, users, contexts, objects, commands
 *
 * Lifetime
 * --------
 * A context (struct dapx_context) is one open file. References to it are held by the file, by
 * its device's list and by its teardown work. References to an object are held by its entry in
 * the context's xarray, by commands in flight, and by the objects that point to it. A pointer
 * from another object also counts in @users, so that freeing the object fails with EBUSY. The
 * pointers of a connection request do not count, as its endpoint and its listener destroy it.
 * Once the process has taken the request, its pointer to the EVD counts.
 *
 * An object's destroy() releases what it has on the device; its memory is freed with the last
 * reference. The code that removed the handle from the xarray calls destroy(), once.
 *
 * Lock order, outermost first
 * ---------------------------
 *	mmap_lock (in mmap; of the following, only the rings' xa_lock is taken below it)
 *	context->sem		read: a command; write: teardown
 *	  mr->obj.mutex		making an MR usable for XRC
 *	  evd->obj.mutex	one resize at a time
 *	  mmap_lock (page faults of user copies and of registration)
 *	  ep->obj.mutex		commands on one endpoint
 *	    rmr->obj.mutex	the window that an RMR is bound to
 *	    cm->obj.mutex	the id that connects it; also in ep->deadline, alone
 *	    rdma_cm's handler_mutex (held in all CM callbacks)
 *	      ep->qp_mutex	changes of the queue pair, and of its state
 *	      cm->id_mutex	keeps cm->id from being destroyed
 *	    evd->lazy_lock (mutex)	endpoints whose receives are fetched on demand
 *	domain->lock (mutex)	the receive queue pairs of an XRC domain
 *	  xrc_qp->mutex		its state changes, its CM id
 *	    rdma_cm's handler_mutex
 *	dev->xrc_lock (mutex)	domains of files, dev->xrc_pd, dev->xrc_pool; above none of
 *				these
 *	dev->async_lock (mutex)	EVDs that receive the ports' events
 *	ep->recv_cq_lock	(bh) fetching receives; above the following
 *	ep->lock		(irq) endpoint state, ep->cm
 *	cm->lock		(irq) CM id state, lists of requests; a request's above its
 *				listener's
 *	xrc_qp->lock		(bh) the responder of a receive queue pair
 *	  xrc_qp->events_lock	(irq) its registrations, for events
 *	srq->async_lock		(irq) srq->async_evd
 *	q->lock			(bh) taking work from a ring; the EVD of its completions
 *	  sender->lock		(bh) the requester of an XRC endpoint
 *	pool->lock		(bh) XRC's borrowed buffers; below xrc_qp->lock, sender->lock
 *	  evd->lock		(irq) an event ring; below each of the above
 *	keys->lock		keys of windows
 *	dapx_notices_lock	(irq) notifications for listeners; below each of the above
 *	dapx_devices_lock	(mutex) devices and their contexts; above objects' xa_lock
 *	objects' xa_lock
 *
 * ep->lock, cm->lock and q->lock are never held together, except in XRC endpoints, which take
 * q->lock, sender->lock, ep->lock in this order. The q->lock of an XRC SRQ is taken below
 * xrc_qp->lock. A CM callback never takes ep->obj.mutex, and rdma_destroy_id(), which waits for
 * callbacks, is never called with a lock held that a callback takes.
 *
 * What is also read without its lock is written with WRITE_ONCE(); KCSAN looks for what is not.
 *
 * Contexts of execution
 * ---------------------
 *	function		context		locks that may be held
 *	ioctl handlers		process		context->sem (read)
 *	dapx_cm_handler()	process (work)	handler_mutex
 *	dapx_send_done(), dapx_recv_done(), dapx_srq_done(), dapx_xrc_*_done(),
 *	dapx_xrc_segment_arrived()
 *				softirq		none
 *	dapx_xrc_requester_ops	process, softirq	sender->lock, q->lock
 *	dapx_xrc_responder_ops	softirq, process	xrc_qp->lock
 *	dapx_xrc_timer()	softirq		none
 *	dapx_ep_qp_event(), dapx_xrc_qp_event()
 *				any, irqs off	the driver's
 *	dapx_device_event()	process (work)	none
 *	dapx_evd_post()		any		ep->lock, cm->lock, q->lock
 *	dapx_queue_run()	process, softirq	context->sem, recv_cq_lock
 *	dapx_queue_busy_deferred()
 *				softirq		none
 *	dapx_cm_connector()	process (thread)	none
 *	ep->work, ep->deadline, cm->make_ep_work, xrc_qp->work
 *				process (work)	none
 *	dapx_context_teardown(), dapx_helper_work()
 *				process (work)	none
 *	mmu_notifier release	process		SRCU read side
 *	dapx_netlink_*_dump()	process		the socket's cb_mutex
 *	dapx_netlink_notify()	any		any
 */
#ifndef _DAPX_PRIVATE_H
#define _DAPX_PRIVATE_H

#include <linux/hashtable.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mmu_notifier.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

#include "dapx.h"
#include "kcompat.h"

#define DAPX_MAX_SGE 32
#define DAPX_MAX_INLINE 512
/* The part of a connection request's private data that the RDMA CM uses itself, in bytes. */
#define DAPX_CM_IP_HEADER_SIZE 36
/* The most bytes that a transport's header takes of the private data. */
#define DAPX_CM_HEADER_MAX 8
/* How long, after a disconnect by the peer, its acknowledgements may take to arrive. */
#define DAPX_ACKNOWLEDGE_TIME (HZ / 4)
/*
 * A device with late_acknowledgements has acknowledged a message so long after it completed it;
 * its worker, if there is one, when it has run for DAPX_ACKNOWLEDGE_RUNTIME nanoseconds since.
 */
#define DAPX_ACKNOWLEDGE_LATEST (DAPX_RXE_RECEIVES_IN_WORKER ? HZ : HZ / 50)
#define DAPX_ACKNOWLEDGE_RUNTIME (20 * NSEC_PER_MSEC)

/* -------------------------------------------------------------- device.c */

/* The peculiarities of a driver. Nothing else depends on which driver it is. */
struct dapx_driver {
	enum rdma_driver_id id;
	bool silent_errors;		/* no event once a QP is in ERR; at most one before */
	bool late_acknowledgements;	/* sent after the receive is completed */
	bool late_packets;		/* may reach a QP that is being destroyed */
	bool solicits_requests_only;	/* CQs notify of solicited sends, not of receives */
};

/* An RDMA device. */
struct dapx_device {
	struct kref kref;
	struct ib_device *ibdev;	/* valid until @contexts is empty for good */
	char name[IB_DEVICE_NAME_MAX];	/* dapx_devices_lock; read without it for diagnostics */
	struct list_head entry;		/* dapx_devices */
	struct list_head contexts;	/* dapx_devices_lock */
	struct ib_event_handler event_handler;
	bool removed;			/* dapx_devices_lock */
	bool iwarp;
	const struct dapx_driver *driver;	/* NULL: not supported */
	struct dapx_keys *keys;		/* of windows; set once, by the first */
	struct mutex async_lock;
	struct list_head async_evds;	/* async_lock; those that receive the ports' events */
	struct mutex xrc_lock;
	DECLARE_HASHTABLE(xrc_domains, 6);	/* xrc_lock; those of files, by inode */
	struct ib_pd *xrc_pd;		/* for the module's own queue pairs; has no keys */
	struct dapx_xrc_pool *xrc_pool;	/* exists with xrc_pd; for busy sending endpoints */
	unsigned int xrc_users;		/* xrc_lock */
	struct xarray xrc_srqs;		/* by number; read under RCU */
	u32 xrc_next_srq;
	struct xarray xrc_keys;		/* MRs for XRC, by remote key; read under RCU */
	u32 max_msg_size;
	u64 caps;			/* enum dapx_device_cap; 0 if not supported */
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
bool dapx_device_drops(const struct dapx_device *dev);
unsigned long dapx_device_silence_qp(const struct dapx_device *dev, struct ib_qp *qp);
void dapx_device_wait_silent(const struct dapx_device *dev, unsigned long silence);
u32 dapx_device_max_depth(const struct dapx_device *dev);
u32 dapx_device_max_srq_depth(const struct dapx_device *dev);

/* ---------------------------------------------------------------- user.c */

/* A user id. Its contexts, and the XRC receive queue pairs that they created, hold references. */
struct dapx_user {
	refcount_t refs;		/* dapx_users' xa_lock for the last */
	uid_t uid;
	atomic_t objects;		/* contexts included */
	atomic_t connecting;		/* threads that connect for the user */
	struct workqueue_struct *works;	/* of objects */
	struct workqueue_struct *ends;	/* teardown of contexts, which waits for works */
	struct work_struct release;
};

extern struct workqueue_struct *dapx_wq;

struct dapx_user *dapx_user_get(uid_t uid);
void dapx_user_hold(struct dapx_user *user);
void dapx_user_put(struct dapx_user *user);
int dapx_users_init(void);
void dapx_users_wait(void);
void dapx_users_exit(void);
int dapx_user_charge(struct dapx_user *user);
void dapx_user_uncharge(struct dapx_user *user);
bool dapx_user_begin_connect(struct dapx_user *user);
void dapx_user_end_connect(struct dapx_user *user);
extern unsigned int dapx_max_user_objects;

/* ------------------------------------------------------------- context.c */

#define DAPX_OBJECT_TYPES (DAPX_OBJECT_XRC_QP + 1)
/* The name of a process or a domain in 'rdma resource show', which has room for 16 characters. */
#define DAPX_OWNER_SIZE sizeof("dapx:xrcd:2147483647")

/* One open file: one process' objects on one device. */
struct dapx_context {
	struct kref kref;
	u32 id;				/* in dapx_contexts; not reused soon */
	struct rw_semaphore sem;
	struct mm_struct *mm;		/* the process that may use it */
	struct mmu_notifier notifier;
	struct pid *pid;		/* of the process, for diagnostics */
	struct net *net;
	struct dapx_user *user;
	struct dapx_device *dev;	/* set once; read after smp_load_acquire(@attached) */
	struct list_head device_entry;	/* dapx_devices_lock */
	struct xarray objects;
	/* objects.xa_lock: each object is on one list, oldest first, while it is published */
	struct list_head of_type[DAPX_OBJECT_TYPES];
	struct list_head sources;	/* see dapx_object_make_source() */
	u32 next_object;
	u32 vacant;			/* objects.xa_lock; see dapx_object_release_id() */
	struct xarray mrs;		/* by handle; read under RCU */
	struct xarray rings;		/* by mmap offset */
	u32 next_ring;
	atomic_t num_objects;
	bool attached;
	bool dead;			/* accepts no new objects, commands or event sources */
	u64 ending_since;		/* ns; 0: teardown has not begun */
	enum dapx_genl_cause cause;
	char comm[TASK_COMM_LEN];	/* of the process that opened it */
	char owner[DAPX_OWNER_SIZE];	/* for 'rdma resource show' */
	struct work_struct end_work;
	/* objects.xa_lock; read when all objects are gone: whose files are let go last */
	struct list_head closed_domains;
	struct completion detached;	/* nothing of it is on its device any more */
	struct completion ended;
};

int dapx_context_open(struct dapx_context **out);
/* Returns the first context with this id or a larger one, with a reference, or NULL. */
struct dapx_context *dapx_context_next(u32 id);
void dapx_context_close(struct dapx_context *ctx);
kuid_t dapx_context_owner(const struct dapx_context *ctx);
void dapx_context_get(struct dapx_context *ctx);
void dapx_context_put(struct dapx_context *ctx);
int dapx_context_enter(struct dapx_ucmd *ucmd);
void dapx_context_leave(struct dapx_ucmd *ucmd);
void dapx_context_end(struct dapx_context *ctx, enum dapx_genl_cause cause);
void dapx_context_wait_detached(struct dapx_context *ctx);

/* -------------------------------------------------------------- object.c */

/* The first member of every object. */
struct dapx_object {
	struct kref kref;
	struct rcu_head rcu;
	struct dapx_context *ctx;
	const struct dapx_object_class *class;
	u32 handle;			/* 0: none */
	struct list_head entry;		/* ctx->of_type[] or ctx->sources; empty: not published */
	unsigned int users;		/* ctx->objects' xa_lock */
	u64 user_data;
	struct mutex mutex;		/* commands that change it */
#ifdef CONFIG_CGROUP_RDMA
	struct rdma_cgroup *cg;		/* charged for it */
#endif
};

/* Commands and teardown call any of these for several objects of a class at once. */
struct dapx_object_class {
	enum dapx_object_type type;
	size_t size;
	bool rcu;			/* freed after a grace period */
	u32 doorbells;			/* those that doorbell() accepts */
	int (*doorbell)(struct dapx_object *obj, u32 doorbells);
	/* NULL: EBUSY while it has users, else destroy() */
	int (*free)(struct dapx_object *obj, struct dapx_ucmd *ucmd);
	/* teardown: from here on it accepts nothing more; NULL: nothing to stop */
	void (*stop)(struct dapx_object *obj);
	/* teardown, after all are stopped: waits until the device is done with it */
	void (*settle)(struct dapx_object *obj);
	void (*device_removed)(struct dapx_object *obj);
	void (*destroy)(struct dapx_object *obj);
	void (*release)(struct dapx_object *obj);	/* the last reference was put */
	u32 (*state)(struct dapx_object *obj);
	/* put its attributes into a netlink message; the second with obj->mutex held */
	int (*fill)(struct dapx_object *obj, struct sk_buff *skb);
	int (*fill_locked)(struct dapx_object *obj, struct sk_buff *skb);
};

extern unsigned int dapx_max_objects;
int dapx_cgroup_charge(struct dapx_object *obj);
struct dapx_object *dapx_object_alloc(struct dapx_context *ctx,
				      const struct dapx_object_class *class);
void dapx_object_publish(struct dapx_object *obj);
void dapx_object_abort(struct dapx_object *obj);
void dapx_object_make_internal(struct dapx_object *obj);
void dapx_object_make_source(struct dapx_object *obj);
struct dapx_object *dapx_object_get(struct dapx_context *ctx, u32 handle,
				    enum dapx_object_type type);
struct dapx_object *dapx_object_get_next(struct dapx_context *ctx, unsigned long *handle,
					 enum dapx_object_type type);
struct dapx_object *dapx_object_use(struct dapx_context *ctx, u32 handle,
				    enum dapx_object_type type);
void dapx_object_unuse(struct dapx_object *obj);
int dapx_object_erase(struct dapx_object *obj, bool force);
void dapx_object_uncharge(struct dapx_object *obj);
int dapx_object_unpublish(struct dapx_object *obj, bool force);
bool dapx_object_queue_work(struct dapx_object *obj, struct work_struct *work);
bool dapx_object_queue_delayed(struct dapx_object *obj, struct delayed_work *work,
			       unsigned long delay);
void dapx_object_requeue_delayed(struct dapx_object *obj, struct delayed_work *work,
				 unsigned long delay);
void dapx_object_put(struct dapx_object *obj);
void dapx_objects_each(struct dapx_context *ctx, enum dapx_object_type type,
		       void (*fn)(struct dapx_object *obj));
void dapx_objects_destroy(struct dapx_context *ctx, enum dapx_object_type type);
void dapx_objects_destroy_sources(struct dapx_context *ctx);

/*
 * The accessors of a class: to_dapx_NAME() takes its member @obj. dapx_get_NAME() takes a
 * handle, and returns the object with a reference. dapx_use_NAME() also prevents it from being
 * freed until dapx_object_unuse(). The last two return an ERR_PTR() on failure.
 */
#define DAPX_OBJECT_ACCESSORS(_name, _type)						\
static inline struct dapx_##_name *to_dapx_##_name(struct dapx_object *obj)		\
{											\
	return container_of(obj, struct dapx_##_name, obj);				\
}											\
											\
static inline struct dapx_##_name *dapx_get_##_name(struct dapx_context *ctx, u32 handle) \
{											\
	struct dapx_object *obj = dapx_object_get(ctx, handle, _type);			\
											\
	return IS_ERR(obj) ? ERR_CAST(obj) : to_dapx_##_name(obj);			\
}											\
											\
static inline struct dapx_##_name *dapx_use_##_name(struct dapx_context *ctx, u32 handle) \
{											\
	struct dapx_object *obj = dapx_object_use(ctx, handle, _type);			\
											\
	return IS_ERR(obj) ? ERR_CAST(obj) : to_dapx_##_name(obj);			\
}											\
static_assert(true)

/* ---------------------------------------------------------------- main.c */

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
	struct dapx_cm_modify cm_modify;
	struct dapx_rmr_create rmr_create;
	struct dapx_rmr_bind rmr_bind;
	struct dapx_rmr_query rmr_query;
	struct dapx_xrcd_open xrcd_open;
	struct dapx_srq_modify srq_modify;
	struct dapx_srq_query srq_query;
	struct dapx_srq_resize srq_resize;
	struct dapx_ep_resize ep_resize;
	struct dapx_xrc_qp_create xrc_qp_create;
	struct dapx_xrc_qp_register xrc_qp_register;
	struct dapx_xrc_qp_unregister xrc_qp_unregister;
	struct dapx_xrc_qp_modify xrc_qp_modify;
	struct dapx_xrc_qp_accept xrc_qp_accept;
	struct dapx_xrc_qp_query xrc_qp_query;
	struct dapx_xrc_qp_disconnect xrc_qp_disconnect;
};

/*
 * A command in flight. @cmd is the kernel's copy; what the caller's struct does not have is
 * zero.
 */
struct dapx_ucmd {
	struct dapx_context *ctx;
	void __user *ubuffer;
	u32 user_size;
	u32 cmd_size;
	void *cmd;
	bool entered;			/* dapx_context_enter() */
	bool unanswered;		/* @ubuffer was not in memory */
};

/*
 * Answers a command. Does not wait for @ubuffer to be brought into memory, since that may be up
 * to a process. A command that cannot be answered undoes what it did, and is repeated once
 * @ubuffer is in memory.
 */
static inline int dapx_respond(struct dapx_ucmd *ucmd)
{
	pagefault_disable();
	ucmd->unanswered = copy_to_user(ucmd->ubuffer, ucmd->cmd,
					min(ucmd->user_size, ucmd->cmd_size));
	pagefault_enable();
	return ucmd->unanswered ? -EFAULT : 0;
}

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
int dapx_cmd_cm_modify(struct dapx_ucmd *ucmd);
int dapx_cmd_rmr_create(struct dapx_ucmd *ucmd);
int dapx_cmd_rmr_bind(struct dapx_ucmd *ucmd);
int dapx_cmd_rmr_query(struct dapx_ucmd *ucmd);
int dapx_cmd_xrcd_open(struct dapx_ucmd *ucmd);
int dapx_cmd_srq_modify(struct dapx_ucmd *ucmd);
int dapx_cmd_srq_query(struct dapx_ucmd *ucmd);
int dapx_cmd_srq_resize(struct dapx_ucmd *ucmd);
int dapx_cmd_ep_resize(struct dapx_ucmd *ucmd);
int dapx_cmd_ep_establish(struct dapx_ucmd *ucmd);
int dapx_cmd_xrc_qp_create(struct dapx_ucmd *ucmd);
int dapx_cmd_xrc_qp_register(struct dapx_ucmd *ucmd);
int dapx_cmd_xrc_qp_unregister(struct dapx_ucmd *ucmd);
int dapx_cmd_xrc_qp_modify(struct dapx_ucmd *ucmd);
int dapx_cmd_xrc_qp_accept(struct dapx_ucmd *ucmd);
int dapx_cmd_xrc_qp_query(struct dapx_ucmd *ucmd);
int dapx_cmd_xrc_qp_disconnect(struct dapx_ucmd *ucmd);

/* ------------------------------------------------------------- netlink.c */

/* A notification for listeners. Only the members that the event needs are set. */
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
