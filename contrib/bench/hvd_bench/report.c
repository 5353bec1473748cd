/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the table and writes the JSON file. */
#include "contrib/bench/hvd_bench/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "collectives/schedule/algorithm_table.h"
#include "contrib/bench/hvd_bench/explain.h"
#include "contrib/bench/hvd_bench/formats.h"
#include "contrib/bench/hvd_bench/scripts.h"
#include "gpu_binding/base/json.h"
#include "gpu_binding/base/number.h"

/* --- head --- */

const char *bench_processor_read(char *name, size_t room)
{
    FILE *info = fopen("/proc/cpuinfo", "re");
    char line[256];

    name[0] = '\0';
    while (info != NULL && name[0] == '\0' && fgets(line, sizeof(line), info) != NULL) {
        const char *colon = strchr(line, ':');

        if (strncmp(line, "model name", 10) == 0 && colon != NULL) {
            snprintf(name, room, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
        }
    }
    if (info != NULL) {
        fclose(info);
    }
    return name;
}

static void print_head(const struct bench_field *field)
{
    const struct hvd_layout *layout = &field->job->layout;
    char shape[256];
    double load[3] = {0};

    getloadavg(load, 3);
    printf("# hvd-bench %s: %d rank%s, layout %s (ranks of each node)\n", hvd_version(),
           layout->size, hvd_number_plural(layout->size),
           bench_layout_write(layout, shape, sizeof(shape)));
    for (int node = 0; node < layout->nodes && node < 8; node++) {
        printf("# node %d: %s\n", node, hvd_host(hvd_layout_rank(layout, node, 0)));
    }
    printf("# %ld cores on node 0, load %.1f %.1f %.1f; %d blocks, all results checked\n",
           sysconf(_SC_NPROCESSORS_ONLN), load[0], load[1], load[2],
           field->options->blocks);
}

/* Writes the machine and the command, without which figures cannot be compared. */
static void print_json_head(const struct bench_report *report, int argc, char **argv)
{
    const struct hvd_layout *layout = &report->field->job->layout;
    time_t now = time(NULL);
    char text[256];
    double load[3] = {0};

    getloadavg(load, 3);
    fprintf(report->json,
            "{\"program\": \"hvd-bench\", \"version\": \"%s\", \"command\": [",
            hvd_version());
    for (int i = 1; i < argc; i++) {
        fputs(i > 1 ? ", " : "", report->json);
        hvd_json_print(argv[i], report->json);
    }
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    fprintf(report->json, "],\n \"started\": \"%s\", \"ranks\": %d, \"nodes\": %d,", text,
            layout->size, layout->nodes);
    fprintf(report->json, " \"layout\": \"%s\", \"hosts\": [",
            bench_layout_write(layout, text, sizeof(text)));
    for (int node = 0; node < layout->nodes; node++) {
        fputs(node > 0 ? ", " : "", report->json);
        hvd_json_print(hvd_host(hvd_layout_rank(layout, node, 0)), report->json);
    }
    fputs("],\n \"processor\": ", report->json);
    hvd_json_print(bench_processor_read(text, sizeof(text)), report->json);
    fprintf(report->json,
            ",\n \"cores\": %ld, \"load\": [%.2f, %.2f, %.2f], \"blocks\": %d,\n"
            " \"rows\": [",
            sysconf(_SC_NPROCESSORS_ONLN), load[0], load[1], load[2],
            report->field->options->blocks);
}

static int open_json(struct bench_report *report, struct hvd_error *err)
{
    const struct bench_options *options = report->field->options;

    if (options->json != NULL) {
        snprintf(report->json_path, sizeof(report->json_path), "%s", options->json);
    } else if (options->plot != NULL) {
        snprintf(report->json_path, sizeof(report->json_path), "%s.json", options->plot);
    } else {
        return 0;
    }
    report->json = fopen(report->json_path, "we");
    return report->json != NULL
               ? 0
               : hvd_fail(err, HVD_ERR_SYS, "cannot write %s: %m", report->json_path);
}

int bench_report_begin(struct bench_report *report, struct bench_field *field, int argc,
                       char **argv, struct hvd_error *err)
{
    int status = 0;

    *report = (struct bench_report){.field = field};
    if (field->options->plot != NULL) {
        status = bench_plot_check(err);
    }
    if (status < 0) {
        return status;
    }
    print_head(field);
    fflush(stdout);
    status = open_json(report, err);
    if (status == 0 && report->json != NULL) {
        print_json_head(report, argc, argv);
    }
    return status;
}

/* --- rows --- */

static void print_columns(const struct bench_report *report)
{
    printf("\n# %s\n%10s %-10s %8s %12s %12s %12s %8s %8s %7s\n", report->title, "size",
           "who", "calls", "time us", "q1 us", "q3 us", "algbw", "busbw", "/ hvd");
}

static void print_row(const struct bench_work *work, const char *who,
                      const struct bench_row *row, bool is_first)
{
    double algbw = bench_algorithm_bandwidth(work->bytes, row->seconds.median);
    char size[32] = "", ratio[32] = "";

    if (is_first) {
        hvd_algorithm_size_write(work->bytes, size, sizeof(size));
    } else {
        snprintf(ratio, sizeof(ratio), "%.2f", row->ratio);
    }
    printf("%10s %-10s %8d %12.2f %12.2f %12.2f %8.3f %8.3f %7s\n", size, who, row->calls,
           row->seconds.median * 1e6, row->seconds.quarter * 1e6,
           row->seconds.three_quarters * 1e6, algbw,
           algbw * bench_bus_factor(work->collective, work->size), ratio);
}

static void print_formatted(struct bench_report *report, const struct bench_work *work,
                            const struct bench_row *row)
{
    report->busbw += bench_algorithm_bandwidth(work->bytes, row->seconds.median) *
                     bench_bus_factor(work->collective, work->size);
    report->printed++;
    bench_format_row(report->field->options->format, work, row, stdout);
}

static void write_row(struct bench_report *report, const struct bench_work *work,
                      const char *who, const struct bench_row *row)
{
    bool reduces = bench_collective_reduces(work->collective);
    double algbw = bench_algorithm_bandwidth(work->bytes, row->seconds.median);

    if (report->json == NULL) {
        return;
    }
    fprintf(report->json, "%s\n  {\"who\": ", report->rows++ > 0 ? "," : "");
    hvd_json_print(who, report->json);
    fprintf(
        report->json,
        ", \"collective\": \"%s\", \"dtype\": \"%s\", \"op\": \"%s\", \"bytes\": %" PRId64
        ", \"ranks\": %d, \"calls\": %d",
        bench_collective_name(work->collective), hvd_dtype_name(work->dtype),
        reduces ? bench_op_name(work->op) : "", work->bytes, work->size, row->calls);
    fprintf(report->json,
            ", \"time_us\": %.6g, \"q1_us\": %.6g, \"q3_us\": %.6g, \"least_us\": %.6g, "
            "\"most_us\": %.6g",
            row->seconds.median * 1e6, row->seconds.quarter * 1e6,
            row->seconds.three_quarters * 1e6, row->seconds.least * 1e6,
            row->seconds.most * 1e6);
    fprintf(report->json,
            ", \"algbw_gbs\": %.6g, \"busbw_gbs\": %.6g, \"over_hvd\": %.6g}", algbw,
            algbw * bench_bus_factor(work->collective, work->size), row->ratio);
}

static void begin_kind(struct bench_report *report, const struct bench_work *work,
                       const char *title, const struct bench_row *rows)
{
    enum bench_format format = report->field->options->format;

    snprintf(report->title, sizeof(report->title), "%s", title);
    if (format == BENCH_TABLE) {
        print_columns(report);
    } else {
        bench_format_columns(format, work, title, stdout);
    }
    for (int i = 0; i < report->field->count; i++) {
        if (!rows[i].is_there) {
            printf("# without %s: %s\n", report->field->contenders[i].name,
                   rows[i].reason);
        }
    }
}

void bench_report_rows(struct bench_report *report, const struct bench_work *work,
                       const struct bench_row *rows)
{
    char title[80];
    bool is_first = true;

    bench_progress_erase(&report->field->progress);
    bench_work_title(work, title, sizeof(title));
    if (strcmp(title, report->title) != 0) {
        begin_kind(report, work, title, rows);
    }
    for (int i = 0; i < report->field->count; i++) {
        const char *who = report->field->contenders[i].name;

        if (rows[i].is_there) {
            if (report->field->options->format == BENCH_TABLE) {
                print_row(work, who, &rows[i], is_first);
            } else {
                print_formatted(report, work, &rows[i]);
            }
            write_row(report, work, who, &rows[i]);
            is_first = false;
        }
    }
    fflush(stdout);
}

int bench_report_end(struct bench_report *report, bool has_succeeded,
                     struct hvd_error *err)
{
    const char *plot = report->field->options->plot;
    bool failed;

    if (has_succeeded && report->printed > 0) {
        bench_format_end(report->field->options->format, report->busbw / report->printed,
                         stdout);
    }
    if (report->json == NULL) {
        return 0;
    }
    fputs("\n ]}\n", report->json);
    failed = ferror(report->json) != 0;
    if (fclose(report->json) != 0 || failed) {
        return hvd_fail(has_succeeded ? err : NULL, HVD_ERR_SYS,
                        "could not write all of %s: %m", report->json_path);
    }
    return has_succeeded && plot != NULL ? bench_plot(report->json_path, plot, err) : 0;
}
