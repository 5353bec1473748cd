/* SPDX-License-Identifier: Apache-2.0 */
/* The settings that the environment gives to the runtime, read once at init. */
#include "collectives/core/settings.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "collectives/core/variables.h"
#include "gpu_binding/base/attr.h"
#include "gpu_binding/base/env.h"
#include "gpu_binding/base/log.h"

/* More tensors than any model has; each takes a few hundred bytes on every rank. */
static const int most_cached = 1 << 20;

/* Returns the value of a variable; NULL if it is unset or empty. */
static const char *find_value(const char *name)
{
    const char *text = getenv(name);

    return text != NULL && text[0] != '\0' ? text : NULL;
}

/* Returns the launcher's number of this process, as text; NULL: unknown. */
static const char *find_rank(void)
{
    const char *rank = find_value(HVD_ENV_RANK);

    return rank != NULL ? rank : find_value(HVD_ENV_PMIX_RANK);
}

static enum hvd_log_level warning_level(void)
{
    const char *rank = find_rank();

    return rank == NULL || strcmp(rank, "0") == 0 ? HVD_LOG_WARN : HVD_LOG_INFO;
}

/* Warns of a wrong value, and names the rank and the host, because the environment may
 * differ between them. */
HVD_PRINTF(1, 2) static void warn_of(const char *format, ...)
{
    const char *rank = find_rank();
    char text[512];
    char host[65] = "";
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    (void)gethostname(host, sizeof(host) - 1);
    hvd_log(warning_level(), "%s (%s%.10s%son %s)", text, rank != NULL ? "rank " : "",
            rank != NULL ? rank : "", rank != NULL ? " " : "", host);
}

/* Sets *value if the text is a whole number from least to most. Returns whether it is. */
static bool parse_whole(const char *text, int64_t least, int64_t most, int64_t *value)
{
    long long number;
    char *end;

    errno = 0;
    number = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || number < least || number > most) {
        return false;
    }
    *value = number;
    return true;
}

/* Returns the whole number in a variable, or fallback if the variable is unset or no
 * number from least to most. *is_set, if not NULL, tells whether the user's number is
 * used. */
static int64_t read_whole(const char *name, int64_t fallback, int64_t least, int64_t most,
                          bool *is_set)
{
    const char *text = find_value(name);
    int64_t value = fallback;
    bool is_right = text != NULL && parse_whole(text, least, most, &value);

    if (text != NULL && !is_right) {
        warn_of("%s=%.64s is not a whole number from %" PRId64 " to %" PRId64
                "; using %" PRId64,
                name, text, least, most, fallback);
    }
    if (is_set != NULL) {
        *is_set = is_right;
    }
    return value;
}

static int read_count(const char *name, int fallback, int least, int most)
{
    return (int)read_whole(name, fallback, least, most, NULL);
}

/* Reads a number with a decimal point, whatever the program's locale. */
static double parse_real(const char *text, char **end)
{
    locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    double value = plain != (locale_t)0 ? strtod_l(text, end, plain) : strtod(text, end);

    if (plain != (locale_t)0) {
        freelocale(plain);
    }
    return value;
}

/* Reads a number from 0 to most, which may have a fraction; see read_whole. */
static double read_real(const char *name, double fallback, double most, bool *is_set)
{
    const char *text = find_value(name);
    bool is_right = false;
    double value = fallback;
    char *end;

    if (text != NULL) {
        value = parse_real(text, &end);
        is_right = end != text && *end == '\0' && value >= 0 && value <= most;
    }
    if (text != NULL && !is_right) {
        warn_of("%s=%.64s is not a number from 0 to %g; using %g", name, text, most,
                fallback);
    }
    if (is_set != NULL) {
        *is_set = is_right;
    }
    return is_right ? value : fallback;
}

static bool is_word(const char *text, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (strcasecmp(text, *words) == 0) {
            return true;
        }
    }
    return false;
}

/* Reads a switch. As in Horovod, any number above 0 is on. */
static bool read_switch(const char *name, bool fallback)
{
    static const char *const on[] = {"true", "yes", "on", NULL};
    static const char *const off[] = {"false", "no", "off", NULL};
    const char *text = find_value(name);
    char *end;
    long value;

    if (text == NULL) {
        return fallback;
    }
    if (is_word(text, off)) {
        return false;
    }
    if (is_word(text, on)) {
        return true;
    }
    value = strtol(text, &end, 10);
    if (*end != '\0') {
        warn_of("%s=%.64s is neither 0 nor 1; using %d", name, text, fallback);
        return fallback;
    }
    return value > 0;
}

static void read_log(struct hvd_job_settings *settings)
{
    const char *text = find_value(HVD_ENV_LOG_LEVEL);
    enum hvd_log_level level = HVD_LOG_WARN;
    bool is_right = text == NULL || hvd_log_level_parse(text, &level) == 0;

    hvd_log_least(level);
    hvd_log_stamp(NULL);
    settings->log_hide_time = read_switch(HVD_ENV_LOG_HIDE_TIME, false);
    hvd_log_stamp(settings->log_hide_time ? NULL : "hvd");
    if (!is_right) {
        warn_of("%s=%.64s is none of trace, debug, info, warning, error, fatal; "
                "using warning",
                HVD_ENV_LOG_LEVEL, text);
    }
}

