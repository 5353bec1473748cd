/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0's decisions: complete readiness records go in, batches come out. */
#include "collectives/agreement/coordinator.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/request/batch.h"
#include "collectives/agreement/rank_list.h"
#include "collectives/agreement/readiness.h"
#include "collectives/agreement/tensor_cache.h"
#include "collectives/agreement/validate.h"
#include "gpu_binding/base/log.h"

/* A tensor that all ranks have. */
struct hvd_ready {
    struct hvd_ready *next;
    struct hvd_readiness *readiness;
    int64_t bytes;
    int64_t ready_ns;
    int status; /* 0, or why the tensor fails on all ranks */
    bool in_group; /* of a group about which all ranks agree */
    struct hvd_error error;
};

/* How many tensors of a group are ready. */
struct hvd_ready_group {
    uint64_t id;
    int ready;
    bool is_whole; /* all of them were, before the first was sent */
};

struct hvd_coordinator {
    struct hvd_readiness_table *readiness_table;
    struct hvd_tensor_cache *cache;
    const struct hvd_fusion *fusion;
    struct hvd_ready *ready;
    struct hvd_ready **ready_end;
    struct hvd_ready *spare;
    struct hvd_hash_table groups;
    int64_t bytes;
    int64_t now_ns; /* of the present answer */
    struct hvd_decision_writers *writers; /* of the present answer */
    uint64_t next_id;
    size_t leaving; /* evictions in the present answer */
    size_t coming;
    bool has_warned;
};

int hvd_coordinator_create(struct hvd_readiness_table *readiness_table,
                           struct hvd_tensor_cache *cache,
                           const struct hvd_fusion *fusion, struct hvd_coordinator **out,
                           struct hvd_error *err)
{
    struct hvd_coordinator *coordinator = calloc(1, sizeof(*coordinator));

    if (coordinator == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the coordinator");
    }
    coordinator->readiness_table = readiness_table;
    coordinator->cache = cache;
    coordinator->fusion = fusion;
    coordinator->ready_end = &coordinator->ready;
    coordinator->next_id = 1;
    *out = coordinator;
    return 0;
}

static void free_ready(struct hvd_ready *ready)
{
    while (ready != NULL) {
        struct hvd_ready *next = ready->next;

        free(ready);
        ready = next;
    }
}

void hvd_coordinator_destroy(struct hvd_coordinator *coordinator)
{
    size_t cursor = 0;
    struct hvd_ready_group *group;

    if (coordinator == NULL) {
        return;
    }
    for (struct hvd_ready *ready = coordinator->ready; ready != NULL;
         ready = ready->next) {
        hvd_readiness_table_give_back(coordinator->readiness_table, ready->readiness);
    }
    free_ready(coordinator->ready);
    free_ready(coordinator->spare);
    while ((group = hvd_hash_table_next(&coordinator->groups, &cursor)) != NULL) {
        free(group);
    }
    hvd_hash_table_finish(&coordinator->groups);
    free(coordinator);
}

/* --- groups --- */

static bool has_group_id(const void *item, const void *key)
{
    const struct hvd_ready_group *group = item;
    const uint64_t *id = key;

    return group->id == *id;
}

static uint64_t group_of(const struct hvd_ready *ready)
{
    return ready->in_group ? hvd_readiness_proposal(ready->readiness)->group : 0;
}

static struct hvd_ready_group *find_group(struct hvd_coordinator *coordinator,
                                          uint64_t id)
{
    return hvd_hash_table_find(&coordinator->groups, hvd_hash_number(id), has_group_id,
                               &id);
}

static int count_in_group(struct hvd_coordinator *coordinator, uint64_t id, int size)
{
    struct hvd_ready_group *group = find_group(coordinator, id);

    if (group == NULL) {
        group = calloc(1, sizeof(*group));
        if (group == NULL ||
            hvd_hash_table_add(&coordinator->groups, hvd_hash_number(id), group) != 0) {
            free(group);
            return HVD_ERR_NOMEM;
        }
        group->id = id;
    }
    group->ready++;
    group->is_whole |= group->ready == size;
    return 0;
}

static void leave_group(struct hvd_coordinator *coordinator,
                        const struct hvd_ready *ready)
{
    uint64_t id = group_of(ready);
    struct hvd_ready_group *group = id != 0 ? find_group(coordinator, id) : NULL;

    if (group != NULL && --group->ready == 0) {
        hvd_hash_table_remove(&coordinator->groups, hvd_hash_number(id), has_group_id,
                              &id);
        free(group);
    }
}

