// SPDX-License-Identifier: GPL-2.0
/*
 * dapx: protection domains
 */
#include "dapx_private.h"

int dapx_cmd_pd_create(struct dapx_ucmd *ucmd)
{
	struct dapx_pd_create *cmd = ucmd->cmd;
	struct dapx_object *obj;
	struct dapx_pd *pd;
	int ret;

	if (cmd->flags)
		return -EOPNOTSUPP;
	if (cmd->__reserved)
		return -EINVAL;
	obj = dapx_object_alloc(ucmd->ctx, &dapx_pd_class);
	if (IS_ERR(obj))
		return PTR_ERR(obj);
	pd = container_of(obj, struct dapx_pd, obj);
	pd->obj.user_data = cmd->user_data;
	pd->ibpd = ib_alloc_pd(ucmd->ctx->dev->ibdev, 0);
	if (IS_ERR(pd->ibpd)) {
		ret = PTR_ERR(pd->ibpd);
		goto err_abort;
	}
	cmd->out_pd = obj->handle;
	ret = dapx_respond(ucmd);
	if (ret)
		goto err_pd;
	dapx_object_publish(obj);
	return 0;

err_pd:
	ib_dealloc_pd(pd->ibpd);
err_abort:
	dapx_object_abort(obj);
	return ret;
}

static void dapx_pd_destroy(struct dapx_object *obj)
{
	ib_dealloc_pd(container_of(obj, struct dapx_pd, obj)->ibpd);
}

const struct dapx_object_class dapx_pd_class = {
	.type = DAPX_OBJECT_PD,
	.size = sizeof(struct dapx_pd),
	.destroy = dapx_pd_destroy,
};
