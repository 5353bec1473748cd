/* SPDX-License-Identifier: Apache-2.0 */
/* The allreduce of two nodes with nothing but UCX active messages: each sends all that it has in
 * messages that fit one receive segment, adds what comes straight out of UCX's buffer, and is at
 * most a window ahead of what it has received. No failure is dealt with, nothing is kept in order
 * but by offsets, nobody sleeps. */
#include "contrib/bench/net_limit_ucx.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ucp/api/ucp.h>

enum {
    AM_ID = 1,
    WINDOW_BYTES = 512 << 10,
    MOST_EARLY = 64
};

struct header {
    uint64_t call;
    uint64_t offset; /* bytes */
};

struct early {
    struct header header;
    void *data;
    size_t bytes;
    bool is_lent; /* data is UCX's, else a copy */
};

static struct {
    ucp_worker_h worker;
    ucp_ep_h ep;
    size_t fragment;
    struct header headers[MOST_EARLY]; /* of messages under way */
    unsigned next_header;
    int sending;
    uint64_t call;
    const float *in;
    float *out;
    size_t received; /* bytes */
    struct early early[MOST_EARLY]; /* of the next call */
    int early_count;
} limit;

static void check(ucs_status_t status, const char *what)
{
    if (status != UCS_OK) {
        fprintf(stderr, "%s: %s\n", what, ucs_status_string(status));
        exit(1);
    }
}

static void add(size_t offset, const void *data, size_t bytes)
{
    const float *from = data;
    const float *in = limit.in + offset / sizeof(float);
    float *out = limit.out + offset / sizeof(float);

    for (size_t i = 0; i < bytes / sizeof(float); i++) {
        out[i] = in[i] + from[i];
    }
    limit.received += bytes;
}

static ucs_status_t arrived(void *arg, const void *header, size_t header_bytes,
                            void *data, size_t bytes, const ucp_am_recv_param_t *param)
{
    const struct header *h = header;
    bool is_lent = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA) != 0;
    struct early *early = &limit.early[limit.early_count % MOST_EARLY];

    (void)arg;
    (void)header_bytes;
    if (h->call == limit.call) {
        add(h->offset, data, bytes);
        return UCS_OK;
    }
    *early = (struct early){*h, is_lent ? data : malloc(bytes), bytes, is_lent};
    if (early->data == NULL || limit.early_count++ == MOST_EARLY) {
        fprintf(stderr, "a message that cannot be kept\n");
        exit(1);
    }
    if (!is_lent) {
        memcpy(early->data, data, bytes);
    }
    return is_lent ? UCS_INPROGRESS : UCS_OK;
}

static void sent(void *request, ucs_status_t status, void *arg)
{
    (void)arg;
    check(status, "send");
    limit.sending--;
    ucp_request_free(request);
}

void limit_open(const void **address, size_t *bytes)
{
    const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                                 .features = UCP_FEATURE_AM};
    const ucp_worker_params_t worker = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                        .thread_mode = UCS_THREAD_MODE_SINGLE};
    const ucp_am_handler_param_t handler = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                      UCP_AM_HANDLER_PARAM_FIELD_CB,
        .id = AM_ID,
        .flags = UCP_AM_FLAG_WHOLE_MSG,
        .cb = arrived,
    };
    ucp_context_h context;
    ucp_address_t *own;

    check(ucp_init(&params, NULL, &context), "ucp_init");
    check(ucp_worker_create(context, &worker, &limit.worker), "worker");
    check(ucp_worker_set_am_recv_handler(limit.worker, &handler), "handler");
    check(ucp_worker_get_address(limit.worker, &own, bytes), "address");
    *address = own;
}

void limit_connect(const void *address, size_t fragment)
{
    const ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
                                    .address = address};

    limit.fragment = fragment;
    check(ucp_ep_create(limit.worker, &params, &limit.ep), "endpoint");
}

static void send_part(size_t offset, size_t bytes)
{
    const ucp_request_param_t params = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                        UCP_OP_ATTR_FIELD_FLAGS,
                                        .flags = UCP_AM_SEND_FLAG_EAGER,
                                        .cb.send = sent};
    struct header *header = &limit.headers[limit.next_header++ % MOST_EARLY];
    ucs_status_ptr_t request;

    *header = (struct header){limit.call, offset};
    request = ucp_am_send_nbx(limit.ep, AM_ID, header, sizeof(*header),
                              (const char *)limit.in + offset, bytes, &params);
    if (UCS_PTR_IS_PTR(request)) {
        limit.sending++;
    } else {
        check(UCS_PTR_STATUS(request), "send");
    }
}

static void take_early(void)
{
    for (int i = 0; i < limit.early_count; i++) {
        struct early *early = &limit.early[i];

        add(early->header.offset, early->data, early->bytes);
        if (early->is_lent) {
            ucp_am_data_release(limit.worker, early->data);
        } else {
            free(early->data);
        }
    }
    limit.early_count = 0;
}

void limit_allreduce(const float *in, float *out, size_t count)
{
    size_t bytes = count * sizeof(float);
    size_t handed = 0;

    limit.call++;
    limit.in = in;
    limit.out = out;
    limit.received = 0;
    take_early();
    while (handed < bytes || limit.received < bytes || limit.sending > 0) {
        while (handed < bytes && handed < limit.received + WINDOW_BYTES) {
            size_t left = bytes - handed;
            size_t part = left < limit.fragment ? left : limit.fragment;

            send_part(handed, part);
            handed += part;
        }
        ucp_worker_progress(limit.worker);
    }
}
