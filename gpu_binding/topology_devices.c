/* SPDX-License-Identifier: Apache-2.0 */
/* Adds the GPUs and NICs of a topology from PCI alone: a device's vendor, class and
 * position in the tree suffice, without CUDA or NVML. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/error.h"
#include "gpu_binding/gpu_name.h"
#include "gpu_binding/topology_build.h"

/* PCI-SIG class codes. */
#define CLASS_DISPLAY 0x03
#define CLASS_DISPLAY_OTHER 0x0380
#define CLASS_ACCELERATOR 0x12
#define CLASS_INFINIBAND 0x0207
#define VENDOR_NVIDIA 0x10de
#define VENDOR_AMD 0x1002
#define VENDOR_INTEL 0x8086

/* InfiniBand specification: port state 4 is active. */
#define PORT_ACTIVE 4
#define PORTS_MAX 8

/* Compares vendor and class: NVSwitches have NVIDIA's vendor, and management controllers
 * have the class of displays. */
static bool is_gpu(hwloc_obj_t device)
{
    return device->attr->pcidev.vendor_id == VENDOR_NVIDIA &&
           device->attr->pcidev.class_id >> 8 == CLASS_DISPLAY;
}

/* Returns the vendor of a GPU that hvd does not support; NULL for any other device.
 * Intel's devices of class 0x0300 are part of the processor, and do not count. */
static const char *foreign_vendor(hwloc_obj_t device)
{
    unsigned class = device->attr->pcidev.class_id;
    bool is_accelerator = class >> 8 == CLASS_ACCELERATOR;

    switch (device->attr->pcidev.vendor_id) {
    case VENDOR_AMD:
        return is_accelerator || class >> 8 == CLASS_DISPLAY ? "AMD" : NULL;
    case VENDOR_INTEL:
        return is_accelerator || class == CLASS_DISPLAY_OTHER ? "Intel" : NULL;
    default:
        return NULL;
    }
}

static void count_foreign(struct hvd_topology *out, hwloc_obj_t device)
{
    const char *vendor = foreign_vendor(device);

    if (vendor != NULL && out->foreign_gpu_count++ == 0) {
        out->foreign_gpu_vendor = vendor;
    }
}

static int compare_bus(const void *a, const void *b)
{
    const struct hwloc_pcidev_attr_s *x = &(*(const hwloc_obj_t *)a)->attr->pcidev;
    const struct hwloc_pcidev_attr_s *y = &(*(const hwloc_obj_t *)b)->attr->pcidev;
    uint64_t m = (uint64_t)x->domain << 24 | (uint64_t)x->bus << 16 |
                 (uint64_t)x->dev << 8 | x->func;
    uint64_t n = (uint64_t)y->domain << 24 | (uint64_t)y->bus << 16 |
                 (uint64_t)y->dev << 8 | y->func;

    return (m > n) - (m < n);
}

static void write_bus(hwloc_obj_t device, char *text, size_t size)
{
    const struct hwloc_pcidev_attr_s *at = &device->attr->pcidev;

    snprintf(text, size, "%04x:%02x:%02x.%x", (unsigned)at->domain, at->bus, at->dev,
             at->func);
}

static void name_gpu(hwloc_obj_t device, struct hvd_gpu *gpu)
{
    const char *name = hwloc_obj_get_info_by_name(device, "PCIDevice");

    for (hwloc_obj_t child = device->io_first_child; child != NULL && name == NULL;
         child = child->next_sibling) {
        name = hwloc_obj_get_info_by_name(child, "GPUModel");
    }
    if (name != NULL) {
        hvd_gpu_short_model(name, gpu->model, sizeof(gpu->model));
    } else {
        snprintf(gpu->model, sizeof(gpu->model), "10de:%04x",
                 device->attr->pcidev.device_id);
    }
}

/* The PCI objects in the order of the result's arrays. */
struct devices {
    hwloc_obj_t *gpus;
    hwloc_obj_t *nics; /* one entry per port */
};

static void add_gpus(struct hvd_topology_build *build, struct devices *devices)
{
    struct hvd_topology *out = build->out;
    hwloc_obj_t device = NULL;

    while ((device = hwloc_get_next_pcidev(build->hwloc, device)) != NULL) {
        if (is_gpu(device)) {
            devices->gpus[out->gpu_count++] = device;
        }
        count_foreign(out, device);
    }
    qsort(devices->gpus, (size_t)out->gpu_count, sizeof(hwloc_obj_t), compare_bus);
    for (int i = 0; i < out->gpu_count; i++) {
        hwloc_obj_t place = hwloc_get_non_io_ancestor_obj(build->hwloc, devices->gpus[i]);
        struct hvd_gpu *gpu = &out->gpus[i];

        write_bus(devices->gpus[i], gpu->bus, sizeof(gpu->bus));
        name_gpu(devices->gpus[i], gpu);
        gpu->device_minor = HVD_NONE;
        gpu->socket = hvd_topology_socket_of(build, place);
        gpu->numa = hvd_topology_numa_of(build, place);
    }
}

/* Returns the state of a port as hwloc recorded it; -1 if there is no such port. */
static int port_state(hwloc_obj_t adapter, int port)
{
    char key[24];

    snprintf(key, sizeof(key), "Port%dState", port);
    const char *state = hwloc_obj_get_info_by_name(adapter, key);
    return state != NULL ? atoi(state) : -1;
}

