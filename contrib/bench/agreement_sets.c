/* SPDX-License-Identifier: Apache-2.0 */
/* What it costs to agree in many process sets: the simulated job of tests/collectives.
 *
 *   agreement_sets
 *
 * Each row is a job in which every set of 8 ranks, on one node, submits one known allreduce, all at
 * the same time, without replays and with them: the bytes of all messages that rank 0 gets and sends
 * for each set, and those of a member and of the last rank, in no set. Then the time that rank 0
 * takes for the rows of an allgather of all ranks.
 *
 * Last come sets that their members create alone, all at the same time, and remove: each node, the ranks of
 * one local rank, and many of ranks here and there. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "collectives/agreement/membership.h"
#include "collectives/agreement/rank_list.h"
#include "gpu_binding/base/log.h"
#include "contrib/bench/agreement_sim/agreement_sim.h"

enum {
    PER_SET = 8,
    LEARNING = 10, /* waves, more than replays need to come about */
    WAVES = 20
};

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void fail(const char *why)
{
    fprintf(stderr, "agreement_sets: %s\n", why);
    exit(1);
}

static void settle(struct sim *sim, struct hvd_request **requests, int count)
{
    sim_settle_in_turn(sim);
    if (sim->fault[0] != '\0') {
        fail(sim->fault);
    }
    for (int i = 0; i < count; i++) {
        if (!sim_has_ended(requests[i]) || atomic_load(&requests[i]->status) != 0) {
            fail("a request does not end well");
        }
        hvd_request_destroy(requests[i]);
    }
}

static void add_set(struct sim *sim, struct hvd_request **requests, int number)
{
    char note[256], name[32];
    struct hvd_proposal add = {.kind = HVD_KIND_SET_ADD, .name = name, .note = note};
    const struct hvd_proposal *only = &add;
    int used = 0;

    for (int i = 0; i < PER_SET; i++) {
        used += snprintf(note + used, sizeof(note) - (size_t)used, "%s%d",
                         i > 0 ? "," : "", number * PER_SET + i);
    }
    snprintf(name, sizeof(name), "hvd.set.%d", number);
    for (int rank = 0; rank < sim->layout.size; rank++) {
        sim_wait(sim, rank, true);
        requests[rank] = sim_submit(sim, rank, &only, 1);
    }
    settle(sim, requests, sim->layout.size);
}

static void wave(struct sim *sim, struct hvd_request **requests, int sets)
{
    for (int rank = 0; rank < sets * PER_SET; rank++) {
        struct hvd_proposal tensor = sim_allreduce("tensor", 1000);
        const struct hvd_proposal *only = &tensor;

        tensor.set = 1 + rank / PER_SET;
        requests[rank] = sim_submit(sim, rank, &only, 1);
    }
    settle(sim, requests, sets * PER_SET);
}

static double bytes_of(const struct sim *sim, int rank)
{
    struct hvd_agreement_counts counts;

    hvd_agreement_count(sim->ranks[rank].agreement, &counts);
    return (double)(counts.bytes_sent + counts.bytes_received);
}

static void measure_sets(int node_count, int sets, bool may_replay)
{
    int *nodes = calloc((size_t)node_count + 1, sizeof(nodes[0]));
    int size = node_count * PER_SET;
    struct hvd_request **requests = calloc((size_t)size, sizeof(requests[0]));
    int ranks[] = {0, sets * PER_SET - 1, size - 1};
    struct hvd_agreement_settings settings = sim_settings();
    double before[3], start;
    struct sim sim;

    for (int i = 0; i < node_count; i++) {
        nodes[i] = PER_SET;
    }
    settings.may_replay = may_replay;
    sim_init_unchecked(&sim, nodes, &settings);
    for (int i = 0; i < sets; i++) {
        add_set(&sim, requests, i);
    }
    for (int i = 0; i < LEARNING; i++) {
        wave(&sim, requests, sets);
    }
    for (int i = 0; i < 3; i++) {
        before[i] = bytes_of(&sim, ranks[i]);
    }
    start = now_ms();
    for (int i = 0; i < WAVES; i++) {
        wave(&sim, requests, sets);
    }
    printf("| %d | %d | %s |", size, sets, may_replay ? "replayed" : "ids");
    for (int i = 0; i < 3; i++) {
        printf(" %.1f |",
               (bytes_of(&sim, ranks[i]) - before[i]) / WAVES / (i == 0 ? sets : 1));
    }
    printf(" %.2f |\n", (now_ms() - start) / WAVES);
    sim_finish(&sim);
    free(requests);
    free(nodes);
}

