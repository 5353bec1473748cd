# SPDX-License-Identifier: Apache-2.0
"""Runs jobs of hvd and of its peers in turns and prints Markdown tables; runtime.sh starts it.

Every figure is the median over the turns of what the slowest rank of each job measured; ratios
are of figures of the same run. agreement.py says what is measured.
"""

import argparse
import collections
import functools
import glob
import json
import os
import statistics
import subprocess
import sys
import tempfile

import gradient_lists

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, '..', '..')
JOB_SECONDS = 300

Runtime = collections.namedtuple('Runtime', 'label python launcher env')


def note(text):
    print(text, file=sys.stderr, flush=True)


def environment(**more):
    """Ours without settings that would change one side only."""
    foreign = ('HOROVOD_', 'HVD_', 'PYTHONPATH', 'PMIX_', 'UCX_')
    env = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return dict(env, OMP_NUM_THREADS='1', **more)


def hvd_runtime(build):
    """Nodes are host names (on_nodes.sh), so that ranks on two of them talk over the network; no
    binding, because Horovod's ranks have none."""
    hvdrun = os.path.join(build, 'pmix_boot', 'hvdrun', 'hvdrun')
    nodes = os.path.join(HERE, 'on_nodes.sh')

    def launcher(layout):
        return [hvdrun, '-np', str(ranks_of(layout)), '--bind', 'none', nodes, layout]

    library = os.path.join(build, 'collectives', 'libhvd.so')
    env = environment(PYTHONPATH=os.path.join(ROOT, 'contrib', 'python'), HVD_LIBRARY=library,
                      HVD_NET='tcp')
    return Runtime('hvd', '/usr/bin/python3', launcher, env)


def horovod_runtime(python, cycle_ms):
    def launcher(layout):
        return [python, os.path.join(HERE, 'horovod_run.py'), layout]

    return Runtime(f'Horovod, cycle {cycle_ms} ms', python, launcher,
                   environment(HOROVOD_CYCLE_TIME=str(cycle_ms)))


def ranks_of(layout):
    return sum(map(int, layout.split(',')))


def run_processes(commands, env):
    """Runs them at once; ends this program with what they said when one fails."""
    with tempfile.TemporaryFile('w+') as output:
        processes = [subprocess.Popen(command, env=env, stdout=output, stderr=output)
                     for command in commands]
        try:
            failed = any([process.wait(JOB_SECONDS) for process in processes])
        except subprocess.TimeoutExpired:
            failed = True
        finally:
            for process in processes:
                process.terminate()
        output.seek(0)
        said = output.read()
    if failed:
        sys.exit(f'failed, or not done within {JOB_SECONDS} s: {" ".join(commands[0])}\n{said}')
    return said


def run_job(runtime, layout, arguments, alone):
    """One job, or as many jobs of one rank each: the figures of its slowest rank; processor time
    is that of all ranks."""
    with tempfile.TemporaryDirectory(prefix='hvd-bench-') as directory:
        command = [runtime.python, os.path.join(HERE, 'agreement.py'), directory, *arguments]
        ranks = ranks_of(layout)
        if alone:
            commands = [[*command, '--alone', str(ranks)]] * ranks
        else:
            commands = [[*runtime.launcher(layout), *command]]
        said = run_processes(commands, runtime.env)
        results = [json.load(open(path)) for path in glob.glob(os.path.join(directory, '*.json'))]
    if len(results) != ranks or any(r['size'] != (1 if alone else ranks) for r in results):
        sys.exit(f'not a job of {ranks} ranks: {" ".join(commands[0])}\n{said}')
    figures = {name: max(result[name] for result in results) for name in results[0]}
    return dict(figures, cpu=sum(result['cpu'] for result in results))


def take_turns(turns, jobs):
    """jobs is {key: function that measures}; returns {key: {figure: median over the turns}}."""
    seen = collections.defaultdict(list)
    for turn in range(turns):
        for key, job in jobs.items():
            note(f'turn {turn + 1} of {turns}: {key}')
            seen[key].append(job())
    return {key: {name: statistics.median(result[name] for result in results)
                  for name in results[0]} for key, results in seen.items()}


def print_row(*cells):
    print('|', ' | '.join(f'{cell:,.0f}' if isinstance(cell, float) else cell
                          for cell in cells), '|')


def print_table(header, rows):
    print()
    print_row(*header)
    print_row(*['---', *['---:'] * (len(header) - 1)])
    for row in rows:
        print_row(*row)


def agreement_in_c(options, layout, count, alone):
    """As run_job, of hvd without Python: agreement.c."""
    hvd, ranks = hvd_runtime(options.build), ranks_of(layout)
    program = [os.path.join(options.build, 'contrib', 'bench', 'agreement'), str(count)]
    commands = [program] * ranks if alone else [[*hvd.launcher(layout), *program]]
    lines = [line.split() for line in run_processes(commands, hvd.env).splitlines()]
    results = [[float(word) for word in line] for line in lines if 'us' not in line]
    if len(results) != len(commands):
        sys.exit(f'not what agreement prints: {lines}')
    figures = dict(zip(('first', 'step', 'submit', 'one'), map(max, zip(*results))))
    return dict(figures, cpu=sum(result[-1] for result in results))


