/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a command line by the table. */
#include "pmix_boot/hvdrun/options.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"
#include "pmix_boot/hvdrun/config_file.h"
#include "pmix_boot/hvdrun/hosts.h"
#include "pmix_boot/hvdrun/option_table.h"

enum {
    MOST_FILES = 4, /* how deep --config-file may be nested */
    TIMEOUT_S = 600,
    MOST_S = INT_MAX / 1000
};

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static int replace_text(char **text, const char *value, struct hvd_error *err)
{
    char *copy = strdup(value);

    if (copy == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the options");
    }
    free(*text);
    *text = copy;
    return 0;
}

/* --- values ------------------------------------------------------------------------- */

static int fail_value(const char *name, const char *value, const char *expected,
                      struct hvd_error *err)
{
    return hvd_fail(err, HVD_ERR_ARG, "--%s %s: expected %s", name,
                    value[0] != '\0' ? value : "\"\"", expected);
}

/* Returns the number if it is 0 or more, else -1. */
static double read_number(const char *value)
{
    char *end;
    double number = strtod(value, &end);

    return end == value || *end != '\0' || !isfinite(number) || number < 0 ? -1 : number;
}

/* Reads a whole number from least to most. */
static int read_whole(const char *text, int least, int most, int *out)
{
    char *end;
    long number = strtol(text, &end, 10);

    if (end == text || *end != '\0' || number < least || number > most) {
        return HVD_ERR_ARG;
    }
    *out = (int)number;
    return 0;
}

/* --- options with a function of their own ------------------------------------------- */

static int set_hostfile(struct hvdrun_options *options, const char *value,
                        struct hvd_error *err)
{
    char *hosts;
    int status = hvdrun_hostfile_read(value, &hosts, err);

    if (status == 0) {
        free(options->hosts);
        options->hosts = hosts;
    }
    return status;
}

static int set_bind(struct hvdrun_options *options, const char *value,
                    struct hvd_error *err)
{
    return hvd_bind_mode_parse(value, &options->bind) == 0
               ? 0
               : fail_value("bind", value, "auto, socket, cores or none", err);
}

static int set_mpi(struct hvdrun_options *options, const char *value,
                   struct hvd_error *err)
{
    return replace_text(&options->mpi_arguments, value, err);
}

static int add_ssh(struct hvdrun_options *options, const char *option, const char *value,
                   struct hvd_error *err)
{
    const char *before = options->ssh_arguments;
    char *all;

    if (asprintf(&all, "%s%s%s %s", before != NULL ? before : "",
                 before != NULL ? " " : "", option, value) < 0) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the options");
    }
    free(options->ssh_arguments);
    options->ssh_arguments = all;
    return 0;
}

static int set_ssh_port(struct hvdrun_options *options, const char *value,
                        struct hvd_error *err)
{
    int port;

    return read_whole(value, 1, 65535, &port) == 0
               ? add_ssh(options, "-p", value, err)
               : fail_value("ssh-port", value, "a whole number from 1 to 65535", err);
}

static int set_ssh_key(struct hvdrun_options *options, const char *value,
                       struct hvd_error *err)
{
    return access(value, R_OK) == 0
               ? add_ssh(options, "-i", value, err)
               : hvd_fail(err, HVD_ERR_ARG, "cannot read --ssh-identity-file %s: %m",
                          value);
}

/* Applies the options of a file, which may name another file. */
static int set_config(struct hvdrun_options *options, const char *path,
                      struct hvd_error *err)
{
    struct hvdrun_config config = {0};
    struct hvd_error inner = {0};
    int status;

    if (options->open_files == MOST_FILES) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "--config-file %s: files are nested more than %d deep", path,
                        MOST_FILES);
    }
    options->open_files++;
    status = hvdrun_config_read(path, &config, err);
    for (int i = 0; status == 0 && i < config.count; i++) {
        const struct hvdrun_config_entry *entry = &config.entries[i];

        status = hvdrun_options_set(options, entry->name, entry->value, &inner);
        if (status < 0) {
            hvd_fail(err, status, "%s line %zu: %s", path, entry->line, inner.text);
        }
    }
    options->open_files--;
    hvdrun_config_finish(&config);
    return status;
}

static int set_cooldown(struct hvdrun_options *options, const char *value,
                        struct hvd_error *err)
{
    char low[16] = "";
    int min;
    int max;

