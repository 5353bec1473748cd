/* SPDX-License-Identifier: Apache-2.0 */
/* A rank that waits long for a message logs a warning. Runs as each rank of a job of two,
 * with HOROVOD_STALL_CHECK_TIME_SECONDS=1. Rank 0 prints TAP. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu_binding/base/log.h"
#include "tests/collectives/calls.h"
#include "tests/tap.h"

enum {
    LIMIT_S = 60, /* far longer than a loaded machine needs */
};

static char warning[512]; /* the first warning of a test */
static _Atomic bool has_warned;
static struct hvd_error err;

static void note(enum hvd_log_level level, const char *line)
{
    if (level == HVD_LOG_WARN && !has_warned && strstr(line, "has waited") != NULL) {
        snprintf(warning, sizeof(warning), "%s", line);
        has_warned = true;
    }
}

static struct hvd_request *start(int other, int64_t bytes, int64_t tag, char *to)
{
    static char out[1 << 20];
    const struct hvd_tensor tensor = call_tensor(NULL, HVD_INT8, &bytes, 1, out, to);
    struct hvd_request *request = NULL;
    int status = to != NULL ? hvd_recv_start(&tensor, other, tag, 0, &request, &err)
                            : hvd_send_start(&tensor, other, tag, 0, &request, &err);

    if (status != 0) {
        fprintf(stderr, "# %s\n", err.text);
        exit(1);
    }
    return request;
}

static void finish(struct hvd_request *request)
{
    call_finish(0, &request, &err);
    hvd_request_free(request);
}

/* Waits for a warning and prints it. Returns whether it contains the text. */
static bool is_told(struct hvd_request *request, const char *text)
{
    const time_t limit = time(NULL) + LIMIT_S;

    while (!has_warned && time(NULL) < limit) {
        hvd_wait_for(request, 10, &err);
    }
    tap_note("%s", warning);
    return has_warned && strstr(warning, text) != NULL;
}

/* Rank 0 waits for rank 1, which sends or receives only after a message from rank 0. */
static void run(bool is_receive, int source, const char *text, const char *promise)
{
    static char in[1 << 20], go[1];
    struct hvd_request *request;

    if (hvd_rank() == 1) {
        finish(start(0, 1, 1, go));
        finish(is_receive ? start(0, 4, 3, NULL) : start(0, sizeof(in), 5, in));
        return;
    }
    has_warned = false;
    request = is_receive ? start(source, 4, 3, in) : start(1, sizeof(in), 5, NULL);
    tap_ok(is_told(request, text), "%s", promise);
    finish(start(1, 1, 1, NULL));
    finish(request);
}

int main(void)
{
    int rank;

    hvd_log_to(note, HVD_LOG_WARN);
    call_init();
    rank = hvd_rank();
    run(true, 1, "for a message from rank 1 (tag 3, process set 0)",
        "the warning of a receive names the rank that should send");
    call_barrier();
    run(true, HVD_ANY_SOURCE, "for a message from any rank (tag 3",
        "the warning of a receive from any rank says so");
    call_barrier();
    run(false, 1, "for a receive by rank 1 (tag 5",
        "the warning of a send names the rank that should receive");
    hvd_shutdown();
    return rank == 0 ? tap_done() : 0;
}
