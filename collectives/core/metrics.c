/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics: counts, and the facts that go into the file of this node. */
#include "collectives/core/metrics.h"

#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "collectives/agreement/agreement.h"
#include "collectives/core/job_state.h"
#include "collectives/set/set.h"
#include "collectives/trace/metrics_counts.h"
#include "collectives/trace/metrics_file.h"
#include "collectives/trace/metrics_text.h"
#include "collectives/trace/straggler_report.h"
#include "collectives/trace/trace_text.h"
#include "collectives/transport/shm/mail.h"
#include "collectives/transport/shm/shm.h"
#include "collectives/transport/shm/shm_pages.h"
#include "gpu_binding/base/env.h"
#include "gpu_binding/base/log.h"
#include "pmix_boot/boot.h"

enum {
    EVERY_MS = 5000, /* most sites scrape every 15 to 60 s */
    /* A file system that answers at all takes milliseconds. */
    PATIENCE_MS = 3000,
    WORD_BYTES = 128,
};

/* From this number on, steps are Slurm's own, such as the batch script. */
static const unsigned long first_special_step = 0xfffffffaUL;

struct hvd_metrics_writer {
    struct hvd_metrics_node facts;
    struct hvd_metrics_file *file;
    struct hvd_metrics_lateness *lateness; /* [size] on rank 0; else NULL */
    const char **nodes; /* [size] on rank 0; else NULL */
    _Atomic uint64_t compared;
    char job[WORD_BYTES];
    char step[WORD_BYTES];
    char user[WORD_BYTES];
    char node[WORD_BYTES];
    int ranks[]; /* [local_size] */
};

static int local_size_of(const struct hvd_boot *boot)
{
    return hvd_layout_local_size(&boot->layout, boot->layout.node[boot->rank]);
}

size_t hvd_metrics_bytes(int local_size)
{
    return hvd_shm_round_to_page((size_t)local_size * sizeof(struct hvd_metrics_counts));
}

/* --- counts --- */

/* Returns when the rank began to wait for the batch: at its submission, or when its queue
 * became free. */
static int64_t since_of(const struct hvd_metrics *metrics,
                        const struct hvd_straggler_batch *note)
{
    int64_t since_ns = note->submitted_ns != 0 ? note->submitted_ns : note->started_ns;

    if (note->priority < 0) {
        return note->started_ns; /* of a set with a queue of its own */
    }
    return since_ns > metrics->ended_ns[note->priority]
               ? since_ns
               : metrics->ended_ns[note->priority];
}

void hvd_metrics_note(struct hvd_job *job, const struct hvd_batch *batch,
                      const struct hvd_straggler_batch *note)
{
    struct hvd_metrics *metrics = &job->metrics;
    const bool is_on_gpu = batch->device_number != 0;
    const struct hvd_metrics_run run = {
        .kind = note->kind,
        .bytes = note->bytes,
        .ranks = batch->set->count,
        .run_ns = note->ended_ns - note->started_ns,
    };

    if (metrics->own == NULL) {
        return;
    }
    hvd_metrics_count(metrics->own, note, is_on_gpu, since_of(metrics, note));
    if (!is_on_gpu) {
        hvd_metrics_time(metrics->own, &run, false);
    }
    if (note->priority >= 0) {
        metrics->ended_ns[note->priority] = note->ended_ns;
    }
}

void hvd_metrics_count_step(const struct hvd_metrics *metrics)
{
    if (metrics->own != NULL) {
        hvd_metrics_add(&metrics->own->steps, 1);
    }
}

/* Counts the time of the batch that has landed last. */
static void count_landed(struct hvd_metrics *metrics)
{
    if (metrics->landing_ns != 0) {
        hvd_metrics_time(metrics->own, metrics->landing, true);
    }
    metrics->landing_ns = 0;
}

/* Returns the time from the earliest begin to the latest end: spans of the device and of
 * the host, whose clocks differ, need not be in order. */
static int64_t extent_of(const struct hvd_trace_span *spans, int count)
{
    int64_t begin_ns = spans[0].begin_ns;
    int64_t end_ns = spans[0].end_ns;

    for (int i = 1; i < count; i++) {
        begin_ns = spans[i].begin_ns < begin_ns ? spans[i].begin_ns : begin_ns;
        end_ns = spans[i].end_ns > end_ns ? spans[i].end_ns : end_ns;
    }
    return end_ns - begin_ns;
}

void hvd_metrics_note_landed(struct hvd_job *job, const struct hvd_entry *entry,
                             int64_t since_ns, const struct hvd_trace_span *spans,
                             int count)
{
    struct hvd_metrics *metrics = &job->metrics;

    if (metrics->own == NULL || count == 0) {
        return;
    }
    if (metrics->landing_ns != since_ns) {
        count_landed(metrics);
        metrics->landing_ns = since_ns;
        *metrics->landing = (struct hvd_metrics_run){
            .kind = entry->descriptor.kind,
            .ranks = entry->request->set_size,
            .run_ns = extent_of(spans, count),
        };
    }
    metrics->landing->bytes += hvd_descriptor_bytes(&entry->descriptor);
}

