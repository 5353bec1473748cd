/* SPDX-License-Identifier: Apache-2.0 */
/* Core's part of sends and receives. */
#include "collectives/core/p2p_source.h"

#include "collectives/core/completion.h"
#include "collectives/core/job_state.h"
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
    struct hvd_job *job = context;
    struct hvd_error err = {0};

    hvd_timeline_p2p_ended(job->timeline, entry, status);
    if (status == 0 && hvd_gpu_p2p_must_return(entry)) {
        status = hvd_gpu_p2p_return(&job->p2p_source.copies, entry, &err);
        if (status == 0) {
            return; /* hvd_p2p_source_progress_copies launches it */
        }
        text = err.text;
    }
    hvd_completion_finish(job, entry, status, text);
}

static bool has_settled(void *context)
{
    const struct hvd_job *job = context;

    return !hvd_gpu_p2p_are_returning(&job->p2p_source.copies) &&
           hvd_gpu_is_idle(job->gpu);
}

/* --- opening --- */

static void end_job(struct hvd_job *job, const struct hvd_error *failure)
{
    hvd_failure_end_job(job, job->boot->rank, failure->status, failure->text);
}

/* Opens the part for sends and receives. If memory is out, the job ends, and drop_p2p
 * ends the submitted messages. */
static int open_p2p(struct hvd_job *job)
{
    const int64_t warning_s =
        job->settings.stall_check_disable ? 0 : job->settings.stall_warning_s;
    const struct hvd_p2p_config config = {
        .boot = job->boot,
        .net = job->net,
        .shm = job->shm,
        .mail = job->mail,
        .ended = on_end,
        .sets = &job->sets,
        .settled = has_settled,
        .context = job,
        .warning_ns = warning_s * 1000000000,
    };
    struct hvd_p2p_source *p2p_source = &job->p2p_source;
    struct hvd_error failure = {0};
    int status;

    if (p2p_source->p2p != NULL || p2p_source->is_over) {
        return 0;
    }
    status = hvd_p2p_create(&config, &p2p_source->p2p, &failure);
    if (status != 0) {
        end_job(job, &failure);
        return status;
    }
    hvd_loop_open_gate(&job->loop, hvd_submissions_message_gate(&job->submissions));
    return 0;
}

/* Opens the part for sends and receives when another rank sends over the network. The
 * network calls this for each message of a rank until the rank's link is open, or until
 * the job ends. */
static void on_caller(void *context, int rank)
{
    struct hvd_job *job = context;

    if (open_p2p(job) == 0 && job->p2p_source.p2p != NULL) {
        hvd_p2p_note_caller(job->p2p_source.p2p, rank);
    }
}

void hvd_p2p_source_look(struct hvd_job *job)
{
    if (job->p2p_source.p2p == NULL && hvd_mail_has_come(job->mail, HVD_MAIL_P2P)) {
        open_p2p(job);
    }
}

/* --- progress --- */

static void start_message(struct hvd_job *job, struct hvd_entry *entry, int64_t now_ns)
{
    struct hvd_p2p_source *p2p_source = &job->p2p_source;
    struct hvd_error err = {0};
    int status;

    hvd_timeline_p2p_started(job->timeline, entry);
    if (!hvd_gpu_p2p_must_hold(&p2p_source->copies, entry)) {
        hvd_p2p_start(p2p_source->p2p, entry, now_ns);
        return;
    }
    status = hvd_gpu_p2p_hold(&p2p_source->copies, entry, &err);
    if (status != 0) {
        hvd_completion_finish(job, entry, status, err.text);
    }
}

bool hvd_p2p_source_start(struct hvd_job *job)
{
    const bool is_some = hvd_submissions_has_p2p(&job->submissions);
    const int64_t now_ns = is_some ? hvd_clock_ns() : 0;
    struct hvd_entry *entry;

    if (!is_some || job->p2p_source.is_over || open_p2p(job) != 0) {
        return is_some;
    }
    hvd_progress_note_p2p(&job->progress, now_ns);
    entry = hvd_submissions_take_p2p(&job->submissions);
    while (entry != NULL) {
        struct hvd_entry *next = entry->next; /* the entry may end and be freed */

        start_message(job, entry, now_ns);
        entry = next;
    }
    return is_some;
}

static unsigned progress_p2p(void *self, int64_t now_ns)
{
    struct hvd_job *job = self;
    bool moved = hvd_p2p_source_start(job);
    struct hvd_p2p *p2p = job->p2p_source.p2p;

    if (p2p == NULL) {
        return moved ? HVD_SOURCE_MOVED : 0;
    }
    moved |= hvd_p2p_progress(p2p);
    if (hvd_p2p_are_pending(p2p)) {
        hvd_p2p_warn(p2p, now_ns);
    }
    if (hvd_p2p_failure(p2p)->status != 0) {
        end_job(job, hvd_p2p_failure(p2p));
    }
    return (moved ? HVD_SOURCE_MOVED : 0) |
           (hvd_p2p_are_moving(p2p) ? HVD_SOURCE_WORKS : 0);
}

