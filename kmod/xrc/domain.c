// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: XRC domains, shared by processes that have the same file open
 *
 * A domain belongs to a device and an inode or, without a file, to a device and the process
 * that created it. It holds the file's path, so that the file system stays mounted and the
 * inode is not reused. It does not hold the open file, since others wait for the release of
 * that (locks, ETXTBSY).
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/hash.h>
#include <linux/mount.h>
#include <linux/path.h>
#include <linux/slab.h>
#include <net/netlink.h>

#include "xrc/xrc.h"

/* The domains of all devices, for netlink. */
static DEFINE_XARRAY_ALLOC1(dapx_xrc_domains);
static u32 dapx_xrc_next_domain;	/* dapx_xrc_domains' xa_lock */
static atomic64_t dapx_xrc_generation_count;

u64 dapx_xrc_generation_inc(void)
{
	return atomic64_inc_return(&dapx_xrc_generation_count);
}

u64 dapx_xrc_generation(void)
{
	return atomic64_read(&dapx_xrc_generation_count);
}

static void dapx_xrc_domain_release(struct kref *kref)
{
	kfree(container_of(kref, struct dapx_xrc_domain, kref));
}

void dapx_xrc_domain_put(struct dapx_xrc_domain *domain)
{
	kref_put(&domain->kref, dapx_xrc_domain_release);
}

struct dapx_xrc_domain *dapx_xrc_domain_next(u32 id)
{
	struct dapx_xrc_domain *domain;
	unsigned long index = id;

	xa_lock(&dapx_xrc_domains);
	domain = xa_find(&dapx_xrc_domains, &index, U32_MAX, XA_PRESENT);
	if (domain)
		kref_get(&domain->kref);
	xa_unlock(&dapx_xrc_domains);
	return domain;
}

/* Frees what dapx_xrc_domain_fill() allocated. The domain has no queue pairs any more. */
static void dapx_xrc_domain_drain(struct dapx_xrc_domain *domain)
{
	if (!domain->pool)
		return;
	dapx_xrc_pool_destroy(domain->dev->ibdev, domain->pool);
	domain->pool = NULL;
	dapx_xrc_put(domain->dev);
}

/* Allocates what queue pairs need, for the first of them. Called with domain->lock held. */
int dapx_xrc_domain_fill(struct dapx_xrc_domain *domain)
{
	int ret;

	if (domain->pool)
		return 0;
	ret = dapx_xrc_get(domain->dev);
	if (ret)
		return ret;
	domain->pool = dapx_xrc_pool_create(domain->dev->ibdev);
	if (!domain->pool) {
		dapx_xrc_put(domain->dev);
		return -ENOMEM;
	}
	return 0;
}

static struct dapx_xrc_domain *dapx_xrc_domain_find(struct dapx_device *dev,
						    const struct inode *inode)
{
	struct dapx_xrc_domain *domain;

	hash_for_each_possible(dev->xrc_domains, domain, node, (unsigned long)inode)
		if (d_inode(domain->path.dentry) == inode)
			return domain;
	return NULL;
}

/* @path is NULL for a domain without a file. */
static struct dapx_xrc_domain *dapx_xrc_domain_create(struct dapx_device *dev,
						      const struct path *path)
{
	struct dapx_xrc_domain *domain;
	int ret;

	domain = kzalloc(sizeof(*domain), GFP_KERNEL_ACCOUNT);
	if (!domain)
		return ERR_PTR(-ENOMEM);
	kref_init(&domain->kref);
	domain->dev = dev;
	domain->opens = 1;
	mutex_init(&domain->lock);
	INIT_LIST_HEAD(&domain->xrcds);
	INIT_LIST_HEAD(&domain->srqs);
	INIT_LIST_HEAD(&domain->qps);
	ret = xa_alloc_cyclic(&dapx_xrc_domains, &domain->id, domain, xa_limit_31b,
			      &dapx_xrc_next_domain, GFP_KERNEL_ACCOUNT);
	if (ret < 0) {
		kfree(domain);
		return ERR_PTR(ret == -EBUSY ? -EDQUOT : ret);
	}
	scnprintf(domain->owner, sizeof(domain->owner), "dapx:xrcd:%u", domain->id);
	if (!path)
		return domain;
	domain->path = *path;
	path_get(&domain->path);
	hash_add(dev->xrc_domains, &domain->node, (unsigned long)d_inode(path->dentry));
	return domain;
}

