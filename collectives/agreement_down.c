/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions: rank 0 makes them, every rank carries them out in the same order. */
#include <stdlib.h>
#include <string.h>

#include "collectives/agreement_state.h"

/* One tensor of a batch as the message names it. */
struct named {
    struct hvd_known *known; /* NULL: not known */
    const struct hvd_proposal *proposal;
    struct hvd_key key;
};

/* A batch while it is read. */
struct reading {
    struct hvd_batch_header header;
    struct hvd_batch *batch; /* NULL: this rank has no part in it */
    struct hvd_known **known; /* [count], rank 0: for the forecast */
    int64_t count; /* tensors read so far */
    int64_t bytes;
};

static struct hvd_entry *stand_in(struct hvd_agreement *agreement,
                                  const struct named *tensor)
{
    /* Only a rank that has joined may lack a tensor that all others have. */
    return agreement->join != NULL ? hvd_entry_create_absent(tensor->proposal) : NULL;
}

/* This rank's tensor. One that runs already was submitted before this rank joined; the others are
 * done with it and ahead. */
static struct hvd_entry *own_entry(const struct hvd_agreement *agreement,
                                   const struct named *tensor)
{
    struct hvd_entry *entry = hvd_agreement_entry(agreement, &tensor->key);

    return entry != NULL && !entry->is_agreed ? entry : NULL;
}

static int take_part(struct hvd_agreement *agreement, struct reading *reading,
                     const struct named *tensor)
{
    struct hvd_entry *entry = own_entry(agreement, tensor);

    if (entry != NULL && entry->is_agreed) {
        entry = NULL; /* of the batch before, which still runs: this rank has joined */
    }
    if (reading->header.status != 0) {
        if (entry != NULL) {
            hvd_agreement_end_entry(agreement, entry, reading->header.status,
                                    reading->header.text);
        }
        return 0;
    }
    if (entry != NULL) {
        entry->is_agreed = true;
        if (entry->submitted_ns > reading->batch->submitted_ns) {
            reading->batch->submitted_ns = entry->submitted_ns;
        }
    } else {
        entry = stand_in(agreement, tensor);
    }
    reading->batch->entries[reading->count] = entry;
    return entry != NULL ? 0 : HVD_ERR_NET;
}

static int read_tensor(struct hvd_agreement *agreement, struct reading *reading,
                       const struct named *tensor)
{
    int status = 0;

    if (reading->count >= reading->header.count) {
        return HVD_ERR_NET;
    }
    if (reading->batch != NULL) {
        status = take_part(agreement, reading, tensor);
    }
    if (reading->known != NULL) {
        reading->known[reading->count] = tensor->known;
    }
    reading->bytes += hvd_proposal_bytes(tensor->proposal);
    reading->count++;
    return status;
}

static int read_ids(struct hvd_agreement *agreement, struct reading *reading,
                    const struct hvd_record *record)
{
    int status = 0;

    for (uint32_t i = 0; i < record->count && status == 0; i++) {
        struct hvd_known *known = hvd_known_by_id(&agreement->known, record->id + i);
        struct named tensor;

        if (known == NULL) {
            return HVD_ERR_NET;
        }
        tensor = (struct named){known, known->proposal, known->key};
        status = read_tensor(agreement, reading, &tensor);
    }
    return status;
}

static int read_full(struct hvd_agreement *agreement, struct reading *reading,
                     struct hvd_reader *reader, uint64_t id)
{
    struct hvd_proposal *proposal = malloc(sizeof(*proposal));
    struct named tensor = {0};
    int status = proposal != NULL ? hvd_take_proposal(reader, proposal) : HVD_ERR_NOMEM;

    if (status == 0) {
        tensor.proposal = proposal;
        tensor.key = hvd_key_make(proposal->set, proposal->name);
        status = read_tensor(agreement, reading, &tensor);
    }
    if (status == 0 && id != 0) {
        struct hvd_known *known = hvd_known_add(&agreement->known, id, proposal);

        status = known != NULL ? 0 : HVD_ERR_NOMEM;
    }
    free(proposal);
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
    size_t bytes = (size_t)reading->header.row_count * sizeof(int64_t);
    const void *rows = hvd_take(reader, bytes);

