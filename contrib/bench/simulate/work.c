/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes over rates. */
#include "contrib/bench/simulate/work.h"

#include <math.h>

double simulate_message_work(const struct simulate_machine *machine, double bytes)
{
    double parts = ceil(bytes / HVD_SCHEDULE_MESSAGE_BYTES);

    return parts * machine->message +
           (machine->netcopy > 0 ? bytes / machine->netcopy : 0);
}

/* Sources of a sum are read from shared memory, but one from the input if it is not there. */
static double local_sum_work(const struct simulate_machine *machine, int sources,
                             const struct hvd_step *step)
{
    double bytes = (double)step->count * sizeof(float);

    if (step->kind == HVD_STEP_REDUCE_OUT) {
        return bytes / machine->pcie + bytes * (sources - 1) / machine->sum;
    }
    return step->is_put ? bytes * sources / machine->sum
                        : bytes / machine->pcie + bytes * (sources - 1) / machine->sum;
}

double simulate_step_work(const struct simulate_machine *machine, int local_size,
                          const struct hvd_step *step)
{
    switch (step->kind) {
    case HVD_STEP_PUT:
        return machine->step + (double)step->bytes / machine->pcie;
    case HVD_STEP_GET:
        return machine->step + (double)step->bytes / machine->pcie;
    case HVD_STEP_REDUCE_LOCAL:
    case HVD_STEP_REDUCE_OUT:
        return machine->step + local_sum_work(machine, local_size, step);
    case HVD_STEP_REDUCE_NODES:
        return machine->step +
               (double)step->count * sizeof(float) * step->sources / machine->sum;
    case HVD_STEP_SEND:
        return machine->step + simulate_message_work(machine, (double)step->bytes);
    default:
        return machine->step;
    }
}

double simulate_receive_work(const struct simulate_machine *machine,
                             const struct hvd_step *step)
{
    if (step->kind != HVD_STEP_RECV_REDUCE) {
        return 0;
    }
    return (double)step->bytes / machine->sum +
           (step->to_output ? (double)step->bytes / machine->pcie : 0);
}
