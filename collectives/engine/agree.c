/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's side of the agreement: submissions go in, batches and ends come out. */
#include <inttypes.h>

#include "collectives/engine/engine_state.h"
#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/log.h"

static const char duplicate_text[] = "Requested to allreduce, allgather, or broadcast a "
                                     "tensor with the same name as another "
                                     "tensor that is currently being processed.  If you "
                                     "want to request another tensor, use a "
                                     "different tensor name.";

static const char strange_text[] =
    "a message of another rank cannot be understood: do all nodes have the same version "
    "of hvd?";

static bool entry_has_key(const void *item, const void *key)
{
    const struct hvd_entry *entry = item;

    return hvd_key_equal(&entry->key, key);
}

/* --- submissions --- */

static void unregister(struct hvd_engine *engine, struct hvd_entry *entry)
{
    hvd_table_remove(&engine->in_flight, entry->key.hash, entry_has_key, &entry->key);
}

static int register_entry(struct hvd_engine *engine, struct hvd_entry *entry,
                          struct hvd_error *err)
{
    entry->key = hvd_key_make(entry->proposal.set, entry->proposal.name);
    if (hvd_table_find(&engine->in_flight, entry->key.hash, entry_has_key, &entry->key) !=
        NULL) {
        return hvd_fail(err, HVD_ERR_ARG, "%s", duplicate_text);
    }
    return hvd_table_add(&engine->in_flight, entry->key.hash, entry) == 0
               ? 0
               : hvd_fail(err, HVD_ERR_NOMEM, "no memory for tensor %s",
                          entry->proposal.name);
}

int hvd_agree_register(struct hvd_engine *engine, struct hvd_request *request,
                       struct hvd_error *err)
{
    for (int i = 0; i < request->count; i++) {
        int status = register_entry(engine, &request->entries[i], err);

        if (status != 0) {
            while (i-- > 0) {
                unregister(engine, &request->entries[i]);
            }
            return status;
        }
    }
    for (int i = 0; i < request->count; i++) {
        *engine->fresh_end = &request->entries[i];
        engine->fresh_end = &request->entries[i].next;
    }
    return 0;
}

static struct hvd_entry *take_fresh(struct hvd_engine *engine)
{
    struct hvd_entry *first;

    pthread_mutex_lock(&engine->mail);
    first = engine->fresh;
    engine->fresh = NULL;
    engine->fresh_end = &engine->fresh;
    pthread_mutex_unlock(&engine->mail);
    return first;
}

/* The agreement's functions fail for want of memory, for what no rank can have said, or because a
 * message is too long or a process set's team cannot be opened; these have left their reason. */
static void check(struct hvd_engine *engine, int status)
{
    if (status != 0) {
        const char *text = engine->agree_failure.status != 0 ? engine->agree_failure.text
                           : status == HVD_ERR_NOMEM         ? "no memory for messages"
                                                             : strange_text;

        hvd_engine_fail(engine, engine->boot->rank, status, text);
    }
}

bool hvd_agree_submit(struct hvd_engine *engine)
{
    struct hvd_entry *entry = take_fresh(engine);
    int64_t now_ns;

    if (entry == NULL) {
        return false;
    }
    now_ns = hvd_clock_ns();
    atomic_store(&engine->fresh_ns, now_ns);
    atomic_store(&engine->cycle_ns, hvd_agreement_fusion(engine->agreement)->cycle_ns);
    engine->proposing = entry;
    while (engine->proposing != NULL) {
        entry = engine->proposing;
        engine->proposing = entry->next; /* it may end at once */
        hvd_timeline_proposed(engine->timeline, entry);
        check(engine, hvd_agreement_submit(engine->agreement, entry, now_ns));
    }
    return true;
}

/* --- what the agreement does --- */

/* Lists of tensors are sent in parts; one tensor must fit. */
static int check_sent(struct hvd_engine *engine, int status, size_t bytes)
{
    return status == HVD_ERR_ARG
               ? hvd_fail(&engine->agree_failure, HVD_ERR_ARG,
                          "a message about a tensor has %zu bytes, at most %zu can be "
                          "sent: give tensors shorter names",
                          bytes, HVD_UPLINK_MOST_BYTES)
               : status;
}

static int send_up(void *context, const void *payload, size_t bytes)
{
    struct hvd_engine *engine = context;
    int status = hvd_uplink_send_up(engine->uplink, HVD_MESSAGE_REPORTS, payload, bytes);

    return check_sent(engine, status, bytes);
}

