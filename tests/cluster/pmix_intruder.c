/* SPDX-License-Identifier: Apache-2.0 */
/* Another user of a node who wants to end a step: claims to be one of its ranks, with the
 * user id in INTRUDER_CLAIMS, and asks Slurm's PMIx to abort the step. Its environment
 * has the PMIX_* variables of a task, whose values can be guessed. */
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "gpu_binding/base/attr.h"

static unsigned claimed(void)
{
    const char *text = getenv("INTRUDER_CLAIMS");

    return text != NULL ? (unsigned)atoi(text) : 0;
}

/* Replace the functions of libc. libpmix sends the ids that they return. */
HVD_EXPORT uid_t geteuid(void);
HVD_EXPORT gid_t getegid(void);

uid_t geteuid(void)
{
    return claimed();
}

gid_t getegid(void)
{
    return claimed();
}

int main(void)
{
    pmix_proc_t self;
    int status = PMIx_Init(&self, NULL, 0);

    printf("init: %s\n", PMIx_Error_string(status));
    fflush(stdout);
    if (status != PMIX_SUCCESS) {
        return EXIT_FAILURE;
    }
    status = PMIx_Abort(7, "an intruder says so", NULL, 0);
    printf("abort: %s\n", PMIx_Error_string(status));
    return status == PMIX_SUCCESS ? EXIT_SUCCESS : EXIT_FAILURE;
}