    if (rows == NULL) {
        return HVD_ERR_NET;
    }
    if (reading->batch != NULL) {
        memcpy(reading->batch->rows, rows, bytes);
    }
    return 0;
}

/* --- what becomes of it --- */

/* Not what is new: it may never come back. */
static bool can_be_planned(const struct reading *reading)
{
    enum hvd_kind kind = reading->header.kind;

    for (int64_t i = 0; i < reading->count; i++) {
        if (reading->known[i] == NULL) {
            return false;
        }
    }
    return reading->header.set == HVD_SET_GLOBAL && reading->header.status == 0 &&
           reading->bytes > 0 && reading->header.lane != HVD_LANE_SPARE &&
           (kind == HVD_KIND_ALLREDUCE || kind == HVD_KIND_ADASUM);
}

static bool may_plan(const struct hvd_agreement *agreement)
{
    return agreement->settings.may_plan && !agreement->is_settling &&
           !agreement->plan.is_active && agreement->members.joined == 0;
}

static int forecast(struct hvd_agreement *agreement, const struct reading *reading,
                    int64_t now_ns)
{
    const struct hvd_forecast_batch noted = {
        .lane = reading->header.lane,
        .bytes = reading->bytes,
        .decided_ns = now_ns,
        .overlaps = agreement->running > 0,
    };

    if (agreement->plan.is_active && reading->header.set == HVD_SET_GLOBAL) {
        return hvd_plan_note_others(agreement, (size_t)reading->count);
    }
    return may_plan(agreement) && can_be_planned(reading)
               ? hvd_forecast_note(&agreement->forecast, reading->known,
                                   (size_t)reading->count, &noted)
               : 0;
}

static void end_with_value(struct hvd_agreement *agreement, struct hvd_entry *entry,
                           int64_t value)
{
    entry->request->value = value;
    hvd_agreement_end_entry(agreement, entry, 0, "");
}

static int end_join(struct hvd_agreement *agreement,
                    const struct hvd_batch_header *header)
{
    struct hvd_entry *join = agreement->join;

    hvd_members_join_over(&agreement->members);
    agreement->join = NULL;
    if (join == NULL) {
        return HVD_ERR_NET;
    }
    join->request->value = header->value;
    agreement->ended_join = join;
    hvd_agreement_end_join(agreement);
    return 0;
}

/* "0,2,5": the ranks of a set, which the caller frees; NULL without memory. */
static int *parse_ranks(const char *text, int *count)
{
    int *ranks = malloc((strlen(text) / 2 + 1) * sizeof(ranks[0]));
    char *end = (char *)text;

    *count = 0;
    while (ranks != NULL && *end != '\0') {
        ranks[(*count)++] = (int)strtol(end, &end, 10);
        end += *end == ',' ? 1 : 0;
    }
    return ranks;
}

static int add_set(struct hvd_agreement *agreement, struct hvd_entry *entry)
{
    int count;
    int *ranks = parse_ranks(entry->proposal.note, &count);
    const struct hvd_member_set *same;
    int set, status;

    if (ranks == NULL) {
        return HVD_ERR_NOMEM;
    }
    same = hvd_members_same(&agreement->members, ranks, count);
    if (same != NULL) {
        free(ranks);
        hvd_agreement_end_entry(agreement, entry, HVD_ERR_ARG,
                                "A process set with the same ranks already exists.");
        return 0;
    }
    set = hvd_members_add(&agreement->members, ranks, count);
    status =
        set < 0 ? set : agreement->ops->add_set(agreement->context, set, ranks, count);
    free(ranks);
    if (status == 0) {
        end_with_value(agreement, entry, set);
    }
    return status;
}

/* What another thread has submitted since this rank asked for the removal. */
static void end_all_of(struct hvd_agreement *agreement, int set)
{
    struct hvd_entry *entry = agreement->oldest;

    while (entry != NULL) {
        struct hvd_entry *next = entry->newer;

        if (entry->proposal.set == set) {
            hvd_tallies_drop(&agreement->tallies, &entry->key);
            hvd_agreement_end_entry(agreement, entry, HVD_ERR_ARG,
                                    "The process set was removed meanwhile.");
        }
        entry = next;
    }
}

