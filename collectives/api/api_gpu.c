/* SPDX-License-Identifier: Apache-2.0 */
/* The public interface: tensors on GPUs. */
#include <stdio.h>
#include <stdlib.h>

#include "collectives/api/api_start.h"
#include "collectives/gpu/gpu.h"
#include "collectives/gpu/gpu_load.h"
#include "collectives/gpu/gpu_routes.h"
#include "collectives/observe/ranges.h"
#include "collectives/transport/net/net.h"
#include "gpu_binding/base/attr.h"
#include "gpu_binding/base/env.h"

int hvd_start_gpu(struct hvd_engine *engine, const struct hvd_tensor *tensors,
                  struct hvd_request *request, struct hvd_error *err)
{
    struct hvd_held *ready = NULL;
    struct hvd_error cause = {0};
    int status =
        hvd_engine_use_gpu(engine, tensors[0].device, tensors[0].stream, &ready, &cause);

    if (status != 0) {
        return hvd_fail(err, status, "tensor %.80s is on GPU %d: %s", tensors[0].name,
                        tensors[0].device, cause.text);
    }
    for (int i = 0; i < request->count; i++) {
        request->entries[i].ready = hvd_held_keep(ready);
    }
    hvd_held_drop(ready);
    return 0;
}

/* --- ends --- */

static bool is_on_gpu(const struct hvd_request *request)
{
    return request->entries[0].ready != NULL;
}

static int wait_launched(struct hvd_request *request, int timeout_ms,
                         struct hvd_error *err)
{
    struct hvd_engine *engine;

    if (atomic_load(&request->is_launched) ||
        atomic_load(&request->status) != HVD_INPROGRESS) {
        return 0;
    }
    engine = hvd_job_enter(err);
    if (engine == NULL) {
        return HVD_ERR_STATE;
    }
    hvd_engine_wait_launched(engine, request, timeout_ms);
    hvd_job_exit();
    return atomic_load(&request->is_launched) ||
                   atomic_load(&request->status) != HVD_INPROGRESS
               ? 0
               : HVD_INPROGRESS;
}

static int follow(const struct hvd_request *request, void *stream, struct hvd_error *err)
{
    const struct hvd_held *last = NULL;
    int status = 0;

    for (int i = 0; status == 0 && i < request->count; i++) {
        const struct hvd_held *done = request->entries[i].done;

        if (done != NULL && done != last) {
            status = hvd_gpu_mark_wait(done, stream, err);
            last = done;
        }
    }
    return status;
}

HVD_EXPORT int hvd_wait_on(struct hvd_request *request, void *stream, int timeout_ms,
                           struct hvd_error *err)
{
    int status;

    if (!is_on_gpu(request)) {
        return hvd_wait_for(request, timeout_ms, err);
    }
    status = wait_launched(request, timeout_ms, err);
    if (status != 0) {
        return status;
    }
    /* One that has failed, or of which a part has. */
    if (!atomic_load(&request->is_launched) || atomic_load(&request->status) < 0) {
        return hvd_wait_for(request, timeout_ms, err);
    }
    status = follow(request, stream, err);
    if (status == 0) {
        atomic_store(&request->is_on_stream, true);
    }
    return status;
}

struct hvd_entry *hvd_launched_entry(struct hvd_request *request, int index)
{
    bool is_there =
        atomic_load(&request->is_launched) || atomic_load(&request->status) == 0;

    return index >= 0 && index < request->count && is_there &&
                   atomic_load(&request->status) >= 0
               ? &request->entries[index]
               : NULL;
}

static struct hvd_entry *allocated_entry(struct hvd_request *request, int index)
{
    struct hvd_entry *entry = hvd_launched_entry(request, index);

    return entry != NULL && entry->done != NULL &&
                   (entry->proposal.kind == HVD_KIND_ALLGATHER ||
                    entry->proposal.kind == HVD_KIND_ALLTOALL)
               ? entry
               : NULL;
}

HVD_EXPORT int hvd_request_rows(struct hvd_request *request, int index, int64_t *rows)
{
    const struct hvd_entry *entry = allocated_entry(request, index);

    if (entry == NULL) {
        return HVD_ERR_STATE;
    }
    *rows = entry->result_rows;
    return 0;
}

