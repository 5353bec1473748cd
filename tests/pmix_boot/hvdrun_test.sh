#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# hvdrun from the user's view: exit codes, messages, signals and output; and it leaves nothing behind.
# usage: hvdrun_test.sh HVDRUN BOOT_CLIENT HVD_RENDEZVOUS FIRST_CAUSE
# shellcheck disable=SC2016 # $ expands in the ranks
. "$(dirname "$0")/../cluster/harness.sh"
. "$(dirname "$0")/launch.sh"
hvdrun=$1 client=$2 service=$3 first_cause=$4

# Restores the default action of SIGINT: a shell makes its background jobs ignore SIGINT, and timeout passes
# that on since coreutils 9.8.
run()
{
    timeout -k 5 "$limit" env --default-signal=INT "$hvdrun" "$@"
}

# A command of a rank: $await 'REGEX' waits until hvdrun has printed a line that matches.
await="sh -c 'until grep -q \"\$0\" $work/output; do sleep 0.05; done'"

# split COMMAND OTHER: rank 1 runs COMMAND, the other two run OTHER.
split()
{
    run -np 3 sh -c 'if [ "$HOROVOD_RANK" = 1 ]; then eval "$0"; else eval "$1"; fi' "$1" "$2"
}

# Finds processes of a job by the number of seconds that they sleep, which is unique: this test may run
# several times at once. Killed processes may take a moment to disappear.
export LONG=9$$

sleepers()
{
    pgrep -f "^sleep $LONG\$"
}

none_sleeps()
{
    ! sleepers
}

# Runs a command as a user without a passwd entry, as in many containers.
unknown_user()
{
    env -u HOME unshare --user --map-user=54321 timeout -k 5 "$limit" "$@"
}

unknown_users()
{
    local promise="a user without a passwd entry and HOME"
    if unknown_user true 2>/dev/null; then
        returns "$promise: ranks run and find each other" 0 '^rank 1/2 ' \
            unknown_user "$hvdrun" -np 2 "$client" show
    else
        tap_skip "$promise" 'needs user namespaces'
    fi
}

# --- how a job ends ---

exit_codes()
{
    returns "a job of ranks that succeed returns 0" 0 '' run -np 3 true
    mkfifo "$work/fails"
    returns "the first failure is named and its code returned" 7 \
        '^hvdrun: rank 1 \(pid [0-9]+\) exited with status 7; the other ranks were ended$' \
        split "read -r _ <'$work/fails'; exit 7" "[ \$HOROVOD_RANK != 0 ] || echo >'$work/fails'; sleep $LONG"
    returns "the first signal is named and returned as 128 + its number" 139 \
        '^hvdrun: rank 1 \(pid [0-9]+\) was killed by signal 11 \(Segmentation fault\);' \
        split 'kill -SEGV $$' 'sleep $LONG'
    returns "a rank that fails because another died is not named as the first" 137 \
        '^hvdrun: rank 1 .* was killed by signal 9' \
        split 'kill -9 $$' 'trap "exit 5" TERM; sleep $LONG & wait'
    # Rank 1 ends and stays a zombie. When hvdrun has then forwarded two lines of another rank, it has also
    # handled the end of rank 1.
    returns "a rank that exits with 0 does not end the others" 0 '^both others$' \
        split "echo \$\$ >'$work/pid'; mv '$work/pid' '$work/first'" \
        "until grep -q '^State:.Z' /proc/\$(cat '$work/first')/status; do sleep 0.05; done
         for i in 1 2; do line=\"rank \$HOROVOD_RANK sees it \$i\"; echo \"\$line\"; $await \"\$line\"; done
         echo both others"
    returns "a command that does not exist returns 127" 127 \
        '^hvdrun: cannot run nosuchcommand: No such file or directory$' run -np 2 nosuchcommand
    returns "a command that cannot be run returns 126" 126 '^hvdrun: cannot run /etc/passwd: Permission' \
        run -np 2 /etc/passwd
    succeeds "no rank is left" waits_for none_sleeps
}

