/* SPDX-License-Identifier: Apache-2.0 */
/* The processor of this machine, as the built-in table knows processors. */
#include "collectives/execute/choice_here.h"

struct hvd_shape hvd_shape_here(const struct hvd_layout *layout)
{
    struct hvd_shape shape = hvd_shape_of(layout);

    shape.cpu = hvd_cpu_here();
    return shape;
}

enum hvd_cpu hvd_cpu_here(void)
{
#ifdef __x86_64__
    __builtin_cpu_init();
    return __builtin_cpu_is("amd") ? HVD_CPU_AMD : HVD_CPU_OTHER;
#else
    return HVD_CPU_OTHER;
#endif
}
