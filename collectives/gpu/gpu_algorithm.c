/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the algorithm of an allreduce by NCCL across nodes, among the candidates of the
 * process set: tries them with the first large batches. */
#include <inttypes.h>
#include <stdio.h>

#include "collectives/gpu/gpu_run_state.h"
#include "collectives/run/team.h"
#include "collectives/gpu/gpu_chunk_moves.h"
#include "collectives/gpu/gpu_inter_node.h"
#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/env.h"
#include "gpu_binding/base/log.h"

static struct hvd_gpu_reduction reduction_of(const struct hvd_gpu_run *run)
{
    struct hvd_gpu_reduction reduction;

    hvd_gpu_reduction_find(&run->batch->entries[0]->descriptor, run->team->layout->size,
                           run->set->nccl_version, run->set->all_have_kernels,
                           &reduction);
    return reduction;
}

static int64_t bytes_of(const struct hvd_gpu_run *run)
{
    return hvd_gpu_batch_bytes(run->batch, reduction_of(run).dtype);
}

static int64_t chunk_bytes_of(const struct hvd_gpu_run *run)
{
    return hvd_gpu_pipeline_shard_bytes(run->team) * run->team->local_size;
}

/* Returns the choice for batches of this size; NULL if they are too small for one. The
 * result is the same on all ranks. */
static struct hvd_gpu_choice *choice_of(const struct hvd_gpu_run *run)
{
    int size_class = hvd_gpu_size_class(bytes_of(run), chunk_bytes_of(run));

    return size_class >= 0 ? &run->set->choices[size_class] : NULL;
}

static enum hvd_gpu_allreduce algorithm_of(const struct hvd_gpu_run *run)
{
    const struct hvd_gpu_set *set = run->set;
    const struct hvd_gpu_choice *choice;

    if (run->trial.algorithm != HVD_GPU_ALLREDUCE_UNSET) {
        return run->trial.algorithm;
    }
    if (set->allreduce != HVD_GPU_ALLREDUCE_AUTO) {
        return set->allreduce;
    }
    choice = choice_of(run);
    return choice != NULL && choice->algorithm != HVD_GPU_ALLREDUCE_UNSET
               ? choice->algorithm
               : set->candidates[0];
}

bool hvd_gpu_is_hierarchical(const struct hvd_gpu_run *run)
{
    return run->batch->header.kind == HVD_KIND_ALLREDUCE &&
           run->set->inter_node != NULL && algorithm_of(run) != HVD_GPU_ALLREDUCE_FLAT;
}

/* Makes a pipeline for the hierarchical algorithms. All factors are applied within the
 * node, by NCCL or kernels, so the reduction between nodes is a plain sum. */
int hvd_gpu_hierarchical_pipeline(struct hvd_gpu_run *run, struct hvd_error *err)
{
    const struct hvd_gpu_reduction apart = reduction_of(run), /* the pipeline packs */
        reduction = hvd_gpu_reduction_of_packed(&apart, run->set->all_have_kernels);
    const struct hvd_gpu_pipeline_config config = {
        .gpu = run->gpu,
        .batch = run->batch,
        .team = hvd_gpu_inter_node_team(run->set->inter_node),
        .comm = run->set->node_comm,
        .is_direct = algorithm_of(run) == HVD_GPU_ALLREDUCE_DIRECT,
        .local_size = run->team->local_size,
        .local_rank = run->team->local_rank,
        .trace = &run->trace,
        .reduction = reduction,
        .descriptor = {.dtype = reduction.dtype,
                       .op = reduction.op,
                       .prescale = 1.0,
                       .postscale = 1.0},
    };

    return hvd_gpu_pipeline_create(&config, &run->pipeline, err);
}

/* --- the trial: which algorithm is faster --- */

enum {
    ROUNDS = 3, /* trials of each algorithm; the first one connects and is not measured */
    /* Large batches after which size classes that are still undecided stay as they are,
     * so that the node's communicator does not wait for sizes that never come. */
    LAST_BATCH = 200,
};

