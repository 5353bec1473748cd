#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Faults of all kinds and their outcome: run.py [OPTIONS] [CASE ...].

CASE is the beginning of a row's name; default: all rows. Each row is a fault in a job of 4 ranks, on one node or on
two nodes in namespaces of this machine, and runs --runs times. The rank, the layout, the moment and, in rows for
several places, the collective are drawn at random. A run is good if the error of every surviving rank names the
failed rank and its host, hvdrun returns the right exit code, nothing is left (processes, /dev/shm, TMPDIR), and
nothing hangs. Needs root, for network namespaces.

The table shows how many seconds after the fault the last survivor got its error: the median of the runs and the
longest. More than 5 s is a failure; rows that wait for a stall time may take 5 s more than that time.

cable.py makes links that lose, delay and reorder packets, because many kernels have no netem. If a clock jumps, only
the process of one rank sees it; the clock of the machine does not change.
"""

import argparse
import collections
import concurrent.futures
import os
import random
import shutil
import statistics
import subprocess
import sys

import cases
import cgroup
import job


def read_options():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--runs', type=int, default=20, help='runs of each row; default 20')
    parser.add_argument('--seed', type=int, default=random.randrange(2 ** 32))
    parser.add_argument('--jobs', type=int, default=1, help='jobs at the same time; default 1')
    parser.add_argument('--build', default='build', help='the build directory; default build')
    parser.add_argument('--limit', type=float, default=60,
                        help='seconds after which a job counts as hung; default 60')
    parser.add_argument('--no-python', action='store_true', help='without the ranks in Python')
    parser.add_argument('--tap', action='store_true',
                        help='run as a test: no time limit but --limit, no rows that bad luck can fail')
    parser.add_argument('--list', action='store_true', help='print the names of the rows')
    parser.add_argument('case', nargs='*', metavar='CASE')
    return parser.parse_args()


def find_tools(options):
    build = os.path.realpath(options.build)
    tools = argparse.Namespace(
        rank=os.path.join(build, 'tests', 'faults', 'fault_rank'),
        hvdrun=os.path.join(build, 'pmix_boot', 'hvdrun', 'hvdrun'),
        boot_helper=os.path.join(build, 'pmix_boot', 'hvd-boot'),
        python=sys.executable)
    for path in (tools.rank, tools.hvdrun, tools.boot_helper):
        if not os.path.exists(path):
            sys.exit(f'there is no {path}: compile first, and name the build with --build')
    os.environ['HVD_LIBRARY'] = os.path.join(build, 'collectives', 'libhvd.so')
    return tools


def obstacle():
    """Returns why this machine cannot have two nodes in namespaces, or an empty text."""
    if not all(map(shutil.which, ('ip', 'nsenter', 'unshare', 'setpriv', 'prlimit'))):
        return 'needs ip, nsenter, unshare, setpriv and prlimit'
    if subprocess.run(['unshare', '--net', '--mount', '--uts', 'true'],
                      stderr=subprocess.DEVNULL).returncode != 0:
        return 'network namespaces need root'
    return ''


def obstacle_of(case):
    if case.cable and not os.path.exists('/dev/net/tun'):
        return 'needs /dev/net/tun'
    return cgroup.obstacle() if case.memory else ''


def run_once(case, number, options, tools):
    result = job.Job(case, tools, f'{options.seed} {case.name} {number}', options.limit).run()
    if not options.tap and result.told and max(result.told) > case.notice:
        result.problems.append(f'told after {max(result.told):.1f} s')
    return result


def print_row(case, results):
    told = [max(result.told) for result in results if result.told]
    times = f'{statistics.median(told):8.2f} {max(told):8.2f}' if told else f'{"-":>8} {"-":>8}'
    codes = ','.join(str(code) for code in sorted({result.code for result in results}))
    good = sum(not result.problems for result in results)
    print(f'{case.name:48} {good:3}/{len(results):<3} {times}  {codes}', flush=True)


def print_problems(case, results, prefix=''):
    problems = collections.Counter()
    for number, result in enumerate(results):
        for problem in result.problems:
            problems[problem] += 1
            if problems[problem] == 1:
                print(f'{prefix}    run {number}, {result.drawn}: {problem}')
                if prefix:
                    for line in result.output.splitlines():
                        print(f'{prefix}        {line}')
    sys.stdout.flush()


def print_test(number, case, results):
    is_bad = any(result.problems for result in results)
    print(f'{"not ok" if is_bad else "ok"} {number} - {case.name}', flush=True)
    print_problems(case, results, '# ')
    return is_bad


def main():
    options = read_options()
    chosen = [case for case in cases.CASES
              if (not options.case or case.name.startswith(tuple(options.case))) and
              not (options.no_python and case.program == 'Python') and
              (case.is_certain or not options.tap)]
    if options.list:
        sys.exit(print(*(case.name for case in chosen), sep='\n'))
    if obstacle():
        print(f'1..0 # SKIP {obstacle()}')
        sys.exit()
    tools = find_tools(options)
    print(f'# seed {options.seed} (repeat with --seed {options.seed})', flush=True)
    if not options.tap:
        print(f'{"fault":48} {"good":7} {"median s":>8} {"max s":>8}  exit codes', flush=True)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        rows = [(case, [pool.submit(run_once, case, number, options, tools)
                        for number in range(0 if obstacle_of(case) else options.runs)])
                for case in chosen]
        for number, (case, futures) in enumerate(rows, 1):
            results = [future.result() for future in futures]
            if not results:
                print(f'ok {number} - ' * options.tap + f'{case.name} # SKIP {obstacle_of(case)}')
            elif options.tap:
                failed += print_test(number, case, results)
            else:
                print_row(case, results)
                print_problems(case, results)
                failed += any(result.problems for result in results)
    if options.tap:
        print(f'1..{len(rows)}')
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
