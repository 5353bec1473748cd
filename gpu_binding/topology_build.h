/* SPDX-License-Identifier: Apache-2.0 */
/* Inside topology*.c only: the steps that fill a topology from what hwloc found. */
#ifndef HVD_TOPOLOGY_BUILD_H
#define HVD_TOPOLOGY_BUILD_H

#include <hwloc.h>

#include "gpu_binding/topology.h"

/* A topology under construction; the arrays of the result are owned by *out. */
struct hvd_topology_build {
    hwloc_topology_t hwloc;
    struct hvd_topology *out;
};

/* Cpus, memory nodes, sockets and their distances. HVD_ERR_NOMEM or
 * HVD_ERR_UNSUPPORTED. */
int hvd_topology_add_cpus(struct hvd_topology_build *build, struct hvd_error *err);

/* GPUs, NICs and their closeness; after the cpus. */
int hvd_topology_add_devices(struct hvd_topology_build *build, struct hvd_error *err);

/* Index of the one socket (memory node) that the object's cpus belong to, HVD_NONE when
 * they belong to several or to none. After the cpus. */
int hvd_topology_socket_of(const struct hvd_topology_build *build, hwloc_obj_t object);
int hvd_topology_numa_of(const struct hvd_topology_build *build, hwloc_obj_t object);

#endif
