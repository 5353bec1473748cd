# SPDX-License-Identifier: Apache-2.0
"""Checks the metrics files of a job and prints TAP.

usage: metrics_check.py DIRECTORY RANKS,RANKS,... PROMISE...

RANKS is the number of ranks of each node. Promises: values (the job was metrics_job.c), late=RANK (the job was late.c), gpu (the job was gpu_timeline_job.c),
stalls=FILE (the file has the warnings of rank 0 about stalled ranks)."""

import os
import re
import shutil
import subprocess
import sys

NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*'
VALUE = r'"(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf'({NAME})\{{((?:{NAME}={VALUE},)*{NAME}={VALUE})\}} ([0-9]+(?:\.[0-9]+)?)')
count = 0


def report(is_ok, promise, found=''):
    global count
    count += 1
    print(f'{"ok" if is_ok else "not ok"} {count} - {promise}')
    for line in str(found).split('\n') if found and not is_ok else []:
        print(f'# {line}')


def parse(text):
    """Yields the mistakes in the format, and (name, labels, value) for each sample."""
    family, types, seen = None, {}, set()
    if not text.endswith('\n'):
        yield 'the last line has no end'
    for line in text.splitlines():
        head = re.fullmatch(rf'# (HELP|TYPE) ({NAME}) (.+)', line)
        sample = SAMPLE.fullmatch(line)
        if head:
            kind, family, rest = head.groups()
            if kind == 'HELP' and family in types or kind == 'TYPE' and rest not in ('counter', 'gauge'):
                yield line
            types.setdefault(family, rest if kind == 'TYPE' else None)
            types[family] = rest if kind == 'TYPE' else types[family]
            if kind == 'TYPE' and (rest == 'counter') != family.endswith('_total'):
                yield f'{line}: the names of counters, and no others, end in _total'
        elif not sample or sample[1] != family or not types[family] or (sample[1], sample[2]) in seen:
            yield line
        else:
            seen.add((sample[1], sample[2]))
            labels = dict(re.findall(rf'({NAME})=({VALUE})', sample[2]))
            yield sample[1], {key: value[1:-1] for key, value in labels.items()}, float(sample[3])


def check_format(texts):
    mistakes = [each for text in texts for each in parse(text) if isinstance(each, str)]
    report(not mistakes, 'each file is in the text format of Prometheus', '\n'.join(mistakes))
    if not shutil.which('promtool'):
        report(True, 'promtool finds no fault # SKIP promtool is not installed (package prometheus)')
        return
    done = [subprocess.run(['promtool', 'check', 'metrics'], input=text, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, universal_newlines=True) for text in texts]
    report(not any(each.returncode or each.stdout for each in done), 'promtool finds no fault',
           '\n'.join(each.stdout for each in done))


def sums(samples, name, key, **wanted):
    """{label `key`: sum of the samples with these labels}."""
    found = {}
    for sample, labels, value in samples:
        if sample == name and all(labels.get(label) == each for label, each in wanted.items()):
            found[labels[key]] = found.get(labels[key], 0) + value
    return found


def check_values(samples, per_node):
    ranks = sum(per_node)
    each = {('allreduce', '4KiB'): (10, 4000, 2 * (ranks - 1) / ranks), ('allreduce', '1MiB'): (5, 400000, 2 * (ranks - 1) / ranks),
            ('allgather', '4KiB'): (3, 4000, ranks - 1), ('broadcast', '4KiB'): (2, 4000, int(ranks > 1))}
    for (operation, size), (calls, length, factor) in each.items():
        found = [sorted(sums(samples, f'hvd_{what}_total', 'node', operation=operation, size=size, device='cpu').values())
                 for what in ('batches', 'tensors', 'bytes', 'bus_bytes')]
        wanted = [sorted(calls * one * local for local in per_node)
                  for one in (1, 1, length, int(length * factor + 0.5))]
        report(found == wanted, f'{operation} of {size}: calls, bytes and bus bytes of each node are right',
               f'{found}, not {wanted}')
        seconds = sums(samples, 'hvd_batch_seconds_total', 'node', operation=operation, size=size)
        report(len(seconds) == len(per_node) and min(seconds.values()) > 0, 'and its time is measured on each node', seconds)
    names = [str(rank) for rank in range(ranks)]
    steps = sums(samples, 'hvd_rank_steps_total', 'rank')
    report(steps == {name: 7 for name in names}, 'each rank has counted its steps', steps)
    batches = sums(samples, 'hvd_rank_batches_total', 'rank')
    report(len(set(batches.values())) == 1 and sorted(batches) == names, 'all ranks have ended the same batches', batches)
    sizes = {value for name, _, value in samples if name == 'hvd_ranks'}
    report(sizes == {ranks}, 'each node knows the number of ranks', sizes)


def check_late(samples, per_node, rank):
    late = sums(samples, 'hvd_rank_late_seconds_total', 'rank')
    waited = sums(samples, 'hvd_rank_waited_seconds_total', 'rank')
    busy = sums(samples, 'hvd_rank_busy_seconds_total', 'rank')
    report(len(late) == sum(per_node) and max(late, key=late.get) == rank, 'the late rank is late for longest', late)
    report(min(waited[other] for other in waited if other != rank) > 0.3, 'the others have waited for it', waited)
    report(min(busy, key=busy.get) == rank, 'it has the least time of its own in batches', busy)


def check_gpu(samples):
    """The device measures each batch, so that the bus bytes are those of all bytes. On two ranks, their factor is 1."""
    moved = [sums(samples, f'hvd_{what}_total', 'operation', device='gpu') for what in ('bytes', 'bus_bytes')]
    report(moved[0]['allreduce'] > 0 and moved[0]['allreduce'] == moved[1]['allreduce'],
           'allreduces of GPU tensors are counted, and the device has timed all of them', moved)
    seconds = sums(samples, 'hvd_batch_seconds_total', 'operation', device='gpu')
    report(seconds['allreduce'] > 0 and seconds['allgather'] > 0, 'with their time on the device', seconds)


def check_stalls(samples, path):
    with open(path) as file:
        said = len(re.findall('waiting for remainder of ranks|ranks do not answer', file.read()))
    stalls = sums(samples, 'hvd_rank_stall_warnings_total', 'rank')
    report(stalls['0'] == said > 0, 'rank 0 has counted its warnings about stalls', f'{stalls}, {said} warnings')


def main():
    directory, per_node = sys.argv[1], [int(each) for each in sys.argv[2].split(',')]
    names = sorted(os.listdir(directory))
    report(len(names) == len(per_node) and all(re.fullmatch(r'hvd-\w+\.\d+-[\w.-]+\.prom', name) for name in names),
           'there is one file for each node, and nothing else', names)
    texts = []
    for name in names:
        with open(os.path.join(directory, name)) as file:
            texts.append(file.read())
    check_format(texts)
    samples = [each for text in texts for each in parse(text) if not isinstance(each, str)]
    running = {value for name, _, value in samples if name == 'hvd_running'}
    report(running == {0}, 'after the end, the files say that the job runs no more', running)
    for promise in sys.argv[3:]:
        if promise == 'values':
            check_values(samples, per_node)
        elif promise == 'gpu':
            check_gpu(samples)
        elif promise.startswith('stalls='):
            check_stalls(samples, promise.partition('=')[2])
        else:
            check_late(samples, per_node, promise.partition('=')[2])
    print(f'1..{count}')


main()
