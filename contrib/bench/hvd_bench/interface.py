# SPDX-License-Identifier: Apache-2.0
"""Chooses the network interface that Gloo uses in peer_gloo.py and lab_train.py."""

import fcntl
import os
import socket
import struct


def address_of(interface):
    """Returns the IPv4 address by which other hosts reach the interface, or None."""
    get_flags, get_address, up, loopback = 0x8913, 0x8915, 1, 8
    request = struct.pack('32s', interface.encode())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        try:
            flags = struct.unpack_from('H', fcntl.ioctl(one, get_flags, request), 16)[0]
            answer = fcntl.ioctl(one, get_address, request)
        except OSError:
            return None
    return socket.inet_ntoa(answer[20:24]) if flags & up and not flags & loopback else None


def choose():
    """Returns this host's address. By default Gloo uses the address of the host name. If that is missing
    or a loopback address, such as 127.0.1.1, this function selects another interface for Gloo."""
    try:
        address = socket.gethostbyname(socket.gethostname())
        if not address.startswith('127.'):
            return address
    except OSError:
        pass
    found = {name: address_of(name) for _, name in socket.if_nameindex()}
    name, address = next((each for each in found.items() if each[1]), ('lo', '127.0.0.1'))
    os.environ.setdefault('GLOO_SOCKET_IFNAME', name)
    return address
