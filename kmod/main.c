// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: the device node and the dispatch of commands
 */
#include <linux/fs.h>
#include <linux/log2.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "ep.h"

int dapx_cmd_info(struct dapx_ucmd *ucmd)
{
	struct dapx_info *cmd = ucmd->cmd;

	if (cmd->flags)
		return -EOPNOTSUPP;

	cmd->out_features = DAPX_FEATURE_RC | DAPX_FEATURE_SRQ | DAPX_FEATURE_RMR |
			    DAPX_FEATURE_XRC | DAPX_FEATURE_QUIET;
	cmd->out_max_objects = dapx_max_objects;
	cmd->out_max_user_objects = dapx_max_user_objects;
	cmd->out_max_ring_depth = dapx_max_ring_depth;
	cmd->out_max_sge = DAPX_MAX_SGE;
	cmd->out_max_inline = DAPX_MAX_INLINE;
	cmd->out_max_backlog = dapx_max_backlog;
	return dapx_respond(ucmd);
}

int dapx_cmd_doorbell(struct dapx_ucmd *ucmd)
{
	const struct dapx_doorbell *cmd = ucmd->cmd;
	struct dapx_object *obj;
	int ret;

	if (cmd->flags & ~(DAPX_DOORBELL_SEND | DAPX_DOORBELL_RECV | DAPX_DOORBELL_EVENTS))
		return -EOPNOTSUPP;
	if (!cmd->flags || cmd->__reserved)
		return -EINVAL;
	obj = dapx_object_get(ucmd->ctx, cmd->handle, DAPX_OBJECT_ANY);
	if (IS_ERR(obj))
		return PTR_ERR(obj);
	if (!obj->class->doorbell)
		ret = -ENOENT;
	else if (cmd->flags & ~obj->class->doorbells)
		ret = -EINVAL;
	else
		ret = obj->class->doorbell(obj, cmd->flags);
	dapx_object_put(obj);
	return ret;
}

struct dapx_ioctl_op {
	u32 size;
	u32 min_size;
	bool detached;			/* works without a device */
	int (*fn)(struct dapx_ucmd *ucmd);
};

#define DAPX_OP_FLAGS(_cmd, _fn, _struct, _last, _detached)		\
	[DAPX_CMD_##_cmd - DAPX_CMD_INFO] = {				\
		.size = sizeof(struct _struct) +			\
			BUILD_BUG_ON_ZERO(sizeof(struct _struct) >	\
					  sizeof(union dapx_ucmd_buffer)), \
		.min_size = offsetofend(struct _struct, _last),		\
		.detached = _detached,					\
		.fn = _fn,						\
	}
#define DAPX_OP(_cmd, _fn, _struct, _last) DAPX_OP_FLAGS(_cmd, _fn, _struct, _last, false)

