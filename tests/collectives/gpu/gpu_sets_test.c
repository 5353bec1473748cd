/* SPDX-License-Identifier: Apache-2.0 */
/* Adds and removes process sets that reduce GPU tensors. A set's communicator ends with
 * the set, and tensors of other sets on the same stream do not wait for that. Runs as
 * each rank of a job of 2 or more on the stand-in. Rank 0 prints TAP; other ranks exit
 * with 1 if something is wrong. */
#include <stdlib.h>
#include <time.h>

#include "collectives/hvd.h"
#include "tests/collectives/gpu/gpu_memory.h"
#include "tests/collectives/report.h"
#include "tests/fake_gpu/fake_cuda.h"

enum {
    COUNT = 5000,
    BYTES = COUNT * (int)sizeof(float),
    ROUNDS = 12,
    ENDS = 8,
    MOST_RANKS = 16,
    LIMIT_MS = 60000,
};

static int rank, size;
static void *stream;
static float *memory; /* on the device */

static int live_comms(void)
{
    struct fake_live live;

    fake_gpu_live(&live);
    return live.comms;
}

/* Returns the number of other ranks' inboxes that are open. */
static int live_inboxes(void)
{
    struct fake_live live;

    fake_gpu_live(&live);
    return live.peer_memory;
}

static int live_after_end(void)
{
    hvd_shutdown();
    return live_comms();
}

/* Starts to reduce two tensors as one, so that they are packed. */
static struct hvd_request *start(const char *name, float *at, int set)
{
    static const int64_t half[] = {COUNT / 2};
    struct hvd_tensor pair[2] = {
        gpu_tensor(name, HVD_FLOAT32, half, 1, at, at, stream),
        gpu_tensor("half", HVD_FLOAT32, half, 1, at + COUNT / 2, at + COUNT / 2, stream)};
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    if (hvd_allreduce_start(pair, 2, HVD_SUM, 1, 1, set, &request, &err) != 0) {
        fprintf(stderr, "# rank %d: %s\n", rank, err.text);
        exit(1);
    }
    return request;
}

static bool finish(struct hvd_request *request, const float *at, float expected)
{
    static float got[COUNT];
    struct hvd_error err = {0};
    bool good = hvd_wait_on(request, stream, -1, &err) == 0;

    hvd_request_free(request);
    gpu_copy(got, at, BYTES, stream);
    gpu_finish(stream);
    for (int i = 0; i < COUNT && good; i++) {
        good = got[i] == expected;
    }
    if (!good) {
        fprintf(stderr, "# rank %d: %g, not %g: %s\n", rank, (double)got[0],
                (double)expected, err.text);
    }
    return good;
}

static void fill(float *at, float value)
{
    static float values[COUNT];

    for (int i = 0; i < COUNT; i++) {
        values[i] = value;
    }
    gpu_copy(at, values, BYTES, stream);
    gpu_finish(stream);
}

/* Creates and removes a set of all ranks but one. Meanwhile, a tensor of all ranks is in
 * flight. */
static bool come_and_go(int round)
{
    int ranks[MOST_RANKS], first = round % 2, count = size - 1;
    bool is_member = rank >= first && rank < first + count;
    struct hvd_request *inside = NULL, *beside;
    bool good;
    int set;

    for (int i = 0; i < count; i++) {
        ranks[i] = first + i;
    }
    set = call_set_add(ranks, count);
    good = set > 0;
    fill(memory, 1);
    fill(memory + COUNT, 2);
    if (good && is_member) {
        inside = start("inside", memory, set);
    }
    beside = start("beside", memory + COUNT, HVD_SET_GLOBAL);
    if (inside != NULL) {
        good &= finish(inside, memory, (float)count);
    }
    call_set_remove(set);
    good &= finish(beside, memory + COUNT, (float)(2 * size));
    if (!good) {
        fprintf(stderr, "# rank %d, round %d\n", rank, round);
    }
    return good;
}

int main(void)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    /* if NCCL's calls block, communicators end only in shutdown */
    bool blocks = getenv("NCCL_COMM_BLOCKING") != NULL;
    const bool by_kernel = getenv("HVD_GPU_ONE_KERNEL") != NULL;
    bool good = true;

    if (!gpu_open()) {
        return 1;
    }
    setenv("HOROVOD_DYNAMIC_PROCESS_SETS", "1", 1);
    rank = report_init();
    size = hvd_size();
    stream = gpu_stream();
    memory = gpu_memory(2 * (size_t)BYTES);
    for (int round = 0; round < ROUNDS && good; round++) {
        good = come_and_go(round);
    }
    report(good, "sets with GPU tensors are added and removed");
    for (int ms = 0; ms < LIMIT_MS && ((!blocks && live_comms() > 1) ||
                                       live_inboxes() > (by_kernel ? size - 1 : 0));
         ms++) {
        nanosleep(&moment, NULL);
    }
    report((live_comms() == 1) == !blocks,
           blocks ? "their communicators stay until shutdown"
                  : "their communicators are gone, that of all ranks remains");
    report(live_inboxes() == (by_kernel ? size - 1 : 0),
           by_kernel ? "their inboxes are gone, too" : "no rank has an inbox");
    report(come_and_go(0), "the next set works");
    report(getenv("HVD_NCCL_WINDOWS") == NULL || size == 2 ||
               fake_gpu_calls("ncclCommWindowRegister") > 1,
           "sets of several ranks have windows of their own if they are wanted");
    good = live_after_end() == 0;
    for (int i = 0; i < ENDS && good; i++) {
        call_init();
        good = come_and_go(i) && live_after_end() == 0;
    }
    if (!good) {
        fprintf(stderr, "# rank %d: %d communicators are left\n", rank, live_comms());
    }
    report_alone(good,
                 "no communicator is left after shutdown, even of a set just removed");
    return report_done();
}