static void measure_rows(int size)
{
    enum {
        ROUNDS = 20
    };
    const char **hosts = calloc((size_t)size, sizeof(hosts[0]));
    char(*names)[16] = calloc((size_t)size, sizeof(names[0]));
    struct hvd_membership membership;
    struct hvd_layout layout;
    double start;
    long sum = 0;

    for (int i = 0; i < size; i++) {
        snprintf(names[i], sizeof(names[i]), "n%d", i / PER_SET);
        hosts[i] = names[i];
    }
    if (hvd_layout_init(&layout, hosts, size, NULL) != 0 ||
        hvd_membership_init(&membership, &layout, 0, NULL) != 0) {
        fail("no memory");
    }
    start = now_ms();
    for (int i = 0; i < ROUNDS * size; i++) {
        sum += hvd_set_members_index(hvd_membership_find(&membership, 0), i % size);
    }
    printf("| %d | %.3f |\n", size, (now_ms() - start) / ROUNDS);
    if (sum != (long)ROUNDS * size * (size - 1) / 2) {
        fail("a rank is elsewhere");
    }
    hvd_membership_finish(&membership);
    hvd_layout_finish(&layout);
    free(names);
    free(hosts);
}

/* --- sets that their members create --- */

/* The members of a set: a node, all of a local rank, or a tenth of these and the next ones. */
static int find_members(int number, int size, int *ranks)
{
    int nodes = size / PER_SET, count = 0;

    for (int i = 0; number < nodes && i < PER_SET; i++) {
        ranks[count++] = number * PER_SET + i;
    }
    for (int i = 0; number >= nodes && i < nodes; i++) {
        if (number < nodes + PER_SET || (7 * i + number) % 10 == 0) {
            ranks[count++] = i * PER_SET + (number + i / 50) % PER_SET;
        }
    }
    return count;
}

/* All members ask, in the order of sets, and all is settled. ids: of sets that they remove; NULL: they
 * create them. Returns how many requests there are. */
static int change_sets(struct sim *sim, struct hvd_request **requests, int sets,
                       const int *ids)
{
    int *ranks = calloc((size_t)sim->layout.size, sizeof(ranks[0])), asked = 0;

    for (int number = 0; number < sets; number++) {
        int count = find_members(number, sim->layout.size, ranks);
        char *list = hvd_rank_list_write(ranks, count);
        char name[32];
        struct hvd_proposal change = {.name = name, .note = list};
        const struct hvd_proposal *only = &change;

        snprintf(name, sizeof(name), ids != NULL ? "hvd.set.0" : "hvd.create.%d", number);
        change.kind = ids != NULL ? HVD_KIND_SET_REMOVE : HVD_KIND_SET_CREATE;
        change.set = ids != NULL ? ids[number] : HVD_SET_GLOBAL;
        change.root = change.set;
        for (int i = 0; i < count; i++) {
            requests[asked++] = sim_submit(sim, ranks[i], &only, 1);
        }
        free(list);
    }
    free(ranks);
    sim_settle_in_turn(sim);
    return asked;
}

/* The sets' numbers are the values of their members' requests. */
static void find_ids(struct hvd_request **requests, int sets, int size, int *ids)
{
    int *ranks = calloc((size_t)size, sizeof(ranks[0])), at = 0;

    for (int number = 0; number < sets; number++) {
        ids[number] = (int)requests[at]->value;
        at += find_members(number, size, ranks);
    }
    free(ranks);
}

static void measure_creations(int node_count, int sets)
{
    int *nodes = calloc((size_t)node_count + 1, sizeof(nodes[0]));
    int size = node_count * PER_SET, asked, *ids = calloc((size_t)sets, sizeof(ids[0]));
    struct hvd_request **requests =
        calloc((size_t)sets * (size_t)size, sizeof(requests[0]));
    double start = now_ms(), created, bytes;
    struct sim sim;

    for (int i = 0; i < node_count; i++) {
        nodes[i] = PER_SET;
    }
    sim_init_unchecked(&sim, nodes, NULL);
    sim_wait(&sim, 0, true); /* it decides at once */
    start = now_ms();
    asked = change_sets(&sim, requests, sets, NULL);
    created = now_ms() - start;
    bytes = bytes_of(&sim, 0);
    find_ids(requests, sets, size, ids);
    settle(&sim, requests, asked);
    start = now_ms();
    change_sets(&sim, requests, sets, ids);
    printf("| %d | %d | %d | %.0f | %.0f | %.0f |\n", size, sets, asked, bytes / asked,
           created, now_ms() - start);
    settle(&sim, requests, asked);
    sim_finish(&sim);
    free(ids);
    free(requests);
    free(nodes);
}

int main(void)
{
    hvd_log_to(NULL, HVD_LOG_OFF);
    printf("| ranks | sets | waves | rank 0: bytes a set | member: bytes | last rank: "
           "bytes | all ranks: ms a wave |\n|---|---|---|---|---|---|---|\n");
    for (int nodes = 64; nodes <= 256; nodes *= 2) {
        measure_sets(nodes, 60, false);
        measure_sets(nodes, 60, true);
    }
    printf("\n| ranks | rows of an allgather: ms |\n|---|---|\n");
    measure_rows(1024);
    measure_rows(10240);
    printf("\n| ranks | sets created | members of all | rank 0: bytes a member | all "
           "ranks: ms to "
           "create | to remove |\n|---|---|---|---|---|---|\n");
    measure_creations(125, 500);
    measure_creations(125, 2000);
    return 0;
}
