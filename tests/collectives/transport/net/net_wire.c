/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated network for flows: a list of packets in this process. */
#include "tests/collectives/transport/net/net_wire.h"

#include <stdlib.h>
#include <string.h>

static int put_packet(void *peer, struct hvd_net_fragment *fragment)
{
    struct wire_end *end = peer;
    struct wire_packet *packet = &end->packets[end->count];
    size_t bytes = 0;

    if (end->status != 0) {
        return end->status;
    }
    packet->header = fragment->header;
    packet->bytes = fragment->bytes;
    packet->is_offer = fragment->op != NULL && fragment->op->is_device;
    packet->data = malloc(fragment->bytes + 1);
    if (fragment->bytes > 0) {
        memcpy(packet->data, fragment->data, fragment->bytes);
    }
    end->count++;
    for (int i = 0; i < end->count; i++) {
        bytes += end->packets[i].is_offer ? 0 : end->packets[i].bytes;
    }
    end->most = bytes > end->most ? bytes : end->most;
    return 0;
}

int wire_kept;
static const char *delivered; /* data of the packet that is being delivered */
struct hvd_net_op *wire_fetching;
bool wire_is_slow;
uint32_t wire_first_number, wire_first_cost;

/* Copies the data; at random, the operation ends at once or stays under way. */
static int fetch(void *peer, void *offer, struct hvd_net_op *op)
{
    (void)peer;
    memcpy(op->data, offer, op->bytes);
    if (offer != delivered) {
        free(offer);
        wire_kept--;
    }
    if (wire_fetching != NULL || (!wire_is_slow && random() % 2 == 0)) {
        return 0;
    }
    wire_fetching = op;
    return HVD_INPROGRESS;
}

void wire_end_fetching(int status)
{
    wire_fetching->status = status;
    wire_fetching = NULL;
}

static void note_failure(void *peer, int status)
{
    struct wire_end *end = peer;

    end->failure = status;
}

void wire_set_up(struct wire_end *end)
{
    memset(end, 0, sizeof(*end));
    end->link = (struct hvd_net_flow_link){.send = put_packet,
                                           .fetch = fetch,
                                           .fail = note_failure,
                                           .peer = end,
                                           .first_number = wire_first_number,
                                           .first_cost = wire_first_cost,
                                           .pool = &end->pool};
    if (hvd_net_flow_create(&end->link, 3, &end->flow) != 0) {
        abort();
    }
}

void wire_tear_down(struct wire_end *end)
{
    hvd_net_flow_destroy(end->flow);
    hvd_net_pool_finish(&end->pool);
    for (int i = 0; i < end->count; i++) {
        free(end->packets[i].data);
    }
}

static void release(void *context, void *data)
{
    (void)context;
    free(data);
    wire_kept--;
}

void wire_deliver(struct wire_end *from, struct wire_end *to, int index, bool is_lent)
{
    struct wire_packet packet = from->packets[index];
    struct hvd_net_flow_arrival arrival = {
        .header = &packet.header,
        .data = packet.data,
        .bytes = packet.bytes,
        .is_offer = packet.is_offer,
        .release = is_lent || packet.is_offer ? release : NULL,
    };

    from->count--;
    memmove(&from->packets[index], &from->packets[index + 1],
            (size_t)(from->count - index) * sizeof(packet));
    delivered = packet.data;
    if (hvd_net_flow_arrived(to->flow, &arrival) == HVD_INPROGRESS) {
        wire_kept++;
    } else {
        free(packet.data);
    }
    delivered = NULL;
}
