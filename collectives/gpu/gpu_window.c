/* SPDX-License-Identifier: Apache-2.0 */
/* Windows: memory for packed tensors that NCCL has registered, for its symmetric kernels
 * (HVD_NCCL_WINDOWS=1). Each process set has windows of its own, because NCCL wants none
 * in two communicators. They are registered before the first batch that needs one of
 * their size class.
 *
 *   ASK     each rank tells whether it has memory for the window
 *   RUN     one work registers it, on all ranks
 *   TELL    each rank tells what NCCL answered; all decide alike
 *   RENEW   if it failed on a rank, the communicator is lost: rank 0 sends the id of the
 *           next one, which gets no windows
 *
 * Without a window, packed tensors are in plain memory, on all ranks. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "collectives/gpu/gpu_rendezvous.h"
#include "collectives/gpu/gpu_run_state.h"
#include "collectives/run/team.h"
#include "gpu_binding/base/env.h"
#include "gpu_binding/base/error.h"
#include "gpu_binding/base/log.h"

/* The size of the windows of a class: 16 MiB, which suffices for most batches and for the
 * measurement of the packing limit, and 64 MiB. A batch that packs more is limited by
 * bandwidth, and uses plain memory. */
static size_t class_bytes(int size_class)
{
    return (size_t)16 << (20 + 2 * size_class);
}

static void say_refused(const struct hvd_gpu_run *run, const char *reason)
{
    if (run->team->rank == 0) {
        hvd_log(HVD_LOG_WARN,
                "process set %d: " HVD_ENV_NCCL_WINDOWS
                "=1, but packed tensors stay in plain memory: %s",
                run->set->id, reason);
    }
}

static int count_takers(const struct hvd_gpu_rendezvous *rendezvous, int *first_without)
{
    int count = 0;

    for (int i = rendezvous->team->layout->size - 1; i >= 0; i--) {
        if (rendezvous->offers[i].takes_windows) {
            count++;
        } else {
            *first_without = i;
        }
    }
    return count;
}

void hvd_gpu_window_agree(struct hvd_gpu_run *run,
                          const struct hvd_gpu_rendezvous *rendezvous)
{
    int size = run->team->layout->size, without = 0;
    int takers = count_takers(rendezvous, &without);
    char reason[64];

    run->set->takes_windows = takers == size && size > 1;
    if (takers > 0 && takers < size) {
        snprintf(reason, sizeof(reason), "it is not set on rank %d",
                 run->team->ranks[without]);
        say_refused(run, reason);
    }
}

/* Returns the size class of the batch; HVD_GPU_WINDOW_CLASSES if it uses no window. The
 * result is the same on all ranks. */
static int class_of(const struct hvd_gpu_run *run)
{
    const size_t measured = (size_t)HVD_GPU_PACKING_TENSORS * HVD_GPU_PACKING_BYTES;
    size_t bytes = hvd_gpu_launch_pack_bytes(run);
    int size_class = 0;

    if (hvd_gpu_packing_wanted(run) && bytes < measured) {
        bytes = measured;
    }
    if (bytes == 0) {
        return HVD_GPU_WINDOW_CLASSES;
    }
    while (size_class < HVD_GPU_WINDOW_CLASSES && class_bytes(size_class) < bytes) {
        size_class++;
    }
    return size_class;
}

bool hvd_gpu_window_wanted(const struct hvd_gpu_run *run)
{
    int size_class;

    if (!run->set->takes_windows || run->batch->header.kind != HVD_KIND_ALLREDUCE) {
        return false;
    }
    size_class = class_of(run);
    return size_class < HVD_GPU_WINDOW_CLASSES &&
           hvd_gpu_set_window(run->set, class_bytes(size_class)) == NULL;
}

/* --- the stages --- */

static int begin_gather(struct hvd_gpu_run *run, enum hvd_gpu_window_stage stage,
                        struct hvd_error *err)
{
    struct hvd_gpu_window_run *window_run = &run->window_run;

    window_run->stage = stage;
    return hvd_gpu_host_gather_begin(&run->gather, run->team,
                                     run->batch->entries[0]->descriptor.name,
                                     &window_run->word, sizeof(window_run->word), err);
}

static void set_word(struct hvd_gpu_window_run *window_run,
                     enum hvd_gpu_window_state state, const char *reason)
{
    window_run->word = (struct hvd_gpu_window_word){.state = state};
    snprintf(window_run->word.reason, sizeof(window_run->word.reason), "%.199s", reason);
}

int hvd_gpu_window_begin(struct hvd_gpu_run *run, struct hvd_error *err)
{
    struct hvd_gpu_window_run *window_run = &run->window_run;
    struct hvd_error problem = {0};
    int status;

    *window_run = (struct hvd_gpu_window_run){.size_class = class_of(run)};
    status = run->gpu->pool->module->window_create(run->set->comm,
                                                   class_bytes(window_run->size_class),
                                                   &window_run->window, &problem);
    set_word(window_run, status == 0 ? HVD_GPU_WINDOW_ALLOCATED : HVD_GPU_WINDOW_FAILED,
             problem.text);
    return begin_gather(run, HVD_GPU_WINDOW_ASK, err);
}

/* Returns the number of ranks whose word is `state`. Keeps the reason of the first rank
 * whose word is another. */
static int count_state(struct hvd_gpu_run *run, enum hvd_gpu_window_state state)
{
    const struct hvd_gpu_window_word *told = hvd_gpu_host_gather_result(&run->gather);
    int size = run->team->layout->size, count = 0;

    for (int i = size - 1; i >= 0; i--) {
        if (told[i].state == (int32_t)state) {
            count++;
        } else {
            snprintf(run->window_run.reason, sizeof(run->window_run.reason),
                     "rank %d: %.*s", run->team->ranks[i],
                     (int)sizeof(told[i].reason) - 1, told[i].reason);
        }
    }
    return count;
}