/* The tensors of a group wait for each other, but no longer than a cycle: ranks may have cut
 * their groups differently. When all ranks have joined no other is left to come. */
static bool waits_for_group(struct hvd_coordinator *coordinator,
                            const struct hvd_ready *ready)
{
    const struct hvd_membership *membership = coordinator->readiness_table->membership;
    uint64_t id = group_of(ready);

    return id != 0 && membership->joined < membership->layout->size &&
           !find_group(coordinator, id)->is_whole &&
           coordinator->now_ns - ready->ready_ns < coordinator->fusion->cycle_ns;
}

/* --- what is ready --- */

/* Whether all ranks have it in the same group; in which memory does not matter. */
static bool have_one_group(const struct hvd_readiness *readiness)
{
    const struct hvd_proposal *first = hvd_readiness_proposal(readiness);
    bool have = first->group != 0;

    for (int i = 0; i < readiness->described && have; i++) {
        have = readiness->descriptions[i]->group == first->group &&
               readiness->descriptions[i]->group_size == first->group_size;
    }
    return have;
}

static void check(const struct hvd_coordinator *coordinator, struct hvd_ready *ready)
{
    hvd_readiness_find_rank(coordinator->readiness_table, ready->readiness);
    ready->status = hvd_validate(ready->readiness, &ready->error);
    ready->in_group = have_one_group(ready->readiness);
}

int hvd_coordinator_add(struct hvd_coordinator *coordinator,
                        struct hvd_readiness *readiness, int64_t now_ns)
{
    struct hvd_ready *ready = coordinator->spare;

    if (ready != NULL) {
        coordinator->spare = ready->next;
    } else {
        ready = malloc(sizeof(*ready));
    }
    if (ready == NULL) {
        hvd_readiness_table_give_back(coordinator->readiness_table, readiness);
        return HVD_ERR_NOMEM;
    }
    ready->next = NULL;
    ready->readiness = readiness;
    ready->ready_ns = now_ns;
    ready->bytes = readiness->cached != NULL
                       ? readiness->cached->bytes
                       : hvd_proposal_bytes(readiness->descriptions[0]);
    check(coordinator, ready);
    if (ready->in_group &&
        count_in_group(coordinator, hvd_readiness_proposal(readiness)->group,
                       hvd_readiness_proposal(readiness)->group_size) != 0) {
        ready->in_group = false;
    }
    *coordinator->ready_end = ready;
    coordinator->ready_end = &ready->next;
    coordinator->bytes += ready->bytes;
    return 0;
}

int64_t hvd_coordinator_oldest(const struct hvd_coordinator *coordinator)
{
    return coordinator->ready != NULL ? coordinator->ready->ready_ns : -1;
}

int64_t hvd_coordinator_bytes(const struct hvd_coordinator *coordinator)
{
    return coordinator->bytes;
}

bool hvd_coordinator_has(const struct hvd_coordinator *coordinator, int set)
{
    const struct hvd_ready *ready = coordinator->ready;

    while (ready != NULL && ready->readiness->key.set != set) {
        ready = ready->next;
    }
    return ready != NULL;
}

static void forget(struct hvd_coordinator *coordinator, struct hvd_ready *ready)
{
    coordinator->bytes -= ready->bytes;
    leave_group(coordinator, ready);
    hvd_readiness_table_give_back(coordinator->readiness_table, ready->readiness);
    ready->next = coordinator->spare;
    coordinator->spare = ready;
}

static void find_end(struct hvd_coordinator *coordinator)
{
    struct hvd_ready **at = &coordinator->ready;

    while (*at != NULL) {
        at = &(*at)->next;
    }
    coordinator->ready_end = at;
}

/* Forgets those that belong to it. */
static void drop(struct hvd_coordinator *coordinator,
                 bool (*belongs)(const struct hvd_coordinator *coordinator,
                                 const struct hvd_readiness *readiness, int set),
                 int set)
{
    struct hvd_ready **at = &coordinator->ready;

    while (*at != NULL) {
        struct hvd_ready *ready = *at;

        if (belongs(coordinator, ready->readiness, set)) {
            *at = ready->next;
            forget(coordinator, ready);
        } else {
            at = &ready->next;
        }
    }
    find_end(coordinator);
}

static bool is_of_set(const struct hvd_coordinator *coordinator,
                      const struct hvd_readiness *readiness, int set)
{
    (void)coordinator;
    return readiness->key.set == set &&
           hvd_proposal_ends_with_set(hvd_readiness_proposal(readiness));
}

