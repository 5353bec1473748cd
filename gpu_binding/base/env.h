/* SPDX-License-Identifier: Apache-2.0 */
/* Every environment variable that hvd reads or writes: name, meaning, default. The C
 * sources take the names from here. contrib/docs/variables.py makes
 * contrib/docs/variables.md of this file: a line "--- TITLE ---" begins a section, and a
 * comment explains the names below it. A FAMILY is a prefix of names. meson.build makes
 * env_names.h of it, by which hvd_init finds misspelled names: the settings of hvd end at
 * "Set for each rank". */
#ifndef HVD_ENV_H
#define HVD_ENV_H

/* --- Settings ---
 * Read on every rank, by hvd_init or by Python. Set them alike on all ranks. */

/* Seconds that hvd_init waits for all ranks. Default: 60. */
#define HVD_ENV_START_TIMEOUT "HVD_START_TIMEOUT"
/* Horovod's name for HVD_START_TIMEOUT. Ignored if HVD_START_TIMEOUT is set, too. */
#define HVD_ENV_GLOO_TIMEOUT "HOROVOD_GLOO_TIMEOUT_SECONDS"
/* Seconds that horovod.spark.run waits for Spark to start the tasks. Read in the driver.
 * Default: 600. */
#define HVD_ENV_SPARK_START_TIMEOUT "HOROVOD_SPARK_START_TIMEOUT"
/* How the ranks of srun --hvd find each other: service, or pmix for Slurm's PMIx where
 * the step has it, see slurm.md. Default: service; pmix above 2048 ranks. */
#define HVD_ENV_START_BY "HVD_START_BY"
/* Network interfaces for all connections but those of UCX and NCCL, such as eth0; the
 * first one that works is used. Ranks listen on the addresses of these interfaces only;
 * horovod.run and the registry of tf.data services listen on the first. Default:
 * UCX_NET_DEVICES if it names interfaces, else all, fastest first. */
#define HVD_ENV_IFACE "HVD_IFACE"
/* Horovod's name for HVD_IFACE. Ignored if HVD_IFACE is set, too. */
#define HVD_ENV_GLOO_IFACE "HOROVOD_GLOO_IFACE"
/* The TCP ports that hvd may listen on, such as 60001-63000. A job on several nodes
 * without RDMA needs two for each rank. One more is needed for MASTER_PORT, and one on
 * the machine of srun, where this range has precedence over SrunPortRange of slurm.conf.
 * Default: any, chosen by the kernel. */
#define HVD_ENV_PORT_RANGE "HVD_PORT_RANGE"
/* A secret of at least 16 characters, the same on all ranks, which is added to the secret
 * of the job. Set it if ranks meet through a store that others can read, such as
 * torchrun's: security.md. Default: none. */
#define HVD_ENV_SECRET "HVD_SECRET"
/* The transport between nodes. ucx: UCX, over any network that it finds; tcp: hvd's own.
 * Default: auto, ucx if all ranks have an RDMA adapter that UCX may use, else tcp. */
#define HVD_ENV_NET "HVD_NET"
/* Protects TCP connections between nodes against an attacker who changes or reads
 * packets. objects: authenticates everything except tensors of floating-point numbers;
 * messages: authenticates these, too; encrypt: also encrypts all tensors and objects. The
 * last two never use UCX. Set it alike on all ranks. Default: objects. */
#define HVD_ENV_NET_SECURITY "HVD_NET_SECURITY"
/* The lowest level of log lines: trace, debug, info, warning, error or fatal. Default:
 * warning; with hvdrun --verbose: info. */
#define HVD_ENV_LOG_LEVEL "HOROVOD_LOG_LEVEL"
/* 1: log lines without the time. Default: 0. */
#define HVD_ENV_LOG_HIDE_TIME "HOROVOD_LOG_HIDE_TIME"
/* The largest number of bytes for a rank's buffers for moving tensors, see memory.md.
 * Default: 0, no limit. */
#define HVD_ENV_MEMORY_LIMIT "HVD_MEMORY_LIMIT"
/* 0: ranks of a node do not read or write each other's memory. Default: 1. */
#define HVD_ENV_SINGLE_COPY "HVD_SINGLE_COPY"
/* The CPU of hvd's thread, one for each local rank, such as 0,8,16. Default: the system
 * schedules it. */
#define HVD_ENV_THREAD_AFFINITY "HOROVOD_THREAD_AFFINITY"
/* 1: after SIGUSR1 has made hvd.should_stop() return True, rank 0 requeues the Slurm job
 * when all ranks have come to the end of the script, see slurm.md. JOB.STEP: the same in
 * this step only. Default: 0. */
