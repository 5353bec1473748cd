/* SPDX-License-Identifier: Apache-2.0 */
/* The names of variables that are known, and the guesses for wrong names. */
#include "collectives/core/variables.h"

#include <string.h>

#include "gpu_binding/base/env.h"
#include "tests/collectives/logged.h"
#include "tests/tap.h"

static void check(const char *variable)
{
    const char *environment[] = {"HOME=/root", variable, NULL};

    logged_begin();
    hvd_variables_check(environment, HVD_LOG_WARN);
}

static void test_known(void)
{
    static const char *const known[] = {
        "HOROVOD_RANK=3",
        "HOROVOD_CYCLE_TIME=0.5",
        "HOROVOD_HIERARCHICAL_ALLREDUCE=1",
        "HOROVOD_TORUS_ALLREDUCE=1",
        "HOROVOD_GPU_OPERATIONS=NCCL",
        "HOROVOD_WITHOUT_MXNET=1",
        "HOROVOD_WITH_PYTORCH=1",
        "HOROVOD_NCCL_HOME=/usr",
        "HOROVOD_SPARK_START_TIMEOUT=600",
        "HOROVOD_ELASTIC_TIMEOUT=5",
        "_HOROVOD_SECRET_KEY=abc",
        "HVD_HOROVOD=1",
        "HOROVOD=1",
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        check(known[i]);
        if (!tap_ok(logged_count(HVD_LOG_WARN) == 0 && logged_count(HVD_LOG_INFO) == 0,
                    "%s causes no log line", known[i])) {
            logged_show();
        }
    }
}

static void test_without_effect(void)
{
    check("HOROVOD_HIERARCHICAL_ALLGATHER=1");
    tap_ok(logged_count(HVD_LOG_WARN) == 0 &&
               logged_has(HVD_LOG_INFO,
                          "HOROVOD_HIERARCHICAL_ALLGATHER=1 has no effect: hvd "),
           "a variable without effect is logged at level info, with the reason");
    check("HOROVOD_CONTROLLER=mpi");
    tap_ok(logged_has(HVD_LOG_INFO, "HOROVOD_CONTROLLER=mpi has no effect"),
           "a variable with a word as its value is logged, too");
    check("HOROVOD_NUM_NCCL_STREAMS=2");
    tap_ok(logged_count(HVD_LOG_WARN) == 0 &&
               logged_has(HVD_LOG_INFO, "HOROVOD_NUM_NCCL_STREAMS=2 has no effect: hvd "),
           "the number of NCCL streams is logged, too");
}

static void test_unknown(void)
{
    static const struct {
        const char *variable;
        const char *meant;
    } wrong[] = {
        {"HOROVOD_FUSION_TRESHOLD=1", "did you mean HOROVOD_FUSION_THRESHOLD?"},
        {"HOROVOD_FUSION_THRESHOLD_MB=1", "did you mean HOROVOD_FUSION_THRESHOLD?"},
        {"HOROVOD_CYLCE_TIME=1", "did you mean HOROVOD_CYCLE_TIME?"},
        {"HOROVOD_STALL_CHECK_TIME=9", "did you mean HOROVOD_STALL_CHECK_TIME_SECONDS?"},
        {"HOROVOD_TIME_LINE=x", "did you mean HOROVOD_TIMELINE?"},
        {"HOROVOD_LOGLEVEL=x", "did you mean HOROVOD_LOG_LEVEL?"},
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        check(wrong[i].variable);
        if (!tap_ok(logged_count(HVD_LOG_WARN) == 1 &&
                        logged_has(HVD_LOG_WARN, wrong[i].variable) &&
                        logged_has(HVD_LOG_WARN, wrong[i].meant),
                    "%s: %s", wrong[i].variable, wrong[i].meant)) {
            logged_show();
        }
    }
    check("HOROVOD_INSTALL_PREFIX=/opt");
    tap_ok(logged_has(HVD_LOG_WARN, "HOROVOD_INSTALL_PREFIX=/opt is ignored: there is "
                                    "no such variable") &&
               !logged_has(HVD_LOG_WARN, "did you mean"),
           "a name that resembles no known one gets no guess");
}

