/* SPDX-License-Identifier: GPL-2.0 */
/*
 * dapx: memory that a device, or XRC, may use: protection domains, regions, windows
 */
#ifndef _DAPX_MEMORY_H
#define _DAPX_MEMORY_H

#include "dapx_private.h"

/* ------------------------------------------------------------------ pd.c */

/* A queue pair of a PD, which may have to be checked for errors. */
struct dapx_pd_member {
	struct list_head entry;		/* pd->members */
	void (*check)(struct dapx_pd_member *member);
};

struct dapx_pd {
	struct dapx_object obj;
	struct ib_pd *ibpd;
	struct mutex members_lock;	/* the list */
	struct list_head members;
	struct delayed_work check_work;	/* checks the members */
	unsigned int checks_left;		/* of check_work, still to do */
};

extern const struct dapx_object_class dapx_pd_class;
void dapx_pd_check_soon(struct dapx_pd *pd);
void dapx_pd_add_member(struct dapx_pd *pd, struct dapx_pd_member *member);
void dapx_pd_del_member(struct dapx_pd *pd, struct dapx_pd_member *member);

DAPX_OBJECT_ACCESSORS(pd, DAPX_OBJECT_PD);

/* ------------------------------------------------------------------ mr.c */

struct dapx_mr {
	struct dapx_object obj;
	struct dapx_pd *pd;
	struct ib_mr *ibmr;
	struct dapx_pinned __rcu *pinned; /* XRC; else NULL; set once, under obj.mutex */
	bool dead;			/* obj.mutex; it is not changed any more */
	u64 addr;
	u64 length;
	u32 access;
	u32 lkey;
	u32 rkey;			/* 0: no remote rights */
};

DAPX_OBJECT_ACCESSORS(mr, DAPX_OBJECT_MR);

extern const struct dapx_object_class dapx_mr_class;
#define DAPX_ACCESS_REMOTE (DAPX_ACCESS_REMOTE_WRITE | DAPX_ACCESS_REMOTE_READ | \
			    DAPX_ACCESS_REMOTE_ATOMIC)

int dapx_access_to_ib(u32 access);
struct ib_mr *dapx_mr_register(struct dapx_pd *pd, u64 addr, u64 length, u32 access, bool window);
int dapx_mr_to_sge(struct dapx_context *ctx, struct dapx_pd *pd,
		   const struct dapx_sge *sge, bool write, struct ib_sge *out);

int dapx_mr_pin_error(u64 addr, u64 length);
struct dapx_mr *dapx_mr_find(struct dapx_context *ctx, struct dapx_pd *pd,
			     const struct dapx_sge *sge, bool write);

/* -------------------------------------------------------------- xrc/memory.c */

int dapx_mr_pin(struct dapx_mr *mr);
void dapx_mr_unpin(struct dapx_mr *mr);
bool dapx_mr_copyable(struct dapx_context *ctx, struct dapx_pd *pd, const struct dapx_sge *sge,
		      bool write);
bool dapx_mr_copy(struct dapx_context *ctx, struct dapx_pd *pd, const struct dapx_sge *sge,
		  void *buffer, bool write);
bool dapx_mr_copy_by_key(struct dapx_pd *pd, u32 rkey, u64 addr, u64 total, u32 offset,
			 void *buffer, u32 length, bool write);
bool dapx_xrc_segments_copy(struct dapx_context *ctx, struct dapx_pd *pd,
			    const struct dapx_sge *sge, u32 num_sge, u32 offset, void *buffer,
			    u32 length, bool write);
bool dapx_mr_atomic_by_key(struct dapx_pd *pd, u32 rkey, u64 addr, bool add, u64 compare_add,
			   u64 swap, u64 *old);

/* ---------------------------------------------------------------- keys.c */

struct dapx_keys;

struct dapx_keys *dapx_keys_create(void);
void dapx_keys_destroy(struct dapx_keys *keys);
bool dapx_keys_take(struct dapx_keys *keys, u32 key);
bool dapx_keys_used(struct dapx_keys *keys, u32 key);

/* ----------------------------------------------------------------- rmr.c */

/* What one bind binds an RMR to. */
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
	struct list_head binds;		/* pending in request queues */
	bool dead;
};

extern const struct dapx_object_class dapx_rmr_class;

DAPX_OBJECT_ACCESSORS(rmr, DAPX_OBJECT_RMR);

#endif /* _DAPX_MEMORY_H */