#define HVD_ENV_REQUEUE "HVD_REQUEUE"
/* 1: process sets may be added and removed after hvd.init(). Default: 0. */
#define HVD_ENV_DYNAMIC_SETS "HOROVOD_DYNAMIC_PROCESS_SETS"

/* --- Fusion and tuning ---
 * How tensors are combined into batches, and which algorithms run. */

/* The largest batch in bytes; 0: one tensor per batch. Default: 134217728 (128 MiB). */
#define HVD_ENV_FUSION_THRESHOLD "HOROVOD_FUSION_THRESHOLD"
/* Milliseconds between two rounds of agreement. Default: 1. */
#define HVD_ENV_CYCLE_TIME "HOROVOD_CYCLE_TIME"
/* The number of tensors in the response cache, which lets ranks agree on a tensor by its
 * number. Default: 1024. */
#define HVD_ENV_CACHE_CAPACITY "HOROVOD_CACHE_CAPACITY"
/* 1: the tensors of a group are fused with no others. Default: 0. */
#define HVD_ENV_DISABLE_GROUP_FUSION "HOROVOD_DISABLE_GROUP_FUSION"
/* Table of algorithms by size, written by hvd-bench --tune; builtin: the built-in table.
 * Default: PREFIX/etc/hvd/tune.table if it exists, else builtin. */
#define HVD_ENV_TUNE_TABLE "HVD_TUNE_TABLE"
/* 1: search for the fusion threshold and the cycle time that are fastest for this job.
 * Default: 0. */
#define HVD_ENV_AUTOTUNE "HOROVOD_AUTOTUNE"
/* The file to which the search of HOROVOD_AUTOTUNE writes its trials. Default: none. */
#define HVD_ENV_AUTOTUNE_LOG "HOROVOD_AUTOTUNE_LOG"
/* The number of trials at the start of the search whose results are discarded. Default:
 * 3. */
#define HVD_ENV_AUTOTUNE_WARMUP "HOROVOD_AUTOTUNE_WARMUP_SAMPLES"
/* Training steps in each trial of the search. Default: 10. */
#define HVD_ENV_AUTOTUNE_STEPS "HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE"
/* The largest number of trials of the search. Default: 20. */
#define HVD_ENV_AUTOTUNE_SAMPLES "HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES"
/* A number from 0 to 1, accepted without effect: the search measures the noise. Default:
 * 0.8. */
#define HVD_ENV_AUTOTUNE_NOISE "HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE"

/* --- Reports ---
 * What a job records about itself, see observe.md. */

/* Straggler report at the end: a file, also written as JSON to FILE.json; a file that
 * ends in .html: a page for a browser; 1: to stderr. Default: none. */
#define HVD_ENV_REPORT "HVD_REPORT"
/* The folder of a metrics file for Prometheus on each node, see metrics.md; 0: none.
 * Default: none. */
#define HVD_ENV_METRICS "HVD_METRICS"
/* Stacks of ranks that hold others up: a file to which rank 0 adds them; 1: only their
 * first lines in the log; 0: none, and none for hvd-info --stacks. Default: 1. */
#define HVD_ENV_STACKS "HVD_STACKS"
/* Timeline: a file; or DYNAMIC, to start it by hvd.start_timeline(). Default: none. */
#define HVD_ENV_TIMELINE "HOROVOD_TIMELINE"
/* all: the timeline shows all ranks. Default: 0, rank 0 alone. */
#define HVD_ENV_TIMELINE_RANKS "HVD_TIMELINE_RANKS"
/* 1: the timeline also shows the rounds of agreement. Default: 0. */
#define HVD_ENV_TIMELINE_MARK_CYCLES "HOROVOD_TIMELINE_MARK_CYCLES"
/* 1: no warnings about tensors that only some ranks have submitted, and about ranks that
 * do not answer. Default: 0. */
#define HVD_ENV_STALL_CHECK_DISABLE "HOROVOD_STALL_CHECK_DISABLE"
/* Seconds before a stalled tensor or rank causes a warning. Default: 60. */
#define HVD_ENV_STALL_WARNING "HOROVOD_STALL_CHECK_TIME_SECONDS"
/* Seconds after which a stalled tensor or rank ends the job, with an error that names it.
 * Default: 0, never. */
#define HVD_ENV_STALL_SHUTDOWN "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS"
/* 0: no warning if ranks start the training from different parameters, because the script
 * does not broadcast them. Default: 1. */
