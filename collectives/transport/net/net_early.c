/* SPDX-License-Identifier: Apache-2.0 */
/* Fragments that came before their receive was posted, or before an earlier one. */
#include "collectives/transport/net/net_early.h"

#include <stdlib.h>
#include <string.h>

/* Copies above this are used again: fresh memory of their size costs more than copying. The window
 * bounds how many there can be. */
static const size_t small_bytes = 4096;

static struct hvd_early *make(struct hvd_early_list *list, size_t bytes)
{
    bool is_small = bytes <= small_bytes;
    size_t room =
        is_small || bytes > HVD_NET_FRAGMENT_BYTES ? bytes : HVD_NET_FRAGMENT_BYTES;
    struct hvd_early *early = list->spare;

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

/* Nearly always the last in sequence; a network with several paths may swap neighbours. */
static void insert(struct hvd_early_list *list, struct hvd_early *early)
{
    struct hvd_early **place = &list->first;

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

int hvd_early_keep(struct hvd_early_list *list, const struct hvd_flow_arrival *arrival)
{
    bool is_copied = arrival->release == NULL;
    struct hvd_early *early = make(list, is_copied ? arrival->bytes : 0);

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
    insert(list, early);
    return is_copied ? 0 : HVD_INPROGRESS;
}

void hvd_early_drop(struct hvd_early_list *list)
{
    struct hvd_early *early = list->first;

    list->first = early->next;
    if (list->first == NULL) {
        list->last = NULL;
    }
    if (early->release != NULL) {
        early->release(early->release_context, (void *)(uintptr_t)early->data);
    }
    if (early->room > small_bytes) {
        early->next = list->spare;
        list->spare = early;
    } else {
        free(early);
    }
}

void hvd_early_finish(struct hvd_early_list *list)
{
    while (list->first != NULL) {
        hvd_early_drop(list);
    }
    while (list->spare != NULL) {
        struct hvd_early *early = list->spare;

        list->spare = early->next;
        free(early);
    }
}
