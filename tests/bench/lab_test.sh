#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lab_test.sh HVDRUN HVD_BENCH PYTHON: checks the tables of the lab. All ranks run on this machine,
# whatever their server is called. Prints TAP.
hvdrun=$1 bench=$2 python=$3
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
"$python" -c 'import torch' 2>/dev/null || tap_skip_all 'no torch'
tap_begin
for name in $(env | sed -n 's/^\(HVD_[A-Z_]*\)=.*/\1/p'); do
    unset "$name" # the lab records those that are set
done
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
--python false
--out /dev/null/lab
EOF
report $status 'wrong options are refused before a job starts'
# Each start of a job leaves a line; the third one fails.
cat >"$work/launch" <<EOF
#!/bin/sh
echo "\$*" >>"$work/started"
[ "\$(wc -l <"$work/started")" -ne 3 ] || { echo 'no such partition'; exit 3; }
ranks=\$1
shift 2 # the layout too: every rank is on this machine
exec "$hvdrun" -np "\$ranks" "\$@"
EOF
chmod +x "$work/launch"
# Gloo only, because in a build tree the ranks do not find hvd's package.
lab()
{
    "$bench" --lab --servers 1,2 --per-server 1 --backends gloo,alone --model conv --batch 4 --steps 2 --turns 1 \
        --sizes 1K,64K --peers "gloo=$python" --python "$python" --hvd-bench "$bench" --out "$work/lab" \
        --launch "$work/launch {ranks} {layout}" "$@" >"$work/out" 2>&1
}

lab
[ $? -eq 1 ] && grep -q 'a job failed with status 3: ' "$work/out" && grep -q '^no such partition' "$work/out"
report $? 'a job that fails ends the lab, with the output of the job'
grep -v '^no pictures' "$work/out" | head -n 1 | grep -q '^5 jobs to run; the first took [0-9.]* s, '
report $? 'the first line has the number of jobs and their time'
[ "$(wc -l <"$work/lab/jobs.csv")" -eq 3 ] && [ "$(wc -l <"$work/lab/training.csv")" -eq 3 ]
report $? 'rows are in the files as soon as they are measured'
cp "$work/lab/jobs.csv" "$work/kept"
# A stand-in for a job, which writes the result of a rank; with Gloo it then ends like a rank that aborts.
cat >"$work/aborting" <<EOF
#!/bin/sh
echo '{"step_s": 0.1, "sum": null}' >"\$6/result.0.json"
[ "\$4" != gloo ] || { echo 'terminate called without an active exception'; exit 134; }
EOF
chmod +x "$work/aborting"
"$bench" --lab --per-server 1 --backends gloo --model conv --batch 4 --steps 2 --turns 1 --sizes '' --python "$python" \
    --hvd-bench "$bench" --out "$work/aborted" --launch "$work/aborting {ranks}" >"$work/out" 2>&1 &&
    [ "$(wc -l <"$work/aborted/jobs.csv")" -eq 3 ] && [ "$(wc -l <"$work/aborted/training.csv")" -eq 3 ] &&
    grep -q 'status 134 after its ranks had measured; its figures are kept: .* gloo ' "$work/out" &&
    grep -q '^terminate called' "$work/out"
report $? 'a job that aborts at its end, after it has measured, keeps its row'
status=0
for ends in 'exit 143' 'kill $$'; do
    printf '#!/bin/sh\n%s\n' "$ends" >"$work/cancelled"
    chmod +x "$work/cancelled"
    "$bench" --lab --per-server 1 --backends gloo --model conv --batch 4 --steps 2 --turns 1 --sizes '' \
        --python "$python" --hvd-bench "$bench" --out "$work/cancelled-lab" --launch "$work/cancelled {ranks}" \
        >"$work/out" 2>&1 && status=1
    grep -q '^hvd-bench --lab: a job was ended by signal 15 (SIGTERM): the allocation has ended, or ' "$work/out" || status=1
done
report $status 'a job that was cancelled is told from one that failed'
lab && [ "$(wc -l <"$work/started")" -eq 6 ] && head -n 3 "$work/lab/jobs.csv" | cmp -s - "$work/kept" &&
    grep -q '^3 jobs to run, and 2 are in ' "$work/out"
report $? 'the same command goes on with the jobs that have not run'
cp "$work/out" "$work/finished"
! lab --batch 8 && grep -q 'has jobs with --batch 4, not 8: give that option' "$work/out" &&
    [ "$(wc -l <"$work/started")" -eq 6 ]
report $? 'a lab with other options does not mix its rows with those of an earlier one'
(export HVD_NET=tcp HVD_SECRET=5ecre7 && ! lab && ! grep -q 5ecre7 "$work/out" &&
    grep -q 'has jobs with the variables "", not "HVD_NET=tcp": set these to go on' "$work/out")
