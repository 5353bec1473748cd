/* SPDX-License-Identifier: Apache-2.0 */
/* Compares every collective, dtype and op with a plain reference. Runs as each rank of a
 * job.
 *
 * All ranks walk through the same random cases. A rank can generate the inputs of all
 * ranks, and computes from them the result that it should get. Rank 0 prints TAP; the
 * other ranks print only errors, and end with status 1 if there were any. */
#include <string.h>

#include "collectives/hvd.h"
#include "tests/collectives/rank_values.h"
#include "tests/collectives/report.h"
#include "tests/collectives/test_case.h"

static int rank, size, bad;

static void complain(const struct test_case *c, int64_t index, double expected,
                     double got)
{
    bad++;
    fprintf(stderr,
            "# rank %d: %s (seed %u, %s, op %d, %lld elements): element %lld is %.9g, "
            "expected %.9g\n",
            rank, c->name, c->seed, hvd_dtype_name(c->dtype), c->op, (long long)c->count,
            (long long)index, got, expected);
}

static void check_reduction(const struct test_case *c, const void *output, int64_t begin,
                            int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        double expected = case_reduced(c, size, begin + i);
        double got = value_load(c->dtype, output, i);

        if (!case_is_close(c, size, expected, got)) {
            complain(c, begin + i, expected, got);
            return;
        }
    }
}

static struct hvd_tensor tensor_of(const struct test_case *c, const void *input,
                                   void *output, const int64_t *shape, int ndim)
{
    return (struct hvd_tensor){.name = c->name,
                               .input = input,
                               .output = output,
                               .shape = shape,
                               .ndim = ndim,
                               .dtype = c->dtype,
                               .device = HVD_DEVICE_CPU};
}

static void check_same_bits(const struct test_case *c, const void *array, int64_t count)
{
    if (!call_is_same(array, (size_t)count * hvd_dtype_bytes(c->dtype))) {
        bad++;
        fprintf(stderr, "# rank %d: %s (seed %u): ranks hold different bits\n", rank,
                c->name, c->seed);
    }
}

static void test_allreduce(const struct test_case *c)
{
    bool in_place = c->seed % 2 == 0;
    void *input = case_input(c, rank, c->count);
    void *output = in_place ? input : case_array(c->dtype, c->count);
    struct hvd_tensor tensor = tensor_of(c, input, output, &c->count, 1);

    call_allreduce(&tensor, 1, c->op, c->prescale, c->postscale, 0);
    check_reduction(c, output, 0, c->count);
    check_same_bits(c, output, c->count);
    free(in_place ? NULL : output);
    free(input);
}

/* Cuts the elements of a case into several tensors of one request. */
static void test_grouped_allreduce(const struct test_case *c)
{
    enum {
        PIECES = 5
    };
    void *input = case_input(c, rank, c->count);
    void *output = case_array(c->dtype, c->count);
    struct hvd_tensor tensors[PIECES];
    int64_t counts[PIECES], begin = 0;
    char names[PIECES][64];

    for (int i = 0; i < PIECES; i++) {
        size_t at = (size_t)begin * hvd_dtype_bytes(c->dtype);

        counts[i] = i == PIECES - 1 ? c->count - begin
                                    : value_random(c->seed, -1, i) % (c->count / 3 + 1);
        counts[i] = counts[i] > c->count - begin ? c->count - begin : counts[i];
        snprintf(names[i], sizeof(names[i]), "%s_%dof%d", c->name, i, PIECES);
        tensors[i] = tensor_of(c, (char *)input + at, (char *)output + at, &counts[i], 1);
        tensors[i].name = names[i];
        begin += counts[i];
    }
    call_allreduce(tensors, PIECES, c->op, c->prescale, c->postscale, 0);
    check_reduction(c, output, 0, c->count);
    free(output);
    free(input);
}

static void test_reducescatter(const struct test_case *c)
{
    const int64_t row = 1 + c->seed % 3;
    const int64_t rows = c->count / row;
    int64_t shape[2] = {rows, row};
    int64_t mine = rows / size + (rank < rows % size ? 1 : 0);
    int64_t begin = rank * (rows / size) + (rank < rows % size ? rank : rows % size);
    void *input = case_input(c, rank, rows * row);
    void *output = case_array(c->dtype, mine * row);
    struct hvd_tensor tensor = tensor_of(c, input, output, shape, 2);

    call_reducescatter(&tensor, 1, c->op, c->prescale, c->postscale, 0);
    check_reduction(c, output, begin * row, mine * row);
    free(output);
    free(input);
}

/* Returns the rows that rank r contributes to an allgather: any number, often none. */
static int64_t rows_of(const struct test_case *c, int r)
{
    return value_random(c->seed, r, -7) % (2 * (uint32_t)(c->count / size) + 2);
}

