/* SPDX-License-Identifier: Apache-2.0 */
/* The public interface: process sets and join. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/set/rank_list.h"
#include "collectives/agreement/set_creations.h"
#include "collectives/api/api_start.h"
#include "collectives/set/sets.h"
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

enum {
    MOST_REASON_BYTES = 280 /* limit of the reason in the text that all members get */
};

/* Returns the number of this operation in the set, or a negative status. */
static int64_t next_number(int set, enum hvd_unnamed what, struct hvd_error *err)
{
    struct hvd_job *job = hvd_job_enter(err);
    int64_t number;

    if (job == NULL) {
        return HVD_ERR_STATE;
    }
    number = hvd_sets_number(hvd_job_sets(job), set, what);
    hvd_job_exit();
    return number;
}

/* Members of a set, in ascending order and as text. */
struct members {
    int *ranks; /* [count] */
    int count;
    char *list;
    int rank; /* this rank */
};

static void finish_members(const struct members *members)
{
    free(members->ranks);
    free(members->list);
}

/* Sorts and checks the ranks. Call finish_members also after a failure. */
static int sort_members(struct members *members, const int *ranks, struct hvd_error *err)
{
    size_t bytes = (size_t)members->count * sizeof(ranks[0]);
    struct hvd_job *job = hvd_job_enter(err);
    int size, status;

    if (job == NULL) {
        return HVD_ERR_STATE;
    }
    size = hvd_job_boot(job)->size;
    members->rank = hvd_job_boot(job)->rank;
    hvd_job_exit();
    members->ranks = malloc(bytes);
    if (members->ranks != NULL) {
        memcpy(members->ranks, ranks, bytes);
        qsort(members->ranks, (size_t)members->count, sizeof(ranks[0]), compare_ranks);
        status = check_ranks(members->ranks, members->count, size, err);
        if (status != 0) {
            return status;
        }
        members->list = hvd_rank_list_write(members->ranks, members->count);
    }
    return members->list != NULL
               ? 0
               : hvd_fail(err, HVD_ERR_NOMEM, "no memory for a process set");
}

static int take_members(struct members *members, const int *ranks,
                        struct hvd_request *const *request, struct hvd_error *err)
{
    if (members->count < 1 || ranks == NULL || request == NULL) {
        return hvd_fail(err, HVD_ERR_ARG, "a process set needs at least one rank");
    }
    return sort_members(members, ranks, err);
}

static int start_adding(const struct members *members, struct hvd_request **request,
                        struct hvd_error *err)
{
    struct hvd_start start = {
        .kind = HVD_KIND_SET_ADD, .word = "Process set", .note = members->list};
    int64_t number = next_number(HVD_SET_GLOBAL, HVD_UNNAMED_SET_CHANGES, err);

    return number < 0 ? (int)number
                      : hvd_start_without_tensor(&start, "set", number, request, err);
}

HVD_EXPORT int hvd_set_add_start(const int *ranks, int count,
                                 struct hvd_request **request, struct hvd_error *err)
{
    struct members members = {.count = count};
    int status = take_members(&members, ranks, request, err);

    if (status == 0) {
        status = start_adding(&members, request, err);
    }
    finish_members(&members);
    return status;
}

enum {
    MOST_LABEL_BYTES = 1000 /* limited because each member's request carries it */
};

static int start_creating(const struct members *members, const char *label,
                          struct hvd_request **request, struct hvd_error *err)
{
    struct hvd_start start = {
        .kind = HVD_KIND_SET_CREATE, .word = "Process set", .note = members->list};
    const char *text = label != NULL ? label : "";
    size_t bytes = sizeof(HVD_CREATION_NAME) + strlen(text);
    char *name;
    int status;

