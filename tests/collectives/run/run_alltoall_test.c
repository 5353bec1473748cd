/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that the row counts which the ranks of an alltoall exchange are checked before
 * use. */
#include <stdlib.h>

#include "collectives/run/run.h"
#include "tests/collectives/run/node_teams.h"
#include "tests/tap.h"

enum {
    RANKS = 2,
    ROWS = 4, /* rows of each block that the ranks have announced */
    MOST = 2 * ROWS,
};

struct batch {
    int32_t values[MOST];
    int32_t splits[RANKS];
    struct hvd_entry entry;
    struct hvd_run *run;
    int status;
};

static void create(struct node *node, int rank, int32_t rows, struct batch *batch)
{
    const struct hvd_batch_header header = {
        .kind = HVD_KIND_ALLTOALL, .count = 1, .max_block = ROWS};
    struct hvd_entry *entries[] = {&batch->entry};
    struct hvd_error err = {0};

    *batch = (struct batch){.splits = {rows, rows}, .status = HVD_INPROGRESS};
    batch->entry = (struct hvd_entry){.descriptor = {.kind = HVD_KIND_ALLTOALL,
                                                     .dtype = HVD_INT32,
                                                     .ndim = 1,
                                                     .shape = {MOST},
                                                     .max_block = ROWS,
                                                     .name = "rows"},
                                      .input = batch->values,
                                      .splits = batch->splits,
                                      .split_count = RANKS};
    must(hvd_run_create(&node->team[rank], &header, entries, NULL, &batch->run, &err),
         &err);
}

/* Makes rank 1 send `rows` rows to each rank. Returns the status on rank 0, or 1 if it
 * received a wrong number of rows. */
static int sends(int32_t rows)
{
    struct batch batches[RANKS];
    struct node node;
    int64_t received;

    node_open(&node, RANKS);
    for (int r = 0; r < RANKS; r++) {
        create(&node, r, r == 1 ? rows : ROWS, &batches[r]);
    }
    for (int turn = 0; turn < 1000; turn++) {
        for (int r = 0; r < RANKS; r++) {
            int64_t work = 1 << 20;
            bool moved;

            if (batches[r].status == HVD_INPROGRESS) {
                batches[r].status = hvd_run_progress(batches[r].run, &work, &moved);
            }
        }
    }
    received = batches[0].entry.result_rows;
    for (int r = 0; r < RANKS; r++) {
        hvd_run_destroy(batches[r].run);
        free(batches[r].entry.result);
        free(batches[r].entry.received);
    }
    node_close(&node);
    return batches[0].status != 0 ? batches[0].status : received == ROWS + rows ? 0 : 1;
}

int main(void)
{
    tap_ok(sends(ROWS) == 0, "receives as many rows as announced");
    tap_ok(sends(1) == 0, "receives fewer rows than announced");
    tap_ok(sends(ROWS + 1) == HVD_ERR_ARG, "refuses one row more than announced");
    tap_ok(sends(INT32_MAX) == HVD_ERR_ARG, "refuses INT32_MAX rows");
    tap_ok(sends(-1) == HVD_ERR_ARG, "refuses -1 rows");
    tap_ok(sends(INT32_MIN) == HVD_ERR_ARG, "refuses INT32_MIN rows");
    return tap_done();
}
