// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: pages of a process that the module reads and writes
 *
 * XRC copies what arrives to pages that were pinned when the memory was registered. For that it
 * needs neither the process nor its page tables. A copy is one segment at most, so that
 * unregistering does not wait for long.
 */
#include <linux/highmem.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>

#include "xrc/xrc.h"

struct dapx_pinned {
	struct rcu_head rcu;		/* a reader may be about to call dapx_pinned_get() */
	refcount_t copies;		/* 1 + copies in progress */
	struct completion idle;
	struct ib_umem *umem;
	unsigned int first;		/* byte of the first page */
	u64 length;
	struct page *pages[];
};

/* Pins memory of the calling process. */
struct dapx_pinned *dapx_pinned_create(struct ib_device *ibdev, u64 addr, u64 length, bool write)
{
	struct dapx_pinned *pinned;
	struct sg_page_iter iter;
	struct ib_umem *umem;
	size_t i = 0;

	umem = ib_umem_get_va(ibdev, addr, length, write ? IB_ACCESS_LOCAL_WRITE : 0);
	if (IS_ERR(umem))
		return ERR_CAST(umem);
	pinned = kvzalloc(struct_size(pinned, pages, ib_umem_num_pages(umem)),
			  GFP_KERNEL_ACCOUNT);
	if (!pinned) {
		ib_umem_release(umem);
		return ERR_PTR(-ENOMEM);
	}
	refcount_set(&pinned->copies, 1);
	init_completion(&pinned->idle);
	pinned->umem = umem;
	pinned->first = offset_in_page(addr);
	pinned->length = length;
	for_each_sgtable_page(&umem->sgt_append.sgt, &iter, 0)
		pinned->pages[i++] = sg_page_iter_page(&iter);
	return pinned;
}

/* The caller has made sure that no look-up finds @pinned. On return no copy is in progress. */
void dapx_pinned_destroy(struct dapx_pinned *pinned)
{
	if (!pinned)
		return;
	dapx_pinned_put(pinned);
	wait_for_completion(&pinned->idle);
	ib_umem_release(pinned->umem);
	kvfree_rcu(pinned, rcu);
}

/* Called in the RCU read-side section in which @pinned was found. False: it is being destroyed. */
bool dapx_pinned_get(struct dapx_pinned *pinned)
{
	return refcount_inc_not_zero(&pinned->copies);
}

void dapx_pinned_put(struct dapx_pinned *pinned)
{
	if (refcount_dec_and_test(&pinned->copies))
		complete(&pinned->idle);
}

/* Called in any context. The caller has checked the range. */
void dapx_pinned_copy(struct dapx_pinned *pinned, u64 offset, void *buffer, u32 length,
		      bool to_process)
{
	u64 at = pinned->first + offset;

	while (length) {
		struct page *page = pinned->pages[at >> PAGE_SHIFT];
		u32 in_page = offset_in_page(at), part = min_t(u32, length, PAGE_SIZE - in_page);

		if (to_process)
			memcpy_to_page(page, in_page, buffer, part);
		else
			memcpy_from_page(buffer, page, in_page, part);
		buffer += part;
		at += part;
		length -= part;
	}
}

/* The 8 bytes are aligned in the process' memory. Atomic with respect to all CPUs. */
u64 dapx_pinned_atomic(struct dapx_pinned *pinned, u64 offset, bool add, u64 compare_add,
		       u64 swap)
{
	u64 at = pinned->first + offset, old;
	void *va = kmap_local_page(pinned->pages[at >> PAGE_SHIFT]);
	atomic64_t *value = va + offset_in_page(at);

	if (add)
		old = atomic64_fetch_add(compare_add, value);
	else
		old = atomic64_cmpxchg(value, compare_add, swap);
	kunmap_local(va);
	return old;
}
