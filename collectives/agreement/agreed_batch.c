/* SPDX-License-Identifier: Apache-2.0 */
/* Carries out batches that all ranks have agreed on. */
#include "collectives/agreement/agreed_batch.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/agreement/agreement_state.h"

/* A tensor of a batch, as the message names it. */
struct named {
    struct hvd_cached_tensor *cached; /* NULL: not in the cache */
    /* this rank's record of the name (tensor_table.h); NULL: none */
    const struct hvd_named_tensor *known;
    const struct hvd_descriptor *descriptor;
};

/* A batch while it is parsed. */
struct reading {
    struct hvd_batch_header header;
    struct hvd_set *set;
    struct hvd_batch *batch; /* NULL: this rank is not a member of the set */
    /* [count] for rank 0's search for a period; NULL on other ranks */
    struct hvd_cached_tensor **cached;
    int64_t count; /* tensors parsed so far */
    int64_t bytes;
};

static struct hvd_entry *make_zeros(struct hvd_agreement *agreement,
                                    const struct named *tensor)
{
    /* Only a rank that has joined may lack a tensor that all others have. */
    return agreement->joins.own != NULL ? hvd_entry_create_zeros(tensor->descriptor)
                                        : NULL;
}

/* Whether this rank's entry has the batch's kind and the tensor's dtype. */
static bool suits(const struct hvd_entry *entry, const struct hvd_batch_header *header,
                  const struct named *tensor)
{
    return entry->descriptor.kind == header->kind &&
           entry->descriptor.dtype == tensor->descriptor->dtype;
}

static int take_part(struct hvd_agreement *agreement, struct reading *reading,
                     const struct named *tensor)
{
    struct hvd_entry *entry = tensor->known != NULL ? tensor->known->entry : NULL;

    /* If an entry of this name is already in an earlier batch, this rank has joined
     * since. The other ranks have finished that batch, and this rank takes part in the
     * new one with zeros. */
    entry = entry != NULL && !entry->is_agreed ? entry : NULL;
    if (reading->header.status != 0) {
        if (entry != NULL) {
            hvd_tensor_table_end(agreement->tensors, entry, reading->header.status,
                                 reading->header.text);
        }
        return 0;
    }
    if (entry != NULL && !suits(entry, &reading->header, tensor)) {
        return HVD_ERR_NET;
    }
    if (entry != NULL) {
        entry->is_agreed = true;
        if (entry->submitted_ns > reading->batch->submitted_ns) {
            reading->batch->submitted_ns = entry->submitted_ns;
        }
    } else {
        entry = make_zeros(agreement, tensor);
    }
    reading->batch->entries[reading->count] = entry;
    return entry != NULL ? 0 : HVD_ERR_NET;
}

static int read_tensor(struct hvd_agreement *agreement, struct reading *reading,
                       const struct named *tensor)
{
    int status = 0;

    if (reading->count >= reading->header.count ||
        tensor->descriptor->kind != reading->header.kind ||
        tensor->descriptor->set != reading->header.set) {
        return HVD_ERR_NET;
    }
    if (reading->batch != NULL) {
        status = take_part(agreement, reading, tensor);
    }
    if (reading->cached != NULL) {
        reading->cached[reading->count] = tensor->cached;
    }
    reading->bytes += hvd_descriptor_bytes(tensor->descriptor);
    reading->count++;
    return status;
}

static int read_ids(struct hvd_agreement *agreement, struct reading *reading,
                    const struct hvd_record *record)
{
    int status = 0;

    for (uint32_t i = 0; i < record->count && status == 0; i++) {
        struct hvd_cached_tensor *cached =
            hvd_response_cache_by_id(&agreement->cache, record->id + i);
        struct named tensor;

        if (cached == NULL) {
            return HVD_ERR_NET;
        }
        tensor = (struct named){cached, cached->tensor, cached->descriptor};
        if (tensor.known == NULL) { /* the tensor is evicted */
            tensor.known = hvd_tensor_table_find(agreement->tensors, &cached->key);
        }
        status = read_tensor(agreement, reading, &tensor);
    }
    return status;
}

/* Whether a tensor may get this id: the id must be unused, and the name must have no
 * id. */
static bool may_be_new(const struct hvd_agreement *agreement, uint64_t id,
                       const struct hvd_named_tensor *known)
{
    return id == 0 || (hvd_response_cache_by_id(&agreement->cache, id) == NULL &&
                       (known == NULL || known->cached == NULL));
}

static int read_full(struct hvd_agreement *agreement, struct reading *reading,
                     struct hvd_reader *reader, uint64_t id)
{
    struct hvd_descriptor *descriptor = malloc(sizeof(*descriptor));
    struct named tensor = {0};
    int status =
        descriptor != NULL ? hvd_take_descriptor(reader, descriptor) : HVD_ERR_NOMEM;

    if (status == 0) {
        const struct hvd_key key = hvd_key_make(descriptor->set, descriptor->name);

        tensor.descriptor = descriptor;
        tensor.known = hvd_tensor_table_find(agreement->tensors, &key);
        status = may_be_new(agreement, id, tensor.known)
                     ? read_tensor(agreement, reading, &tensor)
                     : HVD_ERR_NET;
    }
    if (status == 0 && id != 0) {
        struct hvd_cached_tensor *cached =
            hvd_response_cache_add(&agreement->cache, id, descriptor);

        status = cached != NULL ? 0 : HVD_ERR_NOMEM;
    }
    free(descriptor);
    return status;
}

static int read_tensors(struct hvd_agreement *agreement, struct reading *reading,
                        struct hvd_reader *reader)
{
    struct hvd_record record;
    int status = 0;

