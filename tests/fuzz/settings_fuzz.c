/* SPDX-License-Identifier: Apache-2.0 */
/* Environment variables that hvd reads. Each line of the input is NAME=VALUE, or a letter
 * that selects a name in the table, followed by the value. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectives/core/settings.h"
#include "collectives/core/thread_cpu.h"
#include "collectives/core/variables.h"
#include "gpu_binding/base/env.h"
#include "gpu_binding/base/log.h"
#include "pmix_boot/rendezvous/address.h"
#include "pmix_boot/launch_env.h"
#include "pmix_boot/sock/interfaces.h"
#include "tests/fuzz/fuzz.h"

enum {
    FIRST_LETTER = '0',
    MOST_VARIABLES = 64
};

static const char *const names[] = {
    HVD_ENV_START_TIMEOUT,
    HVD_ENV_GLOO_TIMEOUT,
    HVD_ENV_IFACE,
    HVD_ENV_GLOO_IFACE,
    HVD_ENV_NET,
    HVD_ENV_LOG_LEVEL,
    HVD_ENV_LOG_HIDE_TIME,
    HVD_ENV_MEMORY_LIMIT,
    HVD_ENV_SINGLE_COPY,
    HVD_ENV_THREAD_AFFINITY,
    HVD_ENV_DYNAMIC_SETS,
    HVD_ENV_FUSION_THRESHOLD,
    HVD_ENV_CYCLE_TIME,
    HVD_ENV_CACHE_CAPACITY,
    HVD_ENV_DISABLE_GROUP_FUSION,
    HVD_ENV_TUNE_TABLE,
    HVD_ENV_AUTOTUNE,
    HVD_ENV_AUTOTUNE_LOG,
    HVD_ENV_AUTOTUNE_WARMUP,
    HVD_ENV_AUTOTUNE_STEPS,
    HVD_ENV_AUTOTUNE_SAMPLES,
    HVD_ENV_AUTOTUNE_NOISE,
    HVD_ENV_REPORT,
    HVD_ENV_TIMELINE,
    HVD_ENV_TIMELINE_RANKS,
    HVD_ENV_TIMELINE_MARK_CYCLES,
    HVD_ENV_STALL_CHECK_DISABLE,
    HVD_ENV_STALL_WARNING,
    HVD_ENV_STALL_SHUTDOWN,
    HVD_ENV_DISABLE_NVTX,
    HVD_ENV_GPU_PATH,
    HVD_ENV_GPU_ALLREDUCE,
    HVD_ENV_HIERARCHICAL_ALLREDUCE,
    HVD_ENV_TORUS_ALLREDUCE,
    HVD_ENV_GPU_DIRECT,
    HVD_ENV_GPU_PACK_BELOW,
    HVD_ENV_NCCL_WINDOWS,
    HVD_ENV_GPU_ONE_KERNEL,
    HVD_ENV_RENDEZVOUS,
    HVD_ENV_HOROVOD_ELASTIC,
    HVD_ENV_RANK,
    HVD_ENV_SIZE,
    HVD_ENV_PMIX_NAMESPACE,
    HVD_ENV_PMIX_RANK,
    HVD_ENV_SLURM_JOB,
    HVD_ENV_SLURM_TASKS,
    HVD_ENV_SLURM_STEP,
    HVD_ENV_SLURM_STEP_TASKS,
    HVD_ENV_OMPI_SIZE,
    HVD_ENV_PMI_SIZE,
    HVD_ENV_PMI_RANK,
    HVD_ENV_PALS_RANK,
    HVD_ENV_HYDRA_LOCAL_SIZE,
    HVD_ENV_MVAPICH_SIZE,
    HVD_ENV_JSRUN_SIZE,
    HVD_ENV_FLUX_SIZE,
    HVD_ENV_TORCHRUN_SIZE,
    HVD_ENV_TORCH_LOCAL_SIZE,
    HVD_ENV_REQUEST,
    HVD_ENV_LAUNCH_ERROR,
};

static char *environment[MOST_VARIABLES + 1];

static void free_environment(void)
{
    for (int i = 0; environment[i] != NULL; i++) {
        free(environment[i]);
        environment[i] = NULL;
    }
}

static void make_environment(struct fuzz_input *input)
{
    char *line;
    int count = 0;

    while (count < MOST_VARIABLES && (line = fuzz_line(input)) != NULL) {
        size_t number = (size_t)(unsigned char)line[0] - FIRST_LETTER;
        char *text = line;

        if (number < sizeof(names) / sizeof(names[0])) {
            size_t room = strlen(names[number]) + strlen(line) + 1;

            text = malloc(room);
            if (text == NULL) {
                abort();
            }
            snprintf(text, room, "%s=%s", names[number], line + 1);
            free(line);
        }
        if (strchr(text, '=') == NULL) {
            free(text);
            continue;
        }
        environment[count++] = text;
    }
}

static void check(const struct hvd_job_settings *settings)
{
    if (settings->start_timeout_ms < 1000 || settings->fusion_threshold < 0 ||
        settings->memory_limit < 0 || settings->cache_capacity < 0 ||
        !(settings->cycle_time_ms >= 0) || settings->stall_warning_s < 1 ||
        settings->stall_shutdown_s < 0 || settings->autotune_steps_per_sample < 1 ||
        !(settings->autotune_noise >= 0 && settings->autotune_noise <= 1)) {
        fuzz_fail("settings are in their ranges");
    }
}

static void read_all(void)
{
    struct hvd_job_settings settings;
    struct hvd_rendezvous_address address;
    enum hvd_launch_kind launch;
    struct hvd_error err = {0};
    const char *text;

    hvd_job_settings_read(&settings);
    check(&settings);
    if (settings.thread_affinity != NULL &&
        hvd_thread_cpu_find(settings.thread_affinity, 1, 4, &err) < 0 &&
        err.text[0] == '\0') {
        fuzz_fail("a list of CPUs that is refused has a message");
    }
    (void)hvd_launch_decide((const char *const *)environment, true, &launch, &err);
    (void)hvd_launch_is_slurm_shell((const char *const *)environment);
    text = getenv(HVD_ENV_RENDEZVOUS);
    if (text != NULL && hvd_rendezvous_address_parse(text, &address, &err) == 0 &&
        address.host[0] == '\0') {
        fuzz_fail("an address has a host");
    }
    text = getenv(HVD_ENV_IFACE);
    if (text != NULL && text[0] != '\0') {
        struct hvd_ip addresses[4];
        int count;

        (void)hvd_interfaces_list(text, addresses, 4, &count, &err);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    char **outside = environ;

    hvd_log_to(NULL, HVD_LOG_DEBUG);
    make_environment(&input);
    environ = environment;
    read_all();
    environ = outside;
    free_environment();
    return 0;
}
