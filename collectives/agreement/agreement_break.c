/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a plan: all of its set stop at the same batch, what is in limbo is agreed upon after
 * all. */
#include <string.h>

#include "collectives/agreement/agreement_state.h"

static void put_lanes(struct hvd_writer *writer, const uint64_t *least,
                      const uint64_t *most)
{
    hvd_put(writer, least, HVD_PLAN_LANES * sizeof(least[0]));
    hvd_put(writer, most, HVD_PLAN_LANES * sizeof(most[0]));
}

static int take_lanes(struct hvd_reader *reader, uint64_t *least, uint64_t *most)
{
    const size_t bytes = HVD_PLAN_LANES * sizeof(least[0]);
    const char *data = hvd_take(reader, 2 * bytes);

    if (data == NULL) {
        return HVD_ERR_ARG;
    }
    memcpy(least, data, bytes);
    memcpy(most, data + bytes, bytes);
    return 0;
}

/* --- who wants it --- */

int hvd_plan_put_break(struct hvd_agreement *agreement, struct hvd_plan *plan)
{
    struct hvd_part part;

    if (!plan->is_active || plan->is_breaking) {
        return 0;
    }
    plan->is_breaking = true;
    agreement->counts.breaks++;
    part = hvd_part_begin(&agreement->down, &agreement->set_down, plan->set);
    hvd_put_record(part.writer, HVD_DECISION_BREAK, 1, plan->epoch);
    hvd_part_end(&part);
    return part.writer->failed ? HVD_ERR_NOMEM : 0;
}

int hvd_plan_ask_break(struct hvd_agreement *agreement, struct hvd_plan *plan,
                       bool was_wrong)
{
    if (!plan->is_active || plan->is_breaking || plan->is_frozen || plan->wants_break) {
        return 0; /* it has ended meanwhile, or is about to, or has been asked to */
    }
    plan->wants_break = true;
    if (!hvd_agreement_is_root(agreement)) {
        hvd_agreement_put_up(agreement, HVD_REPORT_BREAK, was_wrong ? 1 : 0, plan->epoch);
        hvd_put_int(&agreement->up, plan->set);
        return 0;
    }
    if (was_wrong) {
        hvd_forecast_was_wrong(&plan->forecast);
    }
    return hvd_plan_put_break(agreement, plan);
}

/* The plan that a report means, whose set comes next; NULL: it is over. */
static struct hvd_plan *take_plan(struct hvd_agreement *agreement,
                                  const struct hvd_record *record,
                                  struct hvd_reader *reader)
{
    struct hvd_plan *plan = hvd_plan_of(agreement, (int)hvd_take_int(reader));

    return plan != NULL && plan->epoch == record->id ? plan : NULL;
}

int hvd_plan_take_break(struct hvd_agreement *agreement, const struct hvd_record *record,
                        struct hvd_reader *reader)
{
    struct hvd_plan *plan = take_plan(agreement, record, reader);

    if (reader->failed) {
        return HVD_ERR_NET;
    }
    return plan != NULL ? hvd_plan_ask_break(agreement, plan, record->count != 0) : 0;
}

/* Whether the tensor's batch cannot start because this rank has not submitted something. */
static bool is_held_up(const struct hvd_plan *plan, const struct hvd_plan_batch *planned)
{
    const struct hvd_plan_lane *lane = &plan->lanes[planned->lane];

    return planned->missing > 0 ||
           (lane->running == NULL &&
            lane->batches[lane->started % lane->count]->missing > 0);
}

static bool has_waited(const struct hvd_agreement *agreement,
                       const struct hvd_entry *entry, int64_t now_ns)
{
    static const int64_t patience_ns = 5000000;
    static const int64_t most_patience_ns = 1000000000; /* nobody asks for it here */
    bool is_asked_for =
        atomic_load(&entry->request->is_asked_for) || agreement->deferred_removals > 0;

    return now_ns - entry->submitted_ns > (is_asked_for ? patience_ns : most_patience_ns);
}

int hvd_plan_look(struct hvd_agreement *agreement, int64_t now_ns)
{
    int status = 0;

    for (const struct hvd_entry *entry = agreement->oldest; entry != NULL && status == 0;
         entry = entry->newer) {
        struct hvd_plan *plan;

        if (entry->is_agreed || entry->known == NULL || entry->known->planned == NULL ||
            !has_waited(agreement, entry, now_ns)) {
            continue;
        }
        plan = hvd_plan_of(agreement, entry->key.set);
        if (is_held_up(plan, entry->known->planned)) {
            status = hvd_plan_ask_break(agreement, plan, true);
        }
    }
    return status;
}

/* --- all stand still --- */

/* All of this rank's branches that have members have answered. */
static int answer(struct hvd_agreement *agreement, struct hvd_plan *plan)
{
    struct hvd_part part;

    if (!hvd_agreement_is_root(agreement)) {
        hvd_agreement_put_up(agreement, HVD_REPORT_FROZEN, 1, plan->epoch);
        hvd_put_int(&agreement->up, plan->set);
        put_lanes(&agreement->up, plan->least, plan->most);
        return 0;
    }
    part = hvd_part_begin(&agreement->down, &agreement->set_down, plan->set);
    hvd_put_record(part.writer, HVD_DECISION_RESUME, 1, plan->epoch);
    put_lanes(part.writer, plan->least, plan->most);
    hvd_part_end(&part);
    return part.writer->failed ? HVD_ERR_NOMEM : 0;
}

static int join_answer(struct hvd_agreement *agreement, struct hvd_plan *plan,
                       const uint64_t *least, const uint64_t *most)
{
    for (int i = 0; i < HVD_PLAN_LANES; i++) {
        plan->least[i] = least[i] < plan->least[i] ? least[i] : plan->least[i];
        plan->most[i] = most[i] > plan->most[i] ? most[i] : plan->most[i];
    }
    return ++plan->answered < plan->answers ? 0 : answer(agreement, plan);
}

