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
        return bytes / machine->out + bytes * (sources - 1) / machine->sum;
    }
    return step->is_put ? bytes * sources / machine->sum
                        : bytes / machine->pcie + bytes * (sources - 1) / machine->sum;
}

/* Bytes that a step writes for ranks on other cores. Of what is not for all, each of the others of
 * the node has its part. */
static double crossing_bytes(struct simulate_seat seat, const struct hvd_step *step)
{
    int core = seat.local_rank % seat.cores;
    int here = (seat.local_size - core + seat.cores - 1) / seat.cores;
    int away = seat.local_size - here;

    if (step->kind == HVD_STEP_PUT && step->to.kind != HVD_PLACE_SEND && away > 0) {
        return (double)step->bytes *
               (seat.is_read_by_all ? 1 : (double)away / (seat.local_size - 1));
    }
    if (step->kind == HVD_STEP_REDUCE_LOCAL && step->to.kind == HVD_PLACE_OUT) {
        return away > 0 ? (double)step->count * sizeof(float) : 0;
    }
    return 0;
}

static double own_work(const struct simulate_machine *machine, int local_size,
                       const struct hvd_step *step)
{
    switch (step->kind) {
    case HVD_STEP_PUT:
        return machine->step + (double)step->bytes / machine->pcie;
    case HVD_STEP_GET:
        return machine->step + (double)step->bytes / machine->out;
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

double simulate_step_work(const struct simulate_machine *machine,
                          struct simulate_seat seat, const struct hvd_step *step)
{
    double own = own_work(machine, seat.local_size, step);

    return machine->cross > 0 ? own + crossing_bytes(seat, step) / machine->cross : own;
}

double simulate_receive_work(const struct simulate_machine *machine,
                             const struct hvd_step *step)
{
    if (step->kind != HVD_STEP_RECV_REDUCE) {
        return 0;
    }
    return (double)step->bytes / machine->sum +
           (step->to_output ? (double)step->bytes / machine->out : 0);
}
