/* SPDX-License-Identifier: Apache-2.0 */
/* Random jobs among simulated ranks: agreement_random_test [JOBS]. */
#include <stdlib.h>

#include "gpu_binding/base/log.h"
#include "tests/collectives/agreement/agreement_jobs.h"
#include "tests/tap.h"

int main(int argc, char **argv)
{
    int jobs = argc > 1 ? atoi(argv[1]) : 200;
    unsigned seed = tap_seed(20260914);
    struct job_counts counts = {0};
    char fault[512];
    int failed = 0;

    /* the warnings of small caches and long waits are expected */
    hvd_log_to(NULL, HVD_LOG_OFF);
    for (int i = 0; i < jobs; i++) {
        if (!job_try(seed + (unsigned)i, &counts, fault, sizeof(fault)) &&
            failed++ < 10) {
            tap_note("seed %u: %s", seed + (unsigned)i, fault);
        }
    }
    tap_ok(failed == 0, "%d random jobs; %d fail", jobs, failed);
    tap_ok(jobs < 100 || (counts.replayed_in_sets > 0 && counts.void_in_sets > 0),
           "process sets have replays, which break: %ld batches replayed, %ld cancelled",
           (long)counts.replayed_in_sets, (long)counts.void_in_sets);
    return tap_done();
}
