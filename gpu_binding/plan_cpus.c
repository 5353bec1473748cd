/* SPDX-License-Identifier: Apache-2.0 */
/* Deals the cpus of a socket out to its ranks:
 *
 *   first   the cores of each memory node, in contiguous parts, go to the ranks whose
 *           GPU is on that node
 *   then    the cores that are left, in logical order, fill up the ranks in rank order
 *
 * Thus every rank starts near its memory, and no core of the socket stays idle. The modes
 * differ if a socket has fewer cores than ranks: in mode cores, ranks get hardware
 * threads; in mode socket, they share the socket. */
#include <stdlib.h>

#include "gpu_binding/base/error.h"
#include "gpu_binding/plan_steps.h"

/* A core that has usable cpus: topology->cpus[first] to topology->cpus[end - 1]. */
struct core {
    int first;
    int end;
    int numa;
    bool is_dealt;
};

struct share {
    struct hvd_plan_row *row;
    int numa; /* index of the GPU's memory node */
    int quota; /* how many more cores the rank gets */
};

/* The state while the cores of one socket are dealt out. */
struct deal {
    const struct hvd_plan_work *work;
    struct core *cores;
    int core_count;
    struct share *shares;
    int share_count;
};

static bool is_usable(const struct hvd_plan_work *work, int place)
{
    return hvd_cpuset_has(&work->usable, work->topology->cpus[place].number);
}

static void collect_cores(struct deal *deal, int socket)
{
    const struct hvd_topology *topology = deal->work->topology;
    int core = HVD_NONE;

    deal->core_count = 0;
    for (int i = 0; i < topology->cpu_count; i++) {
        const struct hvd_cpu *cpu = &topology->cpus[i];

        if (cpu->socket != socket || !is_usable(deal->work, i)) {
            continue;
        }
        if (cpu->core != core) {
            core = cpu->core;
            deal->cores[deal->core_count++] = (struct core){i, i, cpu->numa, false};
        }
        deal->cores[deal->core_count - 1].end = i + 1;
    }
}

static void collect_shares(struct deal *deal, int socket)
{
    struct hvd_plan *plan = deal->work->plan;

    deal->share_count = 0;
    for (int i = 0; i < plan->row_count; i++) {
        struct hvd_plan_row *row = &plan->rows[i];

        if (row->socket == socket) {
            int gpu = row->gpu.gpu;
            int numa = gpu == HVD_NONE ? HVD_NONE : deal->work->topology->gpus[gpu].numa;

            deal->shares[deal->share_count++] = (struct share){row, numa, 0};
        }
    }
}

/* Returns where part `index` begins if `count` things are divided into `parts` nearly
 * equal parts. */
static int part_start(int index, int parts, int count)
{
    return (int)((long)index * count / parts);
}

/* Sets how many cores each rank gets. Only mode cores has a limit. */
static void set_quotas(struct deal *deal)
{
    bool is_limited = deal->work->plan->mode == HVD_BIND_CORES;
    int limit = is_limited ? deal->work->options.cpus_per_rank : 0;

    for (int i = 0; i < deal->share_count; i++) {
        int quota = part_start(i + 1, deal->share_count, deal->core_count) -
                    part_start(i, deal->share_count, deal->core_count);

        deal->shares[i].quota = limit > 0 && quota > limit ? limit : quota;
    }
}

static void give_core(struct deal *deal, struct share *share, struct core *core)
{
    for (int i = core->first; i < core->end; i++) {
        if (is_usable(deal->work, i)) {
            hvd_cpuset_add(&share->row->cpus, deal->work->topology->cpus[i].number);
        }
    }
    core->is_dealt = true;
    share->quota--;
}

static int count_numa_cores(const struct deal *deal, int numa)
{
    int count = 0;

    for (int i = 0; i < deal->core_count; i++) {
        count += deal->cores[i].numa == numa;
    }
    return count;
}

static int count_numa_shares(const struct deal *deal, int numa)
{
    int count = 0;

    for (int i = 0; i < deal->share_count; i++) {
        count += deal->shares[i].numa == numa;
    }
    return count;
}

/* Gives a rank the cores number `from` to `to` - 1 of its memory node, up to its
 * quota. */
static void give_part(struct deal *deal, struct share *share, int from, int to)
{
    int number = 0;

    for (int i = 0; i < deal->core_count; i++) {
        struct core *core = &deal->cores[i];

        if (core->numa != share->numa) {
            continue;
        }
        if (number >= from && number < to && share->quota > 0) {
            give_core(deal, share, core);
        }
        number++;
    }
}