static int send_down(void *context, int child, const void *payload, size_t bytes)
{
    struct hvd_engine *engine = context;
    int status =
        child == HVD_AGREEMENT_NODE
            ? hvd_uplink_send_node(engine->uplink, HVD_MESSAGE_DECISIONS, payload, bytes)
            : hvd_uplink_send_child(engine->uplink, child, HVD_MESSAGE_DECISIONS, payload,
                                    bytes);

    return check_sent(engine, status, bytes);
}

static void decided(void *context)
{
    struct hvd_engine *engine = context;

    hvd_timeline_cycle(engine->timeline);
}

static void run(void *context, struct hvd_batch *batch)
{
    struct hvd_engine *engine = context;

    hvd_timeline_agreed(engine->timeline, batch);
    hvd_teams_submit(engine->teams, batch);
}

static void pause_set(void *context, int set, bool is_paused)
{
    struct hvd_engine *engine = context;

    hvd_teams_pause(engine->teams, set, is_paused);
}

static void make_void(void *context, struct hvd_batch *batch)
{
    struct hvd_engine *engine = context;

    hvd_teams_make_void(engine->teams, batch);
}

static void end_entry(void *context, struct hvd_entry *entry, int status,
                      const char *text)
{
    struct hvd_engine *engine = context;

    pthread_mutex_lock(&engine->mail);
    unregister(engine, entry);
    if (entry->proposal.kind == HVD_KIND_JOIN) {
        hvd_sets_recount(&engine->sets);
    }
    pthread_mutex_unlock(&engine->mail);
    hvd_engine_end_entry(engine, entry, status, text);
}

static int add_set(void *context, int set, const int *ranks, int count)
{
    struct hvd_engine *engine = context;
    int status = hvd_teams_add(engine->teams, set, ranks, count, &engine->agree_failure);

    if (status != 0) {
        return status;
    }
    pthread_mutex_lock(&engine->mail);
    status = hvd_sets_add(&engine->sets, set, ranks, count);
    pthread_mutex_unlock(&engine->mail);
    return status;
}

static void remove_set(void *context, int set)
{
    struct hvd_engine *engine = context;

    pthread_mutex_lock(&engine->mail);
    hvd_sets_remove(&engine->sets, set);
    pthread_mutex_unlock(&engine->mail);
    hvd_teams_remove(engine->teams, set);
}

/* Of a branch those that have joined have nothing: the others spoke. What rank 0 will not have
 * is not shown. */
static void heard(void *context, const struct hvd_proposal *proposal, int branch)
{
    struct hvd_engine *engine = context;
    const struct hvd_members *members = hvd_agreement_members(engine->agreement);
    const struct hvd_member_set *set = hvd_members_find(members, proposal->set);

    if (!hvd_timeline_wants_marks(engine->timeline) || set == NULL || !set->is_member ||
        members->has_joined[members->rank]) {
        return;
    }
    for (int i = 0; i < set->count; i++) {
        int rank = set->ranks[i];

        if (members->branch_of[rank] == branch && !members->has_joined[rank]) {
            hvd_timeline_ready(engine->timeline, proposal, rank);
        }
    }
}

static void give_up(void *context, const char *text)
{
    struct hvd_engine *engine = context;

    (void)text; /* it has been logged; all ranks get Horovod's words for a shutdown */
    engine->wants_shutdown = true;
}

static const struct hvd_agreement_ops ops = {
    .send_up = send_up,
    .send_down = send_down,
    .decided = decided,
    .run = run,
    .pause = pause_set,
    .make_void = make_void,
    .end = end_entry,
    .add_set = add_set,
    .remove_set = remove_set,
    .heard = heard,
    .give_up = give_up,
};

static int add_global_set(struct hvd_engine *engine)
{
    const struct hvd_members *members = hvd_agreement_members(engine->agreement);
    const struct hvd_member_set *global = hvd_members_find(members, HVD_SET_GLOBAL);

    return hvd_sets_add(&engine->sets, HVD_SET_GLOBAL, global->ranks, global->count);
}

int hvd_agree_create(struct hvd_engine *engine, struct hvd_error *err)
{
    const struct hvd_settings *set = &engine->settings;
    const struct hvd_agreement_settings settings = {
        .fusion =
            {
                .threshold = set->fusion_threshold,
                .groups_alone = set->disable_group_fusion,
                .capacity = set->cache_capacity,
                .cycle_ns = (int64_t)(set->cycle_time_ms * 1e6),
            },
        .may_plan = true,
        .stall_warning_ns =
            set->stall_check_disable ? 0 : (int64_t)(set->stall_warning_s * 1e9),
        .stall_shutdown_ns = (int64_t)(set->stall_shutdown_s * 1e9),
    };
    int status = hvd_agreement_create(&engine->boot->layout, engine->boot->rank,
                                      &settings, &ops, engine, &engine->agreement, err);

    if (status == 0 && add_global_set(engine) != 0) {
        status = hvd_fail(err, HVD_ERR_NOMEM, "no memory for the process sets");
    }
    return status;
}