    if (sscanf(value, "%15[0-9]", low) != 1 || value[strlen(low)] != ' ' ||
        read_whole(low, 1, MOST_S, &min) < 0 ||
        read_whole(value + strlen(low) + 1, min, MOST_S, &max) < 0) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "--blacklist-cooldown-range %s: expected two numbers of seconds, "
                        "the first from 1 to the second",
                        value);
    }
    options->elastic.cooldown_min_s = min;
    options->elastic.cooldown_max_s = max;
    return 0;
}

static const struct {
    const char *name;
    int (*set)(struct hvdrun_options *options, const char *value, struct hvd_error *err);
} own[] = {
    {"hostfile", set_hostfile},
    {"bind", set_bind},
    {"mpi-args", set_mpi},
    {"ssh-port", set_ssh_port},
    {"config-file", set_config},
    {"ssh-identity-file", set_ssh_key},
    {"blacklist-cooldown-range", set_cooldown},
};

static int set_own(struct hvdrun_options *options, const char *name, const char *value,
                   struct hvd_error *err)
{
    for (size_t i = 0; i < LENGTH(own); i++) {
        if (strcmp(own[i].name, name) == 0) {
            return own[i].set(options, value, err);
        }
    }
    assert(!"every option of the table of this kind is in the list");
    return HVD_ERR_ARG;
}

/* --- options by the kind of their value --------------------------------------------- */

static int set_variable(struct hvdrun_options *options,
                        const struct hvdrun_option *option, const char *value,
                        struct hvd_error *err)
{
    return hvdrun_string_list_set_variable(&options->settings, option->variable, value,
                                           true, err);
}

static void *field_of(struct hvdrun_options *options, const struct hvdrun_option *option)
{
    return (char *)options + option->field;
}

static int set_text(struct hvdrun_options *options, const struct hvdrun_option *option,
                    const char *value, struct hvd_error *err)
{
    if (value[0] == '\0') {
        return fail_value(option->name, value, option->argument, err);
    }
    return option->variable != NULL ? set_variable(options, option, value, err)
                                    : replace_text(field_of(options, option), value, err);
}

static int set_number(struct hvdrun_options *options, const struct hvdrun_option *option,
                      const char *value, struct hvd_error *err)
{
    bool is_count = option->kind == HVDRUN_OPTION_COUNT;
    bool has_form = !is_count || value[strspn(value, "0123456789")] == '\0';
    double number = read_number(value);
    char range[64];
    int *field;

    if (!has_form || number < option->least || number > option->most) {
        snprintf(range, sizeof(range), "a %s from %.0f to %.0f",
                 is_count ? "whole number" : "number", option->least, option->most);
        return fail_value(option->name, value, range, err);
    }
    if (option->variable != NULL) {
        return set_variable(options, option, value, err);
    }
    field = field_of(options, option);
    *field = (int)number;
    options->elastic.has_reset_limit |= field == &options->elastic.reset_limit;
    return 0;
}

static int set_switch(struct hvdrun_options *options, const struct hvdrun_option *option,
                      struct hvd_error *err)
{
    bool is_on = option->kind == HVDRUN_OPTION_ON;

    if (option->variable != NULL) {
        return set_variable(options, option, is_on ? "1" : "0", err);
    }
    *(bool *)field_of(options, option) = is_on;
    return 0;
}

/* Sets the word as the table spells it; `value` may have another case. */
static int set_word(struct hvdrun_options *options, const struct hvdrun_option *option,
                    const char *value, struct hvd_error *err)
{
    char all[128] = "one of";

    for (const char *const *word = option->words; *word != NULL; word++) {
        size_t used = strlen(all);

        if (strcasecmp(*word, value) == 0) {
            return set_variable(options, option, *word, err);
        }
        snprintf(all + used, sizeof(all) - used, " %s", *word);
    }
    return fail_value(option->name, value, all, err);
}

static int set_cpus(struct hvdrun_options *options, const struct hvdrun_option *option,
                    const char *value, struct hvd_error *err)
{
    const char *at = value;
    size_t digits = strspn(at, "0123456789");

    while (digits > 0 && at[digits] == ',') {
        at += digits + 1;
        digits = strspn(at, "0123456789");
    }
    return digits > 0 && at[digits] == '\0'
               ? set_variable(options, option, value, err)
               : fail_value(option->name, value, "one cpu for each rank, such as 0,8",
                            err);
}

static int set_mebibytes(struct hvdrun_options *options,
                         const struct hvdrun_option *option, const char *value,
                         struct hvd_error *err)
{
    double number = read_number(value);
    char bytes[32];

