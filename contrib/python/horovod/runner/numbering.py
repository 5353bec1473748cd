# SPDX-License-Identifier: Apache-2.0
"""Numbers ranks that a cluster engine such as Ray or Spark has placed: which ranks share a node,
and which GPUs they see. A node is given as text that only its processes have in common."""

import socket

_BOOT_ID = '/proc/sys/kernel/random/boot_id'


def this_node():
    """Returns the text for this node: its host name, and the number of its boot, because two nodes
    may have the same host name. libhvd tells nodes apart in the same way."""
    with open(_BOOT_ID) as file:
        return f'{socket.gethostname()} {file.read().strip()}'


def adjacent(nodes):
    """Returns the indices of the list in an order that puts equal nodes next to each other, the
    nodes in the order of their first appearance: a collective then crosses fewer links."""
    first = {}
    for index, node in enumerate(nodes):
        first.setdefault(node, index)
    return sorted(range(len(nodes)), key=lambda index: first[nodes[index]])


def variables(nodes):
    """Returns for each rank the variables with which launchers number it, as a dict of texts.
    nodes: the node of each rank."""
    members, crossing = {}, {}
    for rank, node in enumerate(nodes):
        ranks = members.setdefault(node, [])
        crossing.setdefault(len(ranks), []).append(rank)
        ranks.append(rank)
    numbered = []
    for rank, node in enumerate(nodes):
        local = members[node].index(rank)
        numbers = {'RANK': rank, 'SIZE': len(nodes),
                   'LOCAL_RANK': local, 'LOCAL_SIZE': len(members[node]),
                   'CROSS_RANK': crossing[local].index(rank), 'CROSS_SIZE': len(crossing[local])}
        numbered.append({f'HOROVOD_{name}': str(number) for name, number in numbers.items()})
    return numbered


def visible_gpus(nodes, gpus):
    """Returns for each rank the value of CUDA_VISIBLE_DEVICES: the GPUs of all ranks on its node, in
    the order of the local ranks, so that ``hvd.local_rank()`` is the index of the rank's GPU if each
    rank has one. A GPU that ranks share is named once: CUDA sees none if one is named twice. gpus:
    the numbers of each rank's GPUs."""
    seen = {}
    for node, own in zip(nodes, gpus):
        seen.setdefault(node, []).extend(map(str, own))
    return [','.join(dict.fromkeys(seen[node])) for node in nodes]
