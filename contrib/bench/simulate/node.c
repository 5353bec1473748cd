/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks in turn on cores, and memory shared fairly by those that work. */
#include "contrib/bench/simulate/node.h"

#include <math.h>
#include <stdlib.h>

int simulate_node_init(struct simulate_node *node, const struct simulate_machine *machine,
                       int ranks)
{
    *node = (struct simulate_node){.machine = machine, .ranks = ranks};
    node->core_count = machine->cores < ranks ? machine->cores : ranks;
    node->left = calloc((size_t)ranks, sizeof(node->left[0]));
    node->cores = calloc((size_t)node->core_count, sizeof(node->cores[0]));
    for (int i = 0; node->left != NULL && i < ranks; i++) {
        node->left[i] = -1;
    }
    for (int i = 0; node->cores != NULL && i < node->core_count; i++) {
        node->cores[i].last = i;
    }
    return node->left != NULL && node->cores != NULL ? 0 : HVD_ERR_NOMEM;
}

void simulate_node_finish(struct simulate_node *node)
{
    free(node->left);
    free(node->cores);
    *node = (struct simulate_node){0};
}

/* --- cores --- */

static struct simulate_core *core_of(const struct simulate_node *node, int rank)
{
    return &node->cores[rank % node->core_count];
}

const struct simulate_core *simulate_node_core(const struct simulate_node *node, int rank)
{
    return core_of(node, rank);
}

/* Of this one, as the first, next ... of its core. */
static int seat_of(const struct simulate_node *node, int rank)
{
    return rank / node->core_count;
}

static int seats(const struct simulate_node *node, int rank)
{
    int core = rank % node->core_count;

    return (node->ranks - core + node->core_count - 1) / node->core_count;
}

double simulate_node_turn(const struct simulate_node *node, int rank, double now)
{
    const struct simulate_core *core = core_of(node, rank);
    double turn = node->machine->patience + node->machine->switching;
    int count = seats(node, rank);
    double turns, next, ahead;

    if (core->is_busy) {
        return INFINITY;
    }
    if (count == 1 || turn <= 0) {
        return now;
    }
    turns = floor((now - core->since) / turn + 1e-6);
    ahead = fmod(seat_of(node, rank) - seat_of(node, core->last) - turns, count);
    ahead += ahead < 0 ? count : 0;
    next = core->since + turns * turn;
    if (ahead == 0 && now <= next + node->machine->patience) {
        return now;
    }
    return next + (ahead > 0 ? ahead : count) * turn;
}

void simulate_node_take(struct simulate_node *node, int rank, double now)
{
    struct simulate_core *core = core_of(node, rank);

    core->last = rank;
    core->since = now;
    core->version++;
}

/* --- memory --- */

/* Copies run at the rate of pcie while memory lasts. */
static double speed(const struct simulate_node *node)
{
    double most = node->machine->memory / node->machine->pcie;

    return node->working > most ? most / node->working : 1;
}

static void pass(struct simulate_node *node, double now)
{
    double done = (now - node->now) * speed(node);

    for (int i = 0; i < node->ranks && node->working > 0; i++) {
        if (node->left[i] >= 0) {
            node->left[i] = node->left[i] > done ? node->left[i] - done : 0;
        }
    }
    node->now = now;
}

void simulate_node_start(struct simulate_node *node, int rank, double work, double now)
{
    pass(node, now);
    core_of(node, rank)->is_busy = true;
    node->left[rank] = work;
    node->working++;
    node->version++;
}

int simulate_node_next(const struct simulate_node *node, double *when)
{
    int first = -1;

    for (int i = 0; i < node->ranks; i++) {
        if (node->left[i] >= 0 && (first < 0 || node->left[i] < node->left[first])) {
            first = i;
        }
    }
    if (first >= 0) {
        *when = node->now + node->left[first] / speed(node);
    }
    return first;
}

void simulate_node_end(struct simulate_node *node, int rank, double now)
{
    pass(node, now);
    core_of(node, rank)->is_busy = false;
    simulate_node_take(node, rank, now);
    node->left[rank] = -1;
    node->working--;
    node->version++;
}