    if (number < 0 || number > 1 << 30) {
        return fail_value(option->name, value, "a number of MiB, 0 or more", err);
    }
    snprintf(bytes, sizeof(bytes), "%lld", (long long)(number * 1024 * 1024));
    return set_variable(options, option, bytes, err);
}

static int set_idle(struct hvdrun_options *options, const struct hvdrun_option *option,
                    struct hvd_error *err)
{
    return hvdrun_string_list_add(&options->remarks, err, "--%s has no effect: %s",
                                  option->name, option->text);
}

/* --- elastic jobs ------------------------------------------------------------------- */

bool hvdrun_options_is_elastic(const struct hvdrun_options *options)
{
    const struct hvdrun_elastic_options *elastic = &options->elastic;

    return elastic->min > 0 || elastic->max > 0 || elastic->discovery != NULL;
}

static int default_timeout(void)
{
    const char *text = getenv(HVD_ENV_ELASTIC_TIMEOUT);
    int seconds;

    return text != NULL && read_whole(text, 1, MOST_S, &seconds) == 0 ? seconds
                                                                      : TIMEOUT_S;
}

/* Rejects options of elastic jobs in a job that is not elastic. */
static int check_not_elastic(const struct hvdrun_elastic_options *elastic,
                             struct hvd_error *err)
{
    return elastic->timeout_s > 0 || elastic->has_reset_limit ||
                   elastic->cooldown_max_s > 0 || elastic->slots_per_host > 0 ||
                   elastic->spares > 0
               ? hvd_fail(err, HVD_ERR_ARG,
                          "options of elastic jobs need --min-np N, the smallest number "
                          "of ranks")
               : 0;
}

/* Rejects spares that leave too few ranks to train, and spares of a number of ranks that
 * may grow. min is 0 if not given. */
static int check_spares(const struct hvdrun_options *options, struct hvd_error *err)
{
    const struct hvdrun_elastic_options *elastic = &options->elastic;
    const int min = elastic->min > 0 ? elastic->min : 1;

    if (elastic->spares > 0 && elastic->max > 0) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "--max-np %d and --spares %d contradict each other: with "
                        "--spares, all other ranks of -np train; leave out --max-np",
                        elastic->max, elastic->spares);
    }
    if (elastic->spares > 0 && min > options->ranks - elastic->spares) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "-np %d is too small for --min-np %d and --spares %d: use -np %d",
                        options->ranks, min, elastic->spares, min + elastic->spares);
    }
    return 0;
}

/* Fills in the elastic options that were not given, once all options are read. */
static int complete_elastic(struct hvdrun_options *options, struct hvd_error *err)
{
    struct hvdrun_elastic_options *elastic = &options->elastic;
    char seconds[16];
    int status;

    if (!hvdrun_options_is_elastic(options)) {
        return check_not_elastic(elastic, err);
    }
    options->ranks = options->ranks > 0 ? options->ranks : elastic->min;
    if (options->ranks == 0) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "the number of ranks to start is missing: give -np N or "
                        "--min-np N");
    }
    status = check_spares(options, err);
    if (status < 0) {
        return status;
    }
    elastic->min = elastic->min > 0 ? elastic->min : options->ranks - elastic->spares;
    elastic->max = elastic->max > 0 ? elastic->max : options->ranks;
    elastic->timeout_s = elastic->timeout_s > 0 ? elastic->timeout_s : default_timeout();
    if (options->ranks < elastic->min) {
        return hvd_fail(err, HVD_ERR_ARG, "-np %d is below --min-np %d", options->ranks,
                        elastic->min);
    }
    if (options->ranks > elastic->max) {
        return hvd_fail(err, HVD_ERR_ARG, "-np %d is above --max-np %d", options->ranks,
                        elastic->max);
    }
    snprintf(seconds, sizeof(seconds), "%d", elastic->timeout_s);
    return hvdrun_string_list_set_variable(&options->settings, HVD_ENV_ELASTIC_TIMEOUT,
                                           seconds, true, err);
}

/* --- any option --------------------------------------------------------------------- */

