/* SPDX-License-Identifier: Apache-2.0 */
/* Building the control tree: waits for everything at once, within the time limit. */
#include "collectives/transport/control/control.h"

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/transport/control/dial.h"
#include "gpu_binding/base/fork_close.h"
#include "collectives/transport/control/guests.h"
#include "collectives/transport/control/meeting.h"
#include "collectives/transport/control/tree.h"
#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/env.h"

/* Who misses a neighbour says so this much before the limit, so that those who only wait for a
 * word from others can still hear whose fault it is, even if they began that much earlier. */
#define LAST_WORD_MS 3000

/* How often an elastic job's service is asked whether somebody has died meanwhile. */
#define ASK_MS 100

struct connect {
    struct hvd_control *control;
    struct hvd_meeting meeting;
    struct hvd_guests *guests;
    struct hvd_dial *dial; /* NULL on rank 0 */
    struct pollfd *fds; /* the neighbours', the dial's, the guests' */
    int timeout_ms;
    int64_t deadline_ms;
};

static bool is_missing(const struct hvd_control *control, int i)
{
    return control->neighbours[i].link == NULL || !control->neighbours[i].is_joined;
}

/* The deadline of this rank: earlier while it misses a neighbour. */
static int64_t limit(const struct connect *connect)
{
    int last_word_ms = connect->timeout_ms / 4;

    if (last_word_ms > LAST_WORD_MS) {
        last_word_ms = LAST_WORD_MS;
    }
    for (int i = 0; i < connect->control->count; i++) {
        if (is_missing(connect->control, i)) {
            return connect->deadline_ms - last_word_ms;
        }
    }
    return connect->deadline_ms;
}

/* Fills in what to wait for; returns how many. */
static int list_fds(struct connect *connect, int64_t *wake_ms)
{
    struct hvd_control *control = connect->control;
    struct pollfd *fds = connect->fds;

    *wake_ms = limit(connect);
    for (int i = 0; i < control->count; i++) {
        struct hvd_link *link = control->neighbours[i].link;

        fds[i] = (struct pollfd){.fd = -1, .events = POLLIN};
        if (link != NULL) {
            fds[i].fd = hvd_link_fd(link);
            fds[i].events |= hvd_link_is_pending(link) ? POLLOUT : 0;
        }
    }
    fds[control->count] = (struct pollfd){.fd = -1};
    if (connect->dial != NULL) {
        hvd_dial_poll(connect->dial, &fds[control->count], wake_ms);
    }
    return control->count + 1 +
           hvd_guests_poll(connect->guests, &fds[control->count + 1], wake_ms);
}

static void step(struct connect *connect, int64_t now_ms)
{
    struct hvd_control *control = connect->control;
    struct pollfd *fds = connect->fds;
    struct hvd_link *link = NULL;

    for (int i = 0; i < control->count && !hvd_meeting_is_over(&connect->meeting); i++) {
        if (fds[i].fd >= 0 && fds[i].revents != 0) {
            hvd_meeting_attend(&connect->meeting, &control->neighbours[i]);
        }
    }
    if (hvd_meeting_is_over(&connect->meeting)) {
        return;
    }
    hvd_guests_step(connect->guests, &fds[control->count + 1], now_ms, hvd_meeting_admit,
                    &connect->meeting);
    if (connect->dial != NULL &&
        hvd_dial_step(connect->dial, fds[control->count].revents, now_ms, &link) == 0) {
        hvd_meeting_join(&connect->meeting, link);
    }
}

/* Adds to text what may help: how the last attempts failed. */
static void add_hints(const struct connect *connect, char *text, size_t size)
{
    const char *trouble = connect->dial != NULL ? hvd_dial_trouble(connect->dial) : "";
    int refused = hvd_guests_refused(connect->guests);
    size_t used = strlen(text);

    if (connect->dial != NULL && connect->control->neighbours[0].link == NULL &&
        trouble[0] != '\0') {
        snprintf(text + used, size - used, "; tried %s", trouble);
        used = strlen(text);
    }
    if (refused > 0) {
        snprintf(text + used, size - used,
                 "; %d connections came with the secret of another job", refused);
    }
}