void hvd_coordinator_drop_set(struct hvd_coordinator *coordinator, int set)
{
    drop(coordinator, is_of_set, set);
}

static bool is_replayed(const struct hvd_coordinator *coordinator,
                        const struct hvd_readiness *readiness, int set)
{
    const struct hvd_cached_tensor *cached =
        hvd_tensor_cache_find(coordinator->cache, &readiness->key);

    (void)set;
    return cached != NULL && cached->replayed != NULL;
}

void hvd_coordinator_drop_replayed(struct hvd_coordinator *coordinator)
{
    drop(coordinator, is_replayed, HVD_SET_GLOBAL);
}

/* --- fusion --- */

static bool may_fuse(const struct hvd_ready *ready)
{
    enum hvd_kind kind = hvd_readiness_proposal(ready->readiness)->kind;

    return (kind == HVD_KIND_ALLREDUCE || kind == HVD_KIND_ADASUM) &&
           ready->status == 0 && ready->bytes < HVD_BULK_BYTES;
}

static bool fits(const struct hvd_coordinator *coordinator, const struct hvd_ready *lead,
                 const struct hvd_ready *other)
{
    const struct hvd_proposal *a = hvd_readiness_proposal(lead->readiness);
    const struct hvd_proposal *b = hvd_readiness_proposal(other->readiness);

    if (coordinator->fusion->groups_alone && group_of(lead) != group_of(other)) {
        return false;
    }
    return a->kind == b->kind && a->set == b->set && a->dtype == b->dtype &&
           a->wire == b->wire && a->op == b->op && a->device == b->device &&
           a->prescale == b->prescale && a->postscale == b->postscale;
}

/* Of the decision about one tensor, at most. */
static size_t named_bytes(const struct hvd_ready *ready)
{
    const struct hvd_proposal *proposal = hvd_readiness_proposal(ready->readiness);
    size_t note = proposal->note != NULL ? strlen(proposal->note) : 0;

    if (ready->readiness->cached != NULL && ready->readiness->described == 0) {
        return sizeof(struct hvd_record); /* its id */
    }
    return sizeof(struct hvd_record) + sizeof(*proposal) + strlen(proposal->name) + note;
}

/* Tensors that a batch may hold. */
static int64_t most_tensors(const struct hvd_coordinator *coordinator,
                            const struct hvd_ready *lead)
{
    const struct hvd_proposal *proposal = hvd_readiness_proposal(lead->readiness);
    const struct hvd_set_members *set =
        hvd_membership_find(coordinator->readiness_table->membership, proposal->set);

    return proposal->kind == HVD_KIND_ADASUM && set != NULL
               ? HVD_ADASUM_SLICES / set->count
               : INT64_MAX;
}

/* Moves the tensors that go with lead from the list that begins at *at to lead's own list;
 * returns the bytes of the batch. */
static int64_t gather(struct hvd_coordinator *coordinator, struct hvd_ready *lead,
                      struct hvd_ready **at, int64_t *count)
{
    struct hvd_ready **end = &lead->next;
    int64_t bytes = lead->bytes;
    int64_t most = most_tensors(coordinator, lead);
    size_t named = named_bytes(lead);

    *count = 1;
    lead->next = NULL;
    while (may_fuse(lead) && *at != NULL && *count < most) {
        struct hvd_ready *other = *at;

        if (!may_fuse(other) || waits_for_group(coordinator, other) ||
            !fits(coordinator, lead, other) ||
            bytes + other->bytes > coordinator->fusion->threshold ||
            named + named_bytes(other) > HVD_MESSAGE_BYTES) {
            at = &other->next;
            continue;
        }
        *at = other->next;
        other->next = NULL;
        *end = other;
        end = &other->next;
        bytes += other->bytes;
        named += named_bytes(other);
        (*count)++;
    }
    return bytes;
}

/* --- the decision about a batch: who gets an id, who is evicted for it --- */

static const struct hvd_set_members *set_of(const struct hvd_coordinator *coordinator,
                                            int set)
{
    return hvd_membership_find(coordinator->readiness_table->membership, set);
}

static bool is_cached_kind(enum hvd_kind kind)
{
    return kind <= HVD_KIND_SCATTER && kind != HVD_KIND_JOIN && kind != HVD_KIND_BARRIER;
}

static void evict(struct hvd_coordinator *coordinator, struct hvd_cached_tensor *cached)
{
    const struct hvd_part part = hvd_part_begin(coordinator->writers, cached->key.set);

    cached->is_leaving = true;
    coordinator->leaving++;
    hvd_put_record(part.writer, HVD_DECISION_EVICT, 1, cached->id);
    hvd_part_end(&part);
}

