/* SPDX-License-Identifier: Apache-2.0 */
/* The control tree in operation: passes messages between neighbours, and finds out which
 * rank died. */
#include "collectives/transport/control/control.h"

#include <errno.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "collectives/transport/control/control_state.h"
#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/fork_close.h"
#include "pmix_boot/sock/listen_address.h"

#define EVENTS_AT_ONCE 64

static int watch_fd(const struct hvd_control *control, int operation, int fd,
                    struct hvd_neighbour *neighbour)
{
    bool is_writing = neighbour != NULL && neighbour->is_watched_for_writing;
    struct epoll_event event = {
        .events = EPOLLIN | (is_writing ? (uint32_t)EPOLLOUT : 0u),
        .data.ptr = neighbour,
    };

    return epoll_ctl(control->epoll_fd, operation, fd, &event);
}

static int open_descriptors(struct hvd_control *control, struct hvd_error *err)
{
    control->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    control->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (control->epoll_fd < 0 || control->wake_fd < 0 ||
        watch_fd(control, EPOLL_CTL_ADD, control->wake_fd, NULL) != 0) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot open an epoll descriptor: %m");
    }
    if (hvd_fork_close_add(control->epoll_fd) != 0 ||
        hvd_fork_close_add(control->wake_fd) != 0) {
        return hvd_fail(err, HVD_ERR_NOMEM, "out of memory");
    }
    return 0;
}

static int open_doors(struct hvd_control *control, struct hvd_error *err)
{
    struct hvd_connect_card *card = &control->card;
    struct hvd_acceptor_doors *doors = &control->doors;
    struct hvd_socket_address address;
    int status = hvd_connect_card_list(card, err);

    if (status == 0) {
        status = hvd_listen_address(&address, err);
    }
    if (status == 0) {
        status = hvd_socket_listen_tcp(&address, doors->fds, &card->port, err);
    }
    if (status == 0) {
        doors->count = hvd_socket_address_count(&address);
        status = hvd_socket_listen_unix(&doors->fds[doors->count], card->name, err);
    }
    if (status == 0) {
        doors->count++;
    }
    for (int i = 0; i < doors->count && status == 0; i++) {
        if (hvd_fork_close_add(doors->fds[i]) != 0) {
            status = hvd_fail(err, HVD_ERR_NOMEM, "out of memory");
        }
    }
    return status;
}

int hvd_control_create(struct hvd_control **out, struct hvd_error *err)
{
    struct hvd_control *control = calloc(1, sizeof(*control));
    int status = 0;

    if (control == NULL || sodium_init() < 0) {
        free(control);
        return hvd_fail(err, HVD_ERR_NOMEM, "out of memory");
    }
    status = open_descriptors(control, err);
    if (status == 0) {
        status = open_doors(control, err);
    }
    if (status != 0) {
        hvd_control_destroy(control, 0);
        return status;
    }
    *out = control;
    return 0;
}

void hvd_control_address(const struct hvd_control *control, const void **address,
                         size_t *bytes)
{
    *address = &control->card;
    *bytes = hvd_connect_card_bytes(&control->card);
}

int hvd_control_first_child(const struct hvd_control *control)
{
    return control->boot->rank == 0 ? 0 : 1;
}

int hvd_control_parent(const struct hvd_control *control)
{
    return control->boot->rank == 0 ? -1 : control->neighbours[0].rank;
}

int hvd_control_culprit(const struct hvd_control *control)
{
    return control->is_aborted ? control->abort.rank : -1;
}

int hvd_control_children(const struct hvd_control *control, const int **ranks)
{
    *ranks = control->children;
    return control->count - hvd_control_first_child(control);
}

int hvd_control_fd(const struct hvd_control *control)
{
    return control->epoll_fd;
}

void hvd_control_wake(struct hvd_control *control)
{
    eventfd_write(control->wake_fd, 1);
}

void hvd_control_expect_close(struct hvd_control *control)
{
    control->is_close_expected = true;
}

/* Toggles whether epoll reports that the socket is writable. It is on exactly while
 * something is queued. */
static void change_watch(struct hvd_control *control, struct hvd_neighbour *neighbour)
{
    neighbour->is_watched_for_writing = !neighbour->is_watched_for_writing;
    watch_fd(control, EPOLL_CTL_MOD, hvd_link_fd(neighbour->link), neighbour);
}

int hvd_control_watch(struct hvd_control *control, struct hvd_neighbour *neighbour)
{
    neighbour->is_watched_for_writing = hvd_link_is_pending(neighbour->link);
    if (watch_fd(control, EPOLL_CTL_ADD, hvd_link_fd(neighbour->link), neighbour) != 0) {
        return HVD_ERR_SYS;
    }
    return 0;
}

int hvd_control_send_to(struct hvd_control *control, struct hvd_neighbour *neighbour,
                        uint32_t type, const void *payload, size_t bytes)
{
    int status;

    if (neighbour->link == NULL) {
        return 0;
    }
    status = hvd_link_send(neighbour->link, type, payload, bytes, -1);
    if (hvd_link_is_pending(neighbour->link) != neighbour->is_watched_for_writing) {
        change_watch(control, neighbour);
    }
    return status;
}

