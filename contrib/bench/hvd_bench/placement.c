/* SPDX-License-Identifier: Apache-2.0 */
/* Ping-pong of one number between two local ranks, each on a line that it alone writes. */
#include "contrib/bench/hvd_bench/placement.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "contrib/bench/hvd_bench/node_memory.h"

enum {
    LINE = 128, /* two lines are fetched together */
    TRIPS = 1000,
    BATCHES = 5,
    POLLS = 2000 /* before it gives the core to somebody else */
};

#define STOP UINT64_MAX

static const double most_seconds = 0.02; /* a batch that takes longer was disturbed */

struct bench_placement {
    const struct bench_job *job;
    char *memory;
    uint64_t trips; /* since the beginning */
};

static _Atomic uint64_t *line(const struct bench_placement *placement, int local_rank)
{
    return (_Atomic uint64_t *)(placement->memory + local_rank * LINE);
}

static uint64_t wait_for_other(_Atomic uint64_t *from, uint64_t old)
{
    uint64_t value;

    for (int polls = 0; (value = atomic_load_explicit(from, memory_order_acquire)) == old;
         polls++) {
        if (polls >= POLLS) {
            sched_yield();
            polls = 0;
        }
    }
    return value;
}

static double ping(struct bench_placement *placement)
{
    double best = 0;
    _Atomic uint64_t *mine = line(placement, 0), *other = line(placement, 1);

    for (int batch = 0; batch < BATCHES; batch++) {
        double start = bench_now(), each;

        for (int trip = 0; trip < TRIPS; trip++) {
            uint64_t next = placement->trips + 1;

            atomic_store_explicit(mine, next, memory_order_release);
            wait_for_other(other, placement->trips);
            placement->trips = next;
        }
        each = (bench_now() - start) / TRIPS / 2;
        best = batch == 0 || each < best ? each : best;
        if (each * TRIPS * 2 > most_seconds) {
            break;
        }
    }
    atomic_store_explicit(mine, STOP, memory_order_release);
    wait_for_other(other, placement->trips);
    atomic_store_explicit(mine, placement->trips, memory_order_release);
    wait_for_other(other, STOP);
    return best * 1e9;
}

/* Answers until it is told to stop; both leave with both lines at the same number. */
static void pong(struct bench_placement *placement)
{
    _Atomic uint64_t *mine = line(placement, 1), *other = line(placement, 0);
    uint64_t seen = placement->trips, next;

    while ((next = wait_for_other(other, seen)) != STOP) {
        atomic_store_explicit(mine, next, memory_order_release);
        seen = next;
    }
    atomic_store_explicit(mine, STOP, memory_order_release);
    wait_for_other(other, STOP);
    atomic_store_explicit(mine, seen, memory_order_release);
    placement->trips = seen;
}

int bench_placement_create(const struct bench_job *job, struct bench_placement **out,
                           struct hvd_error *err)
{
    struct bench_placement *placement = calloc(1, sizeof(*placement));
    void *memory = NULL;
    int status = placement != NULL ? 0 : hvd_fail(err, HVD_ERR_NOMEM, "out of memory");

    status = bench_job_agree(status, err);
    if (status == 0) {
        status = bench_node_memory_open(job, 2 * LINE, &memory, err);
    }
    if (status < 0) {
        free(placement);
        return status;
    }
    placement->job = job;
    placement->memory = memory;
    *out = placement;
    return 0;
}

void bench_placement_destroy(struct bench_placement *placement)
{
    if (placement != NULL) {
        bench_node_memory_close(placement->memory, 2 * LINE);
        free(placement);
    }
}

int bench_placement_probe(struct bench_placement *placement, double *ns,
                          struct hvd_error *err)
{
    const struct bench_job *job = placement->job;
    double found = 0;
    int status = bench_job_barrier(err);

    if (status == 0 && job->local_size >= 2 && sysconf(_SC_NPROCESSORS_ONLN) >= 2) {
        if (job->local_rank == 0) {
            found = ping(placement);
        } else if (job->local_rank == 1) {
            pong(placement);
        }
    }
    if (status == 0) {
        status = bench_job_most(&found, 1, err);
    }
    if (status == 0) {
        *ns = found;
    }
    return status;
}
