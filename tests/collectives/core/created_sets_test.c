/* SPDX-License-Identifier: Apache-2.0 */
/* Process sets that their members create alone, while other ranks do other things or
 * nothing. Runs as each rank of a job of at least three; rank 0 prints TAP. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/collectives/core/sets.h"
#include "tests/collectives/report.h"

enum {
    MOST_RANKS = 16,
    STEPS = 60,
    AGAIN = 200,
    MOST_WAIT_S = 100
};

static int rank, size;

/* --- helpers --- */

static bool sum_in(int id, unsigned bits)
{
    static float data[SETS_ELEMENTS];

    return sets_finish_sum(sets_start_sum(id, "sum", data), bits, data);
}

static bool is_in(unsigned bits)
{
    return (bits >> rank & 1) != 0;
}

static unsigned all(void)
{
    return (1u << size) - 1;
}

/* --- the tests --- */

/* Creates sets of two neighbours each, so that each rank is in two of them, and a set of
 * all ranks but rank 0. Each rank starts with a different set. */
static void test_at_the_same_time(void)
{
    struct hvd_request *requests[MOST_RANKS + 1] = {NULL};
    bool good = true;
    int count = hvd_set_count();

    for (int i = 0; i <= size; i++) {
        int group = (i + 2 * rank) % (size + 1);
        unsigned bits =
            group == size ? all() & ~1u : 1u << group | 1u << (group + 1) % size;
        char label[32];

        snprintf(label, sizeof(label), "group %d", group);
        requests[group] = is_in(bits) ? sets_start(bits, label) : NULL;
    }
    for (int group = 0; group <= size; group++) {
        unsigned bits =
            group == size ? all() & ~1u : 1u << group | 1u << (group + 1) % size;

        if (requests[group] != NULL) {
            int id = sets_finish(requests[group]);

            good &= sum_in(id, bits) && hvd_set_size(id) == __builtin_popcount(bits);
            sets_remove(id);
            good &= hvd_set_size(id) == HVD_ERR_ARG;
        }
    }
    report(good && hvd_set_count() == count,
           "groups that overlap are created at the same time, in any order");
}

static void test_twice(void)
{
    unsigned bits = all() & ~(1u << (size - 1));
    struct hvd_error err = {0};
    struct hvd_request *request = NULL;
    int ranks[2] = {0, 1}, one = -1, other = -1;
    bool good = true;

    if (is_in(bits)) {
        one = sets_finish(sets_start(bits, "one"));
        other = sets_finish(sets_start(bits, "other"));
        good = one != other;
        for (int i = 0; i < STEPS; i++) { /* these steps are soon replayed */
            good &= sum_in(one, bits) && sum_in(other, bits);
        }
    } else {
        good = hvd_set_count() == 1 &&
               hvd_set_create_start(ranks, 2, "one", &request, &err) == HVD_ERR_ARG &&
               strstr(err.text, "only its members") != NULL;
    }
    report(good, "the same members create two sets, which other ranks do not know");
    call_finish(hvd_set_add_start(ranks, 2, &request, &err), &request, &err);
    good = hvd_request_set(request) != one && hvd_request_set(request) != other &&
           hvd_set_size(hvd_request_set(request)) == 2;
    sets_remove(sets_finish(request));
    report(good,
           "a set that all ranks add has a number of its own, and all ranks know it");
    if (is_in(bits)) {
        sets_remove(one);
        sets_remove(other);
    }
}

/* All ranks but rank 0 create a set and use it, while all ranks go on with steps that are
 * replayed. */
static void test_while_replaying(void)
{
    static float values[SETS_ELEMENTS];
    unsigned bits = all() & ~1u;
    struct hvd_request *creation = NULL;
    bool good = true;
    int id = -1;

    for (int step = 0; step < STEPS; step++) {
        struct hvd_request *sum = sets_start_sum(HVD_SET_GLOBAL, "step", values);

        if (step == STEPS / 2 + rank && is_in(bits)) {
            creation = sets_start(bits, "late");
        }
        good &= sets_finish_sum(sum, all(), values);
        if (creation != NULL && step == STEPS - 1) {
            id = sets_finish(creation);
            good &= sum_in(id, bits);
            sets_remove(id);
        }
    }
    report(good, "sets are created while steps of all ranks are replayed");
}

/* The first two ranks have joined when they create a set; the others have one step before
 * they join. */
static void test_joined(void)
{
    struct hvd_request *join = NULL;
    struct hvd_error err = {0};
    bool good = true;

    if (rank < 2) {
        int id;

        if (hvd_join_start(&join, &err) != 0) {
            call_finish(err.status, &join, &err);
        }
        id = sets_finish(sets_start(3, "joined"));
        good = sum_in(id, 3);
        sets_remove(id);
        call_finish(0, &join, &err);
        hvd_request_free(join);
    } else {
        good = sum_in(HVD_SET_GLOBAL, all() & ~3u);
        call_join();
    }
    report(good, "ranks that have joined create sets");
}

