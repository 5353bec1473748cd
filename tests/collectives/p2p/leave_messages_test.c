/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0 leaves the job as soon as its sends have ended. The ranks that receive its
 * messages must still get them. Repeats this with several jobs. Runs as each rank of a
 * job; rank 0 prints TAP. */
#include <stdlib.h>
#include <string.h>

#include "tests/collectives/calls.h"
#include "tests/tap.h"

enum {
    JOBS = 20,
    SMALL = 1000,
    LARGE = 300000,
    MOST_RANKS = 8,
};

static unsigned char in[2][LARGE], out[LARGE];
static struct hvd_error err;

static struct hvd_request *start(int other, int64_t bytes, unsigned char *to)
{
    const struct hvd_tensor tensor = call_tensor(NULL, HVD_UINT8, &bytes, 1, out, to);
    struct hvd_request *request = NULL;
    int status = to == NULL ? hvd_send_start(&tensor, other, bytes, 0, &request, &err)
                            : hvd_recv_start(&tensor, other, bytes, 0, &request, &err);

    if (status != 0) {
        fprintf(stderr, "# rank %d: %s\n", hvd_rank(), err.text);
        exit(1);
    }
    return request;
}

static void finish(struct hvd_request *request)
{
    call_finish(0, &request, &err);
    hvd_request_free(request);
}

static void send_to_all(void)
{
    struct hvd_request *requests[2 * MOST_RANKS];
    int count = 0;

    for (int i = 1; i < hvd_size(); i++) {
        requests[count++] = start(i, LARGE, NULL);
        requests[count++] = start(i, SMALL, NULL);
    }
    /* a rank that leaves keeps others from starting requests, so wait until all have
     * started theirs */
    call_barrier();
    while (count > 0) {
        finish(requests[--count]);
    }
    hvd_shutdown();
}

static bool receive(int number)
{
    struct hvd_request *large, *small;

    memset(in, 0, sizeof(in));
    large = start(0, LARGE, in[0]);
    small = start(number % 2 == 0 ? 0 : HVD_ANY_SOURCE, SMALL, in[1]);
    call_barrier();
    finish(small);
    finish(large);
    hvd_shutdown();
    return memcmp(in[0], out, LARGE) == 0 && memcmp(in[1], out, SMALL) == 0;
}

int main(void)
{
    int rank = 0;

    for (int i = 0; i < JOBS; i++) {
        rank = call_init();
        memset(out, i + 1, sizeof(out));
        if (rank == 0) {
            send_to_all();
        } else if (!receive(i)) {
            fprintf(stderr, "# rank %d: job %d: not what was sent\n", rank, i);
            return 1;
        }
    }
    if (rank != 0) {
        return 0;
    }
    tap_ok(true, "a message that was sent before its sender left the job is received");
    return tap_done();
}
