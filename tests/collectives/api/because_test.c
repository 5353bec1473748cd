/* SPDX-License-Identifier: Apache-2.0 */
/* A rank that cannot go on leaves the job with a reason; the other ranks get this reason
 * before Horovod's error text. Runs as each rank of a job; the last one leaves. Rank 0
 * prints TAP. */
#include <signal.h>
#include <string.h>

#include "gpu_binding/base/env.h"
#include "tests/collectives/calls.h"
#include "tests/tap.h"

static const char words[] =
    "Horovod has been shut down. This was caused by an exception on one";

static const char left[] =
    " has left the job: did its script end early, or have less data? See hvd.join()";

/* Waits for an allreduce in which the last rank takes no part. */
static int add_up_without_it(struct hvd_error *err)
{
    float value = 1;
    struct hvd_tensor tensor =
        call_tensor("pending", HVD_FLOAT32, NULL, 0, &value, &value);
    struct hvd_request *request = NULL;
    int status = hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, err);

    status = status == 0 ? hvd_wait(request, err) : status;
    hvd_request_free(request);
    return status;
}

/* Whether SIGTERM has its default action, which ends this process at once. After a failed
 * job under srun it must not: see grace_test.c. */
static bool ends_at_once(void)
{
    struct sigaction now;

    return sigaction(SIGTERM, NULL, &now) == 0 && now.sa_handler == SIG_DFL;
}

/* Whether all other ranks get the reason that the last rank gives when it leaves, and
 * whether SIGTERM then leaves them time to print it. */
static bool is_told(const char *why, const char *expected)
{
    int rank = call_init(), last = hvd_size() - 1;
    struct hvd_error err = {0};
    char begin[256];
    bool good = ends_at_once();

    call_barrier();
    snprintf(begin, sizeof(begin),
             "rank %d on %s%s. This rank was in allreduce 'pending'. %s", last,
             hvd_host(last), expected, words);
    if (rank != last) {
        good = good && add_up_without_it(&err) == HVD_ERR_SHUTDOWN && !ends_at_once() &&
               strncmp(err.text, begin, strlen(begin)) == 0;
        if (!good) {
            fprintf(stderr, "# rank %d: %s\n", rank, err.text);
        }
    }
    hvd_shutdown_because(why);
    return good && (rank != last || ends_at_once() == (why == NULL));
}

int main(void)
{
    bool with_reason = setenv(HVD_ENV_LAUNCH, "1", 1) == 0 &&
                       is_told("ValueError: boom\n", ": ValueError: boom ");
    bool without = is_told(NULL, left), all;
    bool at_end = is_told("", left);
    int rank = call_init();
    int32_t sum = with_reason && without && at_end ? 1 : 0;
    struct hvd_tensor tensor = call_tensor("sum", HVD_INT32, NULL, 0, &sum, &sum);

    call_allreduce(&tensor, 1, HVD_SUM, 1, 1, 0);
    all = sum == hvd_size();
    if (rank == 0) {
        tap_ok(with_reason,
               "rank 0 gets the reason of a rank that leaves, then Horovod's text");
        tap_ok(without, "rank 0 gets the name of a rank that leaves without a reason");
        tap_ok(at_end, "rank 0 gets the name of a rank whose program ends");
        tap_ok(all, "all ranks get the same texts");
    }
    hvd_shutdown();
    return rank == 0 ? tap_done() : 0;
}
