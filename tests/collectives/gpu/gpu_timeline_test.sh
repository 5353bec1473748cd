#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# gpu_timeline_test.sh HVDRUN LAYOUT PROGRAM...: runs jobs on GPUs in this layout, and checks
# their timelines with $PYTHON.
hvdrun=$1 layout=$2
shift 2
here=$(dirname "$0")
ranks=$(($(echo "$layout" | tr , +)))
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
case $layout in
*,*) transport=NET ;;
*) transport=SHM ;;
esac

job()
{
    "$here/../job.sh" "$hvdrun" "$layout" "$@" 2>&1 || echo "not ok - the job succeeds"
}

# check ARG...: checks the timeline of a job.
check()
{
    "$PYTHON" "$here/gpu_timeline_check.py" "$@" 2>&1
}

{
    HOROVOD_TIMELINE=$dir/one.json job "$@" steps | tee "$dir/first"
    if grep -q '^1\.\.0 # SKIP' "$dir/first"; then
        exit
    fi
    check one "$dir/one.json" "$transport"
    HOROVOD_TIMELINE=$dir/all.json HVD_TIMELINE_RANKS=all job "$@" steps
    check all "$dir/all.json" "$transport" "$ranks"
    HOROVOD_TIMELINE=DYNAMIC job "$@" dynamic "$dir/some.json"
    check dynamic "$dir/some.json"
    echo "ok - all timelines were checked"
} | sed '/^\(ok\|not ok\|1\.\.\)/!s/^/# /' | tee "$dir/out"
grep -q '^1\.\.0' "$dir/out" && exit
echo "1..$(grep -c '^\(not \)\?ok' "$dir/out")"
! grep -q '^not ok' "$dir/out"
