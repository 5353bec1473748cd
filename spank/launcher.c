/* SPDX-License-Identifier: Apache-2.0 */
/* Recognizes programs that start the ranks of a node themselves. */
#include "spank/launcher.h"

#include <stddef.h>
#include <string.h>

#include "spank/slurm_numbers.h"

static const char accelerate[] = "accelerate";
static const char accelerate_launch[] = "accelerate launch";

static const char *const programs[] = {"torchrun", "deepspeed", "ft_launcher", "ray"};

struct module {
    const char *module; /* the argument of python -m */
    const char *name;
};

static const struct module modules[] = {
    {"torch.distributed.run", "torchrun"},
    {"torch.distributed.launch", "torchrun"},
    {"accelerate.commands.launch", accelerate_launch},
};

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

static const char *find_module(const char *module)
{
    for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++) {
        if (strcmp(modules[i].module, module) == 0) {
            return modules[i].name;
        }
    }
    return NULL;
}

/* Returns the launcher that `python -m MODULE` runs; NULL if it is none. Skips options of
 * python that take no value, such as -u. */
static const char *launcher_of_python(int count, char *const *arguments)
{
    for (int i = 1; i + 1 < count && arguments[i][0] == '-'; i++) {
        if (strcmp(arguments[i], "-m") == 0) {
            return find_module(arguments[i + 1]);
        }
    }
    return NULL;
}

const char *hvd_spank_launcher_of(int count, char *const *arguments)
{
    const char *program = count > 0 ? base_of(arguments[0]) : "";

    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
        if (strcmp(program, programs[i]) == 0) {
            return programs[i];
        }
    }
    if (strcmp(program, accelerate) == 0 && count > 1 &&
        strcmp(arguments[1], "launch") == 0) {
        return accelerate_launch;
    }
    return strncmp(program, "python", strlen("python")) == 0
               ? launcher_of_python(count, arguments)
               : NULL;
}

/* --- options of torchrun, which precede its script --- */

/* True if the argument is `option`, alone or as OPTION=VALUE. Like torchrun, accepts '_'
 * instead of '-'. *value points to VALUE, and is NULL if there is none. */
static bool is_option(const char *argument, const char *option, const char **value)
{
    size_t i = 0;

    while (option[i] != '\0' &&
           (argument[i] == option[i] || (argument[i] == '_' && option[i] == '-'))) {
        i++;
    }
    *value = argument[i] == '=' ? argument + i + 1 : NULL;
    return option[i] == '\0' && (argument[i] == '\0' || argument[i] == '=');
}

bool hvd_spank_launcher_is_alone(int count, char *const *arguments)
{
    const char *value;

    for (int i = 1; i < count; i++) {
        if (is_option(arguments[i], "--standalone", &value)) {
            return true;
        }
    }
    return false;
}

int hvd_spank_launcher_ranks(int count, char *const *arguments)
{
    const char *value;
    int ranks = 0;

    for (int i = 1; i < count && ranks == 0; i++) {
        if (is_option(arguments[i], "--nproc-per-node", &value)) {
            value = value == NULL && i + 1 < count ? arguments[i + 1] : value;
            ranks = value != NULL ? hvd_spank_number_of(value) : 0;
            ranks = ranks > 0 ? ranks : -1;
        }
    }
    return ranks;
}