int hvd_control_send_up(struct hvd_control *control, uint32_t type, const void *payload,
                        size_t bytes)
{
    if (control->boot->rank == 0) {
        return HVD_ERR_STATE;
    }
    return hvd_control_send_to(control, &control->neighbours[0], type, payload, bytes);
}

static bool is_on_my_node(const struct hvd_control *control,
                          const struct hvd_neighbour *neighbour)
{
    const int *node = control->boot->layout.node;

    return node[neighbour->rank] == node[control->boot->rank];
}

int hvd_control_send_to_nodes(struct hvd_control *control, uint32_t type,
                              const void *payload, size_t bytes)
{
    int status = 0;

    for (int i = hvd_control_first_child(control); i < control->count && status == 0;
         i++) {
        struct hvd_neighbour *child = &control->neighbours[i];

        if (!is_on_my_node(control, child)) {
            status = hvd_control_send_to(control, child, type, payload, bytes);
        }
    }
    return status;
}

int hvd_control_send_down(struct hvd_control *control, uint32_t type, const void *payload,
                          size_t bytes)
{
    int status = hvd_control_send_to_nodes(control, type, payload, bytes);

    for (int i = hvd_control_first_child(control); i < control->count && status == 0;
         i++) {
        struct hvd_neighbour *child = &control->neighbours[i];

        if (is_on_my_node(control, child)) {
            status = hvd_control_send_to(control, child, type, payload, bytes);
        }
    }
    return status;
}

int hvd_control_send_child(struct hvd_control *control, int child, uint32_t type,
                           const void *payload, size_t bytes)
{
    return hvd_control_send_to(
        control, &control->neighbours[hvd_control_first_child(control) + child], type,
        payload, bytes);
}

/* --- the reason why the job ends --- */

void hvd_control_propagate(struct hvd_control *control,
                           const struct hvd_control_reason *abort,
                           const struct hvd_neighbour *source)
{
    if (control->is_aborted) {
        return;
    }
    control->is_aborted = true;
    control->abort = *abort;
    for (int i = 0; i < control->count; i++) {
        if (&control->neighbours[i] != source) {
            hvd_control_send_to(control, &control->neighbours[i], HVD_CONTROL_TYPE_ABORT,
                                abort, sizeof(*abort));
        }
    }
    hvd_control_wake(control);
}

void hvd_control_abort(struct hvd_control *control, int rank, const char *text)
{
    struct hvd_control_reason abort = {.rank = rank, .status = HVD_ERR_PEER};

    snprintf(abort.text, sizeof(abort.text), "%s", text);
    hvd_control_propagate(control, &abort, NULL);
}

void hvd_control_explain_loss(const struct hvd_control *control,
                              const struct hvd_neighbour *neighbour, int status,
                              struct hvd_control_reason *abort)
{
    const char *host = control->boot->peers[neighbour->rank].host;
    int error = hvd_link_errno(neighbour->link);

    *abort = (struct hvd_control_reason){.rank = neighbour->rank, .status = status};
    if (error == EBADMSG) {
        snprintf(abort->text, sizeof(abort->text),
                 "rank %d on %s: a control message from there was changed on its way "
                 "(authentication failed): is there an attacker between the nodes?",
                 neighbour->rank, host);
    } else if (status != HVD_ERR_PEER) {
        snprintf(abort->text, sizeof(abort->text),
                 "rank %d on %s: %s while reading its control messages", neighbour->rank,
                 host, hvd_status_name(status));
    } else if (error == 0 || error == ECONNRESET || error == EPIPE) {
        snprintf(abort->text, sizeof(abort->text),
                 "rank %d on %s died (its connection closed)", neighbour->rank, host);
    } else {
        snprintf(abort->text, sizeof(abort->text),
                 "rank %d on %s cannot be reached any more (%s): is the host down or the "
                 "network cut?",
                 neighbour->rank, host, strerror(error));
    }
}

int hvd_control_read_reason(const struct hvd_control *control,
                            const struct hvd_link_message *message,
                            struct hvd_control_reason *abort)
{
    if (message->bytes != sizeof(*abort)) {
        return HVD_ERR_NET;
    }
    memcpy(abort, message->payload, sizeof(*abort));
    abort->text[sizeof(abort->text) - 1] = '\0';
    if (abort->rank < 0 || abort->rank >= control->boot->size || abort->status >= 0) {
        return HVD_ERR_NET;
    }
    return 0;
}

/* --- progress --- */

static void close_link(struct hvd_control *control, struct hvd_neighbour *neighbour)
{
    /* close() is not enough: if another process has a copy of the descriptor, it would
     * stay in the epoll set. */
    epoll_ctl(control->epoll_fd, EPOLL_CTL_DEL, hvd_link_fd(neighbour->link), NULL);
    hvd_link_destroy(neighbour->link);
    neighbour->link = NULL;
}