#define HVD_ENV_CHECK_PARAMETERS "HVD_CHECK_PARAMETERS"
/* 0: no warning at the end of a job of PyTorch in which each rank has trained alone,
 * because the script does not average gradients. Default: 1. */
#define HVD_ENV_CHECK_AVERAGING "HVD_CHECK_AVERAGING"
/* 1: no NVTX ranges for NVIDIA's profilers. Default: 0. */
#define HVD_ENV_DISABLE_NVTX "HOROVOD_DISABLE_NVTX_RANGES"
/* A folder for files with NCCL's warnings, one for each process; a missing one is made.
 * hvd-info --nccl sums them up. Default: none. */
#define HVD_ENV_NCCL_FILES "HVD_NCCL_FILES"
/* The library of a profiler, set by the profiler. */
#define HVD_ENV_NVTX_INJECTION "NVTX_INJECTION64_PATH"

/* --- GPU tensors ---
 * See gpu.md. */

/* nccl: an error if NCCL cannot be used; host: all GPU tensors go through host memory.
 * Default: auto, NCCL if all ranks of the process set have it. */
#define HVD_ENV_GPU_PATH "HVD_GPU_PATH"
/* How allreduce runs on several nodes. flat: all of it by NCCL; hierarchical: within
 * nodes first; auto: for each size, the one that was faster in the first large batches.
 * Default: flat. */
#define HVD_ENV_GPU_ALLREDUCE "HVD_GPU_ALLREDUCE"
/* 1: like HVD_GPU_ALLREDUCE=hierarchical; 0: like HVD_GPU_ALLREDUCE=flat. Ignored if
 * HVD_GPU_ALLREDUCE is set. */
#define HVD_ENV_HIERARCHICAL_ALLREDUCE "HOROVOD_HIERARCHICAL_ALLREDUCE"
#define HVD_ENV_TORUS_ALLREDUCE "HOROVOD_TORUS_ALLREDUCE"
/* on, off: whether a hierarchical allreduce gives GPU memory to UCX directly. Default:
 * auto, on if UCX can use it and it was faster. */
#define HVD_ENV_GPU_DIRECT "HVD_GPU_DIRECT"
/* Tensors smaller than this number of bytes are packed together for NCCL. Default: auto,
 * measured. */
#define HVD_ENV_GPU_PACK_BELOW "HVD_GPU_PACK_BELOW"
/* 1: packed tensors are in memory that NCCL 2.27 and later register as a window, for its
 * symmetric kernels. Default: 0, until it has been measured. */
#define HVD_ENV_NCCL_WINDOWS "HVD_NCCL_WINDOWS"
/* On one node, batches of floats of up to this number of bytes are reduced by one kernel,
 * which stores into the memory of the other GPUs, without NCCL. At most 4194304.
 * Default: 0, until it has been measured. */
#define HVD_ENV_GPU_ONE_KERNEL "HVD_GPU_ONE_KERNEL"

/* --- Files of hvd ---
 * Set these only if a file is not in its usual place. */

/* Path of hvd_gpu.so. Default: beside libhvd. */
#define HVD_ENV_GPU_MODULE "HVD_GPU_MODULE"
/* Path of hvd_ucx.so. Default: beside libhvd. */
#define HVD_ENV_UCX_MODULE "HVD_UCX_MODULE"
/* Path of NCCL. Default: the one that the framework has loaded, else libnccl.so.2. */
#define HVD_ENV_NCCL_LIBRARY "HVD_NCCL_LIBRARY"
/* Path of libhvd.so, for the Python package. Default: found beside the package. */
#define HVD_ENV_LIBRARY "HVD_LIBRARY"
/* Path of hvd-boot, which speaks PMIx for libhvd. Default: beside libhvd. */
#define HVD_ENV_BOOT_HELPER "HVD_BOOT_HELPER"

/* --- Elastic jobs ---
 * See elastic.md. */

/* Seconds that an elastic job waits for enough ranks. Default: 600. */
#define HVD_ENV_ELASTIC_TIMEOUT "HOROVOD_ELASTIC_TIMEOUT"
/* 1: the job is elastic, so ranks find each other through HVD_RENDEZVOUS, whatever
 * HVD_START_BY says. srun --hvd=elastic and hvdrun set it for the ranks, other launches
 * remove it. */
#define HVD_ENV_HOROVOD_ELASTIC "HOROVOD_ELASTIC"

