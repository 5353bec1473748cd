/* SPDX-License-Identifier: Apache-2.0 */
/* Every environment variable that hvd reads or writes: name, default, meaning. Nothing else
 * in the source spells one. "written by" names who exports it to the ranks. */
#ifndef HVD_ENV_H
#define HVD_ENV_H

/* Written for each rank by the plugin and by hvdrun, for scripts that look at them; hvd
 * itself takes its ranks from PMIx. A value that the user set is left alone. */
#define HVD_ENV_RANK "HOROVOD_RANK"
#define HVD_ENV_SIZE "HOROVOD_SIZE"
#define HVD_ENV_LOCAL_RANK "HOROVOD_LOCAL_RANK"
#define HVD_ENV_LOCAL_SIZE "HOROVOD_LOCAL_SIZE"
#define HVD_ENV_CROSS_RANK "HOROVOD_CROSS_RANK"
#define HVD_ENV_CROSS_SIZE "HOROVOD_CROSS_SIZE"
#define HVD_ENV_HOSTNAME "HOROVOD_HOSTNAME"

/* Contract between the plugin (or hvdrun) and the library. */
#define HVD_ENV_LAUNCH "HVD_LAUNCH" /* "1": the plugin or hvdrun started this rank */
#define HVD_ENV_GPU_LIST "HVD_GPU_LIST" /* the node's GPU numbers in local rank order */
#define HVD_ENV_GPU_INDEX                                                                \
    "HVD_GPU_INDEX" /* this rank's index into CUDA_VISIBLE_DEVICES */
#define HVD_ENV_GPUS "HVD_GPUS" /* all (each rank sees all) or isolated */
#define HVD_ENV_CPUS "HVD_CPUS" /* the cpus this rank was bound to, as a list */
#define HVD_ENV_NIC "HVD_NIC" /* the network card planned for this rank */
#define HVD_ENV_LAUNCH_ERROR                                                             \
    "SLURM_HVD_ERROR" /* why the launch is unusable; init repeats it */
#define HVD_ENV_REQUEST                                                                  \
    "SLURM_HVD" /* srun was asked for hvd; without HVD_LAUNCH this node has no plugin */

/* Values of HVD_ENV_REQUEST: said by the user or by hvd; by nobody, so Slurm's one per
 * node. */
#define HVD_REQUEST_TASKS_KNOWN "1"
#define HVD_REQUEST_TASKS_OPEN "open"

/* Of an elastic job, for its ranks. */
#define HVD_ENV_ELASTIC "HVD_ELASTIC" /* where its service is: HOST:PORT:KEY */
#define HVD_ENV_HOROVOD_ELASTIC "HOROVOD_ELASTIC" /* 1: the job is elastic */

/* Between the parts of the plugin. */
#define HVD_ENV_ELASTIC_STEP                                                             \
    "SLURM_HVD_ELASTIC" /* the service that srun started: PORT:KEY, or HOST:PORT:KEY */
#define HVD_ENV_REPORT                                                                   \
    "SLURM_HVD_REPORT" /* where srun collects binding tables: port:key */

/* Extended or looked at by the plugin for the front end. */
#define HVD_ENV_PYTHONPATH "PYTHONPATH" /* gets the front end at its end */
#define HVD_ENV_VIRTUAL_ENV "VIRTUAL_ENV"
#define HVD_ENV_CONDA_PREFIX "CONDA_PREFIX"

/* Written by launchers; read to tell a rank of many from a lone process. */
#define HVD_ENV_PMIX_NAMESPACE "PMIX_NAMESPACE" /* with PMIX_RANK: PMIx is served */
#define HVD_ENV_PMIX_RANK "PMIX_RANK"
#define HVD_ENV_SLURM_JOB "SLURM_JOB_ID"
#define HVD_ENV_SLURM_STEP "SLURM_STEP_ID" /* only tasks of srun have it */
#define HVD_ENV_SLURM_STEP_TASKS "SLURM_STEP_NUM_TASKS"
#define HVD_ENV_SLURM_TASKS "SLURM_NTASKS"
#define HVD_ENV_SLURM_NODE "SLURMD_NODENAME"
#define HVD_ENV_SLURM_OPTION                                                             \
    "SLURM_SPANK__SLURM_SPANK_OPTION_hvd_hvd" /* #SBATCH --hvd, salloc --hvd */
