/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the algorithm of an allreduce by NCCL across nodes: finds those that a process
 * set can use, and tries them with the first large batches. */
#include <stdatomic.h>
#include <stdio.h>

#include "collectives/gpu/gpu_run_state.h"
#include "collectives/run/team.h"
#include "collectives/gpu/gpu_inter_node.h"
#include "collectives/gpu/gpu_rendezvous.h"
#include "collectives/gpu/gpu_connectivity.h"
#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/env.h"
#include "gpu_binding/base/error.h"
#include "gpu_binding/base/log.h"

const char *hvd_gpu_hierarchical_obstacle(const struct hvd_team *team)
{
    return !hvd_layout_is_homogeneous(team->layout)
               ? "its nodes have different numbers of ranks"
           : team->local_size == 1 ? "it has one rank on each node"
                                   : "";
}

static void say_allreduce(const struct hvd_gpu_run *run, enum hvd_gpu_allreduce chosen,
                          const char *reason)
{
    static const char *const texts[] = {
        [HVD_GPU_ALLREDUCE_AUTO] = "auto, to be measured",
        [HVD_GPU_ALLREDUCE_HIERARCHICAL] = "hierarchical",
        [HVD_GPU_ALLREDUCE_FLAT] = "flat",
    };

    if (run->team->rank == 0 && run->team->layout->nodes > 1) {
        hvd_log(HVD_LOG_INFO, "process set %d: allreduce by NCCL: %s: %s", run->set->id,
                texts[chosen], reason);
    }
}

/* A rank that sets HVD_GPU_ALLREDUCE sets it for all. If ranks differ, flat is chosen,
 * because it has the fewest requirements. */
static enum hvd_gpu_allreduce
choose_allreduce(const struct hvd_gpu_rendezvous *rendezvous, char *reason, size_t size)
{
    const char *obstacle = hvd_gpu_hierarchical_obstacle(rendezvous->team);
    enum hvd_gpu_allreduce chosen = HVD_GPU_ALLREDUCE_AUTO;

    if (obstacle[0] != '\0') {
        snprintf(reason, size, "%s", obstacle);
        return HVD_GPU_ALLREDUCE_FLAT;
    }
    snprintf(reason, size, "no rank has " HVD_ENV_GPU_ALLREDUCE);
    for (int i = 0; i < rendezvous->team->layout->size; i++) {
        enum hvd_gpu_allreduce told =
            (enum hvd_gpu_allreduce)rendezvous->offers[i].allreduce;

        if (told > chosen) {
            chosen = told;
            snprintf(reason, size,
                     HVD_ENV_GPU_ALLREDUCE " or a variable of Horovod on rank %d",
                     rendezvous->team->ranks[i]);
        }
    }
    return chosen;
}

/* Returns true and writes the reason to text if a member cannot or must not use UCX on
 * GPU memory. Returns false if it can. */
static bool find_direct_obstacle(const struct hvd_gpu_rendezvous *rendezvous, int member,
                                 char *text, size_t size)
{
    const struct hvd_gpu_offer *offer = &rendezvous->offers[member];
    int rank = rendezvous->team->ranks[member];

    if (offer->direct == HVD_GPU_DIRECT_OFF) {
        snprintf(text, size, HVD_ENV_GPU_DIRECT "=off on rank %d", rank);
    } else if (offer->ucx_version == 0) {
        snprintf(text, size, "rank %d on %s uses TCP between nodes, not UCX", rank,
                 hvd_gpu_member_host(rendezvous->team, rendezvous->boot, member));
    } else if ((offer->identity.network & HVD_GPU_NET_UCX_CUDA) == 0) {
        snprintf(
            text, size,
            "UCX %d.%d of rank %d on %s has no CUDA support (run hvd-info --check there)",
            offer->ucx_version / 10000, offer->ucx_version / 100 % 100, rank,
            hvd_gpu_member_host(rendezvous->team, rendezvous->boot, member));
    } else if (!offer->identity.orders_writes) {
        snprintf(text, size,
                 "the GPU of rank %d on %s does not order GPUDirect RDMA writes, so it "
                 "could read stale data",
                 rank, hvd_gpu_member_host(rendezvous->team, rendezvous->boot, member));
    } else if (!offer->identity.has_kernels) {
        snprintf(text, size, "rank %d on %s has no kernels (run hvd-info --check there)",
                 rank, hvd_gpu_member_host(rendezvous->team, rendezvous->boot, member));
    } else {
        return false;
    }
    return true;
}