static const struct {
    const char *name;
    const char *setting; /* fixes the choice */
} algorithms[] = {
    [HVD_GPU_ALLREDUCE_HIERARCHICAL] = {"hierarchical", HVD_ENV_GPU_ALLREDUCE
                                        "=hierarchical " HVD_ENV_GPU_DIRECT "=off"},
    [HVD_GPU_ALLREDUCE_FLAT] = {"flat", HVD_ENV_GPU_ALLREDUCE "=flat"},
    [HVD_GPU_ALLREDUCE_DIRECT] = {"hierarchical with GPU memory between nodes",
                                  HVD_ENV_GPU_ALLREDUCE
                                  "=hierarchical " HVD_ENV_GPU_DIRECT "=on"},
};

/* Ends what only the hierarchical algorithms use, once no batch will take them. No such
 * batch is running: only trials are hierarchical until then, and nothing runs beside
 * them. */
static void end_hierarchy(struct hvd_gpu_run *run)
{
    struct hvd_gpu_set *set = run->set;

    set->allreduce = HVD_GPU_ALLREDUCE_FLAT;
    run->gpu->pool->module->comm_destroy(set->node_comm);
    set->node_comm = NULL;
    hvd_gpu_inter_node_destroy(set->inter_node);
    set->inter_node = NULL;
}

/* Ends the trials if all classes are decided, or if is_late. */
static void end_trials(struct hvd_gpu_run *run, bool is_late)
{
    struct hvd_gpu_set *set = run->set;
    bool is_flat = true, is_decided = true;

    for (int i = 0; i < HVD_GPU_SIZE_CLASSES; i++) {
        struct hvd_gpu_choice *choice = &set->choices[i];

        if (is_late && choice->algorithm == HVD_GPU_ALLREDUCE_UNSET) {
            choice->algorithm = set->candidates[0];
        }
        is_decided &= choice->algorithm != HVD_GPU_ALLREDUCE_UNSET;
        is_flat &= choice->algorithm == HVD_GPU_ALLREDUCE_FLAT;
    }
    if (is_decided && is_flat) {
        end_hierarchy(run);
    }
}

/* The result is the same on all ranks, because they count the same batches and trials. */
bool hvd_gpu_trial_wanted(struct hvd_gpu_run *run)
{
    const struct hvd_gpu_choice *choice;

    if (run->set->allreduce != HVD_GPU_ALLREDUCE_AUTO ||
        run->batch->header.kind != HVD_KIND_ALLREDUCE) {
        return false;
    }
    choice = choice_of(run);
    if (choice == NULL) {
        return false;
    }
    if (++run->set->large_batches == LAST_BATCH) {
        end_trials(run, true);
    }
    return run->set->allreduce == HVD_GPU_ALLREDUCE_AUTO &&
           choice->algorithm == HVD_GPU_ALLREDUCE_UNSET;
}

int hvd_gpu_trial_ready(struct hvd_gpu_run *run, struct hvd_error *err)
{
    hvd_gpu_steps_follow(&run->job.steps, run->batch->entries,
                         (int)run->batch->header.count);
    return hvd_gpu_job_submit(run->gpu, &run->job, HVD_GPU_COLLECT, NULL, err);
}

/* Sends this rank's measurements to all ranks. The exchange also tells the others that
 * this rank's input is complete. */
int hvd_gpu_trial_line_up(struct hvd_gpu_run *run, struct hvd_error *err)
{
    const struct hvd_gpu_trial *trial = &choice_of(run)->trial;

    hvd_gpu_job_end(run->gpu, &run->job);
    return hvd_gpu_host_gather_begin(&run->gather, run->team,
                                     run->batch->entries[0]->descriptor.name, trial,
                                     sizeof(*trial), err);
}

