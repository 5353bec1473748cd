/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a node in HVD_AGENT_PLAN. The first byte of the input is the local rank. */
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/affinity.h"
#include "gpu_binding/agent/agent_plan.h"
#include "gpu_binding/plan.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    int local_rank = fuzz_byte(&input);
    char *text = fuzz_text(&input, input.bytes);
    struct hvd_agent_plan plan = {.row_count = -1};
    struct hvd_error err = {0};
    int status = hvd_agent_plan_read(text, local_rank, &plan, &err);

    free(text);
    if (status != 0) {
        if (plan.row_count != -1 || strstr(err.text, "HVD_AGENT_PLAN") == NULL) {
            fuzz_fail("a refused text changes nothing and is named");
        }
        return 0;
    }
    if (plan.row_count < 0 || plan.row_count > HVD_PLAN_RANKS_MAX ||
        hvd_cpuset_is_empty(&plan.agent) || plan.memory_node < HVD_NONE ||
        plan.memory_node >= HVD_MEMORY_NODES ||
        memchr(plan.nic, '\0', sizeof(plan.nic)) == NULL ||
        memchr(plan.step, '\0', sizeof(plan.step)) == NULL) {
        fuzz_fail("a plan that is read is complete");
    }
    return 0;
}
