/* SPDX-License-Identifier: Apache-2.0 */
/* The accepting side of a connection. */
#include "collectives/transport/connect/acceptor.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/transport/connect/connect_protocol.h"
#include "gpu_binding/base/fork_close.h"
#include "pmix_boot/sock/socket.h"

/* A rank says hello at once; a stranger that says nothing is disconnected after this
 * time. */
#define HELLO_MS 5000
/* Time for the proof after a hello. A rank on a busy or swapping node may take long to
 * compute it; if disconnected, it might report a dead node. This time costs little: the
 * number of pending connections is limited. */
#define PROOF_MS 60000
/* How long to accept no connections after the process or the system ran out of room for
 * another one. */
#define FULL_MS 100
/* Pending connections allowed in addition to one per child. */
#define STRANGERS 32
/* Connections accepted per call; far fewer than may be pending. */
#define AT_ONCE 8

struct pending {
    struct hvd_link *link;
    int64_t since_ms;
    bool is_challenged;
    bool is_outdated; /* its child has been admitted over a later connection */
    struct hvd_handshake handshake;
};

struct hvd_acceptor {
    struct hvd_handshake_party self;
    struct hvd_acceptor_doors doors;
    int capacity;
    int count; /* sorted by arrival */
    int polled; /* how many of them the last poll included */
    /* accept nothing before this time, for lack of descriptors or memory; 0: accepting */
    int64_t closed_until_ms;
    struct pending list[];
};

enum verdict {
    VERDICT_WAIT,
    VERDICT_DROP,
    VERDICT_ADMIT,
};

void hvd_acceptor_doors_close(struct hvd_acceptor_doors *doors)
{
    for (int i = 0; i < doors->count; i++) {
        hvd_fork_close_now(doors->fds[i]);
    }
    doors->count = 0;
}

int hvd_acceptor_create(const struct hvd_handshake_party *self,
                        const struct hvd_acceptor_doors *doors, int children,
                        struct hvd_acceptor **out)
{
    size_t capacity = (size_t)children + STRANGERS;
    struct hvd_acceptor *acceptor =
        calloc(1, sizeof(*acceptor) + capacity * sizeof(acceptor->list[0]));

    if (acceptor == NULL) {
        return HVD_ERR_NOMEM;
    }
    acceptor->self = *self;
    acceptor->doors = *doors;
    acceptor->capacity = (int)capacity;
    *out = acceptor;
    return 0;
}

void hvd_acceptor_destroy(struct hvd_acceptor *acceptor)
{
    if (acceptor == NULL) {
        return;
    }
    for (int i = 0; i < acceptor->count; i++) {
        hvd_link_destroy(acceptor->list[i].link);
    }
    free(acceptor);
}

int hvd_acceptor_capacity(const struct hvd_acceptor *acceptor)
{
    return acceptor->capacity + acceptor->doors.count;
}

static int64_t deadline_of(const struct pending *pending)
{
    return pending->since_ms + (pending->is_challenged ? PROOF_MS : HELLO_MS);
}

int hvd_acceptor_poll(struct hvd_acceptor *acceptor, struct pollfd *fds,
                      int64_t *deadline_ms)
{
    bool is_open = acceptor->closed_until_ms == 0;
    int n = 0;

    for (int i = 0; i < acceptor->doors.count; i++) {
        fds[n++] = (struct pollfd){.fd = is_open ? acceptor->doors.fds[i] : -1,
                                   .events = POLLIN};
    }
    if (!is_open && acceptor->closed_until_ms < *deadline_ms) {
        *deadline_ms = acceptor->closed_until_ms;
    }
    for (int i = 0; i < acceptor->count; i++) {
        struct pending *pending = &acceptor->list[i];

        fds[n] = (struct pollfd){.fd = hvd_link_fd(pending->link), .events = POLLIN};
        fds[n++].events |= hvd_link_is_pending(pending->link) ? POLLOUT : 0;
        if (deadline_of(pending) < *deadline_ms) {
            *deadline_ms = deadline_of(pending);
        }
    }
    acceptor->polled = acceptor->count;
    return n;
}

static void drop_link(struct hvd_acceptor *acceptor, int index)
{
    hvd_link_destroy(acceptor->list[index].link);
    acceptor->count--;
    memmove(&acceptor->list[index], &acceptor->list[index + 1],
            (size_t)(acceptor->count - index) * sizeof(acceptor->list[0]));
}

/* Finds the connection to drop: the oldest that has not said hello, because a child says
 * it at once; if all have, the oldest. */
static int least_useful(const struct hvd_acceptor *acceptor)
{
    for (int i = 0; i < acceptor->count; i++) {
        if (!acceptor->list[i].is_challenged) {
            return i;
        }
    }
    return 0;
}

/* Accepts a few at a time, so that pending connections are read in between. */
static void accept_some(struct hvd_acceptor *acceptor, int listening, int64_t now_ms)
{
    for (int i = 0; i < AT_ONCE; i++) {
        struct pending pending = {.since_ms = now_ms};
        int fd = hvd_socket_accept(listening);

        if (fd < 0) {
            if (hvd_socket_is_out_of_room(errno)) {
                acceptor->closed_until_ms = now_ms + FULL_MS;
            }
            return;
        }
        pending.handshake.endpoint = hvd_socket_endpoint_of(fd, HVD_SOCKET_ACCEPTED);
        if (hvd_link_create(fd, HVD_HANDSHAKE_MAX_BYTES, &pending.link) != 0) {
            acceptor->closed_until_ms = now_ms + FULL_MS;
            return;
        }
        if (acceptor->count == acceptor->capacity) {
            drop_link(acceptor, least_useful(acceptor));
        }
        acceptor->list[acceptor->count++] = pending;
    }
}

