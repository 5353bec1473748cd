/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/core/card.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/transport/control/control.h"

enum {
    STAMP_BYTES = sizeof(struct hvd_card_stamp)
};

int hvd_card_boot(const struct hvd_card_stamp *stamp, const struct hvd_control *control,
                  struct hvd_boot_query *query, struct hvd_boot **boot,
                  struct hvd_error *err)
{
    const void *address;
    size_t bytes;
    char *card;
    int status;

    hvd_control_address(control, &address, &bytes);
    card = malloc(STAMP_BYTES + bytes);
    if (card == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for this rank's card");
    }
    memcpy(card, stamp, STAMP_BYTES);
    memcpy(card + STAMP_BYTES, address, bytes);
    query->card = card;
    query->card_bytes = STAMP_BYTES + bytes;
    status = hvd_boot_create(query, boot, err);
    free(card);
    return status;
}

int hvd_card_check(const struct hvd_boot *boot, struct hvd_error *err)
{
    for (int rank = 0; rank < boot->size; rank++) {
        if (boot->peers[rank].card_bytes < STAMP_BYTES) {
            return hvd_fail(err, HVD_ERR_MISMATCH,
                            "rank %d on %s has another version of hvd", rank,
                            boot->peers[rank].host);
        }
    }
    return 0;
}

struct hvd_card_stamp hvd_card_of(const struct hvd_boot_peer *peer)
{
    struct hvd_card_stamp stamp;

    memcpy(&stamp, peer->card, STAMP_BYTES);
    return stamp;
}

int hvd_card_pid(const struct hvd_boot_peer *peer)
{
    return (int)hvd_card_of(peer).pid;
}

const void *hvd_card_address(const struct hvd_boot_peer *peer, size_t *bytes)
{
    *bytes = peer->card_bytes - STAMP_BYTES;
    return (const char *)peer->card + STAMP_BYTES;
}
