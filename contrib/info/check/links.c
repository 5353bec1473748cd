/* SPDX-License-Identifier: Apache-2.0 */
/* In a pair, the rank with the lower number sends first, then the other one:
 *
 *   sender                     receiver
 *   small message         -->
 *                         <--  small message       repeated; the fastest is the latency
 *   size                  -->
 *   bytes of that size    -->
 *                         <--  small message       repeated with sizes that double
 *   0                     -->                      the end
 */
#include "contrib/info/check/links.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "contrib/info/check/pairs.h"
#include "contrib/info/check/values.h"
#include "gpu_binding/base/clock.h"

enum {
    LIMIT_MS = 60000,
    ECHOES = 50,
    LEAST_BYTES = 64 << 10,
    NODE_BYTES = 32 << 20, /* between nodes */
    LOCAL_BYTES = 4 << 20, /* in a node, where many pairs measure at once */
    GPU_BYTES = 256 << 20, /* about a millisecond over NVLink */
    GPU_FLOATS = 16 << 20,
    ALLREDUCE_FLOATS = 1 << 20,
    REPEATS = 3,
};

/* A pair that measures, seen from one of its ranks. */
struct pair {
    const struct hvd_info_library *library;
    int peer;
    size_t bytes; /* of the largest message */
    void *memory; /* at least as large */
    const struct hvd_info_gpu *gpu; /* whose memory it is; NULL: of the host */
    int64_t budget_ns;
    double gbs; /* found: from this rank to the peer */
    double us;
};

int hvd_info_links_finish(const struct hvd_info_library *library,
                          struct hvd_request *request, struct hvd_error *err)
{
    int status = library->wait_for(request, LIMIT_MS, err);

    if (status == HVD_INPROGRESS) {
        /* freeing the request would wait for it without a limit */
        return hvd_fail(err, HVD_ERR_TIMEOUT,
                        "the other ranks have not answered within %d seconds",
                        LIMIT_MS / 1000);
    }
    library->request_free(request);
    return status;
}

static struct hvd_tensor describe_bytes(const struct pair *pair, void *data,
                                        const int64_t *bytes)
{
    bool is_on_gpu = pair->gpu != NULL && data == pair->memory;

    return (struct hvd_tensor){.input = data,
                               .output = data,
                               .shape = bytes,
                               .ndim = 1,
                               .dtype = HVD_UINT8,
                               .device = is_on_gpu ? pair->gpu->device : HVD_DEVICE_CPU};
}

static int finish_message(const struct pair *pair, struct hvd_request *request,
                          struct hvd_error *err)
{
    struct hvd_error cause = {0};
    int status = hvd_info_links_finish(pair->library, request, &cause);

    return status == 0
               ? 0
               : hvd_fail(err, status,
                          "cannot exchange messages with rank %d on %s: %.300s",
                          pair->peer, pair->library->host(pair->peer), cause.text);
}

static int send_bytes(const struct pair *pair, void *data, int64_t bytes,
                      struct hvd_error *err)
{
    struct hvd_tensor tensor = describe_bytes(pair, data, &bytes);
    struct hvd_request *request;
    int status =
        pair->library->send_start(&tensor, pair->peer, 0, HVD_SET_GLOBAL, &request, err);

    return status == 0 ? finish_message(pair, request, err) : status;
}

static int receive_bytes(const struct pair *pair, void *data, int64_t bytes,
                         struct hvd_error *err)
{
    struct hvd_tensor tensor = describe_bytes(pair, data, &bytes);
    struct hvd_request *request;
    int status =
        pair->library->recv_start(&tensor, pair->peer, 0, HVD_SET_GLOBAL, &request, err);

    return status == 0 ? finish_message(pair, request, err) : status;
}

/* Sends a number and waits for the answer. */
static int ask_number(const struct pair *pair, int64_t number, struct hvd_error *err)
{
    int status = send_bytes(pair, &number, sizeof(number), err);

    return status == 0 ? receive_bytes(pair, &number, sizeof(number), err) : status;
}

