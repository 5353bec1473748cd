/* SPDX-License-Identifier: Apache-2.0 */
/* Float32 tensors that travel as 16-bit floats. Runs as each rank of a job. Rank 0 prints
 * TAP; a rank that finds an error ends with status 1. Also runs on GPUs (gpu/on_gpu.h),
 * where sums are rounded after each addition. */
#include <math.h>
#include <string.h>

#include "collectives/reduce/half.h"
#include "tests/collectives/rank_values.h"
#include "tests/collectives/report.h"

enum {
    TENSORS = 7,
    STEPS = 30,
    /* elements; results of this size are written with non-temporal stores */
    LARGE = 5 << 20,
};

#ifdef ON_GPU_H
static const bool is_on_gpu = true;
#else
static const bool is_on_gpu = false;
#endif

static const int64_t counts[TENSORS] = {5000, 0, 1, 70001, 7, 1 << 20, 300};
static const int wires[] = {HVD_FLOAT16, HVD_BFLOAT16};

static int rank, size;
static uint32_t seed;

static const char *name_of(int wire)
{
    return hvd_dtype_name((enum hvd_dtype)wire);
}

static float *array(int64_t count)
{
    float *made = calloc((size_t)count + 1, sizeof(made[0]));

    if (made == NULL) {
        fprintf(stderr, "# no memory\n");
        exit(1);
    }
    return made;
}

static struct hvd_tensor tensor_of(const char *name, const int64_t *count, int wire,
                                   const void *input, void *output)
{
    struct hvd_tensor tensor = call_tensor(name, HVD_FLOAT32, count, 1, input, output);

    tensor.wire = wire;
    return tensor;
}

static void reduce(const struct hvd_tensor *tensors, int count, enum hvd_op op,
                   double prescale, double postscale, int set)
{

    call_allreduce(tensors, count, op, prescale, postscale, set);
}

/* --- values that every type holds exactly, and their sums --- */

static float whole(int of_rank, int tensor, int64_t index)
{
    return (float)((of_rank + tensor + index) % 5) - 2;
}

/* Returns the sum over ranks [first, end). */
static float whole_sum(int first, int end, int tensor, int64_t index)
{
    float sum = 0;

    for (int r = first; r < end; r++) {
        sum += whole(r, tensor, index);
    }
    return sum;
}

/* Sums all tensors as one request, with factors 0.5 before and 4 after the sum. */
static bool sum_list(int wire, bool in_place)
{
    static const char *const names[TENSORS] = {"a", "b", "c", "d", "e", "f", "g"};
    struct hvd_tensor tensors[TENSORS];
    float *inputs[TENSORS], *outputs[TENSORS];
    bool is_good = true;

    for (int i = 0; i < TENSORS; i++) {
        inputs[i] = array(counts[i]);
        outputs[i] = in_place ? inputs[i] : array(counts[i]);
        for (int64_t k = 0; k < counts[i]; k++) {
            inputs[i][k] = whole(rank, i, k);
        }
        tensors[i] = tensor_of(names[i], &counts[i], wire, inputs[i], outputs[i]);
    }
    reduce(tensors, TENSORS, HVD_SUM, 0.5, 4, HVD_SET_GLOBAL);
    for (int i = 0; i < TENSORS; i++) {
        for (int64_t k = 0; k < counts[i]; k++) {
            is_good = is_good && outputs[i][k] == 2 * whole_sum(0, size, i, k) &&
                      (in_place || inputs[i][k] == whole(rank, i, k));
        }
        is_good = is_good && outputs[i][counts[i]] == 0;
        if (!in_place) {
            free(outputs[i]);
        }
        free(inputs[i]);
    }
    return is_good;
}

static void test_lists(void)
{
    for (int i = 0; i < 2; i++) {
        report_alone(sum_list(wires[i], true), "%s: a list of tensors is summed in place",
                     name_of(wires[i]));
        report_alone(sum_list(wires[i], false),
                     "%s: a list of tensors is summed to other memory",
                     name_of(wires[i]));
    }
}

