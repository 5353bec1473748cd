/* SPDX-License-Identifier: Apache-2.0 */
/* An allreduce over several nodes that adds up within the nodes first: the ranks of a
 * node by NCCL, and then each rank its part with the same local rank of the other nodes,
 * over the network. And whether that is faster than NCCL over all nodes at once. */
#include <stdio.h>

#include "collectives/gpu/gpu_cross.h"
#include "collectives/gpu/gpu_run_state.h"
#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/log.h"

enum {
    ROUNDS = 3, /* of each way; the first connects, and does not count */
};

static const char *const way_names[] = {
    [HVD_GPU_ALLREDUCE_HIERARCHICAL] = "within nodes first",
    [HVD_GPU_ALLREDUCE_FLAT] = "over all nodes at once",
    [HVD_GPU_ALLREDUCE_DIRECT] = "within nodes first and with GPU memory between them",
};

static enum hvd_gpu_allreduce way_of(const struct hvd_gpu_run *run)
{
    const struct hvd_gpu_peers *peers = run->peers;

    return run->tried != HVD_GPU_ALLREDUCE_AUTO         ? run->tried
           : peers->allreduce != HVD_GPU_ALLREDUCE_AUTO ? peers->allreduce
                                                        : peers->ways[0];
}

bool hvd_gpu_nodes_first(const struct hvd_gpu_run *run)
{
    return run->batch->header.kind == HVD_KIND_ALLREDUCE && run->peers->cross != NULL &&
           way_of(run) != HVD_GPU_ALLREDUCE_FLAT;
}

/* In what type, and with what factors, its numbers go. */
static struct hvd_gpu_way numbers_of(const struct hvd_gpu_run *run)
{
    struct hvd_gpu_way numbers;

    hvd_gpu_way_find(&run->batch->entries[0]->proposal, run->team->layout->size,
                     run->peers->nccl_version, run->peers->all_have_kernels, &numbers);
    return numbers;
}

/* What all ranks' elements are multiplied by is done by NCCL or by kernels, before
 * anything is added up or after all of it: so what goes between nodes is a plain sum. */
int hvd_gpu_nodes_pipe(struct hvd_gpu_run *run, struct hvd_error *err)
{
    const struct hvd_gpu_way numbers = numbers_of(run);
    const struct hvd_gpu_pipe_config config = {
        .gpu = run->gpu,
        .batch = run->batch,
        .team = hvd_gpu_cross_team(run->peers->cross),
        .comm = run->peers->node_comm,
        .is_direct = way_of(run) == HVD_GPU_ALLREDUCE_DIRECT,
        .parts = run->team->local_size,
        .part = run->team->local_rank,
        .trace = &run->trace,
        .reduction = hvd_gpu_plan_reduction(&numbers, HVD_GPU_REDUCESCATTER),
        .proposal = {.dtype = numbers.dtype,
                     .op = numbers.op,
                     .prescale = 1.0,
                     .postscale = 1.0},
        .before = numbers.before,
        .after = numbers.after,
        .divisor = numbers.divisor,
    };

    return hvd_gpu_pipe_create(&config, &run->pipe, err);
}

/* --- which way is faster --- */

static int64_t bytes_of(const struct hvd_gpu_run *run)
{
    return hvd_gpu_batch_bytes(run->batch, numbers_of(run).dtype);
}

/* All ranks know the same of a batch, and count the same trials. A batch of less than a
 * piece has nothing that overlaps: it goes the first way until larger ones have decided. */
bool hvd_gpu_trial_wanted(const struct hvd_gpu_run *run)
{
    return run->peers->allreduce == HVD_GPU_ALLREDUCE_AUTO &&
           run->batch->header.kind == HVD_KIND_ALLREDUCE &&
           bytes_of(run) >= hvd_gpu_pipe_part_bytes(run->team) * run->team->local_size;
}

int hvd_gpu_trial_ready(struct hvd_gpu_run *run, struct hvd_error *err)
{
    hvd_gpu_steps_follow(&run->job.steps, run->batch->entries,
                         (int)run->batch->header.count);
    return hvd_gpu_job_submit(run->gpu, &run->job, HVD_GPU_COLLECT, NULL, err);
}

/* Each tells the others what it has measured so far, and so that its input is there. */
int hvd_gpu_trial_line_up(struct hvd_gpu_run *run, struct hvd_error *err)
{
    hvd_gpu_job_end(run->gpu, &run->job);
    return hvd_gpu_run_gather(run, &run->peers->trial, sizeof(run->peers->trial), err);
}

/* Bytes in a nanosecond on the slowest rank. */
static double speed_of(const struct hvd_gpu_trial *told, int size,
                       enum hvd_gpu_allreduce way)
{
    int64_t most = 1;

    for (int i = 0; i < size; i++) {
        most = told[i].ns[way] > most ? told[i].ns[way] : most;
    }
    return (double)told[0].bytes[way] / (double)most;
}

/* "0.42 GB/s over all nodes at once, 0.31 GB/s within nodes first"; returns the fastest, of
 * equals the first. */
static enum hvd_gpu_allreduce compare(const struct hvd_gpu_peers *peers,
                                      const struct hvd_gpu_trial *told, int size,
                                      char *text, size_t room)
{
    enum hvd_gpu_allreduce best = peers->ways[0];
    size_t used = 0;

    for (int i = 0; i < peers->way_count; i++) {
        double speed = speed_of(told, size, peers->ways[i]);

        best = speed > speed_of(told, size, best) ? peers->ways[i] : best;
        used += (size_t)snprintf(text + used, room - used, "%s%.2f GB/s %s",
                                 i > 0 ? ", " : "", speed, way_names[peers->ways[i]]);
        used = used < room ? used : room - 1;
    }
    return best;
}

/* From the same numbers on all ranks. */
static void decide(struct hvd_gpu_run *run, const struct hvd_gpu_trial *told)
{
    struct hvd_gpu_peers *peers = run->peers;
    char text[256];

    peers->allreduce = compare(peers, told, run->team->layout->size, text, sizeof(text));
    hvd_log(run->team->rank == 0 ? HVD_LOG_INFO : HVD_LOG_DEBUG,
            "process set %d: allreduce by NCCL %s from now on: measured %s", peers->set,
            way_names[peers->allreduce], text);
    if (peers->allreduce == HVD_GPU_ALLREDUCE_FLAT) {
        hvd_gpu_cross_destroy(peers->cross);
        peers->cross = NULL;
    }
}

/* Forth, forth and back: so all ways have the same part of what changes from batch to
 * batch. */
static enum hvd_gpu_allreduce next_way(const struct hvd_gpu_peers *peers)
{
    int64_t count = peers->way_count, round = peers->trial.count / count;
    int64_t at = peers->trial.count % count;

    return peers->ways[round == ROUNDS - 1 ? count - 1 - at : at];
}

void hvd_gpu_trial_begin(struct hvd_gpu_run *run)
{
    struct hvd_gpu_peers *peers = run->peers;

    if (peers->trial.count == ROUNDS * peers->way_count) {
        decide(run, run->gathered.result);
    } else {
        run->tried = next_way(peers);
        peers->trial.count++;
        run->tried_ns = hvd_clock_ns();
    }
    hvd_gpu_run_end_gather(run);
}

void hvd_gpu_trial_end(struct hvd_gpu_run *run)
{
    struct hvd_gpu_trial *trial = &run->peers->trial;

    if (trial->count > run->peers->way_count) {
        trial->ns[run->tried] += hvd_clock_ns() - run->tried_ns;
        trial->bytes[run->tried] += bytes_of(run);
    }
}
