#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# peers_test.sh HVDRUN HVD_BENCH PYTHON: runs hvd-bench with Gloo, and with peers that fail, on two ranks.
# Prints TAP.
hvdrun=$1 bench=$2 python=$3
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
tap_begin

# Little time, because libraries that spin are slow if ranks share a core.
run()
{
    "$hvdrun" -np 2 "$bench" "$@" --level runtime --time 0.001 --blocks 1 \
        >"$work/out" 2>&1
}

# fake_peer ANSWER: makes $work/python, which replaces Gloo's Python and speaks the child's side of the
# protocol in contrib/bench/hvd_bench/peer_gloo.c. ANSWER is a shell command that answers `check`.
fake_peer()
{
    cat >"$work/python" <<SCRIPT
#!/bin/sh
while read -r question rest; do
    case \$question in
    serve) echo at node 1 ;;
    check) $1 ;;
    work) case \$rest in *average*) echo no average here ;; *) echo ok ;; esac ;;
    run) echo 0.001 ;;
    *) echo ok ;;
    esac
done
SCRIPT
    chmod +x "$work/python"
}

run allreduce allgather broadcast alltoall reducescatter barrier --sizes 8,100000 --vs "gloo=$python"
status=$?
rows=$(grep -c '^ *gloo  ' "$work/out")
if [ $status -eq 0 ] && [ "$rows" -eq 0 ]; then
    tap_skip 'Gloo runs the same work' "$(grep '^# without gloo: ' "$work/out")"
else
    [ $status -eq 0 ] && [ "$rows" -eq 9 ]
    report $? 'Gloo runs the same work, and its results are right'
fi

fake_peer 'echo ok'
run --op average --sizes 8 --vs "gloo=$work/python"
[ $? -eq 0 ] && grep -q '^# without gloo: .*average' "$work/out"
report $? 'work that a peer cannot do is left out, with the reason'

fake_peer 'echo wrong element 0 is 7'
run --sizes 8 --vs "gloo=$work/python"
[ $? -eq 1 ] && grep -q 'gloo: wrong result: .* is 7' "$work/out"
report $? 'a wrong result of a peer ends the run, with its name'

fake_peer 'exit'
run --sizes 8 --vs "gloo=$work/python"
[ $? -eq 1 ] && grep -q 'gloo: its process ended' "$work/out"
report $? 'a peer whose process dies ends the run, with its name'

run --sizes 8 --vs "gloo=$work/none"
[ $? -eq 0 ] && grep -q '^# without gloo: .*none' "$work/out"
report $? 'a Python that does not exist is named'
tap_done
