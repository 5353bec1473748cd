/* SPDX-License-Identifier: Apache-2.0 */
/* hvd-info --check: how ranks would start here, and which libraries and paths GPU tensors
 * would use on this node. */
#ifndef HVD_INFO_CHECK_H
#define HVD_INFO_CHECK_H

#include "gpu_binding/base/error.h"
#include "contrib/info/job.h"

/* Rank 0 of a job prints libhvd's descriptions of the nodes of all ranks, each fact once
 * with the nodes on which it holds, and a verdict. If the ranks do not find each other,
 * each prints its own facts. Collective over the ranks of a job.
 *
 * Returns HVD_ERR_UNSUPPORTED if there is no libhvd, and on rank 0 also if GPU tensors
 * cannot be used on a node that has a GPU, or where the job has asked for one. Returns
 * HVD_ERR_STATE if hvd_init would fail. The facts have the details, and err is a
 * sentence. */
int hvd_info_check(hvd_info_lookup lookup, struct hvd_error *err);

#endif