/* Looks up the domain of a file, or creates it, in one step under dev->xrc_lock. */
static struct dapx_xrc_domain *dapx_xrc_domain_open(struct dapx_device *dev,
						    const struct path *path, u32 flags)
{
	struct dapx_xrc_domain *domain;

	mutex_lock(&dev->xrc_lock);
	domain = dapx_xrc_domain_find(dev, d_inode(path->dentry));
	if (domain && flags & DAPX_XRCD_EXCL)
		domain = ERR_PTR(-EEXIST);
	else if (domain)
		domain->opens++;
	else if (flags & DAPX_XRCD_CREATE)
		domain = dapx_xrc_domain_create(dev, path);
	else
		domain = ERR_PTR(-ENOENT);
	mutex_unlock(&dev->xrc_lock);
	return domain;
}

/*
 * Lets go of a domain that is closed; it may be NULL. This takes as long as the file system
 * does, so it is done where nobody else waits.
 */
void dapx_xrc_domain_let_go(struct dapx_xrc_domain *domain)
{
	if (!domain)
		return;
	path_put(&domain->path);
	dapx_xrc_domain_put(domain);
}

/*
 * @ctx is the context that closes the domain; it is named in the notification. Returns the
 * domain if it was open nowhere else, for the caller to let go, or else NULL.
 */
static struct dapx_xrc_domain *dapx_xrc_domain_close(struct dapx_xrc_domain *domain,
						     struct dapx_context *ctx)
{
	struct dapx_device *dev = domain->dev;
	bool last;

	mutex_lock(&dev->xrc_lock);
	last = !--domain->opens;
	if (last)
		hash_del(&domain->node);
	mutex_unlock(&dev->xrc_lock);
	if (!last)
		return NULL;
	xa_erase(&dapx_xrc_domains, domain->id);
	dapx_xrc_domain_drain(domain);
	dapx_netlink_notify(ctx, &(struct dapx_notification) {
			    .event = DAPX_GENL_EVENT_DOMAIN_GONE,
			    .number = domain->id });
	return domain;
}

/* Until dapx_xrcd_leave(), everyone who takes domain->lock finds the domain open. */
static void dapx_xrcd_join(struct dapx_xrcd *xrcd)
{
	mutex_lock(&xrcd->domain->lock);
	xrcd->serial = dapx_xrc_generation_inc();
	if (!xrcd->domain->announced)
		dapx_netlink_notify(xrcd->obj.ctx, &(struct dapx_notification) {
				    .event = DAPX_GENL_EVENT_DOMAIN_NEW,
				    .number = xrcd->domain->id });
	xrcd->domain->announced = true;
	list_add_tail(&xrcd->entry, &xrcd->domain->xrcds);
	mutex_unlock(&xrcd->domain->lock);
}

static struct dapx_xrc_domain *dapx_xrcd_leave(struct dapx_xrcd *xrcd)
{
	mutex_lock(&xrcd->domain->lock);
	dapx_xrc_generation_inc();
	list_del(&xrcd->entry);
	mutex_unlock(&xrcd->domain->lock);
	return dapx_xrc_domain_close(xrcd->domain, xrcd->obj.ctx);
}

/* The owner of a file can always get write access with chmod(2), so mode 0440 does not matter. */
static bool dapx_xrcd_may_write(struct file *file)
{
	return !file_permission(file, MAY_WRITE) ||
	       inode_owner_or_capable(file_mnt_idmap(file), file_inode(file));
}

/* Refuses files that share one inode, such as anonymous inodes, and files that may only be read. */
static int dapx_xrcd_check_file(struct file *file)
{
	if (!S_ISREG(file_inode(file)->i_mode))
		return -EINVAL;
	/* One errno for all reasons: EPERM and EIO are taken, they describe the context. */
	if (__mnt_is_readonly(file->f_path.mnt) || !dapx_xrcd_may_write(file))
		return -EACCES;
	return 0;
}

