#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# two_nodes.sh HVDRUN LAYOUT COMMAND...: runs a job on two nodes that this machine plays: each has a
# network of its own, and a cable between them. LAYOUT "2,1": ranks 0 and 1 on the first node, rank
# 2 on the second; "2": both on the first. Needs root.
set -eu

if [ "$1" = --rank ]; then
    layout=$2
    shift 2
    node=1
    [ "$PMIX_RANK" -lt "${layout%,*}" ] && node=0
    # shellcheck disable=SC2016
    exec ip netns exec "$HVD_TWO_NODES-$node" \
        unshare --uts sh -c 'hostname "$0" && exec "$@"' "node$node" "$@"
fi

hvdrun=$1 layout=$2
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
# The launcher serves this machine's network only: its ranks' helper goes back there.
boot=${HVD_BOOT_HELPER:-$(dirname "$hvdrun")/../hvd-boot}
cat >"$work/hvd-boot" <<END
#!/bin/sh
exec nsenter --net=/proc/$$/ns/net "$(readlink -f "$boot")" "\$@"
END
chmod +x "$work/hvd-boot"
ranks=$(($(echo "$layout" | tr , +)))
HVD_TWO_NODES=$name HVD_BOOT_HELPER=$work/hvd-boot UCX_TLS=${UCX_TLS:-tcp} \
    "$hvdrun" -np "$ranks" "$0" --rank "$layout" "$@"
