/* SPDX-License-Identifier: Apache-2.0 */
/* The options of the simulation: names, units, defaults and reasons. */
#include "contrib/bench/simulate/machine.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contrib/bench/simulate/models.h"

enum unit {
    COUNT,
    RATE,
    TIME,
    BYTES,
    RATIO,
    NUMBER,
    WORD,
};

static const struct {
    double least, most;
    const char *text; /* used in messages */
} expected[] = {
    [COUNT] = {1, 1 << 20, "a whole number from 1 to 1048576"},
    [RATE] = {1, 1e18, "a rate above 0, such as 25Gb or 3GB"},
    [TIME] = {0, 1e6, "a time, such as 5us or 1ms"},
    [BYTES] = {0, 1ull << 40, "a size up to 1024G, such as 64M"},
    [RATIO] = {0, 1e6, "a number from 0 to 1000000"},
    [NUMBER] = {1e-6, 1e6, "a number above 0, at most 1000000"},
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
           "speed of a card in each direction, one message after the other; GB: payload, "
           "Gb: the line, of which 92 % is payload"),
    OPTION("latency", machine.latency, TIME,
           "time from the sender's card to the receiver's software"),
    OPTION("message", machine.message, TIME,
           "processor time of a message at either end, or of each 64000 bytes of it"),
    OPTION("pcie", machine.pcie, RATE,
           "rate at which each rank copies between GPU and host"),
    OPTION("sum", machine.sum, RATE, "bytes of input that a core adds up"),
    OPTION("memory", machine.memory, RATE,
           "bytes that all ranks of a node copy together"),
    OPTION("sync", machine.sync, TIME,
           "time until the other ranks of a node see a signal"),
    OPTION("step", machine.step, TIME, "processor time of each step of a schedule"),
    OPTION("model", model, WORD,
           "model that is trained: resnet50, resnet101, vgg16 or bert"),
    OPTION("batch", batch, NUMBER, "samples per GPU and step"),
    OPTION(
        "compute", compute, TIME,
        "time of a step on one GPU (0: batch / published samples per second of a P100)"),
    OPTION(
        "jitter", jitter, RATIO,
        "standard deviation of a rank's compute time, as a share; a step waits for the "
        "slowest"),
    OPTION("fusion", fusion, BYTES, "fusion threshold"),
    OPTION("bytes", bytes, BYTES, "one allreduce of this size instead of a model"),
};

enum {
    OPTION_COUNT = sizeof(options_known) / sizeof(options_known[0]),
    MOST_RANKS = 1 << 20,
};

/* The share of a line's rate that carries data: RoCEv2 in packets of 1 KiB has 78 bytes
 * of headers and gaps for each packet, and acknowledgements. */
#define PAYLOAD_SHARE 0.92

/* The defaults: staging over PCIe 3.0 x16, host memory of a two-socket server of 2017,
 * and sums at the speed of one core of that time. The jitter was fitted to Horovod's
 * published efficiencies on 512 GPUs. */
struct simulate_options simulate_defaults(void)
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
                    .sync = 0.3e-6,
                    .step = 0.2e-6},
        .model = "resnet101",
        .batch = 64,
        .jitter = 0.03,
        .fusion = 128 << 20,
    };

    return options;
}

/* --- reading --- */

/* The factors of suffixes. A number without suffix is in bytes, bytes per second or
 * milliseconds. */
static const struct {
    enum unit unit;
    const char *text;
    double factor;
} suffixes[] = {
    {COUNT, "", 1},
    {RATIO, "", 1},
    {NUMBER, "", 1},
    {BYTES, "", 1},
    {BYTES, "K", 1 << 10},
    {BYTES, "M", 1 << 20},
    {BYTES, "G", 1 << 30},
    {RATE, "", 1},
    {RATE, "Gb", 1e9 / 8 * PAYLOAD_SHARE},
    {RATE, "Mb", 1e6 / 8 * PAYLOAD_SHARE},
    {RATE, "GB", 1e9},
    {RATE, "MB", 1e6},
    {TIME, "", 1e-3},
    {TIME, "s", 1},
    {TIME, "ms", 1e-3},
    {TIME, "us", 1e-6},
    {TIME, "ns", 1e-9},
};

/* Reads a number. Returns a negative number or NAN if the text is no number of this
 * unit. */
static double read_number(const char *text, enum unit unit)
{
    char *end;
    double number = strtod(text, &end);

    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        if (end != text && suffixes[i].unit == unit &&
            strcmp(end, suffixes[i].text) == 0) {
            return number * suffixes[i].factor;
        }
    }
    return -1;
}

static int store(const struct option *option, const char *text,
                 struct simulate_options *options, struct hvd_error *err)
{
    void *field = (char *)options + option->offset;
    double value = read_number(text, option->unit);

    if (option->unit == WORD) {
        snprintf(options->model, sizeof(options->model), "%s", text);
        return 0;
    }
    if (!(value >= expected[option->unit].least &&
          value <= expected[option->unit].most) ||
        (option->unit == COUNT && value != floor(value))) {
        return hvd_fail(err, HVD_ERR_ARG, "%s=%.100s: expected %s", option->name, text,
                        expected[option->unit].text);
    }
    if (option->unit == COUNT) {
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
        return hvd_fail(err, HVD_ERR_ARG,
                        "\"%.100s\": expected name=value, such as nodes=4", text);
    }
    *value++ = '\0';
    for (int i = 0; i < OPTION_COUNT; i++) {
        const struct option *option = &options_known[i];

        if (strcmp(text, option->name) == 0) {
            return store(option, value, options, err);
        }
    }
    return hvd_fail(err, HVD_ERR_ARG,
                    "unknown option %.100s; hvd-bench --simulate --help lists all", text);
}

/* Checks combinations of options. */
static int check_options(const struct simulate_options *options, struct hvd_error *err)
{
    const struct simulate_machine *machine = &options->machine;
    struct simulate_model model;
    int status = simulate_model_find(options->model, &model, err);

    if (status == 0 && (int64_t)machine->nodes * machine->gpus > MOST_RANKS) {
        status = hvd_fail(err, HVD_ERR_ARG,
                          "nodes=%d,gpus=%d: expected at most %d ranks in all",
                          machine->nodes, machine->gpus, MOST_RANKS);
    }
    return status;
}

int simulate_parse(const char *text, struct simulate_options *options,
                   struct hvd_error *err)
{
    char *copy = strdup(text);
    char *rest = copy, *word;
    int status = copy != NULL ? 0 : hvd_fail(err, HVD_ERR_NOMEM, "out of memory");

    while (status == 0 && (word = strsep(&rest, ",")) != NULL) {
        status = take_one(word, options, err);
    }
    free(copy);
    return status != 0 ? status : check_options(options, err);
}

/* --- printing --- */

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
    case NUMBER:
        printf("%.4g", *(const double *)field);
        break;
    case WORD:
        printf("%s", field);
        break;
    }
}

void simulate_print_assumptions(const struct simulate_options *options)
{
    for (int i = 0; i < OPTION_COUNT; i++) {
        printf("- %s=", options_known[i].name);
        print_value(options, &options_known[i]);
        printf(": %s\n", options_known[i].meaning);
    }
}
