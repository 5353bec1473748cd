/* SPDX-License-Identifier: Apache-2.0 */
/* A tensor of more than 2^31 elements. Runs as each rank of a job. Skipped if the machine
 * has not enough memory. */
#include <string.h>

#include "collectives/hvd.h"
#include "tests/tap.h"

static const int64_t count = ((int64_t)1 << 31) + 5;

static int64_t available_bytes(void)
{
    FILE *file = fopen("/proc/meminfo", "r");
    char line[256];
    int64_t kb = 0;

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "MemAvailable:", 13) == 0) {
            kb = strtoll(line + 13, NULL, 10);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return kb * 1024;
}

/* Returns the smallest amount of memory that is available on any rank, so that all ranks
 * decide alike. */
static int64_t least_available(void)
{
    int64_t bytes = available_bytes();
    struct hvd_tensor tensor = {.name = "memory",
                                .input = &bytes,
                                .output = &bytes,
                                .dtype = HVD_INT64,
                                .device = HVD_DEVICE_CPU};
    struct hvd_request *request = NULL;
    struct hvd_error err;

    if (hvd_allreduce_start(&tensor, 1, HVD_MIN, 1, 1, 0, &request, &err) != 0 ||
        hvd_wait(request, &err) != 0) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    hvd_request_free(request);
    return bytes;
}

static int64_t wrong_elements(const unsigned char *data, unsigned char expected)
{
    int64_t wrong = 0;

    for (int64_t i = 0; i < count; i++) {
        wrong += data[i] != expected;
    }
    return wrong;
}

static bool reduce_big(void)
{
    unsigned char *data = malloc((size_t)count);
    struct hvd_tensor tensor = {.name = "big",
                                .input = data,
                                .output = data,
                                .shape = &count,
                                .ndim = 1,
                                .dtype = HVD_UINT8,
                                .device = HVD_DEVICE_CPU};
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    bool good;

    if (data == NULL) {
        return false;
    }
    memset(data, hvd_rank() + 1, (size_t)count);
    good = hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, &err) == 0 &&
           hvd_wait(request, &err) == 0;
    if (!good) {
        fprintf(stderr, "# %s\n", err.text);
    }
    good = good &&
           wrong_elements(data, (unsigned char)(hvd_size() * (hvd_size() + 1) / 2)) == 0;
    hvd_request_free(request);
    free(data);
    return good;
}

int main(void)
{
    const char promise[] = "an allreduce of more than 2^31 elements is right everywhere";
    struct hvd_error err = {0};
    bool good = true;
    int rank;

    if (hvd_init(&err) != 0) {
        fprintf(stderr, "# %s\n", err.text);
        return 1;
    }
    rank = hvd_rank();
    if (least_available() < (hvd_size() + 1) * count) {
        if (rank == 0) {
            tap_skip(promise, "needs 2 GiB of free memory for each rank, and 2 more");
        }
    } else {
        good = reduce_big();
        if (rank == 0) {
            tap_ok(good, "%s", promise);
        }
    }
    hvd_shutdown();
    return rank == 0 ? tap_done() : !good;
}
