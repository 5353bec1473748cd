/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines and configuration files, and how hvdrun understands each. */
#include "pmix_boot/hvdrun/options.h"
#include "pmix_boot/hvdrun/streams.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/tap.h"

enum {
    MOST_WORDS = 24,
    TEXT_BYTES = 1024
};

struct line_case {
    /* the command line: words separated by spaces; CONFIG stands for the path of a file
     * that contains `config` */
    const char *line;
    const char *config; /* text of the file; may end with CONFIG, too */
    /* the options as describe() writes them; NULL: the line is rejected */
    const char *understood;
    int status;
    const char *text; /* a part of the error message */
};

#define REFUSED(why) NULL, HVD_ERR_ARG, (why)
#define UNSUPPORTED(why) NULL, HVD_ERR_UNSUPPORTED, (why)

static const struct line_case cases[] = {
    {"-np 4 python train.py --lr 1", NULL, "np=4 : python train.py --lr 1", 0, NULL},
    {"-n 2 a", NULL, "np=2 : a", 0, NULL},
    {"--num-proc=2 a", NULL, "np=2 : a", 0, NULL},
    {"-np 2 -- -odd-name", NULL, "np=2 : -odd-name", 0, NULL},
    {"a -np 2", NULL, "np=0 : a -np 2", 0, NULL},
    {"-np 1 -H a:2,b a", NULL, "np=1 hosts=a:2,b : a", 0, NULL},
    {"-np 1 --hosts a a", NULL, "np=1 hosts=a : a", 0, NULL},
    {"-np 1 --verbose -prefix-timestamp --bind core a", NULL,
     "np=1 verbose prefix time bind=cores : a", 0, NULL},
    {"-np 1 --bind cores a", NULL, "np=1 bind=cores : a", 0, NULL},
    {"-np 1 --bind sockets a", NULL, "np=1 bind=socket : a", 0, NULL},
    {"-np 1 --output-filename o --prefix-output a", NULL, "np=1 output=o prefix : a", 0,
     NULL},
    {"-np 1 --mpi-args= a", NULL, "np=1 mpi= : a", 0, NULL},
    {"-np 1 -p 2222 -i /dev/null --mpi-args=--x a", NULL,
     "np=1 ssh=-p 2222 -i /dev/null mpi=--x : a", 0, NULL},
    {"--help", NULL, "help", 0, NULL},
    {"-h", NULL, "help", 0, NULL},
    {"-v", NULL, "version", 0, NULL},
    {"-cb", NULL, "check-build", 0, NULL},
    {"--check-build", NULL, "check-build", 0, NULL},

    {"-np 1 --fusion-threshold-mb 32 a", NULL,
     "np=1 HOROVOD_FUSION_THRESHOLD=33554432 : a", 0, NULL},
    {"-np 1 --fusion-threshold-mb 0.5 a", NULL,
     "np=1 HOROVOD_FUSION_THRESHOLD=524288 : a", 0, NULL},
    {"-np 1 --cycle-time-ms 3.5 --cache-capacity 0 a", NULL,
     "np=1 HOROVOD_CYCLE_TIME=3.5 HOROVOD_CACHE_CAPACITY=0 : a", 0, NULL},
    {"-np 1 --hierarchical-allreduce --no-hierarchical-allgather a", NULL,
     "np=1 HOROVOD_HIERARCHICAL_ALLREDUCE=1 HOROVOD_HIERARCHICAL_ALLGATHER=0 : a", 0,
     NULL},
    {"-np 1 --autotune --no-autotune a", NULL, "np=1 HOROVOD_AUTOTUNE=0 : a", 0, NULL},
    {"-np 1 --no-stall-check a", NULL, "np=1 HOROVOD_STALL_CHECK_DISABLE=1 : a", 0, NULL},
    {"-np 1 --timeline-filename t.json --timeline-mark-cycles a", NULL,
     "np=1 HOROVOD_TIMELINE=t.json HOROVOD_TIMELINE_MARK_CYCLES=1 : a", 0, NULL},
    {"-np 1 --report-filename late.txt --timeline-ranks all a", NULL,
     "np=1 HVD_REPORT=late.txt HVD_TIMELINE_RANKS=all : a", 0, NULL},
    {"-np 1 --metrics m a", NULL, "np=1 HVD_METRICS=m : a", 0, NULL},
    {"-np 1 --nccl-files logs a", NULL, "np=1 HVD_NCCL_FILES=logs : a", 0, NULL},
    {"-np 1 --nccl-files= a", NULL, REFUSED("--nccl-files")},
    {"-np 1 --report a", NULL, "np=1 HVD_REPORT=1 : a", 0, NULL},
    {"-np 1 --log-level DEBUG --log-without-timestamp a", NULL,
     "np=1 HOROVOD_LOG_LEVEL=DEBUG HOROVOD_LOG_HIDE_TIME=1 : a", 0, NULL},
    {"-np 1 --start-timeout 10 --network-interfaces eth0,eth1 --tcp a", NULL,
     "np=1 HVD_START_TIMEOUT=10 HVD_IFACE=eth0,eth1 NCCL_IB_DISABLE=1 : a", 0, NULL},

    {"-np 1 --gloo a", NULL, "np=1 [--gloo has no effect] : a", 0, NULL},
    {"-np 1 --binding-args=x a", NULL, "np=1 [--binding-args has no effect] : a", 0,
     NULL},
    {"-np 2 --jsrun a", NULL, UNSUPPORTED("jsrun itself")},

    {"-np 2 --min-np 1 --max-np 4 a", NULL,
     "np=2 HOROVOD_ELASTIC_TIMEOUT=600 elastic=1-4 : a", 0, NULL},
    {"--min-num-proc 2 a", NULL, "np=2 HOROVOD_ELASTIC_TIMEOUT=600 elastic=2-2 : a", 0,
     NULL},
    {"-np 2 --max-num-proc=3 --elastic-timeout 5 --reset-limit 0 a", NULL,
     "np=2 HOROVOD_ELASTIC_TIMEOUT=5 elastic=2-3 resets=0 : a", 0, NULL},
    {"-np 2 --min-np 1 --blacklist-cooldown-range 3 10 a b", NULL,
     "np=2 HOROVOD_ELASTIC_TIMEOUT=600 elastic=1-2 cooldown=3-10 : a b", 0, NULL},
    {"-np 2 --host-discovery-script ./hosts --slots-per-host 4 a", NULL,
     "np=2 HOROVOD_ELASTIC_TIMEOUT=600 elastic=2-2 asks=./hosts : a", 0, NULL},
    {"-np 5 --min-np 2 --spares 1 a", NULL,
     "np=5 HOROVOD_ELASTIC_TIMEOUT=600 elastic=2-5 spares=1 : a", 0, NULL},
    {"-np 5 --host-discovery-script ./hosts --spares 2 a", NULL,
     "np=5 HOROVOD_ELASTIC_TIMEOUT=600 elastic=3-5 spares=2 asks=./hosts : a", 0, NULL},
    {"-np 5 --spares 1 a", NULL, REFUSED("options of elastic jobs need --min-np N")},
    {"-np 2 --min-np 1 --spares 2 a", NULL,
     REFUSED("-np 2 is too small for --min-np 1 and --spares 2: use -np 3")},
    {"-np 5 --min-np 4 --spares 2 a", NULL,
     REFUSED("-np 5 is too small for --min-np 4 and --spares 2: use -np 6")},
    {"-np 5 --max-np 6 --spares 2 a", NULL,
     REFUSED("--max-np 6 and --spares 2 contradict each other")},
    {"-np 2 --min-np 3 a", NULL, REFUSED("-np 2 is below --min-np 3")},
    {"-np 2 --max-np 1 a", NULL, REFUSED("-np 2 is above --max-np 1")},
    {"--max-np 2 a", NULL, REFUSED("the number of ranks to start is missing")},
    {"-np 2 --reset-limit 1 a", NULL, REFUSED("options of elastic jobs need --min-np N")},
    {"-np 2 --min-np 0 a", NULL, REFUSED("--min-num-proc 0: expected a whole number")},
    {"-np 2 --min-np 1 --blacklist-cooldown-range 10 3 a", NULL,
     REFUSED("expected two numbers of seconds")},
    {"-np 2 --min-np 1 --blacklist-cooldown-range=3 a", NULL,
     REFUSED("expected two numbers of seconds")},

    {"", NULL, REFUSED("no command")},
    {"-np 2", NULL, REFUSED("no command")},
    {"-np", NULL, REFUSED("--num-proc needs a value")},
    {"-np 0 a", NULL, REFUSED("--num-proc 0: expected a whole number from 1")},
    {"-np 2x a", NULL, REFUSED("--num-proc 2x")},
    {"-np 99999 a", NULL, REFUSED("--num-proc 99999")},
    {"-np 1 --nosuch a", NULL, REFUSED("no option --nosuch")},
    {"-np 1 --verbose=yes a", NULL, REFUSED("--verbose takes no value, found yes")},
    {"-np 1 --cycle-time-ms fast a", NULL,
     REFUSED("--cycle-time-ms fast: expected a num")},
    {"-np 1 --cycle-time-ms -1 a", NULL, REFUSED("--cycle-time-ms -1")},
    {"-np 1 --cycle-time-ms nan a", NULL, REFUSED("--cycle-time-ms nan")},
    {"-np 1 --cache-capacity 1.5 a", NULL, REFUSED("a whole number from 0 to 1048576")},
    {"-np 1 --cache-capacity 99999999999999999999 a", NULL,
     REFUSED("a whole number from 0 to 1048576")},
    {"-np 1 --cache-capacity= a", NULL,
     REFUSED("--cache-capacity \"\": expected a whole")},
    {"-np 1 --start-timeout 0 a", NULL, REFUSED("a whole number from 1 to 2147483")},
    {"-np 1 --cycle-time-ms 1e300 a", NULL, REFUSED("a number from 0 to 60000")},
    {"-np 1 --autotune-steps-per-sample 0 a", NULL, REFUSED("from 1 to 1000000")},
    {"-np 1 --autotune-gaussian-process-noise 2 a", NULL, REFUSED("from 0 to 1")},
    {"-np 1 --num-nccl-streams 9 a", NULL, REFUSED("from 1 to 8")},
    {"-np 1 --thread-affinity 0,,1 a", NULL,
     REFUSED("one cpu for each rank, such as 0,8")},
    {"-np 1 --thread-affinity -1 a", NULL, REFUSED("one cpu for each rank, such as 0,8")},
    {"-np 1 --thread-affinity= a", NULL, REFUSED("one cpu for each rank, such as 0,8")},
    {"-np 1 --timeline-ranks 1 a", NULL,
     REFUSED("--timeline-ranks 1: expected one of all 0")},
    {"-np 1 --log-level loud a", NULL, REFUSED("expected one of TRACE DEBUG INFO")},
    {"-np 1 --network-interfaces= a", NULL,
     REFUSED("--network-interfaces \"\": expected NAME")},
    {"-np 1 --ssh-port x a", NULL, REFUSED("--ssh-port x: expected a whole number")},
    {"-np 1 --ssh-port 65536 a", NULL, REFUSED("from 1 to 65535")},
    {"-np 1 -i /nonexistent a", NULL,
     REFUSED("--ssh-identity-file /nonexistent: No such")},
    {"-np 1 --output-filename= a", NULL, REFUSED("--output-filename \"\": expected DIR")},
    {"-np 1 --output-filename /nonexistent/a a", NULL,
     REFUSED("--output-filename: cannot write /nonexistent/a: No such")},
    {"-np 1 --output-filename /dev/null a", NULL, REFUSED("/dev/null: Not a directory")},
    {"-np 1 --timeline-filename= a", NULL,
     REFUSED("--timeline-filename \"\": expected FILE")},
    {"-np 1 --timeline-filename /nonexistent/a a", NULL,
     REFUSED("--timeline-filename: cannot write /nonexistent/a: No such")},
    {"-np 1 --report-filename / a", NULL,
     REFUSED("--report-filename: cannot write /: Is a")},
    {"-np 1 --autotune-log-file /dev/null/a a", NULL, REFUSED("/dev/null/a: Not a dir")},
    {"-np 1 --fusion-threshold-mb 1e30 a", NULL, REFUSED("a number of MiB")},
    {"-np 1 --hosts= a", NULL, REFUSED("--hosts \"\": expected HOST:N,...")},
    {"-np 1 --host-discovery-script= a", NULL, REFUSED("\"\": expected FILE")},
    {"-np 1 --bind tight a", NULL, REFUSED("expected auto, socket, cores or none")},
    {"-np 1 --hostfile /nonexistent a", NULL, REFUSED("/nonexistent: No such file")},
    {"-np 1 --config-file /nonexistent a", NULL, REFUSED("/nonexistent: No such file")},

    {"-np 1 --config-file CONFIG a",
     "params:\n  fusion_threshold_mb: 32\n  cycle_time_ms: 2.5\n"
     "  hierarchical_allreduce: true\n",
     "np=1 HOROVOD_FUSION_THRESHOLD=33554432 HOROVOD_CYCLE_TIME=2.5 "
     "HOROVOD_HIERARCHICAL_ALLREDUCE=1 : a",
     0, NULL},
    {"-np 1 --config-file CONFIG a",
     "autotune:\n  enabled: true\n  log_file: a.txt\n  warmup_samples: 5\n"
     "timeline:\n  filename: t.json\n  mark_cycles: true\n"
     "stall_check:\n  enabled: false\n  warning_time_seconds: 120\n"
     "library_options:\n  num_nccl_streams: 2\n  mpi_threads_disable: true\n"
     "logging:\n  level: INFO\n  with_timestamp: false\n",
     "np=1 HOROVOD_AUTOTUNE=1 HOROVOD_AUTOTUNE_LOG=a.txt "
     "HOROVOD_AUTOTUNE_WARMUP_SAMPLES=5 HOROVOD_TIMELINE=t.json "
     "HOROVOD_TIMELINE_MARK_CYCLES=1 HOROVOD_STALL_CHECK_DISABLE=1 "
     "HOROVOD_STALL_CHECK_TIME_SECONDS=120 HOROVOD_NUM_NCCL_STREAMS=2 "
     "HOROVOD_LOG_LEVEL=INFO HOROVOD_LOG_HIDE_TIME=1 "
     "[--mpi-threads-disable has no effect] : a",
     0, NULL},
    {"--config-file CONFIG --cache-capacity 7 -np 1 a",
     "params:\n  cache_capacity: 9\nverbose: true\ncontroller: gloo\n",
     "np=1 verbose HOROVOD_CACHE_CAPACITY=7 [--gloo has no effect] : a", 0, NULL},
    {"-np 1 --config-file CONFIG a", "", "np=1 : a", 0, NULL},
    {"-np 1 --config-file CONFIG a", "autotune:\n  enabled: perhaps\n",
     REFUSED("line 2: expected true or false")},
    {"-np 1 --config-file CONFIG a", "nosection:\n  x: 1\n",
     REFUSED("line 1: expected params, autotune")},
    {"-np 1 --config-file CONFIG a", "params:\n  nothing: 1\n",
     REFUSED("line 2: no option --nothing")},
    {"-np 1 --config-file CONFIG a", "params:\n  cache_capacity: [1, 2]\n",
     REFUSED("line 2: expected one value")},
    {"-np 1 --config-file CONFIG a", "- a\n- b\n",
     REFUSED("line 1: expected `section:`")},
    {"-np 1 --config-file CONFIG a", "a: 'unfinished\n", REFUSED("not YAML")},
    {"-np 1 --config-file CONFIG a",
     "params:\n  cache_capacity: 9\nconfig_file: CONFIG\n",
     REFUSED("nested more than 4 deep")},
};

