#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures trainings for the table of a lab course: for each backend, number of servers and processes
per server, the time of a step, throughput, speed-up and scaling efficiency. Also measures allreduce
alone.

    hvd-bench --lab --servers 1,2 --per-server 1,2,4 --out lab        in a Slurm allocation
    hvd-bench --lab --per-server 1,2                                  on this machine
    hvd-bench --lab --draw --out lab                                  only draws the pictures again

Writes OUT/training.md, .csv, .png and .svg, and the same files for allreduce. Backends take turns;
each figure is the median of the jobs of all turns. Speed-up is the throughput divided by that of one
process without communication, the first line of the table, for all backends; efficiency is the
speed-up divided by the number of processes. Every process has a batch of the same size.

Each job adds a line to OUT/jobs.csv when it ends. The same command therefore goes on where a lab was
interrupted; with more turns, layouts or backends it runs only the jobs that are new.

Backends: hvd (DistributedOptimizer), gloo, gloo-views and gloo-fsdp (torch's
DistributedDataParallel on Gloo, without and with gradient_as_bucket_view, and fully_shard), ddp,
ddp-views and fsdp (the same three over torch.distributed's backend hvd), horovod=PYTHON (the Horovod of
that Python), and alone: the same number of processes without communication, which is the ideal.

Jobs are started by srun --hvd in a Slurm allocation, else by hvdrun on this machine. --launch COMMAND
starts them in another way; {servers}, {per_server}, {ranks} and {layout} ("2,2") are replaced in
COMMAND.
"""

import argparse
import csv
import glob
import io
import itertools
import json
import os
import shlex
import signal
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE_PYTHON = os.path.join(HERE, '..', '..', 'python')
JOB_SECONDS = 600
# jobs.csv: a job is known by all columns but the last.
JOB = ('backend', 'servers', 'per_server', 'turn', 'model', 'batch', 'steps', 'python', 'launch', 'variables',
       'step_ms')
# Variables that tell a rank its place, or that are secret. All other HVD_* are settings of the jobs.
NOT_SETTINGS = ('HVD_AGENT_PLAN', 'HVD_CAUSE', 'HVD_CPUS', 'HVD_DEFAULTS', 'HVD_EXPORTED', 'HVD_GPUS',
                'HVD_GPU_INDEX', 'HVD_GPU_LIST', 'HVD_LAUNCH', 'HVD_LAUNCH_VERSION', 'HVD_NCCL_MADE_FOR', 'HVD_NIC',
                'HVD_RENDEZVOUS', 'HVD_RUN_ADDRESS', 'HVD_RUN_KEY', 'HVD_SECRET', 'HVD_STORE', 'HVD_TERMINAL')
COLUMNS = ('backend', 'servers', 'per_server', 'ranks', 'step_ms', 'samples_s', 'speed_up',
           'efficiency')
TITLE = ('model', 'batch')  # equal in all rows: in training.csv only
ALLREDUCE = ('backend', 'servers', 'per_server', 'ranks', 'bytes', 'time_us', 'algbw_gbs',
             'busbw_gbs', 'over_hvd')
INTEGERS = ('servers', 'per_server', 'ranks', 'bytes')
BASELINE = ('alone', 1, 1)

EXAMPLES = os.path.join(os.path.dirname(os.path.realpath(__file__)), '..', '..', 'examples', 'pytorch')
# The names of the models in lab_train.py, which cannot be imported here: it needs torch.
BACKENDS = ('hvd', 'gloo', 'gloo-views', 'gloo-fsdp', 'ddp', 'ddp-views', 'fsdp', 'alone')
MODELS = ('mlp', 'conv', 'wide', 'resnet50')


class LabError(Exception):
    """Ends the lab with a text for the user."""


def whole(text):
    """Parses a whole number of 1 or more."""
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 1000000:
        raise argparse.ArgumentTypeError(f'expected a whole number from 1, found {text!r}')
    return int(text)


def one_of_each(read):
    """Returns a parser of lists in which no word occurs twice."""
    def read_list(text):
        items = [read(word) for word in text.split(',')]
        if len({str(item).partition('=')[0] for item in items}) < len(items):
            raise argparse.ArgumentTypeError(f'expected each word once, found {text!r}')
        return items
    return read_list


def program(text):
    if shutil.which(text) is None:
        raise argparse.ArgumentTypeError(f'expected a program, found {text!r}')
    return text


def backend(text):
    if text.startswith('horovod='):
        program(text.partition('=')[2])
    elif text not in BACKENDS:
        raise argparse.ArgumentTypeError(
            f'expected {", ".join(BACKENDS)} or horovod=PYTHON, found {text!r}')
    return text


def parse():
    parser = argparse.ArgumentParser(prog='hvd-bench --lab', description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--servers', metavar='N,...', type=one_of_each(whole), default=[1],
                        help='numbers of servers, default 1')
    parser.add_argument('--per-server', metavar='N,...', type=one_of_each(whole), default=[1, 2],
                        help='processes on each server, default 1,2')
    parser.add_argument('--backends', type=one_of_each(backend), default=['hvd', 'gloo'],
                        help='backends that train, see above; default hvd,gloo')
    parser.add_argument('--peers', help='peers of allreduce, as in --vs; default gloo, in the Python of --python')
    parser.add_argument('--model', default='mlp', choices=MODELS, help='the network, default mlp')
    parser.add_argument('--batch', type=whole, metavar='N', default=32,
                        help='samples of each process per step, default 32')
    parser.add_argument('--steps', metavar='N', type=whole, default=30, help='steps of a job, default 30')
    parser.add_argument('--turns', metavar='N', type=whole, default=3,
                        help='jobs for each line of the table, default 3')
    parser.add_argument('--sizes', default='1K,1M,16M', help='sizes of allreduce; "": no allreduce')
    parser.add_argument('--launch', help='command that starts a job, see above')
    parser.add_argument('--python', type=program, help='an interpreter with torch; default: python3 of PATH, '
                        'or /usr/bin/python3 if only that has torch')
    parser.add_argument('--draw', action='store_true',
                        help='run no job; draw the pictures from the .csv files of --out')
    parser.add_argument('--hvd-bench', default='hvd-bench', help=argparse.SUPPRESS)
    parser.add_argument('--out', default='lab', help='directory for results, default lab')
    options = parser.parse_args()
    if not options.draw:
        check(parser, options)
    return options


def python_with(module, candidates):
    """Returns the first of these interpreters that has the module, or None. Does not import it, which takes
    seconds for torch."""
    question = f'import importlib.util as u, sys; sys.exit(u.find_spec("{module}") is None)'
    for python in dict.fromkeys(filter(None, candidates)):
        if subprocess.run([python, '-c', question], stderr=subprocess.DEVNULL, check=False).returncode == 0:
            return python
    return None


def check(parser, options):
    """Checks the options, so that mistakes are found before the first job, and completes them."""
    candidates = [options.python] if options.python else [shutil.which('python3'), sys.executable]
    options.python = python_with('torch', candidates)
    if options.python is None:
        parser.error(f'argument --python: there is no torch in {" and ".join(filter(None, candidates))}; '
                     'name an interpreter that has it (Debian: apt-get install python3-torch)')
    options.peers = options.peers if options.peers is not None else f'gloo={options.python}'
    options.launch = options.launch if options.launch is not None else default_launch()
    template = options.launch
    try:
        words = shlex.split(template.format(servers=1, per_server=1, ranks=1, layout='1'))
    except (KeyError, ValueError, IndexError):
        words = []
    if not words:
        parser.error(f'argument --launch: expected a command with {{servers}}, {{per_server}}, '
                     f'{{ranks}} or {{layout}} in it, found {template!r}')
    if shutil.which(words[0]) is None:
        parser.error(f'argument --launch: there is no {words[0]} in PATH, which starts the '
                     f'jobs: {template}')
    if max(options.servers) > 1 and words[0] == 'hvdrun' and '{layout}' not in template:
        parser.error('argument --servers: hvdrun runs on one server only; start this in a Slurm '
                     'allocation (salloc -N2), or give --launch')
    nodes = os.environ.get('SLURM_JOB_NUM_NODES', '')
    if words[0] == 'srun' and nodes.isdigit() and max(options.servers) > int(nodes):
        parser.error(f'argument --servers: expected at most {nodes}, the nodes of the Slurm '
                     f'allocation, found {max(options.servers)}')
    if options.model == 'resnet50' and not os.path.isdir(EXAMPLES):
        parser.error('argument --model: resnet50 is in a checkout of hvd only; expected mlp, conv or wide')
    try:
        os.makedirs(options.out, exist_ok=True)
    except OSError as error:
        parser.error(f'argument --out: cannot make {options.out}: {error.strerror}')
    if not os.access(options.out, os.W_OK | os.X_OK):
        parser.error(f'argument --out: cannot write into {options.out}')
    if not options.sizes:
        return
    asked = subprocess.run(measuring(options) + ['--help'], stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, text=True, check=False)
    if asked.returncode:
        parser.error('argument --sizes or --peers: '
                     + asked.stderr.strip().split('hvd-bench: ', 1)[-1])


def measuring(options):
    return [options.hvd_bench, 'allreduce', '--sizes', options.sizes, '--level', 'runtime',
            '--vs', options.peers]


class Progress:
    """A line on a terminal that is overwritten in place; after the first job, a line about all of them."""

    def __init__(self, total, kept, out):
        self.total, self.kept, self.out, self.done = total, kept, out, 0
        self.began, self.load = time.monotonic(), os.getloadavg()[0]

    def begin_job(self, what):
        rest = f', about {self.left()} left' if self.done else ''
        self.write(f'{self.done} of {self.total} jobs done{rest}: {what}')

    def end_job(self):
        self.done += 1
        if self.done > 1:
            return
        self.write('')
        kept = f', and {self.kept} are in {self.out} already' if self.kept else ''
        print(f'{self.total} jobs to run{kept}; the first took {self.seconds():.1f} s, jobs with more '
              f'processes take longer; {os.cpu_count()} cores on this machine, load {self.load:.1f}', flush=True)

    def seconds(self):
        return time.monotonic() - self.began

    def left(self):
        """Writes the time of the jobs that are left, if they take as long as those that have run."""
        seconds = self.seconds() / self.done * (self.total - self.done)
        return f'{seconds:.0f} s' if seconds < 100 else f'{seconds / 60:.0f} min'

    def write(self, text):
        if sys.stderr.isatty():
            print(f'\033[K{text}', end='\r', file=sys.stderr, flush=True)


def default_launch():
    if 'SLURM_JOB_ID' in os.environ:
        return 'srun --hvd --nodes={servers} --ntasks={ranks} --ntasks-per-node={per_server}'
    return 'hvdrun -np {ranks}'


def goes_on(options):
    return f'the same command goes on with the jobs that are not in {options.out}'


def failure_of(status):
    if status in (-signal.SIGTERM, 128 + signal.SIGTERM):
        return (f'a job was ended by signal {signal.SIGTERM:d} (SIGTERM): the allocation has ended, or somebody has '
                'cancelled the job')
    return f'a job failed with status {status}'


def launch(options, servers, per_server, command, has_measured=lambda: False, **env):
    """Runs a job. A job that fails ends the lab, unless has_measured() tells that nothing is missing: the Gloo of
    torch 1.13 may abort a process that destroys its group."""
    words = shlex.split(options.launch.format(servers=servers, per_server=per_server,
                                              ranks=servers * per_server,
                                              layout=layout(servers, per_server)))
    try:
        done = subprocess.run(words + command, env=dict(os.environ, OMP_NUM_THREADS='1', **env),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=JOB_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise LabError(f'a job has not ended after {JOB_SECONDS} s: '
                       f'{shlex.join(words + command)}') from error
    if done.returncode:
        failure = failure_of(done.returncode)
        if not has_measured():
            raise LabError(f'{failure}: {shlex.join(words + command)}\n{done.stdout}\n{goes_on(options)}')
        print(f'{failure} after its ranks had measured; its figures are kept: {shlex.join(words + command)}\n'
              f'{done.stdout}', file=sys.stderr, flush=True)


def settings():
    """Returns the settings of hvd in the environment, such as "HVD_NET=tcp HVD_SINGLE_COPY=0"."""
    return ' '.join(f'{name}={shlex.quote(value)}' for name, value in sorted(os.environ.items())
                    if name.startswith('HVD_') and name not in NOT_SETTINGS)


def python_of(options, name):
    """Returns the interpreter of a backend and its PYTHONPATH: empty for Horovod, so that hvd does not hide
    it."""
    if name.startswith('horovod='):
        return name.partition('=')[2], ''
    source = SOURCE_PYTHON if os.path.isdir(SOURCE_PYTHON) else ''
    return options.python, os.pathsep.join(filter(None, (source, os.environ.get('PYTHONPATH'))))


def train(options, name, servers, per_server):
    """Runs a job and returns the seconds of a step on its slowest rank. The job's directory is in
    options.out, which the ranks of all servers must see."""
    python, path = python_of(options, name)
    directory = tempfile.mkdtemp(prefix='job-', dir=options.out)

    def files():
        return glob.glob(os.path.join(directory, 'result.*.json'))

    try:
        launch(options, servers, per_server,
               [python, os.path.join(HERE, 'lab_train.py'), name.partition('=')[0], options.model,
                directory, layout(servers, per_server), '--batch', str(options.batch),
                '--steps', str(options.steps)], lambda: len(files()) == servers * per_server, PYTHONPATH=path)
        results = []
        for file in files():
            with open(file) as text:
                results.append(json.load(text))
    finally:
        shutil.rmtree(directory)
    if len(results) != servers * per_server:
        raise LabError(f'a job had {len(results)} ranks, expected {servers * per_server}: does '
                       f'--launch start as many?')
    sums = {result['sum'] for result in results} - {None}
    if len(sums) > 1:
        raise LabError(f'{name}: the ranks have different models, with sums {sums}')
    return max(result['step_s'] for result in results)


def layout(servers, per_server):
    return ','.join([str(per_server)] * servers)


def layouts(options):
    return list(itertools.product(options.servers, options.per_server))


def training_jobs(options):
    """Returns the jobs of a turn: (backend, servers, per_server)."""
    return list(dict.fromkeys([BASELINE, *((name, *each) for each in layouts(options)
                                           for name in options.backends)]))


class Jobs:
    """The trainings of a lab, and which of them are in jobs.csv already."""

    def __init__(self, options):
        self.options, self.path = options, os.path.join(options.out, 'jobs.csv')
        self.known = {}
        if not os.path.exists(self.path):
            with open(self.path, 'w', newline='') as file:
                csv.writer(file).writerow(JOB)
        try:
            with open(self.path, newline='') as file:
                self.known = {tuple(row[name] for name in JOB[:-1]): float(row[JOB[-1]])
                              for row in csv.DictReader(file)}
        except (KeyError, TypeError, ValueError) as error:
            raise LabError(f'{self.path} is no list of jobs of this lab ({error}): '
                           f'remove it, or give another --out') from error

    def key(self, turn, job):
        name, servers, per_server = job
        options = self.options
        fields = (name.partition('=')[0], servers, per_server, turn, options.model, options.batch,
                  options.steps, python_of(options, name)[0], options.launch, settings())
        return tuple(map(str, fields))

    def left(self):
        """Returns the jobs to run, as (turn, job)."""
        return [(turn, job) for turn in range(1, self.options.turns + 1)
                for job in training_jobs(self.options) if self.key(turn, job) not in self.known]

    def check(self):
        """Refuses a directory with jobs of another lab, whose rows would mix with these in the same tables."""
        names = {name.partition('=')[0]: name for name, _, _ in training_jobs(self.options)}
        for key in self.known:
            kept = dict(zip(JOB, key))
            name = names.get(kept['backend'])
            ours = dict(zip(JOB, self.key(1, (name, 1, 1)))) if name else {}
            for column in ('python', 'model', 'batch', 'steps', 'launch'):
                if ours and ours[column] != kept[column]:
                    raise LabError(f'{self.path} has jobs with --{column} {shlex.quote(kept[column])}, not '
                                   f'{shlex.quote(ours[column])}: give that option to go on with them, '
                                   'or another --out')
            if ours and ours['variables'] != kept['variables']:
                raise LabError(f'{self.path} has jobs with the variables "{kept["variables"]}", not '
                               f'"{ours["variables"]}": set these to go on with them, or give another --out')

    def add(self, turn, job, seconds):
        key = self.key(turn, job)
        self.known[key] = seconds * 1e3
        with open(self.path, 'a', newline='') as file:
            csv.writer(file).writerow((*key, seconds * 1e3))

    def step_ms(self, job):
        """Returns the median of the turns that have run, or None."""
        times = [self.known[key] for turn in range(1, self.options.turns + 1)
                 for key in [self.key(turn, job)] if key in self.known]
        return statistics.median(times) if times else None

    def rows(self):
        """Returns the rows of the table, with COLUMNS and TITLE."""
        rows, alone = [], self.step_ms(BASELINE)
        for job in training_jobs(self.options):
            name, servers, per_server = job
            step, ranks = self.step_ms(job), servers * per_server
            if step is not None:
                rows.append(dict(zip(COLUMNS + TITLE, (
                    name.partition('=')[0], servers, per_server, ranks, step,
                    1e3 * self.options.batch * ranks / step, ranks * alone / step, alone / step,
                    self.options.model, self.options.batch))))
        return rows


class Allreduces:
    """The jobs that measure allreduce, one for each layout; each leaves a JSON file in options.out."""

    def __init__(self, options):
        self.options = options
        self.command = [options.launch, *measuring(options)[1:]]
        self.layouts = [each for each in layouts(options) if each[0] * each[1] > 1 and options.sizes]

    def path(self, layout_):
        return os.path.join(self.options.out, 'allreduce-{}x{}.json'.format(*layout_))

    def document(self, layout_):
        """Returns the file's content, or None if this command has not written it."""
        try:
            with open(self.path(layout_)) as file:
                document = json.load(file)
        except (OSError, ValueError):
            return None
        return document if document.get('command') == self.command else None

    def left(self):
        return [each for each in self.layouts if self.document(each) is None]

    def measure(self, layout_):
        path = self.path(layout_)
        launch(self.options, *layout_, measuring(self.options) + ['--json', path])
        with open(path) as file:
            document = json.load(file)
        replace(path, json.dumps(dict(document, command=self.command)))

    def rows(self):
        rows = [dict(row, servers=servers, per_server=per_server,
                     backend='hvd' if row['who'] == 'runtime' else row['who'])
                for servers, per_server in self.layouts
                for row in (self.document((servers, per_server)) or {'rows': []})['rows']]
        return [{name: row[name] if name in INTEGERS or name == 'backend' else float(row[name])
                 for name in ALLREDUCE} for row in rows]


