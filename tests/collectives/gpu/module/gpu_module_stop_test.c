/* SPDX-License-Identifier: Apache-2.0 */
/* A stuck GPU does not hold up the end of a job for longer if more process sets have
 * windows: gpu_module_stop_test MODULE, on the stand-in with NCCL 2.27. */
#include <stdatomic.h>
#include <string.h>

#include "tests/collectives/gpu/module/module_pass.h"
#include "tests/fake_gpu/fake_cuda.h"
#include "tests/tap.h"

enum {
    SETS = 3,
    LIMIT_MS = 5000, /* HVD_GPU_STOP_MS; three waits of their own take 9 s */
};

/* Functions of the stand-in. */
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuCtxPushCurrent_v2(void *context);
int cuCtxPopCurrent_v2(void **context);
int cuStreamCreateWithPriority(struct fake_stream **stream, unsigned flags, int priority);
int cuStreamDestroy_v2(struct fake_stream *stream);

static atomic_bool is_stuck = true;

static void be_stuck(void *argument)
{
    (void)argument;
    while (atomic_load(&is_stuck)) {
        pass_pause_ms(1);
    }
}

/* Creates the communicator of a process set of one rank, with a window. */
static bool open_set(struct pass *pass, struct hvd_gpu_comm **comm)
{
    struct hvd_gpu_identity identity;
    struct hvd_gpu_window *window;

    return pass_module->identify(pass->device, true, &identity, &pass->err) == 0 &&
           pass_module->comm_create(pass->device, identity.id, 0, 1, comm, &pass->err) ==
               0 &&
           pass_module->window_create(*comm, 1 << 20, &window, &pass->err) == 0;
}

/* Connects the communicator. Its stream waits for the event `ready`. */
static bool wait_behind(struct pass *pass, struct hvd_gpu_comm *comm)
{
    struct hvd_gpu_step step = {.kind = HVD_GPU_FOLLOW, .event = pass->ready};
    struct hvd_gpu_work work = {
        .queue = HVD_GPU_COLLECT, .comm = comm, .steps = &step, .count = 1};

    return pass_run(pass, &work) == 0;
}

int main(int argc, char **argv)
{
    struct pass pass = {0};
    struct fake_stream *stream = NULL;
    void *context = NULL;
    bool is_good = argc == 2 && pass_load(argv[1]) && pass_open(&pass) == 0 &&
                   cuDevicePrimaryCtxRetain(&context, 0) == 0 &&
                   cuCtxPushCurrent_v2(context) == 0 &&
                   cuStreamCreateWithPriority(&stream, 1, 0) == 0;

    if (is_good) {
        fake_gpu_enqueue(stream, be_stuck, NULL);
        is_good = pass_module->event_record(pass.ready, stream, NULL, &pass.err) == 0;
    }
    for (int i = 0; i < SETS && is_good; i++) {
        struct hvd_gpu_comm *comm;

        is_good = open_set(&pass, &comm) && wait_behind(&pass, comm);
    }
    if (!tap_ok(is_good, "%d process sets have work on a stuck GPU (%s)", SETS,
                pass.err.text)) {
        return tap_done();
    }
    tap_ok(pass_module->stop(pass.device, LIMIT_MS),
           "their communicators end within the limit of the device");
    atomic_store(&is_stuck, false);
    pass_close(&pass);
    cuStreamDestroy_v2(stream);
    cuCtxPopCurrent_v2(&context);
    cuDevicePrimaryCtxRelease_v2(0);
    return tap_done();
}