/* Neither this rank nor one below it is in the set: it got the message because another on its node
 * is, and is not asked. */
static bool is_bystander(const struct hvd_agreement *agreement,
                         const struct hvd_plan *plan)
{
    return !plan->is_member && plan->answers == 1 && !hvd_agreement_is_root(agreement);
}

int hvd_plan_freeze(struct hvd_agreement *agreement, int set, uint64_t epoch)
{
    struct hvd_plan *plan = hvd_plan_of(agreement, set);
    uint64_t started[HVD_PLAN_LANES];

    if (plan == NULL || plan->epoch != epoch || !plan->is_active) {
        return set != HVD_SET_GLOBAL ? 0 : HVD_ERR_NET; /* the set is removed */
    }
    if (plan->is_frozen) {
        return HVD_ERR_NET;
    }
    plan->is_frozen = true;
    plan->answered = 0;
    if (plan->is_member) {
        agreement->ops->pause(agreement->context, set, true);
    }
    for (int i = 0; i < HVD_PLAN_LANES; i++) {
        started[i] = plan->lanes[i].started;
        plan->least[i] = UINT64_MAX; /* of a rank that is no member */
        plan->most[i] = 0;
    }
    if (is_bystander(agreement, plan)) {
        return 0;
    }
    return plan->is_member ? join_answer(agreement, plan, started, started)
                           : join_answer(agreement, plan, plan->least, plan->most);
}

int hvd_plan_take_frozen(struct hvd_agreement *agreement, const struct hvd_record *record,
                         struct hvd_reader *reader)
{
    struct hvd_plan *plan = take_plan(agreement, record, reader);
    uint64_t least[HVD_PLAN_LANES], most[HVD_PLAN_LANES];

    if (take_lanes(reader, least, most) != 0) {
        return HVD_ERR_NET;
    }
    return plan != NULL && plan->is_frozen ? join_answer(agreement, plan, least, most)
                                           : 0;
}

/* --- and go on --- */

/* Takes this rank's tensors back from a batch that not all ranks have started. */
static int take_back(struct hvd_agreement *agreement, struct hvd_batch *batch)
{
    for (int64_t i = 0; i < batch->header.count; i++) {
        struct hvd_entry *entry = batch->entries[i];
        struct hvd_entry *absent = hvd_entry_create_absent(&entry->proposal);

        if (absent == NULL) {
            return HVD_ERR_NOMEM;
        }
        absent->is_void = true;
        batch->entries[i] = absent;
        entry->is_agreed = false;
    }
    agreement->ops->make_void(agreement->context, batch);
    return 0;
}

static int start_void(struct hvd_agreement *agreement, const struct hvd_plan *plan,
                      struct hvd_plan_lane *lane)
{
    struct hvd_batch *batch =
        hvd_plan_make_batch(plan, lane->batches[lane->started % lane->count], true);

    if (batch == NULL) {
        return HVD_ERR_NOMEM;
    }
    batch->number = ++lane->started;
    lane->running = batch;
    hvd_plan_run(agreement, batch);
    return 0;
}

static int resume_lane(struct hvd_agreement *agreement, struct hvd_plan *plan, int number,
                       uint64_t least, uint64_t most)
{
    struct hvd_plan_lane *lane = &plan->lanes[number];

    if (least == most || !plan->is_member) {
        return 0;
    }
    if (most != least + 1) {
        return HVD_ERR_NET; /* no reduction ends before all have started it */
    }
    return lane->started == most ? take_back(agreement, lane->running)
                                 : start_void(agreement, plan, lane);
}

/* Reports what was kept for the plan. */
static int report_kept(struct hvd_agreement *agreement, const struct hvd_plan *plan,
                       int64_t now_ns)
{
    int status = 0;

    for (struct hvd_entry *entry = agreement->oldest; entry != NULL && status == 0;
         entry = entry->newer) {
        struct hvd_known *known = entry->known;

        if (entry->is_agreed || known == NULL || known->key.set != plan->set ||
            known->planned_at != plan->begun_at) {
            continue;
        }
        if (!hvd_proposal_equal(known->proposal, &entry->proposal)) {
            status = hvd_agreement_unbind(agreement, entry);
        }
        status = status != 0 ? status : hvd_agreement_report(agreement, entry, now_ns);
    }
    return status;
}

int hvd_plan_resume(struct hvd_agreement *agreement, int set,
                    const struct hvd_record *record, struct hvd_reader *reader,
                    int64_t now_ns)
{
    struct hvd_plan *plan = hvd_plan_of(agreement, set);
    uint64_t least[HVD_PLAN_LANES], most[HVD_PLAN_LANES];
    int status = 0;

    if (take_lanes(reader, least, most) != 0) {
        return HVD_ERR_NET;
    }
    if (plan == NULL || plan->epoch != record->id || !plan->is_frozen) {
        return set != HVD_SET_GLOBAL ? 0 : HVD_ERR_NET; /* the set is removed */
    }
    for (int i = 0; i < HVD_PLAN_LANES && status == 0; i++) {
        status = resume_lane(agreement, plan, i, least[i], most[i]);
    }
    hvd_plan_end(agreement, plan);
    status = status != 0 ? status : report_kept(agreement, plan, now_ns);
    status = status != 0 ? status : hvd_plan_release_held(agreement, plan, now_ns);
    if (status == 0 && set == HVD_SET_GLOBAL && agreement->is_join_deferred) {
        agreement->is_join_deferred = false;
        status = hvd_agreement_note_join(agreement, agreement->rank, now_ns);
    }
    return status;
}
