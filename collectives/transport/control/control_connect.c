/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the control tree: waits for all neighbours at once, within the time limit. */
#include "collectives/transport/control/control.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/transport/connect/acceptor.h"
#include "collectives/transport/connect/connector.h"
#include "collectives/transport/control/control_state.h"
#include "collectives/transport/control/fd_passing.h"
#include "collectives/transport/control/tree.h"
#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/env.h"
#include "gpu_binding/base/fork_close.h"

/* A rank that misses a neighbour gives up this much before the time limit. So ranks that
 * only wait for others are still there to learn which rank is missing, even if they
 * started that much earlier. */
#define LAST_WORD_MS 3000

/* How often to ask the service of an elastic job whether a rank has died. */
#define ASK_MS 100

/* How long a neighbour whose connection was reset may take to connect again. A child does
 * so at once; one that has died never does. */
#define RETURN_MS 1000

/* State of a neighbour. */
struct progress {
    /* JOINED has arrived: from now on a closed link is a death, which ends the job */
    bool is_joined;
    bool is_ready; /* all ranks below the neighbour are connected */
    int64_t return_ms; /* the neighbour has to be back by then; 0: it is not awaited */
    struct hvd_control_reason loss; /* why it is awaited */
};

struct connect {
    struct hvd_control *control;
    struct progress *progress; /* [neighbours] */
    struct hvd_fd_passing passing;
    bool is_handed_out;
    bool is_ready_sent;
    bool has_go; /* GO has arrived; it is held while a child connects again */
    bool is_go; /* the whole tree is up, and all children are connected */
    struct hvd_acceptor *acceptor;
    struct hvd_connector *connector; /* NULL on rank 0 */
    struct pollfd *fds; /* entries of the neighbours, the connector and the acceptor */
    int timeout_ms;
    int64_t deadline_ms;
};

/* --- messages of neighbours; control_protocol.h has the order --- */

static bool is_on_this_node(const struct hvd_control *control, int rank)
{
    const struct hvd_boot *boot = control->boot;

    return boot->layout.node[rank] == boot->layout.node[boot->rank];
}

static bool is_parent(const struct hvd_control *control,
                      const struct hvd_neighbour *neighbour)
{
    return neighbour->rank == hvd_control_parent(control);
}

static struct progress *progress_of(const struct connect *connect,
                                    const struct hvd_neighbour *neighbour)
{
    return &connect->progress[neighbour - connect->control->neighbours];
}

static bool is_over(const struct connect *connect)
{
    return connect->is_go || connect->control->is_aborted;
}

/* Whether GO is held: what follows it is left to hvd_control_progress. */
static bool is_held(const struct connect *connect, const struct hvd_neighbour *neighbour)
{
    return connect->has_go && is_parent(connect->control, neighbour);
}

/* Waits for a neighbour that had joined to connect again, for the given reason. */
static void await_return(struct connect *connect, const struct hvd_neighbour *neighbour,
                         const struct hvd_control_reason *loss)
{
    struct progress *progress = progress_of(connect, neighbour);

    progress->is_joined = false;
    progress->is_ready = false;
    progress->loss = *loss;
    progress->return_ms = hvd_clock_ms() + RETURN_MS;
    if (is_parent(connect->control, neighbour)) {
        connect->is_ready_sent = false;
        hvd_connector_restart(connect->connector, hvd_clock_ms());
    }
}

/* Whether a lost link was reset on its way, and the neighbour may live. Nothing resets
 * the unix sockets of a node. A parent that has sent GO accepts no connections. */
static bool was_reset(const struct connect *connect,
                      const struct hvd_neighbour *neighbour, int status)
{
    const int error = hvd_link_errno(neighbour->link);

    return status == HVD_ERR_PEER && (error == ECONNRESET || error == EPIPE) &&
           !is_on_this_node(connect->control, neighbour->rank) &&
           !is_held(connect, neighbour);
}

