/* SPDX-License-Identifier: Apache-2.0 */
/* Binds a rank that torchrun has started under srun --hvd, which plans the binding but
 * cannot apply it to processes of torchrun. */
#ifndef HVD_AGENT_RANK_H
#define HVD_AGENT_RANK_H

#include "gpu_binding/base/error.h"

/* Does nothing unless this process is a rank of torchrun for which HVD_AGENT_PLAN has a
 * row. Binds its threads, makes the kernel prefer the row's memory node, and sets HVD_NIC
 * and, unless the user set it, UCX_NET_DEVICES. Then removes HVD_AGENT_PLAN, so that this
 * happens once, and not in processes that the rank starts. A binding by the user stays.
 * A refusal of the kernel costs only speed, so it is logged. Returns HVD_ERR_ARG if
 * HVD_AGENT_PLAN is not a plan. */
int hvd_agent_rank_bind(struct hvd_error *err);

#endif
