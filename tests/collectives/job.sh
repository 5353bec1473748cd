#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# job.sh HVDRUN LAYOUT PROGRAM [ARG...]: runs a program as all ranks of a layout; rank 0
# prints TAP. Skips layouts of several nodes if this machine cannot give processes host
# names of their own.
hvdrun=$1 layout=$2
shift 2
on_nodes=$(dirname "$0")/../../contrib/bench/on_nodes.sh
ranks=$(($(echo "$layout" | tr , +)))
case $layout in
*,*)
    if ! HOROVOD_RANK=0 "$on_nodes" "$layout" true 2>/dev/null; then
        echo "1..0 # SKIP several nodes need root or user namespaces"
        exit 0
    fi
    exec "$hvdrun" -np "$ranks" "$on_nodes" "$layout" "$@"
    ;;
*)
    exec "$hvdrun" -np "$ranks" "$@"
    ;;
esac