def cell(value):
    return f'{value:,.3g}' if isinstance(value, float) and value < 100 else (
        f'{value:,.0f}' if isinstance(value, float) else str(value))


def replace(path, text):
    """Writes a file that is complete at any time."""
    with open(f'{path}.new', 'w', newline='') as file:
        file.write(text)
    os.replace(f'{path}.new', path)


def table(columns, rows):
    lines = ['| ' + ' | '.join(columns) + ' |',
             '|' + '|'.join(['---'] + ['---:'] * (len(columns) - 1)) + '|']
    lines += ['| ' + ' | '.join(cell(row[column]) for column in columns) + ' |' for row in rows]
    return '\n'.join(lines)


def write(options, name, columns, rows):
    """Writes the table of the jobs so far as name.csv and name.md."""
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0])
    writer.writeheader()
    writer.writerows(rows)
    replace(os.path.join(options.out, f'{name}.csv'), text.getvalue())
    replace(os.path.join(options.out, f'{name}.md'), table(columns, rows) + '\n')


def run_trainings(options, jobs, progress):
    for turn, job in jobs.left():
        progress.begin_job(f'training by {job[0]} on {job[1]} x {job[2]} processes, '
                           f'turn {turn} of {options.turns}')
        jobs.add(turn, job, train(options, *job))
        write(options, 'training', COLUMNS, jobs.rows())
        progress.end_job()
    write(options, 'training', COLUMNS, jobs.rows())
    progress.write('')
    print(f'\ntraining\n\n{table(COLUMNS, jobs.rows())}', flush=True)


