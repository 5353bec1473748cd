/* SPDX-License-Identifier: Apache-2.0 */
/* horovodrun's options of version 0.28.1, and a few of hvd's own. */
#include "pmix_boot/hvdrun/option_table.h"

#include <limits.h>
#include <string.h>

#include "gpu_binding/base/env.h"

#define ONE_CONTROLLER "hvd has one controller, and it needs no choice"
#define NO_MPI "hvd does not use MPI"

#define GROUP(title)                                                                     \
    {                                                                                    \
        .name = "", .text = (title)                                                      \
    }
#define OWN(long_name, short_name, value, help)                                          \
    {                                                                                    \
        .name = (long_name), .alias = (short_name), .argument = (value),                 \
        .kind = HVDRUN_OPTION_OWN, .text = (help)                                        \
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
        .name = (long_name), .alias = (short_name), .argument = (value),                 \
        .kind = HVDRUN_OPTION_IDLE, .text = (why)                                        \
    }
#define ELASTIC(long_name, short_name, value, help)                                      \
    {                                                                                    \
        .name = (long_name), .alias = (short_name), .argument = (value),                 \
        .kind = HVDRUN_OPTION_ELASTIC, .text = (help)                                    \
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
    OWN("num-proc", "np", "N", "start N ranks"),
    OWN("hosts", "H", "HOST:N,...", "on these hosts, at most N ranks on each"),
    OWN("hostfile", NULL, "FILE", "the same from a file with lines `HOST slots=N`"),
    OWN("bind", NULL, "HOW", "bind ranks of this node to cpus: auto, socket, core, none"),
    NUMBER("start-timeout", "SECONDS", COUNT, 1, MOST_SECONDS, HVD_ENV_START_TIMEOUT,
           "how long init waits for all ranks (60)"),
    SETS("network-interfaces", "NAME,...", TEXT, HVD_ENV_IFACE,
         "network interfaces to connect over (all)"),
    SETS("network-interface", "NAME", TEXT, HVD_ENV_IFACE, "the same"),
    OWN("mpi-args", NULL, "ARGS", "more arguments for mpirun, when ranks are on hosts"),
    OWN("ssh-port", "p", "PORT", "port that mpirun's ssh connects to"),
    OWN("ssh-identity-file", "i", "FILE", "key that mpirun's ssh uses"),

    GROUP("Elastic jobs: a rank that fails does not end the others"),
    ELASTIC("min-num-proc", "min-np", "N", "go on while N ranks are left (-np)"),
    ELASTIC("max-num-proc", "max-np", "N", "never more ranks than N (-np)"),
    ELASTIC("elastic-timeout", NULL, "SECONDS", "how long fewer wait for others (600)"),
    ELASTIC("reset-limit", NULL, "N", "begin anew at most N times"),
    ELASTIC("blacklist-cooldown-range", NULL, "MIN MAX",
            "start a failed rank again after so many seconds, more each time"),
    ELASTIC("host-discovery-script", NULL, "FILE",
            "a command that prints HOST:N, asked each second: start more ranks"),
    ELASTIC("slots-per-host", NULL, "N", "ranks on a host that it prints without N (1)"),

    GROUP("Output"),
    OWN("output-filename", NULL, "DIR", "also write DIR/rank.<r>/stdout and stderr"),
    OWN("prefix-output", NULL, NULL, "begin each line with [rank]<stream>: "),
    OWN("prefix-output-with-timestamp", "prefix-timestamp", NULL,
        "and with the time before it"),
    OWN("verbose", NULL, NULL, "show the binding of ranks, and what is started"),
    OWN("config-file", NULL, "YAML", "read options from a file of horovodrun's form"),
    OWN("check-build", "cb", NULL, "show what is installed, and end"),
    OWN("version", "v", NULL, "show the version, and end"),
    OWN("help", "h", NULL, "show this, and end"),

    GROUP("Tunables"),
    SETS("fusion-threshold-mb", "MB", MEBIBYTES, HVD_ENV_FUSION_THRESHOLD,
         "most MiB that are reduced at once (128)"),
    NUMBER("cycle-time-ms", "MS", NUMBER, 0, 60000, HVD_ENV_CYCLE_TIME,
           "milliseconds between two rounds (1)"),
    NUMBER("cache-capacity", "N", COUNT, 0, MOST_CACHED, HVD_ENV_CACHE_CAPACITY,
           "tensors that are remembered (1024)"),
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
         "a cpu for hvd's thread of each local rank"),
    NUMBER("gloo-timeout-seconds", "SECONDS", COUNT, 1, MOST_SECONDS,
           HVD_ENV_GLOO_TIMEOUT, "same as --start-timeout"),
    SWITCH("tcp", ON, HVD_ENV_NCCL_IB_DISABLE, "NCCL without InfiniBand"),

    GROUP("Autotuning"),
    SWITCH("autotune", ON, HVD_ENV_AUTOTUNE, "search the best tunables"),
    SWITCH("no-autotune", OFF, HVD_ENV_AUTOTUNE, NULL),
    SETS("autotune-log-file", "FILE", FILE, HVD_ENV_AUTOTUNE_LOG,
         "write down the search"),
    NUMBER("autotune-warmup-samples", "N", COUNT, 0, MOST_TIMES, HVD_ENV_AUTOTUNE_WARMUP,
           "samples that do not count (3)"),
    NUMBER("autotune-steps-per-sample", "N", COUNT, 1, MOST_TIMES, HVD_ENV_AUTOTUNE_STEPS,
           "steps of a sample (10)"),
    NUMBER("autotune-bayes-opt-max-samples", "N", COUNT, 1, MOST_TIMES,
           HVD_ENV_AUTOTUNE_SAMPLES, "most samples (20)"),
    NUMBER("autotune-gaussian-process-noise", "X", NUMBER, 0, 1, HVD_ENV_AUTOTUNE_NOISE,
           "noise to expect, 0 to 1 (0.8)"),

    GROUP("Report, timeline, stalls, logging"),
    SETS("report-filename", "FILE", FILE, HVD_ENV_REPORT,
         "who was late; FILE.json has the same for programs"),
    SWITCH("report", ON, HVD_ENV_REPORT, "show at the end who was late"),
    SETS("timeline-filename", "FILE", FILE, HVD_ENV_TIMELINE,
         "write what happened when, for chrome://tracing"),
    WORD("timeline-ranks", "WHICH", timeline_ranks, HVD_ENV_TIMELINE_RANKS,
         "all: it shows all ranks, 0: rank 0 alone (0)"),
    SWITCH("timeline-mark-cycles", ON, HVD_ENV_TIMELINE_MARK_CYCLES, "mark rounds in it"),
    SWITCH("no-timeline-mark-cycles", OFF, HVD_ENV_TIMELINE_MARK_CYCLES, NULL),
    SWITCH("stall-check", OFF, HVD_ENV_STALL_CHECK_DISABLE,
           "warn about tensors that some ranks never submit (on)"),
    SWITCH("no-stall-check", ON, HVD_ENV_STALL_CHECK_DISABLE, NULL),
    NUMBER("stall-check-warning-time-seconds", "SECONDS", COUNT, 1, MOST_SECONDS,
           HVD_ENV_STALL_WARNING, "when to warn (60)"),
    NUMBER("stall-check-shutdown-time-seconds", "SECONDS", COUNT, 0, MOST_SECONDS,
           HVD_ENV_STALL_SHUTDOWN, "when to give up (0: never)"),
    WORD("log-level", "LEVEL", log_levels, HVD_ENV_LOG_LEVEL,
         "TRACE, DEBUG, INFO, WARNING, ERROR, FATAL"),
    SWITCH("log-with-timestamp", OFF, HVD_ENV_LOG_HIDE_TIME, "the time in log lines"),
    {.name = "log-without-timestamp",
     .alias = "no-log-with-timestamp", /* as the configuration file would say it */
     .kind = HVDRUN_OPTION_ON,
     .variable = HVD_ENV_LOG_HIDE_TIME},
    SWITCH("log-hide-timestamp", ON, HVD_ENV_LOG_HIDE_TIME, NULL),
    SWITCH("no-log-hide-timestamp", OFF, HVD_ENV_LOG_HIDE_TIME, NULL),

    GROUP("Accepted without effect"),
    IDLE("gloo", NULL, NULL, ONE_CONTROLLER),
    IDLE("mpi", NULL, NULL, ONE_CONTROLLER),
    IDLE("disable-cache", NULL, NULL, "hvdrun does not remember checks of hosts"),
    IDLE("mpi-threads-disable", NULL, NULL, NO_MPI),
    IDLE("no-mpi-threads-disable", NULL, NULL, NO_MPI),
    IDLE("binding-args", NULL, "ARGS", "hvdrun binds ranks itself: see --bind"),

    GROUP("Not accepted"),
    REFUSED("jsrun", NULL,
            "start the ranks with jsrun itself: hvd finds them by its PMIx"),
    {.name = NULL},
};

const struct hvdrun_option *hvdrun_option_find(const char *name)
{
    for (const struct hvdrun_option *option = hvdrun_option_table; option->name != NULL;
         option++) {
        if (option->name[0] != '\0' &&
            (strcmp(option->name, name) == 0 ||
             (option->alias != NULL && strcmp(option->alias, name) == 0))) {
            return option;
        }
    }
    return NULL;
}
