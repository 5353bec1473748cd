/* SPDX-License-Identifier: Apache-2.0 */
/* The peer "mpi": loads the module that uses MPI. */
#include "contrib/bench/hvd_bench/peer_mpi.h"

#include <assert.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>

#include "contrib/bench/hvd_bench/contender.h"
#include "contrib/bench/hvd_bench/scripts.h"
#include "contrib/bench/hvd_bench/mpi_module.h"

struct bench_mpi {
    const struct bench_mpi_module *module; /* NULL: there is none */
    struct hvd_error reason;
};

struct peer {
    const struct bench_mpi_module *module;
    const struct bench_work *work;
};

/* MPI_Init ends a process that mpirun or srun did not start for MPI, so check first. */
static int check_launcher(struct hvd_error *err)
{
    const char *const signs[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_ID"};

    for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
        if (getenv(signs[i]) != NULL) {
            return 0;
        }
    }
    return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                    "this job was not started for MPI: use mpirun -np 2 hvd-bench ... or "
                    "srun --mpi=pmix -n 2 hvd-bench ...");
}

/* Loads the module with global symbols, because MPI's own plugins look for them. */
static int load_module(const struct bench_mpi_module **module, struct hvd_error *err)
{
    char path[PATH_MAX];
    void *handle;
    int status = check_launcher(err);

    if (status == 0) {
        status = bench_script_find("hvd-bench-mpi.so", path, sizeof(path), err);
    }
    if (status < 0) {
        return status;
    }
    handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    *module = handle != NULL ? dlsym(handle, "bench_mpi_module") : NULL;
    return *module != NULL ? 0 : hvd_fail(err, HVD_ERR_UNSUPPORTED, "%s", dlerror());
}

static int prepare_mpi(void *self, struct bench_work *work, struct hvd_error *err)
{
    struct peer *peer = self;

    peer->work = work;
    return peer->module->prepare(work, err);
}

static int run_mpi(void *self, int calls, double *seconds, struct hvd_error *err)
{
    struct peer *peer = self;
    double start = bench_now();

    for (int call = 0; call < calls; call++) {
        if (peer->module->run(peer->work) != 0) {
            return hvd_fail(err, HVD_ERR_NET, "mpi: the call failed");
        }
    }
    *seconds = bench_now() - start;
    return 0;
}

/* Checks the result. On the root of a broadcast the output is the input: MPI does not
 * write it. */
static int check_mpi(void *self, struct hvd_error *err)
{
    struct peer *peer = self;
    const struct bench_work *work = peer->work;
    bool is_root = work->collective == BENCH_BROADCAST && work->rank == 0;
    double seconds;
    int status = run_mpi(self, 1, &seconds, err);

    return status < 0
               ? status
               : bench_work_check(work, is_root ? work->input : work->output, "mpi", err);
}

static const struct bench_contender_ops ops = {
    .prepare = prepare_mpi,
    .run = run_mpi,
    .check = check_mpi,
    .destroy = free,
};

struct bench_mpi *bench_mpi_start(void)
{
    struct bench_mpi *mpi = calloc(1, sizeof(*mpi));
    const struct bench_mpi_module *module;

    if (mpi != NULL && load_module(&module, &mpi->reason) == 0 &&
        module->start(&mpi->reason) == 0) {
        mpi->module = module;
    }
    return mpi;
}

void bench_mpi_stop(struct bench_mpi *mpi)
{
    if (mpi != NULL && mpi->module != NULL) {
        mpi->module->stop();
    }
    free(mpi);
}

int bench_mpi_create(const struct bench_job *job, const char *program,
                     struct bench_contender *out, struct hvd_error *err)
{
    int status = bench_contender_create("mpi", &ops, sizeof(struct peer), out, err);
    const struct bench_mpi *mpi = job->mpi;

    (void)program;
    if (status == 0 && mpi == NULL) {
        status = hvd_fail(err, HVD_ERR_NOMEM, "out of memory");
    } else if (status == 0 && mpi->module == NULL) {
        status = hvd_fail(err, HVD_ERR_UNSUPPORTED, "%s", mpi->reason.text);
    }
    status = bench_job_agree(status, err);
    if (status < 0) {
        free(out->self);
        return status;
    }
    assert(mpi != NULL); /* or the ranks would have agreed on an error */
    ((struct peer *)out->self)->module = mpi->module;
    status = bench_job_agree(mpi->module->join(job->rank, job->size, err), err);
    if (status < 0) {
        free(out->self);
    }
    return status;
}
