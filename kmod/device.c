// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: the RDMA devices of the machine, and which of them are supported
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <rdma/ib_cm.h>

#include "ep.h"

static LIST_HEAD(dapx_devices);
static DEFINE_MUTEX(dapx_devices_lock);

/*
 * Drivers whose code was reviewed for what dapx does: ib_reg_user_mr() without user data, and
 * kernel-owned queues that use such memory. Other drivers dereference the missing user data
 * (irdma, mthca), or take the address for a kernel address (hns).
 */
static const struct dapx_driver dapx_drivers[] = {
	{
		.id = RDMA_DRIVER_RXE,
		.silent_errors = true,
		.late_acknowledgements = true,
		.late_packets = true,
	},
	{
		.id = RDMA_DRIVER_SIW,
		.solicits_requests_only = true,
	},
};

static const struct dapx_driver *dapx_driver_find(const struct ib_device *ibdev)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(dapx_drivers); i++)
		if (dapx_drivers[i].id == ibdev->ops.driver_id)
			return &dapx_drivers[i];
	return NULL;
}

static void dapx_device_release(struct kref *kref)
{
	struct dapx_device *dev = container_of(kref, struct dapx_device, kref);

	dapx_keys_destroy(dev->keys);
	xa_destroy(&dev->xrc_srqs);
	xa_destroy(&dev->xrc_keys);
	kfree(dev);
}

static void dapx_device_event(struct ib_event_handler *handler, struct ib_event *event)
{
	struct dapx_device *dev = container_of(handler, struct dapx_device, event_handler);

	switch (event->event) {
	case IB_EVENT_PORT_ACTIVE:
		dapx_evds_port_event(dev, DAPX_ASYNC_PORT_ACTIVE, event->element.port_num);
		break;
	case IB_EVENT_PORT_ERR:
		dapx_evds_port_event(dev, DAPX_ASYNC_PORT_ERROR, event->element.port_num);
		break;
	default:
		break;
	}
}

static u64 dapx_device_caps(const struct dapx_device *dev)
{
	const struct ib_device_attr *attrs = &dev->ibdev->attrs;
	u64 caps = 0;

	if (attrs->atomic_cap != IB_ATOMIC_NONE)
		caps |= DAPX_DEVICE_ATOMICS;
	if (attrs->max_srq)
		caps |= DAPX_DEVICE_SRQ;
	if (dev->iwarp)
		caps |= DAPX_DEVICE_IWARP;
	else
		caps |= DAPX_DEVICE_IMM | DAPX_DEVICE_QP_EXCHANGE | DAPX_DEVICE_TIMEWAIT_EXIT;
	if (!dev->driver->solicits_requests_only)
		caps |= DAPX_DEVICE_SOLICITED;
	return caps;
}

static int dapx_device_add(struct ib_device *ibdev)
{
	struct ib_port_attr port;
	struct dapx_device *dev;
	int ret;

	ret = ib_query_port(ibdev, rdma_start_port(ibdev), &port);
	if (ret)
		return ret;
	dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	if (!dev)
		return -ENOMEM;
	kref_init(&dev->kref);
	INIT_LIST_HEAD(&dev->contexts);
	mutex_init(&dev->async_lock);
	INIT_LIST_HEAD(&dev->async_evds);
	mutex_init(&dev->xrc_lock);
	hash_init(dev->xrc_domains);
	xa_init_flags(&dev->xrc_srqs, XA_FLAGS_ALLOC1);
	xa_init(&dev->xrc_keys);
	dev->ibdev = ibdev;
	strscpy(dev->name, dev_name(&ibdev->dev), sizeof(dev->name));
	dev->driver = dapx_driver_find(ibdev);
	dev->iwarp = rdma_protocol_iwarp(ibdev, rdma_start_port(ibdev));
	dev->max_msg_size = port.max_msg_sz;
	if (dev->driver)
		dev->caps = dapx_device_caps(dev);
	INIT_IB_EVENT_HANDLER(&dev->event_handler, ibdev, dapx_device_event);
	ib_register_event_handler(&dev->event_handler);

	mutex_lock(&dapx_devices_lock);
	list_add_tail(&dev->entry, &dapx_devices);
	mutex_unlock(&dapx_devices_lock);
	return 0;
}

