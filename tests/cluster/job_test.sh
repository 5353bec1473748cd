#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Jobs on two real nodes: results, training, a rank that dies, a link that is cut.
. "$(dirname "$0")/harness.sh"

programs=$MESON_BUILD_ROOT/tests/collectives
train=$tests_dir/../../contrib/examples/digits/train.py

# srun of hvd as the job user; test programs find the installed library.
job()
{
    as_user LD_LIBRARY_PATH="$library" srun "$(ranks)" "$@"
}

bring_programs()
{
    cp "$programs/collectives_test" "$programs/victim" "$programs/idle" "$train" "$home/"
    chmod a+rx "$home"/*
    mkdir "$home/dump"
    chmod 777 "$home/dump"
}

# All TAP lines of the program are its own promises; here they are one.
collectives_are_right()
{
    prints "collectives on $1 equal the reference" '^1\.\.6$' job "${@:2}" ./collectives_test 1
    if grep -q '^not ok' "$work/output"; then
        tap_result 'not ok' "collectives on $1: every line is ok"
        tap_note "$(cat "$work/output")"
    fi
}

same_parameters()
{
    # shellcheck disable=SC2016 # expands inside
    as_user python3 -c '
import torch
a, *others = [torch.load(f"dump/rank{r}.pt") for r in range(4)]
assert all(torch.equal(a[k], o[k]) for o in others for k in a)'
}

best_accuracy()
{
    awk '/^epoch/ { if ($6 > best) best = $6 } END { exit !(best >= 0.95) }' "$work/said"
}

training_works()
{
    prints "four ranks on two nodes train" '4 ranks on 2 nodes' \
        job -N 2 --ntasks-per-node=2 python3 train.py --dump-params dump
    cp "$work/output" "$work/said"
    succeeds "they recognise 95 % of the held-out digits" best_accuracy
    succeeds "all ranks end with the same bits" same_parameters
}

a_rank_dies()
{
    limit=20 job -N 2 --ntasks-per-node=2 ./victim 3 >"$work/said" 2>&1 </dev/null
    tap_note "$(cat "$work/said")"
    local rank
    for rank in 0 1 2; do
        succeeds "rank $rank learns within 5 s that rank 3 on n2 died" \
            grep -Eq "pending $rank: -5 [0-4]\.[0-9] .*rank 3 \(?(on|host) n2" "$work/said"
    done
    succeeds "nothing stays in /dev/shm" as_root --node n1 sh -c '[ -z "$(ls -A /dev/shm)" ]'
}

# The ranks of n1 write to files, because srun's own connections are cut too.
a_link_is_cut()
{
    local began
    as_user LD_LIBRARY_PATH="$library" srun "$(ranks)" -N 2 --ntasks-per-node=1 -o 'cut.%t' \
        ./victim 1 sleep >"$work/srun" 2>&1 </dev/null &
    until grep -q . "$home"/cut.0 2>/dev/null || [ "$SECONDS" -gt 200 ]; do
        # Both ranks are connected once rank 1 sleeps in the middle of the job.
        if as_root --node n2 pgrep -x victim >/dev/null && [ -z "${began-}" ]; then
            sleep 1
            as_root --node n2 ip link set eth0 down
            began=$SECONDS
        fi
        sleep 0.2
    done
    local took=$((SECONDS - ${began:-0}))
    cp "$home/cut.0" "$work/said"
    tap_note "$(cat "$work/said")"
    succeeds "rank 0 learns that rank 1 on n2 is gone when its link is cut" \
        grep -Eq 'pending 0: -5 .*rank 1 \(?(on|host) n2' "$work/said"
    succeeds "within 8 s, the time to look included ($took s)" test "$took" -le 8
    as_root --node n2 ip link set eth0 up
    wait
}

install_hvd
start_cluster 2 --sockets 1 --cores 4 --gpus 0 --prefix "$prefix"
library=$(dirname "$(find "$prefix" -name libhvd.so -print -quit)")
bring_programs
collectives_are_right 'two nodes with two ranks each' -N 2 --ntasks-per-node=2
collectives_are_right 'three and one ranks' -N 2 -n 4 -m plane=3
training_works
prints "--hvd=report shows who was late on which node" '^ +[0-3]  n2 +[0-9]+ ' \
    as_user LD_LIBRARY_PATH="$library" srun "$(ranks report)" -N 2 --ntasks-per-node=2 \
    ./collectives_test 1
complains "srun without --hvd is an error that says what to type, never four times one rank" \
    'srun --hvd' as_user LD_LIBRARY_PATH="$library" srun -N 2 -n 4 ./collectives_test
a_rank_dies
a_link_is_cut
tap_done
