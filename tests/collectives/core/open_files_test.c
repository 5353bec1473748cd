/* SPDX-License-Identifier: Apache-2.0 */
/* The number of open files that ranks need, and how the limit on them is raised. Each
 * limit is tried in a child process. */
#include "collectives/core/open_files.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tap.h"

enum {
    MOST_RANKS = 2048
};

/* Returns how many open files rank 0 needs in a job with per_node ranks on each node. */
static int64_t needed(int nodes, int per_node, bool is_tcp)
{
    static char names[MOST_RANKS][8];
    static const char *hosts[MOST_RANKS];
    struct hvd_layout layout;
    int64_t count;

    for (int i = 0; i < nodes * per_node; i++) {
        snprintf(names[i], sizeof(names[i]), "n%d", i / per_node);
        hosts[i] = names[i];
    }
    if (hvd_layout_init(&layout, hosts, nodes * per_node, NULL) != 0) {
        exit(99);
    }
    count = hvd_open_files_needed(&layout, 0, is_tcp);
    hvd_layout_finish(&layout);
    return count;
}

static void test_needed(void)
{
    tap_ok(needed(256, 8, true) >= 255 * 8,
           "over TCP a rank needs files for each rank on another node");
    tap_ok(needed(256, 8, false) == needed(1, 8, false),
           "over RDMA the number of files does not depend on the number of nodes");
    tap_ok(needed(1, 8, true) < 1024, "a job on one node needs less than 1024 files");
}

/* Sets the limits and asks for `count` more files. Returns 0 if the soft limit is at
 * least `expected` afterwards. If `expected` is negative, returns 0 if the call fails
 * with the commands that raise the limit. */
static int try_limits(rlim_t soft, rlim_t hard, int64_t count, int64_t expected)
{
    struct rlimit limit = {.rlim_cur = soft, .rlim_max = hard};
    struct hvd_error err = {0};
    int status;

    setrlimit(RLIMIT_NOFILE, &limit);
    status = hvd_open_files_provide(count, &err);
    if (expected < 0) {
        char wanted[64];

        snprintf(wanted, sizeof(wanted), "the limit is %d: ", (int)hard);
        return status == HVD_ERR_SYS && strstr(err.text, wanted) != NULL &&
                       strstr(err.text, "ulimit -n ") != NULL &&
                       strstr(err.text, "PropagateResourceLimits in slurm.conf)") != NULL
                   ? 0
                   : 1;
    }
    getrlimit(RLIMIT_NOFILE, &limit);
    return status == 0 && (int64_t)limit.rlim_cur >= expected &&
                   (expected > (int64_t)soft || limit.rlim_cur == soft)
               ? 0
               : 1;
}

static void test_limit(rlim_t soft, rlim_t hard, int64_t count, int64_t expected,
                       const char *promise)
{
    int code = -1;
    pid_t child = fork();

    if (child == 0) {
        _exit(try_limits(soft, hard, count, expected));
    }
    waitpid(child, &code, 0);
    tap_ok(code == 0, "%s", promise);
}

int main(void)
{
    test_needed();
    test_limit(256, 512, 100, 256, "a soft limit that is enough stays");
    test_limit(64, 512, 300, 364, "a soft limit that is too low is raised");
    test_limit(64, 350, 300, 303, "it is raised to the hard limit at most");
    test_limit(64, 256, 300, -1, "a hard limit that is too low is an error");
    return tap_done();
}