/* Handles the loss of a link, by a death, a reset or an invalid message. A child that has
 * not joined may connect again at any time, and a neighbour that has joined soon after a
 * reset. */
static void lose_neighbour(struct connect *connect, struct hvd_neighbour *neighbour,
                           int status)
{
    struct hvd_control *control = connect->control;
    const bool may_return = was_reset(connect, neighbour, status);
    struct hvd_control_reason abort;

    hvd_control_explain_loss(control, neighbour, status, &abort);
    hvd_link_destroy(neighbour->link);
    neighbour->link = NULL;
    if (!progress_of(connect, neighbour)->is_joined) {
        return;
    }
    if (may_return) {
        await_return(connect, neighbour, &abort);
    } else {
        hvd_control_propagate(control, &abort, neighbour);
    }
}

/* Admits a connection that has proved to be rank `child`; see hvd_acceptor_admit. A child
 * on another node connects a second time if its first connection was reset, which this
 * rank may not have noticed yet. The acceptor never hands over an earlier connection
 * after a later one. */
static bool admit_child(void *context, int child, struct hvd_link *link,
                        const struct hvd_handshake_keys *keys)
{
    struct connect *connect = context;
    struct hvd_control *control = connect->control;

    (void)keys;

    for (int i = hvd_control_first_child(control); i < control->count; i++) {
        struct hvd_neighbour *neighbour = &control->neighbours[i];
        const bool is_second = neighbour->link != NULL;
        struct hvd_control_reason loss;

        if (neighbour->rank != child || (is_second && is_on_this_node(control, child))) {
            continue;
        }
        if (is_second) {
            hvd_control_explain_loss(control, neighbour, HVD_ERR_PEER, &loss);
            hvd_link_destroy(neighbour->link);
            await_return(connect, neighbour, &loss);
        }
        hvd_link_allow(link, HVD_CONTROL_MAX_BYTES);
        hvd_link_send(link, HVD_CONNECT_WELCOME, NULL, 0, -1);
        neighbour->link = link;
        return true;
    }
    return false;
}

static void send_type(struct connect *connect, struct hvd_neighbour *neighbour,
                      uint32_t type)
{
    int status = hvd_link_send(neighbour->link, type, NULL, 0, -1);

    if (status != 0) {
        lose_neighbour(connect, neighbour, status);
    }
}

static void hand_out(struct connect *connect)
{
    struct hvd_control *control = connect->control;

    for (int i = hvd_control_first_child(control); i < control->count; i++) {
        struct hvd_neighbour *child = &control->neighbours[i];

        if (is_on_this_node(control, child->rank)) {
            int local_rank = control->boot->layout.local_rank[child->rank];
            int status =
                hvd_fd_passing_hand_out(&connect->passing, child->link, local_rank);

            if (status != 0) {
                lose_neighbour(connect, child, status);
            }
        }
    }
    connect->is_handed_out = true;
}

/* Whether this rank and all ranks below it are connected. */
static bool is_ready(const struct connect *connect)
{
    const struct hvd_control *control = connect->control;
    bool are_ready = connect->passing.missing == 0;

    for (int i = hvd_control_first_child(control); i < control->count; i++) {
        are_ready = are_ready && connect->progress[i].is_ready;
    }
    return are_ready;
}

/* Tells the parent once this rank and all ranks below it are connected. Tells the
 * children once the whole tree is connected. */
static void pass_on(struct connect *connect)
{
    struct hvd_control *control = connect->control;
    int first = hvd_control_first_child(control);

    if (connect->passing.missing == 0 && connect->passing.local_rank == 0 &&
        !connect->is_handed_out) {
        hand_out(connect);
    }
    if (is_ready(connect) && (first == 0 || connect->has_go)) {
        connect->is_go = true;
    } else if (is_ready(connect) && connect->progress[0].is_joined &&
               !connect->is_ready_sent) {
        send_type(connect, &control->neighbours[0], HVD_CONTROL_TYPE_READY);
        connect->is_ready_sent = true;
    }
    if (connect->is_go) {
        for (int i = first; i < control->count; i++) {
            send_type(connect, &control->neighbours[i], HVD_CONTROL_TYPE_GO);
        }
    }
}