HVD_EXPORT int hvd_request_copy(struct hvd_request *request, int index, void *output,
                                void *stream, struct hvd_error *err)
{
    struct hvd_entry *entry = allocated_entry(request, index);
    struct hvd_gpu_room *room;
    int status;

    if (entry == NULL) {
        return hvd_fail(err, HVD_ERR_STATE,
                        "output %d of this request is not on a GPU, or not there yet",
                        index);
    }
    room = (struct hvd_gpu_room *)entry->room;
    if (room == NULL) {
        return 0; /* it is empty */
    }
    status = hvd_gpu_mark_wait(entry->done, stream, err);
    status = status != 0 ? status
                         : room->pool->module->copy(
                               room->pool->device, output, entry->result,
                               (size_t)(entry->result_rows * hvd_entry_row_bytes(entry)),
                               stream, err);
    return status != 0 ? status : hvd_gpu_room_used(room, stream, err);
}

/* --- facts --- */

static int probe(struct hvd_gpu_facts *facts, struct hvd_error *err)
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

    return probe(&facts, NULL) == 0 ? version_of(&facts.cuda) : 0;
}

HVD_EXPORT int hvd_nccl_version(void)
{
    struct hvd_gpu_facts facts;

    return probe(&facts, NULL) == 0 ? version_of(&facts.nccl) : 0;
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

static int describe_devices(const struct hvd_gpu_module *module, char *text, size_t size)
{
    struct hvd_error err = {0};
    int count = module->count(&err);

    return count < 0 ? snprintf(text, size, "GPUs: unusable: %s\n", err.text)
                     : snprintf(text, size, "GPUs that this process sees: %d\n", count);
}

static int describe_cards(char *text, size_t size)
{
    struct hvd_routes_cards cards;

    hvd_routes_look("", &cards);
    return cards.names[0] == '\0'
               ? snprintf(text, size, "InfiniBand: no active card\n")
               : snprintf(text, size, "InfiniBand: %s; %s\n", cards.names,
                          cards.has_peermem
                              ? "GPUDirect by nvidia_peermem"
                              : "no nvidia_peermem: GPUDirect by dma-buf, or not at all");
}

/* By opening one, as a job over several nodes does. */
static int describe_net(char *text, size_t size)
{
    const char *chosen = getenv(HVD_ENV_UCX_TLS);
    const int version = hvd_net_version();
    struct hvd_error err = {0};
    struct hvd_net *net = NULL;
    bool has_cuda;

    if (version == 0) {
        return snprintf(text, size, "UCX: none, hvd was built without it\n");
    }
    if (hvd_net_create(&net, &err) != 0) {
        return snprintf(text, size, "UCX: unusable: %s\n", err.text);
    }
    has_cuda = hvd_net_has_cuda(net);
    hvd_net_destroy(net);
    return snprintf(text, size, "UCX: %d.%d.%d %s%s%s\n", version / 10000,
                    version / 100 % 100, version % 100,
                    has_cuda ? "with CUDA: GPU memory between nodes"
                             : "without CUDA: pinned host memory between nodes instead",
                    chosen != NULL ? "; " HVD_ENV_UCX_TLS "=" : "",
                    chosen != NULL ? chosen : "");
}

/* What snprintf returns is what it wanted to write. */
static size_t taken(int wanted, size_t size)
{
    return wanted < 0 ? 0 : (size_t)wanted < size ? (size_t)wanted : size - 1;
}

HVD_EXPORT int hvd_gpu_describe(char *text, size_t size)
{
    struct hvd_gpu_facts facts;
    struct hvd_error err = {0};
    size_t at;

    if (size == 0) {
        return HVD_ERR_ARG;
    }
    if (probe(&facts, &err) != 0) {
        snprintf(text, size, "GPU module: unusable: %s\n", err.text);
        return HVD_ERR_UNSUPPORTED;
    }
    at = taken(snprintf(text, size, "GPU module: %s\n", hvd_gpu_loaded_from()), size);
    at += taken(describe_library("CUDA driver", &facts.cuda, text + at, size - at),
                size - at);
    at += taken(describe_library("NCCL", &facts.nccl, text + at, size - at), size - at);
    at += taken(snprintf(text + at, size - at,
                         facts.has_kernels
                             ? "kernels: for %s\n"
                             : "kernels: none, small tensors are copied: %s\n",
                         facts.kernels),
                size - at);
    if (version_of(&facts.cuda) != 0) {
        at +=
            taken(describe_devices(hvd_gpu_load(NULL), text + at, size - at), size - at);
    }
    at += taken(describe_cards(text + at, size - at), size - at);
    at += taken(describe_net(text + at, size - at), size - at);
    hvd_ranges_describe(text + at, size - at);
    return version_of(&facts.cuda) != 0 ? 0 : HVD_ERR_UNSUPPORTED;
}