def run_allreduces(options, jobs, progress):
    for layout_ in jobs.left():
        progress.begin_job('allreduce on {} x {} processes'.format(*layout_))
        jobs.measure(layout_)
        write(options, 'allreduce', ALLREDUCE, jobs.rows())
        progress.end_job()
    progress.write('')
    if jobs.rows():
        write(options, 'allreduce', ALLREDUCE, jobs.rows())
        print(f'\nallreduce\n\n{table(ALLREDUCE, jobs.rows())}', flush=True)


# --- pictures ---

def plotting_python(options):
    """Returns an interpreter with matplotlib. Without one it prints what to do and returns None."""
    candidates = (options.python, shutil.which('python3'), sys.executable)
    python = python_with('matplotlib', candidates)
    if python is None:
        print(f'no pictures: there is no matplotlib in {", ".join(dict.fromkeys(filter(None, candidates)))} '
              '(Debian: python3-matplotlib; in a virtual environment: pip install matplotlib). '
              f'hvd-bench --lab --draw --out {options.out} draws them later', file=sys.stderr, flush=True)
    return python


def draw(options, python):
    """Draws each table of options.out. Returns how many there are."""
    bases = [os.path.join(options.out, name) for name in ('training', 'allreduce')]
    bases = [base for base in bases if os.path.exists(f'{base}.csv')]
    for base in bases:
        done = subprocess.run([python, os.path.join(HERE, 'lab_plot.py'), f'{base}.csv', f'{base}.png',
                               f'{base}.svg'], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False)
        if done.returncode:
            raise LabError(f'cannot draw {base}.csv: {done.stdout.strip()}')
    return len(bases)


