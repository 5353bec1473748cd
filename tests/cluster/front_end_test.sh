#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# front_end_test.sh PROGRAM ARGUMENT...: runs a program of tests/python that starts jobs: each with two ranks on each of
# two nodes, under `srun --hvd`, with the installed package horovod and the Python of HVD_TEST_PYTHON.
. "$(dirname "$0")/harness.sh"

python=${HVD_TEST_PYTHON:-/usr/bin/python3}
limit=560

# Mounts the directory of a virtual environment under another name on each node, because it may be in a home that
# the job user cannot enter. The mount ends with the cluster.
bring_python()
{
    local environment node
    environment=$(dirname "$(dirname "$python")")
    [ -e "$environment/pyvenv.cfg" ] || return 0
    mkdir "$home/python"
    python=$home/python/bin/$(basename "$python")
    for node in '' n1 n2; do
        # shellcheck disable=SC2086
        as_root ${node:+--node "$node"} mount --bind "$environment" "$home/python" || return 1
    done
}

# Copies tests/python, and writes a launcher for its programs, which give the launcher hvdrun's options. The launcher
# starts torchrun once on each node.
bring_tests()
{
    cp -r "$tests_dir/../python" "$home/tests"
    cat >"$home/on_nodes" <<'SH'
#!/bin/sh
shift 2 # -np 4
case "$*" in
*torch.distributed.run*) PET_NPROC_PER_NODE=2 exec srun --hvd -N 2 "$@" ;;
esac
exec srun --hvd -N 2 --ntasks-per-node=2 "$@"
SH
    mkdir "$home/tmp"
    chmod -R a+rX "$home/tests"
    chmod 755 "$home/on_nodes"
    chmod 1777 "$home/tmp"
}

install_hvd
start_cluster 2 --sockets 1 --cores 4 --gpus 0 --prefix "$prefix"
bring_tests
bring_python || tap_skip_all "the nodes cannot be given $python"
as_user HVD_TEST_PYTHON="$python" HVD_TEST_NEEDS="${HVD_TEST_NEEDS:-torch}" TMPDIR="$home/tmp" \
    HVD_TEST_LAUNCHER="$home/on_nodes" PYTHONPATH="$home/tests/on_mxnet:$home/tests/on_jax" \
    /usr/bin/python3 "$home/tests/$1" "${@:2}"
