/* SPDX-License-Identifier: Apache-2.0 */
/* Planned batches while all goes as foretold. */
#include <stdlib.h>

#include "collectives/agreement/agreement_state.h"
#include "collectives/agreement/validate.h"

/* A plan of which nothing happens, while so many tensors (and twice its own number) are agreed
 * upon, belongs to a part of the job that is over. */
static const size_t outdated_after = 64;

void hvd_plan_free(struct hvd_plan *plan)
{
    for (int i = 0; i < HVD_PLAN_LANES; i++) {
        free(plan->lanes[i].batches);
    }
    for (size_t i = 0; i < plan->count; i++) {
        free(plan->batches[i].tensors);
    }
    free(plan->batches);
    *plan = (struct hvd_plan){.epoch = plan->epoch};
}

/* --- rank 0 --- */

int hvd_plan_put(struct hvd_agreement *agreement)
{
    struct hvd_forecast *forecast = &agreement->forecast;
    struct hvd_writer *down = &agreement->down;

    if (!agreement->settings.fusion.groups_alone) {
        hvd_forecast_merge(forecast, agreement->settings.fusion.threshold,
                           agreement->settings.fusion.cycle_ns);
    }
    hvd_put_record(down, HVD_DECISION_PLAN, (uint32_t)forecast->batch_count,
                   agreement->plan.epoch + 1);
    for (size_t i = 0; i < forecast->batch_count; i++) {
        const struct hvd_forecast_batch *batch = &forecast->batches[i];
        struct hvd_id_range range = {0};

        hvd_put_int(down, batch->lane);
        hvd_put_int(down, (int64_t)batch->count);
        for (size_t j = 0; j < batch->count; j++) {
            hvd_put_id(down, HVD_TENSOR_IDS, &range,
                       forecast->tensors[batch->first + j]->id);
        }
        hvd_put_ids_end(down, HVD_TENSOR_IDS, &range);
    }
    hvd_forecast_restart(forecast);
    return down->failed ? HVD_ERR_NOMEM : 0;
}

/* --- every rank: the plan begins --- */

static int plan_tensor(struct hvd_agreement *agreement, struct hvd_plan_batch *batch,
                       size_t index, uint64_t id)
{
    struct hvd_known *known = hvd_known_by_id(&agreement->known, id);

    if (known == NULL || known->is_evicted) {
        return HVD_ERR_NET;
    }
    batch->tensors[index].known = known;
    if (known->planned_at != agreement->position) {
        known->planned_at = agreement->position;
        /* Who reports it was a cycle ahead: it is in the plan's first one now. */
        hvd_tallies_drop(&agreement->tallies, &known->key);
    }
    return 0;
}

/* Links the batches that have a tensor, in the order of the plan, into a ring; `planned`
 * is where it comes first. */
static void link_occurrences(struct hvd_plan *plan)
{
    for (int round = 0; round < 2; round++) {
        for (size_t i = plan->count; i-- > 0;) {
            struct hvd_plan_batch *batch = &plan->batches[i];

            for (size_t j = 0; j < batch->count; j++) {
                struct hvd_plan_tensor *tensor = &batch->tensors[j];

                /* In the second round the last one has found the first. */
                tensor->next = tensor->known->planned;
                tensor->known->planned = batch;
            }
        }
    }
}

static int read_batch(struct hvd_agreement *agreement, struct hvd_reader *reader,
                      struct hvd_plan_batch *batch)
{
    size_t count = 0;
    int status = 0;

    batch->lane = (enum hvd_lane)hvd_take_int(reader);
    batch->count = (size_t)hvd_take_int(reader);
    if (reader->failed || (unsigned)batch->lane >= HVD_PLAN_LANES) {
        return HVD_ERR_NET;
    }
    batch->missing = batch->count;
    agreement->plan.tensors += batch->count;
    batch->tensors = calloc(batch->count, sizeof(batch->tensors[0]));
    if (batch->tensors == NULL) {
        return HVD_ERR_NOMEM;
    }
    while (status == 0 && count < batch->count) {
        struct hvd_record record;

        if (hvd_take_record(reader, &record) != 0 ||
            count + record.count > batch->count) {
            return HVD_ERR_NET;
        }
        for (uint32_t i = 0; i < record.count && status == 0; i++) {
            status = plan_tensor(agreement, batch, count++, record.id + i);
        }
    }
    return status;
}

static int deal_out(struct hvd_plan *plan)
{
    for (int i = 0; i < HVD_PLAN_LANES; i++) {
        plan->lanes[i].batches = calloc(plan->count, sizeof(struct hvd_plan_batch *));
        if (plan->lanes[i].batches == NULL) {
            return HVD_ERR_NOMEM;
        }
    }
    for (size_t i = 0; i < plan->count; i++) {
        struct hvd_plan_lane *lane = &plan->lanes[plan->batches[i].lane];

        lane->batches[lane->count++] = &plan->batches[i];
    }
    return 0;
}

/* Counts the tensors that this rank has submitted and reported in vain. */
static int adopt_entries(struct hvd_agreement *agreement)
{
    int status = 0;

    for (struct hvd_entry *entry = agreement->oldest; entry != NULL && status == 0;
         entry = entry->newer) {
        struct hvd_known *known = hvd_known_find(&agreement->known, &entry->key);

        if (!entry->is_agreed && known != NULL && known->planned != NULL) {
            status = hvd_agreement_unbind(agreement, entry);
            status = status != 0 ? status : hvd_plan_submit(agreement, entry, known);
        }
    }
    return status;
}

/* Rank 0 makes plans when nobody has joined. Who has said so meanwhile crosses the plan,
 * and says it again after it, behind the tensors that it has: those will have been
 * reported by then. */