static void append(char *text, const char *format, const char *value)
{
    size_t used = strlen(text);

    if (value != NULL) {
        snprintf(text + used, TEXT_BYTES - used, used > 0 ? " %s%s" : "%s%s", format,
                 value);
    }
}

static void append_range(char *text, const char *name, int from, int to)
{
    char range[32];

    snprintf(range, sizeof(range), "%d-%d", from, to);
    append(text, name, to > 0 ? range : NULL);
}

static void describe_elastic(const struct hvdrun_options *options, char *text)
{
    const struct hvdrun_elastic_options *elastic = &options->elastic;
    char resets[16];
    char spares[16];

    if (!hvdrun_options_is_elastic(options)) {
        return;
    }
    snprintf(resets, sizeof(resets), "%d", elastic->reset_limit);
    snprintf(spares, sizeof(spares), "%d", elastic->spares);
    append_range(text, "elastic=", elastic->min, elastic->max);
    append(text, "spares=", elastic->spares > 0 ? spares : NULL);
    append(text, "resets=", elastic->has_reset_limit ? resets : NULL);
    append_range(text, "cooldown=", elastic->cooldown_min_s, elastic->cooldown_max_s);
    append(text, "asks=", elastic->discovery);
}

static void describe_run(const struct hvdrun_options *options, char *text)
{
    char ranks[16];

    snprintf(ranks, sizeof(ranks), "%d", options->ranks);
    append(text, "np=", ranks);
    append(text, "hosts=", options->hosts);
    append(text, "output=", options->output_directory);
    append(text, "ssh=", options->ssh_arguments);
    append(text, "mpi=", options->mpi_arguments);
    append(text, "verbose", options->is_verbose ? "" : NULL);
    append(text, "prefix", options->has_prefix ? "" : NULL);
    append(text, "time", options->has_time ? "" : NULL);
    append(text, "bind=",
           options->bind != HVD_BIND_AUTO ? hvd_bind_mode_name(options->bind) : NULL);
    for (int i = 0; i < options->settings.count; i++) {
        append(text, "", options->settings.items[i]);
    }
    describe_elastic(options, text);
    for (int i = 0; i < options->remarks.count; i++) {
        char name[64];

        snprintf(name, sizeof(name), "[%.*s]",
                 (int)strcspn(options->remarks.items[i], ":"), options->remarks.items[i]);
        append(text, name, "");
    }
    append(text, ":", "");
    for (char *const *word = options->command; *word != NULL; word++) {
        append(text, "", *word);
    }
}

