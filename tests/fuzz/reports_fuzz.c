/* SPDX-License-Identifier: Apache-2.0 */
/* Messages from ranks about stragglers, clocks and network addresses. */
#include <stdlib.h>
#include <string.h>

#include "collectives/core/addresses.h"
#include "collectives/trace/clock_sync.h"
#include "collectives/trace/straggler_page.h"
#include "collectives/trace/straggler_text.h"
#include "collectives/trace/straggler_waits.h"
#include "tests/collectives/trace/json_check.h"
#include "tests/fuzz/fuzz.h"

enum {
    RANKS = 3
};

/* These functions replace those of the uplink, so that nothing is sent. */
int hvd_uplink_send_up(struct hvd_uplink *uplink, uint32_t type, const void *payload,
                       size_t bytes)
{
    (void)uplink;
    (void)type;
    (void)payload;
    (void)bytes;
    return 0;
}

int hvd_uplink_send_down(struct hvd_uplink *uplink, uint32_t type, const void *payload,
                         size_t bytes)
{
    return hvd_uplink_send_up(uplink, type, payload, bytes);
}

int hvd_uplink_send_child(struct hvd_uplink *uplink, int child, uint32_t type,
                          const void *payload, size_t bytes)
{
    (void)child;
    return hvd_uplink_send_up(uplink, type, payload, bytes);
}

static void print(const struct hvd_straggler_sums *sums)
{
    static const char *const hosts[RANKS] = {"n1", "n1", "n2"};
    const struct hvd_straggler_job job = {.hosts = hosts, .elapsed_us = 1000000};
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);

    if (out == NULL) {
        abort();
    }
    hvd_straggler_print_json(sums, &job, out);
    fclose(out);
    if (!json_is_good(text, bytes)) {
        fuzz_fail("a report is JSON");
    }
    free(text);
    out = open_memstream(&text, &bytes);
    if (out == NULL || hvd_straggler_page_print("@DATA@", sums, &job, out) != 0) {
        abort();
    }
    fclose(out);
    if (!json_is_good(text, bytes)) {
        fuzz_fail("the data of a page are JSON");
    }
    free(text);
    hvd_straggler_print(sums, &job, 2, fuzz_nowhere());
}

static void merge_stragglers(struct fuzz_input *input)
{
    struct hvd_straggler_waits *waits = NULL;
    struct hvd_straggler_binding binding;

    if (hvd_straggler_waits_create(0, RANKS, 2, &waits, NULL) != 0 ||
        hvd_straggler_waits_keep(waits, 0, NULL) != 0) {
        abort();
    }
    while (input->bytes > 0) {
        size_t bytes, wanted = fuzz_byte(input) * (size_t)4;
        void *message = fuzz_copy(input, wanted, &bytes);

        if (!hvd_straggler_binding_parse(message, bytes, RANKS, &binding)) {
            (void)hvd_straggler_waits_merge(waits, message, bytes);
        }
        free(message);
    }
    hvd_straggler_waits_close(waits);
    print(hvd_straggler_waits_sums(waits));
    hvd_straggler_waits_destroy(waits);
}

static void read_addresses(struct fuzz_input *input, int rank)
{
    struct hvd_addresses addresses;
    struct hvd_error err = {0};
    size_t bytes;
    void *message = fuzz_copy(input, input->bytes, &bytes);

    hvd_addresses_init(&addresses, NULL, rank, RANKS);
    if (hvd_addresses_begin(&addresses, "address", 7, &err) != 0) {
        abort();
    }
    if (rank == 0) {
        (void)hvd_addresses_on_one(&addresses, message, bytes, &err);
    } else if (hvd_addresses_on_all(&addresses, message, bytes, &err) == 0) {
        for (int i = 0; i < RANKS; i++) {
            fuzz_touch(addresses.data[i], addresses.bytes[i]);
        }
    }
    hvd_addresses_end(&addresses);
    free(message);
}

static int64_t now_ns(void)
{
    return 123456789;
}

static void read_clocks(struct fuzz_input *input)
{
    struct hvd_clock_sync sync = {
        .has_parent = true, .now_ns = now_ns, .is_waiting = true};
    size_t bytes;
    void *message = fuzz_copy(input, input->bytes, &bytes);
    const struct hvd_uplink_event event = {
        .kind = HVD_UPLINK_MESSAGE, .from = 0, .payload = message, .bytes = bytes};
    int64_t offset_ns, error_ns;

    hvd_clock_sync_on_ask(&sync, &event);
    hvd_clock_sync_on_answer(&sync, &event);
    (void)hvd_clock_sync_offset(&sync, &offset_ns, &error_ns);
    free(message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};

    switch (fuzz_byte(&input) % 4) {
    case 0:
        merge_stragglers(&input);
        break;
    case 1:
        read_addresses(&input, 0);
        break;
    case 2:
        read_addresses(&input, 1);
        break;
    default:
        read_clocks(&input);
        break;
    }
    return 0;
}
