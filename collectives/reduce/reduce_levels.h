/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of inner loops. Private to collectives/reduce. */
#ifndef HVD_REDUCE_LEVELS_H
#define HVD_REDUCE_LEVELS_H

#include "collectives/reduce/reduce_kernels.h"

extern const struct hvd_kernels hvd_kernels_portable[HVD_DTYPE_COUNT];

#endif
