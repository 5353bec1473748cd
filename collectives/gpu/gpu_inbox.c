/* SPDX-License-Identifier: Apache-2.0 */
/* One kernel for a small batch (HVD_GPU_ONE_KERNEL): it stores this rank's tensors into
 * the inboxes of all ranks of the process set, and adds up what its own inbox gets. For
 * sets on one node whose GPUs reach each other's memory. The first batch that could use
 * it opens the inboxes:
 *
 *   ALLOCATE   each rank allocates its inbox
 *   OFFER      each rank tells its handle
 *   OPEN       each rank opens the inboxes of the others
 *   TELL       each rank tells whether it could
 *
 * If a rank cannot, all ranks use NCCL. The launcher allocates and opens: CUDA may wait
 * for the device meanwhile, and so for other ranks, which need this thread. */
#include <stdio.h>
#include <string.h>

#include "collectives/gpu/gpu_rendezvous.h"
#include "collectives/gpu/gpu_run_state.h"
#include "collectives/run/team.h"
#include "gpu_binding/base/env.h"
#include "gpu_binding/base/error.h"
#include "gpu_binding/base/log.h"

enum {
    ALIGNMENT = 16, /* of tensors in a slot */
};

static int64_t align_up(int64_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void say_refused(const struct hvd_gpu_run *run, const char *reason)
{
    if (run->team->rank == 0) {
        hvd_log(HVD_LOG_WARN,
                "process set %d: " HVD_ENV_GPU_ONE_KERNEL
                " is set, but small batches are reduced by NCCL: %s",
                run->set->id, reason);
    }
}

/* Returns the smallest setting of all ranks. *first_without: a rank where it is 0. */
static int64_t least_setting(const struct hvd_gpu_rendezvous *rendezvous, int64_t *most,
                             int *first_without)
{
    int64_t least = INT64_MAX;

    *most = 0;
    for (int i = rendezvous->team->layout->size - 1; i >= 0; i--) {
        int64_t bytes = rendezvous->offers[i].one_kernel_bytes;

        least = bytes < least ? bytes : least;
        *most = bytes > *most ? bytes : *most;
        *first_without = bytes == 0 ? i : *first_without;
    }
    return least;
}

/* Returns the largest number of ranks on one GPU, or on one of its MIG slices. */
static int most_on_gpu(const struct hvd_gpu_rendezvous *rendezvous)
{
    const struct hvd_gpu_offer *offers = rendezvous->offers;
    int size = rendezvous->team->layout->size, most = 1;

    for (int i = 0; i < size; i++) {
        int count = 0;

        for (int k = 0; k < size; k++) {
            count += memcmp(offers[i].identity.uuid, offers[k].identity.uuid,
                            HVD_GPU_UUID_BYTES) == 0;
        }
        most = count > most ? count : most;
    }
    return most;
}

void hvd_gpu_inbox_agree(struct hvd_gpu_run *run,
                         const struct hvd_gpu_rendezvous *rendezvous)
{
    const struct hvd_layout *layout = run->team->layout;
    int without = 0;
    int64_t most = 0, least = least_setting(rendezvous, &most, &without);
    char reason[96] = "";

    if (most == 0 || layout->size == 1) {
        return;
    }
    if (least == 0) {
        snprintf(reason, sizeof(reason), "it is not set on rank %d",
                 run->team->ranks[without]);
    } else if (layout->nodes > 1) {
        snprintf(reason, sizeof(reason), "the ranks are on %d nodes", layout->nodes);
    } else if (layout->size > HVD_GPU_PUSH_RANKS) {
        snprintf(reason, sizeof(reason), "it is for up to %d ranks",
                 (int)HVD_GPU_PUSH_RANKS);
    } else if (!run->set->all_have_kernels) {
        snprintf(reason, sizeof(reason), "not all ranks have hvd's kernels");
    }
    if (reason[0] != '\0') {
        say_refused(run, reason);
        return;
    }
    run->set->one_kernel_bytes = align_up(least);
    run->set->ranks_on_gpu = most_on_gpu(rendezvous);
}

/* --- which batches --- */

/* Returns the type in which the tensors travel. */
static enum hvd_dtype slot_dtype(const struct hvd_descriptor *descriptor)
{
    return descriptor->wire != 0 ? (enum hvd_dtype)descriptor->wire : descriptor->dtype;
}

static bool is_float(enum hvd_dtype dtype)
{
    return dtype == HVD_FLOAT16 || dtype == HVD_BFLOAT16 || dtype == HVD_FLOAT32 ||
           dtype == HVD_FLOAT64;
}

static int64_t slot_bytes(const struct hvd_batch *batch)
{
    int64_t bytes = 0;

    for (int64_t i = 0; i < batch->header.count; i++) {
        const struct hvd_descriptor *descriptor = &batch->entries[i]->descriptor;
        size_t element = hvd_dtype_bytes(descriptor->dtype);
        size_t slot_element = hvd_dtype_bytes(slot_dtype(descriptor));

        bytes += align_up(
            (int64_t)((size_t)hvd_descriptor_bytes(descriptor) / element * slot_element));
    }
    return bytes;
}

bool hvd_gpu_inbox_fits(const struct hvd_gpu_run *run)
{
    const struct hvd_batch *batch = run->batch;
    const struct hvd_descriptor *first = &batch->entries[0]->descriptor;
    int64_t bytes;

    if (run->set->one_kernel_bytes == 0 || batch->header.kind != HVD_KIND_ALLREDUCE ||
        (first->op != HVD_SUM && first->op != HVD_AVERAGE) || !is_float(first->dtype) ||
        batch->header.count > HVD_GPU_PUSH_TENSORS) {
        return false;
    }
    bytes = slot_bytes(batch);
    return bytes > 0 && bytes <= run->set->one_kernel_bytes;
}

bool hvd_gpu_inbox_wanted(const struct hvd_gpu_run *run)
{
    return run->set->inbox == NULL && hvd_gpu_inbox_fits(run);
}

void hvd_gpu_inbox_steps(const struct hvd_gpu_run *run, struct hvd_gpu_steps *steps)
{
    const struct hvd_descriptor *first = &run->batch->entries[0]->descriptor;
    double divisor = first->op == HVD_AVERAGE ? run->team->layout->size : 1;
    size_t element = hvd_dtype_bytes(first->dtype);

    for (int64_t i = 0; i < run->batch->header.count; i++) {
        const struct hvd_entry *entry = run->batch->entries[i];
        int64_t bytes = hvd_descriptor_bytes(&entry->descriptor);
        struct hvd_gpu_step step = {.kind = HVD_GPU_PUSH,
                                    .from = entry->is_zeros ? NULL : entry->input,
                                    .to = entry->is_zeros ? NULL : entry->output,
                                    .count = bytes / (int64_t)element,
                                    .dtype = first->dtype,
                                    .to_dtype = slot_dtype(first),
                                    .factor = first->prescale,
                                    .after = first->postscale / divisor,
                                    .inbox = run->set->inbox};

        hvd_gpu_steps_add(steps, &step);
    }
}

/* --- the stages --- */

static void set_word(struct hvd_gpu_inbox_run *inbox_run, const struct hvd_error *error)
{
    inbox_run->word.is_good = error->status == 0;
    snprintf(inbox_run->word.reason, sizeof(inbox_run->word.reason), "%.199s",
             error->text);
}

static int begin_gather(struct hvd_gpu_run *run, enum hvd_gpu_inbox_stage stage,
                        struct hvd_error *err)
{
    struct hvd_gpu_inbox_run *inbox_run = &run->inbox_run;

    inbox_run->stage = stage;
    return hvd_gpu_host_gather_begin(&run->gather, run->team,
                                     run->batch->entries[0]->descriptor.name,
                                     &inbox_run->word, sizeof(inbox_run->word), err);
}

/* Submits the step without the communicator, which would connect: not all ranks may come
 * here. */
static int begin_step(struct hvd_gpu_run *run, enum hvd_gpu_inbox_stage stage,
                      enum hvd_gpu_step_kind kind, struct hvd_error *err)
{
    const struct hvd_gpu_step step = {.kind = kind, .to = run->inbox_run.inbox};

    run->inbox_run.stage = stage;
    hvd_gpu_steps_add(&run->job.steps, &step);
    return hvd_gpu_job_submit(run->gpu, &run->job, HVD_GPU_COLLECT, NULL, err);
}

int hvd_gpu_inbox_begin(struct hvd_gpu_run *run, struct hvd_error *err)
{
    struct hvd_gpu_inbox *inbox = NULL;
    struct hvd_error problem = {0};
    int status = run->gpu->pool->module->inbox_create(
        run->set->comm, (size_t)run->set->one_kernel_bytes, &inbox, &problem);

    run->inbox_run = (struct hvd_gpu_inbox_run){.inbox = inbox};
    if (status != 0) {
        set_word(&run->inbox_run, &problem);
        return begin_gather(run, HVD_GPU_INBOX_OFFER, err);
    }
    return begin_step(run, HVD_GPU_INBOX_ALLOCATE, HVD_GPU_ALLOCATE_INBOX, err);
}

/* Tells the outcome of a step to the other ranks. */
static int finish_step(struct hvd_gpu_run *run, enum hvd_gpu_inbox_stage next,
                       struct hvd_error *err)
{
    struct hvd_gpu_inbox_run *inbox_run = &run->inbox_run;
    const struct hvd_gpu_inbox *inbox = inbox_run->inbox;
    int status = hvd_gpu_job_reached(&run->job, err);

    if (status != 0) {
        return status;
    }
    hvd_gpu_job_end(run->gpu, &run->job);
    set_word(inbox_run, &inbox->error);
    inbox_run->word.blocks = inbox->blocks;
    memcpy(inbox_run->word.handle, inbox->handles[run->team->rank],
           sizeof(inbox_run->word.handle));
    return begin_gather(run, next, err);
}

/* Ends the stages if a rank has failed: all use NCCL then. Returns whether none has. */
static bool are_all_good(struct hvd_gpu_run *run)
{
    const struct hvd_gpu_inbox_word *told = hvd_gpu_host_gather_result(&run->gather);
    struct hvd_gpu_inbox_run *inbox_run = &run->inbox_run;
    char reason[256];

    for (int i = 0; i < run->team->layout->size; i++) {
        if (!told[i].is_good) {
            snprintf(reason, sizeof(reason), "rank %d: %.*s", run->team->ranks[i],
                     (int)sizeof(told[i].reason) - 1, told[i].reason);
            say_refused(run, reason);
            run->gpu->pool->module->inbox_destroy(inbox_run->inbox);
            run->set->one_kernel_bytes = 0;
            inbox_run->stage = HVD_GPU_INBOX_DONE;
            return false;
        }
    }
    return true;
}

static int finish_offer(struct hvd_gpu_run *run, struct hvd_error *err)
{
    const struct hvd_gpu_inbox_word *told = hvd_gpu_host_gather_result(&run->gather);
    struct hvd_gpu_inbox *inbox = run->inbox_run.inbox;
    bool is_good = are_all_good(run);

    for (int i = 0; i < run->team->layout->size && is_good; i++) {
        /* the blocks of all ranks on a GPU must run at once */
        int blocks = told[i].blocks / run->set->ranks_on_gpu;

        inbox->blocks = blocks < inbox->blocks ? blocks : inbox->blocks;
        memcpy(inbox->handles[i], told[i].handle, sizeof(inbox->handles[i]));
    }
    hvd_gpu_host_gather_end(&run->gather);
    return is_good ? begin_step(run, HVD_GPU_INBOX_OPEN, HVD_GPU_OPEN_INBOX, err) : 0;
}

static void finish_tell(struct hvd_gpu_run *run)
{
    if (are_all_good(run)) {
        run->set->inbox = run->inbox_run.inbox;
        run->inbox_run.stage = HVD_GPU_INBOX_DONE;
        hvd_log(run->team->rank == 0 ? HVD_LOG_INFO : HVD_LOG_DEBUG,
                "process set %d: one kernel reduces a batch of up to %zu bytes",
                run->set->id, run->set->inbox->slot_bytes);
    }
    hvd_gpu_host_gather_end(&run->gather);
}

static int step_inbox(struct hvd_gpu_run *run, int64_t *work, bool *moved,
                      struct hvd_error *err)
{
    int status;

    if (run->inbox_run.stage == HVD_GPU_INBOX_ALLOCATE) {
        return finish_step(run, HVD_GPU_INBOX_OFFER, err);
    }
    if (run->inbox_run.stage == HVD_GPU_INBOX_OPEN) {
        return finish_step(run, HVD_GPU_INBOX_TELL, err);
    }
    status = hvd_gpu_host_gather_progress(&run->gather, work, moved, err);
    if (status != 0) {
        return status;
    }
    if (run->inbox_run.stage == HVD_GPU_INBOX_OFFER) {
        return finish_offer(run, err);
    }
    finish_tell(run);
    return 0;
}

int hvd_gpu_inbox_progress(struct hvd_gpu_run *run, int64_t *work, bool *moved,
                           struct hvd_error *err)
{
    int status = 0;

    while (status == 0 && run->inbox_run.stage != HVD_GPU_INBOX_DONE) {
        status = step_inbox(run, work, moved, err);
    }
    return status;
}
