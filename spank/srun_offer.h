/* SPDX-License-Identifier: Apache-2.0 */
/* What hvd asks of srun when the user did not ask for something else. */
#ifndef HVD_SPANK_SRUN_OFFER_H
#define HVD_SPANK_SRUN_OFFER_H

#include "spank/launch.h"

/* PMIx and its time limit, the end of the step when a rank fails, all GPUs in each task, the
 * job's cpus per task. */
void hvd_srun_offer(struct hvd_launch *launch);

/* Takes all of that back, except what the user changed since. */
void hvd_srun_withdraw(struct hvd_launch *launch);

#endif
