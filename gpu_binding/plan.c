/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the plan: first each rank's GPU, socket and memory node, then cpus and
 * NICs. */
#include "gpu_binding/plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/error.h"
#include "gpu_binding/cpulist.h"
#include "gpu_binding/plan_steps.h"

/* The word of each mode, and another spelling that the user may type. */
static const struct {
    const char *name;
    const char *also; /* NULL: none */
} mode_words[] = {
    [HVD_BIND_AUTO] = {"auto", NULL},
    [HVD_BIND_NONE] = {"none", NULL},
    [HVD_BIND_SOCKET] = {"socket", "sockets"},
    [HVD_BIND_CORES] = {"cores", "core"},
};

const char *hvd_bind_mode_name(enum hvd_bind_mode mode)
{
    return mode_words[mode].name;
}

int hvd_bind_mode_parse(const char *word, enum hvd_bind_mode *mode)
{
    for (unsigned i = 0; i < sizeof(mode_words) / sizeof(mode_words[0]); i++) {
        const char *also = mode_words[i].also;

        if (strcmp(word, mode_words[i].name) == 0 ||
            (also != NULL && strcmp(word, also) == 0)) {
            *mode = (enum hvd_bind_mode)i;
            return 0;
        }
    }
    return HVD_ERR_ARG;
}

/* Returns the first `limit` cpus of each core (0: all) that are in cpus. */
static struct hvd_cpuset limit_threads(const struct hvd_topology *topology,
                                       const struct hvd_cpuset *cpus, int limit)
{
    struct hvd_cpuset kept = {{0}};
    int core = HVD_NONE;
    int taken = 0;

    for (int i = 0; i < topology->cpu_count; i++) {
        const struct hvd_cpu *cpu = &topology->cpus[i];

        if (cpu->core != core) {
            core = cpu->core;
            taken = 0;
        }
        if (hvd_cpuset_has(cpus, cpu->number) && (limit == 0 || taken < limit)) {
            hvd_cpuset_add(&kept, cpu->number);
            taken++;
        }
    }
    return kept;
}

/* Returns the nearest socket with a usable cpu, which is the given socket if it has
 * one. */
static int nearest_usable(const struct hvd_plan_work *work, int socket)
{
    const struct hvd_topology *topology = work->topology;
    const int *distance =
        &topology->socket_distance[(ptrdiff_t)socket * topology->socket_count];
    int best = HVD_NONE;

    for (int i = 0; i < topology->socket_count; i++) {
        if (hvd_topology_count_cpus(topology, &work->usable, i) == 0) {
            continue;
        }
        if (i == socket) {
            return socket;
        }
        if (best == HVD_NONE || distance[i] < distance[best]) {
            best = i;
        }
    }
    return best;
}

/* Chooses the socket of a rank without a known GPU: rank i of R takes socket floor(i *
 * sockets / R), counted among the sockets with usable cpus. */
static int spread_socket(const struct hvd_plan_work *work, int rank)
{
    int usable = 0;
    int socket = HVD_NONE;

    for (int i = 0; i < work->topology->socket_count; i++) {
        usable += hvd_topology_count_cpus(work->topology, &work->usable, i) > 0;
    }
    int wanted = (int)((long)rank * usable / work->plan->row_count);
    for (int i = 0; wanted >= 0; i++) {
        socket = i;
        wanted -= hvd_topology_count_cpus(work->topology, &work->usable, i) > 0;
    }
    return socket;
}

static void take_gpu(const struct hvd_plan_work *work, struct hvd_plan_row *row)
{
    const struct hvd_topology *topology = work->topology;
    const struct hvd_gpu_list *gpus = &work->plan->gpus;

    row->gpu_index = HVD_NONE;
    row->gpu = (struct hvd_gpu_item){HVD_NONE, HVD_NONE};
    row->gpu_socket = HVD_NONE;
    row->gpu_numa = HVD_NONE;
    if (gpus->count == 0) {
        return;
    }
    row->gpu_index = row->local_rank % gpus->count;
    row->gpu = gpus->items[row->gpu_index];
    if (row->gpu.gpu == HVD_NONE) {
        return;
    }
    const struct hvd_gpu *gpu = &topology->gpus[row->gpu.gpu];
    row->gpu_socket = gpu->socket;
    if (gpu->numa != HVD_NONE) {
        row->gpu_numa = topology->numas[gpu->numa].number;
    }
}

static bool is_numa_allowed(const struct hvd_topology *topology, int number)
{
    for (int i = 0; i < topology->numa_count; i++) {
        if (topology->numas[i].number == number) {
            return topology->numas[i].is_allowed;
        }
    }
    return false;
}

/* Sets the row's socket and memory node: those of its GPU, if the step may use them. */
static void find_home(const struct hvd_plan_work *work, struct hvd_plan_row *row)
{
    row->socket = HVD_NONE;
    row->memory_numa = HVD_NONE;
    if (work->plan->mode == HVD_BIND_NONE) {
        return;
    }
    if (row->gpu_socket == HVD_NONE) {
        row->socket = spread_socket(work, row->local_rank);
        return;
    }
    row->socket = nearest_usable(work, row->gpu_socket);
    row->is_far = row->socket != row->gpu_socket;
    if (!row->is_far && is_numa_allowed(work->topology, row->gpu_numa)) {
        row->memory_numa = row->gpu_numa;
    }
}

