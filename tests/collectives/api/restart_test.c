/* SPDX-License-Identifier: Apache-2.0 */
/* Persistent requests: requests that are started more than once. Runs as each rank of a
 * job; rank 0 prints TAP. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tests/collectives/report.h"

enum {
    STEPS = 200, /* steps are replayed long before the last one */
    ELEMENTS = 5
};

static int rank, size;

/* Returns the sum over ranks of rank + step. */
static float expected(int step)
{
    return (float)(size * (size - 1) / 2 + size * step);
}

static void fill(float *values, int step)
{
    for (int i = 0; i < ELEMENTS; i++) {
        values[i] = (float)(rank + step);
    }
}

static bool is_sum(const float *values, int step)
{
    bool good = true;

    for (int i = 0; i < ELEMENTS; i++) {
        good &= values[i] == expected(step);
    }
    return good;
}

static struct hvd_tensor describe(const char *name, float *values)
{
    static const int64_t shape[] = {ELEMENTS};

    return call_tensor(name, HVD_FLOAT32, shape, 1, values, values);
}

static int start_sum(const struct hvd_tensor *tensors, int count, int set,
                     struct hvd_request **request)
{
    struct hvd_error err = {0};

    return hvd_allreduce_start(tensors, count, HVD_SUM, 1, 1, set, request, &err);
}

static void test_same_memory(void)
{
    float values[2][ELEMENTS] = {{0}};
    struct hvd_tensor tensors[] = {describe("one", values[0]),
                                   describe("two", values[1])};
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    bool good = true;

    for (int step = 0; step < STEPS && good; step++) {
        fill(values[0], step);
        fill(values[1], step + 1);
        good = (step == 0 ? start_sum(tensors, 2, HVD_SET_GLOBAL, &request)
                          : hvd_request_start(request, NULL, &err)) == 0 &&
               hvd_wait(request, &err) == 0 && is_sum(values[0], step) &&
               is_sum(values[1], step + 1);
    }
    hvd_request_free(request);
    report(good, "a request of two tensors can be started repeatedly");
}

/* In each step, all ranks use other memory than in the step before. Even ranks start
 * their request again, odd ranks start a new one. */
static void test_mixed(void)
{
    float values[3][ELEMENTS];
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    bool good = true;

    for (int step = 0; step < STEPS && good; step++) {
        float *now = values[step % 3];
        struct hvd_tensor tensor = describe("mixed", now);

        fill(now, step);
        if (rank % 2 != 0) {
            hvd_request_free(request);
            request = NULL;
        }
        good = (request == NULL ? start_sum(&tensor, 1, HVD_SET_GLOBAL, &request)
                                : hvd_request_start(request, &tensor, &err)) == 0 &&
               hvd_wait(request, &err) == 0 && is_sum(now, step);
    }
    hvd_request_free(request);
    report(good, "other ranks may start new requests, and the memory may change");
}

static bool is_refused(int status, int expected_status, const struct hvd_error *err,
                       const char *why)
{
    bool good = status == expected_status && strstr(err->text, why) != NULL;

    if (!good) {
        fprintf(stderr, "# rank %d: %d '%s'\n", rank, status, err->text);
    }
    return good;
}

static void test_refusals(void)
{
    float values[ELEMENTS] = {0};
    struct hvd_tensor tensor = describe("refused", values), moved = tensor;
    struct hvd_request *request = NULL, *barrier = NULL, *other = NULL;
    struct hvd_error err = {0};
    bool good;

    good = is_refused(hvd_request_start(NULL, NULL, &err), HVD_ERR_ARG, &err,
                      "needs a request");
    call_finish(hvd_barrier_start(HVD_SET_GLOBAL, &barrier, &err), &barrier, &err);
    good &= is_refused(hvd_request_start(barrier, NULL, &err), HVD_ERR_UNSUPPORTED, &err,
                       "barrier cannot be started again: free the request");
    hvd_request_free(barrier);
    if (rank == 0) {
        start_sum(&tensor, 1, HVD_SET_GLOBAL, &request);
        if (size > 1) {
            good &= is_refused(hvd_request_start(request, NULL, &err), HVD_ERR_ARG, &err,
                               "allreduce 'refused' is still in flight: wait for it");
        }
    }
    call_barrier();
    if (rank != 0) {
        start_sum(&tensor, 1, HVD_SET_GLOBAL, &request);
    }
    good &= hvd_wait(request, &err) == 0;
    moved.output = NULL;
    good &= is_refused(hvd_request_start(request, &moved, &err), HVD_ERR_ARG, &err,
                       "tensor refused: its output is NULL");
    moved.output = values;
    moved.device = 0;
    good &= is_refused(hvd_request_start(request, &moved, &err), HVD_ERR_ARG, &err,
                       "tensor refused is on GPU 0");
    report(good, "requests that cannot be started again are refused with the reason");

    good = true;
    /* another request takes the name; the restart is refused, and its request must stay
     * usable */
    if (rank == 0) {
        good = start_sum(&tensor, 1, HVD_SET_GLOBAL, &other) == 0 &&
               is_refused(hvd_request_start(request, NULL, &err), HVD_ERR_ARG, &err,
                          "same name as another");
        good &= size == 1 || hvd_wait(request, &err) == HVD_ERR_ARG;
    } else {
        good = start_sum(&tensor, 1, HVD_SET_GLOBAL, &other) == 0;
    }
    good &= hvd_wait(other, &err) == 0;
    hvd_request_free(other);
    good &= hvd_request_start(request, NULL, &err) == 0 && hvd_wait(request, &err) == 0;
    hvd_request_free(request);
    report(good,
           "a restart is refused while the name is in flight, and works afterwards");
}

