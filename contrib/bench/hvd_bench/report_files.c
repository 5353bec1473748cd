/* SPDX-License-Identifier: Apache-2.0 */
/* CSV and JSON have the same fields, and the same names for them. */
#include "contrib/bench/hvd_bench/report_files.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "contrib/bench/hvd_bench/explain.h"
#include "gpu_binding/base/json.h"

enum {
    FIELDS = 24,
    FIELD_ROOM = 48
};

/* A row as words; quoted: those that are text. */
struct fields {
    int count;
    struct field {
        const char *name;
        bool is_text;
        char value[FIELD_ROOM];
    } items[FIELDS];
};

static void add_text(struct fields *fields, const char *name, const char *value)
{
    struct field *field = &fields->items[fields->count++];

    field->name = name;
    field->is_text = true;
    snprintf(field->value, sizeof(field->value), "%s", value);
}

static void add_whole(struct fields *fields, const char *name, int64_t value)
{
    struct field *field = &fields->items[fields->count++];

    field->name = name;
    snprintf(field->value, sizeof(field->value), "%" PRId64, value);
}

static void add_real(struct fields *fields, const char *name, double value)
{
    struct field *field = &fields->items[fields->count++];

    field->name = name;
    snprintf(field->value, sizeof(field->value), "%.6g", value);
}

static void add_work(struct fields *fields, const struct bench_work *work)
{
    bool reduces = bench_collective_reduces(work->collective);

    add_text(fields, "collective", bench_collective_name(work->collective));
    add_text(fields, "dtype", hvd_dtype_name(work->dtype));
    add_text(fields, "op", reduces ? bench_op_name(work->op) : "");
    add_text(fields, "wire",
             work->wire != 0 ? hvd_dtype_name((enum hvd_dtype)work->wire) : "");
    add_whole(fields, "in_place", work->is_in_place);
    add_text(fields, "list", work->list != NULL ? work->list : "");
    add_whole(fields, "tensors", work->tensors);
    add_whole(fields, "bytes", work->bytes);
    add_whole(fields, "ranks", work->size);
}

static void add_times(struct fields *fields, const struct bench_work *work,
                      const struct bench_row *row)
{
    double algbw = bench_algorithm_bandwidth(work->bytes, row->seconds.median);

    add_whole(fields, "calls", row->calls);
    add_real(fields, "time_us", row->seconds.median * 1e6);
    add_real(fields, "q1_us", row->seconds.quarter * 1e6);
    add_real(fields, "q3_us", row->seconds.three_quarters * 1e6);
    add_real(fields, "least_us", row->seconds.least * 1e6);
    add_real(fields, "most_us", row->seconds.most * 1e6);
    add_real(fields, "algbw_gbs", algbw);
    add_real(fields, "busbw_gbs", algbw * bench_bus_factor(work->collective, work->size));
    add_real(fields, "over_hvd", row->ratio);
    add_real(fields, "line_before_ns", row->line_before);
    add_real(fields, "line_after_ns", row->line_after);
    add_whole(fields, "moved", bench_row_moved(row));
}

static void write_csv(FILE *csv, const struct fields *fields, bool names)
{
    for (int i = 0; i < fields->count; i++) {
        fprintf(csv, "%s%s", i > 0 ? "," : "",
                names ? fields->items[i].name : fields->items[i].value);
    }
    fputc('\n', csv);
}

static void write_json(FILE *json, const struct fields *fields, bool is_first)
{
    fputs(is_first ? "\n  {" : ",\n  {", json);
    for (int i = 0; i < fields->count; i++) {
        fprintf(json, "%s\"%s\": ", i > 0 ? ", " : "", fields->items[i].name);
        if (fields->items[i].is_text) {
            hvd_json_print(fields->items[i].value, json);
        } else {
            fputs(fields->items[i].value, json);
        }
    }
    fputc('}', json);
}

/* The machine and the command: what makes figures comparable. */
static void begin_json(const struct bench_report *report, int argc, char **argv)
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

static int open_file(const char *path, FILE **file, struct hvd_error *err)
{
    if (path == NULL) {
        return 0;
    }
    *file = fopen(path, "we");
    return *file != NULL ? 0 : hvd_fail(err, HVD_ERR_SYS, "cannot write %s: %m", path);
}

int bench_files_begin(struct bench_report *report, int argc, char **argv,
                      struct hvd_error *err)
{
    const struct bench_options *options = report->field->options;
    int status = open_file(options->csv, &report->csv, err);

    if (status == 0 && options->plot != NULL && options->json == NULL) {
        snprintf(report->json_path, sizeof(report->json_path), "%s.json", options->plot);
    } else if (options->json != NULL) {
        snprintf(report->json_path, sizeof(report->json_path), "%s", options->json);
    }
    if (status == 0 && report->json_path[0] != '\0') {
        status = open_file(report->json_path, &report->json, err);
    }
    if (status == 0 && report->json != NULL) {
        begin_json(report, argc, argv);
    }
    return status;
}

void bench_files_row(struct bench_report *report, const struct bench_work *work,
                     int contender, const struct bench_row *row)
{
    struct fields fields = {0};

    add_text(&fields, "who", report->field->contenders[contender].name);
    add_work(&fields, work);
    add_times(&fields, work, row);
    if (report->csv != NULL && report->rows == 0) {
        write_csv(report->csv, &fields, true);
    }
    if (report->csv != NULL) {
        write_csv(report->csv, &fields, false);
        fflush(report->csv);
    }
    if (report->json != NULL) {
        write_json(report->json, &fields, report->rows == 0);
    }
    report->rows++;
}

static int close_file(const char *path, FILE *file, struct hvd_error *err)
{
    bool failed;

    if (file == NULL) {
        return 0;
    }
    failed = ferror(file) != 0;
    return fclose(file) == 0 && !failed
               ? 0
               : hvd_fail(err, HVD_ERR_SYS, "could not write all of %s: %m", path);
}

int bench_files_end(struct bench_report *report, struct hvd_error *err)
{
    int status = close_file(report->field->options->csv, report->csv, err), other;

    if (report->json != NULL) {
        fputs("\n ]}\n", report->json);
    }
    other = close_file(report->json_path, report->json, err);
    return status < 0 ? status : other;
}