static hwloc_obj_t rdma_adapter(hwloc_obj_t device)
{
    for (hwloc_obj_t child = device->io_first_child; child != NULL;
         child = child->next_sibling) {
        if (child->type == HWLOC_OBJ_OS_DEVICE &&
            child->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS) {
            return child;
        }
    }
    return NULL;
}

static void add_ports(struct hvd_topology_build *build, struct devices *devices,
                      hwloc_obj_t device)
{
    struct hvd_topology *out = build->out;
    hwloc_obj_t place = hwloc_get_non_io_ancestor_obj(build->hwloc, device);
    hwloc_obj_t adapter = rdma_adapter(device);

    for (int port = 1; port <= PORTS_MAX && port_state(adapter, port) >= 0; port++) {
        struct hvd_nic *nic = &out->nics[out->nic_count];

        snprintf(nic->name, sizeof(nic->name), "%s", adapter->name);
        write_bus(device, nic->bus, sizeof(nic->bus));
        nic->port = port;
        nic->socket = hvd_topology_socket_of(build, place);
        nic->numa = hvd_topology_numa_of(build, place);
        nic->is_active = port_state(adapter, port) == PORT_ACTIVE;
        nic->is_infiniband = device->attr->pcidev.class_id == CLASS_INFINIBAND;
        devices->nics[out->nic_count++] = device;
    }
}

static int add_nics(struct hvd_topology_build *build, struct devices *devices,
                    int pci_count)
{
    hwloc_obj_t *nics = calloc((size_t)pci_count, sizeof(*nics));
    hwloc_obj_t device = NULL;
    int count = 0;

    if (nics == NULL) {
        return HVD_ERR_NOMEM;
    }
    while ((device = hwloc_get_next_pcidev(build->hwloc, device)) != NULL) {
        if (rdma_adapter(device) != NULL) {
            nics[count++] = device;
        }
    }
    qsort(nics, (size_t)count, sizeof(*nics), compare_bus);
    for (int i = 0; i < count; i++) {
        add_ports(build, devices, nics[i]);
    }
    free(nics);
    return 0;
}

/* Returns how many objects lie between device and its ancestor; -1 if it is no
 * ancestor. */
static int steps_below(hwloc_obj_t ancestor, hwloc_obj_t device)
{
    int steps = 0;

    for (hwloc_obj_t at = device->parent; at != NULL; at = at->parent) {
        if (at == ancestor) {
            return steps;
        }
        steps++;
    }
    return -1;
}

/* Compares the paths of a GPU and a NIC to their common ancestor. A PCIe switch shows as
 * an upstream bridge with a downstream bridge above each device, so a second bridge in
 * between means a second switch. */
static enum hvd_closeness find_closeness(const struct hvd_topology_build *build,
                                         hwloc_obj_t gpu, hwloc_obj_t nic)
{
    hwloc_obj_t common = gpu->parent;

    while (steps_below(common, nic) < 0) {
        common = common->parent;
    }
    if (common->type == HWLOC_OBJ_BRIDGE) {
        if (common->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_HOST) {
            return HVD_CLOSE_PHB;
        }
        return steps_below(common, gpu) <= 1 && steps_below(common, nic) <= 1
                   ? HVD_CLOSE_PIX
                   : HVD_CLOSE_PXB;
    }
    if (hvd_topology_numa_of(build, common) != HVD_NONE) {
        return HVD_CLOSE_NUMA;
    }
    return hvd_topology_socket_of(build, common) != HVD_NONE ? HVD_CLOSE_SOCKET
                                                             : HVD_CLOSE_SYS;
}

static int count_pci(hwloc_topology_t hwloc)
{
    hwloc_obj_t device = NULL;
    int count = 0;

    while ((device = hwloc_get_next_pcidev(hwloc, device)) != NULL) {
        count++;
    }
    return count;
}

static int fill_devices(struct hvd_topology_build *build, struct devices *devices,
                        int pci_count)
{
    struct hvd_topology *out = build->out;

    add_gpus(build, devices);
    if (add_nics(build, devices, pci_count) < 0) {
        return HVD_ERR_NOMEM;
    }
    size_t pairs = (size_t)out->gpu_count * (size_t)out->nic_count;
    out->closeness = calloc(pairs > 0 ? pairs : 1, sizeof(*out->closeness));
    if (out->closeness == NULL) {
        return HVD_ERR_NOMEM;
    }
    for (size_t i = 0; i < pairs; i++) {
        out->closeness[i] =
            find_closeness(build, devices->gpus[i / (size_t)out->nic_count],
                           devices->nics[i % (size_t)out->nic_count]);
    }
    return 0;
}

int hvd_topology_add_devices(struct hvd_topology_build *build, struct hvd_error *err)
{
    struct hvd_topology *out = build->out;
    int pci_count = count_pci(build->hwloc);
    size_t room = (size_t)pci_count + 1;
    struct devices devices = {
        .gpus = calloc(room, sizeof(hwloc_obj_t)),
        .nics = calloc(room * PORTS_MAX, sizeof(hwloc_obj_t)),
    };
    int status = HVD_ERR_NOMEM;

    out->gpus = calloc(room, sizeof(*out->gpus));
    out->nics = calloc(room * PORTS_MAX, sizeof(*out->nics));
    if (devices.gpus != NULL && devices.nics != NULL && out->gpus != NULL &&
        out->nics != NULL) {
        status = fill_devices(build, &devices, (int)room);
    }
    free(devices.gpus);
    free(devices.nics);
    return status == 0
               ? 0
               : hvd_fail(err, status, "out of memory for %d PCI devices", pci_count);
}