/* Writes a text such as "0.42 GB/s flat, 0.31 GB/s hierarchical". */
static void describe_trials(const struct hvd_gpu_run *run,
                            const struct hvd_gpu_trial *told, char *text, size_t size)
{
    const struct hvd_gpu_set *set = run->set;
    size_t used = 0;

    for (int i = 0; i < set->candidate_count; i++) {
        used += (size_t)snprintf(
            text + used, size - used, "%s%.2f GB/s %s", i > 0 ? ", " : "",
            hvd_gpu_trial_speed(told, run->team->layout->size, set->candidates[i]),
            algorithms[set->candidates[i]].name);
        used = used < size ? used : size - 1;
    }
}

/* Describes a size class as "256 to 1024 KiB", or "4096 KiB on" for the last one. Returns
 * text. */
static const char *describe_class(int size_class, int64_t chunk_bytes, char *text,
                                  size_t size)
{
    int64_t begin = hvd_gpu_size_class_begin(size_class, chunk_bytes) / 1024;
    int64_t end = hvd_gpu_size_class_begin(size_class + 1, chunk_bytes) / 1024;

    if (size_class + 1 < HVD_GPU_SIZE_CLASSES) {
        snprintf(text, size, "%" PRId64 " to %" PRId64 " KiB", begin, end);
    } else {
        snprintf(text, size, "%" PRId64 " KiB on", begin);
    }
    return text;
}

/* Decides from the measurements of all ranks, so that all ranks choose the same. */
static void decide_algorithm(struct hvd_gpu_run *run, const struct hvd_gpu_trial *told)
{
    struct hvd_gpu_set *set = run->set;
    struct hvd_gpu_choice *choice = choice_of(run);
    char text[256], sizes[64];

    choice->algorithm = hvd_gpu_trial_best(told, run->team->layout->size, set->candidates,
                                           set->candidate_count);
    describe_trials(run, told, text, sizeof(text));
    hvd_log(run->team->rank == 0 ? HVD_LOG_INFO : HVD_LOG_DEBUG,
            "process set %d: allreduce by NCCL from %s: %s from now on: measured %s; %s "
            "fixes this choice for all sizes",
            set->id,
            describe_class((int)(choice - set->choices), chunk_bytes_of(run), sizes,
                           sizeof(sizes)),
            algorithms[choice->algorithm].name, text,
            algorithms[choice->algorithm].setting);
    end_trials(run, false);
}

/* Returns the algorithm of the next trial. The last round is in reverse order, so that a
 * drift from batch to batch affects all candidates alike. */
static enum hvd_gpu_allreduce next_algorithm(const struct hvd_gpu_set *set,
                                             const struct hvd_gpu_trial *trial)
{
    int64_t count = set->candidate_count, round = trial->count / count;
    int64_t at = trial->count % count;

    return set->candidates[round == ROUNDS - 1 ? count - 1 - at : at];
}

void hvd_gpu_trial_begin(struct hvd_gpu_run *run)
{
    struct hvd_gpu_set *set = run->set;
    struct hvd_gpu_trial *trial = &choice_of(run)->trial;

    if (trial->count == (int64_t)ROUNDS * set->candidate_count) {
        decide_algorithm(run, hvd_gpu_host_gather_result(&run->gather));
    } else {
        run->trial.algorithm = next_algorithm(set, trial);
        trial->count++;
        run->trial.began_ns = hvd_clock_ns();
    }
    hvd_gpu_host_gather_end(&run->gather);
}

bool hvd_gpu_trial_runs(const struct hvd_gpu_run *run)
{
    return run->trial.algorithm != HVD_GPU_ALLREDUCE_UNSET;
}

void hvd_gpu_trial_restart(struct hvd_gpu_run *run)
{
    run->trial.began_ns = hvd_clock_ns();
}

void hvd_gpu_trial_end(struct hvd_gpu_run *run)
{
    struct hvd_gpu_trial *trial = &choice_of(run)->trial;

    if (trial->count > run->set->candidate_count) {
        trial->ns[run->trial.algorithm] += hvd_clock_ns() - run->trial.began_ns;
        trial->bytes[run->trial.algorithm] += bytes_of(run);
    }
}