/* Returns the first rank with HVD_GPU_DIRECT=on, or -1. */
static int find_direct_asker(const struct hvd_gpu_rendezvous *rendezvous)
{
    for (int i = 0; i < rendezvous->team->layout->size; i++) {
        if (rendezvous->offers[i].direct == HVD_GPU_DIRECT_ON) {
            return rendezvous->team->ranks[i];
        }
    }
    return -1;
}

static void say_direct(const struct hvd_gpu_run *run, const char *obstacle, int asker)
{
    int set = run->set->id;

    if (run->team->rank != 0) {
        return;
    }
    if (obstacle[0] != '\0') {
        hvd_log(HVD_LOG_INFO, "process set %d: pinned host memory between nodes: %s", set,
                obstacle);
    } else if (asker >= 0) {
        hvd_log(HVD_LOG_INFO,
                "process set %d: GPU memory between nodes: " HVD_ENV_GPU_DIRECT
                "=on on rank %d",
                set, asker);
    } else {
        hvd_log(HVD_LOG_INFO,
                "process set %d: GPU memory or pinned host memory between nodes, "
                "whichever is faster: the UCX of all ranks supports CUDA",
                set);
    }
}

static bool enter_device(void *context)
{
    static atomic_flag is_told = ATOMIC_FLAG_INIT;
    const struct hvd_gpu_pool *pool = context;
    bool has_entered = pool->module->enter(pool->device);

    if (!has_entered && !atomic_flag_test_and_set(&is_told)) {
        hvd_log(HVD_LOG_WARN,
                "cannot make the GPU's CUDA context current for UCX: transfers "
                "of GPU memory may fail");
    }
    return has_entered;
}

static void leave_device(void *context)
{
    const struct hvd_gpu_pool *pool = context;

    pool->module->leave(pool->device);
}

static void add_candidate(struct hvd_gpu_set *set, enum hvd_gpu_allreduce algorithm)
{
    set->candidates[set->candidate_count++] = algorithm;
}

/* Determines the algorithms to choose from: flat first, then the hierarchical ones. */
static int find_candidates(struct hvd_gpu_run *run,
                           const struct hvd_gpu_rendezvous *rendezvous,
                           enum hvd_gpu_allreduce chosen, struct hvd_error *err)
{
    const struct hvd_net_scope scope = {
        .enter = enter_device, .leave = leave_device, .context = run->gpu->pool};
    int size = rendezvous->team->layout->size, asker = find_direct_asker(rendezvous),
        at = 0;
    char obstacle[256] = "";

    while (at < size &&
           !find_direct_obstacle(rendezvous, at, obstacle, sizeof(obstacle))) {
        at++;
    }
    if (at < size && asker >= 0) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                        HVD_ENV_GPU_DIRECT
                        "=on on rank %d, but GPU memory cannot be sent between nodes: %s",
                        asker, obstacle);
    }
    if (chosen == HVD_GPU_ALLREDUCE_AUTO) {
        add_candidate(run->set, HVD_GPU_ALLREDUCE_FLAT);
    }
    if (asker < 0) {
        add_candidate(run->set, HVD_GPU_ALLREDUCE_HIERARCHICAL);
    }
    if (at == size) {
        add_candidate(run->set, HVD_GPU_ALLREDUCE_DIRECT);
        hvd_net_use_scope(run->team->net, &scope);
    }
    run->set->allreduce =
        run->set->candidate_count > 1 ? HVD_GPU_ALLREDUCE_AUTO : run->set->candidates[0];
    say_direct(run, obstacle, asker);
    return 0;
}

void hvd_gpu_log_unused_direct(const struct hvd_gpu_run *run,
                               const struct hvd_gpu_rendezvous *rendezvous,
                               const char *reason)
{
    int asker = find_direct_asker(rendezvous);

    if (asker >= 0 && run->team->rank == 0 && run->team->layout->nodes > 1) {
        hvd_log(HVD_LOG_INFO,
                "process set %d: " HVD_ENV_GPU_DIRECT
                "=on on rank %d has no effect, the algorithm is not hierarchical: %s",
                run->set->id, asker, reason);
    }
}

