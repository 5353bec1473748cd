/* SPDX-License-Identifier: Apache-2.0 */
/* Fuses tensors that are ready on all ranks into batches. */
#include "collectives/agreement/fusion.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/agreement/codec.h"
#include "collectives/agreement/ready_table.h"
#include "collectives/agreement/validate.h"

/* Counts the tensors of a group that are ready. */
struct ready_group {
    uint64_t id;
    int ready;
    bool is_whole; /* all tensors were ready at the same time */
};

void hvd_fusion_queue_init(struct hvd_fusion_queue *queue, struct hvd_ready_table *table,
                           const struct hvd_fusion *fusion)
{
    *queue = (struct hvd_fusion_queue){
        .table = table, .fusion = fusion, .ready_end = &queue->ready};
}

static void free_ready(struct hvd_ready *ready)
{
    while (ready != NULL) {
        struct hvd_ready *next = ready->next;

        free(ready);
        ready = next;
    }
}

void hvd_fusion_queue_finish(struct hvd_fusion_queue *queue)
{
    size_t cursor = 0;
    struct ready_group *group;

    for (struct hvd_ready *ready = queue->ready; ready != NULL; ready = ready->next) {
        hvd_ready_table_give_back(queue->table, ready->ready_tensor);
    }
    free_ready(queue->ready);
    free_ready(queue->spare);
    while ((group = hvd_hash_table_next(&queue->groups, &cursor)) != NULL) {
        free(group);
    }
    hvd_hash_table_finish(&queue->groups);
}

/* --- groups --- */

static bool has_group_id(const void *item, const void *key)
{
    const struct ready_group *group = item;
    const uint64_t *id = key;

    return group->id == *id;
}

static uint64_t group_of(const struct hvd_ready *ready)
{
    return ready->in_group ? hvd_ready_tensor_descriptor(ready->ready_tensor)->group : 0;
}

static struct ready_group *find_group(struct hvd_fusion_queue *queue, uint64_t id)
{
    return hvd_hash_table_find(&queue->groups, hvd_hash_number(id), has_group_id, &id);
}

static int count_in_group(struct hvd_fusion_queue *queue, uint64_t id, int size)
{
    struct ready_group *group = find_group(queue, id);

    if (group == NULL) {
        group = calloc(1, sizeof(*group));
        if (group == NULL ||
            hvd_hash_table_add(&queue->groups, hvd_hash_number(id), group) != 0) {
            free(group);
            return HVD_ERR_NOMEM;
        }
        group->id = id;
    }
    group->ready++;
    group->is_whole |= group->ready == size;
    return 0;
}

static void leave_group(struct hvd_fusion_queue *queue, const struct hvd_ready *ready)
{
    uint64_t id = group_of(ready);
    struct ready_group *group = id != 0 ? find_group(queue, id) : NULL;

    if (group != NULL && --group->ready == 0) {
        hvd_hash_table_remove(&queue->groups, hvd_hash_number(id), has_group_id, &id);
        free(group);
    }
}

/* Whether a tensor waits for the rest of its group. It waits for one cycle at most,
 * because ranks may form their groups differently. Once all ranks have joined, it does
 * not wait, because no other tensor will come. */
static bool waits_for_group(struct hvd_fusion_queue *queue, const struct hvd_ready *ready)
{
    const struct hvd_sets *sets = queue->table->sets;
    uint64_t id = group_of(ready);

    return id != 0 && sets->joined < sets->layout->size &&
           !find_group(queue, id)->is_whole &&
           queue->now_ns - ready->ready_ns < queue->fusion->cycle_ns;
}

/* --- ready tensors --- */

/* Whether all ranks have the tensor in the same group. */
static bool have_one_group(const struct hvd_ready_tensor *ready_tensor)
{
    const struct hvd_descriptor *first = hvd_ready_tensor_descriptor(ready_tensor);
    bool have = first->group != 0;

    for (int i = 0; i < ready_tensor->described && have; i++) {
        have = ready_tensor->descriptions[i]->group == first->group &&
               ready_tensor->descriptions[i]->group_size == first->group_size;
    }
    return have;
}

