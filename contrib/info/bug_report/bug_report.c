/* SPDX-License-Identifier: Apache-2.0 */
/* hvd-info --bug-report. Each part runs in a child process of its own: if it hangs or
 * crashes, the report has the other parts. Programs that are not hvd's get only variables
 * whose values the report may show, so they cannot print a secret. */
#include "contrib/info/bug_report/bug_report.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "contrib/info/bug_report/allowed.h"
#include "contrib/info/process.h"
#include "contrib/info/bug_report/words.h"
#include "contrib/info/python.h"
#include "contrib/info/bug_report/system.h"
#include "gpu_binding/base/env.h"

enum {
    PART_MS = 5000,
    /* The check waits CHECK_START_S for the other ranks, then reports what it found. */
    CHECK_MS = 20000,
    MOST_FILES = 999, /* then a report replaces the last one */
};
#define CHECK_START_S "10"
#define CHECK_S "2" /* for measurements */
#define FILE_NAME "hvd-bug-report"

/* Which output of a part is shown: all of it, or only errors and the lines or words whose
 * key is listed. Slurm prints its configuration as lines "KEY = VALUE", and jobs as words
 * "KEY=VALUE KEY=VALUE". */
enum filter {
    FILTER_NONE,
    FILTER_LINES,
    FILTER_WORDS,
};

struct part {
    const char *title;
    const char *const *argv;
    int (*function)(struct hvd_error *err); /* if argv is NULL */
    const char *const *keys;
    enum filter filter;
    bool sees_all; /* part of hvd itself, so it gets all variables */
    bool is_for_job; /* only in a Slurm job, whose number is added to argv */
};

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Replaces this process by a new run of hvd-info. option, value: NULL for none. */
static int run_self(const char *option, const char *value, struct hvd_error *err)
{
    execl("/proc/self/exe", "hvd-info", option, value, (char *)NULL);
    return hvd_fail(err, HVD_ERR_SYS, "cannot run /proc/self/exe: %m");
}

static int run_check(struct hvd_error *err)
{
    if (setenv(HVD_ENV_START_TIMEOUT, CHECK_START_S, 1) < 0) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a variable");
    }
    return run_self("--check", "--seconds=" CHECK_S, err);
}

static int run_slurm(struct hvd_error *err)
{
    return run_self("--slurm", NULL, err);
}

static int run_binding(struct hvd_error *err)
{
    return run_self(NULL, NULL, err);
}

static const struct part parts[] = {
    {"check: hvd-info --check", .function = run_check, .sees_all = true},
    {"hvd", .function = hvd_info_build_print},
    {"system", .function = hvd_info_system_print},
    {"limits", .function = hvd_info_limits_print},
    {"binding: hvd-info", .function = run_binding, .sees_all = true},
    {"GPUs: nvidia-smi",
     .argv = WORDS("nvidia-smi",
                   "--query-gpu=index,name,pci.bus_id,driver_version,memory.total,"
                   "mig.mode.current,compute_mode",
                   "--format=csv")},
    {"PMIx library", .function = hvd_info_pmix_print},
    {"Python", .function = hvd_info_python_report},
    {"plugin: hvd-info --slurm", .function = run_slurm},
    {"MPI types: srun --mpi=list", .argv = WORDS("srun", "--mpi=list")},
    {"Slurm: scontrol show config", .argv = WORDS("scontrol", "show", "config"),
     .filter = FILTER_LINES,
     .keys =
         WORDS("AcctGatherNodeFreq", "CgroupPlugin", "ConstrainCores", "ConstrainDevices",
               "ConstrainRAMSpace", "DefMemPerCPU", "DefMemPerNode", "EnforcePartLimits",
               "GpuFreqDef", "GresTypes", "InactiveLimit", "JobContainerType",
               "KillOnBadExit", "KillWait", "LaunchParameters", "MaxTasksPerNode",
               "MessageTimeout", "MpiDefault", "MpiParams", "PlugStackConfig",
               "PluginDir", "PrologFlags", "ProctrackType", "PropagateResourceLimits",
               "PropagateResourceLimitsExcept", "SelectType", "SelectTypeParameters",
               "SlurmdParameters", "SLURM_CONF", "SLURM_VERSION", "SrunPortRange",
               "SwitchType", "TaskPlugin", "TaskPluginParam", "TopologyParam",
               "TopologyPlugin", "TreeWidth", "UnkillableStepTimeout", "VSizeFactor")},
    {"job: scontrol show job", .argv = WORDS("scontrol", "show", "job"),
     .is_for_job = true, .filter = FILTER_WORDS,
     .keys =
         WORDS("JobId", "HetJobId", "HetJobOffset", "JobState", "Reason", "ExitCode",
               "Partition", "NodeList", "BatchHost", "NumNodes", "NumCPUs", "NumTasks",
               "CPUs/Task", "ReqB:S:C:T", "TRES", "ReqTRES", "AllocTRES",
               "NtasksPerN:B:S:C", "CoreSpec", "MinCPUsNode", "MinMemoryCPU",
               "MinMemoryNode", "TresPerNode", "TresPerTask", "TresPerJob", "TresBind",
               "GresEnforceBind", "OverSubscribe", "Contiguous", "Requeue", "Restarts",
               "BatchFlag", "RunTime", "TimeLimit", "Network")},
    {"variables", .function = hvd_info_environment_print, .sees_all = true},
};

