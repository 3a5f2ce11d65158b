// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: the wire of XRC: what both ends of a connection have in common
 *
 * A connection consists of two queue pairs of the module. Their protection domain has no memory
 * of any process, so a peer that issues writes or reads of its own reaches nothing. Segments
 * are copied into and out of buffers of the module.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "xrc/engine.h"
#include "xrc/xrc.h"

/* Number of buffers in a pool. */
#define DAPX_XRC_POOL_BUFFERS 32

/* Called with dev->xrc_lock held. */
static int dapx_xrc_start(struct dapx_device *dev)
{
	struct dapx_xrc_pool *pool;
	struct ib_pd *pd;

	pd = ib_alloc_pd(dev->ibdev, 0);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	pool = dapx_xrc_pool_create(dev->ibdev);
	if (!pool) {
		ib_dealloc_pd(pd);
		return -ENOMEM;
	}
	dev->xrc_pd = pd;
	dev->xrc_pool = pool;
	return 0;
}

/*
 * Makes sure that dev->xrc_pd and dev->xrc_pool, which a device has once, exist until
 * dapx_xrc_put().
 */
int dapx_xrc_get(struct dapx_device *dev)
{
	int ret = 0;

	mutex_lock(&dev->xrc_lock);
	if (!dev->xrc_users)
		ret = dapx_xrc_start(dev);
	if (!ret)
		dev->xrc_users++;
	mutex_unlock(&dev->xrc_lock);
	return ret;
}

void dapx_xrc_put(struct dapx_device *dev)
{
	mutex_lock(&dev->xrc_lock);
	if (!--dev->xrc_users) {
		dapx_xrc_pool_destroy(dev->ibdev, dev->xrc_pool);
		ib_dealloc_pd(dev->xrc_pd);
	}
	mutex_unlock(&dev->xrc_lock);
}

/*
 * The buffers that each connection owns, so that it makes progress even if others have borrowed
 * the whole pool. Two over iWARP, where no RNR retry holds back the second hello until a buffer
 * is posted.
 */
u32 dapx_xrc_min_credits(const struct dapx_device *dev)
{
	return dev->iwarp ? 2 : 1;
}

/*
 * The number of buffers for answers. Over iWARP there has to be one for every answer that a
 * peer can have in flight: one to each segment that it may have received since it last heard
 * from us, and as many credit updates. Elsewhere RNR retries hold back what exceeds the
 * buffers.
 */
u32 dapx_xrc_answers(const struct dapx_device *dev)
{
	return dev->iwarp ? 2 * DAPX_XRC_CREDITS + 2 : 4;
}

int dapx_xrc_buffer_init(struct ib_device *ibdev, struct dapx_xrc_buffer *buffer, u32 size)
{
	buffer->va = kmalloc(size, GFP_KERNEL_ACCOUNT);
	if (!buffer->va)
		return -ENOMEM;
	buffer->dma = ib_dma_map_single(ibdev, buffer->va, size, DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(ibdev, buffer->dma)) {
		kfree(buffer->va);
		return -ENOMEM;
	}
	buffer->size = size;
	return 0;
}

void dapx_xrc_buffer_exit(struct ib_device *ibdev, struct dapx_xrc_buffer *buffer)
{
	ib_dma_unmap_single(ibdev, buffer->dma, buffer->size, DMA_BIDIRECTIONAL);
	kfree(buffer->va);
}

static struct dapx_xrc_buffer *dapx_xrc_buffer_create(struct ib_device *ibdev)
{
	struct dapx_xrc_buffer *buffer;

	buffer = kzalloc(sizeof(*buffer), GFP_KERNEL_ACCOUNT);
	if (buffer && dapx_xrc_buffer_init(ibdev, buffer, DAPX_XRC_SEGMENT_SIZE)) {
		kfree(buffer);
		return NULL;
	}
	return buffer;
}

static void dapx_xrc_buffer_destroy(struct ib_device *ibdev, struct dapx_xrc_buffer *buffer)
{
	dapx_xrc_buffer_exit(ibdev, buffer);
	kfree(buffer);
}

void dapx_xrc_buffers_destroy(struct ib_device *ibdev, struct list_head *list)
{
	struct dapx_xrc_buffer *buffer, *next;

	list_for_each_entry_safe(buffer, next, list, entry) {
		list_del(&buffer->entry);
		dapx_xrc_buffer_destroy(ibdev, buffer);
	}
}

int dapx_xrc_buffers_create(struct ib_device *ibdev, struct list_head *list, unsigned int count)
{
	struct dapx_xrc_buffer *buffer;
	LIST_HEAD(made);

	while (count--) {
		buffer = dapx_xrc_buffer_create(ibdev);
		if (!buffer) {
			dapx_xrc_buffers_destroy(ibdev, &made);
			return -ENOMEM;
		}
		list_add(&buffer->entry, &made);
	}
	list_splice(&made, list);
	return 0;
}

