/* SPDX-License-Identifier: Apache-2.0 */
/* Every environment variable that hvd reads or writes: name, meaning, default. The C sources take
 * the names from here. contrib/docs/variables.py makes contrib/docs/variables.md of this file: a
 * line "--- TITLE ---" begins a section, and a comment explains the names below it. */
#ifndef HVD_ENV_H
#define HVD_ENV_H

/* --- Settings ---
 * Read by hvd_init on every rank. Set them alike on all ranks. */

/* Seconds that hvd_init waits for all ranks. Default: 60. */
#define HVD_ENV_START_TIMEOUT "HVD_START_TIMEOUT"
/* The same as HVD_START_TIMEOUT, which has precedence. */
#define HVD_ENV_GLOO_TIMEOUT "HOROVOD_GLOO_TIMEOUT_SECONDS"
/* Network interfaces for all connections but those of UCX and NCCL, such as eth0; the
 * first one that works is used. Ranks listen at the addresses of these interfaces only;
 * horovod.run and the registry of tf.data services listen at the first. Default:
 * UCX_NET_DEVICES if it names interfaces, else all, fastest first. */
#define HVD_ENV_IFACE "HVD_IFACE"
/* The same as HVD_IFACE, which has precedence. */
#define HVD_ENV_GLOO_IFACE "HOROVOD_GLOO_IFACE"
/* The TCP ports that hvd may listen on, such as 60001-63000: two for each rank of a job
 * of several nodes, without RDMA; one for MASTER_PORT; one on the machine of srun, where
 * it has precedence over SrunPortRange of slurm.conf. Default: any, chosen by the
 * kernel. */
#define HVD_ENV_PORT_RANGE "HVD_PORT_RANGE"
/* A secret of 16 characters or more, the same on all ranks: the secret of the job then
 * also depends on it. For jobs of torchrun and other stores, which everybody who reaches
 * the store can read: security.md. Default: none. */
#define HVD_ENV_SECRET "HVD_SECRET"
/* Between nodes: ucx, over whatever network it finds; tcp, hvd's own. Default: auto, ucx
 * if all ranks have an RDMA adapter that UCX may use, else tcp. */
#define HVD_ENV_NET "HVD_NET"
/* Between nodes over TCP, against somebody who changes or reads packets: objects
 * authenticates all but tensors of floating-point numbers; messages authenticates these,
 * too; encrypt also encrypts all tensors and objects. The last two never use UCX. The
 * same on all ranks. Default: objects. */
#define HVD_ENV_NET_SECURITY "HVD_NET_SECURITY"
/* trace, debug, info, warning, error or fatal. Default: warning; with hvdrun --verbose:
 * info. */
#define HVD_ENV_LOG_LEVEL "HOROVOD_LOG_LEVEL"
/* 1: log lines without the time. Default: 0. */
#define HVD_ENV_LOG_HIDE_TIME "HOROVOD_LOG_HIDE_TIME"
/* Most bytes of a rank's buffers for moving tensors, see memory.md. Default: 0, no
 * limit. */
#define HVD_ENV_MEMORY_LIMIT "HVD_MEMORY_LIMIT"
/* 0: ranks of a node do not read or write each other's memory. Default: 1. */
#define HVD_ENV_SINGLE_COPY "HVD_SINGLE_COPY"
/* CPU of hvd's thread, one for each local rank: 0,8,... Default: the system schedules
 * it. */
#define HVD_ENV_THREAD_AFFINITY "HOROVOD_THREAD_AFFINITY"
/* 1: process sets may be added and removed after hvd.init(). Default: 0. */
#define HVD_ENV_DYNAMIC_SETS "HOROVOD_DYNAMIC_PROCESS_SETS"

/* --- Fusion and tuning ---
 * How tensors are combined into batches, and which algorithms run. */

