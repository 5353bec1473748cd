/* SPDX-License-Identifier: Apache-2.0 */
/* Replays: batches that repeat. */
#include "collectives/agreement/replay.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/agreement/agreement_state.h"
#include "collectives/agreement/validate.h"

/* How often to look for tensors whose batch in a replay cannot start: while a thread of
 * this rank waits for a request, and otherwise. */
static const int64_t look_every_ns = 2000000;
static const int64_t look_alone_every_ns = 1000000000;

/* --- the replays of all sets --- */

struct hvd_replay *hvd_replay_of(const struct hvd_agreement *agreement, int set)
{
    const struct hvd_set *found = hvd_sets_find(agreement->sets, set);

    return found != NULL ? found->replay : NULL;
}

int hvd_replay_add(struct hvd_agreement *agreement, struct hvd_set *set)
{
    struct hvd_replay *replay = calloc(1, sizeof(*replay));

    if (replay == NULL) {
        return HVD_ERR_NOMEM;
    }
    replay->set = set;
    replay->answers = 1;
    for (int i = 1; i < agreement->sets->branches; i++) {
        replay->answers += set->in_branch[i] > 0 ? 1 : 0;
    }
    set->replay = replay;
    return agreement->is_root
               ? hvd_replay_decisions_add_set(
                     hvd_coordinator_replays(agreement->coordinator), set->id)
               : 0;
}

static void free_order(struct hvd_replay_order *order)
{
    for (int i = 0; i < HVD_REPLAY_PRIORITIES; i++) {
        free(order->priorities[i].batches);
    }
    for (size_t i = 0; i < order->count; i++) {
        hvd_batch_destroy(order->batches[i].idle);
        free(order->batches[i].tensors);
    }
    free(order->batches);
    *order = (struct hvd_replay_order){0};
}

static void destroy_replay(struct hvd_replay *replay)
{
    if (replay != NULL) {
        free_order(&replay->order);
        replay->set->replay = NULL;
        free(replay);
    }
}

/* Removes the links from tensors to their next batches. */
static void unlink_tensors(const struct hvd_replay_order *order)
{
    for (size_t i = 0; i < order->count; i++) {
        for (size_t j = 0; j < order->batches[i].count; j++) {
            order->batches[i].tensors[j].cached->replayed = NULL;
        }
    }
}

/* Ends the replay on this rank. */
static void end_replay(struct hvd_agreement *agreement, struct hvd_replay *replay)
{
    bool is_paused = replay->is_frozen && replay->set->is_member;

    unlink_tensors(&replay->order);
    replay->is_active = false;
    replay->is_frozen = false;
    replay->wants_break = false;
    agreement->replays.waiting -= replay->waiting;
    replay->waiting = 0;
    if (is_paused) {
        hvd_event_queue_put_set(&agreement->events, HVD_AGREEMENT_CONTINUE, replay->set);
    }
}

void hvd_replay_remove(struct hvd_agreement *agreement, struct hvd_set *set)
{
    if (set->replay->is_active) {
        end_replay(agreement, set->replay);
    }
    if (agreement->is_root) {
        hvd_replay_decisions_remove_set(hvd_coordinator_replays(agreement->coordinator),
                                        set->id);
    }
    destroy_replay(set->replay);
}

void hvd_replays_finish(struct hvd_agreement *agreement)
{
    for (int id = 0; id < agreement->sets->count; id++) {
        destroy_replay(hvd_replay_of(agreement, id));
    }
}

/* --- the beginning --- */

/* Whether a tensor may be the next one of a batch: it belongs to the set, its reduction
 * is like that of the first tensor, and the batch does not have it yet. */
