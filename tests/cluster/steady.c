/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks do steps with known results until the file `end` appears where rank 0 runs: an
 * allreduce of numbers, and a broadcast of the text in HVD_TEST_CANARY. Each rank prints
 * how many steps it did and how many had a wrong result; rank 0 adds the time of a step
 * before and after the file `attack` appeared. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "collectives/hvd.h"

enum {
    NUMBERS = 16384,
    TEXT = 64, /* bytes of the broadcast */
    WARM_STEPS = 20,
    PAUSE_US = 1000, /* between steps: a few cores are shared by all ranks */
    EXIT_FAILED = 3
};

enum phase {
    QUIET,
    ATTACKED,
    ENDED
};

struct steps {
    /* element 0: the phase of rank 0; 0 from the others */
    int64_t input[NUMBERS], output[NUMBERS];
    char text[TEXT];
    long count, wrong;
    double seconds[ENDED]; /* total time of the steps of each phase */
    long counts[ENDED];
};

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static enum phase look(void)
{
    if (access("end", F_OK) == 0) {
        return ENDED;
    }
    return access("attack", F_OK) == 0 ? ATTACKED : QUIET;
}

static int finish(int status, struct hvd_request *request, struct hvd_error *err)
{
    if (status == 0) {
        status = hvd_wait(request, err);
        hvd_request_free(request);
    }
    return status;
}

static int add_numbers(struct steps *steps, struct hvd_error *err)
{
    const int64_t count = NUMBERS;
    const struct hvd_tensor tensor = {.name = "numbers",
                                      .input = steps->input,
                                      .output = steps->output,
                                      .shape = &count,
                                      .ndim = 1,
                                      .dtype = HVD_INT64,
                                      .device = HVD_DEVICE_CPU};
    const int64_t ranks = hvd_size(), sum = ranks * (ranks + 1) / 2;
    struct hvd_request *request = NULL;
    int status;

    for (int64_t i = 1; i < NUMBERS; i++) {
        steps->input[i] = (hvd_rank() + 1) * (i + steps->count);
    }
    status = hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, err);
    status = finish(status, request, err);
    for (int64_t i = 1; i < NUMBERS && status == 0; i++) {
        if (steps->output[i] != sum * (i + steps->count)) {
            steps->wrong++;
            break;
        }
    }
    return status;
}

static int tell_text(struct steps *steps, const char *canary, struct hvd_error *err)
{
    const int64_t count = TEXT;
    const struct hvd_tensor tensor = {.name = "text",
                                      .input = steps->text,
                                      .output = steps->text,
                                      .shape = &count,
                                      .ndim = 1,
                                      .dtype = HVD_UINT8,
                                      .device = HVD_DEVICE_CPU};
    const int root = (int)(steps->count % hvd_size());
    struct hvd_request *request = NULL;
    int status;

    memset(steps->text, 0, TEXT);
    if (hvd_rank() == root) {
        snprintf(steps->text, TEXT, "%s", canary);
    }
    status = hvd_broadcast_start(&tensor, root, 0, &request, err);
    status = finish(status, request, err);
    steps->wrong += status == 0 && strncmp(steps->text, canary, TEXT - 1) != 0;
    return status;
}

/* Does steps until rank 0 has seen the file `end`; all ranks stop after the same step. */
static int run(struct steps *steps, const char *canary, struct hvd_error *err)
{
    int status = 0;

    while (status == 0 && steps->output[0] != ENDED) {
        double start = now();

        steps->input[0] = hvd_rank() == 0 ? look() : QUIET;
        status = add_numbers(steps, err);
        if (status == 0) {
            status = tell_text(steps, canary, err);
        }
        steps->count++;
        if (steps->count > WARM_STEPS && steps->output[0] < ENDED) {
            steps->seconds[steps->output[0]] += now() - start;
            steps->counts[steps->output[0]]++;
        }
        if (steps->count == WARM_STEPS && hvd_rank() == 0) {
            printf("steady: %d ranks\n", hvd_size());
            fflush(stdout);
        }
        usleep(PAUSE_US);
    }
    return status;
}

static double mean_us(const struct steps *steps, enum phase phase)
{
    return steps->counts[phase] > 0
               ? 1e6 * steps->seconds[phase] / (double)steps->counts[phase]
               : 0;
}

int main(void)
{
    static struct steps steps;
    const char *canary = getenv("HVD_TEST_CANARY");
    struct hvd_error err = {0};
    int status = hvd_init(&err), rank;

    signal(SIGPIPE, SIG_IGN); /* as in Python; the reader of the output may have ended */
    if (status != 0 || canary == NULL) {
        fprintf(stderr, "%s\n", canary != NULL ? err.text : "HVD_TEST_CANARY is not set");
        return EXIT_FAILURE;
    }
    rank = hvd_rank();
    status = run(&steps, canary, &err);
    printf("rank %d: %ld steps, %ld wrong, status %d %s\n", rank, steps.count,
           steps.wrong, status, err.text);
    if (rank == 0) {
        printf("a step took %.0f us before the attack (%ld steps), %.0f us during it "
               "(%ld steps)\n",
               mean_us(&steps, QUIET), steps.counts[QUIET], mean_us(&steps, ATTACKED),
               steps.counts[ATTACKED]);
    }
    fflush(stdout);
    hvd_shutdown();
    return status == 0 && steps.wrong == 0 ? 0 : EXIT_FAILED;
}
