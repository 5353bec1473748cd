/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that are under way: which of them have ended, and what became of them. */
#include "collectives/execute/op_queue.h"

#include "tests/tap.h"

enum {
    OPS = 4
};

/* Posts an op that is under way; NULL without memory. */
static struct hvd_net_op *post(struct hvd_op_queue *queue)
{
    struct hvd_net_op *op = hvd_op_queue_next(queue);

    if (op != NULL) {
        op->status = HVD_INPROGRESS;
    }
    return op;
}

static void test_order(void)
{
    struct hvd_op_queue queue = {0};
    struct hvd_net_op *ops[OPS];

    for (int i = 0; i < OPS; i++) {
        ops[i] = post(&queue);
    }
    tap_ok(hvd_op_queue_wait(&queue, 0) == 0, "no op has to be waited for");
    ops[1]->status = 0;
    tap_ok(hvd_op_queue_wait(&queue, 2) == HVD_INPROGRESS,
           "two have not ended while the first is under way");
    ops[0]->status = 0;
    tap_ok(hvd_op_queue_wait(&queue, 2) == 0 && queue.done == 2, "now they have");
    tap_ok(hvd_op_queue_wait(&queue, 1) == 0, "so has the first of them");
    tap_ok(hvd_op_queue_wait(&queue, 3) == HVD_INPROGRESS, "the third is under way");
    ops[2]->status = ops[3]->status = 0;
    tap_ok(hvd_op_queue_wait(&queue, OPS) == 0, "all have ended");
    hvd_op_queue_finish(&queue);
}

static void test_failure(void)
{
    struct hvd_op_queue queue = {0};
    struct hvd_net_op *first = post(&queue), *second = post(&queue);

    second->status = HVD_ERR_PEER;
    tap_ok(hvd_op_queue_wait(&queue, 2) == HVD_INPROGRESS,
           "a failure is told in its turn");
    first->status = 0;
    tap_ok(hvd_op_queue_wait(&queue, 1) == 0, "the ops before it have ended well");
    tap_ok(hvd_op_queue_wait(&queue, 2) == HVD_ERR_PEER, "it is what it was");
    tap_ok(hvd_op_queue_wait(&queue, 2) == HVD_ERR_PEER, "and stays");
    hvd_op_queue_finish(&queue);
}

static void test_memory(void)
{
    struct hvd_op_queue queue = {0};
    struct hvd_net_op *first = post(&queue), *second;
    struct hvd_op_sum *sum = hvd_op_queue_sum(first);

    sum->begin = 7;
    first->status = 0;
    tap_ok(hvd_op_queue_wait(&queue, 1) == 0, "an op ends");
    second = hvd_op_queue_next(&queue);
    tap_ok(second == first && second->status == 0 && hvd_op_queue_sum(second)->begin == 0,
           "the next one has its memory, zeroed");
    hvd_op_queue_finish(&queue);
}

int main(void)
{
    test_order();
    test_failure();
    test_memory();
    return tap_done();
}