void hvd_metrics_note_stalls(struct hvd_job *job)
{
    struct hvd_agreement_counts counts;

    if (job->metrics.own != NULL) {
        hvd_agreement_count(hvd_negotiation_agreement(&job->negotiation), &counts);
        hvd_metrics_set(&job->metrics.own->stall_warnings, counts.stall_warnings);
    }
}

void hvd_metrics_publish(struct hvd_job *job)
{
    struct hvd_metrics *metrics = &job->metrics;
    struct hvd_metrics_writer *writer = metrics->writer;
    const struct hvd_straggler_sums *sums;

    if (writer == NULL || writer->lateness == NULL) {
        return;
    }
    sums = hvd_straggler_report_sums(job->report);
    if (sums->compared == metrics->published) {
        return;
    }
    metrics->published = sums->compared;
    hvd_metrics_set(&writer->compared, (uint64_t)sums->compared);
    for (int i = 0; i < sums->size; i++) {
        const struct hvd_straggler_rank *rank = &sums->ranks[i];

        hvd_metrics_set(&writer->lateness[i].late_batches, (uint64_t)rank->last);
        hvd_metrics_set(&writer->lateness[i].late_us, (uint64_t)rank->late_us);
        hvd_metrics_set(&writer->lateness[i].waited_us, (uint64_t)rank->waited_us);
    }
}

void hvd_metrics_settle(struct hvd_job *job)
{
    count_landed(&job->metrics);
    hvd_metrics_publish(job);
}

/* --- labels --- */

static const char *value_of(const char *name, const char *fallback)
{
    const char *text = getenv(name);

    return text != NULL && text[0] != '\0' ? text : fallback;
}

/* A job of Slurm has Slurm's numbers; any other job has the number that hvd has made for
 * it. Several jobs may run in one batch script at the same time, for example by hvdrun,
 * so part of that number is added to the step "batch". If the ranks of a step form
 * several jobs (hvd_init_ranks), the first rank of a node differs between them, and its
 * number is added to the step. */
static void name_job(const struct hvd_boot *boot, struct hvd_metrics_writer *writer)
{
    const char *job = value_of(HVD_ENV_SLURM_JOB, NULL);
    const char *step = value_of(HVD_ENV_SLURM_STEP, NULL);
    const char *task = value_of(HVD_ENV_SLURM_LOCAL_ID, "0");

    if (job == NULL) {
        snprintf(writer->job, sizeof(writer->job), "%016" PRIx64, boot->number);
        snprintf(writer->step, sizeof(writer->step), "0");
        return;
    }
    snprintf(writer->job, sizeof(writer->job), "%s", job);
    if (step == NULL || strtoul(step, NULL, 10) >= first_special_step) {
        snprintf(writer->step, sizeof(writer->step), "batch.%08" PRIx32,
                 (uint32_t)boot->number);
        return;
    }
    if (boot->is_elastic || strcmp(task, "0") == 0) {
        task = NULL;
    }
    snprintf(writer->step, sizeof(writer->step), "%s%s%s", step, task != NULL ? "." : "",
             task != NULL ? task : "");
}

/* Takes the user from the environment: a question to a directory service may hang. */
static void name_user(struct hvd_metrics_writer *writer)
{
    const char *user = value_of(HVD_ENV_SLURM_JOB_USER, value_of(HVD_ENV_USER, NULL));

    if (user != NULL) {
        snprintf(writer->user, sizeof(writer->user), "%s", user);
    } else {
        snprintf(writer->user, sizeof(writer->user), "%u", (unsigned)getuid());
    }
}

static void name_file(const struct hvd_metrics_writer *writer, char *name, size_t bytes)
{
    snprintf(name, bytes, "hvd-%s.%s-%s.prom", writer->job, writer->step, writer->node);
    for (; *name != '\0'; name++) {
        if (!isalnum((unsigned char)*name) && strchr("._-", *name) == NULL) {
            *name = '_';
        }
    }
}

/* --- the file --- */

static char *make_text(void *context, bool is_last)
{
    struct hvd_metrics_writer *writer = context;
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);

    if (out == NULL) {
        return NULL;
    }
    writer->facts.is_running = !is_last;
    writer->facts.written_s = (int64_t)time(NULL);
    writer->facts.compared = hvd_metrics_get(&writer->compared);
    hvd_metrics_print(&writer->facts, out);
    fclose(out);
    return text;
}

static void free_writer(struct hvd_metrics_writer *writer)
{
    if (writer != NULL) {
        free(writer->lateness);
        free(writer->nodes);
        free(writer);
    }
}

/* On rank 0: makes room for what it alone knows. Returns false without memory. */
static bool add_lateness(const struct hvd_boot *boot, struct hvd_metrics_writer *writer)
{
    const size_t size = (size_t)boot->size;

    if (boot->rank != 0) {
        return true;
    }
    writer->lateness = calloc(size, sizeof(writer->lateness[0]));
    writer->nodes = calloc(size, sizeof(writer->nodes[0]));
    if (writer->lateness == NULL || writer->nodes == NULL) {
        return false;
    }
    for (int i = 0; i < boot->size; i++) {
        writer->nodes[i] = boot->peers[i].host;
    }
    return true;
}

