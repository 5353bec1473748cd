/* SPDX-License-Identifier: Apache-2.0 */
/* A rank that cannot go on says why, and the others are told, behind Horovod's words. Runs as each
 * rank of a job; the last one leaves. Rank 0 prints TAP. */
#include <string.h>

#include "tests/collectives/calls.h"
#include "tests/tap.h"

static const char words[] =
    "Horovod has been shut down. This was caused by an exception on one";

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), bytes = strlen(end);

    return length >= bytes && strcmp(text + length - bytes, end) == 0;
}

/* An allreduce that the last rank takes no part in. */
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

/* Whether all others are told so when the last rank leaves with these words. */
static bool is_told(const char *why, const char *expected)
{
    int rank = call_init(), last = hvd_size() - 1;
    struct hvd_error err = {0};
    char end[256];
    bool good = true;

    call_barrier();
    snprintf(end, sizeof(end), "rank %d on %s%s", last, hvd_host(last), expected);
    if (rank != last) {
        good = add_up_without_it(&err) == HVD_ERR_SHUTDOWN &&
               strncmp(err.text, words, strlen(words)) == 0 && ends_with(err.text, end);
        if (!good) {
            fprintf(stderr, "# rank %d: %s\n", rank, err.text);
        }
    }
    hvd_shutdown_because(why);
    return good;
}

int main(void)
{
    bool with_reason = is_told("ValueError: boom\n", ": ValueError: boom ");
    bool without = is_told(NULL, " has left the job"), all;
    int rank = call_init();
    int32_t sum = with_reason && without ? 1 : 0;
    struct hvd_tensor tensor = call_tensor("sum", HVD_INT32, NULL, 0, &sum, &sum);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    call_finish(hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, &err),
                &request, &err);
    hvd_request_free(request);
    all = sum == hvd_size();
    if (rank == 0) {
        tap_ok(with_reason, "a rank that leaves because of something says so to rank 0");
        tap_ok(without, "one that leaves for no reason is named");
        tap_ok(all, "all ranks are told the same");
    }
    hvd_shutdown();
    return rank == 0 ? tap_done() : 0;
}