/* Most bytes in a batch; 0: one tensor per batch. Default: 134217728 (128 MiB). */
#define HVD_ENV_FUSION_THRESHOLD "HOROVOD_FUSION_THRESHOLD"
/* Milliseconds between two rounds of agreement. Default: 1. */
#define HVD_ENV_CYCLE_TIME "HOROVOD_CYCLE_TIME"
/* How many tensors are remembered, so that ranks agree about them by number. Default:
 * 1024. */
#define HVD_ENV_CACHE_CAPACITY "HOROVOD_CACHE_CAPACITY"
/* 1: a group of tensors is fused with nothing else. Default: 0. */
#define HVD_ENV_DISABLE_GROUP_FUSION "HOROVOD_DISABLE_GROUP_FUSION"
/* Table of algorithms by size, written by hvd-bench --tune; builtin: the built-in table.
 * Default: PREFIX/etc/hvd/tune.table if it exists, else builtin. */
#define HVD_ENV_TUNE_TABLE "HVD_TUNE_TABLE"
/* 1: search the fusion threshold and cycle time that are fastest for this job. Default:
 * 0. */
#define HVD_ENV_AUTOTUNE "HOROVOD_AUTOTUNE"
/* File for the trials of the search. Default: none. */
#define HVD_ENV_AUTOTUNE_LOG "HOROVOD_AUTOTUNE_LOG"
/* Trials at the start that do not count. Default: 3. */
#define HVD_ENV_AUTOTUNE_WARMUP "HOROVOD_AUTOTUNE_WARMUP_SAMPLES"
/* Training steps of a trial. Default: 10. */
#define HVD_ENV_AUTOTUNE_STEPS "HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE"
/* Most trials. Default: 20. */
#define HVD_ENV_AUTOTUNE_SAMPLES "HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES"
/* 0 to 1; accepted without effect, since the noise is measured. Default: 0.8. */
#define HVD_ENV_AUTOTUNE_NOISE "HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE"

/* --- Reports ---
 * What a job records about itself, see observe.md. */

/* Straggler report at the end: a file, also written as JSON to FILE.json; 1: to stderr.
 * Default: none. */
#define HVD_ENV_REPORT "HVD_REPORT"
/* Timeline: a file, or DYNAMIC: started by hvd.start_timeline(). Default: none. */
#define HVD_ENV_TIMELINE "HOROVOD_TIMELINE"
/* all: the timeline shows all ranks. Default: 0, rank 0 alone. */
#define HVD_ENV_TIMELINE_RANKS "HVD_TIMELINE_RANKS"
/* 1: the timeline also shows the rounds of agreement. Default: 0. */
#define HVD_ENV_TIMELINE_MARK_CYCLES "HOROVOD_TIMELINE_MARK_CYCLES"
/* 1: no warnings about tensors that some ranks do not submit, and ranks that do not
 * answer. Default: 0. */
#define HVD_ENV_STALL_CHECK_DISABLE "HOROVOD_STALL_CHECK_DISABLE"
/* Seconds before such a warning. Default: 60. */
#define HVD_ENV_STALL_WARNING "HOROVOD_STALL_CHECK_TIME_SECONDS"
/* Seconds after which the job ends with an error that names them. Default: 0, never. */
#define HVD_ENV_STALL_SHUTDOWN "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS"
/* 1: no NVTX ranges for NVIDIA's profilers. Default: 0. */
#define HVD_ENV_DISABLE_NVTX "HOROVOD_DISABLE_NVTX_RANGES"
/* A profiler's library, set by the profiler. */
#define HVD_ENV_NVTX_INJECTION "NVTX_INJECTION64_PATH"

/* --- GPU tensors ---
 * See gpu.md. */

/* nccl: an error if NCCL cannot be used; host: all GPU tensors through host memory.
 * Default: auto, NCCL where all ranks of the process set have it. */
#define HVD_ENV_GPU_PATH "HVD_GPU_PATH"
/* Allreduce over several nodes. hierarchical: within nodes first; flat: all by NCCL.
 * Default: auto, the one that was faster in the first large batches. */