static void check_block(const struct test_case *c, int from, int64_t first, int64_t count,
                        const void *output, int64_t at)
{
    for (int64_t i = 0; i < count; i++) {
        double expected = value_of(c->seed, from, first + i, c->dtype, c->op);
        double got = value_load(c->dtype, output, at + i);

        if (expected != got) {
            complain(c, at + i, expected, got);
            return;
        }
    }
}

static void test_allgather(const struct test_case *c)
{
    int64_t shape[2] = {rows_of(c, rank), 2};
    void *input = case_input(c, rank, shape[0] * 2);
    struct hvd_tensor tensor = tensor_of(c, input, NULL, shape, 2);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int64_t rows, at = 0;
    void *output;

    call_finish(hvd_allgather_start(&tensor, 1, 0, &request, &err), &request, &err);
    hvd_request_take(request, 0, &output, &rows);
    for (int r = 0; r < size; r++) {
        check_block(c, r, 0, rows_of(c, r) * 2, output, at * 2);
        at += rows_of(c, r);
    }
    if (rows != at) {
        complain(c, -1, (double)at, (double)rows);
    }
    hvd_request_free(request);
    hvd_free(output);
    free(input);
}

static void test_broadcast(const struct test_case *c)
{
    int root = (int)(c->seed % (unsigned)size);
    void *input = case_input(c, rank, c->count);
    void *output =
        rank == root && c->seed % 2 == 0 ? input : case_array(c->dtype, c->count);
    struct hvd_tensor tensor = tensor_of(c, input, output, &c->count, 1);

    call_broadcast(&tensor, root, 0);
    check_block(c, root, 0, c->count, output, 0);
    free(output == input ? NULL : output);
    free(input);
}

/* Sometimes reduces in place. The outputs of all ranks but the root must stay as they
 * are. */
static void test_reduce(const struct test_case *c)
{
    int root = (int)(c->seed % (unsigned)size);
    bool in_place = c->seed % 3 == 0;
    void *input = case_input(c, rank, c->count);
    void *output = in_place ? input : case_array(c->dtype, c->count);
    void *before = case_array(c->dtype, c->count);
    struct hvd_tensor tensor = tensor_of(c, input, output, &c->count, 1);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    memcpy(before, output, (size_t)c->count * hvd_dtype_bytes(c->dtype));
    call_finish(hvd_reduce_start(&tensor, c->op, c->prescale, c->postscale, root, 0,
                                 &request, &err),
                &request, &err);
    if (rank == root) {
        check_reduction(c, output, 0, c->count);
    } else if (memcmp(before, output, (size_t)c->count * hvd_dtype_bytes(c->dtype)) !=
               0) {
        complain(c, -1, 0, 1);
    }
    hvd_request_free(request);
    free(before);
    free(in_place ? NULL : output);
    free(input);
}

/* The root gets the result in its own memory, or in memory that the library allocates. */
static void test_gather(const struct test_case *c)
{
    int root = (int)(c->seed % (unsigned)size);
    int64_t shape[2] = {rows_of(c, rank), 2}, rows = -1, at = 0, all = 0;
    void *input = case_input(c, rank, shape[0] * 2), *output, *taken = NULL;
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    struct hvd_tensor tensor;

    for (int r = 0; r < size; r++) {
        all += rank == root ? rows_of(c, r) : 0;
    }
    output = case_array(c->dtype, all * 2);
    tensor = tensor_of(c, input, output, shape, 2);
    tensor.output_bytes =
        c->seed % 2 == 0 ? 0 : (size_t)all * 2 * hvd_dtype_bytes(c->dtype);
    call_finish(hvd_gather_start(&tensor, root, 0, &request, &err), &request, &err);
    hvd_request_rows(request, 0, &rows);
    if (tensor.output_bytes == 0) {
        hvd_request_take(request, 0, &taken, &rows);
    }
    for (int r = 0; r < size && rank == root; r++) {
        check_block(c, r, 0, rows_of(c, r) * 2, taken != NULL ? taken : output, at * 2);
        at += rows_of(c, r);
    }
    if (rows != all) {
        complain(c, -1, (double)all, (double)rows);
    }
    hvd_request_free(request);
    hvd_free(taken);
    free(output);
    free(input);
}

static void test_scatter(const struct test_case *c)
{
    int root = (int)(c->seed % (unsigned)size);
    const int64_t row = 1 + c->seed % 3;
    const int64_t rows = c->count / row;
    int64_t shape[2] = {rows, row};
    int64_t mine = rows / size + (rank < rows % size ? 1 : 0);
    int64_t begin = rank * (rows / size) + (rank < rows % size ? rank : rows % size);
    void *input = rank == root ? case_input(c, rank, rows * row) : NULL;
    void *output = case_array(c->dtype, mine * row);
    struct hvd_tensor tensor = tensor_of(c, input, output, shape, 2);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    call_finish(hvd_scatter_start(&tensor, root, 0, &request, &err), &request, &err);
    check_block(c, root, begin * row, mine * row, output, 0);
    hvd_request_free(request);
    free(output);
    free(input);
}