static bool may_replay(const struct hvd_replay *replay,
                       const struct hvd_cached_tensor *cached,
                       const struct hvd_replay_batch *batch)
{
    const struct hvd_cached_tensor *first = batch->tensors[0].cached;
    enum hvd_kind kind = cached->descriptor->kind;

    return !cached->is_evicted && cached->key.set == replay->set->id &&
           cached->replayed != batch &&
           (kind == HVD_KIND_ALLREDUCE || kind == HVD_KIND_ADASUM) &&
           (first == NULL || (kind == first->descriptor->kind &&
                              cached->descriptor->dtype == first->descriptor->dtype));
}

/* Reads ids into the batch, from position `at` on. */
static int read_ids(const struct hvd_replay *replay, struct hvd_response_cache *cache,
                    const struct hvd_record *record, struct hvd_replay_batch *batch,
                    size_t at)
{
    for (uint32_t i = 0; i < record->count; i++) {
        struct hvd_cached_tensor *cached =
            hvd_response_cache_by_id(cache, record->id + i);

        if (cached == NULL || !may_replay(replay, cached, batch)) {
            return HVD_ERR_NET;
        }
        cached->replayed_at = replay->begun_at;
        /* marks the tensor as in this batch; link_occurrences sets it again */
        cached->replayed = batch;
        batch->tensors[at + i].cached = cached;
    }
    return 0;
}

static int read_batch(const struct hvd_replay *replay, struct hvd_response_cache *cache,
                      struct hvd_replay_batch *batch, struct hvd_reader *reader)
{
    int64_t priority = hvd_take_int(reader), tensors = hvd_take_int(reader);
    int priorities = replay->set->priorities > 1 ? HVD_REPLAY_PRIORITIES : 1;
    size_t count = 0;
    int status = 0;

    if (reader->failed || priority < 0 || priority >= priorities || tensors < 1 ||
        (uint64_t)tensors > cache->count) {
        return HVD_ERR_NET;
    }
    batch->priority = (enum hvd_priority)priority;
    batch->tensors = calloc((size_t)tensors, sizeof(batch->tensors[0]));
    if (batch->tensors == NULL) {
        return HVD_ERR_NOMEM;
    }
    batch->count = (size_t)tensors;
    batch->missing = batch->count;
    while (status == 0 && count < batch->count) {
        struct hvd_record record;

        if (hvd_take_record(reader, &record) != 0 ||
            record.count > batch->count - count) {
            return HVD_ERR_NET;
        }
        status = read_ids(replay, cache, &record, batch, count);
        count += record.count;
    }
    return status;
}

/* Assigns the batches to their queues, in order. */
static int deal_out(struct hvd_replay_order *order)
{
    for (int i = 0; i < HVD_REPLAY_PRIORITIES; i++) {
        order->priorities[i].batches =
            calloc(order->count, sizeof(struct hvd_replay_batch *));
        if (order->priorities[i].batches == NULL) {
            return HVD_ERR_NOMEM;
        }
    }
    for (size_t i = 0; i < order->count; i++) {
        struct hvd_replay_priority *priority =
            &order->priorities[order->batches[i].priority];

        assert(priority->batches != NULL);
        priority->batches[priority->count++] = &order->batches[i];
    }
    return 0;
}

/* Links all batches that contain a tensor into a ring, in their order. `replayed` becomes
 * the first of them. */
static void link_occurrences(struct hvd_replay_order *order)
{
    for (int round = 0; round < 2; round++) {
        for (size_t i = order->count; i-- > 0;) {
            struct hvd_replay_batch *batch = &order->batches[i];

            for (size_t j = 0; j < batch->count; j++) {
                struct hvd_replay_tensor *tensor = &batch->tensors[j];

                /* The second round links the last batch of a tensor to its first one. */
                tensor->next = tensor->cached->replayed;
                tensor->cached->replayed = batch;
            }
        }
    }
}

/* Reads an order of this many batches, whose tensors must be in the cache, in place of
 * the previous order. */
