/* SPDX-License-Identifier: Apache-2.0 */
/* Executes schedules for tests. Each rank is a struct player; the simulator moves the
 * players in random order. */
#include "tests/collectives/schedule/sim.h"

#include <stdlib.h>
#include <string.h>

#include "tests/collectives/schedule/sim_internal.h"
#include "tests/tap.h"

uint64_t sim_random_below(struct sim *sim, uint64_t end)
{
    sim->random ^= sim->random << 13;
    sim->random ^= sim->random >> 7;
    sim->random ^= sim->random << 17;
    return (sim->random >> 16) % end;
}

/* --- one rank --- */

static enum outcome end_job(const struct sim *sim, struct player *player)
{
    const struct hvd_schedule *schedule = sim->jobs[player->job].schedules[player->rank];
    uint64_t signals = hvd_schedule_facts(schedule)->signals;

    if (player->counter - player->counter_base != signals) {
        return sim_fail(player, "did not signal as often as announced");
    }
    if (sim_await_messages(player, &player->sends, player->sends.count) != MOVED ||
        sim_await_messages(player, &player->recvs, player->recvs.count) != MOVED) {
        return sim_fail(player, "ended while messages were in flight");
    }
    player->counter_base += signals;
    player->turn += (uint64_t)hvd_schedule_facts(schedule)->turns;
    player->is_open = player->is_open ||
                      (hvd_schedule_facts(schedule)->turns > 0 && !player->is_rolling);
    player->sends.count = player->sends.done = 0;
    player->recvs.count = player->recvs.done = 0;
    player->job++;
    player->tick = 0;
    return MOVED;
}

static void begin_job(struct player *player, const struct hvd_schedule *schedule)
{
    bool is_rolling = hvd_schedule_facts(schedule)->is_rolling;

    if (player->is_open && (hvd_schedule_facts(schedule)->turns == 0 || is_rolling)) {
        player->counter++;
        player->counter_base++;
        player->is_open = false;
    }
    if (!is_rolling || !player->is_rolling) {
        player->counter_floor = player->counter_base;
    }
    player->is_rolling = is_rolling;
}

/* Executes one step, or gets the next tick. */
static enum outcome advance(struct sim *sim, struct player *player)
{
    struct hvd_schedule *schedule;
    enum outcome outcome;

    if (player->job == sim->job_count) {
        return WAITS;
    }
    if (player->step < player->step_count) {
        outcome = sim_execute(sim, player, &player->steps[player->step]);
        player->step += outcome == MOVED && !player->is_writing ? 1 : 0;
        return outcome;
    }
    schedule = sim->jobs[player->job].schedules[player->rank];
    player->step = 0;
    player->step_count = 0;
    if (player->tick == hvd_schedule_facts(schedule)->ticks) {
        return end_job(sim, player);
    }
    if (player->tick == 0) {
        begin_job(player, schedule);
    }
    player->step_count = hvd_schedule_tick(schedule, player->tick, &player->steps);
    player->tick++;
    return MOVED;
}

/* --- all ranks --- */

/* Moves a rank by up to `most` steps. */
static enum outcome run_player(struct sim *sim, int rank, uint64_t most)
{
    enum outcome all = WAITS;

    for (uint64_t i = 0; i < most; i++) {
        enum outcome outcome = advance(sim, &sim->players[rank]);

        if (outcome != MOVED) {
            return outcome == FAILED ? FAILED : all;
        }
        all = MOVED;
    }
    return all;
}

static enum outcome deliver(struct sim *sim, int from, int to)
{
    int moved = sim_network_deliver(sim->network, from, to);

    if (moved < 0) {
        tap_note("ranks %d and %d disagree about the size of a message", from, to);
        return FAILED;
    }
    return moved > 0 ? MOVED : WAITS;
}

static enum outcome run_ranks(struct sim *sim, int from, int to)
{
    int size = sim->layout->size;
    int start = (int)sim_random_below(sim, (uint64_t)size);
    enum outcome all = WAITS;

