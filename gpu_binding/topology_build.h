/* SPDX-License-Identifier: Apache-2.0 */
/* The steps that fill a topology from hwloc's; for topology*.c only. */
#ifndef HVD_TOPOLOGY_BUILD_H
#define HVD_TOPOLOGY_BUILD_H

#include <hwloc.h>

#include "gpu_binding/topology.h"

/* A topology under construction; the arrays of the result are owned by *out. */
struct hvd_topology_build {
    hwloc_topology_t hwloc;
    struct hvd_topology *out;
};

/* Adds cpus, memory nodes, sockets and their distances. Returns HVD_ERR_NOMEM or
 * HVD_ERR_UNSUPPORTED on failure. */
int hvd_topology_add_cpus(struct hvd_topology_build *build, struct hvd_error *err);

/* Adds GPUs, NICs and their closeness. Call it after hvd_topology_add_cpus. */
int hvd_topology_add_devices(struct hvd_topology_build *build, struct hvd_error *err);

/* Return the index of the one socket (memory node) that the object's cpus belong to;
 * HVD_NONE if they belong to several or to none. Call them when the sockets (memory
 * nodes) have been added. */
int hvd_topology_socket_of(const struct hvd_topology_build *build, hwloc_obj_t object);
int hvd_topology_numa_of(const struct hvd_topology_build *build, hwloc_obj_t object);

#endif