static const struct dapx_ioctl_op dapx_ioctl_ops[] = {
	DAPX_OP_FLAGS(INFO, dapx_cmd_info, dapx_info, out_max_backlog, true),
	DAPX_OP_FLAGS(ATTACH, dapx_cmd_attach, dapx_attach, device, true),
	DAPX_OP(QUERY_DEVICE, dapx_cmd_query_device, dapx_query_device, __reserved),
	DAPX_OP(QUERY_OBJECT, dapx_cmd_query_object, dapx_query_object, out_user_data),
	DAPX_OP(FREE, dapx_cmd_free, dapx_free, type),
	DAPX_OP(DOORBELL, dapx_cmd_doorbell, dapx_doorbell, __reserved),
	DAPX_OP(PD_CREATE, dapx_cmd_pd_create, dapx_pd_create, __reserved),
	DAPX_OP(MR_CREATE, dapx_cmd_mr_create, dapx_mr_create, out_rkey),
	DAPX_OP(EVD_CREATE, dapx_cmd_evd_create, dapx_evd_create, out_ring),
	DAPX_OP(EVD_WAIT, dapx_cmd_evd_wait, dapx_evd_wait, __reserved),
	DAPX_OP(EVD_RESIZE, dapx_cmd_evd_resize, dapx_evd_resize, out_ring),
	DAPX_OP(EVD_EVENTFD, dapx_cmd_evd_eventfd, dapx_evd_eventfd, fd),
	DAPX_OP(EVD_POST, dapx_cmd_evd_post, dapx_evd_post, data),
	DAPX_OP(SRQ_CREATE, dapx_cmd_srq_create, dapx_srq_create, out_ring),
	DAPX_OP(EP_CREATE, dapx_cmd_ep_create, dapx_ep_create, out_recv_ring),
	DAPX_OP(EP_QUERY, dapx_cmd_ep_query, dapx_ep_query, out_recv_ring),
	DAPX_OP(EP_MODIFY, dapx_cmd_ep_modify, dapx_ep_modify, qp),
	DAPX_OP(EP_CONNECT, dapx_cmd_ep_connect, dapx_ep_connect, private_data),
	DAPX_OP(EP_ACCEPT, dapx_cmd_ep_accept, dapx_ep_accept, private_data),
	DAPX_OP(EP_DISCONNECT, dapx_cmd_ep_disconnect, dapx_ep_disconnect, __reserved),
	DAPX_OP(EP_RESET, dapx_cmd_ep_reset, dapx_ep_reset, out_qp_num),
	DAPX_OP(CM_CREATE, dapx_cmd_cm_create, dapx_cm_create, user_data),
	DAPX_OP(CM_BIND, dapx_cmd_cm_bind, dapx_cm_bind, addr),
	DAPX_OP(CM_LISTEN, dapx_cmd_cm_listen, dapx_cm_listen, __reserved),
	DAPX_OP(CM_RESOLVE, dapx_cmd_cm_resolve, dapx_cm_resolve, src),
	DAPX_OP(CM_QUERY, dapx_cmd_cm_query, dapx_cm_query, out_remote),
	DAPX_OP(CM_REJECT, dapx_cmd_cm_reject, dapx_cm_reject, __reserved),
	DAPX_OP(CM_ACK, dapx_cmd_cm_ack, dapx_cm_ack, events),
	DAPX_OP(RMR_CREATE, dapx_cmd_rmr_create, dapx_rmr_create, __reserved2),
	DAPX_OP(RMR_BIND, dapx_cmd_rmr_bind, dapx_rmr_bind, __reserved),
	DAPX_OP(RMR_QUERY, dapx_cmd_rmr_query, dapx_rmr_query, out_rkey),
	DAPX_OP(XRCD_OPEN, dapx_cmd_xrcd_open, dapx_xrcd_open, user_data),
	DAPX_OP(SRQ_MODIFY, dapx_cmd_srq_modify, dapx_srq_modify, limit),
	DAPX_OP(SRQ_QUERY, dapx_cmd_srq_query, dapx_srq_query, __reserved),
	DAPX_OP(XRC_QP_CREATE, dapx_cmd_xrc_qp_create, dapx_xrc_qp_create, out_qp_num),
	DAPX_OP(XRC_QP_REGISTER, dapx_cmd_xrc_qp_register, dapx_xrc_qp_register, user_data),
	DAPX_OP(XRC_QP_UNREGISTER, dapx_cmd_xrc_qp_unregister, dapx_xrc_qp_unregister, qp_num),
	DAPX_OP(XRC_QP_MODIFY, dapx_cmd_xrc_qp_modify, dapx_xrc_qp_modify, qp),
	DAPX_OP(XRC_QP_ACCEPT, dapx_cmd_xrc_qp_accept, dapx_xrc_qp_accept, private_data),
	DAPX_OP(XRC_QP_QUERY, dapx_cmd_xrc_qp_query, dapx_xrc_qp_query, out_qp),
	DAPX_OP(MR_MODIFY, dapx_cmd_mr_modify, dapx_mr_modify, __reserved),
	DAPX_OP(CM_TAKE, dapx_cmd_cm_take, dapx_cm_take, user_data),
	DAPX_OP(CM_MODIFY, dapx_cmd_cm_modify, dapx_cm_modify, __reserved),
	DAPX_OP(XRC_QP_DISCONNECT, dapx_cmd_xrc_qp_disconnect, dapx_xrc_qp_disconnect, qp_num),
	DAPX_OP(SRQ_RESIZE, dapx_cmd_srq_resize, dapx_srq_resize, out_ring),
	DAPX_OP(EP_RESIZE, dapx_cmd_ep_resize, dapx_ep_resize, out_recv_ring),
	DAPX_OP(EP_ESTABLISH, dapx_cmd_ep_establish, dapx_ep_establish, __reserved),
};

/*
 * siw flushes the signals of a task that has to wait in it, even SIGKILL. If the process is
 * being killed, this thread would live on, and nothing could kill it any more. So a thread that
 * the kernel has killed gets its SIGKILL again, also if another thread's execve() was the
 * reason.
 */
static void dapx_stay_killed(void)
{
	const struct task_struct *exec = READ_ONCE(current->signal->group_exec_task);
	struct sighand_struct *sighand;

	if (likely(!(READ_ONCE(current->signal->flags) & SIGNAL_GROUP_EXIT) &&
		   (!exec || exec == current)))
		return;
	if (current->flags & PF_EXITING || fatal_signal_pending(current))
		return;
	sighand = rcu_dereference_protected(current->sighand, true);
	spin_lock_irq(&sighand->siglock);
	sigaddset(&current->pending.signal, SIGKILL);
	recalc_sigpending();
	spin_unlock_irq(&sighand->siglock);
}