static int measure_latency(struct pair *pair, struct hvd_error *err)
{
    int64_t until = hvd_clock_ns() + pair->budget_ns / 4;

    for (int left = ECHOES; left >= 0; left--) {
        int64_t start = hvd_clock_ns();
        int status = ask_number(pair, left, err);
        double us = (double)(hvd_clock_ns() - start) / 2e3;

        if (status != 0) {
            return status;
        }
        pair->us = fmin(pair->us, us);
        left = hvd_clock_ns() > until && left > 1 ? 1 : left;
    }
    return 0;
}

static int measure_bandwidth(struct pair *pair, struct hvd_error *err)
{
    int64_t until = hvd_clock_ns() + pair->budget_ns;
    int64_t end = 0;
    int repeats = REPEATS;

    for (int64_t bytes = LEAST_BYTES; repeats > 0 && hvd_clock_ns() < until;) {
        int64_t start = hvd_clock_ns();
        int status = send_bytes(pair, &bytes, sizeof(bytes), err);

        if (status == 0) {
            status = send_bytes(pair, pair->memory, bytes, err);
        }
        if (status == 0) {
            status = receive_bytes(pair, &end, sizeof(end), err);
        }
        if (status != 0) {
            return status;
        }
        pair->gbs = fmax(pair->gbs, (double)bytes / (double)(hvd_clock_ns() - start));
        if ((size_t)bytes < pair->bytes) {
            bytes *= 2;
        } else {
            repeats--;
        }
    }
    end = 0;
    return send_bytes(pair, &end, sizeof(end), err);
}

/* Answers the measurements of the peer. */
static int serve(const struct pair *pair, struct hvd_error *err)
{
    int64_t number = 1;
    int status = 0;

    while (status == 0 && number > 0) {
        status = receive_bytes(pair, &number, sizeof(number), err);
        if (status == 0) {
            status = send_bytes(pair, &number, sizeof(number), err);
        }
    }
    for (number = 1; status == 0;) {
        status = receive_bytes(pair, &number, sizeof(number), err);
        if (status != 0 || number == 0) {
            break;
        }
        status = receive_bytes(pair, pair->memory, number, err);
        if (status == 0) {
            status = send_bytes(pair, &number, sizeof(number), err);
        }
    }
    return status;
}

static int measure(struct pair *pair, struct hvd_error *err)
{
    int status = measure_latency(pair, err);

    return status == 0 ? measure_bandwidth(pair, err) : status;
}

static int run_pair(struct pair *pair, struct hvd_error *err)
{
    bool is_first = pair->library->rank() < pair->peer;
    int status;

    pair->us = INFINITY;
    pair->gbs = 0;
    status = is_first ? measure(pair, err) : serve(pair, err);
    if (status == 0) {
        status = is_first ? serve(pair, err) : measure(pair, err);
    }
    return status;
}

static int wait_for_all(const struct hvd_info_library *library, struct hvd_error *err)
{
    struct hvd_request *request;
    int status = library->barrier_start(HVD_SET_GLOBAL, &request, err);

    return status == 0 ? hvd_info_links_finish(library, request, err) : status;
}

int hvd_info_links_first(const struct hvd_info_nodes *nodes, int node)
{
    int rank = 0;

    while (nodes->node_of[rank] != node) {
        rank++;
    }
    return rank;
}

int hvd_info_links_local_number(const struct hvd_info_nodes *nodes, int rank)
{
    int number = 0;

    for (int other = 0; other < rank; other++) {
        number += nodes->node_of[other] == nodes->node_of[rank];
    }
    return number;
}

/* Returns the rank with this number on a node. */
static int rank_of(const struct hvd_info_nodes *nodes, int node, int number)
{
    int rank = 0;

    for (; nodes->node_of[rank] != node || number > 0; rank++) {
        number -= nodes->node_of[rank] == node;
    }
    return rank;
}

