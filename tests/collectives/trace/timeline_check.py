# SPDX-License-Identifier: Apache-2.0
"""Checks the timelines that timeline_job has written, and prints TAP without a plan.

timeline_check.py one FILE RANKS TRANSPORT    the timeline of rank 0
timeline_check.py all FILE RANKS TRANSPORT    the timeline of all ranks
timeline_check.py dynamic ONE TWO PICTURES    timelines that the program began and ended; each shows
                                              PICTURES ranks
"""
import collections
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))

from timeline import Checks, names_of, read

STEPS, PLANNED = 5, 30  # timeline_job.c
KINDS = {'grad/"a"': 'ALLREDUCE', 'grad/b\\c': 'ALLREDUCE', 'grad/ä': 'ALLREDUCE',
         'gathered': 'ALLGATHER', 'sent': 'ALLTOALL', 'shared': 'BROADCAST',
         'scattered': 'REDUCESCATTER'}
ACTIVITIES = {'BROADCAST': 'BCAST'}
ONCE = re.compile(r'\+NEGOTIATE_(\w+) (?:\d+ )*- '
                  r'(?:\+ERROR - |\+\1 \+QUEUE - \+(?:SHM|NET)_\w+ - -(\S+) )')

checks = Checks()
ok = checks.ok


def rows_of(events):
    """Maps (name, rank) of each row to its events. The rank is None in a timeline of rank 0 alone."""
    rows, names = collections.defaultdict(list), names_of(events)
    for event in events:
        if event['ph'] in 'BEX':
            rows[event['pid'], event.get('tid')].append(event)
    return {(names[key], key[0] if key[1] else None): row for key, row in rows.items()}


def words(row):
    """Returns a row as text: +NAME for a begin, NAME for a mark, - for an end, followed by its dtype and shape."""
    text = ''
    for event in row:
        if event['ph'] == 'E':
            args = event.get('args')
            text += '-' + (json.dumps(args).replace(' ', '') if args else '') + ' '
        else:
            text += ('+' if event['ph'] == 'B' else '') + event['name'] + ' '
    return text


def is_in_order(row):
    times = [event['ts'] for event in row]
    return times == sorted(times) and ONCE.sub('', words(row)) == ''


def check_rows(rows, transport):
    bad = [(name, words(row)) for name, row in rows.items() if not is_in_order(row)]
    ok(not bad, 'every tensor is negotiated, queued and run, in this order, nested', bad)
    wrong = []
    for (name, rank), row in rows.items():
        kind = KINDS.get(name)
        expected = f'+{transport}_{ACTIVITIES.get(kind, kind)} '
        steps = STEPS + (PLANNED if name.startswith('grad/') else 0)
        if kind and words(row).count(expected) != steps:
            wrong.append((name, rank, words(row)))
    ok(not wrong, f'every step is there, run over {transport}', wrong)
    odd = [words(row) for (name, _), row in rows.items() if name == 'odd']
    ok(odd and all('+ERROR' in text for text in odd), 'a tensor that fails is an ERROR', odd)


def check_args(rows, ranks):
    gathered = ranks * (ranks + 1) // 2
    expected = {'grad/b\\c': f'-{{"dtype":"float32","shape":"[2,4]"}}',
                'gathered': f'-{{"dtype":"float64","shape":"[{gathered}]"}}',
                'sent': f'-{{"dtype":"int32","shape":"[{2 * ranks}]"}}',
                'late': '-{"dtype":"float32","shape":"[]"}'}
    wrong = [(name, words(row)) for (name, _), row in rows.items()
             if name in expected and expected[name] not in words(row)]
    ok(not wrong, 'the ends tell dtype and shape', wrong)


def check_one(path, ranks, transport):
    events = read(path)
    rows = rows_of(events)
    names = {name for name, _ in rows}
    ok(names.issuperset(KINDS) and 'late' in names, 'every tensor has a row', names)
    ok('start_time_since_epoch_in_micros' in events[0]['args'], 'the timeline is dated')
    ok(any(event['name'] == 'CYCLE_START' for event in events if event['ph'] == 'i'),
       'cycles are marked')
    check_rows(rows, transport)
    check_args(rows, ranks)
    wrong = []
    for name, row in rows.items():
        first = words(row).split(' - ')[0].split()[1:]
        if sorted(first) != sorted(str(rank) for rank in range(ranks)):
            wrong.append((name, first))
    ok(not wrong, 'the first time, each rank is marked once when it has submitted', wrong)


