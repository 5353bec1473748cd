#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# exports_test.sh LIBRARY HEADER: the library exports what the header declares, nothing else.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../../tap.sh"
tap_begin
declared=$(grep -oE '\bhvd_[a-z_]+\(' "$2" | tr -d '(' | sort -u)
exported=$(nm -D --defined-only "$1" | awk '$2 == "T" { print $3 }' | sort -u)
printf 'declared:\n%s\nexported:\n%s\n' "$declared" "$exported" >"$work/out"
[ -n "$exported" ] && [ "$declared" = "$exported" ]
report $? 'libhvd exports exactly what hvd.h declares'
tap_done
