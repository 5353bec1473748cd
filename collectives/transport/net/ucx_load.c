/* SPDX-License-Identifier: Apache-2.0 */
/* Loads hvd_ucx.so. */
#include <pthread.h>

#include "collectives/transport/net/ucx_module.h"
#include "gpu_binding/base/env.h"
#include "gpu_binding/base/module.h"

static const struct hvd_module_source source = {
    .file = "hvd_ucx.so",
    .built = "transport/net/ucx",
    .variable = HVD_ENV_UCX_MODULE,
    .purpose = "UCX needs",
    .symbol = HVD_UCX_MODULE_SYMBOL,
    .version = HVD_UCX_MODULE_VERSION,
};

const struct hvd_ucx_module *hvd_ucx_load(struct hvd_error *err)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static const struct hvd_ucx_module *loaded;
    const struct hvd_ucx_module *module;

    pthread_mutex_lock(&lock);
    if (loaded == NULL) {
        loaded = hvd_module_load(&source, NULL, 0, err);
    }
    module = loaded;
    pthread_mutex_unlock(&lock);
    return module;
}
