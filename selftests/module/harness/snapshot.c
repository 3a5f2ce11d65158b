// SPDX-License-Identifier: GPL-2.0
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "snapshot.h"
#include "why.h"

static int snapshot_add(struct snapshot *snapshot, const void *data, size_t size)
{
	__u8 *grown = realloc(snapshot->data, snapshot->size + size);

	if (!grown)
		return because("no memory");
	memcpy(grown + snapshot->size, data, size);
	snapshot->data = grown;
	snapshot->size += size;
	return 0;
}

int snapshot_take(int fd, struct snapshot *snapshot)
{
	struct dapx_query_object object = { .flags = DAPX_QUERY_NEXT };

	memset(snapshot, 0, sizeof(*snapshot));
	for (;;) {
		int ret = _test_cmd_query_object(fd, &object);

		if (ret && (errno == ENOENT || errno == EBADFD))
			return 0;
		if (ret)
			return because("DAPX_QUERY_OBJECT: %m");
		if (snapshot_add(snapshot, &object, sizeof(object)))
			return -1;
		if (object.out_type == DAPX_OBJECT_EP) {
			struct dapx_ep_query ep = { .ep = object.out_handle };

			if (_test_cmd_ep_query(fd, &ep))
				return because("DAPX_EP_QUERY: %m");
			if (snapshot_add(snapshot, &ep, sizeof(ep)))
				return -1;
		}
		if (object.out_type == DAPX_OBJECT_CM) {
			struct dapx_cm_query cm = { .cm = object.out_handle };

			if (_test_cmd_cm_query(fd, &cm))
				return because("DAPX_CM_QUERY: %m");
			if (snapshot_add(snapshot, &cm, sizeof(cm)))
				return -1;
		}
		if (object.out_type == DAPX_OBJECT_SRQ) {
			struct dapx_srq_query srq = { .srq = object.out_handle };

			if (_test_cmd_srq_query(fd, &srq))
				return because("DAPX_SRQ_QUERY: %m");
			if (snapshot_add(snapshot, &srq, sizeof(srq)))
				return -1;
		}
		if (object.out_type == DAPX_OBJECT_RMR) {
			struct dapx_rmr_query rmr = {
				.rmr = object.out_handle, .mask = RMR_FIELDS,
			};

			if (_test_cmd_rmr_query(fd, &rmr))
				return because("DAPX_RMR_QUERY: %m");
			if (snapshot_add(snapshot, &rmr, sizeof(rmr)))
				return -1;
		}
		object.handle = object.out_handle;
	}
}

/* Notes which member of which answer is another one now. */
static void note_difference(const struct snapshot *before,
			    const struct snapshot *after)
{
	size_t entry = 0, at = 0, size;
	const char *name;

	while (at < before->size && at < after->size &&
	       before->data[at] == after->data[at])
		at++;
	if (at == before->size || at == after->size) {
		because("there are more or fewer objects");
		return;
	}
	/* Each entry begins with its own length. */
	for (;;) {
		size = *(const __u32 *)(before->data + entry);
		if (!size || at < entry + size)
			break;
		entry += size;
	}
	name = size == sizeof(struct dapx_ep_query) ? "ep_query" :
	       size == sizeof(struct dapx_cm_query) ? "cm_query" :
	       /* Of the same length. */
	       size == sizeof(struct dapx_rmr_query) ? "rmr_query or srq_query" :
						       "query_object";
	because("struct dapx_%s, offset %zu: 0x%x, then 0x%x", name, at - entry,
		before->data[at], after->data[at]);
}

bool snapshot_same(struct snapshot *before, struct snapshot *after)
{
	bool same = before->size == after->size &&
		    !memcmp(before->data, after->data, before->size);

	if (!same)
		note_difference(before, after);
	free(before->data);
	free(after->data);
	memset(before, 0, sizeof(*before));
	memset(after, 0, sizeof(*after));
	return same;
}
