/* SPDX-License-Identifier: Apache-2.0 */
/* Adds and removes process sets, and shuts the job down at the end of a life. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/collectives/soak/soak.h"

void soak_sets_begin(struct soak *soak)
{
    struct soak_set *global = &soak->sets[0];

    soak->sets_created = 0;
    *global = (struct soak_set){.count = soak->size, .index = soak->rank};
    for (int i = 0; i < soak->size; i++) {
        global->ranks[i] = i;
    }
    soak->set_count = 1;
}

/* Draws a process set of some ranks; all ranks draw the same set. */
static struct soak_set draw_set(struct soak *soak)
{
    struct soak_set set = {.id = -1, .index = -1};

    while (set.count == 0) {
        for (int i = 0; i < soak->size; i++) {
            if (soak_chance(&soak->shared, 2)) {
                set.index = i == soak->rank ? set.count : set.index;
                set.ranks[set.count++] = i;
            }
        }
    }
    set.is_created = soak_chance(&soak->shared, 2);
    return set;
}

/* Whether this rank's library lists the set: a created set is known to its members
 * only. */
static bool is_known(const struct soak_set *set)
{
    return !set->is_created || set->index >= 0;
}

static int count_known(const struct soak *soak)
{
    int count = 0;

    for (int i = 0; i < soak->set_count; i++) {
        count += is_known(&soak->sets[i]) ? 1 : 0;
    }
    return count;
}

static bool has_same(const struct soak *soak, const struct soak_set *set)
{
    for (int i = 0; i < soak->set_count; i++) {
        const struct soak_set *other = &soak->sets[i];

        if (!other->is_created && other->count == set->count &&
            memcmp(other->ranks, set->ranks, (size_t)set->count * sizeof(int)) == 0) {
            return true;
        }
    }
    return false;
}

/* Shuffles the ranks into an order of this rank's own. */
static void shuffle_ranks(struct soak *soak, struct soak_set *set)
{
    for (int i = 0; i < set->count; i++) {
        int other = (int)soak_pick(&soak->own, (uint32_t)set->count);
        int rank = set->ranks[i];

        set->ranks[i] = set->ranks[other];
        set->ranks[other] = rank;
    }
}

/* Checks that the library describes a set as it was added. */
static void check_set(const struct soak *soak, const struct soak_set *set)
{
    int ranks[SOAK_RANKS] = {0}, ids[SOAK_SETS + 1] = {0};
    int index = set->index >= 0 ? set->index : HVD_ERR_UNSUPPORTED;
    bool is_listed = false;

    for (int i = 0; i < hvd_set_count() && i < SOAK_SETS; i++) {
        hvd_set_ids(ids);
        is_listed |= ids[i] == set->id;
    }
    if (hvd_set_size(set->id) != set->count || hvd_set_rank(set->id) != index ||
        hvd_set_ranks(set->id, ranks) != 0 ||
        memcmp(ranks, set->ranks, (size_t)set->count * sizeof(int)) != 0 || !is_listed ||
        hvd_set_count() != count_known(soak)) {
        soak_fail(soak, "process set %d is not what was added", set->id);
    }
}

static void check_added(struct soak *soak, struct soak_set *set,
                        struct hvd_request *request, int expected)
{
    struct hvd_error err = {0};
    int status = soak_end(soak, request, &err);

    if (status != expected) {
        soak_fail(soak, "adding a process set of %d ended with %d \"%s\", expected %d",
                  set->count, status, err.text, expected);
    }
    if (status == 0) {
        set->id = hvd_request_set(request);
        if (!set->is_created) {
            soak_agree(soak, set->id);
        }
        soak->sets[soak->set_count++] = *set;
        check_set(soak, set);
    }
    hvd_request_free(request);
}

static int start_creating(struct soak *soak, const struct soak_set *set,
                          struct hvd_request **request, struct hvd_error *err)
{
    char label[32];

    snprintf(label, sizeof(label), "set %d", soak->sets_created);
    return hvd_set_create_start(set->ranks, set->count, label, request, err);
}

static void create_set(struct soak *soak, struct soak_set *set)
{
    struct soak_call calls[SOAK_MOST_CALLS];
    struct soak_flight flights[SOAK_MOST_CALLS];
    struct soak_set mine = *set;
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int count;

    soak_note(soak, "creating a process set");
    shuffle_ranks(soak, &mine);
    count = soak_start_some(soak, 6, calls, flights);
    if (set->index >= 0 && start_creating(soak, &mine, &request, &err) != 0) {
        soak_fail(soak, "cannot create a process set: %s", err.text);
    }
    soak->sets_created++;
    for (int i = 0; i < count; i++) {
        soak_finish(soak, &flights[i]);
    }
    if (set->index >= 0) {
        check_added(soak, set, request, 0);
    } else {
        soak->sets[soak->set_count++] = *set;
    }
}

