#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# soak_test.sh HVDRUN LAYOUT PROGRAM LIVES [NAME=VALUE...]: runs a job through LIVES random
# lives with these settings. Every call must have the expected result, and nothing may be
# left over.
hvdrun=$1 layout=$2 program=$3 lives=$4
shift 4
here=$(dirname "$0")
# Without caches per thread, freed memory counts as free at once, and malloc_trim() can
# return it to the system.
GLIBC_TUNABLES=glibc.malloc.tcache_count=0:glibc.malloc.arena_max=1
export GLIBC_TUNABLES
out=$(env "$@" "$here/../own_shm.sh" "$here/../job.sh" "$hvdrun" "$layout" "$program" "$lives" 2>&1)
status=$?
case $out in
*"1..0 # SKIP"*)
    echo "$out"
    exit 0
    ;;
esac
echo "# layout $layout, $lives lives, settings: $*"
echo "$out" | grep -v '^1\.\.[0-9]*$' | sed '/^\(not \)\{0,1\}ok/!s/^\([^#]\)/# \1/'
case $out in
*"left in /dev/shm: "*) echo "not ok - nothing is left in /dev/shm" && status=1 ;;
*"no /dev/shm of its own"*) echo "ok - nothing is left in /dev/shm # SKIP no mount namespaces" ;;
*) echo "ok - nothing is left in /dev/shm" ;;
esac
echo 1..6
exit "$status"
