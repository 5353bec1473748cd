/* SPDX-License-Identifier: Apache-2.0 */
/* A rank of the teams test. It has shared memory, network and teams, but neither
 * agreement nor progress thread. */
#include "tests/collectives/run/teams_rank.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "gpu_binding/base/clock.h"
#include "tests/collectives/transport/net/net_rank.h"

enum {
    LIMIT_MS = 60000
};

/* Small buffers, so that schedules of little data have many ticks. */
static const struct hvd_geometry geometry = {
    .slots = 4, .slot_bytes = 4096, .recv_bytes = 8192};

/* The test opens these files, and the ranks, its child processes, inherit them. */
static int memory[JOB_MAX_RANKS]; /* shared memory of each node */
/* wake-ups (eventfds) of each node's local ranks */
static int bells[JOB_MAX_RANKS][JOB_MAX_RANKS];
static int node_count;

static void check(int status, const struct hvd_error *err)
{
    if (status != 0) {
        printf("# %s\n", err->text);
        exit(98);
    }
}

static struct hvd_layout read_layout(const char *hosts)
{
    char *text = strdup(hosts);
    const char *names[JOB_MAX_RANKS];
    struct hvd_layout layout = {0};
    struct hvd_error err = {0};
    int count = 0;

    for (char *name = strtok(text, " "); name != NULL; name = strtok(NULL, " ")) {
        names[count++] = name;
    }
    check(hvd_layout_init(&layout, names, count, &err), &err);
    free(text);
    return layout;
}

static struct hvd_shm_sizes sizes_of(int local_size)
{
    return (struct hvd_shm_sizes){.local_size = local_size, .geometry = geometry};
}

void teams_job_open(const char *hosts)
{
    struct hvd_layout layout = read_layout(hosts);
    struct hvd_error err = {0};

    node_count = layout.nodes;
    for (int n = 0; n < layout.nodes; n++) {
        int local_size = hvd_layout_local_size(&layout, n);
        struct hvd_shm_sizes sizes = sizes_of(local_size);

        memory[n] = hvd_shm_open(&sizes, &err);
        check(memory[n] < 0 ? memory[n] : 0, &err);
        for (int i = 0; i < local_size; i++) {
            bells[n][i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        }
    }
    hvd_layout_finish(&layout);
}

void teams_job_close(void)
{
    for (int n = 0; n < node_count; n++) {
        close(memory[n]);
        for (int i = 0; i < JOB_MAX_RANKS && bells[n][i] > 0; i++) {
            close(bells[n][i]);
            bells[n][i] = 0;
        }
    }
}

int teams_job_memory(void)
{
    return memory[0];
}

void teams_rank_join(struct teams_rank *rank, struct job_rank *self)
{
    const struct hvd_boot *boot = &self->boot;
    int node = boot->layout.node[boot->rank];
    struct hvd_shm_sizes sizes = sizes_of(hvd_layout_local_size(&boot->layout, node));
    struct hvd_teams_config config = {.boot = boot, .geometry = geometry};
    struct hvd_error err = {0};

    *rank = (struct teams_rank){.self = self};
    check(hvd_shm_create(dup(memory[node]), boot->layout.local_rank[boot->rank], &sizes,
                         bells[node], &rank->shm, &err),
          &err);
    if (boot->layout.nodes > 1) {
        rank->net = net_rank_connect(self);
    }
    check(hvd_sets_init(&rank->sets, &boot->layout, boot->rank, &err), &err);
    config.global = rank->sets.global;
    config.shm = rank->shm;
    config.net = rank->net;
    check(hvd_teams_create(&config, &rank->teams, &err), &err);
}

void teams_rank_leave(struct teams_rank *rank)
{
    if (rank->net != NULL) {
        net_rank_gather(rank->self, rank->net);
    } else {
        job_exchange(rank->self, "", 1);
    }
    hvd_net_destroy(rank->net);
    hvd_teams_destroy(rank->teams);
    hvd_sets_finish(&rank->sets);
    hvd_shm_destroy(rank->shm);
}

void teams_rank_add(struct teams_rank *rank, int set, const int *ranks, int count)
{
    struct hvd_error err = {0};

    check(hvd_teams_add(rank->teams, hvd_sets_add(&rank->sets, set, ranks, count, NULL),
                        &err),
          &err);
}

void teams_rank_remove(struct teams_rank *rank, int set)
{
    struct hvd_set *removed = hvd_sets_find(&rank->sets, set);

    hvd_teams_remove(rank->teams, removed);
    hvd_sets_remove(&rank->sets, removed);
}

void teams_rank_submit(struct teams_rank *rank, const struct team_call *call)
{
    struct hvd_batch *batch = team_call_batch(call, rank->self->boot.rank);

    batch->set = hvd_sets_find(&rank->sets, call->set);
    hvd_teams_submit(rank->teams, batch);
}

static void end_batch(void *context, struct hvd_batch *batch)
{
    struct teams_rank *rank = context;

    rank->last = *team_call_of(batch);
    rank->ended++;
    rank->wrong += team_call_end(batch) ? 0 : 1;
}

bool teams_rank_turn(struct teams_rank *rank)
{
    bool moved = rank->net != NULL && hvd_net_progress(rank->net, NULL) > 0;
    int status;

    status = hvd_teams_progress(rank->teams, end_batch, rank, &moved);
    check(status < 0 ? status : 0, hvd_teams_failure(rank->teams));
    rank->wrong += (status == 0) == hvd_teams_are_idle(rank->teams) ? 0 : 1;
    return moved;
}

bool teams_rank_run(struct teams_rank *rank, int ended)
{
    int64_t deadline_ms = hvd_clock_ms() + LIMIT_MS;

    while (rank->ended < ended && hvd_clock_ms() < deadline_ms) {
        if (!teams_rank_turn(rank)) {
            sched_yield();
        }
    }
    return rank->ended >= ended;
}
