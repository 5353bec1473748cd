/* SPDX-License-Identifier: Apache-2.0 */
/* Process sets that a member aborts. Runs as each rank of a job of at least three; rank 0
 * prints TAP. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/collectives/core/sets.h"
#include "tests/collectives/report.h"

enum {
    STEPS = 60, /* these steps are soon replayed */
    /* so large that it is not sent before the receiver has posted a receive */
    MESSAGE_BYTES = 1 << 20
};

static int rank, size;
static float values[SETS_ELEMENTS];

static unsigned all(void)
{
    return (1u << size) - 1;
}

static void give_up(int id, const char *why)
{
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    call_finish(hvd_set_abort_start(id, why, &request, &err), &request, &err);
    hvd_request_free(request);
}

/* Whether the request fails because rank `by` has aborted the set, with `why` in the
 * text. */
static bool is_aborted(struct hvd_request *request, int by, const char *why)
{
    struct hvd_error err = {0};
    char who[64];
    bool good;

    snprintf(who, sizeof(who), "has been aborted by rank %d on ", by);
    good = hvd_wait(request, &err) == HVD_ERR_ABORTED && strstr(err.text, who) != NULL &&
           strstr(err.text, why) != NULL;
    hvd_request_free(request);
    if (!good) {
        fprintf(stderr, "# rank %d: %d %s\n", rank, err.status, err.text);
    }
    return good;
}

static bool is_refused(int status, const struct hvd_error *err, const char *why)
{
    return status == HVD_ERR_ARG && strstr(err->text, why) != NULL;
}

/* The last rank does not submit the tensor, and rank 1 aborts the set after a time
 * limit. */
static void test_who_waits(void)
{
    int id = sets_finish(sets_start(all(), "waits"));
    bool good = true;

    if (rank == size - 1) {
        report(
            good,
            "a member aborts a set, and the requests of the others fail with its reason");
        good = is_aborted(sets_start_sum(id, "sum", values), 1, "rank 2 is late");
    } else {
        struct hvd_request *sum = sets_start_sum(id, "sum", values);
        struct hvd_error err;

        if (rank == 1) {
            good = hvd_wait_for(sum, 100, &err) == HVD_INPROGRESS;
            give_up(id, "rank 2 is late");
        }
        good &= is_aborted(sum, 1, "rank 2 is late");
        report(
            good,
            "a member aborts a set, and the requests of the others fail with its reason");
        good = is_aborted(sets_start_sum(id, "other", values), 1, "rank 2 is late");
    }
    report(good, "a request that is submitted after the abort fails with the reason");
    sets_remove(id);
}

/* The last rank aborts the set while its steps are replayed: it has finished a step, and
 * the others have begun the next. */
static void test_replayed(void)
{
    int id = sets_finish(sets_start(all(), "replayed"));
    bool good = true;

    for (int step = 0; step < STEPS; step++) {
        good &= sets_finish_sum(sets_start_sum(id, "step", values), all(), values);
    }
    report(good, "a set works until a member aborts it");
    if (rank == size - 1) {
        give_up(id, NULL);
    }
    good = is_aborted(sets_start_sum(id, "step", values), size - 1, "gives no reason");
    report(good, "a set is aborted while its steps are replayed");
    sets_remove(id);
    id = sets_finish(sets_start(all(), "replayed"));
    for (int step = 0; step < STEPS; step++) {
        good &= sets_finish_sum(sets_start_sum(id, "step", values), all(), values);
    }
    report(good, "the aborted set is removed, and another one with its label works");
    sets_remove(id);
}

/* All ranks abort the set at the same time. */
static void test_all(void)
{
    int id = sets_finish(sets_start(all(), "all"));
    struct hvd_request *sum = rank % 2 == 0 ? sets_start_sum(id, "sum", values) : NULL;
    struct hvd_error err = {0};
    bool good = true;

    give_up(id, "all do");
    if (sum != NULL) {
        good =
            hvd_wait(sum, &err) == HVD_ERR_ABORTED && strstr(err.text, "all do") != NULL;
        hvd_request_free(sum);
    }
    give_up(id, "once more");
    sets_remove(id);
    report(good, "several members abort a set at the same time, and again");
}

/* Starts a send or a receive that no call of another rank matches. */
static struct hvd_request *start_message(int id, bool sends, int other, char *data,
                                         int64_t bytes)
{
    struct hvd_tensor tensor = call_tensor("message", HVD_UINT8, &bytes, 1, data, data);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int status = sends ? hvd_send_start(&tensor, other, 7, id, &request, &err)
                       : hvd_recv_start(&tensor, other, 8, id, &request, &err);

    if (status != 0) {
        call_finish(status, &request, &err);
    }
    return request;
}

