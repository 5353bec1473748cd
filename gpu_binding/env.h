/* SPDX-License-Identifier: Apache-2.0 */
/* Every environment variable that hvd reads or writes: name, default, meaning. Nothing else
 * in the source spells one. "written by" names who exports it to the ranks. */
#ifndef HVD_ENV_H
#define HVD_ENV_H

/* Written for each rank by the plugin and by hvdrun, for scripts that look at them; hvd
 * itself takes its ranks from PMIx. A value that the user set is left alone. */
#define HVD_ENV_RANK "HOROVOD_RANK"
#define HVD_ENV_SIZE "HOROVOD_SIZE"
#define HVD_ENV_LOCAL_RANK "HOROVOD_LOCAL_RANK"
#define HVD_ENV_LOCAL_SIZE "HOROVOD_LOCAL_SIZE"
#define HVD_ENV_CROSS_RANK "HOROVOD_CROSS_RANK"
#define HVD_ENV_CROSS_SIZE "HOROVOD_CROSS_SIZE"
#define HVD_ENV_HOSTNAME "HOROVOD_HOSTNAME"

/* Contract between the plugin (or hvdrun) and the library. */
#define HVD_ENV_LAUNCH "HVD_LAUNCH" /* "1": the plugin or hvdrun started this rank */
#define HVD_ENV_GPU_LIST "HVD_GPU_LIST" /* the node's GPU numbers in local rank order */
#define HVD_ENV_GPU_INDEX                                                                \
    "HVD_GPU_INDEX" /* this rank's index into CUDA_VISIBLE_DEVICES */
#define HVD_ENV_GPUS "HVD_GPUS" /* all (each rank sees all) or isolated */
#define HVD_ENV_CPUS "HVD_CPUS" /* the cpus this rank was bound to, as a list */
#define HVD_ENV_NIC "HVD_NIC" /* the network card planned for this rank */
#define HVD_ENV_LAUNCH_ERROR                                                             \
    "SLURM_HVD_ERROR" /* why the launch is unusable; init repeats it */

/* Read by the library. */
#define HVD_ENV_START_TIMEOUT                                                            \
    "HVD_START_TIMEOUT" /* seconds init waits for all ranks, 60 */
#define HVD_ENV_IFACE "HVD_IFACE" /* network interface of control connections, all */
#define HVD_ENV_LOG_LEVEL "HOROVOD_LOG_LEVEL" /* trace ... fatal, warning */
#define HVD_ENV_FUSION_THRESHOLD                                                         \
    "HOROVOD_FUSION_THRESHOLD" /* bytes a batch holds, 128 MiB */
#define HVD_ENV_GLOO_IFACE "HOROVOD_GLOO_IFACE" /* same as HVD_IFACE */
#define HVD_ENV_GLOO_TIMEOUT                                                             \
    "HOROVOD_GLOO_TIMEOUT_SECONDS" /* same as HVD_START_TIMEOUT */

#endif
