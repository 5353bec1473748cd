/* SPDX-License-Identifier: Apache-2.0 */
/* The public interface: process sets and join. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/api/api_start.h"
#include "collectives/engine/process_sets.h"
#include "gpu_binding/base/attr.h"
#include "pmix_boot/boot.h"

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
        number = hvd_process_sets_number(hvd_engine_process_sets(engine), HVD_SET_GLOBAL,
                                         HVD_UNNAMED_SET_CHANGES);
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

/* Where this rank stands in the set. */
static int find_place(int set, struct hvd_set_place *place)
{
    struct hvd_engine *engine = hvd_job_enter(NULL);
    int status;

    if (engine == NULL) {
        return HVD_ERR_STATE;
    }
    status = hvd_process_sets_find(hvd_engine_process_sets(engine), set, -1, place);
    hvd_job_exit();
    return status;
}

HVD_EXPORT int hvd_set_size(int set)
{
    struct hvd_set_place place = {0};
    int status = find_place(set, &place);

    return status != 0 ? status : place.size;
}

HVD_EXPORT int hvd_set_rank(int set)
{
    struct hvd_set_place place = {0};
    int status = find_place(set, &place);

    if (status != 0) {
        return status;
    }
    return place.index >= 0 ? place.index : HVD_ERR_UNSUPPORTED;
}

HVD_EXPORT int hvd_set_ranks(int set, int *ranks)
{
    struct hvd_engine *engine = hvd_job_enter(NULL);
    int status;

    if (engine == NULL) {
        return HVD_ERR_STATE;
    }
    status = hvd_process_sets_ranks(hvd_engine_process_sets(engine), set, ranks);
    hvd_job_exit();
    return status;
}

HVD_EXPORT int hvd_set_ids(int *ids)
{
    struct hvd_engine *engine = hvd_job_enter(NULL);
    int count;

    if (engine == NULL) {
        return HVD_ERR_STATE;
    }
    count = hvd_process_sets_ids(hvd_engine_process_sets(engine), ids);
    hvd_job_exit();
    return count;
}

HVD_EXPORT int hvd_set_count(void)
{
    return hvd_set_ids(NULL);
}
