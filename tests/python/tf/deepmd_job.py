# SPDX-License-Identifier: Apache-2.0
"""A rank of a training with DeePMD-kit, and the frames that it trains on.

    deepmd_job.py frames DIRECTORY     writes the systems `all`, `2.0`, `2.1`, `4.0` ... and `held_out`
    deepmd_job.py DIRECTORY ARGUMENT...
        runs `dp ARGUMENT...` in the folder of DIRECTORY that has the number of this rank

A system N.R has the frames of rank R of N ranks; together they have those of `all`. Energies and forces come from a
repulsion between all pairs of atoms."""

import os
import sys

ATOMS, FRAMES, SIDE = 12, 4, 9.0
STRENGTH = ((1.0, 0.6), (0.6, 0.3))  # by the types of both atoms


def energy_and_forces(positions, types):
    import numpy
    apart = positions[:, None] - positions[None]
    apart -= SIDE * numpy.round(apart / SIDE)
    strength = numpy.array(STRENGTH)[types[:, None], types[None]] * (1 - numpy.eye(len(types)))
    pairs = strength * numpy.exp(-(apart ** 2).sum(-1) / 2)
    return pairs.sum() / 2, (pairs[..., None] * apart).sum(1)


def write_system(path, types, frames):
    import numpy
    os.makedirs(os.path.join(path, 'set.000'))
    numpy.savetxt(os.path.join(path, 'type.raw'), types, fmt='%d')
    with open(os.path.join(path, 'type_map.raw'), 'w') as names:
        names.write('O\nH\n')
    energies, forces = zip(*(energy_and_forces(each, types) for each in frames))
    arrays = {'coord': frames, 'energy': energies, 'force': forces,
              'box': [numpy.eye(3) * SIDE] * len(frames)}
    for name, array in arrays.items():
        numpy.save(os.path.join(path, 'set.000', name), numpy.reshape(array, (len(frames), -1)))


def write_frames(directory):
    import numpy
    random = numpy.random.default_rng(1)
    types = numpy.arange(ATOMS) % 3 % 2
    frames = random.uniform(0, SIDE, (2 * FRAMES, ATOMS, 3))
    write_system(os.path.join(directory, 'held_out'), types, frames[FRAMES:])
    write_system(os.path.join(directory, 'all'), types, frames[:FRAMES])
    for ranks in (2, FRAMES):
        for rank in range(ranks):
            write_system(os.path.join(directory, f'{ranks}.{rank}'), types, frames[:FRAMES][rank::ranks])


def train(directory, arguments):
    from deepmd.main import main
    from horovod.runner.common.util.env import get_env_rank_and_size
    os.chdir(os.path.join(directory, str(get_env_rank_and_size()[0])))
    main(arguments)


if __name__ == '__main__':
    if sys.argv[1] == 'frames':
        write_frames(sys.argv[2])
    else:
        train(sys.argv[1], sys.argv[2:])
