/* SPDX-License-Identifier: Apache-2.0 */
/* A job in which one rank, the victim, is stopped (SIGSTOP): frozen VICTIM DIRECTORY
 * [large]. The victim writes its process id to DIRECTORY/pid, for the program that
 * continues it. With "large" it is stopped while it sums large tensors, otherwise before
 * it submits a small one. Each rank prints how its calls ended:
 *
 *   end N: STATUS TEXT
 *
 * A rank whose call failed waits until the victim has shut down. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/collectives/calls.h"
#include "tests/collectives/steps.h"

enum {
    LARGE = 8 << 20, /* elements */
    END_TENTHS = 600 /* tenths of a second to wait for the victim's end */
};

static _Atomic bool was_stopped;

static void *stop(void *arg)
{
    (void)arg;
    usleep(3000);
    atomic_store(&was_stopped, true);
    kill(getpid(), SIGSTOP);
    return NULL;
}

/* Sums `data` over all ranks. data[0] is greater than 0 after the victim has been
 * stopped. */
static int allreduce(float *data, int64_t count, struct hvd_error *err)
{
    struct hvd_tensor tensor = call_tensor("life", HVD_FLOAT32, &count, 1, data, data);
    struct hvd_request *request = NULL;
    int status = hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, err);

    if (status == 0) {
        status = hvd_wait(request, err);
        hvd_request_free(request);
    }
    return status;
}

/* Sums large tensors until all ranks know that the victim was stopped and runs again. */
static int move(int is_victim, struct hvd_error *err)
{
    float *data = calloc(LARGE, sizeof(*data));
    pthread_t thread;
    int status = allreduce(data, LARGE, err);

    if (is_victim) {
        pthread_create(&thread, NULL, stop, NULL);
    }
    while (status == 0 && data[0] == 0) {
        data[0] = atomic_load(&was_stopped);
        status = allreduce(data, LARGE, err);
    }
    if (is_victim) {
        pthread_join(thread, NULL);
    }
    free(data);
    return status;
}

static int submit_late(int is_victim, struct hvd_error *err)
{
    float value = 0;

    if (is_victim) {
        kill(getpid(), SIGSTOP);
    }
    return allreduce(&value, 1, err);
}

static void write_pid(const char *path)
{
    FILE *file = fopen(path, "we");

    if (file == NULL) {
        perror(path);
        exit(1);
    }
    fprintf(file, "%d\n", (int)getpid());
    fclose(file);
}

int main(int argc, char **argv)
{
    int rank, status, is_victim;
    struct hvd_error err = {0};

    if (argc < 3 || chdir(argv[2]) != 0) {
        fprintf(stderr, "usage: frozen VICTIM DIRECTORY [large]\n");
        return 2;
    }
    /* the launcher sends SIGTERM when a job fails, but this rank must still print its
     * line */
    signal(SIGTERM, SIG_IGN);
    rank = call_init();
    is_victim = rank == atoi(argv[1]);
    if (is_victim) {
        write_pid("pid");
    }
    steps_play(60);
    call_barrier();
    status = argc > 3 ? move(is_victim, &err) : submit_late(is_victim, &err);
    printf("end %d: %d %s\n", rank, status, err.text);
    fflush(stdout);
    for (int i = 0;
         i < END_TENTHS && !is_victim && status != 0 && access("done", F_OK) != 0; i++) {
        usleep(100000);
    }
    hvd_shutdown();
    if (is_victim) {
        write_pid("done");
    }
    return 0;
}
