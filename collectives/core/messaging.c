/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's side of messages. */
#include "collectives/core/messaging.h"

#include "collectives/core/completion.h"
#include "collectives/core/engine_state.h"
#include "collectives/gpu/gpu_runtime.h"
#include "collectives/p2p/messages.h"
#include "collectives/p2p/net_link.h"
#include "collectives/trace/timeline.h"
#include "collectives/transport/net/net.h"
#include "collectives/transport/shm/mail.h"
#include "gpu_binding/base/clock.h"
#include "pmix_boot/boot.h"

static void on_end(void *context, struct hvd_entry *entry, int status, const char *text)
{
    struct hvd_engine *engine = context;
    struct hvd_error err = {0};

    hvd_timeline_message_ended(engine->timeline, entry, status);
    if (status == 0 && hvd_gpu_messages_must_return(entry)) {
        status = hvd_gpu_messages_return(&engine->messaging.copies, entry, &err);
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

    return !hvd_gpu_messages_are_returning(&engine->messaging.copies) &&
           hvd_gpu_is_idle(engine->gpu);
}

/* --- opening --- */

static void end_job(struct hvd_engine *engine, const struct hvd_error *failure)
{
    hvd_failure_end_job(engine, engine->boot->rank, failure->status, failure->text);
}

/* Without memory the job ends, and drop_messages ends what was to be sent. */
static int open_messages(struct hvd_engine *engine)
{
    const int64_t warning_s =
        engine->settings.stall_check_disable ? 0 : engine->settings.stall_warning_s;
    const struct hvd_messages_config config = {
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

    if (messaging->messages != NULL || messaging->is_over) {
        return 0;
    }
    status = hvd_messages_create(&config, &messaging->messages, &failure);
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

    if (open_messages(engine) == 0 && engine->messaging.messages != NULL) {
        hvd_messages_note_caller(engine->messaging.messages, rank);
    }
}

void hvd_messaging_look(struct hvd_engine *engine)
{
    if (engine->messaging.messages == NULL &&
        hvd_mail_has_come(engine->mail, HVD_MAIL_MESSAGES)) {
        open_messages(engine);
    }
}

/* --- progress --- */

static void start_message(struct hvd_engine *engine, struct hvd_entry *entry,
                          int64_t now_ns)
{
    struct hvd_messaging *messaging = &engine->messaging;
    struct hvd_error err = {0};
    int status;

    hvd_timeline_message_started(engine->timeline, entry);
    if (!hvd_gpu_messages_must_hold(&messaging->copies, entry)) {
        hvd_messages_start(messaging->messages, entry, now_ns);
        return;
    }
    status = hvd_gpu_messages_hold(&messaging->copies, entry, &err);
    if (status != 0) {
        hvd_completion_finish(engine, entry, status, err.text);
    }
}

bool hvd_messaging_start(struct hvd_engine *engine)
{
    const bool is_some = hvd_submissions_has_messages(&engine->submissions);
    const int64_t now_ns = is_some ? hvd_clock_ns() : 0;
    struct hvd_entry *entry;

    if (!is_some || engine->messaging.is_over || open_messages(engine) != 0) {
        return is_some;
    }
    hvd_progress_note_messages(&engine->progress, now_ns);
    entry = hvd_submissions_take_messages(&engine->submissions);
    while (entry != NULL) {
        struct hvd_entry *next = entry->next; /* it may have ended, and be gone */

        start_message(engine, entry, now_ns);
        entry = next;
    }
    return is_some;
}

static unsigned progress_messages(void *self, int64_t now_ns)
{
    struct hvd_engine *engine = self;
    bool moved = hvd_messaging_start(engine);
    struct hvd_messages *messages = engine->messaging.messages;

    if (messages == NULL) {
        return moved ? HVD_SOURCE_MOVED : 0;
    }
    moved |= hvd_messages_progress(messages);
    if (hvd_messages_are_pending(messages)) {
        hvd_messages_warn(messages, now_ns);
    }
    if (hvd_messages_failure(messages)->status != 0) {
        end_job(engine, hvd_messages_failure(messages));
    }
    return (moved ? HVD_SOURCE_MOVED : 0) |
           (hvd_messages_are_moving(messages) ? HVD_SOURCE_WORKS : 0);
}

static bool settle_messages(void *self, const struct hvd_doze *doze)
{
    const struct hvd_engine *engine = self;
    const struct hvd_messaging *messaging = &engine->messaging;
    const bool is_some = hvd_submissions_has_messages(&engine->submissions);

    if (messaging->messages == NULL) {
        return !is_some && (messaging->is_over ||
                            !hvd_mail_has_come(engine->mail, HVD_MAIL_MESSAGES));
    }
    hvd_messages_suppress_wakeups(messaging->messages,
                                  doze->is_for_messages &&
                                      !hvd_messages_are_moving(messaging->messages));
    return !is_some && !hvd_messages_have_news(messaging->messages);
}

bool hvd_messaging_has_pending(const struct hvd_engine *engine)
{
    const struct hvd_messages *messages = engine->messaging.messages;

    return hvd_submissions_has_messages(&engine->submissions) ||
           (messages != NULL &&
            (hvd_messages_are_pending(messages) || hvd_messaging_is_copying(engine)));
}

int hvd_messaging_progress_copies(struct hvd_engine *engine, bool *moved,
                                  struct hvd_error *err)
{
    struct hvd_messaging *messaging = &engine->messaging;
    struct hvd_entry *entry;
    int status;

    while ((status = hvd_gpu_messages_next_held(&messaging->copies, &entry, err)) == 0) {
        hvd_messages_start(messaging->messages, entry, hvd_clock_ns());
        *moved = true;
    }
    if (status < 0) {
        return status;
    }
    while ((status = hvd_gpu_messages_next_returned(&messaging->copies, &entry, err)) ==
           0) {
        hvd_completion_launch(engine, entry);
        *moved = true;
    }
    if (status < 0) {
        return status;
    }
    if (messaging->wants_flush && !hvd_gpu_messages_are_held(&messaging->copies)) {
        messaging->wants_flush = false;
        hvd_messages_flush(messaging->messages);
        *moved = true;
    }
    return 0;
}

bool hvd_messaging_is_copying(const struct hvd_engine *engine)
{
    return engine->messaging.wants_flush ||
           !hvd_gpu_messages_are_idle(&engine->messaging.copies);
}

bool hvd_messaging_is_moving(const struct hvd_engine *engine)
{
    const struct hvd_messages *messages = engine->messaging.messages;

    return messages != NULL && hvd_messages_are_moving(messages);
}

bool hvd_messaging_has_failed(const struct hvd_engine *engine)
{
    const struct hvd_messages *messages = engine->messaging.messages;

    return messages != NULL && hvd_messages_failure(messages)->status != 0;
}

static int64_t messages_deadline(const void *self, int64_t now_ns)
{
    const struct hvd_engine *engine = self;
    const struct hvd_messages *messages = engine->messaging.messages;

    (void)now_ns;
    return messages != NULL ? hvd_messages_deadline(messages) : -1;
}

/* --- the end --- */

static void flush_messages(void *self, int status, const char *text)
{
    struct hvd_engine *engine = self;

    (void)status; /* what has been submitted goes on */
    (void)text;
    hvd_messaging_start(engine);
    if (hvd_gpu_messages_are_held(&engine->messaging.copies)) {
        engine->messaging.wants_flush = true;
    } else if (engine->messaging.messages != NULL) {
        hvd_messages_flush(engine->messaging.messages);
    }
}

static bool have_drained(const void *self)
{
    const struct hvd_engine *engine = self;
    const struct hvd_messages *messages = engine->messaging.messages;

    return messages == NULL ||
           (!hvd_messaging_is_copying(engine) && hvd_messages_have_drained(messages));
}

void hvd_messaging_abort_set(struct hvd_engine *engine, const struct hvd_set *set)
{
    if (engine->messaging.messages != NULL) {
        hvd_messages_abort_set(engine->messaging.messages, set);
    }
}

static void drop_messages(void *self, int status, const char *text)
{
    struct hvd_engine *engine = self;
    struct hvd_entry *entry = hvd_submissions_take_messages(&engine->submissions);

    engine->messaging.is_over = true;
    while (entry != NULL) {
        struct hvd_entry *next = entry->next;

        hvd_completion_finish(engine, entry, status, text);
        entry = next;
    }
    while ((entry = hvd_gpu_messages_drop(&engine->messaging.copies)) != NULL) {
        hvd_completion_finish(engine, entry, status, text);
    }
    engine->messaging.wants_flush = false;
    if (engine->messaging.messages != NULL) {
        hvd_messages_drop(engine->messaging.messages, status, text);
    }
}

static void close_messages(void *self)
{
    struct hvd_engine *engine = self;

    hvd_messages_destroy(engine->messaging.messages);
    engine->messaging.messages = NULL;
}

static const struct hvd_source messages_source = {
    .name = "messages",
    .progress = progress_messages,
    .settle = settle_messages,
    .deadline = messages_deadline,
    .drain = flush_messages,
    .has_drained = have_drained,
    .end = drop_messages,
    .fail = drop_messages,
    .close = close_messages,
};

void hvd_messaging_open(struct hvd_engine *engine)
{
    engine->messaging.copies.gpu = engine->gpu;
    if (engine->net != NULL) {
        hvd_net_watch(engine->net, HVD_NET_LINK_CHANNEL, on_caller, engine);
    }
    hvd_loop_add(&engine->loop, &messages_source, engine,
                 hvd_submissions_message_gate(&engine->submissions));
}