def steps_of(row):
    """Returns for each occurrence of a tensor when it began, was agreed on, and ended."""
    result, times, depth = [], [], 0
    for event in row:
        depth += {'B': 1, 'E': -1}.get(event['ph'], 0)
        if event['ph'] == 'B' and event['name'].startswith('NEGOTIATE'):
            times = [event['ts']]
        elif event['ph'] == 'E' and depth == 0:
            times.append(event['ts'])
            if len(times) == 3:
                result.append(times)
    return result


def errors_of(events, ranks):
    """Returns the largest clock error of each rank that the trace mentions."""
    errors = [0] * ranks
    for event in events:
        if event['ph'] == 'M' and event['name'] == 'process_labels':
            error = int(re.fullmatch(r'clock within (\d+) us', event['args']['labels'])[1])
            errors[event['pid']] = max(error, errors[event['pid']])
    return errors


def contradictions(rows, errors):
    """Returns the occurrences of tensors that ended on a rank before all ranks had submitted them. The first
    occurrence must not even be agreed on before; later ones may, because they are replayed. Ignores barriers
    and broadcasts, which may end earlier on one rank."""
    result, ranks = [], range(len(errors))
    for name in {name for name, _ in rows}:
        if name == 'shared' or name.startswith('hvd.'):
            continue
        for step, times in enumerate(zip(*(steps_of(rows[name, rank]) for rank in ranks))):
            last_begin = max(times[rank][0] - errors[rank] for rank in ranks)
            first_done = min(times[rank][1 if step == 0 else 2] + errors[rank] for rank in ranks)
            if last_begin > first_done + 1:
                result.append((name, step, times))
    return result


def check_all(path, ranks, transport):
    events = read(path)
    rows = rows_of(events)
    processes = [event['args']['name'] for event in events if event['ph'] == 'M'
                 and event['name'] == 'process_name']
    ok(len(processes) == ranks and all(
        re.fullmatch(rf'rank {rank} on \S+', name) for rank, name in enumerate(processes)),
       'every rank is a process with its name and host', processes)
    counts = collections.Counter(rank for _, rank in rows)
    ok(len(counts) == ranks and len(set(counts.values())) == 1,
       'every rank has all tensors', counts)
    check_rows(rows, transport)
    check_args(rows, ranks)
    errors = errors_of(events, ranks)
    print(f'# clocks within {errors} us')
    ok(all(errors[1:]), 'the other ranks have a label that says how exact their times are', errors)
    wrong = contradictions(rows, errors)
    ok(not wrong, 'within these errors, no tensor is agreed on or ends before all ranks have it',
       wrong)
    begins = [steps_of(rows['late', rank])[0][0] for rank in range(ranks)]
    ok(begins.index(max(begins)) == ranks - 1, 'the late rank can be seen', begins)


def check_dynamic(one, two, pictures):
    """pictures: the number of ranks that each timeline shows. Ignores barriers, which may begin or end outside of a
    timeline."""
    rows = [{key: row for key, row in rows_of(read(path)).items()
             if not key[0].startswith('hvd.')} for path in (one, two)]
    counts = [collections.Counter(name for name, _ in keys) for keys in rows]
    ok(counts[0] == {'first again': pictures, 'first goes on': pictures},
       'a timeline has the events between its start and its end; starting it again while it runs '
       'continues it', counts[0])
    ok(counts[1] == {'second': pictures},
       'a start with another file ends the first timeline', counts[1])
    bad = [words(row) for keys in rows for row in keys.values() if not is_in_order(row)]
    ok(not bad, 'phases are in order', bad)


def look(what, *args):
    if what == 'dynamic':
        one, two, pictures = args
        check_dynamic(one, two, int(pictures))
    else:
        path, ranks, transport = args
        (check_one if what == 'one' else check_all)(path, int(ranks), transport)


if __name__ == '__main__':
    sys.exit(checks.run(look, *sys.argv[1:]))
