/* SPDX-License-Identifier: Apache-2.0 */
/* A job whose timeline is checked afterwards (timeline_check.py).
 *
 *   timeline_job steps             a few steps with collectives of every kind; one tensor
 *                                  fails, and for another the last rank is late
 *   timeline_job dynamic ONE TWO   starts and stops timelines in the files ONE and TWO,
 *                                  and runs collectives with and without a timeline
 *   timeline_job off               HOROVOD_TIMELINE is not set: rank 0 tests in TAP that
 *                                  no timeline can be started */
#include <string.h>
#include <time.h>

#include "tests/collectives/calls.h"
#include "tests/tap.h"

enum {
    STEPS = 5,
    REPLAYED = 30, /* equal steps, of which the later ones are replayed */
    ROWS = 8,
    LATE_MS = 100
};

static int rank, size;

static void end(int started, struct hvd_request **request)
{
    struct hvd_error err = {0};

    call_finish(started, request, &err);
    hvd_request_free(*request);
}

static void pause_ms(int ms)
{
    const struct timespec pause = {.tv_nsec = ms * 1000000L};

    nanosleep(&pause, NULL);
}

static void reduce_gradients(void)
{
    static float values[3][ROWS];
    static const char *const names[] = {"grad/\"a\"", "grad/b\\c", "grad/\xc3\xa4"};
    const int64_t shape[] = {2, ROWS / 2};
    struct hvd_request *requests[3];
    int status[3];

    for (int i = 0; i < 3; i++) {
        struct hvd_tensor tensor =
            call_tensor(names[i], HVD_FLOAT32, shape, 2, values[i], values[i]);

        status[i] =
            hvd_allreduce_start(&tensor, 1, HVD_AVERAGE, 1, 1, 0, &requests[i], NULL);
    }
    for (int i = 0; i < 3; i++) {
        end(status[i], &requests[i]);
    }
}

static void exchange(void)
{
    static double data[64 * ROWS], out[64 * ROWS];
    int64_t rows = rank + 1, all = size * 2, eight = ROWS;
    struct hvd_tensor gathered =
        call_tensor("gathered", HVD_FLOAT64, &rows, 1, data, NULL);
    struct hvd_tensor sent = call_tensor("sent", HVD_INT32, &all, 1, data, NULL);
    struct hvd_tensor shared = call_tensor("shared", HVD_FLOAT64, &eight, 1, data, data);
    struct hvd_tensor scattered =
        call_tensor("scattered", HVD_FLOAT64, &all, 1, data, out);
    struct hvd_request *request = NULL;

    end(hvd_allgather_start(&gathered, 1, 0, &request, NULL), &request);
    end(hvd_alltoall_start(&sent, NULL, 0, 0, &request, NULL), &request);
    end(hvd_broadcast_start(&shared, 0, 0, &request, NULL), &request);
    end(hvd_reducescatter_start(&scattered, 1, HVD_SUM, 1, 1, 0, &request, NULL),
        &request);
    call_barrier();
}

/* The ranks use different dtypes. */
static void disagree(void)
{
    double value = 0;
    struct hvd_tensor tensor = call_tensor("odd", rank == 0 ? HVD_FLOAT32 : HVD_FLOAT64,
                                           NULL, 0, &value, &value);
    struct hvd_request *request;

    if (hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, NULL) == 0) {
        hvd_wait(request, NULL);
        hvd_request_free(request);
    }
}

static void reduce_one(const char *name)
{
    float value = 1;
    struct hvd_tensor tensor = call_tensor(name, HVD_FLOAT32, NULL, 0, &value, &value);
    struct hvd_request *request = NULL;

    end(hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, NULL), &request);
}

static void run_steps(void)
{
    for (int step = 0; step < STEPS; step++) {
        reduce_gradients();
        exchange();
    }
    for (int step = 0; step < REPLAYED; step++) {
        reduce_gradients();
    }
    disagree();
    call_barrier();
    if (rank == size - 1) {
        pause_ms(LATE_MS);
    }
    reduce_one("late");
}

static void start_timeline(const char *path)
{
    struct hvd_error err = {0};

    /* Rank 0's message START reaches each rank before the second barrier ends there. */
    call_barrier();
    if (hvd_timeline_start(path, 1, &err) != 0) {
        fprintf(stderr, "# rank %d: %s\n", rank, err.text);
    }
    call_barrier();
}

static void stop_timeline(void)
{
    call_barrier();
    hvd_timeline_stop(NULL);
    call_barrier();
}

static void run_dynamic(const char *one, const char *two)
{
    hvd_timeline_stop(NULL);
    reduce_one("before");
    start_timeline(one);
    reduce_one("first");
    stop_timeline();
    reduce_one("between");
    start_timeline("/nowhere/trace.json");
    reduce_one("nowhere");
    start_timeline(one);
    reduce_one("first again");
    start_timeline(one);
    reduce_one("first goes on");
    start_timeline(two);
    reduce_one("second");
    stop_timeline();
    hvd_timeline_stop(NULL);
    reduce_one("after");
}

static void try_without(const char *path)
{
    static const char expected[] =
        "Set HOROVOD_TIMELINE=DYNAMIC to enable dynamic timeline usage.";
    struct hvd_error err = {0};
    int status = hvd_timeline_start(path, 0, &err);
    bool is_good = status == HVD_ERR_ARG && strcmp(err.text, expected) == 0 &&
                   hvd_timeline_stop(&err) == 0;

    if (rank == 0) {
        tap_ok(is_good, "without HOROVOD_TIMELINE no timeline can be started");
        tap_done();
    }
}

int main(int argc, char **argv)
{
    struct hvd_error err = {0};

    if (hvd_timeline_start("x", 0, &err) != HVD_ERR_STATE ||
        hvd_timeline_stop(&err) != HVD_ERR_STATE) {
        return 1;
    }
    rank = call_init();
    size = hvd_size();
    if (argc == 4) {
        run_dynamic(argv[2], argv[3]);
    } else if (strcmp(argv[1], "off") == 0) {
        try_without("/nowhere/trace.json");
    } else {
        run_steps();
    }
    hvd_shutdown();
    return tap_failed;
}
