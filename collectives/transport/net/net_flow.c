/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts messages into fragments, keeps fragments in order, and matches them with
 * receives. */
#include "collectives/transport/net/net_flow.h"

#include <stdlib.h>
#include <string.h>

/* --- the pool of fragments --- */

struct hvd_net_fragment *hvd_net_pool_get(struct hvd_net_pool *pool)
{
    struct hvd_net_fragment *fragment = pool->unused;

    if (fragment != NULL) {
        pool->unused = fragment->next_unused;
        pool->taken++;
        return fragment;
    }
    fragment = malloc(sizeof(*fragment));
    if (fragment != NULL) {
        fragment->next_allocated = pool->allocated;
        pool->allocated = fragment;
        pool->taken++;
    }
    return fragment;
}

void hvd_net_pool_put(struct hvd_net_pool *pool, struct hvd_net_fragment *fragment)
{
    fragment->next_unused = pool->unused;
    pool->unused = fragment;
    pool->taken--;
}

void hvd_net_pool_finish(struct hvd_net_pool *pool)
{
    while (pool->allocated != NULL) {
        struct hvd_net_fragment *fragment = pool->allocated;

        pool->allocated = fragment->next_allocated;
        free(fragment);
    }
    pool->unused = NULL;
}

/* --- fragments that arrived before their receive was posted, or out of order --- */

/* A fragment that arrived early, in a list sorted by sequence number. */
struct early {
    struct early *next;
    uint32_t sequence;
    size_t bytes;
    const void *data;
    bool is_offer;
    void (*release)(void *context, void *data); /* NULL if data was copied to `copy` */
    void *release_context;
    size_t room; /* size of copy */
    char copy[];
};

/* Empty if zeroed. */
struct early_list {
    struct early *first;
    struct early *last;
    struct early *spare; /* unused entries with room for the longest fragment */
};

/* Entries for larger copies are kept for reuse: fresh memory of their size costs more
 * than the copy itself. The window bounds their number. */
static const size_t small_early_bytes = 4096;

static struct early *make_early(struct early_list *list, size_t bytes)
{
    bool is_small = bytes <= small_early_bytes;
    size_t room =
        is_small || bytes > HVD_NET_FRAGMENT_BYTES ? bytes : HVD_NET_FRAGMENT_BYTES;
    struct early *early = list->spare;

    if (!is_small && early != NULL && early->room >= bytes) {
        list->spare = early->next;
        return early;
    }
    early = malloc(sizeof(*early) + room);
    if (early != NULL) {
        early->room = room;
    }
    return early;
}

/* Inserts by sequence number. This is almost always at the end; only a network with
 * several paths may deliver out of order. */
static void insert_early(struct early_list *list, struct early *early)
{
    struct early **place = &list->first;

    if (list->last != NULL && (int32_t)(early->sequence - list->last->sequence) > 0) {
        place = &list->last->next;
    }
    while (*place != NULL && (int32_t)(early->sequence - (*place)->sequence) > 0) {
        place = &(*place)->next;
    }
    early->next = *place;
    *place = early;
    if (early->next == NULL) {
        list->last = early;
    }
}

/* Stores an early fragment. Returns 0 if its data was copied, HVD_INPROGRESS if the list
 * keeps the network's buffer and releases it later, or HVD_ERR_NOMEM. */
static int keep_early(struct early_list *list, const struct hvd_net_flow_arrival *arrival)
{
    bool is_copied = arrival->release == NULL;
    struct early *early = make_early(list, is_copied ? arrival->bytes : 0);

    if (early == NULL) {
        return HVD_ERR_NOMEM;
    }
    early->sequence = arrival->header->sequence;
    early->bytes = arrival->bytes;
    early->data = is_copied ? early->copy : arrival->data;
    early->is_offer = arrival->is_offer;
    early->release = arrival->release;
    early->release_context = arrival->release_context;
    if (is_copied) {
        memcpy(early->copy, arrival->data, arrival->bytes);
    }
    insert_early(list, early);
    return is_copied ? 0 : HVD_INPROGRESS;
}

