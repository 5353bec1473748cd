/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0's decisions: complete tallies go in, batches come out. */
#include "collectives/agreement/coordinator.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/agreement/coordinator_state.h"
#include "collectives/agreement/validate.h"

int hvd_coordinator_create(struct hvd_tallies *tallies, struct hvd_known_set *known,
                           const struct hvd_fusion *fusion, struct hvd_coordinator **out,
                           struct hvd_error *err)
{
    struct hvd_coordinator *coordinator = calloc(1, sizeof(*coordinator));

    if (coordinator == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the coordinator");
    }
    coordinator->tallies = tallies;
    coordinator->known = known;
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
        hvd_tallies_give_back(coordinator->tallies, ready->tally);
    }
    free_ready(coordinator->ready);
    free_ready(coordinator->spare);
    while ((group = hvd_table_next(&coordinator->groups, &cursor)) != NULL) {
        free(group);
    }
    hvd_table_finish(&coordinator->groups);
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
    return ready->in_group ? hvd_tally_proposal(ready->tally)->group : 0;
}

static struct hvd_ready_group *find_group(struct hvd_coordinator *coordinator,
                                          uint64_t id)
{
    return hvd_table_find(&coordinator->groups, hvd_hash_number(id), has_group_id, &id);
}

static int count_in_group(struct hvd_coordinator *coordinator, uint64_t id, int size)
{
    struct hvd_ready_group *group = find_group(coordinator, id);

    if (group == NULL) {
        group = calloc(1, sizeof(*group));
        if (group == NULL ||
            hvd_table_add(&coordinator->groups, hvd_hash_number(id), group) != 0) {
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
        hvd_table_remove(&coordinator->groups, hvd_hash_number(id), has_group_id, &id);
        free(group);
    }
}

/* The tensors of a group wait for each other, but no longer than a cycle: ranks may have cut
 * their groups differently. When all ranks have joined no other is left to come. */
static bool waits_for_group(struct hvd_coordinator *coordinator,
                            const struct hvd_ready *ready)
{
    const struct hvd_members *members = coordinator->tallies->members;
    uint64_t id = group_of(ready);

    return id != 0 && members->joined < members->layout->size &&
           !find_group(coordinator, id)->is_whole &&
           coordinator->now_ns - ready->ready_ns < coordinator->fusion->cycle_ns;
}

/* --- what is ready --- */

/* Whether all ranks have it in the same group; in which memory does not matter. */
static bool have_one_group(const struct hvd_tally *tally)
{
    const struct hvd_proposal *first = hvd_tally_proposal(tally);
    bool have = first->group != 0;

    for (int i = 0; i < tally->described && have; i++) {
        have = tally->descriptions[i]->group == first->group &&
               tally->descriptions[i]->group_size == first->group_size;
    }
    return have;
}

static void check(struct hvd_ready *ready)
{
    ready->status = hvd_validate(ready->tally, &ready->error);
    ready->in_group = have_one_group(ready->tally);
}

int hvd_coordinator_add(struct hvd_coordinator *coordinator, struct hvd_tally *tally,
                        int64_t now_ns)
{
    struct hvd_ready *ready = coordinator->spare;

    if (ready != NULL) {
        coordinator->spare = ready->next;
    } else {
        ready = malloc(sizeof(*ready));
    }
    if (ready == NULL) {
        hvd_tallies_give_back(coordinator->tallies, tally);
        return HVD_ERR_NOMEM;
    }
    ready->next = NULL;
    ready->tally = tally;
    ready->ready_ns = now_ns;
    ready->bytes = tally->known != NULL ? tally->known->bytes
                                        : hvd_proposal_bytes(tally->descriptions[0]);
    check(ready);
    if (ready->in_group && count_in_group(coordinator, hvd_tally_proposal(tally)->group,
                                          hvd_tally_proposal(tally)->group_size) != 0) {
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

    while (ready != NULL && ready->tally->key.set != set) {
        ready = ready->next;
    }
    return ready != NULL;
}

static void forget(struct hvd_coordinator *coordinator, struct hvd_ready *ready)
{
    coordinator->bytes -= ready->bytes;
    leave_group(coordinator, ready);
    hvd_tallies_give_back(coordinator->tallies, ready->tally);
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

void hvd_coordinator_drop_planned(struct hvd_coordinator *coordinator)
{
    struct hvd_ready **at = &coordinator->ready;

    while (*at != NULL) {
        struct hvd_ready *ready = *at;
        const struct hvd_known *known =
            hvd_known_find(coordinator->known, &ready->tally->key);

        if (known != NULL && known->planned != NULL) {
            *at = ready->next;
            forget(coordinator, ready);
        } else {
            at = &ready->next;
        }
    }
    find_end(coordinator);
}

/* --- fusion --- */

static bool may_fuse(const struct hvd_ready *ready)
{
    enum hvd_kind kind = hvd_tally_proposal(ready->tally)->kind;

    return (kind == HVD_KIND_ALLREDUCE || kind == HVD_KIND_ADASUM) &&
           ready->status == 0 && ready->bytes < HVD_BULK_BYTES;
}

/* Of all ranks: one that has joined has no such memory. */
static bool is_shared(const struct hvd_ready *ready)
{
    const struct hvd_tally *tally = ready->tally;
    bool is = !tally->is_partial && hvd_tally_proposal(tally)->is_shared;

    for (int i = 0; i < tally->described && is; i++) {
        is = tally->descriptions[i]->is_shared;
    }
    return is;
}

static bool fits(const struct hvd_coordinator *coordinator, const struct hvd_ready *lead,
                 const struct hvd_ready *other)
{
    const struct hvd_proposal *a = hvd_tally_proposal(lead->tally);
    const struct hvd_proposal *b = hvd_tally_proposal(other->tally);

    if (coordinator->fusion->groups_alone && group_of(lead) != group_of(other)) {
        return false;
    }
    return a->kind == b->kind && a->set == b->set && a->dtype == b->dtype &&
           a->wire == b->wire && a->op == b->op && a->device == b->device &&
           is_shared(lead) == is_shared(other) && a->prescale == b->prescale &&
           a->postscale == b->postscale;
}

/* Of the decision about one tensor, at most. */
static size_t named_bytes(const struct hvd_ready *ready)
{
    const struct hvd_proposal *proposal = hvd_tally_proposal(ready->tally);
    size_t note = proposal->note != NULL ? strlen(proposal->note) : 0;

    if (ready->tally->known != NULL && ready->tally->described == 0) {
        return sizeof(struct hvd_record); /* its id */
    }
    return sizeof(struct hvd_record) + sizeof(*proposal) + strlen(proposal->name) + note;
}

/* Tensors that a batch may hold. */
static int64_t most_tensors(const struct hvd_coordinator *coordinator,
                            const struct hvd_ready *lead)
{
    const struct hvd_proposal *proposal = hvd_tally_proposal(lead->tally);
    const struct hvd_member_set *set =
        hvd_members_find(coordinator->tallies->members, proposal->set);

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

/* --- answers --- */

static const struct hvd_member_set *set_of(const struct hvd_coordinator *coordinator,
                                           int set)
{
    return hvd_members_find(coordinator->tallies->members, set);
}

static struct hvd_batch_header make_header(const struct hvd_coordinator *coordinator,
                                           const struct hvd_ready *lead, int64_t count)
{
    const struct hvd_proposal *proposal = hvd_tally_proposal(lead->tally);
    bool is_gather = proposal->kind == HVD_KIND_ALLGATHER && lead->status == 0;

    return (struct hvd_batch_header){
        .kind = proposal->kind,
        .set = proposal->set,
        .status = lead->status,
        .text = lead->status != 0 ? lead->error.text : "",
        .max_block = lead->tally->max_block,
        .is_shared = is_shared(lead),
        .count = count,
        .row_count = is_gather ? set_of(coordinator, proposal->set)->count : 0,
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
    hvd_coordinator_put_batch(coordinator, lead, &header);
    while (lead != NULL) {
        struct hvd_ready *next = lead->next;

        forget(coordinator, lead);
        lead = next;
    }
}

bool hvd_coordinator_answer(struct hvd_coordinator *coordinator, bool only_spare,
                            int64_t now_ns, struct hvd_writer *writer,
                            struct hvd_writer *set_writer)
{
    struct hvd_ready **at = &coordinator->ready;
    bool is_all;

    coordinator->writer = writer;
    coordinator->set_writer = set_writer;

    coordinator->leaving = 0;
    coordinator->coming = 0;
    coordinator->now_ns = now_ns;
    while (*at != NULL && writer->bytes + set_writer->bytes < HVD_MESSAGE_BYTES) {
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