# A rank ends before hvd_init, or in it. hvd_init of the other ranks then fails long before its time limit.
early_ends()
{
    returns "a rank that exits before hvd_init is named" 7 '^hvdrun: rank 1 \(pid [0-9]+\) exited with status 7;' \
        split 'exit 7' "exec $client show 120"
    returns "the others are told, even if it exits with 0" 0 '' split true "$client show 120 || :"
    counts "both other ranks are told" 2 '^error -5: rank 1 exited with status 0 and did not call init'
    HOROVOD_LOG_LEVEL=debug returns "the others are told of a rank that dies in hvd_init" 0 '' \
        split "$client show 120 & $await 'rank 1 on .* is here'; kill -9 \$!" \
        "$await 'rank 1 on .* is gone'; $client show 120 || :"
    counts "whether they wait already or come later" 2 '^error -5: rank 1 (on .*)?has ended'
}

# hvdrun must name the rank that failed first. The rank that ends first often only noticed that failure.
first_causes()
{
    returns "a rank that leaves the others is named, not the ranks that notice" 3 \
        '^hvdrun: rank 1 \(pid [0-9]+\) exited with status 3; the other ranks were ended$' \
        run -np 3 "$first_cause" 1 leave 3
    counts "the ranks that notice have time to print why they end" 2 '^rank [02] ends: rank 1 on .* Horovod has been shut down'
    returns "a rank that exits is named" 4 '^hvdrun: rank 2 \(pid [0-9]+\) exited with status 4;' \
        run -np 3 "$first_cause" 2 exit 4
    counts "the others print which rank it was" 2 '^rank [01] ends: .*rank 2 on '
    returns "a rank that is killed is named" 137 '^hvdrun: rank 0 \(pid [0-9]+\) was killed by signal 9' \
        run -np 3 "$first_cause" 0 kill 9
    counts "the others print which rank was killed" 2 '^rank [12] ends: .*rank 0 on '
    returns "a rank that cannot join the job is named, not the ranks that wait for it" 5 \
        '^hvdrun: rank 1 \(pid [0-9]+\) exited with status 5: there is no rank 100: ' \
        run -np 3 env HVD_START_TIMEOUT=3 "$first_cause" 1 init 5
    returns "a rank that exits with 0 before the others are done is named" 1 \
        '^hvdrun: rank 1 \(pid [0-9]+\) exited with status 0 before the others were done; the other' \
        run -np 3 "$first_cause" 1 exit 0
    returns "a rank that shuts hvd down first, then exits with 0, is named" 1 \
        "^hvdrun: rank 2 \(pid [0-9]+\) exited with status 0 while rank [01] was in .*: did its script end early, or have less data\? See hvd.join" \
        run -np 3 "$first_cause" 2 leave 0
    returns "a rank that fails for its own reason is named, if it could do without a result that others did not give" 3 \
        '^hvdrun: rank 1 \(pid [0-9]+\) exited with status 3; the other ranks were ended$' \
        run -np 2 "$first_cause" 1 spare 3
    returns "a rank that is stopped is named" 1 \
        '^hvdrun: rank 1 \(pid [0-9]+\) stopped responding .*: rank 1 on [^ ]+ does not answer: .* stopped' \
        run -np 3 env HOROVOD_STALL_CHECK_TIME_SECONDS=1 HOROVOD_STALL_SHUTDOWN_TIME_SECONDS=2 \
        "$first_cause" 1 kill "$(kill -l STOP)"
}

few_descriptors()
{
    (ulimit -n 10; run -np 3 sleep 1)
}

stubborn_ranks()
{
    returns "a limit of descriptors that is too low is named as the reason" 1 \
        '^hvdrun: cannot open a pipe to rank [0-9]: Too many open files; raise ulimit -n$' few_descriptors
    returns "ranks that ignore SIGTERM are killed" 3 'rank 1 .* exited with status 3' \
        split 'sleep 0.3; exit 3' 'trap "" TERM; sleep $LONG; sleep $LONG'
    returns "children of ranks end with the job" 0 '' \
        run -np 2 sh -c 'sleep $LONG >/dev/null 2>&1 & exit 0'
    returns "children that hold the output open end with the job" 0 '' run -np 2 sh -c 'sleep $LONG & exit 0'
    succeeds "no process is left" waits_for none_sleeps
}

