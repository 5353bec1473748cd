/* SPDX-License-Identifier: Apache-2.0 */
/* A rank opens messages, which creates struct hvd_p2p, at its first send or receive or
 * when the first envelope arrives. Nothing else does: a job without messages does not
 * poll for any. Runs as each rank of a job of three or more; rank 0 prints TAP. The last
 * rank neither sends nor receives. */
#include <sched.h>
#include <stdlib.h>

#include "collectives/api/api.h"
#include "collectives/core/job_state.h"
#include "tests/collectives/calls.h"
#include "tests/tap.h"

static struct hvd_error err;
static int sent[] = {3, 4}, received[2];

static bool is_open(struct hvd_job *job)
{
    bool is_open;

    hvd_progress_lock(job);
    is_open = job->p2p_source.p2p != NULL;
    hvd_progress_unlock(job);
    return is_open;
}

/* Returns whether a claim is true on all ranks. All ranks must call it. */
static bool all(bool claim)
{
    const int64_t one = 1;
    int mine = claim, least = 0;
    struct hvd_tensor tensor = call_tensor("claim", HVD_INT32, &one, 1, &mine, &least);
    struct hvd_request *request = NULL;
    int status =
        hvd_allreduce_start(&tensor, 1, HVD_MIN, 1, 1, HVD_SET_GLOBAL, &request, &err);

    call_finish(status, &request, &err);
    hvd_request_free(request);
    return least == 1;
}

static void finish(int status, struct hvd_request *request)
{
    call_finish(status, &request, &err);
    hvd_request_free(request);
}

static void send(int to, int64_t tag)
{
    const int64_t two = 2;
    struct hvd_tensor tensor = call_tensor(NULL, HVD_INT32, &two, 1, sent, NULL);
    struct hvd_request *request = NULL;
    int status = hvd_send_start(&tensor, to, tag, 0, &request, &err);

    finish(status, request);
}

static void receive(int from, int64_t tag)
{
    const int64_t two = 2;
    struct hvd_tensor tensor = call_tensor(NULL, HVD_INT32, &two, 1, NULL, received);
    struct hvd_request *request = NULL;
    int status = hvd_recv_start(&tensor, from, tag, 0, &request, &err);

    finish(status, request);
}

/* Rank 0 sends to rank 1. Rank 1 makes no call that could open messages: it neither waits
 * for a request nor receives until the envelope has opened them. Returns whether they are
 * open on ranks 0 and 1 only. */
static bool is_opened_by_envelope(struct hvd_job *job, int rank)
{
    if (rank == 0) {
        send(1, 7);
    }
    while (rank == 1 && !is_open(job)) {
        sched_yield();
    }
    return is_open(job) == (rank <= 1);
}

static bool is_received(int rank)
{
    if (rank == 1) {
        receive(0, 7);
    }
    return rank != 1 || (received[0] == sent[0] && received[1] == sent[1]);
}

int main(void)
{
    const int rank = call_init();
    const int last = hvd_size() - 1;
    struct hvd_job *job = hvd_job_enter(NULL);
    bool before, by_envelope, has_come, after;

    before = all(!is_open(job));
    by_envelope = all(is_opened_by_envelope(job, rank));
    has_come = all(is_received(rank));
    after = all(is_open(job) == (rank < 2) || rank != last);
    hvd_job_exit();
    hvd_shutdown();
    if (rank != 0) {
        return 0;
    }
    tap_ok(before, "a collective does not open messages");
    tap_ok(by_envelope,
           "an envelope opens the messages of its receiver without any call there");
    tap_ok(has_come, "a message that arrives before its receive starts is received");
    tap_ok(after, "a rank that neither sends nor receives never opens messages");
    return tap_done();
}
