/* SPDX-License-Identifier: Apache-2.0 */
/* Host and GPU tensors together, in every collective; runs as each rank of a job of 2 or
 * more. Rank 0 prints TAP; other ranks exit with 1 if something is wrong. */
#include <string.h>

#include "collectives/hvd.h"
#include "tests/collectives/gpu/gpu_memory.h"
#include "tests/collectives/report.h"

enum {
    ROWS = 12, /* a multiple of all job sizes */
    BYTES = ROWS * (int)sizeof(float),
    ROUNDS = 20,
    MOST_RANKS = 4,
};

enum kind {
    ALLREDUCE,
    ALLGATHER,
    BROADCAST,
    ALLTOALL,
    REDUCESCATTER,
    KINDS
};

static const char *const names[KINDS] = {"ALLREDUCE", "ALLGATHER", "BROADCAST",
                                         "ALLTOALL", "REDUCESCATTER"};
static const int64_t shape[] = {ROWS};
static int rank, size;
static void *stream;

/* The memory of a tensor. */
struct memory_kind {
    bool is_on_gpu;
    float *input, *output;
};

static struct hvd_tensor tensor_of(const struct memory_kind *memory_kind, enum kind kind,
                                   const char *name)
{
    bool has_output = kind != ALLGATHER && kind != ALLTOALL;

    return (struct hvd_tensor){.name = name,
                               .input = memory_kind->input,
                               .output = has_output ? memory_kind->output : NULL,
                               .shape = shape,
                               .ndim = 1,
                               .dtype = HVD_FLOAT32,
                               .device =
                                   memory_kind->is_on_gpu ? gpu_number() : HVD_DEVICE_CPU,
                               .stream = memory_kind->is_on_gpu ? stream : NULL};
}

static struct hvd_request *start(enum kind kind, const struct memory_kind *memory_kind,
                                 const char *name)
{
    struct hvd_tensor tensor = tensor_of(memory_kind, kind, name);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int status;

    switch (kind) {
    case ALLREDUCE:
        status = hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, &err);
        break;
    case ALLGATHER:
        status = hvd_allgather_start(&tensor, 1, 0, &request, &err);
        break;
    case BROADCAST:
        status = hvd_broadcast_start(&tensor, size - 1, 0, &request, &err);
        break;
    case ALLTOALL:
        status = hvd_alltoall_start(&tensor, NULL, 0, 0, &request, &err);
        break;
    default:
        status = hvd_reducescatter_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, &err);
    }
    if (status != 0) {
        fprintf(stderr, "# rank %d, %s: %s\n", rank, name, err.text);
        exit(1);
    }
    return request;
}

/* Returns element i of rank r, a small integer: sums of these are exact. */
static float value_of(int r, int i, int round)
{
    return (float)(100 * r + i + round);
}

static float sum_of(int i, int round)
{
    float sum = 0;

    for (int r = 0; r < size; r++) {
        sum += value_of(r, i, round);
    }
    return sum;
}

static int result_count(enum kind kind)
{
    return kind == ALLGATHER ? ROWS * size : kind == REDUCESCATTER ? ROWS / size : ROWS;
}

static float right_value(enum kind kind, int i, int round)
{
    int part = ROWS / size;

    switch (kind) {
    case ALLREDUCE:
        return sum_of(i, round);
    case ALLGATHER:
        return value_of(i / ROWS, i % ROWS, round);
    case BROADCAST:
        return value_of(size - 1, i, round);
    case ALLTOALL:
        return value_of(i / part, rank * part + i % part, round);
    default:
        return sum_of(rank * part + i, round);
    }
}

static void fill(const struct memory_kind *memory_kind, int round, float *values)
{
    for (int i = 0; i < ROWS; i++) {
        values[i] = value_of(rank, i, round);
    }
    if (memory_kind->is_on_gpu) {
        gpu_copy(memory_kind->input, values, BYTES, stream);
    } else {
        memcpy(memory_kind->input, values, BYTES);
    }
}

/* Fetches the result of the request, and frees the request. */
static bool fetch(enum kind kind, const struct memory_kind *memory_kind,
                  struct hvd_request *request, float *got)
{
    size_t bytes = (size_t)result_count(kind) * sizeof(float);
    bool is_ours = kind == ALLGATHER || kind == ALLTOALL;
    struct hvd_error err = {0};
    void *taken = NULL;
    int64_t rows;
    bool good = hvd_wait_on(request, stream, -1, &err) == 0;

    if (good && memory_kind->is_on_gpu) {
        good = !is_ours ||
               hvd_request_copy(request, 0, memory_kind->output, stream, &err) == 0;
        gpu_copy(got, memory_kind->output, bytes, stream);
        gpu_finish(stream);
    } else if (good && is_ours) {
        good = hvd_request_take(request, 0, &taken, &rows) == 0;
        memcpy(got, taken, good ? bytes : 0);
        hvd_free(taken);
    } else if (good) {
        memcpy(got, memory_kind->output, bytes);
    }
    hvd_request_free(request);
    return good;
}

static bool is_right(enum kind kind, int round, const float *got)
{
    for (int i = 0; i < result_count(kind); i++) {
        if (got[i] != right_value(kind, i, round)) {
            fprintf(stderr, "# rank %d, %s: element %d is %g, not %g\n", rank,
                    names[kind], i, (double)got[i], (double)right_value(kind, i, round));
            return false;
        }
    }
    return true;
}

