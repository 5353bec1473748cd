/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of the simulation, and its tables. */
#include "contrib/bench/simulate/simulate.h"

#include <stdio.h>
#include <string.h>

#include "contrib/bench/simulate/collective.h"
#include "contrib/bench/simulate/training.h"

/* --- one prediction --- */

static int print_training(const struct simulate_options *options, struct hvd_error *err)
{
    int ranks = options->machine.nodes * options->machine.gpus;
    struct simulate_training training;
    int status = simulate_training(options, &training, err);

    if (status < 0) {
        return status;
    }
    printf(
        "\nstep alone %.1f ms; slowest of %d ranks %.1f ms; with communication %.1f ms\n",
        training.alone * 1e3, ranks, training.compute * 1e3, training.step * 1e3);
    printf("not hidden %.1f ms; network busy %.1f ms, %d batches\n",
           training.exposed * 1e3, training.busy * 1e3, training.batches);
    printf("%.0f samples/s, scaling efficiency %.1f %%\n",
           options->batch * ranks / training.step, training.efficiency * 100);
    return 0;
}

static int print_allreduce(const struct simulate_options *options, struct hvd_error *err)
{
    struct simulate_result result;
    int status =
        simulate_allreduce(&options->machine, options->bytes, false, &result, err);

    if (status < 0) {
        return status;
    }
    printf("\n%.0f bytes: %.2f us, %s, %lld messages of the busiest rank%s%s\n",
           options->bytes, result.seconds * 1e6, result.algorithm,
           (long long)result.messages,
           result.is_mirrored ? ", one node simulated for all" : "",
           result.is_extrapolated ? ", some chunks for all" : "");
    return 0;
}

static int print_one(const char *text, struct hvd_error *err)
{
    struct simulate_options options = simulate_defaults();
    int status = simulate_parse(text, &options, err);

    if (status < 0) {
        return status;
    }
    simulate_print_assumptions(&options);
    return options.bytes > 0 ? print_allreduce(&options, err)
                             : print_training(&options, err);
}

/* --- tables --- */

static const char *const steps[] = {
    "model=resnet50",
    "model=resnet101",
    "model=vgg16",
    "model=bert,batch=32",
    "nodes=1024,model=resnet101",
    "nodes=1024,model=vgg16",
    "nodes=1024,model=bert,batch=32",
    "nodes=1024,model=vgg16,link=100Gb",
    "nodes=1024,gpus=8,cards=4,link=100Gb,model=resnet101,compute=286ms",
    "nodes=1024,gpus=8,cards=4,link=100Gb,model=bert,batch=32,compute=229ms",
};

static int print_step(const char *text, struct hvd_error *err)
{
    struct simulate_options options = simulate_defaults();
    struct simulate_training training;
    int status = simulate_parse(text, &options, err);

    if (status == 0) {
        status = simulate_training(&options, &training, err);
    }
    if (status == 0) {
        printf("| %s | %.1f | %.1f | %.1f | %.1f %% |\n", text, training.alone * 1e3,
               training.compute * 1e3, training.exposed * 1e3, training.efficiency * 100);
        fflush(stdout);
    }
    return status;
}

static int print_tables(struct hvd_error *err)
{
    static const double sizes[] = {8, 64 << 10, 4 << 20, 64 << 20};
    static const int nodes[] = {2, 8, 32, 128, 512, 1024};
    struct simulate_options options = simulate_defaults();
    struct simulate_result result;
    int status = 0;

    printf("| step of a training | alone, ms | slowest rank | not hidden | efficiency |\n"
           "|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && status == 0; i++) {
        status = print_step(steps[i], err);
    }
    printf("\n| an allreduce of bytes, us | 2 nodes | 8 | 32 | 128 | 512 | 1,024 |\n"
           "|---|---|---|---|---|---|---|");
    for (int i = 0; i < 4 * 6 && status == 0; i++) {
        options.machine.nodes = nodes[i % 6];
        status = simulate_allreduce(&options.machine, sizes[i / 6], false, &result, err);
        if (status == 0 && i % 6 == 0) {
            printf("\n| %.0f |", sizes[i / 6]);
        }
        if (status == 0) {
            printf(" %s %.1f |", result.algorithm, result.seconds * 1e6);
        }
    }
    printf("\n");
    return status;
}

/* --- command line --- */

int hvd_simulate(int argc, char **argv)
{
    struct simulate_options options = simulate_defaults();
    struct hvd_error err = {0};
    int status;

    if (argc != 2) {
        fprintf(stderr, "hvd-bench: --simulate: expected one argument, name=value,... or "
                        "--tables; see hvd-bench --simulate --help\n");
        return 2;
    }
    if (strcmp(argv[1], "--help") == 0) {
        printf("usage: hvd-bench --simulate name=value,... | --tables\n\n"
               "options and defaults:\n");
        simulate_print_assumptions(&options);
        return 0;
    }
    status =
        strcmp(argv[1], "--tables") == 0 ? print_tables(&err) : print_one(argv[1], &err);
    if (status < 0) {
        fprintf(stderr, "hvd-bench: --simulate: %s\n", err.text);
    }
    return status == 0 ? 0 : status == HVD_ERR_ARG ? 2 : 1;
}