static void test_long(void)
{
    char variable[512] = "HOROVOD_";

    memset(variable + strlen(variable), 'A', 300);
    strcat(variable, "=1");
    check(variable);
    tap_ok(logged_count(HVD_LOG_WARN) == 1, "a very long name is unknown");
    strcpy(variable, "HOROVOD_CYCLE_TIM=");
    memset(variable + strlen(variable), '7', 300);
    check(variable);
    tap_ok(logged_has(HVD_LOG_WARN, "did you mean HOROVOD_CYCLE_TIME?"),
           "a very long value does not hide the rest");
}

/* Names that hvd reads or sets cause no warning, nor do those of tests and scripts. */
static void test_own_known(void)
{
    static const char *const known[] = {
        HVD_ENV_NET "=tcp",
        HVD_ENV_NIC "=mlx5_0",
        HVD_ENV_GPUS "=0",
        HVD_ENV_CPUS "=0-3",
        HVD_ENV_STORE "=/tmp/x",
        HVD_ENV_LAUNCH "=1",
        HVD_ENV_LAUNCH_VERSION "=1",
        HVD_ENV_GPU_LIST "=0",
        HVD_ENV_GPU_INDEX "=0",
        HVD_ENV_RENDEZVOUS "=a:1:b",
        HVD_ENV_TERMINAL "=1",
        HVD_ENV_AGENT_PLAN "=1",
        HVD_ENV_DEFAULTS "=1",
        HVD_ENV_EXPORTED "=1",
        HVD_ENV_NCCL_MADE_FOR "=1",
        HVD_ENV_CAUSE "=1",
        HVD_ENV_RUN_ADDRESS "=1",
        HVD_ENV_RUN_KEY "=1",
        HVD_ENV_SECRET "=1",
        HVD_ENV_REPORT "=1",
        HVD_ENV_GPU_PATH "=nccl",
        "HVD_TEST_SEED=1",
        "HVD_BENCH_X=1",
        "HVD_TRAINER_GO=1",
        "HVD_HOME=/opt",
        "HVD_X=1",
        "HVD_=1",
        "HVD_PORT=1",
        "HVD_VERSION=1",
        "HVD_NEW=1",
        "HVD_RANK=0",
        "HVD_SIZE=2",
        "HVD_LOCAL_RANK=0",
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        check(known[i]);
        if (!tap_ok(logged_count(HVD_LOG_WARN) == 0, "%s causes no warning", known[i])) {
            logged_show();
        }
    }
}

static void test_own_unknown(void)
{
    static const struct {
        const char *variable;
        const char *meant;
    } wrong[] = {
        {"HVD_NETT=ucx", "HVD_NETT is ignored: hvd has no such variable; did you mean "
                         "HVD_NET?"},
        {"HVD_REPORTS=x", "did you mean HVD_REPORT?"},
        {"HVD_METRIC=x", "did you mean HVD_METRICS?"},
        {"HVD_MEMORY_LIMITS=1", "did you mean HVD_MEMORY_LIMIT?"},
        {"HVD_TUNETABLE=x", "did you mean HVD_TUNE_TABLE?"},
        {"HVD_NCCL_WINDOW=1", "did you mean HVD_NCCL_WINDOWS?"},
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        check(wrong[i].variable);
        if (!tap_ok(logged_count(HVD_LOG_WARN) == 1 &&
                        logged_has(HVD_LOG_WARN, wrong[i].meant),
                    "%s: %s", wrong[i].variable, wrong[i].meant)) {
            logged_show();
        }
    }
    check("HVD_SECRETT=open-sesame");
    tap_ok(logged_has(HVD_LOG_WARN, "did you mean HVD_SECRET?") &&
               !logged_has(HVD_LOG_WARN, "sesame"),
           "a secret under a wrong name is not shown");
}

int main(void)
{
    test_known();
    test_without_effect();
    test_unknown();
    test_own_known();
    test_own_unknown();
    test_long();
    return tap_done();
}
