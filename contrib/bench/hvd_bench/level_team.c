/* SPDX-License-Identifier: Apache-2.0 */
/* The level "team": the schedule run by the caller on agreed buffers. */
#include "contrib/bench/hvd_bench/contender.h"

int bench_team_create(const struct bench_job *job, const char *program,
                      struct bench_contender *out, struct hvd_error *err)
{
    (void)job;
    (void)program;
    (void)out;
    return hvd_fail(err, HVD_ERR_UNSUPPORTED, "not in this build");
}