#define HVD_ENV_OMPI_SIZE "OMPI_COMM_WORLD_SIZE" /* Open MPI */
#define HVD_ENV_PMI_SIZE "PMI_SIZE" /* MPICH, Intel MPI, PALS, srun --mpi=pmi2 */
#define HVD_ENV_PMI_RANK "PMI_RANK"
#define HVD_ENV_PALS_RANK "PALS_RANKID" /* HPE Cray PALS */
#define HVD_ENV_HYDRA_LOCAL_SIZE "MPI_LOCALNRANKS" /* MPICH, Intel MPI */
#define HVD_ENV_MVAPICH_SIZE "MV2_COMM_WORLD_SIZE"
#define HVD_ENV_JSRUN_SIZE "JSM_NAMESPACE_SIZE"
#define HVD_ENV_FLUX_SIZE "FLUX_JOB_SIZE"
#define HVD_ENV_TORCHRUN_SIZE "GROUP_WORLD_SIZE" /* nodes */
#define HVD_ENV_TORCHRUN_LOCAL_SIZE "LOCAL_WORLD_SIZE"

/* Read by the library. */
#define HVD_ENV_START_TIMEOUT                                                            \
    "HVD_START_TIMEOUT" /* seconds init waits for all ranks, 60 */
#define HVD_ENV_BOOT_HELPER "HVD_BOOT_HELPER" /* path of hvd-boot, beside libhvd */
#define HVD_ENV_IFACE "HVD_IFACE" /* network interface of control connections, all */
#define HVD_ENV_LATENESS                                                                 \
    "HVD_REPORT" /* a file for who was late, and with .json behind its name; 1: to stderr */
#define HVD_ENV_SINGLE_COPY                                                              \
    "HVD_SINGLE_COPY" /* 0: ranks of a node do not read or write each other's memory, 1 */
#define HVD_ENV_TERMINAL                                                                 \
    "HVD_TERMINAL" /* by hvdrun: 1 where its stderr is a terminal, for lines of progress */
#define HVD_ENV_TUNE_TABLE                                                               \
    "HVD_TUNE_TABLE" /* a file of hvd-bench --tune, SYSCONFDIR/hvd/tune.table; or builtin */
#define HVD_ENV_GPU_PATH                                                                 \
    "HVD_GPU_PATH" /* GPU tensors by nccl, by host memory, auto: nccl where all have it */
#define HVD_ENV_GPU_ALLREDUCE                                                            \
    "HVD_GPU_ALLREDUCE" /* between nodes: hierarchical, flat (all by NCCL), auto: measured */
#define HVD_ENV_GPU_PACK_BELOW                                                           \
    "HVD_GPU_PACK_BELOW" /* bytes: smaller tensors are packed for NCCL, auto: measured */
#define HVD_ENV_HIERARCHICAL_ALLREDUCE                                                   \
    "HOROVOD_HIERARCHICAL_ALLREDUCE" /* 1: as HVD_GPU_ALLREDUCE=hierarchical, 0: as flat \
                                      */
#define HVD_ENV_TORUS_ALLREDUCE "HOROVOD_TORUS_ALLREDUCE" /* the same */
#define HVD_ENV_NCCL_STREAMS                                                             \
    "HOROVOD_NUM_NCCL_STREAMS" /* streams that batches by NCCL take turns on, 1 to 8, 1 */
#define HVD_ENV_NCCL_REGISTER                                                            \
    "HVD_NCCL_REGISTER" /* 1: memory of packed tensors is registered with NCCL, 0 */
#define HVD_ENV_GPU_DIRECT                                                               \
    "HVD_GPU_DIRECT" /* on: hierarchical gives UCX the GPU's memory, off, auto: measured */
#define HVD_ENV_GPU_MODULE "HVD_GPU_MODULE" /* path of hvd_gpu.so, beside libhvd */
#define HVD_ENV_NCCL_LIBRARY                                                             \
    "HVD_NCCL_LIBRARY" /* path of NCCL; the one loaded already, else libnccl.so.2 */
#define HVD_ENV_TIMELINE_RANKS                                                           \
    "HVD_TIMELINE_RANKS" /* all: the timeline shows all ranks, not only 0 */
#define HVD_ENV_MEMORY_LIMIT                                                             \
    "HVD_MEMORY_LIMIT" /* bytes a rank moves tensors through, at most; 0: no limit */