def draw_only(options):
    python = plotting_python(options)
    if python is None:
        raise LabError('cannot draw')
    if not draw(options, python):
        raise LabError(f'--draw needs {options.out}/training.csv or {options.out}/allreduce.csv; '
                       'there is none')
    print(f'drew pictures in {os.path.abspath(options.out)}')


def make(options):
    trainings, allreduces = Jobs(options), Allreduces(options)
    trainings.check()
    python = plotting_python(options)
    left = len(trainings.left()) + len(allreduces.left())
    every = len(training_jobs(options)) * options.turns + len(allreduces.layouts)
    progress = Progress(left, every - left, options.out)
    if not left:
        print(f'no job to run: all {every} are in {options.out}; another --out measures them anew')
    try:
        run_trainings(options, trainings, progress)
        run_allreduces(options, allreduces, progress)
    finally:
        progress.write('')
    if python:
        draw(options, python)
    print(f'\nwrote tables{" and pictures" if python else ""} into {os.path.abspath(options.out)}')


def main():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `hvd-bench --lab | head` ends without a traceback
    options = parse()
    try:
        (draw_only if options.draw else make)(options)
    except LabError as error:
        sys.exit(f'hvd-bench --lab: {error}')
    except KeyboardInterrupt:
        print(f'interrupted; {goes_on(options)}', file=sys.stderr)
        sys.exit(130)


if __name__ == '__main__':
    main()
