/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The stand-in for the module, for tests in C; see fake_module.hpp. There is one at a time.
 */
#ifndef FAKE_MODULE_C_H
#define FAKE_MODULE_C_H

#include <dapx/dapx.h>

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Until fake_end(). Returns the name of its node. */
const char *fake_begin(void);
void fake_end(void);

/* The next command @request answers @error. */
void fake_fail_next(unsigned long request, int error);
/* Freeing answers EBUSY; 0: for none. */
void fake_busy(__u32 handle);
size_t fake_count(unsigned long request);
/* The last argument of a command, as it came in: @size bytes into @argument. */
void fake_last(unsigned long request, void *argument, size_t size);
size_t fake_objects(void);
/* The allocation that follows @before others of the library fails. */
void fake_fail_allocation(size_t before);
/* Whether it did. If not, none does any more. */
int fake_allocation_failed(void);
/* The newest entry of a ring. */
const void *fake_last_send(__u32 ep);
const void *fake_last_recv(__u32 ep_or_srq);
void fake_set_state(__u32 ep, __u32 state);
void fake_put_event(__u32 evd, const struct dapx_event *event);
void fake_kill_evd(__u32 evd);
void fake_unacked(__u32 events);
void fake_xrc_request(int xrc);
/* A receive queue pair of another context's. */
void fake_foreign_xrc_qp(__u32 qp_num);

#ifdef __cplusplus
}
#endif

#endif
