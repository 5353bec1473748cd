#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The ranks of `srun --hvd torchrun train.py` are bound to the cores and network cards near their GPUs. Needs two cpus.
# shellcheck disable=SC2016 # variables of jobs expand in the jobs
. "$(dirname "$0")/harness.sh"
. "$(dirname "$0")/spank.sh"

[ "$(nproc)" -ge 2 ] || tap_skip_all 'needs two cpus'
install_hvd
start_cluster 2 --sockets 2 --cores 8 --gpus 4
# A node with two sockets of one core, each with a GPU and a network card.
cp "$tests_dir/../gpu_binding/topologies/built-two-cpus-2xv100.xml" "$work/node.xml" && chmod a+r "$work/node.xml"
enable_plugin "topology=$work/node.xml"
gpus='--hvd --exclusive --gres=gpu:2 --ntasks-per-node=1'
planned='^[0-9]+\.0 0-1;0 0 mlx5_0:1;1 1 mlx5_1:1$'
plan='echo "$HVD_AGENT_PLAN"'
mkdir "$home/plan"
printf '#!/bin/sh\n%s\n' "$plan" >"$home/plan/torchrun"
chmod -R a+rX "$home/plan" && chmod a+x "$home/plan/torchrun"
prints 'torchrun gets the plan for its ranks: the core, memory node and network card near each GPU' \
    "$planned" batch "-N1 $gpus" "PATH=$home/plan:\$PATH; srun torchrun 2>err"
prints 'no other program does' '^$' batch "-N1 $gpus" "srun sh -c '$plan' 2>err"
prints 'verbose prints a row for each of these ranks' '^ +1 +1 0000:86:00.0 +1 +1 +1 1 +1  mlx5_1:1$' \
    batch "-N1 $gpus" "PATH=$home/plan:\$PATH; srun --hvd=verbose torchrun 2>&1"

if ! /usr/bin/python3 -c 'import torch.distributed.run' 2>/dev/null; then
    tap_skip 'ranks of torchrun' 'needs python3-torch'
    tap_done
fi
mkdir -p "$home/bin"
install_torchrun
cat >"$home/bound.py" <<'PY'
import ctypes, os, re, sys
import torch.distributed as dist
import horovod.torch as hvd
threads = {int(thread) for thread in os.listdir('/proc/self/task')}
if sys.argv[1:] == ['backend']:
    import horovod.torch.distributed
    dist.init_process_group('hvd')
hvd.init()
status = [open(f'/proc/self/task/{thread}/status').read() for thread in threads]
cpus = {re.search('Cpus_allowed_list:\\s*(.*)', text)[1] for text in status}
getenv = ctypes.CDLL(None).getenv # os.environ does not see what libhvd sets
getenv.restype = ctypes.c_char_p
print(f'{hvd.rank()}: {" ".join(cpus)} {getenv(b"UCX_NET_DEVICES").decode()}\n', end='', flush=True)
PY
chmod a+r "$home/bound.py"
run="PATH=$home/bin:\$PATH; srun"
prints 'each rank of torchrun is bound to the core and network card near its GPU' \
    '^0: 0 mlx5_0:1 1: 1 mlx5_1:1 2: 0 mlx5_0:1 3: 1 mlx5_1:1$' \
    in_line batch "-N2 $gpus" "$run torchrun bound.py 2>err"
prints 'also with the backend hvd' '^0: 0 mlx5_0:1 1: 1 mlx5_1:1$' \
    in_line batch "-N1 $gpus" "$run torchrun bound.py backend 2>err"
prints 'just as the tasks of srun' '^0: 0 mlx5_0:1 1: 1 mlx5_1:1 2: 0 mlx5_0:1 3: 1 mlx5_1:1$' \
    in_line batch "-N2 $gpus" "$run -n4 --ntasks-per-node=2 /usr/bin/python3 bound.py 2>err"
prints 'a binding and a network card of the user stay' '^0: 1 mine:1 1: 1 mine:1$' \
    in_line batch "-N1 $gpus" "$run torchrun --no_python taskset -c 1 /usr/bin/python3 bound.py 2>err" \
    UCX_NET_DEVICES=mine:1
prints 'with bind=none, the ranks have all cpus of the step' '^0: 0-1 mlx5_0:1 1: 0-1 mlx5_1:1$' \
    in_line batch "-N1 $gpus" "$run --hvd=bind=none --cpu-bind=none torchrun bound.py 2>err"
printf '#!/bin/sh\ntorchrun --nproc_per_node=1 bound.py\n' >"$home/one.sh"
chmod a+r "$home/one.sh"
prints 'a torchrun with another number of ranks than planned says so' \
    'local rank 0 of 1 is not bound, because srun --hvd has planned for 2 ranks' \
    batch "-N1 $gpus" "$run --hvd=tasks=node sh one.sh 2>&1" UCX_NET_DEVICES=mine:1
tap_done
