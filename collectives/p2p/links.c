/* SPDX-License-Identifier: Apache-2.0 */
/* Carries envelopes from this rank to others. */
#include "collectives/p2p/links.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/p2p/net_link.h"
#include "collectives/transport/shm/mail.h"
#include "pmix_boot/boot.h"

struct hvd_p2p_link {
    struct hvd_links *links;
    int rank;
    struct hvd_net_link net;
    struct hvd_p2p_link *next_busy;
    bool is_busy;
};

static int fail_links(struct hvd_links *links, int status, const char *text)
{
    if (links->failure.status == 0) {
        hvd_fail(&links->failure, status, "%s", text);
    }
    return status;
}

/* --- incoming --- */

static int take_from_node(void *context, int from, uint32_t type, const void *payload,
                          size_t bytes)
{
    struct hvd_links *links = context;
    const struct hvd_boot *boot = links->config.boot;
    const struct hvd_envelope *envelope = payload;
    int status = hvd_envelope_check(envelope, bytes, &links->failure);

    (void)type;
    return status != 0
               ? status
               : links->config.arrived(
                     links->config.context,
                     hvd_layout_rank(&boot->layout, boot->layout.node[boot->rank], from),
                     envelope, envelope + 1);
}

/* Takes an envelope from the net, whose bytes are not aligned. */
static void take_from_net(void *context, const void *data, size_t bytes)
{
    const struct hvd_p2p_link *link = context;
    struct hvd_links *links = link->links;
    struct hvd_envelope envelope = {0};

    memcpy(&envelope, data, bytes < sizeof(envelope) ? bytes : sizeof(envelope));
    if (links->failure.status == 0 &&
        hvd_envelope_check(&envelope, bytes, &links->failure) == 0) {
        links->config.arrived(links->config.context, link->rank, &envelope,
                              (const char *)data + sizeof(envelope));
    }
}

void hvd_links_note_caller(struct hvd_links *links, int rank)
{
    for (int i = 0; i < links->caller_count; i++) {
        if (links->callers[i] == rank) {
            return;
        }
    }
    links->callers[links->caller_count++] = rank;
}

/* --- opening --- */

int hvd_links_init(struct hvd_links *links, const struct hvd_links_config *config,
                   struct hvd_error *err)
{
    const struct hvd_layout *layout = &config->boot->layout;

    links->config = *config;
    links->links = calloc((size_t)layout->size, sizeof(links->links[0]));
    links->callers = calloc((size_t)layout->size, sizeof(links->callers[0]));
    if (links->links == NULL || links->callers == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for links to %d ranks",
                        layout->size);
    }
    return 0;
}

void hvd_links_finish(struct hvd_links *links)
{
    for (int i = 0; links->links != NULL && i < links->config.boot->size; i++) {
        struct hvd_p2p_link *link = links->links[i];

        if (link != NULL) {
            hvd_net_link_close(&link->net);
            free(link);
        }
    }
    free(links->links);
    free(links->callers);
    free(links->frame);
    *links = (struct hvd_links){0};
}

int hvd_links_local_rank(const struct hvd_links *links, int rank)
{
    const struct hvd_layout *layout = &links->config.boot->layout;
    const int own = links->config.boot->rank;

    return rank != own && layout->node[rank] == layout->node[own]
               ? layout->local_rank[rank]
               : -1;
}

static int open_link(struct hvd_links *links, int rank)
{
    struct hvd_p2p_link *link = calloc(1, sizeof(*link));

    if (link == NULL) {
        return fail_links(links, HVD_ERR_NOMEM, "no memory for a link");
    }
    link->links = links;
    link->rank = rank;
    link->net.arrived = take_from_net;
    link->net.context = link;
    /* set before the link is opened, because messages can arrive during the call */
    links->links[rank] = link;
    return hvd_net_link_open(&link->net, links->config.net, rank, &links->failure);
}