static int read_order(struct hvd_replay *replay, struct hvd_response_cache *cache,
                      size_t count, struct hvd_reader *reader)
{
    struct hvd_replay_order *order = &replay->order;
    int status = 0;

    free_order(order);
    if (count == 0 || count > reader->bytes) { /* each batch takes several bytes */
        return HVD_ERR_NET;
    }
    order->batches = calloc(count, sizeof(order->batches[0]));
    if (order->batches == NULL) {
        return HVD_ERR_NOMEM;
    }
    order->count = count;
    for (size_t i = 0; i < count && status == 0; i++) {
        status = read_batch(replay, cache, &order->batches[i], reader);
        order->tensors += order->batches[i].count;
    }
    if (status == 0) {
        status = deal_out(order);
    }
    if (status == 0) {
        link_occurrences(order);
    }
    return status;
}

/* Drops the reports of the replay's tensors. These were one cycle ahead; the tensors
 * belong to the replay's first cycle now. */
static void drop_reports(struct hvd_agreement *agreement, const struct hvd_replay *replay)
{
    for (size_t i = 0; i < replay->order.count; i++) {
        const struct hvd_replay_batch *batch = &replay->order.batches[i];

        for (size_t j = 0; j < batch->count; j++) {
            hvd_ready_table_drop(&agreement->reports.ready_tensor,
                                 &batch->tensors[j].cached->key);
        }
    }
    if (agreement->is_root) {
        hvd_coordinator_drop_replayed(agreement->coordinator);
    }
}

/* Moves tensors that were already submitted and reported into the replay. */
static int adopt_entries(struct hvd_agreement *agreement, struct hvd_replay *replay)
{
    int status = 0;

    for (struct hvd_entry *entry = agreement->tensors->oldest;
         entry != NULL && status == 0; entry = entry->newer) {
        struct hvd_cached_tensor *cached = entry->tensor->cached;

        if (!entry->is_agreed && entry->set == replay->set && cached != NULL &&
            cached->replayed != NULL) {
            entry->cached = cached;
            status = hvd_replay_submit(agreement, replay, entry);
        }
    }
    return status;
}

int hvd_replay_begin(struct hvd_agreement *agreement, struct hvd_replay *replay,
                     const struct hvd_record *record, struct hvd_reader *reader)
{
    int status;

    if (replay == NULL || replay->is_active) {
        return HVD_ERR_NET;
    }
    replay->epoch = record->id;
    replay->is_active = true;
    replay->begun_at = agreement->relay.position;
    agreement->counts.replays++;
    status = read_order(replay, &agreement->cache, record->count, reader);
    if (status != 0) {
        return status;
    }
    drop_reports(agreement, replay);
    return adopt_entries(agreement, replay);
}

/* --- running batches --- */

void hvd_replay_run(struct hvd_agreement *agreement, struct hvd_batch *batch)
{
    batch->set->replay->running++;
    hvd_event_queue_put_batch(&agreement->events, HVD_AGREEMENT_RUN, batch);
}

uint64_t hvd_replay_started(const struct hvd_replay *replay)
{
    uint64_t started = 0;

    for (int i = 0; i < HVD_REPLAY_PRIORITIES; i++) {
        started += replay->order.priorities[i].started;
    }
    return started;
}

static struct hvd_replay_batch *next_batch(const struct hvd_replay_priority *priority)
{
    return priority->batches[priority->started % priority->count];
}

/* Makes a batch for the tensors of a replayed batch, without its entries; NULL if memory
 * is out. */
static struct hvd_batch *make_batch(const struct hvd_replay *replay,
                                    const struct hvd_replay_batch *replayed)
{
    const struct hvd_batch_header header = {
        .kind = replayed->tensors[0].cached->descriptor->kind,
        .set = replay->set->id,
        .priority = replayed->priority,
        .count = (int64_t)replayed->count,
    };
    struct hvd_batch *batch = hvd_batch_create(&header);

    if (batch != NULL) {
        batch->set = replay->set;
    }
    return batch;
}

/* Puts this rank's tensors into a batch, and links each tensor to the next batch that
 * contains it. */
