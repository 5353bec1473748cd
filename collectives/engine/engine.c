/* SPDX-License-Identifier: Apache-2.0 */
/* What moves: submissions, messages, batches, failures. */
#include "collectives/engine/engine.h"

#include <stdio.h>
#include <unistd.h>

#include "collectives/engine/engine_state.h"
#include "collectives/transport/shm/shm_reach.h"
#include "gpu_binding/base/clock.h"

const int64_t hvd_engine_word_ns = 300000000;

/* While data moves, new submissions and what other ranks say wait so long. */
static const int64_t talk_every_ns = 20000;

/* While batches run, and on one node, where messages go through its memory, the control
 * sockets (a system call) are looked at this seldom. */
static const int64_t control_every_ns = 50000;

void hvd_engine_end_entry(struct hvd_engine *engine, struct hvd_entry *entry, int status,
                          const char *text)
{
    hvd_timeline_ended(engine->timeline, entry, status);
    if (status == 0 && entry->done != NULL) {
        hvd_engine_launch_entry(engine, entry);
    } else {
        hvd_engine_land_entry(engine, entry, status, text);
    }
}

static void drop_batches(struct hvd_engine *engine)
{
    const bool leaks = engine->leaks;
    struct hvd_batch *batch;

    while (engine->teams != NULL &&
           (batch = hvd_teams_take_batch(engine->teams, leaks)) != NULL) {
        for (int64_t i = 0; leaks && i < batch->header.count; i++) {
            batch->entries[i]->result = NULL;
        }
        hvd_batch_destroy(batch);
    }
}

void hvd_engine_refuse(struct hvd_engine *engine, int status, const char *text)
{
    pthread_mutex_lock(&engine->mail);
    if (engine->refusal.status == 0) {
        hvd_fail(&engine->refusal, status, "%s", text);
    }
    pthread_mutex_unlock(&engine->mail);
}

void hvd_engine_fail(struct hvd_engine *engine, int culprit, int status, const char *text)
{
    struct hvd_error failure;

    if (engine->has_failed) {
        return;
    }
    engine->has_failed = true;
    hvd_fail(&failure, status, "%s", text); /* text may belong to what ends below */
    hvd_engine_refuse(engine, status, failure.text);
    hvd_control_abort(engine->control, culprit, failure.text);
    /* Tensors go back to their owners. */
    engine->leaks = engine->shm != NULL && !hvd_shm_hide(engine->shm);
    hvd_gpu_fail(engine->gpu, hvd_engine_land_entry, engine, status, failure.text);
    /* The run itself stays until the net is gone, which may still know its messages. */
    drop_batches(engine);
    if (engine->report != NULL) {
        hvd_lateness_report_write(engine->report);
    }
    hvd_agree_drop(engine, true, status, failure.text);
}

void hvd_engine_on_event(void *context, const struct hvd_uplink_event *event)
{
    struct hvd_engine *engine = context;

    if (event->kind == HVD_UPLINK_ABORT) {
        hvd_engine_fail(engine, event->rank, HVD_ERR_PEER, event->text);
        return;
    }
    switch (event->type) {
    case HVD_MESSAGE_REPORTS:
        hvd_agree_reports(engine, event->from + 1, event->payload, event->bytes);
        break;
    case HVD_MESSAGE_DECISIONS:
        hvd_agree_decisions(engine, event->payload, event->bytes);
        break;
    case HVD_MESSAGE_SHUTDOWN:
        hvd_leave_on_shutdown(engine, event->from == HVD_UPLINK_PARENT);
        break;
    case HVD_MESSAGE_DRAINED:
        engine->drained_children++;
        break;
    case HVD_MESSAGE_CLOSE:
        hvd_leave_on_close(engine);
        break;
    case HVD_MESSAGE_ADDRESS:
        hvd_addresses_on_one(engine, event->payload, event->bytes);
        break;
    case HVD_MESSAGE_ADDRESSES:
        hvd_addresses_on_all(engine, event->payload, event->bytes);
        break;
    case HVD_MESSAGE_LATENESS:
        if (engine->report != NULL) {
            hvd_lateness_report_merge(engine->report, event->payload, event->bytes);
        }
        break;
    default:
        hvd_timeline_on_message(engine->timeline, event);
        break;
    }
}

/* A rank that cannot go on must not leave the others waiting: the job ends. */
bool hvd_engine_run_batches(struct hvd_engine *engine)
{
    bool moved = false;
    int status;

    if (hvd_engine_blames_at(engine) >= 0) {
        return false; /* they would fail, and for a lesser reason */
    }
    status = hvd_teams_progress(engine->teams, hvd_agree_finish, engine, &moved);
    if (status != 0) {
        hvd_engine_fail(engine, engine->boot->rank, status,
                        hvd_teams_failure(engine->teams)->text);
        return true;
    }
    return moved;
}

int64_t hvd_engine_blames_at(const struct hvd_engine *engine)
{
    bool is_over = engine->has_failed || engine->phase == HVD_PHASE_CLOSED;

    return engine->lost_ns == 0 || is_over ? -1 : engine->lost_ns + hvd_engine_word_ns;
}

static void blame_net_peer(struct hvd_engine *engine, int peer, const char *reason)
{
    char text[512];

    hvd_uplink_progress_sockets(engine->uplink, hvd_engine_on_event, engine);
    snprintf(text, sizeof(text),
             "rank %d on %s died or cannot be reached any more (UCX: %s)", peer,
             engine->boot->peers[peer].host, reason);
    hvd_engine_fail(engine, peer, HVD_ERR_PEER, text);
}

