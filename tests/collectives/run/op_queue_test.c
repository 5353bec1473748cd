/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that are under way: which of them have ended, and what became of them. */
#include "collectives/run/op_queue.h"

#include "tests/tap.h"

enum {
    OPS = 4
};

/* Posts an op that is under way; NULL without memory. */
static struct hvd_net_op *post(struct hvd_op_queue *queue)
{
    struct hvd_op_item *item = hvd_op_queue_next(queue);

    if (item == NULL) {
        return NULL;
    }
    item->op.status = HVD_INPROGRESS;
    return &item->op;
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
    struct hvd_op_item *first = hvd_op_queue_next(&queue), *second;

    first->sum.output = 7;
    first->op.status = HVD_INPROGRESS;
    tap_ok(hvd_op_queue_wait(&queue, 1) == HVD_INPROGRESS, "an op is under way");
    first->op.status = 0;
    tap_ok(hvd_op_queue_wait(&queue, 1) == 0, "it ends");
    second = hvd_op_queue_next(&queue);
    tap_ok(second == first && second->op.status == 0 && second->sum.output == 0,
           "the next one has its memory, zeroed");
    hvd_op_queue_finish(&queue);
}

static void test_drain(void)
{
    struct hvd_op_queue queue = {0};
    struct hvd_net_op *first = post(&queue), *second = post(&queue);

    first->status = 0;
    tap_ok(hvd_op_queue_drain(&queue) == HVD_INPROGRESS && queue.posted == 2,
           "a queue is not drained while an op is under way");
    second->status = 0;
    tap_ok(hvd_op_queue_drain(&queue) == 0, "it is when all have ended");
    first = post(&queue);
    tap_ok(hvd_op_queue_wait(&queue, 1) == HVD_INPROGRESS, "the next op is its first");
    first->status = HVD_ERR_PEER;
    tap_ok(hvd_op_queue_drain(&queue) == HVD_ERR_PEER, "a failure is told");
    hvd_op_queue_finish(&queue);
}

int main(void)
{
    test_order();
    test_failure();
    test_memory();
    test_drain();
    return tap_done();
}