struct dapx_xrc_pool *dapx_xrc_pool_create(struct ib_device *ibdev)
{
	struct dapx_xrc_pool *pool;

	pool = kzalloc(sizeof(*pool), GFP_KERNEL_ACCOUNT);
	if (!pool)
		return NULL;
	spin_lock_init(&pool->lock);
	INIT_LIST_HEAD(&pool->buffers);
	if (dapx_xrc_buffers_create(ibdev, &pool->buffers, DAPX_XRC_POOL_BUFFERS)) {
		kfree(pool);
		return NULL;
	}
	return pool;
}

/* All borrowed buffers have been given back. */
void dapx_xrc_pool_destroy(struct ib_device *ibdev, struct dapx_xrc_pool *pool)
{
	dapx_xrc_buffers_destroy(ibdev, &pool->buffers);
	kfree(pool);
}

/* Moves a buffer to a list of the borrower, if there is one. */
bool dapx_xrc_pool_take(struct dapx_xrc_pool *pool, struct list_head *to)
{
	struct dapx_xrc_buffer *buffer;

	spin_lock_bh(&pool->lock);
	buffer = list_first_entry_or_null(&pool->buffers, struct dapx_xrc_buffer, entry);
	if (buffer)
		list_move(&buffer->entry, to);
	spin_unlock_bh(&pool->lock);
	return buffer;
}

/* Takes a buffer back from the borrower's list. */
void dapx_xrc_pool_give(struct dapx_xrc_pool *pool, struct dapx_xrc_buffer *buffer)
{
	spin_lock_bh(&pool->lock);
	list_move(&buffer->entry, &pool->buffers);
	spin_unlock_bh(&pool->lock);
}

int dapx_xrc_post_recv(struct ib_qp *qp, struct dapx_xrc_buffer *buffer,
		       void (*done)(struct ib_cq *cq, struct ib_wc *wc))
{
	struct ib_sge sge = {
		.addr = buffer->dma,
		.length = DAPX_XRC_SEGMENT_SIZE,
		.lkey = qp->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = { .wr_cqe = &buffer->cqe, .sg_list = &sge, .num_sge = 1 };

	buffer->cqe.done = done;
	ib_dma_sync_single_for_device(qp->device, buffer->dma, DAPX_XRC_SEGMENT_SIZE,
				      DMA_BIDIRECTIONAL);
	return ib_post_recv(qp, &wr, NULL);
}

int dapx_xrc_post_send(struct ib_qp *qp, struct dapx_xrc_buffer *buffer, u32 length,
		       void (*done)(struct ib_cq *cq, struct ib_wc *wc))
{
	struct ib_sge sge = {
		.addr = buffer->dma,
		.length = length,
		.lkey = qp->pd->local_dma_lkey,
	};
	struct ib_send_wr wr = {
		.wr_cqe = &buffer->cqe,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
	};

	buffer->cqe.done = done;
	ib_dma_sync_single_for_device(qp->device, buffer->dma, length, DMA_BIDIRECTIONAL);
	return ib_post_send(qp, &wr, NULL);
}

/* Posts a write of no bytes. It needs no key, no buffer of the peer and no credit. */
int dapx_xrc_post_probe(struct ib_qp *qp, struct ib_cqe *cqe)
{
	struct ib_rdma_wr wr = {
		.wr.wr_cqe = cqe,
		.wr.opcode = IB_WR_RDMA_WRITE,
		.wr.send_flags = IB_SEND_SIGNALED,
	};

	return ib_post_send(qp, &wr.wr, NULL);
}

/* The device is done with the buffer. The CPU may read what the device wrote, and overwrite it. */
void dapx_xrc_buffer_read(struct ib_device *ibdev, struct dapx_xrc_buffer *buffer, u32 length)
{
	ib_dma_sync_single_for_cpu(ibdev, buffer->dma, length, DMA_BIDIRECTIONAL);
}

/*
 * The first PSN of answers, which both ends can compute. Programs give no such PSN to a receive
 * queue pair, as it does not send from their point of view.
 */
u32 dapx_xrc_answer_psn(u32 qp_num, u32 dest_qp_num)
{
	return (qp_num + dest_qp_num) & 0xffffff;
}

void dapx_xrc_cm_header_write(void *private_data)
{
	struct dapx_xrc_cm_header header = {
		.magic = cpu_to_le32(DAPX_XRC_MAGIC),
		.version = cpu_to_le32(DAPX_XRC_VERSION),
	};

	memcpy(private_data, &header, sizeof(header));
}

bool dapx_xrc_cm_header_is(const void *private_data, u32 length)
{
	struct dapx_xrc_cm_header header;

	if (!private_data || length < sizeof(header))
		return false;
	memcpy(&header, private_data, sizeof(header));
	return le32_to_cpu(header.magic) == DAPX_XRC_MAGIC &&
	       le32_to_cpu(header.version) == DAPX_XRC_VERSION;
}