/* Finds out whether both ranks of the pair have the same GPU. */
static int compare_gpus(const struct pair *pair, bool *is_shared, struct hvd_error *err)
{
    char uuid[HVD_INFO_GPU_UUID_BYTES];
    bool is_first = pair->library->rank() < pair->peer;
    int status;

    memcpy(uuid, pair->gpu->uuid, sizeof(uuid));
    status = is_first ? send_bytes(pair, uuid, sizeof(uuid), err)
                      : receive_bytes(pair, uuid, sizeof(uuid), err);
    if (status != 0) {
        return status;
    }
    *is_shared = memcmp(uuid, pair->gpu->uuid, sizeof(uuid)) == 0;
    memcpy(uuid, pair->gpu->uuid, sizeof(uuid));
    status = is_first ? receive_bytes(pair, uuid, sizeof(uuid), err)
                      : send_bytes(pair, uuid, sizeof(uuid), err);
    if (status == 0 && is_first) {
        *is_shared = memcmp(uuid, pair->gpu->uuid, sizeof(uuid)) == 0;
    }
    return status;
}

/* Measures all pairs of neighbours of a node at once. *found gets the rate, unless the
 * two share a GPU. */
static int measure_local(struct pair *pair, const struct hvd_info_nodes *nodes,
                         double *found, struct hvd_error *err)
{
    int rank = pair->library->rank();
    int node = nodes->node_of[rank];
    int partner = hvd_info_pairs_partner(hvd_info_links_local_number(nodes, rank),
                                         nodes->ranks_of[node], 0);
    int status = 0;

    if (partner >= 0) {
        bool is_shared = false;

        pair->peer = rank_of(nodes, node, partner);
        status = pair->gpu != NULL ? compare_gpus(pair, &is_shared, err) : 0;
        if (status == 0 && !is_shared) {
            status = run_pair(pair, err);
            *found = pair->gbs;
        }
    }
    return status == 0 ? wait_for_all(pair->library, err) : status;
}

static int measure_round(struct pair *pair, const struct hvd_info_nodes *nodes, int round,
                         double *values, struct hvd_error *err)
{
    int rank = pair->library->rank();
    int node = nodes->node_of[rank];
    int partner = hvd_info_pairs_partner(node, nodes->count, round);
    int status = 0;

    pair->bytes = NODE_BYTES;
    if (partner >= 0 && hvd_info_links_first(nodes, node) == rank) {
        pair->peer = hvd_info_links_first(nodes, partner);
        status = run_pair(pair, err);
        values[HVD_INFO_LINK_GBS + round] = pair->gbs;
        values[HVD_INFO_LINK_US + round] = pair->us;
    }
    return status == 0 ? wait_for_all(pair->library, err) : status;
}

/* Reduces once. The time in nanoseconds replaces *best if it is less. */
static int time_allreduce(const struct hvd_info_library *library,
                          const struct hvd_tensor *tensor, enum hvd_op op, double *best,
                          struct hvd_error *err)
{
    struct hvd_request *request;
    int64_t start = hvd_clock_ns();
    int status =
        library->allreduce_start(tensor, 1, op, 1, 1, HVD_SET_GLOBAL, &request, err);

    if (status == 0) {
        status = hvd_info_links_finish(library, request, err);
    }
    *best = fmin(*best, (double)(hvd_clock_ns() - start));
    return status;
}

/* Reduces `count` floats of this memory a few times. *best gets the shortest time in
 * nanoseconds. */
static int time_floats(const struct hvd_info_library *library, void *data, int64_t count,
                       int device, double *best, struct hvd_error *err)
{
    const struct hvd_tensor tensor = {.name = "check",
                                      .input = data,
                                      .output = data,
                                      .shape = &count,
                                      .ndim = 1,
                                      .dtype = HVD_FLOAT32,
                                      .device = device};
    int status = 0;

    *best = INFINITY;
    for (int i = 0; i < REPEATS && status == 0; i++) {
        status = time_allreduce(library, &tensor, HVD_SUM, best, err);
    }
    return status;
}

