#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# memory_limit_test.sh HVDRUN LAYOUT PROGRAM [ARG...]: a program that prints TAP, as all ranks of a
# layout, each with a memory limit of its own; and with one rank's that is too small.
hvdrun=$1 layout=$2
shift 2
here=$(dirname "$0")

# run LIMIT COMMAND...: LIMIT may name HOROVOD_RANK
run()
{
    limit=$1
    shift
    # shellcheck disable=SC2016
    "$here/../job.sh" "$hvdrun" "$layout" sh -c \
        'HVD_MEMORY_LIMIT=$(($0)) exec "$@"' "$limit" "$@" 2>&1
}

output=$(run '1000000 + 200000 * HOROVOD_RANK' "$@")
status=$?
case $output in
*'# SKIP'*) echo "$output" && exit 0 ;;
esac
if [ $status = 0 ] && echo "$output" | grep -q '^ok' && ! echo "$output" | grep -q '^not ok'; then
    echo 'ok 1 - ranks with different limits keep to the strictest and get the right results'
else
    echo 'not ok 1 - ranks with different limits keep to the strictest and get the right results'
    echo "$output" | sed 's/^/# /'
fi
output=$(run 'HOROVOD_RANK == 0 ? 1000 : 2000000' "$@")
if echo "$output" | grep -q 'HVD_MEMORY_LIMIT=1000 is too little: .* at least [0-9]* bytes'; then
    echo "ok 2 - one rank's that is too small is refused with what is needed"
else
    echo "not ok 2 - one rank's that is too small is refused with what is needed"
    echo "$output" | sed 's/^/# /'
fi
echo 1..2
