/* SPDX-License-Identifier: Apache-2.0 */
/* How this process was started, judged by its environment alone. */
#ifndef HVD_LAUNCH_ENV_H
#define HVD_LAUNCH_ENV_H

#include <stdbool.h>

#include "gpu_binding/base/error.h"

enum hvd_launch_kind {
    HVD_LAUNCH_SINGLE, /* without a launcher, or as the only rank: rank 0 of 1 */
    HVD_LAUNCH_PMIX, /* one rank of a launch that serves PMIx */
    HVD_LAUNCH_RENDEZVOUS, /* one rank of a launch that has a service of hvd, and no PMIx */
    HVD_LAUNCH_ELASTIC, /* one rank of an elastic job, which has such a service, too */
    HVD_LAUNCH_STORE, /* the program says who it is; never decided by the environment */
};

/* environment is a list of "name=value" that ends with NULL, as environ is. has_pmix tells
 * whether this installation can speak PMIx. Fails where the environment shows a launch of several
 * that cannot be joined: HVD_ERR_UNSUPPORTED with what to type instead, or HVD_ERR_STATE
 * with what the launcher left in HVD_ENV_LAUNCH_ERROR. If unsure, it fails: one rank of many must
 * never believe that it is rank 0 of 1. */
int hvd_launch_decide(const char *const *environment, bool has_pmix,
                      enum hvd_launch_kind *launch, struct hvd_error *err);

/* Whether the launcher says so: a service is there, and HVD_ENV_HOROVOD_ELASTIC is 1. */
bool hvd_launch_is_elastic(const char *const *environment);

/* For the user: where the ranks come from. */
const char *hvd_launch_name(enum hvd_launch_kind launch);

/* Whether the environment is that of a batch or salloc shell, where srun finds the job's
 * nodes. A task of srun has only its own cpus: srun in it would wait for others. */
bool hvd_launch_is_slurm_shell(const char *const *environment);

/* Sets HOME to "/", as container engines do, where neither HOME nor the user database has a
 * home directory: libpmix 4 crashes there. To be called before PMIx starts, while the process
 * has one thread. */
void hvd_launch_need_home(void);

#endif
