#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab_test.sh HVDRUN HVD_BENCH PYTHON: checks the tables of the lab. All ranks run on this machine,
# whatever their server is called. Prints TAP.
hvdrun=$1 bench=$2 python=$3
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
"$python" -c 'import torch' 2>/dev/null || tap_skip_all 'no torch'
tap_begin
bench=$(realpath "$bench")
hvdrun=$(realpath "$hvdrun")

# Each is refused before a job starts, with a text that names the option: --launch would start no job.
status=0
while read -r option value; do
    "$bench" --lab --python "$python" --hvd-bench "$bench" --out "$work/lab" --launch false "$option" "$value" \
        >"$work/out" 2>&1
    if [ $? -ne 2 ] || ! grep -q -e "error: .*$option" "$work/out"; then
        tap_note "$option $value: $(cat "$work/out")"
        status=1
    fi
done <<EOF
--servers 0
--servers 1,1
--per-server x
--per-server -1
--per-server 99999999999999999999
--backends mpi
--backends horovod=/nonexistent
--model lenet
--batch 0
--steps 1.5
--turns 0
--sizes 8:4
--peers nobody
--launch
--launch {nothing}
--python /nonexistent
--out /dev/null/lab
EOF
report $status 'wrong options are refused before a job starts'
# Gloo only, because in a build tree the ranks do not find hvd's package.
"$bench" --lab --servers 1,2 --per-server 1 --backends gloo --model conv --batch 4 --steps 2 --turns 1 \
    --sizes 1K,64K --peers limit --python "$python" --hvd-bench "$bench" --out "$work/lab" \
    --launch "sh -c 'echo no such partition; exit 3'" >"$work/out" 2>&1
[ $? -eq 1 ] && grep -q 'a job failed with status 3: ' "$work/out" && grep -q '^no such partition' "$work/out"
report $? 'a job that fails ends the lab, with the output of the job'
"$bench" --lab --servers 1,2 --per-server 1 --backends gloo,alone --model conv --batch 4 --steps 2 --turns 1 \
    --sizes 1K,64K --peers "gloo=$python" --python "$python" --hvd-bench "$bench" --out "$work/lab" \
    --launch "env LAYOUT={layout} $hvdrun -np {ranks}" >"$work/out" 2>&1 &&
    "$python" - "$work/lab" >>"$work/out" 2>&1 <<'EOF'
import csv, os, sys

def rows(name):
    with open(os.path.join(sys.argv[1], name)) as file:
        return list(csv.DictReader(file))

one, _, both, apart = table = rows('training.csv')
assert (one['servers'], one['ranks'], float(one['speed_up'])) == ('1', '1', 1), one
assert (both['backend'], both['servers'], both['ranks']) == ('gloo', '2', '2'), both
assert (apart['backend'], apart['servers'], apart['ranks']) == ('alone', '2', '2'), apart
for row in table:
    assert abs(float(row['samples_s']) * float(row['step_ms']) / 1e3 - 4 * int(row['ranks'])) < 1e-6
    assert abs(float(row['efficiency']) * int(row['ranks']) - float(row['speed_up'])) < 1e-9
table = rows('allreduce.csv')
assert [(row['backend'], row['bytes']) for row in table] == [
    ('hvd', '1024'), ('gloo', '1024'), ('hvd', '65536'), ('gloo', '65536')], table
with open(os.path.join(sys.argv[1], 'training.md')) as file:
    assert len(file.readlines()) == 6
try:
    import matplotlib
except ImportError:
    sys.exit()
for name in 'training.png', 'training.svg', 'allreduce.png', 'allreduce.svg':
    assert os.path.getsize(os.path.join(sys.argv[1], name)) > 1000, name
EOF
report $? 'the lab writes tables with consistent figures, for one server and for two'
tap_done