/* Another set may get the number of one that is removed: only the ranks of this one know what its
 * tensors are. */
static void evict_set(struct hvd_coordinator *coordinator, int set)
{
    for (struct hvd_cached_tensor *cached = coordinator->cache->oldest; cached != NULL;
         cached = cached->newer) {
        if (cached->key.set == set && !cached->is_leaving) {
            evict(coordinator, cached);
        }
    }
}

/* Makes room for one more; false when there is none to be had. */
static bool make_room(struct hvd_coordinator *coordinator)
{
    size_t capacity = (size_t)coordinator->fusion->capacity;
    struct hvd_cached_tensor *cached = coordinator->cache->oldest;

    if (coordinator->cache->count + coordinator->coming - coordinator->leaving <
        capacity) {
        return true;
    }
    while (cached != NULL &&
           (cached->uses > 0 || cached->is_leaving || cached->replayed != NULL)) {
        cached = cached->newer;
    }
    if (capacity == 0 || cached == NULL) {
        return false;
    }
    if (!coordinator->has_warned) {
        coordinator->has_warned = true;
        hvd_log(
            HVD_LOG_WARN,
            "more than %d tensors are in use: the least recently used one is described "
            "anew each time; raise HOROVOD_CACHE_CAPACITY",
            coordinator->fusion->capacity);
    }
    evict(coordinator, cached);
    return true;
}

/* The id by which a tensor that was described in full is known from now on, or 0. */
static uint64_t give_id(struct hvd_coordinator *coordinator,
                        const struct hvd_ready *ready)
{
    struct hvd_cached_tensor *old =
        hvd_tensor_cache_find(coordinator->cache, &ready->readiness->key);

    if (!is_cached_kind(hvd_readiness_proposal(ready->readiness)->kind) ||
        ready->status != 0) {
        return 0;
    }
    if (old != NULL && !old->is_leaving) { /* all ranks describe it anew */
        evict(coordinator, old);
    }
    if (!make_room(coordinator)) {
        return 0;
    }
    coordinator->coming++;
    return coordinator->next_id++;
}

static void put_tensors(struct hvd_coordinator *coordinator, const struct hvd_ready *lead,
                        const uint64_t *ids, struct hvd_writer *writer)
{
    struct hvd_id_range range = {0};

    for (const struct hvd_ready *ready = lead; ready != NULL;
         ready = ready->next, ids++) {
        const struct hvd_cached_tensor *cached = ready->readiness->cached;

        if (cached != NULL && !cached->is_evicted && ready->readiness->described == 0) {
            hvd_put_id(writer, HVD_TENSOR_IDS, &range, cached->id);
            hvd_tensor_cache_touch(coordinator->cache, ready->readiness->cached);
            continue;
        }
        hvd_put_ids_end(writer, HVD_TENSOR_IDS, &range);
        hvd_put_record(writer, HVD_TENSOR_FULL, 1, *ids);
        hvd_put_proposal(writer, hvd_readiness_proposal(ready->readiness));
    }
    hvd_put_ids_end(writer, HVD_TENSOR_IDS, &range);
}

static void put_rows(const struct hvd_coordinator *coordinator,
                     const struct hvd_ready *lead, const struct hvd_batch_header *header,
                     struct hvd_writer *writer)
{
    const struct hvd_set_members *set = set_of(coordinator, header->set);
    const struct hvd_readiness *readiness = lead->readiness;
    int64_t *rows = calloc((size_t)header->row_count + 1, sizeof(rows[0]));

    if (rows == NULL) {
        writer->failed = true;
        return;
    }
    for (uint32_t i = 0; i < readiness->row_count && header->row_count > 0; i++) {
        int index = hvd_set_members_index(set, (int)readiness->rows[i].rank);

        if (index >= 0) {
            rows[index] = readiness->rows[i].rows;
        }
    }
    hvd_put(writer, rows, (size_t)header->row_count * sizeof(rows[0]));
    free(rows);
}

/* A set that its members have created goes, and then its tensors. */
static void put_removal(struct hvd_coordinator *coordinator, int set)
{
    const struct hvd_part part = hvd_part_begin(coordinator->writers, set);

    hvd_put_record(part.writer, HVD_DECISION_REMOVE, 1, 0);
    hvd_part_end(&part);
    evict_set(coordinator, set);
}

