#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Jobs on two nodes: results, the report, a rank that dies, a link that is cut.
# shellcheck disable=SC2016 # variables of jobs expand in the jobs
. "$(dirname "$0")/harness.sh"

programs=$MESON_BUILD_ROOT/tests/collectives

# job SRUN_ARGUMENT...: runs srun --hvd as the job user; test programs find the installed library.
job()
{
    as_user LD_LIBRARY_PATH="$library" srun --hvd "$@"
}

# collectives_are_right WHERE SRUN_ARGUMENT...: runs the TAP program collectives_test as one promise of this test.
collectives_are_right()
{
    prints "collectives on $1 equal the reference" '^1\.\.9$' job "${@:2}" ./collectives_test 1
    if grep -q '^not ok' "$work/output"; then
        tap_result 'not ok' "collectives on $1: every line is ok"
        tap_note "$(cat "$work/output")"
    fi
}

a_rank_dies()
{
    begin_job job -N 2 --ntasks-per-node=2 ./victim 3
    end_job
    tap_note "$(cat "$work/said")"
    local rank
    for rank in 0 1 2; do
        succeeds "rank $rank learns that rank 3 on n2 died" \
            grep -Eq "pending $rank: -5 .*rank 3 \(?(on|host) n2" "$work/said"
    done
    succeeds "no file is left in /dev/shm" as_root --node n1 sh -c '[ -z "$(ls -A /dev/shm)" ]'
}

# Each rank writes to a pipe of its own, because srun's connections are cut, too. Both ranks are connected when
# rank 1 prints that it sleeps.
a_link_is_cut()
{
    local line=''
    mkfifo -m 666 "$home/cut.0" "$home/cut.1"
    exec {first}<>"$home/cut.0" {second}<>"$home/cut.1"
    job -N 2 --ntasks-per-node=1 \
        sh -c './victim 1 sleep >cut.$HOROVOD_RANK' >"$work/srun" 2>&1 </dev/null &
    read -r -t "$limit" line <&"$second"
    prints 'two ranks are connected' '^sleeps' echo "$line"
    as_root --node n2 ip link set eth0 down
    read -r -t "$limit" line <&"$first"
    prints 'rank 0 learns that rank 1 on n2 is gone when its link is cut' \
        'pending 0: -5 .*rank 1 \(?(on|host) n2' echo "$line"
    as_root --node n2 ip link set eth0 up
    as_user scancel --user hvduser
    wait $!
}

# An MPI library in the ranks of hvd, which is a client of the same PMIx server.
mpi_beside_hvd()
{
    local message promise="mpi4py starts $1 hvd.init()"
    if ! message=$(as_user srun --mpi=pmix /usr/bin/python3 -c 'from mpi4py import MPI' 2>&1); then
        tap_skip "$promise" "$(tail -n 1 <<<"$message")"
        return
    fi
    prints "$promise, on two nodes" '^0/4=6 1/4=6 2/4=6 3/4=6$' mpi_sums "$1" -N 2 --ntasks-per-node=2
    prints "$promise, on one rank" '^0/1=0$' mpi_sums "$1" -n 1
}

mpi_sums()
{
    job --quiet --mpi=pmix "${@:2}" /usr/bin/python3 mpi.py "$1" 2>&1 | sort | paste -sd ' '
}

# check_nodes SCRIPT: runs it in two ranks on each of two nodes; its output is also in $work/check.
check_nodes()
{
    job -N 2 --ntasks-per-node=2 sh -c "$1" >"$work/check" 2>&1
    local status=$?
    cat "$work/check"
    return $status
}

facts_are_folded()
{
    printf 'shm 100 1\nlink 0.01 0.003\n' >"$home/few.conf"
    chmod a+r "$home/few.conf"
    prints 'hvd-info --check has one verdict' '^verdict: good, 4 ranks find each other$' \
        check_nodes 'hvd-info --check --seconds 1 --thresholds few.conf'
    succeeds 'and prints each fact once for all nodes' \
        awk '!/^(n\[1-2\]: |verdict: )/ || count[$0]++ { exit 1 }' "$work/check"
    prints 'a node that differs has a line of its own' '^n2: between nodes: TCP, UCX is not used: HVD_NET=tcp' \
        check_nodes '[ $SLURM_NODEID = 0 ] || export HVD_NET=tcp; hvd-info --check --seconds 1 --thresholds few.conf'
    as_root --node n2 sh -c 'tc qdisc add dev eth0 root tbf rate 8mbit burst 8k latency 50ms &&
        mount -o remount,size=60m /dev/shm'
    complains 'a slow link is named' '^n2 to n1: red: link: .*: check cable' \
        check_nodes 'hvd-info --check --seconds 1 --thresholds few.conf'
    succeeds 'and so is a node with a small /dev/shm' grep '^n2: yellow: shm: ' "$work/check"
    as_root --node n2 sh -c 'tc qdisc del dev eth0 root && mount -o remount,size=50% /dev/shm'
    complains 'a rank that does not find the others prints its own facts' '^n2: start: by ' \
        as_user HVD_START_TIMEOUT=2 srun --hvd -N 2 sh -c '[ $SLURM_NODEID = 0 ] || hvd-info --check'
    tap_note "$(cat "$work/output")"
    prints 'in a job, hvd-info --bug-report writes one report, with the facts of all nodes' '^verdict: ' \
        check_nodes 'hvd-info --bug-report=- && echo "key ${HVD_RENDEZVOUS##*:}"'
    succeeds 'and the report shows the job, but not its key' awk '$1 == "key" { keys[$2]; next } { text = text $0 "\n" }
        END { for (key in keys) if (length(key) < 64 || index(text, key)) exit 1
            exit gsub(/hvd bug report/, "", text) != 1 || text !~ /NumNodes=2\n/ || text !~ /SLURM_VERSION/ }' \
        "$work/check"
}

