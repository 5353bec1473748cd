/* SPDX-License-Identifier: Apache-2.0 */
/* How many tasks a node of the job should get when the user did not say. */
#include "spank/tasks.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* More than a node has; keeps products below far from overflow. */
enum {
    GPUS_MAX = 4096
};

static int gpus_of_a_node(const struct hvd_job *job, int *gpus, struct hvd_error *err)
{
    *gpus = job->gpus_per_node;
    if (job->gpus == 0 || job->nodes == 0) {
        return 0;
    }
    if (*gpus == 0 && job->gpus % job->nodes == 0) {
        *gpus = job->gpus / job->nodes;
    }
    if ((long)*gpus * job->nodes != job->gpus) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "the job has %d GPUs on %d nodes, not the same number on each: "
                        "use --gpus-per-node=N, or say --ntasks=%d yourself",
                        job->gpus, job->nodes, job->gpus);
    }
    return 0;
}

int hvd_tasks_per_node(const struct hvd_job *job, int *tasks, struct hvd_error *err)
{
    long threads = job->cpus_per_task > 0 ? job->cpus_per_task : 1;
    int wanted;
    int rc = gpus_of_a_node(job, &wanted, err);

    if (rc != 0) {
        return rc;
    }
    if (job->cpus_per_node > 0 && wanted * threads > job->cpus_per_node) {
        return hvd_fail(
            err, HVD_ERR_ARG,
            "one task for each GPU, %d per node with %ld cpus each, needs %ld "
            "cpus but the job has %d: use #SBATCH --ntasks-per-node=%d "
            "--cpus-per-task=%ld, or --cpus-per-gpu=%ld",
            wanted, threads, wanted * threads, job->cpus_per_node, wanted, threads,
            threads);
    }
    *tasks = wanted;
    return 0;
}

/* What stands behind the last ':', without Slurm's "(S:0-1)" behind it. */
int hvd_gpu_count(const char *text)
{
    size_t length = strcspn(text, "(");
    size_t start = length;
    char *end = NULL;
    long count;

    if (strchr(text, ',') != NULL) {
        return 0;
    }
    while (start > 0 && text[start - 1] != ':') {
        start--;
    }
    if (length - start == 3 && strncmp(text + start, "gpu", 3) == 0) {
        return 1;
    }
    if (!isdigit((unsigned char)text[start])) {
        return 0;
    }
    count = strtol(text + start, &end, 10);
    return end == text + length && count <= GPUS_MAX ? (int)count : 0;
}
