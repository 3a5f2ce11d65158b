// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: memory regions: pages of the process, pinned and registered
 */
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <net/netlink.h>

#include "memory.h"
#include "xrc/xrc.h"

#define DAPX_ACCESS_ALL (DAPX_ACCESS_LOCAL_WRITE | DAPX_ACCESS_REMOTE_WRITE | \
			 DAPX_ACCESS_REMOTE_READ | DAPX_ACCESS_REMOTE_ATOMIC)
/* Far more than needed, unless a device hands out the same few keys in turn. */
#define DAPX_KEY_TRIES 16

int dapx_access_to_ib(u32 access)
{
	int flags = 0;

	if (access & DAPX_ACCESS_LOCAL_WRITE)
		flags |= IB_ACCESS_LOCAL_WRITE;
	if (access & DAPX_ACCESS_REMOTE_WRITE)
		flags |= IB_ACCESS_REMOTE_WRITE;
	if (access & DAPX_ACCESS_REMOTE_READ)
		flags |= IB_ACCESS_REMOTE_READ;
	if (access & DAPX_ACCESS_REMOTE_ATOMIC)
		flags |= IB_ACCESS_REMOTE_ATOMIC;
	return flags;
}

/*
 * Pinning fails with EFAULT whatever is wrong with a range. If all of it is mapped, rights are
 * missing.
 */
int dapx_mr_pin_error(u64 addr, u64 length)
{
	struct mm_struct *mm = current->mm;
	struct vm_area_struct *vma;
	u64 end = addr + length;
	int ret = -EACCES;

	if (mmap_read_lock_killable(mm))
		return -EINTR;
	while (addr < end) {
		vma = find_vma(mm, addr);
		if (!vma || vma->vm_start > addr || vma->vm_flags & (VM_IO | VM_PFNMAP)) {
			ret = -EFAULT;
			break;
		}
		addr = vma->vm_end;
	}
	mmap_read_unlock(mm);
	return ret;
}

/*
 * Pins and registers memory. A request with the key of a window that was freed long ago may
 * still be on its way from a peer, so such keys are not reused soon.
 */
struct ib_mr *dapx_mr_register(struct dapx_pd *pd, u64 addr, u64 length, u32 access, bool window)
{
	/* Acquire, as in dapx_rmr_prepare_keys(). */
	struct dapx_keys *keys = smp_load_acquire(&pd->obj.ctx->dev->keys);
	struct ib_mr *ibmr, *refused[DAPX_KEY_TRIES];
	unsigned int tries = 0;
	int flags;

	flags = dapx_access_to_ib(access);
	for (;;) {
		ibmr = ib_reg_user_mr(pd->ibpd, addr, length, addr, flags);
		/* Without rights for peers there is no remote key; rxe of 6.1 then has key 0. */
		if (IS_ERR(ibmr) || !keys || !(access & DAPX_ACCESS_REMOTE) ||
		    (window ? dapx_keys_take(keys, ibmr->rkey) : !dapx_keys_used(keys, ibmr->rkey)))
			break;
		/*
		 * The region is kept until there is one with another key, so that the device
		 * does not choose the same key again.
		 */
		refused[tries++] = ibmr;
		if (tries == DAPX_KEY_TRIES) {
			ibmr = ERR_PTR(-ENOMEM);
			break;
		}
	}
	while (tries)
		ib_dereg_mr(refused[--tries]);
	return ibmr;
}

int dapx_cmd_mr_create(struct dapx_ucmd *ucmd)
{
	struct dapx_mr_create *cmd = ucmd->cmd;
	struct dapx_context *ctx = ucmd->ctx;
	struct ib_device *ibdev = ctx->dev->ibdev;
	int access = dapx_access_to_ib(cmd->access);
	struct dapx_object *obj;
	struct dapx_mr *mr;
	struct dapx_pd *pd;
	u32 device_access;
	u64 end;
	int ret;

	if (cmd->flags & ~DAPX_MR_XRC)
		return -EOPNOTSUPP;
	if (cmd->access & ~DAPX_ACCESS_ALL)
		return -EOPNOTSUPP;
	pd = dapx_use_pd(ctx, cmd->pd);
	if (IS_ERR(pd))
		return PTR_ERR(pd);

	ret = -EOVERFLOW;
	if (check_add_overflow(cmd->addr, cmd->length, &end) || end > U64_MAX - PAGE_SIZE)
		goto err_pd;
	ret = -EINVAL;
	if (!cmd->length || cmd->length > ibdev->attrs.max_mr_size)
		goto err_pd;
	/* ib_reg_user_mr() leaves this to its callers. */
	ret = ib_check_mr_access(ibdev, access);
	if (ret)
		goto err_pd;
	/* The module itself checks rights for XRC. */
	device_access = cmd->access;
	if (ibdev->attrs.atomic_cap == IB_ATOMIC_NONE && cmd->flags & DAPX_MR_XRC)
		device_access &= ~DAPX_ACCESS_REMOTE_ATOMIC;
	ret = -EOPNOTSUPP;
	if (device_access & DAPX_ACCESS_REMOTE_ATOMIC && ibdev->attrs.atomic_cap == IB_ATOMIC_NONE)
		goto err_pd;

	obj = dapx_object_alloc(ctx, &dapx_mr_class);
	if (IS_ERR(obj)) {
		ret = PTR_ERR(obj);
		goto err_pd;
	}
	mr = to_dapx_mr(obj);
	mr->obj.user_data = cmd->user_data;
	mr->pd = pd;
	mr->addr = cmd->addr;
	mr->length = cmd->length;
	mr->access = cmd->access;

	mr->ibmr = dapx_mr_register(mr->pd, cmd->addr, cmd->length, device_access, false);
	if (IS_ERR(mr->ibmr)) {
		ret = PTR_ERR(mr->ibmr);
		if (ret == -EFAULT)
			ret = dapx_mr_pin_error(cmd->addr, cmd->length);
		goto err_abort;
	}
	mr->lkey = mr->ibmr->lkey;
	mr->rkey = cmd->access & DAPX_ACCESS_REMOTE ? mr->ibmr->rkey : 0;
	if (cmd->flags & DAPX_MR_XRC) {
		ret = dapx_mr_pin(mr);
		if (ret)
			goto err_mr;
	}
	ret = xa_insert(&ctx->mrs, obj->handle, mr, GFP_KERNEL_ACCOUNT);
	if (ret)
		goto err_pin;

	cmd->out_mr = obj->handle;
	cmd->out_rkey = mr->rkey;
	ret = dapx_respond(ucmd);
	if (ret)
		goto err_index;
	dapx_object_publish(obj);
	return 0;

err_index:
	xa_erase(&ctx->mrs, obj->handle);
err_pin:
	dapx_mr_unpin(mr);
err_mr:
	ib_dereg_mr(mr->ibmr);
err_abort:
	dapx_object_abort(obj);
err_pd:
	dapx_object_unuse(&pd->obj);
	return ret;
}