/* Runs all collectives at once, on host and GPU tensors, in a different order on each
 * rank. */
static void test_step(struct memory_kind (*places)[2])
{
    struct hvd_request *requests[KINDS][2];
    static float values[KINDS][2][ROWS], got[ROWS * MOST_RANKS];
    bool good = true;

    for (int round = 0; round < ROUNDS && good; round++) {
        for (int i = 0; i < 2 * KINDS; i++) {
            int at = (i + rank + round) % (2 * KINDS);
            enum kind kind = (enum kind)(at / 2);
            const struct memory_kind *memory_kind = &places[kind][at % 2];
            char name[32];

            snprintf(name, sizeof(name), "%s %d", names[kind], at % 2);
            fill(memory_kind, round, values[kind][at % 2]);
            requests[kind][at % 2] = start(kind, memory_kind, name);
        }
        for (int at = 0; at < 2 * KINDS; at++) {
            enum kind kind = (enum kind)(at / 2);

            memset(got, 0, sizeof(got));
            good &= fetch(kind, &places[kind][at % 2], requests[kind][at % 2], got) &&
                    is_right(kind, round, got);
        }
    }
    report(good, "all collectives of host and GPU tensors in one step are right");
}

static bool tells(const char *text, enum kind kind, const char *one, const char *other)
{
    char right[256];

    snprintf(right, sizeof(right),
             "Mismatched %s CPU/GPU device selection: One rank specified device %s, but "
             "another rank specified device %s.",
             names[kind], one, other);
    return strstr(text, right) != NULL;
}

/* A mismatch is reported to every rank; after that, the name can be used again. */
static void test_mismatch(enum kind kind, struct memory_kind *places)
{
    static float values[2][ROWS], got[ROWS * MOST_RANKS];
    struct hvd_error err = {0};
    struct hvd_request *request;
    char what[96];
    bool is_told;
    int status;

    fill(&places[0], 0, values[0]);
    fill(&places[1], 0, values[1]);
    request = start(kind, &places[rank == size - 1], "where");
    status = hvd_wait_on(request, stream, -1, &err);
    hvd_request_free(request);
    is_told = status == HVD_ERR_MISMATCH && (tells(err.text, kind, "CPU", "GPU") ||
                                             tells(err.text, kind, "GPU", "CPU"));
    if (!is_told) {
        fprintf(stderr, "# rank %d: %d %s\n", rank, status, err.text);
    }
    snprintf(what, sizeof(what), "%s of host and GPU tensors fails with Horovod's text",
             names[kind]);
    report(is_told, "%s", what);
    fill(&places[1], 1, values[1]);
    request = start(kind, &places[1], "where");
    snprintf(what, sizeof(what), "%s works after that", names[kind]);
    report(fetch(kind, &places[1], request, got) && is_right(kind, 1, got), "%s", what);
}

/* At first each rank has some elements of a vector and zeros elsewhere: Adasum adds such
 * orthogonal vectors. Then all ranks have the same vector: Adasum returns it unchanged.
 */
static void test_adasum(const struct memory_kind *memory_kind)
{
    static float values[ROWS], got[ROWS];
    bool good = true;

    for (int is_same = 0; is_same < 2; is_same++) {
        struct hvd_tensor tensor = tensor_of(memory_kind, ALLREDUCE, "adasum");
        struct hvd_request *request = NULL;
        struct hvd_error err = {0};

        for (int i = 0; i < ROWS; i++) {
            values[i] = is_same || i % size == rank ? (float)(i + 1) : 0;
        }
        gpu_copy(memory_kind->input, values, BYTES, stream);
        good &= hvd_allreduce_start(&tensor, 1, HVD_ADASUM, 1, 1, 0, &request, &err) == 0;
        good = good && fetch(ALLREDUCE, memory_kind, request, got);
        for (int i = 0; i < ROWS && good; i++) {
            float off = got[i] - (float)(i + 1);

            good = off < 1e-5f && off > -1e-5f;
        }
    }
    report(good, "Adasum of GPU tensors is right");
}

int main(void)
{
    struct memory_kind places[KINDS][2];

    if (!gpu_open()) {
        return 1;
    }
    rank = report_init();
    size = hvd_size();
    stream = gpu_stream();
    for (int i = 0; i < 2 * KINDS; i++) {
        bool is_on_gpu = i % 2 == 1;

        places[i / 2][i % 2] = (struct memory_kind){
            .is_on_gpu = is_on_gpu,
            .input = is_on_gpu ? gpu_memory(BYTES) : malloc(BYTES),
            .output = is_on_gpu ? gpu_memory(BYTES * MOST_RANKS) : malloc(BYTES),
        };
    }
    test_step(places);
    for (int kind = 0; kind < KINDS; kind++) {
        test_mismatch((enum kind)kind, places[kind]);
    }
    test_adasum(&places[ALLREDUCE][1]);
    for (int kind = 0; kind < KINDS; kind++) {
        free(places[kind][0].input);
        free(places[kind][0].output);
    }
    hvd_shutdown();
    return report_done();
}
