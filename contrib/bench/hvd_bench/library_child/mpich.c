/* SPDX-License-Identifier: Apache-2.0 */
/* MPICH, and what has its binary interface. */
#include <dlfcn.h>
#include <limits.h>

#include "contrib/bench/hvd_bench/files.h"
#include "contrib/bench/hvd_bench/library_child/library.h"
#include "contrib/bench/hvd_bench/mpi_module.h"
#include "gpu_binding/base/error.h"

static const struct bench_mpi_module *module;
static bool has_joined;

/* The module takes its MPI from whatever was loaded before it. */
static int load(const char *path, struct hvd_error *err)
{
    char file[PATH_MAX];
    void *handle;
    int status = bench_file_find("hvd-bench-mpich.so", file, sizeof(file), err);

    if (status < 0) {
        return status;
    }
    if (dlopen(path != NULL ? path : "libmpich.so.12", RTLD_NOW | RTLD_GLOBAL) == NULL) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                        "%s; Debian has it in libmpich12, elsewhere say mpich=LIBRARY",
                        dlerror());
    }
    handle = dlopen(file, RTLD_NOW);
    module = handle != NULL ? dlsym(handle, "bench_mpi_module") : NULL;
    return module != NULL ? 0 : hvd_fail(err, HVD_ERR_UNSUPPORTED, "%s", dlerror());
}

static int join(const struct bench_seat *seat, const char *greeting,
                struct hvd_error *err)
{
    int status = module->start(err);

    (void)greeting;
    has_joined = status == 0;
    return status < 0 ? status : module->join(seat->rank, seat->size, err);
}

static void leave(void)
{
    if (has_joined) {
        module->stop();
    }
}

static int prepare(const struct bench_work *work, struct hvd_error *err)
{
    return module->prepare(work, err);
}

static int run(const struct bench_work *work)
{
    return module->run(work);
}

const struct bench_library bench_library_mpich = {
    .name = "mpich",
    .load = load,
    .join = join,
    .leave = leave,
    .prepare = prepare,
    .run = run,
};
