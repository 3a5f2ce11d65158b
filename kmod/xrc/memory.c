// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: memory regions for XRC: the module copies to and from their pages
 */
#include "memory.h"
#include "xrc/xrc.h"

/*
 * Pins the pages, so that the module can copy to and from them, and lets peers find them by
 * key. Other threads may already look at the MR, so its pages are published last.
 */
int dapx_mr_pin(struct dapx_mr *mr)
{
	struct dapx_device *dev = mr->obj.ctx->dev;
	struct dapx_pinned *pinned;
	int ret;

	pinned = dapx_pinned_create(dev->ibdev, mr->addr, mr->length,
				    mr->access & DAPX_ACCESS_LOCAL_WRITE);
	if (IS_ERR(pinned)) {
		ret = PTR_ERR(pinned);
		return ret == -EFAULT ? dapx_mr_pin_error(mr->addr, mr->length) : ret;
	}
	if (mr->rkey) {
		ret = xa_insert(&dev->xrc_keys, mr->rkey, mr, GFP_KERNEL_ACCOUNT);
		if (ret) {
			dapx_pinned_destroy(pinned);
			return ret;
		}
	}
	rcu_assign_pointer(mr->pinned, pinned);
	return 0;
}

/*
 * When this returns, no peer finds the MR by its key, and no copy is in progress. The caller
 * has removed the MR from ctx->mrs.
 */
void dapx_mr_unpin(struct dapx_mr *mr)
{
	struct dapx_pinned *pinned = rcu_dereference_protected(mr->pinned, true);

	if (!pinned)
		return;
	if (mr->rkey)
		xa_erase(&mr->obj.ctx->dev->xrc_keys, mr->rkey);
	dapx_pinned_destroy(pinned);
}

/* Returns whether dapx_mr_copy() would succeed now. */
bool dapx_mr_copyable(struct dapx_context *ctx, struct dapx_pd *pd, const struct dapx_sge *sge,
		      bool write)
{
	struct dapx_mr *mr;
	bool copyable;

	rcu_read_lock();
	mr = dapx_mr_find(ctx, pd, sge, write);
	copyable = mr && rcu_access_pointer(mr->pinned);
	rcu_read_unlock();
	return copyable;
}

/* Copies to or from a segment of the process' memory. Called in any context. */
bool dapx_mr_copy(struct dapx_context *ctx, struct dapx_pd *pd, const struct dapx_sge *sge,
		  void *buffer, bool write)
{
	struct dapx_pinned *pinned;
	struct dapx_mr *mr;
	bool found;
	u64 offset;

	rcu_read_lock();
	mr = dapx_mr_find(ctx, pd, sge, write);
	pinned = mr ? rcu_dereference(mr->pinned) : NULL;
	found = pinned && dapx_pinned_get(pinned);
	if (found) {
		/*
		 * dapx_mr_unpin() waits for this copy, not for RCU. Softirqs are off, so it
		 * does not wait long.
		 */
		offset = sge->addr - mr->addr;
		dapx_pinned_copy(pinned, offset, buffer, sge->length, write);
		dapx_pinned_put(pinned);
	}
	rcu_read_unlock();
	return found;
}

/*
 * Finds the memory that a peer names by key and address: @length bytes of an MR of @pd that
 * grants @access. Returns it with a reference, and where it begins in @offset. Called under
 * RCU.
 */
static struct dapx_pinned *dapx_mr_find_key(struct dapx_pd *pd, u32 rkey, u64 addr, u64 length,
					    u32 access, u64 *offset)
{
	struct dapx_mr *mr = xa_load(&pd->obj.ctx->dev->xrc_keys, rkey);
	struct dapx_pinned *pinned;

	if (!mr || mr->pd != pd || !(mr->access & access))
		return NULL;
	if (addr < mr->addr || addr - mr->addr > mr->length ||
	    length > mr->length - (addr - mr->addr))
		return NULL;
	*offset = addr - mr->addr;
	/* The key is published before the pages. */
	pinned = rcu_dereference(mr->pinned);
	return pinned && dapx_pinned_get(pinned) ? pinned : NULL;
}

/* A peer names the range [addr, addr + total). Copies @length bytes at @offset of that range. */
bool dapx_mr_copy_by_key(struct dapx_pd *pd, u32 rkey, u64 addr, u64 total, u32 offset,
			 void *buffer, u32 length, bool write)
{
	struct dapx_pinned *pinned;
	u64 start;

	rcu_read_lock();
	pinned = dapx_mr_find_key(pd, rkey, addr, total,
				  write ? DAPX_ACCESS_REMOTE_WRITE : DAPX_ACCESS_REMOTE_READ,
				  &start);
	if (pinned) {
		dapx_pinned_copy(pinned, start + offset, buffer, length, write);
		dapx_pinned_put(pinned);
	}
	rcu_read_unlock();
	return pinned;
}

bool dapx_mr_atomic_by_key(struct dapx_pd *pd, u32 rkey, u64 addr, bool add, u64 compare_add,
			   u64 swap, u64 *old)
{
	struct dapx_pinned *pinned;
	u64 start;

	rcu_read_lock();
	pinned = dapx_mr_find_key(pd, rkey, addr, sizeof(u64), DAPX_ACCESS_REMOTE_ATOMIC, &start);
	if (pinned) {
		*old = dapx_pinned_atomic(pinned, start, add, compare_add, swap);
		dapx_pinned_put(pinned);
	}
	rcu_read_unlock();
	return pinned;
}

/*
 * Copies @length bytes at @offset of a message between @buffer and the segments. False: access
 * denied.
 */
bool dapx_xrc_segments_copy(struct dapx_context *ctx, struct dapx_pd *pd,
			    const struct dapx_sge *sge, u32 num_sge, u32 offset, void *buffer,
			    u32 length, bool write)
{
	struct dapx_sge part;

	for (; length && num_sge; num_sge--, sge++) {
		if (offset >= sge->length) {
			offset -= sge->length;
			continue;
		}
		part = (struct dapx_sge) {
			.mr = sge->mr,
			.addr = sge->addr + offset,
			.length = min(length, sge->length - offset),
		};
		if (!dapx_mr_copy(ctx, pd, &part, buffer, write))
			return false;
		buffer += part.length;
		length -= part.length;
		offset = 0;
	}
	return !length;
}