static struct dapx_device *dapx_device_find(struct ib_device *ibdev)
{
	struct dapx_device *dev;

	list_for_each_entry(dev, &dapx_devices, entry)
		if (dev->ibdev == ibdev)
			return dev;
	return NULL;
}

/* When this returns, dapx does not use @ibdev any more. */
static void dapx_device_remove(struct ib_device *ibdev, void *client_data)
{
	struct dapx_context *ctx;
	struct dapx_device *dev;

	mutex_lock(&dapx_devices_lock);
	dev = dapx_device_find(ibdev);
	if (!dev) {
		mutex_unlock(&dapx_devices_lock);
		return;
	}
	list_del(&dev->entry);
	dev->removed = true;
	/*
	 * End all contexts before waiting for any: one that waits for its user must not delay
	 * others.
	 */
	list_for_each_entry(ctx, &dev->contexts, device_entry)
		dapx_context_end(ctx, DAPX_GENL_CAUSE_REMOVED);
	while (!list_empty(&dev->contexts)) {
		ctx = list_first_entry(&dev->contexts, struct dapx_context, device_entry);
		dapx_context_get(ctx);
		mutex_unlock(&dapx_devices_lock);
		dapx_context_wait_detached(ctx);
		dapx_context_put(ctx);
		mutex_lock(&dapx_devices_lock);
	}
	mutex_unlock(&dapx_devices_lock);

	ib_unregister_event_handler(&dev->event_handler);
	kref_put(&dev->kref, dapx_device_release);
}

static void dapx_device_rename(struct ib_device *ibdev, void *client_data)
{
	struct dapx_device *dev;

	mutex_lock(&dapx_devices_lock);
	dev = dapx_device_find(ibdev);
	if (dev)
		strscpy_pad(dev->name, dev_name(&ibdev->dev), sizeof(dev->name));
	mutex_unlock(&dapx_devices_lock);
}

static struct ib_client dapx_ib_client = {
	.name = "dapx",
	.rename = dapx_device_rename,
	.add = dapx_device_add,
	.remove = dapx_device_remove,
};

int dapx_devices_init(void)
{
	return ib_register_client(&dapx_ib_client);
}

void dapx_devices_exit(void)
{
	ib_unregister_client(&dapx_ib_client);
}

int dapx_device_attach(struct dapx_context *ctx, const char *name)
{
	struct dapx_device *dev;
	int ret = -ENODEV;

	mutex_lock(&dapx_devices_lock);
	if (ctx->dev) {
		ret = -EBUSY;
		goto out;
	}
	list_for_each_entry(dev, &dapx_devices, entry) {
		if (strcmp(dev->name, name) ||
		    !rdma_dev_access_netns(dev->ibdev, ctx->net))
			continue;
		if (!dev->driver) {
			ret = -EOPNOTSUPP;
			break;
		}
		kref_get(&dev->kref);
		dapx_context_get(ctx);
		list_add_tail(&ctx->device_entry, &dev->contexts);
		ctx->dev = dev;
		/* Release: a command that sees @attached set uses ctx->dev. */
		smp_store_release(&ctx->attached, true);
		ret = 0;
		break;
	}
out:
	mutex_unlock(&dapx_devices_lock);
	return ret;
}

/* Detaches the context after teardown. ctx->dev stays readable until the last reference is put. */
void dapx_device_detach(struct dapx_context *ctx)
{
	bool listed;

	mutex_lock(&dapx_devices_lock);
	listed = !list_empty(&ctx->device_entry);
	list_del_init(&ctx->device_entry);
	mutex_unlock(&dapx_devices_lock);
	if (listed) {
		kref_put(&ctx->dev->kref, dapx_device_release);
		dapx_context_put(ctx);
	}
}