static struct hvd_metrics_writer *create_writer(const struct hvd_job *job)
{
    const struct hvd_boot *boot = job->boot;
    const struct hvd_layout *layout = &boot->layout;
    const int local_size = local_size_of(boot);
    struct hvd_metrics_writer *writer =
        calloc(1, sizeof(*writer) + (size_t)local_size * sizeof(writer->ranks[0]));

    if (writer == NULL || !add_lateness(boot, writer)) {
        free_writer(writer);
        return NULL;
    }
    for (int i = 0; i < boot->size; i++) {
        if (layout->node[i] == layout->node[boot->rank]) {
            writer->ranks[layout->local_rank[i]] = i;
        }
    }
    name_job(boot, writer);
    name_user(writer);
    snprintf(writer->node, sizeof(writer->node), "%s", boot->peers[boot->rank].host);
    writer->facts = (struct hvd_metrics_node){
        .job = writer->job,
        .step = writer->step,
        .user = writer->user,
        .host = writer->node,
        .counts = (const void *)job->metrics.map,
        .ranks = writer->ranks,
        .local_size = local_size,
        .size = boot->size,
        .generation = boot->generation,
        .lateness = writer->lateness,
        .nodes = writer->nodes,
    };
    return writer;
}

/* Writes the absolute path of the folder: the program may change its directory. */
static int find_folder(const char *setting, char *path, size_t bytes,
                       struct hvd_error *err)
{
    char directory[PATH_MAX] = "";

    if (setting[0] != '/' && getcwd(directory, sizeof(directory)) == NULL) {
        return hvd_fail(err, HVD_ERR_SYS,
                        "cannot find the current directory, in which HVD_METRICS=%s is: "
                        "%m; no metrics are written",
                        setting);
    }
    snprintf(path, bytes, "%s%s%s", directory, setting[0] != '/' ? "/" : "", setting);
    return 0;
}

static int open_writer(struct hvd_job *job, struct hvd_error *err)
{
    struct hvd_metrics_writer *writer = create_writer(job);
    char directory[2 * PATH_MAX];
    char name[4 * WORD_BYTES];
    struct hvd_metrics_file_config config = {
        .directory = directory,
        .name = name,
        .every_ms = EVERY_MS,
        .patience_ms = PATIENCE_MS,
        .make_text = make_text,
        .context = writer,
    };
    int status;

    if (writer == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the metrics");
    }
    name_file(writer, name, sizeof(name));
    status = find_folder(job->settings.metrics, directory, sizeof(directory), err);
    if (status == 0) {
        status = hvd_metrics_file_open(&config, &writer->file, err);
    }
    if (status != 0) {
        free_writer(writer);
        return status;
    }
    job->metrics.writer = writer;
    return 0;
}

/* --- the source --- */

static void close_metrics(void *self)
{
    struct hvd_job *job = self;
    struct hvd_metrics *metrics = &job->metrics;

    hvd_metrics_settle(job);
    if (metrics->writer != NULL) {
        hvd_metrics_file_close(metrics->writer->file);
    }
    free_writer(metrics->writer);
    free(metrics->landing);
    if (metrics->map != NULL) {
        munmap(metrics->map, hvd_metrics_bytes(local_size_of(job->boot)));
    }
    *metrics = (struct hvd_metrics){0};
}

static const struct hvd_source metrics_source = {
    .name = "metrics",
    .close = close_metrics,
};

/* Maps the counts of the node. */
static int map_counters(struct hvd_job *job, struct hvd_error *err)
{
    const struct hvd_boot *boot = job->boot;
    const int local_size = local_size_of(boot);
    struct hvd_metrics *metrics = &job->metrics;
    int status;

    metrics->landing = calloc(1, sizeof(*metrics->landing));
    if (metrics->landing == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the metrics");
    }
    status = hvd_shm_map_reserved(job->shm, hvd_mail_reserved_bytes(local_size),
                                  hvd_metrics_bytes(local_size), &metrics->map, err);
    if (status == 0) {
        metrics->own = (struct hvd_metrics_counts *)(void *)metrics->map +
                       boot->layout.local_rank[boot->rank];
    }
    return status;
}

int hvd_metrics_open(struct hvd_job *job, struct hvd_error *err)
{
    struct hvd_error failure = {0};
    int status;

    (void)err;
    if (job->settings.metrics == NULL) {
        return 0;
    }
    hvd_loop_add(&job->loop, &metrics_source, job, NULL);
    status = map_counters(job, &failure);
    if (status == 0 && job->boot->layout.local_rank[job->boot->rank] == 0) {
        status = open_writer(job, &failure);
    }
    if (status != 0) {
        hvd_log(HVD_LOG_WARN, "%s", failure.text);
    }
    return 0;
}