# in_background SCRIPT: runs SCRIPT as two ranks. Sets $pid, the pid of hvdrun, and $job, for wait.
in_background()
{
    rm -f "$work"/pid.*
    run -np 2 sh -c 'echo $PPID >"$0.$HOROVOD_RANK"; eval "$1"' "$work/pid" "$1" \
        >"$work/output" 2>&1 </dev/null &
    job=$!
    waits_for test -s "$work/pid.0" -a -s "$work/pid.1"
    pid=$(cat "$work/pid.0")
}

# interrupt SIGNAL CODE: sends the signal to a running job.
interrupt()
{
    local status=0
    in_background 'trap "echo got it; exit 0" '"$1"'; touch "$0.$HOROVOD_RANK.set"
        while :; do sleep 0.1; done'
    waits_for test -e "$work/pid.0.set" -a -e "$work/pid.1.set"
    kill -s "$1" "$pid"
    wait "$job" || status=$?
    counts "all ranks get SIG$1" 2 '^got it$'
    succeeds "SIG$1 gives exit code $2 (found $status)" test "$status" = "$2"
}

killed_hvdrun()
{
    in_background 'sleep $LONG & sleep $LONG; wait'
    waits_for test_sleepers 4
    kill -9 "$pid"
    wait "$job"
    succeeds "ranks and their children die when hvdrun is killed" \
        waits_for none_sleeps
    succeeds "its directory is removed, too" waits_for is_clean
}

test_sleepers()
{
    [ "$(sleepers | wc -l)" = "$1" ]
}

# --- environment and output of ranks ---

environment()
{
    returns "ranks get Horovod's variables" 0 '^2 3 2 3 0 1 1 host 1$' run -np 3 env HOROVOD_HOSTNAME=host \
        sh -c 'echo $HOROVOD_RANK $HOROVOD_SIZE $HOROVOD_LOCAL_RANK $HOROVOD_LOCAL_SIZE \
            $HOROVOD_CROSS_RANK $HOROVOD_CROSS_SIZE $HVD_LAUNCH $HOROVOD_HOSTNAME $PYTHONUNBUFFERED'
    torch_environment
    returns "options become variables, over those of the shell" 0 '^67108864 1$' \
        env HOROVOD_FUSION_THRESHOLD=1 "$hvdrun" -np 1 --fusion-threshold-mb 64 --autotune \
        sh -c 'echo $HOROVOD_FUSION_THRESHOLD $HOROVOD_AUTOTUNE'
    returns "variables of an outer launch are removed" 0 "^none $TMPDIR/\$" \
        env PMIX_NAMESPACE=outer PMIX_RANK=5 PMIX_FOREIGN=1 SLURM_HVD_ERROR=old HVD_RENDEZVOUS=outer:1:0 "$hvdrun" \
        -np 1 sh -c 'echo none$PMIX_NAMESPACE$PMIX_RANK$PMIX_FOREIGN$SLURM_HVD_ERROR ${HVD_RENDEZVOUS%%hvdrun*}'
    returns "ranks are bound to cpus that exist, also if there are more ranks than cpus" 0 '^bound$' \
        run -np 5 sh -c 'grep -Eq "^Cpus_allowed_list:[[:space:]]$HVD_CPUS\$" /proc/self/status && echo bound'
    returns "--bind=none does not bind ranks" 0 '' run --bind none -np 2 true
    returns "--verbose shows the plan" 0 'rank' run --verbose -np 2 true
    returns "ranks have only their three streams open" 0 '^3$' run -np 4 ls /proc/self/fd
    counts "ranks have none of hvdrun's descriptors" 0 '^[^0-3]|..'
    returns "rank 0 reads hvdrun's input; the others get an empty one" 0 '^0 words$' \
        sh -c 'echo words | "$0" -np 2 sh -c "read -r line; echo \$HOROVOD_RANK \$line"' "$hvdrun"
}

