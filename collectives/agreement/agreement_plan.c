/* SPDX-License-Identifier: Apache-2.0 */
/* Planned batches while all goes as foretold. */
#include <stdlib.h>

#include "collectives/agreement/agreement_state.h"
#include "collectives/agreement/validate.h"

/* A plan of which nothing happens, while so many tensors (and twice its own number) are agreed
 * upon, belongs to a part of the job that is over. */
static const size_t outdated_after = 64;

/* --- the plans of all sets --- */

struct hvd_plan *hvd_plan_of(const struct hvd_agreement *agreement, int set)
{
    const struct hvd_plans *plans = &agreement->plans;

    return set >= 0 && set < plans->count ? plans->of_set[set] : NULL;
}

static int make_room(struct hvd_plans *plans, int set)
{
    struct hvd_plan **grown;

    if (set < plans->count) {
        return 0;
    }
    grown = realloc(plans->of_set, ((size_t)set + 1) * sizeof(grown[0]));
    if (grown == NULL) {
        return HVD_ERR_NOMEM;
    }
    plans->of_set = grown;
    while (plans->count <= set) {
        grown[plans->count++] = NULL;
    }
    return 0;
}

int hvd_plan_add(struct hvd_agreement *agreement, int set)
{
    const struct hvd_member_set *members = hvd_members_find(&agreement->members, set);
    struct hvd_plan *plan = calloc(1, sizeof(*plan));

    if (plan == NULL || make_room(&agreement->plans, set) != 0) {
        free(plan);
        return HVD_ERR_NOMEM;
    }
    plan->set = set;
    plan->is_member = members->is_member;
    plan->answers = 1;
    for (int i = 1; i < agreement->members.branches; i++) {
        plan->answers += members->in_branch[i] > 0 ? 1 : 0;
    }
    plan->held_end = &plan->held;
    hvd_forecast_init(&plan->forecast);
    agreement->plans.of_set[set] = plan;
    return 0;
}

static void free_batches(struct hvd_plan *plan)
{
    for (int i = 0; i < HVD_PLAN_LANES; i++) {
        free(plan->lanes[i].batches);
        plan->lanes[i] = (struct hvd_plan_lane){0};
    }
    for (size_t i = 0; i < plan->count; i++) {
        free(plan->batches[i].tensors);
    }
    free(plan->batches);
    plan->batches = NULL;
    plan->count = 0;
    plan->tensors = 0;
    plan->others = 0;
}

static void unnote(struct hvd_plans *plans, const struct hvd_plan *plan)
{
    struct hvd_plan **at = &plans->noted;

    while (*at != NULL && *at != plan) {
        at = &(*at)->next_noted;
    }
    if (*at != NULL) {
        *at = plan->next_noted;
    }
}

static void destroy(struct hvd_agreement *agreement, struct hvd_plan *plan)
{
    while (plan->held != NULL) {
        struct hvd_tally *tally = plan->held;

        plan->held = tally->next;
        hvd_tallies_give_back(&agreement->tallies, tally);
    }
    if (plan->is_noted) {
        unnote(&agreement->plans, plan);
    }
    free_batches(plan);
    hvd_forecast_finish(&plan->forecast);
    free(plan);
}

void hvd_plan_remove(struct hvd_agreement *agreement, int set)
{
    struct hvd_plan *plan = hvd_plan_of(agreement, set);

    if (plan->is_active) {
        hvd_plan_end(agreement, plan);
    }
    agreement->plans.of_set[set] = NULL;
    destroy(agreement, plan);
}

void hvd_plans_finish(struct hvd_agreement *agreement)
{
    struct hvd_plans *plans = &agreement->plans;

    for (int i = 0; i < plans->count; i++) {
        if (plans->of_set[i] != NULL) {
            destroy(agreement, plans->of_set[i]);
        }
    }
    free(plans->of_set);
}

void hvd_plan_run(struct hvd_agreement *agreement, struct hvd_batch *batch)
{
    hvd_plan_of(agreement, batch->header.set)->running++;
    agreement->ops->run(agreement->context, batch);
}

static void unplan(struct hvd_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        for (size_t j = 0; j < plan->batches[i].count; j++) {
            plan->batches[i].tensors[j].known->planned = NULL;
        }
    }
}

void hvd_plan_end(struct hvd_agreement *agreement, struct hvd_plan *plan)
{
    bool is_paused = plan->is_frozen && plan->is_member;

    unplan(plan);
    plan->is_active = false;
    plan->is_frozen = false;
    plan->is_breaking = false;
    plan->wants_break = false;
    agreement->plans.waiting -= plan->waiting;
    plan->waiting = 0;
    if (hvd_agreement_is_root(agreement) && plan->set != HVD_SET_GLOBAL) {
        agreement->plans.set_tensors -= plan->tensors;
    }
    if (is_paused) {
        agreement->ops->pause(agreement->context, plan->set, false);
    }
}

