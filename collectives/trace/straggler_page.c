/* SPDX-License-Identifier: Apache-2.0 */
/* The straggler report as a page for a browser. */
#include "collectives/trace/straggler_page.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/json.h"
#include "gpu_binding/base/module.h"

enum {
    PATH_BYTES = 4096
};

/* Where the data go in the frame. */
static const char data_mark[] = "@DATA@";

/* --- the frame --- */

/* Opens the frame of a build, of a wheel or of an installation. Writes the path that was
 * tried last. */
static FILE *open_frame(char path[PATH_BYTES])
{
    static const char *const places[] = {
        "../contrib/page/report.html",
        "../share/hvd/report.html",
        HVD_PAGE_FROM_LIBDIR,
        HVD_PAGE_INSTALLED,
    };
    char folder[PATH_BYTES / 2];
    FILE *file = NULL;

    hvd_module_folder(folder, sizeof(folder));
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && file == NULL; i++) {
        snprintf(path, PATH_BYTES, "%s%s", places[i][0] == '/' ? "" : folder, places[i]);
        file = fopen(path, "re");
    }
    return file;
}

/* Reads a file to its end. Returns NULL if that fails or memory is out. */
static char *read_all(FILE *file)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&text, &bytes);
    char part[16384];
    size_t got;
    bool failed = memory == NULL;

    while (!failed && (got = fread(part, 1, sizeof(part), file)) > 0) {
        failed = fwrite(part, 1, got, memory) != got;
    }
    failed = failed || ferror(file) != 0;
    if (memory != NULL) {
        failed |= fclose(memory) != 0;
    }
    if (failed) {
        free(text);
        text = NULL;
    }
    return text;
}

int hvd_straggler_page_read(char **frame, struct hvd_error *err)
{
    char path[PATH_BYTES];
    FILE *file = open_frame(path);
    char *text = NULL;

    if (file != NULL) {
        text = read_all(file);
        fclose(file);
    }
    if (text == NULL || strstr(text, data_mark) == NULL) {
        hvd_fail(err, HVD_ERR_SYS,
                 "cannot read %s (%s), which hvd needs for a report that ends in .html: "
                 "install hvd again, or choose another name",
                 path, text == NULL ? strerror(errno) : "no place for data in it");
        free(text);
        return HVD_ERR_SYS;
    }
    *frame = text;
    return 0;
}

/* --- the data --- */

unsigned char hvd_straggler_page_code(uint32_t us)
{
    uint64_t value = (uint64_t)us + 1;
    int exponent = 3;

    if (us == 0) {
        return 0;
    }
    for (; value < 8; exponent--) {
        value *= 2;
    }
    for (; value >= 16; exponent++) {
        value /= 2;
    }
    return exponent > 31 ? UINT8_MAX : (unsigned char)(8 * exponent + (int)(value & 7));
}

/* Prints bytes in base64. */
static void put_base64(const unsigned char *data, size_t bytes, FILE *out)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < bytes; i += 3) {
        const size_t left = bytes - i;
        const uint32_t group = (uint32_t)data[i] << 16 |
                               (left > 1 ? (uint32_t)data[i + 1] << 8 : 0) |
                               (left > 2 ? (uint32_t)data[i + 2] : 0);

        fputc(letters[group >> 18], out);
        fputc(letters[group >> 12 & 63], out);
        fputc(left > 1 ? letters[group >> 6 & 63] : '=', out);
        fputc(left > 2 ? letters[group & 63] : '=', out);
    }
}

/* Prints the times of all cells, rank by rank: the lateness or the waiting time. */
static int put_cells(const struct hvd_straggler_history *history, const char *key,
                     bool is_late, FILE *out)
{
    unsigned char *codes = malloc((size_t)history->size * (size_t)history->count + 1);
    size_t at = 0;

    if (codes == NULL) {
        return HVD_ERR_NOMEM;
    }
    for (int rank = 0; rank < history->size; rank++) {
        for (int i = 0; i < history->count; i++) {
            const struct hvd_straggler_cell *cell =
                &history->cells[(size_t)rank * (size_t)history->room + (size_t)i];

            codes[at++] =
                hvd_straggler_page_code(is_late ? cell->late_us : cell->waited_us);
        }
    }
    fprintf(out, ",\n  \"%s\": \"", key);
    put_base64(codes, at, out);
    fputc('"', out);
    free(codes);
    return 0;
}

/* Returns the mean over the ranks of the waiting time in a column. */
static int64_t mean_waited(const struct hvd_straggler_history *history, int column)
{
    int64_t sum = 0;

    for (int rank = 0; rank < history->size; rank++) {
        sum += history->cells[(size_t)rank * (size_t)history->room + (size_t)column]
                   .waited_us;
    }
    return sum / history->size;
}

