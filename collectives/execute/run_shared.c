/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of tensors that lie where all ranks of the node map them. */
#include "collectives/execute/run_shared.h"

#include <stdlib.h>
#include <string.h>

enum {
    /* What is added up at once: the sum is in the nearest cache when it is copied to the
     * others. */
    BLOCK_BYTES = 16 << 10,
};

_Static_assert(sizeof(struct hvd_shared_place) == HVD_SHARED_OFFER_BYTES,
               "an offer is a place");

int hvd_run_shared_plan(struct hvd_run *run)
{
    run->places = calloc((size_t)run->entry_count, sizeof(run->places[0]));
    for (int i = 0; run->places != NULL && i < run->entry_count; i++) {
        int64_t bytes = run->output.begin[i + 1] - run->output.begin[i];

        if (run->output.data[i] != NULL && bytes > 0) {
            hvd_shared_find(run->output.data[i], (size_t)bytes, &run->places[i]);
        }
    }
    return run->places != NULL ? 0 : HVD_ERR_NOMEM;
}

void hvd_run_offer_shared(struct hvd_run *run, const struct hvd_step *step)
{
    memcpy(hvd_team_place(run->team, &step->to), run->places,
           (size_t)run->entry_count * sizeof(run->places[0]));
}

/* Where each local rank has byte `at` of a tensor. */
static int find_sources(struct hvd_run *run, struct hvd_place offer, int tensor,
                        int64_t at)
{
    int status = 0;

    for (int i = 0; i < run->team->local_size && status == 0; i++) {
        struct hvd_shared_place place;
        char *data = NULL;

        if (i == run->team->local_rank) {
            run->sources[i] = run->output.data[tensor] + at;
            continue;
        }
        offer.local_rank = i;
        memcpy(&place, hvd_team_place(run->team, &offer) + (size_t)tensor * sizeof(place),
               sizeof(place));
        status = hvd_team_find_shared(run->team, i, &place, &data);
        run->sources[i] = data + at;
    }
    return status;
}

/* As far as it lies in one tensor; returns 0 and how far. */
static int reduce_block(struct hvd_run *run, const struct hvd_step *step, int64_t begin,
                        size_t *bytes)
{
    const struct hvd_team *team = run->team;
    char *own = hvd_segments_at(&run->output, begin, bytes);
    int tensor = run->output.last, status;

    if (own == NULL) { /* nobody wants the result of this batch */
        return 0;
    }
    status = find_sources(run, step->from, tensor, begin - run->output.begin[tensor]);
    if (status != 0) {
        return status;
    }
    hvd_reduce(&run->reduction, run->sources, team->local_size,
               *bytes / hvd_dtype_bytes(run->reduction.dtype), own);
    for (int i = 0; i < team->local_size; i++) {
        if (i != team->local_rank) {
            memcpy((char *)run->sources[i], own, *bytes);
        }
    }
    return 0;
}

/* Maps all that a step touches, which may take a while. */
static int map_all(struct hvd_run *run, const struct hvd_step *step, size_t left)
{
    int64_t begin = step->begin;
    int status = 0;

    while (left > 0 && status == 0) {
        size_t bytes = left;

        if (hvd_segments_at(&run->output, begin, &bytes) != NULL) {
            status = find_sources(run, step->from, run->output.last, 0);
        }
        begin += (int64_t)bytes;
        left -= bytes;
    }
    return status;
}

int hvd_run_reduce_shared(struct hvd_run *run, const struct hvd_step *step)
{
    int64_t begin = step->begin;
    size_t left = step->count * hvd_dtype_bytes(run->reduction.dtype);
    int status = map_all(run, step, left);

    if (status != 0) {
        return status;
    }
    if (!hvd_team_begin_stores(run->team)) {
        return HVD_INPROGRESS;
    }
    while (left > 0 && status == 0) {
        size_t bytes = left < BLOCK_BYTES ? left : BLOCK_BYTES;

        status = hvd_team_may_store(run->team) ? reduce_block(run, step, begin, &bytes)
                                               : HVD_INPROGRESS;
        begin += (int64_t)bytes;
        left -= bytes;
    }
    hvd_team_end_stores(run->team);
    return status;
}
