/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the command line of hvd-info. */
#include "contrib/info/options.h"

#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/error.h"

/* Values of getopt_long for options without a letter. */
enum option_code {
    OPTION_TOPOLOGY = 256,
    OPTION_RANKS,
    OPTION_ALLOWED,
    OPTION_GPUS,
    OPTION_BIND,
    OPTION_CPUS_PER_RANK,
    OPTION_SMT,
    OPTION_NIC,
    OPTION_CHECK,
    OPTION_BUG_REPORT,
    OPTION_SLURM,
    OPTION_PYTHON,
    OPTION_INTO_VENV,
    OPTION_OUT_OF_VENV,
    OPTION_NCCL,
    OPTION_JOB,
    OPTION_PID,
    OPTION_RAW,
    OPTION_STACKS,
    OPTION_JSON,
    OPTION_NODE,
    OPTION_SECONDS,
    OPTION_THRESHOLDS,
    OPTION_WATCH,
    OPTION_TIMELINE,
    OPTION_HELP,
    OPTION_VERSION,
};

enum {
    MOST_SECONDS = 60,
    WATCH_S = 2,
    MOST_WATCH_S = 86400,
};

static const struct option long_options[] = {
    {"topology", required_argument, NULL, OPTION_TOPOLOGY},
    {"ranks", required_argument, NULL, OPTION_RANKS},
    {"allowed", required_argument, NULL, OPTION_ALLOWED},
    {"gpus", required_argument, NULL, OPTION_GPUS},
    {"bind", required_argument, NULL, OPTION_BIND},
    {"cpus-per-rank", required_argument, NULL, OPTION_CPUS_PER_RANK},
    {"smt", required_argument, NULL, OPTION_SMT},
    {"nic", required_argument, NULL, OPTION_NIC},
    {"check", no_argument, NULL, OPTION_CHECK},
    {"bug-report", optional_argument, NULL, OPTION_BUG_REPORT},
    {"slurm", no_argument, NULL, OPTION_SLURM},
    {"python", optional_argument, NULL, OPTION_PYTHON},
    {"into-venv", required_argument, NULL, OPTION_INTO_VENV},
    {"out-of-venv", required_argument, NULL, OPTION_OUT_OF_VENV},
    {"nccl", required_argument, NULL, OPTION_NCCL},
    {"job", required_argument, NULL, OPTION_JOB},
    {"pid", required_argument, NULL, OPTION_PID},
    {"raw", required_argument, NULL, OPTION_RAW}, /* for hvd-info itself */
    {"stacks", no_argument, NULL, OPTION_STACKS},
    {"json", no_argument, NULL, OPTION_JSON},
    {"node", no_argument, NULL, OPTION_NODE},
    {"seconds", required_argument, NULL, OPTION_SECONDS},
    {"thresholds", required_argument, NULL, OPTION_THRESHOLDS},
    {"watch", optional_argument, NULL, OPTION_WATCH},
    {"timeline", required_argument, NULL, OPTION_TIMELINE},
    {"help", no_argument, NULL, OPTION_HELP},
    {"version", no_argument, NULL, OPTION_VERSION},
    {NULL, 0, NULL, 0},
};

