/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's side of messages. */
#include "collectives/core/p2p_source.h"

#include "collectives/core/completion.h"
#include "collectives/core/engine_state.h"
#include "collectives/gpu/gpu_runtime.h"
#include "collectives/p2p/net_link.h"
#include "collectives/p2p/p2p.h"
#include "collectives/trace/timeline.h"
#include "collectives/transport/net/net.h"
#include "collectives/transport/shm/mail.h"
#include "gpu_binding/base/clock.h"
#include "pmix_boot/boot.h"

static void on_end(void *context, struct hvd_entry *entry, int status, const char *text)
{
    struct hvd_engine *engine = context;
    struct hvd_error err = {0};

    hvd_timeline_p2p_ended(engine->timeline, entry, status);
    if (status == 0 && hvd_gpu_p2p_must_return(entry)) {
        status = hvd_gpu_p2p_return(&engine->messaging.copies, entry, &err);
        if (status == 0) {
            return; /* progress_copies launches it */
        }
        text = err.text;
    }
    hvd_completion_finish(engine, entry, status, text);
}

static bool settled(void *context)
{
    const struct hvd_engine *engine = context;

    return !hvd_gpu_p2p_are_returning(&engine->messaging.copies) &&
           hvd_gpu_is_idle(engine->gpu);
}

/* --- opening --- */

static void end_job(struct hvd_engine *engine, const struct hvd_error *failure)
{
    hvd_failure_end_job(engine, engine->boot->rank, failure->status, failure->text);
}

/* Without memory the job ends, and drop_p2p ends what was to be sent. */
static int open_p2p(struct hvd_engine *engine)
{
    const int64_t warning_s =
        engine->settings.stall_check_disable ? 0 : engine->settings.stall_warning_s;
    const struct hvd_p2p_config config = {
        .boot = engine->boot,
        .net = engine->net,
        .shm = engine->shm,
        .mail = engine->mail,
        .ended = on_end,
        .sets = &engine->sets,
        .settled = settled,
        .context = engine,
        .warning_ns = warning_s * 1000000000,
    };
    struct hvd_messaging *messaging = &engine->messaging;
    struct hvd_error failure = {0};
    int status;

    if (messaging->p2p != NULL || messaging->is_over) {
        return 0;
    }
    status = hvd_p2p_create(&config, &messaging->p2p, &failure);
    if (status != 0) {
        end_job(engine, &failure);
        return status;
    }
    hvd_loop_open_gate(&engine->loop, hvd_submissions_message_gate(&engine->submissions));
    return 0;
}

/* The net calls this for each message of a rank until its link is open, or until the end. */
static void on_caller(void *context, int rank)
{
    struct hvd_engine *engine = context;

    if (open_p2p(engine) == 0 && engine->messaging.p2p != NULL) {
        hvd_p2p_note_caller(engine->messaging.p2p, rank);
    }
}

void hvd_messaging_look(struct hvd_engine *engine)
{
    if (engine->messaging.p2p == NULL && hvd_mail_has_come(engine->mail, HVD_MAIL_P2P)) {
        open_p2p(engine);
    }
}

/* --- progress --- */

static void start_message(struct hvd_engine *engine, struct hvd_entry *entry,
                          int64_t now_ns)
{
    struct hvd_messaging *messaging = &engine->messaging;
    struct hvd_error err = {0};
    int status;

    hvd_timeline_p2p_started(engine->timeline, entry);
    if (!hvd_gpu_p2p_must_hold(&messaging->copies, entry)) {
        hvd_p2p_start(messaging->p2p, entry, now_ns);
        return;
    }
    status = hvd_gpu_p2p_hold(&messaging->copies, entry, &err);
    if (status != 0) {
        hvd_completion_finish(engine, entry, status, err.text);
    }
}

bool hvd_messaging_start(struct hvd_engine *engine)
{
    const bool is_some = hvd_submissions_has_p2p(&engine->submissions);
    const int64_t now_ns = is_some ? hvd_clock_ns() : 0;
    struct hvd_entry *entry;

    if (!is_some || engine->messaging.is_over || open_p2p(engine) != 0) {
        return is_some;
    }
    hvd_progress_note_p2p(&engine->progress, now_ns);
    entry = hvd_submissions_take_p2p(&engine->submissions);
    while (entry != NULL) {
        struct hvd_entry *next = entry->next; /* it may have ended, and be gone */

        start_message(engine, entry, now_ns);
        entry = next;
    }
    return is_some;
}

static unsigned progress_p2p(void *self, int64_t now_ns)
{
    struct hvd_engine *engine = self;
    bool moved = hvd_messaging_start(engine);
    struct hvd_p2p *p2p = engine->messaging.p2p;

    if (p2p == NULL) {
        return moved ? HVD_SOURCE_MOVED : 0;
    }
    moved |= hvd_p2p_progress(p2p);
    if (hvd_p2p_are_pending(p2p)) {
        hvd_p2p_warn(p2p, now_ns);
    }
    if (hvd_p2p_failure(p2p)->status != 0) {
        end_job(engine, hvd_p2p_failure(p2p));
    }
    return (moved ? HVD_SOURCE_MOVED : 0) |
           (hvd_p2p_are_moving(p2p) ? HVD_SOURCE_WORKS : 0);
}

