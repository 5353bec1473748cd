/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a rank's runtime: the order in which its parts open and close, and the
 * submission of requests. */
#include "collectives/core/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/core/agent_rank.h"
#include "collectives/core/batches.h"
#include "collectives/core/completion.h"
#include "collectives/core/connect.h"
#include "collectives/core/gpu_tensors.h"
#include "collectives/core/grace.h"
#include "collectives/core/job_state.h"
#include "collectives/core/p2p_source.h"
#include "collectives/core/thread_cpu.h"
#include "collectives/core/tuning.h"
#include "collectives/gpu/gpu_runtime.h"
#include "collectives/trace/ranges.h"
#include "collectives/trace/straggler_report.h"
#include "collectives/transport/shm/mail.h"
#include "collectives/transport/shm/shm.h"
#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/log.h"
#include "gpu_binding/base/nccl_files.h"
#include "pmix_boot/boot.h"
#include "pmix_boot/cause.h"

/* How often an elastic job may start anew because a rank died while the others
 * connected. */
static const int most_attempts = 100;

/* How long hvd_job_leave waits for agreed batches to end on all ranks. */
static const int64_t leave_timeout_ns = 30000000000;

static int open_parts(struct hvd_job *job, struct hvd_error *err)
{
    int status;

    hvd_submissions_init(&job->submissions, hvd_completion_end, job);
    hvd_progress_init(&job->progress);
    hvd_recording_init(&job->recording);
    hvd_job_settings_read(&job->settings);
    hvd_algorithms_read(&job->algorithms, job->settings.tune_table);
    status = hvd_wakeup_open(&job->wakeup, err);
    return status != 0 ? status : hvd_agent_rank_bind(err);
}

static void end_report(void *self, int status, const char *text)
{
    const struct hvd_job *job = self;

    (void)status;
    (void)text;
    hvd_straggler_report_write(job->report);
}

static void close_report(void *self)
{
    struct hvd_job *job = self;

    hvd_straggler_report_destroy(job->report);
    job->report = NULL;
}

static const struct hvd_source report_source = {
    .name = "straggler report",
    .end = end_report,
    .fail = end_report,
    .close = close_report,
};

static int open_report(struct hvd_job *job, struct hvd_error *err)
{
    const char *report = job->settings.report;
    int status;

    if (report == NULL && job->settings.metrics == NULL) {
        return 0;
    }
    status =
        hvd_straggler_report_create(job->boot, job->uplink, report, &job->report, err);
    if (status == 0) {
        hvd_loop_add(&job->loop, &report_source, job, NULL);
    }
    return status;
}

/* Pins the progress thread. A failure only costs speed, so it is logged and not returned.
 * For a wrong list, only the first rank of the node logs a warning. */
static void place_thread(struct hvd_job *job, const char *list)
{
    const struct hvd_layout *layout = &job->boot->layout;
    int local_rank = layout->local_rank[job->boot->rank];
    int local_size = hvd_layout_local_size(layout, layout->node[job->boot->rank]);
    struct hvd_error error = {0};
    int cpu;

    if (list == NULL) {
        return;
    }
    cpu = hvd_thread_cpu_find(list, local_rank, local_size, &error);
    if (cpu < 0) {
        hvd_log(local_rank == 0 ? HVD_LOG_WARN : HVD_LOG_INFO,
                "%s; the progress thread is not pinned", error.text);
    } else if (hvd_thread_cpu_pin(hvd_progress_thread(&job->progress), cpu, &error) !=
               0) {
        hvd_log(HVD_LOG_WARN, "%s", error.text);
    }
}

static int open_movers(struct hvd_job *job, struct hvd_error *err)
{
    int status = hvd_batches_open(job, err);

    if (status == 0) {
        hvd_p2p_source_open(job);
        hvd_gpu_tensors_join(job);
    }
    return status;
}

typedef int open_part(struct hvd_job *job, struct hvd_error *err);

/* Opens everything from the bootstrap to the progress thread. The network's addresses are
 * exchanged by driving the job, so the teams are opened before hvd_connect_net. */
static int start_job(struct hvd_job *job, struct hvd_boot_query *query,
                     struct hvd_error *err)
{
    static open_part *const parts[] = {
        hvd_live_open,        hvd_stacks_open,   hvd_recording_open,
        hvd_negotiation_open, hvd_tuning_create, hvd_connect_open_net,
        hvd_gpu_tensors_open, open_movers,       hvd_connect_net,
        open_report,          hvd_metrics_open,  hvd_progress_start_thread,
    };
    int status;

