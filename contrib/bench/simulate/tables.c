/* SPDX-License-Identifier: Apache-2.0 */
/* Published cases and larger ones, Horovod's schedule beside ours. */
#include "contrib/bench/simulate/tables.h"

#include <stdio.h>

#include "contrib/bench/simulate/training.h"

struct row {
    const char *options;
    const char *published;
};

static int print_row(const struct row *row, struct hvd_error *err)
{
    double efficiency[2];
    struct simulate_training training[2];
    struct simulate_options options;
    int status = 0;

    for (int i = 0; i < 2 && status == 0; i++) {
        options = simulate_defaults(i == 0 ? SIMULATE_HOROVOD : SIMULATE_HVD);
        status = simulate_parse(row->options, &options, err);
        status = status != 0 ? status : simulate_training(&options, &training[i], err);
        efficiency[i] = training[i].efficiency * 100;
    }
    if (status == 0) {
        printf("| %s | %.1f | %s | %.1f %% | %.1f | %.1f %% | %.1f |\n", row->options,
               training[0].alone * 1e3, row->published, efficiency[0],
               training[0].exposed * 1e3, efficiency[1], training[1].exposed * 1e3);
        fflush(stdout);
    }
    return status;
}

static int print_table(const char *title, const struct row *rows, struct hvd_error *err)
{
    int status = 0;

    printf("\n## %s\n\n", title);
    printf("| case | step alone, ms | published | Horovod's schedule | not hidden, ms | "
           "hvd | "
           "not hidden, ms |\n|---|---|---|---|---|---|---|\n");
    for (; rows->options != NULL && status == 0; rows++) {
        status = print_row(rows, err);
    }
    return status;
}

static const struct row published[] = {
    {"model=inception3", "90 %"},
    {"model=resnet101", "90 %"},
    {"model=vgg16", "68 %"},
    {NULL, NULL},
};

static const struct row v100[] = {
    {"model=resnet101,nodes=3,device=v100,link=10Gb", ""},
    {"model=resnet101,nodes=3,device=v100,link=25Gb", ""},
    {"model=resnet101,nodes=3,device=v100,link=100Gb", ""},
    {NULL, NULL},
};

static const struct row large[] = {
    {"model=resnet101,nodes=1024", ""},
    {"model=vgg16,nodes=1024", ""},
    {NULL, NULL},
};

int simulate_tables(struct hvd_error *err)
{
    struct simulate_options options = simulate_defaults(SIMULATE_HVD);
    int status;

    simulate_print_assumptions(&options);
    status = print_table("512 GPUs", published, err);
    status = status != 0 ? status : print_table("12 V100", v100, err);
    return status != 0 ? status : print_table("1,024 nodes", large, err);
}
