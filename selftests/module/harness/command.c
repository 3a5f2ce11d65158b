// SPDX-License-Identifier: GPL-2.0
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "command.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define POISON 0xa5

struct span {
	__u16 offset;
	__u16 size;
};

#define OUT(name, member)						\
	{ offsetof(struct dapx_##name, member),				\
	  sizeof_member(struct dapx_##name, member) }

static const struct span outs_info[] = {
	OUT(info, out_features),
	OUT(info, out_max_objects),
	OUT(info, out_max_user_objects),
	OUT(info, out_max_ring_depth),
	OUT(info, out_max_sge),
	OUT(info, out_max_inline),
	OUT(info, out_max_backlog),
	{}
};

static const struct span outs_attach[] = { {} };

static const struct span outs_query_device[] = {
	OUT(query_device, out_device),
	OUT(query_device, out_caps),
	OUT(query_device, out_node_guid),
	OUT(query_device, out_max_mr_size),
	OUT(query_device, out_max_ep),
	OUT(query_device, out_max_send_depth),
	OUT(query_device, out_max_recv_depth),
	OUT(query_device, out_max_srq_depth),
	OUT(query_device, out_max_send_sge),
	OUT(query_device, out_max_recv_sge),
	OUT(query_device, out_max_inline),
	OUT(query_device, out_max_rd_atomic),
	OUT(query_device, out_max_dest_rd_atomic),
	OUT(query_device, out_max_msg_size),
	OUT(query_device, out_ports),
	OUT(query_device, out_max_connect_data),
	OUT(query_device, out_max_accept_data),
	OUT(query_device, out_max_reject_data),
	OUT(query_device, out_active_mtu),
	{}
};

static const struct span outs_query_object[] = {
	OUT(query_object, out_handle),
	OUT(query_object, out_type),
	OUT(query_object, out_users),
	OUT(query_object, out_state),
	OUT(query_object, out_user_data),
	{}
};

static const struct span outs_free[] = { {} };
static const struct span outs_doorbell[] = { {} };
static const struct span outs_pd_create[] = { OUT(pd_create, out_pd), {} };

static const struct span outs_mr_create[] = {
	OUT(mr_create, out_mr),
	OUT(mr_create, out_rkey),
	{}
};

static const struct span outs_mr_modify[] = { {} };

static const struct span outs_rmr_create[] = {
	OUT(rmr_create, out_rmr),
	{}
};

static const struct span outs_rmr_bind[] = {
	OUT(rmr_bind, out_rkey),
	{}
};

static const struct span outs_rmr_query[] = {
	OUT(rmr_query, out_pd),
	OUT(rmr_query, out_mr),
	OUT(rmr_query, out_addr),
	OUT(rmr_query, out_length),
	OUT(rmr_query, out_access),
	OUT(rmr_query, out_rkey),
	{}
};

static const struct span outs_xrcd_open[] = {
	OUT(xrcd_open, out_xrcd),
	{}
};

static const struct span outs_evd_create[] = {
	OUT(evd_create, out_evd),
	OUT(evd_create, out_ring),
	{}
};

static const struct span outs_evd_wait[] = { OUT(evd_wait, out_events), {} };
static const struct span outs_evd_resize[] = { OUT(evd_resize, out_ring), {} };
static const struct span outs_evd_eventfd[] = { {} };
static const struct span outs_evd_post[] = { {} };

static const struct span outs_srq_create[] = {
	OUT(srq_create, out_srq),
	OUT(srq_create, out_srq_num),
	OUT(srq_create, out_ring),
	{}
};

static const struct span outs_ep_create[] = {
	OUT(ep_create, out_ep),
	OUT(ep_create, out_qp_num),
	OUT(ep_create, out_state_off),
	OUT(ep_create, out_send_ring),
	OUT(ep_create, out_recv_ring),
	{}
};

static const struct span outs_ep_query[] = {
	OUT(ep_query, out_state),
	OUT(ep_query, out_pd),
	OUT(ep_query, out_srq),
	OUT(ep_query, out_request_evd),
	OUT(ep_query, out_recv_evd),
	OUT(ep_query, out_connect_evd),
	OUT(ep_query, out_async_evd),
	OUT(ep_query, out_cm),
	OUT(ep_query, out_user_data),
	OUT(ep_query, out_attr),
	OUT(ep_query, out_qp_num),
	OUT(ep_query, out_remote_qp_num),
	OUT(ep_query, out_requests),
	OUT(ep_query, out_receives),
	OUT(ep_query, out_state_off),
	OUT(ep_query, out_private_data_len),
	OUT(ep_query, out_private_data),
	OUT(ep_query, out_local),
	OUT(ep_query, out_remote),
	OUT(ep_query, out_send_ring),
	OUT(ep_query, out_recv_ring),
	OUT(ep_query, out_reject_reason),
	OUT(ep_query, out_rd_atomic),
	OUT(ep_query, out_dest_rd_atomic),
	{}
};

static const struct span outs_ep_modify[] = { {} };
static const struct span outs_ep_connect[] = { {} };
static const struct span outs_ep_accept[] = { {} };
static const struct span outs_ep_disconnect[] = { {} };
static const struct span outs_ep_reset[] = { OUT(ep_reset, out_qp_num), {} };
static const struct span outs_cm_create[] = { OUT(cm_create, out_cm), {} };
static const struct span outs_cm_bind[] = { {} };
static const struct span outs_cm_listen[] = { {} };
static const struct span outs_cm_resolve[] = { {} };

static const struct span outs_cm_query[] = {
	OUT(cm_query, out_state),
	OUT(cm_query, out_ep),
	OUT(cm_query, out_evd),
	OUT(cm_query, out_requests),
	OUT(cm_query, out_unacked),
	OUT(cm_query, out_user_data),
	OUT(cm_query, out_listener),
	OUT(cm_query, out_private_data_len),
	OUT(cm_query, out_private_data),
	OUT(cm_query, out_xrc),
	OUT(cm_query, out_local),
	OUT(cm_query, out_remote),
	OUT(cm_query, out_remote_qp_num),
	OUT(cm_query, out_srq),
	OUT(cm_query, out_responder_resources),
	OUT(cm_query, out_initiator_depth),
	OUT(cm_query, out_retry_count),
	OUT(cm_query, out_rnr_retry_count),
	OUT(cm_query, out_port),
	{}
};

static const struct span outs_cm_reject[] = { {} };
static const struct span outs_cm_ack[] = { {} };
static const struct span outs_cm_take[] = { {} };

static const struct span outs_srq_query[] = {
	OUT(srq_query, out_pd),
	OUT(srq_query, out_xrcd),
	OUT(srq_query, out_evd),
	OUT(srq_query, out_srq_num),
	OUT(srq_query, out_depth),
	OUT(srq_query, out_max_sge),
	OUT(srq_query, out_limit),
	OUT(srq_query, out_async_evd),
	{}
};

static const struct span outs_xrc_qp_create[] = {
	OUT(xrc_qp_create, out_xrc_qp),
	OUT(xrc_qp_create, out_qp_num),
	{}
};

static const struct span outs_xrc_qp_query[] = {
	OUT(xrc_qp_query, out_xrc_qp),
	OUT(xrc_qp_query, out_registrations),
	OUT(xrc_qp_query, out_messages),
	OUT(xrc_qp_query, out_not_ready),
	OUT(xrc_qp_query, out_qp),
	{}
};

static const struct span outs_srq_modify[] = { {} };
static const struct span outs_xrc_qp_register[] = {
	OUT(xrc_qp_register, out_xrc_qp),
	{}
};

static const struct span outs_xrc_qp_unregister[] = { {} };
static const struct span outs_xrc_qp_modify[] = { {} };
static const struct span outs_xrc_qp_accept[] = { {} };

struct command {
	unsigned int request;
	const char *name;
	size_t size;
	const struct span *outs;
};

static const struct command commands[] = {
#define DAPX_COMMAND(lower, upper)					\
	{ DAPX_##upper, #upper, sizeof(struct dapx_##lower), outs_##lower },
#include "commands.h"
#undef DAPX_COMMAND
};

static const struct command *find_command(unsigned int request)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(commands); i++)
		if (commands[i].request == request)
			return &commands[i];
	abort();
}

/* What the ABI forbids in every call: it fails as no call does. */
static int break_test(const struct command *command, const char *what,
		      size_t offset)
{
	fprintf(stderr, "# DAPX_%s: %s at offset %zu\n", command->name, what,
		offset);
	errno = EPROTO;
	return -1;
}

static bool all_poison(const __u8 *bytes, size_t size)
{
	while (size--)
		if (*bytes++ != POISON)
			return false;
	return true;
}

int dapx_ioctl(int fd, unsigned int request, void *arg)
{
	const struct command *command = find_command(request);
	__u8 before[1024], after[1024];
	const struct span *out;
	int ret, error;
	size_t i;

	if (command->size > sizeof(before))
		abort();
	for (out = command->outs; out->size; out++)
		memset((__u8 *)arg + out->offset, POISON, out->size);
	memcpy(before, arg, command->size);
	ret = ioctl(fd, request, arg);
	error = errno;
	if (ret > 0)
		return break_test(command, "positive return value", ret);

	memcpy(after, arg, command->size);
	for (out = command->outs; out->size; out++) {
		bool kept = all_poison(after + out->offset, out->size);
		bool waited = request == DAPX_EVD_WAIT &&
			      (error == ETIMEDOUT || error == EINTR);

		if ((!ret || waited) && kept)
			return break_test(command, "output not written",
					  out->offset);
		if (!ret || waited)
			memset(after + out->offset, POISON, out->size);
	}
	for (i = 0; i < command->size; i++)
		if (before[i] != after[i])
			return break_test(command,
					  ret ? "a failed call wrote" :
						"an input was written", i);
	errno = error;
	return ret;
}
