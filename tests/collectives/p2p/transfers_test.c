/* SPDX-License-Identifier: Apache-2.0 */
/* The list of transfers that are under way on a rank: warnings about long waits, and
 * rows, the lists of some of the transfers. */
#include "collectives/p2p/transfers.h"

#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/log.h"
#include "tests/tap.h"

enum {
    MANY = 1000,
    SECOND = 1000000000,
    WARNING_S = 60,
};

static struct hvd_transfers transfers;
static struct hvd_request *request;
static char line[512];
static int lines;

static void note(enum hvd_log_level level, const char *text)
{
    (void)level;
    lines++;
    snprintf(line, sizeof(line), "%s", text);
}

static struct hvd_transfer *add(int64_t second)
{
    return hvd_transfers_add(&transfers, &request->entries[0], second * SECOND);
}

static int64_t due(void)
{
    int64_t due_ns = hvd_transfers_deadline(&transfers, (int64_t)WARNING_S * SECOND);

    return due_ns < 0 ? due_ns : due_ns / SECOND;
}

static void warn(int64_t second)
{
    hvd_transfers_warn(&transfers, 7, (int64_t)WARNING_S * SECOND, second * SECOND);
}

static void test_warnings(void)
{
    struct hvd_transfer *first = add(10), *second = add(20), *third;

    tap_ok(due() == 70, "the oldest transfer is due first");
    warn(69);
    tap_ok(lines == 0, "there is no warning before its time");
    warn(85);
    tap_ok(lines == 1 && strstr(line, "rank 7 has waited 75 s") != NULL && due() == -1,
           "one warning covers several late transfers");
    third = add(30);
    hvd_transfers_remove(&transfers, first);
    tap_ok(due() == 90, "the next transfer is due at its own time");
    hvd_transfers_remove(&transfers, third);
    tap_ok(due() == -1, "a transfer that has ended is not due");
    warn(500);
    tap_ok(lines == 1, "there is only one warning about a transfer");
    hvd_transfers_remove(&transfers, second);
    tap_ok(transfers.oldest == NULL && transfers.newest == NULL,
           "the list is empty at the end");
}

static void test_rows(void)
{
    struct hvd_transfer_row row = {0};
    struct hvd_transfer *all[MANY], *last;
    uint64_t number;
    bool ok = true;

    for (int i = 0; i < MANY; i++) {
        all[i] = add(0);
        all[i]->bytes = 100;
        hvd_transfer_row_append(&row, all[i]);
    }
    last = all[MANY - 1];
    number = last->number;
    tap_ok(hvd_transfer_row_find(&row, number, 99) == last &&
               hvd_transfer_row_find(&row, number, 100) == last &&
               hvd_transfer_row_find(&row, number, 100) == NULL,
           "a row finds a transfer until all its bytes have come");
    hvd_transfer_row_append(&row, last);
    for (int i = 0; i < MANY; i++) {
        ok = ok && hvd_transfer_row_find(&row, all[i]->number, UINT64_MAX) == all[i];
        hvd_transfers_remove(&transfers, all[i]);
    }
    tap_ok(ok && row.first == NULL && row.last == NULL,
           "a row finds every transfer, and only once");
}

int main(void)
{
    hvd_log_to(note, HVD_LOG_WARN);
    request = hvd_request_create(1);
    request->entries[0].descriptor.kind = HVD_KIND_RECEIVE;
    test_warnings();
    test_rows();
    hvd_request_drop(request);
    return tap_done();
}
