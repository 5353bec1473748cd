/* SPDX-License-Identifier: Apache-2.0 */
/* The number of open files that a rank needs, and the limit on them. */
#include "collectives/core/open_files.h"

#include <dirent.h>
#include <inttypes.h>
#include <stddef.h>
#include <sys/resource.h>

#include "collectives/transport/control/tree.h"
#include "gpu_binding/base/log.h"

enum {
    /* One socket in each direction (net_tcp.h). UCX over TCP keeps one, and briefly has
     * two if both ranks connect at the same time: counted in /proc/self/fd after an
     * alltoall of 2 to 8 ranks with UCX 1.13. Ranks of the same node have none. */
    PER_FAR_RANK = 2,
    /* A link of the control network and an eventfd; only node leaders have both. */
    PER_LOCAL_RANK = 2,
    /* Whatever the size of the job, hvd itself opens 8 and UCX 10 on a machine with two
     * network devices. The rest is for more devices and for connections made from both
     * sides at once. */
    OWN = 32,
    /* Room for files that the program opens later; the job also starts without this
     * room. */
    TO_SPARE = 96,
};

int64_t hvd_open_files_needed(const struct hvd_layout *layout, int rank, bool is_tcp)
{
    const int node = layout->node[rank];
    const int64_t near = hvd_layout_local_size(layout, node);
    int64_t far = 0;

    for (int i = 0; is_tcp && i < layout->nodes; i++) {
        far += i == node ? 0 : hvd_layout_local_size(layout, i);
    }
    return PER_FAR_RANK * far + PER_LOCAL_RANK * near + HVD_TREE_FANOUT + 1 + OWN;
}

static bool is_name(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Counts the open files of this process; returns 0 without /proc. */
static int64_t count_open(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int64_t count = 0;
    const struct dirent *entry;

    if (folder == NULL) {
        return 0;
    }
    while ((entry = readdir(folder)) != NULL) {
        count += is_name(entry) ? 1 : 0;
    }
    closedir(folder);
    return count;
}

int hvd_open_files_provide(int64_t needed, struct hvd_error *err)
{
    const int64_t least = needed + count_open();
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
        limit.rlim_cur >= (rlim_t)least + TO_SPARE) {
        return 0;
    }
    if (limit.rlim_max < (rlim_t)least) {
        return hvd_fail(err, HVD_ERR_SYS,
                        "this rank needs %" PRId64
                        " open files, and the limit is %" PRId64
                        ": raise it (ulimit -n %" PRId64 "; LimitNOFILE=%" PRId64
                        " in slurmd's unit; srun --propagate=NOFILE, or "
                        "PropagateResourceLimits in slurm.conf)",
                        least, (int64_t)limit.rlim_max, least, least);
    }
    /* The program can still open as many files as before. */
    limit.rlim_cur = limit.rlim_max - limit.rlim_cur > (rlim_t)least + TO_SPARE
                         ? limit.rlim_cur + (rlim_t)least + TO_SPARE
                         : limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return hvd_fail(err, HVD_ERR_SYS,
                        "cannot raise the limit on open files to %" PRId64 ": %m; type "
                        "ulimit -n %" PRId64,
                        (int64_t)limit.rlim_cur, least);
    }
    hvd_log(HVD_LOG_DEBUG, "the limit on open files is now %" PRId64,
            (int64_t)limit.rlim_cur);
    return 0;
}
