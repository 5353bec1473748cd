/* SPDX-License-Identifier: Apache-2.0 */
/* A job of one rank has nothing to do for collectives in place: the tensors are in memory
 * that can be neither read nor written, so that any access ends the test. Prints TAP. */
#include <sys/mman.h>

#include "tests/collectives/calls.h"
#include "tests/tap.h"

enum {
    BYTES = 40 << 20, /* large enough for every algorithm and for non-temporal stores */
};

static void *memory;

static bool ends_well(int started, struct hvd_request *request, struct hvd_error *err)
{
    int status = started != 0 ? started : hvd_wait(request, err);

    if (status != 0) {
        tap_note("%s", err->text);
    }
    hvd_request_free(request);
    return status == 0;
}

static bool reduces(enum hvd_dtype dtype, enum hvd_op op, int64_t bytes)
{
    int64_t count = bytes / (int64_t)hvd_dtype_bytes(dtype);
    struct hvd_tensor tensor =
        call_tensor("untouchable", dtype, &count, 1, memory, memory);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int started =
        hvd_allreduce_start(&tensor, 1, op, 1, 1, HVD_SET_GLOBAL, &request, &err);

    return ends_well(started, request, &err);
}

static bool broadcasts(int64_t bytes)
{
    struct hvd_tensor tensor =
        call_tensor("untouchable", HVD_UINT8, &bytes, 1, memory, memory);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int started = hvd_broadcast_start(&tensor, 0, HVD_SET_GLOBAL, &request, &err);

    return ends_well(started, request, &err);
}

int main(void)
{
    static const enum hvd_op ops[] = {HVD_AVERAGE, HVD_SUM, HVD_MIN, HVD_PRODUCT};
    static const int64_t sizes[] = {8, 4096, 1 << 20, BYTES};

    memory = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    tap_ok(memory != MAP_FAILED && call_init() == 0 && hvd_size() == 1,
           "a job of one rank starts");
    for (int i = 0; i < 4; i++) {
        for (int dtype = 0; dtype < HVD_DTYPE_COUNT; dtype++) {
            bool good = true;

            /* booleans have no average */
            for (int op = dtype == HVD_BOOL; op < 4; op++) {
                good = reduces((enum hvd_dtype)dtype, ops[op], sizes[i]) && good;
            }
            tap_ok(good, "an allreduce in place of %lld bytes of %s touches nothing",
                   (long long)sizes[i], hvd_dtype_name((enum hvd_dtype)dtype));
        }
        tap_ok(broadcasts(sizes[i]), "a broadcast in place of %lld bytes touches nothing",
               (long long)sizes[i]);
    }
    hvd_shutdown();
    return tap_done();
}