static int dapx_command(struct dapx_ucmd *ucmd, const struct dapx_ioctl_op *op)
{
	int ret;

	ret = copy_struct_from_user(ucmd->cmd, op->size, ucmd->ubuffer, ucmd->user_size);
	if (ret)
		return ret;
	ret = dapx_context_enter(ucmd);
	if (ret)
		return ret;
	/* Acquire: if @attached is set, so is ctx->dev. */
	if (op->detached || smp_load_acquire(&ucmd->ctx->attached))
		ret = op->fn(ucmd);
	else
		ret = -EBADFD;
	dapx_context_leave(ucmd);
	return ret;
}

/*
 * Waits until @ubuffer is in memory. The command has left the context, so teardown does not
 * wait.
 */
static bool dapx_can_answer_now(struct dapx_ucmd *ucmd)
{
	ucmd->unanswered = false;
	return !fatal_signal_pending(current) &&
	       !fault_in_safe_writeable(ucmd->ubuffer, min(ucmd->user_size, ucmd->cmd_size));
}

static long dapx_fops_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct dapx_context *ctx = file->private_data;
	const struct dapx_ioctl_op *op;
	/* copy_struct_from_user() fills the part that a handler uses. */
	union dapx_ucmd_buffer buffer __dapx_uninitialized;
	struct dapx_ucmd ucmd = {
		.ctx = ctx,
		.ubuffer = (void __user *)arg,
		.cmd = &buffer,
	};
	unsigned int nr = _IOC_NR(cmd);
	int ret;

	if (current->mm != ctx->mm)
		return -EPERM;
	if (nr < DAPX_CMD_INFO || nr - DAPX_CMD_INFO >= ARRAY_SIZE(dapx_ioctl_ops) ||
	    cmd != _IO(DAPX_TYPE, nr))
		return -ENOTTY;
	op = &dapx_ioctl_ops[nr - DAPX_CMD_INFO];

	if (get_user(ucmd.user_size, (u32 __user *)ucmd.ubuffer))
		return -EFAULT;
	if (ucmd.user_size < op->min_size)
		return -EINVAL;
	/* No command will be this long, and copy_struct_from_user() would scan all of the tail. */
	if (ucmd.user_size > PAGE_SIZE)
		return -E2BIG;
	ucmd.cmd_size = op->size;
	do {
		ret = dapx_command(&ucmd, op);
	} while (ucmd.unanswered && dapx_can_answer_now(&ucmd));
	dapx_stay_killed();
	return ret;
}

static int dapx_fops_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct dapx_context *ctx = file->private_data;

	if (vma->vm_mm != ctx->mm)
		return -EPERM;
	return dapx_ring_mmap(ctx, vma);
}

static int dapx_fops_open(struct inode *inode, struct file *file)
{
	struct dapx_context *ctx;
	int ret;

	ret = dapx_context_open(&ctx);
	if (ret)
		return ret;
	file->private_data = ctx;
	return 0;
}

static int dapx_fops_release(struct inode *inode, struct file *file)
{
	dapx_context_close(file->private_data);
	return 0;
}

static const struct file_operations dapx_fops = {
	.owner = THIS_MODULE,
	.open = dapx_fops_open,
	.release = dapx_fops_release,
	.unlocked_ioctl = dapx_fops_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = dapx_fops_mmap,
	.llseek = noop_llseek,
};

static struct miscdevice dapx_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "dapx",
	.fops = &dapx_fops,
	.mode = 0660,
};

static int __init dapx_init(void)
{
	int ret;

	dapx_rings_init();
	BUILD_BUG_ON(sizeof(struct dapx_event) != 64);
	BUILD_BUG_ON(sizeof(struct dapx_send_wr) != 48);

	ret = dapx_users_init();
	if (ret)
		return ret;
	ret = dapx_devices_init();
	if (ret)
		goto err_users;
	ret = dapx_netlink_init();
	if (ret)
		goto err_devices;
	ret = misc_register(&dapx_misc);
	if (ret)
		goto err_netlink;
	return 0;

err_netlink:
	dapx_netlink_exit();
err_devices:
	dapx_devices_exit();
err_users:
	dapx_users_exit();
	return ret;
}

static void __exit dapx_exit(void)
{
	misc_deregister(&dapx_misc);
	/*
	 * Contexts may still be ending after their files are closed, and listeners are notified
	 * of it.
	 */
	dapx_devices_exit();
	dapx_users_wait();
	dapx_netlink_exit();
	dapx_users_exit();
	rcu_barrier();
}

module_init(dapx_init);
module_exit(dapx_exit);
MODULE_DESCRIPTION("Kernel-owned RDMA endpoints for user space");
MODULE_VERSION("0.1.0");
MODULE_LICENSE("GPL");
