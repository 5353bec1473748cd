/* SPDX-License-Identifier: Apache-2.0 */
/* The parent's side of connecting. */
#include "collectives/transport/control/guests.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/transport/control/control_wire.h"
#include "pmix_boot/wire/handshake.h"
#include "pmix_boot/wire/socket.h"

/* A rank answers at once; a busy machine may take a while; who needs longer tries again. */
#define GUEST_MS 5000
/* Before a new try when no descriptor is left for who waits at the door. */
#define FULL_MS 100
/* Strangers that may wait beside the children. */
#define STRANGERS 32

struct guest {
    struct hvd_link *link;
    int64_t deadline_ms;
    bool is_challenged;
    struct hvd_handshake_hello hello;
    unsigned char nonce[HVD_HANDSHAKE_NONCE_BYTES];
};

struct hvd_guests {
    const struct hvd_boot *boot;
    int listening[2];
    int capacity;
    int count; /* in order of arrival */
    int polled; /* of them, those that the last poll saw */
    int refused;
    int64_t closed_until_ms; /* for lack of descriptors; 0: open */
    struct guest list[];
};

enum verdict {
    VERDICT_WAIT,
    VERDICT_LEAVE,
    VERDICT_ADMIT,
};

int hvd_guests_create(const struct hvd_boot *boot, const int listening[2], int children,
                      struct hvd_guests **out)
{
    size_t capacity = (size_t)children + STRANGERS;
    struct hvd_guests *guests =
        calloc(1, sizeof(*guests) + capacity * sizeof(guests->list[0]));

    if (guests == NULL) {
        return HVD_ERR_NOMEM;
    }
    guests->boot = boot;
    guests->listening[0] = listening[0];
    guests->listening[1] = listening[1];
    guests->capacity = (int)capacity;
    *out = guests;
    return 0;
}

void hvd_guests_destroy(struct hvd_guests *guests)
{
    if (guests == NULL) {
        return;
    }
    for (int i = 0; i < guests->count; i++) {
        hvd_link_destroy(guests->list[i].link);
    }
    free(guests);
}

int hvd_guests_capacity(const struct hvd_guests *guests)
{
    return guests->capacity + 2;
}

int hvd_guests_refused(const struct hvd_guests *guests)
{
    return guests->refused;
}

int hvd_guests_poll(struct hvd_guests *guests, struct pollfd *fds, int64_t *deadline_ms)
{
    bool is_open = guests->closed_until_ms == 0;
    int n = 0;

    for (int i = 0; i < 2; i++) {
        fds[n++] =
            (struct pollfd){.fd = is_open ? guests->listening[i] : -1, .events = POLLIN};
    }
    if (!is_open && guests->closed_until_ms < *deadline_ms) {
        *deadline_ms = guests->closed_until_ms;
    }
    for (int i = 0; i < guests->count; i++) {
        struct guest *guest = &guests->list[i];

        fds[n++] = (struct pollfd){.fd = hvd_link_fd(guest->link), .events = POLLIN};
        if (guest->deadline_ms < *deadline_ms) {
            *deadline_ms = guest->deadline_ms;
        }
    }
    guests->polled = guests->count;
    return n;
}

static void leave(struct hvd_guests *guests, int index)
{
    hvd_link_destroy(guests->list[index].link);
    guests->count--;
    memmove(&guests->list[index], &guests->list[index + 1],
            (size_t)(guests->count - index) * sizeof(guests->list[0]));
}

static void welcome_all(struct hvd_guests *guests, int listening, int64_t now_ms)
{
    int fd;

    while ((fd = hvd_socket_accept(listening)) >= 0) {
        struct hvd_link *link = NULL;

        if (hvd_link_create(fd, HVD_HANDSHAKE_MAX_BYTES, &link) != 0) {
            return;
        }
        if (guests->count == guests->capacity) {
            leave(guests, 0);
        }
        guests->list[guests->count++] =
            (struct guest){.link = link, .deadline_ms = now_ms + GUEST_MS};
    }
    if (errno == EMFILE || errno == ENFILE) {
        guests->closed_until_ms = now_ms + FULL_MS;
    }
}

static enum verdict hear_hello(struct hvd_guests *guests, struct guest *guest,
                               const struct hvd_link_message *message)
{
    const struct hvd_boot *boot = guests->boot;
    struct hvd_handshake_hello *hello = &guest->hello;
    struct hvd_handshake_challenge challenge;

    if (message->type != HVD_WIRE_HELLO || message->bytes != sizeof(*hello)) {
        return VERDICT_LEAVE;
    }
    memcpy(hello, message->payload, sizeof(*hello));
    if (hello->magic != HVD_HANDSHAKE_MAGIC || hello->parent != boot->rank ||
        hello->child < 0 || hello->child >= boot->size) {
        return VERDICT_LEAVE;
    }
    hvd_handshake_challenge_make(&challenge, boot->secret, hello);
    memcpy(guest->nonce, challenge.nonce, sizeof(guest->nonce));
    guest->is_challenged = true;
    return hvd_link_send(guest->link, HVD_WIRE_CHALLENGE, &challenge, sizeof(challenge),
                         -1) == 0
               ? VERDICT_WAIT
               : VERDICT_LEAVE;
}

static enum verdict hear_proof(struct hvd_guests *guests, struct guest *guest,
                               const struct hvd_link_message *message)
{
    if (message->type != HVD_WIRE_PROOF || message->bytes != HVD_HANDSHAKE_PROOF_BYTES) {
        return VERDICT_LEAVE;
    }
    if (!hvd_handshake_is_proof(message->payload, guests->boot->secret,
                                HVD_HANDSHAKE_CHILD, &guest->hello, guest->nonce)) {
        guests->refused++;
        return VERDICT_LEAVE;
    }
    return VERDICT_ADMIT;
}

static enum verdict hear(struct hvd_guests *guests, struct guest *guest)
{
    struct hvd_link_message message;
    int status = hvd_link_read(guest->link);

    if (status != 0) {
        return status == HVD_INPROGRESS ? VERDICT_WAIT : VERDICT_LEAVE;
    }
    status = hvd_link_next(guest->link, &message);
    if (status != 0) {
        return status == HVD_INPROGRESS ? VERDICT_WAIT : VERDICT_LEAVE;
    }
    if (message.fd >= 0) {
        return VERDICT_LEAVE;
    }
    return guest->is_challenged ? hear_proof(guests, guest, &message)
                                : hear_hello(guests, guest, &message);
}

void hvd_guests_step(struct hvd_guests *guests, const struct pollfd *fds, int64_t now_ms,
                     hvd_guests_admit admit, void *context)
{
    /* Backwards, because a guest that leaves moves those behind it. */
    for (int i = guests->polled - 1; i >= 0; i--) {
        struct guest *guest = &guests->list[i];
        enum verdict verdict = VERDICT_WAIT;

        if (fds[2 + i].revents != 0) {
            verdict = hear(guests, guest);
        } else if (now_ms >= guest->deadline_ms) {
            verdict = VERDICT_LEAVE;
        }
        if (verdict == VERDICT_ADMIT && admit(context, guest->hello.child, guest->link)) {
            guest->link = NULL;
        }
        if (verdict != VERDICT_WAIT) {
            leave(guests, i);
        }
    }
    guests->polled = 0;
    if (now_ms >= guests->closed_until_ms) {
        guests->closed_until_ms = 0;
    }
    for (int i = 0; i < 2; i++) {
        if (fds[i].revents != 0) {
            welcome_all(guests, guests->listening[i], now_ms);
        }
    }
}
