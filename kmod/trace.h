/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM dapx

#if !defined(_DAPX_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _DAPX_TRACE_H

#include <linux/tracepoint.h>

#include "queue.h"

TRACE_EVENT(dapx_post,
	TP_PROTO(const struct dapx_object *obj, u32 index, u64 wr_id, u32 status),
	TP_ARGS(obj, index, wr_id, status),
	TP_STRUCT__entry(
		__field(u32, handle)
		__field(u32, index)
		__field(u64, wr_id)
		__field(u32, status)
	),
	TP_fast_assign(
		__entry->handle = obj->handle;
		__entry->index = index;
		__entry->wr_id = wr_id;
		__entry->status = status;
	),
	TP_printk("handle=%u index=%u wr_id=%llu status=%u",
		  __entry->handle, __entry->index, __entry->wr_id, __entry->status)
);

TRACE_EVENT(dapx_complete,
	TP_PROTO(const struct dapx_event_node *node),
	TP_ARGS(node),
	TP_STRUCT__entry(
		__field(u32, handle)
		__field(u32, opcode)
		__field(u64, wr_id)
		__field(u32, status)
		__field(u32, byte_len)
	),
	TP_fast_assign(
		__entry->handle = node->source->owner->handle;
		__entry->opcode = node->opcode;
		__entry->wr_id = node->wr_id;
		__entry->status = node->status;
		__entry->byte_len = node->byte_len;
	),
	TP_printk("handle=%u opcode=%u wr_id=%llu status=%u byte_len=%u",
		  __entry->handle, __entry->opcode, __entry->wr_id, __entry->status,
		  __entry->byte_len)
);

TRACE_EVENT(dapx_ep_state,
	TP_PROTO(const struct dapx_object *obj, u32 from, u32 to),
	TP_ARGS(obj, from, to),
	TP_STRUCT__entry(
		__field(u32, handle)
		__field(u32, from)
		__field(u32, to)
	),
	TP_fast_assign(
		__entry->handle = obj->handle;
		__entry->from = from;
		__entry->to = to;
	),
	TP_printk("handle=%u from=%u to=%u", __entry->handle, __entry->from, __entry->to)
);

TRACE_EVENT(dapx_teardown,
	TP_PROTO(const struct dapx_object *obj, const char *step),
	TP_ARGS(obj, step),
	TP_STRUCT__entry(
		__field(u32, handle)
		__field(const char *, step)
	),
	TP_fast_assign(
		__entry->handle = obj->handle;
		__entry->step = step;
	),
	TP_printk("handle=%u step=%s", __entry->handle, __entry->step)
);

TRACE_EVENT(dapx_rmr,
	TP_PROTO(const struct dapx_object *obj, const char *step, u32 rkey),
	TP_ARGS(obj, step, rkey),
	TP_STRUCT__entry(
		__field(u32, handle)
		__field(const char *, step)
		__field(u32, rkey)
	),
	TP_fast_assign(
		__entry->handle = obj->handle;
		__entry->step = step;
		__entry->rkey = rkey;
	),
	TP_printk("handle=%u step=%s rkey=0x%x", __entry->handle, __entry->step, __entry->rkey)
);

#endif /* _DAPX_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
