# SPDX-License-Identifier: Apache-2.0
"""Whether the ranks have made the same variables, for front ends that broadcast them."""

from horovod.common.objects import broadcast_object


def differing(own, root, root_rank):
    """The text that says where this rank's shapes differ from the root's."""
    where = next((index for index, pair in enumerate(zip(own, root)) if pair[0] != pair[1]),
                 min(len(own), len(root)))
    return (f'the variables of the model and its optimizer differ between ranks: this rank has '
            f'{len(own)}, rank {root_rank} has {len(root)}, and the first that differs is number '
            f'{where}: shape {own[where:where + 1]} here, {root[where:where + 1]} there. Build '
            'the same model and optimizer on all ranks')


def must_match(shapes, root_rank):
    """ValueError on a rank whose list of shapes is not the root's. Collective."""
    root = broadcast_object(shapes, root_rank, 'variables')
    if shapes != root:
        raise ValueError(differing(shapes, root, root_rank))
