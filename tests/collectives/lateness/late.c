/* SPDX-License-Identifier: Apache-2.0 */
/* A job with one rank that is late: late RANK [die]. It comes 3 ms after the others to each
 * of 300 steps; with "die" it kills itself after them. */
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/collectives/calls.h"

enum {
    STEPS = 300
};

static void step(void)
{
    static float values[1000];
    const int64_t shape[] = {1000};
    struct hvd_tensor tensor = call_tensor("step", HVD_FLOAT32, shape, 1, values, values);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int status = hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, &err);

    call_finish(status, &request, &err);
    hvd_request_free(request);
}

int main(int count, char **arguments)
{
    const struct timespec pause = {0, 3000000};
    int late = count > 1 ? atoi(arguments[1]) : 0;
    bool dies = count > 2 && strcmp(arguments[2], "die") == 0;
    int rank = call_init();

    for (int i = 0; i < STEPS; i++) {
        if (rank == late) {
            nanosleep(&pause, NULL);
        }
        step();
    }
    if (dies && rank == late) {
        kill(getpid(), SIGKILL);
    }
    if (dies) {
        step();
    }
    return hvd_shutdown();
}
