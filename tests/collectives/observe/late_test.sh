#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# late_test.sh HVDRUN LAYOUT LATE PROGRAM: the report of a job must name the rank that was late
# in each step, also when that rank ends the job by dying.
hvdrun=$1 layout=$2 late=$3 program=$4
here=$(dirname "$0")
work=$(mktemp -d) || exit 1
trap 'rm -r "$work"' EXIT
mkfifo "$work/pipe"
exec 3<>"$work/pipe" # a pipe that nobody has open forgets what is in it
LATE_PIPE=$work/pipe
export LATE_PIPE
failed=0 count=0
check()
{
    count=$((count + 1))
    if [ "$2" = yes ]; then echo "ok $count - $1"; else
        echo "not ok $count - $1"
        failed=1
    fi
}

# The late rank submits 3 ms after the last of the others in each step; where one of those notes its own
# submission even later, the step is not the late rank's.
cat >"$work/judge.py" <<'END'
import json, sys
name, late, complete = sys.argv[1], int(sys.argv[2]), sys.argv[3] == 'complete'
report = json.load(open(name))
ranks = report['ranks']
others = [r for r in ranks if r['rank'] != late]
assert report['complete'] == complete
assert report['size'] == len(ranks) and report['batches_compared'] >= 256
assert ranks[late]['times_last'] > report['batches_compared'] / 2, 'times last'
assert ranks[late]['late_mean_us'] > 1000, 'mean'
assert ranks[late]['late_us'] > 2 * max(r['late_us'] for r in others), 'late'
assert min(r['waited_us'] for r in others) > 300000, 'waited'
assert report['collectives_per_rank']['allreduce']['batches'] >= 256
END

judge()
{
    if python3 "$work/judge.py" "$@"; then echo yes; else echo no; fi
}

out=$(HVD_REPORT="$work/late" "$here/../job.sh" "$hvdrun" "$layout" "$program" "$late" 2>&1)
case $out in
*"1..0 # SKIP"*)
    echo "$out"
    exit 0
    ;;
esac
check "the report names rank $late of $layout" "$(judge "$work/late.json" "$late" complete)"
worst=$(awk 'f { print $1; exit } /^ rank/ { f = 1 }' "$work/late")
check "and the table begins with it" "$([ "$worst" = "$late" ] && echo yes || echo no)"
check "nothing is shown" "$([ -z "$out" ] && echo yes || echo no)"
sed 's/^/# /' "$work/late"
HVD_REPORT="$work/failed.json" "$here/../job.sh" "$hvdrun" "$layout" "$program" "$late" die >"$work/said" 2>&1
check "a job that is killed leaves a report that is not complete" \
    "$(judge "$work/failed.json" "$late" incomplete)"
sed 's/^/# /' "$work/said"
echo "1..$count"
exit "$failed"