static void read_tunables(struct hvd_job_settings *settings)
{
    settings->fusion_threshold = read_whole(HVD_ENV_FUSION_THRESHOLD, 128 << 20, 0,
                                            INT64_MAX, &settings->has_fusion_threshold);
    settings->memory_limit = read_whole(HVD_ENV_MEMORY_LIMIT, 0, 0, INT64_MAX, NULL);
    settings->cycle_time_ms =
        read_real(HVD_ENV_CYCLE_TIME, 1, 60000, &settings->has_cycle_time);
    settings->cache_capacity = (int)read_whole(
        HVD_ENV_CACHE_CAPACITY, 1024, 0, most_cached, &settings->has_cache_capacity);
    settings->disable_group_fusion = read_switch(HVD_ENV_DISABLE_GROUP_FUSION, false);
    settings->dynamic_process_sets = read_switch(HVD_ENV_DYNAMIC_SETS, false);
    settings->single_copy = read_switch(HVD_ENV_SINGLE_COPY, true);
    settings->thread_affinity = find_value(HVD_ENV_THREAD_AFFINITY);
    settings->tune_table = find_value(HVD_ENV_TUNE_TABLE);
}

static void read_stalls(struct hvd_job_settings *settings)
{
    settings->stall_check_disable = read_switch(HVD_ENV_STALL_CHECK_DISABLE, false);
    settings->stall_warning_s = read_count(HVD_ENV_STALL_WARNING, 60, 1, INT_MAX / 1000);
    settings->stall_shutdown_s = read_count(HVD_ENV_STALL_SHUTDOWN, 0, 0, INT_MAX / 1000);
    if (settings->stall_shutdown_s > 0 && !settings->stall_check_disable &&
        settings->stall_shutdown_s <= settings->stall_warning_s) {
        warn_of("%s=%d is not above %s, which is %d; using 0: a stalled job is never "
                "shut down",
                HVD_ENV_STALL_SHUTDOWN, settings->stall_shutdown_s, HVD_ENV_STALL_WARNING,
                settings->stall_warning_s);
        settings->stall_shutdown_s = 0;
    }
}

static void read_autotune(struct hvd_job_settings *settings)
{
    settings->autotune = read_switch(HVD_ENV_AUTOTUNE, false);
    settings->autotune_log = find_value(HVD_ENV_AUTOTUNE_LOG);
    settings->autotune_warmup_samples =
        read_count(HVD_ENV_AUTOTUNE_WARMUP, 3, 0, 1000000);
    settings->autotune_steps_per_sample =
        read_count(HVD_ENV_AUTOTUNE_STEPS, 10, 1, 1000000);
    settings->autotune_max_samples = read_count(HVD_ENV_AUTOTUNE_SAMPLES, 20, 1, 1000000);
    settings->autotune_noise = read_real(HVD_ENV_AUTOTUNE_NOISE, 0.8, 1, NULL);
}

/* Returns the index of a variable's value among words, which end with NULL; 0 if it is
 * none of them. */
static int read_word(const char *name, const char *const *words, const char *list)
{
    const char *text = find_value(name);

    for (int i = 0; text != NULL && words[i] != NULL; i++) {
        if (strcasecmp(text, words[i]) == 0) {
            return i;
        }
    }
    if (text != NULL) {
        warn_of("%s=%.64s is none of %s; using %s", name, text, list, words[0]);
    }
    return 0;
}

static enum hvd_net_choice read_net(void)
{
    const char *text = find_value(HVD_ENV_NET);
    bool is_wrong;
    enum hvd_net_choice choice = hvd_net_choice_of(text, &is_wrong);

    if (is_wrong) {
        warn_of(HVD_ENV_NET "=%.64s is none of auto, ucx, tcp; using auto", text);
    }
    return choice;
}

static void read_gpu_words(struct hvd_job_settings *settings)
{
    static const char *const paths[] = {[HVD_GPU_PATH_AUTO] = "auto",
                                        [HVD_GPU_PATH_NCCL] = "nccl",
                                        [HVD_GPU_PATH_HOST] = "host",
                                        NULL};
    static const char *const directs[] = {[HVD_GPU_DIRECT_AUTO] = "auto",
                                          [HVD_GPU_DIRECT_ON] = "on",
                                          [HVD_GPU_DIRECT_OFF] = "off",
                                          NULL};

    settings->gpu_path =
        (enum hvd_gpu_path)read_word(HVD_ENV_GPU_PATH, paths, "auto, nccl, host");
    settings->gpu_direct =
        (enum hvd_gpu_direct)read_word(HVD_ENV_GPU_DIRECT, directs, "auto, on, off");
}

