/* SPDX-License-Identifier: Apache-2.0 */
#include "contrib/info/nccl/report.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "contrib/info/hostlist.h"
#include "contrib/info/nccl/advice.h"
#include "gpu_binding/base/json.h"

/* Some of the files: those with these indices, or the first `count` if it is NULL. */
struct part {
    const struct hvd_info_nccl_file *files;
    const int *indices;
    int count;
};

static const struct hvd_info_nccl_file *file_of(const struct part *part, int i)
{
    return &part->files[part->indices != NULL ? part->indices[i] : i];
}

static struct part all_of(const struct hvd_info_nccl_report *report)
{
    return (struct part){report->files, NULL, report->file_count};
}

static struct part part_of(const struct hvd_info_nccl_report *report,
                           const struct hvd_info_nccl_kind *kind)
{
    return (struct part){report->files, kind->files, kind->file_count};
}

static int compare_numbers(long a, long b)
{
    return (a > b) - (a < b);
}

int hvd_info_nccl_files_compare(const void *left, const void *right)
{
    const struct hvd_info_nccl_file *a = left;
    const struct hvd_info_nccl_file *b = right;
    int order;

    if (a->rank != b->rank) {
        return a->rank < 0 ? 1 : b->rank < 0 ? -1 : compare_numbers(a->rank, b->rank);
    }
    order = strcmp(a->host, b->host);
    return order != 0 ? order : compare_numbers(a->pid, b->pid);
}

/* --- ranks and nodes --- */

/* Returns whether file i is the first of its rank. */
static bool begins_rank(const struct part *part, int i)
{
    const int rank = file_of(part, i)->rank;

    return rank >= 0 && (i == 0 || file_of(part, i - 1)->rank != rank);
}

static int count_ranks(const struct part *part)
{
    int count = 0;

    for (int i = 0; i < part->count; i++) {
        count += begins_rank(part, i);
    }
    return count;
}

/* Returns the number of processes whose rank is unknown. */
static int count_unknown(const struct part *part)
{
    int count = 0;

    for (int i = 0; i < part->count; i++) {
        count += file_of(part, i)->rank < 0;
    }
    return count;
}

static void print_range(int first, int last, const char **separator, FILE *out)
{
    fprintf(out, "%s%d", *separator, first);
    if (last > first) {
        fprintf(out, "-%d", last);
    }
    *separator = ",";
}

/* Prints the ranks: "0-3,7". */
static void print_ranks(const struct part *part, FILE *out)
{
    const char *separator = "";
    int first = -1;
    int last = -1;

    for (int i = 0; i < part->count; i++) {
        const int rank = file_of(part, i)->rank;

        if (!begins_rank(part, i)) {
            continue;
        }
        if (first >= 0 && rank > last + 1) {
            print_range(first, last, &separator, out);
            first = rank;
        }
        first = first < 0 ? rank : first;
        last = rank;
    }
    if (first >= 0) {
        print_range(first, last, &separator, out);
    }
}

/* Prints the ranks below the highest one that have no file. Returns whether there are
 * some. */
static bool print_missing(const struct part *part, FILE *out)
{
    const char *separator = "";
    int next = 0;

    for (int i = 0; i < part->count; i++) {
        if (begins_rank(part, i)) {
            const int rank = file_of(part, i)->rank;

            if (rank > next) {
                print_range(next, rank - 1, &separator, out);
            }
            next = rank + 1;
        }
    }
    return separator[0] != '\0';
}

/* Prints the ranks that have several files. Returns whether there are some. */
static bool print_repeated(const struct part *part, FILE *out)
{
    const char *separator = "";

    for (int i = 1; i < part->count; i++) {
        const int rank = file_of(part, i)->rank;

        if (rank >= 0 && rank == file_of(part, i - 1)->rank &&
            (i < 2 || rank != file_of(part, i - 2)->rank)) {
            print_range(rank, rank, &separator, out);
        }
    }
    return separator[0] != '\0';
}

static int print_nodes(const struct part *part, FILE *out, struct hvd_error *err)
{
    const char **names = malloc(((size_t)part->count + 1) * sizeof(*names));
    int count = 0;

    if (names == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the names of %d nodes",
                        part->count);
    }
    for (int i = 0; i < part->count; i++) {
        names[i] = file_of(part, i)->host;
    }
    qsort(names, (size_t)part->count, sizeof(*names), hvd_info_hostlist_compare);
    for (int i = 0; i < part->count; i++) {
        if (count == 0 || strcmp(names[i], names[count - 1]) != 0) {
            names[count++] = names[i];
        }
    }
    hvd_info_hostlist_print(names, count, out);
    free(names);
    return 0;
}

/* --- text --- */

static const char *plural(long count)
{
    return count == 1 ? "" : "s";
}

/* Prints "3 ranks and 1 process". */
static void print_count(const struct part *part, bool has_ranks, FILE *out)
{
    const int ranks = count_ranks(part);
    const int unknown = count_unknown(part);

    if (ranks > 0) {
        fprintf(out, "%d rank%s", ranks, plural(ranks));
        if (has_ranks) {
            fputs(" (", out);
            print_ranks(part, out);
            fputc(')', out);
        }
    }
    if (unknown > 0) {
        fprintf(out, "%s%d process%s", ranks > 0 ? " and " : "", unknown,
                unknown == 1 ? "" : "es");
    }
}

