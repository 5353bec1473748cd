/* SPDX-License-Identifier: Apache-2.0 */
/* The modex through libpmix; only hvd-boot links this. */
#ifndef HVD_PMIX_MODEX_H
#define HVD_PMIX_MODEX_H

#include "pmix_boot/modex.h"
#include "pmix_boot/modex_key.h"

/* Runs init, put, commit, collect and finalize; gives up, as at the time limit, when
 * stop_fd becomes readable or is closed. The key must be the same on all ranks of
 * the query. Call it once per process. Fails as described at hvd_boot_create. */
int hvd_pmix_modex(const struct hvd_modex_query *query, const struct hvd_modex_key *key,
                   int stop_fd, struct hvd_modex *out, struct hvd_error *err);

#endif