static void remove_set(struct hvd_agreement *agreement, struct hvd_entry *entry)
{
    int set = entry->proposal.root;

    if (set == HVD_SET_GLOBAL || hvd_members_find(&agreement->members, set) == NULL) {
        hvd_agreement_end_entry(agreement, entry, HVD_ERR_ARG,
                                "There is no such process set to remove.");
        return;
    }
    end_all_of(agreement, set);
    hvd_members_remove(&agreement->members, set);
    agreement->ops->remove_set(agreement->context, set);
    end_with_value(agreement, entry, set);
}

static int carry_out(struct hvd_agreement *agreement, struct hvd_batch *batch)
{
    struct hvd_entry *entry = batch->header.count > 0 ? batch->entries[0] : NULL;
    int status = 0;

    switch (batch->header.kind) {
    case HVD_KIND_SET_ADD:
        status = add_set(agreement, entry);
        hvd_batch_destroy(batch);
        return status;
    case HVD_KIND_SET_REMOVE:
        remove_set(agreement, entry);
        hvd_batch_destroy(batch);
        return 0;
    default:
        agreement->running += batch->header.set == HVD_SET_GLOBAL ? 1 : 0;
        agreement->ops->run(agreement->context, batch);
        return 0;
    }
}

static bool has_part(const struct hvd_agreement *agreement, int set)
{
    const struct hvd_member_set *found = hvd_members_find(&agreement->members, set);

    return found != NULL && found->is_member;
}

static int begin_reading(struct hvd_agreement *agreement, struct reading *reading)
{
    if (has_part(agreement, reading->header.set)) {
        reading->batch = hvd_batch_create(&reading->header);
        if (reading->batch == NULL) {
            return HVD_ERR_NOMEM;
        }
    }
    if (hvd_agreement_is_root(agreement)) {
        reading->known =
            calloc((size_t)reading->header.count + 1, sizeof(struct hvd_known *));
        if (reading->known == NULL) {
            return HVD_ERR_NOMEM;
        }
    }
    return 0;
}

static int take_batch(struct hvd_agreement *agreement, struct hvd_reader *reader,
                      const struct hvd_record *record, int64_t now_ns)
{
    struct reading reading = {0};
    int status = hvd_take_batch(reader, record, &reading.header);

    if (status == 0 && reading.header.kind == HVD_KIND_JOIN) {
        return end_join(agreement, &reading.header);
    }
    agreement->counts.decided++;
    status = status != 0 ? status : begin_reading(agreement, &reading);
    status = status != 0 ? status : read_tensors(agreement, &reading, reader);
    status = status != 0 ? status : read_rows(&reading, reader);
    if (status == 0 && reading.known != NULL) {
        status = forecast(agreement, &reading, now_ns);
    }
    free(reading.known);
    if (status != 0 || reading.batch == NULL || reading.header.status != 0) {
        hvd_batch_destroy(reading.batch);
        return status;
    }
    return carry_out(agreement, reading.batch);
}

static int take_eviction(struct hvd_agreement *agreement, uint64_t id)
{
    struct hvd_known *known = hvd_known_by_id(&agreement->known, id);

    if (known == NULL || known->is_evicted) {
        return HVD_ERR_NET;
    }
    if (known->mine != NULL && hvd_agreement_unbind(agreement, known->mine) != 0) {
        return HVD_ERR_NOMEM;
    }
    hvd_known_evict(&agreement->known, known, agreement->position);
    if (known->noted_at > agreement->forecast.first_note) { /* rank 0 remembers it */
        hvd_forecast_restart(&agreement->forecast);
    }
    return 0;
}

static int take_settings(struct hvd_agreement *agreement, struct hvd_reader *reader)
{
    agreement->settings.fusion.threshold = hvd_take_int(reader);
    agreement->settings.fusion.cycle_ns = hvd_take_int(reader);
    return reader->failed ? HVD_ERR_NET : 0;
}

static int take_decision(struct hvd_agreement *agreement, struct hvd_reader *reader,
                         int64_t now_ns)
{
    struct hvd_record record;

    if (hvd_take_record(reader, &record) != 0) {
        return HVD_ERR_NET;
    }
    switch (record.kind) {
    case HVD_DECISION_BATCH:
        return take_batch(agreement, reader, &record, now_ns);
    case HVD_DECISION_EVICT:
        return take_eviction(agreement, record.id);
    case HVD_DECISION_PLAN:
        return hvd_plan_begin(agreement, reader, &record);
    case HVD_DECISION_BREAK:
        return hvd_plan_freeze(agreement);
    case HVD_DECISION_RESUME:
        return hvd_plan_resume(agreement, reader, now_ns);
    case HVD_DECISION_ASK:
        return hvd_stall_answer(agreement, now_ns);
    case HVD_DECISION_SETTINGS:
        return take_settings(agreement, reader);
    default:
        return HVD_ERR_NET;
    }
}

