/* SPDX-License-Identifier: Apache-2.0 */
/* Teams of all ranks of one node, which are all in one thread of the test. */
#include "tests/collectives/run/node_teams.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

static const struct hvd_shm_sizes sizes = {
    .local_size = MOST_RANKS,
    .geometry = {.slots = 4, .slot_bytes = 4096, .recv_bytes = 4096}};
static const char *const hosts[MOST_RANKS] = {"a", "a", "a", "a", "a", "a", "a", "a"};

void must(int status, const struct hvd_error *err)
{
    if (status != 0) {
        printf("Bail out! %s\n", err->text);
        exit(99);
    }
}

void node_open(struct node *node, int ranks)
{
    static const int members[MOST_RANKS] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct hvd_error err = {0};
    int memory = hvd_shm_open(&sizes, &err);

    must(memory < 0 ? memory : 0, &err);
    *node = (struct node){.ranks = ranks, .boot = {.size = MOST_RANKS}};
    must(hvd_layout_init(&node->boot.layout, hosts, MOST_RANKS, &err), &err);
    node->boot.peers = node->peers;
    for (int i = 0; i < MOST_RANKS; i++) {
        node->peers[i].host = (char *)hosts[i];
        node->bells[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    }
    for (int i = 0; i < MOST_RANKS; i++) {
        must(hvd_shm_create(dup(memory), i, &sizes, node->bells, &node->shm[i], &err),
             &err);
        must(hvd_shm_region_open(node->shm[i], members, ranks, &node->region[i], &err),
             &err);
    }
    for (int i = 0; i < ranks; i++) {
        node->boot.rank = i;
        node->team[i].region = node->region[i];
        node->team[i].geometry = sizes.geometry;
        must(hvd_team_init(&node->team[i], &node->boot, members, ranks, &err), &err);
    }
    close(memory);
}

void node_close(struct node *node)
{
    for (int i = 0; i < MOST_RANKS; i++) {
        hvd_team_finish(&node->team[i]);
        hvd_shm_region_close(node->region[i]);
        hvd_shm_destroy(node->shm[i]);
        close(node->bells[i]);
    }
    hvd_layout_finish(&node->boot.layout);
}

int64_t node_finish_runs(struct hvd_run *const *runs, int ranks, int64_t turn)
{
    bool has_ended[MOST_RANKS] = {false};
    struct hvd_error err = {0};
    int64_t most = 0;
    int ended = 0;

    while (ended < ranks) {
        for (int r = 0; r < ranks; r++) {
            int64_t work = turn;
            bool moved = false;
            int status =
                has_ended[r] ? HVD_INPROGRESS : hvd_run_progress(runs[r], &work, &moved);

            most = -work > most ? -work : most;
            if (status != HVD_INPROGRESS) {
                hvd_fail(&err, status, "a run failed");
                must(status, &err);
                has_ended[r] = true;
                ended++;
            }
        }
    }
    return most;
}
