#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# hvd-info --nccl: what it prints for files as NCCL writes them, and its errors.
# usage: info_nccl.sh HVD_INFO
set -u
info=$1
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
tap_begin
out=$work/out
job=$work/job

# warn RANK NODE SECOND TEXT: a warning as NCCL 2.26 and later write it, after an empty line.
warn() {
    printf '\n[2026-11-29 10:00:0%s] %s:1%s:1%s [0] misc/socket.cc:51 (ncclSocketRecv) NCCL WARN %s\n' \
        "$3" "$2" "$1" "$1" "$4" >>"$job/nccl.$1.$2.1$1"
}

# prints PROMISE ARGUMENT...: hvd-info prints standard input, and succeeds.
prints() {
    promise=$1
    shift
    cat >"$work/wanted"
    "$info" "$@" >"$out" 2>&1 && diff "$work/wanted" "$out" >&2
    report $? "$promise"
}

# refuses PROMISE STATUS WORDS ARGUMENT...: hvd-info fails with STATUS and a message that has the words.
refuses() {
    promise=$1
    status=$2
    words=$3
    shift 3
    "$info" "$@" >"$out" 2>&1
    [ $? -eq "$status" ] && grep -qF -e "$words" "$out"
    report $? "$promise"
}

mkdir "$job"
for rank in 0 1 2 3; do
    warn $rank n1 2 "Call to ibv_reg_mr failed with error Cannot allocate memory errno 12"
done
warn 4 n2 7 'socketProgress: Connection closed by remote peer n1.site<10.0.0.1<4711>>'
warn 5 n2 5 'socketProgress: Connection closed by remote peer n1.site<10.0.0.1<48>>'
warn 5 n2 6 'socketProgress: Connection closed by remote peer n1.site<10.0.0.1<9>>'
echo 'n3:17:17 [0] init.cc:9 NCCL WARN Something "new"' >"$job/nccl.-.n3.17"
echo 'n3:16:16 [0] NCCL INFO Bootstrap: Using eth0' >"$job/nccl.7.n3.16"
echo 'n3:1:1 [0] NCCL WARN not of this job' >"$job/notes.txt"
mkdir "$job/inspector"

prints 'one paragraph for each kind, the earliest first' --nccl "$job" <<END
$job: 8 files of 7 ranks and 1 process on n[1-3]; 3 kinds of warning, the earliest first
ranks without a file, because they did not start NCCL or wrote elsewhere: 6

4 ranks (0-3) on n1, 4 times, first at 2026-11-29 10:00:02 by rank 0 on n1:
    Call to ibv_reg_mr failed with error Cannot allocate memory errno 12
    what to do: the InfiniBand card may not lock enough memory: ulimit -l must be unlimited; in Slurm also \
LimitMEMLOCK=infinity of slurmd.service

2 ranks (4-5) on n2, 3 times, first at 2026-11-29 10:00:05 by rank 5 on n2:
    socketProgress: Connection closed by remote peer n1.site<10.0.0.1<48>>
    what to do: another rank has ended or given up (ncclRemoteError): this is a consequence; the cause is an \
earlier warning, or in the output of that rank

1 process on n3, 1 time, such as by process 17 on n3:
    Something "new"
END
"$info" --nccl "$job" --json >"$out" 2>&1 && [ "$(wc -l <"$out")" = 1 ] &&
    python3 - "$out" "$job" <<'END'
import json
import sys

with open(sys.argv[1]) as file:
    found = json.load(file)
first, second, third = found['warnings']
assert found['directory'] == sys.argv[2] and found['file_count'] == 8, found
assert found['ranks'] == '0-5,7' and found['nodes'] == 'n[1-3]' and found['missing_ranks'] == '6', found
assert found['rank_count'] == 7 and found['unknown_rank_count'] == 1 and found['repeated_ranks'] == '', found
assert first['ranks'] == '0-3' and first['nodes'] == 'n1' and first['count'] == 4, first
assert first['first_time'] == '2026-11-29 10:00:02' and 'ulimit -l' in first['advice'], first
assert second['rank_count'] == 2 and second['first_node'] == 'n2' and second['first_rank'] == 5, second
assert third['text'] == 'Something "new"' and third['advice'] == '' and third['first_time'] == '' and third['first_rank'] == -1, third
END
report $? '--json prints the same as one line of JSON'

mkdir "$work/old"
for text in 'one thing' 'another thing'; do
    echo "n1:1:1 [0] init.cc:9 NCCL WARN $text" >>"$work/old/nccl.0.n1.1"
done
prints 'without times, the report claims no order' --nccl "$work/old" <<END
$work/old: 1 file of 1 rank on n1; 2 kinds of warning

1 rank (0) on n1, 1 time, such as by rank 0 on n1:
    another thing

1 rank (0) on n1, 1 time, such as by rank 0 on n1:
    one thing
END

refuses 'a folder that does not exist is an error' 1 "cannot read the folder $work/none: " --nccl "$work/none"
refuses 'a folder without files of NCCL is an error' 1 \
    "$job/inspector has no file nccl.RANK.HOST.PID" --nccl "$job/inspector"
refuses 'a file in place of the folder is an error' 1 'Not a directory' --nccl "$job/notes.txt"
refuses 'an empty name is an error' 2 "--nccl: expected a folder, found ''" --nccl ''
refuses '--nccl takes no option of another action' 2 '--nccl: expected no other option' --nccl "$job" --ranks 2
refuses '--nccl needs a folder' 2 '--nccl needs a value' --nccl

mkdir "$work/odd"
: >"$work/odd/nccl.0.n1.1"
mkfifo "$work/odd/nccl.1.n1.2"
timeout 60 "$info" --nccl "$work/odd" >"$out" 2>&1 &&
    grep -q 'cannot read the file of rank 1 on n1, process 2' "$out" && grep -q '; no warnings of NCCL$' "$out"
report $? 'a file that cannot be read is named and left out; a pipe does not block'
tap_done
