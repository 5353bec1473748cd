/* SPDX-License-Identifier: Apache-2.0 */
/* What hvd's ranks pay to agree on many tensors, without Python; agreement.py has Horovod, too.
 *
 *   hvdrun -np 4 agreement [COUNT [STEPS]]
 *
 * A step submits COUNT tensors of one element (default 161, as ResNet-50 has) and waits for all.
 * Rank 0 prints microseconds, each of the slowest rank: a step with names that nobody knows
 * (median of FIRST_STEPS); the median of STEPS (default 1000) later ones; of these, the time
 * until all tensors were submitted; and the median step of one tensor of COUNT elements, which
 * is one agreement and all the data. Then the processor time in a step, of all ranks. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "contrib/bench/batch.h"
#include "contrib/bench/median.h"

enum {
    FIRST_STEPS = 3,
    WARM_UP_STEPS = 50,
    MOST_STEPS = 10000
};

struct figures {
    double first, step, submit, one, processor; /* seconds */
};

static double over_ranks(double value, enum hvd_op op)
{
    struct hvd_tensor tensor = {.name = "over_ranks",
                                .input = &value,
                                .output = &value,
                                .dtype = HVD_FLOAT64,
                                .device = HVD_DEVICE_CPU};
    struct hvd_request *request;

    if (hvd_allreduce_start(&tensor, 1, op, 1, 1, HVD_SET_GLOBAL, &request, NULL) != 0 ||
        hvd_wait(request, NULL) != 0) {
        exit(1);
    }
    hvd_request_free(request);
    return value;
}

static double processor_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Returns the seconds of the whole step. */
static double run_step(struct batch *batch, double *submit)
{
    double start = seconds_now();

    *submit = batch_run(batch);
    return seconds_now() - start;
}

static double first_steps(int count)
{
    double times[FIRST_STEPS], submit;
    struct batch batch;
    char prefix[16];

    for (int i = 0; i < FIRST_STEPS; i++) {
        snprintf(prefix, sizeof(prefix), "first%d", i);
        batch_init(&batch, prefix, count, 1);
        over_ranks(0, HVD_SUM); /* the ranks begin together */
        times[i] = run_step(&batch, &submit);
        batch_check(&batch, prefix);
        batch_finish(&batch);
    }
    return median(times, FIRST_STEPS);
}

static void later_steps(struct batch *batch, int steps, struct figures *figures)
{
    static double times[MOST_STEPS], submits[MOST_STEPS];
    double processor;

    for (int i = 0; i < WARM_UP_STEPS; i++) {
        batch_run(batch);
    }
    processor = processor_now();
    for (int i = 0; i < steps; i++) {
        times[i] = run_step(batch, &submits[i]);
    }
    figures->processor = (processor_now() - processor) / steps;
    figures->step = median(times, steps);
    figures->submit = median(submits, steps);
}

static void measure(int count, int steps, struct figures *figures)
{
    struct figures whole;
    struct batch batch;

    for (int i = 0; i < WARM_UP_STEPS; i++) {
        over_ranks(0, HVD_MAX);
    }
    figures->first = first_steps(count);
    batch_init(&batch, "tensor", count, 1);
    later_steps(&batch, steps, figures);
    batch_finish(&batch);
    batch_init(&batch, "one", 1, count);
    later_steps(&batch, steps, &whole);
    batch_finish(&batch);
    figures->one = whole.step;
}

static void print(const struct figures *mine)
{
    const double times[] = {mine->first, mine->step, mine->submit, mine->one};
    double slowest[4], processor = over_ranks(mine->processor, HVD_SUM);

    for (int i = 0; i < 4; i++) {
        slowest[i] = over_ranks(times[i], HVD_MAX);
    }
    if (hvd_rank() == 0) {
        printf("%10s %10s %10s %10s %10s\n", "first us", "step us", "submit us", "one us",
               "cpu us");
        printf("%10.0f %10.0f %10.0f %10.0f %10.0f\n", slowest[0] * 1e6, slowest[1] * 1e6,
               slowest[2] * 1e6, slowest[3] * 1e6, processor * 1e6);
    }
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 161;
    int steps = argc > 2 ? atoi(argv[2]) : 1000;
    struct figures figures;
    struct hvd_error err;

    if (count < 1 || steps < 1 || steps > MOST_STEPS || hvd_init(&err) != 0) {
        fprintf(stderr,
                "agreement [COUNT [STEPS]]: a number is wrong, or hvd_init fails\n");
        return 1;
    }
    measure(count, steps, &figures);
    print(&figures);
    return hvd_shutdown();
}