#define HVD_ENV_LOG_LEVEL "HOROVOD_LOG_LEVEL" /* trace ... fatal, warning */
#define HVD_ENV_LOG_HIDE_TIME "HOROVOD_LOG_HIDE_TIME" /* 1: log lines without the time */
#define HVD_ENV_FUSION_THRESHOLD                                                         \
    "HOROVOD_FUSION_THRESHOLD" /* bytes a batch holds, 128 MiB; 0: one tensor each */
#define HVD_ENV_CYCLE_TIME "HOROVOD_CYCLE_TIME" /* milliseconds between two rounds, 1 */
#define HVD_ENV_CACHE_CAPACITY "HOROVOD_CACHE_CAPACITY" /* tensors remembered, 1024 */
#define HVD_ENV_DISABLE_GROUP_FUSION                                                     \
    "HOROVOD_DISABLE_GROUP_FUSION" /* 1: a group is fused with nothing else */
#define HVD_ENV_DYNAMIC_SETS                                                             \
    "HOROVOD_DYNAMIC_PROCESS_SETS" /* 1: process sets may come and go after init */
#define HVD_ENV_THREAD_AFFINITY                                                          \
    "HOROVOD_THREAD_AFFINITY" /* a cpu per local rank for hvd's thread: 0,8,... */
#define HVD_ENV_AUTOTUNE "HOROVOD_AUTOTUNE" /* 1: search the best tunables */
#define HVD_ENV_AUTOTUNE_LOG "HOROVOD_AUTOTUNE_LOG" /* a file */
#define HVD_ENV_AUTOTUNE_WARMUP                                                          \
    "HOROVOD_AUTOTUNE_WARMUP_SAMPLES" /* that do not count, 3 */
#define HVD_ENV_AUTOTUNE_STEPS                                                           \
    "HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE" /* training steps, 10 */
#define HVD_ENV_AUTOTUNE_SAMPLES                                                         \
    "HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES" /* at most, 20 */
#define HVD_ENV_AUTOTUNE_NOISE "HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE" /* 0 to 1, 0.8 */
#define HVD_ENV_TIMELINE "HOROVOD_TIMELINE" /* a file, or DYNAMIC: started by a call */
#define HVD_ENV_TIMELINE_MARK_CYCLES "HOROVOD_TIMELINE_MARK_CYCLES" /* 1: rounds too */
#define HVD_ENV_DISABLE_NVTX                                                             \
    "HOROVOD_DISABLE_NVTX_RANGES" /* 1: no ranges for NVIDIA's profilers */
#define HVD_ENV_NVTX_INJECTION                                                           \
    "NVTX_INJECTION64_PATH" /* a profiler's library, set by the profiler */
#define HVD_ENV_STALL_CHECK_DISABLE                                                      \
    "HOROVOD_STALL_CHECK_DISABLE" /* 1: no word about tensors that some never submit */
#define HVD_ENV_STALL_WARNING                                                            \
    "HOROVOD_STALL_CHECK_TIME_SECONDS" /* before a warning, 60 */
#define HVD_ENV_STALL_SHUTDOWN                                                           \
    "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS" /* before the job ends, 0: never */
#define HVD_ENV_GLOO_IFACE "HOROVOD_GLOO_IFACE" /* same as HVD_IFACE */
#define HVD_ENV_GLOO_TIMEOUT                                                             \
    "HOROVOD_GLOO_TIMEOUT_SECONDS" /* same as HVD_START_TIMEOUT */

/* Read by launchers. */
#define HVD_ENV_ELASTIC_TIMEOUT                                                          \
    "HOROVOD_ELASTIC_TIMEOUT" /* seconds an elastic job waits for enough ranks, 600 */

/* Read by the Python package. */
#define HVD_ENV_LIBRARY "HVD_LIBRARY" /* path of libhvd.so, found beside the package */
#define HVD_ENV_TENSORFLOW_OPS                                                           \
    "HVD_TENSORFLOW_OPS" /* python: TensorFlow's collectives without hvd's library, auto */
#define HVD_ENV_SHARED_GRADIENTS                                                         \
    "HVD_SHARED_GRADIENTS" /* 1: of torch on CPUs, in memory that ranks map, 0 */
#define HVD_ENV_RUN_ADDRESS "HVD_RUN_ADDRESS" /* of the caller of horovod.run */
#define HVD_ENV_RUN_KEY "HVD_RUN_KEY" /* what ranks show it */