static void fill_batch(struct hvd_replay_batch *replayed, struct hvd_batch *batch)
{
    batch->submitted_ns = 0;
    for (size_t i = 0; i < replayed->count; i++) {
        struct hvd_cached_tensor *cached = replayed->tensors[i].cached;
        struct hvd_entry *entry = cached->tensor->entry;

        batch->entries[i] = entry;
        entry->is_agreed = true;
        if (entry->submitted_ns > batch->submitted_ns) {
            batch->submitted_ns = entry->submitted_ns;
        }
        cached->replayed = replayed->tensors[i].next;
    }
    replayed->missing = replayed->count;
}

/* Starts the next batch of a queue, if this rank has all its tensors and the previous
 * batch is done. */
static int start_batch(struct hvd_agreement *agreement, struct hvd_replay *replay,
                       int number)
{
    struct hvd_replay_priority *priority = &replay->order.priorities[number];
    struct hvd_replay_batch *next;
    struct hvd_batch *batch;

    if (!replay->is_active || replay->is_frozen || priority->running != NULL ||
        priority->count == 0) {
        return 0;
    }
    next = next_batch(priority);
    if (next->missing > 0 || next->anew > 0) {
        return 0;
    }
    batch = next->idle != NULL ? next->idle : make_batch(replay, next);
    if (batch == NULL) {
        return HVD_ERR_NOMEM;
    }
    next->idle = NULL;
    fill_batch(next, batch);
    batch->number = ++priority->started;
    priority->running = batch;
    replay->waiting -= next->count;
    agreement->replays.waiting -= next->count;
    replay->running++;
    agreement->counts.replayed++;
    hvd_event_queue_put_batch(&agreement->events, HVD_AGREEMENT_RUN, batch);
    return 0;
}

/* Whether a tensor with this descriptor can take the place of another one in the
 * replay. */
static bool may_replace(struct hvd_cached_tensor *cached,
                        const struct hvd_descriptor *descriptor)
{
    return hvd_validate_pair(cached, descriptor, NULL) == 0;
}

int hvd_replay_submit(struct hvd_agreement *agreement, struct hvd_replay *replay,
                      struct hvd_entry *entry)
{
    struct hvd_cached_tensor *cached = entry->cached;
    struct hvd_replay_batch *batch = cached->replayed;

    batch->missing--;
    replay->waiting++;
    agreement->replays.waiting++;
    if (!hvd_descriptor_equal(cached->descriptor, &entry->descriptor) &&
        !may_replace(cached, &entry->descriptor)) {
        batch->anew++;
        return hvd_replay_ask_break(agreement, replay, true);
    }
    return start_batch(agreement, replay, (int)batch->priority);
}

int hvd_replay_finish_batch(struct hvd_agreement *agreement, struct hvd_batch *batch)
{
    struct hvd_replay *replay = batch->set->replay;
    int number = (int)batch->header.priority;
    struct hvd_replay_priority *priority =
        batch->number != 0 ? &replay->order.priorities[number] : NULL;

    replay->running--;
    if (priority == NULL ||
        priority->running != batch) { /* the batch is not of this replay */
        hvd_batch_destroy(batch);
        return 0;
    }
    priority->running = NULL;
    if (!replay->is_active) { /* the replay has ended meanwhile */
        hvd_batch_destroy(batch);
        return 0;
    }
    priority->batches[(priority->started - 1) % priority->count]->idle = batch;
    return start_batch(agreement, replay, number);
}

/* --- ranks ask for the end --- */

static void put_priorities(struct hvd_writer *writer, const uint64_t *least,
                           const uint64_t *most)
{
    hvd_put(writer, least, HVD_REPLAY_PRIORITIES * sizeof(least[0]));
    hvd_put(writer, most, HVD_REPLAY_PRIORITIES * sizeof(most[0]));
}

