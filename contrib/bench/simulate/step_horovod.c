/* SPDX-License-Identifier: Apache-2.0 */
/* Horovod 0.15 on GPUs: rank 0 collects what is ready once a cycle; tensors are fused in their order
 * up to the threshold; NCCL runs one ring over all ranks after the other. */
#include <math.h>

#include "contrib/bench/simulate/training.h"

/* Fusion copies in and out at the speed of GPU memory, read and written (P100: 732 GB/s). */
static const double fusion_copy = 250e9;

/* Each rank sends and receives 2 (n - 1) / n of the bytes. The ring crosses each card once in each
 * direction, so that a card carries what one rank sends; with several cards there are
 * several rings. Its first byte takes 2 (n - 1) hops. */
double simulate_ring(const struct simulate_options *options, double bytes)
{
    const struct simulate_machine *machine = &options->machine;
    double ranks = (double)machine->nodes * machine->gpus;
    double between = machine->link * machine->cards;
    double rate =
        machine->nodes > 1 && between < machine->nvlink ? between : machine->nvlink;
    double far = machine->nodes > 1 ? machine->nodes : 0;
    double lap = far * options->hop + (ranks - far) * options->hop / 3;

    return ranks > 1 ? 2 * (ranks - 1) / ranks * (bytes / rate + lap) : 0;
}

int simulate_step_horovod(const struct simulate_options *options,
                          const struct simulate_gradients *gradients,
                          struct simulate_training *training, struct hvd_error *err)
{
    const struct simulate_model *model = gradients->model;
    double ranks = (double)options->machine.nodes * options->machine.gpus;
    double cycle = options->cycle > 0 ? options->cycle : 1e-5;
    double free_at = 0; /* the network */
    double now = 0;
    int next = 0;

    (void)err;
    while (next < model->count) {
        double seen = gradients->begin + gradients->backward * model->tensors[next].ready;

        /* The first cycle that begins after that; on average it is half over. */
        now += cycle * ceil((seen - now) / cycle > 1 ? (seen - now) / cycle : 1);
        for (int end = next; next < model->count; next = end) {
            double bytes = 0, took;

            for (; end < model->count; end++) {
                const struct simulate_tensor *tensor = &model->tensors[end];
                double more = (double)tensor->elements * sizeof(float);

                if (gradients->begin + gradients->backward * tensor->ready > now ||
                    (end > next && bytes + more > options->fusion)) {
                    break;
                }
                bytes += more;
            }
            if (end == next) {
                break;
            }
            took = simulate_ring(options, bytes) + 2 * bytes / fusion_copy;
            free_at = fmax(free_at, now + options->coordinator * ranks) + took;
            training->busy += took;
            training->batches++;
        }
    }
    training->step = free_at;
    return 0;
}
