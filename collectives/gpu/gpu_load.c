/* SPDX-License-Identifier: Apache-2.0 */
/* Loads hvd_gpu.so. */
#include "collectives/gpu/gpu_load.h"

#include <pthread.h>

#include "gpu_binding/base/env.h"
#include "gpu_binding/base/module.h"

static const struct hvd_module_source source = {
    .file = "hvd_gpu.so",
    .built = "gpu/module",
    .variable = HVD_ENV_GPU_MODULE,
    .purpose = "GPU tensors need",
    .symbol = HVD_GPU_MODULE_SYMBOL,
    .version = HVD_GPU_MODULE_VERSION,
};

static const struct hvd_gpu_module *loaded;
static char loaded_from[4096];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

const struct hvd_gpu_module *hvd_gpu_load(struct hvd_error *err)
{
    const struct hvd_gpu_module *module;

    pthread_mutex_lock(&lock);
    if (loaded == NULL) {
        loaded = hvd_module_load(&source, loaded_from, sizeof(loaded_from), err);
    }
    module = loaded;
    pthread_mutex_unlock(&lock);
    return module;
}

const char *hvd_gpu_loaded_from(void)
{
    return loaded_from;
}
