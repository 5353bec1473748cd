#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The environment of ranks: variables that the plugin sets, and the user's variables that stay. A step without --hvd
# is the same with and without the plugin.
# shellcheck disable=SC2016 # variables of jobs expand in the jobs
. "$(dirname "$0")/harness.sh"
. "$(dirname "$0")/spank.sh"

install_hvd
start_cluster 2 --sockets 2 --cores 8 --gpus 2
front_end=$prefix/lib/hvd/python

# Everything that a task inherits: environment, masks, limits, open files, memory policy, without values that differ
# from step to step. Both steps run on n1: Slurm might choose another node if n1 is busy with the end of a step.
everything='env | grep -Ev "_PORT=|_ID=|JOBID=|STEPID=|_PID=|_TIME=|_SLUID=|_transports=|^_=|^PMIX_" | sort
    grep -E "^(Cpus|Mems)_allowed|^Uid|^Gid|^Cap|^Sig(Blk|Ign|Cgt)" /proc/self/status
    ls /proc/self/fd | wc -l; ulimit -a; head -n 1 /proc/self/numa_maps | cut -d " " -f 2'
same_without_option()
{
    local with without
    without=$(as_user srun -w n1 -n1 --gres=gpu:1 "${@}" sh -c "$everything")
    enable_plugin
    with=$(as_user srun -w n1 -n1 --gres=gpu:1 "${@}" sh -c "$everything")
    disable_plugin
    [ -n "$with" ] && diff <(echo "$without") <(echo "$with")
}
succeeds 'without --hvd the plugin changes nothing' same_without_option
needs_pmix succeeds 'without --hvd the plugin changes nothing in a step with PMIx' \
    same_without_option --mpi=pmix --cpu-bind=cores

enable_plugin
as_user srun --hvd -N2 --gres=gpu:2 sh -c 'test $SLURM_PROCID != 3 || env' >"$work/rank3" 2>&1
has()
{
    prints "$1" "^$1=$2\$" cat "$work/rank3"
}
has HOROVOD_RANK 3
has HOROVOD_SIZE 4
has HOROVOD_LOCAL_RANK 1
has HOROVOD_LOCAL_SIZE 2
has HOROVOD_CROSS_RANK 1
has HOROVOD_CROSS_SIZE 2
has HOROVOD_HOSTNAME n2
has HVD_LAUNCH 1
has HVD_GPU_LIST 0,1
has HVD_GPU_INDEX 1
has HVD_GPUS all
has HVD_CPUS '[0-9,-]+'
has CUDA_VISIBLE_DEVICES 0,1
has CUDA_DEVICE_ORDER PCI_BUS_ID
has PYTHONPATH "$front_end" # where the front end of this install is
has RANK 3
has WORLD_SIZE 4
has LOCAL_RANK 1
has LOCAL_WORLD_SIZE 2
has GROUP_RANK 1
has NODE_RANK 1
has SLURM_NTASKS_PER_NODE 2
has JAX_COORDINATOR_ADDRESS '[0-9.]+:[0-9]+'
has JAX_COORDINATOR_PORT '[0-9]+'
has OMP_NUM_THREADS '[1-9][0-9]*'
has NCCL_SOCKET_IFNAME =eth0
has GLOO_SOCKET_IFNAME eth0
prints 'Python finds the package there' "^$front_end/horovod" as_user srun --hvd -n1 \
    python3 -c 'import importlib.util; print(importlib.util.find_spec("horovod").origin)'

# uneven OPTION: prints the variables of torch, with three ranks on the first node and one on the second.
uneven()
{
    in_line as_user srun "$1" -N2 -n4 -m plane=3 sh -c \
        'echo $SLURMD_NODENAME: $RANK of $WORLD_SIZE, $LOCAL_RANK of $LOCAL_WORLD_SIZE, node $GROUP_RANK.'
}
three_and_one='^n1: 0 of 4, 0 of 3, node 0. n1: 1 of 4, 1 of 3, node 0. n1: 2 of 4, 2 of 3, node 0. n2: 3 of 4, 0 of 1, node 1.$'
prints 'nodes with different numbers of ranks set LOCAL_WORLD_SIZE of torch to their own' "$three_and_one" uneven --hvd
prints 'nodes of an elastic step set their own LOCAL_WORLD_SIZE' "$three_and_one" uneven --hvd=elastic

as_user GLOO_SOCKET_IFNAME=eth8 HOROVOD_RANK=17 UCX_NET_DEVICES=eth9 CUDA_DEVICE_ORDER=FASTEST_FIRST PYTHONPATH=/mine \
    srun --hvd -N2 --gres=gpu:2 sh -c 'test $SLURM_PROCID != 3 || env' >"$work/rank3" 2>&1
stays()
{
    prints "$1 of the user stays" "^$1=$2\$" cat "$work/rank3"
}
stays HOROVOD_RANK 17
stays UCX_NET_DEVICES eth9
stays CUDA_DEVICE_ORDER FASTEST_FIRST
stays GLOO_SOCKET_IFNAME eth8
prints 'PYTHONPATH of the user comes first' "^PYTHONPATH=/mine:$front_end\$" cat "$work/rank3"
prints 'variables that srun sets pass --export=NONE' '^1/1/1$' as_user \
    srun --hvd -n1 --export=NONE /bin/sh -c 'echo $SLURM_HVD/$HVD_LAUNCH/$HOROVOD_SIZE'
prints 'the key of a step is the same on all nodes' '^2 [0-9a-f]{64}$' as_user \
    sh -c 'srun --hvd=elastic -N2 --export=NONE /usr/bin/printenv SLURM_HVD_KEY | sort | uniq -c | sed "s/^ *//"'

