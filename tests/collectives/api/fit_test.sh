#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# fit_test.sh HVDRUN JOB LIBRARY HEADER_DIRS SOURCE SANITIZE: the example in C compiles with nothing but
# the installed headers, and fits the same line on any number of ranks. SANITIZE: the library's sanitizers,
# a list or "none".
set -u

hvdrun=$1 job=$2 library=$3 source=$5 sanitize=$6
IFS=: read -r collectives status <<<"$4"
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../../tap.sh"
tap_begin

# An installation has hvd.h and hvd_status.h in the same folder.
mkdir "$work/include"
cp "$collectives/hvd.h" "$status/hvd_status.h" "$work/include/"
flags=
[ "$sanitize" = none ] || flags=-fsanitize=$sanitize
# shellcheck disable=SC2086 # flags may be empty
cc -std=c11 -Wall -Wextra -Werror $flags -I "$work/include" "$source" -o "$work/fit" \
    -L "$(dirname "$library")" -lhvd -Wl,-rpath,"$(dirname "$library")" >"$work/out" 2>&1
report $? 'the example compiles with the installed headers alone'
expected=
for layout in 1 2 4 2,1; do
    line=$("$job" "$hvdrun" "$layout" "$work/fit" 2>"$work/out")
    expected=${expected:-$line}
    [ -n "$line" ] && [ "$line" = "$expected" ] && [[ $line == 'y = 2.49'* ]]
    report $? "ranks $layout fit $line, expected $expected"
done
tap_done