/* --- Starting by the rendezvous service ---
 * See slurm.md. */

/* HOST:PORT:KEY of the job's rendezvous service, through which ranks find each other.
 * HOST may be several names, separated by commas, or the path of a socket, with 0 for
 * PORT. srun --hvd and hvdrun set it for the ranks. */
#define HVD_ENV_RENDEZVOUS "HVD_RENDEZVOUS"

/* --- Starting by files ---
 * For ranks that no launcher of hvd has started, in Python: launchers.md. */

/* A folder that all ranks share, through which they find each other, in place of the
 * launcher's own way. Each job needs a new one, which only you can write to; it is made
 * if it does not exist. Default: none. */
#define HVD_ENV_STORE "HVD_STORE"

/* --- Set for each rank ---
 * The plugin and hvdrun set these for scripts; a value that you set is left alone. hvd
 * itself takes the rank and size from HOROVOD_RANK and HOROVOD_SIZE; if ranks start by
 * PMIx, from PMIx. */

/* This rank's number in the job, and the number of ranks. */
#define HVD_ENV_RANK "HOROVOD_RANK"
#define HVD_ENV_SIZE "HOROVOD_SIZE"
/* This rank's number among the ranks of its node, and their number. */
#define HVD_ENV_LOCAL_RANK "HOROVOD_LOCAL_RANK"
#define HVD_ENV_LOCAL_SIZE "HOROVOD_LOCAL_SIZE"
/* The node's number among the nodes that have this local rank, and their number. */
#define HVD_ENV_CROSS_RANK "HOROVOD_CROSS_RANK"
#define HVD_ENV_CROSS_SIZE "HOROVOD_CROSS_SIZE"
/* The name of the node. */
#define HVD_ENV_HOSTNAME "HOROVOD_HOSTNAME"
/* 1: the plugin or hvdrun started this rank. */
#define HVD_ENV_LAUNCH "HVD_LAUNCH"
/* The version of the plugin or hvdrun that started this rank. hvd_init fails if libhvd
 * has another version. */
#define HVD_ENV_LAUNCH_VERSION "HVD_LAUNCH_VERSION"
/* The node's GPU numbers, in the order of the local ranks. */
#define HVD_ENV_GPU_LIST "HVD_GPU_LIST"
/* Index of this rank's GPU in CUDA_VISIBLE_DEVICES. */
#define HVD_ENV_GPU_INDEX "HVD_GPU_INDEX"
/* all: each rank sees all GPUs of the step on its node; isolated: only its own. */
#define HVD_ENV_GPUS "HVD_GPUS"
/* The CPUs that the rank is bound to, as a list. */
#define HVD_ENV_CPUS "HVD_CPUS"
/* The network card that hvd chose for the rank. */
#define HVD_ENV_NIC "HVD_NIC"
/* The cards that UCX may use: mlx5_0:1,... */
#define HVD_ENV_UCX_NET_DEVICES "UCX_NET_DEVICES"
/* For PyTorch, Lightning, Accelerate, DeepSpeed and Composer: the rank and the number of
 * ranks in the job, the same two numbers on the node, and the number of the node under
 * two names. hvdrun replaces existing values, because two ranks cannot have the same
 * number. */
#define HVD_ENV_TORCH_RANK "RANK"
#define HVD_ENV_TORCH_SIZE "WORLD_SIZE"
#define HVD_ENV_TORCH_LOCAL_RANK "LOCAL_RANK"
#define HVD_ENV_TORCH_LOCAL_SIZE "LOCAL_WORLD_SIZE"
#define HVD_ENV_TORCH_NODE "GROUP_RANK"
#define HVD_ENV_NODE_RANK "NODE_RANK"
/* Where rank 0 of torch.distributed serves its store: rank 0's address, and a port that
 * is kept free for it while the job runs. */
#define HVD_ENV_MASTER_ADDRESS "MASTER_ADDR"
#define HVD_ENV_MASTER_PORT "MASTER_PORT"
/* For jax.distributed.initialize(): ADDRESS:PORT at which rank 0 serves JAX's
 * coordinator, and this port, which is kept free like MASTER_PORT. It is MASTER_PORT
 * itself if HVD_PORT_RANGE is set. Set by the plugin together with MASTER_ADDR and
 * MASTER_PORT. */
#define HVD_ENV_JAX_ADDRESS "JAX_COORDINATOR_ADDRESS"
#define HVD_ENV_JAX_PORT "JAX_COORDINATOR_PORT"
/* Defaults for options of torchrun, in a task that starts the ranks of its node
 * (slurm.md): the number of nodes, the number of this node, its number of ranks, and
 * MASTER_ADDR and MASTER_PORT. Set by the plugin. */