#define HVD_ENV_GPU_ALLREDUCE "HVD_GPU_ALLREDUCE"
/* 1: as HVD_GPU_ALLREDUCE=hierarchical, 0: as flat, where HVD_GPU_ALLREDUCE is not
 * set. */
#define HVD_ENV_HIERARCHICAL_ALLREDUCE "HOROVOD_HIERARCHICAL_ALLREDUCE"
#define HVD_ENV_TORUS_ALLREDUCE "HOROVOD_TORUS_ALLREDUCE"
/* on, off: whether a hierarchical allreduce gives UCX the GPU's memory itself.
 * Default: auto, where UCX can and it was faster. */
#define HVD_ENV_GPU_DIRECT "HVD_GPU_DIRECT"
/* Bytes: smaller tensors are packed together for NCCL. Default: auto, measured. */
#define HVD_ENV_GPU_PACK_BELOW "HVD_GPU_PACK_BELOW"

/* --- Files of hvd ---
 * Only where a file is not in its usual place. */

/* hvd_gpu.so. Default: beside libhvd. */
#define HVD_ENV_GPU_MODULE "HVD_GPU_MODULE"
/* hvd_ucx.so. Default: beside libhvd. */
#define HVD_ENV_UCX_MODULE "HVD_UCX_MODULE"
/* NCCL. Default: the one that the framework has loaded, else libnccl.so.2. */
#define HVD_ENV_NCCL_LIBRARY "HVD_NCCL_LIBRARY"
/* libhvd.so, for the Python package. Default: found beside the package. */
#define HVD_ENV_LIBRARY "HVD_LIBRARY"
/* hvd-boot, which speaks PMIx for libhvd. Default: beside libhvd. */
#define HVD_ENV_BOOT_HELPER "HVD_BOOT_HELPER"

/* --- Elastic jobs ---
 * See elastic.md. */

/* Seconds that an elastic job waits for enough ranks. Default: 600. */
#define HVD_ENV_ELASTIC_TIMEOUT "HOROVOD_ELASTIC_TIMEOUT"
/* 1: the job is elastic, so ranks find each other through HVD_RENDEZVOUS even where PMIx
 * is served. Set by srun --hvd=elastic and hvdrun for the ranks, which other launches
 * remove. */
#define HVD_ENV_HOROVOD_ELASTIC "HOROVOD_ELASTIC"

/* --- Starting without PMIx ---
 * See slurm.md. */

/* HOST:PORT:KEY of the job's rendezvous service, through which ranks find each other
 * where no PMIx is served, and always in an elastic job. HOST may be several, separated
 * by commas, or the path of a socket, with 0 for PORT. Set by srun --hvd and hvdrun for
 * the ranks. */
#define HVD_ENV_RENDEZVOUS "HVD_RENDEZVOUS"

/* --- Set for each rank ---
 * By the plugin and by hvdrun, for scripts; a value that you set is left alone. hvd itself takes
 * the ranks from PMIx; without PMIx, from HOROVOD_RANK and HOROVOD_SIZE. */

/* This rank's number in the job, and the number of ranks. */
#define HVD_ENV_RANK "HOROVOD_RANK"
#define HVD_ENV_SIZE "HOROVOD_SIZE"
/* The same on its node. */
#define HVD_ENV_LOCAL_RANK "HOROVOD_LOCAL_RANK"
#define HVD_ENV_LOCAL_SIZE "HOROVOD_LOCAL_SIZE"
/* The node's number among the nodes that have this local rank, and their number. */
#define HVD_ENV_CROSS_RANK "HOROVOD_CROSS_RANK"
#define HVD_ENV_CROSS_SIZE "HOROVOD_CROSS_SIZE"
/* The name of the node. */
#define HVD_ENV_HOSTNAME "HOROVOD_HOSTNAME"
/* 1: the plugin or hvdrun started this rank. */
#define HVD_ENV_LAUNCH "HVD_LAUNCH"
/* The node's GPU numbers, in the order of the local ranks. */
#define HVD_ENV_GPU_LIST "HVD_GPU_LIST"
/* Index of this rank's GPU in CUDA_VISIBLE_DEVICES. */
#define HVD_ENV_GPU_INDEX "HVD_GPU_INDEX"
/* all: each rank sees all GPUs of the step on its node; isolated: only its own. */
#define HVD_ENV_GPUS "HVD_GPUS"
/* The CPUs that the rank is bound to, as a list. */
#define HVD_ENV_CPUS "HVD_CPUS"
/* The network card that is planned for the rank. */
#define HVD_ENV_NIC "HVD_NIC"
/* The cards that UCX may use: mlx5_0:1,... */
#define HVD_ENV_UCX_NET_DEVICES "UCX_NET_DEVICES"
/* For PyTorch, Lightning, Accelerate and DeepSpeed: the rank, the number of ranks, the
 * same on its node, and the number of the node. hvdrun replaces what it finds: ranks
 * cannot share a number. */
