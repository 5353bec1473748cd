/* SPDX-License-Identifier: Apache-2.0 */
/* A child whose connection breaks during the handshake connects again. The proof that it
 * sent over the broken connection may arrive after it has joined over the new one. The
 * parent keeps the new one, and all ranks connect. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collectives/transport/control/control_protocol.h"
#include "tests/collectives/transport/control/control_rank.h"
#include "tests/tap.h"

enum {
    CONNECT_MS = 60000,
    CHILD = 1, /* the rank whose first connection breaks */
    LAST = 2, /* joins later, so that the tree is not up before the proof arrives */
};

/* The first connection of the child, which it takes for closed, and the proof that is
 * still on its way there. */
static struct {
    struct job_rank *self; /* NULL in other ranks */
    int fd; /* -1 before the proof is sent, and after it has arrived */
    char proof[256];
    size_t bytes;
} late = {.fd = -1};

static uint32_t type_of(const struct msghdr *message)
{
    uint32_t head[2] = {0};

    if (message->msg_iovlen > 0 && message->msg_iov[0].iov_len >= sizeof(head)) {
        memcpy(head, message->msg_iov[0].iov_base, sizeof(head));
    }
    return head[1];
}

/* Breaks the connection for its owner alone, and keeps the proof. */
static ssize_t hold_proof(int fd, const struct msghdr *message)
{
    int closed[2];

    for (size_t i = 0; i < message->msg_iovlen; i++) {
        const struct iovec *piece = &message->msg_iov[i];

        if (piece->iov_len > sizeof(late.proof) - late.bytes) {
            abort();
        }
        memcpy(late.proof + late.bytes, piece->iov_base, piece->iov_len);
        late.bytes += piece->iov_len;
    }
    late.fd = dup(fd);
    if (late.fd < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, closed) != 0) {
        abort();
    }
    close(closed[1]);
    dup2(closed[0], fd);
    close(closed[0]);
    return (ssize_t)late.bytes;
}

/* Lets the proof arrive, and waits until the parent answers or closes the connection. */
static void deliver_proof(void)
{
    struct pollfd fd = {.fd = late.fd, .events = POLLIN};
    char answer[256];

    (void)send(late.fd, late.proof, late.bytes, MSG_NOSIGNAL);
    poll(&fd, 1, -1);
    job_say(late.self, "%s",
            recv(late.fd, answer, sizeof(answer), 0) > 0 ? "admitted" : "closed");
    close(late.fd);
    late.fd = -1;
    late.self = NULL;
}

/* libc's function calls the kernel: this one holds the first proof of the child until
 * the child has joined. */
ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    const uint32_t type = late.self != NULL ? type_of(message) : 0;
    ssize_t sent;

    if (type == HVD_CONNECT_PROOF && late.fd < 0) {
        return hold_proof(fd, message);
    }
    sent = syscall(SYS_sendmsg, fd, message, flags);
    if (type == HVD_CONTROL_TYPE_JOINED && late.fd >= 0) {
        deliver_proof();
    }
    return sent;
}

static int connect_and_tell(struct job_rank *self, const void *argument)
{
    struct seen seen;
    int status = rank_meet(self, &seen);

    (void)argument;
    late.self = self->boot.rank == CHILD ? self : NULL;
    if (self->boot.rank == LAST) {
        job_await(self);
    }
    if (status == 0) {
        status = rank_join(self, &seen, CONNECT_MS);
    }
    job_say(self, "%s", status == 0 ? "up" : seen.err.text);
    job_await(self);
    rank_leave(&seen);
    return 0;
}

int main(void)
{
    struct job job;
    char line[JOB_LINE_BYTES];
    int up = 0;

    job_start(&job, "a b c", connect_and_tell, NULL);
    job_serve_exchange(&job);
    job_hear(&job, CHILD, -1, line);
    tap_ok(strcmp(line, "closed") == 0,
           "the parent closes the earlier connection of a child that has joined: %s",
           line);
    job_signal(&job, LAST);
    for (int rank = 0; rank < job.size; rank++) {
        job_hear(&job, rank, -1, line);
        tap_note("rank %d: %s", rank, line);
        up += strcmp(line, "up") == 0;
    }
    tap_ok(up == job.size, "and all %d ranks connect", job.size);
    for (int rank = 0; rank < job.size; rank++) {
        job_signal(&job, rank);
    }
    tap_ok(job_finish(&job), "and end well");
    return tap_done();
}
