/* SPDX-License-Identifier: Apache-2.0 */
/* A rank fails between two allreduces: first_cause RANK HOW CODE. HOW:
 *
 *   leave  shuts hvd down, as Python does at its end, and a while later returns CODE
 *   exit   returns CODE at once
 *   kill   sends signal CODE to itself
 *   init   cannot join the job, and returns CODE after the others stop waiting for it
 *   spare  starts allreduces and a receive for which nobody waits while the others shut
 *          hvd down, then returns CODE
 *
 * The other ranks print why they end, and return 1. */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectives/hvd.h"

static void fail(const char *how, int code)
{
    if (strcmp(how, "leave") == 0) {
        hvd_shutdown();
        usleep(300000);
    } else if (strcmp(how, "kill") == 0) {
        kill(getpid(), code);
    }
    _exit(code);
}

static int step(struct hvd_error *err)
{
    const int64_t count = 10;
    double values[10] = {1};
    const struct hvd_tensor tensor = {.name = "values",
                                      .input = values,
                                      .output = values,
                                      .shape = &count,
                                      .ndim = 1,
                                      .dtype = HVD_FLOAT64,
                                      .device = HVD_DEVICE_CPU};
    struct hvd_request *request = NULL;
    int status =
        hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, HVD_SET_GLOBAL, &request, err);

    if (status == 0) {
        status = hvd_wait(request, err);
        hvd_request_free(request);
    }
    return status;
}

static int start_spare(bool receives, struct hvd_request **request)
{
    static const int64_t count = 1;
    static double value;
    const struct hvd_tensor tensor = {.name = "spare",
                                      .input = &value,
                                      .output = &value,
                                      .shape = &count,
                                      .ndim = 1,
                                      .dtype = HVD_FLOAT64,
                                      .device = HVD_DEVICE_CPU};

    return receives
               ? hvd_recv_start(&tensor, HVD_ANY_SOURCE, 0, HVD_SET_GLOBAL, request, NULL)
               : hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, HVD_SET_GLOBAL, request,
                                     NULL);
}

/* The victim starts an allreduce before the others leave, and requests afterwards. */
static int do_without(bool is_victim, int code)
{
    struct hvd_request *request = NULL;

    if (is_victim && start_spare(false, &request) == 0) {
        while (hvd_test(request, NULL) == HVD_INPROGRESS) {
            usleep(1000);
        }
        hvd_request_free(request);
        (void)start_spare(false, &request);
        (void)start_spare(true, &request);
    }
    hvd_shutdown();
    return is_victim ? code : 0;
}

static int join(bool must_fail, int code, struct hvd_error *err)
{
    const int nobody = 100;

    if (!must_fail) {
        return hvd_init(err);
    }
    (void)hvd_init_ranks(&nobody, 1, err);
    usleep(4000000);
    _exit(code);
}

int main(int argc, char **argv)
{
    struct hvd_error err = {0};
    const char *rank = getenv("HOROVOD_RANK");
    bool is_victim = argc == 4 && rank != NULL && strcmp(rank, argv[1]) == 0;
    int status =
        argc == 4 ? join(is_victim && strcmp(argv[2], "init") == 0, atoi(argv[3]), &err)
                  : HVD_ERR_ARG;

    if (status == 0 && strcmp(argv[2], "spare") == 0) {
        return do_without(is_victim, atoi(argv[3]));
    }
    if (status == 0 && strcmp(argv[2], "leave") != 0) {
        /* hvdrun sends SIGTERM half a second after the failure, too early on a busy
         * machine */
        signal(SIGTERM, SIG_IGN);
    }
    for (int i = 0; i < 1000 && status == 0; i++) {
        if (i == 5 && hvd_rank() == atoi(argv[1])) {
            fail(argv[2], atoi(argv[3]));
        }
        status = step(&err);
    }
    usleep(20000); /* far less than the half second that hvdrun waits */
    printf("rank %d ends: %s\n", hvd_rank(), err.text);
    fflush(stdout);
    hvd_shutdown();
    return EXIT_FAILURE;
}
