/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a device of hvd_gpu.so on the stand-in and runs work on it. */
#include "tests/collectives/gpu/module/module_pass.h"

#include <dlfcn.h>
#include <string.h>
#include <time.h>

#include "tests/fake_gpu/fake_cuda.h"
#include "tests/tap.h"

const struct hvd_gpu_module *pass_module;
float pass_in[PASS_COUNT], pass_out[PASS_COUNT];

bool pass_load(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW);

    pass_module = handle != NULL ? dlsym(handle, HVD_GPU_MODULE_SYMBOL) : NULL;
    if (pass_module == NULL) {
        tap_note("%s", dlerror());
    }
    return pass_module != NULL;
}

void pass_pause_ms(long ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    nanosleep(&time, NULL);
}

void pass_ignore(void *context)
{
    (void)context;
}

int pass_open_device(struct pass *pass, int device)
{
    const struct hvd_gpu_opening opening = {.device = device, .wake = pass_ignore};

    return pass_module->open(&opening, &pass->device, &pass->err);
}

int pass_open(struct pass *pass)
{
    struct hvd_gpu_identity identity;
    int status = pass_open_device(pass, 0);

    if (status == 0) {
        status = pass_module->identify(pass->device, true, &identity, &pass->err);
    }
    if (status == 0) {
        status = pass_module->comm_create(pass->device, identity.id, 0, 1, &pass->comm,
                                          &pass->err);
    }
    if (status == 0) {
        status = pass_module->event_create(pass->device, &pass->ready, &pass->err);
    }
    if (status == 0) {
        status = pass_module->event_create(pass->device, &pass->done, &pass->err);
    }
    if (status == 0) {
        status = pass_module->alloc(pass->device, HVD_GPU_DEVICE_MEMORY, PASS_BYTES,
                                    &pass->memory, &pass->err);
    }
    return status != 0 ? status
                       : pass_module->alloc(pass->device, HVD_GPU_HOST_MEMORY, PASS_BYTES,
                                            &pass->pinned, &pass->err);
}

int pass_run(struct pass *pass, struct hvd_gpu_work *work)
{
    work->done = pass->done;
    pass_module->submit(pass->device, work);
    while (atomic_load(&work->status) == HVD_INPROGRESS) {
        pass_pause_ms(1);
    }
    if (atomic_load(&work->status) != 0) {
        pass->err = work->error;
    }
    return atomic_load(&work->status);
}

int pass_await(struct pass *pass, struct hvd_gpu_event *event)
{
    int status;

    while ((status = pass_module->event_test(event, &pass->err)) == HVD_INPROGRESS) {
        pass_pause_ms(1);
    }
    return status;
}

/* Copies the input to the device on the default stream, doubles it by an allreduce on the
 * module's stream (times 4 and then by a kernel times 0.5, if there are kernels), and
 * copies it back on a third stream. */
int pass_go_around(struct pass *pass)
{
    bool has_kernels = pass_module->no_kernels(pass->device) == NULL;
    struct hvd_gpu_step sum[] = {
        {.kind = HVD_GPU_FOLLOW, .event = pass->ready},
        {.kind = HVD_GPU_GROUP},
        {.kind = HVD_GPU_ALLREDUCE,
         .from = pass->memory,
         .to = pass->memory,
         .count = PASS_COUNT,
         .dtype = HVD_FLOAT32,
         .op = HVD_SUM,
         .factor = has_kernels ? 4.0 : 2.0},
        {.kind = HVD_GPU_GROUP_END},
        {.kind = HVD_GPU_MOVE,
         .from = pass->memory,
         .to = pass->memory,
         .count = PASS_COUNT,
         .dtype = HVD_FLOAT32,
         .to_dtype = HVD_FLOAT32,
         .factor = 0.5},
    };
    struct hvd_gpu_work work = {.queue = HVD_GPU_COLLECT,
                                .comm = pass->comm,
                                .steps = sum,
                                .count = has_kernels ? 5 : 4};
    struct hvd_gpu_step back[] = {{.kind = HVD_GPU_FOLLOW, .event = pass->done},
                                  {.kind = HVD_GPU_COPY,
                                   .from = pass->memory,
                                   .to = pass->pinned,
                                   .count = PASS_BYTES}};
    struct hvd_gpu_work copy = {.queue = HVD_GPU_IN, .steps = back, .count = 2};
    int status = pass_module->copy(pass->device, pass->memory, pass_in, PASS_BYTES, NULL,
                                   &pass->err);

    status = status != 0 ? status
                         : pass_module->event_record(pass->ready, NULL, NULL, &pass->err);
    if (status == 0) {
        status = pass_run(pass, &work);
    }
    /* This records `done` again: pass_await waits for the latest recording. */
    if (status == 0) {
        status = pass_run(pass, &copy);
    }
    if (status == 0) {
        status = pass_await(pass, pass->done);
    }
    if (status == 0) {
        memcpy(pass_out, pass->pinned, PASS_BYTES);
    }
    return status != 0 ? status : pass_module->comm_check(pass->comm, &pass->err);
}

void pass_close(struct pass *pass)
{
    if (pass->device == NULL) {
        return;
    }
    pass_module->stop(pass->device, 5000);
    if (pass->memory != NULL) {
        pass_module->free(pass->device, HVD_GPU_DEVICE_MEMORY, pass->memory);
    }
    if (pass->pinned != NULL) {
        pass_module->free(pass->device, HVD_GPU_HOST_MEMORY, pass->pinned);
    }
    pass_module->event_destroy(pass->ready);
    pass_module->close(pass->device);
    pass_module->event_destroy(pass->done); /* events may outlive the device */
}

bool pass_is_twice(void)
{
    for (int i = 0; i < PASS_COUNT; i++) {
        if (pass_out[i] != 2 * pass_in[i]) {
            tap_note("element %d is %g, not %g", i, (double)pass_out[i],
                     2 * (double)pass_in[i]);
            return false;
        }
    }
    return true;
}

bool pass_has_left(void)
{
    struct fake_live live;

    fake_gpu_live(&live);
    return fake_live_sum(&live) != 0;
}