static int fill_rows(struct hvd_plan_work *work, struct hvd_error *err)
{
    struct hvd_plan *plan = work->plan;

    for (int i = 0; i < plan->row_count; i++) {
        plan->rows[i].local_rank = i;
        take_gpu(work, &plan->rows[i]);
        find_home(work, &plan->rows[i]);
    }
    int status = hvd_plan_deal_cpus(work, err);
    if (status == 0 && !work->options.nic_off) {
        status = hvd_plan_deal_nics(work, err);
    }
    return status == 0 ? hvd_plan_explain(work, err) : status;
}

static enum hvd_bind_mode settle_mode(const struct hvd_plan_options *options)
{
    if (options->mode != HVD_BIND_AUTO) {
        return options->mode;
    }
    return options->cpus_per_rank > 0 ? HVD_BIND_CORES : HVD_BIND_SOCKET;
}

static int check_input(const struct hvd_plan_input *input, struct hvd_error *err)
{
    if (input->rank_count < 1 || input->rank_count > HVD_PLAN_RANKS_MAX) {
        return hvd_fail(err, HVD_ERR_ARG, "%d ranks on a node: expected 1 to %d",
                        input->rank_count, HVD_PLAN_RANKS_MAX);
    }
    if (input->options.cpus_per_rank < 0 || input->options.threads_per_core < 0) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "cpus per rank %d, threads per core %d: expected 0 (no limit) or "
                        "more",
                        input->options.cpus_per_rank, input->options.threads_per_core);
    }
    return 0;
}

static int cut_allowed(const struct hvd_plan_input *input, struct hvd_plan *plan,
                       struct hvd_error *err)
{
    char text[128];

    plan->allowed = input->topology->allowed;
    if (input->allowed != NULL) {
        plan->allowed = limit_threads(input->topology, input->allowed, 0);
    }
    if (!hvd_cpuset_is_empty(&plan->allowed)) {
        return 0;
    }
    if (input->allowed == NULL) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "the topology has no cpu that this process may use");
    }
    hvd_cpulist_format(input->allowed, text, sizeof(text));
    return hvd_fail(err, HVD_ERR_ARG, "none of the allowed cpus %s is on this node",
                    text);
}

int hvd_plan_make(const struct hvd_plan_input *input, struct hvd_plan *plan,
                  struct hvd_error *err)
{
    struct hvd_plan made = {.mode = settle_mode(&input->options)};
    struct hvd_plan_work work = {input->topology, input->options, {{0}}, &made};
    int status = check_input(input, err);

    if (status == 0) {
        status = cut_allowed(input, &made, err);
    }
    if (status < 0) {
        return status;
    }
    work.usable =
        limit_threads(input->topology, &made.allowed, input->options.threads_per_core);
    if (input->gpus != NULL) {
        made.gpus = *input->gpus;
    } else {
        hvd_gpu_list_all(input->topology, &made.gpus);
    }
    made.rows = calloc((size_t)input->rank_count, sizeof(*made.rows));
    if (made.rows == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "out of memory for %d ranks",
                        input->rank_count);
    }
    made.row_count = input->rank_count;
    status = fill_rows(&work, err);
    if (status < 0) {
        hvd_plan_finish(&made);
        return status;
    }
    *plan = made;
    return 0;
}

void hvd_plan_finish(struct hvd_plan *plan)
{
    if (plan == NULL) {
        return;
    }
    for (int i = 0; i < plan->note_count; i++) {
        free(plan->notes[i]);
    }
    free(plan->notes);
    free(plan->rows);
    *plan = (struct hvd_plan){0};
}

const struct hvd_plan_row *hvd_plan_row_of(const struct hvd_plan *plan, int local_rank)
{
    for (int i = 0; i < plan->row_count; i++) {
        if (plan->rows[i].local_rank == local_rank) {
            return &plan->rows[i];
        }
    }
    return NULL;
}

int hvd_plan_thread_count(const struct hvd_plan *plan, int local_rank)
{
    const struct hvd_plan_row *row = hvd_plan_row_of(plan, local_rank);
    int sharing = 0;

    if (row == NULL) {
        return 1;
    }
    for (int i = 0; i < plan->row_count; i++) {
        sharing += hvd_cpuset_is_equal(&plan->rows[i].cpus, &row->cpus);
    }
    assert(sharing > 0); /* it counts at least the row itself */
    return row->core_count > sharing ? row->core_count / sharing : 1;
}

/* Returns the largest number of threads that a core has in cpus. */
static int widest_core(const struct hvd_topology *topology, const struct hvd_cpuset *cpus)
{
    int all = hvd_cpuset_count(cpus);
    int limit = 1;

    for (;; limit++) {
        struct hvd_cpuset kept = limit_threads(topology, cpus, limit);

        if (hvd_cpuset_count(&kept) == all) {
            return limit;
        }
    }
}

void hvd_plan_follow_mask(const struct hvd_topology *topology,
                          const struct hvd_cpuset *allowed, const struct hvd_cpuset *mask,
                          struct hvd_plan_options *options)
{
    struct hvd_cpuset all = limit_threads(topology, allowed, 0);
    struct hvd_cpuset own = all;

    hvd_cpuset_keep(&own, mask);
    if (options->mode != HVD_BIND_AUTO) {
        return;
    }
    if (hvd_cpuset_is_empty(&own) || hvd_cpuset_is_equal(&own, &all)) {
        options->mode = options->cpus_per_rank > 0 ? HVD_BIND_CORES : HVD_BIND_SOCKET;
        return;
    }
    options->mode = HVD_BIND_CORES;
    if (options->cpus_per_rank == 0) {
        options->cpus_per_rank = hvd_topology_count_cores(topology, &own, HVD_NONE);
    }
    if (options->threads_per_core == 0) {
        options->threads_per_core = widest_core(topology, &own);
    }
}
