#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# soak_test.sh HVDRUN LAYOUT PROGRAM SECONDS [NAME=VALUE...]: a job lives a long and random life under
# these settings; all that it does ends as it should and nothing is left over.
hvdrun=$1 layout=$2 program=$3 seconds=$4
shift 4
here=$(dirname "$0")
# What is freed counts as free at once, and goes back to the system when asked.
GLIBC_TUNABLES=glibc.malloc.tcache_count=0:glibc.malloc.arena_max=1
export GLIBC_TUNABLES
# Others may use /dev/shm meanwhile; hvd has no names there, and UCX's begin so.
left_in_shm()
{
    ls -d /dev/shm/hvd* /dev/shm/ucx* 2>/dev/null
}
shm_before=$(left_in_shm)
out=$(env "$@" "$here/../job.sh" "$hvdrun" "$layout" "$program" "$seconds" 2>&1)
status=$?
case $out in
*"1..0 # SKIP"*)
    echo "$out"
    exit 0
    ;;
esac
echo "# layout $layout, $seconds s, settings: $*"
echo "$out" | grep -v '^1\.\.[0-9]*$' | sed '/^\(not \)\{0,1\}ok/!s/^\([^#]\)/# \1/'
if [ "$shm_before" = "$(left_in_shm)" ]; then
    echo "ok - nothing is left in /dev/shm"
else
    echo "not ok - nothing is left in /dev/shm"
fi
echo 1..6
exit "$status"
