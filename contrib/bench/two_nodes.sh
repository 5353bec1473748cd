#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# two_nodes.sh LAUNCHER LAYOUT COMMAND...: runs a job on two nodes that this machine plays: each has a
# network of its own, and a cable between them. LAYOUT "2,1": ranks 0 and 1 on the first node, rank
# 2 on the second; "2": both on the first. LAUNCHER: an hvdrun, or Open MPI's mpirun, which Open MPI
# needs to be measured there. Needs root.
set -eu

# on_node NODE COMMAND...: does not return.
on_node()
{
    node=$1
    shift
    # shellcheck disable=SC2016
    exec ip netns exec "$HVD_TWO_NODES-$node" \
        unshare --uts sh -c 'hostname "$0" && exec "$@"' "node$node" "$@"
}

case $1 in
--rank) # LAYOUT COMMAND...: from hvdrun
    layout=$2
    shift 2
    [ "$PMIX_RANK" -lt "${layout%,*}" ] && on_node 0 "$@"
    on_node 1 "$@"
    ;;
--shell) # NODE COMMAND...: from mpirun, in place of ssh
    node=${2#node}
    shift 2
    on_node "$node" sh -c "$*"
    ;;
esac

launcher=$1 layout=$2
shift 2
name=hvd$$
work=$(mktemp -d)
clean_up()
{
    ip netns del "$name-0" 2>/dev/null || :
    ip netns del "$name-1" 2>/dev/null || :
    rm -r "$work"
}
trap clean_up EXIT
ip netns add "$name-0"
ip netns add "$name-1"
ip link add "$name" netns "$name-0" type veth peer name "$name" netns "$name-1"
for node in 0 1; do
    ip -n "$name-$node" addr add "10.98.0.$((node + 1))/24" dev "$name"
    ip -n "$name-$node" link set "$name" up
    ip -n "$name-$node" link set lo up
done
for node in 0 1; do
    timeout 10 sh -c "until ip -n $name-$node -br link show $name | grep -q ' UP '; do sleep 0.02; done" || {
        echo "two_nodes.sh: the link $name of node $node did not come up within 10 s" >&2
        exit 1
    }
done
export HVD_TWO_NODES="$name" UCX_TLS="${UCX_TLS:-tcp}"

# These two do not return.
by_mpirun()
{
    hosts=node0:${layout%,*}
    [ "$layout" = "${layout%,*}" ] || hosts=$hosts,node1:${layout#*,}
    for variable in $(env | grep -oE '^(HVD|HOROVOD|UCX)_[A-Z0-9_]*'); do
        set -- -x "$variable" "$@"
    done
    on_node 0 "$launcher" --allow-run-as-root --oversubscribe --bind-to none \
        --mca plm_rsh_agent "$self --shell" --host "$hosts" "$@"
}

by_hvdrun()
{
    # hvdrun serves this machine's network only: its ranks' helper goes back there.
    boot=${HVD_BOOT_HELPER:-$(dirname "$launcher")/../hvd-boot}
    cat >"$work/hvd-boot" <<END
#!/bin/sh
exec nsenter --net=/proc/$$/ns/net "$(readlink -f "$boot")" "\$@"
END
    chmod +x "$work/hvd-boot"
    export HVD_BOOT_HELPER="$work/hvd-boot"
    exec "$launcher" -np "$(($(echo "$layout" | tr , +)))" "$self" --rank "$layout" "$@"
}

self=$(readlink -f "$0")
case $(basename "$launcher") in
mpirun*) by=by_mpirun ;;
*) by=by_hvdrun ;;
esac
trap 'kill "$job" 2>/dev/null || :' INT TERM HUP
$by "$@" <&0 &
job=$!
status=0
wait "$job" || status=$?
while kill -0 "$job" 2>/dev/null; do # a signal has ended the wait, and is passed on
    wait "$job" || status=$?
done
exit "$status"