int hvd_gpu_algorithm_agree(struct hvd_gpu_run *run,
                            const struct hvd_gpu_rendezvous *rendezvous,
                            struct hvd_error *err)
{
    const struct hvd_team *team = run->team;
    struct hvd_gpu_set *set = run->set;
    struct hvd_gpu_pool *pool = run->gpu->pool;
    int leader = hvd_layout_rank(team->layout, team->node, 0);
    enum hvd_gpu_allreduce chosen = HVD_GPU_ALLREDUCE_FLAT;
    char reason[128] = "";
    int status;

    if (team->layout->nodes > 1) {
        chosen = choose_allreduce(rendezvous, reason, sizeof(reason));
    }
    say_allreduce(run, chosen, reason);
    set->allreduce = chosen;
    if (chosen == HVD_GPU_ALLREDUCE_FLAT) {
        hvd_gpu_log_unused_direct(run, rendezvous, reason);
        return 0;
    }
    status = find_candidates(run, rendezvous, chosen, err);
    if (status != 0) {
        return status;
    }
    status = hvd_gpu_inter_node_create(team, rendezvous->boot, &set->inter_node, err);
    if (status != 0) {
        return status;
    }
    return pool->module->comm_create(pool->device, rendezvous->offers[leader].node_id,
                                     team->local_rank, team->local_size, &set->node_comm,
                                     err);
}

/* --- the trial --- */

enum {
    ROUNDS = 3, /* trials of each algorithm; the first one connects and is not measured */
};

static const char *const algorithm_names[] = {
    [HVD_GPU_ALLREDUCE_HIERARCHICAL] = "hierarchical",
    [HVD_GPU_ALLREDUCE_FLAT] = "flat",
    [HVD_GPU_ALLREDUCE_DIRECT] = "hierarchical with GPU memory between nodes",
};

static enum hvd_gpu_allreduce algorithm_of(const struct hvd_gpu_run *run)
{
    const struct hvd_gpu_set *set = run->set;

    return run->trial.algorithm != HVD_GPU_ALLREDUCE_AUTO ? run->trial.algorithm
           : set->allreduce != HVD_GPU_ALLREDUCE_AUTO     ? set->allreduce
                                                          : set->candidates[0];
}

bool hvd_gpu_is_hierarchical(const struct hvd_gpu_run *run)
{
    return run->batch->header.kind == HVD_KIND_ALLREDUCE &&
           run->set->inter_node != NULL && algorithm_of(run) != HVD_GPU_ALLREDUCE_FLAT;
}

static struct hvd_gpu_reduction reduction_of(const struct hvd_gpu_run *run)
{
    struct hvd_gpu_reduction reduction;

    hvd_gpu_reduction_find(&run->batch->entries[0]->descriptor, run->team->layout->size,
                           run->set->nccl_version, run->set->all_have_kernels,
                           &reduction);
    return reduction;
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
        .reduce_step = hvd_gpu_schedule_reduce_step(&reduction, HVD_GPU_REDUCESCATTER),
        .descriptor = {.dtype = reduction.dtype,
                       .op = reduction.op,
                       .prescale = 1.0,
                       .postscale = 1.0},
        .before = reduction.before,
        .after = reduction.after,
        .divisor = reduction.divisor,
    };

    return hvd_gpu_pipeline_create(&config, &run->pipeline, err);
}

/* --- which algorithm is faster --- */

static int64_t bytes_of(const struct hvd_gpu_run *run)
{
    return hvd_gpu_batch_bytes(run->batch, reduction_of(run).dtype);
}

/* Whether the batch should be a trial. The result is the same on all ranks, because they
 * count the same trials. Chunks must overlap, so a batch smaller than one chunk is not a
 * trial. */
