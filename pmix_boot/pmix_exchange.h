/* SPDX-License-Identifier: Apache-2.0 */
/* The exchange in PMIx's own terms; only hvd-boot links this. */
#ifndef HVD_PMIX_EXCHANGE_H
#define HVD_PMIX_EXCHANGE_H

#include "pmix_boot/cycle.h"
#include "pmix_boot/exchange.h"

/* Init, put, commit, collect, finalize at once. The cycle's list and number must be the same
 * on all ranks of the query. Once in a process. Fails as hvd_boot_create says. */
int hvd_pmix_exchange(const struct hvd_exchange_query *query,
                      const struct hvd_cycle *cycle, struct hvd_exchange *out,
                      struct hvd_error *err);

#endif
