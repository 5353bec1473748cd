/* SPDX-License-Identifier: Apache-2.0 */
/* Reduces large GPU tensors on several nodes, with several batches in flight and small
 * tensors between them. Runs as each rank of a job. With NODES_WIRE=1 allreduces send
 * float16. With NODES_ENDS=1 reduces until all sizes use NCCL alone, and tests that the
 * communicator of the node has ended. Rank 0 prints TAP; other ranks exit with 1 if
 * something is wrong. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collectives/hvd.h"
#include "tests/collectives/calls.h"
#include "tests/collectives/gpu/gpu_memory.h"
#include "tests/fake_gpu/fake_cuda.h"
#include "tests/tap.h"

enum {
    /* hvd tries each of three algorithms three times before it chooses one; each round
     * has at least one trial */
    ROUNDS = 10,
    LARGE = 3, /* tensors per round */
    COUNT = 300001, /* some chunks and a remainder */
    FEW_BYTES = 400000, /* on the wire: some chunks, but not a full window */
    SMALL = 3,
    LAST_BATCH = 200, /* then sizes without a decision stay flat */
    LIMIT_MS = 60000,
    BYTES = COUNT * (int)sizeof(float),
};

static int rank, size, wire;
static void *stream;
/* the stream may read and write these until gpu_finish returns */
static float values[COUNT];
static float results[COUNT];

struct part {
    float *memory; /* on the device */
    int64_t count;
    struct hvd_request *request;
};

static struct part large[LARGE], few, small, sent;

static float value_of(int of, int round, int which, int64_t i)
{
    return (float)(of + 3 * round + 5 * which + (int)(i % 11));
}

static void fill(struct part *part, int round, int which)
{
    for (int64_t i = 0; i < part->count; i++) {
        values[i] = value_of(rank, round, which, i);
    }
    gpu_copy(part->memory, values, (size_t)part->count * sizeof(float), stream);
    gpu_finish(stream);
}

static void start(struct part *part, const char *name, bool is_broadcast)
{
    struct hvd_tensor tensor = gpu_tensor(name, HVD_FLOAT32, &part->count, 1,
                                          part->memory, part->memory, stream);
    struct hvd_error err = {0};
    int status;

    tensor.wire = is_broadcast ? 0 : wire;
    status =
        is_broadcast
            ? hvd_broadcast_start(&tensor, size - 1, 0, &part->request, &err)
            : hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &part->request, &err);

    if (status != 0) {
        fprintf(stderr, "# rank %d: %s\n", rank, err.text);
        exit(1);
    }
}

static float expected(bool is_broadcast, int round, int which, int64_t i)
{
    float sum = 0;

    for (int r = 0; r < size; r++) {
        sum += value_of(r, round, which, i);
    }
    return is_broadcast ? value_of(size - 1, round, which, i) : sum;
}

static bool is_right(struct part *part, bool is_broadcast, int round, int which)
{
    struct hvd_error err = {0};
    int status = hvd_wait_on(part->request, stream, -1, &err);

    hvd_request_free(part->request);
    if (status != 0) {
        fprintf(stderr, "# rank %d: %s\n", rank, err.text);
        exit(1);
    }
    memset(results, 0, sizeof(results));
    gpu_copy(results, part->memory, (size_t)part->count * sizeof(float), stream);
    gpu_finish(stream);
    for (int64_t i = 0; i < part->count; i++) {
        if (results[i] != expected(is_broadcast, round, which, i)) {
            fprintf(stderr, "# rank %d, round %d, %d: element %lld is %g, not %g\n", rank,
                    round, which, (long long)i, (double)results[i],
                    (double)expected(is_broadcast, round, which, i));
            return false;
        }
    }
    return true;
}

static bool run_round(int round)
{
    static const char *const names[LARGE] = {"first", "second", "third"};
    bool good = true;

    for (int i = 0; i < LARGE; i++) {
        fill(&large[i], round, i);
    }
    fill(&small, round, LARGE);
    fill(&sent, round, LARGE + 1);
    start(&large[0], names[0], false);
    start(&sent, "sent", true);
    start(&large[1], names[1], false);
    start(&small, "small", false);
    start(&large[2], names[2], false);
    for (int i = 0; i < LARGE; i++) {
        good &= is_right(&large[i], false, round, i);
    }
    good &= is_right(&small, false, round, LARGE);
    good &= is_right(&sent, true, round, LARGE + 1);
    fill(&few, round, LARGE + 2); /* alone, so that its batch has this size */
    start(&few, "few", false);
    return is_right(&few, false, round, LARGE + 2) && good;
}

static int live_comms(void)
{
    struct fake_live live;

    fake_gpu_live(&live);
    return live.comms;
}

/* Sizes that have not come in the first large batches stay flat. */
static bool has_one_comm(void)
{
    const struct timespec moment = {.tv_nsec = 10000000};
    bool good = live_comms() == 2;

    for (int i = 0; i < LAST_BATCH && good; i++) {
        start(&few, "few", false);
        good = is_right(&few, false, ROUNDS - 1, LARGE + 2);
        fill(&few, ROUNDS - 1, LARGE + 2);
    }
    for (int i = 0; i < LIMIT_MS / 10 && live_comms() > 1; i++) {
        nanosleep(&moment, NULL);
    }
    return good && live_comms() == 1;
}

int main(void)
{
    bool good = true, is_alone = true;

    if (!gpu_open()) {
        return 1;
    }
    rank = call_init();
    size = hvd_size();
    wire = getenv("NODES_WIRE") != NULL ? HVD_FLOAT16 : 0;
    stream = gpu_stream();
    for (int i = 0; i < LARGE; i++) {
        large[i] = (struct part){.memory = gpu_memory(BYTES), .count = COUNT - i};
    }
    small = (struct part){.memory = gpu_memory(BYTES), .count = SMALL};
    few = (struct part){.memory = gpu_memory(BYTES),
                        .count = FEW_BYTES / (wire != 0 ? 2 : 4)};
    sent = (struct part){.memory = gpu_memory(BYTES), .count = COUNT / 2};
    for (int round = 0; round < ROUNDS; round++) {
        good &= run_round(round);
    }
    if (getenv("NODES_ENDS") != NULL) {
        fill(&few, ROUNDS - 1, LARGE + 2);
        is_alone = has_one_comm();
    }
    call_barrier();
    hvd_shutdown();
    if (rank == 0 && getenv("NODES_ENDS") != NULL) {
        tap_ok(is_alone, "NCCL alone is faster: the communicator of the node has ended");
    }
    if (rank == 0) {
        tap_ok(good, "tensors in pieces, small tensors and broadcasts are right when all "
                     "are in flight");
        return tap_done();
    }
    return good && is_alone ? 0 : 1;
}