    for (int i = 0; i < size; i++) {
        int rank = (start + i) % size;
        uint64_t most = sim_random_below(sim, 12);
        enum outcome outcome;

        if (rank < from || rank >= to) {
            continue;
        }
        outcome = run_player(sim, rank, most + 1);
        if (outcome == FAILED) {
            return FAILED;
        }
        all = outcome == MOVED ? MOVED : all;
    }
    return all;
}

static enum outcome run_network(struct sim *sim, uint64_t one_in)
{
    int size = sim->layout->size;
    int start = (int)sim_random_below(sim, (uint64_t)(size * size));
    enum outcome all = WAITS;

    for (int i = 0; i < size * size; i++) {
        int pair = (start + i) % (size * size);
        enum outcome outcome = WAITS;

        if (sim_random_below(sim, one_in) == 0) {
            outcome = deliver(sim, pair / size, pair % size);
        }
        if (outcome == FAILED) {
            return FAILED;
        }
        all = outcome == MOVED ? MOVED : all;
    }
    return all;
}

/* Gives all ranks and the network a turn, but not the ones that the mood holds back. If
 * nothing moves, these get a turn, too. */
static enum outcome run_round(struct sim *sim)
{
    enum sim_mood mood = sim->options->mood;
    int size = sim->layout->size;
    int slow =
        mood == SIM_ONE_IS_SLOW ? (int)(sim->options->seed % (uint64_t)size) : size;
    enum outcome before = run_ranks(sim, 0, slow);
    enum outcome after = before == FAILED ? FAILED : run_ranks(sim, slow + 1, size);
    enum outcome network = WAITS;

    if (before == FAILED || after == FAILED) {
        return FAILED;
    }
    if (mood != SIM_SLOW_NETWORK) {
        network = run_network(sim, 3);
    }
    if (before == MOVED || after == MOVED || network != WAITS) {
        return network == FAILED ? FAILED : MOVED;
    }
    network = run_network(sim, 1);
    if (network != WAITS) {
        return network;
    }
    return slow < size ? run_player(sim, slow, 3) : WAITS;
}

static bool is_finished(const struct sim *sim)
{
    for (int rank = 0; rank < sim->layout->size; rank++) {
        const struct player *player = &sim->players[rank];

        if (player->job < sim->job_count) {
            sim_fail(player, "deadlock");
            return false;
        }
    }
    if (!sim_network_is_quiet(sim->network)) {
        tap_note("messages were not delivered");
        return false;
    }
    return true;
}

static void start(struct sim *sim)
{
    const struct hvd_layout *layout = sim->layout;

    sim->network = sim_network_create(layout->size);
    sim->players = calloc((size_t)layout->size, sizeof(*sim->players));
    for (int rank = 0; rank < layout->size; rank++) {
        struct player *player = &sim->players[rank];

        player->rank = rank;
        player->node = layout->node[rank];
        player->local_rank = layout->local_rank[rank];
        for (int kind = 0; kind < PLACE_KINDS; kind++) {
            size_t bytes = sim_slot_bytes(sim, (enum hvd_location_kind)kind);

            player->locations[kind] = malloc((size_t)sim->geometry->slots * bytes);
            memset(player->locations[kind], GARBAGE,
                   (size_t)sim->geometry->slots * bytes);
        }
    }
}

static void stop(struct sim *sim)
{
    for (int rank = 0; rank < sim->layout->size; rank++) {
        struct player *player = &sim->players[rank];

        for (int kind = 0; kind < PLACE_KINDS; kind++) {
            free(player->locations[kind]);
        }
        free(player->sends.all);
        free(player->recvs.all);
    }
    free(sim->players);
    sim_network_destroy(sim->network);
}

bool sim_run(const struct hvd_layout *layout, const struct hvd_geometry *geometry,
             const struct sim_job *jobs, int job_count, const struct sim_options *options)
{
    struct sim sim = {.layout = layout,
                      .geometry = geometry,
                      .jobs = jobs,
                      .job_count = job_count,
                      .options = options,
                      .random = options->seed * 2 + 1};
    enum outcome outcome = MOVED;
    bool is_right;

    start(&sim);
    while (outcome == MOVED) {
        outcome = run_round(&sim);
    }
    is_right = outcome == WAITS && is_finished(&sim);
    stop(&sim);
    return is_right;
}