prints 'the file of --hvd=report=FILE takes precedence over the environment' '^late.txt$' \
    as_user HVD_REPORT=mine srun --hvd=report=late.txt -n1 printenv HVD_REPORT
prints 'ranks get the file of --hvd=timeline=FILE' '^/x/T.json$' \
    as_user srun --hvd=timeline=/x/T.json -n1 printenv HOROVOD_TIMELINE

nccl='echo $SLURM_PROCID $NCCL_DEBUG_FILE $NCCL_DEBUG $NCCL_RAS_ENABLE'
prints '--hvd=nccl=DIR: each rank on each node gets its own file for the warnings of NCCL' \
    "^3 $home/nccl/new/nccl.3.%h.%p WARN 1\$" as_user srun --hvd=nccl="$home/nccl/new" -N2 --gres=gpu:2 sh -c "$nccl"
succeeds '--hvd=nccl=DIR makes the folder' test -d "$home/nccl/new"
prints 'HVD_NCCL_FILES does the same' "^1 $home/nccl/of-user/nccl.1.%h.%p WARN 1\$" \
    as_user HVD_NCCL_FILES="$home/nccl/of-user" srun --hvd -N2 -n2 sh -c "$nccl"
prints 'variables of NCCL that the user set stay' '^0 /mine INFO 0$' \
    as_user NCCL_DEBUG_FILE=/mine NCCL_DEBUG=INFO NCCL_RAS_ENABLE=0 srun --hvd=nccl="$home/nccl/new" -n1 sh -c "$nccl"
prints 'an srun inside a rank uses its own folder and ranks' "^0 $home/nccl/inner/nccl.0.%h.%p WARN 1\$" \
    as_user srun --hvd=nccl="$home/nccl/new" -N2 -n2 sh -c \
    "test \$SLURM_PROCID = 0 || exec srun --overlap --hvd=nccl=$home/nccl/inner -w n1 -N1 -n1 sh -c '$nccl'"
complains 'a folder for NCCL that cannot be made is an error that names it' \
    'hvd: n[12]: cannot make /dev/null/logs for NCCL.s messages: ' as_user srun --hvd=nccl=/dev/null/logs -N2 -n2 true

prints 'a batch script finds the front end' "^/mine:$front_end\$" \
    batch --hvd 'echo $PYTHONPATH' PYTHONPATH=/mine
prints 'a step with --hvd=off in it does not' '^/mine:$' \
    batch --hvd 'srun --hvd=off sh -c "echo \$PYTHONPATH:\$HVD_LAUNCH"' PYTHONPATH=/mine
prints 'a batch script without --hvd is not changed' '^/mine$' \
    batch -N1 'echo $PYTHONPATH' PYTHONPATH=/mine

mkdir -p "$home/venv/lib/python3.11/site-packages/horovod" "$home/mine/horovod"
touch "$home/venv/lib/python3.11/site-packages/horovod/__init__.py" "$home/mine/horovod/__init__.py"
prints "a warning tells that hvd is imported, not the Horovod of the virtual environment" \
    "hvd: Python imports hvd's package horovod, not the one in $home/venv/lib" \
    as_user VIRTUAL_ENV="$home/venv" srun --hvd -n2 true
prints "a warning tells that a Horovod on PYTHONPATH is imported, not hvd" \
    "hvd: Python imports the package horovod in $home/mine, which is on PYTHONPATH" \
    as_user PYTHONPATH="$home/mine" srun --hvd -n2 true
silent()
{
    test -z "$(as_user VIRTUAL_ENV="$home" srun --hvd -n2 true 2>&1)"
}
succeeds 'a plain environment gives no warning' silent
enable_plugin pythonpath=
prints 'pythonpath= of the admin keeps PYTHONPATH unchanged' '^/mine$' \
    as_user PYTHONPATH=/mine srun --hvd -n1 printenv PYTHONPATH
enable_plugin pythonpath=/nowhere
prints 'a node without the front end gives a warning' 'n1: cannot read /nowhere: No such file' \
    as_user srun --hvd -n1 true

enable_plugin
verbose()
{
    as_user srun --hvd=verbose -N2 "$@" true 2>&1
}
tables()
{
    verbose "$@" | grep -c '^local rank gpu pci'
}
lines()
{
    verbose "$@" | grep -oE '^hvd: n[12]: [0-9]+ ranks?, 0 GPUs, [0-9]+ cpus?, bind=[a-z]+, OMP_NUM_THREADS=' | cut -d , -f 1 |
        sort | paste -sd ' '
}
prints 'each node prints a line' '^hvd: n1: 2 ranks hvd: n2: 2 ranks$' lines --ntasks-per-node=2
prints 'the line of each node has its own number of ranks' '^hvd: n1: 3 ranks hvd: n2: 1 rank$' lines -n4 -m plane=3
prints 'one node prints its table' '^1$' tables --ntasks-per-node=2
prints 'the first node prints it' '^hvd: binding on n1$' verbose --ntasks-per-node=2
prints 'the table appears even if the program ends at once' '^local rank gpu pci' \
    as_user srun --hvd=verbose -n1 true
mpi=none
! has_pmix || mpi=pmix
descriptors()
{
    # shellcheck disable=SC2086 # the words of $variables
    as_user $variables srun --mpi="$mpi" -n1 "$@" sh -c 'ls /proc/self/fd' 2>/dev/null
}
opened()
{
    local variables=$1
    diff <(descriptors) <(descriptors --hvd=verbose) >"$work/opened"
    awk '/^>/ { count++ } END { print count + 0 }' "$work/opened"
}
prints 'a rank has no more open files than a task' '^0$' opened 'MASTER_ADDR=n1 MASTER_PORT=29500'
prints 'except for the two ports that rank 0 holds' '^2$' opened ''
tap_done
