/* SPDX-License-Identifier: Apache-2.0 */
/* What horovodrun's options of elastic jobs say. */
#ifndef HVDRUN_ELASTIC_OPTIONS_H
#define HVDRUN_ELASTIC_OPTIONS_H

#include <stdbool.h>

#include "gpu_binding/base/error.h"

struct hvdrun_elastic_options {
    int min; /* 0: not given; so the others */
    int max;
    int slots_per_host;
    char *discovery; /* a command that prints hosts; NULL */
    int timeout_s;
    bool has_reset_limit;
    int reset_limit;
    int cooldown_min_s; /* before a rank is started again */
    int cooldown_max_s; /* 0: it is not */
};

/* One option by its long name. value "MIN MAX" of a range has both, one space between. */
int hvdrun_elastic_options_set(struct hvdrun_elastic_options *options, const char *name,
                               const char *value, struct hvd_error *err);

bool hvdrun_elastic_options_are_on(const struct hvdrun_elastic_options *options);

/* When all is read: fills in what was not given, and *ranks if that is 0. HVD_ERR_ARG for what
 * does not go together. */
int hvdrun_elastic_options_complete(struct hvdrun_elastic_options *options, int *ranks,
                                    struct hvd_error *err);

void hvdrun_elastic_options_finish(struct hvdrun_elastic_options *options);

#endif
