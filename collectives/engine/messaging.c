/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's side of messages. */
#include "collectives/engine/messaging.h"

#include "collectives/agreement/agreement.h"
#include "collectives/engine/completion.h"
#include "collectives/engine/engine_state.h"
#include "collectives/engine/gpu_messages.h"
#include "collectives/gpu/gpu_runtime.h"
#include "collectives/messages/messages.h"
#include "collectives/observe/timeline.h"
#include "gpu_binding/base/clock.h"
#include "pmix_boot/boot.h"

static void on_end(void *context, struct hvd_entry *entry, int status, const char *text)
{
    struct hvd_engine *engine = context;

    hvd_timeline_message_ended(engine->timeline, entry, status);
    if (status != 0 || !hvd_gpu_messages_return(engine, entry)) {
        hvd_completion_land(engine, entry, status, text);
    }
}

static const char *aborted(void *context, int set)
{
    const struct hvd_engine *engine = context;

    return hvd_agreement_abort_reason(engine->negotiation.agreement, set);
}

static bool settled(void *context)
{
    const struct hvd_engine *engine = context;

    return engine->gpu_messages.received.first == NULL && hvd_gpu_is_idle(engine->gpu);
}

int hvd_messaging_open(struct hvd_engine *engine, struct hvd_error *err)
{
    const int64_t warning_s =
        engine->settings.stall_check_disable ? 0 : engine->settings.stall_warning_s;
    const struct hvd_messages_config config = {
        .boot = engine->boot,
        .net = engine->net,
        .shm = engine->shm,
        .board = engine->message_board,
        .ended = on_end,
        .aborted = aborted,
        .settled = settled,
        .context = engine,
        .warning_ns = warning_s * 1000000000,
    };

    return hvd_messages_create(&config, &engine->messages, err);
}

bool hvd_messaging_start(struct hvd_engine *engine)
{
    struct hvd_entry *entry = hvd_submissions_take_messages(&engine->submissions);
    const bool is_some = entry != NULL;
    const int64_t now_ns = is_some ? hvd_clock_ns() : 0;

    if (is_some) {
        atomic_store(&engine->submissions.messages_ns, now_ns);
    }
    while (entry != NULL) {
        struct hvd_entry *next = entry->next; /* it may have ended, and be gone */

        hvd_timeline_message_started(engine->timeline, entry);
        if (!hvd_gpu_messages_hold(engine, entry)) {
            hvd_messages_start(engine->messages, entry, now_ns);
        }
        entry = next;
    }
    return is_some;
}

bool hvd_messaging_progress(struct hvd_engine *engine, int64_t now_ns)
{
    bool moved;

    if (engine->messages == NULL) {
        return false;
    }
    moved = hvd_messaging_start(engine);
    moved |= hvd_messages_progress(engine->messages);
    if (hvd_messages_are_pending(engine->messages)) {
        hvd_messages_warn(engine->messages, now_ns);
    }
    return moved;
}

bool hvd_messaging_has_news(const struct hvd_engine *engine)
{
    return atomic_load(&engine->submissions.messages.has_some) ||
           (engine->messages != NULL && hvd_messages_have_news(engine->messages));
}

void hvd_messaging_flush(struct hvd_engine *engine)
{
    hvd_messaging_start(engine);
    if (engine->gpu_messages.sends.first != NULL) {
        engine->gpu_messages.wants_flush = true;
    } else {
        hvd_messages_flush(engine->messages);
    }
}

void hvd_messaging_abort_set(struct hvd_engine *engine, int set, const char *reason)
{
    if (engine->messages != NULL) {
        hvd_messages_abort_set(engine->messages, set, reason);
    }
}

void hvd_messaging_drop(struct hvd_engine *engine, int status, const char *text)
{
    struct hvd_entry *entry = hvd_submissions_take_messages(&engine->submissions);

    while (entry != NULL) {
        struct hvd_entry *next = entry->next;

        hvd_completion_land(engine, entry, status, text);
        entry = next;
    }
    hvd_gpu_messages_drop(engine, status, text);
    if (engine->messages != NULL) {
        hvd_messages_drop(engine->messages, status, text);
    }
}
