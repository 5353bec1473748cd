#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# peers_test.sh HVDRUN HVD_BENCH PYTHON FAKE_MPICH: hvd-bench beside each library that is here, on two
# ranks, and beside one that goes wrong. HVD_TEST_ONECCL: the Python environment that has oneCCL
# (contrib/bench/oneccl_env.sh). Prints TAP.
hvdrun=$1 bench=$2 python=$3 fake=$4
# shellcheck source=tests/report.sh
. "$(dirname "$0")/../report.sh"

# Few calls: libraries that spin take long where ranks have to share a core.
run()
{
    "$hvdrun" -np 2 "$bench" "$@" --level runtime --iterations 2 --warmup 1 --blocks 1 \
        >"$work/out" 2>&1
}

# compare NAME=WHAT ROWS ARGUMENT...: the peer has that many rows, all of them right. Its promise is
# skipped where it is not there.
compare()
{
    name=${1%%=*} vs=$1 rows=$2
    shift 2
    run "$@" --vs "$vs"
    status=$?
    found=$(grep -c "^ *$name  " "$work/out")
    if [ $status -eq 0 ] && [ "$found" -eq 0 ]; then
        count=$((count + 1))
        echo "ok $count - $name runs the same work # SKIP $(grep "^# without $name: " "$work/out")"
        return
    fi
    [ "$found" -eq "$rows" ] || status=1
    report $status "$name runs the same work, and its results are right"
}

all='allreduce allgather broadcast alltoall reducescatter barrier'
# shellcheck disable=SC2086
compare mpich 21 $all reduce gather scatter sendrecv pingpong --sizes 8,100000
# shellcheck disable=SC2086
compare "oneccl${HVD_TEST_ONECCL:+=$HVD_TEST_ONECCL}" 10 $all --sizes 8,100000
# shellcheck disable=SC2086
compare "gloo=$python" 9 $all --sizes 8,100000
compare mpich 2 --list resnet50 --sizes 8
compare mpich 1 --op max --dtype int64 --sizes 1K
compare mpich 1 --inplace --sizes 1K

run --op average --sizes 8 --vs "mpich=$fake"
[ $? -eq 0 ] && grep -q '^# without mpich: .*average' "$work/out"
report $? 'what a peer cannot do is left out, with the reason'

run --sizes 8 --vs "mpich=$fake"
[ $? -eq 1 ] && grep -q 'mpich.* is ' "$work/out"
report $? 'a wrong result of a peer ends the run, with its name'

FAKE_MPICH=die run --sizes 8 --vs "mpich=$fake"
[ $? -eq 1 ] && grep -q 'mpich: its process ended' "$work/out"
report $? 'a peer whose process dies ends the run, with its name'

run --sizes 8 --vs "mpich=$work/none.so"
[ $? -eq 0 ] && grep -q '^# without mpich: .*none.so' "$work/out"
report $? 'a library that is not there is named'
echo "1..$count"
exit $failed