static int on_parent_message(struct connect *connect, struct hvd_link_message *message)
{
    switch (message->type) {
    case HVD_CONTROL_TYPE_SHARE:
        return hvd_fd_passing_accept(&connect->passing, message);
    case HVD_CONTROL_TYPE_GO:
        connect->has_go = connect->is_ready_sent;
        connect->is_go = connect->has_go && is_ready(connect);
        return connect->has_go ? 0 : HVD_ERR_NET;
    default:
        return HVD_ERR_NET;
    }
}

static int on_child_message(struct connect *connect, struct hvd_neighbour *child,
                            struct hvd_link_message *message)
{
    struct progress *progress = progress_of(connect, child);

    switch (message->type) {
    case HVD_CONTROL_TYPE_JOINED:
        progress->is_joined = true;
        progress->return_ms = 0;
        return is_on_this_node(connect->control, child->rank)
                   ? hvd_fd_passing_accept(&connect->passing, message)
                   : 0;
    case HVD_CONTROL_TYPE_READY:
        progress->is_ready = progress->is_joined;
        return progress->is_ready ? 0 : HVD_ERR_NET;
    default:
        return HVD_ERR_NET;
    }
}

/* Takes the messages of a neighbour until the tree is up; later ones are left to
 * hvd_control_progress. */
static int read_messages(struct connect *connect, struct hvd_neighbour *neighbour)
{
    struct hvd_control *control = connect->control;
    struct hvd_link_message message;
    int status = 0;

    while (status == 0 && !is_over(connect) && !is_held(connect, neighbour)) {
        struct hvd_control_reason abort;

        status = hvd_link_next(neighbour->link, &message);
        if (status != 0) {
            return status == HVD_INPROGRESS ? 0 : status;
        }
        if (message.type == HVD_CONTROL_TYPE_ABORT) {
            status = hvd_control_read_reason(control, &message, &abort);
            if (status == 0) {
                hvd_control_propagate(control, &abort, neighbour);
            }
        } else if (is_parent(control, neighbour)) {
            status = on_parent_message(connect, &message);
        } else {
            status = on_child_message(connect, neighbour, &message);
        }
        hvd_fork_close_now(message.fd);
    }
    return status;
}

static void attend_neighbour(struct connect *connect, struct hvd_neighbour *neighbour)
{
    int status;

    hvd_link_flush(neighbour->link);
    status = hvd_link_read(neighbour->link);
    if (status == HVD_INPROGRESS) {
        return;
    }
    if (status == 0) {
        status = read_messages(connect, neighbour);
    }
    if (status != 0) {
        lose_neighbour(connect, neighbour, status);
    }
}

/* Joins the tree, when the parent has admitted this rank. */
static void join_tree(struct connect *connect)
{
    struct hvd_neighbour *parent = &connect->control->neighbours[0];
    struct hvd_link *link = hvd_connector_take(connect->connector, NULL);
    int status;

    hvd_link_allow(link, HVD_CONTROL_MAX_BYTES);
    parent->link = link;
    connect->progress[0].is_joined = true;
    connect->progress[0].return_ms = 0;
    if (is_on_this_node(connect->control, parent->rank)) {
        status = hvd_fd_passing_offer(&connect->passing, link);
    } else {
        status = hvd_link_send(link, HVD_CONTROL_TYPE_JOINED, NULL, 0, -1);
    }
    if (status == 0) {
        status = read_messages(connect, parent);
    }
    if (status != 0) {
        lose_neighbour(connect, parent, status);
    }
}

/* --- waiting for all neighbours, within the time limit --- */

static bool is_missing(const struct connect *connect, int i)
{
    return connect->control->neighbours[i].link == NULL ||
           !connect->progress[i].is_joined;
}

