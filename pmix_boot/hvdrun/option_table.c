/* SPDX-License-Identifier: Apache-2.0 */
/* horovodrun's options of version 0.28.1, and a few of hvd's own. */
#include "pmix_boot/hvdrun/option_table.h"

#include <limits.h>
#include <string.h>

#include "gpu_binding/base/env.h"
#include "pmix_boot/hvdrun/options.h"

#define ONE_CONTROLLER "hvd has only one controller"
#define NO_MPI "hvd does not use MPI"

#define GROUP(title)                                                                     \
    {                                                                                    \
        .name = "", .text = (title)                                                      \
    }
#define OWN(long_name, short_name, value, help)                                          \
    {                                                                                    \
        .name = (long_name), .aliases = (short_name), .argument = (value),               \
        .kind = HVDRUN_OPTION_OWN, .text = (help)                                        \
    }
#define FIELD(long_name, short_name, value, how, member, help)                           \
    {                                                                                    \
        .name = (long_name), .aliases = (short_name), .argument = (value),               \
        .kind = HVDRUN_OPTION_##how, .field = offsetof(struct hvdrun_options, member),   \
        .text = (help)                                                                   \
    }
#define COUNT(long_name, short_name, value, range_least, range_most, member, help)       \
    {                                                                                    \
        .name = (long_name), .aliases = (short_name), .argument = (value),               \
        .kind = HVDRUN_OPTION_COUNT, .least = (range_least), .most = (range_most),       \
        .field = offsetof(struct hvdrun_options, member), .text = (help)                 \
    }
#define ACTION(long_name, short_name, chosen, help)                                      \
    {                                                                                    \
        .name = (long_name), .aliases = (short_name), .kind = HVDRUN_OPTION_ACTION,      \
        .least = (chosen), .text = (help)                                                \
    }
#define SETS(long_name, value, how, target, help)                                        \
    {                                                                                    \
        .name = (long_name), .argument = (value), .kind = HVDRUN_OPTION_##how,           \
        .variable = (target), .text = (help)                                             \
    }
#define NUMBER(long_name, value, how, range_least, range_most, target, help)             \
    {                                                                                    \
        .name = (long_name), .argument = (value), .kind = HVDRUN_OPTION_##how,           \
        .variable = (target), .least = (range_least), .most = (range_most),              \
        .text = (help)                                                                   \
    }
#define WORD(long_name, value, list, target, help)                                       \
    {                                                                                    \
        .name = (long_name), .argument = (value), .kind = HVDRUN_OPTION_WORD,            \
        .variable = (target), .words = (list), .text = (help)                            \
    }
#define SWITCH(long_name, how, target, help) SETS(long_name, NULL, how, target, help)
#define IDLE(long_name, short_name, value, why)                                          \
    {                                                                                    \
        .name = (long_name), .aliases = (short_name), .argument = (value),               \
        .kind = HVDRUN_OPTION_IDLE, .text = (why)                                        \
    }
#define REFUSED(long_name, value, what_to_do)                                            \
    {                                                                                    \
        .name = (long_name), .argument = (value), .kind = HVDRUN_OPTION_REFUSED,         \
        .text = (what_to_do)                                                             \
    }

#define MOST_SECONDS (INT_MAX / 1000)
#define MOST_TIMES 1000000
#define MOST_CACHED (1 << 20)
#define MOST_STREAMS 8

static const char *const timeline_ranks[] = {"all", "0", NULL};
static const char *const log_levels[] = {"TRACE", "DEBUG", "INFO",  "WARNING",
                                         "WARN",  "ERROR", "FATAL", NULL};

