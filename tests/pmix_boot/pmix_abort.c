/* SPDX-License-Identifier: Apache-2.0 */
/* A rank that asks its launcher, through PMIx itself, to end the job: pmix_abort RANK CODE;
 * other ranks wait for the end. */
#include <pmix.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    pmix_proc_t self;

    if (argc < 3 || PMIx_Init(&self, NULL, 0) != PMIX_SUCCESS) {
        return EXIT_FAILURE;
    }
    if ((int)self.rank == atoi(argv[1])) {
        PMIx_Abort(atoi(argv[2]), "nothing works", NULL, 0);
    }
    sleep(60);
    return EXIT_FAILURE;
}
