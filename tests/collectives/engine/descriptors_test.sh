#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# descriptors_test.sh HVDRUN LAYOUT PROGRAM [ARG...]: a program that prints TAP, as all ranks of a
# layout, with a soft limit on open files that is too low for the job; and with a hard one.
hvdrun=$1 layout=$2
shift 2
here=$(dirname "$0")

# run LIMIT COMMAND...: LIMIT as ulimit takes it
run()
{
    limit=$1
    shift
    # shellcheck disable=SC2016,SC2086
    "$here/../job.sh" "$hvdrun" "$layout" sh -c 'ulimit $0 && exec "$@"' "$limit" "$@" 2>&1
}

output=$(run '-S -n 22' "$@")
status=$?
case $output in
*'# SKIP'*) echo "$output" && exit 0 ;;
esac
if [ $status = 0 ] && echo "$output" | grep -q '^ok' && ! echo "$output" | grep -q '^not ok'; then
    echo 'ok 1 - a soft limit that is too low is raised'
else
    echo 'not ok 1 - a soft limit that is too low is raised'
    echo "$output" | sed 's/^/# /'
fi
output=$(run '-n 40' "$@")
if echo "$output" | grep -q 'this rank needs [0-9]* open files, and the limit is 40: raise it (ulimit -n [0-9]*;'; then
    echo 'ok 2 - a hard one is refused with what is needed'
else
    echo 'not ok 2 - a hard one is refused with what is needed'
    echo "$output" | sed 's/^/# /'
fi
echo 1..2
