#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# exports_test.sh LIBRARY HEADER: the library exports what the header declares, nothing else.
declared=$(grep -oE '\bhvd_[a-z_]+\(' "$2" | tr -d '(' | sort -u)
exported=$(nm -D --defined-only "$1" | awk '$2 == "T" { print $3 }' | sort -u)
if [ -n "$exported" ] && [ "$declared" = "$exported" ]; then
    echo "ok 1 - libhvd exports exactly what hvd.h declares"
else
    echo "not ok 1 - libhvd exports exactly what hvd.h declares"
    echo "# declared: $(echo "$declared" | tr '\n' ' ')"
    echo "# exported: $(echo "$exported" | tr '\n' ' ')"
fi
echo 1..1
