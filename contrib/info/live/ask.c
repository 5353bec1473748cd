/* SPDX-License-Identifier: Apache-2.0 */
/* To ask the ranks of a Slurm job, starts a step of the job with one hvd-info per node,
 * and reads the lines that these print through srun. */
#include "contrib/info/live/ask.h"

#include <grp.h>
#include <inttypes.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "contrib/info/live/report.h"
#include "contrib/info/process.h"
#include "gpu_binding/base/number.h"
#include "gpu_binding/base/srun_environment.h"

enum {
    LIMIT_S = 20, /* for the answer of all nodes */
};

int hvd_info_live_parse_job(const char *text, struct hvd_info_selection *which,
                            struct hvd_error *err)
{
    char *end = NULL;
    const unsigned long job = strtoul(text, &end, 10);

    which->step = which->array = -1;
    if (text[0] >= '0' && text[0] <= '9' && *end == '_' && end[1] >= '0' &&
        end[1] <= '9') {
        which->array = strtol(end + 1, &end, 10);
    }
    if (text[0] >= '0' && text[0] <= '9' && *end == '.' && end[1] >= '0' &&
        end[1] <= '9') {
        which->step = strtol(end + 1, &end, 10);
    }
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || job == 0 || job > UINT32_MAX) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "--job: expected a job, or a step of a job, such as 1234, 1234_7 "
                        "or 1234.0, found '%.100s'",
                        text);
    }
    which->job = (uint32_t)job;
    return 0;
}

/* --- all nodes of a job --- */

/* The step to start. A global, because become_srun, which the child calls, takes no
 * argument for it. */
static struct {
    const struct hvd_info_selection *which;
    uint32_t job; /* the job's own number, also for a task of a job array */
    uid_t user; /* of the job */
    int nodes; /* of the job */
} asked;

/* Finds the number of a job, its user and the number of its nodes. As root, hvd-info has
 * to start the step as that user. */
static int find_job(const struct hvd_info_selection *which, struct hvd_error *err)
{
    char job[48], jobs[64];
    const char *const argv[] = {"squeue", "--noheader", jobs, "--format=%A %U %D", NULL};
    const struct hvd_info_process process = {.argv = argv, .limit_ms = 1000 * LIMIT_S};
    struct hvd_info_output output;
    unsigned user = 0;
    int status;

    snprintf(job, sizeof(job), which->array < 0 ? "%" PRIu32 : "%" PRIu32 "_%" PRId64,
             which->job, which->array);
    snprintf(jobs, sizeof(jobs), "--jobs=%s", job);
    status = hvd_info_process_run(&process, &output, err);
    if (status < 0) {
        return status;
    }
    if (output.is_missing) {
        status = hvd_fail(err, HVD_ERR_STATE,
                          "there is no squeue in PATH, which --job needs; for a job of "
                          "hvdrun: --pid PID");
    } else if (!hvd_info_output_is_good(&output) ||
               sscanf(output.text, "%" SCNu32 " %u %d", &asked.job, &user,
                      &asked.nodes) != 3) {
        status = hvd_fail(err, HVD_ERR_STATE, "squeue knows no running job %s: %.200s",
                          job, output.bytes > 0 ? output.text : "it has ended");
    }
    asked.user = (uid_t)user;
    hvd_info_output_finish(&output);
    return status;
}

/* Writes the steps in the output of squeue, such as "5.0\n5.batch\n", as "0, batch".
 * Returns whether the step is among them. */
static bool list_steps(char *text, int64_t step, char *list, size_t bytes)
{
    char *rest = text;
    size_t used = 0;
    bool is_there = false;

    list[0] = '\0';
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        const char *dot = strrchr(line, '.');
        const char *name = dot != NULL ? dot + 1 : line;

        is_there = is_there || hvd_number_parse(name, LONG_MAX) == step;
        if (used < bytes) {
            used += (size_t)snprintf(list + used, bytes - used, "%s%s",
                                     used > 0 ? ", " : "", name);
        }
    }
    return is_there;
}

/* Fails if the job has no such step. If squeue does not answer, the nodes will. */
static int check_step(const struct hvd_info_selection *which, struct hvd_error *err)
{
    char jobs[64], steps[160];
    const char *const argv[] = {"squeue",  "--noheader",  jobs,
                                "--steps", "--format=%i", NULL};
    const struct hvd_info_process process = {.argv = argv, .limit_ms = 1000 * LIMIT_S};
    struct hvd_info_output output;
    int status;

    snprintf(jobs, sizeof(jobs), "--jobs=%" PRIu32, asked.job);
    status = hvd_info_process_run(&process, &output, err);
    if (status < 0) {
        return status;
    }
    if (hvd_info_output_is_good(&output) && output.bytes > 0 &&
        !list_steps(output.text, which->step, steps, sizeof(steps))) {
        status = hvd_fail(err, HVD_ERR_STATE,
                          "job %" PRIu32 " has no running step %" PRId64
                          ", but these: %s: name one of them, or the job alone",
                          asked.job, which->step, steps);
    }
    hvd_info_output_finish(&output);
    return status;
}

/* A change of user clears the parent-death signal, so this sets it again: the child must
 * end with hvd-info. */
static int become_user(uid_t user, struct hvd_error *err)
{
    const struct passwd *entry = getpwuid(user);

    if (entry == NULL || initgroups(entry->pw_name, entry->pw_gid) != 0 ||
        setgid(entry->pw_gid) != 0 || setuid(user) != 0 ||
        prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot become user %u: %m", (unsigned)user);
    }
    return 0;
}

