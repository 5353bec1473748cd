/* SPDX-License-Identifier: Apache-2.0 */
/* The files in which the kernel counts processes that it killed because memory ran
 * out. */
#include <string.h>

#include "pmix_boot/hvdrun/memory_kills.h"
#include "tests/tap.h"

/* Returns whether the file `wanted` is found; NULL: whether none is found. */
static bool is_found(const char *cgroups, const char *wanted)
{
    char path[256] = "";
    FILE *file = fmemopen((char *)cgroups, strlen(cgroups), "r");
    bool found = hvdrun_memory_kills_file(file, path, sizeof(path));

    fclose(file);
    if (found) {
        tap_note("%s", path);
    }
    return wanted != NULL ? found && strcmp(path, wanted) == 0 : !found;
}

static long read_kills(const char *events)
{
    FILE *file = fmemopen((char *)events, strlen(events), "r");
    long kills = hvdrun_memory_kills_read(file);

    fclose(file);
    return kills;
}

int main(void)
{
    tap_ok(
        is_found("0::/user.slice/job\n", "/sys/fs/cgroup/user.slice/job/memory.events"),
        "the file is found with cgroups of version 2");
    tap_ok(is_found("0::/\n", "/sys/fs/cgroup//memory.events"), "in a container");
    tap_ok(is_found("8:pids:/a\n4:memory:/slurm/job_1\n0::/b\n",
                    "/sys/fs/cgroup/memory/slurm/job_1/memory.oom_control"),
           "with version 1, also if version 2 exists beside it");
    tap_ok(is_found("0::/b\n3:cpu,memory:/a:b\n",
                    "/sys/fs/cgroup/memory/a:b/memory.oom_control"),
           "in any order, with several controllers, and with a colon in the path");
    tap_ok(is_found("3:cpuset,memoryx:/a\nnonsense\n", NULL),
           "without a memory controller there is no file");
    tap_ok(read_kills("low 0\nhigh 0\nmax 71\noom 2\noom_kill 3\noom_group_kill 0\n") ==
               3,
           "version 2 has a counter");
    tap_ok(read_kills("oom_kill_disable 0\nunder_oom 0\noom_kill 4\n") == 4,
           "version 1 has a counter, too");
    tap_ok(read_kills("oom_kill_disable 0\nunder_oom 0\n") == -1,
           "a kernel before 4.13 has none");
    return tap_done();
}
