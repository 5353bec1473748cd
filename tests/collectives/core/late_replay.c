/* SPDX-License-Identifier: Apache-2.0 */
/* A job in which replays end early: every 40 steps the last rank swaps two tensors, so
 * that a replayed batch that the others have started is cancelled. The last rank also
 * joins before the others have finished. Rank 0 prints how many tensors each rank has
 * reduced, including those to which a joined rank adds zeros. */
#include <stdio.h>

#include "tests/collectives/calls.h"

enum {
    ROUNDS = 5,
    STEPS = 40,
    STEPS_OF_OTHERS = 5
};

static struct hvd_request *start(const char *name)
{
    static float values[2][1000];
    float *data = values[name[0] == 'a' ? 0 : 1];
    const int64_t shape[] = {1000};
    struct hvd_tensor tensor = call_tensor(name, HVD_FLOAT32, shape, 1, data, data);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    if (hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, &err) != 0) {
        call_finish(err.status, &request, &err);
    }
    return request;
}

static void finish(struct hvd_request *request)
{
    struct hvd_error err = {0};

    call_finish(0, &request, &err);
    hvd_request_free(request);
}

static void step(void)
{
    finish(start("a"));
    finish(start("b"));
}

/* Plays a step in which the last rank starts b and waits for it before it starts a. The
 * others start a first, as in the replay. */
static void swapped_step(bool is_last)
{
    struct hvd_request *first = start(is_last ? "b" : "a");
    struct hvd_request *second;

    if (is_last) {
        finish(first);
        finish(start("a"));
        return;
    }
    second = start("b");
    finish(first);
    finish(second);
}

int main(void)
{
    int rank = call_init();
    bool is_last = rank == hvd_size() - 1;

    for (int i = 0; i < ROUNDS; i++) {
        for (int j = 0; j < STEPS; j++) {
            step();
        }
        swapped_step(is_last);
    }
    for (int i = 0; !is_last && i < STEPS_OF_OTHERS; i++) {
        step();
    }
    call_join();
    if (rank == 0) {
        printf("%d\n", 2 * (ROUNDS * (STEPS + 1) + STEPS_OF_OTHERS));
    }
    return hvd_shutdown();
}
