/* SPDX-License-Identifier: Apache-2.0 */
/* The public interface: the libraries and devices for GPU tensors on this machine. */
#include <stdio.h>
#include <stdlib.h>

#include "collectives/gpu/gpu_load.h"
#include "collectives/transport/net/rdma.h"
#include "collectives/hvd.h"
#include "collectives/trace/ranges.h"
#include "collectives/transport/net/net.h"
#include "gpu_binding/base/attr.h"
#include "gpu_binding/base/env.h"

static int probe_facts(struct hvd_gpu_facts *facts, struct hvd_error *err)
{
    const struct hvd_gpu_module *module = hvd_gpu_load(err);

    *facts = (struct hvd_gpu_facts){0};
    if (module == NULL) {
        return HVD_ERR_UNSUPPORTED;
    }
    module->probe(getenv(HVD_ENV_NCCL_LIBRARY), facts);
    return 0;
}

static int version_of(const struct hvd_gpu_library *library)
{
    return library->problem[0] == '\0' ? library->version : 0;
}

HVD_EXPORT int hvd_cuda_version(void)
{
    struct hvd_gpu_facts facts;

    return probe_facts(&facts, NULL) == 0 ? version_of(&facts.cuda) : 0;
}

HVD_EXPORT int hvd_nccl_version(void)
{
    struct hvd_gpu_facts facts;

    return probe_facts(&facts, NULL) == 0 ? version_of(&facts.nccl) : 0;
}

static int describe_library(const char *name, const struct hvd_gpu_library *library,
                            char *text, size_t size)
{
    const char *file = library->file[0] != '\0' ? library->file : "not found";

    return version_of(library) != 0
               ? snprintf(text, size, "%s: %d, %s\n", name, library->version, file)
               : snprintf(text, size, "%s: unusable, %s: %s\n", name, file,
                          library->problem);
}

static int describe_devices(int count, const struct hvd_error *err, char *text,
                            size_t size)
{
    return count < 0 ? snprintf(text, size, "GPUs: unusable: %s\n", err->text)
                     : snprintf(text, size, "GPUs that this process sees: %d\n", count);
}

static int describe_cards(char *text, size_t size)
{
    struct hvd_rdma_devices devices;

    hvd_rdma_find("", &devices);
    return devices.names[0] == '\0'
               ? snprintf(text, size, "InfiniBand: no active card\n")
               : snprintf(text, size, "InfiniBand: %s; %s\n", devices.names,
                          devices.has_peermem
                              ? "GPUDirect by nvidia_peermem"
                              : "no nvidia_peermem: GPUDirect by dma-buf, or not at all");
}

/* Opens UCX to describe it, as a job over several nodes does. */
static int describe_ucx(char *text, size_t size)
{
    const char *chosen = getenv(HVD_ENV_UCX_TLS);
    struct hvd_error err = {0};
    struct hvd_net *net = NULL;
    bool has_cuda;
    int version;

    if (hvd_net_create(HVD_NET_UCX, &net, &err) != 0) {
        return snprintf(text, size, "UCX: unusable: %s\n", err.text);
    }
    has_cuda = hvd_net_has_cuda(net);
    version = hvd_net_ucx_version(net);
    hvd_net_destroy(net);
    return snprintf(
        text, size, "UCX: %d.%d.%d %s%s%s\n", version / 10000, version / 100 % 100,
        version % 100,
        has_cuda ? "with CUDA support: sends GPU memory between nodes"
                 : "without CUDA support: copies GPU data to pinned host memory first",
        chosen != NULL ? "; " HVD_ENV_UCX_TLS "=" : "", chosen != NULL ? chosen : "");
}

static int describe_net(char *text, size_t size)
{
    bool is_wrong;
    enum hvd_net_choice choice = hvd_net_choice_of(getenv(HVD_ENV_NET), &is_wrong);
    char obstacle[160];

    return hvd_net_choice_obstacle(choice, obstacle, sizeof(obstacle))
               ? snprintf(text, size, "between nodes: TCP, UCX is not used: %s\n",
                          obstacle)
               : snprintf(text, size, "between nodes: UCX, if all nodes can\n");
}

/* Converts the result of snprintf, the length it wanted to write, to the bytes it has
 * written. */
static size_t bytes_taken(int wanted, size_t size)
{
    return wanted < 0 ? 0 : (size_t)wanted < size ? (size_t)wanted : size - 1;
}

HVD_EXPORT int hvd_gpu_describe(char *text, size_t size)
{
    struct hvd_gpu_facts facts;
    struct hvd_error err = {0};
    int count = 0;
    size_t at;

    if (size == 0) {
        return HVD_ERR_ARG;
    }
    if (probe_facts(&facts, &err) != 0) {
        snprintf(text, size, "GPU module: unusable: %s\n", err.text);
        return HVD_ERR_UNSUPPORTED;
    }
    at = bytes_taken(snprintf(text, size, "GPU module: %s\n", hvd_gpu_loaded_from()),
                     size);
    at += bytes_taken(describe_library("CUDA driver", &facts.cuda, text + at, size - at),
                      size - at);
    at += bytes_taken(describe_library("NCCL", &facts.nccl, text + at, size - at),
                      size - at);
    at += bytes_taken(snprintf(text + at, size - at,
                               facts.has_kernels
                                   ? "kernels: for %s\n"
                                   : "kernels: none, small tensors are copied: %s\n",
                               facts.kernels),
                      size - at);
    if (version_of(&facts.cuda) != 0) {
        count = hvd_gpu_load(NULL)->count(&err);
        at += bytes_taken(describe_devices(count, &err, text + at, size - at), size - at);
    }
    at += bytes_taken(describe_cards(text + at, size - at), size - at);
    at += bytes_taken(describe_ucx(text + at, size - at), size - at);
    at += bytes_taken(describe_net(text + at, size - at), size - at);
    hvd_ranges_describe(text + at, size - at);
    return count > 0 ? 0 : HVD_ERR_UNSUPPORTED;
}