#define HVD_ENV_TORCH_RANK "RANK"
#define HVD_ENV_TORCH_SIZE "WORLD_SIZE"
#define HVD_ENV_TORCH_LOCAL_RANK "LOCAL_RANK"
#define HVD_ENV_TORCH_LOCAL_SIZE "LOCAL_WORLD_SIZE"
#define HVD_ENV_TORCH_NODE "GROUP_RANK"
/* Where rank 0 of torch.distributed serves its store: rank 0's address, and a port that
 * is kept free for it while the job runs. */
#define HVD_ENV_MASTER_ADDRESS "MASTER_ADDR"
#define HVD_ENV_MASTER_PORT "MASTER_PORT"
/* Threads of computing libraries: as many as the rank has cores. */
#define HVD_ENV_OMP_THREADS "OMP_NUM_THREADS"
#define HVD_ENV_MKL_THREADS "MKL_NUM_THREADS"
/* The network interface for NCCL and Gloo, in jobs of several nodes: HVD_IFACE, else the
 * interface by which the node reaches srun. By the plugin. */
#define HVD_ENV_NCCL_IFNAME "NCCL_SOCKET_IFNAME"
#define HVD_ENV_TORCH_GLOO_IFNAME "GLOO_SOCKET_IFNAME"
/* PCI_BUS_ID, so that CUDA numbers GPUs as Slurm does. */
#define HVD_ENV_CUDA_DEVICE_ORDER "CUDA_DEVICE_ORDER"
/* Extended at its end by the directory of the package horovod. */
#define HVD_ENV_PYTHONPATH "PYTHONPATH"
/* 1: Python prints at once, not in blocks. By hvdrun. */
#define HVD_ENV_PYTHON_UNBUFFERED "PYTHONUNBUFFERED"
/* 1 if hvdrun's stderr is a terminal, for lines of progress. By hvdrun. */
#define HVD_ENV_TERMINAL "HVD_TERMINAL"

/* --- Read from the launcher ---
 * To tell a rank of several from a lone process, and for hvd-info. */