/* Removes the first entry of the list. */
static void drop_early(struct early_list *list)
{
    struct early *early = list->first;

    list->first = early->next;
    if (list->first == NULL) {
        list->last = NULL;
    }
    if (early->release != NULL) {
        early->release(early->release_context, (void *)(uintptr_t)early->data);
    }
    if (early->room > small_early_bytes) {
        early->next = list->spare;
        list->spare = early;
    } else {
        free(early);
    }
}

static void finish_early(struct early_list *list)
{
    while (list->first != NULL) {
        drop_early(list);
    }
    while (list->spare != NULL) {
        struct early *early = list->spare;

        list->spare = early->next;
        free(early);
    }
}

/* --- flows --- */

struct queue {
    struct hvd_net_op *first;
    struct hvd_net_op *last;
};

struct hvd_net_flow {
    const struct hvd_net_flow_link *link;
    uint32_t channel;
    int status; /* negative once the flow has failed */
    /* --- outgoing --- */
    struct queue sends;
    size_t handed; /* bytes of the first send that have been handed to the transport */
    uint32_t next_out;
    /* Cost of all fragments sent. All counters wrap around at 2^32. */
    uint32_t sent_cost;
    uint32_t acknowledged; /* the part of sent_cost that the peer has taken */
    /* --- incoming --- */
    struct queue receives;
    uint32_t next_in;
    uint32_t taken; /* cost of all fragments taken */
    uint32_t told; /* the part of `taken` that the peer has been told */
    struct early_list early;
};

static void push_op(struct queue *queue, struct hvd_net_op *op)
{
    op->next = NULL;
    if (queue->last != NULL) {
        queue->last->next = op;
    } else {
        queue->first = op;
    }
    queue->last = op;
}

static struct hvd_net_op *pop_op(struct queue *queue)
{
    struct hvd_net_op *op = queue->first;

    queue->first = op->next;
    if (queue->first == NULL) {
        queue->last = NULL;
    }
    return op;
}

int hvd_net_flow_create(const struct hvd_net_flow_link *link, uint32_t channel,
                        struct hvd_net_flow **out)
{
    struct hvd_net_flow *flow = calloc(1, sizeof(*flow));

    if (flow == NULL) {
        return HVD_ERR_NOMEM;
    }
    flow->link = link;
    flow->channel = channel;
    flow->next_out = flow->next_in = link->first_number;
    flow->sent_cost = flow->acknowledged = link->first_cost;
    flow->taken = flow->told = link->first_cost;
    *out = flow;
    return 0;
}

void hvd_net_flow_destroy(struct hvd_net_flow *flow)
{
    if (flow == NULL) {
        return;
    }
    finish_early(&flow->early);
    free(flow);
}

/* Returns how much of the window a fragment uses. Data that the receiver fetches costs
 * nothing, because the receiver never stores it. */
static uint32_t cost_of(size_t bytes, bool is_fetched)
{
    return (is_fetched ? 0 : (uint32_t)bytes) + HVD_NET_FRAGMENT_COST;
}

int hvd_net_flow_sent(struct hvd_net_fragment *fragment, int status)
{
    struct hvd_net_flow *flow = fragment->flow;
    struct hvd_net_op *op = fragment->op;

    if (op != NULL) {
        if (status != 0 && flow->status == 0) {
            flow->status = status;
        }
        op->done += fragment->bytes;
        if (op->done == op->bytes) {
            op->status = flow->status;
        }
    }
    hvd_net_pool_put(flow->link->pool, fragment);
    return status;
}

/* Returns how many of these bytes of op must be authenticated. */
static size_t covered_part(const struct hvd_net_op *op, size_t at, size_t bytes)
{
    const size_t left = op->covered > at ? op->covered - at : 0;

    return left < bytes ? left : bytes;
}