/* --- one part --- */

static bool is_listed(const char *key, size_t bytes, const char *const *keys)
{
    for (; *keys != NULL; keys++) {
        if (strlen(*keys) == bytes && strncmp(*keys, key, bytes) == 0) {
            return true;
        }
    }
    return false;
}

/* Returns the length of the line if it is an error message of Slurm, else 0. */
static size_t error_length(const char *line)
{
    const size_t bytes = strcspn(line, "\n");
    const char *found = strstr(line, "error: ");

    return found != NULL && found < line + bytes && strcspn(line, "=") >= bytes ? bytes
                                                                                : 0;
}

/* Keeps error messages, and of the other lines the pieces whose key is listed, one per
 * line. A piece ends at a separator and begins with "KEY=" or "KEY =". */
static void keep_listed(char *text, const char *separators, const char *const *keys)
{
    char *end = text;
    bool is_line_start = true;

    while (*text != '\0') {
        const size_t error = is_line_start ? error_length(text) : 0;
        const size_t bytes = error > 0 ? error : strcspn(text, separators);
        const char separator = text[bytes];

        if (error > 0 || is_listed(text, strcspn(text, " =\n"), keys)) {
            memmove(end, text, bytes);
            end[bytes] = '\n';
            end += bytes + 1;
        }
        is_line_start = separator == '\n';
        text += bytes + (separator != '\0');
    }
    *end = '\0';
}

/* Prints, after the output of a part, what is missing from it. Returns whether the part
 * hung or crashed. */
static bool print_end(const struct part *part, const struct hvd_info_output *output,
                      int limit_ms, FILE *out)
{
    if (output->is_late) {
        fprintf(out, "(left out: it took longer than %d s)\n", limit_ms / 1000);
    } else if (output->is_missing) {
        fprintf(out, "(left out: there is no %s in PATH)\n", part->argv[0]);
        return false;
    } else if (output->exit_status < 0) {
        fprintf(out, "(left out: it crashed)\n");
    } else if (output->exit_status > 0) {
        fprintf(out, "(exit status %d)\n", output->exit_status);
        return false;
    } else if (output->is_cut) {
        fprintf(out, "(cut: it was too long)\n");
    }
    return output->is_late || output->exit_status < 0;
}

/* Copies environ, but only HOME and variables that may be shown. Borrows the texts. */
static char **copy_allowed(void)
{
    size_t count = 0;
    size_t kept = 0;
    char **copy;

    while (environ[count] != NULL) {
        count++;
    }
    copy = calloc(count + 1, sizeof(*copy));
    for (size_t i = 0; copy != NULL && i < count; i++) {
        char name[256];

        snprintf(name, sizeof(name), "%.*s", (int)strcspn(environ[i], "="), environ[i]);
        if (hvd_info_is_allowed(name) || strcmp(name, HVD_ENV_HOME) == 0) {
            copy[kept++] = environ[i];
        }
    }
    return copy;
}

/* Runs a part and prints it. Adds the title to `missing` if it hung or crashed. */
static int print_part(const struct part *part, const struct hvd_info_words *words,
                      char **allowed, FILE *out, FILE *missing, struct hvd_error *err)
{
    const char *argv[8] = {NULL};
    struct hvd_info_process process = {
        .function = part->function,
        .limit_ms = part->function == run_check ? CHECK_MS : PART_MS,
        .environment = part->sees_all ? NULL : allowed,
    };
    struct hvd_info_output output;
    int count = 0;

    for (; part->argv != NULL && part->argv[count] != NULL; count++) {
        argv[count] = part->argv[count];
    }
    if (part->is_for_job) {
        argv[count++] = getenv(HVD_ENV_SLURM_JOB);
    }
    process.argv = count > 0 ? argv : NULL;
    int status = hvd_info_process_run(&process, &output, err);
    if (status < 0) {
        return status;
    }
    fprintf(out, "\n== %s ==\n", part->title);
    if (part->filter != FILTER_NONE) {
        keep_listed(output.text, part->filter == FILTER_LINES ? "\n" : " \n", part->keys);
    }
    hvd_info_words_print(words, output.text, out);
    if (output.text[0] != '\0' && output.text[strlen(output.text) - 1] != '\n') {
        fputc('\n', out);
    }
    if (print_end(part, &output, process.limit_ms, out)) {
        fprintf(missing, "%s%s", ftell(missing) > 0 ? ", " : "", part->title);
    }
    hvd_info_output_finish(&output);
    return 0;
}