static enum verdict on_hello(struct hvd_acceptor *acceptor, struct pending *pending,
                             const struct hvd_link_message *message)
{
    const struct hvd_handshake_party *self = &acceptor->self;
    struct hvd_handshake_hello *hello = &pending->handshake.hello;
    struct hvd_handshake_challenge challenge;

    if (message->type != HVD_CONNECT_HELLO || message->bytes != sizeof(*hello)) {
        return VERDICT_DROP;
    }
    memcpy(hello, message->payload, sizeof(*hello));
    if (hello->magic != HVD_HANDSHAKE_MAGIC || hello->parent != self->rank ||
        hello->child < 0 || hello->child >= self->size ||
        hello->protection != self->protection) {
        return VERDICT_DROP;
    }
    hvd_handshake_challenge_make(&pending->handshake, self->secret, &challenge);
    pending->is_challenged = true;
    return hvd_link_send(pending->link, HVD_CONNECT_CHALLENGE, &challenge,
                         sizeof(challenge), -1) == 0
               ? VERDICT_WAIT
               : VERDICT_DROP;
}

static enum verdict on_proof(const struct hvd_acceptor *acceptor,
                             const struct pending *pending,
                             const struct hvd_link_message *message)
{
    return message->type == HVD_CONNECT_PROOF &&
                   message->bytes == HVD_HANDSHAKE_PROOF_BYTES &&
                   hvd_handshake_is_proof(&pending->handshake, acceptor->self.secret,
                                          HVD_HANDSHAKE_CHILD, message->payload)
               ? VERDICT_ADMIT
               : VERDICT_DROP;
}

/* Marks the child's connections that arrived before this one. A child opens a connection
 * only after it has given up the one before. Connections without a hello need no mark:
 * their child does not answer a challenge any more. */
static void outdate_earlier(struct hvd_acceptor *acceptor, const struct pending *admitted)
{
    for (struct pending *pending = acceptor->list; pending < admitted; pending++) {
        if (pending->is_challenged &&
            pending->handshake.hello.child == admitted->handshake.hello.child) {
            pending->is_outdated = true;
        }
    }
}

/* Hands a proven connection to the caller; returns whether the caller admitted it. */
static bool let_in(struct hvd_acceptor *acceptor, const struct pending *pending,
                   hvd_acceptor_admit admit, void *context)
{
    struct hvd_handshake_keys keys;
    bool is_in;

    hvd_handshake_keys_make(&pending->handshake, acceptor->self.secret, &keys);
    hvd_link_protect(pending->link, keys.parent_seal, keys.child_seal);
    is_in = admit(context, pending->handshake.hello.child, pending->link, &keys);
    sodium_memzero(&keys, sizeof(keys));
    if (is_in) {
        outdate_earlier(acceptor, pending);
    }
    return is_in;
}

static enum verdict read_message(struct hvd_acceptor *acceptor, struct pending *pending)
{
    struct hvd_link_message message;
    int status;

    hvd_link_flush(pending->link);
    status = hvd_link_read(pending->link);
    if (status != 0) {
        return status == HVD_INPROGRESS ? VERDICT_WAIT : VERDICT_DROP;
    }
    status = hvd_link_next(pending->link, &message);
    if (status != 0) {
        return status == HVD_INPROGRESS ? VERDICT_WAIT : VERDICT_DROP;
    }
    if (message.fd >= 0) {
        hvd_fork_close_now(message.fd);
        return VERDICT_DROP;
    }
    return pending->is_challenged ? on_proof(acceptor, pending, &message)
                                  : on_hello(acceptor, pending, &message);
}

void hvd_acceptor_step(struct hvd_acceptor *acceptor, const struct pollfd *fds,
                       int64_t now_ms, hvd_acceptor_admit admit, void *context)
{
    /* Backwards, because dropping a connection moves those behind it, and a child's
     * latest connection must come first. */
    for (int i = acceptor->polled - 1; i >= 0; i--) {
        struct pending *pending = &acceptor->list[i];
        const bool has_event = fds[acceptor->doors.count + i].revents != 0;
        enum verdict verdict = VERDICT_WAIT;

        if (pending->is_outdated || (!has_event && now_ms >= deadline_of(pending))) {
            verdict = VERDICT_DROP;
        } else if (has_event) {
            verdict = read_message(acceptor, pending);
        }
        if (verdict == VERDICT_ADMIT && let_in(acceptor, pending, admit, context)) {
            pending->link = NULL;
        }
        if (verdict != VERDICT_WAIT) {
            drop_link(acceptor, i);
        }
    }
    acceptor->polled = 0;
    if (now_ms >= acceptor->closed_until_ms) {
        acceptor->closed_until_ms = 0;
    }
    for (int i = 0; i < acceptor->doors.count; i++) {
        if (fds[i].revents != 0) {
            accept_some(acceptor, acceptor->doors.fds[i], now_ms);
        }
    }
}
