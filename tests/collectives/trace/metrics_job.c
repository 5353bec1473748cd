/* SPDX-License-Identifier: Apache-2.0 */
/* A job with a known number of collectives, each of which ends before the next: 10
 * allreduces of 4000 bytes, 5 of 400000, 3 allgathers of 4000 bytes a rank, 2 broadcasts
 * of 4000 bytes, and 7 steps of the optimizer.
 *   metrics_job          all ranks are one job
 *   metrics_job halves   of four ranks, the first two and the last two are a job each */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/collectives/calls.h"

enum {
    FEW = 1000,
    MANY = 100000
};

static float values[MANY];

static void reduce(const char *name, int64_t elements, int times)
{
    const struct hvd_tensor tensor =
        call_tensor(name, HVD_FLOAT32, &elements, 1, values, values);

    for (int i = 0; i < times; i++) {
        call_allreduce(&tensor, 1, HVD_SUM, 1, 1, 0);
    }
}

static void gather(void)
{
    const int64_t elements = FEW;
    const struct hvd_tensor tensor =
        call_tensor("gather", HVD_FLOAT32, &elements, 1, values, NULL);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int status = hvd_allgather_start(&tensor, 1, 0, &request, &err);

    call_finish(status, &request, &err);
    hvd_request_free(request);
}

static void join_half(void)
{
    const char *text = getenv("HOROVOD_RANK");
    const int first = text != NULL && atoi(text) >= 2 ? 2 : 0;
    const int ranks[] = {first, first + 1};
    struct hvd_error err = {0};

    if (hvd_init_ranks(ranks, 2, &err) != 0) {
        fprintf(stderr, "# %s\n", err.text);
        exit(1);
    }
}

int main(int count, char **arguments)
{
    const bool is_whole = count < 2 || strcmp(arguments[1], "halves") != 0;
    const int64_t elements = FEW;
    const struct hvd_tensor told =
        call_tensor("told", HVD_FLOAT32, &elements, 1, values, values);
    int rank = 1;

    if (is_whole) {
        rank = call_init();
    } else {
        join_half();
    }
    reduce("small", FEW, 10);
    reduce("large", MANY, 5);
    for (int i = 0; i < 3; i++) {
        gather();
    }
    for (int i = 0; i < 2; i++) {
        call_broadcast(&told, 0, 0);
    }
    for (int i = 0; i < 7; i++) {
        hvd_count_step();
    }
    if (rank == 0) {
        printf("ok 1 - the collectives have ended\n1..1\n");
    }
    hvd_shutdown();
    return 0;
}
