/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's side of messages. */
#include "collectives/engine/messaging.h"

#include "collectives/agreement/agreement.h"
#include "collectives/engine/completion.h"
#include "collectives/engine/engine_state.h"
#include "collectives/engine/gpu_messages.h"
#include "collectives/gpu/gpu_runtime.h"
#include "collectives/messages/messages.h"
#include "collectives/messages/net_link.h"
#include "collectives/observe/timeline.h"
#include "collectives/transport/net/net.h"
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

/* --- opening --- */

static int open_messages(struct hvd_engine *engine)
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
    struct hvd_messaging *messaging = &engine->messaging;

    if (messaging->messages != NULL || messaging->is_over) {
        return 0;
    }
    return hvd_messages_create(&config, &messaging->messages, &messaging->failure);
}

/* The net calls this for each message of a rank until its link is open, or until the end. */
static void on_caller(void *context, int rank)
{
    struct hvd_engine *engine = context;

    if (open_messages(engine) == 0 && engine->messaging.messages != NULL) {
        hvd_messages_note_caller(engine->messaging.messages, rank);
    }
}

void hvd_messaging_init(struct hvd_engine *engine)
{
    const struct hvd_layout *layout = &engine->boot->layout;

    hvd_node_board_init(&engine->messaging.board, engine->shm, engine->message_board,
                        layout->local_rank[engine->boot->rank],
                        engine->doorbells.peer_count);
    if (engine->net != NULL) {
        hvd_net_watch(engine->net, HVD_NET_LINK_CHANNEL, on_caller, engine);
    }
}

void hvd_messaging_look(struct hvd_engine *engine)
{
    if (engine->messaging.messages == NULL &&
        hvd_node_board_has_news(&engine->messaging.board)) {
        open_messages(engine);
    }
}

/* --- progress --- */

static void start_message(struct hvd_engine *engine, struct hvd_entry *entry,
                          int64_t now_ns)
{
    hvd_timeline_message_started(engine->timeline, entry);
    if (!hvd_gpu_messages_hold(engine, entry)) {
        hvd_messages_start(engine->messaging.messages, entry, now_ns);
    }
}

bool hvd_messaging_start(struct hvd_engine *engine)
{
    struct hvd_entry *entry = hvd_submissions_take_messages(&engine->submissions);
    const bool is_some = entry != NULL;
    const int64_t now_ns = is_some ? hvd_clock_ns() : 0;
    const int status = is_some ? open_messages(engine) : 0;

    if (is_some) {
        atomic_store(&engine->submissions.messages_ns, now_ns);
    }
    while (entry != NULL) {
        struct hvd_entry *next = entry->next; /* it may have ended, and be gone */

        if (status == 0) {
            start_message(engine, entry, now_ns);
        } else {
            hvd_completion_land(engine, entry, status, engine->messaging.failure.text);
        }
        entry = next;
    }
    return is_some;
}

bool hvd_messaging_progress(struct hvd_engine *engine, int64_t now_ns)
{
    struct hvd_messages *messages;
    bool moved = hvd_messaging_start(engine);

    messages = engine->messaging.messages;
    if (messages != NULL) {
        moved |= hvd_messages_progress(messages);
        if (hvd_messages_are_pending(messages)) {
            hvd_messages_warn(messages, now_ns);
        }
    }
    return moved;
}

bool hvd_messaging_has_news(const struct hvd_engine *engine)
{
    const struct hvd_messaging *messaging = &engine->messaging;

    if (messaging->messages == NULL) {
        return atomic_load(&engine->submissions.messages.has_some) ||
               (!messaging->is_over && hvd_node_board_has_news(&messaging->board));
    }
    return atomic_load(&engine->submissions.messages.has_some) ||
           hvd_messages_have_news(messaging->messages);
}

bool hvd_messaging_is_moving(const struct hvd_engine *engine)
{
    const struct hvd_messages *messages = engine->messaging.messages;

    return messages != NULL && hvd_messages_are_moving(messages);
}

void hvd_messaging_hush(struct hvd_engine *engine, bool is_hushed)
{
    if (engine->messaging.messages != NULL) {
        hvd_messages_hush(engine->messaging.messages, is_hushed);
    }
}

int64_t hvd_messaging_deadline(const struct hvd_engine *engine)
{
    const struct hvd_messages *messages = engine->messaging.messages;

    return messages != NULL ? hvd_messages_deadline(messages) : -1;
}

const struct hvd_error *hvd_messaging_failure(const struct hvd_engine *engine)
{
    const struct hvd_messaging *messaging = &engine->messaging;

    return messaging->messages != NULL ? hvd_messages_failure(messaging->messages)
                                       : &messaging->failure;
}

/* --- the end --- */

void hvd_messaging_flush(struct hvd_engine *engine)
{
    hvd_messaging_start(engine);
    if (engine->gpu_messages.sends.first != NULL) {
        engine->gpu_messages.wants_flush = true;
    } else if (engine->messaging.messages != NULL) {
        hvd_messages_flush(engine->messaging.messages);
    }
}

bool hvd_messaging_has_drained(const struct hvd_engine *engine)
{
    const struct hvd_messages *messages = engine->messaging.messages;

    return messages == NULL || hvd_messages_have_drained(messages);
}

void hvd_messaging_abort_set(struct hvd_engine *engine, int set, const char *reason)
{
    if (engine->messaging.messages != NULL) {
        hvd_messages_abort_set(engine->messaging.messages, set, reason);
    }
}

void hvd_messaging_drop(struct hvd_engine *engine, int status, const char *text)
{
    struct hvd_entry *entry = hvd_submissions_take_messages(&engine->submissions);

    engine->messaging.is_over = true;
    while (entry != NULL) {
        struct hvd_entry *next = entry->next;

        hvd_completion_land(engine, entry, status, text);
        entry = next;
    }
    hvd_gpu_messages_drop(engine, status, text);
    if (engine->messaging.messages != NULL) {
        hvd_messages_drop(engine->messaging.messages, status, text);
    }
}
