/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of one schedule that are in flight, in the order in which they were
 * posted. */
#include "collectives/run/op_queue.h"

#include <stdlib.h>

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

struct hvd_op_item *hvd_op_queue_next(struct hvd_op_queue *queue)
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
    return item;
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

int hvd_op_queue_drain(struct hvd_op_queue *queue)
{
    int status = hvd_op_queue_wait(queue, queue->posted);

    if (status == 0) {
        queue->posted = 0;
        queue->done = 0;
    }
    return status;
}
