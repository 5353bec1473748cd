/* SPDX-License-Identifier: Apache-2.0 */
/* Decides from the variables of launchers: alone, PMIx, rendezvous, elastic, or an error
 * with the remedy. */
#include "pmix_boot/launch_env.h"

#include <dlfcn.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"
#include "gpu_binding/base/number.h"

/* From this number on, steps are Slurm's own (batch, interactive, extern): they run
 * shells, not tasks. */
#define FIRST_SPECIAL_STEP 0xfffffffaUL

/* Up to this number of ranks, the service answers within some seconds. It sends each rank
 * the cards of all, so its cost grows with the square of their number: scale.md. */
#define MOST_BY_SERVICE 2048

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

struct launcher {
    const char *variable;
    const char *name;
};

/* Variables with a number of ranks; the first one above 1 decides. */
static const struct launcher sizes[] = {
    {HVD_ENV_OMPI_SIZE, "Open MPI's mpirun"},
    {HVD_ENV_MVAPICH_SIZE, "MVAPICH's mpirun"},
    {HVD_ENV_JSRUN_SIZE, "jsrun"},
    {HVD_ENV_FLUX_SIZE, "flux run"},
    {HVD_ENV_PMI_SIZE, "a PMI launcher such as mpiexec"},
    {HVD_ENV_HYDRA_LOCAL_SIZE, "mpiexec"},
    /* precedes torchrun's: horovodrun and hvdrun set both */
    {HVD_ENV_SIZE, "horovodrun"},
    {HVD_ENV_TORCH_LOCAL_SIZE, "torchrun"},
    {HVD_ENV_TORCHRUN_SIZE, "torchrun"},
};

/* Variables with the number of a rank: a number above 0 means that there are others. */
static const struct launcher ranks[] = {
    {HVD_ENV_PMI_RANK, "a PMI launcher such as mpiexec"},
    {HVD_ENV_PALS_RANK, "PALS"},
};

static const char *find_variable(const char *const *environment, const char *name)
{
    size_t length = strlen(name);

    for (; *environment != NULL; environment++) {
        if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=') {
            return *environment + length + 1;
        }
    }
    return NULL;
}

/* Returns the value as a number, or -1 if it is unset or not a number. */
static long find_number(const char *const *environment, const char *name)
{
    return hvd_number_parse(find_variable(environment, name), LONG_MAX);
}

static bool is_slurm_task(const char *const *environment)
{
    long step = find_number(environment, HVD_ENV_SLURM_STEP);

    return step >= 0 && (unsigned long)step < FIRST_SPECIAL_STEP;
}

bool hvd_launch_is_slurm_shell(const char *const *environment)
{
    return find_variable(environment, HVD_ENV_SLURM_JOB) != NULL &&
           !is_slurm_task(environment);
}

static long slurm_tasks(const char *const *environment)
{
    long tasks = find_number(environment, HVD_ENV_SLURM_STEP_TASKS);

    return tasks >= 0 ? tasks : find_number(environment, HVD_ENV_SLURM_TASKS);
}

static bool is_of_slurm(const char *name_space)
{
    return strncmp(name_space, "slurm.pmix.", strlen("slurm.pmix.")) == 0;
}

/* Returns whether the variables of Slurm's PMIx are left over from an outer step: an
 * inner `srun --mpi=none`, or a job submitted from a task, inherits them. The namespace
 * ends with the number of the step. */
static bool is_stale_slurm_pmix(const char *const *environment, const char *name_space)
{
    const char *step = find_variable(environment, HVD_ENV_SLURM_STEP);
    const char *dot = strrchr(name_space, '.');

    if (!is_of_slurm(name_space)) {
        return false;
    }
    return !is_slurm_task(environment) || dot == NULL || strcmp(dot + 1, step) != 0;
}

static bool is_pmix_served(const char *const *environment)
{
    const char *name_space = find_variable(environment, HVD_ENV_PMIX_NAMESPACE);

    return name_space != NULL && find_variable(environment, HVD_ENV_PMIX_RANK) != NULL &&
           !is_stale_slurm_pmix(environment, name_space);
}

/* Returns whether there is a service for this process. The service of a step is for its
 * tasks, but a job that a task submits inherits the variable. */
static bool is_service_there(const char *const *environment)
{
    const char *service = find_variable(environment, HVD_ENV_RENDEZVOUS);
    const char *of_step = find_variable(environment, HVD_ENV_RENDEZVOUS_STEP);
    const size_t length = service != NULL ? strlen(service) : 0;
    const size_t step_length = of_step != NULL ? strlen(of_step) : 0;

    if (step_length == 0 || step_length > length ||
        strcmp(service + length - step_length, of_step) != 0) {
        return service != NULL;
    }
    return is_slurm_task(environment);
}

bool hvd_launch_is_elastic(const char *const *environment)
{
    return find_number(environment, HVD_ENV_HOROVOD_ELASTIC) == 1 &&
           is_service_there(environment);
}

/* Returns whether --hvd was given, but the plugin has not set HVD_LAUNCH in this task of
 * srun. */
