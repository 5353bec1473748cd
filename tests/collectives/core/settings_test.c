/* SPDX-License-Identifier: Apache-2.0 */
/* The settings that each variable changes, and the handling of wrong values. */
#include "collectives/core/settings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/collectives/logged.h"
#include "tests/tap.h"

/* A variable of the environment; a NULL name ends a list of them. */
struct variable {
    const char *name;
    const char *value;
};

static struct hvd_job_settings read_with(const struct variable *variables)
{
    struct hvd_job_settings settings;

    clearenv();
    setenv("HOROVOD_LOG_LEVEL", "debug", 1);
    for (; variables->name != NULL; variables++) {
        setenv(variables->name, variables->value, 1);
    }
    logged_begin();
    hvd_job_settings_read(&settings);
    return settings;
}

static struct hvd_job_settings read_one(const char *name, const char *value)
{
    const struct variable variables[] = {{name, value}, {NULL, NULL}};

    return read_with(variables);
}

static bool is_near(double value, double expected)
{
    return fabs(value - expected) < 1e-9;
}

static void test_defaults(void)
{
    struct hvd_job_settings s = read_one(NULL, NULL);

    tap_ok(s.start_timeout_ms == 60000 && s.fusion_threshold == 134217728 &&
               is_near(s.cycle_time_ms, 1) && s.cache_capacity == 1024,
           "tunables have Horovod's defaults");
    tap_ok(!s.has_fusion_threshold && !s.has_cycle_time && !s.has_cache_capacity,
           "defaults do not count as the user's choice");
    tap_ok(!s.disable_group_fusion && !s.dynamic_process_sets && !s.autotune &&
               !s.stall_check_disable && !s.timeline_mark_cycles && !s.log_hide_time &&
               !s.timeline_all_ranks,
           "switches are off by default");
    tap_ok(s.single_copy, "single copies are on by default");
    tap_ok(s.stall_warning_s == 60 && s.stall_shutdown_s == 0,
           "by default stalls are logged but do not end the job");
    tap_ok(s.autotune_warmup_samples == 3 && s.autotune_steps_per_sample == 10 &&
               s.autotune_max_samples == 20 && is_near(s.autotune_noise, 0.8),
           "the autotuner has Horovod's defaults");
    tap_ok(s.thread_affinity == NULL && s.autotune_log == NULL && s.timeline == NULL &&
               s.report == NULL,
           "no files are written by default");
    tap_ok(logged_count(HVD_LOG_WARN) == 0, "an empty environment causes no warning");
}

