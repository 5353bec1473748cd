/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the values that all ranks have published under one PMIx key, within a time
 * limit that holds whatever the server does.
 *
 *   fence (collects all values) --over or late--> ask for each rank's value by itself
 *     all values there:   done
 *     some not there:     ask for those again until the time is up; then they are missing
 *
 * For a list of ranks there is no fence, and the values are asked for at once: Slurm's
 * server cannot do a fence of some ranks of several nodes (until 2026 it waits for 300 s
 * and fails).
 *
 * A rank counts as there if the question for its value is answered, not because the fence
 * has ended. A server may let a fence end early when a rank has just closed its
 * connection (openpmix issues 3931 and 4113, all releases until 2026). After a failed
 * fence, the questions also tell which ranks are missing. */
#ifndef HVD_PMIX_COLLECT_H
#define HVD_PMIX_COLLECT_H

#include <pmix.h>
#include <stdbool.h>

#include "pmix_boot/rank_record.h"

struct hvd_collect;

/* Prepares to collect. ranks: [size] the ranks to ask for, borrowed until destroy; NULL:
 * 0 ... size - 1. The caller owns the result; NULL if memory runs out. */
struct hvd_collect *hvd_collect_create(const pmix_proc_t *self, const char *key,
                                       const int *ranks, int size);

/* Waits until the values of all ranks have arrived or timeout_ms has passed. It starts
 * with a fence of all ranks of the launch (fence_ms 0: no fence), and asks for each value
 * once the fence is over or fence_ms has passed. PMIx must be open and this rank's value
 * committed. Returns the number of missing ranks. */
int hvd_collect_run(struct hvd_collect *collect, int fence_ms, int timeout_ms);

/* Makes run return early, now and when it is called again. Any thread may call it. */
void hvd_collect_stop(struct hvd_collect *collect);
bool hvd_collect_was_stopped(struct hvd_collect *collect);

/* Call it after PMIx was finalized and opened again, before run is called again: no
 * answer will come to the questions that were open. The values stay. */
void hvd_collect_reopen(struct hvd_collect *collect);

/* After run: return whether the value of the rank at this index arrived, and the PMIx
 * status of the last attempt to get it. */
bool hvd_collect_has(const struct hvd_collect *collect, int index);
pmix_status_t hvd_collect_status(const struct hvd_collect *collect, int index);

/* After run: returns whether the value of a rank of this node is missing. */
bool hvd_collect_misses_local(struct hvd_collect *collect);

/* After run: returns whether the server left questions about ranks of its own node
 * unanswered, which it should answer at once. Missing ranks may then exist after all. */
bool hvd_collect_is_silent(struct hvd_collect *collect);

/* After run: passes the values, [size], to the caller, who frees them with
 * hvd_blobs_free. */
struct hvd_blob *hvd_collect_take(struct hvd_collect *collect);

/* Frees everything. Call it after PMIx_Finalize, when no answer can arrive any more. NULL
 * is allowed. */
void hvd_collect_destroy(struct hvd_collect *collect);

#endif
