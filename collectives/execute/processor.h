/* SPDX-License-Identifier: Apache-2.0 */
/* What the built-in table has to know of this machine. All else about choices is pure (algorithm.h), and
 * so the same on all machines. */
#ifndef HVD_PROCESSOR_H
#define HVD_PROCESSOR_H

#include "collectives/execute/algorithm.h"

enum hvd_processor hvd_processor_here(void);

/* hvd_job_shape_of for a job whose one node is this machine. */
struct hvd_job_shape hvd_job_shape_here(const struct hvd_layout *layout);

#endif
