/* SPDX-License-Identifier: Apache-2.0 */
/* Communication between ranks outside of timed parts, by collectives of hvd. */
#include "contrib/bench/hvd_bench/job.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/hvd.h"
#include "gpu_binding/base/clock.h"

/* The status of a rank, and the reason. */
struct verdict {
    int status;
    char text[400];
};

double bench_now(void)
{
    return (double)hvd_clock_ns() * 1e-9;
}

int bench_job_init(struct bench_job *job, struct hvd_error *err)
{
    const char **hosts;
    int status = hvd_init(err);

    *job = (struct bench_job){.mpi = job->mpi};
    if (status < 0) {
        return status;
    }
    job->rank = hvd_rank();
    job->size = hvd_size();
    hosts = malloc((size_t)job->size * sizeof(hosts[0]));
    if (hosts == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "out of memory");
    }
    for (int rank = 0; rank < job->size; rank++) {
        hosts[rank] = hvd_host(rank);
    }
    status = hvd_layout_init(&job->layout, hosts, job->size, err);
    free(hosts);
    if (status == 0) {
        job->local_rank = job->layout.local_rank[job->rank];
        job->local_size =
            hvd_layout_local_size(&job->layout, job->layout.node[job->rank]);
    }
    return status;
}

void bench_job_finish(struct bench_job *job)
{
    hvd_layout_finish(&job->layout);
    hvd_shutdown();
}

static int wait_and_free(int status, struct hvd_request *request, struct hvd_error *err)
{
    if (status == 0) {
        status = hvd_wait(request, err);
        hvd_request_free(request);
    }
    return status;
}

int bench_job_barrier(struct hvd_error *err)
{
    struct hvd_request *request = NULL;
    int status = hvd_barrier_start(HVD_SET_GLOBAL, &request, err);

    return wait_and_free(status, request, err);
}

int bench_job_most(double *values, int count, struct hvd_error *err)
{
    const int64_t shape = count;
    const struct hvd_tensor tensor = {.name = "hvd-bench most",
                                      .input = values,
                                      .output = values,
                                      .shape = &shape,
                                      .ndim = 1,
                                      .dtype = HVD_FLOAT64,
                                      .device = HVD_DEVICE_CPU};
    struct hvd_request *request = NULL;
    int status =
        hvd_allreduce_start(&tensor, 1, HVD_MAX, 1, 1, HVD_SET_GLOBAL, &request, err);

    return wait_and_free(status, request, err);
}

int bench_job_gather(const void *mine, size_t bytes, void *all, struct hvd_error *err)
{
    const int64_t shape = (int64_t)bytes;
    const struct hvd_tensor tensor = {.name = "hvd-bench gather",
                                      .input = mine,
                                      .shape = &shape,
                                      .ndim = 1,
                                      .dtype = HVD_UINT8,
                                      .device = HVD_DEVICE_CPU};
    struct hvd_request *request = NULL;
    void *gathered = NULL;
    int64_t rows = 0;
    int status = hvd_allgather_start(&tensor, 1, HVD_SET_GLOBAL, &request, err);

    if (status < 0) {
        return status;
    }
    status = hvd_wait(request, err);
    if (status == 0) {
        hvd_request_take(request, 0, &gathered, &rows);
        memcpy(all, gathered, (size_t)rows);
        hvd_free(gathered);
    }
    hvd_request_free(request);
    return status;
}

/* Returns the lowest rank that knows why the ranks failed, or `size` if none failed. */
static int find_cause(const struct verdict *all, int size)
{
    int lost = size;

    for (int rank = 0; rank < size; rank++) {
        if (all[rank].status != 0 && all[rank].status != HVD_ERR_PEER) {
            return rank;
        }
        if (all[rank].status != 0 && lost == size) {
            lost = rank;
        }
    }
    return lost;
}

static int judge_verdicts(const struct verdict *all, int size, struct hvd_error *err)
{
    int bad = find_cause(all, size), same = 0;

    if (bad == size) {
        return 0;
    }
    for (int rank = 0; rank < size; rank++) {
        same += strcmp(all[rank].text, all[bad].text) == 0;
    }
    return same == size
               ? hvd_fail(err, all[bad].status, "%s", all[bad].text)
               : hvd_fail(err, all[bad].status, "rank %d: %s", bad, all[bad].text);
}

int bench_job_agree(int mine, struct hvd_error *err)
{
    struct verdict verdict = {.status = mine}, *all;
    double worst = -mine;
    int size = hvd_size(), status;

    if (mine < 0) {
        memcpy(verdict.text, err->text, sizeof(verdict.text) - 1);
    }
    status = bench_job_most(&worst, 1, err);
    if (status < 0 || worst == 0) {
        return status;
    }
    all = calloc((size_t)(size > 0 ? size : 1), sizeof(all[0]));
    if (all == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "out of memory");
    }
    status = bench_job_gather(&verdict, sizeof(verdict), all, err);
    if (status == 0) {
        status = judge_verdicts(all, size, err);
    }
    free(all);
    return status;
}
