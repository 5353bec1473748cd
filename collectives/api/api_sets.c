/* SPDX-License-Identifier: Apache-2.0 */
/* The public interface: process sets and join. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/api/api_start.h"
#include "gpu_binding/base/attr.h"

HVD_EXPORT int hvd_join_start(struct hvd_request **request, struct hvd_error *err)
{
    struct hvd_start start = {.kind = HVD_KIND_JOIN, .word = "Join"};

    return hvd_start_without_tensor(&start, "join", -1, request, err);
}

/* --- adding and removing --- */

static int compare_ranks(const void *a, const void *b)
{
    const int *one = a, *other = b;

    return (*one > *other) - (*one < *other);
}

static int check_ranks(const int *ranks, int count, int size, struct hvd_error *err)
{
    for (int i = 0; i < count; i++) {
        if (ranks[i] < 0 || ranks[i] >= size) {
            return hvd_fail(
                err, HVD_ERR_ARG,
                "a process set cannot have rank %d: the job has ranks 0 to %d", ranks[i],
                size - 1);
        }
        if (i > 0 && ranks[i] == ranks[i - 1]) {
            return hvd_fail(err, HVD_ERR_ARG, "a process set has rank %d twice",
                            ranks[i]);
        }
    }
    return 0;
}

/* "0,2,5", which the caller frees; NULL without memory. */
static char *write_ranks(const int *ranks, int count)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);

    if (out == NULL) {
        return NULL;
    }
    for (int i = 0; i < count; i++) {
        fprintf(out, "%s%d", i > 0 ? "," : "", ranks[i]);
    }
    return fclose(out) == 0 ? text : NULL;
}

/* The number of this operation on process sets, or a negative status. */
static int64_t next_number(int size_wanted, int *size, struct hvd_error *err)
{
    struct hvd_engine *engine = hvd_job_enter(err);
    int64_t number = 0;

    if (engine == NULL) {
        return HVD_ERR_STATE;
    }
    *size = hvd_engine_boot(engine)->size;
    if (size_wanted == 0) {
        number = hvd_engine_count(engine, HVD_SET_GLOBAL, HVD_COUNT_SETS);
    }
    hvd_job_exit();
    return number;
}

static int add_sorted(const int *ranks, int count, struct hvd_request **request,
                      struct hvd_error *err)
{
    struct hvd_start start = {.kind = HVD_KIND_SET_ADD, .word = "Process set"};
    int size = 0;
    int64_t number = next_number(1, &size, err);
    char *note;
    int status;

    if (number < 0) {
        return (int)number;
    }
    status = check_ranks(ranks, count, size, err);
    if (status != 0) {
        return status;
    }
    note = write_ranks(ranks, count);
    if (note == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a process set");
    }
    start.note = note;
    number = next_number(0, &size, err);
    status = number < 0 ? (int)number
                        : hvd_start_without_tensor(&start, "set", number, request, err);
    free(note);
    return status;
}

HVD_EXPORT int hvd_set_add_start(const int *ranks, int count,
                                 struct hvd_request **request, struct hvd_error *err)
{
    int *sorted;
    int status;

    if (count < 1 || ranks == NULL || request == NULL) {
        return hvd_fail(err, HVD_ERR_ARG, "a process set needs at least one rank");
    }
    sorted = malloc((size_t)count * sizeof(sorted[0]));
    if (sorted == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a process set");
    }
    memcpy(sorted, ranks, (size_t)count * sizeof(sorted[0]));
    qsort(sorted, (size_t)count, sizeof(sorted[0]), compare_ranks);
    status = add_sorted(sorted, count, request, err);
    free(sorted);
    return status;
}

HVD_EXPORT int hvd_set_remove_start(int set, struct hvd_request **request,
                                    struct hvd_error *err)
{
    struct hvd_start start = {
        .kind = HVD_KIND_SET_REMOVE, .word = "Process set", .root = set};
    int64_t number;
    int size;

    if (set == HVD_SET_GLOBAL) {
        return hvd_fail(err, HVD_ERR_ARG, "the global process set cannot be removed");
    }
    if (hvd_set_size(set) < 0) {
        return hvd_fail(err, HVD_ERR_ARG, "there is no process set %d to remove", set);
    }
    number = next_number(0, &size, err);
    return number < 0 ? (int)number
                      : hvd_start_without_tensor(&start, "set", number, request, err);
}

/* --- facts --- */

static int ask(int set, hvd_set_reader *reader, void *context)
{
    struct hvd_engine *engine = hvd_job_enter(NULL);
    int result;

    if (engine == NULL) {
        return HVD_ERR_STATE;
    }
    result = hvd_engine_with_set(engine, set, reader, context);
    hvd_job_exit();
    return result;
}

static int read_size(void *context, const struct hvd_set *set)
{
    (void)context;
    return set->count;
}

HVD_EXPORT int hvd_set_size(int set)
{
    return ask(set, read_size, NULL);
}

static int read_rank(void *context, const struct hvd_set *set)
{
    const int *rank = context;
    int index = hvd_set_index(set, *rank);

    return index >= 0 ? index : HVD_ERR_UNSUPPORTED;
}

HVD_EXPORT int hvd_set_rank(int set)
{
    int rank = hvd_rank();

    return rank < 0 ? rank : ask(set, read_rank, &rank);
}

static int read_ranks(void *context, const struct hvd_set *set)
{
    memcpy(context, set->ranks, (size_t)set->count * sizeof(set->ranks[0]));
    return 0;
}

HVD_EXPORT int hvd_set_ranks(int set, int *ranks)
{
    return ask(set, read_ranks, ranks);
}

HVD_EXPORT int hvd_set_ids(int *ids)
{
    struct hvd_engine *engine = hvd_job_enter(NULL);
    int count;

    if (engine == NULL) {
        return HVD_ERR_STATE;
    }
    count = hvd_engine_sets(engine, ids);
    hvd_job_exit();
    return count;
}

HVD_EXPORT int hvd_set_count(void)
{
    return hvd_set_ids(NULL);
}
