/* SPDX-License-Identifier: Apache-2.0 */
/* The public interface of elastic jobs; pmix_boot/rendezvous has the list of their
 * ranks. */
#include "collectives/api/api.h"
#include "collectives/core/job.h"
#include "collectives/hvd.h"
#include "gpu_binding/base/attr.h"
#include "pmix_boot/boot.h"
#include "pmix_boot/rendezvous/client.h"

HVD_EXPORT int hvd_elastic(void)
{
    struct hvd_job *job = hvd_job_enter(NULL);
    int is_elastic;

    if (job == NULL) {
        return HVD_ERR_STATE;
    }
    is_elastic = hvd_job_boot(job)->is_elastic ? 1 : 0;
    hvd_job_exit();
    return is_elastic;
}

HVD_EXPORT int hvd_elastic_updates(void)
{
    int is_elastic = hvd_elastic();

    return is_elastic == 1 ? (int)hvd_rendezvous_client_notices().changes : is_elastic;
}

HVD_EXPORT int hvd_elastic_ready(void)
{
    int is_elastic = hvd_elastic();

    if (is_elastic == 1) {
        hvd_rendezvous_client_ready();
    }
    return is_elastic < 0 ? is_elastic : 0;
}
