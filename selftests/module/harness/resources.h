/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a test must leave as it was: what the RDMA subsystem counts.
 */
#ifndef DAPX_HARNESS_RESOURCES_H
#define DAPX_HARNESS_RESOURCES_H

/* What the RDMA subsystem counts on both devices; two are compared by strcmp. */
int rdma_resources(char text[512]);
/* Waits until it counts this again: some of it goes a little later. */
int await_resources(const char *text);

#endif /* DAPX_HARNESS_RESOURCES_H */
