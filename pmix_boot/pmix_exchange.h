/* SPDX-License-Identifier: Apache-2.0 */
/* The exchange through libpmix; only hvd-boot links this. */
#ifndef HVD_PMIX_EXCHANGE_H
#define HVD_PMIX_EXCHANGE_H

#include "pmix_boot/exchange.h"
#include "pmix_boot/exchange_key.h"

/* Init, put, commit, collect and finalize. The key must be the same on all ranks of the
 * query. Once per process. Fails as described at hvd_boot_create. */
int hvd_pmix_exchange(const struct hvd_exchange_query *query,
                      const struct hvd_exchange_key *key, struct hvd_exchange *out,
                      struct hvd_error *err);

#endif