/* Rank 0 sends to the last rank, which does not receive the message; the last rank waits
 * for a message of any rank. Rank 1 aborts the set, which ends both. A small message,
 * whose send has already ended, is lost. */
static void test_p2p(void)
{
    char *data = calloc(1, MESSAGE_BYTES);
    int id = sets_finish(sets_start(all(), "messages"));
    struct hvd_request *message = NULL;
    bool good = true;

    if (rank == 0) {
        struct hvd_error err = {0};
        struct hvd_request *small = start_message(id, true, size - 1, data, 8);

        call_finish(0, &small, &err);
        hvd_request_free(small);
        message = start_message(id, true, size - 1, data, MESSAGE_BYTES);
    } else if (rank == size - 1) {
        message = start_message(id, false, HVD_ANY_SOURCE, data, 8);
    }
    call_barrier();
    if (rank == 1) {
        give_up(id, "no messages");
    }
    if (message != NULL) {
        struct hvd_error err = {0};

        good = hvd_wait(message, &err) == HVD_ERR_ABORTED &&
               strstr(err.text, "aborted") != NULL;
        hvd_request_free(message);
        good &=
            is_aborted(start_message(id, rank == 0, rank == 0 ? size - 1 : 0, data, 8), 1,
                       "no messages");
    }
    report(good, "messages that only one side has started fail, and so do later ones");
    sets_remove(id);
    free(data);
}

/* Aborts a set of the last two ranks that all ranks have added; rank 0 is not a
 * member. */
static void test_added(void)
{
    const int ranks[] = {size - 2, size - 1};
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    bool good = true;
    int id;

    id = call_set_add(ranks, 2);
    if (rank == size - 1) {
        give_up(id, "added");
    }
    if (rank >= size - 2) {
        good = is_aborted(sets_start_sum(id, "sum", values), size - 1, "added");
    } else {
        good = hvd_set_abort_start(id, "x", &request, &err) == HVD_ERR_ARG;
    }
    good &= is_refused(hvd_set_abort_start(HVD_SET_GLOBAL, "x", &request, &err), &err,
                       "hvd_shutdown_because");
    good &= hvd_set_abort_start(77, "x", &request, &err) == HVD_ERR_ARG;
    report(good, "a set that all ranks have added can be aborted by its members, the "
                 "global set cannot");
    sets_remove(id);
    good = sets_finish_sum(sets_start_sum(HVD_SET_GLOBAL, "sum", values), all(), values);
    report(good, "the job goes on after an abort");
}

static void test_barriers(void)
{
    int id = sets_finish(sets_start(all(), "barriers"));

    for (uint64_t call = 1; call <= 3; call++) {
        struct hvd_request *request = NULL;
        struct hvd_error err = {0};
        bool is_compared = rank != size - 1 || call != 2;

        call_finish(hvd_barrier_call_start(id, is_compared ? call : 0, &request, &err),
                    &request, &err);
        hvd_request_free(request);
    }
    sets_remove(id);
    report(true, "a barrier call without a number matches numbered ones of other ranks");
}

/* The first numbered call is a barrier on the last rank, but an allreduce on the others.
 * Only the order of a rank's numbers matters: the last rank counts from 1, the others
 * from 70. */
static void test_numbered(void)
{
    const int64_t shape[] = {SETS_ELEMENTS};
    struct hvd_tensor tensor =
        call_tensor("numbered", HVD_FLOAT32, shape, 1, values, values);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    bool good;

    tensor.call = 70;
    if (rank == size - 1) {
        hvd_barrier_call_start(HVD_SET_GLOBAL, 1, &request, &err);
    } else {
        hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, HVD_SET_GLOBAL, &request, &err);
    }
    good = hvd_wait(request, &err) == HVD_ERR_MISMATCH &&
           strstr(err.text, "the ranks disagree on call 1: rank ") != NULL &&
           strstr(err.text, "called 'numbered'") != NULL &&
           strstr(err.text, "called 'barrier'") != NULL;
    hvd_request_free(request);
    report(good, "ranks whose numbered calls differ get an error that names both calls");
    request = NULL;
    good = hvd_barrier_call_start(HVD_SET_GLOBAL, 71, &request, &err) == 0 &&
           hvd_wait(request, &err) == HVD_ERR_MISMATCH;
    hvd_request_free(request);
    call_barrier();
    report(good, "after that, numbered calls of the set fail, and all other calls work");
}

int main(void)
{
    rank = report_init();
    size = hvd_size();
    test_who_waits();
    test_replayed();
    test_all();
    test_p2p();
    test_added();
    test_barriers();
    test_numbered();
    call_barrier();
    return hvd_shutdown() != 0 || report_done() != 0;
}
