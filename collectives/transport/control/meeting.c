/* SPDX-License-Identifier: Apache-2.0 */
/* What neighbours say to each other while the control tree is built. */
#include "collectives/transport/control/meeting.h"

#include "gpu_binding/base/fork_close.h"

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

bool hvd_meeting_is_over(const struct hvd_meeting *meeting)
{
    return meeting->is_go || meeting->control->is_aborted;
}

/* A guest has proved to be `child`. */
bool hvd_meeting_admit(void *context, int child, struct hvd_link *link)
{
    struct hvd_meeting *meeting = context;
    struct hvd_control *control = meeting->control;

    for (int i = hvd_control_first_child(control); i < control->count; i++) {
        struct hvd_neighbour *neighbour = &control->neighbours[i];

        if (neighbour->rank == child && neighbour->link == NULL) {
            hvd_link_allow(link, HVD_WIRE_MAX_BYTES);
            hvd_link_send(link, HVD_WIRE_WELCOME, NULL, 0, -1);
            neighbour->link = link;
            return true;
        }
    }
    return false;
}

/* A death, or something that cannot be understood. Before it has joined, a child may change
 * its mind and dial again. */
static void lose(struct hvd_meeting *meeting, struct hvd_neighbour *neighbour, int status)
{
    struct hvd_control *control = meeting->control;
    struct hvd_wire_abort abort;

    hvd_control_mourn(control, neighbour, status, &abort);
    hvd_link_destroy(neighbour->link);
    neighbour->link = NULL;
    if (neighbour->is_joined) {
        hvd_control_spread(control, &abort, neighbour);
    }
}

static void say(struct hvd_meeting *meeting, struct hvd_neighbour *neighbour,
                uint32_t type)
{
    int status = hvd_link_send(neighbour->link, type, NULL, 0, -1);

    if (status != 0) {
        lose(meeting, neighbour, status);
    }
}

static void hand_out(struct hvd_meeting *meeting)
{
    struct hvd_control *control = meeting->control;

    for (int i = hvd_control_first_child(control); i < control->count; i++) {
        struct hvd_neighbour *child = &control->neighbours[i];

        if (is_on_this_node(control, child->rank)) {
            int local_rank = control->boot->layout.local_rank[child->rank];
            int status = hvd_sharing_hand_out(&meeting->sharing, child->link, local_rank);

            if (status != 0) {
                lose(meeting, child, status);
            }
        }
    }
    meeting->is_handed_out = true;
}

/* Passes on that all is well, when it is: up that all below are there, down that all are. */
void hvd_meeting_pass_on(struct hvd_meeting *meeting)
{
    struct hvd_control *control = meeting->control;
    int first = hvd_control_first_child(control);
    bool is_ready = meeting->sharing.missing == 0;

    if (is_ready && meeting->sharing.local_rank == 0 && !meeting->is_handed_out) {
        hand_out(meeting);
    }
    for (int i = first; i < control->count; i++) {
        is_ready = is_ready && control->neighbours[i].is_ready;
    }
    if (is_ready && first == 0) {
        meeting->is_go = true;
    } else if (is_ready && control->neighbours[0].is_joined && !meeting->is_ready_sent) {
        say(meeting, &control->neighbours[0], HVD_WIRE_READY);
        meeting->is_ready_sent = true;
    }
    if (meeting->is_go) {
        for (int i = first; i < control->count; i++) {
            say(meeting, &control->neighbours[i], HVD_WIRE_GO);
        }
    }
}

static int hear_from_parent(struct hvd_meeting *meeting, struct hvd_link_message *message)
{
    switch (message->type) {
    case HVD_WIRE_SHARE:
        return hvd_sharing_accept(&meeting->sharing, message);
    case HVD_WIRE_GO:
        meeting->is_go = meeting->is_ready_sent;
        return meeting->is_go ? 0 : HVD_ERR_NET;
    default:
        return HVD_ERR_NET;
    }
}

static int hear_from_child(struct hvd_meeting *meeting, struct hvd_neighbour *child,
                           struct hvd_link_message *message)
{
    switch (message->type) {
    case HVD_WIRE_JOINED:
        child->is_joined = true;
        return is_on_this_node(meeting->control, child->rank)
                   ? hvd_sharing_accept(&meeting->sharing, message)
                   : 0;
    case HVD_WIRE_READY:
        child->is_ready = child->is_joined;
        return child->is_ready ? 0 : HVD_ERR_NET;
    default:
        return HVD_ERR_NET;
    }
}

/* Takes out what has arrived from a neighbour, until the meeting is over: what follows is not
 * ours. */
static int hear(struct hvd_meeting *meeting, struct hvd_neighbour *neighbour)
{
    struct hvd_control *control = meeting->control;
    struct hvd_link_message message;
    int status = 0;

    while (status == 0 && !hvd_meeting_is_over(meeting)) {
        struct hvd_wire_abort abort;

        status = hvd_link_next(neighbour->link, &message);
        if (status != 0) {
            return status == HVD_INPROGRESS ? 0 : status;
        }
        if (message.type == HVD_WIRE_ABORT) {
            status = hvd_control_read_abort(control, &message, &abort);
            if (status == 0) {
                hvd_control_spread(control, &abort, neighbour);
            }
        } else if (is_parent(control, neighbour)) {
            status = hear_from_parent(meeting, &message);
        } else {
            status = hear_from_child(meeting, neighbour, &message);
        }
        hvd_fork_close_now(message.fd);
    }
    return status;
}

void hvd_meeting_attend(struct hvd_meeting *meeting, struct hvd_neighbour *neighbour)
{
    int status;

    hvd_link_flush(neighbour->link);
    status = hvd_link_read(neighbour->link);
    if (status == HVD_INPROGRESS) {
        return;
    }
    if (status == 0) {
        status = hear(meeting, neighbour);
    }
    if (status != 0) {
        lose(meeting, neighbour, status);
    }
}

/* The parent has welcomed this rank. */
void hvd_meeting_join(struct hvd_meeting *meeting, struct hvd_link *link)
{
    struct hvd_neighbour *parent = &meeting->control->neighbours[0];
    int status;

    hvd_link_allow(link, HVD_WIRE_MAX_BYTES);
    parent->link = link;
    parent->is_joined = true;
    if (is_on_this_node(meeting->control, parent->rank)) {
        status = hvd_sharing_offer(&meeting->sharing, link);
    } else {
        status = hvd_link_send(link, HVD_WIRE_JOINED, NULL, 0, -1);
    }
    if (status == 0) {
        status = hear(meeting, parent);
    }
    if (status != 0) {
        lose(meeting, parent, status);
    }
}
