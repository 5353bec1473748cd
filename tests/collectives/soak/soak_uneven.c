/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that run out of work one after the other, and join. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/collectives/soak/soak.h"

struct uneven {
    struct soak_call calls[SOAK_MOST_CALLS];
    struct soak_flight flights[SOAK_MOST_CALLS];
    int count;
    int steps[SOAK_RANKS];
    int most; /* the most steps of any rank */
    int last; /* the rank that has the most steps, or -1 if there are several */
    /* each rank waits for the tensors of its last step after it has started to join */
    bool waits_late;
};

static void draw_uneven(struct soak *soak, struct uneven *uneven)
{
    struct soak_random *random = &soak->shared;
    uint32_t most = soak_chance(random, 2) ? 4 : 30;

    uneven->count = 1 + (int)soak_pick(random, 8);
    for (int i = 0; i < uneven->count; i++) {
        uneven->calls[i] = soak_draw_gradient(random);
        uneven->calls[i].tensors = soak_chance(random, 5) ? 2 : 1;
        uneven->calls[i].rows[1] = 77;
        snprintf(uneven->calls[i].name, sizeof(uneven->calls[i].name), "uneven.%d", i);
    }
    uneven->most = -1;
    for (int i = 0; i < soak->size; i++) {
        uneven->steps[i] = (int)soak_pick(random, most);
        if (uneven->steps[i] >= uneven->most) {
            uneven->last = uneven->steps[i] > uneven->most ? i : -1;
            uneven->most = uneven->steps[i];
        }
    }
    uneven->waits_late = soak_chance(random, 3);
}

/* Starts a call that is refused while a rank has joined. */
static void start_impossible(struct soak *soak, struct soak_call *call,
                             struct soak_flight *flight, unsigned joined)
{
    /* draws from a copy, because the joined ranks do not draw */
    struct soak_random random = soak->shared;

    do {
        *call = soak_draw(&random, 0, soak->size, 100);
    } while (call->kind == SOAK_BARRIER || call->kind == SOAK_ADASUM ||
             (call->kind == SOAK_ALLREDUCE && call->op < HVD_MIN));
    snprintf(call->name, sizeof(call->name), "impossible");
    call->joined = joined;
    call->fault = SOAK_JOINED;
    call->culprit = -1;
    soak_start(soak, call, flight);
}

/* Tests that barriers work while ranks have joined, and adding process sets does not. */
static void try_sets(struct soak *soak)
{
    int only = soak->size - 1;
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    if (hvd_barrier_start(0, &request, &err) != 0 || soak_end(soak, request, &err) != 0) {
        soak_fail(soak, "barrier failed while a rank had joined: %s", err.text);
    }
    hvd_request_free(request);
    if (hvd_set_add_start(&only, 1, &request, &err) != 0 ||
        soak_end(soak, request, &err) != HVD_ERR_MISMATCH) {
        soak_fail(soak, "a process set was added while a rank had joined");
    }
    hvd_request_free(request);
}

static void play_uneven_step(struct soak *soak, struct uneven *uneven, int step)
{
    struct soak_call impossible;
    struct soak_flight flight = {0};
    unsigned joined = 0;

    for (int i = 0; i < soak->size; i++) {
        joined |= uneven->steps[i] <= step ? 1u << i : 0;
    }
    if (joined != 0 && step % 3 == 1) {
        start_impossible(soak, &impossible, &flight, joined);
    }
    for (int i = 0; i < uneven->count; i++) {
        uneven->calls[i].seed++;
        uneven->calls[i].joined = joined;
        soak_start_next(soak, &uneven->calls[i], &uneven->flights[i]);
    }
    soak_finish(soak, &flight);
    if (joined != 0 && step % 5 == 2) {
        try_sets(soak);
    }
}

static int join(struct soak *soak, struct uneven *uneven)
{
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int last;

    if (hvd_join_start(&request, &err) != 0) {
        soak_fail(soak, "join cannot start: %s", err.text);
    }
    soak_finish_all(soak, uneven->flights, uneven->count);
    if (soak_end(soak, request, &err) != 0) {
        soak_fail(soak, "join failed: %s", err.text);
    }
    last = hvd_request_last_rank(request);
    hvd_request_free(request);
    return last;
}

void soak_uneven(struct soak *soak)
{
    struct uneven *uneven = calloc(1, sizeof(*uneven));
    int last;

    soak_note(soak, "ranks with uneven work that join");
    draw_uneven(soak, uneven);
    for (int step = 0; step < uneven->steps[soak->rank]; step++) {
        bool waits = step + 1 < uneven->steps[soak->rank] || !uneven->waits_late;

        play_uneven_step(soak, uneven, step);
        soak_finish_all(soak, uneven->flights, waits ? uneven->count : 0);
    }
    last = join(soak, uneven);
    soak_agree(soak, last);
    if (last < 0 || last >= soak->size ||
        (uneven->last >= 0 && !uneven->waits_late && last != uneven->last)) {
        soak_fail(soak, "rank %d joined last, not rank %d", last, uneven->last);
    }
    free(uneven);
}