/* --- rank 0 --- */

int hvd_plan_note(struct hvd_agreement *agreement, struct hvd_plan *plan,
                  struct hvd_known *const *tensors, size_t count,
                  const struct hvd_forecast_batch *batch)
{
    if (!plan->is_noted) {
        plan->is_noted = true;
        plan->next_noted = agreement->plans.noted;
        agreement->plans.noted = plan;
    }
    return hvd_forecast_note(&plan->forecast, tensors, count, batch);
}

/* Of a further set: nothing of it is to be decided before the plan, and its tensors leave others
 * their room. */
static bool has_place(const struct hvd_agreement *agreement, const struct hvd_plan *plan)
{
    size_t capacity = (size_t)agreement->settings.fusion.capacity;

    return plan->set == HVD_SET_GLOBAL ||
           (agreement->plans.set_tensors + plan->forecast.period <= capacity / 2 &&
            !hvd_coordinator_has(agreement->coordinator, plan->set));
}

static int put(struct hvd_agreement *agreement, struct hvd_plan *plan)
{
    struct hvd_forecast *forecast = &plan->forecast;
    struct hvd_part part =
        hvd_part_begin(&agreement->down, &agreement->set_down, plan->set);

    if (!agreement->settings.fusion.groups_alone) {
        hvd_forecast_merge(forecast, agreement->settings.fusion.threshold,
                           agreement->settings.fusion.cycle_ns);
    }
    hvd_put_record(part.writer, HVD_DECISION_PLAN, (uint32_t)forecast->batch_count,
                   ++agreement->plans.announced);
    for (size_t i = 0; i < forecast->batch_count; i++) {
        const struct hvd_forecast_batch *batch = &forecast->batches[i];
        struct hvd_id_range range = {0};

        hvd_put_int(part.writer,
                    plan->set == HVD_SET_GLOBAL ? batch->lane : HVD_LANE_QUICK);
        hvd_put_int(part.writer, (int64_t)batch->count);
        for (size_t j = 0; j < batch->count; j++) {
            hvd_put_id(part.writer, HVD_TENSOR_IDS, &range,
                       forecast->tensors[batch->first + j]->id);
        }
        hvd_put_ids_end(part.writer, HVD_TENSOR_IDS, &range);
    }
    hvd_part_end(&part);
    if (plan->set != HVD_SET_GLOBAL) {
        agreement->plans.set_tensors += forecast->count;
    }
    hvd_forecast_restart(forecast);
    return part.writer->failed ? HVD_ERR_NOMEM : 0;
}

int hvd_plan_put_due(struct hvd_agreement *agreement)
{
    struct hvd_plans *plans = &agreement->plans;
    int status = 0;

    while (status == 0 && plans->noted != NULL &&
           agreement->set_down.bytes < HVD_MESSAGE_BYTES) {
        struct hvd_plan *plan = plans->noted;

        plans->noted = plan->next_noted;
        plan->is_noted = false;
        if (hvd_agreement_may_plan(agreement, plan) && has_place(agreement, plan) &&
            hvd_forecast_is_due(&plan->forecast)) {
            status = put(agreement, plan);
        }
    }
    return status;
}

int hvd_plan_admit(struct hvd_agreement *agreement, struct hvd_tally *tally,
                   int64_t now_ns)
{
    struct hvd_plan *plan = hvd_plan_of(agreement, tally->key.set);

    if (plan == NULL || plan->set == HVD_SET_GLOBAL || !plan->is_active) {
        return hvd_coordinator_add(agreement->coordinator, tally, now_ns);
    }
    tally->next = NULL;
    *plan->held_end = tally;
    plan->held_end = &tally->next;
    return hvd_plan_ask_break(agreement, plan, true);
}