void hvd_info_usage(FILE *out)
{
    fputs(
        "usage: hvd-info [options]\n"
        "Shows the cpus, memory node and network card of each rank on this node; in a\n"
        "Slurm job, those of the job's ranks. It binds nothing.\n"
        "\n"
        "  --topology FILE     read the node from an hwloc XML file (lstopo node.xml)\n"
        "  --ranks N           ranks on the node (default: the job's, else one per gpu)\n"
        "  --allowed CPUS      cpus that the ranks may use, such as 0-3,8 or 0-18:2\n"
        "  --gpus LIST         gpus of the ranks, numbers or UUIDs, such as 0-1,3\n"
        "  --bind MODE         socket: each rank gets a share of the cores of its gpu's\n"
        "                      socket; cores: at most N of these cores; none: no "
        "binding;\n"
        "                      auto: as the job is bound (default)\n"
        "  --cpus-per-rank N   with --bind cores: at most N cores for a rank\n"
        "  --smt N             at most N hardware threads of each core\n"
        "  --nic auto|off      choose network cards near the gpu (default), or none\n"
        "  --check             show how ranks would start, which libraries GPU tensors\n"
        "                      would use, and what is missing; in a job, on all its "
        "nodes,\n"
        "                      and which node, rank or link is slower than the others\n"
        "  --node              with --check: only this node, as if there were no job\n"
        "  --seconds N         with --check: measure for about N seconds (default: 8)\n"
        "  --thresholds FILE   with --check: limits for warnings and faults (default:\n"
        "                      share/hvd/thresholds.conf of the installation)\n"
        "  --bug-report[=FILE] write a text for a report about a fault to FILE, -: to\n"
        "                      standard output (default: hvd-bug-report.txt, or a\n"
        "                      new name if it exists); it has no secrets. In a job,\n"
        "                      start it on all ranks\n"
        "  --slurm             compare hvd's plugin, srun, slurmctld, slurmd on all "
        "nodes\n"
        "                      and plugstack.conf: 0: good, 1: wrong, 2: could not tell\n"
        "  --python[=PYTHON]   list the packages horovod and hvd that Python finds, and\n"
        "                      say which one it imports (default: python in PATH)\n"
        "  --into-venv DIR     let the virtual environment DIR find hvd's package where\n"
        "                      Python ignores PYTHONPATH, as by python -I: writes\n"
        "                      hvd.pth into its site-packages\n"
        "  --out-of-venv DIR   remove that file\n"
        "  --nccl DIR          sum up what NCCL has warned of on all ranks of a job, "
        "from\n"
        "                      the files of srun --hvd=nccl=DIR, and say what to do\n"
        "  --job JOB[.STEP]    ask the ranks of a running Slurm job what they do, for "
        "what\n"
        "                      they wait, and for whom; for the job's user and root\n"
        "  --pid PID           the same for the ranks that this hvdrun or torchrun has\n"
        "                      started, or for one rank\n"
        "  --stacks            with --job or --pid: show where late ranks are, in "
        "Python\n"
        "                      and C\n"
        "  --json              with --job, --pid, --check or --nccl: print JSON, one "
        "line\n"
        "                      for each step, check or folder\n"
        "  --watch[=SECONDS]   with --job or --pid: ask again after 2 seconds, until "
        "the\n"
        "                      job has ended\n"
        "  --timeline FILE     make the page of a straggler report from a timeline, as\n"
        "                      FILE.html\n"
        "  --help              show this help, and exit\n"
        "  --version           show the version, and exit\n",
        out);
}

static int parse_count(const char *option, const char *text, int most, int *count,
                       struct hvd_error *err)
{
    char *end = NULL;
    long value = strtol(text, &end, 10);

    if (text[0] < '0' || text[0] > '9' || *end != '\0' || value < 1 || value > most) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "%s: expected a number from 1 to %d, found '%.100s'", option,
                        most, text);
    }
    *count = (int)value;
    return 0;
}

static int parse_allowed(const char *text, struct hvd_info_options *options,
                         struct hvd_error *err)
{
    struct hvd_error cause;

    options->allowed_text = text;
    if (hvd_cpulist_parse(text, &options->allowed, &cause) < 0) {
        return hvd_fail(err, HVD_ERR_ARG, "--allowed: %.300s", cause.text);
    }
    return 0;
}

static int parse_bind(const char *text, struct hvd_info_options *options,
                      struct hvd_error *err)
{
    if (hvd_bind_mode_parse(text, &options->plan.mode) < 0) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "--bind: expected auto, none, socket or cores, found '%.100s'",
                        text);
    }
    return 0;
}

static int parse_nic(const char *text, struct hvd_info_options *options,
                     struct hvd_error *err)
{
    options->plan.nic_off = strcmp(text, "off") == 0;
    if (!options->plan.nic_off && strcmp(text, "auto") != 0) {
        return hvd_fail(err, HVD_ERR_ARG, "--nic: expected auto or off, found '%.100s'",
                        text);
    }
    return 0;
}

/* Returns the option for an action other than showing the binding, else NULL. Only one
 * such option may be given. */
static const char *action_name(enum hvd_info_action action)
{
    switch (action) {
    case HVD_INFO_CHECK:
        return "--check";
    case HVD_INFO_BUG_REPORT:
        return "--bug-report";
    case HVD_INFO_SLURM:
        return "--slurm";
    case HVD_INFO_PYTHON:
        return "--python";
    case HVD_INFO_INTO_VENV:
        return "--into-venv";
    case HVD_INFO_OUT_OF_VENV:
        return "--out-of-venv";
    case HVD_INFO_NCCL:
        return "--nccl";
    case HVD_INFO_LIVE:
        return "--job or --pid";
    case HVD_INFO_TIMELINE:
        return "--timeline";
    default:
        return NULL;
    }
}

