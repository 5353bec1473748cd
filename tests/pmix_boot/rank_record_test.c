/* SPDX-License-Identifier: Apache-2.0 */
/* Cards, the records that ranks publish: a packed card can be read. Others are rejected,
 * and the error names the rank. */
#include "pmix_boot/rank_record.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/tap.h"

static void test_round_trip(size_t bytes)
{
    char payload[300];
    char host[256] = "";
    struct hvd_blob blob = {NULL, 0};
    struct hvd_rank_record card = {0};
    bool passed;

    memset(payload, 'p', sizeof(payload));
    gethostname(host, sizeof(host) - 1);
    passed = hvd_rank_record_pack(payload, bytes, &blob, NULL) == 0 &&
             hvd_rank_record_read(&blob, 0, &card, NULL) == 0;
    tap_ok(passed && card.payload_bytes == bytes &&
               memcmp(card.payload, payload, bytes) == 0 &&
               card.host_length == strlen(host) &&
               strncmp(card.node, host, card.host_length) == 0,
           "a payload of %zu bytes, with this host's name", bytes);
    free(blob.data);
}

static void test_secrets(void)
{
    struct hvd_blob blobs[2];
    struct hvd_rank_record cards[2];

    for (int i = 0; i < 2; i++) {
        if (hvd_rank_record_pack("x", 1, &blobs[i], NULL) < 0 ||
            hvd_rank_record_read(&blobs[i], i, &cards[i], NULL) < 0) {
            exit(EXIT_FAILURE);
        }
    }
    tap_ok(memcmp(cards[0].secret, cards[1].secret, HVD_SECRET_BYTES) != 0,
           "every card has a secret of its own");
    tap_ok(strcmp(cards[0].node, cards[1].node) == 0,
           "cards of one machine name the same node");
    free(blobs[0].data);
    free(blobs[1].data);
}

/* Reads cards that were cut or changed anywhere: they are rejected, or read within their
 * bounds. */
static void test_damage(int rounds)
{
    struct hvd_blob blob;
    bool passed = hvd_rank_record_pack("payload", 7, &blob, NULL) == 0;

    for (int round = 0; round < rounds && passed; round++) {
        size_t bytes = (size_t)rand() % (blob.bytes + 1);
        struct hvd_blob damaged = {malloc(bytes + 1), bytes};
        unsigned char *data = damaged.data;
        struct hvd_rank_record card;

        memcpy(data, blob.data, bytes);
        if (bytes > 0 && round % 2 == 0) {
            data[(size_t)rand() % (bytes < 16 ? bytes : 16)] ^=
                (unsigned char)(1 + rand() % 255);
        }
        if (hvd_rank_record_read(&damaged, 3, &card, NULL) == 0) {
            const unsigned char *end =
                (const unsigned char *)card.payload + card.payload_bytes;

            passed = end == data + bytes && strlen(card.node) < bytes;
        }
        free(damaged.data);
    }
    tap_ok(passed, "%d damaged cards are never read beyond their end", rounds);
    free(blob.data);
}

static void test_foreign(void)
{
    struct hvd_blob blob = {
        (void *)"something else altogether, and long enough for a head", 53};
    struct hvd_rank_record card;
    struct hvd_error err = {0};

    tap_ok(hvd_rank_record_read(&blob, 5, &card, &err) == HVD_ERR_MISMATCH &&
               strstr(err.text, "rank 5") != NULL && strstr(err.text, "same hvd") != NULL,
           "an error about a card of another version names the rank and the remedy");
}

/* Replaces the version in a record, after the magic and the size of the header. */
static void set_version(const struct hvd_blob *blob, const char *version)
{
    strcpy((char *)blob->data + 2 * sizeof(uint32_t), version);
}

static void test_versions(void)
{
    struct hvd_blob blobs[3];
    struct hvd_error err = {0};
    char host[256] = "";
    char wanted[1024];

    gethostname(host, sizeof(host) - 1);
    for (int i = 0; i < 3; i++) {
        if (hvd_rank_record_pack("x", 1, &blobs[i], NULL) < 0) {
            exit(EXIT_FAILURE);
        }
    }
    tap_ok(hvd_rank_record_compare(blobs, 3, 1, &err) == 0,
           "ranks of one version are accepted");
    set_version(&blobs[1], "1.2.3");
    set_version(&blobs[2], "4.5.6");
    snprintf(wanted, sizeof(wanted),
             "rank 2 on %s has hvd 4.5.6, but this rank, 1 on %s, has hvd 1.2.3: install "
             "the same version on both hosts",
             host, host);
    tap_ok(hvd_rank_record_compare(&blobs[0], 3, 1, &err) == HVD_ERR_MISMATCH &&
               strstr(err.text, "rank 0 on ") == err.text,
           "the first rank of another version is named");
    set_version(&blobs[0], "1.2.3");
    tap_ok(hvd_rank_record_compare(blobs, 3, 1, &err) == HVD_ERR_MISMATCH &&
               strcmp(err.text, wanted) == 0,
           "an error about another version has both ranks, hosts and versions");
    for (size_t bytes = 0; bytes < blobs[2].bytes; bytes++) {
        struct hvd_blob cut[2] = {blobs[1], {malloc(bytes + 1), bytes}};

        memcpy(cut[1].data, blobs[2].data, bytes);
        hvd_rank_record_compare(cut, 2, 0, &err);
        free(cut[1].data);
    }
    tap_ok(true, "records that were cut are not read beyond their end");
    for (int i = 0; i < 3; i++) {
        free(blobs[i].data);
    }
}

int main(void)
{
    srand(tap_seed((unsigned)time(NULL)));
    test_round_trip(0);
    test_round_trip(1);
    test_round_trip(300);
    test_secrets();
    test_damage(2000);
    test_foreign();
    test_versions();
    return tap_done();
}
