#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Scripts of torch.distributed that know nothing of hvd find each other under `srun --hvd`.
# shellcheck disable=SC2016 # variables of jobs expand in the jobs
. "$(dirname "$0")/harness.sh"
. "$(dirname "$0")/spank.sh"

install_hvd
start_cluster 2 --sockets 2 --cores 8
enable_plugin
on_both='-N2 --ntasks-per-node=2'
place='echo $MASTER_ADDR $MASTER_PORT'

# places VAR=VALUE...: prints address and port in the ranks of a step on two nodes, without repetition.
# shellcheck disable=SC2120 # through prints
places()
{
    # shellcheck disable=SC2086 # the words of on_both
    as_user "${@}" srun --hvd $on_both sh -c "$place" | sort -u
}
n1=$(as_user srun -w n1 -n1 sh -c 'ip -4 -o addr show dev eth0' | grep -oE 'inet [0-9.]+' | cut -d ' ' -f 2)
prints 'four ranks on two nodes get the same address and port, of the first node' \
    "^$n1 [0-9]+\$" in_line places
prints 'ranks on one node use the loopback address' '^127.0.0.1 [0-9]+$' as_user srun --hvd -N1 -n2 sh -c "$place"
prints 'a single rank uses the loopback address' '^127.0.0.1 [0-9]+$' as_user srun --hvd -n1 sh -c "$place"
prints 'the port of the user stays' "^$n1 29500\$" places MASTER_PORT=29500
prints 'the address of the user stays' '^10.9.8.7 29500$' places MASTER_PORT=29500 MASTER_ADDR=10.9.8.7
inside()
{
    as_user srun --hvd -n1 sh -c "$place; srun --hvd -n1 --overlap sh -c '$place'" | sort -u | wc -l
}
prints 'an srun inside a rank gets a port of its own' '^2$' inside
# Lightning fails if SLURM_NTASKS_PER_NODE is unset. JAX would use the same port in two steps of a job.
prints 'each rank of an even step knows the number of ranks per node' '^4 4 4 4$' \
    in_line as_user srun --hvd -N1 -n4 printenv SLURM_NTASKS_PER_NODE
prints 'an srun inside a rank does not take it for a choice of the user' '^inner of 1$' \
    as_user srun --hvd -N1 -n2 sh -c 'test $RANK = 1 || srun --overlap -n1 sh -c "echo inner of \$SLURM_NTASKS" 2>&1'
# shellcheck disable=SC2034 # for jax_places
jax='echo $JAX_COORDINATOR_ADDRESS $JAX_COORDINATOR_PORT; touch jax.$SLURM_STEP_ID
    until [ -e jax.0 ] && [ -e jax.1 ]; do sleep 0.1; done' # each step waits for the other
jax_places()
{
    # shellcheck disable=SC2086
    batch '-N2 -n4 --overcommit' "srun --hvd --overlap $on_both sh -c '$jax' >one &
        srun --hvd --overlap $on_both sh -c '$jax' >two; wait; sort -u one two"
}
two_places()
{
    jax_places | grep -cE "^$n1:([0-9]+) \\1\$"
}
prints 'two steps of a job at once get different addresses for JAX, the same in all ranks of a step' '^2$' two_places
# covered NODE PATH: mounts a file that users can neither run nor write over PATH on a node.
covered()
{
    touch "$work/covered"
    chmod 600 "$work/covered"
    as_root --node "$1" mount --bind "$work/covered" "$2"
}
covered n2 /dev/null
prints 'ranks get them also if /dev/null cannot be opened' "^$n1 [0-9]+\$" in_line places
as_root --node n2 umount /dev/null
service=$(find "$prefix" -name hvd-rendezvous)
covered n2 "$service"
without_place()
{
    # shellcheck disable=SC2086
    as_user srun --hvd $on_both true 2>&1 | grep -E 'MASTER_ADDR and MASTER_PORT stay unset: cannot start ' |
        grep -oE 'rank [0-9] on n[0-9]' | sort | paste -sd ' '
}
prints 'each rank without them prints the reason' '^rank 2 on n2 rank 3 on n2$' without_place
as_root --node n2 umount "$service"
prints 'the port is reserved for the rank' '^held$' as_user srun --hvd -n1 python3 -c '
import os, socket
place = "", int(os.environ["MASTER_PORT"])
other = socket.socket()
try:
    other.bind(place)
