/* SPDX-License-Identifier: Apache-2.0 */
/* The key of a modex. Each modex of a process has a new key, so that values that a PMIx
 * server keeps from an earlier modex are never taken for new ones. All ranks of a modex
 * must make the same key, though each may have taken part in different modexes before.
 * Therefore the modexes are counted for each list of ranks by itself.
 *
 * Threads: one call at a time. */
#ifndef HVD_MODEX_KEY_H
#define HVD_MODEX_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu_binding/base/error.h"

struct hvd_modex_key {
    uint64_t list; /* a hash of the list of ranks; 0: all ranks of the launch */
    uint32_t number; /* 1, 2, ... counts this process's modexes with that list */
    bool is_first; /* the first modex of this process */
};

/* Makes the key of the next modex of this process. ranks NULL: all ranks of the launch.
 * Returns 0 or HVD_ERR_NOMEM. */
int hvd_modex_key_next(const int *ranks, int count, struct hvd_modex_key *out,
                       struct hvd_error *err);

#endif
