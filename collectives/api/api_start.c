/* SPDX-License-Identifier: Apache-2.0 */
/* The public interface: starting collectives. */
#include <inttypes.h>
#include <stdio.h>

#include "collectives/agreement/hash_table.h"
#include "collectives/api/api_start.h"
#include "collectives/engine/process_sets.h"
#include "gpu_binding/base/attr.h"

/* The tensors of one call are a group: on all ranks that make the same call, the same
 * number. */
static void form_group(struct hvd_request *request)
{
    uint64_t group = (uint64_t)request->count;

    for (int i = 0; i < request->count; i++) {
        struct hvd_key key = hvd_key_make(0, request->entries[i].proposal.name);

        group = hvd_hash_number(group ^ key.hash);
    }
    for (int i = 0; i < request->count; i++) {
        request->entries[i].proposal.group = group;
        request->entries[i].proposal.group_size = request->count;
    }
}

static int check_devices(const struct hvd_tensor *tensors, int count,
                         struct hvd_error *err)
{
    for (int i = 1; i < count; i++) {
        if (tensors[i].device != tensors[0].device ||
            tensors[i].stream != tensors[0].stream) {
            return hvd_fail(err, HVD_ERR_ARG,
                            "tensors %.100s and %.100s of one call are on different %s: "
                            "start them apart",
                            tensors[0].name, tensors[i].name,
                            tensors[i].device != tensors[0].device ? "devices"
                                                                   : "streams");
        }
    }
    return 0;
}

static int fill_request(struct hvd_engine *engine, struct hvd_start *start,
                        const struct hvd_tensor *tensors, struct hvd_request *request,
                        struct hvd_error *err)
{
    int status = hvd_check_place(engine, start, err);

    for (int i = 0; status == 0 && i < request->count; i++) {
        status = hvd_check_entry(start, &tensors[i], &request->entries[i], err);
    }
    if (status == 0 && request->count > 1) {
        form_group(request);
        status = check_devices(tensors, request->count, err);
    }
    return status != 0 || tensors[0].device == HVD_DEVICE_CPU
               ? status
               : hvd_start_gpu(engine, tensors, request, err);
}

int hvd_start_submit(struct hvd_start *start, const struct hvd_tensor *tensors, int count,
                     struct hvd_request **out, struct hvd_error *err)
{
    struct hvd_engine *engine;
    struct hvd_request *request;
    int status;

    if (count < 1 || tensors == NULL || out == NULL) {
        return hvd_fail(err, HVD_ERR_ARG, "%s of %d tensors: at least one is needed",
                        start->word, count);
    }
    engine = hvd_job_enter(err);
    if (engine == NULL) {
        return HVD_ERR_STATE;
    }
    request = hvd_request_create(count);
    status = request == NULL
                 ? hvd_fail(err, HVD_ERR_NOMEM, "no memory for %s", start->word)
                 : fill_request(engine, start, tensors, request, err);
    if (status == 0) {
        request->range_name = start->is_own_name ? NULL : start->word;
        status = hvd_engine_submit(engine, request, err);
    }
    hvd_job_exit();
    if (status != 0) {
        hvd_request_destroy(request);
        return status;
    }
    *out = request;
    return 0;
}

int hvd_start_without_tensor(struct hvd_start *start, const char *word, int64_t number,
                             struct hvd_request **out, struct hvd_error *err)
{
    char name[64];
    const struct hvd_tensor tensor = {
        .name = name, .dtype = HVD_UINT8, .device = HVD_DEVICE_CPU};

    if (number < 0) {
        snprintf(name, sizeof(name), HVD_RESERVED_NAMES "%s", word);
    } else {
        snprintf(name, sizeof(name), HVD_RESERVED_NAMES "%s.%" PRId64, word, number);
    }
    start->op = HVD_SUM;
    start->is_own_name = true;
    return hvd_start_submit(start, &tensor, 1, out, err);
}

HVD_EXPORT int hvd_allreduce_start(const struct hvd_tensor *tensors, int count,
                                   enum hvd_op op, double prescale, double postscale,
                                   int set, struct hvd_request **request,
                                   struct hvd_error *err)
{
    struct hvd_start start = {
        .kind = op == HVD_ADASUM ? HVD_KIND_ADASUM : HVD_KIND_ALLREDUCE,
        .word = "Allreduce",
        .op = op,
        .prescale = prescale,
        .postscale = postscale,
        .set = set,
    };

    return hvd_start_submit(&start, tensors, count, request, err);
}

HVD_EXPORT int hvd_allgather_start(const struct hvd_tensor *tensors, int count, int set,
                                   struct hvd_request **request, struct hvd_error *err)
{
    struct hvd_start start = {
        .kind = HVD_KIND_ALLGATHER, .word = "Allgather", .op = HVD_SUM, .set = set};

    return hvd_start_submit(&start, tensors, count, request, err);
}

HVD_EXPORT int hvd_broadcast_start(const struct hvd_tensor *tensor, int root, int set,
                                   struct hvd_request **request, struct hvd_error *err)
{
    struct hvd_start start = {.kind = HVD_KIND_BROADCAST,
                              .word = "Broadcast",
                              .op = HVD_SUM,
                              .set = set,
                              .root = root};

    return hvd_start_submit(&start, tensor, 1, request, err);
}

HVD_EXPORT int hvd_alltoall_start(const struct hvd_tensor *tensor, const int32_t *splits,
                                  int nsplits, int set, struct hvd_request **request,
                                  struct hvd_error *err)
{
    struct hvd_start start = {.kind = HVD_KIND_ALLTOALL,
                              .word = "Alltoall",
                              .op = HVD_SUM,
                              .set = set,
                              .splits = splits,
                              .nsplits = nsplits};

    return hvd_start_submit(&start, tensor, 1, request, err);
}

HVD_EXPORT int hvd_reducescatter_start(const struct hvd_tensor *tensors, int count,
                                       enum hvd_op op, double prescale, double postscale,
                                       int set, struct hvd_request **request,
                                       struct hvd_error *err)
{
    struct hvd_start start = {
        .kind = HVD_KIND_REDUCESCATTER,
        .word = "Reducescatter",
        .op = op,
        .prescale = prescale,
        .postscale = postscale,
        .set = set,
    };

    return hvd_start_submit(&start, tensors, count, request, err);
}

HVD_EXPORT int hvd_barrier_start(int set, struct hvd_request **request,
                                 struct hvd_error *err)
{
    struct hvd_start start = {.kind = HVD_KIND_BARRIER, .word = "Barrier", .set = set};
    struct hvd_engine *engine = hvd_job_enter(err);
    int64_t number = 0;
    int status;

    if (engine == NULL) {
        return HVD_ERR_STATE;
    }
    /* Before it is counted: other ranks may not have made the mistake. */
    status = hvd_check_place(engine, &start, err);
    if (status == 0) {
        number = hvd_process_sets_number(hvd_engine_process_sets(engine), set,
                                         HVD_UNNAMED_BARRIERS);
    }
    hvd_job_exit();
    return status != 0
               ? status
               : hvd_start_without_tensor(&start, "barrier", number, request, err);
}
