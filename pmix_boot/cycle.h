/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers for exchanges: values that a PMIx server keeps from an earlier one must never be
 * taken for new ones. Ranks that meet must agree on the number, though each of them may have
 * met others before: so every list of ranks has a count of its own.
 *
 * Threads: one call at a time. */
#ifndef HVD_CYCLE_H
#define HVD_CYCLE_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu_binding/base/error.h"

struct hvd_cycle {
    uint64_t list; /* stands for the list of ranks; 0: all of the launch */
    uint32_t number; /* 1, 2, ... of this process's exchanges with that list */
    bool is_first; /* of all of this process */
};

/* The next exchange of this process. ranks NULL: all of the launch. Returns 0 or
 * HVD_ERR_NOMEM. */
int hvd_cycle_next(const int *ranks, int count, struct hvd_cycle *out,
                   struct hvd_error *err);

#endif