/* Runs in the child and replaces it by srun. */
static int become_srun(struct hvd_error *err)
{
    const struct hvd_info_selection *which = asked.which;
    char self[PATH_MAX], job[32], nodes[32], step[48];
    struct hvd_srun_environment environment;
    const ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *const arguments[] = {"srun",
                               job,
                               "--overlap",
                               nodes,
                               "--ntasks-per-node=1",
                               "--mem=0",
                               "--gres=none",
                               "--mpi=none",
                               "--input=none",
                               "--quiet",
                               "--job-name=hvd-info",
                               self,
                               "--raw",
                               step,
                               which->has_stacks ? "--stacks" : NULL,
                               NULL};

    self[length > 0 ? length : 0] = '\0';
    snprintf(job, sizeof(job), "--jobid=%" PRIu32, asked.job);
    snprintf(nodes, sizeof(nodes), "--nodes=%d", asked.nodes);
    snprintf(step, sizeof(step), which->step < 0 ? "%" PRIu32 : "%" PRIu32 ".%" PRId64,
             asked.job, which->step);
    hvd_srun_environment_fill(&environment);
    if (geteuid() == 0 && asked.user != 0 && become_user(asked.user, err) < 0) {
        return err->status;
    }
    environ = environment.variables;
    execvp(arguments[0], arguments);
    return hvd_fail(err, HVD_ERR_SYS, "cannot start srun: %m");
}

static int take_lines(const char *text, struct hvd_info_ranks *ranks,
                      struct hvd_error *err)
{
    struct hvd_info_rank rank;
    int status = 0;

    while (status == 0 && *text != '\0') {
        if (hvd_info_live_parse(text, &rank)) {
            status = hvd_info_live_add(ranks, &rank, err);
        }
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    return status;
}

/* Warns if ranks may be missing from the answer. */
static void tell_gaps(const struct hvd_info_output *output)
{
    if (output->is_late) {
        fprintf(stderr,
                "hvd-info: some nodes have not answered within %d s: the ranks on them "
                "are missing\n",
                LIMIT_S);
    }
    if (output->is_cut) {
        fprintf(stderr, "hvd-info: the answer is longer than 16 megabytes: some ranks "
                        "are missing\n");
    }
}

static int ask_nodes(const struct hvd_info_selection *which, struct hvd_info_ranks *ranks,
                     struct hvd_error *err)
{
    const struct hvd_info_process process = {.function = become_srun,
                                             .limit_ms = 1000 * LIMIT_S,
                                             .most_bytes = HVD_INFO_PROCESS_LARGE_BYTES};
    struct hvd_info_output output;
    int status = find_job(which, err);

    if (status == 0 && which->step >= 0) {
        status = check_step(which, err);
    }
    if (status < 0) {
        return status;
    }
    asked.which = which;
    status = hvd_info_process_run(&process, &output, err);
    if (status < 0) {
        return status;
    }
    status = take_lines(output.text, ranks, err);
    tell_gaps(&output);
    if (status == 0 && ranks->count == 0 && !hvd_info_output_is_good(&output)) {
        status = hvd_fail(err, HVD_ERR_STATE,
                          "srun cannot ask the nodes of job %" PRIu32 ": %.300s",
                          which->job, output.text);
    }
    hvd_info_output_finish(&output);
    return status;
}

/* --- questions --- */

static int fail_empty(const struct hvd_info_live_question *question,
                      struct hvd_error *err)
{
    if (question->is_job) {
        return hvd_fail(err, HVD_ERR_STATE,
                        "no process of job %" PRIu32
                        " is past hvd.init(), or all of them belong to another user",
                        question->which.job);
    }
    return hvd_fail(err, HVD_ERR_STATE,
                    "neither process %d nor a process that it has started is past "
                    "hvd.init(); or they belong to another user",
                    (int)question->which.pid);
}

/* Asks once. *found: the number of ranks. */
static int ask(const struct hvd_info_live_question *question, int *found,
               struct hvd_error *err)
{
    struct hvd_info_ranks ranks = {0};
    int status = question->is_job ? ask_nodes(&question->which, &ranks, err)
                                  : hvd_info_live_find(&question->which, &ranks, err);

    *found = ranks.count;
    if (status == 0 && question->is_raw) {
        for (int i = 0; i < ranks.count; i++) {
            hvd_info_live_write(&ranks.all[i], stdout);
        }
    } else if (status == 0 && ranks.count > 0) {
        status = hvd_info_live_print(&ranks, question->is_json, stdout, err);
    }
    free(ranks.all);
    if (status == 0 && (fflush(stdout) != 0 || ferror(stdout))) {
        status = hvd_fail(err, HVD_ERR_SYS, "cannot write to standard output: %m");
    }
    return status;
}

int hvd_info_live(const struct hvd_info_live_question *question, struct hvd_error *err)
{
    const bool is_screen = question->watch_s > 0 && isatty(STDOUT_FILENO);
    int found;
    int status = ask(question, &found, err);

    if (status == 0 && found == 0 && !question->is_raw) {
        return fail_empty(question, err);
    }
    while (status == 0 && found > 0 && question->watch_s > 0) {
        sleep((unsigned)question->watch_s);
        if (is_screen) {
            fputs("\033[H\033[J", stdout);
        }
        status = ask(question, &found, err);
    }
    return status;
}