static int take_action(enum hvd_info_action action, struct hvd_info_options *options,
                       struct hvd_error *err)
{
    const char *earlier = action_name(options->action);

    if (earlier != NULL && options->action != action) {
        return hvd_fail(err, HVD_ERR_ARG, "expected one of %s and %s, found both",
                        earlier, action_name(action));
    }
    options->action = action;
    return 0;
}

/* Notes that ranks are to be asked, unless the option has a wrong value. */
static int take_live(int status, struct hvd_info_options *options, struct hvd_error *err)
{
    return status < 0 ? status : take_action(HVD_INFO_LIVE, options, err);
}

static int take_option(int code, const char *value, struct hvd_info_options *options,
                       struct hvd_error *err)
{
    switch (code) {
    case OPTION_TOPOLOGY:
        options->topology_file = value;
        return value[0] != '\0'
                   ? 0
                   : hvd_fail(
                         err, HVD_ERR_ARG,
                         "--topology: expected a file, found ''; see hvd-info --help");
    case OPTION_RANKS:
        return parse_count("--ranks", value, HVD_PLAN_RANKS_MAX, &options->rank_count,
                           err);
    case OPTION_ALLOWED:
        return parse_allowed(value, options, err);
    case OPTION_GPUS:
        options->gpus = value;
        return 0;
    case OPTION_BIND:
        return parse_bind(value, options, err);
    case OPTION_CPUS_PER_RANK:
        return parse_count("--cpus-per-rank", value, HVD_CPUSET_SIZE,
                           &options->plan.cpus_per_rank, err);
    case OPTION_SMT:
        return parse_count("--smt", value, HVD_CPUSET_SIZE,
                           &options->plan.threads_per_core, err);
    case OPTION_NIC:
        return parse_nic(value, options, err);
    case OPTION_CHECK:
        return take_action(HVD_INFO_CHECK, options, err);
    case OPTION_BUG_REPORT:
        options->report = value;
        return value != NULL && value[0] == '\0'
                   ? hvd_fail(
                         err, HVD_ERR_ARG,
                         "--bug-report: expected a file, found ''; see hvd-info --help")
                   : take_action(HVD_INFO_BUG_REPORT, options, err);
    case OPTION_SLURM:
        return take_action(HVD_INFO_SLURM, options, err);
    case OPTION_PYTHON:
        options->python = value;
        return value != NULL && value[0] == '\0'
                   ? hvd_fail(
                         err, HVD_ERR_ARG,
                         "--python: expected a program, found ''; see hvd-info --help")
                   : take_action(HVD_INFO_PYTHON, options, err);
    case OPTION_INTO_VENV:
        options->venv = value;
        return take_action(HVD_INFO_INTO_VENV, options, err);
    case OPTION_OUT_OF_VENV:
        options->venv = value;
        return take_action(HVD_INFO_OUT_OF_VENV, options, err);
    case OPTION_NCCL:
        options->nccl = value;
        return value[0] == '\0'
                   ? hvd_fail(err, HVD_ERR_ARG,
                              "--nccl: expected a folder, found ''; see hvd-info --help")
                   : take_action(HVD_INFO_NCCL, options, err);
    case OPTION_JOB:
    case OPTION_RAW:
        options->live.is_job = code == OPTION_JOB;
        options->live.is_raw = code == OPTION_RAW;
        return take_live(hvd_info_live_parse_job(value, &options->live.which, err),
                         options, err);
    case OPTION_PID:
        options->live.which.array = options->live.which.step = -1;
        return take_live(
            parse_count("--pid", value, INT_MAX, &options->live.which.pid, err), options,
            err);
    case OPTION_STACKS:
        options->live.which.has_stacks = true;
        return 0;
    case OPTION_JSON:
        options->live.is_json = options->check.is_json = true;
        return 0;
    case OPTION_NODE:
        options->check.is_node = true;
        return 0;
    case OPTION_SECONDS:
        return parse_count("--seconds", value, MOST_SECONDS, &options->check.seconds,
                           err);
    case OPTION_THRESHOLDS:
        options->check.thresholds = value;
        return 0;
    case OPTION_WATCH:
        options->live.watch_s = WATCH_S;
        return value == NULL ? 0
                             : parse_count("--watch", value, MOST_WATCH_S,
                                           &options->live.watch_s, err);
    case OPTION_TIMELINE:
        options->timeline = value;
        return value[0] == '\0'
                   ? hvd_fail(
                         err, HVD_ERR_ARG,
                         "--timeline: expected a file, found ''; see hvd-info --help")
                   : take_action(HVD_INFO_TIMELINE, options, err);
    case OPTION_HELP:
        options->action = HVD_INFO_HELP;
        return 0;
    default:
        options->action = HVD_INFO_VERSION;
        return 0;
    }
}

