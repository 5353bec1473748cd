/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the straggler report as a table and as JSON. */
#include "collectives/trace/straggler_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/trace/straggler_cell.h"
#include "collectives/trace/straggler_verdict.h"
#include "gpu_binding/base/json.h"
#include "gpu_binding/base/number.h"

struct place {
    int rank;
    int64_t late_us;
};

/* Sorts the ranks with the most lateness first. */
static int compare_places(const void *a, const void *b)
{
    const struct place *left = a;
    const struct place *right = b;

    if (left->late_us != right->late_us) {
        return left->late_us > right->late_us ? -1 : 1;
    }
    return left->rank - right->rank;
}

/* Returns the ranks in the order of the table; NULL if memory is out. */
static struct place *order_ranks(const struct hvd_straggler_sums *sums)
{
    struct place *places = calloc((size_t)sums->size, sizeof(*places));

    if (places != NULL) {
        for (int i = 0; i < sums->size; i++) {
            places[i] = (struct place){i, sums->ranks[i].late_us};
        }
        qsort(places, (size_t)sums->size, sizeof(*places), compare_places);
    }
    return places;
}

static const char *bytes_text(char text[HVD_STRAGGLER_CELL], double bytes,
                              const char *per)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t unit = 0;

    while (bytes >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, HVD_STRAGGLER_CELL, "%.*f %s%s", unit == 0 ? 0 : 1, bytes, units[unit],
             per);
    return text;
}

static const char *percent_text(char text[HVD_STRAGGLER_CELL], int64_t part,
                                int64_t whole)
{
    snprintf(text, HVD_STRAGGLER_CELL, "%.1f %%",
             whole > 0 ? 100.0 * (double)part / (double)whole : 0.0);
    return text;
}

/* Rounds to the nearest; sum and count may be as large as the type allows. */
static int64_t mean_of(int64_t sum, int64_t count)
{
    return count > 0 ? sum / count + (sum % count >= count - count / 2 ? 1 : 0) : 0;
}

/* --- the table --- */

static int host_width(const struct hvd_straggler_sums *sums,
                      const struct hvd_straggler_job *job)
{
    size_t width = strlen("host");

    for (int i = 0; i < sums->size; i++) {
        size_t length = strlen(job->hosts[i]);

        width = length > width ? length : width;
    }
    return (int)width;
}

static void print_rank(const struct hvd_straggler_sums *sums,
                       const struct hvd_straggler_job *job, int rank, int width,
                       FILE *out)
{
    const struct hvd_straggler_rank *own = &sums->ranks[rank];
    char cells[5][HVD_STRAGGLER_CELL];

    fprintf(
        out, "%5d  %-*s %10" PRId64 " %8s %11s %11s %11s %8s\n", rank, width,
        job->hosts[rank], own->last, percent_text(cells[0], own->last, sums->compared),
        own->last > 0
            ? hvd_straggler_time_text(cells[1], (double)mean_of(own->late_us, own->last))
            : "-",
        own->last > 0 ? hvd_straggler_time_text(cells[2], (double)own->most_late_us)
                      : "-",
        hvd_straggler_time_text(cells[3], (double)own->waited_us),
        percent_text(cells[4], own->waited_us, job->elapsed_us));
}

static void print_ranks(const struct hvd_straggler_sums *sums,
                        const struct hvd_straggler_job *job, int most, FILE *out)
{
    struct place *places = order_ranks(sums);
    int shown = sums->size < most ? sums->size : most;
    int width = host_width(sums, job);

    fprintf(out, "\n rank  %-*s %10s %8s %11s %11s %11s %8s\n", width, "host",
            "times last", "of all", "late, mean", "late, most", "waited", "of time");
    for (int i = 0; i < shown; i++) {
        print_rank(sums, job, places != NULL ? places[i].rank : i, width, out);
    }
    if (shown < sums->size) {
        fprintf(out, "       and %d more ranks with less lateness\n", sums->size - shown);
    }
    fprintf(out,
            "Lateness: how long the second-slowest rank waited for the slowest. Batches "
            "with no late rank: %" PRId64 ".\n",
            sums->even);
    free(places);
}

static void print_kind(const struct hvd_straggler_sums *sums, int i, FILE *out)
{
    const struct hvd_straggler_kind *kind = &sums->kinds[i];
    double seconds = (double)kind->run_ns / 1e9;
    double bytes = (double)kind->bytes;
    char cells[3][HVD_STRAGGLER_CELL];
    char name[HVD_KIND_WORD];

    fprintf(out, "%-13s %9" PRId64 " %9" PRId64 " %11s %11s %13s\n",
            hvd_kind_word((enum hvd_kind)i, name), mean_of(kind->batches, sums->size),
            mean_of(kind->tensors, sums->size),
            bytes_text(cells[0], bytes / sums->size, ""),
            hvd_straggler_time_text(cells[1], seconds * 1e6 / sums->size),
            bytes > 0 && seconds > 0 ? bytes_text(cells[2], bytes / seconds, "/s") : "-");
}

/* Returns the rank that has spent the most time in the section. */
static int longest_rank(const struct hvd_straggler_sums *sums, int section)
{
    int rank = 0;

    for (int i = 1; i < sums->size; i++) {
        if (sums->section_ns[(size_t)i * HVD_SECTIONS + section] >
            sums->section_ns[(size_t)rank * HVD_SECTIONS + section]) {
            rank = i;
        }
    }
    return rank;
}