int dapx_cmd_mr_modify(struct dapx_ucmd *ucmd)
{
	const struct dapx_mr_modify *cmd = ucmd->cmd;
	struct dapx_mr *mr;
	int ret = 0;

	if (cmd->flags & ~DAPX_MR_XRC)
		return -EOPNOTSUPP;
	if (!cmd->flags || cmd->__reserved)
		return -EINVAL;
	mr = dapx_get_mr(ucmd->ctx, cmd->mr);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	mutex_lock(&mr->obj.mutex);
	if (mr->dead)
		ret = -ENOENT;
	else if (!rcu_access_pointer(mr->pinned))
		ret = dapx_mr_pin(mr);
	mutex_unlock(&mr->obj.mutex);
	dapx_object_put(&mr->obj);
	return ret;
}

static void dapx_mr_destroy(struct dapx_object *obj)
{
	struct dapx_mr *mr = to_dapx_mr(obj);
	int ret;

	/* A command that found the region while it had a handle adds nothing from here on. */
	mutex_lock(&obj->mutex);
	mr->dead = true;
	mutex_unlock(&obj->mutex);
	xa_erase(&obj->ctx->mrs, obj->handle);
	dapx_mr_unpin(mr);
	/* This removes the keys, and waits for a packet that is being copied. */
	ret = ib_dereg_mr(mr->ibmr);
	WARN_ON_ONCE(ret);
	dapx_pd_check_soon(mr->pd);
	dapx_object_unuse(&mr->pd->obj);
}

static int dapx_mr_fill(struct dapx_object *obj, struct sk_buff *skb)
{
	struct dapx_mr *mr = to_dapx_mr(obj);

	if (mr->dead)
		return 0;
	if (nla_put_u32(skb, DAPX_OBJECT_ATTR_PD, mr->pd->obj.handle) ||
	    nla_put_u32(skb, DAPX_OBJECT_ATTR_ACCESS, mr->access) ||
	    nla_put_u64_64bit(skb, DAPX_OBJECT_ATTR_LENGTH, mr->length, DAPX_OBJECT_ATTR_PAD))
		return -EMSGSIZE;
	return 0;
}

const struct dapx_object_class dapx_mr_class = {
	.type = DAPX_OBJECT_MR,
	.size = sizeof(struct dapx_mr),
	.rcu = true,
	.destroy = dapx_mr_destroy,
	.fill_locked = dapx_mr_fill,
};

/*
 * Finds the region that user space names by handle and address. Under RCU. Returns NULL if it
 * may not be used for this.
 */
struct dapx_mr *dapx_mr_find(struct dapx_context *ctx, struct dapx_pd *pd,
			     const struct dapx_sge *sge, bool write)
{
	struct dapx_mr *mr = xa_load(&ctx->mrs, sge->mr);

	if (!mr || mr->pd != pd || (write && !(mr->access & DAPX_ACCESS_LOCAL_WRITE)))
		return NULL;
	/* The order of these checks avoids overflow. */
	if (sge->addr < mr->addr || sge->addr - mr->addr > mr->length ||
	    sge->length > mr->length - (sge->addr - mr->addr))
		return NULL;
	return mr;
}

/*
 * Translates a segment into the device's form, with a key: the only place where keys of local
 * memory come from. It takes no reference and runs in softirq: MRs are freed after a grace
 * period.
 */
int dapx_mr_to_sge(struct dapx_context *ctx, struct dapx_pd *pd,
		   const struct dapx_sge *sge, bool write, struct ib_sge *out)
{
	struct dapx_mr *mr;
	int ret = -EACCES;

	rcu_read_lock();
	mr = dapx_mr_find(ctx, pd, sge, write);
	if (mr) {
		out->addr = sge->addr;
		out->length = sge->length;
		out->lkey = mr->lkey;
		ret = 0;
	}
	rcu_read_unlock();
	return ret;
}

