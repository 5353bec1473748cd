/* SPDX-License-Identifier: Apache-2.0 */
/* Data-parallel training in C with hvd.h alone: fits a straight line to noisy points.
 *
 *   cc fit.c $(pkg-config --cflags --libs hvd) -o fit
 *   hvdrun -np 4 ./fit         # or: srun --hvd ./fit
 *
 * Each rank has a part of the points and computes their gradient in each step. The sum
 * over all ranks is the gradient of all points, so the line is the same for any number of
 * ranks. Rank 0 prints it. */
#include <hvd.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    POINTS = 1200,
    STEPS = 400
};

static const double slope = 2.5, intercept = -1.0, rate = 0.5;

/* Ends the program after a failure. hvd then ends the other ranks with an error. */
static void check_status(int status, const struct hvd_error *error)
{
    if (status != 0) {
        fprintf(stderr, "fit: %s\n", error->text);
        exit(1);
    }
}

/* Waits for a request and frees it. */
static void finish_request(struct hvd_request *request)
{
    struct hvd_error error;

    check_status(hvd_wait(request, &error), &error);
    hvd_request_free(request);
}

/* Replaces values[i] by the sum of the values[i] of all ranks. The ranks match tensors by
 * name. */
static void sum_over_ranks(const char *name, double *values, int64_t count)
{
    const struct hvd_tensor tensor = {.name = name,
                                      .input = values,
                                      .output = values, /* in place */
                                      .shape = &count,
                                      .ndim = 1,
                                      .dtype = HVD_FLOAT64,
                                      .device = HVD_DEVICE_CPU};
    struct hvd_request *request;
    struct hvd_error error;

    check_status(hvd_allreduce_start(&tensor, 1, HVD_SUM, 1.0, 1.0, HVD_SET_GLOBAL,
                                     &request, &error),
                 &error);
    /* The program could compute something else before this call. */
    finish_request(request);
}

/* Copies the values of rank 0 to all ranks. */
static void take_from_rank_0(const char *name, double *values, int64_t count)
{
    const struct hvd_tensor tensor = {.name = name,
                                      .input = values,
                                      .output = values,
                                      .shape = &count,
                                      .ndim = 1,
                                      .dtype = HVD_FLOAT64,
                                      .device = HVD_DEVICE_CPU};
    struct hvd_request *request;
    struct hvd_error error;

    check_status(hvd_broadcast_start(&tensor, 0, HVD_SET_GLOBAL, &request, &error),
                 &error);
    finish_request(request);
}

/* Computes point i, which is near the line. The mean of the noise is 0. */
static void point(int i, double *x, double *y)
{
    double noise = 0.1 * ((i * 7919) % 201 - 100) / 100.0;

    *x = (double)i / POINTS;
    *y = slope * *x + intercept + noise;
}

/* Adds the gradient of the mean squared error over this rank's points. */
static void add_gradient(const double *line, double *gradient)
{
    for (int i = hvd_rank(); i < POINTS; i += hvd_size()) {
        double x, y, error;

        point(i, &x, &y);
        error = line[0] * x + line[1] - y;
        gradient[0] += 2.0 * error * x / POINTS;
        gradient[1] += 2.0 * error / POINTS;
    }
}

int main(void)
{
    struct hvd_error error;
    double line[2] = {0.0, 0.0};

    check_status(hvd_init(&error), &error);
    if (hvd_rank() == 0) {
        line[0] = 1.0; /* an initial guess, which only rank 0 has */
    }
    take_from_rank_0("line", line, 2);
    for (int step = 0; step < STEPS; step++) {
        double gradient[2] = {0.0, 0.0};

        add_gradient(line, gradient);
        sum_over_ranks("gradient", gradient, 2);
        line[0] -= rate * gradient[0];
        line[1] -= rate * gradient[1];
    }
    if (hvd_rank() == 0) {
        printf("y = %.6f x %+.6f\n", line[0], line[1]);
    }
    hvd_shutdown();
    return 0;
}
