/* SPDX-License-Identifier: Apache-2.0 */
/* A rank cannot send a message in the middle of a batch, and only from this learns that
 * another rank has died. All ranks are still told which rank died, and on which host.
 * Runs as both ranks of a job on two nodes. No rank really dies: rank 1's messages fail
 * from the second step on. Rank 0 prints TAP. */
#include <string.h>
#include <unistd.h>

#include "collectives/transport/net/net_stream.h"
#include "tests/collectives/calls.h"
#include "tests/tap.h"

static bool fails;

int __real_hvd_net_outlet_send(struct hvd_net_outlet *outlet,
                               struct hvd_net_fragment *fragment);
int __wrap_hvd_net_outlet_send(struct hvd_net_outlet *outlet,
                               struct hvd_net_fragment *fragment);

int __wrap_hvd_net_outlet_send(struct hvd_net_outlet *outlet,
                               struct hvd_net_fragment *fragment)
{
    return fails ? HVD_ERR_PEER : __real_hvd_net_outlet_send(outlet, fragment);
}

static int step(struct hvd_error *err)
{
    float value = 1;
    struct hvd_tensor tensor = call_tensor("value", HVD_FLOAT32, NULL, 0, &value, &value);
    struct hvd_request *request = NULL;
    int status = hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, err);

    status = status == 0 ? hvd_wait(request, err) : status;
    hvd_request_free(request);
    return status;
}

int main(void)
{
    struct hvd_error err = {0};
    int rank = call_init();
    bool is_told;

    is_told = step(&err) == 0;
    fails = rank == 1;
    is_told = is_told && step(&err) == HVD_ERR_PEER &&
              strncmp(err.text, "rank 0 on node0 ", 16) == 0;
    hvd_shutdown();
    if (rank == 1) {
        return is_told ? 0 : 1;
    }
    tap_ok(is_told, "this rank gets the name of the rank that died: %s", err.text);
    return tap_done();
}
