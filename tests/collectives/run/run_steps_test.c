/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of sums of data from another node, with any alignment in the network's buffer,
 * and of the authentication of messages. Linked with --wrap=hvd_net_recv and
 * hvd_net_send, because the test delivers messages in pieces, and with
 * --wrap=hvd_shm_region_ring, because it has no shared memory. */
#include <stdlib.h>
#include <string.h>

#include "collectives/run/run_state.h"

#include "tests/tap.h"

enum {
    COUNT = 5000, /* more elements than are copied to aligned memory at a time */
    BYTES = COUNT * sizeof(float),
    PIECE = 40 * HVD_NET_PIECE_BYTES,
};

static float own[COUNT], sums[COUNT];
static char network[BYTES + sizeof(float)];
static struct hvd_net_op *posted;

void __wrap_hvd_net_recv(struct hvd_net_flow *flow, struct hvd_net_op *op);

void __wrap_hvd_net_recv(struct hvd_net_flow *flow, struct hvd_net_op *op)
{
    (void)flow;
    posted = op;
}

static size_t covered; /* authenticated bytes of the last message sent */

void __wrap_hvd_net_send(struct hvd_net_flow *flow, struct hvd_net_op *op);

void __wrap_hvd_net_send(struct hvd_net_flow *flow, struct hvd_net_op *op)
{
    (void)flow;
    covered = op->covered;
    op->status = 0;
}

void __wrap_hvd_shm_region_ring(struct hvd_shm_region *region);

void __wrap_hvd_shm_region_ring(struct hvd_shm_region *region)
{
    (void)region;
}

/* Executes one step, which does not wait. */
static void run_step(struct hvd_run *run, const struct hvd_step *step)
{
    int64_t work = 1;
    bool moved = false;

    run->steps = step;
    run->step_count = 1;
    if (hvd_run_steps(run, &work, &moved) != HVD_INPROGRESS || !moved) {
        printf("Bail out! no memory\n");
        exit(1);
    }
}

/* Returns how many bytes of a message are authenticated in a run of this dtype.
 * is_counting: the message has the row counts of an alltoall. */
static size_t covered_of(enum hvd_dtype dtype, bool is_counting)
{
    static const struct hvd_step step = {.kind = HVD_STEP_SEND,
                                         .bytes = BYTES,
                                         .send = {.from = {.kind = HVD_LOCATION_SEND}}};
    int ranks[] = {0, 1};
    char nobody;
    struct hvd_net_flow *flows[] = {(struct hvd_net_flow *)&nobody, NULL};
    struct hvd_team team = {.ranks = ranks, .flows = flows, .send_scratch = (char *)own};
    struct hvd_run run = {.team = &team,
                          .reduction = hvd_reduction_of(dtype, HVD_SUM),
                          .is_counting = is_counting};

    run_step(&run, &step);
    hvd_op_queue_finish(&run.sends);
    return covered;
}

static void all_but_numbers_is_authenticated(void)
{
    int wrong = 0;

    for (int dtype = 0; dtype < HVD_DTYPE_COUNT; dtype++) {
        const bool is_float =
            strstr(hvd_dtype_name((enum hvd_dtype)dtype), "float") != NULL;

        wrong += covered_of((enum hvd_dtype)dtype, false) != (is_float ? 0 : SIZE_MAX);
    }
    tap_ok(wrong == 0, "messages of all types except floats are authenticated");
    tap_ok(covered_of(HVD_FLOAT32, true) == SIZE_MAX,
           "the row counts of an alltoall of floats are authenticated");
}

static void post(struct hvd_run *run)
{
    const struct hvd_step step = {.kind = HVD_STEP_RECV_REDUCE,
                                  .bytes = BYTES,
                                  .count = COUNT,
                                  .recv_reduce = {.own = {.kind = HVD_LOCATION_SEND},
                                                  .to = {.kind = HVD_LOCATION_RECV}}};

    run_step(run, &step);
}

/* Delivers the next bytes of the message. */
static void hand_over(const char *data, size_t bytes)
{
    posted->take(posted, data, bytes);
    posted->done += bytes;
}

/* Whether the sums are right for a message that lies `shift` bytes behind an aligned
 * address. Its first `first` bytes arrive before the rest. */
static bool adds_up(size_t shift, size_t first)
{
    int ranks[] = {0, 1};
    char nobody;
    struct hvd_net_flow *flows[] = {(struct hvd_net_flow *)&nobody, NULL};
    struct hvd_team team = {.ranks = ranks,
                            .flows = flows,
                            .send_scratch = (char *)own,
                            .recv_scratch = (char *)sums};
    struct hvd_run run = {.team = &team,
                          .reduction = hvd_reduction_of(HVD_FLOAT32, HVD_SUM)};
    int wrong = 0;

    for (int i = 0; i < COUNT; i++) {
        float value = (float)(2 * i);

        own[i] = (float)(i % 100);
        memcpy(network + shift + (size_t)i * sizeof(value), &value, sizeof(value));
    }
    memset(sums, 0, sizeof(sums));
    post(&run);
    hand_over(network + shift, first);
    if (first < BYTES) {
        hand_over(network + shift + first, BYTES - first);
    }
    for (int i = 0; i < COUNT; i++) {
        wrong += sums[i] != (float)(2 * i + i % 100);
    }
    hvd_op_queue_finish(&run.recvs);
    return wrong == 0;
}

int main(void)
{
    for (size_t shift = 0; shift < sizeof(float); shift++) {
        tap_ok(adds_up(shift, BYTES),
               "adds a message %zu bytes behind an aligned address", shift);
        tap_ok(adds_up(shift, PIECE), "adds the same message in two pieces");
    }
    all_but_numbers_is_authenticated();
    return tap_done();
}
