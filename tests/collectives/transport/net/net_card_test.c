/* SPDX-License-Identifier: Apache-2.0 */
/* Tests cards, in which ranks tell each other the addresses of their network: a card that
 * was made can be read, and no byte past its end is read. */
#include "collectives/transport/net/net_card.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/hvd_status.h"
#include "tests/tap.h"

static const char tcp[] = "a port", ucx[] = "where UCX listens";

/* Reads a copy that ends where the card does, so that a sanitizer sees reads past the
 * end. */
static int read_copy(const void *card, size_t bytes)
{
    struct hvd_net_card read = {0};
    char *copy = malloc(bytes + 1);
    int status;

    memcpy(copy, card, bytes);
    copy = realloc(copy, bytes > 0 ? bytes : 1);
    status = hvd_net_card_read(copy, bytes, &read);
    if (status == 0 &&
        (read.ucx.bytes != sizeof(ucx) || memcmp(read.ucx.data, ucx, sizeof(ucx)) != 0)) {
        status = HVD_ERR_STATE;
    }
    free(copy);
    return status;
}

int main(void)
{
    const struct hvd_net_card made = {.tcp = {tcp, sizeof(tcp)},
                                      .ucx = {ucx, sizeof(ucx)},
                                      .security = 2,
                                      .has_aes = true};
    struct hvd_net_card read;
    uint32_t large = UINT32_MAX;
    void *card;
    size_t bytes;
    int wrong = 0;

    if (hvd_net_card_make(&made, &card, &bytes) != 0) {
        printf("Bail out! no memory\n");
        return 1;
    }
    tap_ok(hvd_net_card_read(card, bytes, &read) == 0 && read.tcp.bytes == sizeof(tcp) &&
               strcmp(read.tcp.data, tcp) == 0 && strcmp(read.ucx.data, ucx) == 0 &&
               read.security == 2 && read.has_aes,
           "a card is read as it was made");
    for (size_t cut = 0; cut < bytes; cut++) {
        wrong += read_copy(card, cut) != HVD_ERR_MISMATCH;
    }
    tap_ok(wrong == 0 && read_copy(card, bytes) == 0,
           "a card that is cut short is refused");
    memcpy((char *)card + 4, &large, sizeof(large));
    tap_ok(read_copy(card, bytes) == HVD_ERR_MISMATCH,
           "a card that claims a longer address than it has is refused");
    free(card);
    return tap_done();
}