static void print_sections(const struct hvd_straggler_sums *sums,
                           const struct hvd_straggler_job *job, FILE *out)
{
    char cells[3][HVD_STRAGGLER_CELL];

    fprintf(out, "\n%-31s %11s %11s  %s\n", "each rank, in sections", "median", "longest",
            "by rank");
    for (int i = 0; i < sums->section_count; i++) {
        int rank = longest_rank(sums, i);
        double longest_ns = (double)sums->section_ns[(size_t)rank * HVD_SECTIONS + i];

        fprintf(out, "%-31s %11s %11s  %d on %s\n", sums->sections[i].name,
                hvd_straggler_time_text(
                    cells[0], (double)hvd_straggler_section_median(sums, i, -1) / 1e3),
                hvd_straggler_time_text(cells[1], longest_ns / 1e3), rank,
                job->hosts[rank]);
    }
}

void hvd_straggler_print(const struct hvd_straggler_sums *sums,
                         const struct hvd_straggler_job *job, int most, FILE *out)
{
    char elapsed[HVD_STRAGGLER_CELL];

    fprintf(out, "hvd: straggler report, %d rank%s, %s, %" PRId64 " batches compared\n",
            sums->size, hvd_number_plural(sums->size),
            hvd_straggler_time_text(elapsed, (double)job->elapsed_us), sums->compared);
    if (!sums->is_complete) {
        fputs("Incomplete: the job was still running when this was written, or it "
              "failed.\n",
              out);
    }
    hvd_straggler_print_verdict(sums, job, out);
    fputc('\n', out);
    print_ranks(sums, job, most, out);
    fprintf(out, "\n%-13s %9s %9s %11s %11s %13s\n", "each rank", "batches", "tensors",
            "data", "time", "rate");
    for (int i = 0; i < HVD_STRAGGLER_KINDS; i++) {
        if (sums->kinds[i].batches > 0) {
            print_kind(sums, i, out);
        }
    }
    fputs("Time does not include waiting for late ranks.\n", out);
    if (sums->section_count > 0) {
        print_sections(sums, job, out);
    }
}

/* --- JSON --- */

static void put_json_ranks(const struct hvd_straggler_sums *sums,
                           const struct hvd_straggler_job *job, FILE *out)
{
    fputs("  \"ranks\": [", out);
    for (int i = 0; i < sums->size; i++) {
        const struct hvd_straggler_rank *rank = &sums->ranks[i];

        fprintf(out, "%s\n    {\"rank\": %d, \"host\": ", i > 0 ? "," : "", i);
        hvd_json_print(job->hosts[i], out);
        fprintf(out,
                ", \"times_last\": %" PRId64 ", \"late_us\": %" PRId64
                ", \"late_mean_us\": %" PRId64 ", \"late_most_us\": %" PRId64
                ", \"waited_us\": %" PRId64 "}",
                rank->last, rank->late_us, mean_of(rank->late_us, rank->last),
                rank->most_late_us, rank->waited_us);
    }
    fputs("\n  ],\n", out);
}

static void put_json_kinds(const struct hvd_straggler_sums *sums, FILE *out)
{
    const char *before = "";

    fputs("  \"collectives_per_rank\": {", out);
    for (int i = 0; i < HVD_STRAGGLER_KINDS; i++) {
        const struct hvd_straggler_kind *kind = &sums->kinds[i];
        char name[HVD_KIND_WORD];

        if (kind->batches > 0) {
            fprintf(out,
                    "%s\n    \"%s\": {\"batches\": %" PRId64 ", \"tensors\": %" PRId64
                    ", \"bytes\": %" PRId64 ", \"time_us\": %" PRId64 "}",
                    before, hvd_kind_word((enum hvd_kind)i, name),
                    mean_of(kind->batches, sums->size),
                    mean_of(kind->tensors, sums->size), mean_of(kind->bytes, sums->size),
                    mean_of(kind->run_ns, (int64_t)sums->size * 1000));
            before = ",";
        }
    }
    fputs("\n  }", out);
}

static void put_json_sections(const struct hvd_straggler_sums *sums, FILE *out)
{
    fputs(",\n  \"sections_us\": {", out);
    for (int i = 0; i < sums->section_count; i++) {
        fputs(i > 0 ? ",\n    " : "\n    ", out);
        hvd_json_print(sums->sections[i].name, out);
        fputs(": [", out);
        for (int rank = 0; rank < sums->size; rank++) {
            fprintf(out, "%s%" PRId64, rank > 0 ? ", " : "",
                    sums->section_ns[(size_t)rank * HVD_SECTIONS + i] / 1000);
        }
        fputc(']', out);
    }
    fputs("\n  }", out);
}

/* Prints the verdict as the value of a key. */
static void put_json_verdict(const struct hvd_straggler_sums *sums,
                             const struct hvd_straggler_job *job, FILE *out)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&text, &bytes);

    if (memory != NULL) {
        hvd_straggler_print_verdict(sums, job, memory);
        fclose(memory);
    }
    fprintf(out,
            "  \"late_rank\": %d,\n  \"verdict\": ", hvd_straggler_judge(sums, job).rank);
    hvd_json_print(text != NULL ? text : "", out);
    fputs(",\n", out);
    free(text);
}

void hvd_straggler_print_json(const struct hvd_straggler_sums *sums,
                              const struct hvd_straggler_job *job, FILE *out)
{
    fprintf(out,
            "{\n  \"complete\": %s,\n  \"size\": %d,\n  \"elapsed_us\": %" PRId64
            ",\n  \"batches_compared\": %" PRId64 ",\n  \"batches_even\": %" PRId64 ",\n",
            sums->is_complete ? "true" : "false", sums->size, job->elapsed_us,
            sums->compared, sums->even);
    put_json_verdict(sums, job, out);
    put_json_ranks(sums, job, out);
    put_json_kinds(sums, out);
    if (sums->section_count > 0) {
        put_json_sections(sums, out);
    }
    fputs("\n}\n", out);
}