report $? 'nor does a lab with other variables of hvd'
cp "$work/finished" "$work/out"
"$python" - "$(dirname "$0")/../.." >>"$work/out" 2>&1 <<'EOF'
import re, sys
sys.path.insert(0, sys.argv[1] + '/contrib/bench/hvd_bench')
sys.dont_write_bytecode = True
import lab
sections = re.split(r'^/\* --- ', open(sys.argv[1] + '/gpu_binding/base/env.h').read(), flags=re.M)
places = [each for each in sections if each.startswith(('Set for each', 'Between', 'Starting by'))]
names = set(re.findall(r'"(HVD_\w+)"$', ''.join(places), re.M)) | {'HVD_SECRET'}
assert len(places) == 4 and names == set(lab.NOT_SETTINGS), names ^ set(lab.NOT_SETTINGS)
EOF
report $? 'all variables of hvd that are secret or tell a rank its place are left out'

"$python" - "$work/lab" >>"$work/out" 2>&1 <<'EOF'
import csv, os, sys

def rows(name):
    with open(os.path.join(sys.argv[1], name)) as file:
        return list(csv.DictReader(file))

one, gloo, both, apart = table = rows('training.csv')
assert (one['backend'], one['ranks'], float(one['speed_up'])) == ('alone', '1', 1), one
assert (gloo['backend'], gloo['servers'], gloo['ranks']) == ('gloo', '1', '1'), gloo
assert (both['backend'], both['servers'], both['ranks']) == ('gloo', '2', '2'), both
assert (apart['backend'], apart['servers'], apart['ranks']) == ('alone', '2', '2'), apart
for row in table:
    assert abs(float(row['samples_s']) * float(row['step_ms']) / 1e3 - 4 * int(row['ranks'])) < 1e-6
    assert abs(float(row['efficiency']) * int(row['ranks']) - float(row['speed_up'])) < 1e-9
    assert abs(float(row['speed_up']) * float(one['samples_s']) - float(row['samples_s'])) < 1e-6
table = rows('allreduce.csv')
assert [(row['backend'], row['bytes']) for row in table] == [
    ('hvd', '1024'), ('gloo', '1024'), ('hvd', '65536'), ('gloo', '65536')], table
with open(os.path.join(sys.argv[1], 'training.md')) as file:
    assert len(file.readlines()) == 6
EOF
report $? 'speed-up is the throughput divided by that of one process without communication, in every row'

# --- pictures ---

# Curves need three numbers of processes on the same servers; other tables are drawn as bars.
mkdir "$work/bars" "$work/curves"
cp "$work/lab/training.csv" "$work/lab/allreduce.csv" "$work/bars"
cat >"$work/curves/training.csv" <<EOF
backend,servers,per_server,ranks,step_ms,samples_s,speed_up,efficiency,model,batch
alone,1,1,1,10,100,1,1,mlp,1
gloo,1,2,2,10,200,2,1,mlp,1
gloo,1,4,4,20,200,2,0.5,mlp,1
gloo,1,8,8,20,400,4,0.5,mlp,1
EOF
"$bench" --lab --draw --python "$python" --out "$work/bars" >"$work/out" 2>&1
status=$?
if grep -q 'no matplotlib in ' "$work/out"; then
    [ $status -eq 1 ]
    report $? 'without matplotlib the lab says what to install'
    tap_skip 'pictures are drawn from the tables alone' 'no matplotlib'
else
    for directory in bars curves; do
        "$bench" --lab --draw --python "$python" --out "$work/$directory" >"$work/out" 2>&1 && "$python" - \
            "$work/$directory"/*.csv >>"$work/out" 2>&1 <<'EOF'
import struct, sys

for base in (path[:-len('.csv')] for path in sys.argv[1:]):
    with open(base + '.png', 'rb') as file:
        width, height = struct.unpack_from('>II', file.read(24), 16)
    assert 800 < width <= 1400 and height < width, (base, width, height)
    with open(base + '.svg') as file:
        text = file.read()
    titles = ('Throughput', 'Speed-up over', 'Efficiency') if 'training' in base else ('Time of 1K', 'Bus bandwidth')
    assert all(f'<!-- {title}' in text for title in titles), base
EOF
        report $? "$directory are drawn from the tables alone, at most 1,400 pixels wide, with a title on each panel"
    done
fi
"$python" - "$(dirname "$bench")" >"$work/out" 2>&1 <<'EOF'
import sys
from unittest import mock

sys.path.insert(0, sys.argv[1])
sys.modules.update({name: mock.Mock() for name in ('matplotlib', 'matplotlib.pyplot')})
import lab, pictures

named = [pictures.label_of(name) for name in (*lab.BACKENDS, 'horovod', 'mpi', 'limit')]
assert not {*lab.BACKENDS, 'horovod', 'mpi', 'limit'} - set(pictures.SERIES)
assert len(set(named)) == len(named), named
EOF
report $? 'every backend has a name and a colour'
tap_done
