/* SPDX-License-Identifier: Apache-2.0 */
/* Tests allgather, alltoall and broadcast of blocks that ranks may access in each other's
 * memory (single copies). Runs as each rank of a job: single_copy_test [RANK]. On rank
 * RANK, single copies are disabled. Rank 0 prints TAP. */
#include <stdlib.h>
#include <string.h>

#include "collectives/hvd.h"
#include "tests/collectives/report.h"

/* Sizes near the limits between algorithms, one with several pieces, some whose results
 * lie on huge pages or bypass the caches, and odd ones. */
static const int64_t sizes[] = {1,     8191,   8192,    20001,  65535,
                                65536, 300001, 1100001, 3000001};

/* A process set, and this rank in it. */
struct team {
    int set;
    int ranks[64];
    int size;
    int rank;
};

static char value(int rank, int64_t i)
{
    return (char)(i * 7 + i / 256 + rank * 31);
}

static char *array(int64_t bytes)
{
    char *data = malloc((size_t)bytes + 1);

    for (int64_t i = 0; data != NULL && i < bytes; i++) {
        data[i] = value(hvd_rank(), i);
    }
    return data;
}

static bool is_from(const char *data, int64_t bytes, int rank, int64_t first)
{
    for (int64_t i = 0; i < bytes; i++) {
        if (data[i] != value(rank, first + i)) {
            return false;
        }
    }
    return true;
}

/* Takes the result from a request, with the number of its rows. */
static char *take(struct hvd_request *request, int64_t *rows)
{
    void *data = NULL;

    *rows = -1;
    hvd_request_take(request, 0, &data, rows);
    hvd_request_free(request);
    return data;
}

/* Returns how many rows a rank gives to the allgather: each rank another number, and the
 * second rank none. */
static int64_t rows_of(int index, int64_t bytes)
{
    return index == 1 ? 0 : bytes + 100 * index;
}

static bool gathers(const struct team *team, int64_t bytes)
{
    int64_t mine = rows_of(team->rank, bytes), rows, at = 0;
    char *input = array(mine), *output;
    struct hvd_tensor tensor = call_tensor("gather", HVD_INT8, &mine, 1, input, NULL);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    bool good = true;

    call_finish(hvd_allgather_start(&tensor, 1, team->set, &request, &err), &request,
                &err);
    output = take(request, &rows);
    for (int i = 0; i < team->size; i++) {
        good = good && is_from(output + at, rows_of(i, bytes), team->ranks[i], 0);
        at += rows_of(i, bytes);
    }
    hvd_free(output);
    free(input);
    return good && rows == at;
}

/* Return the rows that one rank sends to another, and the number of rows before them. */
static int64_t rows_for(int from, int to, int64_t bytes)
{
    return from == 1 && to == 0 ? 0 : bytes + from - 3 * to + 3 * 64;
}

static int64_t rows_before(int from, int to, int64_t bytes)
{
    int64_t before = 0;

    for (int i = 0; i < to; i++) {
        before += rows_for(from, i, bytes);
    }
    return before;
}

static bool exchanges(const struct team *team, int64_t bytes)
{
    int64_t all = rows_before(team->rank, team->size, bytes), rows, at = 0;
    char *input = array(all), *output;
    struct hvd_tensor tensor = call_tensor("exchange", HVD_INT8, &all, 1, input, NULL);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int32_t splits[64];
    bool good = true;

    for (int i = 0; i < team->size; i++) {
        splits[i] = (int32_t)rows_for(team->rank, i, bytes);
    }
    call_finish(
        hvd_alltoall_start(&tensor, splits, team->size, team->set, &request, &err),
        &request, &err);
    output = take(request, &rows);
    for (int i = 0; i < team->size; i++) {
        int64_t block = rows_for(i, team->rank, bytes);

        good = good && is_from(output + at, block, team->ranks[i],
                               rows_before(i, team->rank, bytes));
        at += block;
    }
    hvd_free(output);
    free(input);
    return good && rows == at;
}

static bool broadcasts(const struct team *team, int64_t bytes, int root, bool in_place)
{
    char *input = array(bytes), *output = in_place ? input : calloc(1, (size_t)bytes);
    struct hvd_tensor tensor =
        call_tensor("broadcast", HVD_INT8, &bytes, 1, input, output);
    bool good;

    call_broadcast(&tensor, root, team->set);
    good = is_from(output, bytes, root, 0);
    free(in_place ? NULL : output);
    free(input);
    return good;
}

static void try_team(const struct team *team, bool *good)
{
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        good[0] &= gathers(team, sizes[i]);
        good[1] &= exchanges(team, sizes[i]);
        for (int j = 0; j < team->size; j++) {
            good[2] &= broadcasts(team, sizes[i], team->ranks[j], false);
        }
        good[3] &= broadcasts(team, sizes[i], team->ranks[i % (size_t)team->size], true);
    }
}

static void find_team(struct team *team)
{
    team->size = hvd_set_size(team->set);
    team->rank = hvd_set_rank(team->set);
    hvd_set_ranks(team->set, team->ranks);
}

/* Adds a process set of the first and the last rank. */
static void add_pair(struct team *team)
{
    const int ranks[2] = {0, hvd_size() - 1};

    team->set = call_set_add(ranks, 2);
    find_team(team);
}

int main(int argc, char **argv)
{
    const char *rank = getenv("HOROVOD_RANK");
    bool all[] = {true, true, true, true}, pair[] = {true, true, true, true};
    struct team team = {0};

    if (argc > 1 && rank != NULL && strcmp(rank, argv[1]) == 0) {
        setenv("HVD_SINGLE_COPY", "0", 1);
    }
    report_init();
    find_team(&team);
    try_team(&team, all);
    report(all[0], "allgather of blocks of different sizes");
    report(all[1], "alltoall of blocks of different sizes");
    report(all[2], "broadcast from each rank");
    report(all[3], "broadcast in place");
    if (team.size > 2) {
        add_pair(&team);
        if (team.rank >= 0) {
            try_team(&team, pair);
        }
        report(pair[0] && pair[1] && pair[2] && pair[3], "all of these in a process set");
    }
    hvd_shutdown();
    return report_done();
}
