#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# late_replay_test.sh HVDRUN LAYOUT PROGRAM: what the ranks note must stay in step, and be what the
# script asked for, also when replays end and a rank joins.
hvdrun=$1 layout=$2 program=$3
here=$(dirname "$0")
work=$(mktemp -d) || exit 1
trap 'rm -r "$work"' EXIT

cat >"$work/judge.py" <<'END'
import json, sys
report = json.load(open(sys.argv[1]))
found = report['collectives_per_rank']['allreduce']['tensors']
named = report['batches_even'] + sum(r['times_last'] for r in report['ranks'])
print('# %d tensors, %d of %d batches have a last rank' % (found, named, report['batches_compared']))
assert report['complete'], 'complete'
assert found == int(sys.argv[2]), 'tensors'
assert named == report['batches_compared'], 'in step'
END

tensors=$(HVD_REPORT="$work/late" "$here/../job.sh" "$hvdrun" "$layout" "$program")
case $tensors in
*"1..0 # SKIP"*)
    echo "$tensors"
    exit 0
    ;;
esac
verdict='not ok'
if python3 "$work/judge.py" "$work/late.json" "$tensors"; then verdict=ok; fi
echo "$verdict 1 - all ranks of $layout have noted the same batches"
echo 1..1
[ "$verdict" = ok ]
