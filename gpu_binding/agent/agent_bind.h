/* SPDX-License-Identifier: Apache-2.0 */
/* Binds a process that an agent has started, as its row of the plan says. */
#ifndef HVD_AGENT_BIND_H
#define HVD_AGENT_BIND_H

#include <stdbool.h>

#include "gpu_binding/agent/agent_plan.h"

/* True if the calling thread still has all cpus of the agent, and the default memory
 * policy or one that the kernel does not tell. Otherwise the user has chosen another
 * binding. */
bool hvd_agent_is_unbound(const struct hvd_agent_plan *plan);

/* Binds the threads of this process that have all cpus of the agent to those cpus of the
 * row that the agent has, too. Makes the kernel prefer the row's memory node for the
 * calling thread and for threads that it starts later; other threads keep their policy,
 * because only a thread itself can change it. If no cpu is left, returns HVD_ERR_ARG
 * and changes nothing. */
int hvd_agent_bind(const struct hvd_agent_plan *plan, struct hvd_error *err);

#endif