int dapx_cmd_attach(struct dapx_ucmd *ucmd)
{
	struct dapx_attach *cmd = ucmd->cmd;
	int ret;

	if (cmd->flags)
		return -EOPNOTSUPP;
	if (!cmd->device[0] || strnlen(cmd->device, sizeof(cmd->device)) == sizeof(cmd->device))
		return -EINVAL;
	ret = dapx_device_attach(ucmd->ctx, cmd->device);
	if (!ret)
		dapx_netlink_notify(ucmd->ctx, &(struct dapx_notification) {
				    .event = DAPX_GENL_EVENT_CONTEXT_NEW });
	return ret;
}

/* Returns the device of @ctx, or NULL if it is not attached. Valid until dapx_device_unhold(). */
struct ib_device *dapx_device_hold(const struct dapx_context *ctx)
{
	mutex_lock(&dapx_devices_lock);
	return list_empty(&ctx->device_entry) ? NULL : ctx->dev->ibdev;
}

void dapx_device_unhold(void)
{
	mutex_unlock(&dapx_devices_lock);
}

/* On PREEMPT_RT, who waits for a spinlock is not asleep: it continues with what it was doing. */
static bool dapx_task_is_asleep(const struct task_struct *task)
{
	unsigned int state = READ_ONCE(task->__state);

	return state != TASK_RUNNING && state != TASK_RTLOCK_WAIT;
}

/* Returns the busy workqueue worker with the lowest pid above @pid, with a reference, or NULL. */
static struct task_struct *dapx_busy_worker_after(pid_t pid)
{
	struct task_struct *task, *found = NULL;

	rcu_read_lock();
	for_each_process(task)
		if (READ_ONCE(task->flags) & PF_WQ_WORKER && task != current && task->pid > pid &&
		    (!found || task->pid < found->pid) && !dapx_task_is_asleep(task))
			found = task;
	if (found)
		get_task_struct(found);
	rcu_read_unlock();
	return found;
}

/*
 * Returns when each worker that is busy now has either been seen asleep or run for
 * DAPX_ACKNOWLEDGE_RUNTIME, or at @end. A worker may have to wait for a CPU for as long as the
 * scheduler likes, so the time that has passed does not tell how far it is.
 */
static void dapx_device_wait_workers(unsigned long end)
{
	struct task_struct *worker;
	pid_t pid = 0;
	u64 runtime;

	while (time_before(jiffies, end)) {
		worker = dapx_busy_worker_after(pid);
		if (!worker)
			break;
		pid = worker->pid;
		runtime = READ_ONCE(worker->se.sum_exec_runtime);
		while (!dapx_task_is_asleep(worker) && time_before(jiffies, end) &&
		       READ_ONCE(worker->se.sum_exec_runtime) - runtime < DAPX_ACKNOWLEDGE_RUNTIME)
			usleep_range(50, 100);
		put_task_struct(worker);
	}
}

/*
 * Called before a queue pair is moved to error. From then on rxe acknowledges nothing, not even
 * a message that it has completed. The peer would repeat that message in vain, and forever if
 * it uses 7 retries. What rxe completes, it acknowledges right afterwards.
 * @received_at: jiffies with bit 0 set, or 0.
 */
void dapx_device_let_acknowledge(const struct dapx_device *dev, unsigned long received_at)
{
	long left = received_at + DAPX_ACKNOWLEDGE_LATEST - jiffies;

	if (!dev->driver->late_acknowledgements || !received_at || left <= 0)
		return;
	if (DAPX_RXE_RECEIVES_IN_WORKER)
		dapx_device_wait_workers(jiffies + left);
	else
		schedule_timeout_uninterruptible(left);
}

/*
 * How a queue pair ends: the device drops what it has, in RESET, or flushes it in error. RESET is
 * the shorter way where dapx_device_silence_qp() has to take it in any case.
 */
bool dapx_device_drops(const struct dapx_device *dev)
{
	return dev->driver->late_packets && !DAPX_RXE_SILENT_IN_ERROR;
}

