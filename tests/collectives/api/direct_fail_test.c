/* SPDX-License-Identifier: Apache-2.0 */
/* A collective that the calling thread runs itself (direct.h) fails with its job, while
 * another rank still seems to write the result. The memory that the other rank may still
 * write to must not be freed. Runs as each rank of a job of two on one node; rank 0
 * prints TAP. Rank 1 only pretends to be writing, and stays alive. */
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "contrib/bench/direct/direct.h"
#include "collectives/core/job_state.h"
#include "collectives/transport/control/control.h"
#include "collectives/transport/shm/shm_state.h"
#include "gpu_binding/base/log.h"
#include "tests/collectives/calls.h"
#include "tests/tap.h"

enum {
    /* so large that malloc maps it separately, and free would unmap it */
    BYTES = 8 << 20,
};

static char input[BYTES];
/* Not freed after the failure, on purpose. This pointer keeps it reachable, so that the
 * leak sanitizer does not report it. */
static struct hvd_direct *direct;

static bool is_mapped(const void *data)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

    return msync((void *)((uintptr_t)data / page * page), page, MS_ASYNC) == 0;
}

static void test_result(void)
{
    const int64_t bytes = BYTES;
    struct hvd_start start = {
        .kind = HVD_KIND_ALLGATHER, .word = "Allgather", .op = HVD_SUM};
    struct hvd_tensor tensor = call_tensor("t", HVD_UINT8, &bytes, 1, input, NULL);
    struct hvd_error err = {0};
    const char *result;

    if (hvd_direct_plan(&start, &tensor, 1, &direct, &err) != 0) {
        tap_ok(false, "an allgather is planned: %s", err.text);
        return;
    }
    result = hvd_direct_result(direct);
    tap_ok(hvd_direct_run(direct, &err) == HVD_ERR_PEER,
           "the collective fails when the job ends: %s", err.text);
    hvd_direct_destroy(direct);
    tap_ok(is_mapped(result) && is_mapped(result + BYTES),
           "memory that another rank may still write to is not freed");
}

int main(void)
{
    int rank = call_init();
    struct hvd_job *job = hvd_job_enter(NULL);

    hvd_log_to(NULL, HVD_LOG_WARN);
    hvd_direct_open(NULL);
    if (rank == 0) {
        test_result();
        atomic_store(&job->shm->lines[0].writes_to, 1);
    } else {
        /* Name no thread as the writer: otherwise rank 0 could find out that the writer
         * is stopped, and would not wait for it. */
        atomic_store(&job->shm->lines[1].writer, 0);
        atomic_store(&job->shm->lines[1].writes_to, 1);
        /* Ends the job without hvd_shm_hide on this rank. */
        hvd_control_abort(job->control, 1, "rank 1 ends the job");
        /* Rank 0 sets writes_to in its own line when it has finished its checks. */
        while (atomic_load(&job->shm->lines[0].writes_to) == 0) {
            usleep(1000);
        }
    }
    exit(rank == 0 ? tap_done() : 0);
}
