/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of tensors on GPUs. */
#include "collectives/core/gpu_messages.h"

#include <stdlib.h>

#include "collectives/core/completion.h"
#include "collectives/core/engine_state.h"
#include "collectives/gpu/gpu_job.h"
#include "collectives/p2p/messages.h"
#include "gpu_binding/base/clock.h"

/* A message between its tensor and the host; one of a host tensor has no job. */
struct hvd_gpu_message {
    struct hvd_gpu_message *next;
    struct hvd_entry *entry;
    struct hvd_gpu_job job;
};

/* --- rows --- */

static void append(struct hvd_gpu_message_row *row, struct hvd_gpu_message *message)
{
    *(row->first == NULL ? &row->first : &row->last->next) = message;
    row->last = message;
}

static struct hvd_gpu_message *take_first(struct hvd_gpu_message_row *row)
{
    struct hvd_gpu_message *message = row->first;

    row->first = message->next;
    return message;
}

/* The entry goes to the same rank, set and tag, so it must not overtake the message. */
static bool is_followed(const struct hvd_gpu_message *message,
                        const struct hvd_entry *entry)
{
    return message->entry->proposal.root == entry->proposal.root &&
           message->entry->proposal.set == entry->proposal.set &&
           message->entry->request->tag == entry->request->tag;
}

static bool follows_held_one(const struct hvd_gpu_messages *messages,
                             const struct hvd_entry *entry)
{
    const struct hvd_gpu_message *message = messages->sends.first;

    while (message != NULL && !is_followed(message, entry)) {
        message = message->next;
    }
    return message != NULL;
}

/* --- copies --- */

static bool is_send(const struct hvd_entry *entry)
{
    return entry->proposal.kind == HVD_KIND_SEND;
}

static bool is_copied(const struct hvd_entry *entry)
{
    return entry->ready != NULL && entry->output_bytes > 0;
}

/* Behind the work that was on the caller's stream when the message was submitted: it computes what is
 * sent, and may still use the memory that is received into. */
static int submit_copy(struct hvd_engine *engine, struct hvd_gpu_message *message,
                       struct hvd_error *err)
{
    struct hvd_entry *entry = message->entry;
    const struct hvd_gpu_step copy = {
        .kind = HVD_GPU_COPY,
        .from = is_send(entry) ? entry->input : entry->result,
        .to = is_send(entry) ? entry->result : entry->output,
        .count = (int64_t)entry->output_bytes,
    };

    hvd_gpu_steps_follow(&message->job.steps, &entry, 1);
    hvd_gpu_steps_add(&message->job.steps, &copy);
    return hvd_gpu_job_submit(engine->gpu, &message->job,
                              is_send(entry) ? HVD_GPU_IN : HVD_GPU_OUT, NULL, err);
}

static void destroy(struct hvd_engine *engine, struct hvd_gpu_message *message)
{
    if (engine->gpu->is_stuck || hvd_gpu_job_is_held(&message->job)) {
        return; /* never freed: see hvd_gpu_stop */
    }
    hvd_gpu_job_end(engine->gpu, &message->job);
    free(message);
}

/* Ends the request if that cannot begin. */
static void begin(struct hvd_engine *engine, struct hvd_entry *entry,
                  struct hvd_gpu_message_row *row)
{
    struct hvd_gpu_message *message = calloc(1, sizeof(*message));
    struct hvd_error err = {0};
    int status;

    if (message == NULL) {
        hvd_completion_land(engine, entry, HVD_ERR_NOMEM, "no memory for a message");
        return;
    }
    message->entry = entry;
    status = is_copied(entry) ? submit_copy(engine, message, &err) : 0;
    if (status != 0) {
        destroy(engine, message);
        hvd_completion_land(engine, entry, status, err.text);
        return;
    }
    append(row, message);
    engine->gpu->waiting++;
}

bool hvd_gpu_messages_hold(struct hvd_engine *engine, struct hvd_entry *entry)
{
    bool is_held = is_send(entry) &&
                   (is_copied(entry) || follows_held_one(&engine->gpu_messages, entry));

    if (is_held) {
        begin(engine, entry, &engine->gpu_messages.sends);
    }
    return is_held;
}

bool hvd_gpu_messages_return(struct hvd_engine *engine, struct hvd_entry *entry)
{
    bool is_returned = !is_send(entry) && is_copied(entry);

    if (is_returned) {
        begin(engine, entry, &engine->gpu_messages.received);
    }
    return is_returned;
}

/* --- progress --- */

static void end_first(struct hvd_engine *engine, struct hvd_gpu_message_row *row)
{
    engine->gpu->waiting--;
    destroy(engine, take_first(row));
}

static void send_first(struct hvd_engine *engine)
{
    struct hvd_entry *entry = engine->gpu_messages.sends.first->entry;

    end_first(engine, &engine->gpu_messages.sends);
    hvd_messages_start(engine->messaging.messages, entry, hvd_clock_ns());
}

static void launch_first(struct hvd_engine *engine)
{
    struct hvd_gpu_message *message = engine->gpu_messages.received.first;
    struct hvd_entry *entry = message->entry;

    entry->done = hvd_refcount_keep(&message->job.mark->refcount);
    hvd_gpu_launched(engine->gpu, HVD_GPU_OUT, message->job.mark);
    end_first(engine, &engine->gpu_messages.received);
    hvd_completion_launch(engine, entry);
}

int hvd_gpu_messages_progress(struct hvd_engine *engine, bool *moved,
                              struct hvd_error *err)
{
    struct hvd_gpu_messages *messages = &engine->gpu_messages;
    int status = 0;

    while (messages->sends.first != NULL &&
           (status = hvd_gpu_job_reached(&messages->sends.first->job, err)) == 0) {
        send_first(engine);
        *moved = true;
    }
    while (status >= 0 && messages->received.first != NULL &&
           (status = hvd_gpu_job_launched(&messages->received.first->job, err)) == 0) {
        launch_first(engine);
        *moved = true;
    }
    if (status >= 0 && messages->wants_flush && messages->sends.first == NULL) {
        messages->wants_flush = false;
        hvd_messages_flush(engine->messaging.messages);
        *moved = true;
    }
    return status < 0 ? status : 0;
}

bool hvd_gpu_messages_are_idle(const struct hvd_engine *engine)
{
    const struct hvd_gpu_messages *messages = &engine->gpu_messages;

    return messages->sends.first == NULL && messages->received.first == NULL &&
           !messages->wants_flush;
}

static void drop_row(struct hvd_engine *engine, struct hvd_gpu_message_row *row,
                     int status, const char *text)
{
    while (row->first != NULL) {
        struct hvd_entry *entry = row->first->entry;

        end_first(engine, row);
        hvd_completion_land(engine, entry, status, text);
    }
}

void hvd_gpu_messages_drop(struct hvd_engine *engine, int status, const char *text)
{
    drop_row(engine, &engine->gpu_messages.sends, status, text);
    drop_row(engine, &engine->gpu_messages.received, status, text);
    engine->gpu_messages.wants_flush = false;
}
