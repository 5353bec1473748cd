#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# info_live.sh HVD_INFO HVDRUN LIVE_RANKS PYTHON LIBHVD ROOT: hvd-info --pid tells what the ranks of hvdrun do, although
# one of them is stopped and another does not call libhvd. Without LIBHVD, Python is left out.
info=$1 hvdrun=$2 ranks=$3 python=$4 library=$5 root=$6
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
tap_begin

# says PROMISE PATTERN OPTION...: a line of hvd-info matches PATTERN, now or soon.
says()
{
    promise=$1 pattern=$2 tries=0
    shift 2
    until "$info" "$@" >"$work/out" 2>&1 && grep -Eq "$pattern" "$work/out"; do
        tries=$((tries + 1))
        [ $tries -lt 300 ] || break
        sleep 0.1
    done
    [ $tries -lt 300 ]
    report $? "$promise"
}

# refuses PROMISE STATUS PATTERN COMMAND...: the command fails with STATUS and says PATTERN.
refuses()
{
    promise=$1 expected=$2 pattern=$3
    shift 3
    "$@" >"$work/out" 2>&1
    [ $? -eq "$expected" ] && grep -Eq "$pattern" "$work/out"
    report $? "$promise"
}

"$hvdrun" -np 4 "$ranks" >"$work/ranks" 2>&1 &
job=$!
says 'a rank that waits names its tensor and the ranks that are late' \
    "^ +0 .* 2 +5  has waited [0-9.]+ s in allreduce 'gradient' for ranks 1-2$" --pid $job
says 'a rank that runs the script is named, with the time' \
    '^late: rank 1 on .* \(pid [0-9]+\), which has run the script for [0-9.]+ s$' --pid $job
says 'a stopped rank is named' '^late: rank 2 on .* which is stopped, by a signal or a debugger$' --pid $job
says 'the functions of C in which a late rank sleeps are shown' '^ +pause in libc' --pid $job --stacks
says 'the functions of the program follow' '^ +main in live_ranks$' --pid $job --stacks
says 'steps and collectives are counted' '^ +1 .* 2 +5  has run the script' --pid $job
HVD_STACKS=0 "$hvdrun" -np 4 "$ranks" >"$work/silent" 2>&1 &
silent=$!
says 'a rank without stacks is late, too' '^late: rank 1 on .* which has run the script for [1-9]' --pid $silent --stacks
! grep -q ' in libc' "$work/out"
report $? 'HVD_STACKS=0 turns stacks off'
kill -TERM $silent
says 'JSON has the late ranks' '"size": 4, "late": \[1, 2\], "missing": \[\], "ranks": \[\{"rank": 0, ' --pid $job --json
says 'JSON has the tensor' '"operation": "allreduce .gradient.", "process_set": 0, "since_s": [0-9.]+, "waits_for": \[1, 2\]' \
    --pid $job --json