/* Finds or opens the link to a rank of another node. */
static int get_link(struct hvd_links *links, int rank, struct hvd_p2p_link **out)
{
    int status = links->failure.status;

    if (status == 0 && links->links[rank] == NULL) {
        status = open_link(links, rank);
    }
    *out = links->links[rank];
    return status;
}

/* --- outgoing --- */

static void note_busy(struct hvd_p2p_link *link)
{
    if (!link->is_busy && link->net.frames != NULL) {
        link->is_busy = true;
        link->next_busy = link->links->busy;
        link->links->busy = link;
    }
}

static int write_to_node(struct hvd_links *links, int local_rank,
                         const struct hvd_envelope *envelope, const void *payload)
{
    const void *data = envelope;

    if (links->failure.status != 0) {
        return links->failure.status;
    }
    if (envelope->payload > 0) {
        if (links->frame == NULL) {
            links->frame = malloc(sizeof(*envelope) + HVD_PIECE_BYTES);
        }
        if (links->frame == NULL) {
            return fail_links(links, HVD_ERR_NOMEM, "no memory for a message");
        }
        memcpy(links->frame, envelope, sizeof(*envelope));
        memcpy(links->frame + sizeof(*envelope), payload, envelope->payload);
        data = links->frame;
    }
    return hvd_mail_send_p2p(links->config.mail, local_rank, data,
                             sizeof(*envelope) + envelope->payload, &links->failure);
}

static int write_to_net(struct hvd_links *links, int rank,
                        const struct hvd_envelope *envelope, const void *payload)
{
    struct hvd_p2p_link *link;
    int status = get_link(links, rank, &link);

    if (status == 0) {
        status = hvd_net_link_write(&link->net, envelope, payload, &links->failure);
        note_busy(link);
    }
    return status;
}

int hvd_links_write(struct hvd_links *links, int rank,
                    const struct hvd_envelope *envelope, const void *payload)
{
    const int local_rank = hvd_links_local_rank(links, rank);

    if (rank == links->config.boot->rank) {
        return links->config.arrived(links->config.context, rank, envelope, payload);
    }
    return local_rank >= 0 ? write_to_node(links, local_rank, envelope, payload)
                           : write_to_net(links, rank, envelope, payload);
}

bool hvd_links_have_room(const struct hvd_links *links, int rank)
{
    const struct hvd_p2p_link *link = links->links[rank];
    const int local_rank = hvd_links_local_rank(links, rank);

    if (local_rank >= 0) {
        return !hvd_mail_p2p_waits(links->config.mail, local_rank);
    }
    return link == NULL || hvd_net_link_has_room(&link->net);
}

/* --- moving --- */

static bool reap_busy(struct hvd_links *links)
{
    struct hvd_p2p_link **at = &links->busy;
    bool moved = false;

    while (*at != NULL) {
        struct hvd_p2p_link *link = *at;

        moved |= hvd_net_link_reap(&link->net);
        if (link->net.frames != NULL) {
            at = &link->next_busy;
        } else {
            link->is_busy = false;
            *at = link->next_busy;
        }
    }
    return moved;
}

static void answer_callers(struct hvd_links *links)
{
    struct hvd_p2p_link *link;

    while (links->caller_count > 0 && links->failure.status == 0) {
        get_link(links, links->callers[--links->caller_count], &link);
    }
}

bool hvd_links_progress(struct hvd_links *links)
{
    bool moved = links->busy != NULL && reap_busy(links);

    if (links->failure.status == 0) {
        moved |= hvd_mail_progress(links->config.mail, HVD_MAIL_P2P, take_from_node,
                                   links, &links->failure) != 0;
    }
    if (links->caller_count > 0) {
        answer_callers(links);
        moved = true;
    }
    return moved;
}

bool hvd_links_have_news(const struct hvd_links *links)
{
    bool have =
        links->caller_count > 0 || hvd_mail_has_come(links->config.mail, HVD_MAIL_P2P);

    for (const struct hvd_p2p_link *link = links->busy; link != NULL && !have;
         link = link->next_busy) {
        have = hvd_net_link_has_sent(&link->net);
    }
    return have;
}