/* Written for each rank by the plugin and by hvdrun unless the user set it. */
#define HVD_ENV_UCX_NET_DEVICES "UCX_NET_DEVICES" /* cards UCX may use: mlx5_0:1,... */
#define HVD_ENV_CUDA_DEVICE_ORDER "CUDA_DEVICE_ORDER" /* PCI_BUS_ID: as Slurm counts */

/* Read by hvd-info, to tell what a job would get. The plugin sets the first back to what
 * Slurm gave the whole step, so that each rank sees all its GPUs. */
#define HVD_ENV_CUDA_VISIBLE_DEVICES "CUDA_VISIBLE_DEVICES"
#define HVD_ENV_SLURM_STEP_GPUS "SLURM_STEP_GPUS" /* the node's numbers: 0,1 */
#define HVD_ENV_SLURM_JOB_GPUS "SLURM_JOB_GPUS"
#define HVD_ENV_SLURM_GPUS_ON_NODE "SLURM_GPUS_ON_NODE" /* a count */
#define HVD_ENV_SLURM_STEP_TASKS_PER_NODE "SLURM_STEP_TASKS_PER_NODE" /* 2(x3),1 */
#define HVD_ENV_SLURM_TASKS_PER_NODE "SLURM_TASKS_PER_NODE"
#define HVD_ENV_SLURM_NTASKS_PER_NODE "SLURM_NTASKS_PER_NODE"
#define HVD_ENV_SLURM_NODEID "SLURM_NODEID" /* this node's place in such lists */
#define HVD_ENV_SLURM_LOCAL_ID "SLURM_LOCALID" /* of a task: its place on the node */
#define HVD_ENV_SLURM_CPUS_PER_TASK "SLURM_CPUS_PER_TASK"

/* UCX's own; where the user set one, hvd leaves alone what it would choose otherwise. */
#define HVD_ENV_UCX_TLS "UCX_TLS" /* all transports but shared memory */
#define HVD_ENV_UCX_HANDLE_ERRORS "UCX_HANDLE_ERRORS" /* no signal handlers */
#define HVD_ENV_UCX_LOG_LEVEL "UCX_LOG_LEVEL" /* warnings go to hvd's debug log */

/* Slurm's, read by the plugin. */
#define HVD_ENV_SLURM_JOB_NODES "SLURM_JOB_NUM_NODES"
#define HVD_ENV_SLURM_JOB_CPUS_PER_NODE "SLURM_JOB_CPUS_PER_NODE" /* 4(x2),3 */
#define HVD_ENV_SLURM_GPUS_PER_NODE "SLURM_GPUS_PER_NODE" /* as typed: 4, a100:4 */
#define HVD_ENV_SLURM_GPUS "SLURM_GPUS" /* of all nodes, as typed */
#define HVD_ENV_SLURM_PROCID "SLURM_PROCID" /* the rank in the whole step */
#define HVD_ENV_SLURM_DISTRIBUTION "SLURM_DISTRIBUTION"
#define HVD_ENV_SLURM_SRUN_HOST "SLURM_SRUN_COMM_HOST" /* srun's address */
#define HVD_ENV_SLURM_CPU_BIND "SLURM_CPU_BIND"
#define HVD_ENV_SLURM_CPU_BIND_TYPE "SLURM_CPU_BIND_TYPE"
#define HVD_ENV_SLURM_CPU_BIND_LIST "SLURM_CPU_BIND_LIST"
#define HVD_ENV_SLURM_CPU_BIND_VERBOSE "SLURM_CPU_BIND_VERBOSE"
#define HVD_ENV_SLURM_TRES_BIND "SLURMD_TRES_BIND" /* how a task got its GPUs */
#define HVD_ENV_SLURM_JOB_TRES_BIND "SLURM_TRES_BIND" /* the same, of a job */

/* Slurm's, set by the plugin in srun unless the user set them. */
#define HVD_ENV_SLURM_MPI_TYPE "SLURM_MPI_TYPE" /* in a step: what srun used */
#define HVD_ENV_SLURM_PMIX_TIMEOUT "SLURM_PMIX_TIMEOUT" /* seconds, 300 */
#define HVD_ENV_SLURM_PMIX_FENCE "SLURM_PMIX_FENCE" /* "ring" waits for all nodes */