static void check_ready(const struct hvd_fusion_queue *queue, struct hvd_ready *ready)
{
    hvd_ready_tensor_find_rank(queue->table, ready->ready_tensor);
    ready->status = hvd_validate(ready->ready_tensor, &ready->error);
    ready->in_group = have_one_group(ready->ready_tensor);
}

int hvd_fusion_queue_add(struct hvd_fusion_queue *queue,
                         struct hvd_ready_tensor *ready_tensor, int64_t now_ns)
{
    struct hvd_ready *ready = queue->spare;

    if (ready != NULL) {
        queue->spare = ready->next;
    } else {
        ready = malloc(sizeof(*ready));
    }
    if (ready == NULL) {
        hvd_ready_table_give_back(queue->table, ready_tensor);
        return HVD_ERR_NOMEM;
    }
    ready->next = NULL;
    ready->ready_tensor = ready_tensor;
    ready->ready_ns = now_ns;
    ready->bytes = ready_tensor->cached != NULL
                       ? ready_tensor->cached->bytes
                       : hvd_descriptor_bytes(ready_tensor->descriptions[0]);
    check_ready(queue, ready);
    if (ready->in_group &&
        count_in_group(queue, hvd_ready_tensor_descriptor(ready_tensor)->group,
                       hvd_ready_tensor_descriptor(ready_tensor)->group_size) != 0) {
        ready->in_group = false;
    }
    *queue->ready_end = ready;
    queue->ready_end = &ready->next;
    queue->bytes += ready->bytes;
    return 0;
}

bool hvd_fusion_queue_is_due(const struct hvd_fusion_queue *queue, bool is_waited,
                             int64_t now_ns)
{
    return queue->ready != NULL &&
           (is_waited || now_ns - queue->ready->ready_ns >= queue->fusion->cycle_ns ||
            queue->bytes >= queue->fusion->threshold);
}

bool hvd_fusion_queue_has(const struct hvd_fusion_queue *queue, int set)
{
    const struct hvd_ready *ready = queue->ready;

    while (ready != NULL && ready->ready_tensor->key.set != set) {
        ready = ready->next;
    }
    return ready != NULL;
}

static void forget_ready(struct hvd_fusion_queue *queue, struct hvd_ready *ready)
{
    queue->bytes -= ready->bytes;
    leave_group(queue, ready);
    hvd_ready_table_give_back(queue->table, ready->ready_tensor);
    ready->next = queue->spare;
    queue->spare = ready;
}

static void find_end(struct hvd_fusion_queue *queue)
{
    struct hvd_ready **at = &queue->ready;

    while (*at != NULL) {
        at = &(*at)->next;
    }
    queue->ready_end = at;
}

void hvd_fusion_queue_drop(struct hvd_fusion_queue *queue,
                           bool (*belongs)(const void *context,
                                           const struct hvd_ready_tensor *ready_tensor),
                           const void *context)
{
    struct hvd_ready **at = &queue->ready;

    while (*at != NULL) {
        struct hvd_ready *ready = *at;

        if (belongs(context, ready->ready_tensor)) {
            *at = ready->next;
            forget_ready(queue, ready);
        } else {
            at = &ready->next;
        }
    }
    find_end(queue);
}

/* --- fusion --- */

static bool may_fuse(const struct hvd_ready *ready)
{
    enum hvd_kind kind = hvd_ready_tensor_descriptor(ready->ready_tensor)->kind;

    return (kind == HVD_KIND_ALLREDUCE || kind == HVD_KIND_ADASUM) &&
           ready->status == 0 && ready->bytes < HVD_BULK_BYTES;
}