/* --- any values, against 16-bit tensors --- */

/* Returns any value. On GPUs all are of similar size, since sums there depend on the
 * order of additions. */
static float any_value(int64_t index)
{
    uint32_t random = value_random(seed, rank, index);
    float value = ((float)(random % 20001) - 10000) / 16384;

    switch (random >> 28) {
    case 0:
        return is_on_gpu ? value : value * 0x1p20f;
    case 1:
        return is_on_gpu ? value : value * 0x1p-20f;
    case 2:
        return random % 64 == 0 && !is_on_gpu ? NAN : value;
    default:
        return value;
    }
}

static uint16_t narrow(int wire, float value)
{
    return wire == HVD_FLOAT16 ? hvd_float_to_float16(value)
                               : hvd_float_to_bfloat16(value);
}

static float widen(int wire, uint16_t half)
{
    return wire == HVD_FLOAT16 ? hvd_float16_to_float(half) : hvd_bfloat16_to_float(half);
}

/* On the host, the bits must be the same. On GPUs they may differ: NCCL divides first,
 * and adds in 16 bits. */
static bool is_near(int wire, float got, float wanted)
{
    float step = wire == HVD_FLOAT16 ? 0x1p-11f : 0x1p-8f;

    return is_on_gpu ? fabsf(got - wanted) <= 2 * (float)size * step
                     : memcmp(&got, &wanted, sizeof(got)) == 0;
}

static bool average(int wire, int64_t count)
{
    float *input = array(count), *output = array(count);
    uint16_t *halves = calloc((size_t)count + 1, sizeof(halves[0]));
    struct hvd_tensor full = tensor_of("full", &count, wire, input, output);
    struct hvd_tensor half =
        call_tensor("half", (enum hvd_dtype)wire, &count, 1, halves, halves);
    bool is_good = true, is_same;

    for (int64_t k = 0; k < count; k++) {
        input[k] = any_value(k);
        halves[k] = narrow(wire, input[k]);
    }
    reduce(&full, 1, HVD_AVERAGE, 1, 3, HVD_SET_GLOBAL);
    reduce(&half, 1, HVD_AVERAGE, 1, 3, HVD_SET_GLOBAL);
    for (int64_t k = 0; k < count; k++) {
        is_good = is_good && is_near(wire, output[k], widen(wire, halves[k]));
    }
    is_same = call_is_same(output, (size_t)count * sizeof(output[0]));
    free(input);
    free(output);
    free(halves);
    return is_good && is_same;
}

static void test_values(void)
{
    for (int i = 0; i < 2; i++) {
        bool is_good = true;

        for (int k = 0; k < TENSORS; k++) {
            is_good = average(wires[i], counts[k]) && is_good;
        }
        report_alone(is_good, "%s: averages equal those of tensors of that type",
                     name_of(wires[i]));
    }
    report_alone(average(HVD_FLOAT16, LARGE),
                 "averages of 20 MiB equal those of 16-bit tensors");
}

/* --- steps that repeat are replayed --- */

static bool step(int number)
{
    static const char *const names[] = {"p", "q", "r", "s", "t", "u"};
    static const int ways[] = {0,           HVD_FLOAT16, HVD_BFLOAT16,
                               HVD_FLOAT16, 0,           HVD_BFLOAT16};
    const int64_t count = 3000;
    struct hvd_request *requests[6];
    float *data[6];
    bool is_good = true;

    for (int i = 0; i < 6; i++) {
        struct hvd_error err = {0};
        struct hvd_tensor tensor;

        data[i] = array(count);
        for (int64_t k = 0; k < count; k++) {
            data[i][k] = whole(rank, number + i, k);
        }
        tensor = tensor_of(names[i], &count, ways[i], data[i], data[i]);
        if (hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &requests[i], &err) != 0) {
            fprintf(stderr, "# rank %d: %s\n", rank, err.text);
            exit(1);
        }
    }
    for (int i = 0; i < 6; i++) {
        struct hvd_error err = {0};

        call_finish(0, &requests[i], &err);
        hvd_request_free(requests[i]);
        for (int64_t k = 0; k < count; k++) {
            is_good = is_good && data[i][k] == whole_sum(0, size, number + i, k);
        }
        free(data[i]);
    }
    return is_good;
}