static void end_window(struct hvd_gpu_run *run)
{
    hvd_gpu_host_gather_end(&run->gather);
    run->window_run.stage = HVD_GPU_WINDOW_DONE;
}

/* Lets packed tensors stay where they are: in plain memory, or in smaller windows. */
static void refuse_window(struct hvd_gpu_run *run)
{
    say_refused(run, run->window_run.reason);
    run->set->takes_windows = false;
    end_window(run);
}

static void drop_window(struct hvd_gpu_run *run)
{
    if (run->window_run.window != NULL) {
        run->gpu->pool->module->window_destroy(run->window_run.window);
        run->window_run.window = NULL;
    }
}

static int finish_ask(struct hvd_gpu_run *run, struct hvd_error *err)
{
    if (count_state(run, HVD_GPU_WINDOW_ALLOCATED) < run->team->layout->size) {
        drop_window(run);
        refuse_window(run);
        return 0;
    }
    hvd_gpu_host_gather_end(&run->gather);
    hvd_gpu_steps_add(
        &run->job.steps,
        &(struct hvd_gpu_step){.kind = HVD_GPU_REGISTER, .to = run->window_run.window});
    run->window_run.stage = HVD_GPU_WINDOW_RUN;
    return hvd_gpu_job_submit(run->gpu, &run->job, HVD_GPU_COLLECT, run->set->comm, err);
}

static int finish_run(struct hvd_gpu_run *run, struct hvd_error *err)
{
    struct hvd_gpu_window_run *window_run = &run->window_run;
    const struct hvd_gpu_window *window = window_run->window;
    int status = hvd_gpu_job_reached(&run->job, err);

    if (status != 0) {
        return status;
    }
    hvd_gpu_job_end(run->gpu, &run->job);
    set_word(window_run, window->state,
             window->state == HVD_GPU_WINDOW_REFUSED
                 ? "NCCL registers no windows here: not all GPUs reach each other's "
                   "memory, or NCCL_WIN_ENABLE=0 or NCCL_CUMEM_ENABLE=0"
                 : window->error.text);
    return begin_gather(run, HVD_GPU_WINDOW_TELL, err);
}

static void take_window(struct hvd_gpu_run *run)
{
    int size_class = run->window_run.size_class;

    run->set->windows[size_class] = run->window_run.window;
    hvd_log(run->team->rank == 0 ? HVD_LOG_INFO : HVD_LOG_DEBUG,
            "process set %d: packed tensors of up to %zu bytes are in a window of NCCL",
            run->set->id, class_bytes(size_class));
    end_window(run);
}

static int begin_renewal(struct hvd_gpu_run *run, struct hvd_error *err)
{
    struct hvd_gpu_pool *pool = run->gpu->pool;
    struct hvd_gpu_identity identity = {0};
    int status = run->team->rank == 0
                     ? pool->module->identify(pool->device, true, &identity, err)
                     : 0;

    if (status != 0) {
        return status;
    }
    hvd_gpu_host_gather_end(&run->gather);
    memcpy(run->window_run.word.id, identity.id, sizeof(run->window_run.word.id));
    return begin_gather(run, HVD_GPU_WINDOW_RENEW, err);
}

static int finish_tell(struct hvd_gpu_run *run, struct hvd_error *err)
{
    int size = run->team->layout->size;

    if (count_state(run, HVD_GPU_WINDOW_REFUSED) == size) {
        count_state(run, HVD_GPU_WINDOW_REGISTERED); /* for the reason */
        drop_window(run);
        refuse_window(run);
        return 0;
    }
    if (count_state(run, HVD_GPU_WINDOW_REGISTERED) == size) {
        take_window(run);
        return 0;
    }
    return begin_renewal(run, err);
}

static int finish_renewal(struct hvd_gpu_run *run, struct hvd_error *err)
{
    const struct hvd_gpu_window_word *told = hvd_gpu_host_gather_result(&run->gather);
    struct hvd_gpu_pool *pool = run->gpu->pool;
    struct hvd_gpu_set *set = run->set;
    struct hvd_gpu_comm *renewed;
    int status = pool->module->comm_create(pool->device, told[0].id, run->team->rank,
                                           run->team->layout->size, &renewed, err);

    if (status != 0) {
        return status;
    }
    pool->module->comm_abandon(set->comm); /* with all its windows */
    set->comm = renewed;
    memset(set->windows, 0, sizeof(set->windows));
    set->inbox = NULL; /* the next batch that needs it makes a new one */
    refuse_window(run);
    return 0;
}

static int step_window(struct hvd_gpu_run *run, int64_t *work, bool *moved,
                       struct hvd_error *err)
{
    int status;

    if (run->window_run.stage == HVD_GPU_WINDOW_RUN) {
        return finish_run(run, err);
    }
    status = hvd_gpu_host_gather_progress(&run->gather, work, moved, err);
    if (status != 0) {
        return status;
    }
    switch (run->window_run.stage) {
    case HVD_GPU_WINDOW_ASK:
        return finish_ask(run, err);
    case HVD_GPU_WINDOW_TELL:
        return finish_tell(run, err);
    default:
        return finish_renewal(run, err);
    }
}

int hvd_gpu_window_progress(struct hvd_gpu_run *run, int64_t *work, bool *moved,
                            struct hvd_error *err)
{
    int status = 0;

    while (status == 0 && run->window_run.stage != HVD_GPU_WINDOW_DONE) {
        status = step_window(run, work, moved, err);
    }
    return status;
}