static int measure_allreduce(const struct hvd_info_library *library, double *values,
                             struct hvd_error *err)
{
    float *data = calloc(ALLREDUCE_FLOATS, sizeof(*data));
    double best;
    int status;

    if (data == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for an allreduce");
    }
    status = time_floats(library, data, ALLREDUCE_FLOATS, HVD_DEVICE_CPU, &best, err);
    values[HVD_INFO_ALLREDUCE_MS] = best / 1e6;
    free(data);
    return status;
}

/* Finds out whether all ranks say yes. */
static int all_agree(const struct hvd_info_library *library, bool mine, bool *all,
                     struct hvd_error *err)
{
    int32_t least = mine;
    const int64_t one = 1;
    const struct hvd_tensor tensor = {.name = "memory of a GPU",
                                      .input = &least,
                                      .output = &least,
                                      .shape = &one,
                                      .ndim = 1,
                                      .dtype = HVD_INT32,
                                      .device = HVD_DEVICE_CPU};
    double time = 0;
    int status = time_allreduce(library, &tensor, HVD_MIN, &time, err);

    *all = least != 0;
    return status;
}

/* Bus bandwidth as nccl-tests define it, which does not depend on the number of ranks. */
static int measure_gpu_allreduce(const struct pair *pair, double *values,
                                 struct hvd_error *err)
{
    const double ranks = pair->library->size();
    const double bytes = (double)GPU_FLOATS * sizeof(float);
    double best;
    int status = time_floats(pair->library, pair->memory, GPU_FLOATS, pair->gpu->device,
                             &best, err);

    values[HVD_INFO_GPU_ALLREDUCE_GBS] = bytes * 2 * (ranks - 1) / ranks / best;
    return status;
}

int hvd_info_links_gpus(const struct hvd_info_library *library,
                        const struct hvd_info_nodes *nodes,
                        const struct hvd_info_gpu *gpu, bool is_usable, double budget_s,
                        double *values, struct hvd_error *err)
{
    struct pair pair = {.library = library,
                        .bytes = GPU_BYTES,
                        .memory =
                            gpu->device >= 0 ? hvd_info_gpu_alloc(gpu, GPU_BYTES) : NULL,
                        .gpu = gpu,
                        .budget_ns = (int64_t)(budget_s * 1e9)};
    bool is_measured = false;
    int status = all_agree(library, is_usable && pair.memory != NULL, &is_measured, err);

    if (status == 0 && is_measured) {
        /* first, because it also connects the GPUs */
        status = measure_gpu_allreduce(&pair, values, err);
    }
    if (status == 0 && is_measured) {
        status = measure_local(&pair, nodes, &values[HVD_INFO_GPU_PAIR_GBS], err);
    }
    hvd_info_gpu_free(gpu, pair.memory);
    return status;
}

int hvd_info_links(const struct hvd_info_library *library,
                   const struct hvd_info_nodes *nodes, double budget_s, double *values,
                   struct hvd_error *err)
{
    struct pair pair = {.library = library,
                        .bytes = LOCAL_BYTES,
                        .memory = calloc(1, NODE_BYTES),
                        .budget_ns = (int64_t)(budget_s * 1e9)};
    int status;

    if (pair.memory == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for %d bytes", NODE_BYTES);
    }
    status = wait_for_all(library, err);
    if (status == 0) {
        status = measure_local(&pair, nodes, &values[HVD_INFO_LOCAL_GBS], err);
    }
    for (int round = 0; round < HVD_INFO_ROUNDS && status == 0; round++) {
        status = measure_round(&pair, nodes, round, values, err);
    }
    free(pair.memory);
    return status == 0 ? measure_allreduce(library, values, err) : status;
}
