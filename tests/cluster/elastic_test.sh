#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Elastic jobs on two real nodes: a rank is killed, then a slurmd, then a node is switched off, and
# training ends as if nothing had been; ranks of a further step join.
. "$(dirname "$0")/harness.sh"

trainer=$MESON_BUILD_ROOT/tests/pmix_boot/elastic/trainer
example=$tests_dir/../../contrib/examples/elastic/train.py
epochs=40
limit=200 # a loaded machine takes its time to import torch

job()
{
    as_user OMP_NUM_THREADS=1 LD_LIBRARY_PATH="$library" "$@"
}

# The example in the background, its words in $work/said. It holds still at its first epochs until
# the file "go" exists, so that nothing is killed too late.
start_training()
{
    rm -f "$home/go"
    : >"$work/said" # or what the last one said is taken for this one's: the shell forks, then opens
    job HVD_EXAMPLE_HOLD="go" srun --hvd=elastic -N 2 --ntasks-per-node=2 python3 held.py --epochs \
        "$epochs" >"$work/said" 2>&1 </dev/null &
    training=$!
    await_said '^epoch  2'
}

# await_said REGEX: until the training has said it, or has ended.
await_said()
{
    until grep -Eq -- "$1" "$work/said"; do
        kill -0 "$training" 2>/dev/null || return 1
        sleep 0.1
    done
}

let_go()
{
    touch "$home/go"
    wait "$training"
    tap_note "$(grep -Ev '^epoch .[1-9]' "$work/said")"
}

last_accuracy()
{
    sed -n "s/^epoch $epochs  accuracy \([0-9.]*\) .*/\1/p" "$1"
}

# As the undisturbed training, but for four of 360 images, and good.
same_accuracy()
{
    awk -v now="$(last_accuracy "$work/said")" -v before="$(last_accuracy "$work/undisturbed")" \
        'BEGIN { print now, before; exit !(now >= 0.95 && now - before < 0.012 && before - now < 0.012) }'
}

undisturbed()
{
    start_training
    let_go
    cp "$work/said" "$work/undisturbed"
    succeeds 'undisturbed, four ranks on two nodes train to the end' \
        grep -q "^epoch $epochs .* 4 ranks on 2 nodes" "$work/said"
}

rank_and_slurmd_die()
{
    start_training
    as_root --node n1 pkill -9 -n -x python3
    succeeds 'when a rank is killed the others begin anew' await_said 'generation 2 begins, 3 ranks'
    as_root --node n2 pkill -9 -x slurmd
    let_go
    succeeds 'a rank and a slurmd are killed: training ends' \
        grep -q "^epoch $epochs .* 3 ranks on 2 nodes" "$work/said"
    succeeds 'with the same accuracy' same_accuracy
    as_root --node n2 slurmd -N n2
    succeeds 'the node comes back' nodes_are_idle 2
}

nodes_are_idle()
{
    local tries=0
    until [ "$(as_user sinfo -h -N -t idle | wc -l)" = "$1" ]; do
        tries=$((tries + 1))
        [ "$tries" -lt 300 ] || return 1
        sleep 0.1
    done
}

others_join()
{
    job HVD_TRAINER_HOLD=4 srun --hvd=elastic,meet=run.hvd -w n1 -n 2 ./trainer 20 \
        >"$work/first" 2>&1 </dev/null &
    local first=$!
    until [ -e "$home/run.hvd" ]; do
        sleep 0.05
    done
    succeeds 'the file of a meeting is for its user alone' \
        test "$(stat -c %a "$home/run.hvd")" = 600
    prints 'ranks of a further step join' 'rank 3 of 4, steps 20, value 20' \
        job HVD_TRAINER_HOLD=4 srun --hvd=elastic,meet=run.hvd -w n2 -n 2 ./trainer 20
    wait "$first"
    cp "$work/first" "$work/said"
    succeeds 'and the first step goes on with them' \
        grep -q 'rank 0 of 4, steps 20, value 20, begun 2 times' "$work/said"
    fails 'the file goes with the step that made it' test -e "$home/run.hvd"
}

# Long enough for the service and for the other node to take its ranks for dead.
a_link_comes_back()
{
    : >"$work/said"
    job HVD_TRAINER_PAUSE_MS=200 srun --hvd=elastic -N 2 --ntasks-per-node=2 ./trainer 80 \
        0:idle:2:0 >"$work/said" 2>&1 </dev/null &
    training=$!
    await_said 'generation 2 begins, 3 ranks'
    as_root --node n2 ip link set eth0 down
    await_said 'generation 3 begins, 1 ranks'
    as_root --node n2 ip link set eth0 up
    wait "$training"
    tap_note "$(cat "$work/said")"
    succeeds 'ranks of a node that was cut off for a while come again' \
        grep -Eq '^slot [23]: rank 2 of 3, steps 80, value 80' "$work/said"
    succeeds 'behind the one that has gone on' \
        grep -Eq '^slot 1: rank 0 of 3, steps 80, value 80' "$work/said"
}

rules()
{
    complains 'more ranks at least than tasks are refused' 'min=3, but this step has 2 tasks' \
        job srun --hvd=elastic,min=3 -n 2 ./trainer 20
    needs_pmix complains 'without elastic a dead rank ends the others' 'rank 1 on n. died' \
        job srun --hvd -N 2 -n 2 ./trainer 20 1:idle:5:0
    prints 'a step inside an elastic one is a job of its own' 'rank 0 of 1, .* begun 1 times' \
        job srun --hvd=elastic -n 1 srun --hvd --overlap -n 1 ./trainer 20
}

node_dies()
{
    start_training
    "$cluster" crash --dir "$work/cluster" n2
    succeeds 'when a node is switched off the ranks of the other begin anew' \
        await_said 'generation 2 begins, 2 ranks'
    let_go
    succeeds 'and train to the end' grep -q "^epoch $epochs .* 2 ranks on 1 nodes" "$work/said"
    succeeds 'with the same accuracy as four' same_accuracy
    succeeds 'no service is left' none_serves
}

none_serves()
{
    ! as_root pgrep -x hvd-elastic
}

install_hvd
start_cluster 2 --sockets 1 --cores 4 --gpus 0 --prefix "$prefix" --conf 'SlurmdTimeout=10'
library=$(dirname "$(find "$prefix" -name libhvd.so -print -quit)")
cp "$trainer" "$example" "$home/"
# The example, with a pause between its epochs until the file exists.
cat >"$home/held.py" <<'PYTHON'
import os, time, train
accuracy = train.accuracy
def held(*arguments):
    deadline = time.monotonic() + 0.3
    while not os.path.exists(os.environ['HVD_EXAMPLE_HOLD']) and time.monotonic() < deadline:
        time.sleep(0.02)
    return accuracy(*arguments)
train.accuracy = held
train.main()
PYTHON
chmod a+rx "$home"/*
chmod 1777 "$home"
undisturbed
rank_and_slurmd_die
others_join
a_link_comes_back
rules
node_dies
tap_done
