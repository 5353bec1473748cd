/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that very many tensors with long names may be in flight at the same time:
 * messages stay far below the size that a connection allows, and all tensors end as
 * usual. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/log.h"
#include "tests/collectives/agreement/agreement_try.h"

enum {
    RANKS = 4,
    TENSORS = 400,
    NAME_BYTES = 8000,
    MOST_BYTES = 2 << 20
};

static const int nodes[] = {2, 1, 1, 0};

/* The requests of all ranks. */
struct requests {
    struct hvd_request *list[RANKS * (TENSORS + 1)];
    int count;
};

static void submit(struct sim *sim, struct requests *requests, int rank,
                   enum hvd_kind kind, const char *name)
{
    struct hvd_descriptor tensor = sim_allreduce(name, 10);
    const struct hvd_descriptor *only = &tensor;

    tensor.kind = kind;
    requests->list[requests->count++] = sim_submit(sim, rank, &only, 1);
}

/* Submits all tensors before any message is sent. */
static void submit_many(struct sim *sim, struct requests *requests, int rank,
                        enum hvd_kind kind)
{
    for (int i = 0; i < TENSORS; i++) {
        char name[NAME_BYTES + 1];

        memset(name, 'x', NAME_BYTES);
        name[snprintf(name, sizeof(name), "%d", i)] = '.';
        name[NAME_BYTES] = '\0';
        submit(sim, requests, rank, kind, name);
    }
}

static bool settle(struct sim *sim, struct requests *requests)
{
    bool good = true;

    while (sim_step(sim, 1000000000)) {
    }
    for (int i = 0; i < requests->count; i++) {
        good &= atomic_load(&requests->list[i]->status) == 0;
        hvd_request_drop(requests->list[i]);
    }
    requests->count = 0;
    return good;
}

/* Gathers the tensors twice. The first time, ranks describe them in full; the second
 * time, they may name them by id. */
static bool gather_all(struct sim *sim, struct requests *requests)
{
    bool good = true;

    for (int round = 0; round < 2; round++) {
        for (int rank = 0; rank < RANKS; rank++) {
            submit_many(sim, requests, rank, HVD_KIND_ALLGATHER);
        }
        good &= settle(sim, requests);
    }
    return good;
}

/* The last rank submits no tensor before its join. All tensors must end before the join
 * does. */
static bool sum_and_join(struct sim *sim, struct requests *requests)
{
    for (int rank = 0; rank < RANKS; rank++) {
        if (rank < RANKS - 1) {
            submit_many(sim, requests, rank, HVD_KIND_ALLREDUCE);
        }
        submit(sim, requests, rank, HVD_KIND_JOIN, "hvd.join");
    }
    return settle(sim, requests);
}

static void try_one(const char *promise,
                    bool (*play)(struct sim *sim, struct requests *requests),
                    int capacity, unsigned seed)
{
    static struct requests requests;
    struct hvd_agreement_settings settings = sim_settings();
    struct sim sim;
    bool good;

    settings.fusion.capacity = capacity;
    sim_init(&sim, nodes, &settings, seed);
    good = play(&sim, &requests);
    if (!tap_ok(good && sim.fault[0] == '\0' && sim.most_bytes <= MOST_BYTES, "%s",
                promise)) {
        tap_note("%s; the longest message has %zu bytes", sim.fault, sim.most_bytes);
    }
    sim_finish(&sim);
}

int main(void)
{
    unsigned seed = tap_seed(23);

    hvd_log_least(HVD_LOG_ERROR);
    try_one("reports and decisions are cut into parts", gather_all, 2 * TENSORS, seed);
    try_one("decisions before the end of a join are cut into parts", sum_and_join,
            2 * TENSORS, seed);
    try_one("tensors that are described anew each time are cut into parts", gather_all, 3,
            seed);
    return tap_done();
}
