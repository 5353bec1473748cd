/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks for tests of hvd-info --job and --pid. With an argument, they are jobs of two
 * ranks, the first of which is the argument. Without one, after five allreduces and two
 * steps, rank 1 is busy with other things, rank 2 stops itself, and all others wait for
 * them. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "collectives/hvd.h"

static int add_up(const char *name, struct hvd_error *err)
{
    const int64_t count = 1;
    float value = 1;
    const struct hvd_tensor tensor = {.name = name,
                                      .input = &value,
                                      .output = &value,
                                      .shape = &count,
                                      .ndim = 1,
                                      .dtype = HVD_FLOAT32,
                                      .device = HVD_DEVICE_CPU};
    struct hvd_request *request;
    int status =
        hvd_allreduce_start(&tensor, 1, HVD_SUM, 1.0, 1.0, HVD_SET_GLOBAL, &request, err);

    if (status == 0) {
        status = hvd_wait(request, err);
        hvd_request_free(request);
    }
    return status;
}

static int run_pairs(const char *first)
{
    const int ranks[] = {atoi(first), atoi(first) + 1};
    struct hvd_error err;

    if (hvd_init_ranks(ranks, 2, &err) == 0) {
        pause();
    }
    fprintf(stderr, "live_ranks: %s\n", err.text);
    return 1;
}

int main(int argc, char **argv)
{
    struct hvd_error err;
    int status;

    if (argc > 1) {
        return run_pairs(argv[1]);
    }
    status = hvd_init(&err);

    for (int i = 0; i < 5 && status == 0; i++) {
        status = add_up("warm-up", &err);
    }
    hvd_count_step();
    hvd_count_step();
    if (status == 0 && hvd_rank() == 1) {
        pause();
    }
    if (status == 0 && hvd_rank() == 2) {
        raise(SIGSTOP);
    }
    status = status == 0 ? add_up("gradient", &err) : status;
    fprintf(stderr, "live_ranks: %s\n", status == 0 ? "all have come" : err.text);
    return 1;
}
