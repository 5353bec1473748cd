/* SPDX-License-Identifier: Apache-2.0 */
/* Compares Adasum on all ranks of a job with the plain reference; if the number of ranks
 * is not a power of two, tests that Adasum is refused.
 *
 * All ranks run the same random cases, and know the inputs of all ranks. Rank 0 prints
 * TAP; a rank that finds an error prints it and exits with 1. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/hvd.h"
#include "tests/collectives/rank_values.h"
#include "tests/collectives/reduce/adasum_reference.h"
#include "tests/collectives/report.h"

enum {
    TENSORS = 7, /* number of tensors in a group */
};

static const enum hvd_dtype dtypes[] = {HVD_FLOAT16, HVD_BFLOAT16, HVD_FLOAT32,
                                        HVD_FLOAT64};

/* How the vectors of the ranks are related. */
enum kind {
    RANDOM,
    EQUAL,
    ORTHOGONAL,
    SOME_ZERO,
    ALL_ZERO,
    OF_ALL_SIZES,
    KINDS,
};

static const char *const kind_names[KINDS] = {
    "random", "equal", "orthogonal", "partly zero", "zero", "long and short",
};

struct tensor_case {
    uint32_t seed;
    enum kind kind;
    enum hvd_dtype dtype;
    int64_t count;
    double prescale;
    double postscale;
    void *output; /* the tensor of this rank, reduced in place */
    char name[48];
};

static int rank, size, bad;

/* Returns element `index` of a rank's input. Every dtype holds the value exactly: it is
 * between -1 and 1, for OF_ALL_SIZES times a power of two. */
static double input_of(const struct tensor_case *c, int of_rank, int64_t index)
{
    int source = c->kind == EQUAL ? 0 : of_rank;
    double value = ((double)(value_random(c->seed, source, index) % 257) - 128) / 128;

    switch (c->kind) {
    case ORTHOGONAL:
        return index % size == of_rank ? value : 0;
    case SOME_ZERO:
        return value_random(c->seed, of_rank, -1) % 2 == 0 ? value : 0;
    case ALL_ZERO:
        return 0;
    case OF_ALL_SIZES:
        return ldexp(value, (int)(value_random(c->seed, of_rank, -1) % 9) - 4);
    default:
        return value;
    }
}

static void *make_input(const struct tensor_case *c, int of_rank)
{
    void *input = malloc(((size_t)c->count + 1) * hvd_dtype_bytes(c->dtype));

    for (int64_t i = 0; i < c->count; i++) {
        value_store(c->dtype, input, i, input_of(c, of_rank, i));
    }
    return input;
}

static struct adasum_vector expected_of(const struct tensor_case *c)
{
    struct adasum_vector *vectors = malloc((size_t)size * sizeof(vectors[0]));
    struct adasum_vector result;

    for (int r = 0; r < size; r++) {
        vectors[r] = adasum_vector_make(c->count);
        for (int64_t i = 0; i < c->count; i++) {
            vectors[r].value[i] = c->prescale * input_of(c, r, i);
        }
        adasum_vector_begin(&vectors[r]);
    }
    adasum_reference_tree(vectors, size);
    for (int r = 1; r < size; r++) {
        adasum_vector_finish(&vectors[r]);
    }
    result = vectors[0];
    free(vectors);
    for (int64_t i = 0; i < c->count; i++) {
        result.value[i] *= c->postscale;
        result.magnitude[i] *= fabs(c->postscale);
    }
    return result;
}

/* Whether an element is right. Equal, orthogonal and zero vectors have exact results
 * unless they are scaled. */
static bool is_right(const struct tensor_case *c, const struct adasum_vector *expected,
                     int64_t index)
{
    double got = value_load(c->dtype, c->output, index);
    bool is_exact = c->prescale == 1 && c->postscale == 1 &&
                    (c->kind == EQUAL || c->kind == ORTHOGONAL || c->kind == ALL_ZERO);

    return is_exact ? got == expected->value[index]
                    : adasum_reference_is_close(c->dtype, size, expected, index, got);
}

static void check(const struct tensor_case *c)
{
    struct adasum_vector expected = expected_of(c);

    for (int64_t i = 0; i < c->count; i++) {
        if (!is_right(c, &expected, i)) {
            bad++;
            fprintf(stderr,
                    "# rank %d: %s (seed %u, %s vectors of %lld %s): element %lld is "
                    "%.17g, expected %.17g\n",
                    rank, c->name, c->seed, kind_names[c->kind], (long long)c->count,
                    hvd_dtype_name(c->dtype), (long long)i,
                    value_load(c->dtype, c->output, i), expected.value[i]);
            break;
        }
    }
    if (!call_is_same(c->output, (size_t)c->count * hvd_dtype_bytes(c->dtype))) {
        bad++;
        fprintf(stderr, "# rank %d: %s (seed %u): ranks hold different bits\n", rank,
                c->name, c->seed);
    }
    adasum_vector_finish(&expected);
}

static int64_t random_count(uint32_t seed)
{
    static const int64_t special[] = {0, 1, 2, 3};
    uint32_t random = value_random(seed, -1, 0);

    if (random % 4 == 0) {
        return special[random / 4 % 4];
    }
    return value_random(seed, -1, 1) % (random % 16 == 1 ? 200000 : 3000);
}

static struct tensor_case make_case(uint32_t seed, enum kind kind, enum hvd_dtype dtype)
{
    struct tensor_case c = {.seed = seed,
                            .kind = kind,
                            .dtype = dtype,
                            .count = random_count(seed),
                            .prescale = 1,
                            .postscale = 1};

