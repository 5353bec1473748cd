/* SPDX-License-Identifier: Apache-2.0 */
/* Fragments from a peer that has the job's key, in any order and of any length, while
 * messages to and from this peer are under way. */
#include <stdlib.h>

#include "collectives/transport/net/net_flow.h"
#include "gpu_binding/base/hvd_status.h"
#include "tests/fuzz/fuzz.h"

enum {
    MOST_OPS = 16,
    MOST_BYTES = 2048
};

static struct {
    struct hvd_net_flow *flow;
    struct hvd_net_op ops[MOST_OPS];
    int count;
} job;

static int send_fragment(void *peer, struct hvd_net_fragment *fragment)
{
    (void)peer;
    fuzz_touch(fragment->data, fragment->bytes);
    return 0;
}

static int fetch(void *peer, void *offer, struct hvd_net_op *op)
{
    (void)peer;
    (void)offer;
    (void)op;
    return HVD_ERR_NET;
}

static void fail(void *peer, int status)
{
    (void)peer;
    hvd_net_flow_fail(job.flow, status < 0 ? status : HVD_ERR_NET);
}

static void post(struct fuzz_input *input, bool is_send)
{
    struct hvd_net_op *op = &job.ops[job.count];
    size_t bytes = 1 + fuzz_word(input) % MOST_BYTES;

    if (job.count == MOST_OPS) {
        return;
    }
    job.count++;
    *op = (struct hvd_net_op){.data = calloc(bytes, 1), .bytes = bytes};
    if (op->data == NULL) {
        abort();
    }
    if (is_send) {
        hvd_net_send(job.flow, op);
    } else {
        hvd_net_recv(job.flow, op);
    }
}

static void arrive(struct fuzz_input *input, uint32_t *next)
{
    uint8_t what = fuzz_byte(input);
    size_t bytes, wanted = (size_t)fuzz_byte(input) * (what % 8);
    struct hvd_net_header header = {
        .source = 1, .channel = 0, .sequence = *next, .taken = fuzz_byte(input)};
    struct hvd_net_flow_arrival arrival = {.header = &header};
    void *data;

    if (what >= 192) {
        header.sequence = fuzz_word(input);
        header.taken = fuzz_word(input);
    }
    data = fuzz_copy(input, wanted, &bytes);
    arrival.data = data;
    arrival.bytes = bytes;
    *next += bytes > 0 && what < 192 ? 1 : 0;
    (void)hvd_net_flow_arrived(job.flow, &arrival);
    free(data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    struct hvd_net_pool pool = {0};
    const struct hvd_net_flow_link link = {
        .send = send_fragment, .fetch = fetch, .fail = fail, .key = 1, .pool = &pool};
    uint32_t next = 0;

    job.count = 0;
    if (hvd_net_flow_create(&link, 0, &job.flow) != 0) {
        abort();
    }
    while (input.bytes > 0) {
        uint8_t what = fuzz_byte(&input);

        if (what % 4 == 0) {
            post(&input, what % 8 == 0);
        } else {
            arrive(&input, &next);
        }
    }
    hvd_net_flow_fail(job.flow, HVD_ERR_PEER);
    for (int i = 0; i < job.count; i++) {
        if (job.ops[i].status == HVD_INPROGRESS) {
            fuzz_fail("no message is still under way");
        }
        free(job.ops[i].data);
    }
    hvd_net_flow_destroy(job.flow);
    hvd_net_pool_finish(&pool);
    return 0;
}