#define HVD_ENV_PET_NNODES "PET_NNODES"
#define HVD_ENV_PET_NODE_RANK "PET_NODE_RANK"
#define HVD_ENV_PET_NPROC_PER_NODE "PET_NPROC_PER_NODE"
#define HVD_ENV_PET_MASTER_ADDRESS "PET_MASTER_ADDR"
#define HVD_ENV_PET_MASTER_PORT "PET_MASTER_PORT"
/* Number of threads of computing libraries: one for each core of the rank. */
#define HVD_ENV_OMP_THREADS "OMP_NUM_THREADS"
#define HVD_ENV_MKL_THREADS "MKL_NUM_THREADS"
/* The network interface for NCCL and Gloo, in jobs on several nodes: HVD_IFACE, else the
 * interface by which the node reaches srun. Set by the plugin. */
#define HVD_ENV_NCCL_IFNAME "NCCL_SOCKET_IFNAME"
#define HVD_ENV_TORCH_GLOO_IFNAME "GLOO_SOCKET_IFNAME"
/* PCI_BUS_ID, so that CUDA numbers GPUs as Slurm does. */
#define HVD_ENV_CUDA_DEVICE_ORDER "CUDA_DEVICE_ORDER"
/* The plugin and hvdrun append the directory of the package horovod. */
#define HVD_ENV_PYTHONPATH "PYTHONPATH"
/* 1: Python prints at once, without buffering. Set by hvdrun. */
#define HVD_ENV_PYTHON_UNBUFFERED "PYTHONUNBUFFERED"
/* 1 if hvdrun's stderr is a terminal, which can show progress. Set by hvdrun. */
#define HVD_ENV_TERMINAL "HVD_TERMINAL"

/* --- Read from the launcher ---
 * Variables of Slurm, PMIx and other launchers: who the rank is, where it runs, and which
 * devices it may use. */

/* Set if the launcher provides PMIx. */
#define HVD_ENV_PMIX_NAMESPACE "PMIX_NAMESPACE"
#define HVD_ENV_PMIX_RANK "PMIX_RANK"
/* How PMIx checks who connects to it, for hvd-info --check: security.md. */
#define HVD_ENV_PMIX_SECURITY "PMIX_SECURITY_MODE"
/* Set in a Slurm job. */
#define HVD_ENV_SLURM_JOB "SLURM_JOB_ID"
#define HVD_ENV_SLURM_TASKS "SLURM_NTASKS"
#define HVD_ENV_SLURM_COMPONENTS "SLURM_HET_SIZE"
#define HVD_ENV_SLURM_NODE "SLURMD_NODENAME"
/* The user, in the labels of metrics; outside of Slurm, USER. */
#define HVD_ENV_SLURM_JOB_USER "SLURM_JOB_USER"
#define HVD_ENV_USER "USER"
/* Passed to the srun that kills a rank of an elastic job. */
#define HVD_ENV_SLURM_CONF "SLURM_CONF"
/* Set in a task of srun. */
#define HVD_ENV_SLURM_STEP "SLURM_STEP_ID"
#define HVD_ENV_SLURM_STEP_TASKS "SLURM_STEP_NUM_TASKS"
/* The process that Slurm has started as this task. */
#define HVD_ENV_SLURM_TASK_PID "SLURM_TASK_PID"
/* Set by #SBATCH --hvd or salloc --hvd. */
#define HVD_ENV_SLURM_OPTION "SLURM_SPANK__SLURM_SPANK_OPTION_hvd_hvd"
/* Set by Open MPI. */
#define HVD_ENV_OMPI_SIZE "OMPI_COMM_WORLD_SIZE"
/* Set by MPICH, Intel MPI, PALS, and srun --mpi=pmi2. */
#define HVD_ENV_PMI_SIZE "PMI_SIZE"
#define HVD_ENV_PMI_RANK "PMI_RANK"
/* Set by HPE Cray PALS. */
#define HVD_ENV_PALS_RANK "PALS_RANKID"
/* Set by MPICH and Intel MPI. */
#define HVD_ENV_HYDRA_LOCAL_SIZE "MPI_LOCALNRANKS"
/* Set by MVAPICH. */
#define HVD_ENV_MVAPICH_SIZE "MV2_COMM_WORLD_SIZE"
/* Set by IBM's jsrun. */
#define HVD_ENV_JSRUN_SIZE "JSM_NAMESPACE_SIZE"
/* Set by Flux. */
#define HVD_ENV_FLUX_SIZE "FLUX_JOB_SIZE"
/* With HVD_STORE, the rank and the number of ranks are taken from RANK and WORLD_SIZE,
 * HOROVOD_RANK and HOROVOD_SIZE, RANK and WORLD (TonY), those of Flux, PMI, jsrun or
 * Slurm, TF_CONFIG, or CLUSTER_SPEC with JOB_NAME and TASK_INDEX: the first that are
 * set. */