void soak_add_set(struct soak *soak)
{
    struct soak_call calls[SOAK_MOST_CALLS];
    struct soak_flight flights[SOAK_MOST_CALLS];
    struct soak_set set = draw_set(soak), mine = set;
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int culprit = soak_chance(&soak->shared, 4) && soak->size > 2
                      ? (int)soak_pick(&soak->shared, (uint32_t)soak->size)
                      : -1;
    int expected = culprit >= 0           ? HVD_ERR_MISMATCH
                   : has_same(soak, &set) ? HVD_ERR_ARG
                                          : 0;
    int count;

    if (set.is_created && soak->set_count < SOAK_SETS) {
        create_set(soak, &set);
        return;
    }
    set.is_created = false;
    soak_note(soak, "adding a process set");
    shuffle_ranks(soak, &mine);
    if (culprit == soak->rank) { /* this rank proposes another set than the others */
        mine = (struct soak_set){.count = 1, .ranks = {set.ranks[0] == 0 ? 1 : 0}};
    }
    count = soak_start_some(soak, 6, calls, flights);
    if (soak->set_count == SOAK_SETS && expected == 0) {
        expected = 1; /* no room for another set: skip it */
    } else if (hvd_set_add_start(mine.ranks, mine.count, &request, &err) != 0) {
        soak_fail(soak, "cannot add a process set: %s", err.text);
    }
    for (int i = 0; i < count; i++) {
        soak_finish(soak, &flights[i]);
    }
    if (expected != 1) {
        check_added(soak, &set, request, expected);
    }
}

void soak_remove_set(struct soak *soak)
{
    struct soak_call calls[SOAK_MOST_CALLS];
    struct soak_flight flights[SOAK_MOST_CALLS];
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int slot, id, count;
    bool is_mine;

    if (soak->set_count == 1) {
        return;
    }
    soak_note(soak, "removing a process set that is in use");
    slot = 1 + (int)soak_pick(&soak->shared, (uint32_t)(soak->set_count - 1));
    id = soak->sets[slot].id;
    is_mine = is_known(&soak->sets[slot]);
    count = soak_start_some(soak, 10, calls, flights);
    if (is_mine && hvd_set_remove_start(id, &request, &err) != 0) {
        soak_fail(soak, "cannot remove process set %d: %s", id, err.text);
    }
    for (int i = 0; i < count; i++) {
        soak_finish(soak, &flights[i]);
    }
    if (is_mine &&
        (soak_end(soak, request, &err) != 0 || hvd_set_size(id) != HVD_ERR_ARG)) {
        soak_fail(soak, "process set %d is not removed: %s", id, err.text);
    }
    hvd_request_free(request);
    soak->sets[slot] = soak->sets[--soak->set_count];
    if (is_mine && hvd_set_remove_start(id, &request, &err) != HVD_ERR_ARG) {
        soak_fail(soak, "process set %d can be removed twice", id);
    }
}

/* --- the end of a life --- */

/* Whether this rank submits a tensor at the end of a life. All ranks but one do so. */
static bool has_tensor(const struct soak *soak, int tensor)
{
    struct soak_random copy = {soak->shared.state + 1000u * (unsigned)tensor};

    return soak_pick(&copy, (uint32_t)soak->size) != (uint32_t)soak->rank;
}

void soak_leave(struct soak *soak)
{
    enum {
        TENSORS = 6
    };
    struct hvd_request *requests[TENSORS] = {0};
    float values[TENSORS] = {0};
    char names[TENSORS][16];
    struct hvd_error err = {0};

    soak_note(soak, "shutdown with tensors that some ranks lack");
    for (int i = 0; i < TENSORS; i++) {
        struct hvd_tensor tensor = {.name = names[i],
                                    .input = &values[i],
                                    .output = &values[i],
                                    .dtype = HVD_FLOAT32,
                                    .device = HVD_DEVICE_CPU};

        snprintf(names[i], sizeof(names[i]), "orphan.%d", i);
        if (has_tensor(soak, i)) {
            hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &requests[i], NULL);
        }
    }
    usleep(soak_pick(&soak->own, 3000));
    hvd_shutdown();
    for (int i = 0; i < TENSORS; i++) {
        int status = requests[i] != NULL ? hvd_wait(requests[i], &err) : HVD_ERR_SHUTDOWN;

        if (status != HVD_ERR_SHUTDOWN ||
            (requests[i] != NULL &&
             strstr(err.text, "Horovod has been shut down.") == NULL)) {
            soak_fail(soak, "orphan %d ended with %d \"%s\" after shutdown", i, status,
                      err.text);
        }
        hvd_request_free(requests[i]);
    }
}