# mixed_versions SCRIPT: runs hvd-info --check on two nodes, on n2 with a libhvd of version 0.0.9, after the script. With
# -K0, srun does not kill one task when the other fails.
mixed_versions()
{
    as_user srun --hvd -K0 -N 2 --ntasks-per-node=1 sh -c "$1"'
        [ $SLURM_NODEID = 0 ] || export HVD_LIBRARY=$HOME/libhvd_other.so; exec hvd-info --check'
}

versions_are_compared()
{
    cp "$MESON_BUILD_ROOT/tests/collectives/api/libhvd_other.so" "$home/"
    chmod a+r "$home/libhvd_other.so"
    complains 'a node whose libhvd is older than its plugin is named' \
        'rank 1 on n2 was started by hvd [0-9.]+, the plugin on this node, but has hvd 0\.0\.9, .*libhvd_other\.so: install' \
        mixed_versions ''
    complains 'so is a rank whose libhvd is older than that of others' \
        'rank 1 on n2 has hvd 0\.0\.9, but this rank, 0 on n1, has hvd [0-9.]+: install the same version on both hosts' \
        mixed_versions 'unset HVD_LAUNCH_VERSION; '
}

install_hvd
start_cluster 2 --sockets 1 --cores 4 --gpus 0 --prefix "$prefix"
library=$(dirname "$(find "$prefix" -name libhvd.so -print -quit)")
cp "$programs/api/collectives_test" "$programs/core/victim" "$home/"
cat >"$home/mpi.py" <<'END'
import sys
if sys.argv[1] == 'before':
    from mpi4py import MPI
import horovod.common.basics as hvd
hvd.init()
from mpi4py import MPI
world = MPI.COMM_WORLD
print(f'{hvd.rank()}/{hvd.size()}={world.allreduce(world.rank)}')
END
chmod a+rx "$home"/*
collectives_are_right 'two nodes with two ranks each' -N 2 --ntasks-per-node=2
collectives_are_right 'three and one ranks' -N 2 -n 4 -m plane=3
prints "--hvd=report shows which rank was late on which node" '^ +[0-3]  n2 +[0-9]+ ' \
    as_user LD_LIBRARY_PATH="$library" srun --hvd=report,metrics=metrics -N 2 --ntasks-per-node=2 \
    ./collectives_test 1
prints '--hvd=metrics writes a file for each node, with the labels that Slurm gives' \
    '^hvd-[0-9]+\.0-n2\.prom:hvd_node_ranks\{job="[0-9]+",step="0",user="hvduser",node="n2"\} 2$' \
    sh -c 'cd "$1" && grep hvd_node_ranks -- *-n1.prom *-n2.prom' sh "$home/metrics"
prints 'of which the first node also tells who was late on the other' \
    '^hvd-[0-9]+\.0-n1\.prom:hvd_rank_late_batches_total\{.*node="n2",rank="3"\} ' \
    sh -c 'cd "$1" && grep hvd_rank_late_batches -- *-n1.prom *-n2.prom' sh "$home/metrics"
complains "srun without --hvd is an error that says what to type; the ranks do not start as four jobs" \
    'srun --hvd' as_user LD_LIBRARY_PATH="$library" srun -N 2 -n 4 ./collectives_test
needs_pmix complains 'ranks that cannot reach the service propose PMIx' \
    'cannot reach the rendezvous service .* HVD_START_BY=pmix starts the job without this service' \
    job -n 2 env HVD_START_TIMEOUT=1 sh -c 'HVD_RENDEZVOUS=127.0.0.1:1:${HVD_RENDEZVOUS##*:} ./collectives_test'
mpi_beside_hvd before
mpi_beside_hvd after
facts_are_folded
versions_are_compared
a_rank_dies
a_link_is_cut
tap_done
