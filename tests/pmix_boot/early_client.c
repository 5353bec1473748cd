/* SPDX-License-Identifier: Apache-2.0 */
/* For LD_PRELOAD: a PMIx client that connects before the clients of other ranks leave, so
 * that the server's cleanup after them makes its view of the node's values stale.
 *
 * The first process connects in its first PMIx_Init, then waits for the other ranks. The
 * next STAYS calls of PMIx_Finalize and PMIx_Init keep the connection. The process
 * creates the file HVD_TEST_EARLY_CLIENT; processes that find it behave as usual. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pmix.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpu_binding/base/attr.h"

#define STAYS 2 /* the ranks of the node */

/* Long enough for ranks that start at the same time to open PMIx and leave again. */
#define WAIT_NS 700000000L

static bool is_early;
static int finalized;

static bool create_file(void)
{
    const char *path = getenv("HVD_TEST_EARLY_CLIENT");
    int fd =
        path != NULL ? open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600) : -1;

    return fd >= 0 && close(fd) == 0;
}

HVD_EXPORT pmix_status_t PMIx_Init(pmix_proc_t *self, pmix_info_t info[], size_t count)
{
    pmix_status_t (*init)(pmix_proc_t *, pmix_info_t *, size_t);
    void *symbol = dlsym(RTLD_NEXT, "PMIx_Init");
    const struct timespec wait = {.tv_nsec = WAIT_NS};
    pmix_status_t status;

    if (is_early && finalized <= STAYS) {
        return PMIX_SUCCESS;
    }
    memcpy(&init, &symbol, sizeof(symbol));
    status = init(self, info, count);
    if (create_file()) {
        is_early = true;
        nanosleep(&wait, NULL);
    }
    return status;
}

HVD_EXPORT pmix_status_t PMIx_Finalize(const pmix_info_t info[], size_t count)
{
    pmix_status_t (*finalize)(const pmix_info_t *, size_t);
    void *symbol = dlsym(RTLD_NEXT, "PMIx_Finalize");

    memcpy(&finalize, &symbol, sizeof(symbol));
    return is_early && finalized++ < STAYS ? PMIX_SUCCESS : finalize(info, count);
}