static int apply(struct hvdrun_options *options, const struct hvdrun_option *option,
                 const char *value, struct hvd_error *err)
{
    switch (option->kind) {
    case HVDRUN_OPTION_OWN:
        return set_own(options, option->name, value, err);
    case HVDRUN_OPTION_TEXT:
    case HVDRUN_OPTION_FILE:
        return set_text(options, option, value, err);
    case HVDRUN_OPTION_WORD:
        return set_word(options, option, value, err);
    case HVDRUN_OPTION_CPUS:
        return set_cpus(options, option, value, err);
    case HVDRUN_OPTION_COUNT:
    case HVDRUN_OPTION_NUMBER:
        return set_number(options, option, value, err);
    case HVDRUN_OPTION_MEBIBYTES:
        return set_mebibytes(options, option, value, err);
    case HVDRUN_OPTION_ON:
    case HVDRUN_OPTION_OFF:
        return set_switch(options, option, err);
    case HVDRUN_OPTION_ACTION:
        options->action = (enum hvdrun_action)option->least;
        return 0;
    case HVDRUN_OPTION_IDLE:
        return set_idle(options, option, err);
    case HVDRUN_OPTION_REFUSED:
        break;
    }
    return hvd_fail(err, HVD_ERR_UNSUPPORTED, "--%s: %s", option->name, option->text);
}

int hvdrun_options_set(struct hvdrun_options *options, const char *name,
                       const char *value, struct hvd_error *err)
{
    const struct hvdrun_option *option = hvdrun_option_find(name);

    if (option == NULL) {
        return hvd_fail(err, HVD_ERR_ARG, "no option --%s: see hvdrun --help", name);
    }
    if (option->argument == NULL && value != NULL) {
        return hvd_fail(err, HVD_ERR_ARG, "--%s takes no value, found %s", option->name,
                        value);
    }
    if (option->argument != NULL && value == NULL &&
        option->kind != HVDRUN_OPTION_REFUSED) {
        return hvd_fail(err, HVD_ERR_ARG, "--%s needs a value: --%s %s", option->name,
                        option->name, option->argument);
    }
    return apply(options, option, value != NULL ? value : "", err);
}

/* --- a command line ----------------------------------------------------------------- */

/* Reads the option arguments[0] and the values that follow it. Returns how many arguments
 * it used, or a negative status. */
static int read_one(struct hvdrun_options *options, char *const *arguments, int left,
                    struct hvd_error *err)
{
    const char *name = arguments[0] + (arguments[0][1] == '-' ? 2 : 1);
    size_t length = strcspn(name, "=");
    const struct hvdrun_option *option;
    char plain[64];
    char both[64]; /* both values of an option that takes two */
    const char *value = NULL;
    int status;

    /* A name that is cut off is not in the table. */
    length = length < sizeof(plain) ? length : sizeof(plain) - 1;
    memcpy(plain, name, length);
    plain[length] = '\0';
    option = hvdrun_option_find(plain);
    if (name[length] == '=') {
        value = name + length + 1;
    } else if (option != NULL && option->argument != NULL && left > 1) {
        value = arguments[1];
    }
    if (value != NULL && value == arguments[1] && left > 2 &&
        strchr(option->argument, ' ') != NULL) {
        snprintf(both, sizeof(both), "%s %s", arguments[1], arguments[2]);
        status = hvdrun_options_set(options, plain, both, err);
        return status < 0 ? status : 3;
    }
    status = hvdrun_options_set(options, plain, value, err);
    if (status < 0) {
        return status;
    }
    return value != NULL && value == arguments[1] ? 2 : 1;
}

int hvdrun_options_read(struct hvdrun_options *options, int count, char *const *arguments,
                        struct hvd_error *err)
{
    int at = 1;

    *options = (struct hvdrun_options){.action = HVDRUN_RUN};
    while (at < count && arguments[at][0] == '-' && arguments[at][1] != '\0') {
        int taken = 1;

        if (strcmp(arguments[at], "--") == 0) {
            at++;
            break;
        }
        taken = read_one(options, arguments + at, count - at, err);
        if (taken < 0) {
            return taken;
        }
        at += taken;
    }
    options->command = arguments + at;
    options->has_prefix = options->has_prefix || options->has_time;
    if (options->action == HVDRUN_RUN && at == count) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "no command to run: hvdrun -np N python train.py");
    }
    return options->action == HVDRUN_RUN ? complete_elastic(options, err) : 0;
}

void hvdrun_options_finish(struct hvdrun_options *options)
{
    free(options->hosts);
    free(options->output_directory);
    free(options->mpi_arguments);
    free(options->ssh_arguments);
    free(options->elastic.discovery);
    hvdrun_string_list_finish(&options->settings);
    hvdrun_string_list_finish(&options->remarks);
}