torch_environment()
{
    returns "ranks get variables of torch.distributed, over those of the shell" 0 '^2 3 2 3 0 0 127.0.0.1$' \
        env -u MASTER_ADDR RANK=0 WORLD_SIZE=1 "$hvdrun" -np 3 \
        sh -c 'echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $GROUP_RANK $NODE_RANK $MASTER_ADDR'
    returns "the user's own address, port and numbers of threads stay" 0 '^there 7 5 6$' \
        env MASTER_ADDR=there MASTER_PORT=7 OMP_NUM_THREADS=5 MKL_NUM_THREADS=6 "$hvdrun" -np 1 \
        sh -c 'echo $MASTER_ADDR $MASTER_PORT $OMP_NUM_THREADS $MKL_NUM_THREADS'
    returns "MKL_NUM_THREADS stays unset if the user set OMP_NUM_THREADS" 0 '^5 none$' \
        env -u MKL_NUM_THREADS OMP_NUM_THREADS=5 "$hvdrun" -np 1 sh -c 'echo $OMP_NUM_THREADS ${MKL_NUM_THREADS-none}'
    returns "ranks have no more threads than there are cores for all of them" 0 '^rank 2: fine$' \
        env -u OMP_NUM_THREADS -u MKL_NUM_THREADS "$hvdrun" --bind none -np 3 \
        sh -c 'test $((OMP_NUM_THREADS * 3)) -le $(nproc --all) -o $MKL_NUM_THREADS = 1 && echo rank $RANK: fine'
    returns "an hvdrun inside a rank sets its own port and numbers of threads" 0 '^rank 0 of 1, 1 thread$' \
        env -u MASTER_PORT OMP_NUM_THREADS=1 "$hvdrun" -np 2 sh -c 'OUTER=$MASTER_PORT exec "$0" -np 1 sh -c "
            test \$OUTER -ne \$MASTER_PORT && echo rank \$RANK of \$WORLD_SIZE, \$OMP_NUM_THREADS thread"' "$hvdrun"
    counts "in each outer rank" 2 '^rank 0 of 1, 1 thread$'
}

# nccl_variables COMMAND...: runs it for ranks that print their variables of NCCL.
nccl_variables()
{
    "$@" sh -c 'echo "$HOROVOD_RANK $NCCL_DEBUG_FILE $NCCL_DEBUG $NCCL_RAS_ENABLE in $HVD_NCCL_FILES"'
}

nccl_files()
{
    local outer=$work/nccl/outer inner=$work/nccl/inner
    returns "--nccl-files: each rank gets its own file for NCCL's warnings" 0 \
        "^1 $outer/nccl.1.%h.%p WARN 1 in $outer\$" nccl_variables run -np 2 --nccl-files "$outer"
    succeeds "--nccl-files makes the folder" test -d "$outer"
    returns "HVD_NCCL_FILES does the same; a relative path becomes absolute" 0 \
        "^0 $work/nccl/inner/nccl.0.%h.%p WARN 1 in $inner\$" \
        nccl_variables env -C "$work" HVD_NCCL_FILES=nccl/inner "$(realpath "$hvdrun")" -np 1
    returns "variables of NCCL that the user set stay" 0 "^1 /mine INFO 0 in $outer\$" \
        nccl_variables env NCCL_DEBUG_FILE=/mine NCCL_DEBUG=INFO NCCL_RAS_ENABLE=0 \
        "$hvdrun" -np 2 --nccl-files "$outer"
    returns "a launch inside another one uses its own folder and ranks" 0 \
        "^0 $inner/nccl.0.%h.%p WARN 1 in $inner\$" nccl_variables run -np 2 --nccl-files "$outer" \
        "$hvdrun" -np 1 --nccl-files "$inner"
    returns "there, too, a file that the user set stays" 0 "^0 /mine WARN 1 in $inner\$" \
        nccl_variables run -np 2 --nccl-files "$outer" env NCCL_DEBUG_FILE=/mine \
        "$hvdrun" -np 1 --nccl-files "$inner"
    returns "a folder that cannot be made is an error that names it" 1 \
        '^hvdrun: cannot make /dev/null/logs for NCCL.s messages: ' run -np 2 --nccl-files /dev/null/logs true
}

