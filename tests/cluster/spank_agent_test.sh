#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `srun --hvd torchrun train.py` without options: one torchrun per node, whose ranks find each other.
# shellcheck disable=SC2016 # variables of jobs expand in the jobs
. "$(dirname "$0")/harness.sh"
. "$(dirname "$0")/spank.sh"

install_hvd
start_cluster 2 --sockets 2 --cores 8 --gpus 4
enable_plugin
mkdir -p "$home/bin"
# A stand-in for torchrun that prints the variables and the number of options that it was given.
printf '#!/bin/sh\n%s\n' \
    'echo $SLURMD_NODENAME: node $PET_NODE_RANK of $PET_NNODES, $PET_NPROC_PER_NODE ranks, $# options.' \
    'echo $PET_MASTER_ADDR $PET_MASTER_PORT, $MASTER_ADDR $MASTER_PORT >>place' \
    'echo $SLURM_JOB_ID: $SLURM_CPUS_ON_NODE cpus, rank ${RANK-unset} >>cpus' >"$home/bin/torchrun"
chmod -R a+rX "$home/bin" && chmod a+x "$home/bin/torchrun"
as_user rm -f place cpus
job='--hvd -N2 --ntasks-per-node=3 --cpus-per-task=2'

# agents OPTIONS COMMAND...: prints what the stand-ins for torchrun print in a batch job, as one line.
agents()
{
    in_line batch "$1" "PATH=$home/bin:\$PATH; $2 2>err"
}
prints 'torchrun starts once per node, with as many ranks there as the job has tasks' \
    '^n1: node 0 of 2, 3 ranks, 0 options. n2: node 1 of 2, 3 ranks, 0 options.$' agents "$job" 'srun torchrun'
prints 'srun tells the user so' 'hvd: torchrun starts the ranks of its node itself, so it is started once per node' \
    as_user cat err
prints 'it has the CPUs of all these ranks, and no rank of its own' '^[0-9]+: 6 cpus, rank unset$' as_user cat cpus
prints 'and the address of the first node' '^([0-9.]+ [0-9]+), \1$' as_user sort -u place
prints 'on GPUs it starts one rank for each' \
    '^n1: node 0 of 2, 4 ranks, 0 options. n2: node 1 of 2, 4 ranks, 0 options.$' \
    agents '--hvd -N2 --gres=gpu:4 --ntasks-per-node=1' 'srun torchrun'
prints 'also if the job asked for GPUs per task' \
    '^n1: node 0 of 2, 2 ranks, 0 options. n2: node 1 of 2, 2 ranks, 0 options.$' \
    agents '--hvd -N2 --ntasks-per-node=2 --gpus-per-task=1' 'srun torchrun'
prints 'a number of tasks on the command line of srun stays, with a warning' \
    'torchrun starts the ranks of its node itself, but Slurm starts it 3 times on this node' \
    agents "$job" 'srun --ntasks-per-node=3 torchrun; cat err'
prints 'PET_NPROC_PER_NODE of the user stays' '^n1: node 0 of 1, 7 ranks, 0 options.$' \
    agents '--hvd -N1' 'PET_NPROC_PER_NODE=7 srun torchrun'
prints 'with tasks=keep it is started once per task' '^6$' \
    batch "$job" "PATH=$home/bin:\$PATH; srun --hvd=tasks=keep torchrun | wc -l"
prints 'with tasks=node any program is started once per node' '^node 0 of 2 node 1 of 2$' \
    in_line batch "$job" 'srun --hvd=tasks=node sh -c "echo node \$PET_NODE_RANK of \$PET_NNODES"'
complains 'tasks=node and another number of tasks are refused' 'needs one task on each node, but Slurm starts 4 on 2' \
    batch "$job" 'srun --hvd=tasks=node -n4 true'
mkdir "$home/inner"
printf '#!/bin/sh\nsrun --hvd --overlap -N1 -n2 -c1 sh -c "%s"\n' 'echo \$RANK of \$WORLD_SIZE, \${PET_NNODES-unset}' \
    >"$home/inner/torchrun"
chmod -R a+rX "$home/inner" && chmod a+x "$home/inner/torchrun"
prints 'an srun inside torchrun starts ranks as usual' '^1 of 2, unset$' \
    as_user srun --hvd -N1 -c2 "$home/inner/torchrun"

if ! /usr/bin/python3 -c 'import torch.distributed.run' 2>/dev/null; then
    tap_skip 'DistributedDataParallel' 'needs python3-torch'
    tap_done
fi
install_torchrun
cat >"$home/ddp.py" <<'PY'
import os, torch
import torch.distributed as dist
dist.init_process_group('gloo')
rank = dist.get_rank()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1, bias=False))
model(torch.full((1, 1), 1. + rank)).sum().backward()
print(f'rank {rank} of {dist.get_world_size()}, local {os.environ["LOCAL_RANK"]}: {model.module.weight.grad.item()}\n',
      end='', flush=True)
dist.barrier()
del model # Gloo of torch 1.13 may hang at exit while a model exists
dist.destroy_process_group()
PY
cat >"$home/hvd.py" <<'PY'
import torch
import horovod.torch as hvd
hvd.init()
total = hvd.allreduce(torch.full((1000,), 1. + hvd.rank()), op=hvd.Average)
print(f'rank {hvd.rank()} of {hvd.size()}, local {hvd.local_rank()}: {total.max().item()}\n', end='', flush=True)
PY
chmod a+r "$home"/{ddp,hvd}.py
all='rank 0 of 4, local 0: 2.5 rank 1 of 4, local 1: 2.5 rank 2 of 4, local 0: 2.5 rank 3 of 4, local 1: 2.5'
run="PATH=$home/bin:\$PATH; srun --hvd --overlap"
pairs='-N2 --ntasks-per-node=2'
prints 'DistributedDataParallel averages over two ranks on each of two nodes' "^$all\$" \
    in_line batch "$pairs" "$run torchrun ddp.py 2>err"
prints 'hvd.init() finds them as well' "^$all\$" in_line batch "$pairs" "$run torchrun hvd.py 2>err"
prints 'also without PMIx' "^$all\$" in_line batch "$pairs" "$run --mpi=none torchrun hvd.py 2>err"
both()
{
    batch "$pairs" "for i in 1 2; do { $run torchrun ddp.py 2>err\$i | sort | paste -sd ' '; } & done; wait" |
        grep -cx "$all"
}
prints 'two steps of a job at the same time do not mix' '^2$' both
tap_done
