# SPDX-License-Identifier: Apache-2.0
"""What the calls of the front ends cost for each tensor, as Markdown tables; `runtime.sh --calls`
starts it.

The figures are those of calls.py, calls_tensorflow.py and calls.c: of rank 0, on the clock, the
median over the turns of each job's median step. What Python adds is the difference to the same
calls made from C; a job with torch has torch.distributed's gloo in the same processes.
"""

import argparse
import functools
import os

import runtime

HEADER = 'us per tensor'
FIGURES = ('submit', 'synchronize', 'together', '- of it submit', 'one by one')
COLUMNS = ('submit', 'wait of one that is done', 'both, waiting for the others', 'submit',
           'both, waiting for the others')
GLOO = ('gloo submit', 'gloo wait', 'gloo together', '- gloo submit', 'gloo one by one')


def read_figures(text):
    """{name: median on the clock} of what such a program prints."""
    lines = text[text.index(HEADER):].splitlines()[1:]
    return {' '.join(words[:-4]): float(words[-4]) for words in map(str.split, lines)}


def run(command, env):
    return read_figures(runtime.run_processes([command], env))


def jobs_of(options, runtimes, ranks):
    """{who: function that measures}."""
    hvd, sizes = runtimes[0], (str(options.count), str(options.steps))
    here = functools.partial(os.path.join, runtime.HERE)
    arguments = ('--count', sizes[0], '--steps', sizes[1])
    program = os.path.join(options.build, 'contrib', 'bench', 'calls')
    jobs = {'C': functools.partial(run, [*hvd.launcher(str(ranks)), program, *sizes], hvd.env)}
    for each in runtimes:
        command = [*each.launcher(str(ranks)), each.python, here('calls.py'), *arguments]
        command += ['--gloo'] if each is hvd else []
        jobs[each.label] = functools.partial(run, command, each.env)
    if options.tensorflow:
        command = [*hvd.launcher(str(ranks)), options.tensorflow, here('calls_tensorflow.py')]
        jobs['TensorFlow'] = functools.partial(run, [*command, *arguments], hvd.env)
    return jobs


def row(who, figures, names=FIGURES):
    return (who, *(f'{figures[name]:.2f}' for name in names))


def difference(who, figures, less):
    return (who, *(f'{figures[name] - less[name]:.2f}' for name in FIGURES))


def torch_rows(figures):
    in_c, own = figures['C'], figures['hvd']
    yield row('hvd, from C', in_c)
    yield row('hvd, from Python', own)
    yield difference('- of it Python', own, in_c)
    yield row('torch.distributed, gloo', own, GLOO)
    for who, each in figures.items():
        if who not in ('C', 'hvd', 'TensorFlow'):
            yield row(who, each)


def tensorflow_rows(in_c, figures):
    for kind, same in ('eager', 'one by one'), ('graph', 'together'):
        whole, add, least = figures[kind], figures[f'{kind} add'], in_c[same]
        yield (kind, *(f'{value:.2f}' for value in (whole, add, least, whole - add - least)))


def print_tables(figures, options, ranks):
    shape = f'{ranks} {"rank" if ranks == 1 else "ranks"}, µs per tensor of one element'
    print(f'\ntorch, {shape}: {options.count} in flight (three columns), then one')
    runtime.print_table(('', *COLUMNS), torch_rows(figures))
    if 'TensorFlow' in figures:
        print(f'\nTensorFlow, {shape}: eager, and {options.count} in a tf.function')
        runtime.print_table(('', 'allreduce', "TensorFlow's own add", 'hvd, from C',
                             'what is left'),
                            tensorflow_rows(figures['C'], figures['TensorFlow']))


def parse():
    parser = argparse.ArgumentParser(prog='runtime.sh --calls')
    parser.add_argument('--build', required=True, help=argparse.SUPPRESS)
    parser.add_argument('--horovod', help=argparse.SUPPRESS)
    parser.add_argument('--tensorflow', help=argparse.SUPPRESS)
    parser.add_argument('--turns', type=int, default=3)
    parser.add_argument('--steps', type=int, default=50, help='measured steps of a job')
    parser.add_argument('--count', type=int, default=161, help='tensors in flight')
    parser.add_argument('--ranks', type=int, nargs='*', default=[1, 2])
    return parser.parse_args()


def main():
    options = parse()
    runtimes = [runtime.hvd_runtime(options.build)]
    if options.horovod:
        runtimes.append(runtime.horovod_runtime(options.horovod, 1))
    jobs = {(ranks, who): job for ranks in options.ranks
            for who, job in jobs_of(options, runtimes, ranks).items()}
    print(runtime.conditions(options.turns))
    seen = runtime.take_turns(options.turns, jobs)
    for ranks in options.ranks:
        print_tables({who: result for (count, who), result in seen.items() if count == ranks},
                     options, ranks)
    print(f'\nload after {os.getloadavg()[0]:.1f}')


if __name__ == '__main__':
    main()