/* Sends a part of op; op is NULL for a fragment that only acknowledges. */
static int send_part(struct hvd_net_flow *flow, struct hvd_net_op *op, size_t at,
                     size_t bytes)
{
    struct hvd_net_fragment *fragment = hvd_net_pool_get(flow->link->pool);
    int status;

    if (fragment == NULL) {
        return HVD_ERR_NOMEM;
    }
    fragment->header = (struct hvd_net_header){
        .key = flow->link->key,
        .source = flow->link->source,
        .channel = flow->channel,
        .sequence = flow->next_out,
        .taken = flow->taken,
    };
    fragment->data = op != NULL ? op->data + at : NULL;
    fragment->bytes = bytes;
    fragment->covered = op != NULL ? covered_part(op, at, bytes) : 0;
    fragment->op = op;
    fragment->flow = flow;
    flow->told = flow->taken;
    if (op != NULL) {
        flow->next_out++;
        flow->sent_cost += cost_of(bytes, op->is_device);
    }
    status = flow->link->send(flow->link->peer, fragment);
    return status == HVD_INPROGRESS ? 0 : hvd_net_flow_sent(fragment, status);
}

/* Returns the length of the next fragment: the message is cut into the smallest number of
 * fragments, about equally long. Returns 0 if the window has no room. */
static size_t next_part(const struct hvd_net_flow *flow, const struct hvd_net_op *op,
                        size_t handed)
{
    size_t left = op->bytes - handed;
    size_t parts = (left + HVD_NET_FRAGMENT_BYTES - 1) / HVD_NET_FRAGMENT_BYTES;
    size_t part = (left + parts - 1) / parts;

    part = (part + HVD_NET_PIECE_BYTES - 1) / HVD_NET_PIECE_BYTES * HVD_NET_PIECE_BYTES;
    if (op->is_device || part > left) {
        part = left;
    }
    return flow->sent_cost - flow->acknowledged + cost_of(part, op->is_device) <=
                   HVD_NET_WINDOW_BYTES
               ? part
               : 0;
}

/* Sends as much as the window allows. */
static int pump_window(struct hvd_net_flow *flow)
{
    int status = 0;

    while (status == 0 && flow->sends.first != NULL) {
        struct hvd_net_op *op = flow->sends.first;
        size_t at = flow->handed;
        size_t bytes = next_part(flow, op, at);

        if (bytes == 0) {
            break;
        }
        flow->handed += bytes;
        if (flow->handed == op->bytes) {
            /* Dequeue first: op may end and be freed once its last byte is sent. */
            pop_op(&flow->sends);
            flow->handed = 0;
        }
        status = send_part(flow, op, at, bytes);
    }
    return status;
}

/* Counts a fragment of cost `taken` as taken. Sends an acknowledgement once a quarter of
 * the window is unacknowledged. */
static int advance_flow(struct hvd_net_flow *flow, uint32_t taken)
{
    flow->next_in++;
    flow->taken += taken;
    return flow->taken - flow->told < HVD_NET_WINDOW_BYTES / 4
               ? 0
               : send_part(flow, NULL, 0, 0);
}

/* Fetches the bytes of an offer into the first receive. The offer is passed to the
 * network, which frees it. A failure ends only this receive, because the order of
 * messages is not affected. */
static int fetch_offer(struct hvd_net_flow *flow, const void *offer, size_t bytes)
{
    struct hvd_net_op *op = flow->receives.first;
    int status;

    pop_op(&flow->receives);
    status = flow->link->fetch(flow->link->peer, (void *)(uintptr_t)offer, op);
    if (status != HVD_INPROGRESS) {
        op->status = status;
    }
    return advance_flow(flow, cost_of(bytes, true));
}

