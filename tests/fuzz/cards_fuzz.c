/* SPDX-License-Identifier: Apache-2.0 */
/* The records that ranks exchange before they connect. A record contains the card of the
 * rank's control socket. */
#include <stdlib.h>
#include <string.h>

#include "collectives/transport/connect/connect_card.h"
#include "pmix_boot/layout.h"
#include "pmix_boot/rank_record.h"
#include "tests/fuzz/fuzz.h"

enum {
    MOST_RANKS = 8
};

static void check_record(const struct hvd_blob *blob,
                         const struct hvd_rank_record *record)
{
    const char *begin = blob->data;
    const char *payload = record->payload;

    if (record->node < begin || payload + record->payload_bytes != begin + blob->bytes ||
        strlen(record->node) < record->host_length) {
        fuzz_fail("a record lies within its bytes");
    }
}

static void read_card(const void *data, size_t bytes)
{
    struct hvd_connect_card card;

    if (hvd_connect_card_parse(&card, data, bytes) == 0 &&
        (card.count > HVD_CONNECT_CARD_ADDRESSES ||
         hvd_connect_card_bytes(&card) != bytes)) {
        fuzz_fail("a card has as many addresses as it says");
    }
}

static void lay_out(const char *const *nodes, int count)
{
    struct hvd_layout layout;
    struct hvd_error err = {0};

    if (count > 0 && hvd_layout_init(&layout, nodes, count, &err) == 0) {
        for (int rank = 0; rank < count; rank++) {
            int node = layout.node[rank];

            if (hvd_layout_rank(&layout, node, layout.local_rank[rank]) != rank) {
                fuzz_fail("the layout finds each rank at its place on its node");
            }
        }
        hvd_layout_finish(&layout);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    struct hvd_blob blobs[MOST_RANKS] = {{0}};
    const char *nodes[MOST_RANKS];
    int count = 0, read = 0;

    read_card(data, size);
    while (count < MOST_RANKS && input.bytes > 0) {
        size_t bytes = (size_t)fuzz_byte(&input) * 2;
        struct hvd_rank_record record;
        struct hvd_error err = {0};

        blobs[count].data = fuzz_copy(&input, bytes, &blobs[count].bytes);
        if (hvd_rank_record_read(&blobs[count], count, &record, &err) == 0) {
            check_record(&blobs[count], &record);
            read_card(record.payload, record.payload_bytes);
            nodes[read++] = record.node;
        } else if (err.text[0] == '\0') {
            fuzz_fail("a record that is refused has a message");
        }
        count++;
    }
    for (int own = 0; own < count; own++) {
        struct hvd_error err = {0};

        if (hvd_rank_record_compare(blobs, count, own, &err) != 0 &&
            strstr(err.text, " has hvd ") == NULL) {
            fuzz_fail("an error about versions names them");
        }
    }
    lay_out(nodes, read);
    for (int i = 0; i < count; i++) {
        free(blobs[i].data);
    }
    return 0;
}
