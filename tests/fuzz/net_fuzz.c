/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks send each other between nodes: the card by which they connect, and fragments of
 * messages in any order and of any length, while receives are posted. */
#include <stdlib.h>
#include <string.h>

#include "collectives/transport/net/net_card.h"
#include "collectives/transport/net/net_flow.h"
#include "tests/fuzz/fuzz.h"

enum {
    MOST_OPS = 16,
    OP_BYTES = 100,
};

struct end {
    struct hvd_net_flow *flow;
    struct hvd_net_pool pool;
    struct hvd_net_op ops[MOST_OPS];
    char *data[MOST_OPS];
    int count;
};

static void read_card(const void *data, size_t bytes)
{
    struct hvd_net_host_addresses hosts, own = {.network = 1}, all = {0};
    struct sock_fprog filter = {0};
    const char *ucx;

    if (hvd_net_card_read(data, bytes, &hosts, (const void **)&ucx) != 0) {
        return;
    }
    fuzz_touch(ucx, bytes - (size_t)(ucx - (const char *)data));
    if (hvd_net_host_addresses_add(&all, &own, &hosts) != 0 || all.count != hosts.count ||
        hvd_net_filter_make(&all, &filter) != 0 || filter.len > BPF_MAXINSNS ||
        BPF_CLASS(filter.filter[filter.len - 1].code) != BPF_RET) {
        fuzz_fail("any list of addresses makes a filter");
    }
    free(filter.filter);
    hvd_net_host_addresses_finish(&all);
}

static int send_nothing(void *peer, struct hvd_net_fragment *fragment)
{
    (void)peer;
    (void)fragment;
    return 0;
}

static const void *fetched; /* the last one */

static int fetch(void *peer, void *offer, struct hvd_net_op *op)
{
    (void)peer;
    memset(op->data, 0, op->bytes);
    fetched = offer;
    free(offer);
    return 0;
}

static void fail(void *peer, int status)
{
    struct end *end = peer;

    hvd_net_flow_fail(end->flow, status);
}

static void release(void *context, void *data)
{
    (void)context;
    free(data);
}

static void post(struct end *end, struct fuzz_input *input)
{
    struct hvd_net_op *op = &end->ops[end->count];
    uint8_t how = fuzz_byte(input);

    op->bytes = 1 + fuzz_byte(input) % OP_BYTES;
    op->is_device = how % 4 == 1;
    end->data[end->count] = malloc(op->bytes); /* no room behind it */
    op->data = end->data[end->count++];
    if (how % 4 == 2) {
        memset(op->data, 0, op->bytes);
        hvd_net_send(end->flow, op);
    } else {
        hvd_net_recv(end->flow, op);
    }
}

static void arrive(struct end *end, struct fuzz_input *input)
{
    uint8_t how = fuzz_byte(input);
    const struct hvd_net_header header = {.sequence = fuzz_byte(input) % 8,
                                          .taken = fuzz_word(input)};
    struct hvd_net_flow_arrival arrival = {
        .header = &header,
        .is_offer = how % 4 == 1,
        .release = how % 2 == 1 ? release : NULL,
    };
    void *data = fuzz_copy(input, fuzz_byte(input) % (OP_BYTES + 10), &arrival.bytes);

    arrival.data = data;
    fetched = NULL;
    if (hvd_net_flow_arrived(end->flow, &arrival) != HVD_INPROGRESS && fetched != data) {
        free(data);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    static struct end end;
    struct hvd_net_flow_link link = {.send = send_nothing,
                                     .fetch = fetch,
                                     .fail = fail,
                                     .peer = &end,
                                     .pool = &end.pool};

    read_card(data, size);
    end = (struct end){0};
    if (hvd_net_flow_create(&link, 1, &end.flow) != 0) {
        abort();
    }
    while (input.bytes > 0) {
        if (fuzz_byte(&input) % 2 == 0 && end.count < MOST_OPS) {
            post(&end, &input);
        } else {
            arrive(&end, &input);
        }
    }
    for (int i = 0; i < end.count; i++) {
        if (end.ops[i].status == 0 && end.ops[i].done != end.ops[i].bytes &&
            !end.ops[i].is_device) {
            fuzz_fail("a message has come whole when it is done");
        }
        free(end.data[i]);
    }
    hvd_net_flow_destroy(end.flow);
    hvd_net_pool_finish(&end.pool);
    return 0;
}