static bool is_plugin_missing(const char *const *environment)
{
    const char *option = find_variable(environment, HVD_ENV_SLURM_OPTION);
    bool is_requested = (option != NULL && strncmp(option, "off", 3) != 0) ||
                        find_variable(environment, HVD_ENV_REQUEST) != NULL;

    return is_requested && is_slurm_task(environment) &&
           find_variable(environment, HVD_ENV_LAUNCH) == NULL;
}

/* Compares libhvd with the plugin, or hvdrun, that has set HVD_LAUNCH_VERSION: the two
 * talk to each other by messages that may differ between versions. A batch job that was
 * submitted by a rank inherits the variable, and may run much later. */
static int check_version(const char *const *environment, struct hvd_error *err)
{
    const char *version = find_variable(environment, HVD_ENV_LAUNCH_VERSION);
    const char *rank = find_variable(environment, HVD_ENV_RANK);
    char host[256] = "";
    Dl_info self = {0};

    if (version == NULL || strcmp(version, HVD_VERSION) == 0 ||
        !(is_slurm_task(environment) || is_service_there(environment))) {
        return 0;
    }
    gethostname(host, sizeof(host) - 1);
    dladdr((void *)check_version, &self);
    return hvd_fail(err, HVD_ERR_MISMATCH,
                    "rank %.10s on %s was started by hvd %.30s, %s, but has hvd %s, "
                    "%.200s: install the same version of both",
                    rank != NULL ? rank : "?", host, version,
                    is_slurm_task(environment) ? "the plugin on this node" : "hvdrun",
                    HVD_VERSION, self.dli_fname != NULL ? self.dli_fname : "libhvd.so");
}

static int check_slurm(const char *const *environment, struct hvd_error *err)
{
    long tasks = slurm_tasks(environment);

    if (!is_slurm_task(environment) || tasks <= 1) {
        return 0;
    }
    return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                    "this Slurm step has %ld tasks but no PMIx, so they cannot find each "
                    "other: start them with srun --hvd, or with srun --mpi=pmix",
                    tasks);
}

static int check_launchers(const char *const *environment, struct hvd_error *err)
{
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        long size = find_number(environment, sizes[i].variable);

        if (size > 1) {
            return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                            "%s is %ld but there is no PMIx: ranks started by %s cannot "
                            "find each other; use hvdrun -np %ld, srun --hvd, or an "
                            "mpirun with PMIx; Python can also use HVD_STORE",
                            sizes[i].variable, size, sizes[i].name, size);
        }
    }
    for (size_t i = 0; i < LENGTH(ranks); i++) {
        long rank = find_number(environment, ranks[i].variable);

        if (rank > 0) {
            return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                            "%s is %ld but there is no PMIx: ranks started by %s cannot "
                            "find each other; use hvdrun, srun --hvd, or an mpirun "
                            "with PMIx; Python can also use HVD_STORE",
                            ranks[i].variable, rank, ranks[i].name);
        }
    }
    return 0;
}

/* Fails in a build without PMIx, unless the launch has only one rank. */
static int check_built_without(const char *const *environment, struct hvd_error *err)
{
    if (is_slurm_task(environment) && slurm_tasks(environment) == 1) {
        return 0;
    }
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        if (find_number(environment, sizes[i].variable) == 1) {
            return 0;
        }
    }
    return hvd_fail(
        err, HVD_ERR_UNSUPPORTED,
        "the launcher serves PMIx (%s is %s) but this installation of hvd has "
        "no hvd-boot to join other ranks with: build it with -Dpmix=enabled",
        HVD_ENV_PMIX_RANK, find_variable(environment, HVD_ENV_PMIX_RANK));
}

static int check_many(const char *const *environment, struct hvd_error *err)
{
    int status = check_slurm(environment, err);

    return status < 0 ? status : check_launchers(environment, err);
}

/* Finds out which comes first if a rank has both the PMIx of its launcher and a service:
 * the service, unless the user chose PMIx, the job is too large for the service, or a
 * launcher inside the service's job, such as mpirun, provides PMIx. */
static int find_preference(const char *const *environment, bool *is_pmix_first,
                           struct hvd_error *err)
{
    const char *choice = find_variable(environment, HVD_ENV_START_BY);
    const char *name_space = find_variable(environment, HVD_ENV_PMIX_NAMESPACE);
    bool is_open = choice == NULL || choice[0] == '\0';
    bool is_pmix = is_open ? find_number(environment, HVD_ENV_SIZE) > MOST_BY_SERVICE
                           : strcmp(choice, "pmix") == 0;

    if (!is_open && !is_pmix && strcmp(choice, "service") != 0) {
        return hvd_fail(err, HVD_ERR_ARG,
                        HVD_ENV_START_BY " is '%.40s': expected service or pmix", choice);
    }
    *is_pmix_first = is_pmix || (name_space != NULL && !is_of_slurm(name_space));
    return 0;
}

