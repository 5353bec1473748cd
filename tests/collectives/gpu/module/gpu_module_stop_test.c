/* SPDX-License-Identifier: Apache-2.0 */
/* A stuck GPU holds up neither the launcher when a process set with windows is removed,
 * nor libhvd when it gives up a window, an inbox or memory, nor the end of a job for
 * longer if more sets have windows. Usage: gpu_module_stop_test MODULE, on the stand-in
 * with NCCL 2.27. */
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

/* Gives up after 20 s, for a caller that waits for it although it must not. */
static void be_stuck(void *argument)
{
    (void)argument;
    for (int left_ms = 20000; atomic_load(&is_stuck) && left_ms > 0; left_ms--) {
        pass_pause_ms(1);
    }
    atomic_store(&is_stuck, false);
}

/* Creates the communicator of a process set of one rank, with a window. */
static bool open_set(struct pass *pass, struct hvd_gpu_comm **comm,
                     struct hvd_gpu_window **window)
{
    struct hvd_gpu_identity identity;

    return pass_module->identify(pass->device, true, &identity, &pass->err) == 0 &&
           pass_module->comm_create(pass->device, identity.id, 0, 1, comm, &pass->err) ==
               0 &&
           pass_module->window_create(*comm, 1 << 20, window, &pass->err) == 0;
}

static bool make_inbox(struct pass *pass, struct hvd_gpu_comm *comm,
                       struct hvd_gpu_inbox **inbox)
{
    struct hvd_gpu_step step = {.kind = HVD_GPU_ALLOCATE_INBOX};
    struct hvd_gpu_work work = {.queue = HVD_GPU_COLLECT, .steps = &step, .count = 1};

    if (pass_module->inbox_create(comm, 1 << 20, inbox, &pass->err) != 0) {
        return false;
    }
    step.to = *inbox;
    if (pass_run(pass, &work) != 0) {
        return false;
    }
    pass->err = (*inbox)->error;
    return pass->err.status == 0;
}

/* Connects the communicator. Its stream waits for the event `ready`. */
static bool wait_behind(struct pass *pass, struct hvd_gpu_comm *comm)
{
    struct hvd_gpu_step step = {.kind = HVD_GPU_FOLLOW, .event = pass->ready};
    struct hvd_gpu_work work = {
        .queue = HVD_GPU_COLLECT, .comm = comm, .steps = &step, .count = 1};

    return pass_run(pass, &work) == 0;
}

/* A device with a stream that is stuck until end_stuck. */
struct stuck {
    struct pass pass;
    struct fake_stream *stream;
    void *context;
};

static bool begin_stuck(struct stuck *stuck)
{
    struct pass *pass = &stuck->pass;

    *stuck = (struct stuck){0};
    atomic_store(&is_stuck, true);
    if (pass_open(pass) != 0 || cuDevicePrimaryCtxRetain(&stuck->context, 0) != 0 ||
        cuCtxPushCurrent_v2(stuck->context) != 0 ||
        cuStreamCreateWithPriority(&stuck->stream, 1, 0) != 0) {
        return false;
    }
    fake_gpu_enqueue(stuck->stream, be_stuck, NULL);
    return pass_module->event_record(pass->ready, stuck->stream, NULL, &pass->err) == 0;
}

static void end_stuck(struct stuck *stuck)
{
    atomic_store(&is_stuck, false);
    pass_close(&stuck->pass);
    cuStreamDestroy_v2(stuck->stream);
    cuCtxPopCurrent_v2(&stuck->context);
    cuDevicePrimaryCtxRelease_v2(0);
}

static void sets_share_the_limit(void)
{
    struct stuck stuck;
    struct pass *pass = &stuck.pass;
    bool is_good = begin_stuck(&stuck);

    for (int i = 0; i < SETS && is_good; i++) {
        struct hvd_gpu_comm *comm;
        struct hvd_gpu_window *window;

        is_good = open_set(pass, &comm, &window) && wait_behind(pass, comm);
    }
    if (tap_ok(is_good, "%d process sets have work on a stuck GPU (%s)", SETS,
               pass->err.text)) {
        tap_ok(pass_module->stop(pass->device, LIMIT_MS),
               "their communicators end within the limit of the device");
    }
    end_stuck(&stuck);
}

/* Freeing memory waits for the GPU, on the stand-in as with cudaFree. */
static void launcher_goes_on(void)
{
    static struct hvd_gpu_work first = {.queue = HVD_GPU_OUT};
    static struct hvd_gpu_work later = {.queue = HVD_GPU_OUT};
    struct stuck stuck;
    struct pass *pass = &stuck.pass;
    struct hvd_gpu_window *window;
    int left_ms = 20000;

    if (!tap_ok(begin_stuck(&stuck) && open_set(pass, &first.comm, &window) &&
                    pass_run(pass, &first) == 0,
                "a process set has a window (%s)", pass->err.text)) {
        return;
    }
    pass_module->comm_destroy(first.comm);
    pass_pause_ms(200); /* the launcher looks every 5 ms for communicators that leave */
    later.done = pass->done;
    pass_module->submit(pass->device, &later);
    while (atomic_load(&later.status) == HVD_INPROGRESS && left_ms-- > 0) {
        pass_pause_ms(1);
    }
    tap_ok(atomic_load(&later.status) == 0,
           "if it is removed while the GPU is busy, other work is launched");
    end_stuck(&stuck);
    tap_ok(!pass_has_left(), "the device stops when the window is free");
}

static void libhvd_goes_on(void)
{
    struct stuck stuck;
    struct pass *pass = &stuck.pass;
    struct hvd_gpu_comm *comm;
    struct hvd_gpu_window *window = NULL;
    struct hvd_gpu_inbox *inbox = NULL;
    void *memory = NULL;

    if (!tap_ok(begin_stuck(&stuck) && open_set(pass, &comm, &window) &&
                    make_inbox(pass, comm, &inbox) &&
                    pass_module->alloc(pass->device, HVD_GPU_DEVICE_MEMORY, 1 << 20,
                                       &memory, &pass->err) == 0,
                "a process set has a window, an inbox and memory (%s)", pass->err.text)) {
        return;
    }
    pass_module->window_destroy(window);
    pass_module->inbox_destroy(inbox);
    pass_module->retire(pass->device, HVD_GPU_DEVICE_MEMORY, memory);
    tap_ok(!pass_module->await_retired(pass->device, 1) && atomic_load(&is_stuck),
           "libhvd gives them up without waiting for the GPU");
    end_stuck(&stuck);
    tap_ok(!pass_has_left(), "they are free when the device stops");
}

int main(int argc, char **argv)
{
    if (tap_ok(argc == 2 && pass_load(argv[1]), "the module is loaded")) {
        launcher_goes_on();
        libhvd_goes_on();
        sets_share_the_limit();
    }
    return tap_done();
}