static bool progress_net(struct hvd_engine *engine)
{
    bool moved = hvd_net_progress(engine->net) > 0;
    const char *reason;
    int peer = hvd_net_failed_peer(engine->net, &reason);

    if (peer >= 0 && engine->lost_ns == 0) {
        engine->lost_ns = hvd_clock_ns();
    }
    if (hvd_engine_blames_at(engine) >= 0 &&
        hvd_clock_ns() >= hvd_engine_blames_at(engine)) {
        blame_net_peer(engine, peer, reason);
        return true;
    }
    return moved;
}

static bool progress_messages(struct hvd_engine *engine, int64_t now_ns)
{
    int handled = hvd_uplink_progress_node(engine->uplink, hvd_engine_on_event, engine);

    if (engine->net == NULL || !hvd_teams_are_idle(engine->teams)) {
        if (now_ns - engine->control_seen_ns < control_every_ns) {
            return handled != 0;
        }
        engine->control_seen_ns = now_ns;
    }
    handled |= hvd_uplink_progress_sockets(engine->uplink, hvd_engine_on_event, engine);
    if (handled < 0) {
        hvd_engine_fail(engine, engine->boot->rank, HVD_ERR_NOMEM,
                        "no memory for messages");
    }
    return handled != 0;
}

/* What is said: messages, submissions, decisions. */
static bool progress_talk(struct hvd_engine *engine, int64_t now_ns)
{
    bool moved = progress_messages(engine, now_ns);

    engine->heard_ns = now_ns;
    return hvd_agree_progress(engine, now_ns) || moved;
}

/* What is moved. */
static bool progress_data(struct hvd_engine *engine)
{
    bool moved = engine->net != NULL && progress_net(engine);

    moved |= engine->gpu != NULL && hvd_engine_progress_gpu(engine);
    return hvd_engine_run_batches(engine) || moved;
}

/* Once all ranks of the node have said which cpus they may use, which may be after the
 * first call. */
static void see_crowd(struct hvd_engine *engine)
{
    uint32_t crowd;

    if (engine->knows_crowd ||
        !hvd_crowd_has_all(engine->board, engine->peer_bell_count)) {
        return;
    }
    crowd = hvd_crowd_on(engine->board, &engine->cpus);
    engine->is_crowded = crowd > HVD_CROWD_ONE;
    engine->thread_is_crowded = 2 * crowd > HVD_CROWD_ONE;
    engine->knows_crowd = true;
}

bool hvd_engine_progress(struct hvd_engine *engine)
{
    int64_t now_ns = hvd_clock_ns();
    bool is_busy = engine->data_moves && now_ns - engine->heard_ns < talk_every_ns;
    bool moved = !is_busy && progress_talk(engine, now_ns);

    see_crowd(engine);
    engine->data_moves = progress_data(engine);
    hvd_leave_progress(engine);
    hvd_timeline_progress(engine->timeline);
    return engine->data_moves || moved;
}

/* The progress thread may see it much later: a late rank's cpu is often busy. */
static void stamp(struct hvd_request *request)
{
    int64_t now_ns = hvd_clock_ns();

    for (int i = 0; i < request->count; i++) {
        request->entries[i].submitted_ns = now_ns;
    }
}

int hvd_engine_submit(struct hvd_engine *engine, struct hvd_request *request,
                      struct hvd_error *err)
{
    int status;

    if (engine->report != NULL) {
        stamp(request);
    }
    pthread_mutex_lock(&engine->mail);
    if (engine->refusal.status != 0) {
        status = hvd_fail(err, engine->refusal.status, "%s", engine->refusal.text);
    } else {
        status = hvd_agree_register(engine, request, err);
    }
    pthread_mutex_unlock(&engine->mail);
    /* Only one of many needs to ring, until the driver has woken. */
    if (status == 0 && atomic_load(&engine->asleep) &&
        atomic_exchange(&engine->asleep, false)) {
        hvd_engine_ring(engine->wake);
        atomic_store(&engine->was_rung,
                     true); /* after: who sees it finds something to drain */
    }
    return status;
}

int64_t hvd_engine_count(struct hvd_engine *engine, int set, enum hvd_count what)
{
    int64_t number;

    pthread_mutex_lock(&engine->mail);
    number = hvd_sets_count(&engine->sets, set, what);
    pthread_mutex_unlock(&engine->mail);
    return number;
}

int hvd_engine_with_set(struct hvd_engine *engine, int set, hvd_set_reader *reader,
                        void *context)
{
    const struct hvd_set *found;
    int result;

    pthread_mutex_lock(&engine->mail);
    found = hvd_sets_find(&engine->sets, set);
    result = found != NULL ? reader(context, found) : HVD_ERR_ARG;
    pthread_mutex_unlock(&engine->mail);
    return result;
}

int hvd_engine_sets(struct hvd_engine *engine, int *ids)
{
    int count;

    pthread_mutex_lock(&engine->mail);
    count = engine->sets.count;
    for (int i = 0; ids != NULL && i < count; i++) {
        ids[i] = engine->sets.sets[i].id;
    }
    pthread_mutex_unlock(&engine->mail);
    return count;
}

const struct hvd_boot *hvd_engine_boot(const struct hvd_engine *engine)
{
    return engine->boot;
}
