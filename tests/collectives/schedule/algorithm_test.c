/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that hvd recognizes the processor of this machine, for which it chooses the
 * built-in table of algorithms. */
#include "collectives/schedule/algorithm.h"

#include <string.h>

#include "pmix_boot/layout.h"
#include "tests/tap.h"

/* Whether the kernel says that the processor is from AMD. The built-in table has one
 * variant for AMD and one for all others. */
static bool is_amd(void)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[256];
    bool found = false;

    while (file != NULL && !found && fgets(line, sizeof(line), file) != NULL) {
        found = strncmp(line, "vendor_id", strlen("vendor_id")) == 0 &&
                strstr(line, "AuthenticAMD") != NULL;
    }
    if (file != NULL) {
        fclose(file);
    }
    return found;
}

int main(void)
{
    const enum hvd_processor cpu = is_amd() ? HVD_PROCESSOR_AMD : HVD_PROCESSOR_OTHER;
    const char *const hosts[] = {"a", "a"};
    struct hvd_layout layout = {0};
    struct hvd_job_shape shape;

    tap_ok(hvd_processor_here() == cpu,
           "the processor is the one that /proc/cpuinfo names");
    if (!tap_ok(hvd_layout_init(&layout, hosts, 2, NULL) == 0, "two ranks on one node")) {
        return tap_done();
    }
    shape = hvd_job_shape_here(&layout);
    tap_ok(shape.nodes == 1 && shape.ranks == 2 && shape.cpu == cpu,
           "the shape of a job on this node has its processor");
    hvd_layout_finish(&layout);
    return tap_done();
}
