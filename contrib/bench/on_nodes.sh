#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# on_nodes.sh LAYOUT COMMAND...: runs this rank under the host name of the node on which the
# layout puts it ("3,1": ranks 0 to 2 on node0, rank 3 on node1), so that a job on one machine
# communicates as between nodes. Needs root, or permission for user namespaces.
layout=$1
shift
rank=$HOROVOD_RANK
node=0
for ranks in $(echo "$layout" | tr , ' '); do
    [ "$rank" -lt "$ranks" ] && break
    rank=$((rank - ranks))
    node=$((node + 1))
done
user=
[ "$(id -u)" -eq 0 ] || user=--map-root-user
# shellcheck disable=SC2016,SC2086
exec unshare $user --uts sh -c 'hostname "$0" && exec "$@"' "node$node" "$@"
