/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a plan: all stop at the same batch, what is in limbo is agreed upon after all. */
#include <string.h>

#include "collectives/agreement/agreement_state.h"

static void put_lanes(struct hvd_writer *writer, const uint64_t *least,
                      const uint64_t *most)
{
    hvd_put(writer, least, HVD_PLAN_LANES * sizeof(least[0]));
    hvd_put(writer, most, HVD_PLAN_LANES * sizeof(most[0]));
}

int hvd_take_lanes(struct hvd_reader *reader, uint64_t *least, uint64_t *most)
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

int hvd_plan_put_break(struct hvd_agreement *agreement)
{
    struct hvd_plan *plan = &agreement->plan;

    if (plan->is_active && !plan->is_breaking) {
        plan->is_breaking = true;
        agreement->counts.breaks++;
        hvd_put_record(&agreement->down, HVD_DECISION_BREAK, 1, plan->epoch);
    }
    return agreement->down.failed ? HVD_ERR_NOMEM : 0;
}

int hvd_plan_take_break(struct hvd_agreement *agreement, uint64_t epoch, bool was_wrong)
{
    struct hvd_plan *plan = &agreement->plan;

    if (!plan->is_active || plan->epoch != epoch || plan->is_breaking ||
        plan->is_frozen || plan->wants_break) {
        return 0; /* it has ended meanwhile, or is about to, or has been asked to */
    }
    plan->wants_break = true;
    if (!hvd_agreement_is_root(agreement)) {
        hvd_agreement_put_up(agreement, HVD_REPORT_BREAK, was_wrong ? 1 : 0, epoch);
        return 0;
    }
    if (was_wrong) {
        hvd_forecast_was_wrong(&agreement->forecast);
    }
    return hvd_plan_put_break(agreement);
}

int hvd_plan_ask_break(struct hvd_agreement *agreement, bool was_wrong)
{
    return hvd_plan_take_break(agreement, agreement->plan.epoch, was_wrong);
}

/* Whether the tensor's batch cannot start because this rank has not submitted something. */
static bool is_held_up(const struct hvd_plan *plan, const struct hvd_plan_batch *planned)
{
    const struct hvd_plan_lane *lane = &plan->lanes[planned->lane];

    return planned->missing > 0 ||
           (lane->running == NULL &&
            lane->batches[lane->started % lane->count]->missing > 0);
}

int hvd_plan_look(struct hvd_agreement *agreement, int64_t now_ns)
{
    static const int64_t patience_ns = 5000000;
    static const int64_t most_patience_ns = 1000000000; /* nobody asks for it here */

    for (const struct hvd_entry *entry = agreement->oldest; entry != NULL;
         entry = entry->newer) {
        bool is_asked_for = atomic_load(&entry->request->is_asked_for);

        if (!entry->is_agreed && entry->known != NULL && entry->known->planned != NULL &&
            now_ns - entry->submitted_ns >
                (is_asked_for ? patience_ns : most_patience_ns) &&
            is_held_up(&agreement->plan, entry->known->planned)) {
            return hvd_plan_ask_break(agreement, true);
        }
    }
    return 0;
}

/* --- all stand still --- */

int hvd_plan_freeze(struct hvd_agreement *agreement)
{
    struct hvd_plan *plan = &agreement->plan;
    uint64_t started[HVD_PLAN_LANES];

    if (!plan->is_active || plan->is_frozen) {
        return HVD_ERR_NET;
    }
    plan->is_frozen = true;
    agreement->ops->pause(agreement->context, HVD_SET_GLOBAL, true);
    plan->frozen_branches = 0;
    for (int i = 0; i < HVD_PLAN_LANES; i++) {
        started[i] = plan->lanes[i].started;
        plan->least[i] = started[i];
        plan->most[i] = started[i];
    }
    return hvd_plan_frozen(agreement, started, started);
}

int hvd_plan_frozen(struct hvd_agreement *agreement, const uint64_t *least,
                    const uint64_t *most)
{
    struct hvd_plan *plan = &agreement->plan;

    for (int i = 0; i < HVD_PLAN_LANES; i++) {
        plan->least[i] = least[i] < plan->least[i] ? least[i] : plan->least[i];
        plan->most[i] = most[i] > plan->most[i] ? most[i] : plan->most[i];
    }
    if (++plan->frozen_branches < agreement->members.branches) {
        return 0;
    }
    if (hvd_agreement_is_root(agreement)) {
        hvd_put_record(&agreement->down, HVD_DECISION_RESUME, 1, plan->epoch);
        put_lanes(&agreement->down, plan->least, plan->most);
        return agreement->down.failed ? HVD_ERR_NOMEM : 0;
    }
    hvd_agreement_put_up(agreement, HVD_REPORT_FROZEN, 1, plan->epoch);
    put_lanes(&agreement->up, plan->least, plan->most);
    return 0;
}

/* --- and go on --- */

static void unplan(struct hvd_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        for (size_t j = 0; j < plan->batches[i].count; j++) {
            plan->batches[i].tensors[j].known->planned = NULL;
        }
    }
}

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

static int start_void(struct hvd_agreement *agreement, struct hvd_plan_lane *lane)
{
    struct hvd_batch *batch =
        hvd_plan_make_batch(lane->batches[lane->started % lane->count], true);

    if (batch == NULL) {
        return HVD_ERR_NOMEM;
    }
    batch->number = ++lane->started;
    lane->running = batch;
    agreement->ops->run(agreement->context, batch);
    return 0;
}

static int resume_lane(struct hvd_agreement *agreement, struct hvd_plan_lane *lane,
                       uint64_t least, uint64_t most)
{
    if (least == most) {
        return 0;
    }
    if (most != least + 1) {
        return HVD_ERR_NET; /* no reduction ends before all have started it */
    }
    return lane->started == most ? take_back(agreement, lane->running)
                                 : start_void(agreement, lane);
}

/* Reports what was kept for the plan. */
static int report_kept(struct hvd_agreement *agreement, int64_t now_ns)
{
    int status = 0;

    for (struct hvd_entry *entry = agreement->oldest; entry != NULL && status == 0;
         entry = entry->newer) {
        struct hvd_known *known = entry->known;

        if (entry->is_agreed || known == NULL ||
            known->planned_at != agreement->plan.begun_at) {
            continue;
        }
        if (!hvd_proposal_equal(known->proposal, &entry->proposal)) {
            status = hvd_agreement_unbind(agreement, entry);
        }
        status = status != 0 ? status : hvd_agreement_report(agreement, entry, now_ns);
    }
    return status;
}

int hvd_plan_resume(struct hvd_agreement *agreement, struct hvd_reader *reader,
                    int64_t now_ns)
{
    struct hvd_plan *plan = &agreement->plan;
    uint64_t least[HVD_PLAN_LANES], most[HVD_PLAN_LANES];
    int status = 0;

    if (hvd_take_lanes(reader, least, most) != 0 || !plan->is_frozen) {
        return HVD_ERR_NET;
    }
    plan->is_active = false;
    plan->is_frozen = false;
    plan->is_breaking = false;
    for (int i = 0; i < HVD_PLAN_LANES && status == 0; i++) {
        status = resume_lane(agreement, &plan->lanes[i], least[i], most[i]);
    }
    unplan(plan);
    agreement->ops->pause(agreement->context, HVD_SET_GLOBAL, false);
    status = status != 0 ? status : report_kept(agreement, now_ns);
    if (status == 0 && agreement->is_join_deferred) {
        agreement->is_join_deferred = false;
        status = hvd_agreement_note_join(agreement, agreement->rank, now_ns);
    }
    return status;
}
