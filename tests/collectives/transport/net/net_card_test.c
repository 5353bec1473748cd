/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank tells the others to be reached by: read as it was made, and nothing beyond its
 * end. */
#include "collectives/transport/net/net_card.h"

#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/hvd_status.h"
#include "tests/tap.h"

static const char word[] = "where UCX listens";

/* Of a copy that ends where the card does, so that a sanitizer sees what is read beyond. */
static int read_copy(const void *card, size_t bytes)
{
    struct hvd_net_host_addresses hosts;
    const void *ucx;
    char *copy = malloc(bytes + 1);
    int status;

    memcpy(copy, card, bytes);
    copy = realloc(copy, bytes > 0 ? bytes : 1);
    status = hvd_net_card_read(copy, bytes, &hosts, &ucx);
    if (status == 0 && hosts.count > 0) {
        status = hosts.list[hosts.count - 1].bytes[15] == 2 ? 0 : HVD_ERR_STATE;
    }
    free(copy);
    return status;
}

int main(void)
{
    struct hvd_net_host_address list[2] = {{{1}}, {{[15] = 2}}};
    struct hvd_net_host_addresses hosts = {list, 2, 77}, read;
    uint32_t large = UINT32_MAX;
    const void *ucx;
    void *card;
    size_t bytes, whole = 12 + sizeof(list);
    int wrong = 0;

    if (hvd_net_card_make(&hosts, word, sizeof(word), &card, &bytes) != 0) {
        printf("Bail out! no memory\n");
        return 1;
    }
    tap_ok(hvd_net_card_read(card, bytes, &read, &ucx) == 0 && read.count == 2 &&
               read.network == 77 && memcmp(read.list, list, sizeof(list)) == 0 &&
               strcmp(ucx, word) == 0 && bytes == whole + sizeof(word),
           "a card is read as it was made");
    for (size_t cut = 0; cut < whole; cut++) {
        wrong += read_copy(card, cut) != HVD_ERR_MISMATCH;
    }
    tap_ok(wrong == 0 && read_copy(card, whole) == 0, "one that is cut short is refused");
    memcpy((char *)card + 8, &large, sizeof(large));
    tap_ok(read_copy(card, bytes) == HVD_ERR_MISMATCH,
           "so is one that claims more addresses than it has");
    free(card);
    return tap_done();
}
