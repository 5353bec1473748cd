/* SPDX-License-Identifier: Apache-2.0 */
/* How long an allreduce takes: one node for all, and some chunks for all, where that is enough. */
#include "contrib/bench/simulate/collective.h"

#include <stdio.h>
#include <stdlib.h>

#include "contrib/bench/simulate/world.h"

static const double mirrored_bytes = 16 << 20; /* simulated at most: 64 chunks */
static const double whole_work = 64e6; /* bytes times nodes, likewise */
static const double least_bytes = 2 << 20;

/* Equal numbers of ranks on all nodes, in blocks. */
static int create_layout(const struct simulate_machine *machine,
                         struct hvd_layout *layout, struct hvd_error *err)
{
    size_t size = (size_t)machine->nodes * (size_t)machine->gpus;
    const char **hosts = calloc(size, sizeof(hosts[0]));
    char(*names)[24] = calloc((size_t)machine->nodes, sizeof(names[0]));
    int status = HVD_ERR_NOMEM;

    if (hosts != NULL && names != NULL) {
        for (size_t rank = 0; rank < size; rank++) {
            size_t node = rank / (size_t)machine->gpus;

            snprintf(names[node], sizeof(names[node]), "n%zu", node);
            hosts[rank] = names[node];
        }
        status = hvd_layout_init(layout, hosts, (int)size, err);
    }
    free(hosts);
    free(names);
    return status;
}

static int64_t most_messages(const struct simulate_world *world)
{
    uint64_t most = 0;

    for (int i = 0; i < world->player_count; i++) {
        most = world->players[i].sends > most ? world->players[i].sends : most;
    }
    return (int64_t)most;
}

struct run {
    const struct simulate_machine *machine;
    const struct hvd_layout *layout;
    bool is_mirrored;
};

static int run_bytes(const struct run *run, double bytes, struct simulate_result *result,
                     struct hvd_error *err)
{
    struct simulate_world world = {
        .machine = run->machine, .layout = run->layout, .is_mirrored = run->is_mirrored};
    int status = simulate_world_init(&world, (int64_t)(bytes / sizeof(float) + 0.5), err);

    if (status == 0) {
        status = simulate_world_run(&world, &result->seconds);
    }
    if (status == 0) {
        snprintf(result->algorithm, sizeof(result->algorithm), "%s",
                 hvd_schedule_facts(world.players[0].schedule)->name);
        result->messages = most_messages(&world);
        result->is_mirrored = run->is_mirrored;
        result->is_extrapolated = false;
    }
    simulate_world_finish(&world);
    return status;
}

static int run_part(const struct run *run, double bytes, double most,
                    struct simulate_result *result, struct hvd_error *err)
{
    struct simulate_result half;
    double per_byte;
    int status;

    if (bytes <= most) {
        return run_bytes(run, bytes, result, err);
    }
    status = run_bytes(run, most / 2, &half, err);
    if (status == 0) {
        status = run_bytes(run, most, result, err);
    }
    if (status == 0) {
        per_byte = (result->seconds - half.seconds) / (most / 2);
        result->seconds += (bytes - most) * per_byte;
        result->messages = (int64_t)((double)result->messages * bytes / most);
        result->is_extrapolated = true;
    }
    return status;
}

static int run_whole(const struct run *run, double bytes, struct simulate_result *result,
                     struct hvd_error *err)
{
    double most = whole_work / run->layout->nodes;
    int status =
        run_part(run, bytes, most > least_bytes ? most : least_bytes, result, err);

    return status == HVD_ERR_PEER
               ? hvd_fail(err, status, "the schedules of %d ranks wait for each other",
                          run->layout->size)
               : status;
}

int simulate_allreduce(const struct simulate_machine *machine, double bytes,
                       bool is_whole, struct simulate_result *result,
                       struct hvd_error *err)
{
    struct hvd_layout layout = {0};
    struct run run = {machine, &layout, true};
    int status = create_layout(machine, &layout, err);

    if (status == 0 && !is_whole && machine->nodes > 1) {
        status = run_part(&run, bytes, mirrored_bytes, result, err);
    } else if (status == 0) {
        status = HVD_ERR_PEER;
    }
    if (status == HVD_ERR_PEER) { /* the nodes are not alike after all */
        run.is_mirrored = false;
        status = run_whole(&run, bytes, result, err);
    }
    hvd_layout_finish(&layout);
    return status;
}
