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
    ALLREDUCE_FLOATS = 1 << 20,
    REPEATS = 3,
};

/* A pair that measures, seen from one of its ranks. */
struct pair {
    const struct hvd_info_library *library;
    int peer;
    size_t bytes; /* of memory */
    char *memory;
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

static struct hvd_tensor describe_bytes(void *data, const int64_t *bytes)
{
    return (struct hvd_tensor){.input = data,
                               .output = data,
                               .shape = bytes,
                               .ndim = 1,
                               .dtype = HVD_UINT8,
                               .device = HVD_DEVICE_CPU};
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
    struct hvd_tensor tensor = describe_bytes(data, &bytes);
    struct hvd_request *request;
    int status =
        pair->library->send_start(&tensor, pair->peer, 0, HVD_SET_GLOBAL, &request, err);

    return status == 0 ? finish_message(pair, request, err) : status;
}

static int receive_bytes(const struct pair *pair, void *data, int64_t bytes,
                         struct hvd_error *err)
{
    struct hvd_tensor tensor = describe_bytes(data, &bytes);
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
    pair->memory = calloc(1, pair->bytes);
    if (pair->memory == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for %zu bytes", pair->bytes);
    }
    status = is_first ? measure(pair, err) : serve(pair, err);
    if (status == 0) {
        status = is_first ? serve(pair, err) : measure(pair, err);
    }
    free(pair->memory);
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

/* Returns the number of this rank among those of its node. */
static int local_number(const struct hvd_info_nodes *nodes, int rank)
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

static int measure_local(struct pair *pair, const struct hvd_info_nodes *nodes,
                         double *values, struct hvd_error *err)
{
    int rank = pair->library->rank();
    int node = nodes->node_of[rank];
    int partner =
        hvd_info_pairs_partner(local_number(nodes, rank), nodes->ranks_of[node], 0);
    int status = 0;

    pair->bytes = LOCAL_BYTES;
    if (partner >= 0) {
        pair->peer = rank_of(nodes, node, partner);
        status = run_pair(pair, err);
        values[HVD_INFO_LOCAL_GBS] = pair->gbs;
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

static int measure_allreduce(const struct hvd_info_library *library, double *values,
                             struct hvd_error *err)
{
    const int64_t shape[] = {ALLREDUCE_FLOATS};
    float *data = calloc(ALLREDUCE_FLOATS, sizeof(*data));
    struct hvd_tensor tensor = {.name = "check",
                                .input = data,
                                .output = data,
                                .shape = shape,
                                .ndim = 1,
                                .dtype = HVD_FLOAT32,
                                .device = HVD_DEVICE_CPU};
    double best = INFINITY;
    int status =
        data != NULL ? 0 : hvd_fail(err, HVD_ERR_NOMEM, "no memory for an allreduce");

    for (int i = 0; i < REPEATS && status == 0; i++) {
        struct hvd_request *request;
        int64_t start = hvd_clock_ns();

        status = library->allreduce_start(&tensor, 1, HVD_SUM, 1, 1, HVD_SET_GLOBAL,
                                          &request, err);
        if (status == 0) {
            status = hvd_info_links_finish(library, request, err);
        }
        best = fmin(best, (double)(hvd_clock_ns() - start) / 1e6);
    }
    values[HVD_INFO_ALLREDUCE_MS] = best;
    free(data);
    return status;
}

int hvd_info_links(const struct hvd_info_library *library,
                   const struct hvd_info_nodes *nodes, double budget_s, double *values,
                   struct hvd_error *err)
{
    struct pair pair = {.library = library, .budget_ns = (int64_t)(budget_s * 1e9)};
    int status = wait_for_all(library, err);

    if (status == 0) {
        status = measure_local(&pair, nodes, values, err);
    }
    for (int round = 0; round < HVD_INFO_ROUNDS && status == 0; round++) {
        status = measure_round(&pair, nodes, round, values, err);
    }
    return status == 0 ? measure_allreduce(library, values, err) : status;
}