static int take_decisions(struct hvd_agreement *agreement, const void *payload,
                          size_t bytes, int64_t now_ns)
{
    struct hvd_reader reader = {.data = payload, .bytes = bytes};
    int status = 0;

    agreement->position++;
    while (status == 0 && reader.bytes > 0) {
        status = take_decision(agreement, &reader, now_ns);
    }
    hvd_known_forget(&agreement->known,
                     agreement->members.branches == 1 ? agreement->position : 0);
    return status == HVD_ERR_ARG ? HVD_ERR_NET : status;
}

static int pass_down(struct hvd_agreement *agreement, const void *payload, size_t bytes)
{
    uint64_t children = (uint64_t)agreement->members.branches - 1;

    agreement->counts.messages_down += children;
    agreement->counts.bytes_sent += children * bytes;
    return children > 0 ? agreement->ops->send_down(agreement->context, payload, bytes)
                        : 0;
}

int hvd_agreement_from_above(struct hvd_agreement *agreement, const void *payload,
                             size_t bytes, int64_t now_ns)
{
    bool moved;
    int status = pass_down(agreement, payload, bytes);

    agreement->counts.received++;
    agreement->counts.bytes_received += bytes;
    /* What has been said so far was said at the position before. */
    status = status != 0 ? status : hvd_agreement_pass_up(agreement, now_ns);
    status = status != 0 ? status : hvd_agreement_flush(agreement, &moved);
    return status != 0 ? status : take_decisions(agreement, payload, bytes, now_ns);
}

int hvd_agreement_decide(struct hvd_agreement *agreement, int64_t now_ns)
{
    hvd_coordinator_answer(agreement->coordinator, agreement->plan.is_active, now_ns,
                           &agreement->down);
    return 0;
}

/* All ranks have joined: what they still had comes first. */
static int put_join_end(struct hvd_agreement *agreement, int64_t now_ns)
{
    const struct hvd_batch_header header = {
        .kind = HVD_KIND_JOIN, .text = "", .value = agreement->last_joined};

    if (agreement->members.joined < agreement->members.layout->size ||
        agreement->plan.is_active) {
        return 0;
    }
    hvd_agreement_decide(agreement, now_ns);
    hvd_put_batch(&agreement->down, &header);
    return 0;
}

/* Decisions may lead to further ones: until there are none. */
int hvd_agreement_send_decisions(struct hvd_agreement *agreement, int64_t now_ns)
{
    int status = put_join_end(agreement, now_ns);

    while (status == 0 && agreement->down.bytes > 0) {
        struct hvd_writer message = agreement->down;

        agreement->down = (struct hvd_writer){0};
        status = message.failed ? HVD_ERR_NOMEM
                                : pass_down(agreement, message.data, message.bytes);
        status = status != 0
                     ? status
                     : take_decisions(agreement, message.data, message.bytes, now_ns);
        if (status == 0 && may_plan(agreement) &&
            hvd_forecast_is_due(&agreement->forecast)) {
            status = hvd_plan_put(agreement);
        }
        if (status == 0 && agreement->down.bytes == 0) {
            message.bytes = 0; /* to be used again */
            agreement->down = message;
        } else {
            hvd_writer_finish(&message);
        }
    }
    return status;
}

int hvd_agreement_tune(struct hvd_agreement *agreement, int64_t threshold,
                       int64_t cycle_ns)
{
    hvd_plan_put_break(agreement); /* it was made with the old settings */
    hvd_forecast_restart(&agreement->forecast);
    hvd_put_record(&agreement->down, HVD_DECISION_SETTINGS, 1, 0);
    hvd_put_int(&agreement->down, threshold);
    hvd_put_int(&agreement->down, cycle_ns);
    return agreement->down.failed ? HVD_ERR_NOMEM : 0;
}
