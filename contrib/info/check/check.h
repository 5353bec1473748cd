/* SPDX-License-Identifier: Apache-2.0 */
/* hvd-info --check: how ranks would start here, which libraries and paths GPU tensors
 * would use, and which node, rank or link of the job is not as the others. */
#ifndef HVD_INFO_CHECK_H
#define HVD_INFO_CHECK_H

#include "gpu_binding/base/error.h"
#include "contrib/info/job.h"

struct hvd_info_check_options {
    bool is_json;
    bool is_node; /* look at this node only, without the other ranks */
    int seconds; /* for measurements, about; 0: the default */
    const char *thresholds; /* a file; NULL: the installed one */
};

/* The ranks of a job start as hvd.init() does and measure; rank 0 prints the facts and
 * findings of all, each once with the nodes on which it holds, and a verdict. If the
 * start fails, each rank prints its own facts. Collective over the ranks of a job.
 *
 * Returns HVD_ERR_UNSUPPORTED if there is no libhvd, and on rank 0 also if a check has
 * failed. Returns HVD_ERR_STATE if hvd_init fails. The output has the details, and err is
 * a sentence. */
int hvd_info_check(const struct hvd_info_check_options *options, hvd_info_lookup lookup,
                   struct hvd_error *err);

#endif
