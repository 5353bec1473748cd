/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of what another node sends, wherever in the network's memory it lies. Linked with
 * --wrap=hvd_net_recv: the test hands over what comes, piece by piece. */
#include <string.h>

#include "collectives/execute/run_state.h"

#include "tests/tap.h"

enum {
    COUNT = 5000, /* more than goes through the cache at a time */
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

static void post(struct hvd_run *run)
{
    const struct hvd_step step = {.kind = HVD_STEP_RECV_REDUCE,
                                  .own = {.kind = HVD_PLACE_SEND},
                                  .to = {.kind = HVD_PLACE_RECV},
                                  .bytes = BYTES,
                                  .count = COUNT};

    if (hvd_run_step(run, &step) != 0) {
        printf("Bail out! no memory\n");
        exit(1);
    }
}

/* What comes next of the message. */
static void hand_over(const char *data, size_t bytes)
{
    posted->take(posted, data, bytes);
    posted->done += bytes;
}

/* Whether sums come out right of a message that lies `shift` bytes behind an aligned place. */
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
        tap_ok(adds_up(shift, BYTES), "a message %zu bytes behind an aligned place",
               shift);
        tap_ok(adds_up(shift, PIECE), "and in two pieces");
    }
    return tap_done();
}