/* Horovod's, accepted without effect: collectives/engine/variables.c says why. */
#define HVD_ENV_HIERARCHICAL_ALLGATHER "HOROVOD_HIERARCHICAL_ALLGATHER"
#define HVD_ENV_BATCH_COPIES "HOROVOD_BATCH_D2D_MEMCOPIES"
#define HVD_ENV_ASYNC_COMPLETION "HOROVOD_ENABLE_ASYNC_COMPLETION"
#define HVD_ENV_XLA_OPS "HOROVOD_ENABLE_XLA_OPS"
#define HVD_ENV_CONTROLLER "HOROVOD_CONTROLLER"
#define HVD_ENV_CPU_OPERATIONS "HOROVOD_CPU_OPERATIONS"
#define HVD_ENV_CCL_CACHE "HOROVOD_CCL_CACHE"
#define HVD_ENV_MPI_THREADS_DISABLE "HOROVOD_MPI_THREADS_DISABLE"
#define HVD_ENV_ADASUM_CHUNK "HOROVOD_ADASUM_MPI_CHUNK_SIZE"
#define HVD_ENV_RENDEZVOUS_ADDR "HOROVOD_GLOO_RENDEZVOUS_ADDR"
#define HVD_ENV_RENDEZVOUS_PORT "HOROVOD_GLOO_RENDEZVOUS_PORT"
#define HVD_ENV_HOROVOD_START_TIMEOUT "HOROVOD_START_TIMEOUT"

/* Horovod's, for what is no part of the runtime. A FAMILY is how several names begin. */
#define HVD_ENV_FAMILY_ALL "HOROVOD_"
#define HVD_ENV_FAMILY_BUILD "HOROVOD_BUILD_"
#define HVD_ENV_FAMILY_WITH "HOROVOD_WITH" /* _MPI, OUT_MPI, ... */
#define HVD_ENV_FAMILY_GPU "HOROVOD_GPU"
#define HVD_ENV_FAMILY_CUDA "HOROVOD_CUDA_"
#define HVD_ENV_FAMILY_ROCM "HOROVOD_ROCM_"
#define HVD_ENV_FAMILY_NCCL "HOROVOD_NCCL_"
#define HVD_ENV_FAMILY_SPARK "HOROVOD_SPARK_"
#define HVD_ENV_FAMILY_ELASTIC "HOROVOD_ELASTIC"
#define HVD_ENV_MIXED_GPU "HOROVOD_ALLOW_MIXED_GPU_IMPL"
#define HVD_ENV_CMAKE "HOROVOD_CMAKE"
#define HVD_ENV_DEBUG "HOROVOD_DEBUG"
#define HVD_ENV_SKIP_COMPILE "HOROVOD_SKIP_COMPILE"
#define HVD_ENV_LOCAL_VERSION "HOROVOD_LOCAL_VERSION"
#define HVD_ENV_TEST_GPU "HOROVOD_TEST_GPU"
#define HVD_ENV_MIXED_INSTALL "HOROVOD_MIXED_INSTALL"

/* NCCL's, set by an option of hvdrun; and what lets ranks share a GPU. */
#define HVD_ENV_NCCL_IB_DISABLE "NCCL_IB_DISABLE"
#define HVD_ENV_NCCL_HOSTID "NCCL_HOSTID"

/* NCCL's, which keep it from a faster way; hvd says so. */
#define HVD_ENV_NCCL_NET "NCCL_NET" /* Socket: no InfiniBand */
#define HVD_ENV_NCCL_P2P_DISABLE "NCCL_P2P_DISABLE"
#define HVD_ENV_NCCL_P2P_LEVEL "NCCL_P2P_LEVEL" /* LOC: never */
#define HVD_ENV_NCCL_SHM_DISABLE "NCCL_SHM_DISABLE"

/* Read or written by hvdrun for itself and its ranks. */
#define HVD_ENV_TMPDIR "TMPDIR" /* where hvdrun keeps its sockets, /tmp */
#define HVD_ENV_PATH "PATH"
#define HVD_ENV_HOME "HOME" /* libpmix needs one; / where there is none at all */
#define HVD_ENV_LIBRARY_PATH "LD_LIBRARY_PATH"
#define HVD_ENV_PYTHON_UNBUFFERED "PYTHONUNBUFFERED" /* print shows at once */

#endif
