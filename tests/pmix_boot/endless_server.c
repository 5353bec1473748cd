/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into hvdrun: a PMIx server that never ends. */
#include <pmix_server.h>
#include <unistd.h>

pmix_status_t PMIx_server_finalize(void)
{
    for (;;) {
        pause();
    }
}