static void deal_near_cores(struct deal *deal)
{
    for (int numa = 0; numa < deal->work->topology->numa_count; numa++) {
        int cores = count_numa_cores(deal, numa);
        int shares = count_numa_shares(deal, numa);
        int index = 0;

        for (int i = 0; i < deal->share_count; i++) {
            if (deal->shares[i].numa == numa) {
                give_part(deal, &deal->shares[i], part_start(index, shares, cores),
                          part_start(index + 1, shares, cores));
                index++;
            }
        }
    }
}

static void deal_left_cores(struct deal *deal)
{
    int next = 0;

    for (int i = 0; i < deal->share_count; i++) {
        struct share *share = &deal->shares[i];

        for (; share->quota > 0 && next < deal->core_count; next++) {
            if (!deal->cores[next].is_dealt) {
                give_core(deal, share, &deal->cores[next]);
            }
        }
    }
}

/* Deals out hardware threads, because there are fewer cores than ranks. If there are even
 * fewer threads than ranks, ranks share threads. Here cpus_per_rank limits the threads,
 * since each may be on another core. */
static void deal_threads(struct deal *deal)
{
    const struct hvd_topology *topology = deal->work->topology;
    int socket = deal->shares[0].row->socket;
    int total = hvd_topology_count_cpus(topology, &deal->work->usable, socket);
    int limit = deal->work->options.cpus_per_rank;
    int number = 0;

    for (int i = 0; i < topology->cpu_count; i++) {
        if (topology->cpus[i].socket != socket || !is_usable(deal->work, i)) {
            continue;
        }
        for (int j = 0; j < deal->share_count; j++) {
            int from = part_start(j, deal->share_count, total);
            int to = part_start(j + 1, deal->share_count, total);

            to = limit > 0 && to > from + limit ? from + limit : to;
            if (number == from || (number > from && number < to)) {
                hvd_cpuset_add(&deal->shares[j].row->cpus, topology->cpus[i].number);
            }
        }
        number++;
    }
}

static void share_socket(struct deal *deal, int socket)
{
    const struct hvd_topology *topology = deal->work->topology;

    for (int i = 0; i < topology->cpu_count; i++) {
        if (topology->cpus[i].socket != socket || !is_usable(deal->work, i)) {
            continue;
        }
        for (int j = 0; j < deal->share_count; j++) {
            hvd_cpuset_add(&deal->shares[j].row->cpus, topology->cpus[i].number);
        }
    }
}

static void deal_socket(struct deal *deal, int socket)
{
    collect_cores(deal, socket);
    collect_shares(deal, socket);
    if (deal->share_count == 0) {
        return;
    }
    if (deal->core_count < deal->share_count) {
        if (deal->work->plan->mode == HVD_BIND_SOCKET) {
            share_socket(deal, socket);
        } else {
            deal_threads(deal);
        }
        return;
    }
    set_quotas(deal);
    deal_near_cores(deal);
    deal_left_cores(deal);
}

static int deal_cores(struct hvd_plan_work *work, struct hvd_error *err)
{
    struct deal deal = {.work = work};
    int status = 0;

    deal.cores = calloc((size_t)work->topology->cpu_count, sizeof(*deal.cores));
    deal.shares = calloc((size_t)work->plan->row_count, sizeof(*deal.shares));
    if (deal.cores == NULL || deal.shares == NULL) {
        status = hvd_fail(err, HVD_ERR_NOMEM, "out of memory for the cores of %d ranks",
                          work->plan->row_count);
    } else {
        for (int i = 0; i < work->topology->socket_count; i++) {
            deal_socket(&deal, i);
        }
    }
    free(deal.cores);
    free(deal.shares);
    return status;
}

int hvd_plan_deal_cpus(struct hvd_plan_work *work, struct hvd_error *err)
{
    struct hvd_plan *plan = work->plan;
    int status = 0;

    if (plan->mode != HVD_BIND_NONE) {
        status = deal_cores(work, err);
    }
    for (int i = 0; i < plan->row_count; i++) {
        struct hvd_plan_row *row = &plan->rows[i];

        if (plan->mode == HVD_BIND_NONE) {
            row->cpus = plan->allowed;
        }
        row->core_count = hvd_topology_count_cores(work->topology, &row->cpus, HVD_NONE);
    }
    return status;
}
