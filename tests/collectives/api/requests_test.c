/* SPDX-License-Identifier: Apache-2.0 */
/* Requests on all ranks of a job: many at once, mismatches, names in use, and a shutdown
 * in the middle. Rank 0 prints TAP; a rank that finds an error ends with status 1. */
#include <pthread.h>
#include <string.h>

#include "tests/collectives/report.h"

static int rank, size;

static struct hvd_request *start_sum(const char *name, float *data, int64_t count)
{
    struct hvd_tensor tensor = call_tensor(name, HVD_FLOAT32, &count, 1, data, data);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    if (hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, &err) != 0) {
        call_finish(1, NULL, &err);
    }
    return request;
}

static int64_t elements_of(int n)
{
    return 1 + n * 7919 % 3000;
}

/* Each rank starts the tensors in a different order, and waits for them by descending
 * number. */
static void test_many_at_once(void)
{
    enum {
        MANY = 200
    };
    struct hvd_request *requests[MANY];
    float *data[MANY];
    struct hvd_error err = {0};
    int wrong = 0;

    for (int i = 0; i < MANY; i++) {
        int n = (i * 7 + rank * 13) % MANY;
        char name[32];

        snprintf(name, sizeof(name), "many.%d", n);
        data[n] = malloc((size_t)elements_of(n) * sizeof(float));
        for (int64_t k = 0; k < elements_of(n); k++) {
            data[n][k] = (float)(n + rank);
        }
        requests[n] = start_sum(name, data[n], elements_of(n));
    }
    for (int n = MANY - 1; n >= 0; n--) {
        float expected = (float)(n * size + size * (size - 1) / 2);

        call_finish(0, &requests[n], &err);
        for (int64_t k = 0; k < elements_of(n); k++) {
            wrong += data[n][k] != expected;
        }
        hvd_request_free(requests[n]);
        free(data[n]);
    }
    report_alone(wrong == 0,
                 "200 tensors in flight, in another order on every rank, all arrive");
}

static void test_mismatch(void)
{
    double value = 1, sum = 0;
    struct hvd_tensor tensor = call_tensor(
        "mismatch", rank == 0 ? HVD_FLOAT32 : HVD_FLOAT64, NULL, 0, &value, &sum);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int status = hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, &err);

    if (status != 0) {
        call_finish(status, NULL, &err);
    }
    status = hvd_wait(request, &err);
    report_alone(status == HVD_ERR_MISMATCH &&
                     strncmp(err.text, "Mismatched data types: ", 23) == 0,
                 "a mismatch fails on every rank with Horovod's message");
    hvd_request_free(request);
    report_alone(call_sums_ones("mismatch"), "the job goes on after a mismatch");
}

static void test_duplicate(void)
{
    double value = 1, sum = 0;
    struct hvd_tensor tensors[2] = {
        call_tensor("twice", HVD_FLOAT64, NULL, 0, &value, &sum),
        call_tensor("twice", HVD_FLOAT64, NULL, 0, &value, &sum),
    };
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int status = hvd_allreduce_start(tensors, 2, HVD_SUM, 1, 1, 0, &request, &err);

    report_alone(status == HVD_ERR_ARG && request == NULL,
                 "a name that is in flight is refused");
    call_allreduce(tensors, 1, HVD_SUM, 1, 1, 0);
    report_alone(sum == size, "a name is free again after its tensor has ended");
}

/* The barriers of a rank are counted, and those with the same number match. A barrier
 * that is refused on one rank must not be counted. */
static void test_refused_barrier(void)
{
    struct hvd_request *request = NULL;
    bool refused = rank != 0 || hvd_barrier_start(7, &request, NULL) == HVD_ERR_ARG;
    struct hvd_error err = {0};
    int status = hvd_barrier_start(0, &request, &err);

    if (status == 0) {
        status = hvd_wait_for(request, 30000, &err);
    }
    report_alone(refused && status == 0,
                 "a barrier that was refused on one rank does not count");
    if (status != HVD_INPROGRESS) {
        hvd_request_free(request);
    }
}

/* Waits for a tensor that no other rank submits. */
static void *wait_alone(void *arg)
{
    char name[32] = "";
    float value = 0;
    struct hvd_tensor tensor = call_tensor(name, HVD_FLOAT32, NULL, 0, &value, &value);
    struct hvd_request *request = NULL;
    int *status = arg;

    snprintf(name, sizeof(name), "lonely.%d", rank);
    *status = hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, NULL);
    if (*status == 0) {
        *status = hvd_wait(request, NULL);
    }
    hvd_request_free(request);
    return NULL;
}

static void test_shutdown_with_a_waiter(void)
{
    pthread_t thread;
    int status = 0;

    pthread_create(&thread, NULL, wait_alone, &status);
    for (int i = 0; i < 3; i++) {
        call_barrier();
    }
    hvd_shutdown();
    pthread_join(thread, NULL);
    /* HVD_ERR_STATE: the job had ended before the thread started its request */
    report_alone(status == HVD_ERR_SHUTDOWN || status == HVD_ERR_STATE,
                 "shutdown ends a wait in another thread");
}

int main(void)
{
    rank = report_init();
    size = hvd_size();
    test_many_at_once();
    if (size > 1) {
        test_mismatch();
    }
    test_duplicate();
    test_refused_barrier();
    call_barrier();
    if (size > 1) {
        test_shutdown_with_a_waiter();
    }
    hvd_shutdown();
    return report_done();
}