    if (seed % 3 == 0) {
        c.prescale = seed % 2 == 0 ? 0.5 : 3;
        c.postscale = seed % 5 == 0 ? 1 : -0.3;
    }
    snprintf(c.name, sizeof(c.name), "adasum.%u", seed);
    return c;
}

/* Reduces several tensors of one dtype and scale as one request, in place. */
static void reduce(struct tensor_case *cases, int count)
{
    struct hvd_tensor tensors[TENSORS];

    for (int i = 0; i < count; i++) {
        struct tensor_case *c = &cases[i];

        c->output = make_input(c, rank);
        tensors[i] = call_tensor(c->name, c->dtype, &c->count, 1, c->output, c->output);
    }
    call_allreduce(tensors, count, HVD_ADASUM, cases[0].prescale, cases[0].postscale, 0);
}

static void test_kind(uint32_t seed, enum kind kind, int rounds)
{
    int before = bad;
    char what[96];

    for (int i = 0; i < 4 * rounds; i++) {
        struct tensor_case c = make_case(value_random(seed, -2, i), kind, dtypes[i % 4]);

        reduce(&c, 1);
        check(&c);
        free(c.output);
    }
    snprintf(what, sizeof(what),
             "%s vectors: the results of %d cases of dtype and size are right",
             kind_names[kind], 4 * rounds);
    report(bad == before, "%s", what);
}

/* Tests that each tensor of a group is combined as a vector of its own, with the same
 * bits as when it is reduced alone. */
static void test_group(uint32_t seed, int rounds)
{
    int before = bad;

    for (int round = 0; round < 4 * rounds; round++) {
        uint32_t group_seed = value_random(seed, -3, round);
        struct tensor_case group[TENSORS];

        for (int i = 0; i < TENSORS; i++) {
            enum kind kind = (enum kind)(value_random(group_seed, -4, i) % KINDS);

            group[i] =
                make_case(value_random(group_seed, -5, i), kind, dtypes[round % 4]);
            group[i].prescale = group[0].prescale;
            group[i].postscale = group[0].postscale;
        }
        reduce(group, TENSORS);
        for (int i = 0; i < TENSORS; i++) {
            struct tensor_case alone = group[i];

            check(&group[i]);
            reduce(&alone, 1);
            bad += memcmp(alone.output, group[i].output,
                          (size_t)alone.count * hvd_dtype_bytes(alone.dtype)) != 0;
            free(alone.output);
            free(group[i].output);
        }
    }
    report(bad == before,
           "tensors of a group are right, and have the same bits as alone");
}

/* Tests Adasum out of place while a sum is in flight. */
static void test_beside_sums(void)
{
    const int64_t three = 3;
    double in[3] = {1, -2, 4}, one[3] = {1, 1, 1}, out[3] = {0}, sum[3] = {0};
    struct hvd_tensor tensor =
        call_tensor("beside.adasum", HVD_FLOAT64, &three, 1, in, out);
    struct hvd_tensor other = call_tensor("beside.sum", HVD_FLOAT64, &three, 1, one, sum);
    struct hvd_request *requests[2] = {NULL, NULL};
    struct hvd_error err = {0};

    call_finish(
        hvd_allreduce_start(&tensor, 1, HVD_ADASUM, 1, 1, 0, &requests[0], &err) ||
            hvd_allreduce_start(&other, 1, HVD_SUM, 1, 1, 0, &requests[1], &err),
        &requests[0], &err);
    call_finish(0, &requests[1], &err);
    hvd_request_free(requests[0]);
    hvd_request_free(requests[1]);
    report(memcmp(in, out, sizeof(in)) == 0 && sum[0] == size && sum[2] == size,
           "Adasum and Sum run at the same time; the input is unchanged");
}

/* Tests the error when one rank uses Sum and the others use Adasum. */
static void test_mismatch(void)
{
    float value = 1, result = 0;
    struct hvd_tensor tensor =
        call_tensor("mismatch", HVD_FLOAT32, NULL, 0, &value, &result);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    enum hvd_op op = rank == 0 ? HVD_SUM : HVD_ADASUM;
    int status = hvd_allreduce_start(&tensor, 1, op, 1, 1, 0, &request, &err);

    if (status == 0) {
        status = hvd_wait(request, &err);
    }
    hvd_request_free(request);
    report(status == HVD_ERR_MISMATCH && strstr(err.text, "Mismatched operations") &&
               strstr(err.text, "ALLREDUCE") && strstr(err.text, "ADASUM"),
           "Sum on one rank and Adasum on the others is a mismatch of operations");
}

static void test_refusal(void)
{
    float value = 1, result = 0;
    struct hvd_tensor tensor =
        call_tensor("refused", HVD_FLOAT32, NULL, 0, &value, &result);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int status = hvd_allreduce_start(&tensor, 1, HVD_ADASUM, 1, 1, 0, &request, &err);

    report(status == HVD_ERR_UNSUPPORTED && request == NULL &&
               strcmp(err.text, "Running Adasum with non-power of 2 ranks is not "
                                "supported yet.") == 0,
           "Adasum is refused if the number of ranks is not a power of two");
    report(call_sums_ones("refused"), "the job goes on after the refusal");
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 2;
    uint32_t seed;

    rank = report_init();
    size = hvd_size();
    seed = call_seed();
    if ((size & (size - 1)) != 0) {
        test_refusal();
    } else {
        for (int kind = 0; kind < KINDS; kind++) {
            test_kind(seed + (uint32_t)kind, (enum kind)kind, rounds);
        }
        test_group(seed + KINDS, rounds);
        test_beside_sums();
    }
    if (size > 1 && (size & (size - 1)) == 0) {
        test_mismatch();
    }
    hvd_shutdown();
    return report_done();
}
