#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The example in C: compiles with nothing but the installed headers, and finds the same line on any
# number of ranks: fit_test.sh HVDRUN JOB LIBRARY HEADER_DIRS SOURCE SANITIZE, where SANITIZE is the
# one of the library, "none" or a list.
set -u

hvdrun=$1 job=$2 library=$3 source=$5 sanitize=$6
IFS=: read -r collectives status <<<"$4"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# As installed: hvd.h and hvd_status.h side by side.
mkdir "$work/include"
cp "$collectives/hvd.h" "$status/hvd_status.h" "$work/include/"
flags=
[ "$sanitize" = none ] || flags=-fsanitize=$sanitize
# shellcheck disable=SC2086 # flags may be empty
if cc -std=c11 -Wall -Wextra -Werror $flags -I "$work/include" "$source" -o "$work/fit" \
    -L "$(dirname "$library")" -lhvd -Wl,-rpath,"$(dirname "$library")" >"$work/log" 2>&1; then
    echo 'ok 1 - compiles with the installed headers alone'
else
    sed 's/^/# /' "$work/log"
    echo 'not ok 1 - compiles with the installed headers alone'
fi
count=1
expected=
for layout in 1 2 4 2,1; do
    count=$((count + 1))
    line=$("$job" "$hvdrun" "$layout" "$work/fit" 2>"$work/log")
    expected=${expected:-$line}
    if [ -n "$line" ] && [ "$line" = "$expected" ] && [[ $line == 'y = 2.49'* ]]; then
        echo "ok $count - $layout: $line"
    else
        sed 's/^/# /' "$work/log"
        echo "not ok $count - $layout: $line, elsewhere $expected"
    fi
done
echo "1..$count"