static void test_broadcast(void)
{
    float values[ELEMENTS] = {0};
    struct hvd_tensor tensor = describe("broadcast", values);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    bool good = true;

    for (int step = 0; step < STEPS && good; step++) {
        fill(values, step);
        good = (step == 0 ? hvd_broadcast_start(&tensor, size - 1, HVD_SET_GLOBAL,
                                                &request, &err)
                          : hvd_request_start(request, NULL, &err)) == 0 &&
               hvd_wait(request, &err) == 0 && values[0] == (float)(size - 1 + step);
    }
    hvd_request_free(request);
    report(good, "broadcasts can be started repeatedly");
}

static void test_removed_set(void)
{
    int ranks[64];
    float values[ELEMENTS] = {0};
    struct hvd_tensor tensor = describe("in a set", values);
    struct hvd_request *request = NULL, *change = NULL;
    struct hvd_error err = {0};
    bool good;
    int set;

    if (size == 1) {
        return;
    }
    for (int i = 0; i + 1 < size; i++) {
        ranks[i] = i;
    }
    call_finish(hvd_set_add_start(ranks, size - 1, &change, &err), &change, &err);
    set = hvd_request_set(change);
    hvd_request_free(change);
    change = NULL;
    good = true;
    if (rank < size - 1) {
        good =
            start_sum(&tensor, 1, set, &request) == 0 && hvd_wait(request, &err) == 0 &&
            hvd_request_start(request, NULL, &err) == 0 && hvd_wait(request, &err) == 0;
    }
    call_finish(hvd_set_remove_start(set, &change, &err), &change, &err);
    hvd_request_free(change);
    if (rank < size - 1) {
        good &= is_refused(hvd_request_start(request, NULL, &err), HVD_ERR_ARG, &err,
                           "Process set provided does not exist");
        hvd_request_free(request);
    }
    report(good, "a restart in a removed process set is refused");
}

static void test_next_job(void)
{
    float values[ELEMENTS] = {0};
    struct hvd_tensor tensor = describe("jobs", values);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    bool good;

    fill(values, 0);
    good = start_sum(&tensor, 1, HVD_SET_GLOBAL, &request) == 0 &&
           hvd_wait(request, &err) == 0 && hvd_request_start(request, NULL, &err) == 0 &&
           hvd_wait(request, &err) == 0;
    call_barrier();
    good &= hvd_shutdown() == 0 &&
            is_refused(hvd_request_start(request, NULL, &err), HVD_ERR_STATE, &err,
                       "has not been initialized") &&
            hvd_init(&err) == 0 &&
            is_refused(hvd_request_start(request, NULL, &err), HVD_ERR_STATE, &err,
                       "of a job that has ended");
    hvd_request_free(request);
    report(good, "a restart in a later job is refused");
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* The last rank is late in every step, for 4 s in all. A stall of 2 s would end the
 * job, but no single step stalls for so long. */
static void test_late_rank(void)
{
    const struct timespec lateness = {.tv_nsec = 30000000};
    const double start = seconds();
    float values[ELEMENTS] = {0}, is_over = 0;
    struct hvd_tensor tensor = describe("late", values);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    bool good = true;

    for (int step = 0; is_over == 0 && good; step++) {
        if (rank == size - 1) {
            nanosleep(&lateness, NULL);
        }
        values[0] = seconds() - start > 4 ? 1 : 0;
        good = (step == 0 ? start_sum(&tensor, 1, HVD_SET_GLOBAL, &request)
                          : hvd_request_start(request, NULL, &err)) == 0 &&
               hvd_wait(request, &err) == 0;
        is_over = values[0];
    }
    if (!good) {
        fprintf(stderr, "# rank %d: %s\n", rank, err.text);
    }
    hvd_request_free(request);
    report(good, "the time since the first start does not count as a stall");
}

int main(int argc, char **argv)
{
    rank = report_init();
    size = hvd_size();
    if (argc > 1 && strcmp(argv[1], "late") == 0) {
        test_late_rank();
        return hvd_shutdown() != 0 || report_done() != 0;
    }
    test_same_memory();
    test_mixed();
    test_refusals();
    test_broadcast();
    test_removed_set();
    test_next_job();
    call_barrier();
    return hvd_shutdown() != 0 || report_done() != 0;
}
