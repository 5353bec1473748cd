/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between ranks whose tensors are on GPUs. */
#include "collectives/gpu/gpu_p2p.h"

#include <stdlib.h>

#include "collectives/gpu/gpu_job.h"
#include "collectives/request/request.h"

/* A message whose tensor is being copied to or from the host. For a host tensor, the job
 * is empty. */
struct hvd_gpu_p2p_item {
    struct hvd_gpu_p2p_item *next;
    struct hvd_entry *entry;
    struct hvd_gpu_job job;
};

/* --- rows --- */

static void append(struct hvd_gpu_p2p_row *row, struct hvd_gpu_p2p_item *message)
{
    *(row->first == NULL ? &row->first : &row->last->next) = message;
    row->last = message;
}

/* Whether the entry goes to the same rank, set and tag, so that it must not overtake the
 * message. */
static bool is_followed(const struct hvd_gpu_p2p_item *message,
                        const struct hvd_entry *entry)
{
    return message->entry->descriptor.root == entry->descriptor.root &&
           message->entry->descriptor.set == entry->descriptor.set &&
           message->entry->request->tag == entry->request->tag;
}

static bool follows_held_one(const struct hvd_gpu_p2p *messages,
                             const struct hvd_entry *entry)
{
    const struct hvd_gpu_p2p_item *message = messages->sends.first;

    while (message != NULL && !is_followed(message, entry)) {
        message = message->next;
    }
    return message != NULL;
}

/* --- copies --- */

static bool is_send(const struct hvd_entry *entry)
{
    return entry->descriptor.kind == HVD_KIND_SEND;
}

static bool is_copied(const struct hvd_entry *entry)
{
    return entry->ready != NULL && entry->output_bytes > 0;
}

/* Queues the copy behind the work that was on the caller's stream when the message was
 * submitted: that work computes the tensor to be sent, or may still use the memory that
 * will receive the message. */
static int submit_copy(struct hvd_gpu_runtime *gpu, struct hvd_gpu_p2p_item *message,
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
    return hvd_gpu_job_submit(gpu, &message->job,
                              is_send(entry) ? HVD_GPU_IN : HVD_GPU_OUT, NULL, err);
}

static void destroy_message(struct hvd_gpu_runtime *gpu, struct hvd_gpu_p2p_item *message)
{
    if (gpu->is_stuck || hvd_gpu_job_is_held(&message->job)) {
        return; /* never freed: see hvd_gpu_stop */
    }
    hvd_gpu_job_end(gpu, &message->job);
    free(message);
}

static int begin_message(struct hvd_gpu_p2p *messages, struct hvd_entry *entry,
                         struct hvd_gpu_p2p_row *row, struct hvd_error *err)
{
    struct hvd_gpu_p2p_item *message = calloc(1, sizeof(*message));
    int status;

    if (message == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a message");
    }
    message->entry = entry;
    status = is_copied(entry) ? submit_copy(messages->gpu, message, err) : 0;
    if (status != 0) {
        destroy_message(messages->gpu, message);
        return status;
    }
    append(row, message);
    messages->gpu->waiting++;
    return 0;
}

static struct hvd_entry *take_first(struct hvd_gpu_p2p *messages,
                                    struct hvd_gpu_p2p_row *row)
{
    struct hvd_gpu_p2p_item *message = row->first;
    struct hvd_entry *entry = message->entry;

    row->first = message->next;
    messages->gpu->waiting--;
    destroy_message(messages->gpu, message);
    return entry;
}

bool hvd_gpu_p2p_must_hold(const struct hvd_gpu_p2p *messages,
                           const struct hvd_entry *entry)
{
    return is_send(entry) && (is_copied(entry) || follows_held_one(messages, entry));
}

int hvd_gpu_p2p_hold(struct hvd_gpu_p2p *messages, struct hvd_entry *entry,
                     struct hvd_error *err)
{
    return begin_message(messages, entry, &messages->sends, err);
}

bool hvd_gpu_p2p_must_return(const struct hvd_entry *entry)
{
    return !is_send(entry) && is_copied(entry);
}

int hvd_gpu_p2p_return(struct hvd_gpu_p2p *messages, struct hvd_entry *entry,
                       struct hvd_error *err)
{
    return begin_message(messages, entry, &messages->received, err);
}

int hvd_gpu_p2p_next_held(struct hvd_gpu_p2p *messages, struct hvd_entry **entry,
                          struct hvd_error *err)
{
    int status = messages->sends.first != NULL
                     ? hvd_gpu_job_reached(&messages->sends.first->job, err)
                     : HVD_INPROGRESS;

    if (status == 0) {
        *entry = take_first(messages, &messages->sends);
    }
    return status;
}

int hvd_gpu_p2p_next_returned(struct hvd_gpu_p2p *messages, struct hvd_entry **entry,
                              struct hvd_error *err)
{
    struct hvd_gpu_p2p_item *message = messages->received.first;
    int status =
        message != NULL ? hvd_gpu_job_launched(&message->job, err) : HVD_INPROGRESS;

    if (status == 0) {
        message->entry->done = hvd_refcount_keep(&message->job.mark->refcount);
        hvd_gpu_launched(messages->gpu, HVD_GPU_OUT, message->job.mark);
        *entry = take_first(messages, &messages->received);
    }
    return status;
}

bool hvd_gpu_p2p_are_held(const struct hvd_gpu_p2p *messages)
{
    return messages->sends.first != NULL;
}

bool hvd_gpu_p2p_are_returning(const struct hvd_gpu_p2p *messages)
{
    return messages->received.first != NULL;
}

bool hvd_gpu_p2p_are_idle(const struct hvd_gpu_p2p *messages)
{
    return messages->sends.first == NULL && messages->received.first == NULL;
}

struct hvd_entry *hvd_gpu_p2p_drop(struct hvd_gpu_p2p *messages)
{
    struct hvd_gpu_p2p_row *row =
        messages->sends.first != NULL ? &messages->sends : &messages->received;

    return row->first != NULL ? take_first(messages, row) : NULL;
}

int hvd_gpu_p2p_find_memory(struct hvd_gpu_runtime *gpu, struct hvd_entry *entry,
                            struct hvd_error *err)
{
    struct hvd_gpu_buffer *buffer;
    int status;

    if (entry->output_bytes == 0) {
        return 0;
    }
    status = hvd_gpu_buffer_take(gpu->pool, HVD_GPU_HOST_MEMORY, entry->output_bytes,
                                 &buffer, err);
    if (status == 0) {
        entry->buffer = &buffer->refcount;
        entry->result = buffer->memory;
    }
    return status;
}
