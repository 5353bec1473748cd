/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the queue of messages in flight: which of them have ended, and with which
 * status. */
#include "collectives/run/op_queue.h"

#include "tests/tap.h"

enum {
    OPS = 4
};

/* Adds an op that is in flight; NULL if memory is out. */
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
    tap_ok(hvd_op_queue_wait(&queue, 0) == 0, "waiting for 0 ops returns at once");
    ops[1]->status = 0;
    tap_ok(hvd_op_queue_wait(&queue, 2) == HVD_INPROGRESS,
           "waiting for two ops is in progress while the first is in flight");
    ops[0]->status = 0;
    tap_ok(hvd_op_queue_wait(&queue, 2) == 0 && queue.done == 2,
           "waiting for two ops succeeds when both have ended");
    tap_ok(hvd_op_queue_wait(&queue, 1) == 0,
           "waiting for the first op succeeds as well");
    tap_ok(hvd_op_queue_wait(&queue, 3) == HVD_INPROGRESS,
           "waiting for the third op, in flight, is in progress");
    ops[2]->status = ops[3]->status = 0;
    tap_ok(hvd_op_queue_wait(&queue, OPS) == 0,
           "waiting for all ops succeeds when all have ended");
    hvd_op_queue_finish(&queue);
}

static void test_failure(void)
{
    struct hvd_op_queue queue = {0};
    struct hvd_net_op *first = post(&queue), *second = post(&queue);

    second->status = HVD_ERR_PEER;
    tap_ok(hvd_op_queue_wait(&queue, 2) == HVD_INPROGRESS,
           "a failure is not reported before the ops before it have ended");
    first->status = 0;
    tap_ok(hvd_op_queue_wait(&queue, 1) == 0, "the op before a failed one has succeeded");
    tap_ok(hvd_op_queue_wait(&queue, 2) == HVD_ERR_PEER,
           "a failed op returns its status");
    tap_ok(hvd_op_queue_wait(&queue, 2) == HVD_ERR_PEER,
           "a failed op returns its status again");
    hvd_op_queue_finish(&queue);
}

static void test_memory(void)
{
    struct hvd_op_queue queue = {0};
    struct hvd_op_item *first = hvd_op_queue_next(&queue), *second;

    first->sum.output = 7;
    first->op.status = HVD_INPROGRESS;
    tap_ok(hvd_op_queue_wait(&queue, 1) == HVD_INPROGRESS, "a new op is in flight");
    first->op.status = 0;
    tap_ok(hvd_op_queue_wait(&queue, 1) == 0,
           "waiting for an op succeeds when it has ended");
    second = hvd_op_queue_next(&queue);
    tap_ok(second == first && second->op.status == 0 && second->sum.output == 0,
           "the next op reuses its memory, zeroed");
    hvd_op_queue_finish(&queue);
}

static void test_drain(void)
{
    struct hvd_op_queue queue = {0};
    struct hvd_net_op *first = post(&queue), *second = post(&queue);

    first->status = 0;
    tap_ok(hvd_op_queue_drain(&queue) == HVD_INPROGRESS && queue.posted == 2,
           "a queue is not drained while an op is in flight");
    second->status = 0;
    tap_ok(hvd_op_queue_drain(&queue) == 0, "a queue is drained when all ops have ended");
    first = post(&queue);
    tap_ok(hvd_op_queue_wait(&queue, 1) == HVD_INPROGRESS,
           "after that the next op counts as the first");
    first->status = HVD_ERR_PEER;
    tap_ok(hvd_op_queue_drain(&queue) == HVD_ERR_PEER,
           "draining returns the failure of an op");
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