static void test_steps(void)
{
    bool is_good = true;

    for (int i = 0; i < STEPS; i++) {
        is_good = step(i) && is_good;
    }
    report_alone(is_good, "steps of tensors with different wire types are replayed");
}

/* --- process sets --- */

static int add_set(int first, int end)
{
    int ranks[64];

    for (int r = first; r < end; r++) {
        ranks[r - first] = r;
    }
    return call_set_add(ranks, end - first);
}

static void test_sets(void)
{
    int half = size / 2, sets[2] = {add_set(0, half), add_set(half, size)};
    int own = rank < half ? 0 : 1;
    int first = own == 0 ? 0 : half, end = own == 0 ? half : size;
    float *data = array(counts[0]);
    struct hvd_tensor tensor = tensor_of("set", &counts[0], wires[own], data, data);
    bool is_good = true;

    for (int64_t k = 0; k < counts[0]; k++) {
        data[k] = whole(rank, 0, k);
    }
    reduce(&tensor, 1, HVD_SUM, 1, 1, sets[own]);
    for (int64_t k = 0; k < counts[0]; k++) {
        is_good = is_good && data[k] == whole_sum(first, end, 0, k);
    }
    report_alone(is_good, "%s: process sets work side by side, each with its wire type",
                 name_of(wires[own]));
    free(data);
}

/* --- ranks that disagree --- */

static bool disagree(int mine, int others, const char *wanted)
{
    float value = 1;
    struct hvd_tensor tensor =
        tensor_of("odd", NULL, rank == 0 ? mine : others, &value, &value);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int status;

    tensor.ndim = 0;
    status = hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, &err);
    if (status == 0) {
        status = hvd_wait(request, &err);
    }
    hvd_request_free(request);
    return status == HVD_ERR_MISMATCH &&
           strstr(err.text, "Mismatched wire types: One rank sends tensor odd as") !=
               NULL &&
           strstr(err.text, wanted) != NULL;
}

static void test_disagreement(void)
{
    report_alone(disagree(HVD_FLOAT16, HVD_BFLOAT16, "float16"),
                 "ranks that ask for different wire types all get an error");
    report_alone(disagree(0, HVD_FLOAT16, "float32"),
                 "all ranks get an error if one asks for no wire type");
    report_alone(sum_list(HVD_FLOAT16, true), "the job goes on after the error");
}

/* --- join --- */

/* Rank r plays three steps more than rank r + 1 before it joins. */
static void test_join(void)
{
    const int mine = 3 * (size - rank);
    bool is_good = true;

    for (int number = 0; number < mine; number++) {
        int active = size - number / 3;
        int64_t count = counts[number % TENSORS];
        float *data = array(count);
        struct hvd_tensor tensor =
            tensor_of("last", &count, wires[number % 2], data, data);

        for (int64_t k = 0; k < count; k++) {
            data[k] = whole(rank, 0, k);
        }
        reduce(&tensor, 1, HVD_SUM, 1, 1, HVD_SET_GLOBAL);
        for (int64_t k = 0; k < count; k++) {
            is_good = is_good && data[k] == whole_sum(0, active, 0, k);
        }
        free(data);
    }
    call_join();
    report_alone(is_good, "a rank that has joined takes part with zeros");
}

int main(void)
{
    rank = report_init();
    size = hvd_size();
    seed = call_seed();
    test_lists();
    test_values();
    test_steps();
    test_sets();
    test_disagreement();
    test_join();
    hvd_shutdown();
    return report_done();
}
