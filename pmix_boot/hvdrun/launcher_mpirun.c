/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of Open MPI's mpirun and of prterun, whose options differ in part. */
#include <string.h>

#include "gpu_binding/base/env.h"
#include "pmix_boot/hvdrun/launcher.h"

/* Variables that begin with these are passed to ranks on other hosts. */
static const char *const travelling[] = {
    "HOROVOD_",
    "HVD_",
    "NCCL_",
    "UCX_",
    "OMP_",
    "CUDA_",
    "PYTHON",
    HVD_ENV_PATH "=",
    HVD_ENV_LIBRARY_PATH "=",
    HVD_ENV_VIRTUAL_ENV "=",
    "CONDA_",
};

enum {
    MPIRUN,
    PRTERUN,
    FAMILY
};

static const char *const tag[FAMILY][3] = {{"--tag-output"}, {"--output", "tag"}};
static const char *const stamp[FAMILY][3] = {{"--timestamp-output"},
                                             {"--output", "timestamp"}};
static const char *const ssh[FAMILY][3] = {{"--mca", "plm_rsh_args"},
                                           {"--prtemca", "plm_ssh_args"}};

static int family_of(const char *mpirun)
{
    const char *slash = strrchr(mpirun, '/');

    return strcmp(slash != NULL ? slash + 1 : mpirun, "prterun") == 0 ? PRTERUN : MPIRUN;
}

static bool does_travel(const char *item)
{
    for (size_t i = 0; i < sizeof(travelling) / sizeof(travelling[0]); i++) {
        if (strncmp(item, travelling[i], strlen(travelling[i])) == 0) {
            return true;
        }
    }
    return false;
}

static int add_variables(const char *const *environment, struct hvdrun_string_list *words,
                         struct hvd_error *err)
{
    int status = 0;

    for (; *environment != NULL && status == 0; environment++) {
        if (!does_travel(*environment)) {
            continue;
        }
        status = hvdrun_string_list_add(words, err, "-x");
        if (status == 0) {
            status = hvdrun_string_list_add(
                words, err, "%.*s", (int)strcspn(*environment, "="), *environment);
        }
    }
    return status;
}

static int add_output(const struct hvdrun_options *options, int family,
                      struct hvdrun_string_list *words, struct hvd_error *err)
{
    int status = 0;

    if (options->has_prefix) {
        status = hvdrun_string_list_add_all(words, tag[family], err);
    }
    if (options->has_time && status == 0) {
        status = hvdrun_string_list_add_all(words, stamp[family], err);
    }
    if (options->output_directory == NULL || status < 0) {
        return status;
    }
    status = hvdrun_string_list_add(words, err,
                                    family == PRTERUN ? "--output" : "--output-filename");
    return status < 0 ? status
                      : hvdrun_string_list_add(words, err, "%s%s",
                                               family == PRTERUN ? "file=" : "",
                                               options->output_directory);
}

/* Adds the options for ssh and the user's --mpi-args, which are separated by spaces. */
static int add_arguments(const struct hvdrun_options *options, int family,
                         struct hvdrun_string_list *words, struct hvd_error *err)
{
    const char *text = options->mpi_arguments != NULL ? options->mpi_arguments : "";
    int status = 0;

    if (options->ssh_arguments != NULL) {
        status = hvdrun_string_list_add_all(words, ssh[family], err);
        if (status == 0) {
            status = hvdrun_string_list_add(words, err, "%s", options->ssh_arguments);
        }
    }
    for (text += strspn(text, " "); *text != '\0' && status == 0;
         text += strspn(text, " ")) {
        int length = (int)strcspn(text, " ");

        status = hvdrun_string_list_add(words, err, "%.*s", length, text);
        text += length;
    }
    return status;
}

/* Turns off mpirun's own binding: one core per rank would starve the rank's threads. */
static int add_ranks(const struct hvdrun_options *options, const char *mpirun,
                     struct hvdrun_string_list *words, struct hvd_error *err)
{
    static const char *const unbound[] = {"--bind-to", "none", NULL};
    int status = hvdrun_string_list_add(words, err, "%s", mpirun);

    if (status == 0) {
        status = hvdrun_string_list_add(words, err, "-np");
    }
    if (status == 0) {
        status = hvdrun_string_list_add(words, err, "%d", options->ranks);
    }
    if (status == 0 && options->hosts != NULL) {
        status = hvdrun_string_list_add(words, err, "--host");
    }
    if (status == 0 && options->hosts != NULL) {
        status = hvdrun_string_list_add(words, err, "%s", options->hosts);
    }
    return status < 0 ? status : hvdrun_string_list_add_all(words, unbound, err);
}

int hvdrun_launcher_mpirun(const struct hvdrun_options *options,
                           const char *const *environment, const char *mpirun,
                           struct hvdrun_string_list *words, struct hvd_error *err)
{
    int family = family_of(mpirun);
    int status = add_ranks(options, mpirun, words, err);

    if (status == 0) {
        status = add_variables(environment, words, err);
    }
    if (status == 0) {
        status = add_output(options, family, words, err);
    }
    if (status == 0) {
        status = add_arguments(options, family, words, err);
    }
    return status < 0 ? status
                      : hvdrun_string_list_add_all(
                            words, (const char *const *)options->command, err);
}