static int print_kind(const struct hvd_info_nccl_report *report,
                      const struct hvd_info_nccl_kind *kind, FILE *out,
                      struct hvd_error *err)
{
    const struct part part = part_of(report, kind);
    const struct hvd_info_nccl_file *first = &report->files[kind->first];
    const char *advice = hvd_info_nccl_advice(kind->text);
    int status;

    fputc('\n', out);
    print_count(&part, true, out);
    fputs(" on ", out);
    status = print_nodes(&part, out, err);
    if (status != 0) {
        return status;
    }
    fprintf(out, ", %ld time%s, ", kind->lines, plural(kind->lines));
    if (kind->time[0] != '\0') {
        fprintf(out, "first at %s by ", kind->time);
    } else {
        fputs("such as by ", out);
    }
    if (first->rank >= 0) {
        fprintf(out, "rank %d on %s:\n", first->rank, first->host);
    } else {
        fprintf(out, "process %ld on %s:\n", first->pid, first->host);
    }
    fprintf(out, "    %s\n", kind->text);
    if (advice != NULL) {
        fprintf(out, "    what to do: %s\n", advice);
    }
    return 0;
}

/* Prints a sentence about some ranks, if there are any. */
static int print_note(const struct part *part, bool (*print)(const struct part *, FILE *),
                      const char *sentence, FILE *out, struct hvd_error *err)
{
    char *list = NULL;
    size_t bytes;
    FILE *memory = open_memstream(&list, &bytes);
    bool has_some;

    if (memory == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the list of ranks");
    }
    has_some = print(part, memory);
    if (fclose(memory) != 0) {
        free(list);
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the list of ranks");
    }
    if (has_some) {
        fprintf(out, "%s: %s\n", sentence, list);
    }
    free(list);
    return 0;
}

int hvd_info_nccl_print(const struct hvd_info_nccl_report *report, FILE *out,
                        struct hvd_error *err)
{
    const struct part all = all_of(report);
    const int kinds = report->kinds.count;
    int status;

    fprintf(out, "%s: %d file%s of ", report->directory, report->file_count,
            plural(report->file_count));
    print_count(&all, false, out);
    fputs(" on ", out);
    status = print_nodes(&all, out, err);
    if (status == 0 && kinds == 0) {
        fputs("; no warnings of NCCL\n", out);
    } else if (status == 0) {
        const bool is_ordered = kinds > 1 && report->kinds.items[0].time[0] != '\0';

        fprintf(out, "; %d kind%s of warning%s\n", kinds, plural(kinds),
                is_ordered ? ", the earliest first" : "");
    }
    if (status == 0) {
        status = print_note(&all, print_missing,
                            "ranks without a file, because they did not start NCCL or "
                            "wrote elsewhere",
                            out, err);
    }
    if (status == 0) {
        status = print_note(&all, print_repeated,
                            "ranks with several files, of several processes or jobs; "
                            "use a new folder for each job",
                            out, err);
    }
    for (int i = 0; i < kinds && status == 0; i++) {
        status = print_kind(report, &report->kinds.items[i], out, err);
    }
    if (status == 0 && report->kinds.left_out > 0) {
        fprintf(out, "\n%ld further warning%s of more kinds than can be listed\n",
                report->kinds.left_out, plural(report->kinds.left_out));
    }
    return status;
}

/* --- JSON --- */

static int print_part_json(const struct part *part, FILE *out, struct hvd_error *err)
{
    int status;

    fprintf(out, "\"rank_count\": %d, \"unknown_rank_count\": %d, \"ranks\": \"",
            count_ranks(part), count_unknown(part));
    print_ranks(part, out);
    fputs("\", \"nodes\": \"", out);
    status = print_nodes(part, out, err);
    fputc('"', out);
    return status;
}

static int print_kind_json(const struct hvd_info_nccl_report *report,
                           const struct hvd_info_nccl_kind *kind, FILE *out,
                           struct hvd_error *err)
{
    const struct part part = part_of(report, kind);
    const char *advice = hvd_info_nccl_advice(kind->text);
    int status;

    fputs("{\"text\": ", out);
    hvd_json_print(kind->text, out);
    fprintf(out,
            ", \"count\": %ld, \"first_time\": \"%s\", \"first_node\": ", kind->lines,
            kind->time);
    hvd_json_print(report->files[kind->first].host, out);
    fprintf(out, ", \"first_rank\": %d, ", report->files[kind->first].rank);
    status = print_part_json(&part, out, err);
    fputs(", \"advice\": ", out);
    hvd_json_print(advice != NULL ? advice : "", out);
    fputc('}', out);
    return status;
}

int hvd_info_nccl_json(const struct hvd_info_nccl_report *report, FILE *out,
                       struct hvd_error *err)
{
    const struct part all = all_of(report);
    int status;

    fputs("{\"directory\": ", out);
    hvd_json_print(report->directory, out);
    fprintf(out, ", \"file_count\": %d, ", report->file_count);
    status = print_part_json(&all, out, err);
    fputs(", \"missing_ranks\": \"", out);
    (void)print_missing(&all, out);
    fputs("\", \"repeated_ranks\": \"", out);
    (void)print_repeated(&all, out);
    fputs("\", \"warnings\": [", out);
    for (int i = 0; i < report->kinds.count && status == 0; i++) {
        fputs(i > 0 ? ", " : "", out);
        status = print_kind_json(report, &report->kinds.items[i], out, err);
    }
    fprintf(out, "], \"left_out_count\": %ld}\n", report->kinds.left_out);
    return status;
}
