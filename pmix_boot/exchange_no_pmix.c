/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for exchange_pmix.c in a build without PMIx. */
#include "pmix_boot/exchange.h"

bool hvd_exchange_has_pmix(void)
{
    return false;
}

int hvd_exchange_pmix(const struct hvd_blob *mine, int timeout_ms,
                      struct hvd_exchange *out, struct hvd_error *err)
{
    (void)mine;
    (void)timeout_ms;
    (void)out;
    return hvd_fail(err, HVD_ERR_UNSUPPORTED, "this build of hvd has no PMIx");
}
