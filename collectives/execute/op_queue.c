/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of one schedule that are under way, in the order in which they were posted. */
#include "collectives/execute/op_queue.h"

#include <stdlib.h>

struct hvd_op_item {
    struct hvd_net_op op; /* first: the item is found by it */
    struct hvd_op_sum sum;
    struct hvd_op_item *next;
};

static void free_items(struct hvd_op_item *item)
{
    while (item != NULL) {
        struct hvd_op_item *next = item->next;

        free(item);
        item = next;
    }
}

void hvd_op_queue_finish(struct hvd_op_queue *queue)
{
    free_items(queue->first);
    free_items(queue->spare);
    *queue = (struct hvd_op_queue){0};
}

struct hvd_net_op *hvd_op_queue_next(struct hvd_op_queue *queue)
{
    struct hvd_op_item *item = queue->spare;

    if (item != NULL) {
        queue->spare = item->next;
    } else {
        item = malloc(sizeof(*item));
        if (item == NULL) {
            return NULL;
        }
    }
    *item = (struct hvd_op_item){0};
    if (queue->first == NULL) {
        queue->first = item;
    } else {
        queue->last->next = item;
    }
    queue->last = item;
    queue->posted++;
    return &item->op;
}

struct hvd_op_sum *hvd_op_queue_sum(struct hvd_net_op *op)
{
    return &((struct hvd_op_item *)op)->sum;
}

int hvd_op_queue_wait(struct hvd_op_queue *queue, uint64_t count)
{
    while (queue->done < count) {
        struct hvd_op_item *item = queue->first;

        if (item->op.status != 0) {
            return item->op.status;
        }
        queue->first = item->next;
        item->next = queue->spare;
        queue->spare = item;
        queue->done++;
    }
    return 0;
}
