/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that access the input or output of another rank in place. */
#include <stdlib.h>
#include <string.h>

#include "collectives/reduce/reduce.h"
#include "tests/collectives/schedule/sim_internal.h"

/* The content of an OFFER. The offset of the offered memory is in player->offered. */
struct offer {
    int16_t rank;
    int16_t job;
    int16_t is_output;
    int16_t is_offer; /* `mark`; else the location holds garbage */
};

_Static_assert(sizeof(struct offer) == sizeof(uint64_t), "as large as an address");

static const int16_t mark = 0x0ffe;

/* Returns bytes [begin, begin + bytes) of a rank's input or output; NULL if they are out
 * of bounds. */
static char *data_of(const struct sim_job *job, int rank, bool is_output, int64_t begin,
                     size_t bytes)
{
    int64_t room = is_output ? job->output_bytes[rank] : job->input_bytes[rank];
    char *data = is_output ? job->outputs[rank] : job->inputs[rank];

    return begin >= 0 && begin + (int64_t)bytes <= room ? data + begin : NULL;
}

static enum outcome copy(const struct player *player, char *to, const char *from,
                         size_t bytes)
{
    if (to == NULL || from == NULL) {
        return sim_fail(player, "COPY, FETCH or STORE out of bounds");
    }
    memcpy(to, from, bytes);
    return MOVED;
}

static enum outcome offer(struct sim *sim, struct player *player,
                          const struct hvd_step *step)
{
    struct offer made = {(int16_t)player->rank, (int16_t)player->job,
                         (int16_t)step->offer.is_output, mark};
    char *to = sim_memory(sim, player, &step->offer.to, sizeof(uint64_t), true);

    if (to == NULL) {
        return sim_fail(player, "OFFER out of bounds");
    }
    player->offered[step->offer.to.offset / sizeof(uint64_t)] = step->offer.begin;
    memcpy(to, &made, sizeof(made));
    return MOVED;
}

/* Returns the memory that another rank offers; NULL if its offer is not valid at
 * present. */
static char *reach(struct sim *sim, struct player *player, const struct hvd_step *step,
                   const struct hvd_reach *at)
{
    const char *from = sim_memory(sim, player, &at->offer, sizeof(uint64_t), false);
    struct offer found = {0};
    const struct player *owner;
    int64_t begin;

    if (from != NULL) {
        memcpy(&found, from, sizeof(found));
    }
    if (found.is_offer != mark ||
        (step->kind == HVD_STEP_STORE && found.is_output == 0) ||
        (step->kind == HVD_STEP_FETCH_REDUCE && found.is_output != 0)) {
        return NULL;
    }
    owner = &sim->players[found.rank];
    begin = owner->offered[at->offer.offset / sizeof(uint64_t)] + at->at;
    return found.job == player->job && owner->job == player->job
               ? data_of(&sim->jobs[player->job], found.rank, found.is_output != 0, begin,
                         step->bytes)
               : NULL;
}

/* Copies the elements of the other ranks into scratch, as a real rank does, and reduces
 * them. */
static enum outcome fetch_reduce(struct sim *sim, struct player *player,
                                 const struct hvd_step *step)
{
    const struct sim_job *job = &sim->jobs[player->job];
    struct hvd_reduction reduction = hvd_reduction_of(job->dtype, job->op);
    int count = hvd_layout_local_size(sim->layout, player->node);
    const void **sources = calloc((size_t)count, sizeof(*sources));
    char *to = data_of(job, player->rank, true, step->fetch_reduce.output, step->bytes);
    struct hvd_location scratch = step->fetch_reduce.scratch;
    struct hvd_reach from = step->fetch_reduce.from;
    bool is_inside = to != NULL;

    reduction.postscale = job->postscale;
    for (int i = 0; i < count && is_inside; i++) {
        const char *data = data_of(job, player->rank, false, from.at, step->bytes);

        from.offer.local_rank = i;
        if (i != player->local_rank) {
            char *room = sim_memory(sim, player, &scratch, step->bytes, true);

            data = reach(sim, player, step, &from);
            if (room != NULL && data != NULL) {
                memcpy(room, data, step->bytes);
                data = room;
            }
            is_inside = room != NULL;
            scratch.offset += step->fetch_reduce.stride;
        }
        sources[i] = data;
        is_inside = is_inside && data != NULL;
    }
    if (is_inside) {
        hvd_reduce(&reduction, sources, count, step->count, to);
    }
    free(sources);
    return is_inside ? MOVED : sim_fail(player, "FETCH_REDUCE out of bounds");
}

enum outcome sim_reach(struct sim *sim, struct player *player,
                       const struct hvd_step *step)
{
    const struct sim_job *job = &sim->jobs[player->job];

    switch (step->kind) {
    case HVD_STEP_OFFER:
        return offer(sim, player, step);
    case HVD_STEP_COPY:
        return copy(player,
                    data_of(job, player->rank, true, step->copy.output, step->bytes),
                    data_of(job, player->rank, false, step->copy.input, step->bytes),
                    step->bytes);
    case HVD_STEP_FETCH:
        return copy(player,
                    data_of(job, player->rank, true, step->fetch.output, step->bytes),
                    reach(sim, player, step, &step->fetch.from), step->bytes);
    case HVD_STEP_FETCH_REDUCE:
        return fetch_reduce(sim, player, step);
    default:
        return copy(player, reach(sim, player, step, &step->store.to),
                    data_of(job, player->rank, false, step->store.input, step->bytes),
                    step->bytes);
    }
}