static int check_together(const struct hvd_info_options *options, bool has_others,
                          struct hvd_error *err)
{
    enum hvd_bind_mode mode = options->plan.mode;

    if (options->action == HVD_INFO_CHECK && has_others) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "--check looks at nodes as they are: expected no other option");
    }
    if (options->action != HVD_INFO_CHECK &&
        (options->check.is_node || options->check.seconds > 0 ||
         options->check.thresholds != NULL)) {
        return hvd_fail(err, HVD_ERR_ARG, "--%s needs --check",
                        options->check.is_node       ? "node"
                        : options->check.seconds > 0 ? "seconds"
                                                     : "thresholds");
    }
    if (options->action != HVD_INFO_LIVE && options->action != HVD_INFO_CHECK &&
        options->action != HVD_INFO_NCCL && options->live.is_json) {
        return hvd_fail(err, HVD_ERR_ARG, "--json needs --job, --pid, --check or --nccl");
    }
    if (options->action != HVD_INFO_LIVE &&
        (options->live.watch_s > 0 || options->live.which.has_stacks)) {
        return hvd_fail(err, HVD_ERR_ARG, "--%s needs --job or --pid",
                        options->live.watch_s > 0 ? "watch" : "stacks");
    }
    if (options->live.which.job != 0 && options->live.which.pid != 0) {
        return hvd_fail(err, HVD_ERR_ARG, "expected one of --job and --pid, found both");
    }
    if (action_name(options->action) != NULL && has_others) {
        return hvd_fail(err, HVD_ERR_ARG, "%s: expected no other option",
                        action_name(options->action));
    }
    if (options->plan.cpus_per_rank > 0 &&
        (mode == HVD_BIND_SOCKET || mode == HVD_BIND_NONE)) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "--cpus-per-rank needs --bind cores, found --bind %s",
                        hvd_bind_mode_name(mode));
    }
    return 0;
}

/* Reports an option that getopt_long rejects. `word` is the argument with the option; it
 * is not used for an option of one letter. */
static int fail_option(const char *word, struct hvd_error *err)
{
    if (optopt > 0 && optopt < OPTION_TOPOLOGY) {
        return hvd_fail(err, HVD_ERR_ARG, "unknown option '-%c'; see hvd-info --help",
                        optopt);
    }
    return optopt > 0 ? hvd_fail(err, HVD_ERR_ARG, "%.*s takes no value, found '%.100s'",
                                 (int)strcspn(word, "="), word, word)
                      : hvd_fail(err, HVD_ERR_ARG,
                                 "unknown option '%.100s'; see hvd-info --help", word);
}

int hvd_info_parse(int argc, char **argv, struct hvd_info_options *options,
                   struct hvd_error *err)
{
    struct hvd_info_options found = {.action = HVD_INFO_SHOW};
    bool has_others = false;
    int code;

    optind = 0;
    opterr = 0;
    while ((code = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
        if (code == ':') {
            return hvd_fail(err, HVD_ERR_ARG, "%.100s needs a value; see hvd-info --help",
                            argv[optind - 1]);
        }
        if (code == '?') {
            return fail_option(argv[optind - 1], err);
        }
        has_others = has_others || code < OPTION_CHECK;
        int status = take_option(code, optarg, &found, err);
        if (status < 0) {
            return status;
        }
    }
    if (optind < argc) {
        return hvd_fail(err, HVD_ERR_ARG, "unexpected '%.100s'; see hvd-info --help",
                        argv[optind]);
    }
    *options = found;
    return check_together(options, has_others, err);
}
