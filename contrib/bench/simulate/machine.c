/* SPDX-License-Identifier: Apache-2.0 */
/* Options of a simulation: their names, units, defaults and reasons. */
#include "contrib/bench/simulate/machine.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum unit {
    COUNT,
    RATE,
    TIME,
    BYTES,
    RATIO,
    WORD,
};

struct option {
    const char *name;
    size_t offset;
    enum unit unit;
    const char *meaning;
};

#define OPTION(name, field, unit, meaning)                                               \
    {                                                                                    \
        name, offsetof(struct simulate_options, field), unit, meaning                    \
    }

static const struct option options_known[] = {
    OPTION("nodes", machine.nodes, COUNT, "nodes"),
    OPTION("gpus", machine.gpus, COUNT, "ranks per node"),
    OPTION("cards", machine.cards, COUNT,
           "network cards per node; rank r uses card r mod cards"),
    OPTION("link", machine.link, RATE,
           "what a card takes in each direction, one message after the other; GB: "
           "payload, Gb: the "
           "line, of which 92 % is payload"),
    OPTION("latency", machine.latency, TIME,
           "from the sender's card to the receiver's software"),
    OPTION("message", machine.message, TIME,
           "processor time of a message at either end, or of each 64000 bytes of it"),
    OPTION("netcopy", machine.netcopy, RATE,
           "a core's rate over message bytes at either end (0: the card does it)"),
    OPTION("pcie", machine.pcie, RATE, "staging in (and out), each rank"),
    OPTION("out", machine.out, RATE, "staging out, each rank (0: as in)"),
    OPTION("sum", machine.sum, RATE, "input that a core adds up"),
    OPTION("cross", machine.cross, RATE,
           "bytes that go from core to core, besides (0: no time)"),
    OPTION("memory", machine.memory, RATE, "what all ranks of a node copy together"),
    OPTION("cores", machine.cores, COUNT,
           "cores per node; rank r is on core r mod cores"),
    OPTION("patience", machine.patience, TIME,
           "how long a rank that waits looks before it makes way for others of its core"),
    OPTION("switch", machine.switching, TIME, "of a core from one rank to another"),
    OPTION("sync", machine.sync, TIME, "until the other ranks of a node see a signal"),
    OPTION("step", machine.step, TIME, "of any step of a schedule"),
    OPTION("calls", machine.calls, COUNT,
           "allreduces one after the other, whose mean counts"),
    OPTION("nvlink", machine.nvlink, RATE, "between GPUs of a node, for Horovod's ring"),
    OPTION("model", model, WORD, "gradients, last layer first"),
    OPTION("device", device, WORD, "whose published speed is used"),
    OPTION("batch", batch, RATIO, "samples per GPU and step"),
    OPTION("compute", compute, TIME,
           "of a step on one GPU (0: batch / published samples per second)"),
    OPTION(
        "jitter", jitter, RATIO,
        "standard deviation of a rank's compute time, as a share; a step waits for the "
        "slowest"),
    OPTION("fusion", fusion, BYTES, "fusion threshold"),
    OPTION("cycle", cycle, TIME, "cycle time"),
    OPTION("coordinator", coordinator, TIME, "Horovod: rank 0's time per rank and cycle"),
    OPTION("hop", hop, TIME,
           "Horovod: a hop of the ring between nodes; a third of it within"),
    OPTION("bytes", bytes, BYTES, "one allreduce of this size instead of a model"),
    OPTION("whole", whole, RATIO,
           "not 0: simulate all ranks even where one node can stand for all"),
};

enum {
    OPTION_COUNT = sizeof(options_known) / sizeof(options_known[0]),
};

/* Of a line's rate: RoCEv2 in 1 KiB packets has 78 bytes of headers and gaps each, and
 * acknowledgements. */
#define PAYLOAD_SHARE 0.92

/* The published case: 4 P100 and one 25 Gb RoCE card a node. Staging over PCIe 3.0 x16, host memory
 * of a two-socket server of that time, sums as one core of that time does them. jitter and
 * hop are what makes Horovod's schedule reach the three efficiencies that it has published. */
struct simulate_options simulate_defaults(enum simulate_schedule schedule)
{
    struct simulate_options options = {
        .machine = {.nodes = 128,
                    .gpus = 4,
                    .cards = 1,
                    .link = 25e9 / 8 * PAYLOAD_SHARE,
                    .latency = 5e-6,
                    .message = 0.5e-6,
                    .pcie = 11e9,
                    .sum = 15e9,
                    .memory = 60e9,
                    .cores = 16,
                    .patience = 1e-6,
                    .switching = 1e-6,
                    .sync = 0.3e-6,
                    .step = 0.2e-6,
                    .calls = 1,
                    .nvlink = 10e9},
        .model = "resnet101",
        .device = "p100",
        .schedule = schedule,
        .batch = 64,
        .jitter = 0.03,
        .fusion = schedule == SIMULATE_HVD ? 128 << 20 : 64 << 20,
        .cycle = schedule == SIMULATE_HVD ? 1e-3 : 5e-3,
        .coordinator = 2e-6,
        .hop = 7e-6,
    };