output()
{
    returns "lines of ranks do not mix" 0 '' run -np 4 sh -c '
        for i in 1 2 3 4 5 6 7 8 9 10; do printf "%s" "begin "; printf "%s\n" "end"; done'
    counts "all forty lines are whole" 40 '^begin end$'
    returns "a last line without a newline is passed on" 0 'tail' run -np 1 printf tail
    returns "--prefix-output names rank and stream" 0 '^\[1\]<stderr>: bad$' \
        run --prefix-output -np 2 sh -c 'echo good; echo bad >&2'
    counts "the prefix is on each line" 2 '^\[[01]\]<stdout>: good$'
    returns "-prefix-timestamp adds the time" 0 \
        '^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}\.[0-9]{3} \[0\]<stdout>: good$' \
        run -prefix-timestamp -np 1 echo good
    returns "--output-filename writes a copy" 0 '^out 9$' \
        run --output-filename "$work/logs" -np 11 sh -c 'echo out $HOROVOD_RANK; echo err >&2'
    succeeds "there is a copy for each rank and stream" \
        test "$(cat "$work/logs/rank.09/stdout" "$work/logs/rank.10/stderr")" = "$(printf 'out 9\nerr')"
    full_disk
    returns "binary output arrives unchanged" 0 '' run -np 1 cat "$client"
    cp "$work/output" "$work/copy"
    succeeds "every byte of the output arrives" cmp "$work/copy" "$client"
    returns "a closed output ends the job" 0 '^first$' \
        sh -c '"$0" -np 2 sh -c "echo first; while :; do echo more; sleep 0.05; done" 2>/dev/null | head -n 1' \
        "$hvdrun"
}

# hvdrun logs output that it cannot write, and the job goes on.
full_disk()
{
    local rank
    for rank in 0 1; do
        mkdir -p "$work/full/rank.$rank"
        ln -sf /dev/full "$work/full/rank.$rank/stdout"
    done
    returns "a full disk under --output-filename does not end the job" 0 '^still here 1$' \
        run --output-filename "$work/full" -np 2 \
        sh -c 'for i in 1 2 3; do echo $i; sleep 0.1; done; echo still here $HOROVOD_RANK; echo said >&2'
    counts "one warning names the file and the reason" 1 \
        "cannot write $work/full/rank.[01]/stdout \(--output-filename\): No space left on device; the job goes on"
    counts "no line is lost on the terminal" 2 '^still here [01]$'
    succeeds "a file on another disk is still written" grep -qx said "$work/full/rank.1/stderr"
    returns "a full disk under hvdrun's own output does not end the job" 0 \
        'cannot write the output of ranks: No space left' \
        sh -c '"$0" -np 2 sh -c "echo lost" >/dev/full' "$hvdrun"
}

# --- users, ports and directories ---

strangers()
{
    returns "the service of a job has no port; its directory is closed to other users" 0 '^700 /.*:0:' \
        run -np 1 sh -c 'echo $(stat -c %a "$(dirname "${HVD_RENDEZVOUS%:0:*}")") ${HVD_RENDEZVOUS%:*}:'
    returns "ranks find each other with a TMPDIR that has a long name" 0 '^rank 1/2 .* wrong 0 ' \
        sh -c 'TMPDIR=$0/$(printf "%0100d" 0) && export TMPDIR && mkdir "$TMPDIR" && "$@"; status=$?
            rmdir "$TMPDIR"; exit $status' "$work" "$hvdrun" -np 2 "$client" show
    returns "ranks find each other with a relative TMPDIR, and one with commas and colons" 0 '^rank 1/2 .* wrong 0 ' \
        sh -c 'cd "$0" && mkdir "a,b:c" && TMPDIR=a,b:c "$@" && TMPDIR=$PWD/a,b:c && export TMPDIR && "$@"
            status=$?; rmdir "a,b:c"; exit $status' "$work" "$(realpath "$hvdrun")" -np 2 "$(realpath "$client")" show
    counts "ranks find each other both times" 2 '^rank 1/2 .* wrong 0 '
}

other_user()
{
    if [ "$(id -u)" != 0 ]; then
        tap_skip "an ordinary user can run hvdrun" "this is an ordinary user"
        return
    fi
    mkdir -m 711 "$work/user" "$work/user/bin" "$work/user/rendezvous"
    cp "$hvdrun" "$client" "$work/user/bin/"
    cp "$service" "$work/user/rendezvous/"
    succeeds "an ordinary user can run hvdrun" setpriv --reuid 65534 --regid 65534 --clear-groups \
        timeout "$limit" "$work/user/bin/hvdrun" -np 3 "$work/user/bin/boot_client" show
    counts "the ordinary user's ranks find each other" 3 '^rank ./3 .* wrong 0 '
}

# Another user of the machine listens on the port that a rank names in $work/asked.
port_thief()
{
    local port
    read -r port <"$work/asked"
    exec setpriv --reuid 65534 --regid 65534 --clear-groups timeout "$limit" python3 -c '
import signal, socket, sys
thief = socket.socket()
thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
thief.bind(("", int(sys.argv[1])))
thief.listen()
print("taken", flush=True)
signal.pause()' "$port" >"$work/taken"
}

