#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Simulates a bad cable between two network namespaces, for kernels without netem.

cable.py LOSS DELAY_MS REORDER NAMESPACE NAMESPACE DEVICE

Makes a tap device in each namespace, and forwards each packet after DELAY_MS. Drops LOSS percent of the packets, and
forwards REORDER percent without the delay. Ends when the namespaces are removed.
"""

import ctypes
import errno
import fcntl
import heapq
import os
import random
import select
import struct
import sys
import time

CLONE_NEWNET = 0x40000000
TUNSETIFF = 0x400454ca
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000
MOST_BYTES = 65536
LOOK = 0.2  # seconds
QUEUE = 2000  # packets in flight; more are dropped, as in a switch


def path_of(namespace):
    return f'/run/netns/{namespace}'


def open_tap(namespace, device):
    with open(path_of(namespace)) as place:
        if ctypes.CDLL(None, use_errno=True).setns(place.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    tap = os.open('/dev/net/tun', os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack('16sH22x', device.encode(), IFF_TAP | IFF_NO_PI))
    return tap


def unless_down(call, *arguments):
    """Calls a function; returns None if the device is down or has no packet."""
    try:
        return call(*arguments)
    except OSError as error:
        if error.errno not in (errno.EIO, errno.EAGAIN):
            raise
        return None


def carry(ends, namespace, loss, delay, reorder):
    """Forwards packets until the name of the namespace is removed. This process keeps the namespace alive, so there
    is no other sign of its end."""
    number, under_way = 0, []
    while os.path.exists(path_of(namespace)):
        wait = min(LOOK, max(0, under_way[0][0] - time.monotonic())) if under_way else LOOK
        for end in select.select(ends, [], [], wait)[0]:
            packet = unless_down(os.read, end, MOST_BYTES)
            if packet is None or random.random() * 100 < loss or len(under_way) > QUEUE:
                continue
            late = 0 if random.random() * 100 < reorder else delay
            number += 1
            other = ends[1] if end == ends[0] else ends[0]
            heapq.heappush(under_way, (time.monotonic() + late, number, other, packet))
        while under_way and under_way[0][0] <= time.monotonic():
            _, _, end, packet = heapq.heappop(under_way)
            unless_down(os.write, end, packet)


def main():
    loss, delay_ms, reorder = map(float, sys.argv[1:4])
    namespaces, device = sys.argv[4:6], sys.argv[6]
    ends = [open_tap(namespace, device) for namespace in namespaces]
    if os.fork() > 0:
        os._exit(0)  # both devices exist now
    for stream in range(3):
        os.dup2(os.open(os.devnull, os.O_RDWR), stream)
    carry(ends, namespaces[0], loss, delay_ms / 1000, reorder)


if __name__ == '__main__':
    main()
