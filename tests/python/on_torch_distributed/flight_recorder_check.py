# SPDX-License-Identifier: Apache-2.0
"""The flight recorder of the backend hvd: the files that ranks write when a call fails, and the
output of torchfrtrace for them. Prints TAP; starts its ranks itself."""

import os
import pickle
import subprocess

import launch
from report import run_check

SCRIPT = '''
import os, sys, time, torch
import torch.distributed as dist
import horovod.torch.distributed
from datetime import timedelta

def fly_together():
    parts = [torch.empty(5) for _ in range(size)]
    dist.all_reduce(torch.ones(5))
    dist.broadcast(torch.ones(5), 1)
    dist.all_gather(parts, torch.ones(5))
    dist.reduce_scatter(torch.empty(5), parts)
    dist.all_to_all(parts, [torch.ones(5)] * size)
    dist.scatter(torch.empty(5), parts if rank == 0 else None, 0)
    dist.barrier()
    dist.all_reduce(torch.ones(5), group=dist.new_group([0, 1]))
    (dist.send if rank == 0 else dist.recv)(torch.ones(6), 1 - rank)
    exchange_with_any()
    (dist.send if rank == 1 else dist.recv)(torch.ones(6), 1 - rank, tag=3)

def exchange_with_any():
    """Exchanges more messages than the recorder keeps. Some are received from any source."""
    for turn in range(30):
        if rank == 1:
            for elements in 1, 2, 3:
                dist.send(torch.ones(elements), 0)
        else:
            any_first, one, any_last = torch.ones(1), torch.ones(2), torch.ones(3)
            works = [dist.irecv(any_first), dist.irecv(one, 1), dist.irecv(any_last)]
            for each in works[::-1]:
                each.wait()

dist.init_process_group('hvd')
rank, size = dist.get_rank(), dist.get_world_size()
fly_together()
if rank == 1 and sys.argv[1] == 'late':
    time.sleep(3600)
if rank == 1 and sys.argv[1] == 'killed':
    os.kill(os.getpid(), 9)
if rank == 0 and sys.argv[1] == 'lonely':
    dist.irecv(torch.ones(8)).wait(timedelta(seconds=3))
if sys.argv[1] != 'well':
    dist.all_reduce(torch.ones(7), async_op=True).wait(timedelta(seconds=3))
dist.barrier()
dist.destroy_process_group()
'''
TRACE = 'torch.distributed.flight_recorder.fr_trace'


def fly(place, how, name=None, prefix='rank_', links=None, **variables):
    """Runs the script on two ranks, which fail in the way ``how``. Returns the folder of the files,
    the output, and the contents of the files of both ranks (None if there is no file). ``links``:
    the target of symbolic links that another user has put in the place of the files."""
    folder = os.path.join(place, name or how)
    os.mkdir(folder)
    script = os.path.join(place, 'script.py')
    with open(script, 'w') as file:
        file.write(SCRIPT)
    for name in ('rank_0', 'rank_0.part') if links else ():
        os.symlink(links, os.path.join(folder, name))
    variables.setdefault('TORCH_FR_DUMP_TEMP_FILE', os.path.join(folder, prefix))
    _, output = launch.run_ranks(2, [script, how], **variables)
    contents = []
    for rank in range(2):
        try:
            with open(os.path.join(folder, f'{prefix}{rank}'), 'rb') as file:
                contents.append(pickle.load(file))
        except FileNotFoundError:
            contents.append(None)
    return folder, output, contents


def last(contents):
    """Returns the name, state and sizes of the last call of a rank, or None."""
    if contents is None or not contents['entries']:
        return None
    entry = contents['entries'][-1]
    return entry['profiling_name'], entry['state'], entry['input_sizes'] or entry['output_sizes']


def trace(report, folder):
    """Checks that torchfrtrace names the collective that one rank has not called, and no earlier
    one."""
    promise = 'torchfrtrace names the collective, and the rank that has not called it'
    done = subprocess.run([launch.PYTHON, '-m', TRACE, folder], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    if 'Error while finding module specification' in done.stdout:
        report.line(True, f'{promise} # SKIP this torch has no torchfrtrace')
        return
    told = [line for line in done.stdout.splitlines() if line.startswith(('collective: ', 'missing'))]
    report.line(told == ['collective: hvd:all_reduce', 'missing ranks: {1}'], promise, done.stdout)
    report.line('script.py:' in done.stdout, 'torchfrtrace names the line of the script', done.stdout)


def check(report):
    # A long timeout costs nothing: the ranks end as soon as both have written their files.
    on = {'TORCH_FR_BUFFER_SIZE': '50', 'TORCH_FR_WAIT_TIMEOUT_DUMP_MILSEC': '200000'}
    waiting = 'hvd:all_reduce', 'scheduled', [(7,)]
    place = report.directory
    victim = os.path.join(place, 'victim')
    with open(victim, 'w') as file:
        file.write('precious')
    folder, output, (first, second) = fly(place, 'late', links=victim, **on)
    report.line(last(first) == waiting, 'a rank writes the call that has timed out',
                f'{last(first)}\n{output}')
    report.line(last(second) == ('hvd:send 1->0', 'completed', [(6,)]),
                'the rank that has not called it writes the call before',
                f'{last(second)}\n{output}')
    with open(victim, 'rb') as file:
        report.line(file.read() == b'precious', 'ranks do not follow links of other users', output)
    modes = {name: oct(os.lstat(os.path.join(folder, name)).st_mode) for name in os.listdir(folder)
             if name != 'rank_0.part'}
    report.line(modes == {'rank_0': '0o100600', 'rank_1': '0o100600'},
                'only the user may read the files', f'{modes}\n{output}')
    os.unlink(os.path.join(folder, 'rank_0.part'))
    trace(report, folder)
    folder, output, (first, _) = fly(place, 'lonely', **on)
    report.line(last(first) == ('hvd:recv 0<-?', 'scheduled', [(8,)]),
                'a rank writes that it waits for a message from any rank',
                f'{last(first)}\n{output}')
    on['TORCH_FR_WAIT_TIMEOUT_DUMP_MILSEC'] = '0'  # do not wait for a rank that was killed
    # An empty variable counts as unset, so the files go to the cache folder of the user.
    home = os.path.join(place, 'killed')
    _, output, (first, second) = fly(place, 'killed', prefix='.cache/hvd/trace_rank_', HOME=home,
                                     TORCH_FR_DUMP_TEMP_FILE='', XDG_CACHE_HOME='', **on)
    report.line(last(first) == waiting and second is None,
                'a rank writes the call in which another rank has died, to the cache folder of its user',
                f'{last(first)}\n{output}')
    mode = os.stat(os.path.join(home, '.cache/hvd')).st_mode if first else 0
    report.line(mode == 0o40700, 'other users cannot enter that folder', oct(mode))
    folder, output, _ = fly(place, 'well', **on)
    report.line(os.listdir(folder) == [], 'no file is written if no call fails', output)
    folder, output, _ = fly(place, 'killed', 'off')
    report.line('rank 1' in output and os.listdir(folder) == [],
                'no file is written if a rank dies while recording is off', output)


if __name__ == '__main__':
    run_check(check, 2, with_hvdrun=True)