bool hvd_gpu_trial_wanted(const struct hvd_gpu_run *run)
{
    return run->set->allreduce == HVD_GPU_ALLREDUCE_AUTO &&
           run->batch->header.kind == HVD_KIND_ALLREDUCE &&
           bytes_of(run) >=
               hvd_gpu_pipeline_shard_bytes(run->team) * run->team->local_size;
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
    hvd_gpu_job_end(run->gpu, &run->job);
    return hvd_gpu_host_gather_begin(&run->gather, run->team,
                                     run->batch->entries[0]->descriptor.name,
                                     &run->set->trial, sizeof(run->set->trial), err);
}

/* Returns the speed of an algorithm on the slowest rank, in bytes per nanosecond. */
static double speed_of(const struct hvd_gpu_trial *told, int size,
                       enum hvd_gpu_allreduce algorithm)
{
    int64_t most = 1;

    for (int i = 0; i < size; i++) {
        most = told[i].ns[algorithm] > most ? told[i].ns[algorithm] : most;
    }
    return (double)told[0].bytes[algorithm] / (double)most;
}

/* Returns the fastest candidate, or the first of equally fast ones. Writes a text such as
 * "0.42 GB/s flat, 0.31 GB/s hierarchical". */
static enum hvd_gpu_allreduce compare_trials(const struct hvd_gpu_set *set,
                                             const struct hvd_gpu_trial *told, int size,
                                             char *text, size_t size_left)
{
    enum hvd_gpu_allreduce best = set->candidates[0];
    size_t used = 0;

    for (int i = 0; i < set->candidate_count; i++) {
        double speed = speed_of(told, size, set->candidates[i]);

        best = speed > speed_of(told, size, best) ? set->candidates[i] : best;
        used += (size_t)snprintf(text + used, size_left - used, "%s%.2f GB/s %s",
                                 i > 0 ? ", " : "", speed,
                                 algorithm_names[set->candidates[i]]);
        used = used < size_left ? used : size_left - 1;
    }
    return best;
}

/* Decides from the measurements of all ranks, so that all ranks choose the same. */
static void decide_algorithm(struct hvd_gpu_run *run, const struct hvd_gpu_trial *told)
{
    struct hvd_gpu_set *set = run->set;
    char text[256];

    set->allreduce =
        compare_trials(set, told, run->team->layout->size, text, sizeof(text));
    hvd_log(run->team->rank == 0 ? HVD_LOG_INFO : HVD_LOG_DEBUG,
            "process set %d: allreduce by NCCL: %s from now on: measured %s", set->id,
            algorithm_names[set->allreduce], text);
    if (set->allreduce == HVD_GPU_ALLREDUCE_FLAT) {
        hvd_gpu_inter_node_destroy(set->inter_node);
        set->inter_node = NULL;
    }
}

/* Returns the algorithm of the next trial. The last round is in reverse order, so that a
 * drift from batch to batch affects all candidates alike. */
static enum hvd_gpu_allreduce next_algorithm(const struct hvd_gpu_set *set)
{
    int64_t count = set->candidate_count, round = set->trial.count / count;
    int64_t at = set->trial.count % count;

    return set->candidates[round == ROUNDS - 1 ? count - 1 - at : at];
}

void hvd_gpu_trial_begin(struct hvd_gpu_run *run)
{
    struct hvd_gpu_set *set = run->set;

    if (set->trial.count == (int64_t)ROUNDS * set->candidate_count) {
        decide_algorithm(run, hvd_gpu_host_gather_result(&run->gather));
    } else {
        run->trial.algorithm = next_algorithm(set);
        set->trial.count++;
        run->trial.began_ns = hvd_clock_ns();
    }
    hvd_gpu_host_gather_end(&run->gather);
}

bool hvd_gpu_trial_runs(const struct hvd_gpu_run *run)
{
    return run->trial.algorithm != HVD_GPU_ALLREDUCE_AUTO;
}

void hvd_gpu_trial_restart(struct hvd_gpu_run *run)
{
    run->trial.began_ns = hvd_clock_ns();
}

void hvd_gpu_trial_end(struct hvd_gpu_run *run)
{
    struct hvd_gpu_trial *trial = &run->set->trial;

    if (trial->count > run->set->candidate_count) {
        trial->ns[run->trial.algorithm] += hvd_clock_ns() - run->trial.began_ns;
        trial->bytes[run->trial.algorithm] += bytes_of(run);
    }
}
