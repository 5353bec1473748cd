/* SPDX-License-Identifier: Apache-2.0 */
/* Simulates the agreement of all ranks of a job in one process: chooses the next event at
 * random. */
#include <stdlib.h>

#include "collectives/agreement/agreement_state.h"
#include "tests/collectives/agreement_sim/agreement_sim_check.h"
#include "tests/collectives/agreement_sim/agreement_sim_internal.h"

unsigned sim_draw(struct sim *sim, unsigned below)
{
    sim->random = sim->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(sim->random >> 33) % below;
}

static void leave(struct sim_rank *rank)
{
    sim_send_farewell(rank);
    rank->has_left = true;
    hvd_agreement_drop(rank->agreement, false, HVD_ERR_SHUTDOWN, "shut down");
}

void sim_leave(struct sim *sim)
{
    sim->is_leaving = true;
    sim->ranks[0].is_asleep = false;
}

int sim_tune(struct sim *sim, int64_t threshold, int64_t cycle_ns)
{
    sim->ranks[0].is_asleep = false;
    return hvd_agreement_tune(sim->ranks[0].agreement, threshold, cycle_ns);
}

static void deliver(struct sim_rank *rank, int link, const struct sim_message *message)
{
    int64_t now_ns = rank->sim->now_ns;

    rank->is_asleep = false;
    if (rank->has_left) {
        return;
    }
    if (message->is_farewell) {
        leave(rank);
        return;
    }
    sim_conclude(
        rank, link == 0 ? hvd_agreement_from_above(rank->agreement, message->data,
                                                   message->bytes, now_ns)
                        : hvd_agreement_from_below(rank->agreement, link, message->data,
                                                   message->bytes, now_ns));
}

static bool take_message(struct sim_rank *rank, unsigned first)
{
    unsigned links = 1 + (unsigned)rank->child_count;

    for (unsigned i = 0; i < links; i++) {
        int link = (int)((first + i) % links);
        struct sim_message *message = sim_take(&rank->inbox[link]);

        if (message != NULL) {
            deliver(rank, link, message);
            free(message);
            return true;
        }
    }
    return false;
}

static bool is_to_progress(const struct sim_rank *rank)
{
    return !rank->has_left && (!rank->is_asleep || (rank->wake_ns >= 0 &&
                                                    rank->sim->now_ns >= rank->wake_ns));
}

static bool progress(struct sim_rank *rank)
{
    bool moved = false;
    int status = 0;

    if (!is_to_progress(rank)) {
        return false;
    }
    sim_conclude(rank, hvd_agreement_progress(rank->agreement, rank->is_waited,
                                              rank->sim->now_ns, &moved));
    if (rank->sim->is_leaving && rank->parent == NULL) {
        if (hvd_agreement_settle(rank->agreement, &status)) {
            leave(rank);
            moved = true;
        }
        /* the next call of hvd_agreement_progress sends this message */
        moved |= hvd_coordinator_has_message(rank->agreement->coordinator);
    }
    sim_conclude(rank, status);
    rank->is_asleep = !moved;
    rank->wake_ns =
        hvd_agreement_deadline(rank->agreement, rank->is_waited, rank->sim->now_ns);
    return moved;
}

static bool act(struct sim_rank *rank, unsigned what)
{
    switch (what) {
    case 0:
        return take_message(rank, sim_draw(rank->sim, 1 + (unsigned)rank->child_count));
    case 1:
        return sim_run_something(rank);
    default:
        return progress(rank);
    }
}

static bool act_at_random(struct sim_rank *rank)
{
    unsigned what = sim_draw(rank->sim, 3);

    if (rank->is_frozen) {
        return false;
    }
    return act(rank, what) || act(rank, (what + 1) % 3) || act(rank, (what + 2) % 3);
}

static bool anything(struct sim *sim)
{
    unsigned size = (unsigned)sim->layout.size, first = sim_draw(sim, size);
    bool has_slow = sim->slow_rank >= 0 && sim->slow_rank < sim->layout.size;
    bool spares_slow = has_slow && sim_draw(sim, 24) != 0;

    for (unsigned i = 0; i < size; i++) {
        int rank = (int)((first + i) % size);

        if (!(spares_slow && rank == sim->slow_rank) &&
            act_at_random(&sim->ranks[rank])) {
            return true;
        }
    }
    return spares_slow && act_at_random(&sim->ranks[sim->slow_rank]);
}

/* Lets time pass: a small step each time, and rarely a large one. */
static void pass_time(struct sim *sim)
{
    sim->now_ns += sim_draw(sim, 100) == 0 ? sim_draw(sim, 2000000) : 100;
}

static int64_t next_deadline(const struct sim *sim)
{
    int64_t next = -1;

    for (int i = 0; i < sim->layout.size; i++) {
        const struct sim_rank *rank = &sim->ranks[i];
        int64_t due = rank->has_left || rank->is_frozen ? -1 : rank->wake_ns;

        if (due >= 0 && (next < 0 || due < next)) {
            next = due;
        }
    }
    return next;
}

bool sim_step(struct sim *sim, int64_t patience_ns)
{
    int64_t next;

    sim->moves++;
    pass_time(sim);
    if (anything(sim)) {
        return true;
    }
    next = next_deadline(sim);
    if (next < 0 || next - sim->now_ns > patience_ns) {
        return false;
    }
    sim->now_ns = next > sim->now_ns ? next + 1 : sim->now_ns + 1000;
    return true;
}

void sim_pass(struct sim *sim, int64_t ns)
{
    int64_t end_ns = sim->now_ns + ns;

    while (sim->fault[0] == '\0' && sim->now_ns < end_ns) {
        int64_t next;

        sim->now_ns += 100;
        if (!anything(sim)) {
            next = next_deadline(sim);
            sim->now_ns = next >= 0 && next < end_ns ? next : end_ns;
        }
    }
}

void sim_finish_requests(struct sim *sim, struct hvd_request *const *requests, int count,
                         int64_t patience_ns)
{
    while (sim->fault[0] == '\0' && sim_step(sim, patience_ns)) {
    }
    for (int i = 0; i < count; i++) {
        struct hvd_request *request = requests[i];

        if (!sim_has_ended(request) || atomic_load(&request->status) != 0) {
            sim_fault(sim, "rank %d: %s does not end well: %s",
                      request->entries[0].descriptor.rank,
                      request->entries[0].descriptor.name, request->error.text);
        }
        hvd_request_drop(request);
    }
}

void sim_settle(struct sim *sim)
{
    while (sim->fault[0] == '\0') {
        sim->now_ns += 100;
        if (!anything(sim)) {
            return;
        }
    }
}