/* Rank 0 calls nothing of hvd until the others have finished. */
static void test_beside_idle(const char *done)
{
    unsigned bits = all() & ~1u;
    bool good = true;

    for (int i = 0; i < AGAIN && is_in(bits); i++) {
        int id = sets_finish(sets_start(bits, NULL));

        good &= i % 20 != 0 || sum_in(id, bits);
        sets_remove(id);
    }
    if (rank == size - 1) {
        fclose(fopen(done, "w"));
    }
    for (int i = 0; rank == 0 && access(done, F_OK) != 0; i++) {
        const struct timespec pause = {.tv_nsec = 10000000};

        good &= i < MOST_WAIT_S * 100;
        if (!good) {
            break;
        }
        nanosleep(&pause, NULL);
    }
    report(good, "200 sets are created and removed while a rank calls nothing");
}

/* Whether the creation fails with this status, and with a text that contains this one. */
static bool fails(struct hvd_request *request, int status, const char *text)
{
    struct hvd_error err = {0};
    bool good = hvd_wait(request, &err) == status && strstr(err.text, text) != NULL;

    hvd_request_free(request);
    if (!good) {
        fprintf(stderr, "# rank %d: %d %s\n", rank, err.status, err.text);
    }
    return good;
}

static void test_mistakes(void)
{
    unsigned bits = rank == 1 ? 3 : 7;
    bool good = true;
    int id = -1;

    if (rank < 3) {
        good = fails(sets_start(bits, "wrong"), HVD_ERR_MISMATCH,
                     "creates process set 'wrong' of ranks [");
    }
    report(good,
           "members that name different ranks get an error, also those that come late");
    if (rank < 2) {
        id = sets_finish(sets_start(3, "wrong"));
        good = fails(sets_start(3, "wrong"), HVD_ERR_ARG,
                     "has the same label and a common rank") &&
               sum_in(id, 3);
    }
    report(good, "a label that is in use is refused, and the job goes on");
    if (rank < 2) {
        sets_remove(id);
    }
}

/* Rank 0 starts to create a set of ranks 0 and 1, and tries it again with the same label
 * before rank 1 has started. */
static void test_labels(void)
{
    static const int ranks[] = {1, 0};
    struct hvd_request *creation = rank == 0 ? sets_start(3, "twice") : NULL,
                       *other = NULL;
    struct hvd_error err = {0};
    char label[1002];
    bool good = true;

    memset(label, 'x', sizeof(label));
    label[sizeof(label) - 1] = '\0';
    if (rank == 0) {
        good = hvd_set_create_start(ranks, 2, "twice", &other, &err) == HVD_ERR_ARG &&
               strstr(err.text, "of the same label") != NULL &&
               hvd_set_create_start(ranks, 2, label, &other, &err) == HVD_ERR_ARG &&
               strstr(err.text, "1001 bytes") != NULL;
    }
    report(good, "a second creation under the same label, or a label that is too long, "
                 "is refused");
    if (rank == 1) {
        creation = sets_start(3, "twice");
    }
    if (creation != NULL) {
        sets_finish(creation);
    }
}

/* Agrees on the path of a file that does not exist. */
static void agree_on_path(char path[64])
{
    const int64_t shape[] = {64};
    struct hvd_tensor tensor = call_tensor("path", HVD_UINT8, shape, 1, path, path);

    snprintf(path, 64, "/tmp/hvd-created.%d", (int)getpid());
    call_broadcast(&tensor, 0, 0);
}

/* All ranks remove a set and add one of the same ranks without waiting in between, so
 * that one message of the agreement may carry both requests. */
static void test_added_again(void)
{
    static const int ranks[] = {0, 1};
    const int set = call_set_add(ranks, 2);
    struct hvd_request *removal = NULL, *addition = NULL;
    struct hvd_error err = {0};
    bool good = hvd_set_remove_start(set, &removal, &err) == 0 &&
                hvd_set_add_start(ranks, 2, &addition, &err) == 0 &&
                hvd_wait(removal, &err) == 0;
    int status = good ? hvd_wait(addition, &err) : 0;

    good &= status == 0 || (status == HVD_ERR_ARG &&
                            strstr(err.text, "the same ranks already exists") != NULL);
    report(good, "a set may be removed and added again without a wait");
    if (good && status == 0) {
        call_set_remove(hvd_request_set(addition));
    }
    hvd_request_free(removal);
    hvd_request_free(addition);
}

int main(void)
{
    char done[64];

    rank = report_init();
    size = hvd_size();
    agree_on_path(done);
    test_at_the_same_time();
    test_twice();
    test_while_replaying();
    test_joined();
    test_beside_idle(done);
    test_mistakes();
    test_labels();
    test_added_again();
    call_barrier();
    if (rank == 0) {
        unlink(done);
    }
    return hvd_shutdown() != 0 || report_done() != 0;
}
