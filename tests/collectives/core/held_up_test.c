/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of two tensors repeat until they are replayed. Then one rank starts the first
 * tensor, but does not start the second before the first has ended. The first tensor must
 * end whether its rank waits for it, tests it now and then, or does neither: tensors of a
 * step do not depend on each other. Runs as each rank of a job; rank 0 prints TAP. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/collectives/calls.h"
#include "tests/tap.h"

enum {
    STEPS = 20,
    ROUNDS = 2,
    LIMIT_S = 20, /* far above what a step takes on a loaded machine */
};

static int rank;
static float values[2];

static struct hvd_request *start(int which)
{
    static const char *const names[] = {"first", "second"};
    struct hvd_tensor tensor =
        call_tensor(names[which], HVD_FLOAT32, NULL, 0, &values[which], &values[which]);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    values[which] = 1;
    if (hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, &err) != 0) {
        fprintf(stderr, "# rank %d: %s\n", rank, err.text);
        exit(1);
    }
    return request;
}

static void finish(struct hvd_request *request)
{
    struct hvd_error err = {0};

    call_finish(0, &request, &err);
    hvd_request_free(request);
}

/* Plays the steps that are then replayed. The pause gives the ranks time to agree on both
 * tensors in one batch. */
static void play_steps(void)
{
    for (int step = 0; step < STEPS; step++) {
        struct hvd_request *first = start(0), *second = start(1);

        usleep(3000);
        finish(first);
        finish(second);
    }
}

/* A way in which the rank learns that its first tensor has ended. */
typedef bool watch(struct hvd_request *request, const char *mark);

static bool wait_for_it(struct hvd_request *request, const char *mark)
{
    (void)mark;
    return hvd_wait_for(request, LIMIT_S * 1000, NULL) == 0;
}

static bool ask_for_it(struct hvd_request *request, const char *mark)
{
    time_t limit = time(NULL) + LIMIT_S;

    (void)mark;
    while (hvd_test(request, NULL) == HVD_INPROGRESS && time(NULL) < limit) {
        usleep(1000);
    }
    return hvd_test(request, NULL) == 0;
}

/* Waits for the file that rank 0 makes when it has the sum. */
static bool look_elsewhere(struct hvd_request *request, const char *mark)
{
    time_t limit = time(NULL) + LIMIT_S;
    struct stat ignored;
    bool is_there = false;

    (void)request;
    while (!is_there && time(NULL) < limit) {
        is_there = stat(mark, &ignored) == 0;
        usleep(1000);
    }
    return is_there;
}

static bool play_last_step(watch *has_ended, const char *mark)
{
    struct hvd_request *first = start(0);
    struct hvd_request *second = rank != 1 ? start(1) : NULL;
    bool good = rank != 1 || has_ended(first, mark);

    second = second != NULL ? second : start(1);
    finish(first);
    if (rank == 0) {
        fclose(fopen(mark, "we"));
    }
    finish(second);
    return good;
}

/* Tells all ranks the path of the file that rank 0 makes. */
static void share_mark(char mark[64])
{
    const int64_t shape[] = {64};
    struct hvd_tensor tensor = call_tensor("mark", HVD_UINT8, shape, 1, mark, mark);

    memset(mark, 0, 64);
    snprintf(mark, 64, "/tmp/hvd-held-up.%d", (int)getpid());
    call_broadcast(&tensor, 0, 0);
}

/* Tries one way in a new job, so that it meets the first replay of a job. */
static bool try_way(watch *has_ended)
{
    char mark[64];
    bool good;

    rank = call_init();
    share_mark(mark);
    play_steps();
    good = play_last_step(has_ended, mark);
    call_barrier();
    unlink(mark);
    if (!good) {
        fprintf(stderr, "# rank %d did not get its tensor\n", rank);
    }
    hvd_shutdown();
    return good;
}

int main(void)
{
    static const struct {
        watch *has_ended;
        const char *promise;
    } ways[] = {
        {wait_for_it,
         "a tensor that its rank waits for ends before the rank starts the next one"},
        {ask_for_it, "a tensor that its rank tests now and then ends before the rank "
                     "starts the next one"},
        {look_elsewhere, "a tensor that its rank does not ask for ends before the rank "
                         "starts the next one"},
    };
    bool all_good = true;

    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        for (int round = 0; round < ROUNDS; round++) {
            all_good &= try_way(ways[i].has_ended);
        }
        if (rank == 0) {
            tap_ok(all_good, "%s", ways[i].promise);
        }
    }
    return rank == 0 ? tap_done() : all_good ? 0 : 1;
}
