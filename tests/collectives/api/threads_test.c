/* SPDX-License-Identifier: Apache-2.0 */
/* Many threads of one rank start, test and wait for requests at once. Made for the thread
 * sanitizer, but also useful without it. */
#include <pthread.h>
#include <stdatomic.h>

#include "collectives/hvd.h"
#include "tests/tap.h"

enum {
    THREADS = 6,
    CALLS = 200
};

static _Atomic int wrong;

/* Ends a request in one of three ways. */
static int end_request(struct hvd_request *request, int way)
{
    int status = HVD_INPROGRESS;

    if (way == 0) {
        return hvd_wait(request, NULL);
    }
    while (status == HVD_INPROGRESS) {
        status = way == 1 ? hvd_test(request, NULL) : hvd_wait_for(request, 1, NULL);
    }
    return status;
}

static void *work(void *arg)
{
    int thread = *(int *)arg;

    for (int i = 0; i < CALLS; i++) {
        float in = (float)(thread + i), out = -1;
        char name[32];
        struct hvd_tensor tensor = {.name = name,
                                    .input = &in,
                                    .output = &out,
                                    .dtype = HVD_FLOAT32,
                                    .device = HVD_DEVICE_CPU};
        struct hvd_request *request = NULL;

        snprintf(name, sizeof(name), "t%d.%d", thread, i);
        if (hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, NULL) != 0 ||
            end_request(request, (thread + i) % 3) != 0 || out != in) {
            atomic_fetch_add(&wrong, 1);
        }
        hvd_request_free(request);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    int numbers[THREADS];
    struct hvd_error err = {0};

    for (int round = 0; round < 3; round++) {
        if (hvd_init(&err) != 0) {
            tap_note("%s", err.text);
            return 1;
        }
        for (int i = 0; i < THREADS; i++) {
            numbers[i] = i;
            pthread_create(&threads[i], NULL, work, &numbers[i]);
        }
        for (int i = 0; i < THREADS; i++) {
            pthread_join(threads[i], NULL);
        }
        hvd_shutdown();
        tap_ok(wrong == 0, "each of %d calls from %d threads ends with its own result",
               THREADS * CALLS, THREADS);
    }
    return tap_done();
}
