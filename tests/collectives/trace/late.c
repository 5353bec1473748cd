/* SPDX-License-Identifier: Apache-2.0 */
/* A job with one late rank: late RANK [die]. In each of 300 steps, rank RANK submits its
 * tensor 3 ms after the last of the other ranks. Each of these ranks writes a byte to the
 * pipe LATE_PIPE after its submission. Rank RANK is in the section "disk" meanwhile. With
 * "die", rank RANK kills itself after the last step. */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/collectives/calls.h"

enum {
    STEPS = 300
};

static int late_pipe; /* one byte for each rank that has arrived at the step */

static void come_late(void)
{
    const struct timespec pause = {0, 3000000};
    char byte;

    for (int i = 1; i < hvd_size(); i++) {
        if (read(late_pipe, &byte, 1) != 1) {
            perror("LATE_PIPE");
            exit(1);
        }
    }
    nanosleep(&pause, NULL);
}

static void step(bool is_late)
{
    static float values[1000];
    const int64_t shape[] = {1000};
    struct hvd_tensor tensor = call_tensor("step", HVD_FLOAT32, shape, 1, values, values);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int status;

    if (is_late) {
        hvd_section_begin("disk");
        come_late();
        hvd_section_end();
    }
    status = hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, &err);
    if (!is_late && write(late_pipe, "", 1) != 1) {
        perror("LATE_PIPE");
        exit(1);
    }
    call_finish(status, &request, &err);
    hvd_request_free(request);
}

static int open_pipe(void)
{
    const char *path = getenv("LATE_PIPE");
    int pipe = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;

    if (pipe < 0) {
        perror("LATE_PIPE");
        exit(1);
    }
    return pipe;
}

int main(int count, char **arguments)
{
    int late = count > 1 ? atoi(arguments[1]) : 0;
    bool dies = count > 2 && strcmp(arguments[2], "die") == 0;
    bool is_late = call_init() == late;

    late_pipe = open_pipe();
    for (int i = 0; i < STEPS; i++) {
        step(is_late);
    }
    if (dies && is_late) {
        kill(getpid(), SIGKILL);
    }
    if (dies) {
        step(false);
    }
    return hvd_shutdown();
}
