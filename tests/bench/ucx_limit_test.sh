#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ucx_limit_test.sh HVDRUN HVD_BENCH: the peer ucx-limit ends on all ranks, and hvd-bench names the rank and the
# reason, if UCX cannot send. HVD_BENCH has failing_send.c. Prints TAP.
hvdrun=$1 bench=$2
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
on_nodes=$(dirname "$0")/../../contrib/bench/on_nodes.sh
HOROVOD_RANK=0 "$on_nodes" 1 true 2>/dev/null || tap_skip_all 'several nodes need root or user namespaces'
tap_begin
export HVD_NET=tcp UCX_TLS=tcp

# Runs on RANKS ranks of each of two nodes. Each rank writes its exit status into a file, and then succeeds, so that
# hvdrun does not end the others.
run()
{
    ranks=$1
    shift
    rm -f "$work"/status.*
    # shellcheck disable=SC2016 # the ranks' shells expand it
    "$hvdrun" -np $((2 * ranks)) "$on_nodes" "$ranks,$ranks" sh -c '"$@"; echo $? >"$0.$HOROVOD_RANK"' "$work/status" \
        "$bench" allreduce --level team --vs ucx-limit --sizes 100 --time 0.02 --blocks 1 "$@" >"$work/out" 2>&1
}

# all_end_with STATUS RANKS: whether all ranks of both nodes have ended with this status.
all_end_with()
{
    cat "$work"/status.* >>"$work/out"
    [ "$(cat "$work"/status.*)" = "$(yes "$1" | head -n $((2 * $2)))" ]
}

# fails RANKS RANK NUMBER WHEN: that rank cannot send the message of that number.
fails()
{
    export HVD_TEST_SEND_FAILS="$2:$3"
    run "$1"
    all_end_with 1 "$1" &&
        grep -q "^hvd-bench: rank $2: ucx-limit: UCX cannot send to rank $((($2 + $1) % (2 * $1))): " "$work/out"
    report $? "$1 on each node, rank $2 cannot send message $3$4: all ranks end with the reason"
}

run 1
all_end_with 0 1 && grep -q ' ucx-limit ' "$work/out" && ! grep -q '^hvd-bench: ' "$work/out"
report $? 'without a failure the results are right'
# The first two messages connect the ranks.
fails 1 0 2
fails 1 1 9
fails 2 3 5
export HVD_TEST_SEND_LATE=1
fails 1 1 2 ', which UCX tells later'
fails 2 3 20 ', which UCX tells later'
unset HVD_TEST_SEND_LATE
export HVD_TEST_SEND_FAILS=0:0
run 1
all_end_with 0 1 && grep -q '^# without ucx-limit: rank 0: ucx-limit: UCX cannot send to rank 1: ' "$work/out"
report $? 'a rank cannot send its first message: hvd is measured without ucx-limit, with the reason'
tap_done