static int take_priorities(struct hvd_reader *reader, uint64_t *least, uint64_t *most)
{
    const size_t bytes = HVD_REPLAY_PRIORITIES * sizeof(least[0]);
    const char *data = hvd_take(reader, 2 * bytes);

    if (data == NULL) {
        return HVD_ERR_ARG;
    }
    memcpy(least, data, bytes);
    memcpy(most, data + bytes, bytes);
    return 0;
}

int hvd_replay_ask_break(struct hvd_agreement *agreement, struct hvd_replay *replay,
                         bool was_wrong)
{
    struct hvd_writer *up;

    if (!replay->is_active || replay->is_frozen || replay->wants_break) {
        return 0; /* it has ended, is about to end, or has been asked to end */
    }
    replay->wants_break = true;
    if (!agreement->is_root) {
        up = hvd_reports_put(&agreement->reports, HVD_REPORT_BREAK, was_wrong ? 1 : 0,
                             replay->epoch);
        hvd_put_int(up, replay->set->id);
        return 0;
    }
    return hvd_replay_decisions_break(hvd_coordinator_replays(agreement->coordinator),
                                      replay->set->id, was_wrong);
}

/* Reads the set's number, and returns the set's replay; NULL if the record is about a
 * replay that has ended. */
static struct hvd_replay *take_replay(struct hvd_agreement *agreement,
                                      const struct hvd_record *record,
                                      struct hvd_reader *reader)
{
    struct hvd_replay *replay = hvd_replay_of(agreement, (int)hvd_take_int(reader));

    return replay != NULL && replay->epoch == record->id ? replay : NULL;
}

int hvd_replay_take_break(struct hvd_agreement *agreement,
                          const struct hvd_record *record, struct hvd_reader *reader)
{
    struct hvd_replay *replay = take_replay(agreement, record, reader);

    if (reader->failed) {
        return HVD_ERR_NET;
    }
    return replay != NULL ? hvd_replay_ask_break(agreement, replay, record->count != 0)
                          : 0;
}

/* Whether a tensor's next batch cannot start because this rank has not submitted another
 * tensor. */
static bool is_blocked(const struct hvd_replay *replay,
                       const struct hvd_replay_batch *batch)
{
    const struct hvd_replay_priority *priority =
        &replay->order.priorities[batch->priority];

    return batch->missing > 0 ||
           (priority->running == NULL && next_batch(priority)->missing > 0);
}

static bool has_waited(const struct hvd_entry *entry, bool is_hurried, int64_t now_ns)
{
    static const int64_t patience_ns = 5000000;
    /* if no thread waits for the request */
    static const int64_t most_patience_ns = 1000000000;

    is_hurried |= atomic_load(&entry->request->is_asked_for);
    return now_ns - entry->submitted_ns > (is_hurried ? patience_ns : most_patience_ns);
}

int hvd_replays_look(struct hvd_agreement *agreement, bool is_hurried, int64_t now_ns)
{
    struct hvd_replays *replays = &agreement->replays;
    int status = 0;

    if (replays->waiting == 0 || now_ns - replays->last_look_ns < look_every_ns) {
        return 0;
    }
    replays->last_look_ns = now_ns;
    for (const struct hvd_entry *entry = agreement->tensors->oldest;
         entry != NULL && status == 0; entry = entry->newer) {
        struct hvd_replay *replay;

        if (entry->is_agreed || entry->cached == NULL ||
            entry->cached->replayed == NULL || !has_waited(entry, is_hurried, now_ns)) {
            continue;
        }
        replay = entry->set->replay;
        if (is_blocked(replay, entry->cached->replayed)) {
            status = hvd_replay_ask_break(agreement, replay, true);
        }
    }
    return status;
}

int64_t hvd_replays_deadline(const struct hvd_agreement *agreement, bool is_waited,
                             int64_t now_ns)
{
    return agreement->replays.waiting > 0
               ? now_ns + (is_waited ? look_every_ns : look_alone_every_ns)
               : -1;
}