static bool settle_p2p(void *self, const struct hvd_timed_wait *wait)
{
    const struct hvd_engine *engine = self;
    const struct hvd_messaging *messaging = &engine->messaging;
    const bool is_some = hvd_submissions_has_p2p(&engine->submissions);

    if (messaging->p2p == NULL) {
        return !is_some &&
               (messaging->is_over || !hvd_mail_has_come(engine->mail, HVD_MAIL_P2P));
    }
    hvd_p2p_suppress_wakeups(messaging->p2p,
                             wait->is_for_p2p && !hvd_p2p_are_moving(messaging->p2p));
    return !is_some && !hvd_p2p_have_news(messaging->p2p);
}

bool hvd_messaging_has_pending(const struct hvd_engine *engine)
{
    const struct hvd_p2p *p2p = engine->messaging.p2p;

    return hvd_submissions_has_p2p(&engine->submissions) ||
           (p2p != NULL &&
            (hvd_p2p_are_pending(p2p) || hvd_messaging_is_copying(engine)));
}

int hvd_messaging_progress_copies(struct hvd_engine *engine, bool *moved,
                                  struct hvd_error *err)
{
    struct hvd_messaging *messaging = &engine->messaging;
    struct hvd_entry *entry;
    int status;

    while ((status = hvd_gpu_p2p_next_held(&messaging->copies, &entry, err)) == 0) {
        hvd_p2p_start(messaging->p2p, entry, hvd_clock_ns());
        *moved = true;
    }
    if (status < 0) {
        return status;
    }
    while ((status = hvd_gpu_p2p_next_returned(&messaging->copies, &entry, err)) == 0) {
        hvd_completion_launch(engine, entry);
        *moved = true;
    }
    if (status < 0) {
        return status;
    }
    if (messaging->wants_flush && !hvd_gpu_p2p_are_held(&messaging->copies)) {
        messaging->wants_flush = false;
        hvd_p2p_flush(messaging->p2p);
        *moved = true;
    }
    return 0;
}

bool hvd_messaging_is_copying(const struct hvd_engine *engine)
{
    return engine->messaging.wants_flush ||
           !hvd_gpu_p2p_are_idle(&engine->messaging.copies);
}

bool hvd_messaging_is_moving(const struct hvd_engine *engine)
{
    const struct hvd_p2p *p2p = engine->messaging.p2p;

    return p2p != NULL && hvd_p2p_are_moving(p2p);
}

bool hvd_messaging_has_failed(const struct hvd_engine *engine)
{
    const struct hvd_p2p *p2p = engine->messaging.p2p;

    return p2p != NULL && hvd_p2p_failure(p2p)->status != 0;
}

static int64_t p2p_deadline(const void *self, int64_t now_ns)
{
    const struct hvd_engine *engine = self;
    const struct hvd_p2p *p2p = engine->messaging.p2p;

    (void)now_ns;
    return p2p != NULL ? hvd_p2p_deadline(p2p) : -1;
}

/* --- the end --- */

static void flush_p2p(void *self, int status, const char *text)
{
    struct hvd_engine *engine = self;

    (void)status; /* what has been submitted goes on */
    (void)text;
    hvd_messaging_start(engine);
    if (hvd_gpu_p2p_are_held(&engine->messaging.copies)) {
        engine->messaging.wants_flush = true;
    } else if (engine->messaging.p2p != NULL) {
        hvd_p2p_flush(engine->messaging.p2p);
    }
}

static bool have_drained(const void *self)
{
    const struct hvd_engine *engine = self;
    const struct hvd_p2p *p2p = engine->messaging.p2p;

    return p2p == NULL ||
           (!hvd_messaging_is_copying(engine) && hvd_p2p_have_drained(p2p));
}

void hvd_messaging_abort_set(struct hvd_engine *engine, const struct hvd_set *set)
{
    if (engine->messaging.p2p != NULL) {
        hvd_p2p_abort_set(engine->messaging.p2p, set);
    }
}

static void drop_p2p(void *self, int status, const char *text)
{
    struct hvd_engine *engine = self;
    struct hvd_entry *entry = hvd_submissions_take_p2p(&engine->submissions);

    engine->messaging.is_over = true;
    while (entry != NULL) {
        struct hvd_entry *next = entry->next;

        hvd_completion_finish(engine, entry, status, text);
        entry = next;
    }
    while ((entry = hvd_gpu_p2p_drop(&engine->messaging.copies)) != NULL) {
        hvd_completion_finish(engine, entry, status, text);
    }
    engine->messaging.wants_flush = false;
    if (engine->messaging.p2p != NULL) {
        hvd_p2p_drop(engine->messaging.p2p, status, text);
    }
}

static void close_p2p(void *self)
{
    struct hvd_engine *engine = self;

    hvd_p2p_destroy(engine->messaging.p2p);
    engine->messaging.p2p = NULL;
}

static const struct hvd_source p2p_source = {
    .name = "messages",
    .progress = progress_p2p,
    .settle = settle_p2p,
    .deadline = p2p_deadline,
    .drain = flush_p2p,
    .has_drained = have_drained,
    .end = drop_p2p,
    .fail = drop_p2p,
    .close = close_p2p,
};

void hvd_messaging_open(struct hvd_engine *engine)
{
    engine->messaging.copies.gpu = engine->gpu;
    if (engine->net != NULL) {
        hvd_net_watch(engine->net, HVD_NET_LINK_CHANNEL, on_caller, engine);
    }
    hvd_loop_add(&engine->loop, &p2p_source, engine,
                 hvd_submissions_message_gate(&engine->submissions));
}