/* PMIx is served. */
#define HVD_ENV_PMIX_NAMESPACE "PMIX_NAMESPACE"
#define HVD_ENV_PMIX_RANK "PMIX_RANK"
/* Whom PMIx believes, for hvd-info --check: security.md. */
#define HVD_ENV_PMIX_SECURITY "PMIX_SECURITY_MODE"
/* A Slurm job. */
#define HVD_ENV_SLURM_JOB "SLURM_JOB_ID"
#define HVD_ENV_SLURM_TASKS "SLURM_NTASKS"
#define HVD_ENV_SLURM_NODE "SLURMD_NODENAME"
/* Handed to the srun that kills a rank of an elastic job. */
#define HVD_ENV_SLURM_CONF "SLURM_CONF"
/* A task of srun. */
#define HVD_ENV_SLURM_STEP "SLURM_STEP_ID"
#define HVD_ENV_SLURM_STEP_TASKS "SLURM_STEP_NUM_TASKS"
/* #SBATCH --hvd or salloc --hvd. */
#define HVD_ENV_SLURM_OPTION "SLURM_SPANK__SLURM_SPANK_OPTION_hvd_hvd"
/* Open MPI. */
#define HVD_ENV_OMPI_SIZE "OMPI_COMM_WORLD_SIZE"
/* MPICH, Intel MPI, PALS, srun --mpi=pmi2. */
#define HVD_ENV_PMI_SIZE "PMI_SIZE"
#define HVD_ENV_PMI_RANK "PMI_RANK"
/* HPE Cray PALS. */
#define HVD_ENV_PALS_RANK "PALS_RANKID"
/* MPICH, Intel MPI. */
#define HVD_ENV_HYDRA_LOCAL_SIZE "MPI_LOCALNRANKS"
/* MVAPICH. */
#define HVD_ENV_MVAPICH_SIZE "MV2_COMM_WORLD_SIZE"
/* IBM's jsrun. */
#define HVD_ENV_JSRUN_SIZE "JSM_NAMESPACE_SIZE"
/* Flux. */
#define HVD_ENV_FLUX_SIZE "FLUX_JOB_SIZE"
/* torchrun. */
#define HVD_ENV_TORCHRUN_SIZE "GROUP_WORLD_SIZE"
/* hvd-info: the GPUs of the step. The plugin sets CUDA_VISIBLE_DEVICES back to what Slurm
 * gave the whole step, so that each rank sees all its GPUs. */
#define HVD_ENV_CUDA_VISIBLE_DEVICES "CUDA_VISIBLE_DEVICES"
#define HVD_ENV_SLURM_STEP_GPUS "SLURM_STEP_GPUS"
#define HVD_ENV_SLURM_JOB_GPUS "SLURM_JOB_GPUS"
#define HVD_ENV_SLURM_GPUS_ON_NODE "SLURM_GPUS_ON_NODE"
/* hvd-info: the ranks of each node, as 2(x3),1. */
#define HVD_ENV_SLURM_STEP_TASKS_PER_NODE "SLURM_STEP_TASKS_PER_NODE"
#define HVD_ENV_SLURM_TASKS_PER_NODE "SLURM_TASKS_PER_NODE"
#define HVD_ENV_SLURM_NTASKS_PER_NODE "SLURM_NTASKS_PER_NODE"
/* hvd-info: this node's place in such lists, the task's on its node, and the CPUs of a
 * task. */
#define HVD_ENV_SLURM_NODEID "SLURM_NODEID"
#define HVD_ENV_SLURM_LOCAL_ID "SLURM_LOCALID"
#define HVD_ENV_SLURM_CPUS_PER_TASK "SLURM_CPUS_PER_TASK"

/* --- Read by the plugin --- */

/* The nodes of the job and their CPUs, as 4(x2),3. */
#define HVD_ENV_SLURM_JOB_NODES "SLURM_JOB_NUM_NODES"
#define HVD_ENV_SLURM_JOB_CPUS_PER_NODE "SLURM_JOB_CPUS_PER_NODE"
/* GPUs as they were asked for: 4, a100:4. */
#define HVD_ENV_SLURM_GPUS_PER_NODE "SLURM_GPUS_PER_NODE"
#define HVD_ENV_SLURM_GPUS "SLURM_GPUS"
/* The rank in the step, and how Slurm distributes ranks. */
#define HVD_ENV_SLURM_PROCID "SLURM_PROCID"
#define HVD_ENV_SLURM_DISTRIBUTION "SLURM_DISTRIBUTION"
/* The address of srun, and that of the node that it runs on. */
#define HVD_ENV_SLURM_SRUN_HOST "SLURM_SRUN_COMM_HOST"
#define HVD_ENV_SLURM_LAUNCH_NODE "SLURM_LAUNCH_NODE_IPADDR"
/* How Slurm has bound the tasks to CPUs. */
#define HVD_ENV_SLURM_CPU_BIND "SLURM_CPU_BIND"
#define HVD_ENV_SLURM_CPU_BIND_TYPE "SLURM_CPU_BIND_TYPE"
#define HVD_ENV_SLURM_CPU_BIND_LIST "SLURM_CPU_BIND_LIST"
#define HVD_ENV_SLURM_CPU_BIND_VERBOSE "SLURM_CPU_BIND_VERBOSE"
/* How Slurm has bound a task, or the job's tasks, to GPUs. */
#define HVD_ENV_SLURM_TRES_BIND "SLURMD_TRES_BIND"
#define HVD_ENV_SLURM_JOB_TRES_BIND "SLURM_TRES_BIND"
/* Where the plugin looks for another package horovod; a message names the one that Python
 * imports. */
