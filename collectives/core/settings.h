/* SPDX-License-Identifier: Apache-2.0 */
/* The settings that the environment gives to the runtime, read once at init. */
#ifndef HVD_JOB_SETTINGS_H
#define HVD_JOB_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/gpu/gpu_config.h"
#include "collectives/transport/net/net_choice.h"

/* Texts are borrowed from the environment: code that needs one after init copies it. */
struct hvd_job_settings {
    int start_timeout_ms;
    int64_t fusion_threshold; /* bytes; 0: nothing is fused */
    int64_t memory_limit; /* bytes, memory.h; 0: none */
    double cycle_time_ms;
    int cache_capacity; /* tensors; 0: none is remembered */
    bool has_fusion_threshold; /* the user chose the value; likewise the next two */
    bool has_cycle_time;
    bool has_cache_capacity;
    bool disable_group_fusion;
    bool dynamic_process_sets;
    bool single_copy; /* ranks of a node may access each other's memory */
    enum hvd_net_choice net; /* the transport between nodes */
    enum hvd_gpu_path gpu_path;
    enum hvd_gpu_direct gpu_direct;
    enum hvd_gpu_allreduce gpu_allreduce;
    /* a value that is none of the allowed words; NULL: the value is right */
    const char *gpu_allreduce_wrong;
    int64_t gpu_pack_below; /* bytes, or HVD_GPU_PACK_AUTO */
    int64_t gpu_one_kernel; /* bytes; 0: off */
    bool nccl_windows;
    const char *thread_affinity; /* NULL: none; thread_cpu.h reads it */

    bool stall_check_disable;
    int stall_warning_s;
    int stall_shutdown_s; /* above stall_warning_s, or 0: never */

    bool autotune;
    const char *autotune_log; /* a file; NULL: none */
    int autotune_warmup_samples;
    int autotune_steps_per_sample;
    int autotune_max_samples;
    double autotune_noise; /* 0 to 1 */

    const char *timeline; /* a file, or "DYNAMIC"; NULL: none */
    bool timeline_mark_cycles;
    bool has_no_ranges; /* no NVTX ranges */
    bool timeline_all_ranks;
    const char *metrics; /* a folder; NULL: none */
    bool reads_stacks; /* of the main thread */
    const char *stacks; /* a file for those of late ranks; NULL: none */
    const char *report; /* a file, or "1" for standard error; NULL: none */
    bool log_hide_time;
    /* a file, or "builtin"; NULL: the paths that algorithm_file.h searches */
    const char *tune_table;
};

/* Reads the environment, and sets the least log level and the beginning of log lines. A
 * value that cannot be right, or a name that Horovod does not have, gets a warning with
 * the variable, its value and the value used instead. A wrong gpu_allreduce is no
 * warning: the job does not start. The ranks of a job have the same environment, so only
 * the launcher's first rank warns; the others log at level info. */
void hvd_job_settings_read(struct hvd_job_settings *settings);

/* Makes log lines name this rank. */
void hvd_job_settings_name_rank(const struct hvd_job_settings *settings, int rank);

#endif
