# SPDX-License-Identifier: Apache-2.0
"""Checks the shapes of the variables of a model and its optimizer: before a broadcast, that they
are the same on all ranks; before a restore, that they are those of the saved values."""

from horovod.common.objects import broadcast_object


def _first_difference(these, those):
    return next((index for index, pair in enumerate(zip(these, those)) if pair[0] != pair[1]),
                min(len(these), len(those)))


def differing(own, root, root_rank):
    """Returns the error text that says where this rank's shapes differ from the root's."""
    where = _first_difference(own, root)
    return (f'the variables of the model and its optimizer differ between ranks: this rank has '
            f'{len(own)}, rank {root_rank} has {len(root)}, and the first that differs is number '
            f'{where}: shape {own[where:where + 1]} here, {root[where:where + 1]} there. Build '
            'the same model and optimizer on all ranks')


def differing_parameters(rank, own, root, root_rank):
    """Returns the error text that says where the parameters of a rank, described by one text each,
    differ from the root's."""
    where = _first_difference(own, root)
    own_text, root_text = (', '.join(texts[where:where + 1]) or 'none' for texts in (own, root))
    return (f'the parameters differ between ranks: rank {rank} has {len(own)}, rank {root_rank} '
            f'has {len(root)}, and the first that differs is {own_text} on rank {rank}, '
            f'{root_text} on rank {root_rank}. Build the same model on all ranks')


def must_match(shapes, root_rank):
    """Raises ValueError on a rank whose list of shapes differs from the root's. Collective."""
    root = broadcast_object(shapes, root_rank, 'variables')
    if shapes != root:
        raise ValueError(differing(shapes, root, root_rank))


def must_be_as_saved(shapes, saved):
    """Raises ValueError if the shapes differ from those of the saved values."""
    if shapes != saved:
        where = _first_difference(shapes, saved)
        raise ValueError(
            'the variables of the model and its optimizer changed after the last save() or '
            f'commit(), so that they cannot be restored: {len(saved)} were saved, there are '
            f'{len(shapes)} now, and the first that differs is number {where}: shape '
            f'{saved[where:where + 1]} then, {shapes[where:where + 1]} now. Make all variables, '
            "also the optimizer's, before the state, or call state.save() after making more")