const struct hvdrun_option hvdrun_option_table[] = {
    GROUP("Ranks and hosts"),
    COUNT("num-proc", "np n", "N", 1, HVD_PLAN_RANKS_MAX, ranks, "start N ranks"),
    FIELD("hosts", "H", "HOST:N,...", TEXT, hosts,
          "hosts to run on, with at most N ranks on each"),
    OWN("hostfile", NULL, "FILE", "read the hosts from a file with lines `HOST slots=N`"),
    OWN("bind", NULL, "auto|socket|cores|none", "bind ranks to cpus (auto)"),
    NUMBER("start-timeout", "SECONDS", COUNT, 1, MOST_SECONDS, HVD_ENV_START_TIMEOUT,
           "how long init waits for all ranks (60)"),
    SETS("network-interfaces", "NAME,...", TEXT, HVD_ENV_IFACE,
         "network interfaces to use (all)"),
    SETS("network-interface", "NAME", TEXT, HVD_ENV_IFACE,
         "same as --network-interfaces"),
    OWN("mpi-args", NULL, "ARGS", "extra arguments for mpirun or prterun"),
    OWN("ssh-port", "p", "PORT", "SSH port for mpirun"),
    OWN("ssh-identity-file", "i", "FILE", "SSH key for mpirun"),

    GROUP("Elastic jobs, which survive the failure of a rank"),
    COUNT("min-num-proc", "min-np", "N", 1, HVD_PLAN_RANKS_MAX, elastic.min,
          "keep running with N ranks or more (-np)"),
    COUNT("max-num-proc", "max-np", "N", 1, HVD_PLAN_RANKS_MAX, elastic.max,
          "run at most N ranks (-np)"),
    COUNT("spares", NULL, "N", 1, HVD_PLAN_RANKS_MAX, elastic.spares,
          "N ranks of -np wait until they replace failed ones"),
    COUNT("elastic-timeout", NULL, "SECONDS", 1, MOST_SECONDS, elastic.timeout_s,
          "how long to wait for --min-np ranks (600)"),
    COUNT("reset-limit", NULL, "N", 0, INT_MAX, elastic.reset_limit,
          "restart training at most N times (no limit)"),
    OWN("blacklist-cooldown-range", NULL, "MIN MAX",
        "seconds before a failed rank is restarted, more each time"),
    FIELD("host-discovery-script", NULL, "FILE", TEXT, elastic.discovery,
          "command that prints HOST:N lines; run each second to find free slots"),
    COUNT("slots-per-host", NULL, "N", 1, HVD_PLAN_RANKS_MAX, elastic.slots_per_host,
          "slots of a host that is printed without N (1)"),

    GROUP("Output"),
    FIELD("output-filename", NULL, "DIR", TEXT, output_directory,
          "also write DIR/rank.<r>/stdout and stderr"),
    FIELD("prefix-output", NULL, NULL, ON, has_prefix,
          "prefix each line with [rank]<stream>: "),
    FIELD("prefix-output-with-timestamp", "prefix-timestamp", NULL, ON, has_time,
          "prefix each line with the time, too"),
    FIELD("verbose", NULL, NULL, ON, is_verbose,
          "show how ranks are bound and what is started"),
    OWN("config-file", NULL, "YAML", "read options from a file in horovodrun's format"),
    ACTION("check-build", "cb", HVDRUN_CHECK_BUILD, "show what is installed, and exit"),
    ACTION("version", "v", HVDRUN_VERSION, "show the version, and exit"),
    ACTION("help", "h", HVDRUN_HELP, "show this help, and exit"),

    GROUP("Tunables"),
    SETS("fusion-threshold-mb", "MB", MEBIBYTES, HVD_ENV_FUSION_THRESHOLD,
         "largest fused batch, in MiB (128)"),
    NUMBER("cycle-time-ms", "MS", NUMBER, 0, 60000, HVD_ENV_CYCLE_TIME,
           "milliseconds between two cycles of negotiation (1)"),
    NUMBER("cache-capacity", "N", COUNT, 0, MOST_CACHED, HVD_ENV_CACHE_CAPACITY,
           "tensors in the response cache (1024)"),
    SWITCH("hierarchical-allreduce", ON, HVD_ENV_HIERARCHICAL_ALLREDUCE,
           "reduce within nodes first"),
    SWITCH("no-hierarchical-allreduce", OFF, HVD_ENV_HIERARCHICAL_ALLREDUCE, NULL),
    SWITCH("hierarchical-allgather", ON, HVD_ENV_HIERARCHICAL_ALLGATHER,
           "gather within nodes first"),
    SWITCH("no-hierarchical-allgather", OFF, HVD_ENV_HIERARCHICAL_ALLGATHER, NULL),
    SWITCH("torus-allreduce", ON, HVD_ENV_TORUS_ALLREDUCE, "reduce over a torus"),
    SWITCH("no-torus-allreduce", OFF, HVD_ENV_TORUS_ALLREDUCE, NULL),
    NUMBER("num-nccl-streams", "N", COUNT, 1, MOST_STREAMS, HVD_ENV_NCCL_STREAMS,
           "no effect: hvd launches NCCL on one stream"),
    SETS("thread-affinity", "CPU,...", CPUS, HVD_ENV_THREAD_AFFINITY,
         "cpu of hvd's thread, for each local rank"),
    NUMBER("gloo-timeout-seconds", "SECONDS", COUNT, 1, MOST_SECONDS,
           HVD_ENV_GLOO_TIMEOUT, "same as --start-timeout"),
    SWITCH("tcp", ON, HVD_ENV_NCCL_IB_DISABLE, "use NCCL without InfiniBand"),

    GROUP("Autotuning"),
    SWITCH("autotune", ON, HVD_ENV_AUTOTUNE, "search for the best tunables"),
    SWITCH("no-autotune", OFF, HVD_ENV_AUTOTUNE, NULL),
    SETS("autotune-log-file", "FILE", FILE, HVD_ENV_AUTOTUNE_LOG,
         "write a log of the search"),
    NUMBER("autotune-warmup-samples", "N", COUNT, 0, MOST_TIMES, HVD_ENV_AUTOTUNE_WARMUP,
           "samples to discard at the start (3)"),
    NUMBER("autotune-steps-per-sample", "N", COUNT, 1, MOST_TIMES, HVD_ENV_AUTOTUNE_STEPS,
           "steps per sample (10)"),
    NUMBER("autotune-bayes-opt-max-samples", "N", COUNT, 1, MOST_TIMES,
           HVD_ENV_AUTOTUNE_SAMPLES, "number of samples at most (20)"),
    NUMBER("autotune-gaussian-process-noise", "X", NUMBER, 0, 1, HVD_ENV_AUTOTUNE_NOISE,
           "expected noise, 0 to 1 (0.8)"),

    GROUP("Report, metrics, timeline, stalls, logging"),
    SETS("report-filename", "FILE", FILE, HVD_ENV_REPORT,
         "write a straggler report to FILE and FILE.json, or to FILE.html"),
    SWITCH("report", ON, HVD_ENV_REPORT,
           "print a straggler report at the end of the job"),
    SETS("metrics", "DIR", TEXT, HVD_ENV_METRICS,
         "write metrics for Prometheus into DIR, a file for each host"),
    SETS("timeline-filename", "FILE", FILE, HVD_ENV_TIMELINE,
         "write a timeline for chrome://tracing"),
    WORD("timeline-ranks", "all|0", timeline_ranks, HVD_ENV_TIMELINE_RANKS,
         "ranks in the timeline: all, or 0 for rank 0 only (0)"),
    SWITCH("timeline-mark-cycles", ON, HVD_ENV_TIMELINE_MARK_CYCLES,
           "mark cycles in the timeline"),
    SWITCH("no-timeline-mark-cycles", OFF, HVD_ENV_TIMELINE_MARK_CYCLES, NULL),
    SETS("nccl-files", "DIR", TEXT, HVD_ENV_NCCL_FILES,
         "let NCCL write its warnings to files in DIR, for hvd-info --nccl"),
    SWITCH("stall-check", OFF, HVD_ENV_STALL_CHECK_DISABLE,
           "warn about tensors that some ranks never submit (on)"),
    SWITCH("no-stall-check", ON, HVD_ENV_STALL_CHECK_DISABLE, NULL),
    NUMBER("stall-check-warning-time-seconds", "SECONDS", COUNT, 1, MOST_SECONDS,
           HVD_ENV_STALL_WARNING, "warn after this time (60)"),
    NUMBER("stall-check-shutdown-time-seconds", "SECONDS", COUNT, 0, MOST_SECONDS,
           HVD_ENV_STALL_SHUTDOWN, "end the job after this time, 0: never (0)"),
    WORD("log-level", "LEVEL", log_levels, HVD_ENV_LOG_LEVEL,
         "TRACE, DEBUG, INFO, WARNING, ERROR, FATAL"),
    SWITCH("log-with-timestamp", OFF, HVD_ENV_LOG_HIDE_TIME,
           "print the time in log lines"),
    {.name = "log-without-timestamp",
     /* from `with_timestamp: false` in a configuration file */
     .aliases = "no-log-with-timestamp",
     .kind = HVDRUN_OPTION_ON,
     .variable = HVD_ENV_LOG_HIDE_TIME},
    SWITCH("log-hide-timestamp", ON, HVD_ENV_LOG_HIDE_TIME, NULL),
    SWITCH("no-log-hide-timestamp", OFF, HVD_ENV_LOG_HIDE_TIME, NULL),

    GROUP("Accepted without effect"),
    IDLE("gloo", NULL, NULL, ONE_CONTROLLER),
    IDLE("mpi", NULL, NULL, ONE_CONTROLLER),
    IDLE("disable-cache", NULL, NULL, "hvdrun does not cache checks of hosts"),
    IDLE("mpi-threads-disable", NULL, NULL, NO_MPI),
    IDLE("no-mpi-threads-disable", NULL, NULL, NO_MPI),
    IDLE("binding-args", NULL, "ARGS", "hvdrun binds ranks itself: see --bind"),

    GROUP("Not accepted"),
    REFUSED("jsrun", NULL,
            "start the ranks with jsrun itself, which serves PMIx to them"),
    {.name = NULL},
};

/* Returns whether one of the words is the name. */
static bool has_word(const char *words, const char *name)
{
    const size_t length = strlen(name);

    while (words != NULL) {
        const char *end = strchr(words, ' ');

        if (strcspn(words, " ") == length && strncmp(words, name, length) == 0) {
            return true;
        }
        words = end != NULL ? end + 1 : NULL;
    }
    return false;
}

const struct hvdrun_option *hvdrun_option_find(const char *name)
{
    for (const struct hvdrun_option *option = hvdrun_option_table; option->name != NULL;
         option++) {
        if (option->name[0] != '\0' &&
            (strcmp(option->name, name) == 0 || has_word(option->aliases, name))) {
            return option;
        }
    }
    return NULL;
}
