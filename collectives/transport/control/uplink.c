/* SPDX-License-Identifier: Apache-2.0 */
/* Sends each message up or down the tree over the faster transport to that neighbour. */
#include "collectives/transport/control/uplink.h"

#include <inttypes.h>
#include <stdlib.h>

#include "collectives/transport/control/tree.h"
#include "collectives/transport/shm/mail.h"
#include "gpu_binding/base/log.h"

struct hvd_uplink {
    struct hvd_uplink_config config;
    int local_rank;
    int local_size;
    int child_count; /* children on other nodes first, then the local ones */
    hvd_uplink_handler handler; /* set during progress */
    void *context;
};

int hvd_uplink_create(const struct hvd_uplink_config *config, struct hvd_uplink **out,
                      struct hvd_error *err)
{
    const struct hvd_layout *layout = config->layout;
    struct hvd_uplink *uplink = calloc(1, sizeof(*uplink));

    if (uplink == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "out of memory");
    }
    uplink->config = *config;
    uplink->local_rank = layout->local_rank[config->rank];
    uplink->local_size = hvd_layout_local_size(layout, layout->node[config->rank]);
    uplink->child_count = hvd_tree_children(layout, config->rank, NULL);
    *out = uplink;
    return 0;
}

void hvd_uplink_destroy(struct hvd_uplink *uplink)
{
    free(uplink);
}

int hvd_uplink_children(const struct hvd_uplink *uplink)
{
    return uplink->child_count;
}

/* Logs a failure of the mail here, because callers pass on only its status. */
static int log_failure(int status, const struct hvd_error *err)
{
    if (status < 0) {
        hvd_log(HVD_LOG_ERROR, "%s", err->text);
    }
    return status;
}

static int send_on_node(struct hvd_uplink *uplink, uint32_t type, const void *payload,
                        size_t bytes)
{
    struct hvd_error err = {0};

    return log_failure(
        hvd_mail_send_control(uplink->config.mail, type, payload, bytes, &err), &err);
}

/* The receiver would take a longer message for a broken connection, so it is refused
 * here. */
static int check_bytes(uint32_t type, size_t bytes)
{
    if (bytes <= HVD_UPLINK_MOST_BYTES) {
        return 0;
    }
    hvd_log(HVD_LOG_ERROR,
            "a control message of type %" PRIu32
            " has %zu bytes; at most %zu can be sent",
            type, bytes, HVD_UPLINK_MOST_BYTES);
    return HVD_ERR_ARG;
}

int hvd_uplink_send_up(struct hvd_uplink *uplink, uint32_t type, const void *payload,
                       size_t bytes)
{
    if (check_bytes(type, bytes) != 0) {
        return HVD_ERR_ARG;
    }
    if (uplink->local_rank > 0) {
        return send_on_node(uplink, type, payload, bytes);
    }
    return hvd_control_send_up(uplink->config.control, type, payload, bytes);
}

int hvd_uplink_send_down(struct hvd_uplink *uplink, uint32_t type, const void *payload,
                         size_t bytes)
{
    int status = check_bytes(type, bytes);

    if (status != 0 || uplink->local_rank > 0) {
        return status;
    }
    /* Other nodes first, because their messages take longer. */
    status = hvd_control_send_to_nodes(uplink->config.control, type, payload, bytes);
    return status != 0 ? status : send_on_node(uplink, type, payload, bytes);
}

int hvd_uplink_send_node(struct hvd_uplink *uplink, uint32_t type, const void *payload,
                         size_t bytes)
{
    int status = check_bytes(type, bytes);

    return status != 0 ? status : send_on_node(uplink, type, payload, bytes);
}

int hvd_uplink_send_child(struct hvd_uplink *uplink, int child, uint32_t type,
                          const void *payload, size_t bytes)
{
    return check_bytes(type, bytes) != 0
               ? HVD_ERR_ARG
               : hvd_control_send_child(uplink->config.control, child, type, payload,
                                        bytes);
}

static int on_mail(void *context, int from, uint32_t type, const void *payload,
                   size_t bytes)
{
    struct hvd_uplink *uplink = context;
    int far_children = uplink->child_count - (uplink->local_size - 1);
    const struct hvd_uplink_event event = {
        .kind = HVD_UPLINK_MESSAGE,
        .from = from == 0 ? HVD_UPLINK_PARENT : far_children + from - 1,
        .type = type,
        .payload = payload,
        .bytes = bytes,
    };

    uplink->handler(uplink->context, &event);
    return 0;
}

static void on_control(void *context, const struct hvd_control_event *event)
{
    struct hvd_uplink *uplink = context;
    bool is_message = event->kind == HVD_CONTROL_MESSAGE;
    const struct hvd_uplink_event passed = {
        .kind = is_message ? HVD_UPLINK_MESSAGE : HVD_UPLINK_ABORT,
        .from = event->from,
        .type = event->type,
        .payload = event->payload,
        .bytes = event->bytes,
        .rank = event->rank,
        .text = event->text,
    };

    uplink->handler(uplink->context, &passed);
}

int hvd_uplink_progress_node(struct hvd_uplink *uplink, hvd_uplink_handler handler,
                             void *context)
{
    struct hvd_error err = {0};

    uplink->handler = handler;
    uplink->context = context;
    return log_failure(
        hvd_mail_progress(uplink->config.mail, HVD_MAIL_CONTROL, on_mail, uplink, &err),
        &err);
}

int hvd_uplink_progress_sockets(struct hvd_uplink *uplink, hvd_uplink_handler handler,
                                void *context)
{
    uplink->handler = handler;
    uplink->context = context;
    return hvd_control_progress(uplink->config.control, on_control, uplink);
}
