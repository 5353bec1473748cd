/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of the simulation. */
#include "contrib/bench/simulate/simulate.h"

#include <stdio.h>
#include <string.h>

#include "contrib/bench/simulate/collective.h"
#include "contrib/bench/simulate/tables.h"
#include "contrib/bench/simulate/training.h"

static int print_training(const struct simulate_options *options, struct hvd_error *err)
{
    struct simulate_training training;
    int status = simulate_training(options, &training, err);

    if (status == 0) {
        printf(
            "\nstep alone %.1f ms; slowest of %d ranks %.1f ms; with communication %.1f "
            "ms\n",
            training.alone * 1e3, options->machine.nodes * options->machine.gpus,
            training.compute * 1e3, training.step * 1e3);
        printf("not hidden %.1f ms; network busy %.1f ms, %d batches\n",
               training.exposed * 1e3, training.busy * 1e3, training.batches);
        printf("%.0f samples/s, scaling efficiency %.1f %%\n",
               options->batch * options->machine.nodes * options->machine.gpus /
                   training.step,
               training.efficiency * 100);
    }
    return status;
}

static int print_allreduce(const struct simulate_options *options, struct hvd_error *err)
{
    struct simulate_result result = {.algorithm = "ring"};
    int status = 0;

    if (options->schedule == SIMULATE_HVD) {
        status = simulate_allreduce(&options->machine, options->bytes,
                                    options->whole != 0, &result, err);
    } else {
        result.seconds = simulate_ring(options, options->bytes);
    }
    if (status == 0) {
        printf("\n%.0f bytes: %.2f us, %s, %lld messages of the busiest rank%s%s\n",
               options->bytes, result.seconds * 1e6, result.algorithm,
               (long long)result.messages, result.is_mirrored ? ", one node for all" : "",
               result.is_extrapolated ? ", some chunks for all" : "");
    }
    return status;
}

static int print_one(const char *text, struct hvd_error *err)
{
    bool is_horovod = strstr(text, "schedule=horovod") != NULL;
    struct simulate_options options =
        simulate_defaults(is_horovod ? SIMULATE_HOROVOD : SIMULATE_HVD);
    int status = simulate_parse(text, &options, err);

    if (status != 0) {
        return status;
    }
    simulate_print_assumptions(&options);
    return options.bytes > 0 ? print_allreduce(&options, err)
                             : print_training(&options, err);
}

int hvd_simulate(int argc, char **argv)
{
    struct hvd_error err = {0};
    int status;

    if (argc != 2) {
        fprintf(stderr, "hvd-bench: --simulate: expected one argument, name=value,... or "
                        "--tables; see hvd-bench --simulate --help\n");
        return 2;
    }
    if (strcmp(argv[1], "--help") == 0) {
        struct simulate_options options = simulate_defaults(SIMULATE_HVD);

        printf("usage: hvd-bench --simulate name=value,... | --tables\n\n"
               "options and defaults:\n");
        simulate_print_assumptions(&options);
        return 0;
    }
    status = strcmp(argv[1], "--tables") == 0 ? simulate_tables(&err)
                                              : print_one(argv[1], &err);
    if (status != 0) {
        fprintf(stderr, "hvd-bench: --simulate: %s\n", err.text);
    }
    return status == 0 ? 0 : status == HVD_ERR_ARG ? 2 : 1;
}
