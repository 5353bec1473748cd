/* SPDX-License-Identifier: Apache-2.0 */
/* What the environment says about the runtime, read once at init. */
#ifndef HVD_JOB_SETTINGS_H
#define HVD_JOB_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/gpu/gpu_config.h"
#include "collectives/transport/net/net_choice.h"

/* Texts are borrowed from the environment: what outlives init is copied by its user. */
struct hvd_job_settings {
    int start_timeout_ms;
    int64_t fusion_threshold; /* bytes; 0: nothing is fused */
    int64_t memory_limit; /* bytes, memory.h; 0: none */
    double cycle_time_ms;
    int cache_capacity; /* tensors; 0: none is remembered */
    bool has_fusion_threshold; /* the user chose it; so the next two */
    bool has_cycle_time;
    bool has_cache_capacity;
    bool disable_group_fusion;
    bool dynamic_process_sets;
    bool single_copy; /* ranks of a node may reach each other's memory */
    enum hvd_net_choice net; /* what carries messages between nodes */
    enum hvd_gpu_path gpu_path;
    enum hvd_gpu_direct gpu_direct;
    enum hvd_gpu_allreduce gpu_allreduce;
    const char *gpu_allreduce_wrong; /* no word for it; NULL: it is right */
    int64_t gpu_pack_below; /* bytes, or HVD_GPU_PACK_AUTO */
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
    bool has_no_ranges; /* of NVTX */
    bool timeline_all_ranks;
    const char *report; /* a file, or "1": the standard error stream; NULL: none */
    bool log_hide_time;
    const char *tune_table; /* a file, or "builtin"; NULL: where algorithm_file.h looks */
};

/* Reads the environment, and sets the least log level and how log lines begin. A value
 * that cannot be right, and a name that Horovod does not have, get a warning that names
 * variable, value and what is used instead; but for gpu_allreduce_wrong, with which the
 * job does not start. The ranks of a job have the same environment, so only the
 * launcher's first rank warns; the others say it at level info. */
void hvd_job_settings_read(struct hvd_job_settings *settings);

/* Log lines name this rank from now on. */
void hvd_job_settings_name_rank(const struct hvd_job_settings *settings, int rank);

#endif