/* The time is over. */
static void give_up(struct connect *connect)
{
    struct hvd_control *control = connect->control;
    struct hvd_wire_abort abort = {.rank = control->boot->rank,
                                   .status = HVD_ERR_TIMEOUT};
    double seconds = connect->timeout_ms / 1000.0;
    char others[32] = "";
    int missing = 0;

    for (int i = 0; i < control->count; i++) {
        if (is_missing(control, i) && missing++ == 0) {
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
                 "the ranks did not all connect within %g s, and none of them said which "
                 "one is missing",
                 seconds);
    }
    hvd_control_spread(control, &abort, NULL);
}

/* Who died before it connected closes no socket of ours: only the elastic job's service knows. */
static bool is_lost(struct connect *connect)
{
    struct hvd_control *control = connect->control;
    struct hvd_wire_abort abort = {.rank = hvd_boot_lost(control->boot),
                                   .status = HVD_ERR_PEER};

    if (abort.rank < 0 || abort.rank >= control->boot->size) {
        return false;
    }
    snprintf(abort.text, sizeof(abort.text), "rank %d on %s died while it connected",
             abort.rank, control->boot->peers[abort.rank].host);
    hvd_control_spread(control, &abort, NULL);
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
    step(connect, hvd_clock_ms());
    if (!hvd_meeting_is_over(&connect->meeting) && !is_lost(connect) &&
        hvd_clock_ms() >= limit(connect)) {
        give_up(connect);
    }
}

static void run(struct connect *connect)
{
    hvd_meeting_pass_on(&connect->meeting);
    while (!hvd_meeting_is_over(&connect->meeting)) {
        wait_and_step(connect);
        if (!connect->control->is_aborted) {
            hvd_meeting_pass_on(&connect->meeting);
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

static int prepare(struct connect *connect, const void *const *addresses,
                   const size_t *address_bytes, struct hvd_error *err)
{
    struct hvd_control *control = connect->control;
    int parent = hvd_control_parent(control);
    int status = hvd_guests_create(control->boot, control->listening, control->count,
                                   &connect->guests);

    if (status == 0 && parent >= 0) {
        struct hvd_control_card card;

        if (hvd_control_card_parse(&card, addresses[parent], address_bytes[parent]) !=
            0) {
            return hvd_fail(err, HVD_ERR_ARG,
                            "rank %d (host %s) sent an address that this version of hvd "
                            "cannot read: does every node have the same hvd?",
                            parent, control->boot->peers[parent].host);
        }
        status = hvd_dial_create(control->boot, parent, &card, &connect->dial);
    }
    if (status == 0) {
        size_t count =
            (size_t)(control->count + 1 + hvd_guests_capacity(connect->guests));

        connect->fds = calloc(count, sizeof(*connect->fds));
        status = connect->fds == NULL ? HVD_ERR_NOMEM : 0;
    }
    return status == 0 ? 0 : hvd_fail(err, status, "out of memory");
}

/* Nobody has to come in any more; from now on progress listens. */
static int settle(struct hvd_control *control, struct hvd_error *err)
{
    for (int i = 0; i < 2; i++) {
        hvd_fork_close_now(control->listening[i]);
        control->listening[i] = -1;
    }
    for (int i = 0; i < control->count; i++) {
        if (hvd_control_watch(control, &control->neighbours[i]) != 0) {
            return hvd_fail(err, HVD_ERR_SYS, "cannot watch a control connection: %m");
        }
    }
    /* What came behind GO is read already: no socket will tell. */
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
        .meeting = {.control = control},
        .timeout_ms = timeout_ms,
        .deadline_ms = hvd_clock_ms() + timeout_ms,
    };
    int status;

    control->boot = boot;
    status = list_neighbours(control);
    if (status == 0) {
        status = hvd_sharing_init(&connect.meeting.sharing, &boot->layout, boot->rank,
                                  *leader_fd, local_fd);
    }
    if (status != 0) {
        return hvd_fail(err, status, "out of memory");
    }
    status = prepare(&connect, addresses, address_bytes, err);
    if (status == 0) {
        run(&connect);
        status = control->is_aborted
                     ? hvd_fail(err, control->abort.status, "%s", control->abort.text)
                     : settle(control, err);
    }
    if (status == 0) {
        hvd_sharing_take(&connect.meeting.sharing, leader_fd, peer_fds);
    }
    hvd_sharing_finish(&connect.meeting.sharing);
    hvd_guests_destroy(connect.guests);
    hvd_dial_destroy(connect.dial);
    free(connect.fds);
    return status;
}