# Rank 0 asks the thief to take the port in the variable that $1 names, and then binds to it as torch does.
robbed_rank='
echo "${!1}" >"$0/asked"
read -r _ <"$0/taken"
exec python3 -c "
import socket, sys
store = socket.socket(socket.AF_INET)
store.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
store.bind((str(), int(sys.argv[1])))
store.listen()" "${!1}"'

# robbed PROMISE REGEX VARIABLE COMMAND...: the thief takes the port that VARIABLE holds in rank 0; COMMAND
# then exits with 1, and its output matches.
robbed()
{
    local thief
    port_thief &
    thief=$!
    returns "$1" 1 "$2" "${@:4}" bash -c "$robbed_rank" "$work" "$3"
    kill "$thief"
    wait "$thief" 2>/dev/null
}

taken_ports()
{
    local taken='^hvdrun: MASTER_PORT [0-9]+, which hvd had reserved for this job, is in use by'
    local port

    returns "a rank fails for another reason" 3 'rank 0 .* status 3' \
        env -u MASTER_PORT "$hvdrun" -np 1 sh -c 'exit 3'
    counts "then hvdrun does not mention the port" 0 'MASTER_PORT'
    if [ "$(id -u)" != 0 ]; then
        tap_skip "a rank cannot bind to a port that another user has taken" 'needs root, to be another user'
        return
    fi
    mkfifo "$work/asked" "$work/taken"
    robbed "a rank cannot bind to a port that another user has taken" 'Address already in use' \
        MASTER_PORT env -u MASTER_PORT "$hvdrun" -np 1
    counts "hvdrun names the user and what to do" 1 "$taken user 65534( \([a-z]+\))?: start the job again\$"
    cp "$work/output" "$work/robbed"
    prints "the last line still names the rank" '^hvdrun: rank 0 .* exited with status 1$' tail -n 1 "$work/robbed"
    port=$(env -u MASTER_PORT "$hvdrun" -np 1 sh -c 'echo $MASTER_PORT')
    robbed "another user has taken a port that hvdrun did not give to ranks" 'Address already in use' \
        HVD_PORT env MASTER_PORT=7 HVD_PORT="$port" HVD_PORT_RANGE="$port-$port" "$hvdrun" -np 1
    counts "hvdrun does not mention that port" 0 "MASTER_PORT $port"
}

temporary_directory()
{
    complains "a TMPDIR that cannot be used is named" 'cannot make a directory in /nonexistent' \
        env TMPDIR=/nonexistent "$hvdrun" -np 1 true
    returns "two jobs run at the same time" 0 '' \
        sh -c '"$0" -np 2 "$1" show & "$0" -np 2 "$1" show; wait' "$hvdrun" "$client"
    counts "each has its own ranks" 4 '^rank ./2 .* wrong 0 '
}

moved_tree()
{
    mkdir -p "$work/moved/bin" "$work/moved/rendezvous" "$work/moved/lib/hvd/python/horovod"
    cp "$hvdrun" "$work/moved/bin/"
    cp "$service" "$work/moved/rendezvous/"
    touch "$work/moved/lib/hvd/python/horovod/__init__.py"
    returns "ranks find the front end of an installed tree that was moved" 0 \
        "^$work/moved/bin/../lib/hvd/python(:|\$)" \
        "$work/moved/bin/hvdrun" -np 1 sh -c 'echo "$PYTHONPATH"'
}

