/* SPDX-License-Identifier: Apache-2.0 */
/* Envelopes to and from a rank of another node. */
#include "collectives/p2p/net_link.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/request/request.h"
#include "collectives/transport/net/net_flow.h"

_Static_assert(sizeof(struct hvd_envelope) + HVD_PIECE_BYTES <= HVD_NET_FRAGMENT_BYTES,
               "an envelope arrives in one piece");

/* A message on its way out. If a peer fails while the net holds a frame, the frame stays
 * with the net until the net is destroyed. */
struct hvd_net_link_frame {
    struct hvd_net_op op;
    struct hvd_net_link_frame *next;
    struct hvd_envelope envelope;
    char payload[];
};

/* Takes one envelope with its payload: the net does not cut messages this short. */
static void take_envelope(struct hvd_net_op *op, const void *data, size_t bytes)
{
    const struct hvd_net_link *link = (const struct hvd_net_link *)op;

    link->arrived(link->context, data, bytes);
}

int hvd_net_link_open(struct hvd_net_link *link, struct hvd_net *net, int rank,
                      struct hvd_error *err)
{
    link->flow = hvd_net_flow_get(net, rank, HVD_NET_LINK_CHANNEL);
    if (link->flow == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a connection");
    }
    link->frames_end = &link->frames;
    link->inlet = (struct hvd_net_op){.take = take_envelope, .bytes = SIZE_MAX};
    hvd_net_recv(link->flow, &link->inlet);
    return 0;
}

void hvd_net_link_close(struct hvd_net_link *link)
{
    while (link->frames != NULL) {
        struct hvd_net_link_frame *frame = link->frames;

        link->frames = frame->next;
        free(frame);
    }
}

int hvd_net_link_write(struct hvd_net_link *link, const struct hvd_envelope *envelope,
                       const void *payload, struct hvd_error *err)
{
    const bool is_number = hvd_dtype_is_float((enum hvd_dtype)envelope->dtype);
    struct hvd_net_link_frame *frame = malloc(sizeof(*frame) + envelope->payload);

    if (frame == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a message");
    }
    frame->op = (struct hvd_net_op){.data = (char *)&frame->envelope,
                                    .bytes = sizeof(*envelope) + envelope->payload,
                                    .covered = is_number ? sizeof(*envelope) : SIZE_MAX};
    frame->next = NULL;
    frame->envelope = *envelope;
    if (envelope->payload > 0) {
        memcpy(frame->payload, payload, envelope->payload);
    }
    *link->frames_end = frame;
    link->frames_end = &frame->next;
    link->frame_count++;
    hvd_net_send(link->flow, &frame->op);
    hvd_net_link_reap(link);
    return 0;
}

/* Failed frames do not count here: the net reports the failure of a peer itself. */
bool hvd_net_link_has_sent(const struct hvd_net_link *link)
{
    return link->frames != NULL && link->frames->op.status == 0;
}

bool hvd_net_link_reap(struct hvd_net_link *link)
{
    bool reaped = false;

    while (hvd_net_link_has_sent(link)) {
        struct hvd_net_link_frame *frame = link->frames;

        link->frames = frame->next;
        link->frame_count--;
        free(frame);
        reaped = true;
    }
    if (link->frames == NULL) {
        link->frames_end = &link->frames;
    }
    return reaped;
}

bool hvd_net_link_has_room(const struct hvd_net_link *link)
{
    return link->frame_count < HVD_NET_WINDOW_BYTES / HVD_PIECE_BYTES;
}