static bool settle_p2p(void *self, const struct hvd_timed_wait *wait)
{
    const struct hvd_job *job = self;
    const struct hvd_p2p_source *p2p_source = &job->p2p_source;
    const bool is_some = hvd_submissions_has_p2p(&job->submissions);

    if (p2p_source->p2p == NULL) {
        return !is_some &&
               (p2p_source->is_over || !hvd_mail_has_come(job->mail, HVD_MAIL_P2P));
    }
    hvd_p2p_suppress_wakeups(p2p_source->p2p,
                             wait->is_for_p2p && !hvd_p2p_are_moving(p2p_source->p2p));
    return !is_some && !hvd_p2p_have_news(p2p_source->p2p);
}

bool hvd_p2p_source_has_pending(const struct hvd_job *job)
{
    return hvd_p2p_are_pending(job->p2p_source.p2p) || hvd_p2p_source_is_copying(job);
}

int hvd_p2p_source_progress_copies(struct hvd_job *job, bool *moved,
                                   struct hvd_error *err)
{
    struct hvd_p2p_source *p2p_source = &job->p2p_source;
    struct hvd_entry *entry;
    int status;

    while ((status = hvd_gpu_p2p_next_held(&p2p_source->copies, &entry, err)) == 0) {
        hvd_p2p_start(p2p_source->p2p, entry, hvd_clock_ns());
        *moved = true;
    }
    if (status < 0) {
        return status;
    }
    while ((status = hvd_gpu_p2p_next_returned(&p2p_source->copies, &entry, err)) == 0) {
        hvd_completion_launch(job, entry);
        *moved = true;
    }
    if (status < 0) {
        return status;
    }
    if (p2p_source->wants_flush && !hvd_gpu_p2p_are_held(&p2p_source->copies)) {
        p2p_source->wants_flush = false;
        hvd_p2p_flush(p2p_source->p2p);
        *moved = true;
    }
    return 0;
}

bool hvd_p2p_source_is_copying(const struct hvd_job *job)
{
    return job->p2p_source.wants_flush || !hvd_gpu_p2p_are_idle(&job->p2p_source.copies);
}

bool hvd_p2p_source_is_moving(const struct hvd_job *job)
{
    const struct hvd_p2p *p2p = job->p2p_source.p2p;

    return p2p != NULL && hvd_p2p_are_moving(p2p);
}

bool hvd_p2p_source_has_failed(const struct hvd_job *job)
{
    const struct hvd_p2p *p2p = job->p2p_source.p2p;

    return p2p != NULL && hvd_p2p_failure(p2p)->status != 0;
}

static int64_t p2p_deadline(const void *self, int64_t now_ns)
{
    const struct hvd_job *job = self;
    const struct hvd_p2p *p2p = job->p2p_source.p2p;

    (void)now_ns;
    return p2p != NULL ? hvd_p2p_deadline(p2p) : -1;
}

/* --- the end --- */

static void flush_p2p(void *self, int status, const char *text)
{
    struct hvd_job *job = self;

    (void)status; /* submitted messages still run to their end */
    (void)text;
    hvd_p2p_source_start(job);
    if (hvd_gpu_p2p_are_held(&job->p2p_source.copies)) {
        job->p2p_source.wants_flush = true;
    } else if (job->p2p_source.p2p != NULL) {
        hvd_p2p_flush(job->p2p_source.p2p);
    }
}

static bool have_drained(const void *self)
{
    const struct hvd_job *job = self;
    const struct hvd_p2p *p2p = job->p2p_source.p2p;

    return p2p == NULL || (!hvd_p2p_source_is_copying(job) && hvd_p2p_have_drained(p2p));
}

void hvd_p2p_source_abort_set(struct hvd_job *job, const struct hvd_set *set)
{
    if (job->p2p_source.p2p != NULL) {
        hvd_p2p_abort_set(job->p2p_source.p2p, set);
    }
}

static void drop_p2p(void *self, int status, const char *text)
{
    struct hvd_job *job = self;
    struct hvd_entry *entry = hvd_submissions_take_p2p(&job->submissions);

    job->p2p_source.is_over = true;
    while (entry != NULL) {
        struct hvd_entry *next = entry->next;

        hvd_completion_finish(job, entry, status, text);
        entry = next;
    }
    while ((entry = hvd_gpu_p2p_drop(&job->p2p_source.copies)) != NULL) {
        hvd_completion_finish(job, entry, status, text);
    }
    job->p2p_source.wants_flush = false;
    if (job->p2p_source.p2p != NULL) {
        hvd_p2p_drop(job->p2p_source.p2p, status, text);
    }
}

static void close_p2p(void *self)
{
    struct hvd_job *job = self;

    hvd_p2p_destroy(job->p2p_source.p2p);
    job->p2p_source.p2p = NULL;
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

void hvd_p2p_source_open(struct hvd_job *job)
{
    job->p2p_source.copies.gpu = job->gpu;
    if (job->net != NULL) {
        hvd_net_watch(job->net, HVD_NET_LINK_CHANNEL, on_caller, job);
    }
    hvd_loop_add(&job->loop, &p2p_source, job,
                 hvd_submissions_message_gate(&job->submissions));
}