/* Gives the next fragment in order to the first posted receive. */
static int take_next(struct hvd_net_flow *flow, const void *data, size_t bytes,
                     bool is_offer)
{
    struct hvd_net_op *op = flow->receives.first;
    size_t left = op->bytes - op->done;

    if (is_offer != op->is_device || (is_offer ? bytes != left : bytes > left)) {
        return HVD_ERR_MISMATCH;
    }
    if (is_offer) {
        return fetch_offer(flow, data, bytes);
    }
    if (op->take != NULL) {
        op->take(op, data, bytes);
    } else {
        memcpy(op->data + op->done, data, bytes);
    }
    op->done += bytes;
    if (op->done == op->bytes) {
        pop_op(&flow->receives);
        op->status = 0;
    }
    return advance_flow(flow, cost_of(bytes, false));
}

static int take_early(struct hvd_net_flow *flow)
{
    struct early_list *list = &flow->early;
    int status = 0;

    while (status == 0 && flow->receives.first != NULL && list->first != NULL &&
           list->first->sequence == flow->next_in) {
        struct early *early = list->first;

        status = take_next(flow, early->data, early->bytes, early->is_offer);
        if (early->is_offer && flow->next_in != early->sequence) {
            early->release = NULL; /* the transport owns the offer now */
        }
        drop_early(list);
    }
    return status;
}

int hvd_net_flow_arrived(struct hvd_net_flow *flow,
                         const struct hvd_net_flow_arrival *arrival)
{
    const struct hvd_net_header *header = arrival->header;
    int status = 0;

    if (flow->status != 0) {
        return 0;
    }
    if ((int32_t)(header->taken - flow->acknowledged) > 0) {
        flow->acknowledged = header->taken;
        status = flow->sends.first != NULL ? pump_window(flow) : 0;
    }
    if (status == 0 && arrival->bytes > 0) {
        bool is_next = header->sequence == flow->next_in && flow->receives.first != NULL;

        status = is_next
                     ? take_next(flow, arrival->data, arrival->bytes, arrival->is_offer)
                     : keep_early(&flow->early, arrival);
        if (status == 0 && is_next && flow->early.first != NULL) {
            status = take_early(flow);
        }
    }
    if (status < 0) {
        flow->link->fail(flow->link->peer, status);
        return 0;
    }
    return status;
}

bool hvd_net_flow_is_unread(const struct hvd_net_flow *flow)
{
    return flow->receives.first == NULL;
}

void hvd_net_send(struct hvd_net_flow *flow, struct hvd_net_op *op)
{
    int status = 0;

    op->done = 0;
    op->status = flow->status != 0 ? flow->status : HVD_INPROGRESS;
    if (flow->status != 0) {
        return;
    }
    if (flow->sends.first == NULL && next_part(flow, op, 0) == op->bytes) {
        status = send_part(flow, op, 0, op->bytes);
    } else {
        push_op(&flow->sends, op);
        status = pump_window(flow);
    }
    if (status < 0) {
        flow->link->fail(flow->link->peer, status);
    }
}

void hvd_net_recv(struct hvd_net_flow *flow, struct hvd_net_op *op)
{
    int status;

    op->done = 0;
    op->status = flow->status != 0 ? flow->status : HVD_INPROGRESS;
    if (flow->status != 0) {
        return;
    }
    push_op(&flow->receives, op);
    status = flow->early.first != NULL ? take_early(flow) : 0;
    if (status < 0) {
        flow->link->fail(flow->link->peer, status);
    }
}

void hvd_net_flow_fail(struct hvd_net_flow *flow, int status)
{
    flow->status = status;
    if (flow->sends.first != NULL && flow->handed > 0) {
        struct hvd_net_op *op = pop_op(&flow->sends);

        op->bytes = flow->handed;
        flow->handed = 0;
        if (op->done == op->bytes) {
            op->status = status;
        }
    }
    while (flow->sends.first != NULL) {
        pop_op(&flow->sends)->status = status;
    }
    while (flow->receives.first != NULL) {
        pop_op(&flow->receives)->status = status;
    }
    finish_early(&flow->early);
}
