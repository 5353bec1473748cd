/* SPDX-License-Identifier: Apache-2.0 */
/* Binds a task as the plan of its node says. */
#include "spank/task_binding.h"

#include <ctype.h>
#include <slurm/slurm_errno.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu_binding/agent/agent_plan.h"
#include "gpu_binding/base/env.h"
#include "gpu_binding/binding.h"
#include "spank/plugin.h"
#include "spank/task_init.h"
#include "spank/task_variables.h"
#include "spank/verbose.h"

static const char *or_null(const char *text)
{
    return text[0] != '\0' ? text : NULL;
}

static enum hvd_bind_mode mode_of(const struct hvd_spank_task *task)
{
    enum hvd_bind_mode mode = task->plugin->options.bind;

    if (!task->plugin->step.is_bound_by_user) {
        return mode;
    }
    if (mode != HVD_BIND_AUTO && mode != HVD_BIND_NONE && task->rank == 0) {
        fprintf(
            stderr,
            "hvd: bind=%s has no effect, because --cpu-bind, --hint or SLURM_CPU_BIND "
            "has precedence\n",
            hvd_bind_mode_name(mode));
    }
    return HVD_BIND_NONE;
}

/* Describes the GPUs of an isolated task: by their UUIDs, else as one unknown GPU.
 * Numbers would not do, because Slurm numbers these GPUs within the task's cgroup, from
 * 0. */
static void describe_own_gpus(const struct hvd_spank_task *task, char *visible,
                              size_t bytes, struct hvd_binding_step *step)
{
    bool is_named = spank_getenv(task->spank, HVD_ENV_CUDA_VISIBLE_DEVICES, visible,
                                 (int)bytes) == ESPANK_SUCCESS &&
                    isalpha((unsigned char)visible[0]);

    step->visible_devices = is_named ? visible : NULL;
    step->gpu_count = is_named ? 0 : 1;
}

/* Describes the GPUs of the step. If Slurm assigned none and the user lists none, the
 * ranks use CPUs only. */
static void describe_gpus(const struct hvd_spank_task *task,
                          struct hvd_binding_step *step)
{
    const struct hvd_spank_job_step *known = &task->plugin->step;

    step->gpu_numbers = or_null(known->gpus);
    step->visible_devices = task->has_gpus ? or_null(known->visible) : known->visible;
}

/* Plans for `ranks` ranks on this node. mask: the cpus to which Slurm has bound this
 * task; NULL: they do not matter. */
static int make_plan(const struct hvd_spank_task *task, int ranks,
                     const struct hvd_cpuset *mask, struct hvd_plan *plan,
                     struct hvd_error *err)
{
    const struct hvd_spank_plugin *plugin = task->plugin;
    char visible[sizeof(plugin->step.visible)];
    struct hvd_binding_step step = {
        .rank_count = ranks,
        .task_mask = mask,
        .options = {.mode = mode_of(task), .nic_off = plugin->options.keep_nic},
    };
    char *cores = NULL;

    if (spank_get_item(task->spank, S_STEP_ALLOC_CORES, &cores) == ESPANK_SUCCESS) {
        step.cores = cores;
    }
    if (!task->is_isolated) {
        describe_gpus(task, &step);
        return hvd_binding_plan(&plugin->step.topology, &step, plan, err);
    }
    describe_own_gpus(task, visible, sizeof(visible), &step);
    return hvd_binding_plan_alone(&plugin->step.topology, &step,
                                  task->placement.local_rank, plan, err);
}

/* Counts the threads for computation: one for each core that the task has to itself.
 * Isolated tasks do not know each other's cores. Unless Slurm has bound them, all have
 * the same mask, so each gets an equal part of its cores. */
static int count_threads(const struct hvd_spank_task *task, const struct hvd_plan *plan,
                         const struct hvd_cpuset *mask, const struct hvd_cpuset *bound)
{
    const struct hvd_topology *topology = &task->plugin->step.topology;
    int threads = hvd_plan_thread_count(plan, task->placement.local_rank);
    int cores = hvd_topology_count_cores(topology, bound, HVD_NONE);

    if (task->is_isolated && hvd_cpuset_is_equal(mask, &topology->allowed)) {
        int part = hvd_topology_count_cores(topology, mask, HVD_NONE) /
                   task->placement.local_size;

        threads = part < threads ? part : threads;
    }
    threads = cores < threads ? cores : threads;
    return threads > 1 ? threads : 1;
}

/* Sets OMP_NUM_THREADS and MKL_NUM_THREADS, unless the user set OMP_NUM_THREADS: MKL
 * obeys it, too, if its own variable is unset. */
static void export_threads(const struct hvd_spank_task *task, int threads)
{
    char text[16];
    bool has_own = spank_getenv(task->spank, HVD_ENV_OMP_THREADS, text, sizeof(text)) !=
                   ESPANK_ENV_NOEXIST;

    if (has_own) {
        return;
    }
    snprintf(text, sizeof(text), "%d", threads);
    hvd_spank_task_set_default(task, HVD_ENV_OMP_THREADS, text);
    hvd_spank_task_set_default(task, HVD_ENV_MKL_THREADS, text);
}