static int print_parts(FILE *out, FILE *missing, struct hvd_error *err)
{
    struct hvd_info_words *words = hvd_info_words_create(environ);
    char **allowed = copy_allowed();
    int status = 0;

    if (words == NULL || allowed == NULL) {
        status = hvd_fail(err, HVD_ERR_NOMEM, "no memory for the report");
    }
    fputs("hvd bug report, made by hvd-info --bug-report\n"
          "Only values of variables that are never secret are shown. ~ is the home "
          "directory of the user, USER the\nuser's name. Names of hosts and other paths "
          "are shown: read the report before you make it public.\n",
          out);
    for (size_t i = 0; status == 0 && i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (!parts[i].is_for_job || getenv(HVD_ENV_SLURM_JOB) != NULL) {
            status = print_part(&parts[i], words, allowed, out, missing, err);
        }
    }
    free(allowed);
    hvd_info_words_destroy(words);
    return status;
}

/* --- the file --- */

/* Returns a name that no file has, so that a second report does not replace the first:
 * hvd-bug-report.txt, hvd-bug-report-2.txt, ... */
static const char *choose_file(char *name, size_t bytes)
{
    snprintf(name, bytes, FILE_NAME ".txt");
    for (int number = 2; access(name, F_OK) == 0 && number <= MOST_FILES; number++) {
        snprintf(name, bytes, FILE_NAME "-%d.txt", number);
    }
    return name;
}

/* Writes a new file and renames it, so that hvd-info never follows a link that somebody
 * else has put there. */
static int write_file(const char *file, FILE *missing, struct hvd_error *err)
{
    char part[PATH_MAX];
    struct hvd_error cause = {0};
    int status = 0;

    snprintf(part, sizeof(part), "%s.XXXXXX", file);
    int descriptor = mkstemp(part);
    FILE *out = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
    if (out == NULL) {
        return hvd_fail(err, HVD_ERR_SYS,
                        "cannot write %.300s: %m; choose another file by "
                        "--bug-report=FILE, or standard output by --bug-report=-",
                        file);
    }
    status = print_parts(out, missing, &cause);
    if (fclose(out) != 0 || (status == 0 && rename(part, file) < 0)) {
        status = hvd_fail(&cause, HVD_ERR_SYS, "cannot write %.300s: %m", file);
    }
    if (status < 0) {
        unlink(part);
        return hvd_fail(err, status, "%s", cause.text);
    }
    return 0;
}

static int write_report(const char *file, struct hvd_error *err)
{
    char *missing = NULL;
    size_t bytes;
    FILE *names = open_memstream(&missing, &bytes);
    bool is_output = strcmp(file, "-") == 0;
    int status;

    if (names == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the report");
    }
    status = is_output ? print_parts(stdout, names, err) : write_file(file, names, err);
    if (status == 0 && is_output && fflush(stdout) != 0) {
        status = hvd_fail(err, HVD_ERR_SYS, "cannot write to standard output: %m");
    }
    fclose(names);
    if (status == 0 && !is_output) {
        printf("hvd-info: wrote %s%s%s: read it, and attach it to your report\n", file,
               bytes > 0 ? ", without " : "", missing);
    }
    free(missing);
    return status;
}

/* --- the ranks of a job --- */

/* The check is collective, so ranks that write no report run it, too. */
static int take_part(struct hvd_error *err)
{
    const struct hvd_info_process process = {.function = run_check, .limit_ms = CHECK_MS};
    struct hvd_info_output output;
    int status = hvd_info_process_run(&process, &output, err);

    if (status == 0) {
        hvd_info_output_finish(&output);
    }
    return status;
}

static bool is_other_rank(hvd_info_lookup lookup)
{
    const char *rank = lookup(HVD_ENV_RANK);

    if (rank == NULL && lookup(HVD_ENV_SLURM_STEP) != NULL) {
        rank = lookup(HVD_ENV_SLURM_PROCID);
    }
    if (rank == NULL) {
        rank = lookup(HVD_ENV_PMIX_RANK);
    }
    return rank != NULL && strcmp(rank, "0") != 0;
}

int hvd_info_report(hvd_info_lookup lookup, const char *file, struct hvd_error *err)
{
    char name[64];

    if (is_other_rank(lookup)) {
        return take_part(err);
    }
    return write_report(file != NULL ? file : choose_file(name, sizeof(name)), err);
}