/* Returns whether the plugin started this task as the only one of its step. */
static bool is_only_task(const char *const *environment)
{
    return find_variable(environment, HVD_ENV_LAUNCH) != NULL &&
           is_slurm_task(environment) && slurm_tasks(environment) == 1 &&
           find_number(environment, HVD_ENV_SIZE) == 1;
}

/* Chooses PMIx or the service; false if the process has neither, or needs neither.
 *
 * The service comes before Slurm's PMIx because an MPI library of the program cannot
 * start after hvd-boot has finalized PMIx for this rank: libpmix 4 gives a rank's second
 * client no local rank (seen with 4.2.2 and Open MPI 4.1). */
static bool find_others(const char *const *environment, bool has_pmix, bool is_pmix_first,
                        enum hvd_launch_kind *launch)
{
    bool is_served = is_pmix_served(environment);
    bool is_service = is_service_there(environment);

    if (is_service && !(is_served && has_pmix && is_pmix_first)) {
        *launch = HVD_LAUNCH_RENDEZVOUS;
        return true;
    }
    if (is_served && has_pmix && (is_pmix_first || !is_only_task(environment))) {
        *launch = HVD_LAUNCH_PMIX;
        return true;
    }
    return false;
}

int hvd_launch_decide(const char *const *environment, bool has_pmix,
                      enum hvd_launch_kind *launch, struct hvd_error *err)
{
    const char *reason = find_variable(environment, HVD_ENV_LAUNCH_ERROR);
    const char *node = find_variable(environment, HVD_ENV_SLURM_NODE);
    bool is_pmix_first = false;
    int status = check_version(environment, err);

    if (status < 0) {
        return status;
    }
    if (reason != NULL && reason[0] != '\0') {
        return hvd_fail(err, HVD_ERR_STATE, "%s", reason);
    }
    if (is_plugin_missing(environment)) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                        "the job asked for --hvd but the hvd plugin is not installed on "
                        "node %s: ask the administrator to install it there, or exclude "
                        "the node with --exclude",
                        node != NULL ? node : "(unknown)");
    }
    if (hvd_launch_is_elastic(environment)) {
        *launch = HVD_LAUNCH_ELASTIC;
        return 0;
    }
    status = find_preference(environment, &is_pmix_first, err);
    if (status < 0 || find_others(environment, has_pmix, is_pmix_first, launch)) {
        return status;
    }
    if (is_pmix_served(environment) && !has_pmix) {
        status = check_built_without(environment, err);
    }
    if (status == 0) {
        status = check_many(environment, err);
    }
    if (status == 0) {
        *launch = HVD_LAUNCH_SINGLE;
    }
    return status;
}

bool hvd_launch_has_unused_pmix(const char *const *environment)
{
    bool is_pmix_first = true;

    return find_preference(environment, &is_pmix_first, NULL) == 0 && !is_pmix_first &&
           is_pmix_served(environment);
}

bool hvd_launch_has_launcher(const char *const *environment)
{
    bool is_found = is_pmix_served(environment);

    for (size_t i = 0; i < LENGTH(sizes) && !is_found; i++) {
        is_found = find_variable(environment, sizes[i].variable) != NULL;
    }
    for (size_t i = 0; i < LENGTH(ranks) && !is_found; i++) {
        is_found = find_variable(environment, ranks[i].variable) != NULL;
    }
    return is_found;
}

bool hvd_launch_lacks_srun(const char *const *environment, char *text, size_t bytes)
{
    /* The first that is set decides: Slurm sets the number of components only in a
     * heterogeneous job, and that of tasks only if the user has chosen it. */
    static const struct {
        const char *variable;
        const char *noun;
    } counts[] = {
        {HVD_ENV_SLURM_COMPONENTS, "components"},
        {HVD_ENV_SLURM_TASKS, "tasks"},
        {HVD_ENV_SLURM_JOB_NODES, "nodes"},
    };
    const char *noun = NULL;
    long count = -1;

    for (size_t i = 0; i < LENGTH(counts) && count < 0; i++) {
        count = find_number(environment, counts[i].variable);
        noun = counts[i].noun;
    }
    if (!hvd_launch_is_slurm_shell(environment) || hvd_launch_has_launcher(environment) ||
        count <= 1) {
        return false;
    }
    snprintf(text, bytes,
             "this Slurm job has %ld %s, but this process runs alone, as rank 0 of 1: "
             "start it with srun --hvd",
             count, noun);
    return true;
}

const char *hvd_launch_name(enum hvd_launch_kind launch)
{
    switch (launch) {
    case HVD_LAUNCH_PMIX:
        return "the PMIx of the launcher";
    case HVD_LAUNCH_RENDEZVOUS:
        return "hvd's rendezvous service";
    case HVD_LAUNCH_ELASTIC:
        return "hvd's rendezvous service, elastic";
    case HVD_LAUNCH_STORE:
        return "a store of the program";
    case HVD_LAUNCH_SINGLE:
        break;
    }
    return "no launcher, as the only rank";
}

void hvd_launch_need_home(void)
{
    if (getenv(HVD_ENV_HOME) == NULL && getpwuid(geteuid()) == NULL) {
        setenv(HVD_ENV_HOME, "/", 0);
    }
}
