# SPDX-License-Identifier: Apache-2.0
"""Jobs of scripts that call init_process_group('hvd'): their start, their end, and the timelines
and reports that they write. Prints TAP; starts its ranks itself."""

import json
import os
import re
import shutil
import subprocess
import tempfile

import launch
from report import run_check
from store_check import bare_environment

HEAD = '''
import os, sys, torch
import torch.distributed as dist
if '{name}' == 'imported':
    import horovod.torch.distributed
'''
WORK = '''
def work():
    rank, size = dist.get_rank(), dist.get_world_size()
    tensor = torch.tensor([1.0 + rank])
    dist.all_reduce(tensor)
    print(f'rank {rank} of {size}: {tensor.item()}\\n', end='', flush=True)
'''
START = "dist.init_process_group('hvd')\nwork()\n"
END = 'dist.barrier()\ndist.destroy_process_group()\n'
BY_FILE = '''
dist.init_process_group('hvd', init_method=f'file://{sys.argv[2]}', rank=int(sys.argv[1]), world_size=2)
work()
'''
FAILURE = '''
dist.init_process_group('hvd')
work()
if dist.get_rank() == 1:
    %s
while True:
    dist.all_reduce(torch.ones(3))
'''
TRAINING = '''
dist.init_process_group('hvd')
model = torch.nn.Sequential(torch.nn.Linear(37, 1, bias=False))
model = torch.nn.parallel.DistributedDataParallel(model)
for _ in range(3):
    model(torch.ones(2, 37)).sum().backward()
(dist.send if dist.get_rank() == 0 else dist.recv)(torch.ones(3), 1 - dist.get_rank())
'''


class Installation:
    """A folder with the package and its metadata, as an install has them."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix='hvd-test-')
        metadata = os.path.join(self.folder, 'horovod-0.0.dist-info')
        os.symlink(os.path.join(launch.PACKAGE, 'horovod'), os.path.join(self.folder, 'horovod'))
        os.mkdir(metadata)
        shutil.copy(os.path.join(launch.PACKAGE, 'metadata', 'entry_points.txt'), metadata)
        with open(os.path.join(metadata, 'METADATA'), 'w') as file:
            file.write('Metadata-Version: 2.1\nName: horovod\nVersion: 0.0\n')
        os.environ['PYTHONPATH'] = self.folder
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)

    def script(self, *parts, name='imported'):
        path = os.path.join(self.folder, 'script.py')
        with open(path, 'w') as file:
            file.write(HEAD.format(name=name) + WORK + ''.join(parts))
        return path


def finds_entry_points():
    """Whether this torch loads entry points of packages: since 2.5 when it is imported, since 2.14
    when a script asks for the backend."""
    version = subprocess.run([launch.PYTHON, '-c', 'import torch; print(torch.__version__)'],
                             text=True, stdout=subprocess.PIPE, check=True).stdout
    return tuple(map(int, re.findall(r'\d+', version)[:2])) >= (2, 5)


def is_done(status, output, size=2):
    total = size * (size + 1) / 2
    lines = output.splitlines()
    return status == 0 and all(f'rank {rank} of {size}: {total}' in lines for rank in range(size))


def run(place, *parts, name='imported', **variables):
    return launch.run_ranks(2, [place.script(*parts, name=name)], **variables)


def check_starts(report, place):
    skip = '' if finds_entry_points() else ' # SKIP this torch has no entry points of backends'
    status, output = (0, '') if skip else run(place, START, END, name='not imported')
    report.line(skip or is_done(status, output),
                f'torch finds the backend by its entry point, under hvdrun{skip}', output)
    status, output = run(place, START, END)
    report.line(is_done(status, output), 'a script that imports the backend starts under hvdrun', output)
    status, output = run(place, START)
    report.line(is_done(status, output), 'a script may end without destroy_process_group', output)


def check_torchrun(report, place):
    done = subprocess.run(
        [*launch.sanitizer(), launch.PYTHON, '-m', 'torch.distributed.run', '--standalone',
         '--nproc_per_node', '2', place.script(START, END)],
        env=bare_environment(GLOO_SOCKET_IFNAME='lo'), text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, check=False)
    skip = ' # SKIP this torchrun is not for this Python' if 'in to_map' in done.stdout else ''
    report.line(skip or is_done(done.returncode, done.stdout),
                f'torchrun starts a script with the backend{skip}', done.stdout)


def check_file(report, place):
    command = [*launch.sanitizer(), launch.PYTHON, place.script(BY_FILE, END)]
    meeting = os.path.join(place.folder, 'meeting')
    ranks = [subprocess.Popen([*command, str(rank), meeting], env=bare_environment(), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
             for rank in range(2)]
    output = ''.join(rank.communicate()[0] for rank in ranks)
    report.line(is_done(max(abs(rank.returncode) for rank in ranks), output),
                'ranks without a launcher find each other through a file', output)


def check_failures(report, place):
    status, output = run(place, FAILURE % 'raise ValueError("boom")')
    told = [line for line in output.splitlines() if ' rank 1 on ' in line]
    report.line(status == 1 and bool(told) and 'ValueError: boom' in told[-1],
                'a rank that raises an exception ends the others, which name it', output)
    status, output = run(place, FAILURE % 'os.kill(os.getpid(), 9)')
    report.line(status == 128 + 9 and 'rank 1 ' in output,
                'a rank that is killed ends the others, which name it', output)
    status, output = run(place, FAILURE % 'sys.exit(3)')
    told = [line for line in output.splitlines() if ' rank 1 on ' in line]
    report.line(status == 3 and bool(told) and 'left the job' in told[-1],
                'a rank that ends while others wait for it ends the others', output)


def check_records(report, place):
    timeline = os.path.join(place.folder, 'timeline')
    status, output = run(place, TRAINING, END, HOROVOD_TIMELINE=timeline, HVD_REPORT='1')
    try:
        with open(timeline) as file:
            text = json.dumps(json.load(file))
    except (OSError, ValueError) as error:
        text = str(error)
    report.line(status == 0 and 'all_reduce sum float32 37' in text,
                'the timeline has the names of the buckets of DDP', f'{output}\n{text[:2000]}')
    report.line('"send to 1"' in text and '"bytes": 12, "tag": 0, "rank": 1' in text,
                'the timeline has a row for messages', text[:4000])
    report.line('hvd' in output and 'allreduce' in output,
                'HVD_REPORT=1 prints the report of the job', output)


def main(report):
    with Installation() as place:
        for check in (check_starts, check_torchrun, check_file, check_failures, check_records):
            check(report, place)


if __name__ == '__main__':
    run_check(main, 2, with_hvdrun=True)
