/* SPDX-License-Identifier: Apache-2.0 */
/* The processor of this machine, as the built-in table knows processors. */
#include "collectives/execute/processor.h"

struct hvd_job_shape hvd_job_shape_here(const struct hvd_layout *layout)
{
    struct hvd_job_shape shape = hvd_job_shape_of(layout);

    shape.cpu = hvd_processor_here();
    return shape;
}

enum hvd_processor hvd_processor_here(void)
{
#ifdef __x86_64__
    __builtin_cpu_init();
    return __builtin_cpu_is("amd") ? HVD_PROCESSOR_AMD : HVD_PROCESSOR_OTHER;
#else
    return HVD_PROCESSOR_OTHER;
#endif
}