/* @path NULL: of no file. What is left in @closed is to be let go. */
static int dapx_xrcd_open(struct dapx_ucmd *ucmd, const struct path *path,
			  struct dapx_xrc_domain **closed)
{
	struct dapx_xrcd_open *cmd = ucmd->cmd;
	struct dapx_context *ctx = ucmd->ctx;
	struct dapx_object *obj;
	struct dapx_xrcd *xrcd;
	int ret;

	obj = dapx_object_alloc(ctx, &dapx_xrcd_class);
	if (IS_ERR(obj))
		return PTR_ERR(obj);
	xrcd = to_dapx_xrcd(obj);
	xrcd->obj.user_data = cmd->user_data;
	xrcd->domain = path ? dapx_xrc_domain_open(ctx->dev, path, cmd->flags) :
			      dapx_xrc_domain_create(ctx->dev, NULL);
	if (IS_ERR(xrcd->domain)) {
		ret = PTR_ERR(xrcd->domain);
		goto err_abort;
	}
	xrcd->domain_id = xrcd->domain->id;
	dapx_xrcd_join(xrcd);
	cmd->out_xrcd = obj->handle;
	ret = dapx_respond(ucmd);
	if (ret)
		goto err_leave;
	dapx_object_publish(obj);
	return 0;

err_leave:
	*closed = dapx_xrcd_leave(xrcd);
err_abort:
	dapx_object_abort(obj);
	return ret;
}

int dapx_cmd_xrcd_open(struct dapx_ucmd *ucmd)
{
	const struct dapx_xrcd_open *cmd = ucmd->cmd;
	struct dapx_xrc_domain *closed = NULL;
	struct fd f;
	int ret;

	if (cmd->flags & ~(DAPX_XRCD_CREATE | DAPX_XRCD_EXCL))
		return -EOPNOTSUPP;
	if (cmd->flags == DAPX_XRCD_EXCL || (cmd->fd == -1 && cmd->flags != DAPX_XRCD_CREATE))
		return -EINVAL;
	if (cmd->fd == -1)
		return dapx_xrcd_open(ucmd, NULL, &closed);

	/* Outside of the context: a file system may be a process, which answers when it likes. */
	dapx_context_leave(ucmd);
	f = fdget(cmd->fd);
	if (!fd_file(f))
		return -EBADF;
	ret = dapx_xrcd_check_file(fd_file(f));
	if (!ret)
		ret = dapx_context_enter(ucmd);
	if (!ret)
		ret = dapx_xrcd_open(ucmd, &fd_file(f)->f_path, &closed);
	dapx_context_leave(ucmd);
	dapx_xrc_domain_let_go(closed);
	fdput(f);
	return ret;
}

static int dapx_xrcd_free(struct dapx_object *obj, struct dapx_ucmd *ucmd)
{
	struct dapx_xrc_domain *closed;
	int ret;

	ret = dapx_object_unpublish(obj, false);
	if (ret)
		return ret;
	closed = dapx_xrcd_leave(to_dapx_xrcd(obj));
	dapx_object_put(obj);
	dapx_context_leave(ucmd);
	dapx_xrc_domain_let_go(closed);
	return 0;
}

/* The context ends, and lets go when it has left its device. */
static void dapx_xrcd_destroy(struct dapx_object *obj)
{
	struct dapx_xrc_domain *closed = dapx_xrcd_leave(to_dapx_xrcd(obj));

	if (!closed)
		return;
	xa_lock(&obj->ctx->objects);
	list_add(&closed->closed, &obj->ctx->closed_domains);
	xa_unlock(&obj->ctx->objects);
}

static int dapx_xrcd_fill(struct dapx_object *obj, struct sk_buff *skb)
{
	return nla_put_u32(skb, DAPX_OBJECT_ATTR_DOMAIN,
			   to_dapx_xrcd(obj)->domain_id);
}

const struct dapx_object_class dapx_xrcd_class = {
	.type = DAPX_OBJECT_XRCD,
	.size = sizeof(struct dapx_xrcd),
	.free = dapx_xrcd_free,
	.destroy = dapx_xrcd_destroy,
	.fill = dapx_xrcd_fill,
};