static bool fits_batch(const struct hvd_fusion_queue *queue, const struct hvd_ready *lead,
                       const struct hvd_ready *other)
{
    const struct hvd_descriptor *a = hvd_ready_tensor_descriptor(lead->ready_tensor);
    const struct hvd_descriptor *b = hvd_ready_tensor_descriptor(other->ready_tensor);

    if (queue->fusion->groups_alone && group_of(lead) != group_of(other)) {
        return false;
    }
    return a->kind == b->kind && a->set == b->set && a->dtype == b->dtype &&
           a->wire == b->wire && a->op == b->op && a->device == b->device &&
           a->prescale == b->prescale && a->postscale == b->postscale;
}

/* Returns the most bytes that a decision needs to name a tensor. */
static size_t named_bytes(const struct hvd_ready *ready)
{
    const struct hvd_descriptor *descriptor =
        hvd_ready_tensor_descriptor(ready->ready_tensor);
    size_t note = descriptor->note != NULL ? strlen(descriptor->note) : 0;

    if (ready->ready_tensor->cached != NULL && ready->ready_tensor->described == 0) {
        return sizeof(struct hvd_record); /* its id */
    }
    return sizeof(struct hvd_record) + sizeof(*descriptor) + strlen(descriptor->name) +
           note;
}

/* Returns the most tensors that a batch may have. */
static int64_t most_tensors(const struct hvd_fusion_queue *queue,
                            const struct hvd_ready *lead)
{
    const struct hvd_descriptor *descriptor =
        hvd_ready_tensor_descriptor(lead->ready_tensor);
    const struct hvd_set *set = hvd_sets_find(queue->table->sets, descriptor->set);

    return descriptor->kind == HVD_KIND_ADASUM && set != NULL
               ? HVD_ADASUM_SLICES / set->count
               : INT64_MAX;
}

/* Moves later tensors of the queue into the batch if they can be fused with its first
 * one. */
static void gather_batch(struct hvd_fusion_queue *queue, struct hvd_fused *batch)
{
    struct hvd_ready *first = batch->first;
    struct hvd_ready **at = queue->at, **end = &first->next;
    int64_t most = most_tensors(queue, first);
    size_t named = named_bytes(first);

    while (may_fuse(first) && *at != NULL && batch->count < most) {
        struct hvd_ready *other = *at;

        if (!may_fuse(other) || waits_for_group(queue, other) ||
            !fits_batch(queue, first, other) ||
            batch->bytes + other->bytes > queue->fusion->threshold ||
            named + named_bytes(other) > HVD_MESSAGE_BYTES) {
            at = &other->next;
            continue;
        }
        *at = other->next;
        other->next = NULL;
        *end = other;
        end = &other->next;
        batch->bytes += other->bytes;
        batch->count++;
        named += named_bytes(other);
    }
}

void hvd_fusion_queue_begin(struct hvd_fusion_queue *queue, int64_t now_ns)
{
    queue->now_ns = now_ns;
    queue->at = &queue->ready;
}

struct hvd_fused hvd_fusion_queue_take(struct hvd_fusion_queue *queue)
{
    struct hvd_fused batch = {0};

    while (*queue->at != NULL && waits_for_group(queue, *queue->at)) {
        queue->at = &(*queue->at)->next;
    }
    if (*queue->at == NULL) {
        return batch;
    }
    batch =
        (struct hvd_fused){.first = *queue->at, .count = 1, .bytes = (*queue->at)->bytes};
    *queue->at = batch.first->next;
    batch.first->next = NULL;
    gather_batch(queue, &batch);
    return batch;
}

bool hvd_fusion_queue_end(struct hvd_fusion_queue *queue)
{
    bool is_all = *queue->at == NULL;

    find_end(queue);
    return is_all;
}

void hvd_fusion_queue_give_back(struct hvd_fusion_queue *queue, struct hvd_ready *first)
{
    while (first != NULL) {
        struct hvd_ready *next = first->next;

        forget_ready(queue, first);
        first = next;
    }
}