/* Prints the binding in one piece, so that the lines of several nodes do not mix. */
static void show_plan(const struct hvd_spank_task *task, int ranks,
                      const struct hvd_plan *plan, const char *failure)
{
    char host[65] = "";
    char threads[32] = "";
    const struct hvd_spank_node_binding binding = {
        .host = host,
        .ranks = ranks,
        .is_isolated = task->is_isolated,
        .is_first_node = task->placement.node == 0,
        .failure = failure,
        .threads = threads,
        .topology = &task->plugin->step.topology,
        .plan = plan,
    };
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);

    if (out == NULL) {
        return;
    }
    gethostname(host, sizeof(host) - 1);
    spank_getenv(task->spank, HVD_ENV_OMP_THREADS, threads, sizeof(threads));
    hvd_spank_verbose_print(&binding, out);
    if (fclose(out) == 0) {
        fputs(text, stderr);
    }
    free(text);
}

void hvd_spank_task_bind(const struct hvd_spank_task *task)
{
    struct hvd_cpuset mask;
    struct hvd_cpuset bound;
    struct hvd_plan plan;
    struct hvd_error err = {0};
    bool is_first = task->placement.local_rank == 0;
    int rc;

    if (!task->plugin->step.has_topology) {
        return;
    }
    rc = hvd_affinity_get(&mask, &err);
    rc = rc != 0 ? rc : make_plan(task, task->placement.local_size, &mask, &plan, &err);
    if (rc != 0) {
        slurm_error("hvd: rank %d keeps the binding that Slurm chose: %s", task->rank,
                    err.text);
        return;
    }
    rc = hvd_binding_apply(&plan, task->placement.local_rank, hvd_spank_task_setenv,
                           task->spank, &bound, &err);
    if (rc != 0) {
        slurm_error("hvd: rank %d is not bound as planned: %s", task->rank, err.text);
    }
    export_threads(task, count_threads(task, &plan, &mask, &bound));
    if (is_first && task->plugin->options.is_verbose) {
        show_plan(task, task->placement.local_size, &plan, rc != 0 ? err.text : NULL);
    }
    hvd_plan_finish(&plan);
}

/* Binds this task to all CPUs of the plan, and writes them to *bound. */
static int bind_to_all(const struct hvd_plan *plan, struct hvd_cpuset *bound,
                       struct hvd_error *err)
{
    struct hvd_plan_row row = {.cpus = plan->allowed};
    const struct hvd_plan whole = {.mode = plan->mode, .row_count = 1, .rows = &row};
    struct hvd_cpuset limit;
    int rc = hvd_affinity_limit(&limit, err);

    return rc != 0 ? rc : hvd_apply_cpus(&whole, 0, &limit, bound, err);
}

static void export_equal_threads(const struct hvd_spank_task *task, int ranks,
                                 const struct hvd_cpuset *bound)
{
    const struct hvd_topology *topology = &task->plugin->step.topology;
    int threads;

    if (ranks > 0) {
        threads = hvd_topology_count_cores(topology, bound, HVD_NONE) / ranks;
        export_threads(task, threads > 1 ? threads : 1);
    }
}

/* Leaves the plan in the environment, for this step only: ranks may start other steps. */
static int export_plan(const struct hvd_spank_task *task, const struct hvd_plan *plan,
                       const struct hvd_cpuset *bound, struct hvd_error *err)
{
    char name[HVD_SPANK_STEP_BYTES];
    char *text = NULL;
    int rc = HVD_ERR_STATE;

    if (hvd_spank_task_step_name(task, name)) {
        text = hvd_agent_plan_write(plan, name, bound);
    }
    if (text != NULL) {
        /* not in HVD_EXPORTED, because hvd_init removes it */
        rc = (int)spank_setenv(task->spank, HVD_ENV_AGENT_PLAN, text, true);
        free(text);
    }
    if (rc == 0) {
        return 0;
    }
    return hvd_fail(err, rc,
                    "cannot set %s: the environment of the step is too long, or the node "
                    "has no memory left: unset large variables before srun, or use "
                    "another node",
                    HVD_ENV_AGENT_PLAN);
}

/* Plans without the CPUs to which Slurm has bound the agent: its ranks may use all CPUs
 * of the step. Ranks that see only a part of the GPUs get no plan, because they number
 * these GPUs anew. */
void hvd_spank_task_bind_agent(const struct hvd_spank_task *task, int ranks, int expected)
{
    const int rows = ranks > 0 ? ranks : expected;
    const bool is_verbose = task->plugin->options.is_verbose && !task->is_isolated;
    struct hvd_cpuset bound = {{0}};
    struct hvd_plan plan = {0};
    struct hvd_error err = {0};
    int rc;

    if (!task->plugin->step.has_topology) {
        return;
    }
    rc = hvd_affinity_get(&bound, &err);
    if (rc == 0) {
        rc = make_plan(task, rows, task->is_isolated ? &bound : NULL, &plan, &err);
    }
    if (rc == 0) {
        rc = bind_to_all(&plan, &bound, &err);
    }
    export_equal_threads(task, ranks, &bound);
    if (rc == 0 && !task->is_isolated) {
        rc = export_plan(task, &plan, &bound, &err);
    }
    if (plan.row_count > 0 && is_verbose) {
        show_plan(task, rows, &plan, rc != 0 ? err.text : NULL);
    }
    hvd_plan_finish(&plan);
    if (rc != 0) {
        slurm_error("hvd: the ranks that torchrun starts on this node are not bound near "
                    "their GPUs: %s",
                    err.text);
    }
}
