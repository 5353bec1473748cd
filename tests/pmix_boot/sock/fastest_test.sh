#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fastest_test.sh LIST: the program LIST prints this host's addresses, that of the faster of two interfaces
# first. The kernel knows the speed of veth, but not that of dummy and ifb.
set -u
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../../tap.sh"
tap_begin
play()
{
    unshare --user --map-root-user --net --mount sh -euc '
        mount -t sysfs sysfs /sys
        ip link add slow type dummy || ip link add slow type ifb
        ip link add fast type veth peer name other
        ip address add 10.1.1.1/24 dev slow
        ip address add 10.1.2.1/24 dev fast
        for name in slow fast other; do ip link set "$name" up; done
        cat /sys/class/net/fast/speed >/dev/null
        exec "$@"' play "$@"
}

if ! play true 2>/dev/null; then
    tap_skip_all 'a network of its own needs ip, and a kernel with user namespaces, veth, and dummy or ifb'
fi
found=$(play "$1" list | grep '^10\.' | tr '\n' ' ')
wanted='10.1.2.1 port 0 10.1.1.1 port 0 '
echo "$found" >"$work/out"
[ "$found" = "$wanted" ]
report $? 'the address of the faster interface comes first'
tap_done