static int defer_joins(struct hvd_agreement *agreement)
{
    hvd_members_join_over(&agreement->members);
    if (agreement->join == NULL) {
        return 0;
    }
    agreement->is_join_deferred = true;
    return hvd_plan_ask_break(agreement, false);
}

int hvd_plan_begin(struct hvd_agreement *agreement, struct hvd_reader *reader,
                   const struct hvd_record *record)
{
    struct hvd_plan *plan = &agreement->plan;
    int status = 0;

    hvd_plan_free(plan);
    plan->epoch = record->id;
    plan->is_active = true;
    plan->begun_at = agreement->position;
    plan->count = record->count;
    plan->batches = calloc(plan->count, sizeof(plan->batches[0]));
    if (plan->batches == NULL) {
        plan->count = 0;
        return HVD_ERR_NOMEM;
    }
    agreement->counts.plans++;
    for (size_t i = 0; i < plan->count && status == 0; i++) {
        status = read_batch(agreement, reader, &plan->batches[i]);
    }
    status = status != 0 ? status : deal_out(plan);
    if (status == 0) {
        link_occurrences(plan);
    }
    if (status == 0 && hvd_agreement_is_root(agreement)) {
        hvd_coordinator_drop_planned(agreement->coordinator);
    }
    status = status != 0 ? status : adopt_entries(agreement);
    return status != 0 ? status : defer_joins(agreement);
}

/* --- the plan at work --- */

int hvd_plan_note_others(struct hvd_agreement *agreement, size_t tensors)
{
    struct hvd_plan *plan = &agreement->plan;

    plan->others += tensors;
    return plan->is_active && plan->others > 2 * plan->tensors + outdated_after
               ? hvd_plan_put_break(agreement)
               : 0;
}

bool hvd_plan_fits(struct hvd_known *known, const struct hvd_proposal *proposal)
{
    return hvd_proposal_equal(known->proposal, proposal) ||
           (known->proposal->is_shared == proposal->is_shared &&
            hvd_validate_pair(known, proposal, NULL) == 0);
}

/* Tensors that were fused may differ in that: a rank may have had one elsewhere. */
static bool are_shared(const struct hvd_plan_batch *planned)
{
    bool are = true;

    for (size_t i = 0; i < planned->count && are; i++) {
        are = planned->tensors[i].known->proposal->is_shared;
    }
    return are;
}

struct hvd_batch *hvd_plan_make_batch(const struct hvd_plan_batch *planned, bool is_void)
{
    const struct hvd_proposal *first = planned->tensors[0].known->proposal;
    const struct hvd_batch_header header = {
        .kind = first->kind,
        .set = HVD_SET_GLOBAL,
        .lane = planned->lane,
        .count = (int64_t)planned->count,
        .is_shared = are_shared(planned),
    };
    struct hvd_batch *batch = hvd_batch_create(&header);

    for (size_t i = 0; batch != NULL && i < planned->count; i++) {
        const struct hvd_known *known = planned->tensors[i].known;
        struct hvd_entry *entry =
            is_void ? hvd_entry_create_absent(known->proposal) : known->mine;

        batch->entries[i] = entry;
        if (entry == NULL) {
            hvd_batch_destroy(batch);
            return NULL;
        }
        entry->is_void = is_void;
        if (entry->submitted_ns > batch->submitted_ns) {
            batch->submitted_ns = entry->submitted_ns;
        }
    }
    return batch;
}

int hvd_plan_start(struct hvd_agreement *agreement, int number)
{
    struct hvd_plan *plan = &agreement->plan;
    struct hvd_plan_lane *lane = &plan->lanes[number];
    struct hvd_plan_batch *planned;
    struct hvd_batch *batch;

    if (!plan->is_active || plan->is_frozen || lane->running != NULL ||
        lane->count == 0) {
        return 0;
    }
    planned = lane->batches[lane->started % lane->count];
    if (planned->missing > 0 || planned->anew > 0) {
        return 0;
    }
    batch = hvd_plan_make_batch(planned, false);
    if (batch == NULL) {
        return HVD_ERR_NOMEM;
    }
    for (size_t i = 0; i < planned->count; i++) {
        batch->entries[i]->is_agreed = true;
        planned->tensors[i].known->planned = planned->tensors[i].next;
    }
    planned->missing = planned->count;
    plan->waiting -= planned->count;
    lane->running = batch;
    plan->others = 0;
    batch->number = ++lane->started;
    agreement->counts.planned++;
    agreement->ops->run(agreement->context, batch);
    return 0;
}

int hvd_plan_submit(struct hvd_agreement *agreement, struct hvd_entry *entry,
                    struct hvd_known *known)
{
    struct hvd_plan_batch *planned = known->planned;
    bool is_anew = !hvd_plan_fits(known, &entry->proposal);

    hvd_agreement_bind(agreement, entry, known);
    planned->missing--;
    agreement->plan.waiting++;
    planned->anew += is_anew ? 1 : 0;
    return is_anew ? hvd_plan_ask_break(agreement, true)
                   : hvd_plan_start(agreement, planned->lane);
}

int hvd_plan_finish(struct hvd_agreement *agreement, struct hvd_batch *batch)
{
    struct hvd_plan_lane *lane = &agreement->plan.lanes[batch->header.lane];
    bool is_last_one =
        lane->running == batch; /* not of an earlier plan, not before a void one */
    int number = (int)batch->header.lane;

    hvd_agreement_end_batch(agreement, batch);
    if (!is_last_one) {
        return 0;
    }
    lane->running = NULL;
    return hvd_plan_start(agreement, number);
}
