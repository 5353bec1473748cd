/* SPDX-License-Identifier: Apache-2.0 */
/* The straggler report: passes measurements up the tree, and writes the result. */
#include "collectives/trace/straggler_report.h"

#include <stdlib.h>

#include "collectives/trace/straggler_output.h"
#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/log.h"

struct hvd_straggler_report {
    const struct hvd_boot *boot;
    struct hvd_uplink *uplink;
    struct hvd_straggler_waits *waits;
    struct hvd_straggler_sections sections;
    struct hvd_straggler_output output; /* rank 0 */
    bool has_page;
    bool has_told; /* this rank has told where it runs */
    struct hvd_straggler_binding own;
    struct hvd_straggler_binding *bindings; /* [size] on rank 0, if there is a page */
    int64_t began_ns;
    int64_t updated_ms;
    int64_t updated; /* number of compared batches in the report that was written then */
    bool is_written; /* or is not to be written */
};

/* A slow file system blocks the rank while the report is written; once a minute is not
 * felt. */
static const int64_t update_every_ms = 60000;

static void open_output(struct hvd_straggler_report *report, const char *setting)
{
    struct hvd_error error;

    if (hvd_straggler_output_init(&report->output, setting, &error) != 0) {
        hvd_log(HVD_LOG_WARN, "%s; it will be printed on standard error at the end",
                error.text);
    }
}

int hvd_straggler_report_create(const struct hvd_boot *boot, struct hvd_uplink *uplink,
                                const char *setting, struct hvd_straggler_report **out,
                                struct hvd_error *err)
{
    struct hvd_straggler_report *report = calloc(1, sizeof(*report));
    int status;

    if (report == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the report");
    }
    status = hvd_straggler_waits_create(boot->rank, boot->size,
                                        hvd_uplink_children(uplink), &report->waits, err);
    if (status != 0) {
        free(report);
        return status;
    }
    hvd_straggler_sections_init(&report->sections);
    hvd_straggler_waits_watch(report->waits, &report->sections);
    report->boot = boot;
    report->uplink = uplink;
    report->began_ns = hvd_clock_ns();
    report->is_written = setting == NULL;
    report->has_page = setting != NULL && hvd_straggler_output_is_page(setting);
    if (report->has_page) {
        /* here, because the thread that drives later may be bound to other CPUs */
        hvd_straggler_binding_find(boot->rank, &report->own);
        status = hvd_straggler_waits_keep(report->waits, report->began_ns, err);
    }
    if (status == 0 && report->has_page && boot->rank == 0) {
        report->bindings = calloc((size_t)boot->size, sizeof(report->bindings[0]));
        status =
            report->bindings != NULL
                ? 0
                : hvd_fail(err, HVD_ERR_NOMEM, "no memory for the page of the report");
    }
    if (status != 0) {
        hvd_straggler_report_destroy(report);
        return status;
    }
    if (boot->rank == 0 && setting != NULL) {
        open_output(report, setting);
    }
    *out = report;
    return 0;
}

/* Sends the complete windows to the parent. If memory is out, they are missing on rank 0,
 * and the report says that it is incomplete. */
static void send_up(struct hvd_straggler_report *report)
{
    const void *payload;
    size_t bytes;

    while (hvd_straggler_waits_take(report->waits, &payload, &bytes)) {
        (void)hvd_uplink_send_up(report->uplink, HVD_MESSAGE_STRAGGLERS, payload, bytes);
    }
}

/* Keeps a binding on rank 0, and passes it on elsewhere. */
static void take_binding(struct hvd_straggler_report *report,
                         const struct hvd_straggler_binding *binding)
{
    if (report->boot->rank != 0) {
        (void)hvd_uplink_send_up(report->uplink, HVD_MESSAGE_STRAGGLERS, binding,
                                 sizeof(*binding));
    } else if (report->bindings != NULL) {
        report->bindings[binding->rank] = *binding;
    }
}

/* Tells where this rank runs, once. */
static void tell_binding(struct hvd_straggler_report *report)
{
    if (report->has_page && !report->has_told) {
        report->has_told = true;
        take_binding(report, &report->own);
    }
}

static void write_now(const struct hvd_straggler_report *report)
{
    const struct hvd_boot *boot = report->boot;
    const char **hosts = calloc((size_t)boot->size, sizeof(hosts[0]));
    struct hvd_straggler_job job = {
        .hosts = hosts,
        .elapsed_us = (hvd_clock_ns() - report->began_ns) / 1000,
        .bindings = report->bindings,
    };
    struct hvd_error error;

    if (hosts == NULL) {
        hvd_log(HVD_LOG_WARN, "no memory for the report");
        return;
    }
    for (int i = 0; i < boot->size; i++) {
        hosts[i] = boot->peers[i].host;
    }
    if (hvd_straggler_output_write(&report->output,
                                   hvd_straggler_waits_sums(report->waits), &job,
                                   &error) != 0) {
        hvd_log(HVD_LOG_WARN, "%s", error.text);
    }
    free(hosts);
}

static void update_report(struct hvd_straggler_report *report)
{
    int64_t known;

    if (report->boot->rank != 0 || !report->output.is_plain) {
        return;
    }
    known = hvd_straggler_waits_sums(report->waits)->compared;
    if (known == report->updated ||
        (report->updated > 0 && hvd_clock_ms() - report->updated_ms < update_every_ms)) {
        return;
    }
    report->updated = known;
    report->updated_ms = hvd_clock_ms();
    write_now(report);
}

void hvd_straggler_report_begin_section(struct hvd_straggler_report *report,
                                        const char *name)
{
    hvd_straggler_sections_begin(&report->sections, name, hvd_clock_ns());
}

int hvd_straggler_report_end_section(struct hvd_straggler_report *report)
{
    return hvd_straggler_sections_end(&report->sections, hvd_clock_ns());
}

void hvd_straggler_report_note(struct hvd_straggler_report *report,
                               const struct hvd_straggler_batch *batch)
{
    tell_binding(report);
    hvd_straggler_waits_note(report->waits, batch);
    send_up(report);
    update_report(report);
}

void hvd_straggler_report_merge(struct hvd_straggler_report *report, const void *payload,
                                size_t bytes)
{
    struct hvd_straggler_binding binding;

    if (hvd_straggler_binding_parse(payload, bytes, report->boot->size, &binding)) {
        take_binding(report, &binding);
        return;
    }
    if (hvd_straggler_waits_merge(report->waits, payload, bytes) == HVD_ERR_ARG) {
        hvd_log(HVD_LOG_DEBUG, "ignored a malformed message of the straggler report");
    }
    send_up(report);
    update_report(report);
}

void hvd_straggler_report_close(struct hvd_straggler_report *report)
{
    tell_binding(report);
    hvd_straggler_waits_close(report->waits);
    send_up(report);
}

void hvd_straggler_report_write(struct hvd_straggler_report *report)
{
    if (report->boot->rank == 0 && !report->is_written) {
        report->is_written = true;
        write_now(report);
    }
}

const struct hvd_straggler_sums *
hvd_straggler_report_sums(struct hvd_straggler_report *report)
{
    return hvd_straggler_waits_sums(report->waits);
}

void hvd_straggler_report_destroy(struct hvd_straggler_report *report)
{
    if (report != NULL) {
        hvd_straggler_output_finish(&report->output);
        hvd_straggler_waits_destroy(report->waits);
        hvd_straggler_sections_finish(&report->sections);
        free(report->bindings);
        free(report);
    }
}
