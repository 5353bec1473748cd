/* SPDX-License-Identifier: Apache-2.0 */
/* Why a job ends: the first reason wins and goes to every rank. */
#include "collectives/transport/control/control.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "collectives/transport/control/control_state.h"

void hvd_control_spread(struct hvd_control *control, const struct hvd_wire_abort *abort,
                        const struct hvd_neighbour *source)
{
    if (control->is_aborted) {
        return;
    }
    control->is_aborted = true;
    control->abort = *abort;
    for (int i = 0; i < control->count; i++) {
        if (&control->neighbours[i] != source) {
            hvd_control_send_to(control, &control->neighbours[i], HVD_WIRE_ABORT, abort,
                                sizeof(*abort));
        }
    }
    hvd_control_wake(control);
}

void hvd_control_abort(struct hvd_control *control, int rank, const char *text)
{
    struct hvd_wire_abort abort = {.rank = rank, .status = HVD_ERR_PEER};

    snprintf(abort.text, sizeof(abort.text), "%s", text);
    hvd_control_spread(control, &abort, NULL);
}

void hvd_control_mourn(const struct hvd_control *control,
                       const struct hvd_neighbour *neighbour, int status,
                       struct hvd_wire_abort *abort)
{
    const char *host = control->boot->peers[neighbour->rank].host;
    int error = hvd_link_errno(neighbour->link);

    *abort = (struct hvd_wire_abort){.rank = neighbour->rank, .status = status};
    if (status != HVD_ERR_PEER) {
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

int hvd_control_read_abort(const struct hvd_control *control,
                           const struct hvd_link_message *message,
                           struct hvd_wire_abort *abort)
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