/* Returns the deadline of this rank, which is earlier while a neighbour is missing. */
static int64_t deadline_of(const struct connect *connect)
{
    int last_word_ms = connect->timeout_ms / 4;

    if (last_word_ms > LAST_WORD_MS) {
        last_word_ms = LAST_WORD_MS;
    }
    for (int i = 0; i < connect->control->count; i++) {
        if (is_missing(connect, i)) {
            return connect->deadline_ms - last_word_ms;
        }
    }
    return connect->deadline_ms;
}

/* Ends the job if a neighbour whose connection was reset is not back in time. */
static void end_returns(struct connect *connect, int64_t now_ms)
{
    struct hvd_control *control = connect->control;

    for (int i = 0; i < control->count; i++) {
        const struct progress *progress = &connect->progress[i];

        if (progress->return_ms != 0 && now_ms >= progress->return_ms &&
            control->neighbours[i].link == NULL) {
            hvd_control_propagate(control, &progress->loss, &control->neighbours[i]);
        }
    }
}

/* Fills in the descriptors to wait for; returns their number. */
static int list_fds(struct connect *connect, int64_t *wake_ms)
{
    struct hvd_control *control = connect->control;
    struct pollfd *fds = connect->fds;

    *wake_ms = deadline_of(connect);
    for (int i = 0; i < control->count; i++) {
        const struct hvd_neighbour *neighbour = &control->neighbours[i];
        const int64_t return_ms = connect->progress[i].return_ms;

        fds[i] = (struct pollfd){.fd = -1, .events = POLLIN};
        if (neighbour->link != NULL && !is_held(connect, neighbour)) {
            fds[i].fd = hvd_link_fd(neighbour->link);
            fds[i].events |= hvd_link_is_pending(neighbour->link) ? POLLOUT : 0;
        } else if (neighbour->link == NULL && return_ms != 0 && return_ms < *wake_ms) {
            *wake_ms = return_ms;
        }
    }
    fds[control->count] = (struct pollfd){.fd = -1};
    if (connect->connector != NULL) {
        hvd_connector_poll(connect->connector, &fds[control->count], wake_ms);
    }
    return control->count + 1 +
           hvd_acceptor_poll(connect->acceptor, &fds[control->count + 1], wake_ms);
}

static void step_connect(struct connect *connect, int64_t now_ms)
{
    struct hvd_control *control = connect->control;
    struct pollfd *fds = connect->fds;

    for (int i = 0; i < control->count && !is_over(connect); i++) {
        if (fds[i].fd >= 0 && fds[i].revents != 0) {
            attend_neighbour(connect, &control->neighbours[i]);
        }
    }
    if (is_over(connect)) {
        return;
    }
    hvd_acceptor_step(connect->acceptor, &fds[control->count + 1], now_ms, admit_child,
                      connect);
    if (connect->connector != NULL &&
        hvd_connector_step(connect->connector, fds[control->count].revents, now_ms) ==
            0) {
        join_tree(connect);
    }
}

/* Appends the failure of the last outgoing attempt. Incoming connections are not
 * mentioned: a rank with another secret reports that itself, and strangers must not be
 * able to write into our errors. */
static void add_hints(const struct connect *connect, char *text, size_t size)
{
    const char *failure =
        connect->connector != NULL ? hvd_connector_failure(connect->connector) : "";
    size_t used = strlen(text);

    if (connect->connector != NULL && connect->control->neighbours[0].link == NULL &&
        failure[0] != '\0') {
        snprintf(text + used, size - used, "; tried %s", failure);
    }
}