#define HVD_ENV_TONY_SIZE "WORLD"
#define HVD_ENV_FLUX_RANK "FLUX_TASK_RANK"
#define HVD_ENV_JSRUN_RANK "JSM_NAMESPACE_RANK"
#define HVD_ENV_TF_CONFIG "TF_CONFIG"
#define HVD_ENV_CLUSTER_SPEC "CLUSTER_SPEC"
#define HVD_ENV_JOB_NAME "JOB_NAME"
#define HVD_ENV_TASK_INDEX "TASK_INDEX"
/* The hosts of a job of LSF, PBS or Grid Engine, for hvdrun: launchers.md. LSB_MCPU_HOSTS
 * is the list itself, the others are paths of files. */
#define HVD_ENV_LSF_HOSTFILE "LSB_DJOB_HOSTFILE"
#define HVD_ENV_LSF_HOSTS "LSB_MCPU_HOSTS"
#define HVD_ENV_PBS_NODEFILE "PBS_NODEFILE"
#define HVD_ENV_GRID_HOSTFILE "PE_HOSTFILE"
/* Set by torchrun: the number of nodes, and the name of the job. */
#define HVD_ENV_TORCHRUN_SIZE "GROUP_WORLD_SIZE"
#define HVD_ENV_TORCHRUN_ID "TORCHELASTIC_RUN_ID"
/* hvd-info: the GPUs of the step. The plugin resets CUDA_VISIBLE_DEVICES to the value
 * that Slurm gave the whole step, so that each rank sees all GPUs of the step on its
 * node. */
#define HVD_ENV_CUDA_VISIBLE_DEVICES "CUDA_VISIBLE_DEVICES"
#define HVD_ENV_SLURM_STEP_GPUS "SLURM_STEP_GPUS"
#define HVD_ENV_SLURM_JOB_GPUS "SLURM_JOB_GPUS"
#define HVD_ENV_SLURM_GPUS_ON_NODE "SLURM_GPUS_ON_NODE"
/* For hvd-info: the number of ranks on each node, such as 2(x3),1. */
#define HVD_ENV_SLURM_STEP_TASKS_PER_NODE "SLURM_STEP_TASKS_PER_NODE"
#define HVD_ENV_SLURM_TASKS_PER_NODE "SLURM_TASKS_PER_NODE"
/* The number of ranks per node. If Slurm does not set it and all nodes have the same
 * number, the plugin sets it in each rank, because Lightning needs it. */
#define HVD_ENV_SLURM_NTASKS_PER_NODE "SLURM_NTASKS_PER_NODE"
/* hvd-info: this node's index in lists of ranks per node, the task's index on its node,
 * and the CPUs of a task. */
#define HVD_ENV_SLURM_NODEID "SLURM_NODEID"
#define HVD_ENV_SLURM_LOCAL_ID "SLURM_LOCALID"
#define HVD_ENV_SLURM_CPUS_PER_TASK "SLURM_CPUS_PER_TASK"

/* --- Read by the plugin --- */

/* The nodes of the job, and their CPUs, such as 4(x2),3. */
#define HVD_ENV_SLURM_JOB_NODES "SLURM_JOB_NUM_NODES"
#define HVD_ENV_SLURM_JOB_CPUS_PER_NODE "SLURM_JOB_CPUS_PER_NODE"
/* GPUs as they were requested: 4, a100:4. */
#define HVD_ENV_SLURM_GPUS_PER_NODE "SLURM_GPUS_PER_NODE"
#define HVD_ENV_SLURM_GPUS_PER_TASK "SLURM_GPUS_PER_TASK"
#define HVD_ENV_SLURM_GPUS "SLURM_GPUS"
/* The rank in the step, and how Slurm distributes ranks. */
#define HVD_ENV_SLURM_PROCID "SLURM_PROCID"
#define HVD_ENV_SLURM_DISTRIBUTION "SLURM_DISTRIBUTION"
/* The address of srun, and the address of the node that srun runs on. */
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
/* Where the plugin looks for another package horovod, to tell the user which one Python
 * imports. */
