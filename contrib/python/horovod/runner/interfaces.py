# SPDX-License-Identifier: Apache-2.0
"""The network interface and the ports that the user has chosen for the connections of a job."""

import contextlib
import errno
import fcntl
import os
import random
import socket
import struct

_GET_ADDRESS = 0x8915  # SIOCGIFADDR of Linux
_NAME_BYTES = 16  # IFNAMSIZ


def _address_of(name):
    """Returns the first IPv4 address of the interface. OSError if it has none or does not exist."""
    request = struct.pack('256s', os.fsencode(name)[:_NAME_BYTES - 1])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        answer = fcntl.ioctl(any_socket, _GET_ADDRESS, request)
    return socket.inet_ntoa(answer[20:24])


def chosen_address(names=None):
    """Returns the IPv4 address at which to listen: that of the first interface in ``names`` (a
    list, or text with commas), otherwise in HVD_IFACE or HOROVOD_GLOO_IFACE. Returns '', which
    means all addresses, if no interface is chosen. ValueError if the interface has no IPv4
    address."""
    source = ('network_interfaces' if names else
              'HVD_IFACE' if os.environ.get('HVD_IFACE') else 'HOROVOD_GLOO_IFACE')
    names = names or os.environ.get('HVD_IFACE') or os.environ.get('HOROVOD_GLOO_IFACE') or ''
    names = names.split(',') if isinstance(names, str) else names
    name = next(filter(None, names), None)
    if name is None:
        return ''
    try:
        return _address_of(name)
    except OSError as error:
        raise ValueError(f"network interface '{name}' has no IPv4 address on {socket.gethostname()} "
                         f'({error.strerror}): name one that has first in {source}') from None


def listed(names):
    """Returns names of interfaces as a list: one name, or a list or a set of them."""
    if isinstance(names, str):
        return [names]
    return sorted(names) if isinstance(names, (set, frozenset)) else list(names or ())


def first_address(names):
    """Returns the IPv4 address of the first of these interfaces that has one; without names, that
    of chosen_address. ValueError if none has."""
    for name in names[:-1]:
        with contextlib.suppress(ValueError):
            return chosen_address([name])
    return chosen_address(names[-1:])


def on_chosen_port(bind):
    """Calls bind(port) with ports of HVD_PORT_RANGE, in random order, until one is free, and
    returns its result. If no range is set, the port is 0, which means any. ValueError if the range
    is invalid; OSError if all its ports are in use."""
    text = os.environ.get('HVD_PORT_RANGE') or '0-0'
    try:
        first, last = map(int, text.split('-'))
        if not 0 <= first <= last <= 65535:
            raise ValueError
    except ValueError:
        raise ValueError(f"HVD_PORT_RANGE is '{text}', but must be two TCP ports, such as "
                         '60001-63000') from None
    for port in random.sample(range(first, last + 1), last + 1 - first):
        try:
            return bind(port)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
    raise OSError(f'all TCP ports of HVD_PORT_RANGE={text} are in use on this host')
