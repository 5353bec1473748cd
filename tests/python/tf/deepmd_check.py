# SPDX-License-Identifier: Apache-2.0
"""DeePMD-kit, a program that uses horovod.tensorflow, trains on two and on four ranks as on one rank that gets the
frames of all of them. Prints TAP; starts its ranks itself."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
import launch  # noqa: E402
from report import run_check  # noqa: E402

JOB = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'deepmd_job.py')
FRAMES = 4
STEPS = 20
# Prints the largest relative difference between the variables of two checkpoints.
COMPARE = '''
import sys, numpy, tensorflow as tf
one, other = map(tf.train.load_checkpoint, sys.argv[1:])
names = one.get_variable_to_shape_map()
assert names == other.get_variable_to_shape_map() and len(names) > 20
values = [(one.get_tensor(name), other.get_tensor(name)) for name in names]
print(max(float(numpy.max(abs(a - b)) / (numpy.max(abs(a)) or 1)) for a, b in values))
'''


def settings(frames, batch, held_out, steps):
    """Returns DeePMD-kit's input: a small model, and the step size of one rank for any number of ranks."""
    return {
        'model': {'type_map': ['O', 'H'],
                  'descriptor': {'type': 'se_e2_a', 'sel': [12, 12], 'rcut': 4.0, 'rcut_smth': 0.5,
                                 'neuron': [4, 8], 'axis_neuron': 2, 'precision': 'float64', 'seed': 1},
                  'fitting_net': {'neuron': [16, 16], 'precision': 'float64', 'seed': 1}},
        'learning_rate': {'type': 'exp', 'start_lr': 0.005, 'stop_lr': 0.001, 'decay_steps': 10,
                          'scale_by_worker': 'none'},
        'loss': {'type': 'ener', 'start_pref_e': 1, 'limit_pref_e': 1, 'start_pref_f': 100, 'limit_pref_f': 100,
                 'start_pref_v': 0, 'limit_pref_v': 0},
        'training': {'training_data': {'systems': [frames], 'batch_size': batch},
                     'validation_data': {'systems': [held_out], 'batch_size': FRAMES},
                     'numb_steps': steps, 'seed': 1, 'disp_freq': 5, 'save_freq': steps + 1}}


def train(directory, ranks, steps, *options):
    """Trains in a folder for each rank. Returns the path of the checkpoint, the rows of rank 0's lcurve.out (none if
    the job failed), and the output."""
    folder = os.path.join(directory, f'{ranks} ranks, {steps} steps')
    for rank in range(ranks):
        own = os.path.join(folder, str(rank))
        os.makedirs(own)
        frames = 'all' if ranks == 1 else f'{ranks}.{rank}'
        with open(os.path.join(own, 'input.json'), 'w') as file:
            json.dump(settings(os.path.join(directory, frames), FRAMES // ranks,
                               os.path.join(directory, 'held_out'), steps), file)
    status, output = launch.run_ranks(ranks, [JOB, folder, '--tf', 'train', '--skip-neighbor-stat', 'input.json',
                                              *options], DP_INTRA_OP_PARALLELISM_THREADS='1',
                                      DP_INTER_OP_PARALLELISM_THREADS='1')
    curve = os.path.join(folder, '0', 'lcurve.out')
    rows = [line.split() for line in open(curve)] if status == 0 else []
    return (os.path.join(folder, '0', 'model.ckpt'), [row for row in rows if row[0] != '#'],
            f'exit status {status}\n{output}')


def difference(one, other):
    """Returns how far the variables of two checkpoints are apart, and the output."""
    status, output = launch.run_ranks(1, ['-c', COMPARE, one, other])
    return (float(output.split()[-1]) if status == 0 else 1), output


def alike(report, directory, start, alone, ranks):
    saved, rows, text = train(directory, ranks, STEPS, '--init-model', start)
    report.line('broadcast global variables to other tasks' in text, f'DeePMD-kit starts {ranks} ranks from one model',
                text)
    apart, more = difference(alone[0], saved) if rows else (1, '')
    report.line(apart < 1e-9, f'the model of {ranks} ranks is that of one rank with their frames, within 1e-09',
                f'{apart}\n{text}{more}')
    launch.comment(f'largest relative difference: {apart:.2e}')
    held_out = [[row[1] for row in each] for each in (alone[1], rows)]
    report.line(rows and held_out[0] == held_out[1], f'lcurve.out of {ranks} ranks has the losses of one rank',
                f'{held_out}\n{text}')


def check(report):
    directory = report.directory
    status, output = launch.run_ranks(1, [JOB, 'frames', directory])
    if status != 0:
        raise RuntimeError(output)
    # All runs continue from this model, because DeePMD-kit normalizes its input by statistics of rank 0's frames.
    start, _, text = train(directory, 1, 1)
    alone = train(directory, 1, STEPS, '--init-model', start)
    report.line(len(alone[1]) == STEPS // 5 + 1, 'DeePMD-kit trains on one rank, and continues from its model',
                text + alone[2])
    for ranks in (2, FRAMES):
        alike(report, directory, start, alone, ranks)


if __name__ == '__main__':
    run_check(check, FRAMES, 'deepmd, tensorflow, mpi4py', with_hvdrun=True)