#define HVD_ENV_VIRTUAL_ENV "VIRTUAL_ENV"
#define HVD_ENV_CONDA_PREFIX "CONDA_PREFIX"
/* The flight recorder writes to hvd/trace_rank_N in it, see torch_distributed.md.
 * Default: ~/.cache. */
#define HVD_ENV_CACHE_HOME "XDG_CACHE_HOME"

/* --- Set by the plugin in srun ---
 * Values that you set stay. */

/* Set to pmix. Inside a step, Slurm sets it to the type that this step's srun used. */
#define HVD_ENV_SLURM_MPI_TYPE "SLURM_MPI_TYPE"
/* Seconds that PMIx waits for a node, from timeout= in plugstack.conf. Slurm's default:
 * 300. */
#define HVD_ENV_SLURM_PMIX_TIMEOUT "SLURM_PMIX_TIMEOUT"
/* Set to ring: PMIx's fence, which waits for all nodes, uses this algorithm. */
#define HVD_ENV_SLURM_PMIX_FENCE "SLURM_PMIX_FENCE"

/* --- Between the parts of hvd ---
 * Do not set these by hand. */

/* Set if --hvd was given: 1, or "open" if neither the user nor hvd chose the number of
 * tasks. If HVD_LAUNCH is not set beside it, the plugin is missing on this node. */
#define HVD_ENV_REQUEST "SLURM_HVD"
#define HVD_REQUEST_TASKS_KNOWN "1"
#define HVD_REQUEST_TASKS_OPEN "open"
/* The reason why this launch cannot be used; hvd_init repeats it. */
#define HVD_ENV_LAUNCH_ERROR "SLURM_HVD_ERROR"
/* With one task per node: the number of tasks that the step would have had otherwise. */
#define HVD_ENV_AGENT_RANKS "SLURM_HVD_AGENT_RANKS"
/* With one task per node: the binding of each rank that torchrun starts there.
 * hvd_init of such a rank applies it, and removes the variable. */
#define HVD_ENV_AGENT_PLAN "HVD_AGENT_PLAN"
/* Which of MASTER_ADDR, MASTER_PORT, JAX_COORDINATOR_ADDRESS, JAX_COORDINATOR_PORT,
 * OMP_NUM_THREADS, MKL_NUM_THREADS, NCCL_SOCKET_IFNAME, GLOO_SOCKET_IFNAME,
 * SLURM_NTASKS_PER_NODE and PET_... the plugin has set: an srun --hvd inside the rank
 * sets them anew. */
#define HVD_ENV_DEFAULTS "HVD_DEFAULTS"
/* The variables that the plugin has set in this task, with a checksum of each value:
 * NAME:CHECKSUM,... hvd's hook for enroot passes these variables into containers, and
 * hvd-info --check names those that have changed. */
#define HVD_ENV_EXPORTED "HVD_EXPORTED"
/* The directory for which hvd has made NCCL_DEBUG_FILE and NCCL_INSPECTOR_DUMP_DIR: a
 * launch inside the rank replaces such values, but not the user's own. */
#define HVD_ENV_NCCL_MADE_FOR "HVD_NCCL_MADE_FOR"
/* A random key of the step, which only its user can read. The secret that rank 0
 * publishes through PMIx is combined with it. */
#define HVD_ENV_STEP_KEY "SLURM_HVD_KEY"
/* The address of the step's rendezvous service: PORT:KEY if this srun has started it,
 * HOST:PORT:KEY if this srun has joined it. The plugin makes HVD_RENDEZVOUS from it on
 * each node. */
#define HVD_ENV_RENDEZVOUS_STEP "SLURM_HVD_RENDEZVOUS"
/* hvdrun: the file in which a rank records which rank failed first. */
#define HVD_ENV_CAUSE "HVD_CAUSE"
/* horovod.run: its address, and the key by which ranks prove that they belong to it. */
#define HVD_ENV_RUN_ADDRESS "HVD_RUN_ADDRESS"
#define HVD_ENV_RUN_KEY "HVD_RUN_KEY"

/* --- Of other libraries --- */

/* UCX's transports. Unless you set it, hvd sets it to all but shared memory and, if there
 * is an RDMA adapter, TCP. */