/* Evictions come before the batch, so that a name is never known twice. */
static void put_batch(struct hvd_coordinator *coordinator, const struct hvd_ready *lead,
                      const struct hvd_batch_header *header)
{
    const struct hvd_proposal *first = hvd_readiness_proposal(lead->readiness);
    uint64_t *ids = calloc((size_t)header->count, sizeof(ids[0]));
    struct hvd_part part;
    int64_t i = 0;

    if (ids == NULL) {
        coordinator->writers->global.failed = true;
        return;
    }
    if (header->kind == HVD_KIND_SET_REMOVE && header->status == 0 &&
        first->root != HVD_SET_GLOBAL) {
        evict_set(coordinator, first->root);
    }
    for (const struct hvd_ready *ready = lead; ready != NULL; ready = ready->next, i++) {
        const struct hvd_readiness *readiness = ready->readiness;

        if (readiness->cached == NULL || readiness->cached->is_evicted) {
            ids[i] = give_id(coordinator, ready);
        }
    }
    part = hvd_part_begin(coordinator->writers, header->set);
    hvd_put_batch(part.writer, header);
    put_tensors(coordinator, lead, ids, part.writer);
    put_rows(coordinator, lead, header, part.writer);
    hvd_part_end(&part);
    free(ids);
}

/* --- answers --- */

/* The number of a set that all ranks add; 0: it will not come about, for another has its ranks. */
static int number_set(struct hvd_coordinator *coordinator, const struct hvd_ready *lead)
{
    const struct hvd_membership *membership = coordinator->readiness_table->membership;
    struct hvd_decision_writers *writers = coordinator->writers;
    int count = 0, *ranks = NULL;
    bool exists = hvd_rank_list_read(hvd_readiness_proposal(lead->readiness)->note,
                                     membership->layout->size, &ranks, &count) != 0 ||
                  hvd_membership_same(membership, ranks, count) != NULL;

    free(ranks);
    if (exists) {
        return 0;
    }
    writers->last_set = hvd_membership_next(membership, writers->last_set);
    return writers->last_set;
}

static struct hvd_batch_header make_header(struct hvd_coordinator *coordinator,
                                           const struct hvd_ready *lead, int64_t count)
{
    const struct hvd_proposal *proposal = hvd_readiness_proposal(lead->readiness);
    bool is_gather = hvd_kind_has_rows(proposal->kind) && lead->status == 0;
    bool adds_set = proposal->kind == HVD_KIND_SET_ADD && lead->status == 0;

    return (struct hvd_batch_header){
        .kind = proposal->kind,
        .set = proposal->set,
        .status = lead->status,
        .text = lead->status != 0 ? lead->error.text : "",
        .max_block = lead->readiness->max_block,
        .count = count,
        .row_count = is_gather ? set_of(coordinator, proposal->set)->count : 0,
        .value = adds_set ? number_set(coordinator, lead) : 0,
    };
}

static void answer_lead(struct hvd_coordinator *coordinator, struct hvd_ready **at,
                        bool only_spare)
{
    struct hvd_ready *lead = *at;
    struct hvd_batch_header header;
    int64_t count, bytes;

    *at = lead->next;
    bytes = gather(coordinator, lead, at, &count);
    header = make_header(coordinator, lead, count);
    header.lane = only_spare                ? HVD_LANE_SPARE
                  : bytes >= HVD_BULK_BYTES ? HVD_LANE_BULK
                                            : HVD_LANE_QUICK;
    if (header.kind == HVD_KIND_SET_REMOVE && header.set != HVD_SET_GLOBAL &&
        header.status == 0) {
        put_removal(coordinator, header.set);
    } else {
        put_batch(coordinator, lead, &header);
    }
    while (lead != NULL) {
        struct hvd_ready *next = lead->next;

        forget(coordinator, lead);
        lead = next;
    }
}

bool hvd_coordinator_answer(struct hvd_coordinator *coordinator, bool only_spare,
                            int64_t now_ns, struct hvd_decision_writers *writers)
{
    struct hvd_ready **at = &coordinator->ready;
    bool is_all;

    coordinator->writers = writers;
    coordinator->leaving = 0;
    coordinator->coming = 0;
    coordinator->now_ns = now_ns;
    while (*at != NULL &&
           writers->global.bytes + writers->sets.bytes < HVD_MESSAGE_BYTES) {
        if (waits_for_group(coordinator, *at)) {
            at = &(*at)->next;
            continue;
        }
        answer_lead(coordinator, at, only_spare);
    }
    is_all = *at == NULL;
    find_end(coordinator);
    return is_all;
}
