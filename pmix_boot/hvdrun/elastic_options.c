/* SPDX-License-Identifier: Apache-2.0 */
#include "pmix_boot/hvdrun/elastic_options.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/env.h"
#include "gpu_binding/plan.h"

enum {
    TIMEOUT_S = 600,
    MOST_S = INT_MAX / 1000
};

static const struct {
    const char *name;
    size_t field; /* offset of an int */
    int least;
    int most;
} numbers[] = {
    {"min-num-proc", offsetof(struct hvdrun_elastic_options, min), 1, HVD_PLAN_RANKS_MAX},
    {"max-num-proc", offsetof(struct hvdrun_elastic_options, max), 1, HVD_PLAN_RANKS_MAX},
    {"slots-per-host", offsetof(struct hvdrun_elastic_options, slots_per_host), 1,
     HVD_PLAN_RANKS_MAX},
    {"elastic-timeout", offsetof(struct hvdrun_elastic_options, timeout_s), 1, MOST_S},
    {"reset-limit", offsetof(struct hvdrun_elastic_options, reset_limit), 0, INT_MAX},
};

static int read_number(const char *text, int least, int most, int *out)
{
    char *end;
    long number = strtol(text, &end, 10);

    if (end == text || *end != '\0' || number < least || number > most) {
        return HVD_ERR_ARG;
    }
    *out = (int)number;
    return 0;
}

static int set_range(struct hvdrun_elastic_options *options, const char *value,
                     struct hvd_error *err)
{
    char low[16] = "";
    int min;
    int max;

    if (sscanf(value, "%15[0-9]", low) != 1 || value[strlen(low)] != ' ' ||
        read_number(low, 1, MOST_S, &min) < 0 ||
        read_number(value + strlen(low) + 1, min, MOST_S, &max) < 0) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "--blacklist-cooldown-range %s: expected two numbers of seconds, "
                        "the first from 1 to the second",
                        value);
    }
    options->cooldown_min_s = min;
    options->cooldown_max_s = max;
    return 0;
}

static int set_discovery(struct hvdrun_elastic_options *options, const char *value,
                         struct hvd_error *err)
{
    char *copy = strdup(value);

    if (copy == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the options");
    }
    free(options->discovery);
    options->discovery = copy;
    return 0;
}

static int set_number(struct hvdrun_elastic_options *options, size_t i, const char *value,
                      struct hvd_error *err)
{
    int *field = (int *)((char *)options + numbers[i].field);

    if (read_number(value, numbers[i].least, numbers[i].most, field) < 0) {
        return hvd_fail(err, HVD_ERR_ARG, "--%s %s: expected a whole number, %d to %d",
                        numbers[i].name, value, numbers[i].least, numbers[i].most);
    }
    options->has_reset_limit = options->has_reset_limit || field == &options->reset_limit;
    return 0;
}

int hvdrun_elastic_options_set(struct hvdrun_elastic_options *options, const char *name,
                               const char *value, struct hvd_error *err)
{
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (strcmp(numbers[i].name, name) == 0) {
            return set_number(options, i, value, err);
        }
    }
    return strcmp(name, "host-discovery-script") == 0 ? set_discovery(options, value, err)
                                                      : set_range(options, value, err);
}

bool hvdrun_elastic_options_are_on(const struct hvdrun_elastic_options *options)
{
    return options->min > 0 || options->max > 0 || options->discovery != NULL;
}

static int default_timeout(void)
{
    const char *text = getenv(HVD_ENV_ELASTIC_TIMEOUT);
    int seconds;

    return text != NULL && read_number(text, 1, MOST_S, &seconds) == 0 ? seconds
                                                                       : TIMEOUT_S;
}

int hvdrun_elastic_options_complete(struct hvdrun_elastic_options *options, int *ranks,
                                    struct hvd_error *err)
{
    if (!hvdrun_elastic_options_are_on(options)) {
        bool has_any = options->timeout_s > 0 || options->has_reset_limit ||
                       options->cooldown_max_s > 0 || options->slots_per_host > 0;

        return has_any
                   ? hvd_fail(err, HVD_ERR_ARG,
                              "an option of elastic jobs needs --min-np N: as few ranks "
                              "as may go on")
                   : 0;
    }
    *ranks = *ranks > 0 ? *ranks : options->min;
    if (*ranks == 0) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "how many ranks shall begin? -np N, or --min-np N");
    }
    options->min = options->min > 0 ? options->min : *ranks;
    options->max = options->max > 0 ? options->max : *ranks;
    options->timeout_s = options->timeout_s > 0 ? options->timeout_s : default_timeout();
    if (options->min > *ranks || options->max < *ranks) {
        return hvd_fail(err, HVD_ERR_ARG, "-np %d is not from --min-np %d to --max-np %d",
                        *ranks, options->min, options->max);
    }
    return 0;
}

void hvdrun_elastic_options_finish(struct hvdrun_elastic_options *options)
{
    free(options->discovery);
}