#define HVD_ENV_UCX_TLS "UCX_TLS"
/* Unless you set it, hvd removes UCX's signal handlers. */
#define HVD_ENV_UCX_HANDLE_ERRORS "UCX_HANDLE_ERRORS"
/* Unless you set it, UCX's warnings go to hvd's debug log. */
#define HVD_ENV_UCX_LOG_LEVEL "UCX_LOG_LEVEL"
/* Set by an option of hvdrun. */
#define HVD_ENV_NCCL_IB_DISABLE "NCCL_IB_DISABLE"
/* For tests: ranks with different values can share a GPU. */
#define HVD_ENV_NCCL_HOSTID "NCCL_HOSTID"
/* 1, on all ranks, with NCCL 2.30 and later: ranks share a GPU, or its MIG slices, and
 * use NCCL instead of host memory. */
#define HVD_ENV_NCCL_MULTI_RANK_GPU "NCCL_MULTI_RANK_GPU_ENABLE"
/* hvd warns if one of these keeps NCCL from a faster path, such as NCCL_NET=Socket or
 * NCCL_P2P_LEVEL=LOC. */
#define HVD_ENV_NCCL_NET "NCCL_NET"
#define HVD_ENV_NCCL_P2P_DISABLE "NCCL_P2P_DISABLE"
#define HVD_ENV_NCCL_P2P_LEVEL "NCCL_P2P_LEVEL"
#define HVD_ENV_NCCL_SHM_DISABLE "NCCL_SHM_DISABLE"
/* Unless you set them, HVD_NCCL_FILES sets the name of NCCL's log file, its level to
 * WARN, and RAS, NCCL's own service about running jobs, to 1. */
#define HVD_ENV_NCCL_DEBUG_FILE "NCCL_DEBUG_FILE"
#define HVD_ENV_NCCL_DEBUG "NCCL_DEBUG"
#define HVD_ENV_NCCL_RAS "NCCL_RAS_ENABLE"
/* Unless you set them, HVD_NCCL_FILES switches on NCCL's Inspector, if its library is in
 * a directory of LD_LIBRARY_PATH: it writes to HVD_NCCL_FILES/inspector, each second. */
#define HVD_ENV_NCCL_PROFILER "NCCL_PROFILER_PLUGIN"
#define HVD_ENV_NCCL_INSPECTOR "NCCL_INSPECTOR_ENABLE"
#define HVD_ENV_NCCL_INSPECTOR_DIRECTORY "NCCL_INSPECTOR_DUMP_DIR"
#define HVD_ENV_NCCL_INSPECTOR_INTERVAL "NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS"
/* With NaiveEngine, MXNet ends each collective before the next begins. */
#define HVD_ENV_MXNET_ENGINE "MXNET_ENGINE_TYPE"
/* Unless you set it, the import of horovod.torch and the backend hvd set it to 1: PyTorch
 * then asks Linux for huge pages for large tensors in host memory. Releases that do not
 * know it ignore it. */
#define HVD_ENV_TORCH_HUGE_PAGES "THP_MEM_ALLOC_ENABLE"
/* Unless you set it, hvd sets it to an empty text in jobs that use a service of
 * tf.data. */
#define HVD_ENV_GRPC_PROXY "grpc_proxy"
/* Directory of hvdrun's sockets. Default: /tmp. */
#define HVD_ENV_TMPDIR "TMPDIR"
/* Where hvdrun looks for mpirun and prterun. Passed to the ranks that mpirun starts on
 * other machines. */
#define HVD_ENV_PATH "PATH"
/* libpmix needs it; hvd sets it to / if it is unset and the user has no home
 * directory. */
#define HVD_ENV_HOME "HOME"
/* If set, the output of hvd-info --check has no colors. */
#define HVD_ENV_NO_COLOR "NO_COLOR"
/* Passed to the ranks that mpirun starts on other machines. HVD_NCCL_FILES looks for
 * NCCL's Inspector there. */
#define HVD_ENV_LIBRARY_PATH "LD_LIBRARY_PATH"

/* --- Accepted without effect ---
 * Horovod's variables for which hvd has no use. HOROVOD_LOG_LEVEL=info gives the
 * reason. */

/* For MPI, Gloo, oneCCL and XLA, which hvd does not use, and for features that are always
 * on in hvd. */
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
/* Use HVD_START_TIMEOUT instead. */
#define HVD_ENV_HOROVOD_START_TIMEOUT "HOROVOD_START_TIMEOUT"
/* For building and testing Horovod, and for its other launchers. */
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
/* Any other name with this prefix causes a warning that suggests similar names. */
#define HVD_ENV_FAMILY_ALL "HOROVOD_"

#endif
