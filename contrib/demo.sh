#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Trains on two Slurm nodes from a fresh checkout: installs missing packages, builds hvd, starts a
# throw-away Slurm cluster on this machine, installs the plugin there as an admin would, and submits
# contrib/examples/digits as an unprivileged user, with Horovod's interface and with DDP. Stops
# everything that it started, also after Ctrl-C. Without root it runs the same trainings on this
# machine, without Slurm.
set -euo pipefail

root=$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/..")
example=$root/contrib/examples/digits/train.py
ddp=$root/contrib/examples/torch_distributed/ddp.py
cluster=$root/contrib/cluster/cluster
build=$root/build-demo
ranks=4
job=

say()
{
    printf '\n== %s (%d s)\n' "$*" "$SECONDS"
}

die()
{
    printf 'demo: %s\n' "$*" >&2
    exit 1
}

configure()
{
    if [ -e "$build/build.ninja" ]; then
        meson setup "$build" "$root" --reconfigure --prefix="$1" && return
        rm -rf "$build"
    fi
    meson setup "$build" "$root" --prefix="$1"
}

build_and_install()
{
    local log=$build.log
    if ! configure "$1" >"$log" 2>&1 || ! meson install -C "$build" >>"$log" 2>&1; then
        tail -n 30 "$log" >&2
        die "hvd does not build; $log has the whole output"
    fi
}

# Prints the speed of the fastest epoch, because the first one includes the warm-up.
images_per_second()
{
    awk '/^epoch/ { speed = $(NF - 1); if (speed > best) best = speed } END { print best + 0 }' "$1"
}

last_accuracy()
{
    awk '/^epoch/ { accuracy = $6 } END { print accuracy + 0 }' "$1"
}

# Prints a line about a training; ends the demo if its accuracy is below 0.95.
summarise()
{
    local accuracy
    accuracy=$(last_accuracy "$2")
    printf '%-22s %8s images/s, accuracy on held-out images %s\n' "$1" \
        "$(images_per_second "$2")" "$accuracy"
    awk "BEGIN { exit !($accuracy >= 0.95) }" ||
        die "accuracy on held-out images is $accuracy, expected 0.95 or more"
}

# summarise_all ONE ALL DDP: the outputs of one rank, of all ranks, and of all ranks with DDP.
summarise_all()
{
    echo
    summarise '1 rank' "$1"
    summarise "$ranks ranks" "$2"
    summarise "$ranks ranks, DDP" "$3"
}

clean_up()
{
    trap - EXIT INT TERM HUP
    [ -z "$job" ] || kill "$job" 2>/dev/null || :
    "$cluster" down --dir "$place/cluster" >/dev/null || :
    rm -rf "$place"
}

# Removes what a killed demo left; ignores directories of other users.
remove_old_places()
{
    for place in /var/tmp/hvd-demo.*; do
        if [ ! -d "$place" ] || [ -L "$place" ] || [ ! -O "$place" ] || [ ! -e "$place/pid" ]; then
            continue
        fi
        ! kill -0 "$(cat "$place/pid")" 2>/dev/null || die "$place: another demo is running"
        clean_up
    done
}

# Makes a directory with an unpredictable name that the job user can read.
claim_place()
{
    remove_old_places
    place=$(mktemp -d /var/tmp/hvd-demo.XXXXXX)
    chmod 755 "$place"
    echo $$ >"$place/pid"
    trap clean_up EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
}

# Writes the user's batch script: the example, then the same on one rank for comparison, then with DDP.
write_job()
{
    cp "$example" "$ddp" "$1"
    cat >"$1/job.sbatch" <<JOB
#!/bin/bash
#SBATCH --job-name=digits --nodes=2 --ntasks-per-node=2 --output=job.out
srun --hvd=verbose python3 train.py | tee four.out
echo
echo "the same on one rank:"
srun --hvd --nodes=1 --ntasks=1 python3 train.py | tee one.out
echo
echo "DistributedDataParallel over hvd:"
export USE_LIBUV=0 # Debian 13's torch lacks libuv, which its store uses by default
srun --hvd python3 ddp.py --backend hvd | tee ddp.out
JOB
}

run_on_cluster()
{
    local home=$place/cluster/home
    say 'starting a Slurm cluster of two nodes'
    "$cluster" up 2 --dir "$place/cluster" --sockets 2 --cores 1 --gpus 0 --prefix "$place/opt"
    write_job "$home"
    say 'as an unprivileged user: sbatch job.sbatch'
    sed 's/^/    /' "$home/job.sbatch"
    : >"$home/job.out"
    chmod 666 "$home/job.out"
    "$cluster" run --dir "$place/cluster" sbatch --wait job.sbatch &
    job=$!
    # tail ends after the job, when it has printed all of the job's output.
    tail -n +1 -f -s 0.1 --pid="$job" "$home/job.out"
    wait "$job" || die "the job failed; its output is above"
    job=
    summarise_all "$home/one.out" "$home/four.out" "$home/ddp.out"
    say 'stopping the cluster'
}

run_here()
{
    local out
    out=$(mktemp -d)
    # shellcheck disable=SC2064
    trap "rm -rf '$out'" EXIT
    echo "A throw-away Slurm cluster needs root; running the same training by hvdrun instead."
    say 'building hvd'
    build_and_install "$build-prefix"
    say "hvdrun -np $ranks python3 train.py"
    "$build-prefix/bin/hvdrun" -np "$ranks" python3 "$example" | tee "$out/four"
    say 'the same on one rank'
    "$build-prefix/bin/hvdrun" -np 1 python3 "$example" | tee "$out/one"
    say "DistributedDataParallel over hvd: hvdrun -np $ranks python3 ddp.py"
    USE_LIBUV=0 "$build-prefix/bin/hvdrun" -np "$ranks" python3 "$ddp" --backend hvd | tee "$out/ddp"
    summarise_all "$out/one" "$out/four" "$out/ddp"
}

main()
{
    if [ "$(id -u)" -ne 0 ]; then
        "$root/contrib/packages.sh" install build torch
        run_here
        return
    fi
    say 'installing missing packages'
    "$root/contrib/packages.sh" install build cluster torch
    claim_place
    say 'building hvd and installing it: meson install'
    build_and_install "$place/opt"
    run_on_cluster
    clean_up
    say 'done; the cluster is stopped and removed'
}

main "$@"
