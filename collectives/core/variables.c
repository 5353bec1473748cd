/* SPDX-License-Identifier: Apache-2.0 */
/* The names of Horovod's variables and of hvd's settings, to tell a typing error from a
 * known name. */
#include "collectives/core/variables.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "gpu_binding/base/env.h"
#include "gpu_binding/base/env_names.h" /* made from env.h by meson.build */

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

#define NO_MPI "hvd does not use MPI"
#define NO_GLOO "hvd does not use Gloo but connects the ranks itself"
#define OWN_WAYS "hvd always works within nodes first, where that is faster"

/* Longer than any known name. */
enum {
    NAME_BYTES = 64
};

/* The most letters that may be wrong, missing or extra in a name that is taken for a
 * known one. */
static const int most_typos = 3;

/* Variables of Horovod that have no effect. */
static const struct {
    const char *name;
    const char *reason;
} without_effect[] = {
    {HVD_ENV_HIERARCHICAL_ALLGATHER, OWN_WAYS},
    {HVD_ENV_NCCL_STREAMS, "hvd launches NCCL on one stream of each GPU"},
    {HVD_ENV_BATCH_COPIES,
     "hvd moves small GPU tensors together wherever it has kernels"},
    {HVD_ENV_ASYNC_COMPLETION, "the framework's stream always waits by an event"},
    {HVD_ENV_XLA_OPS, "hvd has no operations for XLA"},
    {HVD_ENV_CONTROLLER, "hvd has only one controller"},
    {HVD_ENV_CPU_OPERATIONS, "hvd has only operations of its own"},
    {HVD_ENV_CCL_CACHE, "hvd does not use oneCCL"},
    {HVD_ENV_MPI_THREADS_DISABLE, NO_MPI},
    {HVD_ENV_ADASUM_CHUNK, NO_MPI},
    {HVD_ENV_RENDEZVOUS_ADDR, NO_GLOO},
    {HVD_ENV_RENDEZVOUS_PORT, NO_GLOO},
    {HVD_ENV_HOROVOD_START_TIMEOUT, HVD_ENV_START_TIMEOUT " sets how long init waits"},
};

/* All of Horovod's variables, also those that other programs read. */
static const char *const horovod_names[] = {HVD_ENV_HOROVOD_NAMES};

static const char *const families[] = {HVD_ENV_FAMILIES};

/* hvd's own settings. Other names with their prefix may belong to scripts. */
static const char own_prefix[] = "HVD_";

static const char *const own_settings[] = {HVD_ENV_OWN_SETTINGS};

static bool begins_with(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

static bool is_of_family(const char *name)
{
    for (size_t i = 0; i < LENGTH(families); i++) {
        if (begins_with(name, families[i])) {
            return true;
        }
    }
    return false;
}

static bool is_known(const char *name)
{
    for (size_t i = 0; i < LENGTH(horovod_names); i++) {
        if (strcmp(horovod_names[i], name) == 0) {
            return true;
        }
    }
    return is_of_family(name);
}

/* Returns why a variable has no effect; NULL: it has one, or is unknown. */
static const char *find_reason(const char *name)
{
    for (size_t i = 0; i < LENGTH(without_effect); i++) {
        if (strcmp(without_effect[i].name, name) == 0) {
            return without_effect[i].reason;
        }
    }
    return NULL;
}

static int least_of(int a, int b)
{
    return a < b ? a : b;
}

/* Counts the letters to change, add or drop to turn one name into the other. Both are
 * shorter than NAME_BYTES. */
static int edit_distance(const char *from, const char *to)
{
    int length = (int)strlen(to);
    int row[NAME_BYTES];

    for (int i = 0; i <= length; i++) {
        row[i] = i;
    }
    for (int i = 0; from[i] != '\0'; i++) {
        int diagonal = row[0];

        row[0] = i + 1;
        for (int k = 0; k < length; k++) {
            int replaced = diagonal + (from[i] == to[k] ? 0 : 1);

            diagonal = row[k + 1];
            row[k + 1] = least_of(replaced, least_of(diagonal, row[k]) + 1);
        }
    }
    return row[length];
}

/* Returns the known name that is most like a wrong one; NULL: none is. A name that is the
 * beginning of a known one, or begins with it, counts as like it. */
static const char *nearest_name(const char *name)
{
    const char *found = NULL;
    int fewest = most_typos + 1;

    for (size_t i = 0; i < LENGTH(horovod_names); i++) {
        const char *known = horovod_names[i];
        int typos = edit_distance(name, known);

        if (begins_with(name, known) || begins_with(known, name)) {
            typos = least_of(typos, most_typos);
        }
        if (typos < fewest) {
            fewest = typos;
            found = known;
        }
    }
    return found;
}

static bool asks_for_nothing(const char *value)
{
    return value[0] == '\0' || strcmp(value, "0") == 0 || strcasecmp(value, "false") == 0;
}

static void check_one(const char *name, const char *value, enum hvd_log_level level)
{
    const char *reason = find_reason(name), *meant;

    if (reason != NULL && !asks_for_nothing(value)) {
        hvd_log(HVD_LOG_INFO, "%s=%.64s has no effect: %s", name, value, reason);
    }
    if (is_known(name)) {
        return;
    }
    meant = nearest_name(name);
    hvd_log(level, "%s=%.64s is ignored: there is no such variable%s%s%s", name, value,
            meant != NULL ? "; did you mean " : "", meant != NULL ? meant : "",
            meant != NULL ? "?" : "");
}

/* Warns of a name that is almost a setting's. Does not show the value: it may be meant as
 * a secret. */
static void check_own(const char *name, enum hvd_log_level level)
{
    const size_t length = strlen(name);
    const int most = length < 8 ? 0 : length < 12 ? 1 : 2;
    const char *meant = NULL;

    for (size_t i = 0; i < LENGTH(own_settings); i++) {
        const int typos = edit_distance(name, own_settings[i]);

        if (typos == 0) {
            return;
        }
        if (typos <= most) {
            meant = own_settings[i];
        }
    }
    if (meant != NULL) {
        hvd_log(level, "%s is ignored: hvd has no such variable; did you mean %s?", name,
                meant);
    }
}

void hvd_variables_check(const char *const *environment, enum hvd_log_level level)
{
    for (; *environment != NULL; environment++) {
        const char *value = strchr(*environment, '=');
        char name[NAME_BYTES];

        if (value == NULL) {
            continue;
        }
        snprintf(name, sizeof(name), "%.*s", (int)(value - *environment), *environment);
        if (begins_with(name, HVD_ENV_FAMILY_ALL)) {
            check_one(name, value + 1, level);
        } else if (begins_with(name, own_prefix)) {
            check_own(name, level);
        }
    }
}
