/* SPDX-License-Identifier: Apache-2.0 */
/* The table. */
#include "contrib/bench/hvd_bench/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "contrib/bench/hvd_bench/explain.h"
#include "contrib/bench/hvd_bench/report_files.h"

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
           layout->size, layout->size == 1 ? "" : "s",
           bench_layout_write(layout, shape, sizeof(shape)));
    for (int node = 0; node < layout->nodes && node < 8; node++) {
        printf("# node %d: %s\n", node, hvd_host(hvd_layout_rank(layout, node, 0)));
    }
    printf("# %ld cores on node 0, load %.1f %.1f %.1f; %d blocks, %s\n",
           sysconf(_SC_NPROCESSORS_ONLN), load[0], load[1], load[2],
           field->options->blocks,
           field->options->is_unchecked ? "results not checked" : "all results checked");
}

int bench_report_begin(struct bench_report *report, struct bench_field *field, int argc,
                       char **argv, struct hvd_error *err)
{
    int status = 0;

    *report = (struct bench_report){.field = field};
    if (field->options->plot != NULL) {
        status = bench_plot_check(err);
    }
    if (status == 0) {
        print_head(field);
        fflush(stdout);
        status = bench_files_begin(report, argc, argv, err);
    }
    return status;
}

static void print_columns(const struct bench_report *report)
{
    printf("\n# %s\n%10s %-10s %8s %12s %12s %12s %8s %8s %7s %6s\n", report->title,
           "size", "who", "calls", "time us", "q1 us", "q3 us", "algbw", "busbw", "/ hvd",
           "line");
}

static void print_row(const struct bench_report *report, const struct bench_work *work,
                      int contender, const struct bench_row *row, bool is_first)
{
    double algbw = bench_algorithm_bandwidth(work->bytes, row->seconds.median);
    char size[32], ratio[32] = "", line[32] = "-";

    bench_size_write(work->bytes, size, sizeof(size));
    if (!is_first) {
        snprintf(ratio, sizeof(ratio), "%.2f", row->ratio);
    }
    if (row->line_after > 0) {
        snprintf(line, sizeof(line), "%.0f%s", row->line_after,
                 bench_row_moved(row) ? "!" : "");
    }
    printf("%10s %-10s %8d %12.2f %12.2f %12.2f %8.3f %8.3f %7s %6s\n",
           !is_first            ? ""
           : work->list != NULL ? work->list
                                : size,
           report->field->contenders[contender].name, row->calls,
           row->seconds.median * 1e6, row->seconds.quarter * 1e6,
           row->seconds.three_quarters * 1e6, algbw,
           algbw * bench_bus_factor(work->collective, work->size), ratio, line);
}

void bench_report_rows(struct bench_report *report, const struct bench_work *work,
                       const struct bench_row *rows)
{
    char title[80];
    bool is_first = true;

    bench_progress_erase(&report->field->progress);
    bench_work_title(work, title, sizeof(title));
    if (strcmp(title, report->title) != 0) {
        snprintf(report->title, sizeof(report->title), "%s", title);
        print_columns(report);
        for (int i = 0; i < report->field->count; i++) {
            if (!rows[i].is_there) {
                printf("# without %s: %s\n", report->field->contenders[i].name,
                       rows[i].reason);
            }
        }
    }
    for (int i = 0; i < report->field->count; i++) {
        if (rows[i].is_there) {
            print_row(report, work, i, &rows[i], is_first);
            bench_files_row(report, work, i, &rows[i]);
            is_first = false;
        }
    }
    fflush(stdout);
}

int bench_report_draw(const struct bench_report *report, struct hvd_error *err)
{
    const char *plot = report->field->options->plot;

    return plot == NULL ? 0 : bench_plot(report->json_path, plot, err);
}
