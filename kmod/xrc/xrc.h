/* SPDX-License-Identifier: GPL-2.0 */
/*
 * dapx: XRC without its engine (see engine.h): domains, the wire, both ends of a connection
 */
#ifndef _DAPX_XRC_XRC_H
#define _DAPX_XRC_XRC_H

#include <linux/path.h>

#include "dapx_private.h"

struct dapx_ep;
struct dapx_mr;
struct dapx_pd;
struct dapx_srq;

/* -------------------------------------------------------------- domain.c */

/*
 * An XRC domain, which processes share: a receive queue pair delivers to the SRQs of its
 * domain. As long as an SRQ or a receive queue pair of a domain exists, a context has the
 * domain open.
 */
struct dapx_xrc_domain {
	struct kref kref;		/* of this memory; @opens keeps the contents */
	u32 id;				/* in dapx_xrc_domains */
	char owner[DAPX_OWNER_SIZE];	/* for 'rdma resource show' */
	struct dapx_device *dev;	/* valid while a context has the domain open */
	struct path path;		/* mnt is NULL: without a file */
	struct hlist_node node;		/* dev->xrc_domains */
	unsigned int opens;		/* dev->xrc_lock */
	struct list_head closed;	/* ctx->closed_domains, of whose context was the last */
	struct mutex lock;		/* xrcds, srqs, qps, their registrations, pool */
	bool announced;			/* lock; listeners know of the domain */
	struct list_head xrcds;		/* if empty, the domain may be closed */
	struct list_head srqs;
	struct list_head qps;
	struct dapx_xrc_pool *pool;	/* NULL: never had a receive queue pair */
};

/* One context's reference to a domain. */
struct dapx_xrcd {
	struct dapx_object obj;
	struct dapx_xrc_domain *domain;
	u32 domain_id;			/* valid when the domain is closed, too */
	struct list_head entry;		/* domain->xrcds */
	u64 serial;
};

extern const struct dapx_object_class dapx_xrcd_class;
/*
 * The generation increases whenever something is added to a domain or removed from it. What is
 * added gets the new value as its serial number. The lists of a domain are in the order of
 * these numbers.
 */
u64 dapx_xrc_generation_inc(void);
u64 dapx_xrc_generation(void);
/*
 * Returns the first domain with this id or a larger one, with a reference to its memory, or
 * NULL.
 */
struct dapx_xrc_domain *dapx_xrc_domain_next(u32 id);
void dapx_xrc_domain_put(struct dapx_xrc_domain *domain);
int dapx_xrc_domain_fill(struct dapx_xrc_domain *domain);
void dapx_xrc_domain_let_go(struct dapx_xrc_domain *domain);

DAPX_OBJECT_ACCESSORS(xrcd, DAPX_OBJECT_XRCD);

/* -------------------------------------------------------------- pinned.c */

struct dapx_pinned;

struct dapx_pinned *dapx_pinned_create(struct ib_device *ibdev, u64 addr, u64 length, bool write);
void dapx_pinned_destroy(struct dapx_pinned *pinned);
bool dapx_pinned_get(struct dapx_pinned *pinned);
void dapx_pinned_put(struct dapx_pinned *pinned);
void dapx_pinned_copy(struct dapx_pinned *pinned, u64 offset, void *buffer, u32 length,
		      bool to_process);
u64 dapx_pinned_atomic(struct dapx_pinned *pinned, u64 offset, bool add, u64 compare_add,
		       u64 swap);

/* ---------------------------------------------------------------- wire.c */

/* A buffer that is mapped for the device; most are for one segment. */
struct dapx_xrc_buffer {
	struct ib_cqe cqe;
	struct list_head entry;
	void *va;
	u64 dma;
	u32 size;
};

/* The most segments in flight to either end of a connection. */
#define DAPX_XRC_CREDITS 6
/* An RNR timer of 0.06 ms, for when more answers arrive than there are buffers. */
#define DAPX_XRC_ANSWER_TIMER 5

/*
 * Buffers that connections borrow: a device has a pool for its sending endpoints, and each
 * domain has one for its receive queue pairs.
 */
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
int dapx_xrc_buffer_init(struct ib_device *ibdev, struct dapx_xrc_buffer *buffer, u32 size);
void dapx_xrc_buffer_exit(struct ib_device *ibdev, struct dapx_xrc_buffer *buffer);
int dapx_xrc_post_probe(struct ib_qp *qp, struct ib_cqe *cqe);
void dapx_xrc_buffer_read(struct ib_device *ibdev, struct dapx_xrc_buffer *buffer, u32 length);
int dapx_xrc_buffers_create(struct ib_device *ibdev, struct list_head *list, unsigned int count);
void dapx_xrc_buffers_destroy(struct ib_device *ibdev, struct list_head *list);
int dapx_xrc_post_recv(struct ib_qp *qp, struct dapx_xrc_buffer *buffer,
		       void (*done)(struct ib_cq *cq, struct ib_wc *wc));
int dapx_xrc_post_send(struct ib_qp *qp, struct dapx_xrc_buffer *buffer, u32 length,
		       void (*done)(struct ib_cq *cq, struct ib_wc *wc));
u32 dapx_xrc_answer_psn(u32 qp_num, u32 dest_qp_num);

/* Precedes the private data of the CM's messages; at most DAPX_CM_HEADER_MAX bytes. */
struct dapx_xrc_cm_header {
	__le32 magic;
	__le32 version;
};

void dapx_xrc_cm_header_write(void *private_data);
bool dapx_xrc_cm_header_is(const void *private_data, u32 length);

/* ------------------------------------------------------------- recv_qp.c */

extern const struct dapx_object_class dapx_xrc_qp_class;
void dapx_xrc_srq_gone(struct dapx_xrc_domain *domain, struct dapx_srq *srq);

/* What netlink reports about a receive queue pair. */
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

#endif /* _DAPX_XRC_XRC_H */
