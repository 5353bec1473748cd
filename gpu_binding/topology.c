/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a node through hwloc and keeps what the plan needs. */
#include "gpu_binding/topology.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu_binding/base/error.h"
#include "gpu_binding/cpulist.h"
#include "gpu_binding/nvidia_proc.h"
#include "gpu_binding/topology_build.h"

/* hwloc's components that hvd does without, because the kernel's list of PCI devices
 * locates every GPU. Components that talk to a driver or a display have been seen to hang
 * in slurmstepd. pci is libpciaccess, which leaks memory each time hwloc unloads it. */
static const char *const unwanted[] = {
    "gl", "opencl", "cuda", "nvml", "rsmi", "levelzero", "pci",
};

/* Configures hwloc; if an XML file is named, hwloc reads it here already.
 * INCLUDE_DISALLOWED keeps the whole node: without it, a GPU's socket is unknown if the
 * step may not use that socket. */
static int configure(hwloc_topology_t hwloc, const char *xml_file, struct hvd_error *err)
{
    for (unsigned i = 0; i < sizeof(unwanted) / sizeof(unwanted[0]); i++) {
        /* This fails for a component that this hwloc lacks, which is fine. */
        hwloc_topology_set_components(hwloc, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST,
                                      unwanted[i]);
    }
    if (hwloc_topology_set_flags(hwloc, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) < 0 ||
        hwloc_topology_set_io_types_filter(hwloc, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) < 0) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                        "this hwloc cannot be set up to list PCI devices: %m");
    }
    /* Check the file first: hwloc 2.15 prints a line of its own if it cannot open one. */
    if (xml_file != NULL &&
        (access(xml_file, R_OK) != 0 || hwloc_topology_set_xml(hwloc, xml_file) < 0)) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "cannot read the topology file %.200s: %m; expected XML as "
                        "written by lstopo of hwloc 2",
                        xml_file);
    }
    return 0;
}

static int build_topology(struct hvd_topology_build *build, const char *xml_file,
                          struct hvd_error *err)
{
    int status = configure(build->hwloc, xml_file, err);

    if (status < 0) {
        return status;
    }
    if (hwloc_topology_load(build->hwloc) < 0) {
        return xml_file == NULL
                   ? hvd_fail(err, HVD_ERR_SYS,
                              "hwloc cannot read the topology of this node: %m")
                   : hvd_fail(err, HVD_ERR_ARG,
                              "hwloc cannot load the topology file %.200s: %m; expected "
                              "XML as written by lstopo of hwloc 2",
                              xml_file);
    }
    status = hvd_topology_add_cpus(build, err);
    if (status < 0) {
        return status;
    }
    return hvd_topology_add_devices(build, err);
}

static const char *choose_nvidia_dir(const struct hvd_topology_source *source,
                                     hwloc_topology_t hwloc)
{
    if (source->nvidia_dir != NULL) {
        return source->nvidia_dir;
    }
    return hwloc_topology_is_thissystem(hwloc) ? "/proc/driver/nvidia/gpus" : NULL;
}

int hvd_topology_load(struct hvd_topology *topology,
                      const struct hvd_topology_source *source, struct hvd_error *err)
{
    struct hvd_topology found = {0};
    struct hvd_topology_build build = {.out = &found};

    if (hwloc_topology_init(&build.hwloc) < 0) {
        return hvd_fail(err, HVD_ERR_NOMEM, "cannot initialise hwloc: %m");
    }
    int status = build_topology(&build, source->xml_file, err);
    if (status < 0) {
        hvd_topology_finish(&found);
    } else {
        const char *nvidia_dir = choose_nvidia_dir(source, build.hwloc);

        if (nvidia_dir != NULL) {
            hvd_nvidia_proc_read(nvidia_dir, &found);
        }
        *topology = found;
    }
    hwloc_topology_destroy(build.hwloc);
    return status;
}

void hvd_topology_finish(struct hvd_topology *topology)
{
    if (topology == NULL) {
        return;
    }
    free(topology->cpus);
    free(topology->numas);
    free(topology->socket_distance);
    free(topology->gpus);
    free(topology->nics);
    free(topology->closeness);
    *topology = (struct hvd_topology){0};
}

int hvd_topology_cores(const struct hvd_topology *topology, const char *cores,
                       struct hvd_cpuset *cpus, struct hvd_error *err)
{
    struct hvd_cpuset numbers;
    struct hvd_cpuset found = {{0}};
    int status = hvd_cpulist_parse(cores, &numbers, err);

    if (status < 0) {
        return status;
    }
    for (int i = 0; i < topology->cpu_count; i++) {
        if (hvd_cpuset_has(&numbers, topology->cpus[i].core)) {
            hvd_cpuset_add(&found, topology->cpus[i].number);
        }
    }
    *cpus = found;
    return 0;
}

int hvd_topology_count_cpus(const struct hvd_topology *topology,
                            const struct hvd_cpuset *cpus, int socket)
{
    int count = 0;

    for (int i = 0; i < topology->cpu_count; i++) {
        const struct hvd_cpu *cpu = &topology->cpus[i];

        count += hvd_cpuset_has(cpus, cpu->number) &&
                 (socket == HVD_NONE || cpu->socket == socket);
    }
    return count;
}

int hvd_topology_count_cores(const struct hvd_topology *topology,
                             const struct hvd_cpuset *cpus, int socket)
{
    int count = 0;
    int last = HVD_NONE;

    for (int i = 0; i < topology->cpu_count; i++) {
        const struct hvd_cpu *cpu = &topology->cpus[i];

        if (cpu->core != last && hvd_cpuset_has(cpus, cpu->number) &&
            (socket == HVD_NONE || cpu->socket == socket)) {
            last = cpu->core;
            count++;
        }
    }
    return count;
}