/* Reads HVD_GPU_ALLREDUCE or, if it is unset, Horovod's two switches: the allreduce is
 * hierarchical if any of them is on, and flat if at least one is set but none is on. */
static void read_gpu_allreduce(struct hvd_job_settings *settings)
{
    static const char *const words[] = {
        [HVD_GPU_ALLREDUCE_AUTO] = "auto",
        [HVD_GPU_ALLREDUCE_HIERARCHICAL] = "hierarchical",
        [HVD_GPU_ALLREDUCE_FLAT] = "flat",
    };
    const char *text = find_value(HVD_ENV_GPU_ALLREDUCE);
    bool is_told = find_value(HVD_ENV_HIERARCHICAL_ALLREDUCE) != NULL ||
                   find_value(HVD_ENV_TORUS_ALLREDUCE) != NULL;
    bool is_on = read_switch(HVD_ENV_HIERARCHICAL_ALLREDUCE, false) ||
                 read_switch(HVD_ENV_TORUS_ALLREDUCE, false);

    settings->gpu_allreduce = is_on     ? HVD_GPU_ALLREDUCE_HIERARCHICAL
                              : is_told ? HVD_GPU_ALLREDUCE_FLAT
                                        : HVD_GPU_ALLREDUCE_UNSET;
    settings->gpu_allreduce_wrong = text;
    for (int i = HVD_GPU_ALLREDUCE_AUTO; text != NULL && i <= HVD_GPU_ALLREDUCE_FLAT;
         i++) {
        if (strcasecmp(text, words[i]) == 0) {
            settings->gpu_allreduce = (enum hvd_gpu_allreduce)i;
            settings->gpu_allreduce_wrong = NULL;
        }
    }
}

static int64_t read_pack_below(void)
{
    const char *text = find_value(HVD_ENV_GPU_PACK_BELOW);
    int64_t bytes = HVD_GPU_PACK_AUTO;

    if (text != NULL && strcasecmp(text, "auto") != 0 &&
        !parse_whole(text, 0, INT64_MAX, &bytes)) {
        warn_of("%s=%.64s is neither auto nor a number of bytes, such as 1048576; "
                "using auto",
                HVD_ENV_GPU_PACK_BELOW, text);
    }
    return bytes;
}

static void read_records(struct hvd_job_settings *settings)
{
    const char *ranks = find_value(HVD_ENV_TIMELINE_RANKS);

    settings->timeline = find_value(HVD_ENV_TIMELINE);
    settings->has_no_ranges = read_switch(HVD_ENV_DISABLE_NVTX, false);
    settings->timeline_mark_cycles = read_switch(HVD_ENV_TIMELINE_MARK_CYCLES, false);
    settings->timeline_all_ranks = ranks != NULL && strcmp(ranks, "all") == 0;
    if (ranks != NULL && !settings->timeline_all_ranks && strcmp(ranks, "0") != 0) {
        warn_of("%s=%.64s is neither all nor 0; using 0", HVD_ENV_TIMELINE_RANKS, ranks);
    }
    settings->metrics = find_value(HVD_ENV_METRICS);
    if (settings->metrics != NULL && strcmp(settings->metrics, "0") == 0) {
        settings->metrics = NULL;
    }
    settings->stacks = find_value(HVD_ENV_STACKS);
    settings->reads_stacks =
        settings->stacks == NULL || strcmp(settings->stacks, "0") != 0;
    if (settings->stacks != NULL &&
        (strcmp(settings->stacks, "0") == 0 || strcmp(settings->stacks, "1") == 0)) {
        settings->stacks = NULL;
    }
    settings->report = find_value(HVD_ENV_REPORT);
    if (settings->report != NULL && strcmp(settings->report, "0") == 0) {
        settings->report = NULL;
    }
}

void hvd_job_settings_read(struct hvd_job_settings *settings)
{
    const int64_t most_s = INT_MAX / 1000;
    int64_t seconds;

    *settings = (struct hvd_job_settings){0};
    read_log(settings);
    hvd_variables_check((const char *const *)environ, warning_level());
    seconds = read_whole(HVD_ENV_GLOO_TIMEOUT, 60, 1, most_s, NULL);
    seconds = read_whole(HVD_ENV_START_TIMEOUT, seconds, 1, most_s, NULL);
    settings->start_timeout_ms = (int)(seconds * 1000);
    read_tunables(settings);
    read_stalls(settings);
    read_autotune(settings);
    read_records(settings);
    settings->net = read_net();
    read_gpu_words(settings);
    read_gpu_allreduce(settings);
    settings->gpu_pack_below = read_pack_below();
    settings->gpu_one_kernel = read_whole(HVD_ENV_GPU_ONE_KERNEL, 0, 0, 4 << 20, NULL);
    settings->nccl_windows = read_switch(HVD_ENV_NCCL_WINDOWS, false);
}

void hvd_job_settings_name_rank(const struct hvd_job_settings *settings, int rank)
{
    char who[32];

    snprintf(who, sizeof(who), "hvd rank %d", rank);
    hvd_log_stamp(settings->log_hide_time ? NULL : who);
}
