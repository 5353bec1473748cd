/* SPDX-License-Identifier: Apache-2.0 */
/* A job whose rank 1 is late: stalls PIPE|end [replayed]. All ranks submit the tensor
 * "step.0". Rank 1 submits the other tensors of the step, step.1 to step.7, only after it
 * has read a line from the named pipe. With "end" it waits for its tensor "own" instead,
 * which no other rank submits, so that it ends only when the job fails. With "replayed"
 * the step is replayed. Each rank prints how its tensors ended:
 *
 *   step N: STATUS SECONDS TEXT
 *   own 1: STATUS TEXT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/collectives/calls.h"
#include "tests/collectives/steps.h"

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static struct hvd_request *start_own(void)
{
    static float value;
    struct hvd_tensor tensor = call_tensor("own", HVD_FLOAT32, NULL, 0, &value, &value);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int status = hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, &err);

    if (status != 0) {
        call_finish(status, &request, &err);
    }
    return request;
}

static void await_line(const char *path)
{
    FILE *pipe = fopen(path, "re");

    if (pipe == NULL || getc(pipe) == EOF) {
        perror(path);
    }
    if (pipe != NULL) {
        fclose(pipe);
    }
}

static void be_late(const char *until, struct hvd_request *own)
{
    if (strcmp(until, "end") == 0) {
        hvd_wait(own, NULL);
    } else {
        await_line(until);
    }
}

int main(int argc, char **argv)
{
    struct hvd_request *requests[STEP_TENSORS] = {NULL}, *own = NULL;
    struct hvd_error err = {0};
    int rank = call_init(), status;
    double start;

    if (argc > 2) {
        steps_play(60);
    }
    call_barrier();
    start = now();
    own = rank == 1 ? start_own() : NULL;
    requests[0] = step_start(0, NULL);
    if (rank == 1) {
        be_late(argv[1], own);
    }
    for (int i = 1; i < STEP_TENSORS && err.status == 0; i++) {
        requests[i] = step_start(i, &err);
    }
    status = err.status;
    for (int i = 0; i < STEP_TENSORS && status == 0; i++) {
        status = hvd_wait(requests[i], &err);
    }
    printf("step %d: %d %.1f %s\n", rank, status, now() - start, err.text);
    fflush(stdout);
    hvd_shutdown();
    if (own != NULL) {
        status = hvd_wait(own, &err);
        printf("own 1: %d %s\n", status, err.text);
        hvd_request_free(own);
    }
    for (int i = 0; i < STEP_TENSORS; i++) {
        if (requests[i] != NULL) {
            hvd_wait(requests[i], NULL);
            hvd_request_free(requests[i]);
        }
    }
    return 0;
}