def agreement_jobs(options, runtimes, layout, gradient_list):
    """{(who, whether alone): function that measures}."""
    arguments = [gradient_list, '--sizes', options.sizes, '--steps', str(options.steps)]
    count = len(gradient_lists.LISTS[gradient_list]())
    jobs = {}
    for alone in False, True:
        if options.sizes == 'one':
            jobs['hvd, C', alone] = functools.partial(
                agreement_in_c, options, layout, count, alone)
        for runtime in runtimes:
            jobs[runtime.label, alone] = functools.partial(
                run_job, runtime, layout, arguments, alone)
    return jobs


def agreement(options, runtimes, layout, gradient_list):
    jobs = agreement_jobs(options, runtimes, layout, gradient_list)
    figures = take_turns(options.turns, jobs)
    rows = []
    for who in dict.fromkeys(who for who, _ in jobs):
        own, alone = figures[who, False], figures[who, True]
        rows.append((who, *(own[name] for name in ('first', 'step', 'submit', 'one')),
                     alone['step'], own['step'] - alone['step'],
                     own['cpu'], own['cpu'] - alone['cpu']))
    peers = [row for row in rows if not row[0].startswith('hvd')]
    rows += [ratio for own in rows if own not in peers for ratio in ratios(own, peers)]
    count = len(gradient_lists.LISTS[gradient_list]())
    print(f'\n{gradient_list}: {count} tensors, layout {layout} (ranks on each node), '
          f'sizes: {options.sizes}; µs a step')
    print_table(('', 'first', 'step', 'submitting', 'one tensor', 'alone', 'step - alone',
                 'CPU', 'CPU - alone'), rows)
    sys.stdout.flush()


def ratios(own, peers):
    """A row per peer: its figures divided by ours."""
    for peer in peers:
        yield (f'{peer[0]} / {own[0]}', *(f'{theirs / ours:.1f}' if ours > 0 else '-'
                                          for theirs, ours in zip(peer[1:], own[1:])))


def small_tensors_in_c(options, ranks):
    """hvd and MPI_Iallreduce, which take turns themselves."""
    command = ['mpirun', '--oversubscribe', '--bind-to', 'none', '-np', str(ranks),
               os.path.join(options.build, 'contrib', 'bench', 'small_tensors')]
    if os.geteuid() == 0:
        command.insert(1, '--allow-run-as-root')
    words = run_processes([command], environment()).split()
    names = ('first', 'hvd', 'mpi')
    return dict(zip(names, map(float, words[-len(names) - 1:-1])))


def small_tensors(options, runtimes, ranks):
    arguments = ['small', '--sizes', 'real', '--steps', str(max(options.steps // 4, 1))]
    jobs = {'C': functools.partial(small_tensors_in_c, options, ranks)}
    for runtime in runtimes:
        jobs[runtime.label] = functools.partial(run_job, runtime, str(ranks), arguments, False)
    figures = take_turns(options.turns, jobs)
    in_c = figures.pop('C')
    rows = [('hvd, C', in_c['first'], in_c['hvd'], '1.00', '', ''),
            ('MPI_Iallreduce, C', '', in_c['mpi'], f'{in_c["mpi"] / in_c["hvd"]:.2f}', '', '')]
    own = figures['hvd']['step']
    rows += [(f'{label}, Python', result['first'], result['step'],
              f'{result["step"] / own:.2f}', result['submit'], result['cpu'])
             for label, result in figures.items()]
    print(f'\n1,000 tensors of 1 KiB at once, {ranks} ranks on one node; µs')
    print_table(('', 'first time', 'later', 'relative to hvd', 'submitting', 'CPU, all ranks'),
                rows)
    sys.stdout.flush()


def conditions(turns):
    return (f'{os.cpu_count()} cores, load before {os.getloadavg()[0]:.1f}; medians of '
            f'{turns} turns')


def parse():
    parser = argparse.ArgumentParser(prog='runtime.sh')
    parser.add_argument('--build', required=True, help=argparse.SUPPRESS)
    parser.add_argument('--horovod', help=argparse.SUPPRESS)
    parser.add_argument('--turns', type=int, default=5)
    parser.add_argument('--steps', type=int, default=200, help='measured steps of a job')
    parser.add_argument('--sizes', choices=['one', 'real'], default='one',
                        help='elements of the tensors whose agreement is measured')
    parser.add_argument('--layouts', nargs='*', default=['2,2', '1,1'],
                        help='ranks on each node, for the agreement')
    parser.add_argument('--lists', nargs='*', default=['resnet50', 'bert_base'])
    parser.add_argument('--ranks', type=int, nargs='*', default=[2, 4],
                        help='for the small tensors')
    return parser.parse_args()


def main():
    options = parse()
    runtimes = [hvd_runtime(options.build)]
    if options.horovod:
        runtimes += [horovod_runtime(options.horovod, cycle_ms) for cycle_ms in (1, 0.1)]
    print(conditions(options.turns))
    for layout in options.layouts:
        for gradient_list in options.lists:
            agreement(options, runtimes, layout, gradient_list)
    for ranks in options.ranks:
        small_tensors(options, runtimes, ranks)
    print(f'\nload after {os.getloadavg()[0]:.1f}')


if __name__ == '__main__':
    main()
