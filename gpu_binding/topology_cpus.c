/* SPDX-License-Identifier: Apache-2.0 */
/* Adds the cpus, memory nodes and sockets of a topology. */
#include <stdlib.h>

#include "gpu_binding/base/error.h"
#include "gpu_binding/topology_build.h"

/* The kernel's scale of distances: 10 is local, and 20 is its value for two sockets if
 * the firmware gives none. */
#define DISTANCE_LOCAL 10
#define DISTANCE_REMOTE 20

static hwloc_obj_t socket_at(const struct hvd_topology_build *build, int socket)
{
    hwloc_obj_t package =
        hwloc_get_obj_by_type(build->hwloc, HWLOC_OBJ_PACKAGE, (unsigned)socket);

    return package != NULL ? package : hwloc_get_root_obj(build->hwloc);
}

int hvd_topology_socket_of(const struct hvd_topology_build *build, hwloc_obj_t object)
{
    int found = HVD_NONE;

    for (int i = 0; i < build->out->socket_count; i++) {
        if (!hwloc_bitmap_intersects(object->cpuset, socket_at(build, i)->cpuset)) {
            continue;
        }
        if (found != HVD_NONE) {
            return HVD_NONE;
        }
        found = i;
    }
    return found;
}

static hwloc_obj_t numa_at(const struct hvd_topology_build *build, int numa)
{
    unsigned number = (unsigned)build->out->numas[numa].number;

    return hwloc_get_numanode_obj_by_os_index(build->hwloc, number);
}

int hvd_topology_numa_of(const struct hvd_topology_build *build, hwloc_obj_t object)
{
    int found = HVD_NONE;

    for (int i = 0; i < build->out->numa_count; i++) {
        if (!hwloc_bitmap_intersects(object->cpuset, numa_at(build, i)->cpuset)) {
            continue;
        }
        if (found != HVD_NONE) {
            return HVD_NONE;
        }
        found = i;
    }
    return found;
}

/* True for the ordinary memory of some cpus. GPU memory has no cpus. High-bandwidth and
 * far memory have the same cpus as ordinary memory, which hwloc lists first. */
static bool is_ordinary_memory(const struct hvd_topology_build *build, hwloc_obj_t node)
{
    if (hwloc_bitmap_iszero(node->cpuset)) {
        return false;
    }
    for (int i = 0; i < build->out->numa_count; i++) {
        if (hwloc_bitmap_isequal(node->cpuset, numa_at(build, i)->cpuset)) {
            return false;
        }
    }
    return true;
}

static int add_numas(struct hvd_topology_build *build, struct hvd_error *err)
{
    struct hvd_topology *out = build->out;
    hwloc_const_nodeset_t allowed = hwloc_topology_get_allowed_nodeset(build->hwloc);
    int count = hwloc_get_nbobjs_by_type(build->hwloc, HWLOC_OBJ_NUMANODE);
    hwloc_obj_t node = NULL;

    out->numas = calloc(count > 0 ? (size_t)count : 1, sizeof(*out->numas));
    if (out->numas == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "out of memory for %d memory nodes", count);
    }
    while ((node = hwloc_get_next_obj_by_type(build->hwloc, HWLOC_OBJ_NUMANODE, node)) !=
           NULL) {
        if (is_ordinary_memory(build, node)) {
            out->numas[out->numa_count++] = (struct hvd_numa){
                .number = (int)node->os_index,
                .socket = hvd_topology_socket_of(build, node),
                .is_allowed = hwloc_bitmap_isset(allowed, node->os_index),
            };
        }
    }
    return 0;
}

static int core_of(hwloc_topology_t hwloc, hwloc_obj_t pu)
{
    hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(hwloc, HWLOC_OBJ_CORE, pu);

    return (int)(core != NULL ? core : pu)->logical_index;
}

static int add_threads(struct hvd_topology_build *build, struct hvd_error *err)
{
    struct hvd_topology *out = build->out;
    hwloc_const_cpuset_t allowed = hwloc_topology_get_allowed_cpuset(build->hwloc);
    int count = hwloc_get_nbobjs_by_type(build->hwloc, HWLOC_OBJ_PU);
    hwloc_obj_t pu = NULL;

    out->cpus = calloc((size_t)count, sizeof(*out->cpus));
    if (out->cpus == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "out of memory for %d cpus", count);
    }
    while ((pu = hwloc_get_next_obj_by_type(build->hwloc, HWLOC_OBJ_PU, pu)) != NULL) {
        struct hvd_cpu *cpu = &out->cpus[out->cpu_count++];

        if (pu->os_index >= HVD_CPUSET_SIZE) {
            return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                            "cpu %u: only cpus below %d are supported", pu->os_index,
                            HVD_CPUSET_SIZE);
        }
        cpu->number = (int)pu->os_index;
        cpu->core = core_of(build->hwloc, pu);
        cpu->numa = hvd_topology_numa_of(build, pu);
        cpu->socket = hvd_topology_socket_of(build, pu);
        if (cpu->socket == HVD_NONE) {
            return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                            "cpu %u is on no socket or on several: the topology is "
                            "broken",
                            pu->os_index);
        }
        out->core_count = cpu->core + 1;
        if (hwloc_bitmap_isset(allowed, pu->os_index)) {
            hvd_cpuset_add(&out->allowed, cpu->number);
        }
    }
    return 0;
}

/* Takes the firmware's distances between memory nodes, if hwloc has them, as distances
 * between sockets. */
static void take_distances(struct hvd_topology *out,
                           const struct hwloc_distances_s *distances,
                           const struct hvd_topology_build *build)
{
    for (unsigned i = 0; i < distances->nbobjs * distances->nbobjs; i++) {
        hwloc_obj_t from = distances->objs[i / distances->nbobjs];
        hwloc_obj_t to = distances->objs[i % distances->nbobjs];

        if (from == NULL || to == NULL) {
            continue;
        }
        int a = hvd_topology_socket_of(build, from);
        int b = hvd_topology_socket_of(build, to);
        if (a != HVD_NONE && b != HVD_NONE && a != b) {
            out->socket_distance[a * out->socket_count + b] = (int)distances->values[i];
        }
    }
}

static int add_distances(struct hvd_topology_build *build, struct hvd_error *err)
{
    struct hvd_topology *out = build->out;
    struct hwloc_distances_s *distances = NULL;
    unsigned found = 1;
    int count = out->socket_count;

    out->socket_distance = calloc((size_t)count * (size_t)count, sizeof(int));
    if (out->socket_distance == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "out of memory for %d sockets", count);
    }
    for (int i = 0; i < count * count; i++) {
        out->socket_distance[i] =
            i / count == i % count ? DISTANCE_LOCAL : DISTANCE_REMOTE;
    }
    if (hwloc_distances_get_by_type(build->hwloc, HWLOC_OBJ_NUMANODE, &found, &distances,
                                    HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0) == 0 &&
        found > 0) {
        take_distances(out, distances, build);
        hwloc_distances_release(build->hwloc, distances);
    }
    return 0;
}

int hvd_topology_add_cpus(struct hvd_topology_build *build, struct hvd_error *err)
{
    int packages = hwloc_get_nbobjs_by_type(build->hwloc, HWLOC_OBJ_PACKAGE);
    int status;

    build->out->socket_count = packages > 0 ? packages : 1;
    status = add_numas(build, err);
    if (status == 0) {
        status = add_threads(build, err);
    }
    if (status == 0) {
        status = add_distances(build, err);
    }
    return status;
}
