/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the number of tasks on a node of the job if the user does not. */
#include "spank/tasks_per_node.h"

#include "gpu_binding/base/number.h"

static int gpus_of_a_node(const struct hvd_spank_allocation *allocation, int *gpus,
                          struct hvd_error *err)
{
    *gpus = allocation->gpus_per_node;
    if (allocation->gpus == 0 || allocation->nodes == 0) {
        return 0;
    }
    if (*gpus == 0 && allocation->gpus % allocation->nodes == 0) {
        *gpus = allocation->gpus / allocation->nodes;
    }
    if ((long)*gpus * allocation->nodes != allocation->gpus) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "the job has %d GPU%s on %d node%s, not the same number on each: "
                        "use --gpus-per-node=N or --ntasks=%d",
                        allocation->gpus, hvd_number_plural(allocation->gpus),
                        allocation->nodes, hvd_number_plural(allocation->nodes),
                        allocation->gpus);
    }
    return 0;
}

int hvd_spank_tasks_per_node(const struct hvd_spank_allocation *allocation, int *tasks,
                             struct hvd_error *err)
{
    long threads = allocation->cpus_per_task > 0 ? allocation->cpus_per_task : 1;
    int wanted;
    int rc = gpus_of_a_node(allocation, &wanted, err);

    if (rc != 0) {
        return rc;
    }
    if (allocation->cpus_per_node > 0 && wanted * threads > allocation->cpus_per_node) {
        return hvd_fail(
            err, HVD_ERR_ARG,
            "one task for each GPU, %d per node with %ld cpus each, needs %ld "
            "cpus but the job has %d: use #SBATCH --ntasks-per-node=%d "
            "--cpus-per-task=%ld, or --cpus-per-gpu=%ld",
            wanted, threads, wanted * threads, allocation->cpus_per_node, wanted, threads,
            threads);
    }
    *tasks = wanted;
    return 0;
}
