#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# hvd_bench_test.sh HVDRUN HVD_BENCH PYTHON: checks the output and the end of short runs on two ranks.
# Prints TAP.
hvdrun=$1 bench=$2 python=$3
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
tap_begin

run()
{
    "$hvdrun" -np 2 "$bench" "$@" >"$work/out" 2>&1
}

run allreduce allgather broadcast alltoall reducescatter reduce gather scatter sendrecv pingpong barrier \
    --sizes 8,100000 --vs limit --time 0.02 --blocks 3 --json "$work/json"
report $? 'every collective runs and its results are right'
"$python" - "$work/json" >"$work/out" 2>&1 <<'EOF'
import json, sys
document = json.load(open(sys.argv[1]))
rows = document['rows']
assert document['ranks'] == 2 and document['layout'] == '2' and document['hosts'], document
for row in rows:
    assert row['least_us'] <= row['q1_us'] <= row['time_us'] <= row['q3_us'] <= row['most_us'], row
    assert abs(row['algbw_gbs'] - row['bytes'] / row['time_us'] / 1e3) < 1e-3, row
names = {row['collective'] for row in rows}
assert len(names) == 11, names
runtime = [row for row in rows if row['who'] == 'runtime']
assert len(runtime) == 2 * 10 + 1, len(runtime)
assert {row['who'] for row in rows if row['collective'] == 'allreduce'} == {'team', 'runtime', 'limit'}
EOF
report $? 'the JSON file has every row, with consistent figures'

run allreduce allgather scatter --format nccl-tests --sizes 8,1000 --time 0.01 --blocks 1 &&
    [ "$(awk '$1 ~ /^[0-9]/ { printf "%s %s %s %s %s,%d ", $1, $2, $3, $4, $5, NF }' "$work/out")" = "$(echo \
        '8 2 float sum -1,13 1000 250 float sum -1,13 8 1 float none -1,13 1000 125 float none -1,13' \
        '8 1 float none 0,13 1000 125 float none 0,13 ')" ] && grep -q '^# Avg bus bandwidth    : [0-9]' "$work/out"
report $? '--format nccl-tests prints its 13 columns: bytes, elements of a rank, type, operation, root, times'

run allreduce allgather pingpong barrier --format osu --sizes 8,1000 --time 0.01 --blocks 1 &&
    [ "$(awk '$1 ~ /^[0-9]/ { printf "%s:%d ", NF == 5 ? $1 : "barrier", NF }' "$work/out")" = \
        '8:5 1000:5 4:5 500:5 8:5 1000:5 barrier:4 ' ]
report $? "--format osu prints the bytes of a rank, the times and the number of calls"

run --sizes 8 --vs ucx-limit,mpi --time 0.01 --blocks 1
status=$?
for peer in ucx-limit mpi; do
    grep -q "^# without $peer: .* .* .*" "$work/out" || status=1
done
report $status 'peers that are not installed are left out, with the reason'

on_nodes=$(dirname "$0")/../../contrib/bench/on_nodes.sh
no_nodes=
if [ ! -e "$(dirname "$bench")/../../../collectives/transport/net/ucx/hvd_ucx.so" ]; then
    no_nodes='hvd was built without UCX'
elif ! HOROVOD_RANK=0 "$on_nodes" 1 true 2>/dev/null; then
    no_nodes='several nodes need root or user namespaces'
fi

# between RANKS PROMISE ARGUMENT...: allreduces by that many ranks on each of two nodes.
between()
{
    ranks=$1 promise=$2
    shift 2
    if [ -n "$no_nodes" ]; then
        tap_skip "$promise" "$no_nodes"
        return
    fi
    "$hvdrun" -np $((2 * ranks)) "$on_nodes" "$ranks,$ranks" "$bench" allreduce --time 0.02 --blocks 1 "$@" \
        >"$work/out" 2>&1 && ! grep '^# without' "$work/out"
    report $? "$promise"
}