/* Ends the job because the time limit has passed. */
static void give_up(struct connect *connect)
{
    struct hvd_control *control = connect->control;
    struct hvd_control_reason abort = {.rank = control->boot->rank,
                                       .status = HVD_ERR_TIMEOUT};
    double seconds = connect->timeout_ms / 1000.0;
    char others[32] = "";
    int missing = 0;

    for (int i = 0; i < control->count; i++) {
        if (is_missing(connect, i) && missing++ == 0) {
            abort.rank = control->neighbours[i].rank;
        }
    }
    if (missing > 1) {
        snprintf(others, sizeof(others), " and %d more", missing - 1);
    }
    if (missing > 0) {
        snprintf(
            abort.text, sizeof(abort.text),
            "rank %d (host %s)%s did not connect within %g s: is it running, and can "
            "the hosts reach each other? " HVD_ENV_IFACE " chooses the network "
            "interface",
            abort.rank, control->boot->peers[abort.rank].host, others, seconds);
        add_hints(connect, abort.text, sizeof(abort.text));
    } else {
        snprintf(abort.text, sizeof(abort.text),
                 "not all ranks connected within %g s, and no rank reported which one is "
                 "missing",
                 seconds);
    }
    hvd_control_propagate(control, &abort, NULL);
}

/* Whether the service of an elastic job knows of a rank that died before it connected; if
 * so, ends the job. No socket of this rank shows such a death. */
static bool is_lost(struct connect *connect)
{
    struct hvd_control *control = connect->control;
    struct hvd_control_reason abort = {.rank = hvd_boot_lost(control->boot),
                                       .status = HVD_ERR_PEER};
    const char *host;

    if (abort.rank < 0 || abort.rank >= control->boot->size) {
        return false;
    }
    host = control->boot->peers[abort.rank].host;
    if (abort.rank == control->boot->rank) {
        snprintf(abort.text, sizeof(abort.text),
                 "rank %d on %s lost its connection to the service of the job while it "
                 "connected, so the others begin without it",
                 abort.rank, host);
    } else {
        snprintf(abort.text, sizeof(abort.text), "rank %d on %s died while it connected",
                 abort.rank, host);
    }
    hvd_control_propagate(control, &abort, NULL);
    return true;
}

static void wait_and_step(struct connect *connect)
{
    int64_t wake_ms;
    int count = list_fds(connect, &wake_ms);
    int64_t wait_ms = wake_ms - hvd_clock_ms();

    if (wait_ms < 0) {
        wait_ms = 0;
    }
    if (connect->control->boot->is_elastic && wait_ms > ASK_MS) {
        wait_ms = ASK_MS;
    }
    if (poll(connect->fds, (nfds_t)count, wait_ms > INT_MAX ? INT_MAX : (int)wait_ms) <
        0) {
        return;
    }
    step_connect(connect, hvd_clock_ms());
    if (!is_over(connect)) {
        end_returns(connect, hvd_clock_ms());
    }
    if (!is_over(connect) && !is_lost(connect) &&
        hvd_clock_ms() >= deadline_of(connect)) {
        give_up(connect);
    }
}

static void run_connect(struct connect *connect)
{
    pass_on(connect);
    while (!is_over(connect)) {
        wait_and_step(connect);
        if (!connect->control->is_aborted) {
            pass_on(connect);
        }
    }
}

static int list_neighbours(struct hvd_control *control)
{
    const struct hvd_boot *boot = control->boot;
    int parent = hvd_tree_parent(&boot->layout, boot->rank);
    int children = hvd_tree_children(&boot->layout, boot->rank, NULL);
    int first = parent < 0 ? 0 : 1;

    control->children = calloc((size_t)children + 1, sizeof(*control->children));
    control->neighbours =
        calloc((size_t)(first + children) + 1, sizeof(*control->neighbours));
    if (control->children == NULL || control->neighbours == NULL) {
        return HVD_ERR_NOMEM;
    }
    hvd_tree_children(&boot->layout, boot->rank, control->children);
    control->neighbours[0].rank = parent;
    for (int i = 0; i < children; i++) {
        control->neighbours[first + i].rank = control->children[i];
    }
    control->count = first + children;
    return 0;
}