/* Passes on the messages that have arrived. Returns their number, or HVD_ERR_NET. */
static int deliver_messages(struct hvd_control *control, struct hvd_neighbour *neighbour,
                            hvd_control_handler handler, void *context)
{
    int index = (int)(neighbour - control->neighbours);
    int from = control->boot->rank == 0 ? index : index - 1; /* -1 for the parent */
    struct hvd_link_message message;
    int handled = 0;
    int status;

    while ((status = hvd_link_next(neighbour->link, &message)) == 0) {
        struct hvd_control_event event = {
            .kind = HVD_CONTROL_MESSAGE,
            .from = from,
            .type = message.type,
            .payload = message.payload,
            .bytes = message.bytes,
        };
        struct hvd_control_reason abort;

        hvd_fork_close_now(message.fd);
        if (message.type == HVD_CONTROL_TYPE_ABORT) {
            status = hvd_control_read_reason(control, &message, &abort);
            if (status != 0) {
                return status;
            }
            hvd_control_propagate(control, &abort, neighbour);
        } else if (!control->is_aborted) {
            handler(context, &event);
            handled++;
        }
    }
    return status == HVD_INPROGRESS ? handled : status;
}

static void lose_neighbour(struct hvd_control *control, struct hvd_neighbour *neighbour,
                           int status)
{
    struct hvd_control_reason abort;

    hvd_control_explain_loss(control, neighbour, status, &abort);
    close_link(control, neighbour);
    if (!control->is_close_expected) {
        hvd_control_propagate(control, &abort, neighbour);
    }
}

static int serve_neighbour(struct hvd_control *control, struct hvd_neighbour *neighbour,
                           hvd_control_handler handler, void *context)
{
    int handled;
    int status;

    if (neighbour->link == NULL) {
        return 0;
    }
    if (neighbour->is_watched_for_writing) {
        hvd_link_flush(neighbour->link);
    }
    status = hvd_link_read(neighbour->link);
    /* Deliver even if the other end has closed its socket: the message with the reason
     * may have been read together with GO. */
    handled = deliver_messages(control, neighbour, handler, context);
    if (status < 0 || handled < 0) {
        lose_neighbour(control, neighbour, status < 0 ? status : handled);
        return handled > 0 ? handled : 0;
    }
    if (hvd_link_is_pending(neighbour->link) != neighbour->is_watched_for_writing) {
        change_watch(control, neighbour);
    }
    return handled;
}

static void report_abort(struct hvd_control *control, hvd_control_handler handler,
                         void *context)
{
    struct hvd_control_event event = {
        .kind = HVD_CONTROL_ABORT,
        .from = HVD_CONTROL_PARENT,
        .rank = control->abort.rank,
        .text = control->abort.text,
    };

    control->is_abort_reported = true;
    handler(context, &event);
}

/* Serves every link: some messages may already have been read from a socket, and epoll
 * does not report these. */
static int serve_all(struct hvd_control *control, hvd_control_handler handler,
                     void *context)
{
    eventfd_t ignored;
    int handled = 0;

    eventfd_read(control->wake_fd, &ignored);
    for (int i = 0; i < control->count; i++) {
        handled += serve_neighbour(control, &control->neighbours[i], handler, context);
    }
    return handled;
}

int hvd_control_progress(struct hvd_control *control, hvd_control_handler handler,
                         void *context)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    int n = epoll_wait(control->epoll_fd, events, EVENTS_AT_ONCE, 0);
    int handled = 0;

    for (int i = 0; i < n; i++) {
        struct hvd_neighbour *neighbour = events[i].data.ptr;

        handled += neighbour == NULL
                       ? serve_all(control, handler, context)
                       : serve_neighbour(control, neighbour, handler, context);
    }
    if (control->is_aborted && !control->is_abort_reported) {
        report_abort(control, handler, context);
        handled++;
    }
    return handled;
}

static bool is_unsent(struct hvd_link *link)
{
    hvd_link_flush(link);
    return hvd_link_is_pending(link) || hvd_socket_is_unsent(hvd_link_fd(link));
}

static void write_out(struct hvd_control *control, int timeout_ms)
{
    int64_t deadline_ms = hvd_clock_ms() + timeout_ms;
    bool is_done = false;

    while (!is_done) {
        is_done = true;
        for (int i = 0; i < control->count && is_done; i++) {
            struct hvd_link *link = control->neighbours[i].link;

            is_done = link == NULL || !is_unsent(link);
        }
        if (is_done || hvd_clock_ms() >= deadline_ms) {
            return;
        }
        poll(NULL, 0, 1);
    }
}

void hvd_control_destroy(struct hvd_control *control, int timeout_ms)
{
    if (control == NULL) {
        return;
    }
    write_out(control, timeout_ms);
    for (int i = 0; i < control->count; i++) {
        if (control->neighbours[i].link != NULL) {
            close_link(control, &control->neighbours[i]);
        }
    }
    hvd_acceptor_doors_close(&control->doors);
    hvd_fork_close_now(control->wake_fd);
    hvd_fork_close_now(control->epoll_fd);
    free(control->neighbours);
    free(control->children);
    free(control);
}