    assert(members->ranks != NULL);
    if (bsearch(&members->rank, members->ranks, (size_t)members->count,
                sizeof(members->rank), compare_ranks) == NULL) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "process set '%.100s' of ranks [%.200s] does not have this rank, "
                        "%d: only its members create it",
                        text, members->list, members->rank);
    }
    if (strlen(text) > MOST_LABEL_BYTES) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "the label of a process set has %zu bytes, but at most %d can be "
                        "sent: choose a shorter one",
                        strlen(text), MOST_LABEL_BYTES);
    }
    name = malloc(bytes);
    if (name == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a process set");
    }
    snprintf(name, bytes, HVD_CREATION_NAME "%s", text);
    status = hvd_start_named(&start, name, request, err);
    free(name);
    return status;
}

HVD_EXPORT int hvd_set_create_start(const int *ranks, int count, const char *label,
                                    struct hvd_request **request, struct hvd_error *err)
{
    struct members members = {.count = count};
    int status = take_members(&members, ranks, request, err);

    if (status == 0) {
        status = start_creating(&members, label, request, err);
    }
    finish_members(&members);
    return status;
}

/* Finds this rank's position in the set. */
static int find_position(int set, struct hvd_set_position *position)
{
    struct hvd_job *job = hvd_job_enter(NULL);
    int status;

    if (job == NULL) {
        return HVD_ERR_STATE;
    }
    status = hvd_sets_position(hvd_job_sets(job), set, -1, position);
    hvd_job_exit();
    return status;
}

HVD_EXPORT int hvd_set_remove_start(int set, struct hvd_request **request,
                                    struct hvd_error *err)
{
    struct hvd_start start = {
        .kind = HVD_KIND_SET_REMOVE, .word = "Process set", .root = set};
    struct hvd_set_position position = {0};
    int64_t number;

    if (set == HVD_SET_GLOBAL) {
        return hvd_fail(err, HVD_ERR_ARG, "the global process set cannot be removed");
    }
    if (find_position(set, &position) != 0) {
        return hvd_fail(err, HVD_ERR_ARG, "there is no process set %d to remove", set);
    }
    start.set = position.is_created ? set : HVD_SET_GLOBAL;
    number = next_number(start.set, HVD_UNNAMED_SET_CHANGES, err);
    return number < 0 ? (int)number
                      : hvd_start_without_tensor(&start, "set", number, request, err);
}

/* --- aborting --- */

HVD_EXPORT int hvd_set_abort_start(int set, const char *why, struct hvd_request **request,
                                   struct hvd_error *err)
{
    char reason[MOST_REASON_BYTES + 1];
    struct hvd_start start = {
        .kind = HVD_KIND_SET_ABORT, .word = "Process set", .set = set, .note = reason};
    int64_t number;

    if (set == HVD_SET_GLOBAL) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "the global process set cannot be aborted: hvd_shutdown_because "
                        "ends the job");
    }
    snprintf(reason, sizeof(reason), "%s", why != NULL ? why : "it gives no reason");
    number = next_number(set, HVD_UNNAMED_ABORTS, err);
    return number < 0 ? (int)number
                      : hvd_start_without_tensor(&start, "abort", number, request, err);
}

/* --- facts --- */

HVD_EXPORT int hvd_set_size(int set)
{
    struct hvd_set_position position = {0};
    int status = find_position(set, &position);

    return status != 0 ? status : position.size;
}

HVD_EXPORT int hvd_set_rank(int set)
{
    struct hvd_set_position position = {0};
    int status = find_position(set, &position);

    if (status != 0) {
        return status;
    }
    return position.index >= 0 ? position.index : HVD_ERR_UNSUPPORTED;
}

HVD_EXPORT int hvd_set_ranks(int set, int *ranks)
{
    struct hvd_job *job = hvd_job_enter(NULL);
    int status;

    if (job == NULL) {
        return HVD_ERR_STATE;
    }
    status = hvd_sets_ranks(hvd_job_sets(job), set, ranks);
    hvd_job_exit();
    return status;
}

HVD_EXPORT int hvd_set_ids(int *ids)
{
    struct hvd_job *job = hvd_job_enter(NULL);
    int count;

    if (job == NULL) {
        return HVD_ERR_STATE;
    }
    count = hvd_sets_ids(hvd_job_sets(job), ids);
    hvd_job_exit();
    return count;
}

HVD_EXPORT int hvd_set_count(void)
{
    return hvd_set_ids(NULL);
}
