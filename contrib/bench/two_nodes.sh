#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# two_nodes.sh LAUNCHER LAYOUT COMMAND...: runs a job on two nodes that this machine plays, as two network
# namespaces with a cable between them. LAYOUT "2,1": ranks 0 and 1 on the first node, rank 2 on the
# second; "2": both on the first. LAUNCHER: an hvdrun, or Open MPI's mpirun, which is needed to measure
# Open MPI. Needs root. HVD_TWO_NODES_CABLE=COMMAND: COMMAND NAMESPACE NAMESPACE DEVICE creates the cable
# in place of a perfect one.
set -eu
[ $# -ge 3 ] || { sed -n '3,7s/^# \{0,1\}//p' "$0" >&2 && exit 2; }

# on_node NODE COMMAND...: replaces this shell by the command, on that node.
on_node()
{
    node=$1
    shift
    # shellcheck disable=SC2016
    exec ip netns exec "$HVD_TWO_NODES-$node" \
        unshare --uts sh -c 'hostname "$0" && exec "$@"' "node$node" "$@"
}

case $1 in
--rank) # LAYOUT COMMAND...: hvdrun runs this for each rank
    layout=$2
    shift 2
    [ "$HOROVOD_RANK" -lt "${layout%,*}" ] && on_node 0 "$@"
    on_node 1 "$@"
    ;;
--shell) # NODE COMMAND...: mpirun runs this in place of ssh
    node=${2#node}
    shift 2
    on_node "$node" sh -c "$*"
    ;;
esac

self=$(readlink -f "$0")
launcher=$1 layout=$2
shift 2
[[ $layout =~ ^[0-9]+(,[0-9]+)?$ ]] || {
    echo "two_nodes.sh: layout '$layout': expected the numbers of ranks on one node or two, such as 2 or 1,1" >&2
    exit 2
}
monitor=
export HVD_TWO_NODES="hvd$$" UCX_TLS="${UCX_TLS:-tcp}"

clean_up()
{
    [ -z "$monitor" ] || kill "$monitor" 2>/dev/null || : # it would keep its network
    ip netns del "$HVD_TWO_NODES-0" 2>/dev/null || :
    ip netns del "$HVD_TWO_NODES-1" 2>/dev/null || :
}

is_up()
{
    ip -n "$HVD_TWO_NODES-$1" -br link show "$HVD_TWO_NODES" | grep -q LOWER_UP
}

# The kernel reports that a link is up a moment after both ends are, and `ip monitor` prints it. The link is
# checked in any case, because ip may have begun to listen too late.
await_link()
{
    local changes
    exec {changes}< <(exec ip -n "$HVD_TWO_NODES-0" monitor link 2>/dev/null)
    monitor=$!
    SECONDS=0
    until is_up 0 && is_up 1; do
        if [ "$SECONDS" -gt 10 ]; then
            echo "two_nodes.sh: the link $HVD_TWO_NODES did not come up within 10 s" >&2
            exit 1
        fi
        read -r -t 0.5 -u "$changes" || :
    done
    kill "$monitor"
    monitor=
    exec {changes}<&-
}

# good_cable NAMESPACE NAMESPACE DEVICE: connects the namespaces by a perfect cable.
good_cable()
{
    ip link add "$3" netns "$1" type veth peer name "$3" netns "$2"
}

make_nodes()
{
    for node in 0 1; do
        ip netns add "$HVD_TWO_NODES-$node"
    done
    ${HVD_TWO_NODES_CABLE:-good_cable} "$HVD_TWO_NODES-0" "$HVD_TWO_NODES-1" "$HVD_TWO_NODES"
    for node in 0 1; do
        ip -n "$HVD_TWO_NODES-$node" addr add "10.98.0.$((node + 1))/24" dev "$HVD_TWO_NODES"
        ip -n "$HVD_TWO_NODES-$node" link set "$HVD_TWO_NODES" up
        ip -n "$HVD_TWO_NODES-$node" link set lo up
    done
    await_link
}

# by_mpirun COMMAND..., by_hvdrun COMMAND...: replace this shell by the launcher.
by_mpirun()
{
    hosts=node0:${layout%,*}
    [ "$layout" = "${layout%,*}" ] || hosts=$hosts,node1:${layout#*,}
    on_node 0 "$launcher" --allow-run-as-root --oversubscribe --bind-to none \
        --mca plm_rsh_agent "$self --shell" --host "$hosts" "$@"
}

by_hvdrun()
{
    exec "$launcher" -np "$(($(echo "$layout" | tr , +)))" "$self" --rank "$layout" "$@"
}

trap clean_up EXIT
trap 'exit 143' INT TERM HUP
make_nodes
case $(basename "$launcher") in
mpirun*) by_mpirun "$@" ;;
*) by_hvdrun "$@" ;;
esac <&0 &
job=$!
trap 'kill "$job" 2>/dev/null || :' INT TERM HUP
status=0
wait "$job" || status=$?
while kill -0 "$job" 2>/dev/null; do # a signal, which the trap passes on, ended the wait
    status=0
    wait "$job" || status=$?
done
exit "$status"