#define HVD_ENV_VIRTUAL_ENV "VIRTUAL_ENV"
#define HVD_ENV_CONDA_PREFIX "CONDA_PREFIX"
/* The flight recorder writes to hvd/trace_rank_N in it, see torch_distributed.md.
 * Default: ~/.cache. */
#define HVD_ENV_CACHE_HOME "XDG_CACHE_HOME"

/* --- Set by the plugin in srun ---
 * Unless you set them. */

/* pmix. In a step: what srun used. */
#define HVD_ENV_SLURM_MPI_TYPE "SLURM_MPI_TYPE"
/* Seconds, from timeout= in plugstack.conf. Slurm's default: 300. */
#define HVD_ENV_SLURM_PMIX_TIMEOUT "SLURM_PMIX_TIMEOUT"
/* ring, which waits for all nodes. */
#define HVD_ENV_SLURM_PMIX_FENCE "SLURM_PMIX_FENCE"

/* --- Between the parts of hvd ---
 * Not to be set by hand. */

/* --hvd was given: 1, or open if nobody chose the number of tasks. Without HVD_LAUNCH
 * beside it, the plugin is missing on this node. */
#define HVD_ENV_REQUEST "SLURM_HVD"
#define HVD_REQUEST_TASKS_KNOWN "1"
#define HVD_REQUEST_TASKS_OPEN "open"
/* Why this launch cannot be used; hvd_init repeats it. */
#define HVD_ENV_LAUNCH_ERROR "SLURM_HVD_ERROR"
/* Those of MASTER_ADDR, MASTER_PORT, OMP_NUM_THREADS, MKL_NUM_THREADS, NCCL_SOCKET_IFNAME
 * and GLOO_SOCKET_IFNAME that the plugin has set: an srun --hvd inside the rank sets them
 * anew. */
#define HVD_ENV_DEFAULTS "HVD_DEFAULTS"
/* Random, of the step: part of the job's secret, which is published through PMIx. */
#define HVD_ENV_STEP_KEY "SLURM_HVD_KEY"
/* The rendezvous service of the step, of which the plugin makes HVD_RENDEZVOUS on each
 * node: PORT:KEY of one that this srun has started, or HOST:PORT:KEY of one that it has
 * joined. */
#define HVD_ENV_RENDEZVOUS_STEP "SLURM_HVD_RENDEZVOUS"
/* hvdrun: the file in which a rank tells which rank failed first. */
#define HVD_ENV_CAUSE "HVD_CAUSE"
/* horovod.run: its address, and the key that ranks show it. */
#define HVD_ENV_RUN_ADDRESS "HVD_RUN_ADDRESS"
#define HVD_ENV_RUN_KEY "HVD_RUN_KEY"

/* --- Of other libraries --- */

/* UCX's transports. Set to all but shared memory and, with an RDMA adapter, TCP, unless
 * you set it. */