    hvd_talk_open(job);
    status = hvd_connect_job(job, query, err);
    if (status == 0) {
        status = hvd_nccl_files_set_here(job->boot->rank, err);
    }
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && status == 0; i++) {
        status = parts[i](job, err);
    }
    if (status == 0) {
        hvd_live_enter(&job->live, HVD_LIVE_RUNNING);
        place_thread(job, job->settings.thread_affinity);
    }
    return status;
}

/* Whether the remaining ranks of an elastic job may start anew. A rank that does not
 * connect in time may be stopped: the rendezvous service drops it when the others ask
 * again. */
static bool may_begin_anew(const struct hvd_job *job, int status)
{
    if (job->boot == NULL || !job->boot->is_elastic) {
        return false;
    }
    return status == HVD_ERR_PEER || status == HVD_ERR_TIMEOUT ||
           (status == HVD_ERR_NET && hvd_boot_lost(job->boot) >= 0);
}

/* Opens a job. Sets *again if that failed because of another rank and may be tried
 * again. */
static int try_to_start(struct hvd_boot_query *query, struct hvd_job **out, bool *again,
                        struct hvd_error *err)
{
    struct hvd_job *job = calloc(1, sizeof(*job));
    int status;

    *again = false;
    if (job == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory");
    }
    status = hvd_waiters_init(&job->waiters, err);
    if (status != 0) {
        free(job);
        return status;
    }
    status = open_parts(job, err);
    if (status == 0) {
        status = start_job(job, query, err);
    }
    if (status != 0) {
        *again = may_begin_anew(job, status);
        hvd_job_destroy(job);
        return status;
    }
    *out = job;
    return 0;
}

/* Whether this rank itself could not start, as opposed to having learnt that another rank
 * is missing. */
static bool is_own_failure(int status)
{
    return status != 0 && status != HVD_ERR_PEER && status != HVD_ERR_NET &&
           status != HVD_ERR_TIMEOUT && status != HVD_ERR_SHUTDOWN &&
           status != HVD_ERR_DISMISSED;
}

int hvd_job_create(const struct hvd_boot_query *who, struct hvd_job **out,
                   struct hvd_error *err)
{
    struct hvd_boot_query query = *who;
    struct hvd_error failure = {0};
    bool again = true;
    int status = 0;

    hvd_grace_end();
    hvd_cause_begin();
    for (int attempt = 0; again && attempt < most_attempts; attempt++) {
        status = try_to_start(&query, out, &again, &failure);
        if (again) {
            hvd_log(HVD_LOG_INFO, "starting anew: %s", failure.text);
        }
    }
    if (status != 0) {
        hvd_grace_begin();
    }
    if (is_own_failure(status)) {
        hvd_cause_tell(-1, -1, failure.text);
    }
    return status == 0 ? 0 : hvd_fail(err, status, "%s", failure.text);
}

static bool has_left(const void *arg)
{
    const struct hvd_job *job = arg;

    return hvd_failure_has_come(&job->failure) ||
           hvd_shutdown_phase(&job->shutdown) == HVD_PHASE_CLOSED;
}

/* Follows the name of a rank that leaves without a reason. A script that calls exit(7)
 * looks the same from here: neither atexit of Python nor that of libc is told the
 * status. */
static const char left_text[] =
    " has left the job: did its script end early, or have less data? See hvd.join()";

static void ask_to_leave(struct hvd_job *job, const char *why)
{
    const struct hvd_boot *boot = job->boot;
    const bool has_words = why != NULL && why[0] != '\0';
    char text[HVD_SHUTDOWN_WHY_BYTES];

    snprintf(text, sizeof(text), "rank %d on %s%s%s", boot->rank,
             boot->peers[boot->rank].host, has_words ? ": " : left_text,
             has_words ? why : "");
    hvd_cause_tell(boot->rank, boot->rank, has_words ? why : "");
    hvd_shutdown_ask(job, text, strlen(text));
}

void hvd_job_leave(struct hvd_job *job, const char *why)
{
    if (why != NULL) {
        hvd_grace_begin(); /* another rank may return before this one */
    }
    hvd_live_enter(&job->live, HVD_LIVE_LEAVING);
    hvd_progress_lock(job);
    if (!has_left(job) && hvd_shutdown_phase(&job->shutdown) == HVD_PHASE_RUNNING) {
        ask_to_leave(job, why);
    }
    if (!hvd_progress_drive_on(job, has_left, job, hvd_clock_ns() + leave_timeout_ns)) {
        hvd_log(HVD_LOG_WARN,
                "shutdown: not all ranks have finished within %d s; leaving without them",
                (int)(leave_timeout_ns / 1000000000));
        hvd_failure_end_job(
            job, job->boot->rank, HVD_ERR_TIMEOUT,
            "this rank left without the others: they did not finish in time");
    }
    hvd_progress_unlock(job);
}