static int put_time(const struct hvd_straggler_history *history, FILE *out)
{
    int64_t ended_us = 0;
    int status;

    fprintf(out,
            ",\n\"time\": {\n  \"unit\": \"%s\", \"width\": %" PRId64
            ", \"count\": %d,\n  \"ended_us\": [",
            history->has_steps ? "step" : "batch", history->width, history->count);
    for (int i = 0; i < history->count; i++) {
        ended_us =
            history->columns[i].ended_us > 0 ? history->columns[i].ended_us : ended_us;
        fprintf(out, "%s%" PRId64, i > 0 ? "," : "", ended_us);
    }
    fputs("],\n  \"moving_us\": [", out);
    for (int i = 0; i < history->count; i++) {
        fprintf(out, "%s%" PRId64, i > 0 ? "," : "", history->columns[i].moving_us);
    }
    fputs("],\n  \"waited_us\": [", out);
    for (int i = 0; i < history->count; i++) {
        fprintf(out, "%s%" PRId64, i > 0 ? "," : "", mean_waited(history, i));
    }
    fputc(']', out);
    status = put_cells(history, "late", true, out);
    status = status == 0 ? put_cells(history, "waited", false, out) : status;
    fputs("\n}", out);
    return status;
}

/* Prints the scores in ten-thousandths, so that no locale can put a comma into them. */
static int put_scores(const struct hvd_straggler_history *history, FILE *out)
{
    struct hvd_straggler_scores *scores = calloc((size_t)history->size, sizeof(*scores));
    int status = HVD_ERR_NOMEM;

    if (scores != NULL) {
        status = hvd_straggler_history_score(history, scores);
    }
    fputs(",\n\"scores\": [", out);
    for (int i = 0; status == 0 && history->count > 0 && i < history->size; i++) {
        fprintf(out, "%s[%d,%d]", i > 0 ? "," : "", (int)(scores[i].relative * 10000),
                (int)(scores[i].individual * 10000));
    }
    fputc(']', out);
    free(scores);
    return status;
}

static void put_buckets(const struct hvd_straggler_buckets *buckets, FILE *out)
{
    fputs(",\n\"buckets\": [", out);
    for (int i = 0; i < buckets->count; i++) {
        const struct hvd_straggler_bucket *bucket = &buckets->list[i];
        char kind[HVD_KIND_WORD];

        fprintf(out, "%s\n  {\"name\": ", i > 0 ? "," : "");
        hvd_json_print(bucket->name, out);
        fprintf(out,
                ", \"kind\": \"%s\", \"tensors\": %" PRId64 ", \"batches\": %" PRId64
                ", \"bytes\": %" PRId64 ", \"moving_us\": %" PRId64
                ", \"least_us\": %" PRId64 ", \"late_us\": %" PRId64 "}",
                hvd_kind_word(bucket->kind, kind), bucket->tensors, bucket->batches,
                bucket->bytes, bucket->moving_us,
                bucket->least_us < INT64_MAX ? bucket->least_us : 0, bucket->late_us);
    }
    fputs("\n]", out);
}

static void put_text(const char *key, const char *text, FILE *out)
{
    fprintf(out, "\"%s\": ", key);
    hvd_json_print(text, out);
}

static void put_bindings(const struct hvd_straggler_binding *bindings, int size,
                         FILE *out)
{
    fputs(",\n\"bindings\": [", out);
    for (int i = 0; bindings != NULL && i < size; i++) {
        fputs(i > 0 ? ",\n  {" : "\n  {", out);
        put_text("cpus", bindings[i].cpus, out);
        fputs(", ", out);
        put_text("gpu", bindings[i].gpu, out);
        fputs(", ", out);
        put_text("nic", bindings[i].nic, out);
        fputc('}', out);
    }
    fputs("\n]", out);
}

enum {
    MOST_CELLS_OF_RUNNING_JOB = 1 << 17, /* about 20 ms for the scores */
};

static int put_data(const struct hvd_straggler_sums *sums,
                    const struct hvd_straggler_job *job, FILE *out)
{
    const int64_t cells = (int64_t)sums->history->count * sums->size;
    int status;

    fputs("{\"report\": ", out);
    hvd_straggler_print_json(sums, job, out);
    status = put_time(sums->history, out);
    /* While a large job runs, its ranks would wait for the scores. */
    if (status == 0 && (sums->is_complete || cells <= MOST_CELLS_OF_RUNNING_JOB)) {
        status = put_scores(sums->history, out);
    } else {
        fputs(",\n\"scores\": []", out);
    }
    put_buckets(sums->buckets, out);
    put_bindings(job->bindings, sums->size, out);
    fputs("\n}\n", out);
    return status;
}

/* A "<" in a name must not end the script element: JSON has another way to write it. */
static void put_escaped(const char *data, FILE *out)
{
    for (const char *at = data; *at != '\0';) {
        const size_t plain = strcspn(at, "<");

        fwrite(at, 1, plain, out);
        at += plain;
        if (*at == '<') {
            fputs("\\u003c", out);
            at++;
        }
    }
}

int hvd_straggler_page_print(const char *frame, const struct hvd_straggler_sums *sums,
                             const struct hvd_straggler_job *job, FILE *out)
{
    const char *mark = strstr(frame, data_mark);
    char *data = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&data, &bytes);
    int status = HVD_ERR_NOMEM;

    if (memory != NULL) {
        status = put_data(sums, job, memory);
        status = fclose(memory) == 0 ? status : HVD_ERR_NOMEM;
    }
    if (status == 0) {
        fwrite(frame, 1, (size_t)(mark - frame), out);
        put_escaped(data, out);
        fputs(mark + strlen(data_mark), out);
    }
    free(data);
    return status;
}
