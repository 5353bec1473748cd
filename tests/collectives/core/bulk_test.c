/* SPDX-License-Identifier: Apache-2.0 */
/* Small tensors that are submitted after a large one are not held up by it. Runs as each
 * rank of a job; rank 0 prints TAP. */
#include <string.h>

#include "tests/collectives/calls.h"
#include "tests/tap.h"

enum {
    ROUNDS = 9, /* the last ones are replayed */
    SMALL = 100,
    LARGE_ELEMENTS = 16 << 20,
};

static float *large;
static float small[SMALL];
static int rank, size;

static struct hvd_request *start(const char *name, float *data, int64_t elements)
{
    struct hvd_tensor tensor = call_tensor(name, HVD_FLOAT32, &elements, 1, data, data);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    for (int64_t i = 0; i < elements; i++) {
        data[i] = 1;
    }
    if (hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, &err) != 0) {
        fprintf(stderr, "# rank %d: %s\n", rank, err.text);
        exit(1);
    }
    return request;
}

static bool finish(struct hvd_request *request, const float *data, int64_t elements)
{
    struct hvd_error err = {0};
    bool good = true;

    call_finish(0, &request, &err);
    hvd_request_free(request);
    for (int64_t i = 0; i < elements && good; i++) {
        good = data[i] == (float)size;
    }
    return good;
}

/* Plays one round. Returns whether all small tensors ended before the large one. */
static bool play_round(bool *good)
{
    struct hvd_request *bulk = start("bulk", large, LARGE_ELEMENTS);
    struct hvd_request *requests[SMALL];
    char name[16];
    bool overtook;

    for (int i = 0; i < SMALL; i++) {
        snprintf(name, sizeof(name), "small.%d", i);
        requests[i] = start(name, &small[i], 1);
    }
    for (int i = 0; i < SMALL; i++) {
        *good &= finish(requests[i], &small[i], 1);
    }
    overtook = hvd_wait_for(bulk, 0, NULL) == HVD_INPROGRESS;
    *good &= finish(bulk, large, LARGE_ELEMENTS);
    return overtook;
}

int main(void)
{
    int overtaken = 0;
    bool good = true;

    rank = call_init();
    size = hvd_size();
    large = calloc(LARGE_ELEMENTS, sizeof(*large));
    for (int round = 0; round < ROUNDS; round++) {
        overtaken += play_round(&good) ? 1 : 0;
        call_barrier();
    }
    hvd_shutdown();
    free(large);
    if (rank == 0) {
        tap_ok(good, "%d small tensors and one of 64 MiB arrive, %d times", SMALL,
               ROUNDS);
        tap_ok(overtaken > ROUNDS / 2,
               "the small tensors overtake the large one (%d times)", overtaken);
        return tap_done();
    }
    return good ? 0 : 1;
}