void hvd_job_destroy(struct hvd_job *job)
{
    bool is_page_free;

    if (job == NULL) {
        return;
    }
    hvd_progress_stop_thread(job);
    is_page_free = hvd_stacks_close(&job->stacks);
    hvd_loop_close(&job->loop);
    hvd_mail_destroy(job->mail);
    hvd_shm_destroy(job->shm);
    hvd_submissions_finish(&job->submissions);
    hvd_sets_finish(&job->sets);
    hvd_wakeup_close(&job->wakeup);
    hvd_algorithms_finish(&job->algorithms);
    hvd_boot_destroy(job->boot);
    hvd_waiters_finish(&job->waiters);
    hvd_progress_finish(&job->progress);
    hvd_recording_finish(&job->recording);
    hvd_live_close(&job->live, is_page_free);
    free(job);
}

/* Stores the time of submission. The progress thread may take the request much later,
 * since the CPU of a late rank is often busy. */
static void stamp_request(struct hvd_request *request)
{
    int64_t now_ns = hvd_clock_ns();

    for (int i = 0; i < request->count; i++) {
        request->entries[i].submitted_ns = now_ns;
    }
}

int hvd_job_submit(struct hvd_job *job, struct hvd_request *request,
                   struct hvd_error *err)
{
    int status;

    if (job->report != NULL) {
        stamp_request(request);
    }
    if (hvd_recording_has_ranges(&job->recording)) {
        hvd_recording_begin_range(request);
    }
    status = hvd_submissions_add(&job->submissions, request, err);
    if (status == 0) {
        hvd_wakeup_notify_sleeper(&job->wakeup);
    }
    if (status != 0 && request->range != 0) {
        hvd_range_end(HVD_RANGES_OPS, request->range);
    }
    return status;
}

void hvd_job_forget(struct hvd_job *job, struct hvd_request *request)
{
    hvd_submissions_forget(&job->submissions, request);
}

int hvd_job_submit_p2p(struct hvd_job *job, struct hvd_request *request,
                       struct hvd_error *err)
{
    int status = hvd_submissions_add_p2p(&job->submissions, request, err);

    if (status == 0) {
        hvd_progress_start_p2p(job);
    }
    return status;
}

/* --- tensors on a GPU --- */

int hvd_job_use_gpu(struct hvd_job *job, int device, void *stream,
                    struct hvd_refcount **ready, struct hvd_error *err)
{
    struct hvd_float_env callers;
    int status;

    /* Opening the GPU creates the launcher thread, which inherits this environment and
     * rounds factors for NCCL. */
    hvd_float_env_enter(&callers);
    status = hvd_gpu_open(job->gpu, device, err);
    hvd_float_env_leave(&callers);
    return status != 0 ? status : hvd_gpu_mark_input(job->gpu, stream, ready, err);
}

int hvd_job_find_p2p_memory(struct hvd_job *job, struct hvd_entry *entry,
                            struct hvd_error *err)
{
    return hvd_gpu_p2p_find_memory(job->gpu, entry, err);
}

static bool has_landed(const void *gpu)
{
    return hvd_gpu_is_idle(gpu);
}

int hvd_job_gpu_synchronize(struct hvd_job *job, int timeout_ms, struct hvd_error *err)
{
    struct hvd_error failure;

    if (!hvd_gpu_is_open(job->gpu)) {
        return 0;
    }
    if (!hvd_gpu_is_idle(job->gpu)) {
        hvd_progress_wait(job, has_landed, job->gpu, timeout_ms);
    }
    if (!hvd_gpu_is_idle(job->gpu)) {
        return HVD_INPROGRESS;
    }
    hvd_progress_lock(job);
    failure = *hvd_failure_error(&job->failure);
    hvd_progress_unlock(job);
    return failure.status == 0 ? 0 : hvd_fail(err, failure.status, "%s", failure.text);
}

bool hvd_job_gpu_is_short(struct hvd_job *job)
{
    return hvd_gpu_is_short(job->gpu);
}

void hvd_job_gpu_freed(struct hvd_job *job)
{
    hvd_gpu_freed(job->gpu);
}

/* --- the job --- */

const struct hvd_boot *hvd_job_boot(const struct hvd_job *job)
{
    return job->boot;
}

void hvd_job_count_step(struct hvd_job *job)
{
    hvd_live_step(&job->live);
    hvd_metrics_count_step(&job->metrics);
}

void hvd_job_begin_section(struct hvd_job *job, const char *name)
{
    if (job->report != NULL) {
        hvd_straggler_report_begin_section(job->report, name);
    }
}

int hvd_job_end_section(struct hvd_job *job)
{
    return job->report != NULL ? hvd_straggler_report_end_section(job->report) : 0;
}

struct hvd_sets *hvd_job_sets(struct hvd_job *job)
{
    return &job->sets;
}
