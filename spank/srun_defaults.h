/* SPDX-License-Identifier: Apache-2.0 */
/* What hvd asks of srun when the user did not ask for something else. */
#ifndef HVD_SPANK_SRUN_DEFAULTS_H
#define HVD_SPANK_SRUN_DEFAULTS_H

struct hvd_spank_plugin;

/* PMIx and its time limit, the end of the step when a rank fails, all GPUs in each task, the
 * job's cpus per task. */
void hvd_spank_srun_defaults_set(struct hvd_spank_plugin *plugin);

/* Takes all of that back, except what the user changed since. */
void hvd_spank_srun_defaults_reset(struct hvd_spank_plugin *plugin);

#endif