other_hosts()
{
    mkdir "$work/bin"
    returns "without mpirun and prterun, other hosts are rejected; the error names what to install" 1 \
        'neither is in PATH' env PATH="$work/bin" "$hvdrun" -np 2 -H elsewhere:2 true
    printf '#!/bin/sh\necho "$0 $*, $HOROVOD_CYCLE_TIME"\n' >"$work/bin/mpirun"
    chmod +x "$work/bin/mpirun"
    returns "mpirun gets the ranks, hosts, settings and command" 0 \
        "^$work/bin/mpirun -np 2 --host elsewhere:2 --bind-to none .*-x HOROVOD_CYCLE_TIME .*--quiet true, 5\$" \
        env PATH="$work/bin" "$hvdrun" -np 2 -H elsewhere:2 --cycle-time-ms 5 --mpi-args=--quiet true
    printf '#!/bin/sh\necho "outer:$HVD_RENDEZVOUS$SLURM_HVD_RENDEZVOUS$HOROVOD_ELASTIC"\n' >"$work/bin/mpirun"
    returns "mpirun does not get the service of an outer job" 0 '^outer:$' \
        env PATH="$work/bin" HVD_RENDEZVOUS=127.0.0.1:9:0 SLURM_HVD_RENDEZVOUS=:9:0 HOROVOD_ELASTIC=1 \
        "$hvdrun" -np 2 -H elsewhere:2 true
}

# Inside a job of another batch system, hvdrun starts the ranks on the hosts of the job.
batch_systems()
{
    local lsf=(LSB_JOBID=7 "LSB_DJOB_HOSTFILE=$work/hosts" 'LSB_MCPU_HOSTS=elsewhere 2 other 1 '
        'LSB_HOSTS=elsewhere elsewhere other' LSB_DJOB_NUMPROC=3)
    printf 'elsewhere\nelsewhere\nother\n' >"$work/hosts"
    printf '#!/bin/sh\necho "$*"\n' >"$work/bin/mpirun"
    returns "in an LSF job, all of its slots get ranks" 0 '^-np 3 --host elsewhere:2,other:1 --bind-to none ' \
        env PATH="$work/bin" "${lsf[@]}" "$hvdrun" true
    counts "the file of hosts and the number of ranks are named" 1 \
        "^hvdrun: starting 3 ranks without -np: LSB_DJOB_HOSTFILE $work/hosts has 3 slots on 2 hosts\$"
    returns "in a PBS job, -np takes the first hosts" 0 '^-np 2 --host elsewhere:2 --bind-to none ' \
        env PATH="$work/bin" PBS_JOBID=7 PBS_NODEFILE="$work/hosts" "$hvdrun" -np 2 true
    returns "a PBS job of this machine alone needs no mpirun" 0 '^rank 1/2 ' \
        env PBS_NODEFILE=<(hostname) "$hvdrun" -np 2 "$client" show
    returns "too many ranks are refused, with the file and its slots" 2 \
        "^hvdrun: -np 4: PBS_NODEFILE $work/hosts has only 3 slots on 2 hosts;" \
        env PBS_NODEFILE="$work/hosts" "$hvdrun" -np 4 true
    printf '#!/bin/sh\n' >"$work/bin/jsrun"
    chmod +x "$work/bin/jsrun"
    returns "an LSF job with jsrun leaves the ranks to jsrun" 2 \
        "^hvdrun: this LSF job has $work/bin/jsrun: start the ranks with it, such as jsrun -n N -g 1 train;" \
        env PATH="$work/bin" "${lsf[@]}" "$hvdrun" -np 2 train
    rm "$work/bin/jsrun"
}

about()
{
    returns "--help names every option group" 0 '--output-filename DIR' "$hvdrun" --help
    returns "--version" 0 '^[0-9]+\.[0-9]+\.[0-9]+$' "$hvdrun" --version
    returns "--check-build prints boxes" 0 '^    \[X\] hvd \(ranks through PMIx or hvd-rendezvous\)$' \
        "$hvdrun" --check-build
    counts "and those of Gloo as gloo_built() does" 2 '^    \[X\] Gloo$'
    mkdir -p "$work/python"
    printf '#!/bin/sh\n:\n' >"$work/python/python"
    chmod +x "$work/python/python"
    returns "--check-build names the python of PATH" 0 "^Python: $work/python/python\$" \
        env PATH="$work/python:$PATH" "$hvdrun" --check-build
    counts "and asks it for modules" 1 '^    \[X\] MXNet$'
    returns "an option that is not accepted says what to do" 2 'start the ranks with jsrun itself' \
        "$hvdrun" --jsrun -np 4 true
}

exit_codes
unknown_users
first_causes
early_ends
stubborn_ranks
interrupt INT 130
interrupt TERM 143
killed_hvdrun
environment
nccl_files
output
other_user
strangers
taken_ports
temporary_directory
moved_tree
other_hosts
batch_systems
about
succeeds "nothing is left in TMPDIR" is_clean
tap_done
