/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the GPU of this rank. */
#include "collectives/gpu/gpu.h"
#include "collectives/gpu/gpu_load.h"
#include "collectives/reduce/float_env.h"
#include "gpu_binding/base/error.h"
#include "gpu_binding/base/log.h"

static void wake(void *context)
{
    struct hvd_gpu *gpu = context;

    pthread_mutex_lock(&gpu->lock);
    if (!gpu->is_left) {
        gpu->config.wake(gpu->config.context);
    }
    pthread_mutex_unlock(&gpu->lock);
}

/* lock held */
static int open_device(struct hvd_gpu *gpu, int device, struct hvd_error *err)
{
    const struct hvd_gpu_opening opening = {
        .device = device, .wake = wake, .context = gpu};
    const struct hvd_gpu_module *module = hvd_gpu_load(err);
    struct hvd_gpu_device *opened = NULL;
    int status;

    if (module == NULL) {
        return HVD_ERR_UNSUPPORTED;
    }
    status = module->open(&opening, &opened, err);
    if (status != 0) {
        return status;
    }
    status = hvd_gpu_pool_create(module, opened, &gpu->pool, err);
    if (status != 0) {
        module->stop(opened, HVD_GPU_STOP_MS);
        module->close(opened);
        return status;
    }
    gpu->device = device;
    atomic_store(&gpu->is_open, true);
    hvd_log(HVD_LOG_INFO, "GPU %d is opened through %s%s%s", device,
            hvd_gpu_loaded_from(),
            module->no_kernels(opened) != NULL ? ", without kernels: " : "",
            module->no_kernels(opened) != NULL ? module->no_kernels(opened) : "");
    return 0;
}

int hvd_gpu_open(struct hvd_gpu *gpu, int device, struct hvd_error *err)
{
    struct hvd_float_env callers;
    int status = 0;

    pthread_mutex_lock(&gpu->lock);
    if (gpu->pool == NULL) {
        /* The launcher inherits it, which rounds factors for NCCL. */
        hvd_float_env_enter(&callers);
        status = open_device(gpu, device, err);
        hvd_float_env_leave(&callers);
    } else if (gpu->device != device) {
        status =
            hvd_fail(err, HVD_ERR_UNSUPPORTED,
                     "it is on GPU %d, but this rank has used GPU %d before: hvd takes "
                     "one GPU for each process, torch.cuda.set_device(hvd.local_rank()) "
                     "chooses it",
                     device, gpu->device);
    }
    pthread_mutex_unlock(&gpu->lock);
    return status;
}

int hvd_gpu_open_default(struct hvd_gpu *gpu, struct hvd_error *err)
{
    const struct hvd_layout *layout = &gpu->config.boot->layout;
    const struct hvd_gpu_module *module;
    int status = 0, count;

    pthread_mutex_lock(&gpu->lock);
    if (gpu->pool == NULL) {
        module = hvd_gpu_load(err);
        count = module != NULL ? module->count(err) : HVD_ERR_UNSUPPORTED;
        if (count == 0) {
            count = hvd_fail(err, HVD_ERR_UNSUPPORTED, "this process sees no GPU");
        }
        status = count < 0
                     ? count
                     : open_device(
                           gpu, layout->local_rank[gpu->config.boot->rank] % count, err);
    }
    pthread_mutex_unlock(&gpu->lock);
    return status;
}

bool hvd_gpu_is_open(const struct hvd_gpu *gpu)
{
    return gpu != NULL && atomic_load(&gpu->is_open);
}