/* --- all ranks pause --- */

/* All branches with members have answered: sends FROZEN up or, on rank 0, RESUME down. */
static int answer_break(struct hvd_agreement *agreement, struct hvd_replay *replay)
{
    struct hvd_part part;
    struct hvd_writer *up;

    if (!agreement->is_root) {
        up = hvd_reports_put(&agreement->reports, HVD_REPORT_FROZEN, 1, replay->epoch);
        hvd_put_int(up, replay->set->id);
        put_priorities(up, replay->least, replay->most);
        return 0;
    }
    part =
        hvd_part_begin(hvd_coordinator_writers(agreement->coordinator), replay->set->id);
    hvd_put_record(part.writer, HVD_DECISION_RESUME, 1, replay->epoch);
    put_priorities(part.writer, replay->least, replay->most);
    hvd_part_end(&part);
    return part.writer->failed ? HVD_ERR_NOMEM : 0;
}

static int join_answer(struct hvd_agreement *agreement, struct hvd_replay *replay,
                       const uint64_t *least, const uint64_t *most)
{
    for (int i = 0; i < HVD_REPLAY_PRIORITIES; i++) {
        replay->least[i] = least[i] < replay->least[i] ? least[i] : replay->least[i];
        replay->most[i] = most[i] > replay->most[i] ? most[i] : replay->most[i];
    }
    return ++replay->answered < replay->answers ? 0 : answer_break(agreement, replay);
}

/* Whether neither this rank nor a rank below it is in the set. It got the message because
 * another rank of its node is a member, and it does not answer. */
static bool is_bystander(const struct hvd_agreement *agreement,
                         const struct hvd_replay *replay)
{
    return !replay->set->is_member && replay->answers == 1 && !agreement->is_root;
}

/* Whether the replay's set may have been removed. Its number may then belong to another
 * set. */
static bool is_removed(const struct hvd_replay *replay)
{
    return replay == NULL || !replay->set->is_permanent;
}

int hvd_replay_freeze(struct hvd_agreement *agreement, struct hvd_replay *replay,
                      uint64_t epoch)
{
    uint64_t started[HVD_REPLAY_PRIORITIES];

    if (replay == NULL || replay->epoch != epoch || !replay->is_active) {
        return is_removed(replay) ? 0 : HVD_ERR_NET;
    }
    if (replay->is_frozen) {
        return HVD_ERR_NET;
    }
    replay->is_frozen = true;
    replay->answered = 0;
    if (replay->set->is_member) {
        hvd_event_queue_put_set(&agreement->events, HVD_AGREEMENT_PAUSE, replay->set);
    }
    for (int i = 0; i < HVD_REPLAY_PRIORITIES; i++) {
        started[i] = replay->order.priorities[i].started;
        /* neutral values, for a rank that is not a member */
        replay->least[i] = UINT64_MAX;
        replay->most[i] = 0;
    }
    if (is_bystander(agreement, replay)) {
        return 0;
    }
    return replay->set->is_member
               ? join_answer(agreement, replay, started, started)
               : join_answer(agreement, replay, replay->least, replay->most);
}

int hvd_replay_take_frozen(struct hvd_agreement *agreement,
                           const struct hvd_record *record, struct hvd_reader *reader)
{
    struct hvd_replay *replay = take_replay(agreement, record, reader);
    uint64_t least[HVD_REPLAY_PRIORITIES], most[HVD_REPLAY_PRIORITIES];

    if (take_priorities(reader, least, most) != 0) {
        return HVD_ERR_NET;
    }
    return replay != NULL && replay->is_frozen
               ? join_answer(agreement, replay, least, most)
               : 0;
}

/* --- all ranks continue --- */

/* Takes this rank's tensors back from a batch that not all ranks have started, and puts
 * zeros in their place. */