#define HVD_ENV_UCX_TLS "UCX_TLS"
/* UCX's signal handlers are removed, unless you set it. */
#define HVD_ENV_UCX_HANDLE_ERRORS "UCX_HANDLE_ERRORS"
/* UCX's warnings go to hvd's debug log, unless you set it. */
#define HVD_ENV_UCX_LOG_LEVEL "UCX_LOG_LEVEL"
/* Set by an option of hvdrun. */
#define HVD_ENV_NCCL_IB_DISABLE "NCCL_IB_DISABLE"
/* Another value for each rank lets ranks share a GPU, for tests. */
#define HVD_ENV_NCCL_HOSTID "NCCL_HOSTID"
/* A warning names those that keep NCCL from a faster path: NCCL_NET=Socket,
 * NCCL_P2P_LEVEL=LOC. */
#define HVD_ENV_NCCL_NET "NCCL_NET"
#define HVD_ENV_NCCL_P2P_DISABLE "NCCL_P2P_DISABLE"
#define HVD_ENV_NCCL_P2P_LEVEL "NCCL_P2P_LEVEL"
#define HVD_ENV_NCCL_SHM_DISABLE "NCCL_SHM_DISABLE"
/* NaiveEngine: MXNet ends each collective before the next begins. */
#define HVD_ENV_MXNET_ENGINE "MXNET_ENGINE_TYPE"
/* Set to nothing in jobs that use a service of tf.data, unless you set it. */
#define HVD_ENV_GRPC_PROXY "grpc_proxy"
/* Directory of hvdrun's sockets. Default: /tmp. */
#define HVD_ENV_TMPDIR "TMPDIR"
/* Where hvdrun looks for mpirun and prterun. Handed to the ranks that mpirun starts
 * elsewhere. */
#define HVD_ENV_PATH "PATH"
/* libpmix needs it; set to / if it is not set at all. */
#define HVD_ENV_HOME "HOME"
/* Handed to the ranks that mpirun starts elsewhere. */
#define HVD_ENV_LIBRARY_PATH "LD_LIBRARY_PATH"

/* --- Accepted without effect ---
 * Horovod's variables for which hvd has no use. HOROVOD_LOG_LEVEL=info gives the
 * reason. */

/* For MPI, Gloo, oneCCL and XLA, which hvd does without, and for what hvd always does. */
#define HVD_ENV_HIERARCHICAL_ALLGATHER "HOROVOD_HIERARCHICAL_ALLGATHER"
#define HVD_ENV_NCCL_STREAMS "HOROVOD_NUM_NCCL_STREAMS"
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
/* Use HVD_START_TIMEOUT. */
#define HVD_ENV_HOROVOD_START_TIMEOUT "HOROVOD_START_TIMEOUT"
/* For building and testing Horovod, and for its other launchers. FAMILY: all names that
 * begin so. */
#define HVD_ENV_MIXED_GPU "HOROVOD_ALLOW_MIXED_GPU_IMPL"
#define HVD_ENV_CMAKE "HOROVOD_CMAKE"
#define HVD_ENV_DEBUG "HOROVOD_DEBUG"
#define HVD_ENV_SKIP_COMPILE "HOROVOD_SKIP_COMPILE"
#define HVD_ENV_LOCAL_VERSION "HOROVOD_LOCAL_VERSION"
#define HVD_ENV_TEST_GPU "HOROVOD_TEST_GPU"
#define HVD_ENV_MIXED_INSTALL "HOROVOD_MIXED_INSTALL"
#define HVD_ENV_FAMILY_BUILD "HOROVOD_BUILD_"
#define HVD_ENV_FAMILY_WITH "HOROVOD_WITH"
#define HVD_ENV_FAMILY_GPU "HOROVOD_GPU"
#define HVD_ENV_FAMILY_CUDA "HOROVOD_CUDA_"
#define HVD_ENV_FAMILY_ROCM "HOROVOD_ROCM_"
#define HVD_ENV_FAMILY_NCCL "HOROVOD_NCCL_"
#define HVD_ENV_FAMILY_SPARK "HOROVOD_SPARK_"
#define HVD_ENV_FAMILY_ELASTIC "HOROVOD_ELASTIC"
/* Any other name gets a warning with the names that it may be meant for. */
#define HVD_ENV_FAMILY_ALL "HOROVOD_"

#endif