/* --- what moves it --- */

/* After a failure, and once all leave, nothing more is agreed. */
static bool is_over(const struct hvd_engine *engine)
{
    return engine->has_failed || engine->phase != HVD_PHASE_RUNNING ||
           engine->agreement == NULL;
}

void hvd_agree_reports(struct hvd_engine *engine, int branch, const void *payload,
                       size_t bytes)
{
    if (!is_over(engine)) {
        check(engine, hvd_agreement_from_below(engine->agreement, branch, payload, bytes,
                                               hvd_clock_ns()));
    }
}

void hvd_agree_decisions(struct hvd_engine *engine, const void *payload, size_t bytes)
{
    if (!is_over(engine)) {
        check(engine, hvd_agreement_from_above(engine->agreement, payload, bytes,
                                               hvd_clock_ns()));
    }
}

bool hvd_agree_progress(struct hvd_engine *engine, int64_t now_ns)
{
    bool moved = hvd_agree_submit(engine);

    if (!is_over(engine)) {
        check(engine,
              hvd_agreement_progress(engine->agreement, atomic_load(&engine->waiters) > 0,
                                     now_ns, &moved));
    }
    return moved;
}

/* Nobody's tensors are in it: a joined rank has no part in what is planned. */
static bool is_void(const struct hvd_batch *batch)
{
    return batch->number != 0 && batch->entries[0]->is_absent;
}

/* What this rank puts into the batch. */
static int64_t input_bytes(const struct hvd_batch *batch)
{
    int64_t bytes = 0;

    for (int64_t i = 0; batch->header.kind != HVD_KIND_BARRIER && i < batch->header.count;
         i++) {
        const struct hvd_entry *entry = batch->entries[i];

        bytes += entry->is_absent ? 0 : hvd_proposal_bytes(&entry->proposal);
    }
    return bytes;
}

static void note_lateness(struct hvd_engine *engine, const struct hvd_batch *batch)
{
    const struct hvd_lateness_batch note = {
        .kind = batch->header.kind,
        .lane = batch->header.set == HVD_SET_GLOBAL ? (int)batch->header.lane : -1,
        .tensors = batch->header.count,
        .bytes = input_bytes(batch),
        .submitted_ns = batch->submitted_ns,
        .started_ns = batch->started_ns,
        .ended_ns = hvd_clock_ns(),
    };

    hvd_lateness_report_note(engine->report, &note);
}

void hvd_agree_finish(void *context, struct hvd_batch *batch)
{
    struct hvd_engine *engine = context;
    int status;

    if (engine->report != NULL && !is_void(batch)) {
        note_lateness(engine, batch);
    }
    status = hvd_tuning_note(engine, batch);
    if (status != 0) {
        hvd_batch_destroy(batch); /* its entries end with all others */
    } else {
        status = hvd_agreement_finish(engine->agreement, batch);
    }
    check(engine, status);
}

static void end_list(struct hvd_engine *engine, struct hvd_entry *entry, int status,
                     const char *text)
{
    while (entry != NULL) {
        struct hvd_entry *next = entry->next;

        end_entry(engine, entry, status, text);
        entry = next;
    }
}

void hvd_agree_drop(struct hvd_engine *engine, bool all, int status, const char *text)
{
    struct hvd_entry *rest = engine->proposing;

    /* Those that the agreement has not seen yet are under way too. */
    if (engine->agreement != NULL) {
        engine->proposing = NULL;
        end_list(engine, rest, status, text);
        end_list(engine, take_fresh(engine), status, text);
        hvd_agreement_drop(engine->agreement, all, status, text);
    }
}

void hvd_agree_destroy(struct hvd_engine *engine)
{
    struct hvd_agreement_counts counts;

    if (engine->agreement == NULL) {
        return;
    }
    hvd_agreement_count(engine->agreement, &counts);
    hvd_log(HVD_LOG_DEBUG,
            "batches: %" PRIu64 " planned, %" PRIu64 " agreed upon; plans: %" PRIu64
            ", of which %" PRIu64 " were broken; messages: %" PRIu64 " sent, %" PRIu64
            " received",
            counts.planned, counts.decided, counts.plans, counts.breaks,
            counts.messages_up + counts.messages_down, counts.received);
    hvd_agreement_destroy(engine->agreement);
}