HVD_NET=ucx between 1 'with HVD_NET=ucx, hvd-bench finds hvd_ucx.so without a variable' --sizes 8
export UCX_TLS=tcp UCX_TCP_SNDBUF=4K # a message that the socket does not take in one piece
for ranks in 1 2; do
    HVD_NET=tcp between "$ranks" "ucx-limit is right between two nodes of $ranks, also if sockets are full" \
        --sizes 4,100,70000 --vs ucx-limit
done
unset UCX_TLS UCX_TCP_SNDBUF

run --tune "$work/table" --sizes 8,1K,200K --time 0.01 --blocks 3
status=$?
HVD_TUNE_TABLE="$work/table" run --sizes 8,200K --time 0.01 --level team || status=1
grep -q '^\[nodes=1 ranks=2\]$' "$work/table" && grep -q '^measured by hvd-bench' "$work/table" || status=1
for collective in allreduce reducescatter allgather broadcast; do
    grep -Eq "^$collective +0  " "$work/table" || status=1
done
report $status 'a table of algorithms is written, and a job takes it'

"$python" - "$hvdrun" -np 2 "$bench" --sizes 8,1K --time 0.05 >"$work/out" 2>&1 <<'EOF'
import pty, sys
sys.exit(pty.spawn(sys.argv[1:], stdin_read=lambda fd: b'') >> 8)
EOF
status=$?
grep -q '1 of 2 done, about [0-9]* s left: allreduce 1K' "$work/out" || status=1
run --sizes 8,1K --time 0.05 || status=1
grep -q ' done' "$work/out" && status=1
report $status 'a terminal of hvdrun shows the progress, a pipe does not'

run --sizes 8 --frobnicate
[ $? -eq 2 ] && [ "$(grep -c -e '--frobnicate' "$work/out")" -eq 1 ]
report $? 'a wrong option is named, once, with status 2'

run --sizes 8 --vs nobody
[ $? -eq 2 ] && grep -q nobody "$work/out"
report $? 'an unknown peer is named'

for option in json plot tune; do
    run --sizes 8 "--$option" "$work/none/file"
    [ $? -eq 2 ] && grep -q "^hvd-bench: --$option: cannot write .*none/file" "$work/out" &&
        ! grep -q '^#' "$work/out" || break
done
report $? 'a file that cannot be written is named, before anything is measured'

# skip_without MODULE PROMISE: fails, and reports the promise as skipped, if Python lacks the module.
skip_without()
{
    "$python" -c "import $1" 2>/dev/null && return
    tap_skip "$2" "no $1"
    return 1
}

promise='Gloo runs the same work in children, and its results are right'
if skip_without torch "$promise"; then
    run allreduce broadcast allgather barrier --sizes 1000 --vs "gloo=$python" --time 0.02 --blocks 1
    status=$?
    [ "$(grep -c ' gloo ' "$work/out")" -eq 4 ] || status=1
    report $status "$promise"
fi

promise='a PNG and an SVG are drawn'
if skip_without matplotlib "$promise"; then
    run --sizes 8,1K --time 0.01 --blocks 1 --plot "$work/plot"
    status=$?
    [ -s "$work/plot.png" ] && grep -q '<svg' "$work/plot.svg" || status=1
    report $status "$promise"
    grep -q "2 ranks on 1 node, layout 1 x 2: $(uname -n), [0-9]* core" "$work/plot.svg"
    report $? 'the title of the picture has ranks, layout and machine'
    grep -q '<!-- allreduce float32 sum: time -->' "$work/plot.svg" &&
        grep -q '<!-- allreduce float32 sum: bus bandwidth -->' "$work/plot.svg" &&
        "$python" -c 'import struct, sys
width, = struct.unpack(">I", open(sys.argv[1], "rb").read()[16:20])
sys.exit(not 800 < width <= 1400)' "$work/plot.png"
    report $? 'each panel has a title of its own, and the picture at most 1,400 pixels'
fi

"$bench" --help >"$work/out" 2>&1
status=$?
[ "$(awk 'length > 80' "$work/out" | wc -l)" -eq 0 ] || status=1
report $status '--help needs no job and fits a terminal'
tap_done
