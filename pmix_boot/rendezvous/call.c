/* SPDX-License-Identifier: Apache-2.0 */
#include "pmix_boot/rendezvous/call.h"

#include <poll.h>
#include <stdlib.h>

#include "gpu_binding/base/clock.h"
#include "pmix_boot/rendezvous/address.h"
#include "pmix_boot/sock/socket.h"

/* Pause between attempts. The service closes connections that have not proved themselves
 * yet if it has too many of them. */
static const int pause_ms = 50;

struct hvd_rendezvous_call {
    struct hvd_rendezvous_address address;
    struct hvd_channel *channel;
};

static bool wait_for(const struct hvd_rendezvous_call *call, int64_t deadline_ms)
{
    const bool is_pending = hvd_channel_is_pending(call->channel);

    return hvd_socket_wait(hvd_channel_fd(call->channel),
                           is_pending ? POLLIN | POLLOUT : POLLIN, deadline_ms);
}

static int greet(struct hvd_rendezvous_call *call, int64_t deadline_ms)
{
    int status = hvd_channel_progress(call->channel);

    while (status == 0 && !hvd_channel_is_open(call->channel)) {
        status = wait_for(call, deadline_ms) ? hvd_channel_progress(call->channel)
                                             : HVD_ERR_TIMEOUT;
    }
    return hvd_channel_is_open(call->channel) ? 0 : status;
}

static void fail_greeting(const struct hvd_rendezvous_address *address, int status,
                          struct hvd_error *err)
{
    switch (status) {
    case HVD_ERR_PEER:
        hvd_fail(err, HVD_ERR_NET,
                 "the server on %s port %s closed the connection before it had accepted "
                 "this rank, again and again until the time limit: it has too many "
                 "connections, or is not the rendezvous service of this job",
                 address->host, address->port);
        break;
    case HVD_ERR_TIMEOUT:
        hvd_fail(err, HVD_ERR_NET,
                 "the server on %s port %s accepts connections, but has not answered as "
                 "the rendezvous service of this job within the time limit",
                 address->host, address->port);
        break;
    default:
        hvd_fail(err, HVD_ERR_NET,
                 "the server on %s port %s is not the rendezvous service of this job, or "
                 "runs another version of hvd",
                 address->host, address->port);
        break;
    }
}

/* Connects once. Returns HVD_ERR_PEER if the service closed the connection before it had
 * accepted this rank. */
static int open_once(struct hvd_rendezvous_call *call, int64_t deadline_ms,
                     struct hvd_error *err)
{
    const struct hvd_rendezvous_address *address = &call->address;
    int fd = hvd_rendezvous_address_connect(address, deadline_ms, err);
    int status;

    if (fd < 0) {
        return fd;
    }
    if (hvd_channel_create(fd, HVD_CHANNEL_RANK, address->key, &call->channel) < 0) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a connection");
    }
    status = greet(call, deadline_ms);
    if (status < 0) {
        hvd_channel_destroy(call->channel);
        call->channel = NULL;
        fail_greeting(address, status, err);
    }
    return status;
}

int hvd_rendezvous_call_begin(const char *address, int timeout_ms,
                              struct hvd_rendezvous_call **out, struct hvd_error *err)
{
    const int64_t deadline_ms = hvd_clock_ms() + timeout_ms;
    struct hvd_rendezvous_call *call = calloc(1, sizeof(*call));
    bool was_closed = false;
    int status;

    if (call == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a connection");
    }
    status = hvd_rendezvous_address_parse(address, &call->address, err);
    while (status == 0 && (status = open_once(call, deadline_ms, err)) == HVD_ERR_PEER &&
           hvd_clock_ms() + pause_ms < deadline_ms) {
        was_closed = true;
        poll(NULL, 0, pause_ms);
        status = 0;
    }
    /* If the last of several attempts ran out of time, tell why the first ones failed. */
    if (status == HVD_ERR_TIMEOUT && was_closed) {
        fail_greeting(&call->address, HVD_ERR_PEER, err);
    }
    if (status < 0) {
        hvd_rendezvous_call_end(call);
        return status == HVD_ERR_PEER || status == HVD_ERR_TIMEOUT ? HVD_ERR_NET : status;
    }
    *out = call;
    return 0;
}

int hvd_rendezvous_call_ask(struct hvd_rendezvous_call *call,
                            const struct hvd_channel_message *question, int timeout_ms,
                            struct hvd_channel_message *answer, struct hvd_error *err)
{
    const int64_t deadline_ms = hvd_clock_ms() + timeout_ms;
    int status =
        hvd_channel_send(call->channel, question->type, question->data, question->bytes);

    if (status < 0) {
        return hvd_fail(err, status, "no memory for a message of %zu bytes",
                        question->bytes);
    }
    for (;;) {
        (void)hvd_channel_progress(call->channel);
        status = hvd_channel_next(call->channel, answer);
        if (status == 0) {
            return 0;
        }
        if (status < 0) {
            return hvd_fail(
                err, HVD_ERR_NET,
                "the connection to the rendezvous service broke: the srun or "
                "hvdrun that started the job has ended, or the network failed");
        }
        if (!wait_for(call, deadline_ms)) {
            return hvd_fail(err, HVD_ERR_TIMEOUT,
                            "the rendezvous service of the job on %s does not answer",
                            call->address.host);
        }
    }
}

struct hvd_channel *hvd_rendezvous_call_release(struct hvd_rendezvous_call *call)
{
    struct hvd_channel *channel = call->channel;

    free(call);
    return channel;
}

void hvd_rendezvous_call_end(struct hvd_rendezvous_call *call)
{
    if (call != NULL) {
        hvd_channel_destroy(call->channel);
        free(call);
    }
}