static int drop_own(const struct hvd_control *control, struct hvd_connect_card *card,
                    int *dropped, struct hvd_error *err)
{
    struct hvd_interfaces_own own;
    int status = hvd_interfaces_own_init(&own, err);

    if (status == 0) {
        *dropped = hvd_connect_card_drop_own(card, &control->card, &own);
    }
    hvd_interfaces_own_finish(&own);
    return status;
}

static int prepare_connect(struct connect *connect, const void *const *addresses,
                           const size_t *address_bytes, struct hvd_error *err)
{
    struct hvd_control *control = connect->control;
    const struct hvd_handshake_party self = {
        .rank = control->boot->rank,
        .size = control->boot->size,
        .secret = control->boot->secret,
    };
    int parent = hvd_control_parent(control);
    int status =
        hvd_acceptor_create(&self, &control->doors, control->count, &connect->acceptor);

    connect->progress = calloc((size_t)control->count + 1, sizeof(*connect->progress));
    if (connect->progress == NULL) {
        status = HVD_ERR_NOMEM;
    }
    if (status == 0 && parent >= 0) {
        struct hvd_connect_card card;
        struct hvd_connector_target target = {
            .rank = parent, .is_local = is_on_this_node(control, parent), .card = &card};

        if (hvd_connect_card_parse(&card, addresses[parent], address_bytes[parent]) !=
            0) {
            return hvd_fail(err, HVD_ERR_ARG,
                            "rank %d (host %s) sent an address that this version of hvd "
                            "cannot read: does every node have the same hvd?",
                            parent, control->boot->peers[parent].host);
        }
        if (!target.is_local &&
            (status = drop_own(control, &card, &target.own_addresses, err)) != 0) {
            return status;
        }
        status = hvd_connector_create(&self, &target, &connect->connector);
    }
    if (status == 0) {
        size_t count =
            (size_t)control->count + 1 + (size_t)hvd_acceptor_capacity(connect->acceptor);

        connect->fds = calloc(count, sizeof(*connect->fds));
        status = connect->fds == NULL ? HVD_ERR_NOMEM : 0;
    }
    return status == 0 ? 0 : hvd_fail(err, status, "out of memory");
}

/* Stops accepting connections; from now on hvd_control_progress reads the links. */
static int settle_control(struct hvd_control *control, struct hvd_error *err)
{
    hvd_acceptor_doors_close(&control->doors);
    for (int i = 0; i < control->count; i++) {
        if (hvd_control_watch(control, &control->neighbours[i]) != 0) {
            return hvd_fail(err, HVD_ERR_SYS, "cannot watch a control connection: %m");
        }
    }
    /* Messages that follow GO may have been read with it; no socket becomes readable for
     * them. */
    hvd_control_wake(control);
    return 0;
}

int hvd_control_connect(struct hvd_control *control, const struct hvd_boot *boot,
                        const void *const *addresses, const size_t *address_bytes,
                        int timeout_ms, int *leader_fd, int local_fd, int *peer_fds,
                        struct hvd_error *err)
{
    struct connect connect = {
        .control = control,
        .timeout_ms = timeout_ms,
        .deadline_ms = hvd_clock_ms() + timeout_ms,
    };
    int status;

    control->boot = boot;
    status = list_neighbours(control);
    if (status == 0) {
        status = hvd_fd_passing_init(&connect.passing, &boot->layout, boot->rank,
                                     *leader_fd, local_fd);
    }
    if (status != 0) {
        return hvd_fail(err, status, "out of memory");
    }
    status = prepare_connect(&connect, addresses, address_bytes, err);
    if (status == 0) {
        run_connect(&connect);
        status = control->is_aborted
                     ? hvd_fail(err, control->abort.status, "%s", control->abort.text)
                     : settle_control(control, err);
    }
    if (status == 0) {
        hvd_fd_passing_take(&connect.passing, leader_fd, peer_fds);
    }
    hvd_fd_passing_finish(&connect.passing);
    hvd_acceptor_destroy(connect.acceptor);
    hvd_connector_destroy(connect.connector);
    free(connect.fds);
    free(connect.progress);
    return status;
}
