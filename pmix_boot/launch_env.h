/* SPDX-License-Identifier: Apache-2.0 */
/* Tells how this process was started, from its environment alone. */
#ifndef HVD_LAUNCH_ENV_H
#define HVD_LAUNCH_ENV_H

#include <stdbool.h>
#include <stddef.h>

#include "gpu_binding/base/error.h"

enum hvd_launch_kind {
    HVD_LAUNCH_SINGLE, /* without a launcher, or as the only rank: rank 0 of 1 */
    HVD_LAUNCH_PMIX, /* one rank of a launch with PMIx */
    HVD_LAUNCH_RENDEZVOUS, /* one rank of a launch with a service of hvd */
    HVD_LAUNCH_ELASTIC, /* one rank of an elastic job, which also has a service of hvd */
    /* the program numbers the ranks; never decided by the environment */
    HVD_LAUNCH_STORE,
};

/* Finds out how this process was started. environment is a NULL-terminated list of
 * "name=value", like environ. has_pmix: this installation can speak PMIx. Fails if the
 * environment shows a launch of several ranks that cannot be joined: HVD_ERR_UNSUPPORTED
 * with what to type instead, or HVD_ERR_STATE with the text that the launcher left in
 * HVD_ENV_LAUNCH_ERROR. Fails in case of doubt, too, so that one rank of many never runs
 * as rank 0 of 1. */
int hvd_launch_decide(const char *const *environment, bool has_pmix,
                      enum hvd_launch_kind *launch, struct hvd_error *err);

/* Returns whether the launcher serves PMIx, but the service is preferred to it, so that
 * HVD_ENV_START_BY=pmix would be another way to start. */
bool hvd_launch_has_unused_pmix(const char *const *environment);

/* Returns whether a launcher has set one of its variables, for however many ranks. */
bool hvd_launch_has_launcher(const char *const *environment);

/* Returns whether a process that is alone was probably meant to be a task of srun: it was
 * started by the shell of a Slurm job of several tasks or nodes, without a launcher.
 * Writes a warning that says so to text. */
bool hvd_launch_lacks_srun(const char *const *environment, char *text, size_t bytes);

/* Returns whether the launcher started an elastic job: there is a service, and
 * HVD_ENV_HOROVOD_ELASTIC is 1. */
bool hvd_launch_is_elastic(const char *const *environment);

/* Describes the launch to the user. */
const char *hvd_launch_name(enum hvd_launch_kind launch);

/* Returns whether this is a batch or salloc shell, in which srun finds the job's nodes. A
 * task of srun has only its own cpus: srun inside it would wait for others. */
bool hvd_launch_is_slurm_shell(const char *const *environment);

/* Sets HOME to "/", as container engines do, if neither HOME nor the user database has a
 * home directory: libpmix 4 crashes there. Call it before PMIx starts, while the process
 * has one thread. */
void hvd_launch_need_home(void);

#endif