    while (status == 0 && reading->count < reading->header.count) {
        if (hvd_take_record(reader, &record) != 0) {
            return HVD_ERR_NET;
        }
        status = record.kind == HVD_TENSOR_IDS
                     ? read_ids(agreement, reading, &record)
                     : read_full(agreement, reading, reader, record.id);
    }
    return status;
}

static int read_rows(struct reading *reading, struct hvd_reader *reader)
{
    for (int64_t i = 0; i < reading->header.row_count; i++) {
        int64_t rows = hvd_take_int(reader);

        if (reader->failed || rows < 0) {
            return HVD_ERR_NET;
        }
        if (reading->batch != NULL) {
            reading->batch->rows[i] = rows;
        }
    }
    return 0;
}

/* --- carrying a batch out --- */

/* Whether a replay may contain the batch. A new tensor may never come back. Tensors on a
 * device are excluded, because a launched batch counts as done on this rank before other
 * ranks have started theirs, and cannot be taken back. */
static bool may_repeat(const struct reading *reading)
{
    enum hvd_kind kind = reading->header.kind;

    for (int64_t i = 0; i < reading->count; i++) {
        if (reading->cached[i] == NULL ||
            reading->cached[i]->descriptor->device != HVD_DEVICE_CPU) {
            return false;
        }
    }
    return reading->header.status == 0 && reading->bytes > 0 &&
           (kind == HVD_KIND_ALLREDUCE || kind == HVD_KIND_ADASUM);
}

/* Adds the batch to rank 0's search for a period. */
static int note(struct hvd_agreement *agreement, const struct reading *reading,
                int64_t now_ns)
{
    const struct hvd_replay *replay = reading->set->replay;
    const struct hvd_decided_batch batch = {
        .set = reading->set->id,
        .tensors = reading->cached,
        .count = (size_t)reading->count,
        .bytes = reading->bytes,
        .may_repeat = may_repeat(reading),
        .is_spare = reading->header.priority == HVD_PRIORITY_SPARE,
        .overlaps = replay->running > 0,
        .replayed = hvd_replay_started(replay),
        .now_ns = now_ns,
    };

    return hvd_replay_decisions_note(hvd_coordinator_replays(agreement->coordinator),
                                     &batch);
}

/* Whether the header fits the set and the message: the set has this priority, the message
 * is long enough to name `count` tensors, and a kind with rows has one row count for each
 * member. */
static bool is_possible(const struct hvd_agreement *agreement, const struct hvd_set *set,
                        const struct hvd_batch_header *header,
                        const struct hvd_reader *reader)
{
    size_t most =
        agreement->cache.by_id.count + reader->bytes / sizeof(struct hvd_record);
    int64_t rows = set != NULL && hvd_kind_has_rows(header->kind) && header->status == 0
                       ? set->count
                       : 0;

    return set != NULL && (int)header->priority < set->priorities && header->count > 0 &&
           (uint64_t)header->count <= most && header->row_count == rows;
}

static int begin_reading(struct hvd_agreement *agreement, struct reading *reading,
                         const struct hvd_reader *reader)
{
    reading->set = hvd_sets_find(agreement->sets, reading->header.set);
    if (!is_possible(agreement, reading->set, &reading->header, reader)) {
        return HVD_ERR_NET;
    }
    if (reading->set->is_member) {
        reading->batch = hvd_batch_create(&reading->header);
        if (reading->batch == NULL) {
            return HVD_ERR_NOMEM;
        }
        reading->batch->set = reading->set;
    }
    if (agreement->is_root) {
        reading->cached =
            calloc((size_t)reading->header.count + 1, sizeof(struct hvd_cached_tensor *));
        if (reading->cached == NULL) {
            return HVD_ERR_NOMEM;
        }
    }
    return 0;
}

/* Runs the batch, or creates or removes the process set that it names. Takes the batch
 * over. */
static int carry_out(struct hvd_agreement *agreement, struct hvd_batch *batch)
{
    struct hvd_entry *entry = batch->header.count > 0 ? batch->entries[0] : NULL;
    int64_t value;

    switch (batch->header.kind) {
    case HVD_KIND_SET_ADD:
        value = batch->header.value;
        hvd_batch_destroy(batch); /* first: ending the entry may free it */
        return hvd_set_changes_add(agreement, entry, value);
    case HVD_KIND_SET_REMOVE:
        hvd_batch_destroy(batch);
        return hvd_set_changes_remove(agreement, entry);
    default:
        hvd_replay_run(agreement, batch);
        return 0;
    }
}

int hvd_agreed_batch_take(struct hvd_agreement *agreement,
                          const struct hvd_record *record, struct hvd_reader *reader,
                          int64_t now_ns)
{
    struct reading reading = {0};
    int status = hvd_take_batch(reader, record, &reading.header);

    if (status == 0 && reading.header.kind == HVD_KIND_JOIN) {
        return hvd_joins_take_end(agreement, &reading.header);
    }
    agreement->counts.decided++;
    if (status == 0) {
        status = begin_reading(agreement, &reading, reader);
    }
    if (status == 0) {
        status = read_tensors(agreement, &reading, reader);
    }
    if (status == 0 && reading.header.row_count > 0) {
        status = read_rows(&reading, reader);
    }
    if (status == 0 && reading.cached != NULL) {
        status = note(agreement, &reading, now_ns);
    }
    free(reading.cached);
    if (status != 0 || reading.batch == NULL || reading.header.status != 0) {
        hvd_batch_destroy(reading.batch);
        return status;
    }
    return carry_out(agreement, reading.batch);
}
