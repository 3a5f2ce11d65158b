// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: pages of a process that the module itself reads and writes
 *
 * XRC places what arrives by copying, into pages that were pinned when the memory was
 * registered: it needs neither the process nor its page tables. A copy is of one
 * segment at the most, so that whoever ends the registration does not wait for long.
 */
#include <linux/highmem.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>

#include "xrc/xrc.h"

struct dapx_pinned {
	struct rcu_head rcu;		/* who finds it may be about to ask for it */
	refcount_t copies;		/* one more than there are */
	struct completion idle;
	struct ib_umem *umem;
	unsigned int first;		/* byte of the first page */
	u64 length;
	struct page *pages[];
};

/* Of the caller's address space. */
struct dapx_pinned *dapx_pinned_create(struct ib_device *ibdev, u64 addr, u64 length, bool write)
{
	struct dapx_pinned *pinned;
	struct sg_page_iter iter;
	struct ib_umem *umem;
	size_t i = 0;

	umem = ib_umem_get(ibdev, addr, length, write ? IB_ACCESS_LOCAL_WRITE : 0);
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

/* When this returns, no copy is going on. Nobody finds it any more. */
void dapx_pinned_destroy(struct dapx_pinned *pinned)
{
	if (!pinned)
		return;
	dapx_pinned_put(pinned);
	wait_for_completion(&pinned->idle);
	ib_umem_release(pinned->umem);
	kvfree_rcu(pinned, rcu);
}

/* Under RCU, from something that dapx_pinned_destroy() comes after. */
bool dapx_pinned_get(struct dapx_pinned *pinned)
{
	return refcount_inc_not_zero(&pinned->copies);
}

void dapx_pinned_put(struct dapx_pinned *pinned)
{
	if (refcount_dec_and_test(&pinned->copies))
		complete(&pinned->idle);
}

/* Any context. The range is the caller's to check. */
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

/* On 8 bytes, aligned as the process sees them. Atomic for everybody on this machine. */
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