    return options;
}

/* --- reading --- */

struct suffix {
    const char *text;
    enum unit unit;
    double factor;
};

static const struct suffix suffixes[] = {
    {"", COUNT, 1},
    {"", RATIO, 1},
    {"", BYTES, 1},
    {"K", BYTES, 1 << 10},
    {"M", BYTES, 1 << 20},
    {"G", BYTES, 1 << 30},
    {"", RATE, 1},
    {"Gb", RATE, 1e9 / 8 * PAYLOAD_SHARE},
    {"Mb", RATE, 1e6 / 8 * PAYLOAD_SHARE},
    {"GB", RATE, 1e9},
    {"MB", RATE, 1e6},
    {"", TIME, 1e-3},
    {"s", TIME, 1},
    {"ms", TIME, 1e-3},
    {"us", TIME, 1e-6},
    {"ns", TIME, 1e-9},
};

static int read_number(const char *text, const struct option *option, double *value,
                       struct hvd_error *err)
{
    char *end;
    double number = strtod(text, &end);

    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        if (end != text && suffixes[i].unit == option->unit && number >= 0 &&
            strcmp(end, suffixes[i].text) == 0) {
            *value = number * suffixes[i].factor;
            return 0;
        }
    }
    return hvd_fail(
        err, HVD_ERR_ARG,
        "option %s: \"%s\" is not a number with a unit (rates: Gb, GB; times: "
        "us, ms, s; sizes: K, M, G)",
        option->name, text);
}

static int store(const struct option *option, const char *text,
                 struct simulate_options *options, struct hvd_error *err)
{
    char *field = (char *)options + option->offset;
    double value = 0;
    int status;

    if (option->unit == WORD) {
        size_t room = option->offset == offsetof(struct simulate_options, model)
                          ? sizeof(options->model)
                          : sizeof(options->device);

        snprintf(field, room, "%s", text);
        return 0;
    }
    status = read_number(text, option, &value, err);
    if (status != 0) {
        return status;
    }
    if (option->unit == COUNT) {
        if (value < 1 || value > 1 << 20) {
            return hvd_fail(err, HVD_ERR_ARG, "option %s: %s is not between 1 and 2^20",
                            option->name, text);
        }
        *(int *)field = (int)value;
    } else {
        *(double *)field = value;
    }
    return 0;
}

static int take_one(char *text, struct simulate_options *options, struct hvd_error *err)
{
    char *value = strchr(text, '=');

    if (value == NULL) {
        return hvd_fail(err, HVD_ERR_ARG, "\"%s\" is not name=value", text);
    }
    *value++ = '\0';
    if (strcmp(text, "schedule") == 0) {
        bool is_horovod = strcmp(value, "horovod") == 0;

        if (!is_horovod && strcmp(value, "hvd") != 0) {
            return hvd_fail(err, HVD_ERR_ARG, "schedule %s: there are hvd and horovod",
                            value);
        }
        options->schedule = is_horovod ? SIMULATE_HOROVOD : SIMULATE_HVD;
        return 0;
    }
    for (int i = 0; i < OPTION_COUNT; i++) {
        if (strcmp(text, options_known[i].name) == 0) {
            return store(&options_known[i], value, options, err);
        }
    }
    return hvd_fail(err, HVD_ERR_ARG, "there is no option %s", text);
}

int simulate_parse(const char *text, struct simulate_options *options,
                   struct hvd_error *err)
{
    char *copy = strdup(text);
    char *rest = NULL;
    int status = copy != NULL ? 0 : HVD_ERR_NOMEM;

    for (char *word = copy != NULL ? strtok_r(copy, ",", &rest) : NULL;
         word != NULL && status == 0; word = strtok_r(NULL, ",", &rest)) {
        status = take_one(word, options, err);
    }
    free(copy);
    return status;
}

/* --- telling --- */

static void print_value(const struct simulate_options *options,
                        const struct option *option)
{
    const char *field = (const char *)options + option->offset;

    switch (option->unit) {
    case COUNT:
        printf("%d", *(const int *)field);
        break;
    case RATE:
        printf("%.4gGB", *(const double *)field / 1e9);
        break;
    case TIME:
        printf("%.4gus", *(const double *)field * 1e6);
        break;
    case BYTES:
        printf("%.4gM", *(const double *)field / (1 << 20));
        break;
    case RATIO:
        printf("%.4g", *(const double *)field);
        break;
    case WORD:
        printf("%s", field);
        break;
    }
}

void simulate_print_assumptions(const struct simulate_options *options)
{
    printf("- schedule=%s\n", options->schedule == SIMULATE_HVD ? "hvd" : "horovod");
    for (int i = 0; i < OPTION_COUNT; i++) {
        printf("- %s=", options_known[i].name);
        print_value(options, &options_known[i]);
        printf(": %s\n", options_known[i].meaning);
    }
}