one=$(pgrep -P $job -n)
says 'one rank can be asked' '^1 of 4 ranks$' --pid "$one"
says 'ranks that were not found are rows, too' ' is not there: ' --pid "$one"
# shellcheck disable=SC2016 # the shell of each rank expands it
"$hvdrun" -np 4 sh -c 'exec "$0" $((HOROVOD_RANK / 2 * 2))' "$ranks" >"$work/pairs" 2>&1 &
pairs=$!
tries=0
until "$info" --pid $pairs >"$work/out" 2>&1; [ "$(grep -cx '2 of 2 ranks' "$work/out")" -eq 2 ] || [ $tries -eq 300 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
[ $tries -lt 300 ]
report $? 'two jobs of one launch are told apart'
kill -TERM $pairs
HOROVOD_STALL_CHECK_TIME_SECONDS=1 "$hvdrun" -np 4 "$ranks" >"$work/asked" 2>&1 &
asked=$!
says 'questions of other ranks do not change how long a rank has run the script' \
    '^late: rank 1 on .* which has run the script for [4-9]\.' --pid $asked
grep -q 'rank 1 .* holds others up; its stack:' "$work/asked"
report $? 'rank 0 has asked meanwhile'
kill -TERM $asked
sleep 100 &
other=$!
refuses 'a process without ranks is an error' 1 "^hvd-info: neither process $other nor a process that it has started" \
    "$info" --pid $other
kill $other
if [ "$(id -u)" = 0 ]; then
    cp "$info" "$work/hvd-info"
    chmod a+rx "$work" "$work/hvd-info"
    refuses 'another user gets no answer' 1 'or they belong to another user' \
        setpriv --reuid 65534 --regid 65534 --clear-groups "$work/hvd-info" --pid $job
    mkdir -m 777 "$work/bin"
    cat >"$work/bin/squeue" <<'EOF'
#!/bin/sh
case $* in
*--steps*) printf '7.extern\n7.0\n7.2\n' ;;
*) echo 7 65534 1 ;;
esac
EOF
    printf '#!/bin/sh\necho $$ >"${0%%/*}/pid"\nexec sleep 100\n' >"$work/bin/srun"
    chmod a+rx "$work/bin/squeue" "$work/bin/srun"
    refuses 'a step that the job does not have is an error, with the steps that it has' 1 \
        '^hvd-info: job 7 has no running step 1, but these: extern, 0, 2: name one' \
        env PATH="$work/bin:$PATH" "$info" --job 7.1
    PATH=$work/bin:$PATH "$info" --job 7.2 >"$work/out" 2>&1 &
    asking=$!
    tries=0
    until [ -s "$work/bin/pid" ] || [ $tries -eq 100 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    kill -TERM $asking
    sleep 0.5
    ps -o stat= -p "$(cat "$work/bin/pid")" >"$work/out"
    ! grep -q '^[^Z]' "$work/out" # a zombie is at its end
    report $? 'srun as another user ends with hvd-info'
else
    tap_skip 'another user gets no answer' 'not root'
    tap_skip 'a step that the job does not have is an error' 'not root'
    tap_skip 'srun as another user ends with hvd-info' 'not root'
fi
# A pipe may have the name of a page where a process has a root directory of its own.
mkdir "$work/root"
# shellcheck disable=SC2016 # the shell in the namespace expands them
unshare --mount sh -c 'mount -t tmpfs none "$0" && mkdir "$0/old" && mkfifo "$0/memfd:hvd-live x" &&
    exec 3<>"$0/memfd:hvd-live x" 4<"$0/memfd:hvd-live x" 3>&- && pivot_root "$0" "$0/old" && echo made >&5 &&
    kill -STOP $$' "$work/root" 5>"$work/pipe" 2>/dev/null &
other=$!
tries=0
until [ -s "$work/pipe" ] || ! kill -0 $other 2>/dev/null || [ $tries -eq 100 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
if [ -s "$work/pipe" ]; then
    timeout 20 "$info" --pid $job >"$work/out" 2>&1 && grep -q '^4 of 4 ranks$' "$work/out"
    report $? 'a pipe with the name of a page does not block'
else
    tap_skip 'a pipe with the name of a page does not block' 'cannot change the root directory'
fi
kill -KILL $other 2>/dev/null
"$info" --pid $job --watch=1 >"$work/watched" 2>&1 &
watch=$!
until [ -s "$work/watched" ]; do
    sleep 0.1
done
kill -TERM $job
wait $job 2>/dev/null
wait $watch
[ $? -eq 0 ] && grep -q '^4 of 4 ranks$' "$work/watched"
report $? '--watch ends with the job'
cat >"$work/train.py" <<'EOF'
import ctypes, faulthandler, signal, sys, threading, time
import horovod.common.basics as hvd

def read_data():
    if sys.argv[1] == 'takes the handler away':
        faulthandler.unregister(signal.SIGRTMAX - 3)
    while sys.argv[1] == 'holds the GIL': # a signal ends the sleep
        ctypes.PyDLL(None).sleep(100)
    if sys.argv[1] != 'computes':
        time.sleep(100)
    while True:
        pass

hvd.init()
threading.Thread(target=time.sleep, args=(100,), daemon=True).start()
if hvd.rank() == 1:
    read_data()
hvd.should_stop()
EOF
# shows_line PROMISE HOW LINE: the stack of rank 1, which sleeps or computes in the script, begins with this line.
shows_line()
{
    PYTHONPATH=$root/contrib/python HVD_LIBRARY=$library "$hvdrun" -np 2 "$python" "$work/train.py" "$2" >"$work/ranks" 2>&1 &
    job=$!
    says "$1" "^ +File \".*/train.py\", line $3 in read_data\$" --pid $job --stacks
    says 'the calls above it follow' '^ +File ".*/train.py", line 17 in <module>$' --pid $job --stacks
    says 'functions of C follow, down to the interpreter' ' in (lib)?python3' --pid $job --stacks
    for _ in $(seq 40); do
        "$info" --pid $job --stacks >/dev/null 2>&1
    done
    one=$(sed -n 's/^late: rank 1 .*(pid \([0-9]*\)).*/\1/p' "$work/out")
    stacks=$(find "/proc/$one/fd" -lname '/memfd:hvd-stacks-*')
    stat -L -c '%b blocks of %s bytes' "$stacks" >"$work/out"
    [ "$(stat -L -c %s "$stacks")" -gt 4096 ] && [ "$(stat -L -c %b "$stacks")" -le 8 ]
    report $? 'older stacks take no memory of the job'
    kill -TERM $job
    wait $job 2>/dev/null
}

if [ -n "$library" ] && "$python" -c 'import numpy, cloudpickle' 2>/dev/null; then
    shows_line 'the line in which a late rank sleeps is shown' sleeps 10
    shows_line 'the line in which a late rank holds the GIL is shown' 'holds the GIL' 8
    shows_line 'the line in which a late rank computes is shown' computes 12
    PYTHONPATH=$root/contrib/python HVD_LIBRARY=$library "$hvdrun" -np 2 "$python" "$work/train.py" 'takes the handler away' \
        >"$work/ranks" 2>&1 &
    job=$!
    says 'a rank without the handler is named' '^late: rank 1 on .* has run the script for [1-9]' --pid $job
    "$info" --pid $job --stacks >/dev/null 2>&1
    sleep 0.5
    says 'a rank without the handler gets no signal' '^2 of 2 ranks$' --pid $job
    kill -TERM $job
    wait $job 2>/dev/null
else
    tap_skip 'the line in which a late rank sleeps is shown' 'no numpy and cloudpickle, or a sanitizer'
fi
refuses '--stacks needs ranks to ask' 2 '^hvd-info: --stacks needs --job or --pid' "$info" --stacks
refuses 'no option but these may be given' 2 '^hvd-info: --job or --pid: expected no other option' \
    "$info" --pid 1 --ranks 2
refuses '--json needs ranks to ask' 2 '^hvd-info: --json needs --job, --pid, --check or --nccl' "$info" --json
refuses '--watch needs ranks to ask' 2 '^hvd-info: --watch needs --job or --pid' "$info" --watch
refuses 'a wrong job is refused' 2 "^hvd-info: --job: expected a job, or a step of a job, .* found '1.x'" "$info" --job 1.x
refuses 'a job and a process are too much' 2 '^hvd-info: expected one of --job and --pid' "$info" --job 1 --pid 1
tap_done