int hvd_plan_release_held(struct hvd_agreement *agreement, struct hvd_plan *plan,
                          int64_t now_ns)
{
    int status = 0;

    while (plan->held != NULL && status == 0) {
        struct hvd_tally *tally = plan->held;

        plan->held = tally->next;
        status = hvd_coordinator_add(agreement->coordinator, tally, now_ns);
    }
    plan->held_end = &plan->held;
    return status;
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

static int read_batch(struct hvd_agreement *agreement, struct hvd_plan *plan,
                      struct hvd_reader *reader, struct hvd_plan_batch *batch)
{
    size_t count = 0;
    int status = 0;

    batch->lane = (enum hvd_lane)hvd_take_int(reader);
    batch->count = (size_t)hvd_take_int(reader);
    if (reader->failed || (unsigned)batch->lane >= HVD_PLAN_LANES) {
        return HVD_ERR_NET;
    }
    batch->missing = batch->count;
    plan->tensors += batch->count;
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
static int adopt_entries(struct hvd_agreement *agreement, const struct hvd_plan *plan)
{
    int status = 0;

    for (struct hvd_entry *entry = agreement->oldest; entry != NULL && status == 0;
         entry = entry->newer) {
        struct hvd_known *known = entry->key.set == plan->set
                                      ? hvd_known_find(&agreement->known, &entry->key)
                                      : NULL;

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
static int defer_joins(struct hvd_agreement *agreement, struct hvd_plan *plan)
{
    hvd_members_join_over(&agreement->members);
    if (agreement->join == NULL) {
        return 0;
    }
    agreement->is_join_deferred = true;
    return hvd_plan_ask_break(agreement, plan, false);
}

static int read_plan(struct hvd_agreement *agreement, struct hvd_plan *plan,
                     struct hvd_reader *reader, size_t count)
{
    int status = 0;

    free_batches(plan);
    plan->batches = calloc(count, sizeof(plan->batches[0]));
    if (plan->batches == NULL) {
        return HVD_ERR_NOMEM;
    }
    plan->count = count;
    for (size_t i = 0; i < count && status == 0; i++) {
        status = read_batch(agreement, plan, reader, &plan->batches[i]);
    }
    return status != 0 ? status : deal_out(plan);
}

int hvd_plan_begin(struct hvd_agreement *agreement, int set, struct hvd_reader *reader,
                   const struct hvd_record *record)
{
    struct hvd_plan *plan = hvd_plan_of(agreement, set);
    int status;

    if (plan == NULL || plan->is_active) {
        return HVD_ERR_NET;
    }
    plan->epoch = record->id;
    plan->is_active = true;
    plan->begun_at = agreement->position;
    agreement->counts.plans++;
    status = read_plan(agreement, plan, reader, record->count);
    if (status == 0) {
        link_occurrences(plan);
    }
    if (status == 0 && hvd_agreement_is_root(agreement)) {
        hvd_coordinator_drop_planned(agreement->coordinator);
    }
    status = status != 0 ? status : adopt_entries(agreement, plan);
    return status != 0 || set != HVD_SET_GLOBAL ? status : defer_joins(agreement, plan);
}

/* --- the plan at work --- */

int hvd_plan_note_others(struct hvd_agreement *agreement, struct hvd_plan *plan,
                         size_t tensors)
{
    plan->others += tensors;
    return plan->is_active && plan->others > 2 * plan->tensors + outdated_after
               ? hvd_plan_put_break(agreement, plan)
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

struct hvd_batch *hvd_plan_make_batch(const struct hvd_plan *plan,
                                      const struct hvd_plan_batch *planned, bool is_void)
{
    const struct hvd_proposal *first = planned->tensors[0].known->proposal;
    const struct hvd_batch_header header = {
        .kind = first->kind,
        .set = plan->set,
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

static int start(struct hvd_agreement *agreement, struct hvd_plan *plan, int number)
{
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
    batch = hvd_plan_make_batch(plan, planned, false);
    if (batch == NULL) {
        return HVD_ERR_NOMEM;
    }
    for (size_t i = 0; i < planned->count; i++) {
        batch->entries[i]->is_agreed = true;
        planned->tensors[i].known->planned = planned->tensors[i].next;
    }
    planned->missing = planned->count;
    plan->waiting -= planned->count;
    agreement->plans.waiting -= planned->count;
    lane->running = batch;
    plan->others = 0;
    batch->number = ++lane->started;
    agreement->counts.planned++;
    hvd_plan_run(agreement, batch);
    return 0;
}

int hvd_plan_submit(struct hvd_agreement *agreement, struct hvd_entry *entry,
                    struct hvd_known *known)
{
    struct hvd_plan *plan = hvd_plan_of(agreement, known->key.set);
    struct hvd_plan_batch *planned = known->planned;
    bool is_anew = !hvd_plan_fits(known, &entry->proposal);

    hvd_agreement_bind(agreement, entry, known);
    planned->missing--;
    plan->waiting++;
    agreement->plans.waiting++;
    planned->anew += is_anew ? 1 : 0;
    return is_anew ? hvd_plan_ask_break(agreement, plan, true)
                   : start(agreement, plan, (int)planned->lane);
}

int hvd_agreement_finish(struct hvd_agreement *agreement, struct hvd_batch *batch)
{
    struct hvd_plan *plan = hvd_plan_of(agreement, batch->header.set);
    int number = (int)batch->header.lane;
    /* Not one of an earlier plan, nor one before a void one; nor one that was decided. */
    bool is_last_one = batch->number != 0 && plan->lanes[number].running == batch;

    plan->running--;
    hvd_agreement_end_batch(agreement, batch);
    if (!is_last_one) {
        return 0;
    }
    plan->lanes[number].running = NULL;
    return start(agreement, plan, number);
}
