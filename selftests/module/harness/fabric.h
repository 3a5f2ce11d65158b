/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What two hosts are connected with: devices, links, a cable.
 */
#ifndef DAPX_HARNESS_FABRIC_H
#define DAPX_HARNESS_FABRIC_H

#include "host.h"

/*
 * Takes the RDMA device away, as a driver's unbinding would, and brings it back
 * with its name, network device and addresses.
 */
int device_remove(const struct host *host);
/* For device_add() by a process that has not removed the device itself. */
int device_note(const struct host *host);
int device_add(const struct host *host);
/* Cuts the cable from one host to the other, this way only, or mends it. */
int cable_set(const struct host *from, const struct host *to, bool whole);
/*
 * What leaves @host is lost. Not by cable_set(): to the RDMA CM a neighbour that changes
 * is the end of a set-up. While connections are set up only: what rxe sends in the moment
 * of the change has an error, which ends its queue pair.
 */
int host_mute(const struct host *host, bool muted);
/*
 * Takes the network device below @host down, or up again with what it lost by that:
 * addresses, and the way to @to.
 */
int link_set(const struct host *host, const struct host *to, bool up);

#endif /* DAPX_HARNESS_FABRIC_H */
