#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Elastic training on two nodes: whatever dies, the example reaches the same accuracy as without faults; ranks of
# a node that was cut off come back.
. "$(dirname "$0")/harness.sh"
. "$(dirname "$0")/elastic.sh"

epochs=40

# Runs the example. It waits in its first epochs until the file "go" exists, so that no kill comes too late.
start_training()
{
    start_tasks elastic -N 2 --ntasks-per-node=2
}

# start_tasks WORDS OPTION...: the same with these words of --hvd and options of srun.
start_tasks()
{
    local words=$1
    shift
    rm -f "$home/go"
    begin_job job HVD_EXAMPLE_HOLD="go" srun --hvd="$words" "$@" python3 held.py --epochs "$epochs"
    await_said '^epoch  2'
}

let_go()
{
    touch "$home/go"
    end_job
    tap_note "$(grep -Ev '^epoch .[1-9]' "$work/said")"
}

last_accuracy()
{
    sed -n "s/^epoch $epochs  accuracy \([0-9.]*\) .*/\1/p" "$1"
}

# Checks that the accuracy is at least 0.95, and differs from that of the undisturbed training by at most four of
# 360 images.
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
    says 'undisturbed, four ranks on two nodes train to the end' \
        "^epoch $epochs .* 4 ranks on 2 nodes"
}

rank_dies()
{
    start_training
    as_root --node n1 pkill -9 -n -x python3
    succeeds 'when a rank is killed the others begin anew' await_said 'generation 2 begins, 3 ranks'
    let_go
    says 'the remaining ranks train to the end' "^epoch $epochs .* 3 ranks on 2 nodes"
    succeeds 'they reach the same accuracy' same_accuracy
}

a_spare_steps_in()
{
    start_tasks elastic,spares=1 --exclusive -N 2 -n 5
    as_root --node n1 pkill -9 -n -x python3
    succeeds 'when a rank is killed, a spare begins anew with the others' \
        await_said 'generation 2 begins, 4 ranks; spares: 0'
    let_go
    says 'as many ranks as before train to the end' "^epoch $epochs .* 4 ranks on 2 nodes"
    succeeds 'they reach the same accuracy, with the spare' same_accuracy
}

# Cuts a node off, long enough for the service and the other node to declare its ranks dead.
a_link_comes_back()
{
    rm -f "$home/go"
    begin_job job HVD_TRAINER_GO=go HVD_TRAINER_PAUSE_MS=50 srun --hvd=elastic -N 2 \
        --ntasks-per-node=2 ./trainer 20 0:idle:2:0
    await_said 'generation 2 begins, 3 ranks'
    as_root --node n2 ip link set eth0 down
    await_said 'generation 3 begins, 1 rank'
    as_root --node n2 ip link set eth0 up
    await_said 'generation 4 begins, 3 ranks'
    let_go
    says 'ranks of a node that was cut off for a while come back' \
        '^slot [23]: rank 2 of 3, steps 20, value 20'
    says 'these ranks come after the one that continued' '^slot 1: rank 0 of 3, steps 20, value 20'
}

node_dies()
{
    start_training
    n2_is_switched_off
    let_go
    says 'the remaining ranks train to the end' "^epoch $epochs .* 2 ranks on 1 node$"
    succeeds 'two ranks reach the same accuracy as four' same_accuracy
}

start_elastic "$MESON_BUILD_ROOT/tests/pmix_boot/rendezvous/trainer" \
    "$tests_dir/../../contrib/examples/elastic/train.py"
# The example, with a pause of 0.3 s in each epoch until the file HVD_EXAMPLE_HOLD exists.
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
chmod a+r "$home/held.py"
undisturbed
rank_dies
a_spare_steps_in
a_link_comes_back
node_dies
tap_done
