/* SPDX-License-Identifier: Apache-2.0 */
/* Results so large that they are written with non-temporal stores. Runs as each rank of a
 * job; rank 0 prints TAP. Outputs begin on odd elements, so that their first and last
 * cache lines also hold other data. */
#include <stdlib.h>
#include <string.h>

#include "tests/collectives/report.h"

enum {
    ELEMENTS = (17 << 20) / sizeof(float) + 77,
    SLACK = 16, /* elements before and after an output, which must not change */
    PARTS = 4, /* tensors of a group */
};

static const float untouched = -1;

static float *input, *output; /* [size * ELEMENTS], [size * ELEMENTS + 2 * SLACK] */
static int rank, size;

/* Returns a small whole number, so that all sums are exact. */
static float value(int of, int64_t i)
{
    return (float)((i * 7 + i / 1024 + of * 31) & 1023);
}

static float sum(int64_t i)
{
    float all = 0;

    for (int of = 0; of < size; of++) {
        all += value(of, i);
    }
    return all;
}

static void fill(int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        input[i] = value(rank, i);
    }
    for (int64_t i = 0; i < count + 2 * SLACK; i++) {
        output[i] = untouched;
    }
}

static bool is_untouched(const float *data, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (data[i] != untouched) {
            return false;
        }
    }
    return true;
}

/* Whether data holds the sums of elements [first, first + count). */
static bool are_sums(const float *data, int64_t first, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (data[i] != sum(first + i)) {
            fprintf(stderr, "# rank %d: element %lld is %g, not %g\n", rank,
                    (long long)(first + i), data[i], sum(first + i));
            return false;
        }
    }
    return true;
}

static void reduce(const struct hvd_tensor *tensors, int count)
{

    call_allreduce(tensors, count, HVD_SUM, 1, 1, 0);
}

static bool adds_up(bool in_place)
{
    static const int64_t count = ELEMENTS;
    float *to = in_place ? input : output + SLACK - 1;
    struct hvd_tensor tensor = call_tensor("large", HVD_FLOAT32, &count, 1, input, to);

    fill(count);
    reduce(&tensor, 1);
    return are_sums(to, 0, count) && is_untouched(output, SLACK - 1) &&
           is_untouched(output + SLACK - 1 + (in_place ? 0 : count), SLACK + 1);
}

/* Sums several tensors, one of them short, which are fused. */
static bool adds_up_group(void)
{
    static const int64_t counts[PARTS] = {ELEMENTS / 2, 5, ELEMENTS / 3,
                                          ELEMENTS - ELEMENTS / 2 - ELEMENTS / 3 - 5};
    static const char *const names[PARTS] = {"one", "two", "three", "four"};
    struct hvd_tensor tensors[PARTS];
    int64_t at = 0;

    fill(ELEMENTS);
    for (int i = 0; i < PARTS; i++) {
        tensors[i] = call_tensor(names[i], HVD_FLOAT32, &counts[i], 1, input + at,
                                 output + SLACK + at);
        at += counts[i];
    }
    reduce(tensors, PARTS);
    return are_sums(output + SLACK, 0, ELEMENTS) && is_untouched(output, SLACK) &&
           is_untouched(output + SLACK + ELEMENTS, SLACK);
}

/* Runs a reducescatter that leaves ELEMENTS sums on each rank. */
static bool scatters(void)
{
    int64_t count = (int64_t)size * ELEMENTS;
    struct hvd_tensor tensor =
        call_tensor("scatter", HVD_FLOAT32, &count, 1, input, output + 3);

    fill(count);
    call_reducescatter(&tensor, 1, HVD_SUM, 1, 1, 0);
    return are_sums(output + 3, (int64_t)rank * ELEMENTS, ELEMENTS) &&
           is_untouched(output, 3) && is_untouched(output + 3 + ELEMENTS, SLACK);
}

static bool gathers(void)
{
    static const int64_t count = ELEMENTS;
    struct hvd_tensor tensor = call_tensor("gather", HVD_FLOAT32, &count, 1, input, NULL);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    void *taken = NULL;
    int64_t rows = 0, wrong = 0;

    fill(count);
    call_finish(hvd_allgather_start(&tensor, 1, 0, &request, &err), &request, &err);
    hvd_request_take(request, 0, &taken, &rows);
    hvd_request_free(request);
    for (int64_t i = 0; i < rows; i++) {
        wrong += ((const float *)taken)[i] != value((int)(i / count), i % count);
    }
    hvd_free(taken);
    return wrong == 0 && rows == size * count;
}

static bool broadcasts(void)
{
    static const int64_t count = ELEMENTS;
    int root = size - 1;
    struct hvd_tensor tensor =
        call_tensor("broadcast", HVD_FLOAT32, &count, 1, input, output + 1);
    int64_t wrong = 0;

    fill(count);
    call_broadcast(&tensor, root, 0);
    for (int64_t i = 0; i < count; i++) {
        wrong += output[1 + i] != value(root, i);
    }
    return wrong == 0 && is_untouched(output, 1) &&
           is_untouched(output + 1 + count, SLACK);
}

int main(void)
{
    size_t most;

    rank = report_init();
    size = hvd_size();
    most = (size_t)size * ELEMENTS;
    input = malloc(most * sizeof(*input));
    output = malloc((most + 2 * SLACK) * sizeof(*output));
    if (input == NULL || output == NULL) {
        fprintf(stderr, "rank %d: out of memory\n", rank);
        return 1;
    }
    report(adds_up(false), "an allreduce of 17 MiB is right");
    report(adds_up(true), "an allreduce of 17 MiB in place is right");
    report(adds_up_group(), "an allreduce of several tensors with 17 MiB is right");
    report(scatters(), "a reducescatter to 17 MiB on each rank is right");
    report(gathers(), "an allgather of 17 MiB from each rank is right");
    report(broadcasts(), "a broadcast of 17 MiB is right");
    hvd_shutdown();
    free(input);
    free(output);
    return report_done();
}