static void describe(const struct hvdrun_options *options, char *text)
{
    static const char *const actions[] = {
        [HVDRUN_HELP] = "help",
        [HVDRUN_VERSION] = "version",
        [HVDRUN_CHECK_BUILD] = "check-build",
    };

    text[0] = '\0';
    if (options->action == HVDRUN_RUN) {
        describe_run(options, text);
    } else {
        append(text, actions[options->action], "");
    }
}

static int split(char *line, char *config, char **words)
{
    int count = 0;
    char *save = NULL;

    words[count++] = (char *)"hvdrun";
    for (char *word = strtok_r(line, " ", &save); word != NULL;
         word = strtok_r(NULL, " ", &save)) {
        words[count++] = strcmp(word, "CONFIG") == 0 ? config : word;
    }
    words[count] = NULL;
    return count;
}

static void write_config(char *path, const char *config)
{
    int fd = mkstemp(path);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    const char *own;

    if (file == NULL) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    config = config != NULL ? config : "";
    own = strstr(config, "CONFIG\n");
    fprintf(file, "%.*s%s\n", own != NULL ? (int)(own - config) : INT_MAX, config,
            own != NULL ? path : "");
    fclose(file);
}

static void test_case(const struct line_case *expected)
{
    char config[] = "/tmp/hvd-options-XXXXXX";
    char line[256];
    char *words[MOST_WORDS];
    char understood[TEXT_BYTES] = "";
    struct hvdrun_options options;
    struct hvd_error err = {0};
    bool passed;
    int status;

    snprintf(line, sizeof(line), "%s", expected->line);
    write_config(config, expected->config);
    status = hvdrun_options_read(&options, split(line, config, words), words, &err);
    status = status < 0 ? status : hvdrun_streams_check_files(&options, &err);
    if (status == 0) {
        describe(&options, understood);
    }
    passed = expected->understood != NULL
                 ? status == 0 && strcmp(understood, expected->understood) == 0
                 : status == expected->status && strstr(err.text, expected->text) != NULL;
    if (!tap_ok(passed, "hvdrun %s%s", expected->line,
                expected->config != NULL ? " (with a file)" : "")) {
        tap_note("status %d, understood: %s", status, understood);
        tap_note("message: %s", err.text);
    }
    hvdrun_options_finish(&options);
    unlink(config);
}

int main(void)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        test_case(&cases[i]);
    }
    return tap_done();
}
