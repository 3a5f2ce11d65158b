// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: memory that a process shares with the module
 */

#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "queue.h"

unsigned int dapx_max_ring_depth = 32768;
module_param_named(max_ring_depth, dapx_max_ring_depth, uint, 0444);
MODULE_PARM_DESC(max_ring_depth,
		 "Most entries of any ring, a power of two up to 65536 (default 32768)");

unsigned int dapx_initial_index;
module_param_named(initial_index, dapx_initial_index, uint, 0600);
MODULE_PARM_DESC(initial_index,
		 "First index of new rings, for tests of their wrap-around (default 0)");

static void dapx_ring_release(struct kref *kref)
{
	struct dapx_ring *ring = container_of(kref, struct dapx_ring, kref);
	unsigned int i;

	if (ring->mapped)
		vunmap(ring->va);
	/* Mappings have their own references to the pages. */
	for (i = 0; i < ring->num_pages; i++)
		__free_page(ring->pages[i]);
	kvfree(ring);
}

/* Pages in a row need no mapping, which takes longer to make and to end than all else of a ring. */
static bool dapx_ring_alloc_row(struct dapx_ring *ring, unsigned int num_pages)
{
	void *va;

	if (num_pages > 1U << PAGE_ALLOC_COSTLY_ORDER)
		return false;
	va = alloc_pages_exact((size_t)num_pages << PAGE_SHIFT,
			       GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN | __GFP_NORETRY);
	if (!va)
		return false;
	ring->va = va;
	for (; ring->num_pages < num_pages; va += PAGE_SIZE)
		ring->pages[ring->num_pages++] = virt_to_page(va);
	return true;
}

static bool dapx_ring_alloc_mapped(struct dapx_ring *ring, unsigned int num_pages)
{
	while (ring->num_pages < num_pages) {
		struct page *page = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);

		if (!page)
			return false;
		ring->pages[ring->num_pages++] = page;
	}
	ring->va = vmap(ring->pages, num_pages, VM_MAP, PAGE_KERNEL);
	ring->mapped = ring->va;
	return ring->mapped;
}

/* Allocates pages itself, since the memory of vmalloc_user() is not charged to a memory cgroup. */
struct dapx_ring *dapx_ring_create(struct dapx_context *ctx, size_t size)
{
	unsigned int num_pages = DIV_ROUND_UP(size, PAGE_SIZE);
	struct dapx_ring *ring;
	int ret = -ENOMEM;

	ring = kvzalloc(struct_size(ring, pages, num_pages), GFP_KERNEL_ACCOUNT);
	if (!ring)
		return ERR_PTR(-ENOMEM);
	kref_init(&ring->kref);
	ring->ctx = ctx;
	if (!dapx_ring_alloc_row(ring, num_pages) && !dapx_ring_alloc_mapped(ring, num_pages))
		goto err_put;
	ret = xa_alloc_cyclic(&ctx->rings, &ring->id, ring, xa_limit_31b, &ctx->next_ring,
			      GFP_KERNEL_ACCOUNT);
	if (ret < 0)
		goto err_put;
	return ring;

err_put:
	kref_put(&ring->kref, dapx_ring_release);
	return ERR_PTR(ret);
}

/* Existing mappings stay valid. A process that polls them sees no further changes. */
void dapx_ring_destroy(struct dapx_ring *ring)
{
	if (!ring)
		return;
	xa_erase(&ring->ctx->rings, ring->id);
	kref_put(&ring->kref, dapx_ring_release);
}

u64 dapx_ring_mmap_offset(const struct dapx_ring *ring)
{
	/*
	 * The offset only names the ring, which is always mapped from its beginning. As a page
	 * number it fits the 32 bits that mmap2() of 32-bit programs has for it.
	 */
	return (u64)ring->id << PAGE_SHIFT;
}

int dapx_ring_mmap(struct dapx_context *ctx, struct vm_area_struct *vma)
{
	unsigned long num_pages = vma_pages(vma);
	struct dapx_ring *ring;
	int ret = -EINVAL;

	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;

	xa_lock(&ctx->rings);
	ring = xa_load(&ctx->rings, vma->vm_pgoff);
	if (ring)
		kref_get(&ring->kref);
	xa_unlock(&ctx->rings);
	if (!ring)
		return -EINVAL;

	if (num_pages <= ring->num_pages) {
		/* A forked child must not write into its parent's rings. */
		vm_flags_set(vma, VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP);
		ret = vm_insert_pages(vma, vma->vm_start, ring->pages, &num_pages);
	}
	kref_put(&ring->kref, dapx_ring_release);
	return ret;
}

void dapx_ring_view_init(struct dapx_ring_view *view, struct dapx_ring *ring,
			 u32 control_off, u32 entries_off, u32 depth, u32 stride,
			 struct dapx_ring_layout *layout)
{
	*layout = (struct dapx_ring_layout) {
		.mmap_offset = dapx_ring_mmap_offset(ring),
		.mmap_size = ring->num_pages << PAGE_SHIFT,
		.head_off = control_off,
		.tail_off = control_off + DAPX_RING_LINE,
		.flags_off = control_off + 2 * DAPX_RING_LINE,
		.entries_off = entries_off,
		.stride = stride,
		.depth = depth,
	};
	view->head = ring->va + layout->head_off;
	view->tail = ring->va + layout->tail_off;
	view->flags = ring->va + layout->flags_off;
	view->entries = ring->va + entries_off;
	view->depth = depth;
	view->stride = stride;
}

/* The depth of a ring is a power of two, and limited. */
void __init dapx_rings_init(void)
{
	dapx_max_ring_depth = rounddown_pow_of_two(clamp(dapx_max_ring_depth, 2U, 65536U));
}