static int take_back(struct hvd_agreement *agreement, struct hvd_batch *batch)
{
    for (int64_t i = 0; i < batch->header.count; i++) {
        struct hvd_entry *entry = batch->entries[i];
        struct hvd_entry *zeros = hvd_entry_create_zeros(&entry->descriptor);

        if (zeros == NULL) {
            return HVD_ERR_NOMEM;
        }
        zeros->is_cancelled = true;
        batch->entries[i] = zeros;
        entry->is_agreed = false;
    }
    hvd_event_queue_put_batch(&agreement->events, HVD_AGREEMENT_CANCEL, batch);
    return 0;
}

/* Starts, with zeros, a batch that other ranks have started. */
static int start_cancelled(struct hvd_agreement *agreement, struct hvd_replay *replay,
                           struct hvd_replay_priority *priority)
{
    const struct hvd_replay_batch *replayed = next_batch(priority);
    struct hvd_batch *batch = make_batch(replay, replayed);

    for (size_t i = 0; batch != NULL && i < replayed->count; i++) {
        batch->entries[i] =
            hvd_entry_create_zeros(replayed->tensors[i].cached->descriptor);
        if (batch->entries[i] == NULL) {
            hvd_batch_destroy(batch);
            return HVD_ERR_NOMEM;
        }
        batch->entries[i]->is_cancelled = true;
    }
    if (batch == NULL) {
        return HVD_ERR_NOMEM;
    }
    batch->number = ++priority->started;
    priority->running = batch;
    hvd_replay_run(agreement, batch);
    return 0;
}

static int resume_priority(struct hvd_agreement *agreement, struct hvd_replay *replay,
                           int number, uint64_t least, uint64_t most)
{
    struct hvd_replay_priority *priority = &replay->order.priorities[number];

    if (!replay->set->is_member || (least == most && priority->started == most)) {
        return 0;
    }
    if (most != least + 1) {
        return HVD_ERR_NET; /* impossible: ranks are at most one batch apart */
    }
    if (priority->started == most && priority->running != NULL) {
        return take_back(agreement, priority->running);
    }
    return priority->started == least && priority->count > 0
               ? start_cancelled(agreement, replay, priority)
               : HVD_ERR_NET;
}

/* Reports the tensors that were submitted for the replay. */
static int report_kept(struct hvd_agreement *agreement, const struct hvd_replay *replay)
{
    int status = 0;

    for (struct hvd_entry *entry = agreement->tensors->oldest;
         entry != NULL && status == 0; entry = entry->newer) {
        struct hvd_cached_tensor *cached = entry->cached;

        if (entry->is_agreed || cached == NULL || cached->key.set != replay->set->id ||
            cached->replayed_at != replay->begun_at) {
            continue;
        }
        if (!hvd_descriptor_equal(cached->descriptor, &entry->descriptor)) {
            entry->cached = NULL;
        }
        status = hvd_reports_add(agreement, entry);
    }
    return status;
}

int hvd_replay_resume(struct hvd_agreement *agreement, struct hvd_replay *replay,
                      const struct hvd_record *record, struct hvd_reader *reader,
                      int64_t now_ns)
{
    uint64_t least[HVD_REPLAY_PRIORITIES], most[HVD_REPLAY_PRIORITIES], started = 0;
    int status = 0;

    if (take_priorities(reader, least, most) != 0) {
        return HVD_ERR_NET;
    }
    if (replay == NULL || replay->epoch != record->id || !replay->is_frozen) {
        return is_removed(replay) ? 0 : HVD_ERR_NET;
    }
    for (int i = 0; i < HVD_REPLAY_PRIORITIES && status == 0; i++) {
        status = resume_priority(agreement, replay, i, least[i], most[i]);
        started += least[i];
    }
    end_replay(agreement, replay);
    if (status != 0) {
        return status;
    }
    status = report_kept(agreement, replay);
    return status == 0 && agreement->is_root
               ? hvd_coordinator_end_replay(agreement->coordinator, replay->set->id,
                                            started, now_ns)
               : status;
}