/*
 * Called before a queue pair is destroyed. rxe hands a packet to the queue pair's task, and then
 * reads the queue pair once more. By then the task may have put the packet's reference, which may
 * be the last one. So the queue pair takes no packets from here on, and after a grace period none
 * is left in that path. Returns what dapx_device_wait_silent() waits for.
 */
unsigned long dapx_device_silence_qp(const struct dapx_device *dev, struct ib_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };

	if (!dev->driver->late_packets)
		return 0;
	if (dapx_device_drops(dev))
		ib_modify_qp(qp, &attr, IB_QP_STATE);
	return get_state_synchronize_rcu();
}

/* Returns at once if a grace period has passed since then. */
void dapx_device_wait_silent(const struct dapx_device *dev, unsigned long silence)
{
	if (dev->driver->late_packets)
		cond_synchronize_rcu_expedited(silence);
}

/* The sends and receives of an endpoint share one CQ. */
u32 dapx_device_max_depth(const struct dapx_device *dev)
{
	const struct ib_device_attr *attrs = &dev->ibdev->attrs;

	return min(dapx_max_ring_depth,
		   rounddown_pow_of_two(min(attrs->max_qp_wr, attrs->max_cqe / 2)));
}

u32 dapx_device_max_srq_depth(const struct dapx_device *dev)
{
	u32 max_wr = dev->ibdev->attrs.max_srq_wr;

	return max_wr ? min(dapx_device_max_depth(dev), rounddown_pow_of_two(max_wr)) : 0;
}

int dapx_cmd_query_device(struct dapx_ucmd *ucmd)
{
	struct dapx_query_device *cmd = ucmd->cmd;
	struct dapx_device *dev = ucmd->ctx->dev;
	const struct ib_device_attr *attrs = &dev->ibdev->attrs;
	u32 max_depth = dapx_device_max_depth(dev);
	struct ib_port_attr port;
	int rc;

	if (cmd->flags)
		return -EOPNOTSUPP;
	if (memchr_inv(cmd->__reserved, 0, sizeof(cmd->__reserved)))
		return -EINVAL;
	rc = ib_query_port(dev->ibdev, rdma_start_port(dev->ibdev), &port);
	if (rc)
		return rc;

	mutex_lock(&dapx_devices_lock);
	strscpy_pad(cmd->out_device, dev->name, sizeof(cmd->out_device));
	mutex_unlock(&dapx_devices_lock);
	cmd->out_caps = dev->caps;
	cmd->out_node_guid = (__force u64)dev->ibdev->node_guid;
	cmd->out_max_mr_size = attrs->max_mr_size;
	cmd->out_max_ep = attrs->max_qp;
	cmd->out_max_send_depth = max_depth;
	cmd->out_max_recv_depth = max_depth;
	cmd->out_max_srq_depth = dapx_device_max_srq_depth(dev);
	cmd->out_max_send_sge = min_t(u32, DAPX_MAX_SGE, attrs->max_send_sge);
	cmd->out_max_recv_sge = min_t(u32, DAPX_MAX_SGE, attrs->max_recv_sge);
	cmd->out_max_inline = DAPX_MAX_INLINE;
	cmd->out_max_rd_atomic = min(attrs->max_qp_init_rd_atom, U8_MAX);
	cmd->out_max_dest_rd_atomic = min(attrs->max_qp_rd_atom, U8_MAX);
	cmd->out_max_msg_size = dev->max_msg_size;
	cmd->out_ports = dev->ibdev->phys_port_cnt;
	cmd->out_max_connect_data = IB_CM_REQ_PRIVATE_DATA_SIZE - DAPX_CM_IP_HEADER_SIZE;
	cmd->out_max_accept_data = IB_CM_REP_PRIVATE_DATA_SIZE;
	cmd->out_max_reject_data = IB_CM_REJ_PRIVATE_DATA_SIZE;
	cmd->out_active_mtu = ib_mtu_enum_to_int(port.active_mtu);
	return dapx_respond(ucmd);
}

