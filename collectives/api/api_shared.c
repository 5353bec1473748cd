/* SPDX-License-Identifier: Apache-2.0 */
/* The public interface: memory that the ranks of a node add up where it is. */
#include "collectives/hvd.h"
#include "collectives/transport/shm/shared.h"
#include "gpu_binding/base/attr.h"
#include "gpu_binding/base/log.h"

HVD_EXPORT int hvd_shared_alloc(size_t bytes, void **out, struct hvd_error *err)
{
    return hvd_shared_create(bytes, out, err);
}

HVD_EXPORT void hvd_shared_free(void *memory)
{
    if (!hvd_shared_destroy(memory)) {
        hvd_log(HVD_LOG_ERROR,
                "hvd_shared_free of %p, which hvd_shared_alloc has not returned or which "
                "was freed before: nothing is freed",
                memory);
    }
}
