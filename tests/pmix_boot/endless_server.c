/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into hvdrun: a PMIx server that never ends, or crashes as it does (HVD_TEST_CRASH). */
#include <pmix_server.h>
#include <stdlib.h>
#include <unistd.h>

pmix_status_t PMIx_server_finalize(void)
{
    if (getenv("HVD_TEST_CRASH") != NULL) {
        abort();
    }
    for (;;) {
        pause();
    }
}
