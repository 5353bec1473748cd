/* SPDX-License-Identifier: Apache-2.0 */
/* The exchange in PMIx's own terms; only hvd-boot links this. */
#ifndef HVD_PMIX_EXCHANGE_H
#define HVD_PMIX_EXCHANGE_H

#include "pmix_boot/exchange.h"

/* Init, put, commit, collect, finalize at once. cycle must be the same on all ranks: 1, and
 * one more each time. Once in a process. Fails as hvd_boot_create says. */
int hvd_pmix_exchange(const struct hvd_blob *mine, unsigned cycle, int timeout_ms,
                      struct hvd_exchange *out, struct hvd_error *err);

#endif
