#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# timeline_job_test.sh HVDRUN LAYOUT PROGRAM PYTHON: timelines of a job of this layout.
hvdrun=$1 layout=$2 program=$3 python=$4
here=$(dirname "$0")
ranks=$(($(echo "$layout" | tr , +)))
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
case $layout in
*,*) transport=NET ;;
*) transport=SHM ;;
esac

# run ARG...: the program as all ranks; the environment says which timeline.
run()
{
    "$here/../job.sh" "$hvdrun" "$layout" "$program" "$@" 2>&1 || echo "not ok - the job '$1' goes well"
}

check()
{
    "$python" "$here/timeline_check.py" "$@" 2>&1
}

{
    run off | grep -v '^1\.\.1$' | tee "$dir/off"
    if grep -q '^1\.\.0 # SKIP' "$dir/off"; then
        exit
    fi
    HOROVOD_TIMELINE=$dir/one.json HOROVOD_TIMELINE_MARK_CYCLES=1 run steps
    check one "$dir/one.json" "$ranks" "$transport"
    HOROVOD_TIMELINE=$dir/all.json HVD_TIMELINE_RANKS=all run steps
    check all "$dir/all.json" "$ranks" "$transport"
    HOROVOD_TIMELINE=DYNAMIC run dynamic "$dir/1" "$dir/2"
    check dynamic "$dir/1" "$dir/2" 1
    HOROVOD_TIMELINE=DYNAMIC HVD_TIMELINE_RANKS=all run dynamic "$dir/1" "$dir/2"
    check dynamic "$dir/1" "$dir/2" "$ranks"
    echo "ok - all timelines have been looked at"
} | sed '/^\(ok\|not ok\|1\.\.\)/!s/^/# /' | tee "$dir/out"
grep -q '^1\.\.0' "$dir/out" && exit
echo "1..$(grep -c '^\(not \)\?ok' "$dir/out")"
! grep -q '^not ok' "$dir/out"