except OSError:
    store = socket.socket()
    store.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    store.bind(place)
    store.listen()
    print("held")'

if ! /usr/bin/python3 -c 'import torch' 2>/dev/null; then
    tap_skip 'DistributedDataParallel' 'needs python3-torch'
    tap_done
fi
cat >"$home/ddp.py" <<'PY'
import os, torch
import torch.distributed as dist
dist.init_process_group('gloo')
rank = dist.get_rank()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1, bias=False))
model(torch.full((1, 1), 1. + rank)).sum().backward()
total = torch.ones(1000)
dist.all_reduce(total)
print(f'rank {rank} of {dist.get_world_size()}, local {os.environ["LOCAL_RANK"]}:',
      model.module.weight.grad.item(), total.sum().item(), flush=True)
dist.barrier()
del model # Gloo of torch 1.13 may hang at exit while a model exists
dist.destroy_process_group()
PY
# The script gives hvd a store of its own, because neither Slurm nor the plugin tells how to find the other ranks.
cat >"$home/store.py" <<'PY'
import datetime, os, sys, torch
import torch.distributed as dist
import horovod.torch as hvd
rank, size = int(os.environ['SLURM_PROCID']), int(os.environ['SLURM_NTASKS'])
place = sys.argv[1], 29511, size, rank == 0, datetime.timedelta(seconds=200)
try:
    store = dist.TCPStore(*place, use_libuv=False)  # Debian 13's torch has no libuv
except TypeError:
    store = dist.TCPStore(*place)  # torch before 2.2 lacks the argument
for start in range(2):
    hvd.init(store=store, rank=rank, size=size)
    total = hvd.allreduce(torch.full((1000,), 1. + rank), op=hvd.Sum)
    line = (f'rank {hvd.rank()} of {hvd.size()}, {hvd.local_rank()} of {hvd.local_size()} on its node, '
            f'{hvd.cross_rank()} of {hvd.cross_size()}: {total.min().item()} {total.max().item()}')
    hvd.shutdown()
print(line)
PY
chmod a+r "$home"/{ddp,store}.py
# From here on a program on n1 has taken ports in the range from which job scripts often choose. Jobs must not
# collide with it.
begin_job as_root --node n1 python3 -c '
import socket, time
taken = []
for port in range(61000, 61064):
    taken.append(socket.socket())
    taken[-1].bind(("", port))
    taken[-1].listen()
print("taken", flush=True)
time.sleep(3600)'
await_said '^taken$'
# shellcheck disable=SC2034 # for ddp
all='rank 0 of 4, local 0: 2.5 4000.0 rank 1 of 4, local 1: 2.5 4000.0'
all="$all rank 2 of 4, local 0: 2.5 4000.0 rank 3 of 4, local 1: 2.5 4000.0"
# Debian 13's torch lacks libuv, which torch's store uses by default.
ddp()
{
    # shellcheck disable=SC2086
    as_user USE_LIBUV=0 srun --hvd $on_both "$@" python3 ddp.py 2>"$work/ddp.err" | sort | paste -sd ' '
}
prints 'DistributedDataParallel averages over the four ranks' "^$all\$" ddp
two_at_once()
{
    # shellcheck disable=SC2086
    as_user USE_LIBUV=0 sh -c "srun --hvd $on_both python3 ddp.py >one 2>one.err & srun --hvd $on_both python3 ddp.py >two 2>two.err
        wait; sort one | paste -sd ' '; sort two | paste -sd ' '"
}
both()
{
    two_at_once | grep -cx "$all"
}
prints 'two jobs at the same time do not mix' '^2$' both
kill "$job" 2>/dev/null

by_store()
{
    as_user PYTHONPATH="$prefix/lib/hvd/python" srun --mpi=none --hvd=off -N2 -n4 -m plane=3 \
        python3 store.py "$n1" | sort | paste -sd ' '
}
numbers='rank 0 of 4, 0 of 3 on its node, 0 of 2: 10.0 10.0 rank 1 of 4, 1 of 3 on its node, 0 of 1: 10.0 10.0'
numbers="$numbers rank 2 of 4, 2 of 3 on its node, 0 of 1: 10.0 10.0 rank 3 of 4, 0 of 1 on its node, 1 of 2: 10.0 10.0"
prints "ranks on two nodes find each other through a store of the script, twice" "^$numbers\$" by_store
tap_done