static void test_values(void)
{
    static const struct variable variables[] = {
        {"HOROVOD_FUSION_THRESHOLD", "0"},
        {"HOROVOD_CYCLE_TIME", "0.25"},
        {"HVD_MEMORY_LIMIT", "1000000"},
        {"HOROVOD_CACHE_CAPACITY", "7"},
        {"HOROVOD_DISABLE_GROUP_FUSION", "1"},
        {"HOROVOD_DYNAMIC_PROCESS_SETS", "true"},
        {"HOROVOD_STALL_CHECK_DISABLE", "2"},
        {"HOROVOD_STALL_CHECK_TIME_SECONDS", "5"},
        {"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "9"},
        {"HOROVOD_AUTOTUNE", "1"},
        {"HOROVOD_AUTOTUNE_LOG", "tune.csv"},
        {"HOROVOD_AUTOTUNE_WARMUP_SAMPLES", "0"},
        {"HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE", "4"},
        {"HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES", "11"},
        {"HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE", "0.5"},
        {"HOROVOD_TIMELINE", "DYNAMIC"},
        {"HOROVOD_TIMELINE_MARK_CYCLES", "1"},
        {"HVD_TIMELINE_RANKS", "all"},
        {"HOROVOD_THREAD_AFFINITY", "0,1"},
        {"HVD_REPORT", "late.txt"},
        {"HVD_SINGLE_COPY", "0"},
        {"HOROVOD_GLOO_TIMEOUT_SECONDS", "30"},
        {NULL, NULL},
    };
    struct hvd_job_settings s = read_with(variables);

    tap_ok(s.fusion_threshold == 0 && is_near(s.cycle_time_ms, 0.25) &&
               s.memory_limit == 1000000 && s.cache_capacity == 7 &&
               s.has_fusion_threshold && s.has_cycle_time && s.has_cache_capacity,
           "tunables take the user's values, including fractions and zero");
    tap_ok(s.disable_group_fusion && s.dynamic_process_sets && s.stall_check_disable &&
               s.autotune && s.timeline_mark_cycles && s.timeline_all_ranks,
           "switches can be turned on");
    tap_ok(!s.single_copy, "switches can be turned off");
    tap_ok(s.stall_warning_s == 5 && s.stall_shutdown_s == 9,
           "the times for stalls are read");
    tap_ok(s.autotune_warmup_samples == 0 && s.autotune_steps_per_sample == 4 &&
               s.autotune_max_samples == 11 && is_near(s.autotune_noise, 0.5),
           "the settings of the autotuner are read");
    tap_ok(strcmp(s.timeline, "DYNAMIC") == 0 && strcmp(s.report, "late.txt") == 0 &&
               strcmp(s.autotune_log, "tune.csv") == 0 &&
               strcmp(s.thread_affinity, "0,1") == 0,
           "texts are taken as they are");
    tap_ok(s.start_timeout_ms == 30000, "Horovod's time limit for Gloo limits the start");
    if (!tap_ok(logged_count(HVD_LOG_WARN) == 0, "correct values cause no warning")) {
        logged_show();
    }
}

/* Each wrong value is logged once, with the variable, the value, and the value used
 * instead. */
static void test_malformed(void)
{
    static const struct {
        struct variable variable;
        const char *used;
    } cases[] = {
        {{"HOROVOD_FUSION_THRESHOLD", "64MB"}, "using 134217728"},
        {{"HOROVOD_FUSION_THRESHOLD", "-1"}, "using 134217728"},
        {{"HOROVOD_FUSION_THRESHOLD", "9223372036854775808"}, "using 134217728"},
        {{"HOROVOD_CYCLE_TIME", "fast"}, "using 1"},
        {{"HOROVOD_CYCLE_TIME", "-0.5"}, "using 1"},
        {{"HOROVOD_CYCLE_TIME", "nan"}, "using 1"},
        {{"HOROVOD_CYCLE_TIME", "inf"}, "using 1"},
        {{"HOROVOD_CYCLE_TIME", "1ms"}, "using 1"},
        {{"HOROVOD_CACHE_CAPACITY", "1e3"}, "using 1024"},
        {{"HOROVOD_CACHE_CAPACITY", "99999999999"}, "using 1024"},
        {{"HOROVOD_DISABLE_GROUP_FUSION", "maybe"}, "using 0"},
        {{"HOROVOD_STALL_CHECK_TIME_SECONDS", "0"}, "using 60"},
        {{"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "x"}, "using 0"},
        {{"HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE", "0"}, "using 10"},
        {{"HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE", "1.5"}, "using 0.8"},
        {{"HVD_TIMELINE_RANKS", "3"}, "using 0"},
        {{"HVD_START_TIMEOUT", "0"}, "using 60"},
        {{"HOROVOD_LOG_LEVEL", "loud"}, "using warning"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct variable *v = &cases[i].variable;
        char both[128];

        snprintf(both, sizeof(both), "%s=%s is ", v->name, v->value);
        read_one(v->name, v->value);
        if (!tap_ok(logged_count(HVD_LOG_WARN) == 1 && logged_has(HVD_LOG_WARN, both) &&
                        logged_has(HVD_LOG_WARN, cases[i].used),
                    "%s: %s", both, cases[i].used)) {
            logged_show();
        }
    }
    tap_ok(!read_one("HOROVOD_CYCLE_TIME", "x").has_cycle_time,
           "a rejected value does not count as the user's choice");
}

static void test_empty(void)
{
    struct hvd_job_settings s = read_one("HOROVOD_TIMELINE", "");

    tap_ok(s.timeline == NULL && logged_count(HVD_LOG_WARN) == 0,
           "an empty variable counts as unset");
    tap_ok(read_one("HVD_REPORT", "0").report == NULL, "HVD_REPORT=0 means no report");
}

static void test_stall_order(void)
{
    static const struct variable reversed[] = {
        {"HOROVOD_STALL_CHECK_TIME_SECONDS", "30"},
        {"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "30"},
        {NULL, NULL},
    };
    struct hvd_job_settings s = read_with(reversed);

    tap_ok(
        s.stall_shutdown_s == 0 && logged_count(HVD_LOG_WARN) == 1 &&
            logged_has(HVD_LOG_WARN, "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS=30 is not "
                                     "above HOROVOD_STALL_CHECK_TIME_SECONDS, which "
                                     "is 30; using 0"),
        "a shutdown time that is not above the warning time is rejected with a warning");
    s = read_one("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "61");
    tap_ok(s.stall_shutdown_s == 61 && logged_count(HVD_LOG_WARN) == 0,
           "a shutdown time above the warning time is used");
}

static void test_unknown(void)
{
    read_one("HOROVOD_FUSION_TRESHOLD", "1");
    tap_ok(logged_count(HVD_LOG_WARN) == 1 &&
               logged_has(HVD_LOG_WARN, "HOROVOD_FUSION_TRESHOLD=1 is ignored") &&
               logged_has(HVD_LOG_WARN, "did you mean HOROVOD_FUSION_THRESHOLD?"),
           "a typing error is noticed");
}

static void test_ranks(void)
{
    static const struct variable third[] = {
        {"PMIX_RANK", "3"},
        {"HOROVOD_CYCLE_TIME", "x"},
        {"HOROVOD_CYLCE_TIME", "1"},
        {NULL, NULL},
    };
    static const struct variable without_pmix[] = {
        {"HOROVOD_RANK", "3"},
        {"HOROVOD_CYCLE_TIME", "x"},
        {NULL, NULL},
    };
    static const struct variable first[] = {
        {"PMIX_RANK", "0"},
        {"HOROVOD_CYCLE_TIME", "x"},
        {NULL, NULL},
    };

    read_with(third);
    tap_ok(logged_count(HVD_LOG_WARN) == 0 && logged_count(HVD_LOG_INFO) == 2,
           "only the first rank warns: a later one started with PMIx does not");
    read_with(without_pmix);
    tap_ok(logged_count(HVD_LOG_WARN) == 0,
           "only the first rank warns: a later one started without PMIx does not");
    read_with(first);
    tap_ok(logged_count(HVD_LOG_WARN) == 1, "the first rank warns");
}

static void test_lines(void)
{
    struct hvd_job_settings s = read_one("HOROVOD_CYCLE_TIME", "x");

    tap_ok(logged_has(HVD_LOG_WARN, ": W hvd] HOROVOD_CYCLE_TIME=x"),
           "log lines have the time");
    hvd_job_settings_name_rank(&s, 3);
    hvd_log(HVD_LOG_WARN, "late");
    tap_ok(logged_has(HVD_LOG_WARN, ": W hvd rank 3] late"),
           "log lines have the rank, once it is known");
    s = read_one("HOROVOD_LOG_HIDE_TIME", "1");
    hvd_job_settings_name_rank(&s, 3);
    hvd_log(HVD_LOG_WARN, "later");
    tap_ok(logged_has(HVD_LOG_WARN, "hvd: later"),
           "log lines have neither if the user hides the time");
    read_one("HOROVOD_LOG_LEVEL", "error");
    hvd_log(HVD_LOG_WARN, "unheard");
    tap_ok(!logged_has(HVD_LOG_WARN, "unheard"), "the log level is the user's");
}

static void test_gpu_direct(void)
{
    static const char *const words[] = {[HVD_GPU_DIRECT_AUTO] = "auto",
                                        [HVD_GPU_DIRECT_ON] = "on",
                                        [HVD_GPU_DIRECT_OFF] = "OFF"};
    static const struct variable on_rank[] = {
        {"HOROVOD_RANK", "0"}, {"HVD_GPU_DIRECT", "maybe"}, {NULL, NULL}};

    tap_ok(read_one(NULL, NULL).gpu_direct == HVD_GPU_DIRECT_AUTO,
           "by default GPU memory is used directly where measurements favour it");
    for (int i = HVD_GPU_DIRECT_AUTO; i <= HVD_GPU_DIRECT_OFF; i++) {
        tap_ok((int)read_one("HVD_GPU_DIRECT", words[i]).gpu_direct == i,
               "HVD_GPU_DIRECT=%s is known", words[i]);
    }
    tap_ok(read_one("HVD_GPU_DIRECT", "maybe").gpu_direct == HVD_GPU_DIRECT_AUTO &&
               logged_has(HVD_LOG_WARN, "HVD_GPU_DIRECT=maybe is none of auto, on, off"),
           "another word causes a warning");
    read_with(on_rank);
    tap_ok(logged_has(HVD_LOG_WARN, "; using auto (rank 0 on "),
           "the warning names the rank and its host");
}

static void test_gpu_pack_below(void)
{
    static const char *const wrong[] = {"1M", "-1", "many", "99999999999999999999"};

    tap_ok(read_one(NULL, NULL).gpu_pack_below == HVD_GPU_PACK_AUTO,
           "by default the limit for packing is found automatically");
    tap_ok(read_one("HVD_GPU_PACK_BELOW", "AUTO").gpu_pack_below == HVD_GPU_PACK_AUTO &&
               logged_count(HVD_LOG_WARN) == 0,
           "HVD_GPU_PACK_BELOW=AUTO is known");
    tap_ok(read_one("HVD_GPU_PACK_BELOW", "0").gpu_pack_below == 0,
           "HVD_GPU_PACK_BELOW=0 is known");
    tap_ok(read_one("HVD_GPU_PACK_BELOW", "8000000000").gpu_pack_below == 8000000000,
           "HVD_GPU_PACK_BELOW takes a large number");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        tap_ok(read_one("HVD_GPU_PACK_BELOW", wrong[i]).gpu_pack_below ==
                       HVD_GPU_PACK_AUTO &&
                   logged_has(HVD_LOG_WARN, " is neither auto nor a number of bytes"),
               "HVD_GPU_PACK_BELOW=%s causes a warning", wrong[i]);
    }
}

static void test_one_kernel(void)
{
    tap_ok(read_one(NULL, NULL).gpu_one_kernel == 0,
           "by default NCCL reduces all batches");
    tap_ok(read_one("HVD_GPU_ONE_KERNEL", "262144").gpu_one_kernel == 262144 &&
               read_one("HVD_GPU_ONE_KERNEL", "4194305").gpu_one_kernel == 0 &&
               read_one("HVD_GPU_ONE_KERNEL", "on").gpu_one_kernel == 0,
           "HVD_GPU_ONE_KERNEL is a number of bytes up to 4 MiB");
}

static void test_nccl_windows(void)
{
    tap_ok(!read_one(NULL, NULL).nccl_windows, "by default there are no windows of NCCL");
    tap_ok(read_one("HVD_NCCL_WINDOWS", "1").nccl_windows &&
               !read_one("HVD_NCCL_WINDOWS", "0").nccl_windows,
           "HVD_NCCL_WINDOWS is 0 or 1");
}

static void test_gpu_allreduce(void)
{
    static const struct {
        const char *name;
        const char *value;
        enum hvd_gpu_allreduce wanted;
    } right[] = {
        {NULL, NULL, HVD_GPU_ALLREDUCE_UNSET},
        {"HVD_GPU_ALLREDUCE", "auto", HVD_GPU_ALLREDUCE_AUTO},
        {"HVD_GPU_ALLREDUCE", "hierarchical", HVD_GPU_ALLREDUCE_HIERARCHICAL},
        {"HVD_GPU_ALLREDUCE", "FLAT", HVD_GPU_ALLREDUCE_FLAT},
        {"HOROVOD_HIERARCHICAL_ALLREDUCE", "1", HVD_GPU_ALLREDUCE_HIERARCHICAL},
        {"HOROVOD_HIERARCHICAL_ALLREDUCE", "0", HVD_GPU_ALLREDUCE_FLAT},
        {"HOROVOD_TORUS_ALLREDUCE", "1", HVD_GPU_ALLREDUCE_HIERARCHICAL},
        {"HOROVOD_TORUS_ALLREDUCE", "0", HVD_GPU_ALLREDUCE_FLAT},
    };
    const struct variable both[] = {{"HOROVOD_HIERARCHICAL_ALLREDUCE", "1"},
                                    {"HVD_GPU_ALLREDUCE", "flat"},
                                    {NULL, NULL}};
    struct hvd_job_settings s;

    for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
        s = read_one(right[i].name, right[i].value);
        tap_ok(s.gpu_allreduce == right[i].wanted && s.gpu_allreduce_wrong == NULL,
               "%s=%s is known", right[i].name != NULL ? right[i].name : "nothing",
               right[i].value != NULL ? right[i].value : "");
    }
    s = read_with(both);
    tap_ok(s.gpu_allreduce == HVD_GPU_ALLREDUCE_FLAT,
           "hvd's own variable takes precedence over Horovod's");
    s = read_one("HVD_GPU_ALLREDUCE", "ring");
    tap_ok(s.gpu_allreduce_wrong != NULL && strcmp(s.gpu_allreduce_wrong, "ring") == 0,
           "another word is kept for the error message");
}

int main(void)
{
    test_defaults();
    test_values();
    test_malformed();
    test_empty();
    test_stall_order();
    test_unknown();
    test_ranks();
    test_lines();
    test_gpu_allreduce();
    test_gpu_direct();
    test_gpu_pack_below();
    test_nccl_windows();
    test_one_kernel();
    return tap_done();
}
