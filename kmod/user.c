// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: users: the limits and the workqueues that all contexts of one user id share
 *
 * A work that the module runs for a user takes as long as the user's peers and devices make it
 * take. So each user has its own workqueues, in which nobody else's work waits.
 */
#include <linux/moduleparam.h>
#include <linux/slab.h>

#include "dapx_private.h"

unsigned int dapx_max_user_objects = 262144;
module_param_named(max_user_objects, dapx_max_user_objects, uint, 0644);
MODULE_PARM_DESC(max_user_objects,
		 "Objects that all contexts of one user may hold (default 262144)");

/* Each occupies a kernel thread until its peer answers. */
#define DAPX_MAX_USER_CONNECTING 256

/* For the module's own work, which waits for no user. */
struct workqueue_struct *dapx_wq;

static DEFINE_XARRAY(dapx_users);

static void dapx_user_free(struct dapx_user *user)
{
	if (user->works)
		destroy_workqueue(user->works);
	if (user->ends)
		destroy_workqueue(user->ends);
	kfree(user);
}

/*
 * Runs in dapx_wq, since the last reference may be put by a work of the queues that this
 * destroys.
 */
static void dapx_user_release(struct work_struct *work)
{
	dapx_user_free(container_of(work, struct dapx_user, release));
}

static struct dapx_user *dapx_user_create(uid_t uid)
{
	struct dapx_user *user;

	user = kzalloc(sizeof(*user), GFP_KERNEL_ACCOUNT);
	if (!user)
		return NULL;
	refcount_set(&user->refs, 1);
	user->uid = uid;
	INIT_WORK(&user->release, dapx_user_release);
	user->works = alloc_workqueue("dapx-%u", WQ_UNBOUND | WQ_MEM_RECLAIM, 0, uid);
	user->ends = alloc_workqueue("dapx-end-%u", WQ_UNBOUND | WQ_MEM_RECLAIM, 0, uid);
	if (user->works && user->ends)
		return user;
	dapx_user_free(user);
	return NULL;
}

static struct dapx_user *dapx_user_find(uid_t uid)
{
	struct dapx_user *user;

	xa_lock(&dapx_users);
	user = xa_load(&dapx_users, uid);
	if (user)
		refcount_inc(&user->refs);
	xa_unlock(&dapx_users);
	return user;
}

struct dapx_user *dapx_user_get(uid_t uid)
{
	struct dapx_user *user, *new;

	user = dapx_user_find(uid);
	if (user)
		return user;
	new = dapx_user_create(uid);
	if (!new)
		return ERR_PTR(-ENOMEM);

	xa_lock(&dapx_users);
	user = __xa_cmpxchg(&dapx_users, uid, NULL, new, GFP_KERNEL_ACCOUNT);
	if (user && !xa_is_err(user))
		refcount_inc(&user->refs);
	xa_unlock(&dapx_users);
	if (!user)
		return new;
	dapx_user_free(new);
	return xa_is_err(user) ? ERR_PTR(xa_err(user)) : user;
}

/* The caller knows that the user has a reference already. */
void dapx_user_hold(struct dapx_user *user)
{
	refcount_inc(&user->refs);
}

void dapx_user_put(struct dapx_user *user)
{
	uid_t uid = user->uid;
	bool last;

	xa_lock(&dapx_users);
	last = refcount_dec_and_test(&user->refs);
	if (last) {
		/*
		 * Before the user leaves dapx_users: once that is empty, dapx_wq may be
		 * destroyed.
		 */
		queue_work(dapx_wq, &user->release);
		__xa_erase(&dapx_users, uid);
	}
	xa_unlock(&dapx_users);
	if (last)
		wake_up_var(&dapx_users);
}

int dapx_users_init(void)
{
	dapx_wq = alloc_workqueue("dapx", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	return dapx_wq ? 0 : -ENOMEM;
}

/* No file is open and no device is left, so the last contexts will end soon. */
void dapx_users_wait(void)
{
	wait_var_event(&dapx_users, xa_empty(&dapx_users));
}

void dapx_users_exit(void)
{
	destroy_workqueue(dapx_wq);
}

int dapx_user_charge(struct dapx_user *user)
{
	if (atomic_inc_return(&user->objects) <= READ_ONCE(dapx_max_user_objects))
		return 0;
	atomic_dec(&user->objects);
	return -EDQUOT;
}

void dapx_user_uncharge(struct dapx_user *user)
{
	atomic_dec(&user->objects);
}

bool dapx_user_begin_connect(struct dapx_user *user)
{
	if (atomic_inc_return(&user->connecting) <= DAPX_MAX_USER_CONNECTING)
		return true;
	atomic_dec(&user->connecting);
	return false;
}

void dapx_user_end_connect(struct dapx_user *user)
{
	atomic_dec(&user->connecting);
}
