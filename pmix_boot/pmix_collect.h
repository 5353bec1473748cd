/* SPDX-License-Identifier: Apache-2.0 */
/* The values that all ranks have published under one PMIx key, within a time limit that holds
 * whatever the server does.
 *
 *   fence (collects all values) --over or late--> ask for each rank's value by itself
 *     all there: done       some not: ask those again until time is up, then they are missing
 *
 * A list of ranks has no fence and is asked at once: a fence of some ranks of several nodes is
 * more than Slurm's server can do (until 2026 it waits for 300 s and fails).
 *
 * Whether a rank is there is decided by asking, not by the fence: a server may let a fence end
 * early when a rank has just closed its connection (openpmix issues 3931 and 4113, all releases
 * until 2026), and after a fence that failed, asking tells which ranks are missing. */
#ifndef HVD_PMIX_COLLECT_H
#define HVD_PMIX_COLLECT_H

#include <pmix.h>
#include <stdbool.h>

#include "pmix_boot/rank_record.h"

struct hvd_collect;

/* ranks: [size], those to ask, borrowed until destroy; NULL: 0 ... size - 1. The caller owns
 * it; NULL when memory is short. */
struct hvd_collect *hvd_collect_create(const pmix_proc_t *self, const char *key,
                                       const int *ranks, int size);

/* Waits until the values of all ranks are here or timeout_ms passed; asks for them beside the
 * fence, which is one of all ranks of the launch, when it lasts longer than fence_ms; 0: no
 * fence. PMIx is open, this rank's value is committed. Returns the number of missing ranks. */
int hvd_collect_run(struct hvd_collect *collect, int fence_ms, int timeout_ms);

/* After run: whether the value of the rank at this index came; and the PMIx status of the
 * last try to get it. */
bool hvd_collect_has(const struct hvd_collect *collect, int index);
pmix_status_t hvd_collect_status(const struct hvd_collect *collect, int index);

/* After run: whether the server answered no question about some rank of its own node, as a sound
 * one does at once. Then a missing rank may well be there. */
bool hvd_collect_is_silent(struct hvd_collect *collect);

/* After run: hands over the values, [size], to end with hvd_blobs_free. */
struct hvd_blob *hvd_collect_take(struct hvd_collect *collect);

/* After PMIx_Finalize, when no answer can come any more. NULL is fine. */
void hvd_collect_destroy(struct hvd_collect *collect);

#endif
