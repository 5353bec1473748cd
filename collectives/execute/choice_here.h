/* SPDX-License-Identifier: Apache-2.0 */
/* What the built-in table has to know of this machine. All else about choices is pure (choice.h), and
 * so the same on all machines. */
#ifndef HVD_CHOICE_HERE_H
#define HVD_CHOICE_HERE_H

#include "collectives/execute/choice.h"

enum hvd_cpu hvd_cpu_here(void);

/* hvd_shape_of for a job whose one node is this machine. */
struct hvd_shape hvd_shape_here(const struct hvd_layout *layout);

#endif