/* Returns the rows that rank `from` sends to rank `to`. */
static int32_t split_of(const struct test_case *c, int from, int to)
{
    uint32_t most = (uint32_t)(c->count / size) + 1;

    return (int32_t)(value_random(c->seed, from, -100 - to) % most);
}

static void test_alltoall(const struct test_case *c)
{
    int32_t *splits = malloc((size_t)size * sizeof(splits[0]));
    int32_t *received = malloc((size_t)size * sizeof(received[0]));
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int64_t sent = 0, rows, at = 0;
    struct hvd_tensor tensor;
    void *input, *output;

    for (int r = 0; r < size; r++) {
        splits[r] = split_of(c, rank, r);
        sent += splits[r];
    }
    input = case_input(c, rank, sent);
    tensor = tensor_of(c, input, NULL, &sent, 1);
    call_finish(hvd_alltoall_start(&tensor, splits, size, 0, &request, &err), &request,
                &err);
    hvd_request_take(request, 0, &output, &rows);
    hvd_request_splits(request, received);
    for (int from = 0; from < size; from++) {
        int64_t first = 0;

        for (int to = 0; to < rank; to++) {
            first += split_of(c, from, to);
        }
        if (received[from] != split_of(c, from, rank)) {
            complain(c, from, split_of(c, from, rank), received[from]);
        }
        check_block(c, from, first, received[from], output, at);
        at += received[from];
    }
    hvd_request_free(request);
    hvd_free(output);
    free(input);
    free(splits);
    free(received);
}

/* Returns a number of elements that is usually small, sometimes up to 16 MiB in bytes,
 * and sometimes 0. */
static int64_t random_count(uint32_t seed, enum hvd_dtype dtype)
{
    uint32_t random = value_random(seed, -2, 0);
    int bits = random % 64 == 0 ? 24 : random % 8 == 0 ? 19 : 12;
    uint64_t bytes =
        value_random(seed, -2, 1) & ((1u << (random / 64 % (unsigned)bits + 1)) - 1);

    return random % 16 == 1 ? 0 : (int64_t)(bytes / hvd_dtype_bytes(dtype));
}

static struct test_case make_case(uint32_t seed, const char *word, enum hvd_dtype dtype,
                                  enum hvd_op op)
{
    struct test_case c = {
        .seed = seed, .dtype = dtype, .op = op, .prescale = 1, .postscale = 1};

    if (op < HVD_PRODUCT && dtype != HVD_BOOL && seed % 3 == 0) {
        c.prescale = seed % 2 == 0 ? 0.5 : 3;
        c.postscale = seed % 5 == 0 ? 1 : 0.25;
    }
    c.count = random_count(seed, dtype);
    snprintf(c.name, sizeof(c.name), "%s.%u", word, seed);
    return c;
}

static bool fits(const char *word, enum hvd_dtype dtype, enum hvd_op op)
{
    bool reduces = strstr(word, "reduce") != NULL;
    bool is_bool_average = dtype == HVD_BOOL && op == HVD_AVERAGE;
    bool is_float_bitwise = op >= HVD_BAND && value_is_float(dtype);

    /* Scaled sums of uint8 may exceed a byte, but need no exception here: they wrap
     * around, and so does the reference. */
    return op != HVD_ADASUM && !(reduces && is_bool_average) && !is_float_bitwise &&
           (reduces || op == HVD_SUM);
}

static void test_word(uint32_t seed, const char *word,
                      void (*test)(const struct test_case *), int rounds)
{
    int before = bad, cases = 0;

    for (int dtype = 0; dtype < HVD_DTYPE_COUNT; dtype++) {
        for (int op = 0; op < HVD_OP_COUNT; op++) {
            for (int round = 0;
                 fits(word, (enum hvd_dtype)dtype, (enum hvd_op)op) && round < rounds;
                 round++) {
                struct test_case c = make_case(value_random(seed, -3, cases), word,
                                               (enum hvd_dtype)dtype, (enum hvd_op)op);

                test(&c);
                cases++;
            }
        }
    }
    if (cases == 0) {
        return;
    }
    report(bad == before, "%s: %d cases of dtype, op and size equal the reference", word,
           cases);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 2;
    uint32_t seed;

    rank = report_init();
    size = hvd_size();
    seed = call_seed();
    test_word(seed, "allreduce", test_allreduce, rounds);
    test_word(seed + 1, "grouped_allreduce", test_grouped_allreduce, rounds);
    test_word(seed + 2, "reducescatter", test_reducescatter, rounds);
    test_word(seed + 3, "allgather", test_allgather, rounds);
    test_word(seed + 4, "broadcast", test_broadcast, rounds);
    test_word(seed + 5, "alltoall", test_alltoall, rounds);
    test_word(seed + 6, "reduce", test_reduce, rounds);
    test_word(seed + 7, "gather", test_gather, rounds);
    test_word(seed + 8, "scatter", test_scatter, rounds);
    hvd_shutdown();
    return report_done();
}
