# SPDX-License-Identifier: Apache-2.0
# Shell functions for tests of elastic jobs on two nodes. A test sources this file after harness.sh.
# shellcheck shell=bash disable=SC2154 # prefix, home and library come from harness.sh and start

# start_elastic FILE...: starts a cluster with hvd, and copies these programs to its home, where jobs may write.
start_elastic()
{
    install_hvd
    start_cluster 2 --sockets 1 --cores 4 --gpus 0 --prefix "$prefix"
    library=$(dirname "$(find "$prefix" -name libhvd.so -print -quit)")
    cp "$@" "$home/"
    chmod a+rx "$home"/*
    chmod 1777 "$home"
}

job()
{
    as_user OMP_NUM_THREADS=1 LD_LIBRARY_PATH="$library" "$@"
}

# Switches a node off and tells slurmctld. By itself slurmctld would notice only after SlurmdTimeout, which is
# long here, so that a node that is busy or cut off for a while is not declared down.
n2_is_switched_off()
{
    "$cluster" crash --dir "$work/cluster" n2
    succeeds 'when a node is switched off the ranks of the other begin anew' \
        await_said 'generation 2 begins, 2 ranks'
    as_root scontrol update NodeName=n2 State=DOWN Reason=off
}

# says PROMISE REGEX: the job has printed a matching line; a failure shows all its lines.
says()
{
    grep -Eq -- "$2" "$work/said" || tap_note "$(cat "$work/said")"
    succeeds "$1" grep -Eq -- "$2" "$work/said"
}

# says_times PROMISE NUMBER REGEX: the job has printed NUMBER matching lines.
says_times()
{
    local found
    found=$(grep -Ec -- "$3" "$work/said")
    [ "$found" = "$2" ] || tap_note "$(cat "$work/said")"
    prints "$1" "^$2$" echo "$found"
}
