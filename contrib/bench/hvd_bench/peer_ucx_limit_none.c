/* SPDX-License-Identifier: Apache-2.0 */
/* The peer "ucx-limit" of a build without UCX. */
#include "contrib/bench/hvd_bench/contender.h"

int bench_ucx_limit_create(const struct bench_job *job, const char *program,
                           struct bench_contender *out, struct hvd_error *err)
{
    (void)job;
    (void)program;
    (void)out;
    return hvd_fail(err, HVD_ERR_UNSUPPORTED, "this hvd was built without UCX");
}
